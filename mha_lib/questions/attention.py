"""07_attention: the weights meet the values, under masks, in a head from X to its output, and what each token brings."""

import numpy as np

from ..data import load_layer, load_pencil
from ..mistakes import MISTAKES
from ..numpy import attention_scores, causal_mask, padding_mask, project, scaled_dot_product_attention, softmax
from ._question import Exercise, Part, Question, call, some_mask, untouched, value

# ------------------------------------------------------------------------------------------------------------------- q1, by hand
_WEIGHTS = np.array([0.25, 0.25, 0.5])  # of the scores 0, 0 and ln 2


def _pencil(matrix):
    """Keys or values of head 1 of the pencil example, (3, 4)."""
    pencil = load_pencil()
    return pencil.x @ getattr(pencil, matrix)[:, 4:]


# ------------------------------------------------------------------------------------------------------------------- q2, without masks
def _three(rng, *shape, L, S, D, D_v):
    return tuple(rng.standard_normal((*shape, *size)) for size in ((L, D), (S, D), (S, D_v)))


def _sizes(rng):
    """One key, one query, all sizes different, all alike, where a wrong axis changes no shape, and large scores."""
    sizes = ((1, 2, 1, 1), (2, 2, 2, 2), (2, 3, 4, 2), (4, 1, 3, 5), (5, 5, 5, 5), (3, 7, 2, 6))
    query, key, value = _three(rng, L=3, S=4, D=5, D_v=2)
    return [*(call(*_three(rng, L=L, S=S, D=D, D_v=D_v)) for L, S, D, D_v in sizes), call(2000 * query, key, value)]


def _axes_in_front(rng):
    return [call(*_three(rng, 4, L=3, S=3, D=3, D_v=3)), call(*_three(rng, 2, 3, L=2, S=5, D=4, D_v=6)),
            call(*_three(rng, 2, 1, L=1, S=4, D=2, D_v=3))]  # fmt: skip


def _both_results(rng):
    return [call(*_three(rng, L=2, S=3, D=4, D_v=2), return_weights=True),
            call(*_three(rng, 2, L=4, S=4, D=4, D_v=4), return_weights=True)]  # fmt: skip


def _in_float32(rng):
    return [call(*(x.astype(np.float32) for x in _three(rng, 2, L=3, S=4, D=5, D_v=2)))]


def _attend(query, key, value, *, scale=None, weigh=softmax, return_weights=False):
    """Attention with another scale, or with another way from the scores to the weights."""
    weights = weigh(attention_scores(query, key, scale=scale))
    return (weights @ value, weights) if return_weights else weights @ value


def _weights_first(query, key, value, *, return_weights=False, **keywords):
    result = scaled_dot_product_attention(query, key, value, return_weights=return_weights, **keywords)
    return result[::-1] if return_weights else result


# ------------------------------------------------------------------------------------------------------------------- q3, under masks
def _large(rng):
    """Scores whose exponentials overflow in some rows, and one allowed score far below what a weak mask puts in its place."""
    query, key, value = _three(rng, L=3, S=4, D=5, D_v=2)
    key[1] = -key[0]  # so that no row has negative scores only
    mask = some_mask(rng, 3, 4) | (np.arange(4) < 2)
    low = 1000 * np.array([[1.0, 1.0]])
    return [call(2000 * query, key, value), call(2000 * query, key, value, mask=mask),
            call(low, -np.concatenate([low, 0 * low]), value[:2], mask=np.array([[True, False]]))]  # fmt: skip


def _masks(rng):
    """None at all, one for each pair, one row of keys for each sequence, one that restricts one sequence only, large scores."""
    only = np.ones((3, 1, 4, 4), bool)
    only[2, 0] = np.tri(4)
    return [
        call(*_three(rng, L=1, S=2, D=1, D_v=1), mask=np.array([[True, False]])),
        call(*_three(rng, L=2, S=3, D=4, D_v=2)),
        call(*_three(rng, L=4, S=4, D=4, D_v=4), mask=some_mask(rng, 4, 4)),
        call(*_three(rng, 3, 2, L=4, S=4, D=3, D_v=5), mask=padding_mask([2, 4, 1], 4)),
        call(*_three(rng, 3, 2, L=4, S=4, D=3, D_v=3), mask=only),
        call(*_three(rng, 2, 2, L=3, S=5, D=2, D_v=3), mask=some_mask(rng, 2, 1, 3, 5)),
        *_large(rng),
    ]


def _causal(rng):
    return [call(*_three(rng, L=2, S=2, D=2, D_v=2), is_causal=True), call(*_three(rng, L=3, S=5, D=4, D_v=2), is_causal=True),
            call(*_three(rng, 2, L=5, S=5, D=3, D_v=4), is_causal=True)]  # fmt: skip


def _both(rng):
    first = some_mask(rng, 3, 3)
    first[:, 0] = True  # so that every query has a key
    return [call(*_three(rng, L=3, S=3, D=2, D_v=4), mask=first, is_causal=True),
            call(*_three(rng, 2, 2, L=4, S=4, D=3, D_v=3), mask=padding_mask([1, 3], 4), is_causal=True)]  # fmt: skip


def _nothing_left(rng):
    mask = some_mask(rng, 4, 4)
    mask[1] = False
    left = np.arange(3) >= 1  # padding in front, so query 0 sees nothing that is not the future
    return [call(*_three(rng, L=1, S=2, D=1, D_v=2), mask=np.zeros((1, 2), bool)),
            call(*_three(rng, L=4, S=4, D=4, D_v=4), mask=mask),
            call(*_three(rng, L=3, S=3, D=2, D_v=3), mask=left, is_causal=True, return_weights=True)]  # fmt: skip


def _with_weights(rng):
    return [call(*_three(rng, 2, L=3, S=4, D=2, D_v=5), mask=some_mask(rng, 3, 4), return_weights=True),
            call(*_three(rng, L=4, S=4, D=4, D_v=4), is_causal=True, return_weights=True)]  # fmt: skip


def _strange_behind(rng):
    """NaN and inf in keys and values behind the padding, behind the triangle, and ones that are attended to."""
    query, key, value = _three(rng, 2, 2, L=3, S=3, D=2, D_v=4)
    key[0, :, 2], value[0, :, 2], value[1, :, 1:] = np.nan, np.inf, np.nan
    padded = call(query, key, value, mask=padding_mask([2, 1], 3))
    query, key, value = _three(rng, L=4, S=4, D=3, D_v=2)
    value[2, 1] = np.nan  # queries 0 and 1 do not see it, 2 and 3 do
    shown = _three(rng, L=2, S=3, D=2, D_v=2)
    shown[2][1, 0] = np.nan
    asked = _three(rng, L=2, S=3, D=2, D_v=2)
    asked[1][1, 0] = np.nan
    partly = np.array([[True, False, True], [True, True, True]])
    return [
        call(*shown, mask=partly),
        call(query, key, value, is_causal=True),
        padded,
        call(*asked, mask=partly),
    ]


def _unannounced(rng):
    return [call(*_three(rng, 3, 1, L=6, S=2, D=5, D_v=1), mask=padding_mask([1, 2, 1], 2), is_causal=True),
            call(*_three(rng, L=1, S=1, D=3, D_v=2), is_causal=True)]  # fmt: skip


WITHOUT_MAXIMUM = (
    "Your softmax does not subtract the row's maximum: exp overflows for large scores, and is 0 for very low ones."
)
TOO_WEAK = "Forbidden scores are set to a number that allowed ones can fall below: only -inf is below every score."


def _under(query, key, value, allowed, return_weights, *, blocked=-np.inf, weigh=softmax):
    """Attention to the allowed pairs, in which forbidden values are multiplied by 0."""
    weights = weigh(np.where(allowed, attention_scores(query, key), blocked))
    return (weights @ value, weights) if return_weights else weights @ value


def _combining(combine, **options):
    """Attention in which `combine` makes one table of permissions out of mask, is_causal, L and S."""

    def attend(query, key, value, *, mask=None, is_causal=False, return_weights=False):
        allowed = combine(mask, is_causal, query.shape[-2], key.shape[-2])
        return _under(query, key, value, allowed, return_weights, **options)

    return attend


def _causal_by(triangle, **options):
    """Attention in which is_causal means this triangle, a function of L and S."""
    return _combining(
        lambda mask, is_causal, L, S: (
            (triangle(L, S) if is_causal else True) & np.asarray(True if mask is None else mask)
        ),
        **options,
    )


def without_maximum(x):
    """The plain formula, with zeros for a row whose exponentials add up to 0."""
    e = np.exp(x)
    total = e.sum(-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def _first_mask(query, key, value, *, mask=None, **keywords):
    if mask is not None and mask.ndim == query.ndim > 2:
        mask = mask[0]
    return _causal_by(causal_mask)(query, key, value, mask=mask, **keywords)


def _nan_hidden_in_keys(query, key, value, **keywords):
    return scaled_dot_product_attention(query, np.where(np.isfinite(key), key, 0), value, **keywords)


def _nan_hidden(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return scaled_dot_product_attention(
        query,
        key,
        np.where(np.isfinite(value), value, 0),
        mask=mask,
        is_causal=is_causal,
        return_weights=return_weights,
    )


def _output_cleaned(query, key, value, *, return_weights=False, **keywords):
    output, weights = _causal_by(causal_mask)(query, key, value, return_weights=True, **keywords)
    output = np.nan_to_num(output)
    return (output, weights) if return_weights else output


# ------------------------------------------------------------------------------------------------------------------- q4, from X
def one_head(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    """Output and weights of a head: x (L, E), W (E, d), b (d,) -> (L, d_v), (L, L)."""
    projected = (project(x, W, b) for W, b in ((W_Q, b_Q), (W_K, b_K), (W_V, b_V)))
    return scaled_dot_product_attention(*projected, return_weights=True)


def _random_head(rng, L, E, D, D_v):
    x, W_Q, W_K, W_V = (rng.standard_normal(size) for size in ((L, E), (E, D), (E, D), (E, D_v)))
    b_Q, b_K, b_V = (rng.standard_normal(n) for n in (D, D, D_v))
    return call(x, W_Q, b_Q, W_K, b_K, W_V, b_V)


def _small_heads(rng):
    return [
        _random_head(rng, *sizes) for sizes in ((1, 2, 1, 2), (2, 2, 2, 2), (3, 6, 4, 2), (4, 3, 2, 5), (5, 5, 5, 5))
    ]


def _real_head(sentence, head):
    """The arguments for a head of the real layer, in float64."""
    layer, own = load_layer(sentence), slice(32 * head, 32 * head + 32)
    names = ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V")
    return [layer.x.astype(float), *(getattr(layer, name)[..., own].astype(float) for name in names)]


def _changed_head(attend=scaled_dot_product_attention, keep="QKV", changed=None):
    """A head with another attention, without the biases that are not in `keep`, or with changed weights."""

    def head(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
        given = {"Q": (W_Q, b_Q), "K": (W_K, b_K), "V": (W_V, b_V)}
        q, k, v = (x @ (W if changed is None else changed(W)) + (b if n in keep else 0) for n, (W, b) in given.items())
        return attend(q, k, v, return_weights=True)

    return head


def _inputs_as_values(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    weights = one_head(x, W_Q, b_Q, W_K, b_K, W_V, b_V)[1]
    return weights @ x, weights


def _root_of_d_model(x, W_Q, b_Q, W_K, b_K, W_V, b_V):
    return _attend(x @ W_Q + b_Q, x @ W_K + b_K, x @ W_V + b_V, scale=x.shape[-1] ** -0.5, return_weights=True)


# ------------------------------------------------------------------------------------------------------------------- q5, contributions
def contributions(weights, value, W_O):
    """Share of each token in what a query receives: (..., L, S), (..., S, D_v), (D_v, E) -> (..., L, S)."""
    return _shares(weights * _lengths(value @ W_O)[..., None, :])


def _lengths(x):
    return np.sqrt((x**2).sum(-1))


def _shares(x, axis=-1):
    return x / x.sum(axis, keepdims=True)


def _one(rng, *shape, L, S, D_v, E):
    weights, value = softmax(rng.standard_normal((*shape, L, S))), rng.standard_normal((*shape, S, D_v))
    return call(weights, value, rng.standard_normal((D_v, E)))


def _heads_of_one(rng):
    brings_nothing = _one(rng, L=2, S=3, D_v=2, E=4)
    brings_nothing.args[1][1] = 0
    return [
        brings_nothing,
        _one(rng, L=2, S=2, D_v=2, E=2),
        _one(rng, L=3, S=4, D_v=2, E=5),
        _one(rng, L=5, S=5, D_v=5, E=5),
    ]


def _batches(rng):
    return [_one(rng, 2, L=3, S=3, D_v=3, E=3), _one(rng, 2, 3, L=2, S=4, D_v=3, E=6)]


def _real_contributions(sentence, head):
    rows = slice(32 * head, 32 * head + 32)
    arguments = _real_head(sentence, head)
    weights, value = one_head(*arguments)[1], project(arguments[0], *arguments[5:])
    return call(weights, value, load_layer(sentence).W_O[rows].astype(float))


EXERCISE = Exercise(
    "07_attention",
    "Values: one head, whole",
    offers=("causal_mask", "padding_mask", "project", "softmax"),
    questions=(
        value(
            "q1", "output_by_hand", lambda: _WEIGHTS @ _pencil("W_V"), 1,
            mistakes={"keys_as_values": lambda: _WEIGHTS @ _pencil("W_K")},
            slips={
                "scores_as_weights": ("The values are multiplied by the scores: take their softmax first.",
                                      lambda: np.array([0, 0, np.log(2)]) @ _pencil("W_V")),
                "not_divided": ("The exponentials are not divided by their sum: the weights must sum to 1.",
                                lambda: np.array([1, 1, 2]) @ _pencil("W_V")),
                "even_mean": ("All three values count alike here: the third has twice the weight of the others.",
                              lambda: _pencil("W_V").mean(0)),
            },
        ),
        Question(
            "q2", "attention", lambda query, key, value, *, return_weights=False: scaled_dot_product_attention(
                query, key, value, return_weights=return_weights),
            parts=(
                Part("one head, any L, S, D and D_v", 2, _sizes),
                Part("leading axes for batch and heads", 1, _axes_in_front),
                Part("the weights, where they are asked for", 1, _both_results),
                Part("float32 stays float32", 1, _in_float32, dtype=True),
                untouched(),
            ),
            mistakes={name: MISTAKES[name] for name in (
                "no_scale", "divided_by_d_k", "divided_by_sqrt_d_model", "query_and_key_swapped", "keys_as_values",
                "weights_transposed", "softmax_over_heads")} | {
                "softmax_over_queries": lambda query, key, value, **options: _attend(
                    query, key, value, weigh=lambda x: softmax(x, axis=-2), **options),
                "softmax_without_maximum": lambda query, key, value, **options: _attend(
                    query, key, value, weigh=MISTAKES["softmax_without_maximum"], **options),
            },
            slips={
                "root_of_value_width": (
                    "The scores are divided by sqrt(D_v): they are sums of D products of queries and keys, so it is sqrt(D).",
                    lambda query, key, value, **options: _attend(query, key, value, scale=value.shape[-1] ** -0.5, **options)),
                "root_of_length": (
                    "The scores are divided by sqrt(S), the number of keys: the width of a key is its last axis.",
                    lambda query, key, value, **options: _attend(query, key, value, scale=key.shape[-2] ** -0.5, **options)),
                "softmax_forgotten": ("The values are multiplied by the scores: the softmax is missing.",
                                      lambda query, key, value, **options: _attend(
                                          query, key, value, weigh=lambda x: x, **options)),
                "weights_first": ("The two results have changed places: the output comes first, then the weights.", _weights_first),
            },
        ),
        Question(
            "q3", "scaled_dot_product_attention",
            lambda query, key, value, *, mask=None, is_causal=False, return_weights=False: scaled_dot_product_attention(
                query, key, value, mask=mask, is_causal=is_causal, return_weights=return_weights),
            parts=(
                Part("a mask, or none", 2, _masks),
                Part("is_causal", 1, _causal),
                Part("mask and is_causal together", 1, _both),
                Part("a query with nothing to attend to gets zeros", 1, _nothing_left),
                Part("the weights, where they are asked for", 1, _with_weights),
                Part("NaN and inf behind a mask; an attended NaN shows", 2, _strange_behind),
                Part("sizes that are not announced", 1, _unannounced, hidden=True),
                untouched(),
            ),
            mistakes={name: MISTAKES[name] for name in (
                "no_scale", "divided_by_d_k", "keys_as_values", "query_and_key_swapped", "weights_transposed",
                "mask_after_softmax", "mask_added", "mask_multiplied", "mask_with_finite_value", "masked_row_is_nan",
                "mask_ignored")} | {
                "mask_inverted": _combining(lambda mask, is_causal, L, S: (
                    np.asarray(True if mask is None else ~mask) & (causal_mask(L, S) if is_causal else True))),
                "causal_mask_sees_next": _causal_by(lambda L, S: causal_mask(L, S, 1)),
                "causal_mask_hides_itself": _causal_by(lambda L, S: causal_mask(L, S, -1)),
                "causal_mask_transposed": _causal_by(lambda L, S: ~causal_mask(L, S, -1)),
                "softmax_without_maximum": _causal_by(causal_mask, weigh=MISTAKES["softmax_without_maximum"]),
            },
            slips={
                "everything_inverted": ("The keys that may be attended to are set to -inf: only the others must be.",
                                        MISTAKES["mask_inverted"].function),
                "causal_ignored": ("The argument is_causal changes nothing.", _causal_by(lambda L, S: True)),
                "mask_argument_ignored": ("The argument mask changes nothing.", _combining(
                    lambda mask, is_causal, L, S: causal_mask(L, S) if is_causal else True)),
                "causal_replaces_mask": ("With is_causal the mask is dropped: a pair is allowed if both allow it.", _combining(
                    lambda mask, is_causal, L, S: causal_mask(L, S) if is_causal else True if mask is None else mask)),
                "mask_replaces_causal": ("With a mask is_causal is dropped: a pair is allowed if both allow it.", _combining(
                    lambda mask, is_causal, L, S: mask if mask is not None else causal_mask(L, S) if is_causal else True)),
                "one_is_enough": ("Mask and triangle are combined by or: a pair is allowed if both allow it, so by &.", _combining(
                    lambda mask, is_causal, L, S: (
                        mask | causal_mask(L, S) if is_causal and mask is not None
                        else mask if mask is not None else causal_mask(L, S) if is_causal else True))),
                "causal_bottom_right": (
                    "The triangle ends at the bottom right: without an offset it starts at the top left, query 0 sees key 0.",
                    _causal_by(lambda L, S: causal_mask(L, S, S - L))),
                "first_mask_for_all": ("The mask of the first sequence is used for the whole batch: each has its own.", _first_mask),
                "nan_times_zero": (
                    "The masks are right, but a forbidden NaN is multiplied by 0, which is NaN: leave it out of the sum.",
                    _causal_by(causal_mask)),
                "maximum_forgotten": (WITHOUT_MAXIMUM, _causal_by(causal_mask, weigh=without_maximum)),
                "mask_too_weak": (TOO_WEAK, _causal_by(causal_mask, blocked=-1e4)),
                "nan_hidden_in_keys": (
                    "Every NaN in the keys disappears: one that is attended to must show, leave out only the forbidden.",
                    _nan_hidden_in_keys),
                "nan_hidden": ("Every NaN in the values disappears: one that is attended to must show, leave out only the forbidden.",
                               _nan_hidden),
                "output_cleaned": (
                    "Every NaN in the output becomes 0: a query that may not see it loses its output, one that attends to it hides it.",
                    _output_cleaned),
                "weights_first": ("The two results have changed places: the output comes first, then the weights.", _weights_first),
            },
        ),
        Question(
            "q4", "one_head", one_head,
            parts=(
                Part("small heads, any L, E, d_k and d_v", 2, _small_heads),
                Part("head 1 of the real layer", 2, lambda rng: [call(*_real_head(0, 1))]),
                Part("another real head and sentence, not announced", 1, lambda rng: [
                    call(*_real_head(int(rng.integers(1, 6)), int(rng.integers(12))))], hidden=True),
                untouched(),
            ),
            mistakes={name: _changed_head(MISTAKES[name]) for name in (
                "no_scale", "divided_by_d_k", "query_and_key_swapped", "keys_as_values", "weights_transposed")} | {
                "bias_forgotten": _changed_head(keep=""),
                "weight_transposed": _changed_head(changed=np.transpose),
                "divided_by_sqrt_d_model": _root_of_d_model,
                "softmax_over_queries": _changed_head(lambda q, k, v, return_weights: _attend(
                    q, k, v, weigh=lambda x: softmax(x, axis=-2), return_weights=True)),
            },
            slips={
                "query_bias_forgotten": ("The bias of the queries is forgotten: it adds b_Q @ k_j to the score, another number for each key.",
                                         _changed_head(keep="KV")),
                "value_bias_forgotten": ("The bias of the values is forgotten: the weights are right, the output lacks b_V.",
                                         _changed_head(keep="QK")),
                "inputs_as_values": ("The weights are applied to x itself: project it with W_V and b_V first.", _inputs_as_values),
                "weights_first": ("The two results have changed places: the output comes first, then the weights.",
                                  lambda *arguments: one_head(*arguments)[::-1]),
                "made_causal": ("The head is causal: this one comes from an encoder, and every token sees all tokens.",
                                _changed_head(lambda q, k, v, return_weights: scaled_dot_product_attention(
                                    q, k, v, is_causal=True, return_weights=True))),
            },
        ),
        Question(
            "q5", "contributions", contributions,
            parts=(
                Part("one head", 2, _heads_of_one),
                Part("leading axes in front", 1, _batches),
                Part("head 1 of the real layer", 1, lambda rng: [_real_contributions(0, 1)]),
                Part("another real head and sentence, not announced", 1, lambda rng: [
                    _real_contributions(int(rng.integers(1, 6)), int(rng.integers(12)))], hidden=True),
                untouched(),
            ),
            slips={
                "not_divided": ("These are the lengths of the contributions: divide each row by its sum, so that it holds shares.",
                                lambda weights, value, W_O: weights * _lengths(value @ W_O)[..., None, :]),
                "weights_themselves": ("These are the weights: multiply each by the length of what its token sends on, value @ W_O.",
                                       lambda weights, value, W_O: weights),
                "before_W_O": ("The length is that of the value: the layer sends it on through W_O, take the length behind it.",
                               lambda weights, value, W_O: _shares(weights * _lengths(value)[..., None, :])),
                "length_alone": ("The weights are missing: a long value that nobody looks at brings nothing.",
                                 lambda weights, value, W_O: np.broadcast_to(
                                     _shares(_lengths(value @ W_O))[..., None, :], weights.shape)),
                "length_squared": ("This is the square of the length: the root is missing.",
                                   lambda weights, value, W_O: _shares(weights * ((value @ W_O) ** 2).sum(-1)[..., None, :])),
                "everything_squared": ("Weight and length are squared: the contribution is their product, to the power 1.",
                                       lambda weights, value, W_O: _shares(
                                           (weights * _lengths(value @ W_O)[..., None, :]) ** 2)),
                "absolute_values_added": ("The absolute values are added: the length is the root of the sum of squares.",
                                          lambda weights, value, W_O: _shares(
                                              weights * np.abs(value @ W_O).sum(-1)[..., None, :])),
                "shares_over_queries": ("The columns sum to 1, not the rows: each query divides by what it receives in all.",
                                        lambda weights, value, W_O: _shares(
                                            weights * _lengths(value @ W_O)[..., None, :], axis=-2)),
                "divided_by_everything": ("All shares together sum to 1: each row must.",
                                          lambda weights, value, W_O: (c := weights * _lengths(value @ W_O)[..., None, :]) / c.sum()),
                "output_projection_turned": ("W_O is transposed: it stands on the right of the values as it is, (D_v, E).",
                                             lambda weights, value, W_O: contributions(weights, value, W_O.T)),
            },
        ),
    ),
)  # fmt: skip
