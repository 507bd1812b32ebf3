"""Line plots, by matplotlib (the extra `plots`)."""

import numpy as np

from .inputs import array

COLORS = ("#0072B2", "#B84A00", "#007A5A", "#A23B7B", "#7A5C00", "#3A3A3A")  # Okabe and Ito, dark enough for text
STYLES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)))
MARKERS = ("o", "s", "^", "D", "v", "X")


def curves(x, series, *, xlabel, ylabel, title=None, xlog=False, ylog=False, ax=None):
    """Plot lines over x that differ in colour, dash and marker and carry their names at their ends; return the Axes.

    x: (N,). series: {name: values (N,)}, at most six; NaN leaves a gap. xlog, ylog: logarithmic axes.
    ax: draw there; None makes a new figure, on white, so that it is legible in a dark theme too.
    End the cell with `plt.show()` or `_ = curves(...)`, and give it an alt text in its metadata.

    ValueError, TypeError: lengths that differ, no series, more than six, values <= 0 on a logarithmic axis.

    >>> axes = curves([1, 2, 4], {"standard": [1, 4, 16], "flash": [1, 2, 4]}, xlabel="length", ylabel="memory")
    >>> [line.get_label() for line in axes.lines]
    ['standard', 'flash']
    """
    import matplotlib.pyplot as plt

    x = array("x", x, "(N,)", 1)
    if not isinstance(series, dict) or not 1 <= len(series) <= len(COLORS):
        raise ValueError(
            f"series must be a dict of one to {len(COLORS)} lines, got {len(series)} ({type(series).__name__})"
        )
    lines = {str(name): array(f"series[{name!r}]", values, "(N,)", 1) for name, values in series.items()}
    for name, values in lines.items():
        if len(values) != len(x):
            raise ValueError(f"series[{name!r}] must have the length of x, {len(x)}, got {len(values)}")
        if ylog and (values <= 0).any():
            raise ValueError(f"series[{name!r}] must be positive on a logarithmic axis, got {values[values <= 0][0]:g}")
    if xlog and (x <= 0).any():
        raise ValueError(f"x must be positive on a logarithmic axis, got {x[x <= 0][0]:g}")

    if ax is None:
        _, ax = plt.subplots(figsize=(6.4, 3.8), dpi=160, layout="constrained", facecolor="white")
    ink = "#222832"
    ax.set_facecolor("white")
    every = max(1, len(x) // 12)
    for n, (name, values) in enumerate(lines.items()):
        ax.plot(
            x,
            values,
            color=COLORS[n],
            linestyle=STYLES[n],
            marker=MARKERS[n],
            markersize=5,
            markevery=every,
            label=name,
        )
    ax.set_xscale("log" if xlog else "linear")
    ax.set_yscale("log" if ylog else "linear")
    if xlog and len(x) <= 10:  # the few real values say more than powers of ten
        ax.set_xticks(x, [f"{v:g}" for v in x])
        ax.xaxis.minorticks_off()
    ax.set_xlabel(xlabel, color=ink)
    ax.set_ylabel(ylabel, color=ink)
    if title:
        ax.set_title(title, color=ink, loc="left", fontsize="medium", fontweight="bold")
    ax.tick_params(colors=ink, which="both")
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(ink)
    ax.grid(alpha=0.25, linewidth=0.6)
    names_at_ends(ax, x, lines)
    return ax


def names_at_ends(ax, x, lines):
    """Write each name right of the last point of its line, moved apart where they would overlap."""
    ends = []
    for n, (name, values) in enumerate(lines.items()):
        finite = np.flatnonzero(np.isfinite(values))
        if finite.size:
            point = (x[finite[-1]], values[finite[-1]])
            ends.append((ax.transData.transform(point)[1], n, name, point))
    gap = 12 * ax.figure.dpi / 72  # a line of text, in pixels
    last = -np.inf
    for height, n, name, point in sorted(ends):
        moved = max(height, last + gap)
        last = moved
        shift = (moved - height) * 72 / ax.figure.dpi
        ax.annotate(name, point, (8, shift), textcoords="offset points", va="center", color=COLORS[n], fontsize="small")
