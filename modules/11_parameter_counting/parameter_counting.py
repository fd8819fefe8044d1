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
    raise NotImplementedError


def attention_parameters(c: ModelConfig) -> int:
    """Count one block's attention: the matrices q, k, v and the output projection, and their biases if there are any.

        q (C, H*D)    k (C, Hkv*D)    v (C, Hkv*D)    out (H*D, C)        a bias is as long as its matrix is wide

    By hand, the toy: four matrices of 4 x 4 and four biases of 4: 64 + 16 = 80.

    Source: Vaswani et al. 2017, "Attention Is All You Need", section 3.2.2; Ainslie et al. 2023, "GQA", section 2.2 (Hkv).
    """
    raise NotImplementedError


def mlp_parameters(c: ModelConfig) -> int:
    """Count one block's MLP: two matrices, or three where it is gated, and their biases if there are any.

        plain:  fc (C, F)    proj (F, C)              gated:  gate (C, F)    up (C, F)    down (F, C)

    By hand, the toy: 4 x 16 + 16 going up, 16 x 4 + 4 coming down: 80 + 68 = 148.

    Source: Vaswani et al. 2017, section 3.3; Shazeer 2020, "GLU Variants Improve Transformer", equation 6.
    """
    raise NotImplementedError


def norm_parameters(c: ModelConfig) -> int:
    """Count the two norms of one block: a gain of C each, and a bias of C each where norms have one.

    By hand, the toy: two gains and two biases of 4: 16.

    Source: Ba et al. 2016, "Layer Normalization", equation 4; Zhang and Sennrich 2019, "Root Mean Square Layer
    Normalization", equation 4 (no bias).
    """
    raise NotImplementedError


def block_parameters(c: ModelConfig) -> int:
    """Count one whole block: attention, MLP and the two norms.

    By hand, the toy: 80 + 148 + 16 = 244.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.3.
    """
    raise NotImplementedError


def embedding_parameters(c: ModelConfig) -> int:
    """Count the tables at the entrance: wte (V, C), and wpe (n_ctx, C) where positions are learned.

    By hand, the toy: 10 x 4 + 8 x 4 = 72.

    Source: Radford et al. 2018, "Improving Language Understanding by Generative Pre-Training", equation 2.
    """
    raise NotImplementedError


def count_parameters(c: ModelConfig) -> int:
    """Count the whole model: embeddings, L blocks, the final norm, and the head where it is a matrix of its own.

        head (C, V), no bias: counted when untied, not counted again when it is wte

    By hand, the toy: 72 + 2 x 244 + 8 = 568; untied 568 + 40 = 608.

    Source: Press and Wolf 2017, "Using the Output Embedding to Improve Language Models" (tying).
    """
    raise NotImplementedError


def mlp_share(c: ModelConfig) -> float:
    """Say which share of the blocks' matrices belongs to the MLP; biases and norms do not count.

        share = MLP matrices / (MLP matrices + attention matrices)

    By hand, the toy with a gated MLP: 3 x 4 x 16 = 192 entries against 4 x 4 x 4 = 64, so 192 / 256 = 3/4.

    Source: Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories", section 1.
    """
    raise NotImplementedError


def weight_bytes(c: ModelConfig, bytes_per_parameter: float) -> int:
    """Say how many bytes the weights fill, at so many bytes a parameter; a fraction of a byte rounds up.

    By hand, the toy: 568 x 4 = 2272 in float32, 568 x 0.5 = 284 in 4 bits.
    """
    raise NotImplementedError


def kv_cache_bytes_per_token(c: ModelConfig, bytes_per_value: float = 2) -> int:
    """Say how many bytes the cache grows by for each token; a fraction of a byte rounds up.

    Every layer keeps one key and one value of D entries for each key/value head.

    By hand, the toy: 2 layers x 2 (key and value) x 2 heads x 2 entries = 16 values, 32 bytes.

    Source: Pope et al. 2022, "Efficiently Scaling Transformer Inference", section 3.3; Ainslie et al. 2023, section 2.2.
    """
    raise NotImplementedError


def forward_flops_per_token(c: ModelConfig, n_positions: int) -> int:
    """Count the additions and multiplications that one token costs when it reads n_positions positions.

        matrices    2 for each entry of the blocks' matrices and of the head (V, C), tied or not
        attention   4*L*n_positions*H*D

    Norms, biases, softmax, activation and the look-up in wte are left out.

    By hand, the toy with 8 positions: 2 x (2 x (64 + 128) + 40) + 4 x 2 x 8 x 2 x 2 = 848 + 256 = 1104.

    Source: Kaplan et al. 2020, "Scaling Laws for Neural Language Models", section 2.1; Chowdhery et al. 2022, "PaLM",
    appendix B (three times this: forward and backward).
    """
    raise NotImplementedError
