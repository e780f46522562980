"""``downclock compile``: compile the hot loops now, so that no first plan waits for them."""

from __future__ import annotations

from dataclasses import replace

import click

from downclock.cli import options

USUAL = ("late", "known", "edl", "bin")
"""What `plan`, `simulate` and `compare` take where nothing is said, the slowest first."""


@options.command("compile")
@click.argument("policies", nargs=-1, metavar="[POLICY]...")
def command(session: options.Session, /, policies: tuple[str, ...]) -> None:
    """Compile what the policies need (default: late, known, edl, bin) and keep it on disk.

    Without this, large problems do it when they are first planned, and small ones are planned
    without, some seconds slower. Does nothing without numba. Takes all cores.

    Example:
      downclock compile
      downclock compile thrifty graph least-cost
    """
    from downclock.kernels.compiling import available
    from downclock.planners.catalog import policy
    from downclock.quantities import count, duration
    from downclock.report.tables import Page
    from downclock.study.executor import completed, pool

    specs = policies or USUAL
    for spec in specs:
        policy(spec)  # refuse what there is not, before anything is begun
    loops: list[str] = []
    took_s = 0.0
    with (
        session.working(f"compiling what {', '.join(specs)} need"),
        pool(most=len(specs) if available() else 1) as workers,
    ):
        for _, (names, spent_s) in completed(_compile, specs, workers):
            loops, took_s = loops + names, took_s + spent_s
    what = "all was compiled before" if available() else "numba is not installed"
    if loops:
        what = f"{count(len(loops), 'loop')} compiled in {duration(took_s)}"
    data = {"ready": list(specs), "compiled": loops, "seconds": took_s}
    session.show(Page(lines=(f"ready: {', '.join(specs)}; {what}",), data=data))


def _compile(spec: str) -> tuple[list[str], float]:
    """Plan, judge and simulate small problems of every form; return what was compiled, how long."""
    from downclock.engine.play import plan
    from downclock.kernels.compiling import METER, at_once
    from downclock.planners.bounds import Bounds
    from downclock.planners.catalog import policy
    from downclock.schedule.account.account import account
    from downclock.schedule.verify.verify import require_valid
    from downclock.simulate.simulate import simulate

    chosen, before, before_s = policy(spec), len(METER.names), METER.compiled_s
    with at_once():
        for problem in _samples():
            if chosen.objection(problem) is None:
                schedule = plan(problem, chosen)
                require_valid(problem, schedule)
                account(problem, schedule)
                Bounds(problem).below(schedule)
                simulate(problem, chosen, stepwise=True)
    return METER.names[before:], METER.compiled_s - before_s


def _samples() -> list[options.Problem]:
    """Small problems of every form: a batch, days, gangs, a graph on a chip, a graph in slots."""
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
        replace(day, tasks=replace(day.tasks, processors=1 + np.arange(len(day.tasks)) % 3)),
        replace(day, prices=Prices((("default", ZonePrices(price=curve)),))),
        chip_problem(graph, 3, slots),
        slotted_problem(graph, Machines(3), flat_prices(slots)),
    ]
