"""Run notebooks again, in place: `python tools/notebooks.py chapters [more folders or files]`.

A second run changes no byte. A notebook that fails is reported, keeps its old content, and makes the exit status 1.
Only a cell tagged `raises-exception` may raise.
"""

import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
CELL_METADATA = ("tags", "mystnb")  # what authors write; the rest (timings, trust, folding) differs from run to run


def find(paths):
    for path in map(Path, paths):
        found = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        yield from (p for p in found if ".ipynb_checkpoints" not in p.parts)


def run(notebook, folder):
    """Execute every cell; on an error add the cell's index to it."""
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=120,
        coalesce_streams=True,  # else the number of stream outputs depends on the moment they arrive
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # the kernel's advice about its own socket
    )
    with client.setup_kernel():
        for index, cell in enumerate(notebook.cells):
            try:
                client.execute_cell(cell, index)
            except Exception as error:
                error.cell_index = index
                raise


def clean(notebook):
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({k: cell.metadata[k] for k in CELL_METADATA if k in cell.metadata})


def write(notebook, path):
    """Replace the file in one step, so that an interrupted run never leaves half a notebook."""
    content = (nbformat.writes(notebook).rstrip("\n") + "\n").encode()
    if content != path.read_bytes():
        new = path.with_name(path.name + ".new")
        new.write_bytes(content)
        os.replace(new, path)


def last_line(error):
    """The error in one line and, if a cell raised it, the line of the cell that did."""
    if not isinstance(error, CellExecutionError):
        return f"{type(error).__name__}: {error}".strip().splitlines()[0]
    plain = re.sub(r"\x1b\[[0-9;]*m", "", error.traceback)
    lines = [line for line in plain.splitlines() if line.startswith("---")] or [""]
    where = re.sub(r"^-+> *\d* *", "", next((line for line in lines if "> " in line), ""))
    return f"{error.ename}: {error.evalue}".strip().splitlines()[-1] + (f"  in the line: {where}" if where else "")


def main(paths):
    notebooks, failed = list(find(paths)), 0
    if not notebooks:
        sys.exit(f"no notebook in {' '.join(paths) or '(no path given)'}")
    for path in notebooks:
        try:
            notebook = nbformat.read(path, as_version=4)
            run(notebook, path.parent)
            clean(notebook)
            write(notebook, path)
            print(f"{path}: ran")
        except Exception as error:  # whatever stops one notebook must not hide the state of the others
            failed = 1
            print(f"{path}: cell {getattr(error, 'cell_index', '-')}: {last_line(error)}", file=sys.stderr)
    return failed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
