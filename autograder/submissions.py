"""The library of wrong and right submissions by which the grader itself is graded.

`tests/submissions/NN_name.py` holds many small submissions, each a patch on the module's solution:

    # %% wrong: softmax over the queries
    # expect: attention fail at pattern as softmax-over-queries
    def attention(q, k, v):
        return softmax(attention_scores(q, k), dim=-2) @ v

    # %% right: attention by einsum
    def attention(q, k, v):
        ...

The patch is put behind the solution's source, so its definitions win. `expect` names an exercise that must not
pass, its status, the first tensor to differ and the mistakes ("+" between several; "?" where no known mistake
fits). Exercises without a line must pass. A right submission has no `expect` line.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from autograder.course import ROOT, Module
from autograder.grade import Grader
from autograder.loader import Learner
from autograder.result import Result

FOLDER = ROOT / "tests" / "submissions"
MARK = "# %% "
EXPECT = "# expect: "
PATIENCE = 3.0  # seconds for a call: the library holds endless loops, and nothing in it that is slow


class SubmissionError(Exception):
    """A submission in the library is badly written. The message names the file and the line."""


@dataclass(frozen=True)
class Expected:
    """What must be reported for one exercise."""

    exercise: str
    status: str
    tensor: str | None = None
    mistakes: tuple[str, ...] | None = None  # None: not said; (): no known mistake fits


@dataclass(frozen=True)
class Submission:
    module: Module
    kind: str  # "wrong" or "right"
    title: str
    patch: str
    expected: tuple[Expected, ...] = ()
    line: int = 0


@dataclass
class Verdict:
    """What the grader made of one submission, and what is wrong with that."""

    submission: Submission
    results: list[Result]
    complaints: list[str] = field(default_factory=list)

    @property
    def rejected(self) -> bool:
        return any(result.status != "pass" for result in self.results)


def read(module: Module) -> list[Submission]:
    """The submissions of a module's library; none where there is no file.

    Raises SubmissionError for a section that is neither wrong nor right, and for an `expect` line that cannot be read.
    """
    path = FOLDER / f"{module.name}.py"
    if not path.exists():
        return []
    found: list[Submission] = []
    lines = path.read_text(encoding="utf-8").splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith(MARK)]
    for start, end in zip(starts, starts[1:] + [len(lines)]):
        kind, colon, title = lines[start].removeprefix(MARK).partition(":")
        if kind not in ("wrong", "right") or not colon:
            raise SubmissionError(
                f"{path.name}:{start + 1}: expected `# %% wrong: title` or `# %% right: title`, found {lines[start]!r}"
            )
        body = lines[start + 1 : end]
        expected = tuple(
            _expectation(line, module, f"{path.name}:{start + 2 + number}")
            for number, line in enumerate(body)
            if line.startswith(EXPECT)
        )
        if (kind == "wrong") != bool(expected):
            raise SubmissionError(f"{path.name}:{start + 1}: a wrong submission has `# expect:` lines, a right one has none")
        found.append(Submission(module, kind, title.strip(), "\n".join(body), expected, start + 1))
    return found


def _expectation(line: str, module: Module, where: str) -> Expected:
    """`# expect: attention fail at pattern as softmax-over-queries + scale-missing`"""
    words = line.removeprefix(EXPECT).split()
    case = module.case()
    if len(words) < 2 or words[0] not in case.exercises:
        raise SubmissionError(f"{where}: expected `# expect: EXERCISE STATUS at TENSOR as MISTAKE + MISTAKE`, found {line!r}")
    rest = words[2:]
    tensor = rest[rest.index("at") + 1] if "at" in rest else None
    names = tuple(word for word in rest[rest.index("as") + 1 :] if word not in ("+", "?")) if "as" in rest else None
    return Expected(words[0], words[1], tensor, names)


def judge(submission: Submission, seed: int = 1) -> Verdict:
    """Grade one submission and hold the results against what is expected."""
    module = submission.module
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / module.name / module.file_name
        file.parent.mkdir()
        file.write_text(module.solution.read_text(encoding="utf-8") + "\n\n" + submission.patch + "\n", encoding="utf-8")
        grader = Grader(Learner(Path(folder), parts="solutions"), seed, seconds=PATIENCE)
        results = [grader.grade(module, name) for name in module.case().exercises]
    verdict = Verdict(submission, results)
    wanted = {expected.exercise: expected for expected in submission.expected}
    for result in results:
        verdict.complaints += _complaints(result, wanted.get(result.exercise, Expected(result.exercise, "pass")))
    return verdict


def _complaints(result: Result, wanted: Expected) -> list[str]:
    named = tuple(sorted(mistake.id for mistake in result.mistakes))
    found = []
    if result.status != wanted.status:
        found.append(f"{result.exercise}: status {result.status}, expected {wanted.status}")
    if wanted.tensor is not None and result.first_difference != wanted.tensor:
        found.append(f"{result.exercise}: first to differ {result.first_difference}, expected {wanted.tensor}")
    if wanted.mistakes is not None and named != tuple(sorted(wanted.mistakes)):
        found.append(
            f"{result.exercise}: named {' + '.join(named) or 'nothing'}, expected {' + '.join(wanted.mistakes) or 'nothing'}"
        )
    return found
