"""From token ids to the matrix X: rows of tables, added up and normalised."""

import torch

from .. import _checks
from ._tensors import compute_dtype, real_tensor


def embedding(ids, table):
    """Look up one row of a table per token id.

    Shapes: ids (...), table (V, E) -> (..., E).
    Errors: TypeError for ids that are no integers, ValueError for ids outside 0..V-1 (checked on the CPU).
    Source: Vaswani et al. 2017, section 3.4. It is `torch.nn.functional.embedding`.

    >>> embedding(torch.tensor([1, 0]), torch.tensor([[0.0, 0.5], [1.0, 1.5]]))
    tensor([[1.0000, 1.5000],
            [0.0000, 0.5000]])
    """
    table = real_tensor("table", table)
    if table.ndim != 2:
        raise ValueError(f"table must have the axes (V, E), got shape {tuple(table.shape)}")
    if not isinstance(ids, torch.Tensor) or ids.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"ids must be a tensor of int32 or int64, got {getattr(ids, 'dtype', type(ids).__name__)}")
    if ids.device.type == "cpu" and ids.numel() and not (0 <= ids.min() and ids.max() < len(table)):
        raise ValueError(f"ids must lie in 0..{len(table) - 1}, got values from {ids.min()} to {ids.max()}")
    return torch.nn.functional.embedding(ids, table)  # (..., E)


def layer_norm(x, weight=None, bias=None, eps=1e-5):
    """Shift and stretch each row to mean 0 and variance 1, then scale and shift each feature.

    Shapes: x (..., E), weight (E,), bias (E,) -> (..., E). `eps` is added to the variance; BERT uses 1e-12.
    Errors: ValueError where weight or bias do not have the shape (E,).
    Source: Ba, Kiros and Hinton 2016, section 3. It is `torch.nn.functional.layer_norm`.

    >>> layer_norm(torch.tensor([[1.0, 3.0]]), eps=0.0)
    tensor([[-1.,  1.]])
    """
    x, eps = real_tensor("x", x), _checks.number("eps", eps)
    if x.ndim == 0:
        raise ValueError("x must have at least the axis (E,), got a single number")
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and real_tensor(name, given).shape != x.shape[-1:]:
            raise ValueError(f"{name} must have the shape (E,) = {tuple(x.shape[-1:])}, got {tuple(given.shape)}")
    wide = compute_dtype(x.dtype)
    weight, bias = (given if given is None else given.to(wide) for given in (weight, bias))
    return torch.nn.functional.layer_norm(x.to(wide), x.shape[-1:], weight, bias, eps).to(x.dtype)  # (..., E)
