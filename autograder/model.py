"""The reference GPT-2: PyTorch's own operators, the released checkpoint's parameter names and layout.

It shares no code with `solutions/`, so that the two witness each other. It trains the small checkpoint and records
activations: `forward(ids, record)` fills the dictionary `record` with every named tensor of the course, in running
order, such as `h.0.attn.pattern` (scores and pattern, which fused attention never shows, are computed only then).
"""

import json
import math
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

SIZES = ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size")


class Projection(nn.Module):
    """x @ weight + bias with a weight of shape (in, out), as released."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(n_in, n_out).normal_(std=0.02))
        self.bias = nn.Parameter(torch.zeros(n_out))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight.T, self.bias)


class Attention(nn.Module):
    def __init__(self, config: dict) -> None:
        super().__init__()
        self.n_head = config["n_head"]
        self.c_attn = Projection(config["n_embd"], 3 * config["n_embd"])
        self.c_proj = Projection(config["n_embd"], config["n_embd"])

    def forward(self, x: Tensor, record: dict | None = None, name: str = "") -> Tensor:
        q, k, v = (part.unflatten(-1, (self.n_head, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=-1))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        attn_out = self.c_proj(z.transpose(1, 2).flatten(2))
        if record is not None:
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            later = torch.ones_like(scores, dtype=torch.bool).triu(1)
            pattern = F.softmax(scores.masked_fill(later, -torch.inf), dim=-1)
            tensors = {"q": q, "k": k, "v": v, "scores": scores, "pattern": pattern, "z": z, "attn_out": attn_out}
            record.update({f"{name}.{key}": value for key, value in tensors.items()})
        return attn_out


class MLP(nn.Module):
    def __init__(self, config: dict) -> None:
        super().__init__()
        self.c_fc = Projection(config["n_embd"], 4 * config["n_embd"])
        self.c_proj = Projection(4 * config["n_embd"], config["n_embd"])

    def forward(self, x: Tensor, record: dict | None = None, name: str = "") -> Tensor:
        mlp_pre = self.c_fc(x)
        mlp_post = F.gelu(mlp_pre, approximate="tanh")
        mlp_out = self.c_proj(mlp_post)
        if record is not None:
            tensors = {"mlp_pre": mlp_pre, "mlp_post": mlp_post, "mlp_out": mlp_out}
            record.update({f"{name}.{key}": value for key, value in tensors.items()})
        return mlp_out


class Block(nn.Module):
    def __init__(self, config: dict) -> None:
        super().__init__()
        self.ln_1 = nn.LayerNorm(config["n_embd"], config["layer_norm_epsilon"])
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config["n_embd"], config["layer_norm_epsilon"])
        self.mlp = MLP(config)
        self.dropout = nn.Dropout(config.get("resid_pdrop", 0.0))

    def forward(self, resid_pre: Tensor, record: dict | None = None, name: str = "") -> Tensor:
        ln_1 = self.ln_1(resid_pre)
        if record is not None:
            record.update({f"{name}.resid_pre": resid_pre, f"{name}.ln_1": ln_1})
        resid_mid = resid_pre + self.dropout(self.attn(ln_1, record, f"{name}.attn"))
        ln_2 = self.ln_2(resid_mid)
        if record is not None:
            record.update({f"{name}.resid_mid": resid_mid, f"{name}.ln_2": ln_2})
        resid_post = resid_mid + self.dropout(self.mlp(ln_2, record, f"{name}.mlp"))
        if record is not None:
            record[f"{name}.resid_post"] = resid_post
        return resid_post


class GPT2(nn.Module):
    def __init__(self, config: dict) -> None:
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config["vocab_size"], config["n_embd"])
        self.wpe = nn.Embedding(config["n_ctx"], config["n_embd"])
        self.h = nn.ModuleList(Block(config) for _ in range(config["n_layer"]))
        self.ln_f = nn.LayerNorm(config["n_embd"], config["layer_norm_epsilon"])
        self.dropout = nn.Dropout(config.get("embd_pdrop", 0.0))
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)
        for block in self.h:  # 2 * n_layer writes add up in the stream: smaller at the start, as in the GPT-2 paper
            for projection in (block.attn.c_proj, block.mlp.c_proj):
                nn.init.normal_(projection.weight, std=0.02 / math.sqrt(2 * config["n_layer"]))

    def forward(self, ids: Tensor, record: dict | None = None) -> Tensor:
        tok_emb = self.wte(ids)
        pos_emb = self.wpe(torch.arange(ids.shape[1], device=ids.device))
        if record is not None:
            record.update({"tok_emb": tok_emb, "pos_emb": pos_emb})
        resid = self.dropout(tok_emb + pos_emb)
        for i, block in enumerate(self.h):
            resid = block(resid, record, f"h.{i}")
        ln_f = self.ln_f(resid)
        logits = F.linear(ln_f, self.wte.weight)  # tied: the embedding table read the other way
        if record is not None:
            record.update({"ln_f": ln_f, "logits": logits})
        return logits


def load_checkpoint(folder: str | Path) -> GPT2:
    """Read a folder with `config.json` and `model.safetensors`, in evaluation mode; a ValueError names what is wrong."""
    folder = Path(folder)
    for name in ("config.json", "model.safetensors"):
        if not (folder / name).is_file():
            raise ValueError(f"{folder / name} does not exist: a checkpoint is a folder with config.json and model.safetensors")
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{folder / 'config.json'} is not JSON: {error}") from None
    for key in SIZES:
        if not isinstance(config.get(key), int) or config[key] < 1:
            raise ValueError(f"{folder / 'config.json'}: {key} is {config.get(key)!r}, expected a positive whole number")
    if config["n_embd"] % config["n_head"]:
        raise ValueError(f"{folder / 'config.json'}: n_head {config['n_head']} does not divide n_embd {config['n_embd']}")
    config.setdefault("layer_norm_epsilon", 1e-5)
    try:
        state = load_file(folder / "model.safetensors")
    except SafetensorError as error:
        raise ValueError(f"{folder / 'model.safetensors'} is not a safetensors file: {error}") from None
    # Released files also hold the causal masks (h.N.attn.bias), which are no parameters.
    state = {name: tensor for name, tensor in state.items() if not name.endswith((".attn.bias", ".attn.masked_bias"))}
    model = GPT2(config)
    expected = model.state_dict()
    for name in sorted(expected.keys() | state.keys()):
        here, there = expected.get(name), state.get(name)
        if here is None or there is None or here.shape != there.shape:
            shapes = ["absent" if tensor is None else str(tuple(tensor.shape)) for tensor in (there, here)]
            raise ValueError(f"{folder / 'model.safetensors'}: {name} is {shapes[0]}, expected {shapes[1]}")
    model.load_state_dict(state)
    return model.eval()
