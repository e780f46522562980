"""What a sweep has done so far, on disk: a log that survives any end, and the table made of it.

The log has a line a run, written in one piece as soon as the run is done. What a killed process
left of its last line is dropped when the log is opened again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from downclock.errors import InvalidInput
from downclock.files import decoded, read_bytes
from downclock.tabular import write_columns

FORMAT = "downclock-sweep/1"
SAFE_S = 1.0
"""At most so many seconds of results are lost when the machine loses its power."""


class Log:
    """The log of one folder, held by one sweep at a time.

    Attributes:
        rows: what it holds, by the key of the run.
    """

    def __init__(self, path: Path, *, fresh: bool = False) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
        except OSError as error:
            rule = f"cannot be written: {error.strerror}"
            raise InvalidInput(rule, source=path) from None
        self._safe_s = time.monotonic()
        self.rows: dict[str, dict[str, Any]] = {}
        try:
            _hold(self._file, path)
            self._open(path, fresh)
        except BaseException:
            os.close(self._file)
            raise

    def _open(self, path: Path, fresh: bool) -> None:
        whole = b"" if fresh else read_bytes(path)
        whole = whole[: whole.rfind(b"\n") + 1]
        os.ftruncate(self._file, len(whole))
        if not whole:
            self._write({"format": FORMAT})
            return
        head, *lines = decoded(whole, path).split("\n")[:-1]
        if head != json.dumps({"format": FORMAT}):
            rule = f"is not a log of this version ({FORMAT}); --fresh starts a new one"
            raise InvalidInput(rule, source=path, line=1)
        for number, line in enumerate(lines, 2):
            try:
                entry = json.loads(line)
                self.rows[entry["key"]] = entry["row"]
            except (ValueError, KeyError, TypeError):
                raise InvalidInput("is not a result", source=path, line=number) from None

    def add(self, key: str, row: dict[str, Any]) -> None:
        """Keep a result; it is there whatever happens to this process next."""
        self.rows[key] = row
        self._write({"key": key, "row": row})
        if time.monotonic() - self._safe_s > SAFE_S:
            os.fsync(self._file)
            self._safe_s = time.monotonic()

    def _write(self, entry: Mapping[str, Any]) -> None:
        os.write(self._file, (json.dumps(entry, ensure_ascii=False) + "\n").encode())

    def close(self) -> None:
        """Leave it to others, safe on disk."""
        os.fsync(self._file)
        os.close(self._file)


def _hold(file: int, path: Path) -> None:
    """Hold the log for this process, where the system can."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidInput("another sweep writes there now", source=path) from None


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Write the rows as one tidy Parquet; a column that a row lacks is empty there."""
    names = dict.fromkeys(name for row in rows for name in row)
    last = [name for name in ("version", "machine", "seconds") if name in names]
    ordered = [name for name in names if name not in last] + last
    write_columns({name: _column([row.get(name) for row in rows]) for name in ordered}, path)


def _column(values: list[Any]) -> list[Any]:
    """Return the values, as text where words and numbers are mixed."""
    kinds = {type(value) for value in values if value is not None}
    if str in kinds and len(kinds) > 1:
        return [None if value is None else str(value) for value in values]
    return [float(v) if isinstance(v, int) else v for v in values] if float in kinds else values
