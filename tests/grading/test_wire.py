"""What crosses between grader and worker: values arrive as they went, and what is malformed is an error, never more."""

import io
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from grading import wire

VALUES = [
    None, True, 3, -(2**62), 1.5, float("inf"), "text", (1, (2, "x"), [3.0, None]), [], (), np.dtype("float32"),
    np.arange(6, dtype=np.int16).reshape(2, 3), np.zeros((0, 4), np.float32), np.array(2.5), np.float32(1.5), np.bool_(True),
    np.arange(12.0).reshape(3, 4)[::-1, ::2], np.arange(3, dtype=">f8"), np.ones((2, 2), np.complex64),
]  # fmt: skip


def there_and_back(value, strict=True):
    packed = wire.Packed(strict)
    stream = io.BytesIO()
    wire.send(stream, {"value": packed.pack(value)}, bytes(packed.payload))
    stream.seek(0)
    head, payload = wire.receive(stream)
    return wire.unpack(head["value"], payload)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_arrive_as_they_went(value):
    got = there_and_back(value)
    if isinstance(value, np.ndarray):
        assert got.dtype == value.dtype.newbyteorder("=") and got.shape == value.shape
        np.testing.assert_array_equal(got, value)
    else:
        assert type(got) is type(value) and got == value


def test_a_read_only_array_stays_read_only():
    array = np.ones(3)
    assert there_and_back(array).flags.writeable
    array.flags.writeable = False
    assert not there_and_back(array).flags.writeable


def test_a_subclass_is_an_array_or_a_tuple_and_a_long_double_is_a_double():
    assert type(there_and_back(np.ma.ones(2))) is np.ndarray
    assert there_and_back(np.linalg.qr(np.eye(2)), strict=False)[0].shape == (2, 2)  # a NamedTuple
    assert type(there_and_back(np.linalg.slogdet(np.eye(2)))) is tuple
    assert there_and_back(np.longdouble([1.5])).dtype == np.float64


@pytest.mark.parametrize(
    "value", [object(), {1: 2}, np.array([None]), np.array(["a"]), 10**30, "x" * 2000, [[[[[[[[1]]]]]]]]]
)
def test_other_values_go_as_the_name_of_their_type(value):
    assert "other" in json.dumps(wire.Packed().pack(value))
    with pytest.raises(TypeError, match="cannot be sent"):
        wire.Packed(strict=True).pack(value)


def test_the_name_of_a_type_is_only_a_name():
    got = wire.unpack({"other": "__import__('os')\n<b>"}, b"")
    assert type(got).__name__ == "__import__('os')<b>" and type(got).__bases__ == (object,)


ARRAY = {"array": "<f8", "shape": [2], "offset": 0}
BAD = [
    None, 1, [], {}, {"plain": {}}, {"plain": [1]}, {"list": 3}, {"tuple": {"a": 1}}, {"dtype": "|O8"}, {"dtype": []}, {"other": 3},
    {"list": [{"list": [{"bad": 1}]}]}, {"list": [{"plain": 1}] * 1001}, ARRAY | {"array": "|O8"}, ARRAY | {"array": []},
    ARRAY | {"shape": 2}, ARRAY | {"shape": [-1]}, ARRAY | {"shape": [3]}, ARRAY | {"shape": [2**40]}, ARRAY | {"shape": [True]},
    ARRAY | {"shape": [1] * 17}, ARRAY | {"shape": ["2"]}, ARRAY | {"offset": 1}, ARRAY | {"offset": -8}, ARRAY | {"offset": None},
    ARRAY | {"shape": [2**39] * 3}, {"array": "<f8"}, {"kind": "array"},
]  # fmt: skip


@pytest.mark.parametrize("node", BAD, ids=str)
def test_what_is_malformed_is_a_value_error(node):
    with pytest.raises(ValueError):
        wire.unpack(node, b"\0" * 16)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["array", "shape", "offset", "plain", "list", "tuple", "other", "dtype", "scalar", "fixed"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_a_value_or_a_value_error(node):
    try:
        wire.unpack(node, b"\0" * 64)
    except ValueError:
        pass


@pytest.mark.parametrize(
    "data",
    [
        wire.FRAME.pack(2, 0) + b"[]",
        wire.FRAME.pack(1 << 21, 0),
        wire.FRAME.pack(2, 1 << 31) + b"{}",
        wire.FRAME.pack(3, 0) + b"{]}",
        wire.FRAME.pack(2, 0) + b"\xff\xff",
        wire.FRAME.pack(200_000, 0) + b"[" * 200_000,
    ],
)
def test_what_is_no_frame_is_a_value_error(data):
    with pytest.raises(ValueError):
        wire.receive(io.BytesIO(data))


@pytest.mark.parametrize("data", [b"", b"\1", wire.FRAME.pack(5, 0) + b"{}", wire.FRAME.pack(2, 9) + b"{}"])
def test_the_end_of_the_stream_is_told(data):
    with pytest.raises(EOFError):
        wire.receive(io.BytesIO(data))


def test_bytes_are_taken_once():
    """Else a few bytes from an answer would fill the memory of the grader."""
    node = {"array": "|i1", "shape": [100], "offset": 0}
    assert wire.unpack(node, b"x" * 100).shape == (100,)
    with pytest.raises(ValueError, match="overlap"):
        wire.unpack({"list": [node, node]}, b"x" * 100)
