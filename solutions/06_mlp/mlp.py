"""The MLP: one position at a time, F neurons look for something in the stream and write when they find it.

Write the functions in the order they stand here.

Sizes    B batch · T positions · C channels · F MLP width (4*C in GPT-2, any number here) · N directions
Tensors  x (...,C) -> mlp_pre (...,F) -> mlp_post (...,F) -> mlp_out (...,C)
Weights  (in, out), as in GPT-2's released file: x @ w + b, no transpose
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

# BEGIN SOLUTION
from torch.nn.functional import linear

# END SOLUTION


def relu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Keep what is positive and replace the rest by zero, entry by entry.

        out = x where x > 0, else 0

    By hand: [-2, 0, 3] gives [0, 0, 3].

    Source: Nair and Hinton 2010, "Rectified Linear Units Improve Restricted Boltzmann Machines".
    """
    # BEGIN SOLUTION
    return torch.where(x <= 0, 0, x)  # asked this way round, a NaN is neither, so it stays visible
    # END SOLUTION


def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Apply GELU in GPT-2's form, which puts a tanh in the place of the exact Gaussian integral.

        out = x/2 * (1 + tanh(u))        u = sqrt(2/pi) * (x + 0.044715 x^3)

    By hand: gelu(0) = 0. For x = 1, u = 0.79788 * 1.044715 = 0.83356, tanh(u) = 0.68238 and gelu(1) = 0.84119.
    As tanh is odd, gelu(x) - gelu(-x) = x for every x, so gelu(-1) = -0.15881.

    Source: Hendrycks and Gimpel 2016, "Gaussian Error Linear Units (GELUs)", section 2 (the tanh approximation).
    """
    # BEGIN SOLUTION
    twice_u = 2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    return x * torch.sigmoid(twice_u)  # (1 + tanh u) / 2 = 1 / (1 + exp(-2u)), and the sigmoid is the faster of the two
    # END SOLUTION


def mlp(
    x: Float[Tensor, "*batch C"],
    c_fc_w: Float[Tensor, "C F"],
    c_fc_b: Float[Tensor, "F"],
    c_proj_w: Float[Tensor, "F C"],
    c_proj_b: Float[Tensor, "C"],
) -> Float[Tensor, "*batch C"]:
    """Expand to F neurons, apply GPT-2's GELU, and project back to the stream's C channels.

        mlp_pre[...,f] = sum_c x[...,c] c_fc_w[c,f] + c_fc_b[f]        mlp_post = gelu(mlp_pre)
        mlp_out[...,c] = sum_f mlp_post[...,f] c_proj_w[f,c] + c_proj_b[c]

    F is whatever the weights say, and x may have any number of axes before its last.

    By hand (C = 1, F = 2): c_fc_w = [[10, -10]], c_proj_w = [[1], [1]], no biases. x = 1 gives mlp_pre = (10, -10),
    mlp_post = (10, 0) and mlp_out = 10; x = -1 gives 10 too. No single matrix can do that.

    Source: Vaswani et al. 2017, "Attention Is All You Need", equation 2; GELU in the place of its ReLU is in
    Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", section 4.1.
    """
    # BEGIN SOLUTION
    # linear(x, w.T, b) is x @ w + b, with the bias added on the way.
    mlp_post = gelu(linear(x, c_fc_w.T, c_fc_b))
    return linear(mlp_post, c_proj_w.T, c_proj_b)
    # END SOLUTION


def swiglu(
    x: Float[Tensor, "*batch C"],
    w_gate: Float[Tensor, "C F"],
    w_up: Float[Tensor, "C F"],
    w_down: Float[Tensor, "F C"],
) -> Float[Tensor, "*batch C"]:
    """Let one projection open or close the neurons that another one fills, and project back. There are no biases.

        gate = x @ w_gate        up = x @ w_up        silu(a) = a / (1 + exp(-a))
        out[...,c] = sum_f silu(gate[...,f]) up[...,f] w_down[f,c]

    Finite for gates of any size, in the gradient too: exp(-a) is not, for a = -1000.

    By hand (C = F = 1): w_gate = [[ln 3]], w_up = [[4]], w_down = [[2]], x = 1. The gate is ln 3, and
    1 / (1 + 1/3) = 3/4, so out = 3/4 ln 3 * 4 * 2 = 6 ln 3 = 6.5917.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", equation 6.
    """
    # BEGIN SOLUTION
    gate = x @ w_gate
    silu = gate * torch.sigmoid(gate)
    return (silu * (x @ w_up)) @ w_down
    # END SOLUTION


def and_neuron(
    directions: Float[Tensor, "N C"], answer: Float[Tensor, "C"]
) -> tuple[Float[Tensor, "C 1"], Float[Tensor, "1"], Float[Tensor, "1 C"], Float[Tensor, "C"]]:
    """Build the weights of a one-neuron ReLU MLP that writes `answer` when all the directions are present.

        relu(x @ c_fc_w + c_fc_b) @ c_proj_w + c_proj_b = answer      where directions[n] . x = 1 for every n
                                                        = 0           where it is 0 for one or more, 1 for the others

    The directions are orthonormal: each has length 1, and any two have dot product 0. Returns c_fc_w, c_fc_b,
    c_proj_w, c_proj_b, in the dtype and on the device of `directions`. More than one choice of weights does it.

    By hand (N = C = 2): directions (1, 0) and (0, 1), answer (0, 5). Then x = (1, 1) gives (0, 5), while
    (1, 0), (0, 1) and (0, 0) give (0, 0).

    Source: McCulloch and Pitts 1943, "A logical calculus of the ideas immanent in nervous activity" (a threshold
    unit that computes AND).
    """
    # BEGIN SOLUTION
    n = directions.shape[0]
    c_fc_w = directions.sum(0).unsqueeze(1)  # (C,1): its dot product with x counts the directions that are present
    c_fc_b = directions.new_full((1,), 1 - n)  # n of them leave 1, n - 1 leave 0
    c_proj_w = answer.unsqueeze(0)  # (1,C)
    c_proj_b = torch.zeros_like(answer)  # written whatever x is, so nothing
    return c_fc_w, c_fc_b, c_proj_w, c_proj_b
    # END SOLUTION


def key_value_memory(
    x: Float[Tensor, "B T C"],
    c_fc_w: Float[Tensor, "C F"],
    c_fc_b: Float[Tensor, "F"],
    c_proj_w: Float[Tensor, "F C"],
) -> Float[Tensor, "B T F C"]:
    """Split what the MLP writes into what each neuron writes: its activation times its row of `c_proj_w`.

        out[b,t,f,c] = mlp_post[b,t,f] c_proj_w[f,c]        mlp_post as in `mlp`

    Summed over f this is mlp_out without c_proj_b, which belongs to no neuron.

    By hand (B = T = 1, F = C = 2): mlp_post = (10, 0) and c_proj_w = [[1, 2], [3, 4]] give
    [[10, 20], [0, 0]].

    Source: Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories", equation 1.
    """
    # BEGIN SOLUTION
    mlp_post = gelu(x @ c_fc_w + c_fc_b)
    return mlp_post.unsqueeze(-1) * c_proj_w
    # END SOLUTION
