"""``downclock demo``: plan the example day, by energy and by price, and draw it."""

from __future__ import annotations

import os

import click

from downclock.cli import options


@options.command("demo")
@click.argument("folder", type=click.Path(), default="downclock-demo", metavar="[FOLDER]")
def command(session: options.Session, /, folder: str) -> None:
    """Plan an example day of 140 jobs on 32 GPUs, twice, and draw it.

    Writes the files of the example and report.html into FOLDER (default: downclock-demo). The
    first plan needs the least energy, the second the least money at prices that change by the
    hour, beside running every job at full speed (race).

    Example:
      downclock demo
    """
    from downclock.problem.files.files import load_problem
    from downclock.report.page import write_report
    from downclock.report.summary import summary_page
    from downclock.study.baselines import chosen_policy
    from downclock.study.objective_value import objective_or_none
    from downclock.study.summary import summarise
    from downclock.workloads.starters import starter, write_starter

    cluster, jobs, report = (
        os.path.join(folder, name) for name in ("cluster.toml", "jobs.csv", "report.html")
    )
    with session.working("planning by energy"):
        write_starter(folder, starter("gpu-day"))
        problem = load_problem(cluster, jobs)
        summary = summarise(problem, chosen_policy(problem))
        words = ["downclock", "plan", cluster, jobs, "--report", report]
        write_report(summary, report, command=words)
    session.show(summary_page(summary))
    session.wrote(report)
    with session.working("planning by price"):
        chosen = chosen_policy(problem, objective="cost")
        cheap = summarise(problem, chosen, baselines=("race",), objective=objective_or_none("cost"))
    session.show(summary_page(cheap))
