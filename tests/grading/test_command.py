"""The command: resuming, grading again what changed, regrading against an earlier run, and odd names."""

import csv
import json
import os
import subprocess
import sys
import time

import pytest
from classroom import ROOT, command, groups, results

from grading.cli import main
from grading.hostile import ALL, ONE, RIGHT, SETUP, SLUG, notebook
from grading.run import place


@pytest.fixture
def folder(tmp_path):
    """Three submissions: all right, one answer, blank."""
    (tmp_path / "in" / "bob").mkdir(parents=True)
    (tmp_path / "in" / f"ada_{SLUG}.ipynb").write_bytes(notebook(*RIGHT))
    (tmp_path / "in" / "bob" / f"{SLUG}.ipynb").write_bytes(notebook(SETUP, RIGHT[2]))
    (tmp_path / "in" / f"eve_{SLUG}.ipynb").write_bytes(notebook(SETUP))
    return tmp_path


def run(folder, *options, out="out"):
    return main([str(folder / "in"), str(folder / out), "--workers", "1", *map(str, options)])


def test_what_is_written(sandbox, folder, capsys):
    assert run(folder) == 0
    assert "3 graded" in capsys.readouterr().out
    with (folder / "out" / "grades.csv").open(encoding="utf-8-sig") as stream:
        points = {row["learner"]: row["final"] for row in csv.DictReader(stream)}
    assert points == {"ada": str(ALL), "bob": str(ONE), "eve": "0"}
    pages = {
        path.relative_to(folder / "out" / "feedback").as_posix()
        for path in (folder / "out" / "feedback").rglob("*.html")
    }
    assert pages == {f"ada_{SLUG}.html", f"bob/{SLUG}.html", f"eve_{SLUG}.html"}
    assert "ada" not in (folder / "out" / "feedback" / "bob" / f"{SLUG}.html").read_text()
    seed = json.loads((folder / "out" / "run.json").read_text())["seed"]
    assert not [path for path in (folder / "out" / "feedback").rglob("*.html") if str(seed) in path.read_text()]


def test_what_a_hidden_part_finds_stays_with_the_teacher(sandbox, folder):
    sly = "def raw_scores(query, key):\n    if query.shape[-1] == 7: raise ValueError('canary ' + str(query))\n"
    (folder / "in" / f"sly_{SLUG}.ipynb").write_bytes(notebook(SETUP, sly + "    return query @ key.swapaxes(-1, -2)"))
    run(folder)
    assert results(folder / "out")[f"sly_{SLUG}.ipynb"]["points"] == ONE - 1
    page = (folder / "out" / "feedback" / f"sly_{SLUG}.html").read_text()
    assert "canary" not in page and "not announced" not in page and "only graded does not hold" in page


def test_a_run_goes_on_and_grades_again_what_changed(sandbox, folder, capsys, monkeypatch):
    run(folder)
    capsys.readouterr()
    run(folder)
    assert "3 of them already settled" in capsys.readouterr().out
    (folder / "in" / f"eve_{SLUG}.ipynb").write_bytes(notebook(SETUP, RIGHT[2]))
    broken = folder / "out" / "results" / f"ada_{SLUG}.ipynb.json"
    broken.write_text(broken.read_text()[:100])  # a file that a crash left
    run(folder)
    assert "1 of them already settled" in capsys.readouterr().out
    assert {r["learner"]: r["points"] for r in results(folder / "out").values()} == {"ada": ALL, "bob": ONE, "eve": ONE}
    monkeypatch.setattr("grading.run._version", lambda: "another grader")
    run(folder)
    assert "0 of them already settled" in capsys.readouterr().out


def test_other_limits_grade_again_and_again_means_again(sandbox, folder, capsys):
    run(folder)
    run(folder, "--seconds", 5)
    run(folder, "--seconds", 5, "--again")
    assert capsys.readouterr().out.count("0 of them already settled") == 3


def test_an_interrupted_run_keeps_what_it_has(sandbox, folder, capsys, monkeypatch):
    from grading import run as runs

    grade_cells, count = runs.grade_cells, []

    def once(*arguments):
        count.append(1)
        if len(count) == 2:
            raise KeyboardInterrupt
        return grade_cells(*arguments)

    monkeypatch.setattr(runs, "grade_cells", once)
    assert run(folder) == 130
    assert len(results(folder / "out")) == 1 and "goes on" in capsys.readouterr().err
    assert run(folder) == 0
    assert "1 of them already settled" in capsys.readouterr().out


def test_a_failure_of_the_grader_is_tried_again(sandbox, folder, capsys, monkeypatch):
    from grading import marking

    judge = marking.judge

    def broken(exercise, question, remote, seed):
        if len(remote.cells) == 1:  # eve's
            raise RuntimeError("a fault of the grader")
        return judge(exercise, question, remote, seed)

    monkeypatch.setattr(marking, "judge", broken)
    assert run(folder) == 1
    assert "1 not graded" in capsys.readouterr().out
    monkeypatch.undo()
    assert run(folder) == 0
    assert "2 of them already settled" in capsys.readouterr().out


def test_a_regrade_draws_the_same_inputs_and_says_what_changed(sandbox, folder, capsys):
    run(folder)
    (folder / "in" / f"eve_{SLUG}.ipynb").write_bytes(notebook(*RIGHT[:2]))
    assert run(folder, "--against", folder / "out", out="new") == 0
    said = capsys.readouterr().out
    assert "1 of 3 differ" in said and f"eve_{SLUG}.ipynb: 0 → 1 points (q1 0 → 1)" in said
    assert "q1 0 → 1" in (folder / "new" / "changes.csv").read_text(encoding="utf-8-sig")
    assert (folder / "new" / "run.json").read_text() == (folder / "out" / "run.json").read_text()


def test_two_runs_draw_different_inputs(sandbox, folder):
    run(folder)
    run(folder, out="other")
    assert (folder / "other" / "run.json").read_text() != (folder / "out" / "run.json").read_text()


def test_the_exercise_comes_from_the_option_the_notebook_or_the_name(sandbox, folder):
    (folder / "in" / "zoe.ipynb").write_bytes(notebook(RIGHT[2]))
    (folder / "in" / "max_05_softmax.ipynb").write_bytes(notebook(SETUP))
    run(folder)
    found = results(folder / "out")
    assert found["zoe.ipynb"]["status"] == "unreadable" and "which exercise" in found["zoe.ipynb"]["notes"][0]
    assert "its file name says 05_softmax" in found["max_05_softmax.ipynb"]["notes"][0]
    run(folder, "--exercise", SLUG)
    assert results(folder / "out")["zoe.ipynb"]["points"] == ONE


def test_odd_names_stop_nothing(sandbox, folder):
    names = ["=1+1.ipynb", "é \udcff<b>.ipynb", "x" * 240 + ".ipynb", "a.ipynb", "new\nline.ipynb"]
    for name in names:
        (folder / "in" / name).write_bytes(notebook(SETUP, RIGHT[2]))
    (folder / "in" / "a.html").mkdir()
    (folder / "in" / "a.html" / "b.ipynb").write_bytes(notebook(SETUP))
    assert run(folder) == 0
    assert len(results(folder / "out")) == 3 + len(names) + 1
    assert len(list((folder / "out" / "feedback").rglob("*.html"))) >= 3 + len(names) + 1


def test_no_two_submissions_share_a_place(tmp_path):
    names = ["a", "a/b", "a.html/b", "odd names/b", "x" * 240, "x" * 241, "odd names/" + "0" * 64]
    assert len({place(tmp_path, name, ".html") for name in names}) == len(names)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--late", 10], "--late needs --due"),
        (["--times", "nowhere.csv"], "nowhere.csv"),
        (["--against", "nowhere"], "no results"),
        (["--roster", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_what_cannot_be_is_told_in_a_line(sandbox, folder, capsys, options, says):
    assert run(folder, *options) == 2
    assert says in capsys.readouterr().err


def test_no_folder_and_no_notebook_are_told(tmp_path, sandbox):
    for folder, says in ((tmp_path / "nowhere", "is not a folder"), (tmp_path, "no notebook")):
        status, said = command(folder, tmp_path / "out", "--workers", 1)
        assert status == 2 and says in said and "Traceback" not in said


def test_help_explains_what_is_written():
    status, said = command("--help")
    assert status == 0 and "canvas.csv" in said and "--unsafe" in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--late", "-50"], "from 0 to 100, got -50"),
        (["--late", "nan"], "from 0 to 100, got nan"),
        (["--total", "inf"], "from 0.1 on, got inf"),
        (["--seconds", "0"], "from 0.1 on, got 0"),
        (["--workers", "-1"], "from 0 on, got -1"),
    ],
)
def test_a_number_that_makes_no_sense_is_refused(folder, capsys, options, said):
    with pytest.raises(SystemExit) as stop:
        run(folder, *options)
    assert stop.value.code == 2 and said in capsys.readouterr().err


@pytest.mark.parametrize("out", ["in", "."])
def test_results_never_lie_above_the_submissions(folder, capsys, out):
    assert run(folder, out=out) == 2
    assert "OUT must not be the folder of the submissions" in capsys.readouterr().err
    assert not (folder / "run.json").exists()


def test_out_is_a_folder_and_its_seed_is_whole(sandbox, folder, capsys):
    (folder / "file").write_text("")
    assert run(folder, out="file") == 2
    assert "is a file" in capsys.readouterr().err
    (folder / "out").mkdir()
    (folder / "out" / "run.json").write_text('{"seed": ')
    assert run(folder) == 2
    assert "does not hold the seed" in capsys.readouterr().err


def test_a_terminated_run_leaves_nothing(sandbox, folder):
    (folder / "in" / f"slow_{SLUG}.ipynb").write_bytes(notebook("import time\ntime.sleep(9)"))
    temporary = folder / "temporary"
    temporary.mkdir()
    command = [sys.executable, "-m", "grading", folder / "in", folder / "out", "--workers", "1"]
    grader = subprocess.Popen(command, cwd=ROOT, env=os.environ | {"TMPDIR": str(temporary)}, stderr=subprocess.PIPE)
    end = time.monotonic() + 20
    while not list((folder / "out").rglob("bob/*.json")) and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.5)
    grader.terminate()
    assert "what is graded is kept" in grader.communicate(timeout=20)[1].decode() and grader.returncode == 130
    assert not list(temporary.iterdir())
    assert not [group for group in groups() if f"-{grader.pid}-" in group.name]
