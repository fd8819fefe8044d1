# %% [markdown]
# # 11 · Parameter counting: guess first
#
# *Where are the numbers of a model, what do they cost at rest, in a conversation and for each token, and does counting agree
# with a model that really runs?*
#
# Everything here follows from a dozen numbers in a `config.json`, so you can know it exactly. What you have beforehand is a
# picture of where a model keeps its parameters; put it into numbers, in place of the dots in each cell that says
# `lab.predict`, before you run the cell below it.

# %%
# %matplotlib inline
import json
from dataclasses import replace

import matplotlib.pyplot as plt
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from autograder.course import ROOT
from autograder.lab import Lab

lab = Lab("11_parameter_counting")
from parameter_counting import (
    ModelConfig,
    attention_parameters,
    block_parameters,
    count_parameters,
    embedding_parameters,
    forward_flops_per_token,
    kv_cache_bytes_per_token,
    mlp_parameters,
    mlp_share,
    norm_parameters,
    read_config,
    weight_bytes,
)

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
RED, BLUE, GRAY = "#c1440e", "#3b6ea5", "#777777"


files = sorted((ROOT / "checkpoints" / "configs").glob("*.json"))
configs = {file.stem: read_config(json.loads(file.read_text(encoding="utf-8"))) for file in files}
configs["gpt3"] = ModelConfig(
    96, 12288, 96, 96, 128, 49152, 50257, 2048, gated_mlp=False, bias=True, norm_bias=True, tied=True, learned_positions=True
)  # fmt: skip
configs["small"] = read_config(json.loads((ROOT / "checkpoints" / "small" / "config.json").read_text(encoding="utf-8")))
FOUR = {
    "GPT-2": configs["gpt2"],
    "GPT-3": configs["gpt3"],
    "Llama 3 8B": configs["llama-3-8b"],
    "Llama 3 70B": configs["llama-3-70b"],
}

# %% [markdown]
# ## Where the parameters live
#
# Two guesses for each of four models. First the MLP's share of the blocks' matrices, as `mlp_share` counts it. Then the share
# that the tables for tokens and positions have in *everything*, with the head where it is a table of its own. GPT-2 has 12
# layers of 768 channels and GPT-3 96 of 12,288. Llama 3 8B has 32 layers of 4,096 and 70B 80 of 8,192; both have gated MLPs,
# 8 key/value heads, a vocabulary of 128,256 and a head of their own.
#
# The famous short formula for all this is 12*L*C*C. Is it too small or too large for most models, and where is it worst?
# `checkpoints/configs` has nine files: gpt2, gpt2-medium, gpt2-large, gpt2-xl, tinyllama-1.1b, llama-3.2-1b, llama-3-8b,
# mistral-nemo-12b and llama-3-70b. GPT-3 (gpt3) is written into the first cell, and the course's small model (small) has a
# file of its own.

# %%
for name in FOUR:
    lab.predict(f"{name}, MLP's share of the blocks' matrices", ...)
    lab.predict(f"{name}, share of tables and head in everything", ...)
lab.predict("the model that 12*L*C*C misses by most", ...)

# %%
PARTS = ("tables", "head", "attention", "MLP", "norms")
COLORS = ("#dd8452", "#f0c8a8", BLUE, RED, "black")


def parts(c):
    """Parameters of each part of the whole model."""
    tables, per_layer = embedding_parameters(c), [attention_parameters(c), mlp_parameters(c), norm_parameters(c)]
    attention, mlp, norms = (c.n_layer * part for part in per_layer)
    head = 0 if c.tied else c.vocab_size * c.d_model
    return [tables, head, attention, mlp, norms + norm_parameters(c) // 2]


shown = {"small model": configs["small"], **FOUR}
figure, axes = plt.subplots(figsize=(7.6, 3), layout="constrained")
for line, c in enumerate(shown.values()):
    left = 0
    for part, number, color in zip(PARTS, parts(c), COLORS):
        width = 100 * number / count_parameters(c)
        axes.barh(line, width, left=left, color=color, label=part if line == 0 else None)
        if width > 4:
            axes.text(
                left + width / 2,
                line,
                f"{width:.1f}",
                ha="center",
                va="center",
                color="white" if color in (BLUE, RED) else "black",
            )
        left += width
axes.set_yticks(range(len(shown)), [f"{name}\n{count_parameters(c):,}" for name, c in shown.items()])
axes.invert_yaxis()
axes.set(xlabel="share of all parameters (%)", title="where the parameters live", xlim=(0, 100))
axes.legend(frameon=False, ncols=5, loc="upper center", bbox_to_anchor=(0.45, -0.18))
plt.show()
for name, c in FOUR.items():
    tables, head, *_ = parts(c)
    print(f"{name}: the parts sum to the whole: {sum(parts(c)) == count_parameters(c)}")
    lab.measured(f"{name}, MLP's share of the blocks' matrices", mlp_share(c))
    lab.measured(f"{name}, share of tables and head in everything", (tables + head) / count_parameters(c))

# %%
gap = {name: 12 * c.n_layer * c.d_model**2 / count_parameters(c) - 1 for name, c in configs.items()}
order = sorted(configs, key=lambda name: count_parameters(configs[name]))
figure, axes = plt.subplots(figsize=(7.6, 2.8), layout="constrained")
bars = axes.bar(order, [100 * gap[name] for name in order], color=[RED if configs[name].gated_mlp else BLUE for name in order])
axes.bar_label(bars, fmt="%.1f", fontsize=8, padding=1)
axes.axhline(0, color="black", lw=0.8)
axes.set(
    ylabel="12*L*C*C against\nthe count (%)", title="the short formula (blue: GPT-2 and GPT-3, red: gated MLPs)", ylim=(-42, 8)
)
axes.set_xticks(range(len(order)), order, rotation=25, ha="right", rotation_mode="anchor")
plt.show()
lab.measured("the model that 12*L*C*C misses by most", max(gap, key=lambda name: abs(gap[name])))
one = configs["llama-3.2-1b"]
untied = count_parameters(replace(one, tied=False)) - count_parameters(one)
print(f"Llama 3.2 1B, {count_parameters(one):,}: a head of its own would add {untied:,}, {untied / count_parameters(one):.1%}")

# %% [markdown]
# Two thirds of the blocks' matrices of both GPTs are MLP, whatever the size: 8*C*C against 4*C*C. In the Llamas it is four
# fifths, for two reasons that add up: a third matrix, and key/value heads that many query heads share. In everything, the
# picture depends on the size. GPT-2's tables are 31.6 %, GPT-3's 0.4 %, for the tables grow with C and the blocks with L*C*C.
#
# 12*L*C*C knows neither tables nor gates nor shared heads. It is too small for most, by 34.8 % for Llama 3.2 1B and 31.7 % for
# GPT-2 small, and within 1 % for GPT-3 and TinyLlama: for GPT-3 because the tables vanish, for TinyLlama because what its
# formula lacks and what it has too much cancel. A rule that fits the model you tried first may fit by luck.
#
# ## The count, held against a model that runs
#
# The course's small checkpoint has its numbers on the disk and can be run. Four counts, each against a witness that knows
# nothing of your formulas:
#
# - parameters against the tensors in the file, and `weight_bytes` against the file's size;
# - the cache against the bytes of the keys and values that the model really makes for 256 tokens;
# - the arithmetic against PyTorch's `FlopCounterMode`, which sees each matrix product go by.

# %%
lab.predict("parameters of the small model (5 layers, 128 channels, 1,257 ids, 256 positions)", ...)
lab.predict("bytes in its file that are no parameter", ...)
lab.predict("cache of 256 tokens over all weights (both float32)", ...)
lab.predict("FLOPs of one token among 256, over twice the parameters", ...)

# %%
c, n = configs["small"], 256
model, tokenizer = lab.model()
ids, record = torch.arange(n)[None], {}
with torch.no_grad():
    model(ids, record)
stored = sum(p.numel() for p in model.parameters())
in_file = (ROOT / "checkpoints" / "small" / "model.safetensors").stat().st_size
cache = sum(record[f"h.{i}.attn.{part}"].nbytes for i in range(c.n_layer) for part in "kv")
with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH), torch.no_grad():
    model(ids)
block = sum(p.numel() for p in model.h[0].parameters())
print(f"{'':22}{'counted':>14}{'witness':>14}")
for name, mine, witness in (
    ("a block", block_parameters(c), block),
    ("parameters", count_parameters(c), stored),
    ("bytes of the weights", weight_bytes(c, 4), in_file),
    (f"cache, {n} tokens", n * kv_cache_bytes_per_token(c, 4), cache),
    (f"FLOPs, {n} tokens", n * forward_flops_per_token(c, n), counter.get_total_flops()),
):
    print(f"{name:22}{mine:14,}{witness:14,}   apart: {witness - mine:,}")
lab.measured("parameters of the small model (5 layers, 128 channels, 1,257 ids, 256 positions)", stored)
lab.measured("bytes in its file that are no parameter", in_file - weight_bytes(c, 4))
lab.measured("cache of 256 tokens over all weights (both float32)", cache / weight_bytes(c, 4))
lab.measured("FLOPs of one token among 256, over twice the parameters", counter.get_total_flops() / n / (2 * stored))

# %% [markdown]
# The counts are the witnesses' numbers, to the last one. The file has 5,440 bytes more than its weights: the names and shapes
# of the tensors. The cache of one full window is already 28 % of the weights here; the model is small, and float32 doubles
# both.
#
# Twice the parameters is too low by a quarter for the arithmetic of a token: reading 256 positions is on top, and the
# embedding's look-up costs nothing but its table works once more as the head. The counter was told to run the plain
# form of attention. It charges all 256 positions to every token, as the formula does, although a causal reader needs 128 on
# average; a kernel that skips the masked half does less.
#
# ## What grows with the text
#
# Two things grow with the number of positions n: the bytes of the cache, and the arithmetic of attention. At which n is the
# cache of *one* conversation as large as the weights (both in bfloat16)? And at which n is half of a token's arithmetic
# attention's reading? The formulas hold for any n; whether the model does is another question.

# %%
lab.predict("tokens at which Llama 3 8B's cache is as large as its weights", ...)
lab.predict("the same, if each of its 32 heads kept its own key and value", ...)
lab.predict("positions at which reading is half of Llama 3 70B's arithmetic", ...)

# %%
lengths = [2**k for k in range(6, 21)]
colors = ("#dd8452", GRAY, BLUE, RED)


def reading(c, n):
    """Attention's share of a token's arithmetic."""
    return 1 - forward_flops_per_token(c, 0) / forward_flops_per_token(c, n)


figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.4), layout="constrained")
for (name, c), color in zip(FOUR.items(), colors):
    left.plot(lengths, [n * kv_cache_bytes_per_token(c) / 1e9 for n in lengths], color=color, label=name)
    even = weight_bytes(c, 2) / kv_cache_bytes_per_token(c)
    left.plot([even], [weight_bytes(c, 2) / 1e9], "o", color=color)
    right.plot(lengths, [100 * reading(c, n) for n in lengths], color=color, label=name)
    right.plot([c.n_ctx], [100 * reading(c, c.n_ctx)], "s", color=color)
    half = next(n for n in range(1, 10**7) if reading(c, n) >= 0.5)
    gigabytes = c.n_ctx * kv_cache_bytes_per_token(c) / 1e9, weight_bytes(c, 2) / 1e9
    print(f"{name:12} at n_ctx = {c.n_ctx:5,}: cache {gigabytes[0]:6.3f} GB, weights {gigabytes[1]:7.3f} GB, ", end="")
    print(f"reading {reading(c, c.n_ctx):5.1%}; as large at {even:9,.0f} tokens, half at {half:6,}")
for axis in (left, right):
    axis.set_xscale("log", base=2)
    axis.set_xticks([2**6, 2**10, 2**14, 2**18], ["64", "1,024", "16,384", "262,144"])
left.set(
    yscale="log",
    xlabel="tokens in the cache",
    ylabel="bytes in bfloat16 (GB)",
    title="the cache of one conversation\n(dot: as large as the weights)",
)
right.set(
    xlabel="positions read", ylabel="share of a token's FLOPs (%)", title="attention's reading\n(square: the model's n_ctx)"
)
left.legend(frameon=False)
plt.show()
llama = FOUR["Llama 3 8B"]
lab.measured(
    "tokens at which Llama 3 8B's cache is as large as its weights",
    round(weight_bytes(llama, 2) / kv_cache_bytes_per_token(llama)),
)
own = replace(llama, n_kv_head=llama.n_head)
lab.measured(
    "the same, if each of its 32 heads kept its own key and value", round(weight_bytes(own, 2) / kv_cache_bytes_per_token(own))
)
lab.measured("positions at which reading is half of Llama 3 70B's arithmetic", half)

# %% [markdown]
# In GPT-2 and GPT-3 the two points nearly coincide: 6,751 and 6,703, 74,007 and 73,990. Is that an accident? Write both down
# for H*D = C and Hkv = H. The cache has 2*L*C numbers for each token, so it is as large as N parameters at n = N / (2*L*C).
# Reading costs 4*L*n*C, the matrices 2*N: the same n. Each number in the cache is used once for each new token, in one
# multiplication and one addition, just as each weight is.
#
# Sharing keys and values breaks the tie on one side only. Llama 3 8B's cache is as large as its weights at about 122,500
# tokens; with 32 heads of keys and values it would be about 33,700 (the weights grow a little, too). Its reading is half of
# the arithmetic at about 28,600 either way, for every query head still reads all positions. 70B gets there at about 53,000.

# %%
lab.check("read_config")

# %%
lab.check("attention_parameters")

# %%
lab.check("mlp_parameters")

# %%
lab.check("norm_parameters")

# %%
lab.check("block_parameters")

# %%
lab.check("embedding_parameters")

# %%
lab.check("count_parameters")

# %%
lab.check("mlp_share")

# %%
lab.check("weight_bytes")

# %%
lab.check("kv_cache_bytes_per_token")

# %%
lab.check("forward_flops_per_token")

# %% [markdown]
# ## What this does not show
#
# - *What a part is worth.* Four fifths of the numbers are MLP. Whether four fifths of what the model can do are in there is a
#   question for experiments that change the model, such as those of modules 05 and 06.
# - *How fast anything runs.* FLOPs and bytes bound the time from below. Which of the two binds, and by how much, depends on
#   machine, batch and kernels; this lab has not timed anything.
# - *How much memory you need.* Activations, buffers, fragments and a second copy during loading come on top.
# - *That the witnesses prove the formulas.* They agree for one small GPT-2 with plain heads, biases and a tied table. Gates,
#   shared heads and untied tables were counted against published totals only, which the grader knows.
# - *Models of another kind.* With experts, only a part of the parameters works for each token, and "parameters" and
#   "arithmetic" come apart. `ModelConfig` has no word for that.
