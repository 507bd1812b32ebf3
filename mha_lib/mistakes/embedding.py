"""What goes wrong with the embedding (chapter 2)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter

mistake = of_chapter("02_embedding")


@mistake(
    right.layer_norm, "The mean and variance run over the tokens; LayerNorm takes them per token, over its features."
)
def norm_over_tokens(x, weight=None, bias=None, eps=1e-5):
    normal = (x - x.mean(-2, keepdims=True)) / np.sqrt(x.var(-2, keepdims=True) + eps)
    return normal * (1 if weight is None else weight) + (0 if bias is None else bias)
