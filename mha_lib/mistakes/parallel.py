"""What goes wrong with sharing heads or keys out to devices (chapter 20)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter
from ._parts import attend, with_weights

mistake = of_chapter("20_parallel")


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
        outputs.append(with_weights(mha, **part)(query, key, value, mask=mask))
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


@mistake(right.MultiHeadAttention, "Every device adds b_O to its part: it belongs to the sum, once.")
def output_bias_on_every_device(mha, query, key=None, value=None, *, mask=None):
    parts = _on_two_devices(mha, query, key, value, mask, _columns(mha, _halves(mha)))
    return _plus(sum(parts), mha.b_O, times=2)


@mistake(
    right.MultiHeadAttention,
    "The columns are dealt to the devices in turn: a device must get whole heads, columns side by side.",
)
def columns_dealt_in_turn(mha, query, key=None, value=None, *, mask=None):
    def in_turn(rank):
        return slice(rank, None, 2)

    return _plus(sum(_on_two_devices(mha, query, key, value, mask, _columns(mha, in_turn), in_turn)), mha.b_O)


@mistake(
    right.MultiHeadAttention,
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


@mistake(right.MultiHeadAttention, "A device has the rows of W_O that belong to the heads of another.")
def output_rows_of_another_device(mha, query, key=None, value=None, *, mask=None):
    rows = _halves(mha)
    return _plus(
        sum(_on_two_devices(mha, query, key, value, mask, _columns(mha, rows), lambda rank: rows(1 - rank))), mha.b_O
    )


@mistake(right.MultiHeadAttention, "The devices' parts are averaged: they are terms of a sum.")
def parts_averaged(mha, query, key=None, value=None, *, mask=None):
    return _plus(sum(_on_two_devices(mha, query, key, value, mask, _columns(mha, _halves(mha)))) / 2, mha.b_O)


@mistake(right.MultiHeadAttention, "The parts are not added up: each device goes on with what its own heads add.")
def parts_not_added_up(mha, query, key=None, value=None, *, mask=None):
    return _plus(_on_two_devices(mha, query, key, value, mask, _columns(mha, _halves(mha)))[0], mha.b_O)


def _two_blocks(x):
    """The scores of two blocks of keys."""
    return np.array_split(x, 2, axis=-1)


@mistake(
    right.scaled_dot_product_attention,
    "The outputs of the blocks of keys are averaged: a block counts by its share of the exponentials.",
)
def blocks_averaged(query, key, value, *, mask=None, is_causal=False, return_weights=False):
    def softmax(x):
        return np.concatenate([right.softmax(part) / 2 for part in _two_blocks(x)], axis=-1)

    return attend(query, key, value, mask, is_causal, return_weights, softmax=softmax)


@mistake(
    right.scaled_dot_product_attention,
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

    return attend(query, key, value, mask, is_causal, return_weights, softmax=softmax)
