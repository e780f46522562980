"""The picture of README: the example day as `make demo` plans it, beside its baselines.

    python -m benchmarks.readme_picture

Planned where nothing was compiled, as a first run is. Writes docs/images/example-day.svg;
`tests/test_docs.py` holds its numbers against README's sample.
"""

from __future__ import annotations

import os
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from downclock.problem.files.files import load_problem
from downclock.quantities import energy, percent
from downclock.study.planned import Planned
from downclock.study.summary import Summary, summarise

ROOT = Path(__file__).parent.parent
DAY = ROOT / "examples" / "gpu-day"
PICTURE = ROOT / "docs" / "images" / "example-day.svg"
COLOURS = {"run": "#2b7f86", "idle": "#d9ab57", "wake": "#d2603a"}
INK, FAINT = "#1e2328", "#9aa0a6"


def main() -> None:
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "downclock", "font.size": 10})
    problem = load_problem(DAY / "cluster.toml", DAY / "jobs.csv")
    summary = summarise(problem)
    figure = Figure(figsize=(9.0, 5.4), layout="constrained")
    above, below = figure.subplots(2, 1, height_ratios=(1.0, 1.9))
    draw_energy(above, summary)
    draw_plan(below, summary.plan)
    figure.savefig(PICTURE, metadata={"Date": None, "Creator": None})


def draw_energy(axes: Axes, summary: Summary) -> None:
    """Bars of run, idle and wake energy, and the bound."""
    for row, each in enumerate(summary.plans):
        left = 0.0
        for part, colour in COLOURS.items():
            joules = each.bill.energy_j[part] / 1e6
            axes.barh(row, joules, left=left, height=0.62, color=colour)
            left += joules
        saved = "" if each is summary.plan else f"; {summary.plan.policy} needs"
        part = None if each is summary.plan else summary.saved(each)
        words = f"{saved} {percent(part)} less" if part is not None else ""
        axes.text(left + 0.6, row, f"{energy(each.bill.total_j)}{words}", va="center", color=INK)
    axes.axvline(summary.plan.bound_j / 1e6, color=INK, lw=1.2, ls=":")
    bound = f"no plan needs less than {energy(summary.plan.bound_j)}"
    axes.text(summary.plan.bound_j / 1e6, -0.75, bound, ha="right", color=INK)
    axes.set_yticks(range(len(summary.plans)), [each.policy for each in summary.plans])
    axes.set(ylim=(len(summary.plans) - 0.5, -1.1), xlim=(0.0, 132.0), xlabel="MJ")
    for at, (part, colour) in enumerate(COLOURS.items()):
        axes.text(101.0 + 9.5 * at, -0.75, part, color=colour, weight="bold")
    axes.spines[["top", "right"]].set_visible(False)


def draw_plan(axes: Axes, plan: Planned) -> None:
    """A row per GPU, coloured by core clock."""
    segments = plan.schedule.segments
    boxes = [
        Rectangle((start / 3600.0, processor - 0.42), (end - start) / 3600.0, 0.84)
        for processor, start, end in zip(
            segments.processor, segments.start_s, segments.end_s, strict=True
        )
    ]
    drawn = PatchCollection(boxes, cmap="viridis_r", edgecolor="white", linewidth=0.4)
    drawn.set_array(segments.core)
    axes.add_collection(drawn)
    bar = axes.figure.colorbar(drawn, ax=axes, pad=0.01, fraction=0.03)
    bar.set_label("core clock / default")
    gpus, last = plan.problem.platform.processor_count, int(segments.processor.max())
    hours = plan.bill.makespan_s / 3600.0
    asleep = f"GPU ({gpus - 1 - last} more are asleep)"
    axes.set(xlim=(0.0, hours), ylim=(last + 1.0, -1.0), xlabel="hours", ylabel=asleep)
    done = f"{plan.deadlines_met} of {plan.deadlines} deadlines met"
    used = f"{plan.bill.servers_used} of {plan.problem.platform.server_count} servers used"
    axes.set_title(f"the plan of {plan.policy}: {done}, {used}", fontsize=10, loc="left", color=INK)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
