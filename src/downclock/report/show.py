"""The page of a study's result, to print or to look at in a notebook."""

from __future__ import annotations

from downclock.report.comparison import comparison_page
from downclock.report.summary import summary_page
from downclock.report.tables import Page
from downclock.study.compare import Comparison
from downclock.study.summary import Summary


def show(result: Summary | Comparison | list[Comparison]) -> Page:
    """Return the page of what `summarise`, `judge` or `compare` gave: it prints as tables."""
    if isinstance(result, Summary):
        return summary_page(result)
    return comparison_page(*([result] if isinstance(result, Comparison) else result))
