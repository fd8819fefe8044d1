"""The commands of `course`: each file has a docstring (its help), `arguments(parser)` and `run(arguments) -> int`."""

from autograder.course import Module, find, ready


def chosen(names: list[str]) -> list[Module]:
    """The modules that the arguments name; all where they name none. Raises ValueError for an unknown name."""
    return [find(name) for name in names] or ready()
