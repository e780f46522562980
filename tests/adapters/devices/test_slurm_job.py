"""Job records that lie: names, comments and paths of their owners inject nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from downclock.adapters.devices.device import Setting
from downclock.adapters.devices.slurm_job import JobRecord, ended_well, job_of
from downclock.errors import InvalidInput
from tests.adapters.devices.conftest import RECORD, SHOWN, Node


def record(name: str = "train", comment: str = "(null)", **how: object) -> JobRecord:
    told = {**SHOWN, **how}
    return JobRecord(b" " + RECORD.format(job=7, name=name, comment=comment, **told).encode())


@pytest.mark.parametrize(
    ("comment", "setting"),
    [
        ("downclock core_mhz=1005 memory_mhz=877 reason=late", Setting(1005, 877)),
        ("downclock core_mhz=1005 | core_mhz=210", Setting(1005)),
        ("downclock power_limit_w=200.5", Setting(power_limit_w=200.5)),
        ("downclock core_mhz=1005 core_mhz=900", Setting(900)),
        ("downclock core_mhz=1e9", Setting()),
        ("downclock core_mhz=-5", Setting()),
        ("downclock core_mhz=9999999999999", Setting()),
        ("downclock core_mhz=$(reboot)", Setting()),
        ("downclock core_mhz=\u0661\u0662", Setting()),
        ("downclock", Setting()),
        ("downclock=off", Setting()),
        ("mine downclock core_mhz=1005", Setting()),
        ("(null)", Setting()),
    ],
)
def test_a_comment_is_read_as_the_few_words_it_may_hold(comment: str, setting: Setting) -> None:
    assert record(comment=comment).asked()[0] == setting


def test_two_plans_in_one_record_are_none() -> None:
    liar = record("x Comment=downclock core_mhz=210", "downclock core_mhz=1005")
    assert liar.asked() == (Setting(), "two plans in one job record")


def test_a_name_that_pretends_to_be_other_fields_changes_neither_state_nor_attempt() -> None:
    name = "x UserId=root(0) JobState=COMPLETED Reason=None Requeue=1 Restarts=9 BatchFlag=1"
    liar = record(name, restarts=2)
    assert liar.name == "x"
    assert liar.running is None  # two answers are none: clocks are reset
    assert liar.attempt == 0
    assert (record(restarts=2).attempt, record().running) == (2, True)
    assert record(state="TIMEOUT").running is False


TOLD = {"SLURM_JOB_ID": "7", "SLURM_JOB_GPUS": "0", "SLURM_JOB_RESTART_COUNT": "0",
        "SLURM_JOB_EXIT_CODE2": "0:0", "SLURM_JOB_NUM_NODES": "1"}  # fmt: skip
"""What slurmd of 22.05.8 tells the Epilog of a job that ended well."""

ENDS, RUNS, WAITS = ({"state": word} for word in ("COMPLETING", "RUNNING", "PENDING"))
ENDINGS = {  # as seen on 22.05.8: what the Epilog is told, what the record shows, has it run?
    "by itself": ({}, ENDS, True),
    "failed": ({"SLURM_JOB_EXIT_CODE2": "3:0"}, {**ENDS, "exit": "3:0"}, False),
    "cancelled": ({}, {**ENDS, "exit": "0:15"}, False),
    "requeued": ({"SLURM_JOB_RESTART_COUNT": "1"}, {**ENDS, "restarts": 1}, False),
    "its end forgotten": ({}, RUNS, True),
    "start and end forgotten": ({}, WAITS, True),
    "start forgotten, so ended": ({"SLURM_JOB_NUM_NODES": ""}, WAITS, False),
    "forgotten and failed": ({"SLURM_JOB_EXIT_CODE2": "1:0"}, RUNS, False),
    "an older Slurm, its end forgotten": ({"SLURM_JOB_EXIT_CODE2": ""}, RUNS, None),
    "an older Slurm, start forgotten": ({"SLURM_JOB_EXIT_CODE2": ""}, WAITS, False),
}  # fmt: skip


@pytest.mark.parametrize("how", ENDINGS)
def test_a_run_that_ended_by_itself_is_told_from_one_that_was_cut(how: str) -> None:
    environment, shown, well = ENDINGS[how]
    assert ended_well(job_of({**TOLD, **environment}), record(**shown), 0) is well


def test_where_slurm_does_not_answer_the_node_knows() -> None:
    gone = JobRecord(trouble="it is away")
    assert ended_well(job_of(TOLD), gone, 0) is True
    assert ended_well(job_of({**TOLD, "SLURM_JOB_NUM_NODES": ""}), gone, 0) is False
    assert ended_well(job_of({**TOLD, "SLURM_JOB_EXIT_CODE2": ""}), gone, 0) is None


@pytest.mark.parametrize(
    ("restarts", "shown", "well"),
    [
        (0, RUNS, True),  # no attempt was requeued
        (0, WAITS, True),
        (1, {**ENDS, "restarts": 1}, True),
        (1, {**ENDS, "restarts": 1, "run": "00:00:00"}, False),  # it is requeued just now
        (1, {**RUNS, "restarts": 1}, None),  # its end was forgotten, or the requeue
        (1, {**WAITS, "restarts": 1}, False),
    ],
)
def test_where_the_prolog_was_killed_the_count_of_requeues_and_the_run_time_tell(
    restarts: int, shown: dict[str, object], well: bool | None
) -> None:
    """Nobody knows then which attempt it was."""
    job = job_of({**TOLD, "SLURM_JOB_RESTART_COUNT": str(restarts)})
    assert ended_well(job, record(**shown), None) is well


HOSTILE = st.one_of(
    st.text(max_size=200),
    st.sampled_from(
        ["$(touch /tmp/x)", "`id`", "'; rm -rf / #", "a\nComment=downclock core_mhz=1"]
    ),
    st.text(alphabet="=| \n\t\0\x1b[;'\"$()", max_size=10_000),
)


@given(HOSTILE, HOSTILE)
def test_whatever_an_owner_writes_is_read_without_error(name: str, comment: str) -> None:
    text = RECORD.format(job=7, name=name, comment=comment, **SHOWN)
    liar = JobRecord(b" " + text.encode("utf-8", "surrogatepass"))
    setting, _ = liar.asked()
    assert setting.core_mhz is None or 0 <= setting.core_mhz <= 999_999
    assert len(liar.name) <= 256
    assert liar.name.isprintable()


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_without_error(text: bytes) -> None:
    liar = JobRecord(b" " + text)
    assert isinstance(liar.asked()[1], str)
    assert liar.running in (True, False, None)


def test_a_hostile_job_goes_through_the_agent(node: Node) -> None:
    """Quotes, line breaks, 10 kB, invalid UTF-8: the job is set as planned, its name harmless."""
    node.job(7)
    plan = b"downclock core_mhz=900 reason=x | \xff\xfe $(touch pwned) '\"\n" + 10_000 * b"y"
    name = b"\xff\n\x1b[2J`touch pwned` " + 10_000 * b"z"
    path = node.folder / "slurm" / "7"
    raw = path.read_bytes().replace(b"(null) StdErr", plan + b" StdErr")
    path.write_bytes(raw.replace(b"JobName=train", b"JobName=" + name))
    hostile = Node(node.folder, node.gpus, {"SLURM_JOB_USER": "a\n$(touch pwned)'\""})
    assert hostile.agent("prolog", 7, "0").returncode == 0
    assert hostile.agent("epilog", 7, "0").returncode == 0
    (gpu,) = node.ended(7)["gpus"]
    assert (gpu["core_mhz"], gpu["set"]) == (900, True)
    assert node.spooled(7)["job_name"].isprintable()
    assert node.spooled(7)["user"] == "a $(touch pwned)'\""
    assert not list(node.folder.rglob("pwned"))


@pytest.mark.parametrize("job", ["", "7;id", "../7", "7 8", "-1", "9" * 13, "٣"])
def test_only_digits_are_a_job(job: str) -> None:
    with pytest.raises(InvalidInput, match="is not a job"):
        job_of({"SLURM_JOB_ID": job})


def test_the_environment_names_the_gpus_in_any_of_slurms_ways() -> None:
    base = {"SLURM_JOB_ID": "7", "SLURMD_NODENAME": "../n 1"}
    for listed, gpus in {
        "0,2": ("0", "2"),
        "0-2,5": ("0", "1", "2", "5"),
        "GPU-ab-12": ("GPU-ab-12",),
        "MIG-1,$(id),9-1,": (),
        "0-99999999999": (),
    }.items():
        job = job_of({**base, "SLURM_JOB_GPUS": listed})
        assert (job.gpus, job.node) == (gpus, ".._n_1")
