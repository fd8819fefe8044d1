"""The learner's desk: run a module's exercises as they are on the disk now, remember the results, say what comes next."""

import contextlib
import io

from autograder import report, state
from autograder.case import Exercise
from autograder.course import ROOT, Module, ready
from autograder.grade import Grader
from autograder.loader import Learner
from autograder.result import Result


def run(module: Module, seed: int) -> list[Result]:
    """Grade every exercise of the learner's own file and remember the results. What the learner's code prints is dropped."""
    grader = Grader(Learner(ROOT / "modules"), seed)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        results = [grader.grade(module, name) for name in module.case().exercises]
    state.remember([report.record(result) for result in results])
    return results


def next_exercise(known: dict, modules: list[Module] | None = None) -> tuple[Module, Exercise] | None:
    """The first exercise, in course order, that has not passed with its file as it is now; None when all have."""
    for module in ready() if modules is None else modules:
        now = state.fingerprint(module)
        for exercise in module.case().exercises.values():
            result = known["results"].get(f"{module.name}/{exercise.name}")
            if not result or result["status"] != "pass" or result["file"] != now:
                return module, exercise
    return None


def next_hint(module: Module, exercise: Exercise) -> str:
    """The next hint for an exercise, counted; with the tensor that failed last, where the file is still the same."""
    known = state.load()
    key = f"{module.name}/{exercise.name}"
    read, result = known["hints"].get(key, 0), known["results"].get(key)
    lines = []
    if result and result["first_difference"] and result["file"] == state.fingerprint(module):
        lines.append(f"{exercise.name}: the first tensor to differ was {result['first_difference']}")
    level = min(read, len(exercise.hints) - 1)
    lines.append(f"hint {level + 1} of {len(exercise.hints)}: {exercise.hints[level]}")
    if read >= len(exercise.hints):
        lines.append(f'that was the last one; the lesson says more under "{exercise.lesson}"')
    known["hints"][key] = min(read + 1, len(exercise.hints))
    state.save(known)
    return "\n".join(lines)
