"""The two paths as a fixture, and settings for hypothesis: the same examples on every run."""

import importlib.util
import shutil

import numpy as np
import pytest
from common import numpy_path, torch_path
from hypothesis import settings

settings.register_profile("course", deadline=None, derandomize=True, max_examples=40)
settings.load_profile("course")


def has_cuda():
    """Whether there is a CUDA card; torch is imported only where a driver is."""
    if not shutil.which("nvidia-smi") or not importlib.util.find_spec("torch"):
        return False
    import torch

    return torch.cuda.is_available()


PATHS = {"numpy": numpy_path, "torch": torch_path}
if has_cuda():
    PATHS["cuda"] = lambda: torch_path("cuda")


@pytest.fixture(params=PATHS)
def path(request):
    """Each path in turn: NumPy, PyTorch on the CPU, and on CUDA where there is a card (tests/test_cuda.py says if not)."""
    return PATHS[request.param]()


@pytest.fixture
def rng():
    return np.random.default_rng(0)
