"""What the makers of the stored files share: their command line, and writing."""

import argparse
import hashlib
from pathlib import Path

import numpy as np


def parser(description, path):
    """A maker's command line: --out, `path` unless it says otherwise."""
    made = argparse.ArgumentParser(description=description.splitlines()[0])
    made.add_argument("--out", default=path, type=Path, help="the file to write")
    return made


def write(path, arrays):
    """Write the arrays, and say how large the file is and its sha256."""
    np.savez_compressed(path, **arrays)
    print(f"{path}: {path.stat().st_size} bytes, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()}")


def main(description, path, make):
    """The command of a maker that reads the whole model: write make(folder of the model)."""
    own = parser(description, path)
    own.add_argument("--model", help="folder with model.safetensors and tokenizer.json")
    arguments = own.parse_args()
    write(arguments.out, make(arguments.model))
