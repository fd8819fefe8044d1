"""The tests of 03_attention, in the order in which the functions are best written."""


def test_soft_lookup(grade):
    grade("soft_lookup")


def test_attention_scores(grade):
    grade("attention_scores")


def test_softmax(grade):
    grade("softmax")


def test_attention(grade):
    grade("attention")


def test_split_heads(grade):
    grade("split_heads")


def test_merge_heads(grade):
    grade("merge_heads")


def test_multi_head_attention(grade):
    grade("multi_head_attention")
