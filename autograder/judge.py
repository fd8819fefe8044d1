"""Is one call of the learner's function right? Values, refusals, untouched arguments, gradients."""

from dataclasses import dataclass
from typing import Any

from autograder.case import Case, Exercise
from autograder.compare import Difference, compare
from autograder.diagnose import Observation, expected_gradients

GRADIENT_ROOM = 10  # a gradient passes through more sums than the value does


@dataclass(frozen=True)
class Failure:
    """One sample on which the learner's function is not right."""

    seen: Observation
    kind: str  # "value", "gradient", "changed", "accepted", "refusal", "error", "timeout", "todo", "forbidden"
    difference: Difference | None = None
    argument: str = ""  # whose gradient, or which argument changed


@dataclass(frozen=True)
class Attempt:
    """One run of a function over all its samples."""

    observations: list[Observation]
    failures: list[Failure]


def judge(case: Case, exercise: Exercise, seen: Observation, expected: Any) -> Failure | None:
    """Whether the learner's function did on this sample what it must."""
    outcome, sample = seen.outcome, seen.sample
    if outcome.forbidden:
        return Failure(seen, "forbidden")
    if outcome.status in ("timeout", "todo"):
        return Failure(seen, outcome.status)
    if sample.refused:
        if outcome.status == "value":
            return Failure(seen, "accepted")
        return None if isinstance(outcome.exception, sample.raises) else Failure(seen, "refusal")
    if outcome.status == "error":
        return Failure(seen, "error")
    difference = compare(outcome.value, expected, exercise.tolerance)
    if difference:
        return Failure(seen, "value", difference)
    if outcome.changed:
        return Failure(seen, "changed", argument=outcome.changed[0])
    return _judge_gradients(case, exercise, seen) if sample.gradient else None


def _judge_gradients(case: Case, exercise: Exercise, seen: Observation) -> Failure | None:
    gradients, detached = expected_gradients(case, exercise, seen.sample.inputs)
    if detached or not gradients:
        return None
    if seen.outcome.detached:
        return Failure(seen, "gradient", argument=next(iter(gradients)))
    for name, expected in gradients.items():
        difference = compare(seen.outcome.gradients[name], expected, GRADIENT_ROOM * exercise.tolerance)
        if difference:
            return Failure(seen, "gradient", difference, name)
    return None
