"""`once.sh` beside a Slurm that answers from files: what it waits for, holds and writes down."""

from __future__ import annotations

import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT

SCRIPT = ROOT / "src" / "downclock" / "adapters" / "slurm" / "once.sh"

SCONTROL = """\
#!/bin/sh
echo "$*" >>{folder}/asked
[ -e {folder}/away ] && exit 1
case "$1 $2" in
update*)
   [ ! -e {folder}/forbids ] || exit 1
   [ ! -e {folder}/later ] || mv {folder}/later {folder}/record
   ;;
"show job") cat {folder}/record ;;
"show config") echo "BOOT_TIME               = $(cat {folder}/boot)" ;;
esac
"""

RECORD = "JobId=7 JobName=a JobState={state} Requeue=1 StartTime={start} BatchHost={node} Comment=x"


@dataclass(frozen=True)
class Slurm:
    """A controller and a node, as files."""

    folder: Path

    def shows(
        self, state: str = "RUNNING", start: int = 100, node: str = "n1", file: str = "record"
    ) -> None:
        """Let it show the job so; `later`: once it was told something."""
        (self.folder / file).write_text(RECORD.format(state=state, start=start, node=node))

    def started(self, at_s: float) -> None:
        """Let the controller be one that was started then."""
        (self.folder / "boot").write_text(f"{at_s:.0f}\n")

    def task(self, context: str, **more: str) -> subprocess.Popen[bytes]:
        """Run TaskProlog or TaskEpilog."""
        named = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1", "SLURM_SCRIPT_CONTEXT": context}
        words = ["sh", str(self.folder / "once.sh")]
        return subprocess.Popen(words, env={**named, **more}, start_new_session=True)

    def asked(self) -> str:
        """All that was asked for."""
        file = self.folder / "asked"
        return file.read_text() if file.exists() else ""

    def words(self) -> list[str]:
        """Words that it wrote."""
        return sorted(path.name for path in (self.folder / "once").iterdir())


@pytest.fixture
def slurm(tmp_path: Path) -> Slurm:
    (tmp_path / "once").mkdir()
    text = SCRIPT.read_text().replace("/var/lib/downclock/spool/once", str(tmp_path / "once"))
    text = text.replace("PATH=/usr/bin:/bin", f"PATH={tmp_path}:/usr/bin:/bin")
    (tmp_path / "once.sh").write_text(text.replace("SAVED_S=6 ", "SAVED_S=0 "))
    (tmp_path / "scontrol").write_text(SCONTROL.format(folder=tmp_path))
    (tmp_path / "scontrol").chmod(0o755)
    made = Slurm(tmp_path)
    made.shows()
    made.started(0.0)
    return made


def _waits(task: subprocess.Popen[bytes]) -> bool:
    """It goes on for two seconds; then it is ended, as Slurm does."""
    try:
        task.wait(2.0)
    except subprocess.TimeoutExpired:
        os.killpg(task.pid, 9)
        task.wait()
        return True
    return False


def test_a_script_begins_once_its_start_is_saved_and_its_end_is_written_down(slurm: Slurm) -> None:
    assert slurm.task("prolog_task").wait(20) == 0
    assert "update JobId=7 Requeue=1" in slurm.asked()  # has the controller save its jobs
    assert slurm.words() == ["7.begun"]
    began_s = float((slurm.folder / "once" / "7.begun").read_text())
    assert slurm.task("epilog_task").wait(20) == 0
    assert slurm.words() == ["7.ended"]
    assert abs(time.time() - float((slurm.folder / "once" / "7.ended").read_text())) < 60.0
    assert began_s <= (slurm.folder / "once" / "7.ended").stat().st_mtime


@pytest.mark.parametrize(
    "shown",
    [{"state": "PENDING", "start": 0}, {"start": 105}, {"node": "n2"}, {"state": "CONFIGURING"}],
)
def test_a_script_whose_start_was_forgotten_does_not_begin(
    slurm: Slurm, shown: dict[str, object]
) -> None:
    slurm.shows(**shown, file="later")  # type: ignore[arg-type]
    assert _waits(slurm.task("prolog_task"))
    assert not (slurm.folder / "later").exists()
    assert slurm.task("epilog_task").wait(20) == 0
    assert slurm.words() == ["7.waits"]  # whoever finds the job failed knows that it never began


@pytest.mark.parametrize("restarts", ["0", "1"])
def test_a_job_that_ended_is_held_where_the_controller_was_started_since(
    slurm: Slurm, restarts: str
) -> None:
    """A first attempt cannot have ended before: its word is that of another job of the number."""
    word = slurm.folder / "once" / "7.ended"
    word.touch()
    slurm.started(time.time() + 5.0)
    task = slurm.task("prolog_task", SLURM_RESTART_COUNT=restarts)
    assert _waits(task) == (restarts == "1")
    assert ("requeuehold 7" in slurm.asked()) == (restarts == "1")
    if restarts == "1":
        assert word.read_text() == "held\n"
        slurm.started(time.time() - 60.0)  # the one that holds it lives: its owner released it
        assert slurm.task("prolog_task", SLURM_RESTART_COUNT="2").wait(20) == 0
    assert slurm.words() == ["7.begun"]


@pytest.mark.parametrize("state", ["COMPLETING", "PENDING", "CANCELLED", "TIMEOUT"])
def test_a_script_that_the_controller_ends_may_run_again(slurm: Slurm, state: str) -> None:
    slurm.task("prolog_task").wait(20)
    slurm.shows(state)
    slurm.task("epilog_task").wait(20)
    assert slurm.words() == []


def test_an_end_while_the_controller_is_away_is_written_down(slurm: Slurm) -> None:
    slurm.task("prolog_task").wait(20)
    (slurm.folder / "away").touch()
    slurm.task("epilog_task").wait(20)
    assert slurm.words() == ["7.ended"]


def test_a_site_that_lets_owners_change_nothing_keeps_no_script(slurm: Slurm) -> None:
    (slurm.folder / "forbids").touch()
    assert slurm.task("prolog_task").wait(30) == 0
    assert slurm.words() == ["7.begun"]


def test_a_word_that_cannot_be_written_keeps_no_script(slurm: Slurm) -> None:
    """A folder for all may hold somebody else's file of that name."""
    (slurm.folder / "once" / "7.waits").mkdir()
    (slurm.folder / "once" / "7.waits" / "x").touch()
    assert slurm.task("prolog_task").wait(20) == 0


def test_steps_of_a_script_are_let_through(slurm: Slurm) -> None:
    assert slurm.task("prolog_task", SLURM_STEP_ID="0").wait(20) == 0
    assert slurm.asked() == ""
    assert slurm.words() == []
