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
