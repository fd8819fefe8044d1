"""`course check`, module by module: the stubs, solutions, goldens, faults and submissions of the course."""

import pytest

from autograder.course import ready
from autograder.selfcheck import CHECKS


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("module", ready(), ids=lambda module: module.name)
def test_module(module, check):
    assert list(check(module)) == []
