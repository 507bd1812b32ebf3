"""Scaled dot-product attention: softmax(Q K^T / sqrt(D)) V, with everything that may restrict it."""

import numpy as np

from .. import _checks
from ._arrays import compute_dtype, real_array, result_dtype
from .heads import repeat_heads
from .scores import attention_scores, masked_scores
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
    query, key, value, weights, allowed, dtype, _, _ = _attend(
        query, key, value, mask, bias, is_causal, query_offset, scale, softcap
    )
    output = weigh(weights, repeat_heads(value, weights.shape), allowed)  # (..., H, L, D_v)
    output = output.astype(dtype, copy=False)
    return (output, weights.astype(dtype, copy=False)) if return_weights else output


def scaled_dot_product_attention_backward(
    grad_output, query, key, value, *, mask=None, bias=None, is_causal=False, query_offset=0, scale=None, softcap=None
):
    """The gradients of `scaled_dot_product_attention` with respect to query, key and value.

    Shapes: grad_output (..., H, L, D_v), the gradient of a loss with respect to the output; the rest as there -> grad_query,
    grad_key, grad_value, each of the shape of its input. Grouped key heads collect from all their query heads.
    Nothing flows through what is masked. There is no gradient for `bias`. The weights are computed again, not stored.
    Errors: as there; ValueError where grad_output does not have the shape of the output.
    Source: the chain rule; the form with row sums is Dao et al. 2022, appendix B.2.

    >>> grads = scaled_dot_product_attention_backward([[1.0]], [[1.0]], [[2.0], [2.0]], [[0.0], [4.0]])
    >>> [grad.tolist() for grad in grads]
    [[[0.0]], [[-1.0], [1.0]], [[0.5], [0.5]]]
    """
    query, key, value, weights, allowed, dtype, scale, softcap = _attend(
        query, key, value, mask, bias, is_causal, query_offset, scale, softcap
    )
    shape = (*weights.shape[:-1], value.shape[-1])
    grad_output = real_array("grad_output", grad_output)
    if grad_output.shape != shape:
        raise ValueError(f"grad_output must have the shape of the output, {shape}, got {grad_output.shape}")
    grad_output = grad_output.astype(weights.dtype, copy=False)
    wide_key, wide_value = (repeat_heads(x, weights.shape) for x in (key, value))
    allowed_back = None if allowed is None else np.broadcast_to(allowed, weights.shape).swapaxes(-1, -2)

    grad_value = weigh(weights.swapaxes(-1, -2), grad_output, allowed_back)  # (..., H, S, D_v)
    with np.errstate(invalid="ignore", over="ignore"):
        grad_weights = grad_output @ wide_value.swapaxes(-1, -2)  # (..., H, L, S)
        if allowed is not None:
            np.copyto(grad_weights, 0, where=~allowed)
        # the softmax: each row's gradient less its mean under the weights
        grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdims=True))  # (..., H, L, S)
        if softcap is not None:
            capped = attention_scores(query, key, scale=scale, softcap=softcap)  # before bias and masks
            grad_scores *= 1 - (capped / softcap) ** 2  # the slope of c tanh(x / c)
        if allowed is not None:
            np.copyto(grad_scores, 0, where=~allowed)
    grad_query = scale * weigh(grad_scores, wide_key, allowed)  # (..., H, L, D)
    grad_key = scale * weigh(grad_scores.swapaxes(-1, -2), query, allowed_back)  # (..., H, S, D)
    grad_key, grad_value = _collect_heads(grad_key, key.shape), _collect_heads(grad_value, value.shape)
    return tuple(grad.astype(dtype, copy=False) for grad in (grad_query, grad_key, grad_value))


def _attend(query, key, value, mask, bias, is_causal, query_offset, scale, softcap):
    """The inputs in the dtype to compute in, the weights, which pairs are allowed (None: all), the result's dtype, scale and softcap."""
    query, key, value = real_array("query", query), real_array("key", key), real_array("value", value)
    _checks.query_key_value(query.shape, key.shape, value.shape)
    dtype = result_dtype(query, key, value)
    query, key, value = (x.astype(compute_dtype(dtype), copy=False) for x in (query, key, value))
    scores, allowed, scale, softcap = masked_scores(query, key, mask, bias, is_causal, query_offset, scale, softcap)
    weights = softmax(scores)  # (..., H, L, S)
    if allowed is not None:
        np.copyto(weights, 0, where=~allowed)  # a NaN among the attended scores stays with the attended keys
    return query, key, value, weights, allowed, dtype, scale, softcap


def _collect_heads(grad, shape):
    """Add up the gradients of the query heads that share a key head: (..., H, S, D) -> shape = (..., H_kv, S, D)."""
    if grad.shape == shape:
        return grad
    group = grad.shape[-3] // shape[-3]
    return grad.reshape(*shape[:-2], group, *shape[-2:]).sum(-3)  # (..., H_kv, H / H_kv, S, D) -> shape


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
