"""Mistakes that any function can make. They are seen directly, not searched for."""

from autograder.result import Mistake

CHANGED = Mistake("argument-changed-in-place", "who else holds what you were given?")
DETACHED = Mistake("gradient-cut-off", "which step leaves the graph that the gradient must walk back through?")
DTYPE = Mistake("dtype-not-kept", "which dtype must the result have, and which has yours?")
ACCEPTED = Mistake("wrong-argument-accepted", "what should your function do with arguments that it cannot serve?")

OTHER_EXCEPTION = Mistake("refused-by-another-exception", "which kind of exception does the docstring ask for?")
RANDOM = Mistake("differs-from-call-to-call", "the same input twice, two answers: what in your function is random?")

GENERAL = (CHANGED, DETACHED, DTYPE, ACCEPTED, OTHER_EXCEPTION, RANDOM)
