"""What a trace would have cost otherwise: as it ran, at full speed, at one clock, planned.

Around one usual case a single thing is changed at a time: how much time jobs have, whether servers
sleep, how many jobs may be slowed down, how well run times are known, what electricity costs.

All plans of a case run the same jobs and are billed over the same time: from the first submission
to the last, a server with a job that ends later until that. A job that one of them leaves out is
counted, and all are made again without it: what is saved is saved on jobs that both did. Jobs that
the policy cannot run in the usual case are left out of all of it beforehand, on the same cluster.
As it ran, the cluster was on for all jobs: some of them cost no more than their share of that. Jobs
run for as long as in the trace in every case; where run times are not known well, it is what the
policy knows that is drawn.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from downclock.engine.play import play
from downclock.engine.policy import Policy, foresees
from downclock.errors import InvalidInput
from downclock.planners.catalog import CATALOG, policy, with_parameter
from downclock.planners.lists.lengths import OneClock
from downclock.planners.lists.policy import ListPolicy
from downclock.planners.lists.static_cap import best_cap
from downclock.planners.portfolio import Progress, planned
from downclock.problem.price import Prices
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Bill
from downclock.schedule.schedule import AS_IT_RAN, DONE, ON, Schedule
from downclock.schedule.verify.verify import require_valid
from downclock.simulate.chances import Chances, draw_fate
from downclock.simulate.drawn import drawn_world
from downclock.study.as_it_ran import as_it_ran, last_submission_s
from downclock.study.baselines import BASELINES, require_able
from downclock.study.changed import at_default, lasting, price_note, sleepless, vary
from downclock.units import Bools, Ints, Names, slack
from downclock.workloads.traces.packing import NO_PLACE, Placement
from downclock.workloads.traces.to_problem import Choices, Converted, due
from downclock.workloads.traces.trace import Trace

TIME, SLEEP, CLOCKS = "time that jobs have", "servers", "jobs that may be slowed down"
ESTIMATES, PRICES = "run times", "prices"
"""What is changed, one at a time."""

REASONS = 5
"""So many reasons for jobs left out are named."""

ROUNDS = 3
"""So often jobs that the policy turns away are left out of the trace, for all cases."""

AGAIN = 12
"""So often a case is planned without what a plan left out, until all run the same jobs; where they
never do it has no savings."""

NEXT_TO_NONE = 0.01
"""A single clock that leaves out more than this part of the jobs is not the best."""

TASK_COLUMNS = [each.name for each in fields(Tasks) if each.name != "spread"]

RACE, CAPPED = BASELINES
_CAPPED = ListPolicy(CAPPED)


@dataclass(frozen=True, slots=True)
class Knobs:
    """Settings that are tried beside the usual ones, and the prices.

    Attributes:
        slack: deadlines so many run times after the start.
        shares: parts of the jobs that may be slowed down.
        errors: actual run times differ from the estimate by up to so much.
        prices: names and prices to bill by, repeated where they end; the first are the usual ones.
        seed: of the jobs that may not be slowed down, and of run times.
    """

    slack: tuple[float, ...] = (1.25, 3.0, 5.0)
    shares: tuple[float, ...] = (0.5, 0.0)
    errors: tuple[float, ...] = (0.2, 0.5)
    prices: tuple[tuple[str, Prices], ...] = ()
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """What a plan costs on the jobs of its case; of all jobs, those left out and those late."""

    policy: str
    energy_j: float
    money: float | None
    carbon_kg: float | None
    left_out: int
    late: int


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One setting: what is changed, to what, and what every way to run it costs, ours last.

    Attributes:
        jobs: those that every way runs, and costs are of; 0 where there are no such jobs.
        covered: their part of the GPU-hours of all jobs.
    """

    knob: str
    setting: str
    figures: tuple[Figures, ...]
    jobs: int
    covered: float

    def saved(self, other: str, what: str = "energy_j") -> float | None:
        """Part of the other's cost that our plan saves; None where it is not known, or no cost."""
        ours, total = getattr(self.figures[-1], what), getattr(self.of(other), what)
        if not self.jobs or ours is None or total is None or total <= 0.0:
            return None
        return 1.0 - float(ours / total)

    def of(self, policy: str) -> Figures:
        """What one way to run it costs."""
        return next(each for each in self.figures if each.policy == policy)


@dataclass(frozen=True, slots=True, eq=False)
class WhatIf:
    """Everything that was asked of a trace.

    Attributes:
        found: the trace as a problem, only with jobs that the policy can run.
        policy: who plans.
        busy: part of the time that processors were on, as it ran, in which they ran a job.
        usual: the case the others differ from, and ``bills`` of it by policy.
        usually: what the usual case is called where one thing is changed.
        cases: the others.
        assumptions: of all of it, a sentence each.
    """

    found: Converted
    policy: str
    busy: float
    usual: Case
    bills: dict[str, Bill]
    usually: dict[str, str]
    cases: tuple[Case, ...]
    assumptions: tuple[str, ...]


def whatif(
    found: Converted,
    choices: Choices,
    *,
    spec: str = "late",
    knobs: Knobs | None = None,
    progress: Progress | None = None,
) -> WhatIf:
    """Ask what a trace would have cost otherwise.

    Args:
        found: what ran, as a problem.
        choices: what it was made with.
        spec: the policy that plans; online, it knows a job when it arrives.
        knobs: what else is tried.
        progress: told of each case.

    Raises:
        InvalidInput: the policy can run no job of the trace, or is not online.
    """
    knobs = Knobs() if knobs is None else knobs
    tell = progress or (lambda what, done, of: None)
    tell("planning the trace", 0, 1)
    laid = [price_note(found.problem, *each) for each in knobs.prices]
    prices = [(name, lasting(found.problem, each)) for name, each in knobs.prices]
    if prices:
        found = replace(found, problem=replace(found.problem, prices=prices[0][1]))
    elif vary(found.problem.prices):
        prices = [("the cluster's", found.problem.prices)]
    whole = found
    found = _runnable(found, spec)
    work = _Work(whole, found, spec)
    usual, bills = work.billed("usual", "", found.problem)
    cases = []
    asked = list(_asked(work, knobs, choices, prices))
    for k, (knob, setting, make) in enumerate(asked):
        tell(f"{knob}: {setting}", k, len(asked))
        cases.append(make(knob, setting))
    usually = {
        TIME: f"{choices.deadline_factor:g} x {choices.deadlines}",
        SLEEP: "sleep when idle",
        CLOCKS: "100 %",
        ESTIMATES: "as estimated",
        PRICES: f"{prices[0][0]}, by energy" if prices else "none",
    }
    assumed = (*found.problem.assumptions, *laid, *_NOTES)
    busy = _busy(whole.problem, as_it_ran(whole))
    return WhatIf(found, spec, busy, usual, bills, usually, tuple(cases), assumed)


_NOTES = (
    "as it ran: default clocks, every server on from the first submission to the last, and longer"
    " until its own jobs have ended",
    "race: default clocks; static-cap: the best single clock, found in hindsight; both let servers"
    " sleep when idle",
    "the policy learns of a job when it arrives and knows its run time then",
    "all are billed from the first submission to the last, a server with a job that ends later"
    " until that",
    "savings are on jobs that all of these run: where one leaves jobs out, all are planned again"
    " without them",
    "as it ran, some of the jobs cost what a cluster that is on for them alone does, but at most"
    " their share, by run energy, of what all of them did",
)


def _runnable(found: Converted, spec: str) -> Converted:
    """Leave out the jobs that did not fit as it ran, or that the policy cannot run in time."""
    require_able(found.problem, policy(spec))
    if foresees(policy(spec)):
        rule = "looks at jobs before they arrive: name a policy that does not, such as late"
        raise InvalidInput(rule, field="policy", value=spec)
    for _ in range(ROUNDS):  # without some jobs, it may turn away others
        schedule = planned(found.problem, policy(spec))[0]
        fits = found.placement.placed & (schedule.outcomes.status == DONE)
        if fits.all():
            break
        reasons = schedule.outcomes.reason.tolist()
        if not fits.any():
            rule = f"{spec} can run no job of it: {reasons[0]}"
            raise InvalidInput(rule, source=found.trace.ledger.source)
        told = np.array([f"{spec} cannot run it: {_in_general(why)}" for why in reasons], object)
        why = np.where(found.placement.placed, told, NO_PLACE)
        found = _part(found, fits, _without(found.trace, fits, why, spec))
    return found


def _part(found: Converted, fits: Bools, trace: Trace) -> Converted:
    """Some jobs of a problem, on the same cluster."""
    tasks, placed = found.problem.tasks, found.placement
    columns = {name: getattr(tasks, name)[fits] for name in TASK_COLUMNS}
    stays, number = fits[placed.job], np.cumsum(fits) - 1
    rows = number[placed.job[stays]], placed.processor[stays]
    placement = Placement(*rows, placed.pool[fits], placed.how[fits])
    problem = replace(found.problem, tasks=replace(tasks, **columns))
    return replace(found, problem=problem, trace=trace, placement=placement)


def _in_general(reason: str) -> str:
    """Why a job cannot run, without the times of this one."""
    return re.sub(r"deadline .+? (as|even) ", r"deadline, \1 ", reason).partition(": earliest")[0]


def _without(trace: Trace, fits: Bools, why: Names, spec: str) -> Trace:
    """Leave out what does not fit, by reason; rare reasons are counted as one."""
    common = [reason for reason, _ in Counter(why[~fits].tolist()).most_common(REASONS)]
    why = np.array([each if each in common else f"{spec} cannot run it" for each in why.tolist()])
    for reason in [*common, f"{spec} cannot run it"]:
        stays = fits | (why != reason)
        trace, fits, why = trace.where(stays, reason), fits[stays], why[stays]
    return trace


@dataclass(frozen=True, slots=True)
class _Ours:
    """Who plans a case: its name, and a plan of a part of the jobs, these rows of all of them."""

    name: str
    plan: Callable[[Problem, Ints], Schedule]


@dataclass(frozen=True, slots=True, eq=False)
class _Work:
    """What every case of one trace is made with: all of it, what the policy can run, and who."""

    whole: Converted
    found: Converted
    spec: str

    def case(self, knob: str, setting: str, problem: Problem, ours: _Ours | None = None) -> Case:
        """Run a problem every way; ``ours`` plans it instead of the usual policy."""
        return self.billed(knob, setting, problem, ours)[0]

    def billed(
        self, knob: str, setting: str, problem: Problem, ours: _Ours | None = None
    ) -> tuple[Case, dict[str, Bill]]:
        """A case, and its bills by policy."""
        ours = ours or self.by(self.spec)
        cap = problem.once("cap", lambda: best_cap(problem, _CAPPED, self._cost))
        ways, every = partial(self._ways, ours, cap), np.arange(len(problem.tasks))
        part, rows = replace(self.found, problem=problem), every
        plans = asked = ways(part, rows)
        for _ in range(AGAIN):
            runs = np.logical_and.reduce([_runs(part.problem, each) for each in plans])
            if runs.all() or not runs.any():
                break
            part, rows = _part(part, runs, part.trace.taken(np.flatnonzero(runs))), rows[runs]
            plans = ways(part, rows)
        same = all(_runs(part.problem, each).all() for each in plans)
        bills = [_bill(part.problem, each) for each in plans]
        names = (AS_IT_RAN, *BASELINES, ours.name)
        ran, *others = map(partial(_figures, problem), names, asked, bills)
        figures = (self._at_most_its_share(problem, ran, bills[0]), *others)
        covered = float(part.trace.asked_s.sum() / self.found.trace.asked_s.sum())
        case = Case(knob, setting, figures, *((rows.size, covered) if same else (0, 0.0)))
        return case, dict(zip(names, bills, strict=True))

    def _ways(self, ours: _Ours, cap: OneClock, part: Converted, rows: Ints) -> list[Schedule]:
        """As it ran, full speed, one clock, and our policy."""
        problem = part.problem
        ran = problem.once(AS_IT_RAN, lambda: as_it_ran(part))
        others = [_planned(problem, each) for each in (policy(RACE), replace(_CAPPED, lengths=cap))]
        return [ran, *others, ours.plan(problem, rows)]

    def _at_most_its_share(self, problem: Problem, ran: Figures, bill: Bill) -> Figures:
        """What jobs cost as they ran: alone, or by run energy of all jobs' bill if that is less."""
        asked = self.whole.problem
        if bill.task_j.size == len(asked.tasks):
            return ran
        all_of_it = replace(asked, platform=problem.platform, prices=problem.prices)
        whole = _bill(all_of_it, as_it_ran(replace(self.whole, problem=all_of_it)))
        share = float(bill.task_j.sum() / whole.task_j.sum())

        def least(alone: float | None, total: float | None) -> float | None:
            return alone if alone is None or total is None else min(alone, share * total)

        energy_j = min(ran.energy_j, share * whole.total_j)
        money, carbon_kg = least(ran.money, whole.money), least(ran.carbon_kg, whole.carbon_kg)
        return replace(ran, energy_j=energy_j, money=money, carbon_kg=carbon_kg)

    def _cost(self, problem: Problem, schedule: Schedule) -> tuple[bool, float]:
        """What a cap is chosen by: if it leaves out next to no job, our bill.

        With what those cost as they ran and their share of idle and host power.
        """
        left, energy_j = ~_runs(problem, schedule), _bill(problem, schedule).total_j
        if left.any():
            part = replace(self.found, problem=problem)
            ran = problem.once("as it ran, billed", lambda: _bill(problem, as_it_ran(part)))
            energy_j += ran.total_j * float(ran.task_j[left].sum() / ran.task_j.sum())
        return int(left.sum()) > NEXT_TO_NONE * len(problem.tasks), energy_j

    def by(self, spec: str) -> _Ours:
        """A policy of the catalogue."""
        chosen = policy(spec)
        return _Ours(chosen.name, lambda problem, _: _planned(problem, chosen))

    def erring(self, error: float, seed: int) -> _Ours:
        """Our policy where run times differ from what was known, with a reserve for it."""
        chosen = policy(with_parameter(self.spec, "reserve", f"{error:g}"))
        chances = Chances(actual=f"uniform:{1.0 - error:g}:{1.0 + error:g}")
        fate = draw_fate(self.found.problem, chances, seed)

        def realised(problem: Problem, rows: Ints) -> Schedule:
            met = replace(fate, work=fate.work[rows], breaks=fate.breaks[rows])
            tasks = replace(problem.tasks, scale=problem.tasks.scale / met.work)
            estimated = replace(problem, tasks=tasks)
            found = play(estimated, chosen, drawn_world(estimated, met)).schedule
            require_valid(estimated, found, realised=True)
            return found

        return _Ours(self.spec, realised)


def _planned(problem: Problem, chosen: Policy) -> Schedule:
    """A plan, verified; made once of a problem."""

    def made() -> Schedule:
        schedule = planned(problem, chosen)[0]
        require_valid(problem, schedule)
        return schedule

    return problem.once(f"plan {chosen.name}", made)


def _runs(problem: Problem, schedule: Schedule) -> Bools:
    """The jobs (n,) that run, on time or late."""
    found = np.zeros(len(problem.tasks), dtype=bool)
    found[schedule.segments.task] = True
    return found


def _bill(problem: Problem, schedule: Schedule) -> Bill:
    """Bill a schedule over the time of the trace."""
    return account(problem, schedule, boundary=last_submission_s(problem))


def _figures(problem: Problem, name: str, asked: Schedule, bill: Bill) -> Figures:
    """What a bill says, and the jobs that the plan of all of them leaves out or ends late."""
    left = int(np.sum(~_runs(problem, asked)))
    late = _late(problem, asked)
    return Figures(name, bill.total_j, bill.money, bill.carbon_kg, left, late)


def _busy(problem: Problem, schedule: Schedule) -> float:
    """Part of the processors' time on servers that are on in which they run a task."""
    segments, spans, platform = schedule.segments, schedule.spans, problem.platform
    on = spans.state == ON
    size = np.bincount(platform.server, minlength=platform.server_count)[spans.server[on]]
    on_s = float((size * (spans.end_s - spans.start_s)[on]).sum())
    return float((segments.end_s - segments.start_s).sum()) / on_s


def _late(problem: Problem, schedule: Schedule) -> int:
    """Jobs that end after their deadline."""
    segments = schedule.segments
    deadline_s = problem.tasks.deadline_s[segments.task]
    over = segments.end_s > deadline_s + slack(deadline_s)
    return int(np.unique(segments.task[over]).size)


def _asked(
    work: _Work, knobs: Knobs, choices: Choices, prices: Sequence[tuple[str, Prices]]
) -> Iterator[tuple[str, str, Callable[[str, str], Case]]]:
    """Every case: what is changed, to what, and how it is made."""
    problem, trace = work.found.problem, work.found.trace

    def of(other: Problem, ours: _Ours | None = None) -> Callable[[str, str], Case]:
        return lambda knob, setting: work.case(knob, setting, other, ours)

    for factor in knobs.slack if not np.isfinite(trace.deadline_s).all() else ():
        due_s, _ = due(trace, replace(choices, deadline_factor=factor))
        tasks = replace(problem.tasks, deadline_s=due_s - work.found.zero_s)
        yield TIME, f"{factor:g} x {choices.deadlines}", of(replace(problem, tasks=tasks))
    yield SLEEP, "never sleep", of(replace(problem, platform=sleepless(problem.platform)))
    order = np.random.default_rng(knobs.seed).permutation(len(problem.tasks))
    for share in knobs.shares:
        fixed = order[round(share * order.size) :]
        yield CLOCKS, f"{100 * share:.0f} %", of(at_default(problem, fixed))
    for error in knobs.errors if "reserve" in CATALOG[work.spec.partition(":")[0]].defaults else ():
        setting = f"known to {100 * error:.0f} %, reserve {100 * error:.0f} %"
        yield ESTIMATES, setting, of(problem, work.erring(error, knobs.seed))
    for k, (name, each) in enumerate(prices):
        other = replace(problem, prices=each) if k else problem  # which has the first ones already
        if k:
            yield PRICES, f"{name}, by energy", of(other)
        if vary(each):
            yield PRICES, f"{name}, by cost (thrifty)", of(other, work.by("thrifty:objective=cost"))
