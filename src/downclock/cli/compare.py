"""``downclock compare``: many policies on one problem, or on a folder of them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options
from downclock.errors import InvalidInput

if TYPE_CHECKING:
    from downclock.study.compare import Knowing

TABLES = (".csv", ".json", ".parquet", ".pq")


@options.command("compare")
@options.problem_files("CLUSTER JOBS | PROBLEM... | FOLDER...", folders=True)
@options.policies(
    "--policies",
    metavar="SPEC,...",
    help="Which to compare; parameters after a colon. [default: all that apply]",
)
@click.option(
    "--online", "knowing", flag_value="arrivals", help="Policies that know a job when it arrives."
)
@click.option(
    "--known", "knowing", flag_value="all", help="All jobs are known: with what `plan` answers."
)
@options.objective
@options.boundary
@options.beside
@options.file("--plot", help="Bars (.png, .svg or .pdf).", suffixes=options.FIGURES)
@options.output("Write the table (.csv, .json or .parquet).", suffixes=TABLES)
@options.form
def command(
    session: options.Session,
    source: options.Source,
    policies: list[str] | None,
    knowing: Knowing | None,
    objective: str | None,
    boundary: options.Boundary,
    beside: str | None,
    plot: str | None,
    output: str | None,
) -> None:
    """Compare policies on one problem or many.

    Takes a cluster and jobs, problem files, or folders of problem files. Every plan is verified
    and billed; policies that complete most tasks come first, then by energy, or by the objective:
    policies that look at prices then plan by it, the others are valued by it. A policy that does
    not apply is named with its reason.

    Policies know a job when it arrives, or all of them from the start (column "knows"): plans of
    the two are answers to different questions. --online leaves the second out; --known adds the
    best plan that is found with everything known, as `plan` does.

    Examples:
      downclock compare cluster.toml jobs.csv --online
      downclock compare problems/ --policies edl,race --output table.csv --plot bars.svg
    """
    from downclock.report.comparison import comparison_page
    from downclock.study.compare import compare
    from downclock.study.objective_value import objective_or_none

    with session.working("reading"):
        problems = _problems(source)
        if beside is not None and len(problems) > 1:
            raise click.UsageError("--beside is a schedule of one problem: give one")
        given = source.read_beside(problems[0], beside)
    with session.working("planning") as bar:
        by = objective_or_none(objective)
        how: dict[str, Any] = {"boundary": boundary, "progress": bar, "objective": by}
        how["knowing"] = knowing
        alone = [compare(problems[0], policies, beside=given, **how)] if given else None
        found = alone or compare(problems, policies, **how)
    page = comparison_page(*found)
    if plot is not None:
        from downclock.report.figures import compare_figure

        session.save(compare_figure(found), plot)
    if output is not None:
        _write(session, page, output)
    session.show(page)


def _problems(source: options.Source) -> list[options.Problem]:
    """Read a cluster and jobs, or every problem file named or found in a folder."""
    files = source.files
    if len(files) == 2 and Path(files[0]).suffix == ".toml":
        return [source.load()]
    paths: list[str] = []
    for given in files:
        if Path(given).is_dir():
            every = sorted(Path(given).iterdir())
            inside = [str(path) for path in every if path.suffix in (".json", ".parquet")]
            if not inside:
                raise InvalidInput("holds no problem file (.json, .parquet)", source=given)
            paths += inside
        else:
            paths.append(given)
    return [source.of(path).load() for path in paths]


def _write(session: options.Session, page: options.Page, path: str) -> None:
    from downclock.report.tables import plain, rendered

    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".pq"):
        from downclock.tabular import write_columns

        rows = plain(list(page.records))
        names = list(dict.fromkeys(name for row in rows for name in row))
        write_columns({name: [row.get(name) for row in rows] for name in names}, path)
        session.wrote(path)
    else:
        session.write(rendered(page, "json" if suffix == ".json" else "csv"), path)
