"""The readable path: one module per idea, NumPy only.

Letters, everywhere: B batch, H heads, L query length, S key length, E embedding size, D head size. Arrays are
(..., H, L, D), heads before length. Weights multiply from the right. In a mask, True means: may attend.
"""

from .attention import scaled_dot_product_attention, scaled_dot_product_attention_backward
from .cache import KVCache
from .embedding import embedding, layer_norm
from .flash import flash_attention, flash_attention_backward
from .heads import merge_heads, split_heads
from .masks import causal_mask, padding_mask, sliding_window_mask
from .multihead import MultiHeadAttention
from .positions import alibi_bias, rope, sinusoidal_positions
from .projection import project
from .scores import attention_scores
from .softmax import softmax

__all__ = [
    "KVCache",
    "MultiHeadAttention",
    "alibi_bias",
    "attention_scores",
    "causal_mask",
    "embedding",
    "flash_attention",
    "flash_attention_backward",
    "layer_norm",
    "merge_heads",
    "padding_mask",
    "project",
    "rope",
    "scaled_dot_product_attention",
    "scaled_dot_product_attention_backward",
    "sinusoidal_positions",
    "sliding_window_mask",
    "softmax",
    "split_heads",
]
