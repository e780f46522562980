"""Planning against what really happens: a reserve for estimates, and plans that follow the ends.

With a reserve *r* every task is planned as if it needed ``1 + r`` of its estimate: the clock is
fast enough for that. Unhurried tasks keep their clock, as the cheapest clock does not depend on
the amount of work. What is not needed is reclaimed when a task ends.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from downclock.engine.policy import Decisions, View
from downclock.errors import InvalidInput
from downclock.units import Floats

if TYPE_CHECKING:
    from downclock.planners.cluster.kernels import plan as kernel


@runtime_checkable
class Rolling(Protocol):
    """A policy that plans anew as tasks end sooner or later than estimated."""

    @property
    def name(self) -> str:
        """The name in the catalogue, with parameters."""
        ...

    def roll(self, view: View, work: Floats) -> Decisions:
        """Decide on everything while tasks really need ``work`` of their estimates (n,).

        What a task needs is known when it ends and not before.
        """
        ...


def checked_reserve(reserve: float) -> float:
    """Return the reserve if it is a sensible number."""
    if not 0.0 <= reserve < float("inf"):
        raise InvalidInput("must be finite and not negative", field="reserve", value=reserve)
    return reserve


def with_reserve(view: View, reserve: float) -> View:
    """Return the view of a problem where every task needs ``1 + reserve`` of its estimate."""
    if reserve == 0.0:
        return view

    def compute() -> View:
        tasks = view.problem.tasks
        more = replace(tasks, scale=tasks.scale * (1.0 + reserve))
        return View(replace(view.problem, tasks=more))

    return view.once(("reserve", reserve), compute)


def set_ratio(state: kernel.Plan, work: Floats | float, reserve: float) -> None:
    """Say how long tasks really run, as a part of what is planned for them."""
    state.ratio[:] = np.asarray(work) / (1.0 + reserve)
