"""What a page of the built book weighs: `python tools/weight.py [chapters/04_scores.html ...]`, raw bytes; what the first Run adds, compressed.

Read from the files, so it is an upper bound: of MathJax's fonts and the theme's a browser takes only those that it needs.
"""

import gzip
import sys
from pathlib import Path

import pages

OURS = ("course.css", "course.js", "favicon.svg")


def kind(file):
    parts = file.relative_to(pages.HTML).parts
    if parts[0] in ("_images", "run") or file.name in OURS:
        return "ours"
    return "MathJax" if parts[0] == "mathjax" else "theme and Sphinx"


def weigh(page):
    files = pages.loaded_files(page)
    if any(kind(f) == "MathJax" for f in files):  # its script loads the rest
        files |= {f for f in (pages.HTML / "mathjax").rglob("*") if f.suffix in (".js", ".woff")}
    sizes = {"the page": page.stat().st_size, "ours": 0, "MathJax": 0, "theme and Sphinx": 0}
    files -= {f for f in files if f.suffix == ".ttf"}  # the stylesheet names woff2 first, and browsers take the first
    for file in files:
        sizes[kind(file)] += file.stat().st_size
    return sizes, len(files) + 1


def tree(folder):
    return sum(f.stat().st_size for f in Path(folder).rglob("*") if f.is_file() and not f.is_symlink())


def first_run():
    """The files that pressing Run for the first time fetches, by name, with their size as a server compresses them."""
    run = pages.HTML / "run"
    python = [run / "pyodide" / f"pyodide{end}" for end in (".mjs", ".asm.js", ".asm.wasm", "-lock.json")]
    files = [run / "worker.mjs", run / "cells.py", run / "mha_lib.zip", *python, run / "pyodide" / "python_stdlib.zip"]
    files += (run / "pyodide").glob("*.whl")
    return {f.relative_to(run).as_posix(): len(gzip.compress(f.read_bytes())) for f in files}


def main(names):
    chapters = sorted((pages.HTML / "chapters").glob("[0-9]*.html"))
    if not chapters:
        sys.exit("build the book first: make book")
    for page in [pages.HTML / name for name in names] or chapters[:1]:
        sizes, count = weigh(page)
        print(f"{page.relative_to(pages.HTML)}: {sum(sizes.values()) / 1e6:.2f} MB in {count} files")
        for name, size in sizes.items():
            print(f"    {size / 1e6:6.2f} MB  {name}")
    if (pages.HTML / "run").is_dir():
        print(f"the first Run, compressed: {sum(first_run().values()) / 1e6:.2f} MB")
    print(f"the whole site: {tree(pages.HTML) / 1e6:.1f} MB")
    print(f"the installed environment: {tree(sys.prefix) / 1e6:.0f} MB")


if __name__ == "__main__":
    main(sys.argv[1:])
