"""The figures and questions of the built book in Chromium: what they read out and compute, by mouse and by keyboard.

The numbers are compared with what the figure carries, and computed again here; test_every_page.py runs axe-core after all of it.
"""

import contextlib
import json
import re

import numpy as np
import pytest
import reading
from reading import HTML, ROOT, tab_to

pytestmark = pytest.mark.browser

CHAPTERS = sorted(path.stem for path in (ROOT / "chapters").glob("[0-9]*.ipynb"))


@pytest.fixture
def visit(chromium, server):
    """visit("07_attention") opens a chapter in a fresh profile; at the end no page may have complained or asked outside."""
    with contextlib.ExitStack() as profiles:

        def visit(chapter, **options):
            return profiles.enter_context(reading.visit(chromium, server, **options)).open(f"chapters/{chapter}.html")

        yield visit


def data(figure, *names):
    return [json.loads(figure.get_attribute(f"data-{name}")) for name in names]


def said(figure):
    return figure.locator(".mha-read, .mha-sum").inner_text()


def number(text, name):
    """The number behind a name in what is read out."""
    return float(re.search(rf"{re.escape(name)} (−?[\d.]+)", text)[1].replace("−", "-"))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def unique(tokens):
    return [f"{t} ({i})" if tokens.count(t) > 1 else t for i, t in enumerate(tokens)]


def maps(tab):
    return tab.locator("figure.mha-attention")


def shades(figure):
    """The opacities of all cells of a map, row by row."""
    read = "all => all.map((e) => e.getAttribute('fill-opacity'))"
    return [float(opacity) for opacity in figure.locator(".mha-row rect").evaluate_all(read)]


def middle(figure, i, j):
    """The middle of a cell on the screen."""
    figure.scroll_into_view_if_needed()
    cell = figure.locator(".mha-row").nth(i).locator("rect").nth(j)
    cell.scroll_into_view_if_needed()
    box = cell.bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


# Attention maps

MAPS = {"01_why": 0, "04_scores": 0, "06_masks": 1, "07_attention": 0, "09_output": 0, "10_multihead": 0}


@pytest.mark.parametrize("chapter", MAPS)
def test_a_map_reads_out_each_cell_under_the_mouse(visit, chapter):
    tab = visit(chapter)
    figure = maps(tab).nth(MAPS[chapter])
    weights, queries, keys, label, axes = data(figure, "weights", "queries", "keys", "label", "axes")
    L, S = np.shape(weights)
    for i, j in {(0, 0), (L - 1, 0), (L // 2, min(2, S - 1)), (L - 1, S - 1)}:
        tab.mouse.move(*middle(figure, i, j))
        text = said(figure)
        assert text.startswith(f"{axes[0]} {unique(queries)[i]} → {axes[1]} {unique(keys)[j]}: ")
        assert number(text, label) == weights[i][j]


def test_a_map_reads_out_each_cell_by_keyboard(visit):
    tab = visit("07_attention")
    figure = maps(tab).first
    weights, scores, tokens, (i, j) = data(figure, "weights", "scores", "queries", "highlight")
    tab_to(tab, figure.locator(".mha-explore"))
    assert (
        said(figure).startswith("query it → key animal: weight ") and round(number(said(figure), "weight"), 2) == 0.68
    )
    assert figure.locator(".mha-stated").text_content() == "it → animal 0.68"
    for key in ["ArrowDown", "ArrowRight", "ArrowRight", "ArrowUp", "ArrowUp", "ArrowLeft", "Home", "ArrowLeft", "End"]:
        tab.keyboard.press(key)
        i += {"ArrowDown": 1, "ArrowUp": -1}.get(key, 0)
        j = {"Home": 0, "End": 15}.get(key, max(0, j + {"ArrowRight": 1, "ArrowLeft": -1}.get(key, 0)))
        text = said(figure)
        assert text.startswith(f"query {unique(tokens)[i]} → key {unique(tokens)[j]}: ")
        assert number(text, "weight") == weights[i][j] and number(text, "score") == pytest.approx(
            scores[i][j], abs=0.0051
        )


def test_a_masked_cell_is_read_out_as_such(visit):
    tab = visit("06_masks")
    figure = maps(tab).first
    tab.mouse.move(*middle(figure, 0, 2))
    assert said(figure) == "query cats → key mice: masked, score 0.00"


def drawn(figure):
    """The drawing as it is stored: without the cursor and what is drawn anew."""
    return figure.locator("svg").evaluate(
        "e => { const c = e.cloneNode(true); c.querySelectorAll('.mha-cursor, .mha-live').forEach((x) => x.remove());"
        " c.removeAttribute('class'); return c.outerHTML; }"
    )


@pytest.mark.parametrize(
    "chapter, which", [("04_scores", 1), ("05_softmax", 0), ("06_masks", 0), ("06_masks", 1), ("07_attention", 0)]
)
def test_temperature_and_mask_compute_the_softmax_again(visit, chapter, which):
    tab = visit(chapter)
    figure = maps(tab).nth(which)
    scores, divisor, shade = (np.array(x) for x in data(figure, "scores", "divisor", "shade"))
    L, masked, before = len(scores), figure.get_attribute("data-mask") is not None, drawn(figure)
    slider, box = figure.locator("input[type=range]"), figure.locator("input[type=checkbox]")
    reset = figure.get_by_role("button", name="as stored")
    assert reset.is_disabled() and box.is_checked() == masked

    def holds(steps, causal):
        by = divisor * 10 ** (0.05 * steps)
        want = softmax(np.where(np.tri(L, dtype=bool) | (not causal), scores / by, -np.inf))
        assert np.abs(np.reshape(shades(figure), (L, L)) - (want * shade).clip(max=1)).max() < 0.0051
        assert not figure.locator(".mha-hidden:visible, .mha-numbers:visible").count()
        for i, j in [(0, 0), (L - 1, 1), (L // 2, 2)]:
            tab.mouse.move(*middle(figure, i, j))
            if j > i and causal:
                assert ": masked, " in said(figure)
            else:
                assert number(said(figure), "weight") == pytest.approx(want[i, j], abs=0.0051)
        printed = figure.locator(".mha-live text").all_text_contents()
        allowed = want[np.tri(L, dtype=bool) | (not causal)]
        assert [float(t) for t in printed] == pytest.approx(
            allowed if figure.locator(".mha-numbers").count() else [], abs=0.0051
        )

    tab_to(tab, slider)
    for _ in range(7):
        tab.keyboard.press("ArrowRight")
    assert said(figure).startswith("Computed again: " + ("temperature" if divisor == 1 else "scores divided by"))
    assert slider.get_attribute("aria-valuetext") == f"{float(divisor) * 10**0.35:.2f}"
    holds(7, masked)
    tab_to(tab, box)
    tab.keyboard.press("Space")
    holds(7, not masked)
    assert "computed again" in figure.locator("svg").get_attribute("aria-label")
    tab_to(tab, reset)
    tab.keyboard.press("Enter")
    assert (
        drawn(figure) == before and slider.input_value() == "0" and box.is_checked() == masked and reset.is_disabled()
    )
    assert said(figure).startswith("As stored.")
    slider.evaluate("e => { e.value = -0.5; e.dispatchEvent(new Event('input')); }")
    holds(-10, masked)
    reset.click()
    assert drawn(figure) == before


# Heads


def large(figure):
    return figure.locator(".mha-large .mha-explore")


def values_of(head, shape):
    return np.array(
        [np.nan if t == "x" else float(t) / 100 for t in head.get_attribute("data-values").split(" ")]
    ).reshape(shape)


def test_every_head_can_be_seen_large_by_keyboard(visit):
    tab = visit("08_heads")
    figure = tab.locator("figure.mha-heads").first
    tokens, (i, j) = data(figure, "queries", "highlight")
    for h, head in enumerate(figure.locator(".mha-head").all()):
        tab_to(tab, figure.locator("select"))
        tab.keyboard.press("ArrowDown")
        values, stated = values_of(head, (16, 16)), head.locator("text").last.text_content()
        assert said(figure) == f"head {h}: query it → key animal: weight {values[i, j]:.2f}"
        assert stated == f"head {h} · {values[i, j]:.2f}"
        tab_to(tab, large(figure))
        tab.keyboard.press("Home")
        assert said(figure).endswith(f"key [CLS]: weight {values[i, 0]:.2f}")
        tab.keyboard.press("ArrowDown")
        assert said(figure) == f"head {h}: query {tokens[i + 1]} → key [CLS]: weight {values[i + 1, 0]:.2f}"
        assert shades(large(figure)) == pytest.approx(values.ravel())
        tab.keyboard.press("ArrowUp")
        for _ in range(j):
            tab.keyboard.press("ArrowRight")
    tab_to(tab, figure.get_by_role("button", name="all again"))
    tab.keyboard.press("Enter")
    assert large(figure).count() == 0


@pytest.mark.parametrize("chapter", ["01_why", "02_embedding", "03_projection", "05_softmax", "06_masks", "08_heads"])
def test_maps_are_read_out_and_enlarged_by_mouse(visit, chapter):
    tab = visit(chapter)
    figure = tab.locator("figure.mha-heads").first
    queries, keys, label = data(figure, "queries", "keys", "label")
    L, S = len(queries), len(keys)
    head = figure.locator(".mha-head").nth(1)
    values = values_of(head, (L, S))
    frame = head.locator("rect[fill=none]").first
    frame.scroll_into_view_if_needed()
    box = frame.bounding_box()
    for i, j in [(0, 0), (L - 1, S // 2), (L // 2, S - 1)]:
        point = box["x"] + box["width"] * (j + 0.5) / S, box["y"] + box["height"] * (i + 0.5) / L
        tab.mouse.move(*point)
        what = "masked" if np.isnan(values[i, j]) else f"{label} {values[i, j]:.2f}".replace("-", "−")
        start = f"{head.get_attribute('data-name')}: query {unique(queries)[i]} → key {unique(keys)[j]}: {what}"
        assert said(figure) == start
    tab.mouse.click(*point)
    assert said(figure) == start and large(figure).locator(".mha-row rect").count() == L * S
    tab.mouse.move(*middle(large(figure), 0, 0))
    assert f"query {unique(queries)[0]} → key {unique(keys)[0]}: " in said(figure)


# Products


def numbers_in(table):
    read = "all => all.map((row) => [...row.querySelectorAll('td')].map((e) => e.textContent))"
    return np.array([[float(t.replace("−", "-")) for t in row] for row in table.locator("tbody tr").evaluate_all(read)])


def check_sum(figure, i, j):
    """What is written out is row i times column j, and what stands in the cell."""
    A, B, C = (numbers_in(t) for t in figure.locator("table").all())
    left, terms, total = said(figure).replace("−", "-").split(" = ")
    assert left.endswith(f"[{i}, {j}]")
    pairs = [[float(x.strip("()")) for x in term.split("·")] for term in terms.split(" + ")]
    assert pairs == [[a, b] for a, b in zip(A[i], B[:, j], strict=True)]
    assert float(total) == C[i, j] == pytest.approx(A[i] @ B[:, j], abs=0.03)  # what is printed is rounded, too
    marked = [t.locator(".mha-mark").count() for t in figure.locator("table").all()]
    assert marked == [A.shape[1], len(B), 1]


@pytest.mark.parametrize("chapter", ["02_embedding", "03_projection", "04_scores", "07_attention", "08_heads"])
def test_a_product_is_gone_through_by_click_and_by_keys(visit, chapter):
    tab = visit(chapter)
    figure = tab.locator("figure.mha-product").first
    stored, grid = (
        figure.locator("tbody").evaluate_all(
            "all => all.map((e) => [...e.querySelectorAll('td')].map((c) => c.className))"
        ),
        figure.get_by_role("grid"),
    )
    text, (m, n) = said(figure), numbers_in(grid).shape
    cell = grid.locator("tbody td")
    for i, j in [(0, 0), (m - 1, n - 1), (m - 1, 0)]:
        cell.nth(i * n + j).click()
        check_sum(figure, i, j)
    tab.keyboard.press("ArrowUp")
    check_sum(figure, m - 2, 0)
    tab.keyboard.press("ArrowRight")
    check_sum(figure, m - 2, 1)
    assert cell.nth((m - 2) * n + 1).evaluate("e => e === document.activeElement")
    figure.get_by_role("button", name="step").click()
    check_sum(figure, *divmod((m - 2) * n + 2, n))
    figure.get_by_role("button", name="back").click()
    check_sum(figure, m - 2, 1)
    tab_to(tab, figure.get_by_role("button", name="as stored"))
    tab.keyboard.press("Enter")
    assert said(figure) == text
    assert (
        figure.locator("tbody").evaluate_all(
            "all => all.map((e) => [...e.querySelectorAll('td')].map((c) => c.className))"
        )
        == stored
    )


# The flow


def test_the_flow_is_told_step_by_step(visit):
    tab = visit("10_multihead")
    figure = tab.locator("figure.mha-flow")
    (steps,) = data(figure, "steps")
    assert [s["name"] for s in steps] == ["x", "q", "k", "v", "scores", "weights", "heads", "concat", "output"]

    def told(n):
        step = steps[n]
        start = f"Step {n + 1} of 9: {step['name']}, {step['letters']} = {step['size']}. {step['how']}."
        shown = [row.locator("td").all_text_contents() for row in figure.locator(".mha-corner tr").all()]
        card = figure.locator(".mha-step.mha-on")
        assert said(figure).startswith(start) and said(figure).endswith(", ".join(step["rows"][0].split()))
        assert shown == [row.split() for row in step["rows"]] and len(shown) == 3
        assert card.get_attribute("data-step") == step["name"] and step["size"] in card.text_content()
        place = figure.locator(".mha-panel").bounding_box()
        assert place["y"] + place["height"] <= 900.5  # in view, though the drawing is taller than the screen

    tab_to(tab, figure.locator(".mha-explore"))
    for n in range(9):
        tab.keyboard.press("ArrowRight" if n % 2 else "ArrowDown")
        told(n)
    tab.keyboard.press("ArrowRight")
    told(8)
    tab.keyboard.press("ArrowLeft")
    told(7)
    figure.locator('[data-step="weights"]').click()
    told(5)
    figure.get_by_role("button", name="step").click()
    told(6)
    figure.get_by_role("button", name="back").click()
    told(5)
    figure.get_by_role("button", name="as stored").click()
    assert figure.locator(".mha-on").count() == 0 and figure.locator(".mha-corner td").count() == 0


# Predict, then run


def question(tab):
    return tab.locator("fieldset.predict"), tab.locator("details[data-right]")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_prediction_is_answered_in_the_page(visit, chapter):
    tab = visit(chapter)
    box, answer = question(tab)
    right = answer.get_attribute("data-right").split()
    keys = box.locator("li strong:first-of-type").all_text_contents()
    letters = [k for k in keys if re.fullmatch(r"[A-D]|\([a-d]\)", k)]
    verdict, button = box.get_by_role("status"), box.get_by_role("button", name="That is my answer")
    button.click()
    assert verdict.inner_text().startswith("Choose") and not answer.evaluate("e => e.open")

    for chosen in letters:
        for n in range(len(right)):
            box.locator(f'input[value="{chosen}"]').nth(n).check()
        button.click()
        text, marked = verdict.inner_text(), answer.locator(".predict-chosen")
        for want in right:
            assert (f"{chosen} is right." if chosen == want else f"{chosen} is not right, {want} is.") in text
        if len(right) == 1:
            assert chosen in " ".join(marked.locator("strong").all_text_contents()) and marked.first.is_visible()
        assert ("is marked" in text) == (marked.count() > 0 and right != [chosen] * len(right))
        assert answer.evaluate("e => e.open")
    folded = tab.locator("#predict-then-run details.below-input")
    assert folded.count() and folded.evaluate_all("all => all.every((e) => e.open)")


def test_a_prediction_by_keyboard(visit):
    tab = visit("05_softmax")
    box, answer = question(tab)
    tab_to(tab, box.locator("input").first)
    tab.keyboard.press("Space")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    assert box.get_by_role("status").inner_text() == "C is right."
    assert answer.locator(".predict-chosen").inner_text().startswith("C is right.")


def test_two_questions_on_one_list(visit):
    tab = visit("04_scores")
    box, _ = question(tab)
    assert box.get_by_role("radio", name=re.compile(r"^\(b\) C")).count() == 1
    box.get_by_role("radio", name=re.compile(r"^\(a\) A")).check()
    box.get_by_role("radio", name=re.compile(r"^\(b\) C")).check()
    box.get_by_role("button").click()
    assert box.get_by_role("status").inner_text() == "(a): A is right. (b): C is right."


# For everybody


def test_motion_only_for_those_who_want_it(visit):
    still, moving = (visit("07_attention", reduced_motion=wish) for wish in ("reduce", "no-preference"))
    duration = "e => getComputedStyle(e).transitionDuration"
    assert maps(still).locator(".mha-row rect").first.evaluate(duration) == "0s"
    assert maps(moving).locator(".mha-row rect").first.evaluate(duration) == "0.15s"


def test_without_javascript_the_page_reads_as_it_is_stored(visit):
    tab = visit("07_attention", java_script_enabled=False)
    assert tab.locator(".mha-controls, .mha-read, fieldset.predict, [role=grid]").count() == 0
    assert maps(tab).locator("svg[role=img]").first.is_visible() and tab.locator("#predict-then-run ul li").count() == 4


def test_it_works_from_a_file(visit):
    tab = visit("07_attention", base=HTML.as_uri())
    figure = maps(tab).first
    tab.mouse.move(*middle(figure, 10, 2))
    assert said(figure).startswith("query it → key animal: weight 0.677, score ")


def test_a_figure_that_a_cell_draws_again_answers_too(visit):
    tab = visit("05_softmax")
    figure = maps(tab).first
    stored = (
        visit("05_softmax", java_script_enabled=False)
        .locator("figure.mha-attention")
        .first.evaluate("e => e.outerHTML")
    )
    figure.evaluate("(e, html) => { e.parentNode.innerHTML = html; }", stored)
    figure.locator(".mha-read").wait_for()
    assert figure.locator(".mha-controls").count() == 1
    tab.mouse.move(*middle(figure, 1, 2))
    assert number(said(figure), "weight") == data(figure, "weights")[0][1][2]
