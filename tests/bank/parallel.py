"""Answers to 20_parallel."""

import numpy as np

from mha_lib.numpy import merge_heads, scaled_dot_product_attention, softmax, split_heads


# ------------------------------------------------------------------------------------------------------------------- q2, right
def three_slices(W_QKV, W_O, rank, size):
    width = W_O.shape[0]
    own = slice(rank * width // size, (rank + 1) * width // size)
    columns = [W_QKV[:, n * width : (n + 1) * width][:, own] for n in range(3)]
    return np.concatenate(columns, axis=-1), W_O[own]


def by_reshape(W_QKV, W_O, rank, size):
    E = W_QKV.shape[0]
    packed = W_QKV.reshape(E, 3, size, -1)[:, :, rank]
    return packed.reshape(E, -1), W_O.reshape(size, -1, W_O.shape[1])[rank]


def by_numbers(W_QKV, W_O, rank, size):
    n = len(W_O) // size
    own = np.arange(rank * n, (rank + 1) * n)
    return W_QKV[:, np.r_[own, own + len(W_O), own + 2 * len(W_O)]], np.array_split(W_O, size)[rank].copy()


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def cuts_straight_through(W_QKV, W_O, rank, size):
    return np.array_split(W_QKV, size, axis=1)[rank], np.array_split(W_O, size)[rank]


def deals_in_turn(W_QKV, W_O, rank, size):
    return W_QKV[:, rank::size], W_O[rank::size, :]


def deals_columns_in_turn(W_QKV, W_O, rank, size):
    return W_QKV[:, rank::size], np.array_split(W_O, size)[rank]


def counts_rows_backwards(W_QKV, W_O, rank, size):
    return three_slices(W_QKV, W_O, rank, size)[0], np.array_split(W_O, size)[-1 - rank]


def cuts_columns_of_both(W_QKV, W_O, rank, size):
    width = W_O.shape[1] // size
    return three_slices(W_QKV, W_O, rank, size)[0], W_O[:, rank * width : (rank + 1) * width]


def keeps_the_output_matrix(W_QKV, W_O, rank, size):
    return three_slices(W_QKV, W_O, rank, size)[0], W_O


def forgets_keys_and_values(W_QKV, W_O, rank, size):
    return np.split(W_QKV[:, : len(W_O)], size, axis=1)[rank], np.split(W_O, size)[rank]


def packs_by_turns(W_QKV, W_O, rank, size):
    columns, rows = three_slices(W_QKV, W_O, rank, size)
    return columns.reshape(len(columns), 3, -1).swapaxes(1, 2).reshape(len(columns), -1), rows


def cuts_rows_of_both(W_QKV, W_O, rank, size):
    return np.array_split(W_QKV, size)[rank], np.array_split(W_O, size)[rank]


def counts_from_one(W_QKV, W_O, rank, size):
    return three_slices(W_QKV, W_O, (rank - 1) % size, size)


def counts_back(W_QKV, W_O, rank, size):
    width = len(W_O) // size
    own = slice((rank - 1) * width, rank * width)
    return np.concatenate([W[:, own] for W in np.split(W_QKV, 3, axis=1)], axis=1), W_O[own]


def keeps_the_projections(W_QKV, W_O, rank, size):
    return W_QKV, np.split(W_O, size)[rank]


def starts_at_row_rank(W_QKV, W_O, rank, size):
    return three_slices(W_QKV, W_O, rank, size)[0], W_O[rank : rank + len(W_O) // size]


def gives_three(W_QKV, W_O, rank, size):
    return (*np.split(three_slices(W_QKV, W_O, rank, size)[0], 3, axis=1), three_slices(W_QKV, W_O, rank, size)[1])


def zeroes_what_it_took(W_QKV, W_O, rank, size):
    columns, rows = by_numbers(W_QKV, W_O, rank, size)
    W_O[:] = 0
    return columns, rows


# ------------------------------------------------------------------------------------------------------------------- q3, right
def device_by_device(x, W_QKV, W_O, b_O, head_dim):
    total = np.zeros(x.shape)
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (split_heads(y, rows.shape[0] // head_dim) for y in np.split(x @ packed, 3, axis=-1))
        total += merge_heads(scaled_dot_product_attention(q, k, v)) @ rows
    return total if b_O is None else total + b_O


def head_by_head(x, W_QKV, W_O, b_O, head_dim):
    result = 0 if b_O is None else b_O
    for r in range(len(W_O)):
        width = W_O.shape[1]
        for start in range(0, width, head_dim):
            own = slice(start, start + head_dim)
            q, k, v = (x @ W_QKV[r][:, n * width : (n + 1) * width][:, own] for n in range(3))
            result = result + softmax(q @ k.T / np.sqrt(head_dim)) @ v @ W_O[r, own]
    return result


def all_at_once(x, W_QKV, W_O, b_O, head_dim):
    p, width, E = W_O.shape
    packed = (x @ W_QKV).reshape(p, len(x), 3, width // head_dim, head_dim)  # (p, L, 3, n, D)
    q, k, v = packed.transpose(2, 0, 3, 1, 4)  # (p, n, L, D) each
    heads = softmax(q @ k.swapaxes(-1, -2) / head_dim**0.5) @ v
    output = np.einsum("pnld,pnde->le", heads, W_O.reshape(p, width // head_dim, head_dim, E))
    return output + (0 if b_O is None else b_O)


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
def _each(x, W_QKV, W_O, head_dim):
    return [device_by_device(x, W_QKV[r : r + 1], W_O[r : r + 1], None, head_dim) for r in range(len(W_O))]


def biases_everywhere(x, W_QKV, W_O, b_O, head_dim):
    return sum(part if b_O is None else part + b_O for part in _each(x, W_QKV, W_O, head_dim))


def forgets_the_bias(x, W_QKV, W_O, b_O, head_dim):
    return sum(_each(x, W_QKV, W_O, head_dim))


def averages(x, W_QKV, W_O, b_O, head_dim):
    mean = np.mean(_each(x, W_QKV, W_O, head_dim), axis=0)
    return mean if b_O is None else mean + b_O


def returns_in_the_loop(x, W_QKV, W_O, b_O, head_dim):
    for part in _each(x, W_QKV, W_O, head_dim):
        return part if b_O is None else part + b_O


def overwrites_in_the_loop(x, W_QKV, W_O, b_O, head_dim):
    for part in _each(x, W_QKV, W_O, head_dim):
        result = part if b_O is None else part + b_O
    return result


def shares_the_bias_out(x, W_QKV, W_O, b_O, head_dim):
    return sum(_each(x, W_QKV, W_O, head_dim)) + (0 if b_O is None else b_O / len(W_O))


def stacks(x, W_QKV, W_O, b_O, head_dim):
    parts = np.stack(_each(x, W_QKV, W_O, head_dim))
    return parts if b_O is None else parts + b_O


def concatenates(x, W_QKV, W_O, b_O, head_dim):
    return np.concatenate(_each(x, W_QKV, W_O, head_dim), axis=1)


def does_not_split(x, W_QKV, W_O, b_O, head_dim):
    total = 0
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = np.split(x @ packed, 3, axis=-1)
        total = total + softmax(q @ k.T / np.sqrt(q.shape[-1])) @ v @ rows
    return total if b_O is None else total + b_O


def takes_the_width_for_the_number(x, W_QKV, W_O, b_O, head_dim):
    total = 0
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (split_heads(y, head_dim) for y in np.split(x @ packed, 3, axis=-1))
        total = total + merge_heads(scaled_dot_product_attention(q, k, v)) @ rows
    return total if b_O is None else total + b_O


def hides_what_follows(x, W_QKV, W_O, b_O, head_dim):
    total = 0
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (split_heads(y, y.shape[-1] // head_dim) for y in np.split(x @ packed, 3, axis=-1))
        total = total + merge_heads(scaled_dot_product_attention(q, k, v, is_causal=True)) @ rows
    return total if b_O is None else total + b_O


def forgets_the_scale(x, W_QKV, W_O, b_O, head_dim):
    total = 0
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (split_heads(y, y.shape[-1] // head_dim) for y in np.split(x @ packed, 3, axis=-1))
        total = total + merge_heads(softmax(q @ k.swapaxes(-1, -2)) @ v) @ rows
    return total if b_O is None else total + b_O


def reshapes_only(x, W_QKV, W_O, b_O, head_dim):
    total = 0
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (y.reshape(-1, len(x), head_dim) for y in np.split(x @ packed, 3, axis=-1))
        total = total + merge_heads(scaled_dot_product_attention(q, k, v)) @ rows
    return total if b_O is None else total + b_O


def scales_by_all_columns(x, W_QKV, W_O, b_O, head_dim):
    total = 0
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (split_heads(y, rows.shape[0] // head_dim) for y in np.split(x @ packed, 3, axis=-1))
        total = total + merge_heads(softmax(q @ k.swapaxes(-1, -2) / np.sqrt(rows.shape[0])) @ v) @ rows
    return total if b_O is None else total + b_O


def needs_a_bias(x, W_QKV, W_O, b_O, head_dim):
    return sum(_each(x, W_QKV, W_O, head_dim)) + b_O


def adds_into_the_input(x, W_QKV, W_O, b_O, head_dim):
    parts = _each(x, W_QKV, W_O, head_dim)
    x[:] = 0
    for part in parts:
        x += part
    return x.copy() if b_O is None else x + b_O


# ------------------------------------------------------------------------------------------------------------------- q4, right
def with_where(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    shift = np.where(np.isneginf(m), 0.0, m)
    a, b = np.exp(m1 - shift), np.exp(m2 - shift)
    return m, l1 * a + l2 * b, o1 * a[..., np.newaxis] + o2 * b[..., np.newaxis]


def with_masks(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    a, b = np.zeros_like(m), np.zeros_like(m)
    np.exp(np.subtract(m1, m, where=l1 > 0, out=np.zeros_like(m)), where=l1 > 0, out=a)
    np.exp(np.subtract(m2, m, where=l2 > 0, out=np.zeros_like(m)), where=l2 > 0, out=b)
    return m, a * l1 + b * l2, np.expand_dims(a, -1) * o1 + np.expand_dims(b, -1) * o2


def by_the_larger(m1, l1, o1, m2, l2, o2):
    """One of the two keeps its numbers; the other is made smaller."""
    first = m1 >= m2
    with np.errstate(invalid="ignore"):
        small = np.exp(-np.abs(m1 - m2))
    small = np.nan_to_num(small)
    a, b = np.where(first, 1.0, small), np.where(first, small, 1.0)
    return np.where(first, m1, m2), a * l1 + b * l2, a[..., None] * o1 + b[..., None] * o2


# ------------------------------------------------------------------------------------------------------------------- q4, wrong
def adds(m1, l1, o1, m2, l2, o2):
    return np.maximum(m1, m2), l1 + l2, o1 + o2


def rescales_sums(m1, l1, o1, m2, l2, o2):
    m, total, _ = with_where(m1, l1, o1, m2, l2, o2)
    return m, total, o1 + o2


def rescales_outputs(m1, l1, o1, m2, l2, o2):
    m, _, o = with_where(m1, l1, o1, m2, l2, o2)
    return m, l1 + l2, o


def exchanges(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    shift = np.where(np.isneginf(m), 0.0, m)
    a, b = np.exp(m2 - shift), np.exp(m1 - shift)
    return m, l1 * a + l2 * b, o1 * a[..., None] + o2 * b[..., None]


def divides(m1, l1, o1, m2, l2, o2):
    m, total, o = with_where(m1, l1, o1, m2, l2, o2)
    return m, total, np.divide(o, total[..., None], out=np.zeros_like(o), where=total[..., None] > 0)


def as_in_the_formula(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return m, a * l1 + b * l2, a[..., None] * o1 + b[..., None] * o2


def by_way_of_zero(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    down = np.exp(-np.where(m == -np.inf, 0, m))
    total = (np.exp(m1) * l1 + np.exp(m2) * l2) * down
    return m, total, (np.exp(m1)[..., None] * o1 + np.exp(m2)[..., None] * o2) * down[..., None]


def lets_the_smaller_grow(m1, l1, o1, m2, l2, o2):
    shift = np.where(np.isneginf(m := np.maximum(m1, m2)), 0.0, m)
    a, b = np.exp(shift - m1), np.exp(shift - m2)
    return m, l1 * a + l2 * b, o1 * a[..., None] + o2 * b[..., None]


def rescales_the_first(m1, l1, o1, m2, l2, o2):
    shift = np.where(np.isneginf(m := np.maximum(m1, m2)), 0.0, m)
    a = np.exp(m1 - shift)
    return m, l1 * a + l2, o1 * a[..., None] + o2


def weighs_by_the_sums(m1, l1, o1, m2, l2, o2):
    shift = np.where(np.isneginf(m := np.maximum(m1, m2)), 0.0, m)
    a, b = l1 * np.exp(m1 - shift), l2 * np.exp(m2 - shift)
    return m, a + b, o1 * a[..., None] + o2 * b[..., None]


def takes_the_weighted_mean(m1, l1, o1, m2, l2, o2):
    m, total, o = weighs_by_the_sums(m1, l1, o1, m2, l2, o2)
    return m, total, np.divide(o, total[..., None], out=np.zeros_like(o), where=total[..., None] > 0)


def multiplies_along_the_columns(m1, l1, o1, m2, l2, o2):
    shift = np.where(np.isneginf(m := np.maximum(m1, m2)), 0.0, m)
    a, b = np.exp(m1 - shift), np.exp(m2 - shift)
    return m, l1 * a + l2 * b, o1 * a + o2 * b


def one_maximum_for_all(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2).max()
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return np.full_like(m1, m), l1 * a + l2 * b, o1 * a[..., None] + o2 * b[..., None]


def averages_outputs(m1, l1, o1, m2, l2, o2):
    return np.maximum(m1, m2), (l1 + l2) / 2, (o1 + o2) / 2


def without_an_axis(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return m, a * l1 + b * l2, a * o1 + b * o2


def gives_the_output_only(m1, l1, o1, m2, l2, o2):
    return with_where(m1, l1, o1, m2, l2, o2)[2]


def rescales_in_place(m1, l1, o1, m2, l2, o2):
    m, total, o = with_where(m1, l1, o1, m2, l2, o2)
    l1 += 1
    return m, total, o


RIGHT = {
    "q1": [48, 48.0, np.array(48)],
    "q2": [three_slices, by_reshape, by_numbers],
    "q3": [device_by_device, head_by_head, all_at_once],
    "q4": [with_where, with_masks, by_the_larger],
}

WRONG = {
    "q1": [
        (24, "one_half", 0),
        (30, "own_part_once", 0),
        (120, "to_each_other_device", 0),
        (240, "all_devices", 0),
        (60, "p_pieces", 0),
        (6, "one_piece", 0),
        (192, "in_bytes", 0),
        (54, "one_piece_more", 0),
        (36, "different", 0),
        ([48], "wrong_shape", 0),
    ],
    "q2": [
        (cuts_straight_through, "packed_matrix_cut_through", 0),
        (deals_in_turn, "columns_dealt_in_turn", 0),
        (deals_columns_in_turn, "columns_in_turn_rows_not", 0),
        (counts_rows_backwards, "output_rows_of_another_device", 0),
        (cuts_columns_of_both, "columns_of_the_output_matrix", 0),
        (keeps_the_output_matrix, "output_matrix_whole", 0),
        (forgets_keys_and_values, "queries_only", 0),
        (packs_by_turns, "head_by_head", 0),
        (cuts_rows_of_both, "wrong_shape", 0),
        (counts_from_one, "different", 0),
        (counts_back, "ranks_from_1", 0),
        (keeps_the_projections, "projections_whole", 0),
        (starts_at_row_rank, "rows_from_rank", 0),
        (gives_three, "wrong_type", 0),
        (zeroes_what_it_took, "input_modified", 5),
    ],
    "q3": [
        (biases_everywhere, "output_bias_on_every_device", 2),
        (forgets_the_bias, "output_bias_forgotten", 2),
        (averages, "parts_averaged", 0),
        (returns_in_the_loop, "parts_not_added_up", 0),
        (overwrites_in_the_loop, "the_last_device_only", 0),
        (shares_the_bias_out, "bias_shared_out", 2),
        (stacks, "parts_kept_apart", 0),
        (concatenates, "parts_side_by_side", 0),
        (does_not_split, "one_wide_head", 3),
        (scales_by_all_columns, "scaled_by_the_device", 3),
        (takes_the_width_for_the_number, "width_as_number", 2),
        (hides_what_follows, "causal", 0),
        (forgets_the_scale, "no_scale", 0),
        (reshapes_only, "split_without_transpose", 3),
        (needs_a_bias, "raised", 6),
        (adds_into_the_input, "input_modified", 6),
    ],
    "q4": [
        (adds, "without_rescaling", 0),
        (rescales_sums, "only_the_sums", 0),
        (rescales_outputs, "only_the_outputs", 0),
        (exchanges, "factors_exchanged", 0),
        (divides, "divided_already", 0),
        (as_in_the_formula, "nothing_is_nan", 6),
        (by_way_of_zero, "relative_to_zero", 7),
        (averages_outputs, "different", 0),
        (lets_the_smaller_grow, "wrong_sign", 0),
        (rescales_the_first, "only_the_first", 0),
        (weighs_by_the_sums, "times_the_sums", 0),
        (takes_the_weighted_mean, "mean_by_the_sums", 0),
        (multiplies_along_the_columns, "axis_forgotten", 0),
        (one_maximum_for_all, "one_maximum", 0),
        (without_an_axis, "axis_forgotten", 0),
        (gives_the_output_only, "wrong_type", 0),
        (rescales_in_place, "input_modified", 7),
    ],
}
