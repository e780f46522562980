"""How busy each kind is: hours that ran and hours awake over all hours until the makespan."""

from __future__ import annotations

import pytest

from downclock.report.page import report_html
from downclock.report.use import use_of_kinds
from downclock.study.summary import judge
from tests.report.test_explain import gang_day, one_after_the_other, two_tasks


def test_use_counts_processors_until_the_makespan() -> None:
    problem = two_tasks()
    (cpu,) = use_of_kinds(problem, one_after_the_other(problem))
    # 300 s of one core on 2 servers of 2 until 300 s; one server is awake.
    assert (cpu.kind, cpu.processors) == ("cpu", 4)
    assert cpu.busy == pytest.approx(300.0 / 1200.0)
    assert cpu.awake == pytest.approx(0.5)


def test_a_gang_counts_on_each_of_its_processors() -> None:
    (cpu,) = use_of_kinds(*gang_day(160.0, 1.0))
    assert cpu.busy == pytest.approx((60.0 + 2 * 100.0) / (4 * 160.0))


def test_the_page_shows_it() -> None:
    problem, schedule = gang_day(160.0, 1.0)
    page = report_html(judge(problem, schedule, baselines=()))
    assert "How busy each kind is" in page
    assert "40.6 % busy, 50 % awake" in page
