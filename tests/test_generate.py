"""`course generate`: what the model says, as it says it, by the learner's own code where it is written."""

import codecs
import re
import shutil

import pytest
import torch
from helpers import run

from autograder.assemble import Assembled
from autograder.cli import main
from autograder.commands.generate import Stream
from autograder.course import ROOT

SMALL = ROOT / "checkpoints" / "small"


@pytest.fixture(scope="module")
def parts():
    return Assembled("solutions")


def test_generate_writes_what_the_model_says(parts):
    arguments = ("--seed", "3", "--max-new-tokens", "40", "--top-k", "50", "--parts", "solutions")
    done = run("-m", "autograder", "generate", "The value of", *arguments)
    assert done.returncode == 0, done.stderr
    model = parts.gpt2.from_pretrained(SMALL)
    vocabulary = parts.vocabulary(1257, SMALL / "model.safetensors")
    ids = torch.tensor([vocabulary.encode("The value of")])
    generator = torch.Generator().manual_seed(3)
    result = parts.gpt2.generate(model, ids, 40, 0.8, 50, 0.95, generator, stop_id=1256)[0].tolist()
    text = b"".join(vocabulary.bytes[token] for token in result if token != 1256).decode(errors="replace")
    assert done.stdout == text + "\n"
    said = done.stderr.splitlines()
    assert said[0] == "solutions/12_gpt2/gpt2.py; seed 3"
    assert re.fullmatch(r"\d+ tokens in [\d.]+ s, [\d.]+ tokens a second", said[1]) and len(said) == 2


def test_generate_takes_a_folder_and_starts_a_new_text(tmp_path, capsys):
    folder = tmp_path
    for name in ("config.json", "model.safetensors"):
        shutil.copy(SMALL / name, folder)
    assert main(["generate", "", "--model", str(folder)]) == 2
    assert "has 1257 tokens, not GPT-2's 50257, and no vocab.bpe lies beside it" in capsys.readouterr().err
    shutil.copy(SMALL / "vocab.bpe", folder)
    few = ["--max-new-tokens", "5", "--temperature", "0", "--parts", "solutions"]
    assert main(["generate", "", "--model", str(folder), *few]) == 0
    assert len(capsys.readouterr().out) > 1


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--top-p", "0"], "--top-p is 0.0, expected a number above 0 and at most 1"),
        (["--top-k", "0"], "--top-k is 0, expected at least 1"),
        (["--model", "no/such/thing"], "'no/such/thing' is no file, no folder and no name on the hub"),
    ],
)
def test_generate_refuses_by_name_and_value(arguments, complaint, capsys):
    assert main(["generate", "x", *arguments]) == 2
    assert complaint in capsys.readouterr().err


def test_a_learners_own_gpt2_writes_where_it_is_complete(tmp_path):
    solution = (ROOT / "solutions" / "12_gpt2" / "gpt2.py").read_text()
    own = tmp_path / "12_gpt2" / "gpt2.py"
    own.parent.mkdir()
    own.write_text("MINE = True\n" + solution)
    assembled = Assembled("auto", tmp_path)
    assert assembled.gpt2.MINE and assembled.words.startswith(f"{own}, yours; from the solutions: 01_tokenization")
    assert assembled.gpt2.from_pretrained(SMALL).config.n_layer == 5
    own.write_text("MINE = True\n" + solution + "\n\ndef later():\n    raise NotImplementedError\n")
    borrowed = Assembled("auto", tmp_path)
    assert borrowed.words == "solutions/12_gpt2/gpt2.py (yours is not written yet)" and not hasattr(borrowed.gpt2, "MINE")
    with pytest.raises(ValueError, match="is not complete"):
        Assembled("own", tmp_path)


class Told:
    """An output that notes how much was written when."""

    encoding = "utf-8"

    def __init__(self):
        self.pieces = []

    def write(self, text: str) -> None:
        self.pieces.append(text)

    def flush(self) -> None:
        pass

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class Bytewise:
    """A vocabulary of bytes, so that every character beyond ASCII is cut by its tokens."""

    bytes, end = [bytes([byte]) for byte in range(256)] + [b"<|endoftext|>"], 256


class Fixed(torch.nn.Module):
    """A model that says a given text, whatever it is shown."""

    def __init__(self, gpt2, text: bytes, n_ctx: int, out: Told):
        super().__init__()
        self.config = gpt2.GPT2Config(n_layer=1, n_ctx=n_ctx, vocab_size=257)
        self.text, self.said, self.out, self.seen = text, 0, out, []

    def forward(self, ids, cache=None):
        self.seen.append(self.out.text)
        if cache is not None:
            cache.append(0, torch.zeros(1, 1, ids.shape[1], 1), torch.zeros(1, 1, ids.shape[1], 1))
        logits = torch.zeros(1, ids.shape[1], 257)
        logits[0, -1, self.text[self.said] if self.said < len(self.text) else 256] = 9.0
        self.said += 1
        return logits


@pytest.mark.parametrize("n_ctx", [4, 64])
@pytest.mark.parametrize("use_cache", [True, False])
def test_tokens_are_written_as_they_come_and_characters_whole(parts, n_ctx, use_cache):
    text, out = "aé€🤗b\xff", Told()
    model = Fixed(parts.gpt2, text.encode(), n_ctx, out)
    stream = Stream([1, 2, 3], Bytewise, n_ctx, out)
    with stream.watching(model):
        result = parts.gpt2.generate(model, torch.tensor([[1, 2, 3]]), 99, temperature=0.0, use_cache=use_cache, stop_id=256)
    assert stream.finish(result[0].tolist()) == len(text.encode()) + 1
    assert out.text == text + "\n"
    decoder = codecs.getincrementaldecoder("utf-8")()
    pieces = [decoder.decode(bytes([byte])) for byte in text.encode()]
    assert model.seen == ["".join(pieces[:known]) for known in range(len(pieces) + 1)]  # all that was known, each time


def test_a_generate_that_cannot_be_watched_is_written_at_its_end():
    out = Told()
    stream = Stream([1, 2], Bytewise, 8, out)
    assert stream.finish([1, 2, *b"hi", 200]) == 3
    assert out.text == "hi\N{REPLACEMENT CHARACTER}\n"
    out = Told()
    stream = Stream([1, 2], Bytewise, 8, out)
    stream._put(65)
    assert stream.finish([1, 2, *b"hi"]) == 2
    assert out.text == "A\n\nThat was not the result, which is:\n\nhi\n"
