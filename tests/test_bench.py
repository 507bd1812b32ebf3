"""The committed benchmark has the form that chapter 16 reads, and still shows what the chapter says about it."""

import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def committed():
    return json.loads((ROOT / "chapters" / "bench.json").read_text(encoding="utf-8"))


def test_the_machine_and_the_command_are_named(committed):
    machine = committed["machine"]
    assert set(machine) == {"processor", "cores", "python", "numpy", "torch", "blas"} and machine["cores"] >= 1
    assert machine["processor"] and not {"unknown", "x86_64", "aarch64"} & {machine["processor"]}
    assert machine["blas"] and committed["command"] == "python tools/bench.py --book"


def test_points_lie_under_the_roof_where_the_formula_puts_them(committed):
    import bench

    roof = committed["roofline"]
    assert [p["vectors"] for p in roof["points"]] == bench.VECTORS and roof["side"] == bench.SIDE
    for point in roof["points"]:
        flops, moved = bench.matrix_times_vectors(roof["side"], point["vectors"])
        assert np.isclose(point["FLOP per byte"], flops / moved, rtol=0.01)
        limit = min(roof["product rate, GFLOP/s"], roof["bandwidth, GB/s"] * flops / moved)
        assert 0 < point["GFLOP/s"] < 1.05 * limit


def test_every_way_has_a_rate_at_every_length(committed):
    import bench

    attention = committed["attention"]
    assert attention["L"] == bench.BOOK_LENGTHS and attention["B, H, D"] == [1, 8, 64]
    for name, rates in attention["GFLOP/s"].items():
        assert len(rates) == len(attention["L"])
        left_out = [L for L, rate in zip(attention["L"], rates, strict=True) if rate is None]
        assert left_out == ([L for L in attention["L"] if L > bench.MAP_LIMIT] if name == "readable" else [])


def test_the_loop_over_heads_has_a_ratio_at_every_length_and_names_its_machine(committed):
    import bench

    heads = committed["heads"]
    assert heads["L"] == bench.HEAD_LENGTHS and heads["H, D"] == [12, 32]
    assert set(heads["machine"]) == set(committed["machine"]) and heads["machine"]["processor"]
    for ratios in heads["loop / one call"].values():
        assert len(ratios) == len(heads["L"]) and min(ratios) > 0


def test_the_loop_over_heads_is_divided_by_the_one_call(monkeypatch):
    import bench

    shapes = {}

    def seconds(calls, budget):
        for name, call in calls.items():
            results = call()
            shapes[name] = [tuple(r.shape) for r in results] if isinstance(results, list) else tuple(results.shape)
        return {name: 3.0 if "loop" in name else 2.0 for name in calls}

    monkeypatch.setattr(bench, "fastest", seconds)
    assert bench.heads_in_one_call(quick=True)["loop / one call"] == {"readable": [1.5, 1.5], "SDPA": [1.5, 1.5]}
    for name in ("readable", "SDPA"):
        assert shapes[name] == (1, 12, 64, 32) and shapes[f"{name}, loop"] == [(1, 1, 64, 32)] * 12


def test_flops_and_bytes_of_a_small_product():
    import bench

    assert bench.matrix_times_vectors(3, 2) == (36, 4 * (9 + 6 + 6))
    assert bench.flops((1, 2, 3, 4), causal=False, backward=False) == 4 * 2 * 9 * 4


def test_the_fastest_call_counts(monkeypatch):
    import bench

    now, waits = [0.0], iter([3.0, 1.0, 2.0])
    monkeypatch.setattr(bench.time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(bench.time, "sleep", lambda seconds: None)

    def call():
        now[0] += next(waits)

    assert bench.fastest({"a": call}, budget=0.0, minimum=3) == {"a": 1.0}


def test_floats_are_rounded_and_nothing_else_changes():
    import bench

    assert bench.rounded({"a": [1.23456, None, 4096], "b": "x"}) == {"a": [1.23, None, 4096], "b": "x"}
