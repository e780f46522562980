"""Sleep: how long an idle server stays awake (dynamic resource sleep, mei2021 section 4.2.2)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np

from downclock.problem.platform import Platform
from downclock.quantities import MOST
from downclock.units import Floats

Patience: TypeAlias = float | Literal["break-even", "never"]
"""Seconds an idle server stays awake (the papers' rho); until idling cost as much as waking; or
for good."""


def patience_s(rule: Patience, platform: Platform) -> Floats:
    """Patience of every server (s,); infinite where it is longer than any time we know."""
    if rule == "never":
        return np.full(platform.server_count, np.inf)
    wait_s = np.full(platform.server_count, 0.0 if rule == "break-even" else float(rule))
    if rule == "break-even":
        idle_w = np.bincount(
            platform.server, weights=platform.idle_w, minlength=platform.server_count
        )
        saved_w = idle_w + platform.host_w - platform.sleep_w
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            wait_s = np.where(saved_w > 0.0, platform.wake_j / saved_w, np.inf)
    return np.where(wait_s > MOST["s"], np.inf, wait_s)
