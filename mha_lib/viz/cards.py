"""The pieces of the flow picture: cards with a look at the real numbers, arrows, and the operations on them."""

import numpy as np

from .draw import hatch, outline, shades, write, xy

GREY = "#7A7A7A"


def reduced(values, most=16):
    """At most `most` x `most` evenly chosen numbers of a matrix (real ones, no means)."""
    m, n = values.shape
    rows = np.linspace(0, max(m - 1, 0), min(m, most)).astype(int)
    columns = np.linspace(0, max(n - 1, 0), min(n, most)).astype(int)
    return values[np.ix_(rows, columns)]


def look(values, x, y, w, h, color, sheets=1, top=None, parts=1):
    """A small view of a matrix: shade is magnitude in ten steps; sheets behind it stand for more heads."""
    values = reduced(values)
    m, n = values.shape
    out = []
    for s in range(min(sheets, 4) - 1, 0, -1):
        out.append(
            f'<path d="M{xy(x + 4 * s)} {xy(y - 4 * s + 4)}v-4h{xy(w)}v{xy(h)}h-4" fill="none" stroke="{color}" '
            f'stroke-opacity="{xy(1 - 0.18 * s)}"/>'
        )
    if m and n:
        size = np.abs(np.where(np.isfinite(values), values, 0))
        top = top or size.max() or 1.0
        out.append(shades(np.round(size / top, 4).clip(0, 1).round(1), x, y, w / n, h / m, color, 0.08))
        masked = [(x + j * w / n, y + i * h / m) for i, j in np.argwhere(values == -np.inf)]
        out += [hatch(masked, w / n, h / m, 0.45)] if masked else []
        odd = np.isnan(values) | (values == np.inf)
        out += (
            [write(x + w / 2, y + h / 2 + 4, "NaN" if np.isnan(values).any() else "inf", 12, "middle", True)]
            if odd.any()
            else []
        )
    cuts = "".join(f"M{xy(x + w * p / parts)} {xy(y)}v{xy(h)}" for p in range(1, parts)) if parts <= 16 else ""
    out += [f'<path d="{cuts}" stroke="currentColor" stroke-opacity=".55"/>'] if cuts else []
    return "".join([*out, outline(x, y, w, h, color, 1.2)])


def card(x, y, w, h, color, content):
    """A rounded box around its content."""
    box = (
        f'<rect x="{xy(x)}" y="{xy(y)}" width="{xy(w)}" height="{xy(h)}" rx="9" fill="{color}" fill-opacity=".07" '
        f'stroke="{color}" stroke-width="1.5"/>'
    )
    return box + "".join(content)


def wide_card(y, h, color, name, shape, numbers, meaning, view, x=2, w=420, text_at=158):
    """A card with its picture left and its words right."""
    y_text = y + (h - 34 - 15 * len(meaning)) / 2 + 11
    lines = [
        write(x + text_at, y_text, name, 15, bold=True),
        write(x + text_at, y_text + 18, f"{shape} = {numbers}", 12),
    ]
    lines += [write(x + text_at, y_text + 35 + 15 * n, text, 12) for n, text in enumerate(meaning)]
    return card(x, y, w, h, color, [view, *lines])


def tall_card(x, y, h, color, name, shape, numbers, meaning, view, w=132):
    """A card with its words above and below its picture."""
    lines = [write(x + 12, y + 21, name, 15, bold=True), write(x + w - 10, y + 20, shape, 12, "end")]
    lines += [write(x + w - 10, y + 35, numbers, 12, "end")]
    lines += [write(x + 12, y + h - 9 - 14 * n, text, 12) for n, text in enumerate(reversed(meaning))]
    return card(x, y, w, h, color, [view, *lines])


def line(points, color=GREY):
    """A polyline."""
    d = "M" + "L".join(f"{xy(x)} {xy(y)}" for x, y in points)
    return f'<path d="{d}" fill="none" stroke="{color}" stroke-width="1.8" stroke-linejoin="round"/>'


def arrow(points, color=GREY):
    """A polyline whose last step goes down and ends in a head."""
    x, y = points[-1]
    head = f'<path d="M{xy(x - 4.5)} {xy(y - 8)}h9l-4.5 8z" fill="{color}"/>'
    return line([*points[:-1], (x, y - 5)], color) + head


def pill(x, y, text, w, color=GREY, more=""):
    """An operation, centred at x; 24 high."""
    box = (
        f'<rect x="{xy(x - w / 2)}" y="{xy(y)}" width="{xy(w)}" height="24" rx="12" fill="{color}" fill-opacity=".18" '
        f'stroke="{color}" stroke-opacity=".6"/>'
    )
    if "_" in text:
        text, small = text.split("_")
        more = f'<tspan font-size="9" dy="2.5">{small}</tspan><tspan font-weight="400" dy="-2.5">  {more}</tspan>'
    return box + write(x, y + 16.3, text, 12, "middle", True).replace("</text>", more + "</text>")


def band(y, text, h=26, x=2, w=420):
    """A step that touches all columns: a dashed strip."""
    return outline(x, y, w, h, "currentColor", 1.2, 0.6, ' rx="6" stroke-dasharray="5 4"') + write(
        x + w / 2, y + h / 2 + 4.2, text, 12, "middle"
    )
