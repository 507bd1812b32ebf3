"""Answers to 04_scores."""

import numpy as np

from mha_lib.questions.scores import _real


# ------------------------------------------------------------------------------------------------------------------- q2, right
def as_product(query, key):
    return query @ key.swapaxes(-1, -2)


def by_einsum(query, key):
    return np.einsum("...ld,...sd->...ls", query, key)


def by_broadcasting(query, key):
    return (query[..., :, None, :] * key[..., None, :, :]).sum(axis=-1)


def by_loops(query, key):
    result = np.zeros((*query.shape[:-1], key.shape[-2]))
    for i in range(query.shape[-2]):
        for j in range(key.shape[-2]):
            result[..., i, j] = (query[..., i, :] * key[..., j, :]).sum(-1)
    return result


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def keys_ask(query, key):
    return key @ query.swapaxes(-1, -2)


def transposes_all_axes(query, key):
    return query @ key.T


def gives_lists(query, key):
    return (query @ key.swapaxes(-1, -2)).tolist()


def normalises_in_place(query, key):
    result = query @ key.swapaxes(-1, -2)
    query /= np.linalg.norm(query)
    return result


def the_example_by_heart(query, key):
    return np.array([[4, 1, 0], [0, 4, 7], [2, 2, 3]])


def only_prints(query, key):
    print(query @ key.swapaxes(-1, -2))


def rounds(query, key):
    return np.round(query @ key.swapaxes(-1, -2))


def forgets_the_transpose(query, key):
    return query @ key


# ------------------------------------------------------------------------------------------------------------------- q3
def divides_after(query, key):
    return query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5


def divides_the_query(query, key):
    return (query / np.sqrt(query.shape[-1], dtype=query.dtype)) @ key.swapaxes(-1, -2)


def scales_in_einsum(query, key):
    return np.einsum("...ld,...sd->...ls", query, key) * query.dtype.type(query.shape[-1] ** -0.5)


def divides_by_two(query, key):
    return query @ key.swapaxes(-1, -2) / 2


def divides_by_the_width(query, key):
    return np.einsum("...ld,...sd->...ls", query, key) / key.shape[-1]


def forgets_to_divide(query, key):
    return query @ key.swapaxes(-1, -2)


def divides_by_root_of_all_heads(query, key):
    heads = query.shape[-3] if query.ndim > 2 else 1
    return query @ key.swapaxes(-1, -2) / np.sqrt(heads * query.shape[-1])


def scales_in_float64(query, key):
    return query.astype(float) @ key.swapaxes(-1, -2).astype(float) / np.sqrt(query.shape[-1])


def scales_the_query_in_place(query, key):
    query *= query.shape[-1] ** -0.5
    return query @ key.swapaxes(-1, -2)


# ------------------------------------------------------------------------------------------------------------------- q4
def of_the_difference(scores, i, j):
    return np.exp(scores[..., i] - scores[..., j])


def by_powers_of_two(scores, i, j):
    return np.exp2((scores[..., i] - scores[..., j]) / np.log(2))


def by_a_safe_softmax(scores, i, j):
    pair = scores[..., [i, j]]
    e = np.exp(pair - pair.max(-1, keepdims=True))
    return e[..., 0] / e[..., 1]


def by_exponentials(scores, i, j):
    return np.exp(scores[..., i]) / np.exp(scores[..., j])


def by_a_ratio(scores, i, j):
    return scores[..., i] / scores[..., j]


def lead_only(scores, i, j):
    return scores[..., i] - scores[..., j]


def first_row_only(scores, i, j):
    return np.exp(scores[0, i] - scores[0, j])


RIGHT = {
    "q1": [[2, 2, 3], np.array([2.0, 2.0, 3.0]), (2, 2, 3)],
    "q2": [as_product, by_einsum, by_broadcasting, by_loops],
    "q3": [divides_after, divides_the_query, scales_in_einsum],
    "q4": [of_the_difference, by_powers_of_two, by_a_safe_softmax],
    "q5": [_real(), 21.71, round(float(_real()), 3)],
}

WRONG = {
    "q1": [
        ([0, 7, 3], "query_and_key_swapped", 0),
        ([1, 1, 1.5], "halved", 0),
        ([0, 4, 7], "row_of_chase", 0),
        ([2, 2], "wrong_shape", 0),
        ([2, 2, 4], "different", 0),
        ("2, 2, 3", "wrong_type", 0),
    ],
    "q2": [
        (keys_ask, "query_and_key_swapped", 0),
        (transposes_all_axes, "raised", 3),
        (gives_lists, "wrong_type", 0),
        (normalises_in_place, "input_modified", 4),
        (the_example_by_heart, "hard_coded", 0),
        (rounds, "different", 0),
        (forgets_the_transpose, "raised", 0),
        (scales_in_einsum, "scaled_already", 0),
    ],
    "q3": [
        (forgets_to_divide, "no_scale", 0),
        (divides_by_the_width, "divided_by_d_k", 0),
        (divides_by_root_of_all_heads, "divided_by_sqrt_d_model", 2),
        (divides_by_two, "different", 0),
        (scales_in_float64, "wrong_dtype", 4),
        (scales_the_query_in_place, "input_modified", 4),
    ],
    "q4": [
        (by_exponentials, "exponentials_first", 3),
        (by_a_ratio, "ratio_of_scores", 0),
        (lead_only, "difference", 0),
        (first_row_only, "wrong_shape", 0),
    ],
    "q5": [
        (_real(bias=False), "bias_forgotten", 0),
        (_real(head=0), "head_0", 0),
        (3.837, "scaled_already", 0),
        (_real(turn=True), "turned_around", 0),
        (0.68, "different", 0),
    ],
}
