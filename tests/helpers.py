"""What several tests need: grade a patch on a module's solution, or run a command."""

import os
import subprocess
import sys
from pathlib import Path

from autograder import report
from autograder.course import ROOT, find
from autograder.grade import Grader
from autograder.loader import Learner


def write_patch(folder: Path, module_name: str, patch: str) -> Path:
    """A learner's folder whose file is the solution with the patch behind it; returns the file."""
    module = find(module_name)
    file = folder / module.name / module.file_name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(module.solution.read_text(encoding="utf-8") + "\n\n" + patch, encoding="utf-8")
    return file


def grade_patch(folder: Path, module_name: str, exercise: str, patch: str, seed: int = 7, **how):
    """The result of one exercise of the solution with a patch."""
    write_patch(folder, module_name, patch)
    return Grader(Learner(folder, parts="solutions"), seed, **how).grade(find(module_name), exercise)


def report_lines(folder: Path, *arguments, **how) -> list[str]:
    return report.text(grade_patch(folder, *arguments, **how)).splitlines()


def run(*arguments: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    """Run `python ARGUMENTS` with captured output."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run([sys.executable, *arguments], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)


def pytest(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return run("-m", "pytest", *arguments, **environment)
