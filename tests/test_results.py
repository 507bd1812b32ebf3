"""The page of results: each names its paper, what holds, where it stops, and a section that is there and cites the paper."""

import re

import map_page
import nbformat
import pytest

CELLS = map_page.cells("results", "markdown")
ENTRIES = {part.splitlines()[0]: part for cell in CELLS for part in re.split(r"^### ", cell, flags=re.M)[1:]}
CITATION = re.compile(r"\{cite(?::\w+)?\}`([^`]+)`")


def keys(text):
    return {key.strip() for found in CITATION.findall(text) for key in found.split(",")}


def sections(slug):
    """Each section of a chapter: its heading and its text."""
    text = "\n".join(map_page.cells(slug, "markdown"))
    return {part.splitlines()[0]: part for part in re.split(r"^## ", text, flags=re.M)[1:]}


def test_the_results_that_the_design_lists_are_there():
    found = {key for text in ENTRIES.values() for key in keys(text)}
    assert found == {
        "vaswani2017attention", "bhojanapalli2020low", "dong2021attention", "milakov2018online", "dao2022flashattention",
        "ainslie2023gqa", "michel2019sixteen", "voita2019analyzing", "olsson2022context", "xiao2023efficient",
        "kobayashi2020attention", "brunner2020identifiability", "cordonnier2020relationship", "elhage2021mathematical",
    }  # fmt: skip


@pytest.mark.parametrize("heading", ENTRIES)
def test_a_result_says_what_holds_and_where_it_stops(heading):
    bold = re.findall(r"^- \*\*([^*]+)\*\*", ENTRIES[heading], flags=re.M)
    assert bold == ["Claim.", "Here.", "It stops.", "Asserted in"]


@pytest.mark.parametrize("heading", ENTRIES)
def test_a_result_is_asserted_in_sections_that_exist(heading):
    """And every paper of the claim is cited by one of the chapters that are named."""
    where = ENTRIES[heading].split("**Asserted in**")[1].splitlines()[0]
    cited, named = set(), 0
    for piece in where.split(";"):
        slug = re.search(r"\{doc\}`/chapters/(\w+)`", piece)
        slug = slug[1] if slug else "results"
        for title in re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", piece):
            assert title in sections(slug), f"{slug} has no section {title!r}"
            named += 1
        cited |= keys("\n".join(map_page.cells(slug, "markdown")))
        code = "\n".join(map_page.cells(slug, "code"))
        assert "assert" in code
    assert named and keys(ENTRIES[heading]) and keys(ENTRIES[heading]) <= cited


def everything(slug):
    """The text and the outputs of a chapter, numbers without the spaces and commas inside them."""
    outputs = [
        str(output.get("text") or output.get("data", {}).get("text/plain", ""))
        for cell in nbformat.read(map_page.ROOT / "chapters" / f"{slug}.ipynb", as_version=4).cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]
    text = "\n".join([*map_page.cells(slug, "markdown"), *map_page.cells(slug, "code"), *outputs])
    return re.sub(r"(?<=\d)(,|\\,)(?=\d{3})", "", text)


@pytest.mark.parametrize("heading", ENTRIES)
def test_the_numbers_of_a_result_stand_in_the_chapters_that_are_named(heading):
    """Numbers of two digits or more; a chapter may give more decimals than this page."""
    entry, named = ENTRIES[heading], set(re.findall(r"\{doc\}`/chapters/(\w+)`", ENTRIES[heading])) or {"results"}
    said = " ".join(re.findall(r"^- \*\*(?:Here|It stops)\.\*\* (.*)$", entry, flags=re.M)).replace(",", "")
    text = "\n".join(map(everything, named))
    missing = [n for n in re.findall(r"\d+\.\d+|\d\d+", said) if not re.search(rf"(?<![\d.]){re.escape(n)}", text)]
    assert not missing, f"{missing} of {heading} stand in none of {sorted(named)}"
