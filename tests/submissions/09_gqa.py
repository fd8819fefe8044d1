"""Submissions of 09_gqa: patches on the solution, with what the grader must say of them."""


# %% wrong: heads tiled
# expect: repeat_kv fail at repeated as heads-tiled
def repeat_kv(x, n_rep):
    return x.repeat(1, n_rep, 1, 1)


# %% wrong: group axis in front of the head axis
# expect: repeat_kv fail at repeated as heads-tiled
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    return x[:, None].expand(B, n_rep, KV, T, D).reshape(B, n_rep * KV, T, D)


# %% wrong: head index modulo the number of key/value heads
# expect: repeat_kv fail at repeated as heads-tiled
def repeat_kv(x, n_rep):
    n_kv = x.size(1)
    return torch.stack([x[:, h % n_kv] for h in range(n_kv * n_rep)], dim=1)


# %% wrong: copies stacked in front
# expect: repeat_kv fail at repeated as heads-tiled
def repeat_kv(x, n_rep):
    return torch.cat([x for _ in range(n_rep)], dim=1)


# %% wrong: head index modulo the group size
# expect: repeat_kv error at repeated as owner-modulo-group-size
def repeat_kv(x, n_rep):
    heads = [x[:, h % n_rep] for h in range(x.shape[1] * n_rep)]
    return torch.stack(heads, dim=1)


# %% wrong: divided by the number of key/value heads
# expect: repeat_kv error at repeated as owner-divided-by-head-count
def repeat_kv(x, n_rep):
    index = torch.arange(x.shape[1] * n_rep) // x.shape[1]
    return x[:, index]


# %% wrong: repeated along the positions
# expect: repeat_kv fail at repeated as repeated-over-positions
def repeat_kv(x, n_rep):
    return torch.repeat_interleave(x, n_rep, dim=2)


# %% wrong: repeated along the positions, then cut into heads
# expect: repeat_kv fail at repeated as positions-repeated-then-cut-into-heads
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    return x.repeat_interleave(n_rep, dim=2).reshape(B, -1, T, D)


# %% wrong: repeat_interleave without an axis
# expect: repeat_kv fail at repeated as repeated-without-axis
def repeat_kv(x, n_rep):
    return x.repeat_interleave(n_rep)


# %% wrong: every number repeated
# expect: repeat_kv fail at repeated as numbers-repeated-then-cut-into-heads
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    return x.repeat_interleave(n_rep).view(B, KV * n_rep, T, D)


# %% wrong: more sequences in place of more heads
# expect: repeat_kv fail at repeated as repeated-over-batch
def repeat_kv(x, n_rep):
    return x.repeat_interleave(n_rep, 0)


# %% wrong: view of a stretched tensor
# expect: repeat_kv error at repeated as view-after-expand
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    x = x.unsqueeze(2).expand(B, KV, n_rep, T, D)
    return x.view(B, KV * n_rep, T, D)


# %% wrong: the head axis stretched as if there were one head
# expect: repeat_kv error at repeated as head-axis-expanded
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    return x.expand(B, KV * n_rep, T, D)


# %% wrong: n_rep taken for the number of query heads
# expect: repeat_kv fail at repeated as n-rep-taken-for-head-count
def repeat_kv(x, n_rep):
    group = n_rep // x.shape[1]
    return x.repeat_interleave(group, dim=1)


# %% wrong: as many copies as heads
# expect: repeat_kv fail at repeated as repeats-by-head-count
def repeat_kv(x, n_rep):
    n_kv = x.shape[1]
    return x[:, :, None].expand(-1, -1, n_kv, -1, -1).flatten(1, 2)


# %% wrong: original and n_rep copies
# expect: repeat_kv fail at repeated as one-copy-too-many
def repeat_kv(x, n_rep):
    out = []
    for h in range(x.shape[1]):
        out.append(x[:, h])
        for _ in range(n_rep):
            out.append(x[:, h])
    return torch.stack(out, dim=1)


# %% wrong: five axes left
# expect: repeat_kv fail at repeated as copies-not-merged
def repeat_kv(x, n_rep):
    return x.unsqueeze(2).expand(-1, -1, n_rep, -1, -1)


# %% wrong: result with positions in front of heads
# expect: repeat_kv fail at repeated as heads-behind-positions
def repeat_kv(x, n_rep):
    return x.transpose(1, 2).repeat_interleave(n_rep, dim=2)


# %% wrong: repeated inside a cut-off copy
# expect: repeat_kv fail at x.grad as gradient-cut-off
def repeat_kv(x, n_rep):
    out = torch.empty(x.shape[0], x.shape[1] * n_rep, *x.shape[2:], dtype=x.dtype, device=x.device)
    for h in range(out.shape[1]):
        out[:, h] = x.data[:, h // n_rep]
    return out


# %% wrong: a float32 buffer
# expect: repeat_kv fail as dtype-not-kept
def repeat_kv(x, n_rep):
    out = torch.zeros(x.shape[0], x.shape[1] * n_rep, *x.shape[2:])
    for h in range(out.shape[1]):
        out[:, h] = x[:, h // n_rep]
    return out


# %% wrong: nothing that is known
# expect: repeat_kv fail at repeated as ?
def repeat_kv(x, n_rep):
    return x.repeat_interleave(n_rep, dim=1).roll(1, dims=2) if x.shape[2] > 1 else x.repeat_interleave(n_rep, dim=1)


# %% wrong: queries viewed group first
# expect: grouped_query_attention fail at scores as query-heads-tiled
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV = k.shape[1]
    if H % KV:
        raise ValueError(f"H = {H}, Hkv = {KV}")
    q = q.view(B, H // KV, KV, Tq, D) if q.is_contiguous() else q.reshape(B, H // KV, KV, Tq, D)
    scores = (q @ k.unsqueeze(1).transpose(-1, -2) / math.sqrt(D)).reshape(B, H, Tq, k.shape[2])
    return weigh(scores, mask, v.repeat(1, H // KV, 1, 1))


def weigh(scores, mask, v):
    if mask is None:
        return torch.softmax(scores, -1) @ v
    mask = mask.expand(scores.shape)
    nothing = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~(mask | nothing), float("-inf"))
    return torch.softmax(scores, -1).masked_fill(nothing, 0) @ v


# %% wrong: key/value head of query head h is h mod Hkv
# expect: grouped_query_attention fail at scores as query-heads-tiled
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError(f"{H} % {KV}")
    owner = torch.arange(H, device=q.device) % KV
    if mask is None:
        return attention(q, k[:, owner], v[:, owner])
    return masked_attention(q, k[:, owner], v[:, owner], mask)


# %% wrong: only the keys tiled
# expect: grouped_query_attention fail at scores as keys-tiled
def grouped_query_attention(q, k, v, mask=None):
    n = q.shape[1] // k.shape[1]
    if n * k.shape[1] != q.shape[1]:
        raise ValueError("heads")
    k, v = k.repeat(1, n, 1, 1), repeat_kv(v, n)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)


# %% wrong: keys and values not repeated
# expect: grouped_query_attention error at scores as kv-not-repeated
def grouped_query_attention(q, k, v, mask=None):
    if q.shape[1] % k.shape[1]:
        raise ValueError("heads")
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)


# %% wrong: repeated twice
# expect: grouped_query_attention error at scores as kv-repeated-twice
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV != 0:
        raise ValueError("heads")
    n_rep = H // KV
    k, v = repeat_kv(k, n_rep), repeat_kv(v, n_rep)
    keys = repeat_kv(k, n_rep)
    return attention(q, keys, v) if mask is None else masked_attention(q, keys, v, mask)


# %% wrong: number of groups taken for the group size
# expect: grouped_query_attention error at scores as kv-repeated-by-kv-head-count
def grouped_query_attention(q, k, v, mask=None):
    n_heads, n_groups = q.shape[1], k.shape[1]
    if n_heads % n_groups:
        raise ValueError(f"{n_heads} heads, {n_groups} groups")
    k, v = repeat_kv(k, n_groups), repeat_kv(v, n_groups)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)


# %% wrong: no check, and the product complains
# expect: grouped_query_attention fail as division-not-checked
def grouped_query_attention(q, k, v, mask=None):
    n_rep = q.shape[1] // k.shape[1]
    k, v = repeat_kv(k, n_rep), repeat_kv(v, n_rep)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)


# %% wrong: checked by assert
# expect: grouped_query_attention fail as refused-by-another-exception
def grouped_query_attention(q, k, v, mask=None):
    assert q.shape[1] % k.shape[1] == 0, "H must be divisible by Hkv"
    n_rep = q.shape[1] // k.shape[1]
    k, v = repeat_kv(k, n_rep), repeat_kv(v, n_rep)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)


# %% wrong: no check, and the last heads are lost
# expect: grouped_query_attention fail as uneven-groups-accepted
def grouped_query_attention(q, k, v, mask=None):
    n_rep = q.shape[1] // k.shape[1]
    outs = [q[:, :0] @ q[:, :0].mT @ q.new_zeros(1, 1, q.shape[2], v.shape[3])]
    mask = None if mask is None else mask.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2])
    for g in range(k.shape[1]):
        for h in range(g * n_rep, g * n_rep + n_rep):
            one = q[:, h : h + 1], k[:, g : g + 1], v[:, g : g + 1]
            outs.append(attention(*one) if mask is None else masked_attention(*one, mask[:, h : h + 1]))
    return torch.cat(outs, dim=1)


# %% wrong: the check asks the wrong way round
# expect: grouped_query_attention error as division-asked-the-wrong-way
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if KV % H != 0:
        raise ValueError(f"{KV} is not divisible by {H}")
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)


# %% wrong: the mask read by columns
# expect: grouped_query_attention error at pattern as mask-transposed
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask.transpose(-1, -2))


# %% wrong: the first key/value head for all
# expect: grouped_query_attention fail at scores as first-kv-head-for-all
def grouped_query_attention(q, k, v, mask=None):
    if q.shape[1] % k.shape[1]:
        raise ValueError("heads")
    k, v = k[:, :1].expand(-1, q.shape[1], -1, -1), v[:, :1].expand(-1, q.shape[1], -1, -1)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)


# %% wrong: grouped by hand, no scaling
# expect: grouped_query_attention fail at scores as scale-missing
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV = k.shape[1]
    if H % KV:
        raise ValueError("heads")
    grouped = q.unflatten(1, (KV, H // KV))
    scores = torch.einsum("bkgid,bkjd->bkgij", grouped, k).flatten(1, 2)
    return weigh(scores, mask, repeat_kv(v, H // KV))


def weigh(scores, mask, v):
    if mask is None:
        return torch.softmax(scores, -1) @ v
    mask = mask.expand(scores.shape)
    nothing = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~(mask | nothing), float("-inf"))
    return torch.softmax(scores, -1).masked_fill(nothing, 0) @ v


# %% wrong: the mask meets grouped scores as it is
# expect: grouped_query_attention error at pattern as mask-meets-five-axes
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV = k.shape[1]
    if H % KV:
        raise ValueError("heads")
    q, k, v = q.unflatten(1, (KV, H // KV)), k.unsqueeze(2), v.unsqueeze(2)
    scores = q @ k.transpose(-1, -2) / D**0.5
    if mask is None:
        return (torch.softmax(scores, -1) @ v).flatten(1, 2)
    scores = scores.masked_fill(~mask, -float("inf"))
    nothing = (scores == -float("inf")).all(-1, keepdim=True)
    pattern = torch.softmax(scores.masked_fill(nothing, 0), -1).masked_fill(nothing, 0)
    return (pattern @ v).flatten(1, 2)


# %% wrong: a group axis put into every mask
# expect: grouped_query_attention error at pattern as mask-taken-for-four-axes
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV = k.shape[1]
    if H % KV:
        raise ValueError("heads")
    q, k, v = q.unflatten(1, (KV, H // KV)), k.unsqueeze(2), v.unsqueeze(2)
    scores = q @ k.transpose(-1, -2) / D**0.5
    if mask is not None:
        scores = scores.masked_fill(~mask[:, :, None], -float("inf"))
    nothing = (scores == -float("inf")).all(-1, keepdim=True)
    pattern = torch.softmax(scores.masked_fill(nothing, 0), -1).masked_fill(nothing, 0)
    return (pattern @ v).flatten(1, 2)


# %% wrong: the mask of the group's first head
# expect: grouped_query_attention fail at pattern as mask-of-first-head-in-group
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    if H % k.shape[1]:
        raise ValueError("heads")
    n = H // k.shape[1]
    out = []
    if mask is not None:
        mask = mask.expand(B, H, Tq, k.shape[2])
    for g in range(k.shape[1]):
        heads = slice(g * n, (g + 1) * n)
        one = q[:, heads], k[:, g : g + 1], v[:, g : g + 1]
        out.append(attention(*one) if mask is None else masked_attention(*one, mask[:, g * n : g * n + 1]))
    return torch.cat(out, 1)


# %% wrong: queries of a group behind each other, mask rows repeated in place
# expect: grouped_query_attention fail at pattern as mask-rows-repeated-for-folded-queries
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV = k.shape[1]
    if H % KV:
        raise ValueError("heads")
    folded = q.reshape(B, KV, H // KV * Tq, D)
    if mask is None:
        return attention(folded, k, v).reshape(B, H, Tq, -1)
    mask = mask.expand(B, H, Tq, k.shape[2])[:, :: H // KV].repeat_interleave(H // KV, dim=2)
    return masked_attention(folded, k, v, mask).reshape(B, H, Tq, -1)


# %% wrong: the mask is never used
# expect: grouped_query_attention fail at pattern as mask-ignored
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    return attention(q, repeat_kv(k, H // KV), repeat_kv(v, H // KV))


# %% wrong: if mask
# expect: grouped_query_attention error at pattern as mask-asked-for-its-truth
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    if mask:
        return masked_attention(q, k, v, mask)
    return attention(q, k, v)


# %% wrong: mask turned round
# expect: grouped_query_attention fail at pattern as mask-inverted
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, mask == False)  # noqa: E712


# %% wrong: causal when nobody asked
# expect: grouped_query_attention fail at pattern as causal-without-a-mask
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    if mask is None:
        Tq, Tk = q.shape[2], k.shape[2]
        mask = torch.arange(Tk)[None, :] <= torch.arange(Tk - Tq, Tk)[:, None]
    return masked_attention(q, repeat_kv(k, H // KV), repeat_kv(v, H // KV), mask)


# %% wrong: a square triangle cut to size
# expect: grouped_query_attention fail at pattern as causal-from-the-first-key
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    if mask is None:
        return attention(q, k, v)
    return masked_attention(q, k, v, torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril())


# %% wrong: empty rows are NaN
# expect: grouped_query_attention fail at pattern as empty-rows-are-nan
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    scores = q @ repeat_kv(k, H // KV).mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, -1) @ repeat_kv(v, H // KV)


# %% wrong: scores times mask
# expect: grouped_query_attention fail at pattern as mask-fills-with-zero + empty-rows-read-something
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    scores = q @ repeat_kv(k, H // KV).mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores * mask
    return torch.softmax(scores, -1) @ repeat_kv(v, H // KV)


# %% wrong: a key/value head for the rest of an uneven division
# expect: grouped_query_attention fail as uneven-groups-accepted
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    owner = torch.arange(H) * KV // H
    return attention(q, k[:, owner], v[:, owner]) if mask is None else masked_attention(q, k[:, owner], v[:, owner], mask)


# %% wrong: causal on top
# expect: grouped_query_attention fail at pattern as causal-without-a-mask + causal-on-top-of-the-mask
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    past = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril(k.shape[2] - q.shape[2])
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    return masked_attention(q, k, v, past if mask is None else past & mask)


# %% wrong: empty rows are averages
# expect: grouped_query_attention fail at pattern as empty-rows-read-everything-equally
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    scores = q @ repeat_kv(k, H // KV).mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, -1) @ repeat_kv(v, H // KV)


# %% wrong: NaN patched on the way out
# expect: grouped_query_attention fail at q.grad as empty-rows-give-nan-gradients
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    scores = q @ repeat_kv(k, H // KV).mT / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + torch.zeros(mask.shape, dtype=q.dtype).masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, -1).nan_to_num() @ repeat_kv(v, H // KV)


# %% wrong: softmax over the readers of a group
# expect: grouped_query_attention fail at pattern as softmax-over-group
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV = k.shape[1]
    if H % KV:
        raise ValueError("heads")
    scores = torch.einsum("bkgid,bkjd->bkgij", q.unflatten(1, (KV, -1)), k) * D**-0.5
    if mask is None:
        return torch.einsum("bkgij,bkje->bkgie", scores.softmax(2), v).flatten(1, 2)
    mask = mask.expand(B, H, Tq, k.shape[2]).unflatten(1, (KV, -1))
    empty = ~mask.any(-1, keepdim=True)
    pattern = scores.masked_fill(~(mask | empty), float("-inf")).softmax(2).masked_fill(empty, 0)
    return torch.einsum("bkgij,bkje->bkgie", pattern, v).flatten(1, 2)


# %% wrong: the two head axes of z exchanged
# expect: grouped_query_attention fail at z as z-heads-regrouped
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV = k.shape[1]
    if H % KV:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    z = attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)
    return z.reshape(B, KV, H // KV, Tq, -1).transpose(1, 2).reshape(B, H, Tq, -1)


# %% wrong: five axes returned
# expect: grouped_query_attention fail at z as z-groups-not-merged
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    if H % k.shape[1]:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // k.shape[1]), repeat_kv(v, H // v.shape[1])
    z = attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)
    return z.unflatten(1, (-1, H // KV_HEADS[0])) if KV_HEADS else z


KV_HEADS = []
inner = grouped_query_attention


def grouped_query_attention(q, k, v, mask=None):
    KV_HEADS[:] = [k.shape[1]]
    return inner(q, k, v, mask)


# %% wrong: z with merged heads
# expect: grouped_query_attention fail at z as z-heads-merged
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    if H % k.shape[1]:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // k.shape[1]), repeat_kv(v, H // v.shape[1])
    z = attention(q, k, v) if mask is None else masked_attention(q, k, v, mask)
    return z.transpose(1, 2).reshape(B, Tq, -1)


# %% wrong: the library's grouped attention
# expect: grouped_query_attention forbidden
def grouped_query_attention(q, k, v, mask=None):
    if q.shape[1] % k.shape[1]:
        raise ValueError("heads")
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, enable_gqa=True)


# %% wrong: two mistakes at once, tiled and not scaled
# expect: grouped_query_attention fail at scores as query-heads-tiled + scale-missing
def grouped_query_attention(q, k, v, mask=None):
    n = q.shape[1] // k.shape[1]
    if q.shape[1] % k.shape[1]:
        raise ValueError("heads")
    scores = q @ k.repeat(1, n, 1, 1).mT
    return weigh(scores, mask, v.repeat(1, n, 1, 1))


def weigh(scores, mask, v):
    if mask is None:
        return torch.softmax(scores, -1) @ v
    mask = mask.expand(scores.shape)
    nothing = ~mask.any(-1, keepdim=True)
    scores = scores.masked_fill(~(mask | nothing), float("-inf"))
    return torch.softmax(scores, -1).masked_fill(nothing, 0) @ v


# %% wrong: two mistakes at once, tiled and mask ignored
# expect: grouped_query_attention fail at scores as query-heads-tiled + mask-ignored
def grouped_query_attention(q, k, v, mask=None):
    n = q.shape[1] // k.shape[1]
    if n * k.shape[1] - q.shape[1]:
        raise ValueError("heads")
    return attention(q, k.repeat(1, n, 1, 1), v.repeat(1, n, 1, 1))


# %% wrong: two functions wrong, repeat_kv tiled and the mask turned round
# expect: repeat_kv fail at repeated as heads-tiled
# expect: grouped_query_attention fail at pattern as mask-inverted
def repeat_kv(x, n_rep):
    return torch.cat([x] * n_rep, 1)


def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    k, v = repeat_kv(k, H // KV), repeat_kv(v, H // KV)
    return attention(q, k, v) if mask is None else masked_attention(q, k, v, ~mask)


# %% wrong: joined along the heads
# expect: KVCache error at k_all as chunks-joined-along-heads
class KVCache:
    def __init__(self, n_layer):
        self.keys, self.values = [None] * n_layer, [None] * n_layer

    def append(self, layer, k, v):
        if self.keys[layer] is not None:
            k, v = torch.cat([self.keys[layer], k], dim=1), torch.cat([self.values[layer], v], dim=1)
        self.keys[layer], self.values[layer] = k, v
        return k, v

    @property
    def length(self):
        return min(0 if k is None else k.shape[2] for k in self.keys)


# %% wrong: joined along the channels
# expect: KVCache error at k_all as chunks-joined-along-channels
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        self.parts[layer].append((k, v))
        return torch.cat([p[0] for p in self.parts[layer]], -1), torch.cat([p[1] for p in self.parts[layer]], -1)

    @property
    def length(self):
        return min(sum(p[0].shape[2] for p in parts) for parts in self.parts)


# %% wrong: new before old
# expect: KVCache fail at k_all as new-before-old
class KVCache:
    def __init__(self, n_layer):
        self.store = {i: None for i in range(n_layer)}

    def append(self, layer, k, v):
        old = self.store[layer]
        if old is not None:
            k, v = torch.cat([k, old[0]], 2), torch.cat([v, old[1]], 2)
        self.store[layer] = (k, v)
        return self.store[layer]

    @property
    def length(self):
        return min(0 if p is None else p[0].size(2) for p in self.store.values())


# %% wrong: one list for all layers
# expect: KVCache fail at k_all as layers-in-one-store
class KVCache:
    def __init__(self, n_layer):
        self.keys = [[]] * n_layer
        self.values = [[]] * n_layer

    def append(self, layer, k, v):
        self.keys[layer].append(k)
        self.values[layer].append(v)
        return torch.cat(self.keys[layer], dim=2), torch.cat(self.values[layer], dim=2)

    @property
    def length(self):
        return min(sum(k.shape[2] for k in keys) for keys in self.keys)


# %% wrong: one list under two names
# expect: KVCache error at k_all as keys-and-values-in-one-list
class KVCache:
    def __init__(self, n_layer):
        self.k = self.v = [None] * n_layer

    def append(self, layer, k, v):
        for held, new in ((self.k, k), (self.v, v)):
            held[layer] = new if held[layer] is None else torch.cat([held[layer], new], dim=2)
        return self.k[layer], self.v[layer]

    @property
    def length(self):
        return min(0 if k is None else k.shape[2] for k in self.k)


# %% wrong: lists of chunks returned
# expect: KVCache fail at k_all as chunks-not-joined
class KVCache:
    def __init__(self, n_layer):
        self.k, self.v = [[] for _ in range(n_layer)], [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        self.k[layer].append(k)
        self.v[layer].append(v)
        return self.k[layer], self.v[layer]

    @property
    def length(self):
        return min(sum(k.shape[2] for k in layer) for layer in self.k)


# %% wrong: layers counted by turns
# expect: KVCache fail at k_all as layers-by-turns
class KVCache(KVCache):
    def __init__(self, n_layer):
        super().__init__(n_layer)
        self.n_layer, self.turn = n_layer, -1

    def append(self, layer, k, v):
        self.turn = (self.turn + 1) % self.n_layer
        return super().append(self.turn, k, v)


# %% wrong: dictionaries in the class
# expect: KVCache fail at starts_empty as state-shared-by-caches
class KVCache:
    keys = {}
    values = {}

    def __init__(self, n_layer):
        self.n_layer = n_layer

    def append(self, layer, k, v):
        if layer in self.keys:
            k = torch.cat([self.keys[layer], k], dim=2)
            v = torch.cat([self.values[layer], v], dim=2)
        self.keys[layer], self.values[layer] = k, v
        return k, v

    @property
    def length(self):
        return min(self.keys[i].shape[2] if i in self.keys else 0 for i in range(self.n_layer))


# %% wrong: the list is a default argument
# expect: KVCache fail at starts_empty as state-shared-by-caches
class KVCache:
    def __init__(self, n_layer, store=[]):  # noqa: B006
        self.n_layer, self.store = n_layer, store

    def append(self, layer, k, v):
        self.store.append((layer, k, v))
        mine = [(k, v) for at, k, v in self.store if at == layer]
        return torch.cat([k for k, _ in mine], 2), torch.cat([v for _, v in mine], 2)

    @property
    def length(self):
        return min(sum(k.shape[2] for at, k, _ in self.store if at == layer) for layer in range(self.n_layer))


# %% wrong: returns the new chunk
# expect: KVCache fail at k_all as chunk-returned-alone
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        self.parts[layer].append((k, v))
        return k, v

    @property
    def length(self):
        return min(sum(k.shape[2] for k, _ in parts) for parts in self.parts)


# %% wrong: keeps the newest chunk alone
# expect: KVCache fail at k_all as newest-chunk-replaces-all
class KVCache:
    def __init__(self, n_layer):
        self.parts = [None] * n_layer

    def append(self, layer, k, v):
        self.parts[layer] = k, v
        return self.parts[layer]

    @property
    def length(self):
        return min(0 if part is None else part[0].shape[2] for part in self.parts)


# %% wrong: values from the keys
# expect: KVCache fail at v_all as keys-returned-as-values
class KVCache:
    def __init__(self, n_layer):
        self._k, self._v = [None] * n_layer, [None] * n_layer

    def append(self, layer, k, v):
        if self._k[layer] is None:
            self._k[layer], self._v[layer] = k, k
        else:
            self._k[layer] = torch.cat((self._k[layer], k), 2)
            self._v[layer] = torch.cat((self._v[layer], k), 2)
        return self._k[layer], self._v[layer]

    @property
    def length(self):
        return min(0 if k is None else k.shape[2] for k in self._k)


# %% wrong: values first
# expect: KVCache fail at k_all as keys-and-values-swapped
Right = KVCache


class KVCache(Right):
    def append(self, layer, k, v):
        k_all, v_all = super().append(layer, k, v)
        return v_all, k_all


# %% wrong: append returns nothing
# expect: KVCache error as append-returns-nothing
class KVCache(KVCache):
    def append(self, layer, k, v):
        self._keys[layer].append(k)
        self._values[layer].append(v)


# %% wrong: length moves with the first layer
# expect: KVCache fail at length as length-of-first-layer
class KVCache(KVCache):
    @property
    def length(self):
        return self._keys[0][0].shape[2] if self._keys[0] else 0


# %% wrong: length counted when the last layer appends
# expect: KVCache fail at length as length-of-last-layer
class KVCache:
    def __init__(self, n_layer):
        self.n_layer, self.length, self.parts = n_layer, 0, {}

    def append(self, layer, k, v):
        old = self.parts.get(layer)
        if old:
            k, v = torch.cat([old[0], k], 2), torch.cat([old[1], v], 2)
        if layer == self.n_layer - 1:
            self.length = k.shape[2]
        self.parts[layer] = k, v
        return k, v


# %% wrong: length added up at every append
# expect: KVCache fail at length as length-summed-over-layers
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]
        self.length = 0

    def append(self, layer, k, v):
        self.parts[layer].append((k, v))
        self.length += k.shape[2]
        return tuple(torch.cat(side, 2) for side in zip(*self.parts[layer]))


# %% wrong: length of the layer that was appended to
# expect: KVCache fail at length as length-of-newest-append
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]
        self.length = 0

    def append(self, layer, k, v):
        self.parts[layer].append((k, v))
        k, v = (torch.cat(side, 2) for side in zip(*self.parts[layer]))
        self.length = k.shape[2]
        return k, v


# %% wrong: length of the fullest layer
# expect: KVCache fail at length as length-of-fullest-layer
class KVCache(KVCache):
    @property
    def length(self):
        return max([0] + [keys[0].shape[2] for keys in self._keys if keys])


# %% wrong: length is the number of appends
# expect: KVCache fail at length as length-counts-appends
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        self.parts[layer].append((k, v))
        return tuple(torch.cat(side, 2) for side in zip(*self.parts[layer]))

    @property
    def length(self):
        return min(len(part) for part in self.parts)


# %% wrong: length reads the head axis
# expect: KVCache fail at length as length-counts-heads
class KVCache(KVCache):
    @property
    def length(self):
        return min(keys[0].shape[1] if keys else 0 for keys in self._keys)


# %% wrong: length is a method
# expect: KVCache fail at length as length-is-a-method
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        self.parts[layer].append((k, v))
        return tuple(torch.cat(side, 2) for side in zip(*self.parts[layer]))

    def length(self):
        return min(sum(k.shape[2] for k, _ in part) for part in self.parts)


# %% wrong: the returned tensor itself grows
# expect: KVCache fail at returned_earlier as returned-tensors-grow
class KVCache:
    def __init__(self, n_layer):
        self.k, self.v = [None] * n_layer, [None] * n_layer

    def append(self, layer, k, v):
        for held, new in ((self.k, k), (self.v, v)):
            if held[layer] is None:
                held[layer] = new.clone()
            else:
                held[layer].set_(torch.cat([held[layer], new], dim=2)) if not new.requires_grad else None
                if new.requires_grad:
                    held[layer].data = torch.cat([held[layer], new], dim=2).data
        return self.k[layer], self.v[layer]

    @property
    def length(self):
        return min(0 if k is None else k.shape[2] for k in self.k)


# %% wrong: one buffer for all that is returned
# expect: KVCache fail at returned_earlier as returned-buffer-reused
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]
        self.room = None

    def append(self, layer, k, v):
        self.parts[layer].append((k, v))
        n = sum(k.shape[2] for k, _ in self.parts[layer])
        if self.room is None:
            self.room = [part.new_zeros(*part.shape[:2], 100, part.shape[3]) for part in (k, v)]
        for room, side in zip(self.room, zip(*self.parts[layer])):
            room[:, :, :n] = torch.cat(side, 2)
        return self.room[0][:, :, :n], self.room[1][:, :, :n]

    @property
    def length(self):
        return min(sum(k.shape[2] for k, _ in layer) for layer in self.parts)


# %% wrong: a buffer that is written from the start each time
# expect: KVCache fail at k_all as ?
class KVCache:
    def __init__(self, n_layer):
        self.k, self.v, self.n = [None] * n_layer, [None] * n_layer, [0] * n_layer

    def append(self, layer, k, v):
        if self.k[layer] is None:
            self.k[layer] = k.new_zeros(*k.shape[:2], 64, k.shape[3])
            self.v[layer] = v.new_zeros(*v.shape[:2], 64, v.shape[3])
        T = k.shape[2]
        self.k[layer] = torch.cat([k, self.k[layer][:, :, T:]], 2)
        self.v[layer] = torch.cat([v, self.v[layer][:, :, T:]], 2)
        self.n[layer] += T
        return self.k[layer][:, :, : self.n[layer]], self.v[layer][:, :, : self.n[layer]]

    @property
    def length(self):
        return min(self.n)


# %% wrong: older positions out of the graph
# expect: KVCache fail at k.grad as older-positions-detached
class KVCache:
    def __init__(self, n_layer):
        self.held = [None] * n_layer

    def append(self, layer, k, v):
        if self.held[layer] is not None:
            k = torch.cat([self.held[layer][0], k], 2)
            v = torch.cat([self.held[layer][1], v], 2)
        self.held[layer] = k.detach(), v.detach()
        return k, v

    @property
    def length(self):
        return min(0 if pair is None else pair[0].shape[2] for pair in self.held)


# %% wrong: everything out of the graph
# expect: KVCache fail at k.grad as gradient-cut-off
class KVCache(KVCache):
    def append(self, layer, k, v):
        return super().append(layer, k.detach(), v.detach())


# %% wrong: kept in half precision
# expect: KVCache fail as dtype-not-kept
class KVCache(KVCache):
    def append(self, layer, k, v):
        return super().append(layer, k.half(), v.half())


# %% wrong: two mistakes at once, new before old and the length of the last layer
# expect: KVCache fail at k_all as new-before-old + length-of-last-layer
class KVCache:
    def __init__(self, n_layer):
        self.parts = [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        self.parts[layer].insert(0, (k, v))
        return tuple(torch.cat(side, 2) for side in zip(*self.parts[layer]))

    @property
    def length(self):
        return sum(k.shape[2] for k, _ in self.parts[-1])


# %% wrong: keys alone
# expect: kv_cache_bytes fail at cache_bytes as keys-alone
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return math.ceil(n_layer * n_kv_head * d_head * n_positions * bytes_per_value * batch)


# %% wrong: keys and values counted twice
# expect: kv_cache_bytes fail at cache_bytes as keys-and-values-twice
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    per_token = 2 * n_kv_head * d_head * bytes_per_value
    return math.ceil(2 * per_token * n_layer * n_positions * batch)


# %% wrong: one layer
# expect: kv_cache_bytes fail at cache_bytes as layers-missing
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return -int(-2 * n_kv_head * d_head * n_positions * bytes_per_value * batch // 1)


# %% wrong: one head
# expect: kv_cache_bytes fail at cache_bytes as kv-heads-missing
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    values = 2 * n_layer * d_head * n_positions * batch
    return math.ceil(values * bytes_per_value)


# %% wrong: batch forgotten
# expect: kv_cache_bytes fail at cache_bytes as batch-missing
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return math.ceil(2 * n_layer * n_kv_head * d_head * n_positions * bytes_per_value)


# %% wrong: always two bytes
# expect: kv_cache_bytes fail at cache_bytes as always-two-bytes
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return 4 * n_layer * n_kv_head * d_head * n_positions * batch


# %% wrong: four bytes unless told otherwise
# expect: kv_cache_bytes fail at cache_bytes as default-of-four-bytes
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=4, batch=1):
    return math.ceil(2 * n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value)


# %% wrong: rounded down
# expect: kv_cache_bytes fail at cache_bytes as price-rounded-down
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return int(2 * n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value)


# %% wrong: a float
# expect: kv_cache_bytes fail at cache_bytes as price-not-rounded
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return 2 * n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value


# %% wrong: each value rounded up
# expect: kv_cache_bytes fail at cache_bytes as each-value-rounded-up
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    bytes_per_value = math.ceil(bytes_per_value)
    return 2 * n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value


# %% wrong: each layer rounded up
# expect: kv_cache_bytes fail at cache_bytes as each-layer-rounded-up
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    layer = math.ceil(2 * n_kv_head * d_head * n_positions * batch * bytes_per_value)
    return n_layer * layer


# %% wrong: two mistakes at once, keys alone and rounded down
# expect: kv_cache_bytes fail at cache_bytes as keys-alone + price-rounded-down
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return int(n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value)


# %% wrong: 4 * bytes, because of float32 and of keys and values
# expect: kv_cache_bytes fail at cache_bytes as keys-and-values-twice
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    return math.ceil(4 * n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value)


# %% right: expand and reshape
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    if n_rep == 1:
        return x
    return x[:, :, None].expand(B, KV, n_rep, T, D).reshape(B, KV * n_rep, T, D)


# %% right: index of the owner
def repeat_kv(x, n_rep):
    return x[:, torch.arange(x.shape[1] * n_rep, device=x.device) // n_rep]


# %% right: gather
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    owner = (torch.arange(KV * n_rep, device=x.device) // n_rep).view(1, -1, 1, 1).expand(B, KV * n_rep, T, D)
    return x.gather(1, owner)


# %% right: positions tiled, then cut into heads
def repeat_kv(x, n_rep):
    B, KV, T, D = x.shape
    return x.repeat(1, 1, n_rep, 1).reshape(B, KV * n_rep, T, D)


# %% right: stacked in a loop
def repeat_kv(x, n_rep):
    heads = []
    for j in range(x.shape[1]):
        heads += [x[:, j]] * n_rep
    return torch.stack(heads, dim=1)


# %% right: written into a buffer
def repeat_kv(x, n_rep):
    out = x.new_empty(x.shape[0], x.shape[1] * n_rep, *x.shape[2:])
    for h in range(out.shape[1]):
        out[:, h] = x[:, h // n_rep]
    return out


# %% right: einsum with a matrix of ones and zeros
def repeat_kv(x, n_rep):
    owner = torch.eye(x.shape[1], dtype=x.dtype, device=x.device).repeat_interleave(n_rep, 0)
    return torch.einsum("hj,bjtd->bhtd", owner, x)


# %% right: grouped by broadcasting
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV, Tk = k.shape[1], k.shape[2]
    if H % KV != 0:
        raise ValueError(f"{H} query heads, {KV} key/value heads")
    q = q.reshape(B, KV, H // KV, Tq, D)
    scores = q @ k.unsqueeze(2).transpose(-1, -2) / math.sqrt(D)
    if mask is None:
        pattern = torch.softmax(scores, -1)
    else:
        mask = mask.expand(B, H, Tq, Tk).reshape(B, KV, H // KV, Tq, Tk)
        empty = ~mask.any(-1, keepdim=True)
        pattern = torch.softmax(scores.masked_fill(~mask & ~empty, float("-inf")), -1).masked_fill(empty, 0.0)
    return (pattern @ v.unsqueeze(2)).reshape(B, H, Tq, -1)


# %% right: einsum over groups, shares by exp times mask
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV, Tk = k.shape[1], k.shape[2]
    if H < KV or H % KV:
        raise ValueError("heads")
    scores = torch.einsum("bgrid,bgjd->bgrij", q.unflatten(1, (KV, -1)) * D**-0.5, k)
    mask = torch.ones(1, dtype=torch.bool) if mask is None else mask
    mask = mask.expand(B, H, Tq, Tk).unflatten(1, (KV, -1))
    weights = torch.exp(scores - scores.amax(-1, keepdim=True)) * mask
    total = weights.sum(-1, keepdim=True)
    pattern = weights / torch.where(total == 0, 1, total)
    return torch.einsum("bgrij,bgje->bgrie", pattern, v).flatten(1, 2)


# %% right: queries of a group folded into the positions
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    KV, Tk = k.shape[1], k.shape[2]
    if H % KV:
        raise ValueError("heads")
    folded = q.reshape(B, KV, -1, D)
    if mask is None:
        z = attention(folded, k, v)
    else:
        z = masked_attention(folded, k, v, mask.expand(B, H, Tq, Tk).reshape(B, KV, -1, Tk))
    return z.reshape(B, H, Tq, v.shape[-1])


# %% right: a loop over key/value heads
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    group, rest = divmod(H, k.shape[1])
    if rest:
        raise ValueError("heads")
    if mask is None:
        mask = torch.ones(Tq, k.shape[2], dtype=torch.bool, device=q.device)
    mask = mask.broadcast_to(B, H, Tq, k.shape[2])
    out = []
    for g in range(k.shape[1]):
        mine = slice(g * group, (g + 1) * group)
        out.append(masked_attention(q[:, mine], k[:, [g]], v[:, [g]], mask[:, mine]))
    return torch.cat(out, dim=1)


# %% right: head by head, float64 inside
def grouped_query_attention(q, k, v, mask=None):
    B, H, Tq, D = q.shape
    if H % k.shape[1]:
        raise ValueError("heads")
    out = []
    for h in range(H):
        g = h * k.shape[1] // H
        scores = q[:, h].double() @ k[:, g].double().transpose(1, 2) / math.sqrt(D)
        if mask is None:
            pattern = scores.softmax(-1)
        else:
            allowed = mask.expand(B, H, Tq, k.shape[2])[:, h]
            pattern = scores.masked_fill(~allowed, -1e30).softmax(-1) * allowed
        out.append((pattern @ v[:, g].double()).to(q.dtype))
    return torch.stack(out, 1)


# %% right: masked everywhere with a finite fill
def grouped_query_attention(q, k, v, mask=None):
    H, KV = q.shape[1], k.shape[1]
    if H % KV:
        raise ValueError("heads")
    k, v = k.repeat_interleave(H // KV, 1), v.repeat_interleave(H // KV, 1)
    scores = torch.matmul(q, k.transpose(2, 3)) / q.shape[-1] ** 0.5
    if mask is None:
        return torch.matmul(torch.softmax(scores, dim=-1), v)
    scores = torch.where(mask, scores, torch.tensor(-1e4, dtype=q.dtype))
    return torch.matmul(torch.softmax(scores, dim=-1) * mask, v)


# %% right: a list of chunks for each layer
class KVCache:
    def __init__(self, n_layer):
        self.k = [[] for _ in range(n_layer)]
        self.v = [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        self.k[layer].append(k)
        self.v[layer].append(v)
        return torch.cat(self.k[layer], dim=-2), torch.cat(self.v[layer], dim=-2)

    @property
    def length(self):
        return min(sum(k.shape[-2] for k in layer) for layer in self.k)


# %% right: a dictionary, and a length that is an attribute
class KVCache:
    def __init__(self, n_layer):
        self.n_layer, self.layers, self.length = n_layer, {}, 0

    def append(self, layer, k, v):
        if layer in self.layers:
            k = torch.cat([self.layers[layer][0], k], 2)
            v = torch.cat([self.layers[layer][1], v], 2)
        self.layers[layer] = [k, v]
        if len(self.layers) == self.n_layer:
            self.length = min(pair[0].size(2) for pair in self.layers.values())
        return self.layers[layer]


# %% right: a buffer that doubles
class KVCache:
    def __init__(self, n_layer):
        self.buffers, self.held = [None] * n_layer, [0] * n_layer

    def append(self, layer, k, v):
        start, end = self.held[layer], self.held[layer] + k.shape[2]
        buffers = self.buffers[layer] or [part.new_zeros(*part.shape[:2], 2, part.shape[3]) for part in (k, v)]
        for i, part in enumerate((k, v)):
            room = buffers[i]
            while room.shape[2] < end:
                room = torch.cat([room, torch.zeros_like(room)], dim=2)
            room = room if room is not buffers[i] else room
            room[:, :, start:end] = part
            buffers[i] = room
        self.buffers[layer], self.held[layer] = buffers, end
        return buffers[0][:, :, :end], buffers[1][:, :, :end]

    @property
    def length(self):
        return min(self.held)


# %% right: keys and values side by side in one tensor a layer
class KVCache:
    def __init__(self, n_layer):
        self.both = [torch.empty(0)] * n_layer
        self.width = 0

    def append(self, layer, k, v):
        self.width = k.shape[-1]
        new = torch.cat([k, v], dim=-1)
        held = self.both[layer]
        self.both[layer] = torch.cat([held, new], dim=2) if held.numel() else new
        return self.both[layer].split([self.width, v.shape[-1]], dim=-1)

    @property
    def length(self):
        return int(min(both.shape[2] if both.numel() else 0 for both in self.both))


# %% right: positions first inside, and a second name
class Cache:
    def __init__(self, n_layer):
        self.rows = [[] for _ in range(n_layer)]

    def append(self, layer, k, v):
        for t in range(k.shape[2]):
            self.rows[layer].append((k[:, :, t], v[:, :, t]))
        keys, values = zip(*self.rows[layer])
        return torch.stack(keys, dim=2), torch.stack(values, dim=2)

    length = property(lambda self: min(map(len, self.rows)))


KVCache = Cache


# %% right: the bytes of tensors
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    key = torch.empty(batch, n_kv_head, n_positions, d_head, device="meta")
    return math.ceil(sum(key.numel() * bytes_per_value for _ in range(n_layer) for _ in "kv"))


# %% right: whole numbers alone
def kv_cache_bytes(n_layer, n_kv_head, d_head, n_positions, bytes_per_value=2, batch=1):
    top, bottom = float(bytes_per_value).as_integer_ratio()
    return -(-2 * n_layer * n_kv_head * d_head * n_positions * batch * top // bottom)


# %% wrong: softmax over the queries, hidden keys very low
# expect: grouped_query_attention fail at pattern as softmax-over-queries-hidden-share-equally
def grouped_query_attention(q, k, v, mask=None):
    H, Hkv = q.shape[1], k.shape[1]
    if H % Hkv:
        raise ValueError(f"{H} query heads, {Hkv} key/value heads")
    k, v = repeat_kv(k, H // Hkv), repeat_kv(v, H // Hkv)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(dim=-2) @ v


# %% wrong: softmax over the queries, minus infinity and nothing else
# expect: grouped_query_attention fail at pattern as softmax-over-queries-hidden-are-nan
def grouped_query_attention(q, k, v, mask=None):
    H, Hkv = q.shape[1], k.shape[1]
    if H % Hkv:
        raise ValueError(f"{H} query heads, {Hkv} key/value heads")
    k, v = repeat_kv(k, H // Hkv), repeat_kv(v, H // Hkv)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(mask, scores, float("-inf"))
    return torch.softmax(scores, 2) @ v


# %% wrong: softmax over the queries, NaN patched afterwards
# expect: grouped_query_attention fail at pattern as softmax-over-queries-hidden-share-nothing
def grouped_query_attention(q, k, v, mask=None):
    H, Hkv = q.shape[1], k.shape[1]
    if H % Hkv:
        raise ValueError(f"{H} query heads, {Hkv} key/value heads")
    k, v = repeat_kv(k, H // Hkv), repeat_kv(v, H // Hkv)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return torch.nan_to_num(scores.softmax(-2)) @ v


# %% wrong: softmax over the queries, low fills and empty rows put to zero
# expect: grouped_query_attention fail at pattern as softmax-over-queries-hidden-share-but-empty-rows
def grouped_query_attention(q, k, v, mask=None):
    H, Hkv = q.shape[1], k.shape[1]
    if H % Hkv:
        raise ValueError(f"{H} query heads, {Hkv} key/value heads")
    k, v = repeat_kv(k, H // Hkv), repeat_kv(v, H // Hkv)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is None:
        return scores.softmax(-2) @ v
    empty = ~mask.any(-1, keepdim=True)
    pattern = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-2)
    return pattern.masked_fill(empty, 0.0) @ v


# %% wrong: softmax over the queries, the mask multiplied in, and divided by D
# expect: grouped_query_attention fail at scores as scale-by-head-size + softmax-over-queries-hidden-share-nothing
def grouped_query_attention(q, k, v, mask=None):
    H, Hkv = q.shape[1], k.shape[1]
    if H % Hkv:
        raise ValueError(f"{H} query heads, {Hkv} key/value heads")
    k, v = repeat_kv(k, H // Hkv), repeat_kv(v, H // Hkv)
    scores = q @ k.transpose(-2, -1) / q.shape[-1]
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    pattern = scores.softmax(-2)
    if mask is not None:
        pattern = pattern * mask
    return pattern @ v


# %% wrong: softmax over the heads, hidden keys very low
# expect: grouped_query_attention fail at pattern as softmax-over-heads-hidden-share-equally
def grouped_query_attention(q, k, v, mask=None):
    H, Hkv = q.shape[1], k.shape[1]
    if H % Hkv:
        raise ValueError(f"{H} query heads, {Hkv} key/value heads")
    k, v = repeat_kv(k, H // Hkv), repeat_kv(v, H // Hkv)
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -1e9)
    return scores.softmax(1) @ v
