"""09_output: W_O, and the output as a sum that can be taken apart."""

import numpy as np

from ..data import load_layer, load_pencil
from ..mistakes import MISTAKES
from ..numpy import merge_heads, project, scaled_dot_product_attention, split_heads
from ._question import Exercise, Part, Question, call, untouched, value


# ------------------------------------------------------------------------------------------------------------------- q1, by hand
def _pencil(head=1, rows=None, transposed=False):
    """What a head adds to the output of chase, if head 0 looks at cats alone and head 1 at mice alone: (8,)."""
    pencil = load_pencil()
    values = (pencil.x @ pencil.W_V)[2 * head, 4 * head : 4 * head + 4]  # (4,): of cats or of mice
    rows = head if rows is None else rows
    W_O = pencil.W_O.T if transposed else pencil.W_O
    return values @ W_O[4 * rows : 4 * rows + 4]


# ------------------------------------------------------------------------------------------------------------------- q2, output
def output_of(heads, W_O, b_O=None):
    """(..., H, L, D), (H*D, E), (E,) or None -> (..., L, E)."""
    return project(merge_heads(heads), W_O, b_O)


def _alternating(heads):
    """Merged feature by feature, not head by head."""
    return np.moveaxis(heads, -3, -1).reshape(*heads.shape[:-3], heads.shape[-2], -1)


def _end(rng, *B, H, L, D, E, bias=True):
    arrays = (rng.standard_normal((*B, H, L, D)), rng.standard_normal((H * D, E)))
    return call(*arrays, rng.standard_normal(E)) if bias else call(*arrays)


def _ends(rng):
    """One head, one token, L = H = D = E / H (where no shape complains), E smaller and larger than H*D."""
    sizes = ((2, 1, 2, 4), (1, 2, 2, 2), (2, 2, 2, 4), (4, 4, 4, 16), (3, 4, 2, 5), (2, 5, 3, 9))
    return [_end(rng, H=H, L=L, D=D, E=E) for H, L, D, E in sizes]


def _batches_of_ends(rng):
    return [_end(rng, 2, H=2, L=2, D=2, E=4), _end(rng, 3, H=2, L=3, D=4, E=8), _end(rng, 2, 1, H=3, L=2, D=2, E=5)]


def _without_bias(rng):
    one = _end(rng, H=3, L=2, D=2, E=6, bias=False)
    return [_end(rng, H=2, L=3, D=2, E=4, bias=False), call(*one.args, None)]


def _in_float32(rng):
    one = _end(rng, H=2, L=3, D=4, E=8)
    return [call(*(x.astype(np.float32) for x in one.args))]


# ------------------------------------------------------------------------------------------------------------------- q3, a sum
def added_by_heads(heads, W_O):
    """What each head adds: (..., H, L, D), (H*D, E) -> (..., H, L, E)."""
    H, D = heads.shape[-3], heads.shape[-1]
    return heads @ W_O.reshape(H, D, -1)  # (H, D, E): the rows of each head


def _with_rows(heads, rows_of):
    """The same with other rows of W_O for head m."""
    return np.stack([heads[..., m, :, :] @ rows_of(m, heads.shape[-1]) for m in range(heads.shape[-3])], axis=-3)


def _parts(rng):
    return [call(*_end(rng, H=H, L=L, D=D, E=E, bias=False).args)
            for H, L, D, E in ((2, 1, 2, 4), (1, 2, 2, 3), (2, 2, 2, 2), (3, 3, 3, 9), (4, 3, 2, 5), (2, 4, 3, 7))]  # fmt: skip


def _batches_of_parts(rng):
    return [call(*c.args[:2]) for c in _batches_of_ends(rng)]


# ------------------------------------------------------------------------------------------------------------------- q4, parameters
def parameters(d_model, num_heads, d_k, d_v, bias=True):
    """How many numbers a layer learns."""
    matrices = 2 * d_model * num_heads * d_k + 2 * d_model * num_heads * d_v
    return matrices + bias * (2 * num_heads * d_k + num_heads * d_v + d_model)


def _layers(rng):
    d_model, num_heads, width = (3 * rng.integers(2, 30, 3)).tolist()
    return [call(8, 2, 4, 4), call(384, 12, 32, 32), call(10, 1, 10, 10), call(d_model, num_heads, width, width)]


def _wide_values(rng):
    return [call(6, 2, 3, 4), call(64, 4, 16, 32), call(12, 3, 5, 2)]


def _unbiased(rng):
    return [call(8, 2, 4, 4, bias=False), call(64, 4, 8, 24, bias=False), call(9, 3, 4, 1, False)]


# --------------------------------------------------------------------------------------------------------------- q5, the real layer
def _real_parts(W_O=None):
    """What each of the twelve heads adds to the row of "it", (12, 384), and the bias b_O."""
    layer = load_layer()
    x = layer.x.astype(float)
    q, k, v = (split_heads(x @ getattr(layer, f"W_{n}") + getattr(layer, f"b_{n}"), 12) for n in "QKV")
    W_O = layer.W_O if W_O is None else W_O
    return added_by_heads(scaled_dot_product_attention(q, k, v), W_O)[:, layer.tokens.index("it")], layer.b_O


def _share(head=1):
    parts, _ = _real_parts()
    whole = parts.sum(0)
    return parts[head] @ whole / (whole @ whole)


def _share_with_bias():
    parts, b_O = _real_parts()
    whole = parts.sum(0) + b_O
    return parts[1] @ whole / (whole @ whole)


def _share_of_lengths():
    lengths = np.linalg.norm(_real_parts()[0], axis=-1)
    return lengths[1] / lengths.sum()


def _ratio_of_lengths():
    parts, _ = _real_parts()
    return np.linalg.norm(parts[1]) / np.linalg.norm(parts.sum(0))


def _cosine():
    parts, _ = _real_parts()
    return parts[1] @ parts.sum(0) / (np.linalg.norm(parts[1]) * np.linalg.norm(parts.sum(0)))


def _shadow():
    parts, _ = _real_parts()
    return parts[1] @ parts.sum(0) / np.linalg.norm(parts.sum(0))


def _share_transposed():
    parts, _ = _real_parts(load_layer().W_O.T)
    return parts[1] @ parts.sum(0) / (parts.sum(0) @ parts.sum(0))


EXERCISE = Exercise(
    "09_output",
    "W_O and the sum of the heads",
    offers=("project", "softmax"),
    questions=(
        value(
            "q1", "added_by_head_1", _pencil, 1,
            mistakes={"output_projection_transposed": lambda: _pencil(transposed=True)},
            slips={
                "rows_of_head_0": ("These are the rows of head 0: head 1 meets the rows 4 to 7 of W_O.",
                                   lambda: _pencil(rows=0)),
                "head_0": ("This is what head 0 adds; head 1 is asked.", lambda: _pencil(head=0)),
                "both_heads": ("This is the whole output, both heads together; head 1 alone is asked.",
                               lambda: _pencil(0) + _pencil(1)),
            },
        ),
        Question(
            "q2", "output_of", output_of,
            parts=(
                Part("one sentence, any sizes", 2, _ends),
                Part("leading axes for a batch", 1, _batches_of_ends),
                Part("a layer without b_O", 1, _without_bias),
                Part("float32 stays float32", 1, _in_float32, dtype=True),
                Part("sizes that are not announced", 1, lambda rng: [
                    _end(rng, 3, H=5, L=5, D=5, E=25), _end(rng, H=6, L=7, D=3, E=11)], hidden=True),
                untouched(),
            ),
            mistakes={
                "merge_without_transpose": lambda heads, W_O, b_O=None: project(
                    MISTAKES["merge_without_transpose"](heads), W_O, b_O),
                "heads_averaged": lambda heads, W_O, b_O=None: project(MISTAKES["heads_averaged"](heads), W_O, b_O),
                "output_projection_missing": lambda heads, W_O, b_O=None: merge_heads(heads),
                "output_projection_transposed": lambda heads, W_O, b_O=None: project(merge_heads(heads), W_O.T, b_O),
                "output_bias_forgotten": lambda heads, W_O, b_O=None: output_of(heads, W_O),
            },
            slips={
                "bias_for_every_head": (
                    "b_O is added once for each head: it belongs to the sum of all heads, once.",
                    lambda heads, W_O, b_O=None: output_of(heads, W_O, None if b_O is None else heads.shape[-3] * b_O)),
                "interleaved": (
                    "The columns of the heads alternate: each head must keep its columns together, head after head.",
                    lambda heads, W_O, b_O=None: project(_alternating(heads), W_O, b_O)),
                "only_the_bias": (
                    "W_O is missing and b_O is added: it belongs behind the product with W_O.",
                    lambda heads, W_O, b_O=None: merge_heads(heads) + (0 if b_O is None else b_O)),
            },
        ),
        Question(
            "q3", "added_by_heads", added_by_heads,
            parts=(
                Part("one sentence, any sizes", 2, _parts),
                Part("leading axes for a batch", 1, _batches_of_parts),
                Part("sizes that are not announced", 1, lambda rng: [
                    call(*_end(rng, 2, H=4, L=4, D=4, E=16, bias=False).args),
                    call(*_end(rng, H=5, L=2, D=3, E=8, bias=False).args)], hidden=True),
                untouched(),
            ),
            mistakes={
                "output_projection_transposed": lambda heads, W_O: _with_rows(
                    heads, lambda m, D: W_O.T[m * D : (m + 1) * D]),
                "heads_averaged": lambda heads, W_O: added_by_heads(heads, W_O) / heads.shape[-3],
            },
            slips={
                "rows_in_turn": (
                    "The rows of W_O are dealt out in turn: head m owns the rows m*D to (m+1)*D - 1, side by side.",
                    lambda heads, W_O: _with_rows(heads, lambda m, D: W_O[m :: heads.shape[-3]])),
                "the_same_rows": ("Every head meets the rows of head 0: head m owns the rows m*D to (m+1)*D - 1.",
                                  lambda heads, W_O: _with_rows(heads, lambda m, D: W_O[:D])),
                "rows_from_the_end": (
                    "The heads meet the blocks of W_O in the opposite order: head 0 owns the first rows.",
                    lambda heads, W_O: heads @ W_O.reshape(heads.shape[-3], heads.shape[-1], -1)[::-1]),
                "summed_already": ("The heads are added up already, (..., L, E): keep them apart, (..., H, L, E).",
                                   output_of),
                "heads_behind": ("The heads stand behind the tokens, (..., L, H, E): asked is (..., H, L, E).",
                                 lambda heads, W_O: added_by_heads(heads, W_O).swapaxes(-3, -2)),
            },
        ),
        Question(
            "q4", "parameters", parameters, tolerance=1e-9,
            parts=(
                Part("d_v equal to d_k, and any width", 1, _layers),
                Part("values of another width than the keys", 1, _wide_values),
                Part("a layer without biases", 1, _unbiased),
                Part("a layer that is not announced", 1, lambda rng: [call(20, 5, 7, 3), call(33, 2, 4, 9, bias=False)],
                     hidden=True),
            ),
            slips={
                "output_matrix_forgotten": (
                    "W_O is not counted: it has a row for each of the num_heads * d_v columns of the heads.",
                    lambda d_model, num_heads, d_k, d_v, bias=True: parameters(d_model, num_heads, d_k, d_v, bias)
                    - num_heads * d_v * d_model),
                "biases_forgotten": ("The four biases are not counted.",
                                     lambda d_model, num_heads, d_k, d_v, bias=True: parameters(
                                         d_model, num_heads, d_k, d_v, False)),
                "biases_always": ("The biases are counted in a layer that has none: look at `bias`.",
                                  lambda d_model, num_heads, d_k, d_v, bias=True: parameters(
                                      d_model, num_heads, d_k, d_v)),
                "output_bias_as_wide_as_the_heads": (
                    "b_O is counted with num_heads * d_v numbers: it is added to the output, which has d_model columns.",
                    lambda d_model, num_heads, d_k, d_v, bias=True: parameters(d_model, num_heads, d_k, d_v, bias)
                    + bias * (num_heads * d_v - d_model)),
                "output_bias_forgotten": (
                    "Three biases are counted: b_O is missing.",
                    lambda d_model, num_heads, d_k, d_v, bias=True: parameters(d_model, num_heads, d_k, d_v, bias)
                    - bias * d_model),
                "one_head": ("Only one head is counted: d_k and d_v are the widths of each head.",
                             lambda d_model, num_heads, d_k, d_v, bias=True: parameters(d_model, 1, d_k, d_v, bias)),
                "values_as_wide_as_keys": (
                    "The values are counted with the width of the keys, d_k: they have their own, d_v.",
                    lambda d_model, num_heads, d_k, d_v, bias=True: parameters(d_model, num_heads, d_k, d_k, bias)),
                "all_square": (
                    "All matrices are counted as d_model times d_model: that holds only where num_heads * d_k and "
                    "num_heads * d_v are d_model.",
                    lambda d_model, num_heads, d_k, d_v, bias=True: 4 * d_model**2 + bias * 4 * d_model),
            },
        ),
        value(
            "q5", "share_of_head_1", _share, 2,
            mistakes={"output_projection_transposed": _share_transposed},
            slips={
                "share_of_the_lengths": (
                    "This is the share of the lengths: take the part along the sum, its dot product with the sum.",
                    _share_of_lengths),
                "ratio_of_lengths": (
                    "This is the length of the part over that of the sum: only what points along the sum counts.",
                    _ratio_of_lengths),
                "cosine": ("This is the cosine of part and sum: divide by the squared length of the sum alone.", _cosine),
                "divided_once": ("This is divided by the length of the sum once: divide by its square, s @ s.", _shadow),
                "bias_in_the_sum": ("The sum contains b_O: here it is the sum of the twelve parts alone.",
                                    _share_with_bias),
                "head_7": ("This is head 7, the largest share; head 1 is asked.", lambda: _share(7)),
                "head_0": ("This is head 0: the heads are counted from 0.", lambda: _share(0)),
                "in_percent": ("This is the share in percent: give it as a fraction of 1.", lambda: 100 * _share()),
            },
        ),
    ),
)  # fmt: skip
