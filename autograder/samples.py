"""The inputs of one exercise: the case's own, their variants in other dtypes and strides, and the golden ones."""

from dataclasses import replace
from typing import Any

from autograder.case import Draw, Exercise, Sample
from autograder.golden import Goldens
from autograder.probe import each_tensor


def samples(exercise: Exercise, seed: int, device: str, goldens: Goldens | None) -> list[Sample]:
    """Every sample of the exercise, the case's own first."""
    found = list(exercise.inputs(Draw(seed, device)))
    first = next((sample for sample in found if not sample.refused), None)
    found += _variants(first) if first else []
    return found + ([goldens.sample(exercise, device)] if goldens and exercise.golden else [])


def _variants(sample: Sample) -> list[Sample]:
    floating: list[bool] = []
    each_tensor(sample.inputs, lambda tensor: floating.append(tensor.is_floating_point()))
    if not any(floating):
        return []
    kinds = (("float64 inputs", double), ("non-contiguous inputs", _strided))
    return [
        replace(sample, label=label, inputs=each_tensor(sample.inputs, change), variant=True, gradient=False)
        for label, change in kinds
    ]


def double(tensor: Any) -> Any:
    return tensor.double() if tensor.is_floating_point() else tensor


def _strided(tensor: Any) -> Any:
    """The same tensor, every second entry of a larger one, with its axes laid out in reverse order."""
    if tensor.dim() == 0:
        return tensor
    import torch

    wide = torch.stack([tensor, torch.zeros_like(tensor)], dim=-1)
    order = list(range(tensor.dim()))
    reversed_layout = wide.permute(*reversed(order), tensor.dim()).contiguous()
    return reversed_layout.permute(*reversed(order), tensor.dim())[..., 0]
