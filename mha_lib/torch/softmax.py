"""From scores to weights: positive numbers that sum to 1."""

import torch

from .. import _checks
from ._tensors import compute_dtype, real_tensor


def softmax(x, axis=-1):
    """exp(x) divided by its sum along one axis, computed so that it does not overflow.

    Shapes: x of any shape with at least one axis -> the same shape; along `axis` the result sums to 1.
    A row that is -inf throughout gives zeros and no gradient, never NaN. NaN in a row makes the whole row NaN.
    Errors: TypeError for what is no floating-point tensor, ValueError for an axis that x does not have.
    Source: the shift by the maximum is Milakov and Gimelshein 2018, section 2. It is `torch.softmax` but for rows of -inf.

    >>> softmax(torch.tensor([-torch.inf, -torch.inf]))
    tensor([0., 0.])
    """
    x = real_tensor("x", x)
    axis = _checks.axis("axis", axis, x.ndim)
    empty = (x == -torch.inf).all(axis, keepdim=True)
    weights = torch.softmax(x.masked_fill(empty, 0), axis, dtype=compute_dtype(x.dtype))
    return weights.masked_fill(empty, 0).to(x.dtype)
