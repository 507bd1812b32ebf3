"""The built book on a server of its own, as a project site serves it: below a sub-path. And Chromium, which may ask nobody else."""

import contextlib
import os
import shutil
import threading
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from common import missing

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
RUN = HTML / "run"
SUB_PATH = "/course"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]  # fmt: skip


class Handler(SimpleHTTPRequestHandler):
    """The files below SUB_PATH; anything else is not there. What was asked for in vain is written down."""

    def translate_path(self, path):
        inside = path.removeprefix(SUB_PATH)
        return super().translate_path(inside) if inside != path else str(HTML / "no-such-file")

    def send_error(self, code, *args, **kwargs):
        self.server.refused.append(f"{code} {self.path}")
        super().send_error(code, *args, **kwargs)

    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def server():
    if not (HTML / "index.html").is_file():
        missing("the built book (make book)")
    if not (RUN / "version").is_file():
        missing("Python for the pages (make book, with a network)")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(HTML)))
    server.refused = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="session")
def chromium():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    places = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    program = os.environ.get("CHROMIUM") or next(filter(None, places), None) or missing("Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Reader:
    """A fresh browser profile with one tab. `complaints` are requests to other hosts, files that are missing, and console errors."""

    tab: object
    address: str
    server: object
    complaints: list = field(default_factory=list)

    def open(self, name):
        """Open a page of the book."""
        self.tab.goto(f"{self.address}/{name}")

    def reload(self):
        self.tab.reload()

    def wait_until_idle(self, seconds=120):
        """Wait until nothing runs."""
        self.tab.wait_for_function("!window.mhaPage.busy", timeout=seconds * 1000)

    def status(self):
        """What the page says."""
        return self.tab.locator(".run-status").inner_text()

    def cells(self):
        """What each cell of the page holds, as the page's script knows it."""
        return self.tab.evaluate(
            "window.mhaPage.cells.map(({number, runnable, text, outputs, result}) => ({number, runnable, text, outputs, result}))"
        )

    def cell(self, number):
        """The element of a cell, counted from 1."""
        return self.tab.locator("article div.cell").nth(number - 1)

    def all_complaints(self):
        return self.complaints + self.server.refused


@pytest.fixture
def reader(chromium, server):
    """A reader who comes for the first time; at the end, nothing may have gone wrong behind the scenes."""
    with visit(chromium, server) as reader:
        yield reader


@contextlib.contextmanager
def visit(chromium, server, **options):
    """A fresh profile; options are those of Playwright's contexts."""
    server.refused.clear()
    address = f"http://127.0.0.1:{server.server_port}{SUB_PATH}"
    context = chromium.new_context(viewport={"width": 1100, "height": 900}, accept_downloads=True, **options)
    tab = context.new_page()
    reader = Reader(tab, address, server)
    watch(context, tab, address, reader.complaints)
    yield reader
    context.close()
    assert not reader.all_complaints()


def watch(context, tab, address, complaints):
    """Write down requests to other hosts, and errors in the console."""

    def asked(request):
        if not request.url.startswith((address, "data:", "blob:", "file:")):
            complaints.append(f"asked {request.url}")

    context.on("request", asked)
    context.on("requestfailed", lambda request: complaints.append(f"failed {request.url} ({request.failure})"))
    tab.on("pageerror", lambda error: complaints.append(f"error {error}"))
    tab.on("console", lambda message: complaints.append(f"console {message.text}") if message.type == "error" else None)
