"""Evaluate the steps of a case on one set of inputs, with any set of faults switched on.

Values are kept by step and by the faults that can reach it, so a search over thousands of fault sets
computes each distinct intermediate once.
"""

import copy
from collections.abc import Iterable
from typing import Any

from autograder.case import Case, Exercise, Fault


class Failed(Exception):
    """A step raised: `cause` is what a learner with these faults would see."""

    def __init__(self, cause: Exception):
        super().__init__(str(cause))
        self.cause = cause


class Evaluator:
    """The steps of one exercise on one set of inputs: `evaluator.value("pattern", faults)`."""

    def __init__(self, case: Case, exercise: Exercise, inputs: dict[str, Any]):
        self.case = case
        self.exercise = exercise
        self.inputs = {**exercise.defaults, **inputs}
        self._reach = case.reach(exercise)
        self._values: dict[tuple | str, tuple[str, Any]] = {}

    def value(self, name: str, faults: Iterable[Fault] = ()) -> Any:
        """The tensor of that name under these faults. Raises `Failed` where a faulty step raises."""
        if name in self.inputs:
            return self.inputs[name]
        reach = self._reach[name]
        active = [fault.id for fault in faults if fault.at in reach]
        key = (name, frozenset(active)) if active else name
        if key not in self._values:
            try:
                self._values[key] = ("value", self._compute(name, faults))
            except Failed as failed:
                self._values[key] = ("failed", failed.cause)
            except Exception as cause:
                self._values[key] = ("failed", cause)
        kind, content = self._values[key]
        if kind == "failed":
            raise Failed(content)
        return content

    def output(self, faults: Iterable[Fault] = ()) -> Any:
        """The exercise's value: one tensor, or a tuple of them."""
        values = tuple(self.value(name, faults) for name in self.exercise.returns)
        return values[0] if len(values) == 1 else values

    def shown(self, faults: Iterable[Fault] = ()) -> dict[str, Any]:
        """Every tensor that the learner sees, in running order, up to the first that cannot be computed."""
        tensors: dict[str, Any] = {}
        for name in self.exercise.shown:
            try:
                tensors[name] = self.value(name, faults)
            except Failed:
                break
        return tensors

    def _compute(self, name: str, faults: Iterable[Fault]) -> Any:
        here = [fault for fault in faults if fault.at == name]
        replacing = [fault for fault in here if not fault.spoils]
        source = replacing[0] if replacing else self.case.steps[name]
        value = source.function(**self._read(source.parameters, faults))
        for fault in here:
            if fault.spoils:
                value = fault.function(right=value, **self._read(fault.parameters, faults))
        return value

    def _read(self, parameters: tuple[str, ...], faults: Iterable[Fault]) -> dict[str, Any]:
        return {name: self._own(self.value(name, faults)) for name in parameters if name != "right"}

    @staticmethod
    def _own(value: Any) -> Any:
        """Plain containers are copied, so that a step may change what it is given; tensors are never changed in place."""
        return copy.deepcopy(value) if isinstance(value, (list, dict, set)) else value


def compatible(faults: Iterable[Fault]) -> bool:
    """Whether these faults can be made together: at most one of them replaces any one step."""
    replaced = [fault.at for fault in faults if not fault.spoils]
    return len(replaced) == len(set(replaced))
