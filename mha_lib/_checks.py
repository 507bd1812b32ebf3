"""The checks that both paths share. They look at shapes and plain numbers only, so they know neither NumPy nor PyTorch."""

import math
from numbers import Integral, Real


def integer(name, value, minimum=None):
    """Return `value` as an int; a bool, a float or a value below `minimum` is an error that names the argument."""
    wants = "an integer" if minimum is None else f"an integer >= {minimum}"
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be {wants}, got {value!r} ({type(value).__name__})")
    if (minimum is not None and value < minimum) or not -(2**62) < value < 2**62:
        raise ValueError(f"{name} must be {wants}, got {value}")
    return int(value)


def flag(name, value):
    """Return `value` as a bool; anything else, an array above all, is an error that names the argument."""
    if type(value).__name__ != "bool":  # Python's or NumPy's
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")
    return bool(value)


def number(name, value, wants="a finite number"):
    """Return `value` as a float; anything but a finite real number is an error that names the argument."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise TypeError(f"{name} must be {wants}, got {value!r} ({type(value).__name__})")
    try:
        value = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be {wants}, got an integer beyond all floats") from None
    if not abs(value) < math.inf:  # NaN fails too; math.isfinite would break a graph of torch.compile
        raise ValueError(f"{name} must be {wants}, got {value}")
    return value


def positive(name, value, wants="a positive number"):
    """Return `value` as a float above 0."""
    value = number(name, value, wants)
    if value <= 0:
        raise ValueError(f"{name} must be {wants}, got {value}")
    return value


def axis(name, value, ndim):
    """Return `value` as an axis counted from 0."""
    value = integer(name, value)
    if not -ndim <= value < ndim:
        raise ValueError(f"{name} must name one of the {ndim} axes, got {value}")
    return value % ndim


def default_scale(scale, head_dim):
    """1 / sqrt(D) unless a scale is given; 0 and negative numbers are used as given."""
    if scale is not None:
        return number("scale", scale)
    return 1 / math.sqrt(head_dim) if head_dim else 1.0


def positive_softcap(softcap):
    """Return `softcap` as a float within what float32 can divide by, or None; above 1e30 a cap changes nothing."""
    if softcap is None:
        return None
    softcap = positive("softcap", softcap, "a positive number or None")
    return None if softcap > 1e30 else max(softcap, 1e-30)


def causal_offset(is_causal, query_offset):
    """Return `query_offset` as an int; without `is_causal` it would do nothing, so it must be 0 there."""
    query_offset = integer("query_offset", query_offset)
    if not flag("is_causal", is_causal) and query_offset:
        raise ValueError(f"query_offset moves the causal mask, got {query_offset} without is_causal=True")
    return query_offset


def query_key(query, key):
    """Check the shapes of query (..., H, L, D) and key (..., H_kv, S, D); return the shape (..., H, L, S) of the scores."""
    for name, shape in (("query", query), ("key", key)):
        if len(shape) < 2:
            raise ValueError(f"{name} must have the axes (..., H, L, D) or (L, D), got shape {tuple(shape)}")
    if len(query) != len(key) or query[:-3] != key[:-3]:
        raise ValueError(f"query and key must have the same leading axes, got {tuple(query)} and {tuple(key)}")
    if query[-1] != key[-1]:
        raise ValueError(f"query and key must have the same last axis D, got {tuple(query)} and {tuple(key)}")
    if len(query) > 2:
        heads, kv_heads = query[-3], key[-3]
        if heads != kv_heads and (kv_heads == 0 or heads % kv_heads):
            raise ValueError(
                f"the query heads must be a multiple of the key heads, got {heads} and {kv_heads} "
                f"in shapes {tuple(query)} and {tuple(key)}"
            )
    return (*query[:-1], key[-2])


def query_key_value(query, key, value):
    """The same with value (..., H_kv, S, D_v), which must agree with key on all axes but the last."""
    scores = query_key(query, key)
    if len(value) < 2 or value[:-1] != key[:-1]:
        raise ValueError(f"value must match key on every axis but the last, got {tuple(value)} for key {tuple(key)}")
    return scores


def broadcasts(name, shape, target):
    """A mask or bias may be broadcast to the scores, but may not enlarge them."""
    fits = len(shape) <= len(target) and all(
        n in (1, t) for n, t in zip(reversed(shape), reversed(target), strict=False)
    )
    if not fits:
        raise ValueError(
            f"{name} must broadcast to the scores (..., H, L, S) = {tuple(target)}, got shape {tuple(shape)}"
        )


def layer_sizes(embed_dim, num_heads, num_kv_heads, head_dim, kdim, vdim):
    """Check the sizes of a layer and fill in the defaults; return them as six ints."""
    embed_dim = integer("embed_dim", embed_dim, 1)
    num_heads = integer("num_heads", num_heads, 1)
    num_kv_heads = num_heads if num_kv_heads is None else integer("num_kv_heads", num_kv_heads, 1)
    if num_heads % num_kv_heads:
        raise ValueError(f"num_heads must be a multiple of num_kv_heads, got {num_heads} and {num_kv_heads}")
    if head_dim is None:
        if embed_dim % num_heads:
            raise ValueError(
                f"embed_dim must be divisible by num_heads, got {embed_dim} and {num_heads}; or give head_dim="
            )
        head_dim = embed_dim // num_heads
    head_dim = integer("head_dim", head_dim, 1)
    kdim = embed_dim if kdim is None else integer("kdim", kdim, 1)
    vdim = embed_dim if vdim is None else integer("vdim", vdim, 1)
    return embed_dim, num_heads, num_kv_heads, head_dim, kdim, vdim


def layer_arrays(arrays):
    """The weights of a layer by name, None for a bias that is not there, and the sizes that their shapes tell.

    arrays: anything with num_heads and with attributes of those names.
    """
    named = {f"W_{n}": getattr(arrays, f"W_{n}") for n in "QKVO"} | {
        f"b_{n}": getattr(arrays, f"b_{n}", None) for n in "QKVO"
    }
    (embed_dim, width), (kdim, kv_width), (vdim, _) = (tuple(named[f"W_{n}"].shape) for n in "QKV")
    num_heads = integer("num_heads", arrays.num_heads, 1)
    head_dim, rest = divmod(width, num_heads)
    if rest or head_dim == 0 or kv_width % head_dim:
        raise ValueError(
            f"W_Q and W_K must hold whole heads, got {width} and {kv_width} columns for num_heads={num_heads}"
        )
    columns = {"Q": (embed_dim, width), "K": (kdim, kv_width), "V": (vdim, kv_width), "O": (width, embed_dim)}
    for name, array in named.items():
        wants = columns[name[-1]] if name[0] == "W" else columns[name[-1]][1:]
        if array is not None and tuple(array.shape) != wants:
            raise ValueError(f"{name} must have the shape {wants}, got {tuple(array.shape)}")
    sizes = {"num_kv_heads": kv_width // head_dim, "head_dim": head_dim, "kdim": kdim, "vdim": vdim}
    return named, {"embed_dim": embed_dim, "num_heads": num_heads, **sizes}


def cache_of_kind(cache, kind):
    """`cache=` of a layer: None or a KVCache of the same path."""
    if cache is not None and not isinstance(cache, kind):
        raise TypeError(
            f"cache must be a {kind.__module__.rpartition('.')[0]}.KVCache or None, got {type(cache).__name__}"
        )


def rope_convention(rope, head_dim):
    """`rope=` of a layer as None, "interleaved" or "halves"; True means the default of `rope()`, interleaved."""
    rope = {True: "interleaved", False: None}.get(rope, rope) if isinstance(rope, bool) else rope
    if rope not in (None, "interleaved", "halves"):
        raise ValueError(f'rope must be None, "interleaved" or "halves", got {rope!r}')
    if rope is not None and head_dim % 2:
        raise ValueError(f"rope turns pairs of components, so head_dim must be even, got {head_dim}")
    return rope


def layer_inputs(query, key, value, sizes):
    """Check the input shapes (..., L, E), (..., S, kdim), (..., S, vdim) of a layer."""
    axes = ("(..., L, E)", "(..., S, kdim)", "(..., S, vdim)")
    for name, shape, size, letters in zip(("query", "key", "value"), (query, key, value), sizes, axes, strict=True):
        if len(shape) < 2 or shape[-1] != size:
            raise ValueError(
                f"{name} must have the axes {letters} with a last axis of {size}, got shape {tuple(shape)}"
            )
    if not query[:-2] == key[:-2] == value[:-2]:
        raise ValueError(
            f"query, key and value must have the same leading axes, got {tuple(query)}, {tuple(key)} and {tuple(value)}"
        )
    if key[-2] != value[-2]:
        raise ValueError(f"key and value must have the same length S, got {tuple(key)} and {tuple(value)}")


def cache_append(length, key, value, key_room, value_room):
    """Check what is appended to a cache that holds `length` tokens; return the length after it."""
    for name, shape, room in (("key", key, key_room), ("value", value, value_room)):
        if len(shape) != 4 or shape[:2] != room[:2] or shape[3] != room[3]:
            wants = f"({room[0]}, {room[1]}, n, {room[3]})"
            raise ValueError(f"{name} must have the shape (B, H_kv, n, D) = {wants} of the cache, got {tuple(shape)}")
    if key[2] != value[2]:
        raise ValueError(f"key and value must have the same length n, got {tuple(key)} and {tuple(value)}")
    stop = length + key[2]
    if stop > key_room[2]:
        raise ValueError(f"the cache has room for max_length = {key_room[2]} tokens, got {length} + {key[2]} = {stop}")
    return stop


def probability(name, value):
    """Return `value` as a float in 0..1."""
    value = number(name, value, "a probability in 0..1")
    if not 0 <= value <= 1:
        raise ValueError(f"{name} must be a probability in 0..1, got {value}")
    return value


def model_inputs(tokens_shape, max_length, head_mask, wants):
    """Check the arguments of a model: at most `max_length` tokens in a row, and a mask with one number for each head."""
    if len(tokens_shape) != 2 or tokens_shape[1] > max_length:
        raise ValueError(f"tokens must have the shape (B, L) with L <= {max_length}, got {tuple(tokens_shape)}")
    if head_mask is not None:
        found = tuple(head_mask.shape) if hasattr(head_mask, "shape") else type(head_mask).__name__
        if found != wants:
            raise ValueError(f"head_mask must be an array of the shape (num_layers, H) = {wants}, got {found}")


def model_sizes(vocab, embed_dim, num_heads, num_layers, max_length, seed):
    """Check the sizes of a model, also of one without layers; return them as six ints."""
    embed_dim, num_heads, *_ = layer_sizes(embed_dim, num_heads, None, None, None, None)
    vocab, num_layers = integer("vocab", vocab, 1), integer("num_layers", num_layers, 0)
    return vocab, embed_dim, num_heads, num_layers, integer("max_length", max_length, 1), integer("seed", seed, 0)
