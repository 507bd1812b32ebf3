"""03_projection: a matrix on the right, three of them for three roles, and a real one the right way round."""

import numpy as np

from ..data import load_layer, load_pencil
from ..mistakes import MISTAKES
from ..numpy import project
from ._question import Exercise, Part, Question, call, untouched, value


# --------------------------------------------------------------------------------------------------------------------- q1, by hand
def _value_row(token=2, factor=2):
    """The value of a token in head 1 of the pencil example, (4,); `factor` is what a 2 in the row of X counts."""
    pencil = load_pencil()
    row = np.where(pencil.x[token] == 2, factor, pencil.x[token])
    return row @ pencil.W_V[:, 4:]


# --------------------------------------------------------------------------------------------------------------------- q2, counts
def _counts(L=5, S=7, E=12, d_k=4, d_v=6, *, biases=(1, 1, 1), pair=1):
    """The numbers in each matrix with its bias, in Q, K and V, and in the raw scores."""
    learned = [E * d + d * b for d, b in zip((d_k, d_k, d_v), biases, strict=True)]
    return np.array([*learned, L * d_k, S * d_k, S * d_v, L * S * pair])


# --------------------------------------------------------------------------------------------------------------------- q3, project
def _layer(rng, *x, D, bias=True):
    """x of the given shape, a weight, a bias."""
    given = rng.standard_normal(x), rng.standard_normal((x[-1], D))
    return (*given, rng.standard_normal(D)) if bias else given


def _without(rng):
    """One token, one feature, D < E, D > E, and square, where a turned matrix changes no shape."""
    sizes = ((1, 2, 1), (2, 2, 2), (3, 4, 2), (2, 3, 5), (4, 4, 4))
    return [call(*_layer(rng, L, E, D=D, bias=False)) for L, E, D in sizes]


def _with_bias(rng):
    sizes = ((1, 2, 3), (2, 2, 2), (3, 4, 2), (3, 2, 3), (4, 4, 4))
    return [call(*_layer(rng, L, E, D=D)) for L, E, D in sizes]


def _leading(rng):
    """A single row, a batch, two leading axes; square ones among them."""
    return [call(*_layer(rng, *x, D=D)) for x, D in (((3,), 2), ((2, 3, 4), 5), ((3, 3, 3), 3), ((2, 1, 4, 3), 3))]


def _float32(rng):
    return [call(*(a.astype(np.float32) for a in _layer(rng, 3, 4, D=5, bias=bias))) for bias in (True, False)]


def _tokens_as_columns(x, weight, bias=None):
    return weight.T @ x.T + (0 if bias is None else bias[:, None])


# --------------------------------------------------------------------------------------------------------------------- q4, three roles
def three_roles(x, y, W_Q, W_K, W_V):
    """Queries of x, keys and values of y: (..., L, d_k), (..., S, d_k), (..., S, d_v)."""
    return x @ W_Q, y @ W_K, y @ W_V


def _head(rng, *B, L, S, E, D, D_v=None):
    shapes = (*B, L, E), (*B, S, E), (E, D), (E, D), (E, D if D_v is None else D_v)
    return [rng.standard_normal(shape) for shape in shapes]


def _sequences(rng):
    """One token, L < S, L > S, and L = S with d_k = d_v, where nothing but the numbers tells."""
    sizes = ((1, 2, 3, 2), (2, 2, 2, 2), (3, 5, 4, 2), (4, 2, 6, 3), (3, 3, 8, 4))
    return [call(*_head(rng, L=L, S=S, E=E, D=D)) for L, S, E, D in sizes]


def _own_width(rng):
    return [call(*_head(rng, L=2, S=2, E=4, D=2, D_v=3)), call(*_head(rng, L=3, S=4, E=6, D=5, D_v=1))]


def _itself(rng):
    """One sequence in all three roles."""
    x, _, *matrices = _head(rng, L=3, S=3, E=4, D=2)
    return [call(x, x, *matrices)]


def _batches(rng):
    return [call(*_head(rng, 2, L=3, S=4, E=5, D=2)), call(*_head(rng, 2, 2, L=2, S=2, E=2, D=2))]


# --------------------------------------------------------------------------------------------------------------------- q5, the real layer
def _real(token="it", name="Q", cut=slice(32, 64), *, bias=1, turned=False):
    """The query of "it" in head 1 of the real layer, (32,)."""
    layer = load_layer()
    W = getattr(layer, f"W_{name}")
    rows = layer.x.astype(float) @ (W.T if turned else W) + bias * getattr(layer, f"b_{name}")
    return rows[layer.tokens.index(token), cut]


EXERCISE = Exercise(
    "03_projection",
    "Queries, keys, values: the projections",
    offers=("embedding", "layer_norm"),
    questions=(
        value(
            "q1", "mice_value", _value_row, 1,
            slips={
                "two_counted_once": ("The 2 in the row of mice counts as a 1: add that row of the matrix twice.",
                                     lambda: _value_row(factor=1)),
                "two_left_out": ("The row of the matrix that belongs to the 2 is left out: add it twice.",
                                 lambda: _value_row(factor=0)),
                "row_of_cats": ("This is the value of cats: the row of mice is asked.", lambda: _value_row(0)),
                "row_of_chase": ("This is the value of chase: the row of mice is asked.", lambda: _value_row(1)),
            },
        ),
        value(
            "q2", "counts", _counts, 2,
            mistakes={"bias_forgotten": lambda: _counts(biases=(0, 0, 0))},
            slips={
                "bias_for_every_row": (
                    "The biases are counted once for every row: a bias is one row of numbers, the same for every token.",
                    lambda: _counts(biases=(5, 7, 7))),
                "all_from_x": ("K and V are counted with 5 rows: they are made of Y, which has 7.", lambda: _counts(S=5)),
                "values_as_wide_as_keys": ("The values are counted with the width of the keys: theirs is d_v = 6.",
                                           lambda: _counts(d_v=4)),
                "scores_of_every_feature": (
                    "The raw scores are counted once for every feature: a dot product makes one number of all of them.",
                    lambda: _counts(pair=4)),
            },
        ),
        Question(
            "q3", "project", project,
            parts=(
                Part("rows times a matrix, without a bias", 2, _without),
                Part("the same bias for every row", 2, _with_bias),
                Part("leading axes, and a single row", 1, _leading),
                Part("float32 stays float32", 1, _float32, dtype=True),
                Part("sizes that are not announced", 1, lambda rng: [
                    call(*_layer(rng, 5, 7, D=3)), call(*_layer(rng, 2, 4, 6, D=6, bias=False))], hidden=True),
                untouched(),
            ),
            mistakes={
                "weight_transposed": MISTAKES["weight_transposed"],
                "bias_forgotten": MISTAKES["bias_forgotten"],
            },
            slips={
                "bias_before_the_product": (
                    "The bias is added to x and goes through the matrix with it: add it to the product.",
                    lambda x, weight, bias=None: (x if bias is None else x + bias) @ weight),
                "bias_for_a_token": (
                    "Entry i of the bias is added to the whole of row i: it belongs to column i, the same for every row.",
                    lambda x, weight, bias=None: x @ weight + (0 if bias is None else bias[:, None])),
                "bias_subtracted": ("The bias is subtracted: it is added.",
                                    lambda x, weight, bias=None: x @ weight - (0 if bias is None else bias)),
                "weight_on_the_left": (
                    "The weight stands on the left: a token is a row of x, so the weight belongs on the right, x @ weight.",
                    lambda x, weight, bias=None: weight @ x + (0 if bias is None else bias)),
                "entry_by_entry": (
                    "The entries are multiplied in their places: * is not a product of matrices, @ is.",
                    lambda x, weight, bias=None: x * weight + (0 if bias is None else bias)),
                "tokens_as_columns": (
                    "The result is transposed: a token must stay a row, so x @ weight, without any transpose.",
                    _tokens_as_columns),
            },
        ),
        Question(
            "q4", "three_roles", three_roles,
            parts=(
                Part("queries of one sequence, keys and values of another", 2, _sequences),
                Part("values of a width of their own", 1, _own_width),
                Part("one sequence in all three roles", 1, _itself),
                Part("leading axes for a batch", 1, _batches),
                Part("sizes that are not announced", 1, lambda rng: [
                    call(*_head(rng, L=6, S=4, E=9, D=5, D_v=7)), call(*_head(rng, 3, L=3, S=3, E=3, D=3))], hidden=True),
                untouched(),
            ),
            slips={
                "all_from_x": ("Keys and values are made of x: both must come from y, the sequence that is asked.",
                               lambda x, y, W_Q, W_K, W_V: three_roles(x, x, W_Q, W_K, W_V)),
                "values_from_x": ("The values are made of x: keys and values belong together, both are made of y.",
                                  lambda x, y, W_Q, W_K, W_V: (x @ W_Q, y @ W_K, x @ W_V)),
                "sequences_swapped": ("The queries are made of y, keys and values of x: it is x that asks.",
                                      lambda x, y, W_Q, W_K, W_V: three_roles(y, x, W_Q, W_K, W_V)),
                "queries_from_y": ("The queries are made of y: it is x that asks.",
                                   lambda x, y, W_Q, W_K, W_V: three_roles(y, y, W_Q, W_K, W_V)),
                "matrices_swapped": ("W_Q and W_K have changed places: W_Q makes the queries.",
                                     lambda x, y, W_Q, W_K, W_V: three_roles(x, y, W_K, W_Q, W_V)),
                "one_matrix_for_q_and_k": (
                    "Queries and keys are made by the same matrix: the keys have their own, W_K.",
                    lambda x, y, W_Q, W_K, W_V: three_roles(x, y, W_Q, W_Q, W_V)),
                "values_are_keys": ("The values are made by W_K: they have a matrix of their own, W_V.",
                                    lambda x, y, W_Q, W_K, W_V: three_roles(x, y, W_Q, W_K, W_K)),
                "values_of_the_keys": (
                    "The values are made of the keys, which are projected already: all three are made of the inputs.",
                    lambda x, y, W_Q, W_K, W_V: (x @ W_Q, y @ W_K, (y @ W_K) @ W_V)),
                "keys_first": ("The keys stand first: the order is queries, keys, values.",
                               lambda x, y, W_Q, W_K, W_V: (y @ W_K, x @ W_Q, y @ W_V)),
                "transposed_matrices": (
                    "The matrices are transposed: they multiply from the right as they are.",
                    lambda x, y, W_Q, W_K, W_V: three_roles(x, y, W_Q.T, W_K.T, W_V.T)),
            },
        ),
        value(
            "q5", "it_query", _real, 2, tolerance=0.002,
            mistakes={
                "weight_transposed": lambda: _real(turned=True),
                "bias_forgotten": lambda: _real(bias=0),
            },
            slips={
                "head_0": ("This is head 0: head 1 has the columns 32 to 63.", lambda: _real(cut=slice(0, 32))),
                "head_2": ("This is head 2: counted from 0, head 1 has the columns 32 to 63.",
                           lambda: _real(cut=slice(64, 96))),
                "every_twelfth_column": (
                    "These are the columns 1, 13, 25 and so on: the columns of a head stand side by side, here 32 to 63.",
                    lambda: _real(cut=slice(1, None, 12))),
                "bias_subtracted": ("The bias is subtracted: it is added.", lambda: _real(bias=-1)),
                "of_animal": ("This is the query of animal: the row of it is asked.", lambda: _real("animal")),
                "its_key": ("This is the key of it: the query is made with W_Q and b_Q.", lambda: _real(name="K")),
                "not_cut": ("These are the queries of all twelve heads: head 1 has the columns 32 to 63.",
                            lambda: _real(cut=slice(None))),
            },
        ),
    ),
)  # fmt: skip
