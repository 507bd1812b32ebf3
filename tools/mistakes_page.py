"""Write chapters/mistakes.md out of mha_lib/mistakes.py: python tools/mistakes_page.py (tests/test_mistakes.py keeps it fresh)"""

from pathlib import Path

import numpy as np

import mha_lib.numpy as right
from mha_lib.data import load_layer
from mha_lib.mistakes import MISTAKES

PAGE = Path(__file__).parents[1] / "chapters" / "mistakes.md"
INTRO = """(mistakes)=
# Common mistakes

These are the mistakes that people make. Each stands in `mha_lib.mistakes` as a function that computes the wrong
result, so you can hold your own result against it:

```python
from mha_lib.mistakes import no_scale

wrong = no_scale(query, key, value)     # takes what scaled_dot_product_attention takes
```

The last column says what the mistake makes of the number that this course ends at: the weight with which *it* looks at *animal* in
head 1 of the real layer, {right:.2f} when all is right. A dash stands where this number does not show the mistake: with no mask given, or
behind the weights. That is a lesson, too: one number that comes out right proves little.
"""


def weight_of_animal(attend):
    """The weight from "it" to "animal" in head 1 of the real layer, computed by `attend`."""
    layer = load_layer()
    x = layer.x.astype(np.float64)
    q, k, v = (
        right.split_heads(right.project(x, W, b), layer.num_heads)
        for W, b in ((layer.W_Q, layer.b_Q), (layer.W_K, layer.b_K), (layer.W_V, layer.b_V))
    )
    weights = attend(q, k, v, return_weights=True)[1]
    return weights[1, layer.tokens.index("it"), layer.tokens.index("animal")]


def as_attention(mistake):
    """The mistake as a whole attention, or None where it is no part of one head's weights."""
    if mistake.of == "scaled_dot_product_attention" and mistake.name != "key_heads_tiled":
        return mistake
    if mistake.of == "softmax":
        return lambda q, k, v, return_weights: (None, mistake(right.attention_scores(q, k)))
    return None


def page():
    """The page's text."""
    correct = weight_of_animal(right.scaled_dot_product_attention)
    lines = [INTRO.format(right=correct)]
    for slug in sorted({m.section.split("#")[0] for m in MISTAKES.values()}):
        lines += [f"\n## {{doc}}`/chapters/{slug}`\n", "| mistake | what happened | *it* → *animal* |", "|---|---|---|"]
        for mistake in (m for m in MISTAKES.values() if m.section.startswith(slug)):
            attend = as_attention(mistake)
            wrong = correct if attend is None else weight_of_animal(attend)
            shown = "–" if abs(wrong - correct) < 0.005 else f"{wrong:.2f}".replace("-", "−")
            what = mistake.diagnosis.replace("|", "\\|")
            lines.append(f"| [`{mistake.name}`]({slug}.ipynb#what-goes-wrong) | {what} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
