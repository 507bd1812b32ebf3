"""Submissions that break, lie or attack, with the points that each deserves: the tests and `grading.bench` grade them all.

What is forged is what one of them gets beyond `deserves`; it must be 0. They answer 04_scores, or pretend to.
"""

import codecs
import json
from dataclasses import dataclass
from textwrap import dedent

SLUG = "04_scores"
SETUP = """
    import numpy as np
    from mha_lib.check import Check
    from mha_lib.data import load_layer
    check = Check("04_scores")
"""
RIGHT = (
    SETUP,
    "mice_row = [2, 2, 3]\ncheck('q1')",
    "def raw_scores(query, key):\n    return query @ key.swapaxes(-1, -2)\n\ncheck('q2')",
    "def scaled_scores(query, key):\n    return raw_scores(query, key) / float(np.sqrt(query.shape[-1]))",
    "def odds(scores, i, j):\n    return np.exp(scores[..., i] - scores[..., j])",
    """
    layer, head = load_layer(), slice(32, 64)
    query = layer.x @ layer.W_Q[:, head] + layer.b_Q[head]
    key = layer.x @ layer.W_K[:, head] + layer.b_K[head]
    it_animal = raw_scores(query, key)[layer.tokens.index("it"), layer.tokens.index("animal")]
    check.summary()
    """,
)
ALL, ONE = 17, 5  # points of the exercise, and of raw_scores alone


@dataclass(frozen=True)
class Case:
    """A file. deserves: what an honest count gives it."""

    name: str
    data: bytes
    deserves: int = 0


def notebook(*cells, **metadata):
    """The bytes of a notebook with these code cells."""
    cells = [{"cell_type": "code", "source": dedent(cell).strip(), "outputs": [], "metadata": {}} for cell in cells]
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": metadata, "cells": cells}).encode()


# What raw_scores does in the place of an answer. Each is the body of a function that has (query, key).
IN_A_CALL = {
    "exits": "import os; os._exit(0)",
    "sys_exit": "import sys; sys.exit(0)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "endless": "while True: pass",
    "sleeps": "import time; time.sleep(1000)",
    "recursion": "return raw_scores(query, key)",
    "fork_bomb": """
        import os
        while True:
            try: os.fork()
            except OSError: pass
    """,
    "detached_process": """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
        return query
    """,
    "threads": """
        import threading, time
        while True:
            threading.Thread(target=time.sleep, args=(1000,)).start()
    """,
    "ten_gigabytes": "return np.ones(10 * 2**30, np.uint8)",
    "memory_in_many_processes": """
        import os
        for _ in range(20):
            try: os.fork()
            except OSError: break
        kept = [bytearray(2**20) for _ in range(900)]
        while True: pass
    """,
    "memory_outside_its_space": """
        import ctypes
        ids = [ctypes.CDLL(None).shmget(0, 2**28, 0o1600) for _ in range(40)]
        assert max(ids) < 0
        return [os.memfd_create("x")]
    """,
    "huge_result": "return np.zeros(100 * 2**20, np.uint8)",
    "flood_of_prints": "for _ in range(800): print('x' * 100_000)",
    "flood_of_errors": "raise ValueError('x' * 80_000_000)",
    "flood_on_every_channel": """
        import os
        for fd in range(3, 64):
            try:
                while True: os.write(fd, b"\\xff" * 65536)
            except OSError: pass
    """,
    "forged_replies": """
        import os, json, struct
        head = json.dumps({"value": {"plain": None}, "points": 17, "right": True, "ready": True}).encode()
        for fd in range(3, 64):
            try: os.write(fd, (struct.pack("<II", len(head), 0) + head) * 50)
            except OSError: pass
    """,
    "deep_result": """
        nested = []
        for _ in range(100_000): nested = [nested]
        return nested
    """,
    "cyclic_result": "x = []; x.append(x); return x",
    "equal_to_anything": """
        class Equal:
            shape, dtype, ndim = property(lambda s: s), property(lambda s: s), 2
            __eq__ = lambda self, other: True
            __ne__ = lambda self, other: False
            __hash__ = lambda self: 0
            __getattr__ = lambda self, name: self
            __call__ = lambda self, *a, **k: self
        return Equal()
    """,
    "equal_array": """
        class Equal(np.ndarray):
            __eq__ = lambda self, other: np.True_
            __ne__ = lambda self, other: np.False_
            __array_ufunc__ = lambda self, *a, **k: np.zeros(())
            __sub__ = __rsub__ = lambda self, other: np.zeros(())
        return np.zeros((*query.shape[:-1], key.shape[-2])).view(Equal)
    """,
    "not_a_number": "return np.full((*query.shape[:-1], key.shape[-2]), np.nan)",
    "overflow": "return np.full((*query.shape[:-1], key.shape[-2]), -1.7e308) * np.sign(query[..., :1])",
    "objects": "return np.full((*query.shape[:-1], key.shape[-2]), None)",
    "pickle": """
        class Bomb:
            def __reduce__(self):
                import os
                return os.system, ("touch /tmp/forged",)
        return Bomb()
    """,
    "the_name_of_right": 'return "right"',
    "error_that_bites": """
        class Bite(Exception):
            def __str__(self): raise Bite()
        raise Bite()
    """,
    "error_beyond_exceptions": "raise BaseException('<script>alert(1)</script>')",
    "formula": "raise ValueError('=HYPERLINK(\"x\")\\n\\r=1+1 <img src=x onerror=alert(1)>')",
    "reads_the_grader": """
        import os
        places = [place for place in os.listdir("/") if place not in ("usr", "lib", "lib64")]
        files = [os.path.join(folder, name) for place in places for folder, _, names in os.walk("/" + place) for name in names]
        wanted = [path for path in files if "questions/" in path or "grading/" in path]
        raise ValueError(open([path for path in wanted if "/numpy" not in path][0]).read())
    """,
    "reads_the_host": """
        for path in ("/proc/1/environ", "/etc/shadow", "/etc/passwd", "/etc/hostname", "/proc/self/mountinfo", "/sys/kernel"):
            try: raise ValueError("found " + open(path).read())
            except OSError: pass
        return query
    """,
    "network": """
        import socket
        socket.create_connection(("1.1.1.1", 53), 1)
        return query @ key.swapaxes(-1, -2)
    """,
    "deletion": """
        import shutil, os
        for place in os.listdir("/"):
            if place not in ("usr", "lib", "lib64"): shutil.rmtree("/" + place, ignore_errors=True)
        import mha_lib.viz.draw, mha_lib.data
        return query
    """,
    "kills_everybody": """
        import os, signal
        os.kill(-1, signal.SIGKILL)
        os.kill(os.getppid(), signal.SIGKILL)
    """,
    "new_namespace": """
        import ctypes
        raise ValueError(f"unshare {ctypes.CDLL(None, use_errno=True).unshare(0x10000000)}")
    """,
    "waits_for_input": "return input()",
    "spawns_a_shell": "import subprocess; return subprocess.run(['/bin/sh', '-c', 'echo 1'], check=True)",
    "looks_for_the_expected": """
        import gc, sys
        found = [o for o in gc.get_objects() if type(o).__name__ in ("Trial", "Question", "Verdict", "Scored")]
        return found[0].want
    """,
}  # fmt: skip

# What a cell does, before or in the place of an answer.
IN_A_CELL = {
    "exits": "import os; os._exit(0)",
    "endless": "while True: pass",
    "many_exits": "\n\n".join(f"import os; os._exit({n})" for n in range(3)),
    "background_flood": """
        import threading, os
        def flood():
            while True: print("x" * 100_000)
        for _ in range(4): threading.Thread(target=flood, daemon=True).start()
    """,
    "patched_numpy": """
        import numpy as np
        for name in ("allclose", "array_equal", "isclose", "all"): setattr(np, name, lambda *a, **k: True)
        np.abs = np.isnan = lambda *a, **k: np.zeros(())
        np.testing.assert_allclose = lambda *a, **k: None
        def raw_scores(query, key): return np.zeros((*query.shape[:-1], key.shape[-2]))
    """,
    "patched_builtins": """
        import builtins
        builtins.isinstance = builtins.all = lambda *a: True
        builtins.len = builtins.abs = lambda *a: 0
        def raw_scores(query, key): return query
    """,
    "patched_worker": """
        import sys
        main, wire = sys.modules["__main__"], sys.modules["wire"]
        main.Worker.state = lambda self, head, payload: ({"state": ["callable"]}, b"")
        main.Worker.call = lambda self, head, payload: ({"value": {"array": [], "shape": [-1], "offset": {}}, "after": 7}, b"")
        main.Worker.get = lambda self, head, payload: ({"value": {"plain": {"plain": 1}}}, b"")
    """,
    "patched_questions": """
        import mha_lib.questions._judge as judge
        judge.fault = lambda *a, **k: ("", "")
    """,
    "patched_check": """
        import mha_lib.check
        class Check:
            def __init__(self, *a): pass
            def __call__(self, *a): return "right, 5 of 5 points"
        mha_lib.check.Check = Check
        check = Check(); check("q1")
    """,
    "imports_the_solution": "from mha_lib.numpy import attention_scores as scaled_scores",
    "imports_its_module": "from mha_lib.numpy.scores import attention_scores as scaled_scores",
    "imports_the_reference": "from mha_lib.questions.scores import raw_scores, odds, _row_of_mice\nmice_row = _row_of_mice()",
    "imports_the_mistakes": "from mha_lib.mistakes.scores import right\nscaled_scores = right.attention_scores",
    "scores_on_disk": """
        import json, os
        for place in ("/tmp", "/course", ".", "..", "/out", "/course/mha_lib"):
            for name in ("results.json", "run.json", "grades.csv", "results/forged.ipynb.json", "mha_lib.py", "wire.py"):
                try: open(os.path.join(place, name), "w").write(json.dumps({"points": 17, "status": "graded", "right": True}))
                except OSError: pass
        os._exit(0)
    """,
    "fills_the_disk": """
        import os
        for n in range(1000):
            for place in ("/", "/tmp", "/dev", "/course", "/usr", "/etc", "/root"):
                try: open(f"{place}/{n}", "wb").write(b"x" * 2**20)
                except OSError: pass
    """,
    "deep_code": "x = " + "(" * 5000 + ")" * 5000,
    "deep_operators": "x = " + "-" * 200_000 + "1",
    "surrogates": "x = '\ud800'",
    "null_bytes": "x = 1\0",
}  # fmt: skip


def cases():
    """All of them."""
    return [
        *(
            Case(f"call_{name}", notebook(SETUP + "    import os\n", function(body)))
            for name, body in IN_A_CALL.items()
        ),
        *(Case(f"cell_{name}", notebook(SETUP, body)) for name, body in IN_A_CELL.items()),
        *_files(),
    ]


def function(body):
    """The source of a raw_scores with this body."""
    lines = dedent(body).strip().split("\n")
    return "def raw_scores(query, key):\n" + "\n".join("    " + line for line in lines)


def _files():
    """Files that are odd as files. Where the answers are right they count."""
    right = notebook(*RIGHT)
    text, document = right.decode(), json.loads(right)
    old = {"nbformat": 3, "nbformat_minor": 0, "metadata": {}}
    old["worksheets"] = [
        {"cells": [{"cell_type": "code", "input": c["source"].split("\n")} for c in document["cells"]]}
    ]
    old["worksheets"][0]["cells"] = [c | {"input": "\n".join(c["input"])} for c in old["worksheets"][0]["cells"]]
    loud = json.loads(right)
    loud["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x" * 80_000_000}]
    odd = {
        "nbformat": 4,
        "metadata": [],
        "cells": [1, None, [], {"cell_type": "code"}, {"cell_type": "code", "source": {"a": 1}}],
    }
    twice = notebook(SETUP, "def raw_scores(query, key):\n    return key", RIGHT[2], RIGHT[2])
    wrong_last = notebook(SETUP, RIGHT[2], "def raw_scores(query, key):\n    return key")
    magics = notebook("%matplotlib inline\n!pip install x\n" + dedent(SETUP), *RIGHT[1:], "%%bash\nrm -rf /")
    prize = {"mha_course": {"exercise": "../../etc", "points": 17}, "grade": 17, "nbgrader": {"score": 17}}
    return [
        Case("file_right", right, ALL),
        Case("file_right_after_a_crash", notebook(SETUP, "import os; os._exit(1)", *RIGHT), ALL),
        Case("file_bom", codecs.BOM_UTF8 + right, ALL),
        Case("file_utf16", text.encode("utf-16"), ALL),
        Case("file_version_3", json.dumps(old).encode(), ALL),
        Case("file_wrong_kernel", notebook(*RIGHT, kernelspec={"name": "ir", "language": "R"}), ALL),
        Case("file_80_mb_of_output", json.dumps(loud).encode(), ALL),
        Case("file_magics", magics, ALL),
        Case("file_missing_cells", notebook(SETUP, RIGHT[2]), ONE),
        Case("file_duplicated_cells", twice, ONE),
        Case("file_wrong_last", wrong_last),
        Case("file_tampered_metadata", notebook(SETUP, **prize)),
        Case("file_other_exercise", notebook(SETUP, mha_course={"exercise": 7}, kernelspec=[])),
        Case("file_cut_short", right[:-40]),
        Case("file_empty", b""),
        Case("file_binary", bytes(range(256)) * 100),
        Case("file_latin_1", text.replace("mice", "m\xefce").encode("latin-1")),
        Case("file_no_object", b"[1, 2, 3]"),
        Case("file_no_cells", b'{"cells": 3}'),
        Case("file_odd_cells", json.dumps(odd).encode()),
        Case("file_deep_nesting", b"[" * 2_000_000),
        Case("file_many_items", b"[" + b"0," * 6_000_000 + b"0]"),
        Case("file_long_number", b'{"cells": ' + b"9" * 100_000 + b"}"),
        Case("file_much_code", notebook("#" * 3_000_000)),
        Case("file_too_large", b'{"cells": [], "x": "' + b"x" * 100_000_001 + b'"}'),
    ]  # fmt: skip
