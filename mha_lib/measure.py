"""What heads do, in numbers: where their weights fall, what their values contribute, how far a sentence moves without them.

weights (..., B, H, L, L), lengths (B,): sentence b has `lengths[b]` tokens, the first is [CLS], the last [SEP], padding behind.
*Words* are the tokens between the two, the full stop included. Leading axes (layers) stay as they are.
"""

import numpy as np


def words(lengths, L):
    """Which of L positions are words: lengths (B,) -> (B, L), boolean.

    >>> words([3, 4], 5).astype(int)
    array([[0, 1, 0, 0, 0],
           [0, 1, 1, 0, 0]])
    """
    place = np.arange(L)
    return (place > 0) & (place < np.asarray(lengths)[:, None] - 1)


def mean_over_words(rows, lengths):
    """The mean of a number per query over the words of each sentence: (..., B, H, L) -> (..., B, H).

    >>> mean_over_words(np.array([[[9.0, 1.0, 3.0, 9.0, 9.0]]]), [4])
    array([[2.]])
    """
    own = words(lengths, rows.shape[-1])[:, None]  # (B, 1, L)
    return np.where(own, rows, 0).sum(-1) / own.sum(-1)


def offset_weight(weights, lengths, offset):
    """The mean weight of a word on the word `offset` places on, -1 for the previous one: (..., B, H, L, L) -> (..., B, H).

    Words whose neighbour is no word do not count; a sentence without a pair gives NaN.
    Source: Clark et al. 2019, section 3.1, measure it for BERT.

    >>> offset_weight(np.eye(4, k=-1)[None, None], [4], -1)
    array([[1.]])
    """
    L = weights.shape[-1]
    own = words(lengths, L)  # (B, L)
    pairs = own[:, :, None] & own[:, None, :] & np.eye(L, k=offset, dtype=bool)  # (B, L, L)
    return np.where(pairs[:, None], weights, 0).sum((-1, -2)) / pairs.sum((-1, -2))[:, None]


def image_lengths(values, W_O):
    """How long each value is behind its head's rows of W_O: values (..., H, S, D), W_O (H*D, E) -> (..., H, S).

    >>> image_lengths(np.ones((1, 2, 1)), np.array([[3.0, 4.0]]))
    array([[5., 5.]])
    """
    H, D = values.shape[-3], values.shape[-1]
    return np.linalg.norm(values @ W_O.reshape(H, D, -1), axis=-1)


def contribution_shares(weights, values, W_O):
    """Weight times the length of the value's image, as shares of each query's sum.

    Shapes: weights (..., H, L, S), values (..., H, S, D), W_O (H*D, E) -> (..., H, L, S). A query without any gets zeros.
    Source: Kobayashi et al. 2020.

    >>> contribution_shares(np.array([[[0.5, 0.5]]]), np.array([[[1.0], [3.0]]]), np.array([[3.0, 4.0]]))
    array([[[0.25, 0.75]]])
    """
    pieces = weights * image_lengths(values, W_O)[..., None, :]  # (..., H, L, S)
    total = pieces.sum(-1, keepdims=True)
    return np.divide(pieces, total, out=np.zeros_like(pieces), where=total > 0)


def distance(a, b):
    """1 - cosine of two vectors: (..., E), (..., E) -> (...).

    >>> distance(np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    np.float64(1.0)
    """
    return 1 - (a * b).sum(-1) / (np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))
