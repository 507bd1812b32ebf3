"""From files to cells: which exercise it is, whose it is, and what is no submission."""

import json
from pathlib import PurePosixPath

import pytest

from grading import hostile
from grading.hostile import SETUP, SLUG, notebook
from grading.notebook import Unreadable, read
from grading.submissions import exercise_in, find, whose


def test_the_code_cells_come_out_in_order():
    document = json.loads(notebook("a = 1", "b = 2"))
    document["cells"].insert(1, {"cell_type": "markdown", "source": "c = 3"})
    document["cells"].append({"cell_type": "code", "source": ["d = 4\n", "e = 5"]})
    assert read(json.dumps(document).encode()).cells == ["a = 1", "b = 2", "d = 4\ne = 5"]


@pytest.mark.parametrize(
    ("metadata", "cells", "slug"),
    [
        ({"mha_course": {"exercise": "05_softmax"}}, [SETUP], "05_softmax"),
        ({"mha_course": {"exercise": "05_softmaxx"}}, [SETUP], SLUG),
        ({"mha_course": {"exercise": ["05_softmax"]}}, [SETUP], SLUG),
        ({"mha_course": 7}, ["check = Check( '06_masks' )"], "06_masks"),
        ({}, ["Check('nothing'); Check('04_scores')", "Check('05_softmax')"], SLUG),
        ({}, ["x = 1"], ""),
    ],
)
def test_the_exercise_is_read_from_metadata_then_from_the_check(metadata, cells, slug):
    assert read(notebook(*cells, **metadata)).exercise == slug


def test_a_kernel_of_another_language_is_noted():
    assert "R" in read(notebook(kernelspec={"language": "R"})).notes[0]
    assert read(notebook(kernelspec={"language": 3})).notes == []


@pytest.mark.parametrize("case", [c for c in hostile.cases() if c.name.startswith("file_")], ids=lambda c: c.name)
def test_an_odd_file_is_read_or_refused_in_a_sentence(case):
    try:
        assert all(isinstance(cell, str) for cell in read(case.data).cells)
    except Unreadable as reason:
        assert case.deserves == 0 and 10 < len(str(reason)) < 120


@pytest.mark.parametrize(
    ("path", "learner", "canvas"),
    [
        ("ada_04_scores.ipynb", "ada", ""),
        ("Ada Lovelace_04_scores.ipynb", "Ada Lovelace", ""),
        ("ada_b_04_scores.ipynb", "ada_b", ""),
        ("04_scores_ada.ipynb", "ada", ""),
        ("ada_04_scores (1).ipynb", "ada", ""),
        ("04_scores.ipynb", "04_scores", ""),
        ("ada.ipynb", "ada", ""),
        ("ada/04_scores.ipynb", "ada", ""),
        ("ada/week 4/answer.ipynb", "ada", ""),
        ("04_scores/ada_04_scores.ipynb", "ada", ""),
        ("04_scores/ada/answer.ipynb", "ada", ""),
        ("lovelaceada_123_456_04_scores.ipynb", "lovelaceada", "123"),
        ("lovelaceada_LATE_123_456_04_scores-2.ipynb", "lovelaceada", "123"),
        ("Ada Lovelace_77_assignsubmission_file/04_scores.ipynb", "Ada Lovelace (77)", ""),
    ],
)
def test_the_learner_is_read_from_the_path(path, learner, canvas):
    assert whose(PurePosixPath(path)) == (learner, canvas)


def test_the_exercise_in_a_path():
    assert exercise_in("04_scores/ada.ipynb") == exercise_in("ada_04_scores.ipynb") == SLUG
    assert exercise_in("ada.ipynb") == ""


def test_links_hidden_files_and_other_files_are_no_submissions(tmp_path):
    (tmp_path / "ada").mkdir()
    for name in ("ada/04_scores.ipynb", "notes.pdf", ".hidden.ipynb", "UPPER.IPYNB"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "x.ipynb").write_bytes(b"")
    (tmp_path / "link.ipynb").symlink_to("/etc/passwd")
    (tmp_path / "folder").symlink_to("/etc")
    (tmp_path / "folder.ipynb").mkdir()
    found, ignored = find(tmp_path)
    assert [submission.name for submission in found] == ["UPPER.IPYNB", "ada/04_scores.ipynb"]
    assert ignored == ["folder", "link.ipynb", "notes.pdf"]
    assert [submission.name for submission in find(tmp_path, tmp_path / "ada")[0]] == ["UPPER.IPYNB"]


def test_nobody_hands_in_for_another():
    """In a learner's folder the file's name is the learner's choice; it cannot name another one's Canvas number."""
    assert whose(PurePosixPath("Eve Jones/Zed_9_1_04_scores.ipynb")) == ("Eve Jones", "")
    assert whose(PurePosixPath("04_scores/Zed_9_1_04_scores.ipynb")) == ("Zed", "9")
