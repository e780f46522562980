"""Single tasks: Fig. 4, Table 3 and Theorem 1."""

from __future__ import annotations

import numpy as np

from downclock.engine.engine import plan
from downclock.papers.mei2021 import PAPER, published
from downclock.papers.rows import Item, Row, Settings, judged, not_run
from downclock.planners.catalog import policy
from downclock.power.frontier import frontier
from downclock.power.library import Library
from downclock.power.library_file import built_in_library
from downclock.power.points import MEI_LAW, NARROW, NARROW_2017, WIDE, ClockRange, Clocks
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.units import Floats
from downclock.workloads import mei


def savings(library: Library, clocks: Clocks) -> Floats:
    """Percent of energy each application saves at its best clock against the default (a,)."""
    every = np.arange(len(library))
    kind = library.kinds[0]
    best = frontier(library, kind, clocks, every, np.ones(every.size)).e_opt_j
    time, power = library.at(every, kind, np.tile(clocks.default, (every.size, 1)))
    return np.asarray(100.0 * (1.0 - best / (time * power)))


def fig4(_: Settings) -> list[Row]:
    """Mean saving of the applications, in the simulated and in the real interval."""
    library = built_in_library("gtx1080ti")
    shrunk = mei.shrunk(library)
    text = published.SINGLE
    other_card = "the figure shows a 2070 Super and P0, gamma divided by 13, not the 1080 Ti"
    rows = [
        ("wide interval, P0 and gamma over 13", text["wide"], shrunk, WIDE, other_card),
        ("wide interval, as measured", text["wide"], library, WIDE, "P0 and gamma not shrunk"),
        (
            "narrow interval, as measured",
            text["measured"],
            library,
            NARROW,
            "called measured in the text; the best measured point saves 6.14 %",
        ),
    ]
    found = [
        judged(PAPER, "fig4", name, value, float(savings(lib, clocks).mean()), "%", digits=1,
               because=why)
        for name, value, lib, clocks, why in rows
    ]  # fmt: skip
    absent = "the 2070 Super measurements behind the figure are not public"
    return [*found, not_run(PAPER, "fig4", "2070 Super, wide interval", text["wide"], "%", absent)]


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
    problem = table3_problem()
    best = problem.frontier(0).within(problem.tasks.deadline_s)
    rows = []
    for i in range(5):
        time, power = published.TABLE3["t_hat"][i], published.TABLE3["p_hat"][i]
        rows.append(
            judged(PAPER, "table3", f"run time J{i + 1}", time, best.time_s[i], "s", digits=2)
        )
        why = "J1 does not depend on the core clock: at its lowest, 0.5 V, it draws 125.00 W"
        rows.append(
            judged(PAPER, "table3", f"power J{i + 1}", power, best.power_w[i], "W", digits=2,
                   because=why)
        )  # fmt: skip
    for theta, expected in published.TABLE3_MAPPINGS.items():
        same = float(opening_order(problem, theta) == expected)
        rows.append(judged(PAPER, "table3", f"mapping at theta={theta:g}", 1.0, same, "equal"))
    return rows


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
    why = "the core as fast as the voltage allows is not optimal here"
    rows = []
    for name, clocks in (("mei2017's narrow interval", NARROW_2017), ("V in [0.8, 1.2]", floor)):
        best = frontier(library, mei.PAIR, clocks, np.array([0]), np.ones(1)).e_opt_j[0]
        tied = _tied_to_voltage(example, clocks)
        rows.append(
            judged(PAPER, "theorem1", f"least energy, {name}", tied, best, "J", because=why)
        )
    return rows


def _tied_to_voltage(profile: GpuProfiles, clocks: ClockRange) -> float:
    """Least energy with core = g1(V), by a fine grid: what Theorem 1 would give."""
    volt = np.linspace(clocks.volt_min, clocks.volt_max, 2001)
    core = np.array(
        [min(max(clocks.law.max_core(v), clocks.core_min), clocks.core_max) for v in volt]
    )
    memory = np.linspace(clocks.memory_min, clocks.memory_max, 1401)
    best = np.inf
    for c, v in zip(core, volt, strict=True):
        points = np.column_stack([np.full(memory.size, c), memory, np.full(memory.size, v)])
        time, power = profile.at(np.zeros(memory.size, dtype=np.int64), points)
        best = min(best, float((time * power).min()))
    return best


ITEMS = (
    Item("fig4", "Energy saved on single tasks", fig4),
    Item("table3", "The worked example: run times, powers, mappings", table3),
    Item("theorem1", "Where fc = g1(V) is not optimal", theorem1),
)
