"""The built book, as its readers get it: complete, on its own host alone, every link whole. Reads _build/html."""

import re
import sys
from base64 import b64decode
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from fontTools.ttLib import TTFont

sys.path.append(str(Path(__file__).resolve().parents[1] / "tools"))
import pages as book
import weight

pytestmark = pytest.mark.book

ROOT = book.ROOT
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
LEFTOVER = re.compile(r"```|:::|\$\$|\$[^$\s][^$\n]*\$|\\[(\[]|\\begin\{|\{[a-z][a-z:-]*\}`|\{cite")


@pytest.fixture(scope="module")
def pages():
    found = book.all_pages()
    assert found, "build the book first: make book"
    return found


@pytest.fixture(scope="module")
def texts(pages):
    """The scripts and stylesheets that some page loads, with their text."""
    files = set().union(*map(book.loaded_files, pages))
    return {f: f.read_text(encoding="utf-8") for f in files if f.suffix in (".js", ".css")}


def name(path):
    return path.relative_to(book.HTML).as_posix() if path.is_relative_to(book.HTML) else str(path)


def nothing(wrong):
    assert not wrong, "\n".join(sorted(wrong))


def test_book_is_built_from_what_is_here(pages):
    files = [TOC["root"]] + [c["file"] for part in TOC["parts"] for c in part["chapters"]]
    sources = [p for f in files for p in ROOT.glob(f + ".*") if p.suffix in (".md", ".ipynb")]
    old = [
        p.relative_to(ROOT)
        for p in sources
        if not (c := book.HTML / "_sources" / p.relative_to(ROOT)).is_file() or c.read_bytes() != p.read_bytes()
    ]
    assert not old, f"build the book first: make book ({', '.join(map(str, old))} changed since)"


def test_every_page_has_language_title_and_one_heading(pages):
    wrong = []
    for page in pages:
        html = book.soup(page)
        headings = [
            h for h in html.find_all("h1") if not h.find_parent(id="jb-print-docs-body")
        ]  # the theme's copy for paper
        wrong += [f"{name(page)}: no language"] * (not html.html.get("lang"))
        wrong += [f"{name(page)}: no title"] * (not html.title or not html.title.get_text(strip=True))
        wrong += [f"{name(page)}: {len(headings)} first-level headings"] * (len(headings) != 1)
    nothing(wrong)


def test_chapters_are_numbered_through_the_parts(pages):
    wrong, number = [], 0
    for part in TOC["parts"]:
        for chapter in part["chapters"]:
            title = book.soup(book.HTML / (chapter["file"] + ".html")).select_one("article h1").get_text()
            number += bool(part.get("numbered"))
            expected = rf"{number}\.\s" if part.get("numbered") else r"(?!\d+\.)"
            wrong += [f"{chapter['file']}: {title!r}"] * (not re.match(expected, title))
    nothing(wrong)


def test_nothing_is_loaded_from_another_host(pages, texts):
    wrong = [f"{name(page)}: {url}" for page in pages for url in book.page_urls(page) if book.outside(url)]
    for page in pages:
        scripts = "\n".join(e.get_text() for e in book.soup(page).find_all("script"))
        wrong += [f"{name(page)}: {m[0]}" for m in book.JS_URL.finditer(scripts)]
    for file, text in texts.items():
        if file.suffix == ".js":
            wrong += [f"{name(file)}: {m[0]}" for m in book.JS_URL.finditer(text)]
        else:
            wrong += [f"{name(file)}: {url}" for url in book.css_urls(text) if book.outside(url)]
    nothing(wrong)


def test_local_links_and_files_exist(pages, texts):
    ids = {page: {e["id"] for e in book.soup(page).find_all(id=True)} for page in pages}
    links = [(page, e["href"]) for page in pages for e in book.soup(page).find_all(["a", "link"], href=True)]
    links += [(page, url) for page in pages for url in book.page_urls(page)]
    links += [(file, url) for file, text in texts.items() if file.suffix == ".css" for url in book.css_urls(text)]
    wrong = set()
    for base, url in links:
        if book.local(url):
            file, anchor = book.target(base, url), unquote(urlsplit(url).fragment)
            if not file.is_file():
                wrong.add(f"{name(base)}: {url} does not exist")
            elif anchor and file in ids and anchor not in ids[file]:
                wrong.add(f"{name(base)}: {url} names no place on that page")
    nothing(wrong)


def test_pictures_have_alt_text(pages):
    wrong = []
    for page in pages:
        for image in book.soup(page).find_all("img"):
            alt = image.get("alt", "").strip()
            if not alt or re.search(r"[0-9a-f]{16}|\.(png|svg|jpe?g|gif)$", alt):
                wrong.append(f"{name(page)}: {image.get('src')} has alt text {alt!r}")
    nothing(wrong)


def test_no_markup_is_left_in_the_text(pages):
    wrong = []
    for page in pages:
        for text in book.soup(page).body.find_all(string=LEFTOVER):
            if not text.find_parent(["script", "style", "pre", "code"]) and not text.find_parent(class_="math"):
                wrong.append(f"{name(page)}: {LEFTOVER.search(text)[0]!r} in {text.strip()[:80]!r}")
        wrong += [
            f"{name(page)}: {e.get_text()[:80]!r}" for e in book.soup(page).select(".system-message, .problematic")
        ]
    nothing(wrong)


def test_pages_are_light(pages):
    """An upper bound: every font of MathJax counts, of which a page takes a few."""
    weights = {name(page): sum(weight.weigh(page)[0].values()) / 1e6 for page in pages}
    nothing([f"{page}: {size:.2f} MB" for page, size in weights.items() if size >= 2.5])


def test_icons_have_a_glyph(pages, texts):
    css = next(text for file, text in texts.items() if file.name == "pydata-sphinx-theme.css")
    rules = {
        m[1]: int(m[2], 16) for m in re.finditer(r'\.(fa-[a-z0-9-]+):before(?=[^{}]*\{content:"\\([0-9a-f]+)"\})', css)
    }
    fonts = [TTFont(BytesIO(b64decode(data))) for data in re.findall(r"data:font/woff;base64,([^)]+)\)", css)]
    glyphs = set().union(*(font.getBestCmap() or () for font in fonts))
    classes = {
        (name(page), icon)
        for page in pages
        for e in book.soup(page).find_all(class_=re.compile(r"^fa[srb]?$|^fa-(solid|regular|brands)$"))
        for icon in e["class"]
        if icon.startswith("fa-") and icon not in ("fa-solid", "fa-regular", "fa-brands", "fa-lg")
    }
    assert classes and len(fonts) == 3
    nothing([f"{page}: {icon}" for page, icon in classes if rules.get(icon) not in glyphs])


def meta(page, key):
    tag = book.soup(page).find("meta", attrs={"name": key}) or book.soup(page).find("meta", property=key)
    return tag["content"] if tag else None


def test_every_page_describes_itself(pages):
    wrong, seen = [], {}
    for page in pages:
        text = meta(page, "description") or ""
        wrong += [f"{name(page)}: {text!r}"] * (not 50 <= len(text) <= 205 or bool(re.search(r"[\\{}$<>]", text)))
        if text in seen:
            wrong.append(f"{name(page)}: described like {seen[text]}")
        if meta(page, "og:description") != text:
            wrong.append(f"{name(page)}: the preview says something else")
        wrong += [f"{name(page)}: no {key}" for key in ("og:title", "og:type", "twitter:card") if not meta(page, key)]
        seen[text] = name(page)
    nothing(wrong)


def test_addresses_appear_only_where_one_is_set(pages):
    address = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["html"]["baseurl"].rstrip("/")
    for page in pages:
        link = book.soup(page).find("link", rel="canonical")
        expected = f"{address}/{name(page)}" if address else None
        assert (link["href"] if link else None) == meta(page, "og:url") == expected


def test_footer_names_the_edition_and_leads_to_the_citation(pages):
    version = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    for page in pages:
        edition = book.soup(page).select_one("p.edition")
        assert re.match(rf"Version {re.escape(version)}(, \d+ [A-Z][a-z]+ \d{{4}})? ·", edition.get_text())
        assert book.target(page, edition.a["href"]) == book.HTML / "index.html"
    assert version in book.soup(book.HTML / "index.html").select_one("#cite-this").get_text()


def test_pages_lead_on_and_back():
    order = [TOC["root"]] + [c["file"] for part in TOC["parts"] for c in part["chapters"]]
    for before, after in pairwise(order):
        page, following = book.HTML / f"{before}.html", book.HTML / f"{after}.html"
        assert book.target(page, book.soup(page).select_one("a.right-next")["href"]) == following
        assert book.target(following, book.soup(following).select_one("a.left-prev")["href"]) == page


def test_pages_have_an_icon_and_copy_buttons(pages):
    for page in pages:
        assert book.soup(page).find("link", rel="icon")["href"].endswith("favicon.svg")
        assert any(file.name == "copybutton.js" for file in book.loaded_files(page))
