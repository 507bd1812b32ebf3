"""A learner's way through an exercise in the page: answers, progress over the course, and the notebook that the class grader takes."""

import csv
import shutil
import subprocess
import sys

import nbformat
import pytest
from common import missing
from reading import ROOT

pytestmark = pytest.mark.browser

PAGE = "exercises/learn/04_scores.html"
RIGHT = 'mice_row = [2, 2, 3]\n\ncheck("q1")'
WRONG = 'def raw_scores(query, key):\n    return key @ query.swapaxes(-1, -2)\n\n\ncheck("q2")'


def notebook(reader):
    """The file that "Download my notebook" gives."""
    with reader.tab.expect_download() as download:
        reader.button("Download my notebook").click()
    assert download.value.suggested_filename == "04_scores.ipynb"
    return nbformat.read(download.value.path(), 4)


def test_answers_are_checked_counted_and_graded(reader, tmp_path):
    tab = reader.open(PAGE)
    count = tab.locator(".run-count")
    assert count.inner_text() == "□□□□□ 0 of 5 right"
    reader.write(2, RIGHT)
    reader.run(2)
    assert reader.output(2).startswith("q1: right, 1 of 1 points") and count.inner_text() == "■□□□□ 1 of 5 right"
    reader.write(3, WRONG)
    reader.run(3)
    report = reader.output(3)
    assert report.startswith("q2: wrong, ") and "queries and keys have changed places" in report
    link = reader.cell(3).locator(".run-output a")
    assert link.get_attribute("href") == "../../chapters/04_scores.html#what-goes-wrong"
    reader.write(4, 'print("not asked")')

    file = notebook(reader)
    nbformat.validate(file)
    code = [cell for cell in file.cells if cell.cell_type == "code"]
    assert [code[1].source, code[2].source, code[3].source] == [RIGHT, WRONG, 'print("not asked")']
    assert "q1: right" in code[1].outputs[0].data["text/plain"] and "text/html" in code[2].outputs[0].data
    assert not code[3].outputs and code[4].source == reader.cells()[4]["text"]  # not run; not touched
    assert count.inner_text() == "■□□□□ 1 of 5 right"

    reader.open("exercises/learning.html")
    row = tab.locator(".run-progress li").filter(has_text="Exercise 4")
    assert row.inner_text().split("\n")[-1] == "■□□□□ 1 of 5 right"
    row.get_by_role("link").click()
    tab.wait_for_url(f"**/{PAGE}")
    assert tab.locator(".run-count").inner_text() == "■□□□□ 1 of 5 right"
    reader.open("exercises/learning.html")
    tab.once("dialog", lambda dialog: dialog.accept())
    reader.button("Forget my answers and progress").click()
    assert row.inner_text().split("\n")[-1] == "□□□□□ 0 of 5 right"
    reader.open(PAGE)
    assert not tab.get_by_text("edited by you").count()

    if not shutil.which("bwrap"):
        missing("bubblewrap")
    nbformat.write(file, tmp_path / "ada_04_scores.ipynb")
    graded = subprocess.run(
        [sys.executable, "-m", "grading", tmp_path, tmp_path / "graded"], cwd=ROOT, capture_output=True, text=True
    )
    assert not graded.returncode, graded.stdout + graded.stderr
    (row,) = csv.DictReader((tmp_path / "graded" / "grades.csv").read_text(encoding="utf-8-sig").splitlines())
    assert (row["learner"], row["exercise"], row["counts"]) == ("ada", "04_scores", "yes") and not row["remarks"]
    assert "q1 1/1" in row["questions"] and "q2 5/5" not in row["questions"]
