"""10_multihead: the whole layer, and the real one out of the learner's own code."""

from functools import cache

import numpy as np

from ..data import load_layer, load_pencil
from ..mistakes import MISTAKES
from ..mistakes._parts import softmax_without_guard
from ..numpy import causal_mask, merge_heads, padding_mask, project, softmax, split_heads
from ._question import Exercise, Part, Question, call, untouched, value
from .attention import TOO_WEAK, WITHOUT_MAXIMUM, without_maximum


# ------------------------------------------------------------------------------------------------------------------- q1, by hand
def _memory_of_cats(word=0, W_O=None):
    """The output of any query whose memory holds one word again and again: (8,)."""
    pencil = load_pencil()
    return (pencil.x @ pencil.W_V)[word] @ (pencil.W_O if W_O is None else W_O)


# ------------------------------------------------------------------------------------------------------------------- q2, groups
def for_each_query_head(x, num_heads):
    """Query head m reads key head m // (H / H_kv): (..., H_kv, S, D) -> (..., H, S, D)."""
    return np.repeat(x, num_heads // x.shape[-3], axis=-3)


def _tiled(x, num_heads):
    return np.concatenate([x] * (num_heads // x.shape[-3]), axis=-3)


def _groups(rng):
    """One key head for two, for all; a key head for each; S = H_kv and S = H (where the wrong axis shows less)."""
    sizes = ((1, 2, 2, 2), (2, 4, 3, 2), (2, 2, 3, 4), (2, 4, 2, 2), (2, 6, 6, 1), (3, 12, 4, 5), (1, 1, 1, 3))
    return [call(rng.standard_normal((H_kv, S, D)), H) for H_kv, H, S, D in sizes]


def _batches_of_groups(rng):
    return [call(rng.standard_normal((*B, H_kv, S, D)), H)
            for B, H_kv, H, S, D in (((2,), 2, 4, 2, 2), ((3,), 2, 6, 1, 4), ((2, 1), 3, 6, 4, 2))]  # fmt: skip


# ------------------------------------------------------------------------------------------------------------------- q3, the layer
def _attention(q, k, mask, *, scale=None, softmax=softmax):
    """Weights (..., H, L, S); `scale` in place of 1 / sqrt(D)."""
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    return softmax(scores if mask is None else np.where(mask, scores, -np.inf))


class MultiHeadAttention:
    """The right layer, in steps that a mistake can replace one at a time."""

    def __init__(self, num_heads, W_Q, W_K, W_V, W_O, b_Q=None, b_K=None, b_V=None, b_O=None):
        self.num_heads = num_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = W_Q, W_K, W_V, W_O
        self.b_Q, self.b_K, self.b_V, self.b_O = b_Q, b_K, b_V, b_O

    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        query, key, value = self.sources(query, key, value)
        q, k, v = self.projected(query, key, value)
        weights = self.weights(q, self.for_queries(k), mask)
        output = self.end(self.merge(weights @ self.for_queries(v)))
        return (output, weights) if return_weights else output

    def sources(self, query, key, value):
        key = query if key is None else key
        return query, key, key if value is None else value

    def projected(self, query, key, value):
        kv_heads = self.W_K.shape[1] * self.num_heads // self.W_Q.shape[1]
        q = self.split(project(query, self.W_Q, self.b_Q), self.num_heads)  # (..., H, L, D)
        k = self.split(project(key, self.W_K, self.b_K), kv_heads)  # (..., H_kv, S, D)
        v = self.split(project(value, self.W_V, self.b_V), kv_heads)  # (..., H_kv, S, Dv)
        return q, k, v

    def split(self, x, num_heads):
        return split_heads(x, num_heads)

    def for_queries(self, x):
        return for_each_query_head(x, self.num_heads)

    def weights(self, q, k, mask):
        return _attention(q, k, mask)

    def merge(self, x):
        return merge_heads(x)

    def end(self, concat):
        return project(concat, self.W_O, self.b_O)


def _with(**steps):
    """The layer with other steps; each is a function of the layer and the step's arguments."""
    return type("Wrong", (MultiHeadAttention,), steps)


def _weighing(**options):
    return _with(weights=lambda self, q, k, mask: _attention(q, k, mask, **options))


def _without(*names):
    """The layer in which some biases are None."""

    class Without(MultiHeadAttention):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            vars(self).update(dict.fromkeys(names))

    return Without


class _FirstHeadForAll(MultiHeadAttention):
    def projected(self, *inputs):
        return tuple(np.repeat(x[..., :1, :, :], x.shape[-3], axis=-3) for x in super().projected(*inputs))


class _ProjectedTwice(MultiHeadAttention):
    def projected(self, query, key, value):
        once = [project(x, W, b) for x, W, b in
                ((query, self.W_Q, self.b_Q), (key, self.W_K, self.b_K), (value, self.W_V, self.b_V))]  # fmt: skip
        return super().projected(*once)


class _OneWideHead(MultiHeadAttention):
    def __init__(self, num_heads, *args, **kwargs):
        super().__init__(1, *args, **kwargs)


class _KeysAndQueriesSwapped(MultiHeadAttention):
    def weights(self, q, k, mask):
        return _attention(k, q, mask)


class _KeysAsValues(MultiHeadAttention):
    def projected(self, *inputs):
        q, k, _ = super().projected(*inputs)
        return q, k, k


def _finite(self, q, k, mask, low=-1e9):
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    return softmax(scores if mask is None else np.where(mask, scores, low))


WRONG_LAYERS = {
    "no_scale": _weighing(scale=1.0),
    "divided_by_d_k": _with(weights=lambda self, q, k, mask: _attention(q, k, mask, scale=1 / q.shape[-1])),
    "divided_by_sqrt_d_model": _with(
        weights=lambda self, q, k, mask: _attention(q, k, mask, scale=(q.shape[-1] * q.shape[-3]) ** -0.5)
    ),
    "query_and_key_swapped": _KeysAndQueriesSwapped,
    "keys_as_values": _KeysAsValues,
    "softmax_over_heads": _weighing(softmax=lambda x: softmax(x, axis=-3)),
    "softmax_over_queries": _weighing(softmax=lambda x: softmax(x, axis=-2)),
    "mask_inverted": _with(weights=lambda self, q, k, mask: _attention(q, k, None if mask is None else ~mask)),
    "mask_ignored": _with(weights=lambda self, q, k, mask: _attention(q, k, None)),
    "mask_after_softmax": _with(
        weights=lambda self, q, k, mask: _attention(q, k, None) * (1 if mask is None else mask)
    ),
    "mask_with_finite_value": _with(weights=_finite),
    "masked_row_is_nan": _weighing(softmax=softmax_without_guard),
    "softmax_without_maximum": _weighing(softmax=MISTAKES["softmax_without_maximum"]),
    "split_without_transpose": _with(split=lambda self, x, n: MISTAKES["split_without_transpose"](x, n)),
    "split_in_turn": _with(split=lambda self, x, n: MISTAKES["split_in_turn"](x, n)),
    "merge_without_transpose": _with(merge=lambda self, x: MISTAKES["merge_without_transpose"](x)),
    "heads_averaged": _with(merge=lambda self, x: MISTAKES["heads_averaged"](x)),
    "one_projection_for_all_heads": _FirstHeadForAll,
    "projected_twice": _ProjectedTwice,
    "output_projection_missing": _with(end=lambda self, concat: concat),
    "output_projection_transposed": _with(end=lambda self, concat: project(concat, self.W_O.T, self.b_O)),
    "output_bias_forgotten": _without("b_O"),
    "bias_forgotten": _without("b_Q", "b_K", "b_V"),
    "cross_attention_to_itself": _with(sources=lambda self, query, key, value: (query, query, query)),
    "values_from_the_query": _with(
        sources=lambda self, query, key, value: (
            query,
            query if key is None else key,
            query if value is None else value,
        )
    ),
    "key_heads_tiled": _with(for_queries=lambda self, x: _tiled(x, self.num_heads)),
}
OWN_WRONG_LAYERS = {
    "all_biases_forgotten": (
        "None of the four biases is added: each projection has one, and so has the output.",
        _without("b_Q", "b_K", "b_V", "b_O"),
    ),
    "query_bias_forgotten": ("b_Q is forgotten: it changes the scores of every key.", _without("b_Q")),
    "value_bias_forgotten": ("b_V is forgotten: without it every row of the output lacks b_V W_O.", _without("b_V")),
    "value_dropped": (
        "Without a key the given value is dropped: only the key is the query then.",
        _with(
            sources=lambda self, query, key, value: (
                query,
                query if key is None else key,
                query if key is None else key if value is None else value,
            )
        ),
    ),
    "value_ignored": (
        "The argument value changes nothing: the values come from it where it is given.",
        _with(sources=lambda self, query, key, value: (query, *(2 * (query if key is None else key,)))),
    ),
    "mask_transposed": (
        "The mask is transposed: its rows are the queries, its columns the keys, as those of the scores.",
        _with(weights=lambda self, q, k, mask: _attention(q, k, None if mask is None else np.swapaxes(mask, -1, -2))),
    ),
    "transpose_forgotten_twice": (
        "Neither the split nor the merge swaps heads and tokens: each head has pieces of several tokens.",
        _with(
            split=lambda self, x, n: MISTAKES["split_without_transpose"](x, n),
            merge=lambda self, x: MISTAKES["merge_without_transpose"](x),
        ),
    ),
    "maximum_forgotten": (WITHOUT_MAXIMUM, _weighing(softmax=without_maximum)),
    "mask_too_weak": (TOO_WEAK, _with(weights=lambda self, q, k, mask: _finite(self, q, k, mask, low=-1e4))),
    "one_wide_head": (
        "All columns went through one softmax, as one wide head: split first, then take a softmax per head.",
        _OneWideHead,
    ),
}


def _made(rng, *, E, H, D, H_kv=None, D_v=None, E_k=None, E_v=None, biases="", then):
    """A layer that is made and then called; scores of a size at which the root of D matters."""
    H_kv, D_v, E_k, E_v = (x or y for x, y in ((H_kv, H), (D_v, D), (E_k, E), (E_v, E_k or E)))
    shapes = {"W_Q": (E, H * D), "W_K": (E_k, H_kv * D), "W_V": (E_v, H_kv * D_v), "W_O": (H * D_v, E)}
    arrays = {name: 1.5 * rng.standard_normal(shape) / shape[0] ** 0.5 for name, shape in shapes.items()}
    arrays |= {f"b_{n}": rng.standard_normal(shapes[f"W_{n}"][1]) for n in biases}
    return call(H, **arrays, then=then)


def _x(rng, *shape):
    return rng.standard_normal(shape)


def _alone(rng):
    """L = H = D with E = H*D (where no shape complains), one head, one token, E and D_v of their own, large scores."""
    sizes = ((4, 2, 2, 2, 2), (4, 1, 4, 4, 3), (16, 4, 4, 4, 4), (6, 2, 3, 3, 1), (5, 3, 4, 4, 2), (8, 2, 4, 3, 6))
    large = 1000 * _x(rng, 4, 8)
    large[0] = 0  # so that no row has negative scores only
    return [
        *(_made(rng, E=E, H=H, D=D, D_v=D_v, then=call(query=_x(rng, L, E))) for E, H, D, D_v, L in sizes),
        _made(rng, E=8, H=2, D=4, then=call(query=large)),
    ]


def _biased(rng):
    """All four biases, and only some of them."""
    return [_made(rng, E=E, H=H, D=D, biases="QKVO", then=call(query=_x(rng, L, E)))
            for E, H, D, L in ((4, 2, 2, 2), (9, 3, 3, 3), (8, 2, 3, 5))] + [
                _made(rng, E=4, H=2, D=2, biases=some, then=call(query=_x(rng, 3, 4))) for some in ("Q", "V", "KO")]  # fmt: skip


def _across(rng):
    """L = S (where a wrong source fits), L != S, another width of the memory, values given by themselves, without a key too."""
    return [
        _made(rng, E=4, H=2, D=2, then=call(query=_x(rng, 2, 4), key=_x(rng, 2, 4))),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 3, 8), key=_x(rng, 3, 8))),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 2, 8), key=_x(rng, 5, 8))),
        _made(rng, E=4, H=2, D=2, then=call(query=_x(rng, 3, 4), key=_x(rng, 3, 4), value=_x(rng, 3, 4))),
        _made(rng, E=4, H=2, D=2, then=call(query=_x(rng, 3, 4), value=_x(rng, 3, 4))),
        _made(rng, E=6, H=2, D=3, E_k=5, E_v=7, then=call(query=_x(rng, 4, 6), key=_x(rng, 3, 5), value=_x(rng, 3, 7))),
    ]


def _batched(rng):
    return [
        _made(rng, E=4, H=2, D=2, then=call(query=_x(rng, 2, 2, 4))),
        _made(rng, E=6, H=3, D=2, then=call(query=_x(rng, 4, 3, 6))),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 2, 1, 3, 8))),
    ]


def _masked(rng):
    """A triangle, padding of a batch, a mask for each head, a row for all queries, a mask for each sentence, for both, a low score."""
    sentences, both = rng.random((2, 1, 4, 4)) > 0.4, rng.random((2, 3, 4, 4)) > 0.4
    sentences[..., 0] = both[..., 2] = True
    sentences[:, 0, :2, 1:3] = both[0, :2, 0, :2] = np.eye(2, dtype=bool)  # no two rows, sentences or heads alike
    both[1, :, 0, :2], both[:, 2, 0, :2] = np.array([[True, True]]), np.array([[False, False], [False, True]])
    first = np.array([[0.0, 1], [0, 0]])  # reads the first column alone
    low = call(1, first, -first, np.eye(2), np.eye(2), then=call(
        query=np.array([[1e3, 2], [0, 1]]), mask=np.array([[True, False], [True, True]])))  # fmt: skip
    each = rng.random((2, 4, 4)) > 0.4
    each[:, :, 1], each[0, 2] = True, [True, False, False, True]
    return [
        _made(rng, E=4, H=2, D=2, then=call(query=_x(rng, 3, 4), mask=causal_mask(3))),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 3, 4, 8), mask=padding_mask(np.array([2, 4, 1]), 4))),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 4, 8), mask=each)),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 3, 8), mask=np.array([True, False, True]))),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 2, 4, 8), mask=sentences)),
        _made(rng, E=9, H=3, D=3, then=call(query=_x(rng, 2, 4, 9), mask=both)),
        low,
    ]


def _seeing_nothing(rng):
    empty = rng.random((2, 4, 4)) > 0.4
    empty[:, 1], empty[0, 2] = False, [True, False, False, True]
    return [
        _made(rng, E=4, H=2, D=2, then=call(query=_x(rng, 2, 4), mask=np.array([[True, False], [False, False]]))),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 4, 8), mask=empty)),
    ]


def _grouped(rng):
    return [
        _made(rng, E=8, H=4, D=2, H_kv=2, then=call(query=_x(rng, 3, 8))),
        _made(rng, E=12, H=6, D=2, H_kv=3, then=call(query=_x(rng, 3, 12))),
        _made(rng, E=8, H=4, D=2, H_kv=1, then=call(query=_x(rng, 4, 8))),
        _made(rng, E=6, H=4, D=3, H_kv=2, D_v=2, then=call(query=_x(rng, 5, 6))),
    ]


def _showing(rng):
    return [
        _made(rng, E=4, H=2, D=2, then=call(query=_x(rng, 2, 4), return_weights=True)),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 3, 8), return_weights=True)),
        _made(rng, E=16, H=4, D=4, then=call(query=_x(rng, 4, 16), return_weights=True)),
        _made(rng, E=8, H=2, D=4, then=call(query=_x(rng, 3, 8), mask=causal_mask(3), return_weights=True)),
    ]


def _unannounced(rng):
    lengths, empty = padding_mask(np.array([6, 3]), 7), np.ones((5, 3), dtype=bool)
    empty[2] = False
    return [
        _made(rng, E=8, H=4, D=2, H_kv=2, then=call(query=_x(rng, 2, 3, 8))),
        _made(
            rng, E=15, H=5, D=3, biases="QKVO", then=call(query=_x(rng, 2, 5, 15), key=_x(rng, 2, 7, 15), mask=lengths)
        ),
        _made(rng, E=9, H=9, D=1, H_kv=3, biases="O", then=call(query=_x(rng, 9, 9), mask=causal_mask(9))),
        _made(rng, E=25, H=5, D=5, biases="QKVO", then=call(query=_x(rng, 5, 5, 25), return_weights=True)),
        _made(
            rng,
            E=6,
            H=4,
            D=3,
            H_kv=2,
            D_v=2,
            biases="QKVO",
            then=call(query=_x(rng, 5, 6), key=_x(rng, 3, 6), mask=empty),
        ),
    ]


# --------------------------------------------------------------------------------------------------------------- q4, the real layer
NAMES = ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")


@cache
def _real(layer=MultiHeadAttention, sentence=0):
    """Output (16, 384) and weights (12, 16, 16) of the real layer on its sentence."""
    stored = load_layer(sentence)
    mha = layer(stored.num_heads, **{name: getattr(stored, name).astype(float) for name in NAMES})
    return mha(stored.x.astype(float), return_weights=True)


def _real_mistake(name):
    return lambda: _real(WRONG_LAYERS[name])


REAL = (
    "no_scale", "divided_by_d_k", "divided_by_sqrt_d_model", "query_and_key_swapped", "keys_as_values", "bias_forgotten",
    "split_without_transpose", "split_in_turn", "merge_without_transpose", "heads_averaged",
    "output_projection_missing", "output_projection_transposed", "output_bias_forgotten",
)  # fmt: skip


EXERCISE = Exercise(
    "10_multihead",
    "The whole layer",
    offers=("project", "softmax", "causal_mask", "padding_mask"),
    questions=(
        value(
            "q1", "mice_reads_cats", _memory_of_cats, 1,
            mistakes={
                "output_projection_missing": lambda: _memory_of_cats(W_O=np.eye(8)),
                "output_projection_transposed": lambda: _memory_of_cats(W_O=load_pencil().W_O.T),
                "cross_attention_to_itself": lambda: _memory_of_cats(word=2),
            },
            slips={
                "rows_added": ("The four rows are added up: the weights of a query sum to 1, so this is a mean.",
                               lambda: 4 * _memory_of_cats()),
                "a_quarter": ("This is the part of one row of the memory: there are four, and their weights sum to 1.",
                              lambda: _memory_of_cats() / 4),
            },
        ),
        Question(
            "q2", "for_each_query_head", for_each_query_head,
            parts=(
                Part("one sentence, any group", 2, _groups),
                Part("leading axes for a batch", 1, _batches_of_groups),
                Part("sizes that are not announced", 1, lambda rng: [
                    call(_x(rng, 2, 5, 3, 4), 15), call(_x(rng, 4, 4, 4), 16)], hidden=True),
                untouched(),
            ),
            mistakes={"key_heads_tiled": _tiled},
            slips={
                "repeated_too_often": (
                    "Each key head comes num_heads times: it serves only its group, num_heads / H_kv query heads.",
                    lambda x, num_heads: np.repeat(x, num_heads, axis=-3)),
                "first_axis_repeated": (
                    "The first axis is repeated: with a batch that is the batch; the heads stand on axis -3.",
                    lambda x, num_heads: np.repeat(x, num_heads // x.shape[-3], axis=0)),
                "tokens_repeated": ("The tokens are repeated: the heads stand on axis -3.",
                                    lambda x, num_heads: np.repeat(x, num_heads // x.shape[-3], axis=-2)),
                "first_key_head_for_all": (
                    "Every query head reads key head 0: a group of num_heads / H_kv query heads shares one.",
                    lambda x, num_heads: np.repeat(x[..., :1, :, :], num_heads, axis=-3)),
            },
        ),
        Question(
            "q3", "MultiHeadAttention", MultiHeadAttention,
            parts=(
                Part("self-attention", 2, _alone),
                Part("biases", 1, _biased),
                Part("cross-attention", 2, _across),
                Part("a batch", 1, _batched),
                Part("masks", 1, _masked),
                Part("a query that may attend to nothing", 1, _seeing_nothing),
                Part("fewer key heads than query heads", 2, _grouped),
                Part("the weights, where they are asked for", 1, _showing),
                Part("all together, in sizes that are not announced", 2, _unannounced, hidden=True),
                untouched(),
            ),
            mistakes=WRONG_LAYERS,
            slips=OWN_WRONG_LAYERS,
        ),
        value(
            "q4", "layer_3", _real, 4, tolerance=1e-5,
            mistakes={name: _real_mistake(name) for name in REAL},
            slips={
                "all_biases_forgotten": ("The four biases of the real layer are missing.",
                                         lambda: _real(OWN_WRONG_LAYERS["all_biases_forgotten"][1])),
                "value_bias_forgotten": ("b_V is missing: the weights are right, and no row of the output is.",
                                         lambda: _real(OWN_WRONG_LAYERS["value_bias_forgotten"][1])),
                "transpose_forgotten_twice": (
                    "Neither the split nor the merge swaps heads and tokens: each head has pieces of several tokens.",
                    lambda: _real(OWN_WRONG_LAYERS["transpose_forgotten_twice"][1])),
                "another_sentence": ("This is the sentence about the street that was too wide; sentence 0 is asked.",
                                     lambda: _real(sentence=1)),
                "weights_averaged": (
                    "The output is right, and the weights are the mean of the twelve heads: keep the heads apart.",
                    lambda: (_real()[0], _real()[1].mean(0))),
                "weights_first": ("Output and weights have changed places: the output comes first.",
                                  lambda: _real()[::-1]),
                "added_to_x": (
                    "The input is added to the output: that is the residual stream, behind the layer. The layer is asked.",
                    lambda: (_real()[0] + load_layer().x, _real()[1])),
            },
        ),
    ),
)  # fmt: skip
