"""The tests of 10_training_objective, in the order in which the functions are best written."""


def test_next_token_pairs(grade):
    grade("next_token_pairs")


def test_log_softmax(grade):
    grade("log_softmax")


def test_cross_entropy(grade):
    grade("cross_entropy")


def test_bits_per_token(grade):
    grade("bits_per_token")


def test_perplexity(grade):
    grade("perplexity")


def test_uniform_loss(grade):
    grade("uniform_loss")


def test_adamw_step(grade):
    grade("adamw_step")


def test_learning_rate(grade):
    grade("learning_rate")


def test_clip_gradients(grade):
    grade("clip_gradients")


def test_train(grade):
    grade("train")
