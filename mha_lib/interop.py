"""Weights and masks to and from other people's attention layers.

The other side stores most matrices transposed (`nn.Linear`: (out, in)) and gives boolean masks the opposite meaning
(`nn.MultiheadAttention`: True = may not attend). This module is where that is put right, once.
"""

import importlib

import numpy as np

from . import _checks
from .numpy._arrays import as_array


def _layer(backend, embed_dim, num_heads, weights, **options):
    """A layer of `backend` ("numpy" or "torch") that holds `weights`: NumPy arrays (in, out) and (out,), or None."""
    if backend not in ("numpy", "torch"):
        raise ValueError(f'backend must be "numpy" or "torch", got {backend!r}')
    layer = importlib.import_module(f"mha_lib.{backend}").MultiHeadAttention(embed_dim, num_heads, **options)
    for name, array in weights.items():
        if backend == "torch" and array is not None:
            torch = importlib.import_module("torch")
            array = torch.nn.Parameter(torch.tensor(array))
        setattr(layer, name, array)
    return layer


def _array(x):
    """A tensor or array as a NumPy array of its own."""
    return np.array(as_array(x))


def from_torch(module, backend="numpy"):
    """Our layer with the weights of an `nn.MultiheadAttention`; packed and separate projections, with or without biases.

    Inputs of our layer are (B, L, E) whatever the module's `batch_first` says. backend: "numpy" or "torch"; the torch layer
    keeps the module's dropout, training mode and device.
    Errors: ValueError for what our layer does not express (add_bias_kv, add_zero_attn), TypeError for another module.
    Source: `torch.nn.MultiheadAttention`, PyTorch's documentation.

    >>> import torch
    >>> layer = from_torch(torch.nn.MultiheadAttention(8, 2, batch_first=True))
    >>> layer.W_Q.shape, layer.num_heads
    ((8, 8), 2)
    """
    torch = importlib.import_module("torch")
    if not isinstance(module, torch.nn.MultiheadAttention):
        raise TypeError(f"module must be a torch.nn.MultiheadAttention, got {type(module).__name__}")
    if module.bias_k is not None or module.add_zero_attn:
        name = "add_zero_attn" if module.add_zero_attn else "add_bias_kv"
        raise ValueError(f"module has {name}=True, which adds a key of its own; mha_lib has no such key")
    if module.in_proj_weight is not None:
        stored = _array(module.in_proj_weight).reshape(3, module.embed_dim, module.embed_dim)
    else:
        stored = [_array(w) for w in (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)]
    weights = {f"W_{name}": w.T.copy() for name, w in zip("QKV", stored, strict=True)}
    has_bias = module.in_proj_bias is not None
    biases = _array(module.in_proj_bias).reshape(3, -1) if has_bias else (None, None, None)
    weights |= {f"b_{name}": b for name, b in zip("QKV", biases, strict=True)}
    weights["W_O"] = _array(module.out_proj.weight).T.copy()
    weights["b_O"] = _array(module.out_proj.bias) if module.out_proj.bias is not None else None
    options = {"dropout": module.dropout} if backend == "torch" else {"dtype": weights["W_O"].dtype}
    layer = _layer(
        backend,
        module.embed_dim,
        module.num_heads,
        weights,
        kdim=module.kdim,
        vdim=module.vdim,
        bias=has_bias,
        **options,
    )
    if backend == "torch":
        layer.train(module.training).to(device=module.out_proj.weight.device, dtype=module.out_proj.weight.dtype)
    return layer


def to_torch(layer):
    """An `nn.MultiheadAttention` (batch_first) with the weights of our layer, NumPy or torch.

    A bias that is None becomes zeros where the layer has others; without any the module has none.
    Errors: ValueError for what the module does not express: grouped heads, head_dim != E / H, rope.
    Source: `torch.nn.MultiheadAttention`, PyTorch's documentation.

    >>> import numpy as np
    >>> from mha_lib.numpy import MultiHeadAttention
    >>> layer = MultiHeadAttention(8, 2)
    >>> bool((from_torch(to_torch(layer)).W_O == layer.W_O).all())
    True
    """
    torch = importlib.import_module("torch")
    if type(layer).__module__ not in ("mha_lib.numpy.multihead", "mha_lib.torch.multihead"):
        raise TypeError(f"layer must be a MultiHeadAttention of mha_lib, got {type(layer).__name__}")
    E, H, D = layer.embed_dim, layer.num_heads, layer.head_dim
    if layer.num_kv_heads != H:
        raise ValueError(
            f"nn.MultiheadAttention has no grouped heads, got num_heads={H}, num_kv_heads={layer.num_kv_heads}"
        )
    if H * D != E:
        raise ValueError(f"nn.MultiheadAttention needs head_dim = embed_dim / num_heads = {E}/{H}, got head_dim={D}")
    if layer.rope is not None:
        raise ValueError(f"nn.MultiheadAttention has no rotary positions, got rope={layer.rope!r}")
    ours = {name: getattr(layer, name) for name in ("W_Q", "W_K", "W_V", "W_O", "b_Q", "b_K", "b_V", "b_O")}
    ours = {
        name: x.detach() if isinstance(x, torch.Tensor) else None if x is None else torch.tensor(x)
        for name, x in ours.items()
    }
    has_bias = any(ours[f"b_{name}"] is not None for name in "QKVO")
    module = torch.nn.MultiheadAttention(
        E, H, dropout=getattr(layer, "dropout", 0.0), bias=has_bias, kdim=layer.kdim, vdim=layer.vdim, batch_first=True,
        dtype=ours["W_O"].dtype, device=ours["W_O"].device,
    )  # fmt: skip
    with torch.no_grad():
        if module.in_proj_weight is not None:
            module.in_proj_weight.copy_(torch.cat([ours[f"W_{name}"].T for name in "QKV"]))
        else:
            for name in "QKV":
                getattr(module, f"{name.lower()}_proj_weight").copy_(ours[f"W_{name}"].T)
        module.out_proj.weight.copy_(ours["W_O"].T)
        if has_bias:  # those of the module start at 0, as one that is missing here
            for name, part in zip("QKVO", (*module.in_proj_bias.chunk(3), module.out_proj.bias), strict=True):
                if ours[f"b_{name}"] is not None:
                    part.copy_(ours[f"b_{name}"])
    return module.train(getattr(layer, "training", True))


def _take(state_dict, key, shape):
    """One array of a state dict, its shape checked; None in it stands for any size."""
    if key not in state_dict:
        raise ValueError(f"the state dict has no key {key!r}")
    array = _array(state_dict[key])
    if array.ndim != len(shape) or any(wanted not in (None, n) for n, wanted in zip(array.shape, shape, strict=False)):
        raise ValueError(f"{key} must have the shape {shape}, got {array.shape}")
    return array


def _start(state_dict, block, name, layer):
    """What the keys of the layer's block start with; the state dict may put a prefix before it."""
    ending = block.format(_checks.integer("layer", layer, 0)) + name
    found = [key for key in state_dict if key == ending or key.endswith("." + ending)]
    if len(found) != 1:
        raise ValueError(f"the state dict must have one key that ends in {ending!r}, got {len(found)}")
    return found[0].removesuffix(name)


def from_bert(state_dict, layer, *, num_heads, backend="numpy"):
    """Our layer with the self-attention weights of one layer of a BERT-style state dict.

    Keys: `encoder.layer.{layer}.attention.self.{query,key,value}.{weight,bias}` and `….attention.output.dense.{weight,bias}`,
    with or without a prefix such as "bert.". num_heads is not stored there; the model's configuration names it. LayerNorm and
    the residual connection around the layer are not part of it.
    Errors: ValueError that names the key, the shape found and the shape wanted.
    Source: Devlin et al. 2019; the names are those of Hugging Face's BertModel.

    >>> names = ("self.query", "self.key", "self.value", "output.dense")
    >>> state = {f"encoder.layer.0.attention.{n}.weight": np.eye(4) for n in names}
    >>> state |= {f"encoder.layer.0.attention.{n}.bias": np.zeros(4) for n in names}
    >>> from_bert(state, 0, num_heads=2).W_O.shape
    (4, 4)
    """
    num_heads = _checks.integer("num_heads", num_heads, 1)
    start = _start(state_dict, "encoder.layer.{}.attention.", "self.query.weight", layer)
    E = state_dict[f"{start}self.query.weight"].shape[-1]
    weights = {}
    for name, key in zip("QKVO", ("self.query", "self.key", "self.value", "output.dense"), strict=True):
        weights[f"W_{name}"] = _take(state_dict, f"{start}{key}.weight", (E, E)).T.copy()
        weights[f"b_{name}"] = _take(state_dict, f"{start}{key}.bias", (E,))
    return _layer(backend, E, num_heads, weights)


def from_gpt2(state_dict, layer, *, num_heads, backend="numpy"):
    """Our layer with the self-attention weights of one layer of a GPT-2 state dict. Call it with `is_causal=True`.

    Keys: `h.{layer}.attn.{c_attn,c_proj}.{weight,bias}`, with or without a prefix such as "transformer.". c_attn holds queries, keys
    and values side by side, and these matrices (Conv1D) stand as ours do, (in, out). num_heads is not stored there.
    Errors: ValueError that names the key, the shape found and the shape wanted.
    Source: Radford et al. 2019; the names are those of Hugging Face's GPT2Model.

    >>> E, ones = 4, np.ones
    >>> state = {"h.0.attn.c_attn.weight": ones((E, 3 * E)), "h.0.attn.c_attn.bias": ones(3 * E),
    ...          "h.0.attn.c_proj.weight": ones((E, E)), "h.0.attn.c_proj.bias": ones(E)}
    >>> from_gpt2(state, 0, num_heads=2).W_K.shape
    (4, 4)
    """
    num_heads = _checks.integer("num_heads", num_heads, 1)
    start = _start(state_dict, "h.{}.attn.", "c_attn.weight", layer)
    E = state_dict[f"{start}c_attn.weight"].shape[0]
    columns = np.split(_take(state_dict, f"{start}c_attn.weight", (E, 3 * E)), 3, axis=1)
    biases = np.split(_take(state_dict, f"{start}c_attn.bias", (3 * E,)), 3)
    weights = {f"W_{name}": W.copy() for name, W in zip("QKV", columns, strict=True)}
    weights |= {f"b_{name}": b.copy() for name, b in zip("QKV", biases, strict=True)}
    weights["W_O"] = _take(state_dict, f"{start}c_proj.weight", (E, E))
    weights["b_O"] = _take(state_dict, f"{start}c_proj.bias", (E,))
    return _layer(backend, E, num_heads, weights)


def from_llama(state_dict, layer, *, num_heads, rope_base=10000.0, backend="numpy"):
    """Our layer with the self-attention weights of one layer of a Llama-style state dict. Call it with `is_causal=True`.

    Keys: `layers.{layer}.self_attn.{q,k,v,o}_proj.weight`, with or without a prefix such as "model."; biases are taken where they
    are there. The layer has rotary positions in halves, and as many key heads as the shapes tell. num_heads and rope_base are not
    stored there; a configuration with scaled rotary frequencies is another model.
    Errors: ValueError that names the key, the shape found and the shape wanted, or the key that our layer cannot express (norms
    of queries and keys).
    Source: Touvron et al. 2023; the names are those of Hugging Face's LlamaModel.

    >>> state = {f"layers.0.self_attn.{n}_proj.weight": np.ones((4 if n in "kv" else 8, 8)) for n in "qkvo"}
    >>> layer = from_llama(state, 0, num_heads=4)
    >>> layer.num_kv_heads, layer.head_dim, layer.rope, layer.b_Q
    (2, 2, 'halves', None)
    """
    num_heads = _checks.integer("num_heads", num_heads, 1)
    start = _start(state_dict, "layers.{}.self_attn.", "q_proj.weight", layer)
    width, E = _take(state_dict, f"{start}q_proj.weight", (None, None)).shape
    if width % num_heads:
        raise ValueError(f"{start}q_proj.weight must have a multiple of num_heads = {num_heads} rows, got {(width, E)}")
    head_dim = width // num_heads
    kv_width, _ = _take(state_dict, f"{start}k_proj.weight", (None, E)).shape
    if kv_width % head_dim:
        raise ValueError(f"{start}k_proj.weight must have a multiple of head_dim = {head_dim} rows, got {kv_width}")
    shapes = {"q": (width, E), "k": (kv_width, E), "v": (kv_width, E), "o": (E, width)}
    known = {f"{start}{name}_proj.{kind}" for name in shapes for kind in ("weight", "bias")}
    strange = sorted(
        key for key in state_dict if key.startswith(start) and key not in known and not key.endswith("inv_freq")
    )
    if strange:
        raise ValueError(f"mha_lib's layer has nothing for the key {strange[0]!r}")
    weights = {}
    for name, shape in shapes.items():
        weights[f"W_{name.upper()}"] = _take(state_dict, f"{start}{name}_proj.weight", shape).T.copy()
        key = f"{start}{name}_proj.bias"
        weights[f"b_{name.upper()}"] = _take(state_dict, key, shape[:1]) if key in state_dict else None
    return _layer(
        backend, E, num_heads, weights, num_kv_heads=kv_width // head_dim, head_dim=head_dim, rope="halves", rope_base=rope_base,
        bias=any(weights[f"b_{name}"] is not None for name in "QKVO"),
    )  # fmt: skip


def masks_from_torch(attn_mask=None, key_padding_mask=None, *, num_heads=None):
    """Masks as `nn.MultiheadAttention` takes them -> (mask, bias) as ours does; None for what is not restricted.

    There a boolean True means may *not* attend, here it means may attend; numbers are added to the scores in both.
    Shapes: attn_mask (L, S) or (B*H, L, S), which needs num_heads; key_padding_mask (B, S), or (S,) for unbatched inputs
    -> each broadcasts to (B, H, L, S). NumPy arrays give NumPy arrays, tensors give tensors.
    Errors: ValueError for other shapes; a 3-D attn_mask is sample-major, row b*H + h belongs to head h of sample b.
    Source: `torch.nn.MultiheadAttention`, PyTorch's documentation.

    >>> mask, bias = masks_from_torch(np.array([[False, True], [False, False]]))
    >>> mask
    array([[ True, False],
           [ True,  True]])
    """
    mask = bias = None
    for name, given in (("attn_mask", attn_mask), ("key_padding_mask", key_padding_mask)):
        dtype = str(getattr(given, "dtype", type(given).__name__))
        if given is not None and "float" not in dtype and dtype not in ("bool", "torch.bool"):
            raise TypeError(f"{name} must be a boolean or floating-point array or tensor, got {dtype}")
    if attn_mask is not None:
        if attn_mask.ndim == 3:
            num_heads = _checks.integer("num_heads (which a 3-D attn_mask needs)", num_heads, 1)
            if attn_mask.shape[0] % num_heads:
                raise ValueError(f"attn_mask must have B*H rows, got {attn_mask.shape[0]} for num_heads={num_heads}")
            B = attn_mask.shape[0] // num_heads
            lead = (num_heads,) if B == 1 else (B, num_heads)  # one sample: it may come without a batch axis
            attn_mask = attn_mask.reshape(*lead, *attn_mask.shape[1:])
        elif attn_mask.ndim != 2:
            raise ValueError(f"attn_mask must have the shape (L, S) or (B*H, L, S), got {tuple(attn_mask.shape)}")
    if key_padding_mask is not None:
        if key_padding_mask.ndim not in (1, 2):
            raise ValueError(
                f"key_padding_mask must have the shape (B, S) or (S,), got {tuple(key_padding_mask.shape)}"
            )
        key_padding_mask = key_padding_mask[..., None, None, :]  # (B, 1, 1, S)
    for given in (attn_mask, key_padding_mask):
        if given is None:
            continue
        if str(given.dtype) in ("bool", "torch.bool"):
            mask = ~given if mask is None else mask & ~given
        else:
            bias = given if bias is None else bias + given
    return mask, bias


def trace_module(module, query, key=None, value=None, *, attn_mask=None, key_padding_mask=None, is_causal=False):
    """Every intermediate of an `nn.MultiheadAttention`, by name: a `Trace` of tensors, as `MultiHeadAttention.trace` gives.

    Shapes: query (B, L, E) or (L, E), key and value alike, batch first; masks as the module takes them (True = may not attend).
    Errors: as `from_torch` and `masks_from_torch`. Source: `torch.nn.MultiheadAttention`, PyTorch's documentation.

    >>> import torch
    >>> trace_module(torch.nn.MultiheadAttention(8, 2), torch.zeros(3, 8)).scores.shape
    torch.Size([2, 3, 3])
    """
    layer = from_torch(module, backend="torch")
    mask, bias = masks_from_torch(attn_mask, key_padding_mask, num_heads=module.num_heads)
    return layer.trace(query, key, value, mask=mask, bias=bias, is_causal=is_causal)
