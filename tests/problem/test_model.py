"""The parts of a problem made in code: tasks, edges, platform, price curves."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.points import ClockRange
from downclock.problem.graph import Edges
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.price import Curve
from downclock.problem.spread import Spread
from downclock.problem.tasks import Tasks

DIAMOND = Edges(np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3]))


def test_columns_of_tasks_have_one_length() -> None:
    names = np.array(["a", "b"], dtype=object)
    two, three = np.zeros(2), np.zeros(3)
    with pytest.raises(InvalidInput, match="tasks: arrival_s has 3 rows for 2 tasks"):
        Tasks(names, two.astype(int), two, three, two, np.ones(2, dtype=int))


def test_a_deadline_before_the_arrival_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"task 't1': deadline_s=3.0 is before arrival_s=5.0"):
        Tasks.of(np.zeros(2, int), arrival_s=np.array([0.0, 5.0]), deadline_s=np.array([9.0, 3.0]))


def test_edges_have_two_ends_each() -> None:
    with pytest.raises(InvalidInput, match="edges: after has 1 rows, 'before' 2"):
        Edges(np.array([0, 1]), np.array([2]))


def test_a_topological_order_puts_every_task_after_those_before_it() -> None:
    place = np.argsort(DIAMOND.order(4))
    assert np.all(place[DIAMOND.before] < place[DIAMOND.after])


def test_edges_in_order_come_into_a_task_before_they_go_out() -> None:
    """The diamond with its edges told from the end: (1, 3) and (2, 3) behind those of 0."""
    told = Edges(np.array([2, 1, 0, 0]), np.array([3, 3, 2, 1]))
    assert list(told) == [(2, 3), (1, 3), (0, 2), (0, 1)]
    along = list(told.in_order(4))
    assert sorted(along) == sorted(DIAMOND)
    seen = {0}
    for before, after in along:
        assert before in seen
        if after != 3:
            seen.add(after)
    assert list(Edges().in_order(3)) == []


def test_the_next_slot_is_the_present_one_up_to_rounding() -> None:
    """Slots of 0.1 s: 0.3 is the third boundary though 3 * 0.1 is a little more."""
    kind = Kind("cpu", ClockRange(0.5, 1.0))
    slotted = Platform.build((kind,), (ServerSpec("s", (("cpu", 1),)),), 0.1)
    assert [slotted.slot_up(t) for t in (0.0, 0.3, 0.31)] == [0.0, 3 * 0.1, 4 * 0.1]
    assert Platform.build((kind,), (ServerSpec("s", (("cpu", 1),)),)).slot_up(0.31) == 0.31


def test_what_a_task_reaches_is_itself_and_all_after_it() -> None:
    assert DIAMOND.reach(4, np.array([1])).tolist() == [1, 3]
    assert DIAMOND.reach(4, np.array([0])).tolist() == [0, 1, 2, 3]
    assert Edges().reach(4, np.array([2])).tolist() == [2]


def test_a_cycle_is_refused_and_a_task_on_it_is_named() -> None:
    tail_into_cycle = Edges(np.array([0, 1, 2]), np.array([1, 2, 1]))
    with pytest.raises(InvalidInput, match="cycle") as caught:
        tail_into_cycle.order(3)
    assert caught.value.row in (1, 2)


def test_servers_expand_to_processors_and_chips() -> None:
    """Two servers of a chip-wide pair and a single core, then one with a clock per core."""
    kinds = (Kind("big", ClockRange(0.5, 2.0), idle_w=3.0), Kind("small", ClockRange(0.5, 1.0)))
    platform = Platform.build(
        kinds,
        (
            ServerSpec("a", (("big", 2), ("small", 1)), count=2, chip_wide=True, zone="west"),
            ServerSpec("b", (("small", 2),), host_w=7.0, zone="east"),
        ),
    )
    assert platform.kind.tolist() == [0, 0, 1, 0, 0, 1, 1, 1]
    assert platform.chip.tolist() == [0, 0, 1, 2, 2, 3, 4, 5]
    assert platform.server.tolist() == [0, 0, 0, 1, 1, 1, 2, 2]
    assert platform.server_name.tolist() == ["a1", "a2", "b"]
    assert platform.first_processor.tolist() == [0, 3, 6, 8]
    assert platform.idle_w.tolist() == [3.0, 3.0, 0.0, 3.0, 3.0, 0.0, 0.0, 0.0]
    assert [platform.zones[zone] for zone in platform.zone] == ["west", "west", "east"]
    names = ["a1/1", "a1/2", "a1/3", "a2/1", "a2/2", "a2/3", "b/1", "b/2"]
    assert platform.processor_names().tolist() == names
    assert [platform.processor_name(processor) for processor in range(8)] == names


def test_two_servers_of_one_name_are_refused() -> None:
    kind = Kind("core", ClockRange(0.5, 1.0))
    specs = (ServerSpec("s", (("core", 1),), count=2), ServerSpec("s2", (("core", 1),)))
    with pytest.raises(InvalidInput, match="server 's2': is the name of two servers"):
        Platform.build((kind,), specs)


HOUR = 3600.0


@pytest.mark.parametrize("days", [1, 2, 7, 9])
@pytest.mark.parametrize("shift_days", [-400, -1, 0, 1, 400])
def test_a_curve_is_repeated_in_whole_days_or_weeks(days: int, shift_days: int) -> None:
    """Outside what is known, the same hour (and weekday, from a week on) of its nearest part."""
    start = HOUR * np.arange(24.0 * days) + 24 * HOUR * shift_days
    curve = Curve(start, np.arange(start.size, dtype=float), start[-1] + HOUR)
    longer = curve.around(0.0, 20 * 24 * HOUR)
    hours = np.arange(20 * 24) - 24 * shift_days  # of the curve's own
    period = 24 * 7 * (days // 7) if days >= 7 else 24 * days
    after = 24 * days - period + (hours - 24 * days) % period
    expected = np.where(hours < 0, hours % period, np.where(hours < 24 * days, hours, after))
    assert longer.at(HOUR * np.arange(20 * 24) + 60.0).tolist() == expected.tolist()
    assert longer.covers(0.0, 20 * 24 * HOUR)


def test_a_value_without_an_end_held_before_its_first_row_too() -> None:
    assert Curve(np.array([50.0]), np.array([3.0]), np.inf).around(0.0, 9.0).at(0.0) == 3.0


@pytest.mark.parametrize(
    ("end_s", "rule"),
    [
        (0.0, "end_s=0.0 must be after the last start"),
        (1e154, r"end_s=1e\+154 must be at most 1e\+12, or infinite"),
    ],
)
def test_a_curve_ends_after_its_start_and_not_beyond_all_times(end_s: float, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        Curve(np.array([0.0]), np.array([0.3]), end_s)


def test_a_curve_is_integrated_across_its_steps() -> None:
    """10 for 2 s, then -4 for 3 s: from 1 s to 4 s that is 10 - 8."""
    curve = Curve(np.array([0.0, 2.0]), np.array([10.0, -4.0]), 5.0)
    assert curve.integral(np.array([1.0]), np.array([4.0])).tolist() == [2.0]
    assert curve.clipped().integral(np.array([1.0]), np.array([4.0])).tolist() == [10.0]
    assert curve.at(np.array([1.9, 2.0])).tolist() == [10.0, -4.0]
    with pytest.raises(InvalidInput, match="is known from 0 s to 5 s, but 4 s to 6 s is needed"):
        curve.at(np.array([4.0, 6.0]))


def test_spreads_come_back_as_written_and_draw_inside_their_range() -> None:
    texts = ["exact", "uniform:0.5:0.75", "lognormal:1.5:0.0"]
    spread = Spread.parse(texts)
    assert [spread.text(row) for row in range(3)] == texts
    drawn = spread.draw(3)
    assert drawn[0] == 1.0
    assert 0.5 <= drawn[1] <= 0.75
    assert drawn[2] == 1.5


def test_a_wide_uniform_spread_is_no_exponent() -> None:
    """Rows of all shapes were raised to powers: exp of 100,000 normals overflowed."""
    drawn = Spread.parse(["uniform:100000:1000000"] * 50).draw(1)
    assert np.all((drawn >= 1e5) & (drawn <= 1e6))


def test_columns_that_a_reader_locked_are_copied() -> None:
    """A locked array has another type for numba: every kernel would be compiled again."""
    deadline_s = np.array([5.0, 6.0])
    deadline_s.flags.writeable = False
    tasks = Tasks.of(np.zeros(2, dtype=np.int64), deadline_s=deadline_s)
    direct = Tasks(
        tasks.name, tasks.application, tasks.scale, tasks.arrival_s, deadline_s, tasks.processors
    )
    assert direct.deadline_s.flags.writeable
    assert not np.shares_memory(direct.deadline_s, deadline_s)
