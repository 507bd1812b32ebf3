"""Every page with code, in Chromium, from a fresh profile: "Run all" gives the stored outputs, on the screen as well."""

from pathlib import Path

import pytest
from stored import code_cells, joined, plain, runs_in_browser

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted([*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("exercises/learn/*.ipynb")])


def texts(outputs):
    """The text of each output that is text, as it must be read on the page."""
    for output in outputs:
        if "text" in output:
            yield joined(output["text"]).strip()
        elif "text/html" not in output.get("data", {"text/html": ""}):
            yield joined(output["data"]["text/plain"]).strip()


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_run_all_gives_the_stored_outputs(path, reader):
    stored = code_cells(path)
    reader.open(path.relative_to(ROOT).with_suffix(".html").as_posix())
    assert len(reader.cells()) == len(stored)
    reader.tab.get_by_role("button", name="Run all").click()
    reader.tab.wait_for_function("window.mhaPage.busy")
    reader.wait_until_idle()
    ran = reader.cells()
    runnable = [i for i, cell in enumerate(stored) if runs_in_browser(cell)]
    assert [i for i, cell in enumerate(ran) if cell["runnable"]] == runnable
    assert reader.status() == f"All {len(runnable)} cells ran."
    for index in runnable:
        assert ran[index]["text"] == stored[index].source.rstrip("\n"), f"code cell {index + 1}"
        assert plain(ran[index]["outputs"]) == plain(stored[index].outputs), f"code cell {index + 1}"
        place = reader.cell(index + 1).locator(".run-output")
        shown = [e.strip() for e in place.locator("> .output:not(.text_html)").all_text_contents()]
        assert shown == list(texts(plain_dicts(stored[index].outputs))), f"code cell {index + 1}"
        pictures = sum("text/html" in output.get("data", {}) for output in stored[index].outputs)
        assert place.locator("> .text_html > *").count() == pictures
        if not pictures and not shown:
            assert place.is_hidden()


def plain_dicts(outputs):
    """The outputs with their streams joined, as the page draws them."""
    found = []
    for output in outputs:
        if output["output_type"] == "stream" and found and found[-1].get("name") == output["name"]:
            found[-1]["text"] += joined(output["text"])
        else:
            found.append(dict(output))
    return found
