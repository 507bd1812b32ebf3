"""What the Run buttons of the book load, into _build/browser/run: python tools/browser_dist.py

Pyodide and the editor from npm, NumPy's wheel from _book/pyodide, the library with its extract, and the code that runs cells.
Everything is checked against a pinned hash, and no page asks another host. Where the packages cannot be had it says so in one
sentence and leaves nothing, and the book is then built without Run buttons.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import npm

ROOT = Path(__file__).resolve().parents[1]
OURS = ROOT / "_book" / "run"
WHEELS = ROOT / "_book" / "pyodide"
SITE = ROOT / "_build" / "browser"  # its content is laid beside the pages
CORE = ("pyodide.mjs", "pyodide.asm.js", "pyodide.asm.wasm", "package.json")
# Of Python's library: code pages of the days before Unicode, and mail, news and remote calls, which a page has no socket for.
UNUSED_LIBRARY = re.compile(
    r"^encodings/(cp(?!437|1252)|iso8859_(?!1\.)|iso2022|mac_|koi8|big5|euc_|gb|hz|shift_jis|johab|kz|ptcp|tis|hp_|palmos)"
    r"|^(xmlrpc|wsgiref)/|^(imaplib|smtplib|nntplib|ftplib|poplib|mailbox|telnetlib|cgi)\.py$"
)
PACKAGES = ("numpy",)
# Of a wheel: what only compilers, type checkers and NumPy's own tests read.
UNUSED = re.compile(
    r"/tests?/|/f2py/|/include/|/distutils/|/lapack_lite\.|conftest\.py$|\.(a|c|h|f90|pyi|pyx|pxd|in|txt|pyc)$"
)
SCRIPTS = ("cells.py", "worker.mjs", "page.css")
# Of mha_lib: what a browser cannot run, or never needs.
LEFT_OUT = {"torch", "interop.py", "sentences.py", "__pycache__"}
NOTICE = """\
Python in these pages, fetched when a reader first presses Run.

pyodide/  Pyodide 0.27.7, Mozilla Public License 2.0; source: github.com/pyodide/pyodide, tag 0.27.7. It contains CPython 3.12
          (Python Software Foundation License) and what CPython brings along.
          NumPy 2.0.2 (BSD 3-Clause, its text lies beside the wheel).
editor.mjs   CodeMirror 6 (MIT, see editor-LICENSE.txt).
mha_lib.zip  this course's library (MIT) with its extract of all-MiniLM-L6-v2 (Apache 2.0, see NOTICE in it).
"""


def packed(archive, files):
    """Write {name: bytes} as a zip file, the same bytes for the same files."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, content in sorted(files.items()):
            out.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def slim(archive, out, unused):
    """Write a zip file again without the names that match `unused`."""
    with zipfile.ZipFile(archive) as whole:
        packed(out, {name: whole.read(name) for name in whole.namelist() if not unused.search(name)})


def slim_wheel(entry, out):
    """Write the lock's wheel without what no page runs; its new entry. SystemExit where the wheel is not the one of the lock."""
    wheel = WHEELS / entry["file_name"]
    if (found := sha256(wheel)) != entry["sha256"]:
        sys.exit(f"{wheel.name}: sha256 {found}, but Pyodide's lock file says {entry['sha256']}")
    slim(wheel, out / wheel.name, UNUSED)
    return {**entry, "sha256": sha256(out / wheel.name)}


def lay_packages(core, out):
    """Lay NumPy beside Pyodide, with a lock file that names it alone."""
    lock = json.loads((core / "pyodide-lock.json").read_text(encoding="utf-8"))
    lock["packages"] = {name: slim_wheel(lock["packages"][name], out) for name in PACKAGES}
    (out / "pyodide-lock.json").write_text(json.dumps(lock), encoding="utf-8")


def library_files():
    """The files of mha_lib that the pages need, sorted."""
    files = [p for p in (ROOT / "mha_lib").rglob("*") if p.is_file() and p.suffix != ".pyc" and p.name[:5] != "make_"]
    return sorted(p for p in files if not set(p.relative_to(ROOT / "mha_lib").parts) & LEFT_OUT)


def pack_library(archive):
    """The library as a zip file."""
    packed(archive, {path.relative_to(ROOT).as_posix(): path.read_bytes() for path in library_files()})


def bundle(modules, run):
    """The page's script and the editor, each as one file, with the licences of the editor's parts."""
    esbuild = [npm.client("node"), modules / "esbuild" / "bin" / "esbuild"]
    options = ["--bundle", "--minify", "--target=es2020", "--log-level=error"]
    where = {**os.environ, "NODE_PATH": str(modules)}
    for entry, file, form in (("page.mjs", "page.js", "iife"), ("editor.mjs", "editor.mjs", "esm")):
        command = [*esbuild, OURS / entry, f"--outfile={run / file}", f"--format={form}", *options]
        subprocess.run(command, env=where, check=True)
    parts = sorted(p.parent for p in modules.rglob("LICENSE") if p.parent.name not in ("esbuild", "ws", "pyodide"))
    texts = [f"{p.relative_to(modules).as_posix()}\n\n{(p / 'LICENSE').read_text(encoding='utf-8')}" for p in parts]
    (run / "editor-LICENSE.txt").write_text("\n\n".join(texts), encoding="utf-8")


def build(modules, run):
    """Fill the folder `run` from the installed npm packages."""
    core, pyodide = modules / "pyodide", run / "pyodide"
    pyodide.mkdir(parents=True)
    for name in CORE:
        shutil.copyfile(core / name, pyodide / name)
    slim(core / "python_stdlib.zip", pyodide / "python_stdlib.zip", UNUSED_LIBRARY)
    lay_packages(core, pyodide)
    shutil.copyfile(WHEELS / "numpy-LICENSE.txt", pyodide / "numpy-LICENSE.txt")
    for name in SCRIPTS:
        shutil.copyfile(OURS / name, run / name)
    bundle(modules, run)
    pack_library(run / "mha_lib.zip")
    (run / "NOTICE.txt").write_text(NOTICE, encoding="utf-8")
    (run / "version").write_text(version(run), encoding="utf-8")


def version(run):
    """A short hash of what a page loads, so that no browser mixes two editions."""
    content = b"".join((run / name).read_bytes() for name in (*SCRIPTS, "page.js", "editor.mjs", "mha_lib.zip"))
    lock = (run / "pyodide" / "pyodide-lock.json").read_bytes()
    return hashlib.sha256(content + lock).hexdigest()[:12]


def main():
    shutil.rmtree(SITE, ignore_errors=True)
    try:
        modules = npm.modules()
    except npm.Unavailable as reason:
        print(f"The book is built WITHOUT Run buttons: {reason}.")
        return
    build(modules, SITE / "run")
    total = sum(f.stat().st_size for f in SITE.rglob("*") if f.is_file())
    print(f"Python for the pages: {total / 1e6:.1f} MB in _build/browser")


if __name__ == "__main__":
    main()
