"""Give each notebook page what it needs for its cells to run in the reader's browser: one element with data, one script, one stylesheet.

The files come from tools/browser_dist.py. Where it left none, the pages say in one sentence that they were built without. Each cell
is known by a hash of its published source, so that a reader's edits never show up in an edition with another text. Cells that
are native-only say where they run.
"""

import hashlib
import html
import json
import re
from pathlib import Path

from docutils import nodes

SITE = Path("_build/browser")  # from the book's folder
PROGRESS = '<div id="run-progress"></div>'  # where a page wants the learner's progress
NO_PROGRESS = "Your progress appears here when the book is served with JavaScript and with Python in the page."
WITHOUT_SCRIPT = "With JavaScript, the cells of this page run in your browser; without it,"
NATIVE = "The cells of this page need PyTorch, matplotlib or a process of their own, and run on your machine:"
WITHOUT_PYTHON = "This copy of the book was built without Python in the page; to run its cells,"


def offer_python(app, config):
    """Lay the files beside the pages; `run_version` renders all pages again when they change."""
    version = Path(app.confdir) / SITE / "run" / "version"
    if version.is_file():
        config.html_extra_path = [*config.html_extra_path, SITE.as_posix()]
        config.run_version = version.read_text(encoding="utf-8")


def code_cells(path):
    """The code cells of a notebook, in order."""
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def source(cell):
    return "".join(cell["source"])


def known_by(cell):
    """A short hash of the cell's source."""
    return hashlib.sha256(source(cell).encode()).hexdigest()[:12]


def element(name, text="", **data):
    """An HTML element with data attributes around a text that is HTML already."""
    attributes = "".join(f' data-{key}="{html.escape(str(value))}"' for key, value in data.items())
    return f'<div class="{name}"{attributes}>{text}</div>'


def download(href):
    return f'<a href="{href}" download>download the notebook</a>'


def add_to_page(app, pagename, templatename, context, doctree):
    """Put the element below the heading of a notebook page, and the learner's progress where a page asks for it."""
    body, version = context.get("body", ""), app.config.run_version
    if doctree is None or not ('div class="cell' in body or PROGRESS in body):
        return
    pathto = context["pathto"]
    path = app.env.doc2path(pagename)
    if path.endswith(".ipynb"):
        body = body.replace("</h1>", "</h1>\n" + run_bar(pagename, path, pathto, version), 1)
    place = {"exercises": json.dumps(exercises(app, pathto))} if version else {}
    context["body"] = body.replace(PROGRESS, element("run-progress", f"<p>{NO_PROGRESS}</p>", **place), 1)
    if version:
        run = pathto("run/", 1)
        context["metatags"] += (
            f'\n<link rel="stylesheet" href="{run}page.css?v={version}" />'
            f'\n<script defer src="{run}page.js?v={version}"></script>'
        )


def run_bar(pagename, path, pathto, version):
    """What stands below a notebook's heading: a sentence, and what the script needs to put its buttons there."""
    notebook, cells, data = pathto(f"_sources/{pagename}.ipynb", 1), code_cells(path), {}
    if all("native-only" in cell["metadata"].get("tags", ()) for cell in cells):
        text = NATIVE
    elif not version:
        text = WITHOUT_PYTHON
    else:
        text = WITHOUT_SCRIPT
        data = {"run": pathto("run/", 1), "version": version, "page": pagename, "notebook": notebook}
        data["cells"] = " ".join(map(known_by, cells))
    return element("run-bar", f"<p>{text} {download(notebook)}.</p>", **data)


def exercises(app, pathto):
    """For each learner's notebook: its page, title, and the hash of each question's cell."""
    found = []
    for page in sorted(name for name in app.env.found_docs if name.startswith("exercises/learn/")):
        questions = {}
        for cell in code_cells(app.env.doc2path(page)):
            for name in re.findall(r"""^check\(["'](\w+)["']\)""", source(cell), re.MULTILINE):
                questions[name] = known_by(cell)
        title = app.env.titles[page].astext()
        found.append({"page": page, "href": pathto(page), "title": title, "questions": questions})
    return found


def mark_native(app, doctree, docname):
    """Say below each native-only cell that it runs on the reader's machine."""
    href = "../" * docname.count("/") + f"_sources/{docname}.ipynb"
    for node in doctree.findall(nodes.container):
        if {"cell", "tag_native-only"} <= set(node["classes"]):
            text = f'<p class="run-native">Runs on your machine: {download(href)}.</p>'
            node += nodes.raw("", text, format="html")


def setup(app):
    app.add_config_value("run_version", "", "html")
    app.connect("config-inited", offer_python)
    app.connect("doctree-resolved", mark_native)
    app.connect("html-page-context", add_to_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
