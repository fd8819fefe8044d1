"""Calls of a learner's 06_mlp whose result is not compared as it is.

`and_neuron` has many right answers, so what comes back is what the neuron does: its writes for every choice of
directions that may be present, and the shapes and dtypes of its four tensors.
"""

import itertools

import torch


def and_neuron(module, directions, answer):
    """Build the neuron, and run it on every subset of the directions.

    Right answers differ in how they depend on the directions, so the gradient goes to `answer` alone.
    """
    directions = directions.detach()
    weights = module.and_neuron(directions, answer)
    return form(weights), written(weights, directions)


def form(weights):
    """Shape and dtype of each of the weights, such as "(6, 1) float32"; the name of its type where it is no tensor."""
    return [
        f"{tuple(one.shape)} {one.dtype}".replace("torch.", "") if isinstance(one, torch.Tensor) else type(one).__name__
        for one in weights
    ]


def written(weights, directions):
    """What a ReLU MLP with these weights writes, one row for each subset of the directions; None where they do not fit.

    The inputs also hold something at right angles to all the directions. They carry no gradient.
    """
    try:
        c_fc_w, c_fc_b, c_proj_w, c_proj_b = weights
        return torch.relu(inputs(directions.detach()) @ c_fc_w + c_fc_b) @ c_proj_w + c_proj_b
    except (ValueError, TypeError, RuntimeError):
        return None


def inputs(directions):
    """(2**N, C): none of the directions, then the last alone, ... , then all of them, each with the same rest."""
    anything = torch.arange(1.0, directions.shape[1] + 1, dtype=directions.dtype, device=directions.device)
    rest = anything - (directions @ anything) @ directions
    present = torch.tensor(subsets(directions.shape[0]), dtype=directions.dtype, device=directions.device)
    return present @ directions + rest


def subsets(n):
    """Every row of n zeros and ones, from none to all."""
    return list(itertools.product((0.0, 1.0), repeat=n))
