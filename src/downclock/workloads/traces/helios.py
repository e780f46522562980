"""Helios and Acme: jobs of two companies' GPU clusters (Hu et al., SC 2021 and NSDI 2024)."""

from __future__ import annotations

from downclock.workloads.traces.trace import Column, Format

HELIOS = Format(
    "helios",
    {
        "name": Column(("job_id",)),
        "submit": Column(("submit_time",), "stamp"),
        "start": Column(("start_time",), "stamp"),
        "end": Column(("end_time",), "stamp"),
        "run": Column(("duration",), "seconds"),
        "gpus": Column(("gpu_num",), "count"),
        "nodes": Column(("node_num",), "count"),
        "cpus": Column(("cpu_num",), "count"),
        "queue": Column(("vc", "queue")),
    },
    signature=("job_id", "gpu_num", "submit_time", "start_time", "duration"),
)
