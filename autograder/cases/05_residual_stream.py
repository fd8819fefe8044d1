"""The case of 05_residual_stream."""

import importlib
import itertools

import torch
import torch.nn.functional as F

from autograder.case import ANY, Case, Draw, refusal, sample

parts = importlib.import_module("autograder.probes.05_residual_stream")

BTC = "B T C"
case = Case(
    "05_residual_stream",
    axes={
        **dict.fromkeys(("summed", "ln_1", "attn_out", "resid_mid", "ln_2", "mlp_out", "resid_post", "steered"), BTC),
        "states": "L+1 B T C",
        "ln_f": "L+1 B T C",
        "logits": "L+1 B T V",
        "added": "L+1 B T",
    },
)

# ---------------------------------------------------------------- add_to_stream


@case.step
def _checked(resid, update):
    if resid.shape != update.shape:
        raise ValueError(f"{tuple(resid.shape)} and {tuple(update.shape)}")
    return resid, update


@case.step
def summed(_checked):
    return _checked[0] + _checked[1]


def add_inputs(draw: Draw):
    yield sample("two (2, 3, 4) tensors", resid=draw.normal(2, 3, 4), update=draw.normal(2, 3, 4))
    yield sample("two squares", resid=draw.normal(3, 3), update=draw.normal(3, 3))
    yield sample("two vectors", gradient=False, resid=draw.normal(5), update=2 * draw.normal(5))
    yield sample("an update of zeros", resid=draw.normal(2, 4, 3), update=torch.zeros_like(draw.normal(2, 4, 3)))
    for label, ours, theirs in (
        ("an update of shape (T,C)", (2, 3, 4), (3, 4)),
        ("an update of shape (C)", (2, 3, 4), (4,)),
        ("an update of shape (B,1,C)", (2, 3, 4), (2, 1, 4)),
        ("an update of shape (B,T,1)", (2, 3, 4), (2, 3, 1)),
        ("an update of shape (1,T,C)", (2, 3, 4), (1, 3, 4)),
        ("an update of shape (1,B,T,C)", (2, 3, 4), (1, 2, 3, 4)),
        ("an update with one position more", (2, 3, 4), (2, 4, 4)),
        ("an update with positions and channels exchanged", (2, 3, 4), (2, 4, 3)),
        ("a stream of shape (T,C)", (3, 4), (2, 3, 4)),
    ):
        yield refusal(label, ValueError, resid=draw.normal(*ours), update=draw.normal(*theirs))


case.exercise(
    "add_to_stream(resid, update)",
    returns="summed",
    inputs=add_inputs,
    points=1,
    lesson="`add_to_stream`",
    hints=(
        "A sum of two tensors: what does PyTorch do with an update that has lost an axis?",
        "Compare the two shapes first and raise a ValueError that names both; then make a new tensor, and leave resid as it is.",
        "out[b,t,c] = resid[b,t,c] + update[b,t,c]",
    ),
    reference=lambda resid, update: torch.stack([resid, update]).sum(0),
    golden=lambda real: {"resid": real["h.1.resid_pre"], "update": real["h.1.attn.attn_out"]},
)


def _check(name, text, agree, other=None):
    """A fault in the check of the shapes: `agree` says what it lets through."""

    @case.fault(f"add-{name}", at="_checked", tensor="summed", text=text)
    def _(resid, update):
        if not agree(resid, update):
            raise (other or ValueError)(ANY)
        return resid, update


_check("broadcasts", "an update that has lost an axis: is it added to every position without a word?", lambda r, u: True)
_check(
    "checks-count-only",
    "two shapes can hold as many numbers and be different: what do you compare?",
    lambda r, u: r.numel() == u.numel(),
)
_check("checks-number-of-axes", "the axes are as many: are they as long?", lambda r, u: r.dim() == u.dim())
_check("checks-last-axis", "which axes do you compare besides the last?", lambda r, u: r.shape[-1] == u.shape[-1])
_check("checks-first-axis", "which axes do you compare besides the first?", lambda r, u: r.shape[0] == u.shape[0])
_check("checks-all-but-last", "which axes do you compare: is the last one among them?", lambda r, u: r.shape[:-1] == u.shape[:-1])
_check("checks-all-but-first", "which axes do you compare: is the first one among them?", lambda r, u: r.shape[1:] == u.shape[1:])
_check("check-upside-down", "which shapes do you refuse: equal ones, or different ones?", lambda r, u: r.shape != u.shape)
_check("refuses-by-another-exception", "which exception is asked for?", lambda r, u: r.shape == u.shape, AssertionError)
_check("refuses-zeros", "may a layer write nothing?", lambda r, u: r.shape == u.shape and bool(u.any()))
_check(
    "checks-result-only",
    "an update that broadcasts to the stream's shape: does it have that shape?",
    lambda r, u: len(r.shape) >= len(u.shape) and all(b in (1, a) for a, b in zip(r.shape[::-1], u.shape[::-1], strict=False)),
)


def _sum(name, text, function):
    @case.fault(f"add-{name}", at="summed", text=text)
    def _(_checked):
        return function(*_checked)


_sum("multiplies", "should a layer that writes zeros change the stream? what does * do?", lambda r, u: r * u)
_sum("subtracts", "is the update added, or taken away?", lambda r, u: r - u)
_sum("subtracts-stream", "is the stream added, or taken away?", lambda r, u: u - r)
_sum("returns-update", "what becomes of the stream when a layer writes zeros?", lambda r, u: u)
_sum("returns-stream", "is the update in what you return?", lambda r, u: r)
_sum("doubles-update", "how many times is the update in your sum, and how many times the stream?", lambda r, u: u + u)
_sum("doubles-stream", "how many times is the stream in your sum, and how many times the update?", lambda r, u: r + r)
_sum("averages", "is the result a sum, or a mean?", lambda r, u: (r + u) / 2)
_sum("scales-by-root-two", "is the sum scaled?", lambda r, u: (r + u) / 2**0.5)
_sum("adds-twice", "how many times is the update added?", lambda r, u: r + 2 * u)
_sum("concatenates", "is the shape of your result that of the stream?", lambda r, u: torch.cat([r, u], dim=-1))
_sum("stacks", "is the shape of your result that of the stream?", lambda r, u: torch.stack([r, u]))
_sum("takes-the-larger", "is the result a sum, or the larger of two?", torch.maximum)
_sum("matrix-product", "is anything multiplied on the stream?", lambda r, u: r @ u)
_sum("keeps-the-first-position", "is the update added at every position?", lambda r, u: torch.cat([r[:1], (r + u)[1:]]))
_sum("returns-total", "is your result a tensor of the stream's shape, or one number?", lambda r, u: (r + u).sum())
_sum("normalises", "is anything normalised on the stream?", lambda r, u: F.layer_norm(r + u, r.shape[-1:]))


@case.fault("add-stream-without-gradient", at="summed", text="how does the gradient come back along the straight path?")
def _(_checked):
    return _checked[0].detach() + _checked[1]


@case.fault("add-update-without-gradient", at="summed", text="does the gradient reach the layer that wrote the update?")
def _(_checked):
    return _checked[0] + _checked[1].detach()


# ---------------------------------------------------------------- pre_norm_block


@case.step
def _parts(
    ln_1_w,
    ln_1_b,
    attn_w,
    attn_b,
    attn_proj_w,
    attn_proj_b,
    ln_2_w,
    ln_2_b,
    mlp_fc_w,
    mlp_fc_b,
    mlp_proj_w,
    mlp_proj_b,
    n_head,
):
    """The four callables: attn, mlp, ln_1, ln_2."""
    attn = parts.attention(attn_w, attn_b, attn_proj_w, attn_proj_b, n_head)
    mlp = parts.perceptron(mlp_fc_w, mlp_fc_b, mlp_proj_w, mlp_proj_b)
    return attn, mlp, parts.norm(ln_1_w, ln_1_b), parts.norm(ln_2_w, ln_2_b)


@case.step
def _style():
    """Where each of the two norms stands."""
    return "pre", "pre"


@case.step
def ln_1(resid, _parts, _style):
    return _parts[2](resid) if _style[0] == "pre" else resid


@case.step
def attn_out(ln_1, _parts, _style):
    return _parts[2](_parts[0](ln_1)) if _style[0] == "inside" else _parts[0](ln_1)


@case.step
def resid_mid(resid, attn_out, _parts, _style):
    total = resid + attn_out
    return _parts[2](total) if _style[0] == "post" else total


@case.step
def ln_2(resid_mid, _parts, _style):
    return _parts[3](resid_mid) if _style[1] == "pre" else resid_mid


@case.step
def mlp_out(ln_2, _parts, _style):
    return _parts[3](_parts[1](ln_2)) if _style[1] == "inside" else _parts[1](ln_2)


@case.step
def resid_post(resid_mid, mlp_out, _parts, _style):
    total = resid_mid + mlp_out
    return _parts[3](total) if _style[1] == "post" else total


def _block(draw: Draw, C: int, F: int, n_head: int, writes: float = 1.0):
    """Weights of a block whose norms have gains and biases of their own."""
    return {
        "ln_1_w": 1 + draw.normal(C, scale=0.5),
        "ln_1_b": draw.normal(C, scale=0.5),
        "attn_w": draw.normal(C, 3 * C, scale=C**-0.5),
        "attn_b": draw.normal(3 * C, scale=0.3),
        "attn_proj_w": writes * draw.normal(C, C, scale=C**-0.5),
        "attn_proj_b": writes * draw.normal(C, scale=0.5),
        "ln_2_w": 1 + draw.normal(C, scale=0.5),
        "ln_2_b": draw.normal(C, scale=0.5),
        "mlp_fc_w": draw.normal(C, F, scale=C**-0.5),
        "mlp_fc_b": draw.normal(F, scale=0.3),
        "mlp_proj_w": writes * draw.normal(F, C, scale=F**-0.5),
        "mlp_proj_b": writes * draw.normal(C, scale=0.5),
        "n_head": n_head,
    }


def block_inputs(draw: Draw):
    yield sample("a block of six channels", resid=draw.normal(2, 5, 6), **_block(draw, 6, 7, 3))
    yield sample("a block of eight channels", resid=draw.normal(3, 4, 8), **_block(draw, 8, 10, 2))
    yield sample("a stream a hundred times as long", gradient=False, resid=100 * draw.normal(2, 3, 6), **_block(draw, 6, 5, 1))
    yield sample("sublayers that write zeros", resid=draw.normal(2, 3, 4), **_block(draw, 4, 9, 2, writes=0.0))


def _reference_block(resid, ln_1_w, ln_1_b, attn_w, attn_b, attn_proj_w, attn_proj_b, ln_2_w, ln_2_b, *mlp_and_heads):
    mlp_fc_w, mlp_fc_b, mlp_proj_w, mlp_proj_b, n_head = mlp_and_heads
    C, T = resid.shape[-1], resid.shape[1]

    def bend(x):
        return F.gelu(x, approximate="tanh")

    layer = torch.nn.TransformerEncoderLayer(
        C, n_head, mlp_fc_w.shape[1], dropout=0.0, activation=bend, batch_first=True, norm_first=True, dtype=resid.dtype
    )
    named = {
        "norm1.weight": ln_1_w,
        "norm1.bias": ln_1_b,
        "self_attn.in_proj_weight": attn_w.mT,
        "self_attn.in_proj_bias": attn_b,
        "self_attn.out_proj.weight": attn_proj_w.mT,
        "self_attn.out_proj.bias": attn_proj_b,
        "norm2.weight": ln_2_w,
        "norm2.bias": ln_2_b,
        "linear1.weight": mlp_fc_w.mT,
        "linear1.bias": mlp_fc_b,
        "linear2.weight": mlp_proj_w.mT,
        "linear2.bias": mlp_proj_b,
    }
    later = torch.ones(T, T, dtype=torch.bool).triu(1)
    return torch.func.functional_call(layer, named, (resid,), {"src_mask": later})


def _golden_block(real):
    names = {
        "ln_1_w": "ln_1.weight",
        "ln_1_b": "ln_1.bias",
        "attn_w": "attn.c_attn.weight",
        "attn_b": "attn.c_attn.bias",
        "attn_proj_w": "attn.c_proj.weight",
        "attn_proj_b": "attn.c_proj.bias",
        "ln_2_w": "ln_2.weight",
        "ln_2_b": "ln_2.bias",
        "mlp_fc_w": "mlp.c_fc.weight",
        "mlp_fc_b": "mlp.c_fc.bias",
        "mlp_proj_w": "mlp.c_proj.weight",
        "mlp_proj_b": "mlp.c_proj.bias",
    }
    weights = {name: real[f"h.1.{released}"] for name, released in names.items()}
    return {"resid": real["h.1.resid_pre"], **weights, "n_head": real.config["n_head"]}


case.exercise(
    "pre_norm_block(resid, ln_1_w, ln_1_b, attn_w, attn_b, attn_proj_w, attn_proj_b, ln_2_w, ln_2_b, "
    "mlp_fc_w, mlp_fc_b, mlp_proj_w, mlp_proj_b, n_head)",
    contract="pre_norm_block(resid, attn, mlp, ln_1, ln_2)",
    returns="resid_post",
    inputs=block_inputs,
    points=5,
    lesson="`pre_norm_block`",
    hints=(
        "Draw the straight line of the stream. Which four things hang on branches beside it, and where does each branch join?",
        "The branch reads through its norm, the line does not; the MLP reads the line after attention has written to it.",
        "resid_mid = resid + attn(ln_1(resid));  resid_post = resid_mid + mlp(ln_2(resid_mid))",
    ),
    reference=_reference_block,
    golden=_golden_block,
    probe="pre_norm_block",
)


def _norms_stand(name, style, tensor, text):
    @case.fault(name, at="_style", tensor=tensor, text=text)
    def _():
        return style


_norms_stand("post-norm", ("post", "post"), "ln_1", "do your norms stand on the branches, or after the additions?")
_norms_stand("first-norm-after-addition", ("post", "pre"), "ln_1", "does ln_1 stand on the branch, or after the addition?")
_norms_stand("second-norm-after-addition", ("pre", "post"), "ln_2", "does ln_2 stand on the branch, or after the addition?")
_norms_stand(
    "norms-not-used", ("none", "none"), "ln_1", "is each of the four callables used? what do the norms do in your block?"
)
_norms_stand("first-norm-not-used", ("none", "pre"), "ln_1", "is each of the four callables used? what does attention read?")
_norms_stand("second-norm-not-used", ("pre", "none"), "ln_2", "is each of the four callables used? what does the MLP read?")
_norms_stand(
    "norms-behind-sublayers", ("inside", "inside"), "ln_1", "what is normalised: what a sublayer reads, or what it writes?"
)
_norms_stand(
    "first-norm-behind-attention", ("inside", "pre"), "ln_1", "what does ln_1 normalise: what attention reads, or what it writes?"
)
_norms_stand(
    "second-norm-behind-mlp", ("pre", "inside"), "ln_2", "what does ln_2 normalise: what the MLP reads, or what it writes?"
)


def _plain(x):
    return F.layer_norm(x, x.shape[-1:])


def _parts_used(name, tensor, text, choose):
    @case.fault(name, at="_parts", tensor=tensor, text=text)
    def _(right):
        return choose(*right)


_parts_used(
    "ln_1-used-twice",
    "ln_2",
    "is each of the four callables used exactly once? which norm stands before the MLP?",
    lambda a, m, one, two: (a, m, one, one),
)
_parts_used(
    "ln_2-used-twice",
    "ln_1",
    "is each of the four callables used exactly once? which norm stands before attention?",
    lambda a, m, one, two: (a, m, two, two),
)
_parts_used("norms-exchanged", "ln_1", "which of the two norms stands before attention?", lambda a, m, one, two: (a, m, two, one))
_parts_used("sublayers-exchanged", "attn_out", "which of the two sublayers reads first?", lambda a, m, one, two: (m, a, one, two))
_parts_used("mlp-before-attention", "ln_1", "which of the two sublayers writes first?", lambda a, m, one, two: (m, a, two, one))
_parts_used(
    "attention-used-twice",
    "mlp_out",
    "is each of the four callables used exactly once? where is mlp?",
    lambda a, m, one, two: (a, a, one, two),
)
_parts_used(
    "mlp-used-twice",
    "attn_out",
    "is each of the four callables used exactly once? where is attn?",
    lambda a, m, one, two: (m, m, one, two),
)
_parts_used(
    "norms-of-your-own",
    "ln_1",
    "do you apply the norms that you are given, with their gains and biases?",
    lambda a, m, one, two: (a, m, _plain, _plain),
)
_parts_used(
    "both-norms-before-attention",
    "ln_1",
    "how many norms stand before attention?",
    lambda a, m, one, two: (a, m, lambda x: two(one(x)), two),
)


@case.fault(
    "mlp-reads-before-attention", at="ln_2", text="does the MLP read the stream before attention has written to it, or after?"
)
def _(resid, _parts):
    return _parts[3](resid)


@case.fault(
    "mlp-reads-ln_1", at="ln_2", text="what does the MLP read: what attention read, or the stream after attention's write?"
)
def _(ln_1):
    return ln_1


@case.fault("mlp-reads-ln_1-normalised-again", at="ln_2", text="what does ln_2 read: a branch, or the stream?")
def _(ln_1, _parts):
    return _parts[3](ln_1)


@case.fault(
    "mlp-reads-attention-alone", at="ln_2", text="what does the MLP read: attention's write, or the stream that it was added to?"
)
def _(attn_out, _parts):
    return _parts[3](attn_out)


@case.fault("mlp-read-without-gradient", at="ln_2", text="does the gradient of the MLP reach the stream that it has read?")
def _(resid_mid, _parts):
    return _parts[3](resid_mid.detach())


@case.fault(
    "attention-read-without-gradient", at="ln_1", text="does the gradient of attention reach the stream that it has read?"
)
def _(resid, _parts):
    return _parts[2](resid.detach())


def _mid(name, text, function):
    @case.fault(name, at="resid_mid", text=text)
    def _(resid, ln_1, attn_out):
        return function(resid, ln_1, attn_out)


_mid("attention-replaces-stream", "is the stream still in the sum after attention?", lambda r, n, a: a)
_mid(
    "attention-doubled",
    "if the branch's result has the name of its input, what is on the right of the next +?",
    lambda r, n, a: a + a,
)
_mid("attention-not-added", "is attention's write in the stream that the MLP reads?", lambda r, n, a: r)
_mid(
    "attention-multiplied",
    "what becomes of the stream where attention writes zeros: is there a * for a +?",
    lambda r, n, a: r * a,
)
_mid("attention-subtracted", "is attention's write added, or taken away?", lambda r, n, a: r - a)
_mid("attention-added-twice", "how many times is attention's write added?", lambda r, n, a: r + 2 * a)
_mid("attention-added-to-norm", "does the straight line run past ln_1, or through it?", lambda r, n, a: n + a)
_mid("attention-averaged", "is the stream a sum, or a mean?", lambda r, n, a: (r + a) / 2)
_mid("stream-doubled-at-attention", "how many times is the stream in the sum?", lambda r, n, a: 2 * r + a)
_mid(
    "stream-without-gradient-at-attention",
    "does the gradient come back along the straight line past attention?",
    lambda r, n, a: r.detach() + a,
)


def _post(name, text, function):
    @case.fault(name, at="resid_post", text=text)
    def _(resid, attn_out, resid_mid, ln_2, mlp_out):
        return function(resid, attn_out, resid_mid, ln_2, mlp_out)


_post("mlp-replaces-stream", "does the block return the whole stream, or the MLP's write alone?", lambda r, a, mid, n, m: m)
_post(
    "mlp-doubled",
    "if the MLP's result has the name of its input, what is on the right of the next +?",
    lambda r, a, mid, n, m: m + m,
)
_post("mlp-not-added", "is the MLP's write in what the block returns?", lambda r, a, mid, n, m: mid)
_post(
    "mlp-multiplied",
    "what becomes of the stream where the MLP writes zeros: is there a * for a +?",
    lambda r, a, mid, n, m: mid * m,
)
_post("mlp-subtracted", "is the MLP's write added, or taken away?", lambda r, a, mid, n, m: mid - m)
_post("mlp-added-twice", "how many times is the MLP's write added?", lambda r, a, mid, n, m: mid + 2 * m)
_post("mlp-added-to-norm", "does the straight line run past ln_2, or through it?", lambda r, a, mid, n, m: n + m)
_post("mlp-averaged", "is the stream a sum, or a mean?", lambda r, a, mid, n, m: (mid + m) / 2)
_post(
    "skip-from-before-attention",
    "the MLP's write is added to which state: is attention's write in it?",
    lambda r, a, mid, n, m: r + m,
)
_post(
    "writes-without-stream", "does the block return the whole stream, or what its two parts write?", lambda r, a, mid, n, m: a + m
)
_post("stream-added-again", "how many times is the block's input in the sum?", lambda r, a, mid, n, m: r + mid + m)
_post("attention-added-again", "how many times is attention's write in the sum?", lambda r, a, mid, n, m: mid + a + m)
_post("block-returns-its-input", "does the block return what its parts have made of the stream?", lambda r, a, mid, n, m: r)
_post("block-returns-two-states", "does the block return one tensor, or several?", lambda r, a, mid, n, m: (mid, mid + m))
_post("block-normalises-its-output", "is anything normalised on the straight line?", lambda r, a, mid, n, m: _plain(mid + m))
_post(
    "stream-without-gradient-at-mlp",
    "does the gradient come back along the straight line past the MLP?",
    lambda r, a, mid, n, m: mid.detach() + m,
)


@case.fault(
    "ln_2-also-at-the-end",
    at="resid_post",
    text="is each of the four callables used exactly once? is anything normalised on the straight line?",
)
def _(right, _parts):
    return _parts[3](right)


# ---------------------------------------------------------------- run_stream


@case.step
def _blocks(block_w):
    """Each block returns the whole stream."""
    return tuple(parts.block(weight) for weight in block_w)


@case.step
def _skipped(skip):
    return frozenset(skip)


@case.step
def _run(resid, _blocks, _skipped):
    """All states, and the layers that were called."""
    return _walk(resid, _blocks, _skipped)


@case.step
def n_states(_run):
    return "Tensor" if isinstance(_run[0], torch.Tensor) else len(_run[0])


@case.step
def states(_run):
    if isinstance(_run[0], torch.Tensor):  # a fault gives no list
        return _run[0]
    return torch.stack(_run[0]) if _run[0] else []


@case.step
def layers_called(_run):
    return _run[1]


def _new(new, old, first):
    return new


def _old(old, first):
    return old


def _walk(resid, blocks, skipped, after=_new, passed=_old, reads=_old):
    """A run of the stack.

    after   what becomes of a block's result (the new state, the one before it, the first one)
    passed  what a skipped layer leaves
    reads   what a block reads
    """
    found, called = [resid], []
    for layer, block in enumerate(blocks):
        if layer in skipped:
            found.append(passed(found[-1], resid))
        else:
            called.append(layer)
            found.append(after(block(reads(found[-1], resid)), found[-1], resid))
    return tuple(found), called


def stream_inputs(draw: Draw):
    def blocks(L, C):
        return draw.normal(L, C, C, scale=1.5 * C**-0.5)

    yield sample("four blocks", resid=draw.normal(2, 3, 5), block_w=blocks(4, 5))
    yield sample("layers 1 and 3 of five skipped", resid=draw.normal(2, 3, 4), block_w=blocks(5, 4), skip=[1, 3])
    yield sample("layer 0 skipped", resid=draw.normal(3, 2, 4), block_w=blocks(3, 4), skip=(0,))
    yield sample("the last two layers skipped", resid=draw.normal(2, 4, 3), block_w=blocks(4, 3), skip=[3, 2])
    yield sample("every layer skipped", resid=draw.normal(2, 2, 3), block_w=blocks(3, 3), skip=[2, 0, 1])
    yield sample("one block", gradient=False, resid=draw.normal(3, 2, 5), block_w=blocks(1, 5), skip=[])


def _reference_run(resid, block_w, skip=()):
    blocks = [(lambda x: x) if layer in skip else parts.block(weight) for layer, weight in enumerate(block_w)]
    found = list(itertools.accumulate(blocks, lambda state, block: block(state), initial=resid))
    return len(found), torch.stack(found), [layer for layer in range(len(block_w)) if layer not in skip]


case.exercise(
    "run_stream(resid, block_w, skip=())",
    contract="run_stream(resid, blocks, skip=())",
    returns=("n_states", "states", "layers_called"),
    inputs=stream_inputs,
    points=3,
    lesson="`run_stream`",
    hints=(
        "L blocks stand between L+1 states. Which one is there before any block has run?",
        "Start with resid; each block reads the last state and returns the next; a skipped layer repeats the last state.",
        "states[0] = resid;  states[l+1] = blocks[l](states[l]), or states[l] where l is in skip",
    ),
    reference=_reference_run,
    probe="run_stream",
)


def _runs(name, tensor, text, function):
    @case.fault(name, at="_run", tensor=tensor, text=text)
    def _(resid, _blocks, _skipped):
        return function(resid, _blocks, _skipped)


def _walks(name, text, tensor="states", **how):
    _runs(name, tensor, text, lambda resid, blocks, skipped: _walk(resid, blocks, skipped, **how))


def _changed(name, tensor, text, change):
    @case.fault(name, at="_run", tensor=tensor, text=text)
    def _(right):
        return change(*right)


def _which(name, text, choose):
    @case.fault(name, at="_skipped", tensor="states", text=text)
    def _(skip, block_w):
        return frozenset(choose(list(skip), len(block_w)))


_walks(
    "input-added-again",
    "a block returns the stream with its input already in it: what do you add?",
    after=lambda new, old, first: old + new,
)
_walks(
    "embedding-added-again",
    "a block returns the stream with the embedding already in it: what do you add?",
    after=lambda new, old, first: first + new,
)
_walks(
    "block-output-taken-for-a-write-away",
    "does a block return the whole stream, or its write alone?",
    after=lambda new, old, first: new - old,
)
_walks(
    "blocks-read-the-embedding",
    "what does block 1 read: the embedding, or what block 0 has made of it?",
    reads=lambda old, first: first,
)
_walks(
    "every-layer-starts-from-the-embedding",
    "what does block 1 read, and what does a skipped layer repeat: the embedding, or the state before it?",
    reads=lambda old, first: first,
    passed=lambda old, first: first,
)
_walks("states-normalised", "is anything normalised between two blocks?", after=lambda new, old, first: _plain(new))
_walks("blocks-read-a-normalised-state", "is anything normalised between two blocks?", reads=lambda old, first: _plain(old))
_walks(
    "skipped-layer-gives-zeros",
    "what remains of the embedding if a skipped layer gives zeros?",
    passed=lambda old, first: torch.zeros_like(old),
)
_walks(
    "skipped-layer-gives-the-embedding",
    "what does a skipped layer repeat: the embedding, or the state before it?",
    passed=lambda old, first: first,
)
_walks(
    "skipped-layer-doubles",
    "what does a skipped layer write: nothing, or its input once more?",
    passed=lambda old, first: old + old,
)


@case.fault("states-stacked", at="n_states", text="do the states come back as a list, or as one tensor?")
def _():
    return "Tensor"


@case.fault("skipped-layer-called-and-thrown-away", at="layers_called", text="is a skipped layer called?")
def _(_blocks):
    return list(range(len(_blocks)))


_runs(
    "skipped-layer-leaves-no-state",
    "n_states",
    "does the list keep its length when a layer is skipped?",
    lambda resid, blocks, skipped: _compressed(resid, blocks, skipped),
)
_runs(
    "stops-at-a-skipped-layer",
    "n_states",
    "do the layers behind a skipped one still run?",
    lambda resid, blocks, skipped: _walk(resid, blocks[: min(skipped, default=len(blocks))], skipped),
)
_runs(
    "same-block-every-time",
    "states",
    "which block makes state l+1?",
    lambda resid, blocks, skipped: _walk(resid, blocks[:1] * len(blocks), skipped),
)


@case.fault("blocks-in-reverse", at="_run", tensor="states", text="which block runs first?")
def _(resid, _blocks, _skipped):
    found, called = [resid], []
    for layer in reversed(range(len(_blocks))):
        found.append(found[-1] if layer in _skipped else _blocks[layer](found[-1]))
        called += [] if layer in _skipped else [layer]
    return tuple(found), sorted(called)


@case.fault("each-block-run-twice", at="_run", tensor="states", text="how many times does each block run?")
def _(resid, _blocks, _skipped):
    return _walk(resid, tuple(lambda x, block=block: block(block(x)) for block in _blocks), _skipped)


def _compressed(resid, blocks, skipped):
    found, called = _walk(resid, blocks, skipped)
    return tuple(state for number, state in enumerate(found) if number == 0 or number - 1 not in skipped), called


_changed(
    "embedding-missing",
    "n_states",
    "there are L+1 states for L blocks: which one is entry 0?",
    lambda found, called: (found[1:], called),
)
_changed(
    "last-state-missing",
    "n_states",
    "there are L+1 states for L blocks: is what the last block makes among them?",
    lambda found, called: (found[:-1], called),
)
_changed(
    "embedding-twice",
    "n_states",
    "there are L+1 states for L blocks: which one do you have twice?",
    lambda found, called: (found[:1] + found, called),
)
_changed(
    "last-state-twice",
    "n_states",
    "there are L+1 states for L blocks: which one do you have twice?",
    lambda found, called: (found + found[-1:], called),
)
_changed(
    "last-state-only",
    "n_states",
    "are all the states to be returned, or the last one?",
    lambda found, called: (found[-1:], called),
)
_changed(
    "last-state-for-the-list",
    "n_states",
    "are all the states to be returned, as a list, or the last one?",
    lambda found, called: (found[-1], called),
)
_changed("states-in-reverse", "states", "which state is entry 0?", lambda found, called: (found[::-1], called))
_changed(
    "states-all-the-last",
    "states",
    "do your entries share one tensor that is overwritten?",
    lambda found, called: (found[-1:] * len(found), called),
)
_changed(
    "writes-for-states",
    "states",
    "is entry l the state after l blocks, or what block l-1 has added?",
    lambda found, called: (found[:1] + _differences(found), called),
)
_changed(
    "writes-only",
    "n_states",
    "are the states to be returned, or what the blocks have added?",
    lambda found, called: (_differences(found), called),
)
_changed(
    "last-state-normalised",
    "states",
    "does the final norm belong to running, or to reading?",
    lambda found, called: (found[:-1] + (_plain(found[-1]),), called),
)
_changed(
    "first-state-zeros",
    "states",
    "what does the first block read?",
    lambda found, called: ((torch.zeros_like(found[0]),) + found[1:], called),
)


def _differences(found):
    return tuple(new - old for old, new in itertools.pairwise(found))


_which("skip-ignored", "is skip used?", lambda skip, L: ())
_which(
    "skip-counted-from-one", "are the layers in skip counted from 0, or from 1?", lambda skip, L: [layer - 1 for layer in skip]
)
_which("skip-one-late", "which block does number l in skip mean?", lambda skip, L: [layer + 1 for layer in skip])
_which("skip-upside-down", "does skip list the layers that run, or those that do not?", lambda skip, L: set(range(L)) - set(skip))
_which("skip-first-only", "how many layers can skip list?", lambda skip, L: skip[:1])
_which("skip-last-only", "how many layers can skip list?", lambda skip, L: skip[-1:])
_which(
    "skip-from-the-end",
    "are the layers counted from the first block, or from the last?",
    lambda skip, L: [L - 1 - layer for layer in skip],
)
_which(
    "skip-everything-from-there",
    "which layers are skipped: those in skip, or all from the first of them on?",
    lambda skip, L: range(min(skip, default=L), L),
)
_which("skip-that-many", "does skip say which layers, or how many?", lambda skip, L: range(len(skip)))
_which("skip-never-the-first", "can layer 0 be skipped?", lambda skip, L: [layer for layer in skip if layer])
_which("skip-never-the-last", "can the last layer be skipped?", lambda skip, L: [layer for layer in skip if layer != L - 1])


# ---------------------------------------------------------------- logit_lens


@case.step
def _norm(ln_f_w, ln_f_b):
    return parts.norm(ln_f_w, ln_f_b)


@case.step
def _read(unembed_w):
    return parts.reading(unembed_w)


@case.step
def _order():
    return "norm, then unembedding"


@case.step
def ln_f(stream, _norm, _read, _order):
    if _order == "norm, then unembedding":
        return _norm(stream)
    return torch.stack([_norm(_read(state)) for state in stream])


@case.step
def logits(ln_f, _read, _order):
    return _read(ln_f) if _order == "norm, then unembedding" else ln_f


def _states(draw: Draw, L: int, B: int, T: int, C: int):
    """L+1 states of very different lengths."""
    return torch.stack([draw.normal(B, T, C) * 2.0 ** (index - 1) for index in range(L + 1)])


def lens_inputs(draw: Draw):
    def reading(V, C):
        return {"ln_f_w": 1 + draw.normal(C, scale=0.5), "ln_f_b": draw.normal(C), "unembed_w": draw.normal(V, C, scale=C**-0.5)}

    yield sample("five states", stream=_states(draw, 4, 2, 3, 6), **reading(7, 6))
    yield sample("as many tokens as channels", stream=_states(draw, 2, 2, 4, 5), **reading(5, 5))
    yield sample("as many states as sequences", gradient=False, stream=_states(draw, 2, 3, 2, 4), **reading(9, 4))


case.exercise(
    "logit_lens(stream, ln_f_w, ln_f_b, unembed_w)",
    contract="logit_lens(stream, ln_f, unembed)",
    returns="logits",
    inputs=lens_inputs,
    points=2,
    lesson="`logit_lens`",
    hints=(
        "What does the model do with its last state to get logits, and in which order?",
        "Do that to every state of the list, the first and the last included, and stack the results in front.",
        "out[l] = unembed(ln_f(stream[l]))",
    ),
    reference=lambda stream, ln_f_w, ln_f_b, unembed_w: torch.stack(
        [F.layer_norm(state, state.shape[-1:]).mul(ln_f_w).add(ln_f_b).matmul(unembed_w.mT) for state in stream]
    ),
    golden=lambda real: {
        "stream": torch.stack(
            [real["h.0.resid_pre"]] + [real[f"h.{layer}.resid_post"] for layer in range(real.config["n_layer"])]
        ),
        "ln_f_w": real["ln_f.weight"],
        "ln_f_b": real["ln_f.bias"],
        "unembed_w": real["wte.weight"][:40],
    },
    probe="logit_lens",
)


def _lens(name, text, function):
    @case.fault(f"lens-{name}", at="ln_f", text=text)
    def _(stream, _norm):
        return function(stream, _norm)


def _with_last_statistics(stream):
    mean, variance = stream[-1].mean(-1, keepdim=True), stream[-1].var(-1, correction=0, keepdim=True)
    return (stream - mean) / (variance + 1e-5).sqrt()


_lens("without-norm", "the model does something to its last state before it reads it: do you?", lambda s, norm: s)
_lens("norm-of-your-own", "do you apply the ln_f that you are given, with its gain and bias?", lambda s, norm: _plain(s))
_lens(
    "norm-of-your-own-by-std",
    "do you apply the ln_f that you are given, with its gain and bias, or divide by a standard deviation of your own?",
    lambda s, norm: (s - s.mean(-1, keepdim=True)) / s.std(-1, keepdim=True),
)
_lens(
    "divided-by-root-mean-square",
    "do you apply the ln_f that you are given, or divide by a size of your own?",
    lambda s, norm: s / s.square().mean(-1, keepdim=True).sqrt(),
)
_lens(
    "last-statistics",
    "does each state get its own mean and variance, and the given gain and bias?",
    lambda s, norm: _with_last_statistics(s),
)
_lens("length-one", "is a norm that divides by the length the ln_f that you are given?", lambda s, norm: F.normalize(s, dim=-1))
_lens("norm-twice", "how many times is ln_f applied to a state?", lambda s, norm: norm(norm(s)))
_lens(
    "norm-twice-at-the-end",
    "is ln_f applied once to the last state?",
    lambda s, norm: torch.cat([norm(s[:-1]), norm(norm(s[-1:]))]),
)
_lens(
    "last-not-normalised",
    "has the last state been through ln_f already, or do the states come as they are?",
    lambda s, norm: torch.cat([norm(s[:-1]), s[-1:]]),
)
_lens("last-only-normalised", "is ln_f applied to every state?", lambda s, norm: torch.cat([s[:-1], norm(s[-1:])]))
_lens("first-not-normalised", "is ln_f applied to the embedding too?", lambda s, norm: torch.cat([s[:1], norm(s[1:])]))
_lens("embedding-missing", "how many states are there, and how many do you read?", lambda s, norm: norm(s[1:]))
_lens("last-missing", "how many states are there: is the last one read?", lambda s, norm: norm(s[:-1]))
_lens("last-state-alone", "do you read every state, or the last one?", lambda s, norm: norm(s[-1]))
_lens("states-in-reverse", "which state is entry 0?", lambda s, norm: norm(s.flip(0)))
_lens(
    "reads-one-state-late",
    "does entry l read the state after l blocks, or after l+1?",
    lambda s, norm: norm(torch.cat([s[1:], s[-1:]])),
)
_lens(
    "reads-one-state-early",
    "does entry l read the state after l blocks, or after l-1?",
    lambda s, norm: norm(torch.cat([s[:1], s[:-1]])),
)
_lens(
    "reads-writes",
    "is each state read, or what a layer has added to it?",
    lambda s, norm: norm(torch.cat([s[:1], s[1:] - s[:-1]])),
)
_lens(
    "reads-running-sum",
    "is each entry of the stream a state, or a write that must be added up?",
    lambda s, norm: norm(s.cumsum(0)),
)
_lens("reads-last-every-time", "does entry l read state l, or the last one?", lambda s, norm: norm(s[-1:].expand_as(s)))
_lens("mean-only", "does ln_f only take out the mean?", lambda s, norm: s - s.mean(-1, keepdim=True))


@case.fault(
    "lens-unembeds-first",
    at="_order",
    tensor="ln_f",
    text="in which order does the model read its last state: norm first, or unembedding first?",
)
def _():
    return "unembedding, then norm"


def _logits(name, text, function):
    @case.fault(f"lens-{name}", at="logits", text=text)
    def _(right):
        return function(right)


_logits("not-stacked", "is the result a list, or one tensor?", lambda x: list(x.unbind(0)))
_logits("concatenated", "do the states have an axis of their own in the result?", lambda x: x.flatten(0, 1))
_logits("stacked-behind-batch", "where does the axis of the states stand?", lambda x: x.movedim(0, 1))
_logits("stacked-behind-positions", "where does the axis of the states stand?", lambda x: x.movedim(0, 2))
_logits("stacked-last", "where does the axis of the states stand?", lambda x: x.movedim(0, -1))
_logits("probabilities", "does the lens give logits, or probabilities?", lambda x: F.softmax(x, dim=-1))
_logits("log-probabilities", "does the lens give logits, or log-probabilities?", lambda x: F.log_softmax(x, dim=-1))
_logits("best-token", "does the lens give logits, or the best token?", lambda x: x.argmax(-1))
_logits("last-position-only", "is every position read?", lambda x: x[:, :, -1])
_logits("averaged-over-states", "do the states have an axis of their own in the result?", lambda x: x.mean(0))
_logits("without-gradient", "does the gradient pass back to the states?", lambda x: x.detach())


@case.fault("lens-not-unembedded", at="logits", text="what makes V numbers of C?")
def _(ln_f):
    return ln_f


# ---------------------------------------------------------------- steer


@case.step
def _push(direction, strength):
    return strength * direction


@case.step
def _positions(resid, positions):
    T = resid.shape[1]
    return list(range(T)) if positions is None else [position % T for position in positions]


@case.step
def steered(resid, _push, _positions):
    here = torch.zeros(resid.shape[1], 1, dtype=resid.dtype, device=resid.device)
    here[_positions] = 1
    return resid + here * _push


def steer_inputs(draw: Draw):
    def stream(B, T, C):
        return {"resid": draw.normal(B, T, C), "direction": 2 * draw.normal(C)}

    yield sample("all positions", **stream(2, 5, 4), strength=2.5)
    yield sample("positions 1 and 3", **stream(3, 5, 4), strength=1.5, positions=[1, 3])
    yield sample("the last position, as -1", **stream(2, 4, 3), strength=3.0, positions=[-1])
    yield sample("no position", **stream(2, 3, 4), strength=2.0, positions=[])
    yield sample("position 0, pushed backwards", gradient=False, **stream(2, 4, 5), strength=-1.7, positions=[0])
    yield sample("positions 4, 0 and -3", **stream(2, 6, 3), strength=0.6, positions=[4, 0, -3])


case.exercise(
    "steer(resid, direction, strength, positions=None)",
    returns="steered",
    inputs=steer_inputs,
    points=2,
    lesson="`steer`",
    hints=(
        "What is added, at which positions, and what happens to the others?",
        "Tell None (all) from [] (none); work on a copy; the positions are the second axis of three.",
        "out[b,t,c] = resid[b,t,c] + strength * direction[c] for t in positions, resid[b,t,c] elsewhere",
    ),
    reference=lambda resid, direction, strength, positions=None: (
        resid + strength * direction
        if positions is None
        else resid.index_add(
            1,
            torch.tensor(positions, dtype=torch.long, device=resid.device) % resid.shape[1],
            (strength * direction).expand(resid.shape[0], len(positions), -1),
        )
    ),
    golden=lambda real: {
        "resid": real["h.2.resid_pre"],
        "direction": real["wte.weight"][300] - real["wte.weight"][400],
        "strength": 2.5,
        "positions": [-1, 2],
    },
)


def _pushes(name, text, function):
    @case.fault(f"steer-{name}", at="_push", tensor="steered", text=text)
    def _(direction, strength):
        return function(direction, strength)


_pushes("direction-normalised", "does the direction keep its own length?", lambda d, s: s * F.normalize(d, dim=0))
_pushes("direction-by-largest-entry", "does the direction keep its own length?", lambda d, s: s * d / d.abs().max())
_pushes("direction-centred", "is the direction taken as it is?", lambda d, s: s * (d - d.mean()))
_pushes("direction-standardised", "is the direction taken as it is?", lambda d, s: s * _plain(d))
_pushes("direction-signs-only", "is the direction taken as it is, or are its signs?", lambda d, s: s * d.sign())
_pushes("direction-summed", "is the direction a vector when it is added?", lambda d, s: s * d.sum())
_pushes("strength-ignored", "how strong is the push?", lambda d, s: d)
_pushes("strength-added", "what does strength do to the direction: multiply it, or shift it?", lambda d, s: d + s)
_pushes("strength-alone", "which way does the push go?", lambda d, s: s * torch.ones_like(d))
_pushes("strength-divides", "does a larger strength push further?", lambda d, s: d / s)
_pushes("strength-without-sign", "which way does a negative strength push?", lambda d, s: abs(s) * d)
_pushes("strength-whole-numbers", "must strength be a whole number?", lambda d, s: int(s) * d)
_pushes("strength-squared", "how many times does strength multiply the direction?", lambda d, s: s * s * d)
_pushes("pushed-backwards", "is the push added, or taken away?", lambda d, s: -s * d)
_pushes("pushed-twice", "how many times is the push added?", lambda d, s: 2 * s * d)
_pushes("not-pushed", "is the push in what you return?", lambda d, s: 0 * d)


def _places(name, text, function):
    @case.fault(f"steer-{name}", at="_positions", tensor="steered", text=text)
    def _(resid, positions):
        return list(function(positions, resid.shape[1]))


def _listed(positions, T):
    return range(T) if positions is None else [position % T for position in positions]


_places("positions-ignored", "are the positions that are not listed equal to the input?", lambda p, T: range(T))
_places("empty-list-means-all", "does your test for 'no positions given' tell None from []?", lambda p, T: _listed(p or None, T))
_places("none-means-no-position", "what does None mean for positions: all, or none?", lambda p, T: _listed(p or [], T))
_places(
    "none-means-last-position",
    "what does None mean for positions: all, or the last?",
    lambda p, T: [T - 1] if p is None else _listed(p, T),
)
_places(
    "none-means-first-position",
    "what does None mean for positions: all, or the first?",
    lambda p, T: [0] if p is None else _listed(p, T),
)
_places("none-not-handled", "can None be looped over?", lambda p, T: [position % T for position in p])
_places(
    "negative-positions-ignored", "which position is -1?", lambda p, T: range(T) if p is None else [at for at in p if at >= 0]
)
_places(
    "negative-positions-made-positive",
    "which position is -3: the third from the end, or number 3?",
    lambda p, T: range(T) if p is None else [abs(at) for at in p],
)
_places(
    "negative-positions-off-by-one",
    "which position is -1: the last, or the last but one?",
    lambda p, T: range(T) if p is None else [at if at >= 0 else (T - 1 + at) % T for at in p],
)
_places(
    "negative-positions-mean-first", "which position is -1?", lambda p, T: range(T) if p is None else [max(at, 0) for at in p]
)
_places(
    "positions-counted-from-one",
    "are positions counted from 0, or from 1?",
    lambda p, T: range(T) if p is None else [(at - 1) % T for at in p],
)
_places(
    "positions-one-late",
    "is the push at the position that is listed, or at the next?",
    lambda p, T: range(T) if p is None else [(at + 1) % T for at in p],
)
_places(
    "positions-from-the-end",
    "are positions counted from the first, or from the last?",
    lambda p, T: range(T) if p is None else [T - 1 - at % T for at in p],
)
_places(
    "positions-upside-down",
    "are the listed positions pushed, or all the others?",
    lambda p, T: range(T) if p is None else set(range(T)) - set(_listed(p, T)),
)
_places("first-listed-only", "how many positions can be listed?", lambda p, T: range(T) if p is None else _listed(p[:1], T))
_places("last-listed-only", "how many positions can be listed?", lambda p, T: range(T) if p is None else _listed(p[-1:], T))
_places(
    "from-first-listed-on",
    "which positions are pushed: those listed, or all from the first of them on?",
    lambda p, T: range(T) if p is None else range(min(_listed(p, T), default=T), T),
)
_places(
    "up-to-last-listed",
    "which positions are pushed: those listed, or all up to the last of them?",
    lambda p, T: range(T) if p is None else range(max(_listed(p, T), default=-1) + 1),
)
_places(
    "span-of-listed",
    "which positions are pushed: those listed, or all between them too?",
    lambda p, T: range(T) if p is None else range(min(_listed(p, T), default=0), max(_listed(p, T), default=-1) + 1),
)
_places("last-position-always", "which positions are listed?", lambda p, T: [T - 1])


def _steers(name, text, function):
    @case.fault(f"steer-{name}", at="steered", text=text)
    def _(right, resid, _push, _positions):
        return function(right, resid, _push, _positions)


def _at(resid, new, places):
    """resid, with the numbers of `new` at these positions."""
    out = resid.clone()
    out[:, places] = new[:, places]
    return out


_steers("first-sequence-only", "is every sequence of the batch pushed?", lambda out, r, p, at: torch.cat([out[:1], r[1:]]))
_steers("last-sequence-only", "is every sequence of the batch pushed?", lambda out, r, p, at: torch.cat([r[:-1], out[-1:]]))
_steers(
    "replaces-stream", "is the push added to the stream, or put in its place?", lambda out, r, p, at: _at(r, p.expand_as(r), at)
)
_steers("multiplies-stream", "is the push added to the stream, or multiplied with it?", lambda out, r, p, at: _at(r, r * p, at))
_steers(
    "other-positions-zeroed",
    "are the positions that are not listed equal to the input?",
    lambda out, r, p, at: _at(torch.zeros_like(r), out, at),
)
_steers(
    "listed-positions-returned", "is the whole stream returned, or the listed positions alone?", lambda out, r, p, at: out[:, at]
)
_steers("push-returned", "is the whole stream returned, or the push alone?", lambda out, r, p, at: out - r)
_steers(
    "length-restored",
    "is anything normalised after the push?",
    lambda out, r, p, at: _at(r, F.normalize(out, dim=-1) * r.norm(dim=-1, keepdim=True), at),
)
_steers("result-normalised", "is anything normalised after the push?", lambda out, r, p, at: _at(r, _plain(out), at))
_steers(
    "direction-set",
    "is the part along the direction added to, or set?",
    lambda out, r, p, at: _at(r, r - (r @ p)[..., None] * p / (p @ p) + p, at),
)
_steers(
    "by-length-of-stream",
    "does the push depend on the stream's length?",
    lambda out, r, p, at: _at(r, r + p * r.norm(dim=-1, keepdim=True), at),
)
_steers("push-shared-out", "does each listed position get the whole push?", lambda out, r, p, at: r + (out - r) / max(len(at), 1))
_steers(
    "stream-scaled", "what does strength multiply: the direction, or the stream?", lambda out, r, p, at: _at(r, 2 * r + p, at)
)
_steers("stream-without-gradient", "does the gradient come back along the stream?", lambda out, r, p, at: r.detach() + (out - r))


@case.fault(
    "steer-first-sequence-only-where-listed",
    at="steered",
    text="with positions listed, is every sequence of the batch pushed?",
)
def _(right, resid, positions):
    return right if positions is None else torch.cat([right[:1], resid[1:]])


@case.fault("steer-positions-index-the-batch", at="steered", text="which axis do the positions count: the first, or the second?")
def _(resid, _push, positions):
    out = resid.clone()
    if positions is None:
        return out + _push
    out[positions] = out[positions] + _push
    return out


@case.fault("steer-scales-stream-by-strength", at="steered", text="what does strength multiply: the direction, or the stream?")
def _(resid, direction, strength, _positions):
    return _at(resid, strength * resid + direction, _positions)


@case.fault("steer-scales-the-sum", at="steered", text="what does strength multiply: the direction, or the sum?")
def _(resid, direction, strength, _positions):
    return _at(resid, strength * (resid + direction), _positions)


# ---------------------------------------------------------------- contributions


@case.step
def _writes(stream):
    return torch.cat([stream[:1], stream.diff(dim=0)])


@case.step
def added(_writes, direction):
    return _writes @ direction


def contribution_inputs(draw: Draw):
    yield sample("five states", stream=draw.normal(5, 2, 3, 4), direction=2 * draw.normal(4))
    yield sample("as many states as sequences", stream=draw.normal(3, 3, 2, 5), direction=draw.normal(5))
    stream = draw.normal(4, 2, 5, 3)
    stream[2] = stream[1]
    yield sample("a layer that was skipped", gradient=False, stream=stream, direction=0.5 * draw.normal(3))
    yield sample("one layer", stream=draw.normal(2, 3, 4, 6), direction=draw.normal(6))


case.exercise(
    "contributions(stream, direction)",
    returns="added",
    inputs=contribution_inputs,
    points=3,
    lesson="`contributions`",
    hints=(
        "The last state is a sum. What are its terms, and which of them is there before any layer has run?",
        "What a layer writes is the difference of two neighbouring states; the embedding is its own term, in front.",
        "out[0] = stream[0] . direction;  out[l] = (stream[l] - stream[l-1]) . direction, summed over c",
    ),
    reference=lambda stream, direction: torch.diff(
        torch.einsum("lbtc,c->lbt", stream, direction), dim=0, prepend=torch.zeros_like(stream[:1, ..., 0])
    ),
    golden=lambda real: {
        "stream": torch.stack(
            [real["h.0.resid_pre"]] + [real[f"h.{layer}.resid_post"] for layer in range(real.config["n_layer"])]
        ),
        "direction": real["wte.weight"][300],
    },
    probe="contributions",
)


def _written(name, text, function):
    @case.fault(f"contributions-{name}", at="_writes", tensor="added", text=text)
    def _(stream):
        return function(stream)


_written("embedding-missing", "does your first entry hold the embedding's share, or is it missing?", lambda s: s[1:] - s[:-1])
_written("embedding-zero", "what is the embedding's share: nothing?", lambda s: torch.cat([0 * s[:1], s[1:] - s[:-1]]))
_written("embedding-last", "where does the embedding's share stand?", lambda s: torch.cat([s[1:] - s[:-1], s[:1]]))
_written("goes-round", "what comes before state 0: the last state?", lambda s: s - s.roll(1, 0))
_written("of-states", "do your terms sum to the last state's dot product, or to that of all states together?", lambda s: s)
_written(
    "since-embedding",
    "what did layer l-1 add: the difference to the state before, or to the embedding?",
    lambda s: torch.cat([s[:1], s[1:] - s[:1]]),
)
_written(
    "to-the-end",
    "what did a layer add: the difference to the state before, or to the last?",
    lambda s: torch.cat([s[:1], s[-1:] - s[:-1]]),
)
_written(
    "layers-negated", "which of two neighbouring states is taken from the other?", lambda s: torch.cat([s[:1], s[:-1] - s[1:]])
)
_written("embedding-negated", "which sign has the embedding's share?", lambda s: torch.cat([-s[:1], s[1:] - s[:-1]]))
_written(
    "last-layer-missing",
    "how many layers are there: is what the last one added among your terms?",
    lambda s: torch.cat([s[:1], s[1:-1] - s[:-2]]),
)
_written(
    "last-layer-twice",
    "does each layer stand once among your terms?",
    lambda s: torch.cat([s[:1], s[1:] - s[:-1], s[-1:] - s[-2:-1]]),
)
_written(
    "last-state-first",
    "what is entry 0: the embedding's share, or the last state's?",
    lambda s: torch.cat([s[-1:], s[1:] - s[:-1]]),
)
_written(
    "last-state-appended",
    "do your terms sum to the last state's dot product, or do they hold it too?",
    lambda s: torch.cat([s[:1], s[1:] - s[:-1], s[-1:]]),
)
_written(
    "two-layers-at-once",
    "how many layers lie between the two states you subtract?",
    lambda s: torch.cat([s[:1], s[1:2] - s[:1], s[2:] - s[:-2]]),
)
_written(
    "one-layer-early",
    "entry l is what layer number l-1 added: what is entry 1?",
    lambda s: torch.cat([s[1:] - s[:-1], 0 * s[:1]]),
)
_written(
    "one-state-late",
    "is the last entry the last state, or what the last layer added?",
    lambda s: torch.cat([s[1:] - s[:-1], s[-1:]]),
)
_written("in-reverse", "which term is entry 0?", lambda s: torch.cat([s[:1], s[1:] - s[:-1]]).flip(0))
_written(
    "states-added", "is what a layer added a sum of two states, or a difference?", lambda s: torch.cat([s[:1], s[1:] + s[:-1]])
)
_written("running-sum", "is each entry of the stream a state, or a write that must be added up?", lambda s: s.cumsum(0))
_written(
    "states-normalised",
    "is anything normalised before the dot product?",
    lambda s: torch.cat([_plain(s[:1]), _plain(s[1:]) - _plain(s[:-1])]),
)
_written(
    "writes-normalised",
    "is anything normalised before the dot product?",
    lambda s: F.normalize(torch.cat([s[:1], s[1:] - s[:-1]]), dim=-1),
)
_written("sizes-only", "can what a layer adds be negative?", lambda s: torch.cat([s[:1], s[1:] - s[:-1]]).abs())
_written("last-state-only", "is the last state's dot product to be split?", lambda s: s[-1:])
_written(
    "differences-between-sequences",
    "which axis do you take the differences along?",
    lambda s: torch.cat([s[:, :1], s.diff(dim=1)], dim=1),
)
_written(
    "differences-between-positions",
    "which axis do you take the differences along?",
    lambda s: torch.cat([s[:, :, :1], s.diff(dim=2)], dim=2),
)


def _along(name, text, function):
    @case.fault(f"contributions-{name}", at="added", text=text)
    def _(_writes, direction):
        return function(_writes, direction)


_along("direction-normalised", "does the direction keep its own length?", lambda w, d: w @ F.normalize(d, dim=0))
_along("direction-by-square", "does the direction keep its own length?", lambda w, d: w @ d / (d @ d))
_along("direction-centred", "is the direction taken as it is?", lambda w, d: w @ (d - d.mean()))
_along("by-cosine", "do the lengths count in a dot product?", lambda w, d: F.cosine_similarity(w, d, dim=-1))
_along("not-summed-over-channels", "a dot product is one number: over which axis is the sum?", lambda w, d: w * d)
_along("mean-over-channels", "is a dot product a sum over the channels, or a mean?", lambda w, d: w @ d / len(d))
_along("squared", "is a dot product squared?", lambda w, d: (w @ d) ** 2)
_along("absolute", "can what a layer adds along a direction be negative?", lambda w, d: (w @ d).abs())
_along("negated", "which sign has what is added along the direction?", lambda w, d: -(w @ d))
_along("as-shares", "are the terms to be divided by their sum?", lambda w, d: (w @ d) / (w @ d).sum(0))
_along("as-softmax", "do the terms sum to 1, or to the last state's dot product?", lambda w, d: F.softmax(w @ d, dim=0))
_along("vectors-along-direction", "is each term a number, or a vector along the direction?", lambda w, d: (w @ d)[..., None] * d)
_along("layers-last", "where does the axis of the layers stand?", lambda w, d: (w @ d).movedim(0, -1))
_along("layers-behind-batch", "where does the axis of the layers stand?", lambda w, d: (w @ d).movedim(0, 1))
_along("summed-over-layers", "is each term to be seen, or their sum?", lambda w, d: (w @ d).sum(0))
_along("summed-over-positions", "does each position have its own terms?", lambda w, d: (w @ d).sum(-1))
_along("averaged-over-batch", "does each sequence have its own terms?", lambda w, d: (w @ d).mean(1))
_along("last-position-only", "does each position have its own terms?", lambda w, d: (w @ d)[..., -1])
_along("not-stacked", "is the result a list, or one tensor?", lambda w, d: list((w @ d).unbind(0)))
_along("axis-of-one-left", "is there an axis of size 1 left in your result?", lambda w, d: (w @ d)[..., None])
_along("without-gradient", "does the gradient pass back to the states?", lambda w, d: (w @ d).detach())
