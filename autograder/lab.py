"""What the notebooks use: predictions that are kept, the trained model, and the grader's report in a cell.

    lab = Lab("03_attention")
    lab.predict("spread at D = 64", ...)          put your guess in place of the dots
    lab.measured("spread at D = 64", 8.02)        the measurement, beside the guess
    lab.check("attention")                        the grader's report; the points are the cell's value

Nothing here writes to standard error: nbgrader takes a cell that does for a failed one.
"""

import contextlib
import io
from typing import Any

from autograder import report
from autograder.checkpoints import FOLDER
from autograder.course import ROOT, find
from autograder.grade import Grader
from autograder.loader import Learner, written

SEED = 20461


class Lab:
    """One notebook's helper. Making it puts the course's modules on the path: yours where written, else the solutions'."""

    def __init__(self, name: str):
        self.module = find(name)
        self.learner = Learner(ROOT / "modules")
        self.learner.install()
        self._guesses: dict[str, Any] = {}
        own = written(self.learner.file(self.module))
        print(f"{self.module.name}: this lab runs on {'your own code' if own else 'the solution, until your file is written'}")

    def predict(self, name: str, guess: Any) -> None:
        """Keep a guess under a name; `...` means that none was made."""
        self._guesses[name] = guess
        print(f"{name}: {'no guess yet' if guess is ... else f'you guess {guess}'}")

    def measured(self, name: str, value: Any) -> None:
        """Print a measurement beside the guess. Raises KeyError for a name that no prediction has."""
        if name not in self._guesses:
            raise KeyError(f"no prediction is called {name!r}: expected one of {sorted(self._guesses)}")
        guess = self._guesses[name]
        shown = f"{value:.4g}" if isinstance(value, float) else f"{value}"
        print(f"{name}: measured {shown}, " + ("no guess was made" if guess is ... else f"you guessed {guess}"))

    def check(self, exercise: str) -> float:
        """Grade one function of your own file as it is on the disk now; prints the report and gives the points."""
        noise = io.StringIO()
        with contextlib.redirect_stderr(noise):
            result = Grader(Learner(ROOT / "modules"), SEED).grade(self.module, exercise)
        self.learner.install()
        print(report.text(result))
        return float(result.points)

    def model(self):
        """The small trained GPT-2 and its tokenizer: `model, tokenizer = lab.model()`."""
        from autograder.golden import tokenizer
        from autograder.model import load_checkpoint

        return load_checkpoint(FOLDER / "small"), tokenizer()
