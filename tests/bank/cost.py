"""Answers to 16_cost."""

import math

import numpy as np


# ------------------------------------------------------------------------------------------------------------------- q2, right
def by_formula(L, S, d, h, h_kv, d_k):
    return 4 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 4 * L * S * h * d_k


def product_by_product(L, S, d, h, h_kv, d_k):
    def product(m, k, n):
        return 2 * m * k * n

    total = product(L, d, h * d_k) + 2 * product(S, d, h_kv * d_k) + product(L, h * d_k, d)
    for _ in range(h):
        total += product(L, d_k, S) + product(L, S, d_k)
    return total


def from_real_shapes(L, S, d, h, h_kv, d_k):
    shapes = [
        (L, d, h * d_k),
        (S, d, h_kv * d_k),
        (S, d, h_kv * d_k),
        (h * L, d_k, S),
        (h * L, S, d_k),
        (L, h * d_k, d),
    ]
    return np.sum([2 * math.prod(shape) for shape in shapes])


def as_a_float(L, S, d, h, h_kv, d_k):
    return 4.0 * d_k * (d * (L * h + S * h_kv) + L * S * h)


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def multiply_adds(L, S, d, h, h_kv, d_k):
    return 2 * d_k * (d * (L * h + S * h_kv) + L * S * h)


def every_head_projects_to_all(L, S, d, h, h_kv, d_k):
    return sum(4 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 4 * L * S * d_k for _ in range(h))


def one_head(L, S, d, h, h_kv, d_k):
    return 4 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 4 * L * S * d_k


def wide_pairs(L, S, d, h, h_kv, d_k):
    return 4 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 4 * L * S * h * d


def scores_only(L, S, d, h, h_kv, d_k):
    return 4 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 2 * L * S * h * d_k


def self_attention_only(L, S, d, h, h_kv, d_k):
    return by_formula(L, L, d, h, h_kv, d_k)


def keys_have_L_rows(L, S, d, h, h_kv, d_k):
    return 4 * L * d * (h + h_kv) * d_k + 4 * L * S * h * d_k


def as_many_key_heads(L, S, d, h, h_kv, d_k):
    return by_formula(L, S, d, h, h, d_k)


def pairs_for_key_heads(L, S, d, h, h_kv, d_k):
    return 4 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 4 * L * S * h_kv * d_k


def three_projections(L, S, d, h, h_kv, d_k):
    return 2 * L * d * h * d_k + 4 * S * d * h_kv * d_k + 4 * L * S * h * d_k


def with_exponentials(L, S, d, h, h_kv, d_k):
    return by_formula(L, S, d, h, h_kv, d_k) + h * L * S


def additions_are_one_less(L, S, d, h, h_kv, d_k):
    def product(m, k, n):
        return m * n * (k + k - 1)

    keys = product(S, d, h_kv * d_k)
    return product(L, d, h * d_k) + 2 * keys + h * (product(L, d_k, S) + product(L, S, d_k)) + product(L, h * d_k, d)


def mixes_up_the_lengths(L, S, d, h, h_kv, d_k):
    return by_formula(S, L, d, h, h_kv, d_k)


def one_output_for_each_key(L, S, d, h, h_kv, d_k):
    return 2 * d * d_k * (L * h + 2 * S * h_kv + S * h) + 4 * L * S * h * d_k


def heads_fill_d(L, S, d, h, h_kv, d_k):
    return 4 * L * d**2 + 4 * S * d * h_kv * d_k + 4 * L * S * d


def of_the_chapter(L, S, d, h, h_kv, d_k):
    return 8 * L * d**2 + 4 * L * S * d


def prints_it(L, S, d, h, h_kv, d_k):
    return f"{by_formula(L, S, d, h, h_kv, d_k):,}"


# ------------------------------------------------------------------------------------------------------------------- q3
def four_matrices(d, h, h_kv, d_k, bias):
    total = d * h * d_k + 2 * d * h_kv * d_k + h * d_k * d
    if bias:
        total += h * d_k + 2 * h_kv * d_k + d
    return total


def columns_and_rows(d, h, h_kv, d_k, bias):
    return (d + bool(bias)) * (h + 2 * h_kv) * d_k + (h * d_k + bool(bias)) * d


def by_arrays(d, h, h_kv, d_k, bias):
    shapes = [(d, h * d_k), (d, h_kv * d_k), (d, h_kv * d_k), (h * d_k, d)]
    return sum(np.zeros(s).size + (s[1] if bias else 0) for s in shapes)


def three_matrices(d, h, h_kv, d_k, bias):
    return (d + bias) * (h + 2 * h_kv) * d_k


def no_biases(d, h, h_kv, d_k, bias):
    return 2 * d * (h + h_kv) * d_k


def always_biases(d, h, h_kv, d_k, bias):
    return four_matrices(d, h, h_kv, d_k, True)


def output_bias_only(d, h, h_kv, d_k, bias):
    return no_biases(d, h, h_kv, d_k, bias) + bias * d


def equal_heads(d, h, h_kv, d_k, bias):
    return four_matrices(d, h, h, d_k, bias)


def times_heads(d, h, h_kv, d_k, bias):
    return h * four_matrices(d, h, h_kv, d_k, bias)


def a_single_head(d, h, h_kv, d_k, bias):
    return four_matrices(d, 1, 1, d_k, bias)


def flops_per_word(d, h, h_kv, d_k, bias):
    return 2 * four_matrices(d, h, h_kv, d_k, bias)


def biases_of_width_d(d, h, h_kv, d_k, bias):
    return no_biases(d, h, h_kv, d_k, bias) + (4 * d if bias else 0)


def three_biases(d, h, h_kv, d_k, bias):
    return no_biases(d, h, h_kv, d_k, bias) + (h * d_k + 2 * h_kv * d_k if bias else 0)


def forgets_the_output_matrix(d, h, h_kv, d_k, bias):
    return d * (h + 2 * h_kv) * d_k + (h * d_k + 2 * h_kv * d_k + d if bias else 0)


def four_d_squared(d, h, h_kv, d_k, bias):
    return 4 * d**2 + bias * 4 * d


# ------------------------------------------------------------------------------------------------------------------- q4
def two_products(B, n, h, h_kv, d_k, itemsize):
    return B * h * n**2 * itemsize, 2 * B * h_kv * n * d_k * itemsize


def of_arrays(B, n, h, h_kv, d_k, itemsize):
    weights = np.zeros((B, h, n, n), f"i{itemsize}")
    keys = np.zeros((B, h_kv, n, d_k), f"i{itemsize}")
    return weights.nbytes, keys.nbytes + keys.nbytes


def text_by_text(B, n, h, h_kv, d_k, itemsize):
    weights = sum(itemsize for _ in range(B * h * n) for _ in range(n))
    return float(weights), B * n * (h_kv * d_k + h_kv * d_k) * itemsize


def counts_numbers(B, n, h, h_kv, d_k, itemsize):
    return B * h * n**2, 2 * B * h_kv * n * d_k


def counts_bits(B, n, h, h_kv, d_k, itemsize):
    return 8 * B * h * n**2 * itemsize, 16 * B * h_kv * n * d_k * itemsize


def forgets_values(B, n, h, h_kv, d_k, itemsize):
    return B * h * n**2 * itemsize, B * h_kv * n * d_k * itemsize


def one_map_for_all(B, n, h, h_kv, d_k, itemsize):
    return B * n**2 * itemsize, 2 * B * h_kv * n * d_k * itemsize


def maps_are_shared(B, n, h, h_kv, d_k, itemsize):
    return B * h_kv * n**2 * itemsize, 2 * B * h_kv * n * d_k * itemsize


def nothing_is_shared(B, n, h, h_kv, d_k, itemsize):
    return B * h * n**2 * itemsize, 2 * B * h * n * d_k * itemsize


def one_text(B, n, h, h_kv, d_k, itemsize):
    return h * n**2 * itemsize, 2 * h_kv * n * d_k * itemsize


def wide_weights(B, n, h, h_kv, d_k, itemsize):
    return B * h * n**2 * d_k * itemsize, 2 * B * h_kv * n * d_k * itemsize


def triangle_of_weights(B, n, h, h_kv, d_k, itemsize):
    return B * h * n * (n + 1) // 2 * itemsize, 2 * B * h_kv * n * d_k * itemsize


def one_of_each(B, n, h, h_kv, d_k, itemsize):
    return B * h * n**2 * itemsize, B * (h * n * d_k + h_kv * n * d_k) * itemsize


def their_sum(B, n, h, h_kv, d_k, itemsize):
    return sum(two_products(B, n, h, h_kv, d_k, itemsize))


def other_way_round(B, n, h, h_kv, d_k, itemsize):
    return two_products(B, n, h, h_kv, d_k, itemsize)[::-1]


# ------------------------------------------------------------------------------------------------------------------- q5
def solved(d, d_ff, causal):
    return 4 * d + 2 * d_ff - 1 if causal else 2 * d + d_ff


def tried(d, d_ff, causal):
    n = 1
    while 4 * d * (n * (n + 1) // 2 if causal else n * n) < 8 * n * d**2 + 4 * n * d * d_ff:
        n += 1
    return n


def halved_intervals(d, d_ff, causal):
    low, high = 0, 2**24
    while high - low > 1:
        n = (low + high) // 2
        pairs = n * (n + 1) / 2 if causal else n * n
        low, high = (n, high) if 4 * d * pairs < n * (8 * d * d + 4 * d * d_ff) else (low, n)
    return float(high)


def without_ffn(d, d_ff, causal):
    return solved(d, 0, causal)


def half_an_ffn(d, d_ff, causal):
    return solved(d, d_ff / 2, causal)


def two_ffns(d, d_ff, causal):
    return solved(d, 2 * d_ff, causal)


def two_projections(d, d_ff, causal):
    return 2 * (d + d_ff) - 1 if causal else d + d_ff


def never_causal(d, d_ff, causal):
    return 2 * d + d_ff


def earlier(d, d_ff, causal):
    return (2 * d + d_ff) // 2 if causal else 2 * d + d_ff


def twice(d, d_ff, causal):
    return (2 * d + d_ff) * (2 if causal else 1)


def strictly_before(d, d_ff, causal):
    return (2 * d + d_ff) * 2 + 1 if causal else 2 * d + d_ff


def always_six(d, d_ff, causal):
    return 12 * d - 1 if causal else 6 * d


RIGHT = {
    "q1": [1824, 1824.0, np.int64(8 * 3 * 64 + 4 * 9 * 8)],
    "q2": [by_formula, product_by_product, from_real_shapes, as_a_float],
    "q3": [four_matrices, columns_and_rows, by_arrays],
    "q4": [two_products, of_arrays, text_by_text],
    "q5": [solved, tried, halved_intervals],
}

WRONG = {
    "q1": [
        (912, "multiplications_only", 0),
        (3360, "projections_per_head", 0),
        (1680, "pairs_halved", 0),
        (2112, "pairs_doubled", 0),
        (1440, "output_forgotten", 0),
        (1536, "pairs_forgotten", 0),
        (288, "projections_forgotten", 0),
        (1686, "one_addition_less", 0),
        (1842, "different", 0),
        ("1824", "wrong_type", 0),
    ],
    "q2": [
        (multiply_adds, "multiplications_only", 0),
        (every_head_projects_to_all, "projections_per_head", 0),
        (one_head, "pairs_of_one_head", 0),
        (wide_pairs, "pairs_with_d", 0),
        (scores_only, "one_product_of_pairs", 0),
        (self_attention_only, "keys_from_the_query", 2),
        (keys_have_L_rows, "keys_projected_from_the_query", 2),
        (as_many_key_heads, "key_heads_ignored", 3),
        (pairs_for_key_heads, "pairs_of_key_heads", 3),
        (three_projections, "output_forgotten", 0),
        (with_exponentials, "softmax_counted", 0),
        (additions_are_one_less, "one_addition_less", 0),
        (mixes_up_the_lengths, "lengths_exchanged", 3),
        (one_output_for_each_key, "output_with_key_rows", 2),
        (heads_fill_d, "width_is_d", 5),
        (of_the_chapter, "different", 2),
        (prints_it, "wrong_type", 0),
    ],
    "q3": [
        (three_matrices, "output_forgotten", 0),
        (no_biases, "bias_ignored", 1),
        (always_biases, "bias_always", 2),
        (output_bias_only, "one_bias", 1),
        (equal_heads, "key_heads_ignored", 2),
        (times_heads, "per_head_twice", 0),
        (a_single_head, "of_one_head", 0),
        (flops_per_word, "flops", 0),
        (biases_of_width_d, "biases_as_wide_as_d", 2),
        (three_biases, "output_bias_forgotten", 1),
        (forgets_the_output_matrix, "output_matrix_forgotten", 0),
        (four_d_squared, "different", 2),
    ],
    "q4": [
        (counts_numbers, "numbers", 0),
        (counts_bits, "bits", 0),
        (forgets_values, "keys_only", 0),
        (one_map_for_all, "one_map", 0),
        (maps_are_shared, "maps_of_key_heads", 3),
        (nothing_is_shared, "keys_of_query_heads", 3),
        (one_text, "batch_ignored", 2),
        (wide_weights, "weights_with_width", 0),
        (their_sum, "wrong_type", 0),
        (triangle_of_weights, "allowed_pairs_only", 0),
        (one_of_each, "keys_as_many_as_queries", 3),
        (other_way_round, "exchanged", 0),
    ],
    "q5": [
        (without_ffn, "ffn_forgotten", 1),
        (half_an_ffn, "one_matrix_of_the_ffn", 1),
        (two_ffns, "ffn_multiplications", 1),
        (two_projections, "projections_halved", 0),
        (never_causal, "causal_ignored", 3),
        (earlier, "causal_halves_the_length", 3),
        (twice, "diagonal_forgotten", 3),
        (strictly_before, "diagonal_excluded", 3),
        (always_six, "different", 0),
    ],
}
