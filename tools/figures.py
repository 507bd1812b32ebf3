"""Draw the pictures that stand for the course: python tools/figures.py

The map of the landing page and the README (tests/test_docs.py keeps it fresh), and the card that link previews show.
"""

from pathlib import Path

import numpy as np

import mha_lib.numpy as right
from mha_lib.data import load_layer
from mha_lib.viz import attention_map

STATIC = Path(__file__).parents[1] / "_book" / "static"
PICTURE = STATIC / "attention.svg"
CARD = STATIC / "card.png"


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


def card():
    """What a link preview shows, 1200 by 630: the title, and what the word "it" looks at."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    layer, weights = real_weights()
    row, top = weights[1, layer.tokens.index("it")], layer.tokens.index("animal")
    figure = plt.figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    figure.text(0.06, 0.84, "Multi-head attention, from X to W_O", fontsize=35, weight="bold", color="#222832")
    figure.text(0.06, 0.745, "One sentence through one real layer, in NumPy and PyTorch", fontsize=22, color="#48566b")
    axes = figure.add_axes((0.06, 0.2, 0.88, 0.4))
    axes.bar(range(len(row)), row, color=["#d55e00" if j == top else "#0072b2" for j in range(len(row))])
    axes.annotate(f"it → animal  {row[top]:.2f}", (top + 0.6, row[top] * 0.86), fontsize=24, color="#a34700")
    axes.set_xticks(range(len(row)), layer.tokens, rotation=40, ha="right", rotation_mode="anchor", fontsize=17)
    axes.set_yticks([])
    axes.spines[["left", "top", "right"]].set_visible(False)
    figure.savefig(CARD, metadata={"Software": None})


if __name__ == "__main__":
    picture().save(PICTURE)
    card()
