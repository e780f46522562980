"""What counts as a failure: an error not ours, a warning, an invalid plan, NaN in a bill."""

from __future__ import annotations

import math
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

import downclock as dc
from downclock.errors import InvalidInput, InvalidSchedule, MissingExtra

T = TypeVar("T")

REFUSALS = (InvalidInput, MissingExtra)
"""Errors that tell the user what is wrong; an `InvalidSchedule` of ours is a bug."""

SPECS = (
    *(
        "late",
        "prompt",
        "thrifty",
        "race",
        "static-cap",
        "edl",
        "edf-bf",
        "edf-wf",
        "lpt-ff",
        "bin",
    ),
    *("liu", "replan", "graph:effort=0.01", "least-cost:objective=energy,rounds=1,seconds=0.02"),
    "known:effort=0.01",
)
"""Every policy of the catalogue, at a small effort."""

READINGS = (
    *("edl:theta=0.5,start=stream,rho=120", "edl:theta=0.9,grid=0.05,rho=break-even"),
    *(
        "edf-bf:by=load,group=off",
        "bin:start=load,rho=30",
        "race:rho=break-even",
        "late:reserve=0.2",
    ),
    *("thrifty:objective=0.7cost+0.3carbon", "thrifty:objective=carbon,dvfs=off"),
    *("graph:rule=lpt", "graph:rule=heft,clocks=single", "least-cost:rounds=1,seconds=0.02"),
)
"""Some of them otherwise; an input gets one."""

MOST_PROCESSORS, MOST_TASKS = 500, 50

LONGEST_LINE = 2_000
"""Characters of a complaint."""


@dataclass
class Outcome:
    """What became of one input.

    Attributes:
        specs: the policies that plan what is accepted.
        shown: it is also shown as ``plan`` shows it.
        refused: the complaint; None where the input was accepted.
        planned: plans that were made of it.
        failures: what went wrong, as ``stage: what: where``.
    """

    specs: Sequence[str] = SPECS
    shown: bool = True
    refused: str | None = None
    planned: int = 0
    failures: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> bool:
        return self.refused is None and not any(f.startswith("read:") for f in self.failures)

    def attempt(
        self, stage: str, do: Callable[[], T], refusals: tuple[type[Exception], ...] = REFUSALS
    ) -> T | None:
        """Do something; a refusal gives None, any other error and any warning is a failure."""
        with self._watched(stage):
            try:
                return do()
            except refusals as error:
                self._refusal(stage, str(error))
            except Exception as error:
                self.failures.append(
                    f"{stage}: {type(error).__name__}: {_where(error)}: {_brief(error)}"
                )
                self.traces.append("".join(traceback.format_exception(error)))
        return None

    def fail(self, stage: str, text: str) -> None:
        """Note a failure."""
        self.failures.append(f"{stage}: {text}")

    def _refusal(self, stage: str, line: str) -> None:
        if stage == "read":
            self.refused = line
        if len(line.splitlines()) > 1 or len(line) > LONGEST_LINE:
            self.fail(
                stage,
                f"complaint of more than one line or {LONGEST_LINE} characters: {line[:300]!r}",
            )

    @contextmanager
    def _watched(self, stage: str) -> Iterator[None]:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            yield
        for each in seen:
            place = f"{each.filename.rpartition('/src/')[2]}:{each.lineno}"
            self.fail(stage, f"{each.category.__name__}: {place}: {each.message}")


def judge_problem(
    outcome: Outcome, problem: dc.Problem, specs: Sequence[str] | None = None
) -> list[str]:
    """Plan a problem by every policy that applies, verify and bill; return who planned it."""
    planned, specs = [], outcome.specs if specs is None else specs
    for spec in specs if _is_small(problem) else ():
        schedule = outcome.attempt(f"plan {spec}", lambda s=spec: _planned(problem, s))
        if schedule is not None:
            planned.append(spec)
            judge_schedule(outcome, f"of {spec}", problem, schedule, valid=True)
    outcome.planned += len(planned)
    return planned


def judge_whole(outcome: Outcome, problem: dc.Problem, folder: Path) -> None:
    """All of `judge_problem`; and it is written and read back, and shown with its baselines."""
    planned = judge_problem(outcome, problem)
    if not _is_small(problem):
        return
    path = folder / "again.json"
    outcome.attempt("write", lambda: dc.write_problem(problem, path))
    if path.exists():
        again = outcome.attempt("write", lambda: dc.read_problem(path), ())
        if again is not None and not _same(problem.tasks, again.tasks):
            outcome.fail("write", "tasks read back differ")
    if planned and outcome.shown:
        outcome.attempt("show", lambda: str(dc.summarise(problem, planned[0])))


def _is_small(problem: dc.Problem) -> bool:
    """Larger problems are read but not planned: they are about size, not about oddity."""
    return problem.platform.processor_count <= MOST_PROCESSORS and len(problem.tasks) <= MOST_TASKS


def _same(tasks: dc.Tasks, others: dc.Tasks) -> bool:
    return all(
        np.array_equal(getattr(tasks, field), getattr(others, field))
        for field in ("name", "scale", "arrival_s", "deadline_s", "processors")
    )


def _planned(problem: dc.Problem, spec: str) -> dc.Schedule | None:
    policy = dc.policy(spec)
    return None if policy.objection(problem) is not None else dc.plan(problem, policy)


def judge_schedule(
    outcome: Outcome, whose: str, problem: dc.Problem, schedule: dc.Schedule, *, valid: bool
) -> None:
    """Verify and bill a schedule; ``valid``: it was made here and must be valid."""
    verdict = outcome.attempt(f"verify {whose}", lambda: dc.verify(problem, schedule))
    if verdict is None:
        return
    if valid and not verdict.ok:
        outcome.fail(f"plan {whose}", f"invalid: {' / '.join(str(verdict).splitlines()[:3])}")
    refusals = REFUSALS if verdict.ok else (*REFUSALS, InvalidSchedule)
    bill = outcome.attempt(f"account {whose}", lambda: dc.account(problem, schedule), refusals)
    if bill is not None and not _finite(bill.as_dict(details=True)):
        outcome.fail(f"account {whose}", "a bill with NaN or infinity")


def _finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(_finite, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _where(error: BaseException) -> str:
    """The innermost place in the package."""
    ours = [
        f"{frame.filename.rpartition('/src/')[2]}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if "/src/downclock/" in frame.filename
    ]
    return ours[-1] if ours else "outside the package"


def _brief(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
