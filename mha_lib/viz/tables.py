"""Matrices with their numbers, as real HTML tables."""

import numpy as np

from .draw import esc, frame, num
from .figure import Figure
from .inputs import array, decimal_places, is_whole
from .rendering import marks, table


def prepare(value, name):
    """Return the numbers and whether they are booleans."""
    values = array(name, value, "(rows, columns)", 2)
    return values, np.asarray(value).dtype == bool


def matrix(
    values,
    *,
    name="",
    rows=None,
    columns=None,
    shape=("L", "d_k"),
    decimals=None,
    highlight=None,
    note=None,
    title=None,
):
    """Show a matrix with its numbers, its name and its shape; more than 20 rows or 8 columns are cut short, and it says so.

    values: (rows, columns), numbers or booleans. shape: the two letters of its axes.
    rows, columns: texts for the axes, or None. decimals: None prints whole numbers as such and others with 2 decimals.
    highlight: (row, column) or a list of such pairs; None in a pair means the whole column or row.
    note: a line below the table.

    ValueError, TypeError: not two axes, no numbers, wrong number of texts, or a highlight outside the matrix.

    >>> matrix([[1, 0, 2, 0], [0, 2, 0, -1]], name="Q")
    Q (L × d_k = 2 × 4)
    1  0  2   0
    0  2  0  -1
    """
    numbers, boolean = prepare(values, "values")
    html, text = table(numbers, name, shape, rows, columns, decimals, marks(highlight, numbers.shape), boolean)
    if note:
        html += f'<p style="margin:.3em 0 0;font-size:.92em">{esc(note)}</p>'
        text += f"\n{note}"
    return Figure(frame("matrix", html, title), text, title=title or name)


def product(
    A,
    B,
    *,
    names=("A", "B", "C"),
    shapes=(("L", "E"), ("E", "D"), ("L", "D")),
    rows=None,
    columns=None,
    decimals=None,
    highlight=None,
    title=None,
):
    """Show A × B = C side by side, the inner dimension underlined in the captions.

    A: (m, k), B: (k, n). shapes: the letters of A, B and C. rows: m texts; columns: n texts.
    highlight: (i, j): marks that cell of C with the row and the column it comes from, and writes out its sum.

    ValueError, TypeError: inner dimensions that differ, and what `matrix` refuses.

    >>> product([[1, 2]], [[3], [4]], highlight=(0, 0))
    A (L × E = 1 × 2)
    1  2
    B (E × D = 2 × 1)
    3
    4
    C (L × D = 1 × 1)
    11
    C[0, 0] = 1·3 + 2·4 = 11
    """
    A, _ = prepare(A, "A")
    B, _ = prepare(B, "B")
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"A and B must share the inner dimension, got shapes {A.shape} and {B.shape}")
    if len(names) != 3 or len(shapes) != 3:
        raise ValueError(f"names and shapes must describe A, B and C, got {names!r} and {shapes!r}")
    C = A @ B
    here, total = [set(), set(), marks(highlight, C.shape)], ""
    if highlight is not None:
        if len(here[2]) != 1:
            raise ValueError(f"highlight must be one cell (i, j) of the product, got {highlight!r}")
        ((i, j),) = here[2]
        here[:2] = marks((i, None), A.shape), marks((None, j), B.shape)
        terms = list(zip(A[i], B[:, j], strict=True))
        digits = decimal_places(decimals, 0 if all(is_whole(x) for x in (A, B, C)) else 2)
        wrap = [tuple(f"({t})" if t.startswith("−") else t for t in (num(a, digits), num(b, digits))) for a, b in terms]
        some = wrap if len(wrap) <= 8 else [*wrap[:5], ("…", ""), *wrap[-1:]]
        total = " + ".join(f"{a}·{b}" if b else a for a, b in some)
        total = f"{names[2]}[{i}, {j}] = {total} = {num(C[i, j], digits)}"
    inner = shapes[0][1]
    parts = [
        table(A, names[0], shapes[0], rows, None, decimals, here[0], inner=inner),
        table(B, names[1], shapes[1], None, columns, decimals, here[1], inner=inner),
        table(C, names[2], shapes[2], rows, columns, decimals, here[2]),
    ]
    flex = "display:flex;align-items:center;gap:.6em 1em;max-width:100%"
    html = f'<div style="{flex};flex-wrap:wrap">'
    for sign, (one, _) in zip(("", "×", "="), parts, strict=True):  # a sign stays with the matrix that follows it
        sign = sign and f'<div style="font-size:1.5em">{sign}</div>'
        html += f'<div style="{flex}">{sign}<div style="min-width:0">{one}</div></div>'
    html += "</div>"
    if total:
        html += f'<p class="mha-sum" style="margin:.5em 0 0">{esc(total)}</p>'
    text = "\n".join([text for _, text in parts] + ([total.replace("−", "-")] if total else []))
    return Figure(frame("product", html, title), text, title=title or " ".join(names))
