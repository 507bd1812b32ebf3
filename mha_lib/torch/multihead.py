"""The whole layer: project, split into heads, attend, merge, project."""

import torch
from torch import nn

from .. import _checks
from .._trace import Trace
from ._tensors import real_tensor
from .attention import scaled_dot_product_attention
from .cache import KVCache
from .heads import merge_heads, split_heads
from .positions import rope
from .projection import project
from .scores import attention_scores


class MultiHeadAttention(nn.Module):
    """Multi-head attention: the heads attend side by side, W_O mixes what they bring.

    Weights multiply from the right: W_Q (E, H*D), W_K (kdim, H_kv*D), W_V (vdim, H_kv*D), W_O (H*D, E), and the biases
    b_Q, b_K, b_V, b_O, each of which may be None; all are parameters. Glorot uniform per matrix, zero biases.

    embed_dim: E. num_heads: H. num_kv_heads: H_kv, fewer for grouped queries (H if None). head_dim: D (E / H if None).
    kdim, vdim: widths of the key and value inputs (E if None). bias: whether there are biases.
    rope: None, "interleaved" or "halves": rotary positions on queries and keys, with the base `rope_base`.
    dropout: probability to drop a normalised weight, in training only. device, dtype: of the parameters.
    Errors: ValueError or TypeError that names the size, above all where E is not divisible by H.
    Source: Vaswani et al. 2017, section 3.2.2.

    >>> mha = MultiHeadAttention(8, 2)
    >>> tuple(mha(torch.zeros(1, 3, 8)).shape)
    (1, 3, 8)
    """

    def __init__(
        self, embed_dim, num_heads, *, num_kv_heads=None, head_dim=None, kdim=None, vdim=None, bias=True,
        rope=None, rope_base=10000.0, dropout=0.0, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if dtype is not None and not dtype.is_floating_point:
            raise TypeError(f"dtype must be a floating-point dtype, got {dtype}")
        sizes = _checks.layer_sizes(embed_dim, num_heads, num_kv_heads, head_dim, kdim, vdim)
        self.embed_dim, self.num_heads, self.num_kv_heads, self.head_dim, self.kdim, self.vdim = sizes
        self.rope = _checks.rope_convention(rope, self.head_dim)
        self.rope_base = _checks.positive("rope_base", rope_base)
        self.dropout = _checks.probability("dropout", dropout)
        width, kv_width = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        columns = {"Q": (self.embed_dim, width), "K": (self.kdim, kv_width), "V": (self.vdim, kv_width),
                   "O": (width, self.embed_dim)}  # fmt: skip
        for name, shape in columns.items():
            weight = torch.empty(shape, device=device, dtype=dtype)
            self.register_parameter(f"W_{name}", nn.Parameter(nn.init.xavier_uniform_(weight)))
            zeros = torch.zeros(shape[1], device=device, dtype=dtype)
            self.register_parameter(f"b_{name}", nn.Parameter(zeros) if bias else None)

    @classmethod
    def from_arrays(cls, arrays, *, rope=None, rope_base=10000.0, dropout=0.0, device=None, dtype=None):
        """The layer with the weights of `mha_lib.data.load_layer()`, or of anything with num_heads and arrays of these names.

        Shapes: W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O as above, which tell all sizes; without a bias the layer has none.
        rope, rope_base, dropout: as above. device, dtype: of the copies made.
        Errors: ValueError that names the array whose shape does not fit.

        >>> from mha_lib.data import load_layer
        >>> layer = load_layer()
        >>> mha = MultiHeadAttention.from_arrays(layer)
        >>> tuple(mha(torch.from_numpy(layer.x)).shape)
        (16, 384)
        """
        named, sizes = _checks.layer_arrays(arrays)
        layer = cls(**sizes, rope=rope, rope_base=rope_base, dropout=dropout, device=device, dtype=dtype)
        for name, array in named.items():
            if array is None:
                setattr(layer, name, None)
            else:
                getattr(layer, name).data.copy_(torch.as_tensor(array))
        return layer

    def forward(
        self, query, key=None, value=None, *, mask=None, bias=None, is_causal=False, cache=None, return_weights=False
    ):
        """Attend from `query` to `key` (query itself if None), with the values of `value` (key if None).

        Shapes: query (..., L, E), key (..., S, kdim), value (..., S, vdim); mask (True = may attend) and bias (added to the
        scaled scores) broadcast to (..., H, L, S) -> output (..., L, E), and weights (..., H, L, S) with `return_weights`.
        cache: a KVCache of (B, H_kv, ., D). The new keys and values go behind the stored ones, S counts both, `is_causal`
        and the rotary positions start at `len(cache)`. It needs self-attention on (B, L, E).
        A query with nothing to attend to gets b_O. Errors: as `scaled_dot_product_attention`; the cache is unchanged then.
        """
        is_causal = _checks.flag("is_causal", is_causal)
        options = {"mask": mask, "bias": bias, "is_causal": is_causal, "return_weights": return_weights}
        query, key, value = self._inputs(query, key, value, cache)
        start = 0 if cache is None else len(cache)
        q, k, v = self._project(query, key, value, start)
        try:
            if cache is not None:
                k, v = cache.append(k, v)
            result = scaled_dot_product_attention(
                q,
                k,
                v,
                query_offset=start if is_causal else 0,
                dropout_p=self.dropout if self.training else 0.0,
                **options,
            )
            heads, weights = result if return_weights else (result, None)
            output = project(merge_heads(heads), self.W_O, self.b_O)  # (..., L, E)
        except Exception:
            if cache is not None:
                cache.reset(start)
            raise
        return (output, weights) if return_weights else output

    def trace(self, query, key=None, value=None, *, mask=None, bias=None, is_causal=False):
        """The same computation (without dropout), with every intermediate kept: a `Trace`, which prints itself as a table.

        Shapes and arguments: as in the call; no cache. Errors: as there.
        Source: the names are those of Vaswani et al. 2017, section 3.2.

        >>> print(MultiHeadAttention(8, 2).trace(torch.zeros(3, 8)))  # doctest: +ELLIPSIS
        x        (3, 8)     the layer's input, one row per token
        q        (2, 3, 4)  queries, split into heads
        ...
        output   (3, 8)     concat times W_O, plus b_O
        """
        is_self = key is None and value is None
        query, key, value = self._inputs(query, key, value, None)
        q, k, v = self._project(query, key, value, 0)
        constraints = {"mask": mask, "bias": bias, "is_causal": is_causal}
        heads, weights = scaled_dot_product_attention(q, k, v, return_weights=True, **constraints)
        concat = merge_heads(heads)  # (..., L, H*D)
        return Trace(
            x=query, q=q, k=k, v=v, scores=attention_scores(q, k, **constraints), weights=weights, heads=heads,
            concat=concat, output=project(concat, self.W_O, self.b_O),
            key_input=None if is_self else key, value_input=None if is_self else value,
        )  # fmt: skip

    def extra_repr(self):
        """What `print(layer)` shows."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, head_dim={self.head_dim}"

    def _inputs(self, query, key, value, cache):
        """Fill in what was left out and check the shapes."""
        _checks.cache_of_kind(cache, KVCache)
        if cache is not None and (key is not None or value is not None):
            raise ValueError("cache needs self-attention: give no key and no value with it")
        query = real_tensor("query", query)
        key = query if key is None else real_tensor("key", key)
        value = key if value is None else real_tensor("value", value)
        _checks.layer_inputs(query.shape, key.shape, value.shape, (self.embed_dim, self.kdim, self.vdim))
        return query, key, value

    def _project(self, query, key, value, start):
        """Queries (..., H, L, D), keys and values (..., H_kv, S, D); positions count from `start`."""
        q = split_heads(project(query, self.W_Q, self.b_Q), self.num_heads)  # (..., H, L, D)
        k = split_heads(project(key, self.W_K, self.b_K), self.num_kv_heads)  # (..., H_kv, S, D)
        v = split_heads(project(value, self.W_V, self.b_V), self.num_kv_heads)  # (..., H_kv, S, D)
        if self.rope is not None:
            options = {"base": self.rope_base, "interleaved": self.rope == "interleaved"}
            q, k = (rope(x, torch.arange(start, start + x.shape[-2], device=x.device), **options) for x in (q, k))
        return q, k, v
