"""What goes wrong with the tiled loop (chapter 17)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter

mistake = of_chapter("17_flash")


def _by_tiles(
    query, key, value, mask, is_causal, *, tile="running", sums=True, accumulator=True, divide=False, guard=True
):
    """Attention by tiles of two keys, for the mistakes that change one step of it."""
    scores = right.attention_scores(query, key, mask=mask, is_causal=is_causal)  # (..., L, S)
    value = np.asarray(value)
    m = np.full((*scores.shape[:-1], 1), -np.inf)
    d, o = np.zeros_like(m), np.zeros((*scores.shape[:-1], value.shape[-1]))
    with np.errstate(invalid="ignore"):
        for j in range(0, scores.shape[-1], 2):
            s = scores[..., j : j + 2]
            own = s.max(-1, keepdims=True)
            new = np.maximum(m, own)
            base, anchor = (np.where(x == -np.inf, 0, x) if guard else x for x in (new, own if tile == "own" else new))
            p, shrink = np.exp(s - anchor), np.exp(m - base)
            d = d * (shrink if sums else 1) + p.sum(-1, keepdims=True)
            seen = p @ value[..., j : j + 2, :]
            o = o * (shrink if accumulator else 1) + (
                seen / np.maximum(p.sum(-1, keepdims=True), 1e-300) if divide else seen
            )
            m = new
        return o / -(-scores.shape[-1] // 2) if divide else o / np.where(d == 0, 1, d)


@mistake(right.flash_attention, "The sum is rescaled to a new maximum, the weighted values are not.")
def accumulator_not_rescaled(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, accumulator=False)


@mistake(right.flash_attention, "Nothing is rescaled: tiles relative to different maxima are added up.")
def rescaled_nowhere(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, sums=False, accumulator=False)


@mistake(right.flash_attention, "A tile is taken relative to its own maximum, not to the largest score so far.")
def maximum_of_the_tile(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, tile="own")


@mistake(
    right.flash_attention, "Every tile is divided by its own sum, and the tiles are averaged: divide once, at the end."
)
def divided_in_every_tile(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, sums=False, accumulator=False, tile="own", divide=True)


@mistake(
    right.flash_attention, "A tile without an allowed key makes NaN: its maximum is -inf, and -inf - (-inf) is NaN."
)
def masked_tile_is_nan(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, guard=False)
