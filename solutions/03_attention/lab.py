# %% [markdown]
# # 03 · Attention: what the square root is for, and who reads whom
#
# *A head has D channels. Why are its scores divided by sqrt(D), of all numbers, and does a trained model still need it?*
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it. A guess that
# turns out wrong is worth more here than none: it tells you which of your reasons does not hold.

# %%
# %matplotlib inline
import copy
import math

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from autograder.lab import Lab
from autograder.plots import AttentionViewer, views

lab = Lab("03_attention")
from attention import attention_scores, multi_head_attention, soft_lookup, softmax

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
model, tokenizer = lab.model()
L, C, H = (model.config[size] for size in ("n_layer", "n_embd", "n_head"))
print(f"the small GPT-2: L = {L} layers, C = {C} channels, H = {H} heads of D = {C // H}")


def table(axes, values, digits, title, unit):
    """Draw one number for each layer and head."""
    drawn = axes.imshow(values, cmap="Blues", vmin=0)
    for layer in range(L):
        for head in range(H):
            dark = values[layer, head] > 0.6 * values.max()
            number = f"{values[layer, head]:.{digits}f}"
            axes.text(head, layer, number, ha="center", va="center", color="white" if dark else "black")
    axes.set(xlabel="head", ylabel="layer", title=title, xticks=range(H), yticks=range(L))
    axes.figure.colorbar(drawn, ax=axes, label=unit)


# %% [markdown]
# ## A dictionary with a slope
#
# Two keys, (1, 0) and (0, 1), hold the values 10 and 20. You ask with the query (a, 0). A Python dictionary answers 10 for
# a = 1 and raises for every other a, so nothing tells you in which direction to move a. What is the slope of the soft
# answer at a = 0, where it does not know which of the two you mean?

# %%
lab.predict("slope of the answer at a = 0", ...)

# %%
keys, values = torch.eye(2), torch.tensor([[10.0], [20.0]])
places = torch.linspace(-8, 8, 81, requires_grad=True)
answers = torch.stack([soft_lookup(torch.stack([a, torch.zeros(())]), keys, values)[0] for a in places])
(slopes,) = torch.autograd.grad(answers.sum(), places)

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 2.6), layout="constrained")
left.plot(places.detach(), answers.detach())
left.set(xlabel="a (first entry of the query)", ylabel="answer (in units of the values)", title="10 and 20, mixed")
right.plot(places.detach(), slopes)
right.set(xlabel="a (first entry of the query)", ylabel="slope (answer per unit of a)", title="where there is a slope to follow")
plt.show()
lab.measured("slope of the answer at a = 0", slopes[40].item())

# %% [markdown]
# ## Why sqrt(D)
#
# 1,000 readers, each with one query and 32 keys of its own; all entries are independent, with mean 0 and variance 1. Three
# measurements for each D, once on the dot products as they are and once on your `attention_scores`:
#
# - the standard deviation of the scores;
# - the largest of the 32 shares, averaged over the readers (1/32 = 0.03 would be no preference at all);
# - the gradient that the softmax lets through: the sum of |d pattern[j] / d scores[i]| over all i and j, averaged likewise.

# %%
lab.predict("smallest D at which the largest raw share passes one half", ...)
lab.predict("gradient at D = 512: scaled over raw", ...)

# %%
READERS, KEYS = 1000, 32


def measure(scores):
    """Spread, largest share, and how far the pattern can move; scores (READERS,1,1,KEYS)."""
    scores = scores.detach().requires_grad_()
    pattern = softmax(scores, dim=-1)
    rows = [torch.autograd.grad(pattern[..., j].sum(), scores, retain_graph=True)[0] for j in range(KEYS)]
    return scores.std().item(), pattern.amax(-1).mean().item(), sum(row.abs() for row in rows).sum(-1).mean().item()


def both(D):
    """The three measurements on raw dot products and on scaled scores."""
    noise = torch.Generator().manual_seed(D)
    q = torch.randn(READERS, 1, 1, D, generator=noise)
    k = torch.randn(READERS, 1, KEYS, D, generator=noise)
    return measure(q @ k.transpose(-2, -1)), measure(attention_scores(q, k))


sizes = [4, 8, 16, 32, 64, 128, 256, 512]
raw, scaled = (torch.tensor(part) for part in zip(*(both(D) for D in sizes)))
names = ["standard deviation (no unit)", "largest of 32 shares (share of 1)", "gradient let through (no unit)"]
figure, panels = plt.subplots(1, 3, figsize=(7.8, 2.7), layout="constrained")
for number, (panel, name) in enumerate(zip(panels, names)):
    panel.plot(sizes, raw[:, number], "o-", color="#c1440e", label="q . k")
    panel.plot(sizes, scaled[:, number], "s-", color="#3b6ea5", label="q . k / sqrt(D)")
    panel.set_xscale("log", base=2)
    panel.set_xticks(sizes[::2], sizes[::2])
    panel.set(xlabel="D (channels of a head)", title=name, ylim=(0, None))
panels[0].legend(frameon=False)
plt.show()
for D, before, after in zip(sizes, raw.tolist(), scaled.tolist()):
    print(f"D = {D:3}   " + "   ".join(f"{one:6.3f} -> {other:5.3f}" for one, other in zip(before, after)))
lab.measured("smallest D at which the largest raw share passes one half", next(D for D in range(1, 33) if both(D)[0][1] > 0.5))
lab.measured("gradient at D = 512: scaled over raw", scaled[-1, 2].item() / raw[-1, 2].item())

# %% [markdown]
# ## Is it still true after training?
#
# The argument needs independent entries with variance 1. Training had other plans for queries and keys. The small model has
# D = 32; the argument says that its raw dot products spread by sqrt(32) = 5.66, its scores by 1. You measure that on a help
# text that it was not trained on. Then you multiply all its scores by a factor. The factor sqrt(32) is the model without the
# division; the loss as trained is about 2.8 nats a token, and ln V = 7.1 is the loss of a model that knows nothing.

# %%
lab.predict("largest spread of raw dot products among the 20 heads", ...)
lab.predict("loss without the division, in nats a token", ...)

# %%
from pydoc_data.topics import topics

ids = torch.tensor(tokenizer.encode(topics["attribute-access"])[: 8 * 256]).view(8, 256)
record = {}
with torch.no_grad():
    model(ids, record)
earlier = torch.ones(256, 256, dtype=torch.bool).tril()  # a trained reader only ever meets these keys
spread = torch.stack(
    [attention_scores(record[f"h.{i}.attn.q"], record[f"h.{i}.attn.k"])[..., earlier].std((0, 2)) for i in range(L)]
)


@torch.no_grad()
def loss(factor):
    """Nats a token when every score is multiplied by the factor; it is the queries that are multiplied."""
    changed = copy.deepcopy(model)
    for block in changed.h:
        block.attn.c_attn.weight[:, :C] *= factor
        block.attn.c_attn.bias[:C] *= factor
    return F.cross_entropy(changed(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten()).item()


factors = [1 / 8, 1 / 4, 1 / 2, 1 / math.sqrt(2), 1, math.sqrt(2), 2, 4, math.sqrt(C // H)]
losses = [loss(factor) for factor in factors]
figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3), layout="constrained")
table(left, spread, 1, "standard deviation of the scores", "no unit; the argument says 1")
right.plot(factors, losses, "o-", color="#3b6ea5")
right.annotate("as trained", (1, losses[4]), (1, losses[4] + 1), arrowprops={"arrowstyle": "-"}, ha="center")
right.annotate("not divided", (factors[-1], losses[-1]), (1, losses[-1]), arrowprops={"arrowstyle": "-"}, va="center")
right.set_xscale("log", base=2)
right.set_xticks([1 / 8, 1 / 4, 1 / 2, 1, 2, 4], ["1/8", "1/4", "1/2", "1", "2", "4"])
right.set(xlabel="factor on all scores (no unit)", ylabel="loss (nats a token)", title="loss on held-out text", ylim=(None, 5.8))
plt.show()
lab.measured("largest spread of raw dot products among the 20 heads", spread.max().item() * math.sqrt(C // H))
lab.measured("loss without the division, in nats a token", losses[-1])

# %% [markdown]
# ## Who reads whom
#
# Two sentences, one word apart; the reader is their last token, " file":
#
# - If the **file** is not found, the file
# - If the **list** is not found, the file
#
# This model is causal: a reader's shares at later positions are 0 (module 04). Changing one word can move a reader's shares
# from some positions to others. How much of its one unit of attention moves, in the head where most does?
#
# Below the table you see that head. Follow a column from top to bottom: the raw score (scaled, nothing masked yet), the score
# once the future is masked, the share, and the share times the value, channel by channel, whose sum is z. With ipywidgets
# there are sliders for layer, head and query; without them, put other numbers into the last line of the cell.

# %%
lab.predict("largest share that moves when one word changes", ...)

# %%
sentences = ["If the file is not found, the file", "If the list is not found, the file"]
texts = [tokenizer.encode(sentence) for sentence in sentences]
tokens = [[tokenizer.decode([one]) for one in text] for text in texts]
pair = {}
with torch.no_grad():
    model(torch.tensor(texts), pair)
rows = torch.stack([pair[f"h.{i}.attn.pattern"][:, :, -1] for i in range(L)])  # layer, sentence, head, key
moved = (rows[:, 0] - rows[:, 1]).abs().sum(-1) / 2

figure, axes = plt.subplots(figsize=(4.2, 3), layout="constrained")
table(axes, moved, 2, "attention that moves", "share of 1")
plt.show()
word = next(j for j in range(len(texts[0])) if texts[0][j] != texts[1][j])
for layer, head in ((3, 1), (1, 2)):
    shares = " and ".join(f"{rows[layer, s, head, word]:.2f} to {tokens[s][word]!r}" for s in (0, 1))
    print(f"layer {layer}, head {head} gives {shares}")
lab.measured("largest share that moves when one word changes", moved.max().item())
AttentionViewer(*(views(pair, tokens[s], text=s) for s in (0, 1)), layer=3, head=1)

# %% [markdown]
# ## Two checks that need no grader, and one that needs the model
#
# The two heads where most moved go opposite ways. In layer 3, head 1, the reader passes over an earlier " file" (about 0.04)
# and reads a " list" in the same place (about 0.38). In layer 1, head 2, it reads the earlier " file" (about 0.32) and less
# of a " list" (about 0.10). What would you have to try before you say what either of them is for?
#
# Your `multi_head_attention` runs in the model's layer 2, on what that layer was given for the first sentence (T = 9 tokens).
# It masks nothing; the model masks the future. At how many of the 9 positions do you get what the model gets? And if you
# change x at position 3 alone, at how many positions does your output change?

# %%
lab.predict("positions where the unmasked output is the model's", ...)
lab.predict("positions that change with x[3]", ...)

# %%
attn = model.h[2].attn
weights = [part.detach() for part in (attn.c_attn.weight, attn.c_attn.bias, attn.c_proj.weight, attn.c_proj.bias)]
x = pair["h.2.ln_1"][:1]
output = multi_head_attention(x, *weights, H)
apart = (output - pair["h.2.attn.attn_out"][:1]).abs().amax(-1)[0]
changed = x.clone()
changed[:, 3] = 0
reached = (multi_head_attention(changed, *weights, H) - output).abs().amax(-1)[0]
order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(0))
shuffled = (multi_head_attention(x[:, order], *weights, H) - output[:, order]).abs().max().item()

figure, axes = plt.subplots(figsize=(7.5, 2.6), layout="constrained")
place = torch.arange(x.shape[1])
axes.bar(place - 0.2, apart, 0.4, color="#c1440e", label="no mask against the model")
axes.bar(place + 0.2, reached, 0.4, color="#3b6ea5", label="x[3] set to 0")
axes.set_xticks(place, [f"{i}\n{token}" for i, token in enumerate(tokens[0])])
axes.set(xlabel="position", ylabel="largest change of\nattn_out (its own unit)", title="what a change reaches, layer 2")
axes.legend(frameon=False)
plt.show()
print(f"positions shuffled before and after give the same up to {shuffled:.1g}")
lab.measured("positions where the unmasked output is the model's", int((apart < 1e-4).sum()))
lab.measured("positions that change with x[3]", int((reached > 1e-4).sum()))

# %%
lab.check("soft_lookup")

# %%
lab.check("attention_scores")

# %%
lab.check("softmax")

# %%
lab.check("attention")

# %%
lab.check("split_heads")

# %%
lab.check("merge_heads")

# %%
lab.check("multi_head_attention")

# %% [markdown]
# ## What this does not show
#
# - *That sqrt(D) is optimal.* You saw that it takes D out of the softmax for independent entries. In the trained model the
#   spread is anything from half of what the argument says to eight times as much, and no head has been asked to keep it at 1.
# - *That a model needs the division.* The curve shows that this model needs the factor it was trained with. One trained
#   without the division could have learnt smaller queries; whether it would get there is a question about training, which
#   nothing here measured.
# - *Why the model says what it says.* The viewer shows where a head reads. It does not show what the later layers do with it.
#   Two heads that move with a word are two heads that move with this word, in this sentence, in this model. "A head that looks
#   for an earlier copy" is a hypothesis until you test it on sentences you did not choose.
# - *That position 3 matters.* Every position changed when x[3] did. How much it matters to the prediction, you did not measure.
