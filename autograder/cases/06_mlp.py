"""The case of 06_mlp."""

import importlib
import math

import torch
import torch.nn.functional as F

from autograder.case import Case, Draw, sample

probes = importlib.import_module("autograder.probes.06_mlp")

case = Case(
    "06_mlp",
    axes={
        "mlp_pre": "B T F",
        "mlp_post": "B T F",
        "mlp_out": "B T C",
        "gate": "B T F",
        "up": "B T F",
        "gated": "B T F",
        "swiglu_out": "B T C",
        "written": "subset C",
        "writes": "B T F C",
    },
)

# ---------------------------------------------------------------- relu


@case.step
def relu_out(x):
    return F.relu(x)


def relu_inputs(draw: Draw):
    yield sample("a (3, 4, 5) tensor", x=3 * draw.normal(3, 4, 5))
    yield sample("a square", x=draw.normal(4, 4))
    yield sample("a vector with a zero", gradient=False, x=torch.cat([draw.normal(5), draw.normal(1) * 0, draw.normal(3)]))
    yield sample("whole numbers, zeros among them", gradient=False, x=draw.integers(-12, 13, 6, 7).float())


case.exercise(
    "relu(x)",
    returns="relu_out",
    inputs=relu_inputs,
    points=1,
    lesson="`relu` and `gelu`",
    hints=(
        "Which entries stay as they are, and what takes the place of the others?",
        "Compare each entry with zero; the result has the shape and the dtype of x, and x itself keeps its numbers.",
        "out = x where x > 0, and 0 elsewhere",
    ),
    reference=lambda x: x.clamp(min=0),
    golden=lambda real: {"x": real["h.1.mlp.mlp_pre"]},
)


def _relu(name, text, function):
    @case.fault(f"relu-{name}", at="relu_out", text=text)
    def _(x):
        return function(x)


_relu("missing", "are there negative entries left in what you return?", lambda x: x)
_relu("keeps-the-negative", "which half stays: what is positive, or what is negative?", lambda x: x.clamp(max=0))
_relu("of-minus-x", "which half stays, and with which sign?", lambda x: F.relu(-x))
_relu("absolute-value", "what must become of -2: 2, or 0?", torch.abs)
_relu("leaky", "what is left of a negative entry: a small part, or nothing?", lambda x: F.leaky_relu(x, 0.01))
_relu("leaky-by-a-tenth", "what is left of a negative entry: a tenth, or nothing?", lambda x: F.leaky_relu(x, 0.1))
_relu("step", "is a positive entry kept, or does it become 1?", lambda x: (x > 0).to(x.dtype))
_relu("mask-only", "you know which entries are positive: where are the entries themselves?", lambda x: x > 0)
_relu("zero-and-one", "is a large entry kept, or cut off at 1?", lambda x: x.clamp(0, 1))
_relu("stops-at-six", "is a large entry kept, or cut off at 6?", lambda x: F.relu6(x))
_relu("at-least-one", "below which number are entries replaced, and by what: 0, or 1?", lambda x: x.clamp(min=1))
_relu("threshold-at-one", "above which number is an entry kept: 0, or 1?", lambda x: torch.where(x > 1, x, 0))
_relu("minus-one", "what takes the place of a negative entry: 0, or -1?", lambda x: torch.where(x > 0, x, -1))
_relu("smooth", "does relu have a corner at zero, and does yours?", F.softplus)
_relu("elu", "does a negative entry become 0, or something between -1 and 0?", F.elu)
_relu("gelu", "which of the two functions is this: relu, or gelu?", lambda x: F.gelu(x, approximate="tanh"))
_relu("exact-gelu", "can relu give a negative number?", F.gelu)
_relu("silu", "can relu give a negative number, and does yours dip below zero?", F.silu)
_relu("drops-entries", "is the shape of your result the shape of x?", lambda x: x[x > 0])
_relu(
    "largest-along-an-axis",
    "do you compare each entry with 0, or the entries with each other along axis 0?",
    lambda x: x.max(0).values,
)
_relu("largest-along-the-last-axis", "do you compare each entry with 0, or with its neighbours?", lambda x: x.max(-1).values)
_relu("maximum-of-a-number", "torch.maximum compares two tensors: is 0 one?", lambda x: torch.maximum(x, 0))
_relu(
    "one-truth-for-all",
    "can `if`, or Python's max, ask each entry of a tensor whether it is positive?",
    lambda x: x if x > 0 else 0 * x,
)
_relu("squared", "is a positive entry kept as it is, or squared?", lambda x: F.relu(x) ** 2)
_relu("halved", "is a positive entry kept as it is, or halved?", lambda x: F.relu(x) / 2)
_relu("doubled", "x and its absolute value add up to what, where x is positive?", lambda x: x + x.abs())
_relu("of-all-or-nothing", "does one negative entry decide for all the others?", lambda x: x * bool(x.mean() > 0))

# ---------------------------------------------------------------- gelu

ROOT = math.sqrt(2 / math.pi)
CUBE = 0.044715


def _inner(x, root=ROOT, cube=CUBE):
    return root * (x + cube * x**3)


@case.step
def _root():
    return ROOT


@case.step
def _cube():
    return CUBE


@case.step
def _u(x, _root, _cube):
    return _inner(x, _root, _cube)


@case.step
def gelu_out(x, _u):
    return x * torch.sigmoid(2 * _u)


def gelu_inputs(draw: Draw):
    below = [draw.random.uniform(-3.2, -2.2) for _ in range(14)] + [draw.random.uniform(-2.2, -0.5) for _ in range(10)]
    yield sample("a (3, 4, 5) tensor", x=2 * draw.normal(3, 4, 5))
    yield sample("numbers from -3.2 to -0.5", x=draw.tensor(below).view(4, 6))
    yield sample("numbers near 100 and near -100", x=draw.tensor([[100.0, -100.0, 99.0], [-101.0, 98.0, -97.0]]))
    yield sample("a square", x=draw.normal(3, 3))
    yield sample("a vector with a zero", gradient=False, x=torch.cat([draw.normal(6), draw.normal(1) * 0]))


case.exercise(
    "gelu(x)",
    returns="gelu_out",
    inputs=gelu_inputs,
    points=2,
    lesson="`relu` and `gelu`",
    hints=(
        "GELU multiplies x by a number between 0 and 1. Which number, and which of the two formulas for it did GPT-2 use?",
        "Compute u first, with the factor sqrt(2/pi) in front of the whole bracket; then 1 + tanh(u), times x, halved.",
        "out = x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3)))",
    ),
    reference=lambda x: F.gelu(x, approximate="tanh"),
    golden=lambda real: {"x": real["h.1.mlp.mlp_pre"]},
)


def _with_gelu(x, u):
    return 0.5 * x * (1 + torch.tanh(u))


def _tanh_by_exp(x, u):
    up, down = torch.exp(u), torch.exp(-u)
    return 0.5 * x * (1 + (up - down) / (up + down))


# Each mistake in GELU: its name, the part that it spoils, the question, and the spoilt part.
# All are looked for in `gelu`, the likelier ones also between the two matrices of `mlp`.
GELU_MISTAKES = (
    ("exact", "out", "GPT-2's GELU has a tanh: which of the two forms is yours?", lambda x, u: F.gelu(x)),
    (
        "by-1702",
        "out",
        "the factor 1.702 belongs to another approximation: which one is asked for?",
        lambda x, u: x * torch.sigmoid(1.702 * x),
    ),
    ("silu", "out", "is this GELU, or silu?", lambda x, u: F.silu(x)),
    ("relu", "out", "GELU dips below zero: does yours?", lambda x, u: F.relu(x)),
    ("leaky-relu", "out", "GELU is smooth at zero: is yours?", lambda x, u: F.leaky_relu(x)),
    ("elu", "out", "far to the left GELU comes back to zero: does yours?", lambda x, u: F.elu(x)),
    ("softplus", "out", "what must gelu(0) be?", lambda x, u: F.softplus(x)),
    ("tanh-alone", "out", "must gelu(10) be 10, and can yours be more than 1?", lambda x, u: torch.tanh(x)),
    ("sigmoid-alone", "out", "must gelu(0) be 0, and what is yours there?", lambda x, u: torch.sigmoid(x)),
    ("tanh-of-u-alone", "out", "tanh(u) is a part of the formula: what is done with it?", lambda x, u: torch.tanh(u)),
    ("without-x", "out", "your result lies between 0 and 1: what is it a share of?", lambda x, u: 0.5 * (1 + torch.tanh(u))),
    ("half-missing", "out", "must gelu(10) be 10, and what is yours?", lambda x, u: x * (1 + torch.tanh(u))),
    ("half-twice", "out", "gelu(10) must be 10: how many times do you halve?", lambda x, u: 0.25 * x * (1 + torch.tanh(u))),
    (
        "x-twice",
        "out",
        "gelu(10) must be 10: how many times does x stand in front?",
        lambda x, u: 0.5 * x * x * (1 + torch.tanh(u)),
    ),
    ("one-missing", "out", "gelu(-10) must be 0: what is added to the tanh?", lambda x, u: 0.5 * x * torch.tanh(u)),
    (
        "half-shift",
        "out",
        "in front of (1 + tanh), what is halved: all of it, or the tanh alone?",
        lambda x, u: x * (1 + 0.5 * torch.tanh(u)),
    ),
    ("half-added", "out", "how far does the factor 1/2 reach?", lambda x, u: x * (0.5 + torch.tanh(u))),
    (
        "tanh-subtracted",
        "out",
        "which side of zero is kept: is the tanh added, or taken away?",
        lambda x, u: 0.5 * x * (1 - torch.tanh(u)),
    ),
    ("negated", "out", "what is the sign of gelu(10)?", lambda x, u: -_with_gelu(x, u)),
    ("bracket-missing", "out", "what stands in the bracket that x/2 multiplies?", lambda x, u: 0.5 * x + torch.tanh(u)),
    ("one-inside-tanh", "out", "is 1 added to the tanh, or inside it?", lambda x, u: 0.5 * x * torch.tanh(1 + u)),
    ("times-u", "out", "which of the two multiplies the bracket: x, or u?", lambda x, u: 0.5 * u * (1 + torch.tanh(u))),
    (
        "sigmoid-for-tanh",
        "out",
        "which function stands in the bracket: tanh, or a sigmoid?",
        lambda x, u: 0.5 * x * (1 + torch.sigmoid(u)),
    ),
    (
        "sigmoid-of-x-by-root",
        "out",
        "your sigmoid has x times 0.798: where is the cube, and where is the 2?",
        lambda x, u: x * torch.sigmoid(ROOT * x),
    ),
    ("erf-of-u", "out", "which function stands in the bracket: erf, or tanh?", lambda x, u: 0.5 * x * (1 + torch.erf(u))),
    (
        "erf-of-x",
        "out",
        "is there an erf in GPT-2's form, and what divides x in the exact one?",
        lambda x, u: 0.5 * x * (1 + torch.erf(x)),
    ),
    (
        "tanh-around-factor",
        "out",
        "what is in the bracket of the tanh: sqrt(2/pi) alone, or all of u?",
        lambda x, u: 0.5 * x * (1 + math.tanh(ROOT) * (u / ROOT)),
    ),
    ("overflows", "out", "what is exp(35756) in float32, and infinity divided by infinity?", _tanh_by_exp),
    ("clipped-below", "out", "GELU dips below zero: what has become of that?", lambda x, u: _with_gelu(x, u).clamp(min=0)),
    ("root-misses-pi", "root", "does the root reach over the pi?", math.sqrt(2) / math.pi),
    ("root-upside-down", "root", "is it sqrt(2/pi), or sqrt(pi/2)? do you multiply by it, or divide?", math.sqrt(math.pi / 2)),
    (
        "u-halved",
        "root",
        "your u is half as large: where is the 2, in sqrt(2/pi) or in sigmoid(2u) = (1 + tanh(u)) / 2?",
        ROOT / 2,
    ),
    ("root-missing", "root", "is it 2/pi, or its root?", 2 / math.pi),
    ("root-misses-two", "root", "is it sqrt(2/pi), or 2/sqrt(pi)?", 2 / math.sqrt(math.pi)),
    ("root-of-one-over-pi", "root", "what is divided by pi under the root: 1, or 2?", math.sqrt(1 / math.pi)),
    ("root-of-two-pi", "root", "is it sqrt(2/pi), or sqrt(2*pi)?", math.sqrt(2 * math.pi)),
    ("root-of-two", "root", "where is the pi under your root?", math.sqrt(2)),
    (
        "root-of-half",
        "root",
        "x/sqrt(2) belongs to the erf of the exact form: what is the factor before the tanh's bracket?",
        math.sqrt(0.5),
    ),
    ("root-two-over-e", "root", "which number stands under the root with 2: pi, or e?", math.sqrt(2 / math.e)),
    ("root-rounded-to-0.8", "root", "how many digits of sqrt(2/pi) have you kept?", 0.8),
    ("factor-missing", "root", "which factor stands in front of the bracket (x + 0.044715 x^3)?", 1.0),
    ("factor-1702", "root", "the factor 1.702 does not mix with tanh: which one does?", 1.702),
    ("factor-0851", "root", "1.702/2 does not mix with the cube: which factor does?", 0.851),
    ("cube-ten-times", "cube", "is the coefficient of the cube 0.044715, or 0.44715?", 0.44715),
    ("cube-a-tenth", "cube", "is the coefficient of the cube 0.044715, or 0.0044715?", 0.0044715),
    ("cube-digit-lost", "cube", "is the coefficient of the cube 0.044715, or 0.04715?", 0.04715),
    ("cube-coefficient-missing", "cube", "how large is the part of x^3 in u?", 1.0),
    ("cube-missing", "cube", "which power of x, besides x itself, is in u?", 0.0),
    ("cube-subtracted", "cube", "is the cubic term added, or taken away?", -CUBE),
    (
        "bracket-closes-early",
        "u",
        "how far does the factor in front of the bracket reach?",
        lambda x, root, cube: root * x + cube * x**3,
    ),
    ("factor-on-cube-alone", "u", "does the factor reach x, or the cube alone?", lambda x, root, cube: x + root * cube * x**3),
    ("square-for-cube", "u", "which power of x is in u: is u odd, as tanh is?", lambda x, root, cube: root * (x + cube * x**2)),
    ("fifth-power", "u", "which power of x is in u: 3, or another?", lambda x, root, cube: root * (x + cube * x**5)),
    ("power-missing", "u", "0.044715 times which power of x?", lambda x, root, cube: root * (x + cube * x)),
    (
        "coefficient-cubed-too",
        "u",
        "what is cubed: x, or its product with the coefficient?",
        lambda x, root, cube: root * (x + (cube * x) ** 3),
    ),
    ("sum-cubed", "u", "what is cubed: x, or the sum?", lambda x, root, cube: root * (x + cube * x) ** 3),
    (
        "cube-multiplied",
        "u",
        "is the cubic term added to x, or does it multiply it?",
        lambda x, root, cube: root * x * cube * x**3,
    ),
    (
        "cube-of-scaled-x",
        "u",
        "is x cubed before the factor, or after it?",
        lambda x, root, cube: root * x + cube * (root * x) ** 3,
    ),
    ("u-is-x", "u", "the tanh of what: of x, or of u?", lambda x, root, cube: x),
    ("u-is-1702-x", "u", "the factor 1.702 belongs to a sigmoid without a cube: what is u?", lambda x, root, cube: 1.702 * x),
    (
        "u-is-x-over-root-two",
        "u",
        "x/sqrt(2) belongs to the erf of the exact form: what is u?",
        lambda x, root, cube: x / math.sqrt(2),
    ),
)


def _bend_with(part, spoilt):
    """GELU with one part replaced."""
    if part == "out":
        return lambda x: spoilt(x, _inner(x))
    if part == "u":
        return lambda x: _with_gelu(x, spoilt(x, ROOT, CUBE))
    return lambda x: _with_gelu(x, _inner(x, **{part: spoilt}))


def _gelu(name, part, text, spoilt):
    where = {"out": "gelu_out", "root": "_root", "cube": "_cube", "u": "_u"}[part]
    faulty = {
        "out": lambda x, _u: spoilt(x, _u),
        "root": lambda: spoilt,
        "cube": lambda: spoilt,
        "u": lambda x, _root, _cube: spoilt(x, _root, _cube),
    }[part]
    case.fault(f"gelu-{name}", at=where, tensor="gelu_out", text=text)(faulty)


for _row in GELU_MISTAKES:
    _gelu(*_row)


@case.fault("gelu-missing", at="gelu_out", text="is a negative entry still what it was?")
def _(x):
    return x


# ---------------------------------------------------------------- mlp


@case.step
def _bend():
    return lambda x: F.gelu(x, approximate="tanh")


@case.step
def _places():
    """Where the bend stands."""
    return ("between",)


@case.step
def _width(c_fc_w):
    return c_fc_w.shape[1]


@case.step
def mlp_pre(x, c_fc_w, c_fc_b, _width, _bend, _places):
    read = _bend(x) if "before" in _places else x
    return read @ c_fc_w[:, :_width] + c_fc_b[:_width]


@case.step
def mlp_post(mlp_pre, _bend, _places):
    return _bend(mlp_pre) if "between" in _places else mlp_pre


@case.step
def mlp_out(mlp_post, c_proj_w, c_proj_b, _width, _bend, _places):
    projected = mlp_post @ c_proj_w[:_width] + c_proj_b
    return _bend(projected) if "after" in _places else projected


def _weights(draw: Draw, C: int, F: int):
    return {
        "c_fc_w": draw.normal(C, F, scale=2 * C**-0.5),
        "c_fc_b": draw.normal(F),
        "c_proj_w": draw.normal(F, C, scale=F**-0.5),
        "c_proj_b": draw.normal(C, scale=0.5),
    }


def _silent(draw: Draw, C: int, F: int):
    """Neurons that hardly fire: there the two forms of GELU are far apart, as seen from what is written."""
    return {
        "c_fc_w": draw.normal(C, F, scale=0.1 * C**-0.5),
        "c_fc_b": draw.tensor([draw.random.uniform(-3.1, -2.3) for _ in range(F - 2)] + [-1.3, -0.9]),
        "c_proj_w": draw.normal(F, C, scale=F**-0.5),
        "c_proj_b": draw.normal(C, scale=0.01),
    }


def mlp_inputs(draw: Draw):
    yield sample("ten neurons, six channels", x=draw.normal(2, 5, 6), **_weights(draw, 6, 10))
    yield sample("F = 17, more than 4*C", x=draw.normal(3, 2, 4), **_weights(draw, 4, 17))
    yield sample("F = C", x=draw.normal(2, 3, 5), **_weights(draw, 5, 5))
    yield sample("F smaller than C", gradient=False, x=draw.normal(2, 4, 7), **_weights(draw, 7, 3))
    yield sample("neurons that hardly fire", x=draw.normal(2, 3, 4), **_silent(draw, 4, 9))
    yield sample("one sequence, (T,C)", x=draw.normal(5, 6), **_weights(draw, 6, 11))


def _golden_mlp(real):
    """Forty neurons of the trained model: the file stays small."""
    return {
        "x": real["h.1.ln_2"],
        "c_fc_w": real["h.1.mlp.c_fc.weight"][:, :40],
        "c_fc_b": real["h.1.mlp.c_fc.bias"][:40],
        "c_proj_w": real["h.1.mlp.c_proj.weight"][:40],
        "c_proj_b": real["h.1.mlp.c_proj.bias"],
    }


def _reference_mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b):
    return F.linear(F.gelu(F.linear(x, c_fc_w.T, c_fc_b), approximate="tanh"), c_proj_w.T, c_proj_b)


case.exercise(
    "mlp(x, c_fc_w, c_fc_b, c_proj_w, c_proj_b)",
    returns="mlp_out",
    inputs=mlp_inputs,
    points=4,
    lesson="`mlp`",
    hints=(
        "Two matrices with nothing between them are one matrix. What stands between these two?",
        "Each matrix has its bias; the weights are (in, out), so nothing is transposed; the bend comes after the first bias.",
        "mlp_pre = x @ c_fc_w + c_fc_b;  mlp_post = gelu(mlp_pre);  mlp_out = mlp_post @ c_proj_w + c_proj_b",
    ),
    reference=_reference_mlp,
    golden=_golden_mlp,
)


# Written out in mlp, where gelu stands ready, these are the likelier ones; the first row is looked for in the memory too.
LIBRARY = ("exact", "by-1702", "silu", "relu", "leaky-relu", "elu", "softplus", "tanh-alone", "sigmoid-alone", "half-missing")
BY_HAND = (
    "x-twice",
    "one-missing",
    "root-misses-pi",
    "root-upside-down",
    "root-missing",
    "u-halved",
    "factor-1702",
    "cube-ten-times",
)
BY_HAND += ("cube-missing", "bracket-closes-early", "square-for-cube", "erf-of-x", "clipped-below", "tanh-subtracted")


def _bent(name, part, text, spoilt):
    only = ("mlp", "key_value_memory") if name in LIBRARY else ("mlp",)

    @case.fault(f"mlp-gelu-{name}", at="_bend", tensor="mlp_post", text=text, only=only)
    def _():
        return _bend_with(part, spoilt)


for _row in GELU_MISTAKES:
    if _row[0] in LIBRARY + BY_HAND:
        _bent(*_row)


@case.fault(
    "mlp-softmax", at="_bend", tensor="mlp_post", text="do the neurons of a position compete: must their activations sum to 1?"
)
def _():
    return lambda x: F.softmax(x, dim=-1)


def _bend_at(name, places, tensor, text, only=("mlp",)):
    @case.fault(name, at="_places", tensor=tensor, text=text, only=only)
    def _():
        return places


_bend_at("bend-missing", (), "mlp_post", "what stands between the two matrices, so that they are not one?")
_bend_at(
    "memory-scaled-by-mlp-pre",
    (),
    "mlp_post",
    "do you scale by the value before the bend, or after it?",
    only=("key_value_memory",),
)
_bend_at(
    "bend-after-second-matrix",
    ("after",),
    "mlp_post",
    "can your output be more negative than -0.17, and where does the bend stand?",
)
_bend_at("bend-before-first-matrix", ("before",), "mlp_pre", "what is bent: x, or what the first matrix makes of it?")
_bend_at(
    "bend-also-after-second-matrix",
    ("between", "after"),
    "mlp_out",
    "how many bends are there? can mlp_out be more negative than -0.17?",
)
_bend_at("bend-also-before-first-matrix", ("before", "between"), "mlp_pre", "does the first matrix read x, or a bent x?")


@case.fault("bend-twice", at="mlp_post", text="how many times is gelu applied between the two matrices?")
def _(right, _bend):
    return _bend(right)


@case.fault("fc-bias-missing", at="mlp_pre", text="what does c_fc add after its product: are both biases used?")
def _(x, c_fc_w):
    return x @ c_fc_w


@case.fault("fc-bias-subtracted", at="mlp_pre", text="is the bias of c_fc added, or taken away?")
def _(x, c_fc_w, c_fc_b):
    return x @ c_fc_w - c_fc_b


@case.fault("fc-bias-twice", at="mlp_pre", text="how many times is the bias of c_fc added?")
def _(right, c_fc_b):
    return right + c_fc_b


@case.fault(
    "fc-bias-after-bend",
    at="mlp_post",
    text="the bias says how much of the pattern is needed: is it added before the bend, or after it?",
)
def _(x, c_fc_w, c_fc_b, _bend):
    return _bend(x @ c_fc_w) + c_fc_b


@case.fault("fc-bias-is-output-bias", at="mlp_pre", text="which of the two biases has F entries?", only=("mlp",))
def _(x, c_fc_w, c_proj_b):
    return x @ c_fc_w + c_proj_b


@case.fault("fc-weight-transposed", at="mlp_pre", text="is c_fc_w stored as (in, out), or as (out, in)?")
def _(x, c_fc_w, c_fc_b):
    return x @ c_fc_w.T + c_fc_b


@case.fault("fc-uses-projection-back", at="mlp_pre", text="which of the two matrices goes from C to F?")
def _(x, c_proj_w, c_fc_b):
    return x @ c_proj_w + c_fc_b


@case.fault(
    "fc-uses-projection-back-transposed",
    at="mlp_pre",
    text="what a neuron looks for and what it writes: are they the same matrix?",
)
def _(x, c_proj_w, c_fc_b):
    return x @ c_proj_w.T + c_fc_b


@case.fault("x-normalised", at="mlp_pre", text="is there a norm in this function?")
def _(x, c_fc_w, c_fc_b):
    return F.layer_norm(x, x.shape[-1:]) @ c_fc_w + c_fc_b


@case.fault(
    "width-equals-channels",
    at="_width",
    tensor="mlp_pre",
    text="how many neurons are there: C, or as many as c_fc_w has columns?",
)
def _(c_fc_w):
    return c_fc_w.shape[0]


@case.fault(
    "width-four-times-channels", at="_width", tensor="mlp_pre", text="is the width always 4*C, or is it read off the weights?"
)
def _(c_fc_w):
    return 4 * c_fc_w.shape[0]


@case.fault(
    "three-axes-unpacked",
    at="mlp_pre",
    text="does it work for one sequence (T,C)? who needs to know the number of axes?",
    only=("mlp",),
)
def _(right, x):
    B, T, C = x.shape
    return right


@case.fault(
    "three-letters-in-einsum",
    at="mlp_pre",
    text="does it work for one sequence (T,C)? how does einsum write 'any axes'?",
    only=("mlp",),
)
def _(right, x, c_fc_w, c_fc_b):
    return torch.einsum("btc,cf->btf", x, c_fc_w) + c_fc_b


@case.fault(
    "three-axes-transposed", at="mlp_pre", text="does it work for one sequence (T,C)? must axes be moved at all?", only=("mlp",)
)
def _(right, x):
    return right if x.transpose(1, 2) is not None else right


@case.fault("three-axes-in-bmm", at="mlp_pre", text="does it work for one sequence (T,C)? what does bmm want?", only=("mlp",))
def _(x, c_fc_w, c_fc_b):
    return torch.bmm(x, c_fc_w.expand(x.shape[0], -1, -1)) + c_fc_b


@case.fault("width-reshaped-to-four-times", at="mlp_pre", text="is the width always 4*C, or is it read off the weights?")
def _(right, x):
    return right.view(*x.shape[:-1], 4 * x.shape[-1])


@case.fault("positions-averaged", at="mlp_pre", text="does the MLP look at another position?")
def _(x, c_fc_w, c_fc_b):
    return x.mean(-2, keepdim=True).expand_as(x) @ c_fc_w + c_fc_b


@case.fault("output-bias-missing", at="mlp_out", text="what does c_proj add after its product: are both biases used?")
def _(mlp_post, c_proj_w):
    return mlp_post @ c_proj_w


@case.fault("output-bias-twice", at="mlp_out", text="how many times is the bias of c_proj added?")
def _(right, c_proj_b):
    return right + c_proj_b


@case.fault("output-bias-subtracted", at="mlp_out", text="is the bias of c_proj added, or taken away?")
def _(mlp_post, c_proj_w, c_proj_b):
    return mlp_post @ c_proj_w - c_proj_b


@case.fault(
    "output-bias-once-a-neuron", at="mlp_out", text="the bias of c_proj belongs to no neuron: how many times is it added?"
)
def _(right, c_proj_b, c_proj_w):
    return right + (c_proj_w.shape[0] - 1) * c_proj_b


@case.fault("output-bias-is-fc-bias", at="mlp_out", text="which of the two biases has C entries?")
def _(mlp_post, c_proj_w, c_fc_b):
    return mlp_post @ c_proj_w + c_fc_b


@case.fault("output-weight-transposed", at="mlp_out", text="is c_proj_w stored as (in, out), or as (out, in)?")
def _(mlp_post, c_proj_w, c_proj_b):
    return mlp_post @ c_proj_w.T + c_proj_b


@case.fault(
    "output-uses-fc-transposed", at="mlp_out", text="what a neuron looks for and what it writes: are they the same matrix?"
)
def _(mlp_post, c_fc_w, c_proj_b):
    return mlp_post @ c_fc_w.T + c_proj_b


@case.fault("output-not-projected", at="mlp_out", text="how many channels must the output have, and what brings F back to C?")
def _(mlp_post):
    return mlp_post


@case.fault("output-averaged", at="mlp_out", text="are the neurons' writes added up, or averaged?")
def _(mlp_post, c_proj_w, c_proj_b):
    return mlp_post @ c_proj_w / c_proj_w.shape[0] + c_proj_b


@case.fault("residual-added", at="mlp_out", text="who adds x to what the MLP writes: this function, or the block around it?")
def _(right, x):
    return right + x


@case.fault("output-discarded", at="mlp_out", text="is what the MLP computes in what you return?")
def _(x):
    return x


@case.fault("output-normalised", at="mlp_out", text="is there a norm in this function?")
def _(right):
    return F.layer_norm(right, right.shape[-1:])


# ---------------------------------------------------------------- swiglu


@case.step
def _matrices(w_gate, w_up, w_down):
    return w_gate, w_up, w_down


@case.step
def gate(x, _matrices):
    return x @ _matrices[0]


@case.step
def up(x, _matrices):
    return x @ _matrices[1]


@case.step
def _silu(gate):
    return F.silu(gate)


@case.step
def gated(_silu, up):
    return _silu * up


@case.step
def swiglu_out(gated, _matrices):
    return gated @ _matrices[2]


def _gates(draw: Draw, C: int, F: int):
    return {"w_gate": draw.normal(C, F, scale=2 * C**-0.5), "w_up": draw.normal(C, F), "w_down": draw.normal(F, C, scale=F**-0.5)}


def swiglu_inputs(draw: Draw):
    yield sample("ten neurons, six channels", x=draw.normal(2, 5, 6), **_gates(draw, 6, 10))
    yield sample("F smaller than C", gradient=False, x=draw.normal(3, 4, 7), **_gates(draw, 7, 5))
    yield sample("F = C", x=draw.normal(2, 3, 5), **_gates(draw, 5, 5))
    yield sample("one sequence, (T,C)", x=draw.normal(4, 6), **_gates(draw, 6, 11))
    large = {
        "w_gate": draw.tensor([[1000.0, -1000.0, 500.0], [-500.0, 0.0, 500.0]]),
        "w_up": draw.normal(2, 3),
        "w_down": draw.normal(3, 2),
    }
    yield sample("gates of 1000 and -1000", x=draw.tensor([[[1.0, 0.0], [-1.0, 0.0], [0.0, 2.0], [0.0, -2.0]]]), **large)


case.exercise(
    "swiglu(x, w_gate, w_up, w_down)",
    returns="swiglu_out",
    inputs=swiglu_inputs,
    points=4,
    lesson="`swiglu`",
    hints=(
        "One projection says how far a neuron is open, another what it holds. Which of the two is bent?",
        "Two products with x, silu on the gate alone, both multiplied entry by entry, and then down; no biases.",
        "out = (silu(x @ w_gate) * (x @ w_up)) @ w_down,  silu(a) = a * sigmoid(a)",
    ),
    reference=lambda x, w_gate, w_up, w_down: F.linear(F.silu(F.linear(x, w_gate.T)) * F.linear(x, w_up.T), w_down.T),
)


def _gate_function(name, text, function, only=()):
    @case.fault(f"gate-{name}", at="_silu", tensor="gated", text=text)
    def _(gate):
        return function(gate)


_gate_function("sigmoid", "is the gate bent by silu, or by a bare sigmoid (GLU)?", torch.sigmoid)
_gate_function("exact-gelu", "is the gate bent by silu, or by GELU (GEGLU)?", F.gelu)
_gate_function("tanh-gelu", "is the gate bent by silu, or by gelu (GEGLU)?", lambda a: F.gelu(a, approximate="tanh"))
_gate_function("relu", "is the gate bent by silu, or by relu?", F.relu)
_gate_function("tanh", "is the gate bent by silu, or by tanh?", torch.tanh)
_gate_function("softplus", "silu(0) is 0: what is yours?", F.softplus)
_gate_function(
    "by-1702", "the factor 1.702 belongs to an approximation of GELU: is it in silu?", lambda a: a * torch.sigmoid(1.702 * a)
)
_gate_function("not-bent", "on which of the two projections does the bend sit? is there one?", lambda a: a)
_gate_function("sigmoid-of-minus", "which sign has a in exp(-a)?", lambda a: a * torch.sigmoid(-a))
_gate_function("one-missing", "what is added to exp(-a) before you divide?", lambda a: a / torch.exp(-a))
_gate_function("bent-twice", "how many times is silu applied to the gate?", lambda a: F.silu(F.silu(a)))
_gate_function("squared", "how many times does a stand in silu(a)?", lambda a: a * F.silu(a))
_gate_function("softmax", "do the gates of a position sum to 1?", lambda a: F.softmax(a, dim=-1))
_gate_function(
    "halved-gelu", "silu(a) is a / (1 + exp(-a)): where does your 1/2 come from?", lambda a: 0.5 * a * (1 + torch.tanh(a))
)
_gate_function("negated", "which sign has silu(10)?", lambda a: -F.silu(a))
_gate_function(
    "overflows",
    "what is exp(1000) in float32, and infinity divided by infinity?",
    lambda a: a * torch.exp(a) / (1 + torch.exp(a)),
)
_gate_function("divided-by-sigmoid", "is a multiplied by the sigmoid, or divided by it?", lambda a: a / torch.sigmoid(a))


@case.fault(
    "gate-gradient-overflows",
    at="_silu",
    tensor="gated",
    text="what is exp(1000) in float32, and what does its gradient divide by what?",
)
def _(gate):
    return gate / (1 + torch.exp(-gate))


@case.fault("bend-on-up", at="gated", text="on which of the two projections does the bend sit?")
def _(gate, up):
    return gate * F.silu(up)


@case.fault("bend-on-both", at="gated", text="how many of the two projections are bent?")
def _(gate, up):
    return F.silu(gate) * F.silu(up)


@case.fault("bend-on-product", at="gated", text="is the gate bent before it meets up, or is the product bent?")
def _(gate, up):
    return F.silu(gate * up)


@case.fault("gate-times-sigmoid-of-up", at="gated", text="whose sigmoid is it: the gate's own, or that of up?")
def _(gate, up):
    return gate * torch.sigmoid(up)


@case.fault("gate-bent-then-bent-by-up", at="gated", text="do the two projections multiply each other, or bend each other?")
def _(gate, up):
    return F.silu(gate) * torch.sigmoid(up)


@case.fault("gate-and-up-added", at="gated", text="do gate and up meet in a sum, or in a product?")
def _(_silu, up):
    return _silu + up


@case.fault("up-missing", at="gated", text="the gate says how far a neuron is open: what does it hold?")
def _(_silu):
    return _silu


@case.fault("gate-missing", at="gated", text="what decides how far each neuron is open?")
def _(up):
    return up


@case.fault("up-bent-instead-of-gated", at="gated", text="three matrices come in: is w_gate used?")
def _(up):
    return F.silu(up)


@case.fault("up-uses-w-gate", at="up", text="do gate and up come from different matrices?")
def _(x, w_gate):
    return x @ w_gate


@case.fault("gate-uses-w-up", at="gate", text="do gate and up come from different matrices?")
def _(x, w_up):
    return x @ w_up


@case.fault("up-reads-gate", at="up", text="does the second projection read x, or the gate?")
def _(gate, w_up):
    return gate @ w_up


@case.fault(
    "swiglu-weights-transposed", at="_matrices", tensor="gate", text="are the three weights stored as (in, out), or as (out, in)?"
)
def _(right):
    return tuple(w.mT for w in right)


@case.fault("gate-weight-transposed", at="gate", text="is w_gate stored as (in, out), or as (out, in)?")
def _(x, w_gate):
    return x @ w_gate.T


@case.fault("up-weight-transposed", at="up", text="is w_up stored as (in, out), or as (out, in)?")
def _(x, w_up):
    return x @ w_up.T


@case.fault("down-weight-transposed", at="swiglu_out", text="is w_down stored as (in, out), or as (out, in)?")
def _(gated, w_down):
    return gated @ w_down.T


@case.fault("down-missing", at="swiglu_out", text="how many channels must the output have, and what brings F back to C?")
def _(gated):
    return gated


@case.fault("down-bent", at="swiglu_out", text="is anything bent after w_down?")
def _(right):
    return F.silu(right)


@case.fault(
    "swiglu-residual-added", at="swiglu_out", text="who adds x to what the MLP writes: this function, or the block around it?"
)
def _(right, x):
    return right + x


@case.fault("swiglu-output-discarded", at="swiglu_out", text="is what swiglu computes in what you return?")
def _(x):
    return x


@case.fault("swiglu-normalised", at="swiglu_out", text="is there a norm in this function?")
def _(right):
    return F.layer_norm(right, right.shape[-1:])


@case.fault("swiglu-bias-of-ones", at="swiglu_out", text="is there a bias in this function?")
def _(right):
    return right + 1


@case.fault(
    "swiglu-three-axes-unpacked", at="gate", text="does it work for one sequence (T,C)? who needs to know the number of axes?"
)
def _(right, x):
    B, T, C = x.shape
    return right


@case.fault(
    "swiglu-three-letters-in-einsum", at="gate", text="does it work for one sequence (T,C)? how does einsum write 'any axes'?"
)
def _(x, w_gate):
    return torch.einsum("btc,cf->btf", x, w_gate)


# ---------------------------------------------------------------- and_neuron


def _one(directions):
    return directions.new_ones(1)


@case.step
def _key(directions, answer):
    return directions.detach().sum(0)[:, None]


@case.step
def _shift(directions):
    return (1 - directions.shape[0]) * _one(directions)


@case.step
def _value(directions, answer):
    return answer[None]


@case.step
def _always(answer):
    return torch.zeros_like(answer)


@case.step
def _neuron(_key, _shift, _value, _always):
    """One right choice of the four tensors, of many."""
    return _key, _shift, _value, _always


@case.step
def weights(_neuron):
    return probes.form(_neuron)


@case.step
def written(_neuron, directions):
    return probes.written(_neuron, directions)


def _orthonormal(draw: Draw, N: int, C: int):
    """N directions with entries of 0, 1/2 and 1: their dot products are exact, so any right choice of weights is exact."""
    half = [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    rows = [[0.5 * entry for entry in row] + [0.0] * (C - 4) for row in half] if C >= 4 else []
    rows += [[float(column == row) for column in range(C)] for row in range(len(rows), C)]
    rows = rows[:1] + rows[:0:-1]  # a slanted one first, then straight ones
    columns = draw.random.sample(range(C), C)
    signs = [draw.random.choice((1.0, -1.0)) for _ in range(N)]
    return draw.tensor([[sign * row[column] for column in columns] for sign, row in zip(signs, rows, strict=False)])


def and_inputs(draw: Draw):
    yield sample("three directions in six channels", directions=_orthonormal(draw, 3, 6), answer=draw.normal(6))
    yield sample("two directions in two channels", directions=_orthonormal(draw, 2, 2), answer=draw.normal(2))
    yield sample("one direction", directions=_orthonormal(draw, 1, 5), answer=3 * draw.normal(5))
    yield sample("four directions in seven channels", directions=_orthonormal(draw, 4, 7), answer=draw.normal(7))
    yield sample("two directions in float64", directions=_orthonormal(draw, 2, 5).double(), answer=draw.normal(5).double())


def _reference_and(directions, answer):
    N, C = directions.shape
    written = torch.zeros(2**N, C, dtype=answer.dtype, device=answer.device)
    written[-1] = answer
    kind = str(answer.dtype).removeprefix("torch.")
    return [f"{shape} {kind}" for shape in ((C, 1), (1,), (1, C), (C,))], written


def _explain_and(inputs, value):
    """Say for which directions the neuron writes what."""
    weights = value[1] if isinstance(value, tuple) and len(value) == 2 else None
    n = inputs["directions"].shape[0]
    if not isinstance(weights, torch.Tensor) or weights.shape != (2**n, inputs["answer"].numel()):
        return []
    answer, weights = inputs["answer"].double(), weights.detach().double()
    for present, row in zip(probes.subsets(n), weights, strict=True):
        wanted = answer if all(present) else torch.zeros_like(answer)
        if (row - wanted).abs().max() > 1e-4 * answer.abs().max():
            some = [index for index, is_in in enumerate(present) if is_in]
            times = float(row @ answer / (answer @ answer))
            what = f"{times:.3g} times answer" if torch.allclose(row, times * answer, atol=1e-4) else "something else than answer"
            what = "nothing" if not row.any() else what
            names = (
                f"direction{'s' if len(some) > 1 else ''} {' and '.join(map(str, some))} of {n}"
                if some
                else f"none of {n} directions"
            )
            return [f"with {names} in x it writes {what}, expected {'answer' if all(present) else 'nothing'}"]
    return []


case.exercise(
    "and_neuron(directions, answer)",
    returns=("weights", "written"),
    inputs=and_inputs,
    points=3,
    lesson="`and_neuron`",
    hints=(
        "A neuron adds up what it finds. What does it read when all the directions are there, and what when one is missing?",
        "Choose the bias so that the two readings fall on different sides of zero, with 1 on the upper side; then write answer.",
        "relu(sum_n directions[n] . x + b) = 1 where the sum is N, and 0 where it is N - 1 or less: solve for b",
    ),
    reference=_reference_and,
    probe="and_neuron",
    explain=_explain_and,
)


def _replaced(at, name, text, function):
    """A fault that puts something else in the place of one of the four tensors."""
    case.fault(f"and-{name}", at=at, tensor="written", text=text)(function)


def _key(name, text, function):
    _replaced("_key", name, text, lambda directions, answer: function(directions.detach(), answer.detach())[:, None])


def _shift(name, text, function):
    _replaced("_shift", name, text, lambda directions: function(*map(float, directions.shape)) * _one(directions))


def _value(name, text, function):
    _replaced("_value", name, text, lambda directions, answer: function(answer, directions.detach())[None])


def _always(name, text, function):
    _replaced("_always", name, text, lambda answer: function(answer))


MISSING = "what does the neuron read when one direction of several is missing, and what keeps it quiet?"
_shift("bias-missing", MISSING, lambda N, C: 0)
_shift("never-fires", "with all the directions present, what is left after your bias, and what is written then?", lambda N, C: -N)
_shift("bias-one-too-high", "with your bias, what does the neuron read when one direction is missing?", lambda N, C: 2 - N)
HALF_WAY = "half way between N - 1 and N it is quiet for one missing: does it then write answer once, or half of it?"
_shift("bias-half-way", HALF_WAY, lambda N, C: 0.5 - N)
_shift("bias-half-too-high", "with all present the neuron must come out at 1: at what does yours?", lambda N, C: 1.5 - N)
_shift("bias-minus-one-half", "a bias of -1/2 is passed by one direction alone: must it grow with N?", lambda N, C: -0.5)
_shift("bias-for-two-directions", "with the bias you chose, what does it read for N = 3 with two present?", lambda N, C: -1)
_shift("bias-for-three-directions", "with the bias you chose, what does it read for N = 2, and for N = 4?", lambda N, C: -2)
_shift("bias-positive", "the bias is added: which sign must it have to keep the neuron quiet?", lambda N, C: N - 1)
_shift("bias-from-channels", "how many directions are there: which axis of directions counts them?", lambda N, C: 1 - C)
_shift("bias-divided", "must the bias grow with N?", lambda N, C: (1 - N) / N)
SOME = "does the neuron look for all the directions, each in full? what does it read when all are present?"
_key("fires-for-one-direction-only", SOME, lambda d, a: d[0])
_key(
    "directions-normalised",
    "how long may the column be: what does it read with all N present?",
    lambda d, a: d.sum(0) / d.sum(0).norm(),
)
_key("looks-for-answer", "which tensor does the neuron look for, and which does it write?", lambda d, a: a)
_key("directions-doubled", "each direction counts twice: does your bias know that?", lambda d, a: 2 * d.sum(0))
_value("answer-n-times", "does it write answer once, or N times?", lambda a, d: d.shape[0] * a)
_value("answer-divided", "when all are present, is answer written whole, or a part of it?", lambda a, d: a / d.shape[0])
_value("answer-normalised", "is answer written at its own length?", lambda a, d: a / a.norm())
_value("answer-negated", "which sign has what it writes?", lambda a, d: -a)
_value("writes-directions", "which tensor does the neuron look for, and which does it write?", lambda a, d: d.sum(0))
_value("writes-answer-and-directions", "what does it write besides answer?", lambda a, d: a + d.sum(0))
_value("writes-ones", "which vector is written: answer, or ones?", lambda a, d: torch.ones_like(a))
_always("answer-always-written", "what does c_proj_b write when nothing is there?", lambda a: a)
_always("minus-answer-always-written", "must c_proj_b take anything back when nothing is there?", lambda a: -a)
_always("output-bias-of-ones", "what does c_proj_b write when nothing is there?", torch.ones_like)
_always("output-bias-of-minus-ones", "what does c_proj_b write when nothing is there?", lambda a: -torch.ones_like(a))


def _form(at, name, tensor, text, function):
    """A fault in the shape or the dtype of one of the four tensors, or of all."""
    case.fault(f"and-{name}", at=at, tensor=tensor, text=text)(lambda right, directions: function(right, directions))


_form("_key", "key-flat", "weights", "which shape must c_fc_w have, for one neuron?", lambda w, d: w.flatten())
_form("_key", "key-a-row", "weights", "is c_fc_w (in, out), or (out, in)?", lambda w, d: w.mT)
_form("_shift", "bias-without-axis", "weights", "which shape must c_fc_b have: that of one neuron, or none?", lambda b, d: b[0])
_form("_shift", "bias-a-python-number", "weights", "are all four that you return tensors?", lambda b, d: b.item())
_form(
    "_shift",
    "bias-once-a-channel",
    "weights",
    "how many neurons are there, and how many biases?",
    lambda b, d: b.expand(d.shape[1]),
)
_form(
    "_shift",
    "bias-once-a-direction",
    "weights",
    "how many neurons are there, and how many biases?",
    lambda b, d: b.expand(d.shape[0]),
)
_form("_value", "value-flat", "weights", "which shape must c_proj_w have, for one neuron?", lambda p, d: p.flatten())
_form("_value", "value-a-column", "weights", "is c_proj_w (in, out), or (out, in)?", lambda p, d: p.mT)
_form("_always", "output-bias-a-row", "weights", "which shape must c_proj_b have?", lambda q, d: q[None])
_form("_always", "output-bias-of-one-entry", "weights", "how many channels does c_proj_b write to?", lambda q, d: q[:1])
_form("_always", "output-bias-without-axis", "weights", "how many channels does c_proj_b write to?", lambda q, d: q[0])
_form("_always", "output-bias-a-python-number", "weights", "are all four that you return tensors?", lambda q, d: 0.0)
_form("_shift", "bias-of-whole-numbers", "weights", "which dtype has c_fc_b, and which has directions?", lambda b, d: b.long())
_form("_shift", "bias-in-float32", "weights", "which dtype has c_fc_b when directions is float64?", lambda b, d: b.float())
_form(
    "_always", "output-bias-in-float32", "weights", "which dtype has c_proj_b when directions is float64?", lambda q, d: q.float()
)
_form("_key", "key-in-float32", "weights", "which dtype has c_fc_w when directions is float64?", lambda w, d: w.float())
_form(
    "_neuron",
    "order-of-results",
    "weights",
    "in which order do the four tensors come back?",
    lambda n, d: (n[0], n[2], n[1], n[3]),
)
_form("_neuron", "biases-not-returned", "weights", "how many tensors are to be returned?", lambda n, d: (n[0], n[2]))
_form(
    "_neuron",
    "output-bias-not-returned",
    "weights",
    "how many tensors are to be returned, and which is the last?",
    lambda n, d: n[:3],
)
EACH = "each direction has a neuron of its own: which of them knows about the others?"
_form("_neuron", "one-neuron-a-direction", "weights", EACH, lambda n, d: (d.mT, 0 * d[:, 0], n[2].expand_as(d), n[3]))
SHARE = "each direction has a neuron of its own and a share of answer: what is written when one is missing?"
_form(
    "_neuron",
    "one-neuron-a-direction-sharing",
    "weights",
    SHARE,
    lambda n, d: (d.mT, 0 * d[:, 0], n[2].expand_as(d) / len(d), n[3]),
)

# ---------------------------------------------------------------- key_value_memory


@case.step
def writes(mlp_post, c_proj_w, _width):
    return mlp_post[..., None] * c_proj_w[:_width]


def memory_inputs(draw: Draw):
    def without_output_bias(weights):
        return {name: value for name, value in weights.items() if name != "c_proj_b"}

    yield sample("seven neurons, four channels", x=draw.normal(2, 3, 4), **without_output_bias(_weights(draw, 4, 7)))
    yield sample("F = 13, more than 4*C", x=draw.normal(2, 5, 3), **without_output_bias(_weights(draw, 3, 13)))
    yield sample("F = C", x=draw.normal(3, 2, 5), **without_output_bias(_weights(draw, 5, 5)))
    yield sample(
        "as many positions as neurons", gradient=False, x=draw.normal(2, 4, 6), **without_output_bias(_weights(draw, 6, 4))
    )
    yield sample("neurons that hardly fire", x=draw.normal(2, 3, 4), **without_output_bias(_silent(draw, 4, 9)))


case.exercise(
    "key_value_memory(x, c_fc_w, c_fc_b, c_proj_w)",
    returns="writes",
    inputs=memory_inputs,
    points=3,
    lesson="`key_value_memory`",
    hints=(
        "The MLP's output is a sum with one term for each neuron. What are the terms?",
        "Give mlp_post an axis for the channels, so that each activation meets its own row of c_proj_w; do not sum.",
        "out[b,t,f,c] = mlp_post[b,t,f] * c_proj_w[f,c]",
    ),
    reference=lambda x, c_fc_w, c_fc_b, c_proj_w: torch.einsum(
        "btf,fc->btfc", F.gelu(F.linear(x, c_fc_w.T, c_fc_b), approximate="tanh"), c_proj_w
    ),
    golden=lambda real: {name: value for name, value in _golden_mlp(real).items() if name != "c_proj_b"},
)


@case.fault("memory-summed", at="writes", text="is each neuron's write to be seen, or their sum?")
def _(mlp_post, c_proj_w):
    return mlp_post @ c_proj_w


@case.fault("memory-summed-over-channels", at="writes", text="what does a neuron write: a vector, or a number?")
def _(right):
    return right.sum(-1)


@case.fault("memory-channels-before-neurons", at="writes", text="which axis comes last: the neurons, or the channels?")
def _(right):
    return right.mT


@case.fault(
    "memory-neurons-before-positions", at="writes", text="in which order do the four axes come: where do the neurons stand?"
)
def _(right):
    return right.transpose(1, 2)


@case.fault("memory-neurons-first", at="writes", text="in which order do the four axes come: where do the neurons stand?")
def _(right):
    return right.movedim(2, 0)


@case.fault("memory-writes-keys", at="writes", text="what does a neuron write: its column of c_fc_w, or its row of c_proj_w?")
def _(mlp_post, c_fc_w):
    return mlp_post[..., None] * c_fc_w.T


@case.fault("memory-activations-alone", at="writes", text="each activation multiplies something: what?")
def _(mlp_post):
    return mlp_post


@case.fault("memory-values-alone", at="writes", text="each row of c_proj_w is scaled by something: by what?")
def _(mlp_post, c_proj_w):
    return c_proj_w.expand(*mlp_post.shape[:-1], -1, -1)


@case.fault("memory-activation-on-channels", at="writes", text="does each activation scale a row of c_proj_w, or a column?")
def _(mlp_post, c_proj_w):
    return mlp_post[..., None, :] * c_proj_w


@case.fault("memory-no-axis-for-channels", at="writes", text="which axis must mlp_post be given, so that a number meets a row?")
def _(mlp_post, c_proj_w):
    return mlp_post * c_proj_w


@case.fault("memory-values-transposed", at="writes", text="is a neuron's value a row of c_proj_w, or a column?")
def _(mlp_post, c_proj_w):
    return mlp_post[..., None] * c_proj_w.T


@case.fault("memory-activation-after-product", at="writes", text="what is bent: what the neuron reads, or what it writes?")
def _(mlp_pre, c_proj_w):
    return F.gelu(mlp_pre[..., None] * c_proj_w, approximate="tanh")


@case.fault("memory-writes-bent", at="writes", text="can a neuron write something negative, and can yours?")
def _(right):
    return F.gelu(right, approximate="tanh")


@case.fault("memory-activations-shared-out", at="writes", text="are the activations used as they are, or divided by their sum?")
def _(mlp_post, c_proj_w):
    return (mlp_post / mlp_post.sum(-1, keepdim=True))[..., None] * c_proj_w


@case.fault("memory-averaged", at="writes", text="summed over the neurons, do your writes give mlp_out, or its F-th part?")
def _(right):
    return right / right.shape[2]


@case.fault("memory-added", at="writes", text="does the activation multiply the row of c_proj_w, or is it added to it?")
def _(mlp_post, c_proj_w):
    return mlp_post[..., None] + c_proj_w


@case.fault("memory-values-normalised", at="writes", text="are the rows of c_proj_w taken at their own length?")
def _(mlp_post, c_proj_w):
    return mlp_post[..., None] * F.normalize(c_proj_w, dim=-1)


@case.fault("memory-strongest-only", at="writes", text="how many of the neurons write?")
def _(mlp_post, c_proj_w):
    strongest = F.one_hot(mlp_post.argmax(-1), mlp_post.shape[-1])
    return (mlp_post * strongest)[..., None] * c_proj_w


@case.fault("memory-running-sum", at="writes", text="does entry f hold what neuron f writes, or all neurons up to f?")
def _(right):
    return right.cumsum(2)


@case.fault(
    "memory-flattened", at="writes", text="does the neuron axis stand between positions and channels, or are the two in one?"
)
def _(right):
    return right.flatten(2)
