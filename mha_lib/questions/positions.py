"""12_positions: turned pairs by hand, sines and cosines, rotary positions, ALiBi, and from one convention of RoPE to the other."""

import numpy as np

from ..mistakes import MISTAKES
from ..numpy import alibi_bias, merge_heads, sinusoidal_positions, split_heads
from ..numpy import rope as library_rope
from ._question import Exercise, Part, Question, call, untouched, value

# ------------------------------------------------------------------------------------------------------------------- q1, by hand
_QUERY, _KEY = np.array([3.0, 4.0]), np.array([1.0, 2.0])
_PLACES = ((7, 7), (1, 0), (0, 1), (102, 100))


def _quarter(x, turns):
    c, s = np.cos(turns * np.pi / 2).round(), np.sin(turns * np.pi / 2).round()
    return np.array([c * x[0] - s * x[1], s * x[0] + c * x[1]])


def _turned_scores(query_turn=1, key_turn=1):
    return np.array([_quarter(_QUERY, query_turn * m) @ _quarter(_KEY, key_turn * n) for m, n in _PLACES])


# -------------------------------------------------------------------------------------------------------------------- q2, sines
def positions_table(L, E, offset=0):
    """(L, E): the sine in column 2c, the cosine in column 2c + 1."""
    return sinusoidal_positions(L, E, offset)


def _sines(L, E, offset=0, *, base=10000.0, start=0, swap=False, degrees=False, power=1):
    """The same with one of its parts changed."""
    angles = (start + offset + np.arange(L))[:, None] * base ** (-power * np.arange(0, E, 2) / E)
    angles = np.deg2rad(angles) if degrees else angles
    table = np.stack([np.sin(angles), np.cos(angles)][:: -1 if swap else 1], axis=-1)
    return table.reshape(L, E)


def _tables(rng):
    return [call(L, E) for L, E in ((2, 2), (2, 4), (5, 6), (4, 4), (3, 16))]


def _offsets(rng):
    return [call(2, 4, 1), call(3, 6, int(rng.integers(5, 50))), call(1, 8, offset=int(rng.integers(100, 900)))]


def _more_tables(rng):
    return [call(20, 64), call(7, 10, 3), call(1, 2, 12345)]


# --------------------------------------------------------------------------------------------------------------------- q3, RoPE
def rope(x, positions, base=10000.0):
    """Rotary positions, with the two halves as partners."""
    return library_rope(x, positions, base=base, interleaved=False)


def _turn(x, positions, base=10000.0, *, sign=1, power=1, table=np.arange, start=0):
    """The same with one of its parts changed."""
    half = x.shape[-1] // 2
    angles = (sign * (np.asarray(positions) + start))[:, None] * base ** (-power * table(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) - b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)


def _reflected(x, positions, base=10000.0):
    """The sign of the second sine is wrong."""
    half = x.shape[-1] // 2
    angles = np.asarray(positions)[:, None] * base ** (-np.arange(half) / half)
    a, b = x[..., :half], x[..., half:]
    return np.concatenate([a * np.cos(angles) + b * np.sin(angles), a * np.sin(angles) + b * np.cos(angles)], axis=-1)


def _from_the_new_half(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = np.asarray(positions)[:, None] * base ** (-np.arange(half) / half)
    a = x[..., :half] * np.cos(angles) - x[..., half:] * np.sin(angles)
    return np.concatenate([a, a * np.sin(angles) + x[..., half:] * np.cos(angles)], axis=-1)


def _left_as_neighbours(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    turned = rope(x, positions, base)
    return np.stack([turned[..., :half], turned[..., half:]], axis=-1).reshape(x.shape)


def _added(x, positions, base=10000.0):
    half = x.shape[-1] // 2
    angles = np.asarray(positions)[:, None] * base ** (-np.arange(half) / half)
    return x + np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def _queries(rng):
    """One pair, one position, L = D, and more."""
    return [call(rng.standard_normal((L, D)), np.arange(L)) for L, D in ((2, 2), (1, 4), (4, 4), (3, 8), (5, 6))]


def _places(rng):
    """Positions that do not count from 0: while decoding, shuffled, far away."""
    return [
        call(rng.standard_normal((1, 4)), np.array([3])),
        call(rng.standard_normal((4, 4)), rng.permutation(20)[:4]),
        call(rng.standard_normal((3, 8)), np.array([0, 500, 5000])),
    ]


def _heads(rng):
    return [call(rng.standard_normal(shape), np.arange(shape[-2])) for shape in ((2, 2, 4), (2, 3, 4, 6), (3, 3, 4))]


def _bases(rng):
    return [
        call(rng.standard_normal((3, 4)), np.arange(3), 100.0),
        call(rng.standard_normal((4, 8)), np.arange(4), base=5e5),
    ]


def _more_places(rng):
    return [
        call(rng.standard_normal((2, 4, 7, 16)), 11 + np.arange(7), base=500.0),
        call(rng.standard_normal((3, 2)), 9 * np.arange(3)),
    ]


# -------------------------------------------------------------------------------------------------------------------- q4, ALiBi
def alibi(num_heads, L, S, offset=0):
    """(H, L, S), for a number of heads that is a power of two."""
    return alibi_bias(num_heads, L, S, offset)


def _from_slopes(slopes, *, shift=0, turn=1, both=False, keep=False):
    """The same from its slopes, a function of the number of heads."""

    def function(num_heads, L, S, offset=0):
        distance = turn * (offset + shift + np.arange(L)[:, None] - np.arange(S))  # (L, S)
        distance = np.abs(distance) if both else distance if keep else np.maximum(distance, 0)
        return -slopes(num_heads)[:, None, None] * distance + 0.0

    return function


def _slopes(H):
    return 2.0 ** (-8 / H * np.arange(1, H + 1))


def _later_keys_hidden(num_heads, L, S, offset=0):
    later = offset + np.arange(L)[:, None] < np.arange(S)
    return np.where(later, -np.inf, alibi_bias(num_heads, L, S, offset))


def _squares(rng):
    return [call(H, L, L) for H, L in ((1, 2), (2, 2), (4, 3), (8, 8), (16, 5))]


def _while_decoding(rng):
    return [call(2, 1, 3, 2), call(8, 1, 12, offset=11), call(4, 3, 9, 6), call(2, 2, 2, int(rng.integers(3, 30)))]


def _more_heads(rng):
    return [call(32, 3, 7, 4), call(8, 4, 2), call(2, 3, 3, 100)]


# ------------------------------------------------------------------------------------------------------- q5, the other convention
def to_halves(W, num_heads):
    """Columns of each head: the even ones first, then the odd ones."""
    *front, width = W.shape
    pairs = W.reshape(*front, num_heads, width // num_heads // 2, 2)
    return pairs.swapaxes(-1, -2).reshape(W.shape)


def _to_neighbours(W, num_heads):
    *front, width = W.shape
    halves = W.reshape(*front, num_heads, 2, width // num_heads // 2)
    return halves.swapaxes(-1, -2).reshape(W.shape)


def _across_heads(W, num_heads):
    return to_halves(W, 1)


def _odd_first(W, num_heads):
    heads = split_heads(np.atleast_2d(W), num_heads)
    moved = merge_heads(np.concatenate([heads[..., 1::2], heads[..., 0::2]], axis=-1))
    return moved.reshape(W.shape)


def _matrices(rng):
    """Four columns in a head, since with two both conventions are one; square, and not."""
    return [
        call(rng.standard_normal((E, H * D)), H) for E, H, D in ((3, 1, 4), (8, 2, 4), (5, 2, 6), (12, 3, 4), (4, 2, 2))
    ]


def _biases(rng):
    return [call(rng.standard_normal(H * D), H) for H, D in ((1, 4), (2, 4), (4, 8))]


def _other_sizes(rng):
    return [call(rng.standard_normal((64, 64)), 4), call(rng.standard_normal((7, 40)), 2)]


EXERCISE = Exercise(
    "12_positions",
    "Positions",
    offers=("attention_scores", "project", "softmax", "split_heads"),
    questions=(
        value(
            "q1", "raw_scores", _turned_scores, 1, tolerance=0.001,
            slips={
                "not_turned": ("Nothing is turned: where the positions differ, one of the two is turned against the other.",
                               lambda: np.repeat(_QUERY @ _KEY, 4)),
                "turned_the_other_way": ("The turn goes the other way: a quarter turn takes (a, b) to (-b, a).",
                                         lambda: _turned_scores(-1, -1)),
                "only_the_query_is_turned": ("Only the query is turned, by its own position: the key is turned by its position, too.",
                                             lambda: _turned_scores(1, 0)),
                "direction_forgotten": (
                    "The second and the third number are the same here: the query one ahead of the key is not the key one ahead "
                    "of the query, so turn each by its own position.",
                    lambda: np.array([_quarter(_QUERY, abs(m - n)) @ _KEY for m, n in _PLACES])),
                "the_angles_add": ("The key is turned against the query: both turn the same way, each by its own position.",
                                   lambda: _turned_scores(1, -1)),
            },
        ),
        Question(
            "q2", "positions_table", positions_table,
            parts=(
                Part("from position 0", 2, _tables),
                Part("from another position", 1, _offsets),
                Part("sizes that are not announced", 1, _more_tables, hidden=True),
            ),
            mistakes={
                name: MISTAKES[name] for name in ("sines_before_cosines", "frequency_of_each_column", "positions_start_at_0")
            },
            slips={
                "degrees": ("The angles are taken as degrees: a step turns the first hand by 1 radian.",
                            lambda L, E, offset=0: _sines(L, E, offset, degrees=True)),
                "counted_from_1": ("The positions are counted from 1: the first row stands at `offset`, which is 0 if none is given.",
                                   lambda L, E, offset=0: _sines(L, E, offset, start=1)),
                "cosine_first": ("The cosine stands before the sine: column 2c is the sine.",
                                 lambda L, E, offset=0: _sines(L, E, offset, swap=True)),
                "exponent_halved": ("The exponent is c / E, not 2c / E, with c the number of the pair.",
                                    lambda L, E, offset=0: _sines(L, E, offset, power=0.5)),
                "exponent_doubled": ("The exponent is doubled: columns 2c and 2c + 1 have 2c / E, the number of the even one over E.",
                                     lambda L, E, offset=0: _sines(L, E, offset, power=2)),
                "speeds_rise": ("The speeds grow with the column: the exponent is negative.",
                                lambda L, E, offset=0: _sines(L, E, offset, power=-1)),
            },
            tolerance=1e-6,
        ),
        Question(
            "q3", "rope", rope,
            parts=(
                Part("positions 0, 1, 2 ...", 3, _queries),
                Part("any positions", 1, _places),
                Part("leading axes for batch and heads", 1, _heads),
                Part("another base", 1, _bases),
                Part("all together, in sizes that are not announced", 1, _more_places, hidden=True),
                untouched(),
            ),
            mistakes={
                "rope_of_the_other_convention": lambda x, positions, base=10000.0: library_rope(x, positions, base=base),
                "rope_exponent_halved": lambda x, positions, base=10000.0: _turn(x, positions, base, power=0.5),
            },
            slips={
                "turned_back": ("The pairs are turned the other way: (a, b) becomes (a cos - b sin, a sin + b cos).",
                                lambda x, positions, base=10000.0: _turn(x, positions, base, sign=-1)),
                "not_a_turn": ("The two sines have the same sign: that is no rotation, and lengths change.", _reflected),
                "new_first_half": ("The second half is made from the new first half: both new halves need the old ones.",
                                   _from_the_new_half),
                "left_as_neighbours": ("Each turned pair is put down as neighbours: component c stays at c, its partner at c + D/2.",
                                       _left_as_neighbours),
                "exponent_doubled": ("The exponent is doubled: pair c has the speed base ** (-2c / D), c from 0 to D/2 - 1.",
                                     lambda x, positions, base=10000.0: _turn(x, positions, base, power=2)),
                "positions_ignored": ("The positions are not used: row i is turned as if it stood at position i.",
                                      lambda x, positions, base=10000.0: _turn(x, np.arange(x.shape[-2]), base)),
                "counted_from_1": ("Each row is turned by one position too many.",
                                   lambda x, positions, base=10000.0: _turn(x, positions, base, start=1)),
                "base_ignored": ("The argument base is not used.",
                                 lambda x, positions, base=10000.0: _turn(x, positions)),
                "one_speed": ("All pairs turn at one speed: pair c has the speed base ** (-2c / D).",
                              lambda x, positions, base=10000.0: _turn(x, positions, base, power=0)),
                "added": ("Sines and cosines are added: rotary positions turn what is there.", _added),
                "speeds_reversed": ("The speeds stand in reverse order: pair 0 is the fastest.",
                                    lambda x, positions, base=10000.0: _turn(
                                        x, positions, base, table=lambda half: np.arange(half)[::-1])),
            },
        ),
        Question(
            "q4", "alibi", alibi,
            parts=(
                Part("as many keys as queries", 2, _squares),
                Part("while decoding: an offset, and L unlike S", 2, _while_decoding),
                Part("sizes that are not announced", 1, _more_heads, hidden=True),
            ),
            mistakes={name: lambda num_heads, L, S, offset=0, n=name: MISTAKES[n](num_heads, L, S, offset)
                      for name in ("alibi_sign_flipped", "alibi_one_slope", "alibi_starts_at_0")},
            slips={
                "slopes_of_8_heads": ("The slopes are 1/2, 1/4, 1/8, ... for any number of heads: that is right for 8 heads only.",
                                      _from_slopes(lambda H: 2.0 ** -np.arange(1, H + 1))),
                "slopes_from_1": ("The first head has slope 1: the exponents begin at -8 / h, not at 0.",
                                  _from_slopes(lambda H: 2.0 ** (-8 / H * np.arange(H)))),
                "slopes_reversed": ("The slopes stand in reverse order: head 0 has the steepest.",
                                    _from_slopes(lambda H: _slopes(H)[::-1])),
                "both_sides": ("Later keys get a bias, too: it is 0 behind the query, where a causal mask hides them.",
                               _from_slopes(_slopes, both=True)),
                "later_keys_preferred": ("Later keys get a positive bias: it is 0 behind the query, where a causal mask hides them.",
                                         _from_slopes(_slopes, keep=True)),
                "later_keys_hidden": ("Later keys get -inf: to hide them is the work of the mask; here their bias is 0.",
                                      _later_keys_hidden),
                "distance_reversed": ("The distance runs from the query to later keys: it is the query's position minus the key's.",
                                      _from_slopes(_slopes, turn=-1)),
                "one_too_far": ("The distance is one too large: a query is at distance 0 from its own key.",
                                _from_slopes(_slopes, shift=1)),
            },
        ),
        Question(
            "q5", "to_halves", to_halves,
            parts=(
                Part("a matrix", 2, _matrices),
                Part("a bias", 1, _biases),
                Part("sizes that are not announced", 1, _other_sizes, hidden=True),
                untouched(),
            ),
            slips={
                "the_way_back": ("This goes the other way, from halves to neighbours.", _to_neighbours),
                "across_heads": ("The columns are sorted over all heads at once: each head keeps its own block of columns.",
                                 _across_heads),
                "odd_first": ("The odd columns come first: the first half is made of the even ones, 0, 2, 4 ...", _odd_first),
                "unchanged": ("Nothing is moved.", lambda W, num_heads: W.copy()),
            },
        ),
    ),
)  # fmt: skip
