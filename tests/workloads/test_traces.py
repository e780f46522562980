"""Traces: every format becomes jobs, what is left out is counted, and it runs again as it ran."""

from __future__ import annotations

import csv
import tomllib
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import downclock as dc
from downclock.cli import trace_options
from downclock.errors import InvalidInput
from downclock.power.archetypes import card_archetype
from downclock.problem.files.read_cluster import read_cluster
from downclock.report.converted import converted_page
from downclock.study.as_it_ran import as_it_ran
from downclock.workloads.traces.fractions import whole_gpus
from downclock.workloads.traces.hosts import hosts_of
from downclock.workloads.traces.made_cluster import toml_text
from downclock.workloads.traces.packing import Pool, packed
from downclock.workloads.traces.read import FORMATS, read_trace
from downclock.workloads.traces.sacct import gpus_of
from downclock.workloads.traces.to_problem import Choices, Converted, converted
from tests.workloads.trace_samples import FILES, MAPPED, MAPPING, PHILLY, PODS, RECORDS, SACCT, SWF

EXPECTED = {
    "philly.csv": ("philly", [1, 4, 12], [3600.0, 1800.0, 600.0]),
    "chronus.csv": ("philly-slo", [2, 1], [1000.0, 500.0]),
    "pods.csv": ("alibaba", [1, 1, 1, 2], [1000.0, 1300.0, 600.0, 900.0]),
    "eagle.csv": ("eagle", [2, 4], [3600.0, 600.0]),
    "helios.csv": ("helios", [8, 16], [3600.0, 600.0]),
    "sacct.txt": ("sacct", [2, 4], [3600.0, 1800.0]),
    "sacct-22.json": ("sacct-json", [2, 4], [3600.0, 1800.0]),
    "sacct-24.json": ("sacct-json", [2, 4], [3600.0, 1800.0]),
    "records.txt": ("slurm-records", [2, 4], [3600.0, 1800.0]),
    "log.swf": ("swf", [4, 2], [1000.0, 500.0]),
    "batsim.json": ("batsim", [4, 2], [60.0, 600.0]),
}


@pytest.mark.parametrize("name", FILES)
def test_a_format_is_recognised_and_its_jobs_are_read(read, name):
    trace = read(name, FILES[name])
    format_, processors, run_s = EXPECTED[name]
    assert trace.format.name == format_
    assert trace.processors.tolist() == processors
    assert trace.run_s.tolist() == run_s
    assert not trace.ledger.complaints


def on_s_of(found: Converted) -> list[float]:
    """Seconds that each server is on as it ran, added up in plain Python."""
    trace, began_s = found.trace, found.zero_s
    until_s = [trace.submit_s[-1] - began_s] * found.problem.platform.server_count
    for job, processor in zip(found.placement.job, found.placement.processor, strict=True):
        server = found.problem.platform.server[processor]
        until_s[server] = max(until_s[server], trace.end_s[job] - began_s)
    return until_s


@pytest.mark.parametrize("name", FILES)
def test_a_trace_plans_and_runs_again_as_it_ran(read, name):
    """The energy is that of a sum over the rows; a server is on to the last submission or end."""
    found = converted(read(name, FILES[name]))
    schedule = as_it_ran(found)
    problem, trace = found.problem, found.trace
    assert dc.verify(problem, schedule).ok
    watts = card_archetype("v100", "mixed").power_w
    run_s = float((trace.run_s * trace.processors).sum())
    server_s = sum(on_s_of(found))
    idle_j, host_j = 40.0 * (8 * server_s - run_s), 300.0 * server_s
    bill = dc.account(problem, schedule)
    assert bill.energy_j["run"] == pytest.approx(run_s * watts)
    assert bill.energy_j["idle"] == pytest.approx(idle_j)
    assert bill.energy_j["host"] == pytest.approx(host_j)
    plan = dc.plan(problem, "known:effort=0.01")
    assert dc.verify(problem, plan).ok
    assert dc.account(problem, plan).total_j <= bill.total_j  # two jobs may have run as is best


def test_rows_left_out_are_counted_by_reason_in_gpu_hours(read):
    trace = read("pods.csv", PODS)
    assert trace.ledger.kept == (4, 500.0 + 0.4 * 1300.0 + 0.3 * 600.0 + 2 * 900.0)
    assert trace.ledger.dropped == {"uses no gpus": (1, 0.0), "never started": (1, 0.0)}
    steps = read("sacct.txt", SACCT).ledger.dropped
    assert steps == {
        "is a step of a job": (1, 0.0),
        "never started": (1, 0.0),
        "still runs": (1, 99.0),
    }


def test_a_batsim_job_without_a_delay_is_not_said_to_run_still(read):
    dropped = read("batsim.json", FILES["batsim.json"]).ledger.dropped
    assert dropped == {"has a profile without a delay": (1, 0.0)}


@pytest.mark.parametrize(("count", "hours"), [(None, "GPU"), ("nodes", "node"), ("cpus", "CPU")])
def test_hours_are_of_what_counts(read, count, hours):
    found = converted(read("sacct.txt", SACCT, count=count))
    page = converted_page(found)
    assert f"of their {hours}-hours" in page.lines[0]
    assert page.tables[1].head[-1] == f"{hours}-hours"


def test_starts_nodes_limits_and_deadlines_are_the_traces_own(read):
    trace = read("sacct.txt", SACCT)
    assert (trace.start_s - trace.submit_s).tolist() == [300.0, 540.0]
    assert trace.hosts.tolist() == ["gpu1", "gpu[1-2]"]
    assert trace.limit_s[0] == 7200.0
    assert np.isnan(trace.limit_s[1])
    found = converted(trace, choices=Choices(deadlines="limit", deadline_factor=1.5, grace_s=0.0))
    start_s = trace.start_s - found.zero_s
    assert found.problem.tasks.deadline_s == pytest.approx(
        start_s + np.array([1.5 * 7200, 1.5 * 1800])
    )
    slo = converted(read("chronus.csv", FILES["chronus.csv"]))
    assert (slo.problem.tasks.deadline_s - slo.problem.tasks.arrival_s).tolist() == [2500.0, 800.0]


def test_a_grace_keeps_short_jobs_from_deadlines_no_server_can_wake_for(read):
    found = converted(read("philly.csv", PHILLY), choices=Choices(grace_s=1200.0))
    window_s = found.problem.tasks.deadline_s - found.problem.tasks.arrival_s
    assert window_s.tolist() == [7200.0, 3600.0, 1800.0]
    assert any("at least 20 min" in line for line in found.problem.assumptions)


def test_times_have_the_calendar_of_the_file(read):
    found = converted(read("philly.csv", PHILLY))
    assert found.problem.epoch.isoformat() == "2017-10-09T07:00:00+00:00"
    assert found.problem.tasks.arrival_s.tolist() == [0.0, 1800.0, 3600.0]
    assert converted(read("log.swf", SWF)).problem.epoch.timestamp() == 1027839845
    assert converted(read("pods.csv", PODS)).problem.epoch is None


def test_a_window_takes_the_jobs_submitted_in_it(read):
    trace = read("philly.csv", PHILLY)
    begin_s = float(trace.submit_s[0]) + 900.0
    found = converted(trace, choices=Choices(begin_s=begin_s, length_s=1800.0))
    assert found.trace.processors.tolist() == [4]
    assert found.problem.tasks.arrival_s.tolist() == [0.0]
    assert found.trace.ledger.dropped["outside the window"] == (2, 3600.0 + 7200.0)
    with pytest.raises(InvalidInput, match="no job was submitted"):
        converted(trace, choices=Choices(begin_s=0.0, length_s=60.0))


def test_time_before_the_first_job_of_a_window_is_on_no_bill(read):
    """As it ran, servers are on from the first submission; they were from the window's begin."""
    trace = read("philly.csv", PHILLY)
    early = Choices(begin_s=float(trace.submit_s[0]) - 100 * 86400.0)
    whole, window = converted(trace), converted(trace, choices=early)
    bills = [dc.account(each.problem, as_it_ran(each)).total_j for each in (whole, window)]
    assert bills[0] == bills[1]


def test_virtual_clusters_have_machines_of_their_own(read):
    found = converted(read("philly.csv", PHILLY))
    names = [kind.name for kind in found.problem.platform.kinds]
    assert names == ["vc1", "vc2"]
    assert found.problem.runnable().tolist() == [[True, False], [True, False], [False, True]]
    assert found.problem.platform.server_count == 1 + 2
    shared = converted(read("philly.csv", PHILLY), choices=Choices(pools=False))
    assert [kind.name for kind in shared.problem.platform.kinds] == ["gpu"]


@pytest.mark.parametrize(
    "pools", [{"1": 11, "11": 1}, {"1": 2, "1-": 1, "1-1": 1}, {"q 1": 12, "q 11": 2}, {"a": 1}]
)
def test_servers_of_pools_have_names_of_their_own(read, pools):
    """Servers were pool and number, and those of pools 1 and 11 met: the trace was refused."""
    header = "timestamp,duration,num_gpus,gpu_time,cluster\n"
    rows = [f"2017-10-09 07:00:00,60,{8 * many},1,{pool}\n" for pool, many in pools.items()]
    platform = converted(read("philly.csv", header + "".join(rows))).problem.platform
    assert len(set(platform.server_name)) == platform.server_count == sum(pools.values())


@pytest.mark.parametrize(
    ("how", "names", "gpu_s"),
    [
        ("up", ["a", "b", "c", "d"], 1000.0 + 1300.0 + 600.0 + 1800.0),
        ("pack", ["a", "c", "d"], 1500.0 + 600.0 + 1800.0),
        ("drop", ["d"], 1800.0),
    ],
)
def test_parts_of_a_gpu_are_rounded_packed_or_dropped(read, how, names, gpu_s):
    """Jobs a (0.5, until 1000) and b (0.4, until 1500) fit on one GPU; c (0.3) does not."""
    found = converted(read("pods.csv", PODS), choices=Choices(fractions=how))
    assert found.problem.tasks.name.tolist() == names
    trace = found.trace
    assert float((trace.run_s * trace.processors).sum()) == gpu_s


HEAD = PODS.splitlines(keepends=True)[0]


def pods(*rows: tuple[str, object, object, object]) -> str:
    """Pods of one GPU: name, thousandths of it, kind, end; all begin at 0."""
    return HEAD + "".join(f"{n},1,1,1,{m},{k},LS,Running,0,{e},0\n" for n, m, k, e in rows)


@pytest.mark.parametrize("how", ["up", "pack"])
def test_coverage_is_of_what_was_asked_whatever_was_held(read, tmp_path, how):
    """Two tenths of a T4 for ten hours, beside an hour of a V100 that the cluster has."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    text = pods(("a", 1000, "v100", 3600), ("b", 100, "t4", 36000), ("c", 100, "t4", 36000))
    cluster = read_cluster(tmp_path / "cluster.toml")
    ledger = converted(read("pods.csv", text), cluster, Choices(fractions=how)).trace.ledger
    assert ledger.kept == (1, pytest.approx(3600.0))
    assert ledger.dropped == {
        "needs machines the cluster does not have": (2, pytest.approx(7200.0))
    }
    assert ledger.covered == pytest.approx(1.0 / 3.0)


def test_a_trace_converts_twice_to_the_same(read):
    trace = read("pods.csv", PODS)
    kept = trace.ledger.kept
    first, second = (converted(trace, choices=Choices(begin_s=1.0)) for _ in range(2))
    assert trace.ledger.kept == kept
    assert first.trace.ledger.dropped == second.trace.ledger.dropped
    assert first.trace.ledger.dropped["outside the window"] == (1, 500.0)


def test_what_was_done_to_parts_of_a_gpu_is_said_of_what_is_left_too(read):
    found = converted(read("pods.csv", PODS), choices=Choices(fractions="pack"))
    left = found.trace.where(found.trace.name != "d", "is not wanted")
    again = converted(left, choices=Choices(fractions="pack")).problem.assumptions
    assert [line for line in again if "3 jobs with a part of a GPU share 2 GPU jobs" in line]
    assert left.ledger.kept == (3, pytest.approx(500.0 + 520.0 + 180.0))


def test_jobs_of_other_kinds_or_queues_share_no_gpu(read):
    trace = read("pods.csv", pods(("a", 400, "", 60), ("b", 400, "t4", 60), ("c", 400, "t4", 60)))
    assert whole_gpus(trace, "pack").name.tolist() == ["a", "b"]
    trace.queue[2] = "another"
    assert whole_gpus(trace, "pack").name.tolist() == ["a", "b", "c"]


def test_a_part_next_to_nothing_holds_its_gpu_until_it_ends(read):
    """A second job comes and goes meanwhile; a third finds the GPU given back."""
    text = pods(("a", "0.0000001", "", 100), ("b", 500, "", 10))
    text += "c,1,1,1,500,,LS,Running,50,90,50\nd,1,1,1,500,,LS,Running,200,300,200\n"
    packed = whole_gpus(read("pods.csv", text), "pack")
    assert packed.name.tolist() == ["a", "d"]
    assert packed.run_s.tolist() == [100.0, 100.0]


def test_any_name_makes_a_cluster_file_that_reads_back():
    name = "".join(map(chr, range(256))) + "\u2028"
    assert tomllib.loads(toml_text({"name": name, "kind": [{"name": name}]})) == {
        "name": name,
        "kind": [{"name": name}],
    }


CLUSTER = """\
reference = "v100"

[[kind]]
name = "v100"
idle_w = 40.0

[[server]]
name = "gpu"
count = 2
processors = [{ kind = "v100", count = 4 }]
host_w = 300.0
sleep_w = 15.0
wake_j = 40000.0
wake_s = 120.0
"""


def test_jobs_run_on_the_nodes_the_trace_names(read, tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    cluster = read_cluster(tmp_path / "cluster.toml")
    found = converted(read("sacct.txt", SACCT.replace("|gpu1|COMP", "|gpu2|COMP")), cluster)
    schedule = as_it_ran(found)
    assert dc.verify(found.problem, schedule).ok, "servers that begin asleep wake before the jobs"
    server = found.problem.platform.server[found.placement.processor]
    assert server[found.placement.job == 0].tolist() == [1, 1]
    assert server[found.placement.job == 1].tolist() == [0, 0, 1, 1]


def test_a_server_that_ran_nothing_before_the_last_submission_stays_asleep(read, tmp_path):
    """One job comes, at time 0, to one of two servers that take a minute to wake."""
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    cluster = read_cluster(tmp_path / "cluster.toml")
    first = "\n".join(PHILLY.splitlines()[:2]) + "\n"
    found = converted(read("philly.csv", first), cluster, Choices(pools=False))
    schedule = as_it_ran(found)
    assert dc.verify(found.problem, schedule).ok
    assert np.unique(schedule.spans.server).size == 1


def test_a_cluster_that_is_too_small_leaves_jobs_without_a_place(read, tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    cluster = read_cluster(tmp_path / "cluster.toml")
    found = converted(read("helios.csv", FILES["helios.csv"]), cluster, Choices())
    schedule = as_it_ran(found)
    assert schedule.outcomes.counts()["rejected"] == 1
    assert dc.verify(found.problem, schedule).ok


def test_jobs_for_machines_the_cluster_does_not_have_are_dropped(read, tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    cluster = read_cluster(tmp_path / "cluster.toml")
    found = converted(read("pods.csv", PODS), cluster)
    assert found.problem.tasks.name.tolist() == ["a", "b", "c"]
    assert found.trace.ledger.dropped["needs machines the cluster does not have"] == (1, 1800.0)


def test_a_cluster_for_none_of_the_jobs_is_refused(read, tmp_path):
    (tmp_path / "cluster.toml").write_text(CLUSTER)
    trace = read("philly.csv", PHILLY)
    with pytest.raises(InvalidInput, match="no job is left: each needs machines the cluster"):
        converted(trace, read_cluster(tmp_path / "cluster.toml"))
    pods = read("pods.csv", PODS.replace(",2,1000,V100M16|V100M32", ",1,500,"))
    with pytest.raises(InvalidInput, match="no job is left: each has a part of a GPU"):
        converted(pods, choices=Choices(fractions="drop"))


def test_an_id_given_twice_is_malformed_and_the_first_counts(read):
    text = FILES["helios.csv"].replace("j2,", "j1,")
    trace = read("helios.csv", text)
    assert trace.processors.tolist() == [8]
    assert "line 3: job_id='j1' is the name of an earlier row" in trace.ledger.complaints[0]


def test_records_of_slurm_are_read_as_its_accounting_is(read):
    """Both ways to write a job that ended; starts and ends that Slurm only expects do not count."""
    records, table = read("records.txt", RECORDS), read("sacct.txt", SACCT)
    for name in ("submit_s", "start_s", "end_s", "limit_s", "processors", "queue", "hosts"):
        np.testing.assert_array_equal(getattr(records, name), getattr(table, name))
    assert records.ledger.dropped == {"never started": (1, 0.0), "still runs": (1, 0.0)}
    forged = RECORDS.replace("JobName=my job", "JobName=my EndTime=2026-01-05T08:06:00")
    cut = read("records.txt", forged + "\nJobState=COMPLETED\n")
    assert [line.split(": ", 1)[1] for line in cut.ledger.complaints] == [
        "says two things of one key",
        "has no JobId=",
    ]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "is empty"),
        (f"timestamp,{'x' * 200_000},duration\n", "is not a CSV header: field larger than"),
        ("a,b\n1,2\n", "is no trace we know by its columns"),
        (PHILLY.replace("timestamp,", "stamp,"), "; philly would have 'timestamp' too: name its"),
        (PHILLY.splitlines()[0] + "\n", "holds no job that ran"),
        (PHILLY.replace(",1,3600", ",0,3600").split("2017-10-09 07:30")[0], "uses no gpus: 1"),
    ],
)
def test_a_file_that_is_no_trace_is_refused_by_its_columns(read, text, rule):
    with pytest.raises(InvalidInput, match=rule):
        read("x.csv", text)


def test_missing_columns_of_a_named_format_are_named(read):
    with pytest.raises(InvalidInput, match="no column 'timestamp'"):
        read("x.csv", PHILLY.replace("timestamp,", "stamp,"), format="philly")
    with pytest.raises(InvalidInput, match="no column 'num_gpus'"):
        read("x.csv", PHILLY.replace("num_gpus,", "n,"), format="philly")
    with pytest.raises(InvalidInput, match="says nothing of nodes"):
        read("x.csv", PHILLY, count="nodes")


def test_any_table_can_be_mapped(read, tmp_path):
    mapping = tmp_path / "map.toml"
    mapping.write_text(MAPPING)
    trace = read("any.csv", MAPPED, mapping=mapping)
    assert trace.run_s.tolist() == [3600.0, 600.0]
    assert trace.submit_s.tolist() == [1767600000.0, 1767600600.0]
    table = pa.table({"who": ["a"], "when": [1767600000000], "mins": [60.0], "n": [2]})
    pq.write_table(table, tmp_path / "any.parquet")
    assert read_trace(tmp_path / "any.parquet", mapping=mapping).run_s.tolist() == [3600.0]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (('"minutes"', '"weeks"'), "as='weeks' must be one of seconds"),
        (("name = ", "nam = "), "did you mean 'name'"),
        (('"who"', "3"), "must be the name of a column"),
        (('column = "mins"', 'column = "minutes"'), "no column 'minutes'"),
        (('run = { column = "mins", as = "minutes" }', ""), "names no column for run or end"),
        (('gpus = "n"', ""), "names no column for gpus or nodes or cpus, and no number"),
    ],
)
def test_a_mapping_that_is_wrong_is_refused(read, tmp_path, change, rule):
    mapping = tmp_path / "map.toml"
    mapping.write_text(MAPPING.replace(*change))
    with pytest.raises(InvalidInput, match=rule):
        read("any.csv", MAPPED, mapping=mapping)


@pytest.mark.parametrize(
    ("cell", "gpus"),
    [
        ("billing=8,cpu=8,gres/gpu=2,mem=1G", 2.0),
        ("cpu=8,gres/gpu:a100=3,gres/gpu:v100=1", 4.0),
        ("gpu:4", 4.0),
        ("gpu:v100:2(IDX:0-1)", 2.0),
        ("cpu=8,mem=2G", 0.0),
        ("", 0.0),
    ],
)
def test_gpus_are_found_in_lists_of_resources(cell, gpus):
    assert gpus_of(cell) == gpus


def test_the_commands_offer_every_format_that_is_read():
    """They name them without importing the readers, which takes time."""
    assert set(trace_options.FORMATS) == set(FORMATS)


def test_lists_of_nodes_are_written_out():
    assert hosts_of("n[08-10],x") == ["n08", "n09", "n10", "x"]
    assert hosts_of("rack[1-2]-gpu") == ["rack1-gpu", "rack2-gpu"]
    assert hosts_of("rack[1-2]n[01-02]") == ["rack1n01", "rack1n02", "rack2n01", "rack2n02"]
    assert hosts_of("") == []


@pytest.mark.parametrize(
    "odd", ["gpu[1-2-3]", "gpu[]", "gpu[5-3]", "a[1-9999999]", "a[1-999][1-999]", "a[1", "b]"]
)
def test_what_is_no_list_of_nodes_is_one_name(odd):
    assert hosts_of(f"x,{odd}") == ["x", odd]


def test_packing_never_gives_a_processor_to_two_jobs_at_once():
    draw = np.random.default_rng(3)
    n = 400
    start_s = np.sort(draw.uniform(0, 5000, n))
    end_s = start_s + draw.exponential(300, n)
    size = draw.choice([1, 2, 4, 8, 12, 20], n)
    pool = Pool([], grows=8)
    placed = packed([pool], [[0]] * n, size, start_s, end_s)
    assert placed.placed.all()
    assert np.bincount(placed.job).tolist() == size.tolist()
    machines = len(pool.machines)
    given = [list(range(8 * m + 7, 8 * m - 1, -1)) for m in range(machines)]
    again = packed([Pool(given)], [[0]] * n, size, start_s, end_s)
    assert again.placed.mean() > 0.9
    for found in (placed, again):
        order = np.lexsort((start_s[found.job], found.processor))
        job, processor = found.job[order], found.processor[order]
        same = processor[1:] == processor[:-1]
        assert np.all(start_s[job][1:][same] >= end_s[job][:-1][same])
    small = placed.processor[np.isin(placed.job, np.flatnonzero(size <= 8))]
    jobs = placed.job[np.isin(placed.job, np.flatnonzero(size <= 8))]
    per_job = [np.unique(small[jobs == j] // 8).size for j in np.unique(jobs)]
    assert max(per_job) == 1, "a job that fits on one server is on one"


def test_a_philly_week_costs_what_its_rows_sum_to(shared_data):
    """Rows read with nothing of ours: GPU-seconds at 174 W, and all that is on and idle."""
    path = shared_data / "traces" / "philly" / "philly_jobs_elasticflow_pollux.csv"
    begin = datetime(2017, 10, 9, tzinfo=UTC)
    gpu_s, first_s = 0.0, 7 * 86400.0
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            submit_s = (datetime.fromisoformat(row["timestamp"] + "Z") - begin).total_seconds()
            if 0.0 <= submit_s < 7 * 86400.0:
                gpu_s += float(row["duration"]) * int(row["num_gpus"])
                first_s = min(first_s, submit_s)
    choices = Choices(begin_s=begin.timestamp(), length_s=7 * 86400.0)
    found = converted(read_trace(path), choices=choices)
    assert found.zero_s == begin.timestamp() + first_s
    bill = dc.account(found.problem, as_it_ran(found))
    server_s = sum(on_s_of(found))
    watts = card_archetype("v100", "mixed").power_w
    total_j = watts * gpu_s + 40.0 * (8 * server_s - gpu_s) + 300.0 * server_s
    assert bill.total_j == pytest.approx(total_j, rel=1e-12)


PUBLIC = [
    ("philly/philly_jobs_elasticflow_pollux.csv", {}, 82_247),
    ("philly/chronus_trace_job_Philly_SLO.csv", {}, 30_735),
    ("alibaba_v2023/openb_pod_list_default.csv", {}, 6_203),
    ("swf/NASA-iPSC-1993-3.1-cln.swf.gz", {}, 18_066),
    ("swf/hpc2n_sample.swf", {}, 3_145),
    ("nrel_eagle/sample_eagle_data.csv", {"count": "nodes"}, 1_000),
    ("nrel_eagle/sample_eagle_data.csv", {}, 4),
]


@pytest.mark.parametrize(("name", "how", "jobs"), PUBLIC)
def test_public_traces_run_again_as_they_ran(shared_data, name, how, jobs):
    found = converted(read_trace(shared_data / "traces" / name, **how))
    assert len(found.problem.tasks) == jobs
    assert not found.trace.ledger.complaints
    schedule = as_it_ran(found)
    verdict = dc.verify(found.problem, schedule)
    assert verdict.ok, str(verdict)
    assert schedule.outcomes.counts()["done"] == jobs
