"""The tests of 09_gqa, in the order in which the functions are best written."""


def test_repeat_kv(grade):
    grade("repeat_kv")


def test_grouped_query_attention(grade):
    grade("grouped_query_attention")


def test_kv_cache(grade):
    grade("KVCache")


def test_kv_cache_bytes(grade):
    grade("kv_cache_bytes")
