"""How well each query fits each key, up to the softmax."""

import numpy as np

from .. import _checks
from ._arrays import additive_bias, boolean_mask, compute_dtype, real_array, result_dtype
from .heads import repeat_heads
from .masks import causal_mask


def allowed_pairs(shape, mask=None, bias=None, is_causal=False, query_offset=0):
    """All constraints together, as one boolean array that broadcasts to `shape` = (..., H, L, S); None without any."""
    allowed = None
    if is_causal:
        allowed = causal_mask(*shape[-2:], query_offset)  # (L, S)
    if mask is not None:
        allowed = mask if allowed is None else allowed & mask
    if bias is not None and (bias == -np.inf).any():
        allowed = bias != -np.inf if allowed is None else allowed & (bias != -np.inf)
    return allowed


def constraints(query, shape, mask, bias, is_causal, query_offset, scale, softcap, dtype):
    """Check all arguments but the three arrays; return mask, bias, query_offset, scale and softcap."""
    mask, bias = boolean_mask(mask), additive_bias(bias, dtype)
    for name, array in (("mask", mask), ("bias", bias)):
        if array is not None:
            _checks.broadcasts(name, array.shape, shape)
    query_offset = _checks.causal_offset(is_causal, query_offset)
    return mask, bias, query_offset, _checks.default_scale(scale, query.shape[-1]), _checks.positive_softcap(softcap)


def masked_scores(query, key, mask, bias, is_causal, query_offset, scale, softcap):
    """The scores (..., H, L, S) that the softmax sees, which pairs are allowed (None: all), and scale and softcap as used."""
    query, key = real_array("query", query), real_array("key", key)
    shape = _checks.query_key(query.shape, key.shape)
    dtype = compute_dtype(result_dtype(query, key))
    mask, bias, query_offset, scale, softcap = constraints(
        query, shape, mask, bias, is_causal, query_offset, scale, softcap, dtype
    )
    query, key = query.astype(dtype, copy=False), key.astype(dtype, copy=False)
    key = repeat_heads(key, shape)  # (..., H, S, D)
    with np.errstate(invalid="ignore", over="ignore"):  # what stands behind a mask may be anything
        scores = query * dtype.type(scale) @ key.swapaxes(-1, -2)  # (..., H, L, S)
        if softcap is not None:
            scores = softcap * np.tanh(scores / softcap)
        if bias is not None:
            scores += bias
    allowed = allowed_pairs(shape, mask, bias, is_causal, query_offset)
    if allowed is not None:
        np.copyto(scores, -np.inf, where=~allowed)
    return scores, allowed, scale, softcap


def attention_scores(query, key, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None):
    """The scaled scores that the softmax sees: query times key, and -inf where a query may not look.

    Shapes: query (..., H, L, D), key (..., H_kv, S, D), mask and bias broadcast to (..., H, L, S) -> (..., H, L, S).
    Order: raw scores times scale, then softcap * tanh(. / softcap), then bias, then masks.
    The arguments mean what they mean in `scaled_dot_product_attention`. Errors: as there.
    The result is float32 where the inputs are float16: a score may exceed what float16 holds.
    Source: Vaswani et al. 2017, section 3.2.1.

    >>> attention_scores([[2.0, 0.0, 0.0, 0.0]], [[3.0, 1.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    array([[3., 0.]])
    """
    return masked_scores(query, key, mask, bias, is_causal, query_offset, scale, softcap)[0]
