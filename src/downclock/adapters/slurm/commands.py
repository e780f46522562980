"""Slurm's commands: argument lists without a shell, one place that runs them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from downclock.errors import AdapterError

PATIENCE_S = 30.0
"""A command that takes longer is taken for one that never ends."""

_PLAIN = {"TZ": "UTC", "LC_ALL": "C", "SLURM_TIME_FORMAT": "standard"}
"""Times are written and read in UTC, whatever the machine's zone is."""


def run(words: Sequence[str]) -> str:
    """Run a command and return what it prints; bytes that are not UTF-8 are replaced.

    Raises:
        AdapterError: it is not there, does not end, or fails; with what it said.
    """
    kept = {name: value for name, value in os.environ.items() if not _filters(name)}
    try:
        done = subprocess.run(
            words,
            env={**kept, **_PLAIN},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
    except FileNotFoundError:
        raise AdapterError(f"{words[0]} is not installed: this command is for Slurm") from None
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise AdapterError(f"{words[0]} failed: {_line(str(error))}") from None
    if done.returncode:
        said = _line((done.stderr or done.stdout).decode("utf-8", "replace"))
        raise AdapterError(f"{words[0]} failed ({done.returncode}): {said}")
    return done.stdout.decode("utf-8", "replace")


def _filters(name: str) -> bool:
    """Tell whether a variable changes what Slurm's commands show, or whom they ask."""
    where = name.startswith(("SLURM_CONF", "SLURM_JWT", "SLURM_SACK"))
    return name.startswith(("SQUEUE_", "SINFO_", "SCONTROL_", "SLURM_")) and not where


def _line(text: str) -> str:
    """Return one printable line of what somebody said."""
    shown = "".join(letter if letter.isprintable() else " " for letter in " ".join(text.split()))
    return shown if len(shown) <= 300 else shown[:297] + "..."
