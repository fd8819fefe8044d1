"""Run a module again at each save of its file, and show its report.

Keys: h hint, n what comes next, a all modules, q quit. On a terminal that knows no more (TERM=dumb), or where the
output is no terminal, reports follow each other and there are no keys.
"""

import contextlib
import os
import random
import select
import sys

from autograder import report, state
from autograder.course import Module, find, ready
from autograder.desk import next_exercise, next_hint
from autograder.desk import run as run_module

DEBOUNCE, PAUSE = 200, 200  # milliseconds: saves closer together are one; how often keys are looked at


def arguments(parser):
    parser.add_argument("module", nargs="?", metavar="NN", help="where to begin (default: what comes next)")
    parser.add_argument(
        "--poll", action="store_true", help="look at the files again and again, where no events come (network drives)"
    )
    parser.add_argument("--plain", action="store_true", help="never clear the screen, read no keys")


def run(arguments) -> int:
    due = next_exercise(state.load())
    desk = Desk(find(arguments.module) if arguments.module else due[0] if due else ready()[0], _plain(arguments))
    with keys(not desk.plain):
        desk.show([desk.module])
        return _follow(desk, arguments.poll)


def _follow(desk: "Desk", poll: bool) -> int:
    from watchfiles import watch

    folders = [module.folder for module in ready()]
    changes = watch(*folders, debounce=DEBOUNCE, step=50, rust_timeout=PAUSE, yield_on_timeout=True, force_polling=poll or None)
    for changed in changes:  # where the system gives no events, watchfiles looks at the files by itself
        names = {path for _, path in changed}
        saved = [module for module in ready() if str(module.stub) in names]
        if saved:
            desk.show(saved)
        key = pressed() if not desk.plain else ""
        if key == "q":
            return 0
        if key:
            desk.press(key)
    return 0


class Desk:
    """What the watcher shows: the module that was saved last."""

    def __init__(self, module: Module, plain: bool):
        self.module, self.plain = module, plain
        self.seed = random.SystemRandom().randrange(100_000)

    def show(self, modules: list[Module]) -> None:
        """Run these modules and show their reports."""
        if not self.plain:
            print("\x1b[2J\x1b[H", end="")
        for module in modules:
            self.module = module
            print(f"{self.module.name}: running", end="\r" if not self.plain else "\n", flush=True)
            results = run_module(self.module, self.seed)
            print("\n".join(report.text(result) for result in results))
            passed = sum(result.status == "pass" for result in results)
            earned, most = sum(result.points for result in results), sum(result.max_points for result in results)
            print(f"{passed} of {len(results)} pass, {earned} of {most} points")
        if not self.plain:
            print("h hint · n next · a all · q quit", flush=True)

    def press(self, key: str) -> None:
        if key == "h":
            due = next_exercise(state.load(), [self.module])
            print(f"{due[1].name}: {next_hint(*due)}" if due else f"every function of {self.module.name} passes", flush=True)
        elif key == "n":
            due = next_exercise(state.load())
            print(f"next: {due[1].name} in modules/{due[0].name}/{due[0].file_name}" if due else "all is done", flush=True)
        elif key == "a":
            self.show(ready())


def _plain(arguments) -> bool:
    return arguments.plain or os.environ.get("TERM", "dumb") == "dumb" or not (sys.stdin.isatty() and sys.stdout.isatty())


@contextlib.contextmanager
def keys(wanted: bool):
    """Single key presses in the body, without Enter; the terminal is as before afterwards."""
    if not wanted:
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)


def pressed() -> str:
    """The key that was pressed, or ""."""
    return sys.stdin.read(1).lower() if select.select([sys.stdin], [], [], 0)[0] else ""
