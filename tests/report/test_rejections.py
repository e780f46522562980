"""Rejections: the earliest deadline that is named can be met, no earlier one; words are true."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import ClockRange
from downclock.power.profiles import CpuProfiles
from downclock.problem.calendar import epoch_of
from downclock.problem.graph import Edges
from downclock.problem.limits import Limits
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.report.explain import explain
from downclock.report.openings import Opening, Openings, shared_windows
from downclock.report.rejections import about, rejections, rounded_up
from downclock.schedule.schedule import DONE, REJECTED, Outcomes, PowerSpans, Schedule, Segments
from downclock.schedule.verify.verify import verify


def drawn(seed: int, jobs: int = 24) -> Problem:
    """Jobs and gangs on two kinds, more than fit; the second kind takes 3.1 times as long."""
    rng = np.random.default_rng(seed)
    columns = [np.array(each) for each in ([100.0, 310.0], [90.0, 60.0], [3.0, 3.0], [10.0, 10.0])]
    names = np.array(["work"], dtype=object)
    group, row = np.zeros((1, 2), dtype=np.int64), np.array([[0, 1]])
    library = Library(names, ("fast", "slow"), (CpuProfiles(*columns),), group, row)
    kinds = tuple(Kind(name, ClockRange(0.5, 1.0), idle_w=5.0) for name in ("fast", "slow"))
    servers = (
        ServerSpec("f", (("fast", 4),), 2, wake_s=7.0, wake_j=50.0),
        ServerSpec("s", (("slow", 2),), 2, initially_on=True),
    )
    arrival_s = np.sort(rng.uniform(0.0, 300.0, jobs))
    tasks = Tasks.of(
        np.zeros(jobs, dtype=np.int64),
        scale=rng.uniform(0.5, 3.0, jobs),
        arrival_s=arrival_s,
        deadline_s=arrival_s + rng.uniform(60.0, 700.0, jobs),
        processors=rng.choice([1, 2, 4, 8], jobs, p=[0.5, 0.2, 0.2, 0.1]),
    )
    limits = Limits.of(down=[(1, 200.0, 260.0)])
    return Problem(tasks, library, Platform.build(kinds, servers, limits=limits))


def inserted(problem: Problem, schedule: Schedule, task: int, found: Opening) -> Schedule:
    """The schedule with one task more, where the opening is; servers are on whenever they can."""
    platform, segments = problem.platform, schedule.segments
    many = int(problem.tasks.processors[task])
    clash = (segments.start_s < found.end_s) & (segments.end_s > found.start_s)
    free = platform.kind == found.kind
    free[segments.processor[clash]] = False
    room = np.bincount(platform.server[free], minlength=platform.server_count)
    able = room >= min(many, np.bincount(platform.server[platform.kind == found.kind]).max())
    first = [found.server, *np.flatnonzero(able & (np.arange(able.size) != found.server))]
    rows = np.concatenate([np.flatnonzero(free & (platform.server == each)) for each in first])
    rows = rows[:many]
    point = problem.frontier(found.kind).at(found.end_s - found.start_s, np.array([task])).points
    added = {
        "task": np.full(many, task), "attempt": np.zeros(many, np.int64), "processor": rows,
        "start_s": np.full(many, found.start_s), "end_s": np.full(many, found.end_s),
        "core": np.full(many, point[0, 0]), "memory": np.full(many, point[0, 1]),
        "volt": np.full(many, point[0, 2]), "share": np.ones(many),
    }  # fmt: skip
    both = {name: np.concatenate([getattr(segments, name), more]) for name, more in added.items()}
    status = schedule.outcomes.status.copy()
    status[task] = DONE
    return replace(
        schedule,
        segments=Segments(**both),
        outcomes=replace(schedule.outcomes, status=status),
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_earliest_deadline_can_be_met_and_no_earlier_one(seed: int) -> None:
    problem = drawn(seed)
    schedule = without_power(plan(replace_limits(problem), policy("race")))
    free = Openings(problem, schedule)
    left = np.flatnonzero(schedule.outcomes.status == REJECTED)
    assert left.size
    for task in left:
        found = free.earliest(int(task))
        assert found is not None
        tasks = problem.tasks
        deadline_s = tasks.deadline_s.copy()
        deadline_s[task] = found.end_s
        later = replace(problem, tasks=replace(tasks, deadline_s=deadline_s))
        broken = _rules(later, inserted(later, schedule, int(task), found))
        assert broken <= _rules(later, schedule), (task, found)
        assert found.end_s == pytest.approx(slowly(problem, schedule, int(task)))


def replace_limits(problem: Problem) -> Problem:
    """Lists refuse downtimes: the schedule is made without, so that none may cover one."""
    return replace(problem, platform=replace(problem.platform, limits=Limits()))


def without_power(schedule: Schedule) -> Schedule:
    """Spans are another question: which servers stay awake."""
    none = np.empty(0, dtype=np.int64)
    return replace(schedule, spans=PowerSpans(none, none, none * 1.0, none * 1.0))


def _rules(problem: Problem, schedule: Schedule) -> set[str]:
    awake = {"segment-asleep", "server-asleep", "server-down", "asleep", "power"}
    return {rule for rule, _ in verify(problem, schedule).counts if rule not in awake}


def slowly(problem: Problem, schedule: Schedule, task: int) -> float:
    """The earliest end by trying every start that could be one, server by server."""
    platform, segments, limits = problem.platform, schedule.segments, problem.platform.limits
    many, best = int(problem.tasks.processors[task]), np.inf
    up_s = np.where(platform.initially_on, 0.0, platform.wake_s)
    back_s = limits.to_s + platform.wake_s[limits.server]
    starts = np.unique([problem.tasks.arrival_s[task], *segments.end_s, *up_s, *back_s])
    starts = starts[starts >= problem.tasks.arrival_s[task]]
    for k in range(len(platform.kinds)):
        length_s = problem.frontier(k).t_min_s[task]
        size = np.bincount(platform.server[platform.kind == k], minlength=platform.server_count)
        for start_s in starts[starts + length_s < best]:
            busy = (segments.start_s < start_s + length_s) & (segments.end_s > start_s)
            free = (platform.kind == k) & (start_s >= up_s[platform.server])
            free[segments.processor[busy]] = False
            for server, from_s, to_s in zip(limits.server, limits.from_s, back_s, strict=True):
                if from_s < start_s + length_s and to_s > start_s:
                    free[platform.server == server] = False
            room = np.bincount(platform.server[free], minlength=platform.server_count)
            whole = size[(room == size) & (size > 0)].sum()
            if room.max() >= many or (size.max() < many <= whole):
                best = start_s + length_s
                break
    return best


def test_windows_that_touch_are_open_together() -> None:
    group = np.array([0, 0, 1])
    where, from_s, to_s = shared_windows(
        group, np.array([0.0, 5.0, 0.0]), np.array([5.0, 9.0, 9.0]), np.ones(3, np.int64), 2
    )
    assert (where.tolist(), from_s.tolist(), to_s.tolist()) == ([0], [5.0], [5.0])


def by_hand() -> tuple[Problem, Schedule]:
    """`first` fills the fast server until 100 s; the others have reasons of all sorts."""
    problem = drawn(0, jobs=5)
    servers = (ServerSpec("f", (("fast", 2),)), ServerSpec("s", (("slow", 2),)))
    tasks = Tasks.of(
        np.zeros(5, dtype=np.int64),
        name=np.array(["first", "tight", "pair", "hopeless", "after"], dtype=object),
        scale=np.array([1.0, 1.0, 1.0, 10.0, 0.1]),
        processors=np.array([2, 1, 2, 1, 1]),
        deadline_s=np.array([100.0, 150.0, 150.0, 500.0, 900.0]),
    )
    platform = Platform.build(problem.platform.kinds, servers)
    edges = Edges(np.array([3]), np.array([4]))
    epoch = epoch_of("2026-03-02T14:00:00+00:00")
    problem = Problem(tasks, problem.library, platform, edges=edges, epoch=epoch)
    rows = np.zeros(2, dtype=np.int64)
    segments = Segments.of(
        rows, np.array([0, 1]), rows * 1.0, rows + 100.0, np.tile([1.0, 1.0, 1.0], (2, 1))
    )
    reason = np.array(["", "no", "no", "no", "a task before it is not done"], dtype=object)
    outcomes = Outcomes(np.array([DONE, *[REJECTED] * 4]), reason, np.ones(5))
    spans = PowerSpans(rows[:0], rows[:0], rows[:0] * 1.0, rows[:0] * 1.0)
    return problem, Schedule(segments, spans, outcomes, policy="by hand")


def test_words_are_in_the_users_units() -> None:
    problem, schedule = by_hand()
    tight, pair, hopeless, after = rejections(problem, schedule)
    assert tight.why == "no fast is free long enough before Mon 14:02:30; slow would need 5.17 min"
    assert (tight.earliest_s, tight.possible) == (240.0, "Mon 14:04 on f")
    assert pair.why.startswith("no 2 fast are free together long enough before Mon 14:02:30;")
    assert hopeless.why == (
        "fast would need 16.7 min, slow would need 51.7 min at full speed;"
        " its deadline Mon 14:08:20 leaves 8.33 min"
    )
    assert hopeless.possible == "Mon 14:19 on f, if what follows it may end later too"
    assert after.why == "hopeless, which it waits for, is not done"
    assert np.isnan(after.earliest_s)


def test_room_that_a_policy_did_not_use_is_said() -> None:
    problem, schedule = by_hand()
    deadline_s = problem.tasks.deadline_s.copy()
    deadline_s[1] = 200.0
    roomy = replace(problem, tasks=replace(problem.tasks, deadline_s=deadline_s))
    told = rejections(roomy, schedule)[0].why
    assert told == "the policy turned it down, though there is room for it: no"
    said = explain(roomy, schedule, "tight").start
    assert said[1] == "earliest deadline: beside this plan it could end by Mon 14:04 on f"


def test_moments_are_rounded_up_and_durations_short() -> None:
    problem, _ = by_hand()
    assert rounded_up(61.0, problem) == 120.0
    assert rounded_up(123456.7, replace(problem, epoch=None)) == 123457.0
    assert [about(s) for s in (-1.0, 30.0, 300.0, 11160.0, 3e5)] == [
        "0 s", "30 s", "5 min", "3.1 h", "3.47 days",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("cap_w", "words"),
    [
        (40.0, "alone and at its slowest 46.25 W would be drawn; the cluster may draw 40 W"),
        (100.0, "power beside the others is not; the cluster may draw 100 W"),
    ],
)
def test_words_name_the_cap_that_keeps_a_task_out(cap_w: float, words: str) -> None:
    """A core draws 10 + 90 / 8 W at half its clock, the other idles at 5 W, the host takes 20 W."""
    names, columns = np.array(["work"], dtype=object), (100.0, 90.0, 3.0, 10.0)
    library = Library.of_one_kind(names, "core", CpuProfiles(*(np.array([c]) for c in columns)))
    kind = Kind("core", ClockRange(0.5, 1.0), idle_w=5.0)
    spec = ServerSpec("s", (("core", 2),), 1, host_w=20.0)
    platform = Platform.build((kind,), (spec,), limits=Limits.of(cap_w))
    tasks = Tasks.of(np.zeros(2, dtype=np.int64), deadline_s=np.full(2, 120.0))
    problem = Problem(tasks, library, platform)
    schedule = plan(problem, policy("known:effort=0.01").tuned(problem))
    found = rejections(problem, schedule)
    assert found
    assert words in found[-1].why
    assert np.isnan(found[-1].earliest_s)


def test_a_job_that_cannot_wait_for_a_server_to_wake_is_told_so() -> None:
    """At full speed it takes 100 s, a server wakes in 7 s, and it is due in 105 s."""
    site = replace(drawn(1).platform, limits=Limits())
    problem = replace(drawn(1), tasks=Tasks.of([0], deadline_s=105.0), platform=site)
    refused = rejections(problem, plan(problem, policy("race")))
    assert [each.why for each in refused] == [
        "fast would need 1.67 min after waking for 7 s, slow would need 5.17 min at full speed;"
        " its deadline 105 s leaves 1.75 min"
    ]
    assert refused[0].earliest_s == pytest.approx(107.0)
