"""Answers to 03_projection."""

import numpy as np

from mha_lib.data import load_layer
from mha_lib.questions.projection import _real


# ------------------------------------------------------------------------------------------------------------------- q3, right
def as_product(x, weight, bias=None):
    return x @ weight if bias is None else x @ weight + bias


def by_einsum(x, weight, bias=None):
    result = np.einsum("...e,ed->...d", x, weight)
    if bias is not None:
        result += bias
    return result


def by_broadcasting(x, weight, bias=None):
    result = (x[..., :, None] * weight).sum(-2)
    return result if bias is None else result + bias


def row_by_row(x, weight, bias=None):
    rows = x.reshape(-1, x.shape[-1])
    result = np.zeros((len(rows), weight.shape[1]), dtype=x.dtype)
    for i in range(len(rows)):
        for c in range(weight.shape[1]):
            result[i, c] = rows[i] @ weight[:, c]
        if bias is not None:
            result[i] += bias
    return result.reshape(*x.shape[:-1], -1)


def with_a_column_of_ones(x, weight, bias=None):
    if bias is None:
        return np.dot(x, weight)
    ones = np.ones((*x.shape[:-1], 1), dtype=x.dtype)
    return np.concatenate([x, ones], axis=-1) @ np.vstack([weight, bias])


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def as_nn_linear(x, weight, bias=None):
    return x @ weight.T + (0 if bias is None else bias)


def forgets_the_bias(x, weight, bias=None):
    return np.matmul(x, weight)


def needs_a_bias(x, weight, bias=None):
    return x @ weight + bias


def asks_if_bias(x, weight, bias=None):
    if bias:
        return x @ weight + bias
    return x @ weight


def adds_the_bias_to_x(x, weight, bias=None):
    if bias is not None:
        x = x + bias
    return x @ weight


def bias_as_a_column(x, weight, bias=None):
    result = x @ weight
    if bias is not None:
        result = result + bias.reshape(-1, 1)
    return result


def takes_the_bias_away(x, weight, bias=None):
    return x @ weight if bias is None else x @ weight - bias


def from_the_left(x, weight, bias=None):
    result = np.matmul(weight, x)
    return result if bias is None else result + bias


def with_a_star(x, weight, bias=None):
    return x * weight if bias is None else x * weight + bias


def as_columns(x, weight, bias=None):
    result = weight.T @ x.T
    if bias is not None:
        result += bias[:, np.newaxis]
    return result


def zeros_for_no_bias(x, weight, bias=None):
    if bias is None:
        bias = np.zeros(weight.shape[1])
    return x @ weight + bias


def two_axes_only(x, weight, bias=None):
    L, _ = x.shape
    result = np.zeros((L, weight.shape[1]), dtype=x.dtype)
    for i in range(L):
        result[i] = x[i] @ weight
        if bias is not None:
            result[i] += bias
    return result


def flattens_what_is_given(x, weight, bias=None):
    shape = x.shape
    x.shape = (-1, shape[-1])
    result = as_product(x, weight, bias)
    return result.reshape(*shape[:-1], -1)


def gives_lists(x, weight, bias=None):
    return as_product(x, weight, bias).tolist()


def keeps_whole_numbers(x, weight, bias=None):
    return as_product(x, weight, bias).astype(int)


# ------------------------------------------------------------------------------------------------------------------- q4, right
def three_products(x, y, W_Q, W_K, W_V):
    return x @ W_Q, y @ W_K, y @ W_V


def three_einsums(x, y, W_Q, W_K, W_V):
    def times(rows, W):
        return np.einsum("...le,ed->...ld", rows, W)

    return times(x, W_Q), times(y, W_K), times(y, W_V)


def keys_and_values_at_once(x, y, W_Q, W_K, W_V):
    both = y @ np.concatenate([W_K, W_V], axis=1)
    return np.matmul(x, W_Q), both[..., : W_K.shape[1]], both[..., W_K.shape[1] :]


def by_own_function(x, y, W_Q, W_K, W_V):
    return tuple(as_product(rows, W) for rows, W in ((x, W_Q), (y, W_K), (y, W_V)))


# ------------------------------------------------------------------------------------------------------------------- q4, wrong
def only_looks_at_x(x, y, W_Q, W_K, W_V):
    return x @ W_Q, x @ W_K, x @ W_V


def values_stay_at_home(x, y, W_Q, W_K, W_V):
    q = x @ W_Q
    k, v = y @ W_K, x @ W_V
    return q, k, v


def y_asks(x, y, W_Q, W_K, W_V):
    return y @ W_Q, x @ W_K, x @ W_V


def only_looks_at_y(x, y, W_Q, W_K, W_V):
    return tuple(y @ W for W in (W_Q, W_K, W_V))


def wrong_matrix_for_queries(x, y, W_Q, W_K, W_V):
    return x @ W_K, y @ W_Q, y @ W_V


def keys_by_W_Q(x, y, W_Q, W_K, W_V):
    return x @ W_Q, y @ W_Q, y @ W_V


def keys_twice(x, y, W_Q, W_K, W_V):
    k = y @ W_K
    return x @ W_Q, k, k


def keys_before_queries(x, y, W_Q, W_K, W_V):
    k, v = y @ W_K, y @ W_V
    q = x @ W_Q
    return k, q, v


def turns_the_matrices(x, y, W_Q, W_K, W_V):
    return x @ W_Q.T, y @ W_K.T, y @ W_V.T


def gives_a_list(x, y, W_Q, W_K, W_V):
    return [x @ W_Q, y @ W_K, y @ W_V]


def stacks_them(x, y, W_Q, W_K, W_V):
    return np.stack([x @ W_Q, y @ W_K, y @ W_V])


def forgets_the_values(x, y, W_Q, W_K, W_V):
    return x @ W_Q, y @ W_K


def cuts_all_to_one_width(x, y, W_Q, W_K, W_V):
    d = W_Q.shape[1]
    W = np.hstack([W_Q, W_K, W_V])
    return (x @ W)[..., :d], (y @ W)[..., d : 2 * d], (y @ W)[..., 2 * d : 3 * d]


def dots_and_flattens(x, y, W_Q, W_K, W_V):
    return tuple(rows.reshape(-1, rows.shape[-1]) @ W for rows, W in ((x, W_Q), (y, W_K), (y, W_V)))


def normalises_a_matrix_in_place(x, y, W_Q, W_K, W_V):
    q, k, v = x @ W_Q, y @ W_K, y @ W_V
    W_K /= np.linalg.norm(W_K)
    return q, k, v


# ------------------------------------------------------------------------------------------------------------------- q5
def _stored(rows=slice(32, 64)):
    """In float32, from the stored matrix, one head's rows of it."""
    layer = load_layer()
    stored = layer.W_Q.T
    return layer.x[layer.tokens.index("it")] @ stored[rows].T + layer.b_Q[rows]


def _stored_as_it_is():
    layer = load_layer()
    return (layer.x @ layer.W_Q.T + layer.b_Q)[layer.tokens.index("it"), 32:64]


RIGHT = {
    "q1": [[0, 0, 2, 6], np.array([0.0, 0.0, 2.0, 6.0]), (0, 0, 2, 6)],
    "q2": [
        [52, 52, 78, 20, 28, 42, 35],
        (12 * 4 + 4, 12 * 4 + 4, 12 * 6 + 6, 5 * 4, 7 * 4, 7 * 6, 5 * 7),
        np.array([13 * 4, 13 * 4, 13 * 6, 20, 28, 42, 35.0]),
    ],
    "q3": [as_product, by_einsum, by_broadcasting, row_by_row, with_a_column_of_ones],
    "q4": [three_products, three_einsums, keys_and_values_at_once, by_own_function],
    "q5": [_real(), _stored(), _real().round(3).tolist()],
}

WRONG = {
    "q1": [
        ([-1, -1, 1, 5], "two_counted_once", 0),
        ([-2, -2, 0, 4], "two_left_out", 0),
        ([0, 2, 0, 0], "row_of_cats", 0),
        ([2, 0, 4, 0], "row_of_chase", 0),
        ([0, 0, 2, 5], "different", 0),
        ([0, 0, 2, 6, 0, 0, 0, 0], "wrong_shape", 0),
        ([[0, 0, 2, 6]], "wrong_shape", 0),
    ],
    "q2": [
        ([48, 48, 72, 20, 28, 42, 35], "bias_forgotten", 0),
        ([68, 76, 114, 20, 28, 42, 35], "bias_for_every_row", 0),
        ([52, 52, 78, 20, 20, 30, 25], "all_from_x", 0),
        ([52, 52, 52, 20, 28, 28, 35], "values_as_wide_as_keys", 0),
        ([52, 52, 78, 20, 28, 42, 140], "scores_of_every_feature", 0),
        ([52, 52, 78, 20, 28, 42, 49], "different", 0),
        ([52, 52, 78], "wrong_shape", 0),
    ],
    "q3": [
        (as_nn_linear, "weight_transposed", 0),
        (forgets_the_bias, "bias_forgotten", 3),
        (needs_a_bias, "raised", 4),
        (asks_if_bias, "raised", 3),
        (adds_the_bias_to_x, "bias_before_the_product", 3),
        (bias_as_a_column, "bias_for_a_token", 3),
        (takes_the_bias_away, "bias_subtracted", 3),
        (from_the_left, "weight_on_the_left", 0),
        (with_a_star, "entry_by_entry", 0),
        (as_columns, "tokens_as_columns", 0),
        (zeros_for_no_bias, "wrong_dtype", 7),
        (two_axes_only, "raised", 6),
        (flattens_what_is_given, "input_modified", 7),
        (gives_lists, "wrong_type", 0),
        (keeps_whole_numbers, "different", 0),
    ],
    "q4": [
        (only_looks_at_x, "all_from_x", 2),
        (values_stay_at_home, "values_from_x", 2),
        (y_asks, "sequences_swapped", 2),
        (only_looks_at_y, "queries_from_y", 2),
        (wrong_matrix_for_queries, "matrices_swapped", 0),
        (keys_by_W_Q, "one_matrix_for_q_and_k", 0),
        (keys_twice, "values_are_keys", 0),
        (keys_before_queries, "keys_first", 0),
        (turns_the_matrices, "transposed_matrices", 0),
        (gives_a_list, "wrong_type", 0),
        (stacks_them, "raised", 0),
        (forgets_the_values, "wrong_type", 0),
        (cuts_all_to_one_width, "wrong_shape", 5),
        (dots_and_flattens, "wrong_shape", 5),
        (normalises_a_matrix_in_place, "input_modified", 6),
    ],
    "q5": [
        (_stored_as_it_is(), "weight_transposed", 0),
        (_real(bias=0), "bias_forgotten", 0),
        (_real(cut=slice(0, 32)), "head_0", 0),
        (_real(cut=slice(64, 96)), "head_2", 0),
        (_real(cut=slice(1, None, 12)), "every_twelfth_column", 0),
        (_real(name="K"), "its_key", 0),
        (_real()[None], "wrong_shape", 0),
        (_stored(slice(None)), "not_cut", 0),
        (_real() / np.sqrt(32), "different", 0),
    ],
}
