"""The tests of 06_mlp, in the order in which the functions are best written."""


def test_relu(grade):
    grade("relu")


def test_gelu(grade):
    grade("gelu")


def test_mlp(grade):
    grade("mlp")


def test_swiglu(grade):
    grade("swiglu")


def test_and_neuron(grade):
    grade("and_neuron")


def test_key_value_memory(grade):
    grade("key_value_memory")
