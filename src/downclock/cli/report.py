"""``downclock report``: a schedule as one HTML page, and as figures and a trace."""

from __future__ import annotations

from downclock.cli import options
from downclock.errors import InvalidInput, InvalidSchedule


@options.command("report")
@options.problem_files("CLUSTER JOBS SCHEDULE | PROBLEM SCHEDULE")
@options.output(
    "The page (.html).", default="report.html", show_default=True, suffixes=options.PAGES
)
@options.policies(
    "--baselines",
    metavar="NAMES",
    help="Policies to compare with, or none. [default: the usual ones for the problem]",
)
@options.file("--gantt", help="Also a chart (.png .svg .pdf).", suffixes=options.FIGURES)
@options.file("--power", help="Also power over time, likewise.", suffixes=options.FIGURES)
@options.file("--trace", help="Also a Perfetto trace (.json).", suffixes=(".json",))
@options.beside
@options.boundary
def command(
    session: options.Session,
    source: options.Source,
    output: str,
    baselines: list[str] | None,
    gantt: str | None,
    power: str | None,
    trace: str | None,
    beside: str | None,
    boundary: options.Boundary,
) -> None:
    """Write a schedule as one HTML page.

    The page needs no network and no other file: summary, chart of the plan, power over time,
    energy against run time of a chosen task, slack, all tasks, what was left out and why.

    Example:
      downclock report cluster.toml jobs.csv schedule.json --output report.html
    """
    from downclock.report.figures import gantt_figure, power_figure
    from downclock.report.page import write_report
    from downclock.report.trace import write_trace
    from downclock.study.summary import judge

    with session.working("reading"):
        problem, schedule = source.load_with_schedule()
        given = source.read_beside(problem, beside)
    named = None if baselines is None else [name for name in baselines if name != "none"]
    specs = None if baselines is None else ",".join(baselines)
    said = {"baselines": specs, "beside": beside, "boundary": boundary, "output": output}
    words = source.words("report", **said)
    try:
        with session.working("planning the baselines") as progress:
            summary = judge(
                problem, schedule, boundary=boundary, baselines=named, beside=given,
                progress=progress,
            )  # fmt: skip
        with session.working("writing the page"):
            write_report(summary, output, command=words)
    except InvalidSchedule as error:
        raise InvalidInput(str(error), source=source.files[-1]) from None
    session.wrote(output)
    if gantt is not None:
        session.save(gantt_figure(problem, schedule), gantt)
    if power is not None:
        session.save(power_figure(problem, schedule, boundary=boundary), power)
    if trace is not None:
        write_trace(problem, schedule, trace, boundary=boundary)
        session.wrote(trace)
