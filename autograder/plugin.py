"""The pytest plugin: each test of a module grades one exercise and shows the grader's report.

    def test_softmax(grade):
        grade("softmax")

A test passes, fails with the report in place of pytest's dump, or is "todo" where the stub was not touched.
"""

import json
import os
import random
from pathlib import Path

import pytest

from autograder import limits, report, state
from autograder.checkpoints import CheckpointError
from autograder.course import ROOT, find
from autograder.grade import Grader
from autograder.loader import PARTS, Learner
from autograder.result import Result

GRADERS = pytest.StashKey[dict]()
SEED = pytest.StashKey[int]()


class NotRight(Exception):
    """The exercise did not pass; carries its result."""

    def __init__(self, result: Result):
        super().__init__(report.text(result))
        self.result = result


def pytest_addoption(parser):
    group = parser.getgroup("course", "Forward Pass")
    group.addoption("--report", metavar="FILE", help="write the results as JSON")
    group.addoption(
        "--submission", metavar="DIR", default=str(ROOT / "modules"), help="grade DIR/NN_name/name.py in place of modules/"
    )
    group.addoption("--parts", choices=PARTS, default="auto", help="whose code other modules' imports get (default: auto)")
    group.addoption("--seed", type=int, help="seed of the fresh inputs; a report prints the one that was used")
    group.addoption("--device", default="cpu", help="cpu or cuda")


def pytest_configure(config):
    if not Path(config.getoption("--submission")).is_dir():
        raise pytest.UsageError(
            f"--submission {config.getoption('--submission')!r} is not a folder: expected one with NN_name/name.py files"
        )
    # The tensors are tiny: more threads would only wait for each other. Read when torch is imported.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # One seed for the run, the same in every worker of `-n`.
    chosen = config.getoption("--seed")
    worker = getattr(config, "workerinput", {}).get("course_seed")
    config.stash[SEED] = next(seed for seed in (worker, chosen, random.SystemRandom().randrange(100_000)) if seed is not None)
    config.stash[GRADERS] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["course_seed"] = node.config.stash[SEED]


@pytest.fixture
def grade(request):
    """Grade one exercise of the test's module: `grade("softmax")`."""
    module = find(request.path.parent.name)
    config = request.config

    def run(exercise: str) -> None:
        grader = _grader(config)
        result = grader.grade(module, exercise)
        request.node.user_properties.append(("course", report.record(result)))
        if result.status == "pass":
            notes = report.text(result)
            if "\n" in notes:
                print(notes)
            return
        if config.getoption("usepdb") and grader.exception and result.status == "error":
            raise _to_learners_frame(grader.exception, grader.learner.folder)
        raise NotRight(result)

    return run


def _grader(config) -> Grader:
    """One grader a run, so that exercises can lean on each other's results."""
    if "grader" not in config.stash[GRADERS]:
        learner = Learner(config.getoption("--submission"), config.getoption("--parts"))
        config.stash[GRADERS]["grader"] = Grader(learner, config.stash[SEED], config.getoption("--device"))
    return config.stash[GRADERS]["grader"]


def _to_learners_frame(exception: BaseException, folder: Path) -> BaseException:
    """The exception with its traceback cut below the learner's last frame, so that the debugger opens there."""
    frames, tb = [], exception.__traceback__
    while tb:
        frames.append(tb)
        tb = tb.tb_next
    own = [index for index, tb in enumerate(frames) if Path(tb.tb_frame.f_code.co_filename).is_relative_to(folder)]
    if own:
        frames[own[-1]].tb_next = None
        return exception.with_traceback(frames[own[0]])
    return exception


def pytest_enter_pdb(config, pdb):
    limits.suspended = True


def pytest_leave_pdb(config, pdb):
    limits.suspended = False


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    found = outcome.get_result()
    if call.excinfo is None:
        return
    if call.excinfo.errisinstance(NotRight):
        result = call.excinfo.value.result
        found.longrepr = report.text(result)
        found.course_status = result.status
    elif call.excinfo.errisinstance(CheckpointError):
        found.longrepr = str(call.excinfo.value)


def pytest_report_teststatus(report, config):
    if getattr(report, "course_status", "") == "todo" and report.when == "call":
        return "todo", "t", ("TODO", {"yellow": True})
    return None


def pytest_runtest_logreport(report):
    """In the controller: keep every exercise's record for the JSON report."""
    if report.when == "call":
        _records.extend(value for name, value in report.user_properties if name == "course")


_records: list[dict] = []


def pytest_sessionstart(session):
    _records.clear()


def pytest_terminal_summary(terminalreporter, exitstatus, config):
    todo = [value for value in terminalreporter.stats.get("todo", [])]
    if todo:
        terminalreporter.write_line(f"write this first: {todo[0].longreprtext}", yellow=True)
        if len(todo) > 1:
            terminalreporter.write_line(f"{len(todo)} functions are still to write", yellow=True)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workerinput"):
        return
    if _records and Path(session.config.getoption("--submission")).resolve() == ROOT / "modules":
        state.remember(_records)
    target = session.config.getoption("--report")
    if not target:
        return
    document = {"seed": session.config.stash[SEED], "device": session.config.getoption("--device"), "exercises": _records}
    _write(Path(target), json.dumps(document, indent=1) + "\n")


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise pytest.UsageError(f"--report {path}: {error.strerror}") from None
