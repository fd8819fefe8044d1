# %% [markdown]
# # 04 · Masking: what a reader may know, and what leaks when the mask comes late
#
# *Which of these mistakes makes the loss better, which makes it worse, and which changes nothing that you would notice?*
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it.

# %%
# %matplotlib inline
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from autograder.lab import Lab
from autograder.plots import AttentionViewer, View

lab = Lab("04_masking")
from attention import attention_scores, merge_heads, softmax, split_heads
from masking import causal_mask, causal_self_attention, mask_scores, masked_attention, padding_mask

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
model, tokenizer = lab.model()
L, H, V = (model.config[size] for size in ("n_layer", "n_head", "vocab_size"))
COLOURS = {"right": "#3b6ea5", "late": "#c1440e", "one ahead": "#7a9e3f", "none": "#8a6bb8"}


def readers(T):
    """Four ways to attend over T positions: name -> function of q, k, v that gives z."""
    causal = causal_mask(T)
    ahead = causal_mask(T + 1)[1:, :T]  # row i may also see column i + 1
    everything = torch.ones(T, T, dtype=torch.bool)
    return {
        "right": lambda q, k, v: masked_attention(q, k, v, causal),
        "late": lambda q, k, v: (softmax(attention_scores(q, k), dim=-1) * causal) @ v,  # the mask behind the softmax
        "one ahead": lambda q, k, v: masked_attention(q, k, v, ahead),
        "none": lambda q, k, v: masked_attention(q, k, v, everything),
    }


# %% [markdown]
# ## Text that nobody can predict
#
# One attention layer learns on tokens drawn uniformly from 16, fresh at every step (T = 8, C = 32, H = 2, 64 texts a step, 400
# steps). Nothing can be known about the next token, so no honest loss is below ln 16 = 2.77 nats. It trains once with each of
# the four readers above. The lesson has the figures for "one ahead" and "none": both copy the answer.
#
# "late" takes the softmax over all positions and then multiplies the shares of the future by 0. No value of a later position
# is ever read; the shares of the past are just a little too small. What loss does it reach?

# %%
lab.predict("loss with the late mask, in nats a token", ...)

# %%
T, C, HEADS, LETTERS, TEXTS, STEPS = 8, 32, 2, 16, 64, 400


def train(reader):
    """The loss of each step, and of each position over the last 50 steps, in nats."""
    noise = torch.Generator().manual_seed(0)
    sizes = [(LETTERS, C), (T, C), (C, 3 * C), (C, C), (C, LETTERS)]
    wte, wpe, c_attn_w, c_proj_w, head = weights = [
        (0.3 * torch.randn(size, generator=noise) / (math.sqrt(C) if size[0] == C else 1)).requires_grad_() for size in sizes
    ]
    optimizer = torch.optim.Adam(weights, lr=0.01)
    losses = []
    for _ in range(STEPS):
        ids = torch.randint(LETTERS, (TEXTS, T + 1), generator=noise)
        x = wte[ids[:, :-1]] + wpe
        q, k, v = (split_heads(part, HEADS) for part in (x @ c_attn_w).chunk(3, dim=-1))
        logits = (x + merge_heads(reader(q, k, v)) @ c_proj_w) @ head
        loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten(), reduction="none").view(TEXTS, T).mean(0)
        optimizer.zero_grad()
        loss.mean().backward()
        optimizer.step()
        losses.append(loss.detach())
    losses = torch.stack(losses)
    return losses.mean(1), losses[-50:].mean(0)


trained = {name: train(reader) for name, reader in readers(T).items()}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3), layout="constrained")
for name, (curve, places) in trained.items():
    left.plot(curve, color=COLOURS[name], label=name, linestyle="--" if name == "none" else "-")
    right.plot(places, "o--" if name == "none" else "o-", color=COLOURS[name])
    print(f"{name:9}  loss over the last 50 steps {places.mean():.3f}, by position " + " ".join(f"{one:.2f}" for one in places))
for panel in (left, right):
    panel.axhline(math.log(LETTERS), color="black", linewidth=0.8, linestyle=":")
    panel.set(ylabel="loss (nats a token)", ylim=(0, 3.3))
left.text(STEPS, math.log(LETTERS) + 0.08, "ln 16: nothing is known", ha="right")
left.set(xlabel="step", title="training on tokens drawn at random")
right.set(xlabel="position", title="where the loss falls, last 50 steps")
figure.legend(*left.get_legend_handles_labels(), title="mask", loc="outside right center", frameon=False)
plt.show()
lab.measured("loss with the late mask, in nats a token", trained["late"][1].mean().item())

# %% [markdown]
# Where does the late mask get it from? The shares of a row still sum to 1 over *all* positions. What is left for the past is 1
# minus what the future took, and that depends on which token comes next: a number of the future, written into the size of z.
# The last position has no future among the inputs. Look at its loss.
#
# ## The same four readers in a model that was trained with the right one
#
# The small model reads a help text that it was not trained on, in pieces of 128 tokens, and its attention is yours: your
# functions, its weights. Does its loss fall, too, when it may look one position ahead?

# %%
lab.predict("loss with the right mask, in nats a token", ...)
lab.predict("loss when it sees one position ahead", ...)
lab.predict("loss when it sees everything", ...)

# %%
from pydoc_data.topics import topics

ids = torch.tensor(tokenizer.encode(topics["attribute-access"])[: 8 * 129]).view(8, 129)
inputs, targets = ids[:, :-1], ids[:, 1:]


@torch.no_grad()
def log_probs(ids, self_attention, positions=None):
    """The model's log-probabilities (B,T,V) when self_attention(x, attn) takes the place of each layer's attention."""
    positions = torch.arange(ids.shape[1]) if positions is None else positions
    resid = model.wte(ids) + model.wpe(positions)
    for block in model.h:
        resid = resid + self_attention(block.ln_1(resid), block.attn)
        resid = resid + block.mlp(block.ln_2(resid))
    return F.log_softmax(model.ln_f(resid) @ model.wte.weight.T, dim=-1)


def reading_as(reader):
    """Self-attention with a layer's own weights around a function of q, k, v."""

    def self_attention(x, attn):
        q, k, v = (split_heads(part, H) for part in attn.c_attn(x).chunk(3, dim=-1))
        return attn.c_proj(merge_heads(reader(q, k, v)))

    return self_attention


def nats(log_probs, targets):
    """The loss of every position, (B,T)."""
    return -log_probs.gather(-1, targets[..., None])[..., 0]


read = {name: log_probs(inputs, reading_as(reader)) for name, reader in readers(128).items()}
with torch.no_grad():
    apart = (F.log_softmax(model(inputs), dim=-1) - read["right"]).abs().max().item()
print(f"with your causal mask the log-probabilities are the model's own up to {apart:.1g}")
figure, axes = plt.subplots(figsize=(6.5, 2.6), layout="constrained")
found = {name: nats(read[name], targets).mean().item() for name in read}
bars = axes.bar(list(found), list(found.values()), color=[COLOURS[name] for name in found])
axes.bar_label(bars, fmt="%.2f")
axes.axhline(math.log(V), color="black", linewidth=0.8, linestyle=":")
axes.text(3.45, math.log(V) - 0.5, f"ln {V}: nothing is known", ha="right")
axes.set(
    xlabel="mask at reading time", ylabel="loss (nats a token)", title="a model trained with the right mask, read with others"
)
plt.show()
lab.measured("loss with the right mask, in nats a token", found["right"])
lab.measured("loss when it sees one position ahead", found["one ahead"])
lab.measured("loss when it sees everything", found["none"])

# %% [markdown]
# ## The future does not change the past
#
# The loss told you of a leak only where the model had learnt to use it. The lesson's first test needs no training: exchange all
# tokens from position 64 on for those of another text, and see how far the log-probabilities before 64 move, with each reader.

# %%
lab.predict("late mask: largest change of a log-probability before position 64, in nats", ...)
lab.predict("right mask: the same", ...)

# %%
other = inputs.clone()
other[:, 64:] = inputs.roll(1, 0)[:, 64:]
figure, axes = plt.subplots(figsize=(7.5, 2.8), layout="constrained")
reached = {}
for name, reader in readers(128).items():
    change = (log_probs(other, reading_as(reader)) - read[name]).abs().amax((0, 2))
    reached[name] = change[:64].max().item()
    axes.plot(change, color=COLOURS[name], label=name)
axes.axvline(63.5, color="black", linewidth=0.8, linestyle=":")
axes.text(64.5, axes.get_ylim()[1] * 0.02, "exchanged from here on")
axes.set(xlabel="position", ylabel="largest change of a\nlog-probability (nats)", title="what the exchanged tokens reach")
axes.legend(frameon=False, loc="upper left")
plt.show()
print("before position 64: " + ", ".join(f"{name} {change:.3g}" for name, change in reached.items()))
lab.measured("late mask: largest change of a log-probability before position 64, in nats", reached["late"])
lab.measured("right mask: the same", reached["right"])

# %% [markdown]
# ## Pads on the left
#
# Eight texts of 32 tokens get 1, 3 or 10 pads in front. Your `causal_self_attention` runs with the model's weights: once with
# nothing said about the pads, once with your padding mask, once with the mask *and* with positions that count from the first
# real token. Log-probabilities at the real tokens are compared with those of the texts without pads.

# %%
lab.predict("10 pads, no padding mask: largest change of a log-probability, in nats", ...)
lab.predict("10 pads, padding mask: the same", ...)
lab.predict("10 pads, padding mask and positions from 0: the same", ...)

# %%
text, PAD = inputs[:, :32], model.config["eos_token_id"]


def learners(attention_mask=None):
    """Your causal_self_attention with each layer's weights."""
    return lambda x, attn: causal_self_attention(
        x, attn.c_attn.weight, attn.c_attn.bias, attn.c_proj.weight, attn.c_proj.bias, H, attention_mask
    )


plain = log_probs(text, learners())
moved, loss = {}, {"no pads": nats(plain[:, :-1], text[:, 1:]).mean().item()}
for pads in (1, 3, 10):
    padded = torch.cat([torch.full((8, pads), PAD), text], dim=1)
    real = padding_mask(torch.full((8,), 32), 32 + pads, side="left")
    from_zero = (torch.arange(32 + pads) - pads).clamp(min=0)
    for name, mask, positions in (("nothing", None, None), ("mask", real, None), ("mask and positions", real, from_zero)):
        given = log_probs(padded, learners(mask), positions)[:, pads:]
        moved[pads, name] = (given - plain).abs().max().item()
        loss[pads, name] = nats(given[:, :-1], text[:, 1:]).mean().item()

figure, axes = plt.subplots(figsize=(7.5, 2.8), layout="constrained")
for shift, (name, colour) in enumerate({"nothing": "#c1440e", "mask": "#d9a441", "mask and positions": "#3b6ea5"}.items()):
    heights = [moved[pads, name] for pads in (1, 3, 10)]
    bars = axes.bar([place + 0.27 * (shift - 1) for place in range(3)], heights, 0.25, color=colour, label=f"given: {name}")
    axes.bar_label(bars, fmt="%.2g")
    print(f"{name:19} loss with 1, 3, 10 pads: " + ", ".join(f"{loss[pads, name]:.3f}" for pads in (1, 3, 10)))
print(f"without pads: {loss['no pads']:.3f}")
axes.set_yscale("log")
axes.set_xticks(range(3), ["1", "3", "10"])
axes.set(xlabel="pads on the left", ylabel="largest change of a\nlog-probability (nats)", ylim=(1e-6, 1e4))
axes.set_title("how far pads move the real tokens")
axes.legend(frameon=False, ncol=3, loc="upper center")
plt.show()
lab.measured("10 pads, no padding mask: largest change of a log-probability, in nats", moved[10, "nothing"])
lab.measured("10 pads, padding mask: the same", moved[10, "mask"])
lab.measured("10 pads, padding mask and positions from 0: the same", moved[10, "mask and positions"])

# %% [markdown]
# ## What the heads do below the diagonal
#
# The mask says what a reader may read, not what it does read. For the readers at positions 64 to 127, how is a head's unit of
# attention spread over the distance to what is read? A head that does not care would give each position the same.

# %%
lab.predict("share on the token itself and the one before, mean of 20 heads", ...)

# %%
record = {}
with torch.no_grad():
    model(inputs, record)
distance = torch.arange(64, 128)[:, None] - torch.arange(128)
bands = {"itself": (0, 0), "1 before": (1, 1), "2 to 4": (2, 4), "5 to 16": (5, 16), "17 and more": (17, 127)}
within = torch.stack([(distance >= low) & (distance <= high) for low, high in bands.values()])  # band, reader, key
patterns = torch.stack([record[f"h.{i}.attn.pattern"][:, :, 64:] for i in range(L)])  # layer, text, head, reader, key
shares = torch.einsum("lbhij,nij->lhn", patterns, within.float()).flatten(0, 1) / (8 * 64)
indifferent = (within / (torch.arange(64, 128)[:, None] + 1)).sum(-1).mean(-1)

figure, axes = plt.subplots(figsize=(7.8, 3.2), layout="constrained")
drawn, bottom = torch.cat([shares, indifferent[None]]), torch.zeros(L * H + 1)
places = [*range(L * H), L * H + 0.6]
for number, name in enumerate(bands):
    colour = plt.get_cmap("viridis")(number / (len(bands) - 1))
    axes.bar(places, drawn[:, number], bottom=bottom, color=colour, label=name, width=0.85)
    bottom = bottom + drawn[:, number]
axes.set_xticks(places, [f"{i // H}.{i % H}" for i in range(L * H)] + ["equal\nshares"], fontsize=8)
axes.set(xlabel="layer.head", ylabel="weight (share of 1)", title="how far back the heads read", ylim=(0, 1))
figure.legend(*axes.get_legend_handles_labels(), title="positions back", loc="outside right upper", frameon=False)
plt.show()
near = shares[:, :2].sum(-1)
print(f"itself and 1 before: from {near.min():.3f} to {near.max():.2f}; with equal shares {indifferent[:2].sum():.3f}")
lab.measured("share on the token itself and the one before, mean of 20 heads", near.mean().item())

# %% [markdown]
# ## Both masks, seen from one reader
#
# Two texts in one batch, the second with three pads on its left, in layer 2. What is masked stands on grey. Follow the row of
# the reader; then look at a pad's row (query 0 of the second text): it may read nothing, so its row is empty and its z is 0.

# %%
texts = ["If the file is not found, the file", "the list is not found."]
encoded = [tokenizer.encode(one) for one in texts]
widest = max(map(len, encoded))
batch = torch.tensor([[PAD] * (widest - len(one)) + one for one in encoded])
real = padding_mask(torch.tensor([len(one) for one in encoded]), widest, side="left")
positions = (torch.arange(widest) - (~real[:, 0, 0]).sum(-1, keepdim=True)).clamp(min=0)
seen = []


def remember(x, attn):
    """Keep what the layer makes of x, then go on with your causal_self_attention."""
    q, k, v = (split_heads(part, H) for part in attn.c_attn(x).chunk(3, dim=-1))
    seen.append((attention_scores(q, k), v))
    return learners(real)(x, attn)


log_probs(batch, remember, positions)
allowed = causal_mask(widest) & real
layers = [[] for _ in texts]
for scores, v in seen:
    pattern = softmax(mask_scores(scores, allowed), dim=-1)
    pattern = pattern.masked_fill(~allowed.any(-1, keepdim=True), 0.0)  # rows with nothing to read
    for one, ids_of_one in enumerate(batch.tolist()):
        names = ["pad" if token == PAD else tokenizer.decode([token]) for token in ids_of_one]
        layers[one].append(View(names, pattern[one], scores[one], allowed[one], v[one]))
AttentionViewer(*layers, layer=2, head=0, query=6)

# %%
lab.check("causal_mask")

# %%
lab.check("mask_scores")

# %%
lab.check("masked_attention")

# %%
lab.check("padding_mask")

# %%
lab.check("causal_self_attention")

# %% [markdown]
# ## What this does not show
#
# - *That every leak can be seen in a loss.* The late mask made a loss better that was trained with it, and worse in the model
#   that was not. A loss that looks normal is no evidence against a leak; the test that changes the future is.
# - *That the late mask always leaks so much.* It did here, with tokens that have nothing else to offer. How much a large model
#   would take from it on real text, nothing here measured.
# - *What masks cost.* Half of the scores were computed and thrown away each time.
# - *Why heads read near or far.* A share below the diagonal is a mean over texts and readers, and the first layers of this
#   model spread theirs almost evenly. That a head reads far back does not mean that what it finds there is used.
