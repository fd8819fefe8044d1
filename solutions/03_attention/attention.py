"""Attention: a dictionary made differentiable, then many of them side by side.

Write the functions in the order they stand here: each one uses those above it.

Sizes    B batch · Tq, Tk query and key positions · C channels = H*D · H heads · D head size
Tensors  q k v (B,H,T,D) -> scores (B,H,Tq,Tk) -> pattern (B,H,Tq,Tk) -> z (B,H,Tq,D) -> attn_out (B,T,C)
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def soft_lookup(query: Float[Tensor, "D"], keys: Float[Tensor, "N D"], values: Float[Tensor, "N Dv"]) -> Float[Tensor, "Dv"]:
    """Read a dictionary softly: every value comes back, weighted by how well its key fits the query.

        value[e] = sum_n w[n] values[n,e]        w = softmax over n of (query . keys[n])

    The dot products are not scaled here.

    By hand: query (1, 0), keys (0, 1) and (0, 5), values (2,) and (4,). Both dot products are 0,
    so both weights are 1/2 and the answer is (3,).

    Source: Graves et al. 2014, "Neural Turing Machines", equations 5 and 6 (content-based addressing).
    """
    # BEGIN SOLUTION
    return torch.softmax(keys @ query, dim=-1) @ values
    # END SOLUTION


def attention_scores(q: Float[Tensor, "B H Tq D"], k: Float[Tensor, "B H Tk D"]) -> Float[Tensor, "B H Tq Tk"]:
    """Compare every query with every key: dot products, divided by the square root of the head size.

        scores[b,h,i,j] = (1 / sqrt(D)) sum_d q[b,h,i,d] k[b,h,j,d]

    By hand (B = H = 1): q = [[3, 4, 0, 0]], k = [[1, 1, 0, 0], [0, 2, 5, 0]]. The dot products are
    7 and 8, D is 4, so scores = [[3.5, 4]].

    Source: Vaswani et al. 2017, "Attention Is All You Need", equation 1 and footnote 4.
    """
    # BEGIN SOLUTION
    return q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    # END SOLUTION


def softmax(x: Float[Tensor, "*shape"], dim: int = -1) -> Float[Tensor, "*shape"]:
    """Turn numbers into shares along `dim`: all positive, summing to 1, and finite for inputs of any size.

        out[j] = exp(x[j] - m) / sum_i exp(x[i] - m)        m = max_i x[i], taken along dim

    Write it out: the library's softmax may not be called in this exercise.

    By hand: x = [0, ln 3] gives [1/4, 3/4], and so does [1000, 1000 + ln 3].

    Source: Bridle 1990, "Probabilistic interpretation of feedforward classification network outputs".
    """
    # BEGIN SOLUTION
    exponentials = torch.exp(x - x.amax(dim, keepdim=True))
    return exponentials / exponentials.sum(dim, keepdim=True)
    # END SOLUTION


def attention(
    q: Float[Tensor, "B H Tq D"], k: Float[Tensor, "B H Tk D"], v: Float[Tensor, "B H Tk Dv"]
) -> Float[Tensor, "B H Tq Dv"]:
    """Let every query read from all the values, in shares that its scores decide. Nothing is masked.

        pattern[b,h,i,:] = softmax(scores[b,h,i,:])        z[b,h,i,e] = sum_j pattern[b,h,i,j] v[b,h,j,e]

    Tq and Tk may differ, and v may be of another width than q and k.

    By hand (B = H = 1): q = [[0, 0]] scores 0 with every key, so z is the plain mean of the values.

    Source: Vaswani et al. 2017, "Attention Is All You Need", equation 1.
    """
    # BEGIN SOLUTION
    pattern = softmax(attention_scores(q, k), dim=-1)
    return pattern @ v
    # END SOLUTION


def split_heads(x: Float[Tensor, "B T C"], n_head: int) -> Float[Tensor, "B H T D"]:
    """Give each head its own D consecutive channels: head h takes channels h*D to (h+1)*D - 1.

        out[b,h,t,d] = x[b,t,h*D + d]        D = C / n_head

    By hand (B = 1, T = 2, C = 4, n_head = 2): [[1, 2, 3, 4], [5, 6, 7, 8]] becomes
    head 0: [[1, 2], [5, 6]] and head 1: [[3, 4], [7, 8]].

    Raises ValueError when n_head does not divide C.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2.
    """
    # BEGIN SOLUTION
    B, T, C = x.shape
    if C % n_head:
        raise ValueError(f"C = {C} channels cannot be shared equally among n_head = {n_head} heads")
    return x.view(B, T, n_head, C // n_head).transpose(1, 2)
    # END SOLUTION


def merge_heads(z: Float[Tensor, "B H T D"]) -> Float[Tensor, "B T C"]:
    """Lay the heads side by side again: the inverse of `split_heads`.

        out[b,t,h*D + d] = z[b,h,t,d]

    By hand (B = 1, H = 2, T = 2, D = 2): head 0 [[1, 2], [5, 6]] and head 1 [[3, 4], [7, 8]]
    become [[1, 2, 3, 4], [5, 6, 7, 8]].

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2 (Concat).
    """
    # BEGIN SOLUTION
    B, H, T, D = z.shape
    return z.transpose(1, 2).reshape(B, T, H * D)
    # END SOLUTION


def multi_head_attention(
    x: Float[Tensor, "B T C"],
    c_attn_w: Float[Tensor, "C 3*C"],
    c_attn_b: Float[Tensor, "3*C"],
    c_proj_w: Float[Tensor, "C C"],
    c_proj_b: Float[Tensor, "C"],
    n_head: int,
) -> Float[Tensor, "B T C"]:
    """Project x to queries, keys and values, let every head attend, and mix what the heads bring back.

        [q | k | v] = x @ c_attn_w + c_attn_b        all of q, then all of k, then all of v: C columns each
        attn_out    = merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b

    Weights are (in, out), as in GPT-2's released file: x @ w + b, no transpose.

    By hand: with c_attn_w = 0 and c_attn_b = 0 every value is 0, so attn_out is c_proj_b at every position.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2; the fused layout is GPT-2's
    (Radford et al. 2019).
    """
    # BEGIN SOLUTION
    qkv = x @ c_attn_w + c_attn_b
    q, k, v = (split_heads(part, n_head) for part in qkv.chunk(3, dim=-1))
    return merge_heads(attention(q, k, v)) @ c_proj_w + c_proj_b
    # END SOLUTION
