"""``downclock plan``: from jobs and a cluster to a verified, billed schedule."""

from __future__ import annotations

from collections.abc import Iterable

import click

from downclock.cli import options

BRIEFLY = "a brief search, as nothing is compiled yet: `downclock compile`, once, makes it longer"


def _policies() -> Iterable[str]:
    from downclock.planners.catalog import CATALOG

    return CATALOG


@options.command("plan")
@options.problem_files("CLUSTER JOBS | PROBLEM")
@click.option(
    "--policy",
    "spec",
    metavar="SPEC",
    shell_complete=options.completing(_policies),
    help="How to decide; see `downclock policies`. [default: the best]",
)
@options.objective
@options.boundary
@click.option(
    "--effort", type=float, metavar="SECONDS", help="About so long a search for a better plan."
)
@click.option("--seed", type=int, help="Seed of policies that draw; the others ignore it.")
@options.beside
@options.output("Write the schedule (.json, .parquet or .csv; without one, .json).")
@options.file("--report", help="Also write the plan as a page (.html).", suffixes=options.PAGES)
@options.form
def command(
    session: options.Session,
    source: options.Source,
    spec: str | None,
    objective: str | None,
    boundary: options.Boundary,
    effort: float | None,
    seed: int | None,
    beside: str | None,
    output: str | None,
    report: str | None,
) -> int:
    """Plan jobs on a cluster and show what the plan costs.

    Takes a cluster (TOML) and jobs (CSV, Parquet or JSON), or one problem file (JSON or Parquet).
    Prints the energy by part beside running at full speed (race) and at the best single clock
    (static-cap) under the same sleep rule, deadlines met, each rejected job with its reason,
    servers, wakes, money and CO2 where prices are known, the lower bound and the gap to it.

    With an objective other than energy, a policy that looks at prices plans by it (the default one
    for the problem, or the one named); other policies are only valued by it. Then bound and gap
    are in the objective's unit. Plans see forecasts and count negative prices as 0; bills do not.

    Every plan is verified before it is shown or written. Exit code 1: all jobs are rejected.

    Example:
      downclock plan cluster.toml jobs.csv --policy edl:theta=0.9 --output schedule.json
    """
    from downclock.report.describe import extrapolated
    from downclock.report.summary import summary_page
    from downclock.schedule.files import SUFFIXES, schedule_path, write_schedule
    from downclock.study.baselines import chosen_policy, searches_briefly
    from downclock.study.objective_value import objective_or_none
    from downclock.study.summary import summarise

    options.require_writable(output, (*SUFFIXES, ""))
    with session.working("reading"):
        problem = source.load()
        session.tell(extrapolated(problem))
        given = source.read_beside(problem, beside)
    shown = not session.quiet or report is not None
    by = objective_or_none(objective)
    if spec is None and effort is None and searches_briefly(problem, objective):
        session.note(BRIEFLY)
    with session.working("planning") as progress:
        chosen = chosen_policy(
            problem, spec, objective=objective, seed=seed, effort=effort, progress=progress
        )
        summary = summarise(
            problem, chosen, boundary=boundary, baselines=None if shown else (), objective=by,
            beside=given, prove=shown, progress=progress,
        )  # fmt: skip
    if output is not None:
        path = schedule_path(output, problem)
        write_schedule(summary.plan.schedule, problem, path)
        session.wrote(path)
    if report is not None:
        from downclock.report.page import write_report

        said = {"objective": objective, "boundary": boundary, "beside": beside, "report": report}
        with session.working("writing the page"):
            words = source.words("plan", policy=chosen.name, **said)
            write_report(summary, report, command=words)
        session.wrote(report)
    session.show(summary_page(summary))
    if not summary.plan.done:
        click.echo("error: all jobs are rejected", err=True)
        return 1
    return 0
