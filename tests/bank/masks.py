"""Answers to 06_masks."""

import numpy as np

from mha_lib.numpy import softmax
from mha_lib.questions.masks import _real_row, _shares


# ------------------------------------------------------------------------------------------------------------------- q2, right
def one_comparison(L, S=None, offset=0):
    S = L if S is None else S
    return np.arange(S) <= offset + np.arange(L)[:, None]


def by_loops(L, S=None, offset=0):
    if S is None:
        S = L
    mask = np.zeros((L, S), dtype=bool)
    for i in range(L):
        for j in range(S):
            mask[i, j] = j <= offset + i
    return mask


def by_tri(L, S=None, offset=0):
    return np.tri(L, S, offset, dtype=bool)


def by_triu(L, S=None, offset=0):
    return ~np.triu(np.ones((L, L if S is None else S), bool), offset + 1)


def by_slices(L, S=None, offset=0):
    mask = np.zeros((L, S if S is not None else L), bool)
    for i in range(L):
        mask[i, : max(0, offset + i + 1)] = True
    return mask


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def one_too_many(L, S=None, offset=0):
    S = L if S is None else S
    return np.arange(S) <= np.arange(L)[:, None] + offset + 1


def less_than(L, S=None, offset=0):
    S = L if S is None else S
    return np.arange(S) < np.arange(L)[:, None] + offset


def upper_triangle(L, S=None, offset=0):
    return np.triu(np.ones((L, S or L), dtype=bool), offset)


def true_is_hidden(L, S=None, offset=0):
    return np.triu(np.ones((L, S or L), dtype=bool), offset + 1)


def without_offset(L, S=None, offset=0):
    return np.tril(np.ones((L, S or L), dtype=bool))


def minus_offset(L, S=None, offset=0):
    S = L if S is None else S
    return np.arange(S) <= np.arange(L)[:, None] - offset


def aligned_at_the_end(L, S=None, offset=0):
    S = L if S is None else S
    return np.tri(L, S, S - L, dtype=bool)


def always_square(L, S=None, offset=0):
    return np.tril(np.ones((L, L), dtype=bool), offset)


def keys_first(L, S=None, offset=0):
    S = L if S is None else S
    return np.tri(S, L, offset, dtype=bool)


def ones_and_zeros(L, S=None, offset=0):
    return np.tri(L, S, offset)


def minus_infinities(L, S=None, offset=0):
    return np.where(np.tri(L, S, offset, dtype=bool), 0, -np.inf)


def needs_both(L, S=None, offset=0):
    return np.arange(S) <= offset + np.arange(L)[:, None]


def the_triangle_of_the_chapter(L, S=None, offset=0):
    return np.tri(3, dtype=bool)


# ------------------------------------------------------------------------------------------------------------------- q3, right
def as_in_the_chapter(lengths, S):
    return (np.arange(S) < lengths[:, None])[:, None, None, :]


def by_reshape(lengths, S):
    B = len(lengths)
    mask = np.zeros((B, S), bool)
    for b, n in enumerate(lengths):
        mask[b, :n] = True
    return mask.reshape(B, 1, 1, S)


def in_four_axes(lengths, S):
    return np.arange(S).reshape(1, 1, 1, S) < np.reshape(lengths, (-1, 1, 1, 1))


def by_a_list(lengths, S):
    return np.array([[[[True] * n + [False] * (S - n)]] for n in lengths])


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def marks_the_padding(lengths, S):
    return (np.arange(S) >= lengths[:, None])[:, None, None, :]


def up_to_the_length(lengths, S):
    return (np.arange(S) <= lengths[:, None])[:, None, None, :]


def before_the_last(lengths, S):
    return (np.arange(S) < lengths[:, None] - 1)[:, None, None, :]


def at_the_front(lengths, S):
    return (np.arange(S) >= S - lengths[:, None])[:, None, None, :]


def two_axes(lengths, S):
    return np.arange(S) < lengths[:, None]


def three_axes(lengths, S):
    return (np.arange(S) < lengths[:, None])[:, None, :]


def batch_as_queries(lengths, S):
    return (np.arange(S) < lengths[:, None])[None, None]


def as_integers(lengths, S):
    return as_in_the_chapter(lengths, S).astype(int)


def without_the_column(lengths, S):
    return (np.arange(S) < lengths)[:, None, None, :]


def clips_in_place(lengths, S):
    lengths -= 1
    return (np.arange(S) <= lengths[:, None])[:, None, None, :]


# ------------------------------------------------------------------------------------------------------------------- q4, right
def by_where(scores, mask, bias=None):
    if bias is not None:
        scores = scores + bias
    return softmax(np.where(mask, scores, -np.inf))


def on_a_copy(scores, mask, bias=None):
    s = scores.copy() if bias is None else scores + bias
    s[~np.broadcast_to(mask, s.shape)] = -np.inf
    return softmax(s)


def row_by_row(scores, mask, bias=None):
    scores = scores if bias is None else scores + np.broadcast_to(bias, scores.shape)
    mask = np.broadcast_to(mask, scores.shape)
    weights = np.zeros_like(scores)
    for place in np.ndindex(scores.shape[:-1]):
        allowed = mask[place]
        weights[place][allowed] = softmax(scores[place][allowed]) if allowed.any() else 0
    return weights


def with_exponentials(scores, mask, bias=None):
    s = scores if bias is None else scores + bias
    s = np.where(mask, s, -np.inf)
    top = np.max(s, axis=-1, keepdims=True)
    e = np.exp(s - np.where(np.isneginf(top), 0, top))
    total = e.sum(-1, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total != 0)


def bias_last(scores, mask, bias=None):
    """Adding a finite bias to -inf leaves -inf."""
    s = np.where(mask, scores, -np.inf)
    return softmax(s if bias is None else s + bias)


# ------------------------------------------------------------------------------------------------------------------- q4, wrong
def opposite(scores, mask, bias=None):
    if bias is not None:
        scores = scores + bias
    return softmax(np.where(mask, -np.inf, scores))


def afterwards(scores, mask, bias=None):
    return softmax(scores if bias is None else scores + bias) * mask


def adds_the_mask(scores, mask, bias=None):
    s = scores + mask
    return softmax(s if bias is None else s + bias)


def times_the_mask(scores, mask, bias=None):
    s = scores if bias is None else scores + bias
    return softmax(mask * s)


def minus_a_billion(scores, mask, bias=None):
    s = scores if bias is None else scores + bias
    return softmax(np.where(mask, s, -1e30))


def zeros_in_the_scores(scores, mask, bias=None):
    s = scores.copy() if bias is None else scores + bias
    s[~np.broadcast_to(mask, s.shape)] = 0
    return softmax(s)


def own_softmax(scores, mask, bias=None):
    s = np.where(mask, scores if bias is None else scores + bias, -np.inf)
    e = np.exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def no_mask(scores, mask, bias=None):
    return softmax(scores) if bias is None else softmax(scores + bias)


def over_queries(scores, mask, bias=None):
    return softmax(np.where(mask, scores if bias is None else scores + bias, -np.inf), axis=-2)


def repaired(scores, mask, bias=None):
    w = softmax(scores if bias is None else scores + bias) * mask
    return w / w.sum(axis=-1, keepdims=True)


def repaired_with_care(scores, mask, bias=None):
    w = softmax(scores if bias is None else scores + bias) * mask
    total = w.sum(axis=-1, keepdims=True)
    return w / np.where(total > 0, total, 1)


def adds_minus_infinity(scores, mask, bias=None):
    s = scores + np.where(mask, 0.0, -np.inf)
    return softmax(s if bias is None else s + bias)


def infinity_times_not(scores, mask, bias=None):
    s = scores - np.inf * ~mask
    return softmax(s if bias is None else s + bias)


def mask_of_sequence_0(scores, mask, bias=None):
    if scores.ndim > 2 and mask.ndim == scores.ndim:
        mask = mask[:1]
    return by_where(scores, mask, bias)


def skips_the_last_sequence(scores, mask, bias=None):
    mask = np.broadcast_to(mask, scores.shape).copy()
    if scores.ndim > 2:
        mask[-1] = True
    return by_where(scores, mask, bias)


def without_bias(scores, mask, bias=None):
    return softmax(np.where(mask, scores, -np.inf))


def bias_on_the_weights(scores, mask, bias=None):
    w = softmax(np.where(mask, scores, -np.inf))
    return w if bias is None else w + bias


def hides_every_nan(scores, mask, bias=None):
    return by_where(np.nan_to_num(scores), mask, bias)


def writes_minus_infinity(scores, mask, bias=None):
    if bias is not None:
        scores = scores + bias
    scores[~np.broadcast_to(mask, scores.shape)] = -np.inf
    return softmax(scores)


def mask_as_index(scores, mask, bias=None):
    s = scores.copy() if bias is None else scores + bias
    s[~mask] = -np.inf
    return softmax(s)


def wide(scores, mask, bias=None):
    return by_where(scores.astype(float), mask, bias)


def only_the_allowed(scores, mask, bias=None):
    return softmax(scores[np.broadcast_to(mask, scores.shape)])


# ------------------------------------------------------------------------------------------------------------------- q5
def _row(allowed, **kwargs):
    """The weights of "it" from the allowed scores alone."""
    weights = np.zeros(16)
    scores = np.log(_real_row(lambda scores, mask: softmax(scores), **kwargs))  # up to a constant
    weights[allowed] = np.exp(scores[allowed]) / np.exp(scores[allowed]).sum()
    return weights


_IT = 10  # the position of "it"


def ten_thousand(scores, mask, bias=None):
    return softmax(np.where(mask, scores if bias is None else scores + bias, -1e4))


def ten_thousand_and_zeros(scores, mask, bias=None):
    """The empty row is right, and a forbidden key takes the share of one whose score is lower still."""
    return np.where(mask, ten_thousand(scores, mask, bias), 0)


def exponentials_of_the_scores(scores, mask, bias=None):
    e = np.exp(np.where(mask, scores if bias is None else scores + bias, -np.inf))
    return np.divide(e, e.sum(-1, keepdims=True), out=np.zeros_like(e), where=e.sum(-1, keepdims=True) > 0)


RIGHT = {
    "q1": [[0.625, 0, 0.25, 0.125], [5 / 8, 0, 1 / 4, 1 / 8], _shares(5, 0, 2, 1)],
    "q2": [one_comparison, by_loops, by_tri, by_triu, by_slices],
    "q3": [as_in_the_chapter, by_reshape, in_four_axes, by_a_list],
    "q4": [by_where, on_a_copy, row_by_row, with_exponentials, bias_last],
    "q5": [_real_row(), _real_row().round(3).tolist(), _row(slice(_IT + 1))],
}

WRONG = {
    "q1": [
        ([0.417, 0, 0.167, 0.083], "mask_after_softmax", 0),
        ([0.556, 0.111, 0.222, 0.111], "mask_multiplied", 0),
        ([0.417, 0.167, 0.333, 0.083], "mask_ignored", 0),
        ([0.5, 0, 0.4, 0.1], "less_ignored", 0),
        ([5, 0, 2, 1], "not_divided", 0),
        ([0.833, 0, 0, 0.167], "third_blocked", 0),
        ([0.5, 0.2, 0.2, 0.1], "different", 0),
        ([0.625, 0.25, 0.125], "wrong_shape", 0),
    ],
    "q2": [
        (one_too_many, "causal_mask_sees_next", 0),
        (less_than, "causal_mask_hides_itself", 0),
        (upper_triangle, "causal_mask_transposed", 0),
        (true_is_hidden, "mask_inverted", 0),
        (without_offset, "offset_ignored", 2),
        (minus_offset, "offset_subtracted", 2),
        (aligned_at_the_end, "always_bottom_right", 1),
        (always_square, "keys_forgotten", 1),
        (keys_first, "rows_for_keys", 1),
        (ones_and_zeros, "wrong_dtype", 0),
        (minus_infinities, "wrong_dtype", 0),
        (needs_both, "raised", 2),
        (the_triangle_of_the_chapter, "hard_coded", 0),
    ],
    "q3": [
        (marks_the_padding, "padding_mask_inverted", 0),
        (up_to_the_length, "padding_mask_shifted", 0),
        (before_the_last, "last_token_hidden", 0),
        (at_the_front, "padding_in_front", 0),
        (two_axes, "axes_missing", 0),
        (three_axes, "wrong_shape", 0),
        (batch_as_queries, "axes_in_front", 0),
        (as_integers, "wrong_dtype", 0),
        (without_the_column, "raised", 0),
        (clips_in_place, "input_modified", 4),
    ],
    "q4": [
        (ten_thousand, "mask_too_weak", 7),
        (ten_thousand_and_zeros, "mask_too_weak_with_guard", 8),
        (exponentials_of_the_scores, "softmax_without_maximum", 6),
        (opposite, "mask_inverted", 0),
        (afterwards, "mask_after_softmax", 0),
        (adds_the_mask, "mask_added", 0),
        (times_the_mask, "mask_multiplied", 0),
        (minus_a_billion, "mask_with_finite_value", 9),
        (zeros_in_the_scores, "zeros_as_scores", 0),
        (own_softmax, "masked_row_is_nan", 9),
        (no_mask, "mask_ignored", 0),
        (over_queries, "softmax_over_queries", 0),
        (repaired, "divided_again", 7),
        (repaired_with_care, "divided_again_with_guard", 8),
        (adds_minus_infinity, "minus_infinity_added", 7),
        (infinity_times_not, "zero_times_infinity", 0),
        (mask_of_sequence_0, "first_mask_for_all", 7),
        (skips_the_last_sequence, "different", 5),
        (without_bias, "bias_ignored", 9),
        (bias_on_the_weights, "different", 9),
        (hides_every_nan, "different", 8),
        (writes_minus_infinity, "input_modified", 9),
        (mask_as_index, "raised", 5),
        (wide, "wrong_dtype", 9),
        (only_the_allowed, "wrong_shape", 0),
    ],
    "q5": [
        (_row(slice(None)), "mask_ignored", 0),
        (np.where(np.arange(16) <= _IT, _row(slice(None)), 0), "mask_after_softmax", 0),
        (_row(slice(_IT + 1, None)), "mask_inverted", 0),
        (_row(slice(_IT + 2)), "causal_mask_sees_next", 0),
        (_row(slice(_IT)), "causal_mask_hides_itself", 0),
        (_row(slice(_IT, None)), "causal_mask_transposed", 0),
        (_row(slice(_IT + 1), bias=False), "bias_forgotten", 0),
        (_row(slice(_IT + 1), head=0), "head_0", 0),
        (_row(slice(_IT + 1), turn=True), "query_and_key_swapped", 0),
        (0.7, "wrong_shape", 0),
    ],
}
