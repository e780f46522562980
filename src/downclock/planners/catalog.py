"""The catalogue: every policy by name, with the papers' names as entries.

A spec is a name with parameters, such as ``edl`` or ``edl:theta=0.9,rho=120``. What each parameter
means is told to users by `downclock.report.catalogue`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from inspect import signature
from typing import Any, cast, get_args

import numpy as np

from downclock.engine.keeping import Keeping
from downclock.engine.policy import Policy
from downclock.errors import InvalidInput, suggestion
from downclock.planners.cluster.policy import ClusterPolicy
from downclock.planners.known import KnownPolicy
from downclock.planners.lists.lengths import LeastEnergy, Lengths, OneClock
from downclock.planners.lists.order import Order
from downclock.planners.lists.policy import Fit, ListPolicy
from downclock.planners.lists.sleep import Patience
from downclock.planners.lists.static_cap import StaticCap
from downclock.planners.lists.voltage_grid import VoltageGrid
from downclock.planners.mapping.mapping import Rules
from downclock.planners.mapping.policy import LiuPolicy
from downclock.planners.mapping.queue import READINGS
from downclock.planners.mapping.replan import Replan, Until
from downclock.planners.offline_solver import ForeseeingPolicy, OfflinePolicy
from downclock.problem.objective import parse_objective
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


CATALOG: dict[str, Entry] = {}


def register(name: str, summary: str, make: Callable[..., Policy], **defaults: Any) -> None:
    """Add a policy to the catalogue of this process; its parameters are the defaults' names.

    Raises:
        InvalidInput: the name is taken, or none that a spec can hold; ``make`` does not take the
            parameters.
    """
    if name in CATALOG:
        raise InvalidInput("is the name of another policy", field="policy", value=name)
    if not name or set(name) & set(":,= "):
        raise InvalidInput("must be a name without : , = and blanks", field="policy", value=name)
    try:
        signature(make).bind(**defaults)
    except TypeError as error:
        rule = f"do not fit what makes it: {error}"
        raise InvalidInput(rule, item=f"policy '{name}'", field="parameters") from None
    CATALOG[name] = Entry(name, summary, make, defaults)


def _entry(name: str, summary: str) -> Callable[[Callable[..., Policy]], Callable[..., Policy]]:
    """Register the function below; its parameters have their defaults."""

    def registered(make: Callable[..., Policy]) -> Callable[..., Policy]:
        given = signature(make).parameters.values()
        register(name, summary, make, **{each.name: each.default for each in given})
        return make

    return registered


@_entry("late", "ours: least added energy, plans may change until the start")
def _late(effort: float = 0.0, reserve: float = 0.0) -> Policy:
    return ClusterPolicy("late", effort=effort, reserve=reserve)


@_entry("prompt", "ours: least added energy, answered at once and for good")
def _prompt(reserve: float = 0.0) -> Policy:
    return ClusterPolicy("prompt", late=False, reserve=reserve)


@_entry(
    "thrifty", "ours: least added cost or carbon where prices change; tasks wait for cheap hours"
)
def _thrifty(objective: str = "cost", dvfs: bool = True, reserve: float = 0.0) -> Policy:
    """Deadline jobs on servers that sleep, under prices that change."""
    goal = parse_objective(objective)
    return ClusterPolicy("thrifty", objective=goal, dvfs=dvfs, reserve=reserve)


@_entry("race", "default clocks, earliest deadline, soonest free")
def _race(rho: float | str = 0.0) -> Policy:
    return ListPolicy("race", lengths=OneClock(), patience=_patience(rho))


@_entry("static-cap", "the best single clock for all, in hindsight")
def _static_cap(rho: float | str = 0.0) -> Policy:
    tuner = StaticCap("static-cap", ListPolicy("static-cap", patience=_patience(rho)))
    return cast(Policy, tuner)  # `play` asks it for the policy of a problem


def _batched(
    name: str,
    *,
    rho: float | str,
    dvfs: bool,
    start: str,
    group: bool,
    grid: float,
    slack: bool,
    **parts: Any,
) -> ListPolicy:
    """A list policy with the parameters that are `_SHARED`, and parts of its own."""
    batch = _one_of("start", start, ("batch", "stream")) == "batch"
    return ListPolicy(
        name,
        patience=_patience(rho),
        lengths=_lengths(dvfs, grid, slack),
        group=group and batch,
        prior_alone=batch,
        **parts,
    )


_GRID: dict[str, Any] = {"grid": 0.0, "slack": False}
_SHARED: dict[str, Any] = {"rho": 0.0, "dvfs": True, "start": "batch", "group": True, **_GRID}


def _edl(theta: float, slot: float, **shared: Any) -> Policy:
    """EDL of mei2021: Algorithms 2 and 3 at time 0 (``start=batch``), else 5 throughout."""
    return _kept(_batched("edl", **shared, theta=_part("theta", theta), slot_s=slot))


def _fitting(order: Order, **fits: Fit) -> Callable[..., Policy]:
    """EDF-BF, EDF-WF and LPT-FF of mei2021 section 5.3; a fit for each meaning of "full"."""

    def make(by: str = "end", **shared: Any) -> Policy:
        return _batched("fitting", **shared, order=order, fit=fits[_one_of("by", by, tuple(fits))])

    return make


_best_fit = _fitting("deadline", end="best", load="fullest", peak="tightest")
_worst_fit = _fitting("deadline", end="soonest", load="worst", peak="loosest")
_first_fit = _fitting("longest", end="first")
_edl_defaults = {"theta": 1.0, **_SHARED, "slot": 0.0}
register("edl", "EDL theta-readjustment (mei2021, mei2017)", _edl, **_edl_defaults)
register("edf-bf", "earliest deadline, best fit (mei2021)", _best_fit, **_SHARED, by="end")
register("edf-wf", "earliest deadline, worst fit (mei2021)", _worst_fit, **_SHARED, by="load")
register("lpt-ff", "longest task, first fit (mei2021)", _first_fit, **_SHARED)


@_entry("bin", "bin packing: worst fit at time 0, then first fit (mei2021 Algorithm 6)")
def _bin(
    rho: float | str = 0.0,
    dvfs: bool = True,
    start: str = "end-time",
    grid: float = 0.0,
    slack: bool = False,
    slot: float = 0.0,
) -> Policy:
    """Worst fit at time 0 chooses the least loaded processor that ``start`` finds room on.

    The published numbers need ``peak-prior``: what the public code does online.
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
    return _kept(made)


def _kept(made: ListPolicy) -> Policy:
    """One that starts tasks in slots knows no early ends: what it promises is kept."""
    return made if made.slot_s == 0.0 else Keeping(made)


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


@_entry("liu", "CPU-GPU mapping by load, whole processors slowed (liu), made safe")
def _liu(scheme: str = "dynamic", rules: str = "safe", thr: float = 0.2) -> Policy:
    """Static or Dynamic of liu; ``rules`` names the reading, ``thr`` balances the loads.

    Schemes and readings that may be late are for experiments (papers/liu).
    """
    static = _one_of("scheme", scheme, ("static", "dynamic")) == "static"
    reading = READINGS[_one_of("rules", rules, ("safe", "safe-locked"))]
    if not thr >= 0.0:
        raise InvalidInput("must not be negative", field="thr", value=thr)
    return LiuPolicy("liu", Rules("static" if static else "dynamic", reading, thr))


@_entry("replan", "CPU-GPU mapping by energy, planned anew at every arrival and completion")
def _replan(until: str = "horizon", reserve: float = 0.0) -> Policy:
    """Energy-aware mapping; ``until`` is the energy boundary, ``reserve`` the time kept free."""
    ends = _one_of("until", until, get_args(Until)) == "makespan"
    if not 0.0 <= reserve < 1.0:
        raise InvalidInput("must be at least 0 and below 1", field="reserve", value=reserve)
    return Replan("replan", "makespan" if ends else "horizon", reserve=reserve)


@_entry("graph", "task graphs on one chip by one deadline: search, or gerards' list schedules")
def _graph(
    rule: str = "search", clocks: str = "optimal", effort: float = 1.0, seed: float = 0.0
) -> Policy:
    """Task graphs on one chip by one deadline (gerards); see `plan_graph`."""
    from downclock.planners.chip.plan import GraphSolver
    from downclock.planners.chip.search import SearchEffort

    _one_of("rule", rule, ("search", "lpt", "hlf", "heft"))
    _one_of("clocks", clocks, ("optimal", "single", "single-aware"))
    how = SearchEffort(seed=int(seed), effort=effort)
    return OfflinePolicy("graph", GraphSolver(rule, clocks, how))


@_entry("least-cost", "task graphs in slots under changing prices (gerhards)")
def _least_cost(
    objective: str = "cost", rounds: float = 400.0, seconds: float = np.inf, seed: float = 0.0
) -> Policy:
    """Task graphs under prices that change (gerhards); see `plan_least_cost`."""
    from downclock.planners.slots.plan import LeastCostSolver

    for name, value, least in (("rounds", rounds, 1.0), ("seconds", seconds, 0.001)):
        if not value >= least:
            raise InvalidInput(
                f"must be at least {least:g}", item="policy 'least-cost'", field=name, value=value
            )
    solver = LeastCostSolver(parse_objective(objective), seconds, int(rounds), int(seed))
    return ForeseeingPolicy("least-cost", solver)


@_entry("known", "ours: search over whole plans, gangs and task graphs too; all arrivals are known")
def _known(objective: str = "energy", effort: float = 1.0, seed: float = 0.0) -> Policy:
    """Destroy and repair over whole plans, with all arrivals in view; see `solve_known`."""
    return cast(Policy, KnownPolicy("known", parse_objective(objective), effort, int(seed)))


WHOLE = ("rounds", "seed")
"""Parameters that are whole numbers, whatever the policy."""


def with_choices(
    spec: str, objective: str | None, seed: int | None, effort: float | None = None
) -> str:
    """The spec with an objective and a seed, where its policy has such, and an effort."""
    told = with_seed(spec if objective is None else with_objective(spec, objective), seed)
    return told if effort is None else with_parameter(told, "effort", f"{effort:g}")


def _parts(spec: str) -> tuple[str, dict[str, str]]:
    """The name, and what is given (``key=value``) by its key."""
    name, _, text = spec.partition(":")
    return name, {part.partition("=")[0]: part for part in text.split(",") if part}


def _joined(name: str, given: dict[str, str]) -> str:
    return f"{name}:{','.join(given.values())}" if given else name


def _takes(name: str, key: str) -> bool:
    """Whether this is a policy with that parameter."""
    return name in CATALOG and key in CATALOG[name].defaults


def with_seed(spec: str, seed: int | None) -> str:
    """Return the spec with a seed, where its policy has one and the spec does not give it."""
    name, given = _parts(spec)
    if seed is None or "seed" in given or not _takes(name, "seed"):
        return spec
    return with_parameter(spec, "seed", str(seed))


def objective_of(spec: str) -> str | None:
    """The objective a spec plans by; None for energy where that is usual, and where it has none."""
    found = _objective(spec)
    usual = found == "energy" == CATALOG[_parts(spec)[0]].defaults["objective"]
    return None if usual else found


def _objective(spec: str) -> str | None:
    name, given = _parts(spec)
    if not _takes(name, "objective"):
        return None
    usual = f"objective={CATALOG[name].defaults['objective']}"
    return given.get("objective", usual).partition("=")[2]


def with_objective(spec: str, objective: str) -> str:
    """Return the spec with an objective, where its policy has one.

    Raises:
        InvalidInput: the spec names another one already.
    """
    known = _objective(spec)
    if known is None or known == objective:
        return spec
    if "objective" in _parts(spec)[1]:
        rule = f"asks for another objective than '{objective}'"
        raise InvalidInput(rule, field="policy", value=spec)
    return with_parameter(spec, "objective", objective)


def without_objective(spec: str) -> str:
    """Return the spec without its objective, for headings where all share one."""
    name, given = _parts(spec)
    given.pop("objective", None)
    return _joined(name, given)


def with_parameter(spec: str, key: str, value: str) -> str:
    """Return the spec with a parameter set, whatever it was.

    Raises:
        InvalidInput: the policy has no such parameter.
    """
    name, given = _parts(spec)
    if name in CATALOG and not _takes(name, key):
        having = ", ".join(each for each in CATALOG if _takes(each, key))
        raise InvalidInput(f"has no {key}; these have: {having}", item=f"policy '{name}'")
    given.pop(key, None)
    return _joined(name, {**given, key: f"{key}={value}"})


def policy(spec: str) -> Policy:
    """Make a policy from its spec; its name is the spec without parameters left at default."""
    name, _, text = spec.partition(":")
    if name not in CATALOG:
        load_registered()
    if name not in CATALOG:
        rule = f"is not a policy{suggestion(name, list(CATALOG))}"
        raise InvalidInput(rule, field="policy", value=name)
    entry = CATALOG[name]
    given: dict[str, Any] = {}
    for key, value in (_parameter(entry, part) for part in text.split(",") if part):
        if key in given:
            raise InvalidInput("is given twice", item=f"policy '{name}'", field=key)
        given[key] = value
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
        if point.name in CATALOG:
            continue
        try:
            point.load()()
        except Exception as error:
            rule = f"fails ({type(error).__name__}: {error}); mend or uninstall its package"
            item = "entry point of downclock.policies"
            raise InvalidInput(rule, item=item, field=point.name, value=point.value) from error


def _spec(entry: Entry, given: dict[str, Any]) -> str:
    told = {
        key: f"{key}={_text(given[key])}"
        for key, default in entry.defaults.items()
        if key in given and given[key] != default
    }
    return _joined(entry.name, told)


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
    if key in entry.defaults and not equals:
        raise InvalidInput("needs a value, after '='", item=item, field=key)
    if key not in entry.defaults:
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
    if key in WHOLE and number % 1.0:
        raise InvalidInput("must be a whole number", item=item, field=key, value=number)
    return key, number
