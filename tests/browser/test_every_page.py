"""Every page of the book in Chromium, as it is read and as it is used: everybody can use it in light, dark and on a phone, every formula
stands, nothing is missing, nobody else is asked; and where it has code, "Run all" gives the stored outputs, on the screen as well.
"""

import re

import looks
import nbformat
import pages as book
import pytest
from reading import HTML, ROOT
from stored import code_cells, joined, plain, runs_in_browser

import exercises
from mha_lib.questions import load

pytestmark = pytest.mark.browser

MOST = 2.5e6  # bytes of a page that is read, raw: the page, styles, scripts, fonts, pictures
NOTEBOOKS = {p.relative_to(ROOT).with_suffix(".html").as_posix(): p
             for folder in ("chapters", "exercises/learn") for p in sorted((ROOT / folder).glob("*.ipynb"))}  # fmt: skip
OTHERS = sorted({p.relative_to(HTML).as_posix() for p in book.all_pages()} - set(NOTEBOOKS))


def nothing(wrong):
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.mark.parametrize("name", OTHERS)
def test_page(name, reader):
    nothing(as_read(reader, name) + looks.every_look(reader.tab, "as read"))


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_notebook(name, reader):
    wrong = as_read(reader, name)
    stored = code_cells(NOTEBOOKS[name])
    runnable = [i for i, cell in enumerate(stored) if runs_in_browser(cell)]
    native = reader.tab.locator("article div.cell .run-native")
    assert native.count() == len(stored) - len(runnable)
    assert all(native.locator("a").evaluate_all("all => all.map((a) => a.href.endsWith('.ipynb'))"))
    if runnable:
        reader.run()
        compare(reader, stored, runnable)
        solve(reader, NOTEBOOKS[name].stem) if "exercises/" in name else break_a_cell(reader, runnable[-1] + 1)
    looks.use_everything(reader.tab)
    nothing(wrong + reader.tab.evaluate(looks.FORMULAS) + looks.every_look(reader.tab, "in use", coloured="main"))


def as_read(reader, name):
    """What is wrong with the page before anything is pressed: folds opened, since axe-core passes over what is hidden."""
    loaded = []
    reader.tab.on("response", lambda response: loaded.append(response))
    reader.tab.emulate_media(color_scheme="light", reduced_motion="reduce")
    tab = reader.open(name)
    tab.wait_for_load_state("networkidle")
    weight = sum(len(answer.body()) for answer in loaded if answer.status == 200)
    wrong = (
        [f"weighs {weight / 1e6:.2f} MB"] * (weight > MOST)
        + tab.evaluate(looks.FORMULAS)
        + tab.evaluate(looks.SIDEWAYS)
    )
    tab.evaluate(looks.OPEN_FOLDS)
    return wrong


def compare(reader, stored, runnable):
    """What "Run all" gave is what is stored, and it is what the page shows."""
    ran = reader.cells()
    assert [i for i, cell in enumerate(ran) if cell["runnable"]] == runnable and len(ran) == len(stored)
    assert reader.status() == f"All {len(runnable)} cells ran."
    for index in runnable:
        assert ran[index]["text"] == stored[index].source.rstrip("\n"), f"code cell {index + 1}"
        want = plain(stored[index].outputs)
        assert plain(ran[index]["outputs"]) == want, f"code cell {index + 1}"
        place = reader.cell(index + 1).locator(".run-output")
        shown = [e.strip() for e in place.locator("> .output:not(.text_html)").all_text_contents()]
        assert shown == list(texts(want)), f"code cell {index + 1}"
        pictures = sum("text/html" in output[-1] for output in want if output[0] not in ("stream", "error"))
        assert place.locator("> .text_html > *").count() >= pictures
        assert place.is_visible() == bool(want)


def texts(outputs):
    """The text of each output that is text, as it must be read on the page."""
    for kind, *_, content in outputs:
        if kind == "stream":
            yield joined(content).strip()
        elif kind != "error" and "text/html" not in content:
            yield content["text/plain"].strip()


def break_a_cell(reader, number):
    """Leave a cell edited, with an error below it, so that these are looked at, too."""
    reader.write(number, "value = 1\nvalue / 0  # " + "long " * 30)
    reader.run(number)
    assert reader.output(number).endswith("ZeroDivisionError: division by zero")
    assert f"Cell {number} ended with an error" in reader.status()


def solve(reader, slug):
    """Answer an exercise by its solutions: all are right, and counted; then by a known mistake: it is named, and no longer counted."""
    questions = load(slug).questions
    cells = {
        name: cell["number"] for cell in reader.cells() for name in re.findall(r'^check\("(\w+)"\)', cell["text"], re.M)
    }
    assert list(cells) == [q.name for q in questions]
    master = nbformat.read(ROOT / "exercises" / f"{slug}.ipynb", 4)
    for (name, number), answer in zip(cells.items(), exercises.answers(master), strict=True):
        reader.write(number, f'{exercises.solution(answer)}\n\n\ncheck("{name}")')
    reader.run()
    for question in questions:
        assert f"\n{question.name}: right, " in "\n" + reader.output(cells[question.name])
    count, n = reader.tab.locator(".run-count"), len(questions)
    assert count.inner_text() == f"{'■' * n} {n} of {n} right"

    question = next(q for q in reversed(questions) if q.wrong(slug))
    mistake, _ = question.wrong(slug)[0]
    function = f'load("{slug}")["{question.name}"].wrong("{slug}")[0][1]'
    wrong = f'from mha_lib.questions import load\n\n{question.asks} = {function}{"()" * question.value}\ncheck("{question.name}")'
    reader.write(cells[question.name], wrong)
    reader.run(cells[question.name])
    report = reader.output(cells[question.name])
    assert f"{question.name}: wrong, " in report and mistake.diagnosis in report
    assert count.inner_text() == f"{'■' * (n - 1)}□ {n - 1} of {n} right"
    link = reader.cell(cells[question.name]).locator(".run-output a")
    if mistake.section:
        assert (HTML / "exercises/learn" / link.get_attribute("href").partition("#")[0]).resolve().is_file()


def test_code_can_be_read(reader):
    """One word of each colour that code has anywhere in the book, in light and in dark."""
    words = {}
    for page in book.all_pages():
        for code in re.findall(r"<pre>.*?</pre>", page.read_text(encoding="utf-8"), re.S):
            words |= {kind: word for word, kind in re.findall(r'(<span class="(\w+)">[^<]+</span>)', code)}
    assert len(words) > 20
    tab = reader.open(next(iter(NOTEBOOKS)))
    tab.locator(".cell_input pre").first.evaluate("(e, words) => { e.innerHTML = words; }", " ".join(words.values()))
    wrong = looks.axe(tab, "light", only=looks.COLOURS, context=".cell_input pre")
    looks.colours(tab, "dark")
    nothing(wrong + looks.axe(tab, "dark", only=looks.COLOURS, context=".cell_input pre"))
