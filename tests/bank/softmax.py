"""Answers to 05_softmax."""

import numpy as np

from mha_lib.questions.softmax import _real_row, _temperature


# ------------------------------------------------------------------------------------------------------------------- q2, right
def by_maximum(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def by_logsumexp(x):
    top = np.max(x, -1, keepdims=True)
    return np.exp(x - top - np.log(np.sum(np.exp(x - top), -1, keepdims=True)))


def row_by_row(x):
    result = np.zeros_like(x)
    for place in np.ndindex(x.shape[:-1]):
        e = np.exp(x[place] - max(x[place]))
        result[place] = e / sum(e)
    return result


def by_einsum(x):
    e = np.exp(np.subtract(x, np.expand_dims(np.amax(x, -1), -1)))
    return np.einsum("...s,...->...s", e, 1 / np.einsum("...s->...", e))


def by_differences(x):
    return 1 / np.exp(np.minimum(x[..., None, :] - x[..., :, None], 700)).sum(-1)


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def without_maximum(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def over_the_queries(x):
    e = np.exp(x - x.max(axis=-2, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True)


def over_axis_0(x):
    e = np.exp(x - x.max(axis=0))
    return e / e.sum(axis=0)


def over_axis_1(x):
    e = np.exp(x - x.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def over_all(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def one_maximum_for_all(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e, axis=-1, keepdims=True)


def from_the_minimum(x):
    e = np.exp(x - x.min(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def from_the_mean(x):
    e = np.exp(x - x.mean(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def without_exp(x):
    return x / x.sum(axis=-1, keepdims=True)


def without_sum(x):
    return np.exp(x - x.max(axis=-1, keepdims=True))


def without_keepdims(x):
    e = np.exp(x - x.max(axis=-1))
    return e / e.sum(axis=-1)


def one_keepdims_only(x):
    e = np.exp(x - np.amax(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1)


def maximum_in_place(x):
    x -= x.max(axis=-1, keepdims=True)
    e = np.exp(x)
    return e / e.sum(axis=-1, keepdims=True)


def clips(x):
    e = np.exp(np.clip(x, -700, 700))
    return e / e.sum(axis=-1, keepdims=True)


def in_float64(x):
    e = np.exp(x.astype(np.float64) - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def the_row_by_heart(x):
    return np.array([0.2, 0.05, 0.5, 0.25])


def as_lists(x):
    return by_maximum(x).tolist()


def of_absolute_values(x):
    return by_maximum(np.abs(x))


# ------------------------------------------------------------------------------------------------------------------- q3, right
def two_wheres(x, axis=-1):
    largest = x.max(axis=axis, keepdims=True)
    e = np.exp(x - np.where(largest == -np.inf, 0, largest))
    total = e.sum(axis=axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def zeros_afterwards(x, axis=-1):
    empty = np.isneginf(x).all(axis=axis, keepdims=True)
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return np.where(empty, 0, e / e.sum(axis=axis, keepdims=True))


def slice_by_slice(x, axis=-1):
    def one(row):
        if (row == -np.inf).all():
            return np.zeros(len(row))
        e = np.exp(row - row.max())
        return e / e.sum()

    return np.apply_along_axis(one, axis, x)


def moved_and_moved_back(x, axis=-1):
    last = np.moveaxis(x, axis, -1)
    top = last.max(-1)
    e = np.exp(last - np.where(top == -np.inf, 0, top)[..., None])
    result = np.divide(e, e.sum(-1)[..., None], out=np.zeros(e.shape), where=(e.sum(-1) != 0)[..., None])
    return np.moveaxis(result, -1, axis)


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def ignores_the_axis(x, axis=-1):
    return two_wheres(x, -1)


def forgets_the_way_back(x, axis=-1):
    return two_wheres(np.moveaxis(x, axis, -1))


def empty_is_nan(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def large_and_finite(x, axis=-1):
    return empty_is_nan(np.where(np.isinf(x), -1e30, x), axis)


def any_is_all(x, axis=-1):
    return np.where(np.isneginf(x).any(axis=axis, keepdims=True), 0, empty_is_nan(x, axis))


def nan_to_zero(x, axis=-1):
    return np.nan_to_num(empty_is_nan(x, axis))


def plain_formula(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis, keepdims=True)


def plain_with_guard(x, axis=-1):
    e = np.exp(x)
    total = e.sum(axis, keepdims=True)
    return np.divide(e, total, out=np.zeros_like(e), where=total != 0)


def with_epsilon(x, axis=-1):
    top = x.max(axis, keepdims=True)
    e = np.exp(x - np.where(top == -np.inf, 0, top))
    return e / (e.sum(axis, keepdims=True) + 1e-3)


def only_positive_axes(x, axis=-1):
    if axis < -1:
        raise ValueError("no such axis")
    return two_wheres(x, axis)


def writes_into_x(x, axis=-1):
    x[np.broadcast_to((x == -np.inf).all(axis, keepdims=True), x.shape)] = 0
    return two_wheres(x, axis)


def zero_in_place_then_right(x, axis=-1):
    result = two_wheres(x, axis)
    x[x == -np.inf] = 0
    return result


# ------------------------------------------------------------------------------------------------------------------- q4
def with_a_small_number(scores, T=1.0):
    a = by_maximum(scores / T)
    return np.exp(-(a * np.log(a + 1e-300)).sum(-1))


def with_where(scores, T=1.0):
    a = by_maximum(scores / T)
    return np.exp(-np.sum(a * np.log(a, out=np.zeros_like(a), where=a > 0), axis=-1))


def as_a_product(scores, T=1.0):
    a = by_maximum(scores / T)
    return 1 / np.prod(a**a, axis=-1)


def in_bits(scores, T=1.0):
    a = by_maximum(scores / T)
    return 2 ** -np.where(a == 0, 0, a * np.log2(np.where(a == 0, 1, a))).sum(-1)


def hot_is_cold(scores, T=1.0):
    return as_a_product(scores * T)


def at_one(scores, T=1.0):
    return as_a_product(scores)


def cools_the_weights(scores, T=1.0):
    a = by_maximum(scores) / T
    return np.exp(-np.where(a > 0, a * np.log(np.where(a > 0, a, 1)), 0).sum(-1))


def entropy(scores, T=1.0):
    return np.log(as_a_product(scores, T))


def no_minus(scores, T=1.0):
    a = by_maximum(scores / T)
    return np.exp((a * np.log(a + 1e-300)).sum(-1))


def two_bases(scores, T=1.0):
    return np.exp(np.log2(as_a_product(scores, T)))


def as_in_the_chapter(scores, T=1.0):
    a = by_maximum(scores / T)
    return np.exp(-(a * np.log(a)).sum(-1))


def how_many_above_zero(scores, T=1.0):
    return np.count_nonzero(by_maximum(scores / T), axis=-1)


def one_for_all_rows(scores, T=1.0):
    a = by_maximum(scores / T)
    return np.exp(-(a * np.log(a + 1e-300)).sum())


def by_squares(scores, T=1.0):
    return 1 / (by_maximum(scores / T) ** 2).sum(-1)


def scales_in_place(scores, T=1.0):
    scores /= T
    return as_a_product(scores)


RIGHT = {
    "q1": [[0.2, 0.05, 0.5, 0.25], np.array([2, 0.5, 5, 2.5]) / 10, (1 / 5, 1 / 20, 1 / 2, 1 / 4)],
    "q2": [by_maximum, by_logsumexp, row_by_row, by_einsum, by_differences],
    "q3": [two_wheres, zeros_afterwards, slice_by_slice, moved_and_moved_back],
    "q4": [with_a_small_number, with_where, as_a_product, in_bits],
    "q5": [1.64, 1.639, _temperature(_real_row())],
}

WRONG = {
    "q1": [
        ([0.274, -0.274, 0.637, 0.363], "normalised_without_exp", 0),
        ([2, 0.5, 5, 2.5], "not_divided", 0),
        ([0.4, 0.1, 1, 0.5], "divided_by_the_largest", 0),
        ([0.267, -0.267, 0.667, 0.333], "negative_exponential", 0),
        ([0.174, 0.174, 0.435, 0.217], "sign_lost", 0),
        ([0.2, 0.05, 0.5], "wrong_shape", 0),
        ([0.25, 0.05, 0.5, 0.2], "different", 0),
    ],
    "q2": [
        (without_maximum, "softmax_without_maximum", 5),
        (over_the_queries, "softmax_over_queries", 0),
        (over_axis_0, "first_axis", 0),
        (over_axis_1, "second_axis", 3),
        (over_all, "softmax_over_everything", 0),
        (one_maximum_for_all, "one_maximum", 5),
        (from_the_minimum, "minimum_subtracted", 5),
        (from_the_mean, "mean_subtracted", 5),
        (without_exp, "normalised_without_exp", 0),
        (without_sum, "not_divided", 0),
        (without_keepdims, "keepdims_missing", 0),
        (one_keepdims_only, "sum_without_keepdims", 0),
        (maximum_in_place, "input_modified", 6),
        (clips, "different", 5),
        (in_float64, "wrong_dtype", 6),
        (the_row_by_heart, "hard_coded", 0),
        (as_lists, "wrong_type", 0),
        (of_absolute_values, "different", 0),
    ],
    "q3": [
        (ignores_the_axis, "always_the_last_axis", 0),
        (forgets_the_way_back, "axis_not_moved_back", 0),
        (empty_is_nan, "empty_row_is_nan", 6),
        (large_and_finite, "empty_row_is_even", 6),
        (any_is_all, "zeros_if_any", 8),
        (nan_to_zero, "nan_hidden", 8),
        (plain_formula, "softmax_without_maximum", 5),
        (plain_with_guard, "overflow_behind_the_guard", 8),
        (with_epsilon, "different", 0),
        (only_positive_axes, "raised", 7),
        (writes_into_x, "empty_row_is_even", 5),
        (zero_in_place_then_right, "input_modified", 8),
    ],
    "q4": [
        (hot_is_cold, "times_T", 2),
        (at_one, "temperature_ignored", 2),
        (cools_the_weights, "temperature_after_softmax", 2),
        (entropy, "entropy_itself", 0),
        (no_minus, "sign_of_the_entropy", 0),
        (two_bases, "wrong_base", 0),
        (as_in_the_chapter, "zero_times_infinity", 3),
        (how_many_above_zero, "keys_counted", 0),
        (one_for_all_rows, "wrong_shape", 0),
        (by_squares, "different", 0),
        (scales_in_place, "input_modified", 4),
    ],
    "q5": [
        (9.27, "no_scale", 0),
        (1.53, "bias_forgotten", 0),
        (0.82, "query_and_key_swapped", 0),
        (0.61, "factor", 0),
        (1.11, "head_0", 0),
        (0.768, "head_2", 0),
        (2, "different", 0),
    ],
}
