"""The engine: feeds policies, keeps decisions, lists events."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.engine import Engine, plan
from downclock.engine.events import WORDS, events
from downclock.errors import InvalidInput
from downclock.planners.catalog import policy
from downclock.problem.platform import Platform, ServerSpec
from downclock.schedule.schedule import PENDING
from downclock.workloads import mei
from tests.generated import random_problem
from tests.planners.lists.table3 import table3


def test_live_feeding_equals_the_plan() -> None:
    problem = mei.online(5, utilisation=0.05, initial_utilisation=0.01)
    chosen = policy("edl:theta=0.9,rho=120")
    whole = plan(problem, chosen)
    engine = Engine(problem, chosen)
    arrival = problem.tasks.arrival_s
    times = np.unique(arrival)
    for now, then in zip(times, [*times[1:], np.inf], strict=True):
        engine.feed(np.flatnonzero(arrival == now), float(then))
    live = engine.schedule()
    assert np.array_equal(live.segments.start_s, whole.segments.start_s)
    assert np.array_equal(live.segments.processor, whole.segments.processor)
    assert np.array_equal(live.spans.end_s, whole.spans.end_s)


def test_call_me_is_when_the_next_server_falls_asleep() -> None:
    problem = table3(per_server=1, deadline_s=np.full(5, np.inf))
    engine = Engine(problem, policy("edl:rho=7,start=stream"))
    assert engine.call_me_s == 0.0
    engine.feed(np.arange(5), 10.0)
    total = problem.frontier(0).t_opt_s.sum()
    assert engine.call_me_s == pytest.approx(total + 7.0)
    engine.feed(np.arange(0), np.inf)
    assert engine.call_me_s == np.inf
    assert engine.schedule().spans.end_s == pytest.approx([total + 7.0])


def test_what_was_not_fed_is_pending() -> None:
    problem = table3()
    engine = Engine(problem, policy("edl"))
    engine.feed(np.array([1, 3]), 5.0)
    pending = engine.schedule().outcomes.status == PENDING
    assert pending.tolist() == [True, False, True, False, True]


def test_an_objection_stops_the_engine_in_one_sentence() -> None:
    graph = random_problem(2, edges=True, slot_s=None, chip_wide=False, tasks=12)
    with pytest.raises(InvalidInput, match="policy 'edl': the tasks form a graph"):
        plan(graph, policy("edl"))


def test_the_event_log_tells_the_story_in_order() -> None:
    """Table 3 on two-pair servers that take no time to wake, theta = 0.9."""
    problem = table3(deadline_s=np.array([50.0, 20.0, 60.0, 100.0, 300.0]))
    schedule = plan(problem, policy("edl:theta=0.9,rho=2"))
    lines = events(problem, schedule).lines(problem)
    assert lines[:6] == [
        "0 arrive J1",
        "0 arrive J2",
        "0 arrive J3",
        "0 arrive J4",
        "0 arrive J5",
        "0 refuse J2",
    ]
    assert lines[6] == "0 wake s1"
    assert lines[-1].endswith("sleep s1")
    assert [line.split()[1] for line in lines].count("start") == 4
    assert [line.split()[1] for line in lines].count("finish") == 4


def test_events_are_sorted_by_time_kind_and_position() -> None:
    problem = mei.online(1, utilisation=0.1, initial_utilisation=0.02)
    log = events(problem, plan(problem, policy("edl:rho=0,slot=60")))
    key = np.lexsort((np.arange(len(log)), log.kind, log.time_s))
    assert np.array_equal(key, np.arange(len(log)))
    again = events(problem, plan(problem, policy("edl:rho=0,slot=60")))
    assert np.array_equal(log.task, again.task)
    counts = dict(zip(WORDS, np.bincount(log.kind, minlength=6).tolist(), strict=True))
    assert counts["arrive"] == counts["start"] == counts["finish"] == len(problem.tasks)
    assert counts["wake"] == counts["sleep"] > 0


def test_a_wake_that_takes_time_is_one_event() -> None:
    problem = table3()
    slow = ServerSpec("s", (("pair", 2),), count=4, wake_s=4.0)
    problem = replace(problem, platform=Platform.build(problem.platform.kinds, (slow,)))
    log = events(problem, plan(problem, policy("edl")))
    assert log.time_s[log.kind == WORDS.index("wake")].tolist() == [0.0, 0.0]
    on = ServerSpec("s", (("pair", 2),), count=4, wake_s=4.0, initially_on=True)
    awake = replace(problem, platform=Platform.build(problem.platform.kinds, (on,)))
    log = events(awake, plan(awake, policy("edl")))
    assert not np.any(log.kind == WORDS.index("wake"))
