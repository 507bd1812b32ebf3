"""Pictures of attention, made from the real numbers.

Every picture but `curves` is plain HTML or SVG: it needs no JavaScript, follows light and dark themes, fits a phone, and
is the same byte for byte on every run, because all numbers are rounded and nothing in it is drawn by chance. Compute in
float64 what you want to show: then no platform rounds a digit the other way.
"""

from .bars import bars
from .curves import curves
from .figure import Figure
from .flow import flow
from .heads import head_maps
from .maps import attention_map
from .tables import matrix, product

__all__ = ["Figure", "attention_map", "bars", "curves", "flow", "head_maps", "matrix", "product"]
