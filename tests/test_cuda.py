"""What only CUDA can show. All tests with the fixture `path` run there too."""

import pytest
from common import PATHS


@pytest.mark.skipif(
    "cuda" not in PATHS, reason="no CUDA device on this machine: the PyTorch path is tested on the CPU only"
)
def test_fused_and_written_out_agree_on_cuda(rng):
    import torch
    from common import close

    path = PATHS["cuda"]()
    q, k, v = rng.standard_normal((3, 2, 4, 64, 32))
    for dtype, limit in (("float64", 1e-12), ("float32", 1e-5), ("float16", 4e-3)):
        x = [a.astype(dtype) for a in (q, k, v)]
        for options in ({}, {"is_causal": True}, {"mask": rng.random((2, 1, 64, 64)) > 0.5}):
            written_out, _ = path.scaled_dot_product_attention(*x, return_weights=True, **options)
            close(path.scaled_dot_product_attention(*x, **options), written_out, limit)
    assert torch.cuda.is_available()
