"""Rotary positions: turn every query and key by an angle that grows with its position.

Write the functions in the order they stand here. They meet in attention: q and k are rotated after
`split_heads` and before the scores; v is left alone.

Sizes    T positions · H heads · D head size · D/2 pairs of channels
Tensors  positions (T) and frequencies (D/2) -> cos, sin (T,D/2) -> rotated q and k, both of shape (B,H,T,D)
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor


def rope_frequencies(d_head: int, base: float = 10000.0) -> Float[Tensor, "D//2"]:
    """List how far each pair of channels turns from one position to the next, in radians, as float32.

        frequencies[i] = base^(-2i / D)        i = 0 .. D/2 - 1

    By hand: d_head = 8 and the default base give [1, 0.1, 0.01, 0.001]; d_head = 4 and base = 16 give [1, 0.25].

    Raises ValueError when d_head is odd.

    Source: Su et al. 2021, "RoFormer", section 3.2.2; the paper counts pairs from 1 and writes -2(i-1)/d.
    """
    # BEGIN SOLUTION
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd: rotary positions turn channels in pairs, so d_head must be even")
    # In float64 first: a position multiplies whatever error is left in a frequency.
    exponents = -torch.arange(0, d_head, 2, dtype=torch.float64) / d_head
    return (base**exponents).to(torch.float32)
    # END SOLUTION


def rope_cos_sin(
    positions: Int[Tensor, "T"], frequencies: Float[Tensor, "D//2"]
) -> tuple[Float[Tensor, "T D//2"], Float[Tensor, "T D//2"]]:
    """Tabulate the cosine and sine of every position's angles, in float32, on the device of `positions`.

        angle[t,i] = positions[t] * frequencies[i]        cos[t,i] = cos(angle[t,i])        sin[t,i] = sin(angle[t,i])

    Positions are whole numbers in any order: they may start anywhere, skip and repeat.

    By hand: positions [0, 2] and frequencies [pi/2, pi/4] give the angles [[0, 0], [pi, pi/2]], so
    cos = [[1, 1], [-1, 0]] and sin = [[0, 0], [0, 1]].

    Source: Su et al. 2021, "RoFormer", equations 15 and 34.
    """
    # BEGIN SOLUTION
    # float32 whatever the model's dtype: bfloat16 has no 257, so positions 256 and 257 would share an angle.
    angles = positions.to(torch.float32)[:, None] * frequencies.to(positions.device, torch.float32)
    return torch.cos(angles), torch.sin(angles)
    # END SOLUTION


def rotate_interleaved(
    x: Float[Tensor, "*heads T D"], cos: Float[Tensor, "T D//2"], sin: Float[Tensor, "T D//2"]
) -> Float[Tensor, "*heads T D"]:
    """Rotate the channels in neighbouring pairs: 0 with 1, 2 with 3, and so on. Channels keep their places.

        out[...,t,2i]     = x[...,t,2i] cos[t,i] - x[...,t,2i+1] sin[t,i]
        out[...,t,2i + 1] = x[...,t,2i] sin[t,i] + x[...,t,2i+1] cos[t,i]

    By hand (T = 1, D = 4): x = [[1, 2, 3, 4]], cos = [[0, -1]], sin = [[1, 0]] turn (1, 2) by a quarter to
    (-2, 1) and (3, 4) by a half to (-3, -4): out = [[-2, 1, -3, -4]].

    Source: Su et al. 2021, "RoFormer", equation 34.
    """
    # BEGIN SOLUTION
    a, b = x[..., 0::2], x[..., 1::2]  # (...,T,D/2) each
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)  # (...,T,D/2,2)
    return pairs.flatten(-2).to(x.dtype)
    # END SOLUTION


def rotate_half(
    x: Float[Tensor, "*heads T D"], cos: Float[Tensor, "T D//2"], sin: Float[Tensor, "T D//2"]
) -> Float[Tensor, "*heads T D"]:
    """Rotate each channel of the first half with the one that stands as far into the second half.

        out[...,t,i]       = x[...,t,i] cos[t,i] - x[...,t,i + D/2] sin[t,i]
        out[...,t,i + D/2] = x[...,t,i] sin[t,i] + x[...,t,i + D/2] cos[t,i]

    By hand (T = 1, D = 4): x = [[1, 2, 3, 4]], cos = [[0, -1]], sin = [[1, 0]] turn (1, 3) by a quarter to
    (-3, 1) and (2, 4) by a half to (-2, -4): out = [[-3, -2, 1, -4]].

    Source: Su et al. 2021, "RoFormer", equation 34, with the pairing of GPT-NeoX (Black et al. 2022).
    """
    # BEGIN SOLUTION
    a, b = x.chunk(2, dim=-1)  # (...,T,D/2) each
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
    # END SOLUTION


def interleaved_to_half(w: Float[Tensor, "*rows H*D"], n_head: int) -> Float[Tensor, "*rows H*D"]:
    """Reorder the output columns of a q or k projection made for `rotate_interleaved` to suit `rotate_half`.

        out[...,h*D + i]       = w[...,h*D + 2i]
        out[...,h*D + D/2 + i] = w[...,h*D + 2i + 1]        D = columns / n_head

    w is a weight matrix (in, out) or its 1-D bias; n_head is the number of heads in w itself. With q and k
    both reordered, `rotate_half` gives the scores that `rotate_interleaved` gave before.

    By hand: the bias [0, 1, 2, 3, 4, 5, 6, 7] becomes [0, 2, 1, 3, 4, 6, 5, 7] for n_head = 2 and
    [0, 2, 4, 6, 1, 3, 5, 7] for n_head = 1.

    Raises ValueError when the columns do not split into n_head heads of an even size.

    Source: the dot product does not change when both vectors are permuted alike; released Llama weights exist in
    both orders (Touvron et al. 2023, and their conversion for Hugging Face transformers).
    """
    # BEGIN SOLUTION
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns cannot be shared among n_head = {n_head} heads of an even size")
    pairs = w.unflatten(-1, (n_head, -1, 2))  # (...,H,D/2,2)
    return pairs.transpose(-2, -1).flatten(-3)  # (...,H*D)
    # END SOLUTION
