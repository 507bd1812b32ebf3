"""What goes wrong with the output projection (chapter 9)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter

mistake = of_chapter("09_output")


def _layer(mha, query, key, value, mask, *, W_O=None, b_O=None):
    """The layer's output from its heads, with another output projection."""
    trace = mha.trace(query, key, value, mask=mask)
    return right.project(trace.concat, mha.W_O if W_O is None else W_O, b_O)


@mistake(right.merge_heads, "The heads are averaged: concatenation keeps them apart, and W_O weighs them.")
def heads_averaged(x):
    x = np.asarray(x)
    return np.concatenate([x.mean(-3)] * x.shape[-3], axis=-1)


@mistake(right.MultiHeadAttention, "W_O is missing: the output is the concatenated heads.")
def output_projection_missing(mha, query, key=None, value=None, *, mask=None):
    return mha.trace(query, key, value, mask=mask).concat


@mistake(right.MultiHeadAttention, "W_O is transposed.")
def output_projection_transposed(mha, query, key=None, value=None, *, mask=None):
    return _layer(mha, query, key, value, mask, W_O=mha.W_O.T, b_O=mha.b_O)


@mistake(right.MultiHeadAttention, "The output bias b_O is forgotten.")
def output_bias_forgotten(mha, query, key=None, value=None, *, mask=None):
    return _layer(mha, query, key, value, mask)
