"""One attention map: which query attends to which key."""

import json
from typing import NamedTuple

import numpy as np

from .. import _checks
from .draw import BLUE, MARK, ORANGE, SMALLEST, UNDER_TEXT, cut, esc, frame, hatch, num, outline, svg, width, write, xy
from .figure import Figure
from .inputs import allowed, array, both_labels, cell, labels, unique

WIDE = 420  # about the width that still reads well on a phone
MOST = 64  # rows or columns


class Grid(NamedTuple):
    """Where the cells stand: the upper left corner, the size of a cell, the size of the labels."""

    left: float
    top: float
    cw: float
    ch: float
    font: float
    flat: bool  # the keys stand horizontally

    def corner(self, i, j):
        return self.left + j * self.cw, self.top + i * self.ch


def layout(rows, columns, numbers):
    """Choose the grid for these labels; numbers in the cells need wider ones."""
    left = max(48, max(width(r) for r in rows) + 8)
    cw = (WIDE - left - 2) / len(columns)
    cw, ch = (max(40, min(48, cw)), 30) if numbers else 2 * (max(10, min(30, cw // 1)),)
    font = min(12, max(SMALLEST, cw * 0.85))
    longest = max(width(c, font) for c in columns)
    flat = longest <= cw - 4
    return Grid(left, 38 if flat else longest + 28, cw, ch, font, flat)


def axis_labels(grid, rows, columns, marked, axes):
    """The tokens and the names of the axes."""
    middle = grid.left + len(columns) * grid.cw / 2
    parts = [write(middle, 12, axes[1], 11, "middle"), write(grid.left - 8, grid.top - 8, axes[0], 11, "end")]
    for j, text in enumerate(columns):
        bold, x = marked is not None and marked[1] == j, grid.left + (j + 0.5) * grid.cw
        parts.append(upright(x, grid.top - 6, text, grid.font, bold) if not grid.flat
                     else write(x, grid.top - 8, text, grid.font, "middle", bold))  # fmt: skip
    for i, text in enumerate(rows):
        bold, y = marked is not None and marked[0] == i, grid.top + (i + 0.5) * grid.ch + grid.font * 0.35
        parts.append(write(grid.left - 8, y, text, grid.font, "end", bold))
    return parts


def upright(x, y, text, font, bold):
    """A label that reads upwards from (x, y)."""
    x += font * 0.35
    return write(x, y, text, font, bold=bold, extra=f' transform="rotate(-90 {xy(x)} {xy(y)})"')


def cells(grid, values, shade):
    """A rectangle for every cell, in reading order, and the lines between them."""
    L, S = values.shape
    parts = []
    for i in range(L):
        row = "".join(
            f'<rect x="{xy(grid.left + j * grid.cw)}" width="{xy(grid.cw)}" height="{xy(grid.ch)}" '
            f'fill-opacity="{xy(shade[i, j])}"' + (f' fill="{ORANGE}"/>' if values[i, j] < 0 else "/>")
            for j in range(S)
        )
        place = f"translate(0 {xy(grid.top + i * grid.ch)})"
        parts.append(f'<g class="mha-row" transform="{place}" fill="{BLUE}">{row}</g>')
    lines = "".join(f"M{xy(grid.left + j * grid.cw)} {xy(grid.top)}v{xy(L * grid.ch)}" for j in range(1, S))
    lines += "".join(f"M{xy(grid.left)} {xy(grid.top + i * grid.ch)}h{xy(S * grid.cw)}" for i in range(1, L))
    parts.append(f'<path d="{lines}" stroke="currentColor" stroke-opacity=".12"/>')
    return [*parts, outline(grid.left, grid.top, S * grid.cw, L * grid.ch, opacity=0.4)]


def limit(values, label, vmax):
    """The value with the full shade: `vmax`, else 1 for weights, else the largest magnitude."""
    if vmax is not None:
        return _checks.positive("vmax", vmax, "a positive number or None")
    finite = np.abs(values[np.isfinite(values)])
    most = float(finite.max()) if finite.size else 0.0
    return 1.0 if (label == "weight" and most <= 1 + 1e-6) or most == 0 else most


def strength(values, top, hidden):
    """The shade of each cell, from -1 to 1; NaN and masked cells have none."""
    shade = np.clip(np.nan_to_num(values, nan=0.0, posinf=top, neginf=-top) / top, -1, 1)
    return np.where(hidden, 0.0, shade)


def largest(values, rows, columns, count=3):
    """The largest entries as texts, "it → animal 0.68"; equal ones in reading order."""
    rounded = np.where(np.isfinite(values), np.round(values, 3), -np.inf)
    order = np.argsort(-rounded, axis=None, kind="stable")[:count]
    places = [divmod(int(n), values.shape[1]) for n in order]
    return [f"{rows[i]} → {columns[j]} {num(values[i, j])}" for i, j in places if np.isfinite(values[i, j])]


def legend(x, y, top, label, cap=1.0, negative=False, masked=False, leaks=False):
    """The colour scale in steps, and what hatching and dashes mean; return it with the place where it ends."""
    steps = range(-10, 11) if negative else range(11)
    digits = 0 if top == int(top) else 2
    first, last = num(-top if negative else 0, digits), f"{num(top, digits)} {label}"
    parts = [write(x, y + 10, first, 11)]
    x += width(first, 11) + 6
    parts += [
        f'<rect x="{xy(x + 9 * n)}" y="{xy(y)}" width="9" height="12" fill="{ORANGE if step < 0 else BLUE}" '
        f'fill-opacity="{xy(abs(step) / 10 * cap)}"/>'
        for n, step in enumerate(steps)
    ]
    parts.append(outline(x, y, 9 * len(steps), 12, opacity=0.4))
    x += 9 * len(steps) + 6
    parts.append(write(x, y + 10, last, 11))
    x += width(last, 11) + 14
    if masked:
        parts += [hatch([(x, y)], 14, 12), outline(x, y, 14, 12, opacity=0.4), write(x + 19, y + 10, "masked", 11)]
        x += 74
    if leaks:
        parts += [
            outline(x + 1, y + 1, 12, 10, MARK, 2, extra=' stroke-dasharray="3 2"'),
            write(x + 19, y + 10, "leak", 11),
        ]
        x += 50
    return "".join(parts), x


def exact(values):
    """Rows for JSON: three decimals; what is not finite by name."""
    return [[float(num(v, 3).replace("−", "-")) if np.isfinite(v) else num(v) for v in row] for row in values]


def made_of(scores, divisor, weights, may):
    """The scores behind the weights, once it is sure that they are: softmax(scores / divisor) where the mask allows it."""
    divisor = _checks.positive("divisor", divisor, "a positive number")
    if scores is None:
        return None
    scores = array("scores", scores, "(L, S)", 2)
    if scores.shape != weights.shape or not np.isfinite(scores).all():
        raise ValueError(
            f"scores must be finite and have the shape of weights {weights.shape}, got shape {scores.shape}"
        )
    behind = np.where(may, scores / divisor, -np.inf)
    most = behind.max(axis=-1, keepdims=True)
    e = np.exp(behind - np.where(np.isfinite(most), most, 0))
    again = e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300)
    if not np.allclose(again, weights, rtol=0, atol=1e-5):
        raise ValueError("scores must give the weights by a softmax of each row, after the division and the mask")
    return scores


def attention_map(
    weights, queries, keys=None, *, mask=None, title=None, numbers=None, highlight=None, label="weight", vmax=None,
    axes=("query", "key"), scores=None, divisor=1.0,
):  # fmt: skip
    """Draw attention weights (L, S): a row for each query, a column for each key, a stronger blue for a larger weight.

    weights: (L, S), at most 64 x 64. Scores may be drawn too, with label="score": negative cells are orange.
    queries, keys: L and S tokens; keys=None means the queries again (self-attention).
    mask: boolean, True = may attend, broadcast to (L, S): what is masked is hatched; a masked cell that has a weight all
    the same is outlined by dashes, as a leak.
    numbers: print the values in the cells; None does so up to 8 x 8.
    highlight: (query, key), tokens or indices: outlines that cell and states its value.
    vmax: the value with the full shade; None is 1 for weights, else the largest magnitude.
    axes: what rows and columns are, if not queries and keys.
    scores: (L, S), what the weights were made of: softmax(scores / divisor) of each row, behind the mask. The picture is the
    same; the page of the book can then divide by something else, or drop the mask, and compute the weights again.

    ValueError, TypeError: wrong shape, number of tokens, mask, a token that is not there or not unique, or scores that give
    other weights.

    >>> attention_map([[1.0, 0.0], [0.2, 0.8]], ["a", "cat"], highlight=("cat", "a"))
    Attention map, 2 queries by 2 keys. Largest: a → a 1.00, cat → cat 0.80, cat → a 0.20. Highlighted: cat → a 0.20.
    """
    values = array("weights", weights, "(L, S)", 2)
    L, S = values.shape
    if max(L, S) > MOST:
        raise ValueError(f"weights must be at most {MOST} x {MOST} to be readable, got {L} x {S}; pass a slice")
    queries, keys = both_labels(queries, keys, L, S)
    axes = tuple(labels("axes", axes, 2, "axis"))
    may = allowed(mask, (L, S))
    marked = cell(highlight, queries, keys)
    top = limit(values, label, vmax)
    numbers = max(L, S) <= 8 if numbers is None else bool(numbers)
    scores = made_of(scores, divisor, values, may)
    hidden = ~may & ((values == 0) | (values == -np.inf))
    leaks = ~may & ~hidden
    q, k = unique(queries), unique(keys)
    stated = f"{q[marked[0]]} → {k[marked[1]]} {num(values[marked])}" if marked else ""

    rows, columns = [cut(text) for text in queries], [cut(text) for text in keys]
    grid = layout(rows, columns, numbers)
    cap = UNDER_TEXT if numbers else 1.0
    parts = axis_labels(grid, rows, columns, marked, axes) + cells(
        grid, values, np.abs(strength(values, top, hidden)) * cap
    )
    if hidden.any():
        lines = hatch([grid.corner(i, j) for i, j in np.argwhere(hidden)], grid.cw, grid.ch)
        parts.append(f'<g class="mha-hidden">{lines}</g>')
    for i, j in np.argwhere(leaks):
        x, y = grid.corner(i, j)
        dashes = ' class="mha-leak" stroke-dasharray="3 2"'
        parts.append(outline(x + 1.5, y + 1.5, grid.cw - 3, grid.ch - 3, MARK, 2, extra=dashes))
    odd = ~np.isfinite(values)
    printed = ""
    for i, j in np.argwhere(~hidden & (odd | numbers)):
        size = 12 if numbers else min(11, grid.cw * 0.42)
        x, y = grid.corner(i + 0.5, j + 0.5)
        printed += write(x, y + size * 0.36, num(values[i, j]), size, "middle", odd[i, j])
    parts.append(f'<g class="mha-numbers">{printed}</g>' if printed else "")
    if marked:
        parts.append(outline(*grid.corner(*marked), grid.cw, grid.ch, MARK, 2.5, extra=' class="mha-mark"'))
    right, bottom = grid.corner(L, S)
    scale, end = legend(grid.left, bottom + 10, top, label, cap, (values < 0)[~hidden].any(), hidden.any(), leaks.any())
    parts.append(scale)
    if marked:
        parts.append(write(grid.left, bottom + 42, stated, 13, bold=True, extra=' class="mha-stated"'))
        end = max(end, grid.left + width(stated, 14))

    size = (
        f"{L} queries by {S} keys" if axes == ("query", "key") else f"{L} rows ({axes[0]}) by {S} columns ({axes[1]})"
    )
    text = f"{'Attention map' if label == 'weight' else f'Map of the {label}'}, {size}."
    best = largest(np.where(hidden, np.nan, values), q, k)
    text += f" Largest: {', '.join(best)}." if best else ""
    text += f" Masked: {hidden.sum()} of {L * S} cells." if hidden.any() else ""
    text += f" Masked, but not 0: {leaks.sum()} of {L * S} cells, a leak." if leaks.any() else ""
    text += f" Not finite: {(odd & ~hidden).sum()} of {L * S} cells." if (odd & ~hidden).any() else ""
    text += f" Highlighted: {stated}." if marked else ""
    drawing = svg(max(right + 2, end), bottom + (50 if marked else 30), text, parts, grid.font)
    payload = {"weights": exact(values), "queries": queries, "keys": keys, "label": label, "axes": axes}
    payload |= {"highlight": marked} if marked else {}
    payload |= {"mask": " ".join("".join("01"[int(ok)] for ok in row) for row in may)} if not may.all() else {}
    if scores is not None:
        payload |= {"scores": exact(scores), "divisor": round(float(divisor), 4), "shade": round(cap / top, 4)}
    data = "".join(f' data-{name}="{esc(json.dumps(value))}"' for name, value in payload.items())
    return Figure(frame("attention", drawing, title, data), text, drawing, title or text)
