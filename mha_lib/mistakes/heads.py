"""What goes wrong with splitting and merging heads (chapter 8)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import with_weights

mistake = of_chapter("08_heads")


@mistake(
    right.split_heads,
    "The heads are split by reshape alone, without a transpose: a head gets pieces of several tokens.",
)
def split_without_transpose(x, num_heads):
    x = np.asarray(x)
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], x.shape[-1] // num_heads)


@mistake(
    right.split_heads,
    "The features are dealt out in turn: head m must get the slice m*D .. (m+1)*D, not every H-th feature.",
)
def split_in_turn(x, num_heads):
    x = np.asarray(x)
    return np.moveaxis(x.reshape(*x.shape[:-1], x.shape[-1] // num_heads, num_heads), -1, -3)


@mistake(
    right.merge_heads,
    "The heads are merged by reshape alone, without a transpose: a row gets pieces of several tokens.",
)
def merge_without_transpose(x):
    x = np.asarray(x)
    return x.reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])


@mistake(
    right.MultiHeadAttention, "All heads share the projections of the first: each head must have columns of its own."
)
def one_projection_for_all_heads(mha, query, key=None, value=None, *, mask=None):
    first = {f"W_{n}": np.tile(getattr(mha, f"W_{n}")[:, : mha.head_dim], mha.num_heads) for n in "QKV"}
    if mha.b_Q is not None:
        first |= {f"b_{n}": np.tile(getattr(mha, f"b_{n}")[: mha.head_dim], mha.num_heads) for n in "QKV"}
    return with_weights(mha, **first)(query, key, value, mask=mask)


@mistake(
    right.MultiHeadAttention,
    "The inputs are projected twice: in the formula of the paper Q, K, V are the layer's inputs, not yet projected.",
)
def projected_twice(mha, query, key=None, value=None, *, mask=None):
    key = query if key is None else key
    value = key if value is None else value
    once = [right.project(x, W, b) for x, W, b in
            ((query, mha.W_Q, mha.b_Q), (key, mha.W_K, mha.b_K), (value, mha.W_V, mha.b_V))]  # fmt: skip
    return mha(*once, mask=mask)
