"""The case of 11_parameter_counting. No torch: every value is a plain number, and whole numbers must be equal."""

import json
import math
from functools import lru_cache, partial
from types import SimpleNamespace

from autograder.case import ANY, Case, Draw
from autograder.case import sample as sample_
from autograder.course import ROOT

case = Case("11_parameter_counting")

sample = partial(sample_, gradient=False)  # whole numbers have none
FIELDS = "n_layer d_model n_head n_kv_head d_head d_ff vocab_size n_ctx gated_mlp bias norm_bias tied learned_positions".split()
SIZES = "L C H Hkv D F V n_ctx gated bias norm_bias tied learned".split()


def _model(*values) -> dict:
    """The thirteen fields of a ModelConfig as a dict."""
    return dict(zip(FIELDS, values, strict=True))


def wrong(id: str, at: str, text: str, function, tensor: str | None = None, only: tuple[str, ...] = ()) -> None:
    """Declare a fault that one expression says."""
    case.fault(id, at, text, tensor, only)(function)


# ---------------------------------------------------------------- read_config: configurations to read


def _file(name: str) -> dict:
    return json.loads((ROOT / "checkpoints" / "configs" / f"{name}.json").read_text(encoding="utf-8"))


def _gpt2_file(draw: Draw, **changes) -> dict:
    """A GPT-2 file as transformers writes it today: no n_ctx, n_inner stated, and fields that are no sizes."""
    pick = draw.random
    n_head, d_head = pick.sample([3, 5, 7], 2)
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "activation_function": "gelu_new",
        "n_embd": n_head * d_head,
        "n_head": n_head,
        "n_inner": pick.choice([50, 62, 74]),
        "n_layer": pick.choice([4, 6, 8]),
        "n_positions": pick.choice([64, 96]),
        "tie_word_embeddings": False,
        "vocab_size": pick.choice([101, 211]),
        **changes,
    }


def _llama_file(draw: Draw, **changes) -> dict:
    """A Llama-like file that states every field; head_dim is not hidden_size / num_attention_heads."""
    pick = draw.random
    n_kv_head, share = pick.choice([(2, 3), (2, 5), (3, 5)])
    n_head = n_kv_head * share
    d_head, per_head = pick.sample([8, 10, 14], 2)
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "attention_bias": False,
        "head_dim": d_head,
        "hidden_size": n_head * per_head,
        "intermediate_size": pick.choice([501, 603]),
        "max_position_embeddings": pick.choice([64, 96]),
        "mlp_bias": False,
        "num_attention_heads": n_head,
        "num_hidden_layers": pick.choice([4, 7, 9]),
        "num_key_value_heads": n_kv_head,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": True,
        "vocab_size": pick.choice([101, 211]),
        **changes,
    }


def _without(config: dict, *names: str) -> dict:
    return {name: value for name, value in config.items() if name not in names}


GPT2_NEEDS = ("n_layer", "n_embd", "n_head", "n_positions", "vocab_size")
LLAMA_NEEDS = (
    "num_hidden_layers",
    "hidden_size",
    "num_attention_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
)
BIASES = ("attention_bias", "mlp_bias")


def _config_inputs(draw: Draw):
    yield sample(
        "the lesson's toy",
        config={"model_type": "gpt2", "n_layer": 2, "n_embd": 4, "n_head": 2, "n_positions": 8, "vocab_size": 10},
    )
    yield sample("a GPT-2 file with n_inner, not tied", config=_gpt2_file(draw))
    yield sample("a GPT-2 file with n_inner null, tied", config=_gpt2_file(draw, n_inner=None, tie_word_embeddings=True))
    yield sample("a Llama file with head_dim, tied", config=_llama_file(draw))
    yield sample(
        "a Llama file with biases, not tied",
        config=_llama_file(draw, attention_bias=True, mlp_bias=True, tie_word_embeddings=False),
    )
    bare = ("head_dim", "num_key_value_heads", "tie_word_embeddings", *BIASES)
    yield sample("a Llama file with nothing that has a default", config=_without(_llama_file(draw), *bare))
    yield sample("a Llama file with head_dim null", config=_llama_file(draw, head_dim=None))
    yield sample("a Llama file with num_key_value_heads null", config=_llama_file(draw, num_key_value_heads=None))
    yield sample(
        "a Mistral file with a sliding window",
        config=_without(_llama_file(draw, model_type="mistral", sliding_window=48), *BIASES),
    )
    for name, label in (
        ("gpt2", "GPT-2 small's file"),
        ("llama-3-70b", "Llama 3 70B's file"),
        ("llama-3.2-1b", "Llama 3.2 1B's file"),
        ("mistral-nemo-12b", "Mistral Nemo's file"),
    ):
        yield sample(label, config=_file(name))
    yield from _refusals(draw)


def _refusals(draw: Draw):
    """The value of these is in words: `names` holds the fields of which the message must name one."""
    for name in GPT2_NEEDS:
        yield sample(f"a GPT-2 file without {name}", config=_without(_gpt2_file(draw), name), names=[name])
    for name in LLAMA_NEEDS:
        yield sample(f"a Llama file without {name}", config=_without(_llama_file(draw), name), names=[name])
    for attention, mlp in ((True, False), (False, True)):
        label = f"attention_bias {str(attention).lower()}, mlp_bias {str(mlp).lower()}"
        yield sample(label, config=_llama_file(draw, attention_bias=attention, mlp_bias=mlp), names=list(BIASES))
    qwen = _without(_llama_file(draw, model_type="qwen2", architectures=["Qwen2ForCausalLM"]), "head_dim", *BIASES)
    yield sample("a Qwen2 file: biases on q, k, v only", config=qwen, names=["model_type", "qwen2", "Qwen2", "bias"])


# ---------------------------------------------------------------- read_config: steps


def _is_gpt2(config) -> bool:
    return config["model_type"] == "gpt2"


def _pick(config, gpt2: str, llama: str):
    """The field by its family's name; None where it is null or missing."""
    return config.get(gpt2 if _is_gpt2(config) else llama)


def _or(value, default):
    return default if value is None else value


@case.step
def _refused(config):
    """The field for which the config cannot be read, or None."""
    for name in GPT2_NEEDS if _is_gpt2(config) else LLAMA_NEEDS:
        if config.get(name) is None:
            return name
    if config["model_type"] not in ("gpt2", "llama", "mistral"):
        return "model_type"
    if _or(config.get("attention_bias"), False) != _or(config.get("mlp_bias"), False):
        return "attention_bias"
    return None


@case.step
def _refusal(_refused):
    return _refused and f"ValueError that names {_refused}"


@case.step
def _n_layer(config):
    return _pick(config, "n_layer", "num_hidden_layers")


@case.step
def _d_model(config):
    return _pick(config, "n_embd", "hidden_size")


@case.step
def _n_head(config):
    return _pick(config, "n_head", "num_attention_heads")


@case.step
def _n_kv_head(config, _n_head):
    return _n_head if _is_gpt2(config) else _or(config.get("num_key_value_heads"), _n_head)


@case.step
def _d_head(config, _d_model, _n_head):
    stated = None if _is_gpt2(config) else config.get("head_dim")
    return _shared(_d_model, _n_head) if stated is None else stated


def _shared(total, parts):
    return total // parts if total and parts else None


@case.step
def _d_ff(config, _d_model):
    return _or(config.get("n_inner"), 4 * _or(_d_model, 0)) if _is_gpt2(config) else config.get("intermediate_size")


@case.step
def _vocab_size(config):
    return config.get("vocab_size")


@case.step
def _context(config):
    return _pick(config, "n_positions", "max_position_embeddings")


@case.step
def _gated_mlp(config):
    return not _is_gpt2(config)


@case.step
def _biased(config):
    return _is_gpt2(config) or _or(config.get("attention_bias"), False)


@case.step
def _norm_bias_(config):
    return _is_gpt2(config)


@case.step
def _tied(config):
    return _or(config.get("tie_word_embeddings"), _is_gpt2(config))


@case.step
def _learned_positions(config):
    return _is_gpt2(config)


@case.step
def fields(
    _refusal,
    _n_layer,
    _d_model,
    _n_head,
    _n_kv_head,
    _d_head,
    _d_ff,
    _vocab_size,
    _context,
    _gated_mlp,
    _biased,
    _norm_bias_,
    _tied,
    _learned_positions,
):
    sizes = (_n_layer, _d_model, _n_head, _n_kv_head, _d_head, _d_ff, _vocab_size, _context)
    return _refusal or _model(*sizes, _gated_mlp, _biased, _norm_bias_, _tied, _learned_positions)


def _file_in_words(inputs, yours) -> list[str]:
    beside = ("architectures", "activation_function", "hidden_act", "rms_norm_eps", "layer_norm_epsilon", "rope_theta")
    return [f"for {_without(inputs['config'], *beside)}"]


def _config_reference(config, names=()):
    """The configuration classes of `transformers`, which know every default."""
    from transformers import GPT2Config, LlamaConfig

    if names:
        return f"ValueError that names {names[0]}"
    if config["model_type"] == "gpt2":
        c = GPT2Config(**config, bos_token_id=None, eos_token_id=None)
        d_head, d_ff = c.n_embd / c.n_head, c.n_inner or 4 * c.n_embd
        flags = (False, True, True, c.tie_word_embeddings, True)
        return _model(c.n_layer, c.n_embd, c.n_head, c.n_head, int(d_head), d_ff, c.vocab_size, c.n_positions, *flags)
    c = LlamaConfig(**{**config, "model_type": "llama"}, bos_token_id=None, eos_token_id=None)
    sizes = (c.num_hidden_layers, c.hidden_size, c.num_attention_heads, c.num_key_value_heads, c.head_dim, c.intermediate_size)
    flags = (True, c.mlp_bias, False, c.tie_word_embeddings, False)
    return _model(*sizes, c.vocab_size, c.max_position_embeddings, *flags)


case.exercise(
    "read_config(config)",
    returns="fields",
    inputs=_config_inputs,
    points=4,
    probe="read_config",
    lesson="Thirteen lines",
    hints=(
        "The two families name the same sizes differently. Which names does this file have, and which may be missing?",
        "Take the lesson's table row by row. null counts as missing; what is missing and has no default is refused by its name.",
        "gpt2: D = n_embd / n_head, F = n_inner or else 4*n_embd, tied unless it says false; "
        "llama: D = head_dim or else hidden_size / num_attention_heads, Hkv = num_key_value_heads or else H, tied if it says so.",
    ),
    reference=_config_reference,
    explain=_file_in_words,
)


# One mistake, one line or two.
# fmt: off
# ---------------------------------------------------------------- read_config: faults


def of_file(id: str, at: str, text: str, function, only_for: str | None = None) -> None:
    """Declare a fault of read_config, in files of one family or in both."""

    def spoil(right, config):
        return function(config, right) if only_for is None or _is_gpt2(config) == (only_for == "gpt2") else right

    wrong(id, at, text, spoil, tensor="fields")


def _missing(config) -> str | None:
    return next((name for name in (GPT2_NEEDS if _is_gpt2(config) else LLAMA_NEEDS) if config.get(name) is None), None)


def _unnamed(refusal: str) -> str:
    return refusal.replace("names", "does not name")


def _missing_becomes_none(config, right):
    """What `config.get(name)` everywhere ends in: a None among the sizes, or arithmetic with it."""
    divided = ("n_embd", "n_head") if _is_gpt2(config) else ()
    return right if not _missing(config) else "TypeError" if _missing(config) in divided else "no error"


def _refused_by(type: str) -> None:
    """Another exception than ValueError: for everything, or for what ModelConfig cannot express."""
    text = "it is refused, but by which exception, and which one is asked for?"
    of_file(f"refused-by-{type.lower()}", "_refusal", text, lambda config, right: right and type)
    of_file(f"inexpressible-by-{type.lower()}", "_refusal", text,
          lambda config, right: type if right and not _missing(config) else right)
    for name, field in (("other-families", "model_type"), ("unequal-biases", "attention_bias")):
        of_file(f"{name}-by-{type.lower()}", "_refusal", text,
              lambda config, right, field=field: type if right and not _missing(config) and right.endswith(field) else right)
    if type not in ("KeyError", "AssertionError"):  # these two have faults of their own above
        of_file(f"missing-field-by-{type.lower()}", "_refusal", text, lambda config, right: type if _missing(config) else right)


of_file("missing-field-accepted", "_refusal", "a file lacks a size that has no default: what should your function do?",
      lambda config, right: "no error" if _missing(config) else right)


def _guessed(name: str) -> None:
    of_file(f"{name}-guessed".replace("_", "-"), "_refusal", f"{name} has no default in the table: where does yours come from?",
            lambda config, right: "no error" if _missing(config) == name else right)


for _needed in dict.fromkeys(GPT2_NEEDS + LLAMA_NEEDS):
    _guessed(_needed)
of_file("missing-field-is-key-error", "_refusal",
      "which exception does config[name] raise where the name is missing, and which one is asked for?",
      lambda config, right: "KeyError" if _missing(config) else right)
of_file("missing-field-by-assert", "_refusal", "it is refused, but by which exception, and which one is asked for?",
      lambda config, right: "AssertionError" if _missing(config) else right)
of_file("missing-field-becomes-none", "_refusal", "what does config.get(name) give where the name is missing, and who notices?",
      _missing_becomes_none)
of_file("missing-field-not-named", "_refusal", "could a reader of your message say which field is missing?",
      lambda config, right: _unnamed(right) if _missing(config) else right)
of_file("other-families-accepted", "_refusal", "Qwen2 has biases on q, k and v only: which field of ModelConfig could say so?",
      lambda config, right: "no error" if right and right.endswith("model_type") else right)
of_file("other-family-not-named", "_refusal", "could a reader of your message say which field ModelConfig cannot express?",
      lambda config, right: _unnamed(right) if right and right.endswith("model_type") else right)
of_file("unequal-biases-accepted", "_refusal",
      "attention_bias says one thing and mlp_bias another: which of them would the one field bias tell?",
      lambda config, right: "no error" if right and right.endswith("attention_bias") else right)
of_file("unequal-biases-not-named", "_refusal", "could a reader of your message say which two fields do not agree?",
      lambda config, right: _unnamed(right) if right and right.endswith("attention_bias") else right)
of_file("biases-of-mlp-alone-accepted", "_refusal", "mlp_bias is true and attention_bias is not: can ModelConfig say that?",
      lambda config, right: "no error" if right and config.get("mlp_bias") and not config.get("attention_bias") else right)
of_file("biases-of-attention-alone-accepted", "_refusal", "attention_bias is true and mlp_bias is not: can ModelConfig say that?",
      lambda config, right: "no error" if right and config.get("attention_bias") and not config.get("mlp_bias") else right)
of_file("refusals-not-named", "_refusal", "could a reader of your message say which field is meant?",
      lambda config, right: right and _unnamed(right))
for _type in ("AssertionError", "KeyError", "TypeError", "NotImplementedError", "RuntimeError", "Exception"):
    _refused_by(_type)
of_file("nothing-refused", "_refusal", "which files can ModelConfig not express, and what becomes of them?",
      lambda config, right: right and "no error")


def _needs(name: str, family: str | None) -> None:
    """An optional field that is read as if it were always there, or refused where it is not."""
    text = f"{name} may be missing: what does the lesson's table say then?"

    def looked_up(config, right):
        if name in config:
            return right
        if isinstance(right, str):
            return "KeyError"
        raise KeyError(name)

    def demanded(config, right):
        if config.get(name) is not None or isinstance(right, str):
            return right
        raise ValueError(ANY)

    of_file(f"{name}-looked-up-unasked".replace("_", "-"), "fields", text, looked_up, family)
    of_file(f"{name}-demanded".replace("_", "-"), "fields", text, demanded, family)


_needs("n_inner", "gpt2")
_needs("head_dim", "llama")
_needs("num_key_value_heads", "llama")
_needs("attention_bias", "llama")
_needs("mlp_bias", "llama")
_needs("tie_word_embeddings", None)


def _null_refused(name: str, family: str) -> None:
    def spoil(config, right):
        if name in config and config[name] is None and not isinstance(right, str):
            raise ValueError(ANY)
        return right

    of_file(f"{name}-null-refused".replace("_", "-"), "fields", f"{name} is null: what does null count as?", spoil, family)


_null_refused("n_inner", "gpt2")
_null_refused("head_dim", "llama")
_null_refused("num_key_value_heads", "llama")


@case.fault("head-dim-refused", at="fields", text="must the heads side by side be as wide as C?")
def _(right, config):
    if config.get("head_dim") and not isinstance(right, str) and right["n_head"] * right["d_head"] != right["d_model"]:
        raise ValueError(ANY)
    return right


@case.fault("biases-refused", at="fields", text="attention_bias and mlp_bias are both true: can ModelConfig say that?")
def _(right):
    if not isinstance(right, str) and right["gated_mlp"] and right["bias"]:
        raise ValueError(ANY)
    return right


@case.fault("mistral-refused", at="fields", text="which model types does the lesson's table have?")
def _(right, config):
    if config["model_type"] == "mistral":
        raise ValueError(ANY)
    return right


@case.fault("mistral-read-as-gpt2", at="fields", text="in which column of the lesson's table does mistral stand?")
def _(right, config):
    if config["model_type"] == "mistral":
        raise KeyError(ANY)
    return right


@case.fault("context-read-from-n-ctx", at="fields", text="by which name does the lesson's table know GPT-2's longest sequence?")
def _(right, config):
    if not _is_gpt2(config):
        return right
    if isinstance(right, str):
        return "KeyError" if config.get("n_positions") is None else right
    return {**right, "n_ctx": config["n_ctx"]}


@case.fault("context-from-n-ctx-or-1024", at="fields", text="under which name does the table have GPT-2's longest sequence?")
def _(right, config):
    if not _is_gpt2(config):
        return right
    if isinstance(right, str):
        return "no error" if config.get("n_positions") is None else right
    return {**right, "n_ctx": config.get("n_ctx", 1024)}


@case.fault("config-given-back-as-dict", at="fields", text="is what you give back a ModelConfig?")
def _(right):
    if isinstance(right, str):
        return right
    raise TypeError("read_config gives a dict: expected a ModelConfig")


@case.fault("config-not-given-back", at="fields", text="does your function give back what it made?")
def _(right):
    if isinstance(right, str):
        return right
    raise TypeError("read_config gives a NoneType: expected a ModelConfig")


def _swapped(a: str, b: str) -> None:
    def spoil(right):
        return right if isinstance(right, str) else {**right, a: right[b], b: right[a]}

    id = f"{a}-and-{b}-swapped".replace("_", "-")
    wrong(id, "fields", f"in which order do {a} and {b} stand in ModelConfig?", spoil)


for _pair in (
    "n_layer n_head", "n_layer d_model", "d_model n_head", "n_head n_kv_head", "n_kv_head d_head", "d_model d_ff", "d_head d_ff",
    "vocab_size n_ctx", "gated_mlp tied", "tied learned_positions", "bias tied", "norm_bias tied", "gated_mlp bias",
):
    _swapped(*_pair.split())

wrong("tied-by-default-everywhere", "_tied", "a Llama file does not say whether the head is tied: is it?",
      lambda config: _or(config.get("tie_word_embeddings"), True), tensor="fields")
wrong("tied-by-default-nowhere", "_tied", "a GPT-2 file does not say whether the head is tied: is it?",
      lambda config: _or(config.get("tie_word_embeddings"), False), tensor="fields")
wrong("tied-defaults-exchanged", "_tied", "a missing tie_word_embeddings: true for which family?",
      lambda config: _or(config.get("tie_word_embeddings"), not _is_gpt2(config)), tensor="fields")
wrong("tied-by-family-alone", "_tied", "the file says whether the head is tied: do you read it?",
      lambda config: _is_gpt2(config), tensor="fields")
wrong("tied-false-overruled", "_tied", "tie_word_embeddings is false in the file: what does `false or true` give?",
      lambda config: config.get("tie_word_embeddings") or _is_gpt2(config), tensor="fields")
wrong("always-tied", "_tied", "is the head wte itself in every model?", lambda: True, tensor="fields")
wrong("never-tied", "_tied", "is the head a matrix of its own in every model?", lambda: False, tensor="fields")
wrong("tied-inverted", "_tied", "does true mean that the head is wte, or that it has its own matrix?",
      lambda right: not right, tensor="fields")
wrong("tied-ignored-for-llama", "_tied", "can a Llama-like model be tied?",
      lambda config: _or(config.get("tie_word_embeddings"), True) and _is_gpt2(config), tensor="fields")

wrong("n-inner-ignored", "_d_ff", "n_inner may be stated: is F then still 4 times C?",
      lambda config, right, _d_model: 4 * _or(_d_model, 0) if _is_gpt2(config) else right, tensor="fields")
wrong("n-inner-null-kept", "_d_ff", 'what does config.get("n_inner", default) give where the file says null?',
      lambda config, right: None if _is_gpt2(config) and config.get("n_inner", 0) is None else right, tensor="fields")
wrong("llama-width-computed", "_d_ff", "F is 4 times C for a plain MLP: where does a Llama file state its F?",
      lambda config, right, _d_model: right if _is_gpt2(config) else 4 * _or(_d_model, 0), tensor="fields")
wrong("config-width-two-thirds", "_d_ff", "F of a gated MLP stands in the file: is it to be made smaller once more?",
      lambda config, right: right if _is_gpt2(config) or right is None else 2 * right // 3, tensor="fields")
wrong("config-width-doubled", "_d_ff", "gate and up may be stored as one matrix: is F then twice as large?",
      lambda config, right: right if _is_gpt2(config) or right is None else 2 * right, tensor="fields")

wrong("kv-heads-never-fewer", "_n_kv_head", "which field says how many key/value heads there are?",
      lambda _n_head: _n_head, tensor="fields")
wrong("kv-heads-read-as-sharers", "_n_kv_head", "is n_kv_head the number of key/value heads, or how many query heads share one?",
      lambda _n_head, right: _shared(_n_head, right), tensor="fields")
wrong("kv-heads-read-as-sharers-in-llama-files", "_n_kv_head",
      "is num_key_value_heads a number of key/value heads, or of query heads that share one? and if it is missing?",
      lambda config, right, _n_head: right if _is_gpt2(config) else _shared(_n_head, right), tensor="fields")
wrong("kv-heads-read-as-sharers-where-stated", "_n_kv_head",
      "is num_key_value_heads the number of key/value heads, or how many query heads share one?",
      lambda config, right, _n_head: right if config.get("num_key_value_heads") is None else _shared(_n_head, right),
      tensor="fields")
wrong("kv-heads-default-one", "_n_kv_head",
      "num_key_value_heads is missing: does every query head then have its own, or do all share one?",
      lambda config, right: right if _is_gpt2(config) else _or(config.get("num_key_value_heads"), 1), tensor="fields")
wrong("kv-heads-null-kept", "_n_kv_head", 'what does config.get("num_key_value_heads", default) give where the file says null?',
      lambda config, right: None if config.get("num_key_value_heads", 0) is None else right, tensor="fields")
wrong("kv-heads-default-eight", "_n_kv_head", "num_key_value_heads is missing: where does your number come from?",
      lambda config, right: right if _is_gpt2(config) else _or(config.get("num_key_value_heads"), 8), tensor="fields")
wrong("gpt2-has-one-kv-head", "_n_kv_head", "how many heads of GPT-2 have keys and values?",
      lambda config, right: 1 if _is_gpt2(config) else right, tensor="fields")

NULL_KEPT = "null counts as missing: what does your lookup give where a name is in the file and its value is null?"
NO_REMAINDER = "unsupported operand type(s) for %: 'int' and 'NoneType'"


@case.fault("null-kept-everywhere", at="fields", text=NULL_KEPT)
def _(right, config):
    return _keep_nulls(config, right)


@case.fault("null-kept-everywhere-and-shared-out", at="fields", text=NULL_KEPT)
def _(right, config):
    if _null(config, "num_key_value_heads") and not isinstance(right, str):
        raise TypeError(NO_REMAINDER)
    return _keep_nulls(config, right)


@case.fault("kv-heads-null-shared-out", at="fields", text="num_key_value_heads is null: what does null count as?")
def _(right, config):
    if _null(config, "num_key_value_heads") and not isinstance(right, str):
        raise TypeError(NO_REMAINDER)
    return right


def _null(config, name: str) -> bool:
    return name in config and config[name] is None


def _keep_nulls(config, right):
    names = {"d_ff": "n_inner"} if _is_gpt2(config) else {"d_head": "head_dim", "n_kv_head": "num_key_value_heads"}
    return right if isinstance(right, str) else {**right, **{ours: None for ours, name in names.items() if _null(config, name)}}


wrong("head-dim-ignored", "_d_head", "head_dim may be stated: is it then still hidden_size / num_attention_heads?",
      lambda _d_model, _n_head: _shared(_d_model, _n_head), tensor="fields")
wrong("head-dim-null-kept", "_d_head", 'what does config.get("head_dim", default) give where the file says null?',
      lambda config, right: None if config.get("head_dim", 0) is None else right, tensor="fields")
wrong("head-size-is-float", "_d_head", "a head size is a whole number: which division gives one?",
      lambda config, right: right if config.get("head_dim") is not None or right is None else float(right), tensor="fields")
wrong("head-size-from-kv-heads", "_d_head", "C is shared among which heads?",
      lambda config, right, _d_model, _n_kv_head: right if config.get("head_dim") is not None else _shared(_d_model, _n_kv_head),
      tensor="fields")
wrong("head-size-not-shared", "_d_head", "how wide is one head, and how wide are all of them?",
      lambda config, right, _d_model: right if config.get("head_dim") is not None else _d_model, tensor="fields")
wrong("head-size-fixed-64", "_d_head", "is a head 64 wide in every model?",
      lambda config: _or(config.get("head_dim"), 64), tensor="fields")
wrong("head-size-fixed-128", "_d_head", "is a head 128 wide in every model?",
      lambda config: _or(config.get("head_dim"), 128), tensor="fields")

wrong("window-taken-for-context", "_context", "a window says how far attention looks back: is it the longest sequence?",
      lambda config, right: _or(config.get("sliding_window"), right), tensor="fields")

for _family, _name in (("gpt2", "GPT-2"), ("llama", "Llama")):
    for _step in ("_gated_mlp", "_norm_bias_", "_learned_positions"):
        _field = _step.strip("_")
        of_file(f"{_field}-wrong-for-{_family}".replace("_", "-"), _step,
              f"{_field}: what does the lesson's table say of {_name}?",
              lambda config, right: not right, _family)
of_file("gpt2-without-biases", "_biased", "do the matrices of GPT-2 have biases?", lambda config, right: False, "gpt2")
of_file("llama-biases-ignored", "_biased", "which fields say that a Llama-like model has biases?",
      lambda config, right: False, "llama")
of_file("llama-always-biased", "_biased", "which fields say that a Llama-like model has biases?",
      lambda config, right: True, "llama")
of_file("biases-inverted", "_biased", "is bias true where the matrices have biases?", lambda config, right: not right)
of_file("norm-bias-copied-from-bias", "_norm_bias_", "biases on the matrices: does an RMSNorm then have one too?",
      lambda config, right: _is_gpt2(config) or bool(config.get("attention_bias")))
# fmt: on

# ---------------------------------------------------------------- configurations to count


GPT2_TOY = _model(2, 4, 2, 2, 2, 16, 10, 8, False, True, True, True, True)
LLAMA_TOY = _model(1, 6, 3, 1, 4, 5, 10, 7, True, False, False, False, False)
GPT2 = _model(12, 768, 12, 12, 64, 3072, 50257, 1024, False, True, True, True, True)
GPT2_XL = _model(48, 1600, 25, 25, 64, 6400, 50257, 1024, False, True, True, True, True)
GPT3 = _model(96, 12288, 96, 96, 128, 49152, 50257, 2048, False, True, True, True, True)
LLAMA_8B = _model(32, 4096, 32, 8, 128, 14336, 128256, 8192, True, False, False, False, False)
LLAMA_70B = _model(80, 8192, 64, 8, 128, 28672, 128256, 8192, True, False, False, False, False)
NEMO = _model(40, 5120, 32, 8, 128, 14336, 131072, 128000, True, False, False, False, False)


def _drawn(draw: Draw, *flags: bool, grouped: bool = True) -> dict:
    """Small sizes that differ from each other; H*D is not C, and a shared head is not shared by Hkv heads."""
    pick = draw.random
    n_kv_head, share = pick.choice([(2, 3), (2, 5), (3, 2), (3, 5)]) if grouped else (pick.choice([3, 5, 6]), 1)
    d_head, per_head = pick.sample([5, 7, 11, 13], 2)
    n_head = n_kv_head * share
    d_ff, vocab_size, n_ctx = 3 * pick.choice([17, 29, 37]), pick.choice([101, 211, 307]), pick.choice([41, 59, 73])
    return _model(pick.choice([4, 7, 8]), 3 * n_head * per_head, n_head, n_kv_head, d_head, d_ff, vocab_size, n_ctx, *flags)


def _models(draw: Draw) -> list[tuple[str, dict]]:
    """Toys for a pencil first, then drawn sizes with every flag both ways, then models that people know."""
    return [
        ("the Llama toy with biases", {**LLAMA_TOY, "bias": True}),
        ("the GPT-2 toy", GPT2_TOY),
        ("the Llama toy", LLAMA_TOY),
        ("gated, biases, norms without", _drawn(draw, True, True, False, True, False)),
        ("gated, no biases, norms with one, learned positions", _drawn(draw, True, False, True, False, True)),
        ("not gated, biases, head of its own", _drawn(draw, False, True, True, False, False)),
        ("not gated, no biases, a key/value head for each head", _drawn(draw, False, False, False, True, True, grouped=False)),
        ("GPT-2 small", GPT2),
        ("Mistral Nemo", NEMO),
        ("Llama 3 70B", LLAMA_70B),
    ]


def _inputs(draw: Draw):
    for label, model in _models(draw):
        yield sample(label, c=model)


def _explain(name: str):
    """Say by how much a count is off, and for which model, so that the learner can work it out by hand."""

    def words(inputs, yours):
        from autograder.steps import Evaluator

        expected = Evaluator(case, case.exercises[name], inputs).output()
        model = f"for ModelConfig({', '.join(map(str, inputs['c'].values()))})"
        if type(yours) is not int or yours == expected:
            return [model]
        return [f"too {'large' if yours > expected else 'small'} by {abs(yours - expected):,} {model}"]

    return words


def _right(name: str, c: dict):
    """The right value of another function of the module."""
    return _known(name, tuple(c.items()))


@lru_cache(maxsize=1000)
def _known(name: str, items: tuple):
    from autograder.steps import Evaluator

    return Evaluator(case, case.exercises[name], {"c": dict(items)}).output()


# ---------------------------------------------------------------- steps of the counts


@case.step
def _c(c):
    return SimpleNamespace(**dict(zip(SIZES, c.values(), strict=True)))


@case.step
def _widths(_c):
    """Width of all query heads side by side, and of all key (or value) heads."""
    return _c.H * _c.D, _c.Hkv * _c.D


@case.step
def _width(_widths):
    return _widths[0]


@case.step
def _kv_width(_widths):
    return _widths[1]


@case.step
def _kv_pair():
    return 2


@case.step
def q_matrix(_c, _width):
    return _c.C * _width


@case.step
def kv_matrices(_c, _kv_width, _kv_pair):
    return _kv_pair * _c.C * _kv_width


@case.step
def out_matrix(_c, _width):
    return _width * _c.C


@case.step
def _attention_matrices(q_matrix, kv_matrices, out_matrix):
    return q_matrix + kv_matrices + out_matrix


@case.step
def _attention_bias(_c):
    return _c.bias


@case.step
def _qkv_biases(_width, _kv_width, _kv_pair):
    return _width + _kv_pair * _kv_width


@case.step
def _out_bias(_c):
    return _c.C


@case.step
def attention_biases(_attention_bias, _qkv_biases, _out_bias):
    return _qkv_biases + _out_bias if _attention_bias else 0


@case.step
def attention_parameters(_attention_matrices, attention_biases):
    return _attention_matrices + attention_biases


@case.step
def _mlp_number(_c):
    return 3 if _c.gated else 2


@case.step
def _mlp_width(_c):
    return _c.F


@case.step
def mlp_matrices(_c, _mlp_number, _mlp_width):
    return _mlp_number * _c.C * _mlp_width


@case.step
def _mlp_bias(_c):
    return _c.bias


@case.step
def _inner_biases(_mlp_number, _mlp_width):
    return (_mlp_number - 1) * _mlp_width


@case.step
def _last_bias(_c):
    return _c.C


@case.step
def mlp_biases(_mlp_bias, _inner_biases, _last_bias):
    return _inner_biases + _last_bias if _mlp_bias else 0


@case.step
def mlp_parameters(mlp_matrices, mlp_biases):
    return mlp_matrices + mlp_biases


@case.step
def _norms():
    return 2


@case.step
def _norm_width(_c):
    return _c.C


@case.step
def norm_gains(_norms, _norm_width):
    return _norms * _norm_width


@case.step
def _norm_bias(_c):
    return _c.norm_bias


@case.step
def norm_biases(_norms, _norm_width, _norm_bias):
    return _norms * _norm_width if _norm_bias else 0


@case.step
def norm_parameters(norm_gains, norm_biases):
    return norm_gains + norm_biases


@case.step
def block_parameters(attention_parameters, mlp_parameters, norm_parameters):
    return attention_parameters + mlp_parameters + norm_parameters


@case.step
def wte(_c):
    return _c.V * _c.C


@case.step
def _learned(_c):
    return _c.learned


@case.step
def wpe(_c, _learned):
    return _c.n_ctx * _c.C if _learned else 0


@case.step
def embedding_parameters(wte, wpe):
    return wte + wpe


@case.step
def blocks(_c, block_parameters):
    return _c.L * block_parameters


@case.step
def ln_f(_c):
    return (2 if _c.norm_bias else 1) * _c.C


@case.step
def head(_c):
    return 0 if _c.tied else _c.V * _c.C


@case.step
def count_parameters(embedding_parameters, blocks, ln_f, head):
    return embedding_parameters + blocks + ln_f + head


@case.step
def mlp_share(_attention_matrices, mlp_matrices):
    return mlp_matrices / (mlp_matrices + _attention_matrices)


@case.step
def _stored(c, _c):
    """The number of parameters. How it comes about is the business of count_parameters."""
    return _right("count_parameters", c)


@case.step
def weight_bytes(_stored, bytes_per_parameter):
    return math.ceil(_stored * bytes_per_parameter)


@case.step
def _cache_heads(_c):
    return _c.Hkv


@case.step
def _cache_head_size(_c):
    return _c.D


@case.step
def _cache_layers(_c):
    return _c.L


@case.step
def cache_values(_cache_layers, _cache_heads, _cache_head_size):
    """Numbers that one token adds to the cache: a key and a value for each key/value head of each layer."""
    return 2 * _cache_layers * _cache_heads * _cache_head_size


@case.step
def kv_cache_bytes_per_token(cache_values, bytes_per_value):
    return math.ceil(cache_values * bytes_per_value)


@case.step
def _multiply_add():
    return 2


@case.step
def head_matrix(_c):
    return _c.V * _c.C


@case.step
def matrix_flops(_c, _multiply_add, _attention_matrices, mlp_matrices, head_matrix):
    return _multiply_add * (_c.L * (_attention_matrices + mlp_matrices) + head_matrix)


@case.step
def _read_positions(n_positions):
    return n_positions


@case.step
def attention_flops(_c, _read_positions):
    return 4 * _c.L * _read_positions * _c.H * _c.D


@case.step
def forward_flops_per_token(matrix_flops, attention_flops):
    return matrix_flops + attention_flops


# ---------------------------------------------------------------- the reference: list every tensor, then add up


def _tensors(c: dict):
    """Every stored tensor of a model as (layer or None, part, shape): one by one, heads apart."""
    m = SimpleNamespace(**c)
    yield None, "wte", (m.vocab_size, m.d_model)
    if m.learned_positions:
        yield None, "wpe", (m.n_ctx, m.d_model)
    for layer in range(m.n_layer):
        yield from ((layer, part, shape) for part, shape in _block(m))
    yield from ((None, "ln_f", shape) for shape in _norm(m))
    if not m.tied:
        yield None, "head", (m.d_model, m.vocab_size)


def _norm(m):
    return [(m.d_model,)] * (2 if m.norm_bias else 1)


def _block(m):
    yield from (("norm", shape) for shape in _norm(m) + _norm(m))
    heads = {"q": m.n_head, "k": m.n_kv_head, "v": m.n_kv_head}
    for number in heads.values():
        for _ in range(number):
            yield "attention", (m.d_model, m.d_head)
            if m.bias:
                yield "attention", (m.d_head,)
    yield from [("attention", (m.d_head, m.d_model))] * m.n_head
    wide = ["gate", "up"] if m.gated_mlp else ["fc"]
    yield from [("mlp", (m.d_model, m.d_ff))] * len(wide) + [("mlp", (m.d_ff, m.d_model))]
    if m.bias:
        yield "attention", (m.d_model,)
        yield from [("mlp", (m.d_ff,))] * len(wide) + [("mlp", (m.d_model,))]


def _listed(c: dict, *parts: str, layers=None, matrices: bool = False) -> int:
    """The entries of all tensors of these parts (of one layer, matrices alone)."""
    return sum(
        math.prod(shape)
        for layer, part, shape in _tensors(c)
        if (not parts or part in parts) and layers in (None, layer) and (not matrices or len(shape) == 2)
    )


def _share_reference(c):
    mlp = _listed(c, "mlp", layers=0, matrices=True)
    return 1 - _listed(c, "attention", layers=0, matrices=True) / (mlp + _listed(c, "attention", layers=0, matrices=True))


def _up(numerator: int, factor: float) -> int:
    """numerator * factor rounded up, in whole numbers."""
    top, bottom = float(factor).as_integer_ratio()
    return -(-numerator * top // bottom)


def _flops_reference(c, n_positions):
    products = _listed({**c, "tied": False}, "attention", "mlp", "head", matrices=True)
    scores = sums = c["n_layer"] * c["n_head"] * n_positions * c["d_head"]
    return 2 * products + 2 * scores + 2 * sums


# ---------------------------------------------------------------- exercises of the counts


def _bytes_inputs(draw: Draw):
    for (label, model), size in zip(_models(draw), (2, 0.53125, 0.375, 4, 1, 0.5, 0.375, 4, 2, 0.5), strict=True):
        yield sample(f"{label}, {size} bytes a parameter", c=model, bytes_per_parameter=size)
    yield sample("the Llama toy, 0.3125 bytes a parameter", c=LLAMA_TOY, bytes_per_parameter=0.3125)
    yield sample("the Llama toy tied, 16 bytes a parameter", c={**LLAMA_TOY, "tied": True}, bytes_per_parameter=16)


def _cache_inputs(draw: Draw):
    for (label, model), size in zip(_models(draw), (None, 0.359375, 0.53125, 4, None, 1, 0.375, None, 0.5, 1), strict=True):
        if size is None:
            yield sample(label, c=model)
        else:
            yield sample(f"{label}, {size} bytes a value", c=model, bytes_per_value=size)


def _flops_inputs(draw: Draw):
    for (label, model), n_positions in zip(_models(draw), (1, 8, 5, 9, 13, 3, 19, 1024, 777, 131072), strict=True):
        yield sample(f"{label}, {n_positions} positions", c=model, n_positions=n_positions)


def _with_gpt3(draw: Draw):
    yield from _inputs(draw)
    yield sample("GPT-3", c=GPT3)


def _with_more_models(draw: Draw):
    yield from _inputs(draw)
    yield sample("GPT-2 XL", c=GPT2_XL)
    yield sample("Llama 3 8B", c=LLAMA_8B)


case.exercise(
    "attention_parameters(c)",
    returns="attention_parameters",
    inputs=_with_gpt3,
    points=3,
    probe="attention_parameters",
    lesson="Four matrices, and how wide each is",
    hints=(
        "Each of the four matrices has one side on the residual stream. What is on the other side, for q, for k, for out?",
        "All query heads side by side are H*D wide, all key heads Hkv*D; C stays on the residual side of all four.",
        "2*C*H*D + 2*C*Hkv*D, and with biases H*D + 2*Hkv*D + C more",
    ),
    reference=lambda c: _listed(c, "attention", layers=0),
    explain=_explain("attention_parameters"),
)
case.exercise(
    "mlp_parameters(c)",
    returns="mlp_parameters",
    inputs=_with_gpt3,
    points=2,
    probe="mlp_parameters",
    lesson="Two matrices or three",
    hints=(
        "Which matrices does a gated MLP have that a plain one has not?",
        "Every matrix is C by F, one way or the other. A bias is as long as the output: which of them go up, which one down?",
        "n*C*F with n = 3 where gated and 2 where not; with biases (n-1)*F + C more",
    ),
    reference=lambda c: _listed(c, "mlp", layers=0),
    explain=_explain("mlp_parameters"),
)
case.exercise(
    "norm_parameters(c)",
    returns="norm_parameters",
    inputs=_inputs,
    points=1,
    probe="norm_parameters",
    lesson="The small change",
    hints=(
        "What does a norm learn for each channel: one number, or two?",
        "A block has two norms of width C. Which field says whether they add a bias to their gain?",
        "2*C, or 4*C where norm_bias",
    ),
    reference=lambda c: _listed(c, "norm", layers=0),
    explain=_explain("norm_parameters"),
)
case.exercise(
    "block_parameters(c)",
    returns="block_parameters",
    inputs=_inputs,
    points=1,
    probe="block_parameters",
    lesson="The small change",
    hints=(
        "Which boxes stand inside the block in the lesson's picture?",
        "You have written a function for each of them; does norm_parameters speak of one norm or of both?",
        "attention_parameters(c) + mlp_parameters(c) + norm_parameters(c)",
    ),
    reference=lambda c: _listed(c, "attention", "mlp", "norm", layers=0),
    explain=_explain("block_parameters"),
)
case.exercise(
    "embedding_parameters(c)",
    returns="embedding_parameters",
    inputs=_inputs,
    points=1,
    probe="embedding_parameters",
    lesson="The tables at the entrance",
    hints=(
        "Which tables are read before the first block, and how many rows has each?",
        "wte has a row for each token of the vocabulary; wpe has one for each position, and exists where positions are learned.",
        "V*C, and n_ctx*C more where learned_positions",
    ),
    reference=lambda c: _listed(c, "wte", "wpe"),
    explain=_explain("embedding_parameters"),
)
case.exercise(
    "count_parameters(c)",
    returns="count_parameters",
    inputs=_with_more_models,
    points=4,
    probe="count_parameters",
    lesson="Counted once",
    hints=(
        "Walk through the picture from the entrance to the logits: what have you not counted yet?",
        "After the last block stand a norm and the head. Is the head a matrix of its own in this model?",
        "embeddings + L * block + final norm (C, or 2*C where norm_bias) + V*C where not tied",
    ),
    reference=lambda c: _listed(c),
    explain=_explain("count_parameters"),
)
case.exercise(
    "mlp_share(c)",
    returns="mlp_share",
    inputs=_with_gpt3,
    points=1,
    probe="mlp_share",
    lesson="Where the parameters live",
    hints=(
        "Share of what: which matrices stand in the denominator, and what is left out of it?",
        "Count the matrices of the MLP and those of attention without their biases.",
        "n*C*F / (n*C*F + 2*C*H*D + 2*C*Hkv*D), with n = 3 where gated and 2 where not",
    ),
    reference=_share_reference,
    tolerance=1e-9,
    explain=_explain("mlp_share"),
)
case.exercise(
    "weight_bytes(c, bytes_per_parameter)",
    returns="weight_bytes",
    inputs=_bytes_inputs,
    points=1,
    probe="weight_bytes",
    lesson="Bytes at rest",
    hints=(
        "How many parameters are stored, and how many bytes does each take?",
        "The product may not be whole. Which way does the lesson round it, and of which type is the result?",
        "the least whole number that is not below count_parameters(c) * bytes_per_parameter",
    ),
    reference=lambda c, bytes_per_parameter: _up(_listed(c), bytes_per_parameter),
    explain=_explain("weight_bytes"),
)
case.exercise(
    "kv_cache_bytes_per_token(c, bytes_per_value=2)",
    returns="kv_cache_bytes_per_token",
    inputs=_cache_inputs,
    points=2,
    probe="kv_cache_bytes_per_token",
    lesson="Bytes that grow",
    hints=(
        "What does one layer keep of a token, and which heads have it?",
        "A key and a value of D numbers for each key/value head, in every layer. C has nothing to say here.",
        "2 * L * Hkv * D * bytes_per_value, a fraction rounded up",
    ),
    reference=lambda c, bytes_per_value=2: _up(
        sum(2 * c["d_head"] for _ in range(c["n_layer"] * c["n_kv_head"])), bytes_per_value
    ),
    explain=_explain("kv_cache_bytes_per_token"),
)
case.exercise(
    "forward_flops_per_token(c, n_positions)",
    returns="forward_flops_per_token",
    inputs=_flops_inputs,
    points=3,
    probe="forward_flops_per_token",
    lesson="Arithmetic of one token",
    hints=(
        "What happens to each entry of a matrix when one token passes, and which work grows with n_positions?",
        "2 for each entry of the blocks' matrices and of the head, tied or not; scores and sums cost 2*D each, for each query "
        "head and position.",
        "2 * (L * (attention and MLP matrices) + V*C) + 4 * L * n_positions * H * D",
    ),
    reference=_flops_reference,
    explain=_explain("forward_flops_per_token"),
)


# One mistake, one line or two.
# fmt: off
# ---------------------------------------------------------------- faults of any count


def _any_count(name: str) -> None:
    short = name.replace("_", "-")
    wrong(f"{short}-not-whole", name, "a whole number is asked for: which operation in your function gives a float?",
          lambda right: float(right), only=(name,))
    wrong(f"{short}-not-given-back", name, "does your function give back what it has counted?", lambda right: None, only=(name,))


COUNTS = [name for name in case.exercises if name not in ("read_config", "mlp_share")]
for _name in COUNTS:
    _any_count(_name)
for _name in ("attention_parameters", "mlp_parameters", "norm_parameters", "block_parameters"):
    wrong(f"{_name.replace('_', '-')}-of-all-layers", _name, "is one block asked for, or all of them?",
          lambda _c, right: _c.L * right, only=(_name,))

# ---------------------------------------------------------------- faults of attention

COUNTED = ("attention_parameters", "block_parameters", "count_parameters")  # where a bias counts, too

wrong("every-matrix-square", "_widths",
      "which models have heads whose widths do not add up to C, and which have fewer heads for k and v?",
      lambda _c: (_c.C, _c.C), tensor="q_matrix")
wrong("head-size-derived", "_widths", "is D always C / H, or does the config state it?",
      lambda _c: (_c.H * (_c.C // _c.H), _c.Hkv * (_c.C // _c.H)), tensor="q_matrix")
wrong("each-head-as-wide-as-d-model", "_widths", "how wide is one head: C, or D?",
      lambda _c: (_c.H * _c.C, _c.Hkv * _c.C), tensor="q_matrix")
wrong("one-head-only", "_widths", "how many heads stand side by side in one matrix?", lambda _c: (_c.D, _c.D), tensor="q_matrix")
wrong("query-heads-as-few-as-kv-heads", "_widths", "how many heads do the queries have?",
      lambda _c: (_c.Hkv * _c.D, _c.Hkv * _c.D), tensor="q_matrix")
wrong("heads-and-kv-heads-swapped", "_widths", "which heads are fewer: those of the queries, or those of keys and values?",
      lambda _c: (_c.Hkv * _c.D, _c.H * _c.D), tensor="q_matrix", only=COUNTED)
wrong("width-is-d-model", "_width", "which width has the outside of q and the inside of the output projection?",
      lambda _c: _c.C, tensor="q_matrix")
wrong("kv-heads-ignored", "_kv_width", "which of the four matrices get smaller when Hkv does?",
      lambda _c: _c.H * _c.D, tensor="kv_matrices")
wrong("kv-heads-counted-as-groups", "_kv_width", "is n_kv_head the number of key/value heads, or how many query heads share one?",
      lambda _c: _c.H // _c.Hkv * _c.D, tensor="kv_matrices")
wrong("kv-width-is-d-model", "_kv_width", "how wide are all key heads side by side?", lambda _c: _c.C, tensor="kv_matrices")
wrong("kv-one-head-only", "_kv_width", "how many key/value heads are there?", lambda _c: _c.D, tensor="kv_matrices")
wrong("kv-head-size-derived", "_kv_width", "how wide is a key head: is it C / H?",
      lambda _c: _c.Hkv * (_c.C // _c.H), tensor="kv_matrices")
wrong("k-or-v-missing", "_kv_pair", "keys and values: how many matrices are these?", lambda: 1, tensor="kv_matrices")
wrong("k-and-v-missing", "_kv_pair", "which matrices make the keys and the values?", lambda: 0, tensor="kv_matrices")
wrong("q-or-out-left-square", "out_matrix", "how wide is the outside of q, and the inside of the output projection?",
      lambda _c: _c.C * _c.C)
wrong("q-or-out-missing", "out_matrix", "queries and the way back into the residual stream: how many matrices are these?",
      lambda: 0)
wrong("out-square-of-heads", "out_matrix", "where does the output projection lead to: how wide is the residual stream?",
      lambda _width: _width * _width)
wrong("out-reads-kv-heads", "out_matrix", "how many heads does the output projection read: H, or Hkv?",
      lambda _c, _kv_width: _kv_width * _c.C)

wrong("attention-biases-missing", "attention_biases", "which field says that the matrices have biases?", lambda: 0)
wrong("attention-biases-always", "_attention_bias", "does every model have biases on its matrices?",
      lambda: True, tensor="attention_biases")
wrong("attention-biases-by-norm-bias", "_attention_bias", "which field speaks of the matrices' biases, and which of the norms'?",
      lambda _c: _c.norm_bias, tensor="attention_biases")
wrong("attention-biases-inverted", "_attention_bias", "are there biases where bias is true, or where it is false?",
      lambda right: not right, tensor="attention_biases")
wrong("qkv-biases-missing", "_qkv_biases", "which of the four matrices have a bias?", lambda: 0, tensor="attention_biases")
wrong("q-bias-only", "_qkv_biases", "which of the four matrices have a bias?", lambda _width: _width, tensor="attention_biases")
wrong("one-kv-bias-only", "_qkv_biases", "keys and values: how many biases are these?",
      lambda _width, _kv_width: _width + _kv_width, tensor="attention_biases")
wrong("kv-biases-as-long-as-q", "_qkv_biases", "four biases: are they equally long?",
      lambda _width: 3 * _width, tensor="attention_biases")
wrong("qkv-biases-as-long-as-d-model", "_qkv_biases",
      "a bias is as long as the output of its matrix: how wide are the outputs of q, k and v?",
      lambda _c: 3 * _c.C, tensor="attention_biases")
wrong("out-bias-missing", "_out_bias", "does the output projection have a bias?",
      lambda: 0, tensor="attention_biases", only=COUNTED[:1])
wrong("out-bias-as-long-as-input", "_out_bias", "which side of the output projection does its bias lie on?",
      lambda _width: _width, tensor="attention_biases")
wrong("attention-biases-as-long-as-input", "attention_biases", "is a bias as long as the input of its matrix, or as the output?",
      lambda _c, _width: 3 * _c.C + _width if _c.bias else 0)
wrong("attention-bias-is-one-number", "attention_biases", "how many numbers does one bias hold?", lambda _c: 4 if _c.bias else 0)
wrong("attention-biases-once-a-head", "_out_bias", "how often is the bias of the output projection added?",
      lambda _c: _c.H * _c.C, tensor="attention_biases")

# ---------------------------------------------------------------- faults of the MLP

wrong("gated-counted-as-two", "_mlp_number", "how many matrices has a gated MLP?", lambda: 2, tensor="mlp_matrices")
wrong("plain-counted-as-three", "_mlp_number", "how many matrices has an MLP without a gate?", lambda: 3, tensor="mlp_matrices")
wrong("gate-inverted", "_mlp_number", "which MLP has three matrices, the gated or the plain one?",
      lambda _c: 2 if _c.gated else 3, tensor="mlp_matrices")
wrong("gate-is-one-column", "mlp_matrices", "how wide is the gate: does every one of the F neurons have its own?",
      lambda _c: 2 * _c.C * _c.F + (_c.C if _c.gated else 0))
wrong("down-matrix-missing", "mlp_matrices", "which matrix leads back into the residual stream?",
      lambda _c: (2 if _c.gated else 1) * _c.C * _c.F)
wrong("gate-counted-as-four", "mlp_matrices", "gate and up may be one matrix of 2*F columns: how many rows has down?",
      lambda _c: (4 if _c.gated else 2) * _c.C * _c.F)
wrong("eight-squares", "mlp_matrices", "for which F has a plain MLP 8*C*C entries?", lambda _c: 8 * _c.C * _c.C)
wrong("mlp-on-the-heads-width", "mlp_matrices", "how wide is the residual stream that the MLP reads: C, or H*D?",
      lambda _c, _mlp_number: _mlp_number * _c.H * _c.D * _c.F, only=("mlp_parameters", "block_parameters", "count_parameters"))
wrong("mlp-width-four-d-model", "_mlp_width", "is F always 4*C, or can it be read in the config?",
      lambda _c: 4 * _c.C, tensor="mlp_matrices")
wrong("gated-width-four-d-model", "_mlp_width", "is F of a gated MLP 4*C, or can it be read in the config?",
      lambda _c: 4 * _c.C if _c.gated else _c.F, tensor="mlp_matrices")
wrong("gated-width-eight-thirds", "_mlp_width", "is F of a gated MLP 8*C/3, or can it be read in the config?",
      lambda _c: 8 * _c.C // 3 if _c.gated else _c.F, tensor="mlp_matrices")
wrong("mlp-width-computed", "_mlp_width", "which of these do you have to compute, and which can you read in the config?",
      lambda _c: 8 * _c.C // 3 if _c.gated else 4 * _c.C, tensor="mlp_matrices")
wrong("gated-width-two-thirds-again", "_mlp_width", "F of a gated MLP stands in the config: is it to be made smaller once more?",
      lambda _c: 2 * _c.F // 3 if _c.gated else _c.F, tensor="mlp_matrices")
wrong("gated-width-doubled", "_mlp_width", "gate and up may be one matrix of 2*F columns: is F then twice as large?",
      lambda _c: 2 * _c.F if _c.gated else _c.F, tensor="mlp_matrices")


def _rounded(multiple: int) -> None:
    wrong(f"gated-width-rounded-to-{multiple}", "_mlp_width",
          "is F of a gated MLP to be computed and rounded, or can it be read in the config?",
          lambda _c: -(-8 * _c.C // (3 * multiple)) * multiple if _c.gated else _c.F, tensor="mlp_matrices")
    wrong(f"vocabulary-padded-to-{multiple}", "wte", "how many rows does the config state?",
          lambda _c: -(-_c.V // multiple) * multiple * _c.C)


for _multiple in (64, 128, 256):
    _rounded(_multiple)

wrong("mlp-biases-missing", "mlp_biases", "which field says that the matrices have biases?", lambda: 0)
wrong("mlp-biases-always", "_mlp_bias", "does every model have biases on its matrices?", lambda: True, tensor="mlp_biases")
wrong("mlp-biases-by-norm-bias", "_mlp_bias", "which field speaks of the matrices' biases, and which of the norms'?",
      lambda _c: _c.norm_bias, tensor="mlp_biases")
wrong("mlp-biases-inverted", "_mlp_bias", "are there biases where bias is true, or where it is false?",
      lambda right: not right, tensor="mlp_biases")
wrong("gated-never-biased", "_mlp_bias", "can a gated MLP have biases?", lambda _c: _c.bias and not _c.gated, tensor="mlp_biases")
wrong("inner-biases-missing", "_inner_biases", "which of the MLP's matrices have a bias?", lambda: 0, tensor="mlp_biases")
wrong("gate-bias-missing", "_inner_biases", "gate and up: how many biases are these?", lambda _c: _c.F, tensor="mlp_biases")
wrong("inner-biases-as-long-as-d-model", "_inner_biases",
      "a bias is as long as the output of its matrix: how wide are the MLP's neurons?",
      lambda _c: (2 if _c.gated else 1) * _c.C, tensor="mlp_biases")
wrong("last-bias-missing", "_last_bias", "does the matrix that leads back have a bias?",
      lambda: 0, tensor="mlp_biases", only=("mlp_parameters",))
wrong("last-bias-as-long-as-input", "_last_bias", "which side of the last matrix does its bias lie on?",
      lambda _c: _c.F, tensor="mlp_biases")
wrong("mlp-biases-as-long-as-input", "mlp_biases", "is a bias as long as the input of its matrix, or as the output?",
      lambda _c: (0 if not _c.bias else 2 * _c.C + _c.F if _c.gated else _c.C + _c.F))
wrong("mlp-bias-is-one-number", "mlp_biases", "how many numbers does one bias hold?",
      lambda _c, _mlp_number: _mlp_number if _c.bias else 0)

# ---------------------------------------------------------------- faults of the norms and the block

wrong("one-norm-only", "_norms", "how many norms stand in one block?", lambda: 1, tensor="norm_gains")
wrong("three-norms", "_norms", "which norms stand inside the block, and which behind the last one?",
      lambda: 3, tensor="norm_gains")
wrong("norm-is-one-number", "_norm_width", "how many numbers does a gain hold?", lambda: 1, tensor="norm_gains")
wrong("norm-on-the-heads-width", "_norm_width", "how wide is the residual stream that is normalised: C, or H*D?",
      lambda _c: _c.H * _c.D, tensor="norm_gains")
wrong("norm-on-the-mlp-width", "_norm_width", "how wide is the residual stream that is normalised: C, or F?",
      lambda _c: _c.F, tensor="norm_gains")
wrong("norm-on-one-head", "_norm_width", "how wide is the residual stream that is normalised: C, or D?",
      lambda _c: _c.D, tensor="norm_gains")
wrong("norm-gains-missing", "norm_gains", "what does every norm learn, with or without a bias?", lambda: 0)
wrong("norm-biases-always", "_norm_bias", "does every norm have a bias?", lambda: True, tensor="norm_biases")
wrong("norm-biases-never", "_norm_bias", "does LayerNorm have a bias?", lambda: False, tensor="norm_biases")
wrong("norm-biases-by-bias", "_norm_bias", "is bias the field that you need here?", lambda _c: _c.bias, tensor="norm_biases")
wrong("norm-biases-if-either", "_norm_bias", "is bias a field that you need here?",
      lambda _c: _c.bias or _c.norm_bias, tensor="norm_biases")
wrong("norm-biases-if-both", "_norm_bias", "is bias a field that you need here?",
      lambda _c: _c.bias and _c.norm_bias, tensor="norm_biases")
wrong("norm-biases-by-gate", "_norm_bias", "does the gate of the MLP say which norm is used?",
      lambda _c: not _c.gated, tensor="norm_biases")
wrong("norm-biases-inverted", "_norm_bias", "are there biases where norm_bias is true, or where it is false?",
      lambda right: not right, tensor="norm_biases")
wrong("norm-bias-of-one-norm-only", "norm_biases", "two norms: how many biases are these?",
      lambda _c: _c.C if _c.norm_bias else 0)

wrong("block-without-norms", "block_parameters", "what else stands in a block besides attention and MLP?",
      lambda attention_parameters, mlp_parameters: attention_parameters + mlp_parameters)
wrong("block-with-one-bias-too-few", "block_parameters",
      "two matrices lead back into the residual stream: how many biases lie there?",
      lambda _c, right: right - (_c.C if _c.bias else 0))
wrong("block-without-mlp", "block_parameters", "what follows attention in a block?",
      lambda attention_parameters, norm_parameters: attention_parameters + norm_parameters)
wrong("block-without-attention", "block_parameters", "what precedes the MLP in a block?",
      lambda mlp_parameters, norm_parameters: mlp_parameters + norm_parameters)
wrong("block-with-norms-twice", "block_parameters", "does norm_parameters count one norm, or both?",
      lambda right, norm_parameters: right + norm_parameters)
wrong("block-matrices-only", "block_parameters", "do biases and norms belong to a block?",
      lambda _attention_matrices, mlp_matrices: _attention_matrices + mlp_matrices)
wrong("block-is-twelve-squares", "block_parameters", "which parts of which models does 12*C*C stand for?",
      lambda _c: 12 * _c.C * _c.C)
wrong("block-with-embeddings", "block_parameters", "do the tables at the entrance stand in a block?",
      lambda right, c: right + _right("embedding_parameters", c), only=("block_parameters",))
wrong("block-with-mlp-twice", "block_parameters", "how many MLPs stand in one block?",
      lambda right, mlp_parameters: right + mlp_parameters)
wrong("block-with-attention-twice", "block_parameters", "how many attentions stand in one block?",
      lambda right, attention_parameters: right + attention_parameters)

# ---------------------------------------------------------------- faults of the embeddings and the whole

wrong("wte-missing", "wte", "where do the token ids enter?", lambda: 0)
wrong("wte-with-n-ctx-rows", "wte", "how many rows has wte: one for each position, or one for each token of the vocabulary?",
      lambda _c: _c.n_ctx * _c.C)
wrong("wte-on-the-heads-width", "wte", "how wide is the residual stream into which wte writes?", lambda _c: _c.V * _c.H * _c.D)
wrong("wte-one-number-a-token", "wte", "how many numbers has a row of wte?", lambda _c: _c.V)
wrong("wte-with-the-head", "wte", "does the head stand at the entrance?", lambda _c: (1 if _c.tied else 2) * _c.V * _c.C)
wrong("wte-twice", "wte", "how many tables are there for the vocabulary at the entrance?",
      lambda _c: 2 * _c.V * _c.C, only=("embedding_parameters",))
wrong("wpe-missing", "wpe", "where do learned positions enter?", lambda: 0)
wrong("wpe-always", "_learned", "which table does a rotary model not have?", lambda: True, tensor="wpe")
wrong("wpe-inverted", "_learned", "which models have a wpe: those that learn positions, or those that compute them?",
      lambda right: not right, tensor="wpe")
wrong("wpe-by-gate", "_learned", "does the gate of the MLP say how positions are told?", lambda _c: not _c.gated, tensor="wpe")
wrong("wpe-by-tied", "_learned", "does the head say how positions are told?", lambda _c: _c.tied, tensor="wpe")
wrong("wpe-in-every-layer", "wpe", "how often are positions added?", lambda _c, right: _c.L * right)
wrong("wpe-with-vocabulary-rows", "wpe", "how many rows has wpe?", lambda _c: _c.V * _c.C if _c.learned else 0)
wrong("wpe-one-number-a-position", "wpe", "how many numbers has a row of wpe?", lambda _c: _c.n_ctx if _c.learned else 0)
wrong("wpe-one-row-more", "wpe", "how many positions are there, counted from 0 to n_ctx - 1?",
      lambda _c: (_c.n_ctx + 1) * _c.C if _c.learned else 0)
wrong("wpe-one-row-fewer", "wpe", "how many positions are there, counted from 0 to n_ctx - 1?",
      lambda _c: (_c.n_ctx - 1) * _c.C if _c.learned else 0)
wrong("tables-multiplied", "embedding_parameters", "two tables beside each other: do their sizes multiply?",
      lambda wte, wpe: wte * wpe if wpe else wte)

wrong("embeddings-left-out", "embedding_parameters", "two customs of counting leave tables out: which one is asked for here?",
      lambda: 0, only=("count_parameters",))
wrong("wte-left-out-when-tied", "wte", "tied means one storage and two uses: is it then counted at all?",
      lambda _c: 0 if _c.tied else _c.V * _c.C, only=("count_parameters",))
wrong("one-block-only", "blocks", "how many blocks are there?", lambda block_parameters: block_parameters)
wrong("one-block-too-few", "blocks", "from 1 to L: how many blocks do you count?",
      lambda _c, block_parameters: (_c.L - 1) * block_parameters)
wrong("one-block-too-many", "blocks", "from 0 to L: how many blocks do you count?",
      lambda _c, block_parameters: (_c.L + 1) * block_parameters)
wrong("layers-counted-twice", "blocks", "how often do you multiply by L?",
      lambda _c, block_parameters: _c.L * _c.L * block_parameters)
wrong("final-norm-missing", "ln_f", "what stands between the last block and the head?", lambda: 0)
wrong("final-norm-counted-as-two", "ln_f", "norm_parameters counts the two norms of a block: how many stand behind the last one?",
      lambda right: 2 * right)
wrong("final-norm-without-bias", "ln_f", "does the final norm differ from the norms of the blocks?", lambda _c: _c.C)
wrong("final-norm-always-biased", "ln_f", "does the final norm differ from the norms of the blocks?", lambda _c: 2 * _c.C)
wrong("final-norm-bias-by-bias", "ln_f", "which field says whether a norm has a bias?", lambda _c: (2 if _c.bias else 1) * _c.C)
wrong("final-norm-in-every-layer", "ln_f", "how often does the final norm stand in the model?", lambda _c, right: _c.L * right)
wrong("final-norm-on-the-vocabulary", "ln_f", "how wide is what the final norm reads?",
      lambda _c: (2 if _c.norm_bias else 1) * _c.V)
wrong("tied-head-counted-twice", "head", "tied: what is counted twice?", lambda _c: _c.V * _c.C)
wrong("head-never-counted", "head", "is the head of this model wte?", lambda: 0)
wrong("head-inverted", "head", "is the head a matrix of its own where tied is true, or where it is false?",
      lambda _c: _c.V * _c.C if _c.tied else 0)
wrong("head-with-bias", "head", "does the head have a bias?", lambda _c: 0 if _c.tied else _c.V * _c.C + _c.V)
wrong("head-with-bias-where-biased", "head", "bias speaks of the matrices of attention and MLP: is the head one of them?",
      lambda _c: 0 if _c.tied else _c.V * _c.C + (_c.V if _c.bias else 0))
wrong("head-bias-when-tied-too", "head", "does the head have a bias?", lambda _c: (0 if _c.tied else _c.V * _c.C) + _c.V)
wrong("head-as-many-columns-as-positions", "head", "how many columns has the head?", lambda _c: 0 if _c.tied else _c.n_ctx * _c.C)
wrong("embeddings-in-every-layer", "count_parameters", "what stands inside a block, and what only once?",
      lambda _c, right, embedding_parameters: right + (_c.L - 1) * embedding_parameters)
wrong("twelve-squares-a-layer", "count_parameters", "which parts of the model does the famous formula stand for?",
      lambda _c: 12 * _c.L * _c.C * _c.C)
wrong("twelve-squares-and-tables", "count_parameters", "which parts of a block does the famous formula leave out?",
      lambda _c, embedding_parameters: 12 * _c.L * _c.C * _c.C + embedding_parameters)
wrong("blocks-matrices-only", "count_parameters", "do only the blocks' matrices count?",
      lambda _c, _attention_matrices, mlp_matrices: _c.L * (_attention_matrices + mlp_matrices))
wrong("count-in-millions", "count_parameters", "to the last one: are millions a count?",
      lambda right: right / 1e6, only=("count_parameters",))

# ---------------------------------------------------------------- faults of the share

wrong("share-of-attention", "mlp_share", "whose share is asked for?", lambda right: 1 - right)
wrong("share-is-a-ratio", "mlp_share", "a share of what: does your denominator hold the MLP too?",
      lambda _attention_matrices, mlp_matrices: mlp_matrices / _attention_matrices)
wrong("share-in-percent", "mlp_share", "is a share between 0 and 1, or between 0 and 100?", lambda right: 100 * right)
wrong("share-divided-whole", "mlp_share", "what does // leave of a share?", lambda right: 0)
wrong("share-not-given-back", "mlp_share", "does your function give back what it has counted?", lambda right: None)
wrong("share-always-two-thirds", "mlp_share", "two thirds: of which models is that true?", lambda: 2 / 3)


def _digits(digits: int) -> None:
    wrong(f"share-rounded-to-{digits}", "mlp_share", "who asked for a rounded share?", lambda right: round(right, digits))


for _number in (1, 2, 3, 4):
    _digits(_number)


def _shares(id: str, text: str, share) -> None:
    """A share of other things than matrices: `share(value, s)` takes the right counts by name and the sizes."""

    def spoil(c, _attention_matrices, mlp_matrices):
        return share(lambda name: _right(name, c), SimpleNamespace(**c, attention=_attention_matrices, mlp=mlp_matrices))

    wrong(id, "mlp_share", text, spoil)


_shares("share-with-biases", "do biases count here?",
      lambda of, s: of("mlp_parameters") / (of("mlp_parameters") + of("attention_parameters")))
_shares("share-of-the-block", "are the norms matrices?", lambda of, s: of("mlp_parameters") / of("block_parameters"))
_shares("share-matrices-of-the-block", "what stands in your denominator besides matrices?",
      lambda of, s: s.mlp / of("block_parameters"))
_shares("share-of-the-model", "share of the blocks' matrices, or of the whole model?",
      lambda of, s: s.n_layer * of("mlp_parameters") / of("count_parameters"))
_shares("share-matrices-of-the-model", "share of the blocks' matrices, or of the whole model?",
      lambda of, s: s.n_layer * s.mlp / of("count_parameters"))
_shares("share-of-one-layer-in-the-model", "one block's MLP, and whose matrices in the denominator?",
      lambda of, s: s.mlp / of("count_parameters"))
_shares("share-one-mlp-in-the-model", "one block's MLP, and whose parameters in the denominator?",
      lambda of, s: of("mlp_parameters") / of("count_parameters"))
_shares("share-with-embeddings", "are wte and wpe matrices of the blocks?",
      lambda of, s: s.n_layer * s.mlp / (s.n_layer * (s.mlp + s.attention) + of("embedding_parameters")))
_shares("share-with-embeddings-and-head", "are wte, wpe and the head matrices of the blocks?",
      lambda of, s: s.n_layer * s.mlp / (of("count_parameters") - s.n_layer * (of("block_parameters") - s.mlp - s.attention)))
_shares("share-with-norms", "are the norms matrices?", lambda of, s: s.mlp / (s.mlp + s.attention + of("norm_parameters")))
_shares("share-one-layer-of-all", "one block's MLP, and how many blocks' matrices in the denominator?",
      lambda of, s: s.mlp / (s.n_layer * (s.mlp + s.attention)))
_shares("share-all-layers-of-one", "how many blocks' MLPs, and how many blocks' matrices in the denominator?",
      lambda of, s: s.n_layer * s.mlp / (s.mlp + s.attention))

# ---------------------------------------------------------------- faults of the bytes


def _bytes(id: str, text: str, made) -> None:
    """The same mistake with weights and with the cache: `made(n, b)` is what becomes of n numbers at b bytes each."""
    wrong(f"weights-{id}", "weight_bytes", text.replace("numbers", "parameters"),
          lambda _stored, bytes_per_parameter: made(_stored, bytes_per_parameter))
    wrong(f"cache-{id}", "kv_cache_bytes_per_token", text.replace("numbers", "values"),
          lambda cache_values, bytes_per_value: made(cache_values, bytes_per_value))


_bytes("rounded-down", "bytes that do not fit: which way is a fraction rounded?", lambda n, b: math.floor(n * b))
_bytes("rounded-to-nearest", "bytes that do not fit: which way is a fraction rounded?", lambda n, b: round(n * b))
_bytes("one-byte-too-many", "what is already whole: does it need one byte more?", lambda n, b: math.floor(n * b) + 1)
_bytes("fraction-kept", "can a fraction of a byte be stored?", lambda n, b: n * b)
_bytes("rounded-one-by-one", "are fractions rounded for each number, or once at the end?", lambda n, b: n * math.ceil(b))
_bytes("size-cut-to-whole", "half a byte each: what does int() leave of it?", lambda n, b: n * int(b))
_bytes("counted-in-bits", "is the result in bytes, or in bits?", lambda n, b: math.ceil(n * b * 8))
_bytes("argument-taken-for-bits", "is the argument in bytes, or in bits?", lambda n, b: math.ceil(n * b / 8))
_bytes("always-four-bytes", "how many bytes have the numbers each: which argument says it?", lambda n, b: 4 * n)
_bytes("always-two-bytes", "how many bytes have the numbers each: which argument says it?", lambda n, b: 2 * n)
_bytes("not-multiplied", "how many numbers there are, or how many bytes: what is asked for?", lambda n, b: n)
_bytes("divided-by-size", "more bytes each: does the sum grow, or shrink?", lambda n, b: math.ceil(n / b))


def _unit(name: str, size: int) -> None:
    _bytes(f"in-{name}", "are bytes asked for, or a larger unit?", lambda n, b: n * b / size)
    wrong(f"weights-in-whole-{name}", "weight_bytes", "are bytes asked for, or a larger unit?",
          lambda _stored, bytes_per_parameter: math.ceil(_stored * bytes_per_parameter / size))


for _power, _names in ((1, "kibibytes kilobytes"), (2, "mebibytes megabytes"), (3, "gibibytes gigabytes")):
    for _base, _name in zip((1024, 1000), _names.split(), strict=True):
        _unit(_name, _base**_power)

def _weights(id: str, text: str, stored) -> None:
    """Something else is stored than the parameters, each once."""
    wrong(f"weights-{id}", "_stored", text, stored, tensor="weight_bytes")


_weights("with-training-state", "gradients and AdamW's two numbers: are they weights?", lambda right: 4 * right)
_weights("with-saved-state", "AdamW's two numbers for every parameter: are they weights?", lambda right: 3 * right)
_weights("with-gradients", "one gradient for every parameter: is it a weight?", lambda right: 2 * right)
_weights("with-tied-head-twice", "tied: how often does the file hold the table?",
      lambda right, _c: right + (_c.V * _c.C if _c.tied else 0))
_weights("without-embeddings", "are wte and wpe stored?", lambda right, c: right - _right("embedding_parameters", c))
_weights("of-blocks-alone", "what is stored besides the blocks?", lambda _c, c: _c.L * _right("block_parameters", c))
_weights("of-one-block", "how many blocks are stored?", lambda c: _right("block_parameters", c))

wrong("cache-of-query-heads", "_cache_heads", "which heads keep a key and a value, the H or the Hkv?",
      lambda _c: _c.H, tensor="cache_values")
wrong("cache-of-one-head", "_cache_heads", "how many heads keep a key and a value?", lambda: 1, tensor="cache_values")
wrong("cache-of-groups", "_cache_heads", "is n_kv_head the number of key/value heads, or how many query heads share one?",
      lambda _c: _c.H // _c.Hkv, tensor="cache_values")
wrong("cache-head-size-derived", "_cache_head_size", "is D always C / H, or does the config state it?",
      lambda _c: _c.C // _c.H, tensor="cache_values")
wrong("cache-head-as-wide-as-d-model", "_cache_head_size", "does C count the heads already?",
      lambda _c: _c.C, tensor="cache_values")
wrong("cache-head-size-missing", "_cache_head_size", "how many numbers are in one key?", lambda: 1, tensor="cache_values")
wrong("cache-of-d-model", "cache_values", "how wide are all key heads side by side: is it C?", lambda _c: 2 * _c.L * _c.C)
wrong("cache-of-heads-times-d-model", "cache_values", "does C count the heads already, and which heads keep a key?",
      lambda _c: 2 * _c.L * _c.H * _c.C)
wrong("cache-of-one-layer", "_cache_layers", "which layers keep keys and values?", lambda: 1, tensor="cache_values")
wrong("cache-of-keys-only", "cache_values", "what else does a layer keep besides the key?", lambda right: right // 2)
wrong("cache-with-queries", "cache_values", "q, k and v: which of them does a later token need?",
      lambda _c, right: right + _c.L * _c.H * _c.D)
wrong("cache-counted-twice", "cache_values", "a key and a value: how often do you count the two?", lambda right: 2 * right)
wrong("cache-of-query-and-kv-heads", "cache_values", "a key and a value: which heads have them?",
      lambda _c: _c.L * (_c.H + _c.Hkv) * _c.D)
wrong("cache-of-three", "cache_values", "how many things does a layer keep for each key/value head?",
      lambda right: right // 2 * 3)
wrong("cache-of-all-positions", "cache_values", "is one token asked for, or all n_ctx of them?",
      lambda _c, right: _c.n_ctx * right)
wrong("cache-of-matrices", "cache_values", "does the cache keep the matrices, or what they made of the token?",
      lambda _c: 2 * _c.L * _c.C * _c.Hkv * _c.D)


def _default(default: int) -> None:
    wrong(f"cache-default-is-{default}", "kv_cache_bytes_per_token", "how many bytes has a value when the caller does not say?",
          lambda cache_values, bytes_per_value: math.ceil(cache_values * (default if bytes_per_value == 2 else bytes_per_value)))


_default(1)
_default(4)
wrong("cache-rounded-in-each-layer", "kv_cache_bytes_per_token", "are fractions rounded up for each layer, or once at the end?",
      lambda _c, cache_values, bytes_per_value: _c.L * math.ceil(cache_values // _c.L * bytes_per_value))

# ---------------------------------------------------------------- faults of the arithmetic

wrong("multiply-add-counted-once", "_multiply_add",
      "an entry takes part in a multiplication and an addition: how many operations are these?",
      lambda: 1, tensor="matrix_flops")
wrong("flops-of-training", "_multiply_add", "is backward counted here?", lambda: 6, tensor="matrix_flops")
wrong("flops-without-head", "head_matrix", "what does the head cost, although it may not be counted as parameters?", lambda: 0)
wrong("flops-head-only-when-untied", "head_matrix", "a tied head: does it do no work?", lambda _c: 0 if _c.tied else _c.V * _c.C)
wrong("flops-with-lookup", "head_matrix", "is the look-up in wte arithmetic?", lambda _c: 2 * _c.V * _c.C)
wrong("flops-with-lookup-when-untied", "head_matrix", "is the look-up in wte arithmetic?",
      lambda _c: (1 if _c.tied else 2) * _c.V * _c.C)
wrong("flops-with-wpe", "head_matrix", "is the look-up in wpe arithmetic?",
      lambda c, right: right + _right("embedding_parameters", c))
wrong("flops-head-inverted", "head_matrix", "a tied head: does it do no work?", lambda _c: _c.V * _c.C if _c.tied else 0)
wrong("flops-tables-for-head", "head_matrix", "which of the tables is used as a matrix?",
      lambda c: _right("embedding_parameters", c))
wrong("flops-head-in-every-layer", "head_matrix", "how often is the head used for one token?", lambda _c, right: _c.L * right)
wrong("flops-matrices-of-all-positions", "matrix_flops", "one token passes the matrices: how often?",
      lambda right, n_positions: n_positions * right)
wrong("flops-of-one-layer", "matrix_flops", "how many blocks does a token pass?",
      lambda _attention_matrices, mlp_matrices, head_matrix: 2 * (_attention_matrices + mlp_matrices + head_matrix))


def _flops(id: str, text: str, entries) -> None:
    """Twice the entries of other things than matrices: `entries(value, s)` as in `_shares`."""
    wrong(id, "matrix_flops", text, lambda c: 2 * entries(lambda name: _right(name, c), SimpleNamespace(**c)))


_flops("flops-with-biases", "do biases count here?",
      lambda of, s: s.n_layer * (of("attention_parameters") + of("mlp_parameters")) + s.vocab_size * s.d_model)
_flops("flops-of-whole-blocks", "do biases and norms count here?",
      lambda of, s: s.n_layer * of("block_parameters") + s.vocab_size * s.d_model)
_flops("flops-of-whole-blocks-without-head", "do biases and norms count here, and does the head?",
      lambda of, s: s.n_layer * of("block_parameters"))
_flops("flops-of-all-parameters", "is every parameter an entry of a matrix that multiplies?",
      lambda of, s: of("count_parameters"))
_flops("flops-of-all-but-embeddings", "which parameters multiply: do biases, norms and the head?",
      lambda of, s: of("count_parameters") - of("embedding_parameters"))

wrong("flops-attention-missing", "attention_flops", "which work grows with the number of positions?", lambda: 0)
wrong("flops-attention-halved", "attention_flops",
      "scores and weighted sum: two operations each, so how many for each entry and position?",
      lambda right: right // 2)
wrong("flops-attention-quartered", "attention_flops",
      "scores and weighted sum, multiplication and addition: how many operations are these?",
      lambda right: right // 4)
wrong("flops-attention-of-training", "attention_flops", "is backward counted here?", lambda right: 3 * right)
wrong("flops-attention-doubled", "attention_flops",
      "the 4 holds scores and sums, multiplications and additions: what is left to double?",
      lambda right: 2 * right)
wrong("flops-attention-of-kv-heads", "attention_flops", "each query head reads: why H here, where the cache had Hkv?",
      lambda _c, _read_positions: 4 * _c.L * _read_positions * _c.Hkv * _c.D)
wrong("flops-attention-on-d-model", "attention_flops", "how wide are all query heads side by side: is it C?",
      lambda _c, _read_positions: 4 * _c.L * _read_positions * _c.C)
wrong("flops-attention-heads-times-d-model", "attention_flops", "does C count the heads already?",
      lambda _c, _read_positions: 4 * _c.L * _read_positions * _c.H * _c.C)
wrong("flops-attention-of-one-head", "attention_flops", "how many heads read?",
      lambda _c, _read_positions: 4 * _c.L * _read_positions * _c.D)
wrong("flops-attention-without-head-size", "attention_flops", "how many products are summed for one score?",
      lambda _c, _read_positions: 4 * _c.L * _read_positions * _c.H)
wrong("flops-attention-of-one-layer", "attention_flops", "in how many layers does a token read?",
      lambda _c, _read_positions: 4 * _read_positions * _c.H * _c.D)
wrong("flops-positions-missing", "_read_positions", "how many positions does the token read?",
      lambda: 1, tensor="attention_flops")
wrong("flops-positions-from-config", "_read_positions", "how many positions does the token read: which argument says it?",
      lambda _c: _c.n_ctx, tensor="attention_flops")
wrong("flops-positions-squared", "_read_positions", "one token reads n positions: where would n * n come from?",
      lambda n_positions: n_positions * n_positions, tensor="attention_flops")
wrong("flops-positions-before-only", "_read_positions", "does a token read its own position too?",
      lambda n_positions: n_positions - 1, tensor="attention_flops")
wrong("flops-positions-one-more", "_read_positions", "is the token's own position already among the n?",
      lambda n_positions: n_positions + 1, tensor="attention_flops")
wrong("flops-of-all-tokens", "forward_flops_per_token", "is one token asked for, or all of them?",
      lambda right, n_positions: n_positions * right)
wrong("flops-of-all-training", "forward_flops_per_token", "is backward counted here?", lambda right: 3 * right)
wrong("flops-twice-the-parameters", "forward_flops_per_token",
      "what does twice the parameters leave out, and what does it count too much?",
      lambda c: 2 * _right("count_parameters", c))
wrong("flops-six-times-the-parameters", "forward_flops_per_token", "is backward counted here?",
      lambda c: 6 * _right("count_parameters", c))
# fmt: on
