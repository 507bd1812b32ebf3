"""The whole layer in one picture, from X to the output, with the shapes and the numbers of a real call."""

import json

import numpy as np

from .. import _checks
from .cards import GREY, arrow, band, line, look, pill, tall_card, wide_card
from .draw import BLUE, esc, frame, num, svg, write
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
AMBER, GREEN, PURPLE = "#CC7A00", "#009E73", "#B25AA0"  # keys, values, and where queries meet keys (in blue and amber)
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

    trace: what `.trace(...)` returns, or any object with the arrays x (..., L, E), q (..., H, L, D), k and v
    (..., H_kv, S, D), scores and weights (..., H, L, S), heads (..., H, L, D), concat (..., L, H*D), output (..., L, E);
    key_input and value_input are drawn too unless missing or None. Of leading axes the first example is drawn.
    head: the head whose numbers lie on top.

    ValueError, TypeError: an array is missing or does not fit, or no such head.

    >>> from types import SimpleNamespace
    >>> import numpy as np
    >>> one = {"x": np.ones((3, 8)), "concat": np.ones((3, 8)), "output": np.ones((3, 8))}
    >>> per_head = {name: np.ones((2, 3, 4)) for name in ("q", "k", "v", "heads")}
    >>> square = {name: np.ones((2, 3, 3)) for name in ("scores", "weights")}
    >>> flow(SimpleNamespace(**one, **per_head, **square))
    x        L × E       3 × 8
    q        H × L × D   2 × 3 × 4
    k        H × S × D   2 × 3 × 4
    v        H × S × D   2 × 3 × 4
    scores   H × L × S   2 × 3 × 3
    weights  H × L × S   2 × 3 × 3
    heads    H × L × D   2 × 3 × 4
    concat   L × H·D     3 × 8
    output   L × E       3 × 8
    """
    a, lead = examples(trace)
    H, L, D = a["q"].shape
    kv, S, Dv = a["v"].shape
    head = _checks.integer("head", head, 0)
    if head >= H:
        raise ValueError(f"head must be one of the {H} heads 0..{H - 1}, got {head}")
    d, h = "D" if Dv == D else "D_v", "H" if kv == H else "H_kv"
    letters = dict.fromkeys(("scores", "weights"), "H × L × S") | {"x": "L × E", "output": "L × E", "q": "H × L × D"}
    letters |= {"k": f"{h} × S × D", "v": f"{h} × S × {d}", "heads": f"H × L × {d}", "concat": f"L × H·{d}"}
    shapes = {name: (letters.get(name, "S × E"), times(value.shape)) for name, value in a.items()}

    parts = []
    y = inputs(parts, 2, a, shapes)
    y = projections(parts, y, a)
    y = attention(parts, y, a, shapes, head)
    y = outputs(parts, y, a, shapes, head)
    notes = ["Stronger colour: larger in magnitude." + f" On top: head {head}." * (H > 1)]
    if (a["scores"] == -np.inf).any():
        notes.append("Hatched: masked.")
    if lead:
        notes.append(f"The first of {times(lead)} examples; every shape has {times(lead)} × in front.")
    if max(L, S) > 16 or max(a["x"].shape[-1], D, Dv) > 32:
        notes.append("Of large arrays, evenly chosen rows and columns.")
    parts += [write(2, y + 18 + 15 * i, note, 12) for i, note in enumerate(notes)]

    steps = "; ".join(f"{name} {' = '.join(shape)}" for name, shape in shapes.items())
    label = (
        f"The layer from X to the output. {steps}. X times W_Q, W_K and W_V gives Q, K and V, split into {H} heads; "
        "Q times K transposed, scaled, gives scores; their softmax gives weights; weights times V gives heads; "
        "side by side and times W_O they give the output."
    )
    drawing = svg(424, y + 12 + 15 * len(notes), label, parts, 12, 1.15)
    wide = [max(map(len, shapes)), max(len(shape[0]) for shape in shapes.values())]
    text = "\n".join(f"{name:{wide[0]}}  {of:{wide[1]}}   {size}" for name, (of, size) in shapes.items())
    data = f' data-steps="{esc(json.dumps(story(a, shapes, head), ensure_ascii=False))}"'
    return Figure(frame("flow", drawing, title, data), text, drawing, title or "The layer from X to the output")


def story(a, shapes, head):
    """Each array in order: its shape, how it comes about, and the corner of its numbers, three rows by four columns."""
    H, _, D = a["q"].shape
    kv = len(a["k"])
    keys = "key input" if "key_input" in a else "X"
    values = "value input" if "value_input" in a else keys
    how = {
        "x": "the layer's input, one row per token",
        "key_input": "what the keys are made of",
        "value_input": "what the values are made of",
        "q": f"X × W_Q, split into heads ({H}): what a token looks for",
        "k": f"{keys} × W_K, split into heads ({kv}): what a token can be found by",
        "v": f"{values} × W_V, split into heads ({kv}): what a token passes on",
        "scores": f"Q Kᵀ / √{D}: how well each key fits each query",
        "weights": "softmax of the scores over the keys: each row sums to 1",
        "heads": "weights × V: for each token a mix of value rows",
        "concat": "the heads side by side, one row per token again",
        "output": "concat × W_O: the layer's result, one row per token",
    }
    steps = []
    for name in sorted(a, key=list(how).index):
        one = head * kv // H if name in ("k", "v") else head
        per_head = a[name].ndim == 3
        corner = (a[name][one] if per_head else a[name])[:3, :4]
        step = dict(zip(("letters", "size"), shapes[name], strict=True)) | ({"head": one} if per_head else {})
        steps.append({"name": name, **step, "how": how[name], "rows": [" ".join(map(num, row)) for row in corner]})
    return steps


def mark(name, drawn):
    """A card that the page can find again."""
    return f'<g class="mha-step" data-step="{name}">{drawn}</g>'


def inputs(parts, y, a, shapes):
    """X alone, or X and what keys and values are made of; return where it ends, as all parts do."""
    if "key_input" not in a and "value_input" not in a:
        view = look(a["x"], 14, y + 16, 116, 40, GREY)
        words = ("the layer's input, one row per token",)
        parts.append(mark("x", wide_card(y, 72, GREY, "X", *shapes["x"], words, view)))
        return y + 72
    keys, values = sources(a)
    cards = [("x", 2, 132, "X", "L × E", a["x"], ("queries come", "from here"))]
    if keys.shape == values.shape and np.array_equal(keys, values, equal_nan=True):
        both = ("keys and values come from here",)
        cards.append(("key_input value_input", 146, 276, "key and value input", "S × E", keys, both))
    else:
        cards.append(("key_input", 146, 132, "for K", "S × E", keys, ("keys come", "from here")))
        cards.append(("value_input", 290, 132, "for V", "S × E", values, ("values come", "from here")))
    for key, x, w, name, letters, value, meaning in cards:
        view = look(value, x + 12, y + 48, w - 24, 40, GREY)
        drawn = tall_card(x, y, 130, GREY, name, letters, times(value.shape), meaning, view, w)
        parts.append(mark(key, drawn))
    return y + 130


def sources(a):
    """What keys and values are made of; X where nothing else is given."""
    keys = a.get("key_input", a["x"])
    return keys, a.get("value_input", keys)


def projections(parts, y, a):
    """Times W_Q, W_K, W_V, and the split into heads."""
    H, _, D = a["q"].shape
    kv, _, Dv = a["v"].shape
    keys, values = sources(a)
    for x, letter, color, source, size in (
        (ONE, "Q", BLUE, a["x"], H * D),
        (TWO, "K", AMBER, keys, kv * D),
        (THREE, "V", GREEN, values, kv * Dv),
    ):
        parts += [
            line([(x, y), (x, y + 10)]),
            pill(x, y + 10, f"× W_{letter}", 132, color, f"{source.shape[-1]} × {size}"),
        ]
        parts += [arrow([(x, y + 34), (x, y + 50)]), arrow([(x, y + 76), (x, y + 92)])]
    text = f"split {H * D} columns into {H} heads of {D}" if H > 1 else f"one head of {D} columns"
    if kv != H or D != Dv:
        text = f"split into heads: Q {H} × {D}, K {kv} × {D}, V {kv} × {Dv}"
    parts.append(band(y + 50, text))
    return y + 92


def attention(parts, y, a, shapes, head):
    """Q, K and V; scores and weights; V goes past them."""
    (H, L, D), (kv, S, _) = a["q"].shape, a["k"].shape
    shared = head * kv // H  # the key head that this query head reads
    for x, name, color, index, sheets, meaning in (
        (ONE, "q", BLUE, head, H, ("what a token", "looks for")),
        (TWO, "k", AMBER, shared, kv, ("what a token", "can be found by")),
        (THREE, "v", GREEN, shared, kv, ("what a token", "passes on")),
    ):
        view = look(a[name][index], x - 54, y + 56, 94, 44, color, sheets)
        parts.append(mark(name, tall_card(x - 66, y, 138, color, name.upper(), *shapes[name], meaning, view)))
    y += 138
    parts += [line([(x, y), (x, y + 10), (PAIR, y + 10), (PAIR, y + 18)]) for x in (ONE, TWO)]
    parts += [pill(PAIR, y + 18, f"Q Kᵀ / √{D}", 150, PURPLE), arrow([(PAIR, y + 42), (PAIR, y + 58)])]
    start, y = y, y + 58
    wide = 68 * min(1.3, max(0.6, S / L))
    hidden = (a["scores"] == -np.inf) & (a["weights"] == 0)
    for name, values, top, meaning, then in (
        ("scores", a["scores"], None, ("how well each key", "fits each query"), "softmax over the keys"),
        (
            "weights",
            np.where(hidden, -np.inf, a["weights"]),
            1,
            ("how much is taken of", "each: rows sum to 1"),
            "weights × V",
        ),
    ):
        view = look(values[head], 14, y + 20, wide, 68, PURPLE, H, top)
        drawn = wide_card(y, 100, PURPLE, name, *shapes[name], meaning, view, w=276, text_at=wide + 34)
        parts.append(mark(name, drawn))
        y = step(parts, PAIR, y + 100, then, PURPLE)
    parts.append(arrow([(THREE, start), (THREE, y)], GREEN))
    return y


def outputs(parts, y, a, shapes, head):
    """The heads, side by side, and the output."""
    H = len(a["heads"])
    by = times((a["concat"].shape[-1], a["output"].shape[-1]))
    for name, values, color, sheets, cuts, meaning, then, more in (
        ("heads", a["heads"][head], GREEN, H, 1, "for each token, a mix of value rows", "side by side", ""),
        ("concat", a["concat"], GREEN, 1, H, "the heads next to each other", "× W_O", by),
        ("output", a["output"], GREY, 1, 1, "the layer's result, one row per token", "", ""),
    ):
        view = look(values, 14, y + (22 if sheets > 1 else 16), 116, 40, color, sheets, parts=cuts)
        parts.append(mark(name, wide_card(y, 72, color, name, *shapes[name], (meaning,), view)))
        y = step(parts, TWO, y + 72, then, GREY, more) if then else y + 72
    return y


def step(parts, x, y, text, color, more=""):
    """An operation between two cards."""
    parts += [line([(x, y), (x, y + 8)]), pill(x, y + 8, text, 170, color, more), arrow([(x, y + 32), (x, y + 46)])]
    return y + 46
