"""Grade one exercise: run it on every sample, compare, and where it differs say where first and why.

A function that fails is run once more with the solution's version of every other failing function in its place:
one mistake costs one exercise, and a second mistake is not hidden behind the first.
"""

import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from autograder.case import Exercise, Sample
from autograder.compare import compare
from autograder.course import ROOT, Module
from autograder.diagnose import Observation
from autograder.explain import Explainer
from autograder.golden import Goldens
from autograder.judge import Attempt, Failure, judge
from autograder.loader import Learner, solution
from autograder.probe import Outcome, Problem, call
from autograder.probe import locate as place
from autograder.result import Result
from autograder.samples import samples
from autograder.steps import Evaluator


class Grader:
    """Grades the exercises of one learner. Results are kept, so that exercises can lean on each other's."""

    def __init__(self, learner: Learner, seed: int, device: str = "cpu", seconds: float | None = None):
        self.learner, self.seed, self.device = learner, seed, device
        self.seconds = seconds  # for each call, in place of the exercise's own limit
        self._loaded: dict[Module, ModuleType | Problem] = {}
        self._goldens: dict[Module, Goldens | None] = {}
        self._attempts: dict[tuple[Module, str], Attempt] = {}
        self._samples: dict[tuple[Module, str], list[Sample]] = {}
        self.exception: BaseException | None = None  # the last one the learner's code raised, for a debugger

    def grade(self, module: Module, name: str) -> Result:
        """The result of one exercise."""
        exercise = module.case().exercises[name]
        result = Result(module.name, name, exercise.points, lesson=exercise.lesson, seed=self.seed, device=self.device)
        result.file = _short(self.learner.file(module))
        loaded = self.load(module)
        if isinstance(loaded, Problem):
            return self._unloaded(result, loaded)
        if self.learner.parts == "auto":  # with "solutions" every other module is borrowed, and nobody asks
            result.borrowed = [borrowed for borrowed in self.learner.borrowed if borrowed != module.name]
        function = getattr(loaded, name, None)
        if not callable(function):
            result.status = "error"
            result.message = f"{module.file_name} has no {name}: expected {exercise.contract or exercise.signature}"
            return result
        result.line = getattr(getattr(function, "__code__", None), "co_firstlineno", None) or _class_line(function, loaded)
        attempt = self._attempt(module, name)
        leaning = self._leaning(module, name) if attempt.failures else []
        with replaced(loaded, solution(module) if leaning else loaded, leaning):
            if leaning:
                attempt = self._run(module, name, loaded)
            if attempt.failures:
                Explainer(module.case(), exercise, loaded, attempt, result, self.seconds or exercise.seconds).explain()
            else:
                result.points, result.rests_on = exercise.points, leaning
        return result

    def passes(self, module: Module, name: str) -> bool:
        """Whether the exercise is right by itself, without a word on why it is not."""
        return not self._attempt(module, name).failures

    def load(self, module: Module) -> ModuleType | Problem:
        """The learner's module, or why it cannot be imported."""
        if module not in self._loaded:
            try:
                self._loaded[module] = self.learner.load(module)
                _preload(self.learner.file(module))
            except (KeyboardInterrupt, GeneratorExit):
                raise
            except BaseException as exception:
                self.exception = exception
                self._loaded[module] = place(exception, str(self.learner.file(module)))
        return self._loaded[module]

    def _unloaded(self, result: Result, problem: Problem) -> Result:
        result.status, result.line = "error", problem.line
        result.message = f"{problem}" + (f", at: {problem.code}" if problem.code else "")
        result.facts = ["the file cannot be imported, so nothing in it can be graded"]
        return result

    def _attempt(self, module: Module, name: str) -> Attempt:
        key = (module, name)
        if key not in self._attempts:
            loaded = self.load(module)
            if isinstance(loaded, Problem) or not callable(getattr(loaded, name, None)):
                self._attempts[key] = Attempt([], [Failure(Observation(Sample("", {}), Outcome("error")), "error")])
            else:
                self._attempts[key] = self._run(module, name, loaded)
        return self._attempts[key]

    def _run(self, module: Module, name: str, loaded: ModuleType) -> Attempt:
        case, exercise = module.case(), module.case().exercises[name]
        observations, failures, seconds = [], [], self.seconds or exercise.seconds
        for sample in self.samples(module, exercise):
            expected = self._expected(module, exercise, sample)
            outcome = _call(loaded, exercise, sample, expected, seconds)
            self.exception = outcome.exception or self.exception
            seen = Observation(sample, outcome)
            observations.append(seen)
            failure = judge(case, exercise, seen, expected)
            failures += [failure] if failure else []
            if outcome.status in ("timeout", "todo"):
                break
        return Attempt(observations, failures)

    def samples(self, module: Module, exercise: Exercise) -> list[Sample]:
        key = (module, exercise.name)
        if key not in self._samples:
            self._samples[key] = samples(exercise, self.seed, self.device, self.goldens(module))
        return self._samples[key]

    def goldens(self, module: Module) -> Goldens | None:
        """The module's recorded tensors. Raises CheckpointError when a file is missing or was changed."""
        if module not in self._goldens:
            recorded = any(exercise.golden for exercise in module.case().exercises.values())
            self._goldens[module] = Goldens(module.name) if recorded else None
        return self._goldens[module]

    def _expected(self, module: Module, exercise: Exercise, sample: Sample) -> Any:
        if sample.refused:
            return None
        if sample.golden:
            recorded = self.goldens(module).expected(exercise, self.device)
            values = tuple(recorded[name] for name in exercise.returns)
            return values[0] if len(values) == 1 else values
        return Evaluator(module.case(), exercise, sample.inputs).output()

    def _leaning(self, module: Module, name: str) -> list[str]:
        """The failing functions that this one calls: it is judged with the solution's versions in their place."""
        loaded = self.load(module)
        used = _uses(loaded, name) | _probed(module.case().exercises[name])
        others = [other for other in module.case().exercises if other != name and other in used]
        return [other for other in others if self._attempt(module, other).failures]


def _preload(file: Path) -> None:
    """Import beforehand what the first optimiser of a process makes torch import: seconds that are not the learner's."""
    source = file.read_text(encoding="utf-8", errors="replace")
    if "torch" in sys.modules and ("torch.optim" in source or "import optim" in source):
        importlib.import_module("torch._dynamo")


def _call(loaded: ModuleType, exercise: Exercise, sample: Sample, expected: Any, seconds: float) -> Outcome:
    outcome = call(loaded, exercise, sample.inputs, gradients=sample.gradient, seconds=seconds)
    if outcome.status == "error" and sample.gradient:
        # In-place code raises only because gradients are asked for. Where it is wrong without them, say that instead.
        plain = call(loaded, exercise, sample.inputs, seconds=seconds)
        if plain.status == "value" and (plain.changed or compare(plain.value, expected, exercise.tolerance)):
            return plain
    return outcome


@contextmanager
def replaced(module: ModuleType, source: ModuleType, names: list[str]) -> Iterator[None]:
    """The module with these of its functions taken from another one."""
    before = {name: getattr(module, name) for name in names if hasattr(module, name)}
    for name in names:
        setattr(module, name, getattr(source, name))
    try:
        yield
    finally:
        for name in names:
            setattr(module, name, before[name]) if name in before else delattr(module, name)


def _uses(module: ModuleType, name: str) -> set[str]:
    """The names of the module's functions that this one can reach."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for code in _codes(getattr(module, waiting.pop(), None)):
            new = {used for used in code.co_names if used not in found and hasattr(module, used)}
            found |= new
            waiting += new
    return found - {name}


def _probed(exercise: Exercise) -> set[str]:
    """The names that the exercise's probe uses."""
    if not exercise.probe:
        return set()
    probes = importlib.import_module(f"autograder.probes.{exercise.module}")
    return {name for code in _codes(getattr(probes, exercise.probe)) for name in code.co_names}


def _codes(thing: Any) -> Iterator[CodeType]:
    """The code of a function, of a class's methods, and of what is defined inside them."""
    members = vars(thing).values() if isinstance(thing, type) else [thing]
    members = [inspect.unwrap(member) if callable(member) else member for member in members]  # behind decorators
    waiting = [member.__code__ for member in members if hasattr(member, "__code__")]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def _class_line(thing: Any, module: ModuleType) -> int | None:
    if not isinstance(thing, type):
        return None
    source = Path(module.__file__).read_text(encoding="utf-8").splitlines()
    return next((number for number, line in enumerate(source, 1) if line.startswith(f"class {thing.__name__}")), None)


def _short(path: Path) -> str:
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)
