"""The order in which planned tasks are placed anew."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from downclock.planners.cluster.kernels import replan as pack_replan

in_turn = getattr(pack_replan._in_turn, "py_func", pack_replan._in_turn)


def test_urgent_tasks_come_by_slack_to_the_last_digit_then_the_longest() -> None:
    run_s = np.array([100.0, 100.0, 500.0, 100.0, 300.0])
    slack_s = np.array([9.00002, 9.0, 1e4, 9.00001, 1e4])  # urgent: less than a fifth of the run
    now_s = 50.0
    order = in_turn(
        SimpleNamespace(kind=np.zeros(1, np.int64)),
        SimpleNamespace(arrival_s=np.zeros(5), deadline_s=now_s + run_s + slack_s),
        SimpleNamespace(free_s=run_s),
        np.arange(5),
        np.zeros(5, np.int64),
        now_s,
    )
    assert order.tolist() == [1, 3, 0, 2, 4]


def test_tasks_that_are_alike_keep_their_order() -> None:
    order = in_turn(
        SimpleNamespace(kind=np.zeros(1, np.int64)),
        SimpleNamespace(arrival_s=np.zeros(3), deadline_s=np.full(3, 1e3)),
        SimpleNamespace(free_s=np.full(3, 10.0)),
        np.arange(3),
        np.zeros(3, np.int64),
        0.0,
    )
    assert order.tolist() == [0, 1, 2]
