"""The mha_lib that a notebook sees while it is graded: what its exercise offers, and a sentence for everything else."""

import ast
import atexit
import compileall
import shutil
import tempfile
from functools import cache
from pathlib import Path
from py_compile import PycInvalidationMode

import mha_lib

LIBRARY = Path(mha_lib.__file__).parent
HERE = Path(__file__).parent
SHARED = ("_checks.py", "_trace.py", "data", "viz")  # what every exercise may use
CHECK = '''"""Stands for the learner's check while the notebook is graded."""


class Check:
    """Takes every call, says nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        pass

    def summary(self):
        pass
'''


def imports(path):
    """The names that a module takes from its own package: [(module, name)], with module "" for `from . import name`."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [(n.module or "", a.name) for n in nodes if isinstance(n, ast.ImportFrom) and n.level == 1 for a in n.names]


def modules_for(names, package):
    """The modules of a package that define these names, with all that they import from it; ValueError for a name it lacks."""
    home = {name: module for module, name in imports(package / "__init__.py")}
    unknown = sorted(set(names) - set(home))
    if unknown:
        raise ValueError(f"mha_lib.numpy has no {', '.join(unknown)}, which an exercise offers")
    todo, found = [home[name] for name in names], set()
    while todo:
        module = todo.pop()
        if module not in found:
            found.add(module)
            todo += [source or name for source, name in imports(package / f"{module}.py")]
    return found


def refusal(exercise):
    """The sentence that an answer gets which imports what it was to write; %s is the name."""
    return f"{exercise.slug}: mha_lib does not offer %s here, write it yourself"


def build(exercise, folder):
    """Write the reduced mha_lib, the worker and what it needs into a folder that another user can read."""
    root, numpy = folder / "mha_lib", LIBRARY / "numpy"
    hidden = shutil.ignore_patterns("__pycache__", "make_*.py")
    for name in SHARED:
        source = LIBRARY / name
        (shutil.copytree(source, root / name, ignore=hidden) if source.is_dir() else _copy(source, root / name))
    for name in ("worker.py", "wire.py"):
        _copy(HERE / name, folder / name)
    (root / "check.py").write_text(CHECK, encoding="utf-8")
    (root / "numpy").mkdir()
    sentence = refusal(exercise)
    kept = modules_for(exercise.offers, numpy)
    for path in numpy.glob("*.py"):
        if path.stem in kept:
            _copy(path, root / "numpy" / path.name)
        elif path.stem != "__init__":
            _refuse(root / "numpy" / path.name, sentence % path.stem)
    for path in LIBRARY.iterdir():
        if (path.suffix == ".py" or (path / "__init__.py").exists()) and not (root / path.name).exists():
            if path.name != "__init__.py":
                _refuse((root / path.name).with_suffix(".py"), sentence % f"mha_lib.{path.stem}")
    _copy(LIBRARY / "__init__.py", root / "__init__.py")
    (root / "numpy" / "__init__.py").write_text(_front(exercise.offers, numpy, sentence), encoding="utf-8")
    compileall.compile_dir(folder, quiet=2, invalidation_mode=PycInvalidationMode.UNCHECKED_HASH)
    for path in (folder, *folder.rglob("*")):  # whatever the umask is
        path.chmod(0o755 if path.is_dir() else 0o644)


def _copy(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _refuse(path, sentence):
    path.write_text(f"raise ImportError({sentence!r})\n", encoding="utf-8")


def _front(offers, numpy, sentence):
    """The source of `mha_lib/numpy/__init__.py`: the offered names, and a sentence for the others."""
    home = {name: module for module, name in imports(numpy / "__init__.py")}
    lines = [f"from .{home[name]} import {name}" for name in offers]
    withheld = sorted(set(home) - set(offers))
    return "\n".join(
        [
            '"""What this exercise offers of mha_lib.numpy."""',
            *lines,
            f"__all__ = {sorted(offers)!r}",
            "def __getattr__(name):",
            f"    if name in {withheld!r}:",
            f"        raise ImportError({sentence!r} % name)",
            "    raise AttributeError(f'mha_lib.numpy has no {name}')",
            "",
        ]
    )


@cache
def _work():
    """A folder for this process, removed when it ends."""
    folder = tempfile.mkdtemp(prefix="mha-grading-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


_BUILT = {}


def folder_for(exercise):
    """The folder with the reduced package of an exercise, built once for each process."""
    key = (exercise.slug, exercise.offers)
    if key not in _BUILT:
        folder = Path(tempfile.mkdtemp(dir=_work()))
        build(exercise, folder)
        _BUILT[key] = folder
    return _BUILT[key]
