"""The answers of one notebook, each in reach through `state`, `get` and `run`, none of them in this process."""

import re
import threading
import time
from dataclasses import dataclass

import numpy as np

from mha_lib.questions import Raised, Stopped

from . import wire

START_SECONDS = 60  # starting a worker is the grader's business: on a busy machine it may take long
MOST_STOPS = 20


class GraderError(Exception):
    """The grader itself failed; no learner loses a point by it."""


class Worker:
    """A started worker process, and one question at a time to it."""

    def __init__(self, launch):
        self.process, self.reason = launch(), ""
        try:
            head, _ = self._within(START_SECONDS, lambda: wire.receive(self.process.stdout))
        except BaseException:
            self.process.end()
            raise
        if head != {"ready": True}:
            self.process.end()
            raise GraderError("the worker did not start")

    def ask(self, head, payload, seconds):
        """The reply, as (head, payload). Stopped where none comes in time; the process is gone then."""

        def both():
            wire.send(self.process.stdin, head, payload)
            return wire.receive(self.process.stdout)

        return self._within(seconds, both)

    def _within(self, seconds, talk):
        timer = threading.Timer(seconds, self._too_late, [seconds])
        timer.daemon = True
        timer.start()
        try:
            return talk()
        except (EOFError, OSError):
            raise Stopped(self.reason or "its process ended: sys.exit, a crash, or too much memory") from None
        except ValueError:
            raise Stopped("its process gave a reply that cannot be read") from None
        finally:
            timer.cancel()

    def _too_late(self, seconds):
        self.reason = f"it took longer than {seconds:.0f} seconds"
        self.process.stop()


@dataclass
class Trouble:
    """A cell that stopped with an error."""

    cell: int
    error: str


class Remote:
    """A source for `judge`: a notebook's cells run in a worker, then its names are asked for.

    cells: the sources of the code cells. launch: starts a worker process. After a time out or a death the next request
    starts a fresh worker and runs the cells again, without the one that killed it. `close()` when done.
    """

    def __init__(self, cells, launch, limits):
        self.cells, self.launch, self.limits = cells, launch, limits
        self.ends = time.monotonic() + limits.total
        self.worker, self.killers, self.stops, self.cpu = None, set(), 0, 0.0
        self.troubles = {}  # number of a cell -> its `Trouble`
        self.lost = {}  # a name that is missing because its cell failed -> that `Trouble`
        try:
            self._begin()
        except Stopped:  # what was reached is judged
            pass
        except BaseException:  # the grader is interrupted: nobody gets this object to close it
            if self.worker is not None:
                self._drop()
            raise

    # ------------------------------------------------------------------------------------------------------------- the process
    def _begin(self):
        """Start workers until one has run every cell that does not kill it."""
        while self.worker is None:
            if self.stops >= MOST_STOPS:
                raise Stopped(f"the notebook was stopped {MOST_STOPS} times")
            self.worker = self._start()
            for number, source in enumerate(self.cells, 1):
                if source.strip() and number not in self.killers and not self._run_cell(number, source):
                    break

    def _start(self):
        for _ in range(3):
            try:
                return Worker(self.launch)
            except Stopped as error:
                reason = error
        raise GraderError(f"the sandbox did not start: {reason}")

    def _run_cell(self, number, source):
        """Run one cell; False where it ended the process."""
        try:
            head, _ = self._ask({"do": "run", "source": source, "name": f"cell {number}"})
        except Stopped as error:
            self.killers.add(number)
            self.troubles.setdefault(number, Trouble(number, f"{error} (cell {number})"))
            return False
        if "error" in head:
            self.troubles.setdefault(number, Trouble(number, _text(head["error"])))
        return True

    def _ask(self, head, payload=b""):
        """One request to the worker that runs; Stopped where it does not come back, and then there is none."""
        left = self.ends - time.monotonic()
        try:
            if left <= 0:
                raise Stopped(f"the notebook took longer than {self.limits.total:.0f} seconds in all")
            return self.worker.ask(head, payload, min(left, self.limits.seconds))
        except Stopped:
            self.stops += 1
            self._drop()
            raise

    def _request(self, head, payload=b""):
        """One request about a name; Raised with the error that the answer stopped with."""
        if self.worker is None:
            self._begin()
        head, payload = self._ask(head, payload)
        if "error" in head:
            raise Raised(_text(head["error"]))
        return head, payload

    def close(self):
        """End the process, and add up what it says it used: a figure for the grader's report, which earns nothing."""
        worker, self.worker = self.worker, None
        if worker is None:
            return
        try:
            spent = worker.ask({"do": "usage"}, b"", 1)[0].get("cpu")
            self.cpu += spent if type(spent) is float and 0 <= spent < self.limits.total + 10 else 0
        except Stopped:
            pass
        finally:
            worker.process.end()

    def _drop(self):
        """End a process that no longer answers."""
        self.worker.process.end()
        self.worker = None

    # ------------------------------------------------------------------------------------------------------------- the source
    def state(self, name):
        """ "missing", "callable" or "value". A name whose cell failed counts as there: asking for it says what failed."""
        try:
            state = self._request({"do": "state", "name": name})[0].get("state")
        except Raised:
            return "callable"
        if state in ("callable", "value"):
            return state
        defines = re.compile(
            rf"^\s*(def|class)\s+{name}\b|^\s*{name}\s*[:=]|^\s*(from|import)\b.*\b{name}\b", re.MULTILINE
        )
        failed = [n for n in sorted(self.troubles) if defines.search(self.cells[n - 1])]
        if failed:
            self.lost[name] = self.troubles[failed[-1]]
        return "callable" if failed else "missing"

    def get(self, name):
        """The value of a name."""
        head, payload = self._about(name, {"do": "get", "name": name})
        return _value(head.get("value"), payload)

    def run(self, name, call):
        """The result of a call on copies of its arguments, and whether it left them as they were."""
        packed, calls, one = wire.Packed(strict=True), [], call
        while one is not None:
            calls.append([packed.pack(part) for part in (tuple(one.args), list(one.kwargs), list(one.kwargs.values()))])
            one = one.then
        request = {"do": "call", "name": name, "calls": calls}
        head, payload = self._about(name, request, bytes(packed.payload))
        return _value(head.get("value"), payload), _untouched(call, head.get("after"), payload)

    def _about(self, name, head, payload=b""):
        if name in self.lost:
            raise Raised(self.lost[name].error)
        return self._request(head, payload)


def _text(error):
    """The error that a worker reports, as one printable line."""
    text = " ".join(str(error)[:500].split()) if isinstance(error, str) else ""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text) or "an error without a text"


def _value(node, payload):
    try:
        return wire.unpack(node, payload)
    except ValueError:
        raise Raised("its result cannot be read") from None


def _untouched(call, after, payload):
    """Whether the arrays of a call came back as they went."""
    while call is not None:
        try:
            args, values = (wire.unpack(node, payload) for node in after[0])
            pairs = [*zip(call.args, args, strict=True), *zip(call.kwargs.values(), values, strict=True)]
        except (ValueError, TypeError, LookupError):
            return False
        if not all(_equal(then, now) for then, now in pairs):
            return False
        call, after = call.then, after[1:]
    return True


def _equal(then, now):
    if not isinstance(then, np.ndarray):
        return True
    if not isinstance(now, np.ndarray) or now.dtype != then.dtype:
        return False
    return np.array_equal(now, then, equal_nan=then.dtype.kind in "fc")
