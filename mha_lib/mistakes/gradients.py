"""What goes wrong with the backward pass (chapter 11)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import all_masks

mistake = of_chapter("11_gradients")


def _backward(grad_output, query, key, value, mask, is_causal, *, through_softmax=None, scaled=True, transposed=True):
    """The gradients of attention from their parts, for the mistakes that change one of them."""
    allowed = all_masks(query, key, mask, is_causal)
    weights = right.softmax(right.attention_scores(query, key, mask=allowed))  # (..., L, S)
    turned = weights.swapaxes(-1, -2) if transposed else weights
    grad_weights = grad_output @ np.swapaxes(value, -1, -2)
    if through_softmax is None:
        grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdims=True))
    else:
        grad_scores = through_softmax(weights, grad_weights)
    scale = np.shape(query)[-1] ** -0.5 if scaled else 1
    return scale * grad_scores @ key, scale * grad_scores.swapaxes(-1, -2) @ query, turned @ grad_output


@mistake(
    right.scaled_dot_product_attention_backward,
    "The row sum of the softmax is missing: each score is pushed by its own gain, not by its gain over the row's mean.",
)
def row_sum_forgotten(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, through_softmax=lambda a, g: a * g)


@mistake(
    right.scaled_dot_product_attention_backward,
    "Only the diagonal of the softmax's slope is used, a (1 - a): a score also moves the other weights of its row.",
)
def softmax_slope_diagonal(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, through_softmax=lambda a, g: a * (1 - a) * g)


@mistake(
    right.scaled_dot_product_attention_backward,
    "The scale is missing in the gradients of query and key: what multiplies the scores multiplies their gradients too.",
)
def scale_forgotten_backwards(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, scaled=False)


@mistake(
    right.scaled_dot_product_attention_backward,
    "The weights are not transposed in the gradient of the values: each value collects from the queries that read it.",
)
def weights_not_transposed_backwards(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, transposed=False)


@mistake(
    right.scaled_dot_product_attention_backward,
    "The mask is missing in the backward pass: gradients reach keys and values that the query never saw.",
)
def mask_forgotten_backwards(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, None, False)
