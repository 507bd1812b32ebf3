"""05_softmax: from scores to weights, along any axis, with rows that have nothing to choose from, and at any temperature."""

import numpy as np

from ..data import load_layer
from ..numpy import softmax
from ._question import Exercise, Part, Question, call, untouched, value


def _scores(rng, *shape):
    return 2 * rng.standard_normal(shape)


# ------------------------------------------------------------------------------------------------------------------- q1, by hand
_ROW = np.log([2, 0.5, 5, 2.5])  # the exponentials sum to 10


# ------------------------------------------------------------------------------------------------------------------- q2, stable
def _matrices(rng):
    """One key, one query, L != S, and L = S, where a wrong axis changes no shape."""
    return [call(_scores(rng, L, S)) for L, S in ((1, 2), (2, 2), (3, 4), (5, 1), (7, 7))]


def _axes_in_front(rng):
    return [call(_scores(rng, *shape)) for shape in ((4,), (2, 3, 3), (2, 3, 4, 5), (4, 4, 4))]


def _far_rows(rng):
    """Rows far above 0, far below it, far from each other, and one that spreads over more than exp can hold."""
    near, row = np.array([0.0, 1.0, 3.0]), _scores(rng, 2, 1, 4)
    spread = [call(np.array([[0.0, far], [1.0, 2.0]])) for far in (1000, 3000)]
    shifted = call(row + np.array([[800.0], [-900.0], [0.0]]))
    single = call((near + 100).astype(np.float32))
    return [call(np.stack([1000 - near, near])), call(np.stack([near, -2000 + near])), *spread, shifted, single]


def _in_float32(rng):
    return [call(_scores(rng, 2, 3, 4).astype(np.float32))]


def _softmax_of_exponentials(x, shift):
    e = np.exp(x - shift)
    return e / e.sum(-1, keepdims=True)


def _without_keepdims(x):
    e = np.exp(x - x.max(-1))
    return e / e.sum(-1)


def _sum_without_keepdims(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1)


# ------------------------------------------------------------------------------------------------------------------- q3, any axis
def _any_axis(rng):
    return [call(_scores(rng, 2, 2), axis=0), call(_scores(rng, 3, 4)), *(
        call(_scores(rng, *shape), axis=axis)
        for shape, axis in (((2, 3, 4), 1), ((4, 2, 3), 0), ((3, 2, 5), -3), ((4, 4, 4), 1), ((2, 3, 3, 4), -2)))]  # fmt: skip


def _some_forbidden(rng):
    x = _scores(rng, 4, 4)
    x[[0, 1, 1, 3], [2, 0, 3, 1]] = -np.inf
    return [call(np.array([[2.0, -np.inf]])), call(x), call(x.copy(), axis=0)]


def _nothing_left(rng):
    x, y = _scores(rng, 3, 4), _scores(rng, 2, 3, 3)
    x[1] = -np.inf
    y[1, :, 2] = -np.inf
    return [call(np.full((1, 2), -np.inf)), call(x), call(y, axis=1), call(np.full((3, 2), -np.inf), axis=0)]


def _large_axis(rng):
    x = _scores(rng, 3, 4) + 900
    return [call(x), call(np.stack([x, x - 1800]), axis=1)]


def _with_nan(rng):
    x = _scores(rng, 3, 4)
    x[1, 2] = np.nan
    return [call(x), call(x.copy(), axis=0)]


def _unannounced(rng):
    x = _scores(rng, 2, 5, 3, 2)
    x[0, :, 1, 1] = -np.inf
    return [call(x, axis=1), call(_scores(rng, 6), axis=0)]


def _plain(x, axis=-1):
    e = np.exp(x)
    return e / e.sum(axis, keepdims=True)


def _guarded_without_maximum(x, axis=-1):
    e = np.exp(x)
    total = e.sum(axis, keepdims=True)
    return e / np.where(total == 0, 1, total)


def _without_guard(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _zeros_if_any(x, axis=-1):
    return np.where((x == -np.inf).any(axis, keepdims=True), 0, softmax(x, axis))


# ------------------------------------------------------------------------------------------------------------------- q4, keys used
def keys_used(scores, T=1.0):
    """e to the entropy of each row of weights: (..., L, S) -> (..., L)."""
    return np.exp(_entropy(softmax(scores / T)))


def _entropy(weights):
    return -np.where(weights > 0, weights * np.log(np.where(weights > 0, weights, 1)), 0).sum(-1)


def _keys_used_with_nan(scores, T=1.0):
    weights = softmax(scores / T)
    return np.exp(-(weights * np.log(weights)).sum(-1))


def _warm(rng):
    return [call(_scores(rng, 1, 2)), call(_scores(rng, 3, 4)), call(_scores(rng, 2, 5, 5))]


def _temperatures(rng):
    return [call(_scores(rng, 3, 4), T) for T in (0.5, 2.0, 30.0)] + [call(_scores(rng, 2, 3, 3), 1.5)]


def _with_zeros(rng):
    """Weights of exactly 0: forbidden keys, and a temperature so low that the exponentials underflow."""
    x = _scores(rng, 2, 4)
    x[0, 1], x[1, :2] = -np.inf, -np.inf
    return [
        call(np.array([[1.0, -np.inf, 1.0]])),
        call(x, 2.0),
        call(np.array([[3.0, 0.0, 1.0], [5.0, 5.0, 0.0]]), 0.002),
    ]


# ------------------------------------------------------------------------------------------------------------------- q5, the real layer
def _real_row(*, head=1, bias=True, turn=False):
    """The scores of "it" in one head of the real layer, (S,) = (16,)."""
    layer = load_layer()
    x, columns = layer.x.astype(float), slice(32 * head, 32 * head + 32)
    query = x @ layer.W_Q[:, columns] + bias * layer.b_Q[columns]
    key = x @ layer.W_K[:, columns] + bias * layer.b_K[columns]
    if turn:
        query, key = key, query
    return query[layer.tokens.index("it")] @ key.T / np.sqrt(32)


def _temperature(row, wanted=8):
    """The T at which a row uses this many keys, by halving the interval of its logarithm."""
    low, high = np.log(1e-2), np.log(1e3)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if keys_used(row, np.exp(middle)) < wanted else (low, middle)
    return np.exp(middle)


EXERCISE = Exercise(
    "05_softmax",
    "Softmax",
    offers=("attention_scores", "embedding", "layer_norm", "project"),
    questions=(
        value(
            "q1", "weights_by_hand", lambda: softmax(_ROW), 1,
            mistakes={"normalised_without_exp": lambda: _ROW / _ROW.sum()},
            slips={
                "not_divided": ("These are the exponentials: divide them by their sum, so that they become shares.",
                                lambda: np.exp(_ROW)),
                "divided_by_the_largest": ("The exponentials are divided by the largest one: divide them by their sum.",
                                           lambda: np.exp(_ROW - _ROW.max())),
                "negative_exponential": (
                    "The exponential of -ln 2 was taken as -2: it is 1/2, and no exponential is negative.",
                    lambda: np.array([2, -2, 5, 2.5]) / 7.5),
                "sign_lost": ("The exponential of -ln 2 was taken as 2: the minus sign makes it 1/2.",
                              lambda: np.array([2, 2, 5, 2.5]) / 11.5),
            },
        ),
        Question(
            "q2", "stable_softmax", softmax,
            parts=(
                Part("a matrix of scores", 2, _matrices),
                Part("one row, or leading axes for batch and heads", 1, _axes_in_front),
                Part("scores far from 0, and rows far from each other", 2, _far_rows),
                Part("float32 stays float32", 1, _in_float32, dtype=True),
                untouched(),
            ),
            mistakes={
                "softmax_over_queries": lambda x: softmax(x, axis=-2),
                "softmax_over_everything": lambda x: softmax(np.ravel(x)).reshape(np.shape(x)),
                "softmax_without_maximum": _plain,
                "normalised_without_exp": lambda x: x / x.sum(-1, keepdims=True),
            },
            slips={
                "first_axis": ("The softmax ran over axis 0, the first: the keys stand on the last one, axis -1.",
                               lambda x: softmax(x, axis=0)),
                "second_axis": (
                    "The softmax ran over axis 1, which holds the keys only in a matrix: counted from the end it is always axis -1.",
                    lambda x: softmax(x, axis=1)),
                "one_maximum": (
                    "One maximum is subtracted from all rows: a row far below it becomes 0 / 0; each row needs its own.",
                    lambda x: _softmax_of_exponentials(x, x.max())),
                "minimum_subtracted": ("The row minimum is subtracted: the best key can still overflow; subtract the maximum.",
                                       lambda x: _softmax_of_exponentials(x, x.min(-1, keepdims=True))),
                "mean_subtracted": ("The row mean is subtracted: the best key can still overflow; subtract the maximum.",
                                    lambda x: _softmax_of_exponentials(x, x.mean(-1, keepdims=True))),
                "keepdims_missing": (
                    "Maximum and sum have lost their axis: with keepdims=True they stay a column, and every row meets its own.",
                    _without_keepdims),
                "sum_without_keepdims": (
                    "The sum has lost its axis: with keepdims=True it stays a column, and every row is divided by its own.",
                    _sum_without_keepdims),
                "not_divided": ("The exponentials are not divided by their sum: the rows do not sum to 1.",
                                lambda x: np.exp(x - x.max(-1, keepdims=True))),
            },
        ),
        Question(
            "q3", "softmax", softmax,
            parts=(
                Part("any axis", 2, _any_axis),
                Part("scores of -inf get the weight 0", 1, _some_forbidden),
                Part("a row of -inf gives zeros", 2, _nothing_left),
                Part("large scores", 1, _large_axis),
                Part("a row with NaN is NaN", 1, _with_nan),
                Part("axes and sizes that are not announced", 1, _unannounced, hidden=True),
                untouched(),
            ),
            mistakes={"softmax_without_maximum": _plain},
            slips={
                "always_the_last_axis": ("The argument axis is not used: the softmax always runs over the last axis.",
                                         lambda x, axis=-1: softmax(x)),
                "axis_not_moved_back": ("The axis is moved to the end and not back: the result has its axes in another order.",
                                        lambda x, axis=-1: softmax(np.moveaxis(x, axis, -1))),
                "empty_row_is_nan": ("A row of -inf becomes NaN: its maximum is -inf, and -inf - (-inf) is NaN.", _without_guard),
                "empty_row_is_even": (
                    "A row of -inf gives equal weights: -inf was replaced by a finite number, so all its keys are equally bad.",
                    lambda x, axis=-1: softmax(np.where(x == -np.inf, -1e9, x), axis)),
                "zeros_if_any": ("One -inf turns the whole row into zeros: only a row in which all scores are -inf is empty.",
                                 _zeros_if_any),
                "nan_hidden": ("A NaN in the scores disappears: it must show; catch only the row in which all scores are -inf.",
                               lambda x, axis=-1: np.nan_to_num(softmax(x, axis))),
                "overflow_behind_the_guard": (
                    "A row of -inf is caught, but no maximum is subtracted: exp overflows for large scores, and inf / inf is NaN.",
                    _guarded_without_maximum),
            },
        ),
        Question(
            "q4", "keys_used", keys_used,
            parts=(
                Part("without a temperature, T = 1", 1, _warm),
                Part("at other temperatures", 1, _temperatures),
                Part("weights of exactly 0", 2, _with_zeros),
                untouched(),
            ),
            slips={
                "times_T": ("The scores are multiplied by T: divide by it, so that a high temperature evens them out.",
                            lambda scores, T=1.0: keys_used(scores, 1 / T)),
                "temperature_ignored": ("The temperature is not used: the result is that of T = 1.",
                                        lambda scores, T=1.0: keys_used(scores)),
                "temperature_after_softmax": (
                    "The weights are divided by T, not the scores: the temperature comes before the softmax.",
                    lambda scores, T=1.0: np.exp(-np.where((w := softmax(scores)) > 0, w / T * np.log(
                        np.where(w > 0, w / T, 1)), 0).sum(-1))),
                "entropy_itself": ("This is the entropy: e to the entropy is asked.",
                                   lambda scores, T=1.0: _entropy(softmax(scores / T))),
                "sign_of_the_entropy": ("The minus sign of the entropy is missing: the results are below 1, at least one key is used.",
                                        lambda scores, T=1.0: 1 / keys_used(scores, T)),
                "wrong_base": ("The logarithm has the base 2 and the power the base e: use the same base for both.",
                               lambda scores, T=1.0: np.exp(_entropy(softmax(scores / T)) / np.log(2))),
                "zero_times_infinity": ("A weight of 0 makes the row NaN: 0 times log 0 is NaN in NumPy, it must count as 0.",
                                        _keys_used_with_nan),
                "keys_counted": ("Every key with a weight above 0 counts as one: the entropy counts it by its weight.",
                                 lambda scores, T=1.0: (softmax(scores / T) > 0).sum(-1)),
            },
        ),
        value(
            "q5", "temperature", lambda: _temperature(_real_row()), 2,
            mistakes={
                "no_scale": lambda: _temperature(_real_row() * np.sqrt(32)),
                "bias_forgotten": lambda: _temperature(_real_row(bias=False)),
                "query_and_key_swapped": lambda: _temperature(_real_row(turn=True)),
            },
            slips={
                "factor": ("This is 1 / T, a factor for the scores: a temperature divides them.",
                           lambda: 1 / _temperature(_real_row())),
                "head_0": ("This is head 0: head 1 has the columns 32 to 63.", lambda: _temperature(_real_row(head=0))),
                "head_2": ("This is head 2: counted from 0, head 1 has the columns 32 to 63.",
                           lambda: _temperature(_real_row(head=2))),
            },
        ),
    ),
)  # fmt: skip
