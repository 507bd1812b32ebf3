"""Runs one notebook's code and calls what it defines: the untrusted side, alone in its sandbox.

It knows no tests, no expected values and no scores. Requests come in on standard input; replies leave on what was
standard output. Whatever the notebook prints goes nowhere. An answer may break anything in this process: the other side
believes nothing that comes from here.
"""

import importlib.machinery
import json
import os
import sys
import time
import types

SILENT = ("check", "grader", "display", "get_ipython")  # names that a notebook may use without making them


def confine(settings):
    """Give up the user and take on the limits, before any foreign code runs. What a system does not know is left out."""
    if settings["user"]:
        os.setgroups([])
        os.setresgid(*[settings["user"]] * 3)
        os.setresuid(*[settings["user"]] * 3)
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, limit in settings["limits"].items():
        try:
            resource.setrlimit(getattr(resource, name), (limit, limit))
        except (AttributeError, ValueError, OSError):  # macOS bounds no address space
            if settings["strict"]:
                raise


def channels():
    """(requests, replies), out of the way of prints; the standard streams lead nowhere."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    for number, mode in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):
        os.dup2(os.open(os.devnull, mode), number)
    return requests, replies


class Silent:
    """Stands for what only shows things: takes every call, says nothing, and is a pair where one is unpacked."""

    def __init__(self, *args, **kwargs):
        pass

    def __call__(self, *args, **kwargs):
        return Silent()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Silent()

    def __getitem__(self, key):
        return Silent()

    def __iter__(self):
        return iter((Silent(), Silent()))  # figure, axes = plt.subplots()

    def __enter__(self):
        return Silent()

    def __exit__(self, *error):
        return None


class Shows:
    """Finds silent modules for what a notebook shows its results with: a picture earns no points and costs none."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in ("IPython", "matplotlib"):
            return importlib.machinery.ModuleSpec(name, Shows, is_package=True)
        return None

    @staticmethod
    def create_module(spec):
        module = types.ModuleType(spec.name)
        module.__getattr__ = Silent().__getattr__
        return module

    @staticmethod
    def exec_module(module):
        pass


def compiled(source, name):
    """The code of a cell. What only IPython understands (%magic, !command) becomes `pass`, if Python does not understand it."""
    try:
        return compile(source, name, "exec")
    except SyntaxError:
        lines = source.split("\n")
        if lines[0].startswith("%%") and lines[0].split()[0] not in ("%%time", "%%timeit", "%%capture"):
            return compile("", name, "exec")  # a cell in another language
        plain = [
            line[: -len(line.lstrip())] + "pass" if line.lstrip().startswith(("%", "!")) else line for line in lines
        ]
        return compile("\n".join(plain), name, "exec")


def one_line(error):
    """An error in one line, with the place in the notebook."""
    places, trace = [], error.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename.startswith("cell "):
            places.append((trace.tb_lineno, trace.tb_frame.f_code.co_filename))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and str(error.filename).startswith("cell "):
        places.append((error.lineno, error.filename))
    text = " ".join(str(error.msg if isinstance(error, SyntaxError) else error).split())[:300]
    where = " (line {} of {})".format(*places[-1]) if places else ""
    return f"{type(error).__name__}{': ' + text if text else ''}{where}"


class Worker:
    """The names that the notebook defined, and the requests about them."""

    def __init__(self):
        self.names = {
            "__name__": "__main__",
        } | dict.fromkeys(SILENT, Silent())

    def run(self, head, payload):
        """Run one cell."""
        exec(compiled(head["source"], head["name"]), self.names)
        return {}, b""

    def state(self, head, payload):
        """Whether a name is missing, callable or a value."""
        value = self.names.get(head["name"], ...)
        return {"state": "missing" if value is ... else "callable" if callable(value) else "value"}, b""

    def get(self, head, payload):
        """The value of a name."""
        packed = Packed()
        return {"value": packed.pack(self.names[head["name"]])}, packed.payload

    def call(self, head, payload):
        """Call a name, then what it returned, and so on: the last result, and all arguments as they are afterwards."""
        calls = [[unpack(part, payload) for part in parts] for parts in head["calls"]]
        calls = [(args, dict(zip(keys, values, strict=True))) for args, keys, values in calls]
        result = self.names[head["name"]]
        for args, kwargs in calls:
            if result is None:  # not answered yet, rather than an error of the next call
                break
            result = result(*args, **kwargs)
        packed = Packed()
        after = [[packed.pack(args), packed.pack(list(kwargs.values()))] for args, kwargs in calls]
        return {"value": packed.pack(result), "after": after}, packed.payload

    def usage(self, head, payload):
        """The CPU seconds of this process: it is killed in the end, so nobody can ask the system for them."""
        return {"cpu": time.process_time()}, b""

    def answer(self, head, payload):
        """The reply to one request."""
        requests = {"run": self.run, "state": self.state, "get": self.get, "call": self.call, "usage": self.usage}
        try:
            return requests[head["do"]](head, payload)
        except BaseException as error:
            try:
                return {"error": one_line(error)}, b""
            except BaseException:  # an error that cannot be shown
                return {"error": "an error whose text cannot be read"}, b""


def main():
    """Answer requests until there are no more."""
    import warnings

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    requests, replies = channels()
    sys.meta_path.append(Shows)
    send(replies, {"ready": True})
    worker = Worker()
    while True:
        try:
            head, payload = receive(requests)
        except EOFError:
            os._exit(0)
        send(replies, *worker.answer(head, payload))


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    confine(settings)
    sys.argv = ["notebook"]
    sys.path[:0] = settings["path"]
    import numpy as np
    from wire import Packed, receive, send, unpack

    main()
