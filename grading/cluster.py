"""The same tasks on many processes or machines: dask.distributed, a local cluster unless a scheduler is named.

A task goes out again when the process that had it dies. Results are plain JSON.
"""

import itertools
import logging
import tempfile
from contextlib import ExitStack

AHEAD = 256  # tasks that are out at one time: enough for any cluster, little in memory
TRIES = 3  # rounds; in each, dask itself tries again three times


def run(tasks, workers, scheduler=""):
    """Do `Task`s; gives (name, record) as they come back.

    workers: processes of the local cluster. scheduler: the address of a running one ("tcp://..."), whose workers need
    this package, and bubblewrap.
    """
    from distributed import Client, as_completed

    with ExitStack() as stack:
        client = stack.enter_context(Client(scheduler or _local(stack, workers)))
        waiting, out = iter(tasks), {}
        todo = as_completed()

        def send(task, tries=1):
            future = client.submit(_do, task, pure=False)
            out[future.key] = (task, tries)
            todo.add(future)

        for task in itertools.islice(waiting, AHEAD):
            send(task)
        for future in todo:
            task, tries = out.pop(future.key)
            error = future.exception()
            if error is None:
                yield task.name, future.result()
            elif tries < TRIES:
                send(task, tries + 1)
                continue
            else:
                yield task.name, _failed(task, error)
            task = next(waiting, None)
            if task is not None:
                send(task)


def _do(task):
    return task.run()


def _failed(task, error):
    from mha_lib.questions import load

    exercise = load(task.exercise) if isinstance(task.exercise, str) else task.exercise
    note = f"the grader failed, not the notebook: {type(error).__name__}: {error}"
    return {
        "exercise": exercise.slug, "title": exercise.title, "status": "not graded", "points": None, "max": exercise.points,
        "questions": [], "notes": [note[:500]], "troubles": [],
    }  # fmt: skip


def _local(stack, workers):
    """A cluster on this machine, whose files go with it."""
    from distributed import LocalCluster

    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mha-grading-", ignore_cleanup_errors=True))
    return stack.enter_context(
        LocalCluster(
            n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=None, local_directory=folder,
            env={"TMPDIR": folder, "OPENBLAS_NUM_THREADS": "1"}, silence_logs=logging.CRITICAL,
        )
    )  # fmt: skip
