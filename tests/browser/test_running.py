"""Cells in the reader's browser: run, edit, reset, stop, by mouse and by keyboard; what is kept, and what happens where something is lacking."""

import itertools
import re

import nbformat
import pytest
import weight
from reading import HTML, tab_to, visit
from stored import plain

pytestmark = pytest.mark.browser

PAGE = "chapters/05_softmax.html"
MOST = 10e6  # bytes of the first run, compressed


def published():
    """The code cells of the page, as the book was built from them."""
    notebook = nbformat.read(HTML / "_sources" / PAGE.replace(".html", ".ipynb"), 4)
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def note(reader, number):
    return reader.cell(number).locator(".run-note").inner_text()


def test_one_cell_runs_after_those_above_it(reader):
    asked = []
    reader.open(PAGE)
    reader.tab.on("request", lambda request: asked.append(request.url))
    reader.run(3)
    assert reader.status() == "Cell 3 ran, after 2 above it."
    ran = [cell["result"] if "result" in cell else None for cell in reader.cells()]
    assert ran[:3] == ["ok"] * 3 and not any(ran[3:])
    assert plain(reader.cells()[2]["outputs"]) == plain(published()[2].outputs)
    reader.run(3)
    assert reader.status() == "Cell 3 ran."
    reader.write(2, "x = 1")
    reader.run(3)
    assert reader.status().endswith(", after 1 above it.")

    python = [url for url in asked if "/pyodide/" in url]
    assert python and len(python) == len(set(python))
    folder = f"{reader.base}/run/"
    files = {url.partition("?")[0].removeprefix(folder) for url in asked if url.startswith(folder)} - {"editor.mjs"}
    weights = weight.first_run()
    assert files == set(weights) and sum(weights.values()) < MOST


def test_edit_run_and_reset(reader):
    reader.open(PAGE)
    stored, text = reader.cell(1).locator(".cell_output:not(.run-output)"), reader.cells()[0]["text"]
    assert not reader.button("Reset cell 1").is_visible() and not reader.tab.locator(".cm-editor").count()
    reader.cell(1).locator(".cell_input pre").click()  # a click into the code opens the editor
    reader.tab.get_by_role("textbox", name="Code of cell 1", exact=True).wait_for()
    reader.write(1, "6 * 7")
    assert note(reader, 1) == "edited by you"
    reader.run(1)
    assert reader.output(1) == "42" and note(reader, 1) == "edited by you · output from your browser"
    reader.write(1, "6 * 8")
    assert note(reader, 1) == "edited by you · output of an earlier run"
    reader.button("Reset cell 1").click()
    assert reader.cells()[0]["text"] == text and note(reader, 1) == ""
    assert "\n".join(reader.cell(1).locator(".cm-line").all_text_contents()) == text
    assert not reader.cell(1).locator(".run-output").is_visible() and (not stored.count() or stored.is_visible())
    reader.write(1, "1")
    reader.write(2, "2")
    reader.button("Reset all (2 edited)").click()
    assert [cell["text"] for cell in reader.cells()] == [cell.source.rstrip("\n") for cell in published()]
    assert not reader.tab.get_by_role("button", name=re.compile("^Reset")).count()


def test_output_is_as_in_a_notebook(reader):
    reader.open(PAGE)

    def gives(source):
        reader.write(1, source)
        reader.run(1)
        return reader.output(1)

    assert gives('print("a", end="")\nprint("b")\ndisplay(3)\n4').split() == ["ab", "3", "4"]
    assert gives("import time\nfor i in range(3):\n    print(i)\n    time.sleep(0.1)").split() == ["0", "1", "2"]
    assert gives("import math\n\n\ndef f(x):\n    return math.sqrt(x)\n\n\nf(-1)").splitlines() == [
        "Cell 1, line 8: f(-1)", "Cell 1, line 5: return math.sqrt(x)", "ValueError: math domain error"]  # fmt: skip
    assert gives("x = = 1").splitlines()[-1] == "SyntaxError: invalid syntax"
    assert gives("def f():\n    f()\nf()").splitlines()[-1].startswith("RecursionError: ")
    assert gives('name = input("?")').splitlines()[-1] == (
        "RuntimeError: input() cannot ask you anything here: write the value into the cell instead"
    )
    assert gives("raise SystemExit(1)").splitlines()[-1] == "SystemExit: 1"
    assert gives("import torch").splitlines()[-1].startswith("ModuleNotFoundError: ")
    assert gives("await __import__('asyncio').sleep(0, 5)") == "5"


def test_stop_ends_an_endless_loop(reader):
    reader.open(PAGE)
    reader.write(1, "x = 1\nprint(x)\nprint(2)\nwhile True:\n    pass")
    reader.button("Run cell 1").click()
    reader.tab.get_by_text("Running cell 1").wait_for(timeout=60_000)
    reader.button("Run cell 4").click()
    assert reader.status() == "A cell is still running: wait for it, or press Stop."
    reader.button("Stop cell 1").click()
    assert reader.status() == "Stopped. All variables are gone; the next run starts afresh."
    assert reader.output(1).split() == ["1", "2"]
    assert note(reader, 1) == "edited by you · stopped" and not reader.tab.evaluate("window.mhaPage.busy")
    reader.write(1, 'while True:\n    print("on and on")')
    reader.button("Run cell 1").click()
    reader.tab.get_by_text("the rest is not shown").wait_for(timeout=60_000)
    reader.button("Stop").first.click()  # of the whole page
    assert "on and on" in reader.output(1)
    reader.write(1, "x")
    reader.run(1)
    assert reader.output(1).endswith("NameError: name 'x' is not defined")
    reader.button("Reset cell 1").click()
    reader.run()
    assert reader.status().startswith("All ")


def test_stop_while_python_comes(reader):
    reader.open(PAGE)
    reader.button("Run all").click()
    reader.button("Stop").first.click()
    assert reader.status().startswith("Stopped.")
    reader.run(1)
    assert reader.status() == "Cell 1 ran."


def test_an_error_ends_run_all(reader):
    reader.open(PAGE)
    reader.write(2, "1 / 0")
    reader.run()
    assert reader.status() == "Cell 2 ended with an error; the cells below it were not run."
    assert reader.output(2).endswith("ZeroDivisionError: division by zero")
    assert reader.cell(2).get_by_text("ended with an error").count() == 1
    assert not any(cell.get("result") for cell in reader.cells()[2:])


def test_python_that_breaks_starts_afresh(reader):
    reader.open(PAGE)
    reader.write(1, "import _pyodide_core\n_pyodide_core.trigger_fatal_error()")
    reader.run(1)
    assert reader.status().startswith("Python broke in cell 1.") and "Python itself broke" in reader.output(1)
    reader.write(1, "1 + 1")
    reader.run(1)
    assert reader.output(1) == "2"
    reader.complaints.clear()  # Pyodide tells the console


def test_by_keyboard_alone(reader):
    tab = reader.open(PAGE)
    keys = tab.keyboard
    tab_to(tab, reader.button("Edit cell 2"))
    keys.press("Enter")
    editor = tab.get_by_role("textbox", name="Code of cell 2", exact=True)
    editor.wait_for()
    tab.wait_for_function("document.activeElement.matches('.cm-content')")
    keys.press("Control+a")
    keys.type("for i in range(2):\nprint(i * 7)")  # the editor indents
    keys.press("Shift+Enter")
    reader.wait()
    assert reader.output(2).split() == ["0", "7"]
    assert reader.tab.evaluate("document.activeElement.matches('.cm-content')")
    keys.press("Tab")
    assert reader.cells()[1]["text"].endswith("    ") or "\n        print" in reader.cells()[1]["text"]
    keys.press("Control+z")
    keys.press("Escape")
    keys.press("Tab")
    assert reader.button("Run cell 2").evaluate("e => e === document.activeElement")
    keys.press("Enter")
    reader.wait()
    assert reader.status() == "Cell 2 ran."
    assert reader.button("Run cell 2").evaluate("e => e === document.activeElement")
    keys.press("Tab")
    assert reader.button("Reset cell 2").evaluate("e => e === document.activeElement")
    keys.press("Enter")
    assert reader.cells()[1]["text"] == published()[1].source
    assert reader.button("Run cell 2").evaluate("e => e === document.activeElement")
    tab_to(tab, reader.button("Run all"))
    keys.press("Enter")
    reader.wait()
    assert reader.status().startswith("All ") and tab.locator("[role=status].run-status").count() == 1


def test_edits_are_kept_in_this_browser_for_this_page(reader):
    reader.open(PAGE)
    reader.write(1, "kept = 1")
    reader.write(2, "")
    reader.open(PAGE)
    assert [cell["text"] for cell in reader.cells()[:2]] == ["kept = 1", ""]
    assert note(reader, 1) == note(reader, 2) == "edited by you"
    assert reader.cell(1).locator(".cm-content").inner_text() == "kept = 1"
    reader.open("chapters/04_scores.html")
    assert not reader.tab.get_by_text("edited by you").count()
    reader.open(PAGE)
    reader.button("Reset all (2 edited)").click()
    reader.open(PAGE)
    assert not reader.tab.get_by_text("edited by you").count()


def new_edition(route):
    """The page of an edition in which the text of its first cell has changed."""
    answer = route.fetch()
    body = re.sub(r'(data-cells=")\w+', r"\g<1>0123456789ab", answer.text())
    cell = re.search(r'(<div class="cell_input.*?<pre>).*?(</pre>)', body, re.S)
    body = body[: cell.end(1)] + "new = 1\n" + body[cell.start(2) :]
    route.fulfill(response=answer, body=body)


def test_a_new_edition_does_not_show_old_edits(reader):
    tab = reader.open(PAGE)
    reader.write(1, "mine = 1")
    reader.write(2, "mine = 2")
    tab.route(f"**/{PAGE}", new_edition)
    reader.open(PAGE)
    assert [cell["text"] for cell in reader.cells()[:2]] == ["new = 1", "mine = 2"]
    assert note(reader, 1) == "" and note(reader, 2) == "edited by you"
    assert "This page has changed since you edited it." in tab.locator(".run-old").inner_text()
    with tab.expect_download() as download:
        reader.button("Save it").click()
    assert download.value.path().read_text() == "mine = 1" and download.value.suggested_filename.endswith(".py")
    reader.button("Discard it").click()
    assert not tab.locator(".run-old").is_visible()
    tab.unroute(f"**/{PAGE}")
    reader.open(PAGE)
    assert reader.cells()[0]["text"] == published()[0].source.rstrip("\n")


def test_where_the_browser_keeps_nothing(reader):
    reader.tab.add_init_script(
        "const set = Storage.prototype.setItem; Storage.prototype.setItem = function (key, value) {"
        " if (key.startsWith('mha-course:')) throw new Error('full'); set.call(this, key, value); };"
    )
    reader.open(PAGE)
    reader.write(1, "6 * 7")
    assert reader.status() == "This browser keeps nothing: download your notebook before you leave."
    reader.run(1)
    assert reader.output(1) == "42"


def test_where_python_cannot_be_fetched(reader):
    """Whichever of its files is missing, and however it is, one sentence comes, and the next run tries again."""
    reader.open(PAGE)
    ways = {"no answer": lambda route: route.abort(), "404": lambda route: route.fulfill(status=404)}
    for name, way in itertools.product(weight.first_run(), ways):
        reader.tab.context.route(f"**/run/{name}*", ways[way])
        reader.run(1)
        assert re.fullmatch(r"Python could not start: .+\. The page can be read as before\.", reader.status()), (
            name,
            way,
        )
        assert reader.cell(1).locator(".run-output").is_hidden(), (name, way)
        reader.tab.context.unroute(f"**/run/{name}*")
    reader.complaints.clear()
    reader.run(1)
    assert reader.status() == "Cell 1 ran."


def reads_as_before(tab, sentence):
    """No button, the stored outputs, and one sentence with the notebook."""
    assert tab.locator(".run-bar").inner_text().strip().startswith(sentence)
    assert tab.locator(".run-bar a").get_attribute("href").endswith("05_softmax.ipynb")
    assert not tab.locator(".run-button").count()
    assert all(e.is_visible() for e in tab.locator("article div.cell > .cell_output").all())


def test_without_webassembly(reader):
    reader.tab.add_init_script("delete window.WebAssembly;")
    reads_as_before(
        reader.open(PAGE), "This browser cannot run Python, which needs WebAssembly and workers; or download"
    )


def test_without_javascript(chromium, server):
    with visit(chromium, server, java_script_enabled=False) as reader:
        reader.tab.goto(f"{reader.base}/{PAGE}")
        reads_as_before(reader.tab, "With JavaScript, the cells of this page run in your browser; without it, download")


@pytest.mark.parametrize("page", [PAGE, "exercises/learn/05_softmax.html", "exercises/learning.html", "index.html"])
def test_from_a_file(page, chromium, server):
    with visit(chromium, server, base=HTML.as_uri()) as reader:
        tab = reader.open(page)
        assert tab.locator("article h1").first.is_visible()
        if tab.locator(".run-bar").count():
            reads_as_before(tab, "This page was opened from a file, where browsers run no Python")
