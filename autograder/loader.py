"""Load a learner's files, which import each other by plain name (`from attention import split_heads`).

A finder on `sys.meta_path` decides whose file a plain name means: the learner's own, or the solution's
where the learner has not written that module yet (`parts`).
"""

import ast
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from autograder.course import NAMES, ROOT, Module

PLAIN = {Module(name).plain: Module(name) for name in NAMES}
PARTS = ("own", "auto", "solutions")


class Uncached(importlib.machinery.SourceFileLoader):
    """Reads the source each time: byte code is trusted by time stamp, and two saves can share one."""

    def path_stats(self, path):
        raise OSError("no byte code")


def unwritten(source: str) -> list[str]:
    """The functions and methods of a file whose body is still `raise NotImplementedError`."""
    return [
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef)
        and isinstance(node.body[-1], ast.Raise)
        and "NotImplementedError" in ast.dump(node.body[-1])
    ]


def written(file: Path) -> bool:
    """Whether the file holds a module without a stub left in it. One that does not parse is not written yet."""
    try:
        return not unwritten(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, SyntaxError, ValueError):
        return False


class Learner:
    """One learner's files, below `folder` as `NN_name/name.py`.

    parts  whose code another module's import gets: "own" the learner's, "solutions" the solutions',
           "auto" the learner's where it is written and the solution's where it is not.
    """

    def __init__(self, folder: Path = ROOT / "modules", parts: str = "auto"):
        if parts not in PARTS:
            raise ValueError(f"parts is {parts!r}: expected one of {' '.join(PARTS)}")
        self.folder = Path(folder).resolve()
        self.parts = parts
        self.borrowed: list[str] = []
        self.graded: Module | None = None

    def file(self, module: Module) -> Path:
        return self.folder / module.name / module.file_name

    def load(self, module: Module) -> ModuleType:
        """Import the learner's file of this module afresh. Whatever the file raises passes through."""
        self.graded = module
        self.install()
        return importlib.import_module(module.plain)

    def install(self) -> None:
        """From here on, the course's plain module names mean this learner's files, read afresh."""
        for plain in PLAIN:
            sys.modules.pop(plain, None)
        sys.meta_path[:] = [self] + [finder for finder in sys.meta_path if not isinstance(finder, Learner)]

    def find_spec(self, name: str, path=None, target=None):
        """Called by `import`: the file that a plain module name means."""
        module = PLAIN.get(name)
        if module is None:
            return None
        source = self._source(module)
        return importlib.util.spec_from_file_location(name, source, loader=Uncached(name, str(source)))

    def _source(self, module: Module) -> Path:
        own = self.file(module)
        if module == self.graded or self.parts == "own":
            return own
        if self.parts == "auto" and written(own):
            return own
        if module.name not in self.borrowed:
            self.borrowed.append(module.name)
        return module.solution


def solution(module: Module) -> ModuleType:
    """The module's solution, under a private name, so that it never stands in for the learner's file."""
    name = f"_solution_{module.plain}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, module.solution)
        loaded = importlib.util.module_from_spec(spec)
        sys.modules[name] = loaded
        spec.loader.exec_module(loaded)
    return sys.modules[name]
