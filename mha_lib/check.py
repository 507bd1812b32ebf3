"""The learner's check: `check = Check("04_scores")`, then `check("q1")` in the cell of the answer.

It compares what an answer does on fresh inputs with the library, and names the mistake where one explains the difference. It
never asks how the answer is written. Only NumPy is needed. It runs beside the answer, in one process, so it helps and
proves nothing: what counts in a class is graded elsewhere.

>>> check = Check("04_scores")
>>> check("q1")
q1: not answered yet, mice_row has no value
"""

import copy
import html
import inspect
import secrets
import traceback
import warnings

import numpy as np

from .questions import Raised, judge, load


class Local:
    """The answers of this process: a dict of names, as `globals()` gives."""

    def __init__(self, names):
        self.names = names

    def state(self, name):
        """ "missing", "callable" or "value"."""
        if self.names.get(name, ...) is ...:
            return "missing"
        return "callable" if callable(self.names[name]) else "value"

    def get(self, name):
        """The value."""
        return self.names[name]

    def run(self, name, call):
        """The result of the call on copies of its arguments, and whether it left them as they were."""
        if self.state(name) != "callable":
            raise Raised(f"TypeError: {name} is a {type(self.names[name]).__name__}, not a function")
        given = copy.deepcopy(call)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = snapshot(given.on(self.names[name]))
            except (Exception, SystemExit) as error:
                raise Raised(one_line(error)) from None
        return result, unchanged(given, call)


def snapshot(result):
    """The result as it is now: what the answer does to its arrays later does not change it."""
    if type(result) in (list, tuple):
        return type(result)(map(snapshot, result))
    return result.copy() if isinstance(result, np.ndarray) else result


def unchanged(call, before):
    """Whether the arrays of a call are what they were."""
    pairs = [*zip(call.args, before.args, strict=True), *((call.kwargs[k], before.kwargs[k]) for k in before.kwargs)]
    same = all(np.array_equal(a, b, equal_nan=b.dtype.kind == "f") for a, b in pairs if isinstance(b, np.ndarray))
    return same and (before.then is None or unchanged(call.then, before.then))


def one_line(error):
    """An error in one line, with the learner's line where it is known."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [
        f.lineno for f in frames if "ipykernel" in f.filename or f.filename.startswith(("<ipython", "<cell", "cell "))
    ]
    where = f" (line {lines[-1]} of your cell)" if lines else ""
    try:
        text = " ".join(str(error).split())[:300]
    except Exception:  # the answer's own error class
        text = ""
    return f"{type(error).__name__}{': ' + text if text else ''}{where}"


class Report:
    """What a check shows: as text in a terminal, with a link in a notebook."""

    def __init__(self, verdict, question, progress, book):
        self.verdict, self.points, self.value = verdict, question.points, question.value
        self.progress, self.book = progress, book

    def __repr__(self):
        v = self.verdict
        if v.status == "not answered":
            return f"{v.question}: not answered yet, {v.sentence}"
        later = f" ({self.points - v.max} more when graded)" if self.points > v.max else ""
        lines = [f"{v.question}: {v.status}, {v.points} of {v.max} points{later}"]
        if v.status == "wrong":
            lines += [f"  {'✓' if p.points == p.max else '✗'} {p.title}" for p in v.parts if v.points]
            lines += [text for text in (v.sentence, v.detail) if text]
            if v.section:
                lines.append(f"See {self.address()}")
            if not self.value:
                lines.append(f'The same inputs again: check("{v.question}", seed={v.seed})')
        return "\n".join([*lines, self.progress])

    def address(self):
        """Where the mistake is explained."""
        slug, _, anchor = self.verdict.section.partition("#")
        return f"{self.book}{slug}.ipynb{'#' * bool(anchor)}{anchor}"

    def _repr_html_(self):
        text = html.escape(repr(self), quote=False)
        if self.verdict.section:
            address = html.escape(self.address(), quote=False)
            chapter, _, anchor = self.verdict.section.partition("#")
            link = f'<a href="{html.escape(self.address())}">{html.escape(chapter)}</a>'
            text = text.replace(f"See {address}", f"See {link}, “What goes wrong”." if anchor else f"See {link}.")
        return f'<pre class="mha-check" style="white-space: pre-wrap">{text}</pre>'


def require(slug, question, part, names):
    """Raise AssertionError with the verdict's sentence unless the answers in `names` earn this part: the test of an autograder."""
    exercise = load(slug)
    verdict = judge(exercise, exercise[question], Local(names), secrets.randbelow(10**6))
    if verdict.status == "not answered":
        raise AssertionError("not answered yet")
    for scored in verdict.parts:
        if scored.title == part and scored.points < scored.max:
            raise AssertionError(part if scored.hidden else " ".join(filter(None, (verdict.sentence, verdict.detail))))


class Check:
    """The check of one exercise.

    slug: of the chapter, "04_scores". names: where the answers are looked up; by default the globals of the caller.
    book: the address of the chapters, for links.
    Calling it with a question's name gives a report; `seed` repeats the inputs of an earlier one. `summary()` goes through
    all questions. ValueError for a name that the exercise does not have.

    >>> mice_row = [0, 7, 3]
    >>> check = Check("04_scores", {"mice_row": mice_row})
    >>> print(repr(check("q1", seed=1)).splitlines()[1])
    The scores are K Q^T: queries and keys have changed places.
    """

    def __init__(self, slug, names=None, book="../../chapters/"):
        self.exercise, self.names, self.book = load(slug), names, book
        self.right = set()

    def __call__(self, question, seed=None):
        names = inspect.currentframe().f_back.f_globals if self.names is None else self.names
        return self._judge(self.exercise[question], names, seed)

    def _judge(self, question, names, seed=None):
        seed = secrets.randbelow(10**6) if seed is None else seed
        verdict = judge(self.exercise, question, Local(names), seed, hidden=False)
        (self.right.add if verdict.status == "right" else self.right.discard)(question.name)
        return Report(verdict, question, self._progress(), self.book)

    def _progress(self):
        questions = self.exercise.questions
        bar = "".join("■" if q.name in self.right else "□" for q in questions)
        return f"{bar} {len(self.right)} of {len(questions)} questions right"

    def summary(self):
        """Check every question; prints one line for each, and the points."""
        names = inspect.currentframe().f_back.f_globals if self.names is None else self.names
        verdicts = [self._judge(q, names).verdict for q in self.exercise.questions]
        for v in verdicts:
            print(
                f"{v.question}: {'not answered yet' if v.status == 'not answered' else f'{v.status}, {v.points} of {v.max} points'}"
            )
        print(f"{self._progress()}, {sum(v.points for v in verdicts)} of {sum(v.max for v in verdicts)} points")


__all__ = ["Check", "Local", "Report", "one_line", "require"]
