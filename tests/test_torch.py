"""What only the PyTorch path has: autograd, dropout, fused kernels, compile, autocast."""

import shutil

import numpy as np
import pytest
from common import close, missing

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import mha_lib.torch as ours  # noqa: E402

torch.set_num_threads(1)


def random(*shape, dtype=torch.float64, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype)


@pytest.fixture
def qkv():
    return [random(2, 2, L, 4, seed=i).requires_grad_() for i, L in enumerate((3, 5, 5))]


OPTIONS = [
    {},
    {"is_causal": True},
    {"is_causal": True, "query_offset": 2},
    {"mask": torch.tensor([[True] * 5, [False] * 5, [True, False] * 2 + [True]])},
    {"bias": random(2, 1, 3, 5), "mask": torch.tensor([True] * 4 + [False])},
]


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_gradients_by_differences(qkv, options):
    assert torch.autograd.gradcheck(lambda *x: ours.scaled_dot_product_attention(*x, **options), qkv)
    assert torch.autograd.gradcheck(
        lambda *x: ours.scaled_dot_product_attention(*x, return_weights=True, **options), qkv
    )
    assert torch.autograd.gradcheck(lambda *x: ours.scaled_dot_product_attention(*x, softcap=2.0, **options), qkv)


@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
@pytest.mark.parametrize("softcap", [None, 3.0])
def test_what_stands_behind_a_mask_gives_no_gradient(options, softcap):
    """Padding with garbage: the gradients of the rest are those without it."""
    q, k, v = (random(2, 2, n, 4, seed=i) for i, n in enumerate((3, 5, 5)))
    mask = options.get("mask", torch.ones(3, 5, dtype=torch.bool)) & torch.tensor([True] * 3 + [False] * 2)
    options = options | {"mask": mask}
    results = []
    for bad in (0.0, torch.nan, torch.inf):
        inputs = [q.clone(), k.clone(), v.clone()]
        inputs[1][:, :, 3:], inputs[2][:, :, 3:] = bad, bad
        empty = ~mask.expand(3, 5).any(-1)
        inputs[0][:, :, empty] = bad
        inputs = [x.requires_grad_() for x in inputs]
        output = ours.scaled_dot_product_attention(*inputs, softcap=softcap, **options)
        results.append([output, *torch.autograd.grad(output.sin().sum(), inputs)])
    for result in results[1:]:
        for got, want in zip(result, results[0], strict=True):
            close(got.detach(), want.detach())
    assert all((x[:, :, 3:] == 0).all() for x in results[1][2:])


def test_it_calls_the_fused_kernel_only_without_weights(qkv, monkeypatch):
    calls = []
    kernel = F.scaled_dot_product_attention
    monkeypatch.setattr(F, "scaled_dot_product_attention", lambda *a, **k: calls.append(k) or kernel(*a, **k))
    ours.scaled_dot_product_attention(*qkv)
    ours.scaled_dot_product_attention(*qkv, is_causal=True)
    assert [call["is_causal"] for call in calls] == [False, True] and calls[1]["attn_mask"] is None
    ours.scaled_dot_product_attention(*qkv, return_weights=True)
    ours.scaled_dot_product_attention(*qkv, softcap=1.0)
    assert len(calls) == 2


@pytest.mark.parametrize("options", OPTIONS[:3] + OPTIONS[4:], ids=range(4))
def test_equal_to_sdpa(qkv, options):
    mask, bias = options.get("mask"), options.get("bias")
    attn_mask = ours.causal_mask(3, 5, options.get("query_offset", 0)) if options.get("is_causal") else mask
    if bias is not None:
        attn_mask = bias.masked_fill(~mask, -torch.inf)
    want = F.scaled_dot_product_attention(*qkv, attn_mask=attn_mask)
    close(ours.scaled_dot_product_attention(*qkv, **options).detach(), want.detach())


def test_dropout_acts_on_normalised_weights_and_returns_those_before_it():
    q, k, v = random(1, 4, 3), random(1, 50, 3, seed=1), torch.ones(1, 50, 1, dtype=torch.float64)
    torch.manual_seed(0)
    output, weights = ours.scaled_dot_product_attention(q, k, v, dropout_p=0.5, return_weights=True)
    close(weights.sum(-1), np.ones((1, 4)))
    assert (output - 1).abs().max() > 0.01 and (output - 1).abs().max() < 1  # twice the weights that were kept
    assert (ours.scaled_dot_product_attention(q, k, v, dropout_p=1.0, return_weights=True)[0] == 0).all()
    torch.manual_seed(0)
    assert (ours.scaled_dot_product_attention(q, k, v, dropout_p=0.5) - 1).abs().max() > 0.01


def test_dropout_of_the_layer_is_off_in_eval():
    layer, x = ours.MultiHeadAttention(8, 2, dropout=0.9), random(2, 3, 8, dtype=torch.float32)
    torch.manual_seed(0)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))
    close(layer(x).detach(), layer(x, return_weights=True)[0].detach())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_accumulates_in_float32(dtype):
    q, k, v = (random(2, 4, 40, 32, seed=i).to(dtype) for i in range(3))
    mask = random(40, 40) > -0.5
    want = ours.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask=mask)
    for output in (ours.scaled_dot_product_attention(q, k, v, mask=mask),
                   ours.scaled_dot_product_attention(q, k, v, mask=mask, return_weights=True)[0]):  # fmt: skip
        assert output.dtype == dtype
        close(output.float(), want, {torch.float16: 2e-3, torch.bfloat16: 1e-2}[dtype])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_does_not_round_a_float32_bias(dtype):
    q, k, v = (random(2, 4, 8, seed=i).to(dtype) for i in range(3))
    bias = torch.tensor([1000.3, 1001.9, 1000.0, 1003.1])
    want = ours.scaled_dot_product_attention(q.double(), k.double(), v.double(), bias=bias)
    for output in (ours.scaled_dot_product_attention(q, k, v, bias=bias),
                   ours.scaled_dot_product_attention(q, k, v, bias=bias, return_weights=True)[0]):  # fmt: skip
        close(output.float(), want, {torch.float16: 2e-3, torch.bfloat16: 1e-2}[dtype])
    assert ours.scaled_dot_product_attention(q, k, v, bias=bias.to(dtype)).dtype == dtype


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_garbage_in_padding_reaches_no_weight(bad):
    layer, x, y = (
        ours.MultiHeadAttention(8, 2),
        random(1, 4, 8, dtype=torch.float32),
        random(1, 3, 8, dtype=torch.float32, seed=1),
    )
    mask, grads = torch.tensor([True, True, False]), []
    for filling in (0.0, bad):
        y[:, 2] = filling
        layer.zero_grad()
        layer(x, y, mask=mask).sin().sum().backward()
        grads.append({name: p.grad.clone() for name, p in layer.named_parameters()})
    largest = max(float(grad.abs().max()) for grad in grads[0].values())
    for name, grad in grads[1].items():  # b_K's is 0 but for rounding
        np.testing.assert_allclose(grad, grads[0][name], rtol=0, atol=1e-6 * largest, err_msg=name)


def test_trace_is_without_dropout_in_training_too():
    layer, x = ours.MultiHeadAttention(8, 2, dropout=0.9).train(), random(1, 3, 8, dtype=torch.float32)
    close(layer.trace(x).output.detach(), layer.eval()(x).detach())


@pytest.mark.parametrize("return_weights", [False, True])
def test_autocast(return_weights):
    layer, x = ours.MultiHeadAttention(16, 4), random(2, 5, 16, dtype=torch.float32)
    want = layer(x, is_causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = layer(x, is_causal=True, return_weights=return_weights)
    got = got[0] if return_weights else got
    assert got.dtype == torch.bfloat16
    close(got.detach().float(), want.detach(), 2e-2)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("options", OPTIONS, ids=range(len(OPTIONS)))
def test_compile(qkv, options):
    torch.compiler.reset()
    compiled = torch.compile(
        lambda *x: ours.scaled_dot_product_attention(*x, **options), backend="aot_eager", fullgraph=True
    )
    got, want = compiled(*qkv), ours.scaled_dot_product_attention(*qkv, **options)
    close(got.detach(), want.detach())
    for a, b in zip(torch.autograd.grad(got.sum(), qkv), torch.autograd.grad(want.sum(), qkv), strict=True):
        close(a, b)


@pytest.mark.filterwarnings("ignore")
def test_compile_with_inductor():
    if not (shutil.which("g++") or shutil.which("clang++")):
        missing("a C++ compiler")
    torch.compiler.reset()
    layer, x = ours.MultiHeadAttention(8, 2), random(2, 5, 8, dtype=torch.float32)
    compiled = torch.compile(layer, fullgraph=True)
    for options in ({"is_causal": True}, {"mask": torch.tensor([True] * 4 + [False]), "return_weights": True}):
        got, want = compiled(x, **options), layer(x, **options)
        got, want = (r[0] if isinstance(r, tuple) else r for r in (got, want))
        close(got.detach(), want.detach(), 2e-6)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_compile_with_dynamic_shapes():
    torch.compiler.reset()
    layer = ours.MultiHeadAttention(8, 2)
    compiled = torch.compile(layer, backend="aot_eager", dynamic=True, fullgraph=True)
    for L in (3, 5, 8):
        x = random(2, L, 8, dtype=torch.float32)
        close(compiled(x, is_causal=True).detach(), layer(x, is_causal=True).detach())
    attend = torch.compile(ours.scaled_dot_product_attention, backend="aot_eager", dynamic=True, fullgraph=True)
    for L, D in ((3, 4), (5, 8)):
        q = random(2, L, D)
        close(attend(q, q, q, is_causal=True), ours.scaled_dot_product_attention(q, q, q, is_causal=True))


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
def test_vmap(qkv):
    q, k, v = (x.detach() for x in qkv)
    for return_weights in (False, True):

        def attend(q, k, v, weights=return_weights):
            return ours.scaled_dot_product_attention(q, k, v, is_causal=True, return_weights=weights)

        got, want = torch.func.vmap(attend)(q, k, v), attend(q, k, v)
        close(got[0] if return_weights else got, want[0] if return_weights else want)


def test_meta_tensors_have_shapes():
    layer = ours.MultiHeadAttention(8, 2, device="meta")
    output, weights = layer(torch.zeros(1, 3, 8, device="meta"), is_causal=True, return_weights=True)
    assert output.shape == (1, 3, 8) and weights.shape == (1, 2, 3, 3)


def test_the_layer_is_a_module():
    layer = ours.MultiHeadAttention(8, 2, num_kv_heads=1, dtype=torch.float64)
    assert {name for name, _ in layer.named_parameters()} == {f"{kind}_{n}" for kind in "Wb" for n in "QKVO"}
    copy = ours.MultiHeadAttention(8, 2, num_kv_heads=1, dtype=torch.float64)
    copy.load_state_dict(layer.state_dict())
    x = random(2, 3, 8)
    assert torch.equal(copy(x), layer(x)) and "num_heads=2" in repr(layer)
    assert set(ours.MultiHeadAttention(8, 2, bias=False).state_dict()) == {f"W_{n}" for n in "QKVO"}


def test_small_integers_may_count_long_sequences():
    assert ours.padding_mask(torch.tensor([5, 100], dtype=torch.uint8), 512).sum() == 105
    with pytest.raises(TypeError, match="lengths must be a tensor or a list of integers, got None"):
        ours.padding_mask(None, 3)
    with pytest.raises(TypeError, match="positions must be"):
        ours.rope(torch.zeros(2, 4), None)
    with pytest.raises(TypeError, match=r"dtype must be a floating-point dtype, got torch.int32"):
        ours.MultiHeadAttention(8, 2, dtype=torch.int32)


def test_the_cache_stores_detached():
    cache = ours.KVCache(1, 1, 4, 2)
    key = torch.ones(1, 1, 2, 2, requires_grad=True)
    keys, _ = cache.append(key, key)
    assert not keys.requires_grad
