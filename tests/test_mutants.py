"""The wrong edits of tools/mutants.py still fit the library: said here in a second, before the command tries them one by one."""

from collections import Counter
from pathlib import Path

import mutants
import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutant", mutants.MUTANTS, ids=lambda m: m.what)
def test_edit_applies_once(mutant):
    assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.new != mutant.old
    assert (ROOT / mutant.tests.partition("::")[0]).is_file()


def test_no_edit_twice():
    counts = Counter((m.file, m.old, m.new, m.tests) for m in mutants.MUTANTS)
    assert [edit for edit, n in counts.items() if n > 1] == []
