"""The result of one exercise: plain data, from which every report is written."""

from dataclasses import dataclass, field

STATUSES = ("pass", "fail", "todo", "error", "timeout", "forbidden")


@dataclass(frozen=True)
class Mistake:
    """A named mistake and the question that leads out of it."""

    id: str
    text: str


@dataclass
class Result:
    """What the grader found for one exercise. `points` are earned only by what was computed."""

    module: str
    exercise: str
    max_points: int
    status: str = "pass"
    points: int = 0
    matched: list[str] = field(default_factory=list)
    first_difference: str | None = None
    at: str | None = None  # "(B, H, Tq, Tk) = (2, 3, 5, 4)" and the first entry that differs
    shape: str | None = None
    mistakes: list[Mistake] = field(default_factory=list)
    alternatives: list[list[Mistake]] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    rests_on: list[str] = field(default_factory=list)
    message: str = ""
    file: str = ""
    line: int | None = None
    lesson: str = ""
    borrowed: list[str] = field(default_factory=list)
    seed: int = 0
    device: str = "cpu"
