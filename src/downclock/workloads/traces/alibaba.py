"""Alibaba's GPU cluster of 2023 (Weng et al., ATC 2023): pods, and the nodes they ran on.

A pod may ask for a part of a GPU (``gpu_milli``). Nodes are no jobs: they become a cluster.
"""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path
from typing import Any

from downclock.errors import InvalidInput
from downclock.power.archetypes import CARDS
from downclock.workloads.traces.cells import quantity, text
from downclock.workloads.traces.ledger import NEVER_STARTED, Ledger
from downclock.workloads.traces.made_cluster import IDLE_W, server_data
from downclock.workloads.traces.rows import Sheet
from downclock.workloads.traces.trace import Column, Format, Job

NODES = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
"""Columns of the list of nodes."""


def _of_one_gpu(cell: Any) -> float:
    milli = quantity(cell)
    if milli > 1000.0:
        raise ValueError("must be at most 1000, a whole GPU")
    return milli / 1000.0


def _amend(job: Job) -> str | None:
    """Only a single GPU is shared; a pod that was never scheduled did not run."""
    if job["gpus"] != 1.0 or math.isnan(job["part"]):
        job["part"] = 1.0
    return NEVER_STARTED if math.isnan(job["start"]) else None


PODS = Format(
    "alibaba",
    {
        "name": Column(("name",)),
        "submit": Column(("creation_time",), "seconds"),
        "start": Column(("scheduled_time",), "seconds"),
        "end": Column(("deletion_time",), "seconds"),
        "gpus": Column(("num_gpu",), "count"),
        "part": Column(("gpu_milli",), _of_one_gpu),
        "kind": Column(("gpu_spec",)),
    },
    signature=("name", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time"),
    notes=("a pod runs from when it was scheduled until it was deleted",),
    amend=_amend,
)


def cluster_of_nodes(sheet: Sheet, ledger: Ledger, card: str) -> dict[str, Any]:
    """Return the cluster that a list of nodes describes, as a cluster file holds it.

    A model without public measurements is taken for ``card``.

    Raises:
        InvalidInput: no node has a GPU.
    """
    place = {name: k for k, name in enumerate(sheet.header)}
    nodes: Counter[tuple[str, int]] = Counter()
    for line, cells in sheet.rows:
        try:
            gpus, model = quantity(cells[place["gpu"]]), text(cells[place["model"]])
            if gpus < 0.0 or gpus % 1.0 > 0.0:
                raise ValueError("must be a whole number of GPUs")
        except ValueError as error:
            ledger.malformed(line, str(error), "gpu", cells[place["gpu"]])
            continue
        if not gpus >= 1.0:
            ledger.drop("without a GPU")
            continue
        if not model:
            ledger.drop("without a model")
            continue
        nodes[model, int(gpus)] += 1
    if not nodes:
        raise InvalidInput("no node has a GPU", source=ledger.source)
    models = sorted({model for model, _ in nodes})
    counts = sorted(nodes.items())
    servers = [server_data(f"{m}-{gpus}x", m, gpus, many) for (m, gpus), many in counts]
    return {
        "name": Path(ledger.source).stem,
        "kind": [{"name": model, "card": _card(model, card), "idle_w": IDLE_W} for model in models],
        "server": servers,
    }


def _card(model: str, otherwise: str) -> str:
    """The card with public measurements that a model is; V100M16 is a V100."""
    return next((card for card in CARDS if model.lower().startswith(card)), otherwise)
