"""From what the caller gives to tensors that can be computed with."""

import contextlib

import torch


def real_tensor(name, x):
    """`x`, which must be a floating-point tensor."""
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{name} must be a torch.Tensor, got {type(x).__name__}")
    if not x.is_floating_point():
        raise TypeError(f"{name} must hold floating-point numbers, got {x.dtype}")
    return x


def same_kind(**tensors):
    """Check that the tensors agree in dtype and device, as PyTorch wants it; under autocast they are cast first."""
    tensors = {name: real_tensor(name, x) for name, x in tensors.items()}
    device = next(iter(tensors.values())).device
    if any(x.device != device for x in tensors.values()):
        found = ", ".join(f"{name} on {x.device}" for name, x in tensors.items())
        raise ValueError(f"all inputs must be on one device, got {found}")
    if autocasts(device):
        dtype = torch.get_autocast_dtype(device.type)
        tensors = {name: x if x.dtype == torch.float64 else x.to(dtype) for name, x in tensors.items()}
    if len({x.dtype for x in tensors.values()}) > 1:
        found = ", ".join(f"{name} {x.dtype}" for name, x in tensors.items())
        raise TypeError(f"all inputs must have one dtype, got {found}")
    return tensors.values()


def autocasts(device):
    """Whether `torch.autocast` is on for this kind of device; some kinds, such as meta, do not know it."""
    return torch.amp.is_autocast_available(device.type) and torch.is_autocast_enabled(device.type)


def compute_dtype(dtype):
    """The dtype to compute in: float16 and bfloat16 accumulate in float32."""
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def boolean_mask(mask, device):
    """`mask` as a boolean tensor (True = may attend), or None."""
    if mask is None:
        return None
    if not isinstance(mask, torch.Tensor):
        raise TypeError(f"mask must be a boolean torch.Tensor (True = may attend), got {type(mask).__name__}")
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be boolean (True = may attend), got {mask.dtype}; pass additive values as bias=")
    return on_device("mask", mask, device)


def additive_bias(bias, dtype, device):
    """`bias` as a tensor of `dtype`, or None. Finite values stay finite: only -inf itself counts as masked."""
    if bias is None:
        return None
    if not isinstance(bias, torch.Tensor):
        raise TypeError(f"bias must be a torch.Tensor, got {type(bias).__name__}")
    if bias.dtype == torch.bool:
        raise TypeError("bias must hold numbers that are added to the scores, got bool; pass a boolean mask as mask=")
    if bias.is_complex():
        raise TypeError(f"bias must hold real numbers, got {bias.dtype}")
    limits = torch.finfo(dtype)
    if bias.is_floating_point() and torch.finfo(bias.dtype).max > limits.max:
        bias = torch.where(bias.isfinite(), bias.clamp(limits.min, limits.max), bias)
    return on_device("bias", bias, device).to(dtype)


def on_device(name, x, device):
    """`x`, which must be on `device`."""
    if x.device != device:
        raise ValueError(f"{name} must be on {device} like query, got {x.device}")
    return x


def may_look(x):
    """Whether values may be looked at: on the CPU, outside `torch.compile`; elsewhere it would synchronise or break the graph."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()


def norm_or_zero(x):
    """The root of the sum of squares, as a float: inf or NaN where x holds such a value or a square overflows; 0 where values may
    not be seen, under torch.func.vmap and on fake tensors, so that nothing is found there."""
    try:
        return torch.linalg.vector_norm(x.detach(), dtype=compute_dtype(x.dtype)).item()
    except RuntimeError:
        return 0.0


def all_finite(*tensors):
    """Whether the tensors hold neither NaN nor inf; huge numbers count as not finite, which is the safe side."""
    return all(norm_or_zero(x) < torch.inf for x in tensors)


def kernels_are_safe(query, key, value, scale):
    """Whether no score can overflow, scaled or not yet, and nothing is NaN or inf. The kernels add -inf to the scores of masked
    pairs, so that a NaN or an inf there stays; and they take a row of NaN scores for a masked one."""
    largest = norm_or_zero(query) * norm_or_zero(key) * max(1.0, abs(scale))  # Cauchy-Schwarz
    return largest < 1e38 and norm_or_zero(value) < torch.inf


def without_autocast(device):
    """A context in which the inputs, cast already, are computed with as they are."""
    if autocasts(device):
        return torch.autocast(device.type, enabled=False)
    return contextlib.nullcontext()
