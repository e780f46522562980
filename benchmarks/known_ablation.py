"""What each part of the search over whole plans is worth, and a picture of one plan.

    python -m benchmarks.known_ablation [--files 18] [--effort 1] [--picture]

The problems are those of `benchmarks.known`: three kinds with host, sleep and wake power, 3 to 80
jobs. The picture, docs/images/all-known.svg, is the 20 jobs of the first of them that has 20.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast
from unittest import mock

import numpy as np
from tests.planners.cluster.known.clusters import own_cluster

import downclock as dc
from benchmarks.known import COUNTS, FIRST, RIVALS
from downclock.engine.policy import Policy
from downclock.planners.cluster.known.solve import Searching
from downclock.planners.known import KnownPolicy
from downclock.planners.portfolio import best_of, planned
from downclock.problem.problem import Problem
from downclock.schedule.schedule import ON, Schedule
from downclock.schedule.states import server_states

IMAGE = Path(__file__).parent.parent / "docs" / "images" / "all-known.svg"
SIZES = COUNTS[:9]
PICTURED = 20
SEARCH = {"effort": 1.0}
COLOURS = {"a100": "#1b6ca8", "v100": "#3a9a8f", "cpu": "#c8553d"}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--files", type=int, default=18)
    parser.add_argument("--effort", type=float, default=1.0)
    parser.add_argument("--picture", action="store_true")
    asked = parser.parse_args()
    SEARCH["effort"] = asked.effort
    if asked.picture:
        draw(own_cluster(FIRST + SIZES.index(PICTURED), PICTURED))
        return
    table = {name: [ranked(way, i) for i in range(asked.files)] for name, way in WAYS.items()}
    whole = np.array(table["all of it"])
    for name, rows in table.items():
        done, joules = np.array(rows).T
        alike = done == whole[:, 0]
        above = 100.0 * np.mean(joules[alike] / whole[alike, 1] - 1.0)
        print(f"{name}: {above:.2f} % above, fewer jobs on {np.sum(~alike)} of {alike.size}")


def ranked(way: Callable[[Problem], Schedule], i: int) -> tuple[int, float]:
    """Jobs done and joules."""
    problem = own_cluster(FIRST + i, SIZES[i % len(SIZES)])
    schedule = way(problem)
    done = int(np.sum(schedule.outcomes.status == 0))
    return done, dc.account(problem, schedule).total_j


def best_policy(problem: Problem) -> Policy:
    found = best_of(problem, [dc.policy(name) for name in RIVALS])
    assert found is not None
    return found


def from_policies(problem: Problem) -> Schedule:
    search = cast(KnownPolicy, dc.policy("known"))
    whole = replace(search, begin=(best_policy(problem),), effort=SEARCH["effort"])
    return planned(problem, cast(Policy, whole))[0]


def without_times(problem: Problem) -> Schedule:
    with mock.patch.object(Searching, "_retime"):
        return from_policies(problem)


WAYS: dict[str, Callable[[Problem], Schedule]] = {
    "all of it": from_policies,
    "without choosing all times together": without_times,
    "without the plans of policies": lambda problem: dc.plan(
        problem, f"known:effort={SEARCH['effort']:g}"
    ),
    "job by job, no search": lambda problem: dc.plan(problem, "known:effort=0"),
    "the best policy alone": lambda problem: dc.plan(problem, best_policy(problem)),
    "race": lambda problem: dc.plan(problem, "race"),
}


def draw(problem: Problem) -> None:
    """The plans of `race`, of the best policy and of the search, below each other."""
    import matplotlib as mpl

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "downclock"  # the same picture, the same file
    import matplotlib.pyplot as plt

    best = best_policy(problem)
    plans = [dc.plan(problem, "race"), dc.plan(problem, best), from_policies(problem)]
    last_h = max(each.makespan_s for each in plans) / 3600.0
    figure, axes = plt.subplots(3, 1, figsize=(8, 7.2), sharex=True, layout="constrained")
    for ax, schedule in zip(axes, plans, strict=True):
        panel(ax, problem, schedule)
        total_j = dc.account(problem, schedule).total_j
        ax.set_title(f"{schedule.policy}: {total_j / 1e6:.1f} MJ", loc="left", fontsize=10)
        ax.set_xlim(0.0, last_h)
    axes[-1].set_xlabel("hours")
    figure.savefig(IMAGE, metadata={"Date": None})


def panel(ax: Any, problem: Problem, schedule: Schedule) -> None:
    """Bars of processors over what is awake."""
    platform, segments = problem.platform, schedule.segments
    window_s = np.full(platform.server_count, schedule.makespan_s)
    on = server_states(platform, schedule.spans, window_s)[0].only(ON)
    first = platform.first_processor
    for server, start_s, end_s in zip(on.server, on.start_s, on.end_s, strict=True):
        rows = (first[server], first[server + 1] - first[server])
        ax.broken_barh([(start_s / 3600, (end_s - start_s) / 3600)], rows, color="#e9e4d8")
    for i in range(len(segments)):
        colour = COLOURS[platform.kinds[platform.kind[segments.processor[i]]].name]
        at_h = segments.start_s[i] / 3600, (segments.end_s[i] - segments.start_s[i]) / 3600
        ax.broken_barh([at_h], (segments.processor[i] + 0.06, 0.88), color=colour, ec="white")
    ax.set_ylim(platform.processor_count, 0)
    ax.set_yticks((first[:-1] + first[1:]) / 2, platform.server_name, fontsize=7)
    ax.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
