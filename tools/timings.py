"""Measure what the book says about speed, on this machine: `python tools/timings.py` writes chapters/timings.json.

The notebooks draw that file and never measure: a page must not change because a machine was busy. After a new measurement run
`make notebooks`, so that the pages show it. NumPy runs with one thread, whatever the machine has.
"""

import json
import os
import platform
from pathlib import Path
from time import perf_counter

for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM"):
    os.environ[f"{library}_NUM_THREADS"] = "1"  # read when NumPy is loaded, so before the import

import numpy as np  # noqa: E402
from machine import processor  # noqa: E402

RESULTS = Path(__file__).parents[1] / "chapters" / "timings.json"


def seconds(function, calls):
    """The mean time of one call."""
    start = perf_counter()
    for _ in range(calls):
        function()
    return (perf_counter() - start) / calls


def interleaved(functions, repetitions, at_least=0.02):
    """The medians of repetitions taken in turn, so that a busy moment falls on all functions: times, and ratios to the first.

    A ratio is taken within each repetition, before the median. One repetition of a function lasts about `at_least` seconds.
    """
    calls = {}
    for name, function in functions.items():
        function()  # the first call is never typical
        calls[name] = max(1, round(at_least / seconds(function, 1)))
    rows = np.array([[seconds(f, calls[name]) for name, f in functions.items()] for _ in range(repetitions)])
    times, ratios = np.median(rows, axis=0), np.median(rows / rows[:, :1], axis=0)
    return dict(zip(functions, times.tolist(), strict=True)), dict(zip(functions, ratios.tolist(), strict=True))


def score_functions(n, width):
    """Four ways to make the n x n raw scores of random queries and keys, float32; the first is what the others are compared to.

    The second does the multiplications and additions of the first without a matrix product, for one query after the other.
    """
    rng = np.random.default_rng(n)
    Q, K = rng.standard_normal((2, n, width), dtype=np.float32)  # (n, width) each
    v = rng.standard_normal(width, dtype=np.float32)  # (width,)
    ones = np.ones(width, dtype=np.float32)
    return {
        "dot product, one matmul": lambda: Q @ K.T,
        "dot product, query by query": lambda: np.stack([(q * K) @ ones for q in Q]),
        "additive, query by query": lambda: np.stack([np.tanh(q + K) @ v for q in Q]),
        "additive, all at once": lambda: np.tanh(Q[:, None] + K) @ v,  # through an array (n, n, width)
    }


def scores(lengths=(64, 128, 256, 512, 1024), width=64, repetitions=15):
    """Dot-product against additive scores (chapter 1): milliseconds, and how many times as long as the matrix product."""
    result = {"n": list(lengths), "width": width, "dtype": "float32", "repetitions": repetitions}
    result |= {"milliseconds": {}, "ratio": {}}
    for n in lengths:
        times, ratios = interleaved(score_functions(n, width), repetitions)
        for name in times:
            result["milliseconds"].setdefault(name, []).append(float(f"{1000 * times[name]:.3g}"))
            result["ratio"].setdefault(name, []).append(float(f"{ratios[name]:.3g}"))
    return result


if __name__ == "__main__":
    machine = {
        "processor": processor(), "python": platform.python_version(), "numpy": np.__version__, "threads": 1,
    }  # fmt: skip
    results = {"machine": machine, "scores": scores()}
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(f"{RESULTS.name}: {machine['processor']}, Python {machine['python']}, NumPy {machine['numpy']}")
