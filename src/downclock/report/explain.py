"""Why a task runs where, when and at the clock it does: what binds it, and the alternatives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from downclock.errors import InvalidInput, suggestion
from downclock.problem.problem import Problem
from downclock.quantities import duration, energy, instant, percent
from downclock.report.alternatives import Alternative, alternatives, clock_words, other_kinds
from downclock.report.moves import moves
from downclock.report.openings import Openings
from downclock.report.placement import Placement, placement
from downclock.report.rejections import rejection
from downclock.report.tables import Page, Table
from downclock.schedule.schedule import DONE, REJECTED, STATUSES, WAKING, Schedule
from downclock.units import slack


@dataclass(frozen=True, slots=True, eq=False)
class Explanation:
    """Reasons for one task.

    Attributes:
        problem, schedule, task: what it is about.
        run: where and when the task runs; None where it does not.
        start, clock, end: sentences: why not sooner, why this clock, why not longer.
        options: other clocks on the same processor, and the best on other kinds.
        moves: sentences: what other processors and other times would cost.
    """

    problem: Problem
    schedule: Schedule
    task: int
    run: Placement | None
    start: tuple[str, ...]
    clock: tuple[str, ...]
    end: tuple[str, ...]
    options: tuple[Alternative, ...]
    moves: tuple[str, ...]

    def page(self) -> Page:
        """The explanation as sentences, a table, plain values and flat rows."""
        lines = [_headline(self)]
        for title, said in (
            ("Why it starts then" if self.run is not None else "Why", self.start),
            ("Why this clock", self.clock),
            ("Why it ends then", self.end),
            ("What moving it would do", self.moves),
        ):
            if said:
                lines += ["", f"{title}:", *(f"  - {sentence}" for sentence in said)]
        tables = (_table(self),) if self.options else ()
        data = self._data()
        return Page(tuple(lines), tables, (), data, data["alternatives"])

    def __str__(self) -> str:
        return str(self.page())

    def _repr_html_(self) -> str:
        return self.page()._repr_html_()

    def _data(self) -> dict[str, Any]:
        outcomes, tasks = self.schedule.outcomes, self.problem.tasks
        return {
            "task": tasks.name[self.task],
            "status": STATUSES[outcomes.status[self.task]],
            "reason": outcomes.reason[self.task],
            "arrival_s": tasks.arrival_s[self.task],
            "deadline_s": tasks.deadline_s[self.task],
            "run": None if self.run is None else self.run.record(self.problem),
            "start": list(self.start),
            "clock": list(self.clock),
            "end": list(self.end),
            "moves": list(self.moves),
            "alternatives": [asdict(option) for option in self.options],
        }


def explain(problem: Problem, schedule: Schedule, task: str | int) -> Explanation:
    """Explain one task of a schedule.

    Args:
        problem: what was asked.
        schedule: the answer.
        task: its name, or its row.

    Raises:
        InvalidInput: there is no such task.
    """
    row = task_row(problem, task)
    run = placement(problem, schedule, row)
    if run is None:
        options = tuple(other_kinds(problem, row, None))
        said = tuple(_why_not(problem, schedule, row))
        return Explanation(problem, schedule, row, None, said, (), (), options, ())
    options = (*alternatives(problem, schedule, run), *other_kinds(problem, row, run))
    return Explanation(
        problem,
        schedule,
        row,
        run,
        tuple(_start_reasons(problem, schedule, run)),
        tuple(_clock_reasons(problem, run, options)),
        tuple(_end_reasons(problem, schedule, run)),
        options,
        tuple(moves(problem, schedule, run)),
    )


def _why_not(problem: Problem, schedule: Schedule, task: int) -> Iterator[str]:
    """Say why a task does not run, and by when it could end beside the others."""
    if schedule.outcomes.status[task] != REJECTED:
        yield from filter(None, [str(schedule.outcomes.reason[task])])
        return
    found = rejection(Openings(problem, schedule), task)
    yield found.why
    if found.possible:
        yield f"earliest deadline: beside this plan it could end by {found.possible}"


def task_row(problem: Problem, task: str | int) -> int:
    """Return the row of a task given by name or row."""
    names = problem.tasks.name
    if isinstance(task, str):
        found = np.flatnonzero(names == task)
        if found.size:
            return int(found[0])
        near = [str(name) for name in names if task.lower() in str(name).lower()][:3]
        alike = suggestion(task, [str(name) for name in names]).partition("; there are")[0]
        hint = f"; did you mean {', '.join(near)}?" if near else alike
        raise InvalidInput(f"is not a task of this problem{hint}", field="task", value=task)
    if not 0 <= task < len(problem.tasks):
        raise InvalidInput(f"must be a row below {len(problem.tasks)}", field="task", value=task)
    return int(task)


def _headline(mine: Explanation) -> str:
    tasks, task = mine.problem.tasks, mine.task
    name = f"{tasks.name[task]} ({mine.problem.library.names[tasks.application[task]]})"
    outcomes = mine.schedule.outcomes
    status = int(outcomes.status[task])
    if mine.run is None:
        if status == DONE:
            return f"{name} has no work to do and is done at once."
        return f"{name} is {STATUSES[status]} and does not run."
    run, deadline = mine.run, float(tasks.deadline_s[task])
    left = "no deadline" if np.isinf(deadline) else f"slack {duration(deadline - run.end_s)}"
    ended = "" if status == DONE else f"; {STATUSES[status]}: {outcomes.reason[task]}"
    start, end = (_moment(mine.problem, at_s) for at_s in (run.start_s, run.end_s))
    return (
        f"{name} runs on {run.where(mine.problem)} from {start} to {end} at"
        f" {clock_words(mine.problem, run)}; {energy(run.energy_j)}, {left}{ended}"
    )


def _moment(problem: Problem, at_s: float) -> str:
    """A moment by the calendar where there is one, else the time since the start."""
    return duration(at_s) if problem.epoch is None else instant(round(at_s), problem.epoch)


def _near(a: float, b: float) -> bool:
    return bool(abs(a - b) <= 1e3 * slack(max(abs(a), abs(b)))) if np.isfinite(b) else False


def _start_reasons(problem: Problem, schedule: Schedule, run: Placement) -> list[str]:
    """Say what the start waits for; where nothing holds it back, that the policy chose it."""
    tasks, edges = problem.tasks, problem.edges
    said = []
    if _near(run.start_s, float(tasks.arrival_s[run.task])):
        said.append(f"arrival: it arrives at {_moment(problem, run.start_s)}")
    for before in edges.before[edges.after == run.task]:
        ends = schedule.segments.end_s[schedule.segments.task == before].max(initial=-np.inf)
        if _near(run.start_s, float(ends)):
            at = _moment(problem, run.start_s)
            said.append(f"predecessor: it starts at {at} because '{tasks.name[before]}' ends then")
    if run.previous is not None and _near(run.start_s, run.previous[1]):
        said.append(f"processor busy: {tasks.name[run.previous[0]]} ends there then")
    spans = schedule.spans
    for server in np.unique(problem.platform.server[run.processors]):
        ready = spans.end_s[(spans.server == server) & (spans.state == WAKING)]
        if any(_near(run.start_s, float(end)) for end in ready):
            said.append(f"server waking: {problem.platform.server_name[server]} is ready only then")
    return said or ["nothing forces it: the policy chose to start later than it could"]


def _clock_reasons(problem: Problem, run: Placement, options: tuple[Alternative, ...]) -> list[str]:
    by_name = {option.alternative: option for option in options}
    clocks = problem.platform.kinds[run.kind].clocks
    best, fastest = by_name.get("least energy"), by_name.get("fastest")
    said = []
    if len(run.points) > 1:
        said.append(f"it changes clocks: {len(run.points)} different ones in turn")
    if best is not None and run.energy_j <= best.energy_j * (1.0 + 1e-4):
        said.append("least energy: no clock of this processor needs less energy for the task")
    elif best is not None and run.busy_s < best.time_s:
        extra = percent(run.energy_j / best.energy_j - 1.0)
        said.append(
            f"hurry: at its cheapest clock it would take {duration(best.time_s)};"
            f" going faster costs {extra} more"
        )
    elif best is not None:
        extra = percent(run.energy_j / best.energy_j - 1.0)
        said.append(
            f"stretched: slower than its cheapest clock, for {extra} more run energy;"
            " it replaces idle time of a server that is awake anyway"
        )
    fitting = [option.change_j for option in options if option.possible == "yes"]
    if said and not said[-1].startswith("least") and np.nanmin(fitting) >= -1e-4 * run.energy_j:
        said.append("least in all: of the clocks that fit none is better, idle and host counted")
    if fastest is not None and run.busy_s <= fastest.time_s * (1.0 + 1e-6):
        said.append("clock limit: it cannot run any faster here")
    if abs(run.points[0][0] - clocks.low[0]) <= 1e-6:
        what = "clock limit: the core clock" if clocks.knob == "clock" else f"{clocks.knob}: it"
        said.append(f"{what} is the lowest this processor allows")
    return said


def _end_reasons(problem: Problem, schedule: Schedule, run: Placement) -> list[str]:
    """Say what a longer run would break; where nothing, how much room there is."""
    tasks, edges, segments = problem.tasks, problem.edges, schedule.segments
    deadline = float(tasks.deadline_s[run.task])
    said = []
    if _near(run.end_s, deadline):
        said.append("deadline: it ends exactly then")
    if run.next is not None and _near(run.end_s, run.next[1]):
        said.append(f"processor busy: {tasks.name[run.next[0]]} starts there then")
    for after in edges.after[edges.before == run.task]:
        starts = segments.start_s[segments.task == after].min(initial=np.inf)
        if _near(run.end_s, float(starts)):
            said.append(f"successor: {tasks.name[after]} starts then")
    for server in np.unique(problem.platform.server[run.processors]):
        others = problem.platform.server[segments.processor] == server
        if _near(run.end_s, float(segments.end_s[others].max(initial=-np.inf))):
            name = problem.platform.server_name[server]
            said.append(f"server end: it is the last task on {name}, which can sleep afterwards")
    if said:
        return said
    follows = segments.start_s[np.isin(segments.task, edges.after[edges.before == run.task])]
    rooms = [deadline, np.inf if run.next is None else run.next[1], *follows]
    room = min(rooms) - run.end_s
    left = "for ever" if np.isinf(room) else f"{duration(room)} longer"
    return [f"nothing forces it: deadline and processor would let it run {left}"]


def _table(mine: Explanation) -> Table:
    rows = []
    for option in mine.options:
        extra = "" if mine.run is None else _difference(option.energy_j / mine.run.energy_j - 1.0)
        amounts = duration(option.time_s), energy(option.energy_j)
        told = (*amounts, extra, _in_all(option), option.possible)
        rows.append((option.alternative, option.clock, *told))
    head = ("alternative", "clock", "runs for", "energy", "against the plan")
    title = "Alternatives (in all: with what idles and what is kept awake)"
    return Table((*head, "in all", "possible"), tuple(rows), title, text=(0, 1, 6))


def _in_all(option: Alternative) -> str:
    if not np.isfinite(option.change_j):
        return ""
    if abs(option.change_j) < 1e-6 * option.energy_j:
        return "same"
    return f"{'+' if option.change_j > 0.0 else ''}{energy(option.change_j)}"


def _difference(fraction: float) -> str:
    if not np.isfinite(fraction):
        return ""
    return "same" if abs(fraction) < 5e-6 else f"{100.0 * fraction:+.2f} %"
