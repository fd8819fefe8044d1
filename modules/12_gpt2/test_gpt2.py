"""The tests of 12_gpt2, in the order in which the parts are best written."""


def test_GPT2(grade):
    grade("GPT2")


def test_load_state(grade):
    grade("load_state")


def test_from_pretrained(grade):
    grade("from_pretrained")


def test_next_token_probs(grade):
    grade("next_token_probs")


def test_generate(grade):
    grade("generate")
