"""flash_attention and its backward: the same as the readable functions, by tiles, in linear memory, without leftover threads."""

import math
import threading
import timeit
import tracemalloc

import numpy as np
import pytest
import reference
from common import TOLERANCE, close
from hypothesis import given
from hypothesis import strategies as st

from mha_lib.numpy import (
    _workers,
    flash,
    flash_attention,
    flash_attention_backward,
    scaled_dot_product_attention,
    scaled_dot_product_attention_backward,
)

inf, nan = np.inf, np.nan


def qkv(rng, H=2, H_kv=None, L=300, S=700, D=16, D_v=8, dtype=np.float64, size=1.0):
    shapes = (2, H, L, D), (2, H_kv or H, S, D), (2, H_kv or H, S, D_v)
    return [(size * rng.standard_normal(shape)).astype(dtype) for shape in shapes]


def check(query, key, value, tolerance=None, **options):
    """Output and gradients against the readable functions in float64."""
    wide = [np.asarray(x, np.float64) for x in (query, key, value)]
    output = flash_attention(query, key, value, **options)
    assert output.dtype == query.dtype
    want = scaled_dot_product_attention(*wide, **options)
    close(output, want, tolerance)
    grad_output = np.random.default_rng(9).standard_normal(want.shape).astype(query.dtype)
    grads = flash_attention_backward(grad_output, query, key, value, **options)
    expected = scaled_dot_product_attention_backward(grad_output, *wide, **options)
    largest = max(np.abs(x).max(initial=0) for x in expected)
    for grad, right in zip(grads, expected, strict=True):
        assert grad.dtype == query.dtype and grad.shape == right.shape
        np.testing.assert_allclose(grad, right, rtol=0, atol=largest * (tolerance or TOLERANCE[str(query.dtype)]))
    return output


OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "bottom right": {"is_causal": True, "query_offset": 400},
    "before the keys": {"is_causal": True, "query_offset": -100},
    "scale 0": {"scale": 0.0},
    "negative scale": {"scale": -0.5, "is_causal": True},
    "softcap": {"softcap": 3.0},
    "mask": {"mask": np.random.default_rng(1).random((2, 1, 300, 700)) > 0.5},
    "padding": {"mask": np.arange(700) < np.array([650, 0])[:, None, None, None]},
    "mask over heads": {"mask": np.random.default_rng(2).random((2, 2, 1, 700)) > 0.9},
    "window": {"mask": np.abs(np.arange(300)[:, None] - np.arange(700)) < 20},
    "bias": {"bias": np.random.default_rng(3).standard_normal((300, 700))},
    "bias with -inf": {"bias": np.where(np.random.default_rng(3).random((1, 2, 1, 700)) > 0.5, 1.0, -inf)},
    "large bias": {"bias": np.linspace(-400, 400, 700)},
    "all": {"mask": np.random.default_rng(4).random((300, 700)) > 0.2, "bias": np.linspace(-2, 2, 700), "is_causal": True,
            "query_offset": 300, "softcap": 2.0, "scale": 0.4},
}  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_options(rng, options, dtype):
    # a bias of size 400 in float32 carries an error of 400 * 6e-8 into the exponent
    tolerance = (
        5e-5 if dtype == np.float32 and "large" in str([n for n, o in OPTIONS.items() if o is options]) else None
    )
    check(*qkv(rng, dtype=dtype), tolerance or (2e-6 if dtype == np.float32 else None), **options)


@pytest.mark.parametrize("H, H_kv", [(1, 1), (4, 2), (3, 1)])
@pytest.mark.parametrize("L, S", [(1, 1), (1, 600), (600, 1), (7, 13), (127, 129), (128, 128), (257, 513), (512, 1024)])
def test_lengths_around_the_tiles(rng, H, H_kv, L, S):
    check(*qkv(rng, H, H_kv, L, S), is_causal=L <= S)


def test_two_three_and_five_axes(rng):
    q, k, v = qkv(rng)
    want = check(q, k, v)
    close(check(q[1], k[1], v[1]), want[1])
    close(check(q[1, 0], k[1, 0], v[1, 0]), want[1, 0])
    close(check(q[None], k[None], v[None], mask=np.ones((2, 1, 1, 1), bool)), want[None])
    hidden = rng.random((300, 700)) > 0.5
    for options in ({"mask": hidden}, {"mask": hidden[:1]}, {"bias": np.where(hidden, 1.0, -inf)}):
        close(check(q[1, 0], k[1, 0], v[1, 0], **options), check(q[1], k[1], v[1], **options)[0])


@pytest.mark.parametrize("size", [1e-20, 1e-3, 1.0, 6.0, 30.0, 1e3, 1e12])
@pytest.mark.parametrize("which", ["query", "value"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_size_of_the_inputs(rng, size, which, dtype):
    """From far below to far above the bound under which no maximum is subtracted."""
    q, k, v = qkv(rng, L=150, dtype=np.float64)
    q, v = (size * q, v) if which == "query" else (q, size * v)
    q, k, v = (x.astype(dtype) for x in (q, k, v))
    want = scaled_dot_product_attention(q, k, v, is_causal=True, query_offset=500)
    largest = float(np.abs(np.einsum("bhld,bhsd->bhls", q, k, dtype=np.float64)).max() / 4)
    tolerance = TOLERANCE[q.dtype.name] * max(1, largest / 5)  # a score carries its relative error into the exponent
    close(flash_attention(q, k, v, is_causal=True, query_offset=500), want, tolerance)


def test_the_bound_of_the_shortcut_is_just_met_and_just_missed(rng):
    """All mass on one key, scores as large as Cauchy-Schwarz allows, on both sides of 2 ** 60."""
    for length in (6.4, 6.5):  # length ** 2 * log2(e) is 59.1 and 60.95
        q = np.zeros((1, 200, 4), np.float32)
        k = np.zeros((1, 300, 4), np.float32)
        q[..., 0], k[..., 0] = length, -length
        k[:, 7, 0] = length
        v = rng.standard_normal((1, 300, 5)).astype(np.float32)
        problem = flash._prepare(q, k, v, None, None, False, 0, 1.0, None)
        assert problem.bounded == (length == 6.4) and problem.tame
        close(flash_attention(q, k, v, scale=1.0), np.broadcast_to(v[:, 7:8], (1, 200, 5)))


def test_one_score_for_all_keys(rng):
    q, k, v = np.zeros((1, 300, 4)), np.full((1, 1500, 4), 1e6), rng.standard_normal((1, 1500, 3))
    for query in (q, q + 1e6):
        close(flash_attention(query, k, v), np.broadcast_to(v.mean(1, keepdims=True), (1, 300, 3)))


def test_the_largest_score_comes_last_and_first(rng):
    """The online maximum is rescaled in every tile, or in none after the first."""
    q, v = np.ones((1, 4, 1)), rng.standard_normal((1, 2000, 3))
    for ramp in (np.linspace(-300, 300, 2000), np.linspace(300, -300, 2000)):
        check(q, ramp[None, :, None], v, scale=1.0)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("where", ["query", "key", "value"])
def test_nan_and_inf(rng, bad, where):
    inputs = dict(zip(("query", "key", "value"), qkv(rng, L=200, S=200), strict=True))
    inputs[where][:, :, 150:, :1] = bad
    for options in ({}, {"is_causal": True}, {"mask": np.arange(200) < 150}):
        close(flash_attention(**inputs, **options), scaled_dot_product_attention(**inputs, **options))
        grad = np.ones((2, 2, 200, 8))
        got, want = (
            f(grad, **inputs, **options) for f in (flash_attention_backward, scaled_dot_product_attention_backward)
        )
        for a, b in zip(got, want, strict=True):
            close(a, b, 1e-10)


def test_bias_of_nan_shows(rng):
    q, k, v = qkv(rng, L=3, S=4)
    output = flash_attention(q, k, v, bias=np.array([[0.0], [nan], [0.0]]))
    assert np.isnan(output[..., 1, :]).all() and np.isfinite(output[..., 0, :]).all()


@pytest.mark.parametrize("shape", [(2, 0, 5), (2, 3, 0), (0, 3, 5)])
def test_empty_axes(shape):
    H, L, S = shape
    q, k, v = np.zeros((H, L, 4), np.float32), np.zeros((H, S, 4), np.float32), np.zeros((H, S, 6), np.float32)
    assert flash_attention(q, k, v).shape == (H, L, 6)
    assert [x.shape for x in flash_attention_backward(np.zeros((H, L, 6)), q, k, v)] == [q.shape, k.shape, v.shape]
    for options in ({"mask": np.ones((H, L, S), bool)}, {"bias": np.ones((H, L, S))}, {"mask": np.ones((L, S), bool)}):
        assert (flash_attention(q, k, v, **options) == scaled_dot_product_attention(q, k, v, **options)).all()


def test_float16_integers_and_lists(rng):
    q, k, v = qkv(rng, dtype=np.float16)
    output = flash_attention(q, k, v)
    assert output.dtype == np.float16
    close(output, scaled_dot_product_attention(*(x.astype(np.float64) for x in (q, k, v))), 2e-3)
    assert flash_attention([[1, 2]], [[1, 0]], [[3, 4]]).tolist() == [[3.0, 4.0]]


def test_inputs_are_not_modified_and_may_be_views(rng):
    q, k, v = (x[..., ::-1] for x in qkv(rng))
    for x in (q, k, v):
        x.setflags(write=False)
    check(q, k, v)


@pytest.mark.parametrize("options, error", [({"mask": np.ones((3, 3))}, TypeError), ({"mask": np.ones((7, 7), bool)}, ValueError),
                                            ({"query_offset": 1}, ValueError), ({"softcap": 0}, ValueError)])  # fmt: skip
def test_bad_input_is_told_as_by_the_readable_function(rng, options, error):
    inputs = qkv(rng, L=3, S=4)
    with pytest.raises(error) as told:
        scaled_dot_product_attention(*inputs, **options)
    for call in (flash_attention, lambda *x, **o: flash_attention_backward(np.zeros((2, 2, 3, 8)), *x, **o)):
        with pytest.raises(error) as caught:
            call(*inputs, **options)
        assert str(caught.value) == str(told.value)


@st.composite
def problem(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    H_kv, group, D, D_v = (draw(st.integers(1, n)) for n in (2, 3, 9, 9))
    L, S = draw(st.integers(1, 300)), draw(st.integers(1, 1100))
    q, k, v = (rng.standard_normal(s) for s in ((H_kv * group, L, D), (H_kv, S, D), (H_kv, S, D_v)))
    options = {"scale": draw(st.sampled_from([None, 0.1, 5.0])), "softcap": draw(st.sampled_from([None, 2.0]))}
    if draw(st.booleans()):
        options |= {"is_causal": True, "query_offset": draw(st.integers(-5, S))}
    if draw(st.booleans()):
        options["mask"] = rng.random((draw(st.sampled_from([1, L])), S)) > draw(st.sampled_from([0.1, 0.99]))
    if draw(st.booleans()):
        options["bias"] = rng.standard_normal((H_kv * group, 1, S)) * draw(st.sampled_from([1.0, 100.0]))
    return q, k, v, options


@given(problem())
def test_random_problems(given_problem):
    q, k, v, options = given_problem
    check(q, k, v, 1e-11, **options)


def test_small_problems_equal_the_loops(rng):
    q, k, v = (x[:, :, :9] for x in qkv(rng, D=3))
    options = OPTIONS["softcap"] | {"is_causal": True}
    close(flash_attention(q, k, v, **options), reference.attention(q, k, v, **options)[0])


@pytest.mark.parametrize("shape", [(2, 1, 512, 512), (1, 8, 512, 512), (1, 8, 1, 512), (512, 512)])
def test_a_mask_is_not_copied_for_each_head(shape):
    mask = np.random.default_rng(1).random(shape) > 0.1
    q, k, v = np.random.default_rng(0).standard_normal((3, 2, 8, 512, 16)).astype(np.float32)
    tracemalloc.start()
    try:
        flash_attention(q, k, v, mask=mask)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6e6, f"{peak / 1e6:.1f} MB"  # one copy of the mask for each of the 16 heads would take 4 MB more


@pytest.mark.parametrize("backward", [False, True])
def test_memory_is_linear_in_the_length(backward):
    """At L = 4096 the weights of one head alone take 67 MB; the output and the gradients here take 1 to 4 MB."""
    q, k, v = np.random.default_rng(0).standard_normal((3, 1, 2, 4096, 32)).astype(np.float32)
    tracemalloc.start()
    try:
        flash_attention_backward(q, q, k, v, is_causal=True) if backward else flash_attention(q, k, v, is_causal=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < (24e6 if backward else 12e6), f"{peak / 1e6:.1f} MB"


def test_no_thread_is_left_and_an_error_in_a_worker_comes_out(rng):
    before = threading.active_count()
    flash_attention(*qkv(rng, H=8))
    assert threading.active_count() == before

    def fail(share, shares):
        if share == shares - 1:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        _workers.run(fail, 4)
    assert threading.active_count() == before


def test_one_worker_where_blas_cannot_be_held(monkeypatch, rng):
    monkeypatch.setattr(_workers, "_blas", lambda: None)
    calls = []
    _workers.run(lambda share, shares: calls.append((share, shares)), 8)
    assert calls == [(0, 1)]
    check(*qkv(rng))


def test_never_more_workers_than_cores_or_items(monkeypatch):
    if _workers._blas() is None:
        pytest.skip("threadpoolctl is not installed")
    monkeypatch.setattr(_workers, "available_cores", lambda: 3)
    for count, want in ((8, 3), (2, 2), (1, 1)):
        calls = []
        _workers.run(lambda share, shares, calls=calls: calls.append((share, shares)), count)
        assert sorted(calls) == [(i, want) for i in range(want)]


def test_faster_than_the_readable_function(rng):
    """A loose bound on what tiles are for; `make bench` measures. The best of up to twenty each, since other tests take a core at times."""
    q, k, v = rng.standard_normal((3, 1, 8, 2048, 64), dtype=np.float32)
    best = dict.fromkeys((scaled_dot_product_attention, flash_attention), math.inf)
    for attend in best:
        attend(q, k, v, is_causal=True)
    for rounds in range(1, 21):
        for attend in best:
            best[attend] = min(best[attend], timeit.timeit(lambda f=attend: f(q, k, v, is_causal=True), number=1))
        if rounds >= 3 and best[scaled_dot_product_attention] > 3 * best[flash_attention]:
            return
    pytest.fail(
        f"the readable function takes {best[scaled_dot_product_attention] / best[flash_attention]:.2f} times as long, not 3"
    )
