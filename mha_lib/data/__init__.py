"""The examples of the course: a real layer, one small enough for a pencil, two trained models; what the whole model's heads do.

Loading needs only NumPy; the whole real model itself is not part of it (`mha_lib.data.model`).
"""

from .heads import load_measured, load_reference
from .induction import load_induction, repeated_sequences
from .minilm import SENTENCES, load_layer, load_vocabulary
from .model import load_model, load_tokenizer
from .pencil import load_pencil

__all__ = [
    "SENTENCES",
    "load_induction",
    "load_layer",
    "load_measured",
    "load_model",
    "load_pencil",
    "load_reference",
    "load_tokenizer",
    "load_vocabulary",
    "repeated_sequences",
]
