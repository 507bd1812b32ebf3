"""embedding and layer_norm, in both paths, and the real input of layer 0."""

import numpy as np
import pytest
from common import close

import mha_lib.numpy as right
from mha_lib.data import load_layer, load_vocabulary


def test_a_look_up_is_a_product_with_one_hot_rows(path, rng):
    table, ids = rng.standard_normal((6, 4)), np.array([[5, 0], [2, 2]])
    got = path.embedding(ids, table)
    assert (got == table[ids]).all()
    close(got, np.eye(6)[ids] @ table)


def test_layer_norm(path, rng):
    x, weight, bias = rng.standard_normal((2, 3, 8)) * 5 + 3, rng.standard_normal(8), rng.standard_normal(8)
    plain = path.layer_norm(x, eps=0.0)
    close(plain.mean(-1) + 1, np.ones((2, 3)))
    close((plain**2).mean(-1), np.ones((2, 3)))
    want = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.1) * weight + bias
    close(path.layer_norm(x, weight, bias, eps=0.1), want)
    close(path.layer_norm(x, bias=bias), path.layer_norm(x) + bias)


def test_layer_norm_in_float16_does_not_overflow(path):
    got = path.layer_norm(np.array([[60000, -60000]], np.float16))
    assert got.dtype == np.float16 and (got == [[1, -1]]).all()


def test_empty(path):
    assert path.embedding(np.zeros((0,), int), np.zeros((3, 2))).shape == (0, 2)
    assert path.layer_norm(np.zeros((0, 4), np.float32)).shape == (0, 4)


def test_the_real_rows_make_a_normalised_input():
    layer, vocabulary = load_layer(), load_vocabulary()
    rows = np.searchsorted(vocabulary.ids, layer.ids)
    assert [vocabulary.pieces[row] for row in rows] == layer.tokens
    assert (right.embedding(rows, vocabulary.table) == layer.token_rows).all()
    total = layer.token_rows + layer.position_rows + layer.type_rows
    x = right.layer_norm(total, layer.norm_weight, layer.norm_bias, eps=1e-12)
    close(((x - layer.norm_bias) / layer.norm_weight).mean(-1) + 1, np.ones(16), 1e-5)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (
            lambda m: m.embedding(np.array([3]), np.zeros((3, 2))),
            ValueError,
            "ids must lie in 0..2, got values from 3 to 3",
        ),
        (lambda m: m.embedding(np.array([-1]), np.zeros((3, 2))), ValueError, "ids must lie in 0..2"),
        (lambda m: m.embedding(np.array([1.0]), np.zeros((3, 2))), TypeError, "ids must be"),
        (lambda m: m.embedding(np.array([0]), np.zeros(3)), ValueError, r"table must have the axes \(V, E\)"),
        (
            lambda m: m.layer_norm(np.zeros((2, 4)), np.zeros(3)),
            ValueError,
            r"weight must have the shape \(E,\) = \(4,\)",
        ),
    ],
)
def test_bad_input(path, call, error, words):
    with pytest.raises(error, match=words):
        call(path)
