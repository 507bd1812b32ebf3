"""Marking one notebook: its code cells in, a record of points and sentences out, as plain JSON."""

import time
from dataclasses import asdict

from mha_lib.questions import Exercise, judge, load

from .limits import Limits
from .notebook import Unreadable, read
from .offered import folder_for
from .remote import Remote
from .sandbox import Sandboxed, Unprotected

USUAL = Limits()


def grade(data, exercise, seed, limits=USUAL, unsafe=False):
    """The record of a notebook given as bytes, for an `Exercise` or its slug. Never raises for what the notebook does."""
    exercise = exercise if isinstance(exercise, Exercise) else load(exercise)
    try:
        notebook = read(data)
    except Unreadable as reason:
        return unreadable(exercise, str(reason))
    record = grade_cells(notebook.cells, exercise, seed, limits, unsafe)
    return record | {"notes": notebook.notes + record["notes"]}


def grade_cells(cells, exercise, seed, limits=USUAL, unsafe=False):
    """The record of code cells.

    status: "graded", or "not graded" where the grader failed: then there are no points, and a later run tries again.
    questions: one `Verdict` each, as a dict with its points. troubles: the cells that stopped with an error.
    """
    exercise = exercise if isinstance(exercise, Exercise) else load(exercise)
    began, (user, child) = time.monotonic(), _cpu()
    record = {"exercise": exercise.slug, "title": exercise.title, "max": exercise.points, "notes": [], "troubles": []}
    remote = None
    try:
        folder, launch = folder_for(exercise), Unprotected if unsafe else Sandboxed
        remote = Remote(cells, lambda: launch(folder, limits), limits)
        verdicts = [judge(exercise, question, remote, seed) for question in exercise.questions]
        record["troubles"] = [asdict(trouble) for _, trouble in sorted(remote.troubles.items())]
    except Exception as error:  # whatever it is, the next submission has a right to its grade
        note = f"the grader failed, not the notebook: {type(error).__name__}: {error}"
        return record | {"status": "not graded", "points": None, "questions": [], "notes": [note[:500]]}
    finally:
        if remote is not None:
            remote.close()
    questions = [asdict(verdict) | {"points": verdict.points, "max": verdict.max} for verdict in verdicts]
    seconds, (own, children) = time.monotonic() - began, _cpu()
    return record | {
        "status": "graded",
        "points": sum(question["points"] for question in questions),
        "questions": questions,
        "seconds": round(seconds, 3),
        "cpu": round(own - user + children - child + (0 if unsafe else remote.cpu), 3),
    }


def unreadable(exercise, reason):
    """The record of a file that is no notebook; `exercise` is None where nobody knows which it is for."""
    slug, title, points = (exercise.slug, exercise.title, exercise.points) if exercise else ("", "", 0)
    return {
        "exercise": slug, "title": title, "status": "unreadable", "points": 0, "max": points,
        "questions": [], "notes": [reason], "troubles": [], "seconds": 0.0, "cpu": 0.0,
    }  # fmt: skip


def _cpu():
    """CPU seconds of this process and of the children it has waited for."""
    try:
        import resource
    except ImportError:  # Windows
        return time.process_time(), 0.0
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime, children.ru_utime + children.ru_stime
