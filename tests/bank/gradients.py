"""Answers to 11_gradients."""

import numpy as np

from mha_lib.numpy import merge_heads, softmax, split_heads


# ------------------------------------------------------------------------------------------------------------------- q2, right
def by_row_sums(weights, grad):
    return weights * (grad - (weights * grad).sum(axis=-1, keepdims=True))


def by_einsum(weights, grad):
    return weights * grad - weights * np.einsum("...s,...s->...", weights, grad)[..., None]


def by_the_jacobian(weights, grad):
    J = weights[..., None] * np.eye(weights.shape[-1]) - weights[..., :, None] * weights[..., None, :]
    return (J @ grad[..., None])[..., 0]


def by_loops(weights, grad):
    result = np.zeros(np.shape(grad))
    for place in np.ndindex(*weights.shape[:-1]):
        a, g = weights[place], grad[place]
        for t in range(len(a)):
            result[(*place, t)] = sum(a[j] * ((j == t) - a[t]) * g[j] for j in range(len(a)))
    return result


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def without_the_sum(weights, grad):
    return weights * grad


def diagonal_only(weights, grad):
    return grad * weights * (1 - weights)


def sums_of_columns(weights, grad):
    return weights * (grad - np.sum(weights * grad, axis=-2, keepdims=True))


def sum_of_all(weights, grad):
    return weights * (grad - np.sum(weights * grad))


def centred(weights, grad):
    return weights * (grad - np.mean(grad, axis=-1, keepdims=True))


def minus_plain_sum(weights, grad):
    return weights * (grad - grad.sum(-1, keepdims=True))


def only_centred(weights, grad):
    return grad - (weights * grad).sum(-1, keepdims=True)


def mean_taken_off_last(weights, grad):
    gain = weights * grad
    return gain - gain.sum(axis=-1, keepdims=True)


def other_sign(weights, grad):
    return weights * ((weights * grad).sum(-1, keepdims=True) - grad)


def through_scores(weights, grad):
    return by_row_sums(softmax(weights), grad)


def without_keepdims(weights, grad):
    return weights * (grad - (weights * grad).sum(-1))


def divides_by_weights(weights, grad):
    return by_row_sums(weights, grad / weights * weights)


def grad_in_place(weights, grad):
    grad -= (weights * grad).sum(-1, keepdims=True)
    return weights * grad


# ----------------------------------------------------------------------------------------------------------------------- q3, right
def in_steps(grad_output, query, key, value, mask=None):
    scale = 1 / np.sqrt(query.shape[-1])
    scores = scale * query @ np.swapaxes(key, -1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    a = softmax(scores)
    grad_value = np.swapaxes(a, -1, -2) @ grad_output
    grad_scores = by_row_sums(a, grad_output @ np.swapaxes(value, -1, -2))
    return scale * grad_scores @ key, scale * np.swapaxes(grad_scores, -1, -2) @ query, grad_value


def _by_exponentials(guard):
    def head(grad_output, query, key, value, mask=None):
        scale = query.shape[-1] ** -0.5
        e = np.exp(np.where(True if mask is None else mask, scale * query @ np.swapaxes(key, -1, -2), -np.inf))
        total = e.sum(-1, keepdims=True)
        a = e / (np.where(total > 0, total, 1) if guard else total)
        grad_scores = by_row_sums(a, grad_output @ np.swapaxes(value, -1, -2))
        grad_value = np.swapaxes(a, -1, -2) @ grad_output
        return scale * grad_scores @ key, scale * np.swapaxes(grad_scores, -1, -2) @ query, grad_value

    return head


exponentials, guarded_exponentials = _by_exponentials(False), _by_exponentials(True)


def with_the_output(grad_output, query, key, value, mask=None):
    """The row sum as a dot product of the output with its gradient."""
    root = query.shape[-1] ** 0.5
    allowed = np.broadcast_to(True if mask is None else mask, (*query.shape[:-1], key.shape[-2]))
    a = softmax(np.where(allowed, np.einsum("...ld,...sd->...ls", query, key) / root, -np.inf))
    delta = ((a @ value) * grad_output).sum(-1)
    ds = a * (np.einsum("...lv,...sv->...ls", grad_output, value) - delta[..., None]) / root
    return (
        np.einsum("...ls,...sd->...ld", ds, key),
        np.einsum("...ls,...ld->...sd", ds, query),
        np.einsum("...ls,...lv->...sv", a, grad_output),
    )


def row_after_row(grad_output, query, key, value, mask=None):
    L, S, D = query.shape[-2], key.shape[-2], query.shape[-1]
    grads = [np.zeros(x.shape) for x in (query, key, value)]
    allowed = np.broadcast_to(True if mask is None else mask, (*query.shape[:-2], L, S))
    for place in np.ndindex(*query.shape[:-2]):
        for i in range(L):
            seen = np.flatnonzero(allowed[place][i])
            if len(seen) == 0:
                continue
            k, v = key[place][seen], value[place][seen]
            a = softmax(k @ query[place][i] / D**0.5)
            g = v @ grad_output[place][i]
            ds = a * (g - a @ g) / D**0.5
            grads[0][place][i] += ds @ k
            grads[1][place][seen] += np.outer(ds, query[place][i])
            grads[2][place][seen] += np.outer(a, grad_output[place][i])
    return tuple(grads)


# ----------------------------------------------------------------------------------------------------------------------- q3, wrong
def _weights(query, key, mask, fill=-np.inf):
    scores = query @ key.swapaxes(-1, -2) / query.shape[-1] ** 0.5
    return scores if mask is None else np.where(mask, scores, fill)


def _finish(grad_scores, a, grad_output, query, key, scale):
    return (
        scale * grad_scores @ key,
        scale * grad_scores.swapaxes(-1, -2) @ query,
        a.swapaxes(-1, -2) @ grad_output,
    )


def head_without_the_sum(grad_output, query, key, value, mask=None):
    a = softmax(_weights(query, key, mask))
    return _finish(a * (grad_output @ value.swapaxes(-1, -2)), a, grad_output, query, key, query.shape[-1] ** -0.5)


def head_diagonal(grad_output, query, key, value, mask=None):
    a = softmax(_weights(query, key, mask))
    g = grad_output @ value.swapaxes(-1, -2)
    return _finish(a * (1 - a) * g, a, grad_output, query, key, query.shape[-1] ** -0.5)


def head_with_scale(scale):
    def head(grad_output, query, key, value, mask=None):
        a = softmax(_weights(query, key, mask))
        g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2))
        return _finish(g, a, grad_output, query, key, scale(query.shape[-1]))

    return head


def unscaled_weights(scale):
    """The scores of the forward pass are not scaled; the gradients get `scale`."""

    def head(grad_output, query, key, value, mask=None):
        a = softmax(_weights(query * query.shape[-1] ** 0.5, key, mask))
        g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2))
        return _finish(g, a, grad_output, query, key, scale(query.shape[-1]))

    return head


def shows_what_is_hidden(grad_output, query, key, value, mask=None):
    return in_steps(grad_output, query, key, value, None if mask is None else np.logical_not(mask))


def cuts_the_weights(grad_output, query, key, value, mask=None):
    a = softmax(_weights(query, key, None))
    a = a if mask is None else np.where(mask, a, 0)
    g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2))
    return _finish(g, a, grad_output, query, key, query.shape[-1] ** -0.5)


def scores_times_mask(grad_output, query, key, value, mask=None):
    a = softmax(_weights(query, key, mask, fill=0))
    g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2))
    return _finish(g, a, grad_output, query, key, query.shape[-1] ** -0.5)


def values_by_rows(grad_output, query, key, value, mask=None):
    grad_query, grad_key, _ = in_steps(grad_output, query, key, value, mask)
    return grad_query, grad_key, softmax(_weights(query, key, mask)) @ grad_output


def ignores_the_mask(grad_output, query, key, value, mask=None):
    return in_steps(grad_output, query, key, value)


def masks_the_gradient_only(grad_output, query, key, value, mask=None):
    """The mask is applied to the gradient of the scores, not to the scores."""
    a = softmax(_weights(query, key, None))
    g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2))
    g = g if mask is None else np.where(mask, g, 0)
    return _finish(g, a, grad_output, query, key, query.shape[-1] ** -0.5)


def no_guard(grad_output, query, key, value, mask=None):
    s = _weights(query, key, mask)
    e = np.exp(s - s.max(-1, keepdims=True))
    a = e / e.sum(-1, keepdims=True)
    g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2))
    return _finish(g, a, grad_output, query, key, query.shape[-1] ** -0.5)


def minus_a_billion(grad_output, query, key, value, mask=None):
    a = softmax(_weights(query, key, mask, -1e9))
    g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2))
    return _finish(g, a, grad_output, query, key, query.shape[-1] ** -0.5)


def keys_by_rows(grad_output, query, key, value, mask=None):
    a = softmax(_weights(query, key, mask))
    g = by_row_sums(a, grad_output @ value.swapaxes(-1, -2)) / query.shape[-1] ** 0.5
    return g @ key, g @ query, a.swapaxes(-1, -2) @ grad_output


def the_other_way_round(grad_output, query, key, value, mask=None):
    return in_steps(grad_output, query, key, value, mask)[::-1]


def forward_pass(grad_output, query, key, value, mask=None):
    return softmax(_weights(query, key, mask)) @ value


def two_of_three(grad_output, query, key, value, mask=None):
    return in_steps(grad_output, query, key, value, mask)[:2]


def as_a_list(grad_output, query, key, value, mask=None):
    return list(in_steps(grad_output, query, key, value, mask))


def scales_the_query_in_place(grad_output, query, key, value, mask=None):
    grads = in_steps(grad_output, query, key, value, mask)
    query *= query.shape[-1] ** -0.5
    return grads


# ----------------------------------------------------------------------------------------------------------------------- q4, right
def _sum_over_rows(a, b):
    return a.reshape(-1, a.shape[-1]).T @ b.reshape(-1, b.shape[-1])


def packed(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    q, k, v = (split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    heads = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v
    back = in_steps(split_heads(grad_output @ W_O.T, num_heads), q, k, v)
    grad_q, grad_k, grad_v = (merge_heads(g) for g in back)
    grad_x = grad_q @ W_Q.T + grad_k @ W_K.T + grad_v @ W_V.T
    rows = [_sum_over_rows(x, g) for g in (grad_q, grad_k, grad_v)]
    return (grad_x, *rows, _sum_over_rows(merge_heads(heads), grad_output))


def head_after_head(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    D = W_Q.shape[1] // num_heads
    grad_x = np.zeros(x.shape)
    grads = [np.zeros(W.shape) for W in (W_Q, W_K, W_V, W_O)]
    for m in range(num_heads):
        own = slice(m * D, (m + 1) * D)
        q, k, v = (x @ W[:, own] for W in (W_Q, W_K, W_V))
        a = softmax(q @ k.swapaxes(-1, -2) / D**0.5)
        grads[3][own] = _sum_over_rows(a @ v, grad_output)
        back = with_the_output(grad_output @ W_O[own].T, q, k, v)
        for n, (g, W) in enumerate(zip(back, (W_Q, W_K, W_V), strict=True)):
            grads[n][:, own] = _sum_over_rows(x, g)
            grad_x += g @ W[:, own].T
    return (grad_x, *grads)


def by_letters(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    E, D, shape = W_Q.shape[0], W_Q.shape[1] // num_heads, x.shape
    grad_output, x = (y.reshape(-1, *y.shape[-2:]) for y in (grad_output, x))  # (B, L, E)
    A, B, C = (W.reshape(E, num_heads, D) for W in (W_Q, W_K, W_V))
    O_ = W_O.reshape(num_heads, D, E)
    q, k, v = (np.einsum("...le,ehd->...hld", x, W) for W in (A, B, C))
    a = softmax(np.einsum("...hld,...hsd->...hls", q, k) / D**0.5)
    dh = np.einsum("...le,hde->...hld", grad_output, O_)
    da = np.einsum("...hld,...hsd->...hls", dh, v)
    ds = a * (da - (a * da).sum(-1, keepdims=True)) / D**0.5
    dq, dk = np.einsum("...hls,...hsd->...hld", ds, k), np.einsum("...hls,...hld->...hsd", ds, q)
    dv = np.einsum("...hls,...hld->...hsd", a, dh)
    pairs = ((dq, A), (dk, B), (dv, C))
    grad_x = sum(np.einsum("...hld,ehd->...le", g, W) for g, W in pairs)
    grads = [np.einsum("ble,bhld->ehd", x, g).reshape(E, -1) for g, _ in pairs]
    return (grad_x.reshape(shape), *grads, np.einsum("bhld,ble->hde", a @ v, grad_output).reshape(-1, E))


# ----------------------------------------------------------------------------------------------------------------------- q4, wrong
def layer_with(
    head=in_steps, split=split_heads, merge=merge_heads, sum_up=_sum_over_rows, way=lambda W: W.T, out=lambda W: W.T
):
    def layer(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
        q, k, v = (split(x @ W, num_heads) for W in (W_Q, W_K, W_V))
        heads = softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v
        grads = [merge(g) for g in head(split(grad_output @ out(W_O), num_heads), q, k, v)]
        grad_x = sum(g @ way(W) for g, W in zip(grads, (W_Q, W_K, W_V), strict=True))
        return (grad_x, *(sum_up(x, g) for g in grads), sum_up(merge(heads), grad_output))

    return layer


def reshaped(x, n):
    return x.reshape(*x.shape[:-2], n, x.shape[-2], x.shape[-1] // n)


def reshaped_back(x):
    return x.reshape(*x.shape[:-3], x.shape[-2], -1)


def overwritten(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    grads = packed(grad_output, x, num_heads, W_Q, W_K, W_V, W_O)
    q, k, v = (split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    back = in_steps(split_heads(grad_output @ W_O.T, num_heads), q, k, v)
    for g, W in zip(back, (W_Q, W_K, W_V), strict=True):
        grad_x = merge_heads(g) @ W.T
    return (grad_x, *grads[1:])


def queries_and_keys_only(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    q, k, v = (split_heads(x @ W, num_heads) for W in (W_Q, W_K, W_V))
    back = in_steps(split_heads(grad_output @ W_O.T, num_heads), q, k, v)
    grad_x = merge_heads(back[0]) @ W_Q.T + merge_heads(back[1]) @ W_K.T
    return (grad_x, *packed(grad_output, x, num_heads, W_Q, W_K, W_V, W_O)[1:])


def no_heads(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    return packed(grad_output, x, 1, W_Q, W_K, W_V, W_O)


def batch_kept(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    return layer_with(sum_up=lambda a, b: a.swapaxes(-1, -2) @ b)(grad_output, x, num_heads, W_Q, W_K, W_V, W_O)


def averaged(a, b):
    return _sum_over_rows(a, b) / max(1, np.prod(a.shape[:-2]))


def first_of_the_batch(a, b):
    while a.ndim > 2:
        a, b = a[0], b[0]
    return a.T @ b


def x_in_place(grad_output, x, num_heads, W_Q, W_K, W_V, W_O):
    grads = packed(grad_output, x, num_heads, W_Q, W_K, W_V, W_O)
    x += 1
    return grads


RIGHT = {
    "q1": [[1.5, -0.25, -1.25], np.array([1.5, -0.25, -1.25]), (3 / 2, -1 / 4, -5 / 4)],
    "q2": [by_row_sums, by_einsum, by_the_jacobian, by_loops],
    "q3": [in_steps, with_the_output, row_after_row],
    "q4": [packed, head_after_head, by_letters],
}

WRONG = {
    "q1": [
        ([4, 1, 0], "row_sum_forgotten", 0),
        ([2, 0.75, 0], "softmax_slope_diagonal", 0),
        ([2, 0, -1], "plain_mean", 0),
        ([3, -1, -5], "weights_in_front_forgotten", 0),
        ([-1, -4, -5], "mean_subtracted_last", 0),
        ([-1.5, 0.25, 1.25], "sign", 0),
        ([1.5, -0.25], "wrong_shape", 0),
        ([1.5, 0.25, -1.25], "different", 0),
    ],
    "q2": [
        (without_the_sum, "row_sum_forgotten", 0),
        (diagonal_only, "softmax_slope_diagonal", 0),
        (sums_of_columns, "sum_over_queries", 0),
        (sum_of_all, "one_sum", 0),
        (centred, "plain_mean", 0),
        (minus_plain_sum, "plain_sum", 0),
        (only_centred, "weights_in_front_forgotten", 0),
        (mean_taken_off_last, "mean_subtracted_last", 0),
        (other_sign, "sign", 0),
        (through_scores, "softmax_again", 0),
        (without_keepdims, "raised", 0),
        (divides_by_weights, "different", 4),
        (grad_in_place, "input_modified", 4),
    ],
    "q3": [
        (exponentials, "softmax_without_maximum", 5),
        (guarded_exponentials, "maximum_forgotten", 6),
        (head_without_the_sum, "row_sum_forgotten", 0),
        (head_diagonal, "softmax_slope_diagonal", 0),
        (head_with_scale(lambda D: 1), "scale_forgotten_backwards", 0),
        (head_with_scale(lambda D: 1 / D), "divided_by_d_k_backwards", 0),
        (head_with_scale(lambda D: D**0.5), "inverse_scale", 0),
        (unscaled_weights(lambda D: 1), "no_scale", 0),
        (unscaled_weights(lambda D: D**-0.5), "scale_only_backwards", 0),
        (shows_what_is_hidden, "mask_inverted", 5),
        (cuts_the_weights, "mask_after_softmax", 5),
        (scores_times_mask, "mask_multiplied", 5),
        (values_by_rows, "weights_not_transposed_backwards", 0),
        (ignores_the_mask, "mask_forgotten_backwards", 5),
        (masks_the_gradient_only, "different", 5),
        (no_guard, "masked_row_is_nan", 8),
        (minus_a_billion, "mask_with_finite_value", 8),
        (keys_by_rows, "key_gradient_not_transposed", 0),
        (the_other_way_round, "value_first", 0),
        (forward_pass, "wrong_type", 0),
        (two_of_three, "wrong_type", 0),
        (as_a_list, "wrong_type", 0),
        (scales_the_query_in_place, "input_modified", 8),
    ],
    "q4": [
        (layer_with(head=head_without_the_sum), "row_sum_forgotten", 0),
        (layer_with(head=head_with_scale(lambda D: 1)), "scale_forgotten_backwards", 0),
        (layer_with(split=reshaped, merge=reshaped_back), "split_without_transpose", 0),
        (overwritten, "last_path_only", 0),
        (queries_and_keys_only, "path_of_v_forgotten", 0),
        (no_heads, "one_wide_head", 0),
        (layer_with(sum_up=lambda a, b: _sum_over_rows(b, a)), "as_nn_linear", 0),
        (layer_with(way=lambda W: W), "inputs_not_transposed", 0),
        (layer_with(out=lambda W: W), "W_O_not_transposed", 0),
        (layer_with(sum_up=first_of_the_batch), "first_sentence_only", 4),
        (layer_with(sum_up=averaged), "mean_over_the_batch", 4),
        (batch_kept, "wrong_shape", 4),
        (x_in_place, "input_modified", 6),
    ],
}
