"""causal_mask, sliding_window_mask and padding_mask, in both paths."""

import numpy as np
import pytest
from common import close


@pytest.mark.parametrize("L, S, offset", [(3, 3, 0), (2, 5, 0), (2, 5, 3), (4, 2, -2), (0, 3, 0), (3, 0, 0), (1, 4, 3)])
def test_causal(path, L, S, offset):
    want = np.array([[j <= offset + i for j in range(S)] for i in range(L)], bool).reshape(L, S)
    got = path.causal_mask(L, S, offset)
    assert got.dtype == bool and (got == want).all() and got.shape == want.shape


def test_causal_is_square_by_default(path):
    assert (path.causal_mask(3) == np.tri(3, dtype=bool)).all()


@pytest.mark.parametrize(
    "L, S, window, offset", [(5, 5, 2, 0), (5, 5, 1, 0), (2, 6, 3, 4), (3, 3, 99, 0), (0, 4, 1, 0)]
)
def test_sliding_window_has_window_keys_with_itself(path, L, S, window, offset):
    want = np.array([[offset + i - window < j <= offset + i for j in range(S)] for i in range(L)], bool).reshape(L, S)
    assert (path.sliding_window_mask(L, S, window, offset) == want).all()


def test_padding(path):
    got = path.padding_mask(np.array([2, 0, 3]), 3)
    assert got.dtype == bool and got.shape == (3, 1, 1, 3)
    assert (got[:, 0, 0] == [[True, True, False], [False, False, False], [True, True, True]]).all()
    assert path.padding_mask(np.array([], int), 3).shape == (0, 1, 1, 3)
    assert path.padding_mask([1], 0 + 2).shape == (1, 1, 1, 2)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda m: m.causal_mask(-1), ValueError, "L must be an integer >= 0, got -1"),
        (lambda m: m.causal_mask(2.0), TypeError, "L must be an integer >= 0, got 2.0"),
        (lambda m: m.causal_mask(True), TypeError, "L must be an integer"),
        (lambda m: m.causal_mask(2, 2, 0.5), TypeError, "offset must be an integer, got 0.5"),
        (lambda m: m.sliding_window_mask(2, 2, 0), ValueError, "window must be an integer >= 1, got 0"),
        (lambda m: m.padding_mask([1.0], 3), TypeError, "lengths must be integers"),
        (lambda m: m.padding_mask([4], 3), ValueError, r"lengths must lie in 0..S = 0..3, got values from 4 to 4"),
        (lambda m: m.padding_mask([-1], 3), ValueError, "lengths must lie in"),
        (lambda m: m.padding_mask([[1]], 3), ValueError, r"lengths must have the shape \(B,\), got \(1, 1\)"),
    ],
)
def test_bad_input(path, call, error, words):
    with pytest.raises(error, match=words):
        call(path)


def test_perturbing_the_future_changes_nothing_before_it(path, rng):
    """The leak test of chapter 6: what comes after position t must not reach the outputs up to t."""
    x = rng.standard_normal((5, 4))
    before = path.scaled_dot_product_attention(x, x, x, mask=path.causal_mask(5))
    for t in range(4):
        changed = x.copy()
        changed[t + 1 :] += 10
        after = path.scaled_dot_product_attention(changed, changed, changed, mask=path.causal_mask(5))
        close(after[: t + 1], before[: t + 1])
        assert np.abs(after[t + 1] - before[t + 1]).max() > 1e-3
