"""The tests of 11_parameter_counting, in the order in which the functions are best written."""


def test_read_config(grade):
    grade("read_config")


def test_attention_parameters(grade):
    grade("attention_parameters")


def test_mlp_parameters(grade):
    grade("mlp_parameters")


def test_norm_parameters(grade):
    grade("norm_parameters")


def test_block_parameters(grade):
    grade("block_parameters")


def test_embedding_parameters(grade):
    grade("embedding_parameters")


def test_count_parameters(grade):
    grade("count_parameters")


def test_mlp_share(grade):
    grade("mlp_share")


def test_weight_bytes(grade):
    grade("weight_bytes")


def test_kv_cache_bytes_per_token(grade):
    grade("kv_cache_bytes_per_token")


def test_forward_flops_per_token(grade):
    grade("forward_flops_per_token")
