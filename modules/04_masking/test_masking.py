"""The tests of 04_masking, in the order in which the functions are best written."""


def test_causal_mask(grade):
    grade("causal_mask")


def test_mask_scores(grade):
    grade("mask_scores")


def test_masked_attention(grade):
    grade("masked_attention")


def test_padding_mask(grade):
    grade("padding_mask")


def test_causal_self_attention(grade):
    grade("causal_self_attention")
