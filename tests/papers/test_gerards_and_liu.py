"""gerards and liu: claims that hold, claims that do not, slips that we name."""

from __future__ import annotations

import numpy as np
import pytest

from downclock.papers import gerards, liu
from downclock.papers.gerards.theory import coffman_graham, shortest, unit_graph
from downclock.papers.rows import Row, Settings
from downclock.workloads.liu import HD_5770, XEON_5160, Box

FEW = Settings(sets=2, quick=True)


def by_quantity(rows: list[Row]) -> dict[str, Row]:
    return {row.quantity: row for row in rows}


def test_coffman_graham_is_optimal_on_two_cores() -> None:
    """gerards Proposition 1 (i), on graphs where another order is longer."""
    for seed in range(4):
        graph = unit_graph(seed)
        assert coffman_graham(graph) == shortest(graph)
        assert shortest(graph) >= len(graph) / 2


def test_theorem_2_grows_though_its_order_shrinks() -> None:
    rows = by_quantity(gerards.items()["fig5"].run(FEW))
    order = rows["exponent of M in Theorem 2's O()"]
    assert (order.verdict, order.ours) == ("contradicts itself", pytest.approx(2 / 9, abs=1e-4))
    assert rows["ratio, M=6"].verdict == "holds"


def test_72_percent_is_not_in_table_1() -> None:
    rows = by_quantity(gerards.items()["claims"].run(FEW))
    most = rows["static power, up to"]
    assert (most.verdict, most.ours) == ("contradicts itself", pytest.approx(71.1))


def test_a_constant_level_is_not_optimal() -> None:
    """liu Theorem 2 on its own jobs: 5.34; one level a job 3.75, any 3.52, unbalanced 2.75."""
    rows = liu.items()["theorem2"].run(FEW)
    assert [row.ours for row in rows] == pytest.approx([3.75, 3.52, 2.75])
    assert {row.verdict for row in rows} == {"does not hold"}


def test_assignment_fails_at_twice_the_speed() -> None:
    (row,) = liu.items()["speedup"].run(FEW)
    assert (row.verdict, row.note) == (
        "does not hold",
        "a third of them on each CPU have load 1 at speed 1",
    )


def test_the_worked_examples_are_exact_where_the_paper_agrees_with_itself() -> None:
    rows = liu.items()["examples"].run(FEW)
    own = [row.quantity for row in rows if row.verdict == "contradicts itself"]
    assert len(own) == 4
    assert "load(P1, 4) with J7 is too high for Theorem 1" in own
    assert {row.verdict for row in rows} == {"exact", "contradicts itself"}


def test_assignments_steps_grow_as_the_square_of_the_jobs() -> None:
    rows = by_quantity(liu.items()["complexity"].run(FEW))
    assert rows["power of n in Assignment's steps, O(n² m)"].ours == pytest.approx(2.0, abs=0.05)
    assert rows["power of m in Assignment's steps, O(n² m)"].ours == pytest.approx(1.0, abs=0.05)


def test_a_claim_of_liu_is_counted_under_the_texts_reading_only() -> None:
    """Speed by voltage; the clock, lambda s³ and the scaled GPU power stand beside it."""
    for item in ("fig5", "gpu-power"):
        claims = [row for row in liu.items()[item].run(FEW) if row.relation]
        own = [row for row in claims if row.quantity.endswith(", speed = voltage")]
        counted = [row for row in own if "lambda" not in row.quantity]
        assert [row for row in claims if not row.beside] == counted


def test_safe_rules_are_ours_and_the_papers_are_claims() -> None:
    rows = liu.items()["safety"].run(FEW)
    claims = [row for row in rows if row.verdict != "ours only"]
    assert {row.verdict for row in claims} == {"does not hold"}
    assert all("Theorem 3 and line 15" in row.quantity for row in claims)
    assert all(row.ours == 0.0 for row in rows if ", ours" in row.quantity)


def test_power_by_the_papers_model_is_the_cube_of_the_speed() -> None:
    """Section 3: p_idle + lambda f³; the GPU at 0.8 of its voltage: 18 + 90 * 0.512."""
    power_w = HD_5770.power_w("voltage", "cubic")
    assert power_w == pytest.approx([18.0 + 90.0 * 0.76**3, 18.0 + 90.0 * 0.8**3, 108.0])
    library = Box(speed="voltage", power="cubic").library(np.array([2.0]), np.array([1.0]))
    assert library.groups[0].power_w == pytest.approx(XEON_5160.power_w("voltage", "cubic"))


def test_power_scaled_from_a_lighter_application_falls_less_with_the_level() -> None:
    """Section 7.1: P(v) = P(top) P_A(v) / P_A(top); A draws 54 W, 18 of them idle: 36 + 72 V² f."""
    power_w = HD_5770.power_w("clock", "scaled")
    drawn = np.array([0.76**2 * 148, 0.8**2 * 500, 850]) / 850
    assert power_w == pytest.approx(36.0 + 72.0 * drawn)
    library = Box(power="scaled").library(np.array([2.0]), np.array([1.0]))
    assert library.groups[0].power_w == pytest.approx(XEON_5160.power_w("clock", "switching"))
    assert library.groups[1].power_w == pytest.approx(power_w)
