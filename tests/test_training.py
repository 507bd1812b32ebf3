"""The task of repeated sequences, the attention-only model on both paths, its training, and the two models that are kept."""

from types import SimpleNamespace

import numpy as np
import pytest
from common import TOLERANCE, close

from mha_lib import numpy as right
from mha_lib.data import load_induction, repeated_sequences
from mha_lib.data.induction import MODELS
from mha_lib.numpy.training import AttentionModel


# --------------------------------------------------------------------------------------------------------------------- the task
def test_the_sequences_repeat_and_the_targets_are_shifted():
    tokens, targets, known = repeated_sequences(200, rng=0)
    assert tokens.shape == targets.shape == known.shape == (200, 40)
    assert (tokens[:, 1:] == targets[:, :-1]).all()
    periods = (~known).sum(1)
    assert set(periods) == set(range(4, 17))  # every period comes up
    for row, last, period in zip(tokens, targets[:, -1], periods, strict=True):
        whole = np.append(row, last)
        assert len(set(whole[:period])) == period  # no token twice in a block
        assert (whole[period:] == whole[:-period]).all()


def test_known_is_what_can_be_known():
    """Where the current token has come before, the target is what followed it then; elsewhere the token is new."""
    tokens, targets, known = repeated_sequences(50, rng=1)
    for row, wanted, may in zip(tokens, targets, known, strict=True):
        for t in range(40):
            before = np.flatnonzero(row[:t] == row[t])
            assert len(before) > 0 if may[t] else len(before) == 0
            assert not may[t] or (row[before + 1] == wanted[t]).all()


def test_the_task_is_the_same_for_a_seed_and_new_for_a_generator():
    assert (repeated_sequences(3, rng=5)[0] == repeated_sequences(3, rng=np.random.default_rng(5))[0]).all()
    rng = np.random.default_rng(5)
    assert (repeated_sequences(3, rng=rng)[0] != repeated_sequences(3, rng=rng)[0]).any()


@pytest.mark.parametrize("periods", [(0, 4), (5, 4), (4, 33), (4, 40)])
def test_bad_periods(periods):
    with pytest.raises(ValueError, match="periods must lie in 1..32"):
        repeated_sequences(1, rng=0, periods=periods)


# ------------------------------------------------------------------------------------------------------------- the models kept
@pytest.fixture(scope="module", params=[1, 8])
def kept(request):
    return AttentionModel.from_arrays(load_induction(request.param), np.float64)


def accuracy(logits, targets, known):
    return (logits.argmax(-1) == targets)[known].mean()


def test_the_kept_models_continue_new_sequences(kept):
    tokens, targets, known = repeated_sequences(200, rng=2)
    assert accuracy(kept(tokens), targets, known) > 0.999
    assert accuracy(kept(tokens), targets, ~known) < 0.06  # what cannot be known is not guessed


def test_without_a_layer_the_kept_models_fail(kept):
    tokens, targets, known = repeated_sequences(100, rng=3)
    H = kept.layers[0].num_heads
    for layer, most in ((0, 0.2), (1, 0.06)):
        head_mask = np.ones((2, H))
        head_mask[layer] = 0
        assert accuracy(kept(tokens, head_mask=head_mask), targets, known) < most


def test_the_one_head_of_each_layer_does_its_part():
    """Layer 0 looks at the token before, in the first block; layer 1 at what followed the same token."""
    tokens, _, known = repeated_sequences(100, rng=4)
    _, (first, second) = AttentionModel.from_arrays(load_induction(1), np.float64)(tokens, return_weights=True)
    i = np.arange(1, 16)
    assert first[:, 0, i, i - 1].mean() > 0.97
    followed = np.zeros((100, 40, 40), bool)
    followed[:, :, 1:] = tokens[:, :, None] == tokens[:, None, :-1]
    followed &= right.causal_mask(40)
    assert (second[:, 0] * followed).sum(-1)[known].mean() > 0.99


def test_the_file_is_small_and_each_call_gives_arrays_of_its_own():
    assert MODELS.stat().st_size < 500_000
    load_induction().W_Q[:] = 0
    assert load_induction().W_Q.any() and load_induction().W_Q.dtype == np.float32
    assert "8 heads" in repr(load_induction())


@pytest.mark.parametrize("num_heads, error", [(2, ValueError), (0, ValueError), ("8", TypeError)])
def test_other_numbers_of_heads(num_heads, error):
    with pytest.raises(error, match="num_heads must be"):
        load_induction(num_heads)


# ------------------------------------------------------------------------------------------------------------- the NumPy model
def test_the_model_is_the_sum_of_what_its_layers_write():
    stored = load_induction()
    model, tokens = AttentionModel.from_arrays(stored, np.float64), repeated_sequences(2, rng=6)[0][:, :30]
    x = stored.token_table.astype(float)[tokens] + stored.position_table[:30]
    for layer in model.layers:
        x = x + layer(x, is_causal=True)
    close(model(tokens), x @ stored.unembedding)
    close(model(tokens, head_mask=np.ones((2, 8))), model(tokens))


def test_the_model_does_not_see_the_future(kept):
    tokens = repeated_sequences(2, rng=7)[0]
    other = tokens.copy()
    other[:, 20:] = (other[:, 20:] + 1) % 32
    close(kept(other)[:, :20], kept(tokens)[:, :20])


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_errors_name_the_argument(library):
    if library == "torch":
        torch = pytest.importorskip("torch")
        from mha_lib.torch.training import AttentionModel as Model

        model, as_tokens = Model(5, 8, 2, 2, max_length=6), torch.zeros
    else:
        model, as_tokens = AttentionModel(5, 8, 2, 2, max_length=6), np.zeros
    with pytest.raises(ValueError, match=r"tokens must have the shape \(B, L\) with L <= 6, got \(1, 7\)"):
        model(as_tokens((1, 7), dtype=int))
    with pytest.raises(ValueError, match=r"tokens must have the shape"):
        model(as_tokens(4, dtype=int))
    with pytest.raises(ValueError, match=r"head_mask must be an array of the shape \(num_layers, H\) = \(2, 2\)"):
        model(as_tokens((1, 3), dtype=int), head_mask=as_tokens((2, 3)))


# ------------------------------------------------------------------------------------------------------------- the torch model
def twin(num_heads, dtype="float64"):
    """The kept model on both paths."""
    torch = pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as Model

    stored = load_induction(num_heads)
    model = Model(32, 64, num_heads, 2, max_length=40).to(getattr(torch, dtype))
    with torch.no_grad():
        for name in ("token_table", "position_table", "unembedding"):
            getattr(model, name).copy_(torch.from_numpy(getattr(stored, name)))
        for n, layer in enumerate(model.layers):
            for name in ("W_Q", "W_K", "W_V", "W_O"):
                getattr(layer, name).copy_(torch.from_numpy(getattr(stored, name)[n]))
    return model, AttentionModel.from_arrays(stored, np.dtype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("num_heads", [1, 8])
def test_both_paths_give_the_same_numbers(num_heads, dtype):
    import torch

    limit = 4 * TOLERANCE[dtype]  # two layers and two products: what one attention may be off adds up
    model, other = twin(num_heads, dtype)
    tokens = repeated_sequences(3, rng=8)[0]
    head_mask = np.linspace(0, 1, 2 * num_heads).reshape(2, num_heads)
    with torch.no_grad():
        close(model(torch.from_numpy(tokens)).numpy(), other(tokens), limit)
        ours, our_weights = model(torch.from_numpy(tokens), head_mask=torch.tensor(head_mask).to(getattr(torch, dtype)),
                                  return_weights=True)  # fmt: skip
    theirs, their_weights = other(tokens, head_mask=head_mask, return_weights=True)
    close(ours.numpy(), theirs, limit)
    for a, b in zip(our_weights, their_weights, strict=True):
        close(a.numpy(), b, limit)


def test_a_head_mask_has_a_gradient():
    import torch

    model, _ = twin(8)
    tokens, targets, known = map(torch.from_numpy, repeated_sequences(8, rng=9))
    head_mask = torch.ones(2, 8, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.cross_entropy(model(tokens, head_mask=head_mask)[known], targets[known]).backward()
    assert head_mask.grad.shape == (2, 8) and head_mask.grad.abs().min() > 0


def test_seeds_make_the_same_model_and_leave_the_generator_alone():
    torch = pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as Model

    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    one, two, three = (Model(5, 8, 2, 2, max_length=6, seed=s) for s in (1, 1, 2))
    assert (torch.random.get_rng_state() == before).all()
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        assert (a == b).all()
    assert (one.layers[0].W_Q != three.layers[0].W_Q).any()


def test_training_forms_induction_in_two_layers_and_not_in_one():
    torch = pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as Model
    from mha_lib.torch.training import train

    torch.set_num_threads(1)
    tokens, targets, known = map(torch.from_numpy, repeated_sequences(100, rng=10))
    reached = {}
    for num_layers in (1, 2):
        rng = np.random.default_rng(0)
        model = Model(32, 64, 1, num_layers, max_length=40)
        losses = train(model, (repeated_sequences(32, rng=rng) for _ in range(250)))
        assert len(losses) == 250 and losses[0] > np.log(32)
        with torch.no_grad():
            reached[num_layers] = accuracy(model(tokens).numpy(), targets.numpy(), known.numpy())
    assert reached[1] < 0.45 and reached[2] > 0.98, reached


def test_training_is_adam_with_steps_that_shrink_over_the_second_half():
    torch = pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as Model
    from mha_lib.torch.training import train

    batches = [repeated_sequences(4, rng=seed) for seed in range(8)]
    ours, theirs = (Model(32, 16, 2, 2, max_length=40) for _ in range(2))
    losses, expected = train(ours, batches, lr=0.01), []
    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98))
    for batch, factor in zip(batches, (1, 1, 1, 1, 1, 0.75, 0.5, 0.25), strict=True):
        optimizer.param_groups[0]["lr"] = 0.01 * factor
        tokens, targets, known = map(torch.from_numpy, batch)
        log_p = theirs(tokens).log_softmax(-1).gather(-1, targets[..., None])[..., 0]  # (B, L)
        loss = -log_p[known].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        expected.append(loss.item())
    assert np.allclose(losses, expected, rtol=1e-4)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(a, b, atol=1e-4)


def test_training_needs_a_batch():
    pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as Model
    from mha_lib.torch.training import train

    with pytest.raises(ValueError, match="batches must hold at least one batch"):
        train(Model(5, 8, 1, 1, max_length=4), [])


# -------------------------------------------------------------------------------------------------------------------- bad inputs
@pytest.fixture(params=["numpy", "torch"])
def either(request):
    """The model of a path, and what makes an array of it."""
    if request.param == "numpy":
        return AttentionModel, np.array
    torch = pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as TorchModel

    return TorchModel, torch.tensor


@pytest.mark.parametrize(
    "sizes, error, message",
    [
        ((5, 9, 2, 0), ValueError, "embed_dim must be divisible by num_heads, got 9 and 2"),
        ((5, -1, 2, 0), ValueError, "embed_dim must be an integer >= 1, got -1"),
        ((5, 8, 0, 0), ValueError, "num_heads must be an integer >= 1, got 0"),
        ((5, 8.0, 2, 0), TypeError, "embed_dim must be an integer >= 1, got 8.0"),
    ],
)
def test_a_model_without_layers_has_checked_sizes_too(either, sizes, error, message):
    with pytest.raises(error, match=message):
        either[0](*sizes, max_length=3)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None])
def test_a_seed_is_a_whole_number(either, seed):
    with pytest.raises((ValueError, TypeError), match="seed must be an integer >= 0, got"):
        either[0](5, 8, 2, 1, max_length=3, seed=seed)


def test_masks_of_heads_and_flags_are_checked(either):
    make, array = either
    model, tokens = make(5, 8, 2, 2, max_length=3), array([[0, 1]])
    with pytest.raises((ValueError, TypeError), match="head_mask must be .*, got list"):
        model(tokens, head_mask=[[1, 1], [1, 1]])
    with pytest.raises(TypeError, match="head_mask must hold real numbers, got .*complex"):
        model(tokens, head_mask=array([[1j, 1], [1, 1]]))
    with pytest.raises(TypeError, match="return_weights must be True or False, got int"):
        model(tokens, return_weights=1)
    wide = array([[1.0, 1.0], [1.0, 1.0]])  # float64 of NumPy
    assert model(tokens, head_mask=wide).dtype == model(tokens).dtype
    if make is AttentionModel:
        assert (model([[0, 1]]) == model(tokens)).all()
    else:
        assert model(tokens, head_mask=wide.double()).dtype == model(tokens).dtype
        with pytest.raises(TypeError, match="tokens must be a torch.Tensor, got list"):
            model([[0, 1]])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"token_table": np.ones(3)}, r"token_table must have the axes \(V, E\), got shape \(3,\)"),
        ({"position_table": np.ones((40, 63))}, r"position_table must have the shape \(40, 64\), got \(40, 63\)"),
        ({"unembedding": np.ones((64, 31))}, r"unembedding must have the shape \(64, 32\), got \(64, 31\)"),
        ({"W_K": np.ones((3, 64, 64))}, r"W_K must have the shape \(2, 64, 64\), got \(3, 64, 64\)"),
        ({"W_O": None}, "W_O must hold real numbers, got dtype object"),
    ],
)
def test_arrays_that_do_not_fit_together(change, message):
    arrays = SimpleNamespace(**(vars(load_induction()) | change))
    with pytest.raises((ValueError, TypeError), match=message):
        AttentionModel.from_arrays(arrays)


def test_no_arrays_and_no_floats():
    with pytest.raises(TypeError, match="arrays must have token_table, .* and num_heads, got dict"):
        AttentionModel.from_arrays(vars(load_induction()))
    with pytest.raises(TypeError, match="dtype must be a floating-point dtype, got int64"):
        AttentionModel.from_arrays(load_induction(), dtype=np.int64)


GOOD = (np.array([[0, 1]]), np.array([[1, 2]]), np.array([[True, True]]))


@pytest.mark.parametrize(
    "batch, message",
    [
        (GOOD[:2], r"batch 1 must be \(tokens, targets, known\), got 2 parts"),
        ((GOOD[0], GOOD[1], np.array([[1, 1]])), "known of batch 1 must hold booleans, got torch.int64"),
        ((GOOD[0], GOOD[1], GOOD[2][:, :1]), r"known of batch 1 must have the shape \(1, 2\), got \(1, 1\)"),
        ((GOOD[0], GOOD[1], ~GOOD[2]), "known of batch 1 must be True somewhere"),
        ((GOOD[0], np.array([[1, -100]]), GOOD[2]), "targets of batch 1 must lie in 0..4, got values from -100 to 1"),
        ((GOOD[0], np.array([[1.0, 2.0]]), GOOD[2]), "targets of batch 1 must hold integers, got torch.float64"),
        ((np.array([[0, 9]]), *GOOD[1:]), "tokens of batch 1 must lie in 0..4, got values from 0 to 9"),
        (
            (np.zeros((1, 4), int), *GOOD[1:]),
            r"tokens of batch 1 must have the shape \(B, L\) with L <= 3, got \(1, 4\)",
        ),
    ],
)
def test_a_bad_batch_is_named_before_the_first_step(batch, message):
    pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as TorchModel
    from mha_lib.torch.training import train

    model = TorchModel(5, 8, 2, 1, max_length=3)
    before = model.unembedding.detach().clone()
    with pytest.raises((ValueError, TypeError), match=message):
        train(model, [GOOD, batch])
    assert (model.unembedding == before).all()


def test_bad_rates_and_models():
    torch = pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as TorchModel
    from mha_lib.torch.training import train

    for lr in (0, -1, float("inf"), float("nan"), True, "a"):
        with pytest.raises((ValueError, TypeError), match="lr must be a positive number, got"):
            train(TorchModel(5, 8, 2, 1, max_length=3), [GOOD], lr=lr)
    with pytest.raises(TypeError, match="model must be a mha_lib.torch AttentionModel, got Linear"):
        train(torch.nn.Linear(2, 2), [GOOD])
    with pytest.raises(TypeError, match="batches must be a sequence of .*, got int"):
        train(TorchModel(5, 8, 2, 1, max_length=3), 3)


@pytest.mark.filterwarnings("error")
def test_read_only_and_strided_batches_train():
    pytest.importorskip("torch")
    from mha_lib.torch.training import AttentionModel as TorchModel
    from mha_lib.torch.training import train

    fixed = [np.broadcast_to(x, x.shape)[:, ::-1] for x in GOOD]
    assert len(train(TorchModel(5, 8, 2, 1, max_length=3), [fixed, GOOD])) == 2
