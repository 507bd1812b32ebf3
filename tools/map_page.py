"""Write chapters/map.md, the map of the course: python tools/map_page.py (tests/test_map.py keeps it fresh)

For each chapter: what it builds and uses in the library, the tests of that, its exercise. All of it is read from the files.
"""

import ast
import importlib
import json
from pathlib import Path

import yaml

from mha_lib.questions import SLUGS, load

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "chapters" / "map.md"
INTRO = """# Map of the course

One idea has one name: `chapters/06_masks.ipynb`, `mha_lib/numpy/masks.py`, `mha_lib/torch/masks.py`, `tests/test_masks.py`,
`exercises/06_masks.ipynb`. Where a chapter tests a claim and builds nothing, it has only some of them. This page is made from the files.

- *Builds*: the modules that bear the chapter's name. The same module stands in `mha_lib.numpy` and `mha_lib.torch`, unless it says otherwise.
- *Uses*: the modules whose functions its cells import.
- *Tests*: those of both. Every chapter is besides run again from the first cell to the last, and each stored output compared.
"""


def parts():
    """(caption, chapters by slug) of each numbered part."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    for part in toc["parts"]:
        if part.get("numbered"):
            yield part["caption"], [entry["file"].split("/")[1] for entry in part["chapters"]]


def cells(slug, kind):
    """The sources of a chapter's cells."""
    notebook = json.loads((ROOT / "chapters" / f"{slug}.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def title(slug):
    return cells(slug, "markdown")[0].splitlines()[0].removeprefix("# ")


def builds(slug):
    """Modules of the chapter's name: {"scores": ["numpy", "torch"]}, or {}."""
    name = slug.partition("_")[2]
    paths = [path for path in ("numpy", "torch", "") if (ROOT / "mha_lib" / path / f"{name}.py").exists()]
    return {name: paths} if paths else {}


def uses(slug):
    """The modules of the two paths, and interop, whose names the chapter's cells import."""
    found = set()
    for source in cells(slug, "code"):
        plain = "\n".join("" if line.lstrip()[:1] in ("%", "!") else line for line in source.splitlines())
        try:
            nodes = list(ast.walk(ast.parse(plain)))
        except SyntaxError:  # a cell that shows one on purpose
            continue
        for node in (n for n in nodes if isinstance(n, ast.ImportFrom) and (n.module or "").startswith("mha_lib.")):
            if node.module == "mha_lib.interop":
                found.add("interop")
            elif node.module in ("mha_lib.numpy", "mha_lib.torch"):
                library = importlib.import_module(node.module)
                found |= {getattr(library, alias.name).__module__.split(".")[-1] for alias in node.names
                          if hasattr(getattr(library, alias.name, None), "__module__")}  # fmt: skip
            elif node.module.startswith(("mha_lib.numpy.", "mha_lib.torch.")):
                found.add(node.module.split(".")[-1])
    return found - set(builds(slug))


def tests(slug):
    """The test files that bear the name of the chapter, or of a module that it builds or uses."""
    names = {slug.partition("_")[2], *builds(slug), *uses(slug)}
    return sorted(name for name in names if (ROOT / "tests" / f"test_{name}.py").exists())


def row(slug):
    made = [
        f"`{name}`" + ("" if len(paths) == 2 else f" ({paths[0] or 'mha_lib'})") for name, paths in builds(slug).items()
    ]
    questions = "–"
    if slug in SLUGS:
        exercise = load(slug)
        asks = ", ".join(f"`{question.asks}`" for question in exercise.questions)
        questions = (
            f"[{len(exercise.questions)} questions](../exercises/learn/{slug}.ipynb), {exercise.points} points: {asks}"
        )
    used = ", ".join(f"`{name}`" for name in sorted(uses(slug)))
    checked = ", ".join(f"`test_{name}`" for name in tests(slug))
    return (
        f"| [{title(slug)}]({slug}.ipynb) | {', '.join(made) or '–'} | {used or '–'} | {checked or '–'} | {questions} |"
    )


def page():
    """The page's text."""
    lines = [INTRO]
    for caption, slugs in parts():
        lines += [f"## {caption}\n", "| chapter | builds | uses | tests | exercise |", "|---|---|---|---|---|"]
        lines += [*map(row, slugs), ""]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
