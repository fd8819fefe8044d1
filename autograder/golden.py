"""Goldens: inputs from the trained model's real activations, and every tensor the reference makes of them.

`record` writes `checkpoints/golden/NN_name.safetensors` and a JSON manifest beside it; `load` reads them back
after checking their hashes. Values that are no tensors (numbers, lists) stand in the manifest.
"""

import json
import platform
from pathlib import Path
from typing import Any

from autograder.case import Case, Exercise, Sample
from autograder.checkpoints import FOLDER, pin, verified
from autograder.probe import each_tensor, is_tensor
from autograder.steps import Evaluator

SEED = 20461
TEXTS = ("If a name is not found in the module, an exception is raised", "The value of the expression is returned to the caller")
LENGTH = 7  # tokens of each text that are run through the model


class Activations(dict):
    """Every named tensor of a forward pass of the small model, and its weights by their released names.

    `ids` are the token ids (B, T) that went in; `config` is the model's configuration.
    """

    def __init__(self, device: str):
        import torch

        from autograder.model import load_checkpoint

        model = load_checkpoint(FOLDER / "small").to(device)
        encode = tokenizer().encode
        self.ids = torch.tensor([encode(text)[:LENGTH] for text in TEXTS], device=device)
        self.config = model.config
        with torch.no_grad():
            model(self.ids, self)
            self.update({name: tensor.detach() for name, tensor in model.state_dict().items()})


def tokenizer():
    """The small model's own tokenizer: its merges, and <|endoftext|> as the last id."""
    from autograder.course import Module
    from autograder.loader import solution

    tokenization = solution(Module("01_tokenization"))
    merges = tokenization.load_merges(verified("small/vocab.bpe"))
    return tokenization.Tokenizer(merges, {"<|endoftext|>": 256 + len(merges)})


def record(module: str, case: Case, device: str) -> list[str]:
    """Write the goldens of a module; returns the names of the files below `checkpoints/`."""
    import torch
    from safetensors.torch import save_file

    activations = Activations(device) if any(exercise.golden for exercise in case.exercises.values()) else None
    tensors: dict[str, torch.Tensor] = {}
    manifest: dict[str, Any] = {**_environment(device), "seed": SEED, "dtype": "float32", "exercises": {}}
    for exercise in case.exercises.values():
        if exercise.golden is None:
            continue
        inputs = exercise.golden(activations)
        made = Evaluator(case, exercise, inputs).shown()
        exact = Evaluator(case, exercise, each_tensor(inputs, _precise)).shown()
        entry = manifest["exercises"][exercise.name] = {"values": {}, "largest_deviation_from_float64": {}}
        for role, values in (("in", inputs), ("out", made)):
            for name, value in values.items():
                if is_tensor(value):
                    tensors[f"{exercise.name}/{role}/{name}"] = value.detach().cpu().contiguous()
                else:
                    entry["values"][f"{role}/{name}"] = value
        for name, value in made.items():
            if is_tensor(value) and value.is_floating_point():
                deviation = (value.detach().cpu().double() - exact[name]).abs().max()
                entry["largest_deviation_from_float64"][name] = float(f"{float(deviation):.3g}")
    (FOLDER / "golden").mkdir(parents=True, exist_ok=True)
    names = [f"golden/{module}.safetensors", f"golden/{module}.json"]
    # Clones: safetensors refuses tensors that share memory, as two exercises' inputs may.
    save_file({name: tensor.clone() for name, tensor in tensors.items()}, FOLDER / names[0])
    (FOLDER / names[1]).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")
    pin(*names)
    return names


def _environment(device: str) -> dict[str, Any]:
    import torch

    cuda = device.startswith("cuda")
    return {
        "device": torch.cuda.get_device_name(device) if cuda else f"cpu ({platform.machine()})",
        "torch": torch.__version__,
        "cuda": torch.version.cuda if cuda else None,
        "tf32": torch.backends.cuda.matmul.allow_tf32 if cuda else False,
    }


def _precise(tensor: Any) -> Any:
    return tensor.detach().cpu().double() if tensor.is_floating_point() else tensor.cpu()


class Goldens:
    """The recorded tensors of one module."""

    def __init__(self, module: str, folder: Path = FOLDER):
        from safetensors.torch import load_file

        self.manifest = json.loads(verified(f"golden/{module}.json", folder).read_text())
        self._tensors = load_file(verified(f"golden/{module}.safetensors", folder))

    def inputs(self, exercise: Exercise, device: str = "cpu") -> dict[str, Any]:
        """The recorded arguments, in the contract's order."""
        found = self._values(exercise, "in", device)
        return {name: found[name] for name in exercise.parameters if name in found}

    def expected(self, exercise: Exercise, device: str = "cpu") -> dict[str, Any]:
        """Every recorded tensor that a learner sees, in running order."""
        found = self._values(exercise, "out", device)
        return {name: found[name] for name in exercise.shown if name in found}

    def sample(self, exercise: Exercise, device: str = "cpu") -> Sample:
        return Sample("activations of the trained model", self.inputs(exercise, device), golden=True, gradient=False)

    def _values(self, exercise: Exercise, role: str, device: str) -> dict[str, Any]:
        prefix = f"{exercise.name}/{role}/"
        found = {
            name.removeprefix(prefix): tensor.to(device) for name, tensor in self._tensors.items() if name.startswith(prefix)
        }
        values = self.manifest["exercises"][exercise.name]["values"]
        found.update({name.removeprefix(f"{role}/"): value for name, value in values.items() if name.startswith(f"{role}/")})
        return found
