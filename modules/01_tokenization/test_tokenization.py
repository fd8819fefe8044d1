"""The tests of 01_tokenization, in the order in which the functions are best written."""


def test_bytes_to_unicode(grade):
    grade("bytes_to_unicode")


def test_count_pairs(grade):
    grade("count_pairs")


def test_merge_pair(grade):
    grade("merge_pair")


def test_split_words(grade):
    grade("split_words")


def test_train_bpe(grade):
    grade("train_bpe")


def test_load_merges(grade):
    grade("load_merges")


def test_tokenizer(grade):
    grade("Tokenizer")


def test_tokens_per_character(grade):
    grade("tokens_per_character")
