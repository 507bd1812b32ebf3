"""All heads of a layer side by side."""

import json

import numpy as np

from .. import _checks
from .draw import BLUE, MARK, ORANGE, cut, esc, frame, hatch, num, outline, shades, svg, width, write
from .figure import Figure
from .inputs import allowed, array, both_labels, cell, labels, unique
from .maps import MOST, largest, legend, limit, strength, upright

WIDE = 700  # about the width of a column of the book


def hundredths(values, hidden):
    """The numbers of one map in few bytes, in reading order: 68 for 0.68, x where masked, others by name."""
    texts = [num(v).replace("−", "-") for v in values.ravel()]
    whole = [t if not t[-1].isdigit() else str(int(t.replace(".", ""))) for t in texts]
    return " ".join("x" if off else t for t, off in zip(whole, hidden.ravel(), strict=True))


def head_maps(
    weights,
    tokens,
    keys=None,
    *,
    titles=None,
    columns=4,
    mask=None,
    title=None,
    highlight=None,
    label="weight",
    vmax=None,
):
    """Draw the weights (H, L, S) of all heads as small maps with one colour scale; tokens stand at the outer edges.

    tokens, keys: L queries and S keys; keys=None means the same tokens.
    titles: H texts; None counts "head 0", "head 1", ... as the code does.
    columns: maps side by side. mask: boolean, True = may attend, broadcast to (H, L, S); what leaks through it is marked by
    `attention_map` only.
    highlight: (query, key), tokens or indices: outlines that cell in every map and states its value.
    label, vmax: as in `attention_map`.

    ValueError, TypeError: wrong shape, number of tokens or titles, mask, or a token that is not there or not unique.

    >>> head_maps([[[1, 0], [0, 1]], [[1, 0], [1, 0]]], ["a", "cat"])
    2 attention maps, 2 queries by 2 keys.
    head 0: a → a 1.00
    head 1: a → a 1.00
    """
    values = array("weights", weights, "(H, L, S)", 3)
    H, L, S = values.shape
    if max(L, S) > MOST:
        raise ValueError(f"weights must be at most {MOST} x {MOST} to be readable, got {L} x {S}; pass a slice")
    columns = _checks.integer("columns", columns, 1)
    tokens, keys = both_labels(tokens, keys, L, S, "tokens")
    titles = [f"head {h}" for h in range(H)] if titles is None else labels("titles", titles, H, "head (H)")
    may, marked = allowed(mask, values.shape), cell(highlight, tokens, keys)
    top = limit(values, label, vmax)
    hidden = ~may & ((values == 0) | (values == -np.inf))
    shade, odd = strength(values, top, hidden), ~np.isfinite(values) & ~hidden

    across = min(columns, H)
    gap, under = 14, 30
    rows, tops = [cut(t) for t in tokens], [cut(k) for k in keys]
    size = max(8, min(24, (WIDE - 60 - gap * (across - 1)) / across / S))
    font = max(8.5, min(11, size))
    left, head = max(width(r, font) for r in rows) + 8, max(width(c, font) for c in tops) + 10
    pw, ph = S * size, L * size
    total = left + across * pw + (across - 1) * gap + 2

    parts = []
    for h in range(H):
        x, y = left + (h % across) * (pw + gap), head + (h // across) * (ph + under)
        if h < across:
            parts += [upright(x + (j + 0.5) * size, y - 5, text, font, marked is not None and marked[1] == j)
                      for j, text in enumerate(tops)]  # fmt: skip
        if h % across == 0:
            parts += [write(x - 6, y + (i + 0.5) * size + font * 0.35, text, font, "end", marked is not None and marked[0] == i)
                      for i, text in enumerate(rows)]  # fmt: skip
        parts.append(
            f'<g class="mha-head" data-name="{esc(titles[h])}" data-values="{hundredths(values[h], hidden[h])}">'
        )
        for sign, color in ((1, BLUE), (-1, ORANGE)):
            if (sign * shade[h] > 0).any():
                parts.append(shades(np.maximum(sign * shade[h], 0), x, y, size, size, color))
        if hidden[h].any():
            parts.append(hatch([(x + j * size, y + i * size) for i, j in np.argwhere(hidden[h])], size, size))
        parts.append(outline(x, y, pw, ph, opacity=0.4))
        for i, j in np.argwhere(odd[h]):
            text = num(values[h, i, j])
            parts.append(
                write(x + (j + 0.5) * size, y + (i + 0.5) * size + 3, text, min(9, size * 0.45), "middle", True)
            )
        name = titles[h]
        if marked:
            parts.append(
                outline(x + marked[1] * size, y + marked[0] * size, size, size, MARK, 2, extra=' class="mha-mark"')
            )
            name += f" · {num(values[h][marked])}"
        parts += [write(x + pw / 2, y + ph + 14, name, 12, "middle", True), "</g>"]
    bottom = head + -(-H // across) * (ph + under)
    scale, end = legend(left, bottom, top, label, 1.0, (shade < 0).any(), hidden.any())
    parts.append(scale)

    q, k = unique(tokens), unique(keys)
    if marked:
        said = [f"{t}: {q[marked[0]]} → {k[marked[1]]} {num(v[marked])}" for t, v in zip(titles, values, strict=True)]
    else:
        said = [f"{t}: {''.join(largest(v, q, k, 1)) or 'nothing finite'}" for t, v in zip(titles, values, strict=True)]
    noun = "attention maps" if label == "weight" else f"{label} maps"
    first = f"{H} {noun}, {L} queries by {S} keys."
    first += f" Masked: {hidden.sum()} of {values.size} cells." if hidden.any() else ""
    first += f" Not finite: {odd.sum()} of {values.size} cells." if odd.any() else ""
    what = f"Highlighted {label} in each" if marked else f"Largest {label} in each"
    drawing = svg(max(total, end), bottom + 20, f"{first} {what}: {'; '.join(said)}.", parts, font, 1.15)
    payload = {"queries": tokens, "keys": keys, "label": label, "top": round(top, 4)}
    payload |= {"highlight": marked} if marked else {}
    data = "".join(f' data-{name}="{esc(json.dumps(value))}"' for name, value in payload.items())
    return Figure(frame("heads", drawing, title, data), "\n".join([first, *said]), drawing, title or first)
