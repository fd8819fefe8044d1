"""Where does the learner's computation first leave the right path?

Each expected tensor is looked up, by value, among all the tensors that the learner's function computed. The
look-up does not mind how the axes are ordered, whether batch and heads are one axis, or whether a loop made the
tensor slice by slice, so it works for any style of code and needs nothing in the learner's file.
"""

import itertools
from typing import Any

from autograder.case import Case, Exercise
from autograder.compare import mismatch
from autograder.probe import is_tensor

MOST_AXES = 5


class Recording:
    """The tensors that one call computed, found again by their numbers."""

    def __init__(self, tensors: list, tolerance: float):
        self.tolerance = tolerance
        self._by_sizes: dict[tuple[int, ...], list[tuple[float, Any]]] = {}
        for tensor in tensors:
            self._by_sizes.setdefault(_sizes(tensor), []).append((_weight(tensor), tensor))
            if tensor.dim() > MOST_AXES - 1:  # heads in groups: (B, Hkv, G, Tq, Tk) holds (B, H, Tq, Tk)
                joined = tensor.flatten(1, 2)
                self._by_sizes.setdefault(_sizes(joined), []).append((_weight(joined), joined))

    def has_sizes_of(self, expected: Any) -> bool:
        """Whether any tensor of these sizes was computed, with whatever numbers in it."""
        return not is_tensor(expected) or _sizes(expected) in self._by_sizes

    def holds(self, expected: Any) -> bool:
        """Whether the tensor was computed: whole, or all its slices along its first one or two axes."""
        if not is_tensor(expected) or not expected.is_floating_point() or expected.numel() < 2:
            return False
        if self._whole(expected):
            return True
        if expected.dim() > 2 and self._whole(expected.flatten(0, 1)):
            return True
        slices = [
            [expected.select(axis, index) for index in range(expected.shape[axis])] for axis in range(min(2, expected.dim() - 1))
        ]
        if expected.dim() > 3:
            slices.append(list(expected.flatten(0, 1)))
        return any(all(part.numel() > 1 and self._whole(part) for part in parts) for parts in slices)

    def _whole(self, expected: Any) -> bool:
        weight = _weight(expected)
        room = 1e-3 * abs(weight) + 1e-6
        candidates = [
            tensor for own, tensor in self._by_sizes.get(_sizes(expected), ()) if abs(own - weight) <= room or own != own
        ]
        return any(self._turned(candidate.squeeze(), expected.detach().squeeze()) for candidate in candidates)

    def _turned(self, candidate: Any, expected: Any) -> bool:
        """Equal up to the order of the axes."""
        if expected.dim() > MOST_AXES:
            return False
        return any(
            not mismatch(candidate, expected.permute(order), self.tolerance).any()
            for order in itertools.permutations(range(expected.dim()))
            if expected.permute(order).shape == candidate.shape
        )


def _sizes(tensor: Any) -> tuple[int, ...]:
    """The sizes of a tensor's axes, whatever their order; axes of size 1 do not count."""
    return tuple(sorted(size for size in tensor.shape if size != 1))


def _weight(tensor: Any) -> float:
    """A number that does not depend on the order of the axes: the sum of absolute values."""
    return float(tensor.detach().abs().sum())


def locate(
    case: Case, exercise: Exercise, recording: Recording | None, expected: dict[str, Any], right: set[str] = frozenset()
) -> tuple[list[str], str | None]:
    """The tensors that match, and the first that does not.

    A tensor that was never computed by itself counts as matched where one that is computed from it matches:
    a fused expression skips intermediates, and what comes after them shows that they were right.

    recording  None where the exercise computes no floating-point tensors
    right      the results, among `exercise.returns`, that are as expected
    """
    found = set(right)
    for name in exercise.shown:
        if name not in exercise.returns and recording and name in expected and recording.holds(expected[name]):
            found.add(name)
    for name in tuple(found):
        found |= _behind(case, exercise, name)
    wrong = [name for name in exercise.shown if name not in found]
    # An intermediate of which nothing like it was computed cannot be called wrong: look on.
    seen = [name for name in wrong if name in exercise.returns or (recording and recording.has_sizes_of(expected.get(name)))]
    return [name for name in exercise.shown if name in found], next(iter(seen), None)


def _behind(case: Case, exercise: Exercise, name: str) -> set[str]:
    """The steps that a step is computed from."""
    behind: set[str] = set()
    waiting = [parameter for parameter in case.steps[name].parameters if parameter not in exercise.parameters]
    while waiting:
        step = waiting.pop()
        if step not in behind:
            behind.add(step)
            waiting += [parameter for parameter in case.steps[step].parameters if parameter not in exercise.parameters]
    return behind
