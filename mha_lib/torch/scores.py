"""How well each query fits each key, up to the softmax."""

import torch

from .. import _checks
from ._tensors import additive_bias, all_finite, boolean_mask, compute_dtype, may_look, same_kind, without_autocast
from .heads import repeat_heads
from .masks import causal_mask


def allowed_pairs(shape, mask, bias, is_causal, query_offset, device):
    """All constraints together, as one boolean tensor that broadcasts to `shape` = (..., H, L, S); None without any."""
    allowed = None
    if is_causal:
        allowed = causal_mask(*shape[-2:], query_offset, device=device)  # (L, S)
    if mask is not None:
        allowed = mask if allowed is None else allowed & mask
    if bias is not None:
        allowed = bias != -torch.inf if allowed is None else allowed & (bias != -torch.inf)
    return allowed


def masked_scores(query, key, bias, allowed, scale, softcap):
    """The scores (..., H, L, S), at least in float32, with -inf where not allowed; all arguments are checked already."""
    dtype = compute_dtype(query.dtype)
    query, key = query.to(dtype) * scale, key.to(dtype)
    scores = finite_product(query, key) if allowed is not None and may_look(query) else query @ key.mT  # (..., H, L, S)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if bias is not None:
        scores = scores + bias
    return scores if allowed is None else scores.masked_fill(~allowed, -torch.inf)


def finite_product(query, key):
    """query @ key.mT, in which a NaN or inf spoils its own pairs only, in the gradients too (0 * NaN is NaN)."""
    if all_finite(query, key):
        return query @ key.mT
    strange = ~query.isfinite().all(-1)[..., :, None] | ~key.isfinite().all(-1)[..., None, :]  # (..., H, L, S)
    clean_query, clean_key = (x.masked_fill(~x.isfinite(), 0) for x in (query, key))
    return torch.where(strange, (query @ key.mT).detach(), clean_query @ clean_key.mT)


def attention_scores(query, key, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None):
    """The scaled scores that the softmax sees: query times key, and -inf where a query may not look.

    Shapes: query (..., H, L, D), key (..., H_kv, S, D), mask and bias broadcast to (..., H, L, S) -> (..., H, L, S).
    Order: raw scores times scale, then softcap * tanh(. / softcap), then bias, then masks.
    The arguments mean what they mean in `scaled_dot_product_attention`. Errors: as there.
    The result is float32 where the inputs are float16 or bfloat16: a score may exceed what float16 holds.
    Source: Vaswani et al. 2017, section 3.2.1.

    >>> attention_scores(torch.tensor([[2.0, 0.0, 0.0, 0.0]]), torch.tensor([[3.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]))
    tensor([[3., 0.]])
    """
    query, key = same_kind(query=query, key=key)
    shape = _checks.query_key(query.shape, key.shape)
    bias, allowed, scale, softcap = constraints(
        query, shape, mask, bias, is_causal, query_offset, scale, softcap, compute_dtype(query.dtype)
    )
    with without_autocast(query.device):
        return masked_scores(query, repeat_heads(key, shape), bias, allowed, scale, softcap)


def constraints(query, shape, mask, bias, is_causal, query_offset, scale, softcap, dtype):
    """Check all arguments but the tensors; return bias, the pairs that all constraints allow, scale and softcap."""
    mask, bias = boolean_mask(mask, query.device), additive_bias(bias, dtype, query.device)
    for name, given in (("mask", mask), ("bias", bias)):
        if given is not None:
            _checks.broadcasts(name, given.shape, shape)
    query_offset = _checks.causal_offset(is_causal, query_offset)
    allowed = allowed_pairs(shape, mask, bias, is_causal, query_offset, query.device)
    return bias, allowed, _checks.default_scale(scale, query.shape[-1]), _checks.positive_softcap(softcap)
