"""Say what to write next: the first function that has not passed with its file as it is now."""

from autograder import state
from autograder.desk import next_exercise


def arguments(parser):
    pass


def run(arguments) -> int:
    due = next_exercise(state.load())
    if due is None:
        print("every function of every module has passed with its file as it is now")
        return 0
    module, exercise = due
    print(f'{module.name}  {exercise.name}: modules/{module.name}/{module.file_name} · lesson "{exercise.lesson}"')
    print(f"then: pytest modules/{module.name}")
    return 0
