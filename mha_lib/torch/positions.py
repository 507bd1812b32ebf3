"""Three ways to tell attention where a token stands."""

import torch

from .. import _checks
from ._tensors import compute_dtype, real_tensor


def _frequencies(size, base, device=None):
    """base ** (-2i / size) for i = 0 .. size/2 - 1, in float64."""
    return base ** (-torch.arange(0, size, 2, dtype=torch.float64, device=device) / size)


def rope(x, positions, *, base=10000.0, interleaved=True):
    """Rotary position embedding: turn each pair of components by an angle proportional to the position.

    Shapes: x (..., L, D) with D even, positions (L,) -> (..., L, D). Pair i turns by positions * base ** (-2i / D).
    `interleaved=True` pairs the components (2i, 2i + 1), as in the paper; False pairs (i, i + D/2), as Hugging Face's Llama does.
    Errors: ValueError for an odd D or positions that are not (L,).
    Source: Su et al. 2021, section 3.2.

    >>> rope(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([0, 1]))
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    """
    x, base = real_tensor("x", x), _checks.positive("base", base)
    try:
        positions = torch.as_tensor(positions, device=x.device)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"positions must be a tensor or a list of numbers, got {positions!r}") from None
    if positions.dtype == torch.bool or positions.is_complex():
        raise TypeError(f"positions must be numbers, got dtype {positions.dtype}")
    if x.ndim < 2 or x.shape[-1] % 2:
        raise ValueError(f"x must have the axes (..., L, D) with an even D, got shape {tuple(x.shape)}")
    if positions.shape != x.shape[-2:-1]:
        raise ValueError(f"positions must have the shape (L,) = {tuple(x.shape[-2:-1])}, got {tuple(positions.shape)}")
    angles = positions[:, None] * _frequencies(x.shape[-1], base, x.device)  # (L, D/2)
    cos, sin = (f(angles).to(compute_dtype(x.dtype)) for f in (torch.cos, torch.sin))
    if interleaved:
        a, b = x[..., 0::2], x[..., 1::2]
        out = torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)
    else:
        a, b = x.chunk(2, -1)
        out = torch.cat((a * cos - b * sin, a * sin + b * cos), -1)
    return out.to(x.dtype)


def sinusoidal_positions(L, E, offset=0, *, device=None):
    """The sines and cosines that the original Transformer adds to its embeddings.

    Shapes: -> (L, E), float64. Component 2i is sin(p / 10000 ** (2i / E)), component 2i + 1 the cosine, for p = offset + row.
    Errors: TypeError or ValueError for sizes that are no integers >= 0.
    Source: Vaswani et al. 2017, section 3.5.

    >>> sinusoidal_positions(2, 2).float()
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    L, E = _checks.integer("L", L, 0), _checks.integer("E", E, 1)
    positions = _checks.integer("offset", offset) + torch.arange(L, device=device)
    angles = positions[:, None] * _frequencies(E, 10000.0, device)  # (L, ceil(E/2))
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2)[:, :E]


def alibi_bias(H, L, S, offset=0, *, device=None):
    """A bias that falls with the distance, at another rate in each head.

    Shapes: -> (H, L, S), float64: -slope * (offset + i - j) for key j at or before query i, and 0 after it (mask those).
    For H a power of two the slopes are 2 ** (-8/H), 2 ** (-16/H), ...; otherwise those of the next lower power of two,
    followed by every other slope of twice as many heads.
    Errors: TypeError or ValueError for sizes that are no integers >= 0 (H >= 1).
    Source: Press, Smith and Lewis 2022, section 3, and their published code for H that is no power of two.

    >>> alibi_bias(2, 1, 3, offset=2).float()
    tensor([[[-0.1250, -0.0625,  0.0000]],
    <BLANKLINE>
            [[-0.0078, -0.0039,  0.0000]]])
    """
    H, L, S = _checks.integer("H", H, 1), _checks.integer("L", L, 0), _checks.integer("S", S, 0)
    offset = _checks.integer("offset", offset)
    power = 1 << (H.bit_length() - 1)  # the largest power of two <= H
    exponents = [8 / power * i for i in range(1, power + 1)] + [4 / power * i for i in range(1, 2 * power, 2)]
    slopes = 2.0 ** -torch.tensor(exponents[:H], dtype=torch.float64, device=device)  # (H,)
    distance = offset + torch.arange(L, device=device)[:, None] - torch.arange(S, device=device)  # (L, S)
    return -slopes[:, None, None] * distance.clamp(min=0) + 0.0  # (H, L, S); + 0.0 turns -0 into 0
