"""Prove the course fit for learners.

For each module: the stubs are in step and fail as `todo` only, the solutions pass, goldens can be made again, the
reference agrees with the library, each fault is rejected with its margin and is its own best explanation, and every
submission of tests/submissions/ is judged as it should be. With --submissions: only those, as a table.
"""

import time

from autograder.commands import chosen
from autograder.selfcheck import CHECKS
from autograder.submissions import judge, read


def arguments(parser):
    parser.add_argument("modules", nargs="*", metavar="NN", help="modules to check (default: all)")
    parser.add_argument("--submissions", action="store_true", help="judge the library of submissions and print its table")


def run(arguments) -> int:
    modules = chosen(arguments.modules)
    return submissions(modules) if arguments.submissions else checks(modules)


def checks(modules) -> int:
    failed = False
    for module in modules:
        for check in CHECKS:
            start = time.perf_counter()
            complaints = list(check(module))
            failed |= bool(complaints)
            verdict = "ok" if not complaints else f"{len(complaints)} complaint{'s' * (len(complaints) > 1)}"
            print(
                f"{module.name:<24}{check.__name__.replace('_', ' '):<28}{verdict:<16}{time.perf_counter() - start:5.1f} s",
                flush=True,
            )
            print("".join(f"    {complaint}\n" for complaint in complaints), end="")
    return int(failed)


def submissions(modules) -> int:
    from rich.console import Console
    from rich.table import Table

    columns = ("module", "wrong", "rejected", "rightly named", "wrongly named", "right", "accepted")
    table, complaints = Table(*columns), []
    table.columns[0].no_wrap = True
    for module in modules:
        verdicts = [judge(submission) for submission in read(module)]
        complaints += [
            f"{module.name}: {verdict.submission.title}: {text}" for verdict in verdicts for text in verdict.complaints
        ]
        table.add_row(module.name, *map(str, figures(verdicts)))
    Console().print(table)
    print("".join(f"{complaint}\n" for complaint in complaints), end="")
    return int(bool(complaints))


def figures(verdicts) -> tuple[int, ...]:
    """Wrong submissions tried, rejected, rightly named, wrongly named; right ones tried, accepted."""
    wrong = [verdict for verdict in verdicts if verdict.submission.kind == "wrong"]
    right = [verdict for verdict in verdicts if verdict.submission.kind == "right"]
    named = [verdict for verdict in wrong if _named(verdict) == _wanted(verdict)]
    misnamed = [verdict for verdict in wrong if _named(verdict) - _wanted(verdict)]
    return len(wrong), sum(v.rejected for v in wrong), len(named), len(misnamed), len(right), sum(not v.rejected for v in right)


def _named(verdict) -> set[str]:
    return {mistake.id for result in verdict.results for mistake in result.mistakes}


def _wanted(verdict) -> set[str]:
    return {name for expected in verdict.submission.expected for name in expected.mistakes or ()}
