"""The case of 10_training_objective."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from autograder.case import ANY, Case, Draw, refusal, sample

case = Case("10_training_objective")


def _mistake(id, at, tensor, text, setting, only=()):
    """A fault at a step whose value is a rule of an algorithm: the mistake is another rule."""
    case.fault(id, at=at, tensor=tensor, text=text, only=only)(lambda: setting)


# ---------------------------------------------------------------- next_token_pairs


@case.step
def _pair(ids):
    return ids[..., :-1], ids[..., 1:]


@case.step
def inputs(_pair):
    return _pair[0]


@case.step
def targets(_pair):
    return _pair[1]


def pair_inputs(draw: Draw):
    yield sample("two rows of six ids", ids=draw.integers(0, 50, 2, 6))
    yield sample("one row without a batch axis", ids=draw.integers(0, 50, 5))
    yield sample("two ids a row, one pair", ids=draw.integers(0, 50, 3, 2))
    yield sample("two leading axes", ids=draw.integers(0, 50, 2, 4, 5))
    yield sample("ids cut from a longer table", ids=draw.integers(0, 50, 3, 14)[:, 1::2])


case.exercise(
    "next_token_pairs(ids)",
    returns=("inputs", "targets"),
    inputs=pair_inputs,
    points=1,
    lesson="What is asked where",
    hints=(
        "For which positions of a row of T+1 ids is the answer known?",
        "The last id is nobody's question, the first is nobody's answer. Which axis holds the positions, whatever is in front?",
        "inputs[...,t] = ids[...,t];  targets[...,t] = ids[...,t+1];  t = 0 to T-1",
    ),
    reference=lambda ids: ids.unfold(-1, 2, 1).unbind(-1),
    golden=lambda real: {"ids": real.ids},
)


def _pairing(id, text, tensor="inputs"):
    return case.fault(id, at="_pair", tensor=tensor, text=text)


@_pairing("targets-not-shifted", "which token is your position t asked for: the next one, or its own?", "targets")
def _(ids):
    return ids[..., :-1], ids[..., :-1]


@_pairing("whole-rows-returned-twice", "which token is your position t asked for, and who answers the last one?")
def _(ids):
    return ids, ids


@_pairing(
    "targets-rolled-round", "who answers the last position of your rows: the token that comes next, or the first of the row?"
)
def _(ids):
    return ids, ids.roll(-1, -1)


@_pairing("inputs-rolled-round", "where did the last target of each of your rows come from?", "targets")
def _(ids):
    return ids[..., :-1], ids[..., :-1].roll(-1, -1)


@_pairing("inputs-keep-last-id", "is there an answer to the last id of a row?")
def _(ids):
    return ids, ids[..., 1:]


@_pairing("targets-keep-first-id", "to which input is the first id of a row the answer?", "targets")
def _(ids):
    return ids[..., :-1], ids


@_pairing("last-target-made-up", "your rows of targets are as long as ids: where did the last target come from?")
def _(ids):
    return ids, F.pad(ids[..., 1:], (0, 1), value=-100)


@_pairing("last-target-made-up-as-zero", "your rows of targets are as long as ids: is the last target really token 0?")
def _(ids):
    return ids, F.pad(ids[..., 1:], (0, 1))


@_pairing("pairs-swapped", "does the model read the earlier token and answer the later one, or the other way round?")
def _(ids):
    return ids[..., 1:], ids[..., :-1]


@_pairing("targets-shifted-twice", "is your target the next token, or the one after it?")
def _(ids):
    return ids[..., :-2], ids[..., 2:]


@_pairing("targets-two-ahead", "how many targets does a row have, and is the first one the next token?", "targets")
def _(ids):
    return ids[..., :-1], ids[..., 2:]


@_pairing("last-pair-dropped", "T+1 ids: how many pairs do they hold, and how many do you return?")
def _(ids):
    return ids[..., :-2], ids[..., 1:-1]


@_pairing("first-id-twice", "does the model read the token that it is asked for?")
def _(ids):
    return ids[..., 1:], ids[..., 1:]


@_pairing("pairs-along-first-axis", "which axis holds the positions: the first, or the last?")
def _(ids):
    return ids[:-1], ids[1:]


@_pairing("pairs-along-axis-1", "your positions are axis 1: which axis is that without a batch, or with two axes in front?")
def _(ids):
    return ids[:, :-1], ids[:, 1:]


@_pairing("only-last-target", "how many positions of a row are asked a question: all, or the last?", "targets")
def _(ids):
    return ids[..., :-1], ids[..., -1]


# ---------------------------------------------------------------- log_softmax


@case.step
def log_probs(logits):
    return F.log_softmax(logits, dim=-1)


IMPROBABLE = [0.0, -18.42, -20.72, -23.03, -27.63]


def log_softmax_inputs(draw: Draw):
    yield sample("a (2, 5, 7) tensor", logits=draw.normal(2, 5, 7))
    yield sample("a vector", logits=draw.normal(6))
    yield sample("four axes", logits=draw.normal(2, 3, 4, 5))
    yield sample("a square", logits=draw.normal(4, 4))
    rows = torch.stack([draw.normal(4), draw.normal(4) + 130, draw.normal(4) - 130])
    yield sample("rows near 0, 130 and -130", logits=rows)
    # Whole numbers that are far apart: the logarithm of the sum is exactly the largest, in any way of computing it.
    yield sample("logits 0 and -200", gradient=False, logits=draw.tensor([[0.0, -200.0, -400.0], [-300.0, -100.0, 0.0]]))
    yield sample("probabilities of 1e-8 to 1e-12", gradient=False, logits=draw.tensor(IMPROBABLE))
    yield sample("logits of 10,000", gradient=False, logits=draw.tensor([[1e4, 0.0, -1e4], [9000.0, 1e4, 9500.0]]))


case.exercise(
    "log_softmax(logits)",
    returns="log_probs",
    inputs=log_softmax_inputs,
    points=2,
    lesson="Finite for finite logits",
    hints=(
        "The logarithm of a product is a sum. What is left to compute once the logarithm of exp(x) / sum is taken apart?",
        "Subtracting one number from all logits of a row changes nothing in the result: which one keeps every exp at 1 or below?",
        "out[i] = (x[i] - m) - log sum_j exp(x[j] - m), with m = max_j x[j], along the last axis; keep that axis to broadcast",
    ),
    reference=lambda logits: logits - torch.logsumexp(logits, dim=-1, keepdim=True),
    golden=lambda real: {"logits": real["logits"][:, -2:]},
    forbidden=("log_softmax", "cross_entropy"),
)

ALONE = ("log_softmax",)  # in cross_entropy these coincide with another mistake


def _at_log_probs(id, text, only=()):
    return case.fault(id, at="log_probs", text=text, only=only)


def _floored(size, name):
    @_at_log_probs(
        f"log-of-softmax-plus-{name}", f"is the logarithm of {name} how improbable the token was, or how small your constant is?"
    )
    def _(logits):
        return torch.log(F.softmax(logits, dim=-1) + size)

    @_at_log_probs(
        f"log-of-softmax-at-least-{name}", f"is the logarithm of {name} how improbable the token was, or where your floor lies?"
    )
    def _(logits):
        return torch.log(F.softmax(logits, dim=-1).clamp_min(size))


for _size, _name in ((1e-12, "1e-12"), (1e-10, "1e-10"), (1e-9, "1e-9"), (1e-8, "1e-8")):
    _floored(_size, _name)


@_at_log_probs("log-of-softmax", "a probability of exp(-200) is 0 in float32: what is its logarithm, and what should it be?")
def _(logits):
    return torch.log(F.softmax(logits, dim=-1))


@_at_log_probs("logits-not-shifted", "what is exp(130) in float32, and exp(-130)? what do you subtract first?")
def _(logits):
    return logits - logits.exp().sum(-1, keepdim=True).log()


@_at_log_probs("shares-not-shifted", "what is exp(130) in float32, and what is inf / inf?")
def _(logits):
    return (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()


@_at_log_probs("largest-of-everything", "a row far below the largest logit of the whole tensor: what is left of it after exp?")
def _(logits):
    shifted = logits - logits.max()
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


@_at_log_probs("largest-of-absolute-values", "a row around -130: which number is its largest?", ALONE)
def _(logits):
    shifted = logits - logits.abs().amax(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


@_at_log_probs(
    "smaller-number-subtracted", "which number of a row do you subtract, and what is exp of what is left of the largest?", ALONE
)
def _(logits):
    shifted = logits - logits.mean(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


@_at_log_probs("largest-not-put-back", "you subtract the largest logit inside the sum: where does it come back?")
def _(logits):
    return logits - (logits - logits.amax(-1, keepdim=True)).exp().sum(-1, keepdim=True).log()


@_at_log_probs("largest-subtracted-twice", "how many times is the largest logit subtracted?")
def _(logits):
    return logits - logits.amax(-1, keepdim=True) - logits.logsumexp(-1, keepdim=True)


@_at_log_probs("log-probs-over-axis-before", "which axis holds the vocabulary: the last, or the one before it?")
def _(logits):
    return F.log_softmax(logits, dim=-2)


@_at_log_probs("log-probs-over-axis-1", "your axis is written as 1: is that the vocabulary?")
def _(logits):
    return F.log_softmax(logits, dim=1)


@_at_log_probs("log-probs-over-first-axis", "do the rows of a batch share their probabilities?")
def _(logits):
    return F.log_softmax(logits, dim=0)


@_at_log_probs("log-probs-over-everything", "do the probabilities of each position sum to 1, or only those of the whole tensor?")
def _(logits):
    return logits - logits.logsumexp(tuple(range(logits.dim())))


@_at_log_probs("log-total-of-all-rows", "the sum in your logarithm: over one row, or over all of them?")
def _(logits):
    shifted = logits - logits.amax(-1, keepdim=True)
    return shifted - shifted.exp().sum().log()


@_at_log_probs("total-not-logged", "what is subtracted: the sum of the exponentials, or its logarithm?")
def _(logits):
    shifted = logits - logits.amax(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1, keepdim=True)


@_at_log_probs("probabilities-not-logged", "are these probabilities, or their logarithms?")
def _(logits):
    return F.softmax(logits, dim=-1)


@_at_log_probs("softmax-before", "logits or probabilities: which of the two goes into the logarithm of the softmax?")
def _(logits):
    return F.log_softmax(F.softmax(logits, dim=-1), dim=-1)


@_at_log_probs("log-total-missing", "do the probabilities that belong to your numbers sum to 1?")
def _(logits):
    return logits - logits.amax(-1, keepdim=True)


@_at_log_probs("logits-centred", "do the probabilities that belong to your numbers sum to 1, or do your numbers sum to 0?")
def _(logits):
    return logits - logits.mean(-1, keepdim=True)


@_at_log_probs("log-total-without-exp", "the logarithm of which sum: that of the logits, or that of their exponentials?")
def _(logits):
    return logits - logits.sum(-1, keepdim=True).log()


@_at_log_probs("log-total-of-mean", "is it the sum of the exponentials, or their mean?")
def _(logits):
    return logits - logits.logsumexp(-1, keepdim=True) + math.log(logits.shape[-1])


@_at_log_probs("log-total-added", "is the logarithm of the sum subtracted, or added?")
def _(logits):
    return logits + logits.logsumexp(-1, keepdim=True)


@_at_log_probs("log-total-not-kept", "after summing, does the axis still stand where it stood, so that rows meet their own sum?")
def _(logits):
    shifted = logits - logits.amax(-1, keepdim=True)
    return shifted - shifted.exp().sum(-1).log()


@_at_log_probs("logsumexp-not-kept", "after logsumexp, does the axis still stand, so that rows meet their own sum?")
def _(logits):
    return logits - logits.logsumexp(-1)


@_at_log_probs("largest-not-kept", "after taking the maximum, does the axis still stand, so that rows meet their own maximum?")
def _(logits):
    shifted = logits - logits.amax(-1)
    return shifted - shifted.exp().sum(-1, keepdim=True).log()


@_at_log_probs(
    "log-total-cut-off", "the sum of the exponentials depends on the logits too: does the gradient pass back through it?"
)
def _(logits):
    return logits - logits.logsumexp(-1, keepdim=True).detach()


@_at_log_probs("surprise-returned", "log-probabilities are 0 or below: are yours?", ALONE)
def _(logits):
    return -F.log_softmax(logits, dim=-1)


@_at_log_probs("log-probs-in-bits", "which logarithm does the formula have: that of base e, or of base 2?", ALONE)
def _(logits):
    return F.log_softmax(logits, dim=-1) / math.log(2)


@_at_log_probs("log-probs-in-base-ten", "which logarithm does the formula have: that of base e, or of base 10?", ALONE)
def _(logits):
    return F.log_softmax(logits, dim=-1) / math.log(10)


@_at_log_probs("logits-negated", "does the largest logit get the largest probability?")
def _(logits):
    return F.log_softmax(-logits, dim=-1)


# ---------------------------------------------------------------- cross_entropy


@case.step
def _scored(log_probs, targets):
    return log_probs, targets


@case.step
def _counted(_scored, ignore_index):
    counted = _scored[1] != ignore_index
    if not counted.any():
        raise ValueError(f"every target is {ignore_index}")
    return counted


@case.step
def _token_losses(_scored, _counted):
    log_probs, targets = _scored
    return -_looked_up(log_probs, targets, _counted)


@case.step
def loss(_token_losses, _counted):
    return _token_losses.sum() / _counted.sum()


def _looked_up(log_probs, targets, counted):
    """The entry of each target, 0 where it is not counted."""
    found = log_probs.gather(-1, targets.where(counted, 0).unsqueeze(-1)).squeeze(-1)
    return found.where(counted, 0.0)


def cross_entropy_inputs(draw: Draw):
    # Rows with 1, 4 and 2 counted targets of 4. The last column is counted somewhere.
    ignored = draw.tensor([[True, False, True, True], [False] * 4, [True, True, False, False]])
    uneven = draw.integers(0, 7, 3, 4).masked_fill(ignored, -100)
    yield sample("rows with 1, 4 and 2 counted targets", logits=draw.normal(3, 4, 7), targets=uneven)
    yield sample("every target counted", logits=draw.normal(2, 5, 6), targets=draw.integers(0, 6, 2, 5))
    yield sample("B, T and V all 3", logits=draw.normal(3, 3, 3), targets=draw.integers(0, 3, 3, 3))
    zeros = draw.tensor([[0, 2, 0, 0, 0], [1, 4, 3, 0, 2]])
    yield sample("ignore_index = 0", logits=draw.normal(2, 5, 6), targets=zeros, ignore_index=0)
    middle = draw.tensor([[3, 0, 1], [3, 3, 4]])
    yield sample("ignore_index = 3", logits=draw.normal(2, 3, 5), targets=middle, ignore_index=3)
    yield sample("two leading axes and positions", logits=draw.normal(2, 3, 4, 5), targets=draw.integers(0, 5, 2, 3, 4))
    rare = {"logits": draw.tensor([[IMPROBABLE] * 4]), "targets": draw.tensor([[1, 2, 3, 4]])}
    yield sample("probabilities of 1e-8 to 1e-12", gradient=False, **rare)
    far = draw.tensor([[[0.0, -200.0, -400.0], [-300.0, -100.0, 0.0]], [[1e4, 0.0, -1e4], [9000.0, 1e4, 9500.0]]])
    yield sample("logits of -200 and 10,000", gradient=False, logits=far, targets=draw.tensor([[1, 2], [0, 2]]))
    yield sample(
        "one row near 130",
        logits=draw.normal(1, 3, 4) + draw.tensor([130.0, 0.0, -130.0])[:, None],
        targets=draw.tensor([[1, 3, 0]]),
    )
    yield refusal("targets that are all -100", ValueError, logits=draw.normal(2, 3, 5), targets=draw.tensor([[-100] * 3] * 2))
    yield refusal(
        "targets that are all 2, with ignore_index = 2",
        ValueError,
        logits=draw.normal(1, 3, 5),
        targets=draw.tensor([[2] * 3]),
        ignore_index=2,
    )


case.exercise(
    "cross_entropy(logits, targets, ignore_index=-100)",
    returns="loss",
    inputs=cross_entropy_inputs,
    points=3,
    lesson="The mean surprise",
    hints=(
        "Each position has V log-probabilities. Which one of them says how well the model did there?",
        "Look up one entry a position, leave out those that are not counted, average over the rest, the whole batch at once.",
        "loss = -(1 / N) sum over counted positions of log_probs[b,t,targets[b,t]], with N the number of counted positions",
    ),
    reference=lambda logits, targets, ignore_index=-100: F.nll_loss(
        F.log_softmax(logits, -1).flatten(0, -2), targets.flatten(), ignore_index=ignore_index
    ),
    golden=lambda real: {"logits": real["logits"][:, :-1], "targets": real.ids[:, 1:]},
    forbidden=("cross_entropy", "log_softmax"),
)


def _in_loss(id, text, at="loss"):
    return case.fault(id, at=at, tensor="loss", text=text)


@_in_loss("loss-shifts-again", "the targets are shifted already: what is trained if the loss shifts once more?", at="_scored")
def _(log_probs, targets):
    return log_probs[..., :-1, :], targets[..., 1:]


@_in_loss("last-position-only", "how many positions of a row teach the model: all, or the last?", at="_scored")
def _(log_probs, targets):
    return log_probs[..., -1:, :], targets[..., -1:]


@_in_loss("first-position-left-out", "does the first position of a row count?", at="_scored")
def _(log_probs, targets):
    return log_probs[..., 1:, :], targets[..., 1:]


@_in_loss("last-position-left-out", "does the last position of a row count?", at="_scored")
def _(log_probs, targets):
    return log_probs[..., :-1, :], targets[..., :-1]


@_in_loss("first-row-only", "how many rows of the batch are averaged over?", at="_scored")
def _(log_probs, targets):
    return log_probs[:1], targets[:1]


@_in_loss("logits-looked-up", "which numbers are looked up: the logits, or their log-probabilities?", at="_scored")
def _(logits, targets):
    return logits, targets


@_in_loss("logits-flattened-time-first", "do logits and targets run through b and t in the same order?", at="_scored")
def _(log_probs, targets):
    return log_probs.transpose(0, 1).flatten(0, -2), targets.flatten()


@_in_loss("targets-flattened-time-first", "do targets and logits run through b and t in the same order?", at="_scored")
def _(log_probs, targets):
    return log_probs.flatten(0, -2), targets.transpose(0, 1).flatten()


@_in_loss(
    "log-probs-reshaped-to-class-second",
    "does a reshape move the vocabulary axis, or cut the same numbers in another way?",
    at="_scored",
)
def _(log_probs, targets):
    B, V = log_probs.shape[0], log_probs.shape[-1]
    return log_probs.reshape(B, V, -1).mT, targets.reshape(B, -1)


@_in_loss(
    "logits-reshaped-to-class-second",
    "does a reshape of the logits move the vocabulary axis, or cut the same numbers in another way?",
    at="_scored",
)
def _(logits, targets):
    B, V = logits.shape[0], logits.shape[-1]
    return F.log_softmax(logits.reshape(B, V, -1), dim=1).mT, targets.reshape(B, -1)


@_in_loss(
    "class-axis-moved-for-three-axes", "your vocabulary axis is moved from place 2 to place 1: is it always axis 2?", at="_scored"
)
def _(log_probs, targets):
    F.nll_loss(log_probs.transpose(1, 2), targets)
    return log_probs, targets


@_in_loss("three-axes-unpacked", "how many axes may stand in front of the vocabulary: always two?", at="_scored")
def _(log_probs, targets):
    B, T, V = log_probs.shape
    return log_probs, targets


@_in_loss(
    "ignore-index-unused",
    "the caller says which target is not counted: do you ask for that one, or always for -100?",
    at="_counted",
)
def _(_scored):
    counted = _scored[1] != -100
    if not counted.any():
        raise ValueError("every target is -100")
    return counted


@_in_loss("nothing-counted-accepted", "what is the mean of nothing, and what does it do to every weight?", at="_counted")
def _(_scored, ignore_index):
    return _scored[1] != ignore_index


@_in_loss("nothing-counted-other-error", "which error does the lesson name where nothing is counted?", at="_counted")
def _(_scored, ignore_index):
    counted = _scored[1] != ignore_index
    if not counted.any():
        raise AssertionError
    return counted


@_in_loss("some-ignored-refused", "may some of the targets be ignored, as long as one is left?", at="_counted")
def _(_scored, ignore_index):
    counted = _scored[1] != ignore_index
    if not counted.all():
        raise ValueError(ANY)
    return counted


@_in_loss(
    "entropy-of-the-model",
    "is the surprise averaged over the model's own guesses, or taken at the token that came?",
    at="_token_losses",
)
def _(_scored, _counted):
    return -(_scored[0].exp() * _scored[0]).sum(-1).where(_counted, 0.0)


@_in_loss("loss-sign-missing", "is a log-probability the surprise, or its negative?", at="_token_losses")
def _(right):
    return -right


@_in_loss("targets-unused", "the best guess of the model, or the token that came: which one is looked up?", at="_token_losses")
def _(_scored, _counted):
    return -_scored[0].amax(-1).where(_counted, 0.0)


@_in_loss("all-tokens-summed", "do the tokens that did not come add to the loss?", at="_token_losses")
def _(_scored, _counted):
    return -_scored[0].sum(-1).where(_counted, 0.0)


def _by_gather(log_probs, targets):
    return log_probs.gather(-1, targets.unsqueeze(-1)).squeeze(-1)


def _by_flat_gather(log_probs, targets):
    return log_probs.flatten(0, -2).gather(1, targets.flatten().unsqueeze(1)).view_as(targets)


def _by_index(log_probs, targets):
    return log_probs.flatten(0, -2)[torch.arange(targets.numel(), device=targets.device), targets.flatten()].view_as(targets)


def _looking_up_all(how, name):
    """All targets are looked up, ignored ones too. What that raises depends on how they are looked up."""
    question = "a target of -100 is no place in the vocabulary: who keeps it out of the look-up?"

    @_in_loss(f"ignored-looked-up-by-{name}", question, at="_token_losses")
    def _(_scored, _counted):
        return -how(*_scored).where(_counted, 0.0)

    @_in_loss(f"ignored-looked-up-and-averaged-by-{name}", "which targets are not counted, and who keeps them out?")
    def _(_scored):
        return -how(*_scored).mean()


for _how, _name in ((_by_gather, "gather"), (_by_flat_gather, "flat-gather"), (_by_index, "index")):
    _looking_up_all(_how, _name)


@_in_loss("ignored-taken-for-token-0", "a position that is not counted: do you leave it out, or train token 0 there?")
def _(_scored, ignore_index):
    log_probs, targets = _scored
    return -_by_gather(log_probs, targets.masked_fill(targets == ignore_index, 0)).mean()


@_in_loss("targets-clamped", "what becomes of a target of -100 that is raised to 0?")
def _(_scored):
    log_probs, targets = _scored
    return -_by_gather(log_probs, targets.clamp_min(0)).mean()


@_in_loss("loss-summed", "is the loss the sum of the surprises, or their mean?")
def _(_token_losses):
    return _token_losses.sum()


@_in_loss("ignored-in-the-count", "you leave positions out of the sum: are they still in the number that you divide by?")
def _(_token_losses):
    return _token_losses.mean()


@_in_loss("losses-of-0-left-out", "a token that was certain costs 0: does it count in the mean?")
def _(_token_losses, _counted):
    return _token_losses[_counted & (_token_losses != 0)].mean()


@_in_loss("logarithm-of-the-mean", "do you average the surprises, or take the surprise of an average?")
def _(_token_losses, _counted):
    return -(-_token_losses[_counted]).exp().mean().log()


@_in_loss("mean-of-row-means", "nine tokens in one row, one in another: what is every token's weight?")
def _(_token_losses, _counted):
    return (_token_losses.sum(-1) / _counted.sum(-1)).mean()


@_in_loss("mean-of-column-means", "does every counted token weigh the same, whichever position it stands at?")
def _(_token_losses, _counted):
    return (_token_losses.sum(0) / _counted.sum(0)).mean()


@_in_loss("loss-a-row", "do you divide by the number of rows, or by the number of counted tokens?")
def _(_token_losses):
    return _token_losses.sum(-1).mean()


@_in_loss("loss-over-batch-size", "do you divide by the size of the batch, or by the number of counted tokens?")
def _(_token_losses):
    return _token_losses.sum() / _token_losses.shape[0]


@_in_loss("loss-over-row-length", "do you divide by the length of a row, or by the number of counted tokens in all of them?")
def _(_token_losses):
    return _token_losses.sum() / _token_losses.shape[-1]


@_in_loss(
    "mean-over-vocabulary", "your mean runs over V numbers at each position, all but one of them 0: by what is it too small?"
)
def _(right, _scored):
    return right / _scored[0].shape[-1]


@_in_loss("loss-in-bits", "is the loss in nats, or in bits?")
def _(right):
    return right / math.log(2)


@_in_loss("loss-exponentiated", "is this the loss, or the perplexity?")
def _(right):
    return right.exp()


@_in_loss("loss-not-averaged", "how many axes has one number?")
def _(_token_losses):
    return _token_losses


@_in_loss("counted-losses-not-averaged", "how many axes has the mean of the counted positions?")
def _(_token_losses, _counted):
    return _token_losses[_counted]


@_in_loss("loss-of-shape-one", "is the loss a tensor without axes, or one with an axis of size 1?")
def _(right):
    return right.reshape(1)


@_in_loss("loss-is-a-number", "can a gradient pass back through a Python number?")
def _(right):
    return right.item()


# ---------------------------------------------------------------- bits_per_token, perplexity, uniform_loss


@case.step
def bits(nats):
    return nats / math.log(2)


@case.step
def perplexity(nats):
    return _apply(math.exp, torch.exp, nats)


@case.step
def uniform(vocab_size):
    return math.log(vocab_size)


def _apply(function, elementwise, nats):
    return elementwise(nats) if torch.is_tensor(nats) else function(nats)


def nats_inputs(draw: Draw):
    yield sample("a tensor of losses", nats=draw.normal(3, 4).abs() + 0.5)
    yield sample("3.0 nats", nats=3.0)
    yield sample("ln 50257 = 10.8249 nats", nats=math.log(50257))
    yield sample("a loss of 0", nats=0.0)
    yield sample("a tensor without axes", nats=draw.normal(1).abs().squeeze() + 1.5)


case.exercise(
    "bits_per_token(nats)",
    returns="bits",
    inputs=nats_inputs,
    points=1,
    lesson="The same number in three dresses",
    hints=(
        "How many yes-or-no questions tell 8 equally likely tokens apart, and how many nats are ln 8?",
        "A bit is ln 2 nats. Does a number become larger or smaller in the smaller unit?",
        "bits = nats / ln 2",
    ),
    reference=lambda nats: nats * math.log2(math.e),
)
case.exercise(
    "perplexity(nats)",
    returns="perplexity",
    inputs=nats_inputs,
    points=1,
    lesson="The same number in three dresses",
    hints=(
        "A uniform guess among V tokens costs ln V nats. What turns ln V back into V?",
        "A number and a tensor need different functions of the same name: how do you tell which one you were given?",
        "perplexity = exp(nats)",
    ),
    reference=lambda nats: math.e**nats,
)
case.exercise(
    "uniform_loss(vocab_size)",
    returns="uniform",
    inputs=lambda draw: [sample(f"V = {size}", vocab_size=size) for size in (50257, 256, 2, 1)],
    points=1,
    lesson="The same number in three dresses",
    hints=(
        "What does a model that knows nothing give to each of V tokens?",
        "The loss is minus the logarithm of the probability of the token that came.",
        "loss = -ln(1 / V) = ln V",
    ),
    reference=lambda vocab_size: F.cross_entropy(torch.zeros(vocab_size, dtype=torch.float64), torch.tensor(0)).item(),
)


@case.fault("bits-unchanged", at="bits", text="how many nats is one bit?")
def _(nats):
    return nats


@case.fault("bits-multiplied", at="bits", text="ln 8 nats are 3 bits: is that more than ln 8, or less?")
def _(nats):
    return nats * math.log(2)


@case.fault("bits-halved", at="bits", text="is one bit 2 nats, or ln 2 nats?")
def _(nats):
    return nats / 2


@case.fault("bits-in-base-ten", at="bits", text="how many nats is one bit: ln 2, or ln 10?")
def _(nats):
    return nats / math.log(10)


@case.fault("bits-by-log10-of-2", at="bits", text="which base has your logarithm of 2?")
def _(nats):
    return nats / math.log10(2)


@case.fault("bits-per-byte-assumed", at="bits", text="how many bytes has a token, and does this function ask?")
def _(nats):
    return nats / math.log(2) / 4


@case.fault("bits-by-powers-of-two", at="bits", text="a change of unit multiplies by a number: what does yours do?")
def _(nats):
    return 2**nats


@case.fault(
    "bits-by-logarithm", at="bits", text="the loss is a logarithm already: how many logarithms does a change of unit take?"
)
def _(nats):
    return _apply(math.log2, torch.log2, nats)


@case.fault(
    "perplexity-unchanged", at="perplexity", text="among how many equally likely tokens does a model with a loss of 0 hesitate?"
)
def _(nats):
    return nats


@case.fault("perplexity-base-two", at="perplexity", text="a perplexity of 8 for 3 nats: which base was used?")
def _(nats):
    return 2**nats


@case.fault("perplexity-base-ten", at="perplexity", text="a perplexity of 1000 for 3 nats: which base was used?")
def _(nats):
    return 10**nats


@case.fault("perplexity-of-bits", at="perplexity", text="is what you raise e to in nats, or in bits?")
def _(nats):
    return _apply(math.exp, torch.exp, nats / math.log(2))


@case.fault("perplexity-inverted", at="perplexity", text="is the perplexity a number of tokens, or the share of one of them?")
def _(nats):
    return _apply(math.exp, torch.exp, -nats)


@case.fault("perplexity-logarithm", at="perplexity", text="does the perplexity grow faster than the loss, or slower?")
def _(nats):
    return _apply(math.log, torch.log, nats)


@case.fault("perplexity-minus-one", at="perplexity", text="a loss of 0 leaves how many tokens to choose from?")
def _(nats):
    return _apply(math.expm1, torch.expm1, nats)


def _kinds(name, at, function, elementwise):
    """The mistakes of taking a number for a tensor, or a tensor for a number."""

    @case.fault(
        f"{name}-of-numbers-only", at=at, text="the loss may be a tensor of several losses: can yours become one Python number?"
    )
    def _(nats):
        return function(float(nats))

    @case.fault(f"{name}-always-a-tensor", at=at, text="a number is to give a number: is yours one, or a tensor?")
    def _(nats):
        return elementwise(torch.as_tensor(nats))

    @case.fault(f"{name}-without-axes-a-number", at=at, text="a tensor without axes is a tensor: which kind do you return?")
    def _(right):
        return right.item() if torch.is_tensor(right) and right.dim() == 0 else right

    @case.fault(f"{name}-of-the-mean", at=at, text="a tensor of losses: one answer for each, or one for their mean?")
    def _(nats):
        return _apply(function, elementwise, nats.mean() if torch.is_tensor(nats) else nats)


_kinds("bits", "bits", lambda nats: nats / math.log(2), lambda nats: nats / math.log(2))
_kinds("perplexity", "perplexity", math.exp, torch.exp)


@case.fault("perplexity-averaged", at="perplexity", text="a tensor of losses: one perplexity for each, or the mean of them?")
def _(right):
    return right.mean() if torch.is_tensor(right) else right


@case.fault("perplexity-by-method", at="perplexity", text="the loss may be a plain number: has a number the methods of a tensor?")
def _(nats):
    return nats.exp()


@case.fault(
    "perplexity-by-tensor-function", at="perplexity", text="the loss may be a plain number: does a tensor's function take one?"
)
def _(nats):
    return torch.exp(nats)


@case.fault("uniform-probability", at="uniform", text="is this the probability of a token, or the surprise at it?")
def _(vocab_size):
    return 1 / vocab_size


@case.fault("uniform-perplexity", at="uniform", text="is this the loss, or the perplexity?")
def _(vocab_size):
    return float(vocab_size)


@case.fault("uniform-negative", at="uniform", text="can a surprise be negative?")
def _(vocab_size):
    return -math.log(vocab_size)


@case.fault("uniform-in-bits", at="uniform", text="is the loss in nats, or in bits?")
def _(vocab_size):
    return math.log2(vocab_size)


@case.fault("uniform-in-base-ten", at="uniform", text="which logarithm measures in nats?")
def _(vocab_size):
    return math.log10(vocab_size)


@case.fault("uniform-without-one-token", at="uniform", text="among how many tokens does the model choose: V, or V - 1?")
def _(vocab_size):
    return math.log(vocab_size - 1)


@case.fault("uniform-with-one-token-more", at="uniform", text="among how many tokens does the model choose: V, or V + 1?")
def _(vocab_size):
    return math.log(vocab_size + 1)


@case.fault("uniform-share-of-loss", at="uniform", text="every token costs ln V: are the costs weighed once, or twice?")
def _(vocab_size):
    return math.log(vocab_size) / vocab_size


@case.fault("uniform-is-a-tensor", at="uniform", text="a vocabulary size is a number: is your loss one, or a tensor?")
def _(vocab_size):
    return torch.tensor(float(vocab_size)).log()


# ---------------------------------------------------------------- adamw_step
# One step of this exercise is a whole run of the optimiser, by rules that are steps of their own: a mistake is another rule.


@case.step
def _betas(betas):
    return tuple(betas)


@case.step
def _absent():
    return "skipped"  # what a gradient of None does: "skipped", "zero", "decays" or "ends the step"


def _by_place_made_to_fit(call, index, place, p):
    """The place among the parameters that have a gradient; m and v start anew where their shape does not fit."""
    return place


@case.step
def _memory():
    return lambda call, index, place, p: index  # whose m, v and t a parameter gets


@case.step
def _clock():
    return lambda steps, call, looked_at: steps  # t


@case.step
def _mean():
    return lambda m, g, beta1, beta2: beta1 * m + (1 - beta1) * g


@case.step
def _square():
    return lambda v, g, beta1, beta2: beta2 * v + (1 - beta2) * g * g


@case.step
def _hats():
    return lambda m, v, t, beta1, beta2: (m / (1 - beta1**t), v / (1 - beta2**t))


@case.step
def _kept():
    return lambda m, v, m_hat, v_hat: (m, v)


@case.step
def _root():
    return lambda v, v_hat, t, beta2, eps: v_hat.sqrt() + eps


@case.step
def _move():
    return lambda p, g, m_hat, root, lr: p - lr * m_hat / root


@case.step
def _decay():
    """What is added to the gradient, and what the decay makes of the moved parameter."""
    return (lambda p, weight_decay: 0.0, lambda p, moved, root, lr, weight_decay: moved - lr * weight_decay * p)


@case.step
def _given(params, grads):
    return tuple(params), tuple(map(tuple, grads))


@case.step
def _walk(_given, lr, eps, weight_decay, _betas, _absent, _memory, _clock, _mean, _square, _hats, _kept, _root, _move, _decay):
    """m and v of the first parameter after the last step, and all parameters."""
    params, moments = list(_given[0]), {}
    shown, looked_at = (torch.zeros_like(params[0]),) * 2, 0
    for call, grads in enumerate(_given[1]):
        place = 0
        for index, (p, g) in enumerate(zip(params, grads, strict=True)):
            if g is None and _absent == "ends the step":
                break
            if g is None and _absent != "zero":
                params[index] = p - lr * weight_decay * p if _absent == "decays" else p
                continue
            g = (torch.zeros_like(p) if g is None else g) + _decay[0](p, weight_decay)
            key = _memory(call, index, place, p)
            m, v, steps = moments.get(key, (torch.zeros_like(p), torch.zeros_like(p), 0))
            if _memory is _by_place_made_to_fit and m.shape != p.shape:
                m, v = torch.zeros_like(p), torch.zeros_like(p)
            place, looked_at = place + 1, looked_at + 1
            t = _clock(steps + 1, call, looked_at)
            m, v = _mean(m, g, *_betas), _square(v, g, *_betas)
            m_hat, v_hat = _hats(m, v, t, *_betas)
            root = _root(v, v_hat, t, _betas[1], eps)
            params[index] = _decay[1](p, _move(p, g, m_hat, root, lr), root, lr, weight_decay)
            moments[key] = *_kept(m, v, m_hat, v_hat), steps + 1
            shown = (m, v) if index == 0 else shown
    return *shown, params


@case.step
def m(_walk):
    return _walk[0]


@case.step
def v(_walk):
    return _walk[1]


@case.step
def updated(_walk, m, v):
    return _walk[2]  # m and v are named because it comes from them


def adamw_inputs(draw: Draw):
    options = {"lr": 0.2, "betas": (0.6, 0.8), "eps": 0.5, "weight_decay": 0.6}
    shapes = (3, 4), (5,), (2, 3, 2)
    yield sample("three parameters, three steps", gradient=False, **_problem(draw, shapes, 3), **options)
    by_hand = {"params": [draw.tensor([1.0, -2.0])], "grads": [[draw.tensor([4.0, 0.04])]]}
    yield sample("one step from [1, -2], gradient [4, 0.04]", gradient=False, **by_hand, lr=0.1, weight_decay=0.5)
    yield sample("one parameter, two steps, the defaults", gradient=False, **_problem(draw, [(2, 3)], 2), lr=0.1)
    absent = _problem(draw, [(3, 4), (3, 4), (5,)], 4)
    for call, index in ((0, 1), (1, 0), (2, 2)):
        absent["grads"][call][index] = None
    yield sample("some gradients are None", gradient=False, **absent, lr=0.1, weight_decay=0.5)
    still = _problem(draw, [(2, 4)], 3)
    for step in still["grads"]:
        step[0][:, 1:3] = 0
    yield sample("some gradients are 0", gradient=False, **still, lr=0.1, weight_decay=0.4)
    yield sample("20 steps", gradient=False, **_problem(draw, [(4, 3), (6,)], 20), lr=0.05, weight_decay=0.1)


def _problem(draw, shapes, calls):
    """Parameters and gradients. No gradient is near 0, where a quotient of small numbers loses digits."""
    grads = [[_away_from_zero(draw.normal(*shape)) for shape in shapes] for _ in range(calls)]
    return {"params": [_away_from_zero(draw.normal(*shape)) for shape in shapes], "grads": grads}


def _away_from_zero(tensor):
    return tensor + 0.2 * tensor.sign()


def _library_adamw(params, grads, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    own = [nn.Parameter(tensor.clone()) for tensor in params]
    optimiser = torch.optim.AdamW(own, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=False)
    for step in grads:
        for p, g in zip(own, step, strict=True):
            p.grad = g
        optimiser.step()
    return [p.detach() for p in own]


case.exercise(
    "adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0)",
    returns="updated",
    inputs=adamw_inputs,
    points=4,
    lesson="A step of about lr",
    hints=(
        "If all gradients were a hundred times larger, how much longer should the step be?",
        "A parameter remembers a running mean of g, one of g^2, and its number of steps. Both means start at 0: what mends that?",
        "m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  p = p - lr wd p - lr (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + eps)",
    ),
    probe="adamw_step",
    seconds=30.0,  # whoever uses the library's optimiser waits for its imports once
    reference=_library_adamw,
    forbidden=(
        "torch.optim.Optimizer.__init__",
        "torch.optim.adam._single_tensor_adam",
        "torch.optim.adam._multi_tensor_adam",
        "_fused_adam",
    ),
)


@case.fault("betas-swapped", at="_betas", tensor="m", text="which of the two betas belongs to m, and which to v?")
def _(betas):
    return tuple(reversed(betas))


@case.fault("betas-both-first", at="_betas", tensor="v", text="which beta does v forget by?")
def _(betas):
    return betas[0], betas[0]


@case.fault("betas-both-second", at="_betas", tensor="m", text="which beta does m forget by?")
def _(betas):
    return betas[1], betas[1]


_mistake("betas-fixed", "_betas", "m", "do you use the betas that the caller gives?", (0.9, 0.999))

# The gradient of None

_mistake("none-taken-for-zero", "_absent", "m", "a gradient of None: is it one of 0, or does the parameter wait?", "zero")
_mistake("none-still-decays", "_absent", "updated", "a parameter that is skipped: does it decay?", "decays")
_mistake(
    "none-ends-the-step",
    "_absent",
    "updated",
    "a gradient of None skips one parameter: what of those behind it?",
    "ends the step",
)

# Whose m, v and t

_mistake(
    "state-not-kept",
    "_memory",
    "m",
    "what does the next call find in the dictionary that it is given?",
    lambda call, index, place, p: (call, index),
)
_mistake("state-shared-by-all", "_memory", "m", "has every parameter a memory of its own?", lambda call, index, place, p: 0)
_mistake(
    "state-shared-by-shape",
    "_memory",
    "m",
    "two parameters of one shape: has each a memory of its own?",
    lambda call, index, place, p: p.shape,
)
_mistake(
    "state-by-place-and-made-to-fit",
    "_memory",
    "m",
    "when a gradient before it is None, does a parameter still find its own memory, t included?",
    _by_place_made_to_fit,
)
_mistake(
    "state-by-place-among-present",
    "_memory",
    "m",
    "when a gradient before it is None, does a parameter still find its own memory?",
    lambda call, index, place, p: place,
)


@case.fault("t-starts-at-zero-and-divides", at="updated", text="what is t in the first step, and what is 1 - beta^0?")
def _(_betas):
    return 1 / (1 - _betas[0] ** 0)


_mistake(
    "t-starts-at-zero",
    "_clock",
    "updated",
    "what is t in the first step, and what is 1 - beta^0?",
    lambda steps, call, looked_at: steps - 1,
)
_mistake(
    "t-starts-at-two", "_clock", "updated", "what is t in the first step: 1, or 2?", lambda steps, call, looked_at: steps + 1
)
_mistake(
    "t-always-one",
    "_clock",
    "updated",
    "does t grow from step to step, and where is it in your hats?",
    lambda steps, call, looked_at: 1,
)
_mistake(
    "t-grows-with-every-parameter",
    "_clock",
    "updated",
    "by how much does t grow in one step of three parameters?",
    lambda steps, call, looked_at: looked_at,
)
_mistake(
    "t-one-for-all",
    "_clock",
    "updated",
    "does the t of a skipped parameter wait, or is it one for all?",
    lambda steps, call, looked_at: call + 1,
)

# m and v

_mistake("m-weighed-by-beta2", "_mean", "m", "do the two weights of m add up to 1?", lambda m, g, b1, b2: b1 * m + (1 - b2) * g)
_mistake(
    "v-weighed-by-beta1", "_square", "v", "do the two weights of v add up to 1?", lambda v, g, b1, b2: b2 * v + (1 - b1) * g * g
)
_mistake("m-gradient-not-weighed", "_mean", "m", "by what is the new gradient weighed in m?", lambda m, g, b1, b2: b1 * m + g)
_mistake(
    "m-weights-swapped", "_mean", "m", "which share of m is old, and which is new?", lambda m, g, b1, b2: (1 - b1) * m + b1 * g
)
_mistake("m-forgets-nothing", "_mean", "m", "what is the old m multiplied by?", lambda m, g, b1, b2: m + (1 - b1) * g)
_mistake("m-remembers-nothing", "_mean", "m", "what is left in m of the gradients before?", lambda m, g, b1, b2: g)
_mistake(
    "m-of-the-last-only",
    "_mean",
    "m",
    "is the new gradient added to the old m, or put in its place?",
    lambda m, g, b1, b2: (1 - b1) * g,
)
_mistake(
    "m-of-squares",
    "_mean",
    "m",
    "which of the two means holds g, and which its square?",
    lambda m, g, b1, b2: b1 * m + (1 - b1) * g * g,
)
_mistake("v-gradient-not-weighed", "_square", "v", "by what is the new square weighed in v?", lambda v, g, b1, b2: b2 * v + g * g)
_mistake(
    "v-weights-swapped",
    "_square",
    "v",
    "which share of v is old, and which is new?",
    lambda v, g, b1, b2: (1 - b2) * v + b2 * g * g,
)
_mistake("v-forgets-nothing", "_square", "v", "what is the old v multiplied by?", lambda v, g, b1, b2: v + (1 - b2) * g * g)
_mistake(
    "v-of-the-last-only",
    "_square",
    "v",
    "is the new square added to the old v, or put in its place?",
    lambda v, g, b1, b2: (1 - b2) * g * g,
)
_mistake(
    "v-not-squared", "_square", "v", "v is a running mean of what: g, or its square?", lambda v, g, b1, b2: b2 * v + (1 - b2) * g
)
_mistake(
    "v-of-absolute-values",
    "_square",
    "v",
    "is the size of g taken as its square?",
    lambda v, g, b1, b2: b2 * v + (1 - b2) * g.abs(),
)
_mistake(
    "v-weight-squared-too",
    "_square",
    "v",
    "what is squared: g, or its weight as well?",
    lambda v, g, b1, b2: b2 * v + ((1 - b2) * g).square(),
)
_mistake(
    "v-one-for-the-tensor",
    "_square",
    "v",
    "has every entry a v of its own?",
    lambda v, g, b1, b2: b2 * v + (1 - b2) * g.square().mean().expand_as(g),
)
_mistake(
    "v-never-falls",
    "_square",
    "v",
    "may v become smaller when the gradients do?",
    lambda v, g, b1, b2: torch.maximum(v, b2 * v + (1 - b2) * g * g),
)

# The hats

_mistake(
    "hats-missing",
    "_hats",
    "updated",
    "m and v start at 0: what would the first step be without the hats?",
    lambda m, v, t, b1, b2: (m, v),
)
_mistake(
    "m-hat-missing",
    "_hats",
    "updated",
    "m starts at 0 too: which of the two means wears a hat?",
    lambda m, v, t, b1, b2: (m, v / (1 - b2**t)),
)
_mistake(
    "v-hat-missing",
    "_hats",
    "updated",
    "v starts at 0 too: which of the two means wears a hat?",
    lambda m, v, t, b1, b2: (m / (1 - b1**t), v),
)
_mistake(
    "hats-swapped",
    "_hats",
    "updated",
    "which beta is in the hat of m, and which in that of v?",
    lambda m, v, t, b1, b2: (m / (1 - b2**t), v / (1 - b1**t)),
)
_mistake(
    "hats-both-beta1",
    "_hats",
    "updated",
    "which beta is in the hat of v?",
    lambda m, v, t, b1, b2: (m / (1 - b1**t), v / (1 - b1**t)),
)
_mistake(
    "hats-both-beta2",
    "_hats",
    "updated",
    "which beta is in the hat of m?",
    lambda m, v, t, b1, b2: (m / (1 - b2**t), v / (1 - b2**t)),
)
_mistake(
    "hats-multiply",
    "_hats",
    "updated",
    "m is too small at first: does your hat make it larger?",
    lambda m, v, t, b1, b2: (m * (1 - b1**t), v * (1 - b2**t)),
)
_mistake(
    "hats-beta-times-t",
    "_hats",
    "updated",
    "beta^t: is it beta times t?",
    lambda m, v, t, b1, b2: (m / (1 - b1 * t), v / (1 - b2 * t)),
)
_mistake(
    "hats-kept",
    "_kept",
    "m",
    "what is remembered for the next step: m and v, or their hats?",
    lambda m, v, m_hat, v_hat: (m_hat, v_hat),
)

# The step

_mistake(
    "eps-inside-root",
    "_root",
    "updated",
    "is eps inside the root, or outside?",
    lambda v, v_hat, t, b2, eps: (v_hat + eps).sqrt(),
)
_mistake(
    "eps-missing", "_root", "updated", "what is 0 / 0, where no gradient has come yet?", lambda v, v_hat, t, b2, eps: v_hat.sqrt()
)
_mistake(
    "eps-fixed", "_root", "updated", "do you use the eps that the caller gives?", lambda v, v_hat, t, b2, eps: v_hat.sqrt() + 1e-8
)
_mistake(
    "eps-added-before-hat",
    "_root",
    "updated",
    "is eps added to the root of v, or to that of v_hat?",
    lambda v, v_hat, t, b2, eps: (v.sqrt() + eps) / (1 - b2**t) ** 0.5,
)
_mistake(
    "eps-as-a-floor",
    "_root",
    "updated",
    "is eps added, or the least that the root may be?",
    lambda v, v_hat, t, b2, eps: v_hat.sqrt().clamp_min(eps),
)
_mistake("eps-subtracted", "_root", "updated", "is eps added to the root?", lambda v, v_hat, t, b2, eps: v_hat.sqrt() - eps)
_mistake(
    "root-missing",
    "_root",
    "updated",
    "v is a square: what has the size of a gradient?",
    lambda v, v_hat, t, b2, eps: v_hat + eps,
)
_mistake(
    "step-uphill",
    "_move",
    "updated",
    "does the loss fall along the gradient, or against it?",
    lambda p, g, m_hat, root, lr: p + lr * m_hat / root,
)
_mistake(
    "step-of-gradient",
    "_move",
    "updated",
    "which is divided by the root: the gradient, or its running mean?",
    lambda p, g, m_hat, root, lr: p - lr * g / root,
)
_mistake(
    "step-not-divided",
    "_move",
    "updated",
    "a gradient a hundred times larger: is your step as long as before?",
    lambda p, g, m_hat, root, lr: p - lr * m_hat,
)
_mistake(
    "step-multiplied",
    "_move",
    "updated",
    "is m_hat divided by the root, or multiplied?",
    lambda p, g, m_hat, root, lr: p - lr * m_hat * root,
)
_mistake(
    "step-without-rate",
    "_move",
    "updated",
    "how long is your first step, if lr is 0.1?",
    lambda p, g, m_hat, root, lr: p - m_hat / root,
)
_mistake(
    "step-with-fixed-rate",
    "_move",
    "updated",
    "do you use the lr that the caller gives?",
    lambda p, g, m_hat, root, lr: p - 1e-3 * m_hat / root,
)
_mistake(
    "step-replaces-parameter",
    "_move",
    "updated",
    "is the step taken from the parameter, or put in its place?",
    lambda p, g, m_hat, root, lr: -lr * m_hat / root,
)


def _decaying(id, tensor, text, before, after):
    _mistake(id, "_decay", tensor, text, (before or (lambda p, wd: 0.0), after or (lambda p, moved, root, lr, wd: moved)))


_decaying(
    "decay-in-the-gradient", "m", "the decay goes into the gradient: what does the division do to it?", lambda p, wd: wd * p, None
)
_decaying(
    "decay-twice",
    "m",
    "how often does a parameter decay in one step?",
    lambda p, wd: wd * p,
    lambda p, moved, root, lr, wd: moved - lr * wd * p,
)
_decaying("decay-ignored", "updated", "what becomes of a parameter whose gradient is 0?", None, None)
_decaying(
    "decay-without-rate",
    "updated",
    "with lr 0.1 and weight_decay 0.5, what becomes of 1?",
    None,
    lambda p, moved, root, lr, wd: moved - wd * p,
)
_decaying(
    "decay-grows",
    "updated",
    "with lr 0.1 and weight_decay 0.5, is 1 smaller afterwards?",
    None,
    lambda p, moved, root, lr, wd: moved + lr * wd * p,
)
_decaying(
    "decay-after-the-step",
    "updated",
    "which p decays: the one before the step, or the one after?",
    None,
    lambda p, moved, root, lr, wd: moved - lr * wd * moved,
)
_decaying(
    "decay-divided-by-root",
    "updated",
    "is the decay divided by the root?",
    None,
    lambda p, moved, root, lr, wd: moved - lr * wd * p / root,
)
_decaying(
    "decay-of-matrices-only",
    "updated",
    "who chooses the parameters that decay: this function, or its caller?",
    None,
    lambda p, moved, root, lr, wd: moved - lr * wd * p if p.dim() > 1 else moved,
)
_decaying(
    "decay-by-sign",
    "updated",
    "is the decay a share of p, or the same for every p?",
    None,
    lambda p, moved, root, lr, wd: moved - lr * wd * p.sign(),
)


@case.fault(
    "parameters-not-written", at="updated", text="the caller's tensor: does it hold the new numbers, or only your name for it?"
)
def _(params):
    return params


@case.fault("first-parameter-only", at="updated", text="how many parameters move in one step?")
def _(right, params):
    return right[:1] + params[1:]


@case.fault("last-parameter-left-out", at="updated", text="how many parameters move in one step, and is the last one among them?")
def _(right, params):
    return right[:-1] + params[-1:]


@case.fault(
    "written-under-autograd",
    at="updated",
    text="autograd keeps watch over parameters: what must you switch off to write into them?",
)
def _(params):
    return [nn.Parameter(p).sub_(0) for p in params]


# ---------------------------------------------------------------- learning_rate


@case.step
def _rising(step, max_lr, warmup_steps):
    return max_lr * (step + 1) / max(warmup_steps, 1)


@case.step
def _is_rising(step, warmup_steps):
    return step < warmup_steps


@case.step
def _u(step, warmup_steps, total_steps):
    return (step - warmup_steps) / (total_steps - warmup_steps)


@case.step
def _share(_u):
    return (1 + math.cos(math.pi * _u)) / 2


@case.step
def _falling(_share, max_lr, min_lr):
    return min_lr + (max_lr - min_lr) * _share


@case.step
def _end(min_lr):
    return min_lr


@case.step
def _has_ended(step, total_steps):
    return step >= total_steps


@case.step
def rate(_is_rising, _rising, _has_ended, _end, _falling):
    return _rising if _is_rising else _end if _has_ended else _falling


def rate_inputs(draw: Draw):
    for step, place in (
        (0, "the first"),
        (2, "rising"),
        (4, "the last that rises"),
        (5, "the top"),
        (6, "falling"),
        (11, "falling"),
        (15, "half way down"),
        (24, "the last that falls"),
        (25, "total_steps"),
        (26, "behind the end"),
        (40, "far behind the end"),
    ):
        yield sample(f"step {step} of 25, {place}", step=step, max_lr=0.6, min_lr=0.05, warmup_steps=5, total_steps=25)
    for step in (0, 3, 9):
        yield sample(f"step {step} of 8 without warm-up", step=step, max_lr=0.5, min_lr=0.1, warmup_steps=0, total_steps=8)
    for step in (0, 5):
        yield sample(f"step {step} of 12, down to 0", step=step, max_lr=1.0, min_lr=0.0, warmup_steps=4, total_steps=12)


def _rate_reference(step, max_lr, min_lr, warmup_steps, total_steps):
    u = min(max((step - warmup_steps) / (total_steps - warmup_steps), 0.0), 1.0)
    height = math.cos(math.pi * u / 2) ** 2
    return min((step + 1) / warmup_steps if warmup_steps else 1.0, 1.0) * (max_lr * height + min_lr * (1 - height))


case.exercise(
    "learning_rate(step, max_lr, min_lr, warmup_steps, total_steps)",
    returns="rate",
    inputs=rate_inputs,
    points=2,
    lesson="Up, down, flat",
    hints=(
        "Steps count from 0. In which of the three stretches is this one?",
        "Say as a number u from 0 to 1 how far the step is from the top to the end; half a cosine goes from 1 to -1 on the way.",
        "max_lr (step+1) / warmup;  min_lr + (max_lr - min_lr) (1 + cos(pi u)) / 2, u = (step - warmup) / (total - warmup)",
    ),
    reference=_rate_reference,
)


def _in_rate(id, at, text):
    return case.fault(id, at=at, tensor="rate", text=text)


@_in_rate("warm-up-from-zero", "_rising", "what does a step with rate 0 do?")
def _(step, max_lr, warmup_steps):
    return max_lr * step / max(warmup_steps, 1)


@_in_rate("warm-up-one-longer", "_rising", "which rate has the last step of the warm-up: max_lr, or a little less?")
def _(step, max_lr, warmup_steps):
    return max_lr * (step + 1) / (warmup_steps + 1)


@_in_rate("warm-up-missing", "_rising", "which rate has the first step?")
def _(max_lr):
    return max_lr


@_in_rate("warm-up-without-max", "_rising", "up to which rate does your line rise: max_lr, or 1?")
def _(step, warmup_steps):
    return (step + 1) / max(warmup_steps, 1)


@_in_rate("warm-up-from-min", "_rising", "does the line start from min_lr, or from 0?")
def _(step, max_lr, min_lr, warmup_steps):
    return min_lr + (max_lr - min_lr) * (step + 1) / max(warmup_steps, 1)


@_in_rate("warm-up-over-all-steps", "_rising", "after how many steps is the top reached?")
def _(step, max_lr, total_steps):
    return max_lr * (step + 1) / total_steps


@_in_rate("warm-up-in-whole-numbers", "_rising", "what does // make of 1 / 5?")
def _(step, max_lr, warmup_steps):
    return max_lr * ((step + 1) // max(warmup_steps, 1))


@_in_rate("warm-up-of-zero-divides", "_rising", "what must warmup_steps = 0 give at step 0, and what do you divide by?")
def _(step, max_lr, warmup_steps):
    return max_lr * (step + 1) / warmup_steps


@_in_rate(
    "warm-up-share-of-zero-divides", "_rising", "what must warmup_steps = 0 give at step 0, and what do you divide the step by?"
)
def _(step, max_lr, warmup_steps):
    return max_lr * ((step + 1) / warmup_steps)


@_in_rate("warm-up-stays-at-min", "_rising", "does the rate rise in the warm-up?")
def _(min_lr):
    return min_lr


@_in_rate("warm-up-ends-late", "_is_rising", "is step warmup_steps still below warmup_steps?")
def _(step, warmup_steps):
    return step <= warmup_steps


@_in_rate("warm-up-ends-early", "_is_rising", "how many steps rise: warmup_steps, or one less?")
def _(step, warmup_steps):
    return step + 1 < warmup_steps


@_in_rate("warm-up-left-out", "_is_rising", "which stretch is the first step in?")
def _():
    return False


@_in_rate("cosine-from-step-0", "_u", "at which step does the cosine start, and how long is it?")
def _(step, total_steps):
    return step / total_steps


@_in_rate("cosine-too-long", "_u", "how many steps lie between the top and the end?")
def _(step, warmup_steps, total_steps):
    return (step - warmup_steps) / total_steps


@_in_rate("cosine-starts-before-top", "_u", "what is u at step warmup_steps?")
def _(step, warmup_steps, total_steps):
    return step / (total_steps - warmup_steps)


@_in_rate("cosine-one-step-ahead", "_u", "what is u at step warmup_steps: 0, or a little more?")
def _(step, warmup_steps, total_steps):
    return (step + 1 - warmup_steps) / (total_steps - warmup_steps)


@_in_rate("cosine-ends-one-early", "_u", "at which step is u 1: at total_steps, or one before?")
def _(step, warmup_steps, total_steps):
    return (step - warmup_steps) / (total_steps - warmup_steps - 1)


@_in_rate("cosine-ends-one-late", "_u", "at which step is u 1: at total_steps, or one behind?")
def _(step, warmup_steps, total_steps):
    return (step - warmup_steps) / (total_steps - warmup_steps + 1)


@_in_rate("cosine-not-halved", "_share", "1 + cos goes from 2 to 0: from where to where must your share go?")
def _(_u):
    return 1 + math.cos(math.pi * _u)


@_in_rate("cosine-not-lifted", "_share", "a cosine goes from 1 to -1: from where to where must your share go?")
def _(_u):
    return math.cos(math.pi * _u)


@_in_rate("cosine-lifted-outside", "_share", "is the 1 halved too?")
def _(_u):
    return 1 + math.cos(math.pi * _u) / 2


@_in_rate("cosine-without-pi", "_share", "how far does the angle of half a cosine go?")
def _(_u):
    return (1 + math.cos(_u)) / 2


@_in_rate("cosine-in-degrees", "_share", "does your cosine take degrees?")
def _(_u):
    return (1 + math.cos(180 * _u)) / 2


@_in_rate("cosine-quarter", "_share", "half a cosine, or a quarter of one?")
def _(_u):
    return math.cos(math.pi * _u / 2)


@_in_rate("cosine-whole", "_share", "half a cosine, or a whole one?")
def _(_u):
    return (1 + math.cos(2 * math.pi * _u)) / 2


@_in_rate("cosine-upward", "_share", "does the rate fall after the warm-up, or rise?")
def _(_u):
    return (1 - math.cos(math.pi * _u)) / 2


@_in_rate("sine-for-cosine", "_share", "where does a sine start, and where a cosine?")
def _(_u):
    return (1 + math.sin(math.pi * _u)) / 2


@_in_rate("line-for-cosine", "_share", "is the way down straight, or half a cosine?")
def _(_u):
    return 1 - _u


@_in_rate("no-decay", "_share", "does the rate fall after the warm-up, and what does // make of 1 / 20?")
def _():
    return 1.0


@_in_rate("falls-to-zero", "_falling", "where does the cosine end: at 0, or at min_lr?")
def _(_share, max_lr):
    return max_lr * _share


@_in_rate("min-cuts-the-cosine", "_falling", "does the cosine end at min_lr, or does min_lr cut off its end?")
def _(_share, max_lr, min_lr):
    return max(min_lr, max_lr * _share)


@_in_rate("min-added-to-whole", "_falling", "which rate has the top: max_lr, or min_lr more?")
def _(_share, max_lr, min_lr):
    return min_lr + max_lr * _share


@_in_rate("min-not-added", "_falling", "which rate has the top: max_lr, or min_lr less?")
def _(_share, max_lr, min_lr):
    return (max_lr - min_lr) * _share


@_in_rate("rate-zero-at-the-end", "_end", "which rate have the steps from total_steps on?")
def _():
    return 0.0


@_in_rate("rate-max-at-the-end", "_end", "is the rate high or low from total_steps on?")
def _(max_lr):
    return max_lr


@_in_rate(
    "cosine-never-ends", "_has_ended", "what does a cosine do after its half, and which rate have the steps behind total_steps?"
)
def _():
    return False


@_in_rate("end-one-early", "_has_ended", "which is the first step with min_lr: total_steps, or the one before?")
def _(step, total_steps):
    return step >= total_steps - 1


@_in_rate("end-counted-from-the-top", "_has_ended", "do the total_steps include the warm-up?")
def _(step, warmup_steps, total_steps):
    return step >= total_steps + warmup_steps


# ---------------------------------------------------------------- clip_gradients


@case.step
def _length(grads):
    return _whole_length([g for g in grads if g is not None])


def _whole_length(grads):
    return math.sqrt(sum(float(g.double().square().sum()) for g in grads))


@case.step
def _factor(_length, max_norm):
    return max_norm / _length if _length > max_norm else 1.0


@case.step
def norm(_length):
    return _length


@case.step
def clipped(grads, _factor):
    return [None if g is None else g * _factor for g in grads]


def clip_inputs(draw: Draw):
    def gradients(*shapes):
        return [_away_from_zero(draw.normal(*shape)) for shape in shapes]

    yield sample("three gradients, too long", gradient=False, grads=gradients((3, 4), (5,), (2, 3, 2)), max_norm=2.5)
    yield sample("one gradient, too long", gradient=False, grads=gradients((3, 3)), max_norm=0.5)
    yield sample("short enough", gradient=False, grads=gradients((2, 4), (3,)), max_norm=50.0)
    yield sample(
        "shorter than 1, and short enough", gradient=False, grads=[0.1 * g for g in gradients((2, 2), (3,))], max_norm=2.0
    )
    hand = [draw.tensor([3.0]), draw.tensor([4.0])]
    yield sample("[3] and [4], max_norm 1", gradient=False, grads=hand, max_norm=1.0)
    yield sample("[3] and [4], max_norm 6", gradient=False, grads=hand, max_norm=6.0)
    yield sample("[3] and [4], max_norm 4.5", gradient=False, grads=hand, max_norm=4.5)
    first, second = gradients((3, 4), (5,))
    yield sample("some gradients are None", gradient=False, grads=[None, first, None, second], max_norm=1.5)
    yield sample("all gradients are 0", gradient=False, grads=[torch.zeros_like(first), torch.zeros_like(second)], max_norm=1.0)


def _clip_reference(grads, max_norm):
    flat = torch.cat([g.flatten() for g in grads if g is not None])
    total = torch.linalg.vector_norm(flat)
    return total.item(), [None if g is None else g * (max_norm / total.clamp_min(max_norm)) for g in grads]


case.exercise(
    "clip_gradients(grads, max_norm)",
    returns=("norm", "clipped"),
    inputs=clip_inputs,
    points=2,
    lesson="One length for all",
    hints=(
        "Lay all gradients end to end: how long is that one vector?",
        "One factor for all of them keeps the direction. When is it below 1, and when must nothing happen?",
        "norm = sqrt(sum over tensors and entries of g^2);  if norm > max_norm: g = g max_norm / norm, in place;  return norm",
    ),
    probe="clip_gradients",
    reference=_clip_reference,
)


def _measured(id, text, measure):
    """A mistake in the length of all gradients together, given those that are not None."""

    @case.fault(id, at="_length", tensor="norm", text=text)
    def _(grads):
        return float(measure([g.double() for g in grads if g is not None]))


_measured("norm-without-root", "[3] and [4] have norm 5: what is 25?", lambda grads: sum(g.square().sum() for g in grads))
_measured("norm-of-absolute-values", "[3] and [4] have norm 5: what is 7?", lambda grads: sum(g.abs().sum() for g in grads))
_measured(
    "norm-sums-lengths", "are the lengths of the tensors added up, or their squares?", lambda grads: sum(g.norm() for g in grads)
)
_measured("norm-of-largest-entry", "is a length its largest entry?", lambda grads: max(g.abs().max() for g in grads))
_measured(
    "norm-of-longest-tensor",
    "is it the length of all gradients together, or of the longest?",
    lambda grads: max(g.norm() for g in grads),
)
_measured("norm-of-first-tensor", "does the length take in all gradients, or the first?", lambda grads: grads[0].norm())
_measured("norm-of-last-tensor", "does the length take in all gradients, or the last?", lambda grads: grads[-1].norm())
_measured(
    "norm-averages-lengths",
    "is it the length of all gradients together, or their mean length?",
    lambda grads: sum(g.norm() for g in grads) / len(grads),
)
_measured(
    "norm-of-mean-square",
    "are the squares added up, or averaged?",
    lambda grads: (sum(g.square().sum() for g in grads) / sum(g.numel() for g in grads)).sqrt(),
)
_measured(
    "norm-of-tensor-mean-squares",
    "are the squares of a tensor added up, or averaged?",
    lambda grads: sum(g.square().mean() for g in grads).sqrt(),
)
_measured(
    "norm-of-sum", "can a positive and a negative entry cancel in a length?", lambda grads: sum(g.sum() for g in grads).abs()
)


@case.fault("norm-after-clipping", at="norm", text="which norm comes back: the one before clipping, or the one after?")
def _(_length, max_norm):
    return min(_length, max_norm)


@case.fault("factor-returned", at="norm", text="what comes back: the norm, or the factor?")
def _(_factor):
    return _factor


@case.fault("norm-not-returned", at="norm", text="what does your function give back?")
def _():
    return None


@case.fault("norm-is-a-tensor", at="norm", text="the norm comes back as a number: is yours one, or a tensor?")
def _(grads):
    present = [g for g in grads if g is not None]
    return torch.stack([g.square().sum() for g in present]).sum().sqrt()


@case.fault("gradients-returned", at="norm", text="the gradients are changed in place: what is left to give back?")
def _(clipped):
    return clipped


def _in_factor(id, text):
    return case.fault(id, at="_factor", tensor="clipped", text=text)


@_in_factor("short-gradients-lengthened", "a short gradient: may it get longer, and what if all are 0?")
def _(_length, max_norm):
    return max_norm / _length


@_in_factor("short-gradients-lengthened-to-nan", "a short gradient: may it get longer, and what is 0 times infinity?")
def _(_length, max_norm):
    return max_norm / _length if _length else math.inf


@_in_factor("short-gradients-lengthened-but-zero", "a short gradient: may it get longer?")
def _(_length, max_norm):
    return max_norm / _length if _length else 1.0


@_in_factor("zero-norm-divides", "what do you divide by if all gradients are 0?")
def _(_length, max_norm):
    return min(1.0, max_norm / _length)


@_in_factor("clipped-to-one", "how long are the gradients afterwards: max_norm, or 1?")
def _(_length, max_norm):
    return 1 / _length if _length > max_norm else 1.0


@_in_factor("factor-inverted", "is your factor below 1 when the gradients are too long?")
def _(_length, max_norm):
    return _length / max_norm if _length > max_norm else 1.0


@_in_factor("factor-without-norm", "how long are the gradients after your multiplication?")
def _(_length, max_norm):
    return max_norm if _length > max_norm else 1.0


@_in_factor("factor-by-square", "do you divide by the norm, or by its square?")
def _(_length, max_norm):
    return max_norm / _length**2 if _length > max_norm else 1.0


@_in_factor("square-compared", "what is compared with max_norm: the norm, or its square?")
def _(_length, max_norm):
    return max_norm / _length if _length**2 > max_norm else 1.0


@_in_factor("compared-with-one", "what is the norm compared with: max_norm, or 1?")
def _(_length, max_norm):
    return max_norm / _length if _length > 1 else 1.0


@_in_factor("comparison-turned-round", "which gradients are shortened: the long ones, or the short ones?")
def _(_length, max_norm):
    return max_norm / _length if _length < max_norm else 1.0


@case.fault("each-tensor-clipped", at="clipped", text="[3] and [4] with max_norm 1: does your result keep the direction?")
def _(grads, max_norm):
    return [None if g is None else g * min(1.0, max_norm / max(float(g.norm()), max_norm)) for g in grads]


@case.fault(
    "entries-clipped", at="clipped", text="what is at most max_norm: the length of all gradients together, or each entry?"
)
def _(grads, max_norm):
    return [None if g is None else g.clamp(-max_norm, max_norm) for g in grads]


@case.fault("only-longer-tensors-clipped", at="clipped", text="the factor is one for all: which tensors do you multiply by it?")
def _(grads, _factor, max_norm):
    return [None if g is None else g * (_factor if g.norm() > max_norm else 1.0) for g in grads]


@case.fault(
    "gradients-not-written",
    at="clipped",
    text="the caller's gradients: do they hold the new numbers, or only your name for them?",
)
def _(grads):
    return grads


@case.fault("first-gradient-only", at="clipped", text="how many tensors are shortened?")
def _(right, grads):
    return right[:1] + grads[1:]


@case.fault("clipped-once-a-tensor", at="clipped", text="how many times is each gradient multiplied by the factor?")
def _(grads, _factor):
    count = sum(g is not None for g in grads)
    return [None if g is None else g * _factor**count for g in grads]


# ---------------------------------------------------------------- train
# Again a run by rules. A small model, whose weights and batches are plain tensors: see `Small` in autograder/probes/.


@case.step
def _order():
    return lambda batches: batches


@case.step
def _cut():
    return lambda ids: (ids[:, :-1], ids[:, 1:])


@case.step
def _objective():
    return lambda logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten())


@case.step
def _cleared():
    return "before"  # "before" each backward pass, "after" it, "once" before the first, "never", or "never, clipped copies"


@case.step
def _shorten(max_norm):
    return lambda grads: _shortened(grads, max_norm) if max_norm is not None else grads


@case.step
def _decaying_share(weight_decay):
    return lambda name, p: weight_decay if p.dim() >= 2 else 0.0


@case.step
def _stepped():
    return lambda name, p: 1  # how many times a parameter is stepped


@case.step
def _optimiser():
    return lambda p, g, memory, lr, wd: _adamw(p, g, memory, lr, wd)


@case.step
def _idle():
    return lambda p, lr, wd: p  # a parameter without a gradient


@case.step
def _measured_at():
    return "before"  # "before" or "after" the step


@case.step
def _said():
    return lambda losses: losses


@case.step
def _start(model, batches):
    """The parameters in the order in which they stand in the model, and the gradients that are there before."""
    params = {name: tensor for name, tensor in model.items() if name != "left_over"}
    before = {
        name: torch.full_like(p, model["left_over"])
        for name, p in params.items()
        if model["left_over"] is not None and name != "spare"
    }
    return tuple(params.items()), tuple(before.items()), tuple(batches)


@case.step
def _first_slope(_start, _order, _cut, _objective):
    """The first loss and its gradients: the same for all rules that come later."""
    batches = _order(_start[2])
    return _slope(dict(_start[0]), *_cut(batches[0]), _objective) if batches else None


@case.step
def _training(
    _start,
    _first_slope,
    learning_rate,
    _order,
    _cut,
    _objective,
    _cleared,
    _shorten,
    _decaying_share,
    _stepped,
    _optimiser,
    _idle,
    _measured_at,
):
    """The losses and the weights by name, after all batches."""
    params, grads, memories, losses = dict(_start[0]), dict(_start[1]), {}, []
    for count, ids in enumerate(_order(_start[2])):
        read, targets = _cut(ids)
        loss, fresh = _slope(params, read, targets, _objective) if count else _first_slope
        losses.append(loss)
        if _cleared == "before" or _cleared == "once" and not count:
            grads = {}
        grads = {name: g + grads.get(name, 0.0) for name, g in fresh.items()}
        used = _shorten(grads)
        grads = grads if _cleared == "never, clipped copies" else used  # clipping is in place
        for name, p in params.items():
            wd = _decaying_share(name, p)
            for turn in range(_stepped(name, p) if name in used else 0):
                p = _optimiser(p, used[name], memories.setdefault((name, turn), {}), learning_rate, wd)
            params[name] = p if name in used else _idle(p, learning_rate, wd)
        if _cleared == "after":
            grads = {}
        if _measured_at == "after":
            losses[-1] = _slope(params, read, targets, _objective)[0]
    return losses, params


def _logits(params, ids):
    head = params.get("head", params["wte"])
    return F.linear(params["wte"][ids] * params["gain"], head, params["bias"])


def _slope(params, read, targets, objective):
    """The loss and its gradients with respect to every parameter that is used."""
    leaves = {name: p.detach().requires_grad_() for name, p in params.items() if name != "spare"}
    loss = objective(_logits(leaves, read), targets)
    return loss.detach(), dict(zip(leaves, torch.autograd.grad(loss, list(leaves.values())), strict=True))


def _adamw(p, g, memory, lr, weight_decay, betas=(0.9, 0.999), eps=1e-8):
    m, v, t = memory.get("m", 0.0), memory.get("v", 0.0), memory.get("t", 0) + 1
    m, v = betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
    memory.update(m=m, v=v, t=t)
    return p * (1 - lr * weight_decay) - lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


def _shortened(grads, max_norm):
    length = _whole_length(grads.values())
    return {name: g * min(1.0, max_norm / length) for name, g in grads.items()}


@case.step
def losses(_training, _said):
    return _said([float(loss) for loss in _training[0]])


@case.step
def weights(_training):
    return _training[1]


def train_inputs(draw: Draw):
    yield sample("one batch", gradient=False, **_lesson(draw, [(2, 4)], torch.float32), learning_rate=0.2, progress=False)
    yield sample("two batches, in float64", gradient=False, **_lesson(draw, [(3, 4), (2, 5)]), learning_rate=0.1, progress=False)
    clipped = {"learning_rate": 0.3, "max_norm": 0.25, "progress": False}
    four, twenty = _lesson(draw, [(2, 6), (3, 6), (2, 5), (2, 6)]), _lesson(draw, [(1, 4), (3, 3)] * 10)
    yield sample("decay and clipping, in float64", gradient=False, **four, weight_decay=0.4, **clipped)
    yield sample("20 batches, clipped to 0.5, in float64", gradient=False, **twenty, **clipped | {"max_norm": 0.5})
    decaying = {"learning_rate": 0.2, "weight_decay": 0.5, "progress": False}
    tied = _lesson(draw, [(2, 5), (3, 5), (2, 7)])
    del tied["model"]["head"]
    yield sample("a tied head, with decay, in float64", gradient=False, **tied, **decaying)
    stale = _lesson(draw, [(2, 5), (2, 6), (2, 5)])
    stale["model"]["left_over"] = 0.5
    yield sample("gradients are there before the first step", gradient=False, **stale, learning_rate=0.2, progress=False)
    spare = _lesson(draw, [(2, 5), (2, 4), (3, 5)])
    spare["model"]["spare"] = draw.normal(2, 3).double()
    yield sample("a weight that nothing uses, with decay", gradient=False, **spare, **decaying)


def _lesson(draw, shapes, dtype=torch.float64):
    """A model of 7 tokens and 3 channels, and batches of ids of these shapes.

    In float64 where there are several steps: a step of Adam is a quotient, in which the rounding of a small gradient shows.
    """
    V, C = 7, 3
    model = {
        "wte": draw.normal(V, C),
        "gain": 1 + draw.normal(C, scale=0.3),
        "head": draw.normal(V, C),
        "bias": draw.normal(V, scale=0.5),
    }
    model = {name: tensor.to(dtype) for name, tensor in model.items()} | {"left_over": None}
    return {"model": model, "batches": [draw.integers(0, V, *shape) for shape in shapes]}


def _train_reference(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    own = {name: nn.Parameter(tensor.clone()) for name, tensor in model.items() if name != "left_over"}
    decaying, others = [p for p in own.values() if p.dim() > 1], [p for p in own.values() if p.dim() < 2]
    groups = [{"params": decaying, "weight_decay": weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimiser, losses = torch.optim.AdamW(groups, lr=learning_rate, foreach=False), []
    for ids in batches:
        optimiser.zero_grad()
        loss = F.cross_entropy(_logits(own, ids[:, :-1]).mT, ids[:, 1:])
        loss.backward()
        grads = [p.grad for p in own.values() if p.grad is not None]
        if max_norm is not None:
            torch._foreach_mul_(grads, max_norm / max(max_norm, torch.cat([g.flatten() for g in grads]).norm().item()))
        optimiser.step()
        losses.append(loss.item())
    return losses, {name: p.detach() for name, p in own.items()}


case.exercise(
    "train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True)",
    returns=("losses", "weights"),
    inputs=train_inputs,
    points=5,
    lesson="The loop",
    hints=(
        "Which gradients are in `p.grad` when you step: those of this batch alone?",
        "Cut, run, loss, clear, backward, clip if asked, step; decay for tensors of two and more axes, none for the others.",
        "loss = cross_entropy(model(inputs), targets);  p.grad = d loss / d p;  adamw_step(params, grads, state, lr, ...)",
    ),
    probe="train",
    seconds=30.0,  # the library's optimisers may be used here: their first use imports a good deal
    reference=_train_reference,
)


def _loop(id, at, tensor, text, setting):
    _mistake(id, at, tensor, text, setting)


_loop(
    "train-first-batch-only",
    "_order",
    "losses",
    "how many batches does your loop see before it returns?",
    lambda batches: batches[:1],
)
_loop("train-last-batch-left-out", "_order", "losses", "how many losses come from four batches?", lambda batches: batches[:-1])
_loop("train-first-batch-left-out", "_order", "losses", "is the first batch trained on too?", lambda batches: batches[1:])
_loop(
    "train-same-batch-again",
    "_order",
    "losses",
    "does each step see a batch of its own?",
    lambda batches: batches[:1] * len(batches),
)
_loop("train-backwards", "_order", "losses", "in which order do the batches come?", lambda batches: batches[::-1])
_loop("train-twice-over", "_order", "losses", "how often is each batch trained on?", lambda batches: batches * 2)
_loop(
    "train-targets-not-shifted",
    "_cut",
    "losses",
    "which token is position t asked for: the next one, or its own?",
    lambda ids: (ids[:, :-1], ids[:, :-1]),
)
_loop("train-whole-rows", "_cut", "losses", "what is the answer to each id: the next one, or itself?", lambda ids: (ids, ids))
_loop(
    "train-targets-shifted-twice", "_cut", "losses", "how often are the targets shifted?", lambda ids: (ids[:, :-2], ids[:, 2:])
)
_loop("train-targets-rolled", "_cut", "losses", "who answers the last id of a row?", lambda ids: (ids, ids.roll(-1, 1)))
_loop(
    "train-pairs-swapped",
    "_cut",
    "losses",
    "does the model read the earlier token and answer the later one?",
    lambda ids: (ids[:, 1:], ids[:, :-1]),
)
_loop("train-last-pair-dropped", "_cut", "losses", "how many pairs do T+1 ids hold?", lambda ids: (ids[:, :-2], ids[:, 1:-1]))
_loop(
    "train-last-position-only",
    "_cut",
    "losses",
    "how many positions of a row teach the model?",
    lambda ids: (ids[:, -2:-1], ids[:, -1:]),
)
_loop(
    "train-loss-of-probabilities",
    "_objective",
    "losses",
    "logits or probabilities: which of the two goes into the loss?",
    lambda logits, targets: F.cross_entropy(logits.softmax(-1).flatten(0, 1), targets.flatten()),
)
_loop(
    "train-loss-summed",
    "_objective",
    "losses",
    "is the loss the sum over the tokens, or their mean?",
    lambda logits, targets: F.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum"),
)
_loop(
    "train-uphill",
    "_objective",
    "losses",
    "does the loss fall from step to step?",
    lambda logits, targets: -F.cross_entropy(logits.flatten(0, 1), targets.flatten()),
)
_loop("gradients-cleared-once", "_cleared", "losses", "gradients add up: how often must they be cleared?", "once")
_loop(
    "gradients-never-cleared-copies-clipped",
    "_cleared",
    "losses",
    "gradients add up: which ones are in the second step's, and are those the ones that you clip?",
    "never, clipped copies",
)
_loop("gradients-never-cleared", "_cleared", "losses", "gradients add up: which ones are in the second step's?", "never")
_loop("gradients-cleared-after-only", "_cleared", "losses", "were there any gradients before the first step?", "after")


def _by_group(grads, max_norm):
    """Matrices and vectors clipped apart."""
    groups = ({name: g for name, g in grads.items() if (g.dim() > 1) == matrices} for matrices in (True, False))
    return {name: g for group in groups for name, g in _shortened(group, max_norm).items()}


def _clipping(id, text, shorten, always=None):
    """`shorten` is used where max_norm is given, and with `always` in its place where it is not."""

    @case.fault(id, at="_shorten", tensor="losses", text=text)
    def _(max_norm):
        limit = always if max_norm is None else max_norm
        return lambda grads: grads if limit is None else shorten(grads, limit)


_clipping("train-not-clipped", "what does max_norm change, and before which step?", lambda grads, limit: grads)
_clipping(
    "train-clips-each-tensor",
    "one length for all, or one for each?",
    lambda grads, limit: {n: _shortened({n: g}, limit)[n] for n, g in grads.items()},
)
_clipping("train-clips-each-group", "one length for all, or one for each group?", _by_group)
_clipping(
    "train-clips-entries",
    "what is at most max_norm: a length, or an entry?",
    lambda grads, limit: {n: g.clamp(-limit, limit) for n, g in grads.items()},
)
_clipping("train-clips-to-one", "how long may the gradients be: max_norm, or 1?", lambda grads, limit: _shortened(grads, 1.0))
_clipping("train-clips-unasked", "max_norm is None: how long may the gradients be?", _shortened, always=1.0)


@case.fault(
    "train-compares-with-none", at="_shorten", tensor="losses", text="max_norm may be None: can a norm be compared with it?"
)
def _(max_norm):
    return lambda grads: _shortened(grads, max_norm) if max_norm is not None else 0.0 > max_norm


def _decay_rule(id, tensor, text, rule):
    @case.fault(id, at="_decaying_share", tensor=tensor, text=text)
    def _(weight_decay):
        return lambda name, p: rule(name, p, weight_decay)


_decay_rule(
    "train-decays-everything", "losses", "with all gradients 0 and decay on, may biases and gains move?", lambda name, p, wd: wd
)
_decay_rule("train-decay-ignored", "losses", "what does weight_decay change?", lambda name, p, wd: 0.0)
_decay_rule(
    "train-decays-vectors-only",
    "losses",
    "how many axes has a tensor that decays?",
    lambda name, p, wd: wd if p.dim() < 2 else 0.0,
)
_decay_rule(
    "train-decay-spares-embedding",
    "losses",
    "how many axes has an embedding, and does it decay here?",
    lambda name, p, wd: wd if name == "head" or name == "spare" else 0.0,
)
_decay_rule(
    "train-decays-gains",
    "losses",
    "a gain is no bias: how many axes has it, and does it decay?",
    lambda name, p, wd: wd if name != "bias" else 0.0,
)
_decay_rule(
    "train-decays-biases",
    "losses",
    "how many axes has a bias, and does it decay?",
    lambda name, p, wd: wd if name != "gain" else 0.0,
)
_decay_rule(
    "train-decay-of-the-library",
    "losses",
    "which decay does the library's optimiser take if you give it none?",
    lambda name, p, wd: 0.01,
)

_loop(
    "train-vectors-not-stepped",
    "_stepped",
    "losses",
    "does every group of parameters get its step?",
    lambda name, p: int(p.dim() > 1),
)
_loop(
    "train-matrices-not-stepped",
    "_stepped",
    "losses",
    "does every group of parameters get its step?",
    lambda name, p: int(p.dim() < 2),
)
_loop("train-nothing-stepped", "_stepped", "losses", "which line of your loop changes a parameter?", lambda name, p: 0)
_loop("train-steps-twice", "_stepped", "losses", "how many steps does one batch make?", lambda name, p: 2)


@case.fault(
    "tied-weight-stepped-twice",
    at="_stepped",
    tensor="losses",
    text="the embedding and the head may be one tensor under two names: how often does your list hold it?",
)
def _(model):
    return lambda name, p: 2 if name == "wte" and "head" not in model else 1


def _optimising(id, text, rule):
    _mistake(id, "_optimiser", "losses", text, rule)


_optimising(
    "train-by-plain-descent",
    "is the step m_hat / sqrt(v_hat), or the gradient?",
    lambda p, g, memory, lr, wd: p * (1 - lr * wd) - lr * g,
)
_optimising(
    "train-decay-in-gradient",
    "is the decay apart from the gradient, or in it?",
    lambda p, g, memory, lr, wd: _adamw(p, g + wd * p, memory, lr, 0.0),
)
_optimising(
    "train-forgets-state",
    "does each step find what the last one remembered?",
    lambda p, g, memory, lr, wd: _adamw(p, g, {}, lr, wd),
)
_optimising(
    "train-with-other-betas",
    "which betas does adamw_step take if you give it none?",
    lambda p, g, memory, lr, wd: _adamw(p, g, memory, lr, wd, (0.9, 0.95)),
)
_optimising(
    "train-with-other-betas-for-matrices",
    "do all parameters get the betas that adamw_step takes if you give it none?",
    lambda p, g, memory, lr, wd: _adamw(p, g, memory, lr, wd, (0.9, 0.95 if p.dim() > 1 else 0.999)),
)
_optimising(
    "train-with-fixed-rate", "which rate does the caller give?", lambda p, g, memory, lr, wd: _adamw(p, g, memory, 1e-3, wd)
)
_optimising(
    "train-uphill-step",
    "does the loss fall along the gradient, or against it?",
    lambda p, g, memory, lr, wd: _adamw(p, -g, memory, lr, wd),
)
_optimising("train-only-decays", "are the gradients still there when you step?", lambda p, g, memory, lr, wd: p * (1 - lr * wd))


@case.fault("train-on-a-copy", at="weights", text="which model is trained: the caller's, or a copy of it?")
def _(_start):
    return dict(_start[0])


_loop(
    "train-decays-unused",
    "_idle",
    "weights",
    "a parameter that gets no gradient: does it decay?",
    lambda p, lr, wd: p * (1 - lr * wd),
)


@case.fault(
    "losses-are-tensors", at="losses", text="the loss hangs on the graph of all that made it: what do you keep of it in the list?"
)
def _(_training):
    return list(_training[0])


_loop(
    "losses-running-mean",
    "_said",
    "losses",
    "is it the loss of each batch, or the mean of all so far?",
    lambda losses: [sum(losses[: i + 1]) / (i + 1) for i in range(len(losses))],
)
_loop(
    "losses-running-sum",
    "_said",
    "losses",
    "is it the loss of each batch, or the sum of all so far?",
    lambda losses: [sum(losses[: i + 1]) for i in range(len(losses))],
)
_loop("only-last-loss", "_said", "losses", "how many losses come back?", lambda losses: losses[-1])
_loop("only-mean-loss", "_said", "losses", "how many losses come back?", lambda losses: sum(losses) / len(losses))
_loop("losses-not-returned", "_said", "losses", "what does your function give back?", lambda losses: None)
_loop("losses-in-bits", "_said", "losses", "are your losses in nats?", lambda losses: [x / math.log(2) for x in losses])
_loop(
    "losses-as-perplexities",
    "_said",
    "losses",
    "is it the loss that comes back, or the perplexity?",
    lambda losses: [math.exp(x) for x in losses],
)
_loop("loss-after-the-step", "_measured_at", "losses", "is each loss measured before its step, or after?", "after")
