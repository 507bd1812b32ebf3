"""rope, sinusoidal_positions and alibi_bias, in both paths."""

import math

import numpy as np
import pytest
from common import close


def rope_by_loops(x, positions, base, interleaved):
    y, D = x.astype(np.float64), x.shape[-1]
    for index in np.ndindex(*x.shape[:-1]):
        for i in range(D // 2):
            m, n = (2 * i, 2 * i + 1) if interleaved else (i, i + D // 2)
            angle = positions[index[-1]] * base ** (-2 * i / D)
            a, b = float(x[index][m]), float(x[index][n])
            y[index][m], y[index][n] = (
                a * math.cos(angle) - b * math.sin(angle),
                a * math.sin(angle) + b * math.cos(angle),
            )
    return y


@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("shape", [(3, 6), (2, 3, 2), (1, 2, 3, 8)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rope(path, rng, interleaved, shape, dtype):
    x, positions = rng.standard_normal(shape).astype(dtype), np.array([0, 1, 1000])
    got = path.rope(x, positions, base=500.0, interleaved=interleaved)
    assert got.dtype == dtype
    close(got, rope_by_loops(x, positions, 500.0, interleaved))


def test_rope_of_float16_turns_in_float32(path, rng):
    x, positions = rng.standard_normal((3, 64)).astype(np.float16), np.array([1, 100, 2000])
    got = path.rope(x, positions)
    assert got.dtype == np.float16
    close(got, rope_by_loops(x, positions, 10000.0, True), 5e-4)  # half a unit in the last place


def test_the_two_conventions_differ_by_a_permutation_of_features(path, rng):
    x, positions = rng.standard_normal((3, 8)), np.array([2, 5, 7])
    order = np.concatenate([np.arange(0, 8, 2), np.arange(1, 8, 2)])
    close(path.rope(x[:, order], positions, interleaved=False), path.rope(x, positions)[:, order])


def test_rope_keeps_lengths_and_scores_depend_on_distance(path, rng):
    q, k = rng.standard_normal((2, 4, 8))
    close((path.rope(q, np.arange(4)) ** 2).sum(-1), (q**2).sum(-1))
    here = path.rope(q, np.arange(4)) @ path.rope(k, np.arange(4)).T
    close(path.rope(q, np.arange(4) + 9) @ path.rope(k, np.arange(4) + 9).T, here, 1e-11)


@pytest.mark.parametrize("E", [1, 2, 5, 8])
def test_sinusoidal(path, E):
    want = [
        [(math.cos if e % 2 else math.sin)((3 + p) / 10000 ** ((e - e % 2) / E)) for e in range(E)] for p in range(4)
    ]
    close(path.sinusoidal_positions(4, E, offset=3), want)
    assert path.sinusoidal_positions(0, E).shape == (0, E)


@pytest.mark.parametrize(
    "H, slopes", [(1, [2**-8]), (4, [1 / 4, 1 / 16, 1 / 64, 1 / 256]), (3, [1 / 16, 1 / 256, 1 / 4])]
)
def test_alibi(path, H, slopes):
    got = path.alibi_bias(H, 2, 4, offset=1)
    want = [[[-slope * max(0, 1 + i - j) for j in range(4)] for i in range(2)] for slope in slopes]
    close(got, want)
    assert not np.signbit(got[got == 0]).any()


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda m: m.rope(np.zeros((3, 5)), np.arange(3)), ValueError, "with an even D"),
        (
            lambda m: m.rope(np.zeros((3, 4)), np.arange(2)),
            ValueError,
            r"positions must have the shape \(L,\) = \(3,\), got \(2,\)",
        ),
        (
            lambda m: m.rope(np.zeros((3, 4)), np.arange(3), base=-1.0),
            ValueError,
            "base must be a positive number, got -1.0",
        ),
        (lambda m: m.sliding_window_mask(3, None, 2), TypeError, "S must be an integer >= 0, got None"),
        (lambda m: m.sinusoidal_positions(2, 0), ValueError, "E must be an integer >= 1, got 0"),
        (lambda m: m.alibi_bias(0, 2, 2), ValueError, "H must be an integer >= 1, got 0"),
        (lambda m: m.alibi_bias(2, 2, 2.5), TypeError, "S must be an integer >= 0"),
    ],
)
def test_bad_input(path, call, error, words):
    with pytest.raises(error, match=words):
        call(path)
