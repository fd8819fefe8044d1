"""Grouped-query attention: several query heads share one key/value head, and the cache shrinks with them.

Write the functions in the order they stand here: `grouped_query_attention` uses `repeat_kv`; the cache and its
price list stand on their own.

Sizes    B batch · Tq, Tk query and key positions · H query heads · Hkv key/value heads · D head size · L layers
Tensors  q (B,H,Tq,D) · k v (B,Hkv,Tk,D) -> scores (B,H,Tq,Tk) -> pattern (B,H,Tq,Tk) -> z (B,H,Tq,D)
"""

import math

import torch
from attention import attention
from jaxtyping import Bool, Float
from masking import masked_attention
from torch import Tensor


def repeat_kv(x: Float[Tensor, "B Hkv T D"], n_rep: int) -> Float[Tensor, "B H T D"]:
    """Give every query head its own copy of the key (or value) head that it shares: H = Hkv * n_rep heads.

        out[b,h,t,d] = x[b, floor(h / n_rep), t, d]        query heads j*n_rep to (j+1)*n_rep - 1 share head j

    By hand (B = T = D = 1, Hkv = 2): heads [5, 7] with n_rep = 3 become [5, 5, 5, 7, 7, 7].

    Source: Ainslie et al. 2023, "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
    Checkpoints", section 2.2 and figure 2 (neighbouring query heads form a group).
    """
    raise NotImplementedError


def grouped_query_attention(
    q: Float[Tensor, "B H Tq D"],
    k: Float[Tensor, "B Hkv Tk D"],
    v: Float[Tensor, "B Hkv Tk Dv"],
    mask: Bool[Tensor, "..."] | None = None,
) -> Float[Tensor, "B H Tq Dv"]:
    """Let H query heads read from Hkv key/value heads, H / Hkv neighbours from each.

        scores[b,h,i,j] = (1 / sqrt(D)) sum_d q[b,h,i,d] k[b,g,j,d]        g = floor(h / (H / Hkv))
        z[b,h,i,e] = sum_j pattern[b,h,i,j] v[b,g,j,e]

    Hkv = H is the multi-head attention of module 03, Hkv = 1 is multi-query attention. The mask is module 04's:
    `True` = may attend, broadcastable to (B,H,Tq,Tk); `None` = everything may be read; a row that may attend to
    nothing gives zeros. The fused attention of the library may not be called in this exercise.

    By hand (B = Tq = D = 1, H = 4, Hkv = 2, Tk = 2): q is 0 in every head, v is (2, 4) in head 0 and (10, 30)
    in head 1. All weights are 1/2, so z is 3, 3, 20, 20 in the four heads.

    Raises ValueError when Hkv does not divide H.

    Source: Ainslie et al. 2023 (as above), section 2.2; Shazeer 2019, "Fast Transformer Decoding: One Write-Head
    is All You Need", section 3, for Hkv = 1.
    """
    raise NotImplementedError


class KVCache:
    """Keep the keys and values of the positions already seen, layer by layer, so that none is computed twice.

    Key/value heads are kept as they come, Hkv of them: they are repeated when they are read, never in the cache.

    By hand: a cache of 2 layers has length 0. After `append(0, k, v)` with 3 positions layer 0 holds 3, layer 1
    holds none, and the length is still 0. After `append(1, k, v)` with 3 positions the length is 3.

    Source: Shazeer 2019 (as above), section 2.4 (incremental attention, which extends K and V by one row a step).
    """

    def __init__(self, n_layer: int) -> None:
        """Start empty: no layer holds a position."""
        raise NotImplementedError

    def append(
        self, layer: int, k: Float[Tensor, "B Hkv T D"], v: Float[Tensor, "B Hkv T Dv"]
    ) -> tuple[Float[Tensor, "B Hkv Tk D"], Float[Tensor, "B Hkv Tk Dv"]]:
        """Add T positions behind those of this layer (0-based) and return all that it now holds, oldest first.

            k_all = [k of earlier calls | k]   along the position axis        v_all likewise

        T may be 1 or more. Tensors that an earlier call returned keep their shape and their values, and gradients
        pass through what is returned.

        By hand (B = Hkv = D = 1): append(0, [1, 2], [5, 6]) returns [1, 2] and [5, 6];
        append(0, [3], [7]) then returns [1, 2, 3] and [5, 6, 7].
        """
        raise NotImplementedError

    @property
    def length(self) -> int:
        """The number of positions that every layer holds: what a forward pass in progress has not finished does not count."""
        raise NotImplementedError


def kv_cache_bytes(
    n_layer: int, n_kv_head: int, d_head: int, n_positions: int, bytes_per_value: float = 2, batch: int = 1
) -> int:
    """Count the bytes that the keys and values of `n_positions` positions take in all layers.

        bytes = 2 * n_layer * n_kv_head * d_head * n_positions * batch * bytes_per_value        (2: a key and a value)

    `bytes_per_value` is 4 for float32, 2 for float16 and bfloat16, 1 for int8, 0.5 for 4 bits. Where the total is
    not a whole number, it is rounded up, once, at the end. The result is an int.

    By hand: 2 layers, 1 head of size 4, 3 positions, 2 bytes: 2 * 2 * 1 * 4 * 3 * 2 = 96. Llama 3 70B (80 layers,
    8 heads of 128, 2 bytes) takes 327680 bytes for one position.

    Source: Shazeer 2019 (as above), section 2.4.1 (the size of K and V); Grattafiori et al. 2024, "The Llama 3 Herd of
    Models", table 3, for the sizes.
    """
    raise NotImplementedError
