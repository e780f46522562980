"""The pictures of the page on our policy.

    python -m benchmarks.own_policy_pictures

Writes docs/images/own-policy-*.png. Curves and the server are computed here; the gaps and misses
are those that `python -m benchmarks.own_policy online uncertainty` printed (seeds 800 to 811).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.units import Floats, Ints
from downclock.workloads import mei

IMAGES = Path(__file__).parent.parent / "docs" / "images"
IDLE_W = 37.0
INK, OURS, OTHER, FAINT = "#333333", "#1b6ca8", "#c8553d", "#9aa5b1"

CURVES = 200

SIZES = (1, 2, 4, 8, 16)
GAPS = {
    "best of the papers' 36 settings": (0.077, 1.33, 2.86, 4.42, 6.05),
    "prompt": (0.077, 0.375, 0.693, 1.021, 1.458),
    "late": (0.062, 0.200, 0.412, 0.599, 0.898),
}
"""Per cent above the per-task bound; the first row of seeds 700 to 711."""

RESERVES = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)
MISSED = {
    1: (13.06, 9.16, 5.54, 2.57, 0.0, 0.0),
    4: (12.55, 8.29, 4.85, 2.27, 0.0, 0.0),
    16: (12.42, 8.23, 4.81, 2.25, 0.0, 0.0),
}
ENERGY = {
    1: (-0.05, 0.05, 0.24, 0.59, 1.2, 3.65),
    4: (0.93, 1.09, 1.3, 1.73, 2.39, 5.01),
    16: (2.18, 2.42, 2.64, 3.3, 3.96, 6.77),
}
"""Per cent of tasks, and per cent of energy above the clairvoyant bound, by GPUs a server."""


def one_server(tasks: int) -> Problem:
    """A batch on one server of four GPUs; tasks as in mei2021."""
    rng = np.random.default_rng(5)
    names = np.array([f"a{i}" for i in range(tasks)], dtype=object)
    library = Library.of_one_kind(names, "gpu", mei.printed_profiles(rng, tasks))
    kind = Kind("gpu", WIDE, idle_w=IDLE_W, clock="locked")
    platform = Platform.build((kind,), (ServerSpec("s", (("gpu", 4),)),))
    scale = rng.uniform(10.0, 60.0, tasks)
    asked = Tasks.of(np.arange(tasks), deadline_s=np.full(tasks, 1e5), scale=scale)
    return Problem(asked, library, platform)


def curve(axes: Axes) -> None:
    """Energy against run time: flat around the best, steep on the short side."""
    problem = one_server(CURVES)
    frontier = problem.frontier(0)
    best = frontier.cheapest(0.0)
    idle = frontier.cheapest(-IDLE_W)
    for i in range(3):
        part = np.linspace(0.9, 1.35, 60)
        energy = frontier.at(part * best.time_s[i], np.full(60, i)).energy_j
        axes.plot(part, 100 * (energy / best.energy_j[i] - 1), color=FAINT, lw=1)
    part = np.linspace(0.9, 1.35, 91)
    rows = [frontier.at(p * best.time_s).energy_j / best.energy_j for p in part]
    mean = 100 * (np.mean(rows, axis=1) - 1)
    axes.plot(part, mean, color=OURS, lw=2.2, label=f"mean of {CURVES} tasks (three in grey)")
    at = float(np.interp(0.95, part, mean))
    axes.plot([0.95], [at], "o", color=OTHER)
    axes.annotate(f"5 % shorter: +{at:.1f} %", (0.95, at), (0.965, at + 1), color=OTHER)
    slow = float(np.mean(idle.time_s / best.time_s))
    axes.axvline(slow, color=INK, lw=1, ls=":")
    axes.text(slow + 0.01, 0.6, "best where the server\nis awake anyway")
    axes.set(xlabel="run time / cheapest run time", ylabel="energy above the least, %")
    axes.set(xlim=(0.93, 1.22), ylim=(0, 8))
    axes.legend(frameon=False, loc="upper right")


def bars(axes: Axes, processor: Ints, start_s: Floats, length_s: Floats, title: str) -> None:
    """One server: a row per processor; idle time until the last end in grey."""
    end = float((start_s + length_s).max())
    for p in range(4):
        axes.barh(p, end / 60, color="#e3e7eb", height=0.8)
    shades = np.where(np.arange(processor.size) % 2, OURS, "#5a9bd0")
    axes.barh(processor, length_s / 60, left=start_s / 60, color=shades, ec="white", height=0.8)
    busy = float(length_s.sum()) / (4 * end)
    axes.set_title(f"{title}: idle {100 * (1 - busy):.1f} % of the time", fontsize=10, loc="left")
    axes.set(yticks=range(4), yticklabels=[f"GPU {p}" for p in range(4)])


def equalised(first: Axes, second: Axes) -> None:
    """The same chains at their cheapest lengths, and with one end for all."""
    problem = one_server(7)
    rows = plan(problem, policy("late")).segments
    order = np.lexsort((rows.start_s, rows.processor))
    processor, task = rows.processor[order], rows.task[order]
    cheapest_s = problem.frontier(0).within(problem.tasks.deadline_s).time_s[task]
    before = np.cumsum(cheapest_s) - cheapest_s
    start_s = before - before[np.searchsorted(processor, processor)]
    bars(first, processor, start_s, cheapest_s, "cheapest lengths")
    after = rows.end_s[order] - rows.start_s[order]
    bars(second, processor, rows.start_s[order], after, "equalised")
    second.set_xlabel("minutes")


def gaps(axes: Axes) -> None:
    """Gap against GPUs a server."""
    for (name, values), colour in zip(GAPS.items(), (FAINT, OTHER, OURS), strict=True):
        axes.plot(SIZES, values, "o-", color=colour, label=name)
    axes.set(xlabel="GPUs a server", ylabel="energy above the bound, %", yscale="log")
    axes.set_xscale("log", base=2)
    axes.set_xticks(SIZES, [str(size) for size in SIZES])
    axes.set_yticks([0.1, 0.3, 1, 3, 6], ["0.1", "0.3", "1", "3", "6"])
    axes.minorticks_off()
    axes.legend(frameon=False)


def misses(axes: Axes, energy: Axes) -> None:
    """Tasks missed, and energy, against reserve."""
    for size, colour in zip(MISSED, (FAINT, OTHER, OURS), strict=True):
        per_cent = [100 * reserve for reserve in RESERVES]
        axes.plot(per_cent, MISSED[size], "o-", color=colour, label=f"{size} GPUs a server")
        energy.plot(per_cent, ENERGY[size], "o-", color=colour)
    axes.set(xlabel="reserve, %", ylabel="tasks missed, %")
    energy.set(xlabel="reserve, %", ylabel="energy above the clairvoyant bound, %")
    axes.legend(frameon=False)


def save(figure: plt.Figure, name: str) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(IMAGES / f"own-policy-{name}.png", dpi=110)


def main() -> None:
    plt.rcParams.update({"font.size": 9, "axes.edgecolor": INK, "text.color": INK})
    figure, axes = plt.subplots(figsize=(6, 3.2))
    curve(axes)
    save(figure, "curve")
    figure, (one, two) = plt.subplots(2, 1, figsize=(6, 3.6), sharex=True)
    equalised(one, two)
    save(figure, "equalise")
    figure, axes = plt.subplots(figsize=(6, 3.2))
    gaps(axes)
    save(figure, "gaps")
    figure, (one, two) = plt.subplots(1, 2, figsize=(7.5, 3.0))
    misses(one, two)
    save(figure, "reserve")


if __name__ == "__main__":
    main()
