"""Write the learners' stubs in modules/ from the solutions.

For maintainers: it replaces what stands in modules/, a learner's work included.
"""

from autograder.commands import chosen
from autograder.course import ROOT
from autograder.sync import out_of_step, write


def arguments(parser):
    parser.add_argument("modules", nargs="*", metavar="NN", help="modules to write (default: all)")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of step")


def run(arguments) -> int:
    stale = False
    for module in chosen(arguments.modules):
        for path in out_of_step(module) if arguments.check else write(module):
            print(f"{'out of step' if arguments.check else 'written'}: {path.relative_to(ROOT)}")
            stale = True
    return int(stale and arguments.check)
