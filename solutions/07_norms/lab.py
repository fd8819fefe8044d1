# %% [markdown]
# # 07 · Norms: which layer hears the loss, and what a norm takes away
#
# *Two stacks of the same layers differ only in where the norm stands. Which layers does the gradient reach, and what does a
# trained model lose when its norms stop taking the mean away, or stop looking at the row?*
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it. Figures in the
# text are from a run of this notebook and rounded.

# %%
# %matplotlib inline
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from autograder.lab import Lab
from autograder.model import MLP, Attention

lab = Lab("07_norms")
from norms import layer_norm, post_norm, pre_norm, rms_norm

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
BLUE, RED, GREEN = "#3b6ea5", "#c1440e", "#7a9e3f"

# %% [markdown]
# ## One row, one gradient
#
# The lesson's row [1, 7, 1, 7], times a factor; the norm has weight 1, bias 0 and eps = 1e-5. You measure the length of the
# gradient of the *first entry* of the result with respect to the row. The result itself hardly moves with the factor. What
# does the gradient do when the factor goes from 1 to 10? And what stops it when the factor goes to 0?

# %%
lab.predict("gradient at factor 10 over gradient at factor 1 (layer_norm)", ...)
lab.predict("gradient of layer_norm at factor 0", ...)

# %%
one, zero = torch.ones(4, dtype=torch.float64), torch.zeros(4, dtype=torch.float64)
NORMS = {"layer_norm": lambda x: layer_norm(x, one, zero), "rms_norm": lambda x: rms_norm(x, one)}


def slope(norm, factor):
    """The length of the gradient of the first entry of the norm's result, for the pencil's row times the factor."""
    row = (factor * torch.tensor([1.0, 7.0, 1.0, 7.0], dtype=torch.float64)).requires_grad_()
    (gradient,) = torch.autograd.grad(norm(row)[0], row)
    return gradient.norm().item()


factors = torch.logspace(-6, 3, 91, dtype=torch.float64).tolist()
figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
for (name, norm), color in zip(NORMS.items(), (BLUE, RED)):
    axes.loglog(factors, [slope(norm, factor) for factor in factors], color=color, label=name)
axes.set(xlabel="factor on the row (no unit)", ylabel="length of the gradient\n(result per unit of the row)")
axes.set_title("a norm divides the gradient by the size of the row")
axes.legend(frameon=False)
plt.show()
for factor in (0, 0.001, 1, 10):
    print(f"factor {factor:<5}  " + "   ".join(f"{name} {slope(norm, factor):9.4f}" for name, norm in NORMS.items()))
first = slope(NORMS["layer_norm"], 1)
lab.measured("gradient at factor 10 over gradient at factor 1 (layer_norm)", slope(NORMS["layer_norm"], 10) / first)
lab.measured("gradient of layer_norm at factor 0", slope(NORMS["layer_norm"], 0))

# %% [markdown]
# ## Which layer hears the loss?
#
# Stacks of untrained GPT layers (C = 64, H = 4, causal attention and MLP, 2 texts of 32 random tokens). One set of stacks
# takes your `pre_norm` around each sublayer and one more norm before the logits; the other takes your `post_norm`. The loss
# is the mean cross-entropy of the next token. For each layer you measure the length of the gradient of one matrix, the MLP's
# `c_proj`.
#
# All matrices start with a spread of 1/sqrt(inputs), so that what goes in and what comes out have about the same size, and
# the stream starts at size 1. Depths 4, 12 and 24.
#
# Draw first: five numbers for the layers 0, 6, 12, 18 and 23 of the deepest stack, as multiples of layer 23 (so that the last
# of the five is 1). A drawing appears as a dashed line in the plot. Then say how the two stacks compare at their last layer,
# where no other layer stands between.

# %%
my_pre, my_post = ..., ...  # such as [0.1, 0.3, 0.5, 0.8, 1]
lab.predict("pre-norm, 24 layers: the gradient's curve", my_pre)
lab.predict("post-norm, 24 layers: the gradient's curve", my_post)
lab.predict("gradient at the last of 24 layers: post-norm over pre-norm", ...)

# %%
C, HEADS, T, TEXTS, LETTERS, DEPTHS, SEEDS = 64, 4, 32, 2, 256, (4, 12, 24), 8


def norm(x):
    return layer_norm(x, torch.ones(C), torch.zeros(C))


def spread_1(name, inputs, depth):
    return 1 / math.sqrt(inputs)


def spread_gpt2(name, inputs, depth):
    return 0.02 / math.sqrt(2 * depth) if name == "c_proj" else 0.02


def stack(place, depth, spread, stream_size, seed):
    """Three numbers a layer: the gradient of mlp.c_proj.weight, the one that reaches resid_post, and the size of resid_post."""
    torch.manual_seed(seed)
    layers = [(Attention({"n_embd": C, "n_head": HEADS}), MLP({"n_embd": C})) for _ in range(depth)]
    for sublayer in (sublayer for layer in layers for sublayer in layer):
        for name, projection in sublayer.named_children():
            torch.nn.init.normal_(projection.weight, std=spread(name, projection.weight.shape[0], depth))
    wte = stream_size * torch.randn(LETTERS, C)
    unembedding = torch.randn(C, LETTERS) / math.sqrt(C)
    ids = torch.randint(LETTERS, (TEXTS, T + 1))
    states = [wte[ids[:, :-1]]]
    for attn, mlp in layers:
        states.append(place(place(states[-1], attn, norm), mlp, norm))
    last = norm(states[-1]) if place is pre_norm else states[-1]
    loss = F.cross_entropy((last @ unembedding).flatten(0, 1), ids[:, 1:].flatten())
    reached = torch.autograd.grad(loss, [*(mlp.c_proj.weight for _, mlp in layers), *states[1:]])
    lengths = torch.stack([gradient.norm() for gradient in reached])
    sizes = torch.stack([state.detach().square().mean().sqrt() for state in states[1:]])
    return torch.stack([lengths[:depth], lengths[depth:], sizes])


def stacks(spread, stream_size):
    """(placement, depth) -> what `stack` measures with each seed, (SEEDS, 3, depth)."""
    return {
        (place.__name__, depth): torch.stack([stack(place, depth, spread, stream_size, seed) for seed in range(SEEDS)])
        for place in (pre_norm, post_norm)
        for depth in DEPTHS
    }


def typical(runs):
    """The geometric mean over the seeds."""
    return runs.log().mean(0).exp()


kept = stacks(spread_1, 1.0)
COLOURS = {"pre_norm": BLUE, "post_norm": RED}


def curves(axes, runs, which, ticks, **texts):
    for (place, depth), seeds in runs.items():
        label = place if depth == DEPTHS[-1] else None
        alpha = 0.3 + 0.7 * depth / DEPTHS[-1]
        axes.plot(typical(seeds)[which], ".-", color=COLOURS[place], alpha=alpha, lw=1, ms=4, label=label)
    axes.set(xlabel="layer", yscale="log", ylim=(ticks[0], ticks[-1]), **texts)
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()


figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.2), layout="constrained")
GRADIENT = "length of the gradient (nats per unit)"
curves(left, kept, 0, (0.125, 0.25, 0.5, 1, 2, 4), ylabel=GRADIENT, title="gradient of mlp.c_proj.weight")
for place, drawing in (("pre_norm", my_pre), ("post_norm", my_post)):
    if drawing is not ...:
        drawn = torch.tensor(drawing) * typical(kept[place, 24])[0, -1]
        left.plot([0, 6, 12, 18, 23], drawn, "--", color=COLOURS[place], label=f"{place}, your drawing")
curves(right, kept, 2, (0.5, 1, 2, 4, 8), ylabel="root mean square of resid_post (no unit)", title="size of the stream")
left.legend(frameon=False)
plt.show()
pre, post = typical(kept["pre_norm", 24])[0], typical(kept["post_norm", 24])[0]
places = [0, 6, 12, 18, 23]
lab.measured("pre-norm, 24 layers: the gradient's curve", [round(x, 2) for x in (pre[places] / pre[-1]).tolist()])
lab.measured("post-norm, 24 layers: the gradient's curve", [round(x, 2) for x in (post[places] / post[-1]).tolist()])
lab.measured("gradient at the last of 24 layers: post-norm over pre-norm", (post[-1] / pre[-1]).item())

# %% [markdown]
# Measured (geometric means over 8 seeds): under pre-norm the gradient falls from the first layer to the last, by a factor of
# 1.7 with 4 layers, 3.0 with 12 and 3.9 with 24, and it falls with every seed. The stream grows from 1.3 to 5.2, and each
# norm that reads it divides what comes back by its size. Under post-norm every layer hands on rows of size 1, and the curve
# has no direction that the seeds agree on: with 24 layers the first layer's gradient is 0.7 to 3.9 times the last one's.
#
# At the last layer the two differ by 4.5. Post-norm has 1.1, 1.3 and 1.2 there with 4, 12 and 24 layers; pre-norm has 0.67,
# 0.40 and 0.26, less the deeper the stack, because the larger the stream is that its last norm divides by. That is what
# theorem 1 of Xiong et al. 2020 says of the last layer: a bound without L under post-norm, one that falls as 1/sqrt(L) under
# pre-norm.
#
# ## The same stacks, started as GPT-2 is
#
# GPT-2 starts its tables and matrices with a spread of 0.02, and what writes into the stream (each `c_proj`) smaller still,
# by 1/sqrt(2L). The stream then starts at size 0.02 in place of 1, and so are the writes. How do the two stacks compare now
# at the first layer's matrix?

# %%
lab.predict("GPT-2's start, 24 layers: pre-norm over post-norm at layer 0", ...)

# %%
started = stacks(spread_gpt2, 0.02)
figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.2), layout="constrained")
curves(left, started, 0, (0.1, 1, 10), ylabel=GRADIENT, title="gradient of mlp.c_proj.weight, GPT-2's start")
left.legend(frameon=False, loc="center")
for runs, style, what in ((kept, "-", "spread 1/sqrt(inputs)"), (started, "--", "GPT-2's start")):
    for place in ("pre_norm", "post_norm"):
        product = typical(runs[place, 24])[1:].prod(0)
        right.plot(product / product[-1], style, color=COLOURS[place], label=f"{place}, {what}")
right.set(xlabel="layer", ylabel="multiples of layer 23", ylim=(0, None), title="gradient at resid_post times its size")
right.legend(frameon=False, fontsize=7)
plt.show()
for start, runs in (("spread 1/sqrt(inputs)", kept), ("GPT-2's start", started)):
    for (place, depth), seeds in runs.items():
        (matrix, _, size), ratios = typical(seeds), seeds[:, 0, 0] / seeds[:, 0, -1]
        print(
            f"{start:21}  {place:9}  {depth:2} layers   gradient of the first {matrix[0]:.3f}, of the last {matrix[-1]:.3f} "
            f"(first over last {ratios.min():.2f} to {ratios.max():.2f})   size of the stream {size[0]:.3f} to {size[-1]:.3f}"
        )
lab.measured(
    "GPT-2's start, 24 layers: pre-norm over post-norm at layer 0",
    (typical(started["pre_norm", 24])[0, 0] / typical(started["post_norm", 24])[0, 0]).item(),
)

# %% [markdown]
# Under GPT-2's start the pre-norm gradients are 50 times the post-norm ones, 8.1 against 0.16 at layer 0, and both curves are
# nearly flat: with 24 layers, first over last is 1.4 and 1.0. The 50 is 1/0.02. The pre-norm stream goes from 0.020 to 0.028,
# and its norms divide by that; the post-norm stream has size 1 from the first norm on, and the writes are too small to change
# it.
#
# So "which layer hears the loss" has no answer for pre-norm or post-norm alone: the start decides as much. On the right
# stands what the size explains. Under pre-norm, the gradient that reaches `resid_post` times the size of `resid_post` stays
# between 0.7 and 1.0 of its last value, whichever the start, while the gradient alone differs by a factor of 3. Under
# post-norm with the large start the size is 1 everywhere, and what moves there (0.6 to 1.8) comes from the sublayers.
#
# ## How large is the stream of a trained model?
#
# The small GPT-2 (5 layers, 128 channels) reads a help text that it was not trained on. Its stream starts with the embedding
# and is never normalised on the way; `ln_f` is the one norm that it passes in the end. You measure the size of each row (the
# root of its mean square) after each layer, and how much of the mean square is the squared mean: the part that `layer_norm`
# takes away and `rms_norm` leaves in. A row of 128 independent numbers with mean 0 would have 1/128 = 0.8 % there.

# %%
lab.predict("size of resid_post after the last layer over the size of the embedding", ...)
lab.predict("largest row after the last layer over the smallest", ...)
lab.predict("share of the mean in a row's mean square after the last layer", ...)

# %%
from pydoc_data.topics import topics

model, tokenizer = lab.model()
model.requires_grad_(False)
L = model.config["n_layer"]
ids = torch.tensor(tokenizer.encode(topics["attribute-access"])[: 8 * 256 + 1])
inputs, targets = ids[:-1].view(8, 256), ids[1:].view(8, 256)
record = {}
model(inputs, record)
names = ["h.0.resid_pre"] + [f"h.{i}.resid_post" for i in range(L)] + ["ln_f"]
labels = ["embedding"] + [f"layer {i}" for i in range(L)] + ["ln_f"]
size = torch.stack([record[name].square().mean(-1).sqrt() for name in names])  # (states, B, T)
share = torch.stack([record[name].mean(-1).square() for name in names]) / size.square()

figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3), layout="constrained")
middle, low, high = size.mean((1, 2)), size.amin((1, 2)), size.amax((1, 2))
left.errorbar(
    range(len(names)), middle, [middle - low, high - middle], fmt="o", color=BLUE, capsize=3, label="mean; smallest to largest"
)
left.plot(size[:, :, 0].mean(1), "^", color=RED, label="rows at position 0")
left.set(ylabel="root mean square (no unit)", title="size of the rows", ylim=(0, None))
left.legend(frameon=False)
right.plot(share.mean((1, 2)) * 100, "o", color=BLUE)
right.axhline(100 / 128, color="black", lw=0.8, ls=":")
right.text(len(names) - 1, 100 / 128, "independent numbers", ha="right", va="bottom")
right.set(ylabel="share of the mean (%)", title="what rms_norm leaves in", ylim=(0, 1))
for panel in (left, right):
    panel.set_xticks(range(len(names)), labels, rotation=35, ha="right")
plt.show()
for label, s, m in zip(labels, size, share):
    print(
        f"{label:9}  size {s.mean():.2f} ({s.min():.2f} to {s.max():.2f}), position 0 {s[:, 0].mean():.2f}; mean {m.mean():.3%}"
    )
lab.measured("size of resid_post after the last layer over the size of the embedding", (middle[L] / middle[0]).item())
lab.measured("largest row after the last layer over the smallest", (high[L] / low[L]).item())
lab.measured("share of the mean in a row's mean square after the last layer", share[L].mean().item())

# %% [markdown]
# Measured: the stream grows from 0.11 to 2.4, 22 times. `ln_f` makes rows of size 1.8 to 2.2 of rows of size 1.7 to 3.7 (its
# gain is about 2). Rows at position 0 are larger than all others after layers 1, 2 and 3. Layer 0 does the most: it takes
# 0.11 to 1.1.
#
# The mean is 0.03 % of a row's mean square, thirty times *less* than independent numbers would have. No sublayer and no logit
# can see it: each norm subtracts it. A part of the stream that nothing reads gets no gradient; that weight decay then removed
# it is a guess, which this notebook does not test.
#
# ## Take something away from the norms
#
# The trained weights stay as they are; only the 11 norms change, with no training afterwards:
#
# - **rms**: your `rms_norm` in place of `layer_norm`, with the same gain, and the same bias added behind it;
# - **rms, means removed**: the same, and every write into the stream (embedding, `attn_out`, `mlp_out`) loses its mean first;
# - **fixed size**: the mean goes as before, but each norm divides all rows by one number, the average size that it meets in
#   this very text. The rows no longer get a size of their own.
#
# The loss as trained is about 2.8 nats a token on this text; ln V = 7.1 is the loss of a model that knows nothing.

# %%
lab.predict("loss with rms_norm, in nats a token", ...)
lab.predict("largest change of a logit with rms_norm and means removed", ...)
lab.predict("loss with 11 fixed sizes, in nats a token", ...)
lab.predict("the norm that costs most when it alone has a fixed size (such as 'h.2.ln_1')", ...)

# %%
norms = {f"h.{i}.{name}": getattr(model.h[i], name) for i in range(L) for name in ("ln_1", "ln_2")} | {"ln_f": model.ln_f}
read = [f"h.{i}.resid_{part}" for i in range(L) for part in ("pre", "mid")] + [f"h.{L - 1}.resid_post"]
average = {name: record[where].var(-1, correction=0).sqrt().mean() for name, where in zip(norms, read, strict=True)}


def trained(name, x):
    return layer_norm(x, norms[name].weight, norms[name].bias)


def root_mean_square(name, x):
    return rms_norm(x, norms[name].weight) + norms[name].bias


def fixed(name, x):
    return (x - x.mean(-1, keepdim=True)) / average[name] * norms[name].weight + norms[name].bias


def run(read, write=lambda x: x):
    """Logits and loss of the trained model when read(name, x) does the work of each norm."""
    x = write(model.wte(inputs) + model.wpe.weight)
    for i, block in enumerate(model.h):
        x = pre_norm(x, lambda y: write(block.attn(y)), lambda y: read(f"h.{i}.ln_1", y))
        x = pre_norm(x, lambda y: write(block.mlp(y)), lambda y: read(f"h.{i}.ln_2", y))
    logits = read("ln_f", x) @ model.wte.weight.T
    ends.append(x.square().mean(-1).sqrt())
    return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()


ends = []  # the sizes of the rows that reach ln_f, run by run
logits, as_trained = run(trained)
_, rms = run(root_mean_square)
centred, rms_centred = run(root_mean_square, write=lambda x: x - x.mean(-1, keepdim=True))
_, all_fixed = run(fixed)
for name, sizes in (("as trained", ends[0]), ("fixed sizes", ends[3])):
    print(f"{name}: rows that reach ln_f have size {sizes.median():.2f} (median), {sizes.min():.2f} to {sizes.max():.2f}")
alone = [run(lambda name, x: (fixed if name == chosen else trained)(name, x))[1] - as_trained for chosen in norms]

print(f"as trained {as_trained:.4f}, rms {rms:.4f}, rms with means removed {rms_centred:.4f}, fixed sizes {all_fixed:.2f}")
figure, axes = plt.subplots(figsize=(7, 2.8), layout="constrained")
bars = axes.bar(list(norms), alone, color=BLUE)
axes.bar_label(bars, fmt="%.2f", fontsize=8)
axes.set(ylabel="loss added (nats a token)", title="one norm that divides every row by the same number")
axes.tick_params(axis="x", rotation=35)
plt.show()
lab.measured("loss with rms_norm, in nats a token", rms)
lab.measured("largest change of a logit with rms_norm and means removed", (centred - logits).abs().max().item())
lab.measured("loss with 11 fixed sizes, in nats a token", all_fixed)
worst = max(range(len(alone)), key=alone.__getitem__)
lab.measured("the norm that costs most when it alone has a fixed size (such as 'h.2.ln_1')", list(norms)[worst])

# %% [markdown]
# Measured: 2.8202 as trained, 2.8196 with `rms_norm`, 2.8202 again with `rms_norm` and the means removed, where the logits
# differ by 0.00002. That last one is no accident: on rows with mean 0 the two norms are the same function, and a write
# without its mean leaves every `layer_norm` behind it where it was. That the means hardly matter without it, too, is a fact
# about this model.
#
# The row's own size does matter. A single norm with a fixed size costs 0.01 to 0.06 nats, `h.1.ln_1` costs 0.37, and together
# they do not cost the sum, 0.6, but 10.9 nats: the loss is 13.7, far worse than knowing nothing. A row that comes in too
# large now makes writes that are too large, and nothing downstream takes that back: the rows that reach `ln_f` have size 5.9
# (median) in place of 2.4, and up to 23.
#
# ## Your functions

# %%
lab.check("layer_norm")

# %%
lab.check("rms_norm")

# %%
lab.check("pre_norm")

# %%
lab.check("post_norm")

# %% [markdown]
# ## What this does not show
#
# - *That pre-norm trains better, or post-norm worse.* Nothing was trained in the stacks. A gradient's length at step 0 says
#   nothing of step 1,000, and an optimizer such as Adam divides by it.
# - *What other shapes do.* C = 64, random tokens, attention and MLP as in GPT-2, two starts. Another start gave another
#   picture; so may another width, a trained embedding or a longer text. One matrix of each layer was measured.
# - *That the mean never matters.* It has almost no share in this one trained stream, and the loss stayed where it was on one
#   text. A model trained with `rms_norm` is free to use the mean; this one was trained without being able to.
# - *That a norm could be left out after training.* The fixed sizes were taken from this very text, the best case for them,
#   and the loss says what happens without adaptation; trained further, the model might get used to it.
