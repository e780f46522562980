"""The paper's own numbers: every printed cell, and the corrected tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from downclock.papers.gerards import items, published, tables
from downclock.papers.gerards.readings import (
    APPLICATIONS,
    CORRECTED,
    PUBLISHED,
    Reading,
    application,
    random_graphs,
)
from downclock.papers.rows import Settings


def golden(shared_data: Path, reading: Reading) -> dict:
    path = shared_data.parent / "expected" / "gerards-golden.json"
    if not path.is_file():
        pytest.skip("golden numbers absent")
    name = "paper_reading_w_shifted" if reading.shifted else "correct"
    return json.loads(path.read_text())[name]


@pytest.mark.parametrize("reading", [PUBLISHED, CORRECTED], ids=lambda r: r.name)
def test_table_1_equals_the_golden_numbers(shared_data: Path, reading: Reading) -> None:
    known = golden(shared_data, reading)["table1_d=2W_c3=[0,0.1,0.2,0.4]"]
    graphs = [reading.graph(graph) for graph in random_graphs(shared_data / "stg" / "rand50")]
    for cores in (2, 5, 12):
        for k, static_w in enumerate((0.0, 0.1, 0.2, 0.4)):
            ours = tables.ratios(graphs, cores, static_w)
            found = [ours.mean(), ours.min(), ours.max()]
            assert found == pytest.approx(known[str(cores)][k], abs=1.1e-5)


@pytest.mark.parametrize("reading", [PUBLISHED, CORRECTED], ids=lambda r: r.name)
def test_table_2_equals_the_golden_numbers(shared_data: Path, reading: Reading) -> None:
    known = golden(shared_data, reading)["table2_d=W"]
    for name in APPLICATIONS:
        graph = reading.graph(application(shared_data / "stg" / "apps", name))
        for cores in range(2, 13):
            cell = known[name][str(cores)]
            expected = [cell["E_single"], cell["E_global"], cell["E_local"]]
            assert tables.energies(graph, cores) == pytest.approx(expected, abs=1e-4)


@pytest.mark.slow
def test_all_198_printed_cells(shared_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOWNCLOCK_DATA", str(shared_data))
    for name in ("table1-published", "table2-published"):
        rows = items()[name].run(Settings())
        assert len(rows) == 99
        assert [row.quantity for row in rows if row.verdict != "exact"] == []


def test_examples_and_figures_need_no_data() -> None:
    found = {
        row.quantity: row
        for name in ("example1", "example2", "fig5", "fig6")
        for row in items()[name].run(Settings())
    }
    assert found["energy"].verdict == "exact"
    assert found["alternative"].verdict == "contradicts itself"
    assert found["alternative"].ours == pytest.approx(79.074, abs=5e-4)
    assert found["ratio, M=6"].verdict == "holds"
    assert found["saving, M=16, 'up to'"].ours == pytest.approx(44.76, abs=5e-3)


def test_without_data_the_tables_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DOWNCLOCK_DATA", raising=False)
    for name in ("table1-published", "table2-corrected", "fairness"):
        rows = items()[name].run(Settings(quick=True))
        assert {row.verdict for row in rows} == {"not run"}
        assert all("DOWNCLOCK_DATA" in row.note for row in rows)


def test_published_tables_are_complete() -> None:
    cells = [v for row in published.TABLE1.values() for cell in row.values() for v in cell]
    assert len(cells) == 99
    assert sum(len(cell) for app in published.TABLE2.values() for cell in app.values()) == 99
    assert np.all(np.array(cells) <= 1.0)


def test_one_clock_that_knows_about_static_power_is_a_fair_rival(shared_data: Path) -> None:
    """Mean 0.997 (M=2) and 0.966 (M=12) at c3 = 0.4: shared/specs/graphs.md section 3."""
    graphs = [CORRECTED.graph(graph) for graph in random_graphs(shared_data / "stg" / "rand50")]
    for cores, mean in ((2, 0.997), (12, 0.966)):
        fair = tables.ratios(graphs, cores, 0.4, static_aware=True)
        assert float(fair.mean()) == pytest.approx(mean, abs=5e-4)
