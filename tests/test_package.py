"""The wheel, installed in an environment of its own outside the tree: it holds the extract, and needs no torch."""

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from common import missing

ROOT = Path(__file__).parents[1]
PROGRAM = """
import sys
import numpy as np
import mha_lib
from mha_lib.data import load_layer
from mha_lib.numpy import MultiHeadAttention

layer = load_layer()
output, weights = MultiHeadAttention.from_arrays(layer)(layer.x, return_weights=True)
print(f"it -> animal {weights[1, layer.tokens.index('it'), layer.tokens.index('animal')]:.2f}")
print("torch" in sys.modules, "matplotlib" in sys.modules, mha_lib.__version__)
print(mha_lib.__file__)
"""


def run(*command, cwd):
    environment = {key: x for key, x in os.environ.items() if not key.startswith("PYTHON")}
    result = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, check=False)
    return result.returncode, result.stdout, result.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    code, _, errors = run(
        sys.executable, "-m", "pip", "wheel", "--no-deps", "--quiet", "-w", str(folder), str(ROOT), cwd=folder
    )
    if code and "hatchling" in errors:
        missing("hatchling, or a network to fetch it from,")
    assert code == 0, errors
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_works_outside_the_tree(wheel, tmp_path):
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    code, _, errors = run(str(python), "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    if code and "No matching distribution" in errors:
        missing("numpy, or a network to fetch it from,")
    assert code == 0, errors
    code, out, errors = run(str(python), "-c", PROGRAM, cwd=tmp_path)
    assert code == 0, errors
    number, modules, where = out.splitlines()
    assert number == "it -> animal 0.68"
    assert modules == "False False 0.1.0"
    assert Path(where).is_relative_to(tmp_path / "env")
    code, out, _ = run(str(python), "-c", "import mha_lib.torch", cwd=tmp_path)
    assert code != 0  # there is no torch in that environment


def test_what_the_wheel_holds(wheel):
    import zipfile

    names = zipfile.ZipFile(wheel).namelist()
    assert "mha_lib/data/minilm_extract.npz" in names and any(
        name.endswith("licenses/mha_lib/data/NOTICE") for name in names
    )
    assert all(name.startswith(("mha_lib/", "grading/", "mha_lib-0.1.0.dist-info/")) for name in names)
    assert wheel.stat().st_size < 3_000_000
