"""15_real_model: measures on heads, in a batch with padding, and what one head of the real layer moves."""

import numpy as np

from ..data import load_layer
from ..numpy import layer_norm, padding_mask, project, scaled_dot_product_attention, softmax, split_heads
from ._question import Exercise, Part, Question, call, untouched, value


# ------------------------------------------------------------------------------------------------------------------- q1, previous
def previous_scores(weights, lengths):
    """The mean weight of a word on the word before it: (B, H, L, L), (B,) -> (B, H)."""
    return _on_diagonal(weights, lengths, -1, 2, 2)


def _on_diagonal(weights, lengths, offset, first, behind, fewer=0):
    """The mean of weights[b, :, i, i + offset] for i from `first` to lengths[b] - behind."""
    rows = []
    for w, n in zip(weights, lengths, strict=True):
        i = np.arange(first, n - behind + 1)
        rows.append(w[:, i, i + offset].sum(-1) / (len(i) + fewer))
    return np.array(rows)


def _batch(rng, H, *lengths, L=None):
    """Weights (B, H, L, L) of a padded batch: no weight on padding, but the rows of padding have some, as in a real batch."""
    L = max(lengths) if L is None else L
    mask = padding_mask(lengths, L)
    weights = softmax(np.where(mask, 2 * rng.standard_normal((len(lengths), H, L, L)), -np.inf))
    return call(weights, np.array(lengths))


def _padded(rng):
    return [_batch(rng, 1, 4, 7), _batch(rng, 3, 5, 8, 6), _batch(rng, 2, 9, 4, 6, 7)]


# ------------------------------------------------------------------------------------------------------------------- q2, shares
def contribution_shares(weights, values, W_O):
    """Each key's share of the contributions: (..., H, L, S), (..., H, S, D), (H*D, E) -> (..., H, L, S)."""
    H, D = values.shape[-3], values.shape[-1]
    return _shares(weights, values @ W_O.reshape(H, D, -1))


def _shares(weights, images, axis=-1, order=2):
    """Weight times the length of the image, over its sum along `axis` (None: no sum)."""
    pieces = weights * np.linalg.norm(images, ord=order, axis=-1)[..., None, :]
    return pieces if axis is None else pieces / pieces.sum(axis, keepdims=True)


def _image(rows_of):
    """The shares with other rows of W_O for head m."""

    def shares(weights, values, W_O):
        H, D = values.shape[-3], values.shape[-1]
        blocks = np.stack([rows_of(W_O, m, D, H) for m in range(H)])
        return _shares(weights, values @ blocks)

    return shares


def _with(**options):
    """The shares, with something else about the sum or the length."""
    return lambda weights, values, W_O: _shares(
        weights, values @ W_O.reshape(values.shape[-3], values.shape[-1], -1), **options)  # fmt: skip


def _head(rng, *B, H, L, S, D, E):
    """Arguments whose values differ much in length, by head and by key."""
    weights = softmax(2 * rng.standard_normal((*B, H, L, S)))
    values = rng.standard_normal((*B, H, S, D)) * rng.uniform(0.1, 3, (*B, H, S, 1))
    W_O = rng.standard_normal((H * D, E)) * np.exp(1.5 * rng.standard_normal((H * D, 1)))
    return call(weights, values, W_O)


def _sizes(rng):
    sizes = ((2, 1, 2, 2, 4), (2, 3, 3, 2, 4), (3, 2, 4, 3, 9), (4, 4, 3, 2, 5), (2, 3, 5, 3, 7))
    return [_head(rng, H=H, L=L, S=S, D=D, E=E) for H, L, S, D, E in sizes]


def _batches(rng):
    return [_head(rng, 2, H=2, L=2, S=3, D=2, E=4), _head(rng, 2, 3, H=3, L=2, S=2, D=2, E=5)]


# ------------------------------------------------------------------------------------------------------------------- q3, embeddings
def embedding_shift(before, after, lengths):
    """1 - cosine of the two embeddings of each sentence: (B, L, E), (B, L, E), (B,) -> (B,)."""
    return 1 - _cosine(_pool(before, lengths), _pool(after, lengths))


def _pool(hidden, lengths, start=0, end=0):
    """The mean of the rows from `start` to lengths[b] - end."""
    return np.array([x[start : n - end].mean(0) for x, n in zip(hidden, lengths, strict=True)])


def _cosine(a, b):
    return (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def _shift_of(before, after):
    return 1 - _cosine(before, after)


def _rows(rng, E, *lengths, L=None):
    L = max(lengths) if L is None else L
    before = rng.standard_normal((len(lengths), L, E)) + rng.standard_normal((len(lengths), 1, E))
    return call(before, before + 0.7 * rng.standard_normal(before.shape), np.array(lengths))


# ------------------------------------------------------------------------------------------------------------- q4, the real layer
def _silent(heads, v, m):
    other = heads.copy()
    other[m] = 0
    return other


def _only(heads, v, m):
    other = np.zeros_like(heads)
    other[m] = heads[m]
    return other


def _even(heads, v, m):
    other = heads.copy()
    other[m] = v[m].mean(0)
    return other


def _moved(change=_silent, residual=True, norm=True, pool=lambda x: x.mean(0), bias_after=1):
    """1 - cosine of the mean row behind layer 3, for each head m, before and after `change`."""
    layer = load_layer()
    x = layer.x.astype(float)  # (L, E)
    q, k, v = (split_heads(project(x, getattr(layer, f"W_{n}"), getattr(layer, f"b_{n}")), 12) for n in "QKV")
    heads = scaled_dot_product_attention(q, k, v)  # (H, L, D)
    blocks = layer.W_O.astype(float).reshape(12, 32, -1)

    def end(heads, bias=1):
        rows = (heads @ blocks).sum(0) + bias * layer.b_O + (x if residual else 0)
        return layer_norm(rows, layer.residual_norm_weight, layer.residual_norm_bias, 1e-12) if norm else rows

    before = pool(end(heads))
    return np.array([_shift_of(before, pool(end(change(heads, v, m), bias_after))).mean() for m in range(12)])


EXERCISE = Exercise(
    "15_real_model",
    "Measuring heads",
    offers=("embedding", "layer_norm", "merge_heads", "project", "scaled_dot_product_attention", "softmax", "split_heads"),
    questions=(
        Question(
            "q1", "previous_scores", previous_scores,
            parts=(
                Part("a batch with padding", 3, _padded),
                Part("more padding than words", 1, lambda rng: [_batch(rng, 2, 4, 5, L=12)]),
                Part("sizes that are not announced", 1, lambda rng: [
                    _batch(rng, 5, 6, 6), _batch(rng, 2, 11, 4, 8, L=13)], hidden=True),
                untouched(),
            ),
            slips={
                "padding_counted": (
                    "Rows of padding are counted: the mean must end with the last word of each sentence.",
                    lambda weights, lengths: _on_diagonal(weights, [weights.shape[-1]] * len(lengths), -1, 2, 2)),
                "padding_in_the_number": (
                    "The sum is right and divided by the number of rows with padding: each sentence has its own number of "
                    "pairs.",
                    lambda weights, lengths: previous_scores(weights, lengths)
                    * (np.asarray(lengths)[:, None] - 3) / (weights.shape[-1] - 3)),
                "markers_counted": (
                    "[CLS] and [SEP] are counted: both the word and the one before it must be words.",
                    lambda weights, lengths: _on_diagonal(weights, lengths, -1, 1, 1)),
                "first_word_counted": (
                    "The first word is counted with its weight on [CLS]: it has no word before it.",
                    lambda weights, lengths: _on_diagonal(weights, lengths, -1, 1, 2)),
                "sep_counted": (
                    "[SEP] is counted as a query: the last query is the last word.",
                    lambda weights, lengths: _on_diagonal(weights, lengths, -1, 2, 1)),
                "last_word_missing": (
                    "The last word is left out: with n tokens it stands at n - 2, and a range ends one before its end.",
                    lambda weights, lengths: _on_diagonal(weights, lengths, -1, 2, 3)),
                "sum_for_mean": (
                    "This is the sum over the words: divide by the number of pairs.",
                    lambda weights, lengths: previous_scores(weights, lengths) * (np.asarray(lengths)[:, None] - 3)),
                "one_too_many": (
                    "The sum is divided by the number of words; n words make n - 1 pairs.",
                    lambda weights, lengths: _on_diagonal(weights, lengths, -1, 2, 2, fewer=1)),
                "next_word": (
                    "These are weights on the next word: query i, key i - 1 is asked, a diagonal below the main one.",
                    lambda weights, lengths: _on_diagonal(weights, lengths, 1, 1, 3)),
                "itself": ("These are weights of a word on itself: the key stands one before the query.",
                           lambda weights, lengths: _on_diagonal(weights, lengths, 0, 1, 2)),
                "over_all_sentences": (
                    "The sentences are mixed into one mean: asked is one number per sentence and head, (B, H).",
                    lambda weights, lengths: previous_scores(weights, lengths).mean(0)),
                "heads_first": ("The axes are (H, B): asked is (B, H).",
                                lambda weights, lengths: previous_scores(weights, lengths).T),
            },
        ),
        Question(
            "q2", "contribution_shares", contribution_shares,
            parts=(
                Part("one sentence, any sizes", 2, _sizes),
                Part("leading axes for a batch", 1, _batches),
                Part("sizes that are not announced", 1, lambda rng: [
                    _head(rng, 2, H=4, L=3, S=6, D=3, E=12), _head(rng, H=5, L=2, S=2, D=2, E=3)], hidden=True),
                untouched(),
            ),
            mistakes={"output_projection_transposed": _image(lambda W_O, m, D, H: W_O.T[m * D : (m + 1) * D])},
            slips={
                "weights_only": ("These are the weights themselves: the lengths of the images are missing.",
                                 lambda weights, values, W_O: weights.copy()),
                "not_normalised": ("The contributions are not divided by their sum: the shares of a query sum to 1.",
                                   _with(axis=None)),
                "over_queries": ("The sum runs over the queries: the shares of one query over its keys sum to 1.",
                                 _with(axis=-2)),
                "over_heads": ("The sum runs over the heads: the shares of one query over its keys sum to 1.",
                               _with(axis=-3)),
                "over_everything": ("The sum runs over queries and keys: each query has shares of its own.",
                                    _with(axis=(-2, -1))),
                "without_W_O": ("These are lengths of values: what counts is the length behind W_O, |v W_O|.",
                                lambda weights, values, W_O: _shares(weights, values)),
                "rows_of_head_0": ("Every head meets the rows of head 0: head m owns the rows m*D to (m+1)*D - 1.",
                                   _image(lambda W_O, m, D, H: W_O[:D])),
                "rows_from_the_end": ("The heads meet the blocks of W_O in the opposite order.",
                                      _image(lambda W_O, m, D, H: W_O[(H - 1 - m) * D : (H - m) * D])),
                "rows_in_turn": ("The rows of W_O are dealt out in turn: head m owns D rows side by side.",
                                 _image(lambda W_O, m, D, H: W_O[m::H])),
                "sum_of_magnitudes": ("The length is the root of the sum of squares, not the sum of the magnitudes.",
                                      _with(order=1)),
                "squared": ("The lengths are squared: the root is missing.",
                            lambda weights, values, W_O: (lambda pieces: pieces / pieces.sum(-1, keepdims=True))(
                                weights * _with(axis=None)(np.ones_like(weights), values, W_O) ** 2)),
                "softmax_of_contributions": ("A softmax is taken of the contributions: divide them by their sum.",
                                             lambda weights, values, W_O: softmax(_with(axis=None)(weights, values, W_O))),
            },
        ),
        Question(
            "q3", "embedding_shift", embedding_shift,
            parts=(
                Part("a batch with padding", 3, lambda rng: [
                    _rows(rng, 3, 4, 6), _rows(rng, 5, 5, 3, 8), _rows(rng, 4, 7, 7, 4)]),
                Part("more padding than words", 1, lambda rng: [_rows(rng, 4, 3, 4, L=11)]),
                Part("sizes that are not announced", 1, lambda rng: [_rows(rng, 7, 6, 9, 5, L=12)], hidden=True),
                untouched(),
            ),
            slips={
                "padding_counted": ("The mean runs over the padding too: only the first lengths[b] rows are the sentence's.",
                                    lambda before, after, lengths: _shift_of(before.mean(1), after.mean(1))),
                "markers_left_out": ("[CLS] and [SEP] are left out: the embedding is the mean of all the sentence's rows.",
                                     lambda before, after, lengths: _shift_of(
                                         _pool(before, lengths, 1, 1), _pool(after, lengths, 1, 1))),
                "first_row": ("These are the rows of [CLS]: the embedding is the mean of all the sentence's rows.",
                              lambda before, after, lengths: _shift_of(before[:, 0], after[:, 0])),
                "mean_of_cosines": (
                    "The cosine is taken row by row and then averaged: first the means, then one cosine.",
                    lambda before, after, lengths: np.array([
                        _shift_of(a[:n], b[:n]).mean() for a, b, n in zip(before, after, lengths, strict=True)])),
                "cosine": ("This is the cosine: asked is 1 minus it, 0 for embeddings of one direction.",
                           lambda before, after, lengths: 1 - embedding_shift(before, after, lengths)),
                "not_normalised": ("The dot product is not divided by the two lengths.",
                                   lambda before, after, lengths: 1 - (
                                       _pool(before, lengths) * _pool(after, lengths)).sum(-1)),
                "length_of_difference": ("This is the length of the difference: asked is 1 minus the cosine.",
                                         lambda before, after, lengths: np.linalg.norm(
                                             _pool(before, lengths) - _pool(after, lengths), axis=-1)),
                "over_all_sentences": ("The sentences are mixed into one number: each has an embedding of its own.",
                                       lambda before, after, lengths: embedding_shift(before, after, lengths).mean()),
            },
        ),
        value(
            "q4", "moved", _moved, 2,
            slips={
                "residual_forgotten": ("X is not added: the row behind the layer is LN(X + output).",
                                       lambda: _moved(residual=False)),
                "norm_forgotten": ("The LayerNorm is missing: the row behind the layer is LN(X + output).",
                                   lambda: _moved(norm=False)),
                "only_this_head": ("All heads but one are silent: make one silent and keep the eleven others.",
                                   lambda: _moved(_only)),
                "even": ("The head has even weights here: silent means that it gives zeros.", lambda: _moved(_even)),
                "bias_dropped": ("b_O is dropped together with the head: it belongs to the layer, and stays.",
                                 lambda: _moved(bias_after=0)),
                "row_of_cls": ("This is the row of [CLS]: the mean of all 16 rows is asked.",
                               lambda: _moved(pool=lambda x: x[0])),
                "mean_of_cosines": ("The cosine is taken row by row and then averaged: first the mean row, then one cosine.",
                                    lambda: _moved(pool=lambda x: x)),
                "cosines": ("These are the cosines: asked is 1 minus the cosine.", lambda: 1 - _moved()),
            },
        ),
    ),
)  # fmt: skip
