"""Submissions of 02_embeddings: patches on the solution, with what the grader must say of them."""


# %% wrong: rows scaled by the root of the width
# expect: embed_tokens fail at tok_emb as tokens-scaled-by-root-of-width
def embed_tokens(ids, wte):
    return wte[ids] * wte.shape[1] ** 0.5


# %% wrong: a padding id
# expect: embed_tokens fail at wte.grad as token-zero-gets-no-gradient
def embed_tokens(ids, wte):
    return torch.nn.functional.embedding(ids, wte, padding_idx=0)


# %% wrong: a padding id whose row is zero
# expect: embed_tokens fail at tok_emb as token-zero-is-padding
def embed_tokens(ids, wte):
    rows = wte.clone()
    rows[0] = 0
    return rows[ids]


# %% wrong: a table that never trains
# expect: embed_tokens fail at wte.grad as token-table-cut-off
def embed_tokens(ids, wte):
    return torch.nn.Embedding.from_pretrained(wte.detach(), freeze=True)(ids)


# %% wrong: rows mixed by view
# expect: embed_tokens fail at tok_emb as tokens-mixed-by-view
def embed_tokens(ids, wte):
    B, T = ids.shape
    return wte[ids.T].reshape(B, T, -1)


# %% wrong: positions first by view
# expect: embed_tokens fail at tok_emb as tokens-viewed-positions-first
def embed_tokens(ids, wte):
    B, T = ids.shape
    return wte[ids].view(T, B, wte.shape[1])


# %% wrong: id 1 has the first row
# expect: embed_tokens fail at tok_emb as tokens-one-row-behind
def embed_tokens(ids, wte):
    return wte[ids - 1]


# %% wrong: a bag of words
# expect: embed_tokens fail at tok_emb as tokens-averaged-over-the-text
def embed_tokens(ids, wte):
    return wte[ids].mean(dim=1)


# %% wrong: positions start at one
# expect: embed_positions fail at pos_emb as positions-start-at-1
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > wpe.shape[0]:
        raise ValueError("past the table")
    return wpe[offset + 1 : offset + n_positions + 1]


# %% wrong: indices start at one
# expect: embed_positions error at pos_emb as positions-indexed-from-1
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > wpe.shape[0]:
        raise ValueError("past the table")
    return wpe[torch.arange(1, n_positions + 1) + offset]


# %% wrong: indices start at two
# expect: embed_positions error at pos_emb as positions-indexed-from-2
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > wpe.shape[0]:
        raise ValueError("past the table")
    return wpe[torch.arange(2, n_positions + 2) + offset]


# %% wrong: offset ignored
# expect: embed_positions fail at pos_emb as positions-ignore-offset
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > wpe.shape[0]:
        raise ValueError("past the table")
    return wpe[torch.arange(n_positions)]


# %% wrong: the end does not move
# expect: embed_positions fail at pos_emb as positions-end-not-moved
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > wpe.shape[0]:
        raise ValueError("past the table")
    return wpe[offset:n_positions]


# %% wrong: the whole table
# expect: embed_positions fail at pos_emb as positions-whole-table
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > wpe.shape[0]:
        raise ValueError("past the table")
    return wpe


# %% wrong: past the end, silently
# expect: embed_positions fail as table-end-unchecked
def embed_positions(n_positions, wpe, offset=0):
    return wpe[offset : offset + n_positions]


# %% wrong: past the end, an index error
# expect: embed_positions fail as table-end-left-to-others
def embed_positions(n_positions, wpe, offset=0):
    return torch.nn.functional.embedding(torch.arange(offset, offset + n_positions), wpe)


# %% wrong: past the end, an assertion
# expect: embed_positions fail as refused-by-another-exception
def embed_positions(n_positions, wpe, offset=0):
    assert offset + n_positions <= len(wpe), "the table ends"
    return wpe[offset : offset + n_positions]


# %% wrong: the offset does not count
# expect: embed_positions fail as table-end-without-offset
def embed_positions(n_positions, wpe, offset=0):
    if n_positions > len(wpe):
        raise ValueError(n_positions)
    return wpe[offset : offset + n_positions]


# %% wrong: one row too far
# expect: embed_positions fail as table-end-one-too-far
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions - 1 > len(wpe):
        raise ValueError(n_positions)
    return wpe[offset : offset + n_positions]


# %% wrong: the last row refused
# expect: embed_positions error at pos_emb as table-end-one-too-near
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions >= len(wpe):
        raise ValueError(f"{offset + n_positions} positions, {len(wpe)} rows")
    return wpe[offset : offset + n_positions]


# %% wrong: a batch axis
# expect: embed_positions fail at pos_emb as positions-with-batch-axis
# expect: embed pass
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > len(wpe):
        raise ValueError("past the table")
    return wpe[offset : offset + n_positions].unsqueeze(0)


# %% wrong: a position table that never trains
# expect: embed_positions fail at wpe.grad as position-table-cut-off
def embed_positions(n_positions, wpe, offset=0):
    if offset + n_positions > len(wpe):
        raise ValueError("past the table")
    return wpe.data[offset : offset + n_positions]


# %% wrong: positions dropped
# expect: embed fail at resid_pre as positions-dropped
def embed(ids, wte, wpe, offset=0):
    positions = embed_positions(ids.shape[1], wpe, offset)
    return embed_tokens(ids, wte)


# %% wrong: positions concatenated
# expect: embed fail at resid_pre as positions-concatenated
def embed(ids, wte, wpe, offset=0):
    positions = embed_positions(ids.shape[1], wpe, offset)
    return torch.cat([wte[ids], positions.repeat(ids.shape[0], 1, 1)], dim=2)


# %% wrong: positions multiplied
# expect: embed fail at resid_pre as positions-multiplied
def embed(ids, wte, wpe, offset=0):
    return embed_tokens(ids, wte) * embed_positions(ids.shape[1], wpe, offset)


# %% wrong: positions restart
# expect: embed fail at pos_emb as positions-ignore-offset
def embed(ids, wte, wpe, offset=0):
    T = ids.shape[1]
    if offset + T > len(wpe):
        raise ValueError(f"{offset} + {T} > {len(wpe)}")
    return wte[ids] + wpe[torch.arange(T, device=ids.device)]


# %% wrong: position table indexed by ids
# expect: embed error at pos_emb as positions-indexed-by-token
def embed(ids, wte, wpe, offset=0):
    if offset + ids.shape[1] > len(wpe):
        raise ValueError("too long")
    return wte[ids] + wpe[ids]


# %% wrong: whole table added
# expect: embed error at pos_emb as positions-whole-table
def embed(ids, wte, wpe, offset=0):
    if offset + ids.shape[1] > len(wpe):
        raise ValueError("too long")
    return wte[ids] + wpe


# %% wrong: positions counted over the batch
# expect: embed error at pos_emb as positions-counted-over-the-batch
def embed(ids, wte, wpe, offset=0):
    if offset + ids.shape[1] > len(wpe):
        raise ValueError("too long")
    return wte[ids] + embed_positions(len(ids), wpe, offset)


# %% wrong: tokens scaled
# expect: embed fail at tok_emb as tokens-scaled-by-root-of-width
def embed(ids, wte, wpe, offset=0):
    return embed_tokens(ids, wte) * wte.shape[-1] ** 0.5 + embed_positions(ids.shape[1], wpe, offset)


# %% wrong: the sum scaled
# expect: embed fail at resid_pre as sum-scaled-by-root-of-width
def embed(ids, wte, wpe, offset=0):
    x = embed_tokens(ids, wte) + embed_positions(ids.shape[1], wpe, offset)
    return x * math.sqrt(x.shape[-1])


import math


# %% wrong: no check in embed
# expect: embed fail as table-end-unchecked
def embed(ids, wte, wpe, offset=0):
    T = ids.shape[1]
    return wte[ids] + wpe[offset : offset + T]


# %% wrong: positions cut off from training
# expect: embed fail at wpe.grad as position-table-cut-off
def embed(ids, wte, wpe, offset=0):
    with torch.no_grad():
        positions = embed_positions(ids.shape[1], wpe, offset).clone()
    return embed_tokens(ids, wte) + positions


# %% wrong: two mistakes, tokens scaled and positions restart
# expect: embed fail at tok_emb as tokens-scaled-by-root-of-width + positions-ignore-offset
def embed(ids, wte, wpe, offset=0):
    if offset + ids.shape[1] > len(wpe):
        raise ValueError("too long")
    return wte[ids] * wte.shape[1] ** 0.5 + wpe[: ids.shape[1]]


# %% wrong: two mistakes, rows mixed and positions multiplied
# expect: embed fail at tok_emb as tokens-mixed-by-view + positions-multiplied
def embed(ids, wte, wpe, offset=0):
    B, T = ids.shape
    if offset + T > len(wpe):
        raise ValueError("too long")
    return wte[ids.T].reshape(B, T, -1) * wpe[offset : offset + T]


# %% wrong: three mistakes at once
# expect: embed fail at tok_emb as tokens-scaled-by-root-of-width + positions-ignore-offset + positions-averaged
def embed(ids, wte, wpe, offset=0):
    if offset + ids.shape[1] > len(wpe):
        raise ValueError("too long")
    tok = wte[ids] * wte.shape[1] ** 0.5
    pos = wpe[: ids.shape[1]]
    return (tok + pos) / 2


# %% wrong: not transposed
# expect: unembed error at logits as table-not-transposed
def unembed(x, wte):
    return x @ wte


# %% wrong: reshaped for transposed
# expect: unembed fail at logits as table-reshaped-for-transposed
def unembed(x, wte):
    V, C = wte.shape
    return x @ wte.reshape(C, V)


# %% wrong: logits rescaled
# expect: unembed fail at logits as logits-divided-by-root-of-width
def unembed(x, wte):
    return x @ wte.t() * x.shape[-1] ** -0.5


# %% wrong: probabilities
# expect: unembed fail at logits as logits-through-softmax
def unembed(x, wte):
    return torch.softmax(torch.nn.functional.linear(x, wte), dim=-1)


# %% wrong: cosine for dot product
# expect: unembed fail at logits as logits-by-cosine
def unembed(x, wte):
    return cosine_similarity(x.unsqueeze(-2), wte)


# %% wrong: a head tied by its data
# expect: unembed fail at wte.grad as head-cut-off
def unembed(x, wte):
    head = torch.nn.Parameter(wte.data)
    return torch.nn.functional.linear(x, head)


# %% wrong: last position only
# expect: unembed fail at logits as logits-of-the-last-position-kept
def unembed(x, wte):
    return x[:, -1:] @ wte.T


# %% wrong: exponent doubled
# expect: sinusoidal_positions fail at waves as waves-exponent-doubled
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    table = torch.zeros(n_ctx, d_model)
    for p in range(n_ctx):
        for i in range(0, d_model, 2):
            angle = torch.tensor(p / 10000 ** (2 * i / d_model))
            table[p, i], table[p, i + 1] = torch.sin(angle), torch.cos(angle)
    return table


# %% wrong: each channel its own angle
# expect: sinusoidal_positions fail at waves as waves-doubled-exponent-of-each-channel
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    p = torch.arange(n_ctx).float()[:, None]
    j = torch.arange(d_model).float()
    angles = p / 10000 ** (2 * j / d_model)
    return torch.where(j % 2 == 0, angles.sin(), angles.cos())


# %% wrong: half minus one
# expect: sinusoidal_positions fail at waves as waves-width-less-two
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    half = d_model // 2
    frequencies = 10000 ** (-torch.arange(half) / (half - 1))
    angles = torch.arange(n_ctx)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


# %% wrong: half minus one, guarded
# expect: sinusoidal_positions fail at waves as waves-width-less-two-guarded
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    frequencies = 10000 ** -torch.linspace(0, 1, d_model // 2, dtype=torch.float64)
    angles = torch.outer(torch.arange(n_ctx).double(), frequencies)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).reshape(n_ctx, d_model).float()


# %% wrong: half minus one, in Python
# expect: sinusoidal_positions error at waves as waves-width-less-two-in-floats
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    half = d_model // 2
    frequencies = torch.exp(torch.arange(half) * -(9.210340371976184 / (half - 1)))
    angles = torch.arange(n_ctx)[:, None] * frequencies
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


# %% wrong: base 1000
# expect: sinusoidal_positions fail at waves as waves-base-1000
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    angles = torch.arange(n_ctx)[:, None] / 1000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


# %% wrong: cosine first
# expect: sinusoidal_positions fail at waves as waves-cosine-first
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    angles = torch.arange(n_ctx)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    out = torch.empty(n_ctx, d_model)
    out[:, 0::2], out[:, 1::2] = angles.cos(), angles.sin()
    return out


# %% wrong: two halves
# expect: sinusoidal_positions fail at waves as waves-sines-then-cosines
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    angles = torch.arange(n_ctx)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


# %% wrong: float64 table
# expect: sinusoidal_positions fail at waves as dtype-not-kept
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    angles = torch.arange(n_ctx).double()[:, None] / 10000 ** (torch.arange(0, d_model, 2).double() / d_model)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)


# %% wrong: odd width accepted
# expect: sinusoidal_positions fail as waves-odd-width-accepted
def sinusoidal_positions(n_ctx, d_model):
    angles = torch.arange(n_ctx)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    out = torch.empty(n_ctx, d_model)
    out[:, 0::2], out[:, 1::2] = angles.sin(), angles.cos()[:, : d_model // 2]
    return out


# %% wrong: two mistakes, halves and positions from one
# expect: sinusoidal_positions fail at waves as waves-sines-then-cosines + waves-positions-from-one
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError(f"{d_model} is odd")
    angles = torch.arange(1, n_ctx + 1)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


# %% wrong: dot product for cosine
# expect: cosine_similarity fail at similarity as cosine-without-lengths
def cosine_similarity(a, b):
    return (a * b).sum(dim=-1)


# %% wrong: one length only
# expect: cosine_similarity fail at similarity as cosine-without-length-of-a
def cosine_similarity(a, b):
    return (a * b).sum(-1) / b.norm(dim=-1).clamp(min=1e-8)


# %% wrong: zero vector gives NaN
# expect: cosine_similarity fail at similarity as cosine-zero-vector-nan
def cosine_similarity(a, b):
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


# %% wrong: NaN replaced, gradient not
# expect: cosine_similarity fail at gradient_is_finite as cosine-gradient-of-zero-vector
def cosine_similarity(a, b):
    return torch.nan_to_num((a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1)))


# %% wrong: root of zero
# expect: cosine_similarity fail at gradient_is_finite as cosine-gradient-of-zero-vector
def cosine_similarity(a, b):
    lengths = a.square().sum(-1).sqrt() * b.square().sum(-1).sqrt()
    return (a * b).sum(-1) / (lengths + 1e-9)


# %% wrong: root forgotten
# expect: cosine_similarity fail at similarity as cosine-lengths-squared
def cosine_similarity(a, b):
    return (a * b).sum(-1) / ((a * a).sum(-1) * (b * b).sum(-1)).clamp(min=1e-12)


# %% wrong: a distance
# expect: cosine_similarity fail at similarity as cosine-distance
def cosine_similarity(a, b):
    return 1 - torch.nn.functional.cosine_similarity(a, b, dim=-1)


# %% wrong: length of the whole tensor
# expect: cosine_similarity fail at similarity as cosine-length-of-the-whole-tensor
def cosine_similarity(a, b):
    return (a * b).sum(-1) / (a.norm() * b.norm())


# %% wrong: ranked by dot product
# expect: nearest_tokens fail at tokens as nearest-by-dot-product
def nearest_tokens(vector, wte, k, exclude=()):
    scores = wte @ vector
    order = scores.argsort(descending=True).tolist()
    return [i for i in order if i not in exclude][:k]


# %% wrong: excluded after the cut
# expect: nearest_tokens fail at tokens as nearest-excluded-after-cut
def nearest_tokens(vector, wte, k, exclude=()):
    top = cosine_similarity(vector, wte).topk(k).indices.tolist()
    return [i for i in top if i not in exclude]


# %% wrong: worst first
# expect: nearest_tokens fail at tokens as nearest-worst-first
def nearest_tokens(vector, wte, k, exclude=()):
    order = cosine_similarity(vector, wte).argsort().tolist()
    return [i for i in order if i not in exclude][:k]


# %% wrong: excluded set to zero
# expect: nearest_tokens fail at tokens as nearest-excluded-rank-as-zero
def nearest_tokens(vector, wte, k, exclude=()):
    cosines = cosine_similarity(vector, wte)
    for i in exclude:
        cosines[i] = 0
    return cosines.topk(k).indices.tolist()


# %% wrong: rows deleted
# expect: nearest_tokens fail at tokens as nearest-ids-after-deletion
def nearest_tokens(vector, wte, k, exclude=()):
    keep = torch.tensor([i not in exclude for i in range(len(wte))])
    return cosine_similarity(vector, wte[keep]).topk(k).indices.tolist()


# %% wrong: exclude ignored
# expect: nearest_tokens fail at tokens as nearest-exclude-ignored
def nearest_tokens(vector, wte, k, exclude=()):
    return cosine_similarity(vector, wte).topk(k).indices.tolist()


# %% wrong: nearest by distance
# expect: nearest_tokens fail at tokens as nearest-by-distance
def nearest_tokens(vector, wte, k, exclude=()):
    order = torch.cdist(vector[None], wte)[0].argsort().tolist()
    return [i for i in order if i not in set(exclude)][:k]


# %% wrong: a tensor for a list
# expect: nearest_tokens fail at tokens as nearest-tensor-of-ids
def nearest_tokens(vector, wte, k, exclude=()):
    cosines = cosine_similarity(vector, wte)
    cosines[list(exclude)] = -2.0
    return cosines.topk(k).indices


# %% wrong: a tensor for a list, sorted by the library
# expect: nearest_tokens fail at tokens as nearest-tensor-of-ids
def nearest_tokens(vector, wte, k, exclude=()):
    cosines = cosine_similarity(vector[None], wte)
    left = torch.tensor([token not in exclude for token in range(len(wte))])
    return torch.where(left, cosines, float("-inf")).argsort(descending=True)[:k]


# %% wrong: entries that are tensors
# expect: nearest_tokens fail at tokens as nearest-list-of-tensors
def nearest_tokens(vector, wte, k, exclude=()):
    order = cosine_similarity(vector, wte).argsort(descending=True)
    return [token for token in order if token.item() not in exclude][:k]


# %% wrong: the caller's list changed
# expect: nearest_tokens fail as argument-changed-in-place
def nearest_tokens(vector, wte, k, exclude=()):
    found, exclude = [], exclude if isinstance(exclude, list) else list(exclude)
    cosines = cosine_similarity(vector, wte).tolist()
    for _ in range(k):
        best = max((c, i) for i, c in enumerate(cosines) if i not in exclude)[1]
        found.append(best)
        exclude.append(best)
    return found


# %% wrong: two mistakes, dot product and exclude after the cut
# expect: nearest_tokens fail at tokens as nearest-by-dot-product + nearest-excluded-after-cut
def nearest_tokens(vector, wte, k, exclude=()):
    top = (wte @ vector).topk(k).indices.tolist()
    return [i for i in top if i not in exclude]


# %% wrong: step backwards
# expect: analogy fail at tokens as analogy-step-backwards
def analogy(a, b, c, wte, k=1):
    return nearest_tokens(wte[a] - wte[b] + wte[c], wte, k, exclude=[a, b, c])


# %% wrong: the words of the question are not struck out
# expect: analogy fail at tokens as analogy-strikes-out-nothing
def analogy(a, b, c, wte, k=1):
    return nearest_tokens(wte[b] - wte[a] + wte[c], wte, k)


# %% wrong: only c is struck out
# expect: analogy fail at tokens as analogy-strikes-out-c-alone
def analogy(a, b, c, wte, k=1):
    return nearest_tokens(wte[b] - wte[a] + wte[c], wte, k, (c,))


# %% wrong: on rows of length one
# expect: analogy fail at tokens as analogy-on-rows-of-length-one
def analogy(a, b, c, wte, k=1):
    unit = torch.nn.functional.normalize(wte, dim=-1)
    return nearest_tokens(unit[b] - unit[a] + unit[c], wte, k, {a, b, c})


# %% wrong: one id for a list
# expect: analogy fail at tokens as nearest-a-single-id
def analogy(a, b, c, wte, k=1):
    found = nearest_tokens(wte[b] - wte[a] + wte[c], wte, k, {a, b, c})
    return found[0] if k == 1 else found


# %% wrong: two mistakes, step backwards and only c struck out
# expect: analogy fail at tokens as analogy-step-backwards + analogy-strikes-out-c-alone
def analogy(a, b, c, wte, k=1):
    return nearest_tokens(wte[a] - wte[b] + wte[c], wte, k, exclude=(c,))


# %% right: one-hot product
def embed_tokens(ids, wte):
    one_hot = torch.nn.functional.one_hot(ids, wte.shape[0]).to(wte.dtype)
    return torch.einsum("btv,vc->btc", one_hot, wte)


# %% right: index_select
def embed_tokens(ids, wte):
    return torch.index_select(wte, 0, ids.reshape(-1)).view(*ids.shape, -1)


# %% right: the library's embedding
def embed_tokens(ids, wte):
    return torch.nn.functional.embedding(ids, wte)


def embed_positions(n_positions, wpe, offset=0):
    positions = torch.arange(offset, offset + n_positions, device=wpe.device)
    if n_positions and positions[-1] >= len(wpe):
        raise ValueError(f"position {positions[-1]} of {len(wpe)}")
    return torch.nn.functional.embedding(positions, wpe)


# %% right: positions with a batch axis inside embed
def embed(ids, wte, wpe, offset=0):
    B, T = ids.shape
    if T + offset > wpe.shape[0]:
        raise ValueError("the table ends")
    positions = torch.arange(T, device=ids.device).unsqueeze(0).expand(B, T) + offset
    return wte[ids] + wpe[positions]


# %% right: position ids from a buffer
POSITIONS = torch.arange(4096)


def embed_positions(n_positions, wpe, offset=0):
    if n_positions + offset > len(wpe):
        raise ValueError
    return wpe[POSITIONS[: len(wpe)].to(wpe.device)[offset:][:n_positions]]


# %% right: rows added one by one
def embed(ids, wte, wpe, offset=0):
    T = ids.size(1)
    if offset + T > wpe.size(0):
        raise ValueError(f"{offset + T}")
    return torch.stack([wte[ids[:, t]] + wpe[offset + t] for t in range(T)], dim=1)


# %% right: unembed by einsum
def unembed(x, wte):
    return torch.einsum("...c,vc->...v", x, wte)


# %% right: unembed in float64
def unembed(x, wte):
    return torch.nn.functional.linear(x.double(), wte.double()).to(x.dtype)


# %% right: unembed by broadcast
def unembed(x, wte):
    return (x[..., None, :] * wte).sum(-1)


# %% right: waves in float32, by exp
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2 == 1:
        raise ValueError("odd")
    pe = torch.zeros(n_ctx, d_model)
    position = torch.arange(0, n_ctx, dtype=torch.float).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2).float() * (-9.210340371976184 / d_model))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


# %% right: waves by Python's math
import math


def sinusoidal_positions(n_ctx, d_model):
    if d_model & 1:
        raise ValueError("odd")
    rows = []
    for p in range(n_ctx):
        row = []
        for i in range(d_model // 2):
            angle = p * 10000 ** (-2 * i / d_model)
            row += [math.sin(angle), math.cos(angle)]
        rows.append(row)
    return torch.tensor(rows)


# %% right: waves as one complex number turned on
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError("odd")
    turn = torch.polar(torch.ones(d_model // 2).double(), 10000 ** (-torch.arange(0, d_model, 2).double() / d_model))
    points = turn ** torch.arange(n_ctx)[:, None]
    return torch.stack([points.imag, points.real], -1).view(n_ctx, d_model).float()


# %% right: cosines as shifted sines
def sinusoidal_positions(n_ctx, d_model):
    if d_model % 2:
        raise ValueError("odd")
    c = torch.arange(d_model)
    angles = torch.arange(n_ctx).double()[:, None] / 10000 ** ((c - c % 2).double() / d_model)
    return torch.sin(angles + (c % 2) * math.pi / 2).float()


import math


# %% right: the library's cosine
def cosine_similarity(a, b):
    return torch.nn.functional.cosine_similarity(a, b, dim=-1)


# %% right: a small number in the denominator
def cosine_similarity(a, b):
    return (a * b).sum(-1) / (torch.linalg.norm(a, dim=-1) * torch.linalg.norm(b, dim=-1) + 1e-8)


# %% right: normalize, then einsum
def cosine_similarity(a, b):
    unit = torch.nn.functional.normalize
    return torch.einsum("...c,...c->...", unit(a, dim=-1), unit(b, dim=-1))


# %% right: where before the division
def cosine_similarity(a, b):
    squares = (a * a).sum(-1) * (b * b).sum(-1)
    safe = torch.where(squares > 0, squares, torch.ones_like(squares))
    return torch.where(squares > 0, (a * b).sum(-1) * safe.rsqrt(), torch.zeros_like(squares))


# %% right: clamped under the root
def cosine_similarity(a, b):
    lengths = a.square().sum(-1).clamp(min=1e-24).sqrt() * b.square().sum(-1).clamp(min=1e-24).sqrt()
    return (a * b).sum(-1) / lengths


# %% right: topk with room for the excluded
def nearest_tokens(vector, wte, k, exclude=()):
    banned = set(exclude)
    top = cosine_similarity(wte, vector).topk(min(k + len(banned), len(wte))).indices
    return [int(i) for i in top if int(i) not in banned][:k]


# %% right: minus infinity for the excluded
def nearest_tokens(vector, wte, k, exclude=()):
    cosines = cosine_similarity(vector, wte).clone()
    cosines[list(exclude)] = -float("inf")
    return cosines.topk(k)[1].tolist()


# %% right: sorted by Python, the vector's own length left out
def nearest_tokens(vector, wte, k, exclude=()):
    scores = {i: float(row @ vector / (row.norm() + 1e-12)) for i, row in enumerate(wte) if i not in exclude}
    return sorted(scores, key=scores.get, reverse=True)[:k]


# %% right: the step from c
def analogy(a, b, c, wte, k=1):
    step = wte[b] - wte[a]
    return nearest_tokens(wte[c] + step, wte, exclude={a, b, c}, k=k)
