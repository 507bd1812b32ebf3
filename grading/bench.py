"""What grading costs, and what a cheat gains: `python -m grading.bench 30`.

Prints seconds and CPU seconds for each of N ordinary submissions (right, half right, wrong and blank ones), and with
`--hostile` the points forged by every submission of `grading.hostile`.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from . import hostile
from .limits import Limits
from .run import Run, Settings

WRONG = "def raw_scores(query, key):\n    return key @ query.swapaxes(-1, -2)"
KINDS = (
    (hostile.RIGHT, hostile.ALL),
    ((*hostile.RIGHT[:3], "def scaled_scores(query, key):\n    ..."), 1 + hostile.ONE),
    ((hostile.SETUP, WRONG, "1 / 0"), 0),
    ((hostile.SETUP, "mice_row = ...", "def raw_scores(query, key):\n    ..."), 0),
)


def write_class(folder, count):
    """Write so many submissions, no two alike; the points that each deserves, by name."""
    deserved = {}
    for n in range(count):
        cells, points = KINDS[n % len(KINDS)]
        name = f"learner{n:04}_{hostile.SLUG}.ipynb"
        (folder / name).write_bytes(hostile.notebook(*cells, f"# learner {n}"))
        deserved[name] = points
    return deserved


def measure(folder, deserved, workers, scheduler="", limits=None):
    """Grade a folder; (records, seconds, sum of what was got beyond what was deserved, sum of what was lost)."""
    with tempfile.TemporaryDirectory() as out:
        began = time.monotonic()
        settings = Settings(folder, Path(out), hostile.SLUG, limits or Limits(), workers=workers, scheduler=scheduler)
        run = Run(settings)
        for _ in run.execute(run.plan()):
            pass
        seconds = time.monotonic() - began
    records = run.result()
    gains = [(record["points"] or 0) - deserved[record["file"]] for record in records]
    return records, seconds, sum(gain for gain in gains if gain > 0), -sum(gain for gain in gains if gain < 0)


def main(argv=None):
    """Run the command; the exit status: 1 if points were forged or lost, or a submission."""
    parser = argparse.ArgumentParser("grading.bench", description=__doc__.split("\n")[0])
    parser.add_argument("count", type=int, nargs="?", default=30)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--scheduler", default="")
    parser.add_argument("--hostile", action="store_true", help="grade the hostile set too")
    options = parser.parse_args(argv)
    bad = False
    with tempfile.TemporaryDirectory() as folder:
        deserved = write_class(Path(folder), options.count)
        records, seconds, forged, lost = measure(Path(folder), deserved, options.workers, options.scheduler)
        cpu = sum(record.get("cpu", 0) for record in records) / max(1, len(records))
        print(
            f"{len(records)} of {options.count} submissions in {seconds:.1f} s: {seconds / max(1, len(records)):.2f} s and "
            f"{cpu:.2f} CPU-seconds each; {forged} points too many, {lost} too few"
        )
        bad |= len(records) != options.count or forged + lost > 0
    if options.hostile:
        with tempfile.TemporaryDirectory() as folder:
            deserved = write_hostile(Path(folder))
            limits = Limits(seconds=2, total=20)
            records, seconds, forged, lost = measure(Path(folder), deserved, options.workers, options.scheduler, limits)
            print(
                f"{len(records)} of {len(deserved)} hostile submissions in {seconds:.1f} s: {forged} points forged, {lost} lost"
            )
            bad |= len(records) != len(deserved) or forged + lost > 0
    return int(bad)


def write_hostile(folder):
    """Write the hostile set; the points that each deserves, by name."""
    deserved = {}
    for case in hostile.cases():
        name = f"{case.name}_{hostile.SLUG}.ipynb"
        (folder / name).write_bytes(case.data)
        deserved[name] = case.deserves
    return deserved


if __name__ == "__main__":
    sys.exit(main())
