"""What an exercise asks: its questions, the parts that earn points, and the known wrong answers."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..mistakes import MISTAKES


@dataclass(frozen=True)
class Call:
    """One call of the learner's function; `then` are the arguments for calling what it returns (a layer that was made)."""

    args: tuple = ()
    kwargs: dict = field(default_factory=dict)
    then: "Call | None" = None

    def on(self, function):
        """The result of the call."""
        result = function(*self.args, **self.kwargs)
        return result if self.then is None or result is None else self.then.on(result)


def call(*args, then=None, **kwargs):
    """A `Call` written as one."""
    return Call(args, kwargs, then)


def some_mask(rng, *shape):
    """A mask in which every query has at least one key, and at least one query misses one."""
    mask = rng.random(shape) > 0.4
    mask[..., 0, -1] = False
    mask[..., 0] |= ~mask.any(-1)
    return mask


@dataclass(frozen=True)
class Part:
    """What earns points together.

    draw: takes a NumPy generator, gives the calls, the smallest first. None: the part is that no call changes its inputs.
    hidden: only graded; its message never reaches a learner.
    dtype: whether the result must have the reference's dtype (else any float counts as float).
    """

    title: str
    points: int
    draw: Callable | None = None
    hidden: bool = False
    dtype: bool = False


def untouched(points=1):
    """The part that every function question has: its inputs are as they were."""
    return Part("leaves its inputs as they were", points)


@dataclass(frozen=True)
class Slip:
    """A wrong answer of one question only, which no function of the library stands for."""

    name: str
    diagnosis: str
    section: str
    function: Any


@dataclass(frozen=True)
class Question:
    """One question.

    name: "q1". asks: the name that the learner defines. reference: the right function or, where `value` is True, a
    function without arguments that gives the right value. mistakes: name in mha_lib.mistakes -> a function with the
    reference's arguments that makes this mistake. slips: name -> (diagnosis, function).
    tolerance: relative to the largest magnitude of the result.
    """

    name: str
    asks: str
    reference: Callable
    parts: tuple
    mistakes: dict = field(default_factory=dict)
    slips: dict = field(default_factory=dict)
    value: bool = False
    tolerance: float = 1e-6

    @property
    def points(self):
        return sum(part.points for part in self.parts)

    def wrong(self, slug):
        """Every known wrong answer, as a `Mistake` or `Slip` with the function that makes it here."""
        known = [(MISTAKES[name], function) for name, function in self.mistakes.items()]
        own = [(Slip(name, text, slug, f), f) for name, (text, f) in self.slips.items()]
        return known + own


def value(name, asks, reference, points, *, tolerance=0.005, **known):
    """A question that asks for a value, worked out by hand or by a cell; `tolerance` forgives two rounded decimals."""
    part = Part("the value", points, lambda rng: [Call()])
    return Question(name, asks, reference, (part,), value=True, tolerance=tolerance, **known)


@dataclass(frozen=True)
class Exercise:
    """One exercise. offers: the names of mha_lib.numpy that answers may use; the others are what it asks for, or beyond it."""

    slug: str
    title: str
    offers: tuple
    questions: tuple

    @property
    def points(self):
        return sum(question.points for question in self.questions)

    def __getitem__(self, name):
        for question in self.questions:
            if question.name == name:
                return question
        raise ValueError(f"{self.slug} has no question {name!r}; it has {', '.join(q.name for q in self.questions)}")
