"""Removing what a grader left behind that was killed itself: a sandbox dies with its grader, with one gap.

bwrap makes its first process wait for a word from its parent before that process knows to die with it. A grader that is
killed in that moment leaves the process waiting for ever. It holds nothing and runs nobody's code, but it is there.
"""

import contextlib
import os
import signal
from pathlib import Path

from . import cgroup


def sweep(mark):
    """Kill sandboxes whose grader is gone, and remove their control groups. mark: bytes in the command line of a sandbox."""
    lines = {int(folder.name): _read(folder / "cmdline") for folder in Path("/proc").glob("[0-9]*")}
    for number, line in lines.items():
        if mark in line and _is_first(number) and mark not in lines.get(_parent(number), mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
    cgroup.sweep()


def _is_first(number):
    """Whether a process is the first of a namespace of processes other than ours: it has two numbers, and 1 there."""
    numbers = _field(number, b"NSpid:")
    return len(numbers) > 1 and numbers[-1] == 1


def _parent(number):
    return next(iter(_field(number, b"PPid:")), 0)


def _field(number, name):
    lines = _read(Path(f"/proc/{number}/status")).splitlines()
    return [int(word) for line in lines if line.startswith(name) for word in line.split()[1:]]


def _read(path):
    try:
        return path.read_bytes()
    except OSError:
        return b""
