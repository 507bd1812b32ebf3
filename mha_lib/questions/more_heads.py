"""14_more_heads: heads switched off and pruned, the width that a map needs, and changes of weights that nobody sees."""

import numpy as np

from ..mistakes import MISTAKES
from ..numpy import merge_heads
from ._question import Exercise, Part, Question, call, untouched, value

# ------------------------------------------------------------------------------------------------------------------- q1, by hand
SCORES = [
    [[3, 1, 1], [1, 3, 1], [1, 1, 3]],
    [[2, 4, 0], [1, 2, 0], [0, 0, 0]],
    [[5, 5, 5], [2, 2, 2], [0, 0, 0]],
    [[0, 1, 2], [7, 8, 9], [4, 5, 6]],
]


def _widths(rank=lambda G: np.linalg.matrix_rank(G - G.mean(-1, keepdims=True))):
    return np.array([rank(np.array(G, float)) for G in SCORES])


def _both_ways(G):
    G = G - G.mean(-1, keepdims=True)
    return np.linalg.matrix_rank(G - G.mean(0))


# -------------------------------------------------------------------------------------------------------------- q2, switching off
def without(heads, W_O, b_O, off, fill=None):
    """(..., H, L, D), (H*D, E), (E,), a list of heads, (H, D) or None -> (..., L, E)."""
    return merge_heads(_filled(heads, off, fill)) @ W_O + b_O


def _filled(heads, off, fill=None):
    changed = heads.copy()
    for m in off:
        changed[..., m, :, :] = 0 if fill is None else fill[m]
    return changed


def _others_off(heads, off):
    return [m for m in range(heads.shape[-3]) if m not in off]


def _rows_moved_up(heads, W_O, b_O, off, fill=None):
    kept = np.delete(heads, off, axis=-3)
    return merge_heads(kept) @ W_O[: kept.shape[-3] * heads.shape[-1]] + b_O


def _scaled_up(heads, W_O, b_O, off, fill=None):
    H = heads.shape[-3]
    return (without(heads, W_O, b_O, off, fill) - b_O) * H / (H - len(off)) + b_O


def _mean_of_this_input(heads, W_O, b_O, off, fill=None):
    changed = heads.copy()
    if fill is not None:
        changed = np.where(
            np.isin(np.arange(heads.shape[-3]), off)[:, None, None], heads.mean(-2, keepdims=True), heads
        )
        return merge_heads(changed) @ W_O + b_O
    return without(heads, W_O, b_O, off)


def _layer(rng, *B, H, L, D, E, off, fill=False):
    arrays = (rng.standard_normal((*B, H, L, D)), rng.standard_normal((H * D, E)), rng.standard_normal(E))
    return call(*arrays, off, fill=rng.standard_normal((H, D))) if fill else call(*arrays, off)


def _zeroed(rng):
    """One head off, none, all but one, the first and the last; E = H*D and not."""
    sizes = ((2, 1, 2, 4, [0]), (2, 2, 2, 4, []), (3, 3, 2, 6, [0, 2]), (4, 2, 3, 5, [1, 3]), (3, 4, 4, 9, [1]))
    return [_layer(rng, H=H, L=L, D=D, E=E, off=off) for H, L, D, E, off in sizes]


def _filled_in(rng):
    sizes = ((2, 2, 2, 4, [0]), (3, 3, 2, 5, [0, 2]), (4, 3, 3, 12, [3]))
    return [_layer(rng, H=H, L=L, D=D, E=E, off=off, fill=True) for H, L, D, E, off in sizes]


def _batched(rng):
    return [_layer(rng, 2, H=2, L=2, D=2, E=4, off=[1]), _layer(rng, 3, 2, H=3, L=2, D=2, E=5, off=[0, 1], fill=True)]


# -------------------------------------------------------------------------------------------------------------------- q3, pruning
def pruning_order(parts):
    """(H, L, E), what each head adds -> (H,): the heads in the order in which they go."""
    return _greedy(parts, lambda missing: (missing**2).sum())


def _greedy(parts, cost, numbered=True):
    left, order, missing = list(range(len(parts))), [], np.zeros_like(parts[0])
    while left:
        costs = [cost(missing + parts[m]) for m in left]
        place = int(np.argmin(costs))
        order.append(left[place] if numbered else place)
        missing = missing + parts[left.pop(place)]
    return np.array(order)


def _by_length(parts):
    return np.argsort((parts**2).sum((1, 2)), kind="stable")


def _worst_first(parts):
    return _greedy(parts, lambda missing: -(missing**2).sum())


def _smallest_rest(parts):
    whole = parts.sum(0)
    return _greedy(parts, lambda missing: ((whole - missing) ** 2).sum())


def _built_up(parts):
    """Forward: start with nothing and take in what brings the sum nearest to the whole; the last one taken goes first."""
    whole, order, have = parts.sum(0), [], 0
    while len(order) < len(parts):
        costs = {m: ((whole - have - parts[m]) ** 2).sum() for m in range(len(parts)) if m not in order}
        order.append(min(costs, key=costs.get))
        have = have + parts[order[-1]]
    return np.array(order[::-1])


def _parts(rng, H, L, E):
    """Heads of which two nearly cancel, so that the shortest are not the first to go together."""
    parts = rng.standard_normal((H, L, E)) * rng.uniform(0.3, 2, (H, 1, 1))
    a, b = rng.permutation(H)[:2]
    parts[b] = 0.2 * parts[b] - parts[a]
    return call(parts)


def _two_rows(rng):
    """Two heads with the squares 9 and 8, and the lengths 3 and 4 of their rows together, in any order and size."""
    heads = np.array([[[3.0, 0], [0, 0]], [[2, 0], [0, 2]]])  # (H, L, E)
    return call(rng.uniform(0.5, 2) * rng.permutation(heads))


def _lineups(rng):
    """Two cases by hand (in one, heads 0 and 1 nearly cancel, so that 1, the longest, goes before 3), then at random."""
    by_hand = np.array([[[2.0, 0, 0]], [[-2.5, 0, 0]], [[0, 1.0, 0]], [[0, 0, 2.2]]])
    return [
        call(by_hand),
        _two_rows(rng),
        *(_parts(rng, H, L, E) for H, L, E in ((4, 1, 3), (5, 2, 3), (8, 3, 4), (12, 2, 5))),
    ]


# ------------------------------------------------------------------------------------------------------- q4, what nobody can see
def unseen(change, values):
    """(..., S), (S, d_v) -> (..., S): the part of a change of weights that moves neither output nor sum."""
    return _at_right_angles(change, _conditions(values))


def _conditions(values):
    return np.concatenate([values, np.ones((len(values), 1))], axis=-1)


def _at_right_angles(change, T):
    return change - change @ T @ np.linalg.pinv(T)


def _sum_last(change, values):
    kept = _at_right_angles(change, values)
    return kept - kept.mean(-1, keepdims=True)


def _output_last(change, values):
    return _at_right_angles(change - change.mean(-1, keepdims=True), values)


def _column_by_column(change, values):
    T = _conditions(values)
    T = T / np.linalg.norm(T, axis=0)
    return change - change @ T @ T.T


def _changes(rng, *rows, S, d_v):
    return call(rng.standard_normal((*rows, S)), rng.standard_normal((S, d_v)))


def _one_row(rng):
    return [_changes(rng, S=S, d_v=d_v) for S, d_v in ((4, 1), (6, 2), (9, 4), (12, 3))]


def _rows(rng):
    return [_changes(rng, 3, S=5, d_v=2), _changes(rng, 2, 4, S=8, d_v=3), _changes(rng, 6, S=6, d_v=2)]


def _nothing_left(rng):
    """No more keys than conditions (far from singular, so that zero is zero), and values that depend on each other."""
    few = [call(rng.standard_normal((2, 3)), np.eye(3, d_v) + 0.1 * rng.standard_normal((3, d_v))) for d_v in (2, 5)]
    values = rng.standard_normal((8, 2)) @ rng.standard_normal((2, 4))  # rank 2: room for 5 dimensions
    return [*few, call(rng.standard_normal((2, 8)), values)]


EXERCISE = Exercise(
    "14_more_heads",
    "Switching heads off",
    offers=("merge_heads", "split_heads", "softmax"),
    questions=(
        value(
            "q1", "widths", _widths, 1,
            slips={
                "constant_not_removed": (
                    "These are the ranks of G itself: first subtract a number of your choice from each row, since the softmax "
                    "does not see it.", lambda: _widths(np.linalg.matrix_rank)),
                "one_less_than_the_keys": (
                    "n - 1 = 2 is enough for every map of three keys; some of these need less.", lambda: np.full(4, 2)),
                "as_many_as_keys": (
                    "A width of 3 is never needed for three keys: n - 1 is enough.", lambda: np.full(4, 3)),
                "constant_per_column": (
                    "In G_3 all scores of a row are equal: what must queries and keys do there? (Or a number was subtracted from "
                    "each column: the softmax runs along the rows.)",
                    lambda: _widths(lambda G: np.linalg.matrix_rank(G - G.mean(0)))),
                "rows_and_columns": (
                    "Numbers are subtracted from rows and from columns: only what is the same along a row is unseen.",
                    lambda: _widths(_both_ways)),
            },
        ),
        Question(
            "q2", "without", without,
            parts=(
                Part("heads set to zero, any sizes", 2, _zeroed),
                Part("heads set to a mean that is given", 2, _filled_in),
                Part("leading axes for a batch", 1, _batched),
                Part("sizes that are not announced", 1, lambda rng: [
                    _layer(rng, 2, H=5, L=3, D=3, E=15, off=[4, 0, 2]),
                    _layer(rng, H=6, L=2, D=2, E=7, off=[5, 1], fill=True)], hidden=True),
                untouched(),
            ),
            mistakes={
                "output_bias_forgotten": lambda heads, W_O, b_O, off, fill=None: without(heads, W_O, 0, off, fill),
                "heads_averaged": lambda heads, W_O, b_O, off, fill=None: MISTAKES["heads_averaged"](
                    _filled(heads, off, fill)) @ W_O + b_O,
                "merge_without_transpose": lambda heads, W_O, b_O, off, fill=None: MISTAKES["merge_without_transpose"](
                    _filled(heads, off, fill)) @ W_O + b_O,
            },
            slips={
                "others_off": (
                    "The heads in `off` are kept and the others are silent: it is the other way round.",
                    lambda heads, W_O, b_O, off, fill=None: without(heads, W_O, b_O, _others_off(heads, off), fill)),
                "nothing_off": (
                    "No head is switched off: the output is that of the whole layer.",
                    lambda heads, W_O, b_O, off, fill=None: without(heads, W_O, b_O, [])),
                "fill_ignored": (
                    "`fill` is ignored: where it is given, row m of it stands in the place of head m, for every token.",
                    lambda heads, W_O, b_O, off, fill=None: without(heads, W_O, b_O, off)),
                "rows_moved_up": (
                    "The heads that stay meet the first rows of W_O: each keeps its own rows, whoever else is silent.",
                    _rows_moved_up),
                "scaled_up": (
                    "The heads that stay are scaled up, as if the layer were a mean of heads: it is a sum.", _scaled_up),
                "mean_of_this_input": (
                    "The mean is taken over the tokens of this input: put in the mean that is given as `fill`.",
                    _mean_of_this_input),
            },
        ),
        Question(
            "q3", "pruning_order", pruning_order, tolerance=1e-9,
            parts=(
                Part("the order, any number of heads", 3, _lineups),
                Part("sizes that are not announced", 1, lambda rng: [
                    _parts(rng, 9, 2, 6), _parts(rng, 16, 1, 4), _two_rows(rng)], hidden=True),
                untouched(),
            ),
            slips={
                "each_by_itself": (
                    "The heads go in the order of their own length, each judged alone: what is missing is the sum of all that "
                    "have gone, so judge each head together with these.", _by_length),
                "most_missed_first": (
                    "At each step the head that is missed most goes: it should be the one that is missed least.",
                    _worst_first),
                "smallest_rest": (
                    "At each step the sum of those that stay is made as small as can be: it should stay near the output of all "
                    "heads, so what is missing must be small.", _smallest_rest),
                "lengths_of_rows": (
                    "The lengths of the rows are added up: asked is the sum of the squares of all entries.",
                    lambda parts: _greedy(parts, lambda missing: np.linalg.norm(missing, axis=-1).sum())),
                "reversed": ("The order is reversed: the head that goes first stands first.",
                             lambda parts: pruning_order(parts)[::-1]),
                "places_among_those_left": (
                    "The numbers count the heads that are left at each step: give the heads their numbers in the layer.",
                    lambda parts: _greedy(parts, lambda missing: (missing**2).sum(), numbered=False)),
                "built_up": (
                    "Heads are taken in, one by one, starting from none; asked is to take out, starting from all.",
                    _built_up),
            },
        ),
        Question(
            "q4", "unseen", unseen,
            parts=(
                Part("one row of weights", 2, _one_row),
                Part("several rows, and a batch", 1, _rows),
                Part("too few keys, and values that depend on each other", 2, _nothing_left),
                Part("sizes that are not announced", 1, lambda rng: [
                    _changes(rng, 3, S=20, d_v=7), _changes(rng, S=11, d_v=9)], hidden=True),
                untouched(),
            ),
            slips={
                "sum_forgotten": (
                    "The output stays, but the weights no longer sum to what they did: a change must sum to 0 as well.",
                    _at_right_angles),
                "output_forgotten": (
                    "The sum stays, but the output moves: the change times the values must be 0 as well.",
                    lambda change, values: change - change.mean(-1, keepdims=True)),
                "sum_last": (
                    "First the output is kept, then the mean is subtracted, and that moves the output again: meet both conditions "
                    "together.", _sum_last),
                "output_last": (
                    "First the mean is subtracted, then the output is kept, and that changes the sum again: meet both conditions "
                    "together.", _output_last),
                "the_part_that_shows": (
                    "This is the part of the change that shows; asked is the rest.",
                    lambda change, values: change - unseen(change, values)),
                "values_not_independent": (
                    "The change is made as if the columns of the values stood at right angles to each other: solve for all "
                    "of them together, by least squares or an orthonormal basis.", _column_by_column),
            },
        ),
    ),
)  # fmt: skip
