"""Small tools for drawing: numbers and labels as text, pieces of SVG, the frame of a figure.

Nothing here depends on time, chance or the platform. Colours: text and lines take the colour of the page (currentColor);
one blue carries values by its opacity, orange carries negative ones, vermilion marks what is pointed at. The hues are near
Okabe and Ito's, which colour-blind readers can tell apart; they are moved so that they stand out on black as on white.
"""

import html
import math
import unicodedata

BLUE, ORANGE, MARK = "#1B7FC4", "#C27500", "#D55E00"
UNDER_TEXT = 0.45  # the strongest shade below a printed number: contrast stays above 4.5 : 1 in light and dark
SMALLEST = 9  # px: no label is shown smaller; a wider drawing scrolls instead


def esc(text):
    """Text that is safe inside HTML and XML, attributes included; control characters become visible."""
    text = "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cs") else c for c in str(text))
    return html.escape(text, quote=True)


def num(value, decimals=2):
    """A number as text: rounded, without negative zero, a real minus sign, and NaN and inf by name.

    Rounding twice is on purpose: 0.125000001 and 0.125, which different processors may give for the same sum, print alike.
    """
    value = float(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "−inf"
    text = f"{round(value, decimals + 4):.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", "−")


def xy(value):
    """A coordinate or an opacity: at most two decimals, no trailing zeros."""
    return f"{round(round(float(value), 6), 2) + 0:g}"


def width(text, size=12):
    """About how wide a text is, on the wide side, since the reader's font is not known."""
    ems = 0.0
    for c in str(text):
        if unicodedata.east_asian_width(c) in "WF":
            ems += 1.0
        elif c in "mwMW@%→":
            ems += 0.9
        else:
            ems += 0.38 if c in "iljft.,:;'|![]() " else 0.72 if c.isupper() else 0.64
    return ems * size


def cut(text, length=14):
    """A label of at most `length` characters."""
    text = str(text)
    return text if len(text) <= length else text[: length - 1] + "…"


def write(x, y, text, size=12, anchor="start", bold=False, extra=""):
    """One line of text in an SVG."""
    a = "" if anchor == "start" else f' text-anchor="{anchor}"'
    b = ' font-weight="600"' if bold else ""
    return f'<text x="{xy(x)}" y="{xy(y)}" font-size="{xy(size)}"{a}{b}{extra}>{esc(text)}</text>'


def outline(x, y, w, h, color="currentColor", thick=1, opacity=1, extra=""):
    """An empty rectangle."""
    return (
        f'<rect x="{xy(x)}" y="{xy(y)}" width="{xy(w)}" height="{xy(h)}" fill="none" stroke="{color}" '
        f'stroke-width="{xy(thick)}" stroke-opacity="{xy(opacity)}"{extra}/>'
    )


def hatch(cells, w, h, opacity=0.55):
    """Diagonal lines over the cells at the given corners: masked is not the same as small."""
    lines = "".join(
        f"M{xy(x)} {xy(y + h / 2)}l{xy(w / 2)} {xy(-h / 2)}M{xy(x)} {xy(y + h)}l{xy(w)} {xy(-h)}"
        f"M{xy(x + w / 2)} {xy(y + h)}l{xy(w / 2)} {xy(-h / 2)}"
        for x, y in cells
    )
    return f'<path class="mha-masked" d="{lines}" stroke="currentColor" stroke-opacity="{opacity}" stroke-width=".8"/>'


def shades(rows, x, y, cw, ch, color=BLUE, gap=0.0):
    """A grid of shades in few bytes: one path for each opacity, one short stroke for each cell; 0 draws nothing."""
    paths = {}
    for i, row in enumerate(rows):
        for j, shade in enumerate(row):
            if (text := xy(shade)) != "0":
                paths[text] = paths.get(text, "") + f"M{j} {i}h{xy(1 - gap)}"
    strokes = "".join(f'<path d="{d}" stroke-opacity="{shade}"/>' for shade, d in sorted(paths.items()))
    place = f"translate({xy(x)} {xy(y + ch / 2)}) scale({xy(cw)} {xy(ch)})"
    return f'<g transform="{place}" stroke="{color}" stroke-width="{xy(1 - gap)}">{strokes}</g>'


def svg(w, h, label, parts, font=12, grow=1.25):
    """The drawing: scales with its column up to `grow` times its size, and never below readable labels."""
    least = math.ceil(w * SMALLEST / font)
    hold = f"min-width:{least}px;" if least > 320 else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {xy(w)} {xy(h)}" role="img" aria-label="{esc(label)}" '
        f'fill="currentColor" style="{hold}width:100%;max-width:{math.ceil(w * grow)}px;height:auto;display:block">'
        + "".join(parts)
        + "</svg>"
    )


def scroll(content, label):
    """A box that scrolls sideways and can be reached by keyboard."""
    return (
        f'<div class="mha-scroll" role="group" tabindex="0" aria-label="{esc(label)}" style="overflow-x:auto">'
        f"{content}</div>"
    )


def frame(kind, content, title=None, data=""):
    """The figure around a drawing or table."""
    text = "text-align:left;color:inherit;font-family:inherit;margin:0 0 .4em"
    caption = f'<figcaption style="{text};font-weight:600">{esc(title)}</figcaption>' if title else ""
    if content.startswith("<svg") and 'style="min-width' in content:
        content = scroll(content, f"{title or kind}, scrolls sideways")
    return f'<figure class="mha-fig mha-{kind}" style="margin:.6em 0"{data}>{caption}{content}</figure>'
