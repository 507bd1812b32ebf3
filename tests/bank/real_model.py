"""Answers to 15_real_model."""

import numpy as np

from mha_lib.data import load_layer
from mha_lib.numpy import MultiHeadAttention, layer_norm
from mha_lib.questions.real_model import _even, _moved


# ------------------------------------------------------------------------------------------------------------------- q1
def sentence_by_sentence(weights, lengths):
    B, H = weights.shape[:2]
    scores = np.zeros((B, H))
    for b in range(B):
        for h in range(H):
            seen = [weights[b, h, i, i - 1] for i in range(2, lengths[b] - 1)]
            scores[b, h] = sum(seen) / len(seen)
    return scores


def by_diagonal_and_mask(weights, lengths):
    below = np.diagonal(weights, -1, -2, -1)  # (B, H, L - 1): query i = 1, 2, ...
    query = np.arange(1, weights.shape[-1])
    own = (query >= 2) & (query <= np.asarray(lengths)[:, None] - 2)  # (B, L - 1)
    return (below * own[:, None]).sum(-1) / own.sum(-1)[:, None]


def cuts_the_words_out(weights, lengths):
    return np.stack([np.trace(w[:, 2 : n - 1, 1 : n - 2], axis1=1, axis2=2) / (n - 3)
                     for w, n in zip(weights, lengths, strict=True)])  # fmt: skip


def by_roll(weights, lengths):
    L = weights.shape[-1]
    rolled = np.array([weights[..., i, i - 1] for i in range(L)])  # (L, B, H)
    place = np.arange(L)[:, None]
    own = np.logical_and(place > 1, place < lengths - 1)[..., None]  # (L, B, 1)
    return np.where(own, rolled, 0).sum(0) / own.sum(0)


def averages_the_whole_diagonal(weights, lengths):
    """Without markers, with padding."""
    return np.diagonal(weights, -1, -2, -1)[..., 1:-1].mean(-1)


def divides_by_all_rows(weights, lengths):
    L = weights.shape[-1]
    below = np.diagonal(weights, -1, -2, -1)
    own = (np.arange(1, L) >= 2) & (np.arange(1, L) <= lengths[:, None] - 2)
    return np.where(own[:, None], below, 0)[..., 1:-1].mean(-1)


def counts_the_markers(weights, lengths):
    return np.stack([np.diagonal(w[:, :n, :n], -1, 1, 2).mean(-1) for w, n in zip(weights, lengths, strict=True)])


def begins_with_the_first_word(weights, lengths):
    return np.stack([np.mean([w[:, i, i - 1] for i in range(1, n - 1)], 0)
                     for w, n in zip(weights, lengths, strict=True)])  # fmt: skip


def ends_with_sep(weights, lengths):
    return np.stack([np.mean([w[:, i, i - 1] for i in range(2, n)], 0) for w, n in zip(weights, lengths, strict=True)])


def ends_too_early(weights, lengths):
    with np.errstate(all="ignore"):
        rows = [[w[:, i, i - 1] for i in range(2, n - 2)] for w, n in zip(weights, lengths, strict=True)]
        return np.stack([np.sum(row or [np.zeros(weights.shape[1])], 0) / np.array(len(row)) for row in rows])


def adds_up_only(weights, lengths):
    return cuts_the_words_out(weights, lengths) * (lengths[:, None] - 3)


def divides_by_words(weights, lengths):
    return cuts_the_words_out(weights, lengths) * (lengths[:, None] - 3) / (lengths[:, None] - 2)


def swaps_query_and_key(weights, lengths):
    return cuts_the_words_out(weights.swapaxes(-1, -2), lengths)


def takes_the_main_diagonal(weights, lengths):
    return np.stack([np.diagonal(w, 0, 1, 2)[:, 1 : n - 1].mean(-1) for w, n in zip(weights, lengths, strict=True)])


def averages_sentences(weights, lengths):
    return sentence_by_sentence(weights, lengths).mean(axis=0)


def gives_heads_first(weights, lengths):
    return sentence_by_sentence(weights, lengths).transpose()


def gives_a_list(weights, lengths):
    return sentence_by_sentence(weights, lengths).tolist()


def zeroes_the_padding(weights, lengths):
    for w, n in zip(weights, lengths, strict=True):
        w[:, n:] = 0
    return sentence_by_sentence(weights, lengths)


# ------------------------------------------------------------------------------------------------------------------- q2
def head_by_head(weights, values, W_O):
    D, shares = values.shape[-1], np.zeros_like(weights)
    for m in range(values.shape[-3]):
        image = values[..., m, :, :] @ W_O[m * D : (m + 1) * D]  # (..., S, E)
        pieces = weights[..., m, :, :] * np.sqrt((image**2).sum(-1))[..., None, :]
        shares[..., m, :, :] = pieces / pieces.sum(-1, keepdims=True)
    return shares


def with_every_vector(weights, values, W_O):
    image = values @ np.stack(np.split(W_O, values.shape[-3]))  # (..., H, S, E)
    size = np.linalg.norm(weights[..., None] * image[..., None, :, :], axis=-1)  # (..., H, L, S)
    return size / size.sum(axis=-1)[..., None]


def in_letters(weights, values, W_O):
    H, D = values.shape[-3], values.shape[-1]
    image = np.einsum("...hsd,hde->...hse", values, W_O.reshape(H, D, -1))
    size = np.einsum("...hls,...hs->...hls", weights, np.linalg.norm(image, axis=-1))
    return size / np.einsum("...hls->...hl", size)[..., None]


def without_the_last_matrix(weights, values, W_O):
    pieces = weights * np.linalg.norm(values, axis=-1)[..., None, :]
    return pieces / pieces.sum(-1, keepdims=True)


def forgets_to_divide(weights, values, W_O):
    image = values @ np.stack(np.split(W_O, values.shape[-3]))
    return weights * np.linalg.norm(image, axis=-1)[..., None, :]


def divides_over_queries(weights, values, W_O):
    pieces = forgets_to_divide(weights, values, W_O)
    return pieces / pieces.sum(axis=-2, keepdims=True)


def divides_over_heads(weights, values, W_O):
    pieces = forgets_to_divide(weights, values, W_O)
    return pieces / pieces.sum(axis=-3, keepdims=True)


def divides_by_everything(weights, values, W_O):
    pieces = forgets_to_divide(weights, values, W_O)
    return pieces / pieces.sum(axis=(-1, -2), keepdims=True)


def takes_the_first_block(weights, values, W_O):
    pieces = weights * np.linalg.norm(values @ W_O[: values.shape[-1]], axis=-1)[..., None, :]
    return pieces / pieces.sum(-1, keepdims=True)


def takes_every_hth_row(weights, values, W_O):
    H = values.shape[-3]
    image = np.stack([values[..., m, :, :] @ W_O[m::H] for m in range(H)], axis=-3)
    pieces = weights * np.linalg.norm(image, axis=-1)[..., None, :]
    return pieces / pieces.sum(-1, keepdims=True)


def takes_the_columns(weights, values, W_O):
    D, H = values.shape[-1], values.shape[-3]
    image = np.stack([values[..., m, :, :] @ W_O[:, m * D : (m + 1) * D].T for m in range(H)], axis=-3)
    pieces = weights * np.linalg.norm(image, axis=-1)[..., None, :]
    return pieces / pieces.sum(-1, keepdims=True)


def adds_magnitudes(weights, values, W_O):
    image = values @ np.stack(np.split(W_O, values.shape[-3]))
    pieces = weights * np.abs(image).sum(-1)[..., None, :]
    return pieces / pieces.sum(-1, keepdims=True)


def forgets_the_root(weights, values, W_O):
    image = values @ np.stack(np.split(W_O, values.shape[-3]))
    pieces = weights * (image**2).sum(-1)[..., None, :]
    return pieces / pieces.sum(-1, keepdims=True)


def softmax_again(weights, values, W_O):
    e = np.exp(forgets_to_divide(weights, values, W_O))
    return e / e.sum(-1, keepdims=True)


def gives_the_weights(weights, values, W_O):
    return weights


def lengths_on_the_query(weights, values, W_O):
    """The length of the value of token i on row i: another shape where L is 1."""
    image = values @ np.stack(np.split(W_O, values.shape[-3]))
    pieces = weights * np.linalg.norm(image, axis=-1)[..., :, None]
    return pieces / pieces.sum(-1, keepdims=True)


def multiplies_in_place(weights, values, W_O):
    image = values @ np.stack(np.split(W_O, values.shape[-3]))
    weights *= np.linalg.norm(image, axis=-1)[..., None, :]
    return weights / weights.sum(-1, keepdims=True)


# ------------------------------------------------------------------------------------------------------------------- q3
def sentence_after_sentence(before, after, lengths):
    shifts = []
    for x, y, n in zip(before, after, lengths, strict=True):
        a, b = x[:n].mean(axis=0), y[:n].mean(axis=0)
        shifts.append(1 - a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))
    return np.array(shifts)


def with_a_mask(before, after, lengths):
    own = np.arange(before.shape[1]) < lengths[:, None]  # (B, L)
    a, b = ((x * own[..., None]).sum(1) / lengths[:, None] for x in (before, after))
    return 1 - (a * b).sum(-1) / np.sqrt((a**2).sum(-1) * (b**2).sum(-1))


def with_sums(before, after, lengths):
    """The cosine of sums is that of means."""
    own = (np.arange(before.shape[1]) < np.asarray(lengths)[:, None])[..., None]
    a, b = np.where(own, before, 0).sum(1), np.where(own, after, 0).sum(1)
    a /= np.linalg.norm(a, axis=-1, keepdims=True)
    b /= np.linalg.norm(b, axis=-1, keepdims=True)
    return ((a - b) ** 2).sum(-1) / 2


def averages_all_rows(before, after, lengths):
    a, b = before.mean(axis=1), after.mean(axis=1)
    return 1 - (a * b).sum(-1) / (np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1))


def takes_words_only(before, after, lengths):
    return sentence_after_sentence(before[:, 1:], after[:, 1:], np.asarray(lengths) - 2)


def takes_cls(before, after, lengths):
    return sentence_after_sentence(before, after, np.ones_like(lengths))


def averages_cosines(before, after, lengths):
    cosine = (before * after).sum(-1) / (np.linalg.norm(before, axis=-1) * np.linalg.norm(after, axis=-1))  # (B, L)
    return np.array([1 - c[:n].mean() for c, n in zip(cosine, lengths, strict=True)])


def gives_the_cosine(before, after, lengths):
    return 1 - sentence_after_sentence(before, after, lengths)


def forgets_the_lengths(before, after, lengths):
    return np.array([1 - x[:n].mean(0) @ y[:n].mean(0) for x, y, n in zip(before, after, lengths, strict=True)])


def measures_the_difference(before, after, lengths):
    return np.array([np.linalg.norm(x[:n].mean(0) - y[:n].mean(0))
                     for x, y, n in zip(before, after, lengths, strict=True)])  # fmt: skip


def one_number(before, after, lengths):
    return np.mean(sentence_after_sentence(before, after, lengths))


def clears_the_padding(before, after, lengths):
    own = np.arange(before.shape[1]) < lengths[:, None]
    before[~own], after[~own] = 0, 0
    return with_sums(before, after, lengths)


# ------------------------------------------------------------------------------------------------------------------- q4
def _by_silencing_rows():
    """The same by zeros in the head's rows of W_O, in the library's layer."""
    layer = load_layer()
    mha = MultiHeadAttention.from_arrays(layer, dtype=float)

    def pooled():
        rows = layer.x + mha(layer.x)
        return layer_norm(rows, layer.residual_norm_weight, layer.residual_norm_bias, 1e-12).mean(0)

    before, W_O, moved = pooled(), mha.W_O, []
    for m in range(12):
        mha.W_O = W_O.copy()
        mha.W_O[32 * m : 32 * m + 32] = 0
        after = pooled()
        moved.append(1 - before @ after / np.linalg.norm(before) / np.linalg.norm(after))
    return moved


RIGHT = {
    "q1": [sentence_by_sentence, by_diagonal_and_mask, cuts_the_words_out, by_roll],
    "q2": [head_by_head, with_every_vector, in_letters],
    "q3": [sentence_after_sentence, with_a_mask, with_sums],
    "q4": [_moved(), _by_silencing_rows(), _moved().astype(np.float32)],
}

WRONG = {
    "q1": [
        (averages_the_whole_diagonal, "padding_counted", 0),
        (divides_by_all_rows, "padding_in_the_number", 0),
        (counts_the_markers, "markers_counted", 0),
        (begins_with_the_first_word, "first_word_counted", 0),
        (ends_with_sep, "sep_counted", 0),
        (ends_too_early, "last_word_missing", 0),
        (adds_up_only, "sum_for_mean", 0),
        (divides_by_words, "one_too_many", 0),
        (swaps_query_and_key, "next_word", 0),
        (takes_the_main_diagonal, "itself", 0),
        (averages_sentences, "over_all_sentences", 0),
        (gives_heads_first, "heads_first", 0),
        (gives_a_list, "wrong_type", 0),
        (zeroes_the_padding, "input_modified", 5),
    ],
    "q2": [
        (without_the_last_matrix, "without_W_O", 0),
        (forgets_to_divide, "not_normalised", 0),
        (divides_over_queries, "over_queries", 0),
        (divides_over_heads, "over_heads", 0),
        (divides_by_everything, "over_everything", 0),
        (takes_the_first_block, "rows_of_head_0", 0),
        (takes_every_hth_row, "rows_in_turn", 0),
        (takes_the_columns, "output_projection_transposed", 0),
        (adds_magnitudes, "sum_of_magnitudes", 0),
        (forgets_the_root, "squared", 0),
        (softmax_again, "softmax_of_contributions", 0),
        (gives_the_weights, "weights_only", 0),
        (lengths_on_the_query, "wrong_shape", 0),
        (multiplies_in_place, "input_modified", 4),
    ],
    "q3": [
        (averages_all_rows, "padding_counted", 0),
        (takes_words_only, "markers_left_out", 0),
        (takes_cls, "first_row", 0),
        (averages_cosines, "mean_of_cosines", 0),
        (gives_the_cosine, "cosine", 0),
        (forgets_the_lengths, "not_normalised", 0),
        (measures_the_difference, "length_of_difference", 0),
        (one_number, "over_all_sentences", 0),
        (clears_the_padding, "input_modified", 5),
    ],
    "q4": [
        (_moved(norm=False), "norm_forgotten", 0),
        (_moved(residual=False), "residual_forgotten", 0),
        (_moved(_even), "even", 0),
        (_moved(bias_after=0), "bias_dropped", 0),
        (1 - _moved(), "cosines", 0),
        (1000 * _moved(), "different", 0),
        (_moved()[1], "wrong_shape", 0),
    ],
}
