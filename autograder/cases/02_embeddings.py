"""The case of 02_embeddings."""

import math

import torch
import torch.nn.functional as F

from autograder.case import ANY, Case, Draw, refusal, sample

case = Case(
    "02_embeddings",
    axes={
        "tok_emb": "B T C",
        "pos_emb": "T C",
        "resid_pre": "B T C",
        "logits": "B T V",
        "waves": "n_ctx d_model",
    },
    hidden=("n_positions", "vector", "exclude"),
)


def _spoil(id, at, text, function, tensor=None, only=()):
    """Declare a fault whose function fits in a line."""
    case.fault(id, at=at, text=text, tensor=tensor, only=only)(function)


# ---------------------------------------------------------------- embed_tokens, embed_positions, embed


@case.step
def tok_emb(ids, wte):
    return F.embedding(ids, wte)


@case.step
def n_positions(ids):
    return ids.shape[-1]


@case.step
def pos_emb(n_positions, wpe, offset):
    if offset + n_positions > len(wpe):
        raise ValueError(f"{offset} + {n_positions} > {len(wpe)}")
    return _rows(wpe, offset, n_positions)


def _rows(wpe, first, count):
    return wpe.narrow(0, first, count)


@case.step
def resid_pre(tok_emb, pos_emb):
    return tok_emb + pos_emb


def token_inputs(draw: Draw):
    ids = draw.tensor([[3, 0, 7, 3, 10], [1, 3, 0, 9, 2]])
    yield sample("two texts of five tokens, some of them twice", ids=ids, wte=draw.normal(11, 6))
    yield sample("three texts of one token", ids=draw.tensor([[2], [0], [6]]), wte=draw.normal(7, 4))
    yield sample("four texts of three tokens", ids=draw.integers(1, 5, 4, 3), wte=draw.normal(6, 5))
    yield sample("all sizes 4", ids=draw.tensor([[1, 2, 1, 0], [2, 2, 1, 1], [0, 1, 2, 2], [1, 1, 2, 0]]), wte=draw.normal(4, 4))


def position_inputs(draw: Draw):
    yield sample("five positions of a table of nine", n_positions=5, wpe=draw.normal(9, 6))
    yield sample("three positions behind four others", n_positions=3, wpe=draw.normal(10, 4), offset=4)
    yield sample("one position behind five others", n_positions=1, wpe=draw.normal(8, 5), offset=5)
    yield sample("as many positions as the table has rows", n_positions=7, wpe=draw.normal(7, 3))
    yield sample("the last rows of the table", n_positions=4, wpe=draw.normal(9, 5), offset=5)
    yield sample("the last row alone", n_positions=1, wpe=draw.normal(6, 4), offset=5)
    yield sample("offset and n_positions alike", n_positions=2, wpe=draw.normal(8, 8), offset=2)
    yield refusal("n_positions = 8, a table of 7 rows", ValueError, n_positions=8, wpe=draw.normal(7, 3))
    yield refusal("offset = 6, n_positions = 3, a table of 8 rows", ValueError, n_positions=3, wpe=draw.normal(8, 3), offset=6)
    yield refusal("offset = 5, n_positions = 1, a table of 5 rows", ValueError, n_positions=1, wpe=draw.normal(5, 4), offset=5)
    yield refusal("offset = 7, n_positions = 4, a table of 6 rows", ValueError, n_positions=4, wpe=draw.normal(6, 4), offset=7)


def embed_inputs(draw: Draw):
    ids = draw.tensor([[3, 0, 7, 3, 8], [1, 3, 0, 6, 2]])
    yield sample("two texts of five tokens behind two others", ids=ids, wte=draw.normal(9, 6), wpe=draw.normal(12, 6), offset=2)
    yield sample("no offset", ids=ids, wte=draw.normal(9, 5), wpe=draw.normal(10, 5))
    yield sample("an offset of 4", ids=draw.integers(0, 7, 3, 2), wte=draw.normal(7, 5), wpe=draw.normal(8, 5), offset=4)
    yield sample(
        "one new token, five behind it", ids=draw.tensor([[4], [1]]), wte=draw.normal(6, 4), wpe=draw.normal(9, 4), offset=5
    )
    yield sample("one token and no offset", ids=draw.tensor([[2], [5], [3]]), wte=draw.normal(6, 5), wpe=draw.normal(4, 5))
    yield sample(
        "as many tokens as the table has rows", ids=draw.integers(0, 5, 3, 6), wte=draw.normal(5, 4), wpe=draw.normal(6, 4)
    )
    yield sample(
        "the last rows of the table", ids=draw.integers(0, 8, 2, 3), wte=draw.normal(8, 5), wpe=draw.normal(7, 5), offset=4
    )
    ids = draw.tensor([[12, 3, 12], [5, 12, 0]])
    yield sample("more tokens in the vocabulary than positions", ids=ids, wte=draw.normal(13, 4), wpe=draw.normal(6, 4), offset=1)
    yield sample("as many texts as tokens", ids=draw.integers(0, 9, 4, 4), wte=draw.normal(9, 4), wpe=draw.normal(10, 4))
    long, short = draw.integers(0, 5, 2, 7), draw.integers(0, 5, 2, 3)
    yield refusal("seven tokens, a table of 6 rows", ValueError, ids=long, wte=draw.normal(5, 4), wpe=draw.normal(6, 4))
    wide = {"wte": draw.normal(5, 4), "wpe": draw.normal(6, 4)}
    yield refusal("offset = 5, three tokens, a table of 6 rows", ValueError, ids=short, **wide, offset=5)
    yield refusal("offset = 6, one token, a table of 6 rows", ValueError, ids=short[:, :1], **wide, offset=6)


case.exercise(
    "embed_tokens(ids, wte)",
    returns="tok_emb",
    inputs=token_inputs,
    points=1,
    lesson="One id, one row: `embed_tokens`",
    hints=(
        "An id is a name. Which part of wte belongs to it?",
        "A tensor may be indexed by a tensor of integers: what shape has the result?",
        "tok_emb[b,t,c] = wte[ids[b,t],c]",
    ),
    reference=lambda ids, wte: F.one_hot(ids, len(wte)).to(wte.dtype) @ wte,
)
case.exercise(
    "embed_positions(n_positions, wpe, offset=0)",
    returns="pos_emb",
    inputs=position_inputs,
    points=2,
    lesson="Where am I: `embed_positions`",
    hints=(
        "Five tokens are behind you, and one is new. Which row of wpe is its own?",
        "The rows follow each other: which is the first, and which the first that is not wanted? Is there such a row?",
        "pos_emb[t,c] = wpe[offset + t,c], t = 0 .. n_positions - 1;  refuse offset + n_positions > n_ctx",
    ),
    reference=lambda n_positions, wpe, offset=0: F.embedding(torch.arange(offset, offset + n_positions, device=wpe.device), wpe),
    golden=lambda real: {"n_positions": 7, "wpe": real["wpe.weight"][:32], "offset": 5},
)
case.exercise(
    "embed(ids, wte, wpe, offset=0)",
    returns="resid_pre",
    inputs=embed_inputs,
    points=2,
    lesson="What and where in one vector: `embed`",
    hints=(
        "What stands here, and where does it stand: how do two vectors of C channels become one of C channels?",
        "Take the rows of the ids and the rows of the positions; the second have no batch axis, and need none.",
        "resid_pre[b,t,c] = wte[ids[b,t],c] + wpe[offset + t,c]",
    ),
    reference=lambda ids, wte, wpe, offset=0: torch.stack(
        [torch.stack([wte[ids[b, t]] + wpe[offset + t] for t in range(ids.shape[1])]) for b in range(ids.shape[0])]
    ),
    golden=lambda real: {"ids": real.ids, "wte": real["wte.weight"], "wpe": real["wpe.weight"], "offset": 3},
)

# The rows of the tokens.

_spoil(
    "tokens-scaled-by-root-of-width",
    "tok_emb",
    "the original transformer multiplies these rows by sqrt(C): does the formula in the stub?",
    lambda right: right * right.shape[-1] ** 0.5,
)
_spoil(
    "tokens-divided-by-root-of-width", "tok_emb", "are the rows scaled in GPT-2?", lambda right: right / right.shape[-1] ** 0.5
)
_spoil("tokens-scaled-to-length-one", "tok_emb", "do the rows keep their lengths?", lambda right: F.normalize(right, dim=-1))
_spoil("tokens-one-row-ahead", "tok_emb", "which row belongs to id 0?", lambda ids, wte: wte[(ids + 1) % len(wte)])
_spoil("tokens-one-row-behind", "tok_emb", "which row belongs to id 0?", lambda ids, wte: wte[ids - 1])
_spoil(
    "tokens-mixed-by-view",
    "tok_emb",
    "row by row: which text does each vector belong to? what does a view do that a transpose does not?",
    lambda right: right.transpose(0, 1).reshape(right.shape),
)
_spoil(
    "tokens-viewed-positions-first",
    "tok_emb",
    "which axis comes first, texts or positions? and does a view move rows, as a transpose does?",
    lambda right: right.reshape(right.shape[1], right.shape[0], -1),
)
_spoil("tokens-positions-first", "tok_emb", "which axis comes first, texts or positions?", lambda right: right.transpose(0, 1))
_spoil("tokens-width-before-positions", "tok_emb", "which axis comes last?", lambda right: right.mT)
_spoil("tokens-summed-over-the-text", "tok_emb", "does each position keep a vector of its own?", lambda right: right.sum(1))
_spoil("tokens-averaged-over-the-text", "tok_emb", "does each position keep a vector of its own?", lambda right: right.mean(1))
_spoil(
    "tokens-of-the-first-text",
    "tok_emb",
    "does each text have its own ids?",
    lambda ids, wte: wte[ids[:1]].expand(len(ids), -1, -1),
)
_spoil("tokens-flattened", "tok_emb", "where has the batch axis gone?", lambda right: right.flatten(0, 1), only=("embed_tokens",))
_spoil(
    "token-zero-is-padding",
    "tok_emb",
    "id 0 is a token as any other: what is in its row?",
    lambda right, ids: right.masked_fill((ids == 0).unsqueeze(-1), 0.0),
)
_spoil(
    "token-zero-gets-no-gradient",
    "tok_emb",
    "is one of the ids declared as padding, and is it a token that occurs?",
    lambda ids, wte: F.embedding(ids, wte, padding_idx=0),
)
_spoil(
    "tokens-gradient-divided-by-count",
    "tok_emb",
    "a token that occurs twice: how many gradients does its row receive?",
    lambda ids, wte: F.embedding(ids, wte, scale_grad_by_freq=True),
)
_spoil("token-table-cut-off", "tok_emb", "does wte get a gradient through your lookup?", lambda right: right.detach())

_spoil("tokens-normalised", "tok_emb", "is there a norm in the formula?", lambda right: F.layer_norm(right, right.shape[-1:]))
_spoil("tokens-width-first", "tok_emb", "which axis comes last?", lambda right: right.movedim(-1, 0))
_spoil("tokens-multiplied-by-width", "tok_emb", "are the rows scaled in GPT-2?", lambda right: right * right.shape[-1])
_spoil(
    "tokens-shifted-by-offset",
    "tok_emb",
    "the offset counts positions: what has it to do with the ids?",
    lambda ids, wte, offset: wte[ids + offset],
    only=("embed",),
)

# The rows of the positions. `_checked` refuses as the right function does; what is asked for beyond the table is clamped.


def _checked(n_positions, wpe, offset):
    if offset + n_positions > len(wpe):
        raise ValueError(f"{offset} + {n_positions} > {len(wpe)}")


def _position_fault(id, text, rows, only=()):
    """A fault of the rows that are taken; what is refused stays refused."""

    @case.fault(id, at="pos_emb", text=text, only=only)
    def _(n_positions, wpe, offset):
        _checked(n_positions, wpe, offset)
        return rows(n_positions, wpe, offset)


for _start in (1, 2):
    _position_fault(
        f"positions-start-at-{_start}",
        "which row belongs to the first token of a fresh text, and does a text of exactly n_ctx tokens still fit?",
        lambda n_positions, wpe, offset, start=_start: wpe[offset + start : offset + start + n_positions],
    )
    _position_fault(
        f"positions-indexed-from-{_start}",
        "which row belongs to the first token of a fresh text, and does a text of exactly n_ctx tokens still fit?",
        lambda n_positions, wpe, offset, start=_start: wpe[torch.arange(offset + start, offset + start + n_positions)],
    )
_position_fault(
    "positions-ignore-offset",
    "a new token arrives, five are behind it: is its position 0?",
    lambda n_positions, wpe, offset: wpe[:n_positions],
)
_position_fault(
    "positions-one-too-early",
    "five tokens are behind the new one: which position is the first free one?",
    lambda n_positions, wpe, offset: wpe[torch.arange(n_positions) + max(offset - 1, 0)],
)
_position_fault(
    "positions-end-not-moved",
    "the first row moves with the offset: does the last one?",
    lambda n_positions, wpe, offset: wpe[offset:n_positions],
)
_position_fault(
    "positions-offset-taken-twice",
    "how many times is the offset added?",
    lambda n_positions, wpe, offset: wpe[2 * offset : 2 * offset + n_positions],
)
_position_fault(
    "positions-one-too-many",
    "t = 0 .. n_positions - 1: how many rows is that?",
    lambda n_positions, wpe, offset: wpe[offset : offset + n_positions + 1],
)
_position_fault(
    "positions-one-too-few",
    "t = 0 .. n_positions - 1: how many rows is that?",
    lambda n_positions, wpe, offset: wpe[offset : offset + n_positions - 1],
)
_position_fault(
    "positions-whole-table",
    "your text has five tokens, and the table more rows: which of them do you take?",
    lambda n_positions, wpe, offset: wpe,
)
_position_fault(
    "positions-to-the-end-of-the-table",
    "from the row offset on: up to which row?",
    lambda n_positions, wpe, offset: wpe[offset:],
)
_position_fault(
    "positions-last-rows",
    "which rows are taken: the first free ones, or the last of the table?",
    lambda n_positions, wpe, offset: wpe[-n_positions:],
)
_position_fault(
    "positions-arguments-swapped",
    "which of the two numbers counts the rows, and which one says where they start?",
    lambda n_positions, wpe, offset: wpe[n_positions : n_positions + offset],
)
_position_fault(
    "positions-all-alike",
    "do two positions of one text have the same row?",
    lambda n_positions, wpe, offset: wpe[offset : offset + 1].expand(n_positions, -1),
)
_position_fault(
    "positions-offset-row-alone",
    "do two positions of one text have the same row?",
    lambda n_positions, wpe, offset: wpe[offset],
    ("embed_positions",),
)
_position_fault(
    "positions-reversed",
    "the first token is the oldest: which row is its own?",
    lambda n_positions, wpe, offset: wpe[offset : offset + n_positions].flip(0),
)
_position_fault(
    "positions-count-down-from-offset",
    "do the positions grow from left to right?",
    lambda n_positions, wpe, offset: wpe[(offset - torch.arange(n_positions)).abs()],
)
_spoil("positions-with-batch-axis", "pos_emb", "how many axes has pos_emb?", lambda right: right[None], only=("embed_positions",))
_spoil("positions-transposed", "pos_emb", "which axis of pos_emb counts the positions?", lambda right: right.mT)
_spoil("positions-scaled", "pos_emb", "are the rows of wpe scaled in GPT-2?", lambda right: right * right.shape[-1] ** 0.5)
_spoil("position-table-cut-off", "pos_emb", "does wpe get a gradient through your rows?", lambda right: right.detach())


@case.fault(
    "table-end-unchecked",
    at="pos_emb",
    text="positions past the end of the table: do you refuse them, or does something come back, fewer rows perhaps?",
)
def _(n_positions, wpe, offset):
    return wpe[offset : offset + n_positions]


@case.fault(
    "table-end-left-to-others",
    at="pos_emb",
    text="an index past the end raises what it likes, and on a GPU where it likes: who checks before?",
)
def _(n_positions, wpe, offset):
    return wpe[torch.arange(offset, offset + n_positions)]


@case.fault(
    "table-end-made-up",
    at="pos_emb",
    text="positions past the end of the table: do you refuse them, or lend them rows of others?",
    only=("embed",),
)
def _(n_positions, wpe, offset):
    return wpe[torch.arange(offset, offset + n_positions).clamp(max=len(wpe) - 1)]


@case.fault("table-end-without-offset", at="pos_emb", text="which number must fit into the table: n_positions alone?")
def _(n_positions, wpe, offset):
    _checked(n_positions, wpe, 0)
    return wpe[offset : offset + n_positions]


@case.fault("table-end-offset-alone", at="pos_emb", text="which number must fit into the table: the offset alone?")
def _(n_positions, wpe, offset):
    _checked(1, wpe, offset)
    return wpe[offset : offset + n_positions]


@case.fault("table-end-one-too-far", at="pos_emb", text="a table of n_ctx rows: which is the number of the last one?")
def _(n_positions, wpe, offset):
    _checked(n_positions - 1, wpe, offset)
    return wpe[offset : offset + n_positions]


@case.fault("table-end-one-too-near", at="pos_emb", text="does a text of exactly n_ctx tokens still fit?")
def _(n_positions, wpe, offset):
    if offset + n_positions >= len(wpe):
        raise ValueError(ANY)
    return wpe[offset : offset + n_positions]


@case.fault("table-end-from-the-wrong-axis", at="pos_emb", text="which axis of wpe counts the positions?")
def _(n_positions, wpe, offset):
    if offset + n_positions > wpe.shape[1]:
        raise ValueError(ANY)
    return wpe[offset : offset + n_positions]


@case.fault("positions-offset-defaults-to-one", at="pos_emb", text="how many positions are behind a fresh text?")
def _(n_positions, wpe, offset):
    if (offset or 1) + n_positions > len(wpe):
        raise ValueError(ANY)
    return _rows(wpe, offset or 1, n_positions)


# The sum of the two.


@case.fault(
    "positions-counted-over-the-batch", at="n_positions", tensor="pos_emb", text="which axis of ids counts the positions?"
)
def _(ids):
    return ids.shape[0]


@case.fault(
    "positions-indexed-by-token",
    at="pos_emb",
    text="the positions have nothing to do with the ids: with what do you index wpe?",
    only=("embed",),
)
def _(ids, wpe, offset):
    _checked(ids.shape[-1], wpe, offset)
    return wpe[ids]


@case.fault(
    "positions-along-the-batch",
    at="pos_emb",
    text="do two positions of one text get different rows, or two texts of the batch?",
    only=("embed",),
)
def _(ids, wpe, offset):
    _checked(ids.shape[-1], wpe, offset)
    return wpe[(offset + torch.arange(len(ids))) % len(wpe)][:, None]


_spoil(
    "positions-dropped",
    "resid_pre",
    "the same token at two positions: are its two vectors equal?",
    lambda tok_emb, pos_emb: tok_emb,
)
_spoil(
    "tokens-dropped",
    "resid_pre",
    "two tokens at one position: are their two vectors equal?",
    lambda tok_emb, pos_emb: pos_emb.expand_as(tok_emb),
)
_spoil("positions-alone", "resid_pre", "two tokens at one position: are their two vectors equal?", lambda pos_emb: pos_emb)
_spoil(
    "positions-concatenated",
    "resid_pre",
    "how wide is the result: C, or twice that?",
    lambda tok_emb, pos_emb: torch.cat([tok_emb, pos_emb.expand_as(tok_emb)], dim=-1),
)
_spoil(
    "positions-multiplied", "resid_pre", "are what and where added, or multiplied?", lambda tok_emb, pos_emb: tok_emb * pos_emb
)
_spoil("positions-subtracted", "resid_pre", "which sign has the position?", lambda tok_emb, pos_emb: tok_emb - pos_emb)
_spoil("positions-averaged", "resid_pre", "is the result a sum, or a mean?", lambda right: right / 2)
_spoil("positions-added-twice", "resid_pre", "how many times is the position added?", lambda right, pos_emb: right + pos_emb)
_spoil(
    "sum-scaled-by-root-of-width",
    "resid_pre",
    "does the formula in the stub scale what it adds?",
    lambda right: right * right.shape[-1] ** 0.5,
)
_spoil(
    "sum-normalised", "resid_pre", "is there a norm before the first block?", lambda right: F.layer_norm(right, right.shape[-1:])
)

_spoil(
    "positions-averaged-over-the-text",
    "resid_pre",
    "do two positions of one text have the same row?",
    lambda tok_emb, pos_emb: tok_emb + pos_emb.mean(0),
)

# ---------------------------------------------------------------- unembed


@case.step
def logits(x, wte):
    return F.linear(x, wte)


def unembed_inputs(draw: Draw):
    yield sample("a vocabulary of nine", x=draw.normal(2, 5, 6), wte=draw.normal(9, 6))
    yield sample("one position", x=draw.normal(3, 1, 4), wte=draw.normal(7, 4))
    yield sample("as many tokens as channels", x=draw.normal(2, 3, 5), wte=draw.normal(5, 5))
    yield sample("longer rows", x=3 * draw.normal(2, 4, 3), wte=2 * draw.normal(8, 3))


case.exercise(
    "unembed(x, wte)",
    returns="logits",
    inputs=unembed_inputs,
    points=1,
    lesson="The way back: `unembed`",
    hints=(
        "Each token gets one number: how well does the state fit the token's own row?",
        "A dot product of x with every row of wte: which of the two axes of wte is summed over?",
        "logits[b,t,v] = sum_c x[b,t,c] wte[v,c]",
    ),
    reference=lambda x, wte: torch.einsum("btc,vc->btv", x, wte),
    golden=lambda real: {"x": real["ln_f"], "wte": real["wte.weight"][:500]},
)


_spoil("table-not-transposed", "logits", "wte is (V,C): which of the two axes is summed over?", lambda x, wte: x @ wte)
_spoil(
    "table-reshaped-for-transposed",
    "logits",
    "does a reshape to (C,V) put the rows where a transpose puts them?",
    lambda x, wte: x @ wte.reshape(wte.shape[1], wte.shape[0]),
)
_spoil(
    "logits-divided-by-root-of-width",
    "logits",
    "other models divide tied logits by sqrt(C): does this one? would the loss change?",
    lambda right, x: right / x.shape[-1] ** 0.5,
)
_spoil(
    "logits-multiplied-by-root-of-width",
    "logits",
    "is there a scale in the formula?",
    lambda right, x: right * x.shape[-1] ** 0.5,
)
_spoil("logits-divided-by-width", "logits", "is a dot product a sum, or a mean?", lambda right, x: right / x.shape[-1])
_spoil("logits-through-softmax", "logits", "are logits asked for, or probabilities?", lambda right: F.softmax(right, dim=-1))
_spoil(
    "logits-through-log-softmax",
    "logits",
    "are logits asked for, or log-probabilities?",
    lambda right: F.log_softmax(right, dim=-1),
)
_spoil(
    "logits-by-cosine",
    "logits",
    "does the length of a row count in a dot product?",
    lambda x, wte: F.normalize(x, dim=-1) @ F.normalize(wte, dim=-1).mT,
)
_spoil(
    "logits-from-rows-of-length-one", "logits", "does the length of a row count?", lambda x, wte: x @ F.normalize(wte, dim=-1).mT
)
_spoil("logits-by-distance", "logits", "is a dot product a distance?", lambda x, wte: -torch.cdist(x, wte.expand(len(x), -1, -1)))
_spoil("logits-of-the-last-position", "logits", "which positions get scores: the last, or all?", lambda right: right[:, -1])
_spoil("logits-of-the-last-position-kept", "logits", "which positions get scores: the last, or all?", lambda right: right[:, -1:])
_spoil("logits-negated", "logits", "does a better fit give a larger score?", lambda right: -right)
_spoil("logits-vocabulary-before-positions", "logits", "which axis comes last?", lambda right: right.mT)
_spoil("logits-are-the-winners", "logits", "are scores asked for, or the token that wins?", lambda right: right.argmax(-1))
_spoil("logits-after-a-norm", "logits", "is there a norm in the formula?", lambda x, wte: F.layer_norm(x, x.shape[-1:]) @ wte.mT)
_spoil(
    "head-cut-off",
    "logits",
    "the table is used twice, and its gradient is a sum of two: does this use send one?",
    lambda x, wte: x @ wte.detach().mT,
)
_spoil("state-cut-off", "logits", "does the gradient reach the state?", lambda x, wte: x.detach() @ wte.mT)

_spoil(
    "logits-from-state-of-length-one",
    "logits",
    "does the length of the state count?",
    lambda x, wte: F.normalize(x, dim=-1) @ wte.mT,
)
_spoil("logits-centred", "logits", "does the formula subtract a mean?", lambda right: right - right.mean(-1, keepdim=True))
_spoil("logits-of-the-average-position", "logits", "does each position get scores of its own?", lambda right: right.mean(1))

# ---------------------------------------------------------------- sinusoidal_positions


@case.step
def _positions(n_ctx):
    return torch.arange(n_ctx).double()


@case.step
def _exponents(d_model):
    """The exponents of the sines and of the cosines: the same."""
    _even(d_model)
    return _both(2 * _pairs(d_model) / d_model)


def _even(d_model):
    if d_model % 2:
        raise ValueError(f"d_model {d_model}")


def _pairs(d_model):
    return torch.arange((d_model + 1) // 2).double()


def _both(exponents):
    return exponents, exponents


@case.step
def _base():
    return 10000.0


@case.step
def _angles(_positions, _exponents, _base):
    return tuple(_positions[:, None] / _base**exponents for exponents in _exponents)


@case.step
def _curves(_angles):
    return _angles[0].sin(), _angles[1].cos()


@case.step
def waves(_curves, d_model):
    return torch.stack(_curves, dim=-1).flatten(1)[:, :d_model].float()


def wave_inputs(draw: Draw):
    for n_ctx, d_model in ((7, 8), (5, 2), (16, 6), (6, 6), (1, 4), (3, 12), (20, 4)):
        yield sample(f"n_ctx = {n_ctx}, d_model = {d_model}", n_ctx=n_ctx, d_model=d_model)
    yield refusal("d_model = 5", ValueError, n_ctx=4, d_model=5)
    yield refusal("d_model = 1", ValueError, n_ctx=3, d_model=1)


case.exercise(
    "sinusoidal_positions(n_ctx, d_model)",
    returns="waves",
    inputs=wave_inputs,
    points=3,
    lesson="A table nobody trained: `sinusoidal_positions`",
    hints=(
        "Channels 2i and 2i + 1 are one pair: which angle do they share at position p?",
        "Make the angles (n_ctx, d_model/2), take sines and cosines, and let them alternate along the last axis.",
        "out[p, 2i] = sin(p / 10000^(2i / d_model));  out[p, 2i + 1] = cos of the same angle",
    ),
    reference=lambda n_ctx, d_model: torch.tensor(
        [[(math.cos if c % 2 else math.sin)(p / 10000 ** ((c - c % 2) / d_model)) for c in range(d_model)] for p in range(n_ctx)]
    ),
)


def _wave_fault(id, at, text, function):
    _spoil(id, at, text, function, "waves")


def _exponent_fault(id, text, exponents):
    """A fault of the exponents, from d_model; an odd width stays refused."""

    @case.fault(id, at="_exponents", tensor="waves", text=text)
    def _(d_model):
        _even(d_model)
        found = exponents(d_model)
        return found if isinstance(found, tuple) else _both(found)


_exponent_fault(
    "waves-exponent-doubled",
    "does i count channels or pairs: is the factor 2 of the exponent already in your loop variable?",
    lambda d: 4 * _pairs(d) / d,
)
_exponent_fault(
    "waves-exponent-halved", "10000^(2i / d_model): where is the 2, and how many zeros has the base?", lambda d: _pairs(d) / d
)
_exponent_fault(
    "waves-exponent-of-each-channel",
    "a sine and its cosine are one pair: do they share their angle?",
    lambda d: (2 * _pairs(d) / d, (2 * _pairs(d) + 1) / d),
)
_exponent_fault(
    "waves-doubled-exponent-of-each-channel",
    "does i count channels or pairs, and do a sine and its cosine share their angle?",
    lambda d: (4 * _pairs(d) / d, (4 * _pairs(d) + 2) / d),
)
_exponent_fault("waves-pairs-counted-from-one", "which pair is the first: i = 0 or i = 1?", lambda d: 2 * (_pairs(d) + 1) / d)
DIVISOR = "is the exponent divided by d_model, or by something smaller? what does your formula do for d_model = 2?"
_exponent_fault("waves-width-less-two", DIVISOR, lambda d: _pairs(d) / (d // 2 - 1))
_exponent_fault(
    "waves-width-less-two-guarded",
    "is the exponent divided by d_model, or by something smaller? and which pair turns 10,000 times more slowly than the first?",
    lambda d: _pairs(d) / max(d // 2 - 1, 1),
)
_exponent_fault("waves-width-less-one", DIVISOR, lambda d: 2 * _pairs(d) / (d - 1))


def _dividing_by_zero(id, message):
    @case.fault(id, at="_exponents", tensor="waves", text=DIVISOR)
    def _(d_model):
        _even(d_model)
        if d_model == 2:
            raise ZeroDivisionError(message)
        return _both(_pairs(d_model) / (d_model // 2 - 1))


_dividing_by_zero("waves-width-less-two-in-python", "division by zero")
_dividing_by_zero("waves-width-less-two-in-floats", "float division by zero")
_exponent_fault("waves-slowest-first", "which pair turns fastest: the first or the last?", lambda d: 2 * _pairs(d).flip(0) / d)
_exponent_fault("waves-all-alike", "do all pairs turn at the same speed?", lambda d: 0 * _pairs(d))
_exponent_fault("waves-faster-and-faster", "do later pairs turn faster, or more slowly?", lambda d: -2 * _pairs(d) / d)
_wave_fault(
    "waves-odd-width-accepted",
    "_exponents",
    "d_model = 5: which sine is left without its cosine?",
    lambda d_model: _both(2 * _pairs(d_model) / d_model),
)


@case.fault(
    "waves-even-width-refused", at="_exponents", tensor="waves", text="which widths cannot be served: the odd or the even ones?"
)
def _(d_model):
    if d_model % 2 == 0:
        raise ValueError(ANY)
    return _both(2 * _pairs(d_model) / d_model)


def _wrong_base(base):
    _wave_fault(f"waves-base-{base}", "_base", "base 10,000: how many zeros did you type?", lambda: float(base))


for _number in (10, 1000, 100000, 1000000):
    _wrong_base(_number)
_wave_fault(
    "waves-base-from-decimal-logarithm",
    "_base",
    "e^(-x log b) is b^(-x) for one logarithm only: which one?",
    lambda: math.exp(math.log10(10000.0)),
)
_wave_fault(
    "waves-base-without-logarithm",
    "_angles",
    "e^(-x b) or b^(-x)?",
    lambda _positions, _exponents: tuple(_positions[:, None] * (-10000.0 * exponents).exp() for exponents in _exponents),
)
_wave_fault(
    "waves-positions-from-one",
    "_positions",
    "which position is the first: 0 or 1?",
    lambda n_ctx: torch.arange(1, n_ctx + 1).double(),
)
_wave_fault(
    "waves-positions-reversed", "_positions", "which row is position 0: the first or the last?", lambda right: right.flip(0)
)
_wave_fault(
    "waves-positions-as-shares",
    "_positions",
    "is a position a whole number, or a share of n_ctx?",
    lambda right, n_ctx: right / n_ctx,
)
_wave_fault(
    "waves-without-position", "_positions", "where does the position enter your angle?", lambda right: torch.ones_like(right)
)
_wave_fault("waves-in-degrees", "_angles", "are your angles radians?", lambda right: tuple(angle.deg2rad() for angle in right))
_wave_fault(
    "waves-full-turns",
    "_angles",
    "one radian a position for i = 0: where does your 2 pi come from?",
    lambda right: tuple(2 * math.pi * angle for angle in right),
)
_wave_fault(
    "waves-cosine-first", "_curves", "row 0: which channel begins with 0?", lambda _angles: (_angles[0].cos(), _angles[1].sin())
)
_wave_fault("waves-sines-only", "_curves", "which channels hold cosines?", lambda _angles: (_angles[0].sin(), _angles[1].sin()))
_wave_fault("waves-cosines-only", "_curves", "which channels hold sines?", lambda _angles: (_angles[0].cos(), _angles[1].cos()))
_wave_fault(
    "waves-sign-of-cosine",
    "_curves",
    "row 0 must be 0, 1, 0, 1: what is yours?",
    lambda _angles: (_angles[0].sin(), -_angles[1].cos()),
)
_wave_fault(
    "waves-sign-of-sine",
    "_curves",
    "which sign has the sine of a small angle?",
    lambda _angles: (-_angles[0].sin(), _angles[1].cos()),
)
_wave_fault(
    "waves-sines-then-cosines",
    "waves",
    "which channel stands next to a sine: its cosine, or the next sine?",
    lambda _curves: torch.cat(_curves, dim=1).float(),
)
_wave_fault(
    "waves-cosines-then-sines",
    "waves",
    "which channel stands next to a sine, and which comes first?",
    lambda _curves: torch.cat(_curves[::-1], dim=1).float(),
)
_wave_fault("waves-transposed", "waves", "which axis counts the positions?", lambda right: right.T)
_wave_fault("waves-with-batch-axis", "waves", "how many axes has the table?", lambda right: right[None])

# ---------------------------------------------------------------- cosine_similarity


@case.step
def similarity(a, b):
    return (_unit(a) * _unit(b)).sum(-1)


def _unit(x):
    length = _length(x)
    return x / torch.where(length > 0, length, 1)


def _length(x):
    return torch.linalg.vector_norm(x, dim=-1, keepdim=True)


@case.step
def gradient_is_finite(similarity):
    return bool(torch.isfinite(similarity).all())


def cosine_inputs(draw: Draw):
    yield sample("five pairs of vectors", a=draw.normal(5, 6), b=2 * draw.normal(5, 6))
    yield sample("a vector and a table of seven rows", a=draw.normal(4), b=draw.normal(7, 4))
    yield sample("a table and a vector", a=3 * draw.normal(6, 5), b=draw.normal(5))
    yield sample("two vectors", a=draw.normal(3), b=draw.normal(3))
    yield sample("every row of one table with every row of another", a=draw.normal(4, 1, 5), b=draw.normal(3, 5) / 2)
    yield sample("texts of vectors", a=draw.normal(2, 4, 3), b=draw.normal(2, 4, 3))
    yield sample("a square", a=draw.normal(4, 4), b=draw.normal(4, 4))
    lengths = torch.tensor([[1.0], [30.0], [0.2], [1.0]], device=draw.device)
    yield sample("long and short vectors", a=draw.normal(4, 6) * lengths, b=draw.normal(4, 6) * lengths.flip(0))
    zeros = torch.tensor([[1.0], [0.0], [1.0], [1.0], [0.0]], device=draw.device)
    a, b = draw.normal(5, 4) * zeros, draw.normal(5, 4) * zeros.roll(2, 0)
    yield sample("zero vectors on either side", gradient=False, a=a, b=b)
    yield sample("a zero vector on both sides", gradient=False, a=draw.normal(3, 4) * zeros[:3], b=draw.normal(3, 4) * zeros[:3])


case.exercise(
    "cosine_similarity(a, b)",
    returns=("similarity", "gradient_is_finite"),
    inputs=cosine_inputs,
    points=1,
    lesson="Which way, not how far: `cosine_similarity`",
    hints=(
        "A dot product also rewards a long vector. What takes the two lengths out of it?",
        "Bring each vector to length 1 first. By which number can a zero vector be divided, so that no 0/0 arises?",
        "out[...] = sum_c a[...,c] b[...,c] / (|a[...]| |b[...]|), |a| = sqrt(sum_c a[c]^2)",
    ),
    reference=lambda a, b: (F.cosine_similarity(*torch.broadcast_tensors(a, b), dim=-1, eps=1e-12), True),
    probe="cosine_similarity",
)


def _cosine_fault(id, text, function):
    _spoil(id, "similarity", text, function)


_cosine_fault("cosine-without-lengths", "does your answer change when a vector gets longer?", lambda a, b: (a * b).sum(-1))
_cosine_fault("cosine-without-length-of-a", "does your answer change when a gets longer?", lambda a, b: (a * _unit(b)).sum(-1))
_cosine_fault("cosine-without-length-of-b", "does your answer change when b gets longer?", lambda a, b: (_unit(a) * b).sum(-1))
_cosine_fault(
    "cosine-lengths-squared",
    "is |a| the sum of squares, or its root?",
    lambda right, a, b: right / torch.where(_lengths(a, b) > 0, _lengths(a, b), 1),
)
_cosine_fault(
    "cosine-square-root-of-lengths",
    "how many roots are taken?",
    lambda right, a, b: right * _lengths(a, b).sqrt(),
)


def _lengths(a, b):
    return (_length(a) * _length(b))[..., 0]


_cosine_fault(
    "cosine-by-sum-of-lengths",
    "are the two lengths multiplied, or added?",
    lambda a, b: (a * b).sum(-1) / (_length(a) + _length(b))[..., 0].clamp(min=1e-30),
)
_cosine_fault(
    "cosine-length-by-absolute-values",
    "is |a| a root of squares, or a sum of absolute values?",
    lambda a, b: (F.normalize(a, p=1, dim=-1) * F.normalize(b, p=1, dim=-1)).sum(-1),
)
_cosine_fault(
    "cosine-length-by-largest-entry",
    "is |a| its largest entry?",
    lambda a, b: (F.normalize(a, p=math.inf, dim=-1) * F.normalize(b, p=math.inf, dim=-1)).sum(-1),
)
_cosine_fault(
    "cosine-length-of-the-whole-tensor",
    "has each vector its own length, or do they all share one?",
    lambda a, b: (a * b).sum(-1) / (torch.linalg.vector_norm(a) * torch.linalg.vector_norm(b)),
)
_cosine_fault("cosine-over-first-axis", "along which axis do the channels lie?", lambda a, b: F.cosine_similarity(a, b, dim=0))
_cosine_fault("cosine-over-axis-1", "along which axis do the channels lie?", lambda a, b: F.cosine_similarity(a, b))
_cosine_fault(
    "cosine-of-every-pair",
    "one number for each pair that broadcasting makes, or for every row with every row?",
    lambda a, b: _unit(a) @ _unit(b).permute(*reversed(range(b.dim()))),
)
_cosine_fault("cosine-over-everything", "one number for each pair, or one for all?", lambda right: (right / right.numel()).sum())
_cosine_fault("cosine-summed-over-everything", "one number for each pair, or one for all?", lambda right: right.sum())
_cosine_fault("cosine-axis-kept", "does the last axis stay?", lambda right: right.unsqueeze(-1))
_cosine_fault("cosine-not-summed", "what is done with the products of the channels?", lambda a, b: _unit(a) * _unit(b))
_cosine_fault("cosine-averaged", "is a dot product a sum, or a mean?", lambda right, a: right / a.shape[-1])
_cosine_fault("cosine-distance", "do two vectors of one direction give 1, or 0?", lambda right: 1 - right)
_cosine_fault("cosine-angle", "the angle, or its cosine?", lambda right: torch.acos(right.clamp(-1, 1)))
_cosine_fault("cosine-absolute", "do two opposite vectors give 1, or -1?", lambda right: right.abs())
_cosine_fault("cosine-squared", "is the result squared?", lambda right: right.square())
_cosine_fault("cosine-rescaled", "which values may a cosine have: 0 to 1, or -1 to 1?", lambda right: (1 + right) / 2)
_cosine_fault("cosine-negated", "do two vectors of one direction give 1, or -1?", lambda right: -right)
_cosine_fault(
    "cosine-of-centred-vectors",
    "does the formula subtract a mean?",
    lambda a, b: (_unit(a - a.mean(-1, keepdim=True)) * _unit(b - b.mean(-1, keepdim=True))).sum(-1),
)
_cosine_fault(
    "cosine-zero-vector-nan",
    "what is 0/0, and what must a zero vector give?",
    lambda a, b: (a * b).sum(-1) / (_length(a) * _length(b))[..., 0],
)
_cosine_fault(
    "cosine-zero-vector-one",
    "a zero vector has no direction: what is its similarity with anything?",
    lambda right, a, b: torch.where(_lengths(a, b) > 0, right, 1.0),
)
_cosine_fault(
    "cosine-zero-vector-minus-one",
    "a zero vector has no direction: what is its similarity with anything?",
    lambda right, a, b: torch.where(_lengths(a, b) > 0, right, -1.0),
)


@case.fault(
    "cosine-gradient-of-zero-vector",
    at="gradient_is_finite",
    text="the result is clean: is its gradient, where a vector is zero? which step gives NaN before you replace it?",
)
def _(right, a, b):
    return right and bool((_lengths(a, b) > 0).all())


# ---------------------------------------------------------------- nearest_tokens and analogy


@case.step
def vector(a, b, c, wte):
    return wte[b] - wte[a] + wte[c]


@case.step
def exclude(a, b, c):
    return (a, b, c)


@case.step
def _nearness(vector, wte):
    return similarity(vector, wte)


@case.step
def _ranked(_nearness):
    return _nearness.argsort(descending=True).tolist()


@case.step
def tokens(_ranked, exclude, k):
    return [token for token in _ranked if token not in set(exclude)][:k]


LENGTHS = (0.5, 2.5, 0.8, 3.0, 1.6, 0.6, 2.0, 1.2, 2.8, 0.9, 1.4)


def _around(draw, direction, count):
    """Rows whose cosines with a direction are well apart, from 0.95 to about -0.9; the nearest one is short."""
    cosines = torch.linspace(0.95, -0.9, count, device=draw.device)[:, None]
    towards = F.normalize(direction, dim=-1)
    across = draw.normal(count, len(direction))
    across = F.normalize(across - (across @ towards)[:, None] * towards, dim=-1)
    lengths = torch.tensor(LENGTHS[:count], device=draw.device)[:, None]
    return lengths * (cosines * towards + (1 - cosines.square()).sqrt() * across)


def _shuffled(draw, rows):
    order = list(range(len(rows)))
    draw.random.shuffle(order)
    return rows[order], [order.index(row) for row in range(len(rows))]


def _sample(label, **inputs):
    return sample(label, gradient=False, **inputs)


def nearest_inputs(draw: Draw):
    def table(count, width):
        direction = 1.5 * draw.normal(width)
        rows, place = _shuffled(draw, _around(draw, direction, count))
        return {"vector": direction, "wte": rows}, place

    inputs, place = table(9, 6)
    yield _sample("the best three of nine", **inputs, k=3)
    yield _sample("the best one", **inputs, k=1)
    yield _sample("the best one left out", **inputs, k=3, exclude=[place[0]])
    yield _sample("all nine", **inputs, k=9)
    inputs, place = table(10, 5)
    yield _sample("the first, third and fourth left out, as a tuple", **inputs, k=2, exclude=(place[2], place[0], place[3]))
    yield _sample("all that are left, some of them with negative cosines", **inputs, k=9, exclude=[place[1]])
    yield _sample("a set, none of it among the best", **inputs, k=2, exclude={place[8], place[9]})
    inputs, place = table(8, 4)
    inputs["wte"][place[7]] = 0.0
    yield _sample("a row of zeros in the table", **inputs, k=6)
    inputs, place = table(7, 7)
    yield _sample("as many tokens as channels", **inputs, k=4, exclude=[place[1]])


def _decoys(draw):
    """A table with a row in the direction of every wrong target; the right answer is short, and its cosine 0.99."""
    directions = torch.linalg.qr(draw.normal(8, 8)).Q
    a, b, c = 3.0 * directions[0], 0.5 * directions[1], directions[2]
    target = b - a + c
    answer = 0.5 * (0.99 * F.normalize(target, dim=-1) + (1 - 0.99**2) ** 0.5 * directions[3])
    unit_step = F.normalize(b - a, dim=-1)
    wrong = (a - b + c, b - c + a, b - a - c, b - a, 2 * c, a + b + c, b + c, b / 0.5 - a / 3 + c, unit_step + c)
    rows, place = _shuffled(draw, torch.stack([a, b, c, answer, *(2 * row for row in wrong)]))
    return {"a": place[0], "b": place[1], "c": place[2], "wte": rows}


def _analogy(draw, V, C, near=None):
    """A table in which the answers are well apart; `near` says which of the three inputs lies nearest to the target."""
    a, b, c = 1.8 * draw.normal(C), 0.8 * draw.normal(C), 1.2 * draw.normal(C)
    if near == "c":
        b = a + 0.1 * F.normalize(b, dim=-1)
    if near == "b":
        c = a + 0.1 * F.normalize(c, dim=-1)
    if near == "a":
        a = (b + c) / 2 + 0.05 * F.normalize(a, dim=-1)
    rows, place = _shuffled(draw, torch.cat([torch.stack([a, b, c]), _around(draw, b - a + c, V - 3)]))
    return {"a": place[0], "b": place[1], "c": place[2], "wte": rows}


def analogy_inputs(draw: Draw):
    yield _sample("one answer", **_analogy(draw, 9, 6))
    yield _sample("one answer, shorter than the other rows", **_decoys(draw))
    yield _sample("the best three", **_analogy(draw, 10, 5), k=3)
    yield _sample("all that are left of another table", **_analogy(draw, 12, 7), k=9)
    yield _sample("c lies nearest to the target", **_analogy(draw, 9, 6, near="c"), k=2)
    yield _sample("b lies nearest to the target", **_analogy(draw, 10, 6, near="b"), k=2)
    yield _sample("a lies nearest to the target", **_analogy(draw, 11, 6, near="a"), k=2)
    yield _sample("as many tokens as channels", **_analogy(draw, 8, 8), k=5)


def _nearest_reference(vector, wte, k, exclude=()):
    unit = F.normalize(wte, dim=-1) @ F.normalize(vector, dim=-1)
    kept = [token for token in range(len(wte)) if token not in exclude]
    return [kept[place] for place in unit[kept].topk(k).indices.tolist()]


case.exercise(
    "nearest_tokens(vector, wte, k, exclude=())",
    returns="tokens",
    inputs=nearest_inputs,
    points=2,
    lesson="Neighbours: `nearest_tokens`",
    hints=(
        "Near means a large cosine. With how many rows do you compare the vector?",
        "Rank all tokens, best first, strike out the excluded ones, and only then take k.",
        "the k ids v not in exclude with the largest cosine of vector and wte[v,:], best first, as a list of int",
    ),
    reference=_nearest_reference,
    golden=lambda real: {"vector": real["wte.weight"][40] + real["wte.weight"][300], "wte": real["wte.weight"][:500], "k": 5},
)
case.exercise(
    "analogy(a, b, c, wte, k=1)",
    returns="tokens",
    inputs=analogy_inputs,
    points=2,
    lesson="A step that carries over: `analogy`",
    hints=(
        "Which step leads from a to b, and from where do you take it?",
        "The target is a vector: its neighbours are the answers, except the three words of the question.",
        "target = wte[b] - wte[a] + wte[c];  the k nearest tokens to it, a, b and c left out",
    ),
    reference=lambda a, b, c, wte, k=1: _nearest_reference(wte[c] + (wte[b] - wte[a]), wte, k, {a, b, c}),
)


def _nearness_fault(id, text, function):
    _spoil(id, "_nearness", text, function, "tokens")


_nearness_fault(
    "nearest-by-dot-product", "do you rank by dot product or by cosine: does a long row win?", lambda vector, wte: wte @ vector
)
_nearness_fault(
    "nearest-by-distance",
    "near means a large cosine: does your ranking change when a row gets longer?",
    lambda vector, wte: -(wte - vector).norm(dim=-1),
)
_nearness_fault("nearest-by-absolute-cosine", "is the opposite direction near?", lambda right: right.abs())
_nearness_fault(
    "nearest-by-squared-lengths",
    "is |a| the sum of squares, or its root?",
    lambda vector, wte: wte @ vector / wte.square().sum(-1),
)


@case.fault(
    "nearest-zero-row-nan",
    at="_nearness",
    tensor="tokens",
    text="a row of zeros: what is 0/0, and where does a sort put NaN?",
    only=("nearest_tokens",),
)
def _(vector, wte):
    return wte @ vector / wte.norm(dim=-1)


_spoil("nearest-worst-first", "_ranked", "the largest cosines, or the smallest?", lambda right: right[::-1], "tokens")


@case.fault(
    "nearest-excluded-after-cut", at="tokens", text="you take the best k, then drop the excluded ones: how many are left?"
)
def _(_ranked, exclude, k):
    return [token for token in _ranked[:k] if token not in set(exclude)]


_spoil(
    "nearest-exclude-ignored",
    "tokens",
    "which ids must not be in the answer?",
    lambda _ranked, k: _ranked[:k],
    only=("nearest_tokens",),
)
_spoil(
    "nearest-best-skipped",
    "tokens",
    "is the nearest token always one to leave out?",
    lambda _ranked, exclude, k: [token for token in _ranked if token not in set(exclude)][1 : k + 1],
)
_spoil(
    "nearest-best-of-all-skipped",
    "tokens",
    "is the nearest token always one to leave out?",
    lambda _ranked, exclude, k: [token for token in _ranked[1:] if token not in set(exclude)][:k],
)
_spoil(
    "nearest-best-skipped-for-exclude",
    "tokens",
    "which ids are to be left out: those in exclude, or as many of the best?",
    lambda _ranked, exclude, k: _ranked[len(set(exclude)) : len(set(exclude)) + k],
)
_spoil(
    "nearest-k-too-many",
    "tokens",
    "how many ids are asked for?",
    lambda _ranked, exclude, k: [t for t in _ranked if t not in set(exclude)][: k + 1],
)
_spoil(
    "nearest-k-ignored",
    "tokens",
    "how many ids are asked for?",
    lambda _ranked, exclude: [t for t in _ranked if t not in set(exclude)],
)
_spoil("nearest-one-only", "tokens", "how many ids are asked for?", lambda right: right[:1])
_spoil("nearest-best-last", "tokens", "best first, or best last?", lambda right: right[::-1])
_spoil("nearest-sorted-by-id", "tokens", "best first: are your ids in the order of their cosines?", lambda right: sorted(right))
_spoil(
    "nearest-one-id-too-high", "tokens", "which id has the first row of the table?", lambda right: [token + 1 for token in right]
)
_spoil(
    "nearest-first-left-out-alone",
    "tokens",
    "how many ids does exclude hold?",
    lambda _ranked, exclude, k: [t for t in _ranked if t not in list(exclude)[:1]][:k],
    only=("nearest_tokens",),
)


@case.fault(
    "nearest-excluded-rank-as-zero",
    at="tokens",
    text="an excluded token whose cosine you set to 0: which tokens still stand behind it?",
    only=("nearest_tokens",),
)
def _(_nearness, exclude, k):
    nearness = _nearness.clone()
    nearness[list(exclude)] = 0.0
    return nearness.argsort(descending=True).tolist()[:k]


@case.fault(
    "nearest-ids-after-deletion",
    at="tokens",
    text="after the excluded rows are gone from the table, is row 5 still token 5?",
)
def _(_nearness, exclude, k):
    kept = [token for token in range(len(_nearness)) if token not in set(exclude)]
    return _nearness[kept].argsort(descending=True).tolist()[:k]


_spoil(
    "nearest-tensor-of-ids",
    "tokens",
    "a list of int is asked for: what does topk give, and what turns it into one?",
    lambda right, wte: torch.as_tensor(right, device=wte.device),
)
_spoil(
    "nearest-list-of-tensors",
    "tokens",
    "a list of int is asked for: what is each entry of your list?",
    lambda right, wte: [torch.as_tensor(token, device=wte.device) for token in right],
)


@case.fault("nearest-a-single-id", at="tokens", text="a list of ids, or one id?", only=("analogy",))
def _(right, k):
    return right[0] if k == 1 else right


def _target(id, text, function):
    _spoil(id, "vector", text, function, "tokens")


STEP = "which step leads from a to b, and from where do you take it?"
_target("analogy-step-backwards", STEP, lambda a, b, c, wte: wte[a] - wte[b] + wte[c])
_target("analogy-starts-at-b-from-c", STEP, lambda a, b, c, wte: wte[b] - wte[c] + wte[a])
_target("analogy-c-subtracted", STEP, lambda a, b, c, wte: wte[b] - wte[a] - wte[c])
_target("analogy-b-subtracted", STEP, lambda a, b, c, wte: wte[c] - wte[a] - wte[b])
_target("analogy-without-start", "from where do you take the step?", lambda a, b, wte: wte[b] - wte[a])
_target("analogy-without-step", "which step do you take from c?", lambda c, wte: wte[c])
_target("analogy-nothing-subtracted", STEP, lambda a, b, c, wte: wte[a] + wte[b] + wte[c])
_target("analogy-a-forgotten", STEP, lambda b, c, wte: wte[b] + wte[c])
_target(
    "analogy-on-rows-of-length-one",
    "are the rows taken as they are?",
    lambda a, b, c, wte: _unit(wte[b]) - _unit(wte[a]) + _unit(wte[c]),
)
_target(
    "analogy-on-a-step-of-length-one",
    "is the step taken as it is, or scaled?",
    lambda a, b, c, wte: _unit(wte[b] - wte[a]) + wte[c],
)
_target(
    "analogy-on-ids",
    "an id is a name, not a quantity: what do you add and subtract?",
    lambda a, b, c, wte: wte[(b - a + c) % len(wte)],
)

STRUCK = "which of the three words of the question are struck out?"
for _names, _kept in (
    ("c", lambda a, b, c: (c,)),
    ("b", lambda a, b, c: (b,)),
    ("a", lambda a, b, c: (a,)),
    ("a-and-b", lambda a, b, c: (a, b)),
    ("a-and-c", lambda a, b, c: (a, c)),
    ("b-and-c", lambda a, b, c: (b, c)),
    ("nothing", lambda a, b, c: ()),
):
    _spoil(
        f"analogy-strikes-out-{_names}-alone" if _names != "nothing" else "analogy-strikes-out-nothing",
        "exclude",
        STRUCK,
        _kept,
        "tokens",
    )
