"""A whole BERT-style encoder in NumPy: embeddings, layers of attention and feed-forward net, and the mean of the last rows."""

import math

import numpy as np

from . import interop
from .numpy import embedding, layer_norm, merge_heads, padding_mask, project

EPS = 1e-12  # BERT's, in every LayerNorm


def gelu(x):
    """x times the normal distribution function of x, as BERT has it.

    Shapes: (...) -> (...). NumPy has no erf: this is formula 7.1.26 of Abramowitz and Stegun 1964, off by less than 3e-7.
    Source: Hendrycks and Gimpel 2016.

    >>> gelu(np.array([-1.0, 0.0, 1.0])).round(4)
    array([-0.1587,  0.    ,  0.8413])
    """
    z = np.abs(x) / math.sqrt(2)
    t = 1 / (1 + 0.3275911 * z)
    a = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))))
    tail = 0.5 * a * np.exp(-z * z)  # the share of the normal distribution beyond |x|
    return x * np.where(x < 0, tail, 1 - tail)


def mean_pool(hidden, lengths):
    """The mean of each sentence's own rows: the padding behind them does not count.

    Shapes: hidden (B, L, E), lengths (B,) -> (B, E). A length of 0 gives NaN.
    Source: Reimers and Gurevych 2019.

    >>> mean_pool(np.array([[[1.0], [3.0], [99.0]]]), [2])
    array([[2.]])
    """
    lengths = np.asarray(lengths)
    own = np.arange(hidden.shape[1]) < lengths[:, None]  # (B, L)
    return np.where(own[..., None], hidden, 0).sum(1) / lengths[:, None]


class Encoder:
    """All layers of a BERT-style state dict, computed in the dtype of its arrays.

    num_heads is not stored there. `attention[n]` is layer n's `MultiHeadAttention`.
    Source: Devlin et al. 2019; the names in the state dict are those of Hugging Face's BertModel without a prefix.

    >>> from mha_lib.data import load_model
    >>> encoder = Encoder(load_model(), num_heads=12)  # doctest: +SKIP
    >>> hidden, weights = encoder([[101, 4111, 102]], [3])  # doctest: +SKIP
    >>> hidden.shape, weights.shape  # doctest: +SKIP
    ((7, 1, 3, 384), (6, 1, 12, 3, 3))
    """

    def __init__(self, state, num_heads):
        self.state, self.num_heads = state, num_heads
        self.num_layers = sum(key.endswith("attention.output.dense.weight") for key in state)
        self.attention = [interop.from_bert(state, n, num_heads=num_heads) for n in range(self.num_layers)]

    def __call__(self, ids, lengths, *, edit=None):
        """All hidden states and weights: ids (B, L), lengths (B,) -> (layers + 1, B, L, E), (layers, B, H, L, L).

        edit: as in `layer`, for every layer.
        """
        hidden, weights = [self.embed(ids)], []
        for n in range(self.num_layers):
            x, trace = self.layer(n, hidden[-1], lengths, edit=edit)
            hidden.append(x)
            weights.append(trace.weights)
        return np.stack(hidden), np.stack(weights)

    def embed(self, ids):
        """The input of layer 0: ids (B, L) -> (B, L, E)."""
        tables = (self.state[f"embeddings.{name}_embeddings.weight"] for name in ("word", "position", "token_type"))
        words, positions, types = tables
        return self._norm(embedding(ids, words) + positions[: np.shape(ids)[-1]] + types[0], "embeddings")

    def layer(self, n, x, lengths, *, edit=None):
        """Layer n: x (B, L, E), lengths (B,) -> its output (B, L, E) and the `Trace` of its attention.

        edit(n, trace) may give other heads, (B, H, L, D), to put in the place of `trace.heads`, or None to leave them.
        """
        base = f"encoder.layer.{n}."
        attention = self.attention[n]
        trace = attention.trace(x, mask=padding_mask(lengths, x.shape[-2]))
        heads = None if edit is None else edit(n, trace)
        output = trace.output if heads is None else project(merge_heads(heads), attention.W_O, attention.b_O)
        x = self._norm(x + output, base + "attention.output")
        inner = gelu(self._dense(x, base + "intermediate"))  # (B, L, 4E)
        return self._norm(x + self._dense(inner, base + "output"), base + "output"), trace

    def finish(self, n, x, lengths, *, edit=None):
        """The last hidden state, from the input x of layer n on: (B, L, E) -> (B, L, E)."""
        for i in range(n, self.num_layers):
            x, _ = self.layer(i, x, lengths, edit=edit)
        return x

    def _norm(self, x, where):
        return layer_norm(x, self.state[f"{where}.LayerNorm.weight"], self.state[f"{where}.LayerNorm.bias"], EPS)

    def _dense(self, x, where):
        return project(x, self.state[f"{where}.dense.weight"].T, self.state[f"{where}.dense.bias"])
