"""One learned matrix turns every token's row into a query, a key or a value."""

import numpy as np

from ._arrays import compute_dtype, real_array, result_dtype


def project(x, weight, bias=None):
    """Multiply every row by the same matrix: x @ weight + bias.

    Shapes: x (..., L, E), weight (E, D), bias (D,) -> (..., L, D). A single row (E,) works too.
    The weight stands on the right, as in the paper; `nn.Linear` stores its transpose.
    Errors: ValueError, with both shapes, where they do not fit.
    Source: Vaswani et al. 2017, section 3.2.2.

    >>> project([[1, 2]], [[1, 0, 1], [0, 1, 1]], [0, 0, 10])
    array([[ 1.,  2., 13.]])
    """
    x, weight = real_array("x", x), real_array("weight", weight)
    if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"x (..., L, E) and weight (E, D) must share E, got {x.shape} and {weight.shape}"
            " (nn.Linear stores the transpose of weight)"
        )
    given = [] if bias is None else [real_array("bias", bias)]
    if given and given[0].shape != weight.shape[1:]:
        raise ValueError(f"bias must have the shape (D,) = {weight.shape[1:]}, got {given[0].shape}")
    dtype = result_dtype(x, weight, *given)
    wide = compute_dtype(dtype)
    with np.errstate(invalid="ignore", over="ignore"):  # padding may hold anything
        out = np.matmul(x, weight, dtype=wide)  # (..., L, D)
    if given:
        out += given[0]
    return out.astype(dtype, copy=False)


def project_backward(grad_output, x, weight, bias=None):
    """The gradients of `project` with respect to x, weight and bias (None without one).

    Shapes: grad_output (..., L, D), x (..., L, E), weight (E, D) -> (..., L, E), (E, D), (D,).
    A row of x that gets no gradient adds nothing to the weight's, whatever it holds: 0 * NaN is NaN.
    """
    dtype = result_dtype(x, weight)
    grad_output, x, weight = (a.astype(compute_dtype(dtype), copy=False) for a in (grad_output, x, weight))
    rows, grads = x.reshape(-1, x.shape[-1]), grad_output.reshape(-1, grad_output.shape[-1])
    if not np.isfinite(rows).all():
        rows = np.where((grads == 0).all(-1, keepdims=True), 0, rows)
    grad_bias = None if bias is None else grads.sum(0).astype(dtype)
    return (grad_output @ weight.T).astype(dtype), (rows.T @ grads).astype(dtype), grad_bias
