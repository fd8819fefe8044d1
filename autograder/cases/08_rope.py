"""The case of 08_rope."""

import math

import torch

from autograder.case import ANY, Case, Draw, refusal, sample

case = Case(
    "08_rope",
    axes={
        "frequencies": "D/2",
        "angles": "T D/2",
        "cos": "T D/2",
        "sin": "T D/2",
        "rotated": "B H T D",
        "rotated_half": "B H T D",
        "reordered": "C H*D",
    },
)


# ---------------------------------------------------------------- rope_frequencies


@case.step
def _pairs(d_head):
    if d_head % 2:
        raise ValueError(f"d_head = {d_head} is odd")
    return d_head // 2


@case.step
def _exponents(d_head, _pairs):
    return -2 * torch.arange(_pairs, dtype=torch.float64) / d_head


@case.step
def frequencies(_exponents, base):
    return (base**_exponents).float()


def frequency_inputs(draw: Draw):
    yield sample("d_head = 8", d_head=8)
    yield sample("d_head = 6, base = 16", d_head=6, base=16.0)
    yield sample("d_head = 12, base = 500000", d_head=12, base=500000.0)
    yield sample("d_head = 64", d_head=64)
    yield sample("d_head = 2", d_head=2)
    yield refusal("d_head = 7", ValueError, d_head=7)
    yield refusal("d_head = 1", ValueError, d_head=1)


def frequency_reference(d_head, base=10000.0):
    return torch.tensor([math.exp(-math.log(base) * 2 * pair / d_head) for pair in range(d_head // 2)])


case.exercise(
    "rope_frequencies(d_head, base=10000.0)",
    returns="frequencies",
    inputs=frequency_inputs,
    points=2,
    lesson="`rope_frequencies`",
    hints=(
        "How many pairs does a head have, and how far does the first of them turn from one position to the next?",
        "A power of base for each pair: the exponent starts at 0 and stops one step short of -1.",
        "frequencies[i] = base^(-2i / D) for i = 0 .. D/2 - 1",
    ),
    reference=frequency_reference,
)


@case.fault(
    "odd-head-size-accepted", at="_pairs", tensor="frequencies", text="what becomes of the last channel when d_head is odd?"
)
def _(d_head):
    return d_head // 2


@case.fault(
    "odd-head-size-not-checked",
    at="_pairs",
    tensor="frequencies",
    text="d_head is odd: which error names it, and do you raise it?",
)
def _(d_head):
    if d_head % 2:
        raise RuntimeError(ANY)
    return d_head // 2


def exponent(id, text, change):
    @case.fault(id, at="_exponents", tensor="frequencies", text=text)
    def _(d_head, _pairs):
        return change(torch.arange(_pairs, dtype=torch.float64), d_head)


exponent("exponent-doubled", "at d_head = 8 the last one is 0.001: what did the exponent get twice?", lambda i, D: -4 * i / D)
exponent("exponent-halved", "at d_head = 8 the last one is 0.001: how far does the exponent go in one step?", lambda i, D: -i / D)
exponent("exponent-counted-from-one", "does your list begin with exactly 1?", lambda i, D: -2 * (i + 1) / D)
exponent(
    "exponent-counted-from-minus-one",
    "the paper counts its pairs from 1 and subtracts 1: from where does your loop count?",
    lambda i, D: -2 * (i - 1) / D,
)
exponent("exponent-of-odd-channels", "is the exponent of the first pair 0?", lambda i, D: -(2 * i + 1) / D)
exponent("exponent-sign-lost", "do your frequencies fall from 1, or grow?", lambda i, D: 2 * i / D)
exponent(
    "exponent-reaches-one",
    "the last frequency stops one step short of 1/base: does yours?",
    lambda i, D: -torch.linspace(0, 1, len(i), dtype=i.dtype),
)
exponent("exponent-rounded-down", "does your exponent keep its fraction?", lambda i, D: torch.floor(-2 * i / D))
exponent("exponent-divided-to-zero", "are all your frequencies 1? what does // keep of 2/8?", lambda i, D: 0 * i)
exponent("exponent-not-divided", "by what is 2i divided in the exponent?", lambda i, D: -2 * i)
exponent("one-frequency-a-channel", "how many pairs do D channels make?", lambda i, D: -torch.arange(D, dtype=i.dtype) / D)
exponent(
    "one-frequency-a-channel-doubled",
    "how many pairs do D channels make, and how far does the exponent go?",
    lambda i, D: -2 * torch.arange(D, dtype=i.dtype) / D,
)
exponent(
    "half-the-pairs", "how many pairs do D channels make, and how many frequencies do you have?", lambda i, D: -2 * i[::2] / D
)


def listed(id, text, change):
    @case.fault(id, at="frequencies", text=text)
    def _(right):
        return change(right)


listed("frequencies-reversed", "which pair turns fastest, the first or the last?", lambda right: right.flip(0))
listed(
    "frequencies-twice-by-halves", "one frequency for each pair, or for each channel?", lambda right: torch.cat((right, right))
)
listed(
    "frequencies-twice-by-neighbours",
    "one frequency for each pair, or for each channel?",
    lambda right: right.repeat_interleave(2),
)
listed("wavelengths", "radians a position, or positions a turn?", lambda right: 2 * torch.pi / right)
listed("frequencies-in-turns", "radians a position, or turns a position?", lambda right: right / (2 * torch.pi))
listed(
    "frequencies-times-two-pi",
    "does the first pair turn by one radian a position, or by a whole turn?",
    lambda right: right * 2 * torch.pi,
)
listed("frequencies-as-a-column", "how many axes does a list of frequencies have?", lambda right: right[:, None])
listed(
    "frequencies-as-a-row",
    "how many axes does a list of frequencies have, and which one counts the pairs?",
    lambda right: right[None],
)
listed("logarithms-of-frequencies", "are these powers of base, or their logarithms?", lambda right: right.log())


@case.fault("power-before-two-i", at="frequencies", text="in which order does Python read base ** -2 * i / D?")
def _(d_head, base, _pairs):
    return (base**-2 * torch.arange(_pairs, dtype=torch.float64) / d_head).float()


@case.fault("power-before-division", at="frequencies", text="is the exponent divided by D, or the power?")
def _(d_head, base, _pairs):
    return (base ** (-2 * torch.arange(_pairs, dtype=torch.float64)) / d_head).float()


def based(value, name):
    @case.fault(f"base-typed-{name}", at="frequencies", text="whose base is it: the caller's, or one that you typed?")
    def _(_exponents):
        return (value**_exponents).float()

    if value != 1e4:

        @case.fault(
            f"base-default-{name}", at="frequencies", text="which base does your function take when the caller gives none?"
        )
        def _(_exponents, base):
            return ((value if base == 1e4 else base) ** _exponents).float()


for _value, _name in ((1e4, "10000"), (5e5, "500000"), (1e3, "1000"), (1e5, "100000"), (1e6, "1000000"), (math.e, "e")):
    based(_value, _name)


# ---------------------------------------------------------------- rope_cos_sin


@case.step
def _counted(positions):
    """The positions as they enter the angles."""
    return positions.float()


@case.step
def angles(_counted, frequencies):
    return torch.outer(_counted, frequencies.float())


@case.step
def _tables(angles):
    return angles.double().cos().float(), angles.double().sin().float()


@case.step
def cos(_tables):
    return _tables[0]


@case.step
def sin(_tables):
    return _tables[1]


def some_positions(draw: Draw, T: int, low: int = 2, high: int = 60) -> list[int]:
    """Different positions, neither in order nor in a row."""
    found = draw.random.sample(range(low, high), T)
    return found if T < 2 or found != sorted(found) else found[::-1]


def some_odd_positions(draw: Draw) -> list[int]:
    """bfloat16 has none of them."""
    return [257, *(1 + 2 * half for half in some_positions(draw, 3, 129, 256))]


def some_frequencies(draw: Draw, pairs: int):
    return draw.tensor([draw.random.uniform(0.1, 1.0) for _ in range(pairs)])


def table_inputs(draw: Draw):
    """No gradients: frequencies are constants of a model."""

    def tables(label, positions, frequencies):
        return sample(label, gradient=False, positions=draw.tensor(positions), frequencies=frequencies)

    yield tables("positions that are neither in order nor in a row", some_positions(draw, 5), some_frequencies(draw, 3))
    repeated = some_positions(draw, 3)
    yield tables(
        "positions that start at 0, skip and repeat", [0, *repeated, repeated[1], repeated[1]], some_frequencies(draw, 4)
    )
    start = draw.random.randrange(5, 50)
    yield tables("a chunk of four", list(range(start, start + 4)), some_frequencies(draw, 5))
    yield tables("one position", [57 + draw.random.randrange(9)], some_frequencies(draw, 2))
    yield tables("as many positions as pairs", some_positions(draw, 4), some_frequencies(draw, 4))
    # Powers of two for frequencies: every product has a place in float32, so the angles are exact far out too.
    exact = draw.tensor([1.0, 0.25, 0.0625])
    yield tables("odd positions from 257 to 511", some_odd_positions(draw), exact)
    far = [257, 258, 1023, *draw.random.sample(range(2051, 9000, 2), 3), 99_999, 100_000 + draw.random.randrange(999)]
    yield tables("positions up to 100,000", draw.random.sample(far, len(far)), exact)


def table_reference(positions, frequencies):
    rows = (positions[:, None] * frequencies.float()).tolist()
    return tuple(torch.tensor([[function(angle) for angle in row] for row in rows]) for function in (math.cos, math.sin))


case.exercise(
    "rope_cos_sin(positions, frequencies)",
    returns=("cos", "sin"),
    inputs=table_inputs,
    points=3,
    lesson="`rope_cos_sin`",
    hints=(
        "Row t of both tables belongs to one position: which one?",
        "Every position meets every frequency: that product is an angle. Then its cosine and its sine, in float32.",
        "angle[t,i] = positions[t] * frequencies[i];  cos[t,i] = cos(angle[t,i]);  sin[t,i] = sin(angle[t,i])",
    ),
    reference=table_reference,
    probe="rope_cos_sin",
)


def counted(id, text, change):
    @case.fault(id, at="_counted", tensor="angles", text=text)
    def _(positions):
        return change(positions).float()


ROW = "do you use the positions you are given?"
counted("positions-ignored", ROW, lambda p: torch.arange(len(p), device=p.device))
counted("positions-counted-from-one", "which angle belongs to position 0?", lambda p: p + 1)
counted("positions-one-too-small", "which angle belongs to position 1?", lambda p: p - 1)
counted("positions-numbered-from-one", ROW, lambda p: torch.arange(1, len(p) + 1, device=p.device))
counted(
    "positions-counted-on-from-first",
    "do positions always follow one another? what if they skip?",
    lambda p: p[0] + torch.arange(len(p), device=p.device),
)
counted(
    "positions-counted-back-from-last",
    "do positions always follow one another? what if they skip?",
    lambda p: p[-1] - torch.arange(len(p) - 1, -1, -1, device=p.device),
)
counted(
    "first-position-for-all", "a chunk of three asks for 57, 58, 59: does each get its own angle?", lambda p: p[:1].expand(len(p))
)
counted(
    "last-position-for-all", "a chunk of three asks for 57, 58, 59: does each get its own angle?", lambda p: p[-1:].expand(len(p))
)
counted("positions-relative-to-first", "must the first position of a chunk have the angle 0?", lambda p: p - p[0])
counted("positions-relative-to-smallest", "must the smallest position of a chunk have the angle 0?", lambda p: p - p.min())
counted("positions-sorted", "does row t of your table belong to positions[t]?", lambda p: p.sort().values)
counted("positions-once-each", "a position may be asked for twice: how many rows has your table then?", lambda p: p.unique())
counted("positions-reversed", "does row t of your table belong to positions[t]?", lambda p: p.flip(0))
counted("positions-in-bfloat16", "bfloat16 has no 257: in which dtype do you count?", lambda p: p.bfloat16())
counted("positions-in-float16", "float16 has no 2049: in which dtype do you count?", lambda p: p.half())
counted(
    "table-up-to-the-largest",
    "one row for each position asked for, or for every position up to the largest?",
    lambda p: torch.arange(int(p.max()) + 1, device=p.device),
)
counted(
    "table-before-the-largest",
    "one row for each position asked for, or for every position up to the largest?",
    lambda p: torch.arange(int(p.max()), device=p.device),
)


def ending(rows):
    @case.fault(f"table-ends-at-{rows}", at="_counted", tensor="angles", text=f"what if a text has a position {rows}?")
    def _(positions):
        return torch.arange(rows, dtype=torch.float32, device=positions.device)[positions]

    @case.fault(
        f"positions-held-below-{rows}", at="_counted", tensor="angles", text=f"do two positions past {rows - 1} share an angle?"
    )
    def _(positions):
        return positions.clamp(max=rows - 1).float()


for _rows in (128, 512, 1024, 2048, 4096, 8192):
    ending(_rows)


def angled(id, text, change):
    @case.fault(id, at="angles", text=text)
    def _(_counted, frequencies):
        return change(_counted, frequencies.float())


angled("angles-divided", "is a position multiplied by its frequency, or divided by it?", lambda p, f: p[:, None] / f)
angled("angles-added", "is a position multiplied by its frequency, or added to it?", lambda p, f: p[:, None] + f)
angled("angles-in-degrees", "are the angles in radians, or in degrees?", lambda p, f: torch.deg2rad(p[:, None] * f))
angled("angles-times-two-pi", "one radian, or one whole turn?", lambda p, f: 2 * torch.pi * p[:, None] * f)
angled("angles-transposed", "is a row of your table one position, or one pair?", lambda p, f: f[:, None] * p)
angled("angles-without-outer-product", "does every position meet every frequency?", lambda p, f: p * f)
angled("angles-as-powers", "does a position multiply a frequency, or raise it to a power?", lambda p, f: f ** p[:, None])
angled("angles-of-first-pair-only", "does each pair turn at its own speed?", lambda p, f: (p[:, None] * f[:1]).expand(-1, len(f)))
angled("angles-of-width-D-by-halves", "one angle for each pair, or for each channel?", lambda p, f: (p[:, None] * f).repeat(1, 2))
angled(
    "angles-of-width-D-by-neighbours",
    "one angle for each pair, or for each channel?",
    lambda p, f: (p[:, None] * f).repeat_interleave(2, 1),
)
angled("angles-in-bfloat16", "how many digits does bfloat16 leave an angle?", lambda p, f: (p[:, None] * f).bfloat16().float())
angled(
    "angles-in-float16",
    "how many digits does float16 leave an angle, and how large may it be?",
    lambda p, f: (p[:, None] * f).half().float(),
)


def multiplied(dtype, name):
    """Positions or frequencies have lost their digits before they meet."""

    angled(
        f"angles-multiplied-in-{name}",
        f"how many digits does {name} leave a position, a frequency and their product?",
        lambda p, f: (p.to(dtype)[:, None] * f.to(dtype)).float(),
    )
    angled(
        f"factors-of-angles-in-{name}",
        f"how many digits does {name} leave a position and a frequency?",
        lambda p, f: p.to(dtype).float()[:, None] * f.to(dtype).float(),
    )


multiplied(torch.bfloat16, "bfloat16")
multiplied(torch.float16, "float16")
angled(
    "frequencies-in-bfloat16", "how many digits does bfloat16 leave a frequency?", lambda p, f: p[:, None] * f.bfloat16().float()
)
angled("angles-rounded", "does an angle keep its fraction?", lambda p, f: (p[:, None] * f).trunc())
angled(
    "angles-with-pairs-reversed", "which pair turns fastest: does pair i keep frequency i?", lambda p, f: p[:, None] * f.flip(0)
)


def tabled(id, text, change, tensor="cos"):
    @case.fault(id, at="_tables", tensor=tensor, text=text)
    def _(angles):
        return change(angles)


tabled("cos-and-sin-exchanged", "which of the two tables comes first?", lambda a: (a.sin(), a.cos()))
tabled("cos-twice", "are the two tables the same?", lambda a: (a.cos(), a.cos()), tensor="sin")
tabled("sin-twice", "are the two tables the same?", lambda a: (a.sin(), a.sin()))
tabled("sin-negative", "which way does position 1 turn: is its sine positive?", lambda a: (a.cos(), -a.sin()), tensor="sin")
tabled("tangent-for-sine", "sine, or tangent?", lambda a: (a.cos(), a.tan()), tensor="sin")
tabled("tables-left-as-angles", "are these cosines and sines, or still angles?", lambda a: (a, a))
tabled(
    "tables-rounded-to-bfloat16",
    "were the tables in another dtype on the way?",
    lambda a: (a.cos().bfloat16().float(), a.sin().bfloat16().float()),
)


# ---------------------------------------------------------------- rotate_interleaved and rotate_half


def neighbours(x):
    return x[..., 0::2], x[..., 1::2]


def halves(x):
    return x.chunk(2, dim=-1)


def side_by_side(a, b):
    return torch.stack((a, b), dim=-1).flatten(-2)


def end_to_end(a, b):
    return torch.cat((a, b), dim=-1)


def turn(a, b, cos, sin):
    return a * cos - b * sin, a * sin + b * cos


@case.step
def _pairing():
    """How rotate_interleaved takes the pairs apart, and how it joins them again."""
    return neighbours, side_by_side


@case.step
def _used_tables(cos, sin):
    return cos, sin


@case.step
def _pair(x, _pairing):
    return _pairing[0](x)


@case.step
def _turned(_pair, _used_tables):
    return turn(*_pair, *_used_tables)


@case.step
def rotated(_turned, _pairing, x):
    return _pairing[1](*_turned).to(x.dtype)


@case.step
def _half_pairing():
    """How rotate_half takes the pairs apart, and how it joins them again."""
    return halves, end_to_end


@case.step
def _half_tables(cos, sin):
    return cos, sin


@case.step
def _half_pair(x, _half_pairing):
    return _half_pairing[0](x)


@case.step
def _half_turned(_half_pair, _half_tables):
    return turn(*_half_pair, *_half_tables)


@case.step
def rotated_half(_half_turned, _half_pairing, x):
    return _half_pairing[1](*_half_turned).to(x.dtype)


def tables_for(draw: Draw, T: int, pairs: int):
    angles = torch.outer(draw.tensor(some_positions(draw, T)).float(), some_frequencies(draw, pairs))
    return {"cos": angles.cos(), "sin": angles.sin()}


OTHER_DTYPE = ("rotated-in-another-dtype", "x and the tables may differ in dtype: which one has your result?")


def rotate_inputs(draw: Draw):
    yield sample("three heads, five positions", x=draw.normal(2, 3, 5, 6), **tables_for(draw, 5, 3))
    yield sample("as many positions as heads", x=draw.normal(2, 4, 4, 8), **tables_for(draw, 4, 4))
    yield sample("one position, three heads", x=draw.normal(2, 3, 1, 10), **tables_for(draw, 1, 5))
    yield sample("no axes in front", x=draw.normal(7, 4), **tables_for(draw, 7, 2))
    yield sample("a batch without heads", x=draw.normal(3, 5, 12), **tables_for(draw, 5, 6))
    # Quarter turns of whole numbers: no dtype rounds anything.
    quarters = draw.integers(1, 4, 3, 4)
    cos, sin = (draw.tensor(turns)[quarters] for turns in ([1.0, 0.0, -1.0, 0.0], [0.0, 1.0, 0.0, -1.0]))
    x = draw.integers(1, 60, 2, 2, 3, 8).bfloat16()
    yield sample("a bfloat16 x with float32 tables", apart=OTHER_DTYPE, x=x, cos=cos, sin=sin)


def golden_rotation(name):
    def inputs(real):
        q = real[f"h.1.attn.{name}"]
        T, D = q.shape[-2:]
        positions = torch.arange(T, dtype=torch.float32, device=q.device) * 3 + 11
        angles = torch.outer(positions, 10000.0 ** (-torch.arange(0, D, 2, device=q.device) / D))
        return {"x": q, "cos": angles.cos(), "sin": angles.sin()}

    return inputs


def interleaved_reference(x, cos, sin):
    """Pairs as complex numbers."""
    wide = x.float() if x.dtype == torch.bfloat16 else x
    turned = torch.view_as_complex(wide.unflatten(-1, (-1, 2)).contiguous()) * torch.complex(cos, sin)
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


def half_reference(x, cos, sin):
    wide = x.float() if x.dtype == torch.bfloat16 else x
    turned = torch.complex(*wide.tensor_split(2, dim=-1)) * torch.complex(cos, sin)
    return torch.cat((turned.real, turned.imag), dim=-1).to(x.dtype)


case.exercise(
    "rotate_interleaved(x, cos, sin)",
    returns="rotated",
    inputs=rotate_inputs,
    points=3,
    lesson="`rotate_interleaved` and `rotate_half`",
    hints=(
        "Who is the partner of channel 0 here, and where must the two stand in the result?",
        "Take the even and the odd channels apart, turn each pair by its own angle, and put them back side by side.",
        "out[...,2i] = x[...,2i] cos[t,i] - x[...,2i+1] sin[t,i];  out[...,2i+1] = x[...,2i] sin[t,i] + x[...,2i+1] cos[t,i]",
    ),
    reference=interleaved_reference,
    golden=golden_rotation("q"),
)
case.exercise(
    "rotate_half(x, cos, sin)",
    returns="rotated_half",
    inputs=rotate_inputs,
    points=3,
    lesson="`rotate_interleaved` and `rotate_half`",
    hints=(
        "Who is the partner of channel 0 here, and how far away does it stand?",
        "Cut the channels in the middle, turn channel i of the first half with channel i of the second, and join the halves.",
        "out[...,i] = x[...,i] cos[t,i] - x[...,i+D/2] sin[t,i];  out[...,i+D/2] = x[...,i] sin[t,i] + x[...,i+D/2] cos[t,i]",
    ),
    reference=half_reference,
    golden=golden_rotation("k"),
)


# The same mistakes in both functions, by the step at which they are made.


def paired(id, text, cut, half_cut, join=None, half_join=None):
    """Pairs are taken apart in another way; where `join` is given, they are joined in that way too."""
    both = join is not None

    @case.fault(f"interleaved-{id}", at="_pairing", tensor="rotated", text=text)
    def _(right):
        return cut, join if both else right[1]

    @case.fault(f"half-{id}", at="_half_pairing", tensor="rotated_half", text=text)
    def _(right):
        return half_cut, half_join if both else right[1]


paired(
    "other-pairing",
    "who is the partner of channel 0: its neighbour, or the channel half a head away?",
    *(halves, neighbours, end_to_end, side_by_side),
)
paired(
    "input-in-other-order",
    "cutting and joining must undo each other: at position 0, does every channel keep its place?",
    *(halves, neighbours),
)


def read(id, text, change):
    """The tables are used in another way: a function of (cos, sin)."""

    @case.fault(f"interleaved-{id}", at="_used_tables", tensor="rotated", text=text)
    def _(cos, sin):
        return change(cos, sin)

    @case.fault(f"half-{id}", at="_half_tables", tensor="rotated_half", text=text)
    def _(cos, sin):
        return change(cos, sin)


ANGLE_AT_0 = "position 0 has cosine 1 and sine 0: does each channel keep its value there?"
read("sign-turned", "[1, 0] at position 1 becomes [cos 1, sin 1]: which way do you turn?", lambda c, s: (c, -s))
read("cos-and-sin-exchanged", ANGLE_AT_0, lambda c, s: (s, c))
read("sine-unused", "does the partner of a channel enter its new value?", lambda c, s: (c, 0 * s))
read("cosine-unused", "does a channel's own value enter its new one?", lambda c, s: (0 * c, s))
read("not-rotated", "is anything turned in yours, at position 1 or later?", lambda c, s: (1 + 0 * c, 0 * s))
read(
    "tables-along-heads", "does row t of the tables meet position t, or head t?", lambda c, s: (c.unsqueeze(-2), s.unsqueeze(-2))
)
read("first-row-for-all", "does every position have its row of the tables?", lambda c, s: (c[:1], s[:1]))
read("last-row-for-all", "does every position have its row of the tables?", lambda c, s: (c[-1:], s[-1:]))
read("rows-reversed", "does row t of the tables meet position t?", lambda c, s: (c.flip(0), s.flip(0)))
read("rows-one-late", "does row t of the tables meet position t?", lambda c, s: (c.roll(1, 0), s.roll(1, 0)))
read("first-pair-for-all", "does each pair turn at its own speed?", lambda c, s: (c[:, :1], s[:, :1]))
read("columns-reversed", "does pair i meet column i of the tables?", lambda c, s: (c.flip(-1), s.flip(-1)))
read("tables-detached", "is the way back to the tables open for the gradient?", lambda c, s: (c.detach(), s.detach()))


def turned(id, text, change):
    """A pair is turned in another way: a function of (a, b, cos, sin)."""

    @case.fault(f"interleaved-{id}", at="_turned", tensor="rotated", text=text)
    def _(_pair, _used_tables):
        return change(*_pair, *_used_tables)

    @case.fault(f"half-{id}", at="_half_turned", tensor="rotated_half", text=text)
    def _(_half_pair, _half_tables):
        return change(*_half_pair, *_half_tables)


def overwrite(a, b, cos, sin):
    a = a * cos - b * sin
    return a, a * sin + b * cos


def overwrite_second(a, b, cos, sin):
    b = a * sin + b * cos
    return a * cos - b * sin, b


LENGTH = "does the length of a row stay the same, at position 1 or later?"
MIRROR = "is it a rotation, or a mirror? which of the two new numbers has a minus?"
REPLACED = "did you read a number that you had already replaced?"
turned("both-plus", LENGTH, lambda a, b, c, s: (a * c + b * s, a * s + b * c))
turned("both-minus", MIRROR, lambda a, b, c, s: (a * c - b * s, a * s - b * c))
turned("second-with-minus", MIRROR, lambda a, b, c, s: (a * c - b * s, b * c - a * s))
turned("mirrored-the-other-way", MIRROR, lambda a, b, c, s: (a * c + b * s, a * s - b * c))
turned(
    "second-like-first",
    "which of cos and sin goes with which member of a pair?",
    lambda a, b, c, s: (a * c - b * s, a * c + b * s),
)
turned("own-value-for-partner", "does a channel meet its partner, or itself?", lambda a, b, c, s: (a * c - a * s, b * c + b * s))
turned("first-read-after-writing", REPLACED, overwrite)
turned("second-read-after-writing", REPLACED, overwrite_second)
turned("partner-left-alone", "which members of a pair change?", lambda a, b, c, s: (a * c - b * s, b + 0 * s))
turned("first-left-alone", "which members of a pair change?", lambda a, b, c, s: (a + 0 * c, a * s + b * c))
turned("rotated-twice", "how many times is x turned?", lambda a, b, c, s: turn(*turn(a, b, c, s), c, s))
turned("x-not-scaled", "what is left of a channel's own value after a quarter turn?", lambda a, b, c, s: (a - b * s, b + a * s))
turned("x-added", "is the turned x added to x?", lambda a, b, c, s: (a + a * c - b * s, b + a * s + b * c))
turned("x-detached", "is the way back to x open for the gradient?", lambda a, b, c, s: turn(a.detach(), b.detach(), c, s))


def joined(id, text, interleaved, half):
    """The turned pairs are joined in another way: a function of (a, b)."""

    @case.fault(f"interleaved-{id}", at="rotated", text=text)
    def _(_turned, x):
        return interleaved(*_turned).to(x.dtype)

    @case.fault(f"half-{id}", at="rotated_half", text=text)
    def _(_half_turned, x):
        return half(*_half_turned).to(x.dtype)


PLACES = "at position 0, does every channel keep its place?"
joined("output-in-other-order", PLACES, end_to_end, side_by_side)
joined("members-exchanged", PLACES, lambda a, b: side_by_side(b, a), lambda a, b: end_to_end(b, a))
joined("first-members-only", "how many channels must the result have?", lambda a, b: a, lambda a, b: a)


def whole(id, text, interleaved, half):
    """The whole rotation goes another way: a function of (x, cos, sin)."""

    @case.fault(f"interleaved-{id}", at="rotated", text=text)
    def _(x, _used_tables):
        return interleaved(x, *_used_tables).to(x.dtype)

    @case.fault(f"half-{id}", at="rotated_half", text=text)
    def _(x, _half_tables):
        return half(x, *_half_tables).to(x.dtype)


def by_halves(table):
    return torch.cat((table, table), dim=-1)


def by_neighbours(table):
    return table.repeat_interleave(2, dim=-1)


def quarter(cut, join):
    """The step that some libraries call rotate_half: every pair a quarter turn further."""

    def step(x):
        a, b = cut(x)
        return join(-b, a)

    return step


def combined(step, spread):
    return lambda x, cos, sin: x * spread(cos) + step(x) * spread(sin)


def alone(step):
    return lambda x, cos, sin: step(x)


INTERLEAVED, HALF = (neighbours, side_by_side), (halves, end_to_end)

whole(
    "tables-spread-the-other-way",
    "do both members of a pair get the same angle?",
    combined(quarter(*INTERLEAVED), by_halves),
    combined(quarter(*HALF), by_neighbours),
)
whole(
    "partner-of-the-other-pairing",
    "do the partner and the angle follow the same pairing?",
    combined(quarter(*HALF), by_neighbours),
    combined(quarter(*INTERLEAVED), by_halves),
)
whole(
    "quarter-turn-not-restacked",
    "do the sines reach the channels whose partners they carry?",
    combined(quarter(neighbours, end_to_end), by_neighbours),
    combined(quarter(halves, side_by_side), by_halves),
)
whole(
    "quarter-turn-alone",
    "in some libraries rotate_half names a smaller step: what does the whole rotation do with its result?",
    alone(quarter(*INTERLEAVED)),
    alone(quarter(*HALF)),
)


def along_heads(cut, join):
    return lambda x, cos, sin: join(*turn(*cut(x.transpose(1, 2)), cos, sin)).transpose(1, 2)


def first_head_only(cut, join):
    """With one position, only the first of the B*H rows is turned."""

    def spoilt(x, cos, sin):
        right = join(*turn(*cut(x), cos, sin))
        if x.shape[-2] > 1:
            return right
        rows, unturned = right.reshape(-1, x.shape[-1]), x.reshape(-1, x.shape[-1])
        return torch.cat((rows[:1], unturned[1:])).view_as(x)

    return spoilt


def first_part_only(cut, join):
    """Only the first half of the pairs is turned."""

    def spoilt(x, cos, sin):
        some = (torch.arange(cos.shape[-1], device=x.device) < cos.shape[-1] // 2).to(cos.dtype)
        return join(*turn(*cut(x), cos * some + 1 - some, sin * some))

    return spoilt


AXIS = "which axis of x is the position: the last but one, or the one before it?"
whole("heads-taken-for-positions", AXIS, along_heads(*INTERLEAVED), along_heads(*HALF))
whole(
    "only-first-head-when-alone",
    "with one position: are all B*H rows turned?",
    first_head_only(*INTERLEAVED),
    first_head_only(*HALF),
)
whole("only-first-half-of-pairs", "are all pairs of a head turned?", first_part_only(*INTERLEAVED), first_part_only(*HALF))


# ---------------------------------------------------------------- interleaved_to_half


@case.step
def _heads(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise ValueError(f"{w.shape[-1]} columns, n_head = {n_head}")
    return w.unflatten(-1, (n_head, -1))


@case.step
def reordered(_heads):
    return torch.cat((_heads[..., 0::2], _heads[..., 1::2]), dim=-1).flatten(-2)


def reorder_inputs(draw: Draw):
    yield sample("three heads", w=draw.normal(12, 24), n_head=3)
    yield sample("a square weight, two heads", w=draw.normal(20, 20), n_head=2)
    yield sample("a bias", w=draw.normal(18), n_head=3)
    yield sample("one head", w=draw.normal(4, 10), n_head=1)
    yield sample("heads of two channels", w=draw.normal(12, 6), n_head=3)
    yield refusal("10 columns for n_head = 3", ValueError, w=draw.normal(6, 10), n_head=3)
    yield refusal("heads of 3 columns", ValueError, w=draw.normal(6, 9), n_head=3)
    yield refusal("a bias of 7 for n_head = 1", ValueError, w=draw.normal(7), n_head=1)


def reorder_reference(w, n_head):
    D = w.shape[-1] // n_head
    order = [h * D + channel for h in range(n_head) for channel in (*range(0, D, 2), *range(1, D, 2))]
    return w.index_select(-1, torch.tensor(order, device=w.device))


def reorder_golden(real):
    C = real["h.1.ln_1"].shape[-1]
    return {"w": real["h.1.attn.c_attn.weight"][:, :C].contiguous(), "n_head": real.config["n_head"]}


case.exercise(
    "interleaved_to_half(w, n_head)",
    returns="reordered",
    inputs=reorder_inputs,
    points=3,
    lesson="`interleaved_to_half`",
    hints=(
        "rotate_interleaved pairs 0 with 1. To which two places must those channels go, for rotate_half to pair them?",
        "Inside each head, and along the columns: first the even channels, then the odd ones.",
        "out[...,h*D + i] = w[...,h*D + 2i];  out[...,h*D + D/2 + i] = w[...,h*D + 2i + 1], with D = columns / n_head",
    ),
    reference=reorder_reference,
    golden=reorder_golden,
)


def evens_first(w):
    return torch.cat((w[..., 0::2], w[..., 1::2]), dim=-1)


@case.fault(
    "odd-heads-reordered",
    at="_heads",
    tensor="reordered",
    text="an odd head leaves a channel without a partner: what do you do with it?",
)
def _(w, n_head):
    if w.shape[-1] % n_head:
        raise ValueError(ANY)
    return w.unflatten(-1, (n_head, -1))


@case.fault(
    "columns-left-over", at="_heads", tensor="reordered", text="what becomes of columns that do not split into n_head heads?"
)
def _(w, n_head):
    D = w.shape[-1] // n_head
    return w[..., : n_head * D].unflatten(-1, (n_head, D))


@case.fault(
    "columns-not-checked",
    at="_heads",
    tensor="reordered",
    text="columns that do not split into n_head heads of an even size: which error names both numbers?",
)
def _(w, n_head):
    if w.shape[-1] % (2 * n_head):
        raise RuntimeError(ANY)
    return w.unflatten(-1, (n_head, -1))


def ordered(id, text, change):
    @case.fault(id, at="reordered", text=text)
    def _(w, n_head, _heads):
        return change(w, n_head, _heads)


def rows_reordered(w, n_head, _heads):
    return evens_first(w.movedim(0, -1).unflatten(-1, (n_head, -1))).flatten(-2).movedim(-1, 0)


def weights_only(w, n_head, _heads):
    D = w.shape[-1] // n_head
    order = torch.arange(w.shape[-1], device=w.device).view(n_head, D)
    return w[:, evens_first(order).flatten()]


ordered("not-reordered", "does your result differ from w?", lambda w, H, heads: w)
ordered(
    "reordered-the-other-way",
    "which of the two orders does w have now, and which one must it get?",
    lambda w, H, heads: side_by_side(*halves(heads)).flatten(-2),
)
ordered("reordered-across-heads", "sorting stays inside a head: does yours?", lambda w, H, heads: evens_first(w))
ordered("rows-reordered", "weights are (in, out): which axis is sorted?", rows_reordered)
ordered("bias-not-served", "what if w is a 1-D bias?", weights_only)
ordered(
    "odd-channels-first",
    "which member of a pair comes first, before and after?",
    lambda w, H, heads: torch.cat((heads[..., 1::2], heads[..., 0::2]), -1).flatten(-2),
)
ordered(
    "halves-exchanged",
    "do the halves of a head change places, or the members of its pairs?",
    lambda w, H, heads: torch.cat(halves(heads)[::-1], -1).flatten(-2),
)
ordered(
    "neighbours-exchanged",
    "do the members of a pair change places, or do they move apart?",
    lambda w, H, heads: side_by_side(*neighbours(heads)[::-1]).flatten(-2),
)
ordered(
    "channels-reversed", "which order do the even channels keep among themselves?", lambda w, H, heads: heads.flip(-1).flatten(-2)
)
ordered(
    "odd-channels-reversed",
    "which order do the odd channels keep among themselves?",
    lambda w, H, heads: torch.cat((heads[..., 0::2], heads[..., 1::2].flip(-1)), -1).flatten(-2),
)
ordered(
    "heads-take-every-nth-column",
    "are the columns of head 0 next to each other?",
    lambda w, H, heads: evens_first(w.unflatten(-1, (-1, H)).movedim(-1, -2)).movedim(-1, -2).flatten(-2),
)
ordered("reordered-twice", "how many times is w sorted?", lambda w, H, heads: evens_first(evens_first(heads)).flatten(-2))
ordered("heads-left-apart", "which shape must the result have?", lambda w, H, heads: evens_first(heads))
ordered(
    "returned-transposed",
    "weights are (in, out): which shape must the result have?",
    lambda w, H, heads: evens_first(heads).flatten(-2).movedim(-1, 0),
)
ordered("even-channels-only", "how many columns must the result have?", lambda w, H, heads: heads[..., 0::2].flatten(-2))
