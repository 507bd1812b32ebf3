"""What an answer sees and may do, with root's means and without, and what happens where there is no sandbox."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from classroom import QUICK, ROOT, command, groups, left_behind
from common import missing

from grading import SandboxError, cgroup, grade, hostile
from grading import sandbox as boxes
from grading.bubblewrap import MARK, USERS
from grading.hostile import RIGHT, SETUP, SLUG, notebook
from grading.offered import folder_for
from grading.sweep import sweep
from mha_lib.questions import load


def seen(expression, **options):
    """What an expression gives in the place of an answer, as it comes back in an error."""
    record = grade(notebook(SETUP, f"def raw_scores(query, key):\n    import os, sys\n    raise ValueError({expression})"),
                   SLUG, 1, QUICK, **options)  # fmt: skip
    return record["questions"][1]["detail"].partition("ValueError: ")[2].removesuffix(" (line 3 of cell 2).")


def test_a_right_notebook_gets_all_points_and_a_blank_one_none(sandbox):
    learn = (ROOT / "exercises" / "learn" / f"{SLUG}.ipynb").read_bytes()
    assert grade(notebook(*RIGHT), SLUG, 3)["points"] == hostile.ALL
    blank = grade(learn, SLUG, 3)
    assert blank["points"] == 0 and {q["status"] for q in blank["questions"]} == {"not answered"}


def test_the_root_holds_what_python_needs_and_no_more(sandbox):
    names = eval(seen("sorted(os.listdir('/'))"))
    homes = {Path(path).parts[1] for path in (sys.base_prefix, np.__file__, os.path.realpath(sys._base_executable))}
    assert set(names) <= {"course", "dev", "etc", "lib", "lib64", "tmp", "usr", *homes}
    assert "proc" not in names and seen("sorted(os.listdir('/dev'))") == "['null', 'urandom']"


def test_the_environment_is_empty(sandbox):
    names = eval(seen("sorted(os.environ)"))
    assert set(names) <= {"HOME", "LC_CTYPE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PWD"}


def test_nothing_that_is_installed_can_be_imported_but_numpy(sandbox):
    for name in ("pytest", "distributed", "torch", "pip", "grading", "classroom"):
        assert "No module named" in seen(f"__import__({name!r})") or f"No module named '{name}'" in str(
            grade(notebook(f"import {name}"), SLUG, 1, QUICK)["troubles"]
        )


def test_the_worker_is_nobody_else(sandbox):
    user = int(seen("os.getuid()"))
    assert user in USERS if os.geteuid() == 0 else user == 65534


def test_nothing_can_be_written_outside_tmp(sandbox):
    for place in ("/", "/course", "/dev", "/usr/lib"):
        assert "rror" in seen(f"open({place!r} + '/x', 'w')") or seen(f"os.access({place!r}, os.W_OK)") == "False"
    assert int(seen("len(open('/tmp/x', 'wb').write(b'x' * 2**25) and b'')") or 0) == 0


def test_limits_hold_without_control_groups(sandbox, monkeypatch, tmp_path):
    monkeypatch.setattr(boxes, "Group", lambda memory, processes: cgroup.Group(memory, processes, tmp_path / "none"))
    for name in ("fork_bomb", "threads", "ten_gigabytes", "detached_process"):
        body = hostile.function(hostile.IN_A_CALL[name])
        assert grade(notebook(SETUP, body), SLUG, 1, QUICK)["points"] == 0
    assert not left_behind()


def test_a_control_group_of_version_2(tmp_path):
    (tmp_path / "cgroup.controllers").write_text("memory pids")
    group = cgroup.Group(1000, 7, tmp_path)
    [folder] = group.folders
    assert (folder / "memory.max").read_text() == "1000" and (folder / "pids.max").read_text() == "7"
    assert str(folder) in group.command()


def test_a_processor_without_a_filter_has_none(monkeypatch):
    assert len(boxes.seccomp.program()) % 8 == 0
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert boxes.seccomp.program() is None


# ------------------------------------------------------------------------------------------------------------ not as root, and without
def anybodys_python():
    """A Python of this version that another user may run, with the packages of this one."""
    program = Path(os.path.realpath(sys._base_executable))
    system = Path(f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}")
    for candidate in (program, system):
        if candidate.exists() and all(
            os.stat(folder).st_mode & 0o005 == 0o005 for folder in (candidate, *candidate.parents)
        ):
            return candidate
    return missing("a Python that another user may run")


def test_not_as_root(sandbox):
    if os.geteuid() != 0:
        pytest.skip("these tests run as an ordinary user: the others show it")
    if not shutil.which("setpriv"):
        missing("setpriv")
    cells = {"right": RIGHT, "bomb": (SETUP, hostile.function(hostile.IN_A_CALL["fork_bomb"]))}
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders, and perhaps this checkout, are private
        folder, packages = Path(name), Path(np.__file__).parents[1]
        folder.chmod(0o777)
        for source in (ROOT / "grading", ROOT / "mha_lib", packages / "numpy", packages / "numpy.libs"):
            if source.exists():
                shutil.copytree(source, folder / "packages" / source.name, ignore=shutil.ignore_patterns("tests"))
        (folder / "in").mkdir()
        for learner, answer in cells.items():
            (folder / "in" / f"{learner}_{SLUG}.ipynb").write_bytes(notebook(*answer))
        done = subprocess.run(
            ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", anybodys_python(), "-B",
             "-m", "grading", folder / "in", folder / "out", "--workers", "1", "--seconds", "1"],
            env={"PYTHONPATH": str(folder / "packages"), "PATH": os.environ["PATH"]},
            capture_output=True, text=True, cwd="/", timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        table = (folder / "out" / "grades.csv").read_text(encoding="utf-8-sig")
    assert f"right_{SLUG}.ipynb,graded,17" in table and f"bomb_{SLUG}.ipynb,graded,0" in table
    assert not left_behind()


def test_without_bubblewrap_it_refuses_and_says_what_to_do(tmp_path):
    status, said = command(tmp_path, tmp_path / "out", "--workers", 1, PATH=str(tmp_path))
    assert status == 2 and "apt install bubblewrap" in said and "--unsafe" in said and "Traceback" not in said


def test_on_other_systems_it_refuses_and_says_what_to_do(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(SandboxError, match="WSL 2.*--unsafe"):
        boxes.available()


def test_a_sandbox_that_does_not_start_is_told_in_one_sentence(tmp_path):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
    fake.chmod(0o755)
    status, said = command(tmp_path, tmp_path / "out", "--workers", 1, PATH=f"{tmp_path}:/usr/bin:/bin")
    assert status == 2 and "No permissions to create a new namespace" in said and "Traceback" not in said


def test_unsafe_runs_trusted_files_without_a_sandbox(tmp_path):
    (tmp_path / f"ada_{SLUG}.ipynb").write_bytes(notebook(*RIGHT))
    (tmp_path / f"bob_{SLUG}.ipynb").write_bytes(notebook(SETUP, hostile.function("while True: pass")))
    status, said = command(tmp_path, tmp_path / "out", "--workers", 1, "--unsafe", "--seconds", 1, PATH=str(tmp_path))
    assert status == 0, said
    table = (tmp_path / "out" / "grades.csv").read_text(encoding="utf-8-sig")
    assert f"ada_{SLUG}.ipynb,graded,17" in table and f"bob_{SLUG}.ipynb,graded,0" in table
    assert not left_behind()


def test_a_failing_sandbox_is_not_the_learners_fault(sandbox, monkeypatch):
    class Broken(boxes.Sandboxed):
        def __init__(self, folder, limits):
            super().__init__(folder / "nowhere", limits)

    monkeypatch.setattr("grading.marking.Sandboxed", Broken)
    record = grade(notebook(*RIGHT), SLUG, 1, QUICK)
    assert record["status"] == "not graded" and record["points"] is None and "the grader failed" in record["notes"][0]


def test_the_package_is_readable_for_the_worker_whatever_the_umask(sandbox):
    folder = folder_for(load(SLUG))
    assert all(path.stat().st_mode & 0o004 for path in folder.rglob("*"))


def test_pictures_cost_no_points(sandbox):
    drawing = """
    %matplotlib inline
    import matplotlib.pyplot as plt
    from IPython.display import HTML, display
    import matplotlib.ticker as ticker
    figure, (left, right) = plt.subplots(1, 2)
    left.plot([1, 2]); right.yaxis.set_major_formatter(ticker.NullFormatter())
    display(HTML("<b>x</b>"))
    with plt.style.context("x"):
        plt.show()
    def raw_scores(query, key):
        return query @ key.swapaxes(-1, -2)
    """
    record = grade(notebook(SETUP, drawing), SLUG, 1, QUICK)
    assert record["troubles"] == [] and record["points"] == hostile.ONE


def test_a_grader_that_is_killed_takes_its_answers_along(sandbox, tmp_path):
    (tmp_path / f"eve_{SLUG}.ipynb").write_bytes(notebook("import os, time\nos.fork()\nwhile True: time.sleep(1)"))
    run = subprocess.Popen([sys.executable, "-m", "grading", tmp_path, tmp_path / "out", "--workers", "1"], cwd=ROOT,
                           env=os.environ | {"TMPDIR": str(tmp_path)})  # fmt: skip
    wait_until(lambda: any(b"bwrap" not in line for _, line in left_behind()))
    run.kill()
    run.wait()
    wait_until(lambda: not left_behind())
    sweep(MARK)
    assert not groups()


def test_a_sandbox_that_waits_for_its_dead_grader_is_swept_away(sandbox, monkeypatch):
    waiting = [sys.executable, "-c", "import time; time.sleep(1000)", MARK.decode()]
    orphan = subprocess.Popen(["bwrap", "--unshare-pid", "--as-pid-1", "--bind", "/", "/", *waiting])
    wait_until(lambda: len([line for _, line in left_behind() if b"bwrap" not in line]) == 1)
    sweep(MARK)
    assert orphan.poll() is None, "its parent is there"
    monkeypatch.setattr("grading.sweep._parent", lambda number: os.getpid())
    sweep(MARK)
    assert orphan.wait(20) != 0 and not left_behind()


def wait_until(holds):
    """Wait for it, 20 seconds at most."""
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)
