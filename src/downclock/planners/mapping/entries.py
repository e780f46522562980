"""Catalogue entries of the CPU-GPU mapping: liu's schemes made safe, and replanning."""

from __future__ import annotations

from typing import get_args

from downclock.engine.policy import Policy
from downclock.errors import InvalidInput
from downclock.planners.mapping.mapping import Rules
from downclock.planners.mapping.policy import LiuPolicy
from downclock.planners.mapping.queue import READINGS
from downclock.planners.mapping.replan import Replan, Until

SCHEMES = ("static", "dynamic")
"""Those that promise no late job; Aggressive and ERF are for experiments (papers/liu)."""

SAFE = ("safe", "safe-locked")
"""Readings that keep every promise; the others are for experiments."""


def _require_one(known: tuple[str, ...], field: str, value: str) -> None:
    if value not in known:
        raise InvalidInput(f"must be one of {', '.join(known)}", field=field, value=value)


def liu(scheme: str, rules: str, thr: float) -> Policy:
    """Static or Dynamic of liu; ``rules`` names the reading, ``thr`` balances the loads."""
    _require_one(SCHEMES, "scheme", scheme)
    _require_one(SAFE, "rules", rules)
    if not thr >= 0.0:
        raise InvalidInput("must not be negative", field="thr", value=thr)
    made = Rules("static" if scheme == "static" else "dynamic", READINGS[rules], thr)
    return LiuPolicy("liu", made)


def replanned(until: str, reserve: float) -> Policy:
    """Energy-aware mapping; ``until`` is the energy boundary, ``reserve`` the time kept free."""
    _require_one(get_args(Until), "until", until)
    if not 0.0 <= reserve < 1.0:
        raise InvalidInput("must be at least 0 and below 1", field="reserve", value=reserve)
    return Replan("replan", "makespan" if until == "makespan" else "horizon", reserve=reserve)
