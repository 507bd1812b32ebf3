"""The known wrong ways, in one place: each a function, one sentence of diagnosis, and the section that explains it.

Every mistake takes the arguments of the right function that it replaces (`mistake.of` names it) and computes what people who make
that mistake compute. The chapters show them failing, the page of common mistakes lists them, and every check must reject them.

>>> MISTAKES["no_scale"].of, MISTAKES["no_scale"].section
('scaled_dot_product_attention', '04_scores#what-goes-wrong')
>>> no_scale([[2.0]], [[1.0], [1.0]], [[0.0], [4.0]])
array([[2.]])
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import numpy as right


@dataclass(frozen=True)
class Mistake:
    """A wrong function; calling it computes the wrong result."""

    name: str
    of: str
    diagnosis: str
    section: str
    function: Any

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


MISTAKES = {}


def _mistake(of, section, diagnosis):
    """Register the decorated function under its own name."""

    def register(function):
        mistake = Mistake(function.__name__, of, diagnosis, f"{section}#what-goes-wrong", function)
        MISTAKES[mistake.name] = mistake
        return mistake

    return register


# ------------------------------------------------------------------------------------------------------ embedding, projection
@_mistake(
    "layer_norm",
    "02_embedding",
    "The mean and variance run over the tokens; LayerNorm takes them per token, over its features.",
)
def norm_over_tokens(x, weight=None, bias=None, eps=1e-5):
    normal = (x - x.mean(-2, keepdims=True)) / np.sqrt(x.var(-2, keepdims=True) + eps)
    return normal * (1 if weight is None else weight) + (0 if bias is None else bias)


@_mistake(
    "project",
    "03_projection",
    "The weight is transposed: nn.Linear stores (out, in), this book multiplies from the right by (in, out).",
)
def weight_transposed(x, weight, bias=None):
    return right.project(x, np.swapaxes(weight, -1, -2), bias)


@_mistake("project", "03_projection", "The bias of the projection is forgotten.")
def bias_forgotten(x, weight, bias=None):
    return right.project(x, weight)


# --------------------------------------------------------------------------------------------------------------------- softmax
@_mistake(
    "softmax",
    "05_softmax",
    "The softmax ran over axis -2: the weights of a key over the queries sum to 1, those of a query do not.",
)
def softmax_over_queries(x, axis=-1):
    return right.softmax(x, axis=-2)


@_mistake(
    "softmax",
    "05_softmax",
    "The softmax ran over the whole matrix: all weights together sum to 1, not those of each query.",
)
def softmax_over_everything(x, axis=-1):
    return right.softmax(np.ravel(x)).reshape(np.shape(x))


@_mistake(
    "softmax", "05_softmax", "The row maximum is not subtracted: exp overflows for large scores, and inf / inf is NaN."
)
def softmax_without_maximum(x, axis=-1):
    with np.errstate(over="ignore", invalid="ignore"):
        e = np.exp(x)
        return e / e.sum(axis, keepdims=True)


@_mistake(
    "softmax",
    "05_softmax",
    "The scores are divided by their sum without exp: negative weights appear, and a sum near 0 explodes.",
)
def normalised_without_exp(x, axis=-1):
    x = np.asarray(x, dtype=float)
    with np.errstate(divide="ignore", invalid="ignore"):
        return x / x.sum(axis, keepdims=True)


# ------------------------------------------------------------------------------------------------------------------- attention
def _attend(query, key, value, mask, is_causal, return_weights, *, scale=None, softmax=right.softmax, scores=None):
    """Attention from its parts, for the mistakes that change one of them."""
    if scores is None:
        scores = right.attention_scores(query, key, mask=mask, is_causal=is_causal, scale=scale)
    weights = softmax(scores)
    output = weights @ np.asarray(value)
    return (output, weights) if return_weights else output


def _all_masks(query, key, mask, is_causal):
    """Mask and triangle as one boolean array (L, S) or larger."""
    L, S = np.shape(query)[-2], np.shape(key)[-2]
    allowed = right.causal_mask(L, S) if is_causal else np.ones((L, S), bool)
    return allowed if mask is None else allowed & mask


_SDPA = "scaled_dot_product_attention"


@_mistake(
    _SDPA, "04_scores", "The scores are not divided by sqrt(d_k): the wider the head, the more weight falls on one key."
)
def no_scale(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return _attend(query, key, value, mask, is_causal, return_weights, scale=1.0)


@_mistake(_SDPA, "04_scores", "The scores are divided by d_k, not by its square root: the weights are too even.")
def divided_by_d_k(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return _attend(query, key, value, mask, is_causal, return_weights, scale=1 / np.shape(query)[-1])


@_mistake(
    _SDPA,
    "04_scores",
    "The scores are divided by sqrt(d_model), not by the root of the width of one head: the weights are too even.",
)
def divided_by_sqrt_d_model(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    d_model = np.shape(query)[-1] * (np.shape(query)[-3] if np.ndim(query) > 2 else 1)
    return _attend(query, key, value, mask, is_causal, return_weights, scale=1 / np.sqrt(d_model))


@_mistake(_SDPA, "04_scores", "The scores are K Q^T: queries and keys have changed places.")
def query_and_key_swapped(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return _attend(key, query, value, mask, is_causal, return_weights)


@_mistake(
    _SDPA, "05_softmax", "The softmax ran over the heads: for each query and key the weights of all heads sum to 1."
)
def softmax_over_heads(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return _attend(query, key, value, mask, is_causal, return_weights, softmax=lambda x: right.softmax(x, axis=-3))


@_mistake(
    _SDPA, "06_masks", "The mask is inverted: here True means may attend, in nn.MultiheadAttention it means may not."
)
def mask_inverted(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return _attend(query, key, value, ~_all_masks(query, key, mask, is_causal), False, return_weights)


@_mistake(_SDPA, "06_masks", "The mask is multiplied in after the softmax: the rows no longer sum to 1.")
def mask_after_softmax(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    allowed = _all_masks(query, key, mask, is_causal)
    return _attend(query, key, value, None, False, return_weights, softmax=lambda x: right.softmax(x) * allowed)


@_mistake(
    _SDPA,
    "06_masks",
    "The boolean mask is added to the scores as 0 and 1: it favours the allowed keys a little and blocks none.",
)
def mask_added(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = right.attention_scores(query, key) + _all_masks(query, key, mask, is_causal)
    return _attend(query, key, value, None, False, return_weights, scores=scores)


@_mistake(_SDPA, "06_masks", "Masked scores are multiplied by 0, not set to -inf: a score of 0 still gets weight.")
def mask_multiplied(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = right.attention_scores(query, key) * _all_masks(query, key, mask, is_causal)
    return _attend(query, key, value, None, False, return_weights, scores=scores)


@_mistake(
    _SDPA,
    "06_masks",
    "Masked scores are set to a large negative number: a query with nothing to attend to attends to all keys alike.",
)
def mask_with_finite_value(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    scores = np.where(_all_masks(query, key, mask, is_causal), right.attention_scores(query, key), -1e9)
    return _attend(query, key, value, None, False, return_weights, scores=scores)


@_mistake(_SDPA, "06_masks", "A query with nothing to attend to becomes NaN: its softmax divides 0 by 0.")
def masked_row_is_nan(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    def softmax(x):
        with np.errstate(invalid="ignore"):
            e = np.exp(x - x.max(-1, keepdims=True))
            return e / e.sum(-1, keepdims=True)

    return _attend(query, key, value, mask, is_causal, return_weights, softmax=softmax)


@_mistake(_SDPA, "06_masks", "The mask is ignored.")
def mask_ignored(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return _attend(query, key, value, None, False, return_weights)


@_mistake(
    "causal_mask",
    "06_masks",
    "The triangle is shifted by one: each query also sees the next token, which it should predict.",
)
def causal_mask_sees_next(L, S=None, offset=0):
    return right.causal_mask(L, S, offset + 1)


@_mistake(
    "causal_mask",
    "06_masks",
    "The triangle is shifted by one: no query sees its own token, and the first sees nothing.",
)
def causal_mask_hides_itself(L, S=None, offset=0):
    return right.causal_mask(L, S, offset - 1)


@_mistake("causal_mask", "06_masks", "The triangle is transposed: each query sees the future and not the past.")
def causal_mask_transposed(L, S=None, offset=0):
    return np.arange(L if S is None else S) >= offset + np.arange(L)[:, None]


@_mistake("padding_mask", "06_masks", "The mask hides the tokens and shows the padding: here True means may attend.")
def padding_mask_inverted(lengths, S):
    return ~right.padding_mask(lengths, S)


@_mistake(
    "padding_mask",
    "06_masks",
    "One padding token too many is visible: the positions of a sequence of length n are 0 .. n - 1.",
)
def padding_mask_shifted(lengths, S):
    return right.padding_mask(np.minimum(np.asarray(lengths) + 1, S), S)


@_mistake(_SDPA, "07_attention", "The weights are applied to the keys: the output is a mean of keys, not of values.")
def keys_as_values(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    return _attend(query, key, key, mask, is_causal, return_weights)


@_mistake(
    _SDPA,
    "07_attention",
    "The weights are transposed before they meet the values: each key collects what belongs to the queries.",
)
def weights_transposed(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    weights = right.softmax(right.attention_scores(query, key, mask=mask, is_causal=is_causal))
    output = weights.swapaxes(-1, -2) @ np.asarray(value)
    return (output, weights) if return_weights else output


@_mistake(
    _SDPA,
    "10_multihead",
    "The key heads are tiled (0, 1, 0, 1), not repeated (0, 0, 1, 1): query heads read the wrong key head.",
)
def key_heads_tiled(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    group = np.shape(query)[-3] // np.shape(key)[-3]
    key, value = (np.concatenate([x] * group, axis=-3) for x in (key, value))
    return _attend(query, key, value, mask, is_causal, return_weights)


# ----------------------------------------------------------------------------------------------------------------------- heads
@_mistake(
    "split_heads",
    "08_heads",
    "The heads are split by reshape alone, without a transpose: a head gets pieces of several tokens.",
)
def split_without_transpose(x, num_heads):
    x = np.asarray(x)
    return x.reshape(*x.shape[:-2], num_heads, x.shape[-2], x.shape[-1] // num_heads)


@_mistake(
    "split_heads",
    "08_heads",
    "The features are dealt out in turn: head m must get the slice m*D .. (m+1)*D, not every H-th feature.",
)
def split_in_turn(x, num_heads):
    x = np.asarray(x)
    return np.moveaxis(x.reshape(*x.shape[:-1], x.shape[-1] // num_heads, num_heads), -1, -3)


@_mistake(
    "merge_heads",
    "08_heads",
    "The heads are merged by reshape alone, without a transpose: a row gets pieces of several tokens.",
)
def merge_without_transpose(x):
    x = np.asarray(x)
    return x.reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])


@_mistake("merge_heads", "09_output", "The heads are averaged: concatenation keeps them apart, and W_O weighs them.")
def heads_averaged(x):
    x = np.asarray(x)
    return np.concatenate([x.mean(-3)] * x.shape[-3], axis=-1)


# ------------------------------------------------------------------------------------------------------------- the whole layer
def _layer(mha, query, key, value, mask, *, W_O=None, b_O=None):
    """The layer's output from its heads, with another output projection."""
    trace = mha.trace(query, key, value, mask=mask)
    return right.project(trace.concat, mha.W_O if W_O is None else W_O, b_O)


_MHA = "MultiHeadAttention"


@_mistake(_MHA, "09_output", "W_O is missing: the output is the concatenated heads.")
def output_projection_missing(mha, query, key=None, value=None, *, mask=None):
    return mha.trace(query, key, value, mask=mask).concat


@_mistake(_MHA, "09_output", "W_O is transposed.")
def output_projection_transposed(mha, query, key=None, value=None, *, mask=None):
    return _layer(mha, query, key, value, mask, W_O=mha.W_O.T, b_O=mha.b_O)


@_mistake(_MHA, "09_output", "The output bias b_O is forgotten.")
def output_bias_forgotten(mha, query, key=None, value=None, *, mask=None):
    return _layer(mha, query, key, value, mask)


def _with_weights(mha, **weights):
    """A copy of the layer in which some weights are others."""
    copy = object.__new__(type(mha))
    vars(copy).update(vars(mha), **weights)
    return copy


@_mistake(_MHA, "08_heads", "All heads share the projections of the first: each head must have columns of its own.")
def one_projection_for_all_heads(mha, query, key=None, value=None, *, mask=None):
    first = {f"W_{n}": np.tile(getattr(mha, f"W_{n}")[:, : mha.head_dim], mha.num_heads) for n in "QKV"}
    if mha.b_Q is not None:
        first |= {f"b_{n}": np.tile(getattr(mha, f"b_{n}")[: mha.head_dim], mha.num_heads) for n in "QKV"}
    return _with_weights(mha, **first)(query, key, value, mask=mask)


@_mistake(
    _MHA,
    "08_heads",
    "The inputs are projected twice: in the formula of the paper Q, K, V are the layer's inputs, not yet projected.",
)
def projected_twice(mha, query, key=None, value=None, *, mask=None):
    key = query if key is None else key
    value = key if value is None else value
    once = [right.project(x, W, b) for x, W, b in
            ((query, mha.W_Q, mha.b_Q), (key, mha.W_K, mha.b_K), (value, mha.W_V, mha.b_V))]  # fmt: skip
    return mha(*once, mask=mask)


@_mistake(
    _MHA,
    "10_multihead",
    "Keys and values come from the query's sequence: cross-attention takes both from the other one.",
)
def cross_attention_to_itself(mha, query, key=None, value=None, *, mask=None):
    return mha(query)


@_mistake(
    _MHA,
    "10_multihead",
    "The values come from the query's sequence, the keys from the other one: both must come from there.",
)
def values_from_the_query(mha, query, key=None, value=None, *, mask=None):
    return mha(query, key, query, mask=mask)


# --------------------------------------------------------------------------------------------------------- gradients, positions
def _backward(grad_output, query, key, value, mask, is_causal, *, through_softmax=None, scaled=True, transposed=True):
    """The gradients of attention from their parts, for the mistakes that change one of them."""
    allowed = _all_masks(query, key, mask, is_causal)
    weights = right.softmax(right.attention_scores(query, key, mask=allowed))  # (..., L, S)
    turned = weights.swapaxes(-1, -2) if transposed else weights
    grad_weights = grad_output @ np.swapaxes(value, -1, -2)
    if through_softmax is None:
        grad_scores = weights * (grad_weights - (weights * grad_weights).sum(-1, keepdims=True))
    else:
        grad_scores = through_softmax(weights, grad_weights)
    scale = np.shape(query)[-1] ** -0.5 if scaled else 1
    return scale * grad_scores @ key, scale * grad_scores.swapaxes(-1, -2) @ query, turned @ grad_output


_BACKWARD = "scaled_dot_product_attention_backward"


@_mistake(
    _BACKWARD,
    "11_gradients",
    "The row sum of the softmax is missing: each score is pushed by its own gain, not by its gain over the row's mean.",
)
def row_sum_forgotten(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, through_softmax=lambda a, g: a * g)


@_mistake(
    _BACKWARD,
    "11_gradients",
    "Only the diagonal of the softmax's slope is used, a (1 - a): a score also moves the other weights of its row.",
)
def softmax_slope_diagonal(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, through_softmax=lambda a, g: a * (1 - a) * g)


@_mistake(
    _BACKWARD,
    "11_gradients",
    "The scale is missing in the gradients of query and key: what multiplies the scores multiplies their gradients too.",
)
def scale_forgotten_backwards(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, scaled=False)


@_mistake(
    _BACKWARD,
    "11_gradients",
    "The weights are not transposed in the gradient of the values: each value collects from the queries that read it.",
)
def weights_not_transposed_backwards(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, mask, is_causal, transposed=False)


@_mistake(
    _BACKWARD,
    "11_gradients",
    "The mask is missing in the backward pass: gradients reach keys and values that the query never saw.",
)
def mask_forgotten_backwards(grad_output, query, key, value, *, mask=None, is_causal=False):
    return _backward(grad_output, query, key, value, None, False)


@_mistake(
    "sinusoidal_positions",
    "12_positions",
    "All sines come first, then all cosines: the paper alternates them, column 2i the sine and column 2i + 1 the cosine.",
)
def sines_before_cosines(L, E, offset=0):
    table = right.sinusoidal_positions(L, E, offset)
    return np.concatenate([table[:, 0::2], table[:, 1::2]], axis=-1)


@_mistake(
    "sinusoidal_positions",
    "12_positions",
    "Each column has a frequency of its own: a sine and the cosine beside it must share one.",
)
def frequency_of_each_column(L, E, offset=0):
    columns = np.arange(E)
    angles = (offset + np.arange(L))[:, None] * 10000.0 ** (-columns / E)
    return np.where(columns % 2, np.cos(angles), np.sin(angles))


@_mistake("sinusoidal_positions", "12_positions", "The offset is ignored: the first row always stands at position 0.")
def positions_start_at_0(L, E, offset=0):
    return right.sinusoidal_positions(L, E)


@_mistake(
    "rope",
    "12_positions",
    "The other convention is used: neighbours (2i, 2i + 1) are paired where the two halves (i, i + D/2) should be, or the reverse.",
)
def rope_of_the_other_convention(x, positions, *, base=10000.0, interleaved=True):
    return right.rope(x, positions, base=base, interleaved=not interleaved)


@_mistake(
    "rope",
    "12_positions",
    "The exponent is i / D, not 2i / D: the frequencies stop at the root of the base, and far positions turn too fast.",
)
def rope_exponent_halved(x, positions, *, base=10000.0, interleaved=True):
    return right.rope(x, positions, base=base**0.5, interleaved=interleaved)


@_mistake("alibi_bias", "12_positions", "The sign is flipped: the bias grows with the distance, and far keys win.")
def alibi_sign_flipped(H, L, S, offset=0):
    return 0.0 - right.alibi_bias(H, L, S, offset)


@_mistake("alibi_bias", "12_positions", "All heads have the first head's slope: each needs its own.")
def alibi_one_slope(H, L, S, offset=0):
    return np.repeat(right.alibi_bias(H, L, S, offset)[:1], H, axis=0)


@_mistake("alibi_bias", "12_positions", "The offset is ignored: the first query always stands at position 0.")
def alibi_starts_at_0(H, L, S, offset=0):
    return right.alibi_bias(H, L, S)


# ------------------------------------------------------------------------------------------------------------ the tiled loop
def _by_tiles(
    query, key, value, mask, is_causal, *, tile="running", sums=True, accumulator=True, divide=False, guard=True
):
    """Attention by tiles of two keys, for the mistakes that change one step of it."""
    scores = right.attention_scores(query, key, mask=mask, is_causal=is_causal)  # (..., L, S)
    value = np.asarray(value)
    m = np.full((*scores.shape[:-1], 1), -np.inf)
    d, o = np.zeros_like(m), np.zeros((*scores.shape[:-1], value.shape[-1]))
    with np.errstate(invalid="ignore"):
        for j in range(0, scores.shape[-1], 2):
            s = scores[..., j : j + 2]
            own = s.max(-1, keepdims=True)
            new = np.maximum(m, own)
            base, anchor = (np.where(x == -np.inf, 0, x) if guard else x for x in (new, own if tile == "own" else new))
            p, shrink = np.exp(s - anchor), np.exp(m - base)
            d = d * (shrink if sums else 1) + p.sum(-1, keepdims=True)
            seen = p @ value[..., j : j + 2, :]
            o = o * (shrink if accumulator else 1) + (
                seen / np.maximum(p.sum(-1, keepdims=True), 1e-300) if divide else seen
            )
            m = new
        return o / -(-scores.shape[-1] // 2) if divide else o / np.where(d == 0, 1, d)


_FLASH = "flash_attention"


@_mistake(_FLASH, "17_flash", "The sum is rescaled to a new maximum, the weighted values are not.")
def accumulator_not_rescaled(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, accumulator=False)


@_mistake(_FLASH, "17_flash", "Nothing is rescaled: tiles relative to different maxima are added up.")
def rescaled_nowhere(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, sums=False, accumulator=False)


@_mistake(_FLASH, "17_flash", "A tile is taken relative to its own maximum, not to the largest score so far.")
def maximum_of_the_tile(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, tile="own")


@_mistake(
    _FLASH, "17_flash", "Every tile is divided by its own sum, and the tiles are averaged: divide once, at the end."
)
def divided_in_every_tile(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, sums=False, accumulator=False, tile="own", divide=True)


@_mistake(_FLASH, "17_flash", "A tile without an allowed key makes NaN: its maximum is -inf, and -inf - (-inf) is NaN.")
def masked_tile_is_nan(query, key, value, *, mask=None, is_causal=False):
    return _by_tiles(query, key, value, mask, is_causal, guard=False)


# ---------------------------------------------------------------------------------------------------------------- with a cache
@_mistake(
    "causal_mask",
    "18_cache",
    "The offset is ignored: the triangle starts at the first key, where the new queries stand behind the cached ones.",
)
def causal_mask_top_left(L, S=None, offset=0):
    return right.causal_mask(L, S)


# ------------------------------------------------------------------------------------------------------- heads on two devices
def _on_two_devices(mha, query, key, value, mask, columns, rows=None):
    """The partial outputs of two devices. Device r has half of the heads; columns(r, name) -> its columns of W_<name>, as (W, b);
    rows(r) -> its rows of W_O."""
    half = mha.num_heads * mha.head_dim // 2
    outputs = []
    for rank in range(2):
        part = {"num_heads": mha.num_heads // 2, "num_kv_heads": mha.num_heads // 2, "b_O": None}
        for name in "QKV":
            part[f"W_{name}"], part[f"b_{name}"] = columns(rank, name)
        part["W_O"] = mha.W_O[rank * half : (rank + 1) * half] if rows is None else mha.W_O[rows(rank)]
        outputs.append(_with_weights(mha, **part)(query, key, value, mask=mask))
    return outputs


def _columns(mha, which):
    """columns(r, name) for `_on_two_devices` from which(r): an index of columns."""

    def columns(rank, name):
        bias = getattr(mha, f"b_{name}")
        return getattr(mha, f"W_{name}")[:, which(rank)], None if bias is None else bias[which(rank)]

    return columns


def _halves(mha):
    half = mha.num_heads * mha.head_dim // 2
    return lambda rank: slice(rank * half, (rank + 1) * half)


def _plus(output, b_O, times=1):
    return output if b_O is None else output + times * b_O


@_mistake(_MHA, "20_parallel", "Every device adds b_O to its part: it belongs to the sum, once.")
def output_bias_on_every_device(mha, query, key=None, value=None, *, mask=None):
    parts = _on_two_devices(mha, query, key, value, mask, _columns(mha, _halves(mha)))
    return _plus(sum(parts), mha.b_O, times=2)


@_mistake(
    _MHA,
    "20_parallel",
    "The columns are dealt to the devices in turn: a device must get whole heads, columns side by side.",
)
def columns_dealt_in_turn(mha, query, key=None, value=None, *, mask=None):
    def in_turn(rank):
        return slice(rank, None, 2)

    return _plus(sum(_on_two_devices(mha, query, key, value, mask, _columns(mha, in_turn), in_turn)), mha.b_O)


@_mistake(
    _MHA,
    "20_parallel",
    "The packed matrix of W_Q, W_K and W_V is cut straight through: a device gets the queries of some heads and the keys of others.",
)
def packed_matrix_cut_through(mha, query, key=None, value=None, *, mask=None):
    half = mha.num_heads * mha.head_dim // 2
    packed = np.concatenate([mha.W_Q, mha.W_K, mha.W_V], axis=-1)
    bias = None if mha.b_Q is None else np.concatenate([mha.b_Q, mha.b_K, mha.b_V])

    def columns(rank, name):
        start = (3 * rank + "QKV".index(name)) * half
        return packed[:, start : start + half], None if bias is None else bias[start : start + half]

    return _plus(sum(_on_two_devices(mha, query, key, value, mask, columns)), mha.b_O)


@_mistake(_MHA, "20_parallel", "A device has the rows of W_O that belong to the heads of another.")
def output_rows_of_another_device(mha, query, key=None, value=None, *, mask=None):
    rows = _halves(mha)
    return _plus(
        sum(_on_two_devices(mha, query, key, value, mask, _columns(mha, rows), lambda rank: rows(1 - rank))), mha.b_O
    )


@_mistake(_MHA, "20_parallel", "The devices' parts are averaged: they are terms of a sum.")
def parts_averaged(mha, query, key=None, value=None, *, mask=None):
    return _plus(sum(_on_two_devices(mha, query, key, value, mask, _columns(mha, _halves(mha)))) / 2, mha.b_O)


@_mistake(_MHA, "20_parallel", "The parts are not added up: each device goes on with what its own heads add.")
def parts_not_added_up(mha, query, key=None, value=None, *, mask=None):
    return _plus(_on_two_devices(mha, query, key, value, mask, _columns(mha, _halves(mha)))[0], mha.b_O)


def _two_blocks(x):
    """The scores of two blocks of keys."""
    return np.array_split(x, 2, axis=-1)


@_mistake(
    _SDPA,
    "20_parallel",
    "The outputs of the blocks of keys are averaged: a block counts by its share of the exponentials.",
)
def blocks_averaged(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    def softmax(x):
        return np.concatenate([right.softmax(part) / 2 for part in _two_blocks(x)], axis=-1)

    return _attend(query, key, value, mask, is_causal, return_weights, softmax=softmax)


@_mistake(
    _SDPA,
    "20_parallel",
    "The sums of two blocks are added as they are: each is relative to its own maximum, and must be brought to the common one.",
)
def blocks_without_rescaling(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    def softmax(x):
        top = [part.max(-1, keepdims=True, initial=-np.inf) for part in _two_blocks(x)]
        e = np.concatenate(
            [np.exp(part - np.where(t == -np.inf, 0, t)) for part, t in zip(_two_blocks(x), top, strict=True)], axis=-1
        )
        total = e.sum(-1, keepdims=True)
        return e / np.where(total == 0, 1, total)

    return _attend(query, key, value, mask, is_causal, return_weights, softmax=softmax)
