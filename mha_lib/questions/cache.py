"""18_cache: one step with a cache, pieces of a text, shared key heads, bytes, and a key that leaves."""

import numpy as np

from ..mistakes import MISTAKES
from ..numpy import causal_mask, scaled_dot_product_attention, softmax
from ._question import Exercise, Part, Question, call, untouched
from .attention import TOO_WEAK


# --------------------------------------------------------------------------------------------------------------------- q1, a step
def decode_step(x_t, keys, values, W_Q, W_K, W_V):
    """(E,), (t, D), (t, D_v) -> the output (D_v,), and both with one row more."""
    keys, values = np.vstack([keys, x_t @ W_K]), np.vstack([values, x_t @ W_V])
    return scaled_dot_product_attention((x_t @ W_Q)[None], keys, values)[0], keys, values


def _step(rng, t, E=6, D=4, D_v=4):
    shapes = ((E,), (t, D), (t, D_v), (E, D), (E, D), (E, D_v))
    return call(*(rng.standard_normal(shape) for shape in shapes))


def _old_keys_only(x_t, keys, values, W_Q, W_K, W_V):
    _, new_keys, new_values = decode_step(x_t, keys, values, W_Q, W_K, W_V)
    return scaled_dot_product_attention((x_t @ W_Q)[None], keys, values)[0], new_keys, new_values


def _new_key_only(x_t, keys, values, W_Q, W_K, W_V):
    _, keys, values = decode_step(x_t, keys, values, W_Q, W_K, W_V)
    return values[-1], keys, values


def _in_front(x_t, keys, values, W_Q, W_K, W_V):
    output, keys, values = decode_step(x_t, keys, values, W_Q, W_K, W_V)
    return output, np.roll(keys, 1, axis=0), np.roll(values, 1, axis=0)


def _not_grown(x_t, keys, values, W_Q, W_K, W_V):
    return decode_step(x_t, keys, values, W_Q, W_K, W_V)[0], keys, values


def _by(attention):
    """The step with another attention."""

    def wrong(x_t, keys, values, W_Q, W_K, W_V):
        _, keys, values = decode_step(x_t, keys, values, W_Q, W_K, W_V)
        return attention((x_t @ W_Q)[None], keys, values)[0], keys, values

    return wrong


def _large_step(rng):
    """Scores whose exponentials overflow; that of an old key is 0, so that not all are negative."""
    x_t, keys, values, *weights = _step(rng, 4).args
    keys[1] = 0
    return call(3000 * x_t, keys, values, *weights)


def _exponentials_step(x_t, keys, values, W_Q, W_K, W_V):
    _, keys, values = decode_step(x_t, keys, values, W_Q, W_K, W_V)
    return MISTAKES["softmax_without_maximum"](keys @ (x_t @ W_Q) / keys.shape[-1] ** 0.5) @ values, keys, values


# ----------------------------------------------------------------------------------------------------------- q2, pieces of a text
def attend_piece(q, k, v):
    """q (..., L, D): the last L of the S positions; k (..., S, D), v (..., S, D_v) -> (..., L, D_v)."""
    offset = k.shape[-2] - q.shape[-2]
    return scaled_dot_product_attention(q, k, v, is_causal=True, query_offset=offset)


def _with_mask(make):
    """The same with the triangle that `make(L, S, offset)` gives."""

    def wrong(q, k, v):
        L, S = q.shape[-2], k.shape[-2]
        return scaled_dot_product_attention(q, k, v, mask=make(L, S, S - L))

    return wrong


def _causal(attention):
    """The same with another attention, which is given the right triangle."""

    def wrong(q, k, v):
        L, S = q.shape[-2], k.shape[-2]
        return attention(q, k, v, mask=np.tri(L, S, S - L, dtype=bool))

    return wrong


def _softmax_over_queries(q, k, v):
    L, S = q.shape[-2], k.shape[-2]
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return softmax(np.where(np.tri(L, S, S - L, dtype=bool), scores, -np.inf), axis=-2) @ v


def _piece(rng, L, S, *B, D=4, D_v=4):
    return call(*(3 * rng.standard_normal((*B, n, width)) for n, width in ((L, D), (S, D), (S, D_v))))


def _large(made, size=2000):
    """The same call with scores whose exponentials overflow, and in each row one that is not negative: that of a key of zeros."""
    q, k, v = made.args
    k[..., 0, :] = 0
    return call(size * q, k, v)


def _large_pieces(rng):
    """Large scores, and allowed ones far below what a weak mask puts in place of the forbidden."""
    low = call(np.array([[1e3], [1e3]]), np.array([[-1e3], [0.0]]), np.array([[1.0], [2.0]]))
    return _large(_piece(rng, 3, 6)), low


def _exponentials(q, k, v, low=-np.inf, weigh=MISTAKES["softmax_without_maximum"]):
    L, S = q.shape[-2], k.shape[-2]
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    return weigh(np.where(causal_mask(L, S, S - L), scores, low)) @ v


# --------------------------------------------------------------------------------------------------------- q3, shared key heads
def _with_exponentials_in_groups(q, k, v):
    k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], axis=-3) for x in (k, v))
    return MISTAKES["softmax_without_maximum"](q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5) @ v


def _groups(rng, H, H_kv, L=2, S=5, D=4, B=()):
    shapes = ((*B, H, L, D), (*B, H_kv, S, D), (*B, H_kv, S, D))
    return call(*(2 * rng.standard_normal(shape) for shape in shapes))


def _with_heads(choose):
    """Grouped attention where `choose` makes one key head per query head, along axis -3."""

    def wrong(q, k, v):
        H = q.shape[-3]
        return scaled_dot_product_attention(q, choose(k, H), choose(v, H))

    return wrong


def _tokens_stacked_first(q, k, v):
    rows = q.swapaxes(-3, -2).reshape(*q.shape[:-3], k.shape[-3], -1, q.shape[-1])
    return scaled_dot_product_attention(rows, k, v).reshape(*q.shape[:-1], v.shape[-1])


# ------------------------------------------------------------------------------------------------------------------- q4, bytes
def cache_bytes(layers, batch, length, num_heads, num_kv_heads, head_dim, bytes_per_number):
    """The bytes of all keys and values."""
    return 2 * layers * batch * length * num_kv_heads * head_dim * bytes_per_number


def _caches(rng):
    layers, batch, length, group, H_kv, D = rng.integers(2, 30, 6).tolist()
    return [call(1, 1, 16, 12, 12, 32, 4), call(2, 3, 5, 7, 7, 11, 2),
            call(layers, batch, length, group * H_kv, H_kv, D, 2)]  # fmt: skip


def _grouped_caches(rng):
    return [call(32, 1, 8192, 32, 8, 128, 2), call(3, 2, 10, 8, 1, 16, 4)]


# ---------------------------------------------------------------------------------------------------------------- q5, a key leaves
def without_key(weights, j):
    """(..., S), and an index -> (..., S - 1): the weights when key j is not there."""
    rest = np.delete(weights, j, axis=-1)
    return rest / rest.sum(-1, keepdims=True)


def _even_shares(weights, j):
    return np.delete(weights, j, axis=-1) + weights[..., j : j + 1] / (weights.shape[-1] - 1)


def _kept_place(weights, j):
    rest = np.array(weights)
    rest[..., j] = 0
    return rest / rest.sum(-1, keepdims=True)


def _to_the_largest(weights, j):
    rest = np.delete(weights, j, axis=-1)
    largest = rest == rest.max(-1, keepdims=True)
    return rest + largest * weights[..., j : j + 1]


def _rows(rng, *shape, j, sharp=1.0):
    return call(softmax(sharp * rng.standard_normal(shape)), j)


EXERCISE = Exercise(
    "18_cache",
    "Decoding with a cache",
    offers=("project", "softmax"),
    questions=(
        Question(
            "q1", "decode_step", decode_step,
            parts=(
                Part("output and cache behind earlier tokens", 3, lambda rng: [
                    _step(rng, 1, E=2, D=2, D_v=2), _step(rng, 3), _step(rng, 6, E=5, D=3, D_v=3), _large_step(rng)]),
                Part("the first token, with an empty cache", 1, lambda rng: [_step(rng, 0), _step(rng, 0, E=3)]),
                Part("values wider than keys", 1, lambda rng: [_step(rng, 4, D_v=7)], hidden=True),
                untouched(),
            ),
            mistakes={**{name: _by(MISTAKES[name]) for name in ("no_scale", "divided_by_d_k")},
                      "softmax_without_maximum": _exponentials_step},
            slips={
                "old_keys_only": (
                    "The new token does not see itself: append its key and value first, then attend.", _old_keys_only),
                "new_key_only": (
                    "The new token sees only itself: attend to all keys, the old ones too.", _new_key_only),
                "new_row_in_front": (
                    "The new key and value stand in front of the old ones: append them, the cache keeps the text's order.",
                    _in_front),
                "cache_not_grown": (
                    "The cache comes back as it was: the next step needs the new key and value too.", _not_grown),
                "scaled_by_d_model": (
                    "The scores are divided by the root of the width of x_t: it is the width of the keys, sqrt(D).",
                    lambda x_t, *given: _by(lambda q, k, v: scaled_dot_product_attention(
                        q, k, v, scale=len(x_t) ** -0.5))(x_t, *given)),
                "key_stored_as_value": (
                    "The key is stored in place of the value: values are x_t @ W_V.",
                    lambda x_t, keys, values, W_Q, W_K, W_V: decode_step(x_t, keys, values, W_Q, W_K, W_K)),
                "values_not_grown": (
                    "The values come back as they were: the next step needs the new value too.",
                    lambda *given: (*decode_step(*given)[:2], given[2])),
                "output_last": (
                    "The output comes last here: it is the first of the three.",
                    lambda *given: (*decode_step(*given)[1:], decode_step(*given)[0])),
                "query_stored": (
                    "The query is stored in place of the key: keys are x_t @ W_K.",
                    lambda x_t, keys, values, W_Q, W_K, W_V: decode_step(x_t, keys, values, W_Q, W_Q, W_V)),
            },
        ),
        Question(
            "q2", "attend_piece", attend_piece,
            parts=(
                Part("the last queries of a longer text", 3, lambda rng: [
                    _piece(rng, 2, 3, D=2, D_v=2), _piece(rng, 3, 7), _piece(rng, 2, 9, D=3, D_v=5), *_large_pieces(rng)]),
                Part("one new query", 1, lambda rng: [_piece(rng, 1, 2, D=2, D_v=2), _piece(rng, 1, 6)]),
                Part("the whole text in one piece", 1, lambda rng: [_piece(rng, 3, 3), _piece(rng, 5, 5)]),
                Part("heads and a batch in front", 1, lambda rng: [_piece(rng, 2, 5, 3), _piece(rng, 3, 4, 2, 3)], hidden=True),
                untouched(),
            ),
            mistakes={
                "causal_mask_top_left": _with_mask(MISTAKES["causal_mask_top_left"]),
                "causal_mask_sees_next": _with_mask(MISTAKES["causal_mask_sees_next"]),
                "causal_mask_hides_itself": _with_mask(MISTAKES["causal_mask_hides_itself"]),
                "causal_mask_transposed": _with_mask(MISTAKES["causal_mask_transposed"]),
                "mask_ignored": scaled_dot_product_attention,
                **{name: _causal(MISTAKES[name]) for name in (
                    "no_scale", "divided_by_d_k", "mask_after_softmax", "mask_multiplied", "mask_inverted")},
                "softmax_without_maximum": _exponentials,
            },
            slips={
                "mask_too_weak": (TOO_WEAK, lambda q, k, v: _exponentials(q, k, v, low=-1e4, weigh=softmax)),
                "cache_only": (
                    "All queries of the piece see the keys up to the first one's own: each sees those up to its own position.",
                    _with_mask(lambda L, S, offset: np.broadcast_to(np.arange(S) <= offset, (L, S)))),
                "softmax_over_queries": (
                    "The softmax ran over the queries: the weights of each query sum to 1, over the keys.",
                    _softmax_over_queries),
            },
        ),
        Question(
            "q3", "grouped_attention", scaled_dot_product_attention,
            parts=(
                Part("groups of two and three", 3, lambda rng: [
                    _groups(rng, 4, 2, L=1, S=2, D=2), _groups(rng, 6, 2), _groups(rng, 6, 3, L=3, S=4), _large(_groups(rng, 4, 2))]),
                Part("one key head for all, and one for each", 1, lambda rng: [_groups(rng, 4, 1), _groups(rng, 3, 3)]),
                Part("a batch in front", 1, lambda rng: [_groups(rng, 4, 2, B=(2,))], hidden=True),
                untouched(),
            ),
            mistakes={
                "key_heads_tiled": MISTAKES["key_heads_tiled"],
                "no_scale": lambda q, k, v: scaled_dot_product_attention(q, k, v, scale=1.0),
                "divided_by_d_k": lambda q, k, v: scaled_dot_product_attention(q, k, v, scale=1 / q.shape[-1]),
                "softmax_without_maximum": _with_exponentials_in_groups,
            },
            slips={
                "first_key_head": (
                    "All query heads read the first key head: only those of the first group may.",
                    _with_heads(lambda x, H: np.repeat(x[..., :1, :, :], H, axis=-3))),
                "groups_of_key_heads": (
                    "Query head m reads key head m // H_kv: the size of a group, H // H_kv, is what m is divided by.",
                    _with_heads(lambda x, H: x[..., np.minimum(np.arange(H) // x.shape[-3], x.shape[-3] - 1), :, :])),
                "tokens_stacked_first": (
                    "The rows of a group are mixed with those of another: stack heads with all their rows, not token by token.",
                    _tokens_stacked_first),
                "values_tiled": (
                    "The keys are repeated (0, 0, 1, 1), the values are tiled (0, 1, 0, 1): both follow the same rule.",
                    lambda q, k, v: scaled_dot_product_attention(
                        q, np.repeat(k, q.shape[-3] // k.shape[-3], axis=-3),
                        np.concatenate([v] * (q.shape[-3] // v.shape[-3]), axis=-3))),
                "key_heads_averaged": (
                    "The key heads are averaged: each group reads one key head, as it is.",
                    _with_heads(lambda x, H: np.repeat(x.mean(-3, keepdims=True), H, axis=-3))),
                "groups_from_the_end": (
                    "The groups are counted from the end: query heads 0, 1, ... read key head 0.",
                    _with_heads(lambda x, H: np.repeat(x[..., ::-1, :, :], H // x.shape[-3], axis=-3))),
            },
        ),
        Question(
            "q4", "cache_bytes", cache_bytes,
            parts=(
                Part("as many key heads as query heads, or fewer", 2, _caches),
                Part("shared key heads", 1, _grouped_caches),
                Part("sizes that are not announced", 1, lambda rng: [call(5, 4, 77, 24, 6, 40, 1)], hidden=True),
            ),
            slips={
                "keys_only": (
                    "Only keys or only values are counted: both are kept.", lambda *sizes: cache_bytes(*sizes) // 2),
                "query_heads_counted": (
                    "The query heads are counted: the cache holds one key and one value per *key* head.",
                    lambda layers, batch, length, H, H_kv, D, b: cache_bytes(layers, batch, length, H, H, D, b)),
                "queries_too": (
                    "Queries are counted as well: they are used once and not kept.",
                    lambda layers, batch, length, H, H_kv, D, b: layers * batch * length * (H + 2 * H_kv) * D * b),
                "heads_of_a_group": (
                    "The heads of a group are counted: the cache holds num_kv_heads heads, whatever the group.",
                    lambda layers, batch, length, H, H_kv, D, b: cache_bytes(layers, batch, length, H, H // H_kv, D, b)),
                "one_head": (
                    "One key head is counted: there are num_kv_heads.",
                    lambda layers, batch, length, H, H_kv, D, b: cache_bytes(layers, batch, length, H, 1, D, b)),
                "numbers_not_bytes": (
                    "These are numbers, not bytes: each takes bytes_per_number.",
                    lambda *sizes: cache_bytes(*sizes[:-1], 1)),
                "bits": ("These are bits: a byte has eight.", lambda *sizes: 8 * cache_bytes(*sizes)),
                "one_layer": (
                    "One layer is counted: each layer has a cache of its own.",
                    lambda layers, *sizes: cache_bytes(1, *sizes)),
                "one_sequence": (
                    "One sequence is counted: each sequence of the batch has a cache of its own.",
                    lambda layers, batch, *sizes: cache_bytes(layers, 1, *sizes)),
            },
        ),
        Question(
            "q5", "without_key", without_key,
            parts=(
                Part("one row", 2, lambda rng: [_rows(rng, 3, j=0), _rows(rng, 6, j=2), _rows(rng, 5, j=4)]),
                Part("a matrix and heads of weights", 1, lambda rng: [_rows(rng, 3, 5, j=1), _rows(rng, 2, 3, 4, j=0)]),
                Part("a sink of more than 0.9", 1, lambda rng: [
                    call(softmax(np.r_[8.0, rng.standard_normal(5)]), 0)], hidden=True),
                untouched(),
            ),
            slips={
                "not_normalised": (
                    "The row no longer sums to 1: the others grow by 1 / (1 - a).",
                    lambda weights, j: np.delete(weights, j, axis=-1)),
                "even_shares": (
                    "Each other weight grows by the same amount: all are multiplied by the same factor.", _even_shares),
                "one_sum_for_all": (
                    "All rows together sum to 1: each row has a sum of its own, so sum along the last axis.",
                    lambda weights, j: (rest := np.delete(weights, j, axis=-1)) / rest.sum()),
                "weight_added_to_each": (
                    "Each other weight grows by all of a: the row no longer sums to 1.",
                    lambda weights, j: np.delete(weights, j, axis=-1) + weights[..., j : j + 1]),
                "grown_by_1_plus_a": (
                    "The others are multiplied by 1 + a: the factor is 1 / (1 - a).",
                    lambda weights, j: np.delete(weights, j, axis=-1) * (1 + weights[..., j : j + 1])),
                "softmax_again": (
                    "The softmax ran over weights: it belongs over scores; here a division is enough.",
                    lambda weights, j: softmax(np.delete(weights, j, axis=-1))),
                "multiplied_by_what_is_left": (
                    "The others are multiplied by 1 - a: they grow, so divide by it.",
                    lambda weights, j: np.delete(weights, j, axis=-1) * (1 - weights[..., j : j + 1])),
                "place_kept": (
                    "The key still has a place, with weight 0: a key that left the cache has no column.", _kept_place),
                "largest_takes_all": (
                    "The largest weight takes over what is free: all others grow, by the same factor.", _to_the_largest),
                "another_key": (
                    "Another key was taken out: key j, counted from 0.",
                    lambda weights, j: without_key(weights, j - 1)),
            },
        ),
    ),
)  # fmt: skip
