"""The whole layer in one picture, from X to the output, with the shapes and the numbers of a real call."""

import numpy as np

from .cards import GREY, arrow, band, line, look, pill, tall_card, wide_card
from .draw import BLUE, frame, svg, write
from .figure import Figure
from .inputs import array

AXES = {
    "x": ("..., L, E", 2),
    "q": ("..., H, L, D", 3),
    "k": ("..., H_kv, S, D", 3),
    "v": ("..., H_kv, S, D_v", 3),
    "scores": ("..., H, L, S", 3),
    "weights": ("..., H, L, S", 3),
    "heads": ("..., H, L, D_v", 3),
    "concat": ("..., L, H*D_v", 2),
    "output": ("..., L, E", 2),
}
AMBER, GREEN, PURPLE = "#CC7A00", "#009E73", "#AA4499"  # keys, values, and where queries meet keys (in blue and amber)
ONE, TWO, THREE, PAIR = 68, 212, 356, 140  # the centres of the three columns, and of the first two together


def examples(trace):
    """The arrays of the first example, and the leading axes."""
    found, lead = {}, ()
    for name, (axes, own) in {**AXES, "key_input": ("..., S, E_k", 2), "value_input": ("..., S, E_v", 2)}.items():
        value = getattr(trace, name, None)
        if value is None and name in AXES:
            raise TypeError(f"trace must have the arrays {', '.join(AXES)}, got {type(trace).__name__} without {name}")
        if value is None:
            continue
        value = array(f"trace.{name}", value, f"({axes})", max(own, len(np.shape(value))))
        lead = value.shape[: value.ndim - own]
        found[name] = value.reshape(-1, *value.shape[len(lead) :])[0]
    q, k, v, weights = (found[name].shape for name in ("q", "k", "v", "weights"))
    if weights != (q[0], q[1], k[1]) or found["scores"].shape != weights or q[2] != k[2] or v[:2] != k[:2]:
        raise ValueError(f"trace must hold arrays that fit together, got q {q}, k {k}, v {v}, weights {weights}")
    return found, lead


def times(shape):
    """12 × 16 × 32."""
    return " × ".join(map(str, shape))


def flow(trace, *, title=None, head=0):
    """Draw a whole multi-head attention layer as it computed, from X to the output, each array with its real shape.

    trace: what `.trace(...)` returns, or any object with the arrays x (..., L, E), q (..., H, L, D), k and v (..., H_kv, S, D),
    scores and weights (..., H, L, S), heads (..., H, L, D), concat (..., L, H*D) and output (..., L, E); key_input and value_input,
    if they are there and not None, are drawn too. Of leading axes the first example is drawn.
    head: the head whose numbers lie on top.

    ValueError, TypeError: an array is missing or does not fit, or no such head.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> one = {"x": np.ones((3, 8)), "concat": np.ones((3, 8)), "output": np.ones((3, 8))}
    >>> per_head = {name: np.ones((2, 3, 4)) for name in ("q", "k", "v", "heads")}
    >>> square = {name: np.ones((2, 3, 3)) for name in ("scores", "weights")}
    >>> flow(SimpleNamespace(**one, **per_head, **square))
    x        L × E    3 × 8
    q        H × L × D       2 × 3 × 4
    k        H × S × D       2 × 3 × 4
    v        H × S × D       2 × 3 × 4
    scores   H × L × S       2 × 3 × 3
    weights  H × L × S       2 × 3 × 3
    heads    H × L × D       2 × 3 × 4
    concat   L × H·D     3 × 8
    output   L × E           3 × 8
    """
    a, lead = examples(trace)
    H, L, D = a["q"].shape
    kv, S, Dv = a["v"].shape
    if isinstance(head, bool) or not isinstance(head, int) or not 0 <= head < H:
        raise ValueError(f"head must be an integer from 0 to {H - 1}, got {head!r}")
    shared = head * kv // H  # the key head that this query head reads
    n = {name: times(value.shape) for name, value in a.items()}
    d, h = "D" if Dv == D else "D_v", "H" if kv == H else "H_kv"
    letters = {"x": "L × E", "q": "H × L × D", "k": f"{h} × S × D", "v": f"{h} × S × {d}", "scores": "H × L × S",
               "weights": "H × L × S", "heads": f"H × L × {d}", "concat": f"L × H·{d}", "output": "L × E"}  # fmt: skip

    parts, y = [], 2
    crossed = "key_input" in a or "value_input" in a
    y = inputs(parts, y, a, n)
    for x, letter, color, source, size in (
        (ONE, "Q", BLUE, "x", H * D),
        (TWO, "K", AMBER, "key_input", kv * D),
        (THREE, "V", GREEN, "value_input", kv * Dv),
    ):
        source = a[source] if source in a else a["key_input" if crossed and letter != "Q" else "x"]
        parts += [
            line([(x, y), (x, y + 10)]),
            pill(x, y + 10, f"× W_{letter}", 132, color, f"{source.shape[-1]} × {size}"),
        ]
        parts.append(arrow([(x, y + 34), (x, y + 50)]))
        parts.append(arrow([(x, y + 76), (x, y + 92)]))
    if kv == H and D == Dv:
        text = f"split {H * D} columns into {H} heads of {D}" if H > 1 else f"one head of {D} columns"
    else:
        text = f"split into heads:  Q {H} × {D},  K {kv} × {D},  V {kv} × {Dv}"
    parts.append(band(y + 50, text))
    y += 92
    looks = (
        (ONE, "q", BLUE, head, H, ("what a token", "looks for")),
        (TWO, "k", AMBER, shared, kv, ("what a token", "can be found by")),
        (THREE, "v", GREEN, shared, kv, ("what a token", "passes on")),
    )
    for x, name, color, index, sheets, meaning in looks:
        view = look(a[name][index], x - 54, y + 56, 94, 44, color, sheets)
        parts.append(tall_card(x - 66, y, 138, color, name.upper(), letters[name], n[name], meaning, view))
    y += 138
    parts += [line([(ONE, y), (ONE, y + 10), (PAIR, y + 10)]), line([(TWO, y), (TWO, y + 10), (PAIR, y + 10)])]
    parts += [line([(PAIR, y + 10), (PAIR, y + 18)]), pill(PAIR, y + 18, f"Q Kᵀ / √{D}", 150, PURPLE)]
    parts.append(arrow([(PAIR, y + 42), (PAIR, y + 58)]))
    value_from = y
    y += 58
    wide = 68 * min(1.3, max(0.6, S / L))
    pair = (
        ("scores", PURPLE, None, ("how well each key", "fits each query"), "softmax over the keys"),
        ("weights", PURPLE, 1.0, ("how much is taken of", "each: rows sum to 1"), "weights × V"),
    )
    for name, color, top, meaning, then in pair:
        view = look(a[name][head], 14, y + 20, wide, 68, color, H, top)
        parts.append(wide_card(y, 100, color, name, letters[name], n[name], meaning, view, w=276, text_at=wide + 34))
        y += 100
        parts += [line([(PAIR, y), (PAIR, y + 8)]), pill(PAIR, y + 8, then, 170, color)]
        parts.append(arrow([(PAIR, y + 32), (PAIR, y + 46)]))
        y += 46
    parts.append(arrow([(THREE, value_from), (THREE, y)], GREEN))
    last = (
        ("heads", GREEN, head, H, 1, ("for each token, a mix of value rows",), "side by side", ""),
        (
            "concat",
            GREEN,
            None,
            1,
            H,
            ("the heads next to each other",),
            "× W_O",
            f"{H * Dv} × {a['output'].shape[-1]}",
        ),
        ("output", GREY, None, 1, 1, ("what the layer hands on, a row per token",), "", ""),
    )
    for name, color, index, sheets, cuts, meaning, then, more in last:
        values = a[name] if index is None else a[name][index]
        view = look(values, 14, y + (22 if sheets > 1 else 16), 110, 40, color, sheets, parts=cuts)
        parts.append(wide_card(y, 72, color, name, letters[name], n[name], meaning, view, text_at=152))
        y += 72
        if then:
            parts += [line([(TWO, y), (TWO, y + 8)]), pill(TWO, y + 8, then, 170, GREY, more)]
            parts.append(arrow([(TWO, y + 32), (TWO, y + 46)]))
            y += 46
    notes = [
        f"Darker: larger in magnitude. On top: head {head}. Hatched: masked."
        if H > 1
        else "Darker: larger in magnitude."
    ]
    if lead:
        notes.append(f"The first of {times(lead)} examples; every shape has {times(lead)} × in front.")
    if max(L, S) > 16 or a["x"].shape[-1] > 32:
        notes.append("Of large arrays, evenly chosen rows and columns.")
    parts += [write(2, y + 18 + 15 * i, note, 12) for i, note in enumerate(notes)]
    steps = [f"{name} {letters.get(name, 'S × E')} = {n[name]}" for name in a]
    label = (
        f"The layer from X to the output. {'; '.join(steps)}. X times W_Q, W_K and W_V gives Q, K and V, split into {H} heads; "
        "Q times K transposed, scaled, gives scores; their softmax gives weights; weights times V gives heads; "
        "side by side and times W_O they give the output."
    )
    drawing = svg(424, y + 12 + 15 * len(notes), label, parts, 12, 1.15)
    rows = [(name, letters.get(name, "S × E"), n[name]) for name in a]
    wide = [max(len(row[i]) for row in rows) for i in (0, 1)]
    text = "\n".join(f"{r[0]:{wide[0]}}  {r[1]:{wide[1]}}   {r[2]}" for r in rows)
    return Figure(frame("flow", drawing, title), text, drawing, title or "The layer from X to the output")


def inputs(parts, y, a, n):
    """Draw what the layer is given: X alone, or X and what keys and values are made of; return where it ends."""
    if "key_input" not in a and "value_input" not in a:
        view = look(a["x"], 14, y + 16, 128, 40, GREY)
        parts.append(wide_card(y, 72, GREY, "X", "L × E", n["x"], ("the layer's input, one row per token",), view))
        return y + 72
    keys, values = a.get("key_input", a["x"]), a.get("value_input", a.get("key_input", a["x"]))
    cards = [(2, 132, "X", "L × E", a["x"], ("queries come", "from here"))]
    if keys.shape == values.shape and np.array_equal(keys, values, equal_nan=True):
        cards.append((146, 276, "key and value input", "S × E", keys, ("keys and values come from here",)))
    else:
        cards.append((146, 132, "for K", "S × E", keys, ("keys come", "from here")))
        cards.append((290, 132, "for V", "S × E", values, ("values come", "from here")))
    for x, w, name, letters, value, meaning in cards:
        view = look(value, x + 12, y + 48, w - 24, 40, GREY)
        parts.append(tall_card(x, y, 130, GREY, name, letters, times(value.shape), meaning, view, w))
    return y + 130
