"""Scaled dot-product attention: softmax(Q K^T / sqrt(D)) V, on PyTorch's fused kernels where they can do it."""

import torch
import torch.nn.functional as F

from .. import _checks
from ._tensors import all_finite, compute_dtype, kernels_are_safe, may_look, same_kind, without_autocast
from .heads import repeat_heads
from .masks import causal_mask
from .scores import constraints, masked_scores
from .softmax import softmax


def scaled_dot_product_attention(
    query, key, value, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None,
    return_weights=False, dropout_p=0.0,
):  # fmt: skip
    """Every query takes a weighted mean of the values; the weights are the softmax of its scaled scores.

    Shapes: query (..., H, L, D), key (..., H_kv, S, D), value (..., H_kv, S, D_v) -> output (..., H, L, D_v), and weights
    (..., H, L, S) with `return_weights=True`. 2-D inputs work too. Fewer key heads than query heads are grouped queries:
    query head i reads key head i // (H / H_kv). The other leading axes, dtype and device are equal.

    mask: boolean, True = may attend. bias: numbers added to the scaled scores; -inf there counts as masked.
    Each broadcasts to (..., H, L, S). is_causal: query i, at position `query_offset` + i, sees the keys up to that position
    (offset 0 aligns top left, S - L bottom right). All constraints given hold together.
    scale: 1 / sqrt(D) if None; 0 and negative numbers are used as given. softcap: None or c > 0, c * tanh(scores / c).
    Order: raw scores * scale, softcap, bias, masks, softmax, dropout. dropout_p is applied whenever it is positive, to the
    normalised weights; the weights returned are those before it.

    Without weights and softcap this calls `torch.nn.functional.scaled_dot_product_attention` and so its fused kernels.
    A query with nothing to attend to gets zeros and gives no gradient. NaN in an attended input shows in the output. What
    stands behind a mask, NaN and inf included, never reaches output or gradients on the CPU; on CUDA and under
    `torch.compile` and `torch.func.vmap`, where looking would synchronise or fail, values must be finite.
    float16 and bfloat16 accumulate in float32. Inputs are never written to.
    Errors: ValueError or TypeError that names the argument, what it got and what it wants.
    Source: Vaswani et al. 2017, section 3.2.1; grouped queries: Ainslie et al. 2023; the kernels: Dao et al. 2022.

    >>> q, k, v = torch.tensor([[1.0, 0.0]]), torch.tensor([[4.0, 0.0], [4.0, 0.0]]), torch.tensor([[10.0], [20.0]])
    >>> scaled_dot_product_attention(q, k, v, return_weights=True)
    (tensor([[15.]]), tensor([[0.5000, 0.5000]]))
    """
    query, key, value = same_kind(query=query, key=key, value=value)
    shape = _checks.query_key_value(query.shape, key.shape, value.shape)
    dropout_p = _checks.probability("dropout_p", dropout_p)
    query_offset = _checks.causal_offset(is_causal, query_offset)
    fused = not return_weights and softcap is None and all((*shape, query.shape[-1]))  # no axis is empty
    if isinstance(bias, torch.Tensor) and bias.dtype != query.dtype and query.dtype != compute_dtype(query.dtype):
        fused = False  # a kernel in half precision would round the bias
    given_scale = scale  # left to the kernel where it is None: a traced size has no number yet
    # A triangle that the kernels know needs no mask of ours; but they scale after masking, and 0 * -inf is NaN.
    triangle = (
        fused
        and mask is None
        and bias is None
        and is_causal
        and not query_offset
        and (scale is None or _checks.number("scale", scale) > 1e-30)
    )
    bias, allowed, scale, softcap = constraints(
        query, shape, mask, bias, is_causal and not triangle, query_offset, scale, softcap,
        query.dtype if fused else compute_dtype(query.dtype),
    )  # fmt: skip
    with without_autocast(query.device):
        if fused and (not may_look(query) or kernels_are_safe(query, key, value, scale)):
            return _fused(query, key, value, bias, allowed, triangle, given_scale, dropout_p)
        if triangle:
            allowed = causal_mask(*shape[-2:], device=query.device)
        return _eager(query, key, value, shape, bias, allowed, scale, softcap, dropout_p, return_weights)


def _fused(query, key, value, bias, allowed, triangle, scale, dropout_p):
    """SDPA with one attn_mask made of all constraints. A row with nothing allowed may see all, and is then set to 0:
    so no kernel divides 0 by 0, forward or backward."""
    attn_mask, empty = allowed, None
    if allowed is not None:
        empty = ~allowed.any(-1, keepdim=True)  # (..., L, 1)
        attn_mask = allowed | empty
        if bias is not None:
            attn_mask = bias.masked_fill(~allowed, -torch.inf).masked_fill(empty, 0)
    lead, grouped = query.shape[:-2], False
    if query.ndim > 2 and query.shape[-3] != key.shape[-3]:  # a branch, since a traced comparison is no bool yet
        grouped = True
    query, key, value = (_four_axes(x) for x in (query, key, value))
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=_mask_like(attn_mask, lead, key.shape[-2]), dropout_p=dropout_p, is_causal=triangle,
        scale=scale, enable_gqa=grouped,
    )  # fmt: skip
    output = output.reshape(*lead, *output.shape[-2:])  # (..., H, L, D_v)
    return output if empty is None else output.masked_fill(empty, 0)


def _four_axes(x):
    """(..., H, L, D) as (B, H, L, D), which the kernels want."""
    if x.ndim == 4:
        return x
    return x[(None,) * (4 - x.ndim)] if x.ndim < 4 else x.flatten(0, -4)


def _mask_like(attn_mask, lead, S):
    """A mask that broadcasts to (*lead, L, S) as one that broadcasts to (B, H, L, S); some kernels want its last axis whole."""
    if attn_mask is None:
        return None
    attn_mask = attn_mask.expand(*attn_mask.shape[:-1], S)
    if attn_mask.ndim > 3 and len(lead) > 2:  # leading axes that are flattened with those of query
        attn_mask = attn_mask.expand(*lead[:-1], *attn_mask.shape[-3:])
    return _four_axes(attn_mask)


def _eager(query, key, value, shape, bias, allowed, scale, softcap, dropout_p, return_weights):
    """The same written out: scores, softmax, weighted sum."""
    key, value = repeat_heads(key, shape), repeat_heads(value, shape)  # (..., H, S, .)
    weights = softmax(masked_scores(query, key, bias, allowed, scale, softcap))  # (..., H, L, S)
    if allowed is not None:
        weights = weights.masked_fill(~allowed, 0)  # a NaN among the attended scores stays with the attended keys
    dropped = F.dropout(weights, dropout_p) if dropout_p else weights
    output = weigh(dropped, value.to(weights.dtype), allowed).to(query.dtype)  # (..., H, L, D_v)
    return (output, weights.to(query.dtype)) if return_weights else output


def weigh(weights, value, allowed=None):
    """weights @ value, in which a value that a query may not see is left out, not multiplied by 0: 0 * NaN is NaN.

    Shapes: weights (..., H, L, S), value (..., H, S, D_v), allowed broadcasts to weights -> (..., H, L, D_v).
    """
    if allowed is None or not may_look(value) or all_finite(value):
        return weights @ value
    output = weights @ value.masked_fill(~value.isfinite(), 0)
    seen = allowed.expand(weights.shape).to(weights.dtype)  # (..., H, L, S)
    for strange, where in (
        (torch.nan, value.isnan()),
        (torch.inf, value == torch.inf),
        (-torch.inf, value == -torch.inf),
    ):
        hit = seen @ where.to(seen.dtype) > 0  # (..., H, L, D_v)
        output = torch.where(hit, output + strange, output)
    return output
