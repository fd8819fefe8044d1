"""Every lab runs from top to bottom, on the solutions and on the stubs, without an error and without a word on stderr."""

import shutil

import nbformat
import pytest
from nbclient import NotebookClient

from autograder.course import ROOT, ready

LABS = [module for module in ready() if module.notebook.exists()]
SECONDS = 240  # for a whole lab: a minute on two free cores, and room for a busy machine


@pytest.fixture(scope="module")
def solved(tmp_path_factory):
    """A copy of the course in which every stub is written."""
    folder = tmp_path_factory.mktemp("solved")
    for name in ("autograder", "checkpoints", "modules", "solutions"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for module in ready():
        shutil.copy(module.solution, folder / "modules" / module.name / module.file_name)
    return folder


@pytest.mark.parametrize("module", LABS, ids=lambda module: module.name)
def test_lab_on_the_solution(module, solved, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(solved))
    points = _execute(module, solved)
    assert points == sum(exercise.points for exercise in module.case().exercises.values())


def test_a_lab_on_the_stub(monkeypatch):
    """One is enough here: what differs is the borrowing, which is the same for all."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    assert _execute(LABS[0], ROOT) == 0


def _execute(module, folder) -> float:
    """Run the notebook in its folder; returns the points that its check cells gave."""
    notebook = nbformat.read(module.notebook, as_version=4)
    nbformat.validate(notebook)
    where = {"metadata": {"path": str(folder / "modules" / module.name)}}
    NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=where).execute()
    points = 0.0
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            assert output.get("name") != "stderr", f"{module.name}: {cell.source[:60]!r} wrote to stderr: {output['text'][:300]}"
            if output.output_type == "execute_result" and "lab.check(" in cell.source:
                points += float(output.data["text/plain"])
    return points
