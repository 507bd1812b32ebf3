"""A control group for one submission: all its processes together get so much memory and so many processes.

Both versions of Linux control groups are known. Where this process may not make a group there is none, and the limits
of each process (`worker.confine`) stand alone.
"""

import contextlib
import os
import signal
import time
import uuid
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NAME = "mha-grading-"


class Group:
    """folders: where it exists; empty where it may not."""

    def __init__(self, memory, processes, root=ROOT):
        """memory: in bytes."""
        name = f"{NAME}{os.getpid()}-{uuid.uuid4().hex[:12]}"
        self.folders = []
        if (root / "cgroup.controllers").exists():
            places = [(_parent(root) / name, {"memory.max": memory, "memory.swap.max": 0, "pids.max": processes})]
        else:
            places = [
                (root / "memory" / name, {"memory.limit_in_bytes": memory}),
                (root / "pids" / name, {"pids.max": processes}),
            ]
        for folder, limits in places:
            self._make(folder, limits)

    def _make(self, folder, limits):
        try:
            folder.mkdir()
        except OSError:
            return
        self.folders.append(folder)
        for name, limit in limits.items():
            with contextlib.suppress(OSError):  # a controller that is not switched on here
                (folder / name).write_text(str(limit))

    def command(self):
        """The start of a command line that enters the group and then becomes what follows it."""
        if not self.folders:
            return []
        enter = 'for f in $1; do echo $$ > $f/cgroup.procs; done 2>/dev/null; shift; exec "$@"'
        return ["/bin/sh", "-c", enter, "sh", " ".join(map(str, self.folders))]

    def close(self):
        """Kill what is left in the group and remove it."""
        for folder in self.folders:
            _remove(folder, kill=True)
        self.folders = []


def sweep(root=ROOT):
    """Remove the empty groups of graders that are no longer there."""
    for folder in [*root.glob(f"*/{NAME}*"), *_parent(root).glob(f"{NAME}*")]:
        if not Path("/proc", folder.name.removeprefix(NAME).partition("-")[0]).exists():
            _remove(folder, kill=False)


def _remove(folder, *, kill):
    """Remove a group; for two seconds again, since a process that is killed stays a member until it is gone altogether."""
    for _ in range(200):
        for number in _members(folder) if kill else ():
            with contextlib.suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        try:
            folder.rmdir()
            return
        except (FileNotFoundError, PermissionError):
            return
        except OSError:
            time.sleep(0.01)


def _members(folder):
    try:
        return [int(number) for number in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _parent(root):
    """Where this process may hope to make a group: beside its own; in the root where its own is the root."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            if line.startswith("0::/"):
                own = root / line[4:]
                return own if own == root else own.parent
    return root
