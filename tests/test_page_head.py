"""What _book/ext/page_head.py tells search engines, link previews and citing readers."""

import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from docutils import nodes

sys.path.append(str(Path(__file__).resolve().parents[1] / "_book" / "ext"))
import page_head as head

CONFIG = SimpleNamespace(html_title="Book", root_doc="index", html_baseurl="https://course.example/book/")


def test_addresses_are_those_of_the_site():
    tags = {name: content for _, name, content in head.tags(CONFIG, "chapters/04_scores", "Scores", "How to score.")}
    assert tags["og:url"] == "https://course.example/book/chapters/04_scores.html"
    assert tags["og:image"] == "https://course.example/book/_static/card.png"
    assert tags["twitter:card"] == "summary_large_image"
    assert (Path(head.ROOT) / "_book" / "static" / "card.png").is_file()


def test_a_site_without_an_address_names_none():
    config = SimpleNamespace(html_title="Book", root_doc="index", html_baseurl="")
    tags = {name: content for _, name, content in head.tags(config, "index", "Book", "A book.")}
    assert not {"og:url", "og:image"} & set(tags) and tags["og:type"] == "website"


def test_description_is_the_first_paragraph_as_read_aloud():
    root, rest = r"\sqrt{d_k}", " Builds on Softmax."
    paragraph = nodes.paragraph("", "", nodes.Text("Divide by "), nodes.math(root, root), nodes.Text("." + rest))
    assert head.description("page", nodes.section("", nodes.title("", "Title"), paragraph)) == "Divide by √d_k."


@pytest.mark.parametrize("text", ["One sentence of words. " * 20, "word " * 100, "x" * 50 + ". " + "word " * 100])
def test_description_ends_with_a_sentence_or_a_word(text):
    short = head.shorten(text)
    assert 60 <= len(short) <= head.LONGEST + 2
    assert text.startswith(short.removesuffix(" …")) and short.endswith((".", "word …"))


def test_edition_is_dated_by_the_epoch_or_the_commit_never_by_the_clock(monkeypatch, tmp_path):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert head.edition_date() == date(1970, 1, 2)
    assert head.edition() == f"Version {head.version()}, 2 January 1970"
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    monkeypatch.setattr(head, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert head.edition_date() is None
    who = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    git = ["git", "-c", "commit.gpgsign=false", "-c", "core.hooksPath=", "-c", f"init.templateDir={tmp_path}"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "a"]):
        environment = os.environ | who | {"GIT_COMMITTER_DATE": "2001-02-03T04:05:06Z"}
        subprocess.run([*git, *command], cwd=tmp_path, env=environment, check=True)
    assert head.edition_date() == date(2001, 2, 3)


def test_citation_says_what_the_file_says():
    cff, text = yaml.safe_load((head.ROOT / "CITATION.cff").read_text(encoding="utf-8")), head.citation()
    wanted = cff["title"], cff["version"], str(cff["date-released"].year), *map(head.full_name, cff["authors"])
    assert all(text.count(value) == 2 for value in wanted if value != str(cff["date-released"].year))
    assert wanted[2] in text
