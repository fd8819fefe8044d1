"""The inputs of one exercise: the case's own, their variants in other dtypes and strides, and the golden ones."""

from dataclasses import replace
from typing import Any

from autograder.case import Draw, Exercise, Sample
from autograder.golden import Goldens
from autograder.probe import is_tensor


def samples(exercise: Exercise, seed: int, device: str, goldens: Goldens | None) -> list[Sample]:
    """Every sample of the exercise, the case's own first."""
    found = list(exercise.inputs(Draw(seed, device)))
    first = next((sample for sample in found if not sample.refused), None)
    found += _variants(first) if first else []
    return found + ([goldens.sample(exercise, device)] if goldens and exercise.golden else [])


def _variants(sample: Sample) -> list[Sample]:
    if not any(is_tensor(value) and value.is_floating_point() for value in sample.inputs.values()):
        return []
    kinds = (("float64 inputs", _double), ("non-contiguous inputs", _strided))
    return [
        replace(sample, label=label, inputs={name: change(value) for name, value in sample.inputs.items()}, variant=True, gradient=False)
        for label, change in kinds
    ]


def _double(value: Any) -> Any:
    return value.double() if is_tensor(value) and value.is_floating_point() else value


def _strided(value: Any) -> Any:
    """The same tensor, every second entry of a larger one, with its axes laid out in reverse order."""
    if not is_tensor(value) or value.dim() == 0:
        return value
    import torch

    wide = torch.stack([value, torch.zeros_like(value)], dim=-1)
    order = list(range(value.dim()))
    reversed_layout = wide.permute(*reversed(order), value.dim()).contiguous()
    return reversed_layout.permute(*reversed(order), value.dim())[..., 0]
