"""Submissions of 03_attention: patches on the solution, with what the grader must say of them."""


# %% wrong: no scaling
# expect: attention_scores fail at scores as scale-missing
def attention_scores(q, k):
    return q @ k.transpose(-2, -1)


# %% wrong: divided by D
# expect: attention_scores fail at scores as scale-by-head-size
def attention_scores(q, k):
    d = q.size(-1)
    return torch.matmul(q, k.transpose(2, 3)) * (1 / d)


# %% wrong: power binds before division
# expect: attention_scores fail at scores as scale-by-half-head-size
def attention_scores(q, k):
    return torch.einsum("bhqd,bhkd->bhqk", q, k) / (q.shape[-1] ** 1 / 2)


# %% wrong: query scaled, then scores scaled again
# expect: attention_scores fail at scores as scale-by-head-size
def attention_scores(q, k):
    q = q * q.shape[-1] ** -0.5
    return q @ k.mT / math.sqrt(q.shape[-1])


# %% wrong: the factor of head size 64
# expect: attention_scores fail at scores as scale-fixed-for-head-size-64
def attention_scores(q, k):
    return q @ k.mT * 0.125


# %% wrong: scale from the number of keys
# expect: attention_scores fail at scores as scale-from-key-count
def attention_scores(q, k):
    return q @ k.mT / math.sqrt(k.size(-2))


# %% wrong: scale from the number of heads
# expect: attention_scores fail at scores as scale-from-head-count
def attention_scores(q, k):
    return q @ k.mT / math.sqrt(k.shape[1])


# %% wrong: scale from the model width
# expect: attention_scores fail at scores as scale-by-model-width
def attention_scores(q, k):
    C = q.shape[1] * q.shape[3]
    return q @ k.mT / C**0.5


# %% wrong: softmax over the queries
# expect: attention fail at pattern as softmax-over-queries
def attention(q, k, v):
    scores = attention_scores(q, k)
    return softmax(scores, dim=-2) @ v


# %% wrong: softmax over axis 1
# expect: attention fail at pattern as softmax-over-heads
def attention(q, k, v):
    scores = attention_scores(q, k)
    return torch.softmax(scores, 1) @ v


# %% wrong: largest entry of the whole tensor
# expect: softmax fail at shares as softmax-max-over-everything
def softmax(x, dim=-1):
    e = (x - x.max()).exp()
    return e / e.sum(dim=dim, keepdim=True)


# %% wrong: no largest entry subtracted
# expect: softmax fail at shares as softmax-overflows
def softmax(x, dim=-1):
    return x.exp() / x.exp().sum(dim, keepdim=True)


# %% wrong: dim forgotten
# expect: softmax fail at shares as softmax-ignores-dim
def softmax(x, dim=-1):
    e = torch.exp(x - x.max(-1, keepdim=True).values)
    return e / e.sum(-1, keepdim=True)


# %% wrong: sum without keepdim
# expect: softmax error as softmax-sum-not-kept
def softmax(x, dim=-1):
    e = torch.exp(x - x.amax(dim, keepdim=True))
    return e / e.sum(dim)


# %% wrong: the library's softmax
# expect: softmax forbidden
def softmax(x, dim=-1):
    return torch.nn.functional.softmax(x, dim=dim)


# %% wrong: exp of log_softmax
# expect: softmax forbidden
def softmax(x, dim=-1):
    return x.log_softmax(dim).exp()


# %% wrong: softmax changes its argument
# expect: softmax fail as argument-changed-in-place
def softmax(x, dim=-1):
    if x.requires_grad:
        x = x.clone()
    x -= x.amax(dim, keepdim=True)
    e = torch.exp(x)
    return e / e.sum(dim, keepdim=True)


# %% wrong: gradient cut off
# expect: softmax fail at x.grad as gradient-cut-off
def softmax(x, dim=-1):
    e = torch.exp(x - x.amax(dim, keepdim=True)).detach()
    return e / e.sum(dim, keepdim=True)


# %% wrong: always float32
# expect: softmax fail as dtype-not-kept
def softmax(x, dim=-1):
    e = torch.exp(x.float() - x.float().amax(dim, keepdim=True))
    return e / e.sum(dim, keepdim=True)


# %% wrong: heads split by view alone
# expect: split_heads fail at heads as heads-split-without-transpose
def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"{C} channels, {n_head} heads")
    return x.reshape(B, n_head, T, C // n_head)


# %% wrong: split and merge wrong together
# expect: split_heads fail at heads as heads-split-without-transpose
# expect: merge_heads fail at merged as heads-merged-without-transpose
def split_heads(x, n_head):
    B, T, C = x.shape
    assert C % n_head == 0
    return x.reshape(B, n_head, T, C // n_head)


def merge_heads(z):
    B, H, T, D = z.shape
    return z.reshape(B, T, H * D)


# %% wrong: merge takes heads for the batch
# expect: merge_heads fail at merged as merge-takes-heads-for-batch
def merge_heads(z):
    B, H, T, D = z.shape
    return z.reshape(H, B, T, D).permute(1, 2, 0, 3).reshape(B, T, H * D)


# %% wrong: view after transpose
# expect: merge_heads error as view-after-transpose
def merge_heads(z):
    B, H, T, D = z.shape
    return z.transpose(1, 2).view(B, T, H * D)


# %% wrong: heads left behind the positions
# expect: split_heads fail at heads as heads-left-behind-positions
def split_heads(x, n_head):
    B, T, C = x.shape
    if C % n_head != 0:
        raise ValueError("no")
    return x.reshape(B, T, n_head, C // n_head)


# %% wrong: channels left over
# expect: split_heads fail as channels-left-over
def split_heads(x, n_head):
    D = x.shape[-1] // n_head
    return torch.stack([x[..., h * D : (h + 1) * D] for h in range(n_head)], dim=1)


# %% wrong: attention across heads
# expect: multi_head_attention fail at z as attention-across-heads
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    B, T, C = x.shape
    q, k, v = (x @ c_attn_w + c_attn_b).reshape(B, T, 3, n_head, C // n_head).unbind(2)
    pattern = torch.softmax(q @ k.transpose(-1, -2) / (C // n_head) ** 0.5, dim=-1)
    return (pattern @ v).reshape(B, T, C) @ c_proj_w + c_proj_b


# %% wrong: attention across the batch
# expect: multi_head_attention fail at z as attention-across-batch
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    x = x.transpose(0, 1)
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    out = merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b
    return out.transpose(0, 1)


# %% wrong: .T on four axes
# expect: attention_scores error at scores as keys-reversed-by-T
def attention_scores(q, k):
    return q @ k.permute(*reversed(range(k.dim()))) / math.sqrt(q.shape[-1])


# %% wrong: pattern transposed
# expect: multi_head_attention fail at z as pattern-transposed
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    pattern = softmax(attention_scores(q, k))
    return merge_heads(pattern.transpose(-1, -2) @ v) @ c_proj_w + c_proj_b


# %% wrong: q, k and v cut within each head
# expect: multi_head_attention fail at q as qkv-split-after-heads
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    B, T, C = x.shape
    qkv = (x @ c_attn_w + c_attn_b).view(B, T, n_head, 3 * C // n_head).transpose(1, 2)
    q, k, v = qkv.split(C // n_head, dim=-1)
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b


# %% wrong: every third column
# expect: multi_head_attention fail at q as qkv-interleaved
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    qkv = x @ c_attn_w + c_attn_b
    q, k, v = (split_heads(qkv[..., i::3], n_head) for i in range(3))
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b


# %% wrong: split(3)
# expect: multi_head_attention error at q as qkv-cut-in-pieces-of-three
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (x @ c_attn_w + c_attn_b).split(3, dim=-1)
    q, k, v = (split_heads(part, n_head) for part in (q, k, v))
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b


# %% wrong: values made of keys
# expect: multi_head_attention fail at v as values-copied-from-keys
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (x @ c_attn_w + c_attn_b).chunk(3, dim=-1)
    q, k, v = split_heads(q, n_head), split_heads(k, n_head), split_heads(k, n_head)
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b


# %% wrong: each head sees its own slice of x
# expect: multi_head_attention fail at q as heads-see-own-slice-only
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    C = x.shape[-1]
    D = C // n_head
    outs = []
    for h in range(n_head):
        rows = slice(h * D, (h + 1) * D)
        parts = []
        for part in range(3):
            columns = slice(part * C + h * D, part * C + (h + 1) * D)
            parts.append((x[..., rows] @ c_attn_w[rows, columns] + c_attn_b[columns]).unsqueeze(1))
        outs.append(attention(*parts).squeeze(1))
    return torch.cat(outs, -1) @ c_proj_w + c_proj_b


# %% wrong: every head is head 0
# expect: multi_head_attention fail at q as all-heads-the-same
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    one = attention(q[:, :1], k[:, :1], v[:, :1])
    return merge_heads(torch.cat([one] * n_head, dim=1)) @ c_proj_w + c_proj_b


# %% wrong: c_attn transposed
# expect: multi_head_attention error at q as qkv-weight-transposed
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w.T + c_attn_b).chunk(3, dim=-1))
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b


# %% wrong: c_proj transposed
# expect: multi_head_attention fail at attn_out as output-weight-transposed
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return torch.nn.functional.linear(merge_heads(attention(q, k, v)), c_proj_w, c_proj_b)


# %% wrong: no bias on q, k, v
# expect: multi_head_attention fail at q as qkv-bias-missing
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w).chunk(3, dim=-1))
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b


# %% wrong: no bias at all
# expect: multi_head_attention fail at q as qkv-bias-missing + output-bias-missing
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w).chunk(3, dim=-1))
    return merge_heads(attention(q, k, v)) @ c_proj_w


# %% wrong: one letter for both positions
# expect: attention_scores fail at scores as ?
def attention_scores(q, k):
    T = min(q.shape[2], k.shape[2])
    same = torch.einsum("bhtd,bhtd->bht", q[:, :, :T], k[:, :, :T])
    return same.unsqueeze(-1).expand(*q.shape[:2], T, k.shape[2]) / math.sqrt(q.shape[-1])


# %% wrong: ReLU on the projections
# expect: multi_head_attention fail at q as qkv-activation
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).relu().chunk(3, dim=-1))
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b


# %% wrong: the output is thrown away
# expect: multi_head_attention fail at attn_out as output-discarded
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    merged = merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b
    return x


# %% wrong: bias added once a head
# expect: multi_head_attention fail at attn_out as output-bias-once-a-head
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    z, D = attention(q, k, v), x.shape[-1] // n_head
    return sum(z[:, h] @ c_proj_w[h * D : (h + 1) * D] + c_proj_b for h in range(n_head))


# %% wrong: two mistakes at once, scale and axis
# expect: attention fail at scores as scale-missing + softmax-over-queries
def attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-2, -1), dim=-2)
    return weights @ v


# %% wrong: three mistakes at once
# expect: multi_head_attention fail at q as qkv-bias-missing + scale-missing + output-weight-transposed
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w).chunk(3, dim=-1))
    z = torch.softmax(q @ k.mT, -1) @ v
    return merge_heads(z) @ c_proj_w.T + c_proj_b


# %% wrong: the fused kernel
# expect: attention forbidden
def attention(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v)


# %% wrong: an endless loop
# expect: soft_lookup timeout
def soft_lookup(query, keys, values):
    while True:
        pass


# %% wrong: a lookup that is scaled
# expect: soft_lookup fail at weights as lookup-scaled
def soft_lookup(query, keys, values):
    weights = torch.softmax(keys @ query / math.sqrt(len(query)), 0)
    return weights @ values


# %% wrong: something that no known mistake gives
# expect: attention fail at z as ?
def attention(q, k, v):
    return softmax(attention_scores(q, k)) @ v * 1.5


# %% right: einsum
def attention_scores(q, k):
    return torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5


def attention(q, k, v):
    return torch.einsum("bhij,bhje->bhie", softmax(attention_scores(q, k)), v)


# %% right: loops over everything
def attention(q, k, v):
    B, H, T, D = q.shape
    rows = []
    for b in range(B):
        for h in range(H):
            for t in range(T):
                scores = torch.stack([(q[b, h, t] * key).sum() / D**0.5 for key in k[b, h]])
                rows.append(softmax(scores, 0) @ v[b, h])
    return torch.stack(rows).view(B, H, T, v.shape[-1])


# %% right: broadcast product
def attention_scores(q, k):
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1) / math.sqrt(q.shape[-1])


# %% right: query scaled beforehand
def attention_scores(q, k):
    return (q / q.shape[-1] ** 0.5) @ k.mT


# %% right: softmax in float64
def softmax(x, dim=-1):
    wide = x.double()
    e = torch.exp(wide - wide.amax(dim, keepdim=True))
    return (e / e.sum(dim, keepdim=True)).to(x.dtype)


# %% right: softmax by logsumexp
def softmax(x, dim=-1):
    return (x - torch.logsumexp(x, dim, keepdim=True)).exp()


# %% right: softmax in place on its own tensors
def softmax(x, dim=-1):
    e = (x - x.amax(dim, keepdim=True)).exp_()
    return e.div_(e.sum(dim, keepdim=True)) if not e.requires_grad else e / e.sum(dim, keepdim=True)


# %% right: bmm, float64 inside
def attention(q, k, v):
    B, H, T, D = q.shape
    flat = [part.reshape(B * H, *part.shape[2:]).double() for part in (q, k, v)]
    scores = torch.bmm(flat[0], flat[1].transpose(1, 2)) / D**0.5
    return torch.bmm(torch.softmax(scores, -1), flat[2]).to(q.dtype).reshape(B, H, T, -1)


# %% right: output projection as a sum over heads
def multi_head_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head):
    C = x.shape[-1]
    D = C // n_head
    out = torch.zeros_like(x) + c_proj_b
    for h in range(n_head):
        columns = slice(h * D, (h + 1) * D)
        q, k, v = (x @ c_attn_w[:, i * C :][:, columns] + c_attn_b[i * C :][columns] for i in range(3))
        pattern = torch.softmax(q @ k.transpose(1, 2) / D**0.5, dim=-1)
        out = out + pattern @ v @ c_proj_w[columns]
    return out


# %% right: online softmax over blocks of keys
def attention(q, k, v):
    largest = torch.full(q.shape[:3], -float("inf"), dtype=q.dtype, device=q.device)
    total = torch.zeros_like(largest)
    z = torch.zeros(*q.shape[:3], v.shape[-1], dtype=q.dtype, device=q.device)
    for start in range(0, k.shape[2], 2):
        scores = attention_scores(q, k[:, :, start : start + 2])
        new = torch.maximum(largest, scores.amax(-1))
        weights, shrink = torch.exp(scores - new.unsqueeze(-1)), torch.exp(largest - new)
        total = total * shrink + weights.sum(-1)
        z = z * shrink.unsqueeze(-1) + weights @ v[:, :, start : start + 2]
        largest = new
    return z / total.unsqueeze(-1)
