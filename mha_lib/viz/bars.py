"""Horizontal bars: the weights of one query, a cost, a count."""

import numpy as np

from .draw import BLUE, MARK, ORANGE, cut, frame, num, outline, svg, width, write, xy
from .figure import Figure
from .inputs import array, decimal_places, position, unique
from .inputs import labels as checked

WIDE = 420


def fill(x, y, w, h, series):
    """A bar: the first series is solid, the second striped, the third crossed; never told apart by colour alone."""
    color = (BLUE, ORANGE, MARK)[series]
    if w <= 0:
        return ""
    if series == 0:
        return f'<rect x="{xy(x)}" y="{xy(y)}" width="{xy(w)}" height="{h}" fill="{color}" fill-opacity=".85"/>'
    lines, step = "", 5
    for n in range(-(h // step), int(w // step) + 1):
        start, end = n * step, n * step + h
        a, b = max(start, 0), min(end, w)
        if b > a:
            lines += f"M{xy(x + a)} {xy(y + h - (a - start))}L{xy(x + b)} {xy(y + h - (b - start))}"
            if series == 2:
                lines += f"M{xy(x + a)} {xy(y + (a - start))}L{xy(x + b)} {xy(y + (b - start))}"
    box = outline(x, y, w, h, color, 1.5)
    return f'{box}<path d="{lines}" stroke="{color}" stroke-width="1.3"/>'


def bars(values, labels, *, title=None, name="value", unit="", decimals=2, compare=None, highlight=None):
    """Draw horizontal bars with their numbers; all series share one scale that contains 0.

    values: (N,). labels: N texts. name: what the values are. unit: written behind each number, as " MB".
    compare: {"contribution": values} adds one or two more series of the same length, striped and crossed.
    highlight: a label or an index: that bar is outlined and its label bold.

    ValueError, TypeError: not one axis, no numbers, wrong number of labels, more than two series to compare.

    >>> bars([0.7, 0.1], ["animal", "street"], name="weight")
    weight
    animal  0.70  ████████████████████
    street  0.10  ███
    """
    series = {name: array("values", values, "(N,)", 1)}
    texts = checked("labels", labels, len(series[name]), "bar (N)")
    if compare is not None and not (isinstance(compare, dict) and 1 <= len(compare) <= 2):
        raise ValueError(f"compare must be a dict with one or two series, got {compare!r}")
    for other, more in (compare or {}).items():
        series[other] = array(f"compare[{other!r}]", more, "(N,)", 1)
        if len(series[other]) != len(texts):
            raise ValueError(f"compare[{other!r}] must hold {len(texts)} values, got {len(series[other])}")
    if len(series) != 1 + len(compare or {}):
        raise ValueError(f"compare must use other names than {name!r}, got {list(compare)}")
    marked = None if highlight is None else position("highlight", highlight, texts)

    decimals = decimal_places(decimals, 2)
    every = np.concatenate(list(series.values()))
    finite = every[np.isfinite(every)]
    low, high = min(0.0, finite.min(initial=0.0)), max(0.0, finite.max(initial=0.0))
    scale = (high - low) or 1.0
    printed = {s: [num(v, decimals) + unit * bool(np.isfinite(v)) for v in row] for s, row in series.items()}
    left = max(width(cut(t, 22)) for t in texts) + 8
    right = max(width(t) for row in printed.values() for t in row) + 10
    room = max(120, WIDE - left - right - 4)
    total, thick = left + room + right + 2, 14 if len(series) == 1 else 11
    row, y = len(series) * (thick + 2) + 8, 4
    parts = []
    if len(series) > 1:
        x = left
        for n, key in enumerate(series):
            parts += [fill(x, 2, 22, 11, n), write(x + 27, 12, key)]
            x += 27 + width(key) + 16
        total, y = max(total, x), 24
    zero = left + room * -low / scale
    for i, text in enumerate(texts):
        parts.append(write(left - 8, y + row / 2, cut(text, 22), anchor="end", bold=i == marked))
        for n, (key, row_values) in enumerate(series.items()):
            top, v = y + n * (thick + 2), row_values[i]
            length = 0.0 if not np.isfinite(v) else abs(v) / scale * room
            start = zero - length if v < 0 else zero
            parts.append(fill(start, top, length, thick, n))
            bold = i == marked or not np.isfinite(v)
            parts.append(write(left + room + right, top + thick - 2.5, printed[key][i], 12, "end", bold))
        if i == marked:
            parts.append(outline(left - 3, y - 3, room + 6, row - 4, MARK, 2, extra=' class="mha-mark"'))
        y += row
    parts.append(f'<path d="M{xy(zero)} {24 if len(series) > 1 else 2}V{y - 6}" stroke="currentColor"/>')

    names, said = unique(texts), []
    for key, row_values in series.items():
        order = np.argsort(-np.where(np.isfinite(row_values), np.round(row_values, 6), -np.inf), kind="stable")[:3]
        said.append(f"largest {key}: " + ", ".join(f"{names[i]} {printed[key][i]}" for i in order))
    label = f"Bars for {len(texts)} labels; {'; '.join(said)}."
    drawing = svg(total, y, label, parts, 12)
    return Figure(frame("bars", drawing, title), text_bars(names, series, printed, scale), drawing, title or label)


def text_bars(names, series, printed, scale):
    """The same bars in letters, at most twelve."""
    wide, lines = max(len(n) for n in names), []
    for key, row in series.items():
        digits = max(len(t) for t in printed[key])
        lines.append(key)
        for name, v, text in list(zip(names, row, printed[key], strict=True))[:12]:
            block = "█" * round(20 * abs(v) / scale) if np.isfinite(v) else ""
            lines.append(f"{name:{wide}}  {text.replace('−', '-'):>{digits}}  {block}".rstrip())
        if len(names) > 12:
            lines.append(f"… {len(names) - 12} more")
    return "\n".join(lines)
