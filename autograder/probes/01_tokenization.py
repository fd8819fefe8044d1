"""Calls of 01_tokenization that plain data cannot make by itself."""

import tempfile
from pathlib import Path


def bytes_to_unicode(module):
    """The table, and the order in which it holds the bytes."""
    table = module.bytes_to_unicode()
    return table, list(table)


def load_merges(module, path):
    """What the function makes of a file that holds the text `path`."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "vocab.bpe"
        file.write_bytes(path.encode("utf-8"))
        return module.load_merges(str(file))


def tokenizer(module, merges, special_tokens=None, text="", allow_special=None, ids=()):
    """Make a tokenizer, encode the text and decode the ids with it. What is None here is left out of the call."""
    made = module.Tokenizer(merges) if special_tokens is None else module.Tokenizer(merges, special_tokens)
    options = {} if allow_special is None else {"allow_special": allow_special}
    made.encode(text, **options)  # a second call must give what the first one gave
    return made.encode(text, **options), made.decode(list(ids))


class Bytewise:
    """A tokenizer that has one id for every so many bytes, and the special token <|end|>."""

    def __init__(self, width):
        self.width = width

    def encode(self, text, allow_special=False):
        data = text.encode("utf-8")
        if allow_special:
            data = data.replace(b"<|end|>", b"\0" * self.width)
        return [int.from_bytes(data[start : start + self.width], "big") for start in range(0, len(data), self.width)]


def tokens_per_character(module, tokenizer, text):
    """The price of the text with a tokenizer of so many bytes a token."""
    return module.tokens_per_character(Bytewise(tokenizer), text)
