"""What happens while the learner's function runs: the tensors it computes, and the calls it should not make."""

import functools
import pkgutil
import sys
from contextlib import contextmanager
from dataclasses import dataclass

from torch import Tensor
from torch.overrides import TorchFunctionMode, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MOST_TENSORS = 20_000
MOST_NUMBERS = 20_000_000


@dataclass(frozen=True)
class ForbiddenCall:
    name: str
    line: int | None  # in the learner's file, where it is on the stack


class Recorder(TorchDispatchMode):
    """Keeps a copy of every floating-point tensor that an operator gives back, in running order."""

    def __init__(self):
        super().__init__()
        self.tensors: list[Tensor] = []
        self._numbers = 0

    @classmethod
    def _should_skip_dynamo(cls):
        # Told to skip the compiler, PyTorch first imports it: more than a second, for nothing that is compiled here.
        return False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if type(leaf) is Tensor and leaf.is_floating_point() and leaf.numel() > 1:
                self._numbers += leaf.numel()
                if len(self.tensors) < MOST_TENSORS and self._numbers < MOST_NUMBERS:
                    self.tensors.append(leaf.detach().clone())
        return result


class Trap(TorchFunctionMode):
    """Notes calls of library functions whose name contains one of the forbidden words."""

    def __init__(self, words: tuple[str, ...], file: str):
        super().__init__()
        self.words, self.file = words, file
        self.calls: list[ForbiddenCall] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        name = getattr(function, "__name__", "")
        if any(word in name for word in self.words):
            self.note(resolve_name(function) or name)
        return function(*args, **(kwargs or {}))

    def note(self, name: str) -> None:
        frame = sys._getframe(1)
        while frame and frame.f_code.co_filename != self.file:
            frame = frame.f_back
        self.calls.append(ForbiddenCall(name, frame.f_lineno if frame else None))


@contextmanager
def trap(words: tuple[str, ...], file: str):
    """Note forbidden calls in the body. A word with dots is an attribute to watch: `torch.optim.Optimizer.__init__`."""
    attributes = [word for word in words if "." in word]
    mode = Trap(tuple(word for word in words if "." not in word), file)
    restore = []
    for path in attributes:
        owner, attribute = _resolve(path)
        restore.append((owner, attribute, getattr(owner, attribute)))
        setattr(owner, attribute, _watched(getattr(owner, attribute), path, mode))
    try:
        with mode:
            yield mode
    finally:
        for owner, attribute, original in restore:
            setattr(owner, attribute, original)


def _resolve(path: str):
    owner, _, attribute = path.rpartition(".")
    return pkgutil.resolve_name(owner), attribute


def _watched(function, path: str, mode: Trap):
    @functools.wraps(function)
    def watched(*args, **kwargs):
        mode.note(path)
        return function(*args, **kwargs)

    return watched
