"""Calls of a learner's 05_residual_stream whose arguments are callables or lists of states.

The grader hands over plain tensors; here they become a block's four parts, a stack of blocks, a norm and an
unembedding, and the learner's function is called with them.
"""

import torch
import torch.nn.functional as F


def norm(weight, bias):
    """A layer norm with this gain and bias."""
    return lambda x: F.layer_norm(x, weight.shape, weight, bias)


def attention(attn_w, attn_b, attn_proj_w, attn_proj_b, n_head):
    """Causal attention that returns what it writes."""

    def attn(x):
        q, k, v = (part.unflatten(-1, (n_head, -1)).transpose(-2, -3) for part in (x @ attn_w + attn_b).chunk(3, dim=-1))
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return z.transpose(-2, -3).flatten(-2) @ attn_proj_w + attn_proj_b

    return attn


def perceptron(mlp_fc_w, mlp_fc_b, mlp_proj_w, mlp_proj_b):
    """An MLP that returns what it writes."""
    return lambda x: F.gelu(x @ mlp_fc_w + mlp_fc_b, approximate="tanh") @ mlp_proj_w + mlp_proj_b


def reading(unembed_w):
    """The unembedding with a table (V,C)."""
    return lambda x: F.linear(x, unembed_w)


def block(weight):
    """A block that returns the whole stream: its input, and what it writes to it."""
    return lambda x: x + torch.tanh(x @ weight)


def pre_norm_block(
    module,
    resid,
    ln_1_w,
    ln_1_b,
    attn_w,
    attn_b,
    attn_proj_w,
    attn_proj_b,
    ln_2_w,
    ln_2_b,
    mlp_fc_w,
    mlp_fc_b,
    mlp_proj_w,
    mlp_proj_b,
    n_head,
):
    attn = attention(attn_w, attn_b, attn_proj_w, attn_proj_b, n_head)
    mlp = perceptron(mlp_fc_w, mlp_fc_b, mlp_proj_w, mlp_proj_b)
    return module.pre_norm_block(resid, attn, mlp, norm(ln_1_w, ln_1_b), norm(ln_2_w, ln_2_b))


def run_stream(module, resid, block_w, **skip):
    """Run blocks that take note when they are called: the number of states, the states, and the layers called."""
    called = set()

    def noted(layer, function):
        def run(x):
            called.add(layer)
            return function(x)

        return run

    blocks = [noted(layer, block(weight)) for layer, weight in enumerate(block_w)]
    states = module.run_stream(resid, blocks, **skip)
    return (*counted(states), sorted(called))


def counted(states):
    """How many states there are (the type, where it is no list), and all of them as one tensor where they fit together."""
    if not isinstance(states, (list, tuple)):
        return type(states).__name__, states
    same = all(isinstance(state, torch.Tensor) and state.shape == states[0].shape for state in states)
    return len(states), torch.stack(list(states)) if states and same else list(states)


def logit_lens(module, stream, ln_f_w, ln_f_b, unembed_w):
    with _Watched(stream) as states:
        return module.logit_lens(states, norm(ln_f_w, ln_f_b), reading(unembed_w))


def contributions(module, stream, direction):
    with _Watched(stream) as states:
        return module.contributions(states, direction)


class _Watched:
    """The stream as a list of states. Where the list comes back changed, its tensor is spoilt, so that it shows."""

    def __init__(self, stream):
        self.stream = stream
        self.states = list(stream.unbind(0))
        self.before = list(self.states)

    def __enter__(self):
        return self.states

    def __exit__(self, *exception):
        if len(self.states) != len(self.before) or any(a is not b for a, b in zip(self.states, self.before, strict=False)):
            with torch.no_grad():
                self.stream.add_(1)
