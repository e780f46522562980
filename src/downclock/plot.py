"""Figures of plans, for notebooks and papers; each function returns a matplotlib figure.

import downclock as dc
from downclock import plot

plot.gantt(problem, schedule).savefig("gantt.pdf")
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from downclock.report import figures
from downclock.report.figures import save_figure as save
from downclock.study.compare import Comparison

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from downclock.problem.problem import Problem
    from downclock.schedule.account.bill import Boundary
    from downclock.schedule.schedule import Schedule

__all__ = ["compare", "frontier", "gantt", "power", "save"]


def gantt(problem: Problem, schedule: Schedule) -> Figure:
    """Who runs what when: a row per processor, coloured by core clock."""
    return figures.gantt_figure(problem, schedule)


def power(problem: Problem, schedule: Schedule, *, boundary: Boundary = "last-task") -> Figure:
    """Power over time, stacked by part, and the price where there is one."""
    return figures.power_figure(problem, schedule, boundary=boundary)


def frontier(problem: Problem, task: str | int, schedule: Schedule | None = None) -> Figure:
    """Energy against run time of a task, with the point a schedule uses."""
    from downclock.report.explain import task_row

    return figures.frontier_figure(problem, task_row(problem, task), schedule)


def compare(comparisons: Comparison | Sequence[Comparison]) -> Figure:
    """Energy by part of every policy compared."""
    return figures.compare_figure(comparisons)
