"""Speed beside an earlier commit, in one run: ``python -m benchmarks.former [COMMIT] [million]``.

The commit (by default the last one before all policies shared one engine) is checked out into a
temporary worktree. Both plan the same problems in processes of their own, in turns; what counts is
the least CPU time of several plans, compiling not counted. A ratio of 1 is as fast as then.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORMER = "1c7cc6b"
TURNS = 2
LEAST = {"day": 0.8, "late": 1.0, "million": 1.0}
"""Ratios asked for: list policies online, `late` on a day, and on a million tasks."""

CHILD = """
import dataclasses, json, sys, time
import downclock as dc
from downclock.workloads import mei

def least_s(problem, spec, repeat):
    chosen, spent = dc.policy(spec), []
    for _ in range(repeat):
        fresh = dataclasses.replace(problem)  # nothing computed before is known of it
        begun = time.process_time()
        dc.plan(fresh, chosen)
        spent.append(time.process_time() - begun)
    return min(spent)

day = mei.online(0)
cases = [("day", spec, day, 15) for spec in (
    "edl:theta=0.9,rho=120,start=stream", "edl:theta=0.9,rho=120", "bin:rho=120", "race")]
cases.append(("late", "late", mei.online(800), 3))
if "million" in sys.argv:
    cluster = mei.Cluster(pairs=102_400)
    many = mei.online(600, utilisation=80.0, initial_utilisation=20.0, days=6, cluster=cluster)
    cases.append(("million", "late", many, 1))
for name, spec, problem, repeat in cases:
    if repeat > 1:
        dc.plan(problem, dc.policy(spec))
    print(json.dumps([name, spec, len(problem.tasks), least_s(problem, spec, repeat)]), flush=True)
"""


def measured(tree: Path, *what: str) -> dict[tuple[str, str], tuple[int, float]]:
    """Tasks and seconds of every case, planned by the package of a tree."""
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, *what],
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    lines = (json.loads(line) for line in ran.stdout.splitlines())
    return {(name, spec): (tasks, seconds) for name, spec, tasks, seconds in lines}


def compare(former: Path, *what: str) -> bool:
    """Print both and their ratio; tell whether it is as asked for."""
    print(f"{'case':<8} {'policy':<36} {'tasks':>9} {'then s':>9} {'now s':>9} {'ratio':>6}")
    then: dict[tuple[str, str], float] = {}
    now: dict[tuple[str, str], float] = {}
    tasks = {}
    for _ in range(TURNS):
        for tree, found in ((former, then), (ROOT, now)):
            for case, (count, seconds) in measured(tree, *what).items():
                found[case], tasks[case] = min(seconds, found.get(case, seconds)), count
    good = True
    for case, seconds in now.items():
        ratio = then[case] / seconds
        good &= ratio >= LEAST[case[0]]
        print(
            f"{case[0]:<8} {case[1]:<36} {tasks[case]:>9,} {then[case]:>9.4f} {seconds:>9.4f}"
            f" {ratio:>6.2f}"
        )
    asked = ", ".join(f"{name} {least}" for name, least in LEAST.items())
    print(f"at least {asked}: {'met' if good else 'MISSED'}")
    return good


def main() -> int:
    """Check the commit out, compare, and take the worktree away."""
    what = [word for word in sys.argv[1:] if word == "million"]
    commit = next((word for word in sys.argv[1:] if word != "million"), FORMER)
    with tempfile.TemporaryDirectory(prefix="downclock-former-") as folder:
        tree, git = Path(folder) / "tree", ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "--detach", "--quiet", str(tree), commit], check=True)
        try:
            return 0 if compare(tree, *what) else 1
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


if __name__ == "__main__":
    sys.exit(main())
