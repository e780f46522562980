"""``downclock fit``: from measurements to a library of applications."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

import click

from downclock.cli import options

EPILOG = """\b
Examples:
  downclock fit runs.csv --kind gtx1080ti --default-core-mhz 1800 --default-memory-mhz 5000 \\
    --columns application=appName,core_mhz=coreF,memory_mhz=memF,time_ms=time/ms,power_w=power/W \\
    --output library.json
  downclock fit zeus.csv --kind a40 --output library.json --append \\
    --columns application=network+batch_size,power_limit_w=power_limit,time_s=time_per_epoch,\\
power_w=average_power
"""


def _clocks(text: str) -> tuple[float, float]:
    """Read ``LOW-HIGH`` in MHz; either end may be left out."""
    low, dash, high = text.partition("-")
    ends = float(low or "0"), float(high or "inf")
    if not (dash and ends[0] <= ends[1]):
        raise ValueError
    return ends


@options.command("fit", EPILOG)
@options.input_files("MEASUREMENTS...")
@click.option("--kind", required=True, metavar="NAME", help="Processor kind that was measured.")
@click.option(
    "--default-core-mhz",
    type=float,
    metavar="MHZ",
    help="Core clock of ratio 1, where clocks vary.",
)
@click.option(
    "--default-memory-mhz", type=float, metavar="MHZ", help="Memory clock of ratio 1, if it varies."
)
@click.option(
    "--default-power-limit-w",
    type=float,
    metavar="W",
    help="Power limit of ratio 1. [default: the greatest measured]",
)
@options.columns("Names of the columns where they differ from ours; application=A+B joins two.")
@options.choice(
    "--model", of=("auto", "gpu", "table"), default="auto",
    help="Smooth model, measured table, or whichever is good enough.",
)  # fmt: skip
@options.choice(
    "--law",
    of=("auto", "mei", "proportional", "fixed"),
    default="auto",
    help="Voltage that a core clock needs, auto: the one of least held-out error; the library"
    " keeps it.",
)
@click.option(
    "--clocks",
    callback=options.reading(_clocks, "is not of the form LOW-HIGH, LOW- or -HIGH"),
    metavar="LOW-HIGH",
    help="Fit core clocks (MHz) from LOW to HIGH only, such as 700-. [default: all, or those where"
    " time rises no faster than 1 / clock]",
)
@options.choice(
    "--weighting", of=("even", "relative"), default="even",
    help="Least squared errors, or relative ones.",
)  # fmt: skip
@click.option("--source", default="", metavar="TEXT", help="Where the numbers come from.")
@options.output("Write the library (.json).", suffixes=(".json",))
@click.option("--append", is_flag=True, help="Add to the library that FILE holds.")
@options.form
def command(
    session: options.Session,
    files: tuple[str, ...],
    kind: str,
    columns: dict[str, str],
    law: Any,
    clocks: tuple[float, float] | None,
    source: str,
    output: str | None,
    append: bool,
    **how: Any,
) -> None:
    """Fit job profiles to measurements.

    Reads CSV files with the columns application, core_mhz, memory_mhz, time_s (or time_ms) and
    power_w; prints the errors of every application. Jobs name the applications of the library.
    Where power limits were set instead of clocks, the column is power_limit_w.
    """
    from downclock.power.fit import fit
    from downclock.power.library import merged
    from downclock.power.library_file import read_library, write_library
    from downclock.power.measurements import read_measurements
    from downclock.power.points import LAWS
    from downclock.report.describe import fit_page

    if append and output is None:
        raise click.UsageError("--append needs the library it adds to: --output FILE")
    known = [read_library(output)] if append and output and os.path.exists(output) else []
    # What is added to a kind must mean the same voltages as what is there.
    fixed = known[0].basis_of(kind).law if known else None
    with session.working("fitting"):
        measured = read_measurements(files, columns)
        law = LAWS.get(law, fixed or "auto")
        fitted = fit(measured, kind=kind, law=law, clocks_mhz=clocks, **how)
    if output is not None:
        library = replace(fitted.library, source=source)
        write_library(merged([*known, library]), output)
        session.wrote(output)
    session.show(fit_page(fitted))
