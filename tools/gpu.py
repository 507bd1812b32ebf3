"""Measure attention on a graphics card, or on the CPU where there is none: `python tools/gpu.py` writes chapters/gpu.json.

Chapter 19 shows that file and measures nothing: a page must not change because a machine was busy, or has no card. Where CUDA is there,
all is measured on it, and the file names the card; else the file says "cpu", and the chapter says that these are the CPU's numbers.
After a new measurement run `make notebooks`. The CPU works with one thread.
"""

import json
import platform
import warnings
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
import torch.nn.functional as F
from machine import processor
from torch.nn.attention import SDPBackend, sdpa_kernel

RESULTS = Path(__file__).parents[1] / "chapters" / "gpu.json"
BACKENDS = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}
DTYPES = {"float64": torch.float64, "float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def device():
    return "cuda" if torch.cuda.is_available() else "cpu"


def machine():
    """What was measured on; `card` is None without CUDA."""
    cuda = device() == "cuda"
    return {
        "device": device(),
        "card": torch.cuda.get_device_name() if cuda else None,
        "processor": processor(),
        "python": platform.python_version(),
        "torch": torch.__version__.split("+")[0],
        "cuda": torch.version.cuda if cuda else None,
        "threads": 1,
    }


def inputs(n, dtype, heads=4, width=64):
    """Queries, keys and values (1, H, n, D), the same numbers in every dtype up to rounding."""
    q, k, v = np.random.default_rng(n).standard_normal((3, 1, heads, n, width))
    return [torch.tensor(x).to(device(), dtype) for x in (q, k, v)]


def attend(backend, q, k, v, **options):
    """Attention by this back end alone; RuntimeError where it does not take these inputs."""
    with warnings.catch_warnings(), sdpa_kernel([BACKENDS[backend]]):
        warnings.simplefilter("ignore")  # PyTorch warns about each back end that it may not use
        return F.scaled_dot_product_attention(q, k, v, **options)


def cases(n=64):
    """Inputs that not every back end takes: name -> (q, k, v, options)."""
    single, half = inputs(n, torch.float32), inputs(n, torch.float16)
    allowed = torch.ones(n, n, dtype=torch.bool, device=device()).tril()
    bias = torch.zeros(n, n, dtype=torch.float16, device=device())
    found = {name: (*inputs(n, dtype), {}) for name, dtype in DTYPES.items()}
    found["float16, is_causal"] = (*half, {"is_causal": True})
    found["float16, boolean mask"] = (*half, {"attn_mask": allowed})
    found["float16, bias"] = (*half, {"attn_mask": bias})
    found["float32, boolean mask"] = (*single, {"attn_mask": allowed})
    return found


def accepts():
    """Which back end takes which inputs here."""
    table = {}
    for name, (q, k, v, options) in cases().items():
        table[name] = {}
        for backend in BACKENDS:
            try:
                attend(backend, q, k, v, **options)
                table[name][backend] = True
            except RuntimeError:
                table[name][backend] = False
    return table


def errors(n=512):
    """The error of each dtype and back end against float64 on the CPU, relative to the largest entry."""
    q, k, v = (x.cpu() for x in inputs(n, torch.float64))
    wanted = F.scaled_dot_product_attention(q, k, v)
    result = {"n": n}
    for dtype in ("float32", "float16", "bfloat16"):
        result[dtype] = {}
        for backend in BACKENDS:
            try:
                got = attend(backend, *inputs(n, DTYPES[dtype])).cpu().double()
            except RuntimeError:
                continue
            result[dtype][backend] = float(f"{(got - wanted).abs().max() / wanted.abs().max():.2g}")
    return result


def seconds(function, calls):
    """The mean time of one call. A card is waited for: a call returns before the card has done the work."""
    wait = torch.cuda.synchronize if device() == "cuda" else lambda: None
    wait()
    start = perf_counter()
    for _ in range(calls):
        function()
    wait()
    return (perf_counter() - start) / calls


def milliseconds(lengths=(64, 256, 1024), repetitions=9):
    """The median time of prefill (n queries, n keys) and of a decoding step (1 query, n keys)."""
    result = {"n": list(lengths), "heads": 4, "width": 64, "repetitions": repetitions, "prefill": {}, "decoding": {}}
    for dtype in ("float32", "bfloat16"):
        for backend in BACKENDS:
            for kind, rows in (("prefill", slice(None)), ("decoding", slice(-1, None))):
                times = []
                for n in lengths:
                    q, k, v = inputs(n, DTYPES[dtype])
                    q = q[:, :, rows].contiguous()
                    try:
                        attend(backend, q, k, v)
                    except RuntimeError:
                        break
                    calls = max(1, round(0.02 / seconds(lambda: attend(backend, q, k, v), 1)))  # noqa: B023
                    runs = [seconds(lambda: attend(backend, q, k, v), calls) for _ in range(repetitions)]  # noqa: B023
                    times.append(float(f"{1000 * median(runs):.3g}"))
                if times:
                    result[kind][f"{dtype}, {backend}"] = times
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    results = {
        "command": "python tools/gpu.py",
        "machine": machine(),
        "accepts": accepts(),
        "errors": errors(),
        "milliseconds": milliseconds(),
    }
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{RESULTS.name}: {results['machine']['card'] or 'no card, ' + results['machine']['processor']}")
