"""From token ids to the matrix X: rows of tables, added up and normalised."""

import numpy as np

from .. import _checks
from ._arrays import compute_dtype, real_array, rectangular, result_dtype


def embedding(ids, table):
    """Look up one row of a table per token id.

    Shapes: ids (...), table (V, E) -> (..., E).
    A one-hot matrix times the table gives the same rows; the look-up skips the multiplications by 0.
    Errors: TypeError for ids that are no integers, ValueError for ids outside 0..V-1 (a negative id is an error too).
    Source: Vaswani et al. 2017, section 3.4.

    >>> embedding([2, 0], [[0.0, 0.1], [1.0, 1.1], [2.0, 2.1]])
    array([[2. , 2.1],
           [0. , 0.1]])
    """
    ids, table = rectangular("ids", ids), real_array("table", table)
    if table.ndim != 2:
        raise ValueError(f"table must have the axes (V, E), got shape {table.shape}")
    if ids.size == 0:
        ids = ids.astype(np.intp)
    if ids.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers, got dtype {ids.dtype}")
    if ids.size and not (0 <= ids.min() and ids.max() < len(table)):
        raise ValueError(f"ids must lie in 0..{len(table) - 1}, got values from {ids.min()} to {ids.max()}")
    return table[ids]  # (..., E)


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    """Shift and stretch each row to mean 0 and variance 1, then scale and shift each feature.

    Shapes: x (..., E), weight (E,), bias (E,) -> (..., E). The variance is the mean square, without Bessel's correction.
    `eps` is added to the variance; BERT uses 1e-12.
    Errors: ValueError where weight or bias do not have the shape (E,).
    Source: Ba, Kiros and Hinton 2016, section 3.

    >>> layer_norm([[1.0, 3.0]], eps=0.0)
    array([[-1.,  1.]])
    """
    x, eps = real_array("x", x), _checks.number("eps", eps)
    if x.ndim == 0:
        raise ValueError("x must have at least the axis (E,), got a single number")
    given = {"weight": weight, "bias": bias}
    given = {name: real_array(name, a) for name, a in given.items() if a is not None}
    for name, array in given.items():
        if array.shape != x.shape[-1:]:
            raise ValueError(f"{name} must have the shape (E,) = {x.shape[-1:]}, got {array.shape}")
    dtype = result_dtype(x, *given.values())
    x = x.astype(compute_dtype(dtype), copy=False)
    if x.size == 0:
        return x.astype(dtype)
    centred = x - x.mean(-1, keepdims=True)  # (..., E)
    out = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + eps)
    out = out * given.get("weight", 1) + given.get("bias", 0)
    return out.astype(dtype, copy=False)  # (..., E)
