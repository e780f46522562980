"""The papers' rows as they were written, read back."""

from __future__ import annotations

import csv
from pathlib import Path

from downclock.papers.rows import Row


def read_rows(path: Path) -> list[Row]:
    """Read rows that were written as CSV."""
    numbers = ("published", "ours", "low", "high")
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Row(
                **{  # type: ignore[arg-type]
                    **record,
                    **{name: float(record[name]) if record[name] else None for name in numbers},
                    "sets": int(record["sets"]),
                    "beside": record["beside"].lower() == "true",
                }
            )
            for record in csv.DictReader(file)
        ]
