"""What nbval cannot see in the stored notebooks: each rule below is one that a strict nbval run passes over."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest
from bs4 import BeautifulSoup
from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ["chapters", "exercises/learn"]
NOTEBOOKS = [p for f in FOLDERS for p in sorted((ROOT / f).rglob("*.ipynb")) if ".ipynb_checkpoints" not in p.parts]
TAGS = {"native-only", "raises-exception", "hide-input", "hide-output", "hide-cell"}
LOCAL_PATH = re.compile(
    r"(?<![\w.])/(home|root|tmp|Users|work|usr|opt|var|mnt|private)/\w|[A-Za-z]:\\|file:/|site-packages|ipykernel_\d"
)


def is_chapter(path):
    """Whether a notebook is a lesson; what has no number is back matter with cells."""
    return path.parent == ROOT / "chapters" and path.name[0].isdigit()


@pytest.fixture(params=NOTEBOOKS, ids=lambda p: p.relative_to(ROOT).as_posix())
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return nbformat.from_dict(json.loads(path.read_text(encoding="utf-8")))


def code_cells(notebook):
    return [(i, c) for i, c in enumerate(notebook.cells) if c.cell_type == "code"]


def outputs(notebook, *kinds):
    return [(i, c, o) for i, c in code_cells(notebook) for o in c.outputs if o.output_type in kinds]


def data(notebook):
    """Every (cell index, cell, MIME type, content) that a cell shows."""
    for i, cell, out in outputs(notebook, "display_data", "execute_result"):
        for mime, content in out.data.items():
            yield i, cell, mime, "".join(content) if isinstance(content, list) else content


def tags(cell):
    return cell.metadata.get("tags", [])


def nothing(wrong, path):
    """Fail with the file's name and one line for each (cell index, complaint)."""
    assert not wrong, "\n".join(f"{path.relative_to(ROOT).as_posix()}, cell {i}: {what}" for i, what in wrong)


def syntax(cell):
    """The cell as Python, magics turned into calls; a cell that shows a syntax error on purpose counts as empty."""
    try:
        return list(ast.walk(ast.parse(TransformerManager().transform_cell("".join(cell.source)))))
    except SyntaxError:
        if "raises-exception" in tags(cell):
            return []
        raise


def imported(cell):
    """Dotted names of what the cell imports."""
    names = []
    for node in syntax(cell):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return names


def magics(cell):
    calls = [n for n in syntax(cell) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    return [n.args[0].value for n in calls if n.func.attr in ("run_line_magic", "run_cell_magic")]


def test_notebooks_are_found():
    assert NOTEBOOKS, "no notebook under " + ", ".join(FOLDERS)


def test_format_is_valid(notebook):
    nbformat.validate(notebook)


def test_size(notebook, path):
    assert code_cells(notebook), f"{path.name}: no code cell, so nbval checks nothing"
    if is_chapter(path):
        assert 15 <= len(notebook.cells) <= 40, f"{path.name}: {len(notebook.cells)} cells, not 15 to 40"


def test_no_empty_cell(notebook, path):
    nothing([(i, "empty") for i, c in enumerate(notebook.cells) if not "".join(c.source).strip()], path)


def test_execution_counts_run_from_one(notebook, path):
    cells = code_cells(notebook)  # nbval does not compare a cell without a count
    nothing(
        [
            (i, f"execution count {c.execution_count}, not {n}")
            for n, (i, c) in enumerate(cells, 1)
            if c.execution_count != n
        ],
        path,
    )


def test_errors_are_stored_exactly_where_tagged(notebook, path):
    raised = {i for i, _, _ in outputs(notebook, "error")}
    tagged = {i for i, c in code_cells(notebook) if "raises-exception" in tags(c)}
    wrong = [(i, "stored error without the tag raises-exception") for i in sorted(raised - tagged)]
    nothing(wrong + [(i, "tagged raises-exception, but no error is stored") for i in sorted(tagged - raised)], path)


def test_no_cell_escapes_the_comparison(notebook, path):
    """nbval, Jupyter Book and nbclient skip or ignore cells by tags and comments: only these tags are allowed."""
    wrong = [(i, f"tag {tag!r}") for i, c in enumerate(notebook.cells) for tag in tags(c) if tag not in TAGS]
    wrong += [
        (i, "an NBVAL marker") for i, c in code_cells(notebook) if re.search(r"#\s*(NBVAL|PYTEST)_", "".join(c.source))
    ]
    nothing(wrong, path)


def test_no_stored_stderr(notebook, path):
    nothing(
        [(i, f"stderr: {''.join(o.text)[:80]!r}") for i, _, o in outputs(notebook, "stream") if o.name == "stderr"],
        path,
    )


def test_pictures_have_alt_text(notebook, path):
    wrong = []
    for i, cell, mime, _ in data(notebook):
        if mime.startswith("image/"):
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt") or ""
            if len(alt) < 20 or re.search(r"\.(png|svg|jpe?g)\b|[0-9a-f]{16}", alt):
                wrong.append((i, f"{mime} needs mystnb.image.alt that says what one sees, has {alt!r}"))
    nothing(wrong, path)


def test_html_outputs_are_accessible(notebook, path):
    wrong = []
    for i, _, mime, content in data(notebook):
        if mime == "text/html":
            html = BeautifulSoup(content, "html.parser")
            wrong += [
                (i, f"<img> without alt: {str(e)[:80]}") for e in html.find_all("img") if not e.get("alt", "").strip()
            ]
            for svg in html.find_all("svg"):
                named = svg.get("role") == "img" and svg.get("aria-label", "").strip()
                hidden = any(e.get("aria-hidden") == "true" for e in [svg, *svg.parents])
                if not named and not hidden:
                    wrong.append((i, f'<svg> needs role="img" and aria-label, or aria-hidden: {str(svg)[:80]}'))
    nothing(wrong, path)


def test_no_local_path_is_published(notebook, path):
    text = [
        (i, content) for i, _, mime, content in data(notebook) if isinstance(content, str) and mime.startswith("text/")
    ]
    text += [(i, "".join(o.text)) for i, _, o in outputs(notebook, "stream")]
    text += [(i, "\n".join([o.evalue, *o.traceback])) for i, _, o in outputs(notebook, "error")]
    nothing([(i, f"local path {m[0]!r}") for i, t in text if (m := LOCAL_PATH.search(t))], path)


def test_what_needs_torch_or_matplotlib_is_tagged(notebook, path):
    wrong = []
    for i, cell in code_cells(notebook):
        heavy = [name for name in imported(cell) if {"torch", "matplotlib"} & set(name.split("."))]
        if heavy and "native-only" not in tags(cell):
            wrong.append((i, f"imports {heavy[0]}, which does not run in a browser: tag it native-only"))
    nothing(wrong, path)


def test_nothing_is_timed(notebook, path):
    wrong = []
    for i, cell in code_cells(notebook):
        timers = [name for name in imported(cell) if name.split(".")[0] in ("time", "timeit")]
        timers += ["%" + name for name in magics(cell) if name in ("time", "timeit", "prun")]
        wrong += [(i, f"{name}: no notebook measures time") for name in timers]
    nothing(wrong, path)


LETTER = re.compile(r"[A-D]|\([a-d]\)")


@pytest.mark.parametrize("path", [p for p in NOTEBOOKS if is_chapter(p)], ids=lambda p: p.stem)
def test_a_prediction_names_its_right_answers_for_the_page(notebook):
    """The page lets readers choose an option of the list and then marks what the answer says about it (predict.js)."""
    prose = "\n".join("".join(c.source) for c in notebook.cells if c.cell_type == "markdown")
    section = re.split(r"^## ", prose.split("## Predict, then run\n")[1], flags=re.M)[0]
    options = re.findall(r"^- \*\*([^*]+)\*\*", section, flags=re.M)
    (right,) = re.findall(r'<details data-right="([^"]+)">', section)
    answer = section.split("<details")[1]
    assert len(options) == 4 and all(LETTER.fullmatch(o) for o in options), options
    assert set(right.split()) <= set(options)
    if len(right.split()) > 1:
        said = [f"({letter}) is {option}" for letter, option in zip("abc", right.split(), strict=False)]
        assert f"**{', '.join(said)}.**" in answer
    else:
        assert f"**{right}** is right" in answer or f"The answer is **{right}**" in answer
        assert [o for o in options if f"**{o}**" not in answer] == []
