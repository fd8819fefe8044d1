"""List the mistakes that the grader knows by name."""

import json

from autograder.case import Draw
from autograder.commands import chosen
from autograder.general import GENERAL


def arguments(parser):
    parser.add_argument("modules", nargs="*", metavar="NN", help="modules to list (default: all)")
    parser.add_argument("--json", action="store_true", help="as JSON: id, exercise, tensor, description")


def run(arguments) -> int:
    rows = [row for module in chosen(arguments.modules) for row in listing(module)]
    if arguments.json:
        print(json.dumps(rows, indent=1))
        return 0
    for row in rows:
        print(f"{row['module']}  {row['exercise']:<24}{row['tensor']:<14}{row['id']}: {row['description']}")
    return 0


def listing(module) -> list[dict[str, str]]:
    """Every fault of a module, once for each exercise in which it can show."""
    case = module.case()
    rows = []
    for exercise in case.exercises.values():
        own = [
            (fault.id, fault.tensor if fault.tensor in exercise.shown else exercise.returns[0], fault.text)
            for fault in case.faults_of(exercise)
        ]
        apart = {sample.apart for sample in exercise.inputs(Draw(0)) if sample.apart}
        own += [(id, exercise.returns[0], text) for id, text in sorted(apart)]
        common = [(mistake.id, exercise.returns[0], mistake.text) for mistake in GENERAL]
        rows += [
            {"id": id, "exercise": exercise.name, "tensor": tensor, "description": text, "module": module.name}
            for id, tensor, text in own + common
        ]
    return rows
