"""Jobs of a trace on a given cluster: on the nodes they name, the others around them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import downclock as dc
from downclock.errors import InvalidInput
from downclock.problem.files.read_cluster import Cluster, read_cluster
from downclock.report.converted import converted_page
from downclock.study.as_it_ran import as_it_ran
from downclock.workloads.traces.packing import NAMED, NO_PLACE, PACKED, TAKEN, UNKNOWN, Pool, packed
from downclock.workloads.traces.to_problem import Choices, Converted, converted
from tests.workloads.trace_samples import PHILLY

HEAD = "JobID|Submit|Start|End|AllocTRES|Partition|NodeList\n"


def row(name: str, begin: str, end: str, gpus: int, nodes: str) -> str:
    """A job of one day, submitted when it starts."""
    day = "2026-01-05T"
    return f"{name}|{day}{begin}|{day}{begin}|{day}{end}|gres/gpu={gpus}|main|{nodes}\n"


KIND = '[[kind]]\nname = "{0}"\ncard = "{1}"\nidle_w = 40.0\n{2}\n'
SERVER = '[[server]]\nname = "{0}"\ncount = {1}\nprocessors = [{{ kind = "{2}", count = 4 }}]\n'


def cluster_text(speed: str = "") -> str:
    """Two servers big1 and big2 of four A100, and one, small, of four V100."""
    kinds = KIND.format("a100", "a100", "") + KIND.format("older", "v100", speed)
    servers = SERVER.format("big", 2, "a100") + SERVER.format("small", 1, "older")
    return f'reference = "a100"\n{kinds}{servers}'


@pytest.fixture
def cluster(tmp_path):
    def make(text: str) -> Cluster:
        (tmp_path / "cluster.toml").write_text(text)
        return read_cluster(tmp_path / "cluster.toml")

    return make


def servers(found: Converted) -> dict[str, Counter[str]]:
    """How many processors of which server each job held."""
    platform, place = found.problem.platform, found.placement
    held: dict[str, Counter[str]] = {}
    for job, processor in zip(place.job, place.processor, strict=True):
        name = platform.server_name[platform.server[processor]]
        held.setdefault(found.trace.name[job], Counter())[name] += 1
    return held


WEEK = (
    row("101", "09:01:00", "10:01:00", 4, "big1")
    + row("102", "09:06:00", "10:06:00", 2, "big2")
    + row("103", "09:11:00", "11:11:00", 2, "small")
    + row("104", "10:31:00", "11:31:00", 8, "big[1-2]")
    + row("106", "12:00:00", "13:00:00", 3, "big[1-2]")
)


@pytest.mark.parametrize("speed", ["", "speed = 0.5", "speed = 0.999"])
@pytest.mark.parametrize("archetype", [None, "compute-bound"])
def test_jobs_run_where_the_trace_says_whatever_the_kind(read, cluster, speed, archetype):
    """Before, those of small went to big and pushed away the job of big[1-2]."""
    found = converted(
        read("t.txt", HEAD + WEEK), cluster(cluster_text(speed)), Choices(archetype=archetype)
    )
    assert servers(found) == {
        "101": {"big1": 4},
        "102": {"big2": 2},
        "103": {"small": 2},
        "104": {"big1": 4, "big2": 4},
        "106": {"big1": 2, "big2": 1},
    }
    schedule = as_it_ran(found)
    assert dc.verify(found.problem, schedule).ok
    run_s = schedule.segments.end_s - schedule.segments.start_s
    assert run_s == pytest.approx(found.trace.run_s[schedule.segments.task])


def test_an_uneven_split_stays_on_its_nodes(read, cluster):
    """Three GPUs on n[1-2], where one of n1 is taken, and the rest of the four of n[3-4]."""
    text = 'reference = "a"\n' + KIND.format("a", "v100", "") + SERVER.format("n", 4, "a")
    jobs = row("1", "09:00:00", "10:00:00", 3, "n1") + row("2", "09:00:00", "10:00:00", 4, "n[1-2]")
    jobs += row("3", "09:01:00", "10:00:00", 8, "n[3-4]")
    found = converted(read("t.txt", HEAD + jobs), cluster(text))
    assert servers(found) == {"1": {"n1": 3}, "2": {"n1": 1, "n2": 3}, "3": {"n3": 4, "n4": 4}}
    assert set(found.placement.how) == {NAMED}


def test_jobs_without_nodes_are_packed_around_those_that_come_later(read, cluster):
    """The first starts before the one of big1 and lasts longer; both servers are free then."""
    jobs = row("a", "09:00:00", "12:00:00", 4, "") + row("b", "09:10:00", "10:00:00", 4, "big1")
    found = converted(read("t.txt", HEAD + jobs), cluster(cluster_text()))
    assert servers(found) == {"a": {"big2": 4}, "b": {"big1": 4}}


def test_how_jobs_got_their_place_is_counted_in_gpu_hours(read, cluster):
    jobs = (
        row("named", "09:00:00", "10:00:00", 2, "big1")
        + row("nowhere", "09:00:00", "10:00:00", 1, "gone7")
        + row("silent", "09:00:00", "10:00:00", 1, "")
        + row("taken", "09:10:00", "10:00:00", 6, "big1")
        + row("kinds", "11:00:00", "12:00:00", 5, "big1,small")
        + row("large", "11:00:00", "12:00:00", 9, "big[1-3]")
    )
    found = converted(read("t.txt", HEAD + jobs), cluster(cluster_text()))
    how = dict(zip(found.trace.name, found.placement.how, strict=True))
    assert how == {
        "named": NAMED,
        "nowhere": UNKNOWN,
        "silent": PACKED,
        "taken": NO_PLACE,
        "kinds": UNKNOWN,
        "large": NO_PLACE,
    }
    page = converted_page(found)
    assert {"what": NO_PLACE, "jobs": 2, "gpu_hours": 14.0} in page.data["as_it_ran"]
    assert {"what": UNKNOWN, "jobs": 2, "gpu_hours": 6.0} in page.data["as_it_ran"]
    assert (NO_PLACE, "2", "14.0") in page.tables[-1].rows


def test_nodes_with_too_few_free_processors_are_left_for_others(read, cluster):
    jobs = row("a", "09:00:00", "10:00:00", 3, "big1") + row("b", "09:00:00", "10:00:00", 2, "big1")
    found = converted(read("t.txt", HEAD + jobs), cluster(cluster_text()))
    assert servers(found) == {"a": {"big1": 3}, "b": {"big2": 2}}
    assert found.placement.how.tolist() == [NAMED, TAKEN]


def test_a_job_of_another_queue_ran_on_the_nodes_it_names(read, cluster):
    """Queues that have machines of their own are no kinds of this cluster; its nodes are."""
    jobs = row("a", "09:00:00", "10:00:00", 1, "small") + row("b", "09:00:00", "10:00:00", 1, "")
    found = converted(read("t.txt", HEAD + jobs), cluster(cluster_text()), Choices(pools=True))
    assert servers(found) == {"a": {"small": 1}}
    assert found.trace.ledger.dropped == {"needs machines the cluster does not have": (1, 3600.0)}


def test_queues_that_are_no_kinds_are_told_of_the_option(read, cluster):
    with pytest.raises(InvalidInput, match=r"no job is left: .*--one-pool"):
        converted(read("t.csv", PHILLY), cluster(cluster_text()))


def test_nodes_that_no_cluster_knows_are_not_shown_as_used(read):
    found = converted(read("t.txt", HEAD + WEEK))
    assert "hosts" not in dict(found.trace.used)
    assert any("nodes that the trace names are not used" in e for e in found.problem.assumptions)


def test_no_processor_is_given_twice_where_some_jobs_name_their_machine():
    """Drawn jobs, half of them on a machine of their own; what they hold is as they say."""
    draw = np.random.default_rng(5)
    n = 600
    start_s = np.sort(draw.integers(0, 5000, n)).astype(float)
    end_s = start_s + draw.integers(0, 600, n)
    size = draw.choice([1, 2, 4, 6, 12], n)
    named = draw.random(n) < 0.5
    nodes = [{0: draw.choice(30, -(-s // 4), replace=False).tolist()} for s in size]
    pool = Pool([list(range(4 * m, 4 * m + 4)) for m in range(30)])
    found = packed(
        [pool], [[0]] * n, size, start_s, end_s,
        [there if one else None for there, one in zip(nodes, named, strict=True)],
    )  # fmt: skip
    assert np.bincount(found.job, minlength=n).tolist() == np.where(found.placed, size, 0).tolist()
    order = np.lexsort((end_s[found.job], start_s[found.job], found.processor))
    job, processor = found.job[order], found.processor[order]
    same = processor[1:] == processor[:-1]
    assert np.all(start_s[job][1:][same] >= end_s[job][:-1][same])
    kept = found.how == NAMED
    assert 0.2 < kept.mean() < named.mean()
    for one, at in zip(found.job[kept[found.job]], found.processor[kept[found.job]], strict=True):
        assert at // 4 in nodes[one][0]
