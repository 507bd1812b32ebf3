"""Reading what was handed in: from the bytes of a file to the sources of its code cells, as data and nothing else."""

import codecs
import json
import re
from dataclasses import dataclass, field

from mha_lib.questions import SLUGS

LARGEST = 100_000_000  # bytes; outputs count, code hardly does
MOST_ITEMS = 5_000_000  # of JSON: more of them would need gigabytes here
MOST_CODE = 2_000_000  # characters
CHECK = re.compile(r"""Check\(\s*["'](\w{1,40})["']""")


class Unreadable(Exception):
    """Not a notebook; the text is for the learner."""


@dataclass
class Notebook:
    """cells: the sources of the code cells. exercise: what it says it answers ("" if nothing). notes: what is odd about it."""

    cells: list
    exercise: str = ""
    notes: list = field(default_factory=list)


def read(data):
    """The `Notebook` in these bytes; Unreadable with a sentence for the learner."""
    document = _document(_text(data))
    cells = document.get("cells")
    if cells is None and isinstance(document.get("worksheets"), list):  # format 3
        sheets = [sheet for sheet in document["worksheets"] if isinstance(sheet, dict)]
        cells = [cell for sheet in sheets for cell in _list(sheet.get("cells"))]
    if not isinstance(cells, list):
        raise Unreadable("the file has no cells, so it is not a notebook")
    sources = [_source(cell) for cell in cells if isinstance(cell, dict) and cell.get("cell_type") == "code"]
    if sum(map(len, sources)) > MOST_CODE or len(sources) > 1000:
        raise Unreadable(f"the notebook has more than 1000 code cells, or {MOST_CODE:,} characters of code")
    metadata = _dict(document.get("metadata"))
    return Notebook(sources, _exercise(metadata, sources), _notes(metadata))


def _text(data):
    if len(data) > LARGEST:
        raise Unreadable(f"the file is larger than {LARGEST // 1_000_000} MB: clear its outputs and hand it in again")
    if not data.strip():
        raise Unreadable("the file is empty")
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    try:
        text = data.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError:
        raise Unreadable("the file is not UTF-8 text, so it is not a notebook") from None
    if text.count(",") + text.count("[") + text.count("{") > MOST_ITEMS:
        raise Unreadable("the file has too many parts for a notebook: clear its outputs and hand it in again")
    return text


def _document(text):
    try:
        document = json.loads(text)
    except RecursionError:
        raise Unreadable("the file is nested too deeply for a notebook") from None
    except (ValueError, MemoryError):
        raise Unreadable("the file is not valid JSON, so it is not a notebook: was it cut short on its way?") from None
    if not isinstance(document, dict):
        raise Unreadable("the file is valid JSON, but not a notebook")
    return document


def _source(cell):
    """The code of a cell: `source`, in format 3 `input`; a string or a list of lines."""
    source = cell.get("source", cell.get("input", ""))
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else ""


def _exercise(metadata, sources):
    """The exercise that the metadata name, else the first `Check("...")`; "" if neither is one of ours."""
    named = _dict(metadata.get("mha_course")).get("exercise")
    if isinstance(named, str) and named in SLUGS:
        return named
    for source in sources:
        for slug in CHECK.findall(source):
            if slug in SLUGS:
                return slug
    return ""


def _notes(metadata):
    kernel = _dict(metadata.get("kernelspec"))
    language = kernel.get("language", "python")
    if isinstance(language, str) and language.lower() != "python":
        return [f"the notebook asks for a kernel of another language, {language[:30]}; it was run as Python"]
    return []


def _dict(value):
    return value if isinstance(value, dict) else {}


def _list(value):
    return value if isinstance(value, list) else []
