"""01_why: paths and pairs, a look-up that blends, and two ways to score a pair."""

import numpy as np

from ..data import load_layer
from ._question import Exercise, Part, Question, call, untouched, value


# --------------------------------------------------------------------------------------------------------------------- q1, counts
def _counts(recurrence=800, attention=1, pairs=1_000_000, growth=9):
    """Steps, steps, weights of one head, and how the weights grow with the text."""
    return np.array([recurrence, attention, pairs, growth])


# --------------------------------------------------------------------------------------------------------------------- q2, by hand
EXPONENTIALS, VALUES = np.array([1, 2, 5]), np.array([[8, 0], [4, 4], [0, 8]])


def _blend(fits=EXPONENTIALS, values=VALUES):
    """The weighted mean of the values, (2,)."""
    return fits / fits.sum() @ values


# ------------------------------------------------------------------------------------------------------------------- q3, the look-up
def soft_lookup(query, keys, values, *, scale=None, fit=np.exp):
    """The output (d_v,) and the weights (S,) of one query; `scale` in place of 1 / sqrt(d_k), `fit` in place of exp."""
    fits = fit(keys @ query * (len(query) ** -0.5 if scale is None else scale))  # (S,)
    weights = fits / fits.sum()  # (S,)
    return weights @ values, weights


def _with_weights(make, also=lambda weights, values: weights @ values):
    """A wrong look-up: `make` changes the right weights, `also` makes the output of them."""

    def wrong(query, keys, values):
        weights = make(soft_lookup(query, keys, values)[1])
        return also(weights, values), weights

    return wrong


def _keys_as_values(query, keys, values):
    return soft_lookup(query, keys, keys)


def _not_divided(query, keys, values):
    fits = np.exp(keys @ query / len(query) ** 0.5)
    return fits @ values, fits


def _keys_transposed(query, keys, values):
    return soft_lookup(query, keys.T, values)


def _dictionary(rng, *, S, d_k, d_v):
    return call(rng.standard_normal(d_k), rng.standard_normal((S, d_k)), rng.standard_normal((S, d_v)))


def _width_4(rng):
    """One key, S = d_k = d_v, where a lost transpose changes no shape, and sizes that differ."""
    return [_dictionary(rng, S=S, d_k=4, d_v=d_v) for S, d_v in ((1, 2), (2, 3), (4, 4), (7, 3))]


def _any_width(rng):
    sizes = ((2, 1, 2), (3, 3, 3), (3, 9, 5), (6, 16, 1), (5, 2, 8))
    plain = call(
        60 * np.eye(3)[1], np.eye(3), rng.standard_normal((3, 2))
    )  # perpendicular keys, a long query along one
    return [_dictionary(rng, S=S, d_k=d_k, d_v=d_v) for S, d_k, d_v in sizes] + [plain]


# ------------------------------------------------------------------------------------------------------------------- q4, additive
def additive_scores(queries, keys, v, *, inner=np.tanh, pair=np.add):
    """tanh(q_i + k_j) . v for every pair: (..., L, D), (..., S, D), (D,) -> (..., L, S)."""
    return inner(pair(queries[..., :, None, :], keys[..., None, :, :])) @ v


def _one_by_one(queries, keys, v):
    return np.tanh(queries + keys) @ v


def _axis_0(queries, keys, v):
    return np.tanh(queries[:, None] + keys) @ v


def _sequences(rng, *B, L, S, D):
    return call(rng.standard_normal((*B, L, D)), rng.standard_normal((*B, S, D)), rng.standard_normal(D))


def _pairs(rng):
    """One query, one key, one component; L = S, where a swap changes no shape, and L = S = D."""
    sizes = ((1, 2, 1), (2, 2, 3), (3, 1, 2), (2, 5, 4), (4, 4, 4))
    return [_sequences(rng, L=L, S=S, D=D) for L, S, D in sizes]


def _batches(rng):
    return [_sequences(rng, *B, L=L, S=S, D=D)
            for B, L, S, D in (((2,), 2, 3, 4), ((3,), 3, 3, 2), ((2, 3), 2, 2, 3), ((1, 2), 4, 1, 5))]  # fmt: skip


# --------------------------------------------------------------------------------------------------------------------- q5, the real head
def _real(asks="cross", asked="street", **changed):
    """The weight of one token on another in head 1 of the real layer."""
    layer = load_layer()
    q, k = (layer.x.astype(float) @ getattr(layer, f"W_{n}")[:, 32:64] + getattr(layer, f"b_{n}")[32:64] for n in "QK")
    weights = soft_lookup(q[layer.tokens.index(asks)], k, k, **changed)[1]
    return weights[layer.tokens.index(asked)]


EXERCISE = Exercise(
    "01_why",
    "Why attention",
    offers=(),
    questions=(
        value(
            "q1", "counts", _counts, 1, tolerance=1e-7,
            slips={
                "positions_for_steps": (
                    "The positions on the way are counted, 801 of them: there is one step less than that.",
                    lambda: _counts(recurrence=801)),
                "the_whole_text": ("The recurrence is counted from the first position to the last: it goes from 100 to 900 here.",
                                   lambda: _counts(recurrence=999)),
                "attention_goes_along": ("Attention does not go from position to position: 900 reads 100 directly.",
                                         lambda: _counts(attention=800)),
                "each_pair_once": (
                    "Each pair is counted once: every position asks, so i with j and j with i are two weights.",
                    lambda: _counts(pairs=1000 * 999 // 2)),
                "only_backwards": (
                    "Only the pairs that look back are counted: here a position also reads those after it.",
                    lambda: _counts(pairs=1000 * 1001 // 2)),
                "without_itself": ("The pairs of a position with itself are left out: it has a weight on itself, too.",
                                   lambda: _counts(pairs=1000 * 999)),
                "grows_like_the_text": (
                    "The weights grow with the square of the length: three times as many rows, each three times as long.",
                    lambda: _counts(growth=3)),
            },
        ),
        value(
            "q2", "blend", _blend, 1,
            slips={
                "not_divided_by_sum": ("The values are added up 1, 2 and 5 times: weights sum to 1, so divide by 8.",
                                       lambda: EXPONENTIALS @ VALUES),
                "divided_by_the_number": ("The sum is divided by 3, the number of values: divide by the sum of the weights, 8.",
                                          lambda: EXPONENTIALS @ VALUES / 3),
                "mean_of_all": ("This is the plain mean: the third value counts five times as much as the first.",
                                lambda: _blend(np.ones(3))),
                "best_only": ("This is the value of the best key alone: a soft look-up blends all of them.",
                              lambda: VALUES[2]),
                "exponential_twice": ("The exponential is taken twice: 1, 2 and 5 are the exponentials already.",
                                      lambda: _blend(np.exp(EXPONENTIALS))),
                "other_order": ("The weights meet the values in the opposite order: key 1 belongs to value 1.",
                                lambda: _blend(EXPONENTIALS[::-1])),
                "weights_only": ("These are the weights: the blend of the values is asked, two numbers.",
                                 lambda: EXPONENTIALS / 8),
            },
        ),
        Question(
            "q3", "soft_lookup", lambda query, keys, values: soft_lookup(query, keys, values),
            parts=(
                Part("keys of width 4, as in the pencil example", 1, _width_4),
                Part("any width, any number of keys", 3, _any_width),
                Part("sizes that are not announced", 1, lambda rng: [
                    _dictionary(rng, S=8, d_k=6, d_v=3), _dictionary(rng, S=5, d_k=5, d_v=5)], hidden=True),
                untouched(),
            ),
            mistakes={
                "no_scale": lambda query, keys, values: soft_lookup(query, keys, values, scale=1.0),
                "divided_by_d_k": lambda query, keys, values: soft_lookup(query, keys, values, scale=1 / len(query)),
                "normalised_without_exp": lambda query, keys, values: soft_lookup(query, keys, values, fit=lambda r: r),
                "keys_as_values": _keys_as_values,
            },
            slips={
                "not_divided_by_sum": ("The exponentials are not divided by their sum: weights sum to 1.", _not_divided),
                "best_only": (
                    "All weight falls on the best key: the look-up is soft, every key gets a share.",
                    _with_weights(lambda weights: np.eye(len(weights))[weights.argmax()])),
                "mean_of_all": (
                    "All keys get the same weight: the scores decide how much each of them counts.",
                    _with_weights(lambda weights: np.full(len(weights), 1 / len(weights)))),
                "root_of_length": (
                    "The raw scores are divided by the root of the number of keys: divide by that of their width, len(query).",
                    lambda query, keys, values: soft_lookup(query, keys, values, scale=len(keys) ** -0.5)),
                "times_the_root": (
                    "The raw scores are multiplied by the root of d_k: divide by it.",
                    lambda query, keys, values: soft_lookup(query, keys, values, scale=len(query) ** 0.5)),
                "negative_exponent": (
                    "The exponent has a minus sign: the key that fits best must get the largest weight.",
                    lambda query, keys, values: soft_lookup(query, keys, values, scale=-(len(query) ** -0.5))),
                "keys_transposed": (
                    "The query is multiplied with the columns of the keys: a key is a row, so keys @ query.",
                    _keys_transposed),
                "values_transposed": (
                    "The weights are multiplied with the rows of the values: they belong to the keys, so weights @ values.",
                    _with_weights(lambda weights: weights, lambda weights, values: values @ weights)),
                "weights_first": (
                    "The weights stand first: return the output, then the weights.",
                    lambda query, keys, values: soft_lookup(query, keys, values)[::-1]),
                "weighted_values": (
                    "The values are weighted, but not added up: the output is one row of d_v numbers.",
                    _with_weights(lambda weights: weights, lambda weights, values: weights[:, None] * values)),
            },
        ),
        Question(
            "q4", "additive_scores", lambda queries, keys, v: additive_scores(queries, keys, v),
            parts=(
                Part("every query with every key", 2, _pairs),
                Part("leading axes for a batch", 1, _batches),
                Part("sizes that are not announced", 1, lambda rng: [
                    _sequences(rng, L=6, S=3, D=7), _sequences(rng, 3, L=3, S=3, D=3)], hidden=True),
                untouched(),
            ),
            slips={
                "dot_product": ("These are dot products: the additive score takes the tanh of the sum of query and key, times v.",
                                lambda queries, keys, v: queries @ keys.swapaxes(-1, -2)),
                "keys_ask": ("Rows and columns have changed places: a row belongs to a query.",
                             lambda queries, keys, v: additive_scores(keys, queries, v)),
                "one_by_one": ("Query i meets key i only: every query must meet every key, so give each an axis of its own.",
                               _one_by_one),
                "counted_from_the_front": (
                    "Queries and keys are paired along the first axis: with a batch there, the tokens stand on the last axis but "
                    "one, so count from the back.",
                    _axis_0),
                "tanh_last": ("The tanh is taken last, of the whole score: it belongs inside, before v.",
                              lambda queries, keys, v: np.tanh(additive_scores(queries, keys, v, inner=lambda s: s))),
                "tanh_forgotten": ("The tanh is missing: without it a query shifts all its scores alike.",
                                   lambda queries, keys, v: additive_scores(queries, keys, v, inner=lambda s: s)),
                "tanh_of_each": ("The tanh is taken of query and key apart: add them first.",
                                 lambda queries, keys, v: additive_scores(np.tanh(queries), np.tanh(keys), v, inner=lambda s: s)),
                "v_forgotten": ("The components are added up with equal weight: v weighs them.",
                                lambda queries, keys, v: additive_scores(queries, keys, np.ones_like(v))),
                "v_inside": ("v stands inside the tanh: it multiplies what the tanh gives.",
                             lambda queries, keys, v: additive_scores(queries * v, keys * v, np.ones_like(v))),
                "product_inside": ("Query and key are multiplied inside the tanh: they are added there.",
                                   lambda queries, keys, v: additive_scores(queries, keys, v, pair=np.multiply)),
                "difference_inside": ("The key is subtracted from the query: they are added.",
                                      lambda queries, keys, v: additive_scores(queries, keys, v, pair=np.subtract)),
                "divided_by_root": ("The scores are divided by sqrt(d_k): that factor belongs to the dot product.",
                                    lambda queries, keys, v: additive_scores(queries, keys, v) / len(v) ** 0.5),
            },
        ),
        value(
            "q5", "cross_on_street", _real, 2, tolerance=0.01,
            mistakes={
                "no_scale": lambda: _real(scale=1.0),
                "divided_by_d_k": lambda: _real(scale=1 / 32),
            },
            slips={
                "turned_around": ("This is the weight of street on cross: it is cross that asks.",
                                  lambda: _real("street", "cross")),
                "row_of_it": ("This is the weight of it on street: it is cross that asks.", lambda: _real("it")),
                "it_on_animal": ("This is the weight of it on animal: cross asks, and street is asked.",
                                 lambda: _real("it", "animal")),
                "root_of_length": ("The raw scores are divided by 4, the root of 16 tokens: divide by the root of the width, 32.",
                                   lambda: _real(scale=1 / 4)),
            },
        ),
    ),
)  # fmt: skip
