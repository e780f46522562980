"""A saving is stated beside the share of the processor-hours that it is a saving on."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.power.library import Library
from downclock.power.points import WIDE
from downclock.power.profiles import GpuProfiles
from downclock.problem.platform import Kind, Platform, ServerSpec
from downclock.problem.problem import Problem
from downclock.problem.tasks import Tasks
from downclock.report.page.words import cards, headline
from downclock.report.summary import summary_page
from downclock.report.tables import rendered
from downclock.study.summary import summarise


def two_jobs(second_deadline_s: float) -> Problem:
    """Jobs of 100 s and 300 s at the default clock; the second may be hopeless."""
    profile = GpuProfiles(*(np.array([v]) for v in (60.0, 20.0, 120.0, 90.0, 0.5, 10.0)))
    library = Library.of_one_kind(np.array(["job"], dtype=object), "gpu", profile)
    platform = Platform.build((Kind("gpu", WIDE, idle_w=20.0),), (ServerSpec("s", (("gpu", 2),)),))
    deadline_s = np.array([500.0, second_deadline_s])
    tasks = Tasks.of(np.zeros(2, dtype=int), scale=np.array([1.0, 3.0]), deadline_s=deadline_s)
    return Problem(tasks, library, platform, name="two")


def test_a_quarter_of_the_work_is_said_to_be_a_quarter() -> None:
    summary = summarise(two_jobs(10.0), "edl", baselines=("race",))
    assert summary.plan.covered == pytest.approx(0.25)
    assert ", on the 25 % of the processor-hours that they do." in headline(summary)
    assert any("25 % of the processor-hours" in note for _, _, note in cards(summary))
    said = rendered(summary_page(summary), "text")
    assert said.startswith("two: 1 of 2 tasks, 0.0278 of 0.111 processor-hours, on 1 server")
    assert "processor-hours done" in said


def test_where_everything_is_done_nothing_is_added() -> None:
    summary = summarise(two_jobs(2000.0), "edl", baselines=("race",))
    assert summary.plan.covered == 1.0
    assert "processor-hours" not in headline(summary)
    said = rendered(summary_page(summary), "text")
    assert said.startswith("two: 2 tasks (0.111 processor-hours) on 1 server (2 processors)")
    assert "processor-hours done" not in said
