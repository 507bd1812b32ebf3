"""The two examples of the course: a real layer, and one small enough for a pencil. Loading them needs only NumPy."""

from .minilm import SENTENCES, load_layer, load_vocabulary
from .pencil import load_pencil

__all__ = ["SENTENCES", "load_layer", "load_pencil", "load_vocabulary"]
