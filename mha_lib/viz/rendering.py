"""How one matrix becomes one HTML table, cut short where it is large."""

from numbers import Integral

from .draw import MARK, esc, num, scroll, width
from .inputs import decimal_places, is_whole, labels

MOST_ROWS, MOST_COLUMNS = 20, 8
LINE = "1px solid color-mix(in srgb,currentColor 28%,transparent)"
TABLE = "border-collapse:collapse;width:auto;margin:0;font-variant-numeric:tabular-nums;font-size:.88em"
CAPTION = "caption-side:top;text-align:left;color:inherit;padding:0 0 .3em;white-space:normal"
PAD = "padding:.2em .42em;"
DOTS = f'<td style="{PAD}border:0;text-align:center">'
PLAIN = f'<td style="{PAD}border:{LINE};text-align:right">'
STRONG = f'<td class="mha-mark" style="{PAD}border:2px solid {MARK};text-align:right;font-weight:600">'


def shown(size, most, head, tail):
    """The indices that are printed, None for the gap."""
    return list(range(size)) if size <= most else [*range(head), None, *range(size - tail, size)]


def marks(highlight, shape):
    """Return the highlighted cells as a set; an index that is None means the whole row or column."""
    if highlight is None:
        return set()

    def is_pair(pair):
        return (
            isinstance(pair, list | tuple)
            and len(pair) == 2
            and all(i is None or isinstance(i, Integral) for i in pair)
        )

    pairs = [highlight] if is_pair(highlight) else highlight
    if not isinstance(pairs, list | tuple | set) or not all(is_pair(pair) for pair in pairs):
        raise ValueError(f"highlight must be a pair (row, column) or a list of pairs, got {highlight!r}")
    cells = set()
    for pair in pairs:
        if not all(i is None or -n <= i < n for i, n in zip(pair, shape, strict=True)):
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


def header(scope, text):
    """A header cell."""
    side = "center" if scope == "col" else "right"
    return f'<th scope="{scope}" style="{PAD}border:0;font-weight:600;text-align:{side}">{esc(text)}</th>'


def table(values, name, shape, rows, columns, decimals, cells=(), boolean=False, inner=None):
    """One table as HTML and as text."""
    m, n = values.shape
    if isinstance(shape, str) or len(shape) != 2:
        raise ValueError(f"shape must be two letters, as ('L', 'D'), got {shape!r}")
    rows = None if rows is None else labels("rows", rows, m, "row")
    columns = None if columns is None else labels("columns", columns, n, "column")
    digits = decimal_places(decimals, 0 if is_whole(values) else 2)
    at_rows, at_columns = shown(m, MOST_ROWS, 8, 4), shown(n, MOST_COLUMNS, 4, 2)

    def entry(i, j):
        if i is None or j is None:
            return "⋮" if i is None else "…"
        return str(bool(values[i, j])) if boolean else num(values[i, j], digits)

    grid = [[entry(i, j) for j in at_columns] for i in at_rows]
    body = ""
    for i, line in zip(at_rows, grid, strict=True):
        first = "" if rows is None else f"{DOTS}⋮</td>" if i is None else header("row", rows[i])
        for j, text in zip(at_columns, line, strict=True):
            first += (DOTS if i is None or j is None else STRONG if (i, j) in cells else PLAIN) + text + "</td>"
        body += f'<tr style="background:none">{first}</tr>'
    top = ""
    if columns is not None:
        corner = "" if rows is None else f'<td style="{PAD}border:0"></td>'
        names = "".join(header("col", columns[j]) if j is not None else f"{DOTS}…</td>" for j in at_columns)
        top = f'<thead style="border:0"><tr style="background:none">{corner}{names}</tr></thead>'

    cut = [f"first 8 and last 4 of {m} rows"] * (None in at_rows) + [f"first 4 and last 2 of {n} columns"] * (
        None in at_columns
    )
    gap = f"; {' and '.join(cut)} shown" if cut else ""
    bold = f"<b>{esc(name)}</b> " if name else ""
    caption = f'<span style="white-space:nowrap">{bold}({letters(shape, inner)} = {m} × {n})</span>{gap}'
    html = f'<table style="{TABLE}"><caption style="{CAPTION}">{caption}</caption>{top}<tbody>{body}</tbody></table>'
    plain = f"{name} ({' × '.join(shape)} = {m} × {n}){gap}".strip()

    columns = columns or [""] * n
    spread = sum(
        max(width(t, 14) for t in (*(line[c] for line in grid), columns[j or 0])) + 13 for c, j in enumerate(at_columns)
    )
    spread += max(width(r, 14) for r in rows) + 13 if rows else 0
    if spread > 330:  # wider than a phone
        html = scroll(html, f"{plain}, scrolls sideways")
    return html, "\n".join([plain, *text_rows(grid, rows, at_rows)])


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
