"""Who may look at whom. In every mask True means: may attend."""

import numpy as np

from .. import _checks
from ._arrays import token_lengths


def causal_mask(L, S=None, offset=0):
    """Each query sees the keys up to its own position.

    Shapes: -> (L, S) boolean, S = L if None. Query i stands at position offset + i and sees the keys j <= offset + i.
    With `offset=0` the corner of the triangle is at the top left; `offset=S - L` puts it at the bottom right,
    as decoding with a cache needs.
    Errors: TypeError or ValueError for lengths that are no integers >= 0.
    Source: Vaswani et al. 2017, section 3.2.3.

    >>> causal_mask(2, 3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0]])
    """
    L = _checks.integer("L", L, 0)
    S = L if S is None else _checks.integer("S", S, 0)
    offset = _checks.integer("offset", offset)
    return np.arange(S) <= offset + np.arange(L)[:, None]  # (L, S)


def sliding_window_mask(L, S, window, offset=0):
    """Each query sees the last `window` keys up to its own position, itself included.

    Shapes: -> (L, S) boolean. Query i stands at position p = offset + i and sees the keys p - window < j <= p.
    Errors: TypeError or ValueError for lengths that are no integers >= 0, or a window that is no integer >= 1.
    Source: Beltagy et al. 2020 (Longformer), section 3.1, in its causal form.

    >>> sliding_window_mask(3, 3, window=2).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [0, 1, 1]])
    """
    window, S = _checks.integer("window", window, 1), _checks.integer("S", S, 0)
    mask = causal_mask(L, S, offset)
    positions = offset + np.arange(L)[:, None]  # (L, 1)
    return mask & (np.arange(S) > positions - window)  # (L, S)


def padding_mask(lengths, S):
    """Each sequence of a batch sees its own tokens, not the padding behind them.

    Shapes: lengths (B,) -> (B, 1, 1, S) boolean: one row per sequence, for all heads and queries.
    A length of 0 is allowed: that sequence has nothing to attend to.
    Errors: TypeError for lengths that are no integers, ValueError for lengths outside 0..S or of another shape than (B,).

    >>> padding_mask([2, 3], S=3)[:, 0, 0].astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    S = _checks.integer("S", S, 0)
    lengths = token_lengths(lengths, S)
    return (np.arange(S) < lengths[:, None])[:, None, None, :]  # (B, 1, 1, S)
