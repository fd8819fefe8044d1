"""The vocabulary of a case. One file in `autograder/cases/` declares one module with it.

    case = Case("03_attention")

    @case.step
    def scores(q, k):                       # a step: one tensor, computed from the tensors named as its parameters
        return q @ k.mT / q.shape[-1] ** 0.5

    @case.fault("scale-missing", at="scores", text="...")
    def _(q, k):                            # a fault: a mistake that people make at that step
        return q @ k.mT

    case.exercise("attention_scores(q, k)", returns="scores", ...)

A step whose name starts with an underscore is internal: it is computed, but never shown to a learner.
A fault function with a parameter named `right` receives the step's right value and spoils it.
"""

import ast
import functools
import inspect
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Sample:
    """One set of arguments for an exercise, and what is special about it in a learner's words."""

    label: str
    inputs: dict[str, Any]
    refused: bool = False  # the function must raise
    raises: tuple[type[Exception], ...] = (Exception,)  # ... one of these
    variant: bool = False  # made by the grader from another sample: other dtype, other strides
    apart: tuple[str, str] | None = None  # judged, but left out of the search; the mistake where such samples alone fail
    golden: bool = False  # recorded from the trained model; the expected tensors come from the file
    gradient: bool = True


def sample(label: str, *, gradient: bool = True, apart: tuple[str, str] | None = None, **inputs: Any) -> Sample:
    """Arguments, in the contract's order, for which the function has a value.

    apart  for inputs whose rounding hides every mistake but one (half precision): that mistake's id and question
    """
    return Sample(label, inputs, gradient=gradient and not apart, variant=apart is not None, apart=apart)


def refusal(label: str, *raises: type[Exception], **inputs: Any) -> Sample:
    """Arguments that the function must refuse, by raising one of `raises` (any exception when none is named)."""
    return Sample(label, inputs, refused=True, raises=raises or (Exception,), gradient=False)


ANY = "any message"  # a fault that raises with this message stands for every wording of a `raise` or `assert`


class Draw:
    """Seeded random inputs on one device. Torch is imported only when a tensor is drawn."""

    def __init__(self, seed: int, device: str = "cpu"):
        self.seed = seed
        self.device = device
        self.random = random.Random(seed)

    def normal(self, *shape: int, scale: float = 1.0):
        """A float32 tensor of that shape, normal with mean 0 and standard deviation `scale`."""
        import torch

        generator = torch.Generator().manual_seed(self.random.getrandbits(63))
        return (torch.randn(shape, generator=generator, dtype=torch.float32) * scale).to(self.device)

    def integers(self, low: int, high: int, *shape: int):
        """An int64 tensor of that shape with low <= value < high."""
        import torch

        generator = torch.Generator().manual_seed(self.random.getrandbits(63))
        return torch.randint(low, high, shape, generator=generator).to(self.device)

    def tensor(self, values: Any):
        """These values as a tensor."""
        import torch

        return torch.tensor(values, device=self.device)


@dataclass(frozen=True)
class Step:
    name: str
    function: Callable
    parameters: tuple[str, ...]

    @property
    def public(self) -> bool:
        return not self.name.startswith("_")


@dataclass(frozen=True)
class Fault:
    """A mistake that people make: what it computes at one step instead of the right value."""

    id: str
    at: str  # the step it spoils
    tensor: str  # the first tensor, among those a learner sees, that comes out different
    text: str  # the question or pointer that the report prints
    function: Callable
    parameters: tuple[str, ...]
    only: tuple[str, ...] = ()  # the exercises it applies to; empty: all that compute the step

    @property
    def spoils(self) -> bool:
        """Whether it changes the step's right value, rather than replacing the step."""
        return "right" in self.parameters


@dataclass(frozen=True)
class Exercise:
    """One function that the learner writes."""

    module: str
    signature: str
    returns: tuple[str, ...]
    inputs: Callable[[Draw], Iterable[Sample]]
    points: int
    hints: tuple[str, str, str]  # a question, a pointer, a formula
    lesson: str  # the title of the lesson's section
    reference: Callable | None = None  # an implementation on the library's own operators
    contract: str = ""  # the signature that learners read, where the probe's arguments are others
    probe: str | None = None  # a function of autograder/probes/ that calls the learner's; None: called as it is
    golden: Callable | None = None  # activations and weights of the trained model -> inputs
    forbidden: tuple[str, ...] = ()
    explain: Callable | None = None  # inputs and the learner's wrong value -> sentences about it
    shown: tuple[str, ...] = ()  # the tensors compared, in running order
    defaults: dict[str, Any] = field(default_factory=dict)
    tolerance: float = 1e-5
    seconds: float = 10.0

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]

    @functools.cached_property
    def parameters(self) -> tuple[str, ...]:
        return tuple(_parse(self.signature))

    def apply(self, function: Callable, inputs: dict[str, Any]) -> Any:
        """Call a function as the contract's signature says: what has a default by name, the rest by position."""
        required = [value for name, value in inputs.items() if name not in self.defaults]
        optional = {name: value for name, value in inputs.items() if name in self.defaults}
        return function(*required, **optional)


def _parse(signature: str) -> dict[str, Any]:
    """The parameters of a signature with their defaults (`inspect.Parameter.empty` where there is none)."""
    arguments = ast.parse(f"def {signature}: pass").body[0].args
    names = [argument.arg for argument in arguments.args + arguments.kwonlyargs]
    values = [ast.literal_eval(node) for node in arguments.defaults + arguments.kw_defaults]
    missing = [inspect.Parameter.empty] * (len(names) - len(values))
    return dict(zip(names, missing + values))


class Case:
    """All that the grader knows of one module. A learner may read it: it holds no solution code."""

    def __init__(self, module: str, axes: dict[str, str] | None = None, hidden: tuple[str, ...] = ()):
        self.module = module
        self.hidden = hidden  # steps that are not shown although their name, an argument's elsewhere, has no underscore
        self.axes = axes or {}  # the names of each tensor's axes: {"scores": "B H Tq Tk"}
        self.steps: dict[str, Step] = {}
        self.faults: dict[str, Fault] = {}
        self.exercises: dict[str, Exercise] = {}
        self._kept: dict[tuple[str, str], Any] = {}

    def step(self, function: Callable) -> Callable:
        """Declare a step: the function's name is the tensor's, its parameters are the tensors it is computed from."""
        name = function.__name__
        self._kept.clear()
        self.steps[name] = Step(name, function, tuple(inspect.signature(function).parameters))
        return function

    def fault(self, id: str, at: str, text: str, tensor: str | None = None, only: tuple[str, ...] = ()) -> Callable:
        """Declare a fault at a step. `tensor` must be given when the step is internal."""
        if at not in self.steps:
            raise ValueError(f"fault {id!r} is at {at!r}, which is no step of {self.module}")
        if id in self.faults:
            raise ValueError(f"fault {id!r} is declared twice in {self.module}")

        def declare(function: Callable) -> Callable:
            parameters = tuple(inspect.signature(function).parameters)
            self._kept.clear()
            self.faults[id] = Fault(id, at, tensor or at, text, function, parameters, only)
            return function

        return declare

    def exercise(self, signature: str, *, returns: str | tuple[str, ...], **facts: Any) -> Exercise:
        """Declare an exercise by its contract signature and the step, or steps, that its value is."""
        returns = (returns,) if isinstance(returns, str) else returns
        defaults = {name: value for name, value in _parse(signature).items() if value is not inspect.Parameter.empty}
        exercise = Exercise(self.module, signature, returns, defaults=defaults, **facts)
        exercise = replace(exercise, shown=self._shown(exercise))
        self.exercises[exercise.name] = exercise
        return exercise

    def needed(self, exercise: Exercise) -> list[str]:
        """The steps that the exercise computes, in running order."""
        return self._once(("needed", exercise.signature), lambda: self._walk(exercise))

    def reach(self, exercise: Exercise) -> dict[str, frozenset[str]]:
        """For each step of the exercise, itself and every step that it or a fault of it can read."""
        return self._once(("reach", exercise.signature), lambda: self._ancestors(exercise))

    def faults_of(self, exercise: Exercise) -> list[Fault]:
        """The faults that can show in this exercise."""
        return self._once(("faults", exercise.signature), lambda: self._showing(exercise))

    def _once(self, key: tuple[str, str], compute: Callable) -> Any:
        """Kept until the case is added to: the search asks for these thousands of times."""
        if key not in self._kept:
            self._kept[key] = compute()
        return self._kept[key]

    def _ancestors(self, exercise: Exercise) -> dict[str, frozenset[str]]:
        reads: dict[str, set[str]] = {name: set(self.steps[name].parameters) for name in self.needed(exercise)}
        for fault in self.faults_of(exercise):
            reads[fault.at] |= set(fault.parameters)
        reach: dict[str, frozenset[str]] = {}
        for name in self.steps:  # running order: what a step reads stands above it
            if name in reads:
                reach[name] = frozenset({name}).union(*(reach.get(read, ()) for read in reads[name]))
        return reach

    def _walk(self, exercise: Exercise) -> list[str]:
        found: set[str] = set()
        waiting = list(exercise.returns)
        while waiting:
            name = waiting.pop()
            if name in found or name in exercise.parameters:
                continue
            if name not in self.steps:
                raise ValueError(f"{self.module}: {exercise.name} needs {name!r}, which is neither an input nor a step")
            found.add(name)
            waiting.extend(self.steps[name].parameters)
        return [name for name in self.steps if name in found]

    def _shown(self, exercise: Exercise) -> tuple[str, ...]:
        return tuple(name for name in self.needed(exercise) if self.steps[name].public and name not in self.hidden)

    def _showing(self, exercise: Exercise) -> list[Fault]:
        needed = self.needed(exercise)
        return [fault for fault in self.faults.values() if fault.at in needed and (not fault.only or exercise.name in fault.only)]
