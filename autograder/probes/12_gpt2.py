"""Calls of a learner's gpt2.py with plain data: models are built here from sizes and named tensors.

A learner's GPT2 keeps its projections as (in, out) or as (out, in). What goes in and what comes back is always in
the released layout, (in, out).
"""

import json
import math
import os
import pickle
import tempfile
from collections import Counter
from pathlib import Path

import torch
from torch import nn

from autograder.probe import cotangent

FIELDS = ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size", "layer_norm_eps", "tied")
PROJECTIONS = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
GRID = 10  # shares of sampled tokens are rounded to tenths

# ---------------------------------------------------------------- GPT2


def gpt2(module, config, weights, ids, chunks=None, with_gradients=False, fresh=False):
    """Build the model, put the weights in, run it over `ids`: at once, or in chunks with a cache.

    fresh  also look at a model with the weights it starts with: is it near uniform, and does it take a full context?
    """
    first = weights["wte.weight"]

    def made():
        return module.GPT2(module.GPT2Config(**config)).to(first.device, first.dtype).eval()

    model = made()
    kept, found = kept_config(model), parameters(model)
    if found != {name: list(tensor.shape) for name, tensor in weights.items()}:
        return None, None, found, kept, None, None
    turned = {name: keeps_turned(model, name) for name in weights}
    own = named(model)
    with torch.no_grad():
        for name, tensor in weights.items():
            own[name].copy_(tensor.T if turned[name] else tensor)
    logits = run(model, config, ids, chunks)
    grads = gradients(logits, own, turned) if with_gradients else None
    near = near_uniform(made(), config["vocab_size"], ids.device) if fresh else None
    n = config["n_ctx"]
    full = [takes(made(), config, chunks, ids) for chunks in ([n], [n - 1, 1])] if fresh else None
    return logits, grads, found, kept, near, full


def named(model):
    """The model's parameters by name; an output table that is wte itself is no parameter of its own."""
    found = dict(model.named_parameters(remove_duplicate=False))
    if found.get("lm_head.weight") is not None and found["lm_head.weight"] is found.get("wte.weight"):
        del found["lm_head.weight"]
    return found


def parameters(model):
    """The shape of every parameter, in the released layout."""
    return {name: list(released(model, name, tensor).shape) for name, tensor in named(model).items()}


def released(model, name, tensor):
    return tensor.T if keeps_turned(model, name) else tensor


def keeps_turned(model, name):
    """Whether the model keeps this weight as (out, in). A square one goes by its module, or by the others like it."""
    if not name.endswith(PROJECTIONS):
        return False
    own = named(model)
    C = own["wte.weight"].shape[-1] if "wte.weight" in own else 0
    if own[name].dim() != 2:
        return False
    if own[name].shape[0] != own[name].shape[1]:
        inside = 4 * C if name.endswith("mlp.c_proj.weight") else C
        return own[name].shape[1] == inside and own[name].shape[0] != inside
    owner = model.get_submodule(name.rpartition(".")[0])
    if isinstance(owner, nn.Linear):
        return True
    others = [other for other in own if other.endswith(PROJECTIONS) and own[other].dim() == 2 and len(set(own[other].shape)) == 2]
    alike = [other for other in others if type(model.get_submodule(other.rpartition(".")[0])) is type(owner)]
    return any(keeps_turned(model, other) for other in (alike or others)[:1])


def kept_config(model):
    kept = getattr(model, "config", None)
    return {field: getattr(kept, field, None) for field in FIELDS}


@torch.no_grad()
def near_uniform(model, V, device):
    """Whether the fresh model spreads its bets: over all tokens, its loss is at most a quarter above ln V."""
    logits = model(torch.arange(V, device=device).unsqueeze(1))
    loss = (logits.logsumexp(-1, keepdim=True) - logits).mean()
    return bool(loss < 1.25 * math.log(V))


@torch.no_grad()
def takes(model, config, chunks, ids):
    """Whether the model accepts so many positions."""
    try:
        run(model, config, torch.zeros(1, sum(chunks), dtype=ids.dtype, device=ids.device), chunks if chunks[1:] else None)
    except NotImplementedError:
        raise
    except Exception:
        return False
    return True


def run(model, config, ids, chunks):
    if chunks is None:
        return model(ids)
    cache, done = Cache(config), []
    for chunk in ids.split(chunks, dim=1):
        cache.begin(chunk.shape[1])
        done.append(model(chunk, cache))
    return torch.cat(done, dim=1)


def gradients(logits, own, turned):
    """What sum(logits * cotangent) passes back to each parameter; None where nothing is passed back at all."""
    if not logits.requires_grad:
        return None
    found = torch.autograd.grad((logits * cotangent(logits)).sum(), list(own.values()), allow_unused=True)
    pairs = zip(own.items(), found, strict=True)
    whole = {name: torch.zeros_like(tensor) if grad is None else grad for (name, tensor), grad in pairs}
    return {name: grad.T if turned[name] else grad for name, grad in whole.items()}


class Cache:
    """Keys and values by layer, with `append` and `length`. It says what is wrong with a call that cannot be right."""

    def __init__(self, config):
        self.n_layer = config["n_layer"]
        self.k, self.v, self.done, self.new = [None] * self.n_layer, [None] * self.n_layer, set(), 0

    def begin(self, n_new):
        """The next forward pass brings so many positions."""
        self.done, self.new = set(), n_new

    @property
    def length(self):
        return min(0 if held is None else held.shape[2] for held in self.k)

    def append(self, layer, k, v):
        if layer not in range(self.n_layer):
            raise ValueError(f"cache.append was called for layer {layer}: expected 0 to {self.n_layer - 1}")
        if layer in self.done:
            raise ValueError(f"cache.append was called for layer {layer} twice in one pass")
        if k.dim() != 4 or k.shape[2] != self.new:
            raise ValueError(f"cache.append got keys of shape {tuple(k.shape)}, expected (B, H, {self.new}, D)")
        self.done.add(layer)
        for held, more in ((self.k, k), (self.v, v)):
            held[layer] = more if held[layer] is None else torch.cat([held[layer], more], dim=2)
        return self.k[layer], self.v[layer]


# ---------------------------------------------------------------- load_state, from_pretrained


def load_state(module, config, state, before=0.5):
    """Fill a model with one number, load the state dict, and give the lists of the report and what the parameters hold.

    `transposed` goes by the file: the projections that it stores as (out, in), whichever way round the model keeps them.
    """
    model = module.GPT2(module.GPT2Config(**config)).to(next(iter(state.values())).device)
    with torch.no_grad():
        for parameter in named(model).values():
            parameter.fill_(before)
    turned = {name: keeps_turned(model, name) for name in named(model)}
    report = module.load_state(model, state)
    missing, unexpected, transposed, wrong_size = (
        names(getattr(report, field, None)) for field in ("missing", "unexpected", "transposed", "wrong_size")
    )
    if transposed is not None:
        left_out = set(wrong_size or ()) | set(unexpected or ())
        there = {plain(name) for name in state} - left_out
        kept = [name for name in transposed if not turned.get(name)]
        transposed = sorted(kept + [name for name in there if turned.get(name) and name not in transposed])
    return missing, unexpected, transposed, wrong_size, holds(model, turned)


def holds(model, turned):
    """What every parameter holds, in the released layout; no numbers where a parameter is still on the meta device."""
    return {
        name: "nothing" if tensor.is_meta else (tensor.T if turned.get(name) else tensor).detach().clone()
        for name, tensor in named(model).items()
    }


def names(listed):
    return sorted(plain(name) for name in listed) if isinstance(listed, (list, tuple, set, dict)) else listed


def plain(name):
    return name.removeprefix("transformer.")


def from_pretrained(module, config, state, saved="model.safetensors", given="folder", look_for=()):
    """Write a checkpoint into a folder of its own and load it.

    saved     the weight file's name; "hostile.bin" is a pickle that would make a folder if it were run
    given     what the function gets: the "folder" or the "file", as text, or the folder as a "Path"
    look_for  parameter names: the error must name them
    """
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "config.json").write_text(json.dumps(config))
        file = folder / ("pytorch_model.bin" if saved == "hostile.bin" else saved)
        write(file, state, folder / "was_run" if saved == "hostile.bin" else None)
        place = {"folder": str(folder), "file": str(file), "Path": folder}[given]
        if saved == "hostile.bin":
            try:
                module.from_pretrained(place)
            except NotImplementedError:
                raise
            except Exception:
                pass
            return None, None, "code in the file was run" if (folder / "was_run").exists() else "nothing was run"
        try:
            model = module.from_pretrained(place)
        except ValueError as error:
            if not look_for:
                raise
            return None, None, [name for name in look_for if name in str(error)]
        if look_for:
            return None, None, "no error"
        if not isinstance(model, nn.Module):
            return type(model).__name__, None, None
        return kept_config(model), holds(model, {name: keeps_turned(model, name) for name in named(model)}), None


def write(file, state, marker):
    if marker is not None:
        file.write_bytes(pickle.dumps(Hostile(str(marker)), protocol=2))
    elif file.suffix == ".bin":
        torch.save({name: tensor.float() for name, tensor in state.items()}, file)
    else:
        from safetensors.torch import save_file

        save_file({name: tensor.float().contiguous().clone() for name, tensor in state.items()}, file, metadata={"format": "pt"})


class Hostile:
    """An object whose pickle calls a function when it is read."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.mkdir, (self.marker,)


# ---------------------------------------------------------------- generate


def generate(module, model, ids, max_new_tokens, generator=None, **options):
    """Run the learner's loop on a small model. Where tokens are drawn, only what does not depend on luck comes back.

    `generator` is a seed. Without one the random numbers are PyTorch's own.
    """
    runs = [once(module, model, ids, max_new_tokens, generator, seed, options) for seed in (0, 1)]
    (out, stub), (again, _) = runs
    same = isinstance(out, torch.Tensor) and isinstance(again, torch.Tensor) and torch.equal(out, again)
    follows = same if generator is not None and model["sampled"] else None
    if model["sampled"]:
        return None, shares(out, ids), None, stub.training, follows
    if not same and isinstance(out, torch.Tensor):
        out = "differs from draw to draw"
    fits = ids.shape[1] + max_new_tokens <= model["n_ctx"] and max_new_tokens and options.get("stop_id") is None
    return out, None, stub.work(ids.shape[1] + max_new_tokens) if fits else None, stub.training, follows


def once(module, model, ids, max_new_tokens, seed, global_seed, options):
    stub = Stub(module, model).train(model["training"])
    given = {} if seed is None else {"generator": torch.Generator(ids.device).manual_seed(seed)}
    with torch.random.fork_rng(devices=[ids.device] if ids.is_cuda else []):
        torch.manual_seed(global_seed)
        return module.generate(stub, ids, max_new_tokens, **given, **options), stub


def shares(out, ids):
    """What the columns of the result are, and of the first that is not the prompt: the tokens, and how often, in tenths."""
    if not isinstance(out, torch.Tensor) or out.dim() != 2 or len(out) != len(ids):
        return f"a result of shape {tuple(out.shape)}" if isinstance(out, torch.Tensor) else type(out).__name__
    T, width = ids.shape[1], out.shape[1]
    where = "first" if torch.equal(out[:, :T], ids) else "last" if torch.equal(out[:, -T:], ids) else "nowhere"
    start = T if where == "first" else 0
    found = {"prompt": where, "columns": width}
    if start >= width:
        return found
    first, second = out[:, start].tolist(), out[:, min(start + 1, width - 1)].tolist()
    if len(set(first)) == 1:
        return found | {"tokens": "the same in every row"}
    tenths = {str(token): round(GRID * count / len(ids)) for token, count in sorted(Counter(first).items())}
    return found | tenths | {"drawn twice alike": first == second}


class Stub(nn.Module):
    """A model whose logits are a sum of table rows: of the token, its position, the token before it, and the first one.

    It takes a cache, counts the positions that it is run over, and answers with other logits in training mode.
    """

    def __init__(self, module, model):
        super().__init__()
        (V, C), n_ctx = model["wte"].shape, model["n_ctx"]
        self.config = module.GPT2Config(n_layer=model["n_layer"], n_head=1, n_embd=C, n_ctx=n_ctx, vocab_size=V)
        for name in ("wte", "wpe", "head", "bias"):
            self.register_parameter(name, nn.Parameter(model[name].clone()))
        self.positions_run, self.got_cache = 0, False

    def forward(self, ids, cache=None):
        B, T = ids.shape
        offset = 0 if cache is None else cache.length
        if offset + T > self.config.n_ctx:
            raise ValueError(f"{offset} + {T} positions are more than n_ctx = {self.config.n_ctx}")
        self.positions_run, self.got_cache = self.positions_run + T, self.got_cache or cache is not None
        rows = seen = self.wte[ids]
        for layer in range(self.config.n_layer):
            if cache is not None:
                seen = cache.append(layer, rows.unsqueeze(1), rows.unsqueeze(1))[1].squeeze(1)
        before = torch.cat([seen[:, :1], seen], dim=1)[:, -T - 1 : -1]
        x = rows + self.wpe[offset : offset + T] + before + seen[:, :1]
        logits = x @ self.head + self.bias
        return logits.roll(1, -1) if self.training else logits

    def work(self, enough):
        often = "once" if self.positions_run <= enough else "again and again"
        return f"{'a' if self.got_cache else 'no'} cache, each position {often}"
