"""Train the small checkpoint of this course: a GPT-2 of about one million parameters, on text that Python carries.

    python checkpoints/train_small.py                               the whole run, on two CPU cores
    python checkpoints/train_small.py --steps 300 --out FOLDER      a first look: two minutes

The vocabulary is learnt by the course's own `train_bpe`, on the training text only. Nothing is chosen by the held-out
text: what is written is the model after the last step. The same machine and versions give the same weights.
"""

import argparse
import json
import math
import platform
import sys
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from matplotlib import pyplot as plt
from safetensors.torch import save_file

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "solutions" / "01_tokenization"), str(ROOT / "checkpoints")]

from corpus import SEPARATOR, load_corpus, xz_bits_per_byte  # noqa: E402
from tokenization import Tokenizer, bytes_to_unicode, train_bpe  # noqa: E402

from autograder.model import GPT2  # noqa: E402

VOCAB_SIZE = 1257  # 256 bytes, 1,000 merges, <|endoftext|> as the last id
CONFIG = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"],
    "n_layer": 5, "n_head": 4, "n_embd": 128, "n_ctx": 256, "n_positions": 256, "vocab_size": VOCAB_SIZE,
    "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new", "tie_word_embeddings": True,
    "bos_token_id": VOCAB_SIZE - 1, "eos_token_id": VOCAB_SIZE - 1,
}  # fmt: skip
RECIPE = {
    "steps": 5000, "batch": 16, "topics_share": 0.25, "dropout": 0.1, "max_lr": 3e-3, "min_lr": 3e-5, "warmup_steps": 150,
    "weight_decay": 0.1, "betas": [0.9, 0.99], "max_norm": 1.0, "arithmetic": "bfloat16 autocast, float32 weights", "seed": 0,
}  # fmt: skip


def to_stream(tokenizer: Tokenizer, documents: list[str]) -> torch.Tensor:
    """One long row of ids: the separator, a document, the separator, the next document, ..."""
    ids = []
    for document in documents:
        ids += [VOCAB_SIZE - 1, *tokenizer.encode(document)]
    return torch.tensor(ids)


def draw_batch(topics: torch.Tensor, docstrings: torch.Tensor, recipe: dict, generator: torch.Generator) -> torch.Tensor:
    """Windows of n_ctx + 1 ids at random places, topics more often than their size asks for: held out are topics."""
    rows = []
    for _ in range(recipe["batch"]):
        from_topics = torch.rand((), generator=generator) < recipe["topics_share"]
        stream = topics if from_topics else docstrings
        start = int(torch.randint(len(stream) - CONFIG["n_ctx"], (), generator=generator))
        rows.append(stream[start : start + CONFIG["n_ctx"] + 1])
    return torch.stack(rows)


def learning_rate(step: int, recipe: dict) -> float:
    if step < recipe["warmup_steps"]:
        return recipe["max_lr"] * (step + 1) / recipe["warmup_steps"]
    done = (step - recipe["warmup_steps"]) / max(1, recipe["steps"] - recipe["warmup_steps"])
    return recipe["min_lr"] + (recipe["max_lr"] - recipe["min_lr"]) * (1 + math.cos(math.pi * done)) / 2


@torch.no_grad()
def bits_per_byte(model: GPT2, tokenizer: Tokenizer, documents: list[str]) -> float:
    """All nats of all tokens / ln 2 / all bytes. <|endoftext|> comes first as a prompt and is not counted.

    Windows of n_ctx move on by half: every token is scored once, with at least half a window before it (or all there is).
    """
    model.eval()
    n_ctx, nats, n_bytes = CONFIG["n_ctx"], 0.0, 0
    for document in documents:
        ids = torch.tensor([VOCAB_SIZE - 1, *tokenizer.encode(document)])
        n_bytes += len(document.encode())
        scored = 0  # ids[1 : 1 + scored] are scored
        while scored < len(ids) - 1:
            end = min(len(ids) - 1, n_ctx if scored == 0 else scored + n_ctx // 2)
            start = max(0, end - n_ctx)
            losses = F.cross_entropy(model(ids[None, start:end])[0], ids[start + 1 : end + 1], reduction="none")
            nats += losses[scored - start :].double().sum().item()
            scored = end
    model.train()
    return nats / math.log(2) / n_bytes


@torch.no_grad()
def sample(model: GPT2, tokenizer: Tokenizer, seed: int, length: int = 400, temperature: float = 0.8) -> str:
    model.eval()
    generator = torch.Generator().manual_seed(seed)
    ids = torch.tensor([[VOCAB_SIZE - 1]])
    for _ in range(length):
        probs = F.softmax(model(ids[:, -CONFIG["n_ctx"] :])[0, -1] / temperature, dim=-1)
        ids = torch.cat([ids, torch.multinomial(probs, 1, generator=generator)[None]], dim=1)
    return tokenizer.decode(ids[0].tolist())


def fit(model: GPT2, topics: torch.Tensor, docstrings: torch.Tensor, recipe: dict, look) -> list[float]:
    matrices = [p for p in model.parameters() if p.ndim > 1]
    vectors = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe["weight_decay"]}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=tuple(recipe["betas"]), fused=True)
    generator = torch.Generator().manual_seed(recipe["seed"])
    losses, began = [], time.time()
    for step in range(recipe["steps"]):
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, recipe)
        batch = draw_batch(topics, docstrings, recipe, generator)
        with torch.autocast("cpu", torch.bfloat16):
            logits = model(batch[:, :-1])
        loss = F.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), recipe["max_norm"])
        optimizer.step()
        optimizer.zero_grad()
        losses.append(round(loss.item(), 4))
        if (step + 1) % 250 == 0 or step + 1 == recipe["steps"]:
            look(step + 1, sum(losses[-100:]) / len(losses[-100:]), time.time() - began)
    return losses


def write_vocabulary(path: Path, merges: list[tuple[bytes, bytes]]) -> None:
    table = bytes_to_unicode()
    lines = [" ".join("".join(table[byte] for byte in token) for token in merge) for merge in merges]
    path.write_text("#version: 0.2\n" + "\n".join(lines) + "\n", encoding="utf-8")


def write_plot(path: Path, losses: list[float], looks: list[dict]) -> None:
    figure, left = plt.subplots(figsize=(7, 4), layout="tight")
    smooth = torch.tensor(losses).unfold(0, 50, 1).mean(dim=1)
    left.plot(range(50, len(losses) + 1), smooth, label="training loss (mean of 50 steps)")
    left.set(xlabel="step", ylabel="nats per token")
    right = left.twinx()
    right.plot([x["step"] for x in looks], [x["held_out_bits_per_byte"] for x in looks], "C1o-", label="held-out text")
    right.set(ylabel="bits per byte")
    figure.legend(loc="upper right", bbox_to_anchor=(0.88, 0.88))
    figure.savefig(path, dpi=100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=RECIPE["steps"])
    parser.add_argument("--out", type=Path, default=ROOT / "checkpoints" / "small")
    options = parser.parse_args()
    recipe = RECIPE | {"steps": options.steps, "warmup_steps": min(RECIPE["warmup_steps"], options.steps // 5)}
    torch.set_num_threads(2)
    torch.manual_seed(recipe["seed"])

    corpus = load_corpus()
    merges = train_bpe(corpus.training_text(), VOCAB_SIZE - 1)
    tokenizer = Tokenizer(merges, {"<|endoftext|>": VOCAB_SIZE - 1})
    topics, docstrings = to_stream(tokenizer, corpus.topics), to_stream(tokenizer, corpus.docstrings)
    model = GPT2(CONFIG | {"resid_pdrop": recipe["dropout"], "embd_pdrop": recipe["dropout"]})
    print(f"{len(topics)} + {len(docstrings)} tokens, {sum(p.numel() for p in model.parameters())} parameters", flush=True)

    looks = []

    def look(step: int, loss: float, seconds: float) -> None:
        looks.append({"step": step, "held_out_bits_per_byte": round(bits_per_byte(model, tokenizer, corpus.held_out), 4)})
        print(f"step {step}  loss {loss:.4f}  held out {looks[-1]['held_out_bits_per_byte']}  {seconds:.0f} s", flush=True)

    began = time.time()
    losses = fit(model, topics, docstrings, recipe, look)
    held_out = SEPARATOR.join(corpus.held_out)
    record = {
        "bits_per_byte": bits_per_byte(model, tokenizer, corpus.held_out),
        "xz_bits_per_byte": {
            "topics": xz_bits_per_byte(SEPARATOR.join(corpus.topics), held_out),
            "training_text": xz_bits_per_byte(corpus.training_text(), held_out),
        },
        "held_out": {"sha256": corpus.held_out_sha256(), "documents": len(corpus.held_out), "bytes": len(held_out.encode())},
        "training_bytes": {key: len(SEPARATOR.join(getattr(corpus, key)).encode()) for key in ("topics", "docstrings")},
        "training_tokens": {"topics": len(topics), "docstrings": len(docstrings)},
        "parameters": sum(p.numel() for p in model.parameters()),
        "recipe": recipe, "minutes": round((time.time() - began) / 60, 1),
        "versions": {"python": platform.python_version(), "torch": torch.__version__}, "threads": torch.get_num_threads(),
        "looks": looks, "losses": losses,
    }  # fmt: skip

    options.out.mkdir(parents=True, exist_ok=True)
    state = {name: tensor.detach().contiguous() for name, tensor in model.state_dict().items()}
    save_file(state, options.out / "model.safetensors", metadata={"format": "pt"})
    (options.out / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n", encoding="utf-8")
    write_vocabulary(options.out / "vocab.bpe", merges)
    (options.out / "sample.txt").write_text(sample(model, tokenizer, recipe["seed"]) + "\n", encoding="utf-8")
    (options.out / "training.json").write_text(json.dumps(record) + "\n", encoding="utf-8")
    write_plot(options.out / "loss.png", losses, looks)
    print({key: record[key] for key in ("bits_per_byte", "xz_bits_per_byte", "minutes")})


if __name__ == "__main__":
    main()
