"""What is said twice is the same: versions, the API page, the picture, the README's commands. And the doctests."""

import doctest
import importlib
import inspect
import pkgutil
import re
import shlex
from pathlib import Path

import pytest
import yaml

import mha_lib

ROOT = Path(__file__).parents[1]
MODULES = [m.name for m in pkgutil.walk_packages(mha_lib.__path__, "mha_lib.")]


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    module = importlib.import_module(name)
    names = {"np": __import__("numpy")} | ({"torch": __import__("torch")} if ".torch" in name else {})
    assert doctest.testmod(module, extraglobs=names).failed == 0


def test_every_public_name_has_an_example_and_stands_in_the_api_reference():
    page, library = read("chapters/api.md"), {}
    section = None
    for line in page.splitlines():
        if line.startswith(".. currentmodule:: "):
            section = line.split()[-1]
        if found := re.match(r"\.\. auto(?:function|class):: (\S+)", line):
            library.setdefault(section if "." not in found[1] else found[1].rpartition(".")[0], set()).add(
                found[1].rpartition(".")[2]
            )
    for name in ("mha_lib.numpy", "mha_lib.torch", "mha_lib.viz"):
        assert library[name] == set(importlib.import_module(name).__all__), name
    data = importlib.import_module("mha_lib.data")
    assert library["mha_lib.data"] == {n for n in data.__all__ if callable(getattr(data, n))}
    interop = importlib.import_module("mha_lib.interop")
    public = {n for n, x in vars(interop).items() if callable(x) and x.__module__ == "mha_lib.interop" and n[0] != "_"}
    assert public == library["mha_lib.interop"]
    for section, names in library.items():
        for name in names - {"Mistake"}:
            assert ">>> " in inspect.getdoc(getattr(importlib.import_module(section), name)), f"{section}.{name}"


def test_the_version_is_the_same_everywhere():
    version = mha_lib.__version__
    assert yaml.safe_load(read("CITATION.cff"))["version"] == version
    assert re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1] == version


def test_the_picture_of_the_landing_page_is_fresh(tmp_path):
    import figures

    fresh = figures.picture().save(tmp_path / "attention.svg")
    assert fresh.read_bytes() == figures.PICTURE.read_bytes(), "run: python tools/figures.py"


def test_the_readme_gives_the_commands_that_make_runs():
    """Each command of `make book`, `make test` and `make test-browser` stands in the README for people without make."""
    makefile, readme = read("Makefile"), " ".join(read("README.md").replace("&&", " ").split())
    variables = dict(re.findall(r"^(\w+) *[:?]?= *(.*)$", makefile, re.M))
    recipes = re.findall(r"^(?:book|test|test-browser): .*\n((?:\t[^@\n]*\n)+)", makefile, re.M)
    assert len(recipes) == 3
    commands = "".join(recipes).replace("$(NBVAL)", variables["NBVAL"]).replace("$(TWO)", variables["TWO"])
    for line in commands.replace("$(BIN)", ".venv/bin").splitlines():
        command = " ".join(shlex.split(line.strip().replace("--quiet ", "")))
        assert command in readme.replace('"', ""), command


def test_the_readme_has_no_gap():
    assert not re.search(r"^[A-Z]+$", read("README.md"), re.M)


def test_ci_runs_the_readmes_test_commands():
    assert {"make test", "make test-browser"} <= {" ".join(line.split()[:2]) for line in read(".ci/run").splitlines()}
    assert "bash .ci/run" in read(".github/workflows/book.yml")
