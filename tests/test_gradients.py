"""The NumPy gradients: against central differences of the loops in float64, and against torch autograd."""

import numpy as np
import pytest
import reference
from common import close, numpy_path, torch_path

import mha_lib.numpy as ours


def problem(rng, H=4, H_kv=2, L=3, S=5, D=4, D_v=3):
    shapes = (2, H, L, D), (2, H_kv, S, D), (2, H_kv, S, D_v)
    return [rng.standard_normal(shape) for shape in shapes], rng.standard_normal((2, H, L, D_v))


def differences(f, x, step=1e-5):
    """The gradient of the number f() with respect to the array x, by central differences."""
    grad = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        here, sides = x[index], []
        for sign in (1, -1):
            x[index] = here + sign * step
            sides.append(f())
        x[index] = here
        grad[index] = (sides[0] - sides[1]) / (2 * step)
    return grad


MASK = np.random.default_rng(3).random((2, 4, 3, 5)) > 0.4
MASK[0, 1, 2] = False  # a query with nothing to attend to
OPTIONS = {
    "plain": {},
    "scale": {"scale": -0.3},
    "causal": {"is_causal": True},
    "offset": {"is_causal": True, "query_offset": 2},
    "mask": {"mask": MASK},
    "bias": {"bias": np.where(MASK, np.random.default_rng(4).standard_normal(MASK.shape), -np.inf)},
    "softcap": {"softcap": 1.5},
    "all": {
        "softcap": 2.0,
        "mask": MASK,
        "bias": np.linspace(-1, 1, 5),
        "is_causal": True,
        "query_offset": 1,
        "scale": 0.7,
    },
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_attention_by_differences_of_the_loops(rng, options):
    inputs, grad_output = (
        problem(rng, H=2, H_kv=1, L=3, S=5) if "mask" not in options and "bias" not in options else problem(rng)
    )
    grads = ours.scaled_dot_product_attention_backward(grad_output, *inputs, **options)
    for x, grad in zip(inputs, grads, strict=True):
        want = differences(lambda: (reference.attention(*inputs, **options)[0] * grad_output).sum(), x)
        close(grad, want, 1e-8)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("H, H_kv", [(4, 4), (4, 2), (4, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_attention_against_autograd(rng, options, H, H_kv, dtype):
    torch = pytest.importorskip("torch")
    inputs, grad_output = problem(rng, H, H_kv)
    inputs, grad_output = [x.astype(dtype) for x in inputs], grad_output.astype(dtype)
    path = torch_path()
    tensors = [path.give(x).requires_grad_() for x in inputs]
    output = path.module.scaled_dot_product_attention(*tensors, **{name: path.give(x) for name, x in options.items()})
    want = torch.autograd.grad(output, tensors, path.give(grad_output))
    for got, expected in zip(
        ours.scaled_dot_product_attention_backward(grad_output, *inputs, **options), want, strict=True
    ):
        assert got.dtype == dtype
        close(got, expected.numpy())


def test_two_and_three_axes(rng):
    (q, k, v), grad_output = problem(rng, 2, 2)
    want = ours.scaled_dot_product_attention_backward(grad_output, q, k, v)
    for index in ((1,), (1, 0)):
        got = ours.scaled_dot_product_attention_backward(grad_output[index], q[index], k[index], v[index])
        for a, b in zip(got, want, strict=True):
            close(a, b[index])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_stands_behind_a_mask_gives_and_gets_no_gradient(rng, bad):
    (q, k, v), grad_output = problem(rng)
    mask = np.array([True, True, True, False, False]) & np.array([[True], [False], [True]])
    want = ours.scaled_dot_product_attention_backward(grad_output, q, k, v, mask=mask)
    k[:, :, 3:], v[:, :, 3:], q[:, :, 1] = bad, bad, bad
    got = ours.scaled_dot_product_attention_backward(grad_output, q, k, v, mask=mask)
    for a, b in zip(got, want, strict=True):
        close(a, b)
    assert (got[0][:, :, 1] == 0).all() and (got[1][:, :, 3:] == 0).all() and (got[2][:, :, 3:] == 0).all()


def test_empty_axes(rng):
    for L, S in ((0, 4), (3, 0)):
        (q, k, v), grad_output = problem(rng, L=L, S=S)
        grads = ours.scaled_dot_product_attention_backward(grad_output, q, k, v)
        assert all((grad == 0).all() and grad.shape == x.shape for grad, x in zip(grads, (q, k, v), strict=True))


def test_inputs_are_not_modified(rng):
    inputs, grad_output = problem(rng)
    for x in (*inputs, grad_output):
        x.setflags(write=False)
    ours.scaled_dot_product_attention_backward(grad_output, *inputs, **OPTIONS["all"])


def test_a_grad_output_of_another_shape(rng):
    inputs, grad_output = problem(rng)
    with pytest.raises(
        ValueError, match=r"grad_output must have the shape of the output, \(2, 4, 3, 3\), got \(2, 4, 3, 2\)"
    ):
        ours.scaled_dot_product_attention_backward(grad_output[..., :2], *inputs)


LAYERS = {
    "plain": ({}, {}),
    "no bias": ({"bias": False}, {}),
    "grouped, causal": ({"num_kv_heads": 2}, {"is_causal": True}),
    "rope": ({"rope": "interleaved"}, {}),
    "rope in halves, causal": ({"rope": "halves", "num_kv_heads": 1}, {"is_causal": True}),
    "mask": ({"head_dim": 4}, {"mask": np.random.default_rng(0).random((2, 1, 5, 5)) > 0.4}),
    "bias in the call": ({}, {"bias": np.linspace(-1, 1, 25).reshape(5, 5)}),
}


@pytest.mark.parametrize("inputs", ["self", "key", "value", "key and value"])
@pytest.mark.parametrize("name", LAYERS)
def test_layer_against_autograd(rng, name, inputs):
    torch = pytest.importorskip("torch")
    options, call = LAYERS[name]
    numpy, path = numpy_path(), torch_path()
    layer = numpy.layer(8, 4, dtype=np.float64, **options)
    theirs = path.layer(8, 4, dtype=torch.float64, **options)
    given = {"query": rng.standard_normal((2, 5, 8))} | {
        n: rng.standard_normal((2, 5, 8)) for n in ("key", "value") if n in inputs
    }
    grad_output = rng.standard_normal((2, 5, 8))
    layer(**given, **call)
    grads = layer.backward(grad_output)
    tensors = {n: path.give(x).requires_grad_() for n, x in given.items()} | dict(theirs.named_parameters())
    output = theirs(**{n: tensors[n] for n in given}, **{n: path.give(x) for n, x in call.items()})
    want = torch.autograd.grad(output, list(tensors.values()), path.give(grad_output))
    assert set(grads) == set(tensors)
    largest = max(float(x.abs().max()) for x in want)
    for n, expected in zip(tensors, want, strict=True):
        # a gradient that is 0 but for rounding (b_K's) is compared with the size of the others
        np.testing.assert_allclose(grads[n], expected.numpy(), rtol=0, atol=1e-12 * largest, err_msg=n)


def test_layer_by_differences(rng):
    layer = numpy_path().layer(6, 3, num_kv_heads=1, rope="halves", dtype=np.float64)
    x, grad_output, mask = rng.standard_normal((4, 6)), rng.standard_normal((4, 6)), np.tri(4, dtype=bool)
    layer(x, mask=mask)
    grads = layer.backward(grad_output)
    named = {n: getattr(layer, n) for n in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")} | {"query": x}
    for name, array in named.items():
        want = differences(lambda: (layer(x, mask=mask) * grad_output).sum(), array)
        np.testing.assert_allclose(grads[name], want, atol=1e-7, err_msg=name)


def test_nan_in_padding_reaches_no_weight(rng):
    layer = numpy_path().layer(8, 2, dtype=np.float64)
    x, y, grad_output = rng.standard_normal((3, 8)), rng.standard_normal((5, 8)), rng.standard_normal((3, 8))
    mask = np.arange(5) < 3
    layer(x, y, mask=mask)
    want = layer.backward(grad_output)
    y[3:] = np.nan
    layer(x, y, mask=mask)
    for name, grad in layer.backward(grad_output).items():
        close(grad, want[name])


def test_backward_needs_a_call_before_it():
    layer, x = numpy_path().layer(8, 2), np.ones((1, 3, 8), np.float32)
    with pytest.raises(RuntimeError, match="backward needs a call before it"):
        layer.backward(x)
    layer(x)
    with pytest.raises(ValueError, match=r"grad_output must have the shape of the output, \(1, 3, 8\), got \(3, 8\)"):
        layer.backward(x[0])
    layer(x, cache=ours.KVCache(1, 2, 4, 4))
    with pytest.raises(RuntimeError, match="without a cache"):
        layer.backward(x)
    layer(x)
    with pytest.raises(ValueError, match="mask must broadcast"):
        layer(x, mask=np.ones((7, 7), bool))
    with pytest.raises(RuntimeError, match="without an error"):
        layer.backward(x)


def test_dtypes_of_gradients():
    layer = ours.MultiHeadAttention(8, 2, dtype=np.float16)
    layer(np.ones((3, 8), np.float16))
    assert {grad.dtype for grad in layer.backward(np.ones((3, 8))).values()} == {np.dtype(np.float16)}
