"""Codes for why a task has no place; `engine.reasons` has the words."""

from __future__ import annotations

NO_TIME, NO_ROOM, NOWHERE, NO_WAKE = 1, 2, 3, 4
"""No clock is fast enough; every processor is taken for too long; nothing works that could run it,
though it was accepted; what is awake is taken, and waking another server takes too long."""
