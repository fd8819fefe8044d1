"""What is true of a wrong tensor, when no known mistake reproduces it: facts, never guesses."""

import itertools
from typing import Any

import torch
from torch import Tensor

from autograder.compare import mismatch

LOOSE = 2e-5  # a relation is found after more arithmetic than a value, and needs a little more room


def facts(yours: Any, expected: Tensor, inputs: dict[str, Any], axes: tuple[str, ...] = ()) -> list[str]:
    """At most three sentences that hold for the learner's tensor, most telling first.

    axes  the names of the expected tensor's axes, where they are known: ("B", "H", "Tq", "Tk")
    """
    if not isinstance(yours, Tensor) or not yours.is_floating_point() or not expected.is_floating_point():
        return []
    yours, expected = yours.detach().double(), expected.detach().double()
    if yours.shape != expected.shape:
        return _reshaped(yours, expected)
    names = axes if len(axes) == expected.dim() else tuple(f"axis {i}" for i in range(expected.dim()))
    if not torch.isfinite(yours).all() and torch.isfinite(expected).all():
        return _not_finite(yours, names)
    found = _constant(yours) + _equal_to_input(yours, inputs) + _scaled(yours, expected) + _permuted(yours, expected, names)
    found = found or _partly_right(yours, expected, names)
    return (found + _sums(yours, expected, names))[:3]


def equal(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and not mismatch(a, b, LOOSE).any()


def _reshaped(yours: Tensor, expected: Tensor) -> list[str]:
    if yours.numel() != expected.numel():
        return []
    if equal(yours.reshape(expected.shape), expected):
        return [f"the numbers are right, in the wrong shape: reshape gives {tuple(expected.shape)}"]
    for order in itertools.permutations(range(yours.dim())):
        if yours.dim() <= 5 and equal(yours.permute(order), expected):
            return [f"the numbers are right, with the axes in another order: yours permuted by {list(order)} is as expected"]
    return []


def _not_finite(yours: Tensor, names: tuple[str, ...]) -> list[str]:
    bad = ~torch.isfinite(yours)
    kind = "NaN" if torch.isnan(yours).any() else "inf"
    if bad.all():
        return [f"every entry is {kind}"]
    return [f"{int(bad.sum())} of {bad.numel()} entries are {kind}, the first at {bad.nonzero()[0].tolist()}"]


def _constant(yours: Tensor) -> list[str]:
    if yours.numel() > 1 and (yours == yours.flatten()[0]).all():
        return [f"every entry of yours is {float(yours.flatten()[0]):.4g}"]
    return []


def _equal_to_input(yours: Tensor, inputs: dict[str, Any]) -> list[str]:
    same = [
        name
        for name, value in inputs.items()
        if isinstance(value, Tensor) and value.is_floating_point() and equal(yours, value.detach().double())
    ]
    return [f"yours is equal to the argument {same[0]}"] if same else []


def _scaled(yours: Tensor, expected: Tensor) -> list[str]:
    if yours.numel() < 3:
        return []
    factor = float((yours * expected).sum() / (expected * expected).sum()) if expected.any() else 0.0
    if factor and equal(yours, factor * expected):
        return [f"yours is {factor:.4g} times the expected tensor"]
    offset = float((yours - expected).mean())
    if equal(yours - offset, expected):
        return [f"yours is the expected tensor plus {offset:.4g} everywhere"]
    return []


def _permuted(yours: Tensor, expected: Tensor, names: tuple[str, ...]) -> list[str]:
    found = []
    for i, j in itertools.combinations(range(expected.dim()), 2):
        if expected.shape[i] == expected.shape[j] and equal(yours.transpose(i, j), expected):
            found.append(f"equal after transposing {names[i]} and {names[j]}")
    for axis, name in enumerate(names):
        if expected.shape[axis] < 2:
            continue
        if equal(yours.flip(axis), expected):
            found.append(f"equal after reversing {name}")
            continue
        found += _shifted(yours, expected, axis, name) or _reordered(yours, expected, axis, name)
    return found


def _shifted(yours: Tensor, expected: Tensor, axis: int, name: str) -> list[str]:
    for step in (1, -1):
        if equal(yours.roll(step, axis), expected):
            return [f"equal after shifting {name} by {step} (going round)"]
    length = expected.shape[axis] - 1
    if length > 1 and equal(yours.narrow(axis, 0, length), expected.narrow(axis, 1, length)):
        return [f"yours runs one place ahead along {name}"]
    if length > 1 and equal(yours.narrow(axis, 1, length), expected.narrow(axis, 0, length)):
        return [f"yours runs one place behind along {name}"]
    return []


def _reordered(yours: Tensor, expected: Tensor, axis: int, name: str) -> list[str]:
    """The slices along one axis are all there, in another order."""
    mine, right = _rows(yours, axis), _rows(expected, axis)
    distance = torch.cdist(mine, right, p=float("inf"))
    order = distance.argmin(1).tolist()
    if sorted(order) == list(range(len(order))) and order != sorted(order) and equal(mine, right[order]):
        return [f"the slices along {name} are right, but in the order {order}"]
    return []


def _rows(tensor: Tensor, axis: int) -> Tensor:
    """The slices along one axis, each as a row."""
    return tensor.movedim(axis, 0).reshape(tensor.shape[axis], -1)


def _partly_right(yours: Tensor, expected: Tensor, names: tuple[str, ...]) -> list[str]:
    """Whole slices along one axis that are right, where the others are wrong for the most part."""
    wrong = mismatch(yours, expected, LOOSE)
    found = []
    for axis, name in enumerate(names):
        rows = _rows(wrong, axis)
        bad = rows.any(1)
        good = [index for index, is_bad in enumerate(bad.tolist()) if not is_bad]
        if not good or bad.numel() < 2 or rows[bad].double().mean() < 0.25:
            continue  # where few entries are wrong, a slice without one is chance
        if good == list(range(len(good))):
            upto = f"index {good[-1]}" if len(good) == 1 else f"indices 0 to {good[-1]}"
            found.append(f"along {name}, {upto} right and all from {len(good)} on wrong")
        else:
            found.append(f"along {name}, right at indices {good} and wrong at all others")
    return found[:2]


def _sums(yours: Tensor, expected: Tensor, names: tuple[str, ...]) -> list[str]:
    """The expected tensor sums to one along an axis (a distribution): along which does the learner's?"""
    ones = [axis for axis in range(expected.dim()) if equal(expected.sum(axis), torch.ones_like(expected.sum(axis)))]
    if not ones or equal(yours.sum(ones[-1]), torch.ones_like(yours.sum(ones[-1]))):
        return []
    mine = [names[axis] for axis in range(yours.dim()) if equal(yours.sum(axis), torch.ones_like(yours.sum(axis)))]
    instead = f"; it does along {mine[0]}" if mine else ""
    return [f"yours does not sum to 1 along {names[ones[-1]]}{instead}"]
