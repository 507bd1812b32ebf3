"""The built book as a project site serves it, below a sub-path, and a reader of it, whose browser may ask nobody else."""

import contextlib
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
SUB_PATH = "/course"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]  # fmt: skip


class Handler(SimpleHTTPRequestHandler):
    """The files below SUB_PATH; anything else is not there. What was asked for in vain is written down."""

    protocol_version = "HTTP/1.1"
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def translate_path(self, path):
        inside = path.removeprefix(SUB_PATH)
        return super().translate_path(inside) if inside != path else str(HTML / "no-such-file")

    def send_error(self, code, *args, **kwargs):
        self.server.refused.append(f"{code} {self.path}")
        super().send_error(code, *args, **kwargs)

    def log_message(self, *args):
        pass


class Server(ThreadingHTTPServer):
    def handle_error(self, request, address):
        """A reader who leaves, or stops Python while it comes, hangs up: that is no error."""

    @property
    def address(self):
        return f"http://127.0.0.1:{self.server_port}{SUB_PATH}"


@dataclass
class Reader:
    """A fresh browser profile with one tab. `complaints` are requests to other hosts, files that are missing, and console errors."""

    tab: object
    base: str
    complaints: list = field(default_factory=list)

    def open(self, name):
        """Open a page of the book and wait until its formulas stand; the tab."""
        self.tab.goto(f"{self.base}/{name}")
        self.tab.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready; }")
        return self.tab

    def button(self, name):
        return self.tab.get_by_role("button", name=name, exact=True)

    def run(self, number=None):
        """Run one cell, or all, and wait for the end."""
        self.button(f"Run cell {number}" if number else "Run all").click()
        self.wait()

    def wait(self, seconds=120):
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

    def output(self, number):
        """What a cell gave in this page, as text."""
        return self.cell(number).locator(".run-output").inner_text()

    def write(self, number, text):
        """Replace the text of a cell by typing it into the editor."""
        if self.button(f"Edit cell {number}").is_visible():
            self.button(f"Edit cell {number}").click()
        editor = self.tab.get_by_role("textbox", name=f"Code of cell {number}", exact=True)
        editor.click()
        self.tab.keyboard.press("ControlOrMeta+a")
        self.tab.keyboard.press("Delete")
        self.tab.keyboard.insert_text(text)
        assert self.cells()[number - 1]["text"] == text


@contextlib.contextmanager
def visit(chromium, server, base=None, size=(1100, 900), **options):
    """A fresh profile; options are those of Playwright's contexts. At the end nothing may have gone wrong behind the scenes."""
    server.refused.clear()
    base = base or server.address
    viewport = dict(zip(("width", "height"), size, strict=True))
    with contextlib.closing(chromium.new_context(viewport=viewport, accept_downloads=True, **options)) as context:
        reader = Reader(context.new_page(), base)
        watch(context, reader.tab, base, reader.complaints)
        yield reader
    wrong = reader.complaints + server.refused
    assert not wrong, "\n".join(wrong)


def watch(context, tab, base, complaints):
    """Write down requests to other hosts, what could not be had, and the console's errors."""

    def asked(request):
        if not request.url.startswith((base, "data:", "blob:")):
            complaints.append(f"asked {request.url}")

    def failed(request):
        if request.failure not in ("net::ERR_ABORTED", "csp"):  # the reader went on, or wants no scripts
            complaints.append(f"failed {request.url} ({request.failure})")

    def said(message):
        if message.type in ("error", "warning"):
            complaints.append(f"console {message.text}")

    context.on("request", asked)
    context.on("requestfailed", failed)
    tab.on("pageerror", lambda error: complaints.append(f"error {error}"))
    tab.on("console", said)


def tab_to(tab, target):
    """Go to an element by the Tab key alone, from a stop before it."""
    target.evaluate(
        """e => {
            const stops = [...document.querySelectorAll('a[href], button, input, select, summary, [tabindex="0"]')]
                .filter((s) => s.tabIndex >= 0 && !s.disabled && s.checkVisibility({ visibilityProperty: true }));
            stops[stops.indexOf(e) - 1].focus();
        }"""
    )
    for _ in range(4):  # Chromium stops at boxes that scroll, too
        tab.keyboard.press("Tab")
        if target.evaluate("e => e === document.activeElement"):
            return
    raise AssertionError("the Tab key does not lead here")
