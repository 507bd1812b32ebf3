"""What Jupyter Book passes over in silence: misspelt keys, pages outside the table of contents, uncited references."""

import gc
import json
import re
from collections import Counter
from pathlib import Path

import jupyter_book
import pybtex.database
import pytest
import yaml
from sphinx.application import Sphinx
from sphinx.environment.collectors import EnvironmentCollector
from sphinx.util.docutils import docutils_namespace, patch_docutils

ROOT = Path(__file__).resolve().parents[1]
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
CITATION = re.compile(r"(?:\{cite(?::\w+)?\}|:cite(?::\w+)?:)`([^`]+)`")


@pytest.fixture(scope="module")
def sphinx(tmp_path_factory):
    """Sphinx with the book's extensions and theme loaded: it knows every option that exists."""
    out = str(tmp_path_factory.mktemp("sphinx"))
    settings = {
        "extensions": CONFIG["sphinx"]["config"]["extensions"],
        "html_theme": "sphinx_book_theme",
        "bibtex_bibfiles": [],
    }
    objects = gc.get_objects
    with pytest.MonkeyPatch.context() as patch, patch_docutils(), docutils_namespace():
        # sphinx_external_toc asks every object in memory for its class: some of torch's warn, and dead weak references raise
        patch.setattr(gc, "get_objects", lambda: [x for x in objects() if issubclass(type(x), EnvironmentCollector)])
        for folder in set(CONFIG["sphinx"]["local_extensions"].values()):
            patch.syspath_prepend(ROOT / folder)
        yield Sphinx(ROOT, None, out, out, "html", confoverrides=settings, status=None, freshenv=True)


def unknown_keys(config, known, where=""):
    """Keys that Jupyter Book's own default configuration does not have."""
    for key, value in config.items():
        if key not in known:
            yield where + key
        elif isinstance(value, dict) and isinstance(known[key], dict):
            yield from unknown_keys(value, known[key], f"{where}{key}.")


def test_keys_of_jupyter_book_exist():
    known = yaml.safe_load((Path(jupyter_book.__file__).parent / "default_config.yml").read_text(encoding="utf-8"))
    known |= {"bibtex_bibfiles": []}  # read by Jupyter Book, but not in its list of defaults
    unknown = list(unknown_keys(CONFIG, known))
    assert not unknown


def test_keys_of_sphinx_exist(sphinx):
    unknown = sorted(set(CONFIG["sphinx"]["config"]) - set(sphinx.config.values) - {"extensions"})
    assert not unknown


def test_theme_options_exist(sphinx):
    unknown = sorted(set(CONFIG["sphinx"]["config"]["html_theme_options"]) - set(sphinx.builder.theme.get_options({})))
    assert not unknown


def test_the_pages_show_what_was_checked():
    """Stored outputs, every reference resolved: the two settings on which all other checks rest."""
    assert CONFIG["execute"]["execute_notebooks"] == "off"
    assert CONFIG["sphinx"]["config"]["nitpicky"] is True


def toc_files():
    return [chapter["file"] for part in TOC["parts"] for chapter in part["chapters"]]


def test_table_of_contents_is_complete():
    pages = Counter(
        p.relative_to(ROOT).with_suffix("").as_posix()
        for p in [
            *(ROOT / "chapters").rglob("*"),
            *(ROOT / "exercises/learn").rglob("*"),
            *(ROOT / "exercises").glob("*.md"),
        ]
        if p.suffix in (".ipynb", ".md") and ".ipynb_checkpoints" not in p.parts
    )
    listed = Counter(toc_files())
    assert listed == pages, f"only in _toc.yml: {sorted(listed - pages)}; not in it: {sorted(pages - listed)}"


def test_other_entries_of_the_table_of_contents_exist():
    missing = [
        f
        for f in [TOC["root"], *toc_files()]
        if not any((ROOT / f).with_suffix(s).is_file() for s in (".ipynb", ".md"))
    ]
    assert not missing


def prose():
    """(file, text) of everything that may cite: pages, the lessons' text, the package's docstrings."""
    for path in [
        ROOT / "index.md",
        *sorted((ROOT / "chapters").glob("*.md")),
        *sorted((ROOT / "exercises").glob("*.md")),
        *sorted((ROOT / "mha_lib").rglob("*.py")),
    ]:
        yield path.name, path.read_text(encoding="utf-8")
    for path in [*sorted((ROOT / "chapters").glob("*.ipynb")), *sorted((ROOT / "exercises").glob("*.ipynb"))]:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        yield path.name, "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")


def test_references_and_citations_agree():
    bibliography = ROOT / "references.bib"
    assert bibliography.is_file(), "references.bib is missing: the book's references go there"
    known = set(pybtex.database.parse_file(str(bibliography)).entries)
    cited = {key.strip(): name for name, text in prose() for keys in CITATION.findall(text) for key in keys.split(",")}
    uncited, missing = sorted(known - set(cited)), {key: cited[key] for key in sorted(set(cited) - known)}
    assert not uncited, f"in references.bib, but cited nowhere: {uncited}"
    assert not missing, f"cited, but not in references.bib: {missing}"


def test_requirements_are_pinned():
    lines = [
        line.split("#")[0].strip() for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    ]
    pins = [line for line in lines if line]
    assert pins
    assert not [pin for pin in pins if not re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.+!]+", pin)]


def test_scripts_and_styles_are_registered_and_small():
    """figures.js comes before the scripts that use it."""
    config = CONFIG["sphinx"]["config"]
    files = {p.name: p.stat().st_size for p in (ROOT / "_book" / "static").iterdir() if p.suffix in (".js", ".css")}
    registered = config["html_js_files"] + config["html_css_files"]
    assert sorted(files) == sorted(registered) and max(files.values()) < 15_000
    users = {
        p.name
        for p in (ROOT / "_book" / "static").glob("*.js")
        if "} = window.mhaFigures" in p.read_text(encoding="utf-8")
    }
    after = registered[registered.index("figures.js") + 1 :]
    assert users == {"maps.js", "steps.js", "predict.js"} and users <= set(after)
