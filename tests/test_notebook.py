"""The notebook runs from a fresh kernel, and says what its page says."""

from __future__ import annotations

import pytest

from tests.conftest import ROOT
from tests.test_docs import blocks

nbformat = pytest.importorskip("nbformat", reason="make .venv anew: the lock has nbformat")
nbclient = pytest.importorskip("nbclient", reason="make .venv anew: the lock has nbclient")

NOTEBOOK = ROOT / "examples" / "notebook" / "plan.ipynb"
PAGE = ROOT / "docs" / "guides" / "in-code.md"


def test_the_notebook_holds_the_code_of_its_page():
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    code = [cell.source for cell in cells if cell.cell_type == "code"]
    assert code[:-1] == [block.rstrip() for block in blocks(PAGE.read_text(), "python")]
    assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.filterwarnings("ignore")  # what Jupyter warns about is not ours
@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    book = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(
        book, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    last = book.cells[-1].outputs[-1]
    assert "image/png" in last.data
    outputs = [out for cell in book.cells for out in cell.get("outputs", ())]
    printed = "".join(out.get("text", "") for out in outputs)
    assert "Segments: 6 rows" in printed
    assert "less energy than at full speed" in printed


def test_the_page_needs_fifteen_lines_from_nothing_to_a_bill():
    first = blocks(PAGE.read_text(), "python")[0]
    assert len([line for line in first.splitlines() if line.strip()]) == 15
