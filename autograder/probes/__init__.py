"""Calls that need more than plain arguments.

Each probe builds callables or models from plain data, calls the learner's code and returns plain data. It runs in the
learner's process and knows nothing of what is expected.
"""
