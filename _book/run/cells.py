"""Runs the code of cells as Jupyter does, and gives what comes out as the outputs of a notebook. Loaded by worker.mjs and by Node."""

import builtins
import json
import linecache
import sys
import traceback
from ast import PyCF_ALLOW_TOP_LEVEL_AWAIT

from pyodide.code import CodeRunner

MOST_TEXT = 100_000  # characters that one cell may print: an endless loop must not drown the page


class Stream:
    """A text stream whose every write becomes an output."""

    encoding, errors = "utf-8", "strict"

    def __init__(self, name, cells):
        self.name, self.cells = name, cells

    def write(self, text):
        self.cells.printed(self.name, text)
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def isatty(self):
        return False


class Cells:
    """The cells of one page: they share their names. `emit` takes each output as JSON, and whether no more may come."""

    def __init__(self, emit):
        self.emit, self.names, self.left = emit, {"__name__": "__main__"}, MOST_TEXT
        sys.stdout, sys.stderr = Stream("stdout", self), Stream("stderr", self)
        builtins.display, builtins.input = self.display, no_input

    async def run(self, number, source):
        """Run one cell; whether it ran to its end."""
        self.left, file = MOST_TEXT, f"<cell {number}>"
        linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file  # so that tracebacks quote it
        try:
            value = (
                await CodeRunner(source, filename=file, flags=PyCF_ALLOW_TOP_LEVEL_AWAIT)
                .compile()
                .run_async(self.names)
            )
        except BaseException as error:  # SystemExit and KeyboardInterrupt end a cell, not the page's Python
            self.output(output_type="error", ename=type(error).__name__, evalue=str(error), traceback=short(error))
            return False
        if value is not None:
            self.names["_"] = value
            self.output(output_type="execute_result", data=pictures(value), metadata={}, **verdict(value))
        return True

    def display(self, *values):
        """Jupyter's `display`."""
        for value in values:
            self.output(output_type="display_data", data=pictures(value), metadata={})

    def printed(self, name, text):
        if self.left > 0 and text:
            self.output(output_type="stream", name=name, text=text[: self.left])
            self.left -= len(text)
            if self.left <= 0:
                more = f"\n… more than {MOST_TEXT} characters; the rest is not shown.\n"
                self.emit(json.dumps({"output_type": "stream", "name": "stderr", "text": more}), True)

    def output(self, **fields):
        self.emit(json.dumps(fields))


def no_input(prompt=""):
    """In place of Python's `input`."""
    raise RuntimeError("input() cannot ask you anything here: write the value into the cell instead")


def pictures(value):
    """The value by media type: always as text, as HTML where it can."""
    found = {"text/plain": repr(value)}
    html = getattr(value, "_repr_html_", None)
    text = html() if callable(html) and not isinstance(value, type) else None
    return {"text/html": text, **found} if text is not None else found


def verdict(value):
    """What a report of `mha_lib.check` says, for the learner's progress."""
    found = getattr(value, "verdict", None)
    if type(value).__module__ != "mha_lib.check" or found is None:
        return {}
    return {"check": {"question": found.question, "status": found.status, "points": found.points, "max": found.max}}


def short(error):
    """A traceback of the learner's own lines, and of the last one in the library."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != "<exec>"
    ]  # not this file
    start = next((i for i, frame in enumerate(frames) if frame.filename.startswith("<cell")), len(frames))
    frames = frames[start:]
    own = [frame for frame in frames if frame.filename.startswith("<cell")]
    if len(own) > 6:
        own = own[:3] + own[-3:]
    lines = [f"{place(frame)}: {frame.line}" for frame in own]
    if frames and frames[-1] not in own:
        lines.append(f"{place(frames[-1])}: {frames[-1].line}")
    return lines + "".join(traceback.format_exception_only(error)).rstrip().splitlines()


def place(frame):
    """Where a line stands, in words."""
    if frame.filename.startswith("<cell"):
        return f"{frame.filename.strip('<>').capitalize()}, line {frame.lineno}"
    return f"{frame.filename.partition('site-packages/')[2] or frame.filename}, line {frame.lineno}"
