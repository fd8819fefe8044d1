"""Masking: who may read whom. A mask is boolean, and True means "may attend".

Write the functions in the order they stand here: `masked_attention` and the last one use those above them.
The fused attention of the library may not be called in this module; its softmax may.

Sizes    B batch · T positions (Tq, Tk of queries and keys) · C channels = H*D · H heads · D head size
Tensors  q k v -> scores (B,H,Tq,Tk) -> masked scores -> pattern (B,H,Tq,Tk) -> z (B,H,Tq,D) -> attn_out (B,T,C)
"""

import torch
from attention import attention_scores, merge_heads, softmax, split_heads
from jaxtyping import Bool, Float, Int
from torch import Tensor


def causal_mask(n_query: int, n_key: int | None = None, device: torch.device | str | None = None) -> Bool[Tensor, "Tq Tk"]:
    """Let every query attend to its own position and to all earlier ones.

        mask[i,j] = (j <= i + Tk - Tq)        Tq = n_query, Tk = n_key, or n_query when n_key is None

    The queries are the last Tq of the Tk positions: the last query sees every key.

    By hand: causal_mask(3) is [[T, F, F], [T, T, F], [T, T, T]], and causal_mask(2, 4) is [[T, T, T, F], [T, T, T, T]].

    Raises ValueError when n_query is larger than n_key.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3 (the decoder's self-attention).
    """
    raise NotImplementedError


def mask_scores(scores: Float[Tensor, "B H Tq Tk"], mask: Bool[Tensor, "..."]) -> Float[Tensor, "B H Tq Tk"]:
    """Replace the scores that may not count, so that a softmax over the keys gives them weight 0.

        out[b,h,i,j] = scores[b,h,i,j] where mask[b,h,i,j], else a number so low that its exponential is exactly 0

    The mask broadcasts to the shape of the scores. Minus infinity is low enough; so is any finite fill of -1e4 or below.

    By hand: scores [[2, 2, 7]] and mask [[T, T, F]] must give the pattern [[1/2, 1/2, 0]].

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3.
    """
    raise NotImplementedError


def masked_attention(
    q: Float[Tensor, "B H Tq D"],
    k: Float[Tensor, "B H Tk D"],
    v: Float[Tensor, "B H Tk Dv"],
    mask: Bool[Tensor, "..."],
) -> Float[Tensor, "B H Tq Dv"]:
    """Let every query read from the values that it may attend to; one that may attend to nothing reads 0.

        pattern[b,h,i,:] = softmax over the j with mask[b,h,i,j] of scores[b,h,i,j], and 0 at every other j
        z[b,h,i,e]       = sum_j pattern[b,h,i,j] v[b,h,j,e]

    The mask broadcasts to (B,H,Tq,Tk). A row without a single True gives z = 0 and passes a gradient of 0, never NaN.

    By hand (B = H = 1): with q = [[0, 0]], v = [[2], [4], [9]] and mask [[T, T, F]], z is [[3]]; with [[F, F, F]] it is [[0]].

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.3.
    """
    raise NotImplementedError


def padding_mask(lengths: Int[Tensor, "B"], n_key: int, side: str = "right") -> Bool[Tensor, "B 1 1 Tk"]:
    """Mark the keys that are real tokens in a batch of texts of unequal length; `side` is where the padding is.

        mask[b,0,0,j] = (j < lengths[b])               side = "right"
        mask[b,0,0,j] = (j >= n_key - lengths[b])      side = "left"

    By hand: lengths [2, 3] and n_key 3 give [T, T, F] and [T, T, T]; with side "left" the first row is [F, T, T].

    Raises ValueError when a length is larger than n_key, and when side is neither "right" nor "left".

    Source: the `attention_mask` of Hugging Face's transformers marks the same keys, with 1 for a real token.
    """
    raise NotImplementedError


def causal_self_attention(
    x: Float[Tensor, "B T C"],
    c_attn_w: Float[Tensor, "C 3*C"],
    c_attn_b: Float[Tensor, "3*C"],
    c_proj_w: Float[Tensor, "C C"],
    c_proj_b: Float[Tensor, "C"],
    n_head: int,
    attention_mask: Bool[Tensor, "B T"] | Bool[Tensor, "B 1 1 T"] | None = None,
) -> Float[Tensor, "B T C"]:
    """Do what `multi_head_attention` does, with the future masked, and with the padding masked when there is some.

        [q | k | v] = x @ c_attn_w + c_attn_b
        mask[b,i,j] = (j <= i) and attention_mask[b,j]
        attn_out    = merge_heads(masked_attention(q, k, v, mask)) @ c_proj_w + c_proj_b

    `attention_mask` says which keys are real tokens; it comes as (B,T) or as (B,1,1,T). A position left with nothing to
    attend to gives c_proj_b.

    By hand: position 0 sees itself alone, so its pattern is [1, 0, 0, ...] and its z is its own v, whatever the scores.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", section 3.1; the fused
    layout is GPT-2's (Radford et al. 2019).
    """
    raise NotImplementedError
