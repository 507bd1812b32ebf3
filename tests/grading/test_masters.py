"""Every exercise through the grader: the master gets all points, the learner's blank copy none."""

import pytest
from classroom import ROOT

from grading import grade

MASTERS = sorted(path.stem for path in (ROOT / "exercises").glob("[0-9]*.ipynb"))
LEARN = sorted(path.stem for path in (ROOT / "exercises" / "learn").glob("[0-9]*.ipynb"))


@pytest.mark.parametrize("slug", MASTERS)
def test_the_master_gets_all_points(sandbox, slug):
    record = grade((ROOT / "exercises" / f"{slug}.ipynb").read_bytes(), slug, 20270131)
    assert (record["status"], record["troubles"]) == ("graded", [])
    assert [q["question"] for q in record["questions"] if q["points"] < q["max"]] == []
    assert record["points"] == record["max"] > 0


@pytest.mark.parametrize("slug", LEARN)
def test_the_blank_copy_gets_none(sandbox, slug):
    record = grade((ROOT / "exercises" / "learn" / f"{slug}.ipynb").read_bytes(), slug, 20270131)
    assert record["points"] == 0 and {q["status"] for q in record["questions"]} == {"not answered"}
