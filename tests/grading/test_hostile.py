"""The hostile set: nothing is forged, nobody else loses, nothing is left, nothing takes long, nothing bites in a report."""

import csv
import io
import os
import tempfile
from pathlib import Path

import pytest
from classroom import QUICK, command, groups, left_behind, results

from grading import bench, hostile

CASES = {f"{case.name}_{hostile.SLUG}.ipynb": case for case in hostile.cases()}


def temporary():
    return {path.name for path in Path(tempfile.gettempdir()).glob("mha-grading-*")}


@pytest.fixture(scope="module")
def run(sandbox, tmp_path_factory):
    """All hostile submissions and four ordinary ones, graded by one command: (out, exit status, records, expected points)."""
    submissions, out = tmp_path_factory.mktemp("submissions"), tmp_path_factory.mktemp("out")
    expected = bench.write_hostile(submissions) | bench.write_class(submissions, 4)
    (submissions / f"link_{hostile.SLUG}.ipynb").symlink_to("/etc/passwd")
    os.mkfifo(submissions / f"pipe_{hostile.SLUG}.ipynb")
    before = temporary(), groups()
    status, said = command(
        submissions, out, "--exercise", hostile.SLUG, "--workers", 2, "--seconds", QUICK.seconds, "--total", QUICK.total
    )
    assert (temporary(), groups()) == before, "temporary files or control groups are left"
    assert "link_" in said and "pipe_" in said, "what is no file is ignored aloud"
    return out, status, results(out), expected


def test_the_set_is_large_enough():
    assert len(CASES) >= 80 and sum(case.deserves == 0 for case in CASES.values()) >= 60


def test_the_run_ends_well(run):
    _, status, records, expected = run
    assert status == 0
    assert records.keys() == expected.keys()
    assert not left_behind()


@pytest.mark.parametrize("name", CASES)
def test_each_gets_what_it_deserves(run, name):
    record = run[2][name]
    assert record["points"] == CASES[name].deserves
    assert record["status"] == ("unreadable" if not record["questions"] else "graded")
    assert record["seconds"] < QUICK.total + 5


def test_the_others_keep_their_grades(run):
    _, _, records, expected = run
    ordinary = [name for name in expected if name.startswith("learner")]
    assert [records[name]["points"] for name in ordinary] == [hostile.ALL, 1 + hostile.ONE, 0, 0]


def test_no_report_carries_markup_of_an_answer(run):
    pages = list((run[0] / "feedback").rglob("*.html"))
    assert len(pages) == len(run[3])
    for page in pages:
        text = page.read_text(encoding="utf-8", errors="strict")
        assert "<script" not in text and "<img" not in text and "onerror=alert(1)>" not in text


def test_no_table_carries_a_formula(run):
    for name in ("grades.csv", "canvas.csv"):
        text = (run[0] / name).read_bytes().decode("utf-8-sig")
        cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
        assert cells and not [cell for cell in cells if cell.lstrip().startswith(("=", "+", "-", "@", "\t", "\r"))]


def test_reading_the_grader_finds_nothing(run):
    detail = run[2][f"call_reads_the_grader_{hostile.SLUG}.ipynb"]["questions"][1]["detail"]
    assert "list index out of range" in detail
    assert "found" not in str(run[2][f"call_reads_the_host_{hostile.SLUG}.ipynb"]["questions"])


def test_an_imported_solution_is_told_why(run):
    for name in ("cell_imports_the_solution", "cell_imports_its_module", "cell_imports_the_mistakes"):
        question = run[2][f"{name}_{hostile.SLUG}.ipynb"]["questions"][2]
        assert question["kind"] == "solution_imported" and "write it yourself" in question["sentence"]
