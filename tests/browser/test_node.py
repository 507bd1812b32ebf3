"""Every cell that the pages offer to run, run by the pages' own Python under Node: its outputs are the stored ones, to the letter."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import npm
import pytest
from common import missing
from stored import code_cells, plain, runs_in_browser

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.browser

RUN = ROOT / "_build" / "browser" / "run"
NOTEBOOKS = sorted([*ROOT.glob("chapters/*.ipynb"), *ROOT.glob("exercises/learn/*.ipynb")])


@pytest.fixture(scope="module")
def ran():
    """{notebook: {index of the code cell: (ran to its end, outputs)}} of all notebooks, each with names of its own."""
    node = npm.client("node") or missing("node")
    if not (RUN / "version").is_file():
        missing("Python for the pages (make book, with a network)")
    with ThreadPoolExecutor() as pool:
        halves = [pool.submit(run, node, NOTEBOOKS[start::2]) for start in (0, 1)]
    found = [json.loads(line) for half in halves for line in half.result().splitlines()]
    return {Path(nb["path"]): {c["index"]: (c["ok"], c["outputs"]) for c in nb["cells"]} for nb in found}


def run(node, notebooks):
    """What run_notebook.mjs prints about these notebooks."""
    command = [node, Path(__file__).with_name("run_notebook.mjs"), RUN, *notebooks]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert not done.returncode, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_outputs_are_the_stored_ones(path, ran):
    cells = code_cells(path)
    assert set(ran[path]) == {i for i, cell in enumerate(cells) if runs_in_browser(cell)}
    for index, (_, outputs) in ran[path].items():
        assert plain(outputs) == plain(cells[index].outputs), f"code cell {index + 1}"
    assert all(ok for ok, _ in ran[path].values())
