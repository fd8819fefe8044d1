"""Modules 06 to 09 together: a Llama made of the solutions' parts is the one of transformers, with and without a cache."""

import pytest
import torch

from autograder.course import ROOT, Module
from autograder.loader import Learner

LAYERS, WIDTH, HEADS, D, VOCABULARY = 2, 48, 6, 10, 97  # H*D = 60 is not the width, as in models that state D by themselves
CHUNKS = (4, 1, 1, 3)


@pytest.fixture(scope="module")
def parts():
    """The solutions' modules, by their plain names."""
    learner = Learner(ROOT / "solutions", parts="solutions")
    names = ("03_attention", "04_masking", "06_mlp", "07_norms", "08_rope", "09_gqa")
    return {Module(name).plain: learner.load(Module(name)) for name in names}


@pytest.fixture(scope="module", params=[1, 2, 6], ids="Hkv={}".format)
def witness(request):
    """A tiny LlamaForCausalLM with random weights, large enough for attention to matter, and gains that are not 1."""
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=52,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=request.param,
        head_dim=D,
        rms_norm_eps=1e-3,
        max_position_embeddings=32,
        attn_implementation="eager",
    )
    model = transformers.LlamaForCausalLM(config).eval()
    generator = torch.Generator().manual_seed(request.param)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = 1 + noise / 5 if "norm" in name else noise / parameter.shape[-1] ** 0.5
    return model.requires_grad_(False)


@pytest.fixture
def ids():
    return torch.randint(0, VOCABULARY, (3, sum(CHUNKS)), generator=torch.Generator().manual_seed(0))


class Llama:
    """A decoder assembled from the course's functions, on the witness's weights."""

    def __init__(self, parts, witness):
        self.parts, self.config = parts, witness.config
        self.weights = {name: tensor.T if tensor.dim() == 2 else tensor for name, tensor in witness.state_dict().items()}

    def new_cache(self):
        return self.parts["gqa"].KVCache(LAYERS)

    def __call__(self, ids, cache=None):
        """The logits, and the stream after each layer."""
        start = cache.length if cache else 0
        frequencies = self.parts["rope"].rope_frequencies(D)
        turn = self.parts["rope"].rope_cos_sin(torch.arange(start, start + ids.shape[1]), frequencies)
        stream = [self.weights["model.embed_tokens.weight"].T[ids]]
        for layer in range(LAYERS):
            stream.append(self.block(stream[-1], layer, turn, cache))
        return self.norm("model.norm.weight")(stream[-1]) @ self.weights["lm_head.weight"], stream

    def norm(self, name):
        return lambda x: self.parts["norms"].rms_norm(x, self.weights[name], eps=self.config.rms_norm_eps)

    def block(self, resid, layer, turn, cache):
        pre_norm, own = self.parts["norms"].pre_norm, f"model.layers.{layer}."
        weights = [self.weights[f"{own}mlp.{name}_proj.weight"] for name in ("gate", "up", "down")]
        resid = pre_norm(resid, lambda x: self.attend(x, layer, turn, cache), self.norm(own + "input_layernorm.weight"))
        return pre_norm(
            resid, lambda x: self.parts["mlp"].swiglu(x, *weights), self.norm(own + "post_attention_layernorm.weight")
        )

    def attend(self, x, layer, turn, cache):
        w_q, w_k, w_v, w_o = (self.weights[f"model.layers.{layer}.self_attn.{name}_proj.weight"] for name in "qkvo")
        split, rotate = self.parts["attention"].split_heads, self.parts["rope"].rotate_half
        n_kv_head = self.config.num_key_value_heads
        q, k, v = rotate(split(x @ w_q, HEADS), *turn), rotate(split(x @ w_k, n_kv_head), *turn), split(x @ w_v, n_kv_head)
        if cache:
            k, v = cache.append(layer, k, v)
        mask = self.parts["masking"].causal_mask(q.shape[2], k.shape[2])
        z = self.parts["gqa"].grouped_query_attention(q, k, v, mask)
        return self.parts["attention"].merge_heads(z) @ w_o


def close(yours, expected):
    torch.testing.assert_close(yours, expected, rtol=1e-5, atol=1e-5)


def test_every_block_without_a_cache(parts, witness, ids):
    logits, stream = Llama(parts, witness)(ids)
    expected = witness(ids, use_cache=False, output_hidden_states=True)
    close(logits, expected.logits)
    for mine, theirs in zip(stream[:-1], expected.hidden_states, strict=False):  # theirs is normed after the last layer
        close(mine, theirs)


def test_in_chunks_through_a_cache(parts, witness, ids):
    llama = Llama(parts, witness)
    cache, past, logits = llama.new_cache(), None, []
    for chunk in ids.split(CHUNKS, dim=1):
        expected = witness(chunk, past_key_values=past, use_cache=True)
        past = expected.past_key_values
        logits.append(llama(chunk, cache)[0])
        close(logits[-1], expected.logits)
        assert cache.length == past.get_seq_length()
    close(torch.cat(logits, dim=1), llama(ids)[0])
    close(torch.cat(logits, dim=1), witness(ids, use_cache=False).logits)


def test_the_cache_holds_as_many_bytes_as_it_should(parts, witness, ids):
    llama, held = Llama(parts, witness), {}
    cache = llama.new_cache()
    append = cache.append

    def noted(layer, k, v):
        held[layer] = append(layer, k, v)
        return held[layer]

    cache.append = noted
    for chunk in ids.split(CHUNKS, dim=1):
        llama(chunk, cache)
    measured = sum(tensor.untyped_storage().nbytes() for pair in held.values() for tensor in pair)
    n_kv_head = witness.config.num_key_value_heads
    assert measured == parts["gqa"].kv_cache_bytes(LAYERS, n_kv_head, D, ids.shape[1], bytes_per_value=4, batch=len(ids))


@pytest.mark.parametrize("part, name, wrong", [("gqa", "repeat_kv", "tiled"), ("rope", "rotate_half", "other pairs")])
def test_the_comparison_has_teeth(parts, witness, ids, monkeypatch, part, name, wrong):
    """With the heads tiled, or the channels paired the other way, the logits are far off."""
    other = {"tiled": lambda x, n: x.repeat(1, n, 1, 1), "other pairs": parts["rope"].rotate_interleaved}[wrong]
    monkeypatch.setattr(parts[part], name, other)
    gap = (Llama(parts, witness)(ids)[0] - witness(ids, use_cache=False).logits).abs().max()
    tiling_shows = 1 < witness.config.num_key_value_heads < HEADS
    assert gap > 0.1 if wrong == "other pairs" or tiling_shows else gap < 1e-4
