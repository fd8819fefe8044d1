"""The tests of 02_embeddings, in the order in which the functions are best written."""


def test_embed_tokens(grade):
    grade("embed_tokens")


def test_embed_positions(grade):
    grade("embed_positions")


def test_embed(grade):
    grade("embed")


def test_unembed(grade):
    grade("unembed")


def test_sinusoidal_positions(grade):
    grade("sinusoidal_positions")


def test_cosine_similarity(grade):
    grade("cosine_similarity")


def test_nearest_tokens(grade):
    grade("nearest_tokens")


def test_analogy(grade):
    grade("analogy")
