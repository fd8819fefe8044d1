"""Bring a module's stub back. Your file is kept beside it, as name.mine.py (name.mine-2.py, ...)."""

from autograder.course import ROOT, find
from autograder.sync import stub


def arguments(parser):
    parser.add_argument("module", metavar="NN", help="the module: 03, attention or 03_attention")


def run(arguments) -> int:
    module = find(arguments.module)
    fresh = stub(module)
    if module.stub.exists() and module.stub.read_text(encoding="utf-8") == fresh:
        print(f"{module.stub.relative_to(ROOT)} is the stub already")
        return 0
    if module.stub.exists():
        kept = _free(module)
        module.stub.rename(kept)
        print(f"your file is kept as {kept.relative_to(ROOT)}")
    module.stub.write_text(fresh, encoding="utf-8")
    print(f"{module.stub.relative_to(ROOT)} is the stub again")
    return 0


def _free(module):
    """The first name beside the file that nothing has yet."""
    number = 1
    while True:
        suffix = "mine" if number == 1 else f"mine-{number}"
        path = module.folder / f"{module.plain}.{suffix}.py"
        if not path.exists():
            return path
        number += 1
