"""Scaled dot-product attention: softmax(Q K^T / sqrt(D)) V, with everything that may restrict it."""

import numpy as np

from .. import _checks
from ._arrays import compute_dtype, real_array, result_dtype
from .heads import repeat_heads
from .scores import masked_scores
from .softmax import softmax


def scaled_dot_product_attention(
    query, key, value, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None,
    return_weights=False,
):  # fmt: skip
    """Every query takes a weighted mean of the values; the weights are the softmax of its scaled scores.

    Shapes: query (..., H, L, D), key (..., H_kv, S, D), value (..., H_kv, S, D_v) -> output (..., H, L, D_v), and weights
    (..., H, L, S) with `return_weights=True`. 2-D inputs work too. Fewer key heads than query heads are grouped queries:
    query head i reads key head i // (H / H_kv). The other leading axes are equal.

    mask: boolean, True = may attend. bias: floats added to the scaled scores; -inf there counts as masked.
    Each broadcasts to (..., H, L, S). is_causal: query i, at position `query_offset` + i, sees the keys up to that position
    (offset 0 aligns top left, S - L bottom right). All constraints given hold together.
    scale: 1 / sqrt(D) if None; 0 and negative numbers are used as given. softcap: None or c > 0, c * tanh(scores / c).
    Order: raw scores * scale, softcap, bias, masks, softmax.

    A query with nothing to attend to gets zeros. NaN in an attended input shows in the output; what stands behind a mask,
    NaN and inf included, never reaches it. Inputs are never written to. The dtype is NumPy's promotion of query, key and
    value (integers to float64); float16 is computed in float32.
    Errors: ValueError or TypeError that names the argument, what it got and what it wants.
    Source: Vaswani et al. 2017, section 3.2.1; grouped queries: Ainslie et al. 2023.

    >>> output, weights = scaled_dot_product_attention(
    ...     [[1.0, 0.0]], [[4.0, 0.0], [4.0, 0.0]], [[10.0], [20.0]], return_weights=True)
    >>> output, weights
    (array([[15.]]), array([[0.5, 0.5]]))
    """
    query, key, value = real_array("query", query), real_array("key", key), real_array("value", value)
    shape = _checks.query_key_value(query.shape, key.shape, value.shape)
    dtype = result_dtype(query, key, value)
    wide = compute_dtype(dtype)
    query, key, value = (x.astype(wide, copy=False) for x in (query, key, value))
    scores, allowed = masked_scores(query, key, mask, bias, is_causal, query_offset, scale, softcap)  # (..., H, L, S)
    weights = softmax(scores)  # (..., H, L, S)
    if allowed is not None:
        np.copyto(weights, 0, where=~allowed)  # a NaN among the attended scores stays with the attended keys
    output = weigh(weights, repeat_heads(value, shape), allowed)  # (..., H, L, D_v)
    output = output.astype(dtype, copy=False)
    return (output, weights.astype(dtype, copy=False)) if return_weights else output


def weigh(weights, value, allowed=None):
    """weights @ value, in which a value that a query may not see is left out, not multiplied by 0: 0 * NaN is NaN.

    Shapes: weights (..., H, L, S), value (..., H, S, D_v), allowed broadcasts to weights -> (..., H, L, D_v).
    """
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(value)
        if allowed is None or finite.all():
            return weights @ value
        output = weights @ np.where(finite, value, 0)
        seen = np.broadcast_to(allowed, weights.shape).astype(weights.dtype)  # (..., H, L, S)
        for strange, where in ((np.nan, np.isnan(value)), (np.inf, value == np.inf), (-np.inf, value == -np.inf)):
            output[seen @ where > 0] += strange
        return output
