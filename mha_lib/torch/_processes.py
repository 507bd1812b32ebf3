"""Processes on this machine that compute together: started, watched, and none left behind."""

import multiprocessing
import os
import pickle
import signal
import socket
import struct
import tempfile
import threading
import time
from datetime import timedelta
from multiprocessing.connection import wait

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from .. import _checks

METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"


def run(work, size, *arguments, timeout=120.0):
    """Call work(mesh, *arguments) in `size` processes at once; return their results, in the order of their ranks.

    work: a function that the other processes can import; its result must be such that it can be pickled. mesh: their `DeviceMesh` of one axis, on the cards by nccl where there
    are enough of them, else on the CPU by gloo; it tells rank and size. Nothing listens outside 127.0.0.1.
    Errors: RuntimeError in one sentence as soon as a process dies or raises, or has no answer after `timeout` seconds; TypeError
    for work or arguments that cannot be sent. In each case, and when the caller itself is killed, all processes end.
    """
    size, timeout = _checks.integer("size", size, 1), min(_checks.positive("timeout", timeout), 1e6)
    if not callable(work):
        raise TypeError(f"work must be a function that other processes can import, got {type(work).__name__}")
    context = multiprocessing.get_context(METHOD)
    if METHOD == "forkserver":  # imports PyTorch once; the processes are forks of that one
        context.set_forkserver_preload([__name__, "torch.distributed.tensor"])
    with tempfile.TemporaryDirectory() as folder:
        processes, pipes = [], []
        try:
            for rank in range(size):
                ours, theirs = context.Pipe(duplex=False)
                pipes.append(ours)
                job = (theirs, folder, rank, size, timeout, work, arguments)
                process = context.Process(target=_member, args=job, daemon=True)
                try:
                    process.start()
                except (pickle.PicklingError, AttributeError, TypeError) as error:
                    raise TypeError(f"work and its arguments must be such that they can be pickled: {error}") from None
                finally:
                    theirs.close()
                processes.append(process)
            return _collect(processes, pipes, timeout)
        finally:
            for process in processes:
                process.kill()
                process.join()
            for pipe in pipes:
                pipe.close()


def _collect(processes, pipes, timeout):
    """The results by rank; on the first failure the error of the process that failed first."""
    size, results, failures = len(pipes), {}, {}
    until = time.monotonic() + timeout
    while len(results) + len(failures) < size:
        open_pipes = [pipe for rank, pipe in enumerate(pipes) if rank not in results and rank not in failures]
        ready = wait(open_pipes, max(0, until - time.monotonic()))
        if not ready:
            break
        for rank in (pipes.index(pipe) for pipe in ready):
            try:
                good, when, what = pickle.loads(pipes[rank].recv_bytes())
            except (EOFError, ConnectionError):  # it has sent nothing and never will
                good, when, what = False, 0, _ending(processes[rank])
            except Exception as error:
                good, when, what = False, 0, f"sent an answer that cannot be read: {_one_line(error)}"
            (results if good else failures)[rank] = (when, what)
        if failures:  # the others only suffer from it; look a moment for one that came before
            until = min(until, time.monotonic() + 0.3)
    if failures:
        _, rank, what = min((when, rank, what) for rank, (when, what) in failures.items())
        raise RuntimeError(f"process {rank} of {size} {what}; the others were stopped")
    if len(results) < size:
        silent = ", ".join(str(rank) for rank in range(size) if rank not in results)
        raise RuntimeError(f"no answer from process {silent} of {size} within {timeout:g} s; all were stopped")
    return [results[rank][1] for rank in range(size)]


def _ending(process):
    """How a process ended that gave no answer."""
    process.join(5)
    code = process.exitcode
    if code is not None and code < 0:
        known = -code in set(signal.Signals)
        return f"was killed by {signal.Signals(-code).name if known else f'signal {-code}'}"
    return f"ended without an answer (status {code})"


def _one_line(error):
    """An error's kind and the first line of its text, where it has one."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:
        lines = []
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _member(pipe, folder, rank, size, timeout, work, arguments):
    """What one process does: join the group, work, answer."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, which ends this process
    parent = multiprocessing.parent_process().sentinel
    threading.Thread(target=lambda: (wait([parent]), os._exit(1)), daemon=True).start()  # never outlive the caller
    try:
        torch.set_num_threads(1)
        mesh = _join(folder, rank, size, timeout)
        answer = pickle.dumps((True, time.monotonic(), work(mesh, *arguments)))
    except BaseException as error:
        answer = pickle.dumps((False, time.monotonic(), f"stopped with {_one_line(error)}"))
    pipe.send_bytes(answer)
    pipe.close()
    os._exit(0)  # the answer is given; waiting for a neighbour that may be gone would only cost time


def _join(folder, rank, size, timeout):
    """Become one of `size` processes that know each other through a file in `folder`."""
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    if loopback:
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = loopback[0]
    cards = torch.cuda.device_count() >= size
    if cards:
        torch.cuda.set_device(rank)
    dist.init_process_group(
        "nccl" if cards else "gloo", store=dist.FileStore(os.path.join(folder, "group"), size), rank=rank, world_size=size,
        timeout=timedelta(seconds=timeout),
    )  # fmt: skip
    return init_device_mesh("cuda" if cards else "cpu", (size,))


def sockets():
    """The open internet sockets of this process, as copies to be closed; none where the system does not list them (not Linux)."""
    for number in os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []:
        try:
            copy = socket.socket(fileno=os.dup(int(number)))
        except OSError:  # closed by now, or no socket
            continue
        with copy:
            if copy.family in (socket.AF_INET, socket.AF_INET6):
                yield copy


def bytes_sent():
    """How many bytes this process has sent to others, by the count of the system's TCP; None where it keeps none."""
    total = None
    for one in sockets():
        info = one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        if len(info) >= 216:  # struct tcp_info of Linux: tcpi_bytes_sent counts what was sent again, tcpi_bytes_retrans
            sent, again = struct.unpack_from("QQ", info, 200)
            total = (total or 0) + sent - again
    return total


def settled_bytes_sent():
    """`bytes_sent`, once it has stopped growing."""
    last = -1
    while (now := bytes_sent()) != last:
        last = now
        time.sleep(0.05)
    return now
