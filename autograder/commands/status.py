"""Show the scoreboard: every module and exercise, as it was when it last ran.

A result counts for the file as it was then: after an edit it is shown as stale until the tests run again.
"""

from autograder import state
from autograder.commands import chosen


def arguments(parser):
    parser.add_argument(
        "modules", nargs="*", metavar="NN", help="modules to show, exercise by exercise (default: all, a line each)"
    )


def run(arguments) -> int:
    from rich.console import Console
    from rich.table import Table

    known = state.load()
    table = (
        Table("module", "exercise", "points", "state", "hints")
        if arguments.modules
        else Table("module", "passed", "points", "state")
    )
    for module in chosen(arguments.modules):
        rows = list(_rows(module, known))
        if arguments.modules:
            for name, earned, most, said, hints in rows:
                table.add_row(module.name, name, f"{earned} / {most}", said, str(hints))
        else:
            passed = sum(said == "pass" for _, _, _, said, _ in rows)
            stale = sum(said.endswith("stale") for _, _, _, said, _ in rows)
            never = sum(said == "not run" for _, _, _, said, _ in rows)
            said = ", ".join([f"{stale} stale"] * bool(stale) + [f"{never} not run"] * bool(never)) or "up to date"
            table.add_row(
                module.name, f"{passed} of {len(rows)}", f"{sum(row[1] for row in rows)} / {sum(row[2] for row in rows)}", said
            )
    Console().print(table)
    return 0


def _rows(module, known):
    """Name, points earned, points to earn, state, hints read. A stale result earns nothing until it is run again."""
    now = state.fingerprint(module)
    for exercise in module.case().exercises.values():
        key = f"{module.name}/{exercise.name}"
        result, hints = known["results"].get(key), known["hints"].get(key, 0)
        if result is None:
            yield exercise.name, 0, exercise.points, "not run", hints
        elif result["file"] != now:
            yield exercise.name, 0, exercise.points, f"{result['status']}, stale", hints
        else:
            yield exercise.name, result["points"], exercise.points, result["status"], hints
