"""20_parallel: heads and sequences across devices: what each holds, what it sends, and how the parts become one."""

import numpy as np

from ..mistakes import MISTAKES
from ..numpy import merge_heads, scaled_dot_product_attention, split_heads
from ._question import Exercise, Part, Question, call, untouched, value

# ------------------------------------------------------------------------------------------------------------- q1, by hand
_DEVICES, _NUMBERS = 5, 30


def numbers_sent():
    """What each device sends in a ring of five that add up arrays of thirty numbers."""
    return 2 * (_DEVICES - 1) * (_NUMBERS // _DEVICES)


# ---------------------------------------------------------------------------------------------------------- q2, what a device holds
def shard(W_QKV, W_O, rank, size):
    """(E, 3*H*D), (H*D, E) -> (E, 3*H*D/size), (H*D/size, E): the weights of device `rank`."""
    return _with_columns(W_QKV, lambda W: _cut(W, rank, size)), _cut(W_O.T, rank, size).T


def _with_columns(W_QKV, cut):
    """W_Q, W_K and W_V cut each by itself, and packed again."""
    return np.concatenate([cut(W) for W in np.split(W_QKV, 3, axis=1)], axis=1)


def _cut(W, rank, size):
    """Piece `rank` of the columns."""
    width = W.shape[1] // size
    return W[:, rank * width : (rank + 1) * width]


def _weights(rng, *, E, width, rank, size):
    return call(rng.standard_normal((E, 3 * width)), rng.standard_normal((width, E)), rank, size)


def _two_devices(rng):
    return [_weights(rng, E=E, width=width, rank=rank, size=2) for E, width, rank in ((4, 4, 0), (4, 4, 1), (3, 8, 1))]


def _more_devices(rng):
    sizes = ((6, 6, 1, 3), (5, 8, 2, 4), (8, 12, 5, 6), (4, 9, 0, 3), (3, 4, 0, 1))  # (E, H*D, rank, size)
    return [_weights(rng, E=E, width=width, rank=rank, size=size) for E, width, rank, size in sizes]


# ------------------------------------------------------------------------------------------------------------ q3, from parts to output
def _parts(x, W_QKV, W_O, head_dim):
    """What each device adds, (p, L, E)."""
    parts = []
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (split_heads(y, y.shape[-1] // head_dim) for y in np.split(x @ packed, 3, axis=-1))
        parts.append(merge_heads(scaled_dot_product_attention(q, k, v)) @ rows)
    return np.stack(parts)


def _plus(output, b_O):
    return output if b_O is None else output + b_O


def output_of_devices(x, W_QKV, W_O, b_O, head_dim):
    """x (L, E), W_QKV (p, E, 3*H/p*D), W_O (p, H/p*D, E), b_O (E,) or None -> (L, E)."""
    return _plus(_parts(x, W_QKV, W_O, head_dim).sum(0), b_O)


def _devices(rng, *, L, E, p, heads, D, bias=True):
    """heads: on each device."""
    x, packed = rng.standard_normal((L, E)), rng.standard_normal((p, E, 3 * heads * D))
    rows = rng.standard_normal((p, heads * D, E))
    return call(x, packed, rows, rng.standard_normal(E) if bias else None, D)


def _one_head_each(rng):
    return [_devices(rng, L=L, E=E, p=p, heads=1, D=D) for L, E, p, D in ((2, 4, 2, 2), (3, 6, 3, 2), (4, 4, 4, 1))]


def _several_heads_each(rng):
    return [_devices(rng, L=L, E=E, p=p, heads=n, D=D) for L, E, p, n, D in ((3, 8, 2, 2, 2), (4, 5, 3, 2, 3))]


def _without_bias(rng):
    return [_devices(rng, L=2, E=4, p=2, heads=2, D=2, bias=False)]


def _with(split=split_heads, merge=merge_heads, **options):
    """The same with other steps; the number of heads may follow from `heads`, a function of the columns and their width."""
    heads = options.pop("heads", lambda columns, head_dim: columns // head_dim)

    def wrong(x, W_QKV, W_O, b_O, head_dim):
        total = 0
        for packed, rows in zip(W_QKV, W_O, strict=True):
            q, k, v = (split(y, heads(y.shape[-1], head_dim)) for y in np.split(x @ packed, 3, axis=-1))
            total = total + merge(scaled_dot_product_attention(q, k, v, **options)) @ rows
        return _plus(total, b_O)

    return wrong


def _wide(x, W_QKV, W_O, b_O, head_dim):
    """All columns of a device as one head."""
    return output_of_devices(x, W_QKV, W_O, b_O, W_QKV.shape[-1] // 3)


def _whole_scale(x, W_QKV, W_O, b_O, head_dim):
    """Scaled by the width of all heads of the device."""
    total = 0
    for packed, rows in zip(W_QKV, W_O, strict=True):
        q, k, v = (split_heads(y, y.shape[-1] // head_dim) for y in np.split(x @ packed, 3, axis=-1))
        total = total + merge_heads(scaled_dot_product_attention(q, k, v, scale=(packed.shape[-1] / 3) ** -0.5)) @ rows
    return _plus(total, b_O)


# -------------------------------------------------------------------------------------------------------------------- q4, merging
def merge(m1, l1, o1, m2, l2, o2):
    """Two triples over different keys: m, l (..., L), o (..., L, D) -> the triple over all keys."""
    m, a, b = _factors(m1, m2)
    return m, a * l1 + b * l2, a[..., None] * o1 + b[..., None] * o2


def _factors(m1, m2):
    m = np.maximum(m1, m2)
    safe = np.where(m == -np.inf, 0, m)
    return m, np.exp(m1 - safe), np.exp(m2 - safe)


def _triple(rng, *shape, D=3, S=4, shift=0.0, masked=()):
    """m, l and o over S keys; the queries in `masked` may see none of them."""
    scores = rng.standard_normal((*shape, S)) * 2 + shift
    scores[..., list(masked), :] = -np.inf
    m = scores.max(-1)
    e = np.exp(scores - np.where(m == -np.inf, 0, m)[..., None])
    return m, e.sum(-1), e @ rng.standard_normal((S, D))


def _two_blocks(rng):
    shifts = ((1, 0.0, 1.0), (3, 0.0, 1.0), (3, 12.0, 0.0))  # the larger maxima on either side
    return [call(*_triple(rng, L, shift=one), *_triple(rng, L, shift=other)) for L, one, other in shifts]


def _all_heads(rng):
    return [
        call(*_triple(rng, 2, 3, D=2), *_triple(rng, 2, 3, D=2)),
        call(*_triple(rng, 2, 4, 5), *_triple(rng, 2, 4, 5)),
    ]


def _far_apart(rng):
    return [call(*_triple(rng, 2, shift=far), *_triple(rng, 2, shift=other)) for far, other in
            ((900.0, 899.0), (-900.0, -902.0), (-800.0, 800.0), (800.0, -800.0))]  # fmt: skip


def _nothing_yet(rng):
    """A block that some queries may not see: the first, the second, both."""
    masked = (([0], []), ([], [1, 2]), ([1], [1]))
    return [call(*_triple(rng, 3, masked=a, shift=12.0), *_triple(rng, 3, masked=b)) for a, b in masked]


def _rescaled(m1, l1, o1, m2, l2, o2, *, sums=True, outputs=True):
    m, a, b = _factors(m1, m2)
    total = a * l1 + b * l2 if sums else l1 + l2
    return m, total, a[..., None] * o1 + b[..., None] * o2 if outputs else o1 + o2


def _growing(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    safe = np.where(m == -np.inf, 0, m)
    a, b = np.exp(safe - m1), np.exp(safe - m2)
    return m, a * l1 + b * l2, a[..., None] * o1 + b[..., None] * o2


def _only_the_first(m1, l1, o1, m2, l2, o2):
    m, a, _ = _factors(m1, m2)
    return m, a * l1 + l2, a[..., None] * o1 + o2


def _times_the_sums(m1, l1, o1, m2, l2, o2):
    """As if the outputs were divided by their sums."""
    return merge(m1, l1, l1[..., None] * o1, m2, l2, l2[..., None] * o2)


def _mean_by_the_sums(*six):
    m, total, o = _times_the_sums(*six)
    return m, total, o / np.where(total == 0, 1, total)[..., None]


def _along_the_columns(m1, l1, o1, m2, l2, o2):
    m, a, b = _factors(m1, m2)
    return m, a * l1 + b * l2, a * o1 + b * o2


def _one_maximum(m1, l1, o1, m2, l2, o2):
    """Over all queries."""
    m = max(m1.max(), m2.max())
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return np.full_like(m1, m), a * l1 + b * l2, a[..., None] * o1 + b[..., None] * o2


def _exchanged(m1, l1, o1, m2, l2, o2):
    m, a, b = _factors(m1, m2)
    return m, b * l1 + a * l2, b[..., None] * o1 + a[..., None] * o2


def _without_guard(m1, l1, o1, m2, l2, o2):
    m = np.maximum(m1, m2)
    a, b = np.exp(m1 - m), np.exp(m2 - m)
    return m, a * l1 + b * l2, a[..., None] * o1 + b[..., None] * o2


def _divided(m1, l1, o1, m2, l2, o2):
    m, total, o = merge(m1, l1, o1, m2, l2, o2)
    return m, total, o / np.where(total == 0, 1, total)[..., None]


def _to_zero(m1, l1, o1, m2, l2, o2):
    a, b = np.exp(m1), np.exp(m2)
    m = np.maximum(m1, m2)
    total, o = a * l1 + b * l2, a[..., None] * o1 + b[..., None] * o2
    back = np.exp(-np.where(m == -np.inf, 0, m))
    return m, total * back, o * back[..., None]


EXERCISE = Exercise(
    "20_parallel",
    "Heads across devices",
    offers=("merge_heads", "scaled_dot_product_attention", "softmax", "split_heads"),
    questions=(
        value(
            "q1", "numbers_sent", numbers_sent, 1,
            slips={
                "one_half": (
                    "This is one half of the way: after the pieces are added up, the sums have to go around, too.",
                    lambda: numbers_sent() / 2),
                "own_part_once": (
                    "This is the whole array, once: in a ring each device sends p - 1 pieces, twice.", lambda: _NUMBERS),
                "to_each_other_device": (
                    "This is the whole array to each of the four others: the ring sends pieces, and less.",
                    lambda: _NUMBERS * (_DEVICES - 1)),
                "all_devices": ("This is what all five send together; asked is what each sends.",
                                lambda: _DEVICES * numbers_sent()),
                "p_pieces": (
                    "This is p pieces in each half: a piece has p - 1 neighbours to visit, the first device has it already.",
                    lambda: 2 * _NUMBERS),
                "one_piece": ("This is one piece: how often does a device send one?", lambda: _NUMBERS / _DEVICES),
                "one_piece_more": (
                    "This is p pieces in the first half and p - 1 in the second: a piece has p - 1 neighbours to visit, twice.",
                    lambda: 54),
                "in_bytes": ("This is in bytes, of four a number: asked are numbers.", lambda: 4 * numbers_sent()),
            },
        ),
        Question(
            "q2", "shard", shard,
            parts=(
                Part("two devices", 2, _two_devices),
                Part("more devices, or one that holds everything", 2, _more_devices),
                Part("sizes that are not announced", 1, lambda rng: [
                    _weights(rng, E=7, width=10, rank=4, size=5), _weights(rng, E=2, width=16, rank=3, size=8)], hidden=True),
                untouched(),
            ),
            mistakes={
                "packed_matrix_cut_through": lambda W_QKV, W_O, rank, size: (
                    _cut(W_QKV, rank, size), _cut(W_O.T, rank, size).T),
                "columns_dealt_in_turn": lambda W_QKV, W_O, rank, size: (W_QKV[:, rank::size], W_O[rank::size]),
                "output_rows_of_another_device": lambda W_QKV, W_O, rank, size: (
                    shard(W_QKV, W_O, rank, size)[0], _cut(W_O.T, size - 1 - rank, size).T),
            },
            slips={
                "columns_in_turn_rows_not": (
                    "The columns are dealt out in turn: a device must get whole heads, columns side by side.",
                    lambda W_QKV, W_O, rank, size: (W_QKV[:, rank::size], _cut(W_O.T, rank, size).T)),
                "columns_of_the_output_matrix": (
                    "W_O is cut by columns: heads meet its rows, so the rows are shared out.",
                    lambda W_QKV, W_O, rank, size: (shard(W_QKV, W_O, rank, size)[0], _cut(W_O, rank, size))),
                "output_matrix_whole": (
                    "The device has all of W_O: it only needs the rows that its own heads meet.",
                    lambda W_QKV, W_O, rank, size: (shard(W_QKV, W_O, rank, size)[0], W_O)),
                "ranks_from_1": (
                    "These are the heads of the device before: the first has rank 0.",
                    lambda W_QKV, W_O, rank, size: shard(W_QKV, W_O, rank - 1, size)),
                "projections_whole": (
                    "The device has all of W_Q, W_K and W_V: it only needs the columns of its own heads.",
                    lambda W_QKV, W_O, rank, size: (W_QKV, shard(W_QKV, W_O, rank, size)[1])),
                "rows_from_rank": (
                    "The rows of W_O begin at row `rank`: they begin where those of the devices before end.",
                    lambda W_QKV, W_O, rank, size: (
                        shard(W_QKV, W_O, rank, size)[0], W_O[rank : rank + W_O.shape[0] // size])),
                "queries_only": (
                    "Only W_Q is there: a device needs its columns of W_K and W_V, too.",
                    lambda W_QKV, W_O, rank, size: (
                        _cut(np.split(W_QKV, 3, axis=1)[0], rank, size), _cut(W_O.T, rank, size).T)),
                "head_by_head": (
                    "The queries, keys and values of the device are there in another order: first all queries, then all keys.",
                    lambda W_QKV, W_O, rank, size: (
                        np.stack([_cut(W, rank, size) for W in np.split(W_QKV, 3, axis=1)], -1).reshape(len(W_QKV), -1),
                        _cut(W_O.T, rank, size).T)),
            },
        ),
        Question(
            "q3", "output_of_devices", output_of_devices,
            parts=(
                Part("one head on each device", 2, _one_head_each),
                Part("several heads on each device", 2, _several_heads_each),
                Part("a layer without b_O", 1, _without_bias),
                Part("sizes that are not announced", 1, lambda rng: [
                    _devices(rng, L=5, E=7, p=4, heads=3, D=2), _devices(rng, L=1, E=3, p=1, heads=2, D=5)], hidden=True),
                untouched(),
            ),
            mistakes={
                "output_bias_on_every_device": lambda x, W_QKV, W_O, b_O, head_dim: output_of_devices(
                    x, W_QKV, W_O, None if b_O is None else len(W_O) * b_O, head_dim),
                "output_bias_forgotten": lambda x, W_QKV, W_O, b_O, head_dim: output_of_devices(
                    x, W_QKV, W_O, None, head_dim),
                "parts_averaged": lambda x, W_QKV, W_O, b_O, head_dim: _plus(
                    _parts(x, W_QKV, W_O, head_dim).mean(0), b_O),
                "parts_not_added_up": lambda x, W_QKV, W_O, b_O, head_dim: _plus(
                    _parts(x, W_QKV, W_O, head_dim)[0], b_O),
                "no_scale": _with(scale=1.0),
                "split_without_transpose": _with(split=MISTAKES["split_without_transpose"]),
            },
            slips={
                "width_as_number": (
                    "The columns are split into head_dim heads: head_dim is the width of a head, not their number.",
                    _with(heads=lambda columns, head_dim: head_dim)),
                "causal": ("Later tokens are masked: nothing is masked here.", _with(is_causal=True)),
                "the_last_device_only": ("This is what the last device adds: the sum runs over all of them.",
                                         lambda x, W_QKV, W_O, b_O, head_dim: _plus(
                                             _parts(x, W_QKV, W_O, head_dim)[-1], b_O)),
                "bias_shared_out": (
                    "Only a share of b_O, one of p, is in the sum: it is added once, and whole.",
                    lambda x, W_QKV, W_O, b_O, head_dim: _plus(
                        _parts(x, W_QKV, W_O, head_dim).sum(0), None if b_O is None else b_O / len(W_O))),
                "parts_kept_apart": ("The parts are still apart, (p, L, E): asked is their sum, (L, E).",
                                     lambda x, W_QKV, W_O, b_O, head_dim: _plus(
                                         _parts(x, W_QKV, W_O, head_dim), b_O)),
                "parts_side_by_side": (
                    "The parts are laid side by side: that is for heads before W_O; behind it they are added.",
                    lambda x, W_QKV, W_O, b_O, head_dim: np.concatenate(
                        list(_parts(x, W_QKV, W_O, head_dim)), axis=-1)),
                "one_wide_head": (
                    "All columns of a device went through one softmax: each of its heads, head_dim wide, has its own.", _wide),
                "scaled_by_the_device": (
                    "The scores are divided by the root of all columns of the device: by sqrt(head_dim), as in one piece.",
                    _whole_scale),
            },
        ),
        Question(
            "q4", "merge", merge,
            parts=(
                Part("two blocks of keys", 2, _two_blocks),
                Part("leading axes for heads and batch", 1, _all_heads),
                Part("maxima that are far from 0, and far apart", 1, _far_apart),
                Part("a block that a query may not see", 2, _nothing_yet),
                Part("sizes that are not announced", 1, lambda rng: [
                    call(*_triple(rng, 3, 2, 4, D=5, S=6), *_triple(rng, 3, 2, 4, D=5, S=2))], hidden=True),
                untouched(),
            ),
            slips={
                "without_rescaling": (
                    "The sums of two blocks are added as they are: each is relative to its own maximum, and must be brought to "
                    "the common one.", lambda *six: _rescaled(*six, sums=False, outputs=False)),
                "only_the_sums": ("l is brought to the common maximum, o is not: both were made with the same exponentials.",
                                  lambda *six: _rescaled(*six, outputs=False)),
                "only_the_outputs": (
                    "o is brought to the common maximum, l is not: both were made with the same exponentials.",
                    lambda *six: _rescaled(*six, sums=False)),
                "factors_exchanged": (
                    "The factors have changed places: the first block is rescaled by exp(m1 - m), the second by exp(m2 - m).",
                    _exchanged),
                "wrong_sign": ("The smaller block grows: it must shrink, by exp(its maximum - the common one).", _growing),
                "only_the_first": (
                    "Only the first block is rescaled: in some rows it is the second that has the smaller maximum.", _only_the_first),
                "times_the_sums": (
                    "o is multiplied by l: it is not divided yet, so the sum is in it already.", _times_the_sums),
                "mean_by_the_sums": (
                    "The outputs are treated as if they were divided by their sums: they are not, so they are added, each with its factor.",
                    _mean_by_the_sums),
                "axis_forgotten": (
                    "The factors meet o along its columns: they have one axis less, so write them as [..., None].", _along_the_columns),
                "one_maximum": ("The maximum runs over all queries: each has its own.", _one_maximum),
                "divided_already": (
                    "o is divided by l already: the next merge needs it undivided; divide after the last block.", _divided),
                "nothing_is_nan": (
                    "A query that has seen nothing becomes NaN: both maxima are -inf, and -inf - (-inf) is NaN.",
                    _without_guard),
                "relative_to_zero": (
                    "The exponentials are brought to the maximum 0 on the way: exp overflows or vanishes far from it.", _to_zero),
            },
        ),
    ),
)  # fmt: skip
