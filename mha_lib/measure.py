"""What heads do, in numbers: where their weights fall, what their values contribute, how far a sentence moves without them.

weights (..., B, H, L, L), lengths (B,): sentence b has `lengths[b]` tokens, the first is [CLS], the last [SEP], padding behind.
*Words* are the tokens between the two, the full stop included. Leading axes (layers) stay as they are. All results are float64.
Shapes, lengths or dtypes that do not fit are a ValueError or TypeError that names the argument.
"""

import numpy as np

from . import _checks
from .numpy._arrays import real_array, token_lengths


def words(lengths, L):
    """Which of L positions are words: lengths (B,) -> (B, L), boolean.

    >>> words([3, 4], 5).astype(int)
    array([[0, 1, 0, 0, 0],
           [0, 1, 1, 0, 0]])
    """
    L = _checks.integer("L", L, 0)
    lengths, place = token_lengths(lengths, L), np.arange(L)
    return (place > 0) & (place < lengths[:, None] - 1)


def mean_over_words(rows, lengths):
    """The mean of a number per query over the words of each sentence: (..., B, H, L) -> (..., B, H); without words NaN.

    >>> mean_over_words(np.array([[[9.0, 1.0, 3.0, 9.0, 9.0]]]), [4])
    array([[2.]])
    """
    rows = _array("rows", rows, "(..., B, H, L)", 3)
    own = words(token_lengths(lengths, rows.shape[-1], rows.shape[-3]), rows.shape[-1])[:, None]  # (B, 1, L)
    return _divided(np.where(own, rows, 0).sum(-1), own.sum(-1))


def offset_weight(weights, lengths, offset):
    """The mean weight of a word on the word `offset` places on, -1 for the previous one: (..., B, H, L, L) -> (..., B, H).

    Words whose neighbour is no word do not count; a sentence without a pair gives NaN.
    Source: Clark et al. 2019, section 3.1, measure it for BERT.

    >>> offset_weight(np.eye(4, k=-1)[None, None], [4], -1)
    array([[1.]])
    """
    weights, offset = _array("weights", weights, "(..., B, H, L, L)", 4), _checks.integer("offset", offset)
    L = weights.shape[-1]
    if weights.shape[-2] != L:
        raise ValueError(f"weights must be square in the last two axes, (..., B, H, L, L), got shape {weights.shape}")
    own = words(token_lengths(lengths, L, weights.shape[-4]), L)  # (B, L)
    pairs = own[:, :, None] & own[:, None, :] & np.eye(L, k=offset, dtype=bool)  # (B, L, L)
    return _divided(np.where(pairs[:, None], weights, 0).sum((-1, -2)), pairs.sum((-1, -2))[:, None])


def image_lengths(values, W_O):
    """How long each value is behind its head's rows of W_O: values (..., H, S, D), W_O (H*D, E) -> (..., H, S).

    >>> image_lengths(np.ones((1, 2, 1)), np.array([[3.0, 4.0]]))
    array([[5., 5.]])
    """
    values, W_O = _array("values", values, "(..., H, S, D)", 3), _array("W_O", W_O, "(H*D, E)", 2)
    H, D = values.shape[-3], values.shape[-1]
    if W_O.ndim != 2 or W_O.shape[0] != H * D:
        raise ValueError(f"W_O must have the shape (H*D, E) = ({H * D}, E) for values {values.shape}, got {W_O.shape}")
    return np.linalg.norm(values @ W_O.reshape(H, D, W_O.shape[1]), axis=-1)


def contribution_shares(weights, values, W_O):
    """Weight times the length of the value's image, as shares of each query's sum.

    Shapes: weights (..., H, L, S), values (..., H, S, D), W_O (H*D, E) -> (..., H, L, S). A query without any gets zeros.
    Source: Kobayashi et al. 2020.

    >>> contribution_shares(np.array([[[0.5, 0.5]]]), np.array([[[1.0], [3.0]]]), np.array([[3.0, 4.0]]))
    array([[[0.25, 0.75]]])
    """
    weights, lengths = _array("weights", weights, "(..., H, L, S)", 3), image_lengths(values, W_O)
    if (*weights.shape[:-2], weights.shape[-1]) != lengths.shape:
        shapes = f"{weights.shape} and {np.shape(values)}"
        raise ValueError(
            f"weights (..., H, L, S) and values (..., H, S, D) must agree in all but L and D, got {shapes}"
        )
    pieces = weights * lengths[..., None, :]  # (..., H, L, S)
    total = pieces.sum(-1, keepdims=True)
    return np.divide(pieces, total, out=np.zeros_like(pieces), where=total != 0)


def distance(a, b):
    """1 - cosine of two vectors: (..., E), (..., E) -> (...). A vector of zeros gives NaN.

    >>> distance(np.array([1.0, 0.0]), np.array([0.0, 2.0]))
    np.float64(1.0)
    """
    a, b = _array("a", a, "(..., E)", 1), _array("b", b, "(..., E)", 1)
    if a.shape != b.shape:
        raise ValueError(f"a and b must have the same shape (..., E), got {a.shape} and {b.shape}")
    return 1 - _divided((a * b).sum(-1), np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1))


def _array(name, x, axes, ndim):
    """`x` as a float64 array with at least so many axes."""
    x = real_array(name, x)
    if x.ndim < ndim:
        raise ValueError(f"{name} must have the axes {axes}, got shape {x.shape}")
    return x.astype(np.float64, copy=False)


def _divided(total, count):
    """total / count, where 0 / 0 is a silent NaN."""
    with np.errstate(invalid="ignore"):
        return total / count
