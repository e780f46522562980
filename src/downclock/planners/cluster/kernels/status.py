"""Codes for what has become of a task, where there are gangs or edges."""

from __future__ import annotations

UNTOLD, NEW, OPEN, DONE, GONE = range(5)
"""Not told; told at this moment; accepted; done; refused, cancelled or failed."""
