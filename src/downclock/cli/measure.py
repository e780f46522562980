"""``downclock measure``: run a command at many settings."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from downclock.cli import options

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from downclock.adapters.devices.device import Device, Setting

LIST = "LIST|LOW-HIGH"
Numbers: TypeAlias = "tuple[bool, list[float]]"


def _read_numbers(text: str) -> Numbers:
    """Read ``600,900,1200``, or the ends of a range, ``600-1200``."""
    low, dash, high = text.partition("-")
    numbers = [float(word) for word in ((low, high) if dash else text.split(","))]
    if not all(0.0 < number < 1e6 for number in numbers) or (dash and numbers[0] > numbers[1]):
        raise ValueError
    return bool(dash), numbers


def _numbers(name: str, help: str) -> Callable[[options.F], options.F]:
    rule = "is not a list such as 600,900 or a range such as 600-900"
    callback = options.reading(_read_numbers, rule)
    return click.option(name, callback=callback, metavar=LIST, help=help)


def _count(name: str, least: int, default: int, help: str) -> Callable[[options.F], options.F]:
    return options.whole(name, least, 1000, default=default, show_default=True, help=help)


@options.command("measure")
@click.argument("words", nargs=-1, required=True, metavar="-- COMMAND...")
@click.option("--device", "labels", metavar="NAME,...", help="Such as gpu0. [default: the first]")
@_numbers("--core-mhz", "Core clocks. [default: from 40 % of the highest up]")
@_numbers("--memory-mhz", "Memory clocks. [default: left alone]")
@_numbers("--power-limit-w", "Power limits instead of clocks.")
@_count("--points", 2, 8, "Settings in a range.")
@_count("--repeats", 1, 3, "Runs at each setting.")
@_count("--warm-up", 0, 1, "Runs before, of which nothing is kept.")
@click.option("--application", metavar="NAME", help="Name of the rows. [default: the program's]")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order of settings.")
@click.option(
    "--state",
    envvar="DOWNCLOCK_STATE",
    metavar="PATH",
    help="Where it is kept what is set. Or DOWNCLOCK_STATE.",
)
@options.output(
    "The CSV file of runs; one that is there goes on.", required=True, suffixes=(".csv",)
)
@options.form
def command(
    session: options.Session,
    words: tuple[str, ...],
    labels: str | None,
    application: str | None,
    state: str | None,
    output: str,
    repeats: int,
    warm_up: int,
    **asked: Any,
) -> None:
    """Run a command at many clocks or power limits, and measure its time and energy.

    Writes the CSV file that `downclock fit` reads, a row a run; a sweep that was killed goes on
    where it was. The command's output goes nowhere. Devices are reset in the end, also when this
    is interrupted or killed. Setting clocks needs root, or zeusd running.

    Examples:
      downclock measure -o runs.csv -- python train.py --steps 500
      downclock measure -o runs.csv --core-mhz 600-1410 --memory-mhz 810,1215 -- ./bench
      downclock measure -o limits.csv --power-limit-w 150,200,250,300 -- ./bench
    """
    from downclock.adapters.devices.machine import chosen
    from downclock.adapters.devices.sweep import Sweep, run_sweep
    from downclock.report.devices import sweep_page

    devices = chosen(labels.split(",") if labels else [])
    name = application or os.path.basename(words[0])
    seed = asked.pop("seed")
    sweep = Sweep(name, words, _settings(devices, **asked), repeats, warm_up, seed)
    with session.working(f"measuring {name}") as update:

        def tell(text: str, done: int, of: int) -> None:
            if os.path.exists(output) and output not in session.saved:
                session.saved.append(output)  # an interrupt says that runs before it are kept
            if update is not None:
                update(text, done, of)

        rows = run_sweep(sweep, devices, state or _folder(), output, tell)
    session.wrote(output)
    session.show(sweep_page(rows, output))


def _settings(
    devices: Sequence[Device],
    core_mhz: Numbers | None,
    memory_mhz: Numbers | None,
    power_limit_w: Numbers | None,
    points: int,
) -> tuple[Setting, ...]:
    """Return what to run at; a range becomes so many points."""
    from downclock.adapters.devices.sweep import SLOWEST, settings_of, spread

    if power_limit_w is not None and (core_mhz is not None or memory_mhz is not None):
        raise click.UsageError("give clocks or power limits, not both")
    if power_limit_w is None and core_mhz is None:
        highest = devices[0].clock_pairs()[0][1][0]
        core_mhz = True, [SLOWEST * highest, highest]
    core, memory, limits = (
        [] if given is None else spread(given[1][0], given[1][1], points) if given[0] else given[1]
        for given in (core_mhz, memory_mhz, power_limit_w)
    )
    return settings_of(devices, [round(c) for c in core], [round(m) for m in memory], limits)


def _folder() -> str:
    """Root's is the agent's, so that `agent recover` finds it."""
    if os.geteuid() == 0:
        return "/var/lib/downclock"
    home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
    return os.path.join(home, "downclock")
