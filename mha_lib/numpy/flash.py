"""Exact attention by tiles, in memory that grows with the length and not with its square.

A tile of queries meets the keys tile by tile. The softmax goes along: it keeps, for each query, the sum of the exponentials so
far and the weighted sum of the values so far, and divides at the end. That is exact, not an approximation.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from .. import _checks
from . import _workers
from ._arrays import compute_dtype, real_array, result_dtype
from .attention import scaled_dot_product_attention, scaled_dot_product_attention_backward
from .masks import causal_mask
from .scores import allowed_pairs, constraints

LOG2E = math.log2(math.e)
TILE = 1 << 17  # scores computed at a time by one worker: half a megabyte in float32, which a core's cache holds
WORTH_A_THREAD = 256 * 256  # scores of a head; below that, starting a thread costs more than it saves
FAR_BELOW = -1e30  # stands for the score of a masked key until its exponential is set to 0


def flash_attention(
    query, key, value, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None
):
    """`scaled_dot_product_attention` by tiles: the same arguments, the same result, memory linear in L and S.

    Shapes: query (..., H, L, D), key (..., H_kv, S, D), value (..., H_kv, S, D_v) -> output (..., H, L, D_v).
    The arguments, NaN, masked rows and dtypes are as there; "the same" means at most 1e-6 (float32) or 1e-12 (float64) off,
    relative to the largest magnitude. Weights cannot be returned: they never exist all at once.
    With threadpoolctl installed, the heads are shared out among the cores; no thread outlives the call.
    Errors: as there.
    Source: Dao et al. 2022; the online softmax is Milakov and Gimelshein 2018.

    >>> x = np.eye(3)
    >>> bool(np.allclose(flash_attention(x, x, x, is_causal=True), scaled_dot_product_attention(x, x, x, is_causal=True)))
    True
    """
    problem = _prepare(query, key, value, mask, bias, is_causal, query_offset, scale, softcap)
    if not problem.tame:
        return _by_query_rows(problem)
    output = np.empty((*problem.q.shape[:-1], problem.v.shape[-1]), problem.q.dtype)
    _forward(problem, output)
    return output.reshape(problem.output_shape).astype(problem.dtype, copy=False)


@dataclass
class Problem:
    """One call, checked: arrays with one axis of heads (N, L, D), in the dtype to compute in."""

    q: Any  # (N, L, D)
    k: Any  # (N_kv, S, D)
    v: Any  # (N_kv, S, D_v)
    mask: Any  # Spread or None
    bias: Any  # Spread or None
    bias_masks: bool  # whether -inf stands in the bias
    is_causal: bool
    query_offset: int
    scale: float
    softcap: float | None
    given: Any  # query, key, value as they came
    output_shape: tuple
    dtype: Any
    tame: bool  # all finite and no score can overflow; else whole rows are computed, with the care that NaN needs
    bounded: bool  # no exponential can leave the range of float32, even without subtracting a maximum
    triangles: dict = field(default_factory=dict)

    @property
    def group(self):
        """Query heads per key head."""
        return len(self.q) // len(self.k) if len(self.k) else 1

    @property
    def query_factor(self):
        """What the queries are multiplied by: the scale, and log2(e) unless the softcap comes between."""
        return self.q.dtype.type(self.scale * (LOG2E if self.softcap is None else 1.0))

    def keys_seen(self, rows):
        """How many keys, counted from 0, the queries in `rows` may see at most."""
        S = self.k.shape[1]
        return max(0, min(S, self.query_offset + rows.stop)) if self.is_causal else S

    def key_tiles(self, rows, size):
        """Slices of the keys that the queries in `rows` may see, at most `size` long. For a causal mask a cut stands where the
        diagonal begins, so that the tiles before it need no mask."""
        seen = self.keys_seen(rows)
        cuts = {*range(0, seen, size), seen}
        if self.is_causal:
            diagonal = (self.query_offset + rows.start + 1) // 128 * 128  # no tiny tiles
            cuts |= {diagonal} if 0 < diagonal < seen else set()
        return [slice(a, b) for a, b in pairwise(sorted(cuts))]

    def keep(self, heads, rows, columns):
        """1 where a pair of a tile may attend, 0 where not; broadcasts to (heads, rows, columns). None where all may."""
        shape, offset = (
            (rows.stop - rows.start, columns.stop - columns.start),
            self.query_offset + rows.start - columns.start,
        )
        crosses = self.is_causal and shape[1] > offset + 1  # else all of these keys are in the past
        if self.mask is None and not self.bias_masks:
            return self.triangle(shape, offset) if crosses else None
        mask = None if self.mask is None else self.mask.tile(heads, rows, columns)
        bias = self.bias.tile(heads, rows, columns) if self.bias_masks else None
        allowed = allowed_pairs(shape, mask, bias, crosses, offset)
        return None if allowed.all() else allowed.astype(self.q.dtype)

    def triangle(self, shape, offset):
        """A causal mask as numbers. Nearly all tiles on the diagonal need the same one, so it is made once."""
        if (shape, offset) not in self.triangles:
            self.triangles[shape, offset] = causal_mask(*shape, offset).astype(self.q.dtype)
        return self.triangles[shape, offset]

    def fill_scores(self, out, q, packed_keys, heads, rows, columns):
        """Write the scores of a tile (heads, rows, columns) in units of log 2, so that 2 ** score is what exp(score) is."""
        np.matmul(q, packed_keys, out=out)
        if self.softcap is not None:
            out /= self.softcap
            np.tanh(out, out=out)
            out *= self.softcap * LOG2E
        if self.bias is not None:
            bias = self.bias.tile(heads, rows, columns)
            out += np.where(bias == -np.inf, 0, bias) * LOG2E if self.bias_masks else bias * LOG2E


class Spread:
    """A mask or bias over (N, L, S): the caller's own memory, and for each head which part of it is meant."""

    def __init__(self, x, shape):
        x = x.reshape((1,) * (3 - x.ndim) + x.shape)
        own = math.prod(x.shape[:-2])
        lead = shape[:-2] or (1,)  # queries without an axis of heads count as one head
        self.which = np.broadcast_to(np.arange(own).reshape(x.shape[:-2]), lead).reshape(math.prod(lead))
        self.parts = np.broadcast_to(x.reshape(own, *x.shape[-2:]), (own, *shape[-2:]))  # a view

    def tile(self, heads, rows, columns):
        """The part for a tile; (1, rows, columns) where all its heads share it."""
        which = self.which[heads]
        if (which == which[0]).all():
            which = which[:1]
        return self.parts[which, rows, columns]

    def rows(self, rows, lead):
        """The part for some queries of all heads, with the leading axes of the scores."""
        part = self.parts[self.which, rows]
        return part.reshape(*lead, *part.shape[-2:])


def _prepare(query, key, value, mask, bias, is_causal, query_offset, scale, softcap):
    """Check the arguments and find out which shortcuts are safe."""
    given = query, key, value = real_array("query", query), real_array("key", key), real_array("value", value)
    shape = _checks.query_key_value(query.shape, key.shape, value.shape)
    dtype = result_dtype(query, key, value)
    wide = compute_dtype(dtype)
    mask, bias, query_offset, scale, softcap = constraints(
        query, shape, mask, bias, is_causal, query_offset, scale, softcap, wide
    )
    q, k, v = (x.astype(wide, copy=False).reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) for x in given)
    score = _longest_row(q) * _longest_row(k) * abs(scale)  # Cauchy-Schwarz: no |q . k| is larger
    added = 0.0 if bias is None else float(np.abs(np.where(bias == -np.inf, 0, bias)).max(initial=0))
    size = _longest_row(v)
    exponent = ((score if softcap is None else min(softcap, score)) + added) * LOG2E
    return Problem(
        q=q, k=k, v=v, mask=None if mask is None else Spread(mask, shape), bias=None if bias is None else Spread(bias, shape),
        bias_masks=bias is not None and bool((bias == -np.inf).any()), is_causal=bool(is_causal), query_offset=query_offset,
        scale=scale, softcap=softcap, given=given, output_shape=(*shape[:-1], v.shape[-1]), dtype=dtype,
        # Below 1e29 every score stands well above FAR_BELOW. NaN fails every comparison, so it is not tame.
        tame=score < 1e29 and added < 1e29 and size < 1e29 and 0 not in shape,
        # Exponentials within 2 ** +-60, times values within 2 ** +-40, times up to 2 ** 27 keys: far from overflow at
        # 2 ** 128 and from what is lost below 2 ** -126.
        bounded=exponent < 60 and (size == 0 or 2.0**-40 < size < 2.0**40),
    )  # fmt: skip


def _longest_row(x):
    """The largest length of a row; inf where it overflows, NaN where x holds NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        return math.sqrt(float(np.einsum("nld,nld->nl", x, x).max(initial=0)))


def _by_query_rows(problem):
    """The readable attention on a tile of queries at a time: linear in L too, and careful with NaN, inf and empty axes."""
    query, key, value = problem.given
    output = np.empty(problem.output_shape, problem.dtype)
    for rows, options in _query_tiles(problem):
        output[..., rows, :] = scaled_dot_product_attention(query[..., rows, :], key, value, **options)
    return output


def _query_tiles(problem):
    """Slices of queries, with the options that the readable functions need for them."""
    L, lead = problem.output_shape[-2], problem.output_shape[:-2]
    for first in range(0, L, 128):
        rows = slice(first, min(L, first + 128))
        options = {"scale": problem.scale, "softcap": problem.softcap, "is_causal": problem.is_causal}
        options["query_offset"] = problem.query_offset + first if problem.is_causal else 0
        for name in ("mask", "bias"):
            spread = getattr(problem, name)
            if spread is not None:
                options[name] = spread.rows(rows, lead)
        yield rows, options


def _forward(problem, output, log_sums=None):
    """Fill output (N, L, D_v) and, for the backward pass, the log2 of the sums of exponentials (N, L)."""
    N, L, _ = problem.q.shape
    S = problem.k.shape[1]
    rows, columns = min(128 if problem.is_causal else 256, L), min(512, S)
    heads = 1  # at a time; of short sequences several, if each has a key head of its own
    if problem.group == 1:
        heads = max(1, min(-(-N // _workers.available_cores()), TILE // (rows * columns)))
    starts = range(0, N, heads)

    def work(share, shares):
        room = np.empty(heads * rows * columns, problem.q.dtype)
        for a in starts[share::shares]:
            _attend_heads(problem, slice(a, min(a + heads, N)), rows, columns, room, output, log_sums)

    _workers.run(work, len(starts), parallel=L * S >= WORTH_A_THREAD)


def _attend_heads(problem, heads, rows, columns, room, output, log_sums):
    """All queries of a few heads."""
    key_heads = slice(heads.start // problem.group, (heads.stop - 1) // problem.group + 1)
    q, k, v = problem.q[heads] * problem.query_factor, problem.k[key_heads], problem.v[key_heads]
    n, L, S = len(q), q.shape[1], k.shape[1]
    upright = k.swapaxes(1, 2)  # (n, D, S)
    packed = [np.ascontiguousarray(upright[:, :, j : j + columns]) for j in range(0, S, columns)]
    ones = np.ones(columns, q.dtype)
    for first in range(0, L, rows):
        some = slice(first, min(first + rows, L))
        acc = output[heads, some]  # (n, rows, D_v): the weighted sum of the values so far
        acc[...] = 0
        total = np.zeros(acc.shape[:-1], q.dtype)  # (n, rows): the sum of the exponentials so far
        largest = None if problem.bounded else np.full((*total.shape, 1), FAR_BELOW, q.dtype)
        for keys in problem.key_tiles(some, columns):
            keep = problem.keep(heads, some, keys)
            if keep is not None and not keep.any():
                continue
            j, width = keys.start % columns, keys.stop - keys.start
            p = room[: n * total.shape[1] * width].reshape(n, total.shape[1], width)
            problem.fill_scores(p, q[:, some], packed[keys.start // columns][:, :, j : j + width], heads, some, keys)
            if largest is not None:
                largest = _shift(p, keep, largest, acc, total)
            np.exp2(p, out=p)
            if keep is not None:
                p *= keep  # all is finite here, so times 0 is 0
            total += p @ ones[:width]  # a product is faster than a sum along rows
            acc += p @ v[:, keys]
        if log_sums is not None:
            with np.errstate(divide="ignore"):
                log_sums[heads, some] = np.log2(total) + (0 if largest is None else largest[..., 0])
        acc /= np.where(total == 0, 1, total)[..., None]  # a query that saw nothing keeps its zeros


def _shift(p, keep, largest, acc, total):
    """The online softmax: subtract the largest score so far, and rescale what was summed up under a smaller one."""
    if keep is not None:
        np.copyto(p, FAR_BELOW, where=keep == 0)
    new = np.maximum(largest, p.max(-1, keepdims=True))
    p -= new
    np.maximum(p, -126, out=p)  # 2 ** -126 is as good as 0 beside 1, and exp2 is slow where its result is tinier
    shrink = np.exp2(np.maximum(largest - new, -126))
    total *= shrink[..., 0]
    acc *= shrink
    return new


def flash_attention_backward(
    grad_output, query, key, value, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None
):
    """`scaled_dot_product_attention_backward` by tiles: the same arguments, the same result, memory linear in L and S.

    Shapes: grad_output (..., H, L, D_v); the rest as there -> grad_query, grad_key, grad_value. It runs the forward pass again,
    keeps one number per query, the log of its sum of exponentials, and computes the weights of each tile from it.
    Errors: as there.
    Source: Dao et al. 2022, section 3.1 and appendix B.

    >>> x = np.eye(3)
    >>> a, b = flash_attention_backward(x, x, x, x), scaled_dot_product_attention_backward(x, x, x, x)
    >>> all(np.allclose(s, t) for s, t in zip(a, b))
    True
    """
    problem = _prepare(query, key, value, mask, bias, is_causal, query_offset, scale, softcap)
    grad_output = real_array("grad_output", grad_output)
    if grad_output.shape != problem.output_shape:
        raise ValueError(
            f"grad_output must have the shape of the output, {problem.output_shape}, got {grad_output.shape}"
        )
    if not problem.tame or not np.isfinite(grad_output).all():
        return _backward_by_query_rows(problem, grad_output)
    q, k, v = problem.q, problem.k, problem.v
    grad = grad_output.astype(q.dtype, copy=False).reshape(len(q), *grad_output.shape[-2:])
    output, log_sums = np.empty(grad.shape, q.dtype), np.empty(q.shape[:-1], q.dtype)
    _forward(problem, output, log_sums)
    log_sums[log_sums == -np.inf] = 0  # a query that saw nothing; all its pairs are masked
    row_sums = np.einsum("nld,nld->nl", grad, output)  # (N, L): the mean gradient of a row under its weights
    grads = np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)

    def work(share, shares):
        for head in range(share, len(k), shares):
            _head_backward(problem, head, grad, log_sums, row_sums, *grads)

    _workers.run(work, len(k), parallel=q.shape[1] * k.shape[1] >= WORTH_A_THREAD)
    return tuple(
        g.reshape(x.shape).astype(problem.dtype, copy=False) for g, x in zip(grads, problem.given, strict=True)
    )


def _head_backward(problem, key_head, grad, log_sums, row_sums, grad_q, grad_k, grad_v):
    """The gradients of one key head and of the query heads that read it, tile by tile.

    What is subtracted from a whole row, the log of its sum and its mean gradient, comes out of the products themselves: as one
    more column of the queries and of the gradients, which meets a row of ones.
    """
    k, v, dtype = problem.k[key_head], problem.v[key_head], problem.q.dtype
    L, S, rows, columns = problem.q.shape[1], len(k), 256, 512
    scale = dtype.type(problem.scale)
    scaled_k = k * scale
    room = np.empty(rows * columns, dtype), np.empty(rows * columns, dtype)
    for head in range(key_head * problem.group, (key_head + 1) * problem.group):
        capped = problem.softcap is not None  # then the log of the sum must not go through tanh
        q = np.concatenate(
            [problem.q[head] * problem.query_factor, np.where(capped, 0, -log_sums[head, :, None])], 1, dtype=dtype
        )
        g = np.concatenate([grad[head], -row_sums[head, :, None]], 1)  # (L, D_v + 1)
        scaled_q = problem.q[head] * scale
        for j in range(0, S, columns):
            packed_k, packed_v = (
                np.concatenate([x[j : j + columns].T, np.ones((1, min(columns, S - j)), dtype)]) for x in (k, v)
            )
            for i in range(0, L, rows):
                some, heads = slice(i, min(i + rows, L)), slice(head, head + 1)
                keys = slice(j, min(j + columns, S, problem.keys_seen(some)))
                if keys.stop <= j:
                    continue
                keep = problem.keep(heads, some, keys)
                if keep is not None and not keep.any():
                    continue
                shape = (some.stop - i, keys.stop - j)
                p, grad_p = (x[: shape[0] * shape[1]].reshape(shape) for x in room)
                problem.fill_scores(p[None], q[None, some], packed_k[None, :, : shape[1]], heads, some, keys)
                if capped:
                    p -= log_sums[head, some, None]
                if keep is not None:
                    np.copyto(p[None], 0, where=keep == 0)  # whatever stands there, its exponential must not overflow
                np.exp2(p, out=p)  # (rows, columns): the weights
                if keep is not None:
                    p[None] *= keep
                grad_v[key_head, keys] += p.T @ g[some, :-1]
                np.matmul(g[some], packed_v[:, : shape[1]], out=grad_p)
                grad_p *= p  # (rows, columns): the gradient of the scores
                if capped:  # the slope of c tanh(x / c), computed again: the capped scores have become weights
                    grad_p *= 1 - np.tanh(q[some, :-1] @ packed_k[:-1, : shape[1]] / problem.softcap) ** 2
                grad_q[head, some] += grad_p @ scaled_k[keys]
                grad_k[key_head, keys] += grad_p.T @ scaled_q[some]


def _backward_by_query_rows(problem, grad_output):
    """The readable gradients, a tile of queries at a time."""
    wide = problem.q.dtype
    query, key, value = (x.astype(wide, copy=False) for x in problem.given)
    grad_query, grad_key, grad_value = (np.zeros(x.shape, wide) for x in problem.given)
    for rows, options in _query_tiles(problem):
        grad_query[..., rows, :], more_key, more_value = scaled_dot_product_attention_backward(
            grad_output[..., rows, :], query[..., rows, :], key, value, **options
        )
        grad_key += more_key
        grad_value += more_value
    return tuple(grad.astype(problem.dtype, copy=False) for grad in (grad_query, grad_key, grad_value))
