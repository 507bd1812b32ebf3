"""Answers to 17_flash."""

import numpy as np

from mha_lib.numpy import flash_attention, scaled_dot_product_attention

inf = np.inf


def finite(x):
    return np.where(x == -inf, 0, x)


# ------------------------------------------------------------------------------------------------------------------- q2, right
def with_a_guard(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    base = np.where(new == -inf, 0, new)
    return new, d * np.exp(m - base) + np.exp(scores - base[..., None]).sum(-1)


def by_logarithms(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    with np.errstate(divide="ignore"):
        terms = np.concatenate([(m + np.log(d))[..., None], scores], -1)
    return new, np.exp(terms - finite(new)[..., None]).sum(-1)


def score_by_score(m, d, scores):
    m, d = m.copy(), d.copy()
    for place in np.ndindex(m.shape):
        for s in scores[place]:
            if s > m[place]:
                d[place] = d[place] * np.exp(m[place] - s) + 1
                m[place] = s
            elif s > -inf:
                d[place] += np.exp(s - m[place])
    return m, d


def one_row_more(m, d, scores):
    joined = np.concatenate([m[..., None], scores], -1)
    new = joined.max(-1)
    e = np.exp(joined - finite(new)[..., None])
    return new, d * e[..., 0] + e[..., 1:].sum(-1)


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def adds_up(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    return new, d + np.exp(scores - finite(new)[..., None]).sum(-1)


def grows(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    base = finite(new)
    return new, d * np.exp(base - m) + np.exp(scores - base[..., None]).sum(-1)


def chunk_maximum(m, d, scores):
    top = scores.max(-1)
    new = np.maximum(m, top)
    return new, d * np.exp(m - finite(new)) + np.exp(scores - top[..., None]).sum(-1)


def starts_again(m, d, scores):
    new = scores.max(-1)
    return new, np.exp(scores - finite(new)[..., None]).sum(-1)


def newest_maximum(m, d, scores):
    new = scores.max(-1)
    return new, d * np.exp(m - new) + np.exp(scores - new[..., None]).sum(-1)


def without_guard(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    return new, d * np.exp(m - new) + np.exp(scores - new[..., None]).sum(-1)


def subtracts_along_the_keys(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    return new, d * np.exp(m - finite(new)) + np.exp(scores - finite(new)).sum(-1)


def one_for_all(m, d, scores):
    new = max(m.max(), scores.max())
    base = 0 if new == -inf else new
    return np.full_like(m, new), d * np.exp(m - base) + np.exp(scores - base).sum(-1)


def overflows(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    return new, (d * np.exp(m) + np.exp(scores).sum(-1)) / np.exp(finite(new))


def sum_only(m, d, scores):
    return with_a_guard(m, d, scores)[1]


def in_place(m, d, scores):
    new, total = with_a_guard(m, d, scores)
    m[...] = new
    return m, total


# ------------------------------------------------------------------------------------------------------------------- q3, right
def two_factors(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    base = finite(m)
    a, b = np.exp(m1 - base), np.exp(m2 - base)
    return m, a * d1 + b * d2, a[:, None] * o1 + b[:, None] * o2


def row_by_row(m1, d1, o1, m2, d2, o2):
    m, d, o = m1.copy(), d1.copy(), o1.copy()
    for i in range(len(m)):
        if m2[i] > m1[i]:
            factor = np.exp(m1[i] - m2[i])
            m[i], d[i], o[i] = m2[i], d1[i] * factor + d2[i], o1[i] * factor + o2[i]
        elif m2[i] > -inf:
            factor = np.exp(m2[i] - m1[i])
            d[i], o[i] = d1[i] + d2[i] * factor, o1[i] + o2[i] * factor
    return m, d, o


def stacked(m1, d1, o1, m2, d2, o2):
    ms, ds, os = np.stack([m1, m2]), np.stack([d1, d2]), np.stack([o1, o2])
    m = ms.max(0)
    w = np.exp(ms - finite(m))
    return m, (w * ds).sum(0), np.einsum("bl,bld->ld", w, os)


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def output_as_it_is(m1, d1, o1, m2, d2, o2):
    m, d, _ = two_factors(m1, d1, o1, m2, d2, o2)
    return m, d, o1 + o2


def sum_as_it_is(m1, d1, o1, m2, d2, o2):
    m, _, o = two_factors(m1, d1, o1, m2, d2, o2)
    return m, d1 + d2, o


def all_as_it_is(m1, d1, o1, m2, d2, o2):
    return np.maximum(m1, m2), d1 + d2, o1 + o2


def swapped_sign(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    a, b = np.exp(finite(m) - m1), np.exp(finite(m) - m2)
    return m, a * d1 + b * d2, a[:, None] * o1 + b[:, None] * o2


def normalised(m1, d1, o1, m2, d2, o2):
    m, d, o = two_factors(m1, d1, o1, m2, d2, o2)
    return m, d, o / np.where(d == 0, 1, d)[:, None]


def averaged(m1, d1, o1, m2, d2, o2):
    return *two_factors(m1, d1, o1, m2, d2, o2)[:2], (o1 + o2) / 2


def nan_if_both_are_empty(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return m, a * d1 + b * d2, a[:, None] * o1 + b[:, None] * o2


def exchanges_the_factors(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    a, b = np.exp(m2 - finite(m)), np.exp(m1 - finite(m))
    return m, a * d1 + b * d2, a[:, None] * o1 + b[:, None] * o2


def shrinks_the_old_block_only(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    a = np.exp(m1 - finite(m))
    return m, a * d1 + d2, a[:, None] * o1 + o2


def weighs_by_the_sums(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    a, b = d1 * np.exp(m1 - finite(m)), d2 * np.exp(m2 - finite(m))
    return m, a + b, a[:, None] * o1 + b[:, None] * o2


def takes_the_weighted_mean(m1, d1, o1, m2, d2, o2):
    m, d, o = weighs_by_the_sums(m1, d1, o1, m2, d2, o2)
    with np.errstate(invalid="ignore"):
        return m, d, np.nan_to_num(o / d[:, None])


def one_maximum_for_all_queries(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2).max()
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return np.full_like(m1, m), a * d1 + b * d2, a[:, None] * o1 + b[:, None] * o2


def by_plain_exponentials(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    a, b, c = np.exp(m1), np.exp(m2), np.exp(finite(m))
    return m, (a * d1 + b * d2) / c, (a[:, None] * o1 + b[:, None] * o2) / c[:, None]


def factors_along_the_wrong_axis(m1, d1, o1, m2, d2, o2):
    m = np.maximum(m1, m2)
    base = finite(m)
    a, b = np.exp(m1 - base), np.exp(m2 - base)
    return m, a * d1 + b * d2, a * o1 + b * o2


def output_only(m1, d1, o1, m2, d2, o2):
    return two_factors(m1, d1, o1, m2, d2, o2)[2]


# ------------------------------------------------------------------------------------------------------------------- q4, right
def tile_by_tile(query, key, value, start, size, pad=0):
    query = query / np.sqrt(query.shape[1])
    m, d = np.full(len(query), -inf), np.zeros(len(query))
    o = np.zeros((len(query), value.shape[1]))
    for j in range(0, min(len(key), start + len(query)), size):
        s = query @ key[j : j + size].T
        places = np.arange(j, j + s.shape[1])
        s[(np.arange(start, start + len(query))[:, None] < places) | (places < pad)] = -inf
        new = np.maximum(m, s.max(1))
        p, shrink = np.exp(s - finite(new)[:, None]), np.exp(m - finite(new))
        d, o, m = d * shrink + p.sum(1), o * shrink[:, None] + p @ value[j : j + size], new
    return o / d[:, None]


def all_at_once(query, key, value, start, size, pad=0):
    s = query @ key.T / np.sqrt(query.shape[1])
    s[start + np.arange(len(query))[:, None] < np.arange(len(key))] = -inf
    s[:, :pad] = -inf
    e = np.exp(s - s.max(1, keepdims=True))
    return e @ value / e.sum(1, keepdims=True)


def query_by_query(query, key, value, start, size, pad=0):
    rows = []
    for i, q in enumerate(query):
        m, d, o = -inf, 0.0, 0.0
        for j in range(pad, start + i + 1):
            s = q @ key[j] / len(q) ** 0.5
            new = max(m, s)
            d, o, m = d * np.exp(m - new) + np.exp(s - new), o * np.exp(m - new) + np.exp(s - new) * value[j], new
        rows.append(o / d)
    return np.array(rows)


def by_the_library(query, key, value, start, size, pad=0):
    mask = np.ones((1, len(key)), bool)
    mask[:, :pad] = False
    return flash_attention(query, key, value, mask=mask, is_causal=True, query_offset=start)


# ------------------------------------------------------------------------------------------------------------------- q4, wrong
def loop(query, key, value, start, size, pad, step, mask=None, scale=None, stop=None):
    """tile_by_tile with `step(m, d, o, s, values)` in place of its inner lines."""
    scale = query.shape[1] ** -0.5 if scale is None else scale
    m, d = np.full(len(query), -inf), np.zeros(len(query))
    o = np.zeros((len(query), value.shape[1]))
    for j in range(0, min(len(key), stop if stop else start + len(query)), size):
        s = query @ key[j : j + size].T * scale
        places = np.arange(len(query))[:, None] + (start if mask is None else mask), np.arange(j, j + s.shape[1])
        s[(places[0] < places[1]) | (places[1] < pad)] = -inf
        m, d, o = step(m, d, o, s, value[j : j + size])
    return o / np.where(d == 0, 1, d)[:, None]


def padded(query, key, value, start, size, pad=0):
    return query, key, value, start, size, pad


def right_step(m, d, o, s, values):
    new = np.maximum(m, s.max(1))
    p, shrink = np.exp(s - finite(new)[:, None]), np.exp(m - finite(new))
    return new, d * shrink + p.sum(1), o * shrink[:, None] + p @ values


def forgets_the_output(*given):
    def step(m, d, o, s, values):
        new, total, _ = right_step(m, d, o, s, values)
        return new, total, o + np.exp(s - finite(new)[:, None]) @ values

    return loop(*padded(*given), step)


def forgets_the_sum(*given):
    def step(m, d, o, s, values):
        new, _, output = right_step(m, d, o, s, values)
        return new, d + np.exp(s - finite(new)[:, None]).sum(1), output

    return loop(*padded(*given), step)


def forgets_both(*given):
    def step(m, d, o, s, values):
        new = np.maximum(m, s.max(1))
        p = np.exp(s - finite(new)[:, None])
        return new, d + p.sum(1), o + p @ values

    return loop(*padded(*given), step)


def maximum_of_each_tile(*given):
    def step(m, d, o, s, values):
        new = np.maximum(m, s.max(1))
        p, shrink = np.exp(s - finite(s.max(1))[:, None]), np.exp(m - finite(new))
        return new, d * shrink + p.sum(1), o * shrink[:, None] + p @ values

    return loop(*padded(*given), step)


def mean_of_tiles(*given):
    def step(m, d, o, s, values):
        p = np.exp(s - finite(s.max(1))[:, None])
        total = p.sum(1)
        return m, d + 1, o + p @ values / np.where(total == 0, 1, total)[:, None]

    return loop(*padded(*given), step)


def nan_in_a_future_tile(query, key, value, start, size, pad=0):
    def step(m, d, o, s, values):
        new = s.max(1) if (m == -inf).all() else np.maximum(m, s.max(1))
        p, shrink = np.exp(s - s.max(1)[:, None]), np.exp(m - new)
        factor = np.exp(s.max(1) - new)
        return new, d * shrink + p.sum(1) * factor, o * shrink[:, None] + p @ values * factor[:, None]

    return loop(query, key, value, start, size, pad, step)


def without_a_guard(*given):
    def step(m, d, o, s, values):
        new = np.maximum(m, s.max(1))
        p, shrink = np.exp(s - new[:, None]), np.exp(m - new)
        return new, d * shrink + p.sum(1), o * shrink[:, None] + p @ values

    return loop(*padded(*given), step)


def sees_the_padding(query, key, value, start, size, pad=0):
    return loop(query, key, value, start, size, 0, right_step)


def unscaled(*given):
    return loop(*padded(*given), right_step, scale=1.0)


def from_key_0(*given):
    return loop(*padded(*given), right_step, mask=0)


def not_itself(query, key, value, start, size, pad=0):
    return loop(query, key, value, start, size, pad, right_step, mask=start - 1)


def sees_the_future(query, key, value, start, size, pad=0):
    return scaled_dot_product_attention(query, key, value)


def stops_at_the_first_query(query, key, value, start, size, pad=0):
    return loop(query, key, value, start, size, pad, right_step, stop=start + 1)


def full_tiles_only(query, key, value, start, size, pad=0):
    whole = len(key) // size * size
    return loop(query, key[:whole], value[:whole], start, size, pad, right_step)


def divides_by_the_width(query, key, value, start, size, pad=0):
    return loop(query, key, value, start, size, pad, right_step, scale=1 / query.shape[1])


def divides_inside_the_loop(*given):
    def step(m, d, o, s, values):
        new, total, output = right_step(m, d, o, s, values)
        return new, total, output / np.where(total == 0, 1, total)[:, None]

    totals = []

    def kept(m, d, o, s, values):
        totals.append(step(m, d, o, s, values))
        return totals[-1]

    loop(*padded(*given), kept)
    return totals[-1][2]


def forgets_to_divide(*given):
    last = []

    def step(m, d, o, s, values):
        last[:] = right_step(m, d, o, s, values)
        return last

    loop(*padded(*given), step)
    return last[2]


def counts_places_in_the_tile(query, key, value, start, size, pad=0):
    m, d, o = np.full(len(query), -inf), np.zeros(len(query)), np.zeros((len(query), value.shape[1]))
    for j in range(0, min(len(key), start + len(query)), size):
        s = query @ key[j : j + size].T / np.sqrt(query.shape[1])
        at = np.arange(s.shape[1])
        seen = (at <= start + np.arange(len(query))[:, None]) & (at >= pad)
        m, d, o = right_step(m, d, o, np.where(seen, s, -inf), value[j : j + size])
    return o / np.where(d == 0, 1, d)[:, None]


def hides_the_padding_only(query, key, value, start, size, pad=0):
    return scaled_dot_product_attention(query, key, value, mask=np.arange(len(key))[None] >= pad)


def looks_one_ahead(query, key, value, start, size, pad=0):
    places = np.arange(len(key))
    mask = (places <= start + 1 + np.arange(len(query))[:, None]) & (places >= pad)
    return scaled_dot_product_attention(query, key, value, mask=mask)


def hides_one_more(query, key, value, start, size, pad=0):
    return loop(query, key, value, start, size, pad + 1, right_step)


def weights_too(query, key, value, start, size, pad=0):
    return by_the_library(query, key, value, start, size, pad), np.zeros((len(query), len(key)))


def scales_in_place(query, key, value, start, size, pad=0):
    query /= np.sqrt(query.shape[1])
    return loop(query, key, value, start, size, pad, right_step, scale=1.0)


RIGHT = {
    "q1": [2.75, 11 / 4, np.float64(3 * 0.25 + 2)],
    "q2": [with_a_guard, by_logarithms, score_by_score, one_row_more],
    "q3": [two_factors, row_by_row, stacked],
    "q4": [tile_by_tile, all_at_once, query_by_query, by_the_library],
}

WRONG = {
    "q1": [
        (5, "added", 0),
        (14, "turned_around", 0),
        (1.25, "both_shrunk", 0),
        (3.5, "other_block_shrunk", 0),
        (11, "smaller_maximum", 0),
        (-2.16, "difference_as_factor", 0),
        (3, "different", 0),
    ],
    "q2": [
        (adds_up, "rescaled_nowhere", 2),
        (grows, "wrong_sign", 0),
        (chunk_maximum, "own_maximum", 2),
        (starts_again, "chunk_forgets", 2),
        (newest_maximum, "last_maximum", 2),
        (without_guard, "empty_is_nan", 7),
        (subtracts_along_the_keys, "axis_forgotten", 0),
        (one_for_all, "one_maximum", 0),
        (overflows, "no_maximum", 7),
        (sum_only, "wrong_type", 0),
        (in_place, "input_modified", 8),
    ],
    "q3": [
        (output_as_it_is, "accumulator_not_rescaled", 0),
        (sum_as_it_is, "sum_not_rescaled", 0),
        (all_as_it_is, "rescaled_nowhere", 0),
        (swapped_sign, "wrong_sign", 0),
        (normalised, "divided", 0),
        (averaged, "mean_of_outputs", 0),
        (nan_if_both_are_empty, "empty_is_nan", 6),
        (by_plain_exponentials, "no_maximum", 6),
        (exchanges_the_factors, "factors_exchanged", 0),
        (shrinks_the_old_block_only, "only_the_first", 0),
        (weighs_by_the_sums, "times_the_sums", 0),
        (takes_the_weighted_mean, "mean_by_the_sums", 0),
        (one_maximum_for_all_queries, "one_maximum", 0),
        (factors_along_the_wrong_axis, "raised", 0),
        (output_only, "wrong_type", 0),
    ],
    "q4": [
        (forgets_the_output, "accumulator_not_rescaled", 2),
        (forgets_the_sum, "sum_not_rescaled", 2),
        (forgets_both, "rescaled_nowhere", 2),
        (maximum_of_each_tile, "maximum_of_the_tile", 2),
        (mean_of_tiles, "divided_in_every_tile", 2),
        (nan_in_a_future_tile, "different", 2),
        (without_a_guard, "masked_tile_is_nan", 9),
        (sees_the_padding, "padding_ignored", 9),
        (unscaled, "no_scale", 0),
        (from_key_0, "start_ignored", 0),
        (not_itself, "diagonal_forbidden", 0),
        (sees_the_future, "mask_ignored", 0),
        (stops_at_the_first_query, "skipped_too_early", 2),
        (full_tiles_only, "keys_cut_short", 9),
        (divides_by_the_width, "divided_by_d_k", 0),
        (divides_inside_the_loop, "divided_by_the_running_sum", 2),
        (forgets_to_divide, "never_divided", 0),
        (counts_places_in_the_tile, "places_in_the_tile", 2),
        (hides_the_padding_only, "future_seen", 0),
        (looks_one_ahead, "next_key_seen", 0),
        (hides_one_more, "one_key_hidden", 0),
        (weights_too, "wrong_type", 0),
        (scales_in_place, "input_modified", 10),
    ],
}
