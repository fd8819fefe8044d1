"""Give the next hint for a function: first a question, then a pointer, then the formula.

Hints are counted, and `course status NN` shows how many were read.
"""

from autograder import state
from autograder.course import find
from autograder.desk import next_exercise, next_hint


def arguments(parser):
    parser.add_argument("module", metavar="NN", help="the module: 03, attention or 03_attention")
    parser.add_argument("exercise", nargs="?", help="the function (default: the first that does not pass)")


def run(arguments) -> int:
    module = find(arguments.module)
    exercises = module.case().exercises
    if arguments.exercise is None:
        due = next_exercise(state.load(), [module])
        exercise = due[1] if due else next(iter(exercises.values()))
    elif arguments.exercise in exercises:
        exercise = exercises[arguments.exercise]
    else:
        raise ValueError(f"{module.name} has no exercise {arguments.exercise!r}: expected one of {' '.join(exercises)}")
    print(f"{module.name}  {exercise.name}")
    print(next_hint(module, exercise))
    return 0
