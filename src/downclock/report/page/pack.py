"""Packing: columns of numbers as one compressed block of text that a page can carry.

A block is the length of a JSON header (four bytes, little endian), the header, and the columns,
each on an eight-byte boundary; deflated, then in base64. ``web/data.js`` reads it.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from downclock.units import Floats

_BITS = {16: np.uint16, 32: np.uint32}


class Pack:
    """Columns by name, and plain values beside them."""

    def __init__(self) -> None:
        self._columns: list[dict[str, Any]] = []
        self._bytes: list[bytes] = []
        self._size = 0

    def whole(self, name: str, values: NDArray[Any]) -> None:
        """Add whole numbers from 0 in as few bytes as their largest needs."""
        largest = int(values.max(initial=0))
        kinds = (np.uint8, np.uint16, np.uint32)
        kind = next(k for k in kinds if largest <= np.iinfo(k).max)
        self._add(name, np.asarray(values, dtype=kind), {})

    def real(self, name: str, values: Floats) -> None:
        """Add numbers as they are, in single precision."""
        with np.errstate(over="ignore"):  # of a schedule that is not valid
            self._add(name, np.asarray(values, dtype=np.float32), {})

    def measured(self, name: str, values: Floats, bits: int = 32) -> None:
        """Add numbers in equal steps between the least and the largest; one step is infinite.

        The error is at most half of the range over 2**bits.
        """
        finite = values[np.isfinite(values)]
        low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
        last = 2**bits - 2
        step = (high - low) / last if high > low else 1.0
        known = np.isfinite(values)
        steps = np.full(values.size, last + 1, dtype=_BITS[bits])
        steps[known] = np.rint((values[known] - low) / step).astype(_BITS[bits])
        self._add(name, steps, {"low": low, "step": step, "none": last + 1})

    def text(self, header: dict[str, Any]) -> str:
        """Return the block."""
        head = json.dumps(
            {**header, "columns": self._columns}, ensure_ascii=False, separators=(",", ":")
        ).encode("utf-8", "replace")
        head += b" " * (-(len(head) + 4) % 8)
        block = len(head).to_bytes(4, "little") + head + b"".join(self._bytes)
        return base64.b64encode(zlib.compress(block, 6)).decode("ascii")

    def _add(self, name: str, values: NDArray[Any], frame: dict[str, Any]) -> None:
        data = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("<")).tobytes()
        kind = {"u": "u", "f": "f"}[values.dtype.kind] + str(8 * values.dtype.itemsize)
        column = {"name": name, "kind": kind, "at": self._size, "n": int(values.size), **frame}
        self._columns.append(column)
        data += b"\0" * (-len(data) % 8)
        self._bytes.append(data)
        self._size += len(data)
