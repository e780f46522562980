"""Exit codes, one line of complaint, help that fits a screen, a quick start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from downclock.cli.app import COMMANDS

HEAVY = ("numpy", "numba", "scipy", "pyarrow", "matplotlib", "rich")


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "downclock", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_help_fits_a_screen_and_has_an_example(run, name):
    ran = run(*([name] if name else []), "--help")
    assert ran.code == 0
    long = {"convert": 75, "whatif": 55}  # traces leave much open
    most = long.get(name, 40) if name else 20 + len(COMMANDS)
    assert len(ran.out.splitlines()) <= most
    assert "Example" in ran.out
    assert "downclock " + name in ran.out


def test_help_documents_every_exit_code(run):
    out = run("--help").out
    for code in ("0", "1", "2", "3", "130"):
        assert any(line.split()[:1] == [code] for line in out.splitlines())


def test_help_and_import_load_nothing_heavy():
    script = (
        "import sys, json\n"
        "import downclock\n"
        "from downclock.cli import main\n"
        "code = main(['--help'])\n"
        f"print(json.dumps([code, [m for m in {HEAVY!r} if m in sys.modules]]))"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout.splitlines()[-1]) == [0, []]


def test_without_a_command_the_help_is_printed(run):
    bare = run()
    assert (bare.code, bare.out, bare.err) == (0, run("--help").out, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_full_disk_is_no_bug():
    with open("/dev/full", "w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "downclock", "policies"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert ran.returncode == 2
    assert ran.stderr == "error: standard output: cannot be written: No space left on device\n"


def test_version(run):
    from importlib.metadata import version

    assert run("--version").out == f"downclock {version('downclock')}\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan",),
        ("plan", "one", "two", "three"),
        ("plan", "cluster.toml"),
        ("nonsense",),
        ("plan", "a", "b", "--nonsense"),
        ("plan", "a", "b", "--boundary", "soon"),
        ("plan", "a", "b", "--boundary", "-5"),
        ("plan", "a", "b", "--boundary", "nan"),
        ("plan", "a", "b", "--format", "xml"),
        ("fit", "x.csv", "--default-core-mhz", "1"),
        ("fit", "x.csv", "--kind", "g", "--append"),
        ("fit", "x.csv", "--kind", "g", "--clocks", "700"),
        ("fit", "x.csv", "--kind", "g", "--clocks", "900-700"),
        ("fit", "x.csv", "--kind", "g", "--default-core-mhz", "1", "--columns", "time_s"),
        ("generate", "mei2021-offline", "--task-utilisation", "0.9,0.1", "--output", "x.json"),
        ("generate", "mei2021-offline", "--days", "2", "--output", "x.json"),
        ("generate", "mei2021-offline", "--pairs", "10", "--per-server", "4", "--output", "x.json"),
        ("generate", "mei2021-offline", "--utilisation", "nan", "--output", "x.json"),
        ("verify", "only-one.json"),
        ("verify", "cluster.toml", "jobs.csv"),
        ("completion", "tcsh"),
    ],
)
def test_wrong_use_is_one_line_and_code_2(run, arguments):
    ran = run(*arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert "--help" in ran.err


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("nonsense", ["nonsense", "edl"]),
        ("edl:speed=3", ["edl", "speed", "theta"]),
        ("edl:theta=fast", ["theta", "fast"]),
        ("edl:theta=-1", ["theta"]),
        ("edl:rho=-5", ["rho"]),
        ("edl:theta", ["theta needs a value"]),
        ("edl:theta=1,theta=0.5", ["theta is given twice"]),
        ("known:seed=1.5", ["seed=1.5 must be a whole number"]),
    ],
)
def test_a_wrong_policy_is_named_with_what_is_known(run, files, spec, words):
    ran = run("plan", files.cluster, files.jobs, "--policy", spec)
    assert ran.code == 2, ran.err
    assert len(ran.err.splitlines()) == 1
    for word in words:
        assert word in ran.err


def test_an_internal_error_says_how_to_report_it(run, files, monkeypatch):
    monkeypatch.setattr("downclock.study.summary.summarise", _broken)
    ran = run("plan", files.cluster, files.jobs)
    assert ran.code == 3
    assert len(ran.err.splitlines()) == 1
    for word in ("internal error", "ZeroDivisionError", "report", "DOWNCLOCK_DEBUG"):
        assert word in ran.err


def test_too_large_a_problem_is_no_bug(run, files):
    """1e12 times 2048 tasks: refused by the allocator at once."""
    ran = run(
        "generate", "mei2021-offline", "--utilisation", "1e12", "--output", files.path("p.json")
    )
    assert ran.code == 3
    assert "not enough memory" in ran.err
    assert len(ran.err.splitlines()) == 1


def test_debug_shows_where(run, files, monkeypatch):
    monkeypatch.setattr("downclock.study.summary.summarise", _broken)
    ran = run("--debug", "plan", files.cluster, files.jobs)
    assert ran.code == 3
    assert "Traceback" in ran.err
    assert "in _broken" in ran.err


def _broken(*_: object, **__: object) -> None:
    raise ZeroDivisionError("division by zero")


def test_an_interrupt_says_what_was_saved(run, files, monkeypatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    path = files.path("schedule.json")
    monkeypatch.setattr("downclock.cli.session._print", interrupted)
    ran = run("plan", files.cluster, files.jobs, "--output", path)
    assert ran.code == 130
    assert ran.err.splitlines()[-1] == f"interrupted; saved: {path}"
    assert Path(path).exists()


def test_an_interrupt_before_anything_was_saved_says_so(run, files, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    path = files.path("schedule.json")
    monkeypatch.setattr("downclock.study.summary.summarise", interrupted)
    ran = run("plan", files.cluster, files.jobs, "--output", path)
    assert ran.code == 130
    assert ran.err.splitlines()[-1] == "interrupted; nothing was written"
    assert not Path(path).exists()


def test_a_reader_that_leaves_early_is_no_error(files):
    """As `downclock policies | head -1` does."""
    process = subprocess.Popen(
        [sys.executable, "-m", "downclock", "policies"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (0, b"")


def test_a_terminal_without_unicode_still_gets_its_tables():
    ran = command("policies", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert "static-cap" in ran.stdout
    assert ran.stdout.isascii()


def test_tables_keep_to_the_width_of_the_terminal():
    for columns in ("60", "140"):
        ran = command("policies", COLUMNS=columns)
        assert max(len(line) for line in ran.stdout.splitlines()) <= int(columns)


def test_the_shell_completes_commands_and_options():
    ran = command(_DOWNCLOCK_COMPLETE="bash_complete", COMP_WORDS="downclock ver", COMP_CWORD="1")
    assert ran.stdout.split() == ["plain,verify"]
    words = {"COMP_WORDS": "downclock plan --bou", "COMP_CWORD": "2"}
    ran = command(_DOWNCLOCK_COMPLETE="bash_complete", **words)
    assert ran.stdout.split() == ["plain,--boundary"]


def test_a_misspelt_word_names_the_one_that_was_meant(run, files):
    both = [files.cluster, files.jobs]
    for arguments, meant in (
        (["plann", *both], "No such command 'plann'; did you mean 'plan'?"),
        (["plan", *both, "--outptu", "x.json"], "'--outptu'. Did you mean '--output'?"),
        (["plan", *both, "--policy", "lat"], "policy='lat' is not a policy; did you mean 'late'?"),
        (["plan", *both, "--policy", "edl:thet=1"], "did you mean 'theta'?"),
        (["policies", "rase"], "did you mean 'race'?"),
    ):
        ran = run(*arguments)
        assert (ran.code, ran.out) == (2, "")
        assert meant in ran.err


def test_prices_of_others_are_read_by_their_own_column_names(run, files):
    prices = files.write("day-ahead.csv", "MTU,EUR/MWh,note\n0,100,x\n3600,200,y\n")
    both = [files.cluster, files.jobs, "--prices", prices]
    assert "column 'MTU': is not a known column" in run("plan", *both).err
    named = run("plan", *both, "--columns", "time_s=MTU,price_eur_per_mwh=EUR/MWh")
    assert named.code == 0
    assert "money" in named.out
    wrong = run("plan", *both, "--columns", "time_s=MTU,price_eur_per_mwh=EUR/MW")
    assert "no column 'EUR/MW'; did you mean 'EUR/MWh'?" in wrong.err
    assert "'when': is no column of prices" in run("plan", *both, "--columns", "when=MTU").err
    alone = run("plan", files.cluster, files.jobs, "--columns", "time_s=MTU")
    assert "--columns is about the price file: give it with --prices" in alone.err


@pytest.mark.parametrize("option", ["--gantt", "--power"])
def test_a_missing_extra_is_named_before_any_work(run, files, option, monkeypatch):
    schedule = files.path("schedule.json")
    assert run("plan", files.cluster, files.jobs, "-o", schedule, "-q").code == 0
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    page = files.path("page.html")
    given = [files.cluster, files.jobs, schedule, "-o", page, option, files.path("x.svg")]
    ran = run("report", *given)
    assert ran.code == 2
    rule = "drawing a figure needs the package 'matplotlib': pip install 'downclock[plot]'"
    assert ran.err == f"error: {rule}\n"
    assert not os.path.exists(page)
