"""Submissions of 08_rope: patches on the solution, with what the grader must say of them."""


# %% wrong: exponents of step 2, divided by D/2
# expect: rope_frequencies fail at frequencies as exponent-doubled
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return 1.0 / (base ** (torch.arange(0, d_head, 2).float() / (d_head // 2)))


# %% wrong: exponents count from 1
# expect: rope_frequencies fail at frequencies as exponent-counted-from-one
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    i = torch.arange(1, d_head // 2 + 1)
    return base ** (-2 * i / d_head)


# %% wrong: the paper's i - 1, from a loop that starts at 0
# expect: rope_frequencies fail at frequencies as exponent-counted-from-minus-one
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2 == 1:
        raise ValueError(f"d_head = {d_head} is odd")
    return torch.tensor([base ** (-2 * (i - 1) / d_head) for i in range(d_head // 2)])


# %% wrong: 2i - 1
# expect: rope_frequencies fail at frequencies as exponent-of-odd-channels
def rope_frequencies(d_head, base=10000.0):
    assert d_head % 2 == 0 or not (_ for _ in ()).throw(ValueError("odd"))
    k = torch.arange(1, d_head // 2 + 1, dtype=torch.float32)
    return base ** (-(2 * k - 1) / d_head)


# %% wrong: the reciprocal forgotten
# expect: rope_frequencies fail at frequencies as exponent-sign-lost
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return base ** (torch.arange(0, d_head, 2) / d_head)


# %% wrong: base typed in
# expect: rope_frequencies fail at frequencies as base-typed-10000
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return 1.0 / (10000 ** (torch.arange(0, d_head, 2).float() / d_head))


# %% wrong: another default base
# expect: rope_frequencies fail at frequencies as base-default-500000
def rope_frequencies(d_head, base=500000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return 1.0 / (base ** (torch.arange(0, d_head, 2).float() / d_head))


# %% wrong: odd head sizes pass
# expect: rope_frequencies fail as odd-head-size-accepted
def rope_frequencies(d_head, base=10000.0):
    return base ** (-torch.arange(0, d_head, 2).float() / d_head)


# %% wrong: odd head sizes end in another error
# expect: rope_frequencies fail as odd-head-size-not-checked
def rope_frequencies(d_head, base=10000.0):
    exponents = torch.arange(d_head).view(d_head // 2, 2)[:, 0] / d_head
    return base**-exponents


# %% wrong: a frequency for each channel
# expect: rope_frequencies fail at frequencies as frequencies-twice-by-halves
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    half = 1.0 / (base ** (torch.arange(0, d_head, 2).float() / d_head))
    return torch.cat([half, half])


# %% wrong: the power binds before the product
# expect: rope_frequencies fail at frequencies as power-before-two-i
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return base**-2 * torch.arange(d_head // 2) / d_head


# %% wrong: whole-number division
# expect: rope_frequencies fail at frequencies as exponent-divided-to-zero
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return 1.0 / base ** (torch.arange(0, d_head, 2) // d_head)


# %% wrong: an even ladder down to 1/base
# expect: rope_frequencies fail at frequencies as exponent-reaches-one
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return base ** -torch.linspace(0, 1, d_head // 2)


# %% wrong: frequencies in float64
# expect: rope_frequencies fail at frequencies as dtype-not-kept
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return base ** (-torch.arange(0, d_head, 2, dtype=torch.float64) / d_head)


# %% wrong: positions ignored
# expect: rope_cos_sin fail at angles as positions-ignored
def rope_cos_sin(positions, frequencies):
    t = torch.arange(positions.shape[0], device=positions.device).float()
    angles = torch.outer(t, frequencies)
    return angles.cos(), angles.sin()


# %% wrong: only the first position used
# expect: rope_cos_sin fail at angles as positions-counted-on-from-first
def rope_cos_sin(positions, frequencies):
    start = int(positions[0])
    t = torch.arange(start, start + len(positions), device=positions.device).float()
    angles = t[:, None] * frequencies
    return angles.cos(), angles.sin()


# %% wrong: a whole chunk at the first position
# expect: rope_cos_sin fail at angles as first-position-for-all
def rope_cos_sin(positions, frequencies):
    angles = (positions[0] * frequencies).expand(len(positions), -1)
    return angles.cos(), angles.sin()


# %% wrong: a table of 2048 rows
# expect: rope_cos_sin error at angles as table-ends-at-2048
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(torch.arange(2048.0), frequencies)
    return angles.cos()[positions], angles.sin()[positions]


# %% wrong: positions in bfloat16
# expect: rope_cos_sin fail at angles as positions-in-bfloat16
def rope_cos_sin(positions, frequencies):
    angles = positions.to(torch.bfloat16)[:, None] * frequencies
    return angles.cos(), angles.sin()


# %% wrong: angles in bfloat16
# expect: rope_cos_sin fail at angles as angles-in-bfloat16
def rope_cos_sin(positions, frequencies):
    angles = (positions.float()[:, None] * frequencies.float()).bfloat16()
    return angles.float().cos(), angles.float().sin()


# %% wrong: tables in bfloat16
# expect: rope_cos_sin fail at cos as dtype-not-kept
def rope_cos_sin(positions, frequencies):
    angles = positions.float()[:, None] * frequencies.float()
    return angles.cos().to(torch.bfloat16), angles.sin().to(torch.bfloat16)


# %% wrong: sine first
# expect: rope_cos_sin fail at cos as cos-and-sin-exchanged
def rope_cos_sin(positions, frequencies):
    angles = torch.einsum("t,i->ti", positions.float(), frequencies)
    return torch.sin(angles), torch.cos(angles)


# %% wrong: tables of width D
# expect: rope_cos_sin fail at angles as angles-of-width-D-by-halves
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(positions.float(), frequencies)
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos(), angles.sin()


# %% wrong: tables of width D, neighbours alike
# expect: rope_cos_sin fail at angles as angles-of-width-D-by-neighbours
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(positions.float(), frequencies)
    return angles.cos().repeat_interleave(2, -1), angles.sin().repeat_interleave(2, -1)


# %% wrong: a row for every position up to the largest
# expect: rope_cos_sin fail at angles as table-up-to-the-largest
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(torch.arange(int(positions.max()) + 1).float(), frequencies)
    return angles.cos(), angles.sin()


# %% wrong: a sine of the other sign
# expect: rope_cos_sin fail at sin as sin-negative
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(positions.float(), frequencies)
    return angles.cos(), -angles.sin()


# %% wrong: tables of float64
# expect: rope_cos_sin fail at cos as dtype-not-kept
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(positions.double(), frequencies.double())
    return angles.cos(), angles.sin()


# %% wrong: turned the other way
# expect: rotate_interleaved fail at rotated as interleaved-sign-turned
# expect: rotate_half fail at rotated_half as half-sign-turned
def rotate_interleaved(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos + b * sin, b * cos - a * sin], dim=-1).reshape(x.shape).to(x.dtype)


def rotate_half(x, cos, sin):
    a, b = x.chunk(2, -1)
    step = torch.cat([b, -a], -1)
    return (x * torch.cat([cos, cos], -1) + step * torch.cat([sin, sin], -1)).to(x.dtype)


# %% wrong: the two pairings exchanged
# expect: rotate_interleaved fail at rotated as interleaved-other-pairing
# expect: rotate_half fail at rotated_half as half-other-pairing
def rotate_interleaved(x, cos, sin):
    D = x.shape[-1]
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


def rotate_half(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).reshape(x.shape).to(x.dtype)


# %% wrong: interleaved tables with the rotation by halves
# expect: rotate_half fail at rotated_half as half-tables-spread-the-other-way
def rotate_half(x, cos, sin):
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-b, a), -1) * sin).to(x.dtype)


# %% wrong: tables by halves with the interleaved rotation
# expect: rotate_interleaved fail at rotated as interleaved-tables-spread-the-other-way
def rotate_interleaved(x, cos, sin):
    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    step = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return (x * cos + step * sin).to(x.dtype)


# %% wrong: the turned part not put back between
# expect: rotate_interleaved fail at rotated as interleaved-quarter-turn-not-restacked
def rotate_interleaved(x, cos, sin):
    step = torch.cat([-x[..., 1::2], x[..., ::2]], dim=-1)
    return (x * cos.repeat_interleave(2, -1) + step * sin.repeat_interleave(2, -1)).to(x.dtype)


# %% wrong: even outputs first, then odd ones
# expect: rotate_interleaved fail at rotated as interleaved-output-in-other-order
def rotate_interleaved(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)


# %% wrong: tables laid along the heads
# expect: rotate_interleaved error at rotated as interleaved-tables-along-heads
def rotate_interleaved(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    cos, sin = cos[:, None, :], sin[:, None, :]
    return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2).to(x.dtype)


# %% wrong: heads taken for positions
# expect: rotate_half error at rotated_half as half-heads-taken-for-positions
def rotate_half(x, cos, sin):
    a, b = x.transpose(1, 2).chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).transpose(1, 2).to(x.dtype)


# %% wrong: one row of the tables for all positions
# expect: rotate_half fail at rotated_half as half-first-row-for-all
def rotate_half(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos[0], sin[0]
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


# %% wrong: already replaced numbers read
# expect: rotate_interleaved fail at rotated as interleaved-first-read-after-writing
def rotate_interleaved(x, cos, sin):
    out = x.clone()
    out[..., 0::2] = out[..., 0::2] * cos - out[..., 1::2] * sin
    out[..., 1::2] = out[..., 1::2] * cos + out[..., 0::2] * sin
    return out


# %% wrong: x overwritten
# expect: rotate_half fail as argument-changed-in-place
def rotate_half(x, cos, sin):
    D = x.shape[-1]
    a, b = x[..., : D // 2].clone(), x[..., D // 2 :].clone()
    if x.requires_grad:
        x = x.clone()
    x[..., : D // 2] = a * cos - b * sin
    x[..., D // 2 :] = a * sin + b * cos
    return x


# %% wrong: only the first head with one position
# expect: rotate_half fail at rotated_half as half-only-first-head-when-alone
def rotate_half(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    out = torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)
    if x.shape[-2] == 1:
        flat = x.reshape(-1, x.shape[-1]).clone()
        flat[0] = out.reshape(-1, x.shape[-1])[0]
        return flat.reshape(x.shape)
    return out


# %% wrong: the smaller step of that name
# expect: rotate_half fail at rotated_half as half-quarter-turn-alone
def rotate_half(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


# %% wrong: a mirror
# expect: rotate_interleaved fail at rotated as interleaved-both-minus
def rotate_interleaved(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin - b * cos), dim=-1).flatten(-2).to(x.dtype)


# %% wrong: a minus in the wrong line
# expect: rotate_half fail at rotated_half as half-second-with-minus
def rotate_half(x, cos, sin):
    half = x.shape[-1] // 2
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos - a * sin), dim=-1).type_as(x)


# %% wrong: float32 tables make a float32 result
# expect: rotate_interleaved fail as dtype-not-kept
# expect: rotate_half fail as dtype-not-kept
def rotate_interleaved(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


def rotate_half(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


# %% wrong: turned the other way, and no thought of dtypes
# expect: rotate_half fail at rotated_half as half-sign-turned
def rotate_half(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos + b * sin, b * cos - a * sin), dim=-1)


# %% wrong: the rotation leaves the graph
# expect: rotate_half fail as gradient-cut-off
@torch.no_grad()
def rotate_half(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


# %% wrong: x taken out of the graph
# expect: rotate_interleaved fail at x.grad as interleaved-x-detached
def rotate_interleaved(x, cos, sin):
    a, b = x.data[..., 0::2], x.data[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


# %% wrong: two mistakes at once, the other pairing and the other way
# expect: rotate_half fail at rotated_half as half-other-pairing + half-sign-turned
def rotate_half(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack((a * cos + b * sin, b * cos - a * sin), dim=-1).flatten(-2).to(x.dtype)


# %% wrong: two mistakes at once, the tables of the other pairing turned the other way
# expect: rotate_half fail at rotated_half as half-tables-spread-the-other-way + half-sign-turned
def rotate_half(x, cos, sin):
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((b, -a), -1) * sin).to(x.dtype)


# %% wrong: x itself overwritten, and read after that
# expect: rotate_interleaved fail at rotated as interleaved-first-read-after-writing
def rotate_interleaved(x, cos, sin):
    x[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    x[..., 1::2] = x[..., 1::2] * cos + x[..., 0::2] * sin
    return x


# %% wrong: weights left as they are
# expect: interleaved_to_half fail at reordered as not-reordered
def interleaved_to_half(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns, {n_head} heads")
    return w


# %% wrong: sorted the other way
# expect: interleaved_to_half fail at reordered as reordered-the-other-way
def interleaved_to_half(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns, {n_head} heads")
    D = w.shape[-1] // n_head
    return w.reshape(*w.shape[:-1], n_head, 2, D // 2).transpose(-1, -2).reshape(w.shape)


# %% wrong: rows sorted, as in an (out, in) layout
# expect: interleaved_to_half fail at reordered as rows-reordered
def interleaved_to_half(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns, {n_head} heads")
    rest = w.shape[1:]
    return w.reshape(n_head, w.shape[0] // n_head // 2, 2, *rest).transpose(1, 2).reshape(w.shape)


# %% wrong: heads ignored
# expect: interleaved_to_half fail at reordered as reordered-across-heads
def interleaved_to_half(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns, {n_head} heads")
    return torch.cat([w[..., 0::2], w[..., 1::2]], dim=-1)


# %% wrong: a bias is not served
# expect: interleaved_to_half error at reordered as bias-not-served
def interleaved_to_half(w, n_head):
    columns = w.shape[-1]
    if columns % (2 * n_head):
        raise ValueError(f"{columns} columns, {n_head} heads")
    D = columns // n_head
    order = [h * D + c for h in range(n_head) for c in list(range(0, D, 2)) + list(range(1, D, 2))]
    return w[:, order]


# %% wrong: nothing is checked, heads are cut by hand
# expect: interleaved_to_half fail as columns-left-over
def interleaved_to_half(w, n_head):
    D = w.shape[-1] // n_head
    heads = [w[..., h * D : (h + 1) * D] for h in range(n_head)]
    return torch.cat([torch.cat([head[..., 0::2], head[..., 1::2]], -1) for head in heads], -1)


# %% wrong: nothing is checked, reshape complains
# expect: interleaved_to_half fail as columns-not-checked
def interleaved_to_half(w, n_head):
    D = w.shape[-1] // n_head
    return w.reshape(*w.shape[:-1], n_head, D // 2, 2).transpose(-1, -2).reshape(w.shape)


# %% wrong: odd heads pass
# expect: interleaved_to_half fail as odd-heads-reordered
def interleaved_to_half(w, n_head):
    if w.shape[-1] % n_head:
        raise ValueError(f"{w.shape[-1]} columns, {n_head} heads")
    heads = w.unflatten(-1, (n_head, -1))
    return torch.cat((heads[..., 0::2], heads[..., 1::2]), -1).flatten(-2)


# %% wrong: odd channels first
# expect: interleaved_to_half fail at reordered as odd-channels-first
def interleaved_to_half(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns, {n_head} heads")
    heads = w.unflatten(-1, (n_head, -1))
    return torch.cat((heads[..., 1::2], heads[..., 0::2]), -1).flatten(-2)


# %% wrong: two mistakes at once, base typed in and exponents from 1
# expect: rope_frequencies fail at frequencies as base-typed-10000 + exponent-counted-from-one
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return torch.tensor([10000.0 ** (-2 * i / d_head) for i in range(1, d_head // 2 + 1)])


# %% wrong: two mistakes at once, positions ignored and sine first
# expect: rope_cos_sin fail at angles as positions-ignored + cos-and-sin-exchanged
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(torch.arange(len(positions)).float(), frequencies)
    return angles.sin(), angles.cos()


# %% wrong: two mistakes at once, turned the other way in the wrong order
# expect: rotate_interleaved fail at rotated as interleaved-sign-turned + interleaved-output-in-other-order
def rotate_interleaved(x, cos, sin):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.cat((a * cos + b * sin, b * cos - a * sin), dim=-1).to(x.dtype)


# %% wrong: two mistakes at once, the last row of the tables and the gradient
# expect: rotate_half fail at rotated_half as half-last-row-for-all
def rotate_half(x, cos, sin):
    a, b = x.detach().chunk(2, dim=-1)
    return torch.cat((a * cos[-1] - b * sin[-1], a * sin[-1] + b * cos[-1]), dim=-1).to(x.dtype)


# %% wrong: two mistakes at once, doubled exponents and odd heads
# expect: rope_frequencies fail at frequencies as exponent-doubled
def rope_frequencies(d_head, base=10000.0):
    return torch.tensor([base ** (-4 * i / d_head) for i in range(d_head // 2)])


# %% wrong: two mistakes at once, the other way and odd heads
# expect: interleaved_to_half fail at reordered as reordered-across-heads
def interleaved_to_half(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise TypeError("columns")
    return torch.cat([w[..., 0::2], w[..., 1::2]], dim=-1)


# %% wrong: something that no known mistake gives
# expect: rope_frequencies fail at frequencies as ?
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return 1.0 / torch.arange(1, d_head // 2 + 1)


# %% right: by exp and log
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2 != 0:
        raise ValueError("odd")
    return torch.exp(-math.log(base) * torch.arange(0, d_head, 2, dtype=torch.float32) / d_head)


import math


# %% right: reciprocals in float32
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2 != 0:
        raise ValueError("odd")
    return 1.0 / (base ** (torch.arange(0, d_head, 2)[: d_head // 2].float() / d_head))


# %% right: a list in Python
def rope_frequencies(d_head, base=10000.0):
    if d_head & 1:
        raise ValueError("odd")
    return torch.tensor([base ** (-2 * i / d_head) for i in range(d_head // 2)])


# %% right: by repeated multiplication
def rope_frequencies(d_head, base=10000.0):
    if d_head % 2:
        raise ValueError("odd")
    ratio = base ** (-2 / d_head)
    return torch.cumprod(torch.tensor([1.0] + [ratio] * (d_head // 2 - 1), dtype=torch.float64), 0).float()


# %% right: angles in float64
def rope_cos_sin(positions, frequencies):
    angles = positions.double()[:, None] * frequencies.double()
    return angles.cos().float(), angles.sin().float()


# %% right: by einsum, without a cast of the frequencies
def rope_cos_sin(positions, frequencies):
    angles = torch.einsum("t,i->ti", positions.float(), frequencies)
    return torch.cos(angles), torch.sin(angles)


# %% right: integers times floats, in a list
def rope_cos_sin(positions, frequencies):
    angles = positions.unsqueeze(-1) * frequencies.unsqueeze(0)
    return [angles.cos(), angles.sin()]


# %% right: by complex exponentials
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(positions.float(), frequencies.float())
    turned = torch.polar(torch.ones_like(angles), angles)
    return turned.real, turned.imag


# %% right: a table up to the largest position, then its rows
@torch.no_grad()
def rope_cos_sin(positions, frequencies):
    every = torch.arange(int(positions.max()) + 1, device=positions.device)
    table = torch.outer(every.float(), frequencies.float())
    return table.cos()[positions], table.sin()[positions]


# %% right: row by row
def rope_cos_sin(positions, frequencies):
    angles = [float(position) * frequencies for position in positions.tolist()]
    return torch.stack([angle.cos() for angle in angles]), torch.stack([angle.sin() for angle in angles])


# %% right: tables of width D inside
def rotate_interleaved(x, cos, sin):
    cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
    step = torch.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)
    return (x * cos + step * sin).type_as(x)


def rotate_half(x, cos, sin):
    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    a, b = x.chunk(2, -1)
    return (x * cos + torch.cat((-b, a), -1) * sin).type_as(x)


# %% right: complex numbers
def rotate_interleaved(x, cos, sin):
    wide = x.float() if x.dtype == torch.bfloat16 else x
    pairs = torch.view_as_complex(wide.reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * torch.complex(cos.to(wide.dtype), sin.to(wide.dtype))).flatten(-2).to(x.dtype)


def rotate_half(x, cos, sin):
    wide = x.float() if x.dtype == torch.bfloat16 else x
    a, b = wide.chunk(2, -1)
    turned = torch.complex(a.contiguous(), b.contiguous()) * torch.complex(cos.to(wide.dtype), sin.to(wide.dtype))
    return torch.cat((turned.real, turned.imag), -1).to(x.dtype)


# %% right: matrices of two by two
def rotate_interleaved(x, cos, sin):
    matrix = torch.stack((torch.stack((cos, sin), -1), torch.stack((-sin, cos), -1)), -2)
    pairs = x.unflatten(-1, (-1, 2)).unsqueeze(-2).to(matrix.dtype)
    return (pairs @ matrix).squeeze(-2).flatten(-2).to(x.dtype)


# %% right: float64 inside
def rotate_half(x, cos, sin):
    a, b = x.double().chunk(2, dim=-1)
    cos, sin = cos.double(), sin.double()
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


# %% right: written into a new tensor
def rotate_interleaved(x, cos, sin):
    out = torch.empty_like(x)
    out[..., 0::2] = x[..., 0::2] * cos - x[..., 1::2] * sin
    out[..., 1::2] = x[..., 0::2] * sin + x[..., 1::2] * cos
    return out


def rotate_half(x, cos, sin):
    half = x.shape[-1] // 2
    out = x.clone()
    out[..., :half] = x[..., :half] * cos - x[..., half:] * sin
    out[..., half:] = x[..., :half] * sin + x[..., half:] * cos
    return out


# %% right: the tables cast to the dtype of x
def rotate_half(x, cos, sin):
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


# %% right: one function by way of the other
def rotate_half(x, cos, sin):
    half = x.shape[-1] // 2
    side_by_side = x.unflatten(-1, (2, half)).transpose(-1, -2).flatten(-2)
    return rotate_interleaved(side_by_side, cos, sin).unflatten(-1, (half, 2)).transpose(-1, -2).flatten(-2)


# %% right: position by position, pair by pair
def rotate_interleaved(x, cos, sin):
    rows = []
    for t in range(x.shape[-2]):
        channels = []
        for i in range(x.shape[-1] // 2):
            a, b = x[..., t, 2 * i], x[..., t, 2 * i + 1]
            channels += [a * cos[t, i] - b * sin[t, i], a * sin[t, i] + b * cos[t, i]]
        rows.append(torch.stack(channels, -1))
    return torch.stack(rows, -2).to(x.dtype)


# %% right: a list of columns
def interleaved_to_half(w, n_head):
    columns = w.shape[-1]
    if columns % n_head or (columns // n_head) % 2:
        raise ValueError(f"{columns} columns, {n_head} heads")
    D = columns // n_head
    order = [h * D + c for h in range(n_head) for c in list(range(0, D, 2)) + list(range(1, D, 2))]
    return w[..., order]


# %% right: einops-like reshapes
def interleaved_to_half(w, n_head):
    columns = w.shape[-1]
    if columns % (2 * n_head):
        raise ValueError(f"{columns} columns, {n_head} heads")
    return w.reshape(*w.shape[:-1], n_head, columns // n_head // 2, 2).swapaxes(-1, -2).reshape(w.shape)


# %% right: a permutation matrix
def interleaved_to_half(w, n_head):
    columns = w.shape[-1]
    if columns % (2 * n_head):
        raise ValueError(f"{columns} columns, {n_head} heads")
    places = torch.arange(columns, device=w.device).view(n_head, -1, 2).transpose(1, 2).flatten()
    return w @ torch.eye(columns, dtype=w.dtype, device=w.device)[:, places]


# %% right: heads sorted one at a time, transposed on the way
def interleaved_to_half(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns, {n_head} heads")
    rows = w.movedim(-1, 0)
    heads = [torch.cat((head[0::2], head[1::2])) for head in rows.chunk(n_head)]
    return torch.cat(heads).movedim(0, -1)


# %% wrong: positions times frequencies in bfloat16
# expect: rope_cos_sin fail at angles as angles-multiplied-in-bfloat16
def rope_cos_sin(positions, frequencies):
    angles = torch.outer(positions.to(torch.bfloat16), frequencies.to(torch.bfloat16)).float()
    return angles.cos(), angles.sin()


# %% wrong: everything in bfloat16
# expect: rope_cos_sin fail at angles as angles-multiplied-in-bfloat16 + tables-rounded-to-bfloat16
def rope_cos_sin(positions, frequencies):
    angles = positions[:, None] * frequencies.bfloat16()
    return angles.cos().float(), angles.sin().float()


# %% wrong: positions times frequencies in float16
# expect: rope_cos_sin fail at angles as angles-multiplied-in-float16
def rope_cos_sin(positions, frequencies):
    angles = (positions.half()[:, None] * frequencies.half()).float()
    return torch.cos(angles), torch.sin(angles)
