"""06_masks: the future and the padding as tables of permissions, and a softmax that obeys them."""

import numpy as np

from ..data import load_layer
from ..numpy import causal_mask, padding_mask, softmax
from ._question import Exercise, Part, Question, call, some_mask, untouched, value
from .attention import TOO_WEAK


# ------------------------------------------------------------------------------------------------------------------- q1, by hand
def _shares(*exponentials):
    return np.array(exponentials) / np.sum(exponentials)


# ------------------------------------------------------------------------------------------------------------------- q2, causal
def _squares(rng):
    return [call(1), call(2), call(int(rng.integers(3, 6))), call(4, 4)]


def _oblongs(rng):
    return [call(2, 3), call(1, 4), call(5, 2), call(3, int(rng.integers(5, 8)))]


def _offsets(rng):
    """Decoding (S - L), one that leaves later keys hidden, and a negative one, under which the first queries see nothing."""
    return [
        call(1, 3, 2),
        call(2, 5, offset=3),
        call(3, 6, 1),
        call(4, 2, offset=-2),
        call(3, offset=int(rng.integers(1, 3))),
    ]


def _unannounced_causal(rng):
    L, S = (int(n) for n in rng.integers(3, 9, 2))
    return [call(L, S, int(rng.choice([-2, -1, 1, 2]))), call(L, L + 1), call(S + 2, S)]


# ------------------------------------------------------------------------------------------------------------------- q3, padding
def _lengths(rng):
    """B != S, and B = S, where an array (B, S) looks like (L, S)."""
    return [
        call(np.array([1]), 2), call(np.array([2, 3]), 4), call(np.array([1, 2, 3]), 3),
        call(rng.integers(1, 6, 4), 6), call(rng.integers(1, 5, 5), 5),
    ]  # fmt: skip


def _ends(rng):
    return [call(np.array([0, 2]), 2), call(np.array([4, 0, 1]), 4)]


def _unannounced_lengths(rng):
    return [call(rng.integers(0, 10, 3), 9), call(rng.integers(0, 3, 7), 2)]


# ------------------------------------------------------------------------------------------------------------------- q4, masked softmax
def masked_softmax(scores, mask, bias=None):
    """The weights of the allowed keys: scores (..., L, S), mask and bias broadcast to it -> (..., L, S)."""
    return softmax(np.where(mask, _biased(scores, bias), -np.inf))


def _biased(scores, bias):
    return scores if bias is None else scores + bias


def _scores(rng, *shape):
    return 2 * rng.standard_normal(shape)


def _pairs(rng):
    return [call(np.array([[0.0, 1.0]]), np.array([[True, False]])),
            *(call(_scores(rng, L, S), some_mask(rng, L, S)) for L, S in ((2, 3), (4, 4), (5, 2))),
            call(1000 + _scores(rng, 3, 4), some_mask(rng, 3, 4))]  # fmt: skip


def _broadcast(rng):
    """One mask for every sequence, one for all, one row for all queries, and a restriction for one sequence only."""
    only = np.ones((3, 1, 3, 3), bool)
    only[1, 0] = np.tri(3)
    lengths = padding_mask([2, 4, 1], 4)
    return [
        call(_scores(rng, 3, 4), some_mask(rng, 1, 4)[0]), call(_scores(rng, 2, 3, 3), causal_mask(3)),
        call(_scores(rng, 3, 2, 5, 4), lengths), call(_scores(rng, 3, 2, 3, 3), only),
        call(_scores(rng, 2, 2, 4, 4), some_mask(rng, 2, 1, 4, 4)),
    ]  # fmt: skip


def _nothing_left(rng):
    mask = some_mask(rng, 4, 4)
    mask[2] = False
    return [call(np.array([[1.0, 3.0]]), np.zeros((1, 2), bool)), call(_scores(rng, 4, 4), mask),
            call(_scores(rng, 2, 1, 3, 3), padding_mask([2, 0], 3))]  # fmt: skip


def _with_bias(rng):
    never = np.where(causal_mask(3), rng.standard_normal((3, 3)), -np.inf)
    return [call(_scores(rng, 2, 3), some_mask(rng, 2, 3), _scores(rng, 2, 3)), call(_scores(rng, 2, 4, 5), some_mask(rng, 4, 5), _scores(rng, 5)),
            call(_scores(rng, 2, 3, 3), np.ones((3, 3), bool), never)]  # fmt: skip


def _strange_behind(rng):
    """NaN, infinity and a score far ahead behind the mask; a NaN that is attended to; an allowed score far below the others."""
    calls = []
    for strange in (np.nan, np.inf, 1000.0):
        scores, mask = _scores(rng, 3, 4), some_mask(rng, 3, 4)
        scores[~mask] = strange
        calls.append(call(scores, mask))
    scores, mask = _scores(rng, 2, 3), np.array([[True, True, True], [True, False, True]])
    scores[0, 1] = np.nan
    low = call(np.array([[-1e6, 0.0]]), np.array([[True, False]]))
    return [*calls, call(scores, mask), low]


def _in_float32(rng):
    return [call(_scores(rng, 2, 3, 4).astype(np.float32), some_mask(rng, 3, 4))]


def _unguarded(scores, mask, bias=None):
    masked = np.where(mask, _biased(scores, bias), -np.inf)
    e = np.exp(masked - masked.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _without_maximum(scores, mask, bias=None):
    """Guarded against an empty row, but not against overflow."""
    e = np.exp(np.where(mask, _biased(scores, bias), -np.inf))
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def _divided_again(scores, mask, bias=None, guard=False):
    weights = softmax(_biased(scores, bias)) * mask
    total = weights.sum(-1, keepdims=True)
    return weights / (np.where(total == 0, 1, total) if guard else total)


def _first_mask(scores, mask, bias=None):
    return masked_softmax(scores, mask[0] if mask.ndim == scores.ndim > 2 else mask, bias)


# ------------------------------------------------------------------------------------------------------------------- q5, the real layer
def _real_row(attend=masked_softmax, mask=None, *, head=1, bias=True, turn=False, scale=True):
    """The weights of "it" in one head of the real layer under a mask, (S,) = (16,)."""
    layer = load_layer()
    x, columns = layer.x.astype(float), slice(32 * head, 32 * head + 32)
    query = x @ layer.W_Q[:, columns] + bias * layer.b_Q[columns]
    key = x @ layer.W_K[:, columns] + bias * layer.b_K[columns]
    if turn:
        query, key = key, query
    scores = query @ key.T / (np.sqrt(32) if scale else 1)
    return attend(scores, causal_mask(16) if mask is None else mask)[layer.tokens.index("it")]


def _inverted(scores, mask, bias=None):
    return masked_softmax(scores, ~mask, bias)


def _after(scores, mask, bias=None):
    return softmax(_biased(scores, bias)) * mask


def _added(scores, mask, bias=None):
    return softmax(_biased(scores, bias) + mask)


def _multiplied(scores, mask, bias=None):
    return softmax(_biased(scores, bias) * mask)


def _ignored(scores, mask, bias=None):
    return softmax(_biased(scores, bias))


EXERCISE = Exercise(
    "06_masks",
    "Masks",
    offers=("project", "softmax"),
    questions=(
        value(
            "q1", "weights_by_hand", lambda: _shares(5, 0, 2, 1), 1,
            mistakes={
                "mask_after_softmax": lambda: np.array([5, 0, 2, 1]) / 12,
                "mask_multiplied": lambda: _shares(5, 1, 2, 1),
                "mask_ignored": lambda: _shares(5, 2, 4, 1),
            },
            slips={
                "less_ignored": ("The -ln 2 is not added: it takes half of the exponential of the third key.",
                                 lambda: _shares(5, 0, 4, 1)),
                "not_divided": ("These are the exponentials: divide them by their sum, so that they become shares.",
                                lambda: np.array([5, 0, 2, 1])),
                "third_blocked": ("The third key is blocked as well: only -inf forbids, -ln 2 makes it less.",
                                  lambda: _shares(5, 0, 0, 1)),
            },
        ),
        Question(
            "q2", "causal_mask", causal_mask,
            parts=(
                Part("as many queries as keys", 1, _squares),
                Part("more keys than queries, or fewer", 1, _oblongs),
                Part("an offset", 2, _offsets),
                Part("sizes that are not announced", 1, _unannounced_causal, hidden=True),
            ),
            mistakes={
                "causal_mask_sees_next": lambda L, S=None, offset=0: causal_mask(L, S, offset + 1),
                "causal_mask_hides_itself": lambda L, S=None, offset=0: causal_mask(L, S, offset - 1),
                "causal_mask_transposed": lambda L, S=None, offset=0: ~causal_mask(L, S, offset - 1),
                "mask_inverted": lambda L, S=None, offset=0: ~causal_mask(L, S, offset),
            },
            slips={
                "offset_ignored": ("The offset is not used: query i stands at position offset + i.",
                                   lambda L, S=None, offset=0: causal_mask(L, S)),
                "offset_subtracted": ("The offset has the wrong sign: query i stands at position offset + i, not i - offset.",
                                      lambda L, S=None, offset=0: causal_mask(L, S, -offset)),
                "always_bottom_right": (
                    "The triangle ends at the bottom right, whatever the offset is: with offset 0 it starts at the top left.",
                    lambda L, S=None, offset=0: causal_mask(L, S, (L if S is None else S) - L)),
                "keys_forgotten": ("S is not used: the mask has one row for each query and one column for each key, (L, S).",
                                   lambda L, S=None, offset=0: causal_mask(L, L, offset)),
                "rows_for_keys": ("The mask has the shape (S, L): the queries are the rows, (L, S).",
                                  lambda L, S=None, offset=0: causal_mask(L if S is None else S, L, offset)),
            },
        ),
        Question(
            "q3", "padding_mask", padding_mask,
            parts=(
                Part("the tokens of each sequence", 2, _lengths),
                Part("an empty sequence, and a full one", 1, _ends),
                Part("lengths that are not announced", 1, _unannounced_lengths, hidden=True),
                untouched(),
            ),
            mistakes={
                "padding_mask_inverted": lambda lengths, S: ~padding_mask(lengths, S),
                "padding_mask_shifted": lambda lengths, S: padding_mask(np.minimum(lengths + 1, S), S),
            },
            slips={
                "last_token_hidden": ("The last token of each sequence is hidden: the positions of length n are 0 .. n - 1.",
                                      lambda lengths, S: padding_mask(np.maximum(lengths - 1, 0), S)),
                "padding_in_front": ("The padding is hidden at the front: here it stands behind the tokens.",
                                     lambda lengths, S: padding_mask(lengths, S)[..., ::-1]),
                "axes_missing": (
                    "The shape is (B, S), which is read as (L, S): put two axes of length 1 between them, for heads and queries.",
                    lambda lengths, S: padding_mask(lengths, S)[:, 0, 0]),
                "axes_in_front": (
                    "The axes of length 1 stand in front, (1, 1, B, S): the batch comes first, then heads and queries.",
                    lambda lengths, S: padding_mask(lengths, S)[:, 0, 0][None, None]),
            },
        ),
        Question(
            "q4", "masked_softmax", masked_softmax,
            parts=(
                Part("a mask with an entry for every pair", 2, _pairs),
                Part("masks that broadcast, and one that restricts one sequence only", 2, _broadcast),
                Part("a query with nothing to attend to gets zeros", 1, _nothing_left),
                Part("a bias", 1, _with_bias),
                Part("NaN, inf or 1000 behind the mask; an allowed NaN shows", 2, _strange_behind),
                Part("float32 stays float32", 1, _in_float32, dtype=True),
                untouched(),
            ),
            mistakes={
                "mask_inverted": _inverted,
                "mask_after_softmax": _after,
                "mask_added": _added,
                "mask_multiplied": _multiplied,
                "softmax_without_maximum": _without_maximum,
                "mask_with_finite_value": lambda scores, mask, bias=None: softmax(np.where(mask, _biased(scores, bias), -1e9)),
                "masked_row_is_nan": _unguarded,
                "mask_ignored": _ignored,
                "softmax_over_queries": lambda scores, mask, bias=None: softmax(
                    np.where(mask, _biased(scores, bias), -np.inf), axis=-2),
            },
            slips={
                "divided_again": (
                    "The mask comes after the softmax and the rows are divided again: forbidden scores still decide, and 0 / 0 is NaN.",
                    _divided_again),
                "divided_again_with_guard": (
                    "The mask comes after the softmax and the rows are divided again: a forbidden NaN or 1000 has done its harm by then.",
                    lambda scores, mask, bias=None: _divided_again(scores, mask, bias, guard=True)),
                "minus_infinity_added": (
                    "Forbidden scores get -inf added: NaN stays NaN, and inf - inf is NaN; replace them with np.where.",
                    lambda scores, mask, bias=None: softmax(_biased(scores, bias) + np.where(mask, 0, -np.inf))),
                "zero_times_infinity": (
                    "The mask is multiplied by -inf: for an allowed key that is 0 times -inf, NaN; choose with np.where.",
                    lambda scores, mask, bias=None: softmax(_biased(scores, bias) + (1 - mask) * -np.inf)),
                "mask_too_weak": (TOO_WEAK, lambda scores, mask, bias=None: softmax(
                    np.where(mask, _biased(scores, bias), -1e4))),
                "mask_too_weak_with_guard": (TOO_WEAK, lambda scores, mask, bias=None: mask * softmax(
                    np.where(mask, _biased(scores, bias), -1e4))),
                "first_mask_for_all": ("The mask of the first sequence is used for the whole batch: each has its own.", _first_mask),
                "bias_ignored": ("The bias is not used: it is added to the scores, before the mask.",
                                 lambda scores, mask, bias=None: masked_softmax(scores, mask)),
                "zeros_as_scores": ("Forbidden scores are set to 0: that is e^0 = 1 share; -inf is none.",
                                    lambda scores, mask, bias=None: softmax(np.where(mask, _biased(scores, bias), 0))),
            },
        ),
        value(
            "q5", "it_row", _real_row, 2,
            mistakes={
                "mask_ignored": lambda: _real_row(_ignored),
                "mask_after_softmax": lambda: _real_row(_after),
                "mask_inverted": lambda: _real_row(_inverted),
                "mask_added": lambda: _real_row(_added),
                "mask_multiplied": lambda: _real_row(_multiplied),
                "causal_mask_sees_next": lambda: _real_row(mask=causal_mask(16, offset=1)),
                "causal_mask_hides_itself": lambda: _real_row(mask=causal_mask(16, offset=-1)),
                "causal_mask_transposed": lambda: _real_row(mask=causal_mask(16).T),
                "bias_forgotten": lambda: _real_row(bias=False),
                "no_scale": lambda: _real_row(scale=False),
                "query_and_key_swapped": lambda: _real_row(turn=True),
            },
            slips={
                "head_0": ("This is head 0: head 1 has the columns 32 to 63.", lambda: _real_row(head=0)),
                "head_2": ("This is head 2: counted from 0, head 1 has the columns 32 to 63.", lambda: _real_row(head=2)),
            },
        ),
    ),
)  # fmt: skip
