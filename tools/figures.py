"""Draw the picture of the landing page and the README: python tools/figures.py (tests/test_docs.py keeps it fresh)"""

from pathlib import Path

import numpy as np

import mha_lib.numpy as right
from mha_lib.data import load_layer
from mha_lib.viz import attention_map

PICTURE = Path(__file__).parents[1] / "_book" / "static" / "attention.svg"


def real_weights(project=right.project, split_heads=right.split_heads, attend=right.scaled_dot_product_attention):
    """The layer and the weights of its heads on the first sentence; steps can be replaced, as the page of mistakes does."""
    layer = load_layer()
    x = layer.x.astype(np.float64)
    q, k, v = (
        split_heads(project(x, W, b), layer.num_heads)
        for W, b in ((layer.W_Q, layer.b_Q), (layer.W_K, layer.b_K), (layer.W_V, layer.b_V))
    )
    return layer, attend(q, k, v, return_weights=True)[1]


def picture():
    """Head 1 of the real layer, as a Figure."""
    layer, weights = real_weights()
    title = "Head 1 of a real layer: who looks at whom"
    return attention_map(weights[1], layer.tokens, highlight=("it", "animal"), title=title)


if __name__ == "__main__":
    picture().save(PICTURE)
