"""Find a GPT-2 checkpoint, check it, and read it.

`read_checkpoint` is what a learner's `from_pretrained` calls: files, hashes and formats are its business, the model
is the learner's. Nothing that a file holds is ever run: safetensors is data, and `.bin` is read as tensors only.
Tensors stay in their file, mapped into memory, until they are used: a file may be larger than the memory.
"""

import json
import math
import re
import struct
import warnings
import zipfile
from pathlib import Path
from typing import Any

from autograder.hub import FILES, RELEASES, Release, WeightsError, fetch, weight_map

__all__ = ["RELEASES", "Release", "WeightsError", "fetch", "find", "read_checkpoint", "read_config", "read_tensors"]

HUB_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
MASKS = (".attn.bias", ".attn.masked_bias")  # no weights: whatever they are stored as is fine
BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}  # the weights that a GPT-2 can have, by safetensors' names


def read_checkpoint(name_or_path: str | Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The configuration and the tensors, by name, of a folder, a file, or a name on the hub.

    Raises WeightsError for what is not there, cannot be fetched, was damaged on the way, or is not a checkpoint.
    """
    file = find(name_or_path)
    config = read_config(file.parent / "config.json")
    if not file.name.endswith(".index.json"):
        return config, read_tensors(file)
    tensors: dict[str, Any] = {}
    names = weight_map(file)
    for part in sorted(set(names.values())):
        if not (file.parent / part).is_file():
            raise WeightsError(f"{file} names {part}, which is not beside it")
        tensors.update(read_tensors(file.parent / part))
    for name, part in names.items():
        if name not in tensors:
            raise WeightsError(f"{file.parent / part} does not hold {name}, which {file.name} says it does")
    return config, tensors


def find(name_or_path: str | Path) -> Path:
    """The weight file (or the index of a sharded one) that is meant, on this machine."""
    path = Path(name_or_path)
    if path.is_file():
        return path
    if path.is_dir():
        found = [path / name for name in FILES if (path / name).is_file()]
        if found:
            return found[0]
        if str(path) not in RELEASES:  # a folder that happens to be called gpt2 does not hide the model of that name
            raise WeightsError(f"{path} holds no weights: expected one of {' '.join(FILES)}")
    name = str(name_or_path)
    if not HUB_NAME.fullmatch(name):
        raise WeightsError(f"{name!r} is no file, no folder and no name on the hub: expected one of these")
    return fetch(name)


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
    # Kinds of GPT-2 that have the same weights and give other logits: taken for the plain one, they would be wrong silently.
    for key, expected in (
        ("model_type", ("gpt2",)),
        ("activation_function", ("gelu_new", "gelu_pytorch_tanh")),
        ("tie_word_embeddings", (True, False)),
        ("scale_attn_weights", (True,)),
        ("scale_attn_by_inverse_layer_idx", (False,)),
    ):
        if config.get(key, expected[0]) not in expected:
            raise WeightsError(f"{path}: {key} is {config[key]!r}, expected {' or '.join(map(repr, expected))}")
    if type(config["layer_norm_epsilon"]) not in (int, float) or config["layer_norm_epsilon"] < 0:
        raise WeightsError(f"{path}: layer_norm_epsilon is {config['layer_norm_epsilon']!r}, expected a small number")
    return config


def read_tensors(path: Path) -> dict[str, Any]:
    """The tensors of one file, which stay in it, mapped into memory, until they are used."""
    import torch

    tensors = _read_bin(path) if path.suffix in (".bin", ".pt", ".pth") else _read_safetensors(path)
    for name, tensor in tensors.items():
        if tensor.dtype not in (torch.float32, torch.float16, torch.bfloat16, torch.float64) and not name.endswith(MASKS):
            raise WeightsError(f"{path}: {name} is {str(tensor.dtype)[6:]}, expected float32, float16, bfloat16 or float64")
    return tensors


def _read_safetensors(path: Path) -> dict[str, Any]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except (SafetensorError, KeyError, TypeError, RuntimeError, ValueError, OverflowError) as error:
        reason = _damage(path) or error
        raise WeightsError(f"{path} is not a whole safetensors file: {reason}") from None


def _damage(path: Path) -> str:
    """What is wrong with a safetensors file, with the first tensor that it concerns; empty where that cannot be told.

    The file is 8 bytes with the length of its header, the header (JSON: dtype, shape and place of each tensor), the tensors.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        start = file.read(8)
        length = struct.unpack("<Q", start)[0] if len(start) == 8 else 0
        if size < 8 + length or len(start) < 8:
            return f"it ends in its header, after {size:,} bytes"
        try:
            entries = {name: entry for name, entry in json.loads(file.read(length)).items() if name != "__metadata__"}
            for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
                first, last = entry["data_offsets"]
                if entry["dtype"] not in BYTES and not name.endswith(MASKS):
                    return f"{name} has dtype {entry['dtype']}, expected one of {' '.join(BYTES)}"
                if entry["dtype"] in BYTES and last - first != math.prod(entry["shape"]) * BYTES[entry["dtype"]]:
                    return f"{name} of shape {entry['shape']} and dtype {entry['dtype']} has {last - first:,} bytes"
                if 8 + length + last > size:
                    return f"it ends inside {name}, after {size:,} bytes"
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            return f"its header cannot be read ({type(error).__name__}: {error})"
    return ""


def _read_bin(path: Path) -> dict[str, Any]:
    import pickle

    import torch

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong with the file is said once, below
            # Files from before PyTorch 1.6, the released one among them, are no zip archives and cannot be mapped.
            tensors = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        wanted = re.search(r"GLOBAL ([\w.]+) (was|whose)", str(error))
        reason = f"it calls for {wanted[1]}" if wanted else _first_words(error.__context__ or error)
        raise WeightsError(f"{path} cannot be read as tensors alone and was refused; nothing in it was run ({reason})") from None
    except (RuntimeError, OSError, EOFError, ValueError, LookupError, AttributeError, TypeError) as error:
        size = path.stat().st_size
        raise WeightsError(f"{path} ({size:,} bytes) is not a whole PyTorch file: {_first_words(error)}") from None
    if not isinstance(tensors, dict):
        raise WeightsError(f"{path} holds a {type(tensors).__name__}, expected a state dict: tensors by name")
    for name, tensor in tensors.items():
        if not isinstance(name, str) or not isinstance(tensor, torch.Tensor):
            raise WeightsError(f"{path} is no state dict: {name!r} is a {type(tensor).__name__}, expected tensors by name")
    return dict(tensors)


def _first_words(error: BaseException) -> str:
    """The kind of error and its first sentence, without what a damaged file has put into it."""
    sentence = str(error).strip().partition("\n")[0].partition(". ")[0]
    return f"{type(error).__name__}: {''.join(filter(str.isprintable, sentence))[:100]}"
