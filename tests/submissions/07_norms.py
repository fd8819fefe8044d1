"""Submissions of 07_norms: patches on the solution, with what the grader must say of them."""


# %% wrong: eps beside the root
# expect: layer_norm fail at normalised as layer-eps-outside-root
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = h.mean(-1, keepdim=True)
    std = ((h - mean) ** 2).mean(-1, keepdim=True).sqrt()
    return (weight * (h - mean) / (std + eps) + bias).to(x.dtype)


# %% wrong: eps beside the root, both norms
# expect: layer_norm fail at normalised as layer-eps-outside-root
# expect: rms_norm fail at rescaled as rms-eps-outside-root
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.double()
    std = h.std(dim=-1, correction=0, keepdim=True)
    return ((h - h.mean(dim=-1, keepdim=True)) / (std + eps) * weight + bias).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = x.double()
    return (h / (h.pow(2).mean(-1, keepdim=True).sqrt() + eps) * weight).to(x.dtype)


# %% wrong: a famous tutorial, unbiased and eps beside the root
# expect: layer_norm fail at variance as layer-variance-unbiased + layer-eps-outside-root
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(-1, keepdim=True)
    std = h.std(-1, keepdim=True)
    return (weight * (h - mean) / (std + eps) + bias).to(x.dtype)


# %% wrong: the root of the standard deviation
# expect: layer_norm fail at normalised as layer-root-of-root
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, std = h.mean(-1, keepdim=True), h.std(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(std + eps) * weight + bias).to(x.dtype)


# %% wrong: divided by the variance
# expect: layer_norm fail at normalised as layer-root-missing
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / (var + eps) * weight + bias).to(x.dtype)


# %% wrong: eps behind the division
# expect: layer_norm fail at normalised as layer-eps-after-division
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return (((h - mean) / var.sqrt() + eps) * weight + bias).to(x.dtype)


# %% wrong: no eps
# expect: layer_norm fail at normalised as layer-eps-missing
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, std = h.mean(-1, keepdim=True), h.std(-1, keepdim=True, correction=0)
    return ((h - mean) / std * weight + bias).to(x.dtype)


# %% wrong: no eps in rms_norm
# expect: rms_norm fail at rescaled as rms-eps-missing
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True)) * weight).to(x.dtype)


# %% wrong: statistics over positions
# expect: layer_norm error at mean as layer-over-axis-1
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(dim=1, keepdim=True)
    var = ((h - mean) ** 2).mean(dim=1, keepdim=True)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: statistics over the axis before the last
# expect: layer_norm error at mean as layer-over-positions
# expect: rms_norm error at mean_square as rms-over-positions
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    centred = h - h.mean(-2, True)
    return (centred * torch.rsqrt(centred.square().mean(-2, True) + eps) * weight + bias).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h * torch.rsqrt(h.square().mean(-2, True) + eps) * weight).to(x.dtype)


# %% wrong: axis 2, as for (B,T,C) alone
# expect: layer_norm error at mean as layer-over-axis-2
# expect: rms_norm error at mean_square as rms-over-axis-2
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(dim=2, keepdim=True)
    var = h.var(dim=2, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / torch.sqrt((h**2).mean(2, keepdim=True) + eps) * weight).to(x.dtype)


# %% wrong: statistics over positions and channels
# expect: layer_norm error at mean as layer-over-positions-and-channels
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(dim=(-2, -1), keepdim=True)
    var = h.var(dim=(-2, -1), keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: one number for each text
# expect: rms_norm error at mean_square as rms-over-axes-1-and-2
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h * torch.rsqrt(h.pow(2).mean(dim=(1, 2), keepdim=True) + eps) * weight).to(x.dtype)


# %% wrong: statistics over the batch
# expect: layer_norm fail at mean as layer-over-batch
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(0)
    var = ((h - mean) ** 2).mean(0)
    return ((h - mean) / (var + eps) ** 0.5 * weight + bias).to(x.dtype)


# %% wrong: BatchNorm, one mean a channel
# expect: layer_norm fail at mean as layer-over-batch-and-positions
def layer_norm(x, weight, bias, eps=1e-5):
    if x.dim() == 1:
        h = widen(x)
        return ((h - h.mean()) / (h.var(correction=0) + eps).sqrt() * weight + bias).to(x.dtype)
    h = widen(x).reshape(-1, x.shape[-1])
    mean, var = h.mean(0), h.var(0, correction=0)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).reshape(x.shape).to(x.dtype)


# %% wrong: the mean of everything
# expect: layer_norm fail at mean as layer-over-everything
# expect: rms_norm fail at mean_square as rms-over-everything
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    return ((h - h.mean()) / torch.sqrt(h.var(unbiased=False) + eps) * weight + bias).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / torch.sqrt((h * h).mean() + eps) * weight).to(x.dtype)


# %% wrong: weight and bias not used
# expect: layer_norm fail at ln_1 as layer-weight-and-bias-unused
# expect: rms_norm fail at rms_out as rms-weight-unused
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps)).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h * (h.pow(2).mean(-1, keepdim=True) + eps).rsqrt()).to(x.dtype)


# %% wrong: weight and bias exchanged
# expect: layer_norm fail at ln_1 as layer-weight-and-bias-exchanged
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    var, mean = torch.var_mean(h, -1, correction=0, keepdim=True)
    return (weight + bias * (h - mean) / torch.sqrt(var + eps)).to(x.dtype)


# %% wrong: the bias scaled as well
# expect: layer_norm fail at ln_1 as layer-bias-before-weight
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    var, mean = torch.var_mean(h, -1, correction=0, keepdim=True)
    return (weight * ((h - mean) / torch.sqrt(var + eps) + bias)).to(x.dtype)


# %% wrong: a gain for each position
# expect: layer_norm error at ln_1 as layer-weight-along-positions
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight.unsqueeze(-1) + bias.unsqueeze(-1)).to(x.dtype)


# %% wrong: eps typed in
# expect: layer_norm fail at normalised as layer-eps-typed-1e-6
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + 1e-6) * weight + bias).to(x.dtype)


# %% wrong: eps from the dtype
# expect: rms_norm fail at rescaled as rms-eps-typed-of-the-dtype
def rms_norm(x, weight, eps=None):
    h = widen(x)
    return (h * (h.pow(2).mean(-1, keepdim=True) + torch.finfo(h.dtype).eps).rsqrt() * weight).to(x.dtype)


# %% wrong: another default for eps
# expect: rms_norm fail at rescaled as rms-eps-default-1e-6
def rms_norm(x, weight, eps=1e-6):
    h = widen(x)
    return (h * (h.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * weight).to(x.dtype)


# %% wrong: statistics taken from x.data
# expect: layer_norm fail at x.grad as layer-statistics-detached
# expect: rms_norm fail at x.grad as rms-statistics-detached
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.data.mean(-1, keepdim=True)
    var = h.data.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    with torch.no_grad():
        scale = (h.pow(2).mean(-1, keepdim=True) + eps).rsqrt()
    return (h * scale * weight).to(x.dtype)


# %% wrong: statistics through numpy
# expect: layer_norm fail at x.grad as layer-statistics-detached
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    array = h.detach().cpu().numpy()
    mean = torch.as_tensor(array.mean(-1, keepdims=True), device=x.device)
    var = torch.as_tensor(array.var(-1, keepdims=True), device=x.device)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: only the variance taken outside the graph
# expect: layer_norm fail at x.grad as layer-variance-detached
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    centred = h - h.mean(-1, keepdim=True)
    std = torch.sqrt(centred.detach().square().mean(-1, keepdim=True) + eps)
    return (centred / std * weight + bias).to(x.dtype)


# %% wrong: everything outside the graph
# expect: layer_norm fail as gradient-cut-off
@torch.no_grad()
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: a new Parameter made of the weight
# expect: rms_norm fail at weight.grad as rms-weight-detached
def rms_norm(x, weight, eps=1e-5):
    scale = torch.nn.Parameter(weight)
    h = widen(x)
    return (h * (h.pow(2).mean(-1, keepdim=True) + eps).rsqrt() * scale).to(x.dtype)


# %% wrong: rms_norm by the standard deviation
# expect: rms_norm fail at mean_square as rms-by-variance
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h * torch.rsqrt(h.var(-1, keepdim=True, unbiased=False) + eps) * weight).to(x.dtype)


# %% wrong: rms_norm by torch.var as it comes
# expect: rms_norm fail at mean_square as rms-by-unbiased-variance
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / torch.sqrt(torch.var(h, -1, keepdim=True) + eps) * weight).to(x.dtype)


# %% wrong: rms_norm is layer_norm without a bias
# expect: rms_norm fail at mean_square as rms-subtracts-mean
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    h = h - h.mean(-1, keepdim=True)
    return (h / torch.sqrt(h.square().mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


# %% wrong: divided by a reciprocal root
# expect: rms_norm fail at rescaled as rms-multiplied-by-root
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    ms = h.pow(2).mean(-1, keepdim=True)
    return (h / torch.rsqrt(ms + eps) * weight).to(x.dtype)


# %% wrong: the sum of squares
# expect: rms_norm fail at mean_square as rms-sum-of-squares
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / torch.sqrt(h.square().sum(-1, keepdim=True) + eps) * weight).to(x.dtype)


# %% wrong: the length of the row
# expect: rms_norm fail at rescaled as rms-by-length-without-factor
def rms_norm(x, weight, eps=1e-5):
    return (torch.nn.functional.normalize(widen(x), dim=-1) * weight).to(x.dtype)


# %% wrong: the length and its factor upside down
# expect: rms_norm fail at rescaled as rms-by-length-factor-inverted
def rms_norm(x, weight, eps=1e-5):
    return (torch.nn.functional.normalize(widen(x), dim=-1) * x.shape[-1] ** -0.5 * weight).to(x.dtype)


# %% wrong: the length with the right factor, the library's eps
# expect: rms_norm fail at rescaled as rms-eps-typed-1e-12
def rms_norm(x, weight, eps=1e-5):
    return (torch.nn.functional.normalize(widen(x), dim=-1) * x.shape[-1] ** 0.5 * weight).to(x.dtype)


# %% wrong: the root of the RMS
# expect: rms_norm fail at rescaled as rms-root-of-root
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    rms = torch.sqrt(h.pow(2).mean(-1, keepdim=True))
    return (h / torch.sqrt(rms + eps) * weight).to(x.dtype)


# %% wrong: the square of the mean
# expect: rms_norm fail at mean_square as rms-square-of-mean
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h * torch.rsqrt(h.mean(-1, keepdim=True).pow(2) + eps) * weight).to(x.dtype)


# %% wrong: one size for a whole text
# expect: rms_norm error at mean_square as rms-over-positions-and-channels
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    ms = h.square().mean(dim=(-2, -1), keepdim=True)
    return (h / torch.sqrt(ms + eps) * weight).to(x.dtype)


# %% wrong: 1 added to the gain
# expect: rms_norm fail at rms_out as rms-weight-plus-one
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    out = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return (out * (1.0 + weight.float() if x.dtype != torch.float64 else out * (1 + weight))).to(x.dtype)


# %% wrong: 1 added to the gain twice
# expect: rms_norm fail at rms_out as rms-weight-plus-two
def rms_norm(x, weight, eps=1e-5):
    gain = weight + 1
    h = widen(x)
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * (1 + gain)).to(x.dtype)


# %% wrong: everything in the dtype of x
# expect: layer_norm fail as computed-in-half-precision
# expect: rms_norm fail as computed-in-half-precision
def layer_norm(x, weight, bias, eps=1e-5):
    mean = x.mean(-1, keepdim=True)
    var = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


# %% wrong: in the dtype of x, other spellings
# expect: layer_norm fail as computed-in-half-precision
# expect: rms_norm fail as computed-in-half-precision
def layer_norm(x, weight, bias, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) * torch.rsqrt(var + eps) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    return weight * (x / torch.sqrt((x * x).mean(-1, keepdim=True) + eps))


# %% wrong: statistics in float32, but cast back too early
# expect: layer_norm fail as computed-in-half-precision
# expect: rms_norm fail as computed-in-half-precision
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(-1, keepdim=True).to(x.dtype)
    var = h.var(-1, keepdim=True, unbiased=False).to(x.dtype)
    return (x - mean) / torch.sqrt(var + eps) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    ms = widen(x).pow(2).mean(-1, keepdim=True).to(x.dtype)
    return x * torch.rsqrt(ms + eps) * weight


# %% wrong: the length of the row in half precision
# expect: rms_norm fail as computed-in-half-precision
def rms_norm(x, weight, eps=1e-5):
    if x.dtype in (torch.float16, torch.bfloat16):
        return x / x.norm(dim=-1, keepdim=True) * x.shape[-1] ** 0.5 * weight
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


# %% wrong: only float16 is widened
# expect: rms_norm fail as computed-in-half-precision
def rms_norm(x, weight, eps=1e-5):
    h = x.float() if x.dtype == torch.float16 else x
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight).to(x.dtype)


# %% wrong: no thought of half precision, and another mistake
# expect: layer_norm fail at variance as layer-variance-unbiased
# expect: rms_norm fail at rms_out as rms-weight-plus-one
def layer_norm(x, weight, bias, eps=1e-5):
    return weight * (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + eps).sqrt() + bias


def rms_norm(x, weight, eps=1e-5):
    return (1 + weight) * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


# %% wrong: no thought of half precision, and two other mistakes
# expect: layer_norm fail at variance as layer-variance-unbiased + layer-eps-outside-root
def layer_norm(x, weight, bias, eps=1e-5):
    return weight * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + eps) + bias


# %% wrong: only bfloat16 is widened
# expect: layer_norm fail as computed-in-half-precision
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.float() if x.dtype == torch.bfloat16 else x
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: only float16 is widened, in layer_norm
# expect: layer_norm fail as computed-in-half-precision
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.float() if x.dtype == torch.float16 else x
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: half precision comes back as float32
# expect: layer_norm fail as dtype-not-kept
# expect: rms_norm fail as dtype-not-kept
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return (h - mean) / torch.sqrt(var + eps) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight


# %% wrong: always float32
# expect: rms_norm fail as dtype-not-kept
def rms_norm(x, weight, eps=1e-5):
    h = x.float()
    out = h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)
    return (out * weight.float()).to(x.dtype if x.dtype != torch.float64 else torch.float32)


# %% wrong: keepdim forgotten on the mean
# expect: layer_norm error at mean as layer-mean-axis-not-kept
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    centred = h - h.mean(-1)
    var = centred.square().mean(-1, keepdim=True)
    return (centred / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: keepdim forgotten on the variance
# expect: layer_norm error at variance as layer-variance-axis-not-kept
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    centred = h - h.mean(-1, keepdim=True)
    var = centred.square().mean(-1)
    return (centred / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: keepdim forgotten in rms_norm
# expect: rms_norm error at mean_square as rms-mean-axis-not-kept
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / torch.sqrt(h.pow(2).mean(-1) + eps) * weight).to(x.dtype)


# %% wrong: unbiased variance
# expect: layer_norm fail at variance as layer-variance-unbiased
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    return ((h - h.mean(-1, keepdim=True)) / torch.sqrt(h.var(-1, keepdim=True) + eps) * weight + bias).to(x.dtype)


# %% wrong: the mean is in the variance but not above the line
# expect: layer_norm fail at normalised as layer-mean-not-subtracted
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    return (h / torch.sqrt(h.var(-1, correction=0, keepdim=True) + eps) * weight + bias).to(x.dtype)


# %% wrong: layer_norm is rms_norm with a bias
# expect: layer_norm fail at mean as layer-mean-missing
def layer_norm(x, weight, bias, eps=1e-5):
    return rms_norm(x, weight, eps) + bias


# %% wrong: the library's layer norm
# expect: layer_norm forbidden
def layer_norm(x, weight, bias, eps=1e-5):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],), weight, bias, eps)


# %% wrong: the library's module
# expect: rms_norm forbidden
def rms_norm(x, weight, eps=1e-5):
    norm = torch.nn.RMSNorm(x.shape[-1], eps=eps, dtype=x.dtype)
    return norm(x) * weight


# %% wrong: x changed in place
# expect: layer_norm fail as argument-changed-in-place
def layer_norm(x, weight, bias, eps=1e-5):
    if x.requires_grad:
        x = x.clone()
    h = widen(x)
    h -= h.mean(-1, keepdim=True)
    return (h / torch.sqrt(h.square().mean(-1, keepdim=True) + eps) * weight + bias).to(x.dtype)


# %% wrong: two mistakes at once, axis and bias
# expect: layer_norm fail at mean as layer-over-batch + layer-bias-unused
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(0, keepdim=True), h.var(0, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight).to(x.dtype)


# %% wrong: two mistakes at once, no root and 1 added to the gain
# expect: rms_norm fail at rescaled as rms-root-missing + rms-weight-plus-one
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / (h.square().mean(-1, keepdim=True) + eps) * (1 + weight)).to(x.dtype)


# %% wrong: two mistakes at once, sum of squares and no eps
# expect: rms_norm fail at mean_square as rms-sum-of-squares + rms-eps-missing
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / h.square().sum(-1, keepdim=True).sqrt() * weight).to(x.dtype)


# %% wrong: three mistakes at once
# expect: layer_norm fail at variance as layer-variance-unbiased + layer-eps-typed-1e-12 + layer-weight-plus-one
def layer_norm(x, weight, bias, eps=1e-12):
    h = widen(x)
    mean = h.mean(-1, keepdim=True)
    variance = h.var(-1, keepdim=True)
    row = (h - mean) / torch.sqrt(variance + 1e-12)
    return (row * (1 + weight) + bias).to(x.dtype)


# %% wrong: something that no known mistake gives
# expect: rms_norm fail at rms_out as ?
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h / torch.sqrt(h.square().mean(-1, keepdim=True) + eps) * weight * 0.7).to(x.dtype)


# %% wrong: post-norm in pre_norm's place
# expect: pre_norm fail at pre_out as pre-is-post
def pre_norm(x, sublayer, norm):
    return norm(x + sublayer(x))


# %% wrong: pre-norm in post_norm's place
# expect: post_norm fail at post_out as post-is-pre
def post_norm(x, sublayer, norm):
    return x + sublayer(norm(x))


# %% wrong: the two exchanged
# expect: pre_norm fail at pre_out as pre-is-post
# expect: post_norm fail at post_out as post-is-pre
def pre_norm(x, sublayer, norm):
    h = sublayer(x)
    return norm(x + h)


def post_norm(x, sublayer, norm):
    h = norm(x)
    return sublayer(h) + x


# %% wrong: callables in the other order
# expect: pre_norm fail at pre_out as pre-norm-behind-sublayer
# expect: post_norm fail at post_out as post-callables-exchanged
def pre_norm(x, norm, sublayer):
    return x + sublayer(norm(x))


def post_norm(x, norm, sublayer):
    return norm(x + sublayer(x))


# %% wrong: no residual
# expect: pre_norm fail at pre_out as pre-residual-missing
# expect: post_norm fail at post_sum as post-residual-missing
def pre_norm(x, sublayer, norm):
    return sublayer(norm(x))


def post_norm(x, sublayer, norm):
    return norm(sublayer(x))


# %% wrong: x overwritten by its normalised copy
# expect: pre_norm fail at pre_out as pre-residual-normalised
def pre_norm(x, sublayer, norm):
    x = norm(x)
    return x + sublayer(x)


# %% wrong: norm on the branch only
# expect: post_norm fail at post_out as post-norm-on-branch-only
def post_norm(x, sublayer, norm):
    return x + norm(sublayer(x))


# %% wrong: the norm called twice
# expect: pre_norm error at normed as pre-norm-twice
def pre_norm(x, sublayer, norm):
    assert norm(x).shape == x.shape
    return x + sublayer(norm(x))


# %% wrong: the sublayer called twice
# expect: post_norm error at post_written as post-sublayer-twice
def post_norm(x, sublayer, norm):
    if sublayer(x).shape != x.shape:
        raise ValueError("the sublayer must keep the shape")
    return norm(x + sublayer(x))


# %% wrong: added in place
# expect: pre_norm fail as argument-changed-in-place
def pre_norm(x, sublayer, norm):
    if x.requires_grad:
        x = x * 1
    x += sublayer(norm(x))
    return x


# %% wrong: the stream leaves the graph
# expect: pre_norm fail at x.grad as pre-stream-detached
def pre_norm(x, sublayer, norm):
    residual = x.data
    return residual + sublayer(norm(x))


# %% wrong: two mistakes at once, the norm missing and the stream twice
# expect: pre_norm fail at normed as pre-norm-missing + pre-stream-twice
def pre_norm(x, sublayer, norm):
    out = x + sublayer(x)
    return x + out


# %% wrong: two mistakes at once, answer subtracted and no norm
# expect: post_norm fail at post_sum as post-answer-subtracted + post-norm-missing
def post_norm(x, sublayer, norm):
    return x - sublayer(x)


# %% right: any spelling of the variance
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    var, mean = torch.var_mean(h, dim=-1, correction=0, keepdim=True)
    return ((h - mean) * torch.rsqrt(var + eps) * weight + bias).to(x.dtype)


# %% right: the standard deviation squared
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(-1, keepdim=True)
    std = h.std(-1, keepdim=True, unbiased=False)
    return (weight * (h - mean) / (std**2 + eps) ** 0.5 + bias).to(x.dtype)


# %% right: one pass
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(-1, keepdim=True)
    var = (h.square().mean(-1, keepdim=True) - mean.square()).clamp(min=0)
    return ((h - mean) / torch.sqrt(var + eps) * weight + bias).to(x.dtype)


# %% right: one pass, not clamped
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(-1, keepdim=True)
    var = (h * h).mean(-1, keepdim=True) - mean * mean
    return (((h - mean) / torch.sqrt(var + eps)).to(x.dtype) * weight + bias).to(x.dtype)


# %% right: float64 inside
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.double()
    mean = h.mean(-1, keepdim=True)
    var = (h - mean).pow(2).mean(-1, keepdim=True)
    return ((h - mean) / torch.sqrt(var + eps) * weight.double() + bias.double()).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = x.double()
    return (h / torch.sqrt(h.pow(2).mean(-1, keepdim=True) + eps) * weight.double()).to(x.dtype)


# %% right: float32 inside, whatever comes in
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.float()
    mean = h.mean(-1, keepdim=True)
    var = h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps) * weight.float() + bias.float()).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = x.float()
    return weight * (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)).to(x.dtype)


# %% right: the gain after the cast
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean, var = h.mean(-1, keepdim=True), h.var(-1, keepdim=True, unbiased=False)
    return ((h - mean) / torch.sqrt(var + eps)).to(x.dtype) * weight + bias


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    return (h * torch.rsqrt(h.pow(2).mean(-1, keepdim=True) + eps)).type_as(x) * weight


# %% right: layer norm as rms norm of the centred row
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    return (rms_norm(h - h.mean(-1, keepdim=True), weight.to(h.dtype), eps) + bias).to(x.dtype)


# %% right: unsqueeze in place of keepdim
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    centred = h - h.mean(-1).unsqueeze(-1)
    return (centred / torch.sqrt(centred.pow(2).mean(-1)[..., None] + eps) * weight + bias).to(x.dtype)


# %% right: the channels moved to the front
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x).movedim(-1, 0)
    centred = h - h.mean(0)
    out = centred / torch.sqrt((centred**2).mean(0) + eps)
    return (out.movedim(0, -1) * weight + bias).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = widen(x).movedim(-1, 0)
    return ((h / torch.sqrt((h**2).mean(0) + eps)).movedim(0, -1) * weight).to(x.dtype)


# %% right: row by row
def layer_norm(x, weight, bias, eps=1e-5):
    rows = []
    for row in widen(x).reshape(-1, x.shape[-1]):
        mean = sum(row) / len(row)
        var = sum((entry - mean) ** 2 for entry in row) / len(row)
        rows.append((row - mean) / (var + eps) ** 0.5 * weight + bias)
    return torch.stack(rows).reshape(x.shape).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    rows = [row / torch.sqrt(row @ row / row.numel() + eps) * weight for row in widen(x).reshape(-1, x.shape[-1])]
    return torch.stack(rows).reshape(x.shape).to(x.dtype)


# %% right: einsum and a centring matrix
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    C = x.shape[-1]
    centring = torch.eye(C, dtype=h.dtype, device=h.device) - 1 / C
    centred = h @ centring
    var = torch.einsum("...c,...c->...", centred, centred) / C
    return (torch.einsum("...c,...,c->...c", centred, (var + eps).rsqrt(), weight.to(h.dtype)) + bias).to(x.dtype)


def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    squares = torch.einsum("...c,...c->...", h, h)
    return torch.einsum("...c,...,c->...c", h, (squares / x.shape[-1] + eps).rsqrt(), weight.to(h.dtype)).to(x.dtype)


# %% right: fused into one scale and one shift
def layer_norm(x, weight, bias, eps=1e-5):
    h = widen(x)
    mean = h.mean(-1, keepdim=True)
    scale = weight / torch.sqrt(h.var(-1, keepdim=True, correction=0) + eps)
    return torch.addcmul(bias.to(h.dtype), h - mean, scale).to(x.dtype)


# %% right: the length of the row, with eps scaled
def rms_norm(x, weight, eps=1e-5):
    h = widen(x)
    C = x.shape[-1]
    return (h * C**0.5 / torch.sqrt((h**2).sum(-1, keepdim=True) + C * eps) * weight).to(x.dtype)


# %% right: in place on its own tensors
def rms_norm(x, weight, eps=1e-5):
    h = widen(x).clone()
    scale = h.square().mean(-1, keepdim=True).add_(eps).rsqrt_()
    return h.mul(scale).mul_(weight).to(x.dtype)


# %% right: a function for autograd
class LayerNorm(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        h = widen(x)
        mean, rstd = h.mean(-1, keepdim=True), (h.var(-1, keepdim=True, correction=0) + eps).rsqrt()
        row = (h - mean) * rstd
        ctx.save_for_backward(row, rstd, weight)
        return (row * weight + bias).to(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        row, rstd, weight = ctx.saved_tensors
        inner = grad * weight
        x_grad = rstd * (inner - inner.mean(-1, keepdim=True) - row * (inner * row).mean(-1, keepdim=True))
        lead = tuple(range(grad.dim() - 1))
        if not lead:
            return x_grad, grad * row, grad, None
        return x_grad, (grad * row).sum(lead), grad.sum(lead), None


def layer_norm(x, weight, bias, eps=1e-5):
    return LayerNorm.apply(x, weight, bias, eps)


# %% right: blocks in several lines
def pre_norm(x, sublayer, norm):
    residual = x
    x = norm(x)
    x = sublayer(x)
    return x + residual


def post_norm(x, sublayer, norm):
    residual = x
    x = sublayer(x)
    return norm(torch.add(residual, x))


# %% right: the sublayer's answer added to in place
def pre_norm(x, sublayer, norm):
    out = sublayer(norm(x)).clone()
    out += x
    return out


# %% wrong: the root squared again in layer_norm
# expect: layer_norm fail at x.grad as layer-root-squared-again
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    row = h - h.mean(-1, keepdim=True)
    size = row.pow(2).mean(-1, keepdim=True).sqrt()
    return (row / torch.sqrt(size.pow(2) + eps) * weight + bias).to(x.dtype)


# %% wrong: the root squared again in rms_norm
# expect: rms_norm fail at x.grad as rms-root-squared-again
def rms_norm(x, weight, eps=1e-5):
    h = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    row = h
    size = row.pow(2).mean(-1, keepdim=True).sqrt()
    return (row / torch.sqrt(size.pow(2) + eps) * weight).to(x.dtype)


# %% wrong: statistics over the positions, but for a row alone
# expect: layer_norm fail at mean as layer-over-positions-unless-alone
def layer_norm(x, weight, bias, eps=1e-5):
    h = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    dim = -2 if x.dim() > 1 else -1
    var, mean = torch.var_mean(h, dim=dim, correction=0, keepdim=True)
    return ((h - mean) * torch.rsqrt(var + eps) * weight + bias).to(x.dtype)


# %% wrong: mean square over positions and channels
# expect: rms_norm fail at mean_square as rms-over-positions-and-channels-unless-alone
def rms_norm(x, weight, eps=1e-5):
    h = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    dim = (-2, -1) if x.dim() > 1 else -1
    mean_square = h.pow(2).mean(dim, keepdim=True)
    return (h / torch.sqrt(mean_square + eps) * weight).to(x.dtype)
