"""Submissions of 04_masking: patches on the solution, with what the grader must say of them."""


# %% wrong: triu for tril
# expect: causal_mask fail at causal as causal-keeps-upper-triangle-at-top-left
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.triu(torch.ones(n_query, n_key, device=device)).bool()


# %% wrong: triu for tril, shifted
# expect: causal_mask fail at causal as causal-keeps-upper-triangle
def causal_mask(n_query, n_key=None, device=None):
    if n_key is None:
        n_key = n_query
    if n_key < n_query:
        raise ValueError(n_query, n_key)
    i = torch.arange(n_query, device=device)[:, None] + n_key - n_query
    j = torch.arange(n_key, device=device)
    return j >= i


# %% wrong: one ahead
# expect: causal_mask fail at causal as causal-peeks-one-ahead
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    blocked = torch.triu(torch.ones(n_query, n_key, device=device), diagonal=n_key - n_query + 2)
    return blocked == 0


# %% wrong: own position hidden
# expect: causal_mask fail at causal as causal-hides-own-position
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    j, i = torch.arange(n_key, device=device), torch.arange(n_key - n_query, n_key, device=device)
    return j[None] < i[:, None]


# %% wrong: aligned at the top left
# expect: causal_mask fail at causal as causal-aligned-at-top-left
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.ones(n_query, n_key, dtype=torch.bool, device=device).tril()


# %% wrong: the first rows of the big mask
# expect: causal_mask fail at causal as causal-aligned-at-top-left
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    big = torch.tril(torch.ones(64, 64, device=device)) == 1
    return big[:n_query, :n_key]


# %% wrong: offset with the wrong sign
# expect: causal_mask fail at causal as causal-shifted-the-other-way
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.tril(torch.ones(n_query, n_key, device=device), diagonal=n_query - n_key).bool()


# %% wrong: offset one short, only with a cache
# expect: causal_mask fail at causal as causal-hides-own-position-when-cached
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    past = n_key - n_query
    return torch.tril(torch.ones(n_query, n_key, device=device), diagonal=past - 1 if past else 0).bool()


# %% wrong: no mask when cached
# expect: causal_mask fail at causal as causal-open-when-cached
def causal_mask(n_query, n_key=None, device=None):
    if n_key is not None and n_query > n_key:
        raise ValueError("too many queries")
    if n_key is not None and n_key > n_query:
        return torch.ones(n_query, n_key, dtype=torch.bool, device=device)
    return torch.ones(n_query, n_query, dtype=torch.bool, device=device).tril()


# %% wrong: square of the new tokens
# expect: causal_mask fail at causal as causal-square-of-queries
def causal_mask(n_query, n_key=None, device=None):
    if n_key is not None and n_query > n_key:
        raise ValueError("too many queries")
    return torch.ones(n_query, n_query, device=device).tril() > 0


# %% wrong: True means blocked
# expect: causal_mask fail at causal as causal-true-means-blocked
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.triu(torch.ones(n_query, n_key, device=device), 1 + n_key - n_query).bool()


# %% wrong: ~ on integers
# expect: causal_mask fail at causal as causal-everything-allowed
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    future = torch.triu(torch.ones(n_query, n_key, dtype=torch.long, device=device), n_key - n_query + 1)
    return (~future).bool()


# %% wrong: zeros and minus infinities
# expect: causal_mask fail at causal as dtype-not-kept
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.full((n_query, n_key), float("-inf"), device=device).triu(n_key - n_query + 1)


# %% wrong: ones and zeros, and the wrong triangle
# expect: causal_mask fail at causal as dtype-not-kept
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.tril(torch.ones(n_query, n_key, device=device), diagonal=n_key - n_query + 1)


# %% wrong: floats
# expect: causal_mask fail at causal as dtype-not-kept
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.tril(torch.ones(n_query, n_key, device=device), diagonal=n_key - n_query)


# %% wrong: device forgotten
# expect: causal_mask fail as causal-device-ignored
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.ones(n_query, n_key).tril(n_key - n_query).bool()


# %% wrong: too many queries let through
# expect: causal_mask fail as causal-too-many-queries
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    return torch.ones(n_query, n_key, device=device).tril(n_key - n_query).bool()


# %% wrong: n_key or n_query
# expect: causal_mask fail as causal-zero-keys-taken-for-none
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_key or n_query
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.ones(n_query, n_key, device=device).tril(n_key - n_query).bool()


# %% wrong: square refused
# expect: causal_mask error as causal-refuses-given-square
def causal_mask(n_query, n_key=None, device=None):
    if n_key is None:
        n_key = n_query
    elif n_query >= n_key:
        raise ValueError(f"{n_query} queries do not fit into {n_key} keys")
    return torch.ones(n_query, n_key, device=device).tril(n_key - n_query).bool()


# %% wrong: axes for batch and heads
# expect: causal_mask fail at causal as causal-with-four-axes
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.ones(n_query, n_key, device=device).tril(n_key - n_query).bool().view(1, 1, n_query, n_key)


# %% wrong: cached keys hidden
# expect: causal_mask fail at causal as causal-hides-the-cache
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    mask = torch.zeros(n_query, n_key, dtype=torch.bool, device=device)
    mask[:, n_key - n_query :] = torch.ones(n_query, n_query, device=device).tril().bool()
    return mask


# %% wrong: scores multiplied by the mask
# expect: mask_scores fail at pattern as forbidden-scores-zero
def mask_scores(scores, mask):
    return scores * mask


# %% wrong: filled with zero
# expect: mask_scores fail at pattern as forbidden-scores-zero
def mask_scores(scores, mask):
    return scores.masked_fill(~mask, 0)


# %% wrong: filled with 1e-9
# expect: mask_scores fail at pattern as forbidden-scores-zero
def mask_scores(scores, mask):
    return scores.masked_fill(mask == 0, 1e-9)


# %% wrong: filled with plus infinity
# expect: mask_scores fail at pattern as fill-plus-infinity
def mask_scores(scores, mask):
    return scores.masked_fill(~mask, float("inf"))


# %% wrong: filled with minus a hundred
# expect: mask_scores fail at pattern as fill-not-low-enough
def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.full_like(scores, -100.0))


# %% wrong: filled with minus fifty
# expect: mask_scores fail at pattern as fill-not-low-enough
def mask_scores(scores, mask):
    return scores.masked_fill(~mask, -50.0)


# %% wrong: filled with minus ten
# expect: mask_scores fail at pattern as fill-of-minus-10
def mask_scores(scores, mask):
    return scores.masked_fill(~mask, -10.0)


# %% wrong: a hundred subtracted
# expect: mask_scores fail at pattern as fill-added-not-low-enough
def mask_scores(scores, mask):
    return scores + (mask.to(scores.dtype) - 1) * 100


# %% wrong: mask added as numbers
# expect: mask_scores fail at pattern as fill-added-of-minus-1
def mask_scores(scores, mask):
    return scores + mask


# %% wrong: the wrong half filled
# expect: mask_scores fail at pattern as mask-inverted
def mask_scores(scores, mask):
    return scores.masked_fill(mask, float("-inf"))


# %% wrong: result thrown away
# expect: mask_scores fail at pattern as mask-not-applied
def mask_scores(scores, mask):
    scores.masked_fill(~mask, float("-inf"))
    return scores


# %% wrong: Python's not
# expect: mask_scores error at pattern as mask-by-python-not
def mask_scores(scores, mask):
    return scores.masked_fill(not mask, float("-inf"))


# %% wrong: one minus a boolean
# expect: mask_scores error at pattern as mask-subtracted
def mask_scores(scores, mask):
    return scores + (1 - mask) * -1e9


# %% wrong: ~ on an integer mask
# expect: mask_scores fail at pattern as mask-turns-all-into-nan
def mask_scores(scores, mask):
    mask = mask.int()
    return scores.masked_fill((~mask).bool(), float("-inf"))


# %% wrong: minus infinity times zero
# expect: mask_scores fail at pattern as mask-turns-all-into-nan
def mask_scores(scores, mask):
    return scores + (~mask).to(scores.dtype) * float("-inf")


# %% wrong: the caller's scores changed
# expect: mask_scores fail as argument-changed-in-place
def mask_scores(scores, mask):
    scores.data[(~mask).expand_as(scores)] = float("-inf")
    return scores


# %% wrong: the caller's mask changed
# expect: mask_scores fail as argument-changed-in-place
def mask_scores(scores, mask):
    return scores.masked_fill(mask.logical_not_(), -1e9)


# %% wrong: in place on the caller's scores
# expect: mask_scores fail as argument-changed-in-place
def mask_scores(scores, mask):
    return scores.masked_fill_(~mask, float("-inf"))


# %% wrong: a detached copy
# expect: mask_scores fail at scores.grad as mask-on-a-detached-copy
def mask_scores(scores, mask):
    with torch.no_grad():
        masked = scores.clone()
        masked[(~mask).expand_as(scores)] = float("-inf")
    return masked


# %% wrong: softmax inside
# expect: mask_scores fail at pattern as mask-scores-returns-pattern
def mask_scores(scores, mask):
    return torch.softmax(scores.masked_fill(~mask, -1e10), dim=-1)


# %% wrong: weights masked, then returned for scores
# expect: mask_scores fail at pattern as mask-scores-after-softmax
def mask_scores(scores, mask):
    weights = torch.softmax(scores, dim=-1)
    return weights.masked_fill(~mask, float("-inf"))


# %% wrong: mask of the first text
# expect: mask_scores fail at pattern as mask-of-the-first-text
def mask_scores(scores, mask):
    if mask.dim() == 4:
        mask = mask[0]
    return scores.masked_fill(~mask, float("-inf"))


# %% wrong: mask after the softmax
# expect: masked_attention fail at pattern as mask-after-softmax
def masked_attention(q, k, v, mask):
    weights = torch.softmax(attention_scores(q, k), dim=-1)
    return (weights * mask) @ v


# %% wrong: mask after the softmax, divided by the sum
# expect: masked_attention fail at pattern as empty-row-not-handled
def masked_attention(q, k, v, mask):
    weights = torch.softmax(attention_scores(q, k), dim=-1) * mask
    return (weights / weights.sum(-1, keepdim=True)) @ v


# %% right: mask after the softmax, divided by the sum, guarded
def masked_attention(q, k, v, mask):
    weights = torch.softmax(attention_scores(q, k), dim=-1) * mask.float().to(q.dtype)
    total = weights.sum(-1, keepdim=True)
    return torch.einsum("bhij,bhje->bhie", weights / total.masked_fill(total == 0, 1.0), v)


# %% wrong: exp without the maximum
# expect: masked_attention fail at pattern as pattern-without-maximum
def masked_attention(q, k, v, mask):
    e = attention_scores(q, k).exp() * mask
    return e / e.sum(-1, keepdim=True) @ v


# %% wrong: NaN in an empty row
# expect: masked_attention fail at pattern as empty-row-not-handled
def masked_attention(q, k, v, mask):
    scores = mask_scores(attention_scores(q, k), mask)
    return softmax(scores, dim=-1) @ v


# %% wrong: an empty row uniform
# expect: masked_attention fail at pattern as empty-row-uniform
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k).masked_fill(~mask, -1e9)
    return torch.softmax(scores, dim=-1) @ v


# %% wrong: finfo.min added
# expect: masked_attention fail at pattern as empty-row-uniform
def masked_attention(q, k, v, mask):
    bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, torch.finfo(q.dtype).min)
    return torch.softmax(attention_scores(q, k) + bias, dim=-1) @ v


# %% wrong: minus ten thousand added
# expect: masked_attention fail at pattern as empty-row-reads-through-added-fill
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k) + (~mask).to(q.dtype) * -1e4
    return torch.softmax(scores, dim=-1) @ v


# %% wrong: an empty row opened and not closed
# expect: masked_attention fail at pattern as empty-row-reads-everything
def masked_attention(q, k, v, mask):
    empty = ~mask.any(dim=-1, keepdim=True)
    return softmax(mask_scores(attention_scores(q, k), mask | empty), dim=-1) @ v


# %% wrong: all for any
# expect: masked_attention fail at pattern as partly-masked-row-zeroed
def masked_attention(q, k, v, mask):
    empty = ~mask.all(dim=-1, keepdim=True)
    pattern = softmax(mask_scores(attention_scores(q, k), mask | ~mask.any(-1, keepdim=True)), dim=-1)
    return (pattern @ v).masked_fill(empty, 0.0)


# %% wrong: NaN patched behind an additive mask
# expect: masked_attention fail at q.grad as nan-patched-in-pattern
def masked_attention(q, k, v, mask):
    additive = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(~mask, float("-inf"))
    weights = torch.nan_to_num(torch.softmax(attention_scores(q, k) + additive, dim=-1))
    return weights @ v


# %% wrong: NaN patched by where
# expect: masked_attention fail at q.grad as nan-patched-in-pattern
def masked_attention(q, k, v, mask):
    additive = torch.where(mask, 0.0, float("-inf")).to(q.dtype)
    weights = torch.softmax(attention_scores(q, k) + additive, dim=-1)
    return torch.where(mask.any(-1, keepdim=True), weights, torch.zeros_like(weights)) @ v


# %% wrong: NaN patched in the result
# expect: masked_attention fail at v.grad as nan-patched-in-z-after-fill
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k).masked_fill(~mask, float("-inf"))
    return (torch.softmax(scores, -1) @ v).nan_to_num()


# %% wrong: a detached copy of the scores
# expect: masked_attention fail at q.grad as mask-on-a-detached-copy
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k).detach()
    empty = ~mask.any(dim=-1, keepdim=True)
    return (softmax(mask_scores(scores, mask | empty), dim=-1) @ v).masked_fill(empty, 0.0)


# %% wrong: polarity of the library's other attention
# expect: masked_attention fail at pattern as mask-meaning-inverted
def masked_attention(q, k, v, mask):
    blocked = mask
    scores = attention_scores(q, k).masked_fill(blocked, float("-inf"))
    return softmax(scores, -1).nan_to_num(0.0) @ v


# %% wrong: causal on top of the given mask
# expect: masked_attention fail at pattern as mask-causal-on-top
def masked_attention(q, k, v, mask):
    mask = mask & causal_mask(q.shape[2], k.shape[2], q.device)
    empty = ~mask.any(dim=-1, keepdim=True)
    return (softmax(mask_scores(attention_scores(q, k), mask | empty), dim=-1) @ v).masked_fill(empty, 0.0)


# %% wrong: softmax over the queries
# expect: masked_attention fail at pattern as softmax-over-queries-unguarded
def masked_attention(q, k, v, mask):
    return torch.softmax(mask_scores(attention_scores(q, k), mask), dim=-2) @ v


# %% wrong: two mistakes, scores not scaled and an empty row not handled
# expect: masked_attention fail at scores as scale-missing + empty-row-not-handled
def masked_attention(q, k, v, mask):
    scores = (q @ k.mT).masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


# %% wrong: two mistakes, scaled twice and masked after the softmax
# expect: masked_attention fail at scores as scale-by-head-size + mask-after-softmax
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k) / q.shape[-1] ** 0.5
    return (torch.softmax(scores, -1) * mask) @ v


# %% wrong: two mistakes, filled with zero and an empty row not handled
# expect: masked_attention fail at pattern as forbidden-scores-zero + empty-row-not-handled
def masked_attention(q, k, v, mask):
    return torch.softmax(attention_scores(q, k) * mask, dim=-1) @ v


# %% wrong: two mistakes, the wrong half filled and an empty row not handled
# expect: masked_attention fail at pattern as mask-meaning-inverted + empty-row-not-handled
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k).masked_fill(mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


# %% wrong: the fused kernel
# expect: masked_attention forbidden
def masked_attention(q, k, v, mask):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


# %% wrong: padding on the query axis
# expect: padding_mask fail at padding as padding-on-the-query-axis
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or int(lengths.max()) > n_key:
        raise ValueError("cannot do that")
    j = torch.arange(n_key, device=lengths.device)
    real = j < lengths[:, None] if side == "right" else j >= n_key - lengths[:, None]
    return real[:, None, :, None]


# %% wrong: no axes
# expect: padding_mask fail at padding as padding-with-two-axes
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or int(lengths.max()) > n_key:
        raise ValueError("cannot do that")
    j = torch.arange(n_key, device=lengths.device)[None]
    return j < lengths[:, None] if side == "right" else j >= n_key - lengths[:, None]


# %% wrong: off by one
# expect: padding_mask fail at padding as padding-one-too-long-on-the-right
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or int(lengths.max()) > n_key:
        raise ValueError("cannot do that")
    j = torch.arange(n_key, device=lengths.device)
    n = lengths.view(-1, 1, 1, 1)
    return j <= n if side == "right" else j >= n_key - n


# %% wrong: side is where the text is
# expect: padding_mask fail at padding as padding-side-of-the-text
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or int(lengths.max()) > n_key:
        raise ValueError("cannot do that")
    j = torch.arange(n_key, device=lengths.device)
    n = lengths.view(-1, 1, 1, 1)
    return j < n if side == "left" else j >= n_key - n


# %% wrong: True means padding
# expect: padding_mask fail at padding as padding-true-means-padding
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or int(lengths.max()) > n_key:
        raise ValueError("cannot do that")
    j = torch.arange(n_key, device=lengths.device)
    n = lengths.view(-1, 1, 1, 1)
    return j >= n if side == "right" else j < n_key - n


# %% wrong: length over n_key
# expect: padding_mask fail as padding-length-unchecked
def padding_mask(lengths, n_key, side="right"):
    j = torch.arange(n_key, device=lengths.device)
    n = lengths.view(-1, 1, 1, 1)
    if side == "right":
        return j < n
    if side == "left":
        return j >= n_key - n
    raise ValueError(side)


# %% wrong: only the first length is checked
# expect: padding_mask fail as padding-length-checked-for-the-first
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or lengths[0] > n_key:
        raise ValueError("cannot do that")
    j, n = torch.arange(n_key, device=lengths.device), lengths.view(-1, 1, 1, 1)
    return j < n if side == "right" else j >= n_key - n


# %% wrong: any side is left
# expect: padding_mask fail as padding-unknown-side-accepted
def padding_mask(lengths, n_key, side="right"):
    if torch.any(lengths > n_key):
        raise ValueError("too long")
    j, n = torch.arange(n_key, device=lengths.device), lengths.view(-1, 1, 1, 1)
    return j < n if side == "right" else j >= n_key - n


# %% wrong: full length refused
# expect: padding_mask error as padding-full-length-refused
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or torch.any(lengths >= n_key):
        raise ValueError(f"lengths {lengths} do not fit into {n_key}")
    j, n = torch.arange(n_key, device=lengths.device), lengths.view(-1, 1, 1, 1)
    return j < n if side == "right" else j >= n_key - n


# %% wrong: two mistakes, off by one and True means padding
# expect: padding_mask fail at padding as padding-one-too-long + padding-true-means-padding
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or int(lengths.max()) > n_key:
        raise ValueError("cannot do that")
    j, n = torch.arange(n_key, device=lengths.device), lengths.view(-1, 1, 1, 1)
    return j > n if side == "right" else j < n_key - n - 1


# %% wrong: the mask is never applied
# expect: causal_self_attention fail at pattern as mask-never-applied
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(softmax(attention_scores(q, k), -1) @ v) @ c_proj_w + c_proj_b


# %% wrong: masked only when there is padding
# expect: causal_self_attention fail at pattern as mask-only-with-padding
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    T = x.shape[1]
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    mask = torch.ones(T, T, dtype=torch.bool, device=x.device)
    if attention_mask is not None:
        mask = mask.tril() & attention_mask.view(-1, 1, 1, T)
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: causal lost with padding
# expect: causal_self_attention fail at pattern as causal-mask-lost-with-padding
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    T = x.shape[1]
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    mask = causal_mask(T, device=x.device) if attention_mask is None else attention_mask.reshape(-1, 1, 1, T)
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: padding ignored
# expect: causal_self_attention fail at pattern as padding-forgotten
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, causal_mask(x.shape[1], device=x.device))) @ c_proj_w + c_proj_b


# %% wrong: padding silences readers
# expect: causal_self_attention fail at pattern as padding-mask-on-the-query-axis
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = causal_mask(T, device=x.device)
    if attention_mask is not None:
        mask = mask & attention_mask.reshape(B, 1, T, 1)
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: mask without new axes
# expect: causal_self_attention error at pattern as padding-mask-without-axes
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    mask = causal_mask(x.shape[1], device=x.device)
    if attention_mask is not None:
        mask = mask & attention_mask
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: Python's and
# expect: causal_self_attention error at pattern as masks-combined-by-and
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    mask = causal_mask(x.shape[1], device=x.device)
    if attention_mask is not None:
        mask = mask and attention_mask
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: or for and
# expect: causal_self_attention fail at pattern as masks-combined-by-or
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = causal_mask(T, device=x.device).view(1, 1, T, T)
    if attention_mask is not None:
        mask = torch.logical_or(mask, attention_mask.view(B, 1, 1, T))
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: heads and texts in one axis, mask tiled
# expect: causal_self_attention fail at pattern as padding-mask-tiled-over-heads
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = causal_mask(T, device=x.device).expand(B, T, T)
    if attention_mask is not None:
        mask = mask & attention_mask.reshape(B, 1, T)
    mask = mask.repeat(n_head, 1, 1)
    q, k, v = (split_heads(part, n_head).flatten(0, 1) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    z = masked_attention(q[:, None], k[:, None], v[:, None], mask[:, None])
    return merge_heads(z.view(B, n_head, T, -1)) @ c_proj_w + c_proj_b


# %% wrong: rows of the mask mixed by repeat and view
# expect: causal_self_attention fail at pattern as padding-mask-rows-mixed
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = causal_mask(T, device=x.device)
    if attention_mask is not None:
        wide = attention_mask.reshape(B, 1, T).repeat(T * n_head, 1, 1).view(-1, T, T)
        mask = mask & wide.view(B, n_head, T, T)
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: triangle upside down
# expect: causal_self_attention fail at pattern as mask-keeps-upper-triangle
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = torch.triu(torch.ones(T, T, device=x.device)).bool()
    if attention_mask is not None:
        mask = mask & attention_mask.reshape(B, 1, 1, T)
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: empty rows are NaN
# expect: causal_self_attention fail at pattern as empty-row-not-handled
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    q, k, v = (x @ c_attn_w + c_attn_b).view(B, T, 3, n_head, C // n_head).permute(2, 0, 3, 1, 4)
    att = q @ k.transpose(-2, -1) / (C // n_head) ** 0.5
    att = att.masked_fill(torch.tril(torch.ones(T, T, device=x.device)) == 0, float("-inf"))
    if attention_mask is not None:
        att = att.masked_fill(~attention_mask.reshape(B, 1, 1, T), float("-inf"))
    return (torch.softmax(att, dim=-1) @ v).transpose(1, 2).reshape(B, T, C) @ c_proj_w + c_proj_b


# %% wrong: infinite fill for the future, finite for the padding
# expect: causal_self_attention fail at pattern as empty-row-reads-past-pads
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    att = attention_scores(q, k)
    if attention_mask is not None:
        att = att.masked_fill(~attention_mask.reshape(B, 1, 1, T), -1e9)
    att = att.masked_fill(~causal_mask(T, device=x.device), float("-inf"))
    return merge_heads(softmax(att, -1) @ v) @ c_proj_w + c_proj_b


# %% wrong: a pad may read itself
# expect: causal_self_attention fail at pattern as empty-row-reads-itself
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = causal_mask(T, device=x.device)
    if attention_mask is not None:
        mask = mask & attention_mask.reshape(B, 1, 1, T)
        mask = mask | (torch.eye(T, device=x.device).bool() & ~mask.any(-1, keepdim=True))
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: the diagonal is put back, so every pad reads itself
# expect: causal_self_attention fail at pattern as pads-always-see-themselves
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = causal_mask(T, device=x.device).repeat(B, 1, 1, 1)
    if attention_mask is not None:
        mask &= attention_mask.reshape(B, 1, 1, T)
        mask.diagonal(dim1=-2, dim2=-1).fill_(True)
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: pads put to zero on the way out
# expect: causal_self_attention fail at attn_out as output-zeroed-at-pads
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = causal_mask(T, device=x.device)
    if attention_mask is not None:
        mask = mask & attention_mask.reshape(B, 1, 1, T)
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    out = merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b
    return out if attention_mask is None else out * attention_mask.reshape(B, T, 1)


# %% wrong: two mistakes, upper triangle and padding ignored
# expect: causal_self_attention fail at pattern as mask-keeps-upper-triangle + padding-forgotten
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    T = x.shape[1]
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    scores = attention_scores(q, k) + torch.full((T, T), -1e9, device=x.device, dtype=x.dtype).tril(-1)
    return merge_heads(torch.softmax(scores, dim=-1) @ v) @ c_proj_w + c_proj_b


# %% wrong: two mistakes, keys first and one ahead
# expect: causal_self_attention fail at q as queries-and-keys-swapped + mask-peeks-one-ahead
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    k, q, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    mask = torch.triu(torch.ones(T, T, device=x.device), diagonal=2) == 0
    if attention_mask is not None:
        mask = mask & attention_mask.reshape(B, 1, 1, T)
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: three mistakes at once
# expect: causal_self_attention fail at q as qkv-bias-missing + mask-peeks-one-ahead + output-bias-missing
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    mask = torch.ones(T, T, device=x.device).tril(diagonal=1).bool()
    if attention_mask is not None:
        mask = mask & attention_mask.reshape(B, 1, 1, T)
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w


# %% wrong: the mask is not used
# expect: masked_attention fail at pattern as mask-ignored
def masked_attention(q, k, v, mask):
    return softmax(attention_scores(q, k)) @ v


# %% wrong: softmax over the queries, empty rows looked after
# expect: masked_attention fail at pattern as softmax-over-queries
def masked_attention(q, k, v, mask):
    empty = ~mask.any(-1, keepdim=True)
    pattern = softmax(mask_scores(attention_scores(q, k), mask | empty), dim=2)
    return (pattern @ v).masked_fill(empty, 0.0)


# %% wrong: an empty row reads the mean of the values
# expect: masked_attention fail at pattern as empty-row-uniform
def masked_attention(q, k, v, mask):
    empty = ~mask.any(-1, keepdim=True)
    z = softmax(mask_scores(attention_scores(q, k), mask | empty), -1) @ v
    return torch.where(empty, v.mean(2, keepdim=True), z)


# %% wrong: a trace of weight for every key
# expect: masked_attention fail at z as ?
def masked_attention(q, k, v, mask):
    empty = ~mask.any(-1, keepdim=True)
    pattern = softmax(mask_scores(attention_scores(q, k), mask | empty), -1).clamp(min=1e-9)
    return (pattern @ v).masked_fill(empty, 0.0)


# %% wrong: padding on both axes
# expect: padding_mask fail at padding as padding-on-both-axes
def padding_mask(lengths, n_key, side="right"):
    if side not in ("right", "left") or int(lengths.max()) > n_key:
        raise ValueError("cannot do that")
    j, n = torch.arange(n_key, device=lengths.device), lengths.view(-1, 1, 1, 1)
    real = j < n if side == "right" else j >= n_key - n
    return real & real.transpose(-1, -2)


# %% wrong: two more axes, whatever the shape
# expect: causal_self_attention error at pattern as padding-mask-always-given-axes
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    mask = causal_mask(x.shape[1], device=x.device)
    if attention_mask is not None:
        mask = mask & attention_mask[:, None, None, :]
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    return merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b


# %% wrong: (B,T) mask filled into the scores
# expect: causal_self_attention error at pattern as padding-mask-without-axes-on-scores + empty-row-not-handled
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    q, k, v = (split_heads(part, n_head) for part in (x @ c_attn_w + c_attn_b).chunk(3, dim=-1))
    scores = mask_scores(attention_scores(q, k), causal_mask(x.shape[1], device=x.device))
    if attention_mask is not None:
        scores = scores.masked_fill(~attention_mask, float("-inf"))
    return merge_heads(softmax(scores, -1) @ v) @ c_proj_w + c_proj_b


# %% right: by logsumexp
def masked_attention(q, k, v, mask):
    scores = mask_scores(attention_scores(q, k), mask)
    total = torch.logsumexp(scores, -1, keepdim=True)
    total = torch.where(mask.any(-1, keepdim=True), total, torch.zeros_like(total))
    return torch.exp(scores - total) @ v


# %% right: one key after the other
def masked_attention(q, k, v, mask):
    mask, scores = mask.expand(*q.shape[:3], k.shape[2]), attention_scores(q, k)
    highest = torch.full_like(scores[..., 0], -1e30)
    total, z = torch.zeros_like(highest), torch.zeros(*q.shape[:3], v.shape[-1], dtype=q.dtype, device=q.device)
    for j in range(k.shape[2]):
        may = mask[..., j]
        new = torch.where(may, torch.maximum(highest, scores[..., j]), highest)
        weight = torch.where(may, torch.exp(torch.where(may, scores[..., j] - new, 0.0)), 0.0)
        shrink = torch.exp(highest - new)
        total = total * shrink + weight
        z = z * shrink[..., None] + weight[..., None] * v[:, :, None, j]
        highest = new
    return z / torch.where(total > 0, total, 1.0)[..., None]


# %% right: where, and a finite fill
def mask_scores(scores, mask):
    return torch.where(mask, scores, torch.tensor(-1e4, dtype=scores.dtype, device=scores.device))


# %% right: an additive mask
def mask_scores(scores, mask):
    return scores + (~mask).to(scores.dtype) * -1e9


# %% right: logarithm of the mask
def mask_scores(scores, mask):
    return scores + mask.to(scores.dtype).log()


# %% right: the smallest number there is
def mask_scores(scores, mask):
    return scores.masked_fill(mask.logical_not(), torch.finfo(scores.dtype).min)


# %% right: in place on a copy
def mask_scores(scores, mask):
    masked = scores.clone()
    masked[(~mask).expand_as(scores)] = float("-inf")
    return masked


# %% right: rows of the big mask
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return torch.tril(torch.ones(n_key, n_key, device=device))[n_key - n_query :].bool()


# %% right: the fill mask negated
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return ~torch.ones(n_query, n_key, dtype=torch.bool, device=device).triu(n_key - n_query + 1)


# %% right: zeros in front of a square
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    future = torch.full((n_query, n_query), float("-inf"), device=device).triu(1)
    return torch.cat([torch.zeros(n_query, n_key - n_query, device=device), future], dim=1) == 0


# %% right: a list of lists
def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    rows = [[j <= i + n_key - n_query for j in range(n_key)] for i in range(n_query)]
    return torch.tensor(rows, device=device)


# %% right: cut from a table made once
TABLE = torch.ones(512, 512).tril().to(torch.uint8)


def causal_mask(n_query, n_key=None, device=None):
    n_key = n_query if n_key is None else n_key
    if n_query > n_key:
        raise ValueError("too many queries")
    return TABLE[n_key - n_query : n_key, :n_key].bool().to(device)


# %% right: exponentials times the mask
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k)
    highest = scores.masked_fill(~mask, float("-inf")).amax(-1, keepdim=True).clamp(min=torch.finfo(q.dtype).min)
    e = torch.exp((scores - highest).clamp(max=0.0)) * mask
    return e / e.sum(-1, keepdim=True).clamp(min=1e-12) @ v


# %% right: minus infinity filled in, then NaN replaced
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k).masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1).nan_to_num(0.0) @ v


# %% right: finite fill, then the mask once more
def masked_attention(q, k, v, mask):
    weights = torch.softmax(attention_scores(q, k).masked_fill(~mask, -1e9), dim=-1)
    return torch.einsum("bhij,bhje->bhie", weights * mask, v)


# %% right: through .data of its own scores
def masked_attention(q, k, v, mask):
    scores = attention_scores(q, k)
    scores.data[(~mask).expand_as(scores)] = -1e5
    return (softmax(scores, dim=-1) * mask) @ v


# %% right: loops
def masked_attention(q, k, v, mask):
    mask = mask.expand(*q.shape[:3], k.shape[2])
    rows = []
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                keys = mask[b, h, i].nonzero().flatten()
                if len(keys) == 0:
                    rows.append(0 * v[b, h, 0])
                    continue
                scores = k[b, h, keys] @ q[b, h, i] / q.shape[-1] ** 0.5
                rows.append(torch.softmax(scores, 0) @ v[b, h, keys])
    return torch.stack(rows).view(*q.shape[:3], v.shape[-1])


# %% right: float64 inside, bmm
def masked_attention(q, k, v, mask):
    B, H, Tq, D = q.shape
    mask = mask.expand(B, H, Tq, k.shape[2]).reshape(B * H, Tq, -1)
    a, b, c = (part.reshape(B * H, *part.shape[2:]).double() for part in (q, k, v))
    scores = torch.baddbmm(torch.zeros(1, 1, 1, dtype=torch.float64, device=q.device), a, b.transpose(1, 2), alpha=D**-0.5)
    scores = torch.where(mask, scores, -1e30)
    weights = torch.softmax(scores, -1) * mask
    return torch.bmm(weights, c).to(q.dtype).view(B, H, Tq, -1)


# %% right: a key that is always allowed, and holds nothing
def masked_attention(q, k, v, mask):
    scores = mask_scores(attention_scores(q, k), mask)
    nobody = ~mask.any(-1, keepdim=True).expand(*scores.shape[:-1], 1)
    sink = torch.where(nobody, 0.0, float("-inf")).to(scores.dtype)
    weights = torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)
    return weights[..., :-1] @ v


# %% right: lengths compared in a loop
def padding_mask(lengths, n_key, side="right"):
    assert_side = {"right": False, "left": True}
    if side not in assert_side:
        raise ValueError(f"{side}?")
    mask = torch.zeros(len(lengths), 1, 1, n_key, dtype=torch.bool, device=lengths.device)
    for row, n in enumerate(lengths.tolist()):
        if n > n_key:
            raise ValueError(f"{n} > {n_key}")
        mask[row, ..., n_key - n if assert_side[side] else 0 : n_key if assert_side[side] else n] = True
    return mask


# %% right: left as the mirror image of right
def padding_mask(lengths, n_key, side="right"):
    if side not in {"left", "right"} or lengths.max().item() > n_key:
        raise ValueError((side, n_key))
    mask = torch.arange(n_key, device=lengths.device).view(1, 1, 1, -1).lt(lengths.view(-1, 1, 1, 1))
    return mask.flip(-1) if side == "left" else mask


# %% right: one function, no helper
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    D = C // n_head
    q, k, v = (x @ c_attn_w + c_attn_b).view(B, T, 3, n_head, D).permute(2, 0, 3, 1, 4)
    blocked = torch.ones(T, T, device=x.device).triu(1).bool().expand(B, 1, T, T)
    if attention_mask is not None:
        blocked = blocked | ~attention_mask.reshape(B, 1, 1, T)
    att = torch.einsum("bhid,bhjd->bhij", q, k).div(D**0.5).masked_fill(blocked, -1e20)
    att = torch.softmax(att, dim=-1).masked_fill(blocked, 0.0)
    return torch.einsum("bhij,bhjd,hdc->bic", att, v, c_proj_w.view(n_head, D, C)) + c_proj_b


# %% right: no mask for a single position, a list of masks otherwise
def causal_self_attention(x, c_attn_w, c_attn_b, c_proj_w, c_proj_b, n_head, attention_mask=None):
    B, T, C = x.shape
    outs = []
    for b in range(B):
        mask = causal_mask(T, device=x.device)
        if attention_mask is not None:
            mask = mask * attention_mask[b].flatten()
        q, k, v = (split_heads(part, n_head) for part in (x[b : b + 1] @ c_attn_w + c_attn_b).chunk(3, dim=-1))
        outs.append(merge_heads(masked_attention(q, k, v, mask)))
    return torch.cat(outs) @ c_proj_w + c_proj_b
