"""The pencil example: a layer so small that a reader can check it by hand."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, repr=False)
class Pencil:
    """Three tokens, d_model = 8, two heads of width 4, small whole numbers, no biases.

    Shapes: x (3, 8), W_Q, W_K, W_V, W_O (8, 8). L, D and E differ, so a swapped axis shows, and sqrt(d_k) is 2.
    """

    tokens: list
    x: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray
    num_heads: int = 2

    def __repr__(self):
        return f"the pencil example: {' '.join(self.tokens)}"


def load_pencil():
    """The pencil example; every call gives arrays of its own.

    Returns: a `Pencil` with tokens, x, W_Q, W_K, W_V, W_O, num_heads.

    >>> pencil = load_pencil()
    >>> (pencil.x @ pencil.W_Q)[:, :4]
    array([[1, 0, 2, 0],
           [0, 2, 0, 1],
           [1, 1, 0, 0]])
    """
    return Pencil(
        tokens=["cats", "chase", "mice"],
        x=np.array([
            [1, 0, 0, 1, 0, 2, 0, 1],
            [0, 1, 0, 2, 1, 0, 0, 1],
            [0, 0, 1, 0, 1, 1, 2, 0],
        ]),
        W_Q=np.array([
            [-1,  0,  2,  1,  1,  0,  0,  2],
            [ 1,  0,  0,  1, -1, -2,  0, -1],
            [-1,  0,  0,  0,  0,  0,  2,  2],
            [ 0,  1,  0,  0,  1,  1,  0,  0],
            [-1,  1,  0, -1,  1,  0,  1,  1],
            [ 1,  0,  0, -1, -1,  0,  0, -1],
            [ 1,  0,  0,  1,  0,  0, -1,  0],
            [ 0, -1,  0,  1,  0,  0,  0,  0],
        ]),
        W_K=np.array([
            [ 1,  1, -1, -1,  0,  1, -1, -1],
            [ 1,  2,  0, -1, -1,  0,  1,  0],
            [-1,  0, -1,  0,  1,  1,  0,  0],
            [ 0, -1,  0,  1,  1,  1, -1,  0],
            [-1,  1,  0,  1, -1,  0,  1,  0],
            [ 0,  0,  1,  0,  0, -1,  1,  1],
            [ 1,  1,  0,  0,  0,  0,  0,  0],
            [ 1,  0,  0,  0,  0,  0,  0,  0],
        ]),
        W_V=np.array([
            [ 2, -2,  3,  0,  1,  0, -1, -1],
            [ 0,  2,  1,  0,  2,  0,  1,  0],
            [ 1,  1,  3, -1, -3, -3, -1,  2],
            [ 0,  0,  0,  0,  0,  0,  1,  0],
            [ 0,  0,  0,  0,  1,  0,  1,  1],
            [ 1,  1, -1,  1,  0,  1,  0,  1],
            [ 0, -1,  1,  0,  1,  1,  1,  1],
            [ 0,  0, -1,  0, -1,  0,  0, -1],
        ]),
        W_O=np.array([
            [-1,  0,  1,  1,  0,  0,  0,  0],
            [ 0,  0, -1,  1,  0,  1, -1,  0],
            [ 0,  0,  0,  0,  0, -1,  1,  0],
            [ 0,  0,  0,  0,  1,  0,  0, -1],
            [ 0,  0,  0,  0,  0,  1,  1,  0],
            [ 1, -1,  0,  0,  0,  1,  0,  1],
            [ 0, -1,  0,  0,  0,  0,  1,  0],
            [ 0, -1,  0,  0, -1,  0,  0, -1],
        ]),
    )  # fmt: skip
