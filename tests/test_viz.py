"""The pictures: the same bytes every time, well formed, honest about what they show, and clear about what they refuse."""

import html
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from mha_lib import viz
from mha_lib.viz import draw

TOKENS = "[CLS] the animal didn ' t cross the street because it was too tired . [SEP]".split()
SVG = "{http://www.w3.org/2000/svg}"
CAUSAL = np.tri(16, dtype=bool)


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def random_weights(*shape, seed=0):
    return softmax(np.random.default_rng(seed).normal(size=shape) * 2)


def trace(L=3, S=3, E=8, H=2, D=4, kv=None, dv=None, lead=(), **more):
    """What a layer computes, from random numbers."""
    kv, dv = kv or H, dv or D
    draw_ = np.random.default_rng(0).normal
    q, k, v = draw_(size=(*lead, H, L, D)), draw_(size=(*lead, kv, S, D)), draw_(size=(*lead, kv, S, dv))
    scores = q @ np.repeat(k, H // kv, -3).swapaxes(-1, -2) / np.sqrt(D)
    weights = softmax(scores)
    heads = weights @ np.repeat(v, H // kv, -3)
    concat = np.moveaxis(heads, -3, -2).reshape(*lead, L, H * dv)
    x, output = draw_(size=(*lead, L, E)), concat @ draw_(size=(H * dv, E))
    return SimpleNamespace(
        x=x, q=q, k=k, v=v, scores=scores, weights=weights, heads=heads, concat=concat, output=output, **more
    )


def masked(one):
    """The same with a causal mask, as far as the weights."""
    one.scores = np.where(np.tri(*one.scores.shape[-2:], dtype=bool), one.scores, -np.inf)
    one.weights = softmax(one.scores)
    return one


def gallery():
    rng = np.random.default_rng(1)
    weights = random_weights(16, 16)
    return {
        "map": viz.attention_map(weights, TOKENS, mask=CAUSAL, title="A <b>map</b>", highlight=("it", "animal")),
        "small": viz.attention_map(weights[:3, :2], ["a", "b", "c"], ["x", "y"]),
        "scores": viz.attention_map(rng.normal(size=(3, 3)) * 4, ["a", "b", "c"], label="score"),
        "long": viz.attention_map(random_weights(40, 40), [f"w{i}" for i in range(40)]),
        "heads": viz.head_maps(random_weights(12, 16, 16), TOKENS, mask=CAUSAL, highlight=(10, 2), title="Heads"),
        "matrix": viz.matrix(rng.normal(size=(30, 384)), name="X", shape=("L", "E"), title="X"),
        "product": viz.product(rng.integers(0, 3, (3, 8)), rng.integers(0, 3, (8, 4)), highlight=(1, 2)),
        "bars": viz.bars(weights[10], TOKENS, compare={"contribution": weights[11]}, highlight="animal"),
        "flow": viz.flow(trace(16, 16, 384, 12, 32), head=1),
        "masked": viz.flow(masked(trace())),
        "cross": viz.flow(trace(5, 7, 16, 4, 4, kv=2, dv=3, lead=(2,), key_input=np.ones((2, 7, 6)))),
    }


GALLERY = gallery()
DRAWN = [name for name, figure in GALLERY.items() if figure.svg]


def svg(figure):
    return ET.fromstring(figure.svg)


def label(figure):
    return svg(figure).get("aria-label")


def words(figure):
    return ["".join(node.itertext()) for node in svg(figure).iter(f"{SVG}text")]


# What holds for every picture


def test_every_run_gives_the_same_bytes():
    code = "import sys; sys.path[:0] = ['.', 'tests']; import test_viz as t; "
    code += "print([f.html + repr(f) for f in t.gallery().values()])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and len(outputs.pop()) > 100_000


@pytest.mark.parametrize("name", GALLERY)
def test_well_formed_and_without_ids_or_scripts(name):
    figure = GALLERY[name]
    root = ET.fromstring(figure.html)
    assert root.tag == "figure" and root.get("class").startswith("mha-fig mha-")
    assert not [node.get("id") for node in root.iter() if node.get("id")]
    assert "<script" not in figure.html and "url(" not in figure.html and "<style" not in figure.html
    assert not re.search(r"[−-]0(\.0+)?(?![\d.])", "".join(root.itertext()))


@pytest.mark.parametrize("name", DRAWN)
def test_numbers_in_drawings_are_short(name):
    geometry = re.sub(r'aria-label="[^"]*"', "", GALLERY[name].svg)
    assert not re.findall(r"\d\.\d{3,}|\de-?\d|nan", geometry)


@pytest.mark.parametrize("name", DRAWN)
def test_labels_stay_readable_at_320_px(name):
    """A drawing may shrink to 320 px or to its min-width; no text is then below 8.4 px, and what is wider scrolls."""
    figure, root = GALLERY[name], svg(GALLERY[name])
    wide = float(root.get("viewBox").split()[2])
    least = re.search(r"min-width:(\d+)px", root.get("style"))
    shown = float(least[1]) if least else min(320, wide * 1.25)
    sizes = [float(node.get("font-size")) for node in root.iter(f"{SVG}text")]
    assert min(sizes) * shown / wide >= 8.2
    assert ('class="mha-scroll"' in figure.html) == bool(least)


@pytest.mark.parametrize("name", DRAWN)
def test_no_text_is_cut_off(name):
    root = svg(GALLERY[name])
    wide, high = (float(v) for v in root.get("viewBox").split()[2:])
    for node in root.iter(f"{SVG}text"):
        long = draw.width("".join(node.itertext()), float(node.get("font-size")))
        x, y = float(node.get("x")), float(node.get("y"))
        if node.get("transform"):  # reads upwards
            assert y - long >= -4, node.text
        else:
            start = x - long * {None: 0, "middle": 0.5, "end": 1}[node.get("text-anchor")]
            assert start >= -4 and start + long <= wide + 4 and y < high, node.text


def test_a_scrolling_box_can_be_reached_and_has_a_name():
    box = ET.fromstring(GALLERY["heads"].html).find("div")
    assert (
        box.get("tabindex") == "0" and box.get("role") == "group" and box.get("aria-label") == "Heads, scrolls sideways"
    )


@pytest.mark.parametrize("name", GALLERY)
def test_the_text_form_is_short(name):
    assert 10 < len(repr(GALLERY[name])) < 1500


def test_save(tmp_path):
    figure = GALLERY["map"]
    page = figure.save(tmp_path / "map.html").read_text("utf-8")
    assert (
        page.startswith("<!doctype html>") and figure.html in page and "<title>A &lt;b&gt;map&lt;/b&gt;</title>" in page
    )
    alone = ET.parse(figure.save(tmp_path / "map.svg")).getroot()
    assert alone.tag == f"{SVG}svg" and "background:#fff" in alone.get("style")
    with pytest.raises(ValueError, match=r"path must end in \.html or \.svg"):
        figure.save(tmp_path / "map.png")
    with pytest.raises(ValueError, match="HTML table"):
        GALLERY["matrix"].save(tmp_path / "matrix.svg")


EVIL = ["<b>&\"'", "]]>", "\x00\x1b", "日本語", ""]


@pytest.mark.parametrize(
    "figure",
    [
        viz.attention_map(random_weights(5, 5), EVIL, title="<i>&"),
        viz.attention_map(random_weights(5, 5), EVIL, label="<i>"),
        viz.head_maps(random_weights(2, 5, 5), EVIL, titles=["<i>", '"&'], title="<i>"),
        viz.matrix(np.ones((5, 5)), name="<i>&", rows=EVIL, columns=EVIL, shape=("<i>", "&"), note="<i>", title="<i>"),
        viz.bars(np.ones(5), EVIL, name="<i>", unit="<i>", compare={"<i>&": np.ones(5)}, title="<i>"),
        viz.product(np.ones((5, 2)), np.ones((2, 5)), names=["<i>"] * 3, rows=EVIL, columns=EVIL, title="<i>"),
        viz.flow(trace(), title="<i>"),
    ],
)
def test_labels_are_escaped(figure):
    root = ET.fromstring(figure.html)
    assert "<i>" not in figure.html and not list(root.iter("i"))
    assert "<i>" in "".join(root.itertext()) + label_of(root)


def label_of(root):
    return "".join(node.get("aria-label", "") for node in root.iter())


def blend(color, back, opacity):
    return [opacity * int(color[i : i + 2], 16) + (1 - opacity) * int(back[i : i + 2], 16) for i in (1, 3, 5)]


def contrast(a, b):
    def light(rgb):
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in (v / 255 for v in rgb)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05

    a, b = sorted((light(a), light(b)))
    return b / a


@pytest.mark.parametrize("color", [draw.BLUE, draw.ORANGE])
@pytest.mark.parametrize("text, back", [("#222832", "#ffffff"), ("#ced6dd", "#14181e"), ("#d5d5d5", "#383838")])
def test_numbers_can_be_read_on_the_strongest_shade(color, text, back):
    """Light book, dark book, dark Colab."""
    assert contrast(blend(text, back, 1), blend(color, back, draw.UNDER_TEXT)) >= 4.5


@pytest.mark.parametrize("back", ["#ffffff", "#14181e"])
@pytest.mark.parametrize("color", [draw.BLUE, draw.MARK])
def test_the_full_shade_and_the_mark_stand_out(color, back):
    assert contrast(blend(color, back, 1), blend(back, back, 1)) >= 3


@pytest.mark.parametrize(
    "value, decimals, text",
    [
        (-0.001, 2, "0.00"),
        (-0.0, 0, "0"),
        (0.12500000001, 2, "0.12"),
        (0.12499999999, 2, "0.12"),
        (-1.5, 1, "−1.5"),
        (np.nan, 2, "NaN"),
        (-np.inf, 2, "−inf"),
        (1234567, 0, "1234567"),
    ],
)
def test_numbers(value, decimals, text):
    assert draw.num(value, decimals) == text


# Attention maps


def test_the_label_of_a_map_says_sizes_and_the_largest_weights():
    weights = np.full((16, 16), 0.02)
    weights[10, 2], weights[7, 1], weights[0, 15] = 0.68, 0.5, 0.4
    text = label(viz.attention_map(weights, TOKENS, highlight=("it", "animal")))
    assert text == (
        "Attention map, 16 queries by 16 keys. Largest: it → animal 0.68, the (7) → the (1) 0.50, [CLS] → [SEP] 0.40. "
        "Highlighted: it → animal 0.68."
    )


def test_shades_follow_the_weights_in_reading_order():
    weights = np.array([[0.25, 0.75, 0.0], [1.0, 0.0, 0.0]])
    cells = [
        [float(c.get("fill-opacity")) for c in row]
        for row in svg(viz.attention_map(weights, ["a", "b"], ["x", "y", "z"], numbers=False)).iter(f"{SVG}g")
        if row.get("class") == "mha-row"
    ]
    assert cells == weights.tolist()
    capped = svg(viz.attention_map(weights, ["a", "b"], ["x", "y", "z"])).iter(f"{SVG}rect")
    assert max(float(c.get("fill-opacity") or 0) for c in capped) == draw.UNDER_TEXT


def test_the_payload_holds_the_weights():
    weights = random_weights(3, 2)
    root = ET.fromstring(viz.attention_map(weights, ["a", "b", "c"], ["x", "y"]).html)
    np.testing.assert_allclose(json.loads(root.get("data-weights")), weights, atol=5.1e-4)
    assert json.loads(root.get("data-queries")) == ["a", "b", "c"] and json.loads(root.get("data-keys")) == ["x", "y"]


def payload(figure, *names):
    root = ET.fromstring(figure.html)
    return [json.loads(root.get(f"data-{name}")) for name in names]


def test_scores_travel_with_the_map_and_change_nothing_to_see():
    scores, may = np.random.default_rng(0).normal(size=(3, 3)) * 4, np.tri(3, dtype=bool)
    weights = softmax(np.where(may, scores / 2, -np.inf))
    plain, carrying = (
        viz.attention_map(weights, ABC, mask=may, **more) for more in ({}, {"scores": scores, "divisor": 2})
    )
    assert plain.svg == carrying.svg and plain.text == carrying.text and "data-scores" not in plain.html
    got, divisor, shade, mask = payload(carrying, "scores", "divisor", "shade", "mask")
    np.testing.assert_allclose(got, scores, atol=5.1e-4)
    assert (divisor, shade, mask) == (2, draw.UNDER_TEXT, "100 110 111")
    assert payload(viz.attention_map(weights, ABC, highlight=("c", "a")), "highlight") == [[2, 0]]


def test_a_row_that_may_attend_to_nothing_has_scores_too():
    may = np.array([[False, False], [True, True]])
    assert viz.attention_map([[0, 0], [0.5, 0.5]], ["a", "b"], mask=may, scores=np.ones((2, 2)))


def test_the_numbers_of_each_head_travel_in_hundredths():
    values = np.array([[[0.684, -1.25], [0.0, np.nan]], [[1.0, 0.006], [0.5, 0.5]]])
    groups = [g for g in svg(viz.head_maps(values, ["a", "b"], label="score", titles=["x", "<y>"])).iter(f"{SVG}g")]
    heads = [(g.get("data-name"), g.get("data-values")) for g in groups if g.get("class") == "mha-head"]
    assert heads == [("x", "68 -125 0 NaN"), ("<y>", "100 1 50 50")]
    masked = viz.head_maps([[[1.0, 0.0], [0.5, 0.5]]], ["a", "b"], mask=np.tri(2, dtype=bool))
    assert 'data-values="100 x 50 50"' in masked.svg


def test_numbers_are_printed_up_to_eight():
    assert "0.25" in words(viz.attention_map(np.full((8, 8), 0.25), list("abcdefgh")))
    assert "0.25" not in words(viz.attention_map(np.full((9, 9), 0.25), list("abcdefghi")))
    assert "0.25" not in words(viz.attention_map(np.full((8, 8), 0.25), list("abcdefgh"), numbers=False))
    assert "0.25" in words(viz.attention_map(np.full((9, 9), 0.25), list("abcdefghi"), numbers=True))


def hatched(figure):
    return sum(
        path.get("d").count("M") // 3 for path in svg(figure).iter(f"{SVG}path") if path.get("class") == "mha-masked"
    )


def test_masked_is_not_the_same_as_small():
    weights, mask = np.array([[1.0, 0.0], [1.0, 0.0]]), np.tri(2, dtype=bool)
    plain, masked = viz.attention_map(weights, ["a", "b"]), viz.attention_map(weights, ["a", "b"], mask=mask)
    swatch = 1  # in the legend
    assert hatched(plain) == 0 and hatched(masked) == 1 + swatch
    assert words(plain).count("0.00") == 2 and words(masked).count("0.00") == 1
    assert "Masked: 1 of 4 cells." in label(masked) and "masked" in words(masked)
    assert hatched(viz.attention_map(random_weights(16, 16) * CAUSAL, TOKENS, mask=CAUSAL)) == 120 + swatch


def test_a_masked_cell_with_a_weight_is_a_leak():
    figure = viz.attention_map(np.full((2, 2), 0.5), ["a", "b"], mask=np.tri(2, dtype=bool))
    assert hatched(figure) == 0 and figure.svg.count('class="mha-leak"') == 1
    assert "Masked, but not 0: 1 of 4 cells, a leak." in label(figure) and "leak" in words(figure)


def test_nan_and_inf_are_visible():
    values = np.array([[np.nan, 1.0], [np.inf, -np.inf]])
    for numbers in (True, False):
        seen = words(viz.attention_map(values, ["a", "b"], label="score", numbers=numbers))
        assert {"NaN", "inf", "−inf"} <= set(seen)
    assert "Not finite: 3 of 4 cells." in label(viz.attention_map(values, ["a", "b"], label="score"))
    assert "NaN" in words(viz.head_maps(values[None], ["a", "b"], label="score"))


def test_masked_scores_are_hatched_and_do_not_count_as_not_finite():
    figure = viz.attention_map([[1.0, -np.inf], [2.0, 3.0]], ["a", "b"], mask=np.tri(2, dtype=bool), label="score")
    assert hatched(figure) == 2 and "−inf" not in words(figure) and "Not finite" not in label(figure)
    assert not [
        r for r in svg(figure).iter(f"{SVG}rect") if r.get("fill") == draw.ORANGE and r.get("fill-opacity") != "0"
    ]


def test_negative_scores_are_orange():
    figure = viz.attention_map([[2.0, -1.0]], ["a"], ["x", "y"], label="score", numbers=False)
    (row,) = (g for g in svg(figure).iter(f"{SVG}g") if g.get("class") == "mha-row")
    assert [(c.get("fill"), c.get("fill-opacity")) for c in row] == [(None, "1"), (draw.ORANGE, "0.5")]
    assert "−2" in words(figure) and "2 score" in words(figure)


def test_head_maps():
    weights = np.full((3, 2, 2), 0.5)
    weights[1, 0] = 0.9, 0.1
    figure = viz.head_maps(weights, ["a", "cat"], highlight=("a", "a"))
    assert [w for w in words(figure) if w.startswith("head")] == ["head 0 · 0.50", "head 1 · 0.90", "head 2 · 0.50"]
    assert label(figure).startswith(
        "3 attention maps, 2 queries by 2 keys. Highlighted weight in each: head 0: a → a 0.50;"
    )
    groups = [g for g in svg(figure).iter(f"{SVG}g") if g.get("class") == "mha-head"]
    shades = [{p.get("stroke-opacity"): p.get("d") for p in g[0]} for g in groups]
    assert shades[1] == {"0.1": "M1 0h1", "0.5": "M0 1h1M1 1h1", "0.9": "M0 0h1"}
    assert words(figure).count("cat") == 3 + 1  # above each map of the first row, left of the first one
    assert words(viz.head_maps(weights, ["a", "cat"], columns=2)).count("cat") == 2 + 2
    assert "left" in words(viz.head_maps(weights, ["a", "cat"], titles=["left", "middle", "right"]))


# Tables


def texts(figure, tag="td"):
    return ["".join(node.itertext()) for node in ET.fromstring(figure.html).iter(tag)]


def test_matrix():
    figure = viz.matrix(
        [[1, 0], [-2, 3]], name="Q", rows=["the", "cat"], columns=["q0", "q1"], highlight=(1, None), note="Rows."
    )
    assert texts(figure) == ["", "1", "0", "−2", "3"] and texts(figure, "th") == ["q0", "q1", "the", "cat"]
    assert texts(figure, "caption") == ["Q (L × d_k = 2 × 2)"] and texts(figure, "p") == ["Rows."]
    marked = [n.text for n in ET.fromstring(figure.html).iter("td") if n.get("class") == "mha-mark"]
    assert marked == ["−2", "3"]
    assert [n.get("scope") for n in ET.fromstring(figure.html).iter("th")] == ["col", "col", "row", "row"]


def test_numbers_in_a_matrix():
    assert texts(viz.matrix([[1.0, 2.0]])) == ["1", "2"]
    assert texts(viz.matrix([[1.5, -0.001, np.nan, -np.inf]])) == ["1.50", "0.00", "NaN", "−inf"]
    assert texts(viz.matrix([[1.5, 2.0]], decimals=1)) == ["1.5", "2.0"]
    assert texts(viz.matrix([[True, False]])) == ["True", "False"]


def test_a_large_matrix_is_cut_short_and_says_so():
    values = np.arange(21 * 9).reshape(21, 9)
    figure = viz.matrix(values, name="X", shape=("L", "E"))
    assert texts(figure, "caption") == [
        "X (L × E = 21 × 9); first 8 and last 4 of 21 rows and first 4 and last 2 of 9 columns shown"
    ]
    seen = texts(figure)
    assert seen[:7] == ["0", "1", "2", "3", "…", "7", "8"] and seen[-1] == "188" and seen.count("⋮") == 7
    assert len(seen) == 13 * 7
    assert "…" not in texts(viz.matrix(values[:20, :8])) and "⋮" not in texts(viz.matrix(values[:20, :8]))


def test_product():
    A, B = np.array([[1, -2], [0, 3]]), np.array([[4, 0], [1, 5]])
    figure = viz.product(A, B, names=("X", "W_Q", "Q"), highlight=(0, 0))
    assert texts(figure) == [str(v).replace("-", "−") for v in [*A.flat, *B.flat, *(A @ B).flat]]
    assert texts(figure, "caption") == ["X (L × E = 2 × 2)", "W_Q (E × D = 2 × 2)", "Q (L × D = 2 × 2)"]
    underlined = [n.text for n in ET.fromstring(figure.html).iter("b") if "underline" in n.get("style", "")]
    assert underlined == ["E", "E"]
    assert texts(figure, "p") == ["Q[0, 0] = 1·4 + (−2)·1 = 2"]
    assert figure.html.count('class="mha-mark"') == 2 + 2 + 1


# Bars


def test_bars():
    figure = viz.bars([0.5, -0.25, np.nan], ["a", "b", "c"], unit=" MB", highlight="a")
    assert [w for w in words(figure) if w not in "abc"] == ["0.50 MB", "−0.25 MB", "NaN"]
    plus, minus = (
        (float(r.get("x")), float(r.get("width"))) for r in svg(figure).iter(f"{SVG}rect") if r.get("fill") == draw.BLUE
    )
    assert plus[1] == pytest.approx(2 * minus[1], abs=0.02)
    assert plus[0] == pytest.approx(minus[0] + minus[1], abs=0.02)  # both start at 0, in opposite directions
    assert label(figure) == "Bars for 3 labels; largest value: a 0.50 MB, b −0.25 MB, c NaN."


def test_series_differ_in_pattern_not_only_in_colour():
    figure = viz.bars([1, 2], ["a", "b"], name="weight", compare={"contribution": [2, 1], "third": [1, 1]})
    assert {"weight", "contribution", "third"} <= set(words(figure))
    striped = [p.get("stroke") for p in svg(figure).iter(f"{SVG}path") if p.get("stroke") in (draw.ORANGE, draw.MARK)]
    assert striped.count(draw.ORANGE) == 3 and striped.count(draw.MARK) == 3  # the legend and two bars
    assert viz.bars([0, 0], ["a", "b"]).svg  # nothing to scale by


# The flow


def test_flow_shows_every_shape():
    figure = viz.flow(trace(5, 7, 16, 4, 4, kv=2, dv=3, lead=(2,), key_input=np.ones((2, 7, 6))))
    seen = " | ".join(words(figure))
    for text in (
        "L × E = 5 × 16", "4 × 5 × 4", "2 × 7 × 4", "2 × 7 × 3", "H × L × S = 4 × 5 × 7", "H × L × D_v = 4 × 5 × 3",
        "L × H·D_v = 5 × 12", "× WQ  16 × 16", "× WK  6 × 8", "× WV  6 × 6", "× WO  12 × 16", "Q Kᵀ / √4",
        "key and value input", "split into heads: Q 4 × 4, K 2 × 4, V 2 × 3", "The first of 2 examples",
    ):  # fmt: skip
        assert text in seen or text in words(figure), text
    assert repr(figure).splitlines()[0].split() == ["x", "L", "×", "E", "5", "×", "16"]
    assert "weights H × L × S = 4 × 5 × 7" in label(figure)


def test_flow_carries_its_steps_with_their_first_numbers():
    one = trace(5, 7, 16, 4, 4, kv=2, dv=3, key_input=np.ones((7, 6)))
    figure = viz.flow(one, head=3)
    (steps,) = payload(figure, "steps")
    names = ["x", "key_input", "q", "k", "v", "scores", "weights", "heads", "concat", "output"]
    assert [s["name"] for s in steps] == names and [s.get("head") for s in steps][2:5] == [3, 1, 1]
    for step in steps:
        values = getattr(one, step["name"])
        values = values[step["head"]] if "head" in step else values
        assert step["rows"] == [" ".join(draw.num(v) for v in row[:4]) for row in values[:3]]
        assert step["size"].endswith(" × ".join(map(str, values.shape)))
    assert steps[4]["how"].startswith("key input × W_V")
    cards = " ".join(g.get("data-step") for g in svg(figure).iter(f"{SVG}g") if g.get("class") == "mha-step")
    assert sorted(cards.split()) == sorted([*names, "value_input"])


def test_flow_takes_three_inputs_and_the_right_key_head():
    one = trace(key_input=np.ones((3, 5)), value_input=np.zeros((3, 6)))
    assert {"X", "for K", "for V"} <= set(words(viz.flow(one)))
    grouped = trace(3, 3, 16, 4, 4, kv=2)
    pictures = [viz.flow(grouped, head=h).svg for h in range(4)]
    keys = [re.search(r'stroke="#CC7A00" stroke-width="0.92">.*?</g>', p)[0] for p in pictures]
    assert keys[0] == keys[1] != keys[2] == keys[3]


def test_flow_hatches_what_is_masked():
    one = trace()
    assert hatched(viz.flow(one)) == 0 and "masked" not in " ".join(words(viz.flow(one)))
    one = masked(one)
    assert hatched(viz.flow(one)) == 3 + 3 and "Hatched: masked." in " ".join(words(viz.flow(one)))
    one.x[0, 0] = np.nan
    assert "NaN" in words(viz.flow(one))


def test_flow_draws_the_trace_of_a_layer():
    layer = pytest.importorskip("mha_lib.numpy", exc_type=ImportError)
    if not hasattr(layer, "MultiHeadAttention"):
        pytest.skip("mha_lib.numpy has no MultiHeadAttention")
    x = np.random.default_rng(0).normal(size=(3, 8))
    mha = layer.MultiHeadAttention(8, 2, rng=np.random.default_rng(0))
    assert "H × L × S = 2 × 3 × 3" in words(viz.flow(mha.trace(x)))


# Curves


def test_curves():
    pytest.importorskip("matplotlib").use("agg")
    import matplotlib.pyplot as plt

    axes = viz.curves(
        [1, 2, 4], {"a": [1, 4, 16], "b": [1, np.nan, 4]}, xlabel="L", ylabel="MB", xlog=True, ylog=True, title="T"
    )
    try:
        assert len({(line.get_linestyle(), line.get_marker(), line.get_color()) for line in axes.lines}) == 2
        for get in ("get_linestyle", "get_marker", "get_color"):
            assert len({getattr(line, get)() for line in axes.lines}) == 2
        assert [t.get_text() for t in axes.texts] == ["b", "a"] and axes.get_legend() is None
        assert axes.get_xscale() == axes.get_yscale() == "log" and axes.get_xlabel() == "L"
        assert axes.figure.get_facecolor() == (1, 1, 1, 1)
        axes.figure.canvas.draw()
    finally:
        plt.close("all")


# What is refused


W = np.full((2, 3), 1 / 3)
X = np.ones(3)
ABC = ["a", "b", "c"]
LINES = {"xlabel": "x", "ylabel": "y"}


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: viz.attention_map(X, ABC), r"weights must have the axes \(L, S\), got shape \(3,\)"),
        (lambda: viz.attention_map(W, ABC, ABC), r"queries must hold one text for each row of weights \(L\), so 2, got 3"),
        (lambda: viz.attention_map(W, ["a", "b"], ["a"]), r"keys must hold one text .*, so 3, got 1"),
        (lambda: viz.attention_map(W, ["a", "b"]), r"keys must be given when weights \(L, S\) = \(2, 3\)"),
        (lambda: viz.attention_map(W, "ab", ABC), r"queries must be a list of texts, got 'ab'"),
        (lambda: viz.attention_map([["a"]], ["a"]), r"weights must hold real numbers, got <U1"),
        (lambda: viz.attention_map([[1j]], ["a"]), r"weights must hold real numbers, got complex128"),
        (lambda: viz.attention_map(None, ["a"]), r"weights must hold real numbers, got None"),
        (lambda: viz.attention_map([[1, 2], [3]], ["a"]), r"weights must be an array \(L, S\), got rows of different"),
        (lambda: viz.attention_map(np.ones((0, 3)), [], ABC), r"weights must not be empty, got shape \(0, 3\)"),
        (lambda: viz.attention_map(np.ones((65, 1)), ["a"] * 65, ["a"]), r"at most 64 x 64 .* got 65 x 1; pass a slice"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, mask=W), r"mask must be boolean \(True = may attend\), got float64"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, mask=[[True] * 2]), r"mask must broadcast .*got shape \(1, 2\)"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, highlight="ab"), r"highlight must be a pair \(query, key\), got 'ab'"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, highlight=("a", "x")), r"highlight\[1\] must be a token .* got 'x'"),
        (lambda: viz.attention_map(W, ["a", "a"], ABC, highlight=("a", "b")), r"got 'a', which stands at \[0, 1\]"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, highlight=(2, 0)), r"highlight\[0\] must be an index below 2, got 2"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, vmax=0), r"vmax must be a positive number or None, got 0"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, scores=X), r"scores must have the axes \(L, S\), got shape \(3,\)"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, scores=W.T), r"scores must be finite and have .* \(2, 3\), got shape"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, scores=W * np.inf), r"scores must be finite"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, scores=[[1, 2, 3]] * 2), r"scores must give the weights by a softmax"),
        (lambda: viz.attention_map(W, ["a", "b"], ABC, scores=W, divisor=0), r"divisor must be a positive number, got 0"),
        (lambda: viz.head_maps(W, ABC), r"weights must have the axes \(H, L, S\), got shape \(2, 3\)"),
        (lambda: viz.head_maps(W[None], ABC, ABC), r"tokens must hold one text for each row"),
        (lambda: viz.head_maps(W[None], ["a", "b"], ABC, titles=["x", "y"]), r"titles must hold .* head \(H\), so 1, got 2"),
        (lambda: viz.head_maps(W[None], ["a", "b"], ABC, columns=0), r"columns must be an integer >= 1, got 0"),
        (lambda: viz.matrix(X), r"values must have the axes \(rows, columns\), got shape \(3,\)"),
        (lambda: viz.matrix(W, rows=ABC), r"rows must hold one text for each row, so 2, got 3"),
        (lambda: viz.matrix(W, decimals=-1), r"decimals must be an integer from 0 to 9, got -1"),
        (lambda: viz.matrix(W, highlight=(2, 0)), r"highlight must lie within the shape \(2, 3\), got \(2, 0\)"),
        (lambda: viz.matrix(W, highlight="ab"), r"highlight must be a pair"),
        (lambda: viz.matrix(W, highlight=3), r"highlight must be a pair"),
        (lambda: viz.matrix(W, shape="LD"), r"shape must be two letters"),
        (lambda: viz.product(W, W), r"share the inner dimension, got shapes \(2, 3\) and \(2, 3\)"),
        (lambda: viz.product(W, W.T, highlight=(0, None)), r"highlight must be one cell"),
        (lambda: viz.bars(W, ABC), r"values must have the axes \(N,\), got shape \(2, 3\)"),
        (lambda: viz.bars(X, ["a"]), r"labels must hold one text for each bar \(N\), so 3, got 1"),
        (lambda: viz.bars(X, ABC, compare={"x": [1]}), r"compare\['x'\] must hold 3 values, got 1"),
        (lambda: viz.bars(X, ABC, compare=X), r"compare must be a dict"),
        (lambda: viz.bars(X, ABC, compare={"value": X}), r"compare must use other names than 'value'"),
        (lambda: viz.bars([], []), r"values must not be empty"),
        (lambda: viz.flow(W), r"trace must have the arrays x, .*, got ndarray without x"),
        (lambda: viz.flow(trace(), head=2), r"head must be one of the 2 heads 0..1, got 2"),
        (lambda: viz.flow(SimpleNamespace(**{**vars(trace()), "weights": W[None]})), r"arrays that fit together"),
        (lambda: viz.flow(SimpleNamespace(**{**vars(trace()), "q": X})), r"trace.q must have the axes \(..., H, L, D\), got"),
        (lambda: viz.curves(X, {}, **LINES), r"series must be a dict of one to 6 lines, got 0"),
        (lambda: viz.curves(X, X, **LINES), r"series must be a dict of one to 6 lines"),
        (lambda: viz.curves(X, {"a": [1]}, **LINES), r"series\['a'\] must have the length of x, 3, got 1"),
        (lambda: viz.curves(X, {"a": [1, 0, 1]}, ylog=True, **LINES), r"series\['a'\] must be positive .*, got 0"),
        (lambda: viz.curves([0, 1], {"a": [1, 1]}, xlog=True, **LINES), r"x must be positive on a logarithmic axis, got 0"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call, message):
    with pytest.raises((ValueError, TypeError), match=message) as error:
        call()
    assert "\n" not in str(error.value)


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    weights = torch.full((2, 2), 0.5)
    same = viz.attention_map(weights.numpy(), ["a", "b"]).html
    assert viz.attention_map(weights, ["a", "b"]).html == viz.attention_map(weights.bfloat16(), ["a", "b"]).html == same
    with pytest.raises(TypeError, match=r"weights must hold plain numbers, .* pass weights\.detach\(\)"):
        viz.attention_map(weights.requires_grad_(), ["a", "b"])
    with pytest.raises(TypeError, match=r"weights must be in main memory, got a tensor on meta"):
        viz.attention_map(weights.detach().to("meta"), ["a", "b"])


def test_inputs_are_not_written_to():
    weights = random_weights(3, 3)
    weights.flags.writeable = False
    before = weights.copy()
    viz.attention_map(weights, ABC, mask=np.tri(3, dtype=bool))
    viz.head_maps(weights[None], ABC)
    viz.matrix(weights)
    assert (weights == before).all()


def test_only_numpy_is_needed():
    heavy = {"torch", "matplotlib", "mha_lib.numpy", "mha_lib.torch"}
    code = f"import sys; import mha_lib.viz; assert not {heavy} & set(sys.modules)"
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    )


def test_html_payload_survives_a_browser():
    figure = viz.attention_map([[1.0]], ['say "hi" & <go>'])
    raw = re.search(r'data-queries="([^"]*)"', figure.html)[1]
    assert json.loads(html.unescape(raw)) == ['say "hi" & <go>']


def test_other_axes_are_named_in_picture_and_label():
    figure = viz.attention_map([[0.5, 0.2, 0.1]], ["head 0"], ["a", "b", "c"], label="length", axes=("head", "token"))
    assert label(figure).startswith("Map of the length, 1 rows (head) by 3 columns (token). Largest: head 0 → a 0.50")
    assert {"head", "token"} <= set(words(figure)) and "query" not in words(figure)
    with pytest.raises(ValueError, match="axes must hold one text for each axis, so 2, got 1"):
        viz.attention_map([[1.0]], ["a"], axes=["head"])
