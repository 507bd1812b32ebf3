"""Faults of attention that people have reported in public, each as a small case with the reports it comes from.

The kinds are tested at large in the other modules; here stands, for each, the input on which somebody's code went wrong.
"""

import tracemalloc

import numpy as np
import pytest
import reference
from common import close, numpy_path, torch_path

inf, nan = np.inf, np.nan


def reports(*ids):
    """Name the public reports that a test stands for."""
    return pytest.mark.reports(*ids)


def rnd(seed, *shape, dtype=np.float32):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def qkv(seed, B=1, H=1, L=3, S=None, D=4, H_kv=None, dtype=np.float32):
    S = S or L
    return [
        rnd(seed + i, B, heads, n, D, dtype=dtype)
        for i, (heads, n) in enumerate(((H, L), (H_kv or H, S), (H_kv or H, S)))
    ]


def check(path, q, k, v, tolerance=3e-6, **options):
    want, want_weights = reference.attention(q, k, v, **options)
    output, weights = path.scaled_dot_product_attention(q, k, v, return_weights=True, **options)
    close(output, want, tolerance)
    close(weights, want_weights, tolerance)
    close(path.scaled_dot_product_attention(q, k, v, **options), want, tolerance)
    close(path.flash_attention(q, k, v, **options), want, tolerance)
    return output, weights


# ------------------------------------------------------------------------------------------------- rows with nothing to see
@reports("pytorch#103963", "pytorch#131060", "mlx#2395", "burn#4697")
def test_a_fully_masked_row_is_zero(path):
    output, weights = check(path, *qkv(0, L=2), mask=np.array([[False, False], [True, True]]))
    assert (output[0, 0, 0] == 0).all() and (weights[0, 0, 0] == 0).all()


@reports("pytorch#160064", "pytorch#152028", "pytorch#189045")
def test_a_masked_head_adds_nothing_with_weights_or_without(path):
    layer, x, mask = path.layer(3, 3), rnd(11, 1, 2, 3), np.ones((3, 2, 2), bool)
    mask[2] = False
    output = path.call(layer, x, mask=mask)
    assert np.isfinite(output).all()
    close(path.call(layer, x, mask=mask, return_weights=True)[0], output)


@reports("pytorch#81077", "d2l-en#2423", "pytorch#27968", "vllm-fork#318")
def test_a_sequence_of_length_zero(path):
    q, k, v = qkv(13, B=2, L=2)
    output, _ = check(path, q, k, v, mask=path.padding_mask(np.array([2, 0]), 2))
    assert (output[1] == 0).all()
    layer, x = path.layer(4, 2), rnd(15, 2, 2, 4)
    b_O = np.array(layer.b_O.tolist(), np.float32)
    close(path.call(layer, x, mask=path.padding_mask(np.array([2, 0]), 2))[1], np.tile(b_O, (2, 1)))


# -------------------------------------------------------------------------------------------------------- what a mask means
@reports("pytorch#170415", "LLMs-from-scratch#1061", "torchTextClassifiers#92")
def test_true_means_may_attend(path):
    check(path, *qkv(20), mask=np.tri(3, dtype=bool))


@reports("pytorch#120668", "pytorch#27968")
def test_the_other_polarity_of_the_module_is_turned_round():
    from mha_lib.interop import masks_from_torch

    mask, bias = masks_from_torch(
        np.triu(np.ones((3, 3), bool), 1), np.array([[False, False, True], [False, True, True]])
    )
    lengths = numpy_path().padding_mask(np.array([2, 1]), 3)
    assert (mask == (np.tri(3, dtype=bool) & lengths)).all() and bias is None


@reports("pytorch#21518", "flash-sparse-attention#146", "pytorch#117939")
def test_numbers_are_added_and_booleans_block(path):
    q, k, v = qkv(23, L=2, S=3)
    bias = np.array([[1, 0, 1], [0, 0, 1]], np.float32)
    check(path, q, k, v, bias=bias)
    check(path, q, k, v, mask=bias.astype(bool))


@reports("pytorch#107084", "pytorch#107641")
def test_a_finite_float_mask_is_not_taken_for_a_boolean_one(path):
    layer, x, bias = path.layer(8, 2), rnd(26, 1, 3, 8), rnd(27, 3, 3)
    close(path.call(layer, x, bias=bias), path.call(layer, x, bias=bias, return_weights=True)[0], 2e-6)


@reports("pytorch#92733", "depthcharge#30")
def test_a_mask_and_a_bias_both_act(path):
    q, k, v = qkv(31, B=2, H=2)
    bias = np.array([[0, -inf, -inf], [0.3, 0, -inf], [0, -0.7, 0]], np.float32)
    check(path, q, k, v, mask=path.padding_mask(np.array([2, 3]), 3), bias=bias)


@reports("tt-metal#42891", "tt-metal#56406")
def test_the_bias_is_not_scaled(path):
    check(path, *qkv(33, L=2, S=3), bias=np.array([[5, 0, -5], [0, 3, 0]], np.float32), scale=0.1)


@reports("memory-compressed-attention#2", "vigg_ribonanza#1", "flamingo-pytorch#10")
def test_the_mask_acts_before_the_softmax(path):
    _, weights = check(
        path, *qkv(35, L=2, S=4), mask=np.array([[True, True, False, False], [False, True, True, False]])
    )
    close(weights.sum(-1), np.ones((1, 1, 2)))


@reports("pytorch#130209", "pytorch#177482")
@pytest.mark.parametrize(
    "shape", [(1, 4), (2, 4), (1, 1, 2, 4), (2, 1, 1, 4), (2, 1, 2, 4), (1, 3, 2, 4), (2, 3, 2, 4)]
)
def test_masks_broadcast_from_the_right(path, shape):
    q, k, v = qkv(39, B=2, H=3, L=2, S=4)
    bias = rnd(40, *shape)
    check(path, q, k, v, bias=bias)
    check(path, q, k, v, mask=bias > -1)


@reports("lighthouse#77", "CLIP4Clip#22", "pytorch#64706", "pytorch#97409", "pytorch#97605")
def test_a_mask_per_sample_and_head_is_sample_major():
    from mha_lib.interop import masks_from_torch

    given = np.arange(4 * 3 * 3).reshape(4, 3, 3) % 5 == 0
    mask, _ = masks_from_torch(given, num_heads=2)
    assert all((mask[n, h] == ~given[n * 2 + h]).all() for n in range(2) for h in range(2))


@reports("pytorch#27461")
def test_an_extra_zero_key_is_refused_rather_than_forgotten_in_the_mask():
    torch = pytest.importorskip("torch")
    from mha_lib.interop import from_torch

    with pytest.raises(ValueError, match="add_zero_attn"):
        from_torch(torch.nn.MultiheadAttention(4, 2, add_zero_attn=True))


# ------------------------------------------------------------------------------------------------------------------- causal
@reports("pytorch#126873", "pytorch#108108", "mlx#2835", "openvino#36680", "ffpa-attn#316")
@pytest.mark.parametrize("L, S", [(2, 5), (4, 2)])
def test_causal_with_other_lengths_aligns_as_told(path, L, S):
    for offset in (0, S - L):
        check(path, *qkv(42, L=L, S=S), is_causal=True, query_offset=offset)


@reports("flax#5592", "pytorch#103082", "x-transformers#187", "gpt-neox#1178", "LLMs-from-scratch#697")
def test_a_new_token_sees_the_whole_cache(path):
    layer, x = path.layer(8, 2), rnd(141, 1, 4, 8)
    cache = path.module.KVCache(1, 2, 4, 4)
    steps = [path.call(layer, x[:, t : t + 1], is_causal=True, cache=cache) for t in range(4)]
    close(np.concatenate(steps, 1), path.call(layer, x, is_causal=True), 2e-6)


@reports(
    "transformers#39408", "transformers#40163", "mlx-lm#390", "vllm#3385", "transformers#29176", "flash-attention#1133"
)
@pytest.mark.parametrize("L, S, window", [(5, 5, 2), (5, 5, 1), (2, 6, 3)])
def test_a_window_holds_window_keys_in_absolute_positions(path, L, S, window):
    mask = path.sliding_window_mask(L, S, window, offset=S - L)
    assert (mask.sum(-1) == np.minimum(window, np.arange(S - L, S) + 1)).all() and mask[:, -1].sum() == 1


# ------------------------------------------------------------------------------------------------------------------ numbers
@reports("pytorch#60939", "tinygrad#4985", "flash-attention#49", "onnx#6501")
def test_float16_scores_do_not_overflow(path):
    q = np.full((1, 1, 2, 64), 300, np.float16)
    check(path, q, q.copy(), rnd(57, 1, 1, 2, 64, dtype=np.float16), tolerance=2e-3)


@reports("jax#34114", "flax#3571")
def test_float64_stays_float64(path):
    output, _ = check(path, *qkv(61, D=8, dtype=np.float64), tolerance=1e-12)
    assert output.dtype == np.float64
    assert path.scaled_dot_product_attention(*qkv(61)).dtype == np.float32


@reports("PyTorch-NLP#2", "annotated_deep_learning_paper_implementations#146", "fastNLP#254", "llms-from-scratch-rs#30")
def test_the_softmax_runs_over_the_keys_where_all_sizes_are_alike(path):
    q, k, v = qkv(63, B=3, H=3, D=3)
    check(path, 2 * q, k, v)


@reports("pytorch#125158", "pytorch#135710")
@pytest.mark.parametrize("scale", [1.0, 0.0, -2.0, 0.125])
def test_a_scale_is_used_as_given(path, scale):
    check(path, *qkv(70, L=2, S=3), scale=scale)


@reports("pytorch#101967")
@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("where", [1, 2])
def test_garbage_behind_a_mask_does_not_leak(path, bad, where):
    inputs = qkv(72, L=2, S=3)
    inputs[where][..., 2, :] = bad
    check(path, *inputs, mask=np.array([[True, True, False], [True, False, False]]))


@reports("pytorch#60939", "cs336/assignment1-basics")
def test_large_scores(path):
    q, k, v = qkv(76, D=2)
    check(path, 200 * q, 200 * k, v, tolerance=1e-3)


# -------------------------------------------------------------------------------------------------------------------- heads
@reports("FuxiCTR#30", "transformer#15", "Chinese-Text-Classification-Pytorch#53")
def test_heads_are_slices_of_features_not_of_positions(path):
    layer, x = path.layer(4, 2, bias=False), np.arange(12, dtype=np.float32).reshape(1, 3, 4) / 5
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        weight = getattr(layer, name)
        if path.name == "numpy":
            weight[:] = np.eye(4)
        else:
            weight.data.copy_(path.give(np.eye(4, dtype=np.float32)))
    want = np.concatenate([reference.attention(*[x[0][:, c]] * 3)[0] for c in (slice(0, 2), slice(2, 4))], -1)
    close(path.call(layer, x)[0], want, 2e-6)


@reports("episodic-transformer-memory-ppo#22", "d2l-en#2056")
def test_each_head_has_columns_of_its_own(path):
    layer, x, y = path.layer(6, 3), rnd(79, 2, 2, 6), rnd(80, 2, 3, 6)
    _, weights = path.call(layer, x, y, return_weights=True)
    assert all(np.abs(weights[:, a] - weights[:, b]).max() > 0.01 for a, b in ((0, 1), (1, 2), (0, 2)))


@reports("text#1432", "ml-agents#4840", "Point-MAE#24")
def test_a_width_that_does_not_divide_is_an_error(path):
    with pytest.raises(ValueError, match="embed_dim must be divisible by num_heads, got 5 and 2"):
        path.module.MultiHeadAttention(5, 2)


@reports("pytorch#52545", "pytorch#88669", "pytorch#97128")
def test_without_bias_there_is_none_and_an_odd_number_of_heads_works(path):
    layer, x, mask = path.layer(9, 3, bias=False), rnd(91, 2, 3, 9), path.padding_mask(np.array([2, 0]), 3)
    assert layer.b_O is None and (path.call(layer, x, mask=mask)[1] == 0).all()
    close(path.call(layer, x, mask=mask), path.call(layer, x, mask=mask, return_weights=True)[0], 2e-6)


@reports("pytorch#34537", "pytorch#47583", "fairseq#3365", "pytorch#82430")
def test_weights_come_per_head(path):
    layer, x, y = path.layer(4, 2), rnd(94, 2, 2, 4), rnd(95, 2, 3, 4)
    output, weights = path.call(layer, x, y, return_weights=True)
    assert weights.shape == (2, 2, 2, 3)
    close(path.call(layer, x, y), output, 2e-6)


@reports("onnx#7274", "axlearn#842", "grouped-query-attention-pytorch#5")
@pytest.mark.parametrize("H, H_kv", [(4, 2), (3, 1)])
def test_grouped_heads_are_repeated_not_tiled(path, H, H_kv):
    check(path, *qkv(107, B=2, H=H, H_kv=H_kv, L=2, S=3))


@reports("flash-linear-attention#1029", "keras#23081", "polaris#412")
def test_groups_that_do_not_divide_are_an_error(path):
    with pytest.raises(ValueError, match="query heads must be a multiple of the key heads, got 3 and 2"):
        path.scaled_dot_product_attention(*qkv(118, H=3, H_kv=2, L=2))


# ----------------------------------------------------------------------------------------------------------- shapes, memory
@reports("flash-attention#2470", "pytorch#141219", "pytorch#141218", "FlashMLA#92")
def test_empty_sequences(path):
    q, k, v = qkv(120, L=2, S=3)
    for options in ({}, {"is_causal": True}):
        assert (
            path.scaled_dot_product_attention(q, k[:, :, :0], v[:, :, :0], **options) == np.zeros((1, 1, 2, 4))
        ).all()
    assert path.scaled_dot_product_attention(q[:, :, :0], k, v).shape == (1, 1, 0, 4)


@reports("flash-attention#1159", "pytorch#195812", "cudnn-frontend#101")
def test_an_empty_batch(path):
    output = path.scaled_dot_product_attention(*(x[:0] for x in qkv(123, H=2, L=2, S=3)))
    assert output.shape == (0, 2, 2, 4) and output.dtype == np.float32


@reports("none: a rule of our own")
def test_inputs_are_not_modified(path):
    q, k, v = qkv(129)
    mask, bias = np.tri(3, dtype=bool), rnd(132, 3, 3)
    kept = [x.copy() for x in (q, k, v, mask, bias)]
    first = path.scaled_dot_product_attention(q, k, v, mask=mask, bias=bias)
    assert all((x == y).all() for x, y in zip((q, k, v, mask, bias), kept, strict=True))
    assert (path.scaled_dot_product_attention(q, k, v, mask=mask, bias=bias) == first).all()


@reports("tensorflow#60626", "tensorflow#58726")
def test_two_three_and_four_axes_agree(path):
    q, k, v = qkv(133, L=2, S=3)
    output, _ = check(path, q, k, v)
    close(check(path, q[0], k[0], v[0])[0], output[0])
    close(check(path, q[0, 0], k[0, 0], v[0, 0])[0], output[0, 0])


@reports("RT-DETR#680", "keras#20448")
def test_without_weights_memory_is_not_quadratic():
    q, k, v = qkv(135, L=4096, D=16)
    tracemalloc.start()
    try:
        numpy_path().flash_attention(q, k, v, is_causal=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4096 * 4096 * 4 / 4


@reports("pytorch#124464", "pytorch#99293", "pytorch-image-models#1978", "torchtune#1791", "torch-harmonics#221")
def test_dropout_is_off_in_eval():
    torch = pytest.importorskip("torch")
    path = torch_path()
    layer, x = path.layer(4, 2, dropout=0.9).eval(), torch.from_numpy(rnd(137, 1, 3, 4))
    assert torch.equal(layer(x), layer(x))


@reports("nanochat#264", "LLMs-from-scratch#838", "LLMs-from-scratch#750", "ERNIE-Image#6", "transformers#39687")
def test_both_conventions_of_rope(path):
    x, positions = rnd(147, 1, 2, 3, 6, dtype=np.float64), np.array([0, 1, 5])
    pairs = {True: x[..., 0::2] + 1j * x[..., 1::2], False: x[..., :3] + 1j * x[..., 3:]}
    for interleaved, z in pairs.items():
        z = z * np.exp(1j * positions[:, None] * 10000.0 ** (-2 * np.arange(3) / 6))
        want = np.stack((z.real, z.imag), -1).reshape(x.shape) if interleaved else np.concatenate((z.real, z.imag), -1)
        close(path.rope(x, positions, interleaved=interleaved), want)
