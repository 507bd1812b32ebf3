"""Answers to 08_heads."""

import numpy as np

from mha_lib.questions.heads import _real


# ------------------------------------------------------------------------------------------------------------------- q2, right
def cuts_and_swaps(x, num_heads):
    return x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(-3, -2)


def stacks_slices(x, num_heads):
    D = x.shape[-1] // num_heads
    return np.stack([x[..., m * D : (m + 1) * D] for m in range(num_heads)], axis=-3)


def splits_with_numpy(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1), axis=-3)


def takes_columns_by_index(x, num_heads):
    columns = np.arange(x.shape[-1]).reshape(num_heads, 1, -1)  # (H, 1, D)
    rows = np.arange(x.shape[-2])[:, None]  # (L, 1)
    return x[..., rows, columns]


def turns_then_cuts(x, num_heads):
    L, width = x.shape[-2:]
    turned = x.swapaxes(-1, -2).reshape(*x.shape[:-2], num_heads, width // num_heads, L)
    return turned.swapaxes(-1, -2)


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def only_asks_for_the_shape(x, num_heads):
    *batch, L, width = x.shape
    return np.reshape(x, (*batch, num_heads, L, width // num_heads))


def deals_out(x, num_heads):
    return np.stack([x[..., m::num_heads] for m in range(num_heads)], axis=-3)


def leaves_heads_behind(x, num_heads):
    return x.reshape(*x.shape[:-1], num_heads, x.shape[-1] // num_heads)


def transposes_by_T(x, num_heads):
    D = x.shape[-1] // num_heads
    return x.swapaxes(-1, -2).reshape(*x.shape[:-2], num_heads, D, x.shape[-2])


def swaps_the_first_two(x, num_heads):
    L, width = x.shape
    return x.reshape(L, num_heads, width // num_heads).swapaxes(0, 1)


def swaps_axes_0_and_1(x, num_heads):
    return x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(0, 1)


def stacks_in_front(x, num_heads):
    return np.stack(np.split(x, num_heads, axis=-1))


def gives_a_list_of_heads(x, num_heads):
    return np.split(x, num_heads, axis=-1)


def fills_zeros(x, num_heads):
    D = x.shape[-1] // num_heads
    heads = np.zeros((*x.shape[:-2], num_heads, x.shape[-2], D))
    for m in range(num_heads):
        heads[..., m, :, :] = x[..., m * D : (m + 1) * D]
    return heads


def reverses_heads(x, num_heads):
    return cuts_and_swaps(x, num_heads)[..., ::-1, :, :]


def knows_only_two_heads(x, num_heads):
    return np.stack(np.split(x, 2, axis=-1), axis=-3)


def works_in_the_given_array(x, num_heads):
    x -= x.min()
    return cuts_and_swaps(x + x.dtype.type(0), num_heads)


def sets_the_shape(x, num_heads):
    x.shape = (*x.shape[:-1], num_heads, x.shape[-1] // num_heads)
    return x.swapaxes(-3, -2)


def only_prints(x, num_heads):
    print(cuts_and_swaps(x, num_heads))


# ------------------------------------------------------------------------------------------------------------------- q3, right
def swaps_and_joins(x):
    y = x.swapaxes(-3, -2)
    return y.reshape(*y.shape[:-2], -1)


def concatenates(x):
    return np.concatenate([x[..., m, :, :] for m in range(x.shape[-3])], axis=-1)


def copies_slices(x):
    H, L, D = x.shape[-3:]
    result = np.empty((*x.shape[:-3], L, H * D), dtype=x.dtype)
    for m in range(H):
        result[..., m * D : (m + 1) * D] = x[..., m, :, :]
    return result


def joins_by_einsum(x):
    y = np.einsum("...hld->...lhd", x)
    return np.reshape(y, (*y.shape[:-2], y.shape[-2] * y.shape[-1]))


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def joins_only(x):
    H, L, D = x.shape[-3:]
    return x.reshape(*x.shape[:-3], L, H * D)


def takes_the_mean(x):
    return np.mean(x, axis=-3)


def adds_the_heads(x):
    return sum(x[..., m, :, :] for m in range(x.shape[-3]))


def alternates(x):
    return np.stack([x[..., m, :, :] for m in range(x.shape[-3])], axis=-1).reshape(*x.shape[:-3], x.shape[-2], -1)


def stacks_rows(x):
    return np.concatenate([x[..., m, :, :] for m in range(x.shape[-3])], axis=-2)


def swaps_only(x):
    return np.moveaxis(x, -3, -2)


def loops_over_the_first_axis(x):
    return np.concatenate(list(x), axis=-1)


def needs_three_axes(x):
    H, L, D = x.shape
    return x.transpose(1, 0, 2).reshape(L, H * D)


def sorts_heads_backwards(x):
    return concatenates(x[..., ::-1, :, :])


def zeroes_the_last(x):
    result = concatenates(x)
    x[...] = 0
    return result


# ------------------------------------------------------------------------------------------------------------------- q4, right
def _softmax(x):
    largest = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(largest), largest, 0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def _masked(scores, mask):
    return scores if mask is None else np.where(mask, scores, -np.inf)


def heads_as_an_axis(query, key, value, num_heads, mask=None):
    q, k, v = (cuts_and_swaps(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return swaps_and_joins(weights @ v), weights


def head_by_head(query, key, value, num_heads, mask=None):
    D, D_v = query.shape[-1] // num_heads, value.shape[-1] // num_heads
    L, S = query.shape[-2], key.shape[-2]
    batch = query.shape[:-2]
    allowed = np.broadcast_to(True if mask is None else mask, (*batch, num_heads, L, S))
    outputs, maps = [], []
    for m in range(num_heads):
        q, k = (x[..., m * D : (m + 1) * D] for x in (query, key))
        scores = np.where(allowed[..., m, :, :], q @ k.swapaxes(-1, -2) / D**0.5, -np.inf)
        maps.append(_softmax(scores))
        outputs.append(maps[-1] @ value[..., m * D_v : (m + 1) * D_v])
    return np.concatenate(outputs, axis=-1), np.stack(maps, axis=-3)


def in_letters(query, key, value, num_heads, mask=None):
    def letters(x):
        return x.reshape(*x.shape[:-1], num_heads, -1)  # heads stay behind the tokens

    q, k, v = letters(query), letters(key), letters(value)
    scores = np.einsum("...lhd,...shd->...hls", q, k) / q.shape[-1] ** 0.5
    weights = _softmax(_masked(scores, mask))
    mixed = np.einsum("...hls,...shd->...lhd", weights, v)
    return mixed.reshape(*mixed.shape[:-2], -1), weights


def with_a_bias(query, key, value, num_heads, mask=None):
    q, k, v = (stacks_slices(x, num_heads) for x in (query, key, value))
    forbidden = 0 if mask is None else np.where(mask, 0, -np.inf)
    weights = _softmax((q * q.shape[-1] ** -0.5) @ np.swapaxes(k, -1, -2) + forbidden)
    return concatenates(weights @ v), weights


# ------------------------------------------------------------------------------------------------------------------- q4, wrong
def _heads_at_once(query, key, value, num_heads, weights_of):
    q, k, v = (cuts_and_swaps(x, num_heads) for x in (query, key, value))
    weights = weights_of(q, k)
    return swaps_and_joins(weights @ v), weights


def forgets_the_root(query, key, value, num_heads, mask=None):
    return _heads_at_once(query, key, value, num_heads, lambda q, k: _softmax(_masked(q @ k.swapaxes(-1, -2), mask)))


def roots_the_whole_width(query, key, value, num_heads, mask=None):
    scale = query.shape[-1] ** 0.5  # H*D
    return _heads_at_once(
        query, key, value, num_heads, lambda q, k: _softmax(_masked(q @ k.swapaxes(-1, -2) / scale, mask))
    )


def divides_by_the_width(query, key, value, num_heads, mask=None):
    return _heads_at_once(
        query, key, value, num_heads, lambda q, k: _softmax(_masked(q @ k.swapaxes(-1, -2) / q.shape[-1], mask))
    )


def never_splits(query, key, value, num_heads, mask=None):
    weights = _softmax(_masked(query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1]), mask))
    return weights @ value, weights


def reshapes_both_ways(query, key, value, num_heads, mask=None):
    q, k, v = (only_asks_for_the_shape(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return joins_only(weights @ v), weights


def reshapes_before(query, key, value, num_heads, mask=None):
    q, k, v = (only_asks_for_the_shape(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return swaps_and_joins(weights @ v), weights


def reshapes_after(query, key, value, num_heads, mask=None):
    q, k, v = (cuts_and_swaps(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return joins_only(weights @ v), weights


def deals_out_and_attends(query, key, value, num_heads, mask=None):
    q, k, v = (deals_out(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return swaps_and_joins(weights @ v), weights


def softmax_along_the_heads(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        scores = _masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask)
        return _softmax(scores.swapaxes(-3, -1)).swapaxes(-3, -1)

    return _heads_at_once(query, key, value, num_heads, weights_of)


def softmax_down_the_columns(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        scores = _masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask)
        return _softmax(scores.swapaxes(-2, -1)).swapaxes(-2, -1)

    return _heads_at_once(query, key, value, num_heads, weights_of)


def mixes_the_keys(query, key, value, num_heads, mask=None):
    return heads_as_an_axis(query, key, key, num_heads, mask)


def keys_ask(query, key, value, num_heads, mask=None):
    q, k, v = (cuts_and_swaps(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(k @ q.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return swaps_and_joins(weights @ v), weights


def hides_what_is_allowed(query, key, value, num_heads, mask=None):
    return heads_as_an_axis(query, key, value, num_heads, None if mask is None else ~mask)


def multiplies_the_weights(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        weights = _softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]))
        return weights if mask is None else weights * mask

    return _heads_at_once(query, key, value, num_heads, weights_of)


def does_not_mask(query, key, value, num_heads, mask=None):
    return heads_as_an_axis(query, key, value, num_heads)


def fills_a_large_number(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        return _softmax(scores if mask is None else np.where(mask, scores, -1e20))

    return _heads_at_once(query, key, value, num_heads, weights_of)


def turns_the_mask(query, key, value, num_heads, mask=None):
    return heads_as_an_axis(query, key, value, num_heads, None if mask is None else mask.swapaxes(-1, -2))


def uses_the_first_mask(query, key, value, num_heads, mask=None):
    if mask is not None and mask.ndim == 4:
        mask = mask[0]
    return heads_as_an_axis(query, key, value, num_heads, mask)


def one_row_per_sentence(query, key, value, num_heads, mask=None):
    """A mask with four axes is taken for padding."""
    if mask is not None and mask.ndim == 4:
        mask = mask[:, :, :1]
    return heads_as_an_axis(query, key, value, num_heads, mask)


def one_mask_for_all_heads(query, key, value, num_heads, mask=None):
    if mask is not None and mask.ndim == 4:
        mask = mask[:, :1]
    return heads_as_an_axis(query, key, value, num_heads, mask)


def exponentials(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        e = np.exp(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
        return e / e.sum(axis=-1, keepdims=True)

    return _heads_at_once(query, key, value, num_heads, weights_of)


def guarded_exponentials(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        e = np.exp(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
        total = e.sum(axis=-1, keepdims=True)
        return e / np.where(total == 0, 1, total)

    return _heads_at_once(query, key, value, num_heads, weights_of)


def fills_ten_thousand(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        return _softmax(scores if mask is None else np.where(mask, scores, -10_000))

    return _heads_at_once(query, key, value, num_heads, weights_of)


def softmax_of_an_empty_row(query, key, value, num_heads, mask=None):
    def weights_of(q, k):
        scores = _masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    return _heads_at_once(query, key, value, num_heads, weights_of)


def averages_the_heads(query, key, value, num_heads, mask=None):
    q, k, v = (cuts_and_swaps(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return (weights @ v).mean(axis=-3), weights


def gives_the_output_only(query, key, value, num_heads, mask=None):
    return heads_as_an_axis(query, key, value, num_heads, mask)[0]


def gives_the_mean_map(query, key, value, num_heads, mask=None):
    output, weights = heads_as_an_axis(query, key, value, num_heads, mask)
    return output, weights.mean(axis=-3)


def scales_the_query_in_place(query, key, value, num_heads, mask=None):
    query *= (query.shape[-1] // num_heads) ** -0.5
    q, k, v = (cuts_and_swaps(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2), mask))
    return swaps_and_joins(weights @ v), weights


def forgets_the_batch(query, key, value, num_heads, mask=None):
    q, k, v = (swaps_the_first_two(x, num_heads) for x in (query, key, value))
    weights = _softmax(_masked(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]), mask))
    return swaps_and_joins(weights @ v), weights


RIGHT = {
    "q1": [[0, 0, 1, 3, 11], (0, 0, 1, 3, 11), np.array([0, 0, 1, 3, 11])],
    "q2": [cuts_and_swaps, stacks_slices, splits_with_numpy, takes_columns_by_index, turns_then_cuts],
    "q3": [swaps_and_joins, concatenates, copies_slices, joins_by_einsum],
    "q4": [heads_as_an_axis, head_by_head, in_letters, with_a_bias],
    "q5": [_real(), _real().tolist(), [0.02, 0.68, 0.02, 0.04, 0.02, 0.01, 0.04, 0.19, 0.04, 0.09, 0.07, 0.04]],
}

WRONG = {
    "q1": [
        ([7, 7, 8, 4, 11], "split_in_turn", 0),
        ([0, 2, 2, 8, 31], "divided_by_the_heads", 0),
        ([1, 1, 2, 4, 12], "counted_from_1", 0),
        ([7, 31, 0, 4, 31], "place_in_the_head", 0),
        ([0, 0, 0, 3, 11], "different", 0),
        ([0, 0, 1, 3], "wrong_shape", 0),
        ("0 0 1 3 11", "wrong_type", 0),
    ],
    "q2": [
        (only_asks_for_the_shape, "split_without_transpose", 0),
        (deals_out, "split_in_turn", 0),
        (leaves_heads_behind, "cut_and_not_moved", 0),
        (transposes_by_T, "tokens_last", 0),
        (stacks_in_front, "heads_in_front_of_the_batch", 4),
        (swaps_the_first_two, "raised", 4),
        (swaps_axes_0_and_1, "counted_from_the_front", 4),
        (gives_a_list_of_heads, "wrong_type", 0),
        (fills_zeros, "wrong_dtype", 5),
        (reverses_heads, "different", 0),
        (knows_only_two_heads, "raised", 0),
        (works_in_the_given_array, "different", 0),
        (sets_the_shape, "input_modified", 5),
    ],
    "q3": [
        (joins_only, "merge_without_transpose", 0),
        (takes_the_mean, "heads_averaged", 0),
        (adds_the_heads, "heads_added", 0),
        (alternates, "interleaved", 0),
        (stacks_rows, "under_each_other", 0),
        (swaps_only, "moved_and_not_joined", 0),
        (loops_over_the_first_axis, "different", 4),
        (needs_three_axes, "raised", 4),
        (sorts_heads_backwards, "different", 0),
        (zeroes_the_last, "input_modified", 4),
    ],
    "q4": [
        (forgets_the_root, "no_scale", 0),
        (roots_the_whole_width, "divided_by_sqrt_d_model", 0),
        (divides_by_the_width, "divided_by_d_k", 0),
        (never_splits, "one_wide_head", 0),
        (reshapes_both_ways, "transpose_forgotten_twice", 0),
        (reshapes_before, "split_without_transpose", 0),
        (reshapes_after, "merge_without_transpose", 0),
        (deals_out_and_attends, "split_in_turn", 0),
        (softmax_along_the_heads, "softmax_over_heads", 0),
        (softmax_down_the_columns, "softmax_over_queries", 0),
        (mixes_the_keys, "keys_as_values", 0),
        (keys_ask, "query_and_key_swapped", 0),
        (hides_what_is_allowed, "mask_inverted", 5),
        (multiplies_the_weights, "mask_after_softmax", 5),
        (does_not_mask, "mask_ignored", 5),
        (fills_a_large_number, "mask_with_finite_value", 7),
        (turns_the_mask, "mask_transposed", 5),
        (uses_the_first_mask, "different", 7),
        (one_row_per_sentence, "different", 7),
        (one_mask_for_all_heads, "different", 7),
        (exponentials, "softmax_without_maximum", 3),
        (guarded_exponentials, "maximum_forgotten", 4),
        (fills_ten_thousand, "mask_too_weak", 6),
        (softmax_of_an_empty_row, "masked_row_is_nan", 7),
        (averages_the_heads, "heads_averaged", 0),
        (gives_the_output_only, "wrong_type", 0),
        (gives_the_mean_map, "wrong_shape", 0),
        (scales_the_query_in_place, "input_modified", 7),
        (forgets_the_batch, "raised", 5),
    ],
    "q5": [
        (_real(bias=False), "bias_forgotten", 0),
        (_real(turn=True), "turned_around", 0),
        (0.105, "mean_of_the_heads", 0),
        (0.68, "wrong_shape", 0),
        ([0.68] * 12, "different", 0),
    ],
}
