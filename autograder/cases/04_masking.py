"""The case of 04_masking."""

import torch
import torch.nn.functional as F

from autograder.case import ANY, Case, Draw, refusal, sample

case = Case(
    "04_masking",
    axes={
        "causal": "Tq Tk",
        "padding": "B 1 1 Tk",
        "q": "B H T D",
        "k": "B H T D",
        "v": "B H T D",
        "scores": "B H Tq Tk",
        "pattern": "B H Tq Tk",
        "z": "B H Tq Dv",
        "attn_out": "B T C",
    },
    hidden=("mask",),
)

NOTHING = -torch.inf

# ---------------------------------------------------------------- causal_mask


def _aligned(n_query, n_key, diagonal=0):
    """True up to the diagonal that ends in the last row and column; `diagonal` shifts it to the right."""
    return torch.ones(n_query, n_key, dtype=torch.bool).tril(n_key - n_query + diagonal)


@case.step
def causal(n_query, n_key, device):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError(f"{n_query} queries, {n_key} keys")
    return _aligned(n_query, n_key).to(device or "cpu")


def causal_inputs(draw: Draw):
    yield sample("four queries and as many keys", n_query=4)
    yield sample("the last two of five positions", n_query=2, n_key=5)
    yield sample("the last three of seven positions", n_query=3, n_key=7)
    yield sample("the last four of five positions", n_query=4, n_key=5, device=draw.device)
    yield sample("one query and four keys", n_query=1, n_key=4)
    yield sample("n_key given, and equal to n_query", n_query=6, n_key=6)
    yield sample("one query alone", n_query=1)
    yield refusal("n_query = 4, n_key = 3", ValueError, n_query=4, n_key=3)
    yield refusal("n_query = 5, n_key = 2", ValueError, n_query=5, n_key=2)
    yield refusal("n_query = 1, n_key = 0", ValueError, n_query=1, n_key=0)
    yield refusal("device = 'nowhere', which no machine has", n_query=3, n_key=4, device="nowhere")


case.exercise(
    "causal_mask(n_query, n_key=None, device=None)",
    returns="causal",
    inputs=causal_inputs,
    points=2,
    lesson="The lower triangle, aligned at the end: `causal_mask`",
    hints=(
        "The queries are the last Tq of Tk positions. At which position does query i stand?",
        "Give each query and each key its position, and compare the two; or shift the diagonal of a triangle.",
        "mask[i,j] = (j <= i + Tk - Tq)",
    ),
    reference=lambda n_query, n_key=None, device=None: torch.tensor(
        [[j <= i + (n_key or n_query) - n_query for j in range(n_key or n_query)] for i in range(n_query)], device=device
    ),
)


def _causal_fault(id, text, spoilt):
    """A fault of the triangle, from the two sizes."""

    @case.fault(id, at="causal", text=text)
    def _(n_query, n_key, device):
        return spoilt(n_query, n_query if n_key is None else n_key).to(device or "cpu")


def _hides_cache(n_query, n_key):
    return torch.cat([torch.zeros(n_query, n_key - n_query, dtype=torch.bool), _aligned(n_query, n_query)], dim=1)


def _cache_behind(n_query, n_key):
    return torch.cat([_aligned(n_query, n_query), torch.ones(n_query, n_key - n_query, dtype=torch.bool)], dim=1)


def _open_when_cached(n_query, n_key):
    return _aligned(n_query, n_key) if n_query == n_key else torch.ones(n_query, n_key, dtype=torch.bool)


_causal_fault(
    "causal-keeps-upper-triangle",
    "which half of the square is the past, and is your triangle the half you keep or the half you fill?",
    lambda n_query, n_key: torch.ones(n_query, n_key, dtype=torch.bool).triu(n_key - n_query),
)
_causal_fault(
    "causal-keeps-upper-triangle-at-top-left",
    "which half of the square is the past, and at which position does the first query stand when there are more keys?",
    lambda n_query, n_key: torch.ones(n_query, n_key, dtype=torch.bool).triu(),
)
_causal_fault(
    "causal-peeks-one-ahead",
    "read row 0 aloud: how many keys may the first position see?",
    lambda n_query, n_key: _aligned(n_query, n_key, 1),
)
_causal_fault(
    "causal-hides-own-position",
    "does a position see itself, and what would the first row look like if it did not?",
    lambda n_query, n_key: _aligned(n_query, n_key, -1),
)
_causal_fault(
    "causal-hides-own-position-when-cached",
    "with more keys than queries, does the last query see the last key?",
    lambda n_query, n_key: _aligned(n_query, n_key, -1 if n_key > n_query else 0),
)
_causal_fault(
    "causal-peeks-one-ahead-when-cached",
    "with more keys than queries, how many keys lie behind the first query's own position?",
    lambda n_query, n_key: _aligned(n_query, n_key, 1 if n_key > n_query else 0),
)
_causal_fault(
    "causal-aligned-at-top-left",
    "the queries are the last Tq of Tk positions: which keys may the first of them see?",
    lambda n_query, n_key: torch.ones(n_query, n_key, dtype=torch.bool).tril(),
)
_causal_fault(
    "causal-shifted-the-other-way",
    "in which direction is the diagonal shifted when there are more keys than queries?",
    lambda n_query, n_key: torch.ones(n_query, n_key, dtype=torch.bool).tril(n_query - n_key),
)
_causal_fault(
    "causal-true-means-blocked",
    "what does True mean in this course's masks: may attend, or may not?",
    lambda n_query, n_key: ~_aligned(n_query, n_key),
)
_causal_fault(
    "causal-true-means-blocked-at-top-left",
    "what does True mean in this course's masks, and at which position does the first query stand?",
    lambda n_query, n_key: torch.ones(n_query, n_key, dtype=torch.bool).triu(1),
)
_causal_fault(
    "causal-open-when-cached",
    "three queries on top of a cache: may the first of them see the other two?",
    _open_when_cached,
)
_causal_fault(
    "causal-everything-allowed",
    "is any entry of your mask False?",
    lambda n_query, n_key: torch.ones(n_query, n_key, dtype=torch.bool),
)
_causal_fault(
    "causal-nothing-allowed",
    "is any entry of your mask True?",
    lambda n_query, n_key: torch.zeros(n_query, n_key, dtype=torch.bool),
)
_causal_fault(
    "causal-square-of-queries",
    "which sizes must the mask have, so that it fits scores of Tq queries and Tk keys?",
    lambda n_query, n_key: _aligned(n_query, n_query),
)
_causal_fault(
    "causal-square-of-keys",
    "your mask has a row for each key position: which of those positions ask?",
    lambda n_query, n_key: _aligned(n_key, n_key),
)
_causal_fault(
    "causal-sizes-swapped",
    "which of the two sizes counts the rows?",
    lambda n_query, n_key: torch.ones(n_key, n_query, dtype=torch.bool).tril(n_query - n_key),
)
_causal_fault(
    "causal-transposed",
    "do the rows of your mask belong to readers, or to what they read?",
    lambda n_query, n_key: _aligned(n_query, n_key).T,
)
_causal_fault(
    "causal-only-own-position",
    "may a position see the past, or itself alone?",
    lambda n_query, n_key: _aligned(n_query, n_key) & ~_aligned(n_query, n_key, -1),
)
_causal_fault(
    "causal-hides-the-cache",
    "with more keys than queries, who may see the keys of the cache?",
    _hides_cache,
)
_causal_fault(
    "causal-cache-behind-new-keys",
    "with more keys than queries, which keys are the older ones: the first or the last?",
    _cache_behind,
)
_causal_fault(
    "causal-keys-reversed",
    "which key is the oldest: the first column or the last?",
    lambda n_query, n_key: _aligned(n_query, n_key).flip(1),
)
_causal_fault(
    "causal-queries-reversed",
    "which query sees every key: the first or the last?",
    lambda n_query, n_key: _aligned(n_query, n_key).flip(0),
)


@case.fault("causal-with-four-axes", at="causal", text="how many axes has the mask that is asked for?")
def _(right):
    return right[None, None]


@case.fault("causal-with-batch-axis", at="causal", text="how many axes has the mask that is asked for, and how many has yours?")
def _(right):
    return right[None]


@case.fault(
    "causal-too-many-queries", at="causal", text="three keys and four queries: at which position would the first query stand?"
)
def _(n_query, n_key, device):
    return _aligned(n_query, n_query if n_key is None else n_key).to(device or "cpu")


@case.fault(
    "causal-zero-keys-taken-for-none",
    at="causal",
    text="is n_key = 0 the same as n_key = None, and does your test tell them apart?",
)
def _(n_query, n_key, device):
    n_key = n_key or n_query
    if n_query > n_key:
        raise ValueError(f"{n_query} queries, {n_key} keys")
    return _aligned(n_query, n_key).to(device or "cpu")


@case.fault("causal-refuses-square", at="causal", text="as many keys as queries: is that too many queries?")
def _(n_query, n_key, device):
    if n_key is None or n_query >= n_key:
        raise ValueError(ANY)
    return _aligned(n_query, n_key).to(device or "cpu")


@case.fault("causal-refuses-given-square", at="causal", text="n_key given, and equal to n_query: is that too many queries?")
def _(n_query, n_key, device):
    if n_key is not None and n_query >= n_key:
        raise ValueError(ANY)
    return _aligned(n_query, n_key or n_query).to(device or "cpu")


@case.fault("causal-refuses-cache", at="causal", text="which of the two sizes may be the larger one?")
def _(n_query, n_key, device):
    if n_key is not None and n_query < n_key:
        raise ValueError(ANY)
    return torch.ones(n_query, n_query if n_key is None else n_key, dtype=torch.bool).tril().to(device or "cpu")


@case.fault("causal-device-ignored", at="causal", text="on which device is your mask, and which one did the caller name?")
def _(n_query, n_key):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError(f"{n_query} queries, {n_key} keys")
    return _aligned(n_query, n_key)


# ---------------------------------------------------------------- padding_mask


@case.step
def padding(lengths, n_key, side):
    if side not in ("right", "left"):
        raise ValueError(f"side {side}")
    if lengths.max() > n_key:
        raise ValueError(f"length {lengths.max()} of {n_key}")
    return _real(lengths, n_key, side)


def _real(lengths, n_key, side, right_shift=0, left_shift=0):
    """Which keys are real; the shifts move the end (padding on the right) or the start (on the left) of the text."""
    position = torch.arange(n_key, device=lengths.device)
    end, start = lengths[:, None] + right_shift, n_key - lengths[:, None] + left_shift
    return (position < end if side == "right" else position >= start)[:, None, None, :]


def padding_inputs(draw: Draw):
    lengths = draw.tensor([2, 5, 4])
    yield sample("padding on the right by default", lengths=lengths, n_key=6)
    yield sample("side = 'right'", lengths=lengths, n_key=7, side="right")
    yield sample("side = 'left'", lengths=lengths, n_key=6, side="left")
    yield sample("a text of length 0 and one of full length", lengths=draw.tensor([0, 4]), n_key=4)
    yield sample("the same with padding on the left", lengths=draw.tensor([0, 4]), n_key=4, side="left")
    yield sample("as many texts as keys", lengths=draw.tensor([1, 4, 2, 3]), n_key=4)
    yield sample("as many texts as keys, side = 'left'", lengths=draw.tensor([3, 1, 4, 2]), n_key=4, side="left")
    yield refusal("one length of 7 and n_key = 6", ValueError, lengths=draw.tensor([2, 7, 4]), n_key=6)
    yield refusal("all lengths over n_key", ValueError, lengths=draw.tensor([5, 6]), n_key=4)
    yield refusal("one length over n_key, side = 'left'", ValueError, lengths=draw.tensor([8, 3]), n_key=6, side="left")
    yield refusal("side = 'both'", ValueError, lengths=draw.tensor([2, 3]), n_key=5, side="both")


case.exercise(
    'padding_mask(lengths, n_key, side="right")',
    returns="padding",
    inputs=padding_inputs,
    points=2,
    lesson="Which keys are real: `padding_mask`",
    hints=(
        "Padding on the right: up to which position does the text of row b reach? And on the left: where does it start?",
        "Compare the positions 0 to n_key - 1 with one number for each text, then put the two axes of size 1 in the middle.",
        "right: j < lengths[b];  left: j >= n_key - lengths[b];  the result has the shape (B, 1, 1, n_key)",
    ),
    reference=lambda lengths, n_key, side="right": torch.tensor(
        [
            [[[True] * n + [False] * (n_key - n) if side == "right" else [False] * (n_key - n) + [True] * n]]
            for n in lengths.tolist()
        ],
        device=lengths.device,
    ),
)


def _padding_fault(id, text, spoilt):
    """A fault of the padding mask, from its three arguments."""

    @case.fault(id, at="padding", text=text)
    def _(lengths, n_key, side):
        return spoilt(lengths, n_key, side)


def _reshaped_padding(id, text, spoilt):
    @case.fault(id, at="padding", text=text)
    def _(right):
        return spoilt(right)


_reshaped_padding(
    "padding-on-the-query-axis",
    "which axis of the scores counts what is read, and which one the readers: on which of them does your padding lie?",
    lambda right: right.mT,
)
_reshaped_padding(
    "padding-with-two-axes",
    "handed to scores of shape (B,H,Tq,Tk), which axis would your B line up with?",
    lambda right: right[:, 0, 0],
)
_reshaped_padding(
    "padding-with-three-axes",
    "handed to scores of shape (B,H,Tq,Tk), which axis would your B line up with?",
    lambda right: right[:, 0],
)
_reshaped_padding(
    "padding-axes-in-front",
    "handed to scores of shape (B,H,Tq,Tk), which axis does your B line up with: where do the two axes of size 1 stand?",
    lambda right: right.movedim(0, 2),
)
_reshaped_padding(
    "padding-batch-on-the-head-axis",
    "handed to scores of shape (B,H,Tq,Tk), which axis does your B line up with: where do the two axes of size 1 stand?",
    lambda right: right.movedim(0, 1),
)
_reshaped_padding(
    "padding-expanded-to-a-square",
    "has a padding mask a query axis of its own?",
    lambda right: right.expand(-1, -1, right.shape[-1], -1),
)
_reshaped_padding(
    "padding-on-both-axes",
    "has a padding mask a query axis of its own: does it say who may read?",
    lambda right: right & right.mT,
)
_reshaped_padding(
    "padding-true-means-padding", "what does True mean in this course's masks: a real token, or a pad?", lambda right: ~right
)
_reshaped_padding(
    "padding-of-the-first-text", "does each text have a length of its own?", lambda right: right[:1].expand_as(right)
)
_reshaped_padding("padding-texts-reversed", "which row of the mask belongs to which length?", lambda right: right.flip(0))
_padding_fault(
    "padding-of-the-longest-text",
    "does each text have a length of its own?",
    lambda lengths, n_key, side: _real(lengths.max().expand_as(lengths), n_key, side),
)
_padding_fault(
    "padding-of-the-shortest-text",
    "does each text have a length of its own?",
    lambda lengths, n_key, side: _real(lengths.min().expand_as(lengths), n_key, side),
)
_padding_fault(
    "padding-side-ignored",
    "does your mask change when the padding is on the left?",
    lambda lengths, n_key, side: _real(lengths, n_key, "right"),
)
_padding_fault(
    "padding-always-left",
    "where is the padding when side is not given?",
    lambda lengths, n_key, side: _real(lengths, n_key, "left"),
)
_padding_fault(
    "padding-side-of-the-text",
    "does side say where the text is, or where the padding is?",
    lambda lengths, n_key, side: _real(lengths, n_key, "left" if side == "right" else "right"),
)
_padding_fault(
    "padding-one-too-long",
    "a text of length 2: is the key at position 2 its own?",
    lambda lengths, n_key, side: _real(lengths, n_key, side, 1, -1),
)
_padding_fault(
    "padding-one-too-long-on-the-right",
    "padding on the right, a text of length 2: is the key at position 2 its own?",
    lambda lengths, n_key, side: _real(lengths, n_key, side, right_shift=1),
)
_padding_fault(
    "padding-one-too-long-on-the-left",
    "padding on the left, a text of length 2 and four keys: is the key at position 1 its own?",
    lambda lengths, n_key, side: _real(lengths, n_key, side, left_shift=-1),
)
_padding_fault(
    "padding-one-too-short",
    "a text of length 2: how many True has its row?",
    lambda lengths, n_key, side: _real(lengths, n_key, side, -1, 1),
)
_padding_fault(
    "padding-one-too-short-on-the-right",
    "padding on the right, a text of length 2: how many True has its row?",
    lambda lengths, n_key, side: _real(lengths, n_key, side, right_shift=-1),
)
_padding_fault(
    "padding-one-too-short-on-the-left",
    "padding on the left, a text of length 2: how many True has its row?",
    lambda lengths, n_key, side: _real(lengths, n_key, side, left_shift=1),
)
_padding_fault(
    "padding-left-starts-at-length",
    "padding on the left, a text of length 1 and six keys: at which position does the text start?",
    lambda lengths, n_key, side: _real(lengths, n_key, "right") if side == "right" else ~_real(lengths, n_key, "right"),
)
_padding_fault(
    "padding-left-is-not-real",
    "padding on the left: does True mark the text, or the pads in front of it?",
    lambda lengths, n_key, side: _real(lengths, n_key, "right") if side == "right" else ~_real(lengths, n_key, "left"),
)
_padding_fault(
    "padding-as-wide-as-the-longest-text",
    "how many keys has the mask: n_key, or as many as the longest text?",
    lambda lengths, n_key, side: _real(lengths, int(lengths.max()), side),
)
_padding_fault(
    "padding-everything-real",
    "is any entry of your mask False?",
    lambda lengths, n_key, side: _real(lengths + n_key, n_key, side),
)


@case.fault("padding-length-unchecked", at="padding", text="what should a text of seven tokens do in a batch that is six wide?")
def _(lengths, n_key, side):
    if side not in ("right", "left"):
        raise ValueError(f"side {side}")
    return _real(lengths, n_key, side)


@case.fault("padding-length-checked-for-all", at="padding", text="one length of three is too large: does your check see it?")
def _(lengths, n_key, side):
    if side not in ("right", "left"):
        raise ValueError(f"side {side}")
    if lengths.min() > n_key:
        raise ValueError(f"length {lengths.max()} of {n_key}")
    return _real(lengths, n_key, side)


@case.fault("padding-length-checked-for-the-first", at="padding", text="which of the lengths does your check look at?")
def _(lengths, n_key, side):
    if side not in ("right", "left"):
        raise ValueError(f"side {side}")
    if lengths[0] > n_key:
        raise ValueError(f"length {lengths[0]} of {n_key}")
    return _real(lengths, n_key, side)


@case.fault("padding-length-checked-on-one-side", at="padding", text="is a length over n_key refused on both sides?")
def _(lengths, n_key, side):
    if side not in ("right", "left"):
        raise ValueError(f"side {side}")
    if side == "right" and lengths.max() > n_key:
        raise ValueError(f"length {lengths.max()} of {n_key}")
    return _real(lengths, n_key, side)


@case.fault(
    "padding-unknown-side-accepted", at="padding", text="what does your function do with a side that is neither right nor left?"
)
def _(lengths, n_key, side):
    if lengths.max() > n_key:
        raise ValueError(f"length {lengths.max()} of {n_key}")
    return _real(lengths, n_key, side)


@case.fault("padding-full-length-refused", at="padding", text="a text as long as the batch is wide: does it fit?")
def _(lengths, n_key, side):
    if side not in ("right", "left") or lengths.max() >= n_key:
        raise ValueError(ANY)
    return _real(lengths, n_key, side)


@case.fault("padding-zero-length-refused", at="padding", text="a text of length 0: is it allowed, and what is its row?")
def _(lengths, n_key, side):
    if side not in ("right", "left") or lengths.min() < 1 or lengths.max() > n_key:
        raise ValueError(ANY)
    return _real(lengths, n_key, side)


@case.fault("padding-nothing-checked", at="padding", text="which two kinds of arguments can this function not serve?")
def _(lengths, n_key, side):
    return _real(lengths, n_key, side)


# ---------------------------------------------------------------- attention


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
def _triangle(x):
    return torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).tril()


@case.step
def mask(_triangle, attention_mask):
    return _triangle if attention_mask is None else _triangle & _keys(attention_mask)


def _keys(attention_mask):
    """The mask of keys as (B,1,1,T), whichever of its two shapes it comes in."""
    return attention_mask[:, None, None, :] if attention_mask.dim() == 2 else attention_mask


@case.step
def _allowed(mask):
    return mask


@case.step
def _masked(scores, _allowed):
    return scores.masked_fill(~_allowed, NOTHING)


@case.step
def pattern(_masked, _allowed):
    return _shares(_masked, _allowed)


def _empty(allowed):
    return ~allowed.any(dim=-1, keepdim=True)


def _shares(masked, allowed):
    """Softmax, with zeros for a row in which nothing is allowed; no NaN arises, so none can come back in the gradient."""
    empty = _empty(allowed)
    return F.softmax(masked.masked_fill(empty, 0.0), dim=-1).masked_fill(empty, 0.0)


@case.step
def z(pattern, v):
    return pattern @ v


@case.step
def _merged(z):
    return z.movedim(1, 2).flatten(2)


@case.step
def attn_out(_merged, c_proj_w, c_proj_b):
    return _merged @ c_proj_w + c_proj_b


def _triangular(draw, n_query, n_key):
    return _aligned(n_query, n_key).to(draw.device)


def _mixed(draw, *shape):
    """A random mask with at least one True in every row, and a False in every row of two or more."""
    noise = draw.normal(*shape)
    return noise >= noise.median(dim=-1, keepdim=True).values


def _steep_scores(draw):
    """Whole-number scores: rows around 0, around -130 and around 130."""
    scores = draw.integers(-3, 4, 2, 3, 4, 6).float()
    scores[:, :, 1::2] -= 130
    scores[:, :, 2] += 130
    return scores


def _even_keys(draw, n_key):
    return (torch.arange(n_key) % 2 == 0).to(draw.device)


def mask_scores_inputs(draw: Draw):
    yield sample("a causal mask", scores=draw.normal(2, 3, 5, 5), mask=_triangular(draw, 5, 5))
    yield sample("the last three of seven positions", scores=draw.normal(2, 4, 3, 7), mask=_triangular(draw, 3, 7))
    yield sample("a padding mask (B,1,1,Tk)", scores=draw.normal(3, 2, 4, 6), mask=_real(draw.tensor([2, 6, 3]), 6, "right"))
    yield sample("a mask (1,1,Tq,Tk)", scores=draw.normal(2, 3, 4, 5), mask=_mixed(draw, 1, 1, 4, 5))
    yield sample("a mask for each head and text", scores=draw.normal(2, 3, 4, 6), mask=_mixed(draw, 2, 3, 4, 6))
    yield sample("all axes of size 3", scores=draw.normal(3, 3, 3, 3), mask=_real(draw.tensor([2, 3, 1]), 3, "left"))
    yield sample("a mask that allows everything", scores=draw.normal(2, 3, 4, 5), mask=torch.ones(4, 5, device=draw.device) > 0)
    yield sample(
        "scores around 0 in some rows and around -130 or 130 in others",
        gradient=False,
        scores=_steep_scores(draw),
        mask=_even_keys(draw, 6).repeat(4, 1),
    )
    above = draw.integers(-3, 4, 2, 3, 4, 6).float() + 200 * (~_even_keys(draw, 6)).float()
    yield sample(
        "forbidden scores 200 above the allowed ones", gradient=False, scores=above, mask=_even_keys(draw, 6).repeat(4, 1)
    )


def _attention(draw, B, H, Tq, Tk, D, Dv):
    return {"q": draw.normal(B, H, Tq, D), "k": draw.normal(B, H, Tk, D), "v": draw.normal(B, H, Tk, Dv)}


def masked_attention_inputs(draw: Draw):
    first = _attention(draw, 2, 3, 4, 4, 5, 6)
    past = (torch.arange(4) < 2)[:, None].to(draw.device)
    yield sample("a causal mask", **first, mask=_triangular(draw, 4, 4))
    other = {**first, "k": torch.where(past, first["k"], draw.normal(2, 3, 4, 5))}
    yield sample("the same with other keys in the future", **other, mask=_triangular(draw, 4, 4))
    other = {**first, "v": torch.where(past, first["v"], 3 * draw.normal(2, 3, 4, 6))}
    yield sample("the same with other values in the future", **other, mask=_triangular(draw, 4, 4))
    yield sample("the last three of seven positions", **_attention(draw, 2, 4, 3, 7, 6, 5), mask=_triangular(draw, 3, 7))
    yield sample("a mask (1,1,Tq,Tk)", **_attention(draw, 2, 3, 4, 5, 7, 6), mask=_mixed(draw, 1, 1, 4, 5))
    yield sample(
        "a padding mask (B,1,1,Tk)", **_attention(draw, 3, 2, 4, 6, 5, 7), mask=_real(draw.tensor([2, 6, 3]), 6, "right")
    )
    left = _real(draw.tensor([2, 5, 4]), 5, "left") & _triangular(draw, 5, 5)
    yield sample("left padding and causal: rows with nothing to read", **_attention(draw, 3, 2, 5, 5, 4, 6), mask=left)
    holes = _mixed(draw, 2, 3, 4, 6)
    holes[0, 1, 2], holes[1, 2, 0], holes[1, 0, 3] = False, False, True
    yield sample("a mask of the full size, two rows of it empty", **_attention(draw, 2, 3, 4, 6, 5, 7), mask=holes)
    none = _real(draw.tensor([3, 0]), 5, "right")
    yield sample("a text without a real token", **_attention(draw, 2, 3, 4, 5, 6, 7), mask=none)
    yield sample("all axes of size 3", **_attention(draw, 3, 3, 3, 3, 3, 3), mask=_real(draw.tensor([2, 3, 1]), 3, "left"))
    garbage = _attention(draw, 2, 3, 4, 6, 5, 7)
    pads = _real(draw.tensor([3, 4]), 6, "left")
    garbage["v"] = torch.where(pads.mT, garbage["v"], 1e30 * garbage["v"].sign())
    yield sample("values of 1e30 in the padding", **garbage, mask=pads)
    yield from _whole_numbers(draw)


def _whole_numbers(draw):
    """Scores that are exact in any order of summation, at D = 4."""
    even = _even_keys(draw, 6)
    q, k = draw.integers(-2, 3, 1, 2, 3, 4).float(), draw.integers(-2, 3, 1, 2, 6, 4).float()
    q[..., 0], k[..., 0] = draw.tensor([0.0, -26.0, 26.0]), 10.0
    label = "scores around 0 in one row and around -130 or 130 in others"
    yield sample(label, gradient=False, q=q, k=k, v=draw.normal(1, 2, 6, 5), mask=even.repeat(3, 1))


def _layer(draw, B, T, H, D):
    C = H * D
    return {
        "x": draw.normal(B, T, C),
        "c_attn_w": draw.normal(C, 3 * C, scale=C**-0.5),
        "c_attn_b": draw.normal(3 * C, scale=0.5),
        "c_proj_w": draw.normal(C, C, scale=C**-0.5),
        "c_proj_b": draw.normal(C, scale=0.5),
        "n_head": H,
    }


def layer_inputs(draw: Draw):
    first = _layer(draw, 2, 6, 3, 5)
    first["attention_mask"] = draw.tensor([[True, False, True, True, False, True], [True, True, False, True, True, False]])
    past = (torch.arange(6) < 3)[:, None].to(draw.device)
    yield sample("pads in the middle of the text", **first)
    yield sample("the same with another future", **{**first, "x": torch.where(past, first["x"], draw.normal(2, 6, 15))})
    yield sample("three heads, no padding", **_layer(draw, 2, 5, 3, 6))
    yield sample("two heads, another size", **_layer(draw, 3, 7, 2, 5))
    yield sample("one head", **_layer(draw, 2, 4, 1, 6))
    right = _real(draw.tensor([3, 6, 4]), 6, "right")
    yield sample("padding on the right, (B,T)", **_layer(draw, 3, 6, 2, 4), attention_mask=right[:, 0, 0])
    left = _real(draw.tensor([2, 5]), 5, "left")
    yield sample("padding on the left, (B,T)", **_layer(draw, 2, 5, 3, 4), attention_mask=left[:, 0, 0])
    yield sample("padding on the left, (B,1,1,T)", **_layer(draw, 2, 5, 3, 4), attention_mask=left)
    square = _real(draw.tensor([2, 3, 1]), 3, "left")
    yield sample("as many texts as positions", **_layer(draw, 3, 3, 2, 4), attention_mask=square[:, 0, 0])
    none = draw.tensor([[False] * 4, [True, True, False, True]])
    yield sample("a text without a real token, (B,1,1,T)", **_layer(draw, 2, 4, 3, 5), attention_mask=none[:, None, None])


def _row_by_row(q, k, v, mask):
    """Each reader by itself, over the keys that it may read: no mask is needed then."""
    mask = mask.expand(*q.shape[:3], k.shape[2])
    z = q.new_zeros(*q.shape[:3], v.shape[-1])
    for b, h, i in torch.cartesian_prod(*map(torch.arange, q.shape[:3])).tolist():
        keys = mask[b, h, i].nonzero()[:, 0]
        if len(keys):
            z[b, h, i] = F.scaled_dot_product_attention(q[b, h, i][None], k[b, h, keys], v[b, h, keys])[0]
    return z


def _layer_reference(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    q, k, v = torch.einsum("btc,cd->btd", x, c_attn_w).add(c_attn_b).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
    real = x.new_ones(B, T, dtype=torch.bool) if attention_mask is None else attention_mask.reshape(B, T)
    mask = torch.stack([torch.stack([(torch.arange(T, device=x.device) <= i) & row for i in range(T)]) for row in real])
    return F.linear(torch.cat(list(_row_by_row(q, k, v, mask[:, None]).unbind(1)), dim=-1), c_proj_w.T, c_proj_b)


def _golden_mask(real):
    T = real.ids.shape[1]
    return torch.ones(T, T, dtype=torch.bool, device=real.ids.device).tril()


def _golden_layer(real):
    weights = {"c_attn_w": "c_attn.weight", "c_attn_b": "c_attn.bias", "c_proj_w": "c_proj.weight", "c_proj_b": "c_proj.bias"}
    inputs = {"x": real["h.1.ln_1"], **{name: real[f"h.1.attn.{stored}"] for name, stored in weights.items()}}
    pads = torch.tensor([[0], [2]], device=real.ids.device)
    real_tokens = torch.arange(real.ids.shape[1], device=real.ids.device) >= pads
    return {**inputs, "n_head": real.config["n_head"], "attention_mask": real_tokens}


FUSED = ("scaled_dot_product", "multi_head_attention")

case.exercise(
    "mask_scores(scores, mask)",
    returns="pattern",
    inputs=mask_scores_inputs,
    points=1,
    lesson="A weight of exactly zero: `mask_scores`",
    hints=(
        "A score of 0 is not a weight of 0. Which score has the exponential 0?",
        "Keep the score where the mask is True; everywhere else put a number so low that nothing is left of it after exp.",
        "out[b,h,i,j] = scores[b,h,i,j] where mask[b,h,i,j], else minus infinity",
    ),
    reference=lambda scores, mask: (scores.exp() * mask) / (scores.exp() * mask).sum(-1, keepdim=True),
    golden=lambda real: {"scores": real["h.1.attn.scores"], "mask": _golden_mask(real)},
    forbidden=FUSED,
    probe="mask_scores",
)
case.exercise(
    "masked_attention(q, k, v, mask)",
    returns="z",
    inputs=masked_attention_inputs,
    points=3,
    lesson="A row with nothing to read: `masked_attention`",
    hints=(
        "What does a softmax make of a row in which every score is minus infinity, and what should the reader get?",
        "Find the rows that allow nothing before the softmax, keep them away from it, and let them read 0.",
        "pattern[b,h,i,:] = softmax over the j with mask[b,h,i,j], else 0;  z[b,h,i,e] = sum_j pattern[b,h,i,j] v[b,h,j,e]",
    ),
    reference=_row_by_row,
    golden=lambda real: {**{name: real[f"h.1.attn.{name}"] for name in "qkv"}, "mask": _golden_mask(real)},
    forbidden=FUSED,
)
case.exercise(
    "causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None)",
    returns="attn_out",
    inputs=layer_inputs,
    points=7,
    lesson="Both at once: `causal_self_attention`",
    hints=(
        "A position may be read if it is not in the future and if it is real. Which two masks say so, and how do they combine?",
        "Project, split into heads, attend under both masks, merge, project. A (B,T) mask needs two more axes in the middle.",
        "mask[b,i,j] = (j <= i) and attention_mask[b,j];  attn_out = merged(attention under mask) @ c_proj_w + c_proj_b",
    ),
    reference=_layer_reference,
    golden=_golden_layer,
    forbidden=FUSED,
)

ATTENTION = ("masked_attention", "causal_self_attention")
LAYER = ("causal_self_attention",)
PLAIN = ("mask_scores", "masked_attention")
ALONE = ("masked_attention",)


def _spoil(id, at, text, function, tensor=None, only=()):
    """Declare a fault whose function fits in a line."""
    case.fault(id, at=at, text=text, tensor=tensor, only=only)(function)


# ---------------------------------------------------------------- q, k, v and the scores

_spoil("qkv-bias-missing", "_qkv", "what does c_attn add after the product?", lambda x, c_attn_w: x @ c_attn_w, "q")
_spoil(
    "qkv-weight-transposed",
    "_qkv",
    "is the weight stored as (in, out), or as (out, in)?",
    lambda x, c_attn_w, c_attn_b: x @ c_attn_w.T + c_attn_b,
    "q",
)


@case.fault(
    "padding-zeroes-the-input",
    at="_qkv",
    tensor="q",
    text="a key made of zeros: is it masked, or does it have a score all the same?",
)
def _(x, c_attn_w, c_attn_b, attention_mask):
    return (
        x @ c_attn_w + c_attn_b if attention_mask is None else x * _keys(attention_mask)[:, 0, 0, :, None] @ c_attn_w + c_attn_b
    )


def _reordered(id, order, text):
    _spoil(id, "_parts", text, lambda right: tuple(right[index] for index in order), "q" if order[0] else "k")


_reordered(
    "queries-and-keys-swapped", (1, 0, 2), "which comes first in c_attn, and which of the two reads: the query or the key?"
)
_reordered("qkv-order-qvk", (0, 2, 1), "which comes last in c_attn, keys or values?")
_reordered("qkv-order-vkq", (2, 1, 0), "in which order does c_attn hold q, k and v?")
_reordered("qkv-order-vqk", (2, 0, 1), "in which order does c_attn hold q, k and v, and which one did you take first?")
_reordered("qkv-order-kvq", (1, 2, 0), "in which order does c_attn hold q, k and v, and where does each one go?")

_spoil(
    "values-copied-from-keys",
    "_parts",
    "do values and keys come from different columns?",
    lambda right: (right[0], right[1], right[1]),
    "v",
)
_spoil(
    "split-every-nth-channel",
    "_heads",
    "are the channels of head 0 next to each other?",
    lambda _parts, n_head: tuple(part.unflatten(-1, (-1, n_head)).permute(0, 3, 1, 2) for part in _parts),
    "q",
)
_spoil(
    "qkv-interleaved",
    "_parts",
    "are the C columns of q next to each other, or every third one?",
    lambda _qkv: _qkv.unflatten(-1, (-1, 3)).unbind(-1),
    "q",
)
_spoil(
    "qkv-split-after-heads",
    "_heads",
    "what does GPT-2 store first: all of q, or q, k and v of head 0?",
    lambda _qkv, n_head: _qkv.unflatten(-1, (n_head, -1)).movedim(-2, 1).chunk(3, dim=-1),
    "q",
)
_spoil(
    "split-without-transpose",
    "_heads",
    "does one head hold whole positions, or slices of neighbouring ones?",
    lambda _parts, n_head: tuple(part.reshape(part.shape[0], n_head, part.shape[1], -1) for part in _parts),
    "q",
)
_spoil(
    "one-head-only",
    "_heads",
    "how many heads share the channels?",
    lambda _parts: tuple(part.unsqueeze(1) for part in _parts),
    "q",
)

_spoil("scale-missing", "_scale", "how does the spread of a dot product grow with D, and what undoes it?", lambda: 1.0, "scores")
_spoil(
    "scale-by-head-size", "_scale", "is the score divided by the root of D, and once only?", lambda q: 1 / q.shape[-1], "scores"
)
_spoil("scale-multiplies", "_scale", "do you divide by the root of D, or multiply by it?", lambda q: q.shape[-1] ** 0.5, "scores")
_spoil(
    "scale-by-model-width",
    "_scale",
    "how many products are summed in one dot product: C, or D?",
    lambda q: (q.shape[1] * q.shape[-1]) ** -0.5,
    "scores",
)
_spoil(
    "scale-from-key-count",
    "_scale",
    "which axis of k has the head size: is it the one that counts the keys?",
    lambda k: k.shape[-2] ** -0.5,
    "scores",
)
_spoil(
    "scores-transposed",
    "_dots",
    "do the rows of your scores belong to queries, or to keys?",
    lambda q, k: k @ q.mT,
    "scores",
    only=("masked_attention",),
)

# ---------------------------------------------------------------- which mask


def _triangle_fault(id, text, function):
    case.fault(id, at="_triangle", tensor="pattern", text=text)(lambda right: function(right))


_triangle_fault(
    "mask-keeps-upper-triangle",
    "which half of the square is the past, and is your triangle the half you keep or the half you fill?",
    lambda right: right.T,
)
_triangle_fault(
    "mask-peeks-one-ahead",
    "read row 0 aloud: how many keys may the first position see?",
    lambda right: torch.ones_like(right).tril(1),
)
_triangle_fault("mask-hides-own-position", "does a position see itself?", lambda right: right.tril(-1))
_triangle_fault(
    "mask-keeps-the-future", "what does True mean in this course's masks: may attend, or may not?", lambda right: ~right
)
_triangle_fault("mask-keeps-own-position-only", "may a position see the past, or itself alone?", lambda right: right & right.T)
_triangle_fault(
    "causal-mask-forgotten",
    "change the tokens from position t on: which of your outputs move?",
    lambda right: torch.ones_like(right),
)


def _mask_fault(id, text, function):
    """A fault of the combined mask: what it is when there is an attention_mask, of shape (B,1,1,T)."""

    @case.fault(id, at="mask", tensor="pattern", text=text)
    def _(_triangle, attention_mask):
        return _triangle if attention_mask is None else function(_triangle, _keys(attention_mask))


_mask_fault("padding-forgotten", "does your result change with the number of pads on the left?", lambda triangle, real: triangle)
_mask_fault(
    "causal-mask-lost-with-padding",
    "is the causal mask still there when a padding mask is given?",
    lambda triangle, real: real.expand(-1, 1, len(triangle), -1),
)
_mask_fault(
    "masks-combined-by-or",
    "a position may be read if it is not in the future and is real: how do two conditions combine where True means may?",
    lambda triangle, real: triangle | real,
)
_mask_fault(
    "padding-mask-inverted",
    "what does True mean in attention_mask: a real token, or a pad?",
    lambda triangle, real: triangle & ~real,
)
_mask_fault(
    "padding-mask-on-the-query-axis",
    "which axis of the scores counts what is read: does your padding silence keys, or readers?",
    lambda triangle, real: triangle & real.mT,
)
_mask_fault(
    "padding-mask-on-both-axes",
    "attention_mask says which keys may be read: may a pad read?",
    lambda triangle, real: triangle & real & real.mT,
)
_mask_fault(
    "pads-always-see-themselves",
    "attention_mask says which keys may be read: is a pad a key that its own position may read?",
    lambda triangle, real: triangle & (real | torch.eye(len(triangle), dtype=torch.bool, device=real.device)),
)
_mask_fault(
    "padding-mask-of-the-first-text",
    "does each text have its own pads?",
    lambda triangle, real: (triangle & real)[:1].expand(len(real), -1, -1, -1),
)
_mask_fault(
    "padding-mask-flipped", "does key 0 of the mask belong to position 0?", lambda triangle, real: triangle & real.flip(-1)
)


@case.fault("mask-never-applied", at="mask", tensor="pattern", text="which line of yours keeps a score from counting?")
def _(_triangle):
    return torch.ones_like(_triangle)


@case.fault("mask-only-with-padding", at="mask", tensor="pattern", text="is the causal mask there when no padding mask is given?")
def _(_triangle, attention_mask):
    return torch.ones_like(_triangle) if attention_mask is None else _triangle & _keys(attention_mask)


@case.fault(
    "mask-with-four-axes-taken-whole",
    at="mask",
    tensor="pattern",
    text="attention_mask of shape (B,1,1,T): does it say anything about the future, and who does then?",
)
def _(_triangle, attention_mask):
    if attention_mask is not None and attention_mask.dim() == 4:
        return attention_mask.expand(-1, 1, len(_triangle), -1)
    return _triangle if attention_mask is None else _triangle & _keys(attention_mask)


@case.fault(
    "mask-with-four-axes-ignored",
    at="mask",
    tensor="pattern",
    text="attention_mask comes in two shapes: what does your code do with the second?",
)
def _(_triangle, attention_mask):
    return _triangle if attention_mask is None or attention_mask.dim() == 4 else _triangle & _keys(attention_mask)


RAW = "a (B,T) mask against (B,H,T,T) without new axes: which axis does B line up with?"


@case.fault("padding-mask-without-axes", at="mask", tensor="pattern", text=RAW)
def _(_triangle, attention_mask):
    return _triangle if attention_mask is None else _triangle & attention_mask


@case.fault("padding-mask-without-axes-first", at="mask", tensor="pattern", text=RAW, only=LAYER)
def _(_triangle, attention_mask):
    if attention_mask is not None and attention_mask.dim() == 2 and len(attention_mask) != len(_triangle):
        return attention_mask & _triangle
    return _triangle if attention_mask is None else _triangle & attention_mask


@case.fault("padding-mask-without-axes-on-scores", at="mask", tensor="pattern", text=RAW, only=LAYER)
def _(_triangle, attention_mask, scores):
    if attention_mask is None:
        return _triangle
    scores.masked_fill(~attention_mask, NOTHING)  # raises where the axes do not fit
    return _triangle & attention_mask


@case.fault(
    "padding-mask-always-given-axes",
    at="mask",
    tensor="pattern",
    text="attention_mask comes in two shapes: how many axes has your mask after the second?",
)
def _(_triangle, attention_mask):
    if attention_mask is not None and attention_mask.dim() == 4:
        B, H, T, D = range(6)
    return _triangle if attention_mask is None else _triangle & _keys(attention_mask)


@case.fault(
    "padding-mask-on-the-head-axis",
    at="mask",
    tensor="pattern",
    text="where do the two new axes of a (B,T) mask stand: which axis of (B,H,T,T) does its B line up with?",
)
def _(_triangle, attention_mask):
    if attention_mask is not None and attention_mask.dim() == 2:
        return _triangle & attention_mask[:, None, :]
    return _triangle if attention_mask is None else _triangle & attention_mask


@case.fault(
    "masks-combined-by-and",
    at="mask",
    tensor="pattern",
    text="what does Python's `and` ask of a tensor with more than one entry?",
)
def _(_triangle, attention_mask):
    return _triangle if attention_mask is None else _triangle and _keys(attention_mask)


def _by_flat_head(id, text, owner):
    """A mask repeated for each head by hand: `owner` gives the text whose pads are used for head h of text b."""

    @case.fault(id, at="mask", tensor="pattern", text=text)
    def _(_triangle, attention_mask, n_head):
        if attention_mask is None:
            return _triangle
        real = _keys(attention_mask)
        B = len(real)
        order = torch.tensor([[owner(b, h, B, n_head) for h in range(n_head)] for b in range(B)], device=real.device)
        return _triangle & real[:, 0][order]


_by_flat_head(
    "padding-mask-tiled-over-heads",
    "if you repeat a mask for each head by hand, do the copies of one text stay together?",
    lambda b, h, B, H: (b * H + h) % B,
)
_by_flat_head(
    "padding-mask-repeated-head-first",
    "if you repeat a mask for each head by hand, which comes first in the flattened axis, texts or heads?",
    lambda b, h, B, H: (h * B + b) // H,
)


@case.fault(
    "padding-mask-rows-mixed",
    at="mask",
    tensor="pattern",
    text="if you repeat a mask for each row by hand, do the copies of one text stay together?",
)
def _(_triangle, attention_mask, n_head):
    if attention_mask is None:
        return _triangle
    real, T = _keys(attention_mask)[:, 0, 0], len(_triangle)
    return _triangle & real.repeat(n_head * T, 1).view(len(real), n_head, T, T)


# ---------------------------------------------------------------- how the mask is applied

_spoil(
    "mask-meaning-inverted",
    "_allowed",
    "what does True mean in this course's masks: may attend, or may not?",
    lambda right: ~right,
    "pattern",
    only=ATTENTION,
)
_spoil(
    "mask-ignored",
    "_allowed",
    "which line of yours keeps a score from counting?",
    lambda right: torch.ones_like(right),
    "pattern",
    only=("masked_attention",),
)
_spoil(
    "mask-causal-on-top",
    "_allowed",
    "does this function know of the future, or only of the mask that it is given?",
    lambda right, q, k: right & _aligned(q.shape[2], k.shape[2]).to(q.device),
    "pattern",
    only=("masked_attention",),
)
_spoil(
    "mask-of-the-first-text",
    "_allowed",
    "is there one mask for all texts, or does each have its own?",
    lambda right: right[:1] if right.dim() == 4 else right,
    "pattern",
    only=PLAIN,
)
_spoil(
    "mask-of-the-first-head",
    "_allowed",
    "is there one mask for all heads, or may each have its own?",
    lambda right: right[:, :1] if right.dim() == 4 else right,
    "pattern",
    only=PLAIN,
)
_spoil(
    "mask-of-the-first-query",
    "_allowed",
    "does each reader have a row of its own in the mask?",
    lambda right: right[..., :1, :],
    "pattern",
    only=PLAIN,
)
_spoil(
    "mask-transposed",
    "_allowed",
    "do the rows of the mask belong to readers, or to what they read?",
    lambda right: right.mT,
    "pattern",
    only=PLAIN,
)

_spoil(
    "mask-not-applied",
    "_masked",
    "your operation returns new scores: who keeps them?",
    lambda scores: scores,
    "pattern",
    only=("mask_scores",),
)
_spoil(
    "mask-inverted",
    "_masked",
    "which scores do you replace: those where the mask is True, or those where it is False?",
    lambda scores, _allowed: scores.masked_fill(_allowed, NOTHING),
    "pattern",
    only=("mask_scores",),
)
_spoil(
    "mask-inverted-finite-fill",
    "_masked",
    "which scores do you replace: those where the mask is True, or those where it is False?",
    lambda scores, _allowed: scores.masked_fill(_allowed, -1e9),
    "pattern",
    only=("mask_scores",),
)
_spoil(
    "forbidden-scores-zero",
    "_masked",
    "a score of 0 is not a weight of 0: what is e^0?",
    lambda scores, _allowed: scores.masked_fill(~_allowed, 0.0),
    "pattern",
)
_spoil(
    "fill-plus-infinity",
    "_masked",
    "which sign has your fill, and what is inf - inf?",
    lambda scores, _allowed: scores.masked_fill(~_allowed, torch.inf),
    "pattern",
)
_spoil(
    "fill-large-and-positive",
    "_masked",
    "which sign has your fill?",
    lambda scores, _allowed: scores.masked_fill(~_allowed, 1e9),
    "pattern",
    PLAIN,
)
_spoil(
    "mask-turns-all-into-nan",
    "_masked",
    "every entry is NaN: what is 0 times infinity, and what is ~1 as an integer?",
    lambda scores, _allowed: torch.full_like(scores, torch.nan),
    "pattern",
)
_spoil(
    "fill-smallest-score",
    "_masked",
    "the smallest score of all: what is its exponential, compared with the others?",
    lambda scores, _allowed: scores.masked_fill(~_allowed, scores.min()),
    "pattern",
    PLAIN,
)
LOW = "how low is low enough: what weight does your fill leave, when the allowed scores are low too?"


def _low(fill, only=()):
    """A fill, and a number added. From -20 to -100 all are alike: nothing on ordinary scores, too much on steep ones."""
    name = "not-low-enough" if fill == -100 else f"of-minus-{-fill}"
    _spoil(f"fill-{name}", "_masked", LOW, lambda scores, _allowed: scores.masked_fill(~_allowed, fill), "pattern", only)
    _spoil(
        f"fill-added-{name}",
        "_masked",
        LOW,
        lambda scores, _allowed: scores + fill * (~_allowed).to(scores.dtype),
        "pattern",
        ("mask_scores",) if fill == -100 else only,  # the others get no score so far above the allowed ones
    )


for _fill, _only in ((-1, PLAIN), (-5, PLAIN), (-10, ("mask_scores",)), (-100, PLAIN)):
    _low(_fill, _only)

_spoil(
    "mask-by-python-not",
    "_masked",
    "how is a boolean tensor negated?",
    lambda scores, _allowed: scores.masked_fill(not _allowed, NOTHING),
    "pattern",
    PLAIN,
)
_spoil(
    "mask-subtracted",
    "_masked",
    "how is a boolean tensor negated?",
    lambda scores, _allowed: scores + (1 - _allowed) * -1e9,
    "pattern",
    PLAIN,
)
_spoil(
    "mask-negated-by-minus",
    "_masked",
    "how is a boolean tensor negated?",
    lambda scores, _allowed: scores.masked_fill(-_allowed, NOTHING),
    "pattern",
    PLAIN,
)
_spoil(
    "mask-negated-as-integer-finite-fill",
    "_masked",
    "what is ~1, as an integer, and is it False?",
    lambda scores: torch.full_like(scores, -1e9),
    "pattern",
    PLAIN,
)
_spoil(
    "mask-on-a-detached-copy",
    "_masked",
    "does q still get its gradient through your masked scores?",
    lambda right: right.detach(),
    "pattern",
)

# ---------------------------------------------------------------- the pattern


def _softmaxed(id, text, function):
    """A fault of mask_scores alone, which takes the softmax itself."""
    _spoil(id, "_masked", text, function, "pattern", only=("mask_scores",))


_softmaxed("mask-scores-returns-pattern", "are scores asked for, or weights?", lambda right: F.softmax(right, dim=-1))
_softmaxed(
    "mask-scores-after-softmax",
    "does the mask come before the softmax, or after it?",
    lambda scores, _allowed: F.softmax(scores, dim=-1).masked_fill(~_allowed, NOTHING),
)
_softmaxed(
    "mask-scores-returns-masked-weights",
    "does the mask come before the softmax or after it, and are scores asked for or weights?",
    lambda scores, _allowed: F.softmax(scores, dim=-1) * _allowed,
)


def _pattern_fault(id, text, function, only=ATTENTION):
    _spoil(id, "pattern", text, function, None, only)


_pattern_fault(
    "mask-after-softmax",
    "after your mask, do the weights of one reader still add up to 1?",
    lambda scores, _allowed: F.softmax(scores, dim=-1) * _allowed,
)


OVERFLOW = "what is exp(130) in float32, what is exp(-130), and what is 0/0?"


@case.fault("pattern-without-maximum", at="pattern", text=OVERFLOW, only=ALONE)
def _(_masked):
    raised = torch.exp(_masked)
    return raised / raised.sum(-1, keepdim=True)


@case.fault("pattern-without-maximum-guarded", at="pattern", text=OVERFLOW, only=ALONE)
def _(_masked):
    raised = torch.exp(_masked)
    return raised / raised.sum(-1, keepdim=True).clamp(min=1e-30)


@case.fault(
    "pattern-max-over-everything",
    at="pattern",
    text="a row far below the largest score of all: what is left of it after exp?",
    only=ALONE,
)
def _(_masked):
    raised = torch.exp(_masked - _masked.max())
    return raised / raised.sum(-1, keepdim=True).clamp(min=1e-30)


@case.fault("softmax-over-queries", at="pattern", text="which axis must sum to 1 for one reader?", only=ATTENTION)
def _(scores, _allowed):
    empty = _empty(_allowed)
    return F.softmax(scores.masked_fill(~(_allowed | empty), NOTHING), dim=-2).masked_fill(empty, 0.0)


_pattern_fault(
    "softmax-over-queries-unguarded", "which axis must sum to 1 for one reader?", lambda _masked: F.softmax(_masked, dim=-2)
)
_pattern_fault(
    "softmax-over-heads",
    "do heads compete with each other? which axis is number 1 of four?",
    lambda _masked: F.softmax(_masked, dim=1),
    ALONE,
)
_pattern_fault(
    "pattern-softmax-twice", "how many times are the scores turned into shares?", lambda right: F.softmax(right, dim=-1), ALONE
)
_pattern_fault(
    "pattern-uniform",
    "does your answer change when the queries do?",
    lambda _allowed, scores: torch.nan_to_num((_allowed / _allowed.sum(-1, keepdim=True)).to(scores.dtype)).expand_as(scores),
    ALONE,
)
_pattern_fault(
    "empty-row-not-handled",
    "what does your softmax give for a row in which nothing is allowed, and what must its reader get?",
    lambda _masked: F.softmax(_masked, dim=-1),
)


@case.fault(
    "empty-row-uniform",
    at="pattern",
    text="a row of equal finite fills: what does its reader receive, and what must it get?",
    only=ATTENTION,
)
def _(right, _masked):
    nothing = torch.isneginf(_masked).all(-1, keepdim=True)
    return torch.where(nothing, 1 / right.shape[-1], right)


def _opened(id, text, function, only=ATTENTION):
    """What a row reads that may read nothing: the pattern of the function's scores there, the right one elsewhere."""

    @case.fault(id, at="pattern", text=text, only=only)
    def _(right, scores, _allowed):
        return torch.where(_empty(_allowed), F.softmax(function(scores), dim=-1), right)


_opened(
    "empty-row-reads-everything",
    "an empty row that you open for the softmax: what does its reader receive in the end?",
    lambda scores: scores,
)
_opened(
    "empty-row-reads-through-added-fill",
    "the same number added to every score of a row: what does a softmax make of it?",
    lambda scores: scores - 1e4,
)
_opened(
    "empty-row-reads-itself",
    "a row that may attend to nothing: may it attend to itself?",
    lambda scores: torch.zeros_like(scores).masked_fill(~torch.eye(scores.shape[-1], device=scores.device).bool(), NOTHING),
    only=LAYER,
)
_opened(
    "empty-row-reads-past-pads",
    "a row whose past is all padding: what does its reader receive, and what must it get?",
    lambda scores: torch.zeros_like(scores).masked_fill(torch.ones_like(scores).triu(1).bool(), NOTHING),
    only=LAYER,
)
_opened(
    "empty-row-reads-first-key",
    "a row that may attend to nothing: what does its reader receive, and what must it get?",
    lambda scores: torch.zeros_like(scores).index_fill(-1, torch.arange(1, scores.shape[-1], device=scores.device), NOTHING),
)

_pattern_fault(
    "partly-masked-row-zeroed",
    "which rows are empty: those with a False in them, or those without a True?",
    lambda right, _allowed: right.masked_fill(~_allowed.all(-1, keepdim=True), 0.0),
)


def _additive(scores, allowed):
    return scores + torch.zeros_like(scores).masked_fill(~allowed, NOTHING)


BEHIND = "your forward pass is clean: is the backward one, and which step can you change so that no NaN arises?"
_pattern_fault(
    "nan-patched-in-pattern", BEHIND, lambda scores, _allowed: F.softmax(_additive(scores, _allowed), dim=-1).nan_to_num(0.0)
)
_spoil(
    "nan-patched-in-z",
    "z",
    BEHIND,
    lambda scores, _allowed, v: (F.softmax(_additive(scores, _allowed), dim=-1) @ v).nan_to_num(0.0),
    None,
    ATTENTION,
)
_spoil(
    "nan-patched-in-z-after-fill",
    "z",
    BEHIND,
    lambda scores, _allowed, v: (F.softmax(scores.masked_fill(~_allowed, NOTHING), dim=-1) @ v).nan_to_num(0.0),
    None,
    ATTENTION,
)


@case.fault(
    "padding-after-softmax",
    at="pattern",
    text="a pad whose weight or value is put to zero after the softmax: what share of the weights did it take before?",
    only=LAYER,
)
def _(right, scores, _triangle, attention_mask):
    return right if attention_mask is None else F.softmax(scores.masked_fill(~_triangle, NOTHING), dim=-1) * _keys(attention_mask)


# ---------------------------------------------------------------- z and the output

_spoil(
    "pattern-transposed",
    "z",
    "row i of the pattern says what i reads: do you sum over its row, or its column?",
    lambda pattern, v: pattern.mT @ v,
)
_spoil("pattern-unused", "z", "which tensor carries what was read from other positions?", lambda v: v, only=LAYER)
_spoil(
    "values-swapped-for-keys",
    "z",
    "which tensor is compared, and which one is read?",
    lambda pattern, k: pattern @ k,
    only=("masked_attention",),
)


_spoil(
    "merged-without-transpose",
    "_merged",
    "row t before the last projection: do all its numbers come from position t?",
    lambda z: z.reshape(z.shape[0], z.shape[2], -1),
    "attn_out",
)
_spoil("output-bias-missing", "attn_out", "what does c_proj add after the product?", lambda _merged, c_proj_w: _merged @ c_proj_w)
_spoil(
    "output-weight-transposed",
    "attn_out",
    "c_proj_w is square, so the wrong orientation raises no error: is it (in, out)?",
    lambda _merged, c_proj_w, c_proj_b: _merged @ c_proj_w.T + c_proj_b,
)
_spoil("output-projection-missing", "attn_out", "what mixes the heads after they are laid side by side?", lambda _merged: _merged)
_spoil(
    "residual-added",
    "attn_out",
    "who adds x to what attention writes: this function, or the block around it?",
    lambda right, x: right + x,
)


@case.fault(
    "output-zeroed-at-pads", at="attn_out", text="attention_mask says which keys may be read: does it silence what a pad writes?"
)
def _(right, attention_mask):
    return right if attention_mask is None else right * _keys(attention_mask)[:, 0, 0, :, None]


@case.fault(
    "empty-row-without-bias", at="attn_out", text="a position left with nothing has z = 0: what does c_proj make of that?"
)
def _(right, mask):
    return right.masked_fill(_empty(mask)[..., 0, :, :] if mask.dim() == 4 else _empty(mask), 0.0)
