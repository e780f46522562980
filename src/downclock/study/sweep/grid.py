"""The file of a sweep: which problems, policies, seeds and parameters, as a list of runs.

policies = ["race", "edl", "late"]
seeds = 20                       # 0 to 19; or a list
combine = "grid"                 # or list: the first of every list, the second of every list...
objective = "energy"             # optional, as are these
boundary = "last-task"
baseline = "race"                # differences are to this policy; the first when not given

[[problem]]                      # files, relative to this one
cluster = "cluster.toml"
jobs = "jobs.csv"
deadline_factor = [1.5, 2.0]     # a list is an axis

[[problem]]                      # or drawn with each run's seed, as `generate` does
workload = "mei2021-online"
utilisation = [0.8, 1.6]

[parameters]                     # of the policies that have them
theta = [0.8, 0.9, 1.0]

[simulate]                       # what may happen, as `simulate` calls it; else runs are plans
actual = "uniform:0.8:1"
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, TypeAlias

from downclock.document import Fields, read_toml
from downclock.errors import InvalidInput
from downclock.files import read_bytes
from downclock.planners.catalog import CATALOG, policy, with_objective, with_parameter
from downclock.power.library_file import is_built_in
from downclock.problem.files.read_cluster import read_cluster
from downclock.problem.objective import parse_objective
from downclock.schedule.account.bill import Boundary
from downclock.simulate.chances import Chances

Pairs: TypeAlias = tuple[tuple[str, Any], ...]
"""Names and values: what a table holds, in a form that can be hashed."""

TOP = (
    *("name", "policies", "seeds", "combine", "objective", "boundary", "baseline"),
    *("problem", "parameters", "simulate", "slurm"),
)
PATHS = ("file", "cluster", "jobs", "library", "prices")
GENERATED = ("utilisation", "task_utilisation", "days", "pairs", "per_server")
LOADED = ("library", "prices", "archetype", "deadline_factor")
PROBLEM = ("name", "file", "workload", "cluster", "jobs", *LOADED, *GENERATED)
CHANCES = tuple(each.name for each in fields(Chances))
TEXTS = (*PATHS, "workload", "archetype", "actual", "server_life", "processor_life")
WHOLES = ("days", "pairs", "per_server", "retries")
NUMBERS = {"deadline_factor", "utilisation", *CHANCES} - {*TEXTS, *WHOLES}
RATIOS = "file:"
"""How the spread of actual run times begins where it is a file."""

MOST_RUNS = 1_000_000
"""More runs than this are taken for a mistake."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: everything that decides its numbers.

    Attributes:
        problem: its name.
        policy: as the file lists it; ``spec``: with parameters and objective, without the seed.
        seed: of a drawn problem, of policies that draw, and of what may happen.
        source: what the problem is made of; paths are absolute.
        content: short names of what its files hold.
        chances: what may happen; None: the run is a plan.
        axes: values of the sweep's axes.
        objective, boundary: as everywhere.
    """

    problem: str
    policy: str
    spec: str
    seed: int
    source: Pairs
    content: tuple[str, ...]
    chances: Pairs | None
    axes: Pairs
    objective: str | None
    boundary: Boundary

    def key(self, made_by: str) -> str:
        """A name by which its result is found again: other inputs or versions have another."""
        decided = json.dumps((made_by, asdict(self)), sort_keys=True)
        return hashlib.sha256(decided.encode()).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class Grid:
    """What a file asks for.

    Attributes:
        name: of the sweep.
        runs: each once, in the file's order.
        baseline: spec that differences are to.
        slurm: settings of Slurm jobs.
    """

    name: str
    runs: tuple[Run, ...]
    baseline: str
    slurm: Mapping[str, Any]

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the axes: what has more than one value."""
        values: dict[str, set[Any]] = {}
        for run in self.runs:
            for name, value in run.axes:
                values.setdefault(name, set()).add(value)
        return tuple(name for name, found in values.items() if len(found) > 1)


def read_grid(path: str | Path) -> Grid:
    """Read the file of a sweep; the text of this module shows one.

    Raises:
        InvalidInput: with file, line, object, key, value and rule.
    """
    document = read_toml(path)
    top = document.fields(None, TOP)
    objective = _objective(top)
    may = top.table("simulate", "simulate", CHANCES)
    shared: dict[str, list[Any]] = {
        "policy": _specs(top),
        **_axes(_parameters(top)),
        **_checked_axes(may, Path(path).parent),
        "seed": _seeds(top),
    }
    boundary, read = _boundary(top), cache(_digest)
    runs: dict[Run, None] = {}
    for table in top.tables("problem", PROBLEM):
        for chosen in _combined(top, _problem_axes(table, Path(path).parent, shared)):
            with may.blamed():
                runs[_run(table, chosen, read, "simulate" in top, objective, boundary)] = None
    _refuse_odd(top, list(runs))
    slurm = top.raw("slurm", {})
    if not isinstance(slurm, dict):
        raise top.complaint("must be a table", "slurm")
    return Grid(top.text("name", Path(path).stem), tuple(runs), _baseline(top, runs), slurm)


def _baseline(top: Fields, runs: Iterable[Run]) -> str:
    """Return the spec that differences are to."""
    known = {spec: each for run in runs for spec, each in ((run.spec, run), (run.policy, run))}
    given = top.text("baseline", None)
    if given is None:
        return next(iter(known.values())).spec
    if given not in known:
        specs = dict.fromkeys(run.spec for run in runs)
        raise top.complaint(f"must be one of {', '.join(specs)}", "baseline")
    return known[given].spec


def _run(
    table: Fields,
    chosen: dict[str, Any],
    read: Callable[[str], str],
    simulated: bool,
    objective: str | None,
    boundary: Boundary,
) -> Run:
    """Make the run of one combination."""
    listed = chosen["policy"]
    having = CATALOG[listed.partition(":")[0]].defaults
    spec = listed if objective is None else with_objective(listed, objective)
    told = {key: value for key, value in chosen.items() if key in having and key != "seed"}
    for key, value in told.items():
        spec = with_parameter(spec, key, _word(value))
    source = {key: value for key, value in chosen.items() if key in PROBLEM}
    may = {key: value for key, value in chosen.items() if key in CHANCES}
    if simulated:
        Chances(**may)
    axes = {key: value for key, value in {**source, **may, **told}.items() if key not in PATHS}
    named = table.text("name", _called(source)), listed, policy(spec).name, chosen["seed"]
    content, chances = map(read, _files({**source, **may})), tuple(may.items())
    made_of = tuple(source.items()), tuple(content), chances if simulated else None
    return Run(*named, *made_of, tuple(axes.items()), objective, boundary)


def _called(source: Mapping[str, Any]) -> str:
    named = source.get("workload") or source.get("jobs") or source["file"]
    return Path(named).stem if "workload" not in source else str(named)


def _combined(top: Fields, axes: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    """Yield every combination, or the lists walked together."""
    if top.choice("combine", ("grid", "list"), "grid") == "grid":
        yield from (dict(zip(axes, values, strict=True)) for values in product(*axes.values()))
        return
    most = max(map(len, axes.values()))
    for name, values in axes.items():
        if len(values) not in (1, most):
            rule = f"'{name}' has {len(values)} values and another list {most}"
            raise top.complaint(f"needs lists of one length: {rule}", "combine")
    for k in range(most):
        yield {name: values[k % len(values)] for name, values in axes.items()}


def _problem_axes(
    table: Fields, folder: Path, shared: dict[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return all axes of one problem: its own, then the shared ones."""
    own = _checked_axes(table, folder)
    own.pop("name", None)
    drawn = "workload" in own
    if drawn + ("file" in own) + ("cluster" in own and "jobs" in own) != 1:
        raise table.whole_complaint("needs a workload, or a file, or a cluster and jobs")
    allowed = (
        ("workload", *GENERATED) if drawn
        else ("cluster", "jobs", *LOADED) if "cluster" in own else ("file",)
    )  # fmt: skip
    for key in own:
        if key not in allowed:
            raise table.complaint("is not for such a problem", key)
        if key in shared:
            raise table.complaint("is given in two tables", key)
    return {**own, **shared}


def _checked_axes(table: Fields, folder: Path) -> dict[str, list[Any]]:
    """Return the axes of a problem, or of what may happen; files by their whole paths."""
    return {
        key: [_checked(table, key, value, folder) for value in values]
        for key, values in _axes(table).items()
    }


def _checked(table: Fields, key: str, value: Any, folder: Path) -> Any:
    if key == "task_utilisation" and not isinstance(value, str):
        if not isinstance(value, list) or len(value) != 2:
            raise table.complaint("must be words, or lists of two numbers", key, value)
        return tuple(table.as_float(key, each) for each in value)
    if key in WHOLES and (isinstance(value, bool) or not isinstance(value, int)):
        raise table.complaint("must be a whole number", key, value)
    if key in TEXTS and not isinstance(value, str):
        raise table.complaint("must be text", key, value)
    if key in PATHS and not is_built_in(value):
        return str((folder / value).resolve())
    if key == "actual" and value.startswith(RATIOS):
        return RATIOS + str((folder / value.removeprefix(RATIOS)).resolve())
    return table.as_float(key, value) if key in NUMBERS else value


def _axes(table: Fields) -> dict[str, list[Any]]:
    """Return the keys of a table, each as a list of values."""
    found = {}
    for key in table:
        value = table.raw(key)
        found[key] = value if isinstance(value, list) else [value]
        if not found[key]:
            raise table.complaint("has no value", key)
    return found


def _files(given: Mapping[str, Any]) -> list[str]:
    """Return the files that a run reads."""
    found = [value for key, value in given.items() if key in PATHS]
    actual = str(given.get("actual", ""))
    return [*found, *([actual.removeprefix(RATIOS)] if actual.startswith(RATIOS) else [])]


def _parameters(top: Fields) -> Fields:
    """Return the parameters of policies; one that no policy of the sweep has is refused."""
    names = {spec.partition(":")[0] for spec in _specs(top)}
    having = [key for name in names for key in CATALOG[name].defaults if key != "seed"]
    return top.table("parameters", "parameters", sorted(set(having)))


def _specs(top: Fields) -> list[str]:
    specs = top.raw("policies")
    if not (isinstance(specs, list) and specs and all(isinstance(each, str) for each in specs)):
        raise top.complaint("must be a list of policies", "policies")
    try:
        return [policy(spec).name for spec in specs]
    except InvalidInput as error:
        raise top.complaint(f"{error.value!r} {error.rule}", "policies", ...) from None


def _seeds(top: Fields) -> list[int]:
    seeds = top.raw("seeds", 1)
    listed = seeds if isinstance(seeds, list) else [seeds]
    if any(isinstance(seed, bool) or not isinstance(seed, int) or seed < 0 for seed in listed):
        raise top.complaint("must be how many, or a list of whole numbers from 0", "seeds")
    found = listed if isinstance(seeds, list) else list(range(min(seeds, MOST_RUNS + 1)))
    if not found:
        raise top.complaint("has no value", "seeds")
    return found


def _objective(top: Fields) -> str | None:
    if "objective" not in top:
        return None
    try:
        return str(parse_objective(top.text("objective")))
    except InvalidInput as error:
        raise top.complaint(error.rule, "objective") from None


def _boundary(top: Fields) -> Boundary:
    given = top.raw("boundary", "last-task")
    named: Boundary | None = given if given in ("last-task", "makespan") else None
    return top.as_float("boundary", given) if named is None else named


def _refuse_odd(top: Fields, runs: Sequence[Run]) -> None:
    if not runs:
        raise top.whole_complaint("has no run")
    if len(runs) > MOST_RUNS:
        raise top.whole_complaint(f"has more than {MOST_RUNS:,} runs")
    sources: dict[str, Pairs] = {}
    for run in runs:
        paths = tuple(pair for pair in run.source if pair[0] in (*PATHS, "workload"))
        if sources.setdefault(run.problem, paths) != paths:
            raise top.whole_complaint(f"has two problems called '{run.problem}'")


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _digest(path: str) -> str:
    """A short name of a file's content, and of the files it names."""
    if is_built_in(path):
        return path
    found = hashlib.sha256(read_bytes(path)).hexdigest()[:16]
    return ":".join([found, *(_digest(str(each)) for each in _named_in(path))])


def _named_in(path: str) -> Iterable[str | Path]:
    """Yield the files that a cluster names: applications and prices."""
    if Path(path).suffix != ".toml":
        return
    named = read_cluster(path)
    listed = named.document.data.get("applications", []) if named.document is not None else []
    for each in [listed] if isinstance(listed, str) else listed:
        yield each if is_built_in(each) else Path(path).parent / each
    if named.prices.file is not None:
        yield named.prices.file
    for zone in named.prices.zones.values():
        yield from (each for each in zone.values() if isinstance(each, Path))
