"""Every malformed file: code 2, one line that says where and why, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import CLUSTER, JOBS, LIBRARY, MEASUREMENTS

HEAD = "name,application,scale,arrival_s,deadline_s\n"


def refused(run, files, *extra: str, jobs: str | None = None) -> str:
    """Run plan, check that it is refused properly, and return the line."""
    path = files.path("schedule.json")
    ran = run("plan", files.cluster, jobs or files.jobs, *extra, "--output", path)
    assert ran.code == 2, ran
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert "Traceback" not in ran.err
    assert not Path(path).exists()
    assert not [name for name in Path(files.folder).iterdir() if name.name.endswith(".tmp")]
    return str(ran.err)


JOB_FAULTS = {
    "missing column": (JOBS.replace("application,", "app,"), ["jobs.csv", "application"]),
    "wrong type": (JOBS.replace("b,train,1", "b,train,one"), ["line 3", "scale", "one"]),
    "not a number": (JOBS.replace("b,train,1", "b,train,nan"), ["line 3", "scale", "nan"]),
    "negative duration": (JOBS.replace("b,train,1", "b,train,-1"), ["line 3", "scale", "-1"]),
    "deadline before arrival": (
        JOBS.replace("5,60", "5,3"),
        ["line 3", "deadline_s=3.0", "arrival_s=5.0", "'b'"],
    ),
    "duplicate name": (JOBS.replace("\nb,", "\na,"), ["line 3", "name", "'a'"]),
    "unknown application": (JOBS.replace("b,train", "b,trian"), ["line 3", "trian"]),
    "empty set": (HEAD, ["jobs.csv"]),
    "empty file": ("", ["jobs.csv"]),
    "ragged row": (JOBS + "e,train,1,0,5,9,9\n", ["line 6"]),
    "unknown column": (JOBS.replace("scale", "sacle"), ["sacle"]),
    "cycle": (
        "name,application,after\na,train,b\nb,train,a\n",
        ["jobs.csv", "cycle"],
    ),
    "infinite arrival": (JOBS.replace("b,train,1,5", "b,train,1,inf"), ["line 3", "arrival_s"]),
}


@pytest.mark.parametrize("fault", JOB_FAULTS)
def test_a_fault_in_the_jobs(run, files, fault):
    text, words = JOB_FAULTS[fault]
    files.write("jobs.csv", text)
    line = refused(run, files)
    for word in words:
        assert word in line


def test_a_line_of_ten_megabytes(run, files):
    files.write("jobs.csv", HEAD + "x" * 10_000_000 + "\n")
    line = refused(run, files)
    assert "line 2" in line
    assert len(line) < 400


def test_the_wrong_encoding(run, files):
    files.write("jobs.csv", JOBS.encode() + "caf\u00e9,train,1,0,9\n".encode("latin-1"))
    line = refused(run, files)
    assert "jobs.csv line 6" in line
    assert "UTF-8" in line


def test_utf16(run, files):
    files.write("jobs.csv", JOBS.encode("utf-16"))
    assert "jobs.csv" in refused(run, files)


def test_a_byte_order_mark_and_windows_line_ends_just_work(run, files):
    plain = run("plan", files.cluster, files.jobs, "--format", "csv", "--policy", "race")
    files.write("jobs.csv", b"\xef\xbb\xbf" + JOBS.replace("\n", "\r\n").encode())
    marked = run("plan", files.cluster, files.jobs, "--format", "csv", "--policy", "race")
    assert (marked.code, marked.err) == (0, "")
    assert marked.out.split(",")[:20] == plain.out.split(",")[:20]


def test_a_folder_instead_of_a_file(run, files):
    for name in ("folder.csv", "folder"):
        (files.folder / name).mkdir()
        line = refused(run, files, jobs=files.path(name))
        assert f"{name}: is a folder" in line


def test_a_file_that_is_not_there(run, files):
    line = refused(run, files, jobs=files.path("none.csv"))
    assert "none.csv" in line
    assert "no such file" in line


def test_a_file_one_may_not_read(run, files, monkeypatch):
    original = Path.read_bytes

    def locked(path: Path) -> bytes:
        if path.name == "cluster.toml":
            raise PermissionError(13, "Permission denied", str(path))
        return original(path)

    monkeypatch.setattr(Path, "read_bytes", locked)
    line = refused(run, files)
    assert "cluster.toml" in line
    assert "permission" in line


CLUSTER_FAULTS = {
    "not TOML": ("[[kind\n", ["cluster.toml line 1"]),
    "unknown key": (CLUSTER.replace("idle_w", "idle_watts"), ["idle_watts"]),
    "wrong type": (CLUSTER.replace("10.0", '"ten"'), ["idle_w", "ten"]),
    "negative power": (CLUSTER.replace("10.0", "-10.0"), ["idle_w", "-10"]),
    "unknown kind": (CLUSTER.replace('kind = "gpu"', 'kind = "tpu"'), ["tpu", "gpu"]),
    "no servers": (CLUSTER.partition("[[server]]")[0], ["cluster.toml", "server"]),
    "no library": (CLUSTER.replace('applications = "library.json"', ""), ["applications"]),
    "library not there": (CLUSTER.replace("library.json", "gone.json"), ["gone.json"]),
    "clocks upside down": (CLUSTER.replace("[0.5, 1.0]", "[1.0, 0.5]"), ["core", "kind 'gpu'"]),
}


@pytest.mark.parametrize("fault", CLUSTER_FAULTS)
def test_a_fault_in_the_cluster(run, files, fault):
    text, words = CLUSTER_FAULTS[fault]
    files.write("cluster.toml", text)
    line = refused(run, files)
    for word in words:
        assert word in line


def test_an_objective_without_prices_says_how_to_give_them(run, files):
    line = refused(run, files, "--objective", "cost")
    assert line == (
        "error: objective 'cost': needs a price, and there is none"
        " (--prices FILE, or [prices] in the cluster, has prices and CO2)\n"
    )
    assert "needs a carbon intensity, and there is" in refused(run, files, "--objective", "carbon")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="there are no devices here")
def test_a_device_is_not_given_a_suffix(run, files):
    ran = run("plan", files.cluster, files.jobs, "--output", "/dev/null")
    assert ran.code == 2
    assert ran.err.startswith("error: /dev/null: is no file, and a suffix is added to")
    assert not Path("/dev/null.json").exists()


@pytest.mark.parametrize("specs", ["", "race,,edl", "race,", " "])
def test_a_policy_without_a_name(run, files, specs):
    ran = run("compare", files.cluster, files.jobs, "--policies", specs)
    assert (ran.code, ran.out) == (2, "")
    assert f"{specs!r} has an empty name between commas" in ran.err


LIBRARY_FAULTS = {
    "not JSON": (LIBRARY[:60], ["library.json"]),
    "negative": (LIBRARY.replace('"c_w": 60', '"c_w": -60'), ["train", "c_w", "-60"]),
    "unknown model": (LIBRARY.replace('"model": "gpu"', '"model": "tpu"'), ["train", "tpu"]),
    "missing field": (LIBRARY.replace('"c_w": 60,', ""), ["train", "c_w"]),
    "nested too deep": ("[" * 100_000, ["library.json"]),
}


@pytest.mark.parametrize("fault", LIBRARY_FAULTS)
def test_a_fault_in_the_library(run, files, fault):
    text, words = LIBRARY_FAULTS[fault]
    files.write("library.json", text)
    line = refused(run, files)
    for word in words:
        assert word in line


PRICE_FAULTS = {
    "no value column": ("time_s,cost\n0,1\n", ["prices.csv"]),
    "not a number": ("time_s,price_per_kwh\n0,1\n60,cheap\n", ["line 3", "cheap"]),
    "backwards": ("time_s,price_per_kwh\n60,1\n0,2\n", ["prices.csv", "line 3"]),
    "too short": ("time_s,price_per_kwh\n0,1\n1,1\n", ["default", "2 s"]),
}


@pytest.mark.parametrize("fault", PRICE_FAULTS)
def test_a_fault_in_the_prices(run, files, fault):
    text, words = PRICE_FAULTS[fault]
    line = refused(run, files, "--prices", files.write("prices.csv", text))
    for word in words:
        assert word in line


SCHEDULE_FAULTS = {
    "unknown task": (
        "task,processor,start_s,end_s\nz,s1/1,0,20\n",
        ["plan.csv line 2", "task", "z"],
    ),
    "unknown processor": ("task,processor,start_s,end_s\na,s9/1,0,20\n", ["line 2", "s9/1"]),
    "wrong type": ("task,processor,start_s,end_s\na,s1/1,soon,20\n", ["line 2", "soon"]),
    "missing column": ("task,start_s,end_s\na,0,20\n", ["plan.csv", "processor"]),
}


@pytest.mark.parametrize("command", ["verify", "account", "show"])
@pytest.mark.parametrize("fault", SCHEDULE_FAULTS)
def test_a_fault_in_a_schedule(run, files, command, fault):
    text, words = SCHEDULE_FAULTS[fault]
    path, out = files.write("plan.csv", text), files.path("out.json")
    ran = run(command, files.cluster, files.jobs, path, "--output", out)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert not Path(out).exists()
    for word in words:
        assert word in ran.err


MEASUREMENT_FAULTS = {
    "missing column": (MEASUREMENTS.replace("power_w", "watts"), ["runs.csv", "power_w"]),
    "zero time": (MEASUREMENTS.replace("20,60", "0,60"), ["line 2", "time_s", "slow"]),
    "no clock varies": (
        "application,core_mhz,time_s,power_w\nx,1000,1,9\n",
        ["runs.csv", "'x'"],
    ),
}


@pytest.mark.parametrize("fault", MEASUREMENT_FAULTS)
def test_a_fault_in_measurements(run, files, fault):
    text, words = MEASUREMENT_FAULTS[fault]
    path, out = files.write("runs.csv", text), files.path("fitted.json")
    ran = run("fit", path, "--kind", "gpu", "--default-core-mhz", "1000", "--output", out)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1
    assert not Path(out).exists()
    for word in words:
        assert word in ran.err


@pytest.mark.parametrize(
    ("name", "word"),
    [("plan.xml", ".json"), ("nowhere/plan.json", "folder does not exist"), ("dir.json", "folder")],
)
def test_an_output_that_cannot_be_written_is_refused_before_planning(run, files, name, word):
    (files.folder / "dir.json").mkdir()
    ran = run("plan", files.cluster, files.jobs, "--output", files.path(name))
    assert (ran.code, ran.out) == (2, "")
    assert word in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_failed_write_leaves_the_old_file(run, files):
    old = files.write("schedule.json", "precious")
    files.write("jobs.csv", HEAD)
    assert run("plan", files.cluster, files.jobs, "--output", old).code == 2
    assert Path(old).read_text() == "precious"


@pytest.mark.parametrize("command", ["ssh 'gpu1 recover", "downclock agent recover --all", ""])
def test_a_command_for_nodes_that_names_none_is_refused(run, command):
    """Run as it is it would reset the clocks of this machine only, and say that all are reset."""
    ran = run("slurm", "uninstall", "site.toml", "--on-node", command)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "is not a command with {node} in it" in ran.err


def test_a_spool_that_is_not_there_is_no_empty_one(run, files):
    ran = run("account", files.cluster, files.jobs, "s.json", "--measured", files.path("nowhere"))
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "'--measured': Directory" in ran.err


def test_explain_without_a_task_asks_for_its_name(run, files):
    schedule = files.path("schedule.json")
    assert run("plan", files.cluster, files.jobs, "--output", schedule).code == 0
    ran = run("explain", files.cluster, files.jobs, schedule)
    assert ran.code == 2
    assert "a schedule, and the name of a task" in ran.err
