"""The scheduler's memory: an append-only log of what was told, decided and carried out.

SQLite with a write-ahead log and full sync: what was appended survives a kill at any moment, and
nothing is half written. Each row is one JSON object; the state is what replaying them makes.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from downclock.errors import DownclockError, InvalidInput

SCHEMA = 1
BEGUN, MOMENT, DECIDED, CARRIED = "begun", "moment", "decided", "carried"
"""Kinds of rows: a plan was begun anew; facts of one moment; what was decided; what was done."""

_DAMAGED = "read: move it away, and the plan is begun anew"

_TABLE = """
CREATE TABLE IF NOT EXISTS log (
  id INTEGER PRIMARY KEY, at_s REAL NOT NULL, kind TEXT NOT NULL, entry TEXT NOT NULL
)
"""


class Log:
    """One log file; ``dry`` reads what is there and writes nothing."""

    def __init__(self, path: Path, *, dry: bool = False) -> None:
        self.path, self.dry = path, dry
        self._lock: int | None = None
        try:
            self._db = self._opened()
        except (sqlite3.Error, OSError, ValueError) as error:
            raise InvalidInput(f"cannot be opened: {error}", source=path) from None

    def _opened(self) -> sqlite3.Connection:
        if self.dry:
            if not self.path.exists():
                made = sqlite3.connect(":memory:", check_same_thread=False)
                made.execute(_TABLE)
                return made
            # A log that nobody writes has no file beside it, and a reader may not be allowed one.
            alone = "" if Path(f"{self.path}-wal").exists() else "&immutable=1"
            where = f"{self.path.absolute().as_uri()}?mode=ro{alone}"
            found = sqlite3.connect(where, uri=True, check_same_thread=False, timeout=30)
            self._require_version(found)
            return found
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._take()
        made = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=30)
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("PRAGMA synchronous=FULL")
        self._require_version(made)
        made.execute(_TABLE)
        made.execute(f"PRAGMA user_version={SCHEMA}")
        return made

    @staticmethod
    def _require_version(found: sqlite3.Connection) -> None:
        """Refuse what is no log, or one of another time."""
        version = found.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, SCHEMA):
            raise sqlite3.DatabaseError(f"it is of version {version}, this is {SCHEMA}")

    def _take(self) -> None:
        """Refuse to write where another one does: two planners would fight."""
        lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            rule = "is in use: another downclock slurm apply or watch is running"
            raise InvalidInput(rule, source=self.path) from None
        self._lock = lock

    def append(self, at_s: float, rows: list[tuple[str, Any]]) -> None:
        """Add rows, all of them or none.

        Raises:
            DownclockError: they cannot be written; whoever goes on without them forgets them.
        """
        if self.dry or not rows:
            return
        told = [(at_s, kind, json.dumps(entry, separators=(",", ":"))) for kind, entry in rows]
        with self._blamed("written: mend that, and start it again"):
            try:
                self._db.execute("BEGIN IMMEDIATE")
                self._db.executemany("INSERT INTO log (at_s, kind, entry) VALUES (?, ?, ?)", told)
                self._db.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    self._db.execute("ROLLBACK")
                raise

    def rows(self, since: int = 0) -> Iterator[tuple[int, float, str, Any]]:
        """Rows after a number, in order: number, when, kind, entry.

        Raises:
            DownclockError: the file is damaged.
        """
        asked = "SELECT id, at_s, kind, entry FROM log WHERE id > ? ORDER BY id"
        with self._blamed(_DAMAGED):
            for number, at_s, kind, entry in self._db.execute(asked, (since,)):
                yield number, at_s, kind, json.loads(entry)

    def last_two(self, kind: str) -> tuple[int, int]:
        """Numbers of the last but one and the last row of a kind; 0: none."""
        asked = "SELECT id FROM log WHERE kind = ? ORDER BY id DESC LIMIT 2"
        with self._blamed(_DAMAGED):
            found = [int(row[0]) for row in self._db.execute(asked, (kind,))]
        return (found[-1], found[0]) if found else (0, 0)

    @contextmanager
    def _blamed(self, verb: str) -> Iterator[None]:
        """Name the file in what goes wrong."""
        try:
            yield
        except (sqlite3.Error, json.JSONDecodeError) as error:
            raise DownclockError(f"{self.path}: cannot be {verb} ({error})") from None

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def delete(self) -> None:
        """Close and delete it, with what belongs to it."""
        self.close()
        for tail in ("", "-wal", "-shm", ".lock"):
            Path(f"{self.path}{tail}").unlink(missing_ok=True)
