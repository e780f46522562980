"""The STG reader: what it reads and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from downclock.errors import InvalidInput
from downclock.workloads.stg import parse_stg, read_stg

SMALL = """3
0 0 0
1 4 1 0
2 2 1 1
3 5 1 0
4 0 2 2 3
# CP Length : 6
# Parallelism : 1.833333
"""


def test_real_tasks_are_read_and_dummies_dropped() -> None:
    graph = parse_stg(SMALL)
    assert list(graph.task) == ["t1", "t2", "t3"]
    assert list(graph.work) == [4.0, 2.0, 5.0]
    assert list(zip(graph.edges.before, graph.edges.after, strict=True)) == [(0, 1)]
    assert graph.critical_path == 6.0
    assert graph.total_work == 11.0


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("CP Length : 6", "CP Length : 7", "line 7: critical path is stated as 7"),
        ("Parallelism : 1.833333", "Parallelism : 2", "parallelism is stated as 2"),
        ("2 2 1 1", "7 2 1 1", "line 4: task id=7 should be 2"),
        ("2 2 1 1", "2 -2 1 1", "line 4, task 2: work=-2 is negative"),
        ("2 2 1 1", "2 2 1 3", "line 4, task 2: predecessor=3 is not a smaller task id"),
        ("2 2 1 1", "2 2 2 1 1", "line 4, task 2: names a predecessor twice"),
        ("2 2 1 1", "2 x 1 1", "line 4: 'x' is not a whole number"),
        ("4 0 2 2 3", "4 0 3 2 3", "has 2 of its 3 predecessors"),
        ("4 0 2 2 3\n", "", "needs 5 records (3 tasks and two dummies) and has 4"),
        ("0 0 0\n", "", "task id=1 should be 0 (this mirror lacks the dummy entry task 0)"),
        ("3\n0", "5\n0", "the header may count the two dummies"),
        ("3\n0", "2\n0", "line 5, task 3: work=5 the dummy exit task must have no work"),
        ("3\n0", "0\n0", "tasks=0 must be at least 1"),
    ],
)
def test_what_is_wrong_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_stg(SMALL.replace(old, new, 1))
    assert message in str(error.value)


def test_empty_missing_and_binary_files_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty.stg").write_text("")
    (tmp_path / "binary.stg").write_bytes(b"\xff\xfe\x00")
    for name in ("empty.stg", "binary.stg", "absent.stg", "."):
        with pytest.raises(InvalidInput) as error:
            read_stg(tmp_path / name)
        assert "\n" not in str(error.value)


def test_every_graph_of_the_set_agrees_with_its_own_trailer(shared_data: Path) -> None:
    """Facts of the set: shared/specs/graphs.md section 1."""
    graphs = [read_stg(path) for path in sorted((shared_data / "stg" / "rand50").glob("*.stg"))]
    work = np.array([graph.total_work for graph in graphs])
    assert len(graphs) == 180
    assert (work.min(), work.max()) == (208.0, 645.0)
    sizes = {}
    for name in ("robot", "sparse", "fpppp"):
        graph = read_stg(shared_data / "stg" / "apps" / f"{name}.stg")
        sizes[name] = (len(graph), graph.total_work, graph.critical_path)
    assert sizes["robot"] == (88, 2483.0, 569.0)
    assert sizes["sparse"] == (96, 1936.0, 122.0)
    assert sizes["fpppp"] == (334, 7129.0, 1062.0)
