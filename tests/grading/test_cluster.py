"""Many processes: a worker that dies loses nothing, and a submission that kills every worker stops nobody."""

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from classroom import ROOT, left_behind, results
from common import missing

from grading import bench, cluster


@pytest.fixture(autouse=True)
def dask():
    if not importlib.util.find_spec("distributed"):
        missing("dask.distributed")


def workers(parent):
    """The process ids of the cluster's workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line, stat = (folder / "cmdline").read_bytes(), (folder / "stat").read_text()
        except OSError:
            continue
        if int(stat.rpartition(")")[2].split()[1]) == parent and b"spawn_main" in line:
            found.append(int(folder.name))
    return found


def test_a_worker_that_dies_loses_nothing(sandbox, tmp_path):
    (tmp_path / "in").mkdir()
    expected = bench.write_class(tmp_path / "in", 24)
    run = subprocess.Popen(
        [sys.executable, "-m", "grading", tmp_path / "in", tmp_path / "out", "--workers", "2"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "out").rglob("*.ipynb.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(workers(run.pid)[0], signal.SIGKILL)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == 0, said
    assert {name: record["points"] for name, record in results(tmp_path / "out").items()} == expected
    assert not left_behind()


def test_a_task_that_kills_every_worker_stops_nobody(monkeypatch):
    import dask
    import distributed  # noqa: F401, it adds its settings to those of dask

    monkeypatch.setattr(cluster, "TRIES", 1)

    class Task:
        exercise = "04_scores"

        def __init__(self, name):
            self.name = name

        def run(self):
            if self.name == "deadly":
                os._exit(1)
            return {"done": self.name}

    tasks = [Task("one"), Task("deadly"), Task("two"), Task("three")]
    with dask.config.set({"distributed.scheduler.allowed-failures": 0}):
        done = dict(cluster.run(tasks, 2))
    assert done.keys() == {"one", "deadly", "two", "three"}
    assert done["deadly"]["status"] == "not graded" and "the grader failed" in done["deadly"]["notes"][0]


def test_a_scheduler_that_runs_already_is_used(sandbox, tmp_path):
    from distributed import LocalCluster

    expected = bench.write_class(tmp_path, 4)
    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "local_directory": tmp_path / "dask"}
    with LocalCluster(**options) as running:
        records, _, forged, lost = bench.measure(tmp_path, expected, 1, running.scheduler_address)
    assert len(records) == 4 and forged == lost == 0
