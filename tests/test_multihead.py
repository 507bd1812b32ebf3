"""MultiHeadAttention, in both paths: values, masks, sizes, cache, trace, errors."""

from types import SimpleNamespace

import numpy as np
import pytest
import reference
from common import close, numpy_path


def weights_of(layer):
    """The layer's weights as float64 arrays by name; a missing bias is 0."""
    named = {name: getattr(layer, name) for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")}
    return {name: 0 if x is None else np.array(getattr(x, "data", x).tolist()) for name, x in named.items()}


@pytest.mark.parametrize("E, H", [(8, 2), (9, 3), (4, 1), (3, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_self_attention(path, rng, E, H, bias):
    layer, x = path.layer(E, H, bias=bias), rng.standard_normal((2, 5, E)).astype(np.float32)
    output, weights = path.call(layer, x, return_weights=True)
    assert output.dtype == np.float32 and weights.shape == (2, H, 5, 5)
    for b in range(2):
        want = reference.multihead(x[b].astype(np.float64), **weights_of(layer), num_heads=H)
        close(output[b], want, 2e-6)
        close(path.call(layer, x[b]), want, 2e-6)
    close(path.call(layer, x), output)


def test_cross_attention_with_other_widths(path, rng):
    layer = path.layer(8, 2, kdim=5, vdim=3)
    x, key, value = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 8), (2, 6, 5), (2, 6, 3)))
    mask = rng.random((3, 6)) > 0.3
    output = path.call(layer, x, key, value, mask=mask)
    for b in range(2):
        x64, key64, value64 = (a[b].astype(np.float64) for a in (x, key, value))
        want = reference.multihead(x64, **weights_of(layer), num_heads=2, key=key64, value=value64, mask=mask)
        close(output[b], want, 2e-6)


def test_value_none_is_key_and_key_none_is_query(path, rng):
    layer, x, y = path.layer(8, 2), *rng.standard_normal((2, 2, 4, 8)).astype(np.float32)
    close(path.call(layer, x, y), path.call(layer, x, y, y))
    close(path.call(layer, x), path.call(layer, x, x, x))
    assert np.abs(path.call(layer, x, None, y) - path.call(layer, x)).max() > 0.01


def test_grouped_heads_equal_repeated_ones(path, rng):
    grouped, full = path.layer(8, 4, num_kv_heads=2), path.layer(8, 4)
    for name in ("W_K", "W_V", "b_K", "b_V"):
        x = np.array(getattr(grouped, name).tolist(), np.float32)
        blocks = np.split(x, 2, axis=-1)
        repeated = np.concatenate([blocks[0], blocks[0], blocks[1], blocks[1]], axis=-1)
        if path.name == "numpy":
            setattr(full, name, repeated)
        else:
            getattr(full, name).data.copy_(path.give(repeated))
    for name in ("W_Q", "W_O", "b_Q", "b_O"):
        (setattr(full, name, getattr(grouped, name)) if path.name == "numpy"
         else getattr(full, name).data.copy_(getattr(grouped, name)))  # fmt: skip
    x = rng.standard_normal((2, 5, 8)).astype(np.float32)
    close(path.call(grouped, x, is_causal=True), path.call(full, x, is_causal=True), 2e-6)


def test_head_dim_may_differ(path, rng):
    layer, x = path.layer(7, 2, head_dim=4), rng.standard_normal((3, 7)).astype(np.float32)
    want = reference.multihead(x.astype(np.float64), **weights_of(layer), num_heads=2)
    close(path.call(layer, x), want, 2e-6)


def test_masks_act_and_an_empty_row_gives_the_output_bias(path, rng):
    layer, x = path.layer(8, 2), rng.standard_normal((2, 3, 8)).astype(np.float32)
    lengths = path.padding_mask(np.array([3, 0]), 3)
    output = path.call(layer, x, mask=lengths)
    close(output[0], path.call(layer, x[0]))
    close(output[1], np.tile(weights_of(layer)["b_O"], (3, 1)))
    causal = path.call(layer, x, mask=path.causal_mask(3))
    close(path.call(layer, x, is_causal=True), causal)
    close(path.call(layer, x, bias=np.where(path.causal_mask(3), 0, -np.inf)), causal)


@pytest.mark.parametrize("rope", [None, "interleaved", "halves"])
@pytest.mark.parametrize("chunks", [[1] * 6, [3, 1, 2], [6], [2, 0, 4]])
def test_decoding_by_steps_equals_the_full_causal_pass(path, rng, rope, chunks):
    layer, x = path.layer(8, 4, num_kv_heads=2, rope=rope), rng.standard_normal((2, 6, 8)).astype(np.float32)
    cache, outputs, start = path.module.KVCache(2, 2, 6, 2), [], 0
    for n in chunks:
        outputs.append(path.call(layer, x[:, start : start + n], is_causal=True, cache=cache))
        start += n
        assert len(cache) == start
    close(np.concatenate(outputs, 1), path.call(layer, x, is_causal=True), 2e-6)


def test_a_failed_call_leaves_the_cache_as_it_was(path, rng):
    layer, x = path.layer(8, 2), rng.standard_normal((1, 2, 8)).astype(np.float32)
    cache = path.module.KVCache(1, 2, 3, 4)
    path.call(layer, x, cache=cache)
    with pytest.raises(ValueError, match=r"room for max_length = 3 tokens, got 2 \+ 2 = 4"):
        path.call(layer, x, cache=cache)
    with pytest.raises(ValueError, match="mask must broadcast"):
        path.call(layer, x[:, :1], cache=cache, mask=np.ones((5, 5), bool))
    with pytest.raises(TypeError, match="mask must be boolean"):
        path.call(layer, x[:, :1], cache=cache, mask=np.ones((1, 3)))
    with pytest.raises(TypeError, match="is_causal must be True or False"):
        path.call(layer, x[:, :1], cache=cache, is_causal=np.ones((1, 3), bool))
    del layer.W_O
    layer.W_O = path.give(np.ones((5, 8), np.float32))
    with pytest.raises(ValueError, match="must share E"):
        path.call(layer, x[:, :1], cache=cache)
    assert len(cache) == 2
    with pytest.raises(TypeError, match=r"cache must be a mha_lib.*KVCache or None, got bool"):
        path.call(layer, x[:, :1], cache=True)


def test_a_layer_says_nothing_about_garbage_in_padding(path, rng):
    layer, x, y = path.layer(8, 2), *rng.standard_normal((2, 1, 4, 8)).astype(np.float32)
    want = path.call(layer, x, y, mask=np.arange(4) < 3)
    for bad in (np.inf, -np.inf, np.nan, 3e38):
        y[:, 3] = bad
        close(path.call(layer, x, y, mask=np.arange(4) < 3), want)


def test_rope_in_the_layer_depends_on_distance_alone(path, rng):
    """Scores of rotated queries and keys stay the same when all positions move: here by a dummy token in front, masked."""
    layer, x = path.layer(8, 2, rope="halves"), rng.standard_normal((1, 4, 8)).astype(np.float32)
    moved = np.concatenate([x[:, :1], x], 1)
    mask = np.arange(5) > 0
    close(path.call(layer, moved, mask=mask)[:, 1:], path.call(layer, x), 2e-6)
    plain = path.layer(8, 2)
    assert np.abs(path.call(layer, x) - path.call(plain, x)).max() > 1e-3


@pytest.mark.parametrize("rope", [None, "halves"])
def test_trace_holds_every_intermediate(path, rng, rope):
    layer, x = path.layer(8, 4, num_kv_heads=2, rope=rope), rng.standard_normal((2, 5, 8)).astype(np.float32)
    trace = layer.trace(path.give(x), is_causal=True)
    named = {name: path.take(array) for name, array in trace.items()}
    assert list(named) == ["x", "q", "k", "v", "scores", "weights", "heads", "concat", "output"]
    shapes = [
        (2, 5, 8),
        (2, 4, 5, 2),
        (2, 2, 5, 2),
        (2, 2, 5, 2),
        (2, 4, 5, 5),
        (2, 4, 5, 5),
        (2, 4, 5, 2),
        (2, 5, 8),
        (2, 5, 8),
    ]
    assert [array.shape for array in named.values()] == shapes
    output, weights = path.call(layer, x, is_causal=True, return_weights=True)
    close(named["output"], output)
    close(named["weights"], weights)
    close(path.softmax(named["scores"]), weights)
    close(path.merge_heads(named["heads"]), named["concat"])
    lines = repr(trace).splitlines()
    assert len(lines) == 9 and lines[4].split("  ")[0] == "scores" and "(2, 4, 5, 5)" in lines[4]
    y = rng.standard_normal((2, 3, 8)).astype(np.float32)
    assert [n for n, _ in layer.trace(path.give(x), path.give(y)).items()][:3] == ["x", "key_input", "value_input"]


def test_glorot_uniform_per_matrix(path):
    layer = path.module.MultiHeadAttention(64, 4, num_kv_heads=1)
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        weight = np.array(getattr(layer, name).tolist())
        limit = np.sqrt(6 / sum(weight.shape))
        assert 0.95 * limit < np.abs(weight).max() <= limit * (1 + 1e-6)
        assert abs(weight.mean()) < 0.05 * limit and abs(weight.std() / (limit / np.sqrt(3)) - 1) < 0.05
    assert not any(np.array(getattr(layer, f"b_{n}").tolist()).any() for n in "QKVO")


def test_numpy_weights_come_from_rng_and_have_its_dtype():
    from mha_lib.numpy import MultiHeadAttention

    assert (MultiHeadAttention(4, 2).W_Q == MultiHeadAttention(4, 2).W_Q).all()
    assert (MultiHeadAttention(4, 2, rng=np.random.default_rng(1)).W_Q != MultiHeadAttention(4, 2).W_Q).any()
    layer = MultiHeadAttention(4, 2, dtype=np.float64)
    assert layer.W_O.dtype == layer.b_O.dtype == layer(np.zeros((3, 4))).dtype == np.float64
    half = MultiHeadAttention(4, 2, dtype=np.float16)
    assert half(np.ones((3, 4), np.float16)).dtype == np.float16
    with pytest.raises(TypeError, match="dtype must be a floating-point dtype, got int64"):
        MultiHeadAttention(4, 2, dtype=np.int64)
    assert numpy_path().layer(4, 2)([[1, 2, 3, 4]]).shape == (1, 4)


@pytest.mark.parametrize(
    "sizes, options, error, words",
    [
        ((5, 2), {}, ValueError, "embed_dim must be divisible by num_heads, got 5 and 2"),
        ((0, 1), {}, ValueError, "embed_dim must be an integer >= 1, got 0"),
        ((8, -2), {}, ValueError, "num_heads must be an integer >= 1, got -2"),
        ((8, 2.0), {}, TypeError, "num_heads must be an integer >= 1, got 2.0"),
        ((8, 4), {"num_kv_heads": 3}, ValueError, "num_heads must be a multiple of num_kv_heads, got 4 and 3"),
        ((8, 2), {"head_dim": 0}, ValueError, "head_dim must be an integer >= 1"),
        ((8, 2), {"kdim": -1}, ValueError, "kdim must be an integer >= 1"),
        ((8, 2), {"rope": "spiral"}, ValueError, 'rope must be None, "interleaved" or "halves", got .spiral.'),
        ((6, 2), {"rope": "halves"}, ValueError, "head_dim must be even, got 3"),
        ((8, 2), {"rope_base": 0.0}, ValueError, "rope_base must be a positive number, got 0.0"),
    ],
)
def test_bad_sizes(path, sizes, options, error, words):
    with pytest.raises(error, match=words):
        path.module.MultiHeadAttention(*sizes, **options)


@pytest.mark.parametrize(
    "inputs, options, error, words",
    [
        (
            [(3, 7)],
            {},
            ValueError,
            r"query must have the axes \(\.\.\., L, E\) with a last axis of 8, got shape \(3, 7\)",
        ),
        ([(8,)], {}, ValueError, "query must have the axes"),
        ([(2, 3, 8), (3, 8)], {}, ValueError, "query, key and value must have the same leading axes"),
        (
            [(3, 8), (4, 8), (5, 8)],
            {},
            ValueError,
            r"key and value must have the same length S, got \(4, 8\) and \(5, 8\)",
        ),
        ([(3, 8), (4, 7)], {}, ValueError, r"key must have the axes \(\.\.\., S, kdim\) with a last axis of 8"),
        ([(3, 8)], {"bias": np.ones((3, 3), bool)}, TypeError, "pass a boolean mask as mask="),
        ([(3, 8)], {"mask": np.ones((3, 3))}, TypeError, "mask must be boolean"),
        ([(3, 8)], {"mask": np.ones((3, 4), bool)}, ValueError, "mask must broadcast"),
    ],
)
def test_bad_calls(path, inputs, options, error, words):
    layer = path.layer(8, 2)
    with pytest.raises(error, match=words):
        path.call(layer, *(np.zeros(shape, np.float32) for shape in inputs), **options)


def test_a_cache_needs_self_attention_on_a_batch(path):
    layer, x = path.layer(8, 2), np.zeros((1, 2, 8), np.float32)
    cache = path.module.KVCache(1, 2, 4, 4)
    with pytest.raises(ValueError, match="cache needs self-attention"):
        path.call(layer, x, x, cache=cache)
    with pytest.raises(ValueError, match=r"key must have the shape \(B, H_kv, n, D\) = \(1, 2, n, 4\)"):
        path.call(layer, x[0], cache=cache)
    assert len(cache) == 0


# ---------------------------------------------------------------------------------------------------------------- from_arrays
def arrays_of(path, layer):
    """The layer's arrays as a namespace; a bias that it lacks is missing there."""
    named = {name: path.take(getattr(layer, name)) for name in weights_of(layer)}
    return SimpleNamespace(num_heads=layer.num_heads, **{name: x for name, x in named.items() if x is not None})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_kv_heads": 2, "head_dim": 6, "kdim": 5, "vdim": 7},
        {"bias": False},
        {"rope": "halves", "rope_base": 9.0},
    ],
    ids=str,
)
def test_from_arrays_makes_a_layer_again(path, rng, options):
    layer = path.layer(8, 4, **options)
    rope = {name: options[name] for name in ("rope", "rope_base") if name in options}
    again = path.module.MultiHeadAttention.from_arrays(arrays_of(path, layer), **rope)
    assert again.num_kv_heads == layer.num_kv_heads and (again.b_Q is None) == (layer.b_Q is None)
    inputs = [rng.standard_normal((3, n)).astype(np.float32) for n in (8, layer.kdim, layer.vdim)]
    close(path.call(again, *inputs), path.call(layer, *inputs))


def test_from_arrays_copies_into_another_dtype(path):
    arrays = arrays_of(path, path.layer(8, 2))
    dtype = np.float64 if path.name == "numpy" else pytest.importorskip("torch").float64
    mha = path.module.MultiHeadAttention.from_arrays(arrays, dtype=dtype)
    arrays.W_Q[:] = 0
    for name, x in weights_of(mha).items():
        assert path.take(getattr(mha, name)).dtype == np.float64 and np.abs(x).max() > 0, name


@pytest.mark.parametrize(
    "name, shape, message",
    [
        ("W_Q", (8, 7), r"W_Q and W_K must hold whole heads, got 7 and 8 columns for num_heads=2"),
        ("W_K", (8, 6), r"W_Q and W_K must hold whole heads, got 8 and 6 columns for num_heads=2"),
        ("W_V", (8, 4), r"W_V must have the shape \(8, 8\), got \(8, 4\)"),
        ("W_O", (8, 4), r"W_O must have the shape \(8, 8\), got \(8, 4\)"),
        ("b_K", (1,), r"b_K must have the shape \(8,\), got \(1,\)"),
    ],
)
def test_from_arrays_names_what_does_not_fit(path, name, shape, message):
    arrays = arrays_of(path, path.layer(8, 2))
    setattr(arrays, name, np.zeros(shape, np.float32))
    with pytest.raises(ValueError, match=message):
        path.module.MultiHeadAttention.from_arrays(arrays)
