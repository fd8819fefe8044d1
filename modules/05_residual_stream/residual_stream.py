"""The residual stream: one running sum through the whole model; every layer reads it and adds to it.

Write the functions in the order they stand here: each one uses those above it, or only plain tensors.

Sizes    B batch · T positions · C channels · L layers · V vocabulary
Tensors  resid_pre -> ln_1 -> attn_out -> resid_mid -> ln_2 -> mlp_out -> resid_post, all (B,T,C); logits (B,T,V)
Stream   a list of L+1 states (B,T,C): entry 0 is what the first block reads, entry l is what l blocks have made of it
"""

from collections.abc import Callable, Collection

import torch
from jaxtyping import Float
from torch import Tensor


def add_to_stream(resid: Float[Tensor, "*shape"], update: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Add what a layer writes to the stream, entry by entry, and leave both arguments as they are.

        out[b,t,c] = resid[b,t,c] + update[b,t,c]

    By hand: resid = [[1, 2], [3, 4]] and update = [[10, 0], [0, -4]] give [[11, 2], [3, 0]].

    Raises ValueError, with both shapes, when they are not the same: nothing is broadcast.

    Source: He et al. 2016, "Deep Residual Learning for Image Recognition", equation 1.
    """
    raise NotImplementedError


def pre_norm_block(
    resid: Float[Tensor, "B T C"],
    attn: Callable[[Tensor], Tensor],
    mlp: Callable[[Tensor], Tensor],
    ln_1: Callable[[Tensor], Tensor],
    ln_2: Callable[[Tensor], Tensor],
) -> Float[Tensor, "B T C"]:
    """Run one GPT-2 block: attention adds to the stream, then the MLP reads the result and adds to that.

        resid_mid  = resid     + attn(ln_1(resid))
        resid_post = resid_mid + mlp(ln_2(resid_mid))

    The four callables take (B,T,C) and return (B,T,C); attn and mlp return what they write, not the sum.

    By hand, on a stream of a single number 1: with ln_1 doubling, attn times ten, ln_2 tripling and mlp adding
    one, resid_mid = 1 + 20 = 21, the MLP reads 63 and writes 64, and resid_post = 85.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3; Xiong et
    al. 2020, "On Layer Normalization in the Transformer Architecture", table 1 (pre-LN).
    """
    raise NotImplementedError


def run_stream(
    resid: Float[Tensor, "B T C"],
    blocks: Collection[Callable[[Tensor], Tensor]],
    skip: Collection[int] = (),
) -> list[Float[Tensor, "B T C"]]:
    """Run the blocks one after the other and return every state of the stream, the first one included.

        states[0] = resid        states[l+1] = blocks[l](states[l]), or states[l] again where l is in skip

    There are L+1 states for L blocks. A block returns the whole stream, its input included, as `pre_norm_block`
    does. Layers in `skip` are counted from 0 and are not called.

    By hand: with blocks that add 10 and that double, resid = 1 gives 1, 11, 22; skip = [0] gives 1, 1, 2.

    Source: He et al. 2016, "Identity Mappings in Deep Residual Networks", equation 4; leaving layers out is in
    Veit et al. 2016, "Residual Networks Behave Like Ensembles of Relatively Shallow Networks", section 4.1.
    """
    raise NotImplementedError


def logit_lens(
    stream: list[Float[Tensor, "B T C"]],
    ln_f: Callable[[Tensor], Tensor],
    unembed: Callable[[Tensor], Tensor],
) -> Float[Tensor, "L+1 B T V"]:
    """Read every state as if it were the last: the final norm, then the unembedding.

        out[l] = unembed(ln_f(stream[l]))

    The states of `run_stream` are not yet normalised, the last one neither. `ln_f` takes one state (B,T,C) and
    `unembed` takes what it returns to (B,T,V).

    By hand: if ln_f halves and unembed sends (a, b) to (a, b, a + b), the states (2, 4) and (6, 0) give
    (1, 2, 3) and (3, 0, 3).

    Source: nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    raise NotImplementedError


def steer(
    resid: Float[Tensor, "B T C"],
    direction: Float[Tensor, "C"],
    strength: float,
    positions: list[int] | None = None,
) -> Float[Tensor, "B T C"]:
    """Push the stream along a direction, at all positions or at those listed.

        out[b,t,c] = resid[b,t,c] + strength * direction[c]        for t in positions, all t where it is None
        out[b,t,c] = resid[b,t,c]                                  elsewhere

    The direction is taken as it is, at its own length. An empty list steers nothing; negative positions count
    from the end, as in any Python list.

    By hand (B = 1, T = C = 2): resid = [[1, 1], [2, 2]], direction (0, 3), strength 2 and positions [1] give
    [[1, 1], [2, 8]].

    Source: Turner et al. 2023, "Steering Language Models With Activation Engineering".
    """
    raise NotImplementedError


def contributions(stream: list[Float[Tensor, "B T C"]], direction: Float[Tensor, "C"]) -> Float[Tensor, "L+1 B T"]:
    """Split the last state's dot product with a direction into what the embedding and each layer added to it.

        out[0,b,t] = sum_c stream[0][b,t,c] direction[c]
        out[l,b,t] = sum_c (stream[l][b,t,c] - stream[l-1][b,t,c]) direction[c]        l = 1 .. L

    Summed over l this is the last state's own dot product. The direction is taken as it is, at its own length.

    By hand (B = T = 1): the states (1, 0), (1, 2), (4, 2) and the direction (1, 1) give 1, 2, 3; their sum is
    4 + 2 = 6.

    Source: Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Residual stream".
    """
    raise NotImplementedError
