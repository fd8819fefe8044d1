"""The text of the small checkpoint: what every Python installation carries, cut into training and held-out text.

Topics      the help texts of `pydoc_data.topics`, one document each
Docstrings  the docstrings of the standard library's .py files, one document a file, found by parsing (no import)
Held out    one topic in twenty, chosen by a seed. A paragraph that stands in a held-out topic stands nowhere in the
            training text, and no paragraph stands twice in the whole corpus.

The text depends on the Python version; `held_out_sha256` tells whether it is the text of a given run.
"""

import ast
import hashlib
import lzma
import random
import re
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

SEPARATOR = "\n\n"
LEFT_OUT = {"site-packages", "dist-packages", "test", "tests", "idle_test", "lib2to3", "pydoc_data", "__pycache__"}


@dataclass
class Corpus:
    topics: list[str]
    docstrings: list[str]
    held_out: list[str]

    def training_text(self) -> str:
        """Topics last: the text that resembles the held-out text most stands next to it."""
        return SEPARATOR.join(self.docstrings + self.topics)

    def held_out_sha256(self) -> str:
        return hashlib.sha256(SEPARATOR.join(self.held_out).encode()).hexdigest()


def paragraphs(text: str) -> list[str]:
    lines = "\n".join(line.rstrip() for line in text.expandtabs().split("\n"))
    return [p.strip("\n") for p in re.split(r"\n\n+", lines) if p.strip()]


def docstrings_of(path: Path) -> str:
    """All docstrings of a file in the order in which they stand, or nothing where the file does not parse."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (SyntaxError, ValueError):
        return ""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    nodes = [node for node in ast.walk(tree) if isinstance(node, documented)]
    nodes.sort(key=lambda node: getattr(node, "lineno", 0))
    return SEPARATOR.join(filter(None, (ast.get_docstring(node) for node in nodes)))


def load_corpus(seed: int = 0, share: float = 0.05) -> Corpus:
    names = sorted(topics)
    chosen = set(random.Random(seed).sample(names, round(share * len(names))))
    library = Path(sysconfig.get_path("stdlib"))
    files = sorted(p.relative_to(library) for p in library.rglob("*.py"))
    files = [library / p for p in files if not LEFT_OUT & set(p.parts)]

    seen: set[str] = set()  # filled by the held-out topics first, so what they say is said nowhere else

    def unseen(text: str) -> str:
        kept = []
        for paragraph in paragraphs(text):
            words = " ".join(paragraph.split())  # the same words wrapped or indented otherwise are the same paragraph
            if words not in seen:
                seen.add(words)
                kept.append(paragraph)
        return SEPARATOR.join(kept)

    held_out = [unseen(topics[name]) for name in names if name in chosen]
    training = [unseen(topics[name]) for name in names if name not in chosen]
    docstrings = [unseen(docstrings_of(path)) for path in files]
    return Corpus(*([text for text in part if text] for part in (training, docstrings, held_out)))


def xz_bits_per_byte(known: str, text: str) -> float:
    """What `xz -9e` spends on a text after it has compressed the known text: its dictionary (64 MiB) holds all of it."""

    def size(data: bytes) -> int:
        return len(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))

    first, second = (known + SEPARATOR).encode(), text.encode()
    return (size(first + second) - size(first)) * 8 / len(second)
