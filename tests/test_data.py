"""The extract of the real model and the pencil example."""

import hashlib

import numpy as np
import pytest

from mha_lib import numpy as right
from mha_lib.data import (
    SENTENCES,
    heads,
    induction,
    load_induction,
    load_layer,
    load_measured,
    load_pencil,
    load_reference,
    load_vocabulary,
    repeated_sequences,
)
from mha_lib.data.minilm import EXTRACT, SHA256, _arrays
from mha_lib.data.sentences import readings


def test_it_looks_at_animal():
    stored = load_layer()
    _, weights = right.MultiHeadAttention.from_arrays(stored)(stored.x, return_weights=True)
    it, animal = stored.tokens.index("it"), stored.tokens.index("animal")
    assert weights[1, it].argmax() == animal and f"{weights[1, it, animal]:.2f}" == "0.68"


@pytest.mark.parametrize("sentence", range(len(SENTENCES)))
def test_every_sentence(sentence):
    stored = load_layer(sentence)
    L = len(stored.tokens)
    assert stored.tokens[0] == "[CLS]" and stored.tokens[-1] == "[SEP]" and len(stored.ids) == L
    for name in ("x", "token_rows", "position_rows", "type_rows"):
        assert getattr(stored, name).shape == (L, 384) and getattr(stored, name).dtype == np.float32
    assert stored.sentence == SENTENCES[sentence] and SENTENCES[sentence] in repr(stored)
    joined = "".join(token.removeprefix("##") for token in stored.tokens[1:-1])
    assert joined == stored.sentence.lower().replace(" ", "")


def test_the_file_is_small_and_has_the_hash_that_the_loader_wants():
    content = EXTRACT.read_bytes()
    assert hashlib.sha256(content).hexdigest() == SHA256 and len(content) < 1_600_000


def test_each_call_gives_arrays_of_its_own():
    load_layer().W_Q[:] = 0
    load_vocabulary().table[:] = 0
    load_pencil().x[:] = 0
    assert load_layer().W_Q.any() and load_vocabulary().table.any() and load_pencil().x.any()


def test_a_wrong_or_missing_file_says_what_to_do(tmp_path):
    wrong = tmp_path / "wrong.npz"
    wrong.write_bytes(EXTRACT.read_bytes()[:-1])
    with pytest.raises(
        ValueError, match=f"wrong.npz is not the extract.*expected {SHA256}; make it again with .python -m mha_lib"
    ):
        _arrays(wrong)
    with pytest.raises(FileNotFoundError, match=r"gone.npz is missing: expected the extract.*; make it again with"):
        _arrays(tmp_path / "gone.npz")


@pytest.mark.parametrize("sentence, error", [(6, ValueError), (-1, ValueError), ("0", TypeError), (True, TypeError)])
def test_bad_sentences(sentence, error):
    with pytest.raises(error, match="sentence must be"):
        load_layer(sentence)


def test_the_pencil_example_has_whole_numbers_and_sizes_that_differ():
    pencil = load_pencil()
    assert len(pencil.tokens) == 3 and pencil.x.shape == (3, 8) and pencil.num_heads == 2
    for W in (pencil.W_Q, pencil.W_K, pencil.W_V, pencil.W_O):
        assert W.shape == (8, 8) and W.dtype.kind == "i" and abs(W).max() <= 3
    q, k = (right.split_heads(pencil.x @ W, 2) for W in (pencil.W_Q, pencil.W_K))
    assert (q[0] @ k[0].T == [[4, 1, 0], [0, 4, 7], [2, 2, 3]]).all()


def cut(content):
    return content[:-100]


def flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


@pytest.mark.parametrize("damage", [cut, flipped, lambda content: b"", lambda content: b"version https"])
@pytest.mark.parametrize(
    "module, name, load, script",
    [
        (heads, "HEADS", load_measured, "make_heads"),
        (heads, "REFERENCE", load_reference, "make_reference"),
        (induction, "MODELS", load_induction, "make_induction"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_a_damaged_missing_or_other_file_says_what_to_do(tmp_path, monkeypatch, module, name, load, script, damage):
    again = rf"; make it again with `python -m mha_lib.data.{script}`, or reinstall mha-lib$"
    path, content = tmp_path / "file.npz", getattr(module, name).read_bytes()
    monkeypatch.setattr(module, name, path)
    with pytest.raises(FileNotFoundError, match="file.npz is missing" + again):
        load()
    path.write_bytes(damage(content))
    with pytest.raises(ValueError, match="file.npz is damaged: it must be an .npz file of arrays" + again):
        load()
    np.savez(path, other=1)
    with pytest.raises(ValueError, match="file.npz is another file: it must hold the array '.*'" + again):
        load()


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"batch_size": -1}, ValueError, "batch_size must be an integer >= 0, got -1"),
        ({"batch_size": 2.0}, TypeError, "batch_size must be an integer >= 0, got 2.0"),
        ({"length": 1}, ValueError, "length must be an integer >= 2, got 1"),
        ({"vocab": 8.5}, TypeError, "vocab must be an integer >= 1, got 8.5"),
        ({"periods": 4}, TypeError, "periods must be two integers, the smallest and the largest, got 4"),
        ({"periods": (2.5, 4)}, TypeError, "each of periods must be an integer, got 2.5"),
        ({"rng": "a"}, TypeError, "rng must be a NumPy generator or a seed, got 'a'"),
        ({"rng": -1}, TypeError, "rng must be a NumPy generator or a seed, got -1"),
    ],
)
def test_bad_sizes_of_sequences(arguments, error, message):
    with pytest.raises(error, match=message):
        repeated_sequences(**{"batch_size": 1, "rng": 0, **arguments})


@pytest.mark.parametrize(
    "pair", [None, "abc", ("No braces.", "it", "a", "b"), ("The {a|b|c}.", "it", "a", "b"), ("{a|b}", "a")]
)
def test_what_is_no_pair_of_readings(pair):
    with pytest.raises(ValueError, match=r"pair must be \(sentence with \{word\|word\}"):
        readings(pair)
