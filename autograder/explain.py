"""Fill in a failed result: what matched, what differs first, which mistake reproduces it, what else is true."""

from types import ModuleType
from typing import Any

from autograder import general
from autograder.case import Case, Exercise, Fault
from autograder.compare import Difference, compare
from autograder.diagnose import Diagnosis, Observation, Search
from autograder.judge import Attempt, Failure
from autograder.locate import Recording, locate
from autograder.probe import call, is_tensor
from autograder.result import Mistake, Result
from autograder.steps import Evaluator

# The kind of failure to speak of first, where a function fails in several ways.
ORDER = ("forbidden", "timeout", "todo", "changed", "error", "value", "gradient", "accepted", "refusal")


class Explainer:
    """Explains one failed attempt. All it says is found in what the learner's code did."""

    def __init__(self, case: Case, exercise: Exercise, module: ModuleType, attempt: Attempt, result: Result, seconds: float):
        self.case, self.exercise, self.module, self.attempt, self.result = case, exercise, module, attempt, result
        self.seconds = seconds
        ordinary = [failure for failure in attempt.failures if not failure.seen.sample.variant]
        self.failure = min(ordinary or attempt.failures, key=lambda failure: ORDER.index(failure.kind))

    def explain(self) -> None:
        self.result.status = {"forbidden": "forbidden", "timeout": "timeout", "todo": "todo", "error": "error"}.get(
            self.failure.kind, "fail"
        )
        getattr(self, f"_{self.failure.kind}")(self.failure)

    def _forbidden(self, failure: Failure) -> None:
        first = failure.seen.outcome.forbidden[0]
        self.result.message = f"{first.name} may not be called in this exercise: write it out"
        self.result.line = first.line or self.result.line

    def _timeout(self, failure: Failure) -> None:
        problem = failure.seen.outcome.problem
        where = f", at line {problem.line}: {problem.code}" if problem and problem.line else ""
        self.result.message = f"still running after {self.seconds:g} s on {failure.seen.sample.label}{where}"

    def _todo(self, failure: Failure) -> None:
        problem = failure.seen.outcome.problem
        self.result.message = f"{problem.function} is still to write" if problem and problem.function else "still to write"

    def _changed(self, failure: Failure) -> None:
        self.result.mistakes = [general.CHANGED]
        self.result.facts = [f"the argument {failure.argument} holds other numbers after the call"]

    def _accepted(self, failure: Failure) -> None:
        wanted = " or ".join(kind.__name__ for kind in failure.seen.sample.raises)
        self.result.message = (
            f"no error on {failure.seen.sample.label}: expected {'an error' if wanted == 'Exception' else wanted}"
        )
        if not self._name(self._search(refused=True)):
            self.result.mistakes = [general.ACCEPTED]
        self.result.points = self.exercise.points // 2  # every value is right

    def _refusal(self, failure: Failure) -> None:
        wanted = " or ".join(kind.__name__ for kind in failure.seen.sample.raises)
        self.result.message = f"{failure.seen.outcome.problem} on {failure.seen.sample.label}: expected {wanted}"
        if failure.seen.outcome.problem.deliberate or not self._name(self._search(refused=True)):
            self.result.mistakes = [general.OTHER_EXCEPTION]
        self.result.points = self.exercise.points // 2

    def _gradient(self, failure: Failure) -> None:
        self.result.first_difference = f"{failure.argument}.grad"
        if failure.difference:
            self.result.at = _entry(failure.difference)
        self._name(self._search(gradients=True), keep_first=True)
        if failure.seen.outcome.detached and not self.result.mistakes:
            self.result.mistakes = [general.DETACHED]
        self.result.facts.append("the value is right; the gradient that passes back through it is not")

    def _error(self, failure: Failure) -> None:
        problem = failure.seen.outcome.problem
        self.result.line = problem.line or self.result.line
        self.result.message = f"{problem}" + (f", at: {problem.code}" if problem.code else "")
        recording = self._record(failure)
        named = self._name(self._search(recording=recording, traced=failure.seen))
        self._partial_credit(self._locate(failure, recording))
        if not named:
            self._place(failure)

    def _value(self, failure: Failure) -> None:
        if failure.seen.sample.variant:
            self.result.facts.append(f"right on the plain inputs, wrong on {failure.seen.sample.label}")
        recording = self._record(failure)
        named = self._seen_directly(failure) or self._name(self._search(recording=recording, traced=failure.seen))
        self._partial_credit(self._locate(failure, recording))
        if not named:
            self._relations(failure)
            self._place(failure)
        if failure.seen.outcome.changed:
            self.result.facts.append(f"the argument {failure.seen.outcome.changed[0]} holds other numbers after the call")
        self.result.facts += self._own_words(failure)

    def _partial_credit(self, matched: list[str]) -> None:
        """Points for the tensors that were computed and are right; all of them only for a pass."""
        share = self.exercise.points * len(matched) // max(len(self.exercise.shown), 1)
        self.result.points = max(0, min(share, self.exercise.points - 1))

    def _seen_directly(self, failure: Failure) -> bool:
        """Mistakes that need no search: another dtype, or another answer each time."""
        apart = failure.seen.sample.apart
        again = call(self.module, self.exercise, failure.seen.sample.inputs, seconds=self.seconds)
        if failure.difference.kind == "dtype":
            self.result.mistakes = [general.DTYPE]
        elif again.status == "value" and compare(again.value, failure.seen.outcome.value, self.exercise.tolerance):
            self.result.mistakes = [general.RANDOM]
        elif apart and failure.difference.kind in ("value", "finite"):
            self.result.mistakes = [Mistake(*apart)]
        return bool(self.result.mistakes) or failure.seen.sample.variant

    def _search(self, refused: bool = False, **how: Any) -> Diagnosis:
        seen = [seen for seen in self.attempt.observations if not seen.sample.variant and (refused or not seen.sample.refused)]
        return Search(self.case, self.exercise, seen, **how).diagnose()

    def _name(self, diagnosis: Diagnosis, keep_first: bool = False) -> bool:
        """Write the mistakes into the result, with the first tensor that they spoil."""
        if not diagnosis.mistakes and not diagnosis.alternatives:
            return False
        self.result.mistakes = [_mistake(fault) for fault in diagnosis.mistakes]
        self.result.alternatives = [[_mistake(fault) for fault in group] for group in diagnosis.alternatives]
        group = diagnosis.alternatives[0] if diagnosis.alternatives else diagnosis.mistakes
        if not keep_first:
            self._first_spoilt(group)
        return True

    def _first_spoilt(self, faults: tuple[Fault, ...]) -> None:
        """The tensors that these faults leave right, and the first that they spoil, on a sample that shows it."""
        for seen in self._telling():
            evaluator = Evaluator(self.case, self.exercise, seen.sample.inputs)
            right, spoilt = evaluator.shown(), evaluator.shown(faults)
            for name, expected in right.items():
                difference = compare(spoilt[name], expected, self.exercise.tolerance) if name in spoilt else None
                if difference or name not in spoilt:
                    names = list(right)[: list(right).index(name)]
                    self.result.matched = self._inputs(seen) + names
                    self.result.first_difference = name
                    self.result.shape = self._shape(name, expected)
                    self.result.at = _entry(difference) if difference else None
                    return

    def _telling(self) -> list[Observation]:
        """The samples to show a difference on, those that failed first."""
        failed = [failure.seen for failure in self.attempt.failures if not failure.seen.sample.refused]
        return failed + [seen for seen in self.attempt.observations if not seen.sample.refused]

    def _record(self, failure: Failure) -> Recording | None:
        """Run the call once more and keep what it computes; None where the exercise has no floating-point tensors."""
        expected = self._expected(failure)
        if not any(is_tensor(value) and value.is_floating_point() for value in expected.values()):
            return None
        outcome = call(self.module, self.exercise, failure.seen.sample.inputs, record=True, seconds=self.seconds)
        return Recording(outcome.recording, self.exercise.tolerance)

    def _locate(self, failure: Failure, recording: Recording | None) -> list[str]:
        """Look the expected tensors up in the recording, and the results in what was returned; gives those that match."""
        expected = self._expected(failure)
        if recording is None and failure.seen.outcome.status != "value":
            return []
        differences = {}
        if failure.seen.outcome.status == "value":
            for name in self.exercise.returns:
                differences[name] = compare(self._yours(failure, name), expected[name], self.exercise.tolerance)
        right = {name for name, difference in differences.items() if difference is None}
        matched, first = locate(self.case, self.exercise, recording, expected, right)
        wrong = [name for name, difference in differences.items() if difference]
        matched = [name for name in matched if name not in wrong]
        first = next((name for name in self.exercise.shown if name == first or name in wrong), None)
        if self.result.first_difference is None and first:
            self.result.matched = self._inputs(failure.seen) + matched
            self.result.first_difference = first
            self.result.shape = self._shape(first, expected.get(first))
            if wrong:
                named = f"in {wrong[0]}: " if len(self.exercise.returns) > 1 or first != wrong[0] else ""
                self.result.at = named + _entry(differences[wrong[0]])
        return matched

    def _expected(self, failure: Failure) -> dict[str, Any]:
        return Evaluator(self.case, self.exercise, failure.seen.sample.inputs).shown()

    def _relations(self, failure: Failure) -> None:
        """Facts about the learner's version of the first tensor that differs, where it is known which one that is."""
        name = self.result.first_difference
        expected = self._expected(failure).get(name)
        if not is_tensor(expected):
            return
        from autograder.relations import facts

        yours = self._yours(failure, name)
        self.result.facts += facts(yours, expected, failure.seen.sample.inputs, tuple(self.case.axes.get(name, "").split()))

    def _yours(self, failure: Failure, name: str) -> Any:
        value = failure.seen.outcome.value
        if name not in self.exercise.returns or len(self.exercise.returns) == 1:
            return value if name in self.exercise.returns else None
        index = self.exercise.returns.index(name)
        return value[index] if isinstance(value, (list, tuple)) and index < len(value) else None

    def _place(self, failure: Failure) -> None:
        """Say on which inputs it fails, where it is right on others."""
        failed = {id(each.seen) for each in self.attempt.failures}
        plain = [seen for seen in self.attempt.observations if not seen.sample.variant and not seen.sample.refused]
        right = [seen for seen in plain if id(seen) not in failed]
        if right and not failure.seen.sample.variant:
            wrong = [seen.sample.label for seen in plain if id(seen) in failed]
            self.result.facts.append(f"right on {len(right)} of {len(plain)} inputs, wrong on {wrong[0]}")

    def _own_words(self, failure: Failure) -> list[str]:
        """What the case itself has to say about a wrong value."""
        if self.exercise.explain is None:
            return []
        return self.exercise.explain(failure.seen.sample.inputs, failure.seen.outcome.value)

    def _inputs(self, seen: Observation) -> list[str]:
        """The arguments that are tensors of the course's vocabulary."""
        return [name for name in seen.sample.inputs if name in self.case.steps and name not in self.exercise.shown]

    def _shape(self, name: str, expected: Any) -> str | None:
        if not is_tensor(expected):
            return None
        axes, sizes = self.case.axes.get(name, "").split(), tuple(expected.shape)
        return f"({', '.join(axes)}) = {sizes}" if axes and len(axes) == len(sizes) else f"{sizes}"


def _mistake(fault: Fault) -> Mistake:
    return Mistake(fault.id, fault.text)


def _entry(difference: Difference) -> str:
    text = f"{difference.where} yours {difference.yours}, expected {difference.expected}".strip()
    if difference.kind in ("shape", "dtype", "type", "length", "device"):
        return f"{difference.kind}: {text}" if not difference.where else f"{text} ({difference.kind})"
    if difference.total > 1:
        text += f"   ({difference.wrong} of {difference.total} entries"
        text += f", largest gap {difference.gap:.2g})" if difference.gap == difference.gap else ")"
    return text
