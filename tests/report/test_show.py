"""Pages of results say of every schedule whether it is valid."""

from __future__ import annotations

from dataclasses import replace

import downclock as dc
from downclock.report.show import show
from downclock.workloads import mei


def test_a_schedule_that_breaks_rules_is_not_called_valid() -> None:
    problem = mei.online(1, utilisation=0.02, initial_utilisation=0.01)
    made = dc.plan(problem, "race")
    late = replace(made, segments=replace(made.segments, end_s=made.segments.end_s + 1e5))
    for schedule, said in ((made, "is valid"), (late, "is not valid")):
        page = show(dc.judge(problem, schedule, baselines=[]))
        assert page.lines[0].endswith(f"the plan {said}")
        assert "planned by race;" in page.lines[0]  # nobody knows how long that took
        assert page.data["valid"] == (schedule is made)
        assert any("breaks rules" in note for note in page.notes) == (schedule is late)
        beside = show(dc.compare(problem, ["edl"], beside=[schedule]))
        assert beside.lines[0].endswith("; every plan shown is valid") == (schedule is made)
        assert any("breaks rules" in note for note in beside.notes) == (schedule is late)
