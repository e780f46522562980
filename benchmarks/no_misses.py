"""No deadline is missed: every policy of mei2021 on a thousand generated sets and more.

Run ``python -m benchmarks.no_misses [SETS]``. Each set is planned by every policy, verified, and
its ends compared with its deadlines; all utilisation ranges, l and theta take turns.
"""

from __future__ import annotations

import sys
from itertools import cycle

import numpy as np

from downclock.engine.play import plan
from downclock.planners.catalog import policy
from downclock.schedule.schedule import REJECTED
from downclock.schedule.verify.verify import verify
from downclock.workloads import mei

SETS = 1000
THETAS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0)
RIVALS = ("edf-bf", "edf-wf", "lpt-ff", "bin:rho=120", "bin:rho=120,start=load", "race:rho=120")


def specs(theta: float) -> tuple[str, ...]:
    """Policies to try on a set."""
    edl = (f"edl:theta={theta:g},rho=120", f"edl:theta={theta:g},rho=120,start=stream")
    return (*edl, f"edl:theta={theta:g},group=off,grid=0.05", "edl:dvfs=off", *RIVALS)


def main() -> int:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 and sys.argv[1].isdigit() else SETS
    turns = zip(
        range(wanted), cycle(mei.TASK_UTILISATION), cycle((1, 2, 4, 8, 16)), cycle(THETAS),
        strict=False,
    )  # fmt: skip
    plans = tasks = late = invalid = rejected = 0
    for seed, ranges, per_server, theta in turns:
        cluster = mei.Cluster(pairs=512, per_server=per_server)
        generate = mei.offline if seed % 2 else mei.online
        problem = generate(
            seed, utilisation=0.1, task_utilisation=ranges, cluster=cluster,
            **({} if seed % 2 else {"initial_utilisation": 0.05}),
        )  # fmt: skip
        for spec in specs(theta):
            schedule = plan(problem, policy(spec))
            ends = schedule.segments.end_s
            late += int((ends > problem.tasks.deadline_s[schedule.segments.task]).sum())
            invalid += not verify(problem, schedule).ok
            rejected += int(np.sum(schedule.outcomes.status == REJECTED))
            plans, tasks = plans + 1, tasks + len(problem.tasks)
    print(
        f"{wanted:,} sets, {plans:,} plans, {tasks:,} tasks: {late} late, {invalid} invalid plans,"
        f" {rejected} rejected"
    )
    return 0 if late == invalid == rejected == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
