# %% [markdown]
# # 09 · Grouped-query attention: what a cache saves, what it weighs, and what sharing costs
#
# *How much time does a model save by remembering keys and values, how much memory does it pay, and what happens when heads
# that were trained apart have to share what they read?*
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it. Figures in the
# text are from a run of this notebook and rounded; the times will be others on your machine, their ratios less so.

# %%
# %matplotlib inline
import copy
import random
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from autograder.lab import Lab

lab = Lab("09_gqa")
from attention import merge_heads, split_heads
from gqa import KVCache, grouped_query_attention, kv_cache_bytes, repeat_kv
from masking import causal_mask

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
BLUE, RED, GREEN, PURPLE = "#3b6ea5", "#c1440e", "#7a9e3f", "#8a6bb8"
model, tokenizer = lab.model()
L, C, H, T = (model.config[size] for size in ("n_layer", "n_embd", "n_head", "n_ctx"))
D = C // H
print(f"the small GPT-2: L = {L} layers, H = {H} query heads of D = {D}; T = {T} positions")

# %% [markdown]
# ## One more word, with and without a memory
#
# `forward` is the small GPT-2 around your `grouped_query_attention`. With a `KVCache` it is given only the new tokens, and
# their positions start at the cache's `length`. A help text that the model was not trained on is read token by token, 256 of
# them. Without a cache, each new token means a pass over the whole text so far.
#
# Time is processor time of one thread, so that other programs disturb it little. Counted in keys, a head computes 32,896 (the
# sum of 1 to 256) without the cache and 256 with it, 128.5 times less. How much less *time* does it take? And how far do the
# logits agree?

# %%
lab.predict("time without the cache over time with it, 256 tokens", ...)
lab.predict("last 32 tokens over first 32, without the cache", ...)
lab.predict("last 32 tokens over first 32, with the cache", ...)
lab.predict("largest difference of a logit", ...)

# %%
from pydoc_data.topics import topics


def as_it_is(layer, x):
    return x


def forward(ids, model=model, cache=None, keys=as_it_is, values=as_it_is, start=None, mask=causal_mask):
    """Logits (B,T,V). keys and values may change k and v (B,H,T,D) of a layer before they are kept and read."""
    before = cache.length if cache else 0
    start = before if start is None else start
    resid = model.wte(ids) + model.wpe.weight[start : start + ids.shape[1]]
    for i, block in enumerate(model.h):
        q, k, v = (split_heads(part, H) for part in block.attn.c_attn(block.ln_1(resid)).chunk(3, dim=-1))
        k, v = keys(i, k), values(i, v)
        if cache:
            k, v = cache.append(i, k, v)
        z = grouped_query_attention(q, k, v, mask(q.shape[2], k.shape[2]))
        resid = resid + block.attn.c_proj(merge_heads(z))
        resid = resid + block.mlp(block.ln_2(resid))
    return model.ln_f(resid) @ model.wte.weight.T


ids = torch.tensor(tokenizer.encode(topics["attribute-access"])[: 8 * T + 1])
inputs, targets = ids[:-1].view(8, T), ids[1:].view(8, T)
text = inputs[:1]


@torch.inference_mode()
def timed(step):
    """The last logits and the processor time, in ms, of step(t) for t = 1 to 256."""
    results, times, threads = [], [], torch.get_num_threads()
    torch.set_num_threads(1)
    for t in range(1, T + 1):
        started = time.process_time()
        results.append(step(t)[0, -1])
        times.append((time.process_time() - started) * 1000)
    torch.set_num_threads(threads)
    return torch.stack(results), torch.tensor(times)


print(f"logits of `forward` and of the model differ by at most {(forward(text) - model(text)).abs().max().item():.0e}")
recomputed, slow = timed(lambda t: forward(text[:, :t]))
cache = KVCache(L)
remembered, fast = timed(lambda t: forward(text[:, t - 1 : t], cache=cache))

figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 2.9), layout="constrained")
for times, color, label in ((slow, RED, "without a cache"), (fast, BLUE, "with a cache")):
    left.plot(range(8, T + 1, 8), times.view(-1, 8).mean(1), color=color, label=label)
    right.plot(range(1, T + 1), times.cumsum(0) / 1000, color=color)
left.set(xlabel="tokens in the text", ylabel="time (ms)", ylim=(0, None), title="one more token (mean of 8)")
right.set(xlabel="tokens in the text", ylabel="time (s)", title="all tokens so far")
left.legend(frameon=False)
plt.show()
for name, times in (("without", slow), ("with", fast)):
    first, last = times[:32].mean().item(), times[-32:].mean().item()
    print(f"{name:7} a cache: first 32 tokens {first:.1f} ms each, last 32 {last:.1f} ms each, all 256 {times.sum():.0f} ms")
    lab.measured(f"last 32 tokens over first 32, {name} the cache", last / first)
lab.measured("time without the cache over time with it, 256 tokens", (slow.sum() / fast.sum()).item())
lab.measured("largest difference of a logit", (recomputed - remembered).abs().max().item())

# %% [markdown]
# Measured: 6 to 8 times less time in several runs, not 128.5 times, and logits that agree to 0.00002. Without a cache one of
# the first 32 tokens takes about 3 ms and one of the last 32 about 28 ms; with it between 1 and 3 ms, at the beginning and at
# the end. That is what this model's hundred or so small operations cost for any number of tokens: a pass over 100 tokens does
# not take 100 times as long as one over a single token. So the factor grows with the text. It is more than 10 for the last 32
# tokens, and the left curve still bends upwards.
#
# ## Two ways to get it wrong in silence
#
# The text comes in chunks of 16 through a cache. Nothing raises when the positions of each chunk start at 0 again, and
# nothing raises when the mask is aligned with the first key in place of the last, so that token i of a chunk sees the keys 0
# to i of the text and nothing later. What do the two do to the loss on 8 windows of 256 tokens (about 2.8 nats a token when
# all is well)?

# %%
lab.predict("loss when each chunk's positions start at 0", ...)
lab.predict("loss when the mask is aligned with the first key", ...)


# %%
@torch.no_grad()
def loss(logits):
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item()


@torch.no_grad()
def in_chunks(size=16, **wrong):
    cache = KVCache(L)
    return torch.cat([forward(inputs[:, t : t + size], cache=cache, **wrong) for t in range(0, T, size)], dim=1)


def first_keys(n_query, n_key):
    return torch.ones(n_query, n_key, dtype=torch.bool).tril()


as_trained = loss(forward(inputs))
print(f"at once {as_trained:.4f}, in chunks of 16 {loss(in_chunks()):.4f}, of 1 {loss(in_chunks(1)):.4f} nats a token")
lab.measured("loss when each chunk's positions start at 0", loss(in_chunks(start=0)))
lab.measured("loss when the mask is aligned with the first key", loss(in_chunks(mask=first_keys)))

# %% [markdown]
# Measured: in chunks of 16 and of 1 the loss is the same to four digits, 2.8202. With positions that start at 0 in each chunk
# it is 3.74, with the mask aligned to the first key 5.27. Nothing raises, and a loss of 3.74 does not look like a fault. Only
# the comparison with a pass without a cache shows that something is wrong.
#
# ## What it weighs
#
# First the small model: a cache with 4, 2 and 1 key/value heads (what is in them does not matter for the weight) is filled
# one token at a time, and you count the bytes of what it returns, held against your `kv_cache_bytes`. Then the shape of Llama
# 3 70B: 80 layers, heads of 128, 16-bit numbers, with 64, 8 or 1 key/value heads. Its 70,553,706,496 parameters take 131 GiB.
# How long must one text be until its cache takes as much?

# %%
lab.predict("tokens until 8 key/value heads weigh as much as the model", ...)
lab.predict("tokens until 64 key/value heads do", ...)

# %%
GIB, PARAMETERS = 2**30, 70_553_706_496
figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.1), layout="constrained")
for heads, color in ((4, RED), (2, BLUE), (1, GREEN)):
    cache, held = KVCache(L), []
    for _ in range(T):
        new = torch.zeros(1, heads, 1, D)
        held.append(sum(part.nbytes for layer in range(L) for part in cache.append(layer, new, new)))
    same = held == [kv_cache_bytes(L, heads, D, t, bytes_per_value=4) for t in range(1, T + 1)]
    print(f"{heads} key/value heads: {held[-1]:,} bytes for {T} positions; kv_cache_bytes gives the same at each step: {same}")
    left.plot(range(1, T + 1), [number / 2**10 for number in held], color=color, label=f"Hkv = {heads}")
left.set(xlabel="tokens in the text", ylabel="cache (KiB)", title="the small GPT-2, 32-bit numbers", ylim=(0, None))
left.legend(frameon=False)

lengths = [2**power for power in range(10, 21)]
for heads, color in ((64, RED), (8, BLUE), (1, GREEN)):
    right.loglog(lengths, [kv_cache_bytes(80, heads, 128, n) / GIB for n in lengths], color=color, label=f"Hkv = {heads}")
right.axhline(2 * PARAMETERS / GIB, color="black", lw=0.8, ls=":")
right.text(lengths[0], 2 * PARAMETERS / GIB * 1.2, "its parameters")
right.set_xscale("log", base=2)
right.set(xlabel="tokens in the text", ylabel="cache (GiB)", title="the shape of Llama 3 70B, 16-bit numbers")
right.legend(frameon=False, loc="lower right")
plt.show()


def tokens_until_heavier(heads):
    return -(-2 * PARAMETERS // kv_cache_bytes(80, heads, 128, 1))


lab.measured("tokens until 8 key/value heads weigh as much as the model", tokens_until_heavier(8))
lab.measured("tokens until 64 key/value heads do", tokens_until_heavier(64))

# %% [markdown]
# Measured: 1,310,720 bytes for 256 positions with 4 heads, a half and a quarter of that with 2 and 1; at every step the
# tensors weigh what `kv_cache_bytes` says. In the shape of Llama 3 70B, 8 heads weigh as much as the parameters at 430,626
# tokens: one text of that length, or 27 texts of 16,000 tokens side by side. With 64 heads it would be 53,829, with 1 head
# 3.4 million.
#
# The two plots are the two sides of one trade: the small model pays 1.25 MiB for about 2.5 s that it need not compute.
#
# ## Sharing without asking
#
# The small model was trained with Hkv = H = 4. Now neighbours share: with Hkv = 2 the heads 0 and 1 read from one key/value
# head that is the mean of their two, heads 2 and 3 likewise; with Hkv = 1 all four read from the mean of all. Nothing is
# trained afterwards. (The mean of the keys is what the mean of the projections' columns would compute.)
#
# Two more ways: only the keys shared, or only the values; and, in place of the mean, the first head of each group, with the
# others' keys and values thrown away. Free, bearable or ruinous? As trained the loss is 2.82; without any keys (all 0, every
# pattern uniform) it is 4.57; a model that knows nothing has 7.14.

# %%
lab.predict("loss with Hkv = 2, means", ...)
lab.predict("loss with Hkv = 1, means", ...)
lab.predict("better without training: the mean of a group, or its first head", ...)


# %%
def mean_of(n):
    """Hkv = n by the mean of each group."""
    return lambda layer, x: x.unflatten(1, (n, H // n)).mean(2)


def first_of(n):
    return lambda layer, x: x.unflatten(1, (n, H // n))[:, :, 0]


def again(n):
    """The mean of each group, back in H heads: for keys that are shared where values are not."""
    return lambda layer, x: repeat_kv(mean_of(n)(layer, x), H // n)


def nothing(layer, x):
    return torch.zeros_like(x)


with torch.no_grad():
    print(f"without keys {loss(forward(inputs, keys=nothing)):.2f}, without values {loss(forward(inputs, values=nothing)):.2f}")
    shared = {
        "keys and values, mean": {n: loss(forward(inputs, keys=mean_of(n), values=mean_of(n))) for n in (2, 1)},
        "keys and values, first head": {n: loss(forward(inputs, keys=first_of(n), values=first_of(n))) for n in (2, 1)},
        "values alone, mean": {n: loss(forward(inputs, values=again(n))) for n in (2, 1)},
        "keys alone, mean": {n: loss(forward(inputs, keys=again(n))) for n in (2, 1)},
    }

    def in_one_layer(layer):
        return lambda i, x: again(1)(i, x) if i == layer else x

    alone = [loss(forward(inputs, keys=in_one_layer(i), values=in_one_layer(i))) for i in range(L)]

figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.1), width_ratios=[1.5, 1], layout="constrained")
for (name, losses), color in zip(shared.items(), (RED, BLUE, GREEN, PURPLE)):
    left.plot([0, 1, 2], [as_trained, losses[2], losses[1]], "o-", color=color, label=name)
    print(f"{name:28} Hkv = 2: {losses[2]:.2f}   Hkv = 1: {losses[1]:.2f}")
left.set_xticks([0, 1, 2], ["4, as trained", "2", "1"])
left.set(xlabel="key/value heads", ylabel="loss (nats a token)", title="what is shared, nothing trained")
left.legend(frameon=False, fontsize=8)
bars = right.bar(range(L), [one - as_trained for one in alone], color=RED)
right.bar_label(bars, fmt="%.2f", fontsize=8)
right.set(xlabel="layer", ylabel="loss added (nats a token)", title="one layer with Hkv = 1, mean")
plt.show()
print("one layer at a time with Hkv = 1, mean: added " + ", ".join(f"{one - as_trained:.2f}" for one in alone))
lab.measured("loss with Hkv = 2, means", shared["keys and values, mean"][2])
lab.measured("loss with Hkv = 1, means", shared["keys and values, mean"][1])
better = min(("mean", "first head"), key=lambda way: shared[f"keys and values, {way}"][1])
lab.measured("better without training: the mean of a group, or its first head", better)

# %% [markdown]
# Measured: 3.79 with Hkv = 2 and 4.55 with Hkv = 1. The last is as bad as having no keys at all. Sharing in one layer alone
# costs 0.07 to 0.29 nats, and the five add up to 0.69, not to the 1.73 of all five at once.
#
# The first head is the better stand-in here, 3.53 and 4.31: half or a quarter of the query heads keep the keys and values
# that they were trained with, where the mean suits none. Keys alone and values alone cost about the same, 3.21 and 3.26 with
# Hkv = 2.
#
# ## And then a little training
#
# Published models were converted by the mean and then trained on. You train all weights for 20 steps on help texts that are
# not held out: 4 windows of 128 tokens a step, 10,240 tokens in all, 0.05 % of what the model was trained with. The model
# with Hkv = 4 goes through the same 20 steps, so that you can tell what sharing has cost from what the 20 steps do anyway.

# %%
lab.predict("loss with Hkv = 2 after 20 steps", ...)
lab.predict("loss with Hkv = 1 after 20 steps", ...)

# %%
names = sorted(topics)
held_out = random.Random(0).sample(names, round(0.05 * len(names)))
known = torch.tensor([i for name in names if name not in held_out for i in tokenizer.encode(topics[name])])


def train_on(n, steps=20, look=10):
    """Held-out loss before, half way and after a copy of the model gets used to n key/value heads."""
    student, dice, losses = copy.deepcopy(model), torch.Generator().manual_seed(0), []
    sharing = {"model": student, "keys": mean_of(n), "values": mean_of(n)}
    optimizer = torch.optim.AdamW(student.parameters(), lr=3e-4, betas=(0.9, 0.99), weight_decay=0.1)
    for step in range(1, steps + 1):
        starts = torch.randint(len(known) - 129, (4,), generator=dice)
        window = torch.stack([known[start : start + 129] for start in starts])
        logits = forward(window[:, :-1], **sharing)
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), window[:, 1:].flatten()).backward()
        optimizer.step()
        if step % look == 0:
            with torch.no_grad():
                losses.append(loss(forward(inputs, **sharing)))
    return losses


figure, axes = plt.subplots(figsize=(5, 2.9), layout="constrained")
for n, color in ((1, GREEN), (2, BLUE), (4, RED)):
    losses = [shared["keys and values, mean"].get(n, as_trained), *train_on(n)]
    axes.plot([0, 10, 20], losses, "o-", color=color, label=f"Hkv = {n}")
    print(f"Hkv = {n}: {losses[0]:.2f}, after 10 steps {losses[1]:.2f}, after 20 {losses[2]:.2f} nats a token")
    if n < H:
        lab.measured(f"loss with Hkv = {n} after 20 steps", losses[-1])
axes.set(
    xticks=(0, 10, 20),
    xlabel="step (512 tokens each)",
    ylabel="loss (nats a token)",
    title="held-out loss while heads learn to share",
)
axes.legend(frameon=False)
plt.show()

# %% [markdown]
# Measured: 3.79 falls to 3.30 and 4.55 to 3.78, while the model with Hkv = 4 goes from 2.82 to 2.84. With 0.05 % of the
# training about half of what sharing cost is gone. That the rest would go too is not in this plot.
#
# ## Your functions

# %%
lab.check("repeat_kv")

# %%
lab.check("grouped_query_attention")

# %%
lab.check("KVCache")

# %%
lab.check("kv_cache_bytes")

# %% [markdown]
# ## What this does not show
#
# - *What sharing costs a model that was trained with it.* Here four heads were trained apart and then forced together. A
#   small model trained with Hkv = 2 from the start was not compared, and the papers report far smaller losses for theirs.
# - *That the first head beats the mean.* It does before training, in this model. Ainslie et al. 2023 compare the two after
#   further training, and there the mean is ahead.
# - *What a cache saves on another machine.* One thread, one text, a model whose operations are so small that their fixed cost
#   shows. On a GPU the cached pass mostly waits for keys and values to arrive from memory, which this notebook did not
#   measure: none of its times depend on Hkv.
# - *The memory of a running program.* Counted are keys and values. Appending by joining holds the old and the new copy at
#   once, and weights and activations need their room as well.
