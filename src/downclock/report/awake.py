"""What a longer or shorter run costs besides itself: idling processors and hosts kept awake."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from downclock.problem.problem import Problem
from downclock.report.placement import Placement
from downclock.schedule.account.account import windows_s
from downclock.schedule.schedule import ON, Schedule
from downclock.schedule.states import States, server_states
from downclock.units import Floats, slack


@dataclass(frozen=True, slots=True, eq=False)
class AwakeServers:
    """The servers of a run while they are awake for it, a row each (s,).

    Attributes:
        run_end_s: when the run ends.
        idle_w: what its processors draw together when they run nothing.
        awake_w: what each server draws more awake and idle than asleep.
        end_s: when each goes to sleep.
        others_end_s: when the last of the other tasks ends that it is awake for.
    """

    run_end_s: float
    idle_w: float
    awake_w: Floats
    end_s: Floats
    others_end_s: Floats

    @classmethod
    def of(cls, problem: Problem, schedule: Schedule, run: Placement) -> AwakeServers:
        """Look up the servers of a run."""
        platform, segments = problem.platform, schedule.segments
        server = platform.server[segments.processor]
        mine = np.unique(platform.server[run.processors])
        window_s = windows_s(problem, schedule, "last-task")
        states, _ = server_states(platform, schedule.spans, window_s)
        begin_s, end_s = np.array([_awake(states, each, run) for each in mine]).T
        others = [segments.end_s[(server == each) & (segments.task != run.task)] for each in mine]
        ends = zip(others, begin_s, end_s, strict=True)
        last_s = np.array([s[(s > a) & (s <= b)].max(initial=a) for s, a, b in ends])
        idle_w = np.bincount(platform.server, platform.idle_w, platform.server_count)[mine]
        asleep_w = np.where(end_s < window_s[mine] - slack(end_s), platform.sleep_w[mine], 0.0)
        awake_w = platform.host_w[mine] + idle_w - asleep_w
        own_w = float(platform.idle_w[run.processors].sum())
        return cls(run.end_s, own_w, awake_w, end_s, last_s)

    def change_j(self, end_s: float) -> float:
        """What is used more if the run ended then instead, its own energy left out."""
        awake_until = np.maximum(self.others_end_s, self.run_end_s)
        at_once = np.abs(self.end_s - awake_until) <= 1e3 * slack(awake_until)
        later = np.maximum(np.where(at_once, self.others_end_s, self.end_s), end_s)
        host_j = float(((later - self.end_s) * self.awake_w).sum())
        return host_j - self.idle_w * (end_s - self.run_end_s)


def _awake(states: States, server: int, run: Placement) -> tuple[float, float]:
    """From when to when a server is awake around a run; the run's own times where it is not."""
    on = states.only(ON)
    rows = np.flatnonzero((on.server == server) & (on.start_s <= run.start_s + slack(run.start_s)))
    if not rows.size:
        return run.start_s, run.end_s
    return float(on.start_s[rows[-1]]), max(float(on.end_s[rows[-1]]), run.end_s)
