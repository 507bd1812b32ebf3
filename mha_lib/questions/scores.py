"""04_scores: from dot products to scaled scores, and what a lead is worth."""

import numpy as np

from ..data import load_layer, load_pencil
from ..numpy import attention_scores
from ._question import Exercise, Part, Question, call, untouched, value


def _pair(rng, *shape, L, S, D):
    return rng.standard_normal((*shape, L, D)), rng.standard_normal((*shape, S, D))


def _sizes(rng):
    """L != S, L = S (where a swap changes no shape), one query, one key, an odd width."""
    return [call(*_pair(rng, L=L, S=S, D=D)) for L, S, D in ((1, 2, 1), (2, 2, 3), (2, 3, 4), (5, 1, 9), (7, 7, 16))]


def _batches(rng):
    return [
        call(*_pair(rng, 2, 3, L=3, S=3, D=4)),
        call(*_pair(rng, 3, L=4, S=2, D=5)),
        call(*_pair(rng, 2, 1, L=1, S=5, D=3)),
    ]


def _widths(rng):
    return [call(*_pair(rng, 4, L=3, S=3, D=D)) for D in (1, 5, 16, 64)]


# ------------------------------------------------------------------------------------------------------------------- q1, by hand
def _pencil():
    """Queries and keys of head 0 of the pencil example, (3, 4) each."""
    pencil = load_pencil()
    return pencil.x @ pencil.W_Q[:, :4], pencil.x @ pencil.W_K[:, :4]


def _row_of_mice():
    query, key = _pencil()
    return query[2] @ key.T  # (S,)


def _column_of_mice():
    query, key = _pencil()
    return query @ key[2]


# ------------------------------------------------------------------------------------------------------------------- q2, raw scores
def raw_scores(query, key):
    """Every query with every key, without a scale: (..., L, D), (..., S, D) -> (..., L, S)."""
    return query @ np.swapaxes(key, -1, -2)


# ------------------------------------------------------------------------------------------------------------------- q4, ratios
def odds(scores, i, j):
    """How many times the weight of key j the weight of key i is: (..., L, S) -> (..., L)."""
    return np.exp(scores[..., i] - scores[..., j])


def _rows(rng):
    return [
        call(rng.standard_normal((1, 2)), 0, 1),
        call(2 * rng.standard_normal((3, 5)), 4, 2),
        call(np.array([[2.0, 2.0]]), 0, 1),
    ]


def _large_rows(rng):
    return [call(np.array([[1000.0, 999.0], [-900.0, -902.0]]), 0, 1), call(800 + rng.standard_normal((2, 3, 4)), 3, 0)]


# ------------------------------------------------------------------------------------------------------------------- q5, the real layer
def _real(W_Q=None, *, bias=True, head=1, turn=False):
    """The raw score of "it" with "animal" in one head of the real layer."""
    layer = load_layer()
    x, columns = layer.x.astype(float), slice(32 * head, 32 * head + 32)
    W_Q = layer.W_Q if W_Q is None else W_Q
    query = x @ W_Q[:, columns] + bias * layer.b_Q[columns]
    key = x @ layer.W_K[:, columns] + bias * layer.b_K[columns]
    it, animal = layer.tokens.index("it"), layer.tokens.index("animal")
    if turn:
        it, animal = animal, it
    return query[it] @ key[animal]


EXERCISE = Exercise(
    "04_scores",
    "Scores and scaling",
    offers=("embedding", "layer_norm", "project"),
    questions=(
        value(
            "q1", "mice_row", _row_of_mice, 1,
            mistakes={"query_and_key_swapped": _column_of_mice},
            slips={
                "halved": ("These are the scores, already divided by sqrt(d_k) = 2; the raw scores are asked.",
                           lambda: _row_of_mice() / 2),
                "row_of_chase": ("This is the row of chase: counted from 0, mice is row 2.",
                                 lambda: _pencil()[0][1] @ _pencil()[1].T),
            },
        ),
        Question(
            "q2", "raw_scores", raw_scores,
            parts=(
                Part("one head, any L, S and D", 2, _sizes),
                Part("leading axes for batch and heads", 1, _batches),
                Part("sizes that are not announced", 1, lambda rng: [call(*_pair(rng, 2, L=6, S=3, D=7))], hidden=True),
                untouched(),
            ),
            mistakes={"query_and_key_swapped": lambda query, key: raw_scores(key, query)},
            slips={
                "scaled_already": ("The raw scores are asked: the division by sqrt(d_k) comes in the next question.",
                                   lambda query, key: attention_scores(query, key)),
                "one_by_one": ("Query i meets key i only: every query must meet every key, so a product of matrices.",
                               lambda query, key: (query * key).sum(-1)),
            },
        ),
        Question(
            "q3", "scaled_scores", attention_scores,
            parts=(
                Part("one head, any L, S and D", 1, _sizes),
                Part("the right number for every width and any number of heads", 2, _widths),
                Part("float32 stays float32", 1, lambda rng: [
                    call(*(x.astype(np.float32) for x in _pair(rng, 2, L=3, S=4, D=8)))], dtype=True),
                untouched(),
            ),
            mistakes={
                "no_scale": raw_scores,
                "divided_by_d_k": lambda query, key: raw_scores(query, key) / query.shape[-1],
                "divided_by_sqrt_d_model": lambda query, key: raw_scores(query, key)
                / np.sqrt(query.shape[-1] * (query.shape[-3] if query.ndim > 2 else 1)),
                "query_and_key_swapped": lambda query, key: attention_scores(key, query),
            },
            slips={
                "times_the_root": ("The scores are multiplied by sqrt(d_k): the root belongs below the line.",
                                   lambda query, key: raw_scores(query, key) * np.sqrt(query.shape[-1])),
                "root_of_length": ("The scores are divided by sqrt(S), the number of keys: the width of a key is its last axis.",
                                   lambda query, key: raw_scores(query, key) / np.sqrt(key.shape[-2])),
            },
        ),
        Question(
            "q4", "odds", odds,
            parts=(
                Part("a ratio for every query", 2, _rows),
                Part("large scores, whose exponentials overflow", 1, _large_rows),
                untouched(),
            ),
            slips={
                "upside_down": ("The ratio stands upside down: the weight of key i is asked in units of that of key j.",
                                lambda scores, i, j: odds(scores, j, i)),
                "ratio_of_scores": ("This is the ratio of the scores: a difference of scores becomes a ratio of weights.",
                                    lambda scores, i, j: scores[..., i] / scores[..., j]),
                "difference": ("This is the lead itself: the ratio of the weights is its exponential.",
                               lambda scores, i, j: scores[..., i] - scores[..., j]),
                "rows_for_columns": ("Rows i and j are compared: the keys stand in the columns, the last axis.",
                                     lambda scores, i, j: np.exp(scores[..., i, :] - scores[..., j, :])),
                "exponentials_first": (
                    "The exponentials overflow before they are divided: subtract the scores first, then take one exp.",
                    lambda scores, i, j: np.exp(scores[..., i]) / np.exp(scores[..., j])),
            },
        ),
        value(
            "q5", "it_animal", _real, 2, tolerance=0.001,
            mistakes={"bias_forgotten": lambda: _real(bias=False)},
            slips={
                "turned_around": ("This is animal's query with it's key: the row of it is asked, so it gives the query.",
                                  lambda: _real(turn=True)),
                "head_0": ("This is head 0: head 1 has the columns 32 to 63.", lambda: _real(head=0)),
                "head_2": ("This is head 2: counted from 0, head 1 has the columns 32 to 63.", lambda: _real(head=2)),
                "scaled_already": ("This is the score, divided by sqrt(32) already; the raw score is asked.",
                                   lambda: _real() / np.sqrt(32)),
            },
        ),
    ),
)  # fmt: skip
