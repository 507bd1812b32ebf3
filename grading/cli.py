"""The command: `python -m grading SUBMISSIONS OUT`, or `mha-grade`, or `make grade SUBMISSIONS=... OUT=...`."""

import argparse
import importlib.util
import json
import math
import os
import signal
import sys
from pathlib import Path

from mha_lib.questions import SLUGS, load

from . import late, report, tables
from .limits import Limits
from .offered import folder_for
from .run import Run, Settings, place, write
from .sandbox import SandboxError, Unprotected, probe

EPILOG = """\
what is written:
  OUT/feedback/NAME.html   a page for each learner, with nothing of anybody else
  OUT/grades.csv           every submission, every question
  OUT/canvas.csv           to import into Canvas
  OUT/changes.csv          with --against: what differs from the earlier run
  OUT/results, OUT/run.json  what a later run goes on from; they hold the secret inputs' seed, so keep them

The same command goes on where it was stopped, and grades again what has changed: a file, an exercise, the grader.
Names are taken from the files: ada_04_scores.ipynb, ada/04_scores.ipynb, or Canvas's and Moodle's downloads as they are.
Exit status: 0, everything is graded; 1, the grader failed on something, which the next run tries again; 2, it could not begin.
"""


def parser():
    """What the command takes."""
    p = argparse.ArgumentParser("mha-grade", description="Grade a folder of notebooks.", epilog=EPILOG,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    p.add_argument("submissions", type=Path, help="a folder of notebooks")
    p.add_argument("out", type=Path, help="a folder for the results")
    p.add_argument(
        "--exercise", choices=SLUGS, metavar="SLUG", default="", help="grade everything as this one (04_scores)"
    )
    p.add_argument("--again", action="store_true", help="grade everything again, also what has not changed")
    p.add_argument(
        "--against", type=Path, metavar="OLD_OUT", help="say what changed since the run there, with the same inputs"
    )
    late_ = p.add_argument_group("late policy")
    late_.add_argument(
        "--due", type=late.moment, metavar="TIME", help="2027-01-31T23:59, in the time zone of this machine"
    )
    late_.add_argument(
        "--late", type=_percent, default=0.0, metavar="PERCENT", help="taken off for each day begun after it"
    )
    late_.add_argument("--times", type=Path, metavar="CSV", help="when it was handed in: columns file (or learner) and time; "
                       "without it the files' own times count")  # fmt: skip
    p.add_argument(
        "--roster", type=Path, metavar="CSV", help="the gradebook exported from Canvas, for its names and columns"
    )
    p.add_argument("--book", default="", metavar="ADDRESS", help="where the chapters are, for links in the feedback")
    power = p.add_argument_group("where and how")
    power.add_argument(
        "--workers", type=_count, default=0, metavar="N", help="processes; all processors if dask is installed, else 1"
    )
    power.add_argument("--scheduler", default="", metavar="ADDRESS", help="a running dask cluster instead")
    power.add_argument("--seconds", type=_some, default=Limits.seconds, help="for one cell or call (%(default)s)")
    power.add_argument("--total", type=_some, default=Limits.total, help="seconds for one submission (%(default)s)")
    power.add_argument("--memory", type=_count, default=Limits.memory, help="MiB for one submission (%(default)s)")
    power.add_argument("--unsafe", action="store_true", help="no sandbox: only for files that you trust as your own")
    return p


def _number(text, least, most=math.inf):
    number = float(text)
    if not least <= number <= most or math.isinf(number):
        raise argparse.ArgumentTypeError(
            f"must be a number from {least:g}{f' to {most:g}' if most < math.inf else ' on'}, got {text}"
        )
    return number


def _some(text):
    return _number(text, 0.1)


def _percent(text):
    return _number(text, 0, 100)


def _count(text):
    return int(_number(int(text), 0))


def main(argv=None):
    """Run the command; the exit status."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # being stopped by the system cleans up like Ctrl+C
    sys.stdout.reconfigure(errors="backslashreplace")
    options = parser().parse_args(argv)
    try:
        settings = _settings(options)
        known = late.times(options.times) if options.times else {}
        header, students = tables.roster(options.roster) if options.roster else ((), ())
        old = _stored(options.against) if options.against else None
        run = Run(settings)
    except (SandboxError, OSError, ValueError) as error:
        print(f"mha-grade: {error}", file=sys.stderr)
        return 2
    if not run.found:
        print(f"mha-grade: no notebook in {settings.folder}, or none that may be read", file=sys.stderr)
        return 2
    tasks = run.plan()
    kept = len(run.found) - len(tasks)
    print(f"{len(run.found)} submissions, {kept} of them already settled, {len(tasks)} to grade")
    if run.ignored:
        print(
            f"{len(run.ignored)} files are no notebooks: {', '.join(run.ignored[:5])}{', …' if len(run.ignored) > 5 else ''}"
        )
    if options.due and not options.times:
        print("late by the files' own times, which a download may have set: --times has better ones")
    try:
        for _ in progress(run.execute(tasks), len(tasks)):
            pass
    except KeyboardInterrupt:
        print("\nStopped; what is graded is kept. The same command goes on.", file=sys.stderr)
        return 130
    records = late.settle(run.result(), late.Policy(options.due, options.late), known)
    lost = reports(records, settings.out, options.book, header, students)
    if lost:
        print(f"not in the roster, so not in canvas.csv: {', '.join(lost)}")
    if old is not None:
        _regrade(old, records, settings.out)
    return _summary(records)


def _settings(options):
    """What the options ask for; SandboxError or ValueError where it cannot be had."""
    if not options.submissions.is_dir():
        raise ValueError(f"{options.submissions} is not a folder")
    if options.out.exists() and not options.out.is_dir():
        raise ValueError(f"{options.out} is a file; OUT is a folder for the results")
    if options.submissions.resolve().is_relative_to(options.out.resolve()):
        raise ValueError(f"OUT must not be the folder of the submissions or hold it, got {options.out}")
    if options.late and not options.due:
        raise ValueError("--late needs --due")
    dask = importlib.util.find_spec("distributed") is not None
    workers = options.workers or ((os.cpu_count() or 1) if dask else 1)
    if (workers > 1 or options.scheduler) and not dask:
        raise ValueError("more than one process needs dask: pip install 'mha-lib[grade]', or --workers 1")
    limits = Limits(options.seconds, options.total, options.memory)
    if not options.scheduler:  # else the answers run on other machines
        folder = folder_for(load(options.exercise or "04_scores"))  # any will do
        probe(folder, limits, Unprotected) if options.unsafe else probe(folder, limits)
    return Settings(
        options.submissions, options.out, options.exercise, limits, options.unsafe, workers, options.scheduler,
        options.again, options.against,
    )  # fmt: skip


def progress(done, total):
    """The same names, with a bar where tqdm is installed and somebody is looking."""
    try:
        from tqdm import tqdm
    except ImportError:
        return done
    return tqdm(done, total=total, unit="notebook", disable=None if total else True)


def reports(records, out, book="", header=(), students=()):
    """Write the feedback and the tables; the names of learners whom the roster lacks."""
    for record in records:
        path = place(out / "feedback", record["file"].removesuffix(".ipynb"), ".html")
        write(path, report.page(record, book))
    write(out / "grades.csv", "\ufeff" + tables.grades(records))  # the mark tells Excel that it is UTF-8
    text, lost = tables.canvas(records, header, students)
    write(out / "canvas.csv", text)
    return lost


def _stored(folder):
    """The records of an earlier run."""
    paths = sorted((folder / "results").rglob("*.json"))
    if not paths:
        raise ValueError(f"{folder} holds no results of an earlier run")
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _regrade(old, new, out):
    rows = tables.changes(old, new)
    write(out / "changes.csv", "\ufeff" + tables.changes_table(rows))
    print(f"{len(rows)} of {len(new)} differ from the earlier run" + (":" if rows else ""))
    for file, _, _, before, after, what in rows:
        print(f"  {file}: {before} → {after} points ({what})")


def _summary(records):
    graded = [r for r in records if r["status"] == "graded"]
    print(f"{len(graded)} graded, {sum(r['status'] == 'unreadable' for r in records)} unreadable")
    failed = [r["file"] for r in records if r["status"] == "not graded"]
    if failed:
        print(f"{len(failed)} not graded, the grader failed; the same command tries again: {', '.join(failed[:10])}")
    return 1 if failed else 0
