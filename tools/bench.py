"""How fast attention is on this machine: python tools/bench.py [--quick] (also `make bench`; writes bench.json and bench.png)

One process, all candidates in turn, again and again; medians, and ratios to PyTorch's scaled_dot_product_attention (SDPA). NumPy
is given the BLAS kernel of its own choice: OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE are unset here, unless --kernel names one.
`python tools/bench.py --book` measures what chapter 16 draws, into chapters/bench.json; then `make notebooks`.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path

from machine import processor

OUT = Path(__file__).parents[1] / "_build" / "bench"
BOOK = Path(__file__).parents[1] / "chapters" / "bench.json"
SHAPES = [(1, 8, 128, 64), (1, 8, 512, 64), (1, 8, 1024, 64), (8, 8, 512, 64), (1, 8, 4096, 64)]
LENGTHS = [512, 1024, 2048, 4096, 8192]
MAP_LIMIT = 2048  # beyond it the candidates that hold all weights at once are left out
BOOK_LENGTHS = [128, 256, 512, 1024, 2048, 4096]
HEAD_LENGTHS = [16, 64, 256, 1024]
VECTORS = [1, 2, 4, 8, 16, 32, 64, 128, 256]  # that a matrix is multiplied by: FLOPs for each byte of it, times 2
SIDE = 12288  # of that matrix: 604 MB, more than a cache holds


def restart_without_openblas_settings(kernel):
    """OpenBLAS reads its settings when it is loaded, so they are changed before NumPy is imported, in a fresh process."""
    wanted = {key: x for key, x in os.environ.items() if key not in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")}
    if kernel:
        wanted["OPENBLAS_CORETYPE"] = kernel
    if wanted != dict(os.environ):
        os.execve(sys.executable, [sys.executable, *sys.argv], wanted)


def interleaved(candidates, budget, minimum=3):
    """Median seconds of each candidate: all in turn, again and again, until the budget of seconds is spent.

    A pause stands before each call: PyTorch's threads go on spinning for milliseconds after theirs, on the cores of the next one.
    """
    times, start = {name: [] for name in candidates}, time.perf_counter()
    for call in candidates.values():
        call()
    while len(next(iter(times.values()))) < minimum or time.perf_counter() - start < budget:
        for name, call in candidates.items():
            time.sleep(0.01)
            before = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - before)
    return {name: statistics.median(t) for name, t in times.items()}


def candidates(shape, causal, backward):
    """What is compared: name -> a call without arguments."""
    import numpy as np
    import torch

    import mha_lib.numpy as ours
    import mha_lib.torch as ours_torch

    B, H, L, D = shape
    q, k, v, g = np.random.default_rng(0).standard_normal((4, *shape), dtype=np.float32)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    grad = torch.from_numpy(g)
    sdpa = torch.nn.functional.scaled_dot_product_attention
    module = torch.nn.MultiheadAttention(H * D, H, batch_first=True)
    layer = ours_torch.MultiHeadAttention(H * D, H)
    x = torch.from_numpy(np.random.default_rng(1).standard_normal((B, L, H * D), dtype=np.float32))
    attn_mask = torch.ones(L, L).triu(1).bool() if causal else None

    def with_grad(call):
        def run():
            leaves = [t.clone().requires_grad_() for t in tensors]
            call(*leaves, is_causal=causal).backward(grad)

        return run

    def train(call):
        def run():
            call().sum().backward()

        return run

    if backward:
        return {
            "SDPA": with_grad(sdpa),
            "mha_lib.torch": with_grad(ours_torch.scaled_dot_product_attention),
            "flash_attention": lambda: ours.flash_attention_backward(g, q, k, v, is_causal=causal),
            **({"readable": lambda: ours.scaled_dot_product_attention_backward(g, q, k, v, is_causal=causal)} if L <= MAP_LIMIT else {}),
            "nn.MultiheadAttention": train(lambda: module(x, x, x, attn_mask=attn_mask, need_weights=False, is_causal=causal)[0]),
            "mha_lib.torch layer": train(lambda: layer(x, is_causal=causal)),
        }  # fmt: skip

    def no_grad(call):
        def run():
            with torch.no_grad():
                call()

        return run

    def einsum():
        scores = np.einsum("bhld,bhsd->bhls", q, k) / np.float32(np.sqrt(D))
        if causal:
            scores = np.where(np.tri(L, dtype=bool), scores, -np.inf)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        return np.einsum("bhls,bhsd->bhld", e / e.sum(-1, keepdims=True), v)

    return {
        "SDPA": no_grad(lambda: sdpa(*tensors, is_causal=causal)),
        "mha_lib.torch": no_grad(lambda: ours_torch.scaled_dot_product_attention(*tensors, is_causal=causal)),
        "flash_attention": lambda: ours.flash_attention(q, k, v, is_causal=causal),
        **({"readable": lambda: ours.scaled_dot_product_attention(q, k, v, is_causal=causal)} if L <= MAP_LIMIT else {}),
        **({"NumPy einsum": einsum} if B * L <= 1024 else {}),
        "nn.MultiheadAttention": no_grad(lambda: module(x, x, x, attn_mask=attn_mask, need_weights=False, is_causal=causal)),
        "mha_lib.torch layer": no_grad(lambda: layer(x, is_causal=causal)),
    }  # fmt: skip


def flops(shape, causal, backward):
    """Multiplications and additions of the products: two forward, five more backward; half of them where causal."""
    B, H, L, D = shape
    return 4 * B * H * L * L * D * (3.5 if backward else 1) * (0.5 if causal else 1)


def matmul_rate():
    """This machine's rate of a large float32 product in NumPy, FLOP/s."""
    import numpy as np

    a, b = np.random.default_rng(0).standard_normal((2, 2048, 2048), dtype=np.float32)
    return 2 * 2048**3 / interleaved({"product": lambda: a @ b}, 1.0, 5)["product"]


def fastest(candidates, budget, minimum=3):
    """Seconds of each candidate's fastest call, all in turn: what the machine can do when nobody else is at work on it."""
    best, start, rounds = dict.fromkeys(candidates, float("inf")), time.perf_counter(), 0
    while rounds < minimum or time.perf_counter() - start < budget:
        rounds += 1
        for name, call in candidates.items():
            time.sleep(0.01)
            before = time.perf_counter()
            call()
            best[name] = min(best[name], time.perf_counter() - before)
    return best


def matrix_times_vectors(side, vectors):
    """FLOPs and bytes of a float32 product (side, side) @ (side, vectors), each array moved once."""
    return 2 * side**2 * vectors, 4 * (side**2 + 2 * side * vectors)


def roofs(quick):
    """The machine's two limits, and a product at different numbers of FLOPs per byte between them."""
    import numpy as np

    from mha_lib.numpy import _workers

    side, budget = (1024, 1.0) if quick else (SIDE, 60.0)
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((side, side), dtype=np.float32)
    a, b = rng.standard_normal((2, 2048, 2048), dtype=np.float32)
    source, target = matrix.reshape(-1), np.empty(side * side, np.float32)

    def copy(share, shares):
        part = slice(share * len(source) // shares, (share + 1) * len(source) // shares)
        target[part] = source[part]

    calls = {}
    for m in VECTORS:
        x = rng.standard_normal((side, m), dtype=np.float32)
        calls[f"{m}"] = lambda x=x: matrix @ x
    calls |= {"copy": lambda: _workers.run(copy, _workers.available_cores()), "product": lambda: a @ b}
    seconds = fastest(calls, budget)
    points = []
    for m in VECTORS:
        flops, moved = matrix_times_vectors(side, m)
        points.append({"vectors": m, "FLOP per byte": flops / moved, "GFLOP/s": flops / seconds[f"{m}"] / 1e9})
    return {
        "side": side,
        "product rate, GFLOP/s": 2 * 2048**3 / seconds["product"] / 1e9,
        "bandwidth, GB/s": 2 * source.nbytes / seconds["copy"] / 1e9,  # read once, written once
        "points": points,
    }


def attention_rates(quick):
    """Attention at growing length: GFLOP/s of the readable function, by tiles, and of PyTorch. The FLOPs are those of the products."""
    rates = {name: [] for name in ("readable", "flash_attention", "SDPA")}
    lengths = BOOK_LENGTHS[:2] if quick else BOOK_LENGTHS
    for L in lengths:
        shape = (1, 8, L, 64)
        calls = candidates(shape, causal=False, backward=False)
        seconds = fastest({name: calls[name] for name in rates if name in calls}, 1.0 if quick else 8.0)
        for name, found in rates.items():
            found.append(flops(shape, False, False) / seconds[name] / 1e9 if name in seconds else None)
    return {"B, H, D": [1, 8, 64], "L": lengths, "GFLOP/s": rates}


def heads_in_one_call(quick):
    """All heads in one call, and in a loop over the heads: how many times as long the loop takes. The FLOPs are the same."""
    import numpy as np
    import torch

    import mha_lib.numpy as ours

    sdpa, H, D = torch.nn.functional.scaled_dot_product_attention, 12, 32  # as in the real layer
    lengths, ratios = HEAD_LENGTHS[:2] if quick else HEAD_LENGTHS, {"readable": [], "SDPA": []}
    for L in lengths:
        arrays = np.random.default_rng(0).standard_normal((3, 1, H, L, D), dtype=np.float32)
        kinds = {"readable": (ours.scaled_dot_product_attention, arrays), "SDPA": (sdpa, torch.from_numpy(arrays))}
        calls = {}
        for name, (function, x) in kinds.items():
            calls[name] = lambda f=function, x=x: f(*x)
            calls[f"{name}, loop"] = lambda f=function, x=x: [f(*x[:, :, h : h + 1]) for h in range(H)]
        seconds = fastest(calls, 0.5 if quick else 8.0)
        for name, found in ratios.items():
            found.append(seconds[f"{name}, loop"] / seconds[name])
    return {"H, D": [H, D], "L": lengths, "loop / one call": ratios}


def blas_kernels():
    """The BLAS libraries that are loaded, with the kernels that they chose for this processor."""
    import threadpoolctl

    return [
        f"{i['internal_api']} {i.get('architecture', '')}".strip()
        for i in threadpoolctl.threadpool_info()
        if i["user_api"] == "blas"
    ]


def rounded(x):
    """Every float with three digits: what a second measurement may bring out again."""
    if isinstance(x, dict):
        return {key: rounded(value) for key, value in x.items()}
    if isinstance(x, list):
        return [rounded(value) for value in x]
    return float(f"{x:.3g}") if isinstance(x, float) else x


def for_the_book(quick):
    """What chapter 16 draws, with the machine and the command."""
    import numpy as np
    import torch

    from mha_lib.numpy._workers import available_cores

    torch.set_num_threads(available_cores())
    results = {"roofline": roofs(quick), "attention": attention_rates(quick), "heads": heads_in_one_call(quick)}
    machine = {
        "processor": processor(), "cores": available_cores(), "python": platform.python_version(), "numpy": np.__version__,
        "torch": torch.__version__, "blas": blas_kernels(),
    }  # fmt: skip
    results["heads"]["machine"] = machine  # of its own, since it can be measured again without the rest
    return {"command": "python tools/bench.py --book", "machine": machine} | rounded(results)


def extra_memory(call):
    """Peak bytes that NumPy allocates during the call, its result included."""
    import tracemalloc

    call()
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def measure(quick):
    """All results, as they are written to bench.json."""
    import numpy as np
    import torch

    import mha_lib.numpy as ours
    from mha_lib.numpy._workers import available_cores

    torch.set_num_threads(available_cores())
    rate = matmul_rate()
    speeds = []
    for shape in SHAPES[:2] if quick else SHAPES:
        for causal in (False, True):
            for backward in (False, True):
                seconds = interleaved(candidates(shape, causal, backward), 1.0 if quick else 6.0)
                ratios = {name: seconds["SDPA"] / s for name, s in seconds.items()}
                share = flops(shape, causal, backward) / seconds["flash_attention"] / rate
                speeds.append({"shape": shape, "causal": causal, "backward": backward, "milliseconds": {n: 1e3 * s for n, s in seconds.items()},
                               "times as fast as SDPA": ratios, "flash_attention, share of the product rate": share})  # fmt: skip
                kind = ("forward + backward" if backward else "forward") + (", causal" if causal else "")
                print(f"{shape} {kind}: SDPA {1e3 * seconds['SDPA']:.2f} ms; times as fast: "
                      + ", ".join(f"{n} {r:.2f}" for n, r in ratios.items() if n != "SDPA") + f"; {share:.0%} of the product rate", flush=True)  # fmt: skip
    memory = []
    for L in LENGTHS[:2] if quick else LENGTHS:
        q, k, v = np.random.default_rng(0).standard_normal((3, 1, 8, L, 64), dtype=np.float32)
        row = {"L": L, "flash_attention": extra_memory(lambda q=q, k=k, v=v: ours.flash_attention(q, k, v, is_causal=True)),
               "flash_attention_backward": extra_memory(lambda q=q, k=k, v=v: ours.flash_attention_backward(q, q, k, v, is_causal=True))}  # fmt: skip
        if L <= MAP_LIMIT:
            row["readable"] = extra_memory(
                lambda q=q, k=k, v=v: ours.scaled_dot_product_attention(q, k, v, is_causal=True)
            )
        memory.append(row)
        print(
            f"L = {L}, causal: extra memory " + ", ".join(f"{n} {b / 1e6:.0f} MB" for n, b in row.items() if n != "L"),
            flush=True,
        )
    return {
        "machine": {"processor": processor(), "cores": os.cpu_count(), "python": platform.python_version(), "numpy": np.__version__,
                    "torch": torch.__version__, "blas": blas_kernels(), "product rate, GFLOP/s": rate / 1e9, "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None},
        "speeds": speeds,
        "memory": memory,
    }  # fmt: skip


def draw(results, path):
    """Times as fast as SDPA, one group of bars for each shape."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(2, 1, figsize=(9, 7), layout="constrained", sharey=True)
    names = {
        "readable": ("#999999", ""),
        "flash_attention": ("#0072B2", "//"),
        "mha_lib.torch": ("#E69F00", ".."),
        "nn.MultiheadAttention": ("#CC79A7", "xx"),
    }
    for panel, backward in zip(panels, (False, True), strict=True):
        rows = [s for s in results["speeds"] if s["backward"] == backward]
        for n, (name, (colour, hatch)) in enumerate(names.items()):
            values = [row["times as fast as SDPA"].get(name, 0) for row in rows]
            panel.bar(
                [i + 0.2 * n for i in range(len(rows))],
                values,
                0.2,
                color=colour,
                hatch=hatch,
                edgecolor="white",
                label=name,
            )
        panel.axhline(1, color="black", linewidth=1)
        panel.set_xticks([i + 0.3 for i in range(len(rows))])
        panel.set_xticklabels(
            [f"{'×'.join(map(str, r['shape']))}\n{'causal' if r['causal'] else ''}" for r in rows], fontsize=7
        )
        panel.set_title("forward and backward" if backward else "forward")
        panel.set_ylabel("times as fast as SDPA")
    panels[0].legend(ncols=4, fontsize=8)
    figure.suptitle(
        f"{results['machine']['processor']}, {results['machine']['cores']} cores, {', '.join(results['machine']['blas'])}",
        fontsize=9,
    )
    figure.savefig(path, dpi=160)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="the two short shapes only")
    parser.add_argument("--book", action="store_true", help="what chapter 16 draws, into chapters/bench.json")
    parser.add_argument("--kernel", help="OpenBLAS kernel to force, for instance Haswell")
    arguments = parser.parse_args()
    restart_without_openblas_settings(arguments.kernel)
    if arguments.book:
        results = for_the_book(arguments.quick)
        where = OUT / "book.json" if arguments.quick else BOOK
        where.parent.mkdir(parents=True, exist_ok=True)
        where.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
        print(f"{where.name}: {results['machine']['processor']}, {results['machine']['cores']} cores")
        return
    results = measure(arguments.quick)
    OUT.mkdir(parents=True, exist_ok=True)
    (OUT / "bench.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    draw(results, OUT / "bench.png")
    print(f"{results['machine']}\n{OUT / 'bench.json'} and bench.png")


if __name__ == "__main__":
    main()
