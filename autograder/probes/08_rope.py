"""Calls of 08_rope with what the contract leaves open taken out."""

import torch


def rope_cos_sin(module, positions, frequencies):
    """Frequencies are float32, as `rope_frequencies` makes them: the tables of others are not defined."""
    return module.rope_cos_sin(positions, frequencies.to(torch.float32))
