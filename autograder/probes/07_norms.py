"""Calls of 07_norms that need callables: they are made here, from a matrix and a gain."""

import torch
import torch.nn.functional as F


class Once:
    """A callable that may be called once, as a sublayer with dropout in it would ask for."""

    def __init__(self, name, function):
        self.name, self.function, self.called = name, function, False

    def __call__(self, tensor):
        if self.called:
            raise RuntimeError(f"{self.name} was called a second time: expected one call")
        self.called = True
        return self.function(tensor)


def sublayer_of(matrix):
    """What the sublayer writes for a row: tanh(row @ matrix)."""
    return Once("sublayer", lambda tensor: torch.tanh(tensor @ matrix))


def norm_of(gain):
    """The library's layer norm with this gain."""
    return Once("norm", lambda tensor: F.layer_norm(tensor, tensor.shape[-1:], gain))


def pre_norm(module, x, sublayer, norm):
    return module.pre_norm(x, sublayer_of(sublayer), norm_of(norm))


def post_norm(module, x, sublayer, norm):
    return module.post_norm(x, sublayer_of(sublayer), norm_of(norm))
