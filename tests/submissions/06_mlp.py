"""Submissions of 06_mlp: patches on the solution, with what the grader must say of them."""


# %% wrong: the library's GELU as it comes
# expect: gelu fail at gelu_out as gelu-exact
def gelu(x):
    return torch.nn.functional.gelu(x)


# %% wrong: nn.GELU() made in the MLP
# expect: mlp fail at mlp_post as mlp-gelu-exact
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    act = torch.nn.GELU()
    h = act(x @ c_fc_w + c_fc_b)
    return h @ c_proj_w + c_proj_b


# %% wrong: erf written out
# expect: gelu fail as gelu-exact
def gelu(x):
    cdf = 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
    return x * cdf


# %% wrong: QuickGELU
# expect: gelu fail as gelu-by-1702
def gelu(x):
    return x * torch.sigmoid(1.702 * x)


# %% wrong: QuickGELU in the MLP
# expect: mlp fail at mlp_post as mlp-gelu-by-1702
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    a = x @ c_fc_w + c_fc_b
    a = a / (1 + torch.exp(-1.702 * a))
    return a @ c_proj_w + c_proj_b


# %% wrong: 1.702 inside the tanh
# expect: gelu fail as gelu-factor-1702
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(1.702 * (x + 0.044715 * torch.pow(x, 3))))


# %% wrong: sqrt(2/pi) inside a sigmoid
# expect: gelu fail as gelu-sigmoid-of-x-by-root
def gelu(x):
    return x * torch.sigmoid(math.sqrt(2 / math.pi) * x)


# %% wrong: the bracket closes too early
# expect: gelu fail as gelu-bracket-closes-early
def gelu(x):
    c = math.sqrt(2 / math.pi)
    return 0.5 * x * (1 + torch.tanh(c * x + 0.044715 * x**3))


# %% wrong: no half
# expect: gelu fail as gelu-half-missing
def gelu(x):
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x.pow(3))))


# %% wrong: x once too often
# expect: gelu fail as gelu-x-twice
def gelu(x):
    t = torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1 + t) * x


# %% wrong: sqrt(2)/pi
# expect: gelu fail as gelu-root-misses-pi
def gelu(x):
    return x / 2 * (1 + torch.tanh(math.sqrt(2) / math.pi * (x + 0.044715 * x**3)))


# %% wrong: sqrt(pi/2)
# expect: gelu fail as gelu-root-upside-down
def gelu(x):
    return x / 2 * (1 + torch.tanh(math.sqrt(math.pi / 2) * (x + 0.044715 * x**3)))


# %% wrong: 0.44715
# expect: gelu fail as gelu-cube-ten-times
def gelu(x):
    return x / 2 * (1 + torch.tanh((2 / math.pi) ** 0.5 * (x + 0.44715 * x**3)))


# %% wrong: the root forgotten
# expect: gelu fail as gelu-root-missing
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(2 / math.pi * (x + 0.044715 * x**3)))


# %% wrong: two constants wrong at once
# expect: gelu fail as gelu-root-misses-pi + gelu-cube-ten-times
def gelu(x):
    k = math.sqrt(2.0) / math.pi
    return 0.5 * x * (1 + torch.tanh(k * (x + 0.44715 * x**3)))


# %% wrong: no half and the bracket closes too early
# expect: gelu fail as gelu-half-missing + gelu-bracket-closes-early
def gelu(x):
    inner = math.sqrt(2 / math.pi) * x + 0.044715 * x**3
    return x * (1 + inner.tanh())


# %% wrong: square for cube
# expect: gelu fail as gelu-square-for-cube
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**2)))


# %% wrong: no cube at all
# expect: gelu fail as gelu-cube-missing
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * x))


# %% wrong: sigmoid(u) where sigmoid(2u) is meant
# expect: gelu fail as gelu-u-halved
def gelu(x):
    u = 0.7978845608 * (x + 0.044715 * x**3)
    return x * torch.sigmoid(u)


# %% wrong: tanh by two exponentials
# expect: gelu fail as gelu-overflows
def gelu(x):
    u = 0.7978845608028654 * (x + 0.044715 * x**3)
    return 0.5 * x * (1 + (u.exp() - (-u).exp()) / (u.exp() + (-u).exp()))


# %% wrong: SiLU
# expect: gelu fail as gelu-silu
def gelu(x):
    return torch.nn.functional.silu(x)


# %% wrong: ReLU in the MLP
# expect: mlp fail at mlp_post as mlp-gelu-relu
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    hidden = relu(x @ c_fc_w + c_fc_b)
    return hidden @ c_proj_w + c_proj_b


# %% wrong: SiLU in the MLP
# expect: mlp fail at mlp_post as mlp-gelu-silu
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    hidden = torch.nn.functional.silu(x @ c_fc_w + c_fc_b)
    return hidden @ c_proj_w + c_proj_b


# %% wrong: the whole expression halved and shifted
# expect: gelu fail as ?
def gelu(x):
    return 0.5 * x * (1.01 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# %% wrong: GELU in float32
# expect: gelu fail as dtype-not-kept
def gelu(x):
    y = x.float()
    return 0.5 * y * (1 + torch.tanh(math.sqrt(2 / math.pi) * (y + 0.044715 * y**3)))


# %% wrong: GELU cut off from the graph
# expect: gelu fail at x.grad as gradient-cut-off
def gelu(x):
    with torch.no_grad():
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


# %% wrong: GELU written into its argument
# expect: gelu fail as argument-changed-in-place
def gelu(x):
    u = math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)
    x *= 0.5 * (1 + torch.tanh(u))
    return x


# %% wrong: negative entries set in place
# expect: relu fail as argument-changed-in-place
def relu(x):
    x[x < 0] = 0
    return x


# %% wrong: the mask in place of the entries
# expect: relu fail at relu_out as relu-step
def relu(x):
    return (x > 0).to(x.dtype)


# %% wrong: torch.max with an axis
# expect: relu fail as relu-largest-along-an-axis
def relu(x):
    return torch.max(x, 0).values


# %% wrong: torch.maximum with a number
# expect: relu error as relu-maximum-of-a-number
def relu(x):
    return torch.maximum(x, 0)


# %% wrong: if on a tensor
# expect: relu error as relu-one-truth-for-all
def relu(x):
    if x > 0:
        return x
    return torch.zeros_like(x)


# %% wrong: Python's max
# expect: relu error as relu-one-truth-for-all
def relu(x):
    return max(x, 0)


# %% wrong: a leak
# expect: relu fail as relu-leaky
def relu(x):
    return torch.where(x > 0, x, 0.01 * x)


# %% wrong: entries dropped
# expect: relu fail as relu-drops-entries
def relu(x):
    keep = x > 0
    return x[keep]


# %% wrong: the other half
# expect: relu fail as relu-keeps-the-negative
def relu(x):
    return torch.clamp(x, max=0.0)


# %% wrong: activation behind the second matrix
# expect: mlp fail at mlp_post as bend-after-second-matrix
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    hidden = x @ c_fc_w + c_fc_b
    return gelu(hidden @ c_proj_w + c_proj_b)


# %% wrong: no activation
# expect: mlp fail at mlp_post as bend-missing
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    hidden = x @ c_fc_w + c_fc_b
    return hidden @ c_proj_w + c_proj_b


# %% wrong: activation before the first matrix
# expect: mlp fail at mlp_pre as bend-before-first-matrix
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return (gelu(x) @ c_fc_w + c_fc_b) @ c_proj_w + c_proj_b


# %% wrong: activation at both places
# expect: mlp fail at mlp_out as bend-also-after-second-matrix
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    for w, b in ((c_fc_w, c_fc_b), (c_proj_w, c_proj_b)):
        x = gelu(x @ w + b)
    return x


# %% wrong: weights used as (out, in)
# expect: mlp error at mlp_pre as fc-weight-transposed + output-weight-transposed
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = gelu(torch.nn.functional.linear(x, c_fc_w, c_fc_b))
    return torch.nn.functional.linear(h, c_proj_w, c_proj_b)


# %% wrong: second weight used as (out, in)
# expect: mlp error at mlp_out as output-weight-transposed
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = gelu(x @ c_fc_w + c_fc_b)
    return torch.nn.functional.linear(h, c_proj_w, c_proj_b)


# %% wrong: as many neurons as channels
# expect: mlp fail at mlp_pre as width-equals-channels
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    d = x.shape[-1]
    h = gelu(x @ c_fc_w[:, :d] + c_fc_b[:d])
    return h @ c_proj_w[:d] + c_proj_b


# %% wrong: four times as many neurons as channels
# expect: mlp error at mlp_pre as width-reshaped-to-four-times
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    *axes, C = x.shape
    h = gelu((x @ c_fc_w + c_fc_b).view(*axes, 4 * C))
    return h @ c_proj_w + c_proj_b


# %% wrong: three axes, and four times as many neurons
# expect: mlp error at mlp_pre as width-reshaped-to-four-times + three-axes-unpacked
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    B, T, C = x.shape
    h = gelu((x @ c_fc_w + c_fc_b).view(B, T, 4 * C))
    return h @ c_proj_w + c_proj_b


# %% wrong: no biases
# expect: mlp fail at mlp_pre as fc-bias-missing + output-bias-missing
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return gelu(x @ c_fc_w) @ c_proj_w


# %% wrong: first bias forgotten
# expect: mlp fail at mlp_pre as fc-bias-missing
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return gelu(x @ c_fc_w) @ c_proj_w + c_proj_b


# %% wrong: second bias forgotten
# expect: mlp fail at mlp_out as output-bias-missing
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return gelu(x @ c_fc_w + c_fc_b) @ c_proj_w


# %% wrong: bias behind the bend
# expect: mlp fail at mlp_post as fc-bias-after-bend
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return (gelu(x @ c_fc_w) + c_fc_b) @ c_proj_w + c_proj_b


# %% wrong: the stream is added
# expect: mlp fail at mlp_out as residual-added
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return x + gelu(x @ c_fc_w + c_fc_b) @ c_proj_w + c_proj_b


# %% wrong: no bias and another bend
# expect: mlp fail at mlp_pre as fc-bias-missing + mlp-gelu-relu
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return torch.relu(x @ c_fc_w) @ c_proj_w + c_proj_b


# %% wrong: exact GELU, no output bias, stream added
# expect: mlp fail at mlp_post as mlp-gelu-exact + output-bias-missing + residual-added
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = torch.nn.functional.gelu(x @ c_fc_w + c_fc_b)
    return x + h @ c_proj_w


# %% wrong: dropout that never sleeps
# expect: mlp fail as differs-from-call-to-call
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    out = gelu(x @ c_fc_w + c_fc_b) @ c_proj_w + c_proj_b
    return torch.nn.functional.dropout(out, 0.1)


# %% wrong: a dropout module in training mode
# expect: mlp fail as differs-from-call-to-call
_drop = torch.nn.Dropout(0.1)


def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    hidden = _drop(gelu(x @ c_fc_w + c_fc_b))
    return hidden @ c_proj_w + c_proj_b


# %% wrong: three axes unpacked
# expect: mlp error as three-axes-unpacked
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    B, T, C = x.shape
    flat = x.reshape(B * T, C)
    h = gelu(flat @ c_fc_w + c_fc_b)
    return (h @ c_proj_w + c_proj_b).reshape(B, T, C)


# %% wrong: three letters in einsum
# expect: mlp error as three-letters-in-einsum
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = gelu(torch.einsum("btc,cf->btf", x, c_fc_w) + c_fc_b)
    return torch.einsum("btf,fc->btc", h, c_proj_w) + c_proj_b


# %% wrong: convolution that wants three axes
# expect: mlp error as three-axes-transposed
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = torch.nn.functional.conv1d(x.transpose(1, 2), c_fc_w.T.unsqueeze(-1), c_fc_b)
    return torch.nn.functional.conv1d(gelu(h), c_proj_w.T.unsqueeze(-1), c_proj_b).transpose(1, 2)


# %% wrong: gelu and mlp wrong together
# expect: gelu fail as gelu-half-missing
# expect: mlp fail at mlp_out as output-bias-missing
def gelu(x):
    return x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return gelu(x @ c_fc_w + c_fc_b) @ c_proj_w


# %% wrong: GLU
# expect: swiglu fail at gated as gate-sigmoid
def swiglu(x, w_gate, w_up, w_down):
    return (torch.sigmoid(x @ w_gate) * (x @ w_up)) @ w_down


# %% wrong: GEGLU with the library's GELU
# expect: swiglu fail at gated as gate-exact-gelu
def swiglu(x, w_gate, w_up, w_down):
    gate = torch.nn.functional.gelu(x @ w_gate)
    return (gate * (x @ w_up)) @ w_down


# %% wrong: GEGLU with the gelu above
# expect: swiglu fail at gated as gate-tanh-gelu
def swiglu(x, w_gate, w_up, w_down):
    return (gelu(x @ w_gate) * (x @ w_up)) @ w_down


# %% wrong: the bend on the value side
# expect: swiglu fail at gated as bend-on-up
def swiglu(x, w_gate, w_up, w_down):
    silu = torch.nn.functional.silu
    return ((x @ w_gate) * silu(x @ w_up)) @ w_down


# %% wrong: no bend in SwiGLU
# expect: swiglu fail at gated as gate-not-bent
def swiglu(x, w_gate, w_up, w_down):
    return ((x @ w_gate) * (x @ w_up)) @ w_down


# %% wrong: Linear layers with their biases
# expect: swiglu fail as differs-from-call-to-call
def swiglu(x, w_gate, w_up, w_down):
    def linear(x, w):
        layer = torch.nn.Linear(w.shape[0], w.shape[1], dtype=x.dtype, device=x.device)
        return torch.nn.functional.linear(x, w.T, layer.bias)

    return linear(torch.nn.functional.silu(linear(x, w_gate)) * linear(x, w_up), w_down)


# %% wrong: silu by exp above and below
# expect: swiglu fail as gate-overflows
def swiglu(x, w_gate, w_up, w_down):
    g = x @ w_gate
    return (g * torch.exp(g) / (1 + torch.exp(g)) * (x @ w_up)) @ w_down


# %% wrong: silu by exp below
# expect: swiglu fail at x.grad as gate-gradient-overflows
def swiglu(x, w_gate, w_up, w_down):
    g = x @ w_gate
    return (g / (1 + torch.exp(-g)) * (x @ w_up)) @ w_down


# %% wrong: sum for product, and a sigmoid
# expect: swiglu fail at gated as gate-sigmoid + gate-and-up-added
def swiglu(x, w_gate, w_up, w_down):
    return (torch.sigmoid(x @ w_gate) + x @ w_up) @ w_down


# %% wrong: w_up never used
# expect: swiglu fail at gated as up-missing
def swiglu(x, w_gate, w_up, w_down):
    g = x @ w_gate
    return g * torch.sigmoid(g) @ w_down


# %% wrong: one matrix twice
# expect: swiglu fail at up as up-uses-w-gate
def swiglu(x, w_gate, w_up, w_down):
    g, u = x @ w_gate, x @ w_gate
    return (g * torch.sigmoid(g) * u) @ w_down


# %% wrong: weights of SwiGLU used as (out, in)
# expect: swiglu error at gate as swiglu-weights-transposed
def swiglu(x, w_gate, w_up, w_down):
    linear = torch.nn.functional.linear
    return linear(torch.nn.functional.silu(linear(x, w_gate)) * linear(x, w_up), w_down)


# %% wrong: SwiGLU unpacks three axes
# expect: swiglu error as swiglu-three-axes-unpacked
def swiglu(x, w_gate, w_up, w_down):
    B, T, C = x.shape
    g = x @ w_gate
    return (g * g.sigmoid() * (x @ w_up)) @ w_down


# %% wrong: silu over the product
# expect: swiglu fail at gated as bend-on-product
def swiglu(x, w_gate, w_up, w_down):
    return torch.nn.functional.silu((x @ w_gate) * (x @ w_up)) @ w_down


# %% wrong: stream added to SwiGLU
# expect: swiglu fail at swiglu_out as swiglu-residual-added
def swiglu(x, w_gate, w_up, w_down):
    return x + (torch.nn.functional.silu(x @ w_gate) * (x @ w_up)) @ w_down


# %% wrong: a neuron without bias
# expect: and_neuron fail at written as and-bias-missing
def and_neuron(directions, answer):
    C = len(answer)
    w = directions.sum(dim=0).view(C, 1)
    zero = torch.zeros(1, dtype=directions.dtype, device=directions.device)
    return w, zero, answer.view(1, C), torch.zeros_like(answer)


# %% wrong: the bias takes everything back
# expect: and_neuron fail at written as and-never-fires
def and_neuron(directions, answer):
    n = directions.shape[0]
    return directions.sum(0)[:, None], directions.new_tensor([-float(n)]), answer[None], torch.zeros_like(answer)


# %% wrong: a threshold half way
# expect: and_neuron fail at written as and-bias-half-way
def and_neuron(directions, answer):
    n = directions.shape[0]
    return directions.sum(0)[:, None], directions.new_tensor([0.5 - n]), answer[None], torch.zeros_like(answer)


# %% wrong: one half is to be passed, however many directions
# expect: and_neuron fail at written as and-bias-minus-one-half
def and_neuron(directions, answer):
    threshold = torch.full((1,), 0.5, dtype=directions.dtype, device=directions.device)
    return directions.sum(0, keepdim=True).T, -threshold, answer.unsqueeze(0), torch.zeros_like(answer)


# %% wrong: the bias of two directions
# expect: and_neuron fail at written as and-bias-for-two-directions
def and_neuron(directions, answer):
    return directions.sum(0)[:, None], directions.new_tensor([-1.0]), answer[None], torch.zeros_like(answer)


# %% wrong: the answer in the output bias
# expect: and_neuron fail at written as and-answer-always-written
def and_neuron(directions, answer):
    n = directions.shape[0]
    return directions.sum(0)[:, None], directions.new_tensor([1.0 - n]), answer[None], answer


# %% wrong: averaged directions with a bias to match
# expect: and_neuron fail at written as and-answer-divided
def and_neuron(directions, answer):
    n = directions.shape[0]
    return directions.mean(0)[:, None], directions.new_tensor([1 / n - 1]), answer[None], torch.zeros_like(answer)


# %% wrong: averaged directions with the bias of a sum
# expect: and_neuron fail at written as and-fires-for-one-direction-only
def and_neuron(directions, answer):
    n = directions.shape[0]
    return directions.mean(0)[:, None], directions.new_tensor([1.0 - n]), answer[None], torch.zeros_like(answer)


# %% wrong: channels counted for directions
# expect: and_neuron fail at written as and-bias-from-channels
def and_neuron(directions, answer):
    n = directions.shape[1]
    return directions.sum(0)[:, None], directions.new_tensor([1.0 - n]), answer[None], torch.zeros_like(answer)


# %% wrong: flat weights
# expect: and_neuron fail at weights as and-key-flat + and-value-flat
def and_neuron(directions, answer):
    n = directions.shape[0]
    return directions.sum(0), directions.new_tensor([1.0 - n]), answer, torch.zeros_like(answer)


# %% wrong: a neuron for each direction
# expect: and_neuron fail at weights as and-one-neuron-a-direction
def and_neuron(directions, answer):
    n, c = directions.shape
    return directions.T, directions.new_zeros(n), answer.repeat(n, 1), torch.zeros_like(answer)


# %% wrong: biases in the default type
# expect: and_neuron fail at weights as and-bias-in-float32 + and-output-bias-in-float32
def and_neuron(directions, answer):
    n, c = directions.shape
    return directions.sum(0).reshape(c, 1), torch.tensor([1.0 - n]), answer.reshape(1, c), torch.zeros(c)


# %% wrong: a bias of whole numbers
# expect: and_neuron fail at weights as and-bias-of-whole-numbers
def and_neuron(directions, answer):
    n, c = directions.shape
    return directions.sum(0).reshape(c, 1), torch.tensor([1 - n]), answer.reshape(1, c), torch.zeros_like(answer)


# %% wrong: no bias and the answer always written
# expect: and_neuron fail at written as and-bias-missing + and-answer-always-written
def and_neuron(directions, answer):
    b = directions.new_zeros(1)
    return directions.sum(0)[:, None], b, answer[None], answer.clone()


# %% wrong: an AND that fires nowhere known
# expect: and_neuron fail at written as ?
def and_neuron(directions, answer):
    n = directions.shape[0]
    return 3 * directions.sum(0)[:, None], directions.new_tensor([2.0 - 3 * n]), 0.3 * answer[None], torch.zeros_like(answer)


# %% wrong: the writes summed
# expect: key_value_memory fail at writes as memory-summed
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    return gelu(x @ c_fc_w + c_fc_b) @ c_proj_w


# %% wrong: scaled before the bend
# expect: key_value_memory fail at mlp_post as memory-scaled-by-mlp-pre
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = x @ c_fc_w + c_fc_b
    return m[..., None] * c_proj_w


# %% wrong: keys written
# expect: key_value_memory fail at writes as memory-writes-keys
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = gelu(x @ c_fc_w + c_fc_b)
    return torch.einsum("btf,cf->btfc", m, c_fc_w)


# %% wrong: memory with ReLU
# expect: key_value_memory fail at mlp_post as mlp-gelu-relu
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = torch.relu(x @ c_fc_w + c_fc_b)
    return m.unsqueeze(-1) * c_proj_w


# %% wrong: memory as attention
# expect: key_value_memory fail at mlp_post as mlp-softmax
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = torch.softmax(x @ c_fc_w + c_fc_b, dim=-1)
    return m.unsqueeze(-1) * c_proj_w


# %% wrong: memory without its bias, axes exchanged
# expect: key_value_memory fail at mlp_pre as fc-bias-missing + memory-channels-before-neurons
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = gelu(x @ c_fc_w)
    return torch.einsum("btf,fc->btcf", m, c_proj_w)


# %% wrong: axis at the wrong end
# expect: key_value_memory error at writes as memory-activation-on-channels
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = gelu(x @ c_fc_w + c_fc_b)
    return m.unsqueeze(-2) * c_proj_w


# %% wrong: neurons before positions
# expect: key_value_memory fail at writes as memory-neurons-before-positions
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = gelu(x @ c_fc_w + c_fc_b)
    return torch.stack([m[..., f, None] * c_proj_w[f] for f in range(c_proj_w.shape[0])], dim=1)


# %% right: GELU by a factored cube
def gelu(x):
    return 0.5 * x * (1 + torch.tanh(0.7978845608 * x * (1 + 0.044715 * x * x)))


# %% right: GELU by the library's tanh form
def gelu(x):
    return torch.nn.functional.gelu(x, approximate="tanh")


# %% right: GELU by a sigmoid
def gelu(x):
    return x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3)))


# %% right: GELU with the digits of the lesson, in float64 inside
def gelu(x):
    wide = x.double()
    return (0.5 * wide * (1 + torch.tanh(0.79788 * (wide + 0.044715 * wide**3)))).to(x.dtype)


# %% right: constants as tensors of the input's type
def gelu(x):
    c = torch.tensor(2 / math.pi, dtype=x.dtype, device=x.device).sqrt()
    k = torch.tensor(0.044715, dtype=x.dtype, device=x.device)
    return x * (1 + torch.tanh(c * (x + k * x**3))) / 2


# %% right: relu by a product
def relu(x):
    return x * (x > 0)


# %% right: relu by clamp
def relu(x):
    return x.clamp(min=0)


# %% right: relu by halves
def relu(x):
    return (x + x.abs()) / 2


# %% right: relu in place on a copy
def relu(x):
    out = x.clone()
    out[out < 0] = 0
    return out


# %% right: relu by maximum
def relu(x):
    return torch.maximum(x, torch.zeros_like(x))


# %% right: F.linear with transposed views
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    linear = torch.nn.functional.linear
    return linear(gelu(linear(x, c_fc_w.t(), c_fc_b)), c_proj_w.t(), c_proj_b)


# %% right: einsum with any axes
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = gelu(torch.einsum("...c,cf->...f", x, c_fc_w) + c_fc_b)
    return torch.einsum("...f,fc->...c", h, c_proj_w) + c_proj_b


# %% right: convolution of width one
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    conv = torch.nn.functional.conv1d
    flat = x.reshape(-1, x.shape[-1], 1)
    out = conv(gelu(conv(flat, c_fc_w.T.unsqueeze(-1), c_fc_b)), c_proj_w.T.unsqueeze(-1), c_proj_b)
    return out.reshape(x.shape)


# %% right: Conv1D's addmm on a flat view
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    def conv1d(x, w, b):
        return torch.addmm(b, x.reshape(-1, x.size(-1)), w).view(*x.shape[:-1], w.shape[1])

    return conv1d(gelu(conv1d(x, c_fc_w, c_fc_b)), c_proj_w, c_proj_b)


# %% right: neuron by neuron
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    out = c_proj_b.expand(*x.shape[:-1], -1)
    for f in range(c_fc_w.shape[1]):
        activation = gelu((x * c_fc_w[:, f]).sum(-1) + c_fc_b[f])
        out = out + activation.unsqueeze(-1) * c_proj_w[f]
    return out


# %% right: in place on its own tensors, float64 inside
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = x.double() @ c_fc_w.double()
    h += c_fc_b
    out = gelu(h) @ c_proj_w.double()
    out += c_proj_b
    return out.to(x.dtype)


# %% right: MLP through the memory
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return key_value_memory(x, c_fc_w, c_fc_b, c_proj_w).sum(-2) + c_proj_b


# %% right: dropout that is asleep
def mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    h = torch.nn.functional.dropout(gelu(x @ c_fc_w + c_fc_b), 0.1, training=False)
    return h @ c_proj_w + c_proj_b


# %% right: up times silu, gate computed twice
def swiglu(x, w_gate, w_up, w_down):
    return ((x @ w_up) * ((x @ w_gate) * torch.sigmoid(1.0 * (x @ w_gate)))) @ w_down


# %% right: SwiGLU with one stacked matrix
def swiglu(x, w_gate, w_up, w_down):
    gate, up = (x @ torch.cat([w_gate, w_up], dim=1)).chunk(2, dim=-1)
    return (torch.nn.functional.silu(gate) * up) @ w_down


# %% right: SwiGLU neuron by neuron
def swiglu(x, w_gate, w_up, w_down):
    out = torch.zeros_like(x)
    for g, u, d in zip(w_gate.T, w_up.T, w_down):
        a = (x * g).sum(-1)
        out = out + (a * a.sigmoid() * (x * u).sum(-1)).unsqueeze(-1) * d
    return out


# %% right: silu by tanh
def swiglu(x, w_gate, w_up, w_down):
    half = (x @ w_gate) / 2
    return ((half + half * torch.tanh(half)) * (x @ w_up)) @ w_down


# %% right: a neuron that counts in thousands
def and_neuron(directions, answer):
    n = directions.shape[0]
    w = 1000 * directions.sum(0, keepdim=True).T
    return w, directions.new_tensor([1.0 - 1000 * n]), answer.unsqueeze(0).clone(), torch.zeros_like(answer)


# %% right: a threshold half way, written twice as strongly
def and_neuron(directions, answer):
    n, c = directions.shape
    b = torch.full((1,), 0.5 - n, dtype=directions.dtype, device=directions.device)
    return directions.sum(0).reshape(c, 1), b, 2 * answer.reshape(1, c), answer.new_zeros(c)


# %% right: averaged directions, written n times
def and_neuron(directions, answer):
    n, c = directions.shape
    b = torch.full((1,), 1 / n - 1).to(directions)
    return directions.mean(0).unsqueeze(-1), b, n * answer.unsqueeze(0), answer * 0


# %% right: unequal shares
def and_neuron(directions, answer):
    share = torch.arange(1, len(directions) + 1).to(directions)
    return (share @ directions)[:, None], 1 - share.sum()[None], answer[None, :], torch.zeros_like(answer)


# %% right: built entry by entry
def and_neuron(directions, answer):
    n, c = directions.shape
    w = torch.zeros(c, 1, dtype=directions.dtype, device=directions.device)
    for direction in directions:
        w[:, 0] += direction
    p = torch.zeros(1, c, dtype=answer.dtype, device=answer.device)
    p[0] = answer
    return [w, torch.ones_like(w[0]) - n, p, torch.zeros_like(answer)]


# %% right: memory by einsum
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    return torch.einsum("btf,fc->btfc", gelu(x @ c_fc_w + c_fc_b), c_proj_w)


# %% right: memory through a diagonal matrix
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    return torch.diag_embed(gelu(x @ c_fc_w + c_fc_b)) @ c_proj_w


# %% right: memory stacked neuron by neuron
def key_value_memory(x, c_fc_w, c_fc_b, c_proj_w):
    m = gelu(x @ c_fc_w + c_fc_b)
    return torch.stack([m[..., f : f + 1] * c_proj_w[f] for f in range(len(c_proj_w))], dim=-2)
