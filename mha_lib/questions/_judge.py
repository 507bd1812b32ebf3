"""Judging an answer: behaviour on fresh inputs against the reference, and the name of the mistake where one explains it.

The answer is reached through a source with three methods, so that it may live in this process (`mha_lib.check`) or in
another one (`grading`):

- `state(name)`: "missing", "callable" or "value";
- `get(name)`: the value; raises `Raised`;
- `run(name, call)`: the result of the call, and whether it left its arguments as they were; raises `Raised`, or
  `Stopped` where the process is gone.
"""

import copy
import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np


class Raised(Exception):
    """The answer stopped with an error; the text says which, in one line."""


class Stopped(Raised):
    """The process of the answer is gone: it took too long, too much memory, or ended itself."""


@dataclass
class Scored:
    """The outcome of one part."""

    title: str
    points: int
    max: int
    hidden: bool = False


@dataclass
class Verdict:
    """The outcome of a question.

    status: "right", "wrong" or "not answered". parts: a list of `Scored`. kind: the name of the mistake or of the general
    fault ("" where neither explains it). sentence: what happened. section: where it is explained ("" if nowhere). detail: the
    smallest input that shows it ("" where it would give the answer away, or where the part is hidden).
    """

    question: str
    status: str
    parts: list
    seed: int
    kind: str = ""
    sentence: str = ""
    section: str = ""
    detail: str = ""

    @property
    def points(self):
        return sum(part.points for part in self.parts)

    @property
    def max(self):
        return sum(part.max for part in self.parts)


@dataclass
class Trial:
    """One call, what it should give and what it gave."""

    part: Any
    call: Any
    want: Any
    got: Any = None
    error: str = ""
    fault: str = ""  # "" when right
    kind: str = ""
    touched: bool = False


def judge(exercise, question, source, seed, hidden=True):
    """The `Verdict` on the learner's answer. With `hidden=False` the hidden parts are left out."""
    parts = [part for part in question.parts if hidden or not part.hidden]
    if source.state(question.asks) == "missing":
        return _not_answered(question, parts, seed, f"{question.asks} has no value")
    trials = _try(question, parts, source, seed)
    if trials and all(trial.got is None and not trial.error for trial in trials):
        return _not_answered(question, parts, seed, f"{question.asks} returns nothing")
    earned = {p.title: all(not t.fault for t in trials if t.part is p) for p in parts if p.draw is not None}
    # who gets nothing right earns nothing by leaving the inputs alone
    earned |= {p.title: any(earned.values()) and not any(t.touched for t in trials) for p in parts if p.draw is None}
    scored = [Scored(p.title, p.points * earned[p.title], p.points, p.hidden) for p in parts]
    verdict = Verdict(question.name, "right", scored, seed)
    if verdict.points < verdict.max:
        verdict.status = "wrong"
        _explain(verdict, exercise, question, trials)
    return verdict


def _not_answered(question, parts, seed, why):
    scored = [Scored(p.title, 0, p.points, p.hidden) for p in parts]
    return Verdict(question.name, "not answered", scored, seed, sentence=why)


def _try(question, parts, source, seed):
    """Every call of every part. After the process is gone twice, the rest counts as stopped."""
    trials, gone = [], 0
    for index, part in enumerate(question.parts):
        if part.draw is None or part not in parts:
            continue
        for call in part.draw(np.random.default_rng([seed, index])):
            trial = Trial(part, call, run_quietly(question.reference, call))
            trials.append(trial)
            try:
                if gone >= 2:
                    raise Stopped("it was not run again after it was stopped twice")
                if question.value:
                    trial.got = _as_value(source.get(question.asks), trial.want)
                else:
                    trial.got, left = source.run(question.asks, call)
                    trial.touched = not left
            except Raised as error:
                trial.error, trial.kind = str(error), "raised"
                trial.fault = trial.error if isinstance(error, Stopped) else f"it stopped with {error}"
                gone += isinstance(error, Stopped)
            else:
                trial.kind, trial.fault = fault(trial.got, trial.want, question.tolerance, part.dtype)
                if trial.kind == "wrong_dtype" and _of_all_inputs(call, trial.want):
                    trial.fault += ", the dtype of its input"
    return trials


def _of_all_inputs(call, want):
    """Whether the result should have the one dtype that all arrays of the call have."""
    return {x.dtype for x in (*call.args, *call.kwargs.values()) if isinstance(x, np.ndarray)} == {
        getattr(want, "dtype", None)
    }


def run_quietly(function, call):
    """The result of a call on copies of its arguments, without warnings; an error is returned, not raised."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return copy.deepcopy(call).on(function)
        except Exception as error:
            return error


# ---------------------------------------------------------------------------------------------------------------- comparing
def _as_value(got, want):
    """A value as the learner may write it: numbers and nested lists become arrays where an array is wanted."""
    if isinstance(want, np.ndarray | np.generic | float | int) and isinstance(got, list | tuple | float | int):
        try:
            return np.array(got)
        except ValueError:
            return got
    return got


def fault(got, want, tolerance, dtype=False):
    """What is wrong with a result: (kind, sentence), both "" when nothing is."""
    if isinstance(want, tuple):
        if not isinstance(got, tuple) or len(got) != len(want):
            found = f"{len(got)} results" if isinstance(got, tuple) else f"one {_typename(got)}"
            return "wrong_type", f"it gives {found}, wanted a tuple of {len(want)}"
        for place, (one, other) in enumerate(zip(got, want, strict=True)):
            kind, sentence = fault(one, other, tolerance, dtype)
            if kind:
                return kind, f"result {place} of {len(want)}: {sentence}"
        return "", ""
    if not isinstance(want, np.ndarray | np.generic | float | int):
        same = type(got) is type(want) and got == want
        return ("", "") if same else ("different", f"it gives {str(got)[:60]!r}, wanted {want!r}")
    if got is None:
        return "returns_nothing", "it gives nothing back: is the return missing?"
    if not isinstance(got, np.ndarray | np.generic) and not (np.ndim(want) == 0 and isinstance(got, float | int)):
        return "wrong_type", f"it gives a {_typename(got)}, wanted a {'NumPy array' if np.ndim(want) else 'number'}"
    got, want = np.array(got, subok=False), np.asarray(want)
    if got.shape != want.shape:
        return "wrong_shape", f"it gives the shape {got.shape}, wanted {want.shape}"
    if got.dtype.kind not in "biuf" or (want.dtype == bool) != (got.dtype == bool):
        return "wrong_dtype", f"it gives {got.dtype}, wanted {want.dtype}"
    if dtype and got.dtype != want.dtype:
        return "wrong_dtype", f"it gives {got.dtype}, wanted {want.dtype}"
    if got.dtype.kind == "f" and got.dtype.itemsize <= 4:  # computed in float32, it has no more digits
        tolerance = max(tolerance, 1e-5)
    where = _different(got, want, tolerance)
    if not where.any():
        return "", ""
    place = tuple(int(i) for i in np.argwhere(where)[0])
    at = f" at {list(place)}" if place else ""
    return "different", f"the first difference is{at}: it gives {_number(got[place])}, wanted {_number(want[place])}"


def _different(got, want, tolerance):
    """Where two arrays of one shape differ; NaN equals NaN, and inf inf."""
    got, want = got.astype(float), want.astype(float)
    finite = np.isfinite(want)
    largest = np.abs(want[finite]).max(initial=1e-6)
    with np.errstate(invalid="ignore", over="ignore"):
        return ~(np.abs(got - want) <= tolerance * largest) & ~(got == want) & ~(np.isnan(got) & np.isnan(want))


def _typename(x):
    return type(x).__name__


def _number(x):
    return str(bool(x)) if x.dtype == bool else f"{float(x):.6g}"


def _same(got, other, tolerance):
    return not isinstance(other, Exception) and fault(got, other, tolerance)[0] == ""


# ----------------------------------------------------------------------------------------------------------------- explaining
def _explain(verdict, exercise, question, trials):
    """Fill in what happened: the one known mistake that explains all results, else the smallest input that shows a fault."""
    failing = [t for t in trials if t.fault]
    shown = [t for t in failing if not t.part.hidden]
    mistake = _mistake(exercise, question, trials)
    if mistake is None:  # a NaN or inf among the inputs may show other things that the answer does or does not do
        mistake = _mistake(exercise, question, [t for t in trials if _finite(t.call)])
    if mistake is not None:
        verdict.kind, verdict.sentence, verdict.section = mistake.name, mistake.diagnosis, mistake.section
    elif shown:
        verdict.kind, verdict.sentence = _general(shown, trials)
    elif failing:
        verdict.kind, verdict.sentence = (
            "hidden",
            "A part that is only graded does not hold; try other inputs of your own.",
        )
    else:
        verdict.kind = "input_modified"
        verdict.sentence = "The result is right, but your function changes the arrays it was given: work on copies."
        shown = [t for t in trials if t.touched and not t.part.hidden]
    if shown and not (question.value and verdict.section) and verdict.kind != "solution_imported":
        verdict.detail = _detail(shown[0], question)


def _mistake(exercise, question, trials):
    """The one known mistake that explains these trials, else None."""
    found = [m for m, function in question.wrong(exercise.slug) if _explains(function, question, trials)]
    return found[0] if len(found) == 1 else None


def _finite(call):
    arrays = [x for x in (*call.args, *call.kwargs.values()) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    return all(np.isfinite(x).all() for x in arrays) and (call.then is None or _finite(call.then))


def _explains(function, question, trials):
    """Whether a wrong function gives what the answer gave on every call that came back, a wrong value among them."""
    back = [t for t in trials if not t.error]
    if not any(t.fault and t.kind != "wrong_dtype" for t in back):
        return False
    return all(_same(t.got, run_quietly(function, t.call), question.tolerance) for t in back)


def _general(shown, trials):
    """The general fault and its sentence."""
    first = shown[0]
    if "does not offer" in first.error:
        return "solution_imported", f"Your answer stopped: {first.error}"
    firsts = [t.got[0] if isinstance(t.got, tuple) and t.got else t.got for t in trials]
    back = [x for x in firsts if isinstance(x, np.ndarray)]
    if len(back) > 2 and all(
        b.shape == back[0].shape and np.array_equal(b, back[0], equal_nan=b.dtype.kind == "f") for b in back
    ):
        return "hard_coded", "Your function gives the same result whatever it is given: compute it from the arguments."
    return first.kind, ""


def _detail(trial, question):
    """One sentence: the call in shapes, and the fault. A value question keeps its answer to itself."""
    if question.value:
        if trial.kind == "different":
            return _sentence(trial.fault.rpartition(", wanted")[0] + ", which is not right")
        return _sentence(trial.fault)
    fault = trial.fault or "its inputs are changed"
    return f"With {describe(question.reference, trial.call)}: {fault}."


def _sentence(text):
    """The text with a capital at its start; `capitalize` would make the rest small."""
    return text[:1].upper() + text[1:] + "."


def describe(function, call):
    """A call in words: the shape of each array, the value of the rest."""
    try:
        named = inspect.signature(function).bind(*call.args, **call.kwargs).arguments
    except (TypeError, ValueError):
        named = dict(enumerate(call.args)) | call.kwargs
    words = []
    for name, x in named.items():
        if isinstance(x, dict):
            words += [f"{k} {_brief(v)}" for k, v in x.items()]
        else:
            words.append(f"{name} {_brief(x)}")
    text = ", ".join(words)
    if call.then is not None:
        inner = [
            *(f"input {_brief(x)}" for x in call.then.args),
            *(f"{k} {_brief(v)}" for k, v in call.then.kwargs.items()),
        ]
        text += ", then called with " + ", ".join(inner)
    return text or "no arguments"


def _brief(x):
    if isinstance(x, np.ndarray) and x.size > 4:
        return f"of shape {x.shape}" + (f" and dtype {x.dtype}" if x.dtype != np.float64 else "")
    return np.array2string(x, precision=4, separator=", ").replace("\n", "") if isinstance(x, np.ndarray) else str(x)
