"""Give the next hint for a function: first a question, then a pointer, then the formula.

Hints are counted, and `course status NN` shows how many were read.
"""

from autograder import state
from autograder.course import find


def arguments(parser):
    parser.add_argument("module", metavar="NN", help="the module: 03, attention or 03_attention")
    parser.add_argument("exercise", nargs="?", help="the function (default: the first that does not pass)")


def run(arguments) -> int:
    module = find(arguments.module)
    exercises, known = module.case().exercises, state.load()
    name = arguments.exercise or _first_open(module, known)
    if name not in exercises:
        raise ValueError(f"{module.name} has no exercise {name!r}: expected one of {' '.join(exercises)}")
    key, exercise = f"{module.name}/{name}", exercises[name]
    read = known["hints"].get(key, 0)
    result = known["results"].get(key)
    if result and result["first_difference"] and result["file"] == state.fingerprint(module):
        print(f"{name}: the first tensor to differ was {result['first_difference']}")
    level = min(read, len(exercise.hints) - 1)
    print(f"hint {level + 1} of {len(exercise.hints)}: {exercise.hints[level]}")
    if read >= len(exercise.hints):
        print(f'that was the last one; the lesson says more under "{exercise.lesson}"')
    known["hints"][key] = min(read + 1, len(exercise.hints))
    state.save(known)
    return 0


def _first_open(module, known) -> str:
    """The first exercise that has not passed with the file as it is."""
    now = state.fingerprint(module)
    for name in module.case().exercises:
        result = known["results"].get(f"{module.name}/{name}")
        if not result or result["status"] != "pass" or result["file"] != now:
            return name
    return next(iter(module.case().exercises))
