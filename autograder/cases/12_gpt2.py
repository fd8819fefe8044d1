"""The case of 12_gpt2."""

import inspect
import math
import re
from collections.abc import Callable
from types import SimpleNamespace

import torch
import torch.nn.functional as F

from autograder.case import ANY, Case, Draw, refusal, sample
from autograder.probe import cotangent

FIELDS = ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size", "layer_norm_eps", "tied")
PROJECTIONS = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")
SHOWN = 2  # layers whose tensors have names; the layers behind them are computed in one go

AXES = {
    **dict.fromkeys(("resid_pre", "ln_1", "attn_out", "resid_mid", "ln_2", "mlp_out", "resid_post"), "B T C"),
    **dict.fromkeys(("q", "k", "v", "z"), "B H T D"),
    **dict.fromkeys(("scores", "pattern"), "B H Tq Tk"),
    **dict.fromkeys(("mlp_pre", "mlp_post"), "B T F"),
}
case = Case(
    "12_gpt2",
    axes={f"h{layer}_{name}": axes for layer in range(SHOWN) for name, axes in AXES.items()}
    | {"tok_emb": "B T C", "pos_emb": "T C", "resid_pre": "B T C", "ln_f": "B T C", "logits": "B T V"},
)


def _sized(n_layer, n_head, n_embd, n_ctx, vocab_size, layer_norm_eps=1e-5, tied=True):
    return dict(zip(FIELDS, (n_layer, n_head, n_embd, n_ctx, vocab_size, layer_norm_eps, tied)))


def shapes(sizes):
    """The name and shape of every parameter, as released."""
    L, C, V = sizes["n_layer"], sizes["n_embd"], sizes["vocab_size"]
    found = {"wte.weight": [V, C], "wpe.weight": [sizes["n_ctx"], C]}
    for layer in range(L):
        for name, shape in (
            ("ln_1", [C]),
            ("attn.c_attn", [C, 3 * C]),
            ("attn.c_proj", [C, C]),
            ("ln_2", [C]),
            ("mlp.c_fc", [C, 4 * C]),
            ("mlp.c_proj", [4 * C, C]),
        ):
            found |= {f"h.{layer}.{name}.weight": shape, f"h.{layer}.{name}.bias": shape[-1:]}
    found |= {"ln_f.weight": [C], "ln_f.bias": [C]}
    return found if sizes["tied"] else found | {"lm_head.weight": [V, C]}


def _drawn(draw, sizes):
    """Weights of a size at which every part of the model counts."""
    found = {}
    for name, shape in shapes(sizes).items():
        if name in ("wte.weight", "wpe.weight", "lm_head.weight"):
            found[name] = draw.normal(*shape)
        elif len(shape) == 2:
            found[name] = draw.normal(*shape, scale=1.2 * shape[0] ** -0.5)
        else:
            gain = 1.0 if ".ln_" in f".{name}" and name.endswith("weight") else 0.0
            found[name] = gain + draw.normal(*shape, scale=0.3)
    return found


# ---------------------------------------------------------------- GPT2
# What every layer does in the same way is a rule: a step whose value is a function. A mistake is another rule.


class Weights:
    """The named tensors, as leaves of the graph where gradients are asked for."""

    def __init__(self, weights, with_gradients):
        self.named = {name: tensor.detach().requires_grad_(with_gradients) for name, tensor in weights.items()}

    def __getitem__(self, name):
        return self.named[name]

    def pair(self, name):
        return self.named[f"{name}.weight"], self.named[f"{name}.bias"]


@case.step
def _made(config):
    """What the model is made of: the shape of every parameter."""
    return shapes(config)


@case.step
def parameters(_made):
    return _made


@case.step
def kept_config(config):
    return config


@case.step
def _fits(_made, config):
    return _made == shapes(config)


@case.step
def _w(weights, with_gradients):
    return Weights({name: tensor.clone() for name, tensor in weights.items()}, with_gradients)


@case.step
def _pieces(chunks, ids):
    return tuple(chunks or (ids.shape[1],))


@case.step
def _order(config):
    return tuple(range(config["n_layer"]))


@case.step
def _place(_order, config):
    """The positions of the ids of each piece. The cache has no length while a layer has not appended to it."""
    if len(_order) < config["n_layer"]:
        return lambda pieces: [range(T) for T in pieces]
    return lambda pieces: [range(sum(pieces[:i]), sum(pieces[: i + 1])) for i in range(len(pieces))]


@case.step
def _cache_call():
    """What the cache says of the way it is called; None where nothing is wrong."""
    return None


@case.step
def _refuses():
    return lambda offset, T, n_ctx: offset + T > n_ctx


@case.step
def _places(_place, _refuses, _cache_call, _pieces, chunks, config):
    if chunks and _cache_call:
        raise ValueError(_cache_call)
    found, n = _place(_pieces), config["n_ctx"]
    refused = [_refuses(sum(_pieces[:i]), T, n) for i, T in enumerate(_pieces)]
    if refused[0]:
        raise ValueError(f"{_pieces[0]} positions are more than n_ctx = {n}")
    # A later piece is refused when its turn comes, see `_late`: until then any position will do.
    return [0 if no else place for places, no in zip(found, refused) for place in places]


@case.step
def _late(_refuses, _pieces, config):
    """The refusal of a piece that comes behind others."""
    for i, T in enumerate(_pieces[1:], 1):
        if _refuses(sum(_pieces[:i]), T, config["n_ctx"]):
            raise ValueError(f"{sum(_pieces[:i])} + {T} positions are more than n_ctx = {config['n_ctx']}")


@case.step
def tok_emb(_w, ids):
    return _w["wte.weight"][ids]


@case.step
def pos_emb(_w, _places):
    return _w["wpe.weight"][_places]


@case.step
def resid_pre(tok_emb, pos_emb):
    return tok_emb + pos_emb


@case.step
def _norms():
    return "ln_1", "ln_2"


@case.step
def _norm(config):
    return lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, config["layer_norm_eps"])


@case.step
def _wiring():
    """What a sublayer reads, and what becomes of the stream."""
    return (lambda resid, normed: normed), (lambda resid, normed, update, norm: resid + update)


@case.step
def _mlp_stream():
    return lambda resid_pre, resid_mid: resid_mid


@case.step
def _c_attn(_pieces):
    return lambda x, w, b: x @ w + b


@case.step
def _cut():
    return lambda qkv: qkv.chunk(3, dim=-1)


@case.step
def _n_head(config):
    return config["n_head"]


@case.step
def _heads(_n_head):
    return lambda part: part.unflatten(-1, (_n_head, -1)).transpose(1, 2)


@case.step
def _scale(config):
    return lambda q, layer: q.shape[-1] ** -0.5


@case.step
def _blocked(_pieces, ids):
    """For each position, the number of positions that are there when it is computed, itself and its piece included."""
    ends = [sum(_pieces[: i + 1]) for i, T in enumerate(_pieces) for _ in range(T)]
    return torch.tensor(ends, device=ids.device).unsqueeze(1) <= torch.arange(ids.shape[1], device=ids.device)


@case.step
def _allowed(ids):
    return torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).tril()


@case.step
def _softmax(_blocked):
    return lambda scores, allowed: F.softmax(scores.masked_fill(~allowed | _blocked, -torch.inf), dim=-1)


@case.step
def _merge():
    return lambda z: z.transpose(1, 2).flatten(2)


@case.step
def _c_proj():
    return lambda x, w, b: x @ w + b


@case.step
def _c_fc():
    return lambda x, w, b: x @ w + b


@case.step
def _gelu():
    return lambda x: F.gelu(x, approximate="tanh")


@case.step
def _mlp_proj():
    return lambda x, w, b: x @ w + b


def h_ln_1(h_resid_pre, layer, _w, _norm, _norms):
    return _norm(h_resid_pre, *_w.pair(f"h.{layer}.{_norms[0]}"))


def _h_heads(h_resid_pre, h_ln_1, layer, _w, _wiring, _c_attn, _cut, _heads):
    qkv = _c_attn(_wiring[0](h_resid_pre, h_ln_1), *_w.pair(f"h.{layer}.attn.c_attn"))
    return tuple(_heads(part) for part in _cut(qkv))


def h_q(_h_heads):
    return _h_heads[0]


def h_k(_h_heads):
    return _h_heads[1]


def h_v(_h_heads):
    return _h_heads[2]


def h_scores(h_q, h_k, layer, _scale):
    return h_q @ h_k.mT * _scale(h_q, layer)


def h_pattern(h_scores, _allowed, _softmax):
    return _softmax(h_scores, _allowed)


def h_z(h_pattern, h_v):
    return h_pattern @ h_v


def h_attn_out(h_z, layer, _w, _merge, _c_proj):
    return _c_proj(_merge(h_z), *_w.pair(f"h.{layer}.attn.c_proj"))


def h_resid_mid(h_resid_pre, h_ln_1, h_attn_out, layer, _w, _norm, _norms, _wiring):
    return _wiring[1](h_resid_pre, h_ln_1, h_attn_out, lambda x: _norm(x, *_w.pair(f"h.{layer}.{_norms[0]}")))


def h_ln_2(h_resid_pre, h_resid_mid, layer, _w, _norm, _norms, _mlp_stream):
    return _norm(_mlp_stream(h_resid_pre, h_resid_mid), *_w.pair(f"h.{layer}.{_norms[1]}"))


def h_mlp_pre(h_resid_mid, h_ln_2, layer, _w, _wiring, _c_fc):
    return _c_fc(_wiring[0](h_resid_mid, h_ln_2), *_w.pair(f"h.{layer}.mlp.c_fc"))


def h_mlp_post(h_mlp_pre, _gelu):
    return _gelu(h_mlp_pre)


def h_mlp_out(h_mlp_post, layer, _w, _mlp_proj):
    return _mlp_proj(h_mlp_post, *_w.pair(f"h.{layer}.mlp.c_proj"))


def h_resid_post(h_resid_pre, h_resid_mid, h_ln_2, h_mlp_out, layer, _w, _norm, _norms, _wiring):
    return _wiring[1](h_resid_mid, h_ln_2, h_mlp_out, lambda x: _norm(x, *_w.pair(f"h.{layer}.{_norms[1]}")))


BLOCK = (
    h_ln_1,
    _h_heads,
    h_q,
    h_k,
    h_v,
    h_scores,
    h_pattern,
    h_z,
    h_attn_out,
    h_resid_mid,
    h_ln_2,
    h_mlp_pre,
    h_mlp_post,
    h_mlp_out,
    h_resid_post,
)
READS = {part: tuple(inspect.signature(part).parameters) for part in BLOCK}
RULES = tuple(sorted({name for reads in READS.values() for name in reads if not name.strip("_").startswith("h_")} - {"layer"}))


def _step(name: str, reads: tuple[str, ...], function: Callable) -> None:
    """Declare a step whose name and parameters are made here. The function takes the values by name, in one dictionary."""

    def step(**values):
        return function(values)

    step.__name__ = name
    step.__signature__ = inspect.Signature([inspect.Parameter(read, inspect.Parameter.KEYWORD_ONLY) for read in reads])
    case.step(step)


def _numbered(name: str, slot: int) -> str:
    """`h_q` in the layer that is computed as number `slot`: h0_q; a layer's resid_pre is what the one before left."""
    if name == "h_resid_pre":
        return f"h{slot - 1}_resid_post" if slot else "resid_pre"
    return re.sub("^(_?)h_", rf"\g<1>h{slot}_", name)


def _declare(part: Callable, slot: int) -> None:
    """A layer's step. Where the order of layers is too short for this slot, the stream passes and nothing is computed."""
    reads = {read: _numbered(read, slot) for read in READS[part] if read != "layer"}

    def compute(values):
        order = values["_order"]
        if slot >= len(order):
            return values[_numbered("h_resid_pre", slot)] if part is h_resid_post else None
        given = {read: values[name] for read, name in reads.items()}
        return part(**given, **({"layer": order[slot]} if "layer" in READS[part] else {}))

    _step(_numbered(part.__name__, slot), (*dict.fromkeys((*reads.values(), "_order")),), compute)


for _slot in range(SHOWN):
    for _part in BLOCK:
        _declare(_part, _slot)


def _behind(values):
    """The stream after the layers whose tensors have no names here."""
    resid = values[f"h{SHOWN - 1}_resid_post"]
    for layer in values["_order"][SHOWN:]:
        found = {**values, "layer": layer, "h_resid_pre": resid}
        for part in BLOCK:
            found[part.__name__] = part(**{read: found[read] for read in READS[part]})
        resid = found["h_resid_post"]
    return resid


_step("_stream", (f"h{SHOWN - 1}_resid_post", "_order", *RULES), _behind)


@case.step
def ln_f(_stream, _w, _norm):
    return _norm(_stream, *_w.pair("ln_f"))


@case.step
def _head(_w, config):
    return _w["wte.weight" if config["tied"] else "lm_head.weight"]


@case.step
def logits(ln_f, _head, _fits, _late):
    return ln_f @ _head.T if _fits else None


@case.step
def gradients(logits, _w, with_gradients):
    """Of sum(logits * cotangent), for every parameter; None where they are not asked for, or nothing is passed back."""
    if not with_gradients or logits is None or not logits.requires_grad:
        return None
    total = (logits * cotangent(logits)).sum()
    found = torch.autograd.grad(total, list(_w.named.values()), allow_unused=True, retain_graph=True)
    pairs = zip(_w.named.items(), found, strict=True)
    return {name: torch.zeros_like(tensor) if grad is None else grad for (name, tensor), grad in pairs}


@case.step
def near_uniform(_fits, fresh):
    return True if fresh and _fits else None


@case.step
def full_context(_fits, _place, _refuses, _cache_call, config, fresh):
    """Whether n_ctx positions are taken: at once, and one behind a cache of all others."""
    n = config["n_ctx"]
    if not fresh or not _fits:
        return None

    def taken(pieces):
        refused = (pieces[1:] and _cache_call) or any(_refuses(sum(pieces[:i]), T, n) for i, T in enumerate(pieces))
        return not refused and all(max(places) < n for places in _place(pieces))

    return [taken((n,)), taken((n - 1, 1))]


def model_inputs(draw: Draw):
    def made(label, sizes, B, T, **more):
        ids = draw.integers(0, sizes["vocab_size"], B, T)
        return sample(label, gradient=False, config=sizes, weights=_drawn(draw, sizes), ids=ids, **more)

    yield made("two rows of five ids", _sized(2, 3, 12, 13, 11), 2, 5)
    yield made("a cache, in chunks of 3, 1 and 2 ids", _sized(3, 4, 24, 19, 17), 2, 6, chunks=[3, 1, 2])
    yield made("a cache, a prompt of 4 ids and then one at a time", _sized(2, 2, 12, 17, 13), 3, 7, chunks=[4, 1, 1, 1])
    yield made("three layers, and gradients", _sized(3, 2, 12, 14, 10, 0.05), 2, 4, with_gradients=True)
    yield made("an output table of its own, and gradients", _sized(2, 6, 12, 15, 9, 0.3, False), 3, 4, with_gradients=True)
    yield made("one id a row", _sized(2, 3, 24, 12, 11), 3, 1, fresh=True)
    yield made("an untied model, fresh", _sized(2, 4, 24, 18, 13, tied=False), 2, 3, fresh=True)
    left = made("neurons that are nearly silent", _sized(2, 3, 12, 13, 11), 2, 5)
    for name, tensor in left.inputs["weights"].items():
        if name.endswith("mlp.c_fc.bias"):
            left.inputs["weights"][name] = tensor / 3 - 2.3
        if name.endswith("mlp.c_fc.weight"):
            left.inputs["weights"][name] = tensor / 8
        if name.endswith("mlp.c_proj.weight"):
            left.inputs["weights"][name] = tensor * 40
    yield left
    small = _sized(2, 3, 12, 7, 6)
    weights, ids = _drawn(draw, small), draw.integers(0, 6, 2, 8)
    yield refusal("8 ids for n_ctx = 7", ValueError, config=small, weights=weights, ids=ids)
    yield refusal("5 cached and 3 new ids for n_ctx = 7", ValueError, config=small, weights=weights, ids=ids, chunks=[5, 3])


def _model_reference(config, weights, ids, chunks=None, with_gradients=False, fresh=False):
    """The reference model of autograder/model.py: it shares no line with the steps."""
    from autograder.model import GPT2

    own = GPT2({**config, "layer_norm_epsilon": config["layer_norm_eps"]}).to(ids.device, weights["wte.weight"].dtype)
    own.load_state_dict({name: tensor for name, tensor in weights.items() if name != "lm_head.weight"})
    named, record = dict(own.named_parameters()), {}
    out = own(ids, record)
    if not config["tied"]:
        named["lm_head.weight"] = weights["lm_head.weight"].clone().requires_grad_()
        out = F.linear(record["ln_f"], named["lm_head.weight"])
    grads = None
    if with_gradients:
        found = torch.autograd.grad((out * cotangent(out)).sum(), list(named.values()))
        grads = dict(zip(named, found, strict=True))
    found = {name: list(tensor.shape) for name, tensor in named.items()}
    return out, grads, found, config, *((True, [True, True]) if fresh else (None, None))


case.exercise(
    "GPT2(config, weights, ids, chunks=None, with_gradients=False, fresh=False)",
    contract="class GPT2(nn.Module) with GPT2(config) and forward(ids, cache=None)",
    returns=("logits", "gradients", "parameters", "kept_config", "near_uniform", "full_context"),
    inputs=model_inputs,
    points=7,
    lesson="Eight functions, one model",
    hints=(
        "Which of your functions reads the stream, which writes to it, and in which order does a block call them?",
        "Embed at the cache's length; for each block add attn(ln_1(resid)) and then mlp(ln_2(resid)); ln_f; the table read back. "
        "In attn the new keys and values go to cache.append, and what it returns is attended to, with a mask aligned at the end.",
        "resid = embed(ids, wte, wpe, cache.length);  resid += attn(ln_1(resid));  resid += mlp(ln_2(resid));  "
        "logits = ln_f(resid) @ wte.T",
    ),
    probe="gpt2",
    reference=_model_reference,
    tolerance=2e-5,
)


def _mistake(id, at, tensor, text, setting):
    """A fault at a step whose value is a rule, and which needs nothing but another rule."""
    case.fault(id, at=at, tensor=tensor, text=text)(lambda: setting)


# What the model is made of


@case.fault("config-not-kept", at="kept_config", text="generate asks the model for its n_ctx: where does yours keep its sizes?")
def _():
    return dict.fromkeys(FIELDS)


def _made_of(id, text):
    return case.fault(id, at="_made", tensor="parameters", text=text)


@_made_of("tied-head-is-a-copy", "how many tables does a tied model have: are yours one parameter, or two of equal numbers?")
def _(right, config):
    return right | {"lm_head.weight": right["wte.weight"]}


@_made_of("untied-head-missing", "where does an untied model keep its output table?")
def _(right):
    return {name: shape for name, shape in right.items() if name != "lm_head.weight"}


@_made_of("head-has-a-bias", "how many numbers does the released file hold for the output: a table, or a table and a bias?")
def _(right, config):
    return right | {"lm_head.bias": [config["vocab_size"]]}


@_made_of("no-bias-on-qkv", "does the released file hold biases for q, k and v?")
def _(right):
    return {name: shape for name, shape in right.items() if not name.endswith("c_attn.bias")}


@_made_of("no-biases-on-projections", "do the released projections have biases?")
def _(right):
    return {name: shape for name, shape in right.items() if not re.search(r"c_\w+\.bias$", name)}


@_made_of("no-biases-at-all", "do the released projections and norms have biases?")
def _(right):
    return {name: shape for name, shape in right.items() if not name.endswith(".bias")}


@_made_of("norms-without-bias", "what does a layer norm add after its gain?")
def _(right):
    return {name: shape for name, shape in right.items() if not re.search(r"ln_\w\.bias$", name)}


@_made_of("final-norm-not-there", "which norm stands between the last block and the output table?")
def _(right):
    return {name: shape for name, shape in right.items() if not name.startswith("ln_f")}


@_made_of("no-position-table", "which parameter tells position 0 from position 1?")
def _(right):
    return {name: shape for name, shape in right.items() if name != "wpe.weight"}


@_made_of("names-behind-a-prefix", "the released names start with wte, wpe, h and ln_f: what do yours start with?")
def _(right):
    return {name if name.startswith("lm_head") else f"transformer.{name}": shape for name, shape in right.items()}


@_made_of("position-table-of-1024-rows", "does the number of rows of wpe follow n_ctx?")
def _(right, config):
    return right | {"wpe.weight": [1024, config["n_embd"]]}


@_made_of("position-table-of-vocabulary-size", "what does a row of wpe belong to: a position, or a token?")
def _(right, config):
    return right | {"wpe.weight": [config["vocab_size"], config["n_embd"]]}


@_made_of("always-twelve-layers", "does the number of blocks follow n_layer?")
def _(config):
    return shapes(config | {"n_layer": 12})


@_made_of("one-layer-too-few", "how many blocks does n_layer ask for, and how many do you make?")
def _(config):
    return shapes(config | {"n_layer": config["n_layer"] - 1})


@_made_of("mlp-as-wide-as-stream", "how many neurons does a block have: C, or more?")
def _(right, config):
    C = config["n_embd"]
    wide = {"c_fc.weight": [C, C], "c_fc.bias": [C], "mlp.c_proj.weight": [C, C]}
    return {name: next((new for end, new in wide.items() if name.endswith(end)), shape) for name, shape in right.items()}


@case.fault(
    "fresh-model-is-sure",
    at="near_uniform",
    text="how large are the rows of a fresh table, and how far apart are the logits of a model that knows nothing?",
)
def _(right):
    return False if right else None


# Positions, and the way in


def _placing(id, text, rule):
    _mistake(id, "_place", "pos_emb", text, rule)


_placing(
    "positions-restart",
    "a cache of 4 positions and one new id: at which position does it stand?",
    lambda pieces: [range(T) for T in pieces],
)
_placing(
    "offset-counted-twice",
    "a cache of 4 positions and one new id: does it stand at 4, or have the 4 been counted twice?",
    lambda pieces: [range(2 * sum(pieces[:i]), 2 * sum(pieces[:i]) + T) for i, T in enumerate(pieces)],
)
_placing(
    "offset-includes-new-ids",
    "the first id of a text: which row of wpe is its own?",
    lambda pieces: [range(sum(pieces[: i + 1]), sum(pieces[: i + 1]) + T) for i, T in enumerate(pieces)],
)
_placing(
    "positions-from-one",
    "the first id of a text: which row of wpe is its own, 0 or 1?",
    lambda pieces: [range(sum(pieces[:i]) + 1, sum(pieces[: i + 1]) + 1) for i in range(len(pieces))],
)
_placing(
    "offset-one-short",
    "a cache of 4 positions and one new id: does it stand at 3, or at 4?",
    lambda pieces: [range(max(sum(pieces[:i]) - 1, 0), max(sum(pieces[:i]) - 1, 0) + T) for i, T in enumerate(pieces)],
)
_placing(
    "offset-counts-calls",
    "what does the offset count: the positions in the cache, or the calls so far?",
    lambda pieces: [range(i, i + T) for i, T in enumerate(pieces)],
)
_placing(
    "one-position-for-all",
    "do the ids of one call stand at one position, or each at its own?",
    lambda pieces: [[sum(pieces[:i])] * T for i, T in enumerate(pieces)],
)
_placing(
    "positions-reversed",
    "which of the ids stands at position 0: the first, or the last?",
    lambda pieces: [range(sum(pieces[: i + 1]) - 1, sum(pieces[:i]) - 1, -1) for i in range(len(pieces))],
)


@case.fault("positions-by-token", at="pos_emb", text="what picks a row of wpe: what the token is, or where it stands?")
def _(_w, ids):
    return _w["wpe.weight"][ids]


@case.fault("positions-along-batch", at="pos_emb", text="which axis of ids do the positions run along?")
def _(_w, ids):
    return _w["wpe.weight"][: ids.shape[0]].unsqueeze(1)


@case.fault("no-position-behind-cache", at="pos_emb", text="does an id that comes behind a cache have a position too?")
def _(right, _pieces):
    return torch.cat([right[: _pieces[0]], torch.zeros_like(right[_pieces[0] :])])


@case.fault(
    "positions-not-added", at="resid_pre", text="without wpe, what tells the model which of two equal tokens comes first?"
)
def _(tok_emb):
    return tok_emb


@case.fault("tokens-not-added", at="resid_pre", text="what does the stream know of the tokens?")
def _(tok_emb, pos_emb):
    return pos_emb.expand_as(tok_emb)


@case.fault("embedding-scaled", at="resid_pre", text="does GPT-2 scale the rows of wte on their way in?")
def _(tok_emb, pos_emb, config):
    return tok_emb * config["n_embd"] ** 0.5 + pos_emb


@case.fault(
    "embedding-detached", at="tok_emb", tensor="gradients", text="can wte learn from being read: does a gradient get there?"
)
def _(_w, ids):
    return _w["wte.weight"].detach()[ids]


def _checking(id, text, rule, tensor="full_context"):
    _mistake(id, "_refuses", tensor, text, rule)


_checking("context-not-checked", "which row of wpe belongs to position n_ctx?", lambda offset, T, n_ctx: False)
_checking("cached-positions-not-checked", "how many positions are behind the new ids?", lambda offset, T, n_ctx: T > n_ctx)


@case.fault(
    "context-not-checked-by-slice",
    at="_places",
    tensor="pos_emb",
    text="which row of wpe belongs to position n_ctx, and what does a slice give that runs past the end?",
)
def _(_place, _pieces, config):
    return [place for places in _place(_pieces) for place in places if place < config["n_ctx"]]


_checking("full-context-refused", "may a text have exactly n_ctx positions?", lambda offset, T, n_ctx: offset + T >= n_ctx)

# The layers


def _layers(id, text, order, tensor):
    @case.fault(id, at="_order", tensor=tensor, text=text)
    def _(config):
        return tuple(order(config["n_layer"]))


_layers("only-first-layer", "how often does the loop over the blocks run before forward returns?", lambda L: range(1), "h1_ln_1")
_layers("last-layer-left-out", "how many blocks does the stream run through?", lambda L: range(L - 1), "ln_f")
_layers("first-layer-left-out", "which block does the stream run through first?", lambda L: range(1, L), "h0_ln_1")
_layers("layers-backwards", "which block does the stream run through first?", lambda L: range(L)[::-1], "h0_ln_1")
_layers("same-layer-each-time", "which block does the loop call the second time?", lambda L: [0] * L, "h1_ln_1")


@case.fault(
    "layer-reads-embedding",
    at="h1_ln_1",
    text="what does block 1 read: what block 0 left, or the embedding again?",
)
def _(_w, _norm, _norms, resid_pre, _order):
    return _norm(resid_pre, *_w.pair(f"h.{_order[1]}.{_norms[0]}"))


# Norms and the stream

_mistake("norms-swapped", "_norms", "h0_ln_1", "which norm stands before attention, ln_1 or ln_2?", ("ln_2", "ln_1"))
_mistake("same-norm-twice", "_norms", "h0_ln_2", "which norm stands before the MLP: the one before attention?", ("ln_1", "ln_1"))


def _normed(id, text):
    return case.fault(id, at="_norm", tensor="h0_ln_1", text=text)


@_normed("eps-left-at-default", "which eps does the config give, and which one do your norms use?")
def _():
    return lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, bias, 1e-5)


@_normed("norm-without-bias", "what does a layer norm add after its gain?")
def _(config):
    return lambda x, weight, bias: F.layer_norm(x, weight.shape, weight, None, config["layer_norm_eps"])


@_normed("norm-without-gain", "what does a layer norm multiply by after its division?")
def _(config):
    return lambda x, weight, bias: F.layer_norm(x, weight.shape, None, bias, config["layer_norm_eps"])


@_normed("norm-without-mean", "which of the two norms of module 07 does GPT-2 use?")
def _(config):
    return lambda x, weight, bias: F.rms_norm(x, weight.shape, weight, config["layer_norm_eps"]) + bias


@_normed("norm-over-positions", "over which axis does a norm take its mean: the channels of one position?")
def _(config):
    def norm(x, weight, bias):
        variance, mean = torch.var_mean(x, dim=1, keepdim=True, correction=0)
        return (x - mean) / (variance + config["layer_norm_eps"]).sqrt() * weight + bias

    return norm


def _wired(id, text, tensor, reads, writes):
    _mistake(id, "_wiring", tensor, text, (reads, writes))


_wired(
    "norm-after-adding",
    "does the norm stand on what a sublayer reads, or on the stream itself?",
    "h0_q",
    lambda resid, normed: resid,
    lambda resid, normed, update, norm: norm(resid + update),
)
_wired(
    "stream-goes-on-from-norm",
    "if a sublayer writes nothing, is the stream after it the stream before it?",
    "h0_resid_mid",
    lambda resid, normed: normed,
    lambda resid, normed, update, norm: normed + update,
)
_wired(
    "stream-not-added",
    "is what a sublayer writes put in the place of the stream, or added to it?",
    "h0_resid_mid",
    lambda resid, normed: normed,
    lambda resid, normed, update, norm: update,
)
_wired(
    "sublayers-read-raw-stream",
    "what does a sublayer read: the stream, or its norm?",
    "h0_q",
    lambda resid, normed: resid,
    lambda resid, normed, update, norm: resid + update,
)
_wired(
    "stream-added-twice",
    "how often is the stream in what a sublayer leaves behind?",
    "h0_resid_mid",
    lambda resid, normed: normed,
    lambda resid, normed, update, norm: 2 * resid + update,
)
_wired(
    "update-normed",
    "is what a sublayer writes normalised before it is added?",
    "h0_q",
    lambda resid, normed: resid,
    lambda resid, normed, update, norm: resid + norm(update),
)
_mistake(
    "mlp-beside-attention",
    "_mlp_stream",
    "h0_ln_2",
    "does the MLP read the stream before attention has written to it, or after?",
    lambda resid_pre, resid_mid: resid_pre,
)


@case.fault("final-norm-missing", at="ln_f", text="which norm stands between the last block and the output table?")
def _(_stream):
    return _stream


@case.fault("final-norm-twice", at="ln_f", text="how often is the stream normalised before the output table?")
def _(right, _w, _norm):
    return _norm(right, *_w.pair("ln_f"))


# Attention


def _projected(id, at, tensor, text, rule):
    _mistake(id, at, tensor, text, rule)


_projected("qkv-bias-not-added", "_c_attn", "h0_q", "what does c_attn add after its product?", lambda x, w, b: x @ w)
_projected("attn-proj-bias-not-added", "_c_proj", "h0_attn_out", "what does c_proj add after its product?", lambda x, w, b: x @ w)
_projected(
    "attn-proj-turned",
    "_c_proj",
    "h0_attn_out",
    "attn.c_proj is square, so either way round fits: is it (in, out), as the others are?",
    lambda x, w, b: x @ w.T + b,
)
_projected("attn-proj-left-out", "_c_proj", "h0_attn_out", "what mixes the heads behind z?", lambda x, w, b: x)
_projected("c-fc-bias-not-added", "_c_fc", "h0_mlp_pre", "what does c_fc add after its product?", lambda x, w, b: x @ w)
_projected("mlp-proj-bias-not-added", "_mlp_proj", "h0_mlp_out", "what does mlp.c_proj add?", lambda x, w, b: x @ w)


@case.fault(
    "weight-cut-along-rows",
    at="_c_attn",
    tensor="h0_q",
    text="c_attn is (C, 3*C): along which axis do q, k and v stand side by side?",
)
def _(_pieces):
    return lambda x, w, b: x[:, : _pieces[0]].contiguous() @ w.chunk(3, dim=0)[0]


def _cutting(id, text, rule, tensor="h0_q"):
    _mistake(id, "_cut", tensor, text, rule)


def _in_order(*order):
    return lambda qkv: tuple(qkv.chunk(3, dim=-1)[index] for index in order)


_cutting("qkv-order-kqv", "which comes first in c_attn, and which of the two reads: the query or the key?", _in_order(1, 0, 2))
_cutting("qkv-order-vkq", "in which order does c_attn hold q, k and v?", _in_order(2, 1, 0))
_cutting("qkv-order-qvk", "which comes last in c_attn, keys or values?", _in_order(0, 2, 1), "h0_k")
_cutting("qkv-order-kvq", "in which order does c_attn hold q, k and v, and where does each one go?", _in_order(2, 0, 1))
_cutting("qkv-order-vqk", "in which order does c_attn hold q, k and v, and which one did you take first?", _in_order(1, 2, 0))
_cutting(
    "qkv-every-third-column",
    "are the columns of q next to each other in c_attn?",
    lambda qkv: qkv.unflatten(-1, (-1, 3)).unbind(-1),
)


@case.fault(
    "qkv-by-head",
    at="_cut",
    tensor="h0_q",
    text="what stands first in c_attn: all heads' queries, or the query, key and value of head 0?",
)
def _(_n_head):
    return lambda qkv: tuple(part.flatten(-2) for part in qkv.unflatten(-1, (_n_head, 3, -1)).unbind(-2))


@case.fault("one-head", at="_n_head", tensor="h0_q", text="how many heads share the channels?")
def _():
    return 1


@case.fault(
    "always-twelve-heads",
    at="_n_head",
    tensor="h0_q",
    text="no shape depends on the number of heads: does yours follow the config?",
)
def _():
    return 12


@case.fault("head-size-for-head-count", at="_n_head", tensor="h0_q", text="is n_head the number of heads, or the size of one?")
def _(config):
    return config["n_embd"] // config["n_head"]


@case.fault("layer-count-for-head-count", at="_n_head", tensor="h0_q", text="which number of the config counts the heads?")
def _(config):
    return config["n_layer"]


@case.fault(
    "heads-by-view", at="_heads", tensor="h0_q", text="does one head hold whole positions, or slices of neighbouring ones?"
)
def _(_n_head, _pieces):
    def heads(part):
        B = part.shape[0]
        return torch.cat([piece.reshape(B, _n_head, piece.shape[1], -1) for piece in part.split(_pieces, dim=1)], dim=2)

    return heads


@case.fault("heads-every-nth-channel", at="_heads", tensor="h0_q", text="are the channels of head 0 next to each other?")
def _(_n_head):
    return lambda part: part.unflatten(-1, (-1, _n_head)).permute(0, 3, 1, 2)


@case.fault(
    "merged-by-view",
    at="_merge",
    tensor="h0_attn_out",
    text="row t of the merged heads: do all its numbers come from position t?",
)
def _(_pieces):
    def merge(z):
        B, H, T, D = z.shape
        return torch.cat([piece.reshape(B, piece.shape[2], H * D) for piece in z.split(_pieces, dim=2)], dim=1)

    return merge


def _scaling(id, text):
    return case.fault(id, at="_scale", tensor="h1_scores" if "layer" in id else "h0_scores", text=text)


@_scaling("scores-not-scaled", "what undoes the growth of a dot product with the head size D?")
def _():
    return lambda q, layer: 1.0


@_scaling("scores-scaled-by-head-size", "do you divide by D, or by its root, and how often?")
def _():
    return lambda q, layer: 1 / q.shape[-1]


@_scaling("scores-scaled-by-width", "how many products are summed in one dot product: C, or D?")
def _(config):
    return lambda q, layer: config["n_embd"] ** -0.5


@_scaling("scores-scaled-by-layer", "does the released model scale the scores of later layers any differently?")
def _():
    return lambda q, layer: q.shape[-1] ** -0.5 / (layer + 1)


@_scaling("scores-scaled-for-64", "your factor is right for D = 64 alone: where can the true D be read?")
def _():
    return lambda q, layer: 0.125


def _masking(id, text, step="_allowed"):
    return case.fault(id, at=step, tensor="h0_pattern", text=text)


@_masking("mask-missing", "may a position read what comes after it?")
def _(right):
    return torch.ones_like(right)


@_masking("mask-left-out-with-cache", "three new ids behind a cache: may the first of them read the third?")
def _(right, chunks):
    return torch.ones_like(right) if chunks else right


@_masking("mask-left-out-behind-cache", "three new ids behind cached ones: may the first of them read the third?")
def _(right, _pieces):
    behind = torch.arange(len(right), device=right.device).unsqueeze(1) >= _pieces[0]
    return right | behind


@_masking("mask-aligned-at-start", "two queries, six keys: is the last query the last of the positions?")
def _(right, _pieces):
    rows = [right[i] for T in _pieces for i in range(T)]
    return torch.stack(rows)


@_masking("mask-aligned-at-start-in-chunks", "a chunk of two queries behind four keys: which keys may the first one read?")
def _(right, _pieces):
    rows = [right[i] if T > 1 else right[len(right) - 1] for T in _pieces for i in range(T)]
    return torch.stack(rows)


@_masking("cached-keys-not-read", "what does attention read: the keys of this call, or all that append returns?")
def _(right, _pieces):
    number = torch.tensor([i for i, T in enumerate(_pieces) for _ in range(T)], device=right.device)
    return right & (number == number.unsqueeze(1))


@_masking("mask-one-ahead", "may a position read the one after it?")
def _(right):
    return torch.ones_like(right).tril(1)


@_masking("own-position-hidden", "may a position read itself, and what is left for the first one if not?")
def _(right):
    return right.tril(-1)


@_masking("mask-turned", "does the mask let through what is before a position, or what is after it?")
def _(right):
    return right.T


def _by_piece(scores, allowed, pieces, weigh):
    """A softmax rule that looks at the rows of one call at a time, and at the keys that are there."""
    T, end, found = scores.shape[-1], 0, []
    for size in pieces:
        end += size
        part = weigh(scores[..., end - size : end, :end], allowed[end - size : end, :end])
        found.append(F.pad(part, (0, T - end)))
    return torch.cat(found, dim=-2)


@_masking("mask-after-softmax", "if the future is struck out after the softmax, do the shares still sum to 1?", "_softmax")
def _(_pieces):
    return lambda scores, allowed: _by_piece(scores, allowed, _pieces, lambda part, seen: F.softmax(part, dim=-1) * seen)


@_masking("mask-multiplies-scores", "a score of 0: is that low enough to get no share?", "_softmax")
def _(_pieces):
    return lambda scores, allowed: _by_piece(scores, allowed, _pieces, lambda part, seen: F.softmax(part * seen, dim=-1))


@_masking("pattern-over-queries", "which axis must sum to 1 for one reader?", "_softmax")
def _(_pieces):
    def weigh(part, seen):
        return F.softmax(part.masked_fill(~seen, -torch.inf), dim=-2)

    return lambda scores, allowed: _by_piece(scores, allowed, _pieces, weigh)


def _neuron(id, text, rule):
    _mistake(id, "_gelu", "h0_mlp_post", text, rule)


_neuron("gelu-exact", "which of the two forms of GELU was GPT-2 trained with?", lambda x: F.gelu(x))
_neuron("relu-for-gelu", "are the neurons of GPT-2 cut off at 0, or smooth there?", F.relu)
_neuron("gelu-left-out", "two matrices with nothing between them: how many are they?", lambda x: x)
_neuron("silu-for-gelu", "which smooth function was GPT-2 trained with?", F.silu)

# The way out


@case.fault("untied-head-not-read", at="_head", tensor="logits", text="an untied model has a table of its own: is it read?")
def _(_w):
    return _w["wte.weight"]


@case.fault("head-detached", at="_head", tensor="gradients", text="can the output table learn: does a gradient get there?")
def _(right):
    return right.detach()


def _scoring(id, text):
    return case.fault(id, at="logits", text=text)


@_scoring("logits-of-last-position-only", "for how many positions does forward give logits?")
def _(right, _pieces):
    ends = [sum(_pieces[: i + 1]) - 1 for i in range(len(_pieces))]
    return None if right is None else right[:, ends]


@_scoring("probabilities-for-logits", "who turns logits into probabilities: the model, or the one who reads them?")
def _(right):
    return None if right is None else F.softmax(right, dim=-1)


@_scoring("log-probs-for-logits", "does forward give logits, or logarithms of probabilities?")
def _(right):
    return None if right is None else F.log_softmax(right, dim=-1)


@_scoring("logits-scaled", "what divides the logits of GPT-2?")
def _(right, config):
    return None if right is None else right * config["n_embd"] ** -0.5


@case.fault("model-detached", at="logits", tensor="gradients", text="does a gradient get from the logits to the parameters?")
def _(right):
    return None if right is None else right.detach()


@_scoring("stream-for-logits", "how wide is the last axis of your result: C, or V?")
def _(right, ln_f):
    return None if right is None else ln_f


@case.fault(
    "every-layer-appends-to-the-first",
    at="_cache_call",
    tensor="pos_emb",
    text="whose keys are these: does each layer have its own place in the cache?",
)
def _():
    return "cache.append was called for layer 0 twice in one pass"


@case.fault("layers-counted-from-one", at="_cache_call", tensor="pos_emb", text="which number has the first layer in the cache?")
def _(config):
    return f"cache.append was called for layer {config['n_layer']}: expected 0 to {config['n_layer'] - 1}"


# ---------------------------------------------------------------- load_state
# `transposed` goes by the file here: the projections that it stores as (out, in). The probe sees to a learner's own layout.


@case.step
def _sizes(config):
    """The sizes, from a GPT2Config's fields or from a config.json."""
    eps, tied = config.get("layer_norm_epsilon", 1e-5), config.get("tie_word_embeddings", True)
    return {"layer_norm_eps": eps, "tied": tied} | {name: config[name] for name in FIELDS if name in config}


@case.step
def _named():
    return lambda name: name.removeprefix("transformer.")


@case.step
def _given(state, _named):
    return tuple((_named(name), tensor) for name, tensor in state.items())


@case.step
def _masks():
    return lambda name: name.endswith((".attn.bias", ".attn.masked_bias"))


@case.step
def _accepts_head():
    return lambda tied, equal: tied and equal


@case.step
def _pairs(_given, _masks, _accepts_head, _sizes):
    by_name = dict(_given)
    wte, head = by_name.get("wte.weight"), by_name.get("lm_head.weight")
    equal = head is not None and wte is not None and torch.equal(head, wte)
    dropped = head is not None and _accepts_head(_sizes["tied"], equal)
    return tuple(pair for pair in _given if not _masks(pair[0]) and not (dropped and pair[0] == "lm_head.weight"))


@case.step
def _turned_file(_pairs, _sizes):
    """Whether the file stores its projections as (out, in): those that are not square tell."""
    own = shapes(_sizes)
    oblong = [
        (name, tensor) for name, tensor in _pairs if name in own and name.endswith(PROJECTIONS) and len(set(tensor.shape)) == 2
    ]
    return any(list(tensor.shape) == own[name][::-1] for name, tensor in oblong)


@case.step
def _turns():
    """Whether an entry is turned, given whether it fits as it is, and turned."""
    return lambda name, turned_file, fits, fits_turned: name.endswith(PROJECTIONS) and turned_file and fits_turned


@case.step
def _fitted():
    """The entry as it is loaded, or None where it does not fit."""
    return lambda tensor, shape: tensor if list(tensor.shape) == shape else None


@case.step
def _placed(_pairs, _sizes, _turned_file, _turns, _fitted):
    """What becomes of each entry: its name, a verdict, and what is loaded."""
    own, found = shapes(_sizes), []
    for name, tensor in _pairs:
        if name not in own:
            found.append((name, "unexpected", None))
            continue
        fits, fits_turned = list(tensor.shape) == own[name], list(tensor.shape)[::-1] == own[name] and tensor.dim() == 2
        turned = tensor.dim() == 2 and _turns(name, _turned_file, fits, fits_turned)
        loaded = _fitted(tensor.T if turned else tensor, own[name])
        found.append((name, "wrong_size" if loaded is None else "transposed" if turned else "loaded", loaded))
    return tuple(found)


def _listed(placed, verdict):
    return sorted(name.removeprefix("transformer.") for name, given, _ in placed if given == verdict)


@case.step
def _absent(_pairs, _sizes):
    return sorted(set(shapes(_sizes)) - {name for name, _ in _pairs})


@case.step
def _held(_placed, _sizes, before):
    """What every parameter holds."""
    device = next((tensor.device for _, _, tensor in _placed if tensor is not None), "cpu")
    given = {name: tensor for name, _, tensor in _placed if tensor is not None}
    return {
        name: given[name].to(torch.float32) if name in given else torch.full(shape, before, device=device)
        for name, shape in shapes(_sizes).items()
    }


@case.step
def missing(_absent):
    return _absent


@case.step
def unexpected(_placed):
    return _listed(_placed, "unexpected")


@case.step
def transposed(_placed):
    return _listed(_placed, "transposed")


@case.step
def wrong_size(_placed):
    return _listed(_placed, "wrong_size")


@case.step
def loaded(_held):
    return _held


def _turned(weights):
    """The same weights as a file with Linear layout holds them."""
    return {name: tensor.T.contiguous() if name.endswith(PROJECTIONS) else tensor for name, tensor in weights.items()}


def _with_prefix(weights):
    return {name if name == "lm_head.weight" else f"transformer.{name}": tensor for name, tensor in weights.items()}


def _with_masks(draw, weights, sizes):
    """The causal masks that released files hold, with their layers' other tensors."""
    found, n = {}, sizes["n_ctx"]
    for name, tensor in weights.items():
        if name.endswith("attn.c_attn.weight"):
            layer = name.removesuffix("c_attn.weight")
            found[f"{layer}bias"] = torch.ones(1, 1, n, n, device=tensor.device).tril()
            found[f"{layer}masked_bias"] = torch.tensor(-1e4, device=tensor.device)
        found[name] = tensor
    return found


def state_inputs(draw: Draw):
    def made(label, sizes, state):
        return sample(label, gradient=False, config=sizes, state=state)

    two, small, square = _sized(2, 2, 4, 5, 7), _sized(1, 2, 4, 5, 7), _sized(1, 2, 4, 4, 4)
    untied = small | {"tied": False}
    yield made("the released layout", small, _drawn(draw, small))
    yield made("(out, in) layout", small, _turned(_drawn(draw, small)))
    state = _with_masks(draw, _drawn(draw, two), two)
    yield made(
        "a prefix, causal masks, and a head equal to wte",
        two,
        _with_prefix(state | {"lm_head.weight": state["wte.weight"].clone()}),
    )
    yield made("(out, in) layout with square tables, behind a prefix", square, _with_prefix(_turned(_drawn(draw, square))))
    state = _drawn(draw, small)
    yield made("a head of its own in a tied model", small, state | {"lm_head.weight": draw.normal(7, 4)})
    yield made("a head of its own in an untied model", untied, _drawn(draw, untied))
    yield made("no head for an untied model", untied, state)
    state = _drawn(draw, small)
    yield made("a head equal to wte in an untied model", untied, state | {"lm_head.weight": state["wte.weight"].clone()})
    state = _drawn(draw, small)
    for name in ("h.0.attn.c_attn.bias", "h.0.ln_2.weight", "ln_f.bias"):
        del state[name]
    more = {"h.1.ln_1.weight": draw.normal(4), "score.weight": draw.normal(2, 4), "h.0.attn.rotary": draw.normal(3)}
    yield made("entries missing and others too many", small, state | more)
    state = _drawn(draw, small)
    state |= {"wpe.weight": draw.normal(9, 4), "h.0.mlp.c_fc.weight": draw.normal(4, 12), "h.0.ln_1.bias": draw.normal(5)}
    yield made("a longer wpe, a narrow MLP, a wide norm", small, state)
    yield made("a padded vocabulary", small, _drawn(draw, small) | {"wte.weight": draw.normal(8, 4)})
    yield made("a bias of one number", small, _drawn(draw, small) | {"h.0.mlp.c_fc.bias": draw.normal(1)})
    yield made("a table that is stored (C, V)", small, _drawn(draw, small) | {"wte.weight": draw.normal(4, 7)})
    yield made("a matrix with an axis too many", small, _drawn(draw, small) | {"h.0.mlp.c_fc.weight": draw.normal(1, 4, 16)})
    state = _turned(_drawn(draw, small)) | {"wpe.weight": draw.normal(3, 4)}
    del state["h.0.attn.c_proj.bias"]
    yield made("(out, in) layout, a shorter wpe, a bias missing", small, state)
    deep = _sized(11, 1, 2, 3, 4)
    yield made("eleven layers", deep, _drawn(draw, deep))
    yield made("half precision", small, {name: tensor.half() for name, tensor in _drawn(draw, small).items()})


def _load_reference(config, state, before=0.5):
    """PyTorch's own loader says what is missing and unexpected; the layout is told by one matrix."""
    from torch import nn

    model, own = nn.Module(), shapes(config)
    for name, shape in own.items():
        owner = model
        for part in name.split(".")[:-1]:
            if part not in dict(owner.named_children()):
                owner.add_module(part, nn.Module())
            owner = owner.get_submodule(part)
        owner.register_parameter(name.rpartition(".")[2], nn.Parameter(torch.full(shape, before)))
    state = {
        name.replace("transformer.", ""): tensor
        for name, tensor in state.items()
        if not re.search(r"attn\.(masked_)?bias$", name) or re.search(r"c_\w+\.bias$", name)
    }
    head = state.get("lm_head.weight")
    if config["tied"] and head is not None and head.shape == state["wte.weight"].shape and (head == state["wte.weight"]).all():
        del state["lm_head.weight"]
    turned = state["h.0.attn.c_attn.weight"].shape[0] == 3 * config["n_embd"]
    files = {name: tensor.mT if turned and name.endswith(PROJECTIONS) else tensor for name, tensor in state.items()}
    wrong = [name for name, tensor in files.items() if name in own and list(tensor.shape) != own[name]]
    result = model.load_state_dict({name: tensor for name, tensor in files.items() if name not in wrong}, strict=False)
    stored = [name for name in files if turned and name.endswith(PROJECTIONS) and name not in wrong]
    absent = sorted(set(result.missing_keys) - set(wrong))
    held = {name: tensor.detach() for name, tensor in model.named_parameters()}
    return absent, sorted(result.unexpected_keys), sorted(stored), sorted(wrong), held


case.exercise(
    "load_state(config, state, before=0.5)",
    contract="load_state(model, state_dict)",
    returns=("missing", "unexpected", "transposed", "wrong_size", "loaded"),
    inputs=state_inputs,
    points=5,
    lesson="Loading without guessing",
    hints=(
        "Two sets of names: what does each of them have that the other has not, once prefix and masks are gone?",
        "First find out which way round the file stores its projections; then go through its entries, and put each one into the "
        "model or into one of the lists.",
        "turned = (shape of c_attn.weight in the file is the model's, read backwards);  a projection, square ones too, is loaded "
        "as tensor.T if turned else tensor;  all else as it is, where the shapes are equal",
    ),
    probe="load_state",
    reference=_load_reference,
)


def _loading(id, at, tensor, text):
    return case.fault(id, at=at, tensor=tensor, text=text, only=("load_state",))


def _load_rule(id, at, tensor, text, setting):
    _loading(id, at, tensor, text)(lambda: setting)


_load_rule(
    "prefix-kept",
    "_named",
    "missing",
    "transformer.wte.weight and wte.weight: are these two parameters, or one?",
    lambda name: name,
)


@_loading("prefix-only-if-on-all", "_given", "missing", "a file with a prefix: does every name in it carry one, the head's too?")
def _(right, state):
    return right if all(name.startswith("transformer.") for name in state) else tuple(state.items())


_load_rule(
    "masks-unexpected", "_masks", "unexpected", "h.0.attn.bias holds a causal mask: does the model need it?", lambda name: False
)
_load_rule(
    "masked-bias-unexpected",
    "_masks",
    "unexpected",
    "which two entries of a layer hold masks?",
    lambda name: name.endswith(".attn.bias"),
)
_load_rule(
    "qkv-bias-taken-for-mask",
    "_masks",
    "missing",
    "h.0.attn.bias is a mask: what is h.0.attn.c_attn.bias, and does your filter tell them apart?",
    lambda name: name.endswith(("attn.bias", ".masked_bias")),
)
_load_rule(
    "attention-biases-taken-for-masks",
    "_masks",
    "missing",
    "h.0.attn.bias is a mask: what are the biases of c_attn and c_proj, and does your filter tell them apart?",
    lambda name: ".attn." in name and name.endswith("bias"),
)
_load_rule(
    "all-biases-taken-for-masks",
    "_masks",
    "missing",
    "which entries that end in bias are masks, and does your filter tell them from the others?",
    lambda name: name.endswith("bias"),
)
_load_rule(
    "equal-head-unexpected",
    "_accepts_head",
    "unexpected",
    "a head that is wte over again: is anything wrong?",
    lambda tied, equal: False,
)
_load_rule(
    "other-head-accepted",
    "_accepts_head",
    "unexpected",
    "a tied model and a file with a head that is not wte: may it be left out without a word?",
    lambda tied, equal: tied,
)
_load_rule(
    "head-always-left-out",
    "_accepts_head",
    "missing",
    "does an untied model need the head of the file?",
    lambda tied, equal: True,
)
_load_rule(
    "equal-head-left-out-when-untied",
    "_accepts_head",
    "missing",
    "a head that equals wte: does an untied model need it all the same?",
    lambda tied, equal: equal,
)


@_loading("absent-head-missing", "missing", "missing", "a tied model without lm_head.weight in the file: is anything missing?")
def _(right, _pairs, _sizes):
    return sorted({*right, *(["lm_head.weight"] if "lm_head.weight" not in dict(_pairs) else [])})


@_loading("head-overwrites-wte", "_given", "unexpected", "a head that is not wte: what has it to do with wte?")
def _(right, _sizes):
    if not _sizes["tied"]:
        return right
    by_name = dict(right)
    head = by_name.pop("lm_head.weight", None)
    return tuple((by_name if head is None else by_name | {"wte.weight": head}).items())


_load_rule(
    "nothing-turned",
    "_turns",
    "transposed",
    "a file that stores c_attn.weight as (3*C, C): what must become of it?",
    lambda name, turned_file, fits, fits_turned: False,
)
_load_rule(
    "square-not-turned",
    "_turns",
    "transposed",
    "attn.c_proj is square and fits either way: what do the other projections of the file say of it?",
    lambda name, turned_file, fits, fits_turned: name.endswith(PROJECTIONS) and turned_file and fits_turned and not fits,
)
_load_rule(
    "square-turned-for-nothing",
    "_turns",
    "transposed",
    "attn.c_proj is square and fits either way: do the other projections of the file say that it must be turned?",
    lambda name, turned_file, fits, fits_turned: name.endswith(PROJECTIONS) and fits_turned and (turned_file or fits),
)
_load_rule(
    "square-tables-turned",
    "_turns",
    "transposed",
    "which four weights of a layer may be turned, and are wte and wpe among them?",
    lambda name, turned_file, fits, fits_turned: turned_file and fits_turned,
)
_load_rule(
    "any-fitting-matrix-turned",
    "_turns",
    "transposed",
    "a wte that is stored (C, V): is that another layout, or a wrong size?",
    lambda name, turned_file, fits, fits_turned: fits_turned and (not fits or (turned_file and name.endswith(PROJECTIONS))),
)
_load_rule(
    "everything-turned",
    "_turns",
    "transposed",
    "which four weights of a layer may be turned, and which matrices never?",
    lambda name, turned_file, fits, fits_turned: turned_file and (fits or fits_turned),
)


def _fitting(id, text):
    return case.fault(id, at="_fitted", tensor="wrong_size", text=text, only=("load_state",))


@_fitting("too-long-is-cut", "a wpe with more rows than the model has: is a part of it what the model needs?")
def _():
    def fitted(tensor, shape):
        if tensor.dim() != len(shape) or any(have < need for have, need in zip(tensor.shape, shape)):
            return None
        return tensor[tuple(slice(size) for size in shape)]

    return fitted


@_fitting("shapes-not-compared", "what happens when a tensor of another shape is copied into a parameter?")
def _():
    return lambda tensor, shape: torch.empty(shape).copy_(tensor)


@_fitting("one-number-spread-out", "a bias of one number for a parameter of many: is that a fit?")
def _():
    def fitted(tensor, shape):
        broadcast = tensor.dim() == len(shape) and all(have in (1, need) for have, need in zip(tensor.shape, shape))
        return tensor.expand(shape) if broadcast else None

    return fitted


@_fitting("same-count-is-enough", "as many numbers, but in other rows: is that a fit?")
def _():
    return lambda tensor, shape: tensor.reshape(shape) if tensor.numel() == math.prod(shape) else None


@_fitting("extra-axis-dropped", "(1, C, F) for (C, F): is that the same shape?")
def _():
    return lambda tensor, shape: tensor.squeeze(0) if list(tensor.squeeze(0).shape) == shape else None


def _saying(id, at, text):
    return case.fault(id, at=at, text=text, only=("load_state",))


@_saying("report-not-returned", "missing", "what does load_state give back?")
def _():
    return None


@_saying("missing-not-listed", "missing", "which parameters does the file not have, and where do you say so?")
def _():
    return []


@_saying("wrong-size-also-missing", "missing", "an entry of the wrong size: is it in the file, or missing from it?")
def _(right, _placed):
    return sorted([*right, *_listed(_placed, "wrong_size")])


@_saying("unexpected-not-listed", "unexpected", "which entries has the model no place for, and where do you say so?")
def _():
    return []


@_saying("transposed-not-listed", "transposed", "which weights did you turn, and where do you say so?")
def _():
    return []


@_saying("turned-not-listed", "transposed", "which weights did you turn, and where do you say so?")
def _(_placed):
    return sorted(name for name, verdict, _ in _placed if verdict in ("loaded", "transposed") and name.endswith(PROJECTIONS))


@_saying("oblong-only-listed", "transposed", "attn.c_proj was turned with the others: is it listed with them?")
def _(right):
    return [name for name in right if not name.endswith("attn.c_proj.weight")]


@_saying("wrong-size-not-listed", "wrong_size", "an entry that does not fit: where do you say so?")
def _():
    return []


@_loading("missing-raises", "_placed", "unexpected", "a parameter that the file does not have: may it be looked up there?")
def _(right, _pairs, _sizes):
    for name in shapes(_sizes):
        if name not in dict(_pairs):
            raise KeyError(name)
    return right


@_loading("wrong-size-raises", "_placed", "unexpected", "an entry that does not fit: reported, or raised?")
def _(right):
    if _listed(right, "wrong_size"):
        raise ValueError(ANY)
    return right


@_loading("unexpected-raises", "_placed", "unexpected", "a name that the model has no place for: reported, or raised?")
def _(right):
    if _listed(right, "unexpected"):
        raise ValueError(ANY)
    return right


@_loading(
    "wrong-size-called-unexpected", "_placed", "unexpected", "an entry of the wrong size: has the model a place for its name?"
)
def _(right):
    return tuple((name, "unexpected" if verdict == "wrong_size" else verdict, tensor) for name, verdict, tensor in right)


@_saying("nothing-loaded", "loaded", "which line of yours writes into a parameter?")
def _(right, before):
    return {name: torch.full_like(tensor, before) for name, tensor in right.items()}


@_saying("all-or-nothing", "loaded", "one entry is missing: what of all those that fit?")
def _(right, missing, unexpected, wrong_size, before):
    clean = not missing and not unexpected and not wrong_size
    return right if clean else {name: torch.full_like(tensor, before) for name, tensor in right.items()}


@_saying("missing-set-to-zero", "loaded", "a parameter that the file does not have: what does it hold afterwards?")
def _(right, missing):
    return right | {name: torch.zeros_like(right[name]) for name in missing or ()}


@_saying("biases-not-loaded", "loaded", "are the biases loaded too?")
def _(right, before):
    return {name: torch.full_like(tensor, before) if name.endswith("bias") else tensor for name, tensor in right.items()}


@_saying("norms-exchanged", "loaded", "which of a block's two norms is ln_1?")
def _(right):
    def other(name):
        return re.sub(r"\.ln_([12])\.", lambda found: f".ln_{3 - int(found[1])}.", name)

    return {name: right[other(name)] for name in right}


@_saying("projection-biases-exchanged", "loaded", "a block has two c_proj: which bias belongs to which?")
def _(right):
    def other(name):
        if not name.endswith("c_proj.bias"):
            return name
        return name.replace(".attn.", ".mlp.") if ".attn." in name else name.replace(".mlp.", ".attn.")

    return {name: right[other(name)] for name in right}


@_saying("layers-sorted-as-text", "loaded", "as text, does layer 10 come before or after layer 2?")
def _(right, _sizes):
    order = sorted(range(_sizes["n_layer"]), key=str)
    source = {f"h.{layer}.": f"h.{taken}." for layer, taken in enumerate(order)}
    return {name: right[re.sub(r"^h\.\d+\.", lambda found: source[found[0]], name)] for name in right}


@_saying("tie-lost", "loaded", "a tied model: after loading, is its output table still wte itself?")
def _(right, _sizes, _placed, before):
    read = any(name == "wte.weight" and tensor is not None for name, _, tensor in _placed)
    return right | {"lm_head.weight": torch.full_like(right["wte.weight"], before)} if _sizes["tied"] and read else right


# ---------------------------------------------------------------- from_pretrained


@case.step
def _bad():
    """What a report is refused for."""
    return lambda missing, unexpected, wrong_size, transposed: missing or unexpected or wrong_size


@case.step
def _asked(_sizes):
    """The sizes that the model is made with."""
    return _sizes


@case.step
def _verdict(_bad, _absent, _placed, saved, look_for):
    if saved == "hostile.bin":
        return "hostile"
    if not _bad(_absent, *(_listed(_placed, verdict) for verdict in ("unexpected", "wrong_size", "transposed"))):
        return "clean"
    if not look_for:
        raise ValueError(ANY)
    return "refused"


@case.step
def _given_back():
    """What comes back is a model; else the name of its type."""
    return None


@case.step
def sizes_read(_verdict, _asked, _given_back, look_for):
    if _verdict != "clean" or look_for:
        return None
    if _asked is None:
        raise ValueError(ANY)
    return _given_back or {name: _asked[name] for name in FIELDS}


@case.step
def weights_read(_verdict, _held, _given_back, look_for):
    return _held if _verdict == "clean" and not look_for and not _given_back else None


@case.step
def said(_verdict, look_for):
    """What the error names, where it is asked for; whether code in the file was run, where there is some."""
    if _verdict == "hostile":
        return "nothing was run"
    return list(look_for) if _verdict == "refused" else "no error" if look_for else None


def _json(sizes):
    """The sizes as a config.json states them."""
    names = {"layer_norm_eps": "layer_norm_epsilon", "tied": "tie_word_embeddings"}
    found = {names.get(name, name): value for name, value in sizes.items()}
    return {"model_type": "gpt2", "activation_function": "gelu_new", "n_positions": sizes["n_ctx"], **found}


def file_inputs(draw: Draw):
    sizes = _sized(2, 2, 4, 5, 7, 0.02)
    untied = _sized(3, 4, 8, 6, 5, 0.001, False)
    other = _sized(1, 1, 4, 6, 8, 0.2)

    def made(label, sizes, state, **more):
        return sample(label, gradient=False, config=_json(sizes), state=state, **more)

    def refused(label, state, **more):
        return refusal(label, ValueError, config=_json(sizes), state=state, **more)

    yield made("a folder with the released layout", sizes, _with_masks(draw, _drawn(draw, sizes), sizes))
    yield made("an untied model, behind a prefix", untied, _with_prefix(_drawn(draw, untied)))
    yield made("(out, in) layout", other, _turned(_drawn(draw, other)))
    yield made("a file", sizes, _drawn(draw, sizes), given="file")
    yield made("a folder that is a Path", sizes, _drawn(draw, sizes), given="Path")
    yield made("a .bin file", sizes, _drawn(draw, sizes), saved="pytorch_model.bin")
    state = _drawn(draw, sizes)
    yield refused("no wpe.weight in the file", {name: tensor for name, tensor in state.items() if name != "wpe.weight"})
    yield refused("a head of its own for a tied model", state | {"lm_head.weight": draw.normal(7, 4)})
    yield refused("wte.weight with three rows too many", state | {"wte.weight": draw.normal(10, 4)})
    state = {name: tensor for name, tensor in state.items() if name != "h.1.ln_2.bias"} | {"h.7.ln_1.bias": draw.normal(4)}
    names = ["h.1.ln_2.bias", "h.7.ln_1.bias", "wpe.weight"]
    yield made("the error's text", sizes, state | {"wpe.weight": draw.normal(9, 4)}, look_for=names)
    yield made("a .bin file with code in it", sizes, _drawn(draw, sizes), saved="hostile.bin")


def _file_reference(config, state, saved="model.safetensors", given="folder", look_for=(), before=0.0):
    sizes = {"n_layer", "n_head", "n_embd", "n_ctx", "vocab_size"}
    fields = {name: config[name] for name in sizes}
    fields |= {"layer_norm_eps": config["layer_norm_epsilon"], "tied": config["tie_word_embeddings"]}
    if saved == "hostile.bin":
        return None, None, "nothing was run"
    if look_for:
        return None, None, list(look_for)
    return fields, _load_reference(fields, state)[-1], None


case.exercise(
    "from_pretrained(config, state, saved='model.safetensors', given='folder', look_for=(), before=0.0)",
    contract="from_pretrained(name_or_path)",
    returns=("sizes_read", "weights_read", "said"),
    inputs=file_inputs,
    points=2,
    lesson="A file is a claim",
    hints=(
        "What do you have to know before the model can be built, and where does it stand?",
        "read_checkpoint gives the configuration and the tensors. Build, load, look at the report.",
        "n_layer, n_head, n_embd, n_ctx, vocab_size; layer_norm_eps = layer_norm_epsilon; tied = tie_word_embeddings;  "
        "refuse if missing or unexpected or wrong_size",
    ),
    probe="from_pretrained",
    reference=_file_reference,
)


def _reading(id, text, rule):
    case.fault(id, at="_bad", tensor="sizes_read" if "transposed" in id else "said", text=text)(lambda: rule)


_reading(
    "report-ignored",
    "load_state raises nothing: who looks at its report?",
    lambda missing, unexpected, wrong_size, transposed: [],
)
_reading(
    "missing-ignored",
    "a parameter that is not in the file: what would it hold?",
    lambda missing, unexpected, wrong_size, transposed: unexpected or wrong_size,
)
_reading(
    "unexpected-ignored",
    "a tied model and a head that is not wte: would the model compute what the file's author meant?",
    lambda missing, unexpected, wrong_size, transposed: missing or wrong_size,
)
_reading(
    "wrong-size-ignored",
    "an entry that does not fit is not loaded: which list of the report says so?",
    lambda missing, unexpected, wrong_size, transposed: missing or unexpected,
)
_reading(
    "transposed-refused",
    "weights that were turned and loaded: is anything wrong with them?",
    lambda missing, unexpected, wrong_size, transposed: missing or unexpected or wrong_size or transposed,
)


def _asking(id, text, **sizes):
    @case.fault(id, at="_asked", tensor="sizes_read", text=text)
    def _(right):
        return right | sizes


_asking("eps-not-read", "which eps does config.json give, and under which name?", layer_norm_eps=1e-5)
_asking(
    "head-count-not-read",
    "n_head stands in config.json alone, since no shape depends on it: where does yours come from?",
    n_head=12,
)


@case.fault("tie-not-read", at="_asked", tensor="sizes_read", text="does config.json say whether the model is tied?")
def _(right):
    return right if right["tied"] else None


@case.fault("untied-not-read", at="_asked", tensor="sizes_read", text="does config.json say whether the model is tied?")
def _(right):
    return None if right["tied"] else right


@case.fault(
    "sizes-not-read", at="_asked", tensor="sizes_read", text="which sizes stand in config.json, and which has your model?"
)
def _():
    return None  # such a model fits no file


@case.fault(
    "error-without-names", at="said", text="the error is all that the reader sees: does it say which parameters are wrong?"
)
def _(right, _verdict):
    return [] if _verdict == "refused" else right


@case.fault("code-in-file-run", at="said", text="a .bin file is a pickle: what can a pickle do when it is read?")
def _(right, saved):
    return "code in the file was run" if saved == "hostile.bin" else right


@case.fault("model-not-returned", at="_given_back", tensor="sizes_read", text="what does from_pretrained give back?")
def _():
    return "NoneType"


# ---------------------------------------------------------------- next_token_probs


def kept_by_rank(logits, k):
    """The k largest logits of each row; -inf elsewhere."""
    if k is None:
        return logits
    keep = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, logits.topk(k, dim=-1).indices, True)
    return logits.masked_fill(~keep, -torch.inf)


def nucleus(probs, p, ahead=lambda before, probs, p: before < p):
    """Which tokens stay, by a rule on what the more probable ones sum to."""
    ordered, order = probs.sort(dim=-1, descending=True)
    stays = ahead(ordered.cumsum(-1) - ordered, ordered, p)
    return torch.zeros_like(stays).scatter(-1, order, stays)


def kept_by_mass(logits, p, probs=None, **rule):
    """The logits of the smallest set of tokens that holds p, as `nucleus` finds it; -inf elsewhere."""
    if p is None:
        return logits
    return logits.masked_fill(~nucleus(F.softmax(logits, dim=-1) if probs is None else probs, p, **rule), -torch.inf)


@case.step
def _temper(temperature):
    return lambda logits: logits / temperature


@case.step
def _tempered(logits, temperature, _temper):
    return logits if temperature == 0 else _temper(logits)


@case.step
def _top(_tempered, temperature, top_k):
    return _tempered if temperature == 0 else kept_by_rank(_tempered, top_k)


@case.step
def _nucleus(_top, temperature, top_p):
    return _top if temperature == 0 else kept_by_mass(_top, top_p)


@case.step
def _greedy():
    return lambda logits: F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)


@case.step
def probs(_nucleus, logits, temperature, _greedy):
    return _greedy(logits) if temperature == 0 else F.softmax(_nucleus, dim=-1)


def _shuffled(draw, *shares):
    """The logits of a row with these probabilities, in random order."""
    shares = list(shares)
    draw.random.shuffle(shares)
    return [math.log(share) for share in shares]


def _clear(draw, shape, temperature=1.0, top_k=None, top_p=None):
    """Random logits whose cuts are no close calls."""
    while True:
        logits = 1.5 * draw.normal(*shape)
        ordered = (logits / temperature).sort(dim=-1, descending=True).values
        if (ordered[..., :-1] - ordered[..., 1:]).min() < 0.01:
            continue
        sums = F.softmax(ordered[..., :top_k], dim=-1).cumsum(-1)
        if top_p is None or (sums - top_p).abs().min() > 0.01:
            return logits


def probs_inputs(draw: Draw):
    def random(label, *shape, gradient=True, **options):
        return sample(label, gradient=gradient, logits=_clear(draw, shape, **options), **options)

    def rows(label, *shares, gradient=True, **options):
        return sample(label, gradient=gradient, logits=draw.tensor([_shuffled(draw, *row) for row in shares]) + 1, **options)

    yield random("two rows of seven logits", 2, 7)
    yield random("temperature 2", 3, 6, temperature=2.0)
    yield random("temperature 0.5, a single row", 5, temperature=0.5)
    yield random("two axes in front, temperature 1.5", 2, 3, 4, temperature=1.5)
    yield random("top_k = 3", 2, 8, top_k=3)
    yield random("top_k = 1", 3, 6, top_k=1, gradient=False)
    yield random("top_k = 2, as many rows as tokens", 5, 5, top_k=2)
    yield random("top_k = 4 of a single row, temperature 0.7", 9, top_k=4, temperature=0.7)
    yield rows("probabilities 0.5, 0.3, 0.15, 0.05 with top_p = 0.6", (0.5, 0.3, 0.15, 0.05), (0.5, 0.3, 0.15, 0.05), top_p=0.6)
    yield rows("top_p = 0.9", (0.4, 0.35, 0.17, 0.05, 0.03), (0.95, 0.02, 0.01, 0.01, 0.01), top_p=0.9)
    yield rows("top_p = 0.1, below the largest probability", (0.6, 0.3, 0.1), (0.45, 0.35, 0.2), top_p=0.1, gradient=False)
    yield random("top_p = 0.8, two axes in front", 2, 3, 9, top_p=0.8)
    cool = {"temperature": 0.5, "top_p": 0.7}
    yield rows("top_p = 0.7 at temperature 0.5", (0.4, 0.3, 0.2, 0.1), (0.5, 0.2, 0.2001, 0.0999), **cool)
    yield rows(
        "top_p = 0.55 behind top_k = 2", (0.4, 0.3, 0.2, 0.1), (0.34, 0.32, 0.24, 0.1), top_k=2, top_p=0.51, gradient=False
    )
    yield rows("top_p = 0.5 behind top_k = 3", (0.45, 0.25, 0.16, 0.14), (0.3, 0.29, 0.21, 0.2), top_k=3, top_p=0.5)
    yield random("temperature 1.7, top_k = 5, top_p = 0.75", 2, 10, temperature=1.7, top_k=5, top_p=0.75)
    yield sample("temperature 0", gradient=False, logits=_clear(draw, (2, 6)), temperature=0)
    yield sample(
        "temperature 0 with top_k = 3 and top_p = 0.5",
        gradient=False,
        logits=_clear(draw, (3, 7)),
        temperature=0.0,
        top_k=3,
        top_p=0.5,
    )
    close = torch.tensor([0.001, 0.0005, -0.002], device=draw.device)
    close[1] = torch.nextafter(close[0], torch.zeros_like(close[0]))
    yield sample("temperature 0 and two logits that nearly agree", gradient=False, logits=close.unsqueeze(0), temperature=0)
    low = draw.tensor([-110.0, -112.0, -111.0, -114.0, -113.0, -140.0])
    yield sample("logits around -110", gradient=False, logits=torch.stack([low, low.flip(0)]))
    yield sample("logits around 120", gradient=False, logits=torch.stack([low, low.roll(2)]) + 230)


def _probs_reference(logits, temperature=1.0, top_k=None, top_p=None):
    """Row by row, token by token."""
    if temperature == 0:
        return (logits == logits.amax(-1, keepdim=True)).to(logits.dtype)
    out = torch.zeros_like(logits)
    for index in [tuple(each) for each in torch.ones(logits.shape[:-1]).nonzero().tolist()]:
        row = torch.softmax(logits[index] / temperature, dim=-1)
        order, total = row.argsort(descending=True).tolist()[:top_k], 0.0
        held, kept = sum(float(row[token]) for token in order), []
        for token in order:
            if top_p is None or total < top_p * held:
                kept.append(token)
            total += float(row[token])
        out[index][kept] = row[kept] / row[kept].sum()
    return out


case.exercise(
    "next_token_probs(logits, temperature=1.0, top_k=None, top_p=None)",
    returns="probs",
    inputs=probs_inputs,
    points=4,
    lesson="From logits to a draw",
    hints=(
        "Three cuts and one question each: how sure, how many, how much? What does each of them see of the ones before?",
        "Work on sorted rows, and bring the result back to the tokens' own order at the end. A token stays while those "
        "ahead of it have not reached p.",
        "x = softmax(logits / temperature), sorted;  keep i < k, divide by the sum;  "
        "keep i if x[0] + .. + x[i-1] < p, divide by the sum",
    ),
    reference=_probs_reference,
    golden=lambda real: {"logits": real["logits"], "temperature": 0.8, "top_k": 40, "top_p": 0.9},
)


def _prob_fault(id, at, text):
    return case.fault(id, at=at, tensor="probs", text=text, only=("next_token_probs",))


def _tempering(id, text):
    return _prob_fault(id, "_temper", text)


@_tempering("temperature-multiplies", "a low temperature: must the logits come closer together, or move apart?")
def _(temperature):
    return lambda logits: logits * temperature


@_tempering("temperature-twice", "how often are the logits divided?")
def _(temperature):
    return lambda logits: logits / temperature / temperature


@_tempering("temperature-ignored", "what does the temperature change in your result?")
def _():
    return lambda logits: logits


@_tempering("temperature-under-a-root", "does the temperature divide the logits, or its root?")
def _(temperature):
    return lambda logits: logits / temperature**0.5


@_prob_fault("temperature-zero-divides", "_greedy", "what is a logit divided by 0?")
def _():
    return lambda logits: F.softmax(logits / 0.0, dim=-1)


@_prob_fault(
    "temperature-zero-is-tiny", "_greedy", "two logits that nearly agree, divided by a tiny number: is the larger one certain?"
)
def _():
    return lambda logits: F.softmax(logits / 1e-8, dim=-1)


@_prob_fault(
    "temperature-zero-is-small", "_greedy", "two logits that nearly agree, divided by a small number: is the larger one certain?"
)
def _():
    return lambda logits: F.softmax(logits / 1e-6, dim=-1)


@_prob_fault("temperature-zero-taken-for-one", "_greedy", "temperature 0: is that the same as none?")
def _(top_k, top_p):
    return lambda logits: F.softmax(kept_by_mass(kept_by_rank(logits, top_k), top_p), dim=-1)


@_prob_fault("greedy-gives-the-token", "_greedy", "does the result hold a probability for each token, or a token?")
def _():
    return lambda logits: logits.argmax(-1)


@_prob_fault("greedy-takes-the-smallest", "_greedy", "which token is greedy: the one with the largest logit?")
def _():
    return lambda logits: F.one_hot(logits.argmin(-1), logits.shape[-1]).to(logits.dtype)


@_prob_fault("greedy-in-whole-numbers", "_greedy", "which dtype has the result at temperature 0?")
def _():
    return lambda logits: F.one_hot(logits.argmax(-1), logits.shape[-1])


def _ranking(id, text):
    return _prob_fault(id, "_top", text)


@_ranking("top-k-ignored", "how many tokens keep a probability above 0?")
def _(_tempered):
    return _tempered


@_ranking("top-k-one-too-many", "top_k = 1: how many tokens are left?")
def _(_tempered, top_k):
    return _tempered if top_k is None else kept_by_rank(_tempered, min(top_k + 1, _tempered.shape[-1]))


@_ranking("top-k-one-too-few", "top_k = 1: how many tokens are left?")
def _(_tempered, top_k):
    return _tempered if top_k is None else kept_by_rank(_tempered, top_k - 1)


@_ranking("top-k-keeps-the-smallest", "which k tokens stay: those with the largest logits?")
def _(_tempered, top_k):
    return _tempered if top_k is None else _tempered.masked_fill(kept_by_rank(-_tempered, top_k).isinf(), -torch.inf)


@_ranking("top-k-keeps-the-first-ids", "which k tokens stay: those with the smallest ids, or the most probable?")
def _(_tempered, top_k):
    if top_k is None:
        return _tempered
    return _tempered.masked_fill(torch.arange(_tempered.shape[-1], device=_tempered.device) >= top_k, -torch.inf)


@_ranking("top-k-drops-the-largest", "which tokens stay, and which are dropped?")
def _(_tempered, top_k):
    return _tempered if top_k is None else _tempered.masked_fill(~kept_by_rank(_tempered, top_k).isinf(), -torch.inf)


@_ranking("top-k-threshold-without-axis", "the k-th largest logit of each row: with which row is it compared?")
def _(_tempered, temperature, top_k):
    if top_k is None or temperature == 0:
        return _tempered
    return _tempered.masked_fill(_tempered < _tempered.topk(top_k, dim=-1).values[..., -1], -torch.inf)


@_ranking("top-k-threshold-of-first-row", "is the k-th largest logit the same in each row?")
def _(_tempered, top_k):
    if top_k is None:
        return _tempered
    return _tempered.masked_fill(
        _tempered < _tempered.flatten(0, -2)[0].topk(top_k).values[-1]
        if _tempered.dim() > 1
        else _tempered < _tempered.topk(top_k).values[-1],
        -torch.inf,
    )


@_ranking("top-k-over-all-rows", "k tokens of each row, or k of all rows together?")
def _(_tempered, top_k):
    return (
        _tempered if top_k is None else _tempered.masked_fill(_tempered < _tempered.flatten().topk(top_k).values[-1], -torch.inf)
    )


@_ranking("top-k-fills-with-zero", "a token that is cut: is 0 a low logit?")
def _(_tempered, top_k):
    return _tempered if top_k is None else kept_by_rank(_tempered, top_k).nan_to_num(neginf=0.0)


@_ranking("top-k-along-first-axis", "along which axis are the k largest looked for?")
def _(_tempered, top_k):
    if top_k is None:
        return _tempered
    kept = _tempered.topk(min(top_k, _tempered.shape[0]), dim=0).indices
    keep = torch.zeros_like(_tempered, dtype=torch.bool).scatter(0, kept, True)
    return _tempered.masked_fill(~keep, -torch.inf)


def _cutting_mass(id, text):
    return _prob_fault(id, "_nucleus", text)


def _mass_rule(id, text, ahead):
    @_cutting_mass(id, text)
    def _(_top, top_p, temperature):
        return _top if temperature == 0 else kept_by_mass(_top, top_p, ahead=ahead)


@_cutting_mass("top-p-ignored", "which tokens does top_p take away?")
def _(_top):
    return _top


_mass_rule(
    "crossing-token-dropped",
    "0.5 and 0.3 with p = 0.6: does the token with which the sum reaches p stay?",
    lambda before, probs, p: before + probs <= p,
)
_mass_rule(
    "crossing-token-dropped-but-first",
    "0.5 and 0.3 with p = 0.6: does the token with which the sum reaches p stay?",
    lambda before, probs, p: (before + probs <= p) | (before < 1e-12),
)
_mass_rule("top-p-complement", "p = 0.9: do the tokens that stay sum to 0.9, or to 0.1?", lambda before, probs, p: before < 1 - p)
_mass_rule(
    "top-p-one-too-many",
    "0.5 and 0.3 with p = 0.6: does another token follow the one with which the sum reaches p?",
    lambda before, probs, p: torch.cat([before[..., :1] < p, before[..., :-1] < p], dim=-1),
)
_mass_rule(
    "top-p-as-threshold",
    "is each probability compared with p, or their sum?",
    lambda before, probs, p: (probs >= p) | (before < 1e-12),
)
_mass_rule(
    "top-p-of-the-largest",
    "is each probability compared with the largest, or is their sum compared with p?",
    lambda before, probs, p: probs >= p * probs[..., :1],
)
_mass_rule(
    "top-p-drops-the-head", "which tokens stay: those ahead of p, or those behind it?", lambda before, probs, p: before >= p
)


@_cutting_mass("top-p-in-sorted-order", "the sums are taken in sorted order: to which tokens do they belong?")
def _(_top, top_p, temperature):
    if top_p is None or temperature == 0:
        return _top
    ordered = F.softmax(_top, dim=-1).sort(dim=-1, descending=True).values
    return _top.masked_fill(ordered.cumsum(-1) - ordered >= top_p, -torch.inf)


@_cutting_mass("top-p-not-sorted", "the most probable tokens up to p: in which order are they added up?")
def _(_top, top_p, temperature):
    if top_p is None or temperature == 0:
        return _top
    probs = F.softmax(_top, dim=-1)
    return _top.masked_fill(probs.cumsum(-1) - probs >= top_p, -torch.inf)


@_cutting_mass("top-p-from-the-smallest", "from which end are the probabilities added up?")
def _(_top, top_p, temperature):
    if top_p is None or temperature == 0:
        return _top
    ordered, order = F.softmax(_top, dim=-1).sort(dim=-1)
    stays = ordered.cumsum(-1) - ordered < top_p
    return _top.masked_fill(~torch.zeros_like(stays).scatter(-1, order, stays), -torch.inf)


@_cutting_mass("top-p-before-temperature", "from which probabilities is the set for top_p chosen: those at temperature 1?")
def _(_top, logits, temperature, top_k, top_p):
    return _top if temperature == 0 else kept_by_mass(_top, top_p, F.softmax(kept_by_rank(logits, top_k), dim=-1))


@_cutting_mass("top-p-not-renormalised-after-top-k", "behind top_k, do the probabilities that top_p adds up sum to 1?")
def _(_top, _tempered, temperature, top_p):
    return _top if temperature == 0 else kept_by_mass(_top, top_p, F.softmax(_tempered, dim=-1))


@_cutting_mass("top-p-only-without-top-k", "top_k and top_p are both given: which of them counts?")
def _(_top, temperature, top_k, top_p):
    return _top if temperature == 0 or top_k is not None else kept_by_mass(_top, top_p)


@_cutting_mass("top-p-of-logits", "what is added up until it reaches p: logits, or probabilities?")
def _(_top, top_p, temperature):
    return _top if temperature == 0 else kept_by_mass(_top, top_p, _top)


@_cutting_mass("mask-shifted-onto-itself", "a slice is copied one place to the right within one tensor: what does it read?")
def _(_top, top_p, temperature):
    if top_p is None or temperature == 0:
        return _top
    ordered, order = F.softmax(_top, dim=-1).sort(dim=-1, descending=True)
    drop = ordered.cumsum(-1) > top_p
    drop[..., 1:] = drop[..., :-1]
    drop[..., 0] = False
    return _top.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), -torch.inf)


def _finishing(id, text):
    return _prob_fault(id, "probs", text)


@_finishing("probs-not-renormalised", "after the cuts, what do the probabilities that are left sum to?")
def _(right, _tempered, _nucleus, temperature):
    return right if temperature == 0 else F.softmax(_tempered, dim=-1) * ~_nucleus.isinf()


@_finishing("nucleus-not-renormalised", "after top_p, what do the probabilities that are left sum to?")
def _(right, _top, _nucleus, temperature):
    return right if temperature == 0 else F.softmax(_top, dim=-1) * ~_nucleus.isinf()


@_finishing("softmax-twice", "how often do logits go through a softmax on their way to probabilities?")
def _(right, temperature):
    return right if temperature == 0 else F.softmax(right, dim=-1)


@_finishing("logits-returned", "is each number of the result between 0 and 1, and do they sum to 1?")
def _(right, _nucleus, temperature):
    return right if temperature == 0 else _nucleus


@_finishing("log-probs-returned", "are these probabilities, or their logarithms?")
def _(right, _nucleus, temperature):
    return right if temperature == 0 else F.log_softmax(_nucleus, dim=-1)


@_finishing("probs-over-first-axis", "along which axis do the probabilities sum to 1?")
def _(right, _nucleus, temperature):
    return right if temperature == 0 else F.softmax(_nucleus, dim=0)


@_finishing("probs-overflow", "what is exp(-110) in float32, and what is 0 / 0?")
def _(right, _nucleus, temperature):
    raised = _nucleus.exp()
    return right if temperature == 0 else raised / raised.sum(-1, keepdim=True)


@_finishing("probs-in-sorted-order", "which entry of the result belongs to token 0?")
def _(right, top_k, top_p, temperature):
    return right if temperature == 0 or (top_k is None and top_p is None) else right.sort(dim=-1, descending=True).values


@_finishing("only-k-probabilities", "how many entries has a row of the result: V, or k?")
def _(right, top_k, temperature):
    return right if temperature == 0 or top_k is None else right.sort(dim=-1, descending=True).values[..., :top_k]


# ---------------------------------------------------------------- generate
# The model is a small stand-in that the probe makes (Stub): its logits are a sum of table rows, scaled so that a greedy
# choice is never close. Where tokens are drawn, all rows are the same, and their shares are compared in tenths.

ROWS = 4000
GRID = 10


@case.step
def _feed(ids):
    """What the model reads at a step: the window, the position of its first id, and how many ids go through the model."""

    def feed(rows, n_ctx, cached):
        window = rows[:, -n_ctx:]
        return window, 0, 1 if cached and ids.shape[1] < rows.shape[1] <= n_ctx else window.shape[1]

    return feed


@case.step
def _caching(use_cache):
    return use_cache


@case.step
def _mode():
    """Whether the model runs in training mode, given the mode that it is in."""
    return lambda training: False


@case.step
def _position():
    """The logits that count, of those that the model gives for the ids that it was fed."""
    return lambda logits, fed: logits[:, -1]


@case.step
def _distribution(temperature, top_k, top_p):
    def distribution(logits):
        if temperature == 0:
            return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
        return F.softmax(kept_by_mass(kept_by_rank(logits / temperature, top_k), top_p), dim=-1)

    return distribution


@case.step
def _token():
    """The token that a choice stands for."""
    return lambda token, logits: token


@case.step
def _stopping(stop_id):
    """The tokens to add, who is finished, and whether it ends (with these tokens; "drop": without them)."""

    def stopping(token, finished, rows):
        if stop_id is None:
            return token, finished, False
        token = torch.where(finished, stop_id, token)
        finished = finished | (token == stop_id)
        return token, finished, bool(finished.all())

    return stopping


@case.step
def _ended():
    """Whether there is nothing to do at all."""
    return lambda rows: False


@case.step
def _steps(max_new_tokens):
    return max_new_tokens


@case.step
def _each():
    """A token for each row."""
    return lambda token: token


@case.step
def _kept():
    return lambda rows, window, token: torch.cat([rows, token.unsqueeze(1)], dim=1)


@case.step
def _returned():
    return lambda rows, T: rows


def _answers(model, window, offset, training):
    """The logits of the stand-in at every position of a window whose first id stands at `offset`."""
    rows = model.wte[window]
    before = torch.cat([rows[:, :1], rows[:, :-1]], dim=1)
    places = model.wpe[offset : offset + window.shape[1]]
    logits = (rows + places + before + rows[:, :1]) @ model.head + model.bias
    return logits.roll(1, -1) if training else logits


@case.step
def _model(model):
    """The stand-in's tables, as no dictionary: the steps read it often, and dictionaries are copied each time."""
    return SimpleNamespace(**model)


@case.step
def _run(_model, ids, _feed, _caching, _mode, _position, _distribution, _token, _each, _stopping, _ended, _steps, _kept):
    """The tokens, and the positions run through the model; for a model whose tokens are drawn, nothing."""
    if _model.sampled:
        return None, 0
    rows, finished, total, sure = ids, torch.zeros(len(ids), dtype=torch.bool, device=ids.device), 0, True
    for _ in range(0 if _ended(rows) else _steps):
        window, offset, fed = _feed(rows, _model.n_ctx, _caching)
        total += fed
        last = _position(_answers(_model, window, offset, _mode(_model.training))[:, -fed:], fed)
        shares = _distribution(last)
        sure = sure and bool(shares.amax(-1).min() > 0.999)
        token, finished, end = _stopping(_each(_token(shares.argmax(-1), last)), finished, rows)
        if end == "drop":
            break
        rows = _kept(rows, window, token)
        if end:
            break
    return rows if sure else "differs from draw to draw", total


@case.step
def continued(_run, _returned, ids):
    return _returned(_run[0], ids.shape[1]) if torch.is_tensor(_run[0]) else _run[0]


@case.step
def _independent():
    """Whether the draws of a row are independent."""
    return True


@case.step
def shares(_model, ids, _mode, _distribution, _token, _each, _independent, _steps, _kept, _returned):
    """For a model whose tokens are drawn: the columns of the result, and the shares of the first token drawn, in tenths."""
    if not _model.sampled:
        return None
    T = ids.shape[1]
    prompt = torch.arange(T).unsqueeze(0)  # columns by number: 0 .. T-1 the prompt, T, T+1, .. what is drawn
    columns = prompt
    for step in range(_steps):
        columns = _kept(columns, columns[:, -_model.n_ctx :], torch.tensor([T + step]))
    columns = _returned(columns, T)[0].tolist()
    where = "first" if columns[:T] == prompt[0].tolist() else "last" if columns[-T:] == prompt[0].tolist() else "nowhere"
    found, rest = {"prompt": where, "columns": len(columns)}, columns[T if where == "first" else 0 :]
    if not rest:
        return found
    logits = _model.bias.roll(1) if _mode(_model.training) else _model.bias
    probs = _distribution(logits.unsqueeze(0))[0]
    alike = len(set(_each(torch.arange(2)).tolist())) == 1
    if rest[0] < T or alike or probs.max() > 0.999:
        return found | {"tokens": "the same in every row"}
    drawn = {int(_token(torch.tensor([token]), logits.unsqueeze(0))): float(share) for token, share in enumerate(probs)}
    tenths = {str(token): round(GRID * share) for token, share in sorted(drawn.items()) if share > 1e-6}
    return found | tenths | {"drawn twice alike": not _independent or len(rest) == 1}


@case.step
def work(_model, ids, max_new_tokens, stop_id, _caching, _run):
    """How often a position went through the model, where the context lasts."""
    enough = ids.shape[1] + max_new_tokens
    if _model.sampled or not max_new_tokens or enough > _model.n_ctx or stop_id is not None:
        return None
    return f"{'a' if _caching else 'no'} cache, each position {'once' if _run[1] <= enough else 'again and again'}"


@case.step
def mode_after(_model):
    return _model.training


@case.step
def follows_generator(_model, generator):
    return True if _model.sampled and generator is not None else None


def _stand_in(draw, V, n_ctx, n_layer=2, training=False, C=4):
    """Tables of whole numbers: exact in any order of summation, and a greedy choice is never close."""
    tables = {
        name: draw.integers(-9, 10, *shape).float() for name, shape in (("wte", (V, C)), ("wpe", (n_ctx, C)), ("head", (C, V)))
    }
    tables["head"] *= 4096.0
    bias = 64.0 * draw.tensor(draw.random.sample(range(V), V))
    return {**tables, "bias": bias, "n_ctx": n_ctx, "n_layer": n_layer, "training": training, "sampled": False}


def _dice(draw, *shares, lift, temperature=1.0):
    """A stand-in that gives the same logits whatever it reads: at this temperature, these shares, in random order.

    The two best are not tokens 0 and 1. `lift` makes all logits positive. Shares, and what the usual mistakes make of
    them, keep away from the bounds of a tenth: four standard deviations at least for ROWS draws, six for the right ones.
    """
    V, C = len(shares), 2
    while True:
        logits = _shuffled(draw, *shares)
        if V == 2 or {*sorted(range(V), key=logits.__getitem__)[-2:]} != {0, 1}:
            break
    zero = torch.zeros(1, device=draw.device)
    tables = {"wte": zero.expand(V, C), "wpe": zero.expand(6, C), "head": zero.expand(C, V)}
    tables = {name: table.contiguous() for name, table in tables.items()}
    return {
        **tables,
        "bias": draw.tensor(logits) * temperature + lift,
        "n_ctx": 6,
        "n_layer": 2,
        "training": False,
        "sampled": True,
    }


def _greedy_run(model, ids, n):
    """The tokens of n greedy steps, without a stop."""
    model = SimpleNamespace(**model)
    for _ in range(n):
        ids = torch.cat([ids, _answers(model, ids[:, -model.n_ctx :], 0, False)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return ids


def _stops(draw, *finish, again=False, n=6):
    """A stand-in, prompts and a stop id: row i brings the stop id first at step finish[i] (None: not in n steps).

    The first prompt holds the stop id. again: the first row would bring it once more before all are finished; else no
    row would.
    """
    while True:
        model = _stand_in(draw, 6, 12)
        ids = draw.integers(0, 6, 60, 3)
        new = _greedy_run(model, ids, n)[:, 3:].tolist()
        for stop in range(6):

            def fits(i, number, stop=stop):
                step, count = finish[number], new[i].count(stop)
                first = stop not in new[i] if step is None else stop in new[i] and new[i].index(stop) == step
                repeated = new[i][: max(finish) + 1].count(stop) == 2 if again and not number else count < 2
                return first and repeated and (number or stop in ids[i, :2])

            picked = []
            for number in range(len(finish)):
                picked += [i for i in range(60) if i not in picked and fits(i, number)][:1]
            if len(picked) == len(finish):
                return {"model": model, "ids": ids[picked], "max_new_tokens": n, "temperature": 0, "stop_id": stop}


def generate_inputs(draw: Draw):
    def greedy(label, B, T, n, n_ctx, training=False, n_layer=2, **options):
        model = _stand_in(draw, 7, n_ctx, n_layer, training)
        while True:  # the greedy text must not stand still, or half of all mistakes would not show
            ids = draw.integers(0, 7, B, T)
            made = _greedy_run(model, ids, n)
            if n < 3 or all(len(set(row[T:])) > 2 for row in made.tolist()):
                return sample(label, gradient=False, model=model, ids=ids, max_new_tokens=n, temperature=0, **options)
            model = _stand_in(draw, 7, n_ctx, n_layer, training)

    def drawn(label, model, T=2, **options):
        ids = draw.integers(0, len(model["bias"]), 1, T).repeat(ROWS, 1)
        return sample(label, gradient=False, model=model, ids=ids, max_new_tokens=2, **options)

    yield greedy("greedy, 3 tokens and 4 more", 2, 3, 4, 9)
    yield greedy("greedy without a cache", 2, 3, 4, 9, n_layer=3, use_cache=False)
    yield greedy("a model in training mode", 3, 2, 4, 8, training=True)
    yield greedy("past n_ctx = 6, with a cache", 2, 4, 7, 6)
    yield greedy("past n_ctx = 6, without a cache", 3, 4, 7, 6, use_cache=False)
    yield greedy("a prompt longer than n_ctx = 5", 2, 8, 4, 5)
    yield greedy("a prompt of one token, one row", 1, 1, 5, 9, n_layer=1)
    yield greedy("no new tokens", 2, 3, 0, 9)
    yield sample("rows that stop at different steps", gradient=False, **_stops(draw, 0, 2, 4, again=True))
    yield sample("one row stops, one does not", gradient=False, **_stops(draw, 1, None))
    yield sample("rows that stop, without a cache", gradient=False, **_stops(draw, 1, 3, 0), use_cache=False)
    yield sample("two rows that stop together", gradient=False, **_stops(draw, 2, 2))
    yield drawn("9 to 1", _dice(draw, 0.9, 0.1, lift=3.0), generator=11)
    yield drawn("9 to 1 at temperature 2.5", _dice(draw, 0.9, 0.1, lift=7.5, temperature=2.5), temperature=2.5)
    six_to_four = _dice(draw, 0.308058, 0.205372, 0.113418, 0.107199, 0.101626, 0.08275, 0.081577, lift=2.538)
    yield drawn("top_k = 2 of seven", six_to_four, top_k=2, generator=5)
    six_to_four = _dice(draw, 0.303119, 0.202079, 0.106777, 0.100674, 0.100001, 0.094226, 0.093124, lift=3.818)
    yield drawn("top_p = 0.424 of seven", six_to_four, top_p=0.424)
    yield drawn("nearly even shares", _dice(draw, 0.21, 0.205, 0.2, 0.195, 0.19, lift=40.0), use_cache=False)


case.exercise(
    "generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None)",
    returns=("continued", "shares", "work", "mode_after", "follows_generator"),
    inputs=generate_inputs,
    points=6,
    lesson="The loop that writes",
    hints=(
        "The model has read the prompt. At which position of its logits does the next token stand, and what has it read already?",
        "Give the model what its cache does not hold yet, or the last n_ctx tokens where there is no cache; draw; append; "
        "remember which rows are finished.",
        "logits = model(ids[:, cache.length:], cache)[:, -1];  token ~ next_token_probs(logits, ..);  "
        "finished rows get stop_id;  ids = [ids | token];  past n_ctx: model(ids[:, -n_ctx:])",
    ),
    probe="generate",
)


def _writing(id, at, tensor, text):
    return case.fault(id, at=at, tensor=tensor, text=text)


def _write_rule(id, at, tensor, text, setting):
    _writing(id, at, tensor, text)(lambda: setting)


@_writing(
    "context-not-cropped", "_feed", "continued", "the text is longer than n_ctx: how many of its tokens can the model read?"
)
def _(right, ids):
    def feed(rows, n_ctx, cached):
        over = rows.shape[1] > n_ctx
        if over and cached and rows.shape[1] > ids.shape[1]:
            raise ValueError(f"{rows.shape[1] - 1} + 1 positions are more than n_ctx = {n_ctx}")
        if over:
            raise ValueError(f"0 + {rows.shape[1]} positions are more than n_ctx = {n_ctx}")
        return right(rows, n_ctx, cached)

    return feed


def _windowed(id, text, window):
    @_writing(id, "_feed", "continued", text)
    def _(right):
        def feed(rows, n_ctx, cached):
            return (window(rows, n_ctx), 0, min(n_ctx, rows.shape[1])) if rows.shape[1] > n_ctx else right(rows, n_ctx, cached)

        return feed


_windowed(
    "first-tokens-kept",
    "the text is longer than n_ctx: which of its tokens leave the window?",
    lambda rows, n_ctx: rows[:, :n_ctx],
)
_windowed("window-one-short", "how many tokens does the window hold at most?", lambda rows, n_ctx: rows[:, -(n_ctx - 1) :])
_windowed(
    "window-of-one-token", "past the context, how much of the text does the model still read?", lambda rows, n_ctx: rows[:, -1:]
)
_windowed(
    "window-halved", "past the context, how many tokens leave the window at a step?", lambda rows, n_ctx: rows[:, -(n_ctx // 2) :]
)


@_writing("only-last-token-read", "_feed", "continued", "without a cache, what has the model read of the text?")
def _(right):
    return lambda rows, n_ctx, cached: right(rows, n_ctx, cached) if cached else (rows[:, -1:], 0, 1)


@_writing(
    "only-last-token-after-first-step",
    "_feed",
    "continued",
    "without a cache, what has the model read of the text at the second step?",
)
def _(right, ids):
    return lambda rows, n_ctx, cached: (
        (rows[:, -1:], 0, 1) if not cached and rows.shape[1] > ids.shape[1] else right(rows, n_ctx, cached)
    )


@_writing("prompt-read-again-and-again", "_feed", "continued", "what does the model read at the second step: the new token too?")
def _(right, ids):
    return lambda rows, n_ctx, cached: (right(ids, n_ctx, False)[0], 0, min(ids.shape[1], n_ctx))


@_writing("whole-text-fed-to-cache", "_feed", "continued", "the cache holds the text already: which ids are new to it?")
def _(right, ids):
    P = ids.shape[1]

    def feed(rows, n_ctx, cached):
        T = rows.shape[1]
        offset = sum(range(P, T))
        if not cached or T > n_ctx:
            return right(rows, n_ctx, cached)
        if offset + T > n_ctx:
            raise ValueError(f"{offset} + {T} positions are more than n_ctx = {n_ctx}")
        return rows, offset, T

    return feed


_write_rule("cache-not-used", "_caching", "work", "use_cache is true: how often does each position go through the model?", False)
_write_rule("cache-always-used", "_caching", "work", "use_cache is false: what may the model not be given?", True)

_write_rule(
    "evaluation-mode-missing",
    "_mode",
    "continued",
    "in which mode does the model run, and what does that change?",
    lambda training: training,
)
_write_rule("runs-in-training-mode", "_mode", "continued", "in which mode does the model run?", lambda training: True)
_write_rule(
    "left-in-evaluation-mode", "mode_after", "mode_after", "in which mode was the model before, and in which is it after?", False
)
_write_rule(
    "left-in-training-mode", "mode_after", "mode_after", "in which mode was the model before, and in which is it after?", True
)

_write_rule(
    "first-position-read",
    "_position",
    "continued",
    "at which position do the logits of the next token stand: the first, or the last?",
    lambda logits, fed: logits[:, 0],
)
_write_rule(
    "positions-averaged",
    "_position",
    "continued",
    "how many positions have a say in the next token?",
    lambda logits, fed: logits.mean(1),
)
_write_rule(
    "position-before-last-read",
    "_position",
    "continued",
    "at which position do the logits of the next token stand?",
    lambda logits, fed: logits[:, max(fed - 2, 0)],
)
_write_rule(
    "position-largest-of-all",
    "_position",
    "continued",
    "how many positions have a say in the next token?",
    lambda logits, fed: logits.amax(1),
)


def _drawing(id, text, tensor="shares"):
    return _writing(id, "_distribution", tensor, text)


@_drawing("greedy-always", "at temperature 1, is the most probable token the only one?")
def _():
    return lambda logits: F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)


@_drawing("temperature-not-passed", "does your call of next_token_probs know of the temperature?")
def _(top_k, top_p):
    return lambda logits: F.softmax(kept_by_mass(kept_by_rank(logits, top_k), top_p), dim=-1)


@_drawing("temperature-passed-twice", "who divides by the temperature: your loop, or next_token_probs?")
def _(right, temperature):
    return lambda logits: right(logits / temperature if temperature else logits)


@_drawing("top-k-not-passed", "does your call of next_token_probs know of top_k?")
def _(temperature, top_p):
    return lambda logits: _plain(logits, temperature, None, top_p)


@_drawing("top-p-not-passed", "does your call of next_token_probs know of top_p?")
def _(temperature, top_k):
    return lambda logits: _plain(logits, temperature, top_k, None)


@_drawing("cuts-not-passed", "does your call of next_token_probs know of top_k and top_p?")
def _(temperature):
    return lambda logits: _plain(logits, temperature, None, None)


@_drawing("nothing-passed", "what does your call of next_token_probs know of temperature, top_k and top_p?")
def _():
    return lambda logits: F.softmax(logits, dim=-1)


def _plain(logits, temperature, top_k, top_p):
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    return F.softmax(kept_by_mass(kept_by_rank(logits / temperature, top_k), top_p), dim=-1)


@_drawing("softmax-over-probs", "next_token_probs gives probabilities: what does another softmax make of them?")
def _(right, temperature):
    return lambda logits: right(logits) if temperature == 0 else F.softmax(right(logits), dim=-1)


@_drawing(
    "softmax-over-probs-even-when-greedy",
    "next_token_probs gives probabilities: what does another softmax make of them?",
    "continued",
)
def _(right):
    return lambda logits: F.softmax(right(logits), dim=-1)


@_drawing("logits-drawn-from", "from what does multinomial draw: from probabilities, or from logits?")
def _(temperature):
    return lambda logits: _plain(logits, 0, None, None) if temperature == 0 else logits / logits.sum(-1, keepdim=True)


@_drawing("smallest-taken", "greedy: which logit is taken, the largest?", "continued")
def _(right, temperature):
    return lambda logits: F.one_hot(logits.argmin(-1), logits.shape[-1]).to(logits.dtype) if temperature == 0 else right(logits)


@_writing("rank-taken-for-token", "_token", "shares", "a place among the k best: which token stands there?")
def _(top_k):
    def token(token, logits):
        return (logits > logits.gather(-1, token.to(logits.device).unsqueeze(-1))).sum(-1)

    return token if top_k is not None else lambda token, logits: token


_write_rule(
    "seeded-at-every-step", "_independent", "shares", "the same seed before each draw: what does the second draw give?", False
)


@_writing("generator-not-used", "follows_generator", "follows_generator", "the same generator twice: does the same text come?")
def _(right):
    return False if right else None


def _ending(id, text, tensor="continued"):
    return _writing(id, "_stopping", tensor, text)


@_ending("stop-ignored", "what happens once a row has brought stop_id?")
def _():
    return lambda token, finished, rows: (token, finished, False)


@_ending("never-ends-early", "all rows have brought stop_id: what is left to do?")
def _(right):
    return lambda token, finished, rows: (*right(token, finished, rows)[:2], False)


@_ending("ends-only-together", "rows stop at different steps: when does the loop see that all have?")
def _(stop_id):
    return lambda token, finished, rows: (token, finished, stop_id is not None and bool((token == stop_id).all()))


@_ending("ends-with-the-first-row", "one row has brought stop_id: what of the others?")
def _(right):
    def stopping(token, finished, rows):
        token, finished, _ = right(token, finished, rows)
        return token, finished, bool(finished.any())

    return stopping


@_ending("finished-rows-go-on", "what stands behind stop_id in a row that is finished?")
def _(stop_id):
    def stopping(token, finished, rows):
        finished = finished | (token == stop_id) if stop_id is not None else finished
        return token, finished, bool(finished.all())

    return stopping


@_ending("finished-toggles", "a finished row gets stop_id again: is it finished still?")
def _(stop_id):
    def stopping(token, finished, rows):
        if stop_id is None:
            return token, finished, False
        token = torch.where(finished, stop_id, token)
        finished = finished ^ (token == stop_id)
        return token, finished, bool(finished.all())

    return stopping


@_ending("finished-toggles-unfilled", "a finished row brings stop_id again: is it finished still?")
def _(stop_id):
    def stopping(token, finished, rows):
        if stop_id is None:
            return token, finished, False
        finished = finished ^ (token == stop_id)
        return token, finished, bool(finished.all())

    return stopping


@_ending("filled-with-zero", "which token fills a row that is finished?")
def _(stop_id):
    def stopping(token, finished, rows):
        if stop_id is None:
            return token, finished, False
        ended = finished | (token == stop_id)
        return torch.where(finished, 0, token), ended, bool(ended.all())

    return stopping


@_ending("stop-token-left-out", "is stop_id itself part of the result?")
def _(right):
    def stopping(token, finished, rows):
        token, finished, end = right(token, finished, rows)
        return token, finished, "drop" if end else False

    return stopping


@_ending("stop-token-replaced-by-zero", "is stop_id itself part of the result?")
def _(stop_id):
    def stopping(token, finished, rows):
        if stop_id is None:
            return token, finished, False
        finished = finished | (token == stop_id)
        return torch.where(finished, 0, token), finished, bool(finished.all())

    return stopping


@_ending("stop-looked-for-in-prompt", "a prompt that holds stop_id: is its row finished before it begins?")
def _(stop_id):
    def stopping(token, finished, rows):
        if stop_id is None:
            return token, finished, False
        finished = finished | (rows == stop_id).any(1)
        token = torch.where(finished, stop_id, token)
        finished = finished | (token == stop_id)
        return token, finished, bool(finished.all())

    return stopping


@_writing("stop-in-prompt-ends-all", "_ended", "continued", "a prompt that holds stop_id: is there nothing to write?")
def _(stop_id):
    return lambda rows: stop_id is not None and bool((rows == stop_id).any())


@_writing("one-token-too-many", "_steps", "continued", "how many tokens are new in your result?")
def _(max_new_tokens):
    return max_new_tokens + 1


@_writing("one-token-too-few", "_steps", "continued", "how many tokens are new in your result?")
def _(max_new_tokens):
    return max_new_tokens - 1


@_writing("only-one-token", "_steps", "continued", "how many tokens are new in your result?")
def _(max_new_tokens):
    return min(max_new_tokens, 1)


@_writing("prompt-counts-as-new", "_steps", "continued", "how many tokens are new: does max_new_tokens count the prompt?")
def _(max_new_tokens, ids):
    return max(max_new_tokens - ids.shape[1], 0)


_write_rule(
    "text-cropped-to-context",
    "_kept",
    "continued",
    "what leaves the window: does it leave the text as well?",
    lambda rows, window, token: torch.cat([window, token.unsqueeze(1)], dim=1),
)
_write_rule(
    "first-row-for-all",
    "_each",
    "continued",
    "does each row get a token of its own?",
    lambda token: token[:1].expand_as(token),
)
_write_rule(
    "new-token-in-front",
    "_kept",
    "continued",
    "at which end does the text grow?",
    lambda rows, window, token: torch.cat([token.unsqueeze(1), rows], dim=1),
)
_write_rule(
    "last-token-replaced",
    "_kept",
    "continued",
    "does the new token come behind the last one, or in its place?",
    lambda rows, window, token: torch.cat([rows[:, :-1], token.unsqueeze(1)], dim=1),
)


_write_rule(
    "prompt-not-returned",
    "_returned",
    "continued",
    "what comes first in the result: the prompt, or the first new token?",
    lambda rows, T: rows[:, T:],
)
