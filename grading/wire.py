"""What the grader and its worker say to each other: frames of a JSON head and raw bytes, never a pickle.

This file is used on both sides. What comes from the worker is hostile: `receive` and `unpack` take nothing on trust.
"""

import json
import struct

import numpy as np

FRAME = struct.Struct("<II")  # the lengths of the head and of the payload
LARGEST_HEAD, LARGEST_PAYLOAD = 1 << 20, 64 << 20
DTYPES = frozenset("|b1 |i1 |u1 <i2 <u2 <i4 <u4 <i8 <u8 <f2 <f4 <f8 <c8 <c16".split())
DEEPEST, LONGEST, LONGEST_TEXT = 6, 1000, 1000


def send(stream, head, payload=b""):
    """Write one frame."""
    head = json.dumps(head).encode()
    stream.write(FRAME.pack(len(head), len(payload)) + head + payload)
    stream.flush()


def receive(stream):
    """Read one frame: (head, payload). EOFError at the end of the stream, ValueError for what is no frame."""
    head_length, payload_length = FRAME.unpack(_exactly(stream, FRAME.size))
    if head_length > LARGEST_HEAD or payload_length > LARGEST_PAYLOAD:
        raise ValueError("the frame is too large")
    head, payload = _exactly(stream, head_length), _exactly(stream, payload_length)
    try:
        head = json.loads(head)
    except RecursionError:
        raise ValueError("the head is nested too deeply") from None
    if not isinstance(head, dict):
        raise ValueError("the head is not an object")
    return head, payload


def _exactly(stream, length):
    data = stream.read(length)
    if len(data) != length:
        raise EOFError
    return data


class Packed:
    """Values on their way into a frame: `payload` holds the bytes of the arrays, `pack` gives what stands in the head.

    strict: a value that does not travel is a TypeError; otherwise only the name of its type goes.
    """

    def __init__(self, strict=False):
        self.payload, self.strict = bytearray(), strict

    def pack(self, value, depth=0):
        """One value as JSON."""
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        if value is None or type(value) in (bool, float):
            return {"plain": value}
        if type(value) is int and abs(value) < 2**63:
            return {"plain": value}
        if type(value) is str and len(value) <= LONGEST_TEXT:
            return {"plain": value}
        if isinstance(value, tuple | list) and len(value) <= LONGEST and depth < DEEPEST:  # a NamedTuple is a tuple
            return {"tuple" if isinstance(value, tuple) else "list": [self.pack(item, depth + 1) for item in value]}
        if isinstance(value, np.dtype) and value.str in DTYPES:
            return {"dtype": value.str}
        return self._other(str(type(value).__name__))

    def _other(self, name):
        if self.strict:
            raise TypeError(f"a value of type {name} cannot be sent to an answer")
        return {"other": name[:60]}

    def _array(self, value):
        array = np.array(value, subok=False, order="C")
        if array.dtype.kind == "f" and array.dtype.itemsize > 8:  # long double, which no reference gives
            array = array.astype(np.float64)
        dtype = array.dtype.newbyteorder("<")
        if dtype.str not in DTYPES:
            return self._other(f"array of {array.dtype}")
        offset = len(self.payload)
        self.payload += array.astype(dtype).tobytes()
        # a scalar of NumPy is no array: the worker gets back what the caller had
        kind = {"scalar": True} if isinstance(value, np.generic) else {"fixed": not value.flags.writeable}
        return {"array": dtype.str, "shape": list(array.shape), "offset": offset, **kind}


def unpack(node, payload, depth=0, room=None):
    """The value of one node; ValueError for what `Packed.pack` does not write, and for bytes that are taken twice."""
    room = [len(payload)] if room is None else room
    if depth > DEEPEST + 1 or not isinstance(node, dict):
        raise ValueError("no node")
    if "array" in node:
        return _array(node, payload, room)
    kind, content = next(iter(node.items()), (None, None))
    if kind == "plain" and (content is None or type(content) in (bool, int, float, str)):
        return content
    if kind in ("tuple", "list") and isinstance(content, list) and len(content) <= LONGEST:
        return {"tuple": tuple, "list": list}[kind](unpack(item, payload, depth + 1, room) for item in content)
    if kind == "dtype" and isinstance(content, str) and content in DTYPES:
        return np.dtype(content)
    if kind == "other" and isinstance(content, str):
        return other(content)
    raise ValueError("no value")


def _array(node, payload, room):
    dtype, shape, offset = node["array"], node.get("shape"), node.get("offset")
    if not isinstance(dtype, str) or dtype not in DTYPES or not isinstance(shape, list) or len(shape) > 16:
        raise ValueError("no array")
    if not all(type(n) is int and 0 <= n < 2**40 for n in [*shape, offset]):
        raise ValueError("no shape")
    count = 1
    for n in shape:
        count *= n
    if offset + count * np.dtype(dtype).itemsize > len(payload):
        raise ValueError("the payload is too short")
    room[0] -= count * np.dtype(dtype).itemsize
    if room[0] < 0:
        raise ValueError("the arrays overlap")
    array = np.frombuffer(payload, dtype, count, offset).reshape(shape).copy() if count else np.zeros(shape, dtype)
    if node.get("scalar") is True and not shape:
        return array[()]
    array.flags.writeable = node.get("fixed") is not True
    return array


def other(name):
    """Stands for a value that does not travel: only the name of its type is known."""
    name = "".join(c for c in name[:60] if c.isprintable()) or "object"
    return type(name, (), {"__repr__": lambda self: f"<{name}>"})()
