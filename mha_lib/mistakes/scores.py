"""What goes wrong with the scores (chapter 4)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import attend

mistake = of_chapter("04_scores")


@mistake(
    right.scaled_dot_product_attention,
    "The scores are not divided by sqrt(d_k): the wider the head, the more weight falls on one key.",
)
def no_scale(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(query, key, value, mask, is_causal, return_weights, scale=1.0)


@mistake(
    right.scaled_dot_product_attention,
    "The scores are divided by d_k, not by its square root: the weights are too even.",
)
def divided_by_d_k(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(query, key, value, mask, is_causal, return_weights, scale=1 / np.shape(query)[-1])


@mistake(
    right.scaled_dot_product_attention,
    "The scores are divided by sqrt(d_model), not by the root of the width of one head: the weights are too even.",
)
def divided_by_sqrt_d_model(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    d_model = np.shape(query)[-1] * (np.shape(query)[-3] if np.ndim(query) > 2 else 1)
    return attend(query, key, value, mask, is_causal, return_weights, scale=1 / np.sqrt(d_model))


@mistake(right.scaled_dot_product_attention, "The scores are K Q^T: queries and keys have changed places.")
def query_and_key_swapped(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(key, query, value, mask, is_causal, return_weights)
