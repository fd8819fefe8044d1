"""The training objective: one number that says how surprised the model is, and the loop that lowers it.

Write the functions in the order they stand here: `train`, the last, uses most of the others.

Sizes    B batch · T positions that are scored (a batch of ids has T+1) · V vocabulary
Tensors  ids (B,T+1) -> inputs targets (B,T) · logits (B,T,V) -> log_probs (B,T,V) -> loss ()
Units    losses are in nats (natural logarithm), the mean over tokens
"""

import math
from collections.abc import Callable, Iterable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


def next_token_pairs(ids: Int[Tensor, "*lead T+1"]) -> tuple[Int[Tensor, "*lead T"], Int[Tensor, "*lead T"]]:
    """Cut rows of T+1 ids into what the model reads and what it is to answer: at every position, the next id.

        inputs[...,t] = ids[...,t]        targets[...,t] = ids[...,t+1]        t = 0 to T-1

    Any number of leading axes, none included.

    By hand: [4, 7, 1, 9] gives inputs [4, 7, 1] and targets [7, 1, 9].

    Source: Bengio et al. 2003, "A Neural Probabilistic Language Model", section 2.
    """
    # BEGIN SOLUTION
    return ids[..., :-1], ids[..., 1:]
    # END SOLUTION


def log_softmax(logits: Float[Tensor, "*lead V"]) -> Float[Tensor, "*lead V"]:
    """Turn logits into log-probabilities along the last axis, finite for finite logits of any size.

        log_probs[...,i] = logits[...,i] - log sum_j exp(logits[...,j])

    In floating point, use log sum_j exp(x[j]) = m + log sum_j exp(x[j] - m) with m = max_j x[j]. The library's
    log-softmax may not be called in this exercise.

    By hand: [0, ln 3] gives [-ln 4, ln 3 - ln 4] = [-1.3863, -0.2877], and [1000, 1000 + ln 3] gives the same.

    Source: Blanchard, Higham and Higham 2021, "Accurately computing the log-sum-exp and softmax functions".
    """
    # BEGIN SOLUTION
    # After the shift the largest logit is 0, so the sum below lies between 1 and V: it neither overflows nor is 0.
    shifted = logits - logits.amax(dim=-1, keepdim=True)
    return shifted - shifted.exp().sum(dim=-1, keepdim=True).log()
    # END SOLUTION


def cross_entropy(
    logits: Float[Tensor, "*lead V"], targets: Int[Tensor, "*lead"], ignore_index: int = -100
) -> Float[Tensor, ""]:
    """Measure how surprised the model is by the targets: the mean of -log p(target), in nats.

        loss = -(1 / N) sum over counted positions of log_probs[..., targets[...]]

    A position is counted when its target differs from `ignore_index`; N counts them over the whole batch, so
    every counted token weighs the same. Any number of leading axes. The library's cross-entropy may not be called
    in this exercise.

    By hand: logits [0, ln 3] at two positions, targets 1 and 0: (ln(4/3) + ln 4) / 2 = (0.2877 + 1.3863) / 2 = 0.8370.
    With ignore_index = 0 only the first position counts: 0.2877.

    Raises ValueError when no position is counted.

    Source: Shannon 1948, "A Mathematical Theory of Communication", section 6 (entropy, here of the model's
    distribution relative to the text); Bengio et al. 2003 (as above), section 2 (the training criterion).
    """
    # BEGIN SOLUTION
    if logits.shape[:-1] != targets.shape:
        # `gather` would quietly score a part of the positions when there are fewer targets than logits.
        raise ValueError(f"targets have shape {tuple(targets.shape)}, expected that of the logits without V: "
                         f"{tuple(logits.shape[:-1])}")
    counted = targets != ignore_index
    if not counted.any():
        raise ValueError(f"no target to average over: all {targets.numel()} are ignore_index = {ignore_index}")
    log_probs = log_softmax(logits)
    # Where nothing is counted any valid id will do, 0 here: the entry is looked up and then left out.
    ids = targets.masked_fill(~counted, 0).unsqueeze(-1)
    return -log_probs.gather(-1, ids).squeeze(-1)[counted].mean()
    # END SOLUTION


def bits_per_token(nats: float | Tensor) -> float | Tensor:
    """Convert a loss in nats to bits: 1 bit is ln 2 nats. A number gives a number, a tensor a tensor.

        bits = nats / ln 2

    By hand: ln 8 = 2.0794 nats are 3 bits, three answers to yes-or-no questions.

    Source: Shannon 1948 (as above), introduction (the choice of a logarithmic base is the choice of a unit).
    """
    # BEGIN SOLUTION
    return nats / math.log(2)
    # END SOLUTION


def perplexity(nats: float | Tensor) -> float | Tensor:
    """Say among how many equally likely tokens the model hesitates. A number gives a number, a tensor a tensor, elementwise.

        perplexity = exp(nats)

    By hand: ln 50257 = 10.8249 nats, a uniform guess over GPT-2's vocabulary, are a perplexity of 50257.

    Source: Jelinek et al. 1977, "Perplexity: a measure of the difficulty of speech recognition tasks".
    """
    # BEGIN SOLUTION
    return nats.exp() if isinstance(nats, Tensor) else math.exp(nats)
    # END SOLUTION


def uniform_loss(vocab_size: int) -> float:
    """Give the loss, in nats, of a model that finds every one of `vocab_size` tokens equally likely.

        loss = -ln(1 / V) = ln V

    By hand: V = 1 gives 0 (nothing to guess), V = 50257 gives 10.8249.

    Source: Shannon 1948 (as above), section 6, property 2 (the uniform distribution has the largest entropy).
    """
    # BEGIN SOLUTION
    return math.log(vocab_size)
    # END SOLUTION


def adamw_step(
    params: Sequence[Tensor],
    grads: Sequence[Tensor | None],
    state: dict,
    lr: float,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
    weight_decay: float = 0.0,
) -> None:
    """Move every parameter in place by one step of AdamW. `state` is `{}` before the first step; keep in it what you need.

        m <- beta1 m + (1 - beta1) g          m_hat = m / (1 - beta1^t)        t = 1, 2, ...: the steps of this parameter
        v <- beta2 v + (1 - beta2) g^2        v_hat = v / (1 - beta2^t)        m = v = 0 before the first
        p <- p - lr weight_decay p - lr m_hat / (sqrt(v_hat) + eps)

    `grads[i]` belongs to `params[i]` and is not changed. Where it is `None` the parameter is skipped: no step, no
    decay, and its t does not advance. The same list comes with the same `state` every time. The library's
    optimisers may not be called in this exercise.

    By hand: p = 1, g = 4, lr = 0.1, no decay: m_hat = 4, v_hat = 16, so p = 1 - 0.1 * 4 / 4 = 0.9 (g = 0.04 moves it as
    far). With g = 0, lr = 0.1 and weight_decay = 0.5 instead: p = 1 - 0.1 * 0.5 * 1 = 0.95.

    Source: Loshchilov and Hutter 2019, "Decoupled Weight Decay Regularization", algorithm 2; Kingma and Ba 2015,
    "Adam", algorithm 1.
    """
    # BEGIN SOLUTION
    beta1, beta2 = betas
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads, strict=True)):
            if g is None:
                continue
            if i not in state:
                state[i] = {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)}
            s = state[i]
            s["t"] += 1
            s["m"].mul_(beta1).add_(g, alpha=1 - beta1)
            s["v"].mul_(beta2).addcmul_(g, g, value=1 - beta2)
            m_hat = s["m"] / (1 - beta1 ** s["t"])
            v_hat = s["v"] / (1 - beta2 ** s["t"])
            p.mul_(1 - lr * weight_decay)
            p.sub_(lr * m_hat / (v_hat.sqrt() + eps))
    # END SOLUTION


def learning_rate(step: int, max_lr: float, min_lr: float, warmup_steps: int, total_steps: int) -> float:
    """Give the learning rate of a step, counted from 0: a straight line up, then half a cosine down, then flat.

        step < warmup_steps     max_lr (step + 1) / warmup_steps
        up to total_steps       min_lr + (max_lr - min_lr) (1 + cos(pi u)) / 2        u = (step - warmup_steps) /
        from total_steps on     min_lr                                                    (total_steps - warmup_steps)

    `warmup_steps` may be 0.

    By hand: max_lr 1, min_lr 0.1, warmup_steps 4, total_steps 12: steps 0 to 4 give 0.25, 0.5, 0.75, 1, 1; step 8, half
    way down, gives 0.55; steps 12 and 100 give 0.1.

    Source: Loshchilov and Hutter 2017, "SGDR", equation 5; Goyal et al. 2017, "Accurate, Large Minibatch SGD",
    section 2.2 (gradual warm-up).
    """
    # BEGIN SOLUTION
    if step < warmup_steps:
        return max_lr * (step + 1) / warmup_steps
    if step >= total_steps:
        return min_lr
    u = (step - warmup_steps) / (total_steps - warmup_steps)
    return min_lr + (max_lr - min_lr) * (1 + math.cos(math.pi * u)) / 2
    # END SOLUTION


def clip_gradients(grads: Sequence[Tensor | None], max_norm: float) -> float:
    """Shorten all gradients in place, by one common factor, where together they are longer than `max_norm`.

        norm = sqrt(sum over all tensors, sum over all entries, g^2)        g <- g max_norm / norm    if norm > max_norm

    Returns the norm before clipping. Shorter gradients are left as they are; entries that are `None` are skipped.

    By hand: two tensors, [3] and [4], have norm 5. With max_norm = 1 they become [0.6] and [0.8], with max_norm = 10 they
    stay; both times 5.0 comes back.

    Source: Pascanu, Mikolov and Bengio 2013, "On the difficulty of training recurrent neural networks", algorithm 1.
    """
    # BEGIN SOLUTION
    grads = [g for g in grads if g is not None]
    norm = math.hypot(*(torch.linalg.vector_norm(g).item() for g in grads))
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm
    # END SOLUTION


def train(
    model: nn.Module,
    batches: Iterable[Int[Tensor, "B T+1"]],
    learning_rate: float | Callable[[int], float],
    weight_decay: float = 0.0,
    max_norm: float | None = None,
    progress: bool = True,
) -> list[float]:
    """Take one AdamW step on every batch of ids and return the losses, each measured before its step.

    A step: inputs and targets from the batch; loss = cross_entropy(model(inputs), targets); the gradients of this loss
    alone; clip them all together where `max_norm` is given; step. `model(inputs)` gives logits (B,T,V).

    - `learning_rate` is a number, or a function that gives the rate of a step (counted from 0).
    - `weight_decay` acts on parameters of two and more axes, not on biases and gains.
    - A weight that the model uses in two places is one parameter: it is stepped once.
    - A parameter that gets no gradient is left as it is.
    - With `progress`, the loss is printed now and then (standard output).

    By hand: a model whose logits are all 0 for V = 4 starts at ln 4 = 1.3863, whatever the text.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", section 4.1 (decay on
    weights that are neither biases nor gains); Brown et al. 2020, "Language Models are Few-Shot Learners", appendix B.
    """
    # BEGIN SOLUTION
    params = list(model.parameters())  # a tied weight appears once
    matrices = [p for p in params if p.dim() >= 2]
    vectors = [p for p in params if p.dim() < 2]
    matrix_state, vector_state = {}, {}
    losses = []
    for step, ids in enumerate(batches):
        inputs, targets = next_token_pairs(ids)
        loss = cross_entropy(model(inputs), targets)
        model.zero_grad()  # right before backward: whatever the last step, or the caller, left behind is gone
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        lr = learning_rate(step) if callable(learning_rate) else learning_rate
        adamw_step(matrices, [p.grad for p in matrices], matrix_state, lr, weight_decay=weight_decay)
        adamw_step(vectors, [p.grad for p in vectors], vector_state, lr)
        losses.append(loss.item())
        if progress and step % 50 == 0:
            print(f"step {step:5d}   loss {losses[-1]:.4f}")
    return losses
    # END SOLUTION
