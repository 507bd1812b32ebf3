"""split_heads and merge_heads, in both paths."""

import numpy as np
import pytest


@pytest.mark.parametrize("lead", [(), (2,), (2, 3)])
@pytest.mark.parametrize("L, H, D", [(5, 3, 4), (1, 1, 2), (3, 2, 1), (0, 2, 3)])
def test_split_takes_slices_and_merge_undoes_it(path, rng, lead, L, H, D):
    x = rng.standard_normal((*lead, L, H * D)).astype(np.float32)
    heads = path.split_heads(x, H)
    assert heads.shape == (*lead, H, L, D)
    for h in range(H):
        assert (heads[..., h, :, :] == x[..., h * D : (h + 1) * D]).all()
    assert (path.merge_heads(heads) == x).all()


def test_integers_keep_their_dtype(path):
    x = np.arange(12).reshape(3, 4)
    assert path.split_heads(x, 2).dtype == x.dtype


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda m: m.split_heads(np.zeros((3, 5)), 2), ValueError, r"divisible by num_heads, got .*\(3, 5\).* and 2"),
        (lambda m: m.split_heads(np.zeros((3, 4)), 0), ValueError, "num_heads must be an integer >= 1, got 0"),
        (lambda m: m.split_heads(np.zeros((3, 4)), 2.0), TypeError, "num_heads must be an integer"),
        (lambda m: m.split_heads(np.zeros(4), 2), ValueError, r"x must .*\(\.\.\., L, H\*D\)"),
        (lambda m: m.merge_heads(np.zeros((3, 4))), ValueError, r"x must .*\(\.\.\., H, L, D\)"),
    ],
)
def test_bad_input(path, call, error, words):
    with pytest.raises(error, match=words):
        call(path)
