"""What goes wrong with the softmax (chapter 5)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import attend

mistake = of_chapter("05_softmax")


@mistake(
    right.softmax,
    "The softmax ran over axis -2: the weights of a key over the queries sum to 1, those of a query do not.",
)
def softmax_over_queries(x, axis=-1):
    return right.softmax(x, axis=-2)


@mistake(
    right.softmax, "The softmax ran over the whole matrix: all weights together sum to 1, not those of each query."
)
def softmax_over_everything(x, axis=-1):
    return right.softmax(np.ravel(x)).reshape(np.shape(x))


@mistake(right.softmax, "The row maximum is not subtracted: exp overflows for large scores, and inf / inf is NaN.")
def softmax_without_maximum(x, axis=-1):
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(x)
        return e / e.sum(axis, keepdims=True)


@mistake(
    right.softmax,
    "The scores are divided by their sum without exp: negative weights appear, and a sum near 0 explodes.",
)
def normalised_without_exp(x, axis=-1):
    x = np.asarray(x, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return x / x.sum(axis, keepdims=True)


@mistake(
    right.scaled_dot_product_attention,
    "The softmax ran over the heads: for each query and key the weights of all heads sum to 1.",
)
def softmax_over_heads(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(query, key, value, mask, is_causal, return_weights, softmax=lambda x: right.softmax(x, axis=-3))
