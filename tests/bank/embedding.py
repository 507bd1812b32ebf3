"""Answers to 02_embedding."""

import numpy as np

from mha_lib.data import load_layer, load_vocabulary
from mha_lib.mistakes import MISTAKES
from mha_lib.numpy import layer_norm
from mha_lib.questions.embedding import _norm, _real


# ------------------------------------------------------------------------------------------------------------------- q2, right
def three_look_ups(ids, token_table, position_table, type_row):
    return token_table[ids] + position_table[: ids.shape[-1]] + type_row


def places_by_arange(ids, token_table, position_table, type_row):
    rows = np.take(token_table, ids, axis=0)
    rows += np.take(position_table, np.arange(ids.shape[-1]), axis=0)
    return rows + type_row


def token_by_token(ids, token_table, position_table, type_row):
    result = np.empty((*ids.shape, len(type_row)), dtype=token_table.dtype)
    for place in np.ndindex(ids.shape):
        result[place] = token_table[ids[place]] + position_table[place[-1]] + type_row
    return result


def by_one_hot(ids, token_table, position_table, type_row):
    one_hot = (ids[..., None] == np.arange(len(token_table))).astype(token_table.dtype)
    where = np.eye(ids.shape[-1], len(position_table), dtype=position_table.dtype)
    return one_hot @ token_table + where @ position_table + type_row


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def knows_no_places(ids, token_table, position_table, type_row):
    return token_table[ids] + type_row


def knows_no_type(ids, token_table, position_table, type_row):
    return token_table[ids] + position_table[: ids.shape[-1]]


def same_index_for_both(ids, token_table, position_table, type_row):
    return token_table[ids] + position_table[ids] + type_row


def ignores_the_ids(ids, token_table, position_table, type_row):
    L = ids.shape[-1]
    return token_table[:L] + position_table[:L] + type_row


def counts_from_1(ids, token_table, position_table, type_row):
    positions = np.arange(1, ids.shape[-1] + 1)
    return token_table[ids] + position_table[positions] + type_row


def counts_from_the_end(ids, token_table, position_table, type_row):
    L = ids.shape[-1]
    return token_table[ids] + position_table[-L:] + type_row


def adds_whole_tables(ids, token_table, position_table, type_row):
    return token_table[ids] + position_table + type_row


def takes_len(ids, token_table, position_table, type_row):
    L = len(ids)
    return token_table[ids] + position_table[:L] + type_row


def type_as_a_column(ids, token_table, position_table, type_row):
    return token_table[ids] + position_table[: ids.shape[-1]] + type_row.reshape(-1, 1)


def takes_the_mean(ids, token_table, position_table, type_row):
    return (token_table[ids] + position_table[: ids.shape[-1]] + type_row) / 3


def concatenates(ids, token_table, position_table, type_row):
    rows = token_table[ids]
    places = np.zeros_like(rows) + position_table[: ids.shape[-1]]
    return np.concatenate([rows, places, np.zeros_like(rows) + type_row], axis=-1)


def takes_columns(ids, token_table, position_table, type_row):
    return token_table[:, ids] + position_table[: ids.shape[-1]] + type_row


def one_hot_in_float64(ids, token_table, position_table, type_row):
    return np.eye(len(token_table))[ids] @ token_table + position_table[: ids.shape[-1]] + type_row


def adds_into_a_view(ids, token_table, position_table, type_row):
    rows = position_table[: ids.shape[-1]]
    rows += type_row
    return token_table[ids] + rows


def loops_over_the_first_axis(ids, token_table, position_table, type_row):
    rows = [token_table[i] + position_table[place] + type_row for place, i in enumerate(ids)]
    return np.array(rows)


def gives_a_list_of_rows(ids, token_table, position_table, type_row):
    return list(token_table[ids] + position_table[: ids.shape[-1]] + type_row)


def norms_already(ids, token_table, position_table, type_row):
    return layer_norm(token_table[ids] + position_table[: ids.shape[-1]] + type_row)


# ------------------------------------------------------------------------------------------------------------------- q3, right
def with_keepdims(x, weight, bias, eps):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * weight + bias


def squares_by_einsum(x, weight, bias, eps):
    mean = x.sum(-1, keepdims=True) / x.shape[-1]
    centred = x - mean
    variance = np.einsum("...e,...e->...", centred, centred)[..., None] / x.shape[-1]
    return weight * centred * (variance + eps) ** -0.5 + bias


def each_row(x, weight, bias, eps):
    result = np.empty_like(x)
    for place in np.ndindex(x.shape[:-1]):
        row = x[place]
        result[place] = (row - row.mean()) / np.sqrt(row.var() + eps) * weight + bias
    return result


def by_a_matrix(x, weight, bias, eps):
    E = x.shape[-1]
    centred = x @ (np.eye(E) - np.ones((E, E)) / E).astype(x.dtype)
    length = np.linalg.norm(centred, axis=-1)[..., np.newaxis]
    return centred / np.sqrt(length**2 / E + eps) * weight + bias


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def over_the_tokens(x, weight, bias, eps):
    normal = (x - x.mean(axis=-2, keepdims=True)) / np.sqrt(x.var(axis=-2, keepdims=True) + eps)
    return normal * weight + bias


def over_axis_0(x, weight, bias, eps):
    return (x - x.mean(0)) / np.sqrt(x.var(0) + eps) * weight + bias


def over_axis_1(x, weight, bias, eps):
    mean = x.mean(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=1, keepdims=True) + eps) * weight + bias


def over_all(x, weight, bias, eps):
    return (x - x.mean()) / np.sqrt(x.var() + eps) * weight + bias


def loses_the_axis(x, weight, bias, eps):
    mean, variance = x.mean(axis=-1), x.var(axis=-1)
    return (x - mean) / np.sqrt(variance + eps) * weight + bias


def by_sample(x, weight, bias, eps):
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).sum(-1, keepdims=True) / (x.shape[-1] - 1)
    return (x - mean) / np.sqrt(variance + eps) * weight + bias


def without_a_root(x, weight, bias, eps):
    return weight * (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + eps) + bias


def eps_beside_std(x, weight, bias, eps):
    return weight * (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps) + bias


def no_eps(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) * weight + bias


def its_own_eps(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * weight + bias


def no_mean(x, weight, bias, eps):
    return x / np.sqrt(x.var(-1, keepdims=True) + eps) * weight + bias


def mean_only(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) * weight + bias


def as_rms_norm(x, weight, bias, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight + bias


def plain_norm(x, weight, bias, eps):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps)


def no_bias(x, weight, bias, eps):
    return plain_norm(x, weight, bias, eps) * weight


def no_weight(x, weight, bias, eps):
    return plain_norm(x, weight, bias, eps) + bias


def bias_first(x, weight, bias, eps):
    return (plain_norm(x, weight, bias, eps) + bias) * weight


def centres_in_place(x, weight, bias, eps):
    x -= x.mean(-1, keepdims=True)
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * weight + bias


def fills_float64(x, weight, bias, eps):
    result = np.zeros(x.shape)
    result[...] = with_keepdims(x, weight, bias, eps)
    return result


def divides_by_the_length(x, weight, bias, eps):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).sum(-1, keepdims=True) + eps) * weight + bias


def rounds(x, weight, bias, eps):
    return np.round(with_keepdims(x, weight, bias, eps), 2)


# ------------------------------------------------------------------------------------------------------------------- q4
def _in_float32():
    layer = load_layer()
    return layer_norm(
        layer.token_rows + layer.position_rows + layer.type_rows, layer.norm_weight, layer.norm_bias, 1e-12
    )


def _from_the_ids():
    layer, vocabulary = load_layer(), load_vocabulary()
    places = [vocabulary.ids.tolist().index(i) for i in layer.ids]
    rows = three_look_ups(np.array(places), vocabulary.table, layer.position_rows, layer.type_rows[0])
    return with_keepdims(rows, layer.norm_weight, layer.norm_bias, 1e-12)


RIGHT = {
    "q1": [[-2, 0, 1, 2], np.array([-2.0, 0.0, 1.0, 2.0]), (-2, 0, 1, 2)],
    "q2": [three_look_ups, places_by_arange, token_by_token, by_one_hot],
    "q3": [with_keepdims, squares_by_einsum, each_row, by_a_matrix],
    "q4": [_real(), _in_float32(), _from_the_ids()],
}

WRONG = {
    "q1": [
        ([-1, -1, 1, 1], "scale_and_shift_forgotten", 0),
        ([-2, 0, 1, 0], "shift_first", 0),
        ([-1, 0.5, 0.5, 0.5], "divided_by_variance", 0),
        ([-1.73, 0.13, 0.87, 1.6], "divided_by_e_minus_1", 0),
        ([1, 1.5, 2.5, 6.5], "mean_not_subtracted", 0),
        ([-1.15, 0.42, 1.73, -2.73], "type_forgotten", 0),
        ([-1.46, -0.21, 0.73, 2.64], "position_forgotten", 0),
        ([2, 2, 5, 14], "not_normalised", 0),
        ([-2, 0, 1, 3], "different", 0),
        ([[-2, 0, 1, 2]], "wrong_shape", 0),
        ("-2 0 1 2", "wrong_type", 0),
    ],
    "q2": [
        (knows_no_places, "position_forgotten", 0),
        (knows_no_type, "type_forgotten", 0),
        (same_index_for_both, "position_by_id", 0),
        (ignores_the_ids, "token_by_place", 0),
        (counts_from_1, "positions_from_1", 0),
        (counts_from_the_end, "last_positions", 0),
        (adds_whole_tables, "whole_position_table", 0),
        (takes_len, "positions_of_the_batch", 4),
        (type_as_a_column, "type_for_every_token", 0),
        (takes_the_mean, "averaged", 0),
        (concatenates, "side_by_side", 0),
        (takes_columns, "columns_for_rows", 0),
        (one_hot_in_float64, "wrong_dtype", 5),
        (adds_into_a_view, "input_modified", 5),
        (loops_over_the_first_axis, "position_of_the_sentence", 4),
        (gives_a_list_of_rows, "wrong_type", 0),
        (norms_already, "different", 0),
    ],
    "q3": [
        (over_the_tokens, "norm_over_tokens", 0),
        (over_axis_0, "norm_over_first_axis", 0),
        (over_axis_1, "norm_over_axis_1", 7),
        (over_all, "norm_over_everything", 0),
        (loses_the_axis, "lost_axis", 0),
        (by_sample, "divided_by_e_minus_1", 0),
        (without_a_root, "divided_by_variance", 0),
        (eps_beside_std, "eps_outside_the_root", 6),
        (no_eps, "eps_forgotten", 6),
        (its_own_eps, "eps_of_its_own", 6),
        (no_mean, "mean_not_subtracted", 0),
        (mean_only, "only_centred", 0),
        (as_rms_norm, "root_mean_square", 0),
        (plain_norm, "scale_and_shift_forgotten", 3),
        (no_bias, "bias_not_added", 3),
        (no_weight, "weight_forgotten", 3),
        (bias_first, "shift_first", 3),
        (centres_in_place, "input_modified", 8),
        (fills_float64, "wrong_dtype", 8),
        (divides_by_the_length, "different", 0),
        (rounds, "different", 0),
    ],
    "q4": [
        (_real(eps=1e-5), "default_eps", 0),
        (_real(norm=lambda *args: _norm(*args, ddof=1)), "divided_by_e_minus_1", 0),
        (_real(positions=0), "position_forgotten", 0),
        (_real(types=0), "type_forgotten", 0),
        (_real(affine=False), "scale_and_shift_forgotten", 0),
        (_real(norm=lambda x, w, b, eps: x), "not_normalised", 0),
        (_real(norm=MISTAKES["norm_over_tokens"]), "norm_over_tokens", 0),
        (load_layer().x, "input_of_layer_3", 0),
        (_real()[:, None], "wrong_shape", 0),
        (_real().round(2), "different", 0),
    ],
}
