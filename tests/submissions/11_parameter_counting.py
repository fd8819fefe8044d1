"""Submissions of 11_parameter_counting: patches on the solution, with what the grader must say of them."""


# %% wrong: missing fields end in a KeyError
# expect: read_config fail at fields as missing-field-is-key-error
def read_config(config):
    kind = config["model_type"]
    if kind not in ("gpt2", "llama", "mistral"):
        raise ValueError(f"model_type {kind} is not supported")
    if config.get("add_cross_attention"):
        raise ValueError("add_cross_attention is not supported")
    if kind == "gpt2":
        D = config["n_embd"] // config["n_head"]
        F = config.get("n_inner") or 4 * config["n_embd"]
        return ModelConfig(
            config["n_layer"],
            config["n_embd"],
            config["n_head"],
            config["n_head"],
            D,
            F,
            config["vocab_size"],
            config["n_positions"],
            False,
            True,
            True,
            config.get("tie_word_embeddings", True),
            True,
        )
    bias = config.get("attention_bias", False)
    if bias != config.get("mlp_bias", False):
        raise ValueError("attention_bias and mlp_bias are not the same")
    H = config["num_attention_heads"]
    D = config.get("head_dim") or config["hidden_size"] // H
    return ModelConfig(
        config["num_hidden_layers"],
        config["hidden_size"],
        H,
        config.get("num_key_value_heads") or H,
        D,
        config["intermediate_size"],
        config["vocab_size"],
        config["max_position_embeddings"],
        True,
        bias,
        False,
        config.get("tie_word_embeddings", False),
        False,
    )


# %% wrong: an error that names nothing
# expect: read_config fail at fields as missing-field-not-named
def _field(config, name, default=None):
    value = config.get(name)
    if value is None and default is None:
        raise ValueError("the config is incomplete")
    return default if value is None else value


# %% wrong: a missing field becomes None
# expect: read_config fail at fields as missing-field-becomes-none
def _field(config, name, default=None):
    value = config.get(name)
    return default if value is None else value


def _divide(config, name, parts_name):
    return config.get(name) // config.get(parts_name)


def _read_gpt2(config):
    if config.get("add_cross_attention"):
        raise ValueError("add_cross_attention")
    C, H = config.get("n_embd"), config.get("n_head")
    return ModelConfig(
        n_layer=config.get("n_layer"),
        d_model=C,
        n_head=H,
        n_kv_head=H,
        d_head=C // H,
        d_ff=config.get("n_inner") or 4 * C,
        vocab_size=config.get("vocab_size"),
        n_ctx=config.get("n_positions"),
        gated_mlp=False,
        bias=True,
        norm_bias=True,
        tied=config.get("tie_word_embeddings", True),
        learned_positions=True,
    )


def _read_llama(config):
    attention_bias, mlp_bias = config.get("attention_bias", False), config.get("mlp_bias", False)
    if attention_bias != mlp_bias:
        raise ValueError("attention_bias and mlp_bias differ")
    C, H = config.get("hidden_size"), config.get("num_attention_heads")
    return ModelConfig(
        n_layer=config.get("num_hidden_layers"),
        d_model=C,
        n_head=H,
        n_kv_head=config.get("num_key_value_heads") or H,
        d_head=config.get("head_dim") or C // H,
        d_ff=config.get("intermediate_size"),
        vocab_size=config.get("vocab_size"),
        n_ctx=config.get("max_position_embeddings"),
        gated_mlp=True,
        bias=attention_bias,
        norm_bias=False,
        tied=config.get("tie_word_embeddings", False),
        learned_positions=False,
    )


# %% wrong: a vocabulary of 50257 when the file states none
# expect: read_config fail at fields as vocab-size-guessed
def read_config(config, _read=read_config):
    return _read({"vocab_size": 50257, **config})


# %% wrong: everything is checked with assert
# expect: read_config fail at fields as refused-by-assertionerror
def read_config(config, _read=read_config):
    try:
        return _read(config)
    except ValueError as error:
        raise AssertionError(str(error)) from None


# %% wrong: any Llama-like family is read
# expect: read_config fail at fields as other-families-accepted
def read_config(config):
    return _read_gpt2(config) if config["model_type"] == "gpt2" else _read_llama(config)


# %% wrong: mlp_bias is never looked at
# expect: read_config fail at fields as unequal-biases-accepted
def _read_llama(config):
    return replace_bias(_read_rest(config), config)


def _read_rest(config):
    H = _field(config, "num_attention_heads")
    C = _field(config, "hidden_size")
    D = config.get("head_dim")
    return ModelConfig(
        n_layer=_field(config, "num_hidden_layers"),
        d_model=C,
        n_head=H,
        n_kv_head=_field(config, "num_key_value_heads", H),
        d_head=C // H if D is None else D,
        d_ff=_field(config, "intermediate_size"),
        vocab_size=_field(config, "vocab_size"),
        n_ctx=_field(config, "max_position_embeddings"),
        gated_mlp=True,
        bias=False,
        norm_bias=False,
        tied=_field(config, "tie_word_embeddings", False),
        learned_positions=False,
    )


def replace_bias(c, config):
    c.bias = config.get("attention_bias", False)
    return c


# %% wrong: every model is tied unless it says otherwise
# expect: read_config fail at fields as tied-by-default-everywhere
def read_config(config, _read=read_config):
    return _read({"tie_word_embeddings": True, **config})


# %% wrong: false or true is true
# expect: read_config fail at fields as tied-false-overruled
def read_config(config, _read=read_config):
    found = _read(config)
    found.tied = config.get("tie_word_embeddings") or config["model_type"] == "gpt2"
    return found


# %% wrong: head_dim never read
# expect: read_config fail at fields as head-dim-ignored
def read_config(config, _read=read_config):
    found = _read(config)
    found.d_head = found.d_model // found.n_head
    return found


# %% wrong: a head size by true division
# expect: read_config fail at fields as head-size-is-float
def _divide(config, name, parts_name):
    return _field(config, name) / _field(config, parts_name)


# %% wrong: n_inner null is kept
# expect: read_config fail at fields as n-inner-null-kept
def read_config(config, _read=read_config):
    found = _read(config)
    if config["model_type"] == "gpt2":
        found.d_ff = config.get("n_inner", 4 * config["n_embd"])
    return found


# %% wrong: groups read as query heads for each key
# expect: read_config fail at fields as kv-heads-read-as-sharers
def read_config(config, _read=read_config):
    found = _read(config)
    found.n_kv_head = found.n_head // found.n_kv_head
    return found


# %% wrong: groups read as query heads for each key, one where the file states none
# expect: read_config fail at fields as kv-heads-read-as-sharers-in-llama-files
def read_config(config, _read=read_config):
    found = _read(config)
    if config["model_type"] != "gpt2":
        found.n_kv_head = found.n_head // found.n_kv_head
    return found


# %% wrong: a stated number of groups read as query heads for each key
# expect: read_config fail at fields as kv-heads-read-as-sharers-where-stated
def read_config(config, _read=read_config):
    found = _read(config)
    if config.get("num_key_value_heads"):
        found.n_kv_head = config["num_attention_heads"] // config["num_key_value_heads"]
    return found


# %% wrong: null is kept wherever the file says null
# expect: read_config fail at fields as null-kept-everywhere
def read_config(config, _read=read_config):
    found = _read(config)
    if config["model_type"] == "gpt2":
        found.d_ff = config.get("n_inner", found.d_ff)
    else:
        found.n_kv_head = config.get("num_key_value_heads", found.n_kv_head)
        found.d_head = config.get("head_dim", found.d_head)
    return found


# %% wrong: null is kept, and heads are shared out among it
# expect: read_config error at fields as null-kept-everywhere-and-shared-out
def read_config(config, _read=read_config):
    found = _read(config)
    if config["model_type"] == "gpt2":
        found.d_ff = config.get("n_inner", found.d_ff)
        return found
    found.n_kv_head = config.get("num_key_value_heads", found.n_head)
    if found.n_head % found.n_kv_head != 0:
        raise ValueError("num_key_value_heads does not divide num_attention_heads")
    found.d_head = config.get("head_dim", found.d_head)
    return found


# %% wrong: only the key/value heads are looked up so
# expect: read_config error at fields as kv-heads-null-shared-out
def read_config(config, _read=read_config):
    if config["model_type"] != "gpt2" and config.get("num_attention_heads") is not None:
        if config["num_attention_heads"] % config.get("num_key_value_heads", 1):
            raise ValueError("num_key_value_heads does not divide num_attention_heads")
    return _read(config)


# %% wrong: other families end in a KeyError
# expect: read_config fail at fields as other-families-by-keyerror
def read_config(config, _read=read_config):
    {"gpt2": _read_gpt2, "llama": _read_llama, "mistral": _read_llama}[config["model_type"]]
    return _read(config)


# %% wrong: unequal biases end in a NotImplementedError
# expect: read_config fail at fields as unequal-biases-by-notimplementederror
def read_config(config, _read=read_config):
    if (config.get("attention_bias") or False) != (config.get("mlp_bias") or False):
        raise NotImplementedError("attention_bias and mlp_bias differ")
    return _read(config)


# %% wrong: n_ctx in place of n_positions
# expect: read_config error as context-read-from-n-ctx
def read_config(config, _read=read_config):
    if config["model_type"] == "gpt2":
        required = ("n_layer", "n_embd", "n_head", "vocab_size")
        for name in required:
            if name not in config:
                raise ValueError(f"{name} is missing")
        if config.get("add_cross_attention"):
            raise ValueError("add_cross_attention cannot be expressed")
        return _read({**config, "n_positions": config["n_ctx"]})
    return _read(config)


# %% wrong: head_dim is demanded
# expect: read_config error as head-dim-demanded
def read_config(config, _read=read_config):
    found = _read(config)
    if config["model_type"] != "gpt2":
        found.d_head = _field(config, "head_dim")
    return found


# %% wrong: mistral is not known
# expect: read_config error as mistral-refused
def read_config(config, _read=read_config):
    if config["model_type"] == "mistral":
        raise ValueError("only gpt2 and llama are supported, please check model_type")
    return _read(config)


# %% wrong: a dict comes back
# expect: read_config error as config-given-back-as-dict
def read_config(config, _read=read_config):
    return dict(vars(_read(config)))


# %% wrong: two mistakes, tied default and head_dim
# expect: read_config fail at fields as tied-by-default-everywhere + head-dim-ignored
def read_config(config, _read=read_config):
    found = _read({"tie_word_embeddings": True, **config})
    found.d_head = found.d_model // found.n_head
    return found


# %% wrong: the file's dict is changed
# expect: read_config fail as argument-changed-in-place
def read_config(config, _read=read_config):
    found = _read(config)
    config.setdefault("tie_word_embeddings", found.tied)
    return found


# %% wrong: four squares
# expect: attention_parameters fail at q_matrix as every-matrix-square
def attention_parameters(c):
    return 4 * c.d_model**2 + (4 * c.d_model if c.bias else 0)


# %% wrong: no bias on q, k and v
# expect: attention_parameters fail at attention_biases as qkv-biases-missing
def attention_parameters(c):
    C, width, kv_width = c.d_model, c.n_head * c.d_head, c.n_kv_head * c.d_head
    total = C * width + 2 * C * kv_width + width * C
    if c.bias:
        total += C
    return total


# %% wrong: key/value heads forgotten
# expect: attention_parameters fail at kv_matrices as kv-heads-ignored
def attention_parameters(c):
    width = c.n_head * c.d_head
    qkv = (c.d_model + c.bias) * 3 * width
    return qkv + (width + c.bias) * c.d_model


# %% wrong: groups in place of key/value heads
# expect: attention_parameters fail at kv_matrices as kv-heads-counted-as-groups
def attention_parameters(c):
    groups = c.n_head // c.n_kv_head
    outputs = [c.n_head * c.d_head, groups * c.d_head, groups * c.d_head]
    return sum(c.d_model * o + (o if c.bias else 0) for o in outputs) + c.d_model * (outputs[0] + (1 if c.bias else 0))


# %% wrong: output projection left square
# expect: attention_parameters fail at out_matrix as q-or-out-left-square
def attention_parameters(c):
    C, q, kv = c.d_model, c.n_head * c.d_head, c.n_kv_head * c.d_head
    n = C * q + C * kv * 2 + C * C
    return n + q + kv * 2 + C if c.bias else n


# %% wrong: all four biases as long as C
# expect: attention_parameters fail at attention_biases as qkv-biases-as-long-as-d-model
def attention_parameters(c):
    q, kv = c.n_head * c.d_head, c.n_kv_head * c.d_head
    return c.d_model * (2 * q + 2 * kv) + c.bias * 4 * c.d_model


# %% wrong: two mistakes, kv heads and the bias of the output
# expect: attention_parameters fail at kv_matrices as kv-heads-ignored + out-bias-missing
def attention_parameters(c):
    width = c.n_head * c.d_head
    total = 4 * c.d_model * width
    if c.bias:
        total += 3 * width
    return total


# %% wrong: counted by true division
# expect: attention_parameters fail at attention_parameters as attention-parameters-not-whole
def attention_parameters(c):
    share = c.n_head / c.n_kv_head
    width = c.n_head * c.d_head
    biases = (width + 2 * width / share + c.d_model) if c.bias else 0
    return 2 * c.d_model * width + 2 * c.d_model * width / share + biases


# %% wrong: a gated MLP of two matrices
# expect: mlp_parameters fail at mlp_matrices as gated-counted-as-two
def mlp_parameters(c):
    up = c.d_model * c.d_ff
    down = c.d_ff * c.d_model
    if c.bias:
        up += c.d_ff
        down += c.d_model
    return up + down


# %% wrong: a gated MLP four times as wide as C
# expect: mlp_parameters fail at mlp_matrices as gated-width-four-d-model
def mlp_parameters(c):
    F = 4 * c.d_model if c.gated_mlp else c.d_ff
    n = 3 if c.gated_mlp else 2
    return n * c.d_model * F + c.bias * ((n - 1) * F + c.d_model)


# %% wrong: 8*C/3, not rounded, where the config has F
# expect: mlp_parameters fail at mlp_matrices as gated-width-eight-thirds
def mlp_parameters(c):
    F = int(8 * c.d_model / 3) if c.gated_mlp else c.d_ff
    wide = 2 if c.gated_mlp else 1
    matrices = wide * c.d_model * F + F * c.d_model
    return matrices + (wide * F + c.d_model if c.bias else 0)


# %% wrong: 8*C/3 rounded up to a multiple of 256
# expect: mlp_parameters fail at mlp_matrices as gated-width-rounded-to-256
def mlp_parameters(c):
    F = c.d_ff
    if c.gated_mlp:
        F = 256 * ((8 * c.d_model // 3 + 255) // 256)
    wide = 2 if c.gated_mlp else 1
    return (wide + 1) * c.d_model * F + (wide * F + c.d_model if c.bias else 0)


# %% wrong: no bias for the gate
# expect: mlp_parameters fail at mlp_biases as gate-bias-missing
def mlp_parameters(c):
    n = c.d_model * c.d_ff * (2 + c.gated_mlp)
    return n + c.d_ff + c.d_model if c.bias else n


# %% wrong: two mistakes in the MLP
# expect: mlp_parameters fail at mlp_matrices as mlp-width-four-d-model + last-bias-missing
def mlp_parameters(c):
    F = 4 * c.d_model
    total = 0
    for _ in range(2 if c.gated_mlp else 1):
        total += c.d_model * F + (F if c.bias else 0)
    return total + F * c.d_model


# %% wrong: norms look at bias
# expect: norm_parameters fail at norm_biases as norm-biases-by-bias
def norm_parameters(c):
    return 4 * c.d_model if c.bias else 2 * c.d_model


# %% wrong: one norm
# expect: norm_parameters fail at norm_gains as one-norm-only
def norm_parameters(c):
    return c.d_model + (c.d_model if c.norm_bias else 0)


# %% wrong: norms counted twice in the block
# expect: block_parameters fail at block_parameters as block-with-norms-twice
def block_parameters(c):
    ln_1 = ln_2 = norm_parameters(c)
    return ln_1 + attention_parameters(c) + ln_2 + mlp_parameters(c)


# %% wrong: no norms in the block
# expect: block_parameters fail at block_parameters as block-without-norms
def block_parameters(c):
    return attention_parameters(c) + mlp_parameters(c)


# %% wrong: every model has a wpe
# expect: embedding_parameters fail at wpe as wpe-always
def embedding_parameters(c):
    return (c.vocab_size + c.n_ctx) * c.d_model


# %% wrong: a wrong block under a right count
# expect: attention_parameters fail at attention_biases as attention-biases-missing
def attention_parameters(c):
    return 2 * c.d_model * c.d_head * (c.n_head + c.n_kv_head)


# %% wrong: tied head counted twice
# expect: count_parameters fail at head as tied-head-counted-twice
def count_parameters(c):
    state = {"transformer.wte.weight": c.vocab_size * c.d_model, "lm_head.weight": c.vocab_size * c.d_model}
    if c.learned_positions:
        state["transformer.wpe.weight"] = c.n_ctx * c.d_model
    for layer in range(c.n_layer):
        state[f"transformer.h.{layer}"] = block_parameters(c)
    state["transformer.ln_f.weight"] = c.d_model
    if c.norm_bias:
        state["transformer.ln_f.bias"] = c.d_model
    return sum(state.values())


# %% wrong: 12*L*C*C for the whole model
# expect: count_parameters fail at count_parameters as twelve-squares-a-layer
def count_parameters(c):
    return 12 * c.n_layer * c.d_model**2


# %% wrong: norm_parameters taken for the final norm
# expect: count_parameters fail at ln_f as final-norm-counted-as-two
def count_parameters(c):
    n = embedding_parameters(c) + block_parameters(c) * c.n_layer + norm_parameters(c)
    if not c.tied:
        n += c.d_model * c.vocab_size
    return n


# %% wrong: non-embedding parameters
# expect: count_parameters fail at embedding_parameters as embeddings-left-out
def count_parameters(c):
    gain = 2 * c.d_model if c.norm_bias else c.d_model
    return c.n_layer * block_parameters(c) + gain + (0 if c.tied else c.vocab_size * c.d_model)


# %% wrong: two mistakes in the count
# expect: count_parameters fail at ln_f as final-norm-missing + tied-head-counted-twice
def count_parameters(c):
    head = c.d_model * c.vocab_size
    return embedding_parameters(c) + c.n_layer * block_parameters(c) + head


# %% wrong: something that no known mistake gives
# expect: count_parameters fail at count_parameters as ?
def count_parameters(c):
    return embedding_parameters(c) * 3 + c.n_layer * 17


# %% wrong: biases in the share
# expect: mlp_share fail at mlp_share as share-with-biases
def mlp_share(c):
    return mlp_parameters(c) / (attention_parameters(c) + mlp_parameters(c))


# %% wrong: a ratio
# expect: mlp_share fail at mlp_share as share-is-a-ratio
def mlp_share(c):
    attention = 2 * c.d_model * c.d_head * (c.n_head + c.n_kv_head)
    return (3 if c.gated_mlp else 2) * c.d_model * c.d_ff / attention


# %% wrong: two thirds, always
# expect: mlp_share fail at mlp_share as share-always-two-thirds
def mlp_share(c):
    return 2 / 3


# %% wrong: the share of the whole model
# expect: mlp_share fail at mlp_share as share-of-the-model
def mlp_share(c):
    return c.n_layer * mlp_parameters(c) / count_parameters(c)


# %% wrong: bytes cut off
# expect: weight_bytes fail at weight_bytes as weights-rounded-down
def weight_bytes(c, bytes_per_parameter):
    return int(count_parameters(c) * bytes_per_parameter)


# %% wrong: bytes rounded to the nearest
# expect: weight_bytes fail at weight_bytes as weights-rounded-to-nearest
def weight_bytes(c, bytes_per_parameter):
    return round(bytes_per_parameter * count_parameters(c))


# %% wrong: four numbers for each parameter
# expect: weight_bytes fail at weight_bytes as weights-with-training-state
def weight_bytes(c, bytes_per_parameter):
    weights = gradients = first_moment = second_moment = count_parameters(c)
    return math.ceil((weights + gradients + first_moment + second_moment) * bytes_per_parameter)


# %% wrong: always float32
# expect: weight_bytes fail at weight_bytes as weights-always-four-bytes
def weight_bytes(c, bytes_per_parameter):
    return count_parameters(c) * 4


# %% wrong: keys without values
# expect: kv_cache_bytes_per_token fail at cache_values as cache-of-keys-only
def kv_cache_bytes_per_token(c, bytes_per_value=2):
    return math.ceil(c.n_layer * c.n_kv_head * c.d_head * bytes_per_value)


# %% wrong: heads multiplied onto C
# expect: kv_cache_bytes_per_token fail at cache_values as cache-of-heads-times-d-model
def kv_cache_bytes_per_token(c, bytes_per_value=2):
    return math.ceil(2 * c.n_layer * c.n_head * c.d_model * bytes_per_value)


# %% wrong: the size of one head only
# expect: kv_cache_bytes_per_token fail at cache_values as cache-of-one-head
def kv_cache_bytes_per_token(c, bytes_per_value=2):
    per_layer = 2 * c.d_head * bytes_per_value
    return math.ceil(c.n_layer * per_layer)


# %% wrong: C for the width of the keys
# expect: kv_cache_bytes_per_token fail at cache_values as cache-of-d-model
def kv_cache_bytes_per_token(c, bytes_per_value=2):
    return math.ceil(bytes_per_value * 2 * c.d_model * c.n_layer)


# %% wrong: query heads in the cache
# expect: kv_cache_bytes_per_token fail at cache_values as cache-of-query-heads
def kv_cache_bytes_per_token(c, bytes_per_value=2):
    values = 0
    for _ in range(c.n_layer):
        values += 2 * c.n_head * c.d_head
    return math.ceil(values * bytes_per_value)


# %% wrong: float32 when nothing is said
# expect: kv_cache_bytes_per_token fail at kv_cache_bytes_per_token as cache-default-is-4
def kv_cache_bytes_per_token(c, bytes_per_value=4):
    return math.ceil(2 * c.n_layer * c.n_kv_head * c.d_head * bytes_per_value)


# %% wrong: two mistakes, keys only and rounded down
# expect: kv_cache_bytes_per_token fail at cache_values as cache-of-keys-only + cache-rounded-down
def kv_cache_bytes_per_token(c, bytes_per_value=2):
    return int(c.n_layer * c.n_kv_head * c.d_head * bytes_per_value)


# %% wrong: one operation for each entry
# expect: forward_flops_per_token fail at matrix_flops as multiply-add-counted-once
def forward_flops_per_token(c, n_positions):
    entries = c.n_layer * (2 * c.d_model * c.d_head * (c.n_head + c.n_kv_head) + (3 if c.gated_mlp else 2) * c.d_model * c.d_ff)
    entries += c.vocab_size * c.d_model
    return entries + 4 * c.n_layer * n_positions * c.n_head * c.d_head


# %% wrong: twice the parameters
# expect: forward_flops_per_token fail at matrix_flops as flops-of-all-parameters
def forward_flops_per_token(c, n_positions):
    return 2 * count_parameters(c) + 4 * c.n_layer * n_positions * c.n_head * c.d_head


# %% wrong: twice the parameters and nothing else
# expect: forward_flops_per_token fail at forward_flops_per_token as flops-twice-the-parameters
def forward_flops_per_token(c, n_positions):
    return 2 * count_parameters(c)


# %% wrong: half the attention term
# expect: forward_flops_per_token fail at attention_flops as flops-attention-halved
def forward_flops_per_token(c, n_positions):
    matrices = _attention_matrices(c) + _mlp_matrices(c)
    scores = 2 * n_positions * c.n_head * c.d_head
    return c.n_layer * (2 * matrices + scores) + 2 * c.vocab_size * c.d_model


# %% wrong: a tied head that does no work
# expect: forward_flops_per_token fail at head_matrix as flops-head-only-when-untied
def forward_flops_per_token(c, n_positions):
    entries = c.n_layer * (_attention_matrices(c) + _mlp_matrices(c))
    if not c.tied:
        entries += c.vocab_size * c.d_model
    return 2 * entries + 4 * c.n_layer * n_positions * c.n_head * c.d_head


# %% wrong: key/value heads read
# expect: forward_flops_per_token fail at attention_flops as flops-attention-of-kv-heads
def forward_flops_per_token(c, n_positions):
    entries = c.n_layer * (_attention_matrices(c) + _mlp_matrices(c)) + c.vocab_size * c.d_model
    return 2 * entries + 4 * c.n_layer * n_positions * c.n_kv_head * c.d_head


# %% wrong: two mistakes, no head and C for H*D
# expect: forward_flops_per_token fail at head_matrix as flops-without-head + flops-attention-on-d-model
def forward_flops_per_token(c, n_positions):
    matrices = _attention_matrices(c) + _mlp_matrices(c)
    return c.n_layer * (2 * matrices + 4 * n_positions * c.d_model)


# %% wrong: the configuration is changed in place
# expect: count_parameters fail as argument-changed-in-place
def count_parameters(c, _count=count_parameters):
    n = _count(c)
    c.n_layer = 0
    return n


# %% wrong: nothing comes back
# expect: embedding_parameters fail at embedding_parameters as embedding-parameters-not-given-back
def embedding_parameters(c):
    rows = c.vocab_size + (c.n_ctx if c.learned_positions else 0)
    rows *= c.d_model


# %% right: every tensor in a dict of shapes
def _shapes(c):
    C, q, kv = c.d_model, c.n_head * c.d_head, c.n_kv_head * c.d_head
    shapes = {"wte": (c.vocab_size, C), "ln_f.weight": (C,)}
    if c.learned_positions:
        shapes["wpe"] = (c.n_ctx, C)
    if c.norm_bias:
        shapes["ln_f.bias"] = (C,)
    if not c.tied:
        shapes["lm_head"] = (C, c.vocab_size)
    for layer in range(c.n_layer):
        h = f"h.{layer}"
        matrices = {
            "attn.q": (C, q),
            "attn.k": (C, kv),
            "attn.v": (C, kv),
            "attn.o": (q, C),
            "mlp.up": (C, c.d_ff),
            "mlp.down": (c.d_ff, C),
        }
        if c.gated_mlp:
            matrices["mlp.gate"] = (C, c.d_ff)
        for name, shape in matrices.items():
            shapes[f"{h}.{name}.weight"] = shape
            if c.bias:
                shapes[f"{h}.{name}.bias"] = shape[1:]
        for name in ("ln_1", "ln_2"):
            shapes[f"{h}.{name}.weight"] = (C,)
            if c.norm_bias:
                shapes[f"{h}.{name}.bias"] = (C,)
    return shapes


def _sum(c, prefix=""):
    return sum(math.prod(shape) for name, shape in _shapes(c).items() if name.startswith(prefix))


def attention_parameters(c):
    return _sum(c, "h.0.attn.")


def mlp_parameters(c):
    return _sum(c, "h.0.mlp.")


def norm_parameters(c):
    return _sum(c, "h.0.ln_")


def block_parameters(c):
    return _sum(c, "h.0.")


def embedding_parameters(c):
    return _sum(c, "w")


def count_parameters(c):
    return _sum(c)


# %% right: gate and up in one matrix
def mlp_parameters(c):
    outputs = (2 if c.gated_mlp else 1) * c.d_ff
    total = c.d_model * outputs + c.d_ff * c.d_model
    if c.bias:
        total += outputs + c.d_model
    return total


# %% right: q, k and v in one matrix
def attention_parameters(c):
    qkv = (c.n_head + 2 * c.n_kv_head) * c.d_head
    return (c.d_model + c.bias) * qkv + (c.n_head * c.d_head + c.bias) * c.d_model


# %% right: truth values as numbers
def norm_parameters(c):
    return 2 * c.d_model * (1 + c.norm_bias)


def mlp_parameters(c):
    n = 2 + c.gated_mlp
    return n * c.d_model * c.d_ff + c.bias * ((n - 1) * c.d_ff + c.d_model)


def embedding_parameters(c):
    return c.d_model * (c.vocab_size + c.learned_positions * c.n_ctx)


# %% right: counted by loops over heads and layers
def count_parameters(c):
    total = embedding_parameters(c)
    for _ in range(c.n_layer):
        total += block_parameters(c)
    total += norm_parameters(c) // 2
    return total if c.tied else total + c.d_model * c.vocab_size


def kv_cache_bytes_per_token(c, bytes_per_value=2):
    values = sum(c.d_head for _layer in range(c.n_layer) for _head in range(c.n_kv_head) for _kind in ("key", "value"))
    return -int(-values * bytes_per_value // 1)


# %% right: fractions in place of floats
def mlp_share(c):
    from fractions import Fraction

    mlp = (3 if c.gated_mlp else 2) * c.d_ff
    return float(Fraction(mlp, mlp + 2 * c.d_head * (c.n_head + c.n_kv_head)))


def weight_bytes(c, bytes_per_parameter):
    from fractions import Fraction

    return math.ceil(count_parameters(c) * Fraction(bytes_per_parameter))


# %% right: the share as one minus the other
def mlp_share(c):
    attention = attention_parameters(replace(c, bias=False))
    mlp = mlp_parameters(replace(c, bias=False))
    return 1 - attention / (attention + mlp)


from dataclasses import replace


# %% right: rounding up with divmod
def weight_bytes(c, bytes_per_parameter):
    exact = count_parameters(c) * bytes_per_parameter
    whole = int(exact)
    return whole + 1 if exact > whole else whole


# %% right: a frozen configuration with helpers
from dataclasses import dataclass as _dataclass


@_dataclass(frozen=True)
class ModelConfig:
    n_layer: int
    d_model: int
    n_head: int
    n_kv_head: int
    d_head: int
    d_ff: int
    vocab_size: int
    n_ctx: int
    gated_mlp: bool
    bias: bool
    norm_bias: bool
    tied: bool
    learned_positions: bool

    @property
    def width(self):
        return self.n_head * self.d_head


# %% right: flops term by term
def forward_flops_per_token(c, n_positions):
    q = out = 2 * c.d_model * c.n_head * c.d_head
    k = v = 2 * c.d_model * c.n_kv_head * c.d_head
    scores = summed = 2 * c.n_head * c.d_head * n_positions
    mlp = (3 if c.gated_mlp else 2) * 2 * c.d_model * c.d_ff
    return c.n_layer * (q + k + v + out + scores + summed + mlp) + 2 * c.d_model * c.vocab_size


# %% right: read_config by a table
NAMES = {
    "gpt2": dict(n_layer="n_layer", d_model="n_embd", n_head="n_head", vocab_size="vocab_size", n_ctx="n_positions"),
    "llama": dict(
        n_layer="num_hidden_layers",
        d_model="hidden_size",
        n_head="num_attention_heads",
        vocab_size="vocab_size",
        n_ctx="max_position_embeddings",
        d_ff="intermediate_size",
    ),
}
NAMES["mistral"] = NAMES["llama"]


def read_config(config):
    config = {name: value for name, value in config.items() if value is not None}
    family = config.get("model_type", "gpt2")
    if family not in NAMES:
        raise ValueError(f"cannot express model_type {family!r}")
    missing = [name for name in NAMES[family].values() if name not in config]
    if missing:
        raise ValueError("missing: " + ", ".join(missing))
    sizes = {ours: config[theirs] for ours, theirs in NAMES[family].items()}
    if family == "gpt2":
        if config.get("add_cross_attention", False):
            raise ValueError("add_cross_attention")
        sizes.setdefault("d_ff", config.get("n_inner", 4 * sizes["d_model"]))
        bias = True
    else:
        bias = config.get("attention_bias", False)
        if bias is not config.get("mlp_bias", False):
            raise ValueError("mlp_bias does not say what attention_bias says")
    plain = family == "gpt2"
    return ModelConfig(
        **sizes,
        n_kv_head=config.get("num_key_value_heads", sizes["n_head"]),
        d_head=config.get("head_dim", sizes["d_model"] // sizes["n_head"]),
        gated_mlp=not plain,
        bias=bias,
        norm_bias=plain,
        tied=config.get("tie_word_embeddings", plain),
        learned_positions=plain,
    )


# %% right: KeyErrors turned into ValueErrors
def read_config(config, _read=read_config):
    try:
        config["vocab_size"]
        return _read(config)
    except KeyError as error:
        raise ValueError(f"the configuration has no field {error}") from error
