"""The two paths as a fixture, and settings for hypothesis: the same examples on every run."""

import numpy as np
import pytest
from common import PATHS
from hypothesis import settings

settings.register_profile("course", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("course")


@pytest.fixture(params=PATHS)
def path(request):
    """Each path in turn: NumPy, PyTorch on the CPU, and on CUDA where there is a card (tests/test_cuda.py says if not)."""
    return PATHS[request.param]()


@pytest.fixture
def rng():
    return np.random.default_rng(0)
