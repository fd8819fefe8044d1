"""Prove a module fit for learners: its files in step, its solution right, its faults told apart.

Each check is a function of one module that yields complaints; no complaint means that it holds.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from autograder import report
from autograder.case import Case, Exercise, Fault, Sample
from autograder.checkpoints import CheckpointError
from autograder.compare import compare
from autograder.course import ROOT, Module
from autograder.diagnose import Observation, Search, expected_gradients
from autograder.golden import Goldens
from autograder.grade import Grader
from autograder.loader import Learner, unwritten
from autograder.probe import Outcome, Problem, each_tensor
from autograder.samples import double, samples
from autograder.steps import Evaluator, Failed
from autograder.submissions import SubmissionError, judge, read
from autograder.sync import out_of_step, stub

MARGIN = 100  # a fault must differ from the right value by so many tolerances
SEEDS = (1, 2, 3)


def in_step(module: Module) -> Iterator[str]:
    """The generated files are what `course sync` writes."""
    for path in out_of_step(module):
        yield f"{path.relative_to(ROOT)} is out of step with solutions/: run `course sync`"


def stubs_are_todo(module: Module) -> Iterator[str]:
    """Every exercise of the stub is `todo`: it raises NotImplementedError and nothing else."""
    missing = (
        set(module.case().exercises)
        - set(unwritten(stub(module)))
        - {"KVCache", "Tokenizer", "ModelConfig", "GPT2", "GPT2Config"}
    )
    for name in sorted(missing):
        yield f"{name} is an exercise, but the stub has no unwritten function of that name"
    with TemporaryDirectory() as folder:
        path = Path(folder) / module.name / module.file_name
        path.parent.mkdir()
        path.write_text(stub(module), encoding="utf-8")
        for result in _results(module, Path(folder)):
            if result.status != "todo":
                yield f"the stub of {result.exercise} is {result.status}, expected todo: {result.message}"


def solution_passes(module: Module) -> Iterator[str]:
    """Every exercise of the solution passes."""
    for result in _results(module, ROOT / "solutions"):
        if result.status != "pass" or result.rests_on:
            yield f"the solution does not pass: {report.text(result)}"


def _results(module: Module, folder: Path) -> list:
    grader = Grader(Learner(folder, parts="solutions"), SEEDS[0])
    return [grader.grade(module, name) for name in module.case().exercises]


def texts_are_complete(module: Module) -> Iterator[str]:
    """Three hints, a lesson section that exists, a question for every fault."""
    lesson = (module.folder / "README.md").read_text(encoding="utf-8")
    titles = {line.lstrip("#").strip() for line in lesson.splitlines() if line.startswith("#")}
    case = module.case()
    for exercise in case.exercises.values():
        if exercise.lesson not in titles:
            yield f"{exercise.name} points to the lesson section {exercise.lesson!r}, which the lesson does not have"
        if len(exercise.hints) != 3 or not all(exercise.hints):
            yield f"{exercise.name} has {len(exercise.hints)} hints, expected a question, a pointer and a formula"
    for fault in case.faults.values():
        if not any(fault in case.faults_of(exercise) for exercise in case.exercises.values()):
            yield f"the fault {fault.id} can show in no exercise"


def witnesses_agree(module: Module) -> Iterator[str]:
    """The steps and the reference on the library's own operators give the same values and gradients, in float64."""
    case = module.case()
    for exercise, sample in _every(case):
        if exercise.reference is None or sample.refused or sample.variant:
            continue
        inputs = each_tensor(sample.inputs, double)
        difference = compare(exercise.apply(exercise.reference, inputs), Evaluator(case, exercise, inputs).output(), 1e-9)
        if difference:
            yield f"{exercise.name}, {sample.label}: the reference and the steps disagree: {difference}"


def faults_are_told_apart(module: Module) -> Iterator[str]:
    """Each fault is rejected with its margin, at its declared tensor, and is its own only explanation."""
    case = module.case()
    for exercise in case.exercises.values():
        for seed in SEEDS:
            plain = [sample for sample in samples(exercise, seed, "cpu", None) if not sample.variant]
            for fault in case.faults_of(exercise):
                for complaint in _told_apart(case, exercise, fault, plain):
                    yield f"{exercise.name}, fault {fault.id}, seed {seed}: {complaint}"


def _told_apart(case: Case, exercise: Exercise, fault: Fault, plain: list[Sample]) -> Iterator[str]:
    ordinary = [sample for sample in plain if not sample.refused]
    refused = [sample for sample in plain if sample.refused]
    first = {_first_spoilt(case, exercise, fault, sample) for sample in ordinary} - {None}
    observations = [_imagine(case, exercise, fault, sample) for sample in ordinary]
    gradients = False
    if not first:
        gradients = any(_other_gradients(case, exercise, fault, sample) for sample in ordinary if sample.gradient)
        observations += [_imagine(case, exercise, fault, sample) for sample in refused]
        if not gradients and not any(_wrongly_served(seen) for seen in observations if seen.sample.refused):
            yield f"does not differ from the right value by {MARGIN} tolerances on any input"
            return
    elif fault.tensor not in first:
        yield f"spoils {' '.join(sorted(first))} first, and is declared to spoil {fault.tensor}"
    if gradients:
        observations = [_with_gradients(case, exercise, fault, seen) for seen in observations if not seen.sample.refused]
    found = Search(case, exercise, observations, gradients).diagnose()
    if found.mistakes != (fault,):
        rivals = [" + ".join(one.id for one in group) for group in found.alternatives or [found.mistakes]]
        yield f"is explained by {' or '.join(rivals) or 'nothing'}"


def _wrongly_served(seen: Observation) -> bool:
    """Arguments that must be refused got a value, or another exception than the contract's."""
    return seen.outcome.status == "value" or not isinstance(seen.outcome.exception, seen.sample.raises)


def _first_spoilt(case: Case, exercise: Exercise, fault: Fault, sample: Sample) -> str | None:
    evaluator = Evaluator(case, exercise, sample.inputs)
    right, spoilt = evaluator.shown(), evaluator.shown((fault,))
    return next(
        (name for name in right if name not in spoilt or compare(spoilt[name], right[name], MARGIN * exercise.tolerance)), None
    )


def _imagine(case: Case, exercise: Exercise, fault: Fault, sample: Sample) -> Observation:
    """What a learner who makes this mistake, and no other, would be seen to do."""
    try:
        return Observation(sample, Outcome("value", Evaluator(case, exercise, sample.inputs).output((fault,))))
    except Failed as failed:
        problem = Problem(type(failed.cause).__name__, str(failed.cause), None, None, "raise")
        return Observation(sample, Outcome("error", problem=problem, exception=failed.cause))


def _other_gradients(case: Case, exercise: Exercise, fault: Fault, sample: Sample) -> bool:
    right, _ = expected_gradients(case, exercise, sample.inputs)
    spoilt, detached = expected_gradients(case, exercise, sample.inputs, (fault,))
    return detached or any(compare(spoilt[name], value, MARGIN * exercise.tolerance) for name, value in right.items())


def _with_gradients(case: Case, exercise: Exercise, fault: Fault, seen: Observation) -> Observation:
    if seen.sample.gradient:
        seen.outcome.gradients, seen.outcome.detached = expected_gradients(case, exercise, seen.sample.inputs, (fault,))
    return seen


def goldens_hold(module: Module) -> Iterator[str]:
    """The recorded tensors are unharmed, and the reference on this machine gives the same within tolerance."""
    case = module.case()
    recorded = [exercise for exercise in case.exercises.values() if exercise.golden]
    if not recorded:
        return
    try:
        goldens = Goldens(module.name)
    except CheckpointError as error:
        yield str(error)
        return
    for exercise in recorded:
        again = Evaluator(case, exercise, goldens.inputs(exercise)).shown()
        for name, expected in goldens.expected(exercise).items():
            difference = compare(again[name], expected, exercise.tolerance)
            if difference:
                yield f"golden {exercise.name}/{name} is not what the reference gives here: {difference}"


def submissions_are_judged(module: Module) -> Iterator[str]:
    """Every submission of the library gets the verdict, the tensor and the mistakes that stand with it."""
    try:
        for submission in read(module):
            for complaint in judge(submission).complaints:
                yield f"tests/submissions/{module.name}.py:{submission.line} {submission.kind}: {submission.title}: {complaint}"
    except SubmissionError as error:
        yield str(error)


def _every(case: Case) -> Iterator[tuple[Exercise, Any]]:
    for exercise in case.exercises.values():
        for seed in SEEDS:
            for sample in samples(exercise, seed, "cpu", None):
                yield exercise, sample


CHECKS = (
    in_step,
    stubs_are_todo,
    solution_passes,
    texts_are_complete,
    witnesses_agree,
    goldens_hold,
    faults_are_told_apart,
    submissions_are_judged,
)
