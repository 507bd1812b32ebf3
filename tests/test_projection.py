"""project, in both paths, and against nn.Linear."""

import numpy as np
import pytest
from common import close


@pytest.mark.parametrize("lead", [(), (5,), (2, 5), (2, 3, 5)])
def test_rows_times_matrix(path, rng, lead):
    x, weight, bias = rng.standard_normal((*lead, 4)), rng.standard_normal((4, 3)), rng.standard_normal(3)
    want = np.zeros((*lead, 3))
    for index in np.ndindex(*lead, 3):
        want[index] = sum(x[index[:-1]][e] * weight[e, index[-1]] for e in range(4)) + bias[index[-1]]
    close(path.project(x, weight, bias), want)
    close(path.project(x, weight), want - bias)


def test_nn_linear_stores_the_transpose(path, rng):
    torch = pytest.importorskip("torch")
    x, weight, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((2, 5, 4), (4, 3), (3,)))
    linear = torch.nn.Linear(4, 3)
    linear.load_state_dict({"weight": torch.from_numpy(weight.T.copy()), "bias": torch.from_numpy(bias)})
    close(path.project(x, weight, bias), linear(torch.from_numpy(x)).detach().numpy())


def test_float16_accumulates_in_float32(path):
    x, weight = np.full((1, 4096), 1, np.float16), np.full((4096, 1), 1, np.float16)
    got = path.project(x, weight)
    assert got.dtype == np.float16 and got[0, 0] == 4096  # adding ones in float16 stops at 2048


@pytest.mark.parametrize(
    "call, words",
    [
        (
            lambda m: m.project(np.zeros((2, 4)), np.zeros((3, 4))),
            r"must share E, got \(2, 4\) and \(3, 4\).*transpose",
        ),
        (lambda m: m.project(np.zeros((2, 4)), np.zeros(4)), "must share E"),
        (
            lambda m: m.project(np.zeros((2, 4)), np.zeros((4, 3)), np.zeros(4)),
            r"bias must have the shape \(D,\) = \(3,\)",
        ),
    ],
)
def test_bad_input(path, call, words):
    with pytest.raises(ValueError, match=words):
        call(path)
