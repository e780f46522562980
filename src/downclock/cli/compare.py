"""``downclock compare``: many policies on one problem, or on a folder of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from downclock.cli import options
from downclock.errors import InvalidInput

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.problem.problem import Problem
    from downclock.report.tables import Form, Page
    from downclock.schedule.account.bill import Boundary

EPILOG = """\b
Examples:
  downclock compare cluster.toml jobs.csv
  downclock compare problems/ --policies edl,race --output table.csv --plot bars.svg
"""

TABLES = (".csv", ".json", ".parquet", ".pq")


@click.command("compare", epilog=EPILOG)
@options.problem_files("CLUSTER JOBS | PROBLEM... | FOLDER...", folders=True)
@click.option(
    "--policies",
    metavar="SPEC,...",
    help="Which to compare; parameters after a colon. [default: all that apply]",
)
@options.objective
@options.boundary
@click.option("--plot", type=click.Path(), metavar="FILE", help="Bars (.png, .svg or .pdf).")
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    metavar="FILE",
    help="Write the table (.csv, .json or .parquet).",
)
@options.form
@options.quiet
@click.pass_obj
def command(
    session: Session,
    files: tuple[str, ...],
    library: str | None,
    prices: str | None,
    policies: str | None,
    objective: str | None,
    boundary: Boundary,
    plot: str | None,
    output: str | None,
    form: Form,
) -> None:
    """Compare policies on one problem or many.

    Takes a cluster and jobs, problem files, or folders of problem files. Every plan is verified
    and billed; policies that complete most tasks come first, then by energy, or by the objective:
    policies that look at prices then plan by it, the others are valued by it. A policy that does
    not apply is named with its reason.
    """
    from downclock.report.comparison import comparison_page
    from downclock.study.compare import compare
    from downclock.study.objective_value import objective_or_none

    options.require_writable(output, TABLES)
    options.require_writable(plot, (".png", ".svg", ".pdf"))
    with session.working("reading"):
        problems = _problems(files, library, prices)
    specs = None if policies is None else _specs(policies)
    with session.progress("planning") as bar:
        found = compare(
            problems,
            specs,
            boundary=boundary,
            progress=bar,
            objective=objective_or_none(objective),
        )
    page = comparison_page(*found)
    if plot is not None:
        from downclock.report.figures import compare_figure, save_figure

        save_figure(compare_figure(found), plot)
        session.wrote(plot)
    if output is not None:
        _write(session, page, output)
    session.show(page, form)


def _problems(files: Sequence[str], library: str | None, prices: str | None) -> list[Problem]:
    """Read a cluster and jobs, or every problem file named or found in a folder."""
    if len(files) == 2 and Path(files[0]).suffix == ".toml":
        return [options.load(files, library, prices)]
    paths: list[str] = []
    for given in files:
        if Path(given).is_dir():
            inside = sorted(str(path) for path in Path(given).glob("*.json"))
            if not inside:
                raise InvalidInput("holds no problem file (.json)", source=given)
            paths += inside
        else:
            paths.append(given)
    return [options.load((path,), library, prices) for path in paths]


def _specs(text: str) -> list[str]:
    """Split specs at commas; a part without a name of its own belongs to the spec before it."""
    specs: list[str] = []
    for part in text.split(","):
        if "=" in part.partition(":")[0] and specs:
            specs[-1] += f",{part}"
        elif part:
            specs.append(part)
    return specs


def _write(session: Session, page: Page, path: str) -> None:
    from downclock.files import write_text_atomically
    from downclock.report.tables import plain, rendered

    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".pq"):
        from downclock.tabular import write_columns

        rows = plain(list(page.records))
        names = list(dict.fromkeys(name for row in rows for name in row))
        write_columns({name: [row.get(name) for row in rows] for name in names}, path)
    else:
        write_text_atomically(path, rendered(page, "json" if suffix == ".json" else "csv"))
    session.wrote(path)
