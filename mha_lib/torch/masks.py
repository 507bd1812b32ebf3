"""Who may look at whom. In every mask True means: may attend."""

import torch

from .. import _checks


def causal_mask(L, S=None, offset=0, *, device=None):
    """Each query sees the keys up to its own position.

    Shapes: -> (L, S) boolean, S = L if None. Query i stands at position offset + i and sees the keys j <= offset + i.
    With `offset=0` the corner of the triangle is at the top left; `offset=S - L` puts it at the bottom right,
    as decoding with a cache needs.
    Errors: TypeError or ValueError for lengths that are no integers >= 0.
    Source: Vaswani et al. 2017, section 3.2.3.

    >>> causal_mask(2, 3).int()
    tensor([[1, 0, 0],
            [1, 1, 0]], dtype=torch.int32)
    """
    L = _checks.integer("L", L, 0)
    S = L if S is None else _checks.integer("S", S, 0)
    offset = _checks.integer("offset", offset)
    return torch.arange(S, device=device) <= offset + torch.arange(L, device=device)[:, None]  # (L, S)


def sliding_window_mask(L, S, window, offset=0, *, device=None):
    """Each query sees the last `window` keys up to its own position, itself included.

    Shapes: -> (L, S) boolean. Query i stands at position p = offset + i and sees the keys p - window < j <= p.
    Errors: TypeError or ValueError for lengths that are no integers >= 0, or a window that is no integer >= 1.
    Source: Beltagy et al. 2020 (Longformer), section 3.1, in its causal form.

    >>> sliding_window_mask(3, 3, window=2).int()
    tensor([[1, 0, 0],
            [1, 1, 0],
            [0, 1, 1]], dtype=torch.int32)
    """
    window, S = _checks.integer("window", window, 1), _checks.integer("S", S, 0)
    mask = causal_mask(L, S, offset, device=device)
    positions = offset + torch.arange(L, device=device)[:, None]  # (L, 1)
    return mask & (torch.arange(S, device=device) > positions - window)  # (L, S)


def padding_mask(lengths, S):
    """Each sequence of a batch sees its own tokens, not the padding behind them.

    Shapes: lengths (B,), a tensor or a list -> (B, 1, 1, S) boolean: one row per sequence, for all heads and queries.
    A length of 0 is allowed: that sequence has nothing to attend to.
    Errors: TypeError for lengths that are no integers, ValueError for another shape than (B,) or, on the CPU, lengths
    outside 0..S.

    >>> padding_mask([2, 3], S=3)[:, 0, 0].int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    S = _checks.integer("S", S, 0)
    try:
        lengths = torch.as_tensor(lengths)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"lengths must be a tensor or a list of integers, got {lengths!r}") from None
    if lengths.numel() and (lengths.is_floating_point() or lengths.is_complex() or lengths.dtype == torch.bool):
        raise TypeError(f"lengths must be integers, got dtype {lengths.dtype}")
    lengths = lengths.long()  # S may exceed what a small dtype holds
    if lengths.ndim != 1:
        raise ValueError(f"lengths must have the shape (B,), got {tuple(lengths.shape)}")
    if lengths.device.type == "cpu" and lengths.numel() and not (lengths.min() >= 0 and lengths.max() <= S):
        raise ValueError(f"lengths must lie in 0..S = 0..{S}, got values from {lengths.min()} to {lengths.max()}")
    return (torch.arange(S, device=lengths.device) < lengths[:, None])[:, None, None, :]  # (B, 1, 1, S)
