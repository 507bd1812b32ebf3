"""One learned matrix turns every token's row into a query, a key or a value."""

import torch

from ._tensors import all_finite, may_look, same_kind


def project(x, weight, bias=None):
    """Multiply every row by the same matrix: x @ weight + bias.

    Shapes: x (..., L, E), weight (E, D), bias (D,) -> (..., L, D). A single row (E,) works too.
    The weight stands on the right, as in the paper; `nn.Linear` stores its transpose.
    Errors: ValueError, with both shapes, where they do not fit; TypeError where the dtypes differ.
    Source: Vaswani et al. 2017, section 3.2.2.

    >>> project(torch.tensor([[1.0, 2.0]]), torch.eye(2), torch.tensor([0.0, 10.0]))
    tensor([[ 1., 12.]])
    """
    given = {"x": x, "weight": weight} | ({} if bias is None else {"bias": bias})
    x, weight, *rest = same_kind(**given)
    if x.ndim == 0 or weight.ndim != 2 or x.shape[-1] != weight.shape[0]:
        raise ValueError(
            f"x (..., L, E) and weight (E, D) must share E, got {tuple(x.shape)} and {tuple(weight.shape)}"
            " (nn.Linear stores the transpose of weight)"
        )
    if rest and rest[0].shape != weight.shape[1:]:
        raise ValueError(f"bias must have the shape (D,) = {tuple(weight.shape[1:])}, got {tuple(rest[0].shape)}")
    if not may_look(x) or all_finite(x):
        return torch.nn.functional.linear(x, weight.T, *rest)  # (..., L, D)
    # A row with NaN or inf, padding perhaps, gives such a row, but no gradient to the weights of the others: 0 * NaN is NaN.
    strange = ~x.isfinite().all(-1, keepdim=True)
    clean = torch.nn.functional.linear(x.masked_fill(strange, 0), weight.T, *rest)
    return torch.where(strange, torch.nn.functional.linear(x, weight.T, *rest).detach(), clean)
