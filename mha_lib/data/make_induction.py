"""Train the models of `induction.npz` again: python -m mha_lib.data.make_induction (needs torch; about a minute)

The same machine writes the same numbers; another processor may round differently, and training enlarges that.
"""

import numpy as np
import torch

from mha_lib.data import make_file
from mha_lib.data.induction import LENGTH, MODELS, VOCAB, repeated_sequences
from mha_lib.torch.training import AttentionModel, train

EMBED_DIM, STEPS, BATCH = 64, 800, 32


def trained(num_heads, num_layers=2, seed=0, steps=STEPS, periods=(4, 16)):
    """A model after its training, and the loss of each step."""
    rng = np.random.default_rng(seed)
    model = AttentionModel(VOCAB, EMBED_DIM, num_heads, num_layers, max_length=LENGTH, seed=seed)
    losses = train(model, (repeated_sequences(BATCH, rng=rng, periods=periods) for _ in range(steps)))
    return model, losses


def accuracy(model, seed=12345):
    """The share of right guesses among the predictable tokens of 256 new sequences."""
    tokens, targets, known = map(torch.as_tensor, repeated_sequences(256, rng=seed))
    with torch.no_grad():
        guesses = model(tokens).argmax(-1)  # (B, L)
    return (guesses == targets)[known].float().mean().item()


def arrays(model):
    """The weights by name; those of the layers on one first axis."""
    named = {name: getattr(model, name) for name in ("token_table", "position_table", "unembedding")}
    for name in ("W_Q", "W_K", "W_V", "W_O"):
        named[name] = torch.stack([getattr(layer, name) for layer in model.layers])
    return {name: x.detach().numpy() for name, x in named.items()}


if __name__ == "__main__":
    arguments = make_file.parser(__doc__, MODELS).parse_args()
    torch.set_num_threads(1)
    stored = {}
    for num_heads in (1, 8):
        model, losses = trained(num_heads)
        print(f"{num_heads} heads: loss {losses[0]:.2f} -> {losses[-1]:.4f}, accuracy {accuracy(model):.4f}")
        stored |= {f"{name}_{num_heads}": x.astype(np.float16) for name, x in arrays(model).items()}
    make_file.write(arguments.out, stored)
