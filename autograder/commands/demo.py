"""Grade three submissions of 03_attention: an untouched stub, one with two mistakes at once, and a right one."""

from autograder import report
from autograder.course import ROOT, find
from autograder.grade import Grader
from autograder.loader import Learner
from autograder.submissions import judge, read

SHOWN = (("wrong", "two mistakes at once, scale and axis"), ("right", "loops over everything"))
SEED = 20461


def arguments(parser):
    pass


def run(arguments) -> int:
    module = find("03_attention")
    print("1. The untouched stub\n")
    grader = Grader(Learner(ROOT / "modules"), SEED)
    _print([grader.grade(module, name) for name in module.case().exercises])
    library = {(submission.kind, submission.title): submission for submission in read(module)}
    for number, key in enumerate(SHOWN, 2):
        submission = library[key]
        print(f"\n{number}. A {submission.kind} submission: {submission.title}\n")
        print(
            "\n".join(f"    | {line}" for line in submission.patch.strip().splitlines() if not line.startswith("# expect")) + "\n"
        )
        verdict = judge(submission, SEED)
        _print(verdict.results)
        if verdict.complaints:
            print("\n".join(verdict.complaints))
            return 1
    return 0


def _print(results) -> None:
    for result in results:
        print(report.text(result))
    earned, most = sum(result.points for result in results), sum(result.max_points for result in results)
    print(f"in all: {earned} of {most} points")
