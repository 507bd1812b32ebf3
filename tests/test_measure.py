"""The measures of chapter 15 equal loops; what padding holds never counts."""

import numpy as np
import pytest
from common import close

from mha_lib import measure
from mha_lib.numpy import padding_mask, softmax

LENGTHS = np.array([4, 7, 6])


@pytest.fixture
def weights(rng):
    """(layers, B, H, L, L) of a padded batch."""
    scores = 2 * rng.standard_normal((2, 3, 4, 8, 8))
    return softmax(np.where(padding_mask(LENGTHS, 8), scores, -np.inf))


@pytest.mark.parametrize("offset", [-2, -1, 1, 2])
def test_offset_weight_equals_a_loop(weights, offset):
    got = measure.offset_weight(weights, LENGTHS + 1, offset)  # at least three words
    for place in np.ndindex(got.shape):
        own = range(1, LENGTHS[place[1]])
        seen = [weights[place][i, i + offset] for i in own if i + offset in own]
        close(got[place], np.mean(seen))


def test_rows_of_padding_do_not_count(weights, rng):
    other = weights.copy()
    for b, n in enumerate(LENGTHS):
        other[:, b, :, n:] = rng.random((2, 4, 8 - n, 8))
    close(measure.offset_weight(other, LENGTHS, -1), measure.offset_weight(weights, LENGTHS, -1))
    close(measure.mean_over_words(other[..., 0], LENGTHS), measure.mean_over_words(weights[..., 0], LENGTHS))


def test_mean_over_words_equals_a_loop(weights):
    got = measure.mean_over_words(weights[..., 0], LENGTHS)
    for n, b, m in np.ndindex(got.shape):
        close(got[n, b, m], np.mean([weights[n, b, m, i, 0] for i in range(1, LENGTHS[b] - 1)]))


def test_contribution_shares_equal_a_loop(rng):
    weights, values = softmax(rng.standard_normal((2, 3, 4, 5))), rng.standard_normal((2, 3, 5, 2))
    W_O = rng.standard_normal((6, 7))
    got = measure.contribution_shares(weights, values, W_O)
    for b, m, i in np.ndindex(2, 3, 4):
        rows = W_O[2 * m : 2 * m + 2]
        pieces = [np.sqrt(((weights[b, m, i, j] * values[b, m, j] @ rows) ** 2).sum()) for j in range(5)]
        close(got[b, m, i], np.array(pieces) / sum(pieces))


def test_a_query_without_keys_has_no_shares():
    got = measure.contribution_shares(np.zeros((1, 2, 3)), np.ones((1, 3, 2)), np.ones((2, 4)))
    close(got, np.zeros((1, 2, 3)))


def test_distance(rng):
    a, b = rng.standard_normal((2, 5, 3))
    for got, x, y in zip(measure.distance(a, b), a, b, strict=True):
        close(got, 1 - x @ y / np.sqrt((x @ x) * (y @ y)))
    assert np.abs(measure.distance(a, 3 * a)).max() < 1e-12


# -------------------------------------------------------------------------------------------------------------------- bad inputs
W, V, W_O = np.full((2, 3, 4, 5, 5), 0.2), np.ones((3, 4, 5, 2)), np.ones((8, 6))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda: measure.words([9], 5), ValueError, "lengths must lie in 0..S = 0..5, got values from 9 to 9"),
        (lambda: measure.words([2.5], 5), TypeError, "lengths must be integers, got dtype float64"),
        (lambda: measure.words(3, 5), ValueError, r"lengths must have the shape \(B,\), got \(\)"),
        (
            lambda: measure.mean_over_words(W[..., 0], [5]),
            ValueError,
            r"lengths must have the shape \(B,\) = \(3,\), got",
        ),
        (
            lambda: measure.mean_over_words(np.ones(3), [3]),
            ValueError,
            r"rows must have the axes \(..., B, H, L\), got",
        ),
        (
            lambda: measure.offset_weight(W, [5], 1),
            ValueError,
            r"lengths must have the shape \(B,\) = \(3,\), got \(1,\)",
        ),
        (lambda: measure.offset_weight(W[..., :4], [5] * 3, 1), ValueError, "weights must be square in the last two"),
        (lambda: measure.offset_weight(W, [5] * 3, 1.0), TypeError, "offset must be an integer, got 1.0"),
        (
            lambda: measure.image_lengths(V, W_O.T),
            ValueError,
            r"W_O must have the shape \(H\*D, E\) = \(8, E\) for values",
        ),
        (
            lambda: measure.image_lengths(V, np.ones(8)),
            ValueError,
            r"W_O must have the axes \(H\*D, E\), got shape \(8,\)",
        ),
        (
            lambda: measure.contribution_shares(W[0, ..., :1], V, W_O),
            ValueError,
            "weights .* and values .* must agree in",
        ),
        (
            lambda: measure.contribution_shares(W[0, :, :1], V, W_O),
            ValueError,
            "weights .* and values .* must agree in",
        ),
        (lambda: measure.distance(np.ones((3, 1)), np.ones((3, 4))), ValueError, "a and b must have the same shape"),
        (lambda: measure.distance("a", "b"), TypeError, "a must hold real numbers"),
    ],
)
def test_bad_inputs_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_lists_and_small_dtypes_are_measured_in_float64():
    small, V16 = W[0].astype(np.float16), np.full((3, 4, 5, 2), 300, np.float16)
    close(measure.contribution_shares(small, V16, np.full((8, 6), 300, np.float16)), small.astype(float), 1e-3)
    assert measure.mean_over_words(W[..., 0].tolist(), [5] * 3).shape == (2, 3, 4)
    close(measure.distance(np.array([2**40, 1]), np.array([2**40, 1])), 0)


@pytest.mark.filterwarnings("error")
def test_what_cannot_be_measured_is_nan_without_a_warning():
    assert np.isnan(measure.mean_over_words(W[..., 0], [5, 5, 2])[:, 2]).all()
    assert np.isnan(measure.offset_weight(W, [5, 5, 5], 9)).all()
    assert np.isnan(measure.distance(np.zeros(2), np.ones(2)))
    assert np.isnan(measure.contribution_shares(np.full((1, 1, 2), np.nan), np.ones((1, 2, 1)), np.ones((1, 1)))).all()
