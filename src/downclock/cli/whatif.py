"""``downclock whatif``: what a trace would have cost otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from downclock.cli import options
from downclock.cli.trace_options import read_told, trace_options

if TYPE_CHECKING:
    from downclock.problem.problem import Problem


def _numbers(
    name: str, default: str, least: float, most: float, help: str
) -> Callable[[options.F], options.F]:
    """Add an option that is a list of numbers."""

    def read(text: str) -> tuple[float, ...]:
        numbers = tuple(float(word) for word in text.split(",") if word.strip())
        if not all(least <= number <= most for number in numbers):
            raise ValueError
        return numbers

    rule = f"is not a list of numbers from {least:g} to {most:g}, such as {default}"
    reading = options.reading(read, rule)
    return click.option(
        name, callback=reading, default=default, show_default=True, metavar="LIST", help=help
    )


@options.command("whatif")
@click.argument("source", metavar="TRACE", type=click.Path())
@trace_options
@click.option(
    "--policy", "spec", default="late", show_default=True, metavar="SPEC",
    help="Who plans; an online policy of `downclock policies`.",
)  # fmt: skip
@click.option(
    "--prices", "--price", "price_files", type=click.Path(), multiple=True, metavar="FILE",
    help="Prices and CO2 intensity (CSV), by date (from the first job on where a trace has none);"
    " the first file is the usual case, more are cases.",
)  # fmt: skip
@options.columns("Names of the price files' columns where they differ from ours.")
@options.number("--flat-price", 0.0, 1e6, metavar="N", help="Money per kWh at any time.")
@options.number("--flat-carbon", 0.0, 1e6, metavar="N", help="Grams of CO2 per kWh at any time.")
@_numbers("--slack", "1.25,3,5", 0.01, 1e6, "Deadline factors to try.")
@_numbers("--shares", "0.5,0", 0.0, 1.0, "Parts of jobs that may slow down.")
@_numbers("--errors", "0.2,0.5", 0.0, 0.9, "How far run times may be off.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of draws.")
@options.output(
    "The page (.html).", default="whatif.html", show_default=True, suffixes=options.PAGES
)
@options.form
def command(
    session: options.Session,
    /,
    source: str,
    trace: dict[str, Any],
    spec: str,
    seed: int,
    output: str,
    **told: Any,
) -> None:
    """Say what a trace would have cost otherwise, on one page for a meeting.

    Plans the trace online and compares with the trace as it ran, with full speed (race) and with
    the best single clock (static-cap): energy, and money and CO2 where prices are known. Then one
    thing at a time is changed: how much time jobs have, whether servers sleep, how many jobs may
    be slowed down, how well run times are known, prices. Every plan is verified.

    Coverage in GPU-hours stands first, every assumption last.

    Examples:
      downclock whatif week.txt --cluster cluster.toml --prices day-ahead.csv -o week.html
      downclock whatif philly.csv --begin 2017-10-09 --length 7d --flat-price 0.2
    """
    from downclock.report.whatif import whatif_html, whatif_page
    from downclock.study.whatif import Knobs, whatif
    from downclock.workloads.traces.to_problem import converted

    with session.working("reading"):
        read, cluster, choices = read_told(source, trace)
        found = converted(read, cluster, choices)
    tried = {name: told.pop(name) for name in ("slack", "shares", "errors")}
    knobs = Knobs(**tried, prices=tuple(_prices(found.problem, **told)), seed=seed)
    with session.working("planning") as progress:
        asked = whatif(found, choices, spec=spec, knobs=knobs, progress=progress)
    session.write(whatif_html(asked, command=["downclock", *sys.argv[1:]]), output)
    session.show(whatif_page(asked))


def _prices(
    problem: Problem,
    price_files: tuple[str, ...],
    columns: dict[str, str] | None,
    flat_price: float | None,
    flat_carbon: float | None,
) -> list[tuple[str, Any]]:
    """Names and prices, the usual ones first; flat ones fill in what files do not say."""
    from dataclasses import replace

    from downclock.problem.files.read_prices import zone_prices
    from downclock.problem.price import Curve, Prices, ZonePrices

    asked = {"price": flat_price, "carbon": flat_carbon}
    flat = {name: Curve.constant(value) for name, value in asked.items() if value is not None}
    zones, found = problem.platform.zones, []
    for path in price_files:
        read = zone_prices(path, zones, epoch=problem.epoch or "first row", columns=columns)
        filled = [
            (zone, replace(told, **{c: v for c, v in flat.items() if getattr(told, c) is None}))
            for zone, told in read.zones
        ]
        found.append((Path(path).name, Prices(tuple(filled), read.currency)))
    if flat and not found:
        return [("flat", Prices(tuple((zone, ZonePrices(**flat)) for zone in zones)))]
    return found
