"""Answers to 10_multihead."""

import numpy as np

from mha_lib.data import load_layer
from mha_lib.questions.multihead import NAMES, _real


def _softmax(x):
    largest = x.max(axis=-1, keepdims=True)
    e = np.exp(x - np.where(np.isfinite(largest), largest, 0))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


# ------------------------------------------------------------------------------------------------------------------- q2, right
def repeats(x, num_heads):
    return x.repeat(num_heads // x.shape[-3], axis=-3)


def by_index(x, num_heads):
    group = num_heads // x.shape[-3]
    return x[..., [m // group for m in range(num_heads)], :, :]


def by_broadcasting(x, num_heads):
    *batch, H_kv, S, D = x.shape
    group = num_heads // H_kv
    return np.broadcast_to(x[..., :, None, :, :], (*batch, H_kv, group, S, D)).reshape(*batch, num_heads, S, D)


def stacks_one_by_one(x, num_heads):
    group = num_heads // x.shape[-3]
    return np.stack([x[..., m // group, :, :] for m in range(num_heads)], axis=-3)


# ------------------------------------------------------------------------------------------------------------------- q2, wrong
def tiles(x, num_heads):
    group = num_heads // x.shape[-3]
    return np.concatenate([x for _ in range(group)], axis=-3)


def takes_the_remainder(x, num_heads):
    return x[..., np.arange(num_heads) % x.shape[-3], :, :]


def repeats_num_heads_times(x, num_heads):
    return np.repeat(x, num_heads, axis=-3)


def repeats_axis_0(x, num_heads):
    return np.repeat(x, num_heads // x.shape[-3], axis=0)


def repeats_tokens(x, num_heads):
    return np.repeat(x, num_heads // x.shape[-3], axis=-2)


def gives_all_the_first(x, num_heads):
    return np.stack([x[..., 0, :, :]] * num_heads, axis=-3)


def leaves_it_to_broadcasting(x, num_heads):
    return x


def repeats_without_an_axis(x, num_heads):
    return np.repeat(x, num_heads // x.shape[-3])


def divides_by_num_kv_heads(x, num_heads):
    return x[..., [m // x.shape[-3] for m in range(num_heads)], :, :]


def gives_a_list(x, num_heads):
    group = num_heads // x.shape[-3]
    return [x[..., m // group, :, :] for m in range(num_heads)]


def empties_its_input(x, num_heads):
    result = np.repeat(x, num_heads // x.shape[-3], axis=-3)
    x *= 0
    return result


# ------------------------------------------------------------------------------------------------------------------- q3, right
class Keeps:
    """What every class here begins with: the constructor of the stub."""

    def __init__(self, num_heads, W_Q, W_K, W_V, W_O, b_Q=None, b_K=None, b_V=None, b_O=None):
        self.num_heads = num_heads
        self.W_Q, self.W_K, self.W_V, self.W_O = W_Q, W_K, W_V, W_O
        self.b_Q, self.b_K, self.b_V, self.b_O = b_Q, b_K, b_V, b_O


class TwentyLines(Keeps):
    """The straight way, in small methods so that the wrong ones below can differ in one line."""

    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        key, value = self.fill_in(query, key, value)
        D = self.W_Q.shape[1] // self.num_heads
        kv_heads = self.W_K.shape[1] // D
        q = self.cut(self.add(query @ self.W_Q, self.b_Q), self.num_heads)
        k = self.cut(self.add(key @ self.W_K, self.b_K), kv_heads)
        v = self.cut(self.add(value @ self.W_V, self.b_V), kv_heads)
        k, v = (self.share(x, self.num_heads // kv_heads) for x in (k, v))
        weights = self.attend(q, k, mask)
        output = self.finish(self.join(weights @ v))
        return (output, weights) if return_weights else output

    def fill_in(self, query, key, value):
        if key is None:
            key = query
        if value is None:
            value = key
        return key, value

    def add(self, rows, bias):
        return rows if bias is None else rows + bias

    def cut(self, rows, heads):
        return rows.reshape(*rows.shape[:-1], heads, -1).swapaxes(-3, -2)

    def share(self, x, group):
        return np.repeat(x, group, axis=-3)

    def scores(self, q, k):
        return q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])

    def attend(self, q, k, mask):
        scores = self.scores(q, k)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        return _softmax(scores)

    def join(self, heads):
        rows = heads.swapaxes(-3, -2)
        return rows.reshape(*rows.shape[:-2], -1)

    def finish(self, concat):
        return self.add(concat @ self.W_O, self.b_O)


class HeadByHead(Keeps):
    """A loop over the heads that adds up what each one brings; no array ever has an axis of heads but the weights."""

    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        H, D = self.num_heads, self.W_Q.shape[1] // self.num_heads
        group = H * D // self.W_K.shape[1]
        D_v = self.W_O.shape[0] // H
        output, maps = np.zeros(self.W_O.shape[1]) if self.b_O is None else self.b_O, []
        for m in range(H):
            own, shared = slice(m * D, m * D + D), slice(m // group * D, m // group * D + D)
            values = slice(m // group * D_v, m // group * D_v + D_v)
            q = query @ self.W_Q[:, own] + (0 if self.b_Q is None else self.b_Q[own])
            k = key @ self.W_K[:, shared] + (0 if self.b_K is None else self.b_K[shared])
            v = value @ self.W_V[:, values] + (0 if self.b_V is None else self.b_V[values])
            scores = q @ np.swapaxes(k, -1, -2) * D**-0.5
            if mask is not None:
                allowed = np.broadcast_to(mask, (*scores.shape[:-2], H, *scores.shape[-2:]))[..., m, :, :]
                scores = np.where(allowed, scores, -np.inf)
            maps.append(_softmax(scores))
            output = output + maps[-1] @ v @ self.W_O[m * D_v : m * D_v + D_v]
        return (output, np.stack(maps, axis=-3)) if return_weights else output


class InLetters(Keeps):
    """Everything by einsum, the groups as an axis g of their own."""

    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        H, E = self.num_heads, self.W_O.shape[1]
        D = self.W_Q.shape[1] // H
        N = self.W_K.shape[1] // D  # key heads

        def rows(x, W, b, *shape):
            y = np.einsum("...e,ef->...f", x, W)
            return (y if b is None else y + b).reshape(*y.shape[:-1], *shape)

        q = rows(query, self.W_Q, self.b_Q, N, H // N, D)
        k, v = rows(key, self.W_K, self.b_K, N, D), rows(value, self.W_V, self.b_V, N, -1)
        scores = np.einsum("...lngd,...snd->...ngls", q, k) / D**0.5
        scores = scores.reshape(*scores.shape[:-4], H, *scores.shape[-2:])
        if mask is not None:
            scores = scores + np.where(mask, 0, -np.inf)
        weights = _softmax(scores)
        grouped = weights.reshape(*weights.shape[:-3], N, H // N, *weights.shape[-2:])
        heads = np.einsum("...ngls,...snd->...lngd", grouped, v)
        output = np.einsum("...lngd,ngde->...le", heads, self.W_O.reshape(N, H // N, -1, E))
        output = output if self.b_O is None else output + self.b_O
        return (output, weights) if return_weights else output


def makes_a_function(num_heads, W_Q, W_K, W_V, W_O, b_Q=None, b_K=None, b_V=None, b_O=None):
    """No class at all: what is made is a function."""
    b_Q, b_V, b_O = (
        np.zeros(W.shape[1]) if b is None else b for W, b in zip((W_Q, W_V, W_O), (b_Q, b_V, b_O), strict=True)
    )

    def call(query, key=None, value=None, mask=None, return_weights=False):
        key = query if key is None else key
        value = key if value is None else value
        kv_heads = num_heads * W_K.shape[1] // W_Q.shape[1]
        q = np.stack(np.split(query @ W_Q + b_Q, num_heads, axis=-1), axis=-3)
        k = np.stack(
            np.split(key @ W_K, kv_heads, axis=-1), axis=-3
        )  # b_K shifts whole rows of scores: no weight changes
        v = np.stack(np.split(value @ W_V + b_V, kv_heads, axis=-1), axis=-3)
        read = np.arange(num_heads) * kv_heads // num_heads
        k, v = k[..., read, :, :], v[..., read, :, :]
        scores = np.matmul(q, np.moveaxis(k, -1, -2)) / q.shape[-1] ** 0.5
        weights = _softmax(scores if mask is None else np.where(mask, scores, -np.inf))
        heads = weights @ v
        output = np.concatenate([heads[..., m, :, :] for m in range(num_heads)], axis=-1) @ W_O + b_O
        return (output, weights) if return_weights else output

    return call


# ------------------------------------------------------------------------------------------------------------------- q3, wrong
class NoRoot(TwentyLines):
    def scores(self, q, k):
        return q @ k.swapaxes(-1, -2)


class NoSquareRoot(TwentyLines):
    def scores(self, q, k):
        return q @ k.swapaxes(-1, -2) / k.shape[-1]


class RootOfAllColumns(TwentyLines):
    def scores(self, q, k):
        return q @ k.swapaxes(-1, -2) / np.sqrt(self.W_Q.shape[1])


class KeysAsk(TwentyLines):
    def scores(self, q, k):
        return k @ q.swapaxes(-1, -2) / np.sqrt(q.shape[-1])


class CutsByReshape(TwentyLines):
    def cut(self, rows, heads):
        *batch, n, width = rows.shape
        return rows.reshape(*batch, heads, n, width // heads)


class JoinsByReshape(TwentyLines):
    def join(self, heads):
        *batch, H, L, D = heads.shape
        return heads.reshape(*batch, L, H * D)


class ReshapesBothWays(CutsByReshape, JoinsByReshape):
    pass


class DealsOut(TwentyLines):
    def cut(self, rows, heads):
        return np.stack([rows[..., m::heads] for m in range(heads)], axis=-3)


class TakesTheMean(TwentyLines):
    def join(self, heads):
        return np.concatenate([heads.mean(axis=-3)] * heads.shape[-3], axis=-1)


class StopsBeforeTheEnd(TwentyLines):
    def finish(self, concat):
        return concat


class TurnsTheEnd(TwentyLines):
    def finish(self, concat):
        return self.add(concat @ self.W_O.T, self.b_O)


class ForgetsTheLastBias(TwentyLines):
    def finish(self, concat):
        return concat @ self.W_O


class HasNoBiases(TwentyLines):
    def add(self, rows, bias):
        return rows


class BiasesAtTheEndOnly(HasNoBiases):
    def finish(self, concat):
        output = concat @ self.W_O
        return output if self.b_O is None else output + self.b_O


class AlwaysAddsBiases(TwentyLines):
    def add(self, rows, bias):
        return rows + bias


class ForbidsWhatIsAllowed(TwentyLines):
    def attend(self, q, k, mask):
        scores = self.scores(q, k)
        return _softmax(scores if mask is None else np.where(mask, -np.inf, scores))


class MasksTheWeights(TwentyLines):
    def attend(self, q, k, mask):
        weights = _softmax(self.scores(q, k))
        return weights if mask is None else weights * mask


class ForgetsTheMask(TwentyLines):
    def attend(self, q, k, mask):
        return _softmax(self.scores(q, k))


class LargeNegativeNumber(TwentyLines):
    def attend(self, q, k, mask):
        scores = self.scores(q, k)
        if mask is not None:
            scores[~np.broadcast_to(mask, scores.shape)] = -1e9
        return _softmax(scores)


class TurnsTheMask(TwentyLines):
    def attend(self, q, k, mask):
        return super().attend(q, k, None if mask is None else mask.swapaxes(-1, -2))


class FirstMaskForAll(TwentyLines):
    def attend(self, q, k, mask):
        return super().attend(q, k, mask[0] if mask is not None and mask.ndim == 4 else mask)


class PlainSoftmax(TwentyLines):
    def attend(self, q, k, mask):
        scores = self.scores(q, k)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        e = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)


class OneRowForEachSentence(TwentyLines):
    """Takes a mask with four axes for padding."""

    def attend(self, q, k, mask):
        return super().attend(q, k, mask[:, :, :1] if mask is not None and mask.ndim == 4 else mask)


class OneMaskForAllHeads(TwentyLines):
    def attend(self, q, k, mask):
        return super().attend(q, k, mask[:, :1] if mask is not None and mask.ndim == 4 else mask)


class ShowsWeightsBeforeTheMask(TwentyLines):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        output = super().__call__(query, key, value, mask)
        return (output, super().__call__(query, key, value, None, True)[1]) if return_weights else output


class MasksOnlyWithoutWeights(TwentyLines):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        return super().__call__(query, key, value, None if return_weights else mask, return_weights)


class Exponentials(TwentyLines):
    def attend(self, q, k, mask):
        e = np.exp(self.scores(q, k) if mask is None else np.where(mask, self.scores(q, k), -np.inf))
        return e / e.sum(axis=-1, keepdims=True)


class GuardedExponentials(TwentyLines):
    def attend(self, q, k, mask):
        e = np.exp(self.scores(q, k)) * (1 if mask is None else mask)
        total = e.sum(axis=-1, keepdims=True)
        return np.divide(e, total, out=np.zeros_like(e), where=total != 0)


class TenThousand(TwentyLines):
    def attend(self, q, k, mask):
        scores = self.scores(q, k)
        return _softmax(scores if mask is None else np.where(mask, scores, -1e4))


class SoftmaxOfHeads(TwentyLines):
    def attend(self, q, k, mask):
        scores = self.scores(q, k)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        return np.moveaxis(_softmax(np.moveaxis(scores, -3, -1)), -1, -3)


class SoftmaxOfColumns(TwentyLines):
    def attend(self, q, k, mask):
        scores = self.scores(q, k)
        if mask is not None:
            scores = np.where(mask, scores, -np.inf)
        return _softmax(scores.swapaxes(-1, -2)).swapaxes(-1, -2)


class MaskForEachSentence(TwentyLines):
    """Takes the mask as (B, L, S) and gives it an axis for the heads."""

    def attend(self, q, k, mask):
        return super().attend(q, k, None if mask is None else mask[:, None])


class ForgetsTheMemory(TwentyLines):
    def fill_in(self, query, key, value):
        return query, query


class TakesValuesFromTheQuery(TwentyLines):
    def fill_in(self, query, key, value):
        return (query if key is None else key), (query if value is None else value)


class DropsTheValueWithoutAKey(TwentyLines):
    def fill_in(self, query, key, value):
        if key is None:
            key = value = query
        return key, key if value is None else value


class KnowsNoValue(TwentyLines):
    def fill_in(self, query, key, value):
        memory = query if key is None else key
        return memory, memory


class AllBiasesOrNone(TwentyLines):
    """Looks at b_Q to see whether there are biases."""

    def __init__(self, num_heads, W_Q, W_K, W_V, W_O, b_Q=None, b_K=None, b_V=None, b_O=None):
        biases = (None,) * 3 if b_Q is None else (b_Q, b_K, b_V)
        super().__init__(num_heads, W_Q, W_K, W_V, W_O, *biases, b_O)


class ProjectsValuesAsKeys(Keeps):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        layer = TwentyLines(
            self.num_heads, self.W_Q, self.W_K, self.W_K, self.W_O, self.b_Q, self.b_K, self.b_K, self.b_O
        )
        return layer(query, key, key, mask, return_weights)


class TilesKeyHeads(TwentyLines):
    def share(self, x, group):
        return np.concatenate([x] * group, axis=-3)


class KnowsNoGroups(TwentyLines):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        key, value = self.fill_in(query, key, value)
        q, k, v = (
            self.cut(self.add(x @ W, b), self.num_heads)
            for x, W, b in ((query, self.W_Q, self.b_Q), (key, self.W_K, self.b_K), (value, self.W_V, self.b_V))
        )
        weights = self.attend(q, k, mask)
        output = self.finish(self.join(weights @ v))
        return (output, weights) if return_weights else output


class OneHeadForAll(TwentyLines):
    def __init__(self, num_heads, *args, **kwargs):
        super().__init__(1, *args, **kwargs)


class ReadsTheSameColumns(Keeps):
    """Every head takes the first D columns of Q, K and V."""

    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        H, D, D_v = self.num_heads, self.W_Q.shape[1] // self.num_heads, self.W_O.shape[0] // self.num_heads
        layer = TwentyLines(
            H,
            *(np.tile(W[:, :n], H) for W, n in ((self.W_Q, D), (self.W_K, D), (self.W_V, D_v))),
            self.W_O,
            *(None if b is None else np.tile(b[:n], H) for b, n in ((self.b_Q, D), (self.b_K, D), (self.b_V, D_v))),
            self.b_O,
        )
        return layer(query, key, value, mask, return_weights)


class ProjectsTwice(TwentyLines):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        key, value = self.fill_in(query, key, value)
        query = self.add(query @ self.W_Q, self.b_Q)
        key = self.add(key @ self.W_K, self.b_K)
        value = self.add(value @ self.W_V, self.b_V)
        return super().__call__(query, key, value, mask, return_weights)


class NeverShowsWeights(TwentyLines):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        return super().__call__(query, key, value, mask)


class AlwaysShowsWeights(TwentyLines):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        return super().__call__(query, key, value, mask, True)


class ShowsTheMean(TwentyLines):
    def __call__(self, query, key=None, value=None, mask=None, return_weights=False):
        result = super().__call__(query, key, value, mask, return_weights)
        return (result[0], result[1].mean(axis=-3)) if return_weights else result


class NeedsNoBatch(TwentyLines):
    def cut(self, rows, heads):
        n, width = rows.shape
        return rows.reshape(n, heads, width // heads).transpose(1, 0, 2)


class RootInTheMatrix(TwentyLines):
    """Divides W_Q and b_Q by the root, in place: right once, and no other call finds them as they were."""

    def __init__(self, num_heads, W_Q, W_K, W_V, W_O, b_Q=None, b_K=None, b_V=None, b_O=None):
        W_Q /= (W_Q.shape[1] // num_heads) ** 0.5
        if b_Q is not None:
            b_Q /= (W_Q.shape[1] // num_heads) ** 0.5
        super().__init__(num_heads, W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O)

    def scores(self, q, k):
        return q @ k.swapaxes(-1, -2)


class WidthOfValuesIsThatOfKeys(TwentyLines):
    """Joins to as many columns as the queries have."""

    def join(self, heads):
        rows = heads.swapaxes(-3, -2)
        return rows.reshape(*rows.shape[:-2], self.W_Q.shape[1])


class OwnSizes(TwentyLines):
    """Wants other arguments than the stub has."""

    def __init__(self, embed_dim, num_heads):
        self.embed_dim, self.num_heads = embed_dim, num_heads


# ------------------------------------------------------------------------------------------------------------------- q4
def _with(layer, **others):
    """The real layer's output and weights by one of the classes above."""
    stored = load_layer()
    mha = layer(stored.num_heads, **({name: getattr(stored, name) for name in NAMES} | others))
    return mha(stored.x, return_weights=True)


RIGHT = {
    "q1": [[-2, -2, 4, 4, 2, 2, 0, 0], (-2, -2, 4, 4, 2, 2, 0, 0), np.array([-2.0, -2, 4, 4, 2, 2, 0, 0])],
    "q2": [repeats, by_index, by_broadcasting, stacks_one_by_one],
    "q3": [TwentyLines, HeadByHead, InLetters, makes_a_function],
    "q4": [_with(TwentyLines), _with(HeadByHead), _with(InLetters), _with(makes_a_function)],
}

WRONG = {
    "q1": [
        ([4, 0, 0, 2, 0, 2, 0, 0], "output_projection_missing", 0),
        ([-2, 4, -2, 0, 2, 6, 0, 0], "output_projection_transposed", 0),
        ([-2, -8, 2, 2, -6, -4, 6, -6], "cross_attention_to_itself", 0),
        ([-8, -8, 16, 16, 8, 8, 0, 0], "rows_added", 0),
        ([[-2, -2, 4, 4, 2, 2, 0, 0]] * 4, "wrong_shape", 0),
        ([-2, -2, 4, 4, 2, -2, 0, 0], "different", 0),
    ],
    "q2": [
        (tiles, "key_heads_tiled", 0),
        (takes_the_remainder, "key_heads_tiled", 0),
        (repeats_num_heads_times, "repeated_too_often", 0),
        (repeats_axis_0, "first_axis_repeated", 3),
        (repeats_tokens, "tokens_repeated", 0),
        (gives_all_the_first, "first_key_head_for_all", 0),
        (leaves_it_to_broadcasting, "wrong_shape", 0),
        (repeats_without_an_axis, "wrong_shape", 0),
        (divides_by_num_kv_heads, "raised", 0),
        (gives_a_list, "wrong_type", 0),
        (empties_its_input, "input_modified", 4),
    ],
    "q3": [
        (NoRoot, "no_scale", 0),
        (NoSquareRoot, "divided_by_d_k", 0),
        (RootOfAllColumns, "divided_by_sqrt_d_model", 0),
        (KeysAsk, "query_and_key_swapped", 0),
        (CutsByReshape, "split_without_transpose", 0),
        (JoinsByReshape, "merge_without_transpose", 0),
        (ReshapesBothWays, "transpose_forgotten_twice", 0),
        (DealsOut, "split_in_turn", 0),
        (TakesTheMean, "heads_averaged", 0),
        (StopsBeforeTheEnd, "output_projection_missing", 0),
        (TurnsTheEnd, "output_projection_transposed", 0),
        (ForgetsTheLastBias, "output_bias_forgotten", 11),
        (HasNoBiases, "all_biases_forgotten", 11),
        (BiasesAtTheEndOnly, "bias_forgotten", 11),
        (AlwaysAddsBiases, "raised", 0),
        (ForbidsWhatIsAllowed, "mask_inverted", 9),
        (MasksTheWeights, "mask_after_softmax", 9),
        (ForgetsTheMask, "mask_ignored", 9),
        (LargeNegativeNumber, "mask_with_finite_value", 11),
        (TurnsTheMask, "mask_transposed", 9),
        (FirstMaskForAll, "different", 11),
        (OneRowForEachSentence, "different", 13),
        (OneMaskForAllHeads, "different", 13),
        (ShowsWeightsBeforeTheMask, "different", 13),
        (MasksOnlyWithoutWeights, "different", 13),
        (Exponentials, "softmax_without_maximum", 8),
        (GuardedExponentials, "maximum_forgotten", 11),
        (TenThousand, "mask_too_weak", 10),
        (PlainSoftmax, "masked_row_is_nan", 11),
        (SoftmaxOfHeads, "softmax_over_heads", 0),
        (SoftmaxOfColumns, "softmax_over_queries", 0),
        (MaskForEachSentence, "raised", 9),
        (ForgetsTheMemory, "cross_attention_to_itself", 10),
        (TakesValuesFromTheQuery, "values_from_the_query", 10),
        (DropsTheValueWithoutAKey, "value_dropped", 12),
        (KnowsNoValue, "value_ignored", 12),
        (AllBiasesOrNone, "different", 13),
        (ProjectsValuesAsKeys, "keys_as_values", 0),
        (TilesKeyHeads, "key_heads_tiled", 10),
        (KnowsNoGroups, "raised", 10),
        (OneHeadForAll, "one_wide_head", 0),
        (ReadsTheSameColumns, "one_projection_for_all_heads", 0),
        (ProjectsTwice, "projected_twice", 0),
        (NeverShowsWeights, "wrong_type", 11),
        (AlwaysShowsWeights, "wrong_type", 2),
        (ShowsTheMean, "wrong_shape", 11),
        (NeedsNoBatch, "raised", 10),
        (RootInTheMatrix, "input_modified", 13),
        (WidthOfValuesIsThatOfKeys, "raised", 8),
        (OwnSizes, "raised", 0),
    ],
    "q4": [
        (_with(NoRoot), "no_scale", 0),
        (_with(CutsByReshape), "split_without_transpose", 0),
        (_with(HasNoBiases), "all_biases_forgotten", 0),
        (_with(ForgetsTheLastBias), "output_bias_forgotten", 0),
        (_with(TwentyLines, b_V=None), "value_bias_forgotten", 0),
        (_with(StopsBeforeTheEnd), "output_projection_missing", 0),
        (_with(TurnsTheEnd), "output_projection_transposed", 0),
        (_with(ShowsTheMean), "weights_averaged", 0),
        (_with(TwentyLines)[0], "wrong_type", 0),
        (_with(TwentyLines)[::-1], "weights_first", 0),
        (list(_with(TwentyLines)), "wrong_type", 0),
        (_real(sentence=1), "another_sentence", 0),
        (0.68, "wrong_type", 0),
    ],
}
