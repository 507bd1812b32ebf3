"""Answers to 18_cache."""

import numpy as np

from mha_lib.numpy import KVCache, causal_mask, scaled_dot_product_attention, softmax


# ------------------------------------------------------------------------------------------------------------------------- q1
def appends_and_attends(x_t, keys, values, W_Q, W_K, W_V):
    keys = np.concatenate([keys, (x_t @ W_K)[None]])
    values = np.concatenate([values, (x_t @ W_V)[None]])
    return softmax(keys @ (x_t @ W_Q) / np.sqrt(keys.shape[1])) @ values, keys, values


def sets_room_aside(x_t, keys, values, W_Q, W_K, W_V):
    t = len(keys)
    room_k, room_v = np.empty((t + 1, keys.shape[1])), np.empty((t + 1, values.shape[1]))
    room_k[:t], room_v[:t] = keys, values
    room_k[t], room_v[t] = x_t @ W_K, x_t @ W_V
    e = np.exp((s := room_k @ (W_Q.T @ x_t) * W_Q.shape[1] ** -0.5) - s.max())
    return np.einsum("s,sd->d", e / e.sum(), room_v), room_k, room_v


def through_the_library(x_t, keys, values, W_Q, W_K, W_V):
    cache = KVCache(1, 1, len(keys) + 1, keys.shape[1], value_dim=values.shape[1], dtype=float)
    cache.append(keys[None, None], values[None, None])
    k, v = cache.append((x_t @ W_K)[None, None, None], (x_t @ W_V)[None, None, None])
    output = scaled_dot_product_attention((x_t @ W_Q)[None, None, None], k, v)
    return output[0, 0, 0], k[0, 0], v[0, 0]


def attends_before_it_appends(x_t, keys, values, W_Q, W_K, W_V):
    output = softmax(keys @ (x_t @ W_Q) / np.sqrt(keys.shape[1])) @ values
    return output, np.vstack([keys, x_t @ W_K]), np.vstack([values, x_t @ W_V])


def sees_itself_only(x_t, keys, values, W_Q, W_K, W_V):
    return x_t @ W_V, np.vstack([keys, x_t @ W_K]), np.vstack([values, x_t @ W_V])


def puts_it_in_front(x_t, keys, values, W_Q, W_K, W_V):
    keys, values = np.vstack([x_t @ W_K, keys]), np.vstack([x_t @ W_V, values])
    return softmax(keys @ (x_t @ W_Q) / np.sqrt(keys.shape[1])) @ values, keys, values


def gives_the_old_cache(x_t, keys, values, W_Q, W_K, W_V):
    return appends_and_attends(x_t, keys, values, W_Q, W_K, W_V)[0], keys, values


def stores_the_query(x_t, keys, values, W_Q, W_K, W_V):
    q = x_t @ W_Q
    keys, values = np.vstack([keys, q]), np.vstack([values, x_t @ W_V])
    return softmax(keys @ q / np.sqrt(len(q))) @ values, keys, values


def forgets_the_scale(x_t, keys, values, W_Q, W_K, W_V):
    keys, values = np.vstack([keys, x_t @ W_K]), np.vstack([values, x_t @ W_V])
    return softmax(keys @ (x_t @ W_Q)) @ values, keys, values


def divides_by_the_width(x_t, keys, values, W_Q, W_K, W_V):
    keys, values = np.vstack([keys, x_t @ W_K]), np.vstack([values, x_t @ W_V])
    return softmax(keys @ (x_t @ W_Q) / keys.shape[1]) @ values, keys, values


def divides_by_the_root_of_E(x_t, keys, values, W_Q, W_K, W_V):
    keys, values = np.vstack([keys, x_t @ W_K]), np.vstack([values, x_t @ W_V])
    return softmax(keys @ (x_t @ W_Q) / np.sqrt(len(x_t))) @ values, keys, values


def keeps_the_old_values(x_t, keys, values, W_Q, W_K, W_V):
    return *appends_and_attends(x_t, keys, values, W_Q, W_K, W_V)[:2], values


def gives_the_cache_first(x_t, keys, values, W_Q, W_K, W_V):
    output, keys, values = appends_and_attends(x_t, keys, values, W_Q, W_K, W_V)
    return keys, values, output


def gives_the_output_only(x_t, keys, values, W_Q, W_K, W_V):
    return appends_and_attends(x_t, keys, values, W_Q, W_K, W_V)[0]


def writes_into_the_cache(x_t, keys, values, W_Q, W_K, W_V):
    result = appends_and_attends(x_t, keys, values, W_Q, W_K, W_V)
    keys *= 0
    return result


# ------------------------------------------------------------------------------------------------------------------------- q2
def by_positions(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    seen = np.arange(S) <= np.arange(S - L, S)[:, None]
    return softmax(np.where(seen, q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, -np.inf)) @ v


def query_by_query(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(L):
        end = S - L + i + 1
        scores = (q[..., i, None, :] @ k[..., :end, :].swapaxes(-1, -2)) / np.sqrt(q.shape[-1])
        rows.append(softmax(scores) @ v[..., :end, :])
    return np.concatenate(rows, axis=-2)


def last_rows_of_a_triangle(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    return scaled_dot_product_attention(q, k, v, mask=np.tri(S, dtype=bool)[S - L :])


def starts_at_the_first_key(q, k, v):
    return scaled_dot_product_attention(q, k, v, is_causal=True)


def _exponentials(scores):
    e = np.exp(scores)
    return e / e.sum(axis=-1, keepdims=True)


def steps_by_exponentials(x_t, keys, values, W_Q, W_K, W_V):
    keys, values = np.vstack([keys, x_t @ W_K]), np.vstack([values, x_t @ W_V])
    return _exponentials(keys @ (x_t @ W_Q) / np.sqrt(keys.shape[1])) @ values, keys, values


def pieces_by_exponentials(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return _exponentials(np.where(np.tri(L, S, S - L, dtype=bool), scores, -np.inf)) @ v


def hides_by_ten_thousand(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(L, S, S - L, dtype=bool), scores, -1e4)) @ v


def groups_by_exponentials(q, k, v):
    k, v = (x.repeat(q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    return _exponentials(np.einsum("...ld,...sd->...ls", q, k) / q.shape[-1] ** 0.5) @ v


def masks_nothing(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def one_too_many(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    return scaled_dot_product_attention(q, k, v, mask=np.tri(L, S, S - L + 1, dtype=bool))


def one_too_few(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    return scaled_dot_product_attention(q, k, v, mask=np.tri(L, S, S - L - 1, dtype=bool))


def the_other_triangle(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    return scaled_dot_product_attention(q, k, v, mask=~causal_mask(L, S, S - L - 1))


def bottom_right(q, k):
    return np.tri(q.shape[-2], k.shape[-2], k.shape[-2] - q.shape[-2], dtype=bool)


def forgets_to_scale(q, k, v):
    return softmax(np.where(bottom_right(q, k), q @ k.swapaxes(-1, -2), -np.inf)) @ v


def divides_by_d(q, k, v):
    return softmax(np.where(bottom_right(q, k), q @ k.swapaxes(-1, -2) / q.shape[-1], -np.inf)) @ v


def masks_the_weights(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) * bottom_right(q, k) @ v


def masks_by_zeros(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) * bottom_right(q, k)) @ v


def hides_what_it_should_show(q, k, v):
    return scaled_dot_product_attention(q, k, v, mask=~bottom_right(q, k))


def sees_up_to_the_first(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    return scaled_dot_product_attention(q, k, v, mask=(np.arange(S) <= S - L)[None])


def normalises_columns(q, k, v):
    scores = np.where(bottom_right(q, k), q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), -np.inf)
    return softmax(scores, axis=-2) @ v


def needs_two_axes(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    return softmax(np.where(np.tri(L, S, S - L, dtype=bool), q @ k.T / np.sqrt(q.shape[-1]), -np.inf)) @ v


# ------------------------------------------------------------------------------------------------------------------------- q3
def repeats(q, k, v):
    k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], axis=-3) for x in (k, v))
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def without_a_copy(q, k, v):
    H, L, D = q.shape[-3:]
    rows = q.reshape(*q.shape[:-3], k.shape[-3], -1, D)  # (..., H_kv, group * L, D)
    heads = softmax(rows @ k.swapaxes(-1, -2) / np.sqrt(D)) @ v
    return heads.reshape(*q.shape[:-3], H, L, v.shape[-1])


def head_by_head(q, k, v):
    H, group = q.shape[-3], q.shape[-3] // k.shape[-3]
    heads = []
    for m in range(H):
        scores = q[..., m, :, :] @ k[..., m // group, :, :].swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        heads.append(softmax(scores) @ v[..., m // group, :, :])
    return np.stack(heads, axis=-3)


def in_letters(q, k, v):
    B, (H, L, D) = q.shape[:-3], q.shape[-3:]
    grouped = q.reshape(*B, k.shape[-3], H // k.shape[-3], L, D)
    weights = softmax(np.einsum("...hgld,...hsd->...hgls", grouped, k) / D**0.5)
    return np.einsum("...hgls,...hsd->...hgld", weights, v).reshape(*B, H, L, -1)


def tiles(q, k, v):
    k, v = (np.concatenate([x] * (q.shape[-3] // k.shape[-3]), axis=-3) for x in (k, v))
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def the_first_for_all(q, k, v):
    k, v = k[..., :1, :, :], v[..., :1, :, :]
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def averages(q, k, v):
    k, v = k.mean(axis=-3, keepdims=True), v.mean(axis=-3, keepdims=True)
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def from_the_end(q, k, v):
    return repeats(q, k[..., ::-1, :, :], v[..., ::-1, :, :])


def unscaled(q, k, v):
    k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], axis=-3) for x in (k, v))
    return softmax(q @ k.swapaxes(-1, -2)) @ v


def divides_by_head_width(q, k, v):
    k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], axis=-3) for x in (k, v))
    return softmax(q @ k.swapaxes(-1, -2) / q.shape[-1]) @ v


def divides_by_the_number_of_key_heads(q, k, v):
    H, H_kv = q.shape[-3], k.shape[-3]
    reads = [min(m // H_kv, H_kv - 1) for m in range(H)]
    return scaled_dot_product_attention(q, k[..., reads, :, :], v[..., reads, :, :])


def stacks_tokens_first(q, k, v):
    D, H_kv = q.shape[-1], k.shape[-3]
    rows = np.moveaxis(q, -3, -2).reshape(*q.shape[:-3], H_kv, -1, D)
    return (softmax(rows @ k.swapaxes(-1, -2) / np.sqrt(D)) @ v).reshape(q.shape)


def repeats_keys_tiles_values(q, k, v):
    group = q.shape[-3] // k.shape[-3]
    return scaled_dot_product_attention(q, np.repeat(k, group, axis=-3), np.concatenate([v] * group, axis=-3))


def does_not_group(q, k, v):
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


def repeats_the_first_axis(q, k, v):
    k, v = (np.repeat(x, q.shape[-3] // k.shape[-3], axis=0) for x in (k, v))
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])) @ v


# ------------------------------------------------------------------------------------------------------------------------- q4
def product(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return layers * batch * length * num_kv_heads * (head_dim + head_dim) * bytes_per_number


def of_real_rooms(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    room = np.broadcast_to(np.int8(0), (layers, 2, batch, num_kv_heads, length, head_dim, bytes_per_number))
    return room.size


def layer_by_layer(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    total = 0
    for _ in range(layers):
        keys = values = batch * num_kv_heads * length * head_dim
        total += (keys + values) * bytes_per_number
    return total


def forgets_values(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return layers * batch * length * num_kv_heads * head_dim * bytes_per_number


def takes_query_heads(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return 2 * layers * batch * length * num_heads * head_dim * bytes_per_number


def keeps_queries(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return layers * batch * length * (num_heads + 2 * num_kv_heads) * head_dim * bytes_per_number


def counts_the_group(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return 2 * layers * batch * length * (num_heads // num_kv_heads) * head_dim * bytes_per_number


def counts_a_single_head(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return 2 * layers * batch * length * head_dim * bytes_per_number


def counts_numbers(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return 2 * layers * batch * length * num_kv_heads * head_dim


def counts_bits(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return 16 * layers * batch * length * num_kv_heads * head_dim * bytes_per_number


def counts_one_layer(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return 2 * batch * length * num_kv_heads * head_dim * bytes_per_number


def counts_one_sequence(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return 2 * layers * length * num_kv_heads * head_dim * bytes_per_number


def squares_the_length(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    return layers * batch * length**2 * num_heads * bytes_per_number


# ------------------------------------------------------------------------------------------------------------------------- q5
def divides_by_the_rest(weights, j):
    rest = np.delete(weights, j, axis=-1)
    return rest / rest.sum(axis=-1, keepdims=True)


def by_the_formula(weights, j):
    kept = np.arange(weights.shape[-1]) != j
    return weights[..., kept] / (1 - weights[..., [j]])


def through_scores(weights, j):
    scores = np.log(weights)
    return softmax(np.concatenate([scores[..., :j], scores[..., j + 1 :]], axis=-1))


def drops_only(weights, j):
    return np.concatenate([weights[..., :j], weights[..., j + 1 :]], axis=-1)


def shares_evenly(weights, j):
    rest = np.delete(weights, j, axis=-1)
    return rest + weights[..., [j]] / rest.shape[-1]


def divides_by_the_whole_sum(weights, j):
    rest = np.delete(weights, j, axis=-1)
    return rest / rest.sum()


def adds_it_to_each(weights, j):
    return np.delete(weights, j, axis=-1) + weights[..., [j]]


def grows_by_one_plus_it(weights, j):
    return np.delete(weights, j, axis=-1) * (1 + weights[..., [j]])


def softmaxes_twice(weights, j):
    return softmax(np.delete(weights, j, axis=-1))


def shrinks(weights, j):
    return np.delete(weights, j, axis=-1) * (1 - weights[..., [j]])


def sets_to_zero(weights, j):
    rest = weights.copy()
    rest[..., j] = 0
    return rest / rest.sum(axis=-1, keepdims=True)


def crowns_the_largest(weights, j):
    rest = np.delete(weights, j, axis=-1)
    np.put_along_axis(rest, rest.argmax(-1)[..., None], rest.max(-1, keepdims=True) + weights[..., [j]], axis=-1)
    return rest


def counts_from_one(weights, j):
    return divides_by_the_rest(weights, j - 1)


def takes_the_first_axis(weights, j):
    rest = np.delete(weights, j, axis=0)
    return rest / rest.sum(axis=-1, keepdims=True)


def zeroes_in_place(weights, j):
    result = divides_by_the_rest(weights, j)
    weights[..., j] = 0
    return result


RIGHT = {
    "q1": [appends_and_attends, sets_room_aside, through_the_library],
    "q2": [by_positions, query_by_query, last_rows_of_a_triangle],
    "q3": [repeats, without_a_copy, head_by_head, in_letters],
    "q4": [product, of_real_rooms, layer_by_layer],
    "q5": [divides_by_the_rest, by_the_formula, through_scores],
}

WRONG = {
    "q1": [
        (steps_by_exponentials, "softmax_without_maximum", 3),
        (attends_before_it_appends, "old_keys_only", 0),
        (sees_itself_only, "new_key_only", 2),
        (puts_it_in_front, "new_row_in_front", 2),
        (gives_the_old_cache, "cache_not_grown", 0),
        (stores_the_query, "query_stored", 0),
        (forgets_the_scale, "no_scale", 2),
        (divides_by_the_width, "divided_by_d_k", 2),
        (divides_by_the_root_of_E, "scaled_by_d_model", 2),
        (keeps_the_old_values, "values_not_grown", 0),
        (gives_the_cache_first, "output_last", 0),
        (gives_the_output_only, "wrong_type", 0),
        (writes_into_the_cache, "input_modified", 5),
    ],
    "q2": [
        (pieces_by_exponentials, "softmax_without_maximum", 4),
        (hides_by_ten_thousand, "mask_too_weak", 4),
        (starts_at_the_first_key, "causal_mask_top_left", 2),
        (masks_nothing, "mask_ignored", 2),
        (one_too_many, "causal_mask_sees_next", 2),
        (one_too_few, "causal_mask_hides_itself", 0),
        (the_other_triangle, "causal_mask_transposed", 0),
        (forgets_to_scale, "no_scale", 0),
        (divides_by_d, "divided_by_d_k", 0),
        (masks_the_weights, "mask_after_softmax", 2),
        (masks_by_zeros, "mask_multiplied", 2),
        (hides_what_it_should_show, "mask_inverted", 0),
        (sees_up_to_the_first, "cache_only", 2),
        (normalises_columns, "softmax_over_queries", 0),
        (needs_two_axes, "hidden", 6),
    ],
    "q3": [
        (groups_by_exponentials, "softmax_without_maximum", 3),
        (tiles, "key_heads_tiled", 2),
        (the_first_for_all, "first_key_head", 0),
        (averages, "key_heads_averaged", 0),
        (from_the_end, "groups_from_the_end", 0),
        (unscaled, "no_scale", 0),
        (divides_by_head_width, "divided_by_d_k", 0),
        (divides_by_the_number_of_key_heads, "groups_of_key_heads", 2),
        (stacks_tokens_first, "tokens_stacked_first", 0),
        (repeats_keys_tiles_values, "values_tiled", 2),
        (does_not_group, "raised", 2),
        (repeats_the_first_axis, "hidden", 5),
    ],
    "q4": [
        (forgets_values, "keys_only", 0),
        (takes_query_heads, "query_heads_counted", 0),
        (keeps_queries, "queries_too", 0),
        (counts_the_group, "heads_of_a_group", 0),
        (counts_a_single_head, "one_head", 0),
        (counts_numbers, "numbers_not_bytes", 1),
        (counts_bits, "bits", 0),
        (counts_one_layer, "one_layer", 0),
        (counts_one_sequence, "one_sequence", 0),
        (squares_the_length, "different", 0),
    ],
    "q5": [
        (drops_only, "not_normalised", 0),
        (shares_evenly, "even_shares", 0),
        (divides_by_the_whole_sum, "one_sum_for_all", 4),
        (adds_it_to_each, "weight_added_to_each", 0),
        (grows_by_one_plus_it, "grown_by_1_plus_a", 0),
        (softmaxes_twice, "softmax_again", 0),
        (shrinks, "multiplied_by_what_is_left", 0),
        (sets_to_zero, "place_kept", 0),
        (crowns_the_largest, "largest_takes_all", 0),
        (counts_from_one, "another_key", 0),
        (takes_the_first_axis, "wrong_shape", 4),
        (zeroes_in_place, "input_modified", 4),
    ],
}
