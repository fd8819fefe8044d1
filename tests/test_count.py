"""`course count`: known answers, formulas that give their counts, errors that name file and field."""

import json
import sys

import pytest
from helpers import run

from autograder.cli import main
from autograder.count import count, load, parts, sizes
from autograder.course import ROOT, Module
from autograder.loader import solution

CONFIGS = ROOT / "checkpoints" / "configs"
GPT2 = {"model_type": "gpt2", "n_layer": 2, "n_embd": 4, "n_head": 2, "n_positions": 8, "vocab_size": 10}


@pytest.mark.parametrize(
    ("name", "answers"),
    [
        (
            "gpt2",
            ["124,439,808", "0.6667", "36,864 bytes a token", "at 1,024 positions", "37,748,736 bytes", "497,759,232 bytes"],
        ),
        ("gpt2-xl", ["1,557,611,200"]),
        ("llama-3-8b", ["8,030,261,248", "0.8077", "131,072 bytes a token"]),
        (
            "llama-3-70b",
            ["70,553,706,496", "0.8235", "327,680 bytes a token", "at 131,072 positions", "= 40 GiB", "141,107,412,992"],
        ),
    ],
)
def test_known_answers(name, answers, capsys):
    assert main(["count", str(CONFIGS / f"{name}.json"), "--no-guess"]) == 0
    printed = capsys.readouterr().out
    for answer in answers:
        assert answer in printed


@pytest.mark.parametrize("path", sorted(CONFIGS.glob("*.json")), ids=lambda path: path.stem)
def test_every_formula_gives_its_count(path):
    counting = solution(Module("11_parameter_counting"))
    c = counting.read_config(load(path))
    block, once = parts(c)
    letters = {**sizes(c), "block": counting.block_parameters(c)}
    for part in block + once:
        assert part.count in (0, eval(part.formula, {}, letters)), part
    assert sum(part.count for part in block) == counting.block_parameters(c)
    assert sum(part.count for part in once) == counting.count_parameters(c)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ({**GPT2, "n_layer": None}, "n_layer is missing"),
        ({name: value for name, value in GPT2.items() if name != "vocab_size"}, "vocab_size is missing"),
        ({"n_layer": 2}, "model_type is missing"),
        ({**GPT2, "model_type": "qwen2"}, "model_type = 'qwen2': expected gpt2, llama or mistral"),
        ({**GPT2, "n_head": 0}, "n_head = 0: expected a whole number above 0"),
        ({**GPT2, "n_embd": "768"}, 'n_embd = "768": expected a whole number above 0'),
        ({**GPT2, "n_head": 3}, "n_embd = 4 cannot be shared equally among n_head = 3"),
        ({**GPT2, "tie_word_embeddings": "no"}, 'tie_word_embeddings = "no": expected true or false'),
        ([GPT2], "holds a JSON list: expected an object"),
        ("{", "not JSON, at line 1"),
        (b"\xff", "not UTF-8 text"),
    ],
)
def test_errors_name_file_and_field(text, complaint, tmp_path, capsys):
    path = tmp_path / "config.json"
    path.write_bytes(text if isinstance(text, bytes) else (text if isinstance(text, str) else json.dumps(text)).encode())
    assert count(path, guess=False) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"course count: {path}: {complaint}")


def test_a_file_that_is_not_there_is_named(tmp_path, capsys):
    assert count(tmp_path / "none.json", guess=False) == 2
    assert capsys.readouterr().err == f"course count: {tmp_path / 'none.json'}: No such file or directory\n"


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["60"], "your guess 60 %: 6.7 points too low"),
        (["much", "70 %"], "your guess 70 %: 3.3 points too high"),
        ([""], "0.6667\n"),
    ],
)
def test_a_guess_is_asked_for_first_and_compared(typed, said, monkeypatch, capsys):
    answers = iter(typed)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda prompt: next(answers))
    assert count(CONFIGS / "gpt2.json") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("Guess first")
    assert said in printed


def test_nobody_is_asked_without_a_terminal_or_when_told_so(monkeypatch, capsys):
    def refuse(prompt):
        raise AssertionError("asked")

    monkeypatch.setattr("builtins.input", refuse)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: False, raising=False)
    assert count(CONFIGS / "gpt2.json", guess=True) == 0
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert count(CONFIGS / "gpt2.json", guess=False) == 0
    assert "Guess first" not in capsys.readouterr().out


def test_torch_is_not_imported():
    code = "import sys; from autograder.count import count; count(sys.argv[1], False); assert 'torch' not in sys.modules"
    done = run("-c", code, str(CONFIGS / "gpt2.json"))
    assert done.returncode == 0, done.stderr
    assert "124,439,808" in done.stdout


def test_counts_are_those_of_real_models():
    transformers = pytest.importorskip("transformers")
    import torch

    llama = dict(
        hidden_size=24, intermediate_size=20, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, vocab_size=50
    )
    configs = [
        transformers.GPT2Config(n_embd=12, n_layer=2, n_head=3, n_positions=16, vocab_size=50),
        transformers.GPT2Config(
            n_embd=12, n_layer=3, n_head=3, n_inner=20, n_positions=16, vocab_size=50, tie_word_embeddings=False
        ),
        transformers.LlamaConfig(**llama),
        transformers.LlamaConfig(**llama, head_dim=10, attention_bias=True, mlp_bias=True, tie_word_embeddings=True),
        transformers.MistralConfig(**llama, head_dim=6, max_position_embeddings=32),
    ]
    counting = solution(Module("11_parameter_counting"))
    for config in configs:
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        expected = sum(parameter.numel() for parameter in model.parameters())
        assert counting.count_parameters(counting.read_config(config.to_dict())) == expected, config
