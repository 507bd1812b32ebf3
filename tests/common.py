"""What the tests share: comparing in the sense of this project, and the two paths behind one interface."""

import importlib.util
import os
import shutil

import numpy as np
import pytest

TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-12}


def close(got, want, tolerance=None):
    """Equal: at most 1e-6 (float32) or 1e-12 (float64), relative to the largest magnitude; NaN and inf in the same places."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"shape {got.shape}, want {want.shape}"
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    if finite.any():
        got, want, dtype = got[finite].astype(np.float64), want[finite].astype(np.float64), str(got.dtype)
        error = np.abs(got - want).max() / max(1e-30, np.abs(want).max())
        limit = tolerance or TOLERANCE[dtype]
        assert error <= limit or np.abs(got - want).max() == 0, f"relative error {error:.2e} > {limit}"


def missing(tool):
    """A tool that a test needs is not there: a skip with its reason on a person's machine, a failure in CI."""
    reason = f"{tool} is not on this machine"
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(reason)


class Path:
    """One path of the library, taking and giving NumPy arrays, so that a test is written once for both."""

    def __init__(self, name, module, give, take):
        self.name, self.module, self.give, self.take = name, module, give, take

    def __getattr__(self, function):
        return self.wrapped(getattr(self.module, function))

    def wrapped(self, call):
        """The call with arrays in and out."""

        def wrapper(*args, **kwargs):
            args, kwargs = [self.give(x) for x in args], {key: self.give(x) for key, x in kwargs.items()}
            result = call(*args, **kwargs)
            return tuple(map(self.take, result)) if isinstance(result, tuple) else self.take(result)

        return wrapper

    def layer(self, embed_dim, num_heads, **options):
        """A layer of this path with random weights and biases, the same for both paths."""
        layer = self.module.MultiHeadAttention(embed_dim, num_heads, **options)
        rng = np.random.default_rng(5)
        for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O"):
            old = getattr(layer, name)
            if old is not None:
                new = rng.standard_normal(tuple(old.shape)) * 0.5
                if self.name == "numpy":
                    setattr(layer, name, new.astype(old.dtype))
                else:
                    old.data.copy_(self.give(new))
        return layer

    def call(self, layer, *args, **kwargs):
        """Call a layer with arrays."""
        return self.wrapped(layer)(*args, **kwargs)


def numpy_path():
    import mha_lib.numpy

    return Path("numpy", mha_lib.numpy, lambda x: x, lambda x: x)


def torch_path(device="cpu"):
    import torch

    import mha_lib.torch

    torch.set_num_threads(1)

    def give(x):  # torch takes no read-only memory and no negative strides
        return torch.from_numpy(np.array(x)).to(device) if isinstance(x, np.ndarray) else x

    def take(x):
        return x.detach().cpu().numpy() if isinstance(x, torch.Tensor) else x

    return Path(f"torch-{device}", mha_lib.torch, give, take)


def has_cuda():
    """Whether there is a CUDA card; torch is imported only where a driver is."""
    if not shutil.which("nvidia-smi") or not importlib.util.find_spec("torch"):
        return False
    import torch

    return torch.cuda.is_available()


PATHS = {"numpy": numpy_path, "torch": torch_path}
if has_cuda():
    PATHS["cuda"] = lambda: torch_path("cuda")
