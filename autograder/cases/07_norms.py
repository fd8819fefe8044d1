"""The case of 07_norms.

In `pre_norm` and `post_norm` the samples hold a matrix in place of the sublayer and a gain in place of the norm; the
probe makes the two callables of them.

Half precision is compared bit for bit: the rows are whole numbers, chosen so that every right order of operations
rounds to the same value, and so that statistics taken in half precision do not.
"""

import torch
import torch.nn.functional as F

from autograder.case import Case, Draw, sample

case = Case(
    "07_norms",
    axes={
        "mean": "B T 1",
        "variance": "B T 1",
        "normalised": "B T C",
        "ln_1": "B T C",
        "mean_square": "B T 1",
        "rescaled": "B T C",
        "rms_out": "B T C",
        "normed": "B T C",
        "written": "B T C",
        "pre_out": "B T C",
        "post_written": "B T C",
        "post_sum": "B T C",
        "post_out": "B T C",
    },
)

LIBRARY = ("layer_norm", "rms_norm", "batch_norm", "group_norm", "instance_norm")
HALF = (torch.bfloat16, torch.float16)
HALF_INSIDE = ("computed-in-half-precision", "in which dtype are the squares and their mean taken, and is there room for them?")


def widened(x):
    return x.float() if x.dtype in HALF else x


# ---------------------------------------------------------------- layer_norm


@case.step
def _wide(x):
    return widened(x)


@case.step
def _axes(x):
    """The axes that the statistics run over."""
    return (-1,)


@case.step
def _source(_wide):
    """What the statistics are taken from."""
    return _wide


@case.step
def mean(_source, _axes):
    return _source.mean(_axes, keepdim=True)


@case.step
def variance(_source, mean, _axes):
    return (_source - mean).square().mean(_axes, keepdim=True)


@case.step
def _root(variance, eps):
    return torch.sqrt(variance + eps)


@case.step
def normalised(_wide, mean, _root):
    return (_wide - mean) / _root


@case.step
def ln_1(normalised, weight, bias, x):
    return (normalised * weight + bias).to(x.dtype)


def gain(draw: Draw, C: int):
    """Gains of either sign, none of them near 0 or 1."""
    return draw.tensor([draw.random.choice((-1, 1)) * draw.random.uniform(1.3, 2.5) for _ in range(C)])


def powers(draw: Draw, C: int):
    """Gains that are powers of two: multiplying by them rounds nothing."""
    return draw.tensor([draw.random.choice((-2.0, -1.0, -0.5, 0.5, 2.0, 4.0)) for _ in range(C)])


def shuffled(draw: Draw, row: list[float], signs: bool = False) -> list[float]:
    row = draw.random.sample(row, len(row))
    return [draw.random.choice((-1, 1)) * entry for entry in row] if signs else row


# Deviations with mean 0 and mean square 4.
DEVIATIONS = [3, 3, 1, -3, -1, -1, -1, -1]


def deviating(draw: Draw, rows: int, means: range, factors: tuple[int, ...], dtype: torch.dtype):
    """Rows of whole numbers with a whole mean, whose deviations over their root are multiples of a half."""
    found = []
    for _ in range(rows):
        centre, factor = draw.random.choice(means), draw.random.choice(factors)
        found.append([centre + factor * deviation for deviation in shuffled(draw, DEVIATIONS)])
    return draw.tensor(found).to(dtype)[None]


def rows_of_many_sizes(draw: Draw, C: int):
    """Rows with a mean of their own, from tiny to large; a tiny row's mean is tiny too, so that it keeps its digits."""
    sizes = draw.tensor([[1e-3], [4.0], [0.01], [30.0], [1.0]])
    return sizes * (draw.normal(2, 5, C) + draw.tensor([[0.5], [2.0], [-1.0], [-2.0], [1.5]]))


def constant_rows(draw: Draw):
    """Whole constants and eight channels, so that every way to take the mean of such a row is exact."""
    x = draw.normal(2, 3, 8)
    x[0, 1], x[1, 0], x[1, 2] = 4.0, 0.0, -8.0
    return x


def affine(draw: Draw, C: int):
    return {"weight": gain(draw, C), "bias": draw.normal(C)}


def layer_inputs(draw: Draw):
    yield sample("rows from tiny to large", x=rows_of_many_sizes(draw, 6), **affine(draw, 6))
    yield sample("two texts of five positions", x=2 * draw.normal(2, 5, 7) + 3, **affine(draw, 7))
    yield sample("constant rows", x=constant_rows(draw), **affine(draw, 8))
    yield sample("eps = 0.5", x=draw.normal(3, 4, 5) - 1, **affine(draw, 5), eps=0.5)
    yield sample("one more axis in front, eps = 2", x=draw.normal(2, 3, 4, 6) + 2, **affine(draw, 6), eps=2.0)
    yield sample("all axes of size 4", x=3 * draw.normal(4, 4, 4) + 2, **affine(draw, 4))
    yield sample("a table of rows", x=draw.normal(4, 9) + 1, **affine(draw, 9))
    yield sample("a row alone", x=3 * draw.normal(7) - 2, **affine(draw, 7))
    half = {"weight": powers(draw, 8), "bias": powers(draw, 8)}
    room = deviating(draw, 5, range(300, 600), (151, 153, 155), torch.float16)
    yield sample("float16 inputs", apart=HALF_INSIDE, x=room, **{name: value.half() for name, value in half.items()})
    # bfloat16 has no odd number between 256 and 512, so it cannot hold these means.
    digits = deviating(draw, 5, range(257, 283, 2), (17, 21, 23), torch.bfloat16)
    yield sample("bfloat16 inputs", apart=HALF_INSIDE, x=digits, **{name: value.bfloat16() for name, value in half.items()})


def layer_reference(x, weight, bias, eps=1e-5):
    if x.dtype in HALF:
        weight, bias = weight.float(), bias.float()
    return F.layer_norm(widened(x), x.shape[-1:], weight, bias, eps).to(x.dtype)


case.exercise(
    "layer_norm(x, weight, bias, eps=1e-5)",
    returns="ln_1",
    inputs=layer_inputs,
    points=4,
    lesson="`layer_norm`",
    hints=(
        "Which numbers of x may one row of the result depend on?",
        "Take the mean away, divide by the root of the mean squared deviation (eps inside it); then scale and shift channels.",
        "out[...,c] = (x[...,c] - mean) / sqrt((1/C) sum_c (x[...,c] - mean)^2 + eps) * weight[c] + bias[c]",
    ),
    reference=layer_reference,
    golden=lambda real: {"x": real["h.1.resid_pre"], "weight": real["h.1.ln_1.weight"], "bias": real["h.1.ln_1.bias"]},
    forbidden=LIBRARY,
)


# ---------------------------------------------------------------- rms_norm


@case.step
def _rms_wide(x):
    return widened(x)


@case.step
def _rms_axes(x):
    """The axes that the mean square runs over."""
    return (-1,)


@case.step
def _rms_source(_rms_wide):
    """What the mean square is taken from."""
    return _rms_wide


@case.step
def mean_square(_rms_source, _rms_axes):
    return _rms_source.square().mean(_rms_axes, keepdim=True)


@case.step
def _rms_root(mean_square, eps):
    return torch.sqrt(mean_square + eps)


@case.step
def rescaled(_rms_wide, _rms_root):
    return _rms_wide / _rms_root


@case.step
def rms_out(rescaled, weight, x):
    return (rescaled * weight).to(x.dtype)


# Rows whose unit-size entries lie far from halfway between two bfloat16 numbers, and which come out different when
# their squares are rounded to bfloat16, whether the root then divides or its reciprocal multiplies.
IN_BFLOAT16 = (
    [105, 151, 165, 83, 150, 169, 229],
    [238, 39, 100, 183, 168, 56, 33],
    [242, 255, 183, 109, 52, 144, 79],
    [199, 74, 164, 164, 97, 69, 126],
    [216, 246, 109, 65, 48, 152, 42],
)
# Mean square 4 * 12000^2: the squares and the length of the row are past float16's 65504, the entries are not.
IN_FLOAT16 = [12000.0] * 7 + [60000.0]


def rms_inputs(draw: Draw):
    yield sample("rows from tiny to large", x=rows_of_many_sizes(draw, 6), weight=gain(draw, 6))
    yield sample("two texts of five positions", x=2 * draw.normal(2, 5, 7) + 3, weight=gain(draw, 7))
    yield sample("constant rows", x=constant_rows(draw), weight=gain(draw, 8))
    yield sample("eps = 0.5", x=draw.normal(3, 4, 5) - 1, weight=gain(draw, 5), eps=0.5)
    yield sample("one more axis in front, eps = 2", x=draw.normal(2, 3, 4, 6) + 2, weight=gain(draw, 6), eps=2.0)
    yield sample("all axes of size 4", x=3 * draw.normal(4, 4, 4) + 2, weight=gain(draw, 4))
    yield sample("a table of rows", x=draw.normal(4, 9) + 1, weight=gain(draw, 9))
    yield sample("a row alone", x=3 * draw.normal(7) - 2, weight=gain(draw, 7))
    large = draw.tensor([shuffled(draw, IN_FLOAT16, signs=True) for _ in range(3)])[None].half()
    yield sample("float16 inputs", apart=HALF_INSIDE, x=large, weight=powers(draw, 8).half())
    small = draw.tensor([shuffled(draw, row, signs=True) for row in IN_BFLOAT16])[None].bfloat16()
    yield sample("bfloat16 inputs", apart=HALF_INSIDE, x=small, weight=powers(draw, 7).bfloat16())


def rms_reference(x, weight, eps=1e-5):
    return F.rms_norm(widened(x), x.shape[-1:], weight.float() if x.dtype in HALF else weight, eps).to(x.dtype)


case.exercise(
    "rms_norm(x, weight, eps=1e-5)",
    returns="rms_out",
    inputs=rms_inputs,
    points=3,
    lesson="`rms_norm`",
    hints=(
        "Which one number describes the size of a row, when its mean is left where it is?",
        "Square, average over the channels, add eps, take the root, divide; then scale each channel.",
        "out[...,c] = x[...,c] / sqrt((1/C) sum_c x[...,c]^2 + eps) * weight[c]",
    ),
    reference=rms_reference,
    golden=lambda real: {"x": real["h.1.resid_pre"], "weight": real["h.1.ln_1.weight"]},
    forbidden=LIBRARY,
)


# ---------------------------------------------------------------- mistakes that both norms know: which axes


def over(id, text, axes):
    """The same wrong axes in both norms."""

    @case.fault(f"layer-{id}", at="_axes", tensor="mean", text=text)
    def _(x):
        return axes(x)

    @case.fault(f"rms-{id}", at="_rms_axes", tensor="mean_square", text=text)
    def _(x):
        return axes(x)


over("over-positions", "change the last position: does an earlier row of your result move?", lambda x: (-2,))
over(
    "over-axis-1",
    "your axis is written as 1: which axis is that for a row alone, or with one more axis in front?",
    lambda x: (1,),
)
over("over-axis-2", "your axis is written as 2: which axis is that when x has two axes, or four?", lambda x: (2,))
over("over-batch", "does a text's result depend on whose text sits next to it?", lambda x: (0,))
over("over-batch-and-positions", "one mean for each channel, or one for each row?", lambda x: tuple(range(x.dim() - 1)))
over("over-positions-and-channels", "one row, one number: how many rows share your statistics?", lambda x: (-2, -1))
over("over-axes-1-and-2", "your axes are written as 1 and 2: how many rows share one number?", lambda x: (1, 2))
over(
    "over-positions-unless-alone",
    "change the last position: does an earlier row of your result move? is a row alone treated like the others?",
    lambda x: (-2,) if x.dim() > 1 else (-1,),
)
over(
    "over-positions-and-channels-unless-alone",
    "one row, one number: how many rows share your statistics, when a row is not alone?",
    lambda x: (-2, -1) if x.dim() > 1 else (-1,),
)
over(
    "over-axis-1-unless-missing",
    "your axis is written as 1: which axis is that with one more axis in front, and which one with fewer?",
    lambda x: (1,) if x.dim() > 1 else (-1,),
)
over(
    "over-axis-1-of-three",
    "which axis do you take when x has three axes, and is it the same one for a row alone?",
    lambda x: (1,) if x.dim() == 3 else (-1,),
)
over("over-everything", "do all rows of all texts share one number in yours?", lambda x: tuple(range(x.dim())))


# ---------------------------------------------------------------- mistakes that both norms know: eps and the root


def rooted(id, text, change):
    """The same mistake with eps or the root in both norms."""

    @case.fault(f"layer-{id}", at="_root", tensor="normalised", text=text)
    def _(variance, eps):
        return change(variance, eps)

    @case.fault(f"rms-{id}", at="_rms_root", tensor="rescaled", text=text)
    def _(mean_square, eps):
        return change(mean_square, eps)


rooted("eps-outside-root", "does eps stand under the root, or beside it?", lambda square, eps: square.sqrt() + eps)
rooted("eps-missing", "what does a row of zeros give, and what is 0/0?", lambda square, eps: square.sqrt())
rooted("eps-twice", "how many times does eps stand in the formula?", lambda square, eps: (square + eps).sqrt() + eps)
rooted("eps-squared", "is eps added to the square as it is, or squared first?", lambda square, eps: (square + eps**2).sqrt())
rooted("eps-subtracted", "does eps make the number under the root larger, or smaller?", lambda square, eps: (square - eps).sqrt())
rooted(
    "eps-as-floor-of-square",
    "is eps added, or is it the least that you let through?",
    lambda square, eps: square.clamp(min=eps).sqrt(),
)
rooted(
    "eps-as-floor-of-root",
    "is eps added under the root, or is it the least root that you allow?",
    lambda square, eps: square.sqrt().clamp(min=eps),
)
rooted(
    "root-squared-again",
    "a root that is squared again: which slope has the root of 0, and what becomes of the gradient of a constant row?",
    lambda square, eps: (square.sqrt() ** 2 + eps).sqrt(),
)
rooted("root-missing", "a row times 10 must give the same result: does yours?", lambda square, eps: square + eps)
rooted("root-of-root", "how many roots lie between the square and the divisor?", lambda square, eps: (square.sqrt() + eps).sqrt())
rooted(
    "root-of-root-with-eps",
    "how many roots lie between the square and the divisor, and where does eps stand?",
    lambda square, eps: (square + eps) ** 0.25,
)
rooted("multiplied-by-root", "do you divide by the root, or multiply by it?", lambda square, eps: (square + eps).rsqrt())
rooted(
    "divided-by-square-squared",
    "is the divisor the root, or the square of what stands under it?",
    lambda square, eps: (square + eps) ** 2,
)


def typed(value, name):
    text = "is it the caller's eps that you use, or a number that you, or the function you call, typed in?"
    rooted(f"eps-typed-{name}", text, lambda square, eps: (square + value).sqrt())


def defaulting(value, name):
    rooted(
        f"eps-default-{name}",
        "which eps does your function take when the caller gives none?",
        lambda square, eps: (square + (value if eps == 1e-5 else eps)).sqrt(),
    )


for _value, _name in ((1e-3, "1e-3"), (1e-6, "1e-6"), (1e-7, "1e-7"), (1e-8, "1e-8"), (1e-12, "1e-12")):
    typed(_value, _name)
    defaulting(_value, _name)
typed(1e-5, "1e-5")
typed(torch.finfo(torch.float32).eps, "of-the-dtype")
defaulting(torch.finfo(torch.float32).eps, "of-the-dtype")


# ---------------------------------------------------------------- mistakes of layer_norm


@case.fault(
    "layer-statistics-detached",
    at="_source",
    tensor="mean",
    text="mean and variance are functions of x: does the gradient know it?",
)
def _(right):
    return right.detach()


@case.fault("layer-mean-detached", at="mean", text="the mean is a function of x: does the gradient know it?")
def _(right):
    return right.detach()


@case.fault("layer-variance-detached", at="variance", text="the variance is a function of x: does the gradient know it?")
def _(right):
    return right.detach()


@case.fault(
    "layer-mean-axis-not-kept", at="mean", text="after averaging, does the axis still stand, so that rows meet their own mean?"
)
def _(_source):
    return _source.mean(-1)


@case.fault(
    "layer-variance-axis-not-kept",
    at="variance",
    text="after averaging, does the axis still stand, so that rows meet their own variance?",
)
def _(_source, mean):
    return (_source - mean).square().mean(-1)


@case.fault("layer-mean-is-sum", at="mean", text="is the mean divided by C?")
def _(_source, _axes):
    return _source.sum(_axes, keepdim=True)


@case.fault("layer-mean-missing", at="mean", text="what mean must a row of the result have before weight and bias?")
def _(right):
    return torch.zeros_like(right)


@case.fault("layer-middle-for-mean", at="mean", text="is the middle entry of a row its mean?")
def _(_source):
    return _source.median(-1, keepdim=True).values


@case.fault("layer-variance-unbiased", at="variance", text="is the sum of squares divided by C, or by C - 1?")
def _(right, x):
    return right * x.shape[-1] / (x.shape[-1] - 1)


@case.fault("layer-variance-is-sum", at="variance", text="is the variance a mean of squares, or their sum?")
def _(_source, mean, _axes):
    return (_source - mean).square().sum(_axes, keepdim=True)


@case.fault("layer-variance-about-zero", at="variance", text="deviations from what are squared in a variance?")
def _(_source, _axes):
    return _source.square().mean(_axes, keepdim=True)


@case.fault("layer-variance-of-absolute-deviations", at="variance", text="is a deviation squared, or is its sign dropped?")
def _(_source, mean, _axes):
    return (_source - mean).abs().mean(_axes, keepdim=True).square()


def varying(id, text, axes):
    """The variance alone runs over other axes."""

    @case.fault(f"layer-variance-{id}", at="variance", text=text)
    def _(_source, mean):
        return (_source - mean).square().mean(axes(_source), keepdim=True)


varying("over-positions", "over which axis does the mean run in yours, and over which one the variance?", lambda x: (-2,))
varying("over-everything", "does each row have a variance of its own?", lambda x: tuple(range(x.dim())))


@case.fault("layer-from-0-to-1", at="normalised", text="is a row brought to mean 0 and variance 1, or to the range from 0 to 1?")
def _(_wide):
    low, high = _wide.amin(-1, keepdim=True), _wide.amax(-1, keepdim=True)
    return (_wide - low) / (high - low)


@case.fault("layer-mean-not-subtracted", at="normalised", text="what mean must a row of the result have before weight and bias?")
def _(_wide, _root):
    return _wide / _root


@case.fault("layer-mean-added", at="normalised", text="is the mean taken away, or added?")
def _(_wide, mean, _root):
    return (_wide + mean) / _root


@case.fault("layer-mean-subtracted-late", at="normalised", text="in which order does Python read x - mean / root?")
def _(_wide, mean, _root):
    return _wide - mean / _root


@case.fault("layer-sign-turned", at="normalised", text="is an entry above the mean still above 0 in the result?")
def _(right):
    return -right


@case.fault("layer-not-divided", at="normalised", text="multiply a row by 4: does your result stay the same?")
def _(_wide, mean):
    return _wide - mean


@case.fault(
    "layer-divided-by-range",
    at="normalised",
    text="is a row divided by its root of variance, or by the distance from its smallest to its largest entry?",
)
def _(_wide, mean):
    return (_wide - mean) / (_wide.amax(-1, keepdim=True) - _wide.amin(-1, keepdim=True))


@case.fault(
    "layer-eps-after-division",
    at="normalised",
    text="a constant row must give exactly bias: is anything added after the division?",
)
def _(_wide, mean, variance, eps):
    return (_wide - mean) / variance.sqrt() + eps


@case.fault(
    "layer-eps-after-division-too",
    at="normalised",
    text="a constant row must give exactly bias: is anything still added after the division?",
)
def _(right, eps):
    return right + eps


def finished(id, text):
    """A mistake between the normalised row and the result of layer_norm: a function of (normalised, weight, bias)."""

    def declare(change):
        @case.fault(f"layer-{id}", at="ln_1", text=text)
        def _(normalised, weight, bias, x):
            return change(normalised, weight, bias).to(x.dtype)

        return change

    return declare


finished("weight-and-bias-unused", "with weight 1 and bias 0 your result is right: what if they are not?")(lambda row, w, b: row)
finished("weight-unused", "what scales each channel?")(lambda row, w, b: row + b)
finished("bias-unused", "what shifts each channel?")(lambda row, w, b: row * w)
finished("weight-and-bias-exchanged", "which of the two multiplies, and which one is added?")(lambda row, w, b: row * b + w)
finished("bias-before-weight", "is the bias scaled by weight?")(lambda row, w, b: (row + b) * w)
finished("bias-subtracted", "is the bias added, or taken away?")(lambda row, w, b: row * w - b)
finished("weight-divides", "does weight multiply, or divide?")(lambda row, w, b: row / w + b)
finished("weight-plus-one", "is weight the gain itself, or the gain minus 1?")(lambda row, w, b: row * (1 + w) + b)
finished("weight-added", "does weight multiply, or is it added?")(lambda row, w, b: row + w + b)
finished("weight-applied-twice", "how many times does weight multiply?")(lambda row, w, b: row * w * w + b)
finished("weight-squashed", "can a weight be negative, and does yours stay so?")(lambda row, w, b: row * w.abs() + b)
finished("weight-detached", "weight is learned too: does a gradient reach it?")(lambda row, w, b: row * w.detach() + b)
finished("bias-detached", "bias is learned too: does a gradient reach it?")(lambda row, w, b: row * w + b.detach())
finished("weight-and-bias-detached", "weight and bias are learned too: does a gradient reach them?")(
    lambda row, w, b: row * w.detach() + b.detach()
)
finished("weight-along-positions", "do weight and bias belong to channels, or to positions?")(
    lambda row, w, b: row * w[:, None] + b[:, None]
)
finished("gain-of-channel-0", "does each channel have a gain and a shift of its own?")(lambda row, w, b: row * w[0] + b[0])


@case.fault("layer-gain-before-norm", at="ln_1", text="what comes first, the division or weight and bias?")
def _(_wide, weight, bias, eps, x):
    return F.layer_norm(_wide * weight + bias, x.shape[-1:], eps=eps).to(x.dtype)


@case.fault(
    "layer-input-added", at="ln_1", text="who adds the stream to what a sublayer writes: the norm, or the block around it?"
)
def _(right, x):
    return right + x


# ---------------------------------------------------------------- mistakes of rms_norm


@case.fault(
    "rms-statistics-detached",
    at="_rms_source",
    tensor="mean_square",
    text="the mean square is a function of x: does the gradient know it?",
)
def _(right):
    return right.detach()


@case.fault("rms-subtracts-mean", at="_rms_wide", tensor="mean_square", text="is a mean removed anywhere?")
def _(right):
    return right - right.mean(-1, keepdim=True)


@case.fault("rms-by-variance", at="mean_square", text="which function removes a mean on its own? what does [4, 4, 4, 4] give?")
def _(_rms_source, _rms_axes):
    return _rms_source.var(_rms_axes, correction=0, keepdim=True)


@case.fault("rms-by-unbiased-variance", at="mean_square", text="which function removes a mean on its own, and divides by C - 1?")
def _(_rms_source, _rms_axes):
    return _rms_source.var(_rms_axes, correction=1, keepdim=True)


@case.fault("rms-square-of-mean", at="mean_square", text="the square of the mean, or the mean of the squares?")
def _(_rms_source, _rms_axes):
    return _rms_source.mean(_rms_axes, keepdim=True).square()


@case.fault("rms-of-absolute-values", at="mean_square", text="is an entry squared, or is its sign dropped?")
def _(_rms_source, _rms_axes):
    return _rms_source.abs().mean(_rms_axes, keepdim=True).square()


@case.fault("rms-sum-of-squares", at="mean_square", text="the sum of the squares, or their mean?")
def _(_rms_source, _rms_axes):
    return _rms_source.square().sum(_rms_axes, keepdim=True)


@case.fault("rms-factor-inverted", at="mean_square", text="the mean square of your result is 1/C^2: which factor is upside down?")
def _(right, x):
    return right * x.shape[-1] ** 2


@case.fault("rms-mean-over-one-fewer", at="mean_square", text="is the sum of squares divided by C, or by C - 1?")
def _(right, x):
    return right * x.shape[-1] / (x.shape[-1] - 1)


@case.fault("rms-without-square", at="mean_square", text="what is averaged: the entries, or their squares?")
def _(_rms_source, _rms_axes):
    return _rms_source.mean(_rms_axes, keepdim=True)


@case.fault(
    "rms-mean-axis-not-kept",
    at="mean_square",
    text="after averaging, does the axis still stand, so that rows meet their own number?",
)
def _(_rms_source):
    return _rms_source.square().mean(-1)


@case.fault("rms-numerator-centred", at="rescaled", text="is a mean removed above the fraction line?")
def _(_rms_wide, _rms_root):
    return (_rms_wide - _rms_wide.mean(-1, keepdim=True)) / _rms_root


@case.fault("rms-by-length-without-factor", at="rescaled", text="has your row length 1, or mean square 1? and where is eps?")
def _(_rms_wide):
    return F.normalize(_rms_wide, dim=-1)


@case.fault(
    "rms-by-length-factor-inverted",
    at="rescaled",
    text="a row of length 1: which factor makes its mean square 1, and which one 1/C^2?",
)
def _(_rms_wide):
    return F.normalize(_rms_wide, dim=-1) * _rms_wide.shape[-1] ** -0.5


@case.fault("rms-by-largest", at="rescaled", text="is a row divided by its largest entry?")
def _(_rms_wide):
    return _rms_wide / _rms_wide.abs().amax(-1, keepdim=True)


@case.fault("rms-not-divided", at="rescaled", text="multiply a row by 5: does your result stay the same?")
def _(_rms_wide):
    return _rms_wide


@case.fault("rms-sign-lost", at="rescaled", text="does a negative entry stay negative?")
def _(right):
    return right.abs()


@case.fault("rms-eps-after-division", at="rescaled", text="a row of zeros must give zeros: is anything added after the division?")
def _(_rms_wide, mean_square, eps):
    return _rms_wide / mean_square.sqrt() + eps


@case.fault(
    "rms-eps-after-division-too",
    at="rescaled",
    text="a row of zeros must give zeros: is anything still added after the division?",
)
def _(right, eps):
    return right + eps


def gained(id, text, change):
    """A mistake between the rescaled row and the result of rms_norm."""

    @case.fault(f"rms-{id}", at="rms_out", text=text)
    def _(rescaled, weight, x):
        return change(rescaled, weight).to(x.dtype)


gained("weight-unused", "with weight 1 your result is right: what if it is not?", lambda row, w: row)
gained("weight-plus-one", "is weight the gain itself, or the gain minus 1?", lambda row, w: row * (1 + w))
gained("weight-plus-two", "weight 0 must give 0: how often is 1 added to it?", lambda row, w: row * (2 + w))
gained("weight-divides", "does weight multiply, or divide?", lambda row, w: row / w)
gained("weight-added", "does weight multiply, or is it added?", lambda row, w: row + w)
gained("weight-applied-twice", "how many times does weight multiply?", lambda row, w: row * w * w)
gained("weight-squashed", "can a weight be negative, and does yours stay so?", lambda row, w: row * w.abs())
gained("weight-detached", "weight is learned too: does a gradient reach it?", lambda row, w: row * w.detach())
gained("weight-along-positions", "does weight belong to channels, or to positions?", lambda row, w: row * w[:, None])
gained("gain-of-channel-0", "does each channel have a gain of its own?", lambda row, w: row * w[0])


@case.fault("rms-gain-before-norm", at="rms_out", text="what comes first, the division or weight?")
def _(_rms_wide, weight, eps, x):
    return F.rms_norm(_rms_wide * weight, x.shape[-1:], eps=eps).to(x.dtype)


@case.fault(
    "rms-input-added", at="rms_out", text="who adds the stream to what a sublayer writes: the norm, or the block around it?"
)
def _(right, x):
    return right + x


# ---------------------------------------------------------------- pre_norm


def normed_by(x, norm):
    return F.layer_norm(x, x.shape[-1:], norm)


def written_by(x, sublayer):
    return torch.tanh(x @ sublayer)


@case.step
def normed(x, norm):
    return normed_by(x, norm)


@case.step
def written(normed, sublayer):
    return written_by(normed, sublayer)


@case.step
def pre_out(x, written):
    return x + written


@case.step
def post_written(x, sublayer):
    return written_by(x, sublayer)


@case.step
def post_sum(x, post_written):
    return x + post_written


@case.step
def post_out(post_sum, norm):
    return normed_by(post_sum, norm)


def block_inputs(draw: Draw):
    for label, shape in (
        ("two texts of four positions", (2, 4, 6)),
        ("one more axis in front", (2, 3, 4, 5)),
        ("a row alone", (7,)),
    ):
        C = shape[-1]
        yield sample(label, x=2 * draw.normal(*shape) + 1, sublayer=draw.normal(C, C, scale=C**-0.5), norm=gain(draw, C))


def block_golden(real):
    return {"x": real["h.1.resid_pre"], "sublayer": real["h.1.attn.c_proj.weight"], "norm": real["h.1.ln_1.weight"]}


case.exercise(
    "pre_norm(x, sublayer, norm)",
    returns="pre_out",
    inputs=block_inputs,
    points=2,
    lesson="`pre_norm` and `post_norm`",
    hints=(
        "What does the sublayer read, and to what is its answer added?",
        "The norm stands on the branch: the stream itself goes past it.",
        "out = x + sublayer(norm(x))",
    ),
    reference=lambda x, sublayer, norm: torch.add(x, (F.layer_norm(x, x.shape[-1:], weight=norm) @ sublayer).tanh()),
    probe="pre_norm",
    golden=block_golden,
)
case.exercise(
    "post_norm(x, sublayer, norm)",
    returns="post_out",
    inputs=block_inputs,
    points=2,
    lesson="`pre_norm` and `post_norm`",
    hints=(
        "What does the sublayer read here, and what goes through the norm?",
        "The norm stands behind the addition: every layer's result has passed it.",
        "out = norm(x + sublayer(x))",
    ),
    reference=lambda x, sublayer, norm: F.layer_norm(torch.add(x, (x @ sublayer).tanh()), x.shape[-1:], weight=norm),
    probe="post_norm",
    golden=block_golden,
)


@case.fault("pre-norm-missing", at="normed", text="does the sublayer read the stream as it is, or a normalised copy?")
def _(x):
    return x


@case.fault("pre-norm-twice", at="normed", text="how many times is the norm called?")
def _(x):
    raise RuntimeError("norm was called a second time: expected one call")


@case.fault(
    "pre-sublayer-twice", at="written", text="a sublayer may hold dropout, and two calls differ: how many times do you call it?"
)
def _(normed):
    raise RuntimeError("sublayer was called a second time: expected one call")


@case.fault(
    "pre-norm-added-before-sublayer", at="written", text="is the stream added before the sublayer reads, or after it has written?"
)
def _(x, normed, sublayer):
    return written_by(x + normed, sublayer)


@case.fault("pre-sublayer-missing", at="written", text="who writes what is added to the stream?")
def _(normed):
    return normed


@case.fault("pre-branch-detached", at="written", text="the gradient must walk back through the sublayer too: can it?")
def _(right):
    return right.detach()


@case.fault(
    "pre-norm-behind-sublayer",
    at="pre_out",
    text="in which order do the two callables stand in the signature, and which one reads the stream first?",
)
def _(x, sublayer, norm):
    return x + normed_by(written_by(x, sublayer), norm)


@case.fault("pre-residual-missing", at="pre_out", text="what is the sublayer's answer added to?")
def _(written):
    return written


@case.fault(
    "pre-residual-normalised",
    at="pre_out",
    text="the stream itself is never normalised: what do you add the sublayer's answer to?",
)
def _(normed, written):
    return normed + written


@case.fault(
    "pre-residual-normalised-alone",
    at="pre_out",
    text="which of the two is normalised: what the sublayer reads, or what it is added to?",
)
def _(normed, x, sublayer):
    return normed + written_by(x, sublayer)


@case.fault("pre-is-post", at="pre_out", text="does the norm stand on the branch, or behind the addition?")
def _(x, sublayer, norm):
    return normed_by(x + written_by(x, sublayer), norm)


@case.fault("pre-sublayer-reads-both", at="pre_out", text="does the sublayer read the sum, or write a part of it?")
def _(x, sublayer, norm):
    return written_by(normed_by(x, norm) + x, sublayer)


@case.fault("pre-stream-subtracted", at="pre_out", text="is the sublayer's answer added to the stream, or the stream taken away?")
def _(x, written):
    return written - x


@case.fault("pre-answer-subtracted", at="pre_out", text="is the sublayer's answer added, or taken away?")
def _(x, written):
    return x - written


@case.fault("pre-stream-multiplied", at="pre_out", text="is the sublayer's answer added, or multiplied?")
def _(x, written):
    return x * written


@case.fault("pre-stream-twice", at="pre_out", text="how many times is the stream in your sum?")
def _(x, written):
    return 2 * x + written


@case.fault("pre-sum-halved", at="pre_out", text="is the sum scaled by anything?")
def _(right):
    return right / 2


@case.fault("pre-stream-alone", at="pre_out", text="is the sublayer's answer in what you return?")
def _(x):
    return x


@case.fault("pre-norm-alone", at="pre_out", text="who writes to the stream: the norm, or the sublayer?")
def _(normed):
    return normed


@case.fault("pre-stream-detached", at="pre_out", text="the gradient must walk back along the stream too: can it?")
def _(x, written):
    return x.detach() + written


# ---------------------------------------------------------------- post_norm


@case.fault(
    "post-sublayer-twice",
    at="post_written",
    text="a sublayer may hold dropout, and two calls differ: how many times do you call it?",
)
def _(x):
    raise RuntimeError("sublayer was called a second time: expected one call")


@case.fault("post-sublayer-missing", at="post_written", text="who writes what is added to the stream?")
def _(x):
    return torch.zeros_like(x)


@case.fault("post-branch-detached", at="post_written", text="the gradient must walk back through the sublayer too: can it?")
def _(right):
    return right.detach()


@case.fault("post-residual-missing", at="post_sum", text="what is the sublayer's answer added to?")
def _(post_written):
    return post_written


@case.fault("post-residual-normalised", at="post_sum", text="is the stream normalised before the addition, or the sum after it?")
def _(x, post_written, norm):
    return normed_by(x, norm) + post_written


@case.fault("post-answer-subtracted", at="post_sum", text="is the sublayer's answer added, or taken away?")
def _(x, post_written):
    return x - post_written


@case.fault("post-stream-multiplied", at="post_sum", text="is the sublayer's answer added, or multiplied?")
def _(x, post_written):
    return x * post_written


@case.fault("post-stream-twice", at="post_sum", text="how many times is the stream in your sum?")
def _(x, post_written):
    return 2 * x + post_written


@case.fault("post-stream-detached", at="post_sum", text="the gradient must walk back along the stream too: can it?")
def _(x, post_written):
    return x.detach() + post_written


@case.fault("post-norm-twice", at="post_out", text="how many times is the norm called?")
def _(post_sum):
    raise RuntimeError("norm was called a second time: expected one call")


@case.fault("post-norm-missing", at="post_out", text="what happens to the sum before it leaves the block?")
def _(post_sum):
    return post_sum


@case.fault(
    "post-norm-on-branch-only", at="post_out", text="what is normalised: the sublayer's answer, or the sum with the stream?"
)
def _(x, post_written, norm):
    return x + normed_by(post_written, norm)


@case.fault("post-is-pre", at="post_out", text="does the norm stand on the branch, or behind the addition?")
def _(x, sublayer, norm):
    return x + written_by(normed_by(x, norm), sublayer)


@case.fault("post-callables-exchanged", at="post_out", text="in which order do the two callables stand in the signature?")
def _(x, sublayer, norm):
    return written_by(x + normed_by(x, norm), sublayer)


@case.fault("post-norm-plus-stream", at="post_out", text="is anything added after the norm?")
def _(right, x):
    return right + x


@case.fault("post-norm-plus-answer", at="post_out", text="is the addition inside the norm, or outside it?")
def _(x, sublayer, norm):
    return normed_by(x, norm) + written_by(x, sublayer)
