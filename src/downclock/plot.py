"""Figures of plans, for notebooks and papers; each function returns a matplotlib figure.

import downclock as dc
from downclock import plot

plot.gantt(problem, schedule).savefig("gantt.pdf")
"""

from __future__ import annotations

from downclock.report.figures import compare_figure as compare
from downclock.report.figures import frontier_figure as frontier
from downclock.report.figures import gantt_figure as gantt
from downclock.report.figures import power_figure as power
from downclock.report.figures import save_figure as save

__all__ = ["compare", "frontier", "gantt", "power", "save"]
