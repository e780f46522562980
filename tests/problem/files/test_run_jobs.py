"""Jobs as people know them: a run time, GPUs and a deadline become applications and work."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.power.archetypes import SPEED
from downclock.problem.files.files import load_problem
from downclock.problem.files.read_problem import read_problem
from downclock.problem.files.write_problem import write_problem
from downclock.problem.problem import Problem

THREE_KINDS = """
timezone = "Europe/Berlin"

[[kind]]
name = "a100"

[[kind]]
name = "v100"

[[kind]]
name = "old"
card = "gtx1080ti"

[[server]]
name = "node"
processors = [{ kind = "a100", count = 4 }, { kind = "v100", count = 4 }, { kind = "old" }]
"""


def load(folder: Path, jobs: str, cluster: str = THREE_KINDS, **options: object) -> Problem:
    (folder / "cluster.toml").write_text(cluster, "utf-8")
    (folder / "jobs.csv").write_text(jobs, "utf-8")
    return load_problem(folder / "cluster.toml", folder / "jobs.csv", **options)  # type: ignore[arg-type]


def refusal(folder: Path, jobs: str, cluster: str = THREE_KINDS, **options: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        load(folder, jobs, cluster, **options)
    return str(caught.value).removeprefix(f"{folder}/")


def at_default(problem: Problem, kind: int) -> tuple[np.ndarray, np.ndarray]:
    """Return time and power of every task at the default clocks of a kind."""
    n, clocks = len(problem.tasks), problem.platform.kinds[kind].clocks
    return problem.at(np.arange(n), np.full(n, kind), np.tile(clocks.default, (n, 1)))


def test_name_run_gpus_and_deadline_are_enough(tmp_path: Path) -> None:
    problem = load(tmp_path, "name,run,gpus,deadline\na,2h,1,+6h\nb,90m,4,+8h\nc,01:30:00,1,\n")
    assert problem.tasks.processors.tolist() == [1, 4, 1]
    assert problem.tasks.deadline_s.tolist() == [6 * 3600, 8 * 3600, np.inf]
    time_s, power_w = at_default(problem, 0)
    assert time_s == pytest.approx([7200, 5400, 5400])
    assert power_w == pytest.approx([289, 289, 289], abs=1)  # the mean of the A100's mixed ones
    assert problem.runnable().all()
    assert problem.assumptions == (
        'run times are those at default clocks on a100 (reference = "..." in the cluster names'
        " another)",
        "3 jobs without measurements: mixed, on a100 54 % of the time follows the core clock, 289 W"
        " (column application, or --archetype, says otherwise)",
        "speed beside a100: v100 0.4; old 0.19 (speed = ... in the kind says otherwise)",
        "idle processors draw nothing on a100, v100, old (idle_w in the kind says it)",
        "servers draw nothing but for their processors (host_w in the server says it)",
    )


def test_what_jobs_and_the_cluster_say_themselves_is_not_assumed(tmp_path: Path) -> None:
    cluster = THREE_KINDS.replace('name = "a100"', 'name = "a100"\nidle_w = 50.0', 1)
    cluster = cluster.replace("[[server]]", "[[server]]\nhost_w = 300.0", 1)
    jobs = (
        "name,run,application,power_w,kind\na,1h,compute-bound,300,\nb,2h,memory-bound,,v100;old\n"
    )
    told = load(tmp_path, jobs, cluster).assumptions
    assert told[0].startswith(
        "run times are those at default clocks on a100, or on the first of a job's own kinds"
    )
    assert "267 W or their own power_w" in told[1]
    assert told[3].startswith(
        "speed beside a100: v100 0.33 compute-bound, 0.47 memory-bound; old 0.15 compute-bound,"
    )
    assert told[4:] == ("idle processors draw nothing on v100, old (idle_w in the kind says it)",)


@pytest.mark.parametrize("name", ["compute-bound", "mixed", "memory-bound"])
def test_other_cards_take_longer_by_public_measurements(tmp_path: Path, name: str) -> None:
    problem = load(tmp_path, f"name,run,application\na,1h,{name}\n")
    times = [at_default(problem, kind)[0][0] for kind in range(3)]
    speed = [SPEED[card][name] for card in ("a100", "v100", "gtx1080ti")]
    assert times == pytest.approx([3600 * speed[0] / each for each in speed])


def test_the_archetype_of_all_jobs_may_be_said(tmp_path: Path) -> None:
    jobs = "name,run\na,1h\n"
    slow = THREE_KINDS.replace("timezone", 'archetype = "memory-bound"\ntimezone')
    half = [[0.5, 1.0, 0.5]]
    for cluster, options, share in (
        (THREE_KINDS, {}, 0.54),
        (slow, {}, 0.13),
        (slow, {"archetype": "compute-bound"}, 0.87),
    ):
        problem = load(tmp_path, jobs, cluster, **options)
        time_s, _ = problem.at(np.array([0]), np.array([0]), np.array(half))
        assert time_s[0] == pytest.approx(3600 * (1 + share), rel=0.01)  # at half the core clock


def test_a_jobs_power_is_that_where_its_run_time_is_of(tmp_path: Path) -> None:
    problem = load(tmp_path, "name,run,power_w,kind\na,1h,200,\nb,1h,200,v100\nc,1h,,\n")
    power_w = np.array([at_default(problem, kind)[1] for kind in range(3)])
    assert power_w[0, 0] == pytest.approx(200)
    assert power_w[1, 1] == pytest.approx(200)
    assert power_w[1, 0] / power_w[1, 2] == pytest.approx(200 / power_w[0, 2])


def test_kinds_limit_where_a_job_runs_and_the_first_is_what_its_run_time_is_of(
    tmp_path: Path,
) -> None:
    problem = load(tmp_path, "name,run,kind\na,1h,v100;a100\nb,1h,old\n")
    assert problem.runnable().tolist() == [[True, True, False], [False, False, True]]
    assert at_default(problem, 1)[0][0] == pytest.approx(3600)
    assert at_default(problem, 0)[0][0] == pytest.approx(3600 * 2.1 / 5.2)
    assert at_default(problem, 2)[0][1] == pytest.approx(3600)


def test_a_reference_and_speeds_of_the_cluster_win(tmp_path: Path) -> None:
    cluster = THREE_KINDS.replace("timezone", 'reference = "v100"\ntimezone')
    cluster = cluster.replace('name = "a100"', 'name = "a100"\nspeed = 3')
    problem = load(tmp_path, "name,run\na,1h\n", cluster)
    times = [at_default(problem, kind)[0][0] for kind in range(3)]
    assert times == pytest.approx([1200, 3600, 3600 * 2.1])
    assert problem.assumptions[0] == "run times are those at default clocks on v100"


def test_a_fitted_application_takes_a_run_time_instead_of_a_scale(tmp_path: Path) -> None:
    cluster = THREE_KINDS.replace(
        "timezone", 'applications = ["builtin:a100", "builtin:v100"]\ntimezone'
    )
    jobs = "name,application,run,scale,kind\na,LAMMPS,2h,,\nb,BlackScholes,1h,,v100\nc,NAMD,,5,\n"
    problem = load(tmp_path, jobs, cluster)
    assert problem.assumptions == ()
    time_s = [at_default(problem, kind)[0] for kind in range(2)]
    assert time_s[0][0] == pytest.approx(7200)
    assert time_s[1][1] == pytest.approx(3600)
    assert problem.tasks.scale[2] == 5
    assert problem.runnable()[:2].tolist() == [[True, False, False], [False, True, False]]
    elsewhere = load(tmp_path, "name,application,run\na,BlackScholes,2h\n", cluster)
    assert at_default(elsewhere, 1)[0][0] == pytest.approx(7200)
    assert elsewhere.assumptions == (
        "run times of BlackScholes are those on v100: it was not measured on another",
    )


def test_a_scale_whose_run_time_overflows_is_refused(tmp_path: Path) -> None:
    cluster = THREE_KINDS.replace("timezone", 'applications = "builtin:a100"\ntimezone')
    jobs = "name,application,run,scale\na,LAMMPS,1h,\nb,LAMMPS,,1.7e308\n"
    said = refusal(tmp_path, jobs, cluster)
    assert said.startswith("jobs.csv line 3")
    assert "scale='1.7e308' makes its run time too long to be told" in said


def test_deadlines_by_a_factor_of_the_run_time(tmp_path: Path) -> None:
    jobs = "name,run,arrival,deadline,deadline_factor\na,1h,+2h,,3\nb,1h,,+5h,\nc,2h,+1h,,\n"
    problem = load(tmp_path, jobs, deadline_factor=1.5)
    assert problem.tasks.deadline_s / 3600 == pytest.approx([5, 5, 4])
    assert np.isinf(load(tmp_path, jobs).tasks.deadline_s[2])


def test_clock_times_are_the_next_ones_in_the_sites_zone(tmp_path: Path) -> None:
    cluster = THREE_KINDS.replace("timezone", "epoch = 2024-10-26T12:00:00\ntimezone")
    jobs = "name,run,arrival,deadline\na,1h,18:00,06:30\nb,1h,11:00,\nc,1h,2024-10-26T20:00,+90m\n"
    problem = load(tmp_path, jobs, cluster)
    # The night of 27 October has an hour more in Berlin.
    assert problem.tasks.arrival_s / 3600 == pytest.approx([6, 24, 8])
    assert problem.tasks.deadline_s[[0, 2]] / 3600 == pytest.approx([19.5, 9.5])


def test_clock_times_without_a_date_count_from_midnight(tmp_path: Path) -> None:
    jobs = "name,run,arrival,deadline\na,1h,08:00,07:45\nb,1h,08:00,08:00\n"
    problem = load(tmp_path, jobs)
    assert problem.epoch is None
    assert problem.tasks.arrival_s.tolist() == [8 * 3600, 8 * 3600]
    assert problem.tasks.deadline_s.tolist() == [31.75 * 3600, 32 * 3600]


def test_edges_and_json(tmp_path: Path) -> None:
    (tmp_path / "cluster.toml").write_text(THREE_KINDS, "utf-8")
    rows = [{"name": "a", "run": 3600, "kind": ["v100", "a100"]}, {"run": "2h", "after": ["a"]}]
    (tmp_path / "jobs.json").write_text(json.dumps(rows))
    problem = load_problem(tmp_path / "cluster.toml", tmp_path / "jobs.json")
    assert (problem.edges.before.tolist(), problem.edges.after.tolist()) == ([0], [1])
    assert at_default(problem, 1)[0][0] == pytest.approx(3600)


def test_a_cpu_follows_the_cube_of_its_clock(tmp_path: Path) -> None:
    cluster = """
[[kind]]
name = "core"
card = "cpu"
power_w = 12
core = [0.5, 1.0]
[[server]]
name = "box"
processors = [{ kind = "core", count = 4 }]
"""
    jobs = "name,run,application,power_w\na,1h,compute-bound,\nb,1h,memory-bound,20\n"
    problem = load(tmp_path, jobs, cluster)
    half = np.tile([0.5, 1.0, 0.5], (2, 1))
    time_s, power_w = problem.at(np.arange(2), np.zeros(2, dtype=int), half)
    assert time_s == pytest.approx([7200, 3600 * (1 + 1 / 6)])
    assert power_w == pytest.approx([12 / 8, 20 / 8])
    assert refusal(tmp_path, "name,run\na,1h\n", cluster.replace("power_w = 12", "")) == (
        "jobs.csv line 2, task 'a': power_w is needed: nobody measured what kind 'core' draws"
        " (or in the kind)"
    )


def test_a_problem_file_keeps_what_was_assumed(tmp_path: Path) -> None:
    problem = load(tmp_path, "name,run,power_w\na,1h,200\nb,2h,\n")
    write_problem(problem, tmp_path / "problem.json")
    again = read_problem(tmp_path / "problem.json")
    assert again.assumptions == problem.assumptions
    for kind in range(3):
        np.testing.assert_array_equal(at_default(again, kind), at_default(problem, kind))


UNKNOWN_CARD = THREE_KINDS.replace('name = "a100"', 'name = "h100"\ncore = [0.5, 1.0]').replace(
    'kind = "a100"', 'kind = "h100"'
)

BAD = {
    "a duration": ("name,run\na,soon\n", "run='soon' must be a duration such as 2h, 90m, 01:30:00"),
    "minutes or hours": ("name,run\na,01:30\n", "run='01:30' must be a duration"),
    "negative": ("name,run\na,-5\n", "run='-5' must be a duration"),
    "both": ("name,run,scale\na,1h,2\n", "run='1h' cannot be given together with scale"),
    "neither": (
        "name,run,application\na,,\n",
        "run is empty: give how long it runs, or an application of the library",
    ),
    "archetype without run": (
        "name,run,application\na,,mixed\n",
        "application='mixed' is an archetype, not an application of the library: give run",
    ),
    "unknown application": (
        "name,run,application\na,1h,memory-bond\n",
        "application='memory-bond' is not in the library (the cluster names none: key"
        " 'applications'); did you mean 'memory-bound'?",
    ),
    "unknown kind": (
        "name,run,kind\na,1h,v10\n",
        "kind='v10' is not a kind of the cluster; did you mean 'v100'?",
    ),
    "no power": ("name,run,power_w\na,1h,0\n", "power_w=0.0 must be between 1e-06 and 1e+06"),
    "nan": ("name,run,power_w\na,1h,nan\n", "power_w='nan' must be a number"),
    "factor": (
        "name,run,deadline_factor\na,1h,-1\n",
        "deadline_factor=-1.0 must be positive",
    ),
    "factor beyond all numbers": (
        "name,run,deadline_factor\na,1h,1e308\n",
        "deadline_factor=1e+308 must be at most 1e+06",
    ),
    "far too long": ("name,run\na,1e300\n", "task 'a': run='1e300' must be at most 1e+12 s"),
    "far too short": ("name,run\na,1e-40\n", "task 'a': run='1e-40' makes a run time of 1e-40 s"),
    "no time of day": (
        "name,run,deadline\na,1h,25:00\n",
        "deadline='25:00' must be a clock time such as 18:30, an offset such as +6h, or an ISO 8601"
        " date and time",
    ),
    "before the arrival": ("name,run,arrival\na,1h,-1h\n", "arrival='-1h' must be a clock time"),
    "an arrival far away": (
        "name,run,arrival\na,1h,+300000000h\n",
        "task 'a': arrival='+300000000h' must be at most 1e+12 s",
    ),
    "a deadline far away": (
        "name,run,deadline\na,1h,+300000000h\n",
        "task 'a': deadline='+300000000h' means later than 1e+12 s",
    ),
    "a time far away": (
        "name,run,within_s\na,1h,1e300\n",
        "task 'a': within_s='1e300' means later than 1e+12 s",
    ),
    "a factor of a long time": (
        "name,run,deadline_factor\na,1e11,1e6\n",
        "task 'a': deadline_factor='1e6' means later than 1e+12 s",
    ),
    "factor and deadline": (
        "name,run,deadline,deadline_factor\na,1h,+2h,3\n",
        "deadline_factor=3.0 cannot be given together with a deadline",
    ),
}


@pytest.mark.parametrize(("jobs", "message"), BAD.values(), ids=BAD)
def test_a_bad_job_is_refused_in_one_line(tmp_path: Path, jobs: str, message: str) -> None:
    said = refusal(tmp_path, jobs)
    assert said.startswith("jobs.csv line 2")
    assert message in said


@pytest.mark.parametrize("rows", ["", "a,1\n"])
def test_a_file_that_says_nothing_of_work_is_told_of_run(tmp_path: Path, rows: str) -> None:
    assert refusal(tmp_path, f"name,gpus\n{rows}") == (
        "jobs.csv: no column 'run' (how long a job takes) or 'application'; there are: gpus, name"
    )


def test_a_complaint_about_a_factor_for_all_names_it(tmp_path: Path) -> None:
    said = refusal(tmp_path, "name,run,deadline\na,1e11,\n", deadline_factor=1e6)
    assert "line 2, task 'a': deadline_factor means later than 1e+12 s" in said


@pytest.mark.parametrize("names", [("", "t0"), ("t1", "")])
def test_a_name_that_a_job_without_one_has_is_taken(tmp_path: Path, names: tuple[str, str]) -> None:
    said = refusal(tmp_path, f"name,run\n{names[0]},1h\n{names[1]},1h\n")
    name = max(names)
    assert said.startswith(f"jobs.csv line 3, task '{name}': name='{name}' is already the name of")
    assert said.endswith("line 2 (tasks without a name are called t0, t1, ... by row)")


def test_a_card_nobody_measured_is_not_invented(tmp_path: Path) -> None:
    said = refusal(tmp_path, "name,run\na,1h\n", UNKNOWN_CARD)
    assert "cannot be planned on kind 'h100': there are no measurements of 'h100'" in said
    assert "(downclock fit)" in said
    assert "card = one of a100, gtx1080ti, rtx2070s, v100, cpu" in said
    like = UNKNOWN_CARD.replace('name = "h100"', 'name = "h100"\ncard = "a100"')
    assert load(tmp_path, "name,run\na,1h\n", like).runnable()[0, 0]
    elsewhere = load(tmp_path, "name,run,kind\na,1h,v100\n", UNKNOWN_CARD)
    assert elsewhere.runnable().tolist() == [[False, True, False]]


def test_a_run_time_without_a_cluster_is_refused(tmp_path: Path) -> None:
    from downclock.power.library import Library
    from downclock.problem.files.read_tasks import read_tasks

    (tmp_path / "jobs.csv").write_text("name,run\na,1h\n")
    with pytest.raises(InvalidInput, match="column 'run': needs the cluster that runs it"):
        read_tasks(tmp_path / "jobs.csv", Library.empty())


def test_a_fitted_application_has_its_own_power(tmp_path: Path) -> None:
    cluster = THREE_KINDS.replace("timezone", 'applications = "builtin:a100"\ntimezone')
    said = refusal(tmp_path, "name,application,run,power_w\na,LAMMPS,1h,100\n", cluster)
    assert "power_w=100.0 cannot be given for application 'LAMMPS', whose power is known" in said
    said = refusal(tmp_path, "name,application,run,kind\na,LAMMPS,1h,v100\n", cluster)
    assert "application='LAMMPS' has no profile for kind v100" in said


def test_the_epoch_of_a_cluster_dates_clock_times(tmp_path: Path) -> None:
    problem = load(tmp_path, "name,run,arrival\na,1h,09:00\n", epoch="2024-06-10T08:00+02:00")
    assert problem.epoch == datetime.fromisoformat("2024-06-10T08:00+02:00")
    assert problem.tasks.arrival_s[0] == 3600
