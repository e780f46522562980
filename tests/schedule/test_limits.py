"""Limits of a site, judged: what is drawn in all, and what runs while a server is down."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import downclock as dc
from downclock.problem.limits import Limits
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.account.power_draws import all_draws, total_draw
from downclock.schedule.schedule import ASLEEP, PowerSpans, Schedule
from downclock.schedule.verify.verify import verify
from tests.generated import random_problem
from tests.generated_schedule import random_schedule
from tests.planners.cluster.known.clusters import own_cluster


def limited(problem: Problem, limits: Limits) -> Problem:
    return replace(problem, platform=replace(problem.platform, limits=limits))


def everywhere(problem: Problem) -> np.ndarray:
    return np.ones(problem.platform.server_count, np.bool_)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_drawn_adds_up_to_the_bill(seed: int) -> None:
    problem = random_problem(seed, slot_s=None)
    schedule = random_schedule(problem, seed)
    draws = all_draws(problem, schedule.segments, schedule.spans)
    drawn = total_draw(draws, everywhere(problem))
    bill = account(problem, schedule, boundary="makespan")
    at_once = problem.platform.wake_s == 0.0
    wakes_j = float(bill.server_j[at_once, 5].sum())
    joules = float(drawn.watts @ np.diff(drawn.edge_s))
    assert joules + wakes_j == pytest.approx(bill.total_j, rel=1e-9)


def test_a_cap_is_broken_exactly_above_the_peak() -> None:
    problem = own_cluster(3, 12)
    schedule = dc.plan(problem, "race")
    draws = all_draws(problem, schedule.segments, schedule.spans)
    peak_w = total_draw(draws, everywhere(problem)).peak_w
    assert verify(limited(problem, Limits.of(peak_w)), schedule).ok
    verdict = verify(limited(problem, Limits.of(0.99 * peak_w)), schedule)
    assert verdict.rules == {"power-cap"}
    assert "the cluster draws" in str(verdict)


def test_a_zone_is_judged_by_its_own_servers() -> None:
    problem = own_cluster(3, 12)
    zone = np.where(np.arange(problem.platform.server_count) < 2, 0, 1)
    platform = replace(problem.platform, zone=zone, zones=("north", "south"))
    problem = replace(problem, platform=platform)
    schedule = dc.plan(problem, "race")
    draws = all_draws(problem, schedule.segments, schedule.spans)
    north_w = total_draw(draws, zone == 0).peak_w
    tight = Limits.of(zone_cap_w=[("north", 0.9 * north_w)])
    assert "zone 'north' draws" in str(verify(limited(problem, tight), schedule))
    assert verify(limited(problem, Limits.of(zone_cap_w=[("north", north_w)])), schedule).ok


def test_nothing_runs_or_stays_awake_on_a_server_that_is_down() -> None:
    problem = own_cluster(3, 12)
    schedule = dc.plan(problem, "race")
    row = int(np.argmax(schedule.segments.end_s - schedule.segments.start_s))
    server = int(problem.platform.server[schedule.segments.processor[row]])
    middle_s = 0.5 * (schedule.segments.start_s[row] + schedule.segments.end_s[row])
    verdict = verify(limited(problem, Limits.of(down=[(server, middle_s, middle_s + 1)])), schedule)
    assert verdict.rules == {"server-down"}
    assert "runs while its server is down" in str(verdict)
    assert "is not asleep while it is down" in str(verdict)
    late_s = schedule.makespan_s
    assert verify(limited(problem, Limits.of(down=[(server, late_s, late_s + 9)])), schedule).ok


def test_a_sleeping_server_may_be_down() -> None:
    problem = own_cluster(3, 12)
    schedule = dc.plan(problem, "race")
    used = np.unique(problem.platform.server[schedule.segments.processor])
    idle = int(np.setdiff1d(np.arange(problem.platform.server_count), used)[0])
    span = PowerSpans(*(np.array([x]) for x in (idle, ASLEEP, 0.0, 50.0)))
    spans = [
        np.append(getattr(schedule.spans, n), getattr(span, n))
        for n in ("server", "state", "start_s", "end_s")
    ]
    asleep = Schedule(schedule.segments, PowerSpans(*spans), schedule.outcomes)
    assert verify(limited(problem, Limits.of(down=[(idle, 0.0, 50.0)])), asleep).ok
