"""Write chapters/mistakes.md out of mha_lib.mistakes: python tools/mistakes_page.py (tests/test_mistakes.py keeps it fresh)"""

from pathlib import Path

from figures import real_weights

import mha_lib.numpy as right
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


def weight_of_animal(**steps):
    """The weight from "it" to "animal" in head 1 of the real layer, with some of its steps replaced."""
    layer, weights = real_weights(**steps)
    return weights[1][layer.tokens.index("it")][layer.tokens.index("animal")]


def replaced_step(mistake):
    """The step of one head's weights that the mistake replaces, as an argument of `weight_of_animal`; {} where it is none."""
    if mistake.of == "softmax":
        return {"attend": lambda q, k, v, return_weights: (None, [mistake(x) for x in right.attention_scores(q, k)])}
    if mistake.name == "key_heads_tiled":  # needs grouped heads, which the real layer does not have
        return {}
    steps = {"project": "project", "split_heads": "split_heads", "scaled_dot_product_attention": "attend"}
    return {steps[mistake.of]: mistake} if mistake.of in steps else {}


def page():
    """The page's text."""
    correct = weight_of_animal()
    lines = [INTRO.format(right=correct)]
    for slug in sorted({m.section.split("#")[0] for m in MISTAKES.values()}):
        lines += [f"\n## {{doc}}`/chapters/{slug}`\n", "| mistake | what happened | *it* → *animal* |", "|---|---|---|"]
        for mistake in (m for m in MISTAKES.values() if m.section.startswith(slug)):
            wrong = weight_of_animal(**replaced_step(mistake))
            shown = "–" if abs(wrong - correct) < 0.005 else f"{wrong:.2f}".replace("-", "−")
            what = mistake.diagnosis.replace("|", "\\|")
            lines.append(f"| [`{mistake.name}`]({slug}.ipynb#what-goes-wrong) | {what} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
