"""One real attention layer and its inputs: layer 3 (counted from 0) of all-MiniLM-L6-v2, in a file of 1.3 MB.

The file is stored in float16 and given in float32. NOTICE beside it says where it comes from; `make_extract.py` makes it.
"""

import hashlib
import io
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from .. import _checks

EXTRACT = Path(__file__).with_name("minilm_extract.npz")
SHA256 = "5ea9c7c0cb45c58bda30f6a0f279f73d9bb7f988823e052d60e03cae273ec1fd"
SENTENCES = (
    "The animal didn't cross the street because it was too tired.",
    "The animal didn't cross the street because it was too wide.",
    "The trophy doesn't fit in the brown suitcase because it is too big.",
    "She poured water from the bottle into the cup until it was full.",
    "Unbelievably, the multiheaded dragon slept.",
    "The bank raised its rates before the river bank flooded.",
)


@dataclass(frozen=True, eq=False, repr=False)
class Layer:
    """The layer's weights (they multiply from the right), one sentence, and what makes the input of layer 0.

    Shapes, with L the number of word pieces of the sentence, E = 384, num_heads = 12: x (L, E), the input of this layer;
    tokens and ids of length L; W_Q, W_K, W_V, W_O (E, E) and b_Q, b_K, b_V, b_O (E,); residual_norm_weight and
    residual_norm_bias (E,), the LayerNorm after the layer; token_rows, position_rows and type_rows (L, E), norm_weight and
    norm_bias (E,), which make the input of layer 0.
    """

    sentence: str
    tokens: list
    ids: np.ndarray
    x: np.ndarray
    W_Q: np.ndarray
    b_Q: np.ndarray
    W_K: np.ndarray
    b_K: np.ndarray
    W_V: np.ndarray
    b_V: np.ndarray
    W_O: np.ndarray
    b_O: np.ndarray
    residual_norm_weight: np.ndarray
    residual_norm_bias: np.ndarray
    token_rows: np.ndarray
    position_rows: np.ndarray
    type_rows: np.ndarray
    norm_weight: np.ndarray
    norm_bias: np.ndarray
    num_heads: int = 12

    def __repr__(self):
        return f"Layer 3 of all-MiniLM-L6-v2 on {len(self.tokens)} word pieces of {self.sentence!r}"


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """A small part of the model's vocabulary: pieces (V of them), their ids in the whole vocabulary, their rows (V, E)."""

    pieces: list
    ids: np.ndarray
    table: np.ndarray

    def __repr__(self):
        return f"{len(self.pieces)} of the 30522 word pieces of all-MiniLM-L6-v2, with their embedding rows"


def load_layer(sentence=0):
    """The real layer with one of its sentences (numbers 0 to 5, see `SENTENCES`).

    Returns: a `Layer` with x, tokens, ids, W_Q ... b_O and more, float32; every call gives arrays of its own.
    `mha_lib.numpy.MultiHeadAttention.from_arrays` takes it.
    Errors: ValueError for another sentence; FileNotFoundError or ValueError that names the file, what was expected and how to
    make it.
    Source: sentence-transformers/all-MiniLM-L6-v2, Apache-2.0.

    >>> layer = load_layer()
    >>> layer.x.shape, layer.tokens[:3]
    ((16, 384), ['[CLS]', 'the', 'animal'])
    """
    sentence = _checks.integer("sentence", sentence, 0)
    if sentence >= len(SENTENCES):
        raise ValueError(f"sentence must be one of 0..{len(SENTENCES) - 1}, got {sentence}")
    stored = _arrays(EXTRACT)
    L = len(stored[f"ids_{sentence}"])
    rows = np.searchsorted(stored["piece_ids"], stored[f"ids_{sentence}"])
    own = [name for name in Layer.__annotations__ if name in stored]
    return Layer(
        sentence=SENTENCES[sentence],
        tokens=stored[f"tokens_{sentence}"].tolist(),
        ids=stored[f"ids_{sentence}"].copy(),
        x=_float32(stored[f"x_{sentence}"]),
        token_rows=_float32(stored["token_table"][rows]),
        position_rows=_float32(stored["position_table"][:L]),
        type_rows=np.tile(_float32(stored["type_row"]), (L, 1)),
        **{name: _float32(stored[name]) for name in own},
    )


def load_vocabulary():
    """Some word pieces of the model with their ids and embedding rows, sorted by id.

    Returns: a `Vocabulary` with pieces (a list of V strings), ids (V,), table (V, 384) float32.
    Errors: as `load_layer`.

    >>> vocabulary = load_vocabulary()
    >>> vocabulary.ids[vocabulary.pieces.index("animal")]
    np.int64(4111)
    """
    stored = _arrays(EXTRACT)
    return Vocabulary(stored["pieces"].tolist(), stored["piece_ids"].copy(), _float32(stored["token_table"]))


def _float32(x):
    return x.astype(np.float32)


@cache
def _arrays(path):
    """The arrays of the extract, once their hash is checked."""
    how = "make it again with `python -m mha_lib.data.make_extract`, or reinstall mha-lib"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing: expected the extract of all-MiniLM-L6-v2; {how}")
    content = path.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(
            f"{path} is not the extract of all-MiniLM-L6-v2: its sha256 is {found}, expected {SHA256}; {how}"
        )
    with np.load(io.BytesIO(content)) as archive:
        return dict(archive)
