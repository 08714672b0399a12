"""The notebook in `examples` runs, and what stands in it is what it gives.

`INSTA_UPDATE=always cargo test --test offline python` stores what it gives now.
"""

import os
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(os.environ["IOTRACE_TEST_NOTEBOOK"])


def outputs(notebook):
    """The text of each cell's outputs, and how many pictures it has."""
    found = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in cell.outputs]
            pictures = sum("image/png" in out.get("data", {}) for out in cell.outputs)
            found.append((texts, pictures))
    return found


def test_the_notebook_runs(data, tmp_path, monkeypatch):
    # Opened under the name that stands in it. The kernel draws into the notebook.
    (tmp_path / "run.iotrace").symlink_to(data / "calls")
    monkeypatch.delenv("MPLBACKEND", raising=False)
    stored = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    # An error in a cell is an exception here.
    client = NotebookClient(run, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute(cwd=str(tmp_path))
    for cell in run.cells:
        cell.metadata.pop("execution", None)
        for out in cell.get("outputs", []):
            assert out.output_type in ("execute_result", "display_data"), out
    if os.environ.get("INSTA_UPDATE") == "always":
        run.metadata = stored.metadata
        nbformat.write(run, NOTEBOOK)
        stored = run
    assert outputs(run) == outputs(stored)
    assert sum(pictures for _, pictures in outputs(run)) == 3
    assert NOTEBOOK.stat().st_size < 200_000
