"""attention_scores and scaled_dot_product_attention, in both paths, against the loops of reference.py."""

import math

import numpy as np
import pytest
import reference
from common import close

inf, nan = math.inf, math.nan


def qkv(rng, *lead, H=None, H_kv=None, L=3, S=4, D=4, D_v=None, dtype=np.float64):
    """Random query, key, value; 2-D without H."""
    heads, kv_heads = ((), ()) if H is None else ((H,), (H_kv or H,))
    shapes = (*lead, *heads, L, D), (*lead, *kv_heads, S, D), (*lead, *kv_heads, S, D_v or D)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def check(path, q, k, v, tolerance=None, **options):
    """Output and weights against the loops, and the call without weights (in torch another kernel) against both."""
    want, want_weights = reference.attention(q, k, v, **options)
    output, weights = path.scaled_dot_product_attention(q, k, v, return_weights=True, **options)
    close(output, want, tolerance)
    close(weights, want_weights, tolerance)
    close(path.scaled_dot_product_attention(q, k, v, **options), want, tolerance)
    assert output.dtype == weights.dtype == q.dtype
    return output, weights


SHAPES = {
    "2-D": dict(),
    "3-D": dict(H=3),
    "4-D": dict(H=3, lead=(2,)),
    "5-D": dict(H=2, lead=(2, 3)),
    "one key": dict(H=2, S=1),
    "one head of width 1": dict(H=1, D=1),
    "wide values": dict(H=2, D_v=7),
    "grouped": dict(H=4, H_kv=2, lead=(2,)),
    "one key head": dict(H=3, H_kv=1),
    "grouped 5-D": dict(H=4, H_kv=2, lead=(2, 1)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"scale": 0.3, "softcap": 1.5}], ids=str)
def test_shapes(path, rng, shape, options):
    sizes = dict(SHAPES[shape])
    check(path, *qkv(rng, *sizes.pop("lead", ()), **sizes), **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes(path, rng, dtype):
    check(path, *qkv(rng, 2, H=3, dtype=dtype))


@pytest.mark.parametrize(
    "shape", [(4,), (1, 4), (3, 4), (3, 1), (1, 1, 4), (2, 1, 4), (2, 3, 4), (5, 1, 1, 4), (5, 2, 3, 4)]
)
def test_masks_and_biases_broadcast_from_the_right(path, rng, shape):
    q, k, v = qkv(rng, 5, H=2)
    bias = rng.standard_normal(shape)
    check(path, q, k, v, bias=bias)
    check(path, q, k, v, mask=bias > -0.5)
    check(path, q, k, v, mask=bias > -0.5, bias=2 * bias, is_causal=True)


@pytest.mark.parametrize("shape", [(2, 3, 1, 1, 4), (2, 1, 1, 3, 4), (1, 3, 2, 3, 1), (3, 1, 3, 4), (2, 3, 4), (3, 4)])
def test_masks_broadcast_over_two_batch_axes(path, rng, shape):
    check(path, *qkv(rng, 2, 3, H=2), mask=rng.random(shape) > 0.4)


@pytest.mark.parametrize(
    "L, S, offset", [(3, 3, 0), (2, 5, 0), (2, 5, 3), (4, 2, 0), (4, 2, -2), (1, 6, 5), (3, 4, -1)]
)
def test_causal_with_offset(path, rng, L, S, offset):
    check(path, *qkv(rng, H=2, L=L, S=S), is_causal=True, query_offset=offset)


@pytest.mark.parametrize("scale", [1.0, 0.0, -2.0, 0.125, np.float32(0.5), 2])
def test_scale_is_used_as_given(path, rng, scale):
    q, k, v = qkv(rng, H=2)
    check(path, q, k, v, scale=scale, bias=rng.standard_normal((3, 4)))


def test_order_is_scale_softcap_bias_mask_softmax(path, rng):
    q, k, v = qkv(rng, H=2)
    bias, mask = 3 * rng.standard_normal((3, 4)), rng.random((2, 3, 4)) > 0.3
    raw = q @ k.swapaxes(-1, -2)
    scores = np.where(mask, 0.7 * np.tanh(raw * 2 / 0.7) + bias, -inf)
    options = {"scale": 2, "softcap": 0.7, "bias": bias, "mask": mask}
    close(path.attention_scores(q, k, **options), scores)
    check(path, q, k, v, **options)


def test_a_query_with_nothing_to_attend_to_gets_zeros(path, rng):
    q, k, v = qkv(rng, 2, H=2)
    mask = np.ones((2, 2, 3, 4), bool)
    mask[0, 1, 2] = mask[1, :, 0] = False
    output, weights = check(path, q, k, v, mask=mask)
    assert (output[0, 1, 2] == 0).all() and (weights[0, 1, 2] == 0).all()
    check(path, q, k, v, bias=np.where(mask, 0, -inf))
    check(path, q, k, v, mask=mask, is_causal=True, query_offset=-1)


@pytest.mark.parametrize("bad", [nan, inf, -inf])
@pytest.mark.parametrize("where", ["query", "key", "value"])
@pytest.mark.parametrize("options", ["mask", "bias", "causal", "row"])
def test_what_stands_behind_a_mask_does_not_leak(path, rng, bad, where, options):
    q, k, v = qkv(rng, 2, H=2, L=4)
    constraint = {
        "mask": {"mask": np.arange(4) < 2},
        "bias": {"bias": np.where(np.arange(4) < 2, 0.5, -inf)},
        "causal": {"is_causal": True},
        "row": {"mask": np.array([[True] * 4, [False] * 4, [True] * 4, [False] * 4])},
    }[options]
    clean_output, clean_weights = reference.attention(q, k, v, **constraint)
    dirty = {"query": q, "key": k, "value": v}
    dirty[where] = dirty[where].copy()
    rows = slice(2, None)
    if where == "query":
        rows = {"row": slice(1, 2)}.get(options, slice(3, 4))
    elif options == "row":
        return  # every key is attended by some query there
    dirty[where][..., rows, :1] = bad
    output, weights = path.scaled_dot_product_attention(*dirty.values(), return_weights=True, **constraint)
    fused = path.scaled_dot_product_attention(*dirty.values(), **constraint)
    reached = np.zeros(4, bool)
    if where == "query":
        reached[rows] = options != "row"
    elif options == "causal":
        reached[rows] = True
    for got, want in ((output, clean_output), (weights, clean_weights), (fused, clean_output)):
        close(got[..., ~reached, :], want[..., ~reached, :])


@pytest.mark.parametrize(
    "constraint", [{"mask": np.array([True, False])}, {"bias": np.array([0, -inf])}, {"is_causal": True}], ids=str
)
@pytest.mark.parametrize("size, huge", [(5.0, 3e38), (1e10, 1e30)])
def test_a_huge_finite_key_behind_a_mask_does_not_leak(path, constraint, size, huge):
    """Its score overflows to inf, and inf - inf is NaN where a mask is added."""
    q, k = np.array([[size, 0]], np.float32), np.array([[1, 0], [huge, 0]], np.float32)
    v = np.array([[1.0, 5, 7], [2, 5, 7]], np.float32)
    for return_weights in (False, True):
        output = path.scaled_dot_product_attention(q, k, v, return_weights=return_weights, **constraint)
        close(output[0] if return_weights else output, v[:1])


@pytest.mark.parametrize("scale", [0.0, -0.0, -0.5, 1e-46])
def test_causal_with_a_scale_that_turns_the_order_round(path, rng, scale):
    check(path, *qkv(rng, H=2, L=4, dtype=np.float32), is_causal=True, scale=scale)


@pytest.mark.parametrize("bad", [inf, -inf])
def test_an_attended_inf_keeps_its_sign_beside_a_mask(path, rng, bad):
    q, k, v = qkv(rng)
    v[1, 2] = bad
    for options in ({}, {"mask": np.array([True, True, True, False])}):
        output = path.scaled_dot_product_attention(q, k, v, **options)
        assert (output[:, 2] == bad).all() and np.isfinite(output[:, :2]).all()


@pytest.mark.parametrize("softcap", [1e-300, 1e-50, 1e39, 1e300])
def test_extreme_softcaps(path, rng, softcap):
    q, k, v = qkv(rng, dtype=np.float32)
    want = path.scaled_dot_product_attention(q, k, v) if softcap > 1 else np.broadcast_to(v.mean(0), (3, 4))
    close(path.scaled_dot_product_attention(q, k, v, softcap=softcap), want)


@pytest.mark.parametrize("where", [0, 1, 2])
def test_nan_everywhere_shows(path, rng, where):
    inputs = qkv(rng, H=2)
    inputs[where][:] = nan  # PyTorch's kernel takes a row of NaN scores for a masked one, and gives zeros
    assert np.isnan(path.scaled_dot_product_attention(*inputs)).all()
    assert np.isnan(path.scaled_dot_product_attention(*inputs, is_causal=True)).all()


@pytest.mark.parametrize("where", [0, 1, 2])
def test_nan_in_an_attended_input_shows(path, rng, where):
    inputs = qkv(rng, H=2)
    inputs[where][0, 1, 0] = nan
    for options in ({}, {"mask": np.array([True, True, False, False])}):
        for output in (
            path.scaled_dot_product_attention(*inputs, **options),
            path.scaled_dot_product_attention(*inputs, return_weights=True, **options)[0],
        ):
            assert np.isnan(output[0, 1]).any() and np.isfinite(output[1]).all()


def test_weights_behind_a_mask_stay_zero_beside_nan(path, rng):
    q, k, v = qkv(rng)
    k[0] = nan
    _, weights = path.scaled_dot_product_attention(
        q, k, v, mask=np.array([True, True, False, False]), return_weights=True
    )
    assert np.isnan(weights[:, :2]).all() and (weights[:, 2:] == 0).all()


def test_float16_accumulates_in_float32(path, rng):
    q = np.full((2, 2, 64), 300, np.float16)  # raw scores of 5 760 000; float16 ends at 65 504
    v = rng.standard_normal((2, 2, 64)).astype(np.float16)
    check(path, q, q, v)
    q, k, v = qkv(rng, 2, H=2, L=50, S=60, dtype=np.float16)
    check(path, q, k, v, mask=rng.random((50, 60)) > 0.3)


def test_large_scores(path, rng):
    q, k, v = qkv(rng, H=2, D=2)
    check(path, 200 * q, 200 * k, v, tolerance=1e-10)


@pytest.mark.parametrize("fill", [-1e9, float(np.finfo(np.float64).min), float(np.finfo(np.float32).min)])
def test_a_finite_bias_stays_finite(path, rng, fill):
    """Only -inf counts as masked: a row of one and the same huge number is a row of equal biases."""
    q, k, v = qkv(rng, dtype=np.float32)
    output = path.scaled_dot_product_attention(q, k, v, bias=np.full((3, 4), fill))
    assert output.dtype == np.float32 and (output != 0).all()


@pytest.mark.parametrize(
    "lead, H, L, S", [((2,), 2, 0, 4), ((2,), 2, 3, 0), ((0,), 2, 3, 4), ((2,), 0, 3, 4), ((), None, 0, 0)]
)
@pytest.mark.parametrize("options", [{}, {"is_causal": True}], ids=str)
def test_empty_axes(path, rng, lead, H, L, S, options):
    q, k, v = qkv(rng, *lead, H=H, L=L, S=S, D_v=5, dtype=np.float32)
    output, weights = path.scaled_dot_product_attention(q, k, v, return_weights=True, **options)
    heads = () if H is None else (H,)
    assert output.shape == (*lead, *heads, L, 5) and weights.shape == (*lead, *heads, L, S)
    assert output.dtype == np.float32 and (output == 0).all()
    assert path.scaled_dot_product_attention(q, k, v, **options).shape == output.shape
    path.scaled_dot_product_attention(q, k, v, mask=np.ones((L, S), bool), **options)


def test_heads_of_width_zero_weigh_all_keys_alike(path):
    q, k, v = np.zeros((2, 0)), np.zeros((4, 0)), np.arange(4.0)[:, None]
    close(path.scaled_dot_product_attention(q, k, v), np.full((2, 1), 1.5))


def test_inputs_are_not_modified_and_may_be_views(path, rng):
    q, k, v = qkv(rng, 2, H=3)
    want = path.scaled_dot_product_attention(q, k, v, mask=np.tri(3, 4, dtype=bool), bias=np.ones(4))
    strided = [np.repeat(x, 2, axis=-1)[..., ::2] for x in (q, k, v)]
    backwards = [np.ascontiguousarray(x[..., ::-1])[..., ::-1] for x in (q, k, v)]
    for inputs in (strided, backwards):
        mask, bias = np.tri(3, 4, dtype=bool), np.ones(4)
        for x in (*inputs, mask, bias):
            x.setflags(write=False)
        copies = [x.copy() for x in inputs]
        close(path.scaled_dot_product_attention(*inputs, mask=mask, bias=bias), want)
        assert all((x == y).all() for x, y in zip(inputs, copies, strict=True)) and (mask == np.tri(3, 4)).all()


def test_numpy_promotes_and_takes_lists(rng):
    from mha_lib.numpy import scaled_dot_product_attention as attend

    q, k, v = qkv(rng)
    assert attend(q.astype(np.float16), k.astype(np.float32), v.astype(np.float32)).dtype == np.float32
    assert attend(q.astype(np.float32), k, v).dtype == np.float64
    assert attend([[1, 2]], [[1, 0]], [[3, 4]]).tolist() == [[3.0, 4.0]]
    assert attend([[1, 2]], [[1, 0], [0, 1]], [[3, 4], [5, 6]], mask=[[True, False]]).tolist() == [[3.0, 4.0]]
    assert attend(*(x.astype(np.float16) for x in (q, k, v)), bias=np.ones(4)).dtype == np.float16


SDPA = "scaled_dot_product_attention"
BAD = [
    (
        (3, 4),
        (4, 5),
        (4, 4),
        {},
        ValueError,
        r"query and key must have the same last axis D, got \(3, 4\) and \(4, 5\)",
    ),
    (
        (3, 4),
        (4, 4),
        (5, 4),
        {},
        ValueError,
        r"value must match key on every axis but the last, got \(5, 4\) for key \(4, 4\)",
    ),
    (
        (4,),
        (4, 4),
        (4, 4),
        {},
        ValueError,
        r"query must have the axes \(\.\.\., H, L, D\) or \(L, D\), got shape \(4,\)",
    ),
    ((2, 3, 4), (3, 4), (3, 4), {}, ValueError, "query and key must have the same leading axes"),
    ((2, 1, 3, 4), (1, 1, 3, 4), (1, 1, 3, 4), {}, ValueError, "query and key must have the same leading axes"),
    ((3, 3, 4), (2, 3, 4), (2, 3, 4), {}, ValueError, "query heads must be a multiple of the key heads, got 3 and 2"),
    ((2, 3, 4), (4, 3, 4), (4, 3, 4), {}, ValueError, "query heads must be a multiple of the key heads, got 2 and 4"),
    (
        (3, 4),
        (4, 4),
        (4, 4),
        {"mask": np.ones((3, 4))},
        TypeError,
        r"mask must be boolean \(True = may attend\), got .*float64; pass",
    ),
    ((3, 4), (4, 4), (4, 4), {"mask": np.ones((3, 4), int)}, TypeError, "mask must be boolean"),
    ((3, 4), (4, 4), (4, 4), {"bias": np.ones((3, 4), bool)}, TypeError, "bias must hold numbers.*got bool.*mask="),
    (
        (3, 4),
        (4, 4),
        (4, 4),
        {"mask": np.ones((4, 3), bool)},
        ValueError,
        r"mask must broadcast to .* \(3, 4\), got shape \(4, 3\)",
    ),
    (
        (3, 4),
        (4, 4),
        (4, 4),
        {"bias": np.ones((2, 3, 4))},
        ValueError,
        r"bias must broadcast to .* \(3, 4\), got shape \(2, 3, 4\)",
    ),
    ((1, 3, 4), (1, 4, 4), (1, 4, 4), {"mask": np.ones((2, 3, 4), bool)}, ValueError, "mask must broadcast"),
    (
        (3, 4),
        (4, 4),
        (4, 4),
        {"query_offset": 1},
        ValueError,
        "query_offset moves the causal mask, got 1 without is_causal",
    ),
    (
        (3, 4),
        (4, 4),
        (4, 4),
        {"query_offset": 1.5, "is_causal": True},
        TypeError,
        "query_offset must be an integer, got 1.5",
    ),
    ((3, 4), (4, 4), (4, 4), {"scale": "big"}, TypeError, "scale must be a finite number, got 'big'"),
    ((3, 4), (4, 4), (4, 4), {"scale": nan}, ValueError, "scale must be a finite number, got nan"),
    ((3, 4), (4, 4), (4, 4), {"softcap": 0}, ValueError, "softcap must be a positive number or None, got 0"),
    ((3, 4), (4, 4), (4, 4), {"softcap": -1.0}, ValueError, "softcap must be a positive number"),
    ((3, 4), (4, 4), (4, 4), {"scale": 10**400}, ValueError, "scale must be a finite number"),
    (
        (3, 4),
        (4, 4),
        (4, 4),
        {"scale": "big", "is_causal": True},
        TypeError,
        "scale must be a finite number, got 'big'",
    ),
    ((3, 4), (4, 4), (4, 4), {"is_causal": np.ones((3, 4), bool)}, TypeError, "is_causal must be True or False, got"),
    ((3, 4), (4, 4), (4, 4), {"is_causal": "False"}, TypeError, "is_causal must be True or False, got str"),
    ((3, 4), (4, 4), (4, 4), {"is_causal": True, "query_offset": 2**70}, ValueError, "query_offset must be an integer"),
]


@pytest.mark.parametrize("query, key, value, options, error, words", BAD)
def test_bad_input(path, query, key, value, options, error, words):
    inputs = [np.zeros(shape) for shape in (query, key, value)]
    with pytest.raises(error, match=words) as caught:
        path.scaled_dot_product_attention(*inputs, **options)
    assert "\n" not in str(caught.value)


def test_bad_dtypes(path):
    good, complex_, boolean = np.zeros((2, 2)), np.zeros((2, 2), complex), np.zeros((2, 2), bool)
    for name, inputs in (("query", (complex_, good, good)), ("value", (good, good, boolean))):
        with pytest.raises(TypeError, match=f"{name} must"):
            path.scaled_dot_product_attention(*inputs)


def test_numpy_refuses_what_it_would_drop_or_cannot_read():
    from mha_lib.numpy import padding_mask
    from mha_lib.numpy import scaled_dot_product_attention as attend

    x = np.zeros((2, 2))
    with pytest.raises(TypeError, match="query must be a plain array, got a masked one"):
        attend(np.ma.masked_array(x), x, x)
    with pytest.raises(TypeError, match="mask must be a plain array, got a masked one"):
        attend(x, x, x, mask=np.ma.masked_array(x == 0))
    for name, call in (("mask", lambda r: attend(x, x, x, mask=r)), ("bias", lambda r: attend(x, x, x, bias=r)),
                       ("lengths", lambda r: padding_mask(r, 3))):  # fmt: skip
        with pytest.raises(ValueError, match=f"{name} must be a rectangular array"):
            call([[1], [1, 2]])


def test_torch_wants_tensors_of_one_dtype():
    torch = pytest.importorskip("torch")
    from mha_lib.torch import scaled_dot_product_attention as attend

    x = torch.zeros(2, 2)
    with pytest.raises(TypeError, match="query must be a torch.Tensor, got list"):
        attend([[1.0]], x, x)
    with pytest.raises(TypeError, match="one dtype, got query torch.float64, key torch.float32"):
        attend(x.double(), x, x)
    with pytest.raises(ValueError, match="on one device, got query on meta, key on cpu"):
        attend(x.to("meta"), x, x)
    with pytest.raises(ValueError, match="mask must be on cpu like query, got meta"):
        attend(x, x, x, mask=torch.ones(2, 2, dtype=torch.bool, device="meta"))
    with pytest.raises(ValueError, match=r"dropout_p must be a probability in 0..1, got 1.5"):
        attend(x, x, x, dropout_p=1.5)
