"""What a submission may use."""

import json
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """seconds: for one cell or one call. total: seconds for one submission. memory: in MiB. processes: with threads."""

    seconds: float = 10
    total: float = 60
    memory: int = 1024
    processes: int = 16


def settings(limits, path, user=0, strict=True):
    """What a worker is told at its start, as JSON: its limits, where its modules are, and the user it is to become."""
    bounds = {
        "RLIMIT_AS": limits.memory * MIB,
        "RLIMIT_CPU": int(limits.total) + 5,
        "RLIMIT_FSIZE": 16 * MIB,
        "RLIMIT_NOFILE": 64,
        "RLIMIT_CORE": 0,
    }
    if strict:  # counts the processes of a user or of its namespace, so it means something in the sandbox only
        bounds["RLIMIT_NPROC"] = limits.processes
    return json.dumps({"user": user, "limits": bounds, "strict": strict, "path": path})
