"""Each known mistake is wrong, wrong in its own way, and explained by a section that exists."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from common import close

import mha_lib.numpy as right
from mha_lib import mistakes
from mha_lib.mistakes import MISTAKES

CHAPTERS = Path(__file__).parents[1] / "chapters"


def layer(rng, E=8, H=2):
    result = right.MultiHeadAttention(E, H, rng=rng, dtype=np.float64)
    for n in "QKVO":
        setattr(result, f"b_{n}", rng.standard_normal(E))
    return result


def inputs(of, rng):
    """Arguments for the right function `of`, on which all its mistakes can be told apart."""
    if of in ("scaled_dot_product_attention", "flash_attention"):
        mask = rng.random((2, 4, 4)) > 0.3
        mask[0, 1] = False
        mask[1, 2] = [False, False, True, True]  # the first tile of two keys
        return (3 * rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 4, 6)), rng.standard_normal((2, 4, 6))), {
            "mask": mask
        }
    if of == "scaled_dot_product_attention_backward":
        return tuple(rng.standard_normal((4, 2, 4, 6))), {"mask": np.tri(4, dtype=bool)}
    return {
        "layer_norm": lambda: ((rng.standard_normal((3, 4)),), {}),
        "project": lambda: (tuple(rng.standard_normal(s) for s in ((3, 4), (4, 4), (4,))), {}),
        "softmax": lambda: ((np.array([[1000.0, 999.0, 998.0], [1.0, 2.0, 4.0]]),), {}),
        "causal_mask": lambda: ((4, 6, 2), {}),
        "padding_mask": lambda: ((np.array([1, 3]), 4), {}),
        "split_heads": lambda: ((rng.standard_normal((3, 8)), 4), {}),
        "merge_heads": lambda: ((rng.standard_normal((4, 3, 2)),), {}),
        "sinusoidal_positions": lambda: ((4, 6), {"offset": 2}),
        "rope": lambda: ((rng.standard_normal((3, 6)), np.arange(1, 4)), {}),
        "alibi_bias": lambda: ((4, 3, 5), {"offset": 2}),
        "MultiHeadAttention": lambda: ((layer(rng), rng.standard_normal((3, 8)), rng.standard_normal((3, 8))), {}),
    }[of]()


def right_answer(of, args, kwargs):
    return args[0](*args[1:], **kwargs) if of == "MultiHeadAttention" else getattr(right, of)(*args, **kwargs)


def results(of):
    """The right answer and each mistake's, on one input; grouped queries need an input of their own."""
    rng = np.random.default_rng(1)
    args, kwargs = inputs(of, rng)
    named = {name: m for name, m in MISTAKES.items() if m.of == of and name != "key_heads_tiled"}
    return {"right": right_answer(of, args, kwargs)} | {name: m(*args, **kwargs) for name, m in named.items()}


def differ(a, b):
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape != b.shape or not np.allclose(a, b, atol=1e-6, equal_nan=True)


@pytest.mark.parametrize("of", sorted({m.of for m in MISTAKES.values()}))
def test_no_two_answers_are_alike(of):
    answers = list(results(of).items())
    for i, (name, answer) in enumerate(answers):
        for other, its_answer in answers[:i]:
            assert differ(answer, its_answer), f"{name} and {other} behave alike"


def test_tiled_key_heads_are_wrong(rng):
    q, k, v = (rng.standard_normal((H, 3, 4)) for H in (4, 2, 2))
    assert differ(MISTAKES["key_heads_tiled"](q, k, v), right.scaled_dot_product_attention(q, k, v))


@pytest.mark.parametrize("name", ["mask_ignored", "mask_with_finite_value", "masked_row_is_nan"])
def test_mask_mistakes_are_right_without_what_they_get_wrong(name, rng):
    """They differ by the mask alone (the last two by its empty row alone), which is what their diagnosis says."""
    q, k, v = rng.standard_normal((3, 2, 4, 6))
    mask = None if name == "mask_ignored" else np.tri(4, dtype=bool)
    close(MISTAKES[name](q, k, v, mask=mask), right.scaled_dot_product_attention(q, k, v, mask=mask))


@pytest.mark.parametrize("name", MISTAKES)
def test_diagnosis_and_section(name):
    mistake = MISTAKES[name]
    assert mistake.name == name and getattr(mistakes, name) is mistake and hasattr(right, mistake.of)
    assert mistake.diagnosis.endswith(".") and "\n" not in mistake.diagnosis
    slug, anchor = mistake.section.split("#")
    cells = json.loads((CHAPTERS / f"{slug}.ipynb").read_text(encoding="utf-8"))["cells"]
    headings = [re.sub(r"[^a-z0-9]+", "-", line[3:].lower()).strip("-")
                for cell in cells if cell["cell_type"] == "markdown"
                for line in "".join(cell["source"]).splitlines() if line.startswith("## ")]  # fmt: skip
    assert anchor in headings, f"{slug} has no section {anchor}"
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert re.search(rf"\b{name}\b", code), f"{slug} does not show the mistake {name}"


def test_the_page_of_common_mistakes_is_fresh():
    import mistakes_page

    assert mistakes_page.PAGE.read_text(encoding="utf-8") == mistakes_page.page(), "run: python tools/mistakes_page.py"
