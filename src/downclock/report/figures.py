"""Figures for papers and slides: Gantt, power, frontier and comparison, drawn by matplotlib."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from downclock.errors import InvalidInput, MissingExtra
from downclock.files import write_bytes_atomically
from downclock.problem.price import Curve
from downclock.problem.problem import Problem
from downclock.report.alternatives import frontier_of
from downclock.report.explain import task_row
from downclock.report.placement import placement
from downclock.report.power_curve import power_curve
from downclock.schedule.account.bill import PARTS, Boundary
from downclock.schedule.schedule import DOWN, ON, WAKING, Schedule
from downclock.schedule.states import States
from downclock.study.compare import Comparison
from downclock.study.planned import Planned
from downclock.units import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")

COLOURS = dict(
    zip(PARTS, ("#2b7f86", "#7db3ac", "#d8ae58", "#a189b4", "#b4bcc4", "#d2603a"), strict=True)
)
"""The parts of a bill, as in the report."""

CLOCKS = ("#34559f", "#3b8db8", "#79bda3", "#e6c368", "#d2603a")
STATE_COLOURS = {ON: "#e3dccb", WAKING: "#eda27f", DOWN: "#8d949b"}
HOUR_S, MINUTE_S = 3600.0, 60.0


def gantt_figure(problem: Problem, schedule: Schedule) -> Figure:
    """Who runs what when: a row per processor, coloured by core clock."""
    segments, platform = schedule.segments, problem.platform
    figure, axes = new_figure(height=min(12.0, 1.6 + 0.16 * platform.processor_count))
    from matplotlib.collections import PolyCollection
    from matplotlib.colors import LinearSegmentedColormap

    unit, name = _time_unit(schedule.makespan_s)
    _draw_states(axes, problem, power_curve(problem, schedule, most=1).states, unit)
    colours = LinearSegmentedColormap.from_list("clock", CLOCKS)
    boxes = _boxes(segments.processor, segments.start_s / unit, segments.end_s / unit, 0.42)
    bars = PolyCollection(boxes, array=segments.core, cmap=colours, edgecolors="white", lw=0.2)
    axes.add_collection(bars)
    if len(segments):
        figure.colorbar(bars, ax=axes, label="core clock / default", pad=0.02)
    axes.set_xlim(0.0, schedule.makespan_s / unit or 1.0)
    axes.set_ylim(platform.processor_count - 0.4, -0.6)
    first = platform.first_processor[:-1]
    axes.set_yticks(first, [str(n) for n in platform.server_name])
    axes.set_xlabel(f"time ({name})")
    axes.set_title(f"{problem.name}, planned by {schedule.policy or 'an unnamed policy'}")
    return figure


def power_figure(
    problem: Problem, schedule: Schedule, *, boundary: Boundary = "last-task"
) -> Figure:
    """Power over time, stacked by part, below the first zone's price where there is one."""
    curve = power_curve(problem, schedule, boundary=boundary)
    price = problem.prices.of(problem.platform.zones[0]).price
    figure, axes = new_figure(height=3.6 if price is None else 4.6)
    unit, name = _time_unit(float(curve.edge_s[-1]))
    times = curve.edge_s / unit
    if price is not None:
        above, axes = _split(figure, axes)
        _draw_price(above, price, unit, float(curve.edge_s[-1]))
        above.set_ylabel(f"{problem.prices.currency}/kWh")
    low = np.zeros(times.size - 1)
    for part in np.flatnonzero(np.any(curve.watts > 0.0, axis=0)):
        high = low + curve.watts[:, part] / 1000.0
        colour = COLOURS[PARTS[part]]
        axes.stairs(high, times, baseline=low, fill=True, color=colour, label=PARTS[part])
        low = high
    axes.set_xlabel(f"time ({name})")
    axes.set_ylabel("power (kW)")
    axes.set_xlim(times[0], times[-1])
    if np.isfinite(problem.platform.limits.power_cap_w):
        cap_kw = problem.platform.limits.power_cap_w / 1000.0
        axes.axhline(cap_kw, color="black", linestyle="--", linewidth=1.0, label="cap")
    if low.any():
        axes.legend(loc="upper left", frameon=False, ncols=7)
    figure.suptitle(problem.name)
    return figure


def _split(figure: Figure, axes: Axes) -> tuple[Axes, Axes]:
    """Replace the axes by a low one above and a high one below that share their times."""
    axes.remove()
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3))
    for each in (above, below):
        each.spines[["top", "right"]].set_visible(False)
    return above, below


def _draw_price(axes: Axes, price: Curve, unit: float, last_s: float) -> None:
    kept = price.start_s < last_s
    kept[0] = True
    start: Floats = price.start_s[kept]
    end = max(min(last_s, price.end_s), float(start[-1]) + 1.0)
    axes.stairs(price.value[kept], np.append(start, end) / unit, baseline=None, color="#0f6e6a")
    axes.axhline(0.0, color="#b4bcc4", lw=0.8)


def frontier_figure(
    problem: Problem, task: str | int, schedule: Schedule | None = None, *, kind: int | None = None
) -> Figure:
    """Energy against run time of a task on a kind, with the point a schedule uses."""
    task = task_row(problem, task)
    run = None if schedule is None else placement(problem, schedule, task)
    kind = (0 if run is None else run.kind) if kind is None else kind
    spec = problem.platform.kinds[kind]
    work = float(problem.tasks.scale[task]) if run is None else run.work
    curve = frontier_of(problem, task, kind, work)
    if not np.isfinite(curve.t_min_s[0]):
        item = f"task '{problem.tasks.name[task]}'"
        raise InvalidInput(f"cannot run on kind '{spec.name}'", item=item)
    figure, axes = new_figure(width=5.2, height=3.6)
    _, time_s, energy_j = curve.ladder()
    if time_s.size:
        axes.plot(time_s, energy_j / 1000.0, "o", ms=3.0, color="#5a646e", label="clocks")
    else:
        time_s = np.linspace(curve.t_min_s[0], curve.t_max_s[0], 200)
        energy_j = curve.at(time_s, np.zeros(time_s.size, dtype=np.int64)).energy_j
        axes.plot(time_s, energy_j / 1000.0, color="#5a646e", label="frontier")
    axes.plot(curve.t_opt_s, curve.e_opt_j / 1000.0, "o", mfc="none", ms=10, label="least energy")
    if run is not None and run.kind == kind:
        used_kj = run.energy_j / run.width / 1000.0
        axes.plot([run.busy_s], [used_kj], "o", ms=6, color=COLOURS["run"], label="this plan")
    axes.set_xlabel("run time (s)")
    axes.set_ylabel("energy (kJ)")
    axes.set_title(f"{problem.tasks.name[task]} on {spec.name}")
    axes.legend(frameon=False)
    return figure


def compare_figure(comparisons: Comparison | Sequence[Comparison]) -> Figure:
    """Energy by part of every policy: bars, means over the problems it has plans for."""
    several = [comparisons] if isinstance(comparisons, Comparison) else list(comparisons)
    by_policy: dict[str, list[Planned]] = {}
    for plan in (plan for each in several for plan in each.plans):
        by_policy.setdefault(plan.policy, []).append(plan)
    names = list(by_policy)
    joules = [[plan.bill.server_j.sum(axis=0) for plan in plans] for plans in by_policy.values()]
    table = np.array([np.mean(each, axis=0) for each in joules]).reshape(-1, len(PARTS))
    order = np.argsort(-table.sum(axis=1), kind="stable")
    figure, axes = new_figure(height=1.4 + 0.34 * max(1, len(names)))
    left = np.zeros(len(names))
    size, unit = (1e9, "GJ") if table.sum(axis=1).max(initial=0.0) >= 1e9 else (1e6, "MJ")
    for part in np.flatnonzero(np.any(table > 0.0, axis=0)):
        width = table[order, part] / size
        name = PARTS[part]
        axes.barh(np.arange(len(names)), width, left=left, color=COLOURS[name], label=name)
        left = left + width
    bounds = [np.mean([plan.bound_j for plan in plans]) for plans in by_policy.values()]
    if bounds:
        bound = float(max(bounds)) / size
        axes.axvline(bound, color="#1e2328", lw=1.0, ls="--", label="lower bound")
    axes.set_yticks(np.arange(len(names)), [names[k] for k in order])
    axes.set_xlabel(f"energy ({unit})" if len(several) == 1 else f"mean energy ({unit})")
    axes.set_title(several[0].problem.name if len(several) == 1 else f"{len(several)} problems")
    if left.size:
        axes.legend(frameon=False, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.25))
    return figure


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as a whole, in the format its name ends in."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InvalidInput(f"must end in {', '.join(FORMATS)}", field="output", value=str(path))
    out = io.BytesIO()
    # No date inside, so that the same plan gives the same file.
    stamp: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(suffix, {})
    figure.savefig(out, format=suffix[1:], dpi=160, metadata=stamp)
    write_bytes_atomically(path, out.getvalue())


def new_figure(width: float = 8.0, height: float = 4.0) -> tuple[Figure, Axes]:
    """Make a figure without touching matplotlib's global state; the one door to matplotlib."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtra("matplotlib", "plot", "drawing a figure") from None

    class Shown(Figure):
        """A figure that notebooks show without pyplot."""

        def _repr_png_(self) -> bytes:
            out = io.BytesIO()
            self.savefig(out, format="png")
            return out.getvalue()

    mpl.rcParams["svg.hashsalt"] = "downclock"
    figure = Shown(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _time_unit(last_s: float) -> tuple[float, str]:
    if last_s >= 2 * HOUR_S:
        return HOUR_S, "h"
    return (MINUTE_S, "min") if last_s >= 2 * MINUTE_S else (1.0, "s")


def _boxes(row: Ints | Floats, start: Floats, end: Floats, half: float) -> Any:
    """Corners of bars (n, 4, 2)."""
    x = np.stack([start, end, end, start], axis=1)
    y = np.stack([row - half, row - half, row + half, row + half], axis=1)
    return np.stack([x, y], axis=2)


def _draw_states(axes: Axes, problem: Problem, states: States, unit: float) -> None:
    """Shade the time servers are on, waking or down, behind their processors."""
    from matplotlib.collections import PolyCollection

    first = problem.platform.first_processor
    for state, colour in STATE_COLOURS.items():
        mine = states.only(state)
        low, high = first[mine.server] - 0.5, first[mine.server + 1] - 0.5
        boxes = _boxes(np.zeros(low.size), mine.start_s / unit, mine.end_s / unit, 0.0)
        boxes[:, :2, 1], boxes[:, 2:, 1] = low[:, None], high[:, None]
        axes.add_collection(PolyCollection(boxes, facecolors=colour, edgecolors="none"))
