"""Run one call of the learner's code and say what came back. This file knows nothing of what is expected.

It is the half of the grader that may run in a sandbox: it takes plain data (numbers, strings, lists, tensors)
and gives plain data back.
"""

import copy
import importlib
import re
import sys
import traceback
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.case import Exercise
from autograder.limits import TimedOut, time_limit


@dataclass(frozen=True)
class Problem:
    """An exception, placed in the learner's file."""

    type: str
    message: str
    line: int | None
    function: str | None
    code: str | None

    @property
    def deliberate(self) -> bool:
        """Whether the learner's own line raised it: a `raise` or an `assert`."""
        return bool(re.search(r"\b(raise|assert)\b", self.code or ""))

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type


@dataclass
class Outcome:
    """What one call did. `status` is "value", "error", "todo" or "timeout"."""

    status: str
    value: Any = None
    gradients: dict[str, Any] = field(default_factory=dict)
    detached: bool = False
    changed: tuple[str, ...] = ()  # arguments that the call changed in place
    forbidden: tuple = ()
    problem: Problem | None = None
    exception: BaseException | None = None
    recording: list = field(default_factory=list)


def call(
    module: ModuleType,
    exercise: Exercise,
    inputs: dict[str, Any],
    *,
    gradients: bool = False,
    record: bool = False,
    seconds: float = 10.0,
) -> Outcome:
    """Call the learner's function on a copy of the inputs.

    gradients  also differentiate sum(out * cotangent(out)) with respect to every floating-point argument
    record     also keep every tensor that is computed on the way
    seconds    stop it then
    """
    arguments = {name: own(value, gradients) for name, value in inputs.items()}
    outcome = Outcome("value")
    try:
        with ExitStack() as stack:
            trapped = recorder = None
            if exercise.forbidden or record:
                from autograder.recorder import Recorder, trap

                trapped = stack.enter_context(trap(exercise.forbidden, module.__file__)) if exercise.forbidden else None
                recorder = stack.enter_context(Recorder()) if record else None
            stack.enter_context(time_limit(seconds))
            outcome.value = _function(module, exercise)(arguments)
            if gradients:
                outcome.gradients, outcome.detached = differentiate(outcome.value, arguments)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as exception:
        outcome = _failed(exception, module, exercise)
    if trapped:
        outcome.forbidden = tuple(trapped.calls)
    if recorder:
        outcome.recording = recorder.tensors
    outcome.changed = tuple(name for name, value in inputs.items() if not same(arguments[name], value))
    return outcome


def _function(module: ModuleType, exercise: Exercise) -> Callable[[dict[str, Any]], Any]:
    """The call to make: the learner's function itself, or the course's probe around it."""
    if exercise.probe:
        probes = importlib.import_module(f"autograder.probes.{exercise.module}")
        return lambda arguments: getattr(probes, exercise.probe)(module, **arguments)
    return lambda arguments: exercise.apply(getattr(module, exercise.name), arguments)


def _failed(exception: BaseException, module: ModuleType, exercise: Exercise) -> Outcome:
    problem = locate(exception, module.__file__)
    if isinstance(exception, TimedOut):
        return Outcome("timeout", problem=problem, exception=exception)
    if isinstance(exception, NotImplementedError) and raised_in(exception, Path(module.__file__).parent.parent):
        return Outcome("todo", problem=problem, exception=exception)
    return Outcome("error", problem=problem, exception=exception)


def locate(exception: BaseException, file: str) -> Problem:
    """The exception with the innermost line of the learner's file that it passed through."""
    frames = [frame for frame in traceback.extract_tb(exception.__traceback__) if frame.filename == file]
    line = frames[-1].lineno if frames else getattr(exception, "lineno", None)
    function = frames[-1].name if frames else None
    code = frames[-1].line if frames else (getattr(exception, "text", None) or "").strip() or None
    message = exception.msg if isinstance(exception, SyntaxError) else str(exception)
    return Problem(type(exception).__name__, message, line, function, code)


def raised_in(exception: BaseException, folder: Path) -> bool:
    """Whether the innermost frame is in a file below the folder."""
    frames = traceback.extract_tb(exception.__traceback__)
    return bool(frames) and Path(frames[-1].filename).is_relative_to(folder)


def is_tensor(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def own(value: Any, gradients: bool = False) -> Any:
    """A copy that the learner may do with as they like: same strides, and a leaf for autograd if asked for."""
    if not is_tensor(value):
        return copy.deepcopy(value)
    import torch

    with torch.no_grad():
        twin = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device)
        twin.copy_(value)
    return twin.requires_grad_(gradients and twin.is_floating_point())


def flat(value: Any) -> list:
    """The leaves of nested lists and tuples, in order."""
    return [leaf for part in value for leaf in flat(part)] if isinstance(value, (list, tuple)) else [value]


def each_tensor(value: Any, change: Callable) -> Any:
    """The value with every tensor in it changed: in lists, tuples and dictionaries too."""
    if isinstance(value, dict):
        return {key: each_tensor(part, change) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(each_tensor(part, change) for part in value)
    return change(value) if is_tensor(value) else value


def same(a: Any, b: Any) -> bool:
    """Bit for bit equal, NaN included."""
    if is_tensor(a) and is_tensor(b):
        import torch

        return (
            a.shape == b.shape and a.dtype == b.dtype and torch.equal(torch.nan_to_num(a.detach()), torch.nan_to_num(b.detach()))
        )
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return a is b or bool(a == b)


def cotangent(tensor):
    """Fixed weights, one for each entry, so that every entry's gradient is told apart."""
    import torch

    weights = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(tensor.numel()), dtype=torch.float64)
    return weights.to(tensor.device, tensor.dtype)


def differentiate(value: Any, arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """Gradients of sum(value * cotangent(value)) by argument name, and whether the value is cut off from all of them."""
    leaves = {name: tensor for name, tensor in arguments.items() if is_tensor(tensor) and tensor.requires_grad}
    outputs = [leaf for leaf in flat(value) if is_tensor(leaf) and leaf.is_floating_point()]
    attached = [tensor for tensor in outputs if tensor.requires_grad]
    if not leaves or not outputs:
        return {}, False
    if not attached:
        return {}, True
    import torch

    # A scalar: given a tensor of weights instead, autograd imports a symbolic algebra package (half a second).
    total = sum((tensor * cotangent(tensor)).sum() for tensor in attached)
    grads = torch.autograd.grad(total, list(leaves.values()), allow_unused=True)
    zero = {name: torch.zeros_like(tensor) for name, tensor in leaves.items()}
    return {name: zero[name] if grad is None else grad for (name, grad) in zip(leaves, grads)}, False
