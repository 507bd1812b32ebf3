"""Grading a folder: what is new or changed is graded, what stands is kept, every result is written at once.

OUT/run.json                    the seed of the inputs that this run draws; secret until the marks are out
OUT/results/PATH.json           the record of SUBMISSIONS/PATH
"""

import hashlib
import json
import os
import secrets
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mha_lib.questions import Exercise, load

from . import cluster
from .bubblewrap import MARK
from .limits import Limits
from .marking import grade_cells, unreadable
from .notebook import LARGEST, Unreadable, read
from .offered import HERE, LIBRARY
from .submissions import exercise_in, find
from .sweep import sweep

ODD = "odd names"


@dataclass
class Settings:
    """folder: with the submissions. exercise: a slug or an `Exercise`; "" reads it from each notebook."""

    folder: Path
    out: Path
    exercise: str | Exercise = ""
    limits: Limits = field(default_factory=Limits)
    unsafe: bool = False
    workers: int = 1
    scheduler: str = ""
    again: bool = False
    seed_from: Path | None = None


@dataclass(frozen=True)
class Task:
    """What is to be graded: `cells` of the submission `name`."""

    name: str
    cells: list
    exercise: str | Exercise
    seed: int
    limits: Limits
    unsafe: bool

    def run(self):
        """The record."""
        return grade_cells(self.cells, self.exercise, self.seed, self.limits, self.unsafe)


class Run:
    """One pass over a folder. `records` afterwards: one for each submission, in their order."""

    def __init__(self, settings):
        self.settings = settings
        self.seed = _seed(settings.out, settings.seed_from)
        self.found, self.ignored = find(settings.folder, settings.out)
        self.records, self.heads = {}, {}

    def plan(self):
        """The tasks that are left to do; what needs no worker is settled on the way."""
        tasks, version = [], _version()
        for submission in self.found:
            data = _bytes(submission.path)
            self.heads[submission.name] = {
                "file": submission.name, "learner": submission.learner, "canvas": submission.canvas,
                "submitted": submission.time.isoformat(timespec="seconds"),
                "fingerprint": _hash(data or b"", version, self.seed, self.settings),
            }  # fmt: skip
            kept = self._kept(submission.name)
            if kept:
                self.records[submission.name] = kept | self.heads[submission.name]
            else:
                tasks += self._open(submission.name, data)
        return tasks

    def _kept(self, name):
        """The record of an earlier run, if it still holds."""
        try:
            record = json.loads(self._file(name).read_text(encoding="utf-8"))
            same = record["fingerprint"] == self.heads[name]["fingerprint"] and record["status"] != "not graded"
        except (OSError, ValueError, LookupError, TypeError):
            return None
        return record if same and not self.settings.again else None

    def _open(self, name, data):
        """A list with the task for a file; empty where its record could be written at once."""
        exercise = self.settings.exercise
        try:
            if data is None:
                raise Unreadable("the grader may not read the file")
            notebook = read(data)
        except Unreadable as reason:
            self.settle(name, unreadable(_load(exercise or exercise_in(name)), str(reason)))
            return []
        exercise = exercise or notebook.exercise or exercise_in(name)
        if not exercise:
            reason = "it does not say which exercise it answers: keep the cell with Check, or the exercise's name in the file's name"
            self.settle(name, unreadable(None, reason))
            return []
        self.heads[name]["odd"] = notebook.notes + _doubt(name, exercise, notebook)
        return [Task(name, notebook.cells, exercise, self.seed, self.settings.limits, self.settings.unsafe)]

    def settle(self, name, record):
        """Keep a record, and write it so that a crash leaves the old file or the new one."""
        head = dict(self.heads[name])
        record = record | {"notes": head.pop("odd", []) + record["notes"]} | head
        self.records[name] = record
        write(self._file(name), json.dumps(record, indent=1))

    def _file(self, name):
        return place(self.settings.out / "results", name, ".json")

    def execute(self, tasks):
        """Do the tasks, here or on a cluster; gives the name of each as it is done."""
        sweep(MARK)
        workers = min(self.settings.workers, len(tasks))
        if workers > 1 or (tasks and self.settings.scheduler):
            done = cluster.run(tasks, workers, self.settings.scheduler)
        else:
            done = ((task.name, task.run()) for task in tasks)
        for name, record in done:
            self.settle(name, record)
            yield name
        sweep(MARK)

    def result(self):
        """The records in the order of the submissions."""
        return [self.records[submission.name] for submission in self.found if submission.name in self.records]


def place(folder, name, suffix):
    """Where something about a submission is kept: at its own path in `folder`, plus a suffix.

    A name that is too long for that, or whose folders could be taken for files of ours, gets a name of its own.
    """
    *folders, last = name.split("/")
    ours = any(part.lower().endswith((".json", ".html", ".part")) for part in folders)
    if ours or name.startswith(f"{ODD}/") or len(os.fsencode(last)) > 200:
        return folder / ODD / (hashlib.sha256(os.fsencode(name)).hexdigest() + suffix)
    return folder / (name + suffix)


def write(path, text):
    """Write a file in one step, and the folder for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_text(text, encoding="utf-8", errors="backslashreplace", newline="")
    os.replace(draft, path)


def _seed(out, earlier):
    """The seed: that of the earlier run this one is compared with, else that of this output folder, else a new one."""
    for folder in (earlier, out):
        if folder and (folder / "run.json").exists():
            seed = _stored_seed(folder / "run.json")
            break
    else:
        seed = secrets.randbits(63)
    write(out / "run.json", json.dumps({"seed": seed}))
    return seed


def _stored_seed(path):
    try:
        seed = json.loads(path.read_text(encoding="utf-8"))["seed"]
    except (ValueError, LookupError, TypeError):
        seed = None
    if type(seed) is not int or seed < 0:
        raise ValueError(
            f"{path} does not hold the seed of a run any more; take another folder, or remove the file to draw new inputs"
        )
    return seed


def _bytes(path):
    try:
        with path.open("rb") as stream:
            return stream.read(LARGEST + 1)
    except OSError:
        return None


def _version():
    """A hash of everything that points depend on: the grader, the exercises, the library, NumPy, Python."""
    total = hashlib.sha256(f"{sys.version} {np.__version__}".encode())
    for folder in (HERE, LIBRARY / "numpy", LIBRARY / "questions", LIBRARY / "data", LIBRARY):
        for path in sorted(folder.glob("*.py")):
            total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()


def _hash(data, version, seed, settings):
    exercise = settings.exercise
    if isinstance(exercise, Exercise):
        exercise = f"{exercise.slug} {exercise.points}"
    return hashlib.sha256(
        f"{version} {seed} {settings.limits} {settings.unsafe} {exercise} ".encode() + data
    ).hexdigest()


def _load(exercise):
    return exercise if isinstance(exercise, Exercise) else load(exercise) if exercise else None


def _doubt(name, exercise, notebook):
    slug = _load(exercise).slug
    says = {"its file name": exercise_in(name.rpartition("/")[2]), "the notebook": notebook.exercise}
    return [f"graded as {slug}, but {what} says {said}" for what, said in says.items() if said and said != slug]


__all__ = ["Run", "Settings", "Task", "place", "write"]
