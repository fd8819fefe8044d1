"""Parameter counting: every number of a model, told from the thirteen lines of its configuration.

Write the functions in the order they stand here: each one uses those above it. Nothing needs torch.

Sizes    L layers · C channels · H heads · Hkv key/value heads · D head size · F MLP width · V vocabulary
         C is not always H*D: some models state a head size of their own.

The toy of every example below, a GPT-2 small enough for a pencil: L = 2, C = 4, H = Hkv = 2, D = 2, F = 16, V = 10,
n_ctx = 8, MLP not gated, biases everywhere, head tied, learned positions.
"""

import math
from dataclasses import dataclass


@dataclass
class ModelConfig:
    """Say what a model is made of: enough to count it, nothing more."""

    n_layer: int  # L
    d_model: int  # C
    n_head: int  # H
    n_kv_head: int  # Hkv: how many key/value heads there are (not how many query heads share one)
    d_head: int  # D
    d_ff: int  # F
    vocab_size: int  # V
    n_ctx: int  # the longest sequence; rows of wpe where positions are learned
    gated_mlp: bool  # three matrices (gate, up, down) in place of two
    bias: bool  # on every matrix of attention and MLP
    norm_bias: bool  # the norms add a bias to their gain
    tied: bool  # the head is wte itself
    learned_positions: bool  # there is a wpe


# BEGIN SOLUTION
def _field(config: dict, name: str, default=None):
    """Read a field; null counts as missing, and what is missing has to have a default."""
    value = config.get(name)
    if value is None:
        value = default
    if value is None:
        raise ValueError(f"{name} is missing: expected a config.json that states it")
    return value


def _divide(config: dict, name: str, parts_name: str) -> int:
    """Share one field equally among another."""
    total, parts = _field(config, name), _field(config, parts_name)
    if total % parts:
        raise ValueError(f"{name} = {total} cannot be shared equally among {parts_name} = {parts}")
    return total // parts


def _read_gpt2(config: dict) -> ModelConfig:
    if config.get("add_cross_attention"):
        raise ValueError("add_cross_attention = True: expected false, a second attention in each block cannot be expressed")
    d_model, n_head = _field(config, "n_embd"), _field(config, "n_head")
    return ModelConfig(
        n_layer=_field(config, "n_layer"),
        d_model=d_model,
        n_head=n_head,
        n_kv_head=n_head,
        d_head=_divide(config, "n_embd", "n_head"),
        d_ff=_field(config, "n_inner", 4 * d_model),
        vocab_size=_field(config, "vocab_size"),
        n_ctx=_field(config, "n_positions"),
        gated_mlp=False,
        bias=True,
        norm_bias=True,
        tied=_field(config, "tie_word_embeddings", True),
        learned_positions=True,
    )


def _read_llama(config: dict) -> ModelConfig:
    attention_bias, mlp_bias = _field(config, "attention_bias", False), _field(config, "mlp_bias", False)
    if attention_bias != mlp_bias:
        raise ValueError(
            f"attention_bias = {attention_bias} and mlp_bias = {mlp_bias}: expected equal values, "
            "ModelConfig has one bias for both"
        )
    n_head = _field(config, "num_attention_heads")
    config = {**config, "num_key_value_heads": _field(config, "num_key_value_heads", n_head)}
    _divide(config, "num_attention_heads", "num_key_value_heads")
    return ModelConfig(
        n_layer=_field(config, "num_hidden_layers"),
        d_model=_field(config, "hidden_size"),
        n_head=n_head,
        n_kv_head=config["num_key_value_heads"],
        d_head=config.get("head_dim") or _divide(config, "hidden_size", "num_attention_heads"),
        d_ff=_field(config, "intermediate_size"),
        vocab_size=_field(config, "vocab_size"),
        n_ctx=_field(config, "max_position_embeddings"),
        gated_mlp=True,
        bias=attention_bias,
        norm_bias=False,
        tied=_field(config, "tie_word_embeddings", False),
        learned_positions=False,
    )


# END SOLUTION


def read_config(config: dict) -> ModelConfig:
    """Translate the contents of a Hugging Face config.json into a ModelConfig.

        model_type "gpt2"                the lesson's table: n_layer, n_embd, n_head, n_inner, n_positions, vocab_size
        model_type "llama", "mistral"    the lesson's table: num_hidden_layers, hidden_size, num_attention_heads, ...

    A missing `tie_word_embeddings` is true for GPT-2 and false for the others.

    By hand: {"model_type": "gpt2", "n_layer": 2, "n_embd": 4, "n_head": 2, "n_positions": 8, "vocab_size": 10} is the toy.

    Raises ValueError, with the field's name in the message, when a field without a default is missing, when
    model_type is another, when heads cannot be shared out equally, and when a field says something that
    ModelConfig cannot express (the lesson lists them).

    Source: the class documentation of GPT2Config and LlamaConfig in the `transformers` library.
    """
    # BEGIN SOLUTION
    model_type = _field(config, "model_type")
    if model_type == "gpt2":
        return _read_gpt2(config)
    if model_type in ("llama", "mistral"):
        return _read_llama(config)
    raise ValueError(
        f"model_type = {model_type!r}: expected gpt2, llama or mistral. Other families have parts that ModelConfig "
        "cannot express, such as biases on q, k, v only, norms on q and k, or experts"
    )
    # END SOLUTION


# BEGIN SOLUTION
def _attention_matrices(c: ModelConfig) -> int:
    q = c.d_model * c.n_head * c.d_head
    k = v = c.d_model * c.n_kv_head * c.d_head
    out = c.n_head * c.d_head * c.d_model
    return q + k + v + out


def _mlp_matrices(c: ModelConfig) -> int:
    return (3 if c.gated_mlp else 2) * c.d_model * c.d_ff


# END SOLUTION


def attention_parameters(c: ModelConfig) -> int:
    """Count one block's attention: the matrices q, k, v and the output projection, and their biases if there are any.

        q (C, H*D)    k (C, Hkv*D)    v (C, Hkv*D)    out (H*D, C)        a bias is as long as its matrix is wide

    By hand, the toy: four matrices of 4 x 4 and four biases of 4: 64 + 16 = 80.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2; Ainslie et al. 2023, "GQA", section 2.2 (Hkv).
    """
    # BEGIN SOLUTION
    biases = (c.n_head + 2 * c.n_kv_head) * c.d_head + c.d_model if c.bias else 0
    return _attention_matrices(c) + biases
    # END SOLUTION


def mlp_parameters(c: ModelConfig) -> int:
    """Count one block's MLP: two matrices, or three where it is gated, and their biases if there are any.

        plain:  fc (C, F)    proj (F, C)              gated:  gate (C, F)    up (C, F)    down (F, C)

    By hand, the toy: 4 x 16 + 16 going up, 16 x 4 + 4 coming down: 80 + 68 = 148.

    Source: Vaswani et al. 2017, section 3.3; Shazeer 2020, "GLU Variants Improve Transformer", equation 6.
    """
    # BEGIN SOLUTION
    biases = ((2 if c.gated_mlp else 1) * c.d_ff + c.d_model) if c.bias else 0
    return _mlp_matrices(c) + biases
    # END SOLUTION


def norm_parameters(c: ModelConfig) -> int:
    """Count the two norms of one block: a gain of C each, and a bias of C each where norms have one.

    By hand, the toy: two gains and two biases of 4: 16.

    Source: Ba et al. 2016, "Layer Normalization", equation 4; Zhang and Sennrich 2019, "Root Mean Square Layer
    Normalization", equation 4 (no bias).
    """
    # BEGIN SOLUTION
    return 2 * c.d_model * (2 if c.norm_bias else 1)
    # END SOLUTION


def block_parameters(c: ModelConfig) -> int:
    """Count one whole block: attention, MLP and the two norms.

    By hand, the toy: 80 + 148 + 16 = 244.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
    """
    # BEGIN SOLUTION
    return attention_parameters(c) + mlp_parameters(c) + norm_parameters(c)
    # END SOLUTION


def embedding_parameters(c: ModelConfig) -> int:
    """Count the tables at the entrance: wte (V, C), and wpe (n_ctx, C) where positions are learned.

    By hand, the toy: 10 x 4 + 8 x 4 = 72.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", equation 2.
    """
    # BEGIN SOLUTION
    rows = c.vocab_size + (c.n_ctx if c.learned_positions else 0)
    return rows * c.d_model
    # END SOLUTION


def count_parameters(c: ModelConfig) -> int:
    """Count the whole model: embeddings, L blocks, the final norm, and the head where it is a matrix of its own.

        head (C, V), no bias: counted when untied, not counted again when it is wte

    By hand, the toy: 72 + 2 x 244 + 8 = 568; untied 568 + 40 = 608.

    Source: Press and Wolf 2017, "Using the Output Embedding to Improve Language Models" (tying).
    """
    # BEGIN SOLUTION
    final_norm = norm_parameters(c) // 2  # a block has two norms
    head = 0 if c.tied else c.vocab_size * c.d_model
    return embedding_parameters(c) + c.n_layer * block_parameters(c) + final_norm + head
    # END SOLUTION


def mlp_share(c: ModelConfig) -> float:
    """Say which share of the blocks' matrices belongs to the MLP; biases and norms do not count.

        share = MLP matrices / (MLP matrices + attention matrices)

    By hand, the toy with a gated MLP: 3 x 4 x 16 = 192 entries against 4 x 4 x 4 = 64, so 192 / 256 = 3/4.

    Source: Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories", section 1.
    """
    # BEGIN SOLUTION
    return _mlp_matrices(c) / (_mlp_matrices(c) + _attention_matrices(c))
    # END SOLUTION


def weight_bytes(c: ModelConfig, bytes_per_parameter: float) -> int:
    """Say how many bytes the weights fill, at so many bytes a parameter; a fraction of a byte rounds up.

    By hand, the toy: 568 x 4 = 2272 in float32, 568 x 0.5 = 284 in 4 bits.
    """
    # BEGIN SOLUTION
    return math.ceil(count_parameters(c) * bytes_per_parameter)
    # END SOLUTION


def kv_cache_bytes_per_token(c: ModelConfig, bytes_per_value: float = 2) -> int:
    """Say how many bytes the cache grows by for each token; a fraction of a byte rounds up.

    Every layer keeps one key and one value of D entries for each key/value head.

    By hand, the toy: 2 layers x 2 (key and value) x 2 heads x 2 entries = 16 values, 32 bytes.

    Source: Pope et al. 2022, "Efficiently Scaling Transformer Inference", section 3.3; Ainslie et al. 2023, section 2.2.
    """
    # BEGIN SOLUTION
    values = 2 * c.n_layer * c.n_kv_head * c.d_head  # 2: a key and a value
    return math.ceil(values * bytes_per_value)
    # END SOLUTION


def forward_flops_per_token(c: ModelConfig, n_positions: int) -> int:
    """Count the additions and multiplications that one token costs when it reads n_positions positions.

        matrices    2 for each entry of the blocks' matrices and of the head (V, C), tied or not
        attention   4*L*n_positions*H*D

    Norms, biases, softmax, activation and the look-up in wte are left out.

    By hand, the toy with 8 positions: 2 x (2 x (64 + 128) + 40) + 4 x 2 x 8 x 2 x 2 = 848 + 256 = 1104.

    Source: Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1; Chowdhery et al. 2022, "PaLM",
    appendix B (three times this: forward and backward).
    """
    # BEGIN SOLUTION
    head = c.vocab_size * c.d_model
    matrices = c.n_layer * (_attention_matrices(c) + _mlp_matrices(c)) + head
    return 2 * matrices + 4 * c.n_layer * n_positions * c.n_head * c.d_head
    # END SOLUTION
