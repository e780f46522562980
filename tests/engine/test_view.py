"""What a policy may look at: tasks that were told, edges among them, forecasts, nothing else."""

from __future__ import annotations

import numpy as np

import downclock as dc
from downclock.engine.tasks import TaskTable, grown
from downclock.engine.view import View
from downclock.problem.price import Curve, ZonePrices
from downclock.problem.spread import Spread

LIBRARY = dc.built_in_library("a100")


def asked(n: int, spread: Spread | None = None) -> dc.Tasks:
    tasks = dc.Tasks.of(
        ["dgemm"] * n, library=LIBRARY, deadline_s=100.0 + np.arange(n), scale=1.0 + np.arange(n)
    )
    columns = {name: getattr(tasks, name) for name in ("name", "application", "scale")}
    times = {name: getattr(tasks, name) for name in ("arrival_s", "deadline_s", "processors")}
    return dc.Tasks(**columns, **times, spread=spread)


def problem(n: int = 3, **more: object) -> dc.Problem:
    gpu = dc.Kind.of(LIBRARY, "a100")
    site = dc.Platform.build([gpu], [dc.ServerSpec("s", (("a100", 2),))])
    return dc.Problem(asked(n), LIBRARY, site, **more)


def test_a_view_knows_no_task_before_it_is_told() -> None:
    view = View(problem())
    assert len(view.tasks) == 0
    view.tasks.add(problem().tasks, np.array([2]))
    assert view.tasks.name.tolist() == ["t2"]
    assert view.problem().tasks.deadline_s.tolist() == [102.0]


def test_a_view_knows_no_edge_before_it_is_told() -> None:
    view = View(problem(edges=dc.Edges(np.array([0]), np.array([1]))))
    assert len(view.edges) == 0
    view.tasks.add(problem().tasks, np.arange(2))
    view.learn(dc.Edges(np.array([0]), np.array([1])))
    assert view.problem().edges.after.tolist() == [1]


def test_a_view_shows_the_forecast_in_the_place_of_the_price() -> None:
    hours = np.array([0.0, 3600.0])
    zone = ZonePrices(
        price=Curve(hours, np.array([10.0, 20.0]), 7200.0),
        price_forecast=Curve(hours, np.array([11.0, 12.0]), 7200.0),
    )
    view = View(problem(prices=dc.Prices((("default", zone),))))
    ((_, shown),) = view.prices.zones
    assert shown.price.value.tolist() == [11.0, 12.0]


def test_a_changed_deadline_is_seen_at_once() -> None:
    view = View(problem())
    view.tasks.add(problem().tasks, np.arange(3))
    assert view.problem().tasks.deadline_s[1] == 101.0
    view.amend(1, 500.0)
    assert view.tasks.deadline_s[1] == 500.0
    assert view.problem().tasks.deadline_s[1] == 500.0


def test_a_view_apart_shares_the_site_and_none_of_the_tasks() -> None:
    view = View(problem())
    view.tasks.add(problem().tasks, np.arange(3))
    other = view.apart()
    assert len(other.tasks) == 0
    assert other.platform is view.platform


def test_what_is_computed_once_is_shared_by_views_of_a_problem() -> None:
    view, calls = View(problem()), []
    for each in (view, view.apart(), view.over(TaskTable())):
        each.once("mine", lambda: calls.append(1))
    assert calls == [1]


def test_the_frontier_of_more_work_is_as_much_longer() -> None:
    view = View(problem())
    view.tasks.add(problem().tasks, np.arange(3))
    one, three = (view.frontier(0, np.array([i])).t_min_s[0] for i in (0, 2))
    assert three == 3.0 * one
    assert view.frontier(0, np.array([0]), stretch=1.5).t_min_s[0] == 1.5 * one


def test_tasks_keep_their_numbers_while_the_table_grows() -> None:
    table = TaskTable()
    numbers = [table.add(asked(7), np.arange(7)).tolist() for _ in range(10)]
    assert [n for part in numbers for n in part] == list(range(70))
    assert table.scale.tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0] * 10


def test_tasks_with_and_without_a_spread_stand_in_one_table() -> None:
    table = TaskTable()
    table.add(asked(2), np.arange(2))
    drawn = Spread(np.array([1]), np.array([0.5]), np.array([1.5]))
    table.add(asked(1, drawn), np.arange(1))
    table.add(asked(1), np.arange(1))
    assert table.spread is not None
    assert table.spread.shape.tolist() == [0, 0, 1, 0]
    assert table.spread.a.tolist() == [1.0, 1.0, 0.5, 1.0]


def test_a_column_grows_to_twice_its_room_and_what_is_new_is_filled() -> None:
    column = grown(np.arange(20), 21, fill=-1)
    assert column.size == 40
    assert column[:20].tolist() == list(range(20))
    assert set(column[20:].tolist()) == {-1}
    assert grown(column, 40) is column
