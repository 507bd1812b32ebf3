"""A few threads for as long as one call: NumPy releases the lock in its products, so heads can be computed side by side."""

import contextlib
import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache


@cache
def _blas():
    """threadpoolctl's handle on the BLAS library, or None where it is not installed."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController().select(user_api="blas")


def available_cores():
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(work, count, parallel=True):
    """Call work(share, shares) once per worker; each takes the items share, share + shares, ... of `count`.

    There are never more workers than cores, and each has one BLAS thread. Where BLAS cannot be held to one thread
    (threadpoolctl is missing) or `parallel` is false there is one worker, and BLAS does as it likes.
    """
    workers = min(available_cores(), count) if parallel and _blas() else 1
    if workers <= 1:
        work(0, 1)
        return
    with _blas().limit(limits=1), ThreadPoolExecutor(workers - 1) as pool, contextlib.ExitStack() as stack:
        for share in range(1, workers):
            stack.callback(pool.submit(work, share, workers).result)  # raises here what was raised there
        work(0, workers)
