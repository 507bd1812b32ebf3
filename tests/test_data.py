"""The extract of the real model and the pencil example."""

import hashlib

import numpy as np
import pytest

from mha_lib import numpy as right
from mha_lib.data import SENTENCES, load_layer, load_pencil, load_vocabulary
from mha_lib.data.minilm import EXTRACT, SHA256, _arrays


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
