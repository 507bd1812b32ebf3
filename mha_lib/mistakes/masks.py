"""What goes wrong with masks (chapter 6)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import all_masks, attend, softmax_without_guard

mistake = of_chapter("06_masks")


@mistake(
    right.scaled_dot_product_attention,
    "The mask is inverted: here True means may attend, in nn.MultiheadAttention it means may not.",
)
def mask_inverted(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(query, key, value, ~all_masks(query, key, mask, is_causal), False, return_weights)


@mistake(
    right.scaled_dot_product_attention, "The mask is multiplied in after the softmax: the rows no longer sum to 1."
)
def mask_after_softmax(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    allowed = all_masks(query, key, mask, is_causal)
    return attend(query, key, value, None, False, return_weights, softmax=lambda x: right.softmax(x) * allowed)


@mistake(
    right.scaled_dot_product_attention,
    "The boolean mask is added to the scores as 0 and 1: it favours the allowed keys a little and blocks none.",
)
def mask_added(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = right.attention_scores(query, key) + all_masks(query, key, mask, is_causal)
    return attend(query, key, value, None, False, return_weights, scores=scores)


@mistake(
    right.scaled_dot_product_attention,
    "Masked scores are multiplied by 0, not set to -inf: a score of 0 still gets weight.",
)
def mask_multiplied(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = right.attention_scores(query, key) * all_masks(query, key, mask, is_causal)
    return attend(query, key, value, None, False, return_weights, scores=scores)


@mistake(
    right.scaled_dot_product_attention,
    "Masked scores are set to a large negative number: a query with nothing to attend to attends to all keys alike.",
)
def mask_with_finite_value(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = np.where(all_masks(query, key, mask, is_causal), right.attention_scores(query, key), -1e9)
    return attend(query, key, value, None, False, return_weights, scores=scores)


@mistake(
    right.scaled_dot_product_attention, "A query with nothing to attend to becomes NaN: its softmax divides 0 by 0."
)
def masked_row_is_nan(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(query, key, value, mask, is_causal, return_weights, softmax=softmax_without_guard)


@mistake(right.scaled_dot_product_attention, "The mask is ignored.")
def mask_ignored(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(query, key, value, None, False, return_weights)


@mistake(
    right.causal_mask, "The triangle is shifted by one: each query also sees the next token, which it should predict."
)
def causal_mask_sees_next(L, S=None, offset=0):
    return right.causal_mask(L, S, offset + 1)


@mistake(right.causal_mask, "The triangle is shifted by one: no query sees its own token, and the first sees nothing.")
def causal_mask_hides_itself(L, S=None, offset=0):
    return right.causal_mask(L, S, offset - 1)


@mistake(right.causal_mask, "The triangle is transposed: each query sees the future and not the past.")
def causal_mask_transposed(L, S=None, offset=0):
    return np.arange(L if S is None else S) >= offset + np.arange(L)[:, None]


@mistake(right.padding_mask, "The mask hides the tokens and shows the padding: here True means may attend.")
def padding_mask_inverted(lengths, S):
    return ~right.padding_mask(lengths, S)


@mistake(
    right.padding_mask, "One padding token too many is visible: the positions of a sequence of length n are 0 .. n - 1."
)
def padding_mask_shifted(lengths, S):
    return right.padding_mask(np.minimum(np.asarray(lengths) + 1, S), S)
