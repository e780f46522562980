"""Philly: jobs of Microsoft's cluster (Jeon et al., ATC 2019), in two layouts of its users.

The one of ElasticFlow and Pollux has submission, run time, GPUs and virtual cluster; the one of
Chronus adds models and deadlines that its authors drew. The trace itself is under CC BY 4.0.
"""

from __future__ import annotations

from downclock.workloads.traces.trace import Column, Format

PHILLY = Format(
    "philly",
    {
        "submit": Column(("timestamp",), "stamp"),
        "run": Column(("duration",), "seconds"),
        "gpus": Column(("num_gpus",), "count"),
        "queue": Column(("cluster",)),
    },
    signature=("timestamp", "duration", "num_gpus", "gpu_time", "cluster"),
    pools=True,
    notes=("each virtual cluster has machines of its own",),
)

CHRONUS = Format(
    "philly-slo",
    {
        "name": Column(("job_id",)),
        "submit": Column(("submit_time",), "seconds"),
        "run": Column(("duration",), "seconds"),
        "gpus": Column(("num_gpu",), "count"),
        "within": Column(("expect_time_list",), "seconds"),
        "application": Column(("model_name",)),
        "queue": Column(("user",)),
    },
    signature=("job_id", "num_gpu", "submit_time", "iterations", "model_name", "expect_time_list"),
    pools=True,
    notes=(
        "each virtual cluster has machines of its own",
        "deadlines are those of the file, which its authors drew",
    ),
)
