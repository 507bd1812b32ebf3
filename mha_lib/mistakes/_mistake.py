"""What a mistake is, and the list of all of them."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mistake:
    """A wrong function; calling it computes the wrong result."""

    name: str
    of: str
    diagnosis: str
    section: str
    function: Any

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


MISTAKES = {}


def of_chapter(slug):
    """The decorator for the mistakes of a chapter: @mistake(the right function, a sentence of diagnosis)."""

    def mistake(of, diagnosis):
        def register(function):
            found = Mistake(function.__name__, of.__name__, diagnosis, f"{slug}#what-goes-wrong", function)
            MISTAKES[found.name] = found
            return found

        return register

    return mistake
