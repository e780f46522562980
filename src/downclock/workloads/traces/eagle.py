"""Eagle: Slurm accounting of NREL's cluster as it was published (github.com/NREL/eagle-jobs)."""

from __future__ import annotations

from downclock.workloads.traces.trace import Column, Format

EAGLE = Format(
    "eagle",
    {
        "name": Column(("job_id",)),
        "submit": Column(("submit_time",), "stamp"),
        "start": Column(("start_time",), "stamp"),
        "end": Column(("end_time",), "stamp"),
        "run": Column(("run_time",), "seconds"),
        "limit": Column(("wallclock_req",), "seconds"),
        "gpus": Column(("gpus_req",), "count"),
        "nodes": Column(("nodes_req",), "count"),
        "cpus": Column(("processors_req",), "count"),
        "queue": Column(("partition",)),
    },
    signature=("job_id", "wallclock_req", "gpus_req", "submit_time", "run_time"),
    repeats=True,
    notes=("rows that share a job_id are tasks of a job array",),
)
