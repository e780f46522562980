"""``downclock fit``: from measurements to a library of applications."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from downclock.cli import options

if TYPE_CHECKING:
    from downclock.cli.session import Session
    from downclock.power.fit import Model, Weighting
    from downclock.report.tables import Form

EPILOG = """\b
Example:
  downclock fit runs.csv --kind gtx1080ti --default-core-mhz 1800 --default-memory-mhz 5000 \\
    --columns application=appName,core_mhz=coreF,memory_mhz=memF,time_ms=time/ms,power_w=power/W \\
    --output library.json
"""


def _read_columns(ctx: click.Context, param: click.Parameter, text: str) -> dict[str, str]:
    """Read ``ours=theirs,...``."""
    names: dict[str, str] = {}
    for part in text.split(",") if text else ():
        ours, equals, theirs = (word.strip() for word in part.partition("="))
        if not (ours and equals and theirs):
            raise click.BadParameter(f"{part!r} is not of the form ours=theirs.", ctx, param)
        names[ours] = theirs
    return names


@click.command("fit", epilog=EPILOG)
@options.input_files("MEASUREMENTS...")
@click.option("--kind", required=True, metavar="NAME", help="Processor kind that was measured.")
@click.option(
    "--default-core-mhz", type=float, required=True, metavar="MHZ", help="Core clock of ratio 1."
)
@click.option(
    "--default-memory-mhz", type=float, metavar="MHZ", help="Memory clock of ratio 1, if it varies."
)
@click.option(
    "--columns",
    callback=_read_columns,
    default="",
    metavar="OURS=THEIRS,...",
    help="Names of the columns where they differ from ours.",
)
@click.option(
    "--model",
    type=click.Choice(["auto", "gpu", "table"]),
    default="auto",
    show_default=True,
    help="Smooth model, measured table, or whichever is good enough.",
)
@click.option(
    "--law",
    type=click.Choice(["mei", "proportional", "fixed"]),
    default="mei",
    show_default=True,
    help="Voltage that a core clock needs; the library keeps it.",
)
@click.option(
    "--weighting",
    type=click.Choice(["even", "relative"]),
    default="even",
    show_default=True,
    help="Least squared errors, or relative ones.",
)
@click.option("--source", default="", metavar="TEXT", help="Where the numbers come from.")
@click.option("--output", type=click.Path(), metavar="FILE", help="Write the library (.json).")
@options.form
@options.quiet
@click.pass_obj
def command(
    session: Session,
    files: tuple[str, ...],
    kind: str,
    default_core_mhz: float,
    default_memory_mhz: float | None,
    columns: dict[str, str],
    model: Model,
    law: str,
    weighting: Weighting,
    source: str,
    output: str | None,
    form: Form,
) -> None:
    """Fit job profiles to measurements.

    Reads CSV files with the columns application, core_mhz, memory_mhz, time_s (or time_ms) and
    power_w; prints the errors of every application. Jobs name the applications of the library.
    """
    from downclock.power.fit import fit
    from downclock.power.library_file import write_library
    from downclock.power.measurements import read_measurements
    from downclock.power.points import LAWS
    from downclock.report.describe import fit_page

    options.require_writable(output, (".json",))
    with session.working("fitting"):
        fitted = fit(
            read_measurements(files, columns),
            kind=kind,
            default_core_mhz=default_core_mhz,
            default_memory_mhz=default_memory_mhz,
            law=LAWS[law],
            model=model,
            weighting=weighting,
        )
    if output is not None:
        write_library(fitted.library, output, source)
        session.wrote(output)
    session.show(fit_page(fitted), form)
