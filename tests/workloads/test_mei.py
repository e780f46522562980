"""Task sets of mei2021 and mei2017."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.library_file import built_in_library
from downclock.power.profiles import GpuProfiles
from downclock.workloads import mei


def default_time_s(problem) -> np.ndarray:  # type: ignore[no-untyped-def]
    n = len(problem.tasks)
    point = np.tile(problem.platform.kinds[0].clocks.default, (n, 1))
    return problem.at(np.arange(n), np.zeros(n, np.int64), point)[0]


def test_counts_are_those_behind_the_published_numbers() -> None:
    """2048 U tasks offline, 819 + 3276 = 4095 online (specs: n = 2048 U)."""
    assert len(mei.offline(0).tasks) == 3276
    online = mei.online(0)
    assert len(online.tasks) == 4095
    assert int((online.tasks.arrival_s == 0.0).sum()) == 819
    assert len(mei.offline(0, utilisation=0.2).tasks) == 409


def test_arrivals_fall_on_the_minutes_of_a_day() -> None:
    arrival = mei.online(3).tasks.arrival_s
    later = arrival[arrival > 0.0]
    assert np.all(later % 60.0 == 0.0)
    assert later.min() >= 60.0
    assert later.max() <= 1440 * 60.0
    per_minute = np.bincount((later / 60.0).astype(int), minlength=1441)[1:]
    assert per_minute.sum() == 3276
    assert per_minute.var() == pytest.approx(per_minute.mean(), rel=0.15)


@pytest.mark.parametrize(("name", "low", "high"), [("text", 0, 1), ("offline", 0.25, 0.75)])
def test_deadlines_follow_the_task_utilisation(name: str, low: float, high: float) -> None:
    problem = mei.offline(1, task_utilisation=name)
    used = default_time_s(problem) / problem.tasks.deadline_s
    assert used.min() > low
    assert used.max() <= high * (1.0 + 1e-12)
    assert used.mean() == pytest.approx(0.5, abs=0.02)


def test_parameters_lie_in_the_printed_ranges_and_do_not_depend_on_each_other() -> None:
    profiles = mei.printed_profiles(np.random.default_rng(0), 20_000)
    p_star = profiles.p0_w + profiles.gamma_w + profiles.c_w
    for values, name in (
        (p_star, "p_star"),
        (profiles.gamma_w / p_star, "gamma"),
        (profiles.p0_w / p_star, "p0"),
        (profiles.delta, "delta"),
        (profiles.d_s, "d"),
        (profiles.t0_s, "t0"),
    ):
        low, high = mei.PRINTED[name]
        assert low <= values.min() <= values.max() <= high
        assert values.mean() == pytest.approx((low + high) / 2.0, rel=0.02)
    assert abs(np.corrcoef(profiles.d_s, profiles.delta)[0, 1]) < 0.03


def test_mean_energy_is_the_published_one_in_watt_minutes() -> None:
    """mei2021 section 5.4.1: 120.22 MJ over 4095 tasks is 29.4 kW min a task, not joules."""
    problem = mei.offline(0, utilisation=16.0)
    time = default_time_s(problem)
    _, power = problem.at(
        np.arange(time.size),
        np.zeros(time.size, np.int64),
        np.tile(problem.platform.kinds[0].clocks.default, (time.size, 1)),
    )
    mean_w_min = float((time * power).mean()) / 60.0
    assert mean_w_min * 4095 / 1e6 == pytest.approx(120.22, rel=0.015)


def test_the_same_seed_gives_the_same_set_whatever_the_cluster() -> None:
    one, two = mei.online(9), mei.online(9, cluster=mei.Cluster(per_server=1))
    assert np.array_equal(one.tasks.deadline_s, two.tasks.deadline_s)
    assert not np.array_equal(one.tasks.deadline_s, mei.online(10).tasks.deadline_s)


def test_turn_on_is_charged_per_pair_or_per_server() -> None:
    per_pair = mei.Cluster(per_server=16).platform()
    per_server = mei.Cluster(per_server=16, turn_on_per="server").platform()
    assert per_pair.wake_j[0] == 16 * 5400.0
    assert per_server.wake_j[0] == 5400.0
    assert mei.MEI2017.platform().idle_w[0] == 85.0


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInput, match="turn_on_per='rack' must be pair or server"):
        mei.Cluster(turn_on_per="rack").platform()
    with pytest.raises(InvalidInput, match="per_server=32 must be between 1 and pairs=16"):
        mei.Cluster(pairs=16, per_server=32).platform()
    with pytest.raises(InvalidInput, match="task_utilisation='wild' must be one of text"):
        mei.offline(0, task_utilisation="wild")
    with pytest.raises(InvalidInput, match=r"utilisation=-1\.0 must not be negative"):
        mei.offline(0, utilisation=-1.0)


def test_a_fitted_library_gives_tasks_of_the_papers_length() -> None:
    library = built_in_library("gtx1080ti")
    problem = mei.offline(0, utilisation=0.4, library=library)
    assert problem.platform.kinds[0].name == "gtx1080ti"
    assert default_time_s(problem).mean() / 60.0 == pytest.approx(5.16 * 30.0, rel=0.15)


def test_shrinking_divides_the_power_that_clocks_cannot_save() -> None:
    library = built_in_library("gtx1080ti")
    before, after = library.groups[0], mei.shrunk(library).groups[0]
    assert isinstance(before, GpuProfiles)
    assert isinstance(after, GpuProfiles)
    assert after.p0_w == pytest.approx(before.p0_w / 13.0)
    assert after.gamma_w == pytest.approx(before.gamma_w / 13.0)
    assert np.array_equal(after.c_w, before.c_w)
