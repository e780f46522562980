"""The page of a study's result, to print or to look at in a notebook."""

from __future__ import annotations

from functools import singledispatch

from downclock.report.comparison import comparison_page
from downclock.report.summary import summary_page
from downclock.report.tables import Page
from downclock.study.compare import Comparison
from downclock.study.summary import Summary


@singledispatch
def show(result: Summary | Comparison | list[Comparison]) -> Page:
    """Return the page of what `summarise`, `judge` or `compare` gave: it prints as tables."""
    raise TypeError(f"there is no page of a {type(result).__name__}")


show.register(Summary)(summary_page)
show.register(Comparison)(comparison_page)
show.register(list)(lambda comparisons: comparison_page(*comparisons))
