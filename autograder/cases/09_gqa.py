"""The case of 09_gqa."""

import itertools
import math

import torch
import torch.nn.functional as F

from autograder.case import ANY, Case, Draw, refusal, sample

case = Case(
    "09_gqa",
    axes={"repeated": "B H T D", "scores": "B H Tq Tk", "pattern": "B H Tq Tk", "z": "B H Tq Dv"},
)

# ---------------------------------------------------------------- repeat_kv


@case.step
def repeated(x, n_rep):
    return x[:, [h // n_rep for h in range(x.shape[1] * n_rep)]]


def repeat_inputs(draw: Draw):
    yield sample("three key/value heads, two readers each", x=draw.normal(2, 3, 5, 4), n_rep=2)
    yield sample("two key/value heads, four readers each", x=draw.normal(3, 2, 5, 6), n_rep=4)
    yield sample("one key/value head, three readers", x=draw.normal(2, 1, 4, 5), n_rep=3)
    yield sample("one reader each", x=draw.normal(2, 3, 4, 5), n_rep=1)
    yield sample("one position", x=draw.normal(2, 3, 1, 4), n_rep=2)
    yield sample("all axes of size 3", x=draw.normal(3, 3, 3, 3), n_rep=3)


case.exercise(
    "repeat_kv(x, n_rep)",
    returns="repeated",
    inputs=repeat_inputs,
    points=2,
    lesson="One owner, several readers: `repeat_kv`",
    hints=(
        "Neighbours share a head. Which key/value head does query head 3 read when each one has 2 readers?",
        "Each head is repeated in its place, before the next one comes. Which axis of x holds the heads?",
        "out[b,h,t,d] = x[b, floor(h / n_rep), t, d]",
    ),
    reference=lambda x, n_rep: torch.einsum("hg,bgtd->bhtd", torch.eye(x.shape[1]).kron(torch.ones(n_rep, 1)).to(x), x),
    golden=lambda real: {"x": real["h.1.attn.k"][:, :2], "n_rep": 3},
)


@case.fault(
    "heads-tiled", at="repeated", text="which key/value head do query heads 0 and 1 read: the same one, or two different ones?"
)
def _(x, n_rep):
    return x.repeat(1, n_rep, 1, 1)


@case.fault(
    "owner-modulo-group-size",
    at="repeated",
    text="query head 3 of 12, on 2 key/value heads: is its owner a remainder, and of a division by what?",
)
def _(x, n_rep):
    return torch.stack([x[:, h % n_rep] for h in range(x.shape[1] * n_rep)], dim=1)


@case.fault(
    "owner-divided-by-head-count",
    at="repeated",
    text="which number divides h: how many key/value heads there are, or how many readers each one has?",
)
def _(x, n_rep):
    return x[:, [h // x.shape[1] for h in range(x.shape[1] * n_rep)]]


@case.fault(
    "n-rep-taken-for-head-count",
    at="repeated",
    text="is n_rep the number of query heads, or the number of readers of each key/value head?",
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep // x.shape[1], dim=1)


@case.fault(
    "repeats-by-head-count",
    at="repeated",
    text="how many readers does each key/value head have: does your number of copies come from n_rep?",
)
def _(x):
    return x.repeat_interleave(x.shape[1], dim=1)


@case.fault("one-copy-too-many", at="repeated", text="does n_rep count the original?")
def _(x, n_rep):
    return x.repeat_interleave(n_rep + 1, dim=1)


@case.fault("one-copy-too-few", at="repeated", text="n_rep readers: how many heads stand in the result for each key/value head?")
def _(x, n_rep):
    return x.repeat_interleave(n_rep - 1, dim=1)


@case.fault("always-two-readers", at="repeated", text="does the number of copies follow n_rep?")
def _(x):
    return x.repeat_interleave(2, dim=1)


@case.fault("not-repeated", at="repeated", text="how many heads has the result: as many as x, or n_rep times as many?")
def _(x):
    return x


@case.fault(
    "repeated-over-positions",
    at="repeated",
    text="x is (B, Hkv, T, D): which axis holds the heads, and which one did you repeat?",
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep, dim=2)


@case.fault(
    "positions-repeated-then-cut-into-heads",
    at="repeated",
    text="x is (B, Hkv, T, D): does a head of your result hold each position once?",
)
def _(x, n_rep):
    B, Hkv, T, D = x.shape
    return x.repeat_interleave(n_rep, dim=2).reshape(B, Hkv * n_rep, T, D)


@case.fault(
    "repeated-over-channels", at="repeated", text="x is (B, Hkv, T, D): which axis holds the heads, and which one did you repeat?"
)
def _(x, n_rep):
    return x.repeat_interleave(n_rep, dim=3)


@case.fault("repeated-over-batch", at="repeated", text="are there more sequences afterwards, or more heads?")
def _(x, n_rep):
    return x.repeat_interleave(n_rep, dim=0)


@case.fault("repeated-without-axis", at="repeated", text="how many axes has your result when you do not say which one to repeat?")
def _(x, n_rep):
    return x.repeat_interleave(n_rep)


@case.fault(
    "numbers-repeated-then-cut-into-heads", at="repeated", text="what is repeated here: each number, or each head as a whole?"
)
def _(x, n_rep):
    B, Hkv, T, D = x.shape
    return x.repeat_interleave(n_rep).reshape(B, Hkv * n_rep, T, D)


@case.fault(
    "view-after-expand",
    at="repeated",
    text="a stretched axis holds no copies: can the stretched tensor be viewed in the merged shape?",
)
def _(x, n_rep):
    B, Hkv, T, D = x.shape
    return x[:, :, None].expand(B, Hkv, n_rep, T, D).view(B, Hkv * n_rep, T, D)


@case.fault(
    "head-axis-expanded",
    at="repeated",
    text="only an axis of size 1 can be stretched: what size has the head axis when Hkv is 3?",
)
def _(x, n_rep):
    B, Hkv, T, D = x.shape
    return x.expand(B, Hkv * n_rep, T, D)


@case.fault("copies-not-merged", at="repeated", text="five axes, or four: are copies and heads one axis in the result?")
def _(x, n_rep):
    return x[:, :, None].repeat(1, 1, n_rep, 1, 1)


@case.fault(
    "copies-not-merged-and-in-front",
    at="repeated",
    text="five axes, or four: are copies and heads one axis, and which of the two would come first?",
)
def _(x, n_rep):
    return x[:, None].repeat(1, n_rep, 1, 1, 1)


@case.fault("heads-behind-positions", at="repeated", text="which axis stands second in the result, heads or positions?")
def _(right):
    return right.transpose(1, 2)


@case.fault("copies-share-the-value", at="repeated", text="does each reader get the head itself, or a part of it?")
def _(right, n_rep):
    return right / n_rep


@case.fault("first-copy-only", at="repeated", text="what do the second and later readers of a head find?")
def _(x, n_rep):
    return torch.stack([x] + [torch.zeros_like(x)] * (n_rep - 1), dim=2).flatten(1, 2)


@case.fault("first-head-for-all", at="repeated", text="do the readers of key/value head 1 find head 1?")
def _(x, n_rep):
    return x[:, :1].repeat(1, x.shape[1] * n_rep, 1, 1)


@case.fault("heads-averaged", at="repeated", text="does one reader read one key/value head, or a mixture of them?")
def _(x, n_rep):
    return x.mean(1, keepdim=True).repeat(1, x.shape[1] * n_rep, 1, 1)


@case.fault("heads-in-reverse", at="repeated", text="which key/value head does query head 0 read?")
def _(right):
    return right.flip(1)


# ---------------------------------------------------------------- grouped_query_attention


@case.step
def _group(q, k):
    if q.shape[1] % k.shape[1]:
        raise ValueError(f"{q.shape[1]} query heads, {k.shape[1]} key/value heads")
    return q.shape[1] // k.shape[1]


@case.step
def _owner(k, _group):
    return [h // _group for h in range(k.shape[1] * _group)]


@case.step
def _keys(k, _owner):
    return k[:, _owner]


@case.step
def _values(v, _owner):
    return v[:, _owner]


@case.step
def _scale(q):
    return q.shape[-1] ** -0.5


@case.step
def _queries(q, k, _group):
    return q[:, : k.shape[1] * _group]  # all of them: k.shape[1] * _group is H, unless the division was not exact


@case.step
def _dots(_queries, _keys):
    return _queries @ _keys.mT


@case.step
def scores(_dots, _scale):
    return _dots * _scale


@case.step
def _allowed(mask, scores):
    everything = torch.ones_like(scores, dtype=torch.bool)
    return everything if mask is None else everything & mask


@case.step
def _empty(_allowed):
    return ~_allowed.any(-1, keepdim=True)


@case.step
def _low(scores, _allowed, _empty):
    # A row that may attend to nothing is opened here and put to zero afterwards: so nothing is ever 0/0.
    return scores.masked_fill(~(_allowed | _empty), -torch.inf)


@case.step
def pattern(_low, _empty):
    return F.softmax(_low, dim=-1).masked_fill(_empty, 0)


@case.step
def z(pattern, _values):
    return pattern @ _values


def causal(Tq: int, Tk: int, device: str) -> torch.Tensor:
    """The last Tq of Tk positions: each sees itself and all before it."""
    return torch.ones(Tq, Tk, dtype=torch.bool, device=device).tril(Tk - Tq)


def attention_inputs(draw: Draw):
    def heads(B, H, Hkv, Tq, Tk, D, Dv):
        return {"q": draw.normal(B, H, Tq, D), "k": draw.normal(B, Hkv, Tk, D), "v": draw.normal(B, Hkv, Tk, Dv)}

    yield sample("six query heads on three key/value heads", **heads(2, 6, 3, 5, 7, 4, 8))
    yield sample("twelve query heads on two, causal mask (Tq, Tk)", **heads(3, 12, 2, 4, 6, 5, 5), mask=causal(4, 6, draw.device))
    yield sample("four query heads on one, causal mask", **heads(2, 4, 1, 3, 5, 6, 7), mask=causal(3, 5, draw.device))
    real = draw.tensor([[[[True] * 5]], [[[True, True, True, False, False]]]])
    yield sample("six query heads on two, padding mask (B, 1, 1, Tk)", **heads(2, 6, 2, 3, 5, 4, 7), mask=real)
    yield sample("as many key/value heads as query heads", **heads(2, 3, 3, 4, 4, 5, 6))
    own = draw.integers(0, 2, 3, 1, 4, 5).bool() | causal(4, 5, draw.device).logical_not()
    own[0], own[1, :, :, 1:3] = causal(4, 5, draw.device), False
    own[..., 0] = True
    yield sample(
        "as many sequences as key/value heads, each with its mask (B, 1, Tq, Tk)", **heads(3, 6, 3, 4, 5, 4, 6), mask=own
    )
    each = draw.integers(0, 2, 2, 6, 4, 5).bool()
    each[..., 0], each[:, 1::2, :, 1], each[0, :, 0, 2] = True, False, False
    yield sample("a mask for every query head (B, H, Tq, Tk)", **heads(2, 6, 2, 4, 5, 3, 7), mask=each)
    padded = torch.stack([causal(4, 4, draw.device), causal(4, 4, draw.device)])[:, None].clone()
    padded[1, :, :, :2] = False
    yield sample("rows that may attend to nothing", **heads(2, 4, 2, 4, 4, 5, 6), mask=padded)
    yield sample("one new query, five keys in the cache", **heads(2, 4, 2, 1, 5, 6, 3), mask=causal(1, 5, draw.device))
    for H, Hkv in ((7, 3), (4, 3), (2, 4)):
        yield refusal(f"H = {H} query heads for Hkv = {Hkv}", ValueError, **heads(2, H, Hkv, 4, 5, 6, 6))


def _golden_attention(real):
    k, v = (real[f"h.1.attn.{name}"][:, :2] for name in "kv")
    return {"q": real["h.1.attn.q"], "k": k, "v": v, "mask": causal(k.shape[2], k.shape[2], str(k.device))}


case.exercise(
    "grouped_query_attention(q, k, v, mask=None)",
    returns="z",
    inputs=attention_inputs,
    points=4,
    lesson="Share what is read, not who reads: `grouped_query_attention`",
    hints=(
        "There are fewer keys than queries by a factor of H / Hkv. Which heads of k and v must stand opposite query head h?",
        "Check that Hkv divides H, give each query head its key/value head; the rest is attention as before, masked or not.",
        "scores[b,h,i,j] = q[b,h,i] . k[b,g,j] / sqrt(D);  z[b,h,i] = sum_j pattern[b,h,i,j] v[b,g,j];  g = floor(h / (H / Hkv))",
    ),
    reference=lambda q, k, v, mask=None: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True),
    golden=_golden_attention,
    forbidden=("scaled_dot_product", "multi_head_attention"),
)


@case.fault(
    "uneven-groups-accepted", at="_group", tensor="scores", text="7 query heads, 3 key/value heads: what becomes of the seventh?"
)
def _(q, k):
    return q.shape[1] // k.shape[1]


@case.fault(
    "division-not-checked",
    at="_group",
    tensor="scores",
    text="7 query heads, 3 key/value heads: which line of yours says that this cannot be, and does it name both numbers?",
)
def _(q, k):
    if q.shape[1] % k.shape[1]:
        raise RuntimeError("what a product of tensors of unequal sizes raises, far below")
    return q.shape[1] // k.shape[1]


@case.fault(
    "division-asked-the-wrong-way", at="_group", tensor="scores", text="which of the two numbers must divide the other, H or Hkv?"
)
def _(q, k):
    if k.shape[1] % q.shape[1]:
        raise ValueError(ANY)
    return q.shape[1] // k.shape[1]


TILED = "which key/value head do query heads 0 and 1 read: the same one, or two different ones?"


@case.fault("query-heads-tiled", at="_owner", tensor="scores", text=TILED)
def _(q, k):
    return [h % k.shape[1] for h in range(q.shape[1])]


@case.fault("keys-tiled", at="_keys", tensor="scores", text="are keys repeated in the same order as values?")
def _(k, _group):
    return k.repeat(1, _group, 1, 1)


@case.fault("values-tiled", at="_values", tensor="z", text="are values repeated in the same order as keys?")
def _(v, _group):
    return v.repeat(1, _group, 1, 1)


@case.fault("first-kv-head-for-all", at="_owner", tensor="scores", text="does query head H - 1 read the last key/value head?")
def _(q):
    return [0] * q.shape[1]


@case.fault(
    "owner-by-remainder-of-group-size",
    at="_owner",
    tensor="scores",
    text="query head 3 of 12, on 2 key/value heads: is its owner a remainder, and of a division by what?",
)
def _(q, _group):
    return [h % _group for h in range(q.shape[1])]


@case.fault(
    "owner-divided-by-kv-head-count",
    at="_owner",
    tensor="scores",
    text="which number divides h: how many key/value heads there are, or how many readers each one has?",
)
def _(q, k):
    return [h // k.shape[1] for h in range(q.shape[1])]


@case.fault("owners-in-reverse", at="_owner", tensor="scores", text="which key/value head does query head 0 read?")
def _(right):
    return right[::-1]


@case.fault("kv-not-repeated", at="_owner", tensor="scores", text="q has H heads: how many have k and v when they meet it?")
def _(k):
    return list(range(k.shape[1]))


@case.fault(
    "kv-repeated-twice",
    at="_owner",
    tensor="scores",
    text="are the keys and values perhaps already repeated when you repeat them?",
)
def _(right, _group):
    return [head for head in right for _ in range(_group)]


COPIES = "each key/value head serves H / Hkv query heads: how many copies did you ask for?"


@case.fault("kv-repeated-by-kv-head-count", at="_owner", tensor="scores", text=COPIES)
def _(k):
    return [head for head in range(k.shape[1]) for _ in range(k.shape[1])]


@case.fault("kv-repeated-by-query-head-count", at="_owner", tensor="scores", text=COPIES)
def _(q, k):
    return [head for head in range(k.shape[1]) for _ in range(q.shape[1])]


def _over_positions(x, group):
    B, Hkv, T, D = x.shape
    return x.repeat_interleave(group, dim=2).reshape(B, Hkv * group, T, D)


@case.fault("keys-repeated-over-positions", at="_keys", tensor="scores", text="k is (B, Hkv, Tk, D): which axis holds the heads?")
def _(k, _group):
    return _over_positions(k, _group)


@case.fault("values-repeated-over-positions", at="_values", tensor="z", text="v is (B, Hkv, Tk, D): which axis holds the heads?")
def _(v, _group):
    return _over_positions(v, _group)


@case.fault(
    "kv-heads-averaged", at="_keys", tensor="scores", text="does one query head read one key/value head, or a mixture of them?"
)
def _(right):
    return right.mean(1, keepdim=True).expand_as(right)


@case.fault(
    "queries-averaged-in-group", at="_queries", tensor="scores", text="what is shared in a group: what is read, or who reads?"
)
def _(right, _group):
    return right.unflatten(1, (-1, _group)).mean(2).repeat_interleave(_group, dim=1)


@case.fault(
    "first-query-of-group-for-all", at="_queries", tensor="scores", text="does each query head of a group ask its own question?"
)
def _(right, _group):
    return right[:, ::_group].repeat_interleave(_group, dim=1)


@case.fault("scale-missing", at="_scale", tensor="scores", text="what keeps the spread of a dot product at 1 when D grows?")
def _():
    return 1.0


@case.fault(
    "scale-by-head-size", at="_scale", tensor="scores", text="you divide by D: is that the root, and is it applied only once?"
)
def _(q):
    return 1 / q.shape[-1]


@case.fault("scale-multiplies", at="_scale", tensor="scores", text="do you divide by the root of D, or multiply by it?")
def _(q):
    return q.shape[-1] ** 0.5


@case.fault("scale-by-half-head-size", at="_scale", tensor="scores", text="in which order does Python read D ** 1 / 2?")
def _(q):
    return 2 / q.shape[-1]


@case.fault(
    "scale-by-model-width",
    at="_scale",
    tensor="scores",
    text="how many products are summed in one dot product: D, or H times as many?",
)
def _(q):
    return (q.shape[1] * q.shape[-1]) ** -0.5


@case.fault(
    "scale-by-group-width",
    at="_scale",
    tensor="scores",
    text="how many products are summed in one dot product: D, or D for each reader of the group?",
)
def _(q, _group):
    return (_group * q.shape[-1]) ** -0.5


@case.fault(
    "scale-by-kv-width",
    at="_scale",
    tensor="scores",
    text="how many products are summed in one dot product: D, or Hkv times as many?",
)
def _(q, k):
    return (k.shape[1] * q.shape[-1]) ** -0.5


@case.fault("scale-from-value-width", at="_scale", tensor="scores", text="does the width of v enter a dot product of q and k?")
def _(v):
    return v.shape[-1] ** -0.5


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
)
def _(q):
    return q.shape[-2] ** -0.5


@case.fault("scale-from-head-count", at="_scale", tensor="scores", text="is the number of query heads the size of a head?")
def _(q):
    return q.shape[1] ** -0.5


@case.fault("scale-from-kv-head-count", at="_scale", tensor="scores", text="is the number of key/value heads the size of a head?")
def _(k):
    return k.shape[1] ** -0.5


@case.fault("scale-from-group-size", at="_scale", tensor="scores", text="is the number of readers in a group the size of a head?")
def _(_group):
    return _group**-0.5


def _fixed(size):
    text = f"your factor is right for D = {size} alone: where can the true D be read?"

    @case.fault(f"scale-fixed-for-head-size-{size}", at="_scale", tensor="scores", text=text)
    def _():
        return size**-0.5


for _size in (64, 128):
    _fixed(_size)


@case.fault("scores-negated", at="scores", text="does a better fit give a larger score?")
def _(right):
    return -right


# The mask, in the view with a group axis and without one.


@case.fault(
    "mask-ignored", at="_allowed", tensor="pattern", text="is there a place in your code where the mask changes anything?"
)
def _(scores):
    return torch.ones_like(scores, dtype=torch.bool)


@case.fault("mask-inverted", at="_allowed", tensor="pattern", text="what does True in a mask allow?")
def _(right, mask):
    return right if mask is None else ~right


@case.fault("causal-without-a-mask", at="_allowed", tensor="pattern", text="when no mask is given, what may be read?")
def _(right, mask):
    return right.tril(right.shape[-1] - right.shape[-2]) if mask is None else right


@case.fault(
    "causal-whatever-the-mask",
    at="_allowed",
    tensor="pattern",
    text="the mask says who may read whom: do you use it, or one of your own?",
)
def _(right, mask):
    return right if mask is None else torch.ones_like(right).tril(right.shape[-1] - right.shape[-2])


@case.fault(
    "causal-on-top-of-the-mask",
    at="_allowed",
    tensor="pattern",
    text="the mask says who may read whom: what do you hide beyond it?",
)
def _(right, mask):
    return right if mask is None else right.tril(right.shape[-1] - right.shape[-2])


@case.fault(
    "causal-from-the-first-key",
    at="_allowed",
    tensor="pattern",
    text="one new query and 5 keys, 4 of them from the cache: which of them does row 0 of your mask show?",
)
def _(right, mask):
    return right if mask is None else torch.ones_like(right).tril()


@case.fault(
    "mask-asked-for-its-truth",
    at="_allowed",
    tensor="pattern",
    text="`if mask:` asks a whole tensor for one truth: what do you want to know about it?",
)
def _(right, mask):
    return right if mask is None or bool(mask) else right


def _in_groups(scores, mask, group):
    """Which pairs are allowed, where the mask meets scores of shape (B,Hkv,group,Tq,Tk)."""
    everything = torch.ones_like(scores, dtype=torch.bool).unflatten(1, (-1, group))
    return everything.masked_fill(~mask, False).flatten(1, 2)


@case.fault(
    "mask-meets-five-axes",
    at="_allowed",
    tensor="pattern",
    text="against which of five axes does the B of a mask (B, 1, Tq, Tk) land?",
)
def _(right, mask, scores, _group):
    return right if mask is None else _in_groups(scores, mask, _group)


@case.fault(
    "mask-taken-for-four-axes", at="_allowed", tensor="pattern", text="a mask (Tq, Tk) has two axes: where does your new axis go?"
)
def _(right, mask, scores, _group):
    return right if mask is None else _in_groups(scores, mask[:, :, None], _group)


@case.fault(
    "mask-heads-tiled", at="_allowed", tensor="pattern", text="row h of a mask (B, H, Tq, Tk): does it meet query head h?"
)
def _(right, _group):
    return right.unflatten(1, (_group, -1)).transpose(1, 2).flatten(1, 2)


@case.fault("mask-transposed", at="_allowed", tensor="pattern", text="row i of a mask is for query i, or for key i?")
def _(scores, mask):
    everything = torch.ones_like(scores, dtype=torch.bool)
    return everything if mask is None else everything.masked_fill(~mask.mT, False)


@case.fault(
    "mask-of-first-head", at="_allowed", tensor="pattern", text="does each query head have its own mask, where one is given?"
)
def _(right):
    return right[:, :1].expand_as(right)


@case.fault(
    "mask-of-first-head-in-group",
    at="_allowed",
    tensor="pattern",
    text="does each query head of a group have its own mask, where one is given?",
)
def _(right, _group):
    return right[:, ::_group].repeat_interleave(_group, dim=1)


@case.fault(
    "mask-of-first-sequence",
    at="_allowed",
    tensor="pattern",
    text="does each sequence of the batch have its own mask, where one is given?",
)
def _(right):
    return right[:1].expand_as(right)


@case.fault("mask-of-first-query", at="_allowed", tensor="pattern", text="does each query have its own row of the mask?")
def _(right):
    return right[:, :, :1].expand_as(right)


@case.fault(
    "mask-of-last-query",
    at="_allowed",
    tensor="pattern",
    text="does each query have its own row of the mask, the early ones too?",
)
def _(right):
    return right[:, :, -1:].expand_as(right)


@case.fault(
    "mask-rows-repeated-for-folded-queries",
    at="_allowed",
    tensor="pattern",
    text="a group's queries stand behind each other: in which order do their mask rows?",
)
def _(right, _group):
    rows = right.unflatten(1, (-1, _group)).select(2, 0).repeat_interleave(_group, dim=-2)
    return rows.unflatten(-2, (_group, -1)).flatten(1, 2)


@case.fault("mask-fills-with-zero", at="_low", tensor="pattern", text="a masked score of 0: what share does exp(0) give it?")
def _(scores, _allowed):
    return scores.masked_fill(~_allowed, 0)


@case.fault(
    "mask-fills-with-plus-infinity", at="_low", tensor="pattern", text="how low must a masked score be, and which sign has yours?"
)
def _(scores, _allowed):
    return scores.masked_fill(~_allowed, torch.inf)


@case.fault("mask-added-as-a-number", at="_low", tensor="pattern", text="True counts as 1: what does adding 1 to a score hide?")
def _(scores, _allowed):
    return scores + _allowed


@case.fault(
    "mask-after-softmax", at="pattern", text="shares are made, then some are struck out: do the others still add up to 1?"
)
def _(scores, _allowed):
    return F.softmax(scores, dim=-1) * _allowed


@case.fault(
    "empty-rows-are-nan", at="pattern", text="a query that may attend to nothing: what is 0 / 0, and what should it read?"
)
def _(scores, _allowed):
    return F.softmax(scores.masked_fill(~_allowed, -torch.inf), dim=-1)


@case.fault(
    "empty-rows-read-everything-equally",
    at="pattern",
    text="a query that may attend to nothing: what are equal shares of equally low scores?",
)
def _(scores, _allowed):
    return F.softmax(scores.masked_fill(~_allowed, -1e9), dim=-1)


@case.fault(
    "empty-rows-read-something",
    at="pattern",
    text="a query that may attend to nothing: what does it read, and what does yours read?",
)
def _(_low):
    return F.softmax(_low, dim=-1)


@case.fault(
    "empty-rows-give-nan-gradients",
    at="pattern",
    text="a NaN that is patched afterwards: does it come back on the way of the gradient?",
)
def _(scores, _allowed):
    low = torch.zeros_like(scores).masked_fill(~_allowed, -torch.inf)
    return F.softmax(scores + low, dim=-1).nan_to_num(0.0)


@case.fault("softmax-over-queries", at="pattern", text="which axis must sum to 1 for one reader?")
def _(_low, _empty):
    return F.softmax(_low, dim=-2).masked_fill(_empty, 0)


@case.fault("softmax-over-heads", at="pattern", text="do heads compete with each other? which axis is number 1?")
def _(_low, _empty):
    return F.softmax(_low, dim=1).masked_fill(_empty, 0)


def across(name, axis, text):
    """The softmax runs over another axis, where the readers that the mask leaves without any key are not opened first.

    What is hidden then fills whole rows of that other axis.
    """

    def form(id, more, share):
        @case.fault(f"{name}-{id}", at="pattern", text=f"{text} {more}")
        def _(scores, _allowed, _empty):
            return share(scores, _allowed, _empty)

    def infinite(scores, allowed):
        return F.softmax(scores.masked_fill(~allowed, -torch.inf), dim=axis)

    def finite(scores, allowed):
        return F.softmax(scores.masked_fill(~allowed, -1e9), dim=axis)

    hidden = "what of a key that the mask hides from all of them?"
    form("hidden-are-nan", hidden, lambda scores, allowed, empty: infinite(scores, allowed))
    form("hidden-share-nothing", hidden, lambda scores, allowed, empty: infinite(scores, allowed).nan_to_num(0.0))
    form("hidden-share-equally", hidden, lambda scores, allowed, empty: finite(scores, allowed))
    guarded = "and what of a key that the mask hides, for a query that may read others?"
    if axis != 1:  # what is hidden from all heads in a row that is not empty is nan in the plain mistake too
        form("hidden-are-nan-but-empty-rows", guarded, lambda *seen: infinite(*seen[:2]).masked_fill(seen[2], 0))
    form("hidden-share-but-empty-rows", guarded, lambda scores, allowed, empty: finite(scores, allowed).masked_fill(empty, 0))
    after = "shares are made, then some are struck out: what do the others add up to?"
    form("mask-after", after, lambda scores, allowed, empty: F.softmax(scores, dim=axis) * allowed)


across("softmax-over-queries", -2, "which axis must sum to 1 for one reader?")
across("softmax-over-heads", 1, "do heads compete with each other? which axis is number 1?")


@case.fault(
    "softmax-over-group",
    at="pattern",
    text="do the readers of one group compete with each other? which axis is number 2 of five?",
)
def _(_low, _empty, _group):
    return F.softmax(_low.unflatten(1, (-1, _group)), dim=2).flatten(1, 2).masked_fill(_empty, 0)


@case.fault("softmax-over-kv-heads", at="pattern", text="do the groups compete with each other? which axis is number 1 of five?")
def _(_low, _empty, _group):
    return F.softmax(_low.unflatten(1, (-1, _group)), dim=1).flatten(1, 2).masked_fill(_empty, 0)


@case.fault("pattern-without-softmax", at="pattern", text="do the weights of one reader add up to 1?")
def _(_low, _empty):
    return _low.masked_fill(_empty, 0)


@case.fault("keys-read-as-values", at="z", text="which tensor is compared, and which one is read?")
def _(pattern, _keys):
    return pattern @ _keys


@case.fault("values-averaged", at="z", text="does your answer change when the queries do?")
def _(pattern, _values):
    return torch.full_like(pattern, 1 / pattern.shape[-1]) @ _values


@case.fault("pattern-returned", at="z", text="the pattern only weighs: what does it weigh?")
def _(pattern):
    return pattern


@case.fault("z-heads-regrouped", at="z", text="two head axes become one: in which order do they stand before that?")
def _(right, _group):
    return right.unflatten(1, (-1, _group)).transpose(1, 2).flatten(1, 2)


@case.fault("z-merged-group-first", at="z", text="two head axes become one: which of the two do you take for the group?")
def _(right, _group):
    return right.unflatten(1, (_group, -1)).transpose(1, 2).flatten(1, 2)


@case.fault("z-groups-not-merged", at="z", text="five axes, or four: how many has z?")
def _(right, _group):
    return right.unflatten(1, (-1, _group))


@case.fault("z-heads-behind-positions", at="z", text="which axis stands second in z, heads or positions?")
def _(right):
    return right.transpose(1, 2)


@case.fault(
    "z-positions-cut-into-heads",
    at="z",
    text="after heads and positions change places, which shape does z have: can it be cut anew?",
)
def _(right):
    return right.transpose(1, 2).reshape(right.shape)


@case.fault("z-heads-merged", at="z", text="are the heads merged here, or by the layer around this function?")
def _(right):
    return right.transpose(1, 2).flatten(2)


@case.fault("z-one-head-for-each-group", at="z", text="H query heads ask: how many answers are there?")
def _(right, _group):
    return right.unflatten(1, (-1, _group)).mean(2)


@case.fault("z-first-head-of-each-group", at="z", text="H query heads ask: how many of them are answered?")
def _(right, _group):
    return right[:, ::_group]


@case.fault("z-first-kv-heads-only", at="z", text="query heads from number Hkv on: are they answered?")
def _(right, k):
    return right[:, : k.shape[1]]


# ---------------------------------------------------------------- KVCache


def _played(n_layer, k, v, calls, join=lambda old, new: torch.cat([old, new], dim=2), store=lambda layer: layer):
    """All that the calls return, the lengths, and what the returned tensors hold in the end.

    join   what a layer holds once `new` is added to the `old` that it holds
    store  where the positions of a layer are kept
    """
    held = [None] * n_layer
    taken = [0] * n_layer
    k_all, v_all, length = [], [], [0]
    for layer, T in calls:
        chunk = slice(taken[layer], taken[layer] + T)
        taken[layer] += T
        new = tuple(part[layer][:, :, chunk] for part in (k, v))
        place = store(layer)
        old = held[place]
        both = new if old is None else tuple(join(*pair) for pair in zip(old, new, strict=True))
        held[place] = both
        k_all.append(both[0])
        v_all.append(both[1])
        length.append(min(0 if pair is None else pair[0].shape[2] for pair in held))
    return tuple(k_all), tuple(v_all), tuple(length), tuple(zip(k_all, v_all, strict=True))


@case.step
def starts_empty():
    return True


@case.step
def _play(starts_empty, n_layer, k, v, calls):
    # The probe stops where a new cache is not empty: nothing that such a cache returns can be told in advance.
    return _played(n_layer, k, v, calls) if starts_empty else ((), (), (), ())


@case.step
def k_all(_play):
    return _play[0]


@case.step
def v_all(_play):
    return _play[1]


@case.step
def length(_play):
    return _play[2]


@case.step
def returned_earlier(_play):
    return _play[3]


def cache_inputs(draw: Draw):
    def cache(label, n_layer, B, Hkv, T, D, Dv, *calls):
        heads = {"k": draw.normal(n_layer, B, Hkv, T, D), "v": draw.normal(n_layer, B, Hkv, T, Dv)}
        return sample(label, n_layer=n_layer, **heads, calls=[list(call) for call in calls])

    by_layer = [(layer, T) for T in (4, 1, 1, 3) for layer in (0, 1)]
    yield cache("two layers, chunks of 4, 1, 1 and 3", 2, 2, 3, 9, 4, 4, *by_layer)
    yield cache("one layer, values wider than keys", 1, 2, 2, 6, 3, 5, (0, 1), (0, 3), (0, 2))
    uneven = ((2, 3), (0, 3), (1, 3), (0, 1), (0, 1), (2, 1), (1, 1))
    yield cache("three layers, appended in another order", 3, 2, 4, 5, 6, 6, *uneven)
    yield cache("a layer that is still empty", 3, 3, 2, 4, 5, 5, (1, 3), (0, 2), (1, 1))
    yield cache("a prompt of five positions, no more", 2, 1, 2, 5, 3, 3, (0, 5), (1, 5))


def _told(inputs, yours):
    """The first number of positions, returned or held, that is wrong, and after which call, in words."""
    right, lengths = _played(**inputs), yours[3]
    given = [0] * inputs["n_layer"]
    if lengths and isinstance(lengths[0], int) and lengths[0]:
        return [f"the length of a new cache of yours is {lengths[0]}"]
    for number, (layer, T) in enumerate(inputs["calls"][: len(yours[1])], 1):
        given[layer] += T
        mine, held = getattr(yours[1][number - 1], "shape", ()), ", ".join(map(str, given))
        if len(mine) == 4 and mine[2] != given[layer]:
            return [
                f"append number {number} returns keys of {mine[2]} positions; its layer {layer} has been given {given[layer]}"
            ]
        if isinstance(lengths[number], int) and lengths[number] != right[2][number]:
            return [
                f"after append number {number} the layers have been given {held} positions, and your length is {lengths[number]}"
            ]
    return []


case.exercise(
    "KVCache(n_layer, k, v, calls)",
    returns=("starts_empty", "k_all", "v_all", "length", "returned_earlier"),
    inputs=cache_inputs,
    points=5,
    lesson="The positions already seen: `KVCache`",
    hints=(
        "What does a layer hold after a prompt of 4 positions and two more tokens, and what does the other layer hold meanwhile?",
        "Each layer keeps its keys and its values; append joins along the axis of positions, old before new, and returns all.",
        "k_all = [k of earlier calls | k] along axis 2;  length = min over layers of the positions held",
    ),
    contract="KVCache(n_layer)",
    probe="play",
    explain=_told,
)


def _joins(name, text, join):
    @case.fault(name, at="_play", tensor="k_all", text=text)
    def _(n_layer, k, v, calls):
        return _played(n_layer, k, v, calls, join)


WHERE = "k is (B, Hkv, T, D): along which axis do positions follow each other?"
_joins("chunks-joined-along-heads", WHERE, lambda old, new: torch.cat([old, new], dim=1))
_joins("chunks-joined-along-batch", WHERE, lambda old, new: torch.cat([old, new], dim=0))
_joins("chunks-joined-along-channels", WHERE, lambda old, new: torch.cat([old, new], dim=3))
_joins("chunks-stacked", "does a new chunk need an axis of its own?", lambda old, new: torch.stack([old, new]))
_joins("chunks-added-up", "is a new chunk placed behind the old ones, or added to them?", lambda old, new: old + new)
_joins(
    "new-before-old", "which position comes first in what you return, the oldest?", lambda old, new: torch.cat([new, old], dim=2)
)
_joins("newest-chunk-replaces-all", "after the second append, where are the positions of the first?", lambda old, new: new)
_joins("later-chunks-forgotten", "after the second append, where are its positions?", lambda old, new: old)
_joins(
    "chunk-appended-twice", "how many times does one append add its chunk?", lambda old, new: torch.cat([old, new, new], dim=2)
)
_joins(
    "window-of-the-newest",
    "does the number of positions in a layer grow with each append?",
    lambda old, new: torch.cat([old, new], dim=2)[:, :, new.shape[2] :],
)
_joins(
    "last-position-of-chunk-only",
    "a chunk of 3 positions: how many of them does the layer hold afterwards?",
    lambda old, new: torch.cat([old, new[:, :, -1:]], dim=2),
)
_joins(
    "first-position-of-chunk-only",
    "a chunk of 3 positions: how many of them does the layer hold afterwards?",
    lambda old, new: torch.cat([old, new[:, :, :1]], dim=2),
)
_joins(
    "older-positions-detached",
    "do gradients pass through the positions of earlier calls too?",
    lambda old, new: torch.cat([old.detach(), new], dim=2),
)


@case.fault(
    "layers-in-one-store", at="_play", tensor="k_all", text="does each layer have a list of its own, or do all names lead to one?"
)
def _(n_layer, k, v, calls):
    one, k_all, v_all, length = [], [], [], [0]
    taken = [0] * n_layer
    for layer, T in calls:
        chunk = slice(taken[layer], taken[layer] + T)
        taken[layer] += T
        one.append((k[layer][:, :, chunk], v[layer][:, :, chunk]))
        k_all.append(torch.cat([pair[0] for pair in one], dim=2))
        v_all.append(torch.cat([pair[1] for pair in one], dim=2))
        length.append(sum(pair[0].shape[2] for pair in one))
    return tuple(k_all), tuple(v_all), tuple(length), tuple(zip(k_all, v_all, strict=True))


@case.fault("layer-ignored", at="_play", tensor="k_all", text="append is told a layer: does it matter to your cache which one?")
def _(n_layer, k, v, calls):
    return _played(n_layer, k, v, calls, store=lambda layer: 0)


@case.fault("layers-by-turns", at="_play", tensor="k_all", text="append is told a layer: do you use it, or count calls?")
def _(n_layer, k, v, calls):
    turns = itertools.count()
    return _played(n_layer, k, v, calls, store=lambda layer: next(turns) % n_layer)


@case.fault("keys-and-values-in-one-list", at="_play", tensor="k_all", text="keys and values: two lists, or two names of one?")
def _(n_layer, k, v, calls):
    held, taken, both, length = [[] for _ in range(n_layer)], [0] * n_layer, [], [0]
    for layer, T in calls:
        chunk = slice(taken[layer], taken[layer] + T)
        taken[layer] += T
        held[layer] += [k[layer][:, :, chunk], v[layer][:, :, chunk]]
        both.append(torch.cat(held[layer], dim=2))
        length.append(min(sum(part.shape[2] for part in parts) for parts in held))
    return tuple(both), tuple(both), tuple(length), tuple(zip(both, both, strict=True))


@case.fault("chunks-not-joined", at="_play", tensor="k_all", text="append returns two tensors: is a list of chunks one?")
def _(right, k, v, calls):
    def chunks(part, layer):
        sizes = [T for at, T in calls if at == layer]
        return list(part[layer][:, :, : sum(sizes)].split(sizes, dim=2))

    pairs = [(chunks(k, layer), chunks(v, layer)) for layer, _ in calls]
    return tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs), right[2], tuple(pairs)


@case.fault("chunk-returned-alone", at="_play", tensor="k_all", text="append keeps all positions: does it return all of them?")
def _(right, n_layer, k, v, calls):
    k_all, v_all, _, earlier = _played(n_layer, k, v, calls, join=lambda old, new: new)
    return k_all, v_all, right[2], earlier


@case.fault(
    "state-shared-by-caches",
    at="starts_empty",
    text="two caches: does each hold its own positions, or do they live in the class?",
)
def _():
    return False


@case.fault("append-returns-nothing", at="_play", tensor="k_all", text="append adds: what does it give back?")
def _(n_layer):
    raise TypeError("append returned NoneType: expected the two tensors k_all, v_all")


@case.fault(
    "append-returns-keys-alone", at="_play", tensor="k_all", text="append gives back keys and values: how many tensors are those?"
)
def _(n_layer):
    raise TypeError("append returned Tensor: expected the two tensors k_all, v_all")


def _swapped(name, order, tensor, text):
    @case.fault(name, at="_play", tensor=tensor, text=text)
    def _(right):
        k_all, v_all = right[order[0]], right[order[1]]
        return k_all, v_all, right[2], tuple(zip(k_all, v_all, strict=True))


_swapped("keys-and-values-swapped", (1, 0), "k_all", "which of the two comes first in what append returns?")
_swapped("keys-returned-as-values", (0, 0), "v_all", "are values kept in a place of their own?")
_swapped("values-returned-as-keys", (1, 1), "k_all", "are keys kept in a place of their own?")


@case.fault(
    "returned-positions-before-heads", at="_play", tensor="k_all", text="which axis stands second in what append returns?"
)
def _(right):
    k_all, v_all = (tuple(part.transpose(1, 2) for part in side) for side in right[:2])
    return k_all, v_all, right[2], tuple(zip(k_all, v_all, strict=True))


@case.fault(
    "returned-tensors-grow", at="returned_earlier", text="a tensor that you returned before: has it still the shape that it had?"
)
def _(right, calls):
    last = {layer: pair for (layer, _), pair in zip(calls, right, strict=True)}
    return tuple(last[layer] for layer, _ in calls)


@case.fault(
    "returned-buffer-reused",
    at="returned_earlier",
    text="a tensor that you returned is still in someone's hands: is its memory written to by the next append?",
)
def _(right):
    """All that is returned is the front of one buffer."""
    held = []
    for pair in right:
        held = [
            part if old is None else torch.cat([part, old[:, :, part.shape[2] :]], 2)
            for part, old in zip(pair, held or (None, None), strict=True)
        ]
    return tuple(tuple(front[:, :, : part.shape[2]] for front, part in zip(held, pair, strict=True)) for pair in right)


def _counts(n_layer, calls):
    """How many positions each layer holds, at the start and after each call."""
    held = [[0] * n_layer]
    for layer, T in calls:
        held.append(list(held[-1]))
        held[-1][layer] += T
    return held


def _measures(name, text, measure):
    @case.fault(name, at="length", text=text)
    def _(n_layer, calls):
        return tuple(measure(held) for held in _counts(n_layer, calls))


EVERY = "after append(0, k, v) with 3 positions, do all layers hold 3?"
_measures("length-of-first-layer", EVERY, lambda held: held[0])
_measures("length-of-last-layer", "the last layer holds 3 positions: must all others?", lambda held: held[-1])
_measures("length-of-fullest-layer", EVERY, max)
_measures(
    "length-skips-empty-layers",
    "a layer that holds nothing yet: does it count among all layers?",
    lambda held: min(filter(None, held), default=0),
)
_measures("length-summed-over-layers", "one position is kept in every layer: is it one position, or L?", sum)
_measures("length-averaged-over-layers", EVERY, lambda held: sum(held) // len(held))
_measures("length-one-too-many", "which length has a cache that holds nothing?", lambda held: min(held) + 1)
_measures("length-one-too-few", "with 3 positions in every layer, how long is the cache?", lambda held: max(min(held) - 1, 0))
_measures("length-stays-zero", "does your length move when positions are appended?", lambda held: 0)
_measures("length-is-a-method", "length is read without a call: what makes a method readable like that?", lambda held: "a method")


@case.fault("length-of-newest-append", at="length", text=EVERY)
def _(n_layer, calls):
    held = _counts(n_layer, calls)
    return (0,) + tuple(after[layer] for (layer, _), after in zip(calls, held[1:], strict=True))


@case.fault(
    "length-of-newest-chunk", at="length", text="does length count the positions of the last chunk, or all that are held?"
)
def _(calls):
    return (0,) + tuple(T for _, T in calls)


@case.fault("length-counts-appends", at="length", text="is a chunk of 4 positions one position long?")
def _(n_layer, calls):
    held = _counts(n_layer, [(layer, 1) for layer, _ in calls])
    return tuple(min(now) for now in held)


@case.fault("length-counts-all-appends", at="length", text="is length the number of calls, or of positions?")
def _(calls):
    return tuple(range(len(calls) + 1))


def _of_axis(name, axis, text):
    @case.fault(name, at="length", text=text)
    def _(right, k):
        return tuple(k.shape[1 + axis] if now else 0 for now in right)


_of_axis("length-counts-sequences", 0, "k is (B, Hkv, T, D): which axis counts positions?")
_of_axis("length-counts-heads", 1, "k is (B, Hkv, T, D): which axis counts positions?")
_of_axis("length-counts-channels", 3, "k is (B, Hkv, T, D): which axis counts positions?")


# ---------------------------------------------------------------- kv_cache_bytes


@case.step
def _numbers(n_layer, n_kv_head, d_head, n_positions, batch):
    return 2 * n_layer * n_kv_head * d_head * n_positions * batch


@case.step
def cache_bytes(_numbers, bytes_per_value):
    return math.ceil(_numbers * bytes_per_value)


def bytes_inputs(draw: Draw):
    yield sample("2 layers, 3 heads of 5, 7 positions", n_layer=2, n_kv_head=3, d_head=5, n_positions=7)
    yield sample(
        "the same in float32, 11 sequences", n_layer=2, n_kv_head=3, d_head=5, n_positions=7, bytes_per_value=4, batch=11
    )
    sizes = {"n_layer": 80, "n_kv_head": 8, "d_head": 128}
    yield sample("one token of Llama 3 70B", **sizes, n_positions=1)
    yield sample("131,072 tokens of Llama 3 70B", **sizes, n_positions=131072)
    yield sample("GPT-2, 8 bits a value", n_layer=12, n_kv_head=12, d_head=64, n_positions=1024, bytes_per_value=1, batch=3)
    yield sample("4 bits a value", n_layer=3, n_kv_head=5, d_head=7, n_positions=11, bytes_per_value=0.5)
    yield sample("5 bits a value", n_layer=3, n_kv_head=1, d_head=3, n_positions=5, bytes_per_value=0.625)
    yield sample("3 bits a value", n_layer=5, n_kv_head=3, d_head=1, n_positions=1, bytes_per_value=0.375, batch=7)
    one = draw.random.sample([3, 5, 7, 11, 13, 17, 19, 23], 4)
    yield sample("sizes drawn by lot", **dict(zip(("n_layer", "n_kv_head", "d_head", "n_positions"), one, strict=True)), batch=2)


def _counted(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    """Whole eighths of bytes, added up layer by layer."""
    eighths = sum(int(8 * bytes_per_value) * 2 * batch * n_kv_head * n_positions * d_head for _ in range(n_layer))
    return -(-eighths // 8)


case.exercise(
    "kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1)",
    returns="cache_bytes",
    inputs=bytes_inputs,
    points=2,
    lesson="The price: `kv_cache_bytes`",
    hints=(
        "How many numbers does one position leave in one layer, keys and values together?",
        "All the sizes multiply, and 2 for a key and a value; round up once, at the end, to an int.",
        "bytes = 2 * n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value, rounded up",
    ),
    reference=_counted,
)


def _priced(name, text, factor):
    @case.fault(name, at="_numbers", tensor="cache_bytes", text=text)
    def _(right, n_layer, n_kv_head, d_head, n_positions, batch):
        return factor(right, n_layer, n_kv_head, d_head, n_positions, batch)


MULTIPLY = "change one argument at a time: do the bytes change in proportion to it?"
_priced("keys-alone", "a cache holds keys and values: where is the second of them in your formula?", lambda n, *_: n // 2)
_priced("keys-and-values-twice", "a cache holds keys and values: how many times is that in your formula?", lambda n, *_: n * 2)
_priced("queries-counted", "are queries kept?", lambda n, *_: n // 2 * 3)
_priced("layers-missing", MULTIPLY, lambda n, L, *_: n // L)
_priced("kv-heads-missing", MULTIPLY, lambda n, L, H, *_: n // H)
_priced("head-size-missing", MULTIPLY, lambda n, L, H, D, *_: n // D)
_priced("positions-missing", MULTIPLY, lambda n, L, H, D, T, B: n // T)
_priced("batch-missing", MULTIPLY, lambda n, L, H, D, T, B: n // B)
_priced("kv-heads-squared", MULTIPLY, lambda n, L, H, *_: n * H)
_priced("layers-squared", MULTIPLY, lambda n, L, *_: n * L)
_priced("head-size-squared", MULTIPLY, lambda n, L, H, D, *_: n * D)
_priced("positions-squared", "does one more position add the same number of bytes each time?", lambda n, L, H, D, T, B: n * T)
_priced("batch-squared", MULTIPLY, lambda n, L, H, D, T, B: n * B)
_priced(
    "positions-added-up",
    "does a position leave its own keys, or those of all before it once more?",
    lambda n, L, H, D, T, B: n * (T + 1) // 2,
)
_priced(
    "last-position-missing", "are the keys and values of the last position kept too?", lambda n, L, H, D, T, B: n // T * (T - 1)
)
_priced(
    "one-position-too-many",
    "how many positions are kept: is one counted that is not there?",
    lambda n, L, H, D, T, B: n // T * (T + 1),
)
_priced(
    "batch-added", "two sequences of 7 positions: how many positions is that?", lambda n, L, H, D, T, B: n // (T * B) * (T + B)
)


def _rounded(name, text, price):
    @case.fault(name, at="cache_bytes", text=text)
    def _(_numbers, bytes_per_value, n_layer, n_kv_head, n_positions, d_head, batch):
        sizes = {"layer": n_layer, "head": n_kv_head, "position": n_positions, "channel": d_head, "batch": batch}
        return price(_numbers, bytes_per_value, sizes)


_rounded("always-two-bytes", "does the price follow bytes_per_value?", lambda n, size, _: 2 * n)
_rounded("always-four-bytes", "does the price follow bytes_per_value?", lambda n, size, _: 4 * n)
_rounded(
    "default-of-four-bytes",
    "what is bytes_per_value when nobody says?",
    lambda n, size, _: math.ceil(n * (4 if size == 2 else size)),
)
_rounded(
    "default-of-one-byte",
    "what is bytes_per_value when nobody says?",
    lambda n, size, _: math.ceil(n * (1 if size == 2 else size)),
)
_rounded("numbers-not-bytes", "is one value one byte?", lambda n, size, _: n)
_rounded("bits-taken-for-bytes", "is bytes_per_value a number of bits?", lambda n, size, _: math.ceil(n * size / 8))
_rounded("bytes-turned-into-bits", "are bytes asked for, or bits?", lambda n, size, _: math.ceil(n * size * 8))
_rounded("divided-by-bytes-per-value", "do wider values take more room, or less?", lambda n, size, _: math.ceil(n / size))
_rounded("price-in-gib", "are bytes asked for, or GiB?", lambda n, size, _: n * size / 2**30)
_rounded("price-in-mib", "are bytes asked for, or MiB?", lambda n, size, _: n * size / 2**20)
_rounded("price-in-gb", "are bytes asked for, or GB?", lambda n, size, _: n * size / 10**9)
_rounded(
    "price-is-a-float", "is a number of bytes a whole number: is yours an int?", lambda n, size, _: float(math.ceil(n * size))
)
_rounded("price-not-rounded", "can there be half a byte: is your result an int, whatever comes in?", lambda n, size, _: n * size)
_rounded("price-rounded-down", "where do the bits of a byte that is not full go?", lambda n, size, _: math.floor(n * size))
_rounded("price-rounded-to-nearest", "where do the bits of a byte that is not full go?", lambda n, size, _: round(n * size))
_rounded("one-byte-too-many", "when the total is whole already, is anything added?", lambda n, size, _: math.floor(n * size) + 1)
_rounded("each-value-rounded-up", "what is rounded up: each value, or the total?", lambda n, size, _: n * math.ceil(size))
_rounded("bytes-per-value-cut-to-int", "what is int(0.5)?", lambda n, size, _: n * int(size))
_rounded(
    "each-layer-rounded-up",
    "how many times is something rounded up?",
    lambda n, size, s: math.ceil(n // s["layer"] * size) * s["layer"],
)
_rounded(
    "each-position-rounded-up",
    "how many times is something rounded up?",
    lambda n, size, s: math.ceil(n // s["position"] * size) * s["position"],
)
_rounded(
    "keys-and-values-rounded-apart", "how many times is something rounded up?", lambda n, size, s: 2 * math.ceil(n // 2 * size)
)
_rounded(
    "each-sequence-rounded-up",
    "how many times is something rounded up?",
    lambda n, size, s: math.ceil(n // s["batch"] * size) * s["batch"],
)
