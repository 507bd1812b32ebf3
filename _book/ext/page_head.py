"""What search engines, link previews and citing readers need: a description of each page, the edition, and how to cite.

Everything comes from what is there already: the description from a page's first paragraph, the edition from the library's version and the
date of the commit, the citation from CITATION.cff. Addresses (canonical, og:url, og:image) appear only where `html: baseurl:` in _config.yml is set.
"""

import os
import re
import subprocess
from datetime import UTC, datetime
from html import escape, unescape
from pathlib import Path

import yaml
from docutils import nodes

ROOT = Path(__file__).resolve().parents[2]
CARD = "_static/card.png"
LONGEST = 200  # characters; search engines cut what is longer
OF_NO_DOCUMENT = {
    "search": "Search the chapters, exercises and back matter of the course.",
    "genindex": "Every name of the library and every term of the course, from A to Z.",
}
PLAIN = [
    (r"\\sqrt\{(.+?)\}", r"√\1"),
    (r"\\(?:text|operatorname)\{(.+?)\}", r"\1"),
    (r"\\times", "×"),
    (r"\^\\top", "ᵀ"),
    (r"[\\{}]", ""),
]
MONTHS = "January February March April May June July August September October November December".split()


def plain(node):
    """The text of a node as one reads it aloud, simple formulas included."""
    if isinstance(node, nodes.math):
        text = node.astext()
        for old, new in PLAIN:
            text = re.sub(old, new, text)
        return text
    if isinstance(node, nodes.Text):
        return node.astext()
    return "".join(map(plain, node.children))


def shorten(text):
    """Whole sentences, as many as fit; of one that does not fit, whole words."""
    text = " ".join(text.split())
    if len(text) <= LONGEST:
        return text
    sentences = [m.end() for m in re.finditer(r"[.?!](?= )", text[: LONGEST + 1])]
    if sentences and sentences[-1] >= 60:
        return text[: sentences[-1]]
    return text[:LONGEST].rsplit(" ", 1)[0].rstrip(",;:") + " …"


def description(pagename, doctree):
    """A page in a sentence or two: its first paragraph, without what it builds on."""
    if pagename in OF_NO_DOCUMENT:
        return OF_NO_DOCUMENT[pagename]
    paragraph = next(doctree.findall(nodes.paragraph), None) if doctree else None
    return shorten(re.sub(r"\s*Builds on .*$", "", plain(paragraph), flags=re.S)) if paragraph else ""


def edition_date():
    """The day of SOURCE_DATE_EPOCH or else of the commit; None where there is neither. Never the clock: two builds of one state are equal."""
    seconds = os.environ.get("SOURCE_DATE_EPOCH")
    if not seconds:
        try:
            log = subprocess.run(
                ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):  # no git, or an archive without a history
            return None
        seconds = log.stdout
    return datetime.fromtimestamp(int(seconds), UTC).date()


def version():
    """The library's version, without importing it."""
    return re.search(r'__version__ = "(.+?)"', (ROOT / "mha_lib" / "__init__.py").read_text(encoding="utf-8"))[1]


def in_words(day):
    return f"{day.day} {MONTHS[day.month - 1]} {day.year}"


def edition():
    """`Version 0.1.0, 30 November 2026`."""
    day = edition_date()
    return f"Version {version()}" + (f", {in_words(day)}" if day else "")


def full_name(author):
    return author.get("name") or " ".join(filter(None, (author.get("given-names"), author.get("family-names"))))


def citation():
    """Markdown that says how to cite the course, from CITATION.cff alone."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    day, names = cff["date-released"], [full_name(a) for a in cff["authors"]]
    address = f" {cff['url']}" if "url" in cff else ""
    fields = {
        "title": "{" + cff["title"] + "}",
        "author": " and ".join(f"{{{n}}}" for n in names),
        "year": day.year,
        "version": cff["version"],
    }
    fields |= {key: cff[key] for key in ("url", "doi") if key in cff}
    bibtex = ",\n".join(f"  {key:<7} = {{{value}}}" for key, value in fields.items())
    key = re.sub(r"\W", "", cff["title"].split()[0]).lower() + str(day.year)
    sentence = f"{', '.join(names)} ({day.year}). *{cff['title']}*, version {cff['version']}.{address}"
    return f"{sentence}\n\n```bibtex\n@misc{{{key},\n{bibtex}\n}}\n```"


def configure(app, config):
    """Offer {{ citation }} to the pages' text and the edition to their footer."""
    config.myst_substitutions["citation"] = citation()
    config.html_context["edition"] = edition()  # a new one writes every page again


def tags(config, pagename, title, text):
    """The head's tags as (attribute, name, content)."""
    yield "name", "description", text
    yield "property", "og:site_name", config.html_title
    yield "property", "og:type", "website" if pagename == config.root_doc else "article"
    yield "property", "og:title", title
    yield "property", "og:description", text
    base = config.html_baseurl.rstrip("/")
    if base:
        yield "property", "og:url", f"{base}/{pagename}.html"
        yield "property", "og:image", f"{base}/{CARD}"
        yield (
            "property",
            "og:image:alt",
            "A row of attention weights: the word it looks at the word animal with weight 0.68.",
        )
    yield "name", "twitter:card", "summary_large_image" if base else "summary"


def write_tags(app, pagename, templatename, context, doctree):
    """Put the tags where the theme writes those of docutils."""
    title = unescape(re.sub(r"<[^>]+>", "", context.get("title") or app.config.html_title))
    text = description(pagename, doctree)
    lines = [
        f'<meta {kind}="{name}" content="{escape(content)}" />'
        for kind, name, content in tags(app.config, pagename, title, text)
        if content
    ]
    context["metatags"] = context.get("metatags", "") + "".join(f"\n    {line}" for line in lines) + "\n"


def setup(app):
    app.connect("config-inited", configure)
    app.connect("html-page-context", write_tags)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
