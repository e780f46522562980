"""A figure of an item: ours with its interval beside the published values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from downclock.papers.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from downclock.papers.run import Done

OURS, PUBLISHED, DIFFERS = "#2b7f86", "#1e2328", "#d2603a"
GOOD = ("exact", "within interval", "holds", "consistent", "ours only")
"""Verdicts drawn in our colour; the others stand out."""

MOST_ROWS = 66
"""Rows that still can be read in one figure; the CSV holds all."""


def rows_figure(done: Done) -> Figure | None:
    """Draw an item, an axis for each unit; None where there is nothing to draw."""
    from downclock.report.figures import new_figure

    rows = [row for row in done.rows if row.ours is not None][:MOST_ROWS]
    if not rows:
        return None
    units = list(dict.fromkeys(row.unit for row in rows))
    groups = [[row for row in rows if row.unit == unit] for unit in units]
    figure, axes = new_figure(height=1.2 + 0.6 * len(units) + 0.22 * len(rows))
    axes.remove()
    panels = figure.subplots(
        len(units), 1, squeeze=False, height_ratios=[1 + len(group) for group in groups]
    )[:, 0]
    for panel, unit, group in zip(panels, units, groups, strict=True):
        _draw(panel, unit, group)
    panels[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    figure.suptitle(done.title, fontsize=10)
    return figure


def _draw(axes: Axes, unit: str, rows: list[Row]) -> None:
    for place, row in enumerate(rows):
        colour = OURS if row.verdict in GOOD else DIFFERS
        if row.low is not None and row.high is not None and row.high > row.low:
            axes.plot([row.low, row.high], [place, place], color=colour, lw=3, alpha=0.35)
        axes.plot([row.ours or 0.0], [place], "o", ms=4, color=colour)
        if row.published is not None:
            axes.plot([row.published], [place], "o", ms=8, mfc="none", color=PUBLISHED)
    axes.plot([], [], "o", ms=4, color=OURS, label="ours (orange: not reproduced)")
    axes.plot([], [], "o", ms=8, mfc="none", color=PUBLISHED, label="published")
    axes.set_yticks(range(len(rows)), [row.quantity for row in rows], fontsize=7)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(axis="x", color="#e3dccb", lw=0.6)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(unit or "ratio", fontsize=8)
