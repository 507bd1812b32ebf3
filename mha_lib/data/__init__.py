"""The two examples of the course, a real layer and one small enough for a pencil; what the whole model's heads do.

Loading needs only NumPy; the whole model itself is not part of it (`mha_lib.data.model`).
"""

from .heads import load_measured, load_reference
from .minilm import SENTENCES, load_layer, load_vocabulary
from .model import load_model, load_tokenizer
from .pencil import load_pencil

__all__ = [
    "SENTENCES",
    "load_layer",
    "load_measured",
    "load_model",
    "load_pencil",
    "load_reference",
    "load_tokenizer",
    "load_vocabulary",
]
