"""What a layer computed on its way, by name."""

from dataclasses import dataclass, fields
from typing import Any

MEANING = {
    "x": "the layer's input, one row per token",
    "key_input": "what the keys are made of",
    "value_input": "what the values are made of",
    "q": "queries, split into heads",
    "k": "keys, split into heads",
    "v": "values, split into heads",
    "scores": "query times key, scaled; bias added, -inf where masked",
    "weights": "softmax of the scores: each row sums to 1",
    "heads": "weights times values",
    "concat": "the heads side by side again",
    "output": "concat times W_O, plus b_O",
}


@dataclass(frozen=True, eq=False, repr=False)
class Trace:
    """Every intermediate of a multi-head attention layer; printing it gives a table of shapes.

    Shapes: x (..., L, E), q (..., H, L, D), k and v (..., H_kv, S, D), scores and weights (..., H, L, S),
    heads (..., H, L, D), concat (..., L, H*D), output (..., L, E). `key_input` and `value_input` are None in self-attention.

    >>> import numpy as np
    >>> from mha_lib.numpy import MultiHeadAttention
    >>> [name for name, _ in MultiHeadAttention(8, 2).trace(np.zeros((3, 8))).items()][:4]
    ['x', 'q', 'k', 'v']
    """

    x: Any
    q: Any
    k: Any
    v: Any
    scores: Any
    weights: Any
    heads: Any
    concat: Any
    output: Any
    key_input: Any = None
    value_input: Any = None

    def items(self):
        """(name, array) pairs in the order in which the layer computes them."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return [(name, named[name]) for name in MEANING if named[name] is not None]

    def __repr__(self):
        rows = [(name, str(tuple(array.shape)), MEANING[name]) for name, array in self.items()]
        widths = [max(len(row[i]) for row in rows) for i in (0, 1)]
        return "\n".join(f"{name:{widths[0]}}  {shape:{widths[1]}}  {meaning}" for name, shape, meaning in rows)
