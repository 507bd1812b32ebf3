"""The class edition of the exercises, by Otter-Grader: python tools/class_edition.py OUT [04_scores ...] (also `make class`)

Needs otter-grader==7.0.0 beside the library (`pip install otter-grader==7.0.0`). For each exercise OUT/NAME/student holds the
notebook without solutions, OUT/NAME/autograder the one with them and the autograder archive for Gradescope or `otter run`. The
tests that the archive holds run beside the answers, so they are for feedback; `make grade` is for marks.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat

from exercises import answers, masters, secret_lines
from mha_lib import questions

LIBRARY = Path(questions.__file__).parents[1]
TEST = '''""" # BEGIN TEST CONFIG
points: {points}
hidden: {hidden}
""" # END TEST CONFIG
def test_{number}(env):
    from mha_lib.check import require
    require({slug!r}, {question!r}, {title!r}, env)
'''


def tests(slug, question):
    """The cells between BEGIN TESTS and END TESTS: one test for each part of the question."""
    raw, code = nbformat.v4.new_raw_cell, nbformat.v4.new_code_cell
    cells = [
        code(
            TEST.format(
                number=number,
                points=part.points,
                hidden=str(part.hidden).lower(),
                slug=slug,
                question=question.name,
                title=part.title,
            )
        )
        for number, part in enumerate(question.parts)  # Otter keeps the last of two tests with one name
    ]
    return [raw("# BEGIN TESTS"), *cells, raw("# END TESTS")]


def with_tests(master, exercise):
    """The master as Otter wants it: with the tests of every question before its end."""
    cells, name = [], None
    for cell in master.cells:
        if cell.cell_type == "raw" and cell.source.startswith("# BEGIN QUESTION"):
            name = next(
                line.removeprefix("name:").strip() for line in cell.source.splitlines() if line.startswith("name:")
            )
        if cell.cell_type == "raw" and cell.source.strip() == "# END QUESTION":
            cells += tests(exercise.slug, exercise[name])
        cells.append(cell)
    master.cells = cells
    return master


def otter(*arguments, cwd):
    """Run Otter; its output is shown only where it fails."""
    done = subprocess.run([sys.executable, "-m", "otter", *arguments], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"otter {' '.join(map(str, arguments))} failed:\n{done.stdout}{done.stderr}")


def score(archive, notebook):
    """The share of the points that Otter's own run gives a notebook."""
    with tempfile.TemporaryDirectory() as folder:
        otter("run", "--no-logo", "-a", archive.resolve(), "-o", folder, notebook.resolve(), cwd=folder)
        tests = json.loads((Path(folder) / "results.json").read_text())["tests"]
    scored = [test for test in tests if test.get("max_score")]
    return sum(test["score"] for test in scored) / sum(test["max_score"] for test in scored)


def add_library(archive):
    """Put mha_lib into the archive: Otter copies what stands in files/ beside the submission."""
    with zipfile.ZipFile(archive, "a") as file:
        for path in sorted(LIBRARY.rglob("*")):
            inside = path.relative_to(LIBRARY)
            if path.is_file() and "__pycache__" not in inside.parts and inside.parts[0] != "torch":
                file.write(path, Path("files", "mha_lib", inside))


def make(path, out):
    """The class edition of one master. Solutions must score 100 % by Otter's own run, the student's notebook 0 %."""
    exercise = questions.load(path.stem)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        nbformat.write(with_tests(nbformat.read(path, as_version=4), exercise), folder / path.name)
        otter("assign", path.name, "dist", cwd=folder)
        target = out / path.stem
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(folder / "dist", target)
    archive = next((target / "autograder").glob("*.zip"))
    archive = archive.rename(archive.with_name(f"{path.stem}-autograder.zip"))  # without Otter's time in it
    add_library(archive)
    scores = [score(archive, target / side / path.name) for side in ("autograder", "student")]
    if scores != [1, 0]:
        sys.exit(f"{path.stem}: the solutions score {scores[0]:.0%}, the student's notebook {scores[1]:.0%}")
    found = leaks(nbformat.read(target / "student" / path.name, as_version=4), nbformat.read(path, as_version=4))
    if found:
        sys.exit(f"{path.stem}: the student's notebook holds a line of a solution: {found[0]}")


def leaks(student, master):
    """Lines of the solutions that stand in the student's notebook."""
    shown = {line.strip() for cell in student.cells for line in cell.source.splitlines()}
    return [line for source in answers(master) for line in secret_lines(source) if line in shown]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("names", nargs="*", help="exercises, by default all")
    options = parser.parse_args()
    for path in masters():
        if not options.names or path.stem in options.names:
            make(path, options.out)
            print(options.out / path.stem)


if __name__ == "__main__":
    main()
