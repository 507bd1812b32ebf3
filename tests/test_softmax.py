"""softmax, in both paths."""

import numpy as np
import pytest
from common import close
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import mha_lib.numpy as right


def definition(x, axis):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


@pytest.mark.parametrize("axis", [-1, 0, 1, -3])
def test_values_and_axis(path, rng, axis):
    x = rng.standard_normal((3, 4, 5))
    close(path.softmax(x, axis=axis), definition(x, axis))


def test_default_axis_is_the_last(path, rng):
    x = rng.standard_normal((4, 4))
    close(path.softmax(x), definition(x, -1))


@pytest.mark.parametrize("dtype, large", [(np.float16, 60000), (np.float32, 1e30), (np.float64, 1e300)])
def test_large_numbers_do_not_overflow(path, dtype, large):
    got = path.softmax(np.array([[large, large, -large], [-large, -large, -large]], dtype))
    assert got.dtype == dtype
    close(got, [[0.5, 0.5, 0], [1 / 3, 1 / 3, 1 / 3]])


def test_row_of_minus_infinity_gives_zeros(path):
    x = np.array([[-np.inf, -np.inf], [0.0, -np.inf]])
    assert (path.softmax(x) == [[0, 0], [1, 0]]).all()


def test_nan_spoils_its_row_only(path):
    got = path.softmax(np.array([[np.nan, 1.0], [0.0, 0.0]]))
    assert np.isnan(got[0]).all() and (got[1] == 0.5).all()


@pytest.mark.parametrize("shape, axis", [((0, 3), -1), ((3, 0), -1), ((2, 0, 3), -2)])
def test_empty_axes(path, shape, axis):
    assert path.softmax(np.zeros(shape, np.float32), axis=axis).shape == shape


def test_input_is_not_modified(path):
    x = np.array([[1.0, 2.0, -np.inf]])
    x.setflags(write=False)
    path.softmax(x)
    assert (x == [[1, 2, -np.inf]]).all()


@pytest.mark.parametrize("axis", [2, -3])
def test_an_axis_that_is_not_there(path, axis):
    with pytest.raises(ValueError, match=f"axis must name one of the 2 axes, got {axis}"):
        path.softmax(np.zeros((2, 2)), axis=axis)


def test_bad_dtypes(path):
    with pytest.raises(TypeError, match="x must"):
        path.softmax(np.array([True, False]))
    with pytest.raises(TypeError, match="x must"):
        path.softmax(np.array([1j]))


def test_numpy_takes_lists_and_integers():
    got = right.softmax([0, 0])
    assert got.dtype == np.float64 and (got == 0.5).all()
    with pytest.raises(ValueError, match="x must be a rectangular array"):
        right.softmax([[1.0], [1.0, 2.0]])


@given(
    hnp.arrays(np.float64, hnp.array_shapes(max_dims=3, max_side=6), elements=st.floats(-500, 500)),
    st.floats(-100, 100),
)
def test_properties(x, shift):
    weights = right.softmax(x)
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(right.softmax(x + shift), weights, atol=1e-12)  # a constant per row does nothing
    order = np.random.default_rng(0).permutation(x.shape[-1])
    np.testing.assert_allclose(right.softmax(x[..., order]), weights[..., order], atol=1e-14)


def test_torch_gradient_with_an_empty_row(rng):
    torch = pytest.importorskip("torch")
    import mha_lib.torch as ours

    empty = torch.tensor([[True], [False], [False]])
    x = torch.from_numpy(rng.standard_normal((3, 4))).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: ours.softmax(x.masked_fill(empty, -torch.inf)), x)
