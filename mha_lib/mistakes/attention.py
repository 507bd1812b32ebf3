"""What goes wrong with the whole head (chapter 7)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import attend

mistake = of_chapter("07_attention")


@mistake(
    right.scaled_dot_product_attention,
    "The weights are applied to the keys: the output is a mean of keys, not of values.",
)
def keys_as_values(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return attend(query, key, key, mask, is_causal, return_weights)


@mistake(
    right.scaled_dot_product_attention,
    "The weights are transposed before they meet the values: each key collects what belongs to the queries.",
)
def weights_transposed(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    weights = right.softmax(right.attention_scores(query, key, mask=mask, is_causal=is_causal))
    output = weights.swapaxes(-1, -2) @ np.asarray(value)
    return (output, weights) if return_weights else output
