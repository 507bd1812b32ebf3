"""A model of attention layers alone, and the loop that trains it."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from .. import _checks
from .embedding import embedding
from .heads import merge_heads
from .multihead import MultiHeadAttention
from .projection import project


class AttentionModel(nn.Module):
    """Token and position rows, causal attention layers, each added to what it reads, and the logits of the next token.

    There are no biases, no LayerNorm and no feed-forward nets. token_table (V, E), position_table (max_length, E),
    unembedding (E, V), layers: a list of `MultiHeadAttention`; all are parameters.

    vocab: V. embed_dim: E. num_heads, num_layers: heads in each layer, and layers. max_length: positions that exist.
    seed: of all weights; the generator of PyTorch is left as it was.
    Errors: ValueError or TypeError that names the size.
    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits".

    >>> model = AttentionModel(5, 8, 2, 2, max_length=6)
    >>> tuple(model(torch.tensor([[0, 1, 2]])).shape)
    (1, 3, 5)
    """

    def __init__(self, vocab, embed_dim, num_heads, num_layers, *, max_length, seed=0):
        super().__init__()
        sizes = _checks.model_sizes(vocab, embed_dim, num_heads, num_layers, max_length, seed)
        vocab, embed_dim, num_heads, num_layers, max_length, seed = sizes
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            layers = (MultiHeadAttention(embed_dim, num_heads, bias=False) for _ in range(num_layers))
            self.layers = nn.ModuleList(layers)
            self.token_table = nn.Parameter(torch.randn(vocab, embed_dim))
            self.position_table = nn.Parameter(torch.randn(max_length, embed_dim))
            self.unembedding = nn.Parameter(torch.randn(embed_dim, vocab) / embed_dim**0.5)

    def forward(self, tokens, *, head_mask=None, return_weights=False):
        """The logits of the token after each position.

        Shapes: tokens (B, L) integers, L <= max_length -> logits (B, L, V), and with `return_weights=True` a list with
        the weights (B, H, L, L) of every layer.
        head_mask: None or (num_layers, H) numbers by which the heads' outputs are multiplied; 0 takes a head out. Its
        gradient says how much the loss depends on a head.
        Errors: ValueError for more tokens than positions or another shape of the mask, TypeError for what is no tensor.
        """
        return_weights = _checks.flag("return_weights", return_weights)
        for name, x in (("tokens", tokens), ("head_mask", head_mask)):
            if not isinstance(x, torch.Tensor) and not (name == "head_mask" and x is None):
                raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}")
        if head_mask is not None and head_mask.is_complex():
            raise TypeError(f"head_mask must hold real numbers, got {head_mask.dtype}")
        num_heads = self.layers[0].num_heads if self.layers else 0
        _checks.model_inputs(tokens.shape, len(self.position_table), head_mask, (len(self.layers), num_heads))
        x = embedding(tokens, self.token_table) + self.position_table[: tokens.shape[-1]]  # (B, L, E)
        all_weights = []
        for n, layer in enumerate(self.layers):
            if head_mask is None and not return_weights:
                x = x + layer(x, is_causal=True)  # the fused kernel
                continue
            trace = layer.trace(x, is_causal=True)
            heads = trace.heads  # (B, H, L, D)
            if head_mask is not None:
                heads = heads * head_mask[n][:, None, None].to(heads.dtype)
            x = x + project(merge_heads(heads), layer.W_O, layer.b_O)  # (B, L, E): the residual connection
            all_weights.append(trace.weights)
        logits = x @ self.unembedding  # (B, L, V)
        return (logits, all_weights) if return_weights else logits


def _batch(name, batch, max_length, vocab):
    """A batch as tensors: tokens and targets in 0..vocab-1, and where they count."""
    if not isinstance(batch, tuple | list) or len(batch) != 3:
        found = f"{len(batch)} parts" if isinstance(batch, tuple | list) else type(batch).__name__
        raise TypeError(f"{name} must be (tokens, targets, known), got {found}")
    kinds = {"tokens": "integers", "targets": "integers", "known": "booleans"}
    parts = {}
    for (part, kind), x in zip(kinds.items(), batch, strict=True):
        try:
            x = x if isinstance(x, torch.Tensor) else torch.tensor(np.array(x))
        except (TypeError, ValueError) as error:
            raise TypeError(f"{part} of {name} must be an array of {kind}: {error}") from None
        whole = not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool)
        if not (x.dtype == torch.bool if part == "known" else whole):
            raise TypeError(f"{part} of {name} must hold {kind}, got {x.dtype}")
        if x.ndim != 2 or x.shape[1] > max_length or (parts and x.shape != parts["tokens"].shape):
            wants = tuple(parts["tokens"].shape) if parts else f"(B, L) with L <= {max_length}"
            raise ValueError(f"{part} of {name} must have the shape {wants}, got {tuple(x.shape)}")
        if part != "known":
            x = x.long()
            if x.numel() and not (0 <= x.min() and x.max() < vocab):
                raise ValueError(f"{part} of {name} must lie in 0..{vocab - 1}, got values from {x.min()} to {x.max()}")
        parts[part] = x
    if not parts["known"].any():
        raise ValueError(f"known of {name} must be True somewhere, got no target that counts")
    return tuple(parts.values())


def train(model, batches, *, lr=3e-3):
    """Train a model to predict the targets that can be known: Adam, whose steps shrink to 0 over the second half.

    batches: a sequence of (tokens, targets, known), each of the shape (B, L), as arrays or tensors; one step for each.
    known: boolean, the positions whose targets count. lr: the size of the first steps.
    Returns: a list with the loss of each step, the mean cross-entropy before it, in nats. The model is changed in place.
    Errors: TypeError or ValueError that names the batch and what is wrong with it, or lr, before the first step.
    Source: Kingma and Ba 2015 (Adam).

    >>> model = AttentionModel(3, 8, 1, 1, max_length=2)
    >>> batch = torch.tensor([[0, 1]]), torch.tensor([[1, 2]]), torch.tensor([[True, True]])
    >>> losses = train(model, [batch] * 50)
    >>> len(losses), losses[-1] < losses[0] / 2
    (50, True)
    """
    if not isinstance(model, AttentionModel):
        raise TypeError(f"model must be a mha_lib.torch AttentionModel, got {type(model).__name__}")
    if not hasattr(batches, "__iter__"):
        raise TypeError(f"batches must be a sequence of (tokens, targets, known), got {type(batches).__name__}")
    lr, (max_length, _), vocab = _checks.positive("lr", lr), model.position_table.shape, len(model.token_table)
    batches = [_batch(f"batch {n}", batch, max_length, vocab) for n, batch in enumerate(batches)]
    if not batches:
        raise ValueError("batches must hold at least one batch, got none")
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 - 2 * step / len(batches)))
    losses = []
    for tokens, targets, known in batches:
        loss = F.cross_entropy(model(tokens)[known], targets[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses
