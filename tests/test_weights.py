"""Released weights: found, fetched, checked, read, run; refused by name where something is wrong with them.

The hub is one on this machine. The full-size file has the released layout and random numbers, and transformers,
which reads the same file, says what they must give.
"""

import hashlib
import json
import os
import pickle
import re
import shutil
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from helpers import run
from local_hub import COMMIT, Bytes, LocalHub, Released
from safetensors.torch import load_file, save_file

from autograder.assemble import Assembled
from autograder.cli import main
from autograder.course import ROOT
from autograder.hub import RELEASES
from autograder.weights import WeightsError, read_checkpoint

SMALL = ROOT / "checkpoints" / "small"
CONFIG = (SMALL / "config.json").read_bytes()
WEIGHTS = (SMALL / "model.safetensors").read_bytes()
FETCH = "import sys; from autograder.weights import find; print(find(sys.argv[1]))"


@pytest.fixture(scope="module")
def parts():
    return Assembled("solutions")


@pytest.fixture
def hub():
    hub = LocalHub()
    hub.files = {
        "someone/small": {"config.json": Bytes(CONFIG), "model.safetensors": Bytes(WEIGHTS)},
        "someone/empty": {"config.json": Bytes(CONFIG)},
        "someone/other": {"model.safetensors": Bytes(WEIGHTS)},
    }
    yield hub
    hub.close()


def at(hub: LocalHub, home: Path) -> dict[str, str]:
    """The environment of a program that asks this hub and keeps its cache there."""
    patient = {"HF_HUB_ETAG_TIMEOUT": "100", "HF_HUB_DOWNLOAD_TIMEOUT": "100"}  # this machine may have other work to do
    return {"HF_ENDPOINT": hub.address, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1", "COLUMNS": "250", **patient}


def fetch(hub: LocalHub, home: Path, name: str, **environment: str) -> subprocess.CompletedProcess:
    return run("-c", FETCH, name, **{**at(hub, home), **environment})


# ---------------------------------------------------------------------------------------------------- the way here


def test_a_model_is_fetched_once_and_lies_where_the_ecosystem_looks(hub, tmp_path):
    first = fetch(hub, tmp_path, "someone/small", TQDM_POSITION="-1")  # a progress bar although nobody looks
    assert first.returncode == 0, first.stderr
    path = Path(first.stdout.strip())
    snapshot = tmp_path / "hub" / "models--someone--small" / "snapshots" / COMMIT
    assert path == snapshot / "model.safetensors" and path.read_bytes() == WEIGHTS
    assert path.resolve().name == hub.sha256(hub.files["someone/small"]["model.safetensors"])
    assert (snapshot / "config.json").read_bytes() == CONFIG
    assert "model.safetensors" in first.stderr and "100%" in first.stderr
    assert len(hub.stored()) == 1
    again = fetch(hub, tmp_path, "someone/small")
    assert again.stdout == first.stdout and len(hub.stored()) == 1
    transformers = pytest.importorskip("transformers")
    assert transformers.GPT2LMHeadModel.from_pretrained("someone/small", cache_dir=tmp_path / "hub", local_files_only=True)


def test_without_a_network_the_cache_answers_and_else_it_is_said_so(hub, tmp_path):
    online = fetch(hub, tmp_path, "someone/small")
    for environment in ({"HF_HUB_OFFLINE": "1"}, {"HF_ENDPOINT": "http://127.0.0.1:9"}):
        assert fetch(hub, tmp_path, "someone/small", **environment).stdout == online.stdout
        lacking = fetch(hub, tmp_path, "someone/empty", **environment)
        assert re.search(r"WeightsError.*someone/empty is not in the cache, and http://\S+ cannot be reached", lacking.stderr)
        assert "checkpoints/small" in lacking.stderr


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("someone/nothing", "the hub has no model someone/nothing"),
        ("someone/empty", "someone/empty on the hub holds no weights: expected one of model.safetensors"),
        ("someone/other", "someone/other on the hub holds no config.json"),
        ("no/such/folder", "'no/such/folder' is no file, no folder and no name on the hub"),
        ("a--b..c", "the hub has no model a--b..c"),
    ],
)
def test_what_the_hub_does_not_have_is_named(hub, tmp_path, name, complaint):
    done = fetch(hub, tmp_path, name)
    said = done.stderr.replace(f"{name!r} is no file and no folder here; ", "")
    assert done.returncode == 1 and f"WeightsError: {complaint}" in said


def test_a_sharded_model_is_fetched_whole(hub, tmp_path, parts):
    tensors = load_file(SMALL / "model.safetensors")
    halves = {"a.safetensors": list(tensors)[:30], "b.safetensors": list(tensors)[30:]}
    files = hub.files["someone/sharded"] = {"config.json": Bytes(CONFIG)}
    for name, half in halves.items():
        save_file({key: tensors[key] for key in half}, tmp_path / name)
        files[name] = Bytes((tmp_path / name).read_bytes())
    index = {"weight_map": {key: name for name, half in halves.items() for key in half}}
    files["model.safetensors.index.json"] = Bytes(json.dumps(index).encode())
    done = fetch(hub, tmp_path, "someone/sharded")
    assert done.returncode == 0, done.stderr
    _, found = read_checkpoint(Path(done.stdout.strip()).parent)
    assert found.keys() == tensors.keys() and all(torch.equal(found[name], tensors[name]) for name in tensors)


@pytest.fixture
def large(hub):
    """A model of 26 MB: huggingface_hub writes what it gets in pieces of 10 MiB."""
    file = Released(n_layer=1, n_embd=64, n_ctx=1024, vocab_size=50257)
    hub.files["someone/large"] = {"config.json": Bytes(config(n_layer=1, n_head=2, n_embd=64)), "model.safetensors": file}
    assert file.size > 15 << 20
    return file


def config(**sizes: int) -> bytes:
    known = {"model_type": "gpt2", "n_layer": 12, "n_head": 12, "n_embd": 768, "n_positions": 1024, "vocab_size": 50257}
    return json.dumps(known | sizes).encode()


def test_a_broken_line_is_taken_up_again(hub, tmp_path, large):
    hub.cut = [12 << 20]
    done = fetch(hub, tmp_path, "someone/large")
    assert done.returncode == 0, done.stderr
    assert [headers.get("range") for headers in hub.stored()] == [None, f"bytes={10 << 20}-"]
    assert Path(done.stdout.strip()).read_bytes() == b"".join(map(bytes, large.blocks()))


@pytest.mark.skipif(os.name == "nt", reason="processes are killed otherwise there")
def test_a_killed_download_goes_on_where_it_stopped(hub, tmp_path, large):
    hub.stall = [12 << 20]
    command = [sys.executable, "-c", FETCH, "someone/large"]
    killed = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **at(hub, tmp_path)}, stderr=subprocess.DEVNULL)
    blobs = tmp_path / "hub" / "models--someone--large" / "blobs"
    give_up = time.monotonic() + 60
    while not any(part.stat().st_size >= 10 << 20 for part in blobs.glob("*.incomplete")):
        assert time.monotonic() < give_up and killed.poll() is None
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    done = fetch(hub, tmp_path, "someone/large")
    assert done.returncode == 0, done.stderr
    assert [headers.get("range") for headers in hub.stored()] == [None, f"bytes={10 << 20}-"]
    assert Path(done.stdout.strip()).read_bytes() == b"".join(map(bytes, large.blocks()))
    assert not list(blobs.glob("*.incomplete"))


def test_a_token_goes_to_the_hub_and_not_to_its_storage(hub, tmp_path):
    assert fetch(hub, tmp_path, "someone/small", HF_TOKEN="hf_secret").returncode == 0
    asked = [headers for _, path, headers in hub.requests if "/resolve/" in path]
    assert all(headers["authorization"] == "Bearer hf_secret" for headers in asked)
    assert hub.stored() and not any("authorization" in headers for headers in hub.stored())


def test_what_was_damaged_on_the_way_is_refused_and_not_kept(hub, tmp_path):
    hub.damage = True
    done = fetch(hub, tmp_path, "someone/small")
    digest = hub.sha256(hub.files["someone/small"]["model.safetensors"])
    assert re.search(
        rf"WeightsError: model.safetensors of someone/small was damaged on the way: .*expected {digest}", done.stderr
    )
    assert not list(tmp_path.rglob("*.incomplete")) and not list(tmp_path.rglob(digest))
    hub.damage = False
    assert fetch(hub, tmp_path, "someone/small").returncode == 0


PATCHED = """
import sys
from autograder import facts, hub
from autograder.cli import main
hub.RELEASES["gpt2"] = hub.Release("someone/small", int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
"""


def test_a_released_file_is_held_against_its_size_and_hash_each_time(hub, tmp_path):
    digest = hub.sha256(hub.files["someone/small"]["model.safetensors"])
    say = PATCHED + "print(hub.fetch('gpt2'))"
    right = run("-c", say, "1", str(len(WEIGHTS)), digest, **at(hub, tmp_path))
    assert right.returncode == 0, right.stderr
    path = Path(right.stdout.strip())
    size = run("-c", say, "1", str(len(WEIGHTS) + 1), digest, **at(hub, tmp_path))
    assert f"{path}: its size in bytes is {len(WEIGHTS)}, expected {len(WEIGHTS) + 1}: delete {path.resolve()}" in size.stderr
    path.resolve().chmod(0o644)
    path.resolve().write_bytes(WEIGHTS[:-1] + bytes([WEIGHTS[-1] ^ 1]))
    rotten = run("-c", say, "1", str(len(WEIGHTS)), digest, **at(hub, tmp_path))
    assert rotten.returncode == 1 and f"its SHA-256 is {hash_of(path)}, expected {digest}" in rotten.stderr


def hash_of(path: Path) -> str:
    from autograder.hub import sha256

    return sha256(path)


# ------------------------------------------------------------------------------------------ files that are not right


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_bytes(CONFIG)
    return tmp_path


def headed(change) -> bytes:
    """The small model's file with another header."""
    length = struct.unpack("<Q", WEIGHTS[:8])[0]
    entries = json.loads(WEIGHTS[8 : 8 + length])
    change(entries)
    header = json.dumps(entries).encode()
    return struct.pack("<Q", len(header)) + header + WEIGHTS[8 + length :]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (WEIGHTS[:500_000], "is not a whole safetensors file: it ends inside h.0.mlp.c_fc.weight, after 500,000 bytes"),
        (WEIGHTS[:500], "is not a whole safetensors file: it ends in its header, after 500 bytes"),
        (b"", "is not a whole safetensors file: it ends in its header, after 0 bytes"),
        (WEIGHTS + b"x", "is not a whole safetensors file: .*not fully covered"),
        (b"version https://git-lfs.github.com/spec/v1\n", "is not a whole safetensors file: it ends in its header"),
        (WEIGHTS[:20] + b"\xff" + WEIGHTS[21:], "is not a whole safetensors file: its header cannot be read"),
        (
            headed(lambda h: h["wpe.weight"].update(dtype="I32")),
            "wpe.weight is int32, expected float32, float16, bfloat16 or float64",
        ),
        (headed(lambda h: h["wpe.weight"].update(dtype="X9")), "wpe.weight has dtype X9, expected one of F64 F32 F16 BF16"),
        (headed(lambda h: h["wpe.weight"].update(shape=[3, 3])), r"wpe.weight of shape \[3, 3\] and dtype F32 has 131,072 bytes"),
        (headed(lambda h: h["wpe.weight"].update(h["wte.weight"])), "is not a whole safetensors file: .*w[tp]e.weight"),
    ],
)
def test_a_spoilt_safetensors_file_is_refused_by_file_and_tensor(folder, content, complaint):
    (folder / "model.safetensors").write_bytes(content)
    with pytest.raises(WeightsError, match=re.escape(str(folder / "model.safetensors")) + ".*" + complaint):
        read_checkpoint(folder)


class Calls:
    """Unpickled by a careless reader, it runs what it is made of."""

    def __init__(self, function, *arguments):
        self.how = function, arguments

    def __reduce__(self):
        return self.how


def saved(path: Path, content, **how) -> bytes:
    torch.save(content, path, **how)
    return path.read_bytes()


def spoilt_bins(path: Path, marker: Path):
    """Name, content and complaint of files that are no state dicts; running one of them would leave a mark."""
    tensors = load_file(SMALL / "model.safetensors")
    system, run_text = Calls(os.system, f"touch {marker}"), Calls(exec, f"open({str(marker)!r}, 'w')")
    old = {"_use_new_zipfile_serialization": False}
    whole, whole_old = saved(path, tensors), saved(path, tensors, **old)
    refused = "cannot be read as tensors alone and was refused; nothing in it was run"
    yield "a call among tensors", saved(path, {**tensors, "x": system}), rf"{refused} \(it calls for \w+.system\)"
    yield "a call, old format", saved(path, system, **old), rf"{refused} \(it calls for \w+.system\)"
    yield "a call, text", saved(path, {"x": run_text}), rf"{refused} \(it calls for exec\)"
    yield "a call, plain pickle", pickle.dumps(system), refused
    yield (
        "a call, oldest pickle",
        b"cos\nsystem\n(S'touch " + str(marker).encode() + b"'\ntR.",
        rf"{refused} \(it calls for os.system\)",
    )
    yield "truncated", whole[:100_000], r"\(100,000 bytes\) is not a whole PyTorch file: .*central directory"
    yield "truncated, old format", whole_old[:100_000], r"\(100,000 bytes\) is not a whole PyTorch file"
    yield "empty", b"", r"\(0 bytes\) is not a whole PyTorch file"
    yield "text", b"not found", r"is not a whole PyTorch file|cannot be read"
    yield "zeros inside", whole[:100] + bytes(40) + whole[140:], "is not a whole PyTorch file|cannot be read"
    yield "a list", saved(path, [1, 2]), "holds a list, expected a state dict"
    yield "a training state", saved(path, {"model": tensors, "step": 5}), "is no state dict: 'model' is a dict"
    yield (
        "a wrong dtype",
        saved(path, {**tensors, "wpe.weight": tensors["wpe.weight"].int()}),
        "wpe.weight is int32, expected float32",
    )


def test_a_spoilt_bin_is_refused_and_runs_nothing(folder):
    path, marker = folder / "pytorch_model.bin", folder / "it_was_run"
    for name, content, complaint in list(spoilt_bins(path, marker)):
        path.write_bytes(content)
        with pytest.raises(WeightsError, match=re.escape(str(path)) + ".*(" + complaint + ")"):
            read_checkpoint(folder)
        assert not marker.exists(), name


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"n_layer": None}, "n_layer is None, expected a positive whole number"),
        ({"n_head": 3}, "n_head = 3 does not divide n_embd = 128"),
        ({"model_type": "llama"}, "model_type is 'llama', expected 'gpt2'"),
        ({"activation_function": "gelu"}, "activation_function is 'gelu', expected 'gelu_new'"),
        ({"scale_attn_by_inverse_layer_idx": True}, "scale_attn_by_inverse_layer_idx is True, expected False"),
        ({"tie_word_embeddings": "yes"}, "tie_word_embeddings is 'yes', expected True or False"),
        ({"layer_norm_epsilon": "1e-5"}, "layer_norm_epsilon is '1e-5'"),
    ],
)
def test_a_config_that_means_another_model_is_refused(folder, change, complaint):
    (folder / "config.json").write_text(json.dumps(json.loads(CONFIG) | change))
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    with pytest.raises(WeightsError, match=re.escape(str(folder / "config.json")) + ": " + complaint):
        read_checkpoint(folder)


def test_folders_and_indexes_that_lack_something_are_named(folder):
    with pytest.raises(WeightsError, match="holds no weights: expected one of model.safetensors"):
        read_checkpoint(folder)
    index = folder / "model.safetensors.index.json"
    for names, complaint in (
        ({"wte.weight": "a.safetensors"}, "names a.safetensors, which is not beside it"),
        ({"wte.weight": "../a.safetensors"}, "names '../a.safetensors', which is outside its own folder"),
        ({"nothing": "b.safetensors"}, "b.safetensors does not hold nothing, which model.safetensors.index.json says it does"),
    ):
        (folder / "b.safetensors").write_bytes(WEIGHTS)
        index.write_text(json.dumps({"weight_map": names}))
        with pytest.raises(WeightsError, match=complaint):
            read_checkpoint(folder)
    index.write_text("[]")
    with pytest.raises(WeightsError, match="is no index of a sharded checkpoint"):
        read_checkpoint(folder)
    (folder / "config.json").unlink()
    with pytest.raises(WeightsError, match="config.json is missing"):
        read_checkpoint(folder / "b.safetensors")


# --------------------------------------------------------------------------------------- files as they are in the wild


def wild(tensors: dict[str, torch.Tensor]):
    """Name, tensors and how many of them are refused: the small model as others would have saved it."""
    projections = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
    turned = {name: tensor.T.contiguous() if name.endswith(projections) else tensor for name, tensor in tensors.items()}
    masks = {f"h.{layer}.attn.bias": torch.ones(1, 1, 256, 256).tril().bool() for layer in range(5)}
    padded = torch.cat([tensors["wte.weight"], torch.zeros(23, 128)])
    yield "prefix", {f"transformer.{name}": tensor for name, tensor in tensors.items()}, 0
    yield "compiled", {f"_orig_mod.{name}": tensor for name, tensor in tensors.items()}, 0
    yield "linear layout, masks", turned | masks, 0
    yield "equal head", tensors | {"lm_head.weight": tensors["wte.weight"].clone()}, 0
    yield "another head", tensors | {"lm_head.weight": tensors["wte.weight"] + 1}, 1
    yield "padded vocabulary", tensors | {"wte.weight": padded}, 1
    yield "float64", {name: tensor.double() for name, tensor in tensors.items()}, 0
    yield "a tensor too many, one too few", {"x" + name if name == "ln_f.bias" else name: t for name, t in tensors.items()}, 2


@pytest.mark.parametrize("kind", ["model.safetensors", "pytorch_model.bin", "old pytorch_model.bin"])
def test_what_others_saved_loads_or_is_refused_by_name(folder, parts, kind):
    ids = torch.randint(0, 1257, (2, 9), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected = parts.gpt2.from_pretrained(SMALL)(ids)
    path = folder / kind.removeprefix("old ")
    for name, tensors, refused in wild(load_file(SMALL / "model.safetensors")):
        if path.suffix == ".bin":
            torch.save(tensors, path, _use_new_zipfile_serialization=not kind.startswith("old"))
        else:
            save_file(tensors, path)
        if refused:
            with pytest.raises(ValueError, match="lm_head.weight|wte.weight|ln_f.bias.*xln_f.bias"):
                parts.gpt2.from_pretrained(folder)
        else:
            with torch.no_grad():
                torch.testing.assert_close(parts.gpt2.from_pretrained(folder)(ids), expected, msg=name)


def test_half_precision_files_load_as_they_are_rounded(folder, parts):
    tensors = {name: tensor.bfloat16() for name, tensor in load_file(SMALL / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors")
    model = parts.gpt2.from_pretrained(folder)
    for name, parameter in model.named_parameters():
        assert parameter.dtype == torch.float32 and torch.equal(parameter, tensors[name].float())


def test_weights_stay_in_the_file_and_training_leaves_the_file_alone(folder, parts):
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    model = parts.gpt2.from_pretrained(folder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    assert (folder / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize("name", RELEASES)
def test_the_released_shapes_have_the_released_counts(name, parts):
    sizes = json.loads((ROOT / "checkpoints" / "configs" / f"{name}.json").read_text())
    own = {key: sizes[key] for key in ("n_layer", "n_head", "n_embd", "vocab_size")}
    with torch.device("meta"):
        model = parts.gpt2.GPT2(parts.gpt2.GPT2Config(**own, n_ctx=sizes["n_positions"]))
    assert sum(parameter.numel() for parameter in model.parameters()) == RELEASES[name].parameters
    assert len(list(model.parameters())) == 12 * sizes["n_layer"] + 4


# ------------------------------------------------------------------------------------------------- full size, as released

PROMPT, NEW = 827, 200  # the last 2 of them are drawn when the context is over


@pytest.fixture(scope="module")
def full(tmp_path_factory):
    """The file as `course weights gpt2` fetched it from the local hub, and what the command said."""
    home, hub = tmp_path_factory.mktemp("hub"), LocalHub()
    hub.files["openai-community/gpt2"] = {"config.json": Bytes(config()), "model.safetensors": Released()}
    hub.sha256(hub.files["openai-community/gpt2"]["model.safetensors"])
    command = [sys.executable, "-m", "autograder", "weights", "gpt2"]
    environment = {**os.environ, **at(hub, home), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=900)
    hub.close()
    assert done.returncode in (0, 1), done.stderr
    yield next(home.glob("hub/models--*/snapshots/*/model.safetensors")), done
    shutil.rmtree(home)


@pytest.fixture
def one_thread():
    """Two threads on a machine that others use wait for each other more than they work."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_full_size_from_the_hub_to_the_last_token(full, parts, one_thread):
    """One test, so that the file is fetched once however the tests are shared out."""
    path, done = full
    these_are_not_the_released_weights(path, done)
    loading_copies_nothing(path, parts.gpt2)
    transformers = pytest.importorskip("transformers")
    oracle = transformers.GPT2LMHeadModel.from_pretrained(path.parent).eval()
    with torch.no_grad():
        gives_what_transformers_gives(parts.gpt2, parts.gpt2.from_pretrained(path), oracle)


def these_are_not_the_released_weights(path: Path, done: subprocess.CompletedProcess) -> None:
    assert done.returncode == 1, done.stderr
    lines = {line.split("│")[1].strip(): line for line in done.stdout.splitlines() if "│" in line}
    assert "548105171" in lines["file: size in bytes"] and "differs" in lines["file: size in bytes"]
    assert lines["parameters"].count("124,439,808") == 2 and "agrees" in lines["parameters"]
    differ = [what for what, line in lines.items() if "differs" in line]
    assert {"logits after 15496", "'The dog' goes on", "embedding of token 15496"} <= set(differ)
    assert [what for what, line in lines.items() if "agrees" in line] == ["parameters"]
    assert f"{len(differ)} of" in done.stdout and str(path) in done.stdout


def loading_copies_nothing(path: Path, gpt2) -> None:
    status = Path("/proc/self/status")

    def own() -> int:  # bytes that are no file's; where the system does not tell, nothing is tested
        return int(re.search(r"RssAnon:\s+(\d+)", status.read_text())[1]) * 1024 if status.exists() else 0

    before = own()
    model = gpt2.from_pretrained(path)
    assert sum(parameter.numel() for parameter in model.parameters()) == RELEASES["gpt2"].parameters
    assert own() - before < 50e6


def gives_what_transformers_gives(gpt2, model, oracle) -> None:
    """200 tokens, cached and then anew past the context's end; logits at 1,024 positions; the same tokens without a cache."""
    prompt = torch.randint(0, 50257, (1, PROMPT), generator=torch.Generator().manual_seed(1))
    result = gpt2.generate(model, prompt, NEW, temperature=0.0)
    assert result.shape == (1, PROMPT + NEW) and torch.equal(result[:, :PROMPT], prompt)

    greedy = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0}
    assert torch.equal(result[:, :1025], oracle.generate(prompt, max_new_tokens=1025 - PROMPT, **greedy))
    for length in range(1025, PROMPT + NEW):  # transformers does not slide: the last 1,024 tokens are shown to it anew
        assert oracle(result[:, length - 1024 : length], logits_to_keep=1).logits.argmax() == result[0, length]

    expected, found = oracle(result[:, :1024]).logits, model(result[:, :1024])
    assert (found - expected).abs().max() < 1e-4
    assert torch.equal(found[0, PROMPT - 1 :].argmax(dim=-1), result[0, PROMPT:1025])
    best = expected[0, PROMPT - 1 :].topk(2, dim=-1).values
    assert (best[:, 0] - best[:, 1]).min() > 2e-4  # twice the tolerance: no token is a matter of rounding
    without = gpt2.generate(model, prompt[:, :9], 5, temperature=0.0, use_cache=False)
    assert torch.equal(without, oracle.generate(prompt[:, :9], max_new_tokens=5, **greedy))


def test_far_past_the_context_the_last_tokens_are_what_counts(tmp_path, parts):
    transformers = pytest.importorskip("transformers")
    sizes = dict(n_layer=2, n_head=2, n_embd=32, n_positions=24, vocab_size=101, bos_token_id=0, eos_token_id=0)
    torch.manual_seed(3)
    oracle = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, initializer_range=0.3)).eval()
    oracle.save_pretrained(tmp_path)
    model = parts.gpt2.from_pretrained(tmp_path)
    prompt = torch.randint(0, 101, (3, 10), generator=torch.Generator().manual_seed(4))
    expected = prompt
    with torch.no_grad():
        for _ in range(200):
            token = oracle(expected[:, -24:]).logits[:, -1:].argmax(dim=-1)
            expected = torch.cat([expected, token], dim=1)
    for use_cache in (True, False):
        assert torch.equal(parts.gpt2.generate(model, prompt, 200, temperature=0.0, use_cache=use_cache), expected)
    assert len(expected.unique()) > 20


# ------------------------------------------------------------------------------------------------------- the commands


@pytest.fixture
def tiny(tmp_path, monkeypatch, parts):
    """A tiny model with GPT-2's vocabulary in the place of the released one, and facts that transformers finds of it."""
    transformers = pytest.importorskip("transformers")
    from autograder import facts, hub
    from autograder.commands import weights

    sizes = dict(n_layer=2, n_head=2, n_embd=16, n_positions=320, vocab_size=50257)
    torch.manual_seed(5)
    oracle = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes, initializer_range=0.2)).eval()
    oracle.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    vocabulary = parts.vocabulary(50257, path)
    release = hub.Release("someone/tiny", oracle.num_parameters(), path.stat().st_size, hub.sha256(path))
    monkeypatch.setitem(weights.RELEASES, "gpt2", release)
    monkeypatch.setattr(weights, "download", lambda name: path)
    monkeypatch.setenv("COLUMNS", "250")

    def logits(ids) -> torch.Tensor:
        with torch.no_grad():
            return oracle(torch.tensor([ids])).logits[0]

    def nats(context: str, continuation: str) -> list[float]:
        ids = vocabulary.encode(context + continuation)
        found = [logits(ids)[i - 1].log_softmax(-1)[ids[i]].item() for i in range(1, len(ids))]
        return found[len(vocabulary.encode(context)) - 1 :]

    row = oracle.transformer.wte.weight[9, :4].tolist()
    monkeypatch.setattr(facts, "ROWS", (facts.Row(9, tuple(row), "here"),))
    last = logits([5, 6])[-1]
    monkeypatch.setattr(
        facts, "LOGITS", (facts.Logits((5, 6), {3: last[3].item(), 70: last[70].item()}, int(last.argmax()), "here"),)
    )
    monkeypatch.setattr(facts, "MEAN_LOGIT", ((1, 2, 3), logits([1, 2, 3]).mean().item(), "here"))
    each = nats("<|endoftext|>", "One word, another word.")
    known = facts.LogLikelihood("<|endoftext|>", "One word, another word.", sum(each), "here", tuple(each))
    monkeypatch.setattr(facts, "LOG_LIKELIHOODS", (known, facts.LogLikelihood("One", " word", sum(nats("One", " word")), "here")))
    for prompt in (f"word {number}" for number in range(100)):
        ids = vocabulary.encode(prompt)
        text = vocabulary.bytes[int(logits(ids)[-1].argmax())].decode(errors="replace")
        if vocabulary.encode(prompt + text)[:-1] == ids:
            break
    monkeypatch.setattr(facts, "GREEDY", (facts.Greedy(prompt, text, "here"),))
    words = tmp_path / "words.txt"
    words.write_text("\n\n".join(f"A paragraph of words, the {number}th." for number in range(80)))
    ids = [token for piece in words.read_text().split("\n\n") for token in (50256, *vocabulary.encode(piece + "\n\n"))][:257]
    monkeypatch.setattr(facts, "BATCH_IDS", hashlib.sha256(struct.pack("<257H", *ids)).hexdigest())
    with torch.no_grad():
        batch = oracle(torch.tensor(ids[:-1]).view(4, 64)).logits.flatten(0, 1)
    monkeypatch.setattr(facts, "BATCH_LOSS", (torch.nn.functional.cross_entropy(batch, torch.tensor(ids[1:])).item(), "here"))
    return path, words


def test_weights_that_give_what_was_published_pass(tiny, capsys):
    path, words = tiny
    assert main(["weights", "gpt2", "--text", str(words)]) == 0
    said = capsys.readouterr().out
    assert "all agree" in said and "differs" not in said and "solutions/12_gpt2/gpt2.py" in said
    lines = [line for line in said.splitlines() if "agrees" in line]
    for what in ("size in bytes", "SHA-256", "parameters", "embedding of token 9", "logits after 5 6", "largest logit after 5 6"):
        assert sum(f"│ {what}" in line or f"file: {what}" in line for line in lines) == 1, what
    assert len(lines) == 12
    assert main(["weights", "gpt2"]) == 0
    assert "not asked for: --text FILE" in capsys.readouterr().out
    other = path.with_name("other.txt")
    other.write_text("Another text.")
    assert main(["weights", "gpt2", "--text", str(other)]) == 1
    assert "1 of 12 differ" in capsys.readouterr().out


def test_one_bit_in_the_file_is_found(tiny, capsys):
    path, _ = tiny
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert main(["weights", "gpt2"]) == 1
    said = capsys.readouterr().out
    assert any("SHA-256" in line and "differs" in line for line in said.splitlines())


def test_a_file_that_does_not_fit_is_told_with_its_report(tiny, capsys):
    path, _ = tiny
    tensors = load_file(path)
    del tensors["transformer.ln_f.bias"]
    path.unlink()
    save_file(tensors, path)
    assert main(["weights", "gpt2"]) == 1
    assert "ln_f.bias" in capsys.readouterr().out


def test_weights_offline_says_so_and_offers_the_small_model(tmp_path):
    done = run("-m", "autograder", "weights", HF_HOME=str(tmp_path), HF_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 2 and done.stdout == ""
    assert "cannot be reached" in done.stderr and "checkpoints/small" in done.stderr
    assert "Traceback" not in done.stderr
