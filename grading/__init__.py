"""The class grader: notebooks in, for each learner a page of feedback, tables for the class out.

Answers run in a sandboxed process that knows no tests (`sandbox`, `worker`, `remote`); judging, scores and reports stay
here (`marking`, `run`, `report`, `tables`).
"""

from .limits import Limits
from .marking import grade, grade_cells
from .sandbox import SandboxError

__all__ = ["Limits", "SandboxError", "grade", "grade_cells"]
