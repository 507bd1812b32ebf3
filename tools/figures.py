"""Draw the picture of the landing page and the README: python tools/figures.py (tests/test_docs.py keeps it fresh)"""

from pathlib import Path

import numpy as np

import mha_lib.numpy as right
from mha_lib.data import load_layer
from mha_lib.viz import attention_map

PICTURE = Path(__file__).parents[1] / "_book" / "static" / "attention.svg"


def picture():
    """Head 1 of the real layer, as a Figure."""
    layer = load_layer()
    x = layer.x.astype(np.float64)
    q, k = (
        right.split_heads(right.project(x, W, b), layer.num_heads)[1]
        for W, b in ((layer.W_Q, layer.b_Q), (layer.W_K, layer.b_K))
    )
    weights = right.softmax(right.attention_scores(q, k))
    return attention_map(
        weights, layer.tokens, highlight=("it", "animal"), title="Head 1 of a real layer: who looks at whom"
    )


if __name__ == "__main__":
    picture().save(PICTURE)
