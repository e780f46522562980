"""Plan a task graph with one deadline: placement, clocks, schedule and proof.

One chip-wide clock (gerards' global DVFS) where all processors are one chip; a clock per core
(local DVFS) where each is its own chip; a clock per island where several chips have several.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from downclock.errors import InvalidInput
from downclock.planners.chip.bounds import global_bound, local_bound
from downclock.planners.chip.clocks import ChipPower, global_clocks, level_clocks, single_clock
from downclock.planners.chip.islands import arranged, filled, island_rows
from downclock.planners.chip.levels import LEVELS_SOLVED, local_levels, one_level_each
from downclock.planners.chip.lists import list_schedule
from downclock.planners.chip.local import local_clocks, ordered_graph
from downclock.planners.chip.local_search import search_local
from downclock.planners.chip.model import Placement, WorkGraph
from downclock.planners.chip.search import SearchEffort, search
from downclock.planners.chip.segments import ClockedRows, at_levels, chip_rows, core_rows
from downclock.planners.objections import not_limited
from downclock.planners.offline_solver import refusal, rejecting
from downclock.planners.result import Result, status_of, without_rounding
from downclock.power.points import CORE, Clocks
from downclock.problem.problem import Problem
from downclock.schedule.account.account import account
from downclock.schedule.schedule import ON, WAKING, Outcomes, PowerSpans, Schedule, Segments
from downclock.units import Bools, Floats, Ints

_STARTS = 1_000
"""Tasks up to which a search for clocks per core begins with what is found for one clock."""


@dataclass(frozen=True, slots=True, eq=False)
class GraphQuestion:
    """A problem as the graph planner sees it: one graph, equal cores, one deadline.

    Attributes:
        graph: work in cycles: seconds at clock 1.
        cores: how many can be of use.
        deadline_s: of every task; infinite where there is none.
        power: of one chip, and its clocks.
        chip: chip of each core: of those of use, or of all where they are islands.
        clocks: the settings of a core.
        locked: a task keeps the clock it starts with.
        pieces: whether others may run tasks in pieces; our plans never do.
    """

    graph: WorkGraph
    cores: int
    deadline_s: float
    power: ChipPower
    chip: Ints
    clocks: Clocks
    locked: bool
    pieces: bool

    @property
    def chip_wide(self) -> bool:
        """One clock for all cores."""
        return bool(self.chip[-1] == self.chip[0])

    @property
    def per_core(self) -> bool:
        """A clock for each core."""
        return np.unique(self.chip).size == self.chip.size > 1


@dataclass(frozen=True, slots=True)
class GraphSolver:
    """`plan_graph` with its parameters: what the catalogue's ``graph`` plans with."""

    rule: str
    clocks: str
    how: SearchEffort

    def objection(self, problem: Problem) -> str | None:
        """Say why a problem is none of a chip, or None."""
        return not_limited(problem) or refusal(lambda: as_chip_problem(problem, self.clocks))

    def solve(self, problem: Problem) -> Result:
        """Plan without a bound of its own: bounds are asked of the problem."""
        return plan_graph(problem, self.rule, clocks=self.clocks, how=self.how, bound=False)


def plan_graph(
    problem: Problem,
    rule: str = "search",
    *,
    clocks: str = "optimal",
    how: SearchEffort | None = None,
    bound: bool = True,
) -> Result:
    """Plan all tasks of a problem by its one deadline with the least energy.

    Args:
        problem: one graph on one chip (or on cores with a clock each), all tasks from time 0.
        rule: ``search`` or a list rule: ``lpt``, ``hlf``, ``heft``.
        clocks: ``optimal``; ``single`` (one clock, unaware of static power) or
            ``single-aware``, the baselines of gerards section 6.
        how: seed, effort and time limit of the search.
        bound: compute a lower bound; 0 otherwise.

    Raises:
        InvalidInput: the problem is not of this form.
    """
    question = as_chip_problem(problem, clocks)
    try:
        effort = how or SearchEffort()
        if question.per_core:
            rows = _core_rows(question, rule, effort)
        elif question.chip_wide:
            placed = _placed(question, rule, clocks, effort)
            omega = placed.parallelism(question.graph)
            rows = chip_rows(question.graph, placed, *_chip_clocks(question, omega, clocks)[:2])
        else:
            rows = _island_rows(question, rule, effort)
    except InvalidInput as error:
        if error.field != "deadline":
            raise
        refused = rejecting(len(problem.tasks), f"deadline {error.rule}")
        return Result(refused, 0.0, 0.0, "infeasible", rule)
    schedule = _schedule(problem, question, rows, f"graph:{rule},clocks={clocks}")
    energy = account(problem, schedule).total_j
    least = _bound(question) if bound else 0.0
    least += energy - _graph_energy(question, rows)  # wakes and the like: equal for every schedule
    least = without_rounding(least, energy)
    return Result(schedule, energy, least, status_of(energy, least), rule)


def as_chip_problem(problem: Problem, clocks: str = "optimal") -> GraphQuestion:
    """Read a problem as a graph question, or say what does not fit it or the choice of clocks."""
    question = problem.once("chip problem", lambda: _question(problem))
    if clocks != "optimal" and not question.chip_wide:
        raise InvalidInput(f"clocks={clocks} needs one clock for all processors")
    return question


def _question(problem: Problem) -> GraphQuestion:
    tasks, platform = problem.tasks, problem.platform
    if np.any(tasks.arrival_s > 0.0) or np.any(tasks.processors > 1):
        raise InvalidInput("graph planning needs tasks that arrive at 0 and use one processor")
    if np.any(tasks.deadline_s != tasks.deadline_s[0]) or not np.isfinite(tasks.deadline_s[0]):
        raise InvalidInput("graph planning needs one deadline, the same for all tasks")
    if len(platform.kinds) != 1 or platform.server_count != 1 or platform.slot_s is not None:
        raise InvalidInput("graph planning needs one server with one kind of processor, no slots")
    chips, cores = platform.chip_server.size, platform.processor_count
    kind = platform.kinds[0]
    if kind.clock == "locked" and chips < cores:
        raise InvalidInput("graph planning on one chip needs clocks that may change")
    if kind.clocks.knob != "clock":
        raise InvalidInput("graph planning needs clocks, not power limits")
    time_s, power = _profile(problem, chips == 1)
    graph = WorkGraph.of(tasks.scale * time_s, problem.edges)
    start_s = 0.0 if platform.initially_on[0] else float(platform.wake_s[0])
    deadline_s = float(tasks.deadline_s[0]) - start_s
    useful = min(cores, len(tasks))
    # Islands may differ in size, and which of them are of use is part of the question.
    chip = platform.chip if 1 < chips < cores else platform.chip[:useful]
    locked, pieces = kind.clock == "locked", kind.interrupt != "none"
    return GraphQuestion(graph, useful, deadline_s, power, chip, kind.clocks, locked, pieces)


def _profile(problem: Problem, one_chip: bool) -> tuple[Floats, ChipPower]:
    """Return seconds at clock 1 of each task's unit of work, and the chip's power law."""
    platform, kind = problem.platform, problem.platform.kinds[0]
    if not np.all(problem.runnable()[:, 0]):
        raise InvalidInput(f"some task has no profile for kind '{kind.name}'")
    law = problem.library.core_law(problem.tasks.application, kind.name)
    if law is None:
        raise InvalidInput("graph planning needs CPU profiles (power c1 f^alpha) for every task")
    c1, alpha = law.c1_w, law.alpha
    if np.any(c1 != c1[0]) or np.any(alpha != alpha[0]) or np.any(law.static_w > 0.0):
        raise InvalidInput("graph planning needs one c1 and alpha for all tasks, and static_w = 0")
    if kind.idle_w > 0.0 or (platform.host_w[0] > 0.0 and not one_chip):
        raise InvalidInput("graph planning needs idle_w = 0, and host_w = 0 without a shared clock")
    if np.ptp(platform.shared_w) > 0.0 or np.ptp(platform.shared_w_per_clock) > 0.0:
        raise InvalidInput("graph planning needs chips of one power")
    c3 = float(platform.shared_w[0] + platform.host_w[0])
    c2 = float(platform.shared_w_per_clock[0])
    power = ChipPower(
        float(c1[0]), c2, c3, float(alpha[0]),
        float(kind.clocks.low[CORE]), float(kind.clocks.high[CORE]),
        tuple(np.unique(kind.clocks.points[:, CORE]).tolist()),
    )  # fmt: skip
    return law.time_s, power


def _placed(question: GraphQuestion, rule: str, clocks: str, how: SearchEffort) -> Placement:
    """Place the tasks by a list rule, or search for the least energy that the clocks allow."""
    graph, cores, alpha = question.graph, question.cores, question.power.alpha
    if rule != "search":
        return list_schedule(graph, cores, rule)

    def energy(omega: Floats) -> float:
        try:
            return _chip_clocks(question, omega, clocks)[2]
        except InvalidInput as error:
            if error.field != "deadline":
                raise
            return np.inf

    return search(graph, cores, alpha, how, cost=energy)


def _chip_clocks(
    question: GraphQuestion, omega: Floats, clocks: str
) -> tuple[Floats, Floats, float]:
    """Return cycles at each clock of each number of active cores, the clocks, and the energy."""
    power, deadline_s = question.power, question.deadline_s
    if clocks in ("single", "single-aware"):
        aware = clocks == "single-aware"
        found = single_clock(omega, deadline_s, power, static_aware=aware)
    elif clocks != "optimal":
        rule = "is not one of optimal, single, single-aware"
        raise InvalidInput(rule, field="clocks", value=clocks)
    elif not power.levels:
        found = global_clocks(omega, deadline_s, power)
    else:
        cycles, energy = level_clocks(omega, deadline_s, power)
        return cycles, np.tile(power.levels, (omega.size, 1)), energy
    return omega[:, None], found.clock[:, None], found.energy


def _core_rows(question: GraphQuestion, rule: str, how: SearchEffort) -> ClockedRows:
    """Place tasks and choose a clock for each, or levels where clocks are enumerated."""
    graph, power, deadline_s = question.graph, question.power, question.deadline_s
    starts = []
    if rule == "search":
        if len(graph) <= _STARTS:
            starts = [_placed(question, rule, "optimal", how)]
        placed, found = search_local(graph, question.cores, deadline_s, power, how, starts)
    else:
        placed = list_schedule(graph, question.cores, rule)
        found = local_clocks(graph, placed, deadline_s, power)
    if not power.levels:
        return core_rows(graph, placed, found.start, found.clock)
    rows = [_at_levels(question, placed, found.clock)]
    for start in starts:
        with suppress(InvalidInput):  # too short a deadline for this one
            clock = local_clocks(graph, start, deadline_s, power).clock
            rows.append(_at_levels(question, start, clock))
    return min(rows, key=lambda each: _graph_energy(question, each))


def _at_levels(question: GraphQuestion, placed: Placement, clock: Floats) -> ClockedRows:
    """Enumerated clocks of a placement whose best free ones are known (n,)."""
    graph, power, deadline_s = question.graph, question.power, question.deadline_s
    if question.locked:
        return one_level_each(graph, placed, deadline_s, power, clock)
    if len(graph) <= LEVELS_SOLVED:
        return local_levels(graph, placed, deadline_s, power)
    start = ordered_graph(graph, placed).top_levels(graph.work / clock)
    return at_levels(core_rows(graph, placed, start, clock), np.array(power.levels))


def _island_rows(question: GraphQuestion, rule: str, how: SearchEffort) -> ClockedRows:
    """The best of one clock for all islands and clocks of their own, for some placements."""
    graph, power, deadline_s = question.graph, question.power, question.deadline_s
    found, late = [], None
    for placed in _island_placements(question, rule, how):
        others = arranged(graph, placed, question.chip, deadline_s, power)
        for way in (filled(placed, question.chip), others):
            try:
                omega = way.parallelism(graph)
                found.append(chip_rows(graph, way, *_chip_clocks(question, omega, "optimal")[:2]))
                found.append(island_rows(graph, way, question.chip, deadline_s, power))
            except InvalidInput as error:
                late = error
    if not found and late is not None:
        raise late
    return min(found, key=lambda rows: _graph_energy(question, rows))


def _island_placements(
    question: GraphQuestion, rule: str, how: SearchEffort
) -> Iterator[Placement]:
    """Placements by a rule; of the search those for one clock and a clock per core.

    Where islands draw power of their own, also those for the largest alone.
    """
    graph, power = question.graph, question.power
    placed = _placed(question, rule, "optimal", how)
    yield placed
    largest = int(np.bincount(question.chip).max())
    if largest < question.cores and power.c2 + power.c3 > 0.0:
        yield _placed(replace(question, cores=largest), rule, "optimal", how)
    if rule == "search":
        own, _ = search_local(graph, question.cores, question.deadline_s, power, how, [placed])
        # In cycles, not at clocks of their own.
        yield replace(own, start=ordered_graph(graph, own).top_levels())


def energy_bound_j(problem: Problem, done: Bools) -> float | None:
    """Least energy of any schedule of the whole graph by its deadline, with its one wake."""
    if refusal(lambda: as_chip_problem(problem)) is not None:
        return None
    if not done.all():
        return None
    question, platform = as_chip_problem(problem), problem.platform
    if not question.graph.critical_path:
        return 0.0
    wake_j = 0.0 if platform.initially_on[0] else float(platform.wake_j[0])
    return problem.once("chip bound", lambda: _bound(question)) + wake_j


def _bound(question: GraphQuestion) -> float:
    graph = replace(question.graph, pieces=question.pieces)
    power = question.power
    if question.chip_wide:
        return global_bound(graph, question.cores, question.deadline_s, power)
    most = min(question.cores, int(np.bincount(question.chip).max()))  # share what a chip draws
    power = replace(power, c2=power.c2 / most, c3=power.c3 / most)
    return local_bound(graph, question.cores, question.deadline_s, power)


def _graph_energy(question: GraphQuestion, rows: ClockedRows) -> float:
    """Energy of the rows by the formulas of the paper, without wakes."""
    power, run_s = question.power, rows.end_s - rows.start_s
    own = float(run_s @ (power.c1 * rows.clock**power.alpha))
    if question.per_core:
        return own + float(run_s @ (power.c2 * rows.clock + power.c3))
    chip = question.chip[rows.core]
    return own + sum(_shared_energy(rows, chip == each, power) for each in np.unique(chip))


def _shared_energy(rows: ClockedRows, mine: Bools, power: ChipPower) -> float:
    """What a chip draws itself while any of its rows runs."""
    start_s, end_s = rows.start_s[mine], rows.end_s[mine]
    edge = np.unique(np.concatenate([start_s, end_s]))
    clock = np.zeros(edge.size - 1)
    first, last = np.searchsorted(edge, start_s), np.searchsorted(edge, end_s)
    for a, b, f in zip(first, last, rows.clock[mine], strict=True):
        clock[a:b] = f
    busy_s = np.diff(edge) * (clock > 0.0)
    return float(busy_s @ (power.c2 * clock + power.c3))


def _schedule(
    problem: Problem, question: GraphQuestion, rows: ClockedRows, policy: str
) -> Schedule:
    """Turn rows into a schedule; the server wakes at once and is on until the last end."""
    platform = problem.platform
    wake_s = 0.0 if platform.initially_on[0] else float(platform.wake_s[0])
    rows = replace(rows, start_s=rows.start_s + wake_s, end_s=rows.end_s + wake_s)
    points = question.clocks.at_cores(rows.clock)
    segments = Segments.of(rows.task, rows.core, rows.start_s, rows.end_s, points, share=rows.share)
    states, edge_s = np.array([WAKING, ON]), np.array([0.0, wake_s, rows.end_s.max(initial=0.0)])
    used = slice((0 if wake_s > 0.0 else 1) if rows.task.size else 2, 2)
    state = states[used]
    spans = PowerSpans(np.zeros_like(state), state, edge_s[:2][used], edge_s[1:][used])
    return Schedule(segments, spans, Outcomes.all_done(len(problem.tasks)), policy)
