"""Find a GPT-2 checkpoint, fetch it where it must be fetched, check it, and read it.

`read_checkpoint` is what a learner's `from_pretrained` calls: files, hashes and formats are its business, the model
is the learner's. Nothing that a file holds is ever run: safetensors is data, and `.bin` is read as tensors only.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autograder.checkpoints import sha256


class WeightsError(ValueError):
    """A checkpoint cannot be found, fetched or read. The message names the file and what was expected of it."""


@dataclass(frozen=True)
class Release:
    """A released model on the hub, with what is known of its file."""

    repository: str
    parameters: int
    bytes: int | None = None
    sha256: str | None = None


# Sizes and hash: the hub's own records of openai-community/gpt2; parameter counts follow from the shapes.
RELEASES = {
    "gpt2": Release(
        "openai-community/gpt2", 124_439_808, 548_105_171, "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"
    ),
    "gpt2-medium": Release("openai-community/gpt2-medium", 354_823_168),
    "gpt2-large": Release("openai-community/gpt2-large", 774_030_080),
    "gpt2-xl": Release("openai-community/gpt2-xl", 1_557_611_200),
}
FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def read_checkpoint(name_or_path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration and the tensors, by name, of a folder, a file, or a name on the hub.

    Raises WeightsError for what is not there, cannot be fetched, was damaged on the way, or is not a checkpoint.
    """
    file = find(name_or_path)
    config = read_config(file.parent / "config.json")
    tensors: dict[str, Any] = {}
    for part in _parts(file):
        tensors.update(read_tensors(part))
    return config, tensors


def find(name_or_path: str | Path) -> Path:
    """The weight file (or the index of a sharded one) that is meant, on this machine."""
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.is_dir():
        found = [path / name for name in FILES if (path / name).is_file()]
        if not found:
            raise WeightsError(f"{path} holds no weights: expected one of {' '.join(FILES)}")
        return found[0]
    name = str(name_or_path)
    if not HUB_NAME.fullmatch(name):
        raise WeightsError(f"{name!r} is no file, no folder and no name on the hub: expected one of these")
    return fetch(name)


def fetch(name: str) -> Path:
    """Download a model from the hub, or find it in the hub's cache; a download that was broken off goes on where it stopped."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError

    release = RELEASES.get(name)
    repository = release.repository if release else name
    try:
        hf_hub_download(repository, "config.json")
        for file in FILES:
            try:
                path = Path(hf_hub_download(repository, file))
                break
            except LocalEntryNotFoundError:
                raise
            except EntryNotFoundError:
                continue
        else:
            raise WeightsError(f"{repository} on the hub holds no weights: expected one of {' '.join(FILES)}")
        if path.suffix == ".json":
            for part in set(_weight_map(path).values()):
                hf_hub_download(repository, part)
    except RepositoryNotFoundError:
        raise WeightsError(f"the hub has no model {repository!r}, and there is no such file or folder") from None
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise WeightsError(
            f"{repository} is not in the cache and cannot be fetched ({type(error).__name__}): without a network, use the small "
            "model that comes with the course, checkpoints/small"
        ) from error
    if release:
        verify(path, release)
    return path


def verify(path: Path, release: Release) -> None:
    """Hold a fetched file against what was released. Raises WeightsError with both hashes when it differs."""
    if release.bytes is None or path.name != "model.safetensors":
        return
    size = path.stat().st_size
    if size != release.bytes:
        raise WeightsError(f"{path} has {size} bytes, expected {release.bytes}: delete it and fetch it again")
    found = sha256(path)
    if found != release.sha256:
        raise WeightsError(f"{path} has SHA-256 {found}, expected {release.sha256}: delete it and fetch it again")


def read_config(path: Path) -> dict[str, Any]:
    """A GPT-2's `config.json`, with the sizes that a model needs checked."""
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WeightsError(f"{path} is missing: the number of heads cannot be told from the weights") from None
    except ValueError as error:
        raise WeightsError(f"{path} is not JSON: {error}") from None
    if not isinstance(config, dict):
        raise WeightsError(f"{path} holds a {type(config).__name__}, expected an object")
    config.setdefault("n_ctx", config.get("n_positions"))
    config.setdefault("layer_norm_epsilon", 1e-5)
    config.setdefault("tie_word_embeddings", True)
    for key in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size"):
        if type(config.get(key)) is not int or config[key] < 1:
            raise WeightsError(f"{path}: {key} is {config.get(key)!r}, expected a positive whole number")
    if config["n_embd"] % config["n_head"]:
        raise WeightsError(f"{path}: n_head = {config['n_head']} does not divide n_embd = {config['n_embd']}")
    if config.get("activation_function", "gelu_new") not in ("gelu_new", "gelu_pytorch_tanh"):
        raise WeightsError(f"{path}: activation_function is {config['activation_function']!r}, expected 'gelu_new'")
    return config


def read_tensors(path: Path) -> dict[str, Any]:
    """The tensors of one file. safetensors stay in the file, mapped into memory, until they are used."""
    return _read_bin(path) if path.suffix in (".bin", ".pt", ".pth") else _read_safetensors(path)


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise WeightsError(f"{path} ({path.stat().st_size} bytes) is not a whole safetensors file: {error}") from None


def _read_bin(path: Path) -> dict[str, Any]:
    import pickle

    import torch

    try:
        tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except pickle.UnpicklingError as error:
        reason = str(error).splitlines()[0]
        raise WeightsError(f"{path} holds more than tensors and was refused; nothing in it was run ({reason})") from None
    except (RuntimeError, OSError, EOFError, ValueError) as error:
        raise WeightsError(f"{path} is not a whole PyTorch file: {str(error).splitlines()[0]}") from None
    if not isinstance(tensors, dict) or not all(isinstance(tensor, torch.Tensor) for tensor in tensors.values()):
        raise WeightsError(f"{path} is no table of tensors by name: expected a state dict")
    return tensors


def _parts(file: Path) -> list[Path]:
    """The file itself, or the parts that an index names."""
    if not file.name.endswith(".index.json"):
        return [file]
    parts = [file.parent / name for name in sorted(set(_weight_map(file).values()))]
    for part in parts:
        if not part.is_file():
            raise WeightsError(f"{file} names {part.name}, which is not beside it")
    return parts


def _weight_map(index: Path) -> dict[str, str]:
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        if not all(Path(name).name == name for name in names.values()):
            raise WeightsError(f"{index} names a file outside its own folder")
        return names
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, WeightsError):
            raise
        raise WeightsError(f"{index} is no index of a sharded checkpoint: {type(error).__name__}: {error}") from None
