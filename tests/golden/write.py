"""Record what every policy does: ``python -m tests.golden.write`` writes ``golden.jsonl`` anew."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import downclock as dc
from tests.golden.problems import problems, realised, worlds_of
from tests.laws.test_policies import READINGS

FILE = Path(__file__).with_name("golden.jsonl")

COUNTED = {
    "graph": "graph:effort=0.002",
    "least-cost": "least-cost:rounds=5,seconds=36000",
    "known": "known:effort=0.02",
}
"""Entries that search: little counted work, and no time limit that could bind."""

SEARCH = (*COUNTED.values(), "least-cost:objective=energy,rounds=5,seconds=36000")
"""Specs whose search takes another way where the last bit of a number differs."""

MORE = (
    "late:reserve=0.2",
    "late:effort=0.02",
    "prompt:reserve=0.2",
    "liu:scheme=static",
    "replan:until=makespan,reserve=0.1",
    "graph:rule=heft",
    "graph:rule=lpt,clocks=single-aware",
    "least-cost:objective=energy,rounds=5,seconds=36000",
)
"""Readings of the policies that follow real run times, and of those for graphs."""

SPECS = (*(COUNTED.get(name, name) for name in dc.CATALOG), *READINGS, *MORE)

SEGMENT = ("task", "attempt", "processor")
SEGMENT_EXACT = (*SEGMENT, "start_s", "end_s", "core", "memory", "volt", "share")
SPAN = ("server", "state")
SPAN_EXACT = (*SPAN, "start_s", "end_s")


class Record(NamedTuple):
    """One line of the file: what a policy did with a problem in a world.

    Attributes:
        spec, problem, world: the case; the world "plan" is the noiseless plan.
        exact: hash of all columns, bit for bit.
        discrete: hash of who ran where and of how each task ended, without times and clocks.
        segments, done, rejected, failed: counts.
        energy_j: the whole bill, as text that gives the same number back.
        error: what was raised, or nothing.
    """

    spec: str
    problem: str
    world: str
    exact: str = ""
    discrete: str = ""
    segments: int = 0
    done: int = 0
    rejected: int = 0
    failed: int = 0
    energy_j: str = ""
    error: str = ""


def records_of(spec: str, names: Iterable[str] | None = None) -> Iterator[Record]:
    """Records of a spec: problems (all, or those named) it has no objection to, in their worlds."""
    for name in problems() if names is None else names:
        problem = problems()[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            objection = _or_error(lambda asked=problem: dc.policy(spec).objection(asked))
            if isinstance(objection, Raised):
                yield Record(spec, name, "objection", error=objection.text)
            elif objection is None:
                for world in ("plan", *worlds_of(spec, name)):
                    yield record_of(spec, name, world)


def record_of(spec: str, name: str, world: str) -> Record:
    """Plan, or plan and carry out, one problem."""
    problem, policy = problems()[name], dc.policy(spec)
    answer = _or_error(
        lambda: dc.plan(problem, policy) if world == "plan" else realised(problem, policy, world)
    )
    if isinstance(answer, Raised):
        return Record(spec, name, world, error=answer.text)
    bill = _or_error(lambda: repr(float(dc.account(problem, answer).total_j)))
    counts = answer.outcomes.counts()
    return Record(
        spec,
        name,
        world,
        _hash(answer, SEGMENT_EXACT, SPAN_EXACT),
        _hash(answer, SEGMENT, SPAN),
        len(answer.segments),
        *(counts[status] for status in ("done", "rejected", "failed")),
        *(("", bill.text) if isinstance(bill, Raised) else (bill, "")),
    )


class Raised(NamedTuple):
    """What a policy raised."""

    text: str


def _or_error(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        return Raised(f"{type(error).__name__}: {error}")


def _hash(schedule: dc.Schedule, segment: tuple[str, ...], span: tuple[str, ...]) -> str:
    """Twelve digits for the named columns and the status of every task."""
    digest = hashlib.sha256()
    for table, names in ((schedule.segments, segment), (schedule.spans, span)):
        columns = [getattr(table, name) for name in names]
        order = np.lexsort(columns[::-1])
        for column in columns:
            digest.update((column[order] + 0).tobytes())  # + 0: no negative zeros
    digest.update(schedule.outcomes.status.tobytes())
    return digest.hexdigest()[:12]


def machine() -> dict[str, str]:
    """What the last bits of a number may depend on."""
    info = Path("/proc/cpuinfo")
    text = info.read_text(encoding="utf-8").partition("\n\n")[0] if info.is_file() else ""
    cpu = dict(re.findall(r"^(.*?)\s*: (.*)$", text, flags=re.MULTILINE))
    model = " ".join(cpu.get(name, "") for name in ("vendor_id", "cpu family", "model", "stepping"))
    flags = hashlib.sha256(cpu.get("flags", "").encode()).hexdigest()[:12]
    found = {"machine": platform.machine(), "cpu": f"{model} {flags}"}
    for package in ("numpy", "numba"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "absent"
    return found


def read() -> tuple[dict[str, str], dict[str, list[Record]]]:
    """The machine that wrote the file, and its records by spec."""
    head, *lines = FILE.read_text(encoding="utf-8").splitlines()
    stored: dict[str, list[Record]] = {}
    for line in lines:
        record = Record(*json.loads(line))
        stored.setdefault(record.spec, []).append(record)
    return json.loads(head)["machine"], stored


def recorded(spec: str) -> list[Record]:
    """All records of a spec."""
    return list(records_of(spec))


def main() -> None:
    """Record every spec, on all cores, and replace the file."""
    lines = [json.dumps({"machine": machine(), "columns": Record._fields})]
    with ProcessPoolExecutor() as pool:
        for spec, found in zip(SPECS, pool.map(recorded, SPECS), strict=True):
            lines += [json.dumps(record, separators=(",", ":")) for record in found]
            raised = sum(bool(record.error) for record in found)
            print(f"{spec}: {len(found)} records, {raised} raised", flush=True)
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
