"""Formulas that MathJax would show as an error: unknown macros, braces and pairs that do not close. No browser is needed."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "index.md", *sorted((ROOT / "chapters").glob("*.md")), *sorted((ROOT / "chapters").glob("*.ipynb"))]
FORMULA = re.compile(r"\$\$(.+?)\$\$|(?<![\\$])\$([^$\n]+(?:\n[^$\n]+)*?)\$(?!\$)", re.S)
# What the chapters use, each seen to render. MathJax is trimmed and loads nothing later, so a new macro is looked at before it joins.
MACROS = set(
    """
    Bigl Bigr Delta Pi Theta alpha approx begin beta big bigl bigr cdot cdots cos delta dots end frac gamma ge infty lVert le left ln log
    mathbf max mid min mu nabla ne odot omega operatorname oplus overset partial pi pm qquad quad rVert right sigma sin sqrt sum tanh text
    textstyle tfrac tilde times to top underbrace underset varepsilon vdots xi
    """.split()
)


def markdown(path):
    """(place, text) of everything that is prose, code taken out."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        cells = [text]
    else:
        cells = ["".join(c["source"]) if c["cell_type"] == "markdown" else "" for c in json.loads(text)["cells"]]
    for i, cell in enumerate(cells):
        yield i, re.sub(r"```.*?```|`[^`\n]*`", "", cell, flags=re.S)


def formulas():
    return [(path.name, i, a or b) for path in PAGES for i, text in markdown(path) for a, b in FORMULA.findall(text)]


def complaint(formula):
    """What is wrong with a formula, or None."""
    unknown = set(re.findall(r"\\([A-Za-z]+)", formula)) - MACROS
    if unknown:
        return f"unknown macro {sorted(unknown)}"
    bare = re.sub(r"\\[{}]", "", formula)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            break
    if depth:
        return "braces do not close"
    if len(re.findall(r"\\left\b", formula)) != len(re.findall(r"\\right\b", formula)):
        return "\\left and \\right do not match"
    if re.findall(r"\\begin\{(\w+\*?)\}", formula) != re.findall(r"\\end\{(\w+\*?)\}", formula)[::-1]:
        return "environments do not close"
    return None


def test_formulas_are_found():
    assert len(formulas()) > 300


def test_every_formula_renders():
    wrong = [
        f"{name}, cell {i}: {what}: {formula!r}" for name, i, formula in formulas() if (what := complaint(formula))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("formula", [r"\foo{x}", r"\frac{1}{x", r"x}", r"\left( x", r"\begin{pmatrix} x \end{matrix}"])
def test_wrong_formulas_are_seen(formula):
    assert complaint(formula)


@pytest.mark.parametrize("path", PAGES, ids=lambda p: p.name)
def test_no_dollar_is_left_over(path):
    """An odd dollar turns formulas into text and text into formulas."""
    left = [f"{path.name}, cell {i}" for i, text in markdown(path) if "$" in FORMULA.sub("", text).replace("\\$", "")]
    assert not left
