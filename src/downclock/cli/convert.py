"""``downclock convert``: task graphs and traces of other tools as problem files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options
from downclock.cli.trace_options import read_length, read_told, trace_options

if TYPE_CHECKING:
    from downclock.workloads.task_graph import TaskGraph

SPREAD, HEADROOM = 1e4, 2.0
"""Clocks reach so far below the pace that does all work on one core in time; and so far above it,
or above the clock at which a core alone on its chip does its work on the least energy. No plan of
least energy is faster than both; a task that begins again after a failure may be."""


@options.command("convert")
@click.argument("source", metavar="TRACE|GRAPH", type=click.Path())
@trace_options
@options.file(
    "--ran", help="Also write the trace as it ran, a schedule (.parquet, .json, .csv).",
    type=options.Written(),
)  # fmt: skip
@options.whole("--cores", 1, 4096, help="Of a task graph: how many cores.")
@options.number(
    "--deadline", 0.0, 1e12, above=True, metavar="SECONDS",
    help="Of all tasks. [default: the time of all work on one core at clock 1; in slots, what any"
    " list schedule needs; on a cluster, a wake and --deadline-factor times the longest path"
    " or the work spread over all processors]",
)  # fmt: skip
@click.option("--per-core", is_flag=True, help="A clock per core, not one for the chip.")
@options.whole("--islands", 1, 4096, help="A clock for each of so many equal sets of cores.")
@options.number(
    "--c1", 0.0, 1e9, above=True, default=1.0, help="Power of a core: c1 f^alpha W. [default: 1]"
)
@options.number(
    "--alpha", 1.0, 10.0, above=True, default=3.0, help="The alpha of that. [default: 3]"
)
@options.number("--c2", 0.0, 1e9, default=0.0, help="Chip adds c2 f W while it runs. [default: 0]")
@options.number("--c3", 0.0, 1e9, default=0.0, help="Chip adds c3 W while it runs. [default: 0]")
@click.option(
    "--slot",
    "slot_s",
    callback=read_length,
    metavar="DURATION",
    help="Time in slots, such as 1h: equal machines with clocks of 0.2 to 1, each its own.",
)
@options.file(
    "--prices", "--price", help="Prices and CO2 intensity (CSV), with --slot or --cluster."
)
@options.columns("Names of the price file's columns where they differ from ours.")
@click.option("--plan", "planned", is_flag=True, help="Plan it at once, as `downclock plan` does.")
@options.output(
    "Write the problem (.json, of a trace also .parquet; of a list of nodes .toml).", required=True
)
@options.form
def command(
    session: options.Session,
    /,
    source: str,
    trace: dict[str, Any],
    ran: str | None,
    cores: int | None,
    output: str,
    **asked: Any,
) -> int:
    r"""Turn a trace of a cluster, or a task graph, into a problem.

    A trace: sacct (-P with a header, or --json), SWF, Philly, Alibaba GPU 2023, Eagle, Helios,
    Batsim; or any CSV or Parquet with a --map. What it does not say is assumed as the options say,
    and told; rows left out are counted, malformed ones named. Alibaba's list of nodes becomes a
    cluster (.toml).

    A task graph: the Standard Task Graph format (.stg) and WfFormat 1.5 (.json), by one deadline;
    with --cluster on that cluster, a unit of work being a second at default clocks; with --cores on
    one chip or on machines in slots, where clock 1 does a unit of work (cycle or second) a second.
    On one chip all clocks are possible: one for all cores, or several with --islands or --per-core.
    With --slot there are five, tasks start and end on slots and may pause, what is left of a task's
    last slot is waste, and the prices become part of the problem, which starts at their first row.

    Examples:
      downclock convert robot.stg --cores 8 --islands 2 --plan --output robot.json
      downclock convert montage.json --cores 8 --slot 15m --prices day.csv --plan -o m.json
      downclock convert montage.json --cluster cluster.toml --plan -o montage-here.json
      SLURM_TIME_FORMAT=%FT%T%z sacct -aXP -S now-7days --format \
        JobID,Submit,Start,End,ElapsedRaw,TimelimitRaw,AllocTRES,Partition,NodeList > week.txt
      downclock convert week.txt --cluster cluster.toml -o week.parquet --ran ran.parquet
      downclock plan week.parquet --beside ran.parquet
    """
    from downclock.workloads.wfformat import is_wfformat

    of_traces, of_graphs = {*trace, "ran"}, {"cores", *asked}
    if cores is not None:
        options.refuse(of_traces, "--cores")
        make = _on_chip if asked["slot_s"] is None else _in_slots
        return _graph(session, source, make, output, cores=cores, **asked)
    if not (source.lower().endswith(".stg") or is_wfformat(source)):
        options.refuse(of_graphs, "a trace")
        return _trace(session, source, trace, ran, output)
    if trace["cluster"] is None:
        rule = "a task graph needs it, or the --cluster that runs it"
        raise click.UsageError(f"Missing option '--cores': {rule}")
    options.refuse({*of_traces, *_OF_MACHINES} - _OF_WORKFLOWS, "a task graph on a --cluster")
    return _graph(session, source, _on_cluster, output, trace=trace, **asked)


_OF_CHIPS = {"per_core", "islands", "c2", "c3"}
_OF_MACHINES = {*_OF_CHIPS, "slot_s", "c1", "alpha"}
_OF_WORKFLOWS = {"cluster", "deadline_factor", "archetype"}


def _trace(
    session: options.Session, source: str, told: dict[str, Any], ran: str | None, output: str
) -> int:
    from downclock.problem.files.write_problem import SUFFIXES, write_problem
    from downclock.report.converted import converted_page
    from downclock.schedule.files import SUFFIXES as SCHEDULES
    from downclock.schedule.files import write_schedule
    from downclock.study.as_it_ran import as_it_ran
    from downclock.workloads.traces.read import is_node_list
    from downclock.workloads.traces.to_problem import converted

    if told["mapping"] is None and is_node_list(source):
        return _nodes(session, source, told, output)
    options.require_writable(output, SUFFIXES)
    options.require_writable(ran, SCHEDULES, "ran")
    with session.working("reading and writing"):
        found = converted(*read_told(source, told))
        write_problem(found.problem, output)
    session.wrote(output)
    if ran is not None:
        with session.working("writing the trace as it ran"):
            write_schedule(as_it_ran(found), found.problem, ran)
        session.wrote(ran)
    session.show(converted_page(found))
    return 0


def _nodes(session: options.Session, source: str, told: dict[str, Any], output: str) -> int:
    from downclock.problem.files.read_cluster import read_cluster
    from downclock.quantities import count
    from downclock.report.converted import malformed_notes
    from downclock.report.describe import cluster_page
    from downclock.workloads.traces.alibaba import cluster_of_nodes
    from downclock.workloads.traces.ledger import MALFORMED, Ledger
    from downclock.workloads.traces.made_cluster import toml_text
    from downclock.workloads.traces.rows import csv_sheet

    options.refuse({*told, "ran"} - {"card", "strict"}, "a list of nodes")
    options.require_writable(output, (".toml",))
    ledger = Ledger(source, told["strict"])
    data = cluster_of_nodes(csv_sheet(source, ledger), ledger, told["card"])
    session.write(toml_text(data), output)
    ledger.untold = 0  # what nodes ran for is nobody's question
    left = [(why, rows) for why, (rows, _) in ledger.dropped.items() if why != MALFORMED]
    session.tell(f"left out: {count(rows, 'node')} {why}" for why, rows in left)
    session.tell(malformed_notes(ledger))
    session.show(cluster_page(read_cluster(output)))
    return 0


def _graph(
    session: options.Session,
    source: str,
    make: Callable[..., options.Problem],
    output: str,
    *,
    planned: bool,
    **asked: Any,
) -> int:
    from downclock.errors import InvalidInput
    from downclock.problem.files.write_problem import write_problem
    from downclock.report.describe import problem_page
    from downclock.workloads.stg import read_stg
    from downclock.workloads.wfformat import read_wfformat

    options.require_writable(output, (".json",))
    with session.working("reading and writing"):
        read = read_wfformat(source) if source.lower().endswith(".json") else read_stg(source)
        if read.total_work <= 0.0:
            raise InvalidInput("has no work", source=source)
        if asked["columns"] is not None and asked["prices"] is None:
            raise click.UsageError("--columns is about the price file: give it with --prices")
        problem = make(read, **asked)
        write_problem(problem, output)
    session.wrote(output)
    if planned:
        from downclock.cli.plan import command as plan

        code: int = click.get_current_context().invoke(plan, files=(output,))
        return code
    session.show(problem_page(problem))
    return 0


def _on_chip(
    graph: TaskGraph, *, cores: int, per_core: bool, islands: int | None, **asked: Any
) -> options.Problem:
    from downclock.power.points import ClockRange
    from downclock.workloads.chip import chip_problem

    if asked["prices"] is not None:
        raise click.UsageError("--prices needs --slot: a chip without slots is planned by energy")
    if per_core:
        options.refuse({"islands"}, "--per-core")
    deadline_s = asked["deadline"] or graph.total_work
    pace = graph.total_work / deadline_s
    c1, alpha = asked["c1"], asked["alpha"]
    alone = (asked["c3"] / (c1 * (alpha - 1.0))) ** (1.0 / alpha)
    fastest = min(max(pace, alone), SPREAD * pace)
    clocks = ClockRange(pace / SPREAD, HEADROOM * fastest)
    power = {name: asked[name] for name in ("c1", "alpha", "c2", "c3")}
    wide, count = not per_core, islands or 1
    return chip_problem(
        graph, cores, deadline_s, clocks=clocks, chip_wide=wide, islands=count, **power
    )


def _on_cluster(graph: TaskGraph, *, trace: dict[str, Any], **asked: Any) -> options.Problem:
    from downclock.workloads.workflow import workflow_problem

    jobs = {name: trace[name] for name in ("deadline_factor", "archetype")}
    prices = {"prices": asked["prices"], "price_columns": asked["columns"]}
    return workflow_problem(graph, trace["cluster"], deadline_s=asked["deadline"], **jobs, **prices)


def _in_slots(graph: TaskGraph, *, cores: int, slot_s: float, **asked: Any) -> options.Problem:
    from downclock.problem.files.read_prices import zone_prices
    from downclock.workloads.gerhards import Machines, slotted_workflow

    options.refuse(_OF_CHIPS, "--slot")
    machines = Machines(cores, watts=asked["c1"], alpha=asked["alpha"])
    problem = slotted_workflow(graph, machines, slot_s, deadline_s=asked["deadline"])
    if asked["prices"] is None:
        return problem
    how = {"epoch": "first row", "slot_s": slot_s, "columns": asked["columns"]}
    read = zone_prices(asked["prices"], problem.platform.zones, **how)
    return replace(problem, prices=read)
