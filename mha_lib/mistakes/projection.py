"""What goes wrong with the projection (chapter 3)."""

import numpy as np

from .. import numpy as right
from ._mistake import of_chapter

mistake = of_chapter("03_projection")


@mistake(
    right.project,
    "The weight is transposed: nn.Linear stores (out, in), this book multiplies from the right by (in, out).",
)
def weight_transposed(x, weight, bias=None):
    return right.project(x, np.swapaxes(weight, -1, -2), bias)


@mistake(right.project, "The bias of the projection is forgotten.")
def bias_forgotten(x, weight, bias=None):
    return right.project(x, weight)
