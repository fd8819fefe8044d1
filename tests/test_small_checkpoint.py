"""The small trained checkpoint: three readers of it agree, and on held-out text it beats xz."""

import json
import sys
from pathlib import Path

import pytest
import torch

from autograder.model import load_checkpoint

ROOT = Path(__file__).resolve().parent.parent
SMALL = ROOT / "checkpoints" / "small"
sys.path[:0] = [str(ROOT / "checkpoints"), str(ROOT / "solutions" / "01_tokenization")]


@pytest.fixture(scope="module")
def model():
    return load_checkpoint(SMALL)


@pytest.fixture(scope="module")
def training():
    return json.loads((SMALL / "training.json").read_text())


@pytest.fixture
def ids():
    return torch.randint(0, 1257, (3, 61), generator=torch.Generator().manual_seed(0))


def test_transformers_gives_the_same_logits(model, ids):
    transformers = pytest.importorskip("transformers")
    witness, report = transformers.GPT2LMHeadModel.from_pretrained(SMALL, output_loading_info=True)
    assert not report["unexpected_keys"] and not report["mismatched_keys"]
    assert set(report["missing_keys"]) <= {"lm_head.weight"}  # tied: it is wte
    with torch.no_grad():
        torch.testing.assert_close(model(ids), witness.eval()(ids).logits, rtol=1e-5, atol=1e-5)


def test_the_record_is_complete_and_consistent(model, ids):
    record = {}
    with torch.no_grad():
        logits = model(ids, record)
    block = ["resid_pre", "ln_1", *(f"attn.{name}" for name in "q k v scores pattern z attn_out".split())]
    block += ["resid_mid", "ln_2", *(f"mlp.{name}" for name in "mlp_pre mlp_post mlp_out".split()), "resid_post"]
    names = ["tok_emb", "pos_emb", *(f"h.{i}.{name}" for i in range(5) for name in block), "ln_f", "logits"]
    assert list(record) == names
    assert torch.equal(record["logits"], logits) and torch.equal(logits, model(ids))
    for i in range(5):
        pattern, v, z = (record[f"h.{i}.attn.{name}"] for name in ("pattern", "v", "z"))
        torch.testing.assert_close(pattern @ v, z, rtol=1e-5, atol=1e-5)


def test_the_vocabulary_and_the_sizes_fit(model, training):
    from tokenization import load_merges

    assert 256 + len(load_merges(SMALL / "vocab.bpe")) + 1 == model.config["vocab_size"] == len(model.wte.weight)
    assert sum(p.numel() for p in model.parameters()) == training["parameters"]


def test_it_was_better_than_xz_when_it_was_trained(training):
    assert training["bits_per_byte"] < min(training["xz_bits_per_byte"].values())


def test_it_is_better_than_xz_here(model, training):
    from corpus import SEPARATOR, load_corpus, xz_bits_per_byte
    from tokenization import Tokenizer, load_merges
    from train_small import bits_per_byte

    corpus = load_corpus()
    if corpus.held_out_sha256() != training["held_out"]["sha256"]:
        trained, here = training["versions"]["python"], sys.version.split()[0]
        pytest.skip(f"Python {here} carries other help texts than Python {trained}, from which the held-out text was taken")
    tokenizer = Tokenizer(load_merges(SMALL / "vocab.bpe"), {"<|endoftext|>": model.config["eos_token_id"]})
    found = bits_per_byte(model, tokenizer, corpus.held_out)
    assert found == pytest.approx(training["bits_per_byte"], rel=1e-3)
    held_out = SEPARATOR.join(corpus.held_out)
    assert found < xz_bits_per_byte(SEPARATOR.join(corpus.topics), held_out)
    assert found < xz_bits_per_byte(corpus.training_text(), held_out)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"config\.json does not exist"),
        (lambda folder: (folder / "config.json").write_text("{"), r"config\.json is not JSON"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x"), r"model\.safetensors is not a safetensors file"),
        (lambda folder: reconfigure(folder, n_head=0), r"config\.json: n_head is 0, expected a positive whole number"),
        (lambda folder: reconfigure(folder, n_head=3), r"n_head 3 does not divide n_embd 128"),
        (lambda folder: reconfigure(folder, n_layer=6), r"h\.5\.attn\.c_attn\.bias is absent, expected \(384,\)"),
        (lambda folder: reconfigure(folder, vocab_size=1258), r"wte\.weight is \(1257, 128\), expected \(1258, 128\)"),
    ],
)
def test_a_spoilt_folder_is_refused_by_name_and_value(tmp_path, spoil, message):
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).write_bytes((SMALL / name).read_bytes())
    spoil(tmp_path)
    with pytest.raises(ValueError, match=message):
        load_checkpoint(tmp_path)


def reconfigure(folder: Path, **changes) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
