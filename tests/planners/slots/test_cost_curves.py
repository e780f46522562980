"""The benchmark of costs finds public prices as the others do, or says that it has none."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks import cost


def test_public_data_are_looked_for_beside_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cost, "public", cost.public.__wrapped__)
    monkeypatch.delenv("DOWNCLOCK_DATA", raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert list(cost.curves()) == ["flat", "increasing", "alternating"]
    assert "left out: no ../shared/data/prices" in capsys.readouterr().out
    prices = tmp_path / "shared" / "data" / "prices"
    prices.mkdir(parents=True)
    for file, column in cost.FILES.values():
        (prices / file).write_text(f"{column}\n3\n-1\n")
    assert cost.curves()["epex-2016"](3).tolist() == [3.0, 0.0, 3.0]
