"""Weights and masks to and from nn.MultiheadAttention and BERT-style state dicts."""

import numpy as np
import pytest
from common import close

torch = pytest.importorskip("torch")

from mha_lib import interop  # noqa: E402

torch.set_num_threads(1)
SIZES = {
    "packed": dict(),
    "no bias": dict(bias=False),
    "kdim and vdim": dict(kdim=5, vdim=6),
    "kdim without bias": dict(kdim=5, bias=False),
    "float64": dict(dtype=torch.float64),
    "length first": dict(batch_first=False),
}


def module(E=8, H=2, **options):
    torch.manual_seed(0)
    result = torch.nn.MultiheadAttention(E, H, **{"batch_first": True} | options).eval()
    with torch.no_grad():
        for parameter in result.parameters():  # the biases start at 0, which would hide a forgotten one
            parameter.uniform_(-0.7, 0.7)
    return result


def inputs(theirs, B=2, L=3, S=5):
    dtype = theirs.out_proj.weight.dtype
    return [torch.randn(B, n, width, dtype=dtype) for n, width in ((L, 8), (S, theirs.kdim), (S, theirs.vdim))]


def run(theirs, q, k, v, **options):
    """The module's output and weights per head, batch first whatever its batch_first says."""
    if not theirs.batch_first:
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
    output, weights = theirs(q, k, v, average_attn_weights=False, **options)
    return (output if theirs.batch_first else output.transpose(0, 1)).detach(), weights.detach()


def array(x):
    return x.detach().numpy() if isinstance(x, torch.Tensor) else x


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("sizes", SIZES)
def test_from_torch_computes_the_same(backend, sizes):
    theirs = module(**SIZES[sizes])
    q, k, v = inputs(theirs)
    ours = interop.from_torch(theirs, backend)
    given = (q, k, v) if backend == "torch" else map(array, (q, k, v))
    output, weights = ours(*given, return_weights=True)
    want, want_weights = run(theirs, q, k, v)
    close(array(output), want.numpy(), 2e-6 if output.dtype in (np.float32, torch.float32) else None)
    close(array(weights), want_weights.numpy())
    assert str(output.dtype).removeprefix("torch.") == str(want.dtype).removeprefix("torch.")


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("sizes", SIZES)
def test_round_trips_are_exact(backend, sizes):
    theirs = module(**SIZES[sizes])
    back = interop.to_torch(interop.from_torch(theirs, backend))
    assert list(back.state_dict()) == list(theirs.state_dict())
    for key, x in theirs.state_dict().items():
        assert torch.equal(back.state_dict()[key], x), key
    again = interop.from_torch(back, backend)
    assert again.kdim == theirs.kdim and again.num_heads == 2


def test_mode_and_dropout_come_along():
    ours = interop.from_torch(module(dropout=0.3).train(), "torch")
    assert ours.dropout == 0.3 and ours.training
    assert not interop.from_torch(module(), "torch").training
    assert interop.to_torch(ours).dropout == 0.3


def test_the_copies_share_no_memory():
    theirs = module()
    ours = interop.from_torch(theirs)
    ours.W_Q[:] = 0
    ours.b_O[:] = 0
    assert theirs.in_proj_weight.detach().abs().min(dim=1).values.max() > 0 and theirs.out_proj.bias.abs().max() > 0


def test_a_missing_bias_among_others_becomes_zeros():
    ours = interop.from_torch(module())
    ours.b_K = None
    x = np.random.default_rng(0).standard_normal((1, 3, 8)).astype(np.float32)
    close(run(interop.to_torch(ours).eval(), *[torch.from_numpy(x)] * 3)[0].numpy(), ours(x), 2e-6)


@pytest.mark.parametrize("options, words", [({"num_kv_heads": 1}, "no grouped heads"), ({"head_dim": 3}, "head_dim = embed_dim"),
                                            ({"rope": "halves"}, "no rotary positions")])  # fmt: skip
def test_what_torch_cannot_express_raises(options, words):
    from mha_lib.numpy import MultiHeadAttention

    with pytest.raises(ValueError, match=words):
        interop.to_torch(MultiHeadAttention(8, 2, **options))


def test_what_we_cannot_express_raises():
    with pytest.raises(ValueError, match="add_zero_attn=True"):
        interop.from_torch(module(add_zero_attn=True))
    with pytest.raises(ValueError, match="add_bias_kv=True"):
        interop.from_torch(module(add_bias_kv=True))
    with pytest.raises(TypeError, match="module must be a torch.nn.MultiheadAttention, got Linear"):
        interop.from_torch(torch.nn.Linear(2, 2))
    with pytest.raises(ValueError, match='backend must be "numpy" or "torch", got .jax.'):
        interop.from_torch(module(), "jax")


MASKS = {
    "causal": (torch.ones(3, 5).triu(1).bool(), None),
    "padding": (None, torch.tensor([[False] * 5, [False, False, True, True, True]])),
    "both": (torch.ones(3, 5).triu(1).bool(), torch.tensor([[False] * 5, [False, False, True, True, True]])),
    "additive": (torch.linspace(-1, 1, 15).reshape(3, 5), None),
    "mixed": (torch.linspace(-1, 1, 15).reshape(3, 5), torch.tensor([[False] * 5, [False, True, True, True, True]])),
    "two additive": (torch.linspace(-1, 1, 15).reshape(3, 5), torch.linspace(-2, 0, 10).reshape(2, 5)),
    "per head": (torch.arange(60).reshape(4, 3, 5) % 4 == 1, None),
}


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.filterwarnings("ignore:Support for mismatched:UserWarning")
def test_masks_from_torch(backend, masks):
    theirs, (attn_mask, key_padding_mask) = module(), MASKS[masks]
    q, k, v = inputs(theirs)
    want, want_weights = run(theirs, q, k, v, attn_mask=attn_mask, key_padding_mask=key_padding_mask)
    change = array if backend == "numpy" else lambda x: x
    mask, bias = interop.masks_from_torch(change(attn_mask), change(key_padding_mask), num_heads=2)
    ours = interop.from_torch(theirs, backend)
    output, weights = ours(*map(change, (q, k, v)), mask=mask, bias=bias, return_weights=True)
    close(array(output), want.numpy(), 2e-6)
    close(array(weights), want_weights.numpy())


@pytest.mark.parametrize("masks", [(torch.arange(30).reshape(2, 3, 5) % 4 == 1, None), (torch.linspace(-1, 1, 30).reshape(2, 3, 5), None),
                                   (torch.arange(15).reshape(3, 5) % 4 == 1, torch.tensor([False] * 4 + [True]))])  # fmt: skip
def test_unbatched_masks(masks):
    theirs = module()
    q, k, v = (x[0] for x in inputs(theirs))
    want, _ = run(theirs, q, k, v, attn_mask=masks[0], key_padding_mask=masks[1])
    close(
        interop.trace_module(theirs, q, k, v, attn_mask=masks[0], key_padding_mask=masks[1]).output.detach(), want, 2e-6
    )


def test_bfloat16_comes_back_as_bfloat16():
    theirs = module(dtype=torch.bfloat16)
    back = interop.to_torch(interop.from_torch(theirs, "torch"))
    assert back.out_proj.weight.dtype == torch.bfloat16 and torch.equal(back.in_proj_weight, theirs.in_proj_weight)


def test_other_objects():
    with pytest.raises(TypeError, match="layer must be a MultiHeadAttention of mha_lib, got Linear"):
        interop.to_torch(torch.nn.Linear(2, 2))
    with pytest.raises(TypeError, match="module must be a torch.nn.MultiheadAttention, got Linear"):
        interop.trace_module(torch.nn.Linear(2, 2), torch.zeros(1, 2))


def test_bad_masks():
    with pytest.raises(TypeError, match="attn_mask must be a boolean or floating-point array or tensor, got int64"):
        interop.masks_from_torch(np.zeros((3, 3), int))
    with pytest.raises(
        TypeError, match="key_padding_mask must be a boolean or floating-point array or tensor, got list"
    ):
        interop.masks_from_torch(None, [[False]])
    with pytest.raises(TypeError, match="num_heads .which a 3-D attn_mask needs. must be an integer"):
        interop.masks_from_torch(np.zeros((4, 3, 3), bool))
    with pytest.raises(ValueError, match=r"attn_mask must have B\*H rows, got 3 for num_heads=2"):
        interop.masks_from_torch(np.zeros((3, 3, 3), bool), num_heads=2)
    with pytest.raises(ValueError, match=r"attn_mask must have the shape \(L, S\) or \(B\*H, L, S\), got \(3,\)"):
        interop.masks_from_torch(np.zeros(3, bool))
    with pytest.raises(ValueError, match=r"key_padding_mask must have the shape"):
        interop.masks_from_torch(None, np.zeros((1, 1, 3), bool))
    assert interop.masks_from_torch() == (None, None)


def bert(E=8, layer=3, prefix=""):
    rng = np.random.default_rng(0)
    state = {}
    for name in ("self.query", "self.key", "self.value", "output.dense"):
        base = f"{prefix}encoder.layer.{layer}.attention.{name}"
        state[f"{base}.weight"] = rng.standard_normal((E, E)).astype(np.float32)
        state[f"{base}.bias"] = rng.standard_normal(E).astype(np.float32)
    return state


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("prefix", ["", "bert.", "model.bert."])
def test_from_bert_computes_what_linear_layers_compute(backend, prefix, rng):
    import reference

    state, x = bert(prefix=prefix), rng.standard_normal((3, 8)).astype(np.float32)
    given = {key: torch.from_numpy(a) for key, a in state.items()} if backend == "torch" else state
    layer = interop.from_bert(given, 3, num_heads=2, backend=backend)
    names = {"Q": "self.query", "K": "self.key", "V": "self.value", "O": "output.dense"}
    at = {n: f"{prefix}encoder.layer.3.attention.{name}" for n, name in names.items()}
    weights = {f"W_{n}": state[f"{a}.weight"].T for n, a in at.items()} | {
        f"b_{n}": state[f"{a}.bias"] for n, a in at.items()
    }
    want = reference.multihead(x.astype(np.float64), **weights, num_heads=2)
    close(array(layer(torch.from_numpy(x) if backend == "torch" else x)), want, 2e-6)


def test_bad_state_dicts():
    with pytest.raises(ValueError, match="one key that ends in 'encoder.layer.1.attention.self.query.weight', got 0"):
        interop.from_bert(bert(), 1, num_heads=2)
    state = bert()
    del state["encoder.layer.3.attention.output.dense.bias"]
    with pytest.raises(ValueError, match="has no key 'encoder.layer.3.attention.output.dense.bias'"):
        interop.from_bert(state, 3, num_heads=2)
    state = bert()
    state["encoder.layer.3.attention.self.key.weight"] = np.zeros((8, 7))
    with pytest.raises(ValueError, match=r"self.key.weight must have the shape \(8, 8\), got \(8, 7\)"):
        interop.from_bert(state, 3, num_heads=2)
    with pytest.raises(ValueError, match="embed_dim must be divisible by num_heads, got 8 and 3"):
        interop.from_bert(bert(), 3, num_heads=3)


def causal_reference(x, weights, num_heads, num_kv_heads, rope_base=None):
    """A decoder's attention from its parts, by the loops of reference.py; rotary positions in halves as complex numbers."""
    import reference

    def rotate(a):
        half = a.shape[-1] // 2
        angles = np.arange(len(x))[:, None] * rope_base ** (-np.arange(half) / half)
        z = (a[..., :half] + 1j * a[..., half:]) * np.exp(1j * angles)
        return np.concatenate([z.real, z.imag], -1)

    q, k, v = (
        (x @ weights[f"W_{n}"] + weights.get(f"b_{n}", 0)).reshape(len(x), -1, weights["W_Q"].shape[1] // num_heads)
        for n in "QKV"
    )
    q, k, v = (a.swapaxes(0, 1) for a in (q, k, v))
    if rope_base:
        q, k = rotate(q), rotate(k)
    assert len(k) == num_kv_heads
    heads = reference.attention(q, k, v, is_causal=True)[0].swapaxes(0, 1).reshape(len(x), -1)
    return heads @ weights["W_O"] + weights.get("b_O", 0)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_from_gpt2(backend, prefix, rng):
    at, E = f"{prefix}h.1.attn.", 8
    state = {f"{at}c_attn.weight": rng.standard_normal((E, 3 * E)), f"{at}c_attn.bias": rng.standard_normal(3 * E),
             f"{at}c_proj.weight": rng.standard_normal((E, E)), f"{at}c_proj.bias": rng.standard_normal(E)}  # fmt: skip
    x = rng.standard_normal((5, E))
    parts = np.split(state[f"{at}c_attn.weight"], 3, 1), np.split(state[f"{at}c_attn.bias"], 3)
    weights = {f"W_{n}": W for n, W in zip("QKV", parts[0], strict=True)} | {
        f"b_{n}": b for n, b in zip("QKV", parts[1], strict=True)
    }
    want = causal_reference(x, weights | {"W_O": state[f"{at}c_proj.weight"], "b_O": state[f"{at}c_proj.bias"]}, 2, 2)
    layer = interop.from_gpt2(state, 1, num_heads=2, backend=backend)
    close(array(layer(torch.from_numpy(x) if backend == "torch" else x, is_causal=True)), want)
    state[f"{at}c_attn.bias"] = np.zeros(8)
    with pytest.raises(ValueError, match=r"c_attn.bias must have the shape \(24,\), got \(8,\)"):
        interop.from_gpt2(state, 1, num_heads=2)


@pytest.mark.parametrize("backend", ["numpy", "torch"])
@pytest.mark.parametrize("biased", ["", "qkv"])
@pytest.mark.parametrize("prefix", ["", "model."])
def test_from_llama(backend, biased, prefix, rng):
    at, E, D = f"{prefix}layers.2.self_attn.", 8, 6
    rows = {"q": 4 * D, "k": 2 * D, "v": 2 * D}
    state = {f"{at}{n}_proj.weight": rng.standard_normal((r, E)) for n, r in rows.items()}
    state |= {f"{at}o_proj.weight": rng.standard_normal((E, 4 * D))}
    state |= {f"{at}{n}_proj.bias": rng.standard_normal(rows[n]) for n in biased}
    weights = {f"W_{n.upper()}": state[f"{at}{n}_proj.weight"].T for n in "qkvo"}
    weights |= {f"b_{n.upper()}": state[f"{at}{n}_proj.bias"] for n in biased}
    x = rng.standard_normal((5, E))
    layer = interop.from_llama(state, 2, num_heads=4, rope_base=500.0, backend=backend)
    got = array(layer(torch.from_numpy(x) if backend == "torch" else x, is_causal=True))
    close(got, causal_reference(x, weights, 4, 2, rope_base=500.0))
    if backend == "torch":
        assert "b_O" not in layer.state_dict()
    for change, words in (({f"{at}q_norm.weight": np.ones(D)}, "nothing for the key '.*q_norm.weight'"),
                          ({f"{at}v_proj.weight": np.ones((3, E))}, r"v_proj.weight must have the shape \(12, 8\), got \(3, 8\)"),
                          ({f"{at}k_proj.weight": np.ones((7, E))}, "k_proj.weight must have a multiple of head_dim = 6 rows, got 7")):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            interop.from_llama(state | change, 2, num_heads=4)
    with pytest.raises(ValueError, match="q_proj.weight must have a multiple of num_heads = 5 rows"):
        interop.from_llama(state, 2, num_heads=5)


def test_trace_module():
    theirs, (attn_mask, key_padding_mask) = module(), MASKS["both"]
    q, k, v = inputs(theirs)
    trace = interop.trace_module(theirs, q, k, v, attn_mask=attn_mask, key_padding_mask=key_padding_mask)
    want, want_weights = run(theirs, q, k, v, attn_mask=attn_mask, key_padding_mask=key_padding_mask)
    close(trace.output.detach(), want, 2e-6)
    close(trace.weights.detach(), want_weights)
    assert trace.scores.shape == (2, 2, 3, 5) and "weights" in repr(trace)
