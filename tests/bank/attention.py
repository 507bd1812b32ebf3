"""Answers to 07_attention."""

import numpy as np

from mha_lib.numpy import causal_mask, project, softmax


# ------------------------------------------------------------------------------------------------------------------- q2, right
def five_lines(query, key, value, *, return_weights=False):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    weights = softmax(scores)
    output = weights @ value
    if return_weights:
        return output, weights
    return output


def by_einsum(query, key, value, *, return_weights=False):
    raw = np.einsum("...ld,...sd->...ls", query, key)
    weights = softmax(raw / query.dtype.type(np.sqrt(key.shape[-1])))
    output = np.einsum("...ls,...sv->...lv", weights, value)
    return (output, weights) if return_weights else output


def by_loops(query, key, value, *, return_weights=False):
    L, S, D_v = query.shape[-2], key.shape[-2], value.shape[-1]
    scores = np.zeros((*query.shape[:-1], S), query.dtype)
    for i in range(L):
        for j in range(S):
            scores[..., i, j] = (query[..., i, :] * key[..., j, :]).sum(-1) / query.shape[-1] ** 0.5
    weights = softmax(scores)
    output = np.zeros((*query.shape[:-1], D_v), query.dtype)
    for i in range(L):
        for j in range(S):
            output[..., i, :] += weights[..., i, j, None] * value[..., j, :]
    return (output, weights) if return_weights else output


def numerator_and_denominator(query, key, value, return_weights=False):
    s = query @ np.moveaxis(key, -1, -2) / float(np.sqrt(query.shape[-1]))
    e = np.exp(s - s.max(-1, keepdims=True))
    total = e.sum(-1, keepdims=True)
    return ((e @ value) / total, e / total) if return_weights else (e @ value) / total


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def _with(scale=None, axis=-1, first=None):
    def attend(query, key, value, *, return_weights=False):
        scores = query @ key.swapaxes(-1, -2)
        scores = scores / (query.shape[-1] ** 0.5 if scale is None else scale(query, key, value))
        weights = softmax(scores, axis=axis)
        return (weights @ value, weights) if return_weights else weights @ value

    return attend


unscaled = _with(scale=lambda query, key, value: 1)
by_d_k = _with(scale=lambda query, key, value: key.shape[-1])
by_root_of_all_heads = _with(scale=lambda q, k, v: (q.shape[-1] * (q.shape[-3] if q.ndim > 2 else 1)) ** 0.5)
by_root_of_d_v = _with(scale=lambda query, key, value: value.shape[-1] ** 0.5)
by_root_of_s = _with(scale=lambda query, key, value: len(key[..., :, 0].T) ** 0.5)
over_queries = _with(axis=-2)
over_heads = _with(axis=-3)


def keys_ask(query, key, value, *, return_weights=False):
    weights = softmax(key @ query.swapaxes(-1, -2) / query.shape[-1] ** 0.5)
    return (weights @ value, weights) if return_weights else weights @ value


def mean_of_keys(query, key, value, *, return_weights=False):
    weights = softmax(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5)
    return (weights @ key, weights) if return_weights else weights @ key


def turned_weights(query, key, value, *, return_weights=False):
    weights = softmax(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5)
    output = weights.swapaxes(-1, -2) @ value
    return (output, weights) if return_weights else output


def no_softmax(query, key, value, *, return_weights=False):
    weights = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    return (weights @ value, weights) if return_weights else weights @ value


def weights_then_output(query, key, value, *, return_weights=False):
    result = five_lines(query, key, value, return_weights=True)
    return (result[1], result[0]) if return_weights else result[0]


def always_both(query, key, value, *, return_weights=False):
    return five_lines(query, key, value, return_weights=True)


def never_both(query, key, value, *, return_weights=False):
    return five_lines(query, key, value)


def scores_with_it(query, key, value, *, return_weights=False):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    return (softmax(scores) @ value, scores) if return_weights else softmax(scores) @ value


def transposes_everything(query, key, value, *, return_weights=False):
    weights = softmax(query @ key.T / query.shape[-1] ** 0.5)
    return (weights @ value, weights) if return_weights else weights @ value


def scales_the_query_in_place(query, key, value, *, return_weights=False):
    query /= query.shape[-1] ** 0.5
    weights = softmax(query @ key.swapaxes(-1, -2))
    return (weights @ value, weights) if return_weights else weights @ value


def in_float64(query, key, value, *, return_weights=False):
    return five_lines(*(x.astype(float) for x in (query, key, value)), return_weights=return_weights)


def as_lists(query, key, value, *, return_weights=False):
    output, weights = five_lines(query, key, value, return_weights=True)
    return (output.tolist(), weights.tolist()) if return_weights else output.tolist()


# ------------------------------------------------------------------------------------------------------------------- q3, right
def values_side_by_side(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    allowed = np.ones(scores.shape, dtype=bool)
    if mask is not None:
        allowed = allowed & mask
    if is_causal:
        allowed = allowed & causal_mask(*scores.shape[-2:])
    weights = softmax(np.where(allowed, scores, -np.inf))
    parts = weights[..., None] * value[..., None, :, :]  # (..., L, S, D_v)
    output = np.where(allowed[..., None], parts, 0).sum(-2)
    return (output, weights) if return_weights else output


def query_by_query(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    shape = (*query.shape[:-1], key.shape[-2])
    allowed = np.broadcast_to(True if mask is None else mask, shape)
    output, weights = np.zeros((*query.shape[:-1], value.shape[-1])), np.zeros(shape)
    for place in np.ndindex(query.shape[:-1]):
        *front, i = place
        keys = allowed[place].copy()
        if is_causal:
            keys[i + 1 :] = False
        k, v = key[tuple(front)][keys], value[tuple(front)][keys]
        weights[place][keys] = softmax(k @ query[place] / np.sqrt(query.shape[-1]))
        output[place] = weights[place][keys] @ v
    return (output, weights) if return_weights else output


def finite_part_and_the_rest(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    """The product with the finite values; then NaN wherever a strange one is allowed."""
    scores = np.einsum("...ld,...sd->...ls", query, key) / np.sqrt(query.shape[-1])
    allowed = np.ones(scores.shape, bool) if mask is None else np.broadcast_to(mask, scores.shape).copy()
    if is_causal:
        allowed &= np.tri(*scores.shape[-2:], dtype=bool)
    weights = softmax(np.where(allowed, scores, -np.inf))
    finite = np.isfinite(value)
    output = weights @ np.where(finite, value, 0)
    output[(allowed.astype(float) @ ~finite) > 0] = np.nan
    return (output, weights) if return_weights else output


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def _masked(allow, block=None, soft=softmax, scale=None, put=None):
    """Attention as many write it: `allow` makes the mask, the product is weights @ value."""

    def attend(query, key, value, *, mask=None, is_causal=False, return_weights=False):
        scores = query @ key.swapaxes(-1, -2) / (query.shape[-1] ** 0.5 if scale is None else scale)
        allowed = allow(mask, is_causal, *scores.shape[-2:])
        if allowed is not None:
            scores = np.where(allowed, scores, -np.inf) if block is None else block(scores, allowed)
        weights = soft(scores)
        if put is not None and allowed is not None:
            weights = put(weights, allowed)
        return (weights @ value, weights) if return_weights else weights @ value

    return attend


def _together(mask, is_causal, L, S):
    allowed = np.ones((L, S), bool)
    if is_causal:
        allowed = allowed & causal_mask(L, S)
    return allowed if mask is None else allowed & mask


def _plain_softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def _triangle(shift):
    return lambda mask, is_causal, L, S: (
        _together(mask, False, L, S) & (causal_mask(L, S, shift) if is_causal else True)
    )


def _upper(mask, is_causal, L, S):
    return _together(mask, False, L, S) & (np.triu(np.ones((L, S), bool)) if is_causal else True)


def _without_maximum(x):
    return np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True)


def _without_maximum_guarded(x):
    total = np.exp(x).sum(axis=-1, keepdims=True)
    return np.divide(np.exp(x), total, out=np.zeros_like(x), where=total > 0)


plain_product = _masked(_together)
exponentials = _masked(_together, soft=_without_maximum)
guarded_exponentials = _masked(_together, soft=_without_maximum_guarded)
ten_thousand = _masked(_together, block=lambda s, allowed: np.where(allowed, s, -1e4))
a_billion = _masked(_together, block=lambda s, allowed: np.where(allowed, s, -1e9))
unguarded = _masked(_together, soft=_plain_softmax)
adds_the_mask = _masked(_together, block=lambda s, allowed: s + allowed)
times_the_mask = _masked(_together, block=lambda s, allowed: s * allowed)
after = _masked(_together, block=lambda s, allowed: s, put=lambda w, allowed: w * allowed)
no_mask_at_all = _masked(lambda mask, is_causal, L, S: None)
no_triangle = _masked(lambda mask, is_causal, L, S: mask)
only_triangle = _masked(lambda mask, is_causal, L, S: causal_mask(L, S) if is_causal else None)
triangle_wins = _masked(lambda mask, is_causal, L, S: causal_mask(L, S) if is_causal else mask)
mask_wins = _masked(lambda mask, is_causal, L, S: causal_mask(L, S) if mask is None and is_causal else mask)
either = _masked(
    lambda mask, is_causal, L, S: (
        mask if not is_causal else causal_mask(L, S) if mask is None else mask | causal_mask(L, S)
    )
)
true_is_forbidden = _masked(
    lambda mask, is_causal, L, S: _together(None if mask is None else np.logical_not(mask), is_causal, L, S)
)
upside_down = _masked(_together, block=lambda s, allowed: np.where(allowed, -np.inf, s))
sees_next, hides_itself, transposed = _masked(_triangle(1)), _masked(_triangle(-1)), _masked(_upper)
at_the_end = _masked(
    lambda mask, is_causal, L, S: _together(mask, False, L, S) & (causal_mask(L, S, S - L) if is_causal else True)
)
forgets_the_scale = _masked(_together, scale=1)
wrong_softmax = _masked(_together, soft=lambda x: softmax(x, axis=-2))


def hides_every_nan(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    value = np.nan_to_num(value, posinf=0, neginf=0)
    return plain_product(query, key, value, mask=mask, is_causal=is_causal, return_weights=return_weights)


def hides_nan_in_keys(query, key, value, **options):
    return values_side_by_side(query, np.nan_to_num(key), value, **options)


def scores_without_nan(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = np.nan_to_num(query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5)
    allowed = np.broadcast_to(_together(mask, is_causal, *scores.shape[-2:]), scores.shape)
    weights = softmax(np.where(allowed, scores, -np.inf))
    parts = np.where(allowed[..., None], weights[..., None] * value[..., None, :, :], 0)
    return (parts.sum(-2), weights) if return_weights else parts.sum(-2)


def cleans_the_output(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    result = plain_product(query, key, value, mask=mask, is_causal=is_causal, return_weights=True)
    return tuple(np.nan_to_num(x) for x in result) if return_weights else np.nan_to_num(result[0])


def mask_of_sequence_0(query, key, value, *, mask=None, **options):
    if mask is not None and query.ndim == 4 and mask.ndim == 4:
        mask = mask[:1]
    return plain_product(query, key, value, mask=mask, **options)


def skips_the_last_sequence(query, key, value, *, mask=None, **options):
    if mask is not None and mask.ndim == 4:
        mask = mask.copy()
        mask[-1] = True
    return values_side_by_side(query, key, value, mask=mask, **options)


def swaps_results(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    output, weights = values_side_by_side(query, key, value, mask=mask, is_causal=is_causal, return_weights=True)
    return (weights, output) if return_weights else output


def mean_of_keys_masked(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return plain_product(query, key, key, mask=mask, is_causal=is_causal, return_weights=return_weights)


def zeroes_values_in_place(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    result = values_side_by_side(query, key, value, mask=mask, is_causal=is_causal, return_weights=return_weights)
    value[~np.isfinite(value)] = 0
    return result


def no_keywords(query, key, value):
    return five_lines(query, key, value)


# ------------------------------------------------------------------------------------------------------------------- q4
def in_the_open(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    q, k, v = x @ W_Q + b_Q, x @ W_K + b_K, x @ W_V + b_V
    weights = softmax(q @ k.T / np.sqrt(q.shape[-1]))
    return weights @ v, weights


def by_project(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return five_lines(project(x, W_Q, b_Q), project(x, W_K, b_K), project(x, W_V, b_V), return_weights=True)


def values_last(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    """The weights sum to 1, so b_V may be added at the end, and b_K may stay away."""
    weights = softmax((x @ W_Q + b_Q) @ (x @ W_K).T / W_Q.shape[1] ** 0.5)
    return weights @ x @ W_V + b_V, weights


def one_big_product(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    d = W_Q.shape[1]
    qkv = x @ np.hstack([W_Q, W_K, W_V]) + np.concatenate([b_Q, b_K, b_V])
    q, k, v = np.split(qkv, [d, 2 * d], axis=1)
    return by_einsum(q, k, v, return_weights=True)


def no_biases(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return five_lines(x @ W_Q, x @ W_K, x @ W_V, return_weights=True)


def no_query_bias(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return five_lines(x @ W_Q, x @ W_K + b_K, x @ W_V + b_V, return_weights=True)


def no_value_bias(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return five_lines(x @ W_Q + b_Q, x @ W_K + b_K, x @ W_V, return_weights=True)


def raw_values(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    weights = in_the_open(x, W_Q, b_Q, W_K, b_K, W_V, b_V)[1]
    return weights @ x, weights


def k_for_v(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    k = x @ W_K + b_K
    return five_lines(x @ W_Q + b_Q, k, k, return_weights=True)


def swapped(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return five_lines(x @ W_K + b_K, x @ W_Q + b_Q, x @ W_V + b_V, return_weights=True)


def like_linear(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return five_lines(x @ W_Q.T + b_Q, x @ W_K.T + b_K, x @ W_V.T + b_V, return_weights=True)


def unscaled_head(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return unscaled(x @ W_Q + b_Q, x @ W_K + b_K, x @ W_V + b_V, return_weights=True)


def by_d_model(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    weights = softmax((x @ W_Q + b_Q) @ (x @ W_K + b_K).T / np.sqrt(W_Q.shape[0]))
    return weights @ (x @ W_V + b_V), weights


def columns_sum_to_one(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return over_queries(x @ W_Q + b_Q, x @ W_K + b_K, x @ W_V + b_V, return_weights=True)


def causal_head(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return plain_product(x @ W_Q + b_Q, x @ W_K + b_K, x @ W_V + b_V, is_causal=True, return_weights=True)


def output_only(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return in_the_open(x, W_Q, b_Q, W_K, b_K, W_V, b_V)[0]


def root_of_32(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    weights = softmax((x @ W_Q + b_Q) @ (x @ W_K + b_K).T / np.sqrt(32))
    return weights @ (x @ W_V + b_V), weights


def adds_in_place(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    q = x @ W_Q
    b_Q += 0.5
    return five_lines(q + b_Q - 0.5, x @ W_K + b_K, x @ W_V + b_V, return_weights=True)


# ------------------------------------------------------------------------------------------------------------------- q5
def by_norm(weights, value, W_O):
    moved = weights * np.linalg.norm(value @ W_O, axis=-1)[..., None, :]
    return moved / moved.sum(axis=-1, keepdims=True)


def vector_by_vector(weights, value, W_O):
    parts = weights[..., None] * (value @ W_O)[..., None, :, :]  # (..., L, S, E)
    length = np.sqrt(np.square(parts).sum(-1))
    return length / length.sum(-1)[..., None]


def by_the_gram_matrix(weights, value, W_O):
    length = np.sqrt(np.einsum("...sd,de,...se->...s", value, W_O @ W_O.T, value))
    moved = np.einsum("...ls,...s->...ls", weights, length)
    return moved / np.einsum("...ls->...l", moved)[..., None]


def lengths_only(weights, value, W_O):
    return weights * np.linalg.norm(value @ W_O, axis=-1)[..., None, :]


def just_weights(weights, value, W_O):
    return weights


def without_W_O(weights, value, W_O):
    moved = weights * np.linalg.norm(value, axis=-1)[..., None, :]
    return moved / moved.sum(axis=-1, keepdims=True)


def without_weights(weights, value, W_O):
    length = np.linalg.norm(value @ W_O, axis=-1)[..., None, :] * np.ones(weights.shape)
    return length / length.sum(-1, keepdims=True)


def no_root(weights, value, W_O):
    moved = weights * ((value @ W_O) ** 2).sum(-1)[..., None, :]
    return moved / moved.sum(-1, keepdims=True)


def no_root_with_weights(weights, value, W_O):
    parts = weights[..., None] * (value @ W_O)[..., None, :, :]
    square = (parts**2).sum(-1)
    return square / square.sum(-1, keepdims=True)


def city_blocks(weights, value, W_O):
    moved = weights * np.linalg.norm(value @ W_O, ord=1, axis=-1)[..., None, :] if value.ndim == 2 else None
    if moved is None:
        moved = weights * np.abs(value @ W_O).sum(-1)[..., None, :]
    return moved / moved.sum(-1, keepdims=True)


def down_the_columns(weights, value, W_O):
    moved = lengths_only(weights, value, W_O)
    return moved / moved.sum(axis=-2, keepdims=True)


def as_a_column(weights, value, W_O):
    moved = weights * np.linalg.norm(value @ W_O, axis=-1, keepdims=True)
    return moved / moved.sum(-1, keepdims=True)


def all_together(weights, value, W_O):
    moved = lengths_only(weights, value, W_O)
    return moved / moved.sum()


def turned_projection(weights, value, W_O):
    return by_norm(weights, value, W_O.T)


def one_norm_for_all(weights, value, W_O):
    moved = weights * np.linalg.norm(value @ W_O)
    return moved / moved.sum(-1, keepdims=True) + 0.0


def only_two_axes(weights, value, W_O):
    moved = weights * np.linalg.norm(value @ W_O, axis=1)
    return moved / moved.sum(-1, keepdims=True)


def scales_the_weights(weights, value, W_O):
    weights *= np.linalg.norm(value @ W_O, axis=-1)[..., None, :]
    return weights / weights.sum(-1, keepdims=True)


def exponentials_of_the_scores(query, key, value, *, return_weights=False):
    e = np.exp(query @ key.swapaxes(-1, -2) / float(np.sqrt(query.shape[-1])))
    weights = e / e.sum(-1, keepdims=True)
    return (weights @ value, weights) if return_weights else weights @ value


RIGHT = {
    "q1": [[0.5, 0.5, 2, 3], np.array([2, 2, 8, 12]) / 4, (0.5, 0.5, 2.0, 3.0)],
    "q2": [five_lines, by_einsum, by_loops, numerator_and_denominator, values_side_by_side],
    "q3": [values_side_by_side, query_by_query, finite_part_and_the_rest],
    "q4": [in_the_open, by_project, values_last, one_big_product],
    "q5": [by_norm, vector_by_vector, by_the_gram_matrix],
}

WRONG = {
    "q1": [
        ([0.25, 0.5, 1, 0.75], "keys_as_values", 0),
        ([0, 0, 1.386, 4.159], "scores_as_weights", 0),
        ([2, 2, 8, 12], "not_divided", 0),
        ([0.667, 0.667, 2, 2], "even_mean", 0),
        ([0.5, 0.5, 2], "wrong_shape", 0),
        ([0.5, 0.5, 1, 3], "different", 0),
    ],
    "q2": [
        (exponentials_of_the_scores, "softmax_without_maximum", 4),
        (unscaled, "no_scale", 0),
        (by_d_k, "divided_by_d_k", 0),
        (by_root_of_all_heads, "divided_by_sqrt_d_model", 3),
        (by_root_of_d_v, "root_of_value_width", 0),
        (by_root_of_s, "root_of_length", 0),
        (over_queries, "softmax_over_queries", 0),
        (over_heads, "softmax_over_heads", 0),
        (keys_ask, "query_and_key_swapped", 0),
        (mean_of_keys, "keys_as_values", 0),
        (turned_weights, "weights_transposed", 0),
        (no_softmax, "softmax_forgotten", 0),
        (weights_then_output, "weights_first", 5),
        (always_both, "wrong_type", 2),
        (never_both, "wrong_type", 5),
        (scores_with_it, "different", 5),
        (transposes_everything, "raised", 3),
        (scales_the_query_in_place, "input_modified", 5),
        (in_float64, "wrong_dtype", 5),
        (as_lists, "wrong_type", 0),
    ],
    "q3": [
        (plain_product, "nan_times_zero", 8),
        (exponentials, "softmax_without_maximum", 5),
        (guarded_exponentials, "maximum_forgotten", 6),
        (ten_thousand, "mask_too_weak", 5),
        (hides_nan_in_keys, "nan_hidden_in_keys", 8),
        (scores_without_nan, "different", 8),
        (a_billion, "mask_with_finite_value", 7),
        (unguarded, "masked_row_is_nan", 7),
        (adds_the_mask, "mask_added", 0),
        (times_the_mask, "mask_multiplied", 0),
        (after, "mask_after_softmax", 0),
        (no_mask_at_all, "mask_ignored", 0),
        (no_triangle, "causal_ignored", 3),
        (only_triangle, "mask_argument_ignored", 2),
        (triangle_wins, "causal_replaces_mask", 5),
        (mask_wins, "mask_replaces_causal", 5),
        (either, "one_is_enough", 5),
        (true_is_forbidden, "mask_inverted", 2),
        (upside_down, "everything_inverted", 0),
        (sees_next, "causal_mask_sees_next", 3),
        (hides_itself, "causal_mask_hides_itself", 3),
        (transposed, "causal_mask_transposed", 3),
        (at_the_end, "causal_bottom_right", 6),
        (forgets_the_scale, "no_scale", 0),
        (wrong_softmax, "different", 0),
        (hides_every_nan, "nan_hidden", 8),
        (cleans_the_output, "output_cleaned", 8),
        (mask_of_sequence_0, "first_mask_for_all", 4),
        (skips_the_last_sequence, "different", 4),
        (swaps_results, "weights_first", 8),
        (mean_of_keys_masked, "keys_as_values", 0),
        (zeroes_values_in_place, "input_modified", 9),
        (no_keywords, "raised", 0),
    ],
    "q4": [
        (no_biases, "bias_forgotten", 0),
        (no_query_bias, "query_bias_forgotten", 0),
        (no_value_bias, "value_bias_forgotten", 0),
        (raw_values, "inputs_as_values", 0),
        (k_for_v, "keys_as_values", 0),
        (swapped, "query_and_key_swapped", 0),
        (like_linear, "weight_transposed", 0),
        (unscaled_head, "no_scale", 0),
        (by_d_model, "divided_by_sqrt_d_model", 0),
        (columns_sum_to_one, "softmax_over_queries", 0),
        (causal_head, "made_causal", 0),
        (output_only, "wrong_type", 0),
        (root_of_32, "different", 4),
        (adds_in_place, "input_modified", 5),
    ],
    "q5": [
        (lengths_only, "not_divided", 0),
        (just_weights, "weights_themselves", 0),
        (without_W_O, "before_W_O", 0),
        (without_weights, "length_alone", 0),
        (no_root, "length_squared", 0),
        (no_root_with_weights, "everything_squared", 0),
        (city_blocks, "absolute_values_added", 0),
        (down_the_columns, "shares_over_queries", 0),
        (as_a_column, "weights_themselves", 0),
        (all_together, "divided_by_everything", 0),
        (turned_projection, "output_projection_turned", 0),
        (one_norm_for_all, "weights_themselves", 0),
        (only_two_axes, "raised", 5),
        (scales_the_weights, "input_modified", 5),
    ],
}
