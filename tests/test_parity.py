"""The two paths: the same public names, the same arguments, the same numbers."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
from common import close, numpy_path

pytest.importorskip("torch")
import mha_lib.numpy
import mha_lib.torch

ONLY_NUMPY = {"rng", "dtype"}
ONLY_TORCH = {"device", "dropout", "dropout_p", "dtype"}
BACKWARD = {"scaled_dot_product_attention_backward", "flash_attention_backward"}  # in torch autograd does it
NAMES = [name for name in mha_lib.numpy.__all__ if name not in BACKWARD]


def signature(thing):
    drop = ONLY_NUMPY | ONLY_TORCH | {"self"}
    parameters = inspect.signature(thing).parameters.values()
    return [(p.name, p.kind, p.default) for p in parameters if p.name not in drop]


def test_the_same_public_names():
    assert NAMES == mha_lib.torch.__all__ == sorted(NAMES) and BACKWARD < set(mha_lib.numpy.__all__)
    for name in NAMES:
        assert (
            getattr(mha_lib.numpy, name).__module__.replace("numpy", "torch") == getattr(mha_lib.torch, name).__module__
        )


@pytest.mark.parametrize("name", NAMES)
def test_the_same_arguments(name):
    ours, theirs = getattr(mha_lib.numpy, name), getattr(mha_lib.torch, name)
    assert signature(ours) == signature(theirs)
    if inspect.isclass(ours):
        public = {
            n
            for n, x in vars(ours).items()
            if callable(x) and n != "backward" and (n[0] != "_" or n in ("__call__", "__len__"))
        }
        for method in public:
            other = theirs.forward if method == "__call__" else getattr(theirs, method)
            assert signature(getattr(ours, method)) == signature(other), method


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("library", [mha_lib.numpy, mha_lib.torch], ids=["numpy", "torch"])
def test_docstrings_say_shapes_errors_and_show_an_example(library, name):
    text = inspect.getdoc(getattr(library, name))
    first = text.splitlines()[0]
    assert first.endswith(".") and ">>> " in text and "Errors" in text and ("Shapes:" in text or "(E, H*D)" in text)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"softcap": 2.0}, {"mask": np.tri(4, 6, 2, dtype=bool)}], ids=str
)
def test_the_same_numbers(path, rng, dtype, options):
    q, k, v = (rng.standard_normal((2, H, n, 8)).astype(dtype) for H, n in ((4, 4), (2, 6), (2, 6)))
    for a, b in zip(*(p.scaled_dot_product_attention(q, k, v, return_weights=True, **options) for p in (numpy_path(), path)),
                    strict=True):  # fmt: skip
        close(b, a)


def test_importing_the_library_imports_no_torch():
    code = (
        "import sys, mha_lib, mha_lib.numpy, mha_lib.data, mha_lib.mistakes, mha_lib.viz, mha_lib.interop; "
        "sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
