"""The tests of 05_residual_stream, in the order in which the functions are best written."""


def test_add_to_stream(grade):
    grade("add_to_stream")


def test_pre_norm_block(grade):
    grade("pre_norm_block")


def test_run_stream(grade):
    grade("run_stream")


def test_logit_lens(grade):
    grade("logit_lens")


def test_steer(grade):
    grade("steer")


def test_contributions(grade):
    grade("contributions")
