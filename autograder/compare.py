"""Is this the expected value? One answer for tensors and for plain Python values: None, or the difference."""

import math
import numbers
from dataclasses import dataclass
from typing import Any

from autograder.probe import is_tensor


@dataclass(frozen=True)
class Difference:
    """How a value differs. `kind` is "type", "length", "shape", "dtype", "device", "finite" or "value"."""

    kind: str
    yours: str
    expected: str
    where: str = ""  # "[0, 1, 2, 0]" where one entry stands for the rest
    wrong: int = 1
    total: int = 1
    gap: float = math.nan


def compare(yours: Any, expected: Any, tolerance: float = 1e-5) -> Difference | None:
    """The first difference between the learner's value and the expected one, or None.

    Floating-point numbers agree when |yours - expected| <= tolerance * (|expected| + the largest |expected|).
    Sequences may be lists or tuples; whole numbers, text and truth values must be equal.
    """
    if is_tensor(expected):
        return _tensors(yours, expected, tolerance)
    if isinstance(expected, (list, tuple)):
        return _sequences(yours, expected, tolerance)
    if isinstance(expected, dict):
        return _mappings(yours, expected, tolerance)
    return _scalars(yours, expected, tolerance)


def _tensors(yours: Any, expected: Any, tolerance: float) -> Difference | None:
    import torch

    if type(yours) not in (torch.Tensor, torch.nn.Parameter):
        return Difference("type", type(yours).__name__, "Tensor")
    if yours.shape != expected.shape:
        return Difference("shape", str(tuple(yours.shape)), str(tuple(expected.shape)))
    if yours.dtype != expected.dtype:
        return Difference("dtype", str(yours.dtype), str(expected.dtype))
    if yours.device != expected.device:
        return Difference("device", str(yours.device), str(expected.device))
    if expected.is_meta:
        return None  # a tensor without numbers: there is nothing more to compare
    wrong = mismatch(yours, expected, tolerance)
    count = int(wrong.sum())
    if not count:
        return None
    index = tuple(wrong.nonzero()[0].tolist())
    gap = (yours.detach().double() - expected.detach().double()).abs()[wrong]
    harmed = not torch.isfinite(yours).all() and bool(torch.isfinite(expected).all())
    mine, right = show_pair(yours[index].item(), expected[index].item())
    largest = float(gap.max()) if torch.isfinite(gap).all() else math.nan
    return Difference("finite" if harmed else "value", mine, right, str(list(index)), count, expected.numel(), largest)


def mismatch(yours: Any, expected: Any, tolerance: float) -> Any:
    """Which entries of two tensors of one shape disagree, as a boolean tensor."""
    import torch

    if not expected.is_floating_point():
        return yours != expected
    yours, expected = yours.detach().double(), expected.detach().double()
    finite = torch.isfinite(expected)
    largest = expected[finite].abs().max() if finite.any() else 0.0
    close = (yours - expected).abs() <= tolerance * (expected.abs() + largest)
    equal = (yours == expected) | (torch.isnan(yours) & torch.isnan(expected))
    return ~torch.where(finite, close, equal)


def _sequences(yours: Any, expected: Any, tolerance: float) -> Difference | None:
    if not isinstance(yours, (list, tuple)):
        return Difference("type", type(yours).__name__, type(expected).__name__)
    for index, (mine, right) in enumerate(zip(yours, expected)):
        found = compare(mine, right, tolerance)
        if found:
            return _inside(found, f"[{index}]")
    if len(yours) != len(expected):
        index = min(len(yours), len(expected))
        return Difference("length", f"{len(yours)} items", f"{len(expected)} items", f"[{index}]")
    return None


def _mappings(yours: Any, expected: dict, tolerance: float) -> Difference | None:
    if not isinstance(yours, dict):
        return Difference("type", type(yours).__name__, "dict")
    for key, right in expected.items():
        if key not in yours:
            return Difference("length", "no such key", show(right), f"[{key!r}]")
        found = compare(yours[key], right, tolerance)
        if found:
            return _inside(found, f"[{key!r}]")
    extra = [key for key in yours if key not in expected]
    return Difference("length", show(yours[extra[0]]), "no such key", f"[{extra[0]!r}]") if extra else None


def _inside(found: Difference, place: str) -> Difference:
    return Difference(found.kind, found.yours, found.expected, place + found.where, found.wrong, found.total, found.gap)


def _scalars(yours: Any, expected: Any, tolerance: float) -> Difference | None:
    if isinstance(expected, bool) or expected is None or isinstance(expected, (str, bytes)):
        kind = "value" if type(yours) is type(expected) else "type"
        return None if type(yours) is type(expected) and yours == expected else Difference(kind, show(yours), show(expected))
    if isinstance(expected, numbers.Integral):
        right = isinstance(yours, numbers.Integral) and not isinstance(yours, bool)
        return None if right and yours == expected else Difference("value" if right else "type", show(yours), show(expected))
    if is_tensor(yours) and yours.dim() == 0 or not isinstance(yours, numbers.Real) or isinstance(yours, bool):
        return Difference("type", type(yours).__name__, "float")
    if (
        yours == expected
        or (math.isnan(yours) and math.isnan(expected))
        or abs(yours - expected) <= 2 * tolerance * abs(expected)
    ):
        return None
    return Difference("value", *show_pair(yours, expected), gap=abs(yours - expected))


def show_pair(yours: Any, expected: Any) -> tuple[str, str]:
    """Both values, with as many digits as it takes to see that they differ."""
    if show(yours) == show(expected) and isinstance(yours, float) and isinstance(expected, float):
        return f"{yours:.9g}", f"{expected:.9g}"
    return show(yours), show(expected)


def show(value: Any) -> str:
    """A value as the report prints it: short, and safe to print."""
    if isinstance(value, float):
        return f"{value:.4f}" if 1e-3 <= abs(value) < 1e5 or value == 0 else f"{value:.4g}"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
