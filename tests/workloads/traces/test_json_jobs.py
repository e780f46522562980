"""Jobs of JSON, one after the other: no more is held than a job, and what is damaged is named."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc

import pytest

from downclock.errors import InvalidInput
from downclock.workloads.traces import json_jobs
from downclock.workloads.traces.json_jobs import JsonText
from downclock.workloads.traces.ledger import Ledger
from downclock.workloads.traces.sacct import sacct_sheet
from tests.workloads.trace_samples import BATSIM, sacct_json

VERSIONS = ("22.05", "24.11")


def many(version: str, jobs: int) -> dict[str, object]:
    """A document of one job again and again, with steps, as long as real ones."""
    sample = sacct_json(version)
    steps = [{"step": {"id": f"{k}.batch", "name": "}],{[" * 20}} for k in range(8)]
    job = {**sample["jobs"][0], "steps": steps}
    return {**sample, "jobs": [{**job, "job_id": 1000 + k} for k in range(jobs)]}


@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
def test_any_piece_of_the_file_may_be_read_at_once(read, monkeypatch, version, indent, at_once):
    monkeypatch.setattr(json_jobs, "AT_ONCE", at_once)
    trace = read("jobs.json", json.dumps(many(version, 5), indent=indent))
    assert trace.name.tolist() == ["1000", "1001", "1002", "1003", "1004"]
    assert trace.run_s.tolist() == [3600.0] * 5
    assert not trace.ledger.complaints


@pytest.mark.parametrize("suffix", ["json", "json.gz"])
@pytest.mark.parametrize("version", VERSIONS)
def test_memory_holds_a_job_not_the_file(tmp_path, version, suffix):
    """The peaks of reading 300 and 3,000 jobs differ by less than the text of fifty."""
    peak = []
    for jobs in (300, 3_000):
        text = json.dumps(many(version, jobs), indent=1).encode()
        path = tmp_path / f"{jobs}.{suffix}"
        path.write_bytes(gzip.compress(text, 1) if suffix.endswith("gz") else text)
        tracemalloc.start()
        assert sum(1 for _ in sacct_sheet(path, Ledger(path)).rows) == jobs
        peak.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert len(text) > 6e6
    assert peak[1] - peak[0] < len(text) / 60


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    ("cut", "rule"),
    [
        ('"job_id": 1002', "it ends within a list"),
        ('"partition": "batch"', "it ends within a list"),
        ('"job_id": 1003', "it ends within a list"),
    ],
)
def test_a_file_that_is_cut_gives_the_jobs_before(read, indent, cut, rule):
    text = json.dumps(many("22.05", 4), indent=indent)
    at = text.index(cut, text.index('"job_id": 1002'))
    whole = int(cut[-1]) - 2 if cut[-1].isdigit() else 0
    trace = read("jobs.json", text[: at + 5])
    assert len(trace) == 2 + whole
    assert trace.ledger.dropped == {"malformed": (1, 0.0)}
    assert f"job {3 + whole}: the file is cut or damaged here: {rule}" in trace.ledger.complaints[0]
    with pytest.raises(InvalidInput, match="cut or damaged"):
        read("jobs.json", text[: at + 5], strict=True)


def test_every_cut_of_a_file_is_counted_once_or_harmless(read):
    """Wherever it is cut: nothing at all before the list, else as many jobs as end before."""
    text = json.dumps(sacct_json("24.11") | {"errors": []})
    ends = [text.index('{"job_id": 12'), text.index('{"job_id": 13')]
    for at in range(text.index('{"job_id": 12'), len(text), 7):
        trace = read("jobs.json", text[:at])
        assert len(trace) == 1 + (at >= ends[1] - 2)
        assert trace.ledger.dropped.get("malformed", (0, 0.0))[0] <= 1


def test_a_cut_gzip_file_gives_the_jobs_before(read):
    packed = gzip.compress(json.dumps(many("24.11", 50)).encode(), 0)
    trace = read("jobs.json.gz", packed[: len(packed) // 2])
    assert 20 < len(trace) < 30
    assert "Compressed file ended" in trace.ledger.complaints[0]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (('"job_id": 1001', '"job_id": '), "job 2: is not JSON: Expecting value (line "),
        (('"job_id": 1001', '"job_id": 1001, "job_id": 7'), "job 2: key 'job_id': is given twice"),
        (('"job_id": 1001', f'"job_id": {"9" * 5000}'), "job 2: is not JSON we can read"),
        (('"job_id": 1001', f'"job_id": {"[" * 9000 + "]" * 9000}'), "job 2: is not JSON we can"),
        (('"job_id": 1001, "partition": "', '"job_id": 1001, "partition": "a" "'), "job 2: is not"),
        (('"job_id": 1001', '"job_id": 1001, "x": [1, {"y": 2]'), "job 2: is not JSON: Expecting"),
    ],
)
def test_a_job_that_is_no_json_costs_itself_only(read, change, rule):
    text = json.dumps(many("22.05", 4))
    assert change[0] in text
    trace = read("jobs.json", text.replace(*change))
    assert trace.name.tolist() == ["1000", "1002", "1003"]
    assert rule in trace.ledger.complaints[0]
    assert trace.ledger.dropped["malformed"][0] == 1


def test_a_text_that_nobody_closes_ends_with_its_line(read):
    text = json.dumps(many("24.11", 4), indent=1)
    trace = read("jobs.json", text.replace('"partition": "batch"', '"partition": "batch', 1))
    assert trace.name.tolist() == ["1001", "1002", "1003"]
    assert "job 1: is not JSON: Invalid control character" in trace.ledger.complaints[0]


def test_what_is_no_object_is_malformed_and_stray_marks_end_nothing(read):
    text = json.dumps(many("22.05", 2)).replace('"jobs": [', '"jobs": [5, null, , }, ')
    trace = read("jobs.json", text)
    assert len(trace) == 2
    assert [line.split("json, ")[1] for line in trace.ledger.complaints] == [
        "job 1: 5 is no object",
        "job 2: None is no object",
        "job 3: is not JSON: Expecting value (line 1)",
        "job 4: is not JSON: Expecting value (line 1)",
    ]


def test_files_one_after_the_other_are_read_as_one(read):
    """As ``sacct --json >> file`` makes them; a job that is in both counts once."""
    first, second = many("22.05", 3), many("24.11", 5)
    trace = read("jobs.json", json.dumps(first) + "\n" + json.dumps(second))
    assert len(trace) == 5
    assert trace.ledger.dropped == {"says again what an earlier row says": (3, 0.0)}
    assert trace.ledger.covered == 1.0


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "it has no list 'jobs'"),
        ("{}", "it has no list 'jobs'"),
        ('{"jobs": {"a": 1}}', "it has no list 'jobs'"),
        ("[1, 2]", r"is no JSON object \(line 1\)"),
        ('{\n"meta": tru, "jobs": []}', r"is not JSON: Expecting value \(line 2\)"),
        ('{"meta": {"a": 1', "is not JSON: Expecting ',' delimiter"),
        ('{"jobs": []}', "holds no job that ran"),
        ('{"jobs": [], "meta": {"slurm', "holds no job that ran.*cut or damaged"),
    ],
)
def test_what_is_no_list_of_jobs_is_refused(read, text, rule):
    with pytest.raises(InvalidInput, match=rule):
        read("jobs.json", text)


def test_a_value_without_an_end_is_not_read_for_ever(monkeypatch):
    """A quote that nobody closes, all in one line: the rest is given up at a bounded length."""
    monkeypatch.setattr(json_jobs, "LARGEST", 1000)
    monkeypatch.setattr(json_jobs, "AT_ONCE", 100)
    stream = io.StringIO('{"jobs": [{"a": 1}, {"b": "x' + '"y' * 100_000)
    text = JsonText(stream)
    assert [list(text.elements()) for _ in text.members()] == [[{"a": 1}]]
    assert text.fault
    assert stream.tell() < 5000


@pytest.mark.parametrize("order", [("nb_res", "jobs", "profiles"), ("jobs", "profiles", "nb_res")])
def test_profiles_may_stand_behind_the_jobs(read, order):
    trace = read("w.json", json.dumps({name: BATSIM[name] for name in order}))
    assert trace.format.name == "batsim"
    assert trace.run_s.tolist() == [60.0, 600.0]
