"""What the text says about the online figures, 10 to 13; their data are in `authors`."""

from __future__ import annotations

from downclock.papers.mei.runs import GRID, MW_MIN, RHO, STRETCHED, Case, Outcome, outcome
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.mei2021.authors import outcomes, spec
from downclock.papers.mei2021.published import OFF, SIZES, THETAS, Setting, authors
from downclock.papers.rows import (
    Estimate,
    Item,
    Row,
    Settings,
    Where,
    against_itself,
    claimed,
    estimate,
    ours_only,
)

UNIT = "MW min"


def row(per_server: int, theta: float = OFF, algorithm: str = "edl") -> Setting:
    """Return a row of the authors' online file."""
    return Setting("online", 1.6, per_server, algorithm, theta)


def fig10(settings: Settings) -> list[Row]:
    """Overhead and savings as the text has them; EDL and BIN where servers are large."""
    where, file = (PAPER, "fig10"), authors()
    saved = 100.0 * (1.0 - file[row(16, 1.0)].run / file[row(16)].run)
    totals = [
        against_itself(where, f"total of {name} theta={theta:g}, l={size}", value,
                       file[row(size, theta, name)].total, UNIT, digits=2, note="its own file")
        for (name, size, theta), value in published.TOTALS.items()
    ]  # fmt: skip
    edl, pack = (outcomes(each, settings.seeds) for each in (row(16, 0.9), row(16, 1.0, "bin")))
    return [
        *totals,
        *_ranges(where),
        against_itself(where, "run energy saved", published.RUN_SAVING, saved, "%", digits=1,
                       note="the text takes 122.22 for its own 120.22"),
        claimed(where, "BIN-D spends less than EDL-D theta=0.9, l=16", ">", 0.0,
                [(a.total_j - b.total_j) / MW_MIN for a, b in zip(edl, pack, strict=True)], UNIT),
    ]  # fmt: skip


def _ranges(where: Where) -> list[Row]:
    """Least and most turn-on and idle energy without DVFS (section 5.4.1), by its own file."""
    file = [authors()[row(size, OFF, name)] for size in SIZES for name in ("edl", "bin")]
    as_joules = "printed as KJ or MJ, but watts times minutes"
    lower = f"{as_joules}; the text has lower ends of intervals in the file, at 200 W min"
    rows = []
    turn_on = [n.servers * published.TURN_ON for n in file]
    for part, text, values, note in (
        ("turn-on", published.OVERHEAD_KW_MIN, turn_on, lower),
        ("idle", published.IDLE_KW_MIN, [n.idle for n in file], as_joules),
    ):
        ends = min(values), max(values)
        for name, value, own in zip(("least", "most"), text, ends, strict=True):
            quantity = f"{name} {part} energy without DVFS"
            digits = -1 if value > 1e4 else 2
            rows.append(against_itself(where, quantity, value, 1e3 * own, "kW min", digits=digits,
                                       note=note))  # fmt: skip
    return rows


def fig11(settings: Settings) -> list[Row]:
    """Idle energy as the text has it; what the two switches of the authors' reading do."""
    where, setting = (PAPER, "fig11"), row(1, 1.0)
    value, seeds = authors()[setting], settings.seeds
    loose, tight = (outcomes(setting, seeds, lengths) for lengths in (GRID, STRETCHED))
    exact = [outcome(Case("online", s, 1.6, 1), spec(setting), "exact") for s in seeds]
    words = "of EDL-D theta=1, l=1"
    printed = f"the authors' file has {value.servers:g}"
    idle = f"the authors' file has {value.idle:.4f}"
    note = "its own file; printed as MJ, but watts times minutes"
    text = [
        against_itself(where, f"idle energy of {name}, l=16", said, authors()[row(16, theta)].idle,
                       UNIT, digits=2, note=note)
        for (name, theta), said in published.IDLE_ONLINE.items()
    ]  # fmt: skip
    return [
        *text,
        ours_only(where, f"turn-ons {words}, as the code", _servers(loose), "servers", printed),
        ours_only(where, f"turn-ons {words}, lengths stretched to deadlines", _servers(tight),
                  "servers", printed),
        ours_only(where, f"idle energy {words}, by the minute, as the code", _idle(loose), UNIT,
                  idle),
        ours_only(where, f"idle energy {words}, by the second", _idle(exact), UNIT, idle),
    ]  # fmt: skip


def _servers(found: list[Outcome]) -> Estimate:
    return estimate([float(one.servers) for one in found])


def _idle(found: list[Outcome]) -> Estimate:
    return estimate([one.idle_j / MW_MIN for one in found])


def fig12(settings: Settings) -> list[Row]:
    """Readjustment: which theta is best for which servers."""
    where, file = (PAPER, "fig12"), authors()
    rows = []
    for size in SIZES[1:]:
        best = min(file[row(size, theta)].total for theta in THETAS)
        excess = file[row(size, 0.8)].total - best
        quantity = f"theta=0.8 is best, l={size}: its total less the least"
        rows.append(
            against_itself(where, quantity, 1e-9, excess, UNIT, relation="<", note="its own file")
        )
    for size in SIZES:
        most = max(file[row(size, theta)].total for theta in THETAS[1:])
        more = most - file[row(size, 1.0)].total
        quantity = f"theta < 1 spends less than theta=1, l={size}: the most less theta=1"
        rows.append(
            against_itself(where, quantity, 0.0, more, UNIT, relation="<", note="its own file")
        )
    for size in (4, 16):
        loose, tight = (outcomes(row(size, theta), settings.seeds) for theta in (1.0, 0.8))
        less = [(a.total_j - b.total_j) / MW_MIN for a, b in zip(loose, tight, strict=True)]
        quantity = f"total at theta=1 less that at theta=0.8, l={size}"
        rows.append(claimed(where, quantity, ">", 0.0, less, UNIT))
    return rows


def fig13(_: Settings) -> list[Row]:
    """Reduction with an appropriate theta, 30 to 33 %."""
    where, (least, most) = (PAPER, "fig13"), published.REDUCTION
    rows = []
    for size, theta, name, value in ((8, 0.8, "least", least), (1, 1.0, "most", most)):
        own = 100.0 * (1.0 - authors()[row(size, theta)].total / authors()[row(size)].total)
        quantity = f"{name} reduction, l={size}, theta={theta:g}"
        rows.append(against_itself(where, quantity, value, own, "%", note="its own file"))
    return rows


def batch(settings: Settings) -> list[Row]:
    """EDL with Algorithms 2 and 3 at time 0, as Algorithm 4 line 1 says."""
    rows = []
    for theta in (1.0, 0.9):
        grouped = f"edl:theta={theta:g},rho={RHO}"
        found = [outcome(Case("online", s), grouped, "exact") for s in settings.seeds]
        quantity = f"total of EDL-D theta={theta:g}, l=16, Algorithms 2 and 3 at time 0"
        mine = estimate([one.total_j / MW_MIN for one in found])
        ungrouped = authors()[row(16, theta)].total
        note = f"the authors' file, without Algorithm 3, has {ungrouped:.2f}"
        rows.append(ours_only((PAPER, "batch"), quantity, mine, UNIT, note))
    return rows


ITEMS = (
    Item("fig10", "Online: overhead, savings, EDL beside BIN", fig10),
    Item("fig11", "Online: turn-ons and idle energy at one pair each", fig11),
    Item("fig12", "Online: which theta is best", fig12),
    Item("fig13", "Online: reduction against no DVFS", fig13),
    Item("batch", "Online: with Algorithm 3 at time 0", batch),
)
