"""Tasks from files: what is understood, and how each bad file is refused in one line."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from downclock.errors import InvalidInput
from downclock.power.library import Library
from downclock.power.profiles import CpuProfiles
from downclock.problem.files.read_tasks import TaskFile, read_tasks
from downclock.problem.files.write_tasks import write_tasks
from downclock.problem.graph import Edges
from downclock.problem.spread import EXACT, LOGNORMAL, UNIFORM
from tests.generated import random_problem

ONE = np.ones(3)
LIBRARY = Library.of_one_kind(
    np.array(["resnet", "bert", "black scholes"], dtype=object),
    "cpu",
    CpuProfiles(ONE, ONE, 3 * ONE, ONE),
)


def written(folder: Path, text: str | bytes, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(folder: Path, text: str | bytes, name: str = "jobs.csv", **options: object) -> TaskFile:
    return read_tasks(written(folder, text, name), LIBRARY, **options)  # type: ignore[arg-type]


def refusal(folder: Path, text: str | bytes, name: str = "jobs.csv", **options: object) -> str:
    """Return the one line a bad file is refused with, without the folder."""
    with pytest.raises(InvalidInput) as caught:
        read(folder, text, name, **options)
    message = str(caught.value)
    assert "\n" not in message
    assert len(message) < 1000
    assert message.startswith(str(folder / name))
    return message.replace(str(folder) + "/", "")


def test_defaults_fill_what_is_not_said(tmp_path: Path) -> None:
    file = read(tmp_path, "application\nbert\nresnet\n")
    assert file.tasks.name.tolist() == ["t0", "t1"]
    assert file.tasks.application.tolist() == [1, 0]
    assert file.tasks.scale.tolist() == [1.0, 1.0]
    assert file.tasks.arrival_s.tolist() == [0.0, 0.0]
    assert np.all(np.isinf(file.tasks.deadline_s))
    assert file.tasks.processors.tolist() == [1, 1]
    assert file.tasks.spread is None
    assert len(file.edges) == 0
    assert file.epoch is None


def test_every_column_is_read(tmp_path: Path) -> None:
    text = (
        "name,application,scale,arrival_s,deadline_s,gpus,actual,after,x_owner\n"
        "a,bert,2.5,10,100,1,exact,,eve\n"
        ",black scholes,0,0,,2,uniform:0.9:1,a,bob\n"
        "c,resnet,1e3,5,60.5,1,lognormal:1:0.2,a;t1,\n"
    )
    file = read(tmp_path, text)
    tasks = file.tasks
    assert tasks.name.tolist() == ["a", "t1", "c"]
    assert tasks.application.tolist() == [1, 2, 0]
    assert tasks.scale.tolist() == [2.5, 0.0, 1000.0]
    assert tasks.arrival_s.tolist() == [10.0, 0.0, 5.0]
    assert tasks.deadline_s.tolist() == [100.0, np.inf, 60.5]
    assert tasks.processors.tolist() == [1, 2, 1]
    assert tasks.spread is not None
    assert tasks.spread.shape.tolist() == [EXACT, UNIFORM, LOGNORMAL]
    assert tasks.spread.a.tolist() == [1.0, 0.9, 1.0]
    assert list(zip(file.edges.before, file.edges.after, strict=True)) == [(0, 1), (0, 2), (1, 2)]


def test_a_deadline_may_count_from_the_arrival(tmp_path: Path) -> None:
    file = read(tmp_path, "application,arrival_s,within_s\nbert,10,5\nbert,7,\n")
    assert file.tasks.deadline_s.tolist() == [15.0, np.inf]


def test_predecessors_are_split_at_blanks_unless_a_name_has_them(tmp_path: Path) -> None:
    text = "name,application,after\na,bert,\nb,bert,\na b,bert,a b\n"
    assert "cycle" in refusal(tmp_path, text)
    text = "name,application,after\na,bert,\nb c,bert,\nd,bert,b c\ne,bert,a d\n"
    edges = read(tmp_path, text).edges
    assert edges.before.tolist() == [1, 0, 2]
    assert edges.after.tolist() == [2, 3, 3]


def test_calendar_times_count_from_the_epoch(tmp_path: Path) -> None:
    text = (
        "application,arrival,deadline\n"
        "bert,2024-06-10T08:00+02:00,2024-06-10T07:30Z\n"
        "bert,2024-06-10T08:30+02:00,\n"
    )
    epoch = datetime(2024, 6, 10, 5, tzinfo=UTC)
    file = read(tmp_path, text, epoch=epoch)
    assert file.tasks.arrival_s.tolist() == [3600.0, 5400.0]
    assert file.tasks.deadline_s.tolist() == [9000.0, np.inf]
    assert file.epoch == epoch
    alone = read(tmp_path, text)
    assert alone.tasks.arrival_s.tolist() == [0.0, 1800.0]
    assert alone.epoch == datetime(2024, 6, 10, 6, tzinfo=UTC)


def test_local_times_follow_daylight_saving(tmp_path: Path) -> None:
    """Berlin went to summer time on 31 March 2024 at 02:00: that day has 23 hours."""
    berlin = ZoneInfo("Europe/Berlin")
    text = "application,arrival\nbert,2024-03-31T00:00\nbert,2024-04-01T00:00\n"
    file = read(tmp_path, text, timezone=berlin)
    assert np.diff(file.tasks.arrival_s).tolist() == [23 * 3600.0]


def test_parquet_columns_may_be_typed_lists_and_categories(tmp_path: Path) -> None:
    start = datetime(2024, 6, 10, tzinfo=UTC)
    table = pa.table(
        {
            "name": pa.array(["a", "b"]).dictionary_encode(),
            "application": pa.array(["bert", "resnet"], pa.large_string()),
            "arrival": pa.array([start, start + timedelta(hours=1)], pa.timestamp("ns", "UTC")),
            "within_s": pa.array([60, None], pa.int32()),
            "after": pa.array([[], ["a"]], pa.list_(pa.string())),
        }
    )
    pq.write_table(table, tmp_path / "jobs.parquet")
    file = read_tasks(tmp_path / "jobs.parquet", LIBRARY)
    assert file.tasks.name.tolist() == ["a", "b"]
    assert file.tasks.arrival_s.tolist() == [0.0, 3600.0]
    assert file.tasks.deadline_s.tolist() == [60.0, np.inf]
    assert file.edges.before.tolist() == [0]


def test_json_may_be_a_bare_list(tmp_path: Path) -> None:
    rows = [{"application": "bert"}, {"application": "bert", "after": ["t0"], "x_note": [1]}]
    for content in (rows, {"tasks": rows}, {"format": "downclock-tasks/1", "tasks": rows}):
        file = read(tmp_path, json.dumps(content), "jobs.json")
        assert len(file.tasks) == 2
        assert file.edges.after.tolist() == [1]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
@pytest.mark.parametrize("seed", range(12))
def test_tasks_come_back_bit_for_bit(tmp_path: Path, suffix: str, seed: int) -> None:
    problem = random_problem(seed, edges=True, gangs=True)
    path = tmp_path / f"jobs.{suffix}"
    write_tasks(problem.tasks, problem.library, path, edges=problem.edges)
    file = read_tasks(path, problem.library)
    for field in ("name", "application", "scale", "arrival_s", "deadline_s", "processors"):
        np.testing.assert_array_equal(getattr(file.tasks, field), getattr(problem.tasks, field))
    wanted = sorted(zip(problem.edges.before, problem.edges.after, strict=True))
    assert sorted(zip(file.edges.before, file.edges.after, strict=True)) == wanted


@pytest.mark.parametrize("suffix", ["csv", "parquet", "json"])
def test_awkward_names_and_spreads_come_back(tmp_path: Path, suffix: str) -> None:
    text = (
        'name,application,actual\n"a, ""b""",bert,uniform:0.30000000000000004:1\n'
        '"two\nlines",bert,\nüñ;x,bert,lognormal:1:0.1\nd,bert,\n'
    )
    first = read(tmp_path, text, "first.csv")
    edges = Edges(np.array([2, 0]), np.array([1, 3]))
    path = tmp_path / f"again.{suffix}"
    write_tasks(first.tasks, LIBRARY, path, edges=edges)
    again = read_tasks(path, LIBRARY)
    assert again.tasks.name.tolist() == ['a, "b"', "two\nlines", "üñ;x", "d"]
    assert again.edges.before.tolist() == [2, 0]
    assert again.tasks.spread is not None
    assert again.tasks.spread.a.tolist() == [0.30000000000000004, 1.0, 1.0, 1.0]


def test_names_a_csv_cannot_hold_are_refused_when_writing(tmp_path: Path) -> None:
    tasks = read(tmp_path, "name,application\na;b,bert\nc,bert\nd,bert\n").tasks
    edges = Edges(np.array([0, 1]), np.array([2, 2]))
    with pytest.raises(InvalidInput, match=r"task 'd': after='a;b;c' holds a name with a semi"):
        write_tasks(tasks, LIBRARY, tmp_path / "out.csv", edges=edges)
    assert not (tmp_path / "out.csv").exists()


BAD_ROWS = {
    "wrong type": (
        "name,application,scale\na,bert,1\nb,bert,many\n",
        "jobs.csv line 3: scale='many' must be a number",
    ),
    "NaN": (
        "name,application,scale\na,bert,nan\n",
        "jobs.csv line 2: scale='nan' must be a number",
    ),
    "negative duration": (
        "name,application,scale\na,bert,1\n\nb,bert,-2\n",
        "jobs.csv line 4, task 'b': scale=-2.0 must be finite and not negative",
    ),
    "infinite duration": (
        "name,application,scale\na,bert,inf\n",
        "jobs.csv line 2, task 'a': scale=inf must be finite and not negative",
    ),
    "negative arrival": (
        "name,application,arrival_s\na,bert,-1\n",
        "jobs.csv line 2, task 'a': arrival_s=-1.0 must not be negative",
    ),
    "deadline before arrival": (
        "name,application,arrival_s,deadline_s\nt7,bert,5,3\n",
        "jobs.csv line 2, task 't7': deadline_s=3.0 is before arrival_s=5.0",
    ),
    "negative time": (
        "name,application,within_s\na,bert,-5\n",
        "jobs.csv line 2, task 'a': within_s='-5' must not be negative",
    ),
    "duplicate name": (
        "name,application\na,bert\nb,bert\na,bert\n",
        "jobs.csv line 4, task 'a': name='a' is already the name of line 2",
    ),
    "unknown application": (
        "name,application\na,bert\nb,brt\n",
        "jobs.csv line 3, task 'b': application='brt' is not in the library; did you mean 'bert'?",
    ),
    "empty application": (
        "name,application\na,\n",
        "jobs.csv line 2: application is empty",
    ),
    "no processor": (
        "name,application,gpus\na,bert,0\n",
        "jobs.csv line 2, task 'a': gpus=0 must be at least 1",
    ),
    "half a processor": (
        "name,application,processors\na,bert,1.5\n",
        "jobs.csv line 2: processors='1.5' must be a whole number",
    ),
    "more processors than a float can count": (
        "name,application,processors\na,bert,9223372036854775807\n",
        "jobs.csv line 2: processors='9223372036854775807' must be below 2^53",
    ),
    "due a while after it never came": (
        "name,application,arrival_s,within_s\na,bert,-inf,inf\n",
        "jobs.csv line 2, task 'a': arrival_s=-inf must be finite",
    ),
    "bad spread": (
        "name,application,actual\na,bert,\nb,bert,gauss:1\n",
        "jobs.csv line 3: actual='gauss:1' must be 'exact', 'uniform:LOW:HIGH' or"
        " 'lognormal:MEDIAN:SIGMA'",
    ),
    "unknown predecessor": (
        "name,application,after\na,bert,\nb,bert,aa\n",
        "jobs.csv line 3, task 'b': after='aa' names no task of this file; did you mean 'a'?",
    ),
    "cycle": (
        "name,application,after\nz,bert,a\na,bert,c\nb,bert,a\nc,bert,b\nd,bert,\n",
        "jobs.csv line 3, task 'a': the graph has a cycle through this task (column 'after')",
    ),
    "unknown column": (
        "name,application,dedline_s\na,bert,3\n",
        "jobs.csv line 1, column 'dedline_s': is not a known column; did you mean 'deadline_s'?"
        " (columns of your own start with 'x_')",
    ),
    "two deadlines": (
        "application,deadline_s,within_s\nbert,3,4\n",
        "jobs.csv line 1, column 'deadline_s': cannot be given together with column 'within_s'",
    ),
    "missing column": (
        "name,scale\na,1\n",
        "jobs.csv: no column 'application'; there are: name, scale",
    ),
    "header only": ("name,application\n", "jobs.csv: there are no tasks"),
    "empty file": ("", "jobs.csv, the file: is empty"),
    "ragged": (
        "name,application\na,bert\nb\n",
        "jobs.csv line 3, the row: has 1 fields, the header has 2",
    ),
    "no date": (
        "application,arrival\nbert,yesterday\n",
        "jobs.csv line 2: arrival='yesterday' must be a clock time such as 18:30, an offset such as"
        " +6h, or an ISO 8601 date and time",
    ),
    "no offset": (
        "application,arrival\nbert,2024-06-10T08:00\n",
        "jobs.csv line 2: arrival='2024-06-10T08:00' has no UTC offset, and no time zone is given",
    ),
    "deadline stamps without a start": (
        "application,deadline\nbert,2024-06-10T08:00Z\n",
        "jobs.csv line 1, column 'deadline': needs the epoch (in the cluster),"
        " or a column 'arrival' with calendar times",
    ),
    "stamps out of order": (
        "name,application,arrival,deadline\na,bert,2024-06-10T08:00Z,2024-06-10T07:00Z\n",
        "jobs.csv line 2, task 'a': deadline='2024-06-10T07:00Z' is before the arrival",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_a_bad_csv_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text) == message
    with_windows_line_ends = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    if text:
        assert refusal(tmp_path, with_windows_line_ends) == message


BAD_JSON = {
    "not JSON": ('{"tasks": [\n{"application": }]}', "jobs.json line 2: is not JSON: Expecting"),
    "not a list": ('{"tasks": 3}', "jobs.json line 1: tasks must be a list of objects"),
    "not an object": ("[\n{},\n7]", "jobs.json line 3: 7 row 2 must be an object"),
    "no tasks": ("[]", "jobs.json: there are no tasks"),
    "missing": ('{"format": "downclock-tasks/1"}', "jobs.json line 1, the file: needs the key"),
    "other format": (
        '{"format": "downclock-problem/1",\n "tasks": []}',
        "jobs.json line 1: format='downclock-problem/1' must be one of downclock-tasks/1",
    ),
    "wrong type": (
        '[{"application": "bert"},\n {"application": "bert", "scale": "2"}]',
        "jobs.json line 2: scale='2' must be a number",
    ),
    "true is no number": (
        '[{"application": "bert", "scale": true}]',
        "jobs.json line 1: scale=True must be a number",
    ),
    "NaN": ('[{"application": "bert", "scale": NaN}]', "jobs.json line 1: scale='nan' must be"),
    "unknown key": (
        '[{"application": "bert"},\n {"application": "bert",\n "gpu": 2}]',
        "jobs.json line 3: gpu is not a known key; did you mean 'gpus'?",
    ),
    "key twice": (
        '[{"application": "bert", "application": "bert"}]',
        "jobs.json, key 'application': is given twice in one object",
    ),
    "late": (
        '[{"application": "bert"},\n\n {"application": "bert", "deadline_s": -1}]',
        "jobs.json line 3, task 't1': deadline_s=-1.0 is before arrival_s=0.0",
    ),
    "predecessor of another type": (
        '[{"application": "bert", "after": [1]}]',
        "jobs.json line 1: after=[1] must be task names",
    ),
    "too deep": ("[" * 100_000, "jobs.json: is not JSON we can read"),
    "huge number": (
        f'[{{"application": "bert", "scale": 1{"0" * 400}}}]',
        "jobs.json line 1: scale is too large",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_JSON.values(), ids=BAD_JSON)
def test_a_bad_json_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    assert refusal(tmp_path, text, "jobs.json").startswith(message)


def test_a_bad_parquet_is_refused_by_task(tmp_path: Path) -> None:
    table = pa.table({"name": ["a", "b"], "application": ["bert", "bert"], "scale": [1.0, -1.0]})
    pq.write_table(table, tmp_path / "jobs.parquet")
    with pytest.raises(InvalidInput, match=r"jobs\.parquet, task 'b': scale=-1\.0 must be"):
        read_tasks(tmp_path / "jobs.parquet", LIBRARY)
    assert "is not a Parquet file" in refusal(tmp_path, "name\na\n", "other.parquet")


def test_a_ten_megabyte_line_is_refused(tmp_path: Path) -> None:
    text = "name,application\na,bert\n" + "b" * 10_000_000 + ",bert\n"
    assert refusal(tmp_path, text) == (
        "jobs.csv line 3, the line: has 10000005 bytes; at most 1000000 are allowed"
    )


def test_a_long_name_is_cut_in_the_complaint(tmp_path: Path) -> None:
    text = "name,application,scale\n" + "b" * 100_000 + ",bert,-1\n"
    assert refusal(tmp_path, text).endswith("scale=-1.0 must be finite and not negative")


def test_another_encoding_is_refused(tmp_path: Path) -> None:
    text = "name,application\na,bert\nmü,bert\n".encode("latin-1")
    assert refusal(tmp_path, text) == (
        "jobs.csv line 3: is not UTF-8 text (byte 0xfc at offset 25)"
    )
    assert "UTF-8" in refusal(tmp_path, "name,application\na,bert\n".encode("utf-16"))


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.parquet", "jobs.json"])
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / name
    with pytest.raises(InvalidInput, match=r"jobs\.\w+: no such file$"):
        read_tasks(path, LIBRARY)
    path.mkdir()
    with pytest.raises(InvalidInput, match=r"jobs\.\w+: is a folder, not a file$"):
        read_tasks(path, LIBRARY)

    def forbidden(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    # Faked, since the superuser may read everything.
    monkeypatch.setattr(Path, "read_bytes", forbidden)
    with pytest.raises(InvalidInput, match=r"jobs\.\w+: may not be read \(no permission\)$"):
        read_tasks(path, LIBRARY)


def test_an_unknown_suffix_is_refused(tmp_path: Path) -> None:
    assert refusal(tmp_path, "", "jobs.xlsx").startswith("jobs.xlsx: has the suffix '.xlsx'; known")


def test_skipped_and_repeated_local_hours_are_refused(tmp_path: Path) -> None:
    """Berlin 2024: 02:30 does not exist on 31 March and happens twice on 27 October."""
    berlin = ZoneInfo("Europe/Berlin")
    text = "application,arrival\nbert,2024-03-31T02:30\n"
    assert refusal(tmp_path, text, timezone=berlin) == (
        "jobs.csv line 2: arrival='2024-03-31T02:30' does not exist in Europe/Berlin:"
        " the clocks go forward over it"
    )
    text = "application,arrival\nbert,2024-10-27T01:30\nbert,2024-10-27T02:30\n"
    assert refusal(tmp_path, text, timezone=berlin) == (
        "jobs.csv line 3: arrival='2024-10-27T02:30' happens twice in Europe/Berlin:"
        " the clocks go back; write it with its UTC offset"
    )


def test_an_arrival_before_the_epoch_is_refused(tmp_path: Path) -> None:
    text = "name,application,arrival\na,bert,2024-06-10T08:00Z\n"
    message = refusal(tmp_path, text, epoch=datetime(2024, 6, 11, tzinfo=UTC))
    assert message == (
        "jobs.csv line 2, task 'a': arrival='2024-06-10T08:00Z' is before the epoch"
        " 2024-06-11 00:00:00+00:00"
    )
