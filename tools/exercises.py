"""The learner's notebooks out of the masters: python tools/exercises.py (also `make exercises`)

A master is a notebook in Otter-Grader's format, with solutions. Its learner's notebook in exercises/learn has a stub in place of
each solution, the solution folded below the hints, and stored outputs. Needs no Otter; tools/class_edition.py does.
"""

import re
from pathlib import Path

import nbformat
from notebooks import clean, run

EXERCISES = Path(__file__).parents[1] / "exercises"
LEARN = EXERCISES / "learn"


def stub(source):
    """The source of an answer cell with three dots in place of the solution, by Otter's rules."""
    lines, inside = [], False
    for line in source.splitlines():
        if line.strip().startswith("# BEGIN SOLUTION"):
            inside = True
            if not line.endswith("NO PROMPT"):
                lines.append(line[: len(line) - len(line.lstrip())] + "...")
        elif line.strip() == "# END SOLUTION":
            inside = False
        elif line.endswith("# SOLUTION NO PROMPT") or inside:
            continue
        elif line.endswith("# SOLUTION"):
            name, equals, _ = line.partition(" = ")
            lines.append(f"{name} = ..." if equals else line[: len(line) - len(line.lstrip())] + "...")
        else:
            lines.append(line)
    return re.sub(r"\n{3,}(?=\n\n)", "\n", "\n".join(lines)).strip()


def solution(source):
    """The source of an answer cell without Otter's markers and without the check."""
    lines = [re.sub(r"  # SOLUTION( NO PROMPT)?$", "", line) for line in source.splitlines()
             if not re.match(r"\s*# (BEGIN|END) SOLUTION", line) and not line.startswith("check(")]  # fmt: skip
    return "\n".join(lines).strip()


def folded(source):
    return f"<details><summary>A solution</summary>\n\n```python\n{solution(source)}\n```\n\n</details>"


def learner(master):
    """The learner's notebook of a master, without outputs."""
    cells, answer, inside = [], None, False
    for cell in master.cells:
        if cell.cell_type == "raw":
            inside = {"# BEGIN SOLUTION": True, "# END SOLUTION": False}.get(cell.source.strip(), inside)
        elif inside:
            answer = cell.source
            cells.append(nbformat.v4.new_code_cell(stub(answer)))
        elif cell.cell_type == "markdown" and answer is not None:
            cells.append(nbformat.v4.new_markdown_cell(cell.source.rstrip() + "\n\n" + folded(answer)))
            answer = None
        else:
            new = nbformat.v4.new_code_cell if cell.cell_type == "code" else nbformat.v4.new_markdown_cell
            cells.append(new(cell.source, metadata={k: cell.metadata[k] for k in ("tags",) if k in cell.metadata}))
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return nbformat.v4.new_notebook(cells=cells)


def answers(master):
    """The sources of the answer cells."""
    found, inside = [], False
    for cell in master.cells:
        if cell.cell_type == "raw":
            inside = {"# BEGIN SOLUTION": True, "# END SOLUTION": False}.get(cell.source.strip(), inside)
        elif inside:
            found.append(cell.source)
    return found


def secret_lines(source):
    """The lines of an answer cell that its stub does not have."""
    shown = {line.strip() for line in stub(source).splitlines()}
    return [line.strip() for line in solution(source).splitlines() if line.strip() and line.strip() not in shown]


def masters():
    return sorted(EXERCISES.glob("*.ipynb"))


def derived(path):
    """The text of the learner's notebook of a master, executed."""
    notebook = learner(nbformat.read(path, as_version=4))
    run(notebook, EXERCISES)
    clean(notebook)
    return nbformat.writes(notebook).rstrip("\n") + "\n"


def stale(path):
    """Whether the committed learner's notebook is not what its master gives; outputs are the affair of nbval."""
    if not (LEARN / path.name).exists():
        return True
    committed, wanted = nbformat.read(LEARN / path.name, as_version=4), learner(nbformat.read(path, as_version=4))
    return [(c.cell_type, c.source) for c in committed.cells] != [(c.cell_type, c.source) for c in wanted.cells]


if __name__ == "__main__":
    LEARN.mkdir(exist_ok=True)
    for path in masters():
        (LEARN / path.name).write_text(derived(path), encoding="utf-8")
        print(f"exercises/learn/{path.name}")
