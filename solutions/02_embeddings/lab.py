# %% [markdown]
# # Lab 02: look around in the tables
#
# **Question.** A token's row is 128 numbers that nobody chose. What did training put there? What is in its direction, what
# in its length, what in a step from one row to another, and does the model *use* what you find?
#
# You look at `wte` (1,257 rows) and `wpe` (256 rows) of the small GPT-2 of this course. It has 1.2 million parameters, a
# hundredth of GPT-2 small, and has read 2 million characters of what Python says about itself. Expect less of it than of
# the famous examples, and measure how much less. Losses are on help topics that were held out of the training
# (`checkpoints/corpus.py`), in nats a token. The figures in the prose are from Python 3.11, whose texts differ a little
# from those of other versions.
#
# Before each measurement stands a cell with dots. Put your guess there and run it; then run the measurement.

# %%
# %matplotlib inline
from autograder.lab import Lab

lab = Lab("02_embeddings")

import sys

import torch
import torch.nn.functional as F
from embeddings import analogy, cosine_similarity, embed, nearest_tokens, sinusoidal_positions, unembed
from matplotlib import pyplot as plt

from autograder.course import ROOT

sys.path.append(str(ROOT / "checkpoints"))
from corpus import load_corpus

plt.rcParams.update({"figure.dpi": 100, "axes.grid": True, "grid.alpha": 0.3, "axes.axisbelow": True})
model, tokenizer = lab.model()
model.requires_grad_(False)
wte, wpe = model.wte.weight, model.wpe.weight
(V, C), END_OF_TEXT = wte.shape, len(wte) - 1
words = [tokenizer.decode([i]) for i in range(V)]
spelt = {}
for i, word in enumerate(words):
    spelt.setdefault(word, i)  # single bytes that are no letter all read as the same sign: keep the first

corpus = load_corpus()
row = torch.tensor([i for text in corpus.held_out for i in [END_OF_TEXT, *tokenizer.encode(text)]])
n = (len(row) - 1) // 256
ids, targets = row[: n * 256].view(n, 256), row[1 : n * 256 + 1].view(n, 256)
training = corpus.topics + corpus.docstrings
seen = torch.bincount(torch.tensor([i for text in training for i in [END_OF_TEXT, *tokenizer.encode(text)]]), minlength=V)


def finish(resid):
    """Your embedding in, your logits out; the blocks between are the model's."""
    for block in model.h:
        resid = block(resid)
    return unembed(model.ln_f(resid), wte)


def loss(resid, targets=targets):
    return F.cross_entropy(finish(resid).flatten(0, 1), targets.flatten()).item()


base = loss(embed(ids, wte, wpe))
gap = (finish(embed(ids[:2], wte, wpe)) - model(ids[:2])).abs().max()
print(f"{n} windows of 256 held-out tokens, loss {base:.3f}; your two ends and the model's own differ by {gap:.0e}")
print(f"training text: {seen.sum():,} tokens; {int((seen == 0).sum())} of the {V:,} tokens never occur in it")

# %% [markdown]
# ## 1. Where: the position table
#
# `sinusoidal_positions` fixes how alike two rows are by their distance. Nobody told `wpe` about distance: each of its rows
# was learnt by itself. Compare the two. Then spoil the positions and see what the loss says. The shifts use `embed`'s
# `offset` on the first 128 tokens of each window, since the table ends at 256.

# %%
lab.predict("cosine of two learnt rows 1 apart (mean)", ...)
lab.predict("cosine of two learnt rows 128 apart (mean)", ...)
lab.predict("loss added with all positions zero", ...)
lab.predict("loss added with all positions shifted by one", ...)

# %%
waves = sinusoidal_positions(256, C)
alike = {"learnt": cosine_similarity(wpe[:, None], wpe[None]), "sinusoidal": cosine_similarity(waves[:, None], waves[None])}
by_distance = {name: torch.stack([table.diagonal(d).mean() for d in range(240)]) for name, table in alike.items()}
lab.measured("cosine of two learnt rows 1 apart (mean)", by_distance["learnt"][1].item())
lab.measured("cosine of two learnt rows 128 apart (mean)", by_distance["learnt"][128].item())

order = torch.randperm(256, generator=torch.Generator().manual_seed(0))
tables = {"zero": torch.zeros_like(wpe), "the mean row": wpe.mean(0).expand_as(wpe), "shuffled": wpe[order]}
tables["backwards"] = wpe.flip(0)
added = {name: loss(embed(ids, wte, table)) - base for name, table in tables.items()}
short, short_targets = ids[:, :128], targets[:, :128]
short_base = loss(embed(short, wte, wpe), short_targets)
for shift in (1, 4, 16, 64, 128):
    added[f"shifted by {shift}"] = loss(embed(short, wte, wpe, offset=shift), short_targets) - short_base
lab.measured("loss added with all positions zero", added["zero"])
lab.measured("loss added with all positions shifted by one", added["shifted by 1"])

figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="tight")
picture = axes[0, 0].imshow(alike["learnt"], cmap="RdBu_r", vmin=-1, vmax=1)
axes[0, 0].grid(False)
axes[0, 0].set(xlabel="position", ylabel="position", title="Cosine between learnt rows")
figure.colorbar(picture, ax=axes[0, 0])
for name, curve in by_distance.items():
    axes[0, 1].plot(curve, label=name)
axes[0, 1].axhline(0, color="black", lw=0.8)
axes[0, 1].set(xlabel="distance (positions)", ylabel="mean cosine", title="Alike by distance")
axes[0, 1].legend()
axes[1, 0].plot(wpe.norm(dim=-1), label="rows of wpe")
axes[1, 0].axhline(wte.norm(dim=-1).mean(), color="C1", ls="--", label="rows of wte (mean)")
axes[1, 0].set(xlabel="position", ylabel="length", ylim=0, title="Length of the rows")
axes[1, 0].legend()
axes[1, 1].bar_label(axes[1, 1].barh(list(added), list(added.values()), color=["C0"] * 4 + ["C2"] * 5), fmt="%.2f", padding=3)
axes[1, 1].invert_yaxis()
axes[1, 1].margins(x=0.12)
axes[1, 1].set(xlabel="loss added (nats per token)", title="Spoilt positions")
plt.show()
print("mean cosine at distance", ", ".join(f"{d}: {by_distance['learnt'][d]:.2f}" for d in (1, 4, 16, 32, 64, 128, 200)))
print("sinusoidal              ", ", ".join(f"{d}: {by_distance['sinusoidal'][d]:.2f}" for d in (1, 4, 16, 32, 64, 128, 200)))
print(f"lengths: position 0 {wpe[0].norm():.2f}, position 1 {wpe[1].norm():.2f}, mean {wpe.norm(dim=-1).mean():.2f}; "
      f"mean of wte {wte.norm(dim=-1).mean():.2f}")
print(", ".join(f"{name} {cost:+.3f}" for name, cost in added.items()))

# %% [markdown]
# Measured with Python 3.11: nobody told the learnt table about distance, and it has it. Rows near each other are alike
# (0.87 at distance 1), rows 128 apart are not (-0.26), rows 200 apart are nearly opposite (-0.66). Unlike the sinusoids it
# hardly tells 1 from 16 apart (0.87 and 0.84). Row 0 is seven times as long as the average row, longer than a token's.
#
# Wrong positions are worse than none: zeros cost 1.19 nats, the mean row 1.20, a shuffled table 1.38, a reversed one 1.59.
# A shift of everything by one costs 0.02, by 16 0.19, by 128 0.75. A shift keeps the distances and shuffling does not: for
# small shifts at least, distances count for more than the number of the seat.
#
# ## 2. What: lengths and neighbours
#
# A row's length goes into every logit, a long row scores high by itself. Which tokens have long rows, the frequent ones or
# the rare ones, and what about tokens that never occurred? Then the neighbours: `nearest_tokens` always names some. To know
# when to be impressed, ask it the same about random vectors.

# %%
lab.predict("correlation of row length and log10(count), tokens that occur", ...)
lab.predict("mean row length of the tokens that never occur", ...)
lab.predict("nearest token to ' return'", ...)
lab.predict("largest cosine of a random vector with any of the 1,257 rows (mean of 200)", ...)

# %%
length, occurs = wte.norm(dim=-1), seen > 0
together = torch.corrcoef(torch.stack([seen[occurs].float().log10(), length[occurs]]))[0, 1].item()
lab.measured("correlation of row length and log10(count), tokens that occur", together)
lab.measured("mean row length of the tokens that never occur", length[~occurs].mean().item())

figure, axis = plt.subplots(figsize=(9, 4), layout="tight")
axis.scatter(seen[occurs], length[occurs], s=8, label="occurs")
axis.scatter(torch.full((int((~occurs).sum()),), 0.5), length[~occurs], s=8, color="C3", label="never occurs (drawn at 0.5)")
for name in (" the", " of", "\n", " turtle", "Error", "<|endoftext|>"):
    place = seen[spelt[name]].item(), length[spelt[name]].item()
    box = {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 1}
    axis.annotate(repr(name), place, fontsize=8, xytext=(5, 4), textcoords="offset points", bbox=box)
    axis.plot(*place, "o", ms=4, color="black")
axis.set(xscale="log", ylim=0, xlabel="times the token occurs in the training text", ylabel="length of its row")
axis.set(title="Rows of wte")
axis.legend(loc="lower left")
plt.show()
for low, high in ((1, 100), (100, 300), (300, 1000), (1000, 3000), (3000, 10**6)):
    some = (seen >= low) & (seen < high)
    print(f"{low:>5} to {high - 1:>6} times: {int(some.sum()):4d} tokens, mean length {length[some].mean():.2f}")
print(f"never:                {int((~occurs).sum()):4d} tokens, mean length {length[~occurs].mean():.2f}")

# %%
similar = cosine_similarity(wte[:, None], wte[None])
similar.fill_diagonal_(-1)
best = similar.max(1).values
generator = torch.Generator().manual_seed(0)
lots = cosine_similarity(torch.randn(200, 1, C, generator=generator), wte[None]).max(1).values
lab.measured("nearest token to ' return'", repr(words[nearest_tokens(wte[spelt[" return"]], wte, 1, [spelt[" return"]])[0]]))
lab.measured("largest cosine of a random vector with any of the 1,257 rows (mean of 200)", lots.mean().item())

for word in (" return", " class", " list", " string", " 1", "5", " is", " the", "ing", "Error", " import", "self", " not", "("):
    near = nearest_tokens(wte[spelt[word]], wte, 5, [spelt[word]])
    print(f"{word!r:10}", "  ".join(f"{words[i]!r} {similar[spelt[word], i]:.2f}" for i in near))

figure, axis = plt.subplots(figsize=(9, 3.2), layout="tight")
bins = torch.linspace(0, 1, 51)
for values, label in ((best[occurs], "the tokens that occur"), (lots, "random vectors")):
    axis.hist(values, bins, weights=torch.full_like(values, 100 / len(values)), alpha=0.6, label=label)
axis.set(xlabel="cosine with the nearest row", ylabel="share (% per bin of 0.02)", title="How near is the nearest neighbour?")
axis.legend()
plt.show()
never = similar[~occurs][:, ~occurs]
print(f"median cosine with the nearest row: {best[occurs].median():.2f}, of random vectors {lots.median():.2f}")
print(f"mean cosine between two tokens that never occur: {never[never > -1].mean():.3f}")

# %% [markdown]
# Length first: frequent tokens have the shorter rows, 1.12 on average from 3,000 times on and 1.38 below 100 (correlation
# -0.39). The longest rows, 2.03, belong to tokens that the training text does not hold at all, and these all point the same
# way: the mean cosine between two of them is 0.999. No text ever told them apart; all they ever get is the push down that
# every wrong token gets. A long row is no mark of importance.
#
# The neighbours make sense: the median token has one at cosine 0.46, while a random vector finds 0.28. But look at *what*
# sense. " list" is next to " tuple", " 1" next to " 2", "ing" next to "ation" and "able", " not" next to " also": things
# that can stand in the same place. That is what a next-token loss rewards. It is no scale of meaning, and no order: "5" is
# nearer to "7" (0.70) than to "6" (0.65).
#
# ## 3. Steps: analogies
#
# " king" and " queen" are no tokens here, so you cannot ask for them. What the vocabulary does hold is pairs that differ in
# *form*. The rules in the next cell collect them without looking at any row, at most 16 of a kind, and you ask for every
# pair from every other pair. Two comparisons keep it honest: does `analogy` beat simply taking the nearest neighbour of c,
# without any step? And how often would c itself have won, if it were not struck out?

# %%
lab.predict("plural: share of analogies answered right", ...)
lab.predict("plural: share answered right by the nearest neighbour of c alone", ...)
lab.predict("one more (4 -> 5): share of analogies answered right", ...)

# %%
rules = {
    "space\nname, _name": (lambda w: w.isalpha() and len(w) > 3, lambda w: " " + w),
    "plural\n_name, _names": (lambda w: w[:1] == " " and w[1:].isalpha() and len(w) > 4, lambda w: w + "s"),
    "capital\n_for, _For": (lambda w: w[:1] == " " and w[1:].islower() and len(w) > 2, lambda w: " " + w[1:].capitalize()),
    "digit\n4, _4": (str.isdecimal, lambda w: " " + w),
    "one more\n4, 5": (lambda w: w.isdecimal() and len(w) == 1, lambda w: str(int(w) + 1)),
}
pairs = {}
for rule, (fits, change) in rules.items():
    found = [(i, spelt[change(word)]) for word, i in spelt.items() if fits(word) and change(word) in spelt]
    pairs[rule] = found[:16]
scores, asked = {}, {}
for rule, some in pairs.items():
    right = torch.zeros(3)
    quadruples = [(a, b, c, d) for a, b in some for c, d in some if len({a, b, c, d}) == 4]
    for a, b, c, d in quadruples:
        with_step, no_step = analogy(a, b, c, wte) == [d], nearest_tokens(wte[c], wte, 1, exclude=(a, b, c)) == [d]
        nothing_out = nearest_tokens(wte[b] - wte[a] + wte[c], wte, 1) == [c]
        right += torch.tensor([with_step, no_step, nothing_out])
    scores[rule], asked[rule] = (right / len(quadruples)).tolist(), len(quadruples)
plural, one_more = list(rules)[1], list(rules)[4]
lab.measured("plural: share of analogies answered right", scores[plural][0])
lab.measured("plural: share answered right by the nearest neighbour of c alone", scores[plural][1])
lab.measured("one more (4 -> 5): share of analogies answered right", scores[one_more][0])

figure, axis = plt.subplots(figsize=(9, 4), layout="tight")
for k, name in enumerate(("analogy: right", "nearest to c, no step: right", "nothing struck out: c itself wins")):
    bars = axis.bar([i + (k - 1) * 0.27 for i in range(len(rules))], [s[k] * 100 for s in scores.values()], 0.26, label=name)
    axis.bar_label(bars, fmt="%.0f", fontsize=8)
axis.set_xticks(range(len(rules)), list(rules))
axis.set(ylabel="share of the questions (%)", ylim=(0, 118), title="a is to b as c is to d (_ is a space)")
axis.legend(ncols=3, fontsize=8, loc="upper center")
plt.show()
for rule, some in pairs.items():
    steps = torch.stack([wte[b] - wte[a] for a, b in some])
    agree = cosine_similarity(steps[:, None], steps[None])[~torch.eye(len(steps), dtype=torch.bool)].mean()
    name = rule.split("\n")[0]
    print(f"{name}: {len(some)} pairs, {asked[rule]} questions; two steps have the cosine {agree:.2f} on average")
    print("    ", " ".join(f"{words[a]!r}-{words[b]!r}" for a, b in some))

# %% [markdown]
# Form can be a step. The plural step answers 97 % of its questions, where the nearest neighbour alone has 73 %; capitals 83
# % against 33 %, the leading space 62 % against 38 %, the space before a digit 55 % against 0 %. "One more" is no step: 19
# % against 18 %, and two of its steps have the cosine -0.10 where those of the other kinds have 0.20 to 0.50.
#
# And the striking out matters: without it, c itself wins 57 to 97 % of the questions (5 % for the digits), because the step
# is short against the row. The 97 % of the plural are 97 % *of what is left*.
#
# ## 4. Does the model use the direction?
#
# A direction in a table may be there without mattering. So test it from the other end: let the model read "The name" and
# compare the probabilities of " are" and " is" next. Then add the plural step to the row of " name", the mean step of the
# *other* words, so that "names" itself takes no part, and ask again. Against it: the true plural, and a random vector of
# the same length.

# %%
lab.predict("log(p(are) / p(is)) after a singular noun (mean)", ...)
lab.predict("the same with the plural step of the other words added", ...)
lab.predict("words of 14 for which the step moves it from 'is' to 'are'", ...)

# %%
IS, ARE = spelt[" is"], spelt[" are"]
before = [END_OF_TEXT, *tokenizer.encode("The")]
steps = torch.stack([wte[b] - wte[a] for a, b in pairs[plural]])


def are_or_is(resid):
    last = finish(resid)[0, -1]
    return (last[ARE] - last[IS]).item()  # a difference of logits is the log of the ratio of probabilities


kinds = ("as it is", "with a random vector", "with the step of the others", "the true plural")
answers, own_step = [], []
for k, (one, many) in enumerate(pairs[plural]):
    step = (steps.sum(0) - steps[k]) / (len(steps) - 1)
    noise = F.normalize(torch.randn(C, generator=generator), dim=0) * step.norm()
    singular = embed(torch.tensor([[*before, one]]), wte, wpe)
    at_the_noun = torch.zeros_like(singular)
    at_the_noun[0, -1] = 1
    plural_resid = embed(torch.tensor([[*before, many]]), wte, wpe)
    pushed = [singular + at_the_noun * push for push in (noise, step)]
    answers.append([are_or_is(x) for x in (singular, *pushed, plural_resid)])
    own_step.append(cosine_similarity(steps[k], step).item())
answers = torch.tensor(answers)
lab.measured("log(p(are) / p(is)) after a singular noun (mean)", answers[:, 0].mean().item())
lab.measured("the same with the plural step of the other words added", answers[:, 2].mean().item())
lab.measured("words of 14 for which the step moves it from 'is' to 'are'", int((answers[:, 2] > 0).sum()))

figure, axis = plt.subplots(figsize=(10, 4), layout="tight")
for k, (name, mark) in enumerate(zip(kinds, ("o", "x", "^", "s"), strict=True)):
    axis.plot(answers[:, k], mark, color=("C0", "gray", "C2", "C1")[k], label=name)
axis.axhline(0, color="black", lw=0.8)
axis.set_xticks(range(len(answers)), [words[one].strip() for one, _ in pairs[plural]], rotation=30)
axis.set(ylabel="log(p(are) / p(is))", title="After 'The ...': above 0 the model expects 'are', below 'is'", ylim=(-5.5, 7))
axis.legend(ncols=4, fontsize=9, loc="upper center")
plt.show()
print("means:", ", ".join(f"{name} {mean:.2f}" for name, mean in zip(kinds, answers.mean(0).tolist(), strict=True)))
print(f"length of the mean step {steps.mean(0).norm():.2f}, of a row {length[occurs].mean():.2f}")
print("cosine of a word's own step with the mean of the others:")
print("    ", ", ".join(f"{words[one].strip()} {x:.2f}" for (one, _), x in zip(pairs[plural], own_step, strict=True)))

# %% [markdown]
# The model uses it. As they are, the 14 words lead to " is": log(p(are) / p(is)) is -2.5 on average. With the plural step
# of the 13 other words it is +1.8, close to the true plural's +2.3, and 13 of the 14 cross the line. A random vector of the
# same length, half a row, moves it to -2.2.
#
# The fourteenth is "return". Its "plural" is a verb, "returns", after which the model does not expect "are" either (-1.9),
# and its own step has the cosine 0.09 with those of the others, which have 0.41 to 0.71. The rule that collected the pairs
# could not know; the table does.
#
# ## Your functions
#
# The grader runs `modules/02_embeddings/embeddings.py` as it is on the disk, and each cell gives its points.

# %%
lab.check("embed_tokens")

# %%
lab.check("embed_positions")

# %%
lab.check("embed")

# %%
lab.check("unembed")

# %%
lab.check("sinusoidal_positions")

# %%
lab.check("cosine_similarity")

# %%
lab.check("nearest_tokens")

# %%
lab.check("analogy")

# %% [markdown]
# ## What this does not show
#
# - *That meaning is a direction.* All steps here are of form: a space, a capital, an s. Man and woman, king and queen
#   cannot be asked of 1,257 tokens, and where you can ask for something that is not form (one more), there is no step. A
#   million parameters do not show it; this lab says nothing about larger models.
# - *That 97 % is a property of the table.* Three words are struck out, the rules are few, the pairs of one kind share their
#   words, and for the digits 20 questions are five words.
# - *That a neighbour is a synonym.* Cosine says who is used alike in this text. A nearest neighbour always exists.
# - *That the plural direction means plural.* It moves "is" to "are" in one frame, "The ...", at one strength. What else it
#   moves was not measured.
# - *That order is in this table alone.* With all positions zero the loss is 4.15, far from knowing nothing (7.14). How much
#   of that needs any order was not measured, and the causal mask breaks the symmetry too.
