"""The map of the course says what is there."""

import map_page
import pytest

from mha_lib.questions import SLUGS

CHAPTERS = [slug for _, slugs in map_page.parts() for slug in slugs]


def test_the_map_is_fresh():
    assert map_page.PAGE.read_text(encoding="utf-8") == map_page.page(), "run: python tools/map_page.py"


def test_every_chapter_has_an_exercise():
    assert CHAPTERS == list(SLUGS)


@pytest.mark.parametrize("slug", CHAPTERS)
def test_every_chapter_rests_on_tested_modules(slug):
    """Of what a chapter builds or uses in the library something has a test of its own name."""
    assert map_page.tests(slug), f"{slug} builds and uses nothing that has a test"


def test_what_a_chapter_uses_is_read_from_its_cells():
    assert map_page.builds("04_scores") == {"scores": ["numpy", "torch"]} and map_page.builds("09_output") == {}
    assert map_page.uses("09_output") == {"attention", "heads", "interop", "multihead"}
    assert map_page.title("04_scores") == "Scores and scaling"
