"""Single tasks: Figs. 3 and 4, Table 3, Theorem 1, and the measurements behind them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from downclock.engine.play import plan
from downclock.papers.data import absent, data
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.rows import (
    Item,
    Reason,
    Row,
    Settings,
    Where,
    against_itself,
    claimed,
    not_run,
    ours_only,
    printed,
)
from downclock.planners.catalog import policy
from downclock.power.fit import Fit, fit
from downclock.power.frontier import frontier
from downclock.power.library import Library
from downclock.power.library_file import built_in_library
from downclock.power.measurements import Measurements, read_measurements
from downclock.power.points import MEI_LAW, NARROW, NARROW_2017, WIDE, ClockRange, Clocks
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.units import Floats
from downclock.workloads import mei

CARDS = {"gtx1080ti": (1800.0, 5000.0), "gtx2070s": (1880.0, 6300.0)}
"""Core and memory clock, in MHz, that the measurements are normalised to."""

COLUMNS = {
    "application": "appName",
    "core_mhz": "coreF",
    "memory_mhz": "memF",
    "time_ms": "time/ms",
    "power_w": "power/W",
}
PENALTY = 0.01
"""Weight of the sum of parameters in the authors' fit (a lasso without intercept)."""


def mean_saving(library: Library, clocks: Clocks) -> float:
    """Percent of energy that applications save at their best clocks, mean over all of them."""
    every = np.arange(len(library))
    kind = library.kinds[0]
    best = frontier(library, kind, clocks, every, np.ones(every.size)).e_opt_j
    time, power = library.at(every, kind, np.tile(clocks.default, (every.size, 1)))
    return float(np.mean(100.0 * (1.0 - best / (time * power))))


def measurements(card: str) -> Path | None:
    """File of a card's measurements, or None."""
    return data("dvfs", "hkbu", f"{card}-dvfs-real-Performance-Power.csv")


def fitted(card: str, path: Path, model: str) -> Fit:
    """Fit a card's measurements; ``model`` is gpu or table."""
    core, memory = CARDS[card]
    return fit(
        read_measurements(path, COLUMNS),
        kind=card,
        default_core_mhz=core,
        default_memory_mhz=memory,
        model=model,  # type: ignore[arg-type]
    )


def penalised(card: str, path: Path) -> Library:
    """Fit as the authors do: least squares plus `PENALTY` times the sum of the parameters."""
    runs = read_measurements(path, COLUMNS)
    names = np.unique(runs.application)
    table = np.array([_penalised(runs, name, *CARDS[card]) for name in names]).T
    t0_s, core_s, memory_s, p0_w, gamma_w, c_w = table
    d_s = core_s + memory_s
    profiles = GpuProfiles(p0_w, gamma_w, c_w, d_s, core_s / d_s, t0_s)
    return Library.of_one_kind(names.astype(object), card, profiles)


def _penalised(runs: Measurements, name: str, core_mhz: float, memory_mhz: float) -> Floats:
    mine = runs.application == name
    core, memory = runs.core_mhz[mine] / core_mhz, runs.memory_mhz[mine] / memory_mhz
    volt = 2.0 * (core - 0.5) ** 2 + 0.5
    one = np.ones(core.size)
    time = _lasso(np.column_stack([one, 1.0 / core, 1.0 / memory]), 1e3 * runs.time_s[mine])
    power = _lasso(np.column_stack([one, memory, volt**2 * core]), runs.power_w[mine])
    return np.concatenate([1e-3 * time, power])


def _lasso(columns: Floats, values: Floats) -> Floats:
    """Minimise |X w - y|² / 2n + penalty * sum(w) over w >= 0, by its normal equations."""
    from scipy.optimize import nnls

    root = np.linalg.cholesky(columns.T @ columns)
    target = columns.T @ values - values.size * PENALTY
    return np.asarray(nnls(root.T, np.linalg.solve(root, target))[0])


def optimum_on_the_curve(where: Where, _: Settings) -> list[Row]:
    """The picture of Theorem 1, which mei2017 has too (Fig. 2).

    Its task: P = 100 + 50 fm + 150 V² fc, t = 25 (.5/fc + .5/fm) + 5, fm = 1.2.
    """
    task = GpuProfiles(*(np.array([v]) for v in (100.0, 50.0, 150.0, 25.0, 0.5, 5.0)))
    fixed = ClockRange(0.5, np.inf, 1.2, 1.2, 0.5, 1.2, MEI_LAW)
    library = Library.of_one_kind(np.array(["fig3"], dtype=object), mei.PAIR, task)
    best = frontier(library, mei.PAIR, fixed, np.array([0]), np.ones(1)).e_opt_j[0]
    excess = 100.0 * (_tied_to_voltage(task, fixed) / best - 1.0)
    title = "energy of the figure's task"
    return [
        claimed(where, f"{title}: least on fc = g1(V) above the optimum", "<", 0.01, excess, "%"),
        ours_only(where, f"{title}, least", float(best), "J"),
    ]


def fig4(_: Settings) -> list[Row]:
    """Mean saving of the applications, in the simulated and in the real interval."""
    where, text = (PAPER, "fig4"), published.SINGLE
    card = "gtx2070s"
    path = measurements(card)
    narrow = mean_saving(built_in_library("gtx1080ti"), NARROW)
    named = "narrow interval, 1080 Ti as fitted"
    rows = [printed(where, named, text["measured"], narrow, "%", digits=1)]
    if path is None:
        quantity = "wide interval, 2070 Super"
        return [*rows, not_run(where, quantity, text["wide"], "%", absent("dvfs/hkbu"))]
    shrunk = mei.shrunk(built_in_library("gtx1080ti"))
    wide, other = mean_saving(mei.shrunk(penalised(card, path)), WIDE), mean_saving(shrunk, WIDE)
    words = "wide interval, P0 and gamma over 13"
    why = Reason("the 2070 Super instead, with the authors' penalised fit", wide)
    rows += [
        printed(where, f"{words}, 2070 Super, authors' fit", text["wide"], wide, "%", digits=1),
        printed(where, f"{words}, 1080 Ti as the text says", text["wide"], other, "%", digits=1,
                reason=why),
    ]  # fmt: skip
    ours = fitted(card, path, "gpu").library
    found = {f"{words}, 2070 Super, our fit": mei.shrunk(ours), "the same, nothing divided": ours}
    saved = {quantity: mean_saving(library, WIDE) for quantity, library in found.items()}
    return rows + [ours_only(where, quantity, value, "%") for quantity, value in saved.items()]


def measured(_: Settings) -> list[Row]:
    """Savings of the measured tables themselves: no model, only clocks that somebody ran."""
    where, text = (PAPER, "measured"), published.SINGLE["measured"]
    quantity = "1080 Ti, best measured point"
    path, newer = measurements("gtx1080ti"), data("dvfs", "a100")
    if path is None or newer is None:
        return [not_run(where, quantity, text, "%", absent("dvfs"))]
    found = fitted("gtx1080ti", path, "table")
    saved = mean_saving(found.library, found.clocks)
    model = mean_saving(built_in_library("gtx1080ti"), NARROW)
    reason = Reason("called measured, but the model's value in the narrow interval", model)
    a100 = measured_a100(newer)
    best = mean_saving(a100.library, a100.clocks)
    return [
        printed(where, quantity, text, saved, "%", digits=1, reason=reason),
        ours_only(where, "A100, best of 61 core clocks against the top one", best, "%"),
    ]


def measured_a100(folder: Path) -> Fit:
    """The 25 applications of an A100 at 61 clocks, as tables."""
    columns = {"core_mhz": "sm_app_clock", "time_s": "run_time", "power_w": "power_usage"}
    runs = read_measurements(sorted(folder.glob("GA100-dvfs-*-dcgm.csv")), columns)
    return fit(runs, kind="a100", default_core_mhz=1410.0, model="table")


def table3_problem(per_server: int = 1) -> Problem:
    """The five tasks of Table 3; 30 W idle, gamma = 0."""
    delta = np.array([0.0, 1.0, 0.5, 0.8, 0.2])
    names = np.array([f"J{i + 1}" for i in range(5)], dtype=object)
    full = np.ones(5)
    profiles = GpuProfiles(100.0 * full, 0.0 * full, 200.0 * full, 25.0 * full, delta, 5.0 * full)
    platform = Platform.build(
        (Kind(mei.PAIR, WIDE, idle_w=30.0, clock="locked"),),
        (ServerSpec("s", ((mei.PAIR, per_server),), count=6),),
    )
    deadline_s = np.array([50.0, 36.0, 60.0, 100.0, 300.0])
    tasks = Tasks.of(np.arange(5), deadline_s=deadline_s, name=names)
    return Problem(tasks, Library.of_one_kind(names, mei.PAIR, profiles), platform, name="table3")


def table3(_: Settings) -> list[Row]:
    """Run times and powers, and both example mappings."""
    where, problem = (PAPER, "table3"), table3_problem()
    best = problem.frontier(0).within(problem.tasks.deadline_s)
    rows = []
    for i in range(5):
        time, power = published.TABLE3["t_hat"][i], published.TABLE3["p_hat"][i]
        rows.append(printed(where, f"run time J{i + 1}", time, best.time_s[i], "s", digits=2))
        if i > 0:
            rows.append(printed(where, f"power J{i + 1}", power, best.power_w[i], "W", digits=2))
    rows += _slips(problem)
    for theta, expected in published.TABLE3_MAPPINGS.items():
        found = opening_order(problem, theta)
        same = float(sum(ours == theirs for ours, theirs in zip(found, expected, strict=False)))
        quantity = f"pairs mapped as in section 4.2 at theta={theta:g}"
        rows.append(printed(where, quantity, len(expected), same, "pairs"))
    loose, tight = (_spent_j(theta) for theta in (1.0, 0.9))
    quantity = "energy of the mapping at theta=1 less that at theta=0.9"
    note = f"{loose:.0f} and {tight:.0f} J, two pairs a server, Algorithm 3"
    return [*rows, claimed(where, quantity, ">", 0.0, loose - tight, "J", note)]


def _slips(problem: Problem) -> list[Row]:
    """Two numbers of the example that its own model refutes."""
    where, best = (PAPER, "table3"), problem.frontier(0)
    least = "the model at the lowest voltage; J1 does not depend on the core clock"
    power_w = float(best.within(problem.tasks.deadline_s).power_w[0])
    fastest = "the model at the highest clocks; 25.83 s is the run time of J1"
    return [
        against_itself(where, "power J1", published.TABLE3["p_hat"][0], power_w, "W", digits=2,
                       note=least),
        against_itself(where, "shortest time J3", published.SHORTEST_J3_S, float(best.t_min_s[2]),
                       "s", digits=2, note=fastest),
    ]  # fmt: skip


def _spent_j(theta: float) -> float:
    """Energy of Table 3's mapping with two pairs in a server, grouped by Algorithm 3."""
    problem = table3_problem(per_server=2)
    schedule = plan(problem, policy(f"edl:theta={theta}"))
    return account(problem, schedule).total_j


def opening_order(problem: Problem, theta: float) -> tuple[tuple[str, ...], ...]:
    """Tasks of each pair, pairs in the order EDL opens them (before Algorithm 3)."""
    segments = plan(problem, policy(f"edl:theta={theta},group=off")).segments
    pairs: dict[int, tuple[str, ...]] = {}
    for row in np.argsort(segments.start_s, kind="stable"):
        pair = int(segments.processor[row])
        pairs[pair] = (*pairs.get(pair, ()), str(problem.tasks.name[segments.task[row]]))
    return tuple(pairs[pair] for pair in sorted(pairs))


def theorem1(_: Settings) -> list[Row]:
    """Where Theorem 1 fails: the lowest voltage allows more than the lowest core clock."""
    example = GpuProfiles(*(np.array([v]) for v in (60.0, 30.0, 100.0, 100.0, 0.1, 5.0)))
    library = Library.of_one_kind(np.array(["example"], dtype=object), mei.PAIR, example)
    floor = ClockRange(0.5, np.inf, 0.5, 1.2, 0.8, 1.2, MEI_LAW)
    rows = []
    for name, clocks in (("mei2017's narrow interval", NARROW_2017), ("V in [0.8, 1.2]", floor)):
        best = float(frontier(library, mei.PAIR, clocks, np.array([0]), np.ones(1)).e_opt_j[0])
        tied = _tied_to_voltage(example, clocks)
        words = f"least energy on fc = g1(V) above the optimum, {name}"
        note = f"P0=60 gamma=30 c=100 D=100 delta=0.1 t0=5: {tied:.1f} J and {best:.1f}"
        excess = 100.0 * (tied / best - 1.0)
        rows.append(claimed((PAPER, "theorem1"), words, "<", 0.01, excess, "%", note))
    return rows


def _tied_to_voltage(profile: GpuProfiles, clocks: ClockRange) -> float:
    """Least energy with core = g1(V), by a fine grid: what Theorem 1 would give."""
    volt = np.linspace(clocks.volt_min, clocks.volt_max, 2001)
    core = np.clip([clocks.law.max_core(v) for v in volt], clocks.core_min, clocks.core_max)
    memory = np.linspace(clocks.memory_min, clocks.memory_max, 1401)
    best = np.inf
    for c, v in zip(core, volt, strict=True):
        points = np.column_stack([np.full(memory.size, c), memory, np.full(memory.size, v)])
        time, power = profile.at(np.zeros(memory.size, dtype=np.int64), points)
        best = min(best, float((time * power).min()))
    return best


ITEMS = (
    Item("fig3", "The optimum lies on fc = g1(V)", partial(optimum_on_the_curve, (PAPER, "fig3"))),
    Item("fig4", "Energy saved on single tasks", fig4),
    Item("measured", "Savings of measured tables: 1080 Ti and A100", measured),
    Item("table3", "The worked example: run times, powers, mappings", table3),
    Item("theorem1", "Where fc = g1(V) is not optimal", theorem1),
)
