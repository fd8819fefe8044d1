"""Stubs are made from solutions, and markers that do not pair up are refused."""

import pytest

from autograder.course import ready
from autograder.sync import BEGIN, END, MarkerError, strip, stub

SOURCE = f'''import math

{BEGIN}
def helper():
    return 1


{END}
def f(x):
    """Do it."""
    {BEGIN}
    return helper() + x
    {END}
'''


def test_regions_become_stubs():
    assert strip(SOURCE) == 'import math\n\ndef f(x):\n    """Do it."""\n    raise NotImplementedError\n'


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        (f"{BEGIN}\n{BEGIN}\n", "s.py:2: a solution region begins inside the one begun at line 1"),
        (f"x = 1\n{END}\n", "s.py:2: a solution region ends that was never begun"),
        (f"{BEGIN}\nx = 1\n", "s.py:1: this solution region is never ended"),
    ],
)
def test_bad_markers_are_named(source, complaint):
    with pytest.raises(MarkerError, match=complaint):
        strip(source, "s.py")


@pytest.mark.parametrize("module", ready(), ids=lambda module: module.name)
def test_no_solution_line_reaches_a_stub(module):
    made = stub(module).splitlines()
    within, outside, inside = [], set(), False
    for line in module.solution.read_text(encoding="utf-8").splitlines():
        if line.strip() in (BEGIN, END):
            inside = line.strip() == BEGIN
        elif inside:
            within.append(line)
        else:
            outside.add(line)
    leaked = [line for line in within if len(line.strip()) > 12 and line in made and line not in outside]
    assert leaked == []
