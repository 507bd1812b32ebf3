"""The whole layer: project, split into heads, attend, merge, project."""

import math

import numpy as np

from .. import _checks
from .._trace import Trace
from ._arrays import real_array
from .attention import scaled_dot_product_attention, scaled_dot_product_attention_backward
from .cache import KVCache
from .heads import merge_heads, split_heads
from .positions import rope
from .projection import project, project_backward
from .scores import attention_scores


class MultiHeadAttention:
    """Multi-head attention: the heads attend side by side, W_O mixes what they bring.

    Weights multiply from the right: W_Q (E, H*D), W_K (kdim, H_kv*D), W_V (vdim, H_kv*D), W_O (H*D, E), and the biases
    b_Q, b_K, b_V, b_O, each of which may be None. Glorot uniform per matrix, zero biases.

    embed_dim: E. num_heads: H. num_kv_heads: H_kv, fewer for grouped queries (H if None). head_dim: D (E / H if None).
    kdim, vdim: widths of the key and value inputs (E if None). bias: whether there are biases.
    rope: None, "interleaved" or "halves": rotary positions on queries and keys, with the base `rope_base`.
    rng: a generator or a seed (None is a fixed seed). dtype: of the weights.
    Errors: ValueError or TypeError that names the size, above all where E is not divisible by H.
    Source: Vaswani et al. 2017, section 3.2.2.

    >>> mha = MultiHeadAttention(8, 2)
    >>> mha(np.zeros((1, 3, 8), np.float32)).shape
    (1, 3, 8)
    """

    def __init__(
        self, embed_dim, num_heads, *, num_kv_heads=None, head_dim=None, kdim=None, vdim=None, bias=True,
        rope=None, rope_base=10000.0, rng=None, dtype=np.float32,
    ):  # fmt: skip
        sizes = _checks.layer_sizes(embed_dim, num_heads, num_kv_heads, head_dim, kdim, vdim)
        self.embed_dim, self.num_heads, self.num_kv_heads, self.head_dim, self.kdim, self.vdim = sizes
        self.rope = _checks.rope_convention(rope, self.head_dim)
        self.rope_base = _checks.positive("rope_base", rope_base)
        if np.dtype(dtype).kind != "f":
            raise TypeError(f"dtype must be a floating-point dtype, got {np.dtype(dtype)}")
        rng = np.random.default_rng(0 if rng is None else rng)

        def glorot(rows, columns):
            limit = math.sqrt(6 / (rows + columns))
            return rng.uniform(-limit, limit, (rows, columns)).astype(dtype)

        width, kv_width = self.num_heads * self.head_dim, self.num_kv_heads * self.head_dim
        self.W_Q = glorot(self.embed_dim, width)
        self.W_K = glorot(self.kdim, kv_width)
        self.W_V = glorot(self.vdim, kv_width)
        self.W_O = glorot(width, self.embed_dim)
        self.b_Q, self.b_K, self.b_V, self.b_O = (
            np.zeros(n, dtype) if bias else None for n in (width, kv_width, kv_width, self.embed_dim)
        )
        self._last_call = None

    @classmethod
    def from_arrays(cls, arrays, *, rope=None, rope_base=10000.0, dtype=np.float32):
        """The layer with the weights of `mha_lib.data.load_layer()`, or of anything with num_heads and arrays of these names.

        Shapes: W_Q, W_K, W_V, W_O, b_Q, b_K, b_V, b_O as above, which tell all sizes; without a bias the layer has none.
        rope, rope_base: as above. dtype: of the copies made.
        Errors: ValueError that names the array whose shape does not fit.

        >>> from mha_lib.data import load_layer
        >>> layer = load_layer()
        >>> mha = MultiHeadAttention.from_arrays(layer)
        >>> mha(layer.x).shape
        (16, 384)
        """
        named, sizes = _checks.layer_arrays(arrays)
        layer = cls(**sizes, rope=rope, rope_base=rope_base, dtype=dtype)
        for name, array in named.items():
            setattr(layer, name, None if array is None else array.astype(dtype))
        return layer

    def __call__(
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
        self._last_call = None
        given = {"query": query, "key": key, "value": value}
        query, key, value = self._inputs(query, key, value, cache)
        start = 0 if cache is None else len(cache)
        q, k, v = self._project(query, key, value, start)
        try:
            if cache is not None:
                k, v = cache.append(k, v)
            result = scaled_dot_product_attention(q, k, v, query_offset=start if is_causal else 0, **options)
            heads, weights = result if return_weights else (result, None)
            concat = merge_heads(heads)  # (..., L, H*D)
            output = project(concat, self.W_O, self.b_O)  # (..., L, E)
        except Exception:
            if cache is not None:
                cache.reset(start)
            raise
        if cache is None:
            inputs = {"query": query, "key": key, "value": value}
            separate = {name for name, x in given.items() if x is not None}
            constraints = {"mask": mask, "bias": bias, "is_causal": is_causal}
            self._last_call = inputs, separate, (q, k, v), constraints, concat
        return (output, weights) if return_weights else output

    def backward(self, grad_output):
        """The gradients of the last call, without a cache: a dict of W_*, b_* and query, key, value.

        Shapes: grad_output (..., L, E), the gradient of a loss with respect to the output -> each of the shape of what it
        belongs to. key and value are there if they were given; else their gradients are part of what they were taken from.
        The inputs and weights must still be those of the call.
        Errors: RuntimeError without such a call before, ValueError for another shape than the output's.
        Source: the chain rule, step by step backwards.

        >>> mha = MultiHeadAttention(8, 2)
        >>> output = mha(np.ones((3, 8), np.float32))
        >>> grads = mha.backward(np.ones((3, 8), np.float32))
        >>> grads["W_Q"].shape, grads["query"].shape, "key" in grads
        ((8, 8), (3, 8), False)
        """
        if self._last_call is None:
            raise RuntimeError("backward needs a call before it, without a cache and without an error")
        inputs, separate, (q, k, v), constraints, concat = self._last_call
        grad_output = real_array("grad_output", grad_output)
        if grad_output.shape != (*concat.shape[:-1], self.embed_dim):
            wants = (*concat.shape[:-1], self.embed_dim)
            raise ValueError(f"grad_output must have the shape of the output, {wants}, got {grad_output.shape}")
        grads = {}
        grad_concat, grads["W_O"], grads["b_O"] = project_backward(grad_output, concat, self.W_O, self.b_O)
        grad_heads = split_heads(grad_concat, self.num_heads)  # (..., H, L, D)
        grad_q, grad_k, grad_v = scaled_dot_product_attention_backward(grad_heads, q, k, v, **constraints)
        if self.rope is not None:  # a rotation's gradient is turned back
            grad_q, grad_k = (self._rotate(grad, 0, back=True) for grad in (grad_q, grad_k))
        source = "query"
        for name, letter, grad in (("query", "Q", grad_q), ("key", "K", grad_k), ("value", "V", grad_v)):
            W, b = f"W_{letter}", f"b_{letter}"
            grad_input, grads[W], grads[b] = project_backward(
                merge_heads(grad), inputs[name], getattr(self, W), getattr(self, b)
            )
            source = name if name in separate else source
            grads[source] = grad_input + grads[source] if source in grads else grad_input
        return {name: grad for name, grad in grads.items() if grad is not None}

    def trace(self, query, key=None, value=None, *, mask=None, bias=None, is_causal=False):
        """The same computation, with every intermediate kept: a `Trace`, which prints itself as a table of shapes.

        Shapes and arguments: as in the call; no cache. Errors: as there.
        Source: the names are those of Vaswani et al. 2017, section 3.2.

        >>> print(MultiHeadAttention(8, 2).trace(np.zeros((3, 8), np.float32)))  # doctest: +ELLIPSIS
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

    def _inputs(self, query, key, value, cache):
        """Fill in what was left out and check the shapes."""
        _checks.cache_of_kind(cache, KVCache)
        if cache is not None and (key is not None or value is not None):
            raise ValueError("cache needs self-attention: give no key and no value with it")
        query = real_array("query", query)
        key = query if key is None else real_array("key", key)
        value = key if value is None else real_array("value", value)
        _checks.layer_inputs(query.shape, key.shape, value.shape, (self.embed_dim, self.kdim, self.vdim))
        return query, key, value

    def _project(self, query, key, value, start):
        """Queries (..., H, L, D), keys and values (..., H_kv, S, D); positions count from `start`."""
        q = split_heads(project(query, self.W_Q, self.b_Q), self.num_heads)  # (..., H, L, D)
        k = split_heads(project(key, self.W_K, self.b_K), self.num_kv_heads)  # (..., H_kv, S, D)
        v = split_heads(project(value, self.W_V, self.b_V), self.num_kv_heads)  # (..., H_kv, S, D)
        if self.rope is not None:
            q, k = self._rotate(q, start), self._rotate(k, start)
        return q, k, v

    def _rotate(self, x, start, back=False):
        """Rotary positions from `start` on, or their inverse."""
        positions = np.arange(start, start + x.shape[-2])
        return rope(x, -positions if back else positions, base=self.rope_base, interleaved=self.rope == "interleaved")
