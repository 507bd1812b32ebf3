"""From scores to weights: positive numbers that sum to 1."""

import numpy as np

from .. import _checks
from ._arrays import compute_dtype, real_array, result_dtype


def softmax(x, axis=-1):
    """exp(x) divided by its sum along one axis, computed so that it does not overflow.

    Shapes: x of any shape with at least one axis -> the same shape; along `axis` the result sums to 1.
    A row that is -inf throughout has nothing to choose from: it gives zeros, never NaN. NaN in a row makes the whole row NaN.
    Errors: TypeError for what is no real number, ValueError for an axis that x does not have.
    Source: the shift by the maximum is Milakov and Gimelshein 2018, section 2.

    >>> softmax([1000.0, 1000.0])
    array([0.5, 0.5])
    >>> softmax([-np.inf, -np.inf])
    array([0., 0.])
    """
    x = real_array("x", x)
    axis = _checks.axis("axis", axis, x.ndim)
    dtype = result_dtype(x)
    x = x.astype(compute_dtype(dtype), copy=False)
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, and shows as NaN
        largest = x.max(axis, keepdims=True, initial=-np.inf)
        e = np.exp(x - np.where(largest == -np.inf, 0, largest))  # at most 1, so the sum cannot overflow
    total = e.sum(axis, keepdims=True)  # at least 1, or 0 where all is -inf
    return (e / np.where(total == 0, 1, total)).astype(dtype, copy=False)
