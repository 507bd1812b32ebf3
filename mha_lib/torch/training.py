"""A model of attention layers alone, and the loop that trains it."""

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
        vocab, max_length = _checks.integer("vocab", vocab, 1), _checks.integer("max_length", max_length, 1)
        num_layers = _checks.integer("num_layers", num_layers, 0)
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
        Errors: ValueError for more tokens than positions or another shape of the mask.
        """
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
                heads = heads * head_mask[n][:, None, None]
            x = x + project(merge_heads(heads), layer.W_O, layer.b_O)  # (B, L, E): the residual connection
            all_weights.append(trace.weights)
        logits = x @ self.unembedding  # (B, L, V)
        return (logits, all_weights) if return_weights else logits


def train(model, batches, *, lr=3e-3):
    """Train a model to predict the targets that can be known: Adam, whose steps shrink to 0 over the second half.

    batches: a sequence of (tokens, targets, known), each of the shape (B, L), as arrays or tensors; one step for each.
    known: boolean, the positions whose targets count. lr: the size of the first steps.
    Returns: a list with the loss of each step, the mean cross-entropy before it, in nats. The model is changed in place.
    Errors: ValueError without a batch.
    Source: Kingma and Ba 2015 (Adam).

    >>> model = AttentionModel(3, 8, 1, 1, max_length=2)
    >>> batch = torch.tensor([[0, 1]]), torch.tensor([[1, 2]]), torch.tensor([[True, True]])
    >>> losses = train(model, [batch] * 50)
    >>> len(losses), losses[-1] < losses[0] / 2
    (50, True)
    """
    batches = list(batches)
    if not batches:
        raise ValueError("batches must hold at least one batch, got none")
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, 2 - 2 * step / len(batches)))
    losses = []
    for batch in batches:
        tokens, targets, known = (torch.as_tensor(x) for x in batch)
        loss = F.cross_entropy(model(tokens)[known], targets[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses
