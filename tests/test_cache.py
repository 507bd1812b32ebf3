"""KVCache, in both paths. Decoding with it: test_multihead.py."""

import numpy as np
import pytest


def test_append_returns_all_so_far(path, rng):
    cache = path.module.KVCache(2, 3, 5, 4, value_dim=6)
    key, value = (
        rng.standard_normal((2, 3, 5, 4)).astype(np.float32),
        rng.standard_normal((2, 3, 5, 6)).astype(np.float32),
    )
    assert len(cache) == 0 and cache.nbytes == 2 * 3 * 5 * (4 + 6) * 4
    for start, stop in ((0, 2), (2, 2), (2, 5)):
        keys, values = cache.append(path.give(key[:, :, start:stop]), path.give(value[:, :, start:stop]))
        assert (path.take(keys) == key[:, :, :stop]).all() and (path.take(values) == value[:, :, :stop]).all()
    assert len(cache) == 5
    cache.reset()
    assert len(cache) == 0
    keys, _ = cache.append(path.give(key[:, :, :1]), path.give(value[:, :, :1]))
    assert keys.shape == (2, 3, 1, 4)


def test_too_long_stores_nothing(path):
    cache, ones = path.module.KVCache(1, 1, 3, 2), path.give(np.ones((1, 1, 2, 2), np.float32))
    cache.append(ones, ones)
    with pytest.raises(ValueError, match=r"room for max_length = 3 tokens, got 2 \+ 2 = 4"):
        cache.append(ones, ones)
    assert len(cache) == 2


@pytest.mark.parametrize(
    "key, value, words",
    [
        (
            (1, 1, 2, 3),
            (1, 1, 2, 2),
            r"key must have the shape \(B, H_kv, n, D\) = \(1, 1, n, 2\) of the cache, got \(1, 1, 2, 3\)",
        ),
        ((1, 2, 2), (1, 2, 2), "key must have the shape"),
        ((1, 1, 2, 2), (2, 1, 2, 2), "value must have the shape"),
        ((1, 1, 2, 2), (1, 1, 1, 2), "key and value must have the same length n"),
    ],
)
def test_bad_shapes(path, key, value, words):
    cache = path.module.KVCache(1, 1, 3, 2)
    with pytest.raises(ValueError, match=words):
        cache.append(path.give(np.ones(key, np.float32)), path.give(np.ones(value, np.float32)))
    assert len(cache) == 0


@pytest.mark.parametrize("name", ["key", "value"])
def test_a_dtype_that_would_lose_digits(path, name):
    cache, ones = path.module.KVCache(1, 1, 3, 2), path.give(np.ones((1, 1, 1, 2), np.float32))
    given = {"key": ones, "value": ones} | {name: path.give(np.ones((1, 1, 1, 2)))}
    with pytest.raises(TypeError, match=rf"{name} is .*float64, but the cache stores .*float32; make it with dtype="):
        cache.append(**given)
    assert len(cache) == 0


@pytest.mark.parametrize("sizes", [(-1, 1, 1, 1), (1, 0, 1, 1), (1, 1, -1, 1), (1, 1, 1, 0)])
def test_bad_sizes(path, sizes):
    with pytest.raises(ValueError, match="must be an integer >="):
        path.module.KVCache(*sizes)


def test_reset_to_more_than_there_is(path):
    with pytest.raises(ValueError, match="length must be at most the 0 tokens stored, got 1"):
        path.module.KVCache(1, 1, 3, 2).reset(1)
