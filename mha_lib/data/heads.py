"""What was measured on all 72 heads of all-MiniLM-L6-v2: a file of 0.2 MB, so that chapter 15 also runs in a browser.

`make_heads.py` makes it from the whole model; NOTICE says where that comes from.
"""

from functools import cache
from pathlib import Path
from types import SimpleNamespace

from ._files import read

HEADS = Path(__file__).with_name("minilm_heads.npz")
REFERENCE = Path(__file__).with_name("minilm_reference.npz")
PER_HEAD = ("previous", "next", "first", "largest", "first_share", "first_image", "added", "silent", "constant", "even")
PAIRS = [
    f"{kind}_{name}" for kind in ("sense", "agreement") for name in ("ids", "lengths", "marks", "to_meant", "to_other")
]


def load_measured():
    """What 72 heads do on 100 plain sentences and 160 about a pronoun (`mha_lib.data.sentences`), float64.

    Returns: a namespace. ids (100, 14) with 0 as padding, lengths (100,). Per layer, sentence and head, (6, 100, 12), means
    over the words of the sentence: previous, next, first: the weight on the previous word, the next word, `[CLS]`; largest: the
    largest weight; first_share: the share of `[CLS]` in the contributions; added: the length of what the head adds to a row.
    first_image (6, 100, 12): the image of the value of `[CLS]`, relative to those of the words. silent, constant, even: 1 - cosine
    of the sentence's embedding before and after the head gives zeros, its own mean, or the mean of all values.
    sense, agreement: namespaces with ids (80, L), lengths (80,), marks (3, 80, L): the pronoun, the noun it means, the other noun; to_meant,
    to_other (6, 80, 12): the pronoun's weight on either. Readings 2n and 2n + 1 are a pair.
    Errors: FileNotFoundError or ValueError that names the file and how to make it.
    Source: sentence-transformers/all-MiniLM-L6-v2, Apache-2.0.

    >>> load_measured().previous.shape
    (6, 100, 12)
    """
    arrays = {name: x.astype(float) if x.dtype.kind == "f" else x.copy() for name, x in _measured(HEADS).items()}
    result = SimpleNamespace()
    for kind in ("sense", "agreement"):
        names = [name for name in arrays if name.startswith(kind + "_")]
        own = {name.removeprefix(kind + "_"): arrays.pop(name) for name in names}
        setattr(result, kind, SimpleNamespace(**own))
    vars(result).update(arrays)
    return result


def load_reference():
    """What Hugging Face's BertModel gives in float32: a namespace.

    hidden (7, 16, 384) and weights (6, 12, 16, 16) for the first of `SENTENCES`; pooled (8, 384), the embeddings of the first
    eight plain sentences in one padded batch. `make_reference.py` makes the file.
    Errors: as `load_measured`.

    >>> load_reference().hidden.shape
    (7, 16, 384)
    """
    return SimpleNamespace(**{name: x.copy() for name, x in _reference(REFERENCE).items()})


@cache
def _measured(path):
    return read(path, ("ids", "lengths", *PER_HEAD, *PAIRS), "make_heads")


@cache
def _reference(path):
    return read(path, ("hidden", "weights", "pooled"), "make_reference")
