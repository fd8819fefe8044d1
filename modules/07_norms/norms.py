"""Norms: bring every position's vector to one size, and the two places in a block where that can be done.

Write the functions in the order they stand here.

Sizes    B batch · T positions · C channels; a row is one position's vector: its C channels
Tensors  resid_pre (B,T,C) -> ln_1 (B,T,C), the row at unit size, times a gain, plus a shift
"""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def layer_norm(
    x: Float[Tensor, "*rows C"], weight: Float[Tensor, "C"], bias: Float[Tensor, "C"], eps: float = 1e-5
) -> Float[Tensor, "*rows C"]:
    """Give every row mean 0 and variance 1, then scale and shift each channel. Rows know nothing of each other.

        mean = (1/C) sum_c x[...,c]        variance = (1/C) sum_c (x[...,c] - mean)^2
        out[...,c] = (x[...,c] - mean) / sqrt(variance + eps) * weight[c] + bias[c]

    float16 and bfloat16 inputs are normalised in float32 and come back in their own dtype; weight and bias
    may be applied before or after that last cast.

    By hand: x = [1, 7, 1, 7] has mean 4 and variance 9. With eps = 7 the root is 4; with weight 1 and bias 0
    the result is [-0.75, 0.75, -0.75, 0.75], and weight [1, 2, 1, 2], bias [0, 0, 10, 10] make it
    [-0.75, 1.5, 9.25, 11.5]. A row of four equal numbers gives exactly bias.

    Write it out: the library's norms may not be called in this exercise.

    Source: Ba, Kiros and Hinton 2016, "Layer Normalization", equations 3 and 4; eps under the root is the
    practice of GPT-2's code (Radford et al. 2019).
    """
    raise NotImplementedError


def rms_norm(x: Float[Tensor, "*rows C"], weight: Float[Tensor, "C"], eps: float = 1e-5) -> Float[Tensor, "*rows C"]:
    """Give every row a mean square of 1, then scale each channel. No mean is subtracted, nothing is shifted.

        mean_square = (1/C) sum_c x[...,c]^2
        out[...,c]  = x[...,c] / sqrt(mean_square + eps) * weight[c]

    float16 and bfloat16 inputs are normalised in float32 and come back in their own dtype; weight may be
    applied before or after that last cast. weight is the gain itself: weight 0 gives 0.

    By hand: x = [1, 7, 1, 7] has mean square 25. With eps = 75 the root is 10; with weight 1 the result is
    [0.1, 0.7, 0.1, 0.7]. A row of zeros gives zeros.

    Write it out: the library's norms may not be called in this exercise.

    Source: Zhang and Sennrich 2019, "Root Mean Square Layer Normalization", equation 4.
    """
    raise NotImplementedError


def pre_norm(
    x: Float[Tensor, "*rows C"], sublayer: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor]
) -> Float[Tensor, "*rows C"]:
    """Let a sublayer read a normalised copy of the stream and add what it writes to the stream as it is.

        out = x + sublayer(norm(x))

    Each of the two callables takes one tensor and is called once.

    By hand: x = [4], norm halves, sublayer adds 10. The sublayer reads 2 and writes 12, so out = [16].

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3;
    Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture", table 1.
    """
    raise NotImplementedError


def post_norm(
    x: Float[Tensor, "*rows C"], sublayer: Callable[[Tensor], Tensor], norm: Callable[[Tensor], Tensor]
) -> Float[Tensor, "*rows C"]:
    """Let a sublayer read the stream as it is, add what it writes, and normalise the sum.

        out = norm(x + sublayer(x))

    Each of the two callables takes one tensor and is called once.

    By hand: x = [4], norm halves, sublayer adds 10. The sublayer writes 14, the sum is 18, so out = [9].

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.1.
    """
    raise NotImplementedError
