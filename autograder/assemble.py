"""The assembled GPT-2, the learner's own or the solution's, and the vocabulary that a checkpoint was trained with."""

import importlib
from pathlib import Path

from autograder.checkpoints import verified
from autograder.course import ROOT, Module
from autograder.hub import WeightsError
from autograder.loader import Learner, written

GPT2 = Module("12_gpt2")
END = "<|endoftext|>"


class Assembled:
    """Module 12 and what it imports: `gpt2` and `tokenization`, loaded, and `words` that say whose they are.

    parts  "own" the learner's files, "solutions" the solutions, "auto" the learner's gpt2.py where it is written, with
           the solutions in the places of the modules that are not; the solutions where it is not.
    """

    def __init__(self, parts: str = "auto", folder: Path = ROOT / "modules"):
        learner = Learner(folder, parts)
        complete = written(learner.file(GPT2))
        if parts == "own" and not complete:
            raise ValueError(f"{learner.file(GPT2)} is not complete: expected every function of module 12")
        own = complete and parts != "solutions"
        if not own:
            learner = Learner(ROOT / "solutions", "own")
        self.gpt2 = learner.load(GPT2)
        self.tokenization = importlib.import_module("tokenization")
        file = learner.file(GPT2)
        self.words = str(file.relative_to(ROOT) if file.is_relative_to(ROOT) else file) + (", yours" if own else "")
        if learner.borrowed:
            self.words += f"; from the solutions: {' '.join(sorted(learner.borrowed))}"
        if not own and parts == "auto":
            self.words += " (yours is not written yet)"

    def vocabulary(self, vocab_size: int, weights: Path) -> "Vocabulary":
        """The vocabulary that lies beside a weight file, or GPT-2's, which has 50,257 tokens (50,304 when padded)."""
        for name in ("vocab.bpe", "merges.txt"):
            if (weights.parent / name).is_file():
                return Vocabulary(self.tokenization, weights.parent / name)
        if vocab_size not in (50257, 50304):
            raise WeightsError(f"{weights} has {vocab_size} tokens, not GPT-2's 50257, and no vocab.bpe lies beside it")
        return Vocabulary(self.tokenization, verified("gpt2/vocab.bpe"))


class Vocabulary:
    """A tokenizer, and the bytes of each id: a character may be cut in two by tokens, its bytes are not."""

    def __init__(self, tokenization, path: Path):
        merges = tokenization.load_merges(str(path))
        self.bytes = [bytes([byte]) for byte in tokenization.bytes_to_unicode()] + [left + right for left, right in merges]
        self.end = len(self.bytes)  # the id of <|endoftext|>
        self.bytes.append(END.encode())
        self._tokenizer = tokenization.Tokenizer(merges, {END: self.end})

    def encode(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, allow_special=True)
