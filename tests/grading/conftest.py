"""The sandbox as a fixture: tests that run answers ask for it."""

import pytest
from classroom import QUICK
from common import missing

from grading import SandboxError, hostile
from grading.offered import folder_for
from grading.sandbox import available, probe
from mha_lib.questions import load


@pytest.fixture(scope="session")
def sandbox():
    """Skip, or fail in CI, where answers cannot be run in a sandbox."""
    try:
        available()
        probe(folder_for(load(hostile.SLUG)), QUICK)
    except SandboxError as error:
        missing(f"a bubblewrap that works ({error})")
