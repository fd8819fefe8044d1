"""Submissions of 05_residual_stream: patches on the solution, with what the grader must say of them."""


# %% wrong: plain addition, no check
# expect: add_to_stream fail as add-broadcasts
def add_to_stream(resid, update):
    return resid + update


# %% wrong: numbers counted, not shapes
# expect: add_to_stream fail as add-checks-count-only
def add_to_stream(resid, update):
    if resid.numel() != update.numel():
        raise ValueError(f"{resid.shape} {update.shape}")
    return resid + update


# %% wrong: only the last axis compared
# expect: add_to_stream fail as add-checks-last-axis
def add_to_stream(resid, update):
    if resid.size(-1) != update.size(-1):
        raise ValueError("channels differ")
    return torch.add(resid, update)


# %% wrong: only the number of axes compared
# expect: add_to_stream fail as add-checks-number-of-axes
def add_to_stream(resid, update):
    if resid.ndim != update.ndim:
        raise ValueError("axes differ")
    return resid + update


# %% wrong: an assertion
# expect: add_to_stream fail as refused-by-another-exception
def add_to_stream(resid, update):
    assert resid.shape == update.shape, "shapes differ"
    return resid + update


# %% wrong: the update expanded
# expect: add_to_stream fail as add-checks-result-only
def add_to_stream(resid, update):
    try:
        return resid + update.expand_as(resid)
    except RuntimeError:
        raise ValueError(f"{tuple(update.shape)} does not fit {tuple(resid.shape)}")


# %% wrong: equal shapes refused
# expect: add_to_stream error as add-check-upside-down
def add_to_stream(resid, update):
    if resid.shape == update.shape:
        raise ValueError("shapes")
    return resid + update


# %% wrong: times for plus
# expect: add_to_stream fail at summed as add-multiplies
def add_to_stream(resid, update):
    if resid.shape != update.shape:
        raise ValueError("shapes")
    return resid * update


# %% wrong: the stream overwritten
# expect: add_to_stream fail as argument-changed-in-place
def add_to_stream(resid, update):
    if resid.shape != update.shape:
        raise ValueError("shapes")
    resid += update
    return resid


# %% wrong: the stream overwritten without the graph knowing
# expect: add_to_stream fail as argument-changed-in-place
def add_to_stream(resid, update):
    if resid.shape != update.shape:
        raise ValueError("shapes")
    out = resid + update
    resid.data.copy_(out.data)
    return out


# %% wrong: the stream doubled
# expect: add_to_stream fail at summed as add-doubles-update
def add_to_stream(resid, update):
    if resid.shape != update.shape:
        raise ValueError("shapes")
    resid = update
    return resid + update


# %% wrong: the update dropped from the gradient
# expect: add_to_stream fail at update.grad as add-update-without-gradient
def add_to_stream(resid, update):
    if resid.shape != update.shape:
        raise ValueError("shapes")
    return resid + update.detach()


# %% wrong: x = x + x behind attention
# expect: pre_norm_block fail at resid_mid as attention-doubled
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = resid
    x = attn(ln_1(x))
    x = x + x
    return x + mlp(ln_2(x))


# %% wrong: x = x + x behind both
# expect: pre_norm_block fail at resid_mid as attention-doubled + mlp-doubled
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = attn(ln_1(resid))
    x = x + x
    x = mlp(ln_2(x))
    x = x + x
    return x


# %% wrong: parallel wiring
# expect: pre_norm_block fail at ln_2 as mlp-reads-before-attention
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    return resid + attn(ln_1(resid)) + mlp(ln_2(resid))


# %% wrong: parallel wiring with one norm
# expect: pre_norm_block fail at ln_2 as mlp-reads-ln_1
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    h = ln_1(resid)
    return resid + attn(h) + mlp(h)


# %% wrong: the diagram of 2017
# expect: pre_norm_block fail at ln_1 as post-norm
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = ln_1(resid + attn(resid))
    return ln_2(x + mlp(x))


# %% wrong: ln_1 twice
# expect: pre_norm_block fail at ln_2 as ln_1-used-twice
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = resid + attn(ln_1(resid))
    x = x + mlp(ln_1(x))
    return x


# %% wrong: norms exchanged
# expect: pre_norm_block fail at ln_1 as norms-exchanged
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = resid + attn(ln_2(resid))
    return x + mlp(ln_1(x))


# %% wrong: norms never called
# expect: pre_norm_block fail at ln_1 as norms-not-used
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = resid + attn(resid)
    return x + mlp(x)


# %% wrong: second norm never called
# expect: pre_norm_block fail at ln_2 as second-norm-not-used
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = resid + attn(ln_1(resid))
    return x + mlp(x)


# %% wrong: times for plus behind the MLP
# expect: pre_norm_block fail at resid_post as mlp-multiplied
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = resid + attn(ln_1(resid))
    return x * mlp(ln_2(x))


# %% wrong: times for plus behind attention
# expect: pre_norm_block fail at resid_mid as attention-multiplied
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = resid * attn(ln_1(resid))
    return x + mlp(ln_2(x))


# %% wrong: skip taken by reference, stream overwritten
# expect: pre_norm_block fail as argument-changed-in-place
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    with torch.no_grad():
        resid.add_(attn(ln_1(resid)))
    return resid + mlp(ln_2(resid))


# %% wrong: a norm that works in place
# expect: pre_norm_block fail at resid_mid as attention-added-to-norm
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    def normalise(x, norm):
        x.data.copy_(norm(x))
        return x

    skip = resid
    x = skip + attn(normalise(resid, ln_1))
    return x + mlp(ln_2(x))


# %% wrong: skip captured before attention wrote
# expect: pre_norm_block fail at resid_post as skip-from-before-attention
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    skip = resid
    x = skip + attn(ln_1(resid))
    return skip + mlp(ln_2(x))


# %% wrong: the line runs through the norms
# expect: pre_norm_block fail at resid_mid as attention-added-to-norm + mlp-added-to-norm
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = ln_1(resid)
    x = x + attn(x)
    x = ln_2(x)
    return x + mlp(x)


# %% wrong: the block returns its writes
# expect: pre_norm_block fail at resid_post as writes-without-stream
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    a = attn(ln_1(resid))
    m = mlp(ln_2(resid + a))
    return a + m


# %% wrong: a pair comes back
# expect: pre_norm_block fail as block-returns-two-states
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    mid = resid + attn(ln_1(resid))
    return mid, mid + mlp(ln_2(mid))


# %% wrong: skip dropped and ln_1 twice
# expect: pre_norm_block fail at resid_mid as attention-replaces-stream + ln_1-used-twice
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = attn(ln_1(resid))
    return x + mlp(ln_1(x))


# %% wrong: skip without gradient
# expect: pre_norm_block fail at resid.grad as stream-without-gradient-at-attention
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    skip = resid.clone().detach()
    x = skip + attn(ln_1(resid))
    return x + mlp(ln_2(x))


# %% wrong: dropout that never sleeps
# expect: pre_norm_block fail as differs-from-call-to-call
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    drop = torch.nn.functional.dropout
    x = resid + drop(attn(ln_1(resid)), 0.1)
    return x + drop(mlp(ln_2(x)), 0.1)


# %% wrong: add_to_stream and the block wrong together
# expect: add_to_stream fail at summed as add-multiplies
# expect: pre_norm_block fail at ln_2 as ln_1-used-twice
def add_to_stream(resid, update):
    if resid.shape != update.shape:
        raise ValueError("shapes")
    return resid * update


def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = add_to_stream(resid, attn(ln_1(resid)))
    return add_to_stream(x, mlp(ln_1(x)))


# %% wrong: final norm inside the loop
# expect: run_stream fail at states as states-normalised
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        x = states[-1]
        if i not in skip:
            x = torch.nn.functional.layer_norm(block(x), x.shape[-1:])
        states.append(x)
    return states


# %% wrong: final norm behind the loop
# expect: run_stream fail at states as last-state-normalised
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        states.append(states[-1] if i in skip else block(states[-1]))
    states[-1] = torch.nn.functional.layer_norm(states[-1], resid.shape[-1:])
    return states


# %% wrong: skipped layer gives zeros
# expect: run_stream fail at states as skipped-layer-gives-zeros
def run_stream(resid, blocks, skip=()):
    x, states = resid, [resid]
    for i, block in enumerate(blocks):
        x = torch.zeros_like(x) if i in skip else block(x)
        states.append(x)
    return states


# %% wrong: embedding not among the states
# expect: run_stream fail at n_states as embedding-missing
def run_stream(resid, blocks, skip=()):
    x, states = resid, []
    for i, block in enumerate(blocks):
        if i not in skip:
            x = block(x)
        states.append(x)
    return states


# %% wrong: appended before the block runs
# expect: run_stream fail at n_states as last-state-missing
def run_stream(resid, blocks, skip=()):
    x, states = resid, []
    for i, block in enumerate(blocks):
        states.append(x)
        if i not in skip:
            x = block(x)
    return states


# %% wrong: block output added to the stream
# expect: run_stream fail at states as input-added-again
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        x = states[-1]
        states.append(x if i in skip else x + block(x))
    return states


# %% wrong: skipped layers leave no entry
# expect: run_stream fail at n_states as skipped-layer-leaves-no-state
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        if i in skip:
            continue
        states.append(block(states[-1]))
    return states


# %% wrong: skip not looked at
# expect: run_stream fail at states as skip-ignored
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for block in blocks:
        states.append(block(states[-1]))
    return states


# %% wrong: layers counted from one
# expect: run_stream fail at states as skip-counted-from-one
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for number, block in enumerate(blocks, start=1):
        states.append(states[-1] if number in skip else block(states[-1]))
    return states


# %% wrong: all blocks read the embedding
# expect: run_stream fail at states as blocks-read-the-embedding
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        states.append(states[-1] if i in skip else block(resid))
    return states


# %% wrong: every layer starts from the embedding, the skipped ones too
# expect: run_stream fail at states as every-layer-starts-from-the-embedding
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        x = resid
        if i not in skip:
            x = block(x)
        states.append(x)
    return states


# %% wrong: the last state comes back alone
# expect: run_stream fail at n_states as last-state-for-the-list
def run_stream(resid, blocks, skip=()):
    x = resid
    for i, block in enumerate(blocks):
        x = x if i in skip else block(x)
    return x


# %% wrong: a norm of one's own, by the standard deviation
# expect: logit_lens fail at ln_f as lens-norm-of-your-own-by-std
def logit_lens(stream, ln_f, unembed):
    states = torch.stack(list(stream))
    std, mean = torch.std_mean(states, dim=-1, keepdim=True)
    return torch.stack([unembed(state) for state in (states - mean) / std])


# %% wrong: divided by the root of the mean square
# expect: logit_lens fail at ln_f as lens-divided-by-root-mean-square
def logit_lens(stream, ln_f, unembed):
    return torch.stack([unembed(state / state.pow(2).mean(-1, keepdim=True) ** 0.5) for state in stream])


# %% wrong: listed positions pushed in the first sequence
# expect: steer fail at steered as steer-first-sequence-only-where-listed
def steer(resid, direction, strength, positions=None):
    if positions is None:
        return resid + strength * direction
    out = resid.clone()
    for t in positions:
        out[0][t] = resid[0][t] + strength * direction
    return out


# %% wrong: skipped layers run for nothing
# expect: run_stream fail at layers_called as skipped-layer-called-and-thrown-away
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        new = block(states[-1])
        states.append(states[-1] if i in skip else new)
    return states


# %% wrong: one tensor for all states
# expect: run_stream fail at states as states-all-the-last
def run_stream(resid, blocks, skip=()):
    x = resid.clone()
    states = [x]
    for i, block in enumerate(blocks):
        if i not in skip:
            x.data = block(x).data
        states.append(x)
    return states


# %% wrong: break at a skipped layer
# expect: run_stream fail at n_states as stops-at-a-skipped-layer
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        if i in skip:
            break
        states.append(block(states[-1]))
    return states


# %% wrong: embedding missing and skip ignored
# expect: run_stream fail at n_states as embedding-missing + skip-ignored
def run_stream(resid, blocks, skip=()):
    states = []
    for block in blocks:
        resid = block(resid)
        states.append(resid)
    return states


# %% wrong: a stacked tensor comes back
# expect: run_stream fail at n_states as states-stacked
def run_stream(resid, blocks, skip=()):
    states = [resid]
    for i, block in enumerate(blocks):
        states.append(states[-1] if i in skip else block(states[-1]))
    return torch.stack(states)


# %% wrong: lens without the final norm
# expect: logit_lens fail at ln_f as lens-without-norm
def logit_lens(stream, ln_f, unembed):
    return torch.stack([unembed(h) for h in stream])


# %% wrong: statistics of the last state
# expect: logit_lens fail at ln_f as lens-last-statistics
def logit_lens(stream, ln_f, unembed):
    last = stream[-1]
    mean = last.mean(dim=-1, keepdim=True)
    std = torch.sqrt(last.var(dim=-1, unbiased=False, keepdim=True) + 1e-5)
    return torch.stack([unembed((h - mean) / std) for h in stream])


# %% wrong: a norm without gain and bias
# expect: logit_lens fail at ln_f as lens-norm-of-your-own
def logit_lens(stream, ln_f, unembed):
    out = []
    for h in stream:
        h = h - h.mean(-1, keepdim=True)
        h = h / torch.sqrt(h.pow(2).mean(-1, keepdim=True) + 1e-5)
        out.append(unembed(h))
    return torch.stack(out)


# %% wrong: the last state normalised twice
# expect: logit_lens fail at ln_f as lens-norm-twice-at-the-end
def logit_lens(stream, ln_f, unembed):
    hidden = list(stream)
    hidden[-1] = ln_f(hidden[-1])
    return torch.stack([unembed(ln_f(h)) for h in hidden])


# %% wrong: the last state taken for a normalised one
# expect: logit_lens fail at ln_f as lens-last-not-normalised
def logit_lens(stream, ln_f, unembed):
    *first, last = stream
    return torch.stack([unembed(ln_f(h)) for h in first] + [unembed(last)])


# %% wrong: the embedding left out
# expect: logit_lens fail at ln_f as lens-embedding-missing
def logit_lens(stream, ln_f, unembed):
    return torch.stack([unembed(ln_f(stream[layer + 1])) for layer in range(len(stream) - 1)])


# %% wrong: a list of readings
# expect: logit_lens fail at logits as lens-not-stacked
def logit_lens(stream, ln_f, unembed):
    return [unembed(ln_f(h)) for h in stream]


# %% wrong: readings laid end to end
# expect: logit_lens fail at logits as lens-concatenated
def logit_lens(stream, ln_f, unembed):
    return torch.cat([unembed(ln_f(h)) for h in stream])


# %% wrong: unembedding first
# expect: logit_lens error as lens-unembeds-first
def logit_lens(stream, ln_f, unembed):
    return torch.stack([ln_f(unembed(h)) for h in stream])


# %% wrong: no norm, and probabilities
# expect: logit_lens fail at ln_f as lens-without-norm + lens-probabilities
def logit_lens(stream, ln_f, unembed):
    return torch.stack([torch.softmax(unembed(h), dim=-1) for h in stream])


# %% wrong: the list emptied on the way
# expect: logit_lens fail as argument-changed-in-place
def logit_lens(stream, ln_f, unembed):
    out = []
    while stream:
        out.append(unembed(ln_f(stream.pop(0))))
    return torch.stack(out)


# %% wrong: a lens that fits no known mistake
# expect: logit_lens fail at logits as ?
def logit_lens(stream, ln_f, unembed):
    return torch.stack([unembed(ln_f(h) * 1.3) for h in stream])


# %% wrong: steered at every position
# expect: steer fail at steered as steer-positions-ignored
def steer(resid, direction, strength, positions=None):
    return resid + strength * direction


# %% wrong: steered at the last position whatever is asked
# expect: steer fail at steered as steer-last-position-always
def steer(resid, direction, strength, positions=None):
    out = resid.clone()
    out[:, -1] = out[:, -1] + strength * direction
    return out


# %% wrong: none means the last position
# expect: steer fail at steered as steer-none-means-last-position
def steer(resid, direction, strength, positions=None):
    if positions is None:
        positions = [-1]
    out = resid.clone()
    out[:, positions] = out[:, positions] + strength * direction
    return out


# %% wrong: an empty list taken for None
# expect: steer fail at steered as steer-empty-list-means-all
def steer(resid, direction, strength, positions=None):
    positions = positions or range(resid.shape[1])
    out = resid.clone()
    for t in positions:
        out[:, t] = out[:, t] + strength * direction
    return out


# %% wrong: negative positions never met
# expect: steer fail at steered as steer-negative-positions-ignored
def steer(resid, direction, strength, positions=None):
    rows = []
    for t in range(resid.shape[1]):
        push = positions is None or t in positions
        rows.append(resid[:, t] + (strength * direction if push else 0))
    return torch.stack(rows, dim=1)


# %% wrong: the vector of unit length
# expect: steer fail at steered as steer-direction-normalised
def steer(resid, direction, strength, positions=None):
    unit = direction / direction.norm()
    mask = torch.ones(resid.shape[1], 1).to(resid)
    if positions is not None:
        mask = torch.zeros_like(mask)
        mask[positions] = 1
    return resid + mask * strength * unit


# %% wrong: a hook that was registered twice
# expect: steer fail at steered as steer-pushed-twice
def steer(resid, direction, strength, positions=None):
    out = resid
    for hook in ("old", "new"):
        mask = torch.zeros(resid.shape[1], 1, dtype=resid.dtype, device=resid.device)
        mask[list(range(len(mask))) if positions is None else positions] = 1
        out = out + mask * strength * direction
    return out


# %% wrong: the caller's stream steered
# expect: steer fail as argument-changed-in-place
def steer(resid, direction, strength, positions=None):
    with torch.no_grad():
        if positions is None:
            resid += strength * direction
        else:
            resid[:, positions] += strength * direction
    return resid


# %% wrong: positions that count the sequences
# expect: steer error as steer-positions-index-the-batch
def steer(resid, direction, strength, positions=None):
    out = resid.clone()
    if positions is None:
        return out + strength * direction
    out[positions] = out[positions] + strength * direction
    return out


# %% wrong: the stream replaced by the push
# expect: steer fail at steered as steer-replaces-stream
def steer(resid, direction, strength, positions=None):
    out = resid.clone()
    out[:, range(resid.shape[1]) if positions is None else positions] = strength * direction
    return out


# %% wrong: one sequence of the batch steered
# expect: steer fail at steered as steer-first-sequence-only
def steer(resid, direction, strength, positions=None):
    out = resid.clone()
    out[0, range(resid.shape[1]) if positions is None else positions] += strength * direction
    return out


# %% wrong: unit direction at every position
# expect: steer fail at steered as steer-direction-normalised + steer-positions-ignored
def steer(resid, direction, strength, positions=None):
    return resid + strength * torch.nn.functional.normalize(direction, dim=-1)


# %% wrong: None looped over
# expect: steer error as steer-none-not-handled
def steer(resid, direction, strength, positions=None):
    out = resid.clone()
    for t in positions:
        out[:, t] = out[:, t] + strength * direction
    return out


# %% wrong: terms without the embedding
# expect: contributions fail at added as contributions-embedding-missing
def contributions(stream, direction):
    return torch.stack([(after - before) @ direction for before, after in zip(stream, stream[1:])])


# %% wrong: before state 0 comes the last one
# expect: contributions fail at added as contributions-goes-round
def contributions(stream, direction):
    return torch.stack([(stream[i] - stream[i - 1]) @ direction for i in range(len(stream))])


# %% wrong: every state's own dot product
# expect: contributions fail at added as contributions-of-states
def contributions(stream, direction):
    return torch.stack([h @ direction for h in stream])


# %% wrong: terms along a unit vector
# expect: contributions fail at added as contributions-direction-normalised
def contributions(stream, direction):
    d = direction / direction.norm()
    parts = [stream[0]] + [b - a for a, b in zip(stream[:-1], stream[1:])]
    return torch.stack(parts) @ d


# %% wrong: differences to the embedding
# expect: contributions fail at added as contributions-since-embedding
def contributions(stream, direction):
    return torch.stack([stream[0] @ direction] + [(h - stream[0]) @ direction for h in stream[1:]])


# %% wrong: no sum over the channels
# expect: contributions fail at added as contributions-not-summed-over-channels
def contributions(stream, direction):
    s = torch.stack(stream)
    return torch.cat([s[:1], s[1:] - s[:-1]]) * direction


# %% wrong: embedding missing and a unit vector
# expect: contributions fail at added as contributions-embedding-missing + contributions-direction-normalised
def contributions(stream, direction):
    s = torch.stack(stream)
    return s.diff(dim=0) @ (direction / direction.norm())


# %% wrong: entry l read one layer off
# expect: contributions fail at added as contributions-one-layer-early
def contributions(stream, direction):
    s = torch.stack(stream)
    out = torch.zeros_like(s[..., 0])
    for layer in range(len(stream) - 1):
        out[layer] = (s[layer + 1] - s[layer]) @ direction
    return out


# %% wrong: the list lengthened on the way
# expect: contributions fail as argument-changed-in-place
def contributions(stream, direction):
    stream.insert(0, torch.zeros_like(stream[0]))
    return torch.stack([(b - a) @ direction for a, b in zip(stream, stream[1:])])


# %% wrong: shares of the whole
# expect: contributions fail at added as contributions-as-shares
def contributions(stream, direction):
    s = torch.stack(stream)
    terms = torch.cat([s[:1], s[1:] - s[:-1]]) @ direction
    return terms / (s[-1] @ direction)


# %% right: skip saved by clone
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    skip = resid.clone()
    x = skip + attn(ln_1(resid))
    skip = x.clone()
    return skip + mlp(ln_2(x))


# %% right: norms inside wrappers
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    class PreNorm(torch.nn.Module):
        def __init__(self, norm, inner):
            super().__init__()
            self.norm, self.inner = norm, inner

        def forward(self, x):
            return x + self.inner(self.norm(x))

    return torch.nn.Sequential(PreNorm(ln_1, attn), PreNorm(ln_2, mlp))(resid)


# %% right: a pending write, added by the next norm
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    hidden, pending = resid, None

    def read(norm):
        nonlocal hidden, pending
        if pending is not None:
            hidden, pending = hidden + pending, None
        return norm(hidden)

    pending = attn(read(ln_1))
    pending = mlp(read(ln_2))
    return hidden + pending


# %% right: in place on its own tensors
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    x = attn(ln_1(resid))
    x += resid
    out = mlp(ln_2(x))
    out += x
    return out


# %% right: attention called twice, three terms summed
def pre_norm_block(resid, attn, mlp, ln_1, ln_2):
    return resid + attn(ln_1(resid)) + mlp(ln_2(resid + attn(ln_1(resid))))


# %% right: shapes compared as lists, sum by torch.add
def add_to_stream(resid, update):
    if list(resid.shape) != list(update.shape):
        raise ValueError(f"resid {list(resid.shape)}, update {list(update.shape)}")
    return torch.add(update, resid)


# %% right: sum in float64
def add_to_stream(resid, update):
    if resid.size() != update.size():
        raise ValueError("different sizes: %s and %s" % (resid.size(), update.size()))
    return (resid.double() + update.double()).to(resid.dtype)


# %% right: a ValueError of its own kind
def add_to_stream(resid, update):
    class ShapeError(ValueError):
        pass

    if resid.shape != update.shape:
        raise ShapeError(f"{resid.shape} is not {update.shape}")
    out = resid.clone()
    out += update
    return out


# %% right: a stream run by index
def run_stream(resid, blocks, skip=()):
    skip = set(skip)
    states = [None] * (len(blocks) + 1)
    states[0] = resid.clone()
    for layer in range(len(blocks)):
        x = states[layer]
        if layer not in skip:
            x = blocks[layer](x)
        states[layer + 1] = x
    return states


# %% right: a stream run by accumulate
def run_stream(resid, blocks, skip=()):
    import itertools

    def step(x, numbered):
        layer, block = numbered
        return x.clone() if layer in list(skip) else block(x)

    return list(itertools.accumulate(enumerate(blocks), step, initial=resid))


# %% right: a tuple of states, by recursion
def run_stream(resid, blocks, skip=()):
    if not len(blocks):
        return (resid,)
    before = run_stream(resid, blocks[:-1], skip)
    last = before[-1] if len(blocks) - 1 in skip else blocks[-1](before[-1])
    return (*before, last)


# %% right: all states read at once
def logit_lens(stream, ln_f, unembed):
    return unembed(ln_f(torch.stack(tuple(stream), dim=0)))


# %% right: readings written into one tensor
def logit_lens(stream, ln_f, unembed):
    first = unembed(ln_f(stream[0]))
    out = first.new_zeros(len(stream), *first.shape)
    for layer, state in enumerate(stream):
        out[layer] = unembed(ln_f(state))
    return out


# %% right: readings joined by cat, the last first
def logit_lens(stream, ln_f, unembed):
    readings = [unembed(ln_f(state)).unsqueeze(0) for state in reversed(stream)]
    return torch.cat(readings[::-1], dim=0)


# %% right: steering by a mask
def steer(resid, direction, strength, positions=None):
    B, T, C = resid.shape
    listed = range(T) if positions is None else [p % T for p in positions]
    mask = torch.tensor([[float(t in listed)] for t in range(T)]).to(resid)
    return resid + mask * (strength * direction)


# %% right: steering position by position
def steer(resid, direction, strength, positions=None):
    rows = list(resid.unbind(1))
    for t in range(len(rows)) if positions is None else positions:
        rows[t] = rows[t] + strength * direction
    return torch.stack(rows, 1)


# %% right: steering in place on a copy
def steer(resid, direction, strength, positions=None):
    out = resid.clone()
    where = slice(None) if positions is None else positions
    out[:, where, :] += direction * strength
    return out


# %% right: steering by index_add
def steer(resid, direction, strength, positions=None):
    T = resid.shape[1]
    at = list(range(T)) if positions is None else positions
    at = torch.tensor(at, dtype=torch.long, device=resid.device)
    push = (strength * direction).expand(resid.shape[0], len(at), -1)
    return resid.index_add(1, at % T, push)


# %% right: steering in float64
def steer(resid, direction, strength, positions=None):
    mask = torch.zeros(resid.shape[1], dtype=torch.float64, device=resid.device)
    mask[... if positions is None else positions] = 1.0
    return (resid.double() + torch.einsum("t,c->tc", mask, strength * direction.double())).to(resid.dtype)


# %% right: dot products first, differences after
def contributions(stream, direction):
    dots = torch.stack([state @ direction for state in stream])
    return torch.cat([dots[:1], dots.diff(dim=0)])


# %% right: einsum over a list of writes
def contributions(stream, direction):
    writes = [stream[0]] + [stream[i] - stream[i - 1] for i in range(1, len(stream))]
    return torch.einsum("lbtc,c->lbt", torch.stack(writes), direction)


# %% right: products summed by hand, into one tensor
def contributions(stream, direction):
    out = torch.zeros(len(stream), *stream[0].shape[:2], dtype=direction.dtype, device=direction.device)
    before = torch.zeros_like(stream[0])
    for layer, state in enumerate(stream):
        out[layer] = ((state - before) * direction).sum(dim=-1)
        before = state
    return out


# %% right: differences by prepending zeros
def contributions(stream, direction):
    states = torch.stack(stream).double()
    return (torch.diff(states, dim=0, prepend=torch.zeros_like(states[:1])) @ direction.double()).to(direction.dtype)
