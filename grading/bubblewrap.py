"""The command line of the sandbox.

In it there is no network, no /proc, no file but Python's own library, NumPy, the reduced mha_lib and the worker, all
read-only, and a small /tmp that goes with the process. Started by root the worker becomes a user that nobody else is;
started by anyone else it stays that user, in a namespace of its own.
"""

import os
import secrets
import sys
from functools import cache
from pathlib import Path

import numpy as np

from .limits import MIB, settings

INSIDE = "/course"
MARK = f"{INSIDE}/worker.py".encode()  # in the command line of every sandbox
USERS = range(61184, 65520)  # what Linux keeps for users that come and go


def command(folder, limits, filter_fd, info_fd):
    """The command line that runs the worker of a folder in the sandbox."""
    spaces, user = _isolation()
    program, python = _python()
    path = [INSIDE, str(Path(np.__file__).parents[1])]
    return [
        "bwrap", *spaces, "--die-with-parent", "--new-session", "--hostname", "grader", "--info-fd", str(info_fd),
        *(["--seccomp", str(filter_fd)] if filter_fd is not None else []),
        "--perms", "1777", "--size", str(16 * MIB), "--tmpfs", "/tmp",
        *_libraries(), *python, "--ro-bind", str(folder), INSIDE,
        "--perms", "0755", "--dir", "/dev", "--dev-bind", "/dev/null", "/dev/null", "--dev-bind", "/dev/urandom", "/dev/urandom",
        "--remount-ro", "/", "--chdir", "/tmp",
        "--clearenv", "--setenv", "HOME", "/tmp", "--setenv", "OPENBLAS_NUM_THREADS", "1", "--setenv", "OMP_NUM_THREADS", "1",
        program, "-I", "-S", "-B", MARK.decode(), settings(limits, path, user),
    ]  # fmt: skip


def _isolation():
    """bwrap options for the namespaces, and the user that the worker is to become (0: it is already what it should be)."""
    if os.geteuid() == 0:
        spaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        rights = ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
        return [*spaces, *rights], USERS[secrets.randbelow(len(USERS))]
    return ["--unshare-all", "--unshare-user", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"], 0


def _libraries():
    """Where the system keeps shared libraries, as bwrap options."""
    options = ["--perms", "0755", "--dir", "/usr", "--perms", "0755", "--dir", "/etc"]
    for path in ("/usr/lib", "/usr/lib64", "/lib", "/lib64"):
        if os.path.islink(path):
            options += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            options += ["--ro-bind", path, path]
    for path in ("/etc/ld.so.cache", "/etc/alternatives"):
        options += ["--ro-bind-try", path, path]
    return options


@cache
def _python():
    """(the interpreter, bwrap options that show its library without anything installed into it, and NumPy)."""
    prefix, program = Path(sys.base_prefix), os.path.realpath(getattr(sys, "_base_executable", sys.executable))
    shown = [Path(program), *(prefix / name for name in ("lib", "lib64") if prefix != Path("/usr"))]
    numpy = Path(np.__file__).parent
    libraries = numpy.with_name("numpy.libs")
    installed = [
        packages
        for base in dict.fromkeys((prefix, Path("/usr")))
        for packages in sorted(base.glob("lib*/python3*/*-packages"))
        if not packages.parent.parent.is_symlink()
    ]
    options = []
    for path in (*shown, numpy):  # bwrap would make the folders above for root alone
        for folder in reversed(path.parents[:-1]):
            if not folder.is_relative_to("/usr/lib"):
                options += ["--perms", "0755", "--dir", str(folder)]
    for path in shown:
        options += ["--ro-bind-try", str(path), str(path)]
    for path in installed:
        options += ["--perms", "0755", "--size", "65536", "--tmpfs", str(path)]
    for path in (numpy, libraries):
        options += ["--ro-bind-try", str(path), str(path)]
    return program, options
