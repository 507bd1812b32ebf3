"""One server and one Chromium for all tests of a process, and a fresh profile for each test."""

import os
import shutil
import threading
from functools import partial

import pytest
from common import missing
from reading import FLAGS, HTML, Handler, Server, visit


@pytest.fixture(scope="session")
def server():
    if not (HTML / "index.html").is_file():
        missing("the built book (make book)")
    if not (HTML / "run" / "version").is_file():
        missing("Python for the pages (make book, with a network)")
    with Server(("127.0.0.1", 0), partial(Handler, directory=str(HTML))) as server:
        server.refused = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="session")
def chromium():
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    # the first has no windows, and is faster
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    places = map(shutil.which, names)
    program = os.environ.get("CHROMIUM") or next(filter(None, places), None) or missing("Chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def reader(chromium, server):
    """A reader who comes for the first time."""
    with visit(chromium, server) as reader:
        yield reader
