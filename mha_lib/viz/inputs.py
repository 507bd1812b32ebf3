"""What the pictures accept, and one clear sentence for what they do not."""

from collections import Counter
from numbers import Integral

import numpy as np


def array(name, value, axes, ndim, empty=False):
    """Return `value` as a float64 array with `ndim` axes; NumPy arrays, lists and torch tensors on the CPU are fine."""
    if getattr(value, "requires_grad", False):
        raise TypeError(f"{name} must hold plain numbers, got a tensor that needs a gradient; pass {name}.detach()")
    device = getattr(value, "device", None)
    if getattr(device, "type", "cpu") != "cpu":
        raise TypeError(f"{name} must be in main memory, got a tensor on {device}; pass {name}.cpu()")
    try:
        if "bfloat16" in str(getattr(value, "dtype", "")):
            value = value.float()
        result = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name} must be an array {axes}, got rows of different lengths") from None
    if result.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold real numbers, got {result.dtype if value is not None else None}")
    if result.ndim != ndim:
        raise ValueError(f"{name} must have the axes {axes}, got shape {result.shape}")
    if not result.size and not empty:
        raise ValueError(f"{name} must not be empty, got shape {result.shape}")
    return result.astype(np.float64)


def is_whole(value):
    """Whether the numbers are best printed without decimals: integers, or floats that are whole."""
    value = np.asarray(value, dtype=np.float64)
    finite = value[np.isfinite(value)]
    return bool((finite == np.round(finite)).all())


def labels(name, value, size, what):
    """Return one text per row or column."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"{name} must be a list of texts, got {value!r}")
    value = [str(v) for v in value]
    if len(value) != size:
        raise ValueError(f"{name} must hold one text for each {what}, so {size}, got {len(value)}")
    return value


def both_labels(queries, keys, L, S, first="queries"):
    """The tokens of the rows and of the columns; keys None are the queries again."""
    queries = labels(first, queries, L, "row of weights (L)")
    if keys is None and L != S:
        raise ValueError(f"keys must be given when weights (L, S) = ({L}, {S}) is not square, got None")
    return queries, list(queries) if keys is None else labels("keys", keys, S, "column of weights (S)")


def allowed(mask, shape):
    """Return the mask, True = may attend, broadcast to the weights; None allows everything."""
    if mask is None:
        return np.ones(shape, dtype=bool)
    array("mask", mask, "(L, S)", np.ndim(mask))
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(f"mask must be boolean (True = may attend), got {mask.dtype}")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        raise ValueError(f"mask must broadcast to the weights {shape}, got shape {mask.shape}") from None


def position(name, value, texts):
    """Return where `value`, a token or an index, stands in `texts`."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        if not -len(texts) <= value < len(texts):
            raise ValueError(f"{name} must be an index below {len(texts)}, got {value}")
        return int(value) % len(texts)
    places = [i for i, text in enumerate(texts) if text == value]
    if len(places) > 1:
        raise ValueError(f"{name} must be unique, got {value!r}, which stands at {places}; give the index")
    if not places:
        raise ValueError(f"{name} must be a token of this axis or an index, got {value!r}")
    return places[0]


def cell(highlight, rows, columns):
    """Return `highlight` as (row, column), or None."""
    if highlight is None:
        return None
    if isinstance(highlight, str) or np.shape(highlight) != (2,):
        raise ValueError(f"highlight must be a pair (query, key), got {highlight!r}")
    return position("highlight[0]", highlight[0], rows), position("highlight[1]", highlight[1], columns)


def unique(texts):
    """The same texts, with their position where one is repeated: the (1), the (8)."""
    count = Counter(texts)
    return [f"{text} ({i})" if count[text] > 1 else text for i, text in enumerate(texts)]


def decimal_places(value, default):
    """Return how many decimals to print."""
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= value <= 9:
        raise ValueError(f"decimals must be an integer from 0 to 9, got {value!r}")
    return int(value)
