"""Answers to 01_why."""

import numpy as np

from mha_lib.questions.why import _real


# ------------------------------------------------------------------------------------------------------------------- q3, right
def two_products(query, keys, values):
    fits = np.exp(keys @ query / np.sqrt(len(query)))
    weights = fits / fits.sum()
    return weights @ values, weights


def with_loops(query, keys, values):
    fits = []
    for key in keys:
        raw = sum(a * b for a, b in zip(query, key, strict=True))
        fits.append(np.exp(raw / len(query) ** 0.5))
    weights = np.array([fit / sum(fits) for fit in fits])
    output = sum(weight * value for weight, value in zip(weights, values, strict=True))
    return output, weights


def by_einsum(query, keys, values):
    scores = np.einsum("d,sd->s", query, keys) * query.size**-0.5
    fits = np.exp(scores - scores.max())
    weights = fits / np.sum(fits)
    return np.einsum("s,sv->v", weights, values), weights


def divides_the_query_and_last(query, keys, values):
    fits = np.exp((query / np.sqrt(query.shape[0]) * keys).sum(axis=1))
    return (fits[:, None] * values).sum(axis=0) / fits.sum(), fits / fits.sum()


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def no_root(query, keys, values):
    fits = np.exp(keys @ query)
    weights = fits / fits.sum()
    return weights @ values, weights


def root_after_the_exponential(query, keys, values):
    fits = np.exp(keys @ query) / np.sqrt(len(query))
    weights = fits / fits.sum()
    return weights @ values, weights


def divides_by_the_width(query, keys, values):
    weights = np.exp(keys @ query / len(query))
    weights /= weights.sum()
    return weights @ values, weights


def divides_by_two(query, keys, values):
    fits = np.exp(keys @ query / 2)
    return fits @ values / fits.sum(), fits / fits.sum()


def no_exponential(query, keys, values):
    scores = keys @ query / np.sqrt(len(query))
    weights = scores / np.sum(scores)
    return weights @ values, weights


def gives_keys(query, keys, values):
    weights = two_products(query, keys, values)[1]
    return weights @ keys, weights


def no_sum(query, keys, values):
    weights = np.exp(keys @ query / np.sqrt(len(query)))
    return weights @ values, weights


def picks(query, keys, values):
    weights = np.zeros(len(keys))
    best = np.argmax(keys @ query)
    weights[best] = 1
    return values[best], weights


def plain_mean(query, keys, values):
    return values.mean(axis=0), np.full(len(values), 1 / len(values))


def root_of_the_number_of_keys(query, keys, values):
    fits = np.exp(keys @ query / np.sqrt(len(keys)))
    weights = fits / fits.sum()
    return weights @ values, weights


def query_first(query, keys, values):
    fits = np.exp(query @ keys / np.sqrt(len(query)))
    weights = fits / fits.sum()
    return weights @ values, weights


def values_first(query, keys, values):
    weights = two_products(query, keys, values)[1]
    return values @ weights, weights


def weights_before_output(query, keys, values):
    output, weights = two_products(query, keys, values)
    return weights, output


def does_not_add_up(query, keys, values):
    weights = two_products(query, keys, values)[1]
    return weights[:, None] * values, weights


def only_the_output(query, keys, values):
    return two_products(query, keys, values)[0]


def weights_as_a_list(query, keys, values):
    output, weights = two_products(query, keys, values)
    return output, list(weights)


def scales_the_query_in_place(query, keys, values):
    query /= np.sqrt(len(query))
    fits = np.exp(keys @ query)
    return fits @ values / fits.sum(), fits / fits.sum()


def the_example_by_heart(query, keys, values):
    return np.array([1.69, 0.36, 3.19, 0.05]), np.array([0.02, 0.18, 0.8])


def exponential_of_base_2(query, keys, values):
    fits = 2 ** (keys @ query / np.sqrt(len(query)))
    return fits @ values / fits.sum(), fits / fits.sum()


# ------------------------------------------------------------------------------------------------------------------- q4, right
def two_new_axes(queries, keys, v):
    return np.tanh(queries[..., :, None, :] + keys[..., None, :, :]) @ v


def pair_by_pair(queries, keys, v):
    result = np.zeros((*queries.shape[:-1], keys.shape[-2]))
    for i in range(queries.shape[-2]):
        for j in range(keys.shape[-2]):
            result[..., i, j] = np.tanh(queries[..., i, :] + keys[..., j, :]) @ v
    return result


def query_by_query(queries, keys, v):
    rows = [np.tanh(queries[..., [i], :] + keys) @ v for i in range(queries.shape[-2])]
    return np.stack(rows, axis=-2)


def component_by_component(queries, keys, v):
    terms = [
        v[c] * np.tanh(np.expand_dims(queries[..., c], -1) + np.expand_dims(keys[..., c], -2)) for c in range(len(v))
    ]
    return sum(terms)


# ------------------------------------------------------------------------------------------------------------------- q4, wrong
def a_dot_product(queries, keys, v):
    return queries @ np.swapaxes(keys, -1, -2)


def keys_in_rows(queries, keys, v):
    return np.tanh(keys[..., :, None, :] + queries[..., None, :, :]) @ v


def same_places(queries, keys, v):
    return np.tanh(queries + keys) @ v


def from_the_front(queries, keys, v):
    return np.tanh(queries[:, np.newaxis] + keys) @ v


def tanh_at_the_end(queries, keys, v):
    return np.tanh((queries[..., :, None, :] + keys[..., None, :, :]) @ v)


def no_tanh(queries, keys, v):
    return (queries @ v)[..., :, None] + (keys @ v)[..., None, :]


def tanh_before_the_sum(queries, keys, v):
    return (np.tanh(queries) @ v)[..., :, None] + (np.tanh(keys) @ v)[..., None, :]


def sums_components(queries, keys, v):
    return np.tanh(queries[..., :, None, :] + keys[..., None, :, :]).sum(-1)


def v_in_the_tanh(queries, keys, v):
    return np.tanh((queries[..., :, None, :] + keys[..., None, :, :]) * v).sum(-1)


def product_in_the_tanh(queries, keys, v):
    return np.tanh(queries[..., :, None, :] * keys[..., None, :, :]) @ v


def distance_in_the_tanh(queries, keys, v):
    return np.tanh(queries[..., :, None, :] - keys[..., None, :, :]) @ v


def scaled(queries, keys, v):
    return two_new_axes(queries, keys, v) / np.sqrt(len(v))


def overwrites_v(queries, keys, v):
    result = two_new_axes(queries, keys, v)
    v /= np.linalg.norm(v)
    return result


def keeps_the_components(queries, keys, v):
    return np.tanh(queries[..., :, None, :] + keys[..., None, :, :]) * v


def one_sentence_only(queries, keys, v):
    return np.array([[np.tanh(q + k) @ v for k in keys] for q in queries])


def gives_lists(queries, keys, v):
    return two_new_axes(queries, keys, v).tolist()


RIGHT = {
    "q1": [[800, 1, 1_000_000, 9], np.array([800.0, 1.0, 1e6, 9.0]), (900 - 100, 1, 1000**2, 3**2)],
    "q2": [[2, 6], np.array([2.0, 6.0]), (16 / 8, 48 / 8)],
    "q3": [two_products, with_loops, by_einsum, divides_the_query_and_last],
    "q4": [two_new_axes, pair_by_pair, query_by_query, component_by_component],
    "q5": [_real(), 0.6, round(float(_real()), 3)],
}

WRONG = {
    "q1": [
        ([801, 1, 1_000_000, 9], "positions_for_steps", 0),
        ([999, 1, 1_000_000, 9], "the_whole_text", 0),
        ([800, 800, 1_000_000, 9], "attention_goes_along", 0),
        ([800, 1, 499_500, 9], "each_pair_once", 0),
        ([800, 1, 500_500, 9], "only_backwards", 0),
        ([800, 1, 999_000, 9], "without_itself", 0),
        ([800, 1, 1_000_000, 3], "grows_like_the_text", 0),
        ([800, 1, 1_000_001, 9], "different", 0),
        ([800, 1, 1_000_000, 9, 1], "wrong_shape", 0),
    ],
    "q2": [
        ([16, 48], "not_divided_by_sum", 0),
        ([5.33, 16], "divided_by_the_number", 0),
        ([4, 4], "mean_of_all", 0),
        ([0, 8], "best_only", 0),
        ([0.32, 7.68], "exponential_twice", 0),
        ([6, 2], "other_order", 0),
        ([0.125, 0.25, 0.625], "weights_only", 0),
        (8, "wrong_shape", 0),
        ([2, 5], "different", 0),
    ],
    "q3": [
        (no_root, "no_scale", 0),
        (root_after_the_exponential, "no_scale", 0),
        (divides_by_the_width, "divided_by_d_k", 0),
        (divides_by_two, "different", 2),
        (no_exponential, "normalised_without_exp", 0),
        (gives_keys, "keys_as_values", 0),
        (no_sum, "not_divided_by_sum", 0),
        (picks, "best_only", 0),
        (plain_mean, "mean_of_all", 0),
        (root_of_the_number_of_keys, "root_of_length", 0),
        (query_first, "keys_transposed", 0),
        (values_first, "values_transposed", 0),
        (weights_before_output, "weights_first", 0),
        (does_not_add_up, "weighted_values", 0),
        (only_the_output, "wrong_type", 0),
        (weights_as_a_list, "wrong_type", 0),
        (scales_the_query_in_place, "input_modified", 5),
        (the_example_by_heart, "hard_coded", 0),
        (exponential_of_base_2, "different", 0),
    ],
    "q4": [
        (a_dot_product, "dot_product", 0),
        (keys_in_rows, "keys_ask", 0),
        (same_places, "one_by_one", 0),
        (from_the_front, "counted_from_the_front", 3),
        (tanh_at_the_end, "tanh_last", 0),
        (no_tanh, "tanh_forgotten", 0),
        (tanh_before_the_sum, "tanh_of_each", 0),
        (sums_components, "v_forgotten", 0),
        (v_in_the_tanh, "v_inside", 0),
        (product_in_the_tanh, "product_inside", 0),
        (distance_in_the_tanh, "difference_inside", 0),
        (scaled, "divided_by_root", 0),
        (overwrites_v, "input_modified", 4),
        (keeps_the_components, "wrong_shape", 0),
        (one_sentence_only, "counted_from_the_front", 3),
        (gives_lists, "wrong_type", 0),
    ],
    "q5": [
        (_real(scale=1.0), "no_scale", 0),
        (_real(scale=1 / 32), "divided_by_d_k", 0),
        (_real("street", "cross"), "turned_around", 0),
        (0.05, "row_of_it", 0),
        (0.68, "it_on_animal", 0),
        (0.7426, "root_of_length", 0),
        (25.27, "different", 0),
        ([0.6], "wrong_shape", 0),
    ],
}
