"""Write what learners get from what instructors keep: stubs and labs from `solutions/`.

A region between `# BEGIN SOLUTION` and `# END SOLUTION` becomes `raise NotImplementedError` inside a function,
and nothing at the top level of a file. A lab is kept as reviewable text, `solutions/NN_name/lab.py` in jupytext's
percent format, and becomes the notebook `modules/NN_name/name.ipynb`, without outputs.
"""

import hashlib
import json
from pathlib import Path

from autograder.course import ROOT, Module

BEGIN, END = "# BEGIN SOLUTION", "# END SOLUTION"


class MarkerError(Exception):
    """A solution's markers do not pair up. The message names the file and the line."""


def strip(source: str, name: str = "the file") -> str:
    """The stub of a solution.

    Raises MarkerError where a region is nested, left open or closed without having been opened.
    """
    kept: list[str] = []
    opened = 0
    for number, line in enumerate(source.splitlines(), 1):
        marker = line.strip()
        if marker == BEGIN:
            if opened:
                raise MarkerError(f"{name}:{number}: a solution region begins inside the one begun at line {opened}")
            opened, indent = number, line[: len(line) - len(line.lstrip())]
            if indent:
                kept.append(f"{indent}raise NotImplementedError")
        elif marker == END:
            if not opened:
                raise MarkerError(f"{name}:{number}: a solution region ends that was never begun")
            opened = 0
        elif not opened:
            kept.append(line)
    if opened:
        raise MarkerError(f"{name}:{opened}: this solution region is never ended")
    return _tidy(kept)


def _tidy(lines: list[str]) -> str:
    """At most two blank lines in a row: a removed helper leaves the blank lines around it behind."""
    kept: list[str] = []
    for line in lines:
        if line.strip() or kept[-2:] != ["", ""]:
            kept.append(line.rstrip())
    return "\n".join(kept).rstrip() + "\n"


def stub(module: Module) -> str:
    """The stub file of a module, as it must stand in `modules/`."""
    return strip(module.solution.read_text(encoding="utf-8"), str(module.solution.relative_to(ROOT)))


def notebook(module: Module) -> str:
    """The lab of a module as a notebook. The same source gives the same bytes: cell ids come from the cells' content."""
    import jupytext

    cells = []
    for number, cell in enumerate(jupytext.reads(module.lab.read_text(encoding="utf-8"), fmt="py:percent").cells):
        digest = hashlib.sha256(f"{module.name} {number} {cell.source}".encode()).hexdigest()[:12]
        made = {"cell_type": cell.cell_type, "id": digest, "metadata": {}, "source": cell.source.splitlines(keepends=True)}
        if cell.cell_type == "code":
            made.update(execution_count=None, outputs=[])
        cells.append(made)
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    document = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(document, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def generated(module: Module) -> dict[Path, str]:
    """Every generated file of a module with its content."""
    files = {module.stub: stub(module)}
    if module.lab.exists():
        files[module.notebook] = notebook(module)
    return files


def out_of_step(module: Module) -> list[Path]:
    """The generated files that are not what `course sync` would write."""
    return [path for path, text in generated(module).items() if not path.exists() or path.read_text(encoding="utf-8") != text]


def write(module: Module) -> list[Path]:
    """Bring the module's generated files up to date; returns those that were written."""
    stale = out_of_step(module)
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(generated(module)[path], encoding="utf-8")
    return stale
