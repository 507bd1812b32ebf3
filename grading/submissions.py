"""Finding the notebooks in a folder, and whose they are.

    04_scores/ada_04_scores.ipynb               a file for each learner: what stands before the exercise is the name
    ada/04_scores.ipynb, ada/any/name.ipynb     a folder for each learner
    lovelaceada_123_456_04_scores.ipynb         a download of Canvas (..._LATE_123_... too): 123 is the learner's Canvas id
    Ada Lovelace_123_assignsubmission_file_/    a download of Moodle: the learner is Ada Lovelace (123)

Where one learner handed in twice, all files are graded and the latest counts.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mha_lib.questions import SLUGS

CANVAS = re.compile(r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_\d+_(?P<rest>.+)")
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_.*")
AGAIN = re.compile(r"(-\d+|[ _]?\(\d+\)|[ _-]copy\d*)$", re.IGNORECASE)  # what a second upload or download adds


@dataclass(frozen=True)
class Submission:
    """A file. name: its path in the folder, with slashes. canvas: the learner's Canvas id ("" if unknown). time: handed in, UTC."""

    path: Path
    name: str
    learner: str
    canvas: str
    time: datetime


def find(folder, out=None):
    """(submissions, names of files that are none), both sorted.

    Links are never followed: they could lead anywhere. What lies in `out`, should that be in the folder, is the grader's.
    """
    found, ignored = [], []
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if out and path.is_relative_to(out):
            continue
        is_folder = path.is_dir() and not path.is_symlink()
        if is_folder or any(part.startswith(".") or part == "__MACOSX" for part in inside.parts):
            continue
        if path.suffix.lower() != ".ipynb" or path.is_symlink() or not path.is_file():
            ignored.append(inside.as_posix())
            continue
        learner, canvas = whose(inside)
        time = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        found.append(Submission(path, inside.as_posix(), learner, canvas, time))
    return found, ignored


def whose(inside):
    """(learner, Canvas id or "") of a file, by its path in the folder of submissions."""
    stem = inside.name[: -len(".ipynb")]
    folders = inside.parts[1:-1] if inside.parts[0] in SLUGS else inside.parts[:-1]
    canvas = CANVAS.fullmatch(stem)
    if canvas and not folders:  # in a learner's folder the name of the file is the learner's choice
        return canvas["name"], canvas["id"]
    if len(inside.parts) > 1 and inside.parts[0] not in SLUGS:
        moodle = MOODLE.fullmatch(inside.parts[0])
        name = f"{moodle['name']} ({moodle['id']})" if moodle else inside.parts[0]  # two may have one name
        return name, ""
    if len(inside.parts) > 2:  # an exercise's folder with a folder for each learner
        return inside.parts[1], ""
    stem = AGAIN.sub("", stem)
    for slug in SLUGS:
        stem = re.sub(rf"[ _.-]*{slug}$|^{slug}[ _.-]+", "", stem) or stem
    return stem, ""


def exercise_in(name):
    """The exercise that a file's path names; "" if none."""
    return next((slug for slug in SLUGS if slug in name), "")
