"""08_heads: cut into heads, attend in all of them at once, join again."""

import numpy as np

from ..data import load_layer
from ..mistakes import MISTAKES
from ..mistakes._parts import softmax_without_guard
from ..numpy import causal_mask, merge_heads, padding_mask, softmax, split_heads
from ._question import Exercise, Part, Question, call, untouched, value
from .attention import TOO_WEAK, WITHOUT_MAXIMUM, without_maximum

# --------------------------------------------------------------------------------------------------------------------- q1, by hand
COLUMNS = np.array([7, 31, 32, 100, 383])


# ------------------------------------------------------------------------------------------------------------------- q2, q3, sizes
def _rows(rng):
    """One head, one token, width 1, L = H, L = D (where an axis in the wrong place changes no shape), twelve heads."""
    sizes = ((2, 1, 3), (1, 3, 2), (2, 2, 2), (3, 2, 4), (4, 4, 3), (5, 3, 1), (4, 2, 4), (6, 12, 5))
    return [call(rng.standard_normal((L, H * D)), H) for L, H, D in sizes]


def _batches_of_rows(rng):
    return [call(rng.standard_normal((*B, L, H * D)), H)
            for B, L, H, D in (((2,), 2, 2, 2), ((3,), 3, 2, 4), ((2, 1), 4, 2, 3), ((1,), 1, 4, 2))]  # fmt: skip


def _heads(rng):
    sizes = ((1, 2, 3), (3, 1, 2), (2, 2, 2), (2, 3, 4), (4, 4, 3), (3, 5, 1), (2, 4, 4), (12, 6, 5))
    return [call(rng.standard_normal((H, L, D))) for H, L, D in sizes]


def _batches_of_heads(rng):
    return [call(rng.standard_normal((*B, H, L, D)))
            for B, H, L, D in (((2,), 2, 2, 2), ((3,), 2, 3, 4), ((2, 1), 2, 4, 3), ((1,), 4, 1, 2))]  # fmt: skip


def _taken_apart(rng):
    """What `split_heads` gives for rows that tell their own addresses: whole numbers, strided."""
    return [call(split_heads(np.arange(L * H * D).reshape(L, H * D), H)) for L, H, D in ((3, 2, 4), (5, 5, 2))]


# ------------------------------------------------------------------------------------------------------------------- q4, all heads
def _weights(q, k, mask=None, *, scale=None, softmax=softmax):
    """Weights of heads that are split already; `scale` in place of 1 / sqrt(D)."""
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)  # (..., H, L, S)
    return softmax(scores if mask is None else np.where(mask, scores, -np.inf))


def _all_heads(query, key, value, num_heads, mask=None, *, split=split_heads, merge=merge_heads, weights=_weights):
    q, k, v = (split(x, num_heads) for x in (query, key, value))  # (..., H, L, D), (..., H, S, D), (..., H, S, Dv)
    attention = weights(q, k, mask)
    return merge(attention @ v), attention


def all_heads(query, key, value, num_heads, mask=None):
    """(..., L, H*D), (..., S, H*D), (..., S, H*Dv) -> (..., L, H*Dv) and the weights (..., H, L, S)."""
    return _all_heads(query, key, value, num_heads, mask)


def _with(weights=_weights, **changed):
    """`all_heads` with another way to make the weights, to split or to merge."""
    return lambda query, key, value, num_heads, mask=None: _all_heads(
        query, key, value, num_heads, mask, weights=weights, **changed
    )


def _one_wide_head(query, key, value, num_heads, mask=None):
    attention = _weights(query, key, mask)
    return attention @ value, attention


def _values_are_keys(query, key, value, num_heads, mask=None):
    return _all_heads(query, key, key, num_heads, mask)


def _swapped(query, key, value, num_heads, mask=None):
    return _all_heads(key, query, value, num_heads, mask)


def _after_softmax(q, k, mask=None):
    return _weights(q, k) * (1 if mask is None else mask)


def _inverted(q, k, mask=None):
    return _weights(q, k, None if mask is None else ~mask)


def _finite(q, k, mask=None, low=-1e9):
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    return softmax(scores if mask is None else np.where(mask, scores, low))


def _projected(rng, *B, L, S, H, D, D_v=None):
    D_v = D if D_v is None else D_v
    return tuple(2 * rng.standard_normal((*B, n, H * d)) for n, d in ((L, D), (S, D), (S, D_v)))


def _sizes(rng):
    """L = S = H = D (where no shape complains), one head, one token, L != S, another width of the values, large scores."""
    sizes = ((1, 2, 1, 2, 2), (2, 2, 2, 2, 2), (3, 3, 2, 4, 4), (2, 5, 3, 4, 4), (4, 4, 4, 4, 4), (3, 4, 2, 3, 5))
    query, key, value = _projected(rng, L=3, S=4, H=2, D=3)
    key[1] = -key[0]  # so that no row has negative scores only
    large = call(1000 * query, key, value, 2)
    return [*(call(*_projected(rng, L=L, S=S, H=H, D=D, D_v=D_v), H) for L, S, H, D, D_v in sizes), large]


def _batches(rng):
    return [call(*_projected(rng, *B, L=L, S=S, H=H, D=D), H)
            for B, L, S, H, D in (((2,), 2, 2, 2, 2), ((3,), 3, 4, 2, 3), ((2, 1), 2, 3, 2, 4))]  # fmt: skip


def _masks(rng):
    """A triangle for all heads, padding of a batch, a mask for each head, for each sentence, for both, and one low score."""
    sentences, both = rng.random((2, 1, 3, 4)) > 0.4, rng.random((2, 3, 2, 4)) > 0.4
    sentences[..., 0] = both[..., 2] = True
    sentences[:, 0, :2, 1:3] = both[0, :2, 0, :2] = np.eye(2, dtype=bool)  # no two rows, sentences or heads alike
    both[1, :, 0, :2], both[:, 2, 0, :2] = np.array([[True, True]]), np.array([[False, False], [False, True]])
    low = 1000 * np.ones((1, 4))
    each = rng.random((2, 4, 4)) > 0.4
    each[:, :, 1], each[1, 2] = True, [True, False, False, True]
    return [
        call(*_projected(rng, L=3, S=3, H=2, D=4), 2, mask=causal_mask(3)),
        call(*_projected(rng, 3, L=4, S=4, H=2, D=3), 2, mask=padding_mask(np.array([2, 4, 1]), 4)),
        call(*_projected(rng, L=4, S=4, H=2, D=2), 2, mask=each),
        call(*_projected(rng, 2, L=3, S=4, H=2, D=3), 2, mask=sentences),
        call(*_projected(rng, 2, L=2, S=4, H=3, D=3), 3, mask=both),
        call(low, -np.concatenate([low, 0 * low]), np.arange(8.0).reshape(2, 4), 2, mask=np.array([[True, False]])),
    ]


def _seeing_nothing(rng):
    empty = rng.random((2, 4, 4)) > 0.4
    empty[0, 1], empty[1, 2] = False, False
    return [
        call(*_projected(rng, L=2, S=2, H=2, D=2), 2, mask=np.array([[True, False], [False, False]])),
        call(*_projected(rng, L=4, S=4, H=2, D=2), 2, mask=empty),
    ]


# --------------------------------------------------------------------------------------------------------------- q5, the real layer
def _real(*, bias=True, turn=False, split=split_heads, weights=_weights):
    """The weight of "it" on "animal" in each of the twelve heads, (12,)."""
    layer = load_layer()
    x = layer.x.astype(float)
    q, k = (split(x @ getattr(layer, f"W_{n}") + bias * getattr(layer, f"b_{n}"), 12) for n in "QK")
    it, animal = layer.tokens.index("it"), layer.tokens.index("animal")
    return weights(q, k)[:, animal, it] if turn else weights(q, k)[:, it, animal]


def _scores(q, k):
    return _weights(q, k, softmax=lambda x: x)


EXERCISE = Exercise(
    "08_heads",
    "Splitting and merging heads",
    offers=("project", "softmax", "causal_mask", "padding_mask"),
    questions=(
        value(
            "q1", "owners", lambda: COLUMNS // 32, 1,
            mistakes={"split_in_turn": lambda: COLUMNS % 12},
            slips={
                "divided_by_the_heads": (
                    "The columns are divided by 12, the number of heads: divide by the width of a head, 384 / 12 = 32.",
                    lambda: COLUMNS // 12),
                "counted_from_1": ("The heads are counted from 1; here the first one is head 0.",
                                   lambda: COLUMNS // 32 + 1),
                "place_in_the_head": ("These are the places of the columns inside their heads; the heads are asked.",
                                      lambda: COLUMNS % 32),
            },
        ),
        Question(
            "q2", "split", split_heads,
            parts=(
                Part("one sentence, any number of heads", 2, _rows),
                Part("leading axes for a batch", 1, _batches_of_rows),
                Part("the dtype stays", 1, lambda rng: [
                    call(rng.standard_normal((3, 8)).astype(np.float32), 2), call(np.arange(18).reshape(3, 6), 3)],
                    dtype=True),
                Part("sizes that are not announced", 1,
                     lambda rng: [call(rng.standard_normal((2, 7, 15)), 5), call(rng.standard_normal((6, 6)), 6)],
                     hidden=True),
                untouched(),
            ),
            mistakes={
                "split_without_transpose": MISTAKES["split_without_transpose"],
                "split_in_turn": MISTAKES["split_in_turn"],
            },
            slips={
                "cut_and_not_moved": (
                    "The rows are cut, but the heads still stand behind the tokens, (..., L, H, D): swap these two axes.",
                    lambda x, num_heads: split_heads(x, num_heads).swapaxes(-3, -2)),
                "tokens_last": (
                    "The tokens stand last, (..., H, D, L): attention wants them before the width, (..., H, L, D).",
                    lambda x, num_heads: split_heads(x, num_heads).swapaxes(-1, -2)),
                "counted_from_the_front": (
                    "Axes 0 and 1 change places: with a batch these are not tokens and heads, so count from the back, -3 "
                    "and -2.",
                    lambda x, num_heads: x.reshape(*x.shape[:-1], num_heads, -1).swapaxes(0, 1)),
                "heads_in_front_of_the_batch": (
                    "The heads stand in front of the batch: they belong between the batch and the tokens, on axis -3.",
                    lambda x, num_heads: np.moveaxis(split_heads(x, num_heads), -3, 0)),
            },
        ),
        Question(
            "q3", "merge", merge_heads,
            parts=(
                Part("any number of heads", 2, _heads),
                Part("leading axes for a batch", 1, _batches_of_heads),
                Part("what split takes apart", 1, _taken_apart),
                untouched(),
            ),
            mistakes={
                "merge_without_transpose": MISTAKES["merge_without_transpose"],
                "heads_averaged": lambda x: x.mean(-3),
            },
            slips={
                "interleaved": (
                    "The columns of the heads alternate: each head must keep its columns together, head after head.",
                    lambda x: np.moveaxis(x, -3, -1).reshape(*x.shape[:-3], x.shape[-2], -1)),
                "under_each_other": (
                    "The heads lie under each other, (..., H*L, D): join them side by side, along the last axis.",
                    lambda x: x.reshape(*x.shape[:-3], -1, x.shape[-1])),
                "moved_and_not_joined": (
                    "The heads are moved, but not joined, (..., L, H, D): the last two axes have to become one.",
                    lambda x: x.swapaxes(-3, -2)),
                "heads_added": ("The heads are added: side by side they keep their columns apart.",
                                lambda x: x.sum(-3)),
            },
        ),
        Question(
            "q4", "all_heads", all_heads,
            parts=(
                Part("one sentence, any sizes", 3, _sizes),
                Part("leading axes for a batch", 1, _batches),
                Part("masks for all heads", 1, _masks),
                Part("a query that may attend to nothing", 1, _seeing_nothing),
                Part("sizes that are not announced", 1, lambda rng: [
                    call(*_projected(rng, L=5, S=7, H=3, D=6, D_v=2), 3),
                    call(*_projected(rng, 2, L=5, S=5, H=5, D=5), 5, mask=causal_mask(5))], hidden=True),
                untouched(),
            ),
            mistakes={
                "no_scale": _with(lambda q, k, mask=None: _weights(q, k, mask, scale=1.0)),
                "divided_by_d_k": _with(lambda q, k, mask=None: _weights(q, k, mask, scale=1 / q.shape[-1])),
                "divided_by_sqrt_d_model": _with(
                    lambda q, k, mask=None: _weights(q, k, mask, scale=(q.shape[-1] * q.shape[-3]) ** -0.5)),
                "query_and_key_swapped": _swapped,
                "softmax_over_heads": _with(
                    lambda q, k, mask=None: _weights(q, k, mask, softmax=lambda x: softmax(x, axis=-3))),
                "softmax_over_queries": _with(
                    lambda q, k, mask=None: _weights(q, k, mask, softmax=lambda x: softmax(x, axis=-2))),
                "keys_as_values": _values_are_keys,
                "split_without_transpose": _with(split=MISTAKES["split_without_transpose"]),
                "split_in_turn": _with(split=MISTAKES["split_in_turn"]),
                "merge_without_transpose": _with(merge=MISTAKES["merge_without_transpose"]),
                "heads_averaged": _with(merge=lambda x: x.mean(-3)),
                "mask_inverted": _with(_inverted),
                "mask_ignored": _with(lambda q, k, mask=None: _weights(q, k)),
                "mask_after_softmax": _with(_after_softmax),
                "mask_with_finite_value": _with(_finite),
                "masked_row_is_nan": _with(lambda q, k, mask=None: _weights(q, k, mask, softmax=softmax_without_guard)),
                "softmax_without_maximum": _with(
                    lambda q, k, mask=None: _weights(q, k, mask, softmax=MISTAKES["softmax_without_maximum"])),
            },
            slips={
                "one_wide_head": (
                    "All columns went through one softmax, as one wide head: split first, then take a softmax per head.",
                    _one_wide_head),
                "mask_transposed": (
                    "The mask is transposed: its rows are the queries, its columns the keys, as those of the scores.",
                    _with(lambda q, k, mask=None: _weights(q, k, None if mask is None else mask.swapaxes(-1, -2)))),
                "maximum_forgotten": (
                    WITHOUT_MAXIMUM, _with(lambda q, k, mask=None: _weights(q, k, mask, softmax=without_maximum))),
                "mask_too_weak": (TOO_WEAK, _with(lambda q, k, mask=None: _finite(q, k, mask, low=-1e4))),
                "transpose_forgotten_twice": (
                    "Neither split nor merge swaps heads and tokens: the round trip is right, and each head has pieces of "
                    "several tokens.",
                    _with(split=MISTAKES["split_without_transpose"], merge=MISTAKES["merge_without_transpose"])),
            },
        ),
        value(
            "q5", "it_on_animal", _real, 2, tolerance=0.01,
            mistakes={
                "bias_forgotten": lambda: _real(bias=False),
                "no_scale": lambda: _real(weights=lambda q, k: _weights(q, k, scale=1.0)),
                "divided_by_d_k": lambda: _real(weights=lambda q, k: _weights(q, k, scale=1 / 32)),
                "divided_by_sqrt_d_model": lambda: _real(weights=lambda q, k: _weights(q, k, scale=384**-0.5)),
                "split_without_transpose": lambda: _real(split=MISTAKES["split_without_transpose"]),
                "split_in_turn": lambda: _real(split=MISTAKES["split_in_turn"]),
            },
            slips={
                "turned_around": ("These are the weights of animal on it: the row of a token says where it looks.",
                                  lambda: _real(turn=True)),
                "scores": ("These are the scores: the weights are their softmax.", lambda: _real(weights=_scores)),
                "mean_of_the_heads": ("This is the mean of the twelve heads; each head has a weight of its own.",
                                      lambda: _real().mean()),
            },
        ),
    ),
)  # fmt: skip
