"""The keys and values of the tokens so far, kept between the steps of decoding."""

import numpy as np

from .. import _checks
from ._arrays import real_array


class KVCache:
    """Preallocated room for the keys and values of up to `max_length` tokens.

    Shapes: keys (batch_size, num_kv_heads, max_length, head_dim), values the same with `value_dim` (head_dim if None).
    `len(cache)` counts the tokens stored, `cache.nbytes` the bytes set aside for all of them.
    Errors: TypeError or ValueError for sizes that are no integers >= 0 (heads and widths >= 1).

    >>> cache = KVCache(1, 2, max_length=8, head_dim=4)
    >>> keys, values = cache.append(np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 3, 4), np.float32))
    >>> keys.shape, len(cache), cache.nbytes
    ((1, 2, 3, 4), 3, 512)
    """

    def __init__(self, batch_size, num_kv_heads, max_length, head_dim, *, value_dim=None, dtype=np.float32):
        room = (_checks.integer("batch_size", batch_size, 0), _checks.integer("num_kv_heads", num_kv_heads, 1),
                _checks.integer("max_length", max_length, 0))  # fmt: skip
        head_dim = _checks.integer("head_dim", head_dim, 1)
        if np.dtype(dtype).kind != "f":
            raise TypeError(f"dtype must be a floating-point dtype, got {np.dtype(dtype)}")
        value_dim = head_dim if value_dim is None else _checks.integer("value_dim", value_dim, 1)
        self._key, self._value = np.zeros((*room, head_dim), dtype), np.zeros((*room, value_dim), dtype)
        self._length = 0

    def append(self, key, value):
        """Store the keys and values of n more tokens; return all so far, as views.

        Shapes: key (B, H_kv, n, D), value (B, H_kv, n, D_v) -> (B, H_kv, len, D), (B, H_kv, len, D_v).
        Errors: ValueError for another shape or where `max_length` is exceeded, TypeError for a dtype that would lose digits;
        nothing is stored then.
        """
        key, value = real_array("key", key), real_array("value", value)
        stop = _checks.cache_append(len(self), key.shape, value.shape, self._key.shape, self._value.shape)
        for name, array in (("key", key), ("value", value)):
            if not np.can_cast(array.dtype, self._key.dtype):
                raise TypeError(f"{name} is {array.dtype}, but the cache stores {self._key.dtype}; make it with dtype=")
        self._key[:, :, self._length : stop] = key
        self._value[:, :, self._length : stop] = value
        self._length = stop
        return self._key[:, :, :stop], self._value[:, :, :stop]

    def __len__(self):
        return self._length

    def reset(self, length=0):
        """Forget all tokens from number `length` on; the room stays."""
        length = _checks.integer("length", length, 0)
        if length > self._length:
            raise ValueError(f"length must be at most the {self._length} tokens stored, got {length}")
        self._length = length

    @property
    def nbytes(self):
        """Bytes set aside for keys and values."""
        return self._key.nbytes + self._value.nbytes
