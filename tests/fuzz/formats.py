"""One function a format: mutate a small valid file, write it, read it, judge what comes of it."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import downclock as dc
from downclock.cli import main
from downclock.power.fit import fit
from downclock.power.library_file import read_library
from downclock.power.measurements import read_measurements
from downclock.power.points import LAWS
from downclock.problem.files.read_prices import read_prices
from downclock.problem.objective import parse_objective
from downclock.schedule.files import read_schedule, write_schedule
from downclock.simulate.chances import Chances, draw_fate
from downclock.tabular import write_columns
from tests.fuzz.encodings import (
    columns_of,
    csv_bytes,
    damaged,
    json_bytes,
    parquet_bytes,
    toml_bytes,
)
from tests.fuzz.judge import READINGS, SPECS, Outcome, judge_problem, judge_schedule, judge_whole
from tests.fuzz.trees import mutated, number, odd_text, tree_of
from tests.fuzz.worlds import GPU, LIMITED, MEASUREMENTS, STG, WORKFLOW, WORLDS, World
from tests.workloads.trace_samples import FILES, MAPPED, MAPPING

Fuzz = Callable[[Random, Path, Outcome], None]


def _lay(world: World, folder: Path, **instead: bytes) -> None:
    """Write the files of a world; ``instead`` replaces some."""
    sound = {
        "cluster.toml": toml_bytes(tree_of(world.cluster)),
        "library.json": json_bytes(tree_of(world.library)),
        "jobs.csv": csv_bytes(Random(0), tree_of(columns_of(world.tasks))),
        "prices.csv": csv_bytes(Random(0), tree_of(columns_of(world.prices))),
    }
    for name, data in {**sound, **instead}.items():
        (folder / name).write_bytes(data)


def _judged(outcome: Outcome, folder: Path, read: Callable[[], dc.Problem]) -> None:
    """Read a problem and judge what every policy makes of it."""
    problem = outcome.attempt("read", read)
    _names_its_file(outcome, folder)
    if problem is not None:
        judge_whole(outcome, problem, folder)


def _names_its_file(outcome: Outcome, folder: Path) -> None:
    if outcome.refused is not None and str(folder) not in outcome.refused:
        outcome.fail("read", f"the complaint names no file: {outcome.refused[:200]!r}")


def _loaded(
    outcome: Outcome, folder: Path, cluster: str = "cluster.toml", jobs: str = "jobs.csv"
) -> None:
    _judged(outcome, folder, lambda: dc.load_problem(folder / cluster, folder / jobs))


def cluster_toml(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice(WORLDS)
    data = damaged(rng, toml_bytes(mutated(rng, world.cluster)))
    _lay(world, folder, **{"cluster.toml": data})
    _loaded(outcome, folder)


def cluster_json(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice(WORLDS)
    data = damaged(rng, json_bytes(mutated(rng, world.cluster)))
    _lay(world, folder, **{"cluster.json": data})
    _loaded(outcome, folder, cluster="cluster.json")


def library_json(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice(WORLDS)
    data = damaged(rng, json_bytes(mutated(rng, world.library)))
    _lay(world, folder, **{"library.json": data})
    _loaded(outcome, folder)


def tasks_csv(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice(WORLDS)
    data = damaged(rng, csv_bytes(rng, mutated(rng, columns_of(world.tasks))))
    _lay(world, folder, **{"jobs.csv": data})
    _loaded(outcome, folder)


def tasks_json(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice(WORLDS)
    whole = rng.choice((world.tasks, {"format": "downclock-tasks/1", "tasks": world.tasks}))
    data = damaged(rng, json_bytes(mutated(rng, whole)))
    _lay(world, folder, **{"jobs.json": data})
    _loaded(outcome, folder, jobs="jobs.json")


def tasks_parquet(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice(WORLDS)
    columns = columns_of(world.tasks)
    tree = mutated(rng, columns) if rng.random() < 0.6 else tree_of(columns)
    _lay(world, folder, **{"jobs.parquet": damaged(rng, parquet_bytes(rng, tree), 0.1)})
    _loaded(outcome, folder, jobs="jobs.parquet")


def prices_csv(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice([world for world in WORLDS if world.prices])
    table = mutated(rng, columns_of(_priced(rng, world)))
    data = damaged(rng, csv_bytes(rng, table))
    _lay(world, folder, **{"tariff.csv": data})
    _judged(
        outcome,
        folder,
        lambda: dc.load_problem(
            folder / "cluster.toml", folder / "jobs.csv", prices=folder / "tariff.csv"
        ),
    )


def _priced(rng: Random, world: World) -> list[dict[str, Any]]:
    """The world's prices, now and then by the calendar, by slot, with zones or forecasts."""
    rows = [dict(row) for row in world.prices]
    if rng.random() < 0.3:
        for k, row in enumerate(rows):
            del row["time_s"]
            row["timestamp"] = f"2024-06-10T{k:02d}:00+02:00"
    if rng.random() < 0.2:
        rows = [{**row, "zone": "default"} for row in rows]
    if rng.random() < 0.2:
        rows = [{**row, "price_per_kwh_forecast": 0.2} for row in rows]
    return rows


def prices_parquet(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice([world for world in WORLDS if world.prices])
    table = tree_of(columns_of(_priced(rng, world)))
    (folder / "tariff.parquet").write_bytes(damaged(rng, parquet_bytes(rng, table), 0.1))
    outcome.attempt("read", lambda: read_prices(folder / "tariff.parquet", epoch="first row"))
    _names_its_file(outcome, folder)


@cache
def _documents() -> tuple[Any, ...]:
    """The worlds as problem files, parsed again."""
    import json
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), []
        for world in WORLDS:
            _lay(world, folder)
            problem = dc.load_problem(folder / "cluster.toml", folder / "jobs.csv")
            dc.write_problem(problem, folder / "problem.json")
            found.append(json.loads((folder / "problem.json").read_text()))
        return tuple(found)


def problem_json(rng: Random, folder: Path, outcome: Outcome) -> None:
    data = damaged(rng, json_bytes(mutated(rng, rng.choice(_documents()))))
    (folder / "problem.json").write_bytes(data)
    _judged(outcome, folder, lambda: dc.read_problem(folder / "problem.json"))


def problem_parquet(rng: Random, folder: Path, outcome: Outcome) -> None:
    """The same as a table whose head has all but the tasks."""
    path, whole = folder / "problem.parquet", rng.choice(_documents())
    head = {key: value for key, value in whole.items() if key not in ("tasks", "edges")}
    odd = rng.random() < 0.5
    text = json_bytes(mutated(rng, head) if odd else tree_of(head)).decode("utf-8", "replace")
    columns = columns_of(whole["tasks"])
    write_columns({} if rng.random() < 0.02 else columns, path, head=text)
    path.write_bytes(damaged(rng, path.read_bytes(), 0.2))
    _judged(outcome, folder, lambda: dc.read_problem(path))


@cache
def _plans() -> tuple[tuple[dc.Problem, dict[str, Any]], ...]:
    """Problems with one of their schedules as plain data."""
    import json
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder, found = Path(name), []
        for world, spec in zip(WORLDS, ("late", "liu", "race", "graph:rule=lpt"), strict=False):
            _lay(world, folder)
            problem = dc.load_problem(folder / "cluster.toml", folder / "jobs.csv")
            write_schedule(dc.plan(problem, dc.policy(spec)), problem, folder / "plan.json")
            found.append((problem, json.loads((folder / "plan.json").read_text())))
        return tuple(found)


def _stacked(plan: dict[str, Any]) -> dict[str, list[Any]]:
    """A schedule as the one table that CSV and Parquet have."""
    rows = [
        {"record": record, **row}
        for record in ("segment", "span", "outcome")
        for row in plan[f"{record}s"]
    ]
    return columns_of(rows)


def _read_plan(outcome: Outcome, folder: Path, problem: dc.Problem, name: str) -> None:
    schedule = outcome.attempt("read", lambda: read_schedule(folder / name, problem))
    _names_its_file(outcome, folder)
    if schedule is not None:
        judge_schedule(outcome, "what was read", problem, schedule, valid=False)


def schedule_json(rng: Random, folder: Path, outcome: Outcome) -> None:
    problem, plan = rng.choice(_plans())
    (folder / "plan.json").write_bytes(damaged(rng, json_bytes(mutated(rng, plan))))
    _read_plan(outcome, folder, problem, "plan.json")


def schedule_csv(rng: Random, folder: Path, outcome: Outcome) -> None:
    problem, plan = rng.choice(_plans())
    table = mutated(rng, _stacked(plan))
    (folder / "plan.csv").write_bytes(damaged(rng, csv_bytes(rng, table)))
    _read_plan(outcome, folder, problem, "plan.csv")


def schedule_parquet(rng: Random, folder: Path, outcome: Outcome) -> None:
    problem, plan = rng.choice(_plans())
    table = mutated(rng, _stacked(plan)) if rng.random() < 0.6 else tree_of(_stacked(plan))
    (folder / "plan.parquet").write_bytes(damaged(rng, parquet_bytes(rng, table), 0.1))
    _read_plan(outcome, folder, problem, "plan.parquet")


def measurements_csv(rng: Random, folder: Path, outcome: Outcome) -> None:
    """Fit what was measured, and keep the library as a file that can be read."""
    table = mutated(rng, columns_of(rng.choice((MEASUREMENTS, MEASUREMENTS, LIMITED))))
    (folder / "runs.csv").write_bytes(damaged(rng, csv_bytes(rng, table)))
    odd = _finite(number(rng))
    choices: dict[str, Any] = {
        "default_core_mhz": rng.choice((1000.0, 1000.0, None, 800.0, odd)),
        "default_memory_mhz": rng.choice((1000.0, 1000.0, None, odd)),
        "default_power_limit_w": rng.choice((None, None, None, 300.0, odd)),
        "clocks_mhz": rng.choice((None, None, (700.0, float("inf")), (0.0, odd))),
        "law": rng.choice((*LAWS.values(), "auto")),
        "model": rng.choice(("auto", "gpu", "table")),
        "weighting": rng.choice(("even", "relative")),
    }

    def fitted() -> Any:
        return fit(read_measurements(folder / "runs.csv"), kind="gpu", **choices)

    made = outcome.attempt("read", fitted)
    if made is not None:
        outcome.attempt("write", lambda: dc.write_library(made.library, folder / "library.json"))
        outcome.attempt("read back", lambda: read_library(folder / "library.json"))


def _finite(value: float) -> float:
    """As the command line reads it: a float, infinite where it is too large for one."""
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def wfformat(rng: Random, folder: Path, outcome: Outcome) -> None:
    data = damaged(rng, json_bytes(mutated(rng, WORKFLOW)))
    (folder / "graph.json").write_bytes(data)
    _converted(rng, folder, outcome, "graph.json")


def stg(rng: Random, folder: Path, outcome: Outcome) -> None:
    words = re.split(r"(\s+)", STG)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(words))
        word = words[at]
        fresh = (str(number(rng)), odd_text(rng, word), "", word + word, str(rng.randint(0, 9)))
        words[at] = rng.choice(fresh)
    data = "".join(words).encode("utf-8", "surrogatepass")
    (folder / "graph.stg").write_bytes(damaged(rng, data))
    _converted(rng, folder, outcome, "graph.stg")


def _converted(rng: Random, folder: Path, outcome: Outcome, name: str) -> None:
    """Convert a graph at the command line and judge the problem that was written."""
    words = ["--cores", str(rng.choice((1, 2, 3, 64)))]
    words += rng.choice(([], [], ["--per-core"]))
    for option in ("--deadline", "--alpha", "--c2", "--c3"):
        if rng.random() < 0.15:
            words += [option, str(number(rng))]
    target = folder / "problem.json"
    code, said = _run("convert", str(folder / name), *words, "--output", str(target), "-q")
    _ended(outcome, "convert", code, said)
    if code == 0:
        problem = outcome.attempt("read back", lambda: dc.read_problem(target))
        if problem is not None:
            judge_whole(outcome, problem, folder)


def trace(rng: Random, folder: Path, outcome: Outcome) -> None:
    """Convert a damaged trace of any format; judge the problem, and the trace as it ran."""
    name, text = rng.choice(list(FILES.items()))
    for _ in range(rng.randint(0, 3)):
        text = rng.choice((_with_odd_word, _with_odd_word, _with_odd_line))(rng, text)
    data = damaged(rng, text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.15:
        data = damaged(rng, gzip.compress(data, mtime=0), 0.5)
        name += ".gz"
    _converted_trace(rng, folder, outcome, name, data, [])


def trace_mapped(rng: Random, folder: Path, outcome: Outcome) -> None:
    """The same of a table and the file that says what its columns are."""
    mapping, text = MAPPING, MAPPED
    for _ in range(rng.randint(0, 2)):
        mapping = _with_odd_word(rng, mapping)
    for _ in range(rng.randint(0, 2)):
        text = _with_odd_word(rng, text)
    (folder / "map.toml").write_bytes(damaged(rng, mapping.encode("utf-8", "surrogatepass")))
    name, data = "trace.csv", damaged(rng, text.encode("utf-8", "surrogatepass"))
    if rng.random() < 0.3:
        head, *rows = (line.split(";") for line in MAPPED.splitlines())
        table = mutated(rng, columns_of([dict(zip(head, row, strict=True)) for row in rows]))
        name, data = "trace.parquet", damaged(rng, parquet_bytes(rng, table), 0.1)
    _converted_trace(rng, folder, outcome, name, data, ["--map", str(folder / "map.toml")])


def _with_odd_word(rng: Random, text: str) -> str:
    words = re.split(r"([\s,|;:{}\[\]\"]+)", text)
    at = rng.randrange(len(words))
    fresh = (str(number(rng)), odd_text(rng, words[at]), "", words[at] * 2, str(rng.randint(-1, 9)))
    words[at] = rng.choice(fresh)
    return "".join(words)


def _with_odd_line(rng: Random, text: str) -> str:
    """A row twice, gone, cut, moved or with a column less; or every row with a column less."""
    lines = text.splitlines(keepends=True) or [""]
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(5):
        case 0:
            lines.insert(other, lines[at])
        case 1:
            del lines[at]
        case 2:
            lines[at] = lines[at][: rng.randrange(len(lines[at]) + 1)]
        case 3:
            lines[at], lines[other] = lines[other], lines[at]
        case 4:
            column, rows = rng.randrange(12), rng.choice(([at], range(len(lines))))
            for k in rows:
                cells = re.split(r"([,|;\s])", lines[k])
                del cells[2 * column : 2 * column + 2]
                lines[k] = "".join(cells)
    return "".join(lines)


def _converted_trace(
    rng: Random, folder: Path, outcome: Outcome, name: str, data: bytes, words: list[str]
) -> None:
    (folder / name).write_bytes(data)
    words += rng.choice(([], [], ["--strict"], ["--count", "cpus"], ["--one-pool"]))
    words += rng.choice(([], [], ["--fractions", "pack"], ["--deadlines", "limit"]))
    words += rng.choice(([], [], [], ["--begin", "10m", "--length", "1h"]))
    target, ran = folder / rng.choice(("p.parquet", "p.json")), folder / "ran.parquet"
    told = ("-o", str(target), "--ran", str(ran), "-q")
    code, said = _run("convert", str(folder / name), *words, *told)
    _ended(outcome, "convert", code, said)
    if code == 0:
        problem = outcome.attempt("read back", lambda: dc.read_problem(target))
        if problem is not None:
            schedule = outcome.attempt("read back", lambda: read_schedule(ran, problem))
            if schedule is not None:
                judge_schedule(outcome, "as it ran", problem, schedule, valid=False)
            judge_whole(outcome, problem, folder)


def _run(*words: str) -> tuple[int, str]:
    """Run a command in this process; return its exit code and what it said about errors."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["--debug", *words])
    return code, err.getvalue()


def _ended(outcome: Outcome, stage: str, code: int, said: str) -> None:
    last = said.splitlines()[-1] if said.strip() else ""
    if code == 2:
        outcome.refused = last
    if code not in (0, 1, 2) or "Warning" in said:
        outcome.fail(stage, last)
        outcome.traces.append(said)


SAFE = {"effort": ("0", "0.01"), "seconds": ("0.02",), "rounds": ("1", "2")}
"""Parameters that say how long to search: odd values are read but not planned with."""


def policy_spec(rng: Random, folder: Path, outcome: Outcome) -> None:
    entry = rng.choice(list(dc.CATALOG.values()))
    given = [(key, _told(rng, default)) for key, default in entry.defaults.items()]
    given = [pair for pair in given if rng.random() < 0.4]
    given += [(key, rng.choice(values)) for key, values in SAFE.items() if key in entry.defaults]
    parts = [f"{key}={value}" for key, value in given]
    spec = f"{entry.name}:{','.join(parts)}" if parts else entry.name
    if rng.random() < 0.2:
        spec = odd_text(rng, spec)
    made = outcome.attempt("read", lambda: dc.policy(spec))
    quick = all(value in SAFE[key] for key, value in given if key in SAFE)
    if made is not None and quick:
        for problem in (world for world, _ in _plans()):
            judge_problem(outcome, problem, (spec,))


def _told(rng: Random, default: Any) -> str:
    if isinstance(default, bool):
        return rng.choice(("on", "off", "on", "off", "1", ""))
    if isinstance(default, str) and rng.random() < 0.6:
        return default
    words = ("batch", "stream", "end", "load", "never", "break-even", "0.7cost+0.3carbon", "energy")
    return rng.choice(
        (str(number(rng)), str(rng.uniform(0.0, 2.0)), rng.choice(words), odd_text(rng))
    )


def quantities(rng: Random, folder: Path, outcome: Outcome) -> None:
    """Numbers, spreads, lives, objectives, instants and time zones as people type them."""
    what = rng.choice(("objective", "chances", "calendar", "plan", "fit", "generate", "columns"))
    if what == "objective":
        text = rng.choice(("cost", "0.7cost+0.3carbon", "energy+1e3cost", "2*cost + carbon"))
        outcome.attempt("read", lambda: str(parse_objective(_odd(rng, text))))
    elif what == "chances":
        _chances(rng, outcome)
    elif what == "calendar":
        _calendar(rng, folder, outcome)
    else:
        _command(rng, folder, outcome, what)


def _odd(rng: Random, text: str) -> str:
    """A text with its numbers replaced, or odd as a whole."""
    if rng.random() < 0.5:
        return re.sub(r"[\d.]+", lambda _: str(number(rng)), text)
    return odd_text(rng, text)


def _chances(rng: Random, outcome: Outcome) -> None:
    actual = rng.choice((None, "uniform:0.5:1", "lognormal:1:0.2", "exact", "file:none.csv"))
    life = rng.choice((None, "exponential:5000", "weibull:5000:1.5"))
    numbers = [rng.choice((0.0, 0.5, number(rng))) for _ in range(4)]
    retries = rng.choice((0, 3, 10**6, -1, 2**63))
    problem = _plans()[0][0]

    def drawn() -> object:
        chances = Chances(
            None if actual is None else _odd(rng, actual), numbers[0], retries,
            numbers[1], numbers[2], _finite(numbers[3]), None if life is None else _odd(rng, life),
        )  # fmt: skip
        return draw_fate(problem, chances, seed=3)

    outcome.attempt("read", drawn)


def _calendar(rng: Random, folder: Path, outcome: Outcome) -> None:
    world = rng.choice(WORLDS)
    _lay(world, folder)
    epoch = rng.choice((None, _odd(rng, "2024-06-10T00:00:00+02:00")))
    zone = rng.choice((None, "Europe/Berlin", _odd(rng, "Europe/Berlin")))
    problem = outcome.attempt(
        "read",
        lambda: dc.load_problem(
            folder / "cluster.toml", folder / "jobs.csv", epoch=epoch, timezone=zone
        ),
    )
    if problem is not None:
        judge_problem(outcome, problem, ("race", "late"))


def _command(rng: Random, folder: Path, outcome: Outcome, verb: str) -> None:
    _lay(GPU, folder)
    (folder / "runs.csv").write_bytes(csv_bytes(Random(0), tree_of(columns_of(MEASUREMENTS))))
    cluster, jobs, runs = (str(folder / name) for name in ("cluster.toml", "jobs.csv", "runs.csv"))
    fit_words = ("fit", runs, "--kind", "gpu", "-q")
    commands: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
        "plan": (
            ("plan", cluster, jobs, "--policy", rng.choice(("race", "edl"))),
            {"--boundary": "600s", "--objective": "cost", "--seed": "3"},
        ),
        "fit": (
            (*fit_words, "--default-memory-mhz", "1000"),
            {"--default-core-mhz": "1000", "--default-memory-mhz": "1000"},
        ),
        "columns": (
            (*fit_words, "--default-core-mhz", "1000", "--default-memory-mhz", "1000"),
            {"--columns": "application=application,core_mhz=core_mhz"},
        ),
        "generate": (
            ("generate", "mei2021-offline", "--pairs", "16", "--output", str(folder / "p.json")),
            {"--utilisation": "0.01", "--seed": "4", "--task-utilisation": "0.1,0.9"},
        ),
    }
    words, options = commands[verb]
    given = [word for name, usual in options.items() for word in (name, _odd(rng, usual))]
    if verb == "generate" and not _modest(given):
        return
    _ended(outcome, verb, *_run(*words, *given))


def _modest(words: list[str]) -> bool:
    """Whether a task set to draw is small."""
    try:
        return float(words[1]) < 0.05
    except ValueError:
        return True


FORMATS: dict[str, Fuzz] = {
    "cluster-toml": cluster_toml,
    "cluster-json": cluster_json,
    "library": library_json,
    "tasks-csv": tasks_csv,
    "tasks-json": tasks_json,
    "tasks-parquet": tasks_parquet,
    "prices-csv": prices_csv,
    "prices-parquet": prices_parquet,
    "problem": problem_json,
    "problem-parquet": problem_parquet,
    "schedule-json": schedule_json,
    "schedule-csv": schedule_csv,
    "schedule-parquet": schedule_parquet,
    "measurements": measurements_csv,
    "wfformat": wfformat,
    "stg": stg,
    "trace": trace,
    "trace-mapped": trace_mapped,
    "policy": policy_spec,
    "quantities": quantities,
}
"""Every input format, by the name that `--only` takes."""


def one_input(name: str, seed: int, folder: Path, specs: Sequence[str] | None = None) -> Outcome:
    """The input of a seed: written into ``folder``, read, planned and judged.

    Without ``specs`` every policy plans what is accepted, and one of them a second time otherwise.
    """
    drawn = Random(seed)
    chosen = (*SPECS, drawn.choice(READINGS)) if specs is None else specs
    outcome = Outcome(chosen, shown=drawn.random() < 0.3)
    FORMATS[name](Random(f"{name}/{seed}"), folder, outcome)
    return outcome
