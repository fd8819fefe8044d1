# %% [markdown]
# # 10 · The training objective: one number, on its way down
#
# *Before any training you know what the loss is. What do you know about the way down, and about what a loss of 2.2 is worth?*
#
# You train a small GPT in this notebook, byte by byte, with your own `train`: 120,576 parameters, half a minute. Then you
# put it beside the course's trained checkpoint and beside `xz`, a program that has never heard of a neural network. For
# that you need a unit in which a byte, a token and a compressed file can be compared.
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it. Figures in the
# prose are from one run with Python 3.11; the help texts differ a little between Python versions.

# %%
# %matplotlib inline
import json
import math
import sys

import matplotlib.pyplot as plt
import torch
from IPython.display import display

from autograder.course import ROOT
from autograder.lab import Lab
from autograder.model import GPT2

lab = Lab("10_training_objective")
from training_objective import (
    adamw_step,
    bits_per_token,
    cross_entropy,
    learning_rate,
    log_softmax,
    next_token_pairs,
    perplexity,
    train,
    uniform_loss,
)

sys.path.append(str(ROOT / "checkpoints"))
from corpus import SEPARATOR, load_corpus, xz_bits_per_byte

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
RED, BLUE, GRAY = "#c1440e", "#3b6ea5", "#777777"
V, T, B, STEPS, MAX_LR = 256, 64, 16, 400, 0.005

corpus = load_corpus()
data = torch.tensor(list(SEPARATOR.join(corpus.topics).encode()))
held_out = SEPARATOR.join(corpus.held_out)
print(f"{len(data):,} bytes of Python's help topics to train on, {len(held_out.encode()):,} bytes held out")


def fresh():
    """A GPT-2 with random weights that reads bytes: 2 layers, 64 channels, 4 heads, a window of 64 bytes."""
    torch.manual_seed(0)
    return GPT2({"n_layer": 2, "n_embd": 64, "n_head": 4, "n_ctx": T, "vocab_size": V, "layer_norm_epsilon": 1e-5})


def draw(n):
    """Batches of B windows at random places, always the same ones."""
    dice = torch.Generator().manual_seed(0)
    for _ in range(n):
        yield data[torch.randint(len(data) - T, (B, 1), generator=dice) + torch.arange(T + 1)]


# %% [markdown]
# ## Step 0
#
# The lesson says that a model that knows nothing starts at ln V. But the random weights are not nothing: they prefer some
# bytes to others, for no reason. How much that costs depends on how far the logits spread, and the head is the embedding
# table. You draw the table with a spread of 0.02, as GPT-2 does, and with others up to 1, which is what `nn.Embedding` gives
# you if you do not ask for anything else.

# %%
lab.predict("first loss, table of spread 0.02 (nats a byte)", ...)
lab.predict("first loss, table of spread 1 (nats a byte)", ...)
lab.predict("largest over median |gradient| in the first step", ...)
lab.predict("largest over median |change of a parameter| in the first step", ...)

# %%
(batch,) = draw(1)
inputs, targets = next_token_pairs(batch)
spreads, first = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0], []
for spread in spreads:
    untrained = fresh()
    with torch.no_grad():
        untrained.wte.weight *= spread / 0.02
        first.append(cross_entropy(untrained(inputs), targets).item())

figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
axes.plot(spreads, first, "o-", color=RED)
axes.axhline(uniform_loss(V), color=GRAY, lw=1)
axes.annotate("ln 256 = 5.545", (1, uniform_loss(V)), (0, 4), textcoords="offset points", ha="right", color=GRAY)
axes.set_xscale("log")
axes.set(xlabel="spread of the embedding table (standard deviation)", ylabel="loss (nats a byte)", ylim=(0, None))
axes.set_title("the first loss depends on the table's spread")
plt.show()
print("   ".join(f"{spread:g}: {one:.3f}" for spread, one in zip(spreads, first)), f"  ln V = {uniform_loss(V):.3f}")
print(f"{(inputs == targets).float().mean():.0%} of the targets are the byte that was just read")
lab.measured("first loss, table of spread 0.02 (nats a byte)", first[1])
lab.measured("first loss, table of spread 1 (nats a byte)", first[-1])

# %% [markdown]
# GPT-2's 0.02 gives about 5.49, near ln 256, and below it: the head is the table, so a byte's own row scores highest when
# that byte was just read, and in this batch 11 % of the bytes repeat the one before. Up to 0.05 that helps. At spread 1 the
# first loss is about 58: the untrained model is certain, and wrong.
#
# Now the first step itself. You take the gradient of every parameter of a fresh model and let your `adamw_step` act on them
# with a rate of 0.001. Plain gradient descent would move every parameter in proportion to its gradient. Each dot is one of
# the 120,576 parameters.

# %%
untrained = fresh()
params = list(untrained.parameters())
grads = torch.autograd.grad(cross_entropy(untrained(inputs), targets), params)
before = [p.detach().clone() for p in params]
adamw_step(params, grads, {}, lr=0.001)
change = torch.cat([(p.detach() - old).abs().flatten() for p, old in zip(params, before)])
size = torch.cat([g.abs().flatten() for g in grads])

figure, axes = plt.subplots(figsize=(5, 2.8), layout="constrained")
axes.scatter(size, change, s=3, color=BLUE, alpha=0.3, linewidths=0, rasterized=True)
axes.axvline(1e-8, color=GRAY, lw=1)
axes.annotate("eps", (1e-8, 2e-5), (4, 0), textcoords="offset points", color=GRAY)
axes.set(xscale="log", yscale="log", xlabel="size of the gradient (nats per unit of the parameter)")
axes.set(ylabel="change (unit of the parameter)", title="the first step, rate 0.001", xlim=(1e-12, 1), ylim=(1e-8, 1e-2))
plt.show()
alike = ((change / 0.001 - 1).abs() < 0.01).float().mean()
print(f"gradients: median {size.median():.1g}, largest {size.max():.1g}; changes within 1 % of 0.001: {alike:.1%}")
lab.measured("largest over median |gradient| in the first step", (size.max() / size.median()).item())
lab.measured("largest over median |change of a parameter| in the first step", (change.max() / change.median()).item())

# %% [markdown]
# The gradients' sizes range over seven powers of ten, and the largest is about 440 times the median; over 99 % of the
# parameters move by 0.001 all the same. In the first step m_hat is g and the root of v_hat is |g|: the size cancels, the
# sign stays. The exceptions lie around and below eps. The cloud at the lower left, gradients of 1e-12, are the biases of
# the keys: they add the same number to all scores of a reader, which no softmax sees, so what you see there is rounding.
#
# ## The way down
#
# You know two marks on the way, by counting alone. A model that does not look at its input at all, and knows how often each
# byte occurs, pays the entropy of the single bytes. A table of pairs, which looks at one byte, pays the entropy of a byte
# given the one before. The GPT sees up to 64 bytes. Does it fall below the second mark, and how does it get there?
#
# `train` does the work. The batches come from a generator that also looks at the model between two steps, so you watch the
# loss, the gradient's length before clipping and the rate while they happen. At three moments the model writes 150 bytes.

# %%
lab.predict("loss of the last 50 steps (nats a byte)", ...)
lab.predict("step at which a mean of 50 losses passes the pairs' mark", ...)
lab.predict("steps whose gradient is clipped, of 400", ...)

# %%
counts = torch.bincount(data[:-1] * V + data[1:], minlength=V * V).view(V, V).double()
joint, single = counts / counts.sum(), counts.sum(0) / counts.sum()
singles = -torch.special.xlogy(single, single).sum().item()
pairs = -torch.special.xlogy(joint, joint / joint.sum(1, keepdim=True).clamp(min=1e-300)).sum().item()

model = fresh()
seen, losses, norms, rates, samples, squares = {}, [], [], {}, {}, []
model.register_forward_hook(lambda _, args, logits: seen.update(logits=logits.detach()))
for p in model.parameters():
    p.register_hook(lambda g: squares.append(g.detach().square().sum()))


def rate(step):
    rates[step] = learning_rate(step, MAX_LR, MAX_LR / 10, 20, STEPS)
    return rates[step]


@torch.no_grad()
def write(length=150):
    """Draw byte after byte from the model, the same dice each time; what cannot be printed is a dot."""
    dice, text = torch.Generator().manual_seed(1), torch.tensor([[10]])
    for _ in range(length):
        chances = log_softmax(model(text[:, -T:])[0, -1]).exp()
        text = torch.cat([text, torch.multinomial(chances, 1, generator=dice)[None]], dim=1)
    return "".join(chr(i) if 32 <= i < 127 else "↵" if i == 10 else "·" for i in text[0, 1:].tolist())


figure, (top, middle, low) = plt.subplots(3, 1, figsize=(6.5, 5.4), height_ratios=[3, 1, 1], sharex=True, layout="constrained")
(loss_line,) = top.plot([], [], color="#a9c1db", lw=1, label="each batch")
(mean_line,) = top.plot([], [], color=BLUE, lw=2, label="mean of 50")
for mark, name in ((uniform_loss(V), "ln 256"), (singles, "single bytes"), (pairs, "pairs")):
    top.axhline(mark, color=GRAY, lw=1)
    top.annotate(f"{name} {mark:.3f}", (STEPS, mark), (0, 3), textcoords="offset points", ha="right", color=GRAY)
(norm_line,) = middle.plot([], [], color=RED, lw=1)
middle.axhline(1, color=GRAY, lw=1)
(rate_line,) = low.plot([], [], color=BLUE)
top.set(ylabel="loss (nats a byte)", ylim=(1.8, 5.9), xlim=(0, STEPS), title="400 steps of 16 x 64 bytes")
top.legend(frameon=False, loc="center")
middle.set(ylabel="gradient's length\nbefore clipping", yscale="log", ylim=(0.1, 10))
low.set(ylabel="rate", xlabel="step", ylim=(0, MAX_LR * 1.1))
live = display(figure, display_id=True)


def smooth(values):
    return torch.tensor(values).unfold(0, 50, 1).mean(-1).tolist()


def watched(batches):
    """Hand out the batches; between two of them, look at what the step before has done."""
    wanted = None
    for step, ids in enumerate([*batches, None]):
        if step:
            losses.append(cross_entropy(seen["logits"], wanted).item())
            norms.append(sum(squares).sqrt().item())
            squares.clear()
        if step % 50 == 0 and step:
            loss_line.set_data(range(step), losses)
            mean_line.set_data(range(49, step), smooth(losses))
            norm_line.set_data(range(step), norms)
            rate_line.set_data(list(rates), list(rates.values()))
            live.update(figure)
        if step in (0, 50, STEPS):
            samples[step] = write()
        if ids is not None:
            wanted = next_token_pairs(ids)[1]
            yield ids


returned = train(model, watched(draw(STEPS)), rate, weight_decay=0.1, max_norm=1.0, progress=False)
plt.close(figure)
for step, text in samples.items():
    print(f"after {step:3} steps: {text}\n")
apart = max(abs(a - b) for a, b in zip(returned, losses, strict=True))
print(f"what train returned and what was watched differ by at most {apart:.0e}; step 0 {losses[0]:.3f}, step 50 {losses[50]:.3f}")
means = smooth(losses)
print("mean of 50 losses up to step " + "   ".join(f"{step}: {means[step - 49]:.3f}" for step in (99, 149, 199, 249, 299, 399)))
lab.measured("loss of the last 50 steps (nats a byte)", means[-1])
below = [step for step, mean in enumerate(means, 49) if mean < pairs]
lab.measured("step at which a mean of 50 losses passes the pairs' mark", below[0] if below else "not in 400 steps")
lab.measured("steps whose gradient is clipped, of 400", sum(norm > 1 for norm in norms))

# %% [markdown]
# After 20 steps the model pays what single bytes cost: it has learnt which bytes are frequent. It comes down to the pairs'
# mark (about 2.46) within 200 steps and stays there for about 60: everything that one byte says about the next has been
# learnt, and looking further back has not begun. Then it goes on, to about 2.25 at the end. The marks came from counting,
# without any training, and the second one shows as a shelf in the curve.
#
# The gradient is longest at the start (about 4) and is clipped in about 94 of 400 steps: most of the first 30, and again
# when the model leaves the shelf. What it writes after 400 steps are word-like strings, and a table's frame.
#
# ## What looking back is worth
#
# Now the text that nothing here was trained on. `log_softmax` gives the surprise at every place of a window: at the first one
# the model has read 1 byte, at the last one 64. You do the same with the course's checkpoint, which reads tokens and has a
# window of 256. Does the 50th position do better than the 2nd?
#
# ## What a loss is worth
#
# The checkpoint's loss is one of nats a *token*, and a token of its is about three bytes. Per token or per byte, bits or
# nats, a mean over everything or document by document: the same surprises, added up once and divided by different things.
#
# And `xz`: a compressor needs no probabilities from anyone, but a compressed file is a loss in bits. It gets the same
# chance: it has packed the training text first, and you count what the held-out text adds to the file.

# %%
lab.predict("loss with 2 bytes read, minus loss with 50 read (nats a byte)", ...)
lab.predict("perplexity of the small GPT, among bytes", ...)
lab.predict("perplexity of the checkpoint, among tokens", ...)
lab.predict("checkpoint, bits a byte of held-out text", ...)
lab.predict("xz, bits a byte of held-out text", ...)

# %%
checkpoint, tokenizer = lab.model()
END_OF_TEXT = checkpoint.config["vocab_size"] - 1


@torch.no_grad()
def read(model, ids, stride):
    """Windows that move on through one text: the loss at each place of each, the mean over tokens scored once, how many."""
    window = model.config["n_ctx"]
    starts = [*range(0, len(ids) - 1 - window, stride), len(ids) - 1 - window]
    inputs, targets = next_token_pairs(torch.stack([ids[start : start + window + 1] for start in starts]))
    logits = torch.cat([model(part) for part in inputs.split(64)])
    places = -log_softmax(logits).gather(-1, targets[..., None])[..., 0]
    new, scored = targets.clone(), 0
    for row, start in zip(new, starts):
        row[: max(0, scored - start)] = -100  # scored already, in the window before
        scored = start + window
    return places, cross_entropy(logits, new), int((new != -100).sum())


rows = {}
for name, one, stride, ids_of in (
    ("small GPT, bytes", model, 16, lambda text: [10, *text.encode()]),
    ("checkpoint, tokens", checkpoint, 128, lambda text: [END_OF_TEXT, *tokenizer.encode(text)]),
):
    parts = [read(one, torch.tensor(ids_of(text)), stride) for text in corpus.held_out]
    mean, number = torch.stack([part[1] for part in parts]), torch.tensor([part[2] for part in parts])
    rows[name] = torch.cat([part[0] for part in parts]).mean(0), (mean * number).sum() / number.sum(), number.sum(), mean

n_bytes = sum(len(text.encode()) for text in corpus.held_out)
print(f"{'':20}{'nats':>7}{'bits':>7}{'perplexity':>12}{'bytes':>8}{'bits/byte':>11}   mean of the 4 documents' perplexities")
per_byte = {}
for name, (_, nats, number, by_document) in rows.items():
    bits, each = bits_per_token(nats), n_bytes / number
    per_byte[name] = (bits / each).item()
    means = perplexity(by_document).mean()
    print(f"{name:20}{nats:7.3f}{bits:7.3f}{perplexity(nats):12.2f}{each:8.2f}{per_byte[name]:11.3f}   {means:.2f}")
recorded = json.loads((ROOT / "checkpoints" / "small" / "training.json").read_text(encoding="utf-8"))
per_byte["xz, topics packed first"] = xz_bits_per_byte(SEPARATOR.join(corpus.topics), held_out)
per_byte["xz, docstrings too (recorded)"] = recorded["xz_bits_per_byte"]["training_text"]
per_byte["no model"] = 8.0
print(f"recorded when the checkpoint was trained: {recorded['bits_per_byte']:.3f} bits a byte")
inputs, targets = next_token_pairs(torch.cat(list(draw(40))))
with torch.no_grad():
    again = cross_entropy(model(inputs), targets)
print(f"small GPT, mean over all places: {again:.3f} on training text, {rows['small GPT, bytes'][0].mean():.3f} on held-out text")
print("its loss on each held-out document:", "  ".join(f"{one:.2f}" for one in rows["small GPT, bytes"][3]))

figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3), layout="constrained")
for (name, (places, *_)), color in zip(rows.items(), (RED, BLUE)):
    edges = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256]
    spans = [(a, b) for a, b in zip(edges, edges[1:]) if b <= len(places)]
    each = n_bytes / rows[name][2].item()  # bytes a token
    middles = [math.sqrt((a + 1) * b) for a, b in spans]
    left.plot(middles, [bits_per_token(places[a:b].mean().item()) / each for a, b in spans], "o-", color=color, label=name)
left.set_xscale("log", base=2)
left.set_xticks([1, 4, 16, 64, 256], [1, 4, 16, 64, 256])
left.set(xlabel="bytes or tokens read so far", ylabel="loss (bits a byte)", title="what looking back is worth", ylim=(0, None))
left.legend(frameon=False)
order = sorted(per_byte, key=per_byte.get, reverse=True)
colors = {"small GPT, bytes": RED, "checkpoint, tokens": BLUE}
bars = right.barh(order, [per_byte[name] for name in order], color=[colors.get(name, "#bbbbbb") for name in order])
right.bar_label(bars, fmt="%.2f", padding=2)
right.set(xlabel="bits a byte of held-out text", title="what the held-out text costs", xlim=(0, 9))
plt.show()
places = rows["small GPT, bytes"][0]
lab.measured("loss with 2 bytes read, minus loss with 50 read (nats a byte)", (places[1] - places[49]).item())
lab.measured("perplexity of the small GPT, among bytes", perplexity(rows["small GPT, bytes"][1]).item())
lab.measured("perplexity of the checkpoint, among tokens", perplexity(rows["checkpoint, tokens"][1]).item())
lab.measured("checkpoint, bits a byte of held-out text", per_byte["checkpoint, tokens"])
lab.measured("xz, bits a byte of held-out text", per_byte["xz, topics packed first"])

# %% [markdown]
# The numbers of the small GPT first. The held-out text costs it *less* than the training text, about 2.05 nats against 2.17.
# That is not a triumph over memory: the four held-out documents differ from each other (from 1.59 to 2.35 nats) far
# more than that, and one of them is easy. A loss belongs to a model *and* a text.
#
# With 2 bytes read it pays about 0.15 nats more than with 50, and after 8 bytes there is hardly anything left to gain: 400
# steps have taught it spelling at most. The checkpoint still gains until it has read 16 or 32 tokens, some 50 to 100 bytes.
#
# Now look at the perplexities: about 7.7 for the small GPT and 18.6 for the checkpoint. Which is the better model? The
# checkpoint, by far: 1.36 bits a byte against 2.95. It hesitates among more tokens, but one token answers 3.1 bytes. Only
# the last column can be compared, with each other and with a compressor: `xz` needs about 1.77 bits a byte when it has
# packed the same topics before, and needed 1.71 after all of the checkpoint's training text. The small GPT loses to a
# compressor; the checkpoint, trained for over an hour on six times as much text, does not.
#
# And the mean of the documents' perplexities is none of this: about 8.7 in place of 7.7 for one model, 16.1 in place of 18.6
# for the other. It depends on where a text was cut, and it even errs in both directions here.

# %%
lab.check("next_token_pairs")

# %%
lab.check("log_softmax")

# %%
lab.check("cross_entropy")

# %%
lab.check("bits_per_token")

# %%
lab.check("perplexity")

# %%
lab.check("uniform_loss")

# %%
lab.check("adamw_step")

# %%
lab.check("learning_rate")

# %%
lab.check("clip_gradients")

# %%
lab.check("train")

# %% [markdown]
# ## What this does not show
#
# - *That a GPT of this size gets stuck at 2.25.* 400 steps are half a minute, and the curve is still falling. The shelf at the
#   pairs' mark is one run of one model; with other sizes and rates it is longer or shorter.
# - *That `xz` is the better model.* It reads on while it packs: whatever stood earlier in the held-out text helps it. The
#   small GPT has 64 bytes. Bits a byte compare prices; they do not say what was learnt.
# - *What the model knows.* That the loss by position stops falling at 8 bytes says that *on average* nothing further back
#   helps this model. A few positions may gain a lot.
# - *That 1.36 bits a byte is a property of the checkpoint.* It is one for four help texts, and the mean over them hides as
#   much as it shows.
# - *That AdamW's equal steps are why training works.* You saw what the first step does. That it helps would need a run without.
