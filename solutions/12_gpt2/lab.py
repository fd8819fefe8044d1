# %% [markdown]
# # 12 · GPT-2: your model, its weights, and what it writes
#
# *The same numbers in the same program give text, or nearly. How would you notice that one matrix is the wrong way round, and
# what do temperature, top-k and top-p do to what is written?*
#
# Put your guess in place of the dots in each cell that says `lab.predict`, before you run the cell below it. Figures in the
# text are from a run of this notebook and rounded; times will be others on your machine, and text drawn at random may differ.

# %%
# %matplotlib inline
import time

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F

from autograder.checkpoints import FOLDER, verified
from autograder.lab import Lab
from autograder.weights import read_checkpoint

lab = Lab("12_gpt2")
from gpt2 import from_pretrained, generate, load_state, next_token_probs
from tokenization import Tokenizer, load_merges

plt.rcParams.update({"font.size": 9, "figure.dpi": 100, "axes.spines.top": False, "axes.spines.right": False})
BLUE, RED, GREEN = "#3b6ea5", "#c1440e", "#7a9e3f"
reference, tokenizer = lab.model()
model = from_pretrained(FOLDER / "small")
L, C, T, V = (getattr(model.config, size) for size in ("n_layer", "n_embd", "n_ctx", "vocab_size"))
from pydoc_data.topics import topics

ids = torch.tensor(tokenizer.encode(topics["attribute-access"])[: 8 * T + 1])
inputs, targets = ids[:-1].view(8, T), ids[1:].view(8, T)
with torch.no_grad():
    logits = model(inputs)
    apart = (logits - reference(inputs)).abs().max().item()
print(f"L = {L}, C = {C}, n_ctx = {T}, V = {V}; logits differ from the course's own model by at most {apart:.0e}")

# %% [markdown]
# ## The matrix that fits both ways
#
# `attn.c_proj.weight` is (128, 128). Take a file whose projections are stored the other way round than your model keeps them,
# and a loader that copies what fits and turns what does not. It raises nothing. The text is 2,048 tokens that the model was
# not trained on; loaded rightly the loss is about 2.8 nats a token, and a model that knows nothing has ln 1257 = 7.14. What
# is the loss with all five square matrices the wrong way round, and which single layer does most harm?

# %%
lab.predict("loss with every attn.c_proj the wrong way round", ...)
lab.predict("the layer whose attn.c_proj does most harm alone", ...)


# %%
@torch.no_grad()
def loss(model):
    return F.cross_entropy(model(inputs).flatten(0, 1), targets.flatten()).item()


config, released = read_checkpoint(FOLDER / "small")
PROJECTIONS = ("c_attn.weight", "c_proj.weight", "c_fc.weight")
own = dict(model.named_parameters())
as_released = own["h.0.attn.c_attn.weight"].shape == released["h.0.attn.c_attn.weight"].shape
other_way = {k: t.T if as_released and k.endswith(PROJECTIONS) else t for k, t in released.items()}

careless, careful = from_pretrained(FOLDER / "small"), from_pretrained(FOLDER / "small")
with torch.no_grad():
    for name, parameter in careless.named_parameters():
        parameter.copy_(other_way[name] if other_way[name].shape == parameter.shape else other_way[name].T)
report = load_state(careful, other_way)
print(f"load_state: {loss(careful):.4f} nats a token, {len(report.transposed)} weights turned")


def edited(changes):
    """A model loaded by your load_state from the released file with some tensors replaced."""
    other = from_pretrained(FOLDER / "small")
    load_state(other, released | changes)
    return other


def square(layer):
    name = f"h.{layer}.attn.c_proj.weight"
    return {name: released[name].T.contiguous()}


as_trained, wrong = loss(model), loss(careless)
alone = [loss(edited(square(layer))) - as_trained for layer in range(L)]
print(f"as trained {as_trained:.4f}; one layer alone adds " + ", ".join(f"{one:.2f}" for one in alone))
lab.measured("loss with every attn.c_proj the wrong way round", wrong)
lab.measured("the layer whose attn.c_proj does most harm alone", max(range(L), key=alone.__getitem__))
prompt = torch.tensor([tokenizer.encode("The value of the expression is")])
for name, one in (("right", model), ("wrong", careless)):
    print(f"{name}: {tokenizer.decode(generate(one, prompt, 24, temperature=0)[0].tolist())!r}")

# %% [markdown]
# Measured: 5.11 in place of 2.82, the same loader but for one matrix in each layer. Alone, layer 2 costs 0.46 nats and layer 1
# 0.11; the five add up to 1.18, all together cost 2.29. The text still has words in it. Nothing raised, and `load_state`
# turned 20 weights and is back at 2.8202.
#
# ## Other mistakes that raise nothing
#
# Each line puts one mistake into the tensors of the file and hands them to your `load_state`. Which costs least, and
# which costs more than knowing nothing?

# %%
lab.predict("the mistake that costs least", ...)
lab.predict("loss when ln_1 and ln_2 are exchanged", ...)

# %%
layers = [f"h.{i}." for i in range(L)]
qkv = {n: released[n + "attn.c_attn.weight"].split(C, dim=1) for n in layers}
qkv_bias = {n: released[n + "attn.c_attn.bias"].split(C) for n in layers}
mistakes = {
    "positions counted from 1": {"wpe.weight": released["wpe.weight"].roll(-1, 0)},
    "no biases of q, k, v": {n + "attn.c_attn.bias": torch.zeros(3 * C) for n in layers},
    "no gain, no bias in ln_f": {"ln_f.weight": torch.ones(C), "ln_f.bias": torch.zeros(C)},
    "no positions": {"wpe.weight": torch.zeros(T, C)},
    "q and k exchanged": {n + "attn.c_attn.weight": torch.cat([k, q, v], 1) for n, (q, k, v) in qkv.items()}
    | {n + "attn.c_attn.bias": torch.cat([k, q, v]) for n, (q, k, v) in qkv_bias.items()},
    "ln_1 and ln_2 exchanged": {
        n + f"ln_{to}.{part}": released[n + f"ln_{3 - to}.{part}"] for n in layers for to in (1, 2) for part in ("weight", "bias")
    },
}
losses = {name: loss(edited(changes)) for name, changes in mistakes.items()}
for name, value in losses.items():
    print(f"{name:26} {value:.3f} nats a token")
lab.measured("the mistake that costs least", min(losses, key=losses.get))
lab.measured("loss when ln_1 and ln_2 are exchanged", losses["ln_1 and ln_2 exchanged"])

# %% [markdown]
# Measured: positions counted from 1 cost 0.013 nats, so little that a loss would not tell you. No biases of q, k and v cost
# 0.42, no gain and bias in `ln_f` 0.65, no positions 1.06. With q and k exchanged it is 5.33, and with the two norms
# exchanged 8.30, worse than the 7.14 of a model that knows nothing: it is sure, and wrong.
#
# ## Four temperatures
#
# The same prompt, the same seed, 40 new tokens, temperatures 0, 0.5, 1 and 1.5. Then the entropy of the next token's
# distribution, averaged over 2,048 positions of the held-out text, against the temperature. At an infinite temperature it
# would be log2 1257 = 10.3 bits. How many bits are there at temperatures 0.5 and 1.5?

# %%
lab.predict("entropy in bits at temperature 0.5", ...)
lab.predict("entropy in bits at temperature 1.5", ...)

# %%
for temperature in (0, 0.5, 1, 1.5):
    text = generate(model, prompt, 40, temperature=temperature, generator=torch.Generator().manual_seed(0))
    print(f"--- temperature {temperature}\n{tokenizer.decode(text[0].tolist())}\n")


def bits(probs):
    return torch.special.entr(probs).sum(-1) / torch.log(torch.tensor(2.0))


temperatures = [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5, 2, 3]
entropies = [bits(next_token_probs(logits, t)).mean().item() for t in temperatures]
start = model(prompt)[0, -1].detach()
figure, axes = plt.subplots(figsize=(5, 2.9), layout="constrained")
axes.plot(temperatures, entropies, "o-", color=BLUE, label="mean of 2,048 positions")
one = [bits(next_token_probs(start, t)).item() for t in temperatures]
axes.plot(temperatures, one, "s--", color=RED, label='after "... expression is"')
axes.axhline(torch.log2(torch.tensor(float(V))).item(), color="black", lw=0.8, ls=":")
axes.text(0, 10.0, "all tokens alike", va="top")
axes.set(xlabel="temperature (no unit)", ylabel="entropy (bits)", title="how undecided the next token is")
axes.legend(frameon=False, loc="lower right")
plt.show()
print("mean entropy: " + ", ".join(f"{t}: {e:.2f}" for t, e in zip(temperatures, entropies)))
lab.measured("entropy in bits at temperature 0.5", entropies[2])
lab.measured("entropy in bits at temperature 1.5", entropies[6])

# %% [markdown]
# Measured: on average 1.34 bits at 0.5, 3.46 at 1 and 5.59 at 1.5; at 3 there are 8.98 of the 10.33 that all tokens alike
# would have. Behind the prompt the model is less decided than on average: 6.44 bits at temperature 1. Greedy text repeats
# itself ("the same as the same as the same type"); at 1.5 words come apart ("Nunction").
#
# ## How many, and how much
#
# `top_k = 40` keeps 40 tokens wherever the model stands, `top_p = 0.9` as many as it takes. First four contexts, then all
# 2,048 positions. Thrown away is the share of the probability that moves to other tokens (half the sum of the differences).
# Which of the three (temperature 0.5, top-k, top-p) changes what is written when the model is sure (below 1 bit), and which
# changes most when it is not (above 6 bits)?

# %%
lab.predict("fewest tokens that top_p = 0.9 keeps at a position", ...)
lab.predict("most tokens that top_p = 0.9 keeps at a position", ...)
lab.predict("moves most when the model is sure", ...)
lab.predict("moves most when it is not", ...)

# %%
for context in ("The value of the expression is", "If the file is not found, the", "raise Value", "for i in"):
    with torch.no_grad():
        last = model(torch.tensor([tokenizer.encode(context)]))[0, -1]
    kept = [int((next_token_probs(last, **cut) > 0).sum()) for cut in ({"top_k": 40}, {"top_p": 0.9}, {"top_p": 0.5})]
    print(
        f"{context!r:34} {bits(next_token_probs(last)):5.2f} bits; top-k 40 keeps {kept[0]}, top-p 0.9 {kept[1]}, 0.5 {kept[2]}"
    )

whole = next_token_probs(logits).flatten(0, 1)
entropy = bits(whole)
cuts = {"temperature 0.5": {"temperature": 0.5}, "top-k 40": {"top_k": 40}, "top-p 0.9": {"top_p": 0.9}}
cut = {name: next_token_probs(logits, **how).flatten(0, 1) for name, how in cuts.items()}
kept = {name: (probs > 0).sum(-1) for name, probs in cut.items()}
moved = {name: (probs - whole).abs().sum(-1) / 2 for name, probs in cut.items()}
figure, (left, right) = plt.subplots(1, 2, figsize=(7.8, 3.1), layout="constrained")
for name, color in zip(cuts, (GREEN, RED, BLUE)):
    if name != "temperature 0.5":
        left.scatter(entropy, kept[name], s=3, color=color, label=name)
    right.scatter(entropy, moved[name], s=3, color=color, label=name)
left.set(xlabel="entropy (bits)", ylabel="tokens kept", yscale="log", title="how many tokens survive")
right.set(xlabel="entropy (bits)", ylabel="probability moved (share of 1)", title="how much probability moves")
left.legend(frameon=False, markerscale=4)
right.legend(frameon=False, markerscale=4)
plt.show()
sure, unsure = ({n: m[where].mean().item() for n, m in moved.items()} for where in (entropy < 1, entropy > 6))
for name in cuts:
    print(f"{name:16} moves {sure[name]:.4f} below 1 bit, {unsure[name]:.3f} above 6 bits")
print(f"{int((entropy < 1).sum())} positions below 1 bit, {int((entropy > 6).sum())} above 6; median kept by top-p:", end=" ")
print(kept["top-p 0.9"].median().item())
lab.measured("fewest tokens that top_p = 0.9 keeps at a position", kept["top-p 0.9"].min().item())
lab.measured("most tokens that top_p = 0.9 keeps at a position", kept["top-p 0.9"].max().item())
lab.measured("moves most when the model is sure", max(sure, key=sure.get))
lab.measured("moves most when it is not", max(unsure, key=unsure.get))

# %% [markdown]
# Measured: top-p 0.9 keeps between 1 and 387 tokens, half the time 22 or fewer; top-k keeps 40 behind "raise Value" too,
# where one token is all but certain (0.03 bits). When the model is sure, top-k moves 0.003 of the probability, top-p 0.04
# and temperature 0.5 0.06. When it is not, top-p moves 0.10, top-k 0.30 and the temperature 0.45: top-p moves at most
# 0.1 wherever it stands, and top-k more and more the less decided the model is.
#
# ## The same tokens, sooner
#
# 200 tokens at temperature 1 from one seed, with the cache and without it, in processor time of one thread. Are they equal to
# the last token, and what is the ratio of the times?

# %%
lab.predict("tokens that differ", ...)
lab.predict("time without the cache over time with it", ...)

# %%
written, spent, threads = {}, {}, torch.get_num_threads()
torch.set_num_threads(1)
for use_cache in (True, False):
    started = time.process_time()
    written[use_cache] = generate(model, prompt, 200, generator=torch.Generator().manual_seed(1), use_cache=use_cache)
    spent[use_cache] = time.process_time() - started
torch.set_num_threads(threads)
print(f"with the cache {spent[True]:.2f} s, without {spent[False]:.2f} s")
lab.measured("tokens that differ", int((written[True] != written[False]).sum()))
lab.measured("time without the cache over time with it", spent[False] / spent[True])

# %% [markdown]
# Measured: no token differs, and the cache makes it about 4 times faster (0.4 s and 1.5 s). Module 09 has the same question
# for longer texts and in detail.
#
# ## The released weights, where you have them
#
# This cell looks into the hub's cache on your disk and fetches nothing. `course generate --model gpt2` is one way to get them.

# %%
from huggingface_hub import try_to_load_from_cache

places = [try_to_load_from_cache("openai-community/gpt2", file) for file in ("config.json", "model.safetensors")]
if all(isinstance(place, str) for place in places):
    big = from_pretrained(places[1])
    words = Tokenizer(load_merges(str(verified("gpt2/vocab.bpe"))), {"<|endoftext|>": 50256})
    begin = torch.tensor([words.encode("The value of the expression is")])
    for temperature in (0, 1):
        text = generate(big, begin, 20, temperature=temperature, top_p=0.9, generator=torch.Generator().manual_seed(0))
        print(f"temperature {temperature}: {words.decode(text[0].tolist())!r}")
else:
    print("skipped: the released gpt2 is not in the cache of this machine")

# %%
lab.check("GPT2")

# %%
lab.check("load_state")

# %%
lab.check("from_pretrained")

# %%
lab.check("next_token_probs")

# %%
lab.check("generate")

# %% [markdown]
# ## What this does not show
#
# - *That a loss that looks right means a program that is right.* Positions counted from 1 cost next to nothing here. Only the
#   comparison of logits with a model known to be right finds such a mistake.
# - *Which temperature, k or p is best.* Nothing here measures whether a text is good. Entropy and moved probability say how
#   much a setting changes, not whether the change helps.
# - *How a larger model would behave.* All figures are from one small model on one held-out text; a model that is sure more
#   often gives top-p less to keep and a temperature less to move.
# - *What a cache saves past the context.* The 200 tokens fit into n_ctx = 256; behind it both ways compute the whole window.
