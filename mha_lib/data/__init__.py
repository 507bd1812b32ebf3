"""The examples of the course: a real layer, one small enough for a pencil, two trained models. Loading needs only NumPy."""

from .induction import load_induction, repeated_sequences
from .minilm import SENTENCES, load_layer, load_vocabulary
from .pencil import load_pencil

__all__ = [
    "SENTENCES",
    "load_induction",
    "load_layer",
    "load_pencil",
    "load_vocabulary",
    "repeated_sequences",
]
