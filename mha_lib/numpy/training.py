"""A model of attention layers alone, to be read: what `mha_lib.torch` trains, this one runs, also in a browser."""

import numpy as np

from .. import _checks
from ._arrays import real_array, rectangular
from .embedding import embedding
from .heads import merge_heads
from .multihead import MultiHeadAttention
from .projection import project


class AttentionModel:
    """Token and position rows, causal attention layers, each added to what it reads, and the logits of the next token.

    There are no biases, no LayerNorm and no feed-forward nets. token_table (V, E), position_table (max_length, E),
    unembedding (E, V), layers: a list of `MultiHeadAttention`, all arrays in the dtype float32.

    vocab: V. embed_dim: E. num_heads, num_layers: heads in each layer, and layers. max_length: positions that exist.
    seed: of the generator of all weights.
    Errors: ValueError or TypeError that names the size.
    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".

    >>> model = AttentionModel(5, 8, 2, 2, max_length=6)
    >>> model(np.array([[0, 1, 2]])).shape
    (1, 3, 5)
    """

    def __init__(self, vocab, embed_dim, num_heads, num_layers, *, max_length, seed=0):
        sizes = _checks.model_sizes(vocab, embed_dim, num_heads, num_layers, max_length, seed)
        vocab, embed_dim, num_heads, num_layers, max_length, seed = sizes
        rng = np.random.default_rng(seed)
        self.layers = [MultiHeadAttention(embed_dim, num_heads, bias=False, rng=rng) for _ in range(num_layers)]
        self.token_table = rng.standard_normal((vocab, embed_dim), np.float32)
        self.position_table = rng.standard_normal((max_length, embed_dim), np.float32)
        self.unembedding = rng.standard_normal((embed_dim, vocab), np.float32) / np.float32(embed_dim**0.5)

    @classmethod
    def from_arrays(cls, arrays, dtype=np.float32):
        """The model with the weights of `mha_lib.data.load_induction()`, or of anything with arrays of these names.

        Shapes: token_table (V, E), position_table (max_length, E), unembedding (E, V), W_Q, W_K, W_V, W_O (num_layers, E, E),
        and num_heads. dtype: of the copies made.
        Errors: TypeError or ValueError for an array that is missing or does not fit, or a dtype of other numbers.

        >>> from mha_lib.data import load_induction
        >>> model = AttentionModel.from_arrays(load_induction())
        >>> len(model.layers), model.layers[0].num_heads
        (2, 8)
        """
        if np.dtype(dtype).kind != "f":
            raise TypeError(f"dtype must be a floating-point dtype, got {np.dtype(dtype)}")
        names = ("token_table", "position_table", "unembedding", "W_Q", "W_K", "W_V", "W_O")
        for name in (*names, "num_heads"):
            if not hasattr(arrays, name):
                raise TypeError(f"arrays must have {', '.join(names)} and num_heads, got {type(arrays).__name__}")
        given = {name: real_array(name, getattr(arrays, name)) for name in names}
        for name, axes in {
            "token_table": "(V, E)",
            "position_table": "(max_length, E)",
            "W_Q": "(num_layers, E, E)",
        }.items():
            if given[name].ndim != len(axes.split(",")):
                raise ValueError(f"{name} must have the axes {axes}, got shape {given[name].shape}")
        (vocab, embed_dim), max_length = given["token_table"].shape, len(given["position_table"])
        num_layers = len(given["W_Q"])
        wants = {"position_table": (max_length, embed_dim), "unembedding": (embed_dim, vocab)}
        wants |= {name: (num_layers, embed_dim, embed_dim) for name in names[3:]}
        for name, shape in wants.items():
            if given[name].shape != shape:
                raise ValueError(f"{name} must have the shape {shape}, got {given[name].shape}")
        model = cls(vocab, embed_dim, arrays.num_heads, num_layers, max_length=max_length)
        for name in names[:3]:
            setattr(model, name, given[name].astype(dtype))
        for n, layer in enumerate(model.layers):
            for name in names[3:]:
                setattr(layer, name, given[name][n].astype(dtype))
        return model

    def __call__(self, tokens, *, head_mask=None, return_weights=False):
        """The logits of the token after each position.

        Shapes: tokens (B, L) integers, L <= max_length -> logits (B, L, V), and with `return_weights=True` a list with
        the weights (B, H, L, L) of every layer.
        head_mask: None or (num_layers, H) numbers by which the heads' outputs are multiplied; 0 takes a head out.
        Errors: ValueError for more tokens than positions or another shape of the mask, TypeError for what are no numbers.
        """
        tokens, return_weights = rectangular("tokens", tokens), _checks.flag("return_weights", return_weights)
        if head_mask is not None and np.asarray(head_mask).dtype != bool:
            real_array("head_mask", head_mask)
        num_heads = self.layers[0].num_heads if self.layers else 0
        _checks.model_inputs(tokens.shape, len(self.position_table), head_mask, (len(self.layers), num_heads))
        x = embedding(tokens, self.token_table) + self.position_table[: tokens.shape[-1]]  # (B, L, E)
        all_weights = []
        for n, layer in enumerate(self.layers):
            trace = layer.trace(x, is_causal=True)
            heads = trace.heads  # (B, H, L, D)
            if head_mask is not None:
                heads = heads * np.asarray(head_mask[n], heads.dtype)[:, None, None]
            x = x + project(merge_heads(heads), layer.W_O, layer.b_O)  # (B, L, E): the residual connection
            all_weights.append(trace.weights)
        logits = x @ self.unembedding  # (B, L, V)
        return (logits, all_weights) if return_weights else logits
