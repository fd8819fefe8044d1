# %% [markdown]
# # 08 · RoPE: a score that knows only the distance
#
# *Queries and keys are turned by an angle that grows with the position. What does a score keep of the two positions, what of
# their distance, and does it really get smaller when the distance grows?*
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it. Figures in the
# text are from a run of this notebook and rounded.
#
# The small GPT-2 has learned positions; no model here was trained with rotary ones. What you borrow from it are real queries
# and keys. What becomes of a loss cannot be asked here.

# %%
# %matplotlib inline
import math

import matplotlib.pyplot as plt
import torch

from autograder.lab import Lab

lab = Lab("08_rope")
from attention import attention_scores, softmax, split_heads
from masking import causal_mask, mask_scores
from rope import interleaved_to_half, rope_cos_sin, rope_frequencies, rotate_half, rotate_interleaved

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
BLUE, RED, GREEN, PURPLE = "#3b6ea5", "#c1440e", "#7a9e3f", "#8a6bb8"
model, tokenizer = lab.model()
model.requires_grad_(False)
L, C, H, T = (model.config[size] for size in ("n_layer", "n_embd", "n_head", "n_ctx"))
D = C // H
print(f"the small GPT-2: L = {L} layers, H = {H} heads of D = {D}, so {D // 2} pairs a head; T = {T} positions")

# %% [markdown]
# ## A clock with D/2 hands
#
# Each pair of channels is a hand that starts at 3 o'clock and turns by its own frequency from one position to the next,
# anticlockwise. The picture shows the four hands of D = 8, the fastest shortest. A head of the small model would have 16. How
# many of the 16 come round at least once within its 256 positions?

# %%
lab.predict("hands of D = 32 that come round within 256 positions", ...)

# %%
times = [0, 1, 2, 3, 10, 100, 1000]
cos, sin = rope_cos_sin(torch.tensor(times), rope_frequencies(8))
figure, dials = plt.subplots(1, len(times), figsize=(7.8, 1.75), layout="constrained")
for t, dial in enumerate(dials):
    dial.add_patch(plt.Circle((0, 0), 1, fill=False, color="lightgray"))
    for i, color in enumerate((RED, BLUE, GREEN, PURPLE)):
        reach = 0.4 + 0.2 * i
        label = f"pair {i}, {rope_frequencies(8)[i]:g} radians a position"
        dial.plot([0, reach * cos[t, i]], [0, reach * sin[t, i]], color=color, lw=2.5 - 0.5 * i, label=label)
    dial.set(xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), aspect="equal", title=f"position {times[t]}")
    dial.axis("off")
figure.legend(*dials[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=7.5)
plt.show()
frequencies = rope_frequencies(D)
rounds = frequencies * T / (2 * math.pi)
print("rounds in 256 positions, pair by pair: " + "  ".join(f"{r:.3g}" for r in rounds.tolist()))
lab.measured("hands of D = 32 that come round within 256 positions", int((rounds >= 1).sum()))

# %% [markdown]
# ## One token, repeated
#
# A text of 48 times the token " the". Its queries and keys differ by position alone. On the left you see the scores of one
# head of the small model's layer 0 with its own, learned positions. On the right the same head reads the token's row without
# any position added, and your `rotate_interleaved` turns q and k. Along a diagonal the distance is constant. By how much does
# a score move along one?

# %%
lab.predict("learned positions: largest minus smallest score along one diagonal", ...)
lab.predict("rotary positions: largest minus smallest score along one diagonal", ...)

# %%
FULL = rope_frequencies(D)


def rotated(q, k, positions, rotate_q=rotate_interleaved, rotate_k=rotate_interleaved):
    """Scores of queries and keys turned at the same positions."""
    table = rope_cos_sin(positions, FULL)
    return attention_scores(rotate_q(q, *table), rotate_k(k, *table))


def first_layer(x):
    """q and k that layer 0 makes of a stream (1,T,C)."""
    q, k, _ = model.h[0].attn.c_attn(model.h[0].ln_1(x)).chunk(3, dim=-1)
    return split_heads(q, H), split_heads(k, H)


N, HEAD = 48, 1
(word,) = tokenizer.encode(" the")
row = model.wte.weight[word].expand(1, N, C)
learned = attention_scores(*first_layer(row + model.wpe.weight[:N]))[0, HEAD]
rotary = rotated(*first_layer(row), torch.arange(N))[0, HEAD]


def along_diagonals(scores):
    """The largest range of the scores that stand at one distance, readers not before keys."""
    return max((d.max() - d.min()).item() for d in (scores.diagonal(-distance) for distance in range(N)))


figure, panels = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained")
for panel, scores, title in ((panels[0], learned, "learned positions"), (panels[1], rotary, "rotary positions")):
    picture = panel.imshow(scores, cmap="PuOr")
    panel.set(xlabel="position of the key", ylabel="position of the query", title=title)
    figure.colorbar(picture, ax=panel, label="score (no unit)")
figure.suptitle(f"the same token at every position, layer 0, head {HEAD}", fontsize=10)
plt.show()
lab.measured("learned positions: largest minus smallest score along one diagonal", along_diagonals(learned))
lab.measured("rotary positions: largest minus smallest score along one diagonal", along_diagonals(rotary))

# %% [markdown]
# ## Shift everything
#
# All q and k of the small model on 256 tokens of a help text, 20 heads, are turned at positions 0, 1, 2, ... and once more
# with a constant added to all positions. On paper no score changes. The tables are float32, where numbers near 100,000 stand
# 0.008 apart, and the angle of the fastest pair is the position itself. What is the largest change of a score (they spread by
# 0.9 to 4.3)?
#
# For comparison you do the same with positions that were rounded to bfloat16 before you tabulated them.

# %%
lab.predict("largest change for 10 added", ...)
lab.predict("largest change for 1,000 added", ...)
lab.predict("largest change for 100,000 added", ...)
lab.predict("largest change for 1,000 added, positions counted in bfloat16", ...)

# %%
from pydoc_data.topics import topics

ids = torch.tensor([tokenizer.encode(topics["attribute-access"])[:T]])
record = {}
model(ids, record)
q, k = (torch.cat([record[f"h.{i}.attn.{part}"] for i in range(L)]) for part in "qk")  # (L,H,T,D)
place = torch.arange(T)
unshifted = rotated(q, k, place)


def change(shift, counted=torch.int64):
    """The largest change of a score when the shift is added to all positions, which are then counted in a dtype."""
    positions = (place + shift).to(counted).to(torch.int64)
    return (rotated(q, k, positions) - unshifted).abs().max().item()


shifts = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000]
figure, axes = plt.subplots(figsize=(5.4, 3), layout="constrained")
for counted, color, label in ((torch.int64, BLUE, "float32 tables"), (torch.bfloat16, RED, "positions counted in bfloat16")):
    axes.loglog(shifts, [change(shift, counted) for shift in shifts], "o-", color=color, label=label)
axes.axhline(unshifted.std(), color="black", lw=0.8, ls=":")
axes.text(shifts[-1], unshifted.std() / 2.5, "spread of the scores", ha="right")
axes.set(xlabel="added to all positions", ylabel="largest change of a score (no unit)", ylim=(1e-5, 200))
axes.set_title("on paper none of this is there")
axes.legend(frameon=False, loc="center left")
plt.show()
print(f"the scores spread by {unshifted.std():.2f}, layer by layer by " + " ".join(f"{x.std():.2f}" for x in unshifted))
for shift in shifts:
    print(f"{shift:9,} added: {change(shift):.1e}, counted in bfloat16 {change(shift, torch.bfloat16):.1e}")
for shift in (10, 1000, 100_000):
    lab.measured(f"largest change for {shift:,} added", change(shift))
lab.measured("largest change for 1,000 added, positions counted in bfloat16", change(1000, torch.bfloat16))

# %% [markdown]
# Measured: 0.00005 for 10 added, 0.0002 for 1,000, 0.016 for 100,000. That is rounding of the angles; from 1,000 on it grows
# with the shift. Counted in bfloat16, 1 added does no harm, because the positions end at 256, the last whole number before
# the gaps begin. With 10 added neighbours share an angle, and a score moves by 8, three times what all scores spread by.
#
# ## Score against distance
#
# The lesson's curve is for q = k = 64 ones: all pairs start in step, the score is as large as it can be, and every turn can
# only take from it. It is often shown as the reason why rotary scores "decay with the distance". You draw it for base 10,000
# and for base 500,000 (Llama 3). At which distance does each fall below 0 for the first time?
#
# Then real heads: 200 pairs of a query and an earlier key from the help text for each of the 20 heads. The token pair stays
# the same; you turn its query to the distances 0 to 255. For each head you plot the mean over its 200 pairs. And for each of
# the 4,000 pairs you ask at which distance its score is largest.
#
# Draw the mean curve of layer 2, head 0: five numbers for the distances 0, 10, 50, 100 and 255.

# %%
lab.predict("first distance with a score below 0, base 10,000", ...)
lab.predict("first distance with a score below 0, base 500,000", ...)
my_curve = ...  # such as [8, 6, 4, 3, 2]
lab.predict("layer 2, head 0: mean score at distances 0, 10, 50, 100, 255", my_curve)
lab.predict("share of real pairs whose score is largest at distance 0", ...)


# %%
def against_distance(query, key, distances, base):
    """The score (..., distances) of each query (...,D) that stands a distance behind its key (...,D)."""
    table = rope_cos_sin(distances, rope_frequencies(query.shape[-1], base))
    turned = rotate_interleaved(query[..., None, :].expand(*query.shape[:-1], len(distances), -1), *table)
    return (turned @ key[..., None])[..., 0] / math.sqrt(query.shape[-1])


ones, far, near = torch.ones(64), torch.arange(20_001), torch.arange(T)
BASES = {10_000: BLUE, 500_000: RED}
generator = torch.Generator().manual_seed(0)
readers = torch.randint(64, T, (L, 200), generator=generator)
earlier = (torch.rand(L, 200, generator=generator) * readers).long()
pairs = [(q[i][:, readers[i]], k[i][:, earlier[i]]) for i in range(L)]  # (H,200,D) each
real = {base: torch.stack([against_distance(*pair, near, base) for pair in pairs]) for base in BASES}  # (L,H,200,T)

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(8.2, 3), layout="constrained")
for base, color in BASES.items():
    curve = against_distance(ones, ones, far, base)
    left.plot(far[1:], curve[1:], color=color, lw=1, label=f"base {base:,}")
    below = int((curve < 0).nonzero()[0])
    lab.measured(f"first distance with a score below 0, base {base:,}", below)
left.axhline(0, color="black", lw=0.6)
left.set(xscale="log", xlabel="distance (positions)", ylabel="score (no unit)", title="64 ones against 64 ones")
left.legend(frameon=False)
means = real[10_000].mean(2)
for layer in range(L):
    for head in range(H):
        middle.plot(near, means[layer, head], color="silver", lw=0.7)
middle.plot(near, means[2, 0], color=BLUE, label="layer 2, head 0")
if my_curve is not ...:
    middle.plot([0, 10, 50, 100, 255], my_curve, "--", color=GREEN, label="your drawing")
middle.axhline(0, color="black", lw=0.6)
middle.set(xlabel="distance (positions)", ylabel="mean score (no unit)", title="20 real heads")
middle.legend(frameon=False, loc="lower right")
largest = real[10_000].argmax(-1)
right.hist(largest.flatten().tolist(), bins=32, range=(0, T), color=BLUE, weights=[100 / largest.numel()] * largest.numel())
right.set(xlabel="distance (positions)", ylabel="real pairs (%)", title="where a score is largest")
plt.show()
chosen = [round(x, 1) for x in means[2, 0, [0, 10, 50, 100, 255]].tolist()]
lab.measured("layer 2, head 0: mean score at distances 0, 10, 50, 100, 255", chosen)
lab.measured("share of real pairs whose score is largest at distance 0", (largest == 0).float().mean().item())
for base, scores in real.items():
    start, end = scores.mean(2)[..., 0], scores.mean(2)[..., 255]
    sizes = ", ".join(f"{scores[..., distance].abs().mean():.2f}" for distance in (0, 10, 100, 255))
    print(f"base {base:,}: of 20 mean curves {int((start < 0).sum())} start below 0, {int((end > start).sum())} end above that")
    print(f"base {base:,}: mean of |score| at distance 0, 10, 100, 255: {sizes}")

# %% [markdown]
# Measured: the curve of the ones falls below 0 at distance 725 with base 10,000 and at 9,937 with base 500,000. The real
# heads do something else. 19 of the 20 mean curves start below 0 and 18 end above their start: layer 2, head 0 goes from -8.4
# at distance 0 to -1.6 at 255. 6 % of the pairs score highest at distance 0 (1/256 = 0.4 % would be chance).
#
# What shrinks is the agreement of the hands, for better or worse: the mean of |score| falls from 3.6 to 2.35 within ten
# positions, is 2.32 at 100 and 1.4 at 255. If q and k agree in most pairs, turning takes from the score; if they disagree,
# turning adds to it. The ones are the case of perfect agreement, and a head is free to learn another.
#
# ## The wrong partner
#
# Weights that were made for neighbouring pairs, with three ways to turn what they give: neighbours (right); halves after
# `interleaved_to_half` on the q and k columns of the weights; and the mix-ups, halves on the unsorted weights, and q by
# neighbours with k by halves. You compare attention patterns (causal) with the right one: how much of each reader's one unit
# of attention moves elsewhere, averaged over readers and heads?

# %%
lab.predict("attention that moves with sorted weights and halves", ...)
lab.predict("attention that moves with unsorted weights and halves", ...)
lab.predict("attention that moves with q by neighbours and k by halves", ...)


# %%
def sorted_part(layer, part):
    """q (part 0) or k (part 1) of a layer from weights whose columns were sorted for halves."""
    attn, columns = model.h[layer].attn, slice(part * C, (part + 1) * C)
    weight, bias = (interleaved_to_half(w[..., columns], H) for w in (attn.c_attn.weight, attn.c_attn.bias))
    return split_heads(record[f"h.{layer}.ln_1"] @ weight + bias, H)


q_sorted, k_sorted = (torch.cat([sorted_part(layer, part) for layer in range(L)]) for part in (0, 1))
runs = {
    "sorted weights, halves": rotated(q_sorted, k_sorted, place, rotate_half, rotate_half),
    "unsorted weights, halves": rotated(q, k, place, rotate_half, rotate_half),
    "q neighbours, k halves": rotated(q, k, place, rotate_interleaved, rotate_half),
}


def pattern(scores):
    return softmax(mask_scores(scores, causal_mask(T)), dim=-1)


moved = {name: (pattern(scores) - pattern(unshifted)).abs().sum(-1).mean((1, 2)) / 2 for name, scores in runs.items()}
figure, axes = plt.subplots(figsize=(6, 2.8), layout="constrained")
for number, ((name, shares), color) in enumerate(zip(moved.items(), (GREEN, BLUE, RED))):
    axes.bar(torch.arange(L) + (number - 1) * 0.27, shares, 0.25, color=color, label=name)
axes.set(xlabel="layer", ylabel="attention that moves\n(share of 1)", title="what a wrong partner moves", ylim=(0, 0.8))
figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
plt.show()
print(f"largest change of a score with sorted weights and halves: {(runs['sorted weights, halves'] - unshifted).abs().max():.0e}")
asked = ("sorted weights and halves", "unsorted weights and halves", "q by neighbours and k by halves")
for name, shares in zip(asked, moved.values(), strict=True):
    lab.measured(f"attention that moves with {name}", shares.mean().item())

# %% [markdown]
# Measured: with sorted weights nothing moves (0.0000001; no score by more than 0.00001). Halves on unsorted weights move 39 %
# of the attention, mixed pairings 52 %, and in layers 2 to 4 up to 70 %. The 39 % are not noise: such scores still depend on
# the distance alone. They are another function of it than the one that the weights were made for. The mixed ones depend on
# both positions.
#
# ## Your functions

# %%
lab.check("rope_frequencies")

# %%
lab.check("rope_cos_sin")

# %%
lab.check("rotate_interleaved")

# %%
lab.check("rotate_half")

# %%
lab.check("interleaved_to_half")

# %% [markdown]
# ## What this does not show
#
# - *What a model trained with rotary positions does.* Its queries and keys would have been made for the angles. The heads
#   here were made for learned positions, and part of those is still in the q and k that you turned (all but the repeated
#   token).
# - *That far tokens are forgotten, or near ones preferred.* Turning alone does neither: see the twenty curves.
# - *That a larger base reads longer texts.* The curve of the ones stays above 0 for longer. Whether a model uses that is a
#   question about training.
# - *That 0.016 is harmless.* It is small beside scores that spread by 3. How much of a loss hangs on it, you did not measure;
#   and a model in 16 bits rounds q and k besides.
