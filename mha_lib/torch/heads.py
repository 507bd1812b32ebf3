"""Heads are slices of the feature axis, moved in front of the tokens."""

import torch

from .. import _checks


def split_heads(x, num_heads):
    """Cut the last axis into heads and move the heads before the tokens.

    Shapes: x (..., L, H*D) -> (..., H, L, D), a view. Head h of token t is the slice h*D .. (h+1)*D of row t.
    Errors: ValueError where the last axis is not divisible by num_heads.
    Source: Vaswani et al. 2017, section 3.2.2.

    >>> split_heads(torch.arange(6).reshape(1, 6), 2)
    tensor([[[0, 1, 2]],
    <BLANKLINE>
            [[3, 4, 5]]])
    """
    num_heads = _checks.integer("num_heads", num_heads, 1)
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x must be a torch.Tensor, got {type(x).__name__}")
    if x.ndim < 2:
        raise ValueError(f"x must have the axes (..., L, H*D), got shape {tuple(x.shape)}")
    if x.shape[-1] % num_heads:
        raise ValueError(f"the last axis of x must be divisible by num_heads, got {tuple(x.shape)} and {num_heads}")
    return x.unflatten(-1, (num_heads, x.shape[-1] // num_heads)).transpose(-3, -2)  # (..., H, L, D)


def merge_heads(x):
    """Put the heads side by side again: the inverse of `split_heads`.

    Shapes: x (..., H, L, D) -> (..., L, H*D).
    Errors: ValueError where x has fewer than three axes.
    Source: "Concat" in Vaswani et al. 2017, section 3.2.2.

    >>> merge_heads(torch.tensor([[[0, 1, 2]], [[3, 4, 5]]]))
    tensor([[0, 1, 2, 3, 4, 5]])
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"x must be a torch.Tensor, got {type(x).__name__}")
    if x.ndim < 3:
        raise ValueError(f"x must have the axes (..., H, L, D), got shape {tuple(x.shape)}")
    return x.transpose(-3, -2).flatten(-2)  # (..., L, H*D)


def repeat_heads(x, scores_shape):
    """Give every query head its key or value head: query head i reads head i // (H / H_kv).

    Shapes: x (..., H_kv, S, D), scores_shape (..., H, L, S) -> (..., H, S, D); x itself where there is nothing to repeat.
    Source: Ainslie et al. 2023, section 2.2.
    """
    if x.ndim < 3 or x.shape[-3] == scores_shape[-3]:
        return x
    return x.repeat_interleave(scores_shape[-3] // x.shape[-3], dim=-3)
