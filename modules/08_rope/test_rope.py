"""The tests of 08_rope, in the order in which the functions are best written."""


def test_rope_frequencies(grade):
    grade("rope_frequencies")


def test_rope_cos_sin(grade):
    grade("rope_cos_sin")


def test_rotate_interleaved(grade):
    grade("rotate_interleaved")


def test_rotate_half(grade):
    grade("rotate_half")


def test_interleaved_to_half(grade):
    grade("interleaved_to_half")
