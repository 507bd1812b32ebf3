"""A task that two layers learn and one does not, and two small models that have learned it.

Random tokens, repeated with a period that changes from sequence to sequence. `make_induction.py` trains the models.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from .. import _checks
from ._files import read

MODELS = Path(__file__).with_name("induction.npz")
VOCAB, LENGTH, PERIODS = 32, 40, (4, 16)


@dataclass(frozen=True, eq=False, repr=False)
class Induction:
    """A trained model of two attention layers, and nothing else between the embedding and the logits.

    Shapes, with V = 32 tokens, E = 64, at most 40 positions: token_table (V, E), position_table (40, E), unembedding (E, V),
    and for each of the two layers, first axis, W_Q, W_K, W_V, W_O (2, E, E). There are no biases and no LayerNorm.
    num_heads: heads in each layer, of width E / num_heads.
    """

    token_table: np.ndarray
    position_table: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray
    unembedding: np.ndarray
    num_heads: int

    def __repr__(self):
        return f"An attention-only model of 2 layers with {self.num_heads} heads each, trained on repeated sequences"


def load_induction(num_heads=8):
    """A model of two layers that continues repeated sequences, with 8 heads in each layer or with 1.

    Returns: an `Induction`, whose arrays `mha_lib.numpy.AttentionModel.from_arrays` takes; float32, stored in float16.
    Errors: ValueError for another number of heads than 1 and 8; FileNotFoundError or ValueError that names the file.
    Source: trained by `python -m mha_lib.data.make_induction`; the architecture is that of Elhage et al. 2021.

    >>> model = load_induction()
    >>> model.W_Q.shape, model.num_heads
    ((2, 64, 64), 8)
    """
    num_heads = _checks.integer("num_heads", num_heads, 1)
    if num_heads not in (1, 8):
        raise ValueError(f"num_heads must be 1 or 8, got {num_heads}")
    names = [name for name in Induction.__annotations__ if name != "num_heads"]
    stored = read(MODELS, [f"{name}_{num_heads}" for name in names], "make_induction")
    arrays = {name: stored[f"{name}_{num_heads}"].astype(np.float32) for name in names}
    return Induction(**arrays, num_heads=num_heads)


def repeated_sequences(batch_size, *, rng, length=LENGTH, vocab=VOCAB, periods=PERIODS):
    """Sequences in which a block of different tokens, drawn at random, comes again and again.

    rng: a NumPy generator or a seed. periods: the smallest and the largest length of the block, drawn for each sequence.
    Returns: tokens (B, L), what the model reads; targets (B, L), the token after each; known (B, L), boolean: whether the
    target follows from what was read, that is from the first token of the second block on.
    Errors: ValueError where a block does not fit into the vocabulary or the sequence, TypeError for sizes that are no integers.
    Source: after the repeated random sequences of Olsson et al. 2022; here the period varies.

    >>> tokens, targets, known = repeated_sequences(1, rng=0, length=6, vocab=5, periods=(3, 3))
    >>> print(tokens, targets, known.astype(int), sep="\\n")
    [[2 4 3 2 4 3]]
    [[4 3 2 4 3 2]]
    [[0 0 0 1 1 1]]
    """
    batch_size, vocab = _checks.integer("batch_size", batch_size, 0), _checks.integer("vocab", vocab, 1)
    length = _checks.integer("length", length, 2)
    if not isinstance(periods, tuple | list | np.ndarray) or len(periods) != 2:
        raise TypeError(f"periods must be two integers, the smallest and the largest, got {periods!r}")
    low, high = (_checks.integer("each of periods", period) for period in periods)
    if not 1 <= low <= high <= min(vocab, length - 1):
        raise ValueError(f"periods must lie in 1..{min(vocab, length - 1)}, the smaller one first, got {periods}")
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise TypeError(f"rng must be a NumPy generator or a seed, got {rng!r}") from None
    period = rng.integers(low, high + 1, (batch_size, 1))  # (B, 1)
    block = rng.permuted(np.tile(np.arange(vocab), (batch_size, 1)), axis=-1)  # (B, V), each token once
    sequence = np.take_along_axis(block, np.arange(length + 1) % period, axis=-1)  # (B, L + 1)
    known = np.arange(length) >= period  # (B, L)
    return sequence[:, :-1], sequence[:, 1:], known
