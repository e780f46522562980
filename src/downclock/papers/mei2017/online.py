"""Figures 2 to 7 of mei2017: its cluster (85 W idle, 200 W min to turn on), its task utilisation.

The nine applications were measured on a Fermi card and never published, so none of its energies
can be run. Its claims are tried on tasks drawn from the ranges that mei2021 prints.
"""

from __future__ import annotations

from functools import partial

from downclock.papers.mei.runs import GRID, RHO, Case, Outcome, outcome
from downclock.papers.mei2017 import PAPER, published
from downclock.papers.mei2021.published import THETAS
from downclock.papers.mei2021.single_task import optimum_on_the_curve
from downclock.papers.rows import (
    Item,
    Row,
    Settings,
    against_itself,
    claimed,
    estimate,
    not_run,
    ours_only,
)

GJ = 1e9
MJ = 1e6

NOT_PUBLIC = (
    "the nine applications, measured on a Fermi card, are not public: the authors' repository and"
    " its history hold the 1080 Ti and the 2070 Super only"
)
STAND_IN = "tasks drawn from the ranges of mei2021"
SPECS = {
    "edl without DVFS": f"edl:dvfs=off,rho={RHO},start=stream",
    **{
        f"edl theta={theta:g}": f"edl:theta={theta:g},rho={RHO},start=stream,{GRID}"
        for theta in THETAS
    },
    "bin": f"bin:rho={RHO},start=peak,{GRID}",
    "bin without DVFS": f"bin:dvfs=off,rho={RHO},start=peak",
}


def outcomes(settings: Settings, name: str, per_server: int = 16) -> list[Outcome]:
    """One outcome per set of the conference's day."""
    cases = [Case("online", s, 1.6, per_server, "mei2017", "text") for s in settings.seeds]
    return [outcome(case, SPECS[name]) for case in cases]


def fig3(_: Settings) -> list[Row]:
    """Savings on single tasks."""
    quantity = "wide interval, nine Fermi applications"
    return [not_run((PAPER, "fig3"), quantity, published.SINGLE_SAVING, "%", NOT_PUBLIC)]


def fig4(settings: Settings) -> list[Row]:
    """Energy by part; which algorithm spends less."""
    where, text = (PAPER, "fig4"), published
    rows = [_absent(where, f"run energy {name}", value) for name, value in text.RUN.items()]
    rows += [_absent(where, f"total of {n}, l=16", v) for n, v in text.TOTAL_L16.items()]
    rows += [_absent(where, f"{n} total with DVFS, l=1", v) for n, v in text.TOTAL_L1.items()]
    saved = 100.0 * (1.0 - text.RUN["with DVFS"] / text.RUN["without DVFS"])
    rows += [
        against_itself(where, "run energy saved", text.RUN_SAVING, saved, "%", digits=1,
                       note="its own 11.03 and 7.05 GJ"),
    ]  # fmt: skip
    for name, size in (("edl theta=0.9", 16), ("edl theta=0.9", 4), ("edl without DVFS", 16)):
        rival = "bin without DVFS" if "without" in name else "bin"
        pair = (outcomes(settings, each, size) for each in (name, rival))
        more = [(a.total_j - b.total_j) / GJ for a, b in zip(*pair, strict=True)]
        quantity = f"total of {name} less that of {rival}, l={size}"
        note = f"{STAND_IN}; mei2021's file has EDL above BIN too"
        rows.append(claimed(where, quantity, "<", 0.0, more, "GJ", note))
    return [*rows, *_totals(settings)]


def _totals(settings: Settings) -> list[Row]:
    """Our totals, on stand-ins."""
    rows = []
    for name, size in (("edl theta=1", 16), ("edl theta=0.9", 16), ("bin", 16), ("bin", 1)):
        mine = estimate([one.total_j / GJ for one in outcomes(settings, name, size)])
        quantity = f"total of {name}, l={size}, {STAND_IN}"
        rows.append(ours_only((PAPER, "fig4"), quantity, mine, "GJ"))
    return rows


def fig5(settings: Settings) -> list[Row]:
    """Idle and turn-on energy; what a turn-on is charged for."""
    where, text = (PAPER, "fig5"), published
    idle = {name: value for name, value in text.IDLE_L16.items() if name != "edl theta=1"}
    rows = [_absent(where, f"idle energy of {name}, l=16", value) for name, value in idle.items()]
    rows += [
        _absent(where, "idle energy of edl without DVFS, l=1", text.IDLE_L1),
        _absent(where, "idle energy that DVFS adds to bin, l=16", text.IDLE_BIN),
        against_itself(where, "idle energy of edl theta=1, l=16", text.IDLE_L16["edl theta=1"],
                       text.TOTAL_L16["edl theta=1"] - text.RUN["with DVFS"], "GJ", digits=2,
                       note="its total of 10.57 GJ less 7.05 of run energy"),
    ]  # fmt: skip
    for size in (1, 16):
        name = f"l={size}"
        quantity = f"turn-on energy of edl without DVFS, {name}"
        rows.append(_absent(where, quantity, text.OVERHEAD_MJ[name], "MJ"))
        wakes = [one.wake_j / MJ for one in outcomes(settings, "edl without DVFS", size)]
        per_pair = estimate([size * each for each in wakes])
        note = f"{STAND_IN}; printed: {text.OVERHEAD_MJ[name]} MJ"
        rows.append(ours_only(where, f"{quantity}, per pair", per_pair, "MJ", note))
        if size > 1:
            rows.append(ours_only(where, f"{quantity}, per server", estimate(wakes), "MJ", note))
    pair = (outcomes(settings, name) for name in ("bin", "bin without DVFS"))
    added = [(a.idle_j - b.idle_j) / GJ for a, b in zip(*pair, strict=True)]
    words = f"idle energy that DVFS adds to bin, l=16, {STAND_IN}"
    return [*rows, ours_only(where, words, estimate(added), "GJ")]


def fig6(settings: Settings) -> list[Row]:
    """Readjustment: what section V-E prints, and which theta is best."""
    where, text = (PAPER, "fig6"), published
    again = "the same number in section V-D"
    rows = [
        against_itself(where, "total of edl theta=1, l=16, section V-E",
                       text.TOTAL_L16_LATER["edl theta=1"], text.TOTAL_L16["edl theta=1"], "GJ",
                       digits=2, note=again),
        against_itself(where, "idle energy of edl theta=1, l=16, section V-E",
                       text.IDLE_L16_LATER["edl theta=1"], text.IDLE_L16["edl theta=1"], "GJ",
                       digits=1, note=again),
        _absent(where, "total of edl theta=0.95, l=16", text.TOTAL_L16_LATER["edl theta=0.95"]),
        _absent(where, "idle energy of edl theta=0.95, l=16",
                text.IDLE_L16_LATER["edl theta=0.95"]),
    ]  # fmt: skip
    for size in (1, 2, 4, 16) if not settings.quick else (16,):
        best = outcomes(settings, "edl theta=0.95", size)
        others = [outcomes(settings, f"edl theta={t:g}", size) for t in (1.0, 0.9, 0.85, 0.8)]
        least = min(others, key=lambda found: sum(one.total_j for one in found))
        more = [(a.total_j - b.total_j) / GJ for a, b in zip(best, least, strict=True)]
        quantity = f"theta=0.95 spends least, l={size}: its total less the least other"
        rows.append(claimed(where, quantity, "<", 0.0, more, "GJ", STAND_IN))
    return rows


def fig7(settings: Settings) -> list[Row]:
    """Reduction of total energy against no DVFS, smallest and largest servers."""
    rows = []
    for name, value in published.REDUCTION.items():
        size = int(name.removeprefix("l="))
        quantity = f"reduction with a good theta, {name}"
        rows.append(_absent((PAPER, "fig7"), quantity, value, "%"))
        pair = (outcomes(settings, n, size) for n in ("edl theta=0.9", "edl without DVFS"))
        mine = [100.0 * (1.0 - a.total_j / b.total_j) for a, b in zip(*pair, strict=True)]
        quantity = f"reduction, theta=0.9, {name}"
        rows.append(ours_only((PAPER, "fig7"), quantity, estimate(mine), "%", STAND_IN))
    return rows


def _absent(where: tuple[str, str], quantity: str, value: float, unit: str = "GJ") -> Row:
    return not_run(where, quantity, value, unit, NOT_PUBLIC)


ITEMS = (
    Item("fig2", "The optimum lies on fc = g1(V)", partial(optimum_on_the_curve, (PAPER, "fig2"))),
    Item("fig3", "Energy saved on single tasks", fig3),
    Item("fig4", "Energy by part; EDL beside BIN", fig4),
    Item("fig5", "Idle energy and turn-ons", fig5),
    Item("fig6", "Theta-readjustment", fig6),
    Item("fig7", "Reduction against no DVFS", fig7),
)
