"""The questions of the exercises: one module per exercise, with what is asked, the right answer and the known wrong ones.

>>> load("04_scores")["q2"].asks
'raw_scores'
"""

from importlib import import_module

from ._judge import Raised, Stopped, judge
from ._question import Call, Exercise, Part, Question, call, untouched, value

SLUGS = (
    "01_why",
    "02_embedding",
    "03_projection",
    "04_scores",
    "05_softmax",
    "06_masks",
    "07_attention",
    "08_heads",
    "09_output",
    "10_multihead",
    "11_gradients",
    "12_positions",
    "13_training",
    "14_more_heads",
    "15_real_model",
    "16_cost",
    "17_flash",
    "18_cache",
    "19_gpu",
    "20_parallel",
)

__all__ = [
    "SLUGS", "Call", "Exercise", "Part", "Question", "Raised", "Stopped", "call", "judge", "load", "untouched", "value",
]  # fmt: skip


def load(slug):
    """The exercise with this slug, an `Exercise`; ValueError where there is none."""
    if slug not in SLUGS:
        raise ValueError(f"slug must be one of {', '.join(SLUGS)}, got {slug!r}")
    return import_module(f".{slug.partition('_')[2]}", __name__).EXERCISE
