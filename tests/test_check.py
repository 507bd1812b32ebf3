"""What a learner meets: the check's words, its links, the seed that repeats it, and that nothing an answer does breaks it."""

import warnings

import numpy as np
import pytest

from mha_lib.check import Check, require


def dot(query, key):
    return query @ key.swapaxes(-1, -2)


def turned(query, key):
    return key @ query.swapaxes(-1, -2)


@pytest.fixture
def names():
    return {}


@pytest.fixture
def check(names):
    return Check("04_scores", names)


def test_the_answers_are_those_of_the_caller():
    check = Check("04_scores")
    names = {"check": check, "raw_scores": dot}
    assert "q2: right" in repr(eval('check("q2")', names))


def test_a_mistake_is_named_and_linked(check, names):
    names["raw_scores"] = turned
    report = check("q2", seed=4)
    assert "queries and keys have changed places" in repr(report)
    assert 'check("q2", seed=4)' in repr(report) and "04_scores.ipynb#what-goes-wrong" in repr(report)
    assert '<a href="../../chapters/04_scores.ipynb#what-goes-wrong">04_scores</a>' in report._repr_html_()


def test_a_seed_draws_the_same_inputs(check, names):
    seen = []
    names["raw_scores"] = lambda query, key: seen.append(query.sum()) or dot(query, key)
    for seed in (1, 1, 2):
        check("q2", seed=seed)
    third = len(seen) // 3
    assert seen[:third] == seen[third : 2 * third] != seen[2 * third :]


def test_without_a_seed_the_inputs_differ(check, names):
    seen = []
    names["raw_scores"] = lambda query, key: seen.append(query.sum()) or dot(query, key)
    check("q2")
    check("q2")
    assert seen[: len(seen) // 2] != seen[len(seen) // 2 :]


def test_progress_and_summary(check, names, capsys):
    names |= {"raw_scores": dot, "mice_row": [2, 2, 3]}
    assert "□■□□□ 1 of 5" in repr(check("q2"))
    check.summary()
    printed = capsys.readouterr().out
    assert "q1: right, 1 of 1 points" in printed and "q5: not answered yet" in printed
    assert "■■□□□ 2 of 5 questions right, 5 of 16 points" in printed
    names["raw_scores"] = turned
    assert "■□□□□ 1 of 5" in repr(check("q2"))


def hidden_only(query, key):
    """Right but for the sizes of the hidden part."""
    return dot(query, key) + (query.shape == (2, 6, 7))


def test_a_hidden_part_is_not_run_by_the_check(check, names):
    names["raw_scores"] = hidden_only
    assert repr(check("q2")).startswith("q2: right, 4 of 4 points (1 more when graded)")


def test_require_is_the_test_of_one_part(names):
    names["raw_scores"] = hidden_only
    require("04_scores", "q2", "one head, any L, S and D", names)
    with pytest.raises(AssertionError, match="^sizes that are not announced$"):
        require("04_scores", "q2", "sizes that are not announced", names)
    names["raw_scores"] = turned
    with pytest.raises(AssertionError, match="changed places"):
        require("04_scores", "q2", "one head, any L, S and D", names)
    with pytest.raises(AssertionError, match="not answered yet"):
        require("04_scores", "q3", "float32 stays float32", names)


class EqualToAll(np.ndarray):
    __array_priority__ = 1e9

    def __eq__(self, other):
        return True

    def __abs__(self):
        return np.zeros(1)

    def __le__(self, other):
        return np.ones(self.shape, bool)


def raises(error):
    def answer(query, key):
        raise error

    return answer


def deletes(query, key):
    del globals()["no such name"]


HOSTILE = {
    "an array equal to all": lambda query, key: np.zeros((*query.shape[:-1], key.shape[-2])).view(EqualToAll),
    "an array of objects": lambda query, key: dot(query, key).astype(object),
    "an array of text": lambda query, key: dot(query, key).astype(str),
    "complex numbers": lambda query, key: dot(query, key).astype(complex),
    "a masked array": lambda query, key: np.ma.masked_all((*query.shape[:-1], key.shape[-2])),
    "NaN": lambda query, key: dot(query, key) * np.nan,
    "ragged": lambda query, key: [[1], [1, 2]],
    "a generator": lambda query, key: (x for x in query),
    "not a function": 3,
    "a type": int,
    "wrong arguments": lambda query: query,
    "exits": raises(SystemExit(0)),
    "html": raises(ValueError("<script>alert(1)</script>\n" * 3)),
    "an error whose text fails": raises(type("E", (Exception,), {"__str__": lambda self: 1 / 0})()),
    "recursion": lambda query, key: HOSTILE["recursion"](query, key),
    "warns": lambda query, key: warnings.warn("no", stacklevel=1),
    "key error": deletes,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_no_answer_breaks_the_check_or_passes_it(check, names, name):
    names["raw_scores"] = HOSTILE[name]
    report = check("q2")
    assert report.verdict.points == 0
    assert "Traceback" not in repr(report) and "<script>" not in report._repr_html_()


def test_an_error_is_one_line_with_its_line(check, names):
    source = "def raw_scores(query, key):\n    width = 3\n    return query @ missing\n"
    exec(compile(source, "<ipython-input-1>", "exec"), names)
    assert "NameError: name 'missing' is not defined (line 3 of your cell)" in repr(check("q2"))


def test_a_keyboard_interrupt_goes_through(check, names):
    names["raw_scores"] = raises(KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        check("q2")


def test_the_caller_sees_no_warning_and_no_changed_setting(check, names):
    before = np.geterr()
    names["raw_scores"] = lambda query, key: np.log(-np.abs(dot(query, key)))
    check("q2")
    assert np.geterr() == before


def test_a_value_question_keeps_its_answer(check, names):
    names["mice_row"] = [5, 5, 5]
    shown = repr(check("q1"))
    assert "at [0]" in shown and "wanted" not in shown


def test_what_is_not_answered_says_why(check, names):
    assert repr(check("q2")) == "q2: not answered yet, raw_scores has no value"
    names["raw_scores"] = lambda query, key: print(end="")
    assert repr(check("q2")) == "q2: not answered yet, raw_scores returns nothing"


def test_a_mistake_is_named_from_finite_inputs_where_nan_is_handled_in_another_way():
    """Values behind a mask are left out rightly, and the scale is forgotten."""

    def attention(query, key, value, mask=None, is_causal=False):
        L, S = query.shape[-2], key.shape[-2]
        allowed = np.tri(L, S, dtype=bool) if is_causal else np.ones((L, S), bool)
        allowed = allowed if mask is None else allowed & mask
        scores = np.where(allowed, query @ key.swapaxes(-1, -2), -np.inf)
        largest = scores.max(-1, keepdims=True)
        e = np.exp(scores - np.where(largest == -np.inf, 0, largest))
        total = e.sum(-1, keepdims=True)
        weights = (e / np.where(total == 0, 1, total))[..., None]
        return np.where(weights > 0, weights * value[..., None, :, :], 0).sum(-2)

    check = Check("07_attention", {"scaled_dot_product_attention": attention})
    assert check("q3", seed=1).verdict.kind == "no_scale"


def test_the_dtype_that_is_wanted_is_that_of_the_input_only_where_it_is():
    def double(q, k):
        return q.astype(float) @ k.astype(float).swapaxes(-1, -2) / q.shape[-1] ** 0.5

    report = repr(Check("19_gpu", {"scores_from_half": double})("q3", seed=1))
    assert "it gives float64, wanted float32." in report  # of float16

    report = repr(Check("19_gpu", {"to_bfloat16": lambda x: np.round(x.astype(float) * 0)})("q2", seed=1))
    assert "dtype of its input" not in report  # its values come first

    def rounded(x):
        bits = x.view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16 << 16).view(np.float32).astype(float)

    report = repr(Check("19_gpu", {"to_bfloat16": rounded})("q2", seed=1))
    assert "it gives float64, wanted float32, the dtype of its input." in report
