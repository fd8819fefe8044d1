"""GPT-2: the functions of modules 01 to 09 put together, filled with released weights, and made to write.

Write the parts in the order they stand here: the model, then the loader, then the sampler.

Sizes    B batch · T new positions · C channels = H*D · H heads · D head size · V vocabulary · L layers
Tensors  ids (B,T) -> resid_pre (B,T,C) -> [ln_1 -> attn_out -> resid_mid -> ln_2 -> mlp_out -> resid_post] x L
         -> ln_f (B,T,C) -> logits (B,T,V)
"""

from dataclasses import dataclass, field
from pathlib import Path

import torch
import torch.nn.functional as F
from attention import merge_heads, split_heads
from embeddings import embed, unembed
from gqa import KVCache
from jaxtyping import Float, Int
from masking import causal_mask
from mlp import mlp
from norms import layer_norm
from torch import Tensor, nn

from autograder.weights import read_checkpoint


@dataclass
class GPT2Config:
    """The sizes of a GPT-2. The defaults are the smallest released model: 124,439,808 parameters.

    C = n_embd and H = n_head; a head has size D = n_embd / n_head. `tied`: the output table is wte itself.
    """

    n_layer: int = 12
    n_head: int = 12
    n_embd: int = 768
    n_ctx: int = 1024
    vocab_size: int = 50257
    layer_norm_eps: float = 1e-5
    tied: bool = True


# BEGIN SOLUTION
class Norm(nn.Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.eps = config.layer_norm_eps
        self.weight = nn.Parameter(torch.ones(config.n_embd))
        self.bias = nn.Parameter(torch.zeros(config.n_embd))

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.eps)


class Projection(nn.Module):
    """x @ weight + bias, with a weight of shape (in, out)."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.T, self.bias)  # the bias is added on the way, not in a second pass


class Attention(nn.Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.n_head = config.n_head
        self.c_attn = Projection(config.n_embd, 3 * config.n_embd)
        self.c_proj = Projection(config.n_embd, config.n_embd)

    def forward(self, x: Tensor, layer: int, cache: KVCache | None) -> Tensor:
        q, k, v = (split_heads(part, self.n_head) for part in self.c_attn(x).chunk(3, dim=-1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        # What masked_attention of module 04 computes, without ever holding all (Tq, Tk) scores at once.
        whole = q.shape[2] == k.shape[2]
        mask = None if whole or q.shape[2] == 1 else causal_mask(q.shape[2], k.shape[2], x.device)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=whole and q.shape[2] > 1)
        return self.c_proj(merge_heads(z))


class MLP(nn.Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.c_fc = Projection(config.n_embd, 4 * config.n_embd)
        self.c_proj = Projection(4 * config.n_embd, config.n_embd)

    def forward(self, x: Tensor) -> Tensor:
        return mlp(x, self.c_fc.weight, self.c_fc.bias, self.c_proj.weight, self.c_proj.bias)


class Block(nn.Module):
    def __init__(self, config: GPT2Config) -> None:
        super().__init__()
        self.ln_1, self.attn = Norm(config), Attention(config)
        self.ln_2, self.mlp = Norm(config), MLP(config)

    def forward(self, resid_pre: Tensor, layer: int, cache: KVCache | None) -> Tensor:
        resid_mid = resid_pre + self.attn(self.ln_1(resid_pre), layer, cache)
        return resid_mid + self.mlp(self.ln_2(resid_mid))


class Table(nn.Module):
    def __init__(self, n_rows: int, n_embd: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_rows, n_embd))


def initialise(model: nn.Module) -> None:
    """Draw the matrices of a new model. On device "meta" there is no memory to fill, and trying to costs a second."""
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and not parameter.is_meta:
            std = 0.01 if name == "wpe.weight" else 0.02
            writes = name.endswith("c_proj.weight")
            nn.init.normal_(parameter, std=std / (2 * model.config.n_layer) ** 0.5 if writes else std)


# END SOLUTION
class GPT2(nn.Module):
    """GPT-2 with the parameter names of the released file.

    `wte.weight` (V,C), `wpe.weight` (n_ctx,C), then for each layer N `h.N.ln_1.weight`, `h.N.ln_1.bias`,
    `h.N.attn.c_attn.weight` and `.bias`, `h.N.attn.c_proj...`, `h.N.ln_2...`, `h.N.mlp.c_fc...`,
    `h.N.mlp.c_proj...`, and at the end `ln_f.weight`, `ln_f.bias`; `lm_head.weight` (V,C) only when untied.
    The four projections may be kept as (in, out), as released, or as (out, in), as `nn.Linear` does: all the same way.
    A tied model has no output table of its own: the logits come from wte itself.

    Each block, with the functions of modules 03 to 07:

        resid_mid  = resid_pre + attn(ln_1(resid_pre))        resid_post = resid_mid + mlp(ln_2(resid_mid))
        logits[b,t,v] = sum_c ln_f(resid_post)[b,t,c] wte[v,c]

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
    """

    def __init__(self, config: GPT2Config) -> None:
        """Build the model of these sizes and keep them as `config`.

        Weights start as in the paper: normal with standard deviation 0.02 (0.01 for wpe), biases 0, gains 1, and
        the two projections that write to the stream smaller by sqrt(2 L). A fresh model then starts near ln V.
        """
        # BEGIN SOLUTION
        super().__init__()
        self.config = config
        self.wte = Table(config.vocab_size, config.n_embd)
        self.wpe = Table(config.n_ctx, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = Norm(config)
        if not config.tied:
            self.lm_head = Table(config.vocab_size, config.n_embd)
        initialise(self)
        # END SOLUTION

    def forward(self, ids: Int[Tensor, "B T"], cache: KVCache | None = None) -> Float[Tensor, "B T V"]:
        """Give the logits of the next token at every position of `ids`.

        With a cache (module 09: `append(layer, k, v)` and `length`) the ids stand behind the positions that it
        holds: they take the positions length .. length + T - 1, attend to everything before them, and their keys
        and values are appended, layer by layer (0-based). The logits are those of the T new positions, the same as
        in one pass over the whole text.

        By hand: with a cache of length 4, two new ids stand at positions 4 and 5. The first of them attends to
        positions 0 to 4, the second to 0 to 5.

        Raises ValueError when length + T is larger than n_ctx.
        """
        # BEGIN SOLUTION
        offset = 0 if cache is None else cache.length
        if offset + ids.shape[1] > self.config.n_ctx:
            raise ValueError(f"{offset} cached + {ids.shape[1]} new positions are more than n_ctx = {self.config.n_ctx}")
        resid = embed(ids, self.wte.weight, self.wpe.weight, offset)
        for layer, block in enumerate(self.h):
            resid = block(resid, layer, cache)
        return unembed(self.ln_f(resid), self.wte.weight if self.config.tied else self.lm_head.weight)
        # END SOLUTION


@dataclass
class LoadReport:
    """What did not go smoothly when weights were loaded: lists of parameter names, empty where all is well.

    missing     parameters of the model that the file does not have
    unexpected  entries of the file that the model has no place for
    transposed  weights that were stored (out, in) where the model keeps (in, out), or the reverse: turned and loaded
    wrong_size  weights of another shape, and square ones whose layout cannot be told: not loaded

    A name stands in one list at most, once, and without a prefix. Transposed weights are nothing to worry about.
    """

    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    transposed: list[str] = field(default_factory=list)
    wrong_size: list[str] = field(default_factory=list)


# BEGIN SOLUTION
PREFIXES = ("_orig_mod.", "module.", "transformer.")
BUFFERS = (".attn.bias", ".attn.masked_bias")  # causal masks: h.0.attn.bias is one, h.0.attn.c_attn.bias is not
PROJECTIONS = ("attn.c_attn.weight", "attn.c_proj.weight", "mlp.c_fc.weight", "mlp.c_proj.weight")


def plain_name(name: str) -> str:
    """The released name of a parameter, whatever wrappers stood around the model that was saved."""
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def stored_turned(own: dict[str, Tensor], given: dict[str, Tensor]) -> bool | None:
    """Whether the file keeps its projections the other way round than the model; None where that cannot be told.

    A square matrix fits either way, so only those that are not square can tell, and they must agree.
    """
    votes = set()
    for name, tensor in given.items():
        if name.endswith(PROJECTIONS) and name in own and tensor.dim() == 2 and tensor.shape[0] != tensor.shape[1]:
            if tensor.shape in (own[name].shape, own[name].shape[::-1]):
                votes.add(tensor.shape != own[name].shape)
    return votes.pop() if len(votes) == 1 else None


@torch.no_grad()
def put(model: nn.Module, name: str, tensor: Tensor) -> None:
    """Give a parameter its values; a parameter without memory (device "meta") takes over the tensor's own."""
    parameter = model.get_parameter(name)
    if not parameter.is_meta:
        parameter.copy_(tensor)
        return
    filled = nn.Parameter(tensor.to(parameter.dtype))
    for module in model.modules():  # a parameter that two modules share stays shared
        for key, held in module._parameters.items():
            if held is parameter:
                module._parameters[key] = filled


# END SOLUTION
def load_state(model: GPT2, state_dict: dict[str, Tensor]) -> LoadReport:
    """Load what fits into the model, and report what does not. Nothing raises, and the state dict stays as it is.

    Names may carry a prefix (`transformer.`); `h.N.attn.bias` and `h.N.attn.masked_bias` hold causal masks and are
    ignored. Projections may be stored (in, out) or (out, in): those that are not square tell which, and the square
    `attn.c_proj.weight` follows them. No other tensor is ever turned. A tied model accepts `lm_head.weight` when it
    equals `wte.weight`; a different one is unexpected. Weights of another precision take on the model's; entries that
    are no floating-point numbers are unexpected. A parameter that is not loaded keeps its value.

    By hand (C = 2): a file with c_attn.weight of shape (6, 2) in a model that keeps (2, 6) is stored (out, in), so its
    attn.c_proj.weight [[1, 2], [3, 4]] is loaded as [[1, 3], [2, 4]], and both names stand in `transposed`.
    """
    # BEGIN SOLUTION
    own = dict(model.named_parameters())
    given = {plain_name(name): tensor for name, tensor in state_dict.items() if not name.endswith(BUFFERS)}
    if model.config.tied and "lm_head.weight" in given and "wte.weight" in given:
        if torch.equal(given["lm_head.weight"], given["wte.weight"]):
            del given["lm_head.weight"]
    turned = stored_turned(own, given)
    report = LoadReport(missing=[name for name in own if name not in given])
    for name, tensor in given.items():
        square = name.endswith(PROJECTIONS) and tensor.dim() == 2 and tensor.shape[0] == tensor.shape[1]
        if name not in own or not tensor.is_floating_point():
            report.unexpected.append(name)
        elif square and turned is None:
            report.wrong_size.append(name)
        elif name.endswith(PROJECTIONS) and turned and tensor.shape == own[name].shape[::-1]:
            report.transposed.append(name)
            put(model, name, tensor.T.contiguous())
        elif tensor.shape == own[name].shape:
            put(model, name, tensor)
        else:
            report.wrong_size.append(name)
    return report
    # END SOLUTION


def from_pretrained(name_or_path: str | Path) -> GPT2:
    """Build a GPT-2 from a folder, a file, or a name on the hub ("gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl").

    `read_checkpoint(name_or_path)` finds or downloads the files, checks them, and gives back the configuration
    (a dict with n_layer, n_head, n_embd, n_ctx, vocab_size, layer_norm_epsilon, tie_word_embeddings) and the
    tensors by name. What is left to do: build the model, load the tensors, and refuse a report that is not clean.

    Raises ValueError, with the report, when a parameter is missing, unexpected or of the wrong size.
    """
    # BEGIN SOLUTION
    config, tensors = read_checkpoint(name_or_path)
    sizes = {key: config[key] for key in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size")}
    with torch.device("meta"):  # no memory and no random numbers for weights that are about to be replaced
        model = GPT2(GPT2Config(**sizes, layer_norm_eps=config["layer_norm_epsilon"], tied=config["tie_word_embeddings"]))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError(f"{name_or_path} does not fit: {report}")
    return model.eval()
    # END SOLUTION


def next_token_probs(
    logits: Float[Tensor, "*batch V"], temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Float[Tensor, "*batch V"]:
    """Turn logits into the probabilities to draw the next token from.

    Temperature divides the logits; 0 puts everything on the largest one (greedy), whatever k and p are. Then `top_k`
    keeps the k most probable tokens; then `top_p` keeps, of what is left, made to sum to 1 again, the most probable
    tokens up to and including the one with which their sum reaches p. The result sums to 1. None leaves a step out.

    By hand: probabilities (0.5, 0.3, 0.15, 0.05) with top_p = 0.6 become (0.625, 0.375, 0, 0).

    Source: Fan et al. 2018, "Hierarchical Neural Story Generation" (top-k); Holtzman et al. 2020, "The Curious
    Case of Neural Text Degeneration", section 3.1 (top-p).
    """
    # BEGIN SOLUTION
    if temperature == 0:
        return F.one_hot(logits.argmax(dim=-1), logits.shape[-1]).to(logits.dtype)
    probs = F.softmax(logits / temperature, dim=-1)
    if top_k is None and top_p is None:
        return probs
    probs, order = probs.sort(dim=-1, descending=True, stable=True)
    if top_k is not None:
        probs = torch.where(torch.arange(probs.shape[-1], device=probs.device) < top_k, probs, 0)
        probs = probs / probs.sum(dim=-1, keepdim=True)
    if top_p is not None:
        before = probs.cumsum(dim=-1) - probs  # what the tokens ahead of each one sum to
        keep = (before < top_p) | (torch.arange(probs.shape[-1], device=probs.device) == 0)
        probs = torch.where(keep, probs, 0)
        probs = probs / probs.sum(dim=-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, order, probs)
    # END SOLUTION


@torch.no_grad()
def generate(
    model: nn.Module,
    ids: Int[Tensor, "B T"],
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    use_cache: bool = True,
    stop_id: int | None = None,
) -> Int[Tensor, "B T_out"]:
    """Continue each row of `ids` by up to `max_new_tokens` tokens; the prompt comes first in the result.

    Each step draws one token for each row from `next_token_probs` of the logits at the last position, with random
    numbers from `generator` (PyTorch's own when it is None); temperature 0 takes the largest. With `use_cache` each
    position goes through the model once while the context lasts, without it all of them do at each step, and no cache
    is handed over; the tokens are the same. Past the context the oldest tokens leave the window and the last n_ctx
    take positions from 0 on, so every step from there is computed anew; nothing leaves the result.

    A row that has produced `stop_id` is finished and filled up with it; when all rows are, it ends. A `stop_id` in the
    prompt finishes nothing. The model runs in evaluation mode and is left in the mode it was in.

    By hand: n_ctx = 4, a prompt of 3 tokens, 3 new ones. The model reads tokens 0-2, then 0-3, then 1-4 (at positions
    0 to 3). With a cache it reads tokens 0-2, then token 3 alone, then 1-4. The result has 6 tokens.
    """
    # BEGIN SOLUTION
    training, n_ctx = model.training, model.config.n_ctx
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    finished = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
    try:
        for _ in range(max_new_tokens):
            if cache is not None and ids.shape[1] <= n_ctx:
                logits = model(ids[:, cache.length :], cache)[:, -1]
            else:
                logits = model(ids[:, -n_ctx:])[:, -1]
            if temperature == 0:
                token = logits.argmax(dim=-1, keepdim=True)
            else:
                token = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
            if stop_id is not None:
                token = torch.where(finished.unsqueeze(1), stop_id, token)
                finished |= token.squeeze(1) == stop_id
            ids = torch.cat([ids, token], dim=1)
            if stop_id is not None and finished.all():
                break
    finally:
        model.train(training)
    return ids
    # END SOLUTION
