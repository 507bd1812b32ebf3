"""Answers to 12_positions."""

import math

import numpy as np


# ------------------------------------------------------------------------------------------------------------------- q2, right
def by_angles(L, E, offset=0):
    angles = (offset + np.arange(L))[:, None] * 10000.0 ** (-np.arange(0, E, 2) / E)
    table = np.zeros((L, E))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def by_loops(L, E, offset=0):
    return np.array([[(math.cos if j % 2 else math.sin)((offset + i) / 10000 ** ((j - j % 2) / E)) for j in range(E)]
                     for i in range(L)])  # fmt: skip


def by_exp_of_log(L, E, offset=0):
    speeds = np.exp(-np.log(10000.0) * np.arange(0, E, 2) / E)
    angles = np.outer(np.arange(offset, offset + L), speeds)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, E)


def by_complex_numbers(L, E, offset=0):
    hands = np.exp(1j * np.outer(offset + np.arange(L), 10000.0 ** (-np.arange(E // 2) / (E / 2))))
    return np.stack([hands.imag, hands.real], -1).reshape(L, E)


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def all_sines_first(L, E, offset=0):
    angles = (offset + np.arange(L))[:, None] * 10000.0 ** (-np.arange(0, E, 2) / E)
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def own_frequency(L, E, offset=0):
    return np.array(
        [[(np.cos if j % 2 else np.sin)((offset + i) / 10000 ** (j / E)) for j in range(E)] for i in range(L)]
    )


def no_offset(L, E, offset=0):
    return by_angles(L, E)


def in_degrees(L, E, offset=0):
    angles = np.outer(offset + np.arange(L), 10000.0 ** (-np.arange(0, E, 2) / E)) * np.pi / 180
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, E)


def from_one(L, E, offset=0):
    return by_angles(L, E, offset + 1)


def cosines_at_even(L, E, offset=0):
    table = by_angles(L, E, offset)
    return np.stack([table[:, 1::2], table[:, 0::2]], axis=-1).reshape(L, E)


def pairs_over_E(L, E, offset=0):
    angles = np.outer(offset + np.arange(L), 10000.0 ** (-np.arange(E // 2) / E))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, E)


def faster_and_faster(L, E, offset=0):
    angles = np.outer(offset + np.arange(L), 10000.0 ** (np.arange(0, E, 2) / E))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, E)


def transposed(L, E, offset=0):
    return by_angles(L, E, offset).T


def in_pairs(L, E, offset=0):
    return by_angles(L, E, offset).reshape(L, -1, 2)


def squared_speeds(L, E, offset=0):
    c = 2 * np.arange(0, E, 2)
    angles = np.outer(offset + np.arange(L), 10000.0 ** (-c / E))
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(L, E)


# ------------------------------------------------------------------------------------------------------------------- q3, right
def by_halves(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = positions[:, None] * base ** (-np.arange(half) / half)
    cos, sin = np.cos(angles), np.sin(angles)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


def rotate_half(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = np.tile(np.outer(positions, base ** (-np.arange(0, D, 2) / D)), 2)
    turned = np.concatenate([-x[..., D // 2 :], x[..., : D // 2]], axis=-1)
    return x * np.cos(angles) + turned * np.sin(angles)


def as_complex(x, positions, base=10000.0):
    a, b = np.split(x, 2, axis=-1)
    z = (a + 1j * b) * np.exp(1j * np.outer(positions, base ** (-np.arange(a.shape[-1]) / a.shape[-1])))
    return np.concatenate([z.real, z.imag], axis=-1)


def pair_by_pair(x, positions, base=10000.0):
    result, half = np.zeros(x.shape), x.shape[-1] // 2
    for i, p in enumerate(positions):
        for c in range(half):
            angle = p / base ** (c / half)
            a, b = x[..., i, c], x[..., i, c + half]
            result[..., i, c] = a * math.cos(angle) - b * math.sin(angle)
            result[..., i, c + half] = a * math.sin(angle) + b * math.cos(angle)
    return result


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def neighbours(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = np.outer(positions, base ** (-np.arange(0, D, 2) / D))
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = [a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)]
    return np.stack(pairs, axis=-1).reshape(x.shape)


def exponent_over_D(x, positions, base=10000.0):
    return by_halves(x, positions, base**0.5)


def other_way(x, positions, base=10000.0):
    return by_halves(x, -positions, base)


def both_plus(x, positions, base=10000.0):
    D = x.shape[-1]
    angles = np.tile(np.outer(positions, base ** (-np.arange(0, D, 2) / D)), 2)
    turned = np.concatenate([x[..., D // 2 :], x[..., : D // 2]], axis=-1)
    return x * np.cos(angles) + turned * np.sin(angles)


def by_row_number(x, positions, base=10000.0):
    return by_halves(x, np.arange(x.shape[-2]), base)


def one_further(x, positions, base=10000.0):
    return by_halves(x, positions + 1, base)


def always_ten_thousand(x, positions, base=10000.0):
    return by_halves(x, positions)


def all_alike(x, positions, base=10000.0):
    return by_halves(x, positions, 1.0)


def adds(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = np.outer(positions, base ** (-np.arange(half) / half))
    return x + np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def slow_first(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = np.outer(positions, (base ** (-np.arange(half) / half))[::-1])
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)


def joins_as_neighbours(x, positions, base=10000.0):
    turned = by_halves(x, positions, base)
    result = np.empty(turned.shape)
    result[..., 0::2], result[..., 1::2] = np.split(turned, 2, axis=-1)
    return result


def twice_the_exponent(x, positions, base=10000.0):
    return by_halves(x, positions, base**2)


def swallows_the_first(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = np.outer(positions, base ** (-np.arange(half) / half))
    x[..., :half] = x[..., :half] * np.cos(angles) - x[..., half:] * np.sin(angles)
    x[..., half:] = x[..., :half] * np.sin(angles) + x[..., half:] * np.cos(angles)
    return x


def in_place(x, positions, base=10000.0):
    x[...] = by_halves(x, positions, base)
    return x


# -------------------------------------------------------------------------------------------------------------------- q4, right
def by_maximum(num_heads, L, S, offset=0):
    slopes = 2.0 ** (-8 * np.arange(1, num_heads + 1) / num_heads)
    distance = offset + np.arange(L)[:, None] - np.arange(S)
    return -slopes[:, None, None] * np.maximum(distance, 0)


def entry_by_entry(num_heads, L, S, offset=0):
    bias = np.zeros((num_heads, L, S))
    for m in range(num_heads):
        for i in range(L):
            for j in range(min(S, offset + i + 1)):
                bias[m, i, j] = -(offset + i - j) / 2 ** (8 * (m + 1) / num_heads)
    return bias


def by_powers(num_heads, L, S, offset=0):
    first = 2 ** (-8 / num_heads)
    slopes = np.cumprod(np.full(num_heads, first))
    distance = np.subtract.outer(np.arange(offset, offset + L), np.arange(S))
    return np.einsum("h,ls->hls", slopes, np.where(distance > 0, -distance, 0))


# -------------------------------------------------------------------------------------------------------------------- q4, wrong
def far_keys_win(num_heads, L, S, offset=0):
    return -by_maximum(num_heads, L, S, offset)


def same_for_all(num_heads, L, S, offset=0):
    return np.stack([by_maximum(num_heads, L, S, offset)[0]] * num_heads)


def starts_again(num_heads, L, S, offset=0):
    return by_maximum(num_heads, L, S)


def with_slopes(slopes, distance=lambda d: np.maximum(d, 0)):
    def alibi(num_heads, L, S, offset=0):
        d = offset + np.arange(L)[:, None] - np.arange(S)
        return -np.asarray(slopes(num_heads))[:, None, None] * distance(d)

    return alibi


def halving(H):
    return 0.5 ** np.arange(1, H + 1)


def proper(H):
    return 2.0 ** (-8 * np.arange(1, H + 1) / H)


def one_head(num_heads, L, S, offset=0):
    return by_maximum(num_heads, L, S, offset)[0]


def forgets_the_minus(num_heads, L, S, offset=0):
    """Only in the last head."""
    bias = by_maximum(num_heads, L, S, offset)
    bias[-1] *= -1 if num_heads > 1 else 2
    return bias


def hides_the_future(num_heads, L, S, offset=0):
    distance = offset + np.arange(L)[:, None] - np.arange(S)
    return np.where(distance < 0, -np.inf, by_maximum(num_heads, L, S, offset))


# ------------------------------------------------------------------------------------------------------------------- q5, right
def by_index(W, num_heads):
    D = W.shape[-1] // num_heads
    order = np.concatenate([np.arange(0, D, 2), np.arange(1, D, 2)])
    return W[..., (D * np.arange(num_heads)[:, None] + order).ravel()]


def head_by_head(W, num_heads):
    parts = []
    for own in np.split(W, num_heads, axis=-1):
        parts += [own[..., 0::2], own[..., 1::2]]
    return np.concatenate(parts, axis=-1)


def by_reshape(W, num_heads):
    return np.moveaxis(W.reshape(*W.shape[:-1], num_heads, -1, 2), -1, -2).reshape(W.shape)


# ------------------------------------------------------------------------------------------------------------------- q5, wrong
def back_again(W, num_heads):
    return np.moveaxis(W.reshape(*W.shape[:-1], num_heads, 2, -1), -1, -2).reshape(W.shape)


def over_all_columns(W, num_heads):
    return np.concatenate([W[..., 0::2], W[..., 1::2]], axis=-1)


def odd_before_even(W, num_heads):
    return np.concatenate([part[..., s::2] for part in np.split(W, num_heads, -1) for s in (1, 0)], axis=-1)


def as_it_was(W, num_heads):
    return W


def only_matrices(W, num_heads):
    E, width = W.shape
    return W.reshape(E, num_heads, -1, 2).swapaxes(-1, -2).reshape(E, width)


def into_W(W, num_heads):
    W[...] = by_index(W, num_heads)
    return W


RIGHT = {
    "q1": [[11, 2, -2, -11], np.array([11.0, 2.0, -2.0, -11.0]), (11, 2, -2, -11.0)],
    "q2": [by_angles, by_loops, by_exp_of_log, by_complex_numbers],
    "q3": [by_halves, rotate_half, as_complex, pair_by_pair],
    "q4": [by_maximum, entry_by_entry, by_powers],
    "q5": [by_index, head_by_head, by_reshape],
}

WRONG = {
    "q1": [
        ([11, 11, 11, 11], "not_turned", 0),
        ([11, -2, 2, -11], "turned_the_other_way", 0),
        ([-2, 2, 11, -11], "only_the_query_is_turned", 0),
        ([-11, 2, 2, -11], "the_angles_add", 0),
        ([11, 2, 2, -11], "direction_forgotten", 0),
        ([11, 2, -2], "wrong_shape", 0),
        ([11, 2, -2, 11], "different", 0),
    ],
    "q2": [
        (all_sines_first, "sines_before_cosines", 0),
        (own_frequency, "frequency_of_each_column", 0),
        (no_offset, "positions_start_at_0", 2),
        (in_degrees, "degrees", 0),
        (from_one, "counted_from_1", 0),
        (cosines_at_even, "cosine_first", 0),
        (pairs_over_E, "exponent_halved", 0),
        (squared_speeds, "exponent_doubled", 0),
        (faster_and_faster, "speeds_rise", 0),
        (transposed, "different", 0),
        (in_pairs, "wrong_shape", 0),
    ],
    "q3": [
        (neighbours, "rope_of_the_other_convention", 0),
        (exponent_over_D, "rope_exponent_halved", 0),
        (other_way, "turned_back", 0),
        (both_plus, "not_a_turn", 0),
        (by_row_number, "positions_ignored", 6),
        (one_further, "counted_from_1", 0),
        (always_ten_thousand, "base_ignored", 6),
        (all_alike, "one_speed", 0),
        (adds, "added", 0),
        (slow_first, "speeds_reversed", 0),
        (swallows_the_first, "new_first_half", 0),
        (joins_as_neighbours, "left_as_neighbours", 0),
        (twice_the_exponent, "exponent_doubled", 0),
        (in_place, "input_modified", 7),
    ],
    "q4": [
        (far_keys_win, "alibi_sign_flipped", 0),
        (same_for_all, "alibi_one_slope", 0),
        (starts_again, "alibi_starts_at_0", 2),
        (with_slopes(halving), "slopes_of_8_heads", 0),
        (with_slopes(lambda H: 2.0 ** (-8 * np.arange(H) / H)), "slopes_from_1", 0),
        (with_slopes(lambda H: proper(H)[::-1]), "slopes_reversed", 0),
        (with_slopes(proper, np.abs), "both_sides", 0),
        (with_slopes(proper, lambda d: d), "later_keys_preferred", 0),
        (with_slopes(proper, lambda d: np.maximum(d + 1, 0)), "one_too_far", 0),
        (one_head, "wrong_shape", 0),
        (hides_the_future, "later_keys_hidden", 0),
        (with_slopes(proper, lambda d: np.maximum(-d, 0)), "distance_reversed", 0),
        (forgets_the_minus, "different", 0),
    ],
    "q5": [
        (back_again, "the_way_back", 0),
        (over_all_columns, "across_heads", 0),
        (odd_before_even, "odd_first", 0),
        (as_it_was, "unchanged", 0),
        (only_matrices, "raised", 4),
        (into_W, "input_modified", 4),
    ],
}
