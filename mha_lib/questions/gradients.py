"""11_gradients: back through a softmax, a head with a mask, and the packed heads of a layer."""

import numpy as np

from ..mistakes import MISTAKES
from ..mistakes._parts import softmax_without_guard
from ..numpy import MultiHeadAttention, causal_mask, merge_heads, softmax, split_heads
from ..numpy import scaled_dot_product_attention_backward as backward
from ._question import Exercise, Part, Question, call, untouched, value
from .attention import WITHOUT_MAXIMUM, without_maximum

# ------------------------------------------------------------------------------------------------------------------- q1, by hand
_WEIGHTS, _GAINS = np.array([0.5, 0.25, 0.25]), np.array([8.0, 4.0, 0.0])


# ------------------------------------------------------------------------------------------------------------------- q2, softmax
def softmax_backward(weights, grad):
    """The gradient by the scores, from the weights and the gradient by the weights: (..., L, S) each -> (..., L, S)."""
    return weights * (grad - (weights * grad).sum(-1, keepdims=True))


def _row_sum_forgotten(weights, grad):
    return weights * grad


def _diagonal(weights, grad):
    return weights * (1 - weights) * grad


def _mean_subtracted_last(weights, grad):
    return weights * grad - (weights * grad).sum(-1, keepdims=True)


def _pair(rng, *shape, zeros=False):
    """Weights and a gradient for them; with `zeros`, some weights are 0, and a whole row is."""
    scores = 2 * rng.standard_normal(shape)
    if zeros:
        scores[..., 0] = -np.inf
        scores[..., -1, :] = -np.inf
    return call(softmax(scores), 3 * rng.standard_normal(shape) + 1)


def _matrices(rng):
    """One query, more keys than queries, more queries than keys, and L = S, where a wrong axis changes no shape."""
    return [_pair(rng, *shape) for shape in ((1, 2), (2, 3), (4, 2), (3, 3))]


def _in_front(rng):
    return [_pair(rng, *shape) for shape in ((2, 2, 2), (2, 3, 4), (2, 3, 4, 5))]


def _with_zeros(rng):
    return [_pair(rng, *shape, zeros=True) for shape in ((2, 2), (3, 4), (2, 3, 3))]


# ----------------------------------------------------------------------------------------------------------------------- q3, head
def attention_backward(grad_output, query, key, value, mask=None):
    """The gradients of query, key and value."""
    return backward(grad_output, query, key, value, mask=mask)


def _from_parts(
    *, attend=softmax, slope=softmax_backward, scale=None, forward=None, hide=True, late=False, fill=-np.inf,
    end=lambda *grads: grads,
):  # fmt: skip
    """The same from its parts, for the slips that change one of them."""

    def function(grad_output, query, key, value, mask=None):
        f = query.shape[-1] ** -0.5
        scores = (f if forward is None else forward) * query @ key.swapaxes(-1, -2)  # (..., L, S)
        if mask is not None and hide and not late:
            scores = np.where(mask, scores, fill)
        weights = attend(scores)
        if mask is not None and late:
            weights = weights * mask
        grad = slope(weights, grad_output @ value.swapaxes(-1, -2))  # (..., L, S)
        back = f if scale is None else scale(query.shape[-1])
        grads = back * grad @ key, back * grad.swapaxes(-1, -2) @ query, weights.swapaxes(-1, -2) @ grad_output
        return end(*grads)

    return function


def _key_from_rows(grad_output, query, key, value, mask=None):
    """The gradient of the scores is not transposed for the keys."""
    grad_query, _, grad_value = backward(grad_output, query, key, value, mask=mask)
    weights = softmax(
        np.where(True if mask is None else mask, query @ key.swapaxes(-1, -2) * query.shape[-1] ** -0.5, -np.inf)
    )
    grad_scores = softmax_backward(weights, grad_output @ value.swapaxes(-1, -2))
    return grad_query, query.shape[-1] ** -0.5 * grad_scores @ query, grad_value


def _known(name):
    return lambda grad_output, query, key, value, mask=None: MISTAKES[name](grad_output, query, key, value, mask=mask)


def _head(rng, L, S, D, D_v, *front, mask=None):
    """One call; the queries are large enough for the weights to differ, and no size of four equals another where it can."""
    shapes = (L, D_v), (L, D), (S, D), (S, D_v)
    return call(
        *(1.3 * rng.standard_normal((*front, *shape)) for shape in shapes), **({} if mask is None else {"mask": mask})
    )


def _one_head(rng):
    """Different sizes, and scores that are all near 7000: their exponentials overflow, their differences are as everywhere."""
    far = _head(rng, 3, 4, 2, 3)
    far.args[1][:, 0] = far.args[2][:, 0] = 100
    sizes = ((2, 2, 2, 2), (1, 2, 4, 1), (3, 4, 2, 5), (5, 3, 6, 2), (4, 4, 4, 4))
    return [*(_head(rng, *one) for one in sizes), far]


def _heads(rng):
    return [_head(rng, 3, 3, 2, 2, 2), _head(rng, 2, 4, 3, 5, 3), _head(rng, 3, 3, 4, 2, 2, 2)]


def _some_hidden(rng):
    random = rng.random((2, 4, 5)) > 0.4
    random[..., 2] = True
    return [
        _head(rng, 3, 3, 4, 4, mask=causal_mask(3)),
        _head(rng, 2, 4, 3, 2, mask=np.array([True, True, False, True])),
        _head(rng, 4, 5, 2, 3, 2, mask=random),
    ]


def _nothing_seen(rng):
    empty = causal_mask(4)
    empty[2] = False
    return [
        _head(rng, 2, 2, 3, 2, mask=np.array([[True, False], [False, False]])),
        _head(rng, 4, 4, 2, 3, 2, mask=empty),
    ]


def _unannounced(rng):
    return [_head(rng, 5, 7, 3, 6, 2, 3, mask=rng.random((5, 7)) > 0.3), _head(rng, 1, 1, 1, 1), _head(rng, 6, 6, 5, 5)]


# ---------------------------------------------------------------------------------------------------------------------- q4, layer
def layer_backward(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    """The gradients of x, W_Q, W_K, W_V, W_O of a layer without biases."""
    width = W_Q.shape[1]
    mha = MultiHeadAttention(x.shape[-1], num_heads, head_dim=width // num_heads, bias=False, dtype=np.float64)
    mha.W_Q, mha.W_K, mha.W_V, mha.W_O = W_Q, W_K, W_V, W_O
    mha(x)
    grads = mha.backward(grad_output)
    return tuple(grads[name] for name in ("query", "W_Q", "W_K", "W_V", "W_O"))


def _layer(
    *, head=attention_backward, split=split_heads, merge=merge_heads, heads=None, paths="QKV", into=None, turn=None,
    weight=None,
):  # fmt: skip
    """The same from its parts, for the slips that change one of them."""
    head_of = head

    def over_rows(a, b):
        return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])

    def function(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
        n = heads or num_heads
        q, k, v = (split(x @ W, n) for W in (W_Q, W_K, W_V))
        concat = merge(softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v)
        back = grad_output @ (W_O if turn == "O" else W_O.T)
        grads = [merge(g) for g in head_of(split(back, n), q, k, v)]
        grad_x = sum(
            g @ (W if turn == "QKV" else W.T)
            for letter, g, W in zip("QKV", grads, (W_Q, W_K, W_V), strict=True)
            if letter in paths
        )
        rows = weight or over_rows
        return (grad_x, *(rows(x, g) for g in grads), rows(concat, grad_output))

    return function


def _lost(name):
    """A slip of the head, inside the layer."""
    return _layer(head=lambda *args: MISTAKES[name](*args))


def _as_linear(a, b):
    return b.reshape(-1, b.shape[-1]).T @ a.reshape(-1, a.shape[-1])


def _first_sentence(a, b):
    return a.reshape(-1, *a.shape[-2:])[0].T @ b.reshape(-1, *b.shape[-2:])[0]


def _mean_of_batch(a, b):
    count = a.size // (a.shape[-1] * a.shape[-2])
    return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1]) / count


def _made(rng, L, E, H, D, *front):
    """A layer and an input; E = H * D where a transposed matrix shall fit."""
    W = [1.5 * rng.standard_normal((E, H * D)) / E**0.5 for _ in "QKV"]
    W_O = rng.standard_normal((H * D, E)) / (H * D) ** 0.5
    grad_output, x = rng.standard_normal((2, *front, L, E))
    return call(grad_output, x, H, *W, W_O)


def _sentences(rng):
    return [_made(rng, *sizes) for sizes in ((2, 4, 2, 2), (3, 3, 1, 3), (4, 8, 2, 4), (3, 5, 2, 3), (4, 4, 4, 1))]


def _batches(rng):
    return [_made(rng, 2, 4, 2, 2, 2), _made(rng, 3, 6, 3, 2, 3), _made(rng, 4, 5, 2, 4, 2, 2)]


def _more_layers(rng):
    return [_made(rng, 7, 10, 5, 2), _made(rng, 5, 7, 3, 2, 4), _made(rng, 1, 4, 2, 2, 3)]


EXERCISE = Exercise(
    "11_gradients",
    "Gradients by hand",
    offers=("causal_mask", "merge_heads", "softmax", "split_heads"),
    questions=(
        value(
            "q1", "grad_of_scores", lambda: softmax_backward(_WEIGHTS, _GAINS), 1,
            mistakes={
                "row_sum_forgotten": lambda: _row_sum_forgotten(_WEIGHTS, _GAINS),
                "softmax_slope_diagonal": lambda: _diagonal(_WEIGHTS, _GAINS),
            },
            slips={
                "plain_mean": ("The gains are compared with their plain mean, 4: the mean is taken under the weights.",
                               lambda: _WEIGHTS * (_GAINS - _GAINS.mean())),
                "weights_in_front_forgotten": ("The weight in front is missing: each difference is multiplied by the key's weight.",
                                               lambda: _GAINS - _WEIGHTS @ _GAINS),
                "mean_subtracted_last": ("The mean is subtracted last: first each gain minus the mean, then times the weight.",
                                         lambda: _mean_subtracted_last(_WEIGHTS, _GAINS)),
                "sign": ("All signs are turned: a key that gains more than the mean gets a positive gradient.",
                         lambda: -softmax_backward(_WEIGHTS, _GAINS)),
            },
        ),
        Question(
            "q2", "softmax_backward", softmax_backward,
            parts=(
                Part("a matrix of weights", 2, _matrices),
                Part("leading axes for batch and heads", 1, _in_front),
                Part("weights of 0, and rows of them", 1, _with_zeros),
                untouched(),
            ),
            mistakes={"row_sum_forgotten": _row_sum_forgotten, "softmax_slope_diagonal": _diagonal},
            slips={
                "sum_over_queries": ("The sum runs over the queries: it belongs to a row, axis -1.",
                                     lambda weights, grad: weights * (grad - (weights * grad).sum(-2, keepdims=True))),
                "one_sum": ("One sum is taken over the whole matrix: each row has its own.",
                            lambda weights, grad: weights * (grad - (weights * grad).sum())),
                "plain_mean": ("The plain mean of the gradient is subtracted: take the mean under the weights.",
                               lambda weights, grad: weights * (grad - grad.mean(-1, keepdims=True))),
                "plain_sum": ("The plain sum of the gradient is subtracted: the terms are weighted by the weights.",
                              lambda weights, grad: weights * (grad - grad.sum(-1, keepdims=True))),
                "weights_in_front_forgotten": (
                    "The weights in front are missing: each difference is multiplied by the key's weight.",
                    lambda weights, grad: grad - (weights * grad).sum(-1, keepdims=True)),
                "mean_subtracted_last": (
                    "The row sum is subtracted last: it is subtracted from the gradient, and the difference meets the weights.",
                    _mean_subtracted_last),
                "sign": ("The signs are turned: a key that gains more than the mean gets a positive gradient.",
                         lambda weights, grad: -softmax_backward(weights, grad)),
                "softmax_again": ("A softmax is taken of the weights: they are the weights already.",
                                  lambda weights, grad: softmax_backward(softmax(weights), grad)),
            },
        ),
        Question(
            "q3", "attention_backward", attention_backward,
            parts=(
                Part("one head", 3, _one_head),
                Part("leading axes for batch and heads", 1, _heads),
                Part("a mask", 2, _some_hidden),
                Part("a query that may attend to nothing", 1, _nothing_seen),
                Part("sizes that are not announced", 1, _unannounced, hidden=True),
                untouched(),
            ),
            mistakes={
                "row_sum_forgotten": _known("row_sum_forgotten"),
                "softmax_slope_diagonal": _known("softmax_slope_diagonal"),
                "scale_forgotten_backwards": _known("scale_forgotten_backwards"),
                "weights_not_transposed_backwards": _known("weights_not_transposed_backwards"),
                "mask_forgotten_backwards": _known("mask_forgotten_backwards"),
                "no_scale": _from_parts(forward=1, scale=lambda D: 1),
                "mask_inverted": lambda grad_output, query, key, value, mask=None: attention_backward(
                    grad_output, query, key, value, None if mask is None else ~mask),
                "mask_after_softmax": _from_parts(late=True),
                "mask_multiplied": _from_parts(fill=0.0),
                "masked_row_is_nan": _from_parts(attend=softmax_without_guard),
                "softmax_without_maximum": _from_parts(attend=MISTAKES["softmax_without_maximum"]),
                "mask_with_finite_value": _from_parts(fill=-1e9),
            },
            slips={
                "maximum_forgotten": (WITHOUT_MAXIMUM, _from_parts(attend=without_maximum)),
                "divided_by_d_k_backwards": ("The gradients of query and key are divided by d_k: the scale is 1 / sqrt(d_k), once.",
                                             _from_parts(scale=lambda D: 1 / D)),
                "scale_only_backwards": (
                    "The scale is missing in the forward pass: the weights must be those of the scaled scores.",
                    _from_parts(forward=1)),
                "key_gradient_not_transposed": (
                    "The gradient of the scores is not transposed for the keys: key j collects from column j.",
                    _key_from_rows),
                "inverse_scale": ("The gradients of query and key are multiplied by sqrt(d_k): a factor of the forward pass comes back as it is.",
                                  _from_parts(scale=lambda D: D**0.5)),
                "value_first": ("The gradients stand in another order: query, key, value are asked.",
                                _from_parts(end=lambda q, k, v: (v, k, q))),
            },
        ),
        Question(
            "q4", "layer_backward", layer_backward,
            parts=(
                Part("one sentence", 3, _sentences),
                Part("a batch of sentences", 2, _batches),
                Part("sizes that are not announced", 1, _more_layers, hidden=True),
                untouched(),
            ),
            mistakes={
                "row_sum_forgotten": _lost("row_sum_forgotten"),
                "scale_forgotten_backwards": _lost("scale_forgotten_backwards"),
                "split_without_transpose": _layer(
                    split=lambda x, n: MISTAKES["split_without_transpose"](x, n),
                    merge=lambda x: MISTAKES["merge_without_transpose"](x)),
            },
            slips={
                "last_path_only": ("x gets the gradient of one path only, that of V: it is used three times, and the three add up.",
                                   _layer(paths="V")),
                "path_of_v_forgotten": ("The path through V is missing in the gradient of x: it is used for Q, K and V.",
                                        _layer(paths="QK")),
                "one_wide_head": ("The gradient goes back through one wide head: split it into heads, as the forward pass did.",
                                  _layer(heads=1)),
                "as_nn_linear": ("The gradients of the matrices are transposed, as nn.Linear stores them: here they are (in, out).",
                                 _layer(weight=_as_linear)),
                "inputs_not_transposed": ("W_Q, W_K, W_V are not transposed on the way back to x.", _layer(turn="QKV")),
                "W_O_not_transposed": ("W_O is not transposed on the way back: the heads get the gradient times its transpose.",
                                       _layer(turn="O")),
                "first_sentence_only": ("The matrices hear from the first sentence of the batch only: they are used by all, so sum.",
                                        _layer(weight=_first_sentence)),
                "mean_over_the_batch": ("The gradients of the matrices are averaged over the batch: what is used several times adds up.",
                                        _layer(weight=_mean_of_batch)),
            },
        ),
    ),
)  # fmt: skip
