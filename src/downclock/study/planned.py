"""One schedule with everything that is said about it: verdict, bill, lower bound, value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from downclock.engine.outcome import finish_s
from downclock.engine.policy import Policy, foresees
from downclock.planners.bounds import Bounds
from downclock.planners.catalog import objective_of
from downclock.planners.offline_solver import planned_with_proof
from downclock.planners.result import Result
from downclock.problem.objective import Objective
from downclock.problem.problem import Problem
from downclock.quantities import energy, percent
from downclock.schedule.account.account import account
from downclock.schedule.account.bill import Bill, Boundary
from downclock.schedule.schedule import DONE, REJECTED, Schedule
from downclock.schedule.verify.verdict import Verdict
from downclock.schedule.verify.verify import require_valid, verify
from downclock.study.baselines import require_able
from downclock.study.objective_value import ObjectiveValue, objective_or_none
from downclock.units import J_PER_KWH, TOLERANCE, Floats, Ints, slack

PROVED = 5_000
"""Most tasks whose bound a program is solved for: of 10,000 it took 8.5 s and proved no more."""


@dataclass(frozen=True, slots=True, eq=False)
class Planned:
    """A schedule, judged: verified, billed, and bounded from below.

    Attributes:
        problem: what was asked.
        policy: who made it; a spec of the catalogue where it was planned here.
        schedule: the answer.
        verdict: is it valid; always so where it was planned here.
        bill: what it costs.
        bound_j: no valid schedule of the tasks it runs needs less.
        value: its value under the objective it was asked for; None where that is energy alone.
        planning_s: how long planning took, without compiling; NaN where the schedule was given.
        foresees: the policy looked at jobs before they arrive; None where the schedule was given.
    """

    problem: Problem
    policy: str
    schedule: Schedule
    verdict: Verdict
    bill: Bill
    bound_j: float
    value: ObjectiveValue | None = None
    planning_s: float = np.nan
    foresees: bool | None = None

    @property
    def gap(self) -> float:
        """Energy above the lower bound, as a fraction of it."""
        if self.bound_j <= 0.0:
            return np.inf
        gap = self.bill.total_j / self.bound_j - 1.0
        return 0.0 if abs(gap) < TOLERANCE else gap

    @property
    def amount(self) -> float:
        """What is to be least: energy, or the value under the objective."""
        return self.bill.total_j if self.value is None else self.value.amount

    @property
    def done(self) -> int:
        """Number of tasks that run."""
        return int(np.sum(self.schedule.outcomes.status == DONE))

    @property
    def rejected(self) -> Ints:
        """Tasks that do not run."""
        return np.flatnonzero(self.schedule.outcomes.status == REJECTED)

    @property
    def finish_s(self) -> Floats:
        """End of each task's last segment (tasks,); NaN where it never ran."""
        return finish_s(self.schedule.segments, len(self.problem.tasks))

    @property
    def deadlines_met(self) -> int:
        """Number of deadlines met."""
        tasks = self.problem.tasks
        finish = np.where(tasks.scale > 0.0, self.finish_s, tasks.arrival_s)
        timely = finish <= tasks.deadline_s + slack(tasks.deadline_s)
        done = self.schedule.outcomes.status == DONE
        return int(np.sum(done & timely & np.isfinite(tasks.deadline_s)))

    @property
    def deadlines(self) -> int:
        """Number of deadlines."""
        return int(np.sum(np.isfinite(self.problem.tasks.deadline_s)))

    @property
    def covered(self) -> float:
        """Part of the processor-hours asked for that it does."""
        done_h, asked_h = self.processor_hours
        return done_h / asked_h if asked_h else 1.0

    @property
    def processor_hours(self) -> tuple[float, float]:
        """Processor-hours that it does, and that were asked for, by run times at default clocks.

        A task counts on the kind where it is fastest; one that no kind can run counts nothing.
        """
        tasks, platform = self.problem.tasks, self.problem.platform
        every = np.arange(len(tasks))
        found = []
        for k, kind in enumerate(platform.kinds):
            points = np.tile(kind.clocks.default, (every.size, 1))
            found.append(self.problem.at(every, np.full(every.size, k), points)[0])
        hours = tasks.processors * np.nan_to_num(np.fmin.reduce(found)) / 3600.0
        return float(hours[self.schedule.outcomes.status == DONE].sum()), float(hours.sum())

    def worth_by_task(self) -> Floats:
        """Run energy of each task (tasks,), or what is to be least of it."""
        bill = self.bill
        if self.value is None:
            return bill.task_j
        of = self.value.objective
        worth = of.energy * bill.task_j / J_PER_KWH
        for weight, amounts in ((of.cost, bill.task_money), (of.carbon, bill.task_carbon_kg)):
            worth = worth if amounts is None else worth + weight * amounts
        return worth

    def runs_the_tasks_of(self, other: Planned) -> bool:
        """Tell whether both run the same tasks, so that their figures can be compared."""
        mine, theirs = self.schedule.outcomes.status, other.schedule.outcomes.status
        return bool(np.all((mine == DONE) == (theirs == DONE)))

    def __str__(self) -> str:
        worth = self if self.value is None else self.value
        return (
            f"{self.policy}: {energy(self.bill.total_j)}, gap {percent(worth.gap)},"
            f" {self.done} of {len(self.problem.tasks)} done"
        )

    def record(self) -> dict[str, Any]:
        """The figures as one flat row, units in the names."""
        bill = self.bill
        return {
            "policy": self.policy,
            "foresees": self.foresees,
            **{f"{part}_j": joules for part, joules in bill.energy_j.items()},
            "total_j": bill.total_j,
            "bound_j": self.bound_j,
            "gap": self.gap,
            "tasks": len(self.problem.tasks),
            "done": self.done,
            "covered": self.covered,
            "deadlines_met": self.deadlines_met,
            "rejected": int(self.rejected.size),
            "servers_used": bill.servers_used,
            "wakes": bill.wakes,
            "makespan_s": bill.makespan_s,
            "money": bill.money,
            "currency": bill.currency if bill.money is not None else None,
            "carbon_kg": bill.carbon_kg,
            "planning_s": self.planning_s,
            **({} if self.value is None else self.value.record()),
        }


@dataclass(frozen=True, slots=True, eq=False)
class Judge:
    """What plans of one problem are judged by, so that they can be compared.

    Attributes:
        problem: what is asked.
        boundary: where the energy window of a server ends.
        objective: what plans are valued by; None: that of each policy, or energy alone.
        bounds: lower bounds of the problem.
    """

    problem: Problem
    boundary: Boundary
    objective: Objective | None
    bounds: Bounds

    @classmethod
    def of(
        cls, problem: Problem, boundary: Boundary = "last-task", objective: Objective | None = None
    ) -> Judge:
        """A judge of the problem."""
        return cls(problem, boundary, objective, Bounds(problem))

    def given(self, schedule: Schedule) -> Planned:
        """Judge a schedule that somebody made, valid or not."""
        verdict = verify(self.problem, schedule)
        return Planned(
            *(self.problem, schedule.policy, schedule, verdict),
            *self._figures(schedule, self.objective, None),
        )

    def planned(self, policy: Policy, *, prove: bool = False) -> Planned:
        """Plan with a policy; its plan is valid.

        ``prove``: spend time on a better bound, of up to `PROVED` tasks.

        Raises:
            InvalidInput: the policy cannot plan such problems.
            InvalidSchedule: the policy's plan breaks a rule; that is a bug.
        """
        require_able(self.problem, policy)
        schedule, proof, planning_s = planned_with_proof(self.problem, policy)
        verdict = require_valid(self.problem, schedule)
        own = objective_or_none(objective_of(policy.name))
        objective = self.objective or own
        if prove:
            effort = getattr(policy, "proof_effort", getattr(policy, "effort", 1.0))
            self._prove(schedule, objective, max(1.0, effort))
        figures = self._figures(schedule, objective, proof if own == objective else None)
        what = (self.problem, policy.name, schedule, verdict)
        return Planned(*what, *figures, planning_s, foresees(policy))

    def proven(self, plans: Sequence[Planned]) -> list[Planned]:
        """Spend time on a better bound of the first plan: it holds for all of the same tasks."""
        ours = [each.schedule for each in plans if each.foresees is not None]
        if ours:
            self._prove(ours[0], self.objective, 1.0)
        return [self._bounded(each) for each in plans]

    def _prove(self, schedule: Schedule, objective: Objective | None, effort: float) -> None:
        if len(self.problem.tasks) <= PROVED:
            self.bounds.prove(schedule, objective, effort)

    def _bounded(self, each: Planned) -> Planned:
        """The plan beside what is proven by now."""
        value = each.value
        if value is not None:
            bound = self.bounds.value_below(each.schedule, value.objective)
            value = replace(value, bound=float(np.fmax(value.bound, bound)))
        return replace(each, bound_j=self.bounds.below(each.schedule), value=value)

    def _figures(
        self, schedule: Schedule, objective: Objective | None, proof: Result | None
    ) -> tuple[Bill, float, ObjectiveValue | None]:
        """Return bill, bound and value of a schedule; ``proof`` is that of its solver."""
        bill = account(self.problem, schedule, boundary=self.boundary)
        bound_j = self.bounds.below(schedule)
        if objective is None:
            return bill, bound_j, None
        bound = self.bounds.value_below(schedule, objective, proof)
        return bill, bound_j, ObjectiveValue.of(bill, objective, bound)
