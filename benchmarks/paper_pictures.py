"""The pictures of docs/papers-worth.md, from the rows of docs/papers.csv.

python -m benchmarks.paper_pictures
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from tests.papers.written import read_rows

from downclock.papers.gerards import published as gerards
from downclock.papers.gerhards import published as gerhards
from downclock.papers.mei2017 import published as mei2017
from downclock.papers.mei2017.online import STAND_IN
from downclock.papers.mei2021.offline import ALL, saving, with_dvfs
from downclock.papers.mei2021.published import Setting, authors

DOCS = Path(__file__).parent.parent / "docs"
INK, PAPER, OURS, OTHER = "#1e2328", "#9aa0a6", "#2b7f86", "#d2603a"

LEGEND: dict[str, Literal["lower left", "upper right"]] = {
    "gerards": "lower left",
    "liu": "upper right",
}
"""Where a legend would cover what it explains."""


class Found:
    """Rows by paper, item and quantity."""

    def __init__(self) -> None:
        self.rows = {
            (row.paper, row.item, row.quantity): row for row in read_rows(DOCS / "papers.csv")
        }

    def ours(self, paper: str, item: str, quantity: str) -> float:
        """Our value of a row."""
        value = self.rows[paper, item, quantity].ours
        assert value is not None
        return value


def main() -> None:
    mpl.rcParams.update({"svg.hashsalt": "downclock", "font.size": 9, "axes.titlesize": 10})
    found = Found()
    for name, draw in (
        ("mei2021", draw_mei2021),
        ("mei2017", draw_mei2017),
        ("gerards", draw_gerards),
        ("gerhards", draw_gerhards),
        ("liu", draw_liu),
    ):
        figure = Figure(figsize=(6.6, 2.7), layout="constrained")
        axes = figure.subplots()
        draw(axes, found)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, fontsize=8, loc=LEGEND.get(name, "best"))
        figure.savefig(DOCS / "images" / f"worth-{name}.svg", metadata={"Date": None})


def bars(
    axes: Axes,
    names: list[str],
    series: dict[str, tuple[list[float], str]],
    floor: float = -np.inf,
) -> None:
    """Groups of bars, each with its value beside it; one that ends below ``floor`` is cut there."""
    width = 0.8 / len(series)
    for at, (label, (values, colour)) in enumerate(series.items()):
        x = np.arange(len(names)) + (at - (len(series) - 1) / 2.0) * width
        ends = np.maximum(values, floor)
        axes.bar(x, ends, width=0.92 * width, color=colour, label=label)
        for each, value, end in zip(x, values, ends, strict=True):
            up = "bottom" if value >= 0.0 else "top"
            words = f"{value:.3g}" if value >= floor else f"↓ {value:.3g}"
            shift = (0.0, 1.5 if value >= 0.0 else -1.5)
            axes.annotate(words, (each, end), shift, textcoords="offset points", ha="center", va=up,
                          fontsize=7, color=INK,
                          bbox={"fc": "white", "ec": "none", "pad": 0.3})  # fmt: skip
            if value < floor:
                axes.plot(each + np.array([-0.46, 0.46]) * width, [0.92 * floor, 0.86 * floor],
                          color="white", lw=2.5)  # fmt: skip
    axes.set_xticks(range(len(names)), names)


def draw_mei2021(axes: Axes, found: Found) -> None:
    """Savings at 16 pairs a server: published, and with Algorithm 3."""
    grouped = [
        found.ours("mei2021", "fig8", f"saving of {name} with Algorithm 3, U=1.6, l=16")
        for name in ALL
    ]
    theirs = [saving(with_dvfs(1.6, 16, name)) for name in ALL]
    bars(axes, [name.upper() for name in ALL], {
        "authors' file": (theirs, PAPER),
        "with the paper's own Algorithm 3": (grouped, OURS),
    })  # fmt: skip
    axes.set(ylabel="energy saved, %", title="mei2021, offline, U = 1.6, 16 pairs a server",
             ylim=(0.0, 45.0))  # fmt: skip


def draw_mei2017(axes: Axes, found: Found) -> None:
    """Bin packing over EDL: what either paper says, and ours."""
    journal = [authors()[Setting("online", 1.6, 16, *each)].total for each in
               (("bin", 1.0), ("edl", 0.9))]  # fmt: skip
    mine = [found.ours("mei2017", "fig4", f"total of {name}, l=16, {STAND_IN}") for name in
            ("bin", "edl theta=0.9")]  # fmt: skip
    printed = mei2017.TOTAL_L16
    ratios = [printed["bin"] / printed["edl theta=0.9"], journal[0] / journal[1], mine[0] / mine[1]]
    names = ["mei2017, printed", "mei2021, authors' file", "ours, mei2017's cluster"]
    bars(axes, names, {"BIN-D / EDL-D theta = 0.9": (ratios, OURS)})
    axes.axhline(1.0, color=INK, lw=0.8)
    axes.set(ylabel="total energy, ratio", title="Which packs better with 16 pairs a server?",
             ylim=(0.0, 1.5))  # fmt: skip


def draw_gerards(axes: Axes, found: Found) -> None:
    """Table 1, the column of c3 = 0.2: printed, and as stated."""
    cores = list(gerards.TABLE1)
    right = [found.ours("gerards", "table1-corrected", f"mean, M={m}, c3=0.2") for m in cores]
    fair = {m: found.ours("gerards", "fairness", f"mean, M={m}, c3=0.4") for m in (2, 4, 8, 12)}
    printed = [gerards.TABLE1[m][0.2][0] for m in cores]
    axes.plot(
        cores,
        printed,
        "o",
        color=PAPER,
        ms=6,
        label="printed for c3 = 0.2 (in fact 0.1, works shifted)",
    )
    axes.plot(cores, right, "-o", color=OTHER, ms=3, label="as stated for c3 = 0.2, right works")
    axes.plot(list(fair), list(fair.values()), "-s", color=OURS, ms=4,
              label="c3 = 0.4 beside one clock that knows static power")  # fmt: skip
    axes.set(xlabel="cores", ylabel="energy / one clock", ylim=(0.35, 1.05),
             title="gerards, Table 1, mean of 180 graphs")  # fmt: skip


def draw_gerhards(axes: Axes, found: Found) -> None:
    """What the heuristic costs above the optimum."""
    names = [f"{curve}\n{percent} %" for curve, percent in gerhards.LOSS]
    own, stg = (
        [
            found.ours("gerhards", item, f"sweep above ours, {curve}, {percent} %")
            for curve, percent in gerhards.LOSS
        ]
        for item in ("losses", "losses-stg")
    )
    bars(axes, names, {
        "printed, its graphs, CPLEX stopped": (list(gerhards.LOSS.values()), PAPER),
        "ours, drawn graphs": (own, OURS),
        "ours, Standard Task Graphs": (stg, OTHER),
    })  # fmt: skip
    axes.set(ylabel="above the optimum, %", title="gerhards: the budget heuristic")
    axes.margins(y=0.2)


def draw_liu(axes: Axes, found: Found) -> None:
    """Energy saved against ERF under light load, three readings."""
    schemes = ("Static", "Dynamic", "Aggressive")
    readings = {
        "speed = voltage": PAPER,
        "lambda s³, speed = voltage": OURS,
        "speed = clock": OTHER,
    }
    series = {
        reading: (
            [
                found.ours("liu", "fig4", f"energy saved, {name}, light, {reading}")
                for name in schemes
            ],
            colour,
        )
        for reading, colour in readings.items()
    }
    bars(axes, list(schemes), series, floor=-60.0)
    axes.axhline(27.0, color=INK, lw=0.9, ls=":")
    axes.text(-0.45, 34.0, "claimed: more than 27 %", fontsize=8, color=INK)
    axes.axhline(0.0, color=INK, lw=0.8)
    axes.set(ylabel="energy saved, %\n(arrows: bars cut at -60)", ylim=(-78.0, 80.0),
             title="liu, light load, against ERF, until the last job is done")  # fmt: skip


if __name__ == "__main__":
    main()
