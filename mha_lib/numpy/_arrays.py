"""From what the caller gives to arrays that can be computed with."""

import numpy as np


def real_array(name, x):
    """`x` as an array of real numbers; nothing is copied that already is one."""
    x = rectangular(name, x)
    if x.dtype.kind not in "fiu":
        raise TypeError(f"{name} must hold real numbers, got dtype {x.dtype}")
    return x


def rectangular(name, x):
    """`x` as an array. A masked array is refused: its mask would be lost in silence."""
    if isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a plain array, got a masked one; fill it, and pass its mask as mask=")
    try:
        return np.asarray(x)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} must be a rectangular array: {error}") from None


def as_array(x):
    """A tensor or array as a NumPy array, without a copy where none is needed."""
    if hasattr(x, "detach"):
        x = x.detach().cpu()
        x = (x.float() if str(x.dtype) == "torch.bfloat16" else x).numpy()  # NumPy has no bfloat16
    return np.asarray(x)


def token_lengths(lengths, S, B=None):
    """`lengths` as integers (B,), each in 0..S."""
    lengths = rectangular("lengths", lengths)
    if lengths.size == 0:
        lengths = lengths.astype(np.intp)
    if lengths.dtype.kind not in "iu":
        raise TypeError(f"lengths must be integers, got dtype {lengths.dtype}")
    if lengths.ndim != 1 or B not in (None, len(lengths)):
        raise ValueError(f"lengths must have the shape (B,){'' if B is None else f' = ({B},)'}, got {lengths.shape}")
    if lengths.size and not (0 <= lengths.min() and lengths.max() <= S):
        raise ValueError(f"lengths must lie in 0..S = 0..{S}, got values from {lengths.min()} to {lengths.max()}")
    return lengths.astype(np.intp, copy=False)


def result_dtype(*arrays):
    """The dtype of a result: NumPy's promotion, integers to float64."""
    dtype = np.result_type(*arrays)
    return dtype if dtype.kind == "f" else np.dtype(np.float64)


def compute_dtype(dtype):
    """The dtype to compute in: float16 accumulates in float32."""
    return np.dtype(np.float32) if dtype == np.float16 else dtype


def boolean_mask(mask):
    """`mask` as a boolean array (True = may attend), or None."""
    if mask is None:
        return None
    mask = rectangular("mask", mask)
    if mask.dtype != bool:
        raise TypeError(f"mask must be boolean (True = may attend), got {mask.dtype}; pass additive values as bias=")
    return mask


def additive_bias(bias, dtype):
    """`bias` as an array of `dtype`, or None. Finite values stay finite: only -inf itself counts as masked."""
    if bias is None:
        return None
    bias = rectangular("bias", bias)
    if bias.dtype == bool:
        raise TypeError("bias must hold numbers that are added to the scores, got bool; pass a boolean mask as mask=")
    bias = real_array("bias", bias)
    limits = np.finfo(dtype)
    if bias.dtype.kind == "f" and np.finfo(bias.dtype).max > limits.max:
        bias = np.where(np.isfinite(bias), np.clip(bias, limits.min, limits.max), bias)
    return bias.astype(dtype, copy=False)
