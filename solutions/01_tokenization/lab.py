# %% [markdown]
# # 01 · Tokenization: what a model is never told
#
# *How many letters r are there in 41236?*
#
# That is the word " strawberry", as GPT-2 reads it. In this lab you look at what else disappears in the step from text to
# ids: letters, digits, spaces, and how much text you get for a token. You measure with two vocabularies: GPT-2's 50,257 ids,
# and the 1,257 of the small model that comes with the course, whose merges your `train_bpe` could have learnt.
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it. Figures in the
# prose are from one run with Python 3.11; its help texts differ a little between versions.

# %%
# %matplotlib inline
import itertools
from collections import Counter

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Patch

from autograder.course import ROOT
from autograder.lab import Lab

lab = Lab("01_tokenization")
from tokenization import Tokenizer, load_merges, split_words, tokens_per_character, train_bpe

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
RED, BLUE, GRAY = "#c1440e", "#3b6ea5", "#777777"
merges = load_merges(ROOT / "checkpoints" / "gpt2" / "vocab.bpe")
gpt2 = Tokenizer(merges, {"<|endoftext|>": 50256})


def draw_tokens(axes, texts, tokenizer, title):
    """One line a text: each token in a box, its id below."""
    for line, text in enumerate(texts):
        place = 0
        for number, i in enumerate(tokenizer.encode(text)):
            token = tokenizer.decode([i]).replace(" ", "␣")
            width = max(len(token), len(str(i)) * 0.8) + 0.6
            box = plt.Rectangle((place, line - 0.42), width, 0.84, facecolor="#dbe6f2" if number % 2 else "#f6e0d5", edgecolor=GRAY)
            axes.add_patch(box)
            axes.text(place + width / 2, line - 0.1, token, ha="center", va="center", family="monospace", fontsize=9)
            axes.text(place + width / 2, line + 0.24, str(i), ha="center", va="center", family="monospace", fontsize=7, color=GRAY)
            place += width
    axes.set(xlim=(-0.2, 36), ylim=(len(texts) - 0.4, -0.6), title=title)
    axes.axis("off")


# %% [markdown]
# ## Letters
#
# Below you see one word in six spellings. To count the r in a text, a model must know, for each id that it meets, how many r
# that id holds; nothing in its input says so. How many such facts are there to learn, and does a model that has learnt them
# for the word with a space in front know anything about the word without it?

# %%
lab.predict("ids of GPT-2 that hold an r or R, of 50,257", ...)
lab.predict("ids that ' strawberry', 'strawberry', 'Strawberry' and 'STRAWBERRY' have in common", ...)

# %%
words = [" strawberry", "strawberry", " Strawberry", "STRAWBERRY", " strawbery", "s t r a w b e r r y"]
letters = Counter(gpt2.decode([i]).lower().count("r") for i in range(50256))
figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3), width_ratios=[2.2, 1], layout="constrained")
draw_tokens(left, words, gpt2, "tokens, and the ids that the model gets instead")
bars = right.bar(list(letters), list(letters.values()), color=BLUE)
right.bar_label(bars, labels=[f"{n:,}" for n in letters.values()], fontsize=7)
right.set(yscale="log", xlabel="letters r or R in the token", ylabel="ids (count)", title="a fact for each id", ylim=(1, 2e5))
plt.show()
lab.measured("ids of GPT-2 that hold an r or R, of 50,257", sum(n for r, n in letters.items() if r))
ids = [set(gpt2.encode(word)) for word in (" strawberry", "strawberry", "Strawberry", "STRAWBERRY")]
lab.measured(
    "ids that ' strawberry', 'strawberry', 'Strawberry' and 'STRAWBERRY' have in common", len(set.intersection(*ids))
)
print("each pair:", [len(a & b) for a, b in itertools.combinations(ids, 2)], [gpt2.encode(w) for w in words])

# %% [markdown]
# TEXT
#
# ## Digits
#
# A number is cut where the merges say, and the merges know which digits stood together often, not what a digit is worth. The
# picture has one dot for each of the numbers 1000 to 9999: its row is the first two digits, its column the last two. If the
# cut followed a rule about numbers, you would see it as a pattern.

# %%
lab.predict("share of the numbers 1000 to 9999 that are cut 2 and 2", ...)
lab.predict("of 1000 to 9998, share whose next number is cut in the same way", ...)

# %%
def cut(number):
    """How a number is cut, as digits a token: "2 2" for 12·34."""
    return " ".join(str(len(gpt2.decode([i]))) for i in gpt2.encode(str(number)))


cuts = [cut(number) for number in range(1000, 10000)]
kinds = [kind for kind, _ in Counter(cuts).most_common()]
print({kind: cuts.count(kind) for kind in kinds})
colors = plt.get_cmap("Set2", 8)(range(len(kinds)))
grid = np.array([colors[kinds.index(kind)] for kind in cuts]).reshape(90, 100, 4)
sums = ["127 + 677 = 804", "1234", "12345", "123456", "1999", "2000", "2001"]
figure, (left, right) = plt.subplots(1, 2, figsize=(8.2, 3.8), width_ratios=[1.3, 1], layout="constrained")
left.imshow(grid, extent=(-0.5, 99.5, 99.5, 9.5), interpolation="nearest", aspect="auto")
left.set(xlabel="last two digits", ylabel="first two digits", title="how 1000 to 9999 are cut")
left.legend(
    handles=[Patch(color=color, label=kind.replace(" ", "·")) for color, kind in zip(colors, kinds)],
    title="digits a token", loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=4, frameon=False,
)  # fmt: skip
draw_tokens(right, sums, gpt2, "where is the column of the tens?")
right.set_xlim(-0.2, 24)
plt.show()
lab.measured("share of the numbers 1000 to 9999 that are cut 2 and 2", cuts.count("2 2") / len(cuts))
same = [a == b for a, b in itertools.pairwise(cuts)]
lab.measured("of 1000 to 9998, share whose next number is cut in the same way", sum(same) / len(same))

# %% [markdown]
# TEXT
#
# ## The price of a text
#
# Eight sentences that say the same. Two causes multiply: how many bytes the script needs, and how many tokens those bytes
# become, because the merges were learnt from text that rarely contained them. Which is the larger one? And what do the
# 1,257 ids of the small model charge, which have seen nothing but Python's own English?

# %%
lab.predict("Hindi over English, in tokens of GPT-2", ...)
lab.predict("Hindi over English, in tokens of the small model", ...)

# %%
sentences = {
    "English": "The cat sleeps on the warm stone because the sun is shining.",
    "German": "Die Katze schläft auf dem warmen Stein, weil die Sonne scheint.",
    "Japanese": "日が照っているので、猫は暖かい石の上で眠っている。",
    "Chinese": "猫在温暖的石头上睡觉，因为阳光正照着。",
    "Arabic": "القطة تنام على الحجر الدافئ لأن الشمس مشرقة.",
    "Russian": "Кошка спит на тёплом камне, потому что светит солнце.",
    "Greek": "Η γάτα κοιμάται πάνω στη ζεστή πέτρα, γιατί ο ήλιος λάμπει.",
    "Hindi": "बिल्ली गर्म पत्थर पर सो रही है क्योंकि धूप निकली है।",
}
model, small = lab.model()


def times_english(measure):
    return np.array([measure(text) / measure(sentences["English"]) for text in sentences.values()])


in_bytes = times_english(lambda text: len(text.encode()))
tokens = {name: times_english(lambda text: len(t.encode(text))) for name, t in (("GPT-2", gpt2), ("small model", small))}
panels = {"bytes": in_bytes, "tokens a byte, GPT-2": tokens["GPT-2"] / in_bytes, "tokens, GPT-2": tokens["GPT-2"]}
panels["tokens, small model"] = tokens["small model"]
figure, axes = plt.subplots(1, 4, figsize=(8.2, 2.7), sharey=True, layout="constrained")
for axis, (name, values) in zip(axes, panels.items()):
    bars = axis.barh(list(sentences), values, color=RED if name.startswith("tokens,") else BLUE)
    axis.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    axis.axvline(1, color=GRAY, lw=0.8)
    axis.set(title=name, xlabel="times English", xlim=(0, 8.5))
axes[0].invert_yaxis()
plt.show()
print("tokens a character:", {name: round(tokens_per_character(gpt2, text), 2) for name, text in sentences.items()})
lab.measured("Hindi over English, in tokens of GPT-2", tokens["GPT-2"][-1].item())
lab.measured("Hindi over English, in tokens of the small model", tokens["small model"][-1].item())

# %% [markdown]
# ## Learning a vocabulary
#
# Now you learn the merges yourself, from Python's help topics, once for 2,256 ids: a smaller vocabulary is the beginning of
# the list. You price four texts with each size: the text itself, German, Hindi, and the same help topics in capitals. If
# this cell takes a minute, look at the last question of the lesson's section "Learning the merges".

# %%
lab.predict("tokens a character of the help topics, with 512 ids", ...)
lab.predict("tokens a character of the help topics, with 2,256 ids", ...)
lab.predict("tokens a character of the help topics in capitals, with 2,256 ids", ...)

# %%
from pydoc_data.topics import topics

text = "\n\n".join(topics[name] for name in sorted(topics))
learnt = train_bpe(text, 2256)
sizes = [256, 288, 320, 384, 512, 768, 1256, 2256]
texts = {"the help topics": text, "the same in capitals": text.upper(), "German": sentences["German"], "Hindi": sentences["Hindi"]}
prices = {name: [] for name in texts}
for size in sizes:
    tokenizer = Tokenizer(learnt[: size - 256])
    for name in texts:
        prices[name].append(tokens_per_character(tokenizer, texts[name]))
figure, axes = plt.subplots(figsize=(6, 3), layout="constrained")
for name, color, style in zip(prices, (RED, "#dd8452", BLUE, "#555555"), ("o-", "o--", "s-", "^-")):
    axes.plot(sizes, prices[name], style, color=color, label=name)
    elsewhere = tokens_per_character(gpt2, texts[name])
    axes.plot([50257], [elsewhere], style[0], color=color, markerfacecolor="none")
    print(f"{name:22}" + "  ".join(f"{size}: {price:.3f}" for size, price in zip(sizes, prices[name])), f"  GPT-2: {elsewhere:.3f}")
axes.set_xscale("log", base=2)
axes.set_xticks([256, 512, 1256, 2256, 50257], ["256", "512", "1,256", "2,256", "GPT-2's\n50,257"])
axes.set(xlabel="ids in the vocabulary", ylabel="tokens a character", title="what the merges were learnt from gets cheap", ylim=(0, None))
axes.legend(frameon=False)
plt.show()
print("the first merges:", [(a + b).decode() for a, b in learnt[:20]])
lab.measured("tokens a character of the help topics, with 512 ids", prices["the help topics"][sizes.index(512)])
lab.measured("tokens a character of the help topics, with 2,256 ids", prices["the help topics"][-1])
lab.measured("tokens a character of the help topics in capitals, with 2,256 ids", prices["the same in capitals"][-1])

# %% [markdown]
# TEXT
#
# ## A prompt that ends in a space
#
# So far no model was involved. The small one has read text in which a word carries its space in front, as " name". You type
# "the value of the " with a space at the end, and the tokenizer gives that space an id of its own, 220. The word that
# should follow is now "name" without a space, another id. How many nats does that cost?
#
# The places are taken from a help text that the model was not trained on: those where a token is a whole word with its space.
# At each, the model has read up to 100 tokens. You compare the surprise at " name" with the surprise at "name" after the
# space was typed. The second one is asked for *less*: the space is given.

# %%
lab.predict("surprise at the word with its space (nats)", ...)
lab.predict("surprise at the same word after a typed space (nats)", ...)
lab.predict("probability of the id 220 at these places", ...)

# %%
import torch

CONTEXT = 100
row = small.encode(topics["attribute-access"])
token = {i: small.decode([i]) for i in range(256, 1256)}
whole = [i for i in range(CONTEXT, len(row)) if token.get(row[i], "")[:1] == " " and token[row[i]][1:].isalpha()]
whole = [i for i in whole if small.decode([row[i + 1]])[:1] in (" ", "\n", ",", ".")]  # the word ends there
whole = whole[::3]
SPACE = small.encode(" ")[0]


@torch.no_grad()
def surprises(contexts, answers):
    """Nats that each answer, one or more ids, costs after its context; all contexts have one length."""
    longest = max(map(len, answers))
    rows = torch.tensor([c + a + [0] * (longest - len(a)) for c, a in zip(contexts, answers)])
    log_probs = model(rows[:, :-1]).log_softmax(-1)[:, len(contexts[0]) - 1 :]
    costs = -log_probs.gather(-1, rows[:, len(contexts[0]) :, None])[..., 0]
    return torch.stack([cost[: len(a)].sum() for cost, a in zip(costs, answers)]), log_probs[:, 0]


contexts = [row[i - CONTEXT : i] for i in whole]
together, before = surprises(contexts, [[row[i]] for i in whole])
apart, after = surprises([c + [SPACE] for c in contexts], [small.encode(token[row[i]][1:]) for i in whole])
print(len(whole), SPACE, [len(small.encode(token[row[i]][1:])) for i in whole][:20])
figure, axes = plt.subplots(figsize=(4,4)); axes.scatter(together, apart, s=4); axes.plot([0,10],[0,10]); plt.show()
top = after.exp().mean(0).topk(8)
print([(small.decode([int(i)]), round(float(p), 3)) for p, i in zip(*top)])
print("space", before[:, SPACE].exp().mean())
lab.measured("surprise at the word with its space (nats)", together.mean().item())
lab.measured("surprise at the same word after a typed space (nats)", apart.mean().item())
lab.measured("probability of the id 220 at these places", before[:, SPACE].exp().mean().item())
