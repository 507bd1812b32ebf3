"""Starting the process of an answer, and ending it: alone in a sandbox or, for files that one trusts, without one."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np

from . import seccomp
from .bubblewrap import command
from .cgroup import Group
from .limits import MIB, settings


class SandboxError(Exception):
    """There is no sandbox to be had here; the text says why and what to do."""


def available():
    """Nothing, where a sandbox can be expected; SandboxError, with what to do, where not."""
    without = "--unsafe runs files that you trust without a sandbox"
    if sys.platform != "linux":
        raise SandboxError(
            "answers run in a bubblewrap sandbox, which only Linux has: grade on Linux, in WSL 2 or in a virtual machine; "
            + without
        )
    if not shutil.which("bwrap"):
        raise SandboxError(
            "bubblewrap is not installed: `apt install bubblewrap` (Debian, Ubuntu) or `dnf install bubblewrap` (Fedora); "
            + without
        )


class Sandboxed:
    """A worker in its sandbox. stdin: requests. stdout: replies. `end()` leaves no process behind."""

    def __init__(self, folder, limits, errors=subprocess.DEVNULL):
        available()
        self.lock, self.first = threading.Lock(), None
        self.group = Group(limits.memory * MIB + 128 * MIB, limits.processes + 4)
        self.info, info_fd = os.pipe()
        filter_fd = _filled_pipe(seccomp.program())
        given = [fd for fd in (info_fd, filter_fd) if fd is not None]
        try:
            self.process = subprocess.Popen(
                [*self.group.command(), *command(folder, limits, filter_fd, info_fd)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, pass_fds=given, start_new_session=True,
                cwd="/", env={"PATH": os.environ.get("PATH", os.defpath)},
            )  # fmt: skip
        except BaseException:
            os.close(self.info)
            self.group.close()
            raise
        finally:
            for fd in given:
                os.close(fd)
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def stop(self):
        """Kill everything in the sandbox, without waiting: its first process takes all others along."""
        with self.lock:  # a timer may come here while the other thread is at its end
            if self.process.poll() is None:
                first = self._first_process()
                with contextlib.suppress(ProcessLookupError):
                    os.kill(first, signal.SIGKILL) if first else self.process.kill()

    def _first_process(self):
        """The number of the sandbox's first process, which bwrap tells once it is there; 0 where it never comes to be.

        bwrap itself is not to be killed: its first process would be left without anybody to wait for it.
        """
        if self.first is None:
            told, _, _ = select.select([self.info], [], [], 5)
            try:
                self.first = json.loads(os.read(self.info, 4096))["child-pid"] if told else 0
            except (OSError, ValueError, LookupError):  # it ended before that
                self.first = 0
        return self.first

    def end(self):
        """Kill, wait, and remove what the sandbox was made of."""
        self.stop()
        _finish(self.process)
        os.close(self.info)
        self.group.close()


class Unprotected:
    """A worker as an ordinary process of this user, for files that one trusts."""

    def __init__(self, folder, limits, errors=subprocess.DEVNULL):
        self.home = tempfile.TemporaryDirectory(prefix="mha-grading-", ignore_cleanup_errors=True)
        path = [str(folder), str(Path(np.__file__).parents[1])]
        keep = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-B", str(folder / "worker.py"), settings(limits, path, strict=False)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True, cwd=self.home.name,
            env=keep | {"HOME": self.home.name, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def stop(self):
        """Kill the process and its group."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL) if hasattr(os, "killpg") else self.process.kill()

    def end(self):
        """Kill, wait, and remove the folder it worked in."""
        self.stop()
        _finish(self.process)
        self.home.cleanup()


def _filled_pipe(content):
    """The end of a pipe from which these few bytes can be read; None for None."""
    if content is None:
        return None
    reading, writing = os.pipe()
    os.write(writing, content)
    os.close(writing)
    return reading


def _finish(process):
    for stream in (process.stdin, process.stdout):
        with contextlib.suppress(OSError):
            stream.close()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def probe(folder, limits, launch=Sandboxed):
    """Start a worker once and see that it answers; SandboxError with what it said if it does not."""
    with tempfile.TemporaryFile() as errors:
        worker = launch(folder, limits, errors)
        timer = threading.Timer(60, worker.stop)
        timer.start()
        answered = worker.stdout.read(8)
        timer.cancel()
        worker.end()
        if len(answered) == 8:
            return
        errors.seek(0)
        said = " ".join(errors.read(2000).decode(errors="replace").split())[-300:] or "it ended without a word"
    raise SandboxError(
        f"the sandbox does not start here: {said}. It needs bubblewrap 0.7 or newer, user namespaces (in a container: the right "
        "to make them) and a Python that every user may read; --unsafe runs files that you trust without a sandbox"
    )
