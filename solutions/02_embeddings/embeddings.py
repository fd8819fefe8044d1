"""Embeddings: from token ids to vectors that know their place, and back to a score for every token.

Write the functions in the order they stand here: `embed` uses the two above it, `analogy` the one above it.

Sizes    B batch · T positions · C channels · V vocabulary · n_ctx rows of the position table
Tensors  ids (B,T) -> tok_emb (B,T,C), pos_emb (T,C) -> resid_pre (B,T,C) -> ... -> logits (B,T,V)
Weights  wte (V,C) one row a token · wpe (n_ctx,C) one row a position
"""

from collections.abc import Iterable

import torch
from jaxtyping import Float, Int
from torch import Tensor


def embed_tokens(ids: Int[Tensor, "B T"], wte: Float[Tensor, "V C"]) -> Float[Tensor, "B T C"]:
    """Look up the row of every token.

        tok_emb[b,t,c] = wte[ids[b,t],c]

    The rows come as they are: GPT-2 does not scale them.

    By hand (B = 1, C = 2): with wte = [[1, 2], [3, 4], [5, 6]], ids = [[2, 0]] gives [[5, 6], [1, 2]].

    Source: Bengio et al. 2003, "A Neural Probabilistic Language Model", section 2 (the mapping C).
    """
    # BEGIN SOLUTION
    return wte[ids]
    # END SOLUTION


def embed_positions(n_positions: int, wpe: Float[Tensor, "n_ctx C"], offset: int = 0) -> Float[Tensor, "T C"]:
    """Take the rows of `n_positions` consecutive positions, the first of which is `offset`.

        pos_emb[t,c] = wpe[offset + t,c]        t = 0 .. n_positions - 1

    The offset counts the positions that are already behind: 0 for a fresh text, 5 when five tokens came before.

    By hand (n_ctx = 3, C = 2): with wpe = [[1, 2], [3, 4], [5, 6]], two positions give [[1, 2], [3, 4]];
    with offset 1 they give [[3, 4], [5, 6]]; with offset 2 the second one would be past the table.

    Raises ValueError when offset + n_positions is larger than n_ctx.

    Source: Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", section 3.1.
    """
    # BEGIN SOLUTION
    n_ctx = wpe.shape[0]
    if offset + n_positions > n_ctx:
        raise ValueError(
            f"offset {offset} and {n_positions} positions need {offset + n_positions} rows, but the position table has {n_ctx}"
        )
    # A slice needs no index tensor, so there is none that could be on the wrong device.
    return wpe[offset : offset + n_positions]
    # END SOLUTION


def embed(
    ids: Int[Tensor, "B T"], wte: Float[Tensor, "V C"], wpe: Float[Tensor, "n_ctx C"], offset: int = 0
) -> Float[Tensor, "B T C"]:
    """Say what each token is and where it stands, in the same C channels.

        resid_pre[b,t,c] = wte[ids[b,t],c] + wpe[offset + t,c]

    By hand (B = 1, T = 2, C = 2): with wte = [[1, 2], [3, 4]] and wpe = [[10, 0], [0, 10]], ids = [[1, 1]] gives
    [[13, 4], [3, 14]]: one token, two positions, two vectors.

    Raises ValueError when offset + T is larger than n_ctx.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", equation 2.
    """
    # BEGIN SOLUTION
    return embed_tokens(ids, wte) + embed_positions(ids.shape[-1], wpe, offset)
    # END SOLUTION


def unembed(x: Float[Tensor, "B T C"], wte: Float[Tensor, "V C"]) -> Float[Tensor, "B T V"]:
    """Score every token of the vocabulary: the dot product of x with the token's own row.

        logits[b,t,v] = sum_c x[b,t,c] wte[v,c]

    The table is the one that `embed_tokens` reads (the two are tied). No bias, no scale.

    By hand (B = T = 1, C = 2): with wte = [[1, 2], [3, 4], [5, 6]], x = [[[1, -1]]] gives [[[-1, -1, -1]]]
    and x = [[[1, 0]]] gives [[[1, 3, 5]]].

    Source: Press and Wolf 2017, "Using the Output Embedding to Improve Language Models" (weight tying); GPT's
    form is equation 2 of Radford et al. 2018.
    """
    # BEGIN SOLUTION
    return x @ wte.transpose(0, 1)
    # END SOLUTION


def sinusoidal_positions(n_ctx: int, d_model: int) -> Float[Tensor, "n_ctx d_model"]:
    """Build a position table from waves instead of learning one; even channels are sines, odd ones cosines.

        out[p, 2i]     = sin(p / 10000^(2i / d_model))
        out[p, 2i + 1] = cos(p / 10000^(2i / d_model))        i = 0 .. d_model/2 - 1

    The result is float32.

    By hand (d_model = 4): row 0 is [0, 1, 0, 1]; row 1 is [sin 1, cos 1, sin 0.01, cos 0.01], which is
    [0.84147, 0.54030, 0.01000, 0.99995].

    Raises ValueError when d_model is odd.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.5.
    """
    # BEGIN SOLUTION
    if d_model % 2:
        raise ValueError(f"d_model = {d_model} is odd: every sine needs its cosine, so expected an even number")
    # In float64, because the rounding of a float32 angle grows with the position.
    positions = torch.arange(n_ctx, dtype=torch.float64)
    even_channels = torch.arange(0, d_model, 2, dtype=torch.float64)
    angles = positions[:, None] / 10000.0 ** (even_channels / d_model)  # (n_ctx, d_model/2)
    # Stacking on a new last axis puts each sine next to its cosine; flattening that axis makes them alternate.
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2).float()
    # END SOLUTION


# BEGIN SOLUTION
def _unit(x: Float[Tensor, "*n C"]) -> Float[Tensor, "*n C"]:
    """Scale each vector to length 1 and leave a zero vector at zero."""
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / torch.where(length > 0, length, 1)
# END SOLUTION


def cosine_similarity(a: Float[Tensor, "*#n C"], b: Float[Tensor, "*#n C"]) -> Float[Tensor, "*n"]:
    """Compare directions and ignore lengths: the cosine of the angle between a and b, along the last axis.

        out[...] = sum_c a[...,c] b[...,c] / (|a[...]| |b[...]|)        |a| = sqrt(sum_c a[c]^2)

    Leading axes broadcast. A zero vector has no direction: its similarity with anything is 0, and its gradient is finite.

    By hand: (3, 4) and (4, 3) give 24 / 25 = 0.96; (3, 4) and (30, 40) give 1; (3, 4) and (0, 0) give 0.

    Source: Salton, Wong and Yang 1975, "A Vector Space Model for Automatic Indexing".
    """
    # BEGIN SOLUTION
    return (_unit(a) * _unit(b)).sum(-1)
    # END SOLUTION


def nearest_tokens(
    vector: Float[Tensor, "C"], wte: Float[Tensor, "V C"], k: int, exclude: Iterable[int] = ()
) -> list[int]:
    """List the ids of the `k` tokens whose rows point most nearly the way of `vector`, best first.

    Near means a large cosine. The ids in `exclude` are left out, and `k` counts those that remain.

    By hand (C = 2): wte = [[1, 0], [1, 1], [3, 2]] and vector (1, 1) have the cosines 0.707, 1 and 0.981, so
    k = 2 gives [1, 2], and k = 1 with exclude = [1] gives [2].

    Source: Mikolov et al. 2013, "Linguistic Regularities in Continuous Space Word Representations", section 4.
    """
    # BEGIN SOLUTION
    excluded = set(exclude)
    best_first = cosine_similarity(vector, wte).argsort(descending=True, stable=True).tolist()
    return [token for token in best_first if token not in excluded][:k]
    # END SOLUTION


def analogy(a: int, b: int, c: int, wte: Float[Tensor, "V C"], k: int = 1) -> list[int]:
    """Complete "a is to b as c is to ?": take the step that leads from a to b, starting at c.

        target = wte[b] - wte[a] + wte[c]        on the rows as they are, not scaled to length 1

    The answers are the `k` tokens nearest to the target, best first; a, b and c themselves are excluded.

    By hand (C = 2): wte = [[1, 2], [1, 3], [5, 1], [4, 3], [2, -1]]. Token 0 is to 1 as 2 is to ?: the target is (5, 2),
    and its cosines with rows 3 and 4 are 0.966 and 0.664, so the answer is [3].

    Source: Mikolov et al. 2013, "Linguistic Regularities in Continuous Space Word Representations", section 4.
    """
    # BEGIN SOLUTION
    return nearest_tokens(wte[b] - wte[a] + wte[c], wte, k, exclude=(a, b, c))
    # END SOLUTION
