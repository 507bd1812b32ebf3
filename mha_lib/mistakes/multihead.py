"""What goes wrong with the whole layer (chapter 10)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import attend

mistake = of_chapter("10_multihead")


@mistake(
    right.scaled_dot_product_attention,
    "The key heads are tiled (0, 1, 0, 1), not repeated (0, 0, 1, 1): query heads read the wrong key head.",
)
def key_heads_tiled(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    group = np.shape(query)[-3] // np.shape(key)[-3]
    key, value = (np.concatenate([x] * group, axis=-3) for x in (key, value))
    return attend(query, key, value, mask, is_causal, return_weights)


@mistake(
    right.MultiHeadAttention,
    "Keys and values come from the query's sequence: cross-attention takes both from the other one.",
)
def cross_attention_to_itself(mha, query, key=None, value=None, *, mask=None):
    return mha(query)


@mistake(
    right.MultiHeadAttention,
    "The values come from the query's sequence, the keys from the other one: both must come from there.",
)
def values_from_the_query(mha, query, key=None, value=None, *, mask=None):
    return mha(query, key, query, mask=mask)
