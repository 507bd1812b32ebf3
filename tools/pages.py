"""What a page of the built book loads, read from its files; shared by tools/weight.py and tests/test_pages.py."""

import re
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
LOADING = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "audio": "src", "embed": "src",
           "object": "data", "use": "href", "image": "href"}  # fmt: skip
LOADING_LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "preconnect", "dns-prefetch", "manifest"}
CSS_URL = re.compile(r"""url\(\s*["']?([^"')]+)|@import\s+["']([^"']+)""")
JS_URL = re.compile(r"""(?:(?<!<a )\b(?:src|href)\s*[=:]|\bimport\s*\(?|\bfetch\s*\()\s*["'`](https?:)?//([^"'`/]+)""")


def all_pages():
    return sorted(p for p in HTML.rglob("*.html") if p.relative_to(HTML).parts[0] not in ("_static", "_sources"))


@cache
def soup(page):
    return BeautifulSoup(page.read_bytes(), "html.parser")


def outside(url):
    """Whether a URL leaves the site (a scheme-relative one does)."""
    return bool(urlsplit(url).netloc) or urlsplit(url).scheme in ("http", "https")


def local(url):
    """Whether a URL names a file of the site."""
    return not urlsplit(url).scheme and not urlsplit(url).netloc


def target(base, url):
    """The file that a local URL in the file `base` means."""
    path = unquote(urlsplit(url).path)
    return (base.parent / path).resolve() if path else base


@cache
def css_urls(text):
    return [a or b for a, b in CSS_URL.findall(re.sub(r"/\*.*?\*/", "", text, flags=re.S))]


def page_urls(page):
    """Every URL that the page itself asks the browser to load."""
    html = soup(page)
    for tag, attribute in LOADING.items():
        yield from (e[attribute] for e in html.find_all(tag) if e.get(attribute))
    for e in html.find_all(srcset=True):
        yield from (part.split()[0] for part in e["srcset"].split(",") if part.strip())
    for e in html.find_all("link", href=True):
        if LOADING_LINKS & set(e.get("rel", ())):
            yield e["href"]
    for e in html.find_all("style"):
        yield from css_urls(e.get_text())
    for e in html.find_all(style=True):
        yield from css_urls(e["style"])


def loaded_files(page):
    """The page's local files and, through stylesheets, theirs; the page itself is not among them."""
    found, todo = set(), [(page, url) for url in page_urls(page)]
    while todo:
        base, url = todo.pop()
        if local(url) and (file := target(base, url)) not in found and file.is_file():
            found.add(file)
            if file.suffix == ".css":
                todo += [(file, u) for u in css_urls(file.read_text(encoding="utf-8"))]
    return found
