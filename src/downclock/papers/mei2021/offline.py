"""What the text says about the offline figures, 5 to 9; their data are in `authors`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product

from downclock.papers.mei.runs import Outcome, outcome_of
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.mei2021.authors import outcomes
from downclock.papers.mei2021.published import LOADS, OFF, RIVALS, THETAS, Setting, authors
from downclock.papers.rows import (
    Item,
    Relation,
    Row,
    Settings,
    against_itself,
    claimed,
    estimate,
    ours_only,
)
from downclock.workloads import mei

SIZES = (2, 4, 8, 16)
ALL = ("edl", *RIVALS)


def base(utilisation: float) -> float:
    """The baseline of the figures: energy without DVFS where nothing idles."""
    return authors()[Setting("offline", utilisation, 1)].run


def saving(setting: Setting, beside: float | None = None) -> float:
    """Percent saved against the baseline, or another energy, from the authors' file."""
    other = base(setting.utilisation) if beside is None else beside
    return 100.0 * (1.0 - authors()[setting].total / other)


def drawn_savings(setting: Setting, settings: Settings) -> list[float]:
    """The same of our sets."""
    found = outcomes(setting, settings.seeds)
    idle_free = outcomes(Setting("offline", setting.utilisation, 1), settings.seeds)
    pairs = zip(found, idle_free, strict=True)
    return [100.0 * (1.0 - one.total_j / other.run_j) for one, other in pairs]


def with_dvfs(
    utilisation: float, per_server: int, algorithm: str = "edl", theta: float = 1.0
) -> Setting:
    """Return a row of the authors' offline file with DVFS."""
    return Setting("offline", utilisation, per_server, algorithm, theta)


def fig5(settings: Settings) -> list[Row]:
    """Savings of run energy: means, limits, and what deadlines cost."""
    where, text = (PAPER, "fig5"), published.SAVING
    found = [saving_of_run(u) for u in LOADS]
    mean, most = sum(found) / len(found), max(found)
    note = f"its file gives {', '.join(f'{value:.2f}' for value in found)} % for U = 0.2 to 1.6"
    limits = (text["upper limit, section 5.3.2"], text["upper limit, section 5.4.3"])
    free, bound = zip(*(_lost(seed) for seed in settings.seeds), strict=True)
    lost = [a - b for a, b in zip(free, bound, strict=True)]
    return [
        against_itself(where, "run energy saved, mean over U", text["mean over U"], mean, "%",
                       digits=1, note=note),
        against_itself(where, "most saved, abstract", published.ABSTRACT, most, "%", note=note),
        against_itself(where, "upper limit, sections 5.3.2 and 5.4.3", limits[0], limits[1], "%",
                       digits=1, note="the mean of the same applications, printed twice"),
        claimed(where, "saving lost to deadlines, 'about 3 %'", ">", 2.5, lost, "%",
                "of 36.4 less 33.5; these tasks save no more without deadlines"),
        ours_only(where, "saving without deadlines", estimate(list(free)), "%"),
    ]  # fmt: skip


def saving_of_run(utilisation: float) -> float:
    """Percent of run energy saved by DVFS, from the authors' file."""
    on = authors()[with_dvfs(utilisation, 1)].run
    return 100.0 * (1.0 - on / base(utilisation))


def _lost(seed: int) -> tuple[float, float]:
    """Percent saved without and with deadlines, U = 1.6, exact optimum."""
    problem = mei.offline(seed)
    frontier = problem.frontier(0)
    best = frontier.within(problem.tasks.deadline_s - problem.tasks.arrival_s)
    default = outcome_of(problem, "edl:dvfs=off").run_j
    used_j = (float(energy_j.sum()) for energy_j in (frontier.e_opt_j, best.energy_j))
    free, bound = (100.0 * (1.0 - each / default) for each in used_j)
    return free, bound


def fig6(settings: Settings) -> list[Row]:
    """Idle energy without DVFS: who has the least and the most."""
    where, file = (PAPER, "fig6"), authors()

    def idle(algorithm: str) -> float:
        return 100.0 * file[Setting("offline", 0.2, 16, algorithm)].idle / base(0.2)

    least = max(_idle_less(file, u, size, "edl", "lpt-ff") for u, size in product(LOADS, SIZES))
    most = min(_idle_less(file, u, size, "lpt-ff", "edf-wf") for u, size in product(LOADS, SIZES))
    found = outcomes(Setting("offline", 0.2, 16, "lpt-ff"), settings.seeds)
    mine = [100.0 * one.idle_j / one.run_j for one in found]
    return [
        against_itself(where, "idle energy of LPT-FF, U=0.2, l=16", published.IDLE_LPT,
                       idle("lpt-ff"), "% of run", note="its own file"),
        ours_only(where, "idle energy of LPT-FF, U=0.2, l=16, our sets", estimate(mine),
                  "% of run"),
        against_itself(where, "EDL idles least: EDL less LPT-FF, all U and l", 0.0, least,
                       "% of run", relation="<", note="LPT-FF idles less in all 32 cases"),
        against_itself(where, "LPT-FF idles most: LPT-FF less EDF-WF, all U and l", 0.0, most,
                       "% of run", relation=">", note="EDF-WF idles most in all 32 cases"),
    ]  # fmt: skip


def _idle_less(
    file: dict[Setting, published.Numbers], u: float, size: int, one: str, other: str
) -> float:
    """Idle energy of one algorithm less another's, percent of the baseline."""
    idle = [file[Setting("offline", u, size, name)].idle for name in (one, other)]
    return 100.0 * (idle[0] - idle[1]) / base(u)


def fig7(settings: Settings) -> list[Row]:
    """Servers at l = 1: LPT-FF, EDL, EDF-WF, EDF-BF; with DVFS the last two are "identical"."""
    order = ("lpt-ff", "edl", "edf-wf", "edf-bf")
    without = [_more_servers(*pair, OFF, settings) for pair in pairwise(order)]
    with_ = [_more_servers("lpt-ff", name, 1.0, settings) for name in order[1:]]
    own = [authors()[with_dvfs(1.6, 1, name)].servers for name in ("edf-wf", "edf-bf")]
    same = _more_servers("edf-wf", "edf-bf", 1.0, settings, published.IDENTICAL)
    note = f"'identical' (section 5.3.2), taken as less than one; its file has {own[0]}, {own[1]}"
    return [*without, *with_, replace(same, note=note)]


def _more_servers(
    more: str, fewer: str, theta: float, settings: Settings, below: float | None = None
) -> Row:
    """Judge that one algorithm turns on more servers than another, or hardly more."""
    one, other = (
        outcomes(Setting("offline", 1.6, 1, name, theta), settings.seeds) for name in (more, fewer)
    )
    extra = [float(a.servers - b.servers) for a, b in zip(one, other, strict=True)]
    how = "without DVFS" if theta == OFF else "with DVFS"
    quantity = f"servers of {more} less those of {fewer}, {how}, U=1.6, l=1"
    relation: Relation = ">" if below is None else "<"
    return claimed((PAPER, "fig7"), quantity, relation, below or 0.0, extra, "servers")


def fig8(settings: Settings) -> list[Row]:
    """Savings with DVFS: LPT-FF most, EDF-WF least; and what Algorithm 3 would have saved."""
    where = (PAPER, "fig8")
    behind = saving(with_dvfs(1.6, 16, "edf-bf")) - saving(with_dvfs(1.6, 16))
    rows = [
        against_itself(where, "EDL saves less than EDF-BF, U=1.6, l=16", published.EDL_BELOW_BF,
                       behind, "%", digits=1, note="its own file")
    ]  # fmt: skip
    saved = {name: drawn_savings(with_dvfs(1.6, 16, name), settings) for name in ALL}
    for one, other, words in (
        ("lpt-ff", "edf-bf", "LPT-FF saves most"),
        ("lpt-ff", "edl", "LPT-FF saves most"),
        ("edl", "edf-wf", "EDF-WF consumes most"),
        ("edf-bf", "edf-wf", "EDF-WF consumes most"),
    ):
        more = [a - b for a, b in zip(saved[one], saved[other], strict=True)]
        quantity = f"{words}: saving of {one} less that of {other}, l=16"
        rows.append(claimed(where, quantity, ">", 0.0, more, "%"))
    for name in ALL:
        found = [_grouped(name, seed) for seed in settings.seeds]
        note = "Algorithm 3, which groups pairs that end together, was not in the experiments"
        quantity = f"saving of {name} with Algorithm 3, U=1.6, l=16"
        rows.append(ours_only(where, quantity, estimate(found), "%", note))
    return rows


def _grouped(name: str, seed: int) -> float:
    """Percent saved at l = 16 with Algorithms 2 and 3."""
    problem = mei.offline(seed, cluster=mei.Cluster(4096, 16, turn_on_per="server"))
    found: Outcome = outcome_of(problem, name)
    return 100.0 * (1.0 - found.total_j / outcome_of(problem, "edl:dvfs=off").run_j)


def fig9(settings: Settings) -> list[Row]:
    """Readjustment: near LPT-FF where l <= 4; and approaching it with smaller theta."""
    where = (PAPER, "fig9")
    behind = {
        (u, size, theta): saving(with_dvfs(u, size, "lpt-ff"))
        - saving(with_dvfs(u, size, theta=theta))
        for u, size, theta in product(LOADS, SIZES, THETAS)
    }
    rows = []
    for size in (2, 4):
        worst = max(value for (_, pairs, _), value in behind.items() if pairs == size)
        own = max(_own_saving("lpt-ff", u, size, 1.0) - _own_saving("edl", u, size, theta)
                  for u, theta in product(LOADS, THETAS))  # fmt: skip
        quantity = f"EDL saves less than LPT-FF, l={size}, at most over U and theta"
        note = "its own file, beside the baseline of section 5.3: no DVFS, l = 1"
        other = "its own file, another reading: each beside its own run without DVFS at this l"
        rows += [
            against_itself(where, quantity, published.NEAR_LPT, worst, "%", relation="<",
                           note=note),
            replace(against_itself(where, f"{quantity}, own baseline", published.NEAR_LPT, own,
                                   "%", relation="<", note=other), beside=True),
        ]  # fmt: skip
    for size in (8, 16):
        loose, tight = (drawn_savings(with_dvfs(1.6, size, theta=t), settings) for t in (1.0, 0.8))
        more = [b - a for a, b in zip(loose, tight, strict=True)]
        quantity = f"saving at theta=0.8 less that at theta=1, U=1.6, l={size}"
        rows.append(claimed(where, quantity, ">", 0.0, more, "%"))
    return rows


def _own_saving(algorithm: str, utilisation: float, per_server: int, theta: float) -> float:
    """Percent saved against the same algorithm and servers without DVFS, from the file."""
    off = authors()[Setting("offline", utilisation, per_server, algorithm)].total
    return saving(with_dvfs(utilisation, per_server, algorithm, theta), off)


ITEMS = (
    Item("fig5", "Offline: savings of run energy, and their limit", fig5),
    Item("fig6", "Offline: who idles least and most", fig6),
    Item("fig7", "Offline: order of servers at one pair each", fig7),
    Item("fig8", "Offline: order of savings; what Algorithm 3 gives", fig8),
    Item("fig9", "Offline: theta-readjustment beside LPT-FF", fig9),
)
