"""The case of 03_attention."""

import torch
import torch.nn.functional as F

from autograder.case import Case, Draw, refusal, sample

case = Case(
    "03_attention",
    axes={
        "weights": "N",
        "value": "Dv",
        "q": "B H T D",
        "k": "B H T D",
        "v": "B H T D",
        "scores": "B H Tq Tk",
        "pattern": "B H Tq Tk",
        "z": "B H Tq Dv",
        "heads": "B H T D",
        "merged": "B T C",
        "attn_out": "B T C",
    },
)

# ---------------------------------------------------------------- soft_lookup


@case.step
def weights(query, keys):
    return F.softmax(keys @ query, dim=-1)


@case.step
def value(weights, values):
    return weights @ values


def lookup_inputs(draw: Draw):
    yield sample("a dictionary of seven entries", query=draw.normal(5), keys=draw.normal(7, 5), values=draw.normal(7, 3))
    yield sample("values wider than keys", query=draw.normal(4), keys=draw.normal(3, 4), values=draw.normal(3, 6))
    whole = {
        "query": 5 * draw.integers(-9, 10, 5).float(),
        "keys": draw.integers(-9, 10, 6, 5).float(),
        "values": draw.normal(6, 2),
    }
    yield sample("dot products in the hundreds", gradient=False, **whole)


case.exercise(
    "soft_lookup(query, keys, values)",
    returns="value",
    inputs=lookup_inputs,
    points=1,
    lesson="A dictionary that answers with a mixture",
    hints=(
        "A dictionary gives back one value. What would it give back if every key fitted a little?",
        "One number for each key says how well it fits the query; make shares of those numbers, then average the values.",
        "w = softmax over n of (sum_d query[d] keys[n,d]);  value[e] = sum_n w[n] values[n,e]",
    ),
    reference=lambda query, keys, values: F.scaled_dot_product_attention(query[None], keys, values, scale=1.0)[0],
)


@case.fault(
    "lookup-scaled", at="weights", text="the lookup compares query and keys as they are: where does your factor come from?"
)
def _(query, keys):
    return F.softmax(keys @ query / query.shape[-1] ** 0.5, dim=-1)


@case.fault("lookup-without-softmax", at="weights", text="do your weights add up to 1, and is none of them negative?")
def _(query, keys):
    return keys @ query


@case.fault(
    "lookup-divides-by-sum",
    at="weights",
    text="dot products can be negative: can shares made by dividing by their sum be trusted?",
)
def _(query, keys):
    dots = keys @ query
    return dots / dots.sum()


@case.fault("lookup-hard", at="weights", text="your lookup takes the best entry alone: what do the other entries contribute?")
def _(query, keys):
    dots = keys @ query
    return F.one_hot(dots.argmax(), len(dots)).to(dots.dtype)


@case.fault("lookup-by-cosine", at="weights", text="does the length of a key count in a dot product?")
def _(query, keys):
    return F.softmax(F.cosine_similarity(keys, query[None], dim=-1), dim=-1)


@case.fault("lookup-overflows", at="weights", text="what is exp(100) in float32, and what is inf / inf?")
def _(query, keys):
    raised = torch.exp(keys @ query)
    return raised / raised.sum()


@case.fault("lookup-returns-keys", at="value", text="the keys say where to look: which tensor holds what is to be read?")
def _(weights, keys):
    return weights @ keys


@case.fault("lookup-averages-all", at="value", text="does your answer change when the query does?")
def _(values):
    return values.mean(0)


# ---------------------------------------------------------------- the layer, step by step


@case.step
def _qkv(x, c_attn_w, c_attn_b):
    return x @ c_attn_w + c_attn_b


@case.step
def _parts(_qkv):
    return _qkv.chunk(3, dim=-1)


@case.step
def _heads(_parts, n_head):
    return tuple(part.unflatten(-1, (n_head, -1)).movedim(-2, 1) for part in _parts)


@case.step
def q(_heads):
    return _heads[0]


@case.step
def k(_heads):
    return _heads[1]


@case.step
def v(_heads):
    return _heads[2]


@case.step
def _dots(q, k):
    return q @ k.mT


@case.step
def _scale(q):
    return q.shape[-1] ** -0.5


@case.step
def scores(_dots, _scale):
    return _dots * _scale


@case.step
def pattern(scores):
    return F.softmax(scores, dim=-1)


@case.step
def z(pattern, v):
    return pattern @ v


@case.step
def _merged(z):
    return z.movedim(1, 2).flatten(2)


@case.step
def attn_out(_merged, c_proj_w, c_proj_b):
    return _merged @ c_proj_w + c_proj_b


# ---------------------------------------------------------------- attention_scores


def score_inputs(draw: Draw):
    yield sample("five queries, seven keys", q=draw.normal(2, 3, 5, 6), k=draw.normal(2, 3, 7, 6))
    yield sample("another head size", q=draw.normal(2, 4, 3, 10), k=draw.normal(2, 4, 5, 10))
    yield sample("one query", q=draw.normal(3, 2, 1, 5), k=draw.normal(3, 2, 4, 5))
    yield sample("all axes of size 3", q=draw.normal(3, 3, 3, 3), k=draw.normal(3, 3, 3, 3))


case.exercise(
    "attention_scores(q, k)",
    returns="scores",
    inputs=score_inputs,
    points=2,
    lesson="Why sqrt(D)",
    hints=(
        "Each query meets each key of the same head: which axis of k must take the place of which?",
        "The spread of a sum of D products grows with D. Which power of D brings it back, and on which axis is D found?",
        "scores[b,h,i,j] = (1 / sqrt(D)) sum_d q[b,h,i,d] k[b,h,j,d]",
    ),
    reference=lambda q, k: torch.einsum("bhid,bhjd->bhij", q, k) / q.shape[-1] ** 0.5,
    golden=lambda real: {"q": real["h.1.attn.q"], "k": real["h.1.attn.k"]},
)


@case.fault(
    "scale-missing",
    at="_scale",
    tensor="scores",
    text="how does the spread of a dot product grow with the head size D, and what undoes it?",
)
def _():
    return 1.0


@case.fault(
    "scale-by-head-size", at="_scale", tensor="scores", text="you divide by D: is that the root, and is it applied only once?"
)
def _(q):
    return 1 / q.shape[-1]


@case.fault("scale-by-half-head-size", at="_scale", tensor="scores", text="in which order does Python read D ** 1 / 2?")
def _(q):
    return 2 / q.shape[-1]


@case.fault("scale-multiplies", at="_scale", tensor="scores", text="do you divide by the root of D, or multiply by it?")
def _(q):
    return q.shape[-1] ** 0.5


@case.fault(
    "scale-by-model-width", at="_scale", tensor="scores", text="how many products are summed in one dot product: C, or D?"
)
def _(q):
    return (q.shape[1] * q.shape[-1]) ** -0.5


@case.fault(
    "scale-from-key-count",
    at="_scale",
    tensor="scores",
    text="which axis of k has the head size: is it the one that counts the keys?",
)
def _(k):
    return k.shape[-2] ** -0.5


@case.fault(
    "scale-from-query-count",
    at="_scale",
    tensor="scores",
    text="which axis of q has the head size: is it the one that counts the queries?",
    only=("attention_scores", "attention"),
)
def _(q):
    return q.shape[-2] ** -0.5


@case.fault("scale-from-head-count", at="_scale", tensor="scores", text="is the number of heads the size of a head?")
def _(q):
    return q.shape[1] ** -0.5


@case.fault(
    "scale-from-batch-size", at="_scale", tensor="scores", text="what has the size of the batch to do with one dot product?"
)
def _(q):
    return q.shape[0] ** -0.5


def _fixed(size):
    @case.fault(
        f"scale-fixed-for-head-size-{size}",
        at="_scale",
        tensor="scores",
        text=f"your factor is right for D = {size} alone: where can the true D be read?",
    )
    def _():
        return size**-0.5


for _size in (4, 16, 32, 64, 128):
    _fixed(_size)


@case.fault("keys-reversed-by-T", at="_dots", tensor="scores", text="which axes does .T turn round when there are four of them?")
def _(q, k):
    return q @ k.permute(3, 2, 1, 0)


@case.fault(
    "keys-not-transposed",
    at="_dots",
    tensor="scores",
    text="which axis of k must be last, and which next to last, for each query to meet each key?",
)
def _(q, k):
    return q @ k


@case.fault("keys-transposed-over-heads", at="_dots", tensor="scores", text="which two axes of k change places?")
def _(q, k):
    return q @ k.transpose(1, 2)


@case.fault(
    "scores-transposed",
    at="_dots",
    tensor="scores",
    text="do the rows of your scores belong to queries, or to keys?",
    only=("attention_scores", "attention"),
)
def _(q, k):
    return k @ q.mT


@case.fault("scores-only-at-same-position", at="_dots", tensor="scores", text="does query i meet key j, or only key i?")
def _(q, k):
    return torch.diag_embed((q * k).sum(-1))


@case.fault(
    "scores-summed-over-batch", at="_dots", tensor="scores", text="does one sequence's score depend on the others in the batch?"
)
def _(q, k):
    return (q @ k.mT).sum(0, keepdim=True).expand(q.shape[0], -1, -1, -1)


@case.fault("scores-by-cosine", at="_dots", tensor="scores", text="does the length of a query or a key count in a dot product?")
def _(q, k):
    return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT


@case.fault("scores-by-distance", at="_dots", tensor="scores", text="is a dot product a distance?")
def _(q, k):
    return -(q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)


@case.fault(
    "scores-already-softmax",
    at="scores",
    text="scores are raw fits: who turns them into shares, and when?",
    only=("attention_scores",),
)
def _(right):
    return F.softmax(right, dim=-1)


@case.fault("scores-negated", at="scores", text="does a better fit give a larger score?")
def _(right):
    return -right


@case.fault("scores-masked-causally", at="scores", text="is anything hidden from a reader in this module?")
def _(right):
    return right.masked_fill(torch.ones_like(right).triu(1).bool(), -torch.inf)


# ---------------------------------------------------------------- softmax


@case.step
def shares(x, dim):
    return F.softmax(x, dim=dim)


def softmax_inputs(draw: Draw):
    yield sample("a (3, 4, 5) tensor", x=draw.normal(3, 4, 5))
    yield sample("dim = 1", x=draw.normal(3, 4, 5), dim=1)
    yield sample("dim = 0", x=draw.normal(3, 4), dim=0)
    yield sample("dim = -2", x=draw.normal(2, 3, 4, 5), dim=-2)
    yield sample("a vector", x=draw.normal(6))
    yield sample("a square", x=draw.normal(4, 4))
    rows = ((0, 200, -50, 3), (-1000, 0, 1000, -999), (200, 0, -50, 3), (50, 0, -50, 0))
    wide = draw.tensor([[float(number) for number in row] for row in rows])
    yield sample("numbers hundreds apart in one row", gradient=False, x=wide)
    yield sample("one row near 0 and one near 130", x=torch.stack([draw.normal(4), draw.normal(4) + 130]))
    yield sample("numbers around -130", x=draw.normal(3, 5) - 130)


case.exercise(
    "softmax(x, dim=-1)",
    returns="shares",
    inputs=softmax_inputs,
    points=2,
    lesson="Shares that survive large numbers",
    hints=(
        "exp makes every number positive. What makes the results add up to 1, and along which axis?",
        "Subtracting the same number from all entries of a row changes nothing in the result: which number keeps exp small?",
        "out[j] = exp(x[j] - m) / sum_i exp(x[i] - m), with m the largest entry along dim; keep that axis to broadcast",
    ),
    reference=lambda x, dim=-1: torch.softmax(x, dim),
    golden=lambda real: {"x": real["h.1.attn.scores"], "dim": -1},
    forbidden=("softmax", "softmin"),
)


@case.fault("softmax-overflows", at="shares", text="what is exp(130) in float32, and what is inf / inf?")
def _(x, dim):
    raised = torch.exp(x)
    return raised / raised.sum(dim, keepdim=True)


@case.fault(
    "softmax-max-over-everything",
    at="shares",
    text="a row far below the largest entry of the whole tensor: what is left of it after exp?",
)
def _(x, dim):
    raised = torch.exp(x - x.max())
    return raised / raised.sum(dim, keepdim=True)


@case.fault("softmax-ignores-dim", at="shares", text="which axis does the caller ask for, and which one do you sum over?")
def _(x):
    return F.softmax(x, dim=-1)


@case.fault("softmax-over-axis-before", at="shares", text="which axis must sum to 1, and which one does?")
def _(x, dim):
    return F.softmax(x, dim=-2 if dim in (-1, x.dim() - 1) else -1)


@case.fault("softmax-always-dim-1", at="shares", text="your axis is written as 1: which axis is that once a batch is in front?")
def _(x):
    return F.softmax(x, dim=1)


@case.fault("softmax-always-dim-0", at="shares", text="your axis is written as 0: which one did the caller ask for?")
def _(x):
    return F.softmax(x, dim=0)


@case.fault("softmax-over-everything", at="shares", text="does each row sum to 1, or only the whole tensor?")
def _(x):
    raised = torch.exp(x - x.max())
    return raised / raised.sum()


@case.fault("softmax-row-max-total-sum", at="shares", text="the sum in your denominator: over one row, or over all of them?")
def _(x, dim):
    raised = torch.exp(x - x.amax(dim, keepdim=True))
    return raised / raised.sum()


@case.fault("softmax-not-normalised", at="shares", text="do your shares add up to 1?")
def _(x, dim):
    return torch.exp(x - x.amax(dim, keepdim=True))


@case.fault("softmax-without-exp", at="shares", text="can a share be negative?")
def _(x, dim):
    return x / x.sum(dim, keepdim=True)


@case.fault("softmax-logarithm", at="shares", text="are these shares, or their logarithms?")
def _(x, dim):
    return F.log_softmax(x, dim=dim)


@case.fault("softmax-base-two", at="shares", text="which number is raised to the power x?")
def _(x, dim):
    return F.softmax(x * 0.6931471805599453, dim=dim)


@case.fault("softmax-of-negative", at="shares", text="does the largest input get the largest share?")
def _(x, dim):
    return F.softmax(-x, dim=dim)


@case.fault(
    "softmax-sum-not-kept",
    at="shares",
    text="after summing, does the axis still stand where it stood, so that rows meet their own sum?",
)
def _(x, dim):
    raised = torch.exp(x - x.amax(dim, keepdim=True))
    return raised / raised.sum(dim)


@case.fault(
    "softmax-max-not-kept",
    at="shares",
    text="after taking the maximum, does the axis still stand, so that rows meet their own maximum?",
)
def _(x, dim):
    raised = torch.exp(x - x.amax(dim))
    return raised / raised.sum(dim, keepdim=True)


@case.fault(
    "softmax-nothing-kept", at="shares", text="after the maximum and after the sum, do the axes still stand where they stood?"
)
def _(x, dim):
    raised = torch.exp(x - x.amax(dim))
    return raised / raised.sum(dim)


@case.fault(
    "softmax-of-smallest", at="shares", text="you take a number off each row: with which one is no exponential too large?"
)
def _(x, dim):
    raised = torch.exp(x - x.amin(dim, keepdim=True))
    return raised / raised.sum(dim, keepdim=True)


@case.fault("softmax-of-mean", at="shares", text="you take the mean off each row: how large can an entry still be?")
def _(x, dim):
    raised = torch.exp(x - x.mean(dim, keepdim=True))
    return raised / raised.sum(dim, keepdim=True)


@case.fault("softmax-of-first", at="shares", text="you take the first entry off each row: how large can the others still be?")
def _(x, dim):
    raised = torch.exp(x - x.narrow(dim, 0, 1))
    return raised / raised.sum(dim, keepdim=True)


@case.fault(
    "softmax-sum-without-gradient", at="shares", text="does the sum of a row depend on its entries, and does your gradient know?"
)
def _(x, dim):
    raised = torch.exp(x - x.amax(dim, keepdim=True))
    return raised / raised.sum(dim, keepdim=True).detach()


# ---------------------------------------------------------------- attention


def attention_inputs(draw: Draw):
    yield sample("five queries, seven keys", q=draw.normal(2, 3, 5, 6), k=draw.normal(2, 3, 7, 6), v=draw.normal(2, 3, 7, 8))
    yield sample("as many keys as queries", q=2 * draw.normal(2, 3, 4, 5), k=draw.normal(2, 3, 4, 5), v=draw.normal(2, 3, 4, 5))
    yield sample("another head size", q=draw.normal(2, 4, 3, 10), k=draw.normal(2, 4, 5, 10), v=draw.normal(2, 4, 5, 7))
    yield sample("all axes of size 3", q=draw.normal(3, 3, 3, 3), k=draw.normal(3, 3, 3, 3), v=draw.normal(3, 3, 3, 3))
    # Whole numbers, and a head size with a whole root: scores in the hundreds without rounding, in any order of summation.
    q, k = draw.integers(-9, 10, 1, 2, 3, 16).float(), 3 * draw.integers(-9, 10, 1, 2, 5, 16).float()
    q[:, :, 0] = 0
    yield sample("scores of 0 in one row and in the hundreds in others", gradient=False, q=q, k=k, v=draw.normal(1, 2, 5, 4))


FUSED = ("scaled_dot_product", "multi_head_attention")

case.exercise(
    "attention(q, k, v)",
    returns="z",
    inputs=attention_inputs,
    points=3,
    lesson="One reader, one distribution",
    hints=(
        "One query reads from all keys. For that one reader, which numbers must add up to 1?",
        "Scores, then shares over the key axis, then those shares of the values.",
        "pattern[b,h,i,:] = softmax(scores[b,h,i,:]);  z[b,h,i,e] = sum_j pattern[b,h,i,j] v[b,h,j,e]",
    ),
    reference=F.scaled_dot_product_attention,
    golden=lambda real: {name: real[f"h.1.attn.{name}"] for name in "qkv"},
    forbidden=FUSED,
)


@case.fault("softmax-over-queries", at="pattern", text="which axis must sum to 1 for one reader?")
def _(scores):
    return F.softmax(scores, dim=-2)


@case.fault("softmax-over-heads", at="pattern", text="do heads compete with each other? which axis is number 1 of four?")
def _(scores):
    return F.softmax(scores, dim=1)


@case.fault("softmax-over-batch", at="pattern", text="do the sequences of a batch share their attention?")
def _(scores):
    return F.softmax(scores, dim=0)


@case.fault(
    "softmax-over-all-pairs", at="pattern", text="does each reader have a whole to share out, or all readers one together?"
)
def _(scores):
    return F.softmax(scores.flatten(-2), dim=-1).view_as(scores)


@case.fault("pattern-without-softmax", at="pattern", text="do the weights of one reader add up to 1?")
def _(scores):
    return scores


@case.fault("pattern-softmax-twice", at="pattern", text="how many times are the scores turned into shares?")
def _(right):
    return F.softmax(right, dim=-1)


@case.fault("pattern-overflows", at="pattern", text="what is exp(100) in float32, and what is inf / inf?", only=("attention",))
def _(scores):
    raised = torch.exp(scores)
    return raised / raised.sum(-1, keepdim=True)


@case.fault(
    "pattern-max-over-everything",
    at="pattern",
    text="a row far below the largest score of all: what is left of it after exp?",
    only=("attention",),
)
def _(scores):
    raised = torch.exp(scores - scores.max())
    return raised / raised.sum(-1, keepdim=True)


@case.fault("pattern-hard", at="pattern", text="your reader takes the best key alone: what do the other keys contribute?")
def _(scores):
    return F.one_hot(scores.argmax(-1), scores.shape[-1]).to(scores.dtype)


@case.fault(
    "pattern-without-gradient", at="pattern", text="can training change where a reader looks, if no gradient passes back?"
)
def _(right):
    return right.detach()


@case.fault(
    "scores-one-letter-for-both", at="_dots", tensor="scores", text="query positions and key positions: one axis, or two?"
)
def _(q, k):
    return torch.einsum("bhtd,bhtd->bht", q, k)


@case.fault(
    "pattern-transposed", at="z", text="row i of the pattern says what position i reads: do you sum over its row, or its column?"
)
def _(pattern, v):
    return pattern.mT @ v


@case.fault("pattern-uniform", at="z", text="does your answer change when the queries do?")
def _(pattern, v):
    return torch.full_like(pattern, 1 / pattern.shape[-1]) @ v


@case.fault("pattern-unused", at="z", text="which tensor carries what was read from other positions?")
def _(v):
    return v


@case.fault("values-swapped-for-keys", at="z", text="which tensor is compared, and which one is read?", only=("attention",))
def _(pattern, k):
    return pattern @ k


@case.fault("values-not-read", at="z", text="the pattern only weighs: what does it weigh?", only=("attention",))
def _(pattern):
    return pattern


@case.fault("attention-across-heads", at="z", text="which axis is next to last when you attend: positions, or heads?")
def _(q, k, v):
    return F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)).transpose(1, 2)


@case.fault("attention-across-batch", at="z", text="does a sequence of the batch read from the others?")
def _(q, k, v):
    return F.scaled_dot_product_attention(q.transpose(0, 2), k.transpose(0, 2), v.transpose(0, 2)).transpose(0, 2)


# ---------------------------------------------------------------- split_heads and merge_heads


@case.step
def heads(x, n_head):
    if x.shape[-1] % n_head:
        raise ValueError(f"{x.shape[-1]} channels, {n_head} heads")
    return x.unflatten(-1, (n_head, -1)).movedim(-2, 1)


@case.step
def merged(z):
    return z.movedim(1, 2).flatten(2)


def split_inputs(draw: Draw):
    yield sample("three heads", x=draw.normal(2, 5, 12), n_head=3)
    yield sample("one head", x=draw.normal(3, 4, 6), n_head=1)
    yield sample("heads one channel wide", x=draw.normal(2, 4, 7), n_head=7)
    yield refusal("C = 10 channels for n_head = 3", x=draw.normal(2, 4, 10), n_head=3)


case.exercise(
    "split_heads(x, n_head)",
    returns="heads",
    inputs=split_inputs,
    points=2,
    lesson="Reshape, then transpose",
    hints=(
        "Row t of x belongs to position t. After your reshape, does each head still hold rows of whole positions?",
        "First cut the channel axis into (H, D); only then move the head axis in front of the positions.",
        "out[b,h,t,d] = x[b,t,h*D + d], with D = C / n_head",
    ),
    reference=lambda x, n_head: torch.stack(x.tensor_split(n_head, dim=-1), dim=1),
    golden=lambda real: {"x": real["h.1.ln_1"], "n_head": real.config["n_head"]},
)


def merge_inputs(draw: Draw):
    yield sample("three heads", z=draw.normal(2, 3, 5, 4))
    yield sample("as many positions as heads", z=draw.normal(2, 3, 3, 4))
    yield sample("one head", z=draw.normal(3, 1, 4, 5))


case.exercise(
    "merge_heads(z)",
    returns="merged",
    inputs=merge_inputs,
    points=1,
    lesson="The same way back",
    hints=(
        "Row t of the result holds what all heads say about position t. Which axis stands between them now?",
        "Undo split_heads in the opposite order: move the positions in front first, then lay the heads side by side.",
        "out[b,t,h*D + d] = z[b,h,t,d]",
    ),
    reference=lambda z: torch.cat(list(z.unbind(1)), dim=-1),
    golden=lambda real: {"z": real["h.1.attn.z"]},
)


@case.fault(
    "heads-split-without-transpose", at="heads", text="does one head hold whole positions, or slices of neighbouring ones?"
)
def _(x, n_head):
    B, T, C = x.shape
    return x.reshape(B, n_head, T, C // n_head)


@case.fault("heads-left-behind-positions", at="heads", text="which axis must stand second, so that each head sees all positions?")
def _(x, n_head):
    return x.unflatten(-1, (n_head, -1))


@case.fault("heads-take-every-nth-channel", at="heads", text="are the channels of head 0 next to each other?")
def _(x, n_head):
    return x.unflatten(-1, (-1, n_head)).permute(0, 3, 1, 2)


@case.fault("heads-before-batch", at="heads", text="which axis comes first, batch or heads?")
def _(x, n_head):
    return x.unflatten(-1, (n_head, -1)).permute(2, 0, 1, 3)


@case.fault("heads-and-size-swapped", at="heads", text="how many heads are there, and how wide is each?")
def _(x, n_head):
    return x.unflatten(-1, (-1, n_head)).movedim(-2, 1)


@case.fault("channels-left-over", at="heads", text="what becomes of the last channels when n_head does not divide C?")
def _(x, n_head):
    D = x.shape[-1] // n_head
    return x[..., : n_head * D].unflatten(-1, (n_head, D)).movedim(-2, 1)


@case.fault("heads-merged-without-transpose", at="merged", text="row t of the result: do all its numbers come from position t?")
def _(z):
    B, H, T, D = z.shape
    return z.reshape(B, T, H * D)


@case.fault("heads-merged-channel-by-channel", at="merged", text="are the channels of head 0 next to each other in the result?")
def _(z):
    return z.permute(0, 2, 3, 1).flatten(2)


@case.fault("merge-takes-heads-for-batch", at="merged", text="which of the first two axes is the batch?")
def _(z):
    B, H, T, D = z.shape
    return z.reshape(H, B, T, D).permute(1, 2, 0, 3).reshape(B, T, H * D)


@case.fault("merge-moves-wrong-axes", at="merged", text="positions and heads change places: which two axes did you exchange?")
def _(z):
    B, H, T, D = z.shape
    return z.transpose(-1, -2).reshape(B, T, H * D)


@case.fault("merge-batch-behind-positions", at="merged", text="which axis comes first in the result, batch or positions?")
def _(z):
    return z.permute(2, 0, 1, 3).flatten(2)


@case.fault(
    "view-after-transpose",
    at="merged",
    text="a transpose moves no numbers: can their present order be read in the new shape without a copy?",
)
def _(z):
    B, H, T, D = z.shape
    return z.contiguous().transpose(1, 2).view(B, T, H * D)


@case.fault("merge-adds-heads-up", at="merged", text="are the heads laid side by side, or added up?")
def _(z):
    return z.sum(1)


# ---------------------------------------------------------------- multi_head_attention


def layer_inputs(draw: Draw):
    for label, B, T, H, D in (("three heads", 2, 5, 3, 6), ("two heads, another size", 3, 7, 2, 5), ("one head", 2, 4, 1, 6)):
        C = H * D
        yield sample(
            label,
            x=draw.normal(B, T, C),
            c_attn_w=draw.normal(C, 3 * C, scale=C**-0.5),
            c_attn_b=draw.normal(3 * C, scale=0.5),
            c_proj_w=draw.normal(C, C, scale=C**-0.5),
            c_proj_b=draw.normal(C, scale=0.5),
            n_head=H,
        )


def _layer_reference(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    batch_second = x.transpose(0, 1)
    out, _ = F.multi_head_attention_forward(
        *(batch_second,) * 3,
        x.shape[-1],
        n_head,
        c_attn_w.T,
        c_attn_b,
        None,
        None,
        False,
        0.0,
        c_proj_w.T,
        c_proj_b,
        need_weights=False,
    )
    return out.transpose(0, 1)


def _golden_layer(real):
    names = ("attn.c_attn.weight", "attn.c_attn.bias", "attn.c_proj.weight", "attn.c_proj.bias")
    weights = (real[f"h.1.{name}"] for name in names)
    return dict(
        zip(("x", "c_attn_w", "c_attn_b", "c_proj_w", "c_proj_b"), (real["h.1.ln_1"], *weights)), n_head=real.config["n_head"]
    )


case.exercise(
    "multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head)",
    returns="attn_out",
    inputs=layer_inputs,
    points=7,
    lesson="One matrix, three roles",
    hints=(
        "c_attn makes 3*C columns at once. Which C of them are the queries, and which columns of those belong to head 0?",
        "Project, cut into q, k, v, split each into heads, attend, merge, project again; both projections have a bias.",
        "[q | k | v] = x @ c_attn_w + c_attn_b;  attn_out = merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b",
    ),
    reference=_layer_reference,
    golden=_golden_layer,
    forbidden=FUSED,
)


@case.fault("qkv-bias-missing", at="_qkv", tensor="q", text="what does c_attn add after the product?")
def _(right, c_attn_b):
    return right - c_attn_b


@case.fault("qkv-weight-transposed", at="_qkv", tensor="q", text="is the weight stored as (in, out), or as (out, in)?")
def _(x, c_attn_w, c_attn_b):
    return x @ c_attn_w.T + c_attn_b


@case.fault("qkv-activation", at="_qkv", tensor="q", text="can a query have negative entries, and can yours?")
def _(right):
    return F.relu(right)


@case.fault(
    "heads-see-own-slice-only", at="_qkv", tensor="q", text="which channels of x may a head read: all of them, or its own slice?"
)
def _(x, c_attn_w, c_attn_b, n_head):
    D = x.shape[-1] // n_head
    block = torch.block_diag(*[torch.ones(D, D, dtype=x.dtype, device=x.device)] * n_head)
    return x @ (c_attn_w * block.repeat(1, 3)) + c_attn_b


@case.fault(
    "qkv-cut-in-pieces-of-three", at="_parts", tensor="q", text="does split take the number of pieces, or the size of a piece?"
)
def _(_qkv):
    q, k, v = _qkv.split(3, dim=-1)
    return q, k, v


@case.fault("qkv-cut-along-positions", at="_parts", tensor="q", text="which axis holds q, k and v side by side?")
def _(_qkv):
    return _qkv.chunk(3, dim=1)


@case.fault("qkv-cut-along-batch", at="_parts", tensor="q", text="which axis holds q, k and v side by side: is it the first?")
def _(_qkv):
    q, k, v = _qkv.chunk(3, dim=0)
    return q, k, v


@case.fault("qkv-interleaved", at="_parts", tensor="q", text="are the C columns of q next to each other, or every third one?")
def _(_qkv):
    return _qkv.unflatten(-1, (-1, 3)).unbind(-1)


@case.fault(
    "qkv-split-after-heads", at="_heads", tensor="q", text="what does GPT-2 store first: all of q, or q, k and v of head 0?"
)
def _(_qkv, n_head):
    return _qkv.unflatten(-1, (n_head, -1)).movedim(-2, 1).chunk(3, dim=-1)


def _reordered(name, order, text):
    @case.fault(name, at="_parts", tensor="q" if order[0] else "k", text=text)
    def _(right):
        return tuple(right[index] for index in order)


_reordered(
    "queries-and-keys-swapped", (1, 0, 2), "which comes first in c_attn, and which of the two reads: the query or the key?"
)
_reordered("qkv-order-qvk", (0, 2, 1), "which comes last in c_attn, keys or values?")
_reordered("qkv-order-vkq", (2, 1, 0), "in which order does c_attn hold q, k and v?")
_reordered("qkv-order-kvq", (1, 2, 0), "in which order does c_attn hold q, k and v, and where does each one go?")
_reordered("qkv-order-vqk", (2, 0, 1), "in which order does c_attn hold q, k and v, and which one did you take first?")
_reordered("queries-copied-from-keys", (1, 1, 2), "do queries and keys come from different columns?")
_reordered("keys-copied-from-queries", (0, 0, 2), "do keys and queries come from different columns?")
_reordered("queries-copied-from-values", (2, 1, 2), "do queries and values come from different columns?")


def _copied(name, order, tensor, text):
    @case.fault(name, at="_parts", tensor=tensor, text=text)
    def _(right):
        return tuple(right[index] for index in order)


_copied("values-copied-from-keys", (0, 1, 1), "v", "do values and keys come from different columns?")
_copied("values-copied-from-queries", (0, 1, 0), "v", "do values and queries come from different columns?")
_copied("keys-copied-from-values", (0, 2, 2), "k", "do keys and values come from different columns?")


@case.fault(
    "split-without-transpose", at="_heads", tensor="q", text="does one head hold whole positions, or slices of neighbouring ones?"
)
def _(_parts, n_head):
    return tuple(part.reshape(part.shape[0], n_head, part.shape[1], -1) for part in _parts)


@case.fault("split-every-nth-channel", at="_heads", tensor="q", text="are the channels of head 0 next to each other?")
def _(_parts, n_head):
    return tuple(part.unflatten(-1, (-1, n_head)).permute(0, 3, 1, 2) for part in _parts)


@case.fault("all-heads-the-same", at="_heads", tensor="q", text="does each head have columns of its own?")
def _(right):
    return tuple(part[:, :1].expand_as(part) for part in right)


@case.fault("one-head-only", at="_heads", tensor="q", text="how many heads share the channels?")
def _(_parts, n_head):
    return tuple(part.unsqueeze(1) for part in _parts)


@case.fault(
    "merged-without-transpose",
    at="_merged",
    tensor="attn_out",
    text="row t before the last projection: do all its numbers come from position t?",
)
def _(z):
    B, H, T, D = z.shape
    return z.reshape(B, T, H * D)


@case.fault(
    "merged-channel-by-channel",
    at="_merged",
    tensor="attn_out",
    text="before the last projection, are the channels of head 0 next to each other?",
)
def _(z):
    return z.permute(0, 2, 3, 1).flatten(2)


@case.fault(
    "merged-by-view-after-transpose",
    at="_merged",
    tensor="attn_out",
    text="a transpose moves no numbers: can their present order be read in the new shape without a copy?",
)
def _(z):
    B, H, T, D = z.shape
    return z.contiguous().transpose(1, 2).view(B, T, H * D)


@case.fault(
    "merged-heads-taken-for-batch",
    at="_merged",
    tensor="attn_out",
    text="when the heads are merged, which of the first two axes is the batch?",
)
def _(z):
    B, H, T, D = z.shape
    return z.reshape(H, B, T, D).permute(1, 2, 0, 3).reshape(B, T, H * D)


@case.fault("output-bias-missing", at="attn_out", text="what does c_proj add after the product?")
def _(right, c_proj_b):
    return right - c_proj_b


@case.fault("output-bias-once-a-head", at="attn_out", text="how many times is the bias of c_proj added?")
def _(right, c_proj_b, n_head):
    return right + (n_head - 1) * c_proj_b


@case.fault(
    "output-weight-transposed",
    at="attn_out",
    text="c_proj_w is square, so the wrong orientation raises no error: is it (in, out)?",
)
def _(_merged, c_proj_w, c_proj_b):
    return _merged @ c_proj_w.T + c_proj_b


@case.fault("output-projection-missing", at="attn_out", text="what mixes the heads after they are laid side by side?")
def _(_merged):
    return _merged


@case.fault("output-activation", at="attn_out", text="can attn_out have negative entries, and can yours?")
def _(right):
    return F.relu(right)


@case.fault("output-discarded", at="attn_out", text="is the result of attention in what you return?")
def _(x):
    return x


@case.fault("residual-added", at="attn_out", text="who adds x to what attention writes: this function, or the block around it?")
def _(right, x):
    return right + x
