"""17_flash: a softmax while its scores arrive, two blocks merged into one, and causal attention by tiles."""

import numpy as np

from ..numpy import scaled_dot_product_attention
from ._question import Exercise, Part, Question, call, untouched, value

inf = np.inf


# ------------------------------------------------------------------------------------------------------------------ q2, update
def update(m, d, scores, *, shrink=1, own=False, guard=True):
    """m, d (...,) and further scores (..., keys) -> m, d. shrink: the sign of the exponent that rescales d, 0 for none."""
    new = np.maximum(m, scores.max(-1))
    base = np.where(new == -inf, 0, new) if guard else new
    anchor = scores.max(-1) if own else base
    return new, d * np.exp(shrink * (m - base)) + np.exp(scores - anchor[..., None]).sum(-1)


def _axis_forgotten(m, d, scores):
    new = np.maximum(m, scores.max(-1))
    base = np.where(new == -inf, 0, new)
    return new, d * np.exp(m - base) + np.exp(scores - base).sum(-1)


def _state(rng, *shape):
    return rng.standard_normal(shape) + 1, rng.random(shape) * 3 + 1


def _chunks(rng, *shapes):
    return [call(*_state(rng, *shape[:-1]), 2 * rng.standard_normal(shape)) for shape in shapes]


def _further(rng):
    """The maximum moves in some rows and stays in others."""
    calls = _chunks(rng, (2, 1), (3, 4), (2, 3, 5), (6, 6))
    for c in calls:
        c.args[2].reshape(-1, c.args[2].shape[-1])[0, 0] = 6
        c.args[2].reshape(-1, c.args[2].shape[-1])[1] -= 5
    return calls


def _first(rng):
    return [call(np.full(n, -inf), np.zeros(n), rng.standard_normal((n, keys))) for n, keys in ((2, 1), (3, 4))]


def _far(rng):
    """From far below to far above, the other way, and all of it far above 0."""
    low, high = np.array([-900.0, 2.0]), np.array([900.0, 1.0])
    scores = rng.standard_normal((2, 3))
    return [
        call(low, _state(rng, 2)[1], scores),
        call(high, _state(rng, 2)[1], scores),
        call(high, high, 1000 + scores),
    ]


def _nothing_allowed(rng):
    """A chunk, or part of it, that is masked; also for a row that has seen nothing yet."""
    m, d = _state(rng, 3)
    scores = rng.standard_normal((3, 4))
    scores[0], scores[1] = -inf, [9, 8, -inf, -inf]
    m[2], d[2] = -inf, 0
    empty = call(np.array([-inf, 1.0]), np.array([0.0, 2.0]), np.full((2, 2), -inf))
    return [empty, call(m, d, scores)]


# ------------------------------------------------------------------------------------------------------------------- q3, merge
def merge(m1, d1, o1, m2, d2, o2, *, factors=(1, 1), guard=True):
    """Two blocks (L,), (L,), (L, D_v) -> one. factors: which of d and o are rescaled (1), not at all (0), or the wrong way (-1)."""
    m = np.maximum(m1, m2)
    base = np.where(m == -inf, 0, m) if guard else m
    of_d, of_o = ([np.exp(factor * (x - base)) for x in (m1, m2)] for factor in factors)
    return m, d1 * of_d[0] + d2 * of_d[1], o1 * of_o[0][:, None] + o2 * of_o[1][:, None]


def _only_the_first(m1, d1, o1, m2, d2, o2):
    """The second block is added as it is."""
    m, d, o = merge(m1, d1, o1, m2, 0 * d2, 0 * o2)
    return m, d + d2, o + o2


def _times_the_sums(m1, d1, o1, m2, d2, o2, *, divided=False):
    """As if the outputs were divided by their sums."""
    m, d, o = merge(m1, d1, d1[:, None] * o1, m2, d2, d2[:, None] * o2)
    return m, d, o / np.where(d == 0, 1, d)[:, None] if divided else o


def _one_maximum(m1, d1, o1, m2, d2, o2):
    """Over all queries."""
    top = max(m1.max(), m2.max())
    shrink = np.exp(m2 - top)
    return merge(m1, d1, o1, np.full_like(m2, top), d2 * shrink, o2 * shrink[:, None])


def _block(rng, L, D):
    return rng.standard_normal(L) * 2, rng.random(L) * 3 + 1, rng.standard_normal((L, D))


def _blocks(rng):
    return [call(*_block(rng, L, D), *_block(rng, L, D)) for L, D in ((1, 1), (2, 3), (4, 4), (5, 2))]


def _far_blocks(rng):
    calls = []
    for shift in (800, -800):
        m, d, o = _block(rng, 3, 2)
        calls.append(call(m + shift, d, o, *_block(rng, 3, 2)))
    return [
        *calls,
        call(
            *(x + y for x, y in zip(_block(rng, 2, 2), (750, 0, 0), strict=True)),
            np.full(2, 751.0),
            *_block(rng, 2, 2)[1:],
        ),
    ]


def _empty_blocks(rng):
    """A block without a key on either side, and on both."""
    calls = []
    for rows in ((0,), (1,), (0, 1)):
        blocks = [_block(rng, 3, 2), _block(rng, 3, 2)]
        for which in rows:
            m, d, o = blocks[which]
            m[1], d[1], o[1] = -inf, 0, 0
        calls.append(call(*blocks[0], *blocks[1]))
    return calls


# ------------------------------------------------------------------------------------------------------------------- q4, tiles
def causal_block(query, key, value, start, size, pad=0):
    """The readable attention of the queries that stand at start, start + 1, ...; `size` must not matter."""
    mask = np.arange(len(key))[None] >= pad  # (1, S)
    return scaled_dot_product_attention(query, key, value, mask=mask, is_causal=True, query_offset=start)


def _loop(
    query, key, value, start, size, pad=0,
    *, sums=True, accumulator=True, own=False, divide=False, guard=True, future=True, scale=None, seen=None, offset=None,
    running=False, undivided=False, local=False,
):  # fmt: skip
    """The tile loop with one step changed."""
    at = (start if offset is None else offset) + np.arange(len(query))[:, None]
    m = np.full((len(query), 1), -inf)
    d, o, tiles = np.zeros_like(m), np.zeros((len(query), value.shape[1])), 0
    for j in range(0, len(key), size):
        if j > (start + len(query) - 1 if seen is None else seen(start, len(query))) and future:
            break
        s = query @ key[j : j + size].T * (query.shape[1] ** -0.5 if scale is None else scale)
        if future:
            places = np.arange(s.shape[1]) + (0 if local else j)
            s = np.where((places <= at) & (places >= pad), s, -inf)
        top = s.max(1, keepdims=True)
        new = np.maximum(m, top)
        base, anchor = (np.where(x == -inf, 0, x) if guard else x for x in (new, top if own else new))
        p, shrink = np.exp(s - anchor), np.exp(m - base)
        total, part = p.sum(1, keepdims=True), p @ value[j : j + size]
        d = d * (shrink if sums else 1) + total
        o = o * (shrink if accumulator else 1) + (part / np.where(total == 0, 1, total) if divide else part)
        o = o / np.where(d == 0, 1, d) if running else o
        m, tiles = new, tiles + 1
    if running or undivided:
        return o
    return o / tiles if divide else o / np.where(d == 0, 1, d)


def _problem(rng, rows, keys, start, size, D=4, D_v=3):
    q, k, v = rng.standard_normal((rows, D)), rng.standard_normal((keys, D)), rng.standard_normal((keys, D_v))
    return call(2 * q, k, v, start, size)


def _one_tile(rng):
    return [_problem(rng, 1, 2, 1, 2), _problem(rng, 4, 4, 0, 4), _problem(rng, 3, 6, 3, 8)]


def _several_tiles(rng):
    return [_problem(rng, 1, 3, 2, 1), _problem(rng, 4, 8, 4, 2), _problem(rng, 4, 8, 4, 4), _problem(rng, 3, 9, 5, 4)]


def _keys_of_the_future(rng):
    """Keys behind the block: tiles that no query may see, and one that only some may."""
    return [_problem(rng, 2, 6, 0, 2), _problem(rng, 4, 16, 4, 3), _problem(rng, 3, 12, 2, 4)]


def _padding(rng):
    """The first keys are padding: part of a tile, a whole tile, and more than one."""
    return [
        call(*_problem(rng, rows, keys, start, size).args, pad)
        for rows, keys, start, size, pad in ((2, 4, 2, 2, 1), (2, 6, 4, 2, 2), (3, 12, 8, 2, 5), (4, 12, 6, 3, 6))
    ]


def _far_scores(rng):
    """All scores near 5000: their exponentials overflow, their differences are as everywhere."""
    calls = [_problem(rng, 3, 9, 6, 2), _problem(rng, 4, 8, 4, 3)]
    for c in calls:
        c.args[0][:, 0] = c.args[1][:, 0] = 100
    return calls


def _unannounced(rng):
    return [_problem(rng, 5, 17, 7, 3, D=9, D_v=2), _problem(rng, 6, 6, 0, 1), _problem(rng, 2, 30, 20, 7)]


EXERCISE = Exercise(
    "17_flash",
    "Online softmax and tiled attention",
    offers=(),
    questions=(
        value(
            "q1", "sum_by_hand", lambda: np.float64(2.75), 1,
            slips={
                "added": ("The sums are added as they are: the first is relative to 0, the second to ln 4.", lambda: 5),
                "turned_around": ("The first sum grows: it must shrink, by e to the power of 0 - ln 4.", lambda: 14),
                "both_shrunk": ("Both sums are shrunk: the second is relative to the common maximum already.", lambda: 1.25),
                "other_block_shrunk": ("The second sum is shrunk: it is the first that is relative to the smaller maximum.", lambda: 3.5),
                "smaller_maximum": ("This is relative to the smaller maximum: the larger one is asked.", lambda: 11),
                "difference_as_factor": ("The difference of the maxima is used as a factor: it is an exponent, e to the power of it.",
                                         lambda: 3 * (0 - np.log(4)) + 2),
            },
        ),
        Question(
            "q2", "update", update,
            parts=(
                Part("further scores", 3, _further),
                Part("the first scores", 1, _first),
                Part("scores that are far apart", 2, _far),
                Part("chunks without an allowed key", 2, _nothing_allowed),
                untouched(),
            ),
            mistakes={"rescaled_nowhere": lambda m, d, s: update(m, d, s, shrink=0)},
            slips={
                "wrong_sign": ("The old sum grows with a new maximum: it must shrink, by exp(old - new).",
                               lambda m, d, s: update(m, d, s, shrink=-1)),
                "own_maximum": ("The new scores are taken relative to their own maximum, not to the largest so far.",
                                lambda m, d, s: update(m, d, s, own=True)),
                "chunk_forgets": ("The result is that of the new scores alone: the old maximum and sum are lost.",
                                  lambda m, d, s: update(np.full_like(m, -inf), 0 * d, s)),
                "last_maximum": (
                    "The maximum of the new scores replaces the old one, also where it is smaller: far scores overflow then.",
                    lambda m, d, s: (s.max(-1), d * np.exp(m - s.max(-1)) + np.exp(s - s.max(-1)[..., None]).sum(-1))),
                "empty_is_nan": ("A row that has seen nothing becomes NaN: its maximum is -inf, and -inf - (-inf) is NaN.",
                                 lambda m, d, s: update(m, d, s, guard=False)),
                "axis_forgotten": (
                    "The maximum meets the scores along their last axis, the keys: it has one axis less, so write it as [..., None].",
                    _axis_forgotten),
                "one_maximum": ("The maximum runs over all rows: each query has its own.",
                                lambda m, d, s: update(np.full_like(m, max(m.max(), s.max())), d * np.exp(m - max(m.max(), s.max())), s)),
                "no_maximum": (
                    "The exponentials are taken without subtracting a maximum first: they overflow for large scores.",
                    lambda m, d, s: ((new := np.maximum(m, s.max(-1))),
                                     (d * np.exp(m) + np.exp(s).sum(-1)) / np.exp(np.where(new == -inf, 0, new)))),
            },
        ),
        Question(
            "q3", "merge", merge,
            parts=(
                Part("two blocks", 3, _blocks),
                Part("blocks that are far apart", 2, _far_blocks),
                Part("blocks without a key", 2, _empty_blocks),
                untouched(),
            ),
            mistakes={
                "accumulator_not_rescaled": lambda *blocks: merge(*blocks, factors=(1, 0)),
                "rescaled_nowhere": lambda *blocks: merge(*blocks, factors=(0, 0)),
            },
            slips={
                "sum_not_rescaled": ("The output is rescaled to the common maximum, the sum is not.",
                                     lambda *blocks: merge(*blocks, factors=(0, 1))),
                "wrong_sign": ("The smaller block grows: it must shrink, by exp(its maximum - the common one).",
                               lambda *blocks: merge(*blocks, factors=(-1, -1))),
                "factors_exchanged": (
                    "The factors have changed places: the first block is rescaled by exp(m1 - m), the second by exp(m2 - m).",
                    lambda m1, d1, o1, m2, d2, o2: merge(m2, d1, o1, m1, d2, o2)),
                "only_the_first": ("Only the first block is rescaled: in some rows it is the second that has the smaller maximum.",
                                   _only_the_first),
                "times_the_sums": (
                    "The outputs are multiplied by their sums: they are not divided yet, so the sums are in them already.",
                    _times_the_sums),
                "mean_by_the_sums": (
                    "The outputs are treated as if they were divided by their sums: they are not, so they are added, each with its factor.",
                    lambda *blocks: _times_the_sums(*blocks, divided=True)),
                "one_maximum": ("The maximum runs over all rows: each query has its own.", _one_maximum),
                "divided": ("The output is divided by the sum here: that comes once, after the last block.",
                            lambda *blocks: ((r := merge(*blocks))[0], r[1], r[2] / np.where(r[1] == 0, 1, r[1])[:, None])),
                "mean_of_outputs": ("The outputs are averaged: they are added, each with its own factor.",
                                    lambda *blocks: ((r := merge(*blocks))[0], r[1], (blocks[2] + blocks[5]) / 2)),
                "empty_is_nan": ("Two blocks without a key give NaN: both maxima are -inf, and -inf - (-inf) is NaN.",
                                 lambda *blocks: merge(*blocks, guard=False)),
                "no_maximum": (
                    "The exponentials are taken without subtracting a maximum first: they overflow for large scores.",
                    lambda m1, d1, o1, m2, d2, o2: (
                        (m := np.maximum(m1, m2)),
                        (d1 * np.exp(m1) + d2 * np.exp(m2)) / np.exp(np.where(m == -inf, 0, m)),
                        (o1 * np.exp(m1)[:, None] + o2 * np.exp(m2)[:, None]) / np.exp(np.where(m == -inf, 0, m))[:, None])),
            },
        ),
        Question(
            "q4", "causal_block", causal_block,
            parts=(
                Part("one tile", 1, _one_tile),
                Part("several tiles", 3, _several_tiles),
                Part("keys of the future", 2, _keys_of_the_future),
                Part("padding at the left", 2, _padding),
                Part("scores that are far apart", 1, _far_scores),
                Part("sizes that are not announced", 1, _unannounced, hidden=True),
                untouched(),
            ),
            mistakes={
                "no_scale": lambda *given: _loop(*given, scale=1.0),
                "divided_by_d_k": lambda q, *given: _loop(q, *given, scale=1 / q.shape[1]),
                "accumulator_not_rescaled": lambda *given: _loop(*given, accumulator=False),
                "rescaled_nowhere": lambda *given: _loop(*given, sums=False, accumulator=False),
                "maximum_of_the_tile": lambda *given: _loop(*given, own=True),
                "divided_in_every_tile": lambda *given: _loop(*given, sums=False, accumulator=False, own=True, divide=True),
                "masked_tile_is_nan": lambda *given: _loop(*given, guard=False),
                "mask_ignored": lambda *given: _loop(*given, future=False),
            },
            slips={
                "sum_not_rescaled": ("The weighted values are rescaled to a new maximum, the sum is not.",
                                     lambda *given: _loop(*given, sums=False)),
                "divided_by_the_running_sum": (
                    "The output is divided in every tile, by the sum so far: the next tile rescales it as if it were not.",
                    lambda *given: _loop(*given, running=True)),
                "never_divided": ("The output is not divided by the sum: that comes once, after the last tile.",
                                  lambda *given: _loop(*given, undivided=True)),
                "places_in_the_tile": ("The keys of each tile are counted from 0: the first key of a tile stands at j.",
                                       lambda *given: _loop(*given, local=True)),
                "future_seen": ("The future is attended to: a query sees the keys up to its own place.",
                                lambda q, k, v, start, size, pad=0: scaled_dot_product_attention(
                                    q, k, v, mask=np.arange(len(k))[None] >= pad)),
                "next_key_seen": ("A query sees one key too many: it sees the keys up to its own place, that one included.",
                                  lambda q, k, v, start, size, pad=0: causal_block(q, k, v, start + 1, size, pad)),
                "one_key_hidden": ("One key too many is hidden: the first `pad` keys are those before key `pad`.",
                                   lambda q, k, v, start, size, pad=0: _loop(q, k, v, start, size, pad + 1)),
                "start_ignored": ("The triangle starts at key 0: query i of the block stands at start + i.",
                                  lambda *given: _loop(*given, offset=0)),
                "diagonal_forbidden": ("A query does not see its own key: it sees all keys up to its place.",
                                       lambda q, k, v, start, size, pad=0: _loop(q, k, v, start, size, pad, offset=start - 1)),
                "padding_ignored": ("The padding at the left is attended to: the first `pad` keys are forbidden.",
                                    lambda q, k, v, start, size, pad=0: _loop(q, k, v, start, size)),
                "skipped_too_early": (
                    "Tiles behind the first query of the block are skipped: its last query sees up to rows - 1 keys more.",
                    lambda *given: _loop(*given, seen=lambda start, rows: start)),
                "keys_cut_short": ("The last tile is left out where it is not full.",
                                   lambda q, k, v, start, size, pad=0: _loop(
                                       q, k[: len(k) // size * size], v[: len(v) // size * size], start, size, pad)),
            },
        ),
    ),
)  # fmt: skip
