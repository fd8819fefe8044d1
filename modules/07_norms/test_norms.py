"""The tests of 07_norms, in the order in which the functions are best written."""


def test_layer_norm(grade):
    grade("layer_norm")


def test_rms_norm(grade):
    grade("rms_norm")


def test_pre_norm(grade):
    grade("pre_norm")


def test_post_norm(grade):
    grade("post_norm")
