"""Submissions of 12_gpt2: patches on the solution, with what the grader must say of them."""


# %% wrong: keys taken for queries
# expect: GPT2 fail at h0_q as qkv-order-kqv
class Attention(Attention):
    def forward(self, x, layer, cache):
        B, T, C = x.shape
        k, q, v = (x @ self.c_attn.weight + self.c_attn.bias).split(C, dim=2)
        q, k, v = (t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2) for t in (q, k, v))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        mask = causal_mask(T, k.shape[2], x.device)
        scores = (q @ k.mT / (C // self.n_head) ** 0.5).masked_fill(~mask, -torch.inf)
        y = scores.softmax(-1) @ v
        return y.transpose(1, 2).reshape(B, T, C) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: values first
# expect: GPT2 fail at h0_q as qkv-order-vkq
class Attention(Attention):
    def forward(self, x, layer, cache):
        v, k, q = (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1)
        q, k, v = (split_heads(t, self.n_head) for t in (q, k, v))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        mask = causal_mask(q.shape[2], k.shape[2], x.device)
        return merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: c_attn read head by head
# expect: GPT2 fail at h0_q as qkv-by-head
class Attention(Attention):
    def forward(self, x, layer, cache):
        B, T, C = x.shape
        qkv = x @ self.c_attn.weight + self.c_attn.bias
        q, k, v = qkv.view(B, T, self.n_head, 3, C // self.n_head).permute(3, 0, 2, 1, 4)
        if cache is not None:
            k, v = cache.append(layer, k, v)
        mask = causal_mask(T, k.shape[2], x.device)
        return merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: c_attn cut along its rows
# expect: GPT2 error at h0_q as weight-cut-along-rows
class Attention(Attention):
    def forward(self, x, layer, cache):
        wq, wk, wv = self.c_attn.weight.chunk(3, dim=0)
        q = x @ wq
        k = x @ wk
        v = x @ wv
        return merge_heads(split_heads(q, self.n_head) + split_heads(k, self.n_head) + split_heads(v, self.n_head))


# %% wrong: heads by a view alone
# expect: GPT2 fail at h0_q as heads-by-view
class Attention(Attention):
    def forward(self, x, layer, cache):
        B, T, C = x.shape
        q, k, v = (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1)
        q, k, v = (t.reshape(B, self.n_head, T, C // self.n_head) for t in (q, k, v))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        mask = causal_mask(T, k.shape[2], x.device)
        return merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: twelve heads, whatever the config says
# expect: GPT2 fail at h0_q as always-twelve-heads
class Attention(Attention):
    def __init__(self, config):
        super().__init__(config)
        self.n_head = 12


# %% wrong: scores of later layers scaled down
# expect: GPT2 fail at h1_scores as scores-scaled-by-layer
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 / (layer + 1.0)
        scores = scores.masked_fill(~causal_mask(q.shape[2], k.shape[2], x.device), float("-inf"))
        return merge_heads(torch.softmax(scores, -1) @ v) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: scaled by the width of the model
# expect: GPT2 fail at h0_scores as scores-scaled-by-width
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        scores = q @ k.transpose(-1, -2) * x.shape[-1] ** -0.5
        scores = scores.masked_fill(~causal_mask(q.shape[2], k.shape[2], x.device), float("-inf"))
        return merge_heads(torch.softmax(scores, -1) @ v) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: no mask once there is a cache
# expect: GPT2 fail at h0_pattern as mask-left-out-with-cache
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        return merge_heads(z) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: no mask behind cached positions
# expect: GPT2 fail at h0_pattern as mask-left-out-behind-cache
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        past = cache.length if cache is not None else 0
        if cache is not None:
            k, v = cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=past == 0)
        return merge_heads(z) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: the fused kernel's causal flag with a cache
# expect: GPT2 fail at h0_pattern as mask-aligned-at-start
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return merge_heads(z) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: causal flag for chunks, none for one id
# expect: GPT2 fail at h0_pattern as mask-aligned-at-start-in-chunks
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1)
        return merge_heads(z) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: what append returns is not used
# expect: GPT2 fail at h0_pattern as cached-keys-not-read
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return merge_heads(z) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: no causal mask at all
# expect: GPT2 fail at h0_pattern as mask-missing
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        return merge_heads(F.scaled_dot_product_attention(q, k, v)) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: every layer appends to layer 0
# expect: GPT2 error as every-layer-appends-to-the-first
class Block(Block):
    def forward(self, resid_pre, layer, cache):
        return super().forward(resid_pre, 0, cache)


# %% wrong: layers counted from 1 in the cache
# expect: GPT2 error as layers-counted-from-one
class Block(Block):
    def forward(self, resid_pre, layer, cache):
        return super().forward(resid_pre, layer + 1, cache)


# %% wrong: c_proj applied as if it were stored the other way round
# expect: GPT2 fail at h0_attn_out as attn-proj-turned
class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(q.shape[2], k.shape[2], x.device))
        return F.linear(merge_heads(z), self.c_proj.weight, self.c_proj.bias)


# %% wrong: norms after the sums
# expect: GPT2 fail at h0_q as norm-after-adding
class Block(Block):
    def forward(self, x, layer, cache):
        x = self.ln_1(x + self.attn(x, layer, cache))
        return self.ln_2(x + self.mlp(x))


# %% wrong: the stream goes on from its norm
# expect: GPT2 fail at h0_resid_mid as stream-goes-on-from-norm
class Block(Block):
    def forward(self, x, layer, cache):
        x = self.ln_1(x)
        x = x + self.attn(x, layer, cache)
        x = self.ln_2(x)
        return x + self.mlp(x)


# %% wrong: nothing is added to the stream
# expect: GPT2 fail at h0_resid_mid as stream-not-added
class Block(Block):
    def forward(self, x, layer, cache):
        return self.mlp(self.ln_2(self.attn(self.ln_1(x), layer, cache)))


# %% wrong: MLP beside attention
# expect: GPT2 fail at h0_ln_2 as mlp-beside-attention
class Block(Block):
    def forward(self, x, layer, cache):
        return x + self.attn(self.ln_1(x), layer, cache) + self.mlp(self.ln_2(x))


# %% wrong: ln_1 used twice
# expect: GPT2 fail at h0_ln_2 as same-norm-twice
class Block(Block):
    def forward(self, x, layer, cache):
        x = x + self.attn(self.ln_1(x), layer, cache)
        return x + self.mlp(self.ln_1(x))


# %% wrong: final norm made, but not called
# expect: GPT2 fail at ln_f as final-norm-missing
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = cache.length if cache is not None else 0
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("too long")
        x = embed(ids, self.wte.weight, self.wpe.weight, past)
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return unembed(x, self.wte.weight if self.config.tied else self.lm_head.weight)


# %% wrong: no final norm at all
# expect: GPT2 fail at parameters as final-norm-not-there
class GPT2(GPT2):
    def __init__(self, config):
        super().__init__(config)
        self.ln_f = nn.Identity()


# %% wrong: head copied from the table
# expect: GPT2 fail at parameters as tied-head-is-a-copy
class GPT2(GPT2):
    def __init__(self, config):
        super().__init__(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight.data.copy_(self.wte.weight.data)

    def forward(self, ids, cache=None):
        offset = 0 if cache is None else cache.length
        if offset + ids.shape[1] > self.config.n_ctx:
            raise ValueError(f"{offset + ids.shape[1]} positions, at most {self.config.n_ctx}")
        x = embed(ids, self.wte.weight, self.wpe.weight, offset)
        for layer, block in enumerate(self.h):
            x = block(x, layer, cache)
        return self.lm_head(self.ln_f(x))


# %% wrong: head with a bias
# expect: GPT2 fail at parameters as head-has-a-bias
class GPT2(GPT2):
    def __init__(self, config):
        super().__init__(config)
        head = nn.Linear(config.n_embd, config.vocab_size)
        head.weight = self.wte.weight if config.tied else self.lm_head.weight
        self.lm_head = head

    def forward(self, ids, cache=None):
        offset = 0 if cache is None else cache.length
        if offset + ids.shape[1] > self.config.n_ctx:
            raise ValueError(f"{offset + ids.shape[1]} positions, at most {self.config.n_ctx}")
        x = embed(ids, self.wte.weight, self.wpe.weight, offset)
        for layer, block in enumerate(self.h):
            x = block(x, layer, cache)
        return self.lm_head(self.ln_f(x))


# %% wrong: no biases on q, k and v
# expect: GPT2 fail at parameters as no-bias-on-qkv
class Attention(Attention):
    def __init__(self, config):
        super().__init__(config)
        self.c_attn.bias = None

    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(q.shape[2], k.shape[2], x.device))
        return merge_heads(z) @ self.c_proj.weight + self.c_proj.bias


# %% wrong: a position table of 1,024 rows
# expect: GPT2 fail at parameters as position-table-of-1024-rows
class GPT2(GPT2):
    def __init__(self, config):
        super().__init__(config)
        self.wpe = Table(1024, config.n_embd)


# %% wrong: rows of the tables as large as nn.Embedding makes them
# expect: GPT2 fail at near_uniform as fresh-model-is-sure
class GPT2(GPT2):
    def __init__(self, config):
        super().__init__(config)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_ctx, config.n_embd)
        if not config.tied:
            self.lm_head = nn.Embedding(config.vocab_size, config.n_embd)


# %% wrong: sizes not kept
# expect: GPT2 fail at kept_config as config-not-kept
class GPT2(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.cfg = config
        self.wte = Table(config.vocab_size, config.n_embd)
        self.wpe = Table(config.n_ctx, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = Norm(config)
        if not config.tied:
            self.lm_head = Table(config.vocab_size, config.n_embd)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, cache=None):
        offset = 0 if cache is None else cache.length
        if offset + ids.shape[1] > self.cfg.n_ctx:
            raise ValueError(f"{offset + ids.shape[1]} positions, at most {self.cfg.n_ctx}")
        x = embed(ids, self.wte.weight, self.wpe.weight, offset)
        for layer, block in enumerate(self.h):
            x = block(x, layer, cache)
        return self.ln_f(x) @ (self.wte.weight if self.cfg.tied else self.lm_head.weight).T


# %% wrong: names behind "transformer."
# expect: GPT2 fail at parameters as names-behind-a-prefix
class GPT2(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.transformer = nn.ModuleDict(
            {
                "wte": Table(config.vocab_size, config.n_embd),
                "wpe": Table(config.n_ctx, config.n_embd),
                "h": nn.ModuleList([Block(config) for _ in range(config.n_layer)]),
                "ln_f": Norm(config),
            }
        )
        if not config.tied:
            self.lm_head = Table(config.vocab_size, config.n_embd)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, cache=None):
        offset = 0 if cache is None else cache.length
        if offset + ids.shape[1] > self.config.n_ctx:
            raise ValueError(f"{offset + ids.shape[1]} positions, at most {self.config.n_ctx}")
        x = embed(ids, self.transformer.wte.weight, self.transformer.wpe.weight, offset)
        for layer, block in enumerate(self.transformer.h):
            x = block(x, layer, cache)
        return self.transformer.ln_f(x) @ (self.transformer.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: eps of the norms left at its default
# expect: GPT2 fail at h0_ln_1 as eps-left-at-default
class Norm(Norm):
    def forward(self, x):
        return layer_norm(x, self.weight, self.bias)


# %% wrong: exact GELU
# expect: GPT2 fail at h0_mlp_post as gelu-exact
class MLP(MLP):
    def forward(self, x):
        h = F.gelu(x @ self.c_fc.weight + self.c_fc.bias)
        return h @ self.c_proj.weight + self.c_proj.bias


# %% wrong: positions start again behind the cache
# expect: GPT2 fail at pos_emb as positions-restart
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        T = ids.shape[1]
        if (cache.length if cache else 0) + T > self.config.n_ctx:
            raise ValueError(f"{T} positions do not fit")
        x = self.wte.weight[ids] + self.wpe.weight[torch.arange(T, device=ids.device)]
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: the offset counts the prompt twice
# expect: GPT2 fail at pos_emb as offset-counted-twice
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        T = ids.shape[1]
        past = 0 if cache is None else cache.length
        if past + T > self.config.n_ctx:
            raise ValueError(f"{T} positions do not fit")
        pos = torch.arange(past, past + T, device=ids.device) + past
        x = self.wte.weight[ids] + self.wpe.weight[pos]
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: positions from 1
# expect: GPT2 fail at pos_emb as positions-from-one
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        T = ids.shape[1]
        past = 0 if cache is None else cache.length
        if past + T > self.config.n_ctx:
            raise ValueError(f"{T} positions do not fit")
        x = F.embedding(ids, self.wte.weight) + F.embedding(torch.arange(1, T + 1) + past, self.wpe.weight)
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: positions looked up by token
# expect: GPT2 fail at pos_emb as positions-by-token
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("does not fit")
        x = self.wte.weight[ids] + self.wpe.weight[ids]
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: positions along the batch
# expect: GPT2 fail at pos_emb as positions-along-batch
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("does not fit")
        x = self.wte.weight[ids] + self.wpe.weight[torch.arange(len(ids))][:, None]
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: no position for an id behind the cache
# expect: GPT2 fail at pos_emb as no-position-behind-cache
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("does not fit")
        x = self.wte.weight[ids]
        if past == 0:
            x = x + self.wpe.weight[: ids.shape[1]]
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: the length of the context is not checked
# expect: GPT2 fail as context-not-checked
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        pos = torch.arange(past, past + ids.shape[1], device=ids.device)
        x = self.wte.weight[ids] + self.wpe.weight[pos]
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: only the new ids are held against the context
# expect: GPT2 fail as cached-positions-not-checked
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if ids.shape[1] > self.config.n_ctx:
            raise ValueError(f"{ids.shape[1]} ids for {self.config.n_ctx} positions")
        x = self.wte.weight[ids] + self.wpe.weight[past + torch.arange(ids.shape[1])]
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.ln_f(x) @ (self.wte.weight if self.config.tied else self.lm_head.weight).T


# %% wrong: a full context refused
# expect: GPT2 fail at full_context as full-context-refused
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] >= self.config.n_ctx:
            raise ValueError(f"{past + ids.shape[1]} positions for {self.config.n_ctx}")
        return super().forward(ids, cache)


# %% wrong: returns inside the loop
# expect: GPT2 fail at h1_ln_1 as only-first-layer
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("too long")
        x = embed(ids, self.wte.weight, self.wpe.weight, past)
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
            return unembed(self.ln_f(x), self.wte.weight if self.config.tied else self.lm_head.weight)


# %% wrong: the untied head is there, and not read
# expect: GPT2 fail at logits as untied-head-not-read
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("too long")
        x = embed(ids, self.wte.weight, self.wpe.weight, past)
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return unembed(self.ln_f(x), self.wte.weight)


# %% wrong: the model gives probabilities
# expect: GPT2 fail at logits as probabilities-for-logits
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        return super().forward(ids, cache).softmax(-1)


# %% wrong: logits of the last position alone
# expect: GPT2 fail at logits as logits-of-last-position-only
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        return super().forward(ids, cache)[:, -1:]


# %% wrong: no gradient
# expect: GPT2 fail at gradients as model-detached
class GPT2(GPT2):
    @torch.no_grad()
    def forward(self, ids, cache=None):
        return super().forward(ids, cache)


# %% wrong: the output table gets no gradient
# expect: GPT2 fail at gradients as head-detached
class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("too long")
        x = embed(ids, self.wte.weight, self.wpe.weight, past)
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        head = self.wte.weight if self.config.tied else self.lm_head.weight
        return self.ln_f(x) @ head.data.T


# %% wrong: positions start again, and values come first in c_attn
# expect: GPT2 fail at h0_q as positions-restart + qkv-order-vkq
class Attention(Attention):
    def forward(self, x, layer, cache):
        v, k, q = (split_heads(t, self.n_head) for t in (x @ self.c_attn.weight + self.c_attn.bias).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        mask = causal_mask(q.shape[2], k.shape[2], x.device)
        return merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)) @ self.c_proj.weight + self.c_proj.bias


class GPT2(GPT2):
    def forward(self, ids, cache=None):
        if (cache.length if cache else 0) + ids.shape[1] > self.config.n_ctx:
            raise ValueError("too long")
        x = embed(ids, self.wte.weight, self.wpe.weight)
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return unembed(self.ln_f(x), self.wte.weight if self.config.tied else self.lm_head.weight)


# %% wrong: the stream goes on from its norm, and eps is left at its default
# expect: GPT2 fail at h0_resid_mid as eps-left-at-default + stream-goes-on-from-norm
class Norm(Norm):
    def forward(self, x):
        return F.layer_norm(x, x.shape[-1:], self.weight, self.bias)


class Block(Block):
    def forward(self, x, layer, cache):
        x = self.ln_1(x)
        x = x + self.attn(x, layer, cache)
        x = self.ln_2(x)
        return x + self.mlp(x)


# %% wrong: exact GELU and the untied head not read
# expect: GPT2 fail at h0_mlp_post as gelu-exact + untied-head-not-read
class MLP(MLP):
    def forward(self, x):
        return F.gelu(x @ self.c_fc.weight + self.c_fc.bias) @ self.c_proj.weight + self.c_proj.bias


class GPT2(GPT2):
    def forward(self, ids, cache=None):
        past = 0 if cache is None else cache.length
        if past + ids.shape[1] > self.config.n_ctx:
            raise ValueError("too long")
        x = embed(ids, self.wte.weight, self.wpe.weight, past)
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return unembed(self.ln_f(x), self.wte.weight)


# %% wrong: turned where the shape does not fit
# expect: load_state fail at transposed as square-not-turned
def load_state(model, state_dict):
    own = {n: p for n, p in model.named_parameters()}
    report = LoadReport()
    sd = {}
    for n, t in state_dict.items():
        n = n[len("transformer.") :] if n.startswith("transformer.") else n
        if not n.endswith((".attn.bias", ".attn.masked_bias")):
            sd[n] = t
    if model.config.tied and "lm_head.weight" in sd and torch.equal(sd["lm_head.weight"], sd["wte.weight"]):
        sd.pop("lm_head.weight")
    report.missing = [n for n in own if n not in sd]
    for n, t in sd.items():
        if n not in own:
            report.unexpected.append(n)
        elif own[n].shape == t.shape:
            own[n].data.copy_(t)
        elif n.endswith(PROJECTIONS) and own[n].shape == t.mT.shape:
            own[n].data.copy_(t.mT)
            report.transposed.append(n)
        else:
            report.wrong_size.append(n)
    return report


# %% wrong: nn.Linear, turned where the shape does not fit
# expect: load_state fail at transposed as square-turned-for-nothing
class Projection(nn.Linear):
    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out)
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)


class Attention(Attention):
    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in self.c_attn(x).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        z = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(q.shape[2], k.shape[2], x.device))
        return self.c_proj(merge_heads(z))


class MLP(MLP):
    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


def load_state(model, state_dict):
    own = {n: p for n, p in model.named_parameters()}
    report = LoadReport()
    sd = {n.removeprefix("transformer."): t for n, t in state_dict.items()}
    sd = {n: t for n, t in sd.items() if not n.endswith((".attn.bias", ".attn.masked_bias"))}
    if model.config.tied and "lm_head.weight" in sd and torch.equal(sd["lm_head.weight"], sd["wte.weight"]):
        sd.pop("lm_head.weight")
    report.missing = [n for n in own if n not in sd]
    for n, t in sd.items():
        if n not in own:
            report.unexpected.append(n)
        elif own[n].shape == t.shape:
            own[n].data.copy_(t)
        elif n.endswith(PROJECTIONS) and own[n].shape == t.mT.shape:
            own[n].data.copy_(t.mT)
            report.transposed.append(n)
        else:
            report.wrong_size.append(n)
    return report


# %% wrong: square tables turned too
# expect: load_state fail at transposed as square-tables-turned
def load_state(model, state_dict):
    own = dict(model.named_parameters())
    sd = {plain_name(n): t for n, t in state_dict.items() if not n.endswith(BUFFERS)}
    if model.config.tied and "lm_head.weight" in sd and torch.equal(sd["lm_head.weight"], sd["wte.weight"]):
        del sd["lm_head.weight"]
    linear = sd["h.0.attn.c_attn.weight"].shape[0] > sd["h.0.attn.c_attn.weight"].shape[1]
    report = LoadReport(missing=[n for n in own if n not in sd])
    for n, t in sd.items():
        if n not in own:
            report.unexpected.append(n)
        elif linear and t.dim() == 2 and t.T.shape == own[n].shape:
            put(model, n, t.T)
            report.transposed.append(n)
        elif t.shape == own[n].shape:
            put(model, n, t)
        else:
            report.wrong_size.append(n)
    return report


# %% wrong: any matrix that fits when turned
# expect: load_state fail at transposed as any-fitting-matrix-turned
def load_state(model, state_dict):
    own = dict(model.named_parameters())
    report = LoadReport()
    sd = {n.removeprefix("transformer."): t for n, t in state_dict.items() if not n.endswith(BUFFERS)}
    if model.config.tied and "lm_head.weight" in sd and torch.equal(sd["lm_head.weight"], sd["wte.weight"]):
        del sd["lm_head.weight"]
    linear = any(n.endswith("c_attn.weight") and t.shape[0] > t.shape[1] for n, t in sd.items())
    with torch.no_grad():
        for n, t in sd.items():
            if n not in own:
                report.unexpected.append(n)
            elif linear and n.endswith("attn.c_proj.weight"):
                own[n].copy_(t.T)
                report.transposed.append(n)
            elif t.shape == own[n].shape:
                own[n].copy_(t)
            elif t.dim() == 2 and t.T.shape == own[n].shape:
                own[n].copy_(t.T)
                report.transposed.append(n)
            else:
                report.wrong_size.append(n)
    report.missing += [n for n in own if n not in sd]
    return report


# %% wrong: strict=False and an empty report
# expect: load_state fail
def load_state(model, state_dict):
    own = model.state_dict()
    fitting = {n: t for n, t in state_dict.items() if n in own and own[n].shape == t.shape}
    model.load_state_dict(fitting, strict=False)
    return LoadReport()


# %% wrong: the report is never looked at
# expect: from_pretrained fail as report-ignored
def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    model = GPT2(
        GPT2Config(
            config["n_layer"],
            config["n_head"],
            config["n_embd"],
            config["n_ctx"],
            config["vocab_size"],
            config["layer_norm_epsilon"],
            config["tie_word_embeddings"],
        )
    )
    load_state(model, tensors)
    return model


# %% wrong: only what is missing is refused
# expect: from_pretrained fail
def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    names = ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size", "layer_norm_epsilon", "tie_word_embeddings")
    model = GPT2(GPT2Config(*(config[name] for name in names)))
    report = load_state(model, tensors)
    if report.missing:
        raise ValueError(str(report))
    return model


# %% wrong: turned weights refused
# expect: from_pretrained error as transposed-refused
def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    names = ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size", "layer_norm_epsilon", "tie_word_embeddings")
    model = GPT2(GPT2Config(*(config[name] for name in names)))
    report = load_state(model, tensors)
    if report != LoadReport():
        raise ValueError(f"cannot load: {report}")
    return model


# %% wrong: eps not read from config.json
# expect: from_pretrained fail at sizes_read as eps-not-read
def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    sizes = {key: config[key] for key in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size")}
    model = GPT2(GPT2Config(**sizes, tied=config["tie_word_embeddings"]))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError(f"{report}")
    return model


# %% wrong: the error says nothing
# expect: from_pretrained fail at said as error-without-names
def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    sizes = {key: config[key] for key in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size")}
    model = GPT2(GPT2Config(**sizes, layer_norm_eps=config["layer_norm_epsilon"], tied=config["tie_word_embeddings"]))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError("the file does not fit")
    return model


# %% wrong: .bin files unpickled
# expect: from_pretrained fail at said as code-in-file-run
def from_pretrained(name_or_path):
    path = Path(name_or_path)
    folder = path if path.is_dir() else path.parent
    if (folder / "pytorch_model.bin").exists():
        import json

        config = json.loads((folder / "config.json").read_text())
        tensors = torch.load(folder / "pytorch_model.bin", weights_only=False)
    else:
        config, tensors = read_checkpoint(name_or_path)
    sizes = {key: config[key] for key in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size")}
    model = GPT2(GPT2Config(**sizes, layer_norm_eps=config["layer_norm_epsilon"], tied=config["tie_word_embeddings"]))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError(f"{name_or_path}: {report}")
    return model


# %% wrong: model built, loaded and forgotten
# expect: from_pretrained fail at sizes_read as model-not-returned
def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    sizes = {key: config[key] for key in ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size")}
    model = GPT2(GPT2Config(**sizes, layer_norm_eps=config["layer_norm_epsilon"], tied=config["tie_word_embeddings"]))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError(f"{name_or_path}: {report}")


# %% wrong: mask buffers reported
# expect: load_state fail at unexpected as masks-unexpected
# expect: from_pretrained pass
BUFFERS = (".no_such_thing",)


# %% wrong: the newer of the two buffers only
# expect: load_state fail at unexpected as masked-bias-unexpected
BUFFERS = (".attn.bias",)


# %% wrong: filter by "attn.bias" in the name
# expect: load_state fail at missing as qkv-bias-taken-for-mask
def load_state(model, state_dict):
    own = dict(model.named_parameters())
    given = {}
    for name, tensor in state_dict.items():
        if "attn.bias" in name or "masked_bias" in name:
            continue
        given[plain_name(name)] = tensor
    head = given.get("lm_head.weight")
    if model.config.tied and head is not None and torch.equal(head, given["wte.weight"]):
        given.pop("lm_head.weight")
    turned = stored_turned(own, given)
    report = LoadReport(missing=sorted(set(own) - set(given)))
    for name, tensor in given.items():
        t = tensor.T if turned and name.endswith(PROJECTIONS) else tensor
        if name not in own:
            report.unexpected.append(name)
        elif t.shape != own[name].shape:
            report.wrong_size.append(name)
        else:
            put(model, name, t)
            if t is not tensor:
                report.transposed.append(name)
    return report


# %% wrong: every bias of attention filtered
# expect: load_state fail at missing as attention-biases-taken-for-masks
def load_state(model, state_dict, _load=load_state):
    import re

    return _load(model, {n: t for n, t in state_dict.items() if not re.search(r"attn\..*bias$", n)})


# %% wrong: the tie is lost on loading
# expect: load_state fail at loaded as tie-lost
class GPT2(GPT2):
    def __init__(self, config):
        super().__init__(config)
        if config.tied:
            self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
            self.lm_head.weight = self.wte.weight

    def forward(self, ids, cache=None):
        offset = 0 if cache is None else cache.length
        if offset + ids.shape[1] > self.config.n_ctx:
            raise ValueError(f"{offset + ids.shape[1]} positions, at most {self.config.n_ctx}")
        x = embed(ids, self.wte.weight, self.wpe.weight, offset)
        for layer, block in enumerate(self.h):
            x = block(x, layer, cache)
        return F.linear(self.ln_f(x), self.lm_head.weight)


def put(model, name, tensor):
    owner = model.get_submodule(name.rpartition(".")[0])
    setattr(owner, name.rpartition(".")[2], nn.Parameter(tensor.float()))


# %% wrong: longer tables are cut
# expect: load_state fail at wrong_size as too-long-is-cut
def load_state(model, state_dict, _load=load_state):
    own = dict(model.named_parameters())
    cut = {}
    for name, tensor in state_dict.items():
        mine = own.get(plain_name(name))
        if mine is not None and tensor.dim() == mine.dim() and all(a >= b for a, b in zip(tensor.shape, mine.shape)):
            tensor = tensor[tuple(slice(n) for n in mine.shape)]
        cut[name] = tensor
    return _load(model, cut)


# %% wrong: a leading axis is squeezed away
# expect: load_state fail at wrong_size as extra-axis-dropped
def load_state(model, state_dict, _load=load_state):
    return _load(model, {name: t[0] if t.dim() == 3 and len(t) == 1 else t for name, t in state_dict.items()})


# %% wrong: copy_ decides what fits
# expect: load_state error as shapes-not-compared
def load_state(model, state_dict):
    own = dict(model.named_parameters())
    given = {plain_name(n): t for n, t in state_dict.items() if not n.endswith(BUFFERS)}
    head = given.get("lm_head.weight")
    if model.config.tied and head is not None and torch.equal(head, given["wte.weight"]):
        del given["lm_head.weight"]
    turned = stored_turned(own, given)
    report = LoadReport(missing=[n for n in own if n not in given])
    with torch.no_grad():
        for n, t in given.items():
            if n not in own:
                report.unexpected.append(n)
                continue
            if turned and n.endswith(PROJECTIONS):
                t = t.T
                report.transposed.append(n)
            own[n].copy_(t)
    return report


# %% wrong: layers sorted as text
# expect: load_state fail at loaded as layers-sorted-as-text
def load_state(model, state_dict, _load=load_state):
    layers = sorted({n.split("h.")[1].split(".")[0] for n in state_dict if ".h." in f".{n}"})
    renamed = {}
    for name, tensor in state_dict.items():
        if ".h." in f".{name}":
            head, tail = name.split("h.", 1)
            number, rest = tail.split(".", 1)
            renamed[f"{head}h.{layers.index(number)}.{rest}"] = tensor
        else:
            renamed[name] = tensor
    return _load(model, renamed)


# %% wrong: ln_1 and ln_2 exchanged by the map of names
# expect: load_state fail at loaded as norms-exchanged
def put(model, name, tensor):
    swap = {"ln_1": "ln_2", "ln_2": "ln_1"}
    name = ".".join(swap.get(part, part) for part in name.split("."))
    if model.get_parameter(name).is_meta:
        model.get_submodule(name.rpartition(".")[0]).register_parameter(name.rpartition(".")[2], nn.Parameter(tensor.float()))
    else:
        model.get_parameter(name).data.copy_(tensor)


# %% wrong: prefix not taken off
# expect: load_state fail at missing as prefix-kept
def plain_name(name):
    return name


# %% wrong: any head of a tied model accepted
# expect: load_state fail at unexpected as other-head-accepted
def load_state(model, state_dict, _load=load_state):
    if model.config.tied:
        state_dict = {n: t for n, t in state_dict.items() if n != "lm_head.weight"}
    return _load(model, state_dict)


# %% wrong: the head is taken for a stranger
# expect: load_state fail at unexpected as equal-head-unexpected
def load_state(model, state_dict, _load=load_state):
    report = _load(model, {n: t for n, t in state_dict.items() if not (model.config.tied and n == "lm_head.weight")})
    if model.config.tied and "lm_head.weight" in state_dict:
        report.unexpected.append("lm_head.weight")
    return report


# %% wrong: the caller's state dict is emptied
# expect: load_state fail as argument-changed-in-place
def load_state(model, state_dict, _load=load_state):
    for name in list(state_dict):
        if name.endswith((".attn.bias", ".attn.masked_bias")):
            state_dict.pop(name)
    return _load(model, state_dict)


# %% wrong: half precision stays half
# expect: load_state fail as dtype-not-kept
def put(model, name, tensor):
    owner = model.get_submodule(name.rpartition(".")[0])
    setattr(owner, name.rpartition(".")[2], nn.Parameter(tensor))


# %% wrong: masks kept, and wrong sizes called unexpected
# expect: load_state fail at unexpected as masks-unexpected + wrong-size-called-unexpected
BUFFERS = (".no_such_thing",)


def load_state(model, state_dict, _load=load_state):
    report = _load(model, state_dict)
    return LoadReport(report.missing, report.unexpected + report.wrong_size, report.transposed, [])


# %% wrong: a missing parameter is looked up
# expect: load_state error at unexpected as missing-raises
def load_state(model, state_dict):
    given = {plain_name(n): t for n, t in state_dict.items() if not n.endswith(BUFFERS)}
    own = dict(model.named_parameters())
    turned = stored_turned(own, given)
    report = LoadReport()
    for name, parameter in own.items():
        tensor = given.pop(name)
        turn = turned and name.endswith(PROJECTIONS)
        if (tensor.T if turn else tensor).shape == parameter.shape:
            put(model, name, tensor.T if turn else tensor)
            report.transposed += [name] if turn else []
        else:
            report.wrong_size.append(name)
    head = given.get("lm_head.weight")
    if head is not None and torch.equal(head, model.wte.weight):
        given.pop("lm_head.weight")
    report.unexpected = list(given)
    return report


# %% wrong: a wrong size raises
# expect: load_state error at unexpected as wrong-size-raises
def load_state(model, state_dict, _load=load_state):
    report = _load(model, state_dict)
    if report.wrong_size:
        raise ValueError(f"sizes differ: {report.wrong_size}")
    return report


# %% wrong: n_ctx and eps of GPT-2, whatever the file
# expect: from_pretrained error at sizes_read as sizes-not-read
def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    model = GPT2(GPT2Config(config["n_layer"], config["n_head"], config["n_embd"], vocab_size=config["vocab_size"]))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError(f"{name_or_path}: {report}")
    return model


# %% wrong: logits times temperature
# expect: next_token_probs fail at probs as temperature-multiplies
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    return _right(logits * temperature, 1.0, top_k, top_p) if temperature else _right(logits, 0)


# %% wrong: temperature applied twice
# expect: next_token_probs fail at probs as temperature-twice
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if temperature > 0:
        logits = logits / temperature
    return _right(logits, temperature, top_k, top_p)


# %% wrong: nucleus before temperature
# expect: next_token_probs fail at probs as top-p-before-temperature
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        out = torch.zeros_like(logits)
        return out.scatter_(-1, logits.argmax(-1, keepdim=True), 1.0)
    logits = logits.clone()
    if top_k is not None:
        kth = torch.topk(logits, top_k, dim=-1).values[..., -1:]
        logits[logits < kth] = -float("inf")
    if top_p is not None:
        p, idx = torch.softmax(logits, -1).sort(-1, descending=True)
        remove = p.cumsum(-1) - p >= top_p
        logits[remove.gather(-1, idx.argsort(-1))] = -float("inf")
    return torch.softmax(logits / temperature, -1)


# %% wrong: softmax of the softmax
# expect: next_token_probs fail at probs as softmax-twice
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    probs = _right(logits, temperature, top_k, top_p)
    return probs if temperature == 0 else torch.softmax(probs, dim=-1)


# %% wrong: one token too many for top_k
# expect: next_token_probs fail at probs as top-k-one-too-many
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.size(-1)).to(logits)
    x = logits / temperature
    order = x.argsort(-1, descending=True)
    rank = order.argsort(-1)
    if top_k is not None:
        x = x.masked_fill(rank > top_k, -torch.inf)
    if top_p is not None:
        probs = x.softmax(-1).gather(-1, order)
        keep = (probs.cumsum(-1) - probs < top_p).gather(-1, rank)
        x = x.masked_fill(~keep, -torch.inf)
    return x.softmax(-1)


# %% wrong: the threshold loses its axis
# expect: next_token_probs error at probs as top-k-threshold-without-axis
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if top_k is not None and temperature != 0:
        values, _ = torch.topk(logits / temperature, top_k, dim=-1)
        logits = logits.masked_fill(logits / temperature < values[..., -1], -torch.inf)
    return _right(logits, temperature, None, top_p)


# %% wrong: probabilities of the k best in their own order
# expect: next_token_probs fail at probs as only-k-probabilities
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if top_k is None or temperature == 0:
        return _right(logits, temperature, None, top_p)
    values = torch.topk(logits, top_k, dim=-1).values
    return _right(values, temperature, None, top_p)


# %% wrong: the crossing token is dropped
# expect: next_token_probs fail at probs as crossing-token-dropped
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if top_p is None or temperature == 0:
        return _right(logits, temperature, top_k)
    probs, idx = _right(logits, temperature, top_k).sort(-1, descending=True)
    probs = torch.where(probs.cumsum(-1) > top_p, 0.0, probs)
    probs = probs / probs.sum(-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, idx, probs)


# %% wrong: the crossing token is dropped, but one always stays
# expect: next_token_probs fail at probs as crossing-token-dropped-but-first
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if top_p is None or temperature == 0:
        return _right(logits, temperature, top_k)
    probs, idx = _right(logits, temperature, top_k).sort(-1, descending=True)
    drop = probs.cumsum(-1) > top_p
    drop[..., 0] = False
    probs = probs.masked_fill(drop, 0)
    return torch.zeros_like(probs).scatter(-1, idx, probs / probs.sum(-1, keepdim=True))


# %% wrong: 1 - p
# expect: next_token_probs fail at probs as top-p-complement
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    return _right(logits, temperature, top_k, None if top_p is None else 1 - top_p)


# %% wrong: the mask stays in sorted order
# expect: next_token_probs fail at probs as top-p-in-sorted-order
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if top_p is None or temperature == 0:
        return _right(logits, temperature, top_k)
    x = _right(logits, temperature, top_k)
    ordered = x.sort(-1, descending=True).values
    remove = ordered.cumsum(-1) - ordered >= top_p
    x = x.masked_fill(remove, 0)
    return x / x.sum(-1, keepdim=True)


# %% wrong: the mask is shifted onto itself
# expect: next_token_probs fail at probs as mask-shifted-onto-itself
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if top_p is None or temperature == 0:
        return _right(logits, temperature, top_k)
    probs, idx = _right(logits, temperature, top_k).sort(-1, descending=True)
    remove = probs.cumsum(-1) > top_p
    remove[..., 1:] = remove[..., :-1]
    remove[..., 0] = False
    probs = probs.masked_fill(remove, 0)
    return torch.zeros_like(probs).scatter(-1, idx, probs / probs.sum(-1, keepdim=True))


# %% wrong: top_p over what top_k left of the whole
# expect: next_token_probs fail at probs as top-p-not-renormalised-after-top-k
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if top_p is None or temperature == 0:
        return _right(logits, temperature, top_k)
    probs, idx = torch.softmax(logits / temperature, -1).sort(-1, descending=True)
    probs = torch.where(probs.cumsum(-1) - probs < top_p, probs, 0)
    if top_k is not None:
        probs[..., top_k:] = 0
    return torch.zeros_like(probs).scatter(-1, idx, probs / probs.sum(-1, keepdim=True))


# %% wrong: not made to sum to 1 again
# expect: next_token_probs fail at probs as probs-not-renormalised
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if temperature == 0:
        return _right(logits, 0)
    return torch.softmax(logits / temperature, -1) * (_right(logits, temperature, top_k, top_p) > 0)


# %% wrong: greedy as sampling at a tiny temperature
# expect: next_token_probs fail at probs as temperature-zero-is-tiny
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    return _right(logits, max(temperature, 1e-8), top_k, top_p)


# %% wrong: temperature 0 divides
# expect: next_token_probs fail at probs as temperature-zero-divides
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if temperature == 0:
        return torch.softmax(logits / temperature, dim=-1)
    return _right(logits, temperature, top_k, top_p)


# %% wrong: the filter writes into the logits
# expect: next_token_probs fail as argument-changed-in-place
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    if top_k is not None:
        kth = logits.topk(top_k, dim=-1).values[..., -1:]
        logits[logits < kth] = -torch.inf
    x = logits / temperature
    if top_p is not None:
        p, idx = x.softmax(-1).sort(-1, descending=True)
        remove = torch.zeros_like(p, dtype=torch.bool).scatter(-1, idx, p.cumsum(-1) - p >= top_p)
        x = x.masked_fill(remove, -torch.inf)
    return x.softmax(-1)


# %% wrong: exp without the largest logit taken off
# expect: next_token_probs fail at probs as probs-overflow
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if temperature == 0:
        return _right(logits, 0)
    e = torch.exp(logits / temperature) * (_right(logits, temperature, top_k, top_p) > 0)
    return e / e.sum(-1, keepdim=True)


# %% wrong: temperature multiplied and the crossing token dropped
# expect: next_token_probs fail at probs as temperature-multiplies + crossing-token-dropped
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    if temperature == 0:
        return _right(logits, 0)
    probs, idx = _right(logits * temperature, 1.0, top_k).sort(-1, descending=True)
    if top_p is not None:
        probs = torch.where(probs.cumsum(-1) > top_p, 0.0, probs)
    probs = probs / probs.sum(-1, keepdim=True)
    return torch.zeros_like(probs).scatter(-1, idx, probs)


# %% wrong: one token too many for top_k, and top_p of the complement
# expect: next_token_probs fail at probs as top-k-one-too-many + top-p-complement
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    top_k = None if top_k is None else top_k + 1
    top_p = None if top_p is None else 1 - top_p
    return _right(logits, temperature, top_k, top_p)


# %% wrong: the first position read
# expect: generate fail at continued as first-position-read
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)
        else:
            logits = model(ids[:, -model.config.n_ctx :])
        probs = next_token_probs(logits[:, 0], temperature, top_k, top_p)
        new = torch.multinomial(probs, 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done = done | (new[:, 0] == stop_id)
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: the last row read in place of the last position
# expect: generate error
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    for _ in range(max_new_tokens):
        logits = model(ids[:, -model.config.n_ctx :])
        probs = next_token_probs(logits[-1], temperature, top_k, top_p)
        ids = torch.cat((ids, torch.multinomial(probs, 1, generator=generator)), dim=1)
    model.train(was)
    return ids


# %% wrong: the text is cropped to the context
# expect: generate fail at continued as text-cropped-to-context
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        fits = ids.shape[1] <= model.config.n_ctx and cache is not None
        ids = ids[:, -model.config.n_ctx :]
        if fits and cache.length < ids.shape[1]:
            logits = model(ids[:, cache.length :], cache)
        else:
            cache = None
            logits = model(ids)
        new = torch.multinomial(next_token_probs(logits[:, -1], temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: the cache goes on past the context
# expect: generate error as context-not-cropped
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        logits = model(ids[:, cache.length :], cache) if use_cache else model(ids)
        new = torch.multinomial(next_token_probs(logits[:, -1], temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: softmax over the probabilities
# expect: generate fail at shares as softmax-over-probs
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)
        else:
            logits = model(ids[:, -model.config.n_ctx :])
        probs = next_token_probs(logits[:, -1], temperature, top_k, top_p)
        if temperature == 0:
            new = probs.argmax(-1, keepdim=True)
        else:
            new = torch.multinomial(torch.softmax(probs, -1), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: softmax over the probabilities, greedy too
# expect: generate fail at continued as softmax-over-probs-even-when-greedy
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None, _right=next_token_probs):
    return _right(logits, temperature, top_k, top_p)


@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)
        else:
            logits = model(ids[:, -model.config.n_ctx :])
        probs = next_token_probs(logits[:, -1], temperature, top_k, top_p)
        new = torch.multinomial(torch.softmax(probs, -1), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: multinomial fed with logits
# expect: generate fail at shares as logits-drawn-from
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)
        else:
            logits = model(ids[:, -model.config.n_ctx :])
        if temperature == 0:
            new = logits[:, -1].argmax(-1, keepdim=True)
        else:
            new = torch.multinomial(logits[:, -1], 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: places among the k best returned as tokens
# expect: generate fail at shares as rank-taken-for-token
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        if top_k is not None:
            logits = logits.topk(top_k).values
        new = torch.multinomial(next_token_probs(logits, temperature, None, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: seeded at every step
# expect: generate fail at shares as seeded-at-every-step
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    seed = 0 if generator is None else generator.initial_seed()
    for _ in range(max_new_tokens):
        generator = torch.Generator().manual_seed(seed)
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: evaluation mode forgotten
# expect: generate fail at continued as evaluation-mode-missing
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    return ids


# %% wrong: left in evaluation mode, and the generator ignored
# expect: generate fail at mode_after as left-in-evaluation-mode + generator-not-used
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    return ids


# %% wrong: ends only when all rows stop at one step
# expect: generate fail at continued as ends-only-together
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and (new == stop_id).all():
            break
    model.train(was)
    return ids


# %% wrong: finished is toggled
# expect: generate fail at continued as finished-toggles
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done = done ^ (new[:, 0] == stop_id)
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: finished rows go on
# expect: generate fail at continued as finished-rows-go-on
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None:
            done |= new[:, 0] == stop_id
            if done.all():
                break
    model.train(was)
    return ids


# %% wrong: stop looked for in the whole text
# expect: generate fail at continued as stop-in-prompt-ends-all
def generate(model, ids, *args, stop_id=None, _right=generate, **kwargs):
    if stop_id is not None and (ids == stop_id).any():
        return ids
    return _right(model, ids, *args, stop_id=stop_id, **kwargs)


# %% wrong: rows whose prompt holds the stop are finished
# expect: generate fail at continued as stop-looked-for-in-prompt
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[(ids == stop_id).any(dim=1)] = stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and (ids == stop_id).any(1).all():
            break
    model.train(was)
    return ids


# %% wrong: new tokens become new rows
# expect: generate error
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    for _ in range(max_new_tokens):
        probs = next_token_probs(model(ids[:, -model.config.n_ctx :])[:, -1], temperature, top_k, top_p)
        ids = torch.cat((ids, torch.multinomial(probs, 1, generator=generator)), dim=0)
    return ids


# %% wrong: the whole text goes to the cache each time
# expect: generate error as whole-text-fed-to-cache
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids, cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: the cache is not used
# expect: generate fail at work as cache-not-used
def generate(model, ids, max_new_tokens, *args, use_cache=True, _right=generate, **kwargs):
    return _right(model, ids, max_new_tokens, *args, use_cache=False, **kwargs)


# %% wrong: the prompt is left out
# expect: generate fail at continued as prompt-not-returned
def generate(model, ids, *args, _right=generate, **kwargs):
    return _right(model, ids, *args, **kwargs)[:, ids.shape[1] :]


# %% wrong: top_p not passed on, and one token too many
# expect: generate fail at continued as one-token-too-many + top-p-not-passed
def generate(model, ids, max_new_tokens, *args, top_p=None, _right=generate, **kwargs):
    return _right(model, ids, max_new_tokens + 1, *args, **kwargs)


# %% wrong: temperature divided out before the call
# expect: generate fail at shares as temperature-passed-twice
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, -model.config.n_ctx :])[:, -1]
        if temperature > 0:
            logits = logits / temperature
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        if stop_id is not None:
            new[done] = stop_id
            done |= new[:, 0] == stop_id
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None and done.all():
            break
    model.train(was)
    return ids


# %% wrong: first tokens kept past the context, finished rows go on
# expect: generate fail at continued as first-tokens-kept + finished-rows-go-on
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    done = torch.zeros(ids.shape[0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        if cache is not None and ids.shape[1] <= model.config.n_ctx:
            logits = model(ids[:, cache.length :], cache)[:, -1]
        else:
            logits = model(ids[:, : model.config.n_ctx])[:, -1]
        new = torch.multinomial(next_token_probs(logits, temperature, top_k, top_p), 1, generator=generator)
        ids = torch.cat((ids, new), dim=1)
        if stop_id is not None:
            done |= new[:, 0] == stop_id
            if done.all():
                break
    model.train(was)
    return ids


# %% right: nn.Linear inside, a flat state dict loader
class Projection(nn.Linear):
    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out)
        nn.init.normal_(self.weight, std=0.02)
        nn.init.zeros_(self.bias)


class Attention(Attention):
    def forward(self, x, layer, cache):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).view(B, T, 3, self.n_head, C // self.n_head).permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            k, v = cache.append(layer, k, v)
        past = k.shape[2] - T
        future = torch.ones(T, past + T, dtype=torch.bool, device=x.device).triu(past + 1)
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) * (C // self.n_head) ** -0.5
        pattern = scores.masked_fill(future, torch.finfo(scores.dtype).min).softmax(-1)
        return self.c_proj(torch.einsum("bhqk,bhkd->bqhd", pattern, v).reshape(B, T, C))


class MLP(MLP):
    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


def load_state(model, state_dict):
    own = dict(model.named_parameters())
    state = {}
    for name, tensor in state_dict.items():
        name = name.replace("transformer.", "", 1) if name.startswith("transformer.") else name
        if name.split(".")[-2:] in (["attn", "bias"], ["attn", "masked_bias"]):
            continue
        state[name] = tensor
    if model.config.tied and "lm_head.weight" in state:
        same = state["lm_head.weight"].shape == state["wte.weight"].shape
        if same and (state["lm_head.weight"] == state["wte.weight"]).all():
            state.pop("lm_head.weight")
    votes = [t.shape[0] < t.shape[1] for n, t in state.items() if n.endswith(("c_attn.weight", "c_fc.weight")) and t.dim() == 2]
    conv1d = sum(votes) * 2 > len(votes)
    report = LoadReport()
    for name in own.keys() - state.keys():
        report.missing.append(name)
    with torch.no_grad():
        for name, tensor in state.items():
            if name not in own:
                report.unexpected.append(name)
                continue
            turn = conv1d and name.endswith(("attn.c_attn.weight", "c_proj.weight", "c_fc.weight"))
            if turn:
                tensor = tensor.mT if tensor.dim() > 1 else tensor
            if tensor.shape != own[name].shape:
                report.wrong_size.append(name)
                continue
            own[name].copy_(tensor)
            if turn:
                report.transposed.append(name)
    return report


def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    names = ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size", "layer_norm_epsilon", "tie_word_embeddings")
    model = GPT2(GPT2Config(*(config[name] for name in names)))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError(f"{name_or_path}: {report}")
    return model


# %% right: nn.Embedding, nn.LayerNorm, nn.Linear tied to the table
class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_eps)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_eps)
        self.attn = Attention(config)
        self.mlp = nn.ModuleDict()
        self.mlp["c_fc"] = Projection(config.n_embd, 4 * config.n_embd)
        self.mlp["c_proj"] = Projection(4 * config.n_embd, config.n_embd)

    def forward(self, x, layer, cache):
        x = x + self.attn(self.ln_1(x), layer, cache)
        fc, proj = self.mlp["c_fc"], self.mlp["c_proj"]
        h = torch.addmm(fc.bias, self.ln_2(x).flatten(0, 1), fc.weight)
        h = torch.addmm(proj.bias, F.gelu(h, approximate="tanh"), proj.weight)
        return x + h.view(x.shape)


class GPT2(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_ctx, config.n_embd)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_eps)
        self.drop = nn.Dropout(0.1)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)
        if config.tied:
            self.lm_head.weight = self.wte.weight

    def forward(self, ids, cache=None):
        past = cache.length if cache is not None else 0
        end = past + ids.size(1)
        if end > self.config.n_ctx:
            raise ValueError(f"position {end - 1} is outside the context of {self.config.n_ctx}")
        x = self.drop(self.wte(ids) + self.wpe(torch.arange(past, end, device=ids.device)))
        for i, block in enumerate(self.h):
            x = block(x, i, cache)
        return self.lm_head(self.ln_f(x))


def load_state(model, state_dict, _load=load_state):
    tied = model.config.tied
    head = model._modules.pop("lm_head") if tied else None
    report = _load(model, state_dict)
    if tied:
        model.lm_head = head
        model.lm_head.weight = model.wte.weight
    return report


def from_pretrained(name_or_path):
    config, tensors = read_checkpoint(name_or_path)
    names = ("n_layer", "n_head", "n_embd", "n_ctx", "vocab_size", "layer_norm_epsilon", "tie_word_embeddings")
    model = GPT2(GPT2Config(*(config[name] for name in names)))
    report = load_state(model, tensors)
    if report.missing or report.unexpected or report.wrong_size:
        raise ValueError(f"{name_or_path}: {report}")
    return model


# %% right: heads in a loop, one row at a time, masks as additive numbers
class Attention(Attention):
    def forward(self, x, layer, cache):
        qkv = F.linear(x, self.c_attn.weight.T, self.c_attn.bias)
        C = x.shape[-1]
        q, k, v = qkv[..., :C], qkv[..., C : 2 * C], qkv[..., 2 * C :]
        q, k, v = (split_heads(t, self.n_head) for t in (q, k, v))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        past = k.shape[2] - q.shape[2]
        heads = []
        for h in range(self.n_head):
            rows = []
            for t in range(q.shape[2]):
                seen = past + t + 1
                w = torch.softmax((k[:, h, :seen] @ q[:, h, t].unsqueeze(-1)).squeeze(-1) / q.shape[-1] ** 0.5, dim=-1)
                rows.append((w.unsqueeze(1) @ v[:, h, :seen]).squeeze(1))
            heads.append(torch.stack(rows, dim=1))
        return torch.cat(heads, dim=-1) @ self.c_proj.weight + self.c_proj.bias


# %% right: plain parameters, persistent mask buffers, everything in float64 inside
class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        C = config.n_embd
        self.n_head = config.n_head
        self.c_attn, self.c_proj = nn.ParameterDict(), nn.ParameterDict()
        for layer, width in ((self.c_attn, 3 * C), (self.c_proj, C)):
            layer["weight"] = nn.Parameter(0.02 * torch.randn(C, width))
            layer["bias"] = nn.Parameter(torch.zeros(width))
        self.register_buffer("bias", torch.tril(torch.ones(1, 1, config.n_ctx, config.n_ctx)))

    def forward(self, x, layer, cache):
        q, k, v = (split_heads(t, self.n_head) for t in (x @ self.c_attn["weight"] + self.c_attn["bias"]).chunk(3, -1))
        if cache is not None:
            k, v = cache.append(layer, k, v)
        Tk, Tq = k.shape[2], q.shape[2]
        scores = q.double() @ k.double().mT / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.bias[:, :, Tk - Tq : Tk, :Tk] == 0, -1e10)
        z = (scores.softmax(-1) @ v.double()).to(x.dtype)
        return merge_heads(z) @ self.c_proj["weight"] + self.c_proj["bias"]


class GPT2(GPT2):
    def __init__(self, config):
        nn.Module.__init__(self)
        self.config = config
        self.wte = Table(config.vocab_size, config.n_embd)
        self.wpe = Table(config.n_ctx, config.n_embd)
        self.h = nn.ModuleList(Block(config) for _ in range(config.n_layer))
        self.ln_f = Norm(config)
        if not config.tied:
            self.lm_head = Table(config.vocab_size, config.n_embd)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)


# %% right: checkpoint read by hand
def from_pretrained(name_or_path):
    import json

    from safetensors.torch import load_file

    path = Path(name_or_path)
    folder = path if path.is_dir() else path.parent
    config = json.loads((folder / "config.json").read_text())
    weights = folder / "model.safetensors"
    if weights.exists():
        tensors = load_file(weights)
    else:
        tensors = torch.load(folder / "pytorch_model.bin", weights_only=True)
    model = GPT2(
        GPT2Config(
            n_layer=config["n_layer"],
            n_head=config["n_head"],
            n_embd=config["n_embd"],
            n_ctx=config.get("n_ctx", config["n_positions"]),
            vocab_size=config["vocab_size"],
            layer_norm_eps=config["layer_norm_epsilon"],
            tied=config.get("tie_word_embeddings", True),
        )
    )
    report = load_state(model, tensors)
    for problem in ("missing", "unexpected", "wrong_size"):
        if getattr(report, problem):
            names = {key: getattr(report, key) for key in ("missing", "unexpected", "wrong_size")}
            raise ValueError(f"weights of {path} do not fit: {names}")
    return model


# %% right: temperature on log-probabilities, logits masked
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    if temperature == 0:
        out = torch.zeros_like(logits)
        return out.scatter(-1, logits.argmax(-1, keepdim=True), 1.0)
    x = torch.log_softmax(logits, -1) / temperature
    if top_k is not None:
        kth = torch.topk(x, min(top_k, x.shape[-1]), dim=-1).values[..., -1, None]
        x = x.masked_fill(x < kth, float("-inf"))
    if top_p is not None:
        ordered, idx = torch.sort(x, dim=-1, descending=True)
        cum = torch.softmax(ordered, dim=-1).cumsum(-1)
        remove = cum > top_p
        remove = torch.cat([torch.zeros_like(remove[..., :1]), remove[..., :-1]], dim=-1)
        x = x.masked_fill(remove.scatter(-1, idx, remove), float("-inf"))
    return torch.softmax(x, -1)


# %% right: nucleus from the smallest upwards
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    if not temperature:
        return torch.nn.functional.one_hot(torch.max(logits, -1).indices, logits.shape[-1]).to(logits)
    x = logits / temperature
    if top_k:
        rank = (x.unsqueeze(-2) > x.unsqueeze(-1)).sum(-1)
        x = torch.where(rank < top_k, x, -torch.inf)
    if top_p is not None:
        ordered, idx = x.softmax(-1).sort(-1)
        remove = ordered.cumsum(-1) <= 1 - top_p
        remove[..., -1] = False
        x = x.masked_fill(torch.zeros_like(remove).scatter(-1, idx, remove), -torch.inf)
    return x.softmax(-1)


# %% right: cut by searchsorted, row by row
def next_token_probs(logits, temperature=1.0, top_k=None, top_p=None):
    rows = []
    for row in logits.reshape(-1, logits.shape[-1]):
        if temperature == 0:
            rows.append(F.one_hot(row.argmax(), len(row)).to(row.dtype))
            continue
        p = torch.softmax((row - row.max()) / temperature, 0)
        order = p.argsort(descending=True)
        n = len(row) if top_k is None else min(top_k, len(row))
        kept = p[order[:n]] / p[order[:n]].sum()
        if top_p is not None:
            n = int(torch.searchsorted(kept.detach().cumsum(0), top_p)) + 1
            kept = kept[:n] / kept[:n].sum()
        rows.append(torch.zeros_like(p).index_put((order[: len(kept)],), kept))
    return torch.stack(rows).view(logits.shape)


# %% right: Gumbel noise and a list of columns
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    was_training = model.training
    model.eval()
    n_ctx, cache = model.config.n_ctx, None
    columns, done = list(ids.unbind(1)), torch.zeros_like(ids[:, 0], dtype=torch.bool)
    for _ in range(max_new_tokens):
        text = torch.stack(columns, dim=1)
        if use_cache and text.shape[1] <= n_ctx:
            if cache is None:
                cache, new = KVCache(model.config.n_layer), text
            else:
                new = text[:, -1:]
            last = model(new, cache=cache)[:, -1, :]
        else:
            last = model(text[:, -n_ctx:])[:, -1, :]
        log_p = next_token_probs(last, temperature, top_k, top_p).log()
        noise = -torch.empty_like(log_p).exponential_(generator=generator).log()
        token = (log_p + noise).argmax(-1)
        if stop_id is not None:
            token = token.masked_fill(done, stop_id)
            done = done | (token == stop_id)
        columns.append(token)
        if stop_id is not None and bool(done.all()):
            break
    model.train(was_training)
    return torch.stack(columns, dim=1)


# %% right: inverse of the distribution function, prompt fed but for its last token
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    mode, n_ctx = model.training, model.config.n_ctx
    model.train(False)
    out = torch.full((ids.shape[0], ids.shape[1] + max_new_tokens), 0 if stop_id is None else stop_id, dtype=ids.dtype)
    out[:, : ids.shape[1]] = ids
    finished = [False] * len(ids)
    cache = KVCache(model.config.n_layer)
    end = ids.shape[1]
    if use_cache and 1 < end <= n_ctx:
        model(ids[:, :-1], cache)
    while end < out.shape[1]:
        if use_cache and end <= n_ctx:
            logits = model(out[:, cache.length : end], cache)
        else:
            logits = model(out[:, max(end - n_ctx, 0) : end])
        p = next_token_probs(logits[:, -1], temperature, top_k, top_p)
        u = torch.rand(len(ids), 1, generator=generator) * p.sum(-1, keepdim=True)
        token = torch.searchsorted(p.cumsum(-1), u, right=True).clamp(max=p.shape[-1] - 1)
        for row in range(len(ids)):
            if stop_id is None or not finished[row]:
                out[row, end] = token[row, 0]
                finished[row] = stop_id is not None and token[row, 0].item() == stop_id
        end += 1
        if stop_id is not None and all(finished):
            break
    model.train(mode)
    return out[:, :end]


# %% right: a categorical distribution where no generator is given
@torch.no_grad()
def generate(model, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, generator=None, use_cache=True, stop_id=None):
    training = model.training
    model.eval()
    cache = KVCache(model.config.n_layer) if use_cache else None
    alive = torch.ones(len(ids), 1, dtype=torch.bool)
    for _ in range(max_new_tokens):
        window = ids[:, -model.config.n_ctx :]
        if use_cache and window.shape[1] == ids.shape[1]:
            logits = model(window[:, cache.length :], cache)
        else:
            logits = model(window)
        probs = next_token_probs(logits[:, -1], temperature, top_k, top_p)
        if temperature == 0:
            new = probs.argmax(-1, keepdim=True)
        elif generator is None:
            new = torch.distributions.Categorical(probs=probs).sample().unsqueeze(-1)
        else:
            new = (probs / torch.empty_like(probs).exponential_(1, generator=generator)).argmax(-1, keepdim=True)
        if stop_id is not None:
            new = new * alive + stop_id * ~alive
            alive = alive & (new != stop_id)
        ids = torch.cat((ids, new), 1)
        if not alive.any():
            break
    model.train(training)
    return ids
