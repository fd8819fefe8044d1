"""The modules of the course, and where their files lie."""

import importlib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMES = (
    "01_tokenization",
    "02_embeddings",
    "03_attention",
    "04_masking",
    "05_residual_stream",
    "06_mlp",
    "07_norms",
    "08_rope",
    "09_gqa",
    "10_training_objective",
    "11_parameter_counting",
    "12_gpt2",
)


@dataclass(frozen=True)
class Module:
    """One module of the course: `Module("03_attention")`."""

    name: str

    @property
    def plain(self) -> str:
        """The name under which Python imports the learner's file: `attention`."""
        return self.name.partition("_")[2]

    @property
    def file_name(self) -> str:
        return f"{self.plain}.py"

    @property
    def folder(self) -> Path:
        return ROOT / "modules" / self.name

    @property
    def stub(self) -> Path:
        return self.folder / self.file_name

    @property
    def solution(self) -> Path:
        return ROOT / "solutions" / self.name / self.file_name

    @property
    def lab(self) -> Path:
        """The lab's source, as text."""
        return ROOT / "solutions" / self.name / "lab.py"

    @property
    def notebook(self) -> Path:
        return self.folder / f"{self.plain}.ipynb"

    def case(self):
        """The module's case: exercises, reference, faults."""
        return importlib.import_module(f"autograder.cases.{self.name}").case


def ready() -> list[Module]:
    """The modules that have a case, in course order."""
    cases = ROOT / "autograder" / "cases"
    return [Module(name) for name in NAMES if (cases / f"{name}.py").exists()]


def find(text: str) -> Module:
    """The module that `text` names: "3", "03", "attention" or "03_attention".

    Raises ValueError when no module, or a module without a case, goes by that name.
    """
    wanted = text.strip().strip("/").removeprefix("modules/")
    for module in ready():
        number = module.name[:2]
        if wanted in (module.name, module.plain, number, number.lstrip("0")):
            return module
    known = " ".join(module.name for module in ready())
    raise ValueError(f"no module goes by {text!r}: expected one of {known}")
