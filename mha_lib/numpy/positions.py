"""Three ways to tell attention where a token stands."""

import numpy as np

from .. import _checks
from ._arrays import compute_dtype, real_array, result_dtype


def _frequencies(size, base):
    """base ** (-2i / size) for i = 0 .. size/2 - 1, in float64."""
    return base ** (-np.arange(0, size, 2) / size)


def rope(x, positions, *, base=10000.0, interleaved=True):
    """Rotary position embedding: turn each pair of components by an angle proportional to the position.

    Shapes: x (..., L, D) with D even, positions (L,) -> (..., L, D). Pair i turns by positions * base ** (-2i / D).
    `interleaved=True` pairs the components (2i, 2i + 1), as in the paper; False pairs (i, i + D/2), as Hugging Face's Llama does.
    Errors: ValueError for an odd D or positions that are not (L,).
    Source: Su et al. 2021, section 3.2.

    >>> rope([[1.0, 0.0], [1.0, 0.0]], [0, 1]).round(2)
    array([[1.  , 0.  ],
           [0.54, 0.84]])
    """
    x, positions = real_array("x", x), real_array("positions", positions)
    base = _checks.positive("base", base)
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ValueError(f"x must have the axes (..., L, D) with an even D, got shape {x.shape}")
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(f"positions must have the shape (L,) = {x.shape[-2:-1]}, got {positions.shape}")
    dtype = result_dtype(x)
    angles = positions[:, None] * _frequencies(x.shape[-1], base)  # (L, D/2)
    cos, sin = (f(angles).astype(compute_dtype(dtype)) for f in (np.cos, np.sin))
    half = x.shape[-1] // 2
    first, second = (slice(0, None, 2), slice(1, None, 2)) if interleaved else (slice(0, half), slice(half, None))
    a, b = x[..., first], x[..., second]
    out = np.empty(x.shape, dtype)
    out[..., first], out[..., second] = a * cos - b * sin, a * sin + b * cos
    return out


def sinusoidal_positions(L, E, offset=0):
    """The sines and cosines that the original Transformer adds to its embeddings.

    Shapes: -> (L, E), float64. Component 2i is sin(p / 10000 ** (2i / E)), component 2i + 1 the cosine, for p = offset + row.
    Errors: TypeError or ValueError for sizes that are no integers >= 0.
    Source: Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_positions(2, 2).round(2)
    array([[0.  , 1.  ],
           [0.84, 0.54]])
    """
    L, E = _checks.integer("L", L, 0), _checks.integer("E", E, 1)
    positions = _checks.integer("offset", offset) + np.arange(L)
    angles = positions[:, None] * _frequencies(E, 10000.0)  # (L, ceil(E/2))
    out = np.empty((L, E))
    out[:, 0::2], out[:, 1::2] = np.sin(angles), np.cos(angles[:, : E // 2])
    return out


def alibi_bias(H, L, S, offset=0):
    """A bias that falls with the distance, at another rate in each head.

    Shapes: -> (H, L, S), float64: -slope * (offset + i - j) for key j at or before query i, and 0 after it (mask those).
    For H a power of two the slopes are 2 ** (-8/H), 2 ** (-16/H), ...; otherwise those of the next lower power of two,
    followed by every other slope of twice as many heads.
    Errors: TypeError or ValueError for sizes that are no integers >= 0 (H >= 1).
    Source: Press, Smith and Lewis 2022, section 3, and their published code for H that is no power of two.

    >>> alibi_bias(2, 1, 3, offset=2)
    array([[[-0.125     , -0.0625    ,  0.        ]],
    <BLANKLINE>
           [[-0.0078125 , -0.00390625,  0.        ]]])
    """
    H, L, S = _checks.integer("H", H, 1), _checks.integer("L", L, 0), _checks.integer("S", S, 0)
    power = 1 << (H.bit_length() - 1)  # the largest power of two <= H
    slopes = 2.0 ** (-8 / power * np.arange(1, power + 1))
    between = 2.0 ** (-4 / power * np.arange(1, 2 * power, 2))
    slopes = np.concatenate([slopes, between])[:H]  # (H,)
    distance = _checks.integer("offset", offset) + np.arange(L)[:, None] - np.arange(S)  # (L, S)
    return -slopes[:, None, None] * np.maximum(distance, 0) + 0.0  # (H, L, S); + 0.0 turns -0 into 0
