"""A whole BERT-style encoder in NumPy: embeddings, layers of attention and feed-forward net, and the mean of the last rows."""

import math
from collections.abc import Mapping

import numpy as np

from . import _checks, interop
from .numpy import embedding, layer_norm, merge_heads, padding_mask, project
from .numpy._arrays import as_array, compute_dtype, real_array, rectangular, result_dtype, token_lengths

EPS = 1e-12  # BERT's, in every LayerNorm


def gelu(x):
    """x times the normal distribution function of x, as BERT has it.

    Shapes: (...) -> (...). NumPy has no erf: this is formula 7.1.26 of Abramowitz and Stegun 1964, off by less than 3e-7.
    Errors: TypeError for what is no real number.
    Source: Hendrycks and Gimpel 2016.

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """
    x = real_array("x", x)
    dtype = result_dtype(x)
    x = x.astype(compute_dtype(dtype), copy=False)
    with np.errstate(over="ignore", invalid="ignore"):  # far out the tail is 0; that of -inf is NaN, as in PyTorch
        z = np.abs(x) / math.sqrt(2)
        t = 1 / (1 + 0.3275911 * z)
        a = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
        tail = 0.5 * a * np.exp(-z * z)  # the share of the normal distribution beyond |x|
        return (x * np.where(x < 0, tail, 1 - tail)).astype(dtype, copy=False)


def mean_pool(hidden, lengths):
    """The mean of each sentence's own rows: the padding behind them does not count.

    Shapes: hidden (B, L, E), lengths (B,) -> (B, E), in the dtype of hidden. A length of 0 gives NaN.
    Errors: TypeError or ValueError for another shape, or lengths that are no integers in 0..L.
    Source: Reimers and Gurevych 2019.

    >>> mean_pool(np.array([[[1.0], [3.0], [99.0]]]), [2])
    array([[2.]])
    """
    hidden = real_array("hidden", hidden)
    if hidden.ndim != 3:
        raise ValueError(f"hidden must have the axes (B, L, E), got shape {hidden.shape}")
    B, L, _ = hidden.shape
    lengths = token_lengths(lengths, L, B)
    own = np.arange(L) < lengths[:, None]  # (B, L)
    with np.errstate(invalid="ignore"):  # 0 / 0
        mean = np.where(own[..., None], hidden, 0).sum(1, dtype=np.float64) / lengths[:, None]
    return mean.astype(result_dtype(hidden), copy=False)


class Encoder:
    """All layers of a BERT-style state dict, computed in the dtype of its arrays.

    num_heads is not stored there. `attention[n]` is layer n's `MultiHeadAttention`.
    Errors: ValueError for a key that is missing or an array of another shape; TypeError for another state than a dict.
    Source: Devlin et al. 2019; the names in the state dict are those of Hugging Face's BertModel without a prefix.

    >>> from mha_lib.data import load_model
    >>> encoder = Encoder(load_model(), num_heads=12)  # doctest: +SKIP
    >>> hidden, weights = encoder([[101, 4111, 102]], [3])  # doctest: +SKIP
    >>> hidden.shape, weights.shape  # doctest: +SKIP
    ((7, 1, 3, 384), (6, 1, 12, 3, 3))
    """

    def __init__(self, state, num_heads):
        if not isinstance(state, Mapping):
            raise TypeError(f"state must be a dict of arrays by name, got {type(state).__name__}")
        self.num_heads = _checks.integer("num_heads", num_heads, 1)
        self.num_layers = sum(key.endswith("attention.output.dense.weight") for key in state)
        if not self.num_layers:
            raise ValueError(
                "state must have at least one layer, got no key encoder.layer.0.attention.output.dense.weight"
            )
        self.state = _checked(state, self.num_layers)
        self.attention = [interop.from_bert(state, n, num_heads=num_heads) for n in range(self.num_layers)]

    def __call__(self, ids, lengths, *, edit=None):
        """All hidden states and weights: ids (B, L), lengths (B,) -> (layers + 1, B, L, E), (layers, B, H, L, L).

        edit: as in `layer`, for every layer.
        Errors: as `embed` and `layer`.
        """
        ids = rectangular("ids", ids)
        if ids.ndim != 2:
            raise ValueError(f"ids must have the shape (B, L), got {ids.shape}")
        hidden, weights = [self.embed(ids)], []
        for n in range(self.num_layers):
            x, trace = self.layer(n, hidden[-1], lengths, edit=edit)
            hidden.append(x)
            weights.append(trace.weights)
        return np.stack(hidden), np.stack(weights)

    def embed(self, ids):
        """The input of layer 0: ids (..., L) -> (..., L, E).

        Errors: ValueError for more tokens than positions, and as `embedding`.
        """
        tables = (self.state[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type"))
        words, positions, types = tables
        ids = rectangular("ids", ids)
        if ids.ndim == 0 or ids.shape[-1] > len(positions):
            raise ValueError(f"ids must have the shape (..., L) with L <= {len(positions)}, got {ids.shape}")
        return self._norm(embedding(ids, words) + positions[: ids.shape[-1]] + types[0], "embeddings")

    def layer(self, n, x, lengths, *, edit=None):
        """Layer n: x (B, L, E), lengths (B,) -> its output (B, L, E) and the `Trace` of its attention.

        edit(n, trace) may give other heads, (B, H, L, D), to put in the place of `trace.heads`, or None to leave them.
        Errors: TypeError or ValueError that names n, x, lengths or edit.
        """
        n, x = self._number(n, self.num_layers - 1), self._input(x)
        if edit is not None and not callable(edit):
            raise TypeError(f"edit must be None or a function of n and trace, got {type(edit).__name__}")
        base = f"encoder.layer.{n}."
        attention = self.attention[n]
        lengths = token_lengths(lengths, x.shape[-2], len(x))
        trace = attention.trace(x, mask=padding_mask(lengths, x.shape[-2]))
        heads = None if edit is None else edit(n, trace)
        if heads is not None and np.shape(heads) != trace.heads.shape:
            raise ValueError(f"edit must give heads of the shape {trace.heads.shape} or None, got {np.shape(heads)}")
        output = trace.output if heads is None else project(merge_heads(heads), attention.W_O, attention.b_O)
        x = self._norm(x + output, base + "attention.output")
        inner = gelu(self._dense(x, base + "intermediate"))  # (B, L, 4E)
        return self._norm(x + self._dense(inner, base + "output"), base + "output"), trace

    def finish(self, n, x, lengths, *, edit=None):
        """The last hidden state, from the input x of layer n on: (B, L, E) -> (B, L, E).

        n may be the number of layers: then it is x. Errors: as `layer`.
        """
        x = self._input(x)
        for i in range(self._number(n, self.num_layers), self.num_layers):
            x, _ = self.layer(i, x, lengths, edit=edit)
        return x

    def _number(self, n, last):
        n = _checks.integer("n", n, 0)
        if n > last:
            raise ValueError(f"n must be one of the layers 0..{last}, got {n}")
        return n

    def _input(self, x):
        x, E = real_array("x", x), self.attention[0].embed_dim
        if x.ndim != 3 or x.shape[2] != E:
            raise ValueError(f"x must have the shape (B, L, {E}), got {x.shape}")
        return x

    def _norm(self, x, where):
        return layer_norm(x, self.state[f"{where}.LayerNorm.weight"], self.state[f"{where}.LayerNorm.bias"], EPS)

    def _dense(self, x, where):
        return project(x, self.state[f"{where}.dense.weight"].T, self.state[f"{where}.dense.bias"])


def _checked(state, num_layers):
    """What `Encoder` itself reads of a state dict, as arrays whose shapes fit; None stands for any size."""

    def take(key, *wants):
        if key not in state:
            raise ValueError(f"state has no key {key!r}")
        found = as_array(state[key])
        if found.ndim != len(wants) or any(n not in (None, m) for n, m in zip(wants, found.shape, strict=True)):
            raise ValueError(f"{key} must have the shape {wants}, got {found.shape}".replace("None", "any"))
        arrays[key] = found
        return found.shape

    arrays = {}
    _, E = take("embeddings.word_embeddings.weight", None, None)
    take("embeddings.position_embeddings.weight", None, E)
    take("embeddings.token_type_embeddings.weight", None, E)
    norms = ["embeddings"]
    for n in range(num_layers):
        base = f"encoder.layer.{n}."
        inner, _ = take(f"{base}intermediate.dense.weight", None, E)
        take(f"{base}intermediate.dense.bias", inner)
        take(f"{base}output.dense.weight", E, inner)
        take(f"{base}output.dense.bias", E)
        norms += [f"{base}attention.output", f"{base}output"]
    for norm in norms:
        take(f"{norm}.LayerNorm.weight", E)
        take(f"{norm}.LayerNorm.bias", E)
    return arrays
