"""``downclock whatif``: what a trace would have cost otherwise."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from downclock.cli import options
from downclock.cli.trace_options import read_told, trace_options

EPILOG = """\b
Examples:
  downclock whatif week.txt --cluster cluster.toml --prices day-ahead.csv -o week.html
  downclock whatif philly.csv --begin 2017-10-09 --length 7d --flat-price 0.2
"""


@options.command("whatif", EPILOG)
@click.argument("source", metavar="TRACE", type=click.Path())
@trace_options
@click.option(
    "--policy", "spec", default="late", show_default=True, metavar="SPEC",
    help="Who plans; an online policy of `downclock policies`.",
)  # fmt: skip
@click.option(
    "--prices", "--price", "price_files", type=click.Path(), multiple=True, metavar="FILE",
    help="Prices and CO2 intensity (CSV), laid from the first job on and repeated; the first file"
    " is the usual case, more are cases.",
)  # fmt: skip
@options.columns("Names of the price files' columns where they differ from ours.")
@options.number("--flat-price", 0.0, 1e6, metavar="N", help="Money per kWh at any time.")
@options.number("--flat-carbon", 0.0, 1e6, metavar="N", help="Grams of CO2 per kWh at any time.")
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
    **prices: Any,
) -> None:
    """Say what a trace would have cost otherwise, on one page for a meeting.

    Plans the trace online and compares with the trace as it ran, with full speed (race) and with
    the best single clock (static-cap): energy, and money and CO2 where prices are known. Then one
    thing at a time is changed: how much time jobs have, whether servers sleep, how many jobs may
    be slowed down, how well run times are known, prices. Every plan is verified.

    Coverage in GPU-hours stands first, every assumption last.
    """
    from downclock.report.whatif import whatif_page, write_whatif
    from downclock.study.whatif import Knobs, whatif
    from downclock.workloads.traces.to_problem import converted

    with session.working("reading"):
        read, cluster, choices = read_told(source, trace)
    zones = ("default",) if cluster is None else cluster.platform.zones
    knobs = Knobs(prices=tuple(_prices(zones, **prices)), seed=seed)
    with session.progress("planning") as progress:
        asked = whatif(
            read, lambda each: converted(each, cluster, choices), choices,
            spec=spec, knobs=knobs, progress=progress,
        )  # fmt: skip
    write_whatif(asked, output, command=["downclock", *sys.argv[1:]])
    session.wrote(output)
    session.show(whatif_page(asked))


def _prices(
    zones: tuple[str, ...],
    price_files: tuple[str, ...],
    columns: dict[str, str] | None,
    flat_price: float | None,
    flat_carbon: float | None,
) -> list[tuple[str, Any]]:
    """Names and prices, the usual ones first; flat ones fill in what files do not say."""
    from dataclasses import replace

    from downclock.problem.files.read_prices import zone_prices
    from downclock.problem.price import Curve, Prices, ZonePrices

    flat = {
        curve: Curve.constant(value)
        for curve, value in (("price", flat_price), ("carbon", flat_carbon))
        if value is not None
    }
    found = []
    for path in price_files:
        read = zone_prices(path, zones, epoch="first row", columns=columns)
        filled = [
            (zone, replace(told, **{c: v for c, v in flat.items() if getattr(told, c) is None}))
            for zone, told in read.zones
        ]
        found.append((Path(path).name, Prices(tuple(filled), read.currency)))
    if flat and not found:
        return [("flat", Prices(tuple((zone, ZonePrices(**flat)) for zone in zones)))]
    return found
