"""Submissions of 10_training_objective: patches on the solution, with what the grader must say of them."""

# %% wrong: targets are the inputs
# expect: next_token_pairs fail at targets as targets-not-shifted
# expect: train fail at losses as train-targets-not-shifted
import torch._dynamo  # what the first use of an optimiser imports: here, before the clock starts


def next_token_pairs(ids):
    x = ids[..., :-1]
    y = x.clone()
    return x, y


def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": weight_decay},
            {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
        ],
        lr=learning_rate,
    )
    losses = []
    for batch in batches:
        x = batch[:, :-1]
        loss = torch.nn.functional.cross_entropy(model(x).flatten(0, 1), x.flatten())
        optimiser.zero_grad()
        loss.backward()
        if max_norm:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimiser.step()
        losses.append(loss.item())
    return losses


# %% wrong: the same ids as question and answer
# expect: next_token_pairs fail at inputs as whole-rows-returned-twice
def next_token_pairs(ids):
    return ids, ids


# %% wrong: shifted by two
# expect: next_token_pairs fail at inputs as targets-shifted-twice
def next_token_pairs(ids):
    return ids[..., :-2], ids[..., 2:]


# %% wrong: roll
# expect: next_token_pairs fail at inputs as targets-rolled-round
def next_token_pairs(ids):
    return ids, torch.roll(ids, shifts=-1, dims=-1)


# %% wrong: roll of the inputs
# expect: next_token_pairs fail at targets as inputs-rolled-round
def next_token_pairs(ids):
    inputs = ids[..., :-1]
    return inputs, torch.roll(inputs, -1, dims=-1)


# %% wrong: inputs not cut
# expect: next_token_pairs fail at inputs as inputs-keep-last-id
def next_token_pairs(ids):
    return ids, ids[..., 1:]


# %% wrong: previous token as target
# expect: next_token_pairs fail at inputs as pairs-swapped
def next_token_pairs(ids):
    targets, inputs = ids[..., :-1], ids[..., 1:]
    return inputs, targets


# %% wrong: two axes only
# expect: next_token_pairs error at inputs as pairs-along-axis-1
def next_token_pairs(ids):
    return ids[:, :-1], ids[:, 1:]


# %% wrong: cut along the batch
# expect: next_token_pairs fail at inputs as pairs-along-first-axis
def next_token_pairs(ids):
    return ids[:-1], ids[1:]


# %% wrong: padded targets
# expect: next_token_pairs fail at inputs as last-target-made-up
def next_token_pairs(ids):
    end = torch.full_like(ids[..., :1], -100)
    return ids, torch.cat([ids[..., 1:], end], dim=-1)


# %% wrong: log of softmax
# expect: log_softmax fail at log_probs as log-of-softmax
def log_softmax(logits):
    return torch.softmax(logits, dim=-1).log()


# %% wrong: log of softmax with a little added
# expect: log_softmax fail at log_probs as log-of-softmax-plus-1e-9
def log_softmax(logits):
    e = torch.exp(logits - logits.max(-1, keepdim=True).values)
    return torch.log(e / e.sum(-1, keepdim=True) + 1e-9)


# %% wrong: log of softmax clamped
# expect: log_softmax fail at log_probs as log-of-softmax-at-least-1e-12
def log_softmax(logits):
    return torch.log(torch.softmax(logits, -1).clamp(min=1e-12))


# %% wrong: exp of raw logits
# expect: log_softmax fail at log_probs as logits-not-shifted
def log_softmax(logits):
    return logits - torch.log(torch.exp(logits).sum(-1, keepdim=True))


# %% wrong: raw shares
# expect: log_softmax fail at log_probs as shares-not-shifted
def log_softmax(logits):
    e = torch.exp(logits)
    return torch.log(e / e.sum(dim=-1, keepdim=True))


# %% wrong: the maximum is not put back
# expect: log_softmax fail at log_probs as largest-not-put-back
def log_softmax(logits):
    m = logits.max(dim=-1, keepdim=True)[0]
    return logits - torch.log(torch.sum(torch.exp(logits - m), dim=-1, keepdim=True))


# %% wrong: maximum of the whole tensor
# expect: log_softmax fail at log_probs as largest-of-everything
def log_softmax(logits):
    x = logits - logits.max()
    return x - x.exp().sum(-1, keepdim=True).log()


# %% wrong: sum without keepdim
# expect: log_softmax error at log_probs as log-total-not-kept
def log_softmax(logits):
    x = logits - logits.amax(-1, keepdim=True)
    return x - x.exp().sum(-1).log()


# %% wrong: logsumexp without keepdim
# expect: log_softmax error at log_probs as logsumexp-not-kept
def log_softmax(logits):
    return logits - torch.logsumexp(logits, dim=-1)


# %% wrong: along axis 1
# expect: log_softmax error at log_probs as log-probs-over-axis-1
def log_softmax(logits):
    return logits - torch.logsumexp(logits, dim=1, keepdim=True)


# %% wrong: library's log_softmax
# expect: log_softmax forbidden
def log_softmax(logits):
    return torch.log_softmax(logits, dim=-1)


# %% wrong: nn.LogSoftmax
# expect: log_softmax forbidden
def log_softmax(logits):
    return nn.LogSoftmax(dim=-1)(logits)


# %% wrong: probabilities
# expect: log_softmax fail at log_probs as probabilities-not-logged
def log_softmax(logits):
    return torch.softmax(logits, -1)


# %% wrong: base two
# expect: log_softmax fail at log_probs as log-probs-in-bits
def log_softmax(logits):
    x = logits - logits.amax(-1, keepdim=True)
    return x / math.log(2) - torch.log2(x.exp().sum(-1, keepdim=True))


# %% wrong: denominator without gradient
# expect: log_softmax fail at logits.grad as log-total-cut-off
def log_softmax(logits):
    with torch.no_grad():
        total = torch.logsumexp(logits, -1, keepdim=True)
    return logits - total


# %% wrong: written into the argument
# expect: log_softmax fail as argument-changed-in-place
def log_softmax(logits):
    x = logits.detach() if logits.requires_grad else logits
    x -= x.amax(-1, keepdim=True)
    return logits - logits.exp().sum(-1, keepdim=True).log()


# %% wrong: softmax before cross-entropy
# expect: cross_entropy fail at log_probs as softmax-before
def cross_entropy(logits, targets, ignore_index=-100):
    probs = torch.softmax(logits, dim=-1)
    log_probs = log_softmax(probs)
    counted = targets != ignore_index
    if counted.sum() == 0:
        raise ValueError(f"only {ignore_index}")
    picked = log_probs.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    return -(picked * counted).sum() / counted.sum()


# %% wrong: class axis by view, logits
# expect: cross_entropy fail at loss as logits-reshaped-to-class-second
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("nothing to average")
    x = logits.reshape(logits.shape[0], logits.shape[-1], -1)
    rows = targets.reshape(logits.shape[0], -1)
    return nn.functional.nll_loss(x - x.logsumexp(1, keepdim=True), rows, ignore_index=ignore_index)


# %% wrong: class axis by view, log-probabilities
# expect: cross_entropy fail at loss as log-probs-reshaped-to-class-second
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("nothing to average")
    B, V = logits.shape[0], logits.shape[-1]
    return nn.functional.nll_loss(log_softmax(logits).reshape(B, V, -1), targets.reshape(B, -1), ignore_index=ignore_index)


# %% wrong: class axis moved by transpose(1, 2)
# expect: cross_entropy error at loss as class-axis-moved-for-three-axes
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("nothing to average")
    return nn.functional.nll_loss(log_softmax(logits).transpose(1, 2), targets, ignore_index=ignore_index)


# %% wrong: logits flattened over time first
# expect: cross_entropy fail at loss as logits-flattened-time-first
def cross_entropy(logits, targets, ignore_index=-100):
    x = log_softmax(logits.transpose(0, 1).reshape(-1, logits.shape[-1]))
    t = targets.reshape(-1)
    keep = t != ignore_index
    if not keep.any():
        raise ValueError("nothing counted")
    return -x[keep, t[keep]].mean()


# %% wrong: targets flattened over time first
# expect: cross_entropy fail at loss as targets-flattened-time-first
def cross_entropy(logits, targets, ignore_index=-100):
    x = log_softmax(logits).reshape(-1, logits.shape[-1])
    t = targets.transpose(0, 1).reshape(-1)
    keep = t != ignore_index
    if not keep.any():
        raise ValueError("nothing counted")
    return -x[keep, t[keep]].mean()


# %% wrong: mean of the rows' means
# expect: cross_entropy fail at loss as mean-of-row-means
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError(f"all targets are {ignore_index}")
    losses = -log_softmax(logits).gather(-1, (targets * mask).unsqueeze(-1)).squeeze(-1) * mask
    return (losses.sum(-1) / mask.sum(-1)).mean()


# %% wrong: ignored positions in the count
# expect: cross_entropy fail at loss as ignored-in-the-count
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError(f"all targets are {ignore_index}")
    losses = -log_softmax(logits).gather(-1, (targets * mask).unsqueeze(-1)).squeeze(-1)
    return (losses * mask).mean()


# %% wrong: sum
# expect: cross_entropy fail at loss as loss-summed
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError(f"all targets are {ignore_index}")
    return -log_softmax(logits)[mask].gather(1, targets[mask][:, None]).sum()


# %% wrong: always -100
# expect: cross_entropy fail at loss as ignore-index-unused
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("all ignored")
    return nn.functional.nll_loss(log_softmax(logits).flatten(0, -2), targets.flatten())


# %% wrong: -1 is the sentinel, the rest is looked up
# expect: cross_entropy error at loss as ignored-looked-up-and-averaged-by-index
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("all ignored")
    flat, t = log_softmax(logits).reshape(-1, logits.size(-1)), targets.reshape(-1)
    losses = -flat[torch.arange(len(t)), t]
    return losses[t != -1].mean()


# %% wrong: sentinels become token 0
# expect: cross_entropy fail at loss as targets-clamped
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("all ignored")
    return -log_softmax(logits).gather(-1, targets.clamp(min=0)[..., None]).mean()


# %% wrong: looked up first, masked afterwards
# expect: cross_entropy error at loss as ignored-looked-up-by-gather
def cross_entropy(logits, targets, ignore_index=-100):
    mask = (targets != ignore_index).to(logits.dtype)
    if mask.sum() == 0:
        raise ValueError("all ignored")
    picked = log_softmax(logits).gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    return -(picked * mask).sum() / mask.sum()


# %% wrong: nothing counted is not refused
# expect: cross_entropy fail as nothing-counted-accepted
def cross_entropy(logits, targets, ignore_index=-100):
    return nn.functional.nll_loss(log_softmax(logits).flatten(0, -2), targets.flatten(), ignore_index=ignore_index)


# %% wrong: nothing counted is a loss of 0
# expect: cross_entropy fail as nothing-counted-accepted
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    picked = log_softmax(logits).gather(-1, targets.masked_fill(~mask, 0).unsqueeze(-1)).squeeze(-1)
    return -(picked * mask).sum() / mask.sum().clamp(min=1)


# %% wrong: no minus
# expect: cross_entropy fail at loss as loss-sign-missing
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError("all ignored")
    return log_softmax(logits)[mask].gather(1, targets[mask].unsqueeze(1)).mean()


# %% wrong: the loss shifts once more
# expect: cross_entropy fail at loss as loss-shifts-again
def cross_entropy(logits, targets, ignore_index=-100):
    logits, targets = logits[..., :-1, :], targets[..., 1:]
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError("all ignored")
    return -log_softmax(logits)[mask].gather(1, targets[mask].unsqueeze(1)).mean()


# %% wrong: logits looked up
# expect: cross_entropy fail at loss as logits-looked-up
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("all ignored")
    return nn.functional.nll_loss(logits.flatten(0, -2), targets.flatten(), ignore_index=ignore_index)


# %% wrong: bits
# expect: cross_entropy fail at loss as loss-in-bits
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("all ignored")
    return nn.functional.nll_loss(log_softmax(logits).flatten(0, -2) / math.log(2), targets.flatten(), ignore_index=ignore_index)


# %% wrong: library's cross-entropy
# expect: cross_entropy forbidden
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("all ignored")
    return nn.functional.cross_entropy(logits.flatten(0, -2), targets.flatten(), ignore_index=ignore_index)


# %% wrong: a number for a loss
# expect: cross_entropy fail at loss as loss-is-a-number
# expect: train error
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError("all ignored")
    return -log_softmax(logits)[mask].gather(1, targets[mask].unsqueeze(1)).mean().item()


def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    losses = []
    for ids in batches:
        logits = model(ids[:, :-1])
        loss = -logits.log_softmax(-1).gather(-1, ids[:, 1:, None]).mean().item()
        loss.backward()
        losses.append(loss)
    return losses


# %% wrong: two mistakes at once, softmax before and a sum
# expect: cross_entropy fail at log_probs as softmax-before + loss-summed
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError("all ignored")
    log_probs = log_softmax(logits.softmax(dim=-1))
    return -log_probs[mask].gather(1, targets[mask].unsqueeze(1)).sum()


# %% wrong: two mistakes at once, always -100 and the mean of means
# expect: cross_entropy fail at loss as ignore-index-unused + mean-of-row-means
def cross_entropy(logits, targets, ignore_index=-100):
    if (targets == ignore_index).all():
        raise ValueError("all ignored")
    mask = targets != -100
    picked = -log_softmax(logits).gather(-1, targets.masked_fill(~mask, 0).unsqueeze(-1)).squeeze(-1) * mask
    return (picked.sum(-1) / mask.sum(-1)).mean()


# %% wrong: two powers
# expect: perplexity fail at perplexity as perplexity-base-two
def perplexity(nats):
    return 2**nats


# %% wrong: perplexity of the mean
# expect: perplexity fail at perplexity as perplexity-of-the-mean
def perplexity(nats):
    return torch.exp(nats.mean()) if isinstance(nats, Tensor) else math.exp(nats)


# %% wrong: mean of perplexities
# expect: perplexity fail at perplexity as perplexity-averaged
def perplexity(nats):
    return torch.exp(nats).mean() if isinstance(nats, Tensor) else math.exp(nats)


# %% wrong: e to the bits
# expect: perplexity fail at perplexity as perplexity-of-bits
def perplexity(nats):
    nats = bits_per_token(nats)
    return nats.exp() if isinstance(nats, Tensor) else math.exp(nats)


# %% wrong: numbers only
# expect: perplexity error at perplexity as perplexity-of-numbers-only
def perplexity(nats):
    return math.exp(nats)


# %% wrong: tensors only
# expect: perplexity error at perplexity as perplexity-by-tensor-function
def perplexity(nats):
    return torch.exp(nats)


# %% wrong: a tensor for a number
# expect: perplexity fail at perplexity as perplexity-always-a-tensor
def perplexity(nats):
    return torch.exp(torch.as_tensor(nats))


# %% wrong: bits by multiplication
# expect: bits_per_token fail at bits as bits-multiplied
def bits_per_token(nats):
    return nats * math.log(2)


# %% wrong: bits per byte, four bytes a token
# expect: bits_per_token fail at bits as bits-per-byte-assumed
def bits_per_token(nats):
    return nats / math.log(2) / 4


# %% wrong: hartleys
# expect: bits_per_token fail at bits as bits-in-base-ten
def bits_per_token(nats):
    return nats / math.log(10)


# %% wrong: uniform probability
# expect: uniform_loss fail at uniform as uniform-probability
def uniform_loss(vocab_size):
    return 1 / vocab_size


# %% wrong: uniform in bits
# expect: uniform_loss fail at uniform as uniform-in-bits
def uniform_loss(vocab_size):
    return -math.log2(1 / vocab_size)


# %% wrong: uniform with a sign
# expect: uniform_loss fail at uniform as uniform-negative
def uniform_loss(vocab_size):
    return math.log(1 / vocab_size)


# %% wrong: decay in the gradient
# expect: adamw_step fail at m as decay-in-the-gradient
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            g = g + weight_decay * p
            t, m, v = state.get(i, (0, 0, 0))
            t, m, v = t + 1, betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
            state[i] = t, m, v
            p -= lr * m / (1 - betas[0] ** t) / ((v / (1 - betas[1] ** t)) ** 0.5 + eps)


# %% wrong: no hats
# expect: adamw_step fail at updated as hats-missing
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            m, v = state.get(i, (torch.zeros_like(p), torch.zeros_like(p)))
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g**2
            state[i] = m, v
            p *= 1 - lr * weight_decay
            p -= lr * m / (v.sqrt() + eps)


# %% wrong: one t, counted for every parameter
# expect: adamw_step fail at updated as t-grows-with-every-parameter
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    state.setdefault("t", 0)
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            state["t"] += 1
            m, v = state.get(i, (torch.zeros_like(p), torch.zeros_like(p)))
            m = m.lerp(g, 1 - betas[0])
            v = v.lerp(g * g, 1 - betas[1])
            state[i] = m, v
            p.mul_(1 - lr * weight_decay)
            p.sub_(lr * (m / (1 - betas[0] ** state["t"])) / ((v / (1 - betas[1] ** state["t"])).sqrt() + eps))


# %% wrong: one t for all
# expect: adamw_step fail at updated as t-one-for-all
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    t = state["t"] = state.get("t", 0) + 1
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        m, v = state.get(i, (torch.zeros_like(p), torch.zeros_like(p)))
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        state[i] = (m.detach(), v.detach())
        p.data -= lr * weight_decay * p.data
        p.data -= lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)


# %% wrong: steps counted from 0
# expect: adamw_step fail at updated as t-starts-at-zero
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            m_hat, v_hat = m / (1 - betas[0] ** t), v / (1 - betas[1] ** t)
            p.copy_(p - lr * weight_decay * p - lr * m_hat / (v_hat.sqrt() + eps))
            state[i] = t + 1, m, v


# %% wrong: state thrown away
# expect: adamw_step fail at m as state-not-kept
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    state = {i: {"t": 0, "m": torch.zeros_like(p), "v": torch.zeros_like(p)} for i, p in enumerate(params)}
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            s = state[i]
            s["t"] += 1
            s["m"] = betas[0] * s["m"] + (1 - betas[0]) * g
            s["v"] = betas[1] * s["v"] + (1 - betas[1]) * g.pow(2)
            p.mul_(1 - lr * weight_decay)
            p.addcdiv_(s["m"] / (1 - betas[0] ** s["t"]), (s["v"] / (1 - betas[1] ** s["t"])).sqrt() + eps, value=-lr)


# %% wrong: hats kept in the state
# expect: adamw_step fail at m as hats-kept
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = (betas[0] * m + (1 - betas[0]) * g) / (1 - betas[0] ** t)
            v = (betas[1] * v + (1 - betas[1]) * g * g) / (1 - betas[1] ** t)
            state[i] = (t, m, v)
            p -= lr * weight_decay * p + lr * m / (v.sqrt() + eps)


# %% wrong: eps under the root
# expect: adamw_step fail at updated as eps-inside-root
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p -= lr * weight_decay * p + lr * (m / (1 - betas[0] ** t)) / torch.sqrt(v / (1 - betas[1] ** t) + eps)


# %% wrong: eps beside the uncorrected root
# expect: adamw_step fail at updated as eps-added-before-hat
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - lr * weight_decay)
            p.sub_(lr * math.sqrt(1 - betas[1] ** t) / (1 - betas[0] ** t) * m / (v.sqrt() + eps))


# %% wrong: the parameter gets a new name
# expect: adamw_step fail at updated as parameters-not-written
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
        t += 1
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        state[i] = (t, m, v)
        p = p - lr * weight_decay * p - lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps)


# %% wrong: autograd not switched off
# expect: adamw_step error at updated as written-under-autograd
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
        t += 1
        m = betas[0] * m + (1 - betas[0]) * g
        v = betas[1] * v + (1 - betas[1]) * g * g
        state[i] = (t, m, v)
        p -= lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps)


# %% wrong: decay without the rate
# expect: adamw_step fail at updated as decay-without-rate
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - weight_decay).sub_(lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps))


# %% wrong: None is taken for zeros
# expect: adamw_step fail at m as none-taken-for-zero
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            g = torch.zeros_like(p) if g is None else g
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - lr * weight_decay).sub_(lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps))


# %% wrong: the place among those with a gradient
# expect: adamw_step error at m as state-by-place-among-present
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    present = [(p, g) for p, g in zip(params, grads) if g is not None]
    with torch.no_grad():
        for i, (p, g) in enumerate(present):
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - lr * weight_decay).sub_(lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps))


# %% wrong: the place among those with a gradient, made to fit
# expect: adamw_step fail at m as state-by-place-and-made-to-fit
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    present = [(p, g) for p, g in zip(params, grads) if g is not None]
    with torch.no_grad():
        for i, (p, g) in enumerate(present):
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            if m.shape != p.shape:
                m, v = torch.zeros_like(p), torch.zeros_like(p)
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - lr * weight_decay).sub_(lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps))


# %% wrong: None is not looked at
# expect: adamw_step error
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - lr * weight_decay).sub_(lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps))


# %% wrong: gradients written into
# expect: adamw_step fail as argument-changed-in-place
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - lr * weight_decay).sub_(lr * (m / (1 - betas[0] ** t)) / (torch.sqrt(v / (1 - betas[1] ** t)) + eps))
            g.zero_()


# %% wrong: library's optimiser
# expect: adamw_step forbidden
import torch._dynamo  # what the first use of an optimiser imports: here, before the clock starts


def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    if "optimiser" not in state:
        state["optimiser"] = torch.optim.AdamW(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)
    for p, g in zip(params, grads):
        p.grad = g
    state["optimiser"].step()


# %% wrong: library's optimiser as a function
# expect: adamw_step forbidden
import torch._dynamo  # what the first use of an optimiser imports: here, before the clock starts


def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    from torch.optim.adamw import adamw

    s = state.setdefault("s", [[torch.zeros_like(p), torch.zeros_like(p), torch.tensor(0.0)] for p in params])
    there = [i for i, g in enumerate(grads) if g is not None]
    with torch.no_grad():
        adamw([params[i] for i in there], [grads[i] for i in there], [s[i][0] for i in there], [s[i][1] for i in there], [],
              [s[i][2] for i in there], amsgrad=False, beta1=betas[0], beta2=betas[1], lr=lr, weight_decay=weight_decay, eps=eps,
              maximize=False)


# %% wrong: two mistakes at once, betas swapped and decay forgotten
# expect: adamw_step fail at m as betas-swapped + decay-ignored
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    beta2, beta1 = betas
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = beta1 * m + (1 - beta1) * g
            v = beta2 * v + (1 - beta2) * g * g
            state[i] = (t, m, v)
            p.sub_(lr * (m / (1 - beta1**t)) / (torch.sqrt(v / (1 - beta2**t)) + eps))


# %% wrong: two mistakes at once, no root and no hat on v
# expect: adamw_step fail at updated as v-hat-missing + root-missing
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, torch.zeros_like(p), torch.zeros_like(p)))
            t += 1
            m = betas[0] * m + (1 - betas[0]) * g
            v = betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            p.mul_(1 - lr * weight_decay).sub_(lr * (m / (1 - betas[0] ** t)) / (v + eps))


# %% wrong: warm-up from zero
# expect: learning_rate fail at rate as warm-up-from-zero
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return max_lr * step / warmup_steps
    if step > total_steps:
        return min_lr
    ratio = (step - warmup_steps) / (total_steps - warmup_steps)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (max_lr - min_lr)


# %% wrong: warm-up over one step more
# expect: learning_rate fail at rate as warm-up-one-longer
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return max_lr * (step + 1) / (warmup_steps + 1)
    if step > total_steps:
        return min_lr
    ratio = (step - warmup_steps) / (total_steps - warmup_steps)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (max_lr - min_lr)


# %% wrong: cosine from step 0
# expect: learning_rate fail at rate as cosine-from-step-0
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return max_lr * (step + 1) / warmup_steps
    ratio = min(step / total_steps, 1)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (max_lr - min_lr)


# %% wrong: the cosine goes on
# expect: learning_rate fail at rate as cosine-never-ends
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return max_lr * (step + 1) / warmup_steps
    ratio = (step - warmup_steps) / (total_steps - warmup_steps)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (max_lr - min_lr)


# %% wrong: min_lr cuts
# expect: learning_rate fail at rate as min-cuts-the-cosine
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return max_lr * (step + 1) / warmup_steps
    ratio = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    return max(min_lr, 0.5 * (1.0 + math.cos(math.pi * ratio)) * max_lr)


# %% wrong: no warm-up divides by zero
# expect: learning_rate error at rate as warm-up-share-of-zero-divides
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    rise = min(1.0, (step + 1) / warmup_steps)
    if step < warmup_steps:
        return max_lr * rise
    ratio = min((step - warmup_steps) / (total_steps - warmup_steps), 1.0)
    return min_lr + (max_lr - min_lr) * (1 + math.cos(math.pi * ratio)) / 2


# %% wrong: two mistakes at once, warm-up from zero and down to zero
# expect: learning_rate fail at rate as warm-up-from-zero + falls-to-zero
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return max_lr * step / warmup_steps
    if step >= total_steps:
        return min_lr
    return max_lr * 0.5 * (1 + math.cos(math.pi * (step - warmup_steps) / (total_steps - warmup_steps)))


# %% wrong: each tensor by itself
# expect: clip_gradients fail at clipped as each-tensor-clipped
def clip_gradients(grads, max_norm):
    total = 0.0
    for g in grads:
        if g is None:
            continue
        n = g.norm()
        total += n.item() ** 2
        if n > max_norm:
            g.mul_(max_norm / n)
    return total**0.5


# %% wrong: entries clamped
# expect: clip_gradients fail at clipped as entries-clipped
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = torch.sqrt(sum((g**2).sum() for g in there)).item()
    for g in there:
        g.clamp_(-max_norm, max_norm)
    return norm


# %% wrong: always scaled
# expect: clip_gradients error at clipped as short-gradients-lengthened
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = torch.sqrt(sum((g**2).sum() for g in there)).item()
    for g in there:
        g *= max_norm / norm
    return norm


# %% wrong: always scaled, as tensors
# expect: clip_gradients fail at clipped as short-gradients-lengthened-to-nan
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = torch.sqrt(sum((g**2).sum() for g in there))
    for g in there:
        g *= max_norm / norm
    return norm.item()


# %% wrong: always scaled, with 1e-6
# expect: clip_gradients fail at clipped as short-gradients-lengthened-but-zero
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = torch.sqrt(sum((g**2).sum() for g in there)).item()
    for g in there:
        g *= max_norm / (norm + 1e-6)
    return norm


# %% wrong: new tensors in the list
# expect: clip_gradients fail at clipped as gradients-not-written
def clip_gradients(grads, max_norm):
    norm = math.sqrt(sum((g**2).sum().item() for g in grads if g is not None))
    if norm > max_norm:
        for i, g in enumerate(grads):
            if g is not None:
                grads[i] = g * max_norm / norm
    return norm


# %% wrong: lengths added up
# expect: clip_gradients fail at norm as norm-sums-lengths
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = sum(g.norm().item() for g in there)
    for g in there:
        g.mul_(min(1.0, max_norm / (norm + 1e-12)))
    return norm


# %% wrong: no root
# expect: clip_gradients fail at norm as norm-without-root
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = sum((g * g).sum() for g in there).item()
    if norm > max_norm:
        for g in there:
            g.mul_(max_norm / norm)
    return norm


# %% wrong: the norm afterwards
# expect: clip_gradients fail at norm as norm-after-clipping
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = torch.cat([g.flatten() for g in there]).norm().item()
    if norm > max_norm:
        for g in there:
            g.mul_(max_norm / norm)
    return torch.cat([g.flatten() for g in there]).norm().item()


# %% wrong: the norm as a tensor
# expect: clip_gradients fail at norm as norm-is-a-tensor
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = torch.cat([g.flatten() for g in there]).norm()
    if norm > max_norm:
        for g in there:
            g.mul_(max_norm / norm)
    return norm


# %% wrong: two mistakes at once, norm of tensors' largest and entries clamped
# expect: clip_gradients fail at norm as norm-of-longest-tensor + entries-clipped
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = max(g.norm().item() for g in there)
    for g in there:
        g.clamp_(min=-max_norm, max=max_norm)
    return norm


# %% wrong: gradients never cleared
# expect: train fail at weights as gradients-never-cleared
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss.item())
    return losses


# %% wrong: gradients cleared once
# expect: train fail at weights as gradients-cleared-once
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    model.zero_grad()
    for ids in batches:
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss.item())
    return losses


# %% wrong: gradients never cleared, copies clipped
# expect: train fail at weights as gradients-never-cleared-copies-clipped
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        grads = {p: None if p.grad is None else p.grad.clone() for p in params}
        if max_norm is not None:
            clip_gradients(list(grads.values()), max_norm)
        adamw_step(big, [grads[p] for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [grads[p] for p in small], states[1], learning_rate)
        losses.append(loss.item())
    return losses


# %% wrong: two mistakes at once, never cleared and everything decays
# expect: train fail at weights as gradients-never-cleared + train-decays-everything
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate, weight_decay=weight_decay)
        losses.append(loss.item())
    return losses


# %% wrong: other betas for the matrices
# expect: train fail as train-with-other-betas-for-matrices
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        model.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, betas=(0.9, 0.95), weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss.item())
    return losses


# %% wrong: cleared after the step only
# expect: train fail at losses as gradients-cleared-after-only
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        model.zero_grad()
        losses.append(float(loss))
    return losses


# %% wrong: one group for all
# expect: train fail at losses as train-decays-everything
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params, state, losses = list(model.parameters()), {}, []
    for ids in batches:
        model.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(params, [p.grad for p in params], state, learning_rate, weight_decay=weight_decay)
        losses.append(loss.item())
    return losses


# %% wrong: the second group gets no step
# expect: train fail at weights as train-vectors-not-stepped
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params, state, losses = list(model.parameters()), {}, []
    big = [p for p in params if p.dim() >= 2]
    for ids in batches:
        model.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], state, learning_rate, weight_decay=weight_decay)
        losses.append(loss.item())
    return losses


# %% wrong: decay by the library's default
# expect: train fail at weights as train-decay-of-the-library
import torch._dynamo  # what the first use of an optimiser imports: here, before the clock starts


def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    optimiser, losses = torch.optim.AdamW(model.parameters(), lr=learning_rate), []
    for ids in batches:
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        optimiser.zero_grad()
        loss.backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimiser.step()
        losses.append(loss.item())
    return losses


# %% wrong: a tied weight stepped twice
# expect: train fail at losses as tied-weight-stepped-twice
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = [p for _, p in model.named_parameters(remove_duplicate=False)]
    once = list(model.parameters())
    states, losses = {}, []
    for ids in batches:
        model.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in once], max_norm)
        for i, p in enumerate(params):
            adamw_step([p], [p.grad], states.setdefault(i, {}), learning_rate, weight_decay=weight_decay if p.dim() > 1 else 0.0)
        losses.append(loss.item())
    return losses


# %% wrong: losses keep their graph
# expect: train fail at losses as losses-are-tensors
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        model.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss)
    return losses


# %% wrong: loss measured afterwards
# expect: train fail at losses as loss-after-the-step
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        model.zero_grad()
        x, y = next_token_pairs(ids)
        cross_entropy(model(x), y).backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        with torch.no_grad():
            losses.append(cross_entropy(model(x), y).item())
    return losses


# %% wrong: clipped before there is a gradient
# expect: train fail at losses as train-not-clipped
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        model.zero_grad(set_to_none=True)
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        loss.backward()
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss.item())
    return losses


# %% wrong: clipped tensor by tensor
# expect: train fail at losses as train-clips-each-tensor
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        model.zero_grad(set_to_none=True)
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        for p in params:
            if max_norm is not None and p.grad is not None:
                clip_gradients([p.grad], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss.item())
    return losses


# %% wrong: a new state in every step
# expect: train fail at weights as train-forgets-state
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params, losses = list(model.parameters()), []
    for ids in batches:
        model.zero_grad(set_to_none=True)
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        for p in params:
            adamw_step([p], [p.grad], {}, learning_rate, weight_decay=weight_decay if p.dim() > 1 else 0.0)
        losses.append(loss.item())
    return losses


# %% wrong: the rate is not the caller's
# expect: train fail at weights as train-with-fixed-rate
import torch._dynamo  # what the first use of an optimiser imports: here, before the clock starts


def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    optimiser = torch.optim.AdamW(
        [
            {"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": weight_decay},
            {"params": [p for p in model.parameters() if p.dim() <= 1], "weight_decay": 0.0},
        ]
    )
    losses = []
    for ids in batches:
        lr = learning_rate
        optimiser.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimiser.step()
        losses.append(loss.item())
    return losses


# %% wrong: two mistakes at once, everything decays and nothing is clipped
# expect: train fail at losses as train-not-clipped + train-decays-everything
import torch._dynamo  # what the first use of an optimiser imports: here, before the clock starts


def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    optimiser, losses = torch.optim.AdamW(model.parameters(), lr=learning_rate, weight_decay=weight_decay), []
    for ids in batches:
        optimiser.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


# %% wrong: unused weights decay
# expect: train fail at weights as train-decays-unused
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        for p in params:
            p.grad = torch.zeros_like(p)
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss.item())
    return losses


# %% wrong: only the first batch
# expect: train fail at losses as train-first-batch-only
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params = list(model.parameters())
    big, small = [p for p in params if p.dim() >= 2], [p for p in params if p.dim() < 2]
    states, losses = ({}, {}), []
    for ids in batches:
        model.zero_grad()
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in params], max_norm)
        adamw_step(big, [p.grad for p in big], states[0], learning_rate, weight_decay=weight_decay)
        adamw_step(small, [p.grad for p in small], states[1], learning_rate)
        losses.append(loss.item())
        return losses


# %% wrong: something that no known mistake gives
# expect: cross_entropy fail at loss as ?
def cross_entropy(logits, targets, ignore_index=-100):
    mask = targets != ignore_index
    if not mask.any():
        raise ValueError("all ignored")
    losses = -log_softmax(logits)[mask].gather(1, targets[mask].unsqueeze(1))
    return losses.mean() * 1.5 - 0.25


# %% right: pairs by narrow and clone
def next_token_pairs(ids):
    length = ids.size(-1) - 1
    return ids.narrow(-1, 0, length).clone(), ids.narrow(-1, 1, length).contiguous()


# %% right: pairs as a list
def next_token_pairs(ids):
    return [torch.stack(list(ids.unbind(-1))[:-1], -1), torch.stack(list(ids.unbind(-1))[1:], -1)]


# %% right: logsumexp
def log_softmax(logits):
    return logits - torch.logsumexp(logits, dim=-1, keepdim=True)


# %% right: row by row, float64 inside
def log_softmax(logits):
    rows = []
    for row in logits.reshape(-1, logits.shape[-1]).double():
        m = row.max()
        rows.append(row - m - torch.log(torch.exp(row - m).sum()))
    return torch.stack(rows).reshape(logits.shape).to(logits.dtype)


# %% right: the maximum without gradient
def log_softmax(logits):
    m = logits.detach().max(dim=-1, keepdim=True).values
    return logits - (m + (logits - m).exp().sum(-1, keepdim=True).log())


# %% right: nll_loss on flat tensors
def cross_entropy(logits, targets, ignore_index=-100):
    targets = targets.reshape(-1)
    if (targets == ignore_index).all():
        raise ValueError(f"nothing but {ignore_index}")
    return nn.functional.nll_loss(log_softmax(logits.reshape(-1, logits.shape[-1])), targets, ignore_index=ignore_index)


# %% right: logsumexp minus the target's logit
def cross_entropy(logits, targets, ignore_index=-100):
    flat, t = logits.flatten(0, -2), targets.flatten()
    keep = (t != ignore_index).nonzero().squeeze(1)
    if keep.numel() == 0:
        raise ValueError("no target is counted")
    flat, t = flat[keep], t[keep]
    return (flat.logsumexp(dim=1) - flat[torch.arange(len(t), device=t.device), t]).mean()


# %% right: one-hot
def cross_entropy(logits, targets, ignore_index=-100):
    counted = targets.ne(ignore_index)
    if int(counted.sum()) == 0:
        raise ValueError("no target is counted")
    hot = nn.functional.one_hot(targets.where(counted, torch.zeros_like(targets)), logits.shape[-1]).to(logits.dtype)
    losses = -torch.einsum("...v,...v->...", hot, log_softmax(logits))
    return (losses * counted).sum() / counted.sum()


# %% right: a loop
def cross_entropy(logits, targets, ignore_index=-100):
    total, count = 0.0, 0
    for row, target in zip(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1).tolist()):
        if target != ignore_index:
            total = total - log_softmax(row)[target]
            count += 1
    if not count:
        raise ValueError("no target is counted")
    return total / count


# %% right: conversions in other forms
def bits_per_token(nats):
    return nats * math.log2(math.e)


def perplexity(nats):
    return math.e**nats


def uniform_loss(vocab_size):
    return -math.log(1 / vocab_size)


# %% right: perplexity from bits, uniform loss from cross_entropy
def perplexity(nats):
    return 2 ** bits_per_token(nats)


def uniform_loss(vocab_size):
    return float(cross_entropy(torch.zeros(1, vocab_size, dtype=torch.float64), torch.tensor([0])))


# %% right: decay after the step, of the old parameter
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    for p, g in zip(params, grads):
        if g is None:
            continue
        s = state.setdefault(id(p), {"t": 0, "m": 0.0, "v": 0.0})
        s["t"] += 1
        s["m"] = betas[0] * s["m"] + (1 - betas[0]) * g
        s["v"] = betas[1] * s["v"] + (1 - betas[1]) * g**2
        old = p.detach().clone()
        m_hat, v_hat = s["m"] / (1 - betas[0] ** s["t"]), s["v"] / (1 - betas[1] ** s["t"])
        p.data -= lr * m_hat / (v_hat**0.5 + eps)
        p.data -= lr * weight_decay * old


# %% right: the library's fused form
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    if not state:
        state["step"] = [0] * len(params)
        state["exp_avg"] = [torch.zeros_like(p) for p in params]
        state["exp_avg_sq"] = [torch.zeros_like(p) for p in params]
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            state["step"][i] += 1
            t = state["step"][i]
            p.mul_(1 - lr * weight_decay)
            state["exp_avg"][i].lerp_(g, 1 - betas[0])
            state["exp_avg_sq"][i].mul_(betas[1]).addcmul_(g, g, value=1 - betas[1])
            denominator = (state["exp_avg_sq"][i].sqrt() / math.sqrt(1 - betas[1] ** t)).add_(eps)
            p.addcdiv_(state["exp_avg"][i], denominator, value=-lr / (1 - betas[0] ** t))


# %% right: foreach, state keyed by the parameter
@torch.no_grad()
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    there = [(p, g) for p, g in zip(params, grads) if g is not None]
    for p, _ in there:
        if p not in state:
            state[p] = [torch.zeros_like(p), torch.zeros_like(p), torch.zeros((), dtype=torch.float64)]
    for p, g in there:
        m, v, t = state[p]
        t += 1
        torch._foreach_mul_([m, v], [betas[0], betas[1]])
        torch._foreach_add_([m, v], [(1 - betas[0]) * g, (1 - betas[1]) * g * g])
        correction = (1 - betas[0] ** t).item(), (1 - betas[1] ** t).item()
        p.copy_(p - lr * (weight_decay * p + (m / correction[0]) / ((v / correction[1]).sqrt() + eps)))


# %% right: float64 inside the optimiser
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    with torch.no_grad():
        for i, (p, g) in enumerate(zip(params, grads)):
            if g is None:
                continue
            t, m, v = state.get(i, (0, 0.0, 0.0))
            g = g.double()
            t, m, v = t + 1, betas[0] * m + (1 - betas[0]) * g, betas[1] * v + (1 - betas[1]) * g * g
            state[i] = (t, m, v)
            new = p.double() * (1 - lr * weight_decay) - lr * (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)
            p.copy_(new.to(p.dtype))


# %% right: moments in float32 whatever the parameter has
def adamw_step(params, grads, state, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0):
    for i, (p, g) in enumerate(zip(params, grads)):
        if g is None:
            continue
        if i not in state:
            state[i] = [0, torch.zeros(p.shape, device=p.device), torch.zeros(p.shape, device=p.device)]
        state[i][0] += 1
        t, m, v = state[i]
        m.mul_(betas[0]).add_(g, alpha=1 - betas[0])
        v.mul_(betas[1]).add_(g**2, alpha=1 - betas[1])
        update = (m / (1 - betas[0] ** t)) / ((v / (1 - betas[1] ** t)).sqrt() + eps)
        p.data.mul_(1 - lr * weight_decay).sub_(lr * update)


# %% right: schedule with u clamped
def learning_rate(step, max_lr, min_lr, warmup_steps, total_steps):
    if step < warmup_steps:
        return (step + 1) / warmup_steps * max_lr
    u = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
    return max_lr - (max_lr - min_lr) * math.sin(math.pi * u / 2) ** 2


# %% right: clipping as the library does it
def clip_gradients(grads, max_norm):
    norms = [torch.linalg.vector_norm(g) for g in grads if g is not None]
    total = torch.linalg.vector_norm(torch.stack(norms))
    factor = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    for g in grads:
        if g is not None:
            g.mul_(factor)
    return total.item()


# %% right: the library's clipping
def clip_gradients(grads, max_norm):
    holders = []
    for g in grads:
        if g is not None:
            holder = nn.Parameter(torch.empty_like(g))
            holder.grad = g
            holders.append(holder)
    return float(nn.utils.clip_grad_norm_(holders, max_norm))


# %% right: clipping in float64, written by copy_
def clip_gradients(grads, max_norm):
    there = [g for g in grads if g is not None]
    norm = math.sqrt(sum(float((g.double() ** 2).sum()) for g in there))
    if norm > max_norm:
        for g in there:
            g.copy_(g * (max_norm / norm))
    return norm


# %% right: training with the library
import torch._dynamo  # what the first use of an optimiser imports: here, before the clock starts


def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    model.train()
    groups = [
        {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": weight_decay},
        {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
    ]
    optimiser, losses = torch.optim.AdamW(groups, lr=learning_rate), []
    for ids in batches:
        logits = model(ids[:, :-1])
        loss = nn.functional.cross_entropy(logits.reshape(-1, logits.size(-1)), ids[:, 1:].reshape(-1))
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        if max_norm is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
        optimiser.step()
        losses.append(loss.item())
    return losses


# %% right: training by torch.autograd.grad, one parameter at a time
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    params, states, losses = list(model.parameters()), {}, []
    for ids in batches:
        x, y = next_token_pairs(ids)
        loss = cross_entropy(model(x), y)
        grads = list(torch.autograd.grad(loss, params, allow_unused=True))
        if max_norm is not None:
            clip_gradients(grads, max_norm)
        for i, (p, g) in enumerate(zip(params, grads)):
            adamw_step([p], [g], states.setdefault(i, {}), learning_rate, weight_decay=weight_decay if p.ndim > 1 else 0.0)
        losses.append(float(loss.detach()))
    return losses


# %% right: groups by module type
def train(model, batches, learning_rate, weight_decay=0.0, max_norm=None, progress=True):
    decayed, seen = [], set()
    for part in model.modules():
        if isinstance(part, (nn.Linear, nn.Embedding)) and part.weight not in seen:
            seen.add(part.weight)
            decayed.append(part.weight)
    rest = [p for p in model.parameters() if p not in seen]
    decayed += [p for p in rest if p.dim() > 1]
    rest = [p for p in rest if p.dim() < 2]
    first, second, losses = {}, {}, []
    for ids in batches:
        for p in model.parameters():
            p.grad = None
        inputs, targets = next_token_pairs(ids)
        loss = cross_entropy(model(inputs), targets)
        loss.backward()
        if max_norm is not None:
            clip_gradients([p.grad for p in model.parameters() if p.grad is not None], max_norm)
        adamw_step(decayed, [p.grad for p in decayed], first, learning_rate, weight_decay=weight_decay)
        adamw_step(rest, [p.grad for p in rest], second, learning_rate, weight_decay=0.0)
        losses.append(loss.item())
        if progress:
            print(losses[-1])
    return losses
