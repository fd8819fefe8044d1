"""Which known mistakes reproduce what the learner's code did? Found by search, never guessed.

A set of faults explains a submission when it gives the learner's value (or the learner's exception) on every
sample. All single faults are tried, then all pairs; larger sets are grown along the learner's recording, one fault
for each tensor that leaves the path. Where several sets of the same size explain it, only the faults common to all
of them are certain.
"""

import itertools
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from autograder.case import ANY, Case, Exercise, Fault, Sample
from autograder.compare import compare
from autograder.locate import Recording, locate
from autograder.probe import Outcome, differentiate, is_tensor, own
from autograder.steps import Evaluator, Failed, compatible

LARGEST_SET = 4
GLANCE = 5  # entries of a tensor that are looked at before the whole


@dataclass(frozen=True)
class Observation:
    """What the learner's function did on one sample."""

    sample: Sample
    outcome: Outcome


@dataclass(frozen=True)
class Diagnosis:
    """`mistakes` are certain; `alternatives` holds every set of that size where there is more than one."""

    mistakes: tuple[Fault, ...] = ()
    alternatives: tuple[tuple[Fault, ...], ...] = ()


class Search:
    """The search over sets of faults for one exercise and one learner.

    recording  what the learner's function computed on `traced`, one of the observations; guides sets of three and more
    gradients  the values are right: look for the fault that gives the learner's gradients
    """

    def __init__(
        self,
        case: Case,
        exercise: Exercise,
        observations: list[Observation],
        gradients: bool = False,
        recording: Recording | None = None,
        traced: Observation | None = None,
    ):
        self.case, self.exercise, self.gradients, self.recording = case, exercise, gradients, recording
        self.faults = case.faults_of(exercise)
        # The smallest sample first: most sets fail there, so most cost one small evaluation.
        self.observations = sorted(observations, key=lambda seen: _size(seen.sample.inputs))
        self.evaluators = [Evaluator(case, exercise, seen.sample.inputs) for seen in self.observations]
        self.glances = [glance(seen.outcome.value) for seen in self.observations]
        self.traced = Evaluator(case, exercise, traced.sample.inputs) if traced else None

    def diagnose(self) -> Diagnosis:
        for size in (1,) if self.gradients else (1, 2):
            found = [group for group in self._groups(size) if compatible(group) and self.explains(group)]
            if found:
                return _certain(found)
        if self.recording and self.traced and not self.gradients:
            grown = {frozenset(group): group for group in self._grow(())}.values()
            smallest = min(map(len, grown), default=0)
            found = [group for group in grown if len(group) == smallest]
            return _certain(found) if found else Diagnosis()
        return Diagnosis()

    def _groups(self, size: int) -> Iterator[tuple[Fault, ...]]:
        """All sets of that size; of pairs, where it is known which tensor differs first, those that can spoil it."""
        groups = itertools.combinations(self.faults, size)
        if size == 1 or not self.recording or not self.traced:
            return groups
        shown = self.traced.shown()
        _, first = locate(self.case, self.exercise, self.recording, shown)
        if first is None or first in self.exercise.returns or first not in shown:
            return groups
        spoiling = {fault.id for fault in self.faults if self._spoils(first, (), (fault,), raising=True)}
        return (group for group in groups if any(fault.id in spoiling for fault in group))

    def _grow(self, group: tuple[Fault, ...]) -> Iterator[tuple[Fault, ...]]:
        """Sets that extend this one by the faults that put the next tensor back on the learner's path."""
        shown = self.traced.shown(group)
        _, first = locate(self.case, self.exercise, self.recording, shown)
        if first is None or first not in shown or len(group) == LARGEST_SET:
            return
        spoiling = [fault for fault in self.faults if fault not in group and self._spoils(first, group, group + (fault,))]
        for more in (1, 2):  # two faults can spoil one tensor together
            found = False
            for added in itertools.combinations(spoiling, more):
                larger = group + added
                if len(larger) <= LARGEST_SET and compatible(larger) and self._on_path(first, larger):
                    found = True
                    yield from (larger,) if first in self.exercise.returns else self._grow(larger)
            if found:
                return

    def _on_path(self, name: str, faults: tuple[Fault, ...]) -> bool:
        """Whether these faults give the learner's version of that tensor, or of one that is computed from it."""
        if name in self.exercise.returns:
            return self.explains(faults)
        _, after = locate(self.case, self.exercise, self.recording, self.traced.shown(faults))
        order = self.exercise.shown
        return after is None or order.index(after) > order.index(name)

    def _spoils(self, name: str, group: tuple[Fault, ...], larger: tuple[Fault, ...], raising: bool = False) -> bool:
        """Whether the added fault changes that tensor; `raising`: or keeps it from being computed."""
        if not compatible(larger):
            return False
        try:
            return bool(compare(self.traced.value(name, larger), self.traced.value(name, group), self.exercise.tolerance))
        except Failed:
            return raising

    def explains(self, faults: tuple[Fault, ...]) -> bool:
        return all(self._reproduces(*on, faults) for on in zip(self.evaluators, self.observations, self.glances))

    def _reproduces(self, evaluator: Evaluator, seen: Observation, first: list[float] | None, faults: tuple[Fault, ...]) -> bool:
        try:
            value = evaluator.output(faults)
        except Failed as failed:
            return self._same_exception(seen, failed.cause)
        if seen.sample.refused or seen.outcome.status != "value":
            return seen.sample.refused and seen.outcome.status == "value"
        if first is not None and not _alike(first, glance(value)):
            return False
        if compare(seen.outcome.value, value, self.exercise.tolerance):
            return False
        return not self.gradients or not seen.sample.gradient or self._same_gradients(seen, faults)

    @staticmethod
    def _same_exception(seen: Observation, cause: Exception) -> bool:
        problem = seen.outcome.problem
        if seen.outcome.status != "error" or problem is None:
            return False
        if seen.sample.refused:  # any message will do, but the contract's kind of exception is not any other
            if isinstance(cause, seen.sample.raises):
                return isinstance(seen.outcome.exception, seen.sample.raises)
            return type(cause).__name__ == problem.type
        if problem.type != type(cause).__name__:
            return False
        return problem.message == str(cause) or (str(cause) == ANY and problem.deliberate)

    def _same_gradients(self, seen: Observation, faults: tuple[Fault, ...]) -> bool:
        gradients, detached = expected_gradients(self.case, self.exercise, seen.sample.inputs, faults)
        if detached or seen.outcome.detached:
            return detached == seen.outcome.detached
        return not any(compare(seen.outcome.gradients[name], grad, self.exercise.tolerance) for name, grad in gradients.items())


def expected_gradients(
    case: Case, exercise: Exercise, inputs: dict[str, Any], faults: Iterable[Fault] = ()
) -> tuple[dict[str, Any], bool]:
    """The gradients that the reference, or the reference with faults, passes back to each argument."""
    arguments = {name: own(value, gradients=True) for name, value in inputs.items()}
    return differentiate(Evaluator(case, exercise, arguments).output(faults), arguments)


def _certain(found: list[tuple[Fault, ...]]) -> Diagnosis:
    common = set(found[0]).intersection(*map(set, found[1:]))
    mistakes = tuple(fault for fault in found[0] if fault in common)
    return Diagnosis(mistakes, tuple(found) if len(found) > 1 else ())


def glance(value: Any) -> list[float] | None:
    """A few entries of a tensor, or of the first of several: enough to see at once that most wrong candidates differ."""
    while isinstance(value, (list, tuple, dict)) and value:
        value = next(iter(value.values() if isinstance(value, dict) else value))
    if not is_tensor(value) or not value.numel():
        return None
    flat = value.detach().reshape(-1)
    return flat[:: max(flat.numel() // GLANCE, 1)].tolist()


def _alike(a: list[float], b: list[float] | None) -> bool:
    """Whether two glances may belong to equal tensors. Far looser than the comparison that follows."""
    if b is None or len(a) != len(b):
        return False
    room = 1e-3 * max(abs(x) for x in a if not math.isnan(x)) if any(not math.isnan(x) for x in a) else 0.0
    return all(x == y or abs(x - y) <= room or (math.isnan(x) and math.isnan(y)) for x, y in zip(a, b))


def _size(inputs: dict[str, Any]) -> int:
    return sum(
        value.numel() if hasattr(value, "numel") else len(value) if hasattr(value, "__len__") else 1 for value in inputs.values()
    )
