"""The catalogue: every policy by name, with the papers' names as entries.

A spec is a name with parameters, such as ``edl`` or ``edl:theta=0.9,rho=120``. Parameters that
several entries share:

- ``rho``: seconds an idle server stays awake; ``break-even``: until idling has cost as much as
  waking; ``never``: it never falls asleep.
- ``dvfs``: ``on``; ``off`` runs at default clocks. ``grid``: voltage step of mei2021's public
  code; 0 is the exact optimum. ``slack``: ``on`` does not stretch a grid length to the deadline.
- ``start``: at time 0, ``batch`` places deadline-bound tasks first, each on a processor of its
  own (mei2021 Algorithm 2), ``stream`` treats time 0 like any other (Algorithm 5).
- ``group``: ``on`` groups the processors of time 0 into servers by length (Algorithm 3).
- ``by``: what full means where a fit asks: the ``end`` of the last task; the ``load``, a sum of
  utilisations; the ``peak`` load, the greatest over its tasks of work so far over deadline
  (mei2021's public code).
- ``effort``: seconds spent on search, for a batch or spread over the events of a stream.
- ``slot``: tasks start at multiples of so many seconds; 0: any time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Any, cast

import numpy as np

from downclock.engine.keeping import Keeping
from downclock.engine.policy import Policy, foresees
from downclock.errors import InvalidInput, suggestion
from downclock.planners.cluster.policy import ClusterPolicy
from downclock.planners.known import KnownPolicy, best_known, usual_effort
from downclock.planners.lists.lengths import LeastEnergy, Lengths, OneClock
from downclock.planners.lists.order import Order
from downclock.planners.lists.policy import Fit, ListPolicy
from downclock.planners.lists.sleep import Patience
from downclock.planners.lists.static_cap import StaticCap
from downclock.planners.lists.voltage_grid import VoltageGrid
from downclock.planners.mapping.entries import liu, replanned
from downclock.planners.offline_solver import ForeseeingPolicy, OfflinePolicy
from downclock.planners.portfolio import Progress
from downclock.problem.objective import parse_objective
from downclock.problem.problem import Problem
from downclock.quantities import require_quantity


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the catalogue.

    Attributes:
        name: what users write.
        summary: one line for listings.
        make: builds the policy from the parameters.
        defaults: every parameter with its default.
    """

    name: str
    summary: str
    make: Callable[..., Policy]
    defaults: dict[str, Any]


def _edl(
    theta: float,
    rho: float | str,
    dvfs: bool,
    start: str,
    group: bool,
    grid: float,
    slack: bool,
    slot: float,
) -> Policy:
    """EDL of mei2021: Algorithms 2 and 3 at time 0 (``start=batch``), else 5 throughout."""
    batch = _one_of("start", start, ("batch", "stream")) == "batch"
    made = ListPolicy(
        "edl",
        theta=_part("theta", theta),
        patience=_patience(rho),
        lengths=_lengths(dvfs, grid, slack),
        group=group and batch,
        prior_alone=batch,
        slot_s=slot,
    )
    return made if slot == 0.0 else Keeping(made)


def _fitting(order: Order, **fits: Fit) -> Callable[..., Policy]:
    """EDF-BF, EDF-WF and LPT-FF of mei2021 section 5.3; a fit for each meaning of "full"."""

    def make(
        rho: float | str,
        dvfs: bool,
        start: str,
        group: bool,
        grid: float,
        slack: bool,
        by: str = "end",
    ) -> Policy:
        batch = _one_of("start", start, ("batch", "stream")) == "batch"
        return ListPolicy(
            "fitting",
            order=order,
            fit=fits[_one_of("by", by, tuple(fits))],
            patience=_patience(rho),
            lengths=_lengths(dvfs, grid, slack),
            group=group and batch,
            prior_alone=batch,
        )

    return make


def _bin(rho: float | str, dvfs: bool, start: str, grid: float, slack: bool, slot: float) -> Policy:
    """Algorithm 6 of mei2021: worst fit at time 0, then first fit.

    The worst fit chooses the least loaded processor; ``start=end-time`` asks only that the task
    ends in time there, ``start=load`` that the load stays at most 1, as line 6 says;
    ``start=peak`` chooses the one with the least peak load, as the public code does, and
    ``start=peak-prior`` gives deadline-bound tasks a processor each before the others come, as that
    code does online (its published numbers need it).
    """
    worst: dict[str, Fit] = {
        "end-time": "worst",
        "load": "lightest",
        "peak": "loosest",
        "peak-prior": "loosest",
    }
    made = ListPolicy(
        "bin",
        fit="first",
        first_fit=worst[_one_of("start", start, tuple(worst))],
        prior_alone=start == "peak-prior",
        patience=_patience(rho),
        lengths=_lengths(dvfs, grid, slack),
        group=False,
        slot_s=slot,
    )
    return made if slot == 0.0 else Keeping(made)


def _race(rho: float | str) -> Policy:
    return ListPolicy("race", lengths=OneClock(), patience=_patience(rho))


def _static_cap(rho: float | str) -> Policy:
    tuner = StaticCap("static-cap", ListPolicy("static-cap", patience=_patience(rho)))
    return cast(Policy, tuner)  # `play` asks it for the policy of a problem


def _graph(rule: str, clocks: str, effort: float, seed: float) -> Policy:
    """Task graphs on one chip by one deadline (gerards); see `plan_graph`."""
    from downclock.planners.chip.plan import GraphSolver
    from downclock.planners.chip.search import SearchEffort

    _one_of("rule", rule, ("search", "lpt", "hlf", "heft"))
    _one_of("clocks", clocks, ("optimal", "single", "single-aware"))
    how = SearchEffort(seed=int(seed), effort=effort)
    return OfflinePolicy("graph", GraphSolver(rule, clocks, how))


def _least_cost(objective: str, rounds: float, seconds: float, seed: float) -> Policy:
    """Task graphs under prices that change (gerhards); see `plan_least_cost`."""
    from downclock.planners.slots.plan import LeastCostSolver

    for name, value, least in (("rounds", rounds, 1.0), ("seconds", seconds, 0.001)):
        if not value >= least:
            raise InvalidInput(
                f"must be at least {least:g}", item="policy 'least-cost'", field=name, value=value
            )
    solver = LeastCostSolver(parse_objective(objective), seconds, int(rounds), int(seed))
    return ForeseeingPolicy("least-cost", solver)


def _thrifty(objective: str, dvfs: bool, reserve: float) -> Policy:
    """Deadline jobs on servers that sleep, under prices that change."""
    goal = parse_objective(objective)
    return ClusterPolicy("thrifty", objective=goal, dvfs=dvfs, reserve=reserve)


def _known(objective: str, effort: float, seed: float) -> Policy:
    """Destroy and repair over whole plans, with all arrivals in view; see `solve_known`."""
    return cast(Policy, KnownPolicy("known", parse_objective(objective), effort, int(seed)))


def _lengths(dvfs: bool, grid: float, slack: bool) -> Lengths:
    if not dvfs:
        return OneClock()
    return VoltageGrid(grid, slack) if grid else LeastEnergy()


def _patience(rho: float | str) -> Patience:
    if isinstance(rho, str):
        return "never" if _one_of("rho", rho, ("break-even", "never")) == "never" else "break-even"
    return float(rho)


def _part(field: str, value: float) -> float:
    if not 0.0 < value <= 1.0:
        raise InvalidInput("must be above 0 and at most 1", field=field, value=value)
    return value


def _one_of(field: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise InvalidInput(f"must be one of {', '.join(choices)}", field=field, value=value)
    return value


def _late(effort: float, reserve: float) -> Policy:
    return ClusterPolicy("late", effort=effort, reserve=reserve)


def _prompt(reserve: float) -> Policy:
    return ClusterPolicy("prompt", late=False, reserve=reserve)


_GRID: dict[str, Any] = {"grid": 0.0, "slack": False}
_SHARED: dict[str, Any] = {"rho": 0.0, "dvfs": True, "start": "batch", "group": True, **_GRID}

CATALOG: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        Entry(
            "late",
            "ours: least added energy, plans may change until the start",
            _late,
            {"effort": 0.0, "reserve": 0.0},
        ),
        Entry(
            "prompt",
            "ours: least added energy, answered at once and for good",
            _prompt,
            {"reserve": 0.0},
        ),
        Entry(
            "thrifty",
            "ours: least added cost or carbon where prices change; tasks wait for cheap hours",
            _thrifty,
            {"objective": "cost", "dvfs": True, "reserve": 0.0},
        ),
        Entry("race", "default clocks, earliest deadline, soonest free", _race, {"rho": 0.0}),
        Entry(
            "static-cap", "the best single clock for all, in hindsight", _static_cap, {"rho": 0.0}
        ),
        Entry(
            "edl",
            "EDL theta-readjustment (mei2021, mei2017)",
            _edl,
            {"theta": 1.0, **_SHARED, "slot": 0.0},
        ),
        Entry(
            "edf-bf",
            "earliest deadline, best fit (mei2021)",
            _fitting("deadline", end="best", load="fullest", peak="tightest"),
            {**_SHARED, "by": "end"},
        ),
        Entry(
            "edf-wf",
            "earliest deadline, worst fit (mei2021)",
            _fitting("deadline", end="soonest", load="worst", peak="loosest"),
            {**_SHARED, "by": "load"},
        ),
        Entry(
            "lpt-ff",
            "longest task, first fit (mei2021)",
            _fitting("longest", end="first"),
            _SHARED,
        ),
        Entry(
            "bin",
            "bin packing: worst fit at time 0, then first fit (mei2021 Algorithm 6)",
            _bin,
            {"rho": 0.0, "dvfs": True, "start": "end-time", **_GRID, "slot": 0.0},
        ),
        Entry(
            "liu",
            "CPU-GPU mapping by load, whole processors slowed (liu), made safe",
            liu,
            {"scheme": "dynamic", "rules": "safe", "thr": 0.2},
        ),
        Entry(
            "replan",
            "CPU-GPU mapping by energy, planned anew at every arrival and completion",
            replanned,
            {"until": "horizon", "reserve": 0.0},
        ),
        Entry(
            "graph",
            "task graphs on one chip by one deadline: search, or gerards' list schedules",
            _graph,
            {"rule": "search", "clocks": "optimal", "effort": 1.0, "seed": 0.0},
        ),
        Entry(
            "least-cost",
            "task graphs in slots under changing prices (gerhards)",
            _least_cost,
            {"objective": "cost", "rounds": 400.0, "seconds": float("inf"), "seed": 0.0},
        ),
        Entry(
            "known",
            "ours: search over whole plans, gangs and task graphs too; all arrivals are known",
            _known,
            {"objective": "energy", "effort": 1.0, "seed": 0.0},
        ),
    )
}


def register(name: str, summary: str, make: Callable[..., Policy], **defaults: Any) -> None:
    """Add a policy to the catalogue of this process; its parameters are the defaults' names.

    Raises:
        InvalidInput: the name is taken.
    """
    if name in CATALOG:
        raise InvalidInput("is the name of another policy", field="policy", value=name)
    CATALOG[name] = Entry(name, summary, make, defaults)


DEFAULT = "late"
"""The policy to use where none is named and jobs become known as they come."""

QUICK, MANY = ("late", "prompt", "thrifty", "race", "edl"), 20_000
"""What is tried of more tasks than this; of fewer, all of the catalogue is."""

SLOW, FEW = ("liu", "replan"), 100
"""What is tried of at most so many tasks."""

SEARCHED = 5_000
"""Tasks up to which plans are bettered by a search where nobody asks for it."""


def default_policy(
    problem: Problem,
    objective: str | None = None,
    *,
    known: bool = True,
    effort: float | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
) -> Policy:
    """The policy to use for a problem where none is named.

    Where all is known, for clusters the best of all that apply, or a search that goes on from it;
    else our own. For other problems the first that can plan them.

    Args:
        problem: what is asked.
        objective: what is to be least; None: what the policy for such problems is for, which is
            energy but for task graphs in slots.
        known: all of the problem may be looked at, not only what has arrived.
        effort: about seconds of search; when not given a second, less for few tasks, and where
            the search was not compiled (``downclock compile``) as much as it does in one plain.
        seed: of the search.
        progress: told of each policy.

    Raises:
        InvalidInput: no policy can plan such a problem by that objective, or none has an effort.
    """
    by = None if objective in (None, "energy") else objective
    if by is not None:
        _require_aware(problem, by, known=known)
    if not known:
        specs = [DEFAULT if by is None else "thrifty"]
    else:
        best = _best_known(problem, by, effort, seed, progress)
        if best is not None:
            return best
        specs = []
    specs += ["graph", *([] if objective == "energy" else ["least-cost"])]
    specs += [] if by else ["least-cost:objective=energy", "replan"]
    able = (spec for spec in specs if _able(problem, policy(_told(spec, by, seed)), known))
    slotted = known and problem.platform.slot_s is not None
    last = "least-cost" if slotted else DEFAULT  # who refuses says who else can
    chosen = _told(next(able, last), by, seed)
    return policy(chosen if effort is None else with_parameter(chosen, "effort", f"{effort:g}"))


def _able(problem: Problem, candidate: Policy, known: bool) -> bool:
    """Whether a policy can plan a problem of which all is known, or only what has arrived."""
    if not known and foresees(candidate) and np.any(problem.tasks.arrival_s > 0.0):
        return False
    return candidate.objection(problem) is None


def _best_known(
    problem: Problem,
    objective: str | None,
    effort: float | None,
    seed: int | None,
    progress: Progress | None,
) -> Policy | None:
    """The best of all that apply to a cluster, or a search that betters it."""
    count = len(problem.tasks)
    left = {"known", "least-cost", *(() if objective else ("thrifty",))}
    left |= set() if len(problem.edges) else {"graph"}
    left |= set() if count <= FEW else set(SLOW)
    names = [name for name in CATALOG if name not in left and (count <= MANY or name in QUICK)]
    tried = [*names, *([] if effort is None else [f"late:effort={effort:g}"])]
    spent = effort if effort is not None else usual_effort(count) if count <= SEARCHED else 0.0
    told = _told("known", objective, seed)
    known = policy(told if effort is None else with_parameter(told, "effort", f"{effort:g}"))
    search = replace(cast(KnownPolicy, known), effort=spent)
    made = [policy(_told(spec, objective, seed)) for spec in tried]
    return best_known(problem, made, search, progress)


def _told(spec: str, objective: str | None, seed: int | None) -> str:
    """The spec with an objective and a seed, where its policy has such."""
    told = spec if objective is None else with_objective(spec, objective)
    return with_seed(told, seed)


def _require_aware(problem: Problem, objective: str, *, known: bool) -> None:
    """Refuse a problem that no policy can plan by an objective."""
    why = []
    for name, entry in CATALOG.items():
        if "objective" in entry.defaults and (known or name != "known"):
            objection = policy(with_objective(name, objective)).objection(problem)
            if objection is None:
                return
            why.append(f"{name} {objection}")
    rule = f"has no policy that plans by {objective}: {'; '.join(why)}"
    raise InvalidInput(rule, item=f"problem '{problem.name}'")


def with_seed(spec: str, seed: int | None) -> str:
    """Return the spec with a seed, where its policy has one and the spec does not give it."""
    name, _, given = spec.partition(":")
    if seed is None or name not in CATALOG or "seed" not in CATALOG[name].defaults:
        return spec
    if any(part.startswith("seed=") for part in given.split(",")):
        return spec
    return with_parameter(spec, "seed", str(seed))


def objective_of(spec: str) -> str | None:
    """The objective a spec plans by; None for energy where that is usual, and where it has none."""
    found = _objective(spec)
    usual = found == "energy" == CATALOG[spec.partition(":")[0]].defaults["objective"]
    return None if usual else found


def _objective(spec: str) -> str | None:
    name, _, given = spec.partition(":")
    if name not in CATALOG or "objective" not in CATALOG[name].defaults:
        return None
    told = dict(part.partition("=")[::2] for part in given.split(",") if part)
    return str(told.get("objective", CATALOG[name].defaults["objective"]))


def with_objective(spec: str, objective: str) -> str:
    """Return the spec with an objective, where its policy has one.

    Raises:
        InvalidInput: the spec names another one already.
    """
    known = _objective(spec)
    if known is None or known == objective:
        return spec
    if "objective=" in spec:
        rule = f"asks for another objective than '{objective}'"
        raise InvalidInput(rule, field="policy", value=spec)
    return f"{spec}{',' if ':' in spec else ':'}objective={objective}"


def without_objective(spec: str) -> str:
    """Return the spec without its objective, for headings where all share one."""
    name, _, text = spec.partition(":")
    kept = [part for part in text.split(",") if part and not part.startswith("objective=")]
    return f"{name}:{','.join(kept)}" if kept else name


def with_parameter(spec: str, key: str, value: str) -> str:
    """Return the spec with a parameter set, whatever it was.

    Raises:
        InvalidInput: the policy has no such parameter.
    """
    name, _, text = spec.partition(":")
    if name in CATALOG and key not in CATALOG[name].defaults:
        having = ", ".join(each for each in CATALOG if key in CATALOG[each].defaults)
        raise InvalidInput(f"has no {key}; these have: {having}", item=f"policy '{name}'")
    kept = [part for part in text.split(",") if part and not part.startswith(f"{key}=")]
    return f"{name}:{','.join([*kept, f'{key}={value}'])}"


def policy(spec: str) -> Policy:
    """Make a policy from its spec; its name is the spec without parameters left at default."""
    name, _, text = spec.partition(":")
    if name not in CATALOG:
        load_registered()
    if name not in CATALOG:
        rule = f"is not a policy{suggestion(name, list(CATALOG))}"
        raise InvalidInput(rule, field="policy", value=name)
    entry = CATALOG[name]
    given = dict(_parameter(entry, part) for part in text.split(",") if part)
    try:
        made = entry.make(**{**entry.defaults, **given})
    except InvalidInput as error:
        item = f"policy '{name}'" if error.item is None else error.item
        raise InvalidInput(error.rule, item=item, field=error.field, value=error.value) from None
    return _named(made, _spec(entry, given))


@cache
def load_registered() -> None:
    """Let installed packages register their policies (entry points `downclock.policies`)."""
    from importlib.metadata import entry_points

    for point in entry_points(group="downclock.policies"):
        if point.name not in CATALOG:
            point.load()()


def _spec(entry: Entry, given: dict[str, Any]) -> str:
    told = [
        f"{key}={_text(given[key])}"
        for key, default in entry.defaults.items()
        if key in given and given[key] != default
    ]
    return f"{entry.name}:{','.join(told)}" if told else entry.name


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else f"{value:g}"


def _named(made: Policy, name: str) -> Policy:
    """Give a policy that keeps its name in a field the full one."""
    if is_dataclass(made) and any(spec.name == "name" for spec in fields(made)):
        renamed: Policy = replace(made, name=name)
        return renamed
    return made


def _parameter(entry: Entry, part: str) -> tuple[str, Any]:
    key, equals, text = part.partition("=")
    item = f"policy '{entry.name}'"
    if key not in entry.defaults or not equals:
        rule = f"is not a parameter of this policy{suggestion(key, list(entry.defaults))}"
        raise InvalidInput(rule, item=item, field=key, value=text)
    default = entry.defaults[key]
    if isinstance(default, bool):
        if text not in ("on", "off"):
            raise InvalidInput("must be on or off", item=item, field=key, value=text)
        return key, text == "on"
    if isinstance(default, str):
        return key, text
    try:
        number = float(text)
    except ValueError:
        if key == "rho":
            return key, text
        raise InvalidInput("must be a number", item=item, field=key, value=text) from None
    require_quantity(key, number, item=item)
    return key, number
