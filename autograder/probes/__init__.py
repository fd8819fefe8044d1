"""Calls that need more than plain arguments: each builds callables or models from plain data, calls the learner's code and returns plain data."""
