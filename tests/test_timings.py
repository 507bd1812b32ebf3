"""The committed timings have the form that the pages read, and still show what chapter 1 says about them."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def timings():
    spec = importlib.util.spec_from_file_location("timings", ROOT / "tools" / "timings.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:  # the tool asks for one thread by the environment: not in this process
        for library in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM"):
            patch.setenv(f"{library}_NUM_THREADS", "1")
        spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def committed():
    return json.loads((ROOT / "chapters" / "timings.json").read_text())


def test_the_machine_is_named(committed):
    machine = committed["machine"]
    assert set(machine) == {"processor", "python", "numpy", "threads"} and machine["threads"] == 1
    assert machine["processor"] and not {"unknown", "x86_64", "aarch64"} & {machine["processor"]}


def test_every_way_has_one_time_and_one_ratio_per_length(timings, committed):
    scores = committed["scores"]
    ways = list(timings.score_functions(2, 4))
    for kind in ("milliseconds", "ratio"):
        assert list(scores[kind]) == ways
        table = np.array([scores[kind][way] for way in ways])
        assert table.shape == (len(ways), len(scores["n"])) and (table > 0).all()
    assert set(scores["ratio"][ways[0]]) == {1.0}


def test_ratios_and_times_tell_the_same_story(committed):
    """They are medians of the same repetitions, so they may differ, but not by much."""
    scores = committed["scores"]
    times, ratios = (np.array(list(scores[kind].values())) for kind in ("milliseconds", "ratio"))
    assert np.abs(np.log(times / times[0] / ratios)).max() < np.log(2)


def test_the_order_that_chapter_1_states(committed):
    _, no_matmul, additive, at_once = map(np.array, committed["scores"]["ratio"].values())
    assert (no_matmul > 10).all()
    assert (additive > no_matmul).all() and (additive < 4 * no_matmul).all()
    assert (at_once > no_matmul).all()


def test_the_four_ways_compute_what_they_are_called(timings):
    functions = timings.score_functions(5, 3)
    dot, dot_by_row, additive_by_row, additive = (function() for function in functions.values())
    assert dot.shape == additive.shape == (5, 5) and dot.dtype == additive.dtype == np.float32
    np.testing.assert_allclose(dot_by_row, dot, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(additive_by_row, additive, rtol=1e-5, atol=1e-6)
    assert not np.allclose(dot, additive)


def test_repetitions_are_interleaved_and_ratios_go_to_the_first(timings, monkeypatch):
    calls, now = [], [0.0]

    def takes(name, seconds):
        def function():
            calls.append(name)
            now[0] += seconds

        return function

    monkeypatch.setattr(timings, "perf_counter", lambda: now[0])
    times, ratios = timings.interleaved({"a": takes("a", 1.0), "b": takes("b", 3.0)}, repetitions=4, at_least=0.5)
    assert times == {"a": 1.0, "b": 3.0} and ratios == {"a": 1.0, "b": 3.0}
    assert calls[-8:] == ["a", "b"] * 4
