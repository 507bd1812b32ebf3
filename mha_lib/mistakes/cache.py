"""What goes wrong with decoding with a cache (chapter 18)."""

from .. import numpy as right
from ._mistake import of_chapter

mistake = of_chapter("18_cache")


@mistake(
    right.causal_mask,
    "The offset is ignored: the triangle starts at the first key, where the new queries stand behind the cached ones.",
)
def causal_mask_top_left(L, S=None, offset=0):
    return right.causal_mask(L, S)
