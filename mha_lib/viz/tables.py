"""Matrices with their numbers, as real HTML tables."""

from numbers import Integral

import numpy as np

from .draw import MARK, esc, frame, num, scroll, width
from .figure import Figure
from .inputs import array, is_whole, labels

MOST_ROWS, MOST_COLUMNS = 20, 8
LINE = "1px solid color-mix(in srgb,currentColor 28%,transparent)"


def shown(size, most, head, tail):
    """The indices that are printed, None for the gap."""
    return list(range(size)) if size <= most else [*range(head), None, *range(size - tail, size)]


def marks(highlight, shape):
    """Return the highlighted cells as a set; an index that is None means the whole row or column."""
    if highlight is None:
        return set()
    pairs = [highlight] if len(highlight) == 2 and not hasattr(highlight[0], "__len__") else list(highlight)
    cells = set()
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise ValueError(f"highlight must be a pair (row, column) or a list of pairs, got {highlight!r}")
        for index, size in zip(pair, shape, strict=True):
            if index is not None and (not isinstance(index, Integral) or not -size <= index < size):
                raise ValueError(f"highlight must lie within the shape {shape}, got {pair!r}")
        i, j = ([*range(n)] if index is None else [int(index) % n] for index, n in zip(pair, shape, strict=True))
        cells |= {(a, b) for a in i for b in j}
    return cells


def letters(shape, inner):
    """The letters of a shape, the inner dimension of a product marked."""
    return " × ".join(
        f'<b style="text-decoration:underline;text-underline-offset:.2em">{esc(s)}</b>' if s == inner else esc(s)
        for s in shape
    )


def prepare(value, name):
    """Return the numbers and whether they are booleans."""
    values = array(name, value, "(rows, columns)", 2)
    return values, np.asarray(value).dtype == bool


def table(values, name, shape, rows, columns, decimals, cells, boolean=False, inner=None):
    """One table as HTML and as text."""
    m, n = values.shape
    if len(shape) != 2:
        raise ValueError(f"shape must be two letters, as ('L', 'D'), got {shape!r}")
    rows = None if rows is None else labels("rows", rows, m, "row")
    columns = None if columns is None else labels("columns", columns, n, "column")
    digits = (0 if is_whole(values) else 2) if decimals is None else decimals
    at_rows, at_columns = shown(m, MOST_ROWS, 8, 4), shown(n, MOST_COLUMNS, 5, 2)
    print_ = (lambda v: str(bool(v))) if boolean else (lambda v: num(v, digits))
    grid = [[("⋮" if i is None else "") + ("…" if j is None and i is not None else "")
             if i is None or j is None else print_(values[i, j]) for j in at_columns] for i in at_rows]  # fmt: skip

    pad = "padding:.2em .55em;"
    plain = f'<td style="{pad}border:{LINE};text-align:right">'
    strong = f'<td class="mha-mark" style="{pad}border:2px solid {MARK};text-align:right;font-weight:600">'
    dots = f'<td style="{pad}border:0;text-align:center">'

    def head(scope, text):
        side = "center" if scope == "col" else "right"
        return f'<th scope="{scope}" style="{pad}border:0;font-weight:600;text-align:{side}">{esc(text)}</th>'

    body = ""
    for i, line in zip(at_rows, grid, strict=True):
        body += '<tr style="background:none">'
        if rows is not None:
            body += head("row", rows[i]) if i is not None else dots + "⋮</td>"
        for j, text in zip(at_columns, line, strict=True):
            body += (dots if i is None or j is None else strong if (i, j) in cells else plain) + text + "</td>"
        body += "</tr>"
    top = ""
    if columns is not None:
        corner = "" if rows is None else f'<td style="{pad}border:0"></td>'
        names = "".join(head("col", columns[j]) if j is not None else dots + "…</td>" for j in at_columns)
        top = f'<thead style="border:0"><tr style="background:none">{corner}{names}</tr></thead>'
    said = []
    if None in at_rows:
        said.append(f"first 8 and last 4 of {m} rows")
    if None in at_columns:
        said.append(f"first 5 and last 2 of {n} columns")
    gap = f"; {' and '.join(said)} shown" if said else ""
    bold = f"<b>{esc(name)}</b> " if name else ""
    caption = f'<span style="white-space:nowrap">{bold}({letters(shape, inner)} = {m} × {n})</span>{gap}'
    html = (
        '<table style="border-collapse:collapse;width:auto;margin:0;font-variant-numeric:tabular-nums;font-size:.92em">'
        '<caption style="caption-side:top;text-align:left;color:inherit;padding:0 0 .3em;white-space:normal">'
        f"{caption}</caption>{top}<tbody>{body}</tbody></table>"
    )
    spread = sum(max(width(line[j], 15) for line in grid) + 18 for j in range(len(at_columns)))
    spread += max(width(r, 15) for r in rows) + 18 if rows else 0
    plain_caption = f"{name} ({' × '.join(shape)} = {m} × {n}){gap}".strip()
    if spread > 330:
        html = scroll(html, f"{plain_caption}, scrolls sideways")
    return html, "\n".join([plain_caption, *text_rows(grid, rows, at_rows)])


def text_rows(grid, rows, at_rows):
    """The numbers in columns for a terminal; at most six rows."""
    keep = range(len(grid)) if len(grid) <= 6 else [0, 1, 2]
    wide = [max(len(grid[r][c]) for r in keep) for c in range(len(grid[0]))]
    side = max(len(rows[at_rows[r]]) for r in keep if at_rows[r] is not None) if rows else 0
    lines = []
    for r in keep:
        first = f"{rows[at_rows[r]] if at_rows[r] is not None else '':{side}}  " if rows else ""
        lines.append((first + "  ".join(f"{t:>{w}}" for t, w in zip(grid[r], wide, strict=True))).replace("−", "-"))
    return lines if len(lines) == len(grid) else [*lines, "…"]


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
        digits = (0 if all(is_whole(x) for x in (A, B, C)) else 2) if decimals is None else decimals
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
    sign = '<div style="font-size:1.5em">{}</div>'
    boxes = [f'<div style="max-width:100%">{html}</div>' for html, _ in parts]
    flex = "display:flex;flex-wrap:wrap;gap:.6em 1em;align-items:center"
    html = f'<div style="{flex}">{boxes[0]}{sign.format("×")}{boxes[1]}{sign.format("=")}{boxes[2]}</div>'
    if total:
        html += f'<p class="mha-sum" style="margin:.5em 0 0">{esc(total)}</p>'
    text = "\n".join([text for _, text in parts] + ([total.replace("−", "-")] if total else []))
    return Figure(frame("product", html, title), text, title=title or " ".join(names))
