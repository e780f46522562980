"""``downclock simulate``: what becomes of a plan when run times vary and things fail."""

from __future__ import annotations

from typing import Any

import click

from downclock.cli import options


@options.command("simulate")
@options.problem_files("CLUSTER JOBS | PROBLEM")
@click.option("--policy", "spec", metavar="SPEC", help="How to decide; see `downclock policies`.")
@click.option("--runs", type=click.IntRange(1), default=1, show_default=True, help="How often.")
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the first run."
)
@click.option(
    "--actual",
    metavar="SPREAD",
    help="Actual / estimated work: uniform:LOW:HIGH, lognormal:MEDIAN:SIGMA or file:RATIOS."
    " [default: the jobs' own]",
)
@click.option(
    "--reserve", metavar="LIST", help="Print misses against reserve, such as 0,0.1,0.2; a row each."
)
@click.option("--fail-jobs", type=float, default=0.0, help="Chance that an attempt fails.")
@click.option("--retries", type=int, default=3, show_default=True, help="Attempts after the first.")
@click.option("--fail-servers", type=float, default=0.0, help="Chance that a server fails once.")
@click.option("--fail-processors", type=float, default=0.0, help="The same of a processor.")
@click.option(
    "--repair-s", type=float, default=3600.0, show_default=True, help="Seconds a repair takes."
)
@click.option(
    "--server-life",
    metavar="LIFE",
    help="Servers fail again and again; time to the next failure: exponential:MEAN_S or"
    " weibull:MEAN_S:SHAPE.",
)
@click.option("--processor-life", metavar="LIFE", help="The same of processors.")
@click.option("--keep", is_flag=True, help="Keep promised starts, whatever happens.")
@options.boundary
@options.output("First run's realised schedule (.json .parquet .csv).")
@options.form
def command(
    session: options.Session,
    source: options.Source,
    spec: str | None,
    runs: int,
    seed: int,
    reserve: str | None,
    keep: bool,
    boundary: options.Boundary,
    output: str | None,
    **fates: Any,
) -> None:
    """Simulate a plan: run times vary, jobs and machines fail.

    Prints a row per run beside what was promised. A job that is done too late counts as late; one
    that lost all its attempts as failed. Promised and realised schedules are verified.

    With --reserve it prints a row per reserve instead: tasks missed, rejected, energy, means of the
    runs; all meet the same fates.

    Example:
      downclock simulate cluster.toml jobs.csv --actual uniform:0.5:1 --runs 20
    """
    from downclock.engine.keeping import Keeping
    from downclock.report.simulated import reserve_page, simulated_page
    from downclock.schedule.files import SUFFIXES, schedule_path, write_schedule
    from downclock.simulate.chances import Chances
    from downclock.simulate.simulate import simulate_many
    from downclock.study.baselines import chosen_policy
    from downclock.study.simulated import judged_runs, reserve_curve, reserves_of

    options.require_writable(output, (*SUFFIXES, ""))
    chances = Chances(**fates)
    with session.working("reading"):
        problem = source.load()
    seeds = tuple(range(seed, seed + runs))
    chosen = chosen_policy(problem, spec, known=False)
    if keep and reserve is not None:
        raise click.UsageError("--keep and --reserve are two questions")
    if keep:
        chosen = Keeping(chosen)
    if reserve is not None:
        if output is not None:
            raise click.UsageError("--reserve prints a curve and has no schedule for --output")
        if "reserve=" in chosen.name:
            raise click.UsageError(f"--reserve tries its own; {chosen.name} has one already")
        wanted = reserves_of(reserve)
        with session.working("simulating") as progress:
            curve = reserve_curve(
                problem, chosen.name, wanted, chances=chances, seeds=seeds, boundary=boundary,
                progress=progress,
            )  # fmt: skip
        session.show(reserve_page(problem, chosen.name, seeds, curve))
        return
    with session.working("planning") as progress:
        done = simulate_many(problem, chosen, chances=chances, seeds=seeds, progress=progress)
    with session.working("verifying and billing"):
        page = simulated_page(judged_runs(done, boundary))
    if output is not None:
        path = schedule_path(output, problem)
        write_schedule(done[0].realised, problem, path)
        session.wrote(path)
    session.show(page)
