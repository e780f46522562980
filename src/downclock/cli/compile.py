"""``downclock compile``: compile the hot loops now, so that no first plan waits for them."""

from __future__ import annotations

from dataclasses import replace

import click

from downclock.cli import options

EPILOG = """\b
Example:
  downclock compile
  downclock compile thrifty graph least-cost
"""


@options.command("compile", EPILOG)
@click.argument("policies", nargs=-1, metavar="[POLICY]...")
def command(session: options.Session, /, policies: tuple[str, ...]) -> None:
    """Compile what the policies need (default: late, edl, bin, known) and keep it on disk.

    Without this, large problems do it when they are first planned, and small ones are planned
    without, some seconds slower. Does nothing without numba.
    """
    from downclock.engine.play import plan
    from downclock.kernels.compiling import METER, at_once, available
    from downclock.planners.bounds import Bounds
    from downclock.planners.catalog import policy
    from downclock.quantities import count, duration
    from downclock.report.tables import Page
    from downclock.schedule.account.account import account
    from downclock.schedule.verify.verify import require_valid
    from downclock.simulate.simulate import simulate

    samples, specs = _samples(), policies or ("late", "edl", "bin", "known")
    before, before_s = len(METER.names), METER.compiled_s
    for spec in specs:
        with at_once(), session.working(f"compiling what {spec} needs"):
            chosen = policy(spec)
            for problem in samples:
                if chosen.objection(problem) is None:
                    schedule = plan(problem, chosen)
                    require_valid(problem, schedule)
                    account(problem, schedule)
                    Bounds(problem).below(schedule)
                    simulate(problem, chosen, stepwise=True)
    new, took_s = METER.names[before:], METER.compiled_s - before_s
    what = "all was compiled before" if available() else "numba is not installed"
    if new:
        what = f"{count(len(new), 'loop')} compiled in {duration(took_s)}"
    data = {"ready": list(specs), "compiled": new, "seconds": took_s}
    session.show(Page(lines=(f"ready: {', '.join(specs)}; {what}",), data=data), "table")


def _samples() -> list[options.Problem]:
    """Small problems of every form: a batch, two days, a graph on a chip, a graph in slots."""
    import numpy as np

    from downclock.problem.price import Curve, Prices, ZonePrices
    from downclock.workloads import mei
    from downclock.workloads.chip import chip_problem
    from downclock.workloads.gerhards import Machines, flat_prices, random_graph, slotted_problem

    cluster, graph = mei.Cluster(pairs=8, per_server=4), random_graph(8)
    slots = int(graph.work.sum())
    day = mei.online(1, utilisation=0.01, initial_utilisation=0.002, cluster=cluster)
    hours = np.arange(48.0)
    curve = Curve(3600.0 * hours, np.where(hours % 12 < 6, 0.5, 0.01), np.inf)  # worth waiting for
    return [
        mei.offline(1, utilisation=0.01, cluster=cluster),
        day,
        replace(day, prices=Prices((("default", ZonePrices(price=curve)),))),
        chip_problem(graph, 3, slots),
        slotted_problem(graph, Machines(3), flat_prices(slots)),
    ]
