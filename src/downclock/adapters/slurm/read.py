"""Read Slurm's jobs and nodes: as JSON where its commands can write it, else as text.

JSON is that of 22.05 (plain values) and of 23.11 and later (lists of states, numbers as ``{set,
infinite, number}``). In text every field ends with a word that is drawn anew for each call: no
name or comment of a job that was submitted before can hold it.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from downclock.adapters.slurm.commands import run
from downclock.adapters.slurm.observed import Job, Node, Observed, gpu_counts, state_words
from downclock.adapters.slurm.words import is_ours, wish_of
from downclock.errors import AdapterError
from downclock.workloads.traces.hosts import hosts_of
from downclock.workloads.traces.sacct import number_of

HEARS_S = 60.0
"""A controller that was started so long ago has heard from every node that lives."""

TRIES = 3
"""Slurm is asked so often for one answer that is all of the same controller."""

Run = Callable[[Sequence[str]], str]


def observe(run: Run = run, *, text: bool = False, before: Observed | None = None) -> Observed:
    """Ask Slurm for all of its jobs and nodes.

    Args:
        run: what runs a command.
        text: ask for text even where JSON can be had.
        before: what was seen last: what cannot change since is not asked again.

    Raises:
        AdapterError: Slurm does not answer, or not twice as the same controller.
    """
    known = {} if before is None else before.jobs
    for _ in range(TRIES):
        boot_s = _boot_s(run)
        seen = None if text else _as_json(run)
        now_s, jobs, nodes = seen or _as_text(run, known)
        if _boot_s(run) == boot_s:  # else part of it is what another one has forgotten
            return Observed(now_s, jobs, heard_of(nodes, now_s - boot_s), boot_s)
    raise AdapterError("Slurm's controller is started again and again")


def _as_json(run: Run) -> tuple[float, dict[int, Job], dict[str, Node]] | None:
    """When it was asked, jobs and nodes, of which nothing is of later; None: it has no JSON."""
    try:
        jobs, now_s = jobs_of_json(run(["squeue", "--json", "--states=all", "--all"])), time.time()
        return now_s, jobs, nodes_of_json(run(["sinfo", "--json", "--all"]))
    except NoJson:
        return None


def _as_text(run: Run, known: Mapping[int, Job]) -> tuple[float, dict[int, Job], dict[str, Node]]:
    jobs, now_s = _jobs_as_text(run, known), time.time()
    return now_s, jobs, _nodes_as_text(run)


def heard_of(nodes: dict[str, Node], age_s: float) -> dict[str, Node]:
    """Nodes as a controller of this age knows them: one that has just started has yet to hear."""
    if age_s > HEARS_S:
        return nodes
    unheard = {"UNKNOWN", "NOT_RESPONDING"}
    return {name: replace(node, states=node.states - unheard) for name, node in nodes.items()}


def _boot_s(run: Run) -> float:
    """When the controller was started; 0: it does not say."""
    config = run(["scontrol", "show", "config"])
    found = re.search(r"^BOOT_TIME\s*=\s*(\S+)$", config, re.MULTILINE)
    return (_instant(found[1]) or 0.0) if found else 0.0


class NoJson(Exception):
    """This Slurm was built without JSON."""


# --- JSON --------------------------------------------------------------------------------------


def jobs_of_json(text: str) -> dict[int, Job]:
    """Jobs of ``squeue --json``."""
    return {job.number: job for job in map(_job, _listed(text, "jobs"))}


def nodes_of_json(text: str) -> dict[str, Node]:
    """Nodes of ``sinfo --json``: a row for each in 22.05, for each group of equals later."""
    data = _parsed(text)
    if "sinfo" in data and "nodes" not in data:
        return {node.name: node for row in data["sinfo"] for node in _group(row)}
    return {node.name: node for node in map(_node, _listed(text, "nodes"))}


def _parsed(text: str) -> dict[str, Any]:
    try:
        data = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        raise NoJson from None
    if not isinstance(data, dict):
        raise NoJson
    errors = data.get("errors") or []
    if errors:
        said = errors[0].get("description") or errors[0].get("error") or "no answer"
        raise AdapterError(f"Slurm does not answer: {said}")
    return data


def _listed(text: str, key: str) -> list[dict[str, Any]]:
    rows = _parsed(text).get(key)
    if not isinstance(rows, list):
        raise NoJson
    return rows


def _job(row: dict[str, Any]) -> Job:
    """A job of either format; what is absent is as if not asked for."""
    count, tasks = int(_number(row, "node_count", 1)), int(_number(row, "tasks", 1))
    gpus, kind, odd = _requested(row, count, max(tasks, 1))
    names = hosts_of(_text(row, "nodes"))
    nodes = _allocated(names, row.get("gres_detail") or [], gpus)
    priority = row.get("priority")
    return Job(
        number=int(_number(row, "job_id", 0)),
        name=_text(row, "name"),
        user=_text(row, "user_name"),
        partition=_text(row, "partition"),
        comment=_text(row, "comment"),
        states=_states(row.get("job_state")),
        reason=_text(row, "state_description") or _text(row, "state_reason"),
        held=_number(row, "priority", 1) == 0 and priority is not None,
        submit_s=_number(row, "submit_time", 0.0),
        eligible_s=_number(row, "eligible_time", 0.0),
        start_s=_number(row, "start_time", 0.0),
        end_s=_number(row, "end_time", 0.0),
        deadline_s=_number(row, "deadline", 0.0) or math.inf,
        limit_s=60.0 * _number(row, "time_limit", math.inf),
        gpus=gpus,
        gpu_type=kind,
        gpus_by_node=bool(gpu_counts(_text(row, "tres_per_node"))),
        node_count=count,
        nodes=nodes,
        required_nodes=_text(row, "required_nodes"),
        gpu_freq="" if is_ours(_text(row, "comment")) else _text(row, "tres_freq"),
        restarts=int(_number(row, "restart_cnt", 0)),
        odd=odd or _odd(row),
    )


def _odd(row: dict[str, Any]) -> str:
    """Say what a job asks for that a plan cannot promise."""
    asks = (
        ("it is a job array", _text(row, "array_task_string")),
        ("it is part of a heterogeneous job", _number(row, "het_job_id", 0)),
        ("it asks for features of nodes", _text(row, "features")),
        ("it excludes nodes", _text(row, "excluded_nodes")),
        ("it uses a reservation", _text(row, "resv_name")),
        ("it waits for another job", _text(row, "dependency")),
        ("it asks for licences", _text(row, "licenses")),
        ("it wants nodes of its own", _exclusive(row)),
    )
    return next((words for words, asked in asks if asked), "")


def _exclusive(row: dict[str, Any]) -> bool:
    """Tell whether no other job may be on its nodes; told as a number, a word or a list."""
    words = row.get("exclusive", row.get("shared"))
    listed = words if isinstance(words, list) else [words]
    return any(str(word).lower() in ("true", "none", "exclusive", "0") for word in listed if word)


def _requested(row: dict[str, Any], nodes: int, tasks: int) -> tuple[int, str, str]:
    """GPUs in all, their type, and why that cannot be told."""
    told = (("tres_per_job", 1), ("tres_per_node", nodes), ("tres_per_task", tasks))
    for key, times in told:
        counts = gpu_counts(_text(row, key))
        if counts:
            if len(counts) > 1:
                return sum(counts.values()) * times, "", "it asks for GPUs of several types"
            kind, count = next(iter(counts.items()))
            return count * times, kind, ""
    if gpu_counts(_text(row, "tres_per_socket")):
        return 0, "", "it asks for GPUs by socket"
    return 0, "", ""


def _allocated(names: list[str], details: Any, gpus: int) -> dict[str, int]:
    """GPUs on each node: as Slurm says it for each, else alike."""
    if isinstance(details, list) and len(details) == len(names):
        pairs = zip(names, details, strict=True)
        return {name: sum(gpu_counts(str(detail)).values()) for name, detail in pairs}
    return dict.fromkeys(names, -(-gpus // max(len(names), 1)))


def _node(row: dict[str, Any]) -> Node:
    flags = row.get("state_flags") or []
    states = _states(row.get("state")) | _states(flags)
    return Node(_text(row, "name"), states, gpu_counts(_text(row, "gres")))


def _group(row: dict[str, Any]) -> list[Node]:
    """Nodes of one row of a later sinfo, which are alike."""
    states = _states((row.get("node") or {}).get("state"))
    names = (row.get("nodes") or {}).get("nodes") or []
    gres = (row.get("gres") or {}).get("total", "")
    return [Node(str(name), states, gpu_counts(str(gres))) for name in names]


def _states(value: Any) -> frozenset[str]:
    words = value if isinstance(value, list) else [value]
    return frozenset(word for each in words if each for word in state_words(str(each)))


def _text(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _number(row: dict[str, Any], key: str, default: float) -> float:
    """A number in either format; infinite, not set and null are the default."""
    value = number_of(row.get(key))
    return float(value) if isinstance(value, int | float) else default


# --- text --------------------------------------------------------------------------------------

_FREE = {"job_id": "%A", "array_task_string": "%K", "job_state": "%T", "state_reason": "%r",
         "priority": "%Q", "nodes": "%N", "required_nodes": "%n", "node_count": "%D",
         "partition": "%P", "user_name": "%u", "features": "%f", "excluded_nodes": "%x",
         "dependency": "%E", "resv_name": "%v", "exclusive": "%h", "submit_time": "%V",
         "start_time": "%S", "end_time": "%e", "time_limit": "%l", "tres_per_node": "%b",
         "licenses": "%W", "name": "%j", "comment": "%k"}  # fmt: skip
"""Fields by letter, which may be as long as they like."""

_WIDE = {"job_id": "JobID:20", "deadline": "Deadline:24", "restart_cnt": "RestartCnt:12",
         "eligible_time": "EligibleTime:24", "tasks": "NumTasks:12",
         "tres_per_job": "tres-per-job:120", "tres_per_task": "tres-per-task:120"}  # fmt: skip
"""Fields that have no letter: columns, none of them text of an owner."""

_ON_NODES = re.compile(r"\sNodes=(\S+) CPU_IDs=\S+ Mem=\d+ GRES=(\S*)")
"""Nodes on which a job has the same, and what: in its record."""

_TIMES = ("submit_time", "eligible_time", "start_time", "end_time", "deadline")
_WHOLE = ("job_id", "priority", "node_count", "tasks", "restart_cnt")


def _jobs_as_text(run: Run, known: Mapping[int, Job]) -> dict[int, Job]:
    mark = f"<{secrets.token_hex(12)}>"
    form = mark.join(_FREE.values()) + mark
    asked = ["squeue", "--noheader", "--states=all", "--all"]
    rows = jobs_of_text(run([*asked, f"--format={form}"]), mark)
    more = _columns(run([*asked, f"--Format={','.join(_WIDE.values())}"]), _WIDE)
    wide = {row["job_id"]: row for row in more}
    jobs = [_job(_values({**row, **wide.get(row["job_id"], {})})) for row in rows]
    return {job.number: _with_record(run, job, known.get(job.number)) for job in jobs}


def _with_record(run: Run, job: Job, before: Job | None) -> Job:
    """A job with what no table shows, only its own record.

    The clocks that its owner asks for, and its GPUs on each of several nodes, which do not change
    while it runs. A name or a comment that looks like them can fool nobody but its own job.
    """
    asks = job.waits and job.gpus and (job.held or wish_of(job.comment).tagged)
    spread = job.active and len(job.nodes) > 1
    if spread and before is not None and _same_run(job, before):
        return replace(job, nodes=before.nodes)
    if not spread and (not asks or is_ours(job.comment)):
        return job
    try:
        record = run(["scontrol", "show", "job", "--details", str(job.number)])
    except AdapterError:  # it is gone by now
        return job
    if spread:
        rows = [(hosts_of(names), counts) for names, counts in _ON_NODES.findall(record)]
        told = {name: sum(gpu_counts(counts).values()) for names, counts in rows for name in names}
        fits = set(told) == set(job.nodes) and sum(told.values()) == job.gpus
        return replace(job, nodes=told) if fits else job
    found = re.search(r"\sTresFreq=(\S+)", record)
    return job if found is None else replace(job, gpu_freq=found[1])


def _same_run(job: Job, before: Job) -> bool:
    """Tell whether a job that runs was seen since it started, on the same nodes."""
    since = (job.start_s, job.restarts) == (before.start_s, before.restarts)
    return since and before.active and job.nodes.keys() == before.nodes.keys()


def jobs_of_text(text: str, mark: str) -> list[dict[str, str]]:
    """Fields of jobs that end with ``mark``; whatever else stands in them."""
    parts = text.split(mark)
    names, size = list(_FREE), len(_FREE)
    whole = len(parts) // size * size
    rows = [parts[at : at + size] for at in range(0, whole, size)]
    return [dict(zip(names, [row[0].lstrip("\n"), *row[1:]], strict=True)) for row in rows]


def _columns(text: str, wide: dict[str, str]) -> list[dict[str, str]]:
    """Rows of columns with fixed widths."""
    rows = []
    for line in text.splitlines():
        at, row = 0, {}
        for name, column in wide.items():
            width = int(column.rpartition(":")[2])
            row[name], at = line[at : at + width].strip(), at + width
        rows.append(row)
    return rows


def _values(row: dict[str, str]) -> dict[str, Any]:
    """Text as the values that JSON has."""
    told: dict[str, Any] = {
        key: "" if value in ("N/A", "(null)", "Unknown") and key != "name" else value
        for key, value in row.items()
    }
    for key in _TIMES:
        told[key] = _instant(told.get(key, ""))
    for key in _WHOLE:
        value = told.get(key, "").partition("-")[0]
        told[key] = int(value) if value.isdecimal() else None
    told["time_limit"] = _minutes(told["time_limit"])
    told["exclusive"] = told["exclusive"] if told["exclusive"] in ("NO", "USER") else ""
    told["exclusive"] = "exclusive" if told["exclusive"] == "NO" else ""
    if told["array_task_string"].isdecimal():
        told["array_task_string"] = ""  # one task of an array, which is a job of its own
    return told


def _instant(text: str) -> float | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def _minutes(text: str) -> float | None:
    """A limit such as ``1-02:03:04``, ``2:03:04`` or ``5:00`` (minutes and seconds)."""
    days, _, clock = text.rpartition("-")
    parts = ["0", "0", *clock.split(":")][-3:]
    if not all(part.isdecimal() for part in (days or "0", *parts)):
        return None
    hours, minutes, seconds = map(int, parts)
    return int(days or 0) * 1440.0 + hours * 60.0 + minutes + seconds / 60.0


def _nodes_as_text(run: Run) -> dict[str, Node]:
    wide = {"name": "NodeList:128", "states": "StateComplete:128", "gres": "Gres:512"}
    form = ",".join(wide.values())
    rows = _columns(run(["sinfo", "--noheader", "--Node", "--all", f"--Format={form}"]), wide)
    return {
        row["name"]: Node(row["name"], state_words(row["states"]), gpu_counts(row["gres"]))
        for row in rows
    }
