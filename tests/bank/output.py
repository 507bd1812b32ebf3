"""Answers to 09_output."""

import numpy as np

from mha_lib.questions.output import _cosine, _real_parts, _share, _share_with_bias


# ------------------------------------------------------------------------------------------------------------------- q2, right
def merges_and_multiplies(heads, W_O, b_O=None):
    merged = heads.swapaxes(-3, -2)
    result = merged.reshape(*merged.shape[:-2], -1) @ W_O
    return result if b_O is None else result + b_O


def adds_the_heads(heads, W_O, b_O=None):
    D = heads.shape[-1]
    result = sum(heads[..., m, :, :] @ W_O[m * D : (m + 1) * D] for m in range(heads.shape[-3]))
    return result if b_O is None else result + b_O


def in_letters(heads, W_O, b_O=None):
    H, D = heads.shape[-3], heads.shape[-1]
    result = np.einsum("...hld,hde->...le", heads, W_O.reshape(H, D, W_O.shape[1]))
    return result + (np.zeros(W_O.shape[1], W_O.dtype) if b_O is None else b_O)


def side_by_side(heads, W_O, b_O=None):
    result = np.matmul(np.concatenate([heads[..., m, :, :] for m in range(heads.shape[-3])], axis=-1), W_O)
    if b_O is not None:
        result += b_O
    return result


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def reshapes_only(heads, W_O, b_O=None):
    H, L, D = heads.shape[-3:]
    result = heads.reshape(*heads.shape[:-3], L, H * D) @ W_O
    return result if b_O is None else result + b_O


def averages(heads, W_O, b_O=None):
    mean = np.mean(heads, axis=-3)
    result = np.concatenate([mean] * heads.shape[-3], axis=-1) @ W_O
    return result if b_O is None else result + b_O


def averages_without_repeating(heads, W_O, b_O=None):
    result = heads.mean(axis=-3) @ W_O
    return result if b_O is None else result + b_O


def stops_at_the_concatenation(heads, W_O, b_O=None):
    return np.concatenate([heads[..., m, :, :] for m in range(heads.shape[-3])], axis=-1)


def adds_the_bias_only(heads, W_O, b_O=None):
    merged = np.concatenate([heads[..., m, :, :] for m in range(heads.shape[-3])], axis=-1)
    return merged if b_O is None else merged + b_O


def multiplies_by_the_transpose(heads, W_O, b_O=None):
    merged = heads.swapaxes(-3, -2)
    result = merged.reshape(*merged.shape[:-2], -1) @ W_O.T
    return result if b_O is None else result + b_O


def forgets_the_bias(heads, W_O, b_O=None):
    merged = heads.swapaxes(-3, -2)
    return merged.reshape(*merged.shape[:-2], -1) @ W_O


def biases_every_head(heads, W_O, b_O=None):
    D, result = heads.shape[-1], 0
    for m in range(heads.shape[-3]):
        result = result + heads[..., m, :, :] @ W_O[m * D : (m + 1) * D]
        if b_O is not None:
            result = result + b_O
    return result


def alternates(heads, W_O, b_O=None):
    stacked = np.stack([heads[..., m, :, :] for m in range(heads.shape[-3])], axis=-1)  # (..., L, D, H)
    result = stacked.reshape(*stacked.shape[:-2], -1) @ W_O
    return result if b_O is None else result + b_O


def always_needs_the_bias(heads, W_O, b_O=None):
    merged = heads.swapaxes(-3, -2)
    return merged.reshape(*merged.shape[:-2], -1) @ W_O + b_O


def needs_three_axes(heads, W_O, b_O=None):
    H, L, D = heads.shape
    result = heads.transpose(1, 0, 2).reshape(L, H * D) @ W_O
    return result if b_O is None else result + b_O


def adds_up_in_zeros(heads, W_O, b_O=None):
    D = heads.shape[-1]
    result = np.zeros((*heads.shape[:-3], heads.shape[-2], W_O.shape[1]))
    for m in range(heads.shape[-3]):
        result += heads[..., m, :, :] @ W_O[m * D : (m + 1) * D]
    return result if b_O is None else result + b_O


def adds_into_the_bias(heads, W_O, b_O=None):
    if b_O is None:
        return adds_the_heads(heads, W_O)
    result = adds_the_heads(heads, W_O) + b_O
    b_O += 1
    return result


# ------------------------------------------------------------------------------------------------------------------- q3
def blocks_at_once(heads, W_O):
    return heads @ W_O.reshape(heads.shape[-3], heads.shape[-1], W_O.shape[-1])


def block_by_block(heads, W_O):
    D = heads.shape[-1]
    return np.stack([heads[..., m, :, :] @ W_O[m * D : (m + 1) * D] for m in range(heads.shape[-3])], axis=-3)


def others_silent(heads, W_O):
    """Each head once more through the whole W_O, with zeros in the place of the others."""
    parts = []
    for m in range(heads.shape[-3]):
        alone = np.zeros_like(heads)
        alone[..., m, :, :] = heads[..., m, :, :]
        parts.append(merges_and_multiplies(alone, W_O))
    return np.stack(parts, axis=-3)


def splits_the_matrix(heads, W_O):
    return np.einsum("...hld,hde->...hle", heads, np.stack(np.split(W_O, heads.shape[-3])))


def takes_columns(heads, W_O):
    D = heads.shape[-1]
    return np.stack([heads[..., m, :, :] @ W_O[:, m * D : (m + 1) * D].T for m in range(heads.shape[-3])], axis=-3)


def takes_every_hth_row(heads, W_O):
    H = heads.shape[-3]
    return np.stack([heads[..., m, :, :] @ W_O[m::H] for m in range(H)], axis=-3)


def takes_the_first_rows(heads, W_O):
    return heads @ W_O[: heads.shape[-1]]


def counts_from_the_end(heads, W_O):
    return np.stack(
        [heads[..., m, :, :] @ block for m, block in enumerate(reversed(np.split(W_O, heads.shape[-3])))], axis=-3
    )


def adds_up(heads, W_O):
    return block_by_block(heads, W_O).sum(axis=-3)


def stacks_behind(heads, W_O):
    D = heads.shape[-1]
    return np.stack([heads[..., m, :, :] @ W_O[m * D : (m + 1) * D] for m in range(heads.shape[-3])], axis=-2)


def shares_out_the_mean(heads, W_O):
    return blocks_at_once(heads, W_O) / heads.shape[-3]


def reshapes_the_wrong_way(heads, W_O):
    H, D = heads.shape[-3], heads.shape[-1]
    return heads @ W_O.reshape(D, H, -1).swapaxes(0, 1)


def stacks_in_front(heads, W_O):
    D = heads.shape[-1]
    return np.stack([heads[..., m, :, :] @ W_O[m * D : (m + 1) * D] for m in range(heads.shape[-3])])


def gives_a_list(heads, W_O):
    return list(block_by_block(heads, W_O))


def zeroes_heads(heads, W_O):
    result = block_by_block(heads, W_O)
    heads[..., 0, :, :] = 0
    return result


# ------------------------------------------------------------------------------------------------------------------- q4
def matrix_by_matrix(d_model, num_heads, d_k, d_v, bias=True):
    sizes = [(d_model, num_heads * d_k)] * 2 + [(d_model, num_heads * d_v), (num_heads * d_v, d_model)]
    return sum(rows * columns + (columns if bias else 0) for rows, columns in sizes)


def of_real_arrays(d_model, num_heads, d_k, d_v, bias=True):
    W_Q = W_K = np.zeros((d_model, num_heads * d_k))
    W_V, W_O = np.zeros((d_model, num_heads * d_v)), np.zeros((num_heads * d_v, d_model))
    matrices = (W_Q, W_K, W_V, W_O)
    return sum(W.size for W in matrices) + (sum(W.shape[1] for W in matrices) if bias else 0)


def head_by_head(d_model, num_heads, d_k, d_v, bias=True):
    one = 2 * d_model * d_k + 2 * d_model * d_v
    if bias:
        one += 2 * d_k + d_v
    return num_heads * one + d_model * int(bias)


def forgets_the_last_matrix(d_model, num_heads, d_k, d_v, bias=True):
    width = num_heads * (2 * d_k + d_v)
    return d_model * width + (width + d_model if bias else 0)


def counts_no_bias(d_model, num_heads, d_k, d_v, bias=True):
    return 2 * d_model * num_heads * (d_k + d_v)


def counts_biases_always(d_model, num_heads, d_k, d_v, bias=True):
    return 2 * d_model * num_heads * (d_k + d_v) + num_heads * (2 * d_k + d_v) + d_model


def four_squares(d_model, num_heads, d_k, d_v, bias=True):
    return 4 * d_model * d_model + (4 * d_model if bias else 0)


def counts_one_head(d_model, num_heads, d_k, d_v, bias=True):
    return 2 * d_model * (d_k + d_v) + (2 * d_k + d_v + d_model if bias else 0)


def gives_values_the_width_of_keys(d_model, num_heads, d_k, d_v, bias=True):
    return 4 * d_model * num_heads * d_k + (3 * num_heads * d_k + d_model if bias else 0)


def lets_the_last_bias_have_the_width_of_the_heads(d_model, num_heads, d_k, d_v, bias=True):
    return 2 * d_model * num_heads * (d_k + d_v) + (2 * num_heads * (d_k + d_v) if bias else 0)


def counts_three_biases(d_model, num_heads, d_k, d_v, bias=True):
    return 2 * d_model * num_heads * (d_k + d_v) + (num_heads * (2 * d_k + d_v) if bias else 0)


def counts_a_matrix_per_head(d_model, num_heads, d_k, d_v, bias=True):
    return num_heads * matrix_by_matrix(d_model, num_heads, d_k, d_v, bias)


def tells_in_words(d_model, num_heads, d_k, d_v, bias=True):
    return f"{matrix_by_matrix(d_model, num_heads, d_k, d_v, bias)} parameters"


# ------------------------------------------------------------------------------------------------------------------- q5
def _by_silencing():
    """The share of head 1 as what the sum loses along itself when head 1 is silent."""
    parts, _ = _real_parts()
    whole = parts.sum(0)
    without = whole - parts[1]
    return 1 - without @ whole / (whole @ whole)


RIGHT = {
    "q1": [[0, -8, 0, 0, -6, 0, 2, -6], np.array([0.0, -8, 0, 0, -6, 0, 2, -6]), (0, -8, 0, 0, -6, 0, 2, -6)],
    "q2": [merges_and_multiplies, adds_the_heads, in_letters, side_by_side],
    "q3": [blocks_at_once, block_by_block, others_silent, splits_the_matrix],
    "q4": [matrix_by_matrix, of_real_arrays, head_by_head],
    "q5": [_share(), 0.195, _by_silencing()],
}

WRONG = {
    "q1": [
        ([0, 0, 0, 0, 6, -2, 2, -6], "rows_of_head_0", 0),
        ([-4, 0, 4, 4, 2, 0, 0, -2], "head_0", 0),
        ([-4, -8, 4, 4, -4, 0, 2, -8], "both_heads", 0),
        ([0, -2, 2, -6, 2, 6, 2, -6], "output_projection_transposed", 0),
        ([0, 0, 2, 6], "wrong_shape", 0),
        ([0, -8, 0, 0, 6, 0, 2, 6], "different", 0),
    ],
    "q2": [
        (reshapes_only, "merge_without_transpose", 0),
        (averages, "heads_averaged", 0),
        (averages_without_repeating, "raised", 0),
        (stops_at_the_concatenation, "output_projection_missing", 0),
        (adds_the_bias_only, "only_the_bias", 0),
        (multiplies_by_the_transpose, "output_projection_transposed", 0),
        (forgets_the_bias, "output_bias_forgotten", 2),
        (biases_every_head, "bias_for_every_head", 2),
        (alternates, "interleaved", 0),
        (always_needs_the_bias, "raised", 6),
        (needs_three_axes, "raised", 5),
        (adds_up_in_zeros, "wrong_dtype", 6),
        (adds_into_the_bias, "input_modified", 6),
    ],
    "q3": [
        (takes_columns, "output_projection_transposed", 0),
        (takes_every_hth_row, "rows_in_turn", 0),
        (reshapes_the_wrong_way, "rows_in_turn", 0),
        (takes_the_first_rows, "the_same_rows", 0),
        (counts_from_the_end, "rows_from_the_end", 0),
        (adds_up, "summed_already", 0),
        (stacks_behind, "heads_behind", 0),
        (shares_out_the_mean, "heads_averaged", 0),
        (stacks_in_front, "different", 3),
        (gives_a_list, "wrong_type", 0),
        (zeroes_heads, "input_modified", 4),
    ],
    "q4": [
        (forgets_the_last_matrix, "output_matrix_forgotten", 0),
        (counts_no_bias, "biases_forgotten", 1),
        (counts_biases_always, "biases_always", 2),
        (four_squares, "all_square", 0),
        (counts_one_head, "one_head", 0),
        (gives_values_the_width_of_keys, "values_as_wide_as_keys", 1),
        (lets_the_last_bias_have_the_width_of_the_heads, "output_bias_as_wide_as_the_heads", 1),
        (counts_three_biases, "output_bias_forgotten", 1),
        (counts_a_matrix_per_head, "different", 0),
        (tells_in_words, "wrong_type", 0),
    ],
    "q5": [
        (0.131, "share_of_the_lengths", 0),
        (0.4104, "ratio_of_lengths", 0),
        (_cosine(), "cosine", 0),
        (1.25, "divided_once", 0),
        (_share_with_bias(), "bias_in_the_sum", 0),
        (0.2137, "head_7", 0),
        (19.5, "in_percent", 0),
        (0.68, "different", 0),
        ([0.195], "wrong_shape", 0),
    ],
}
