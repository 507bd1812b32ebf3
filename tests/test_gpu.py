"""The committed measurements of chapter 19 have the form that it reads, and tools/gpu.py computes what it says it measures."""

import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not on this machine")

import gpu
import torch
from common import close

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def committed():
    return json.loads((ROOT / "chapters" / "gpu.json").read_text())


def test_the_file_says_what_was_measured_on(committed):
    machine = committed["machine"]
    assert set(machine) == set(gpu.machine()) and machine["threads"] == 1
    assert (machine["device"] == "cuda") == (machine["card"] is not None) == (machine["cuda"] is not None)
    assert machine["processor"] and committed["command"] == "python tools/gpu.py"


def test_what_was_accepted_is_what_has_an_error(committed):
    accepts, errors = committed["accepts"], committed["errors"]
    assert set(accepts) == set(gpu.cases(4))
    assert all(list(row) == list(gpu.BACKENDS) and row["math"] for row in accepts.values())
    for dtype in ("float32", "float16", "bfloat16"):
        assert set(errors[dtype]) == {backend for backend, taken in accepts[dtype].items() if taken}


def test_every_time_belongs_to_a_back_end_that_is_there(committed):
    times = committed["milliseconds"]
    for kind in ("prefill", "decoding"):
        wanted = {f"{t}, {b}" for t in ("float32", "bfloat16") for b, taken in committed["accepts"][t].items() if taken}
        assert set(times[kind]) == wanted
        table = np.array(list(times[kind].values()))
        assert table.shape == (len(wanted), len(times["n"])) and (table > 0).all()


def test_inputs_are_the_same_numbers_in_every_dtype():
    exact = gpu.inputs(8, torch.float64)
    for x, rounded in zip(exact, gpu.inputs(8, torch.bfloat16), strict=True):
        assert x.shape == (1, 4, 8, 64) and torch.equal(x.to(torch.bfloat16), rounded)


def test_a_back_end_alone_computes_attention():
    q, k, v = gpu.inputs(8, torch.float64)
    weights = torch.softmax(q @ k.transpose(-1, -2) / 8, dim=-1)
    close(gpu.attend("math", q, k, v).cpu(), (weights @ v).cpu())


def test_a_call_is_timed_as_often_as_asked():
    calls = []
    assert gpu.seconds(lambda: calls.append(1), 5) > 0 and len(calls) == 5
