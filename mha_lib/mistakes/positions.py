"""What goes wrong with positions (chapter 12)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter

mistake = of_chapter("12_positions")


@mistake(
    right.sinusoidal_positions,
    "All sines come first, then all cosines: the paper alternates them, column 2i the sine and column 2i + 1 the cosine.",
)
def sines_before_cosines(L, E, offset=0):
    table = right.sinusoidal_positions(L, E, offset)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=-1)


@mistake(
    right.sinusoidal_positions,
    "Each column has a frequency of its own: a sine and the cosine beside it must share one.",
)
def frequency_of_each_column(L, E, offset=0):
    columns = np.arange(E)
    angles = (offset + np.arange(L))[:, None] * 10000.0 ** (-columns / E)
    return np.where(columns % 2, np.cos(angles), np.sin(angles))


@mistake(right.sinusoidal_positions, "The offset is ignored: the first row always stands at position 0.")
def positions_start_at_0(L, E, offset=0):
    return right.sinusoidal_positions(L, E)


@mistake(
    right.rope,
    "The other convention is used: neighbours (2i, 2i + 1) are paired where the two halves (i, i + D/2) should be, or the reverse.",
)
def rope_of_the_other_convention(x, positions, *, base=10000.0, interleaved=True):
    return right.rope(x, positions, base=base, interleaved=not interleaved)


@mistake(
    right.rope,
    "The exponent is i / D, not 2i / D: the frequencies stop at the root of the base, and far positions turn too fast.",
)
def rope_exponent_halved(x, positions, *, base=10000.0, interleaved=True):
    return right.rope(x, positions, base=base**0.5, interleaved=interleaved)


@mistake(right.alibi_bias, "The sign is flipped: the bias grows with the distance, and far keys win.")
def alibi_sign_flipped(H, L, S, offset=0):
    return 0.0 - right.alibi_bias(H, L, S, offset)


@mistake(right.alibi_bias, "All heads have the first head's slope: each needs its own.")
def alibi_one_slope(H, L, S, offset=0):
    return np.repeat(right.alibi_bias(H, L, S, offset)[:1], H, axis=0)


@mistake(right.alibi_bias, "The offset is ignored: the first query always stands at position 0.")
def alibi_starts_at_0(H, L, S, offset=0):
    return right.alibi_bias(H, L, S)
