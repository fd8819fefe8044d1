"""01_tokenization against tiktoken, id for id: its encoding is built from the shipped vocabulary, without the network."""

import importlib
import itertools
import pydoc
import random
import unicodedata
from pydoc_data.topics import topics

import pytest
import tiktoken

from autograder.checkpoints import verified
from autograder.course import Module
from autograder.loader import solution

# The pattern with which tiktoken cuts text for GPT-2.
PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"""
MARKER = "<|endoftext|>"
SCRIPTS = (
    *("The cat can't sleep", "Die Katze schläft", "Kočka spí", "Mèo ngủ", "Кошка спит", "Η γάτα κοιμάται", "Կատուն քնած է"),
    *("კატას სძინავს", "חתול ישן", "القطة نائمة", "گربه خواب است", "बिल्ली सोती है", "বিড়াল ঘুমায়", "பூனை தூங்குகிறது"),
    *("แมวนอนหลับ", "ແມວນອນ", "ድመት ይተኛል", "ᎪᎳ ᎠᏓᎾᏏ", "猫在睡觉", "貓在睡覺", "猫は寝ている", "ネコ", "고양이가 잔다", "ᚲᚨᛏ"),
)
PIECES = (
    *("don't", "I'll", "WE'VE", "they're", "he'd", "'tis", "rock'n'roll", "y’all", "''s", "'", "O'Brien's"),
    *("0", "7", "42", "127", "1234567", "3.14159", "1,000,000", "½", "²³", "Ⅷ", "٣٤٥", "१२३", "0x1F", "1e-5", "2022-08-01"),
    *(" ", "  ", "   ", " " * 17, "\t", "\t\t", "\n", "\n\n", "\n\n\n", "\r\n", " \n", "\n ", "\u00a0", "\u3000", "\u200b"),
    *("!", "...", "?!", "--", "—", "«»", "()", "[0]", "{}", "#", "##", "####", "_", "__init__", "x_1", "C++", "a@b.c", "$5", "~"),
    *("🙂", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👍🏽", "🇩🇪", "❤️", "🤗", "e\u0301", "\ufeff", "\ufffd", "\x00", "\x7f", "\x80", "\xad"),
    *("def f(x):\n    return x + 1\n", "for (;;) { i++; }", "<a href='#'>", "SELECT * FROM t;", "if x!=y:\n\tpass", MARKER),
    *("strawberry", " strawberry", "tokenization", " SolidGold", "brutalist", "Hello", "naïve", "café", "Straße", "\U0010ffff"),
)
MODULES = (
    *("argparse", "ast", "decimal", "typing", "socket", "tkinter", "datetime", "logging", "asyncio", "unittest", "email.message"),
    *("os", "string", "threading", "pathlib", "inspect", "numbers", "random", "statistics", "turtle"),
)


@pytest.fixture(scope="module")
def tokenization():
    return solution(Module("01_tokenization"))


@pytest.fixture(scope="module")
def tokenizer(tokenization):
    return tokenization.Tokenizer(tokenization.load_merges(str(verified("gpt2/vocab.bpe"))), {MARKER: 50256})


@pytest.fixture(scope="module")
def oracle():
    """tiktoken's GPT-2, its ranks read from the file by Unicode category, not by the table of the solution."""
    shown = [byte for byte in range(256) if unicodedata.category(chr(byte)) not in ("Cc", "Cf", "Zs")]
    hidden = [byte for byte in range(256) if byte not in shown]
    byte_of = {chr(byte): byte for byte in shown} | {chr(256 + place): byte for place, byte in enumerate(hidden)}
    ranks = {bytes([byte]): place for place, byte in enumerate(shown + hidden)}
    for line in verified("gpt2/vocab.bpe").read_text(encoding="utf-8").split("\n")[1:-1]:
        ranks[bytes(byte_of[character] for character in line.replace(" ", ""))] = len(ranks)
    special = {MARKER: 50256}
    return tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens=special, explicit_n_vocab=50257)


def strings() -> list[str]:
    """More than 2,000 different strings: scripts, emoji, code, digits, white space, contractions, every character of one byte."""
    draw = random.Random(20461)
    found = ["", *map(chr, range(256)), *SCRIPTS, *PIECES]
    found += ["".join(pair) for pair in itertools.product(PIECES[:40], PIECES[40:60])]
    parts = SCRIPTS + PIECES
    found += ["".join(draw.choices(parts, k=draw.randint(2, 8))) for _ in range(1000)]
    found += [" ".join(draw.choices(parts, k=draw.randint(2, 8))) for _ in range(500)]
    letters = [chr(code) for code in range(0x20, 0x3000) if chr(code).isprintable()]
    found += ["".join(draw.choices(letters, k=12)) for _ in range(200)]
    found += ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=draw.randint(1, 25))) for _ in range(300)]
    return list(dict.fromkeys(found))


def test_thousands_of_strings(tokenizer, oracle):
    texts = strings()
    assert len(texts) >= 2000
    wrong = [text for text in texts if tokenizer.encode(text) != oracle.encode_ordinary(text)]
    assert not wrong, f"{len(wrong)} of {len(texts)} differ: {wrong[:3]!r}"
    assert all(tokenizer.decode(tokenizer.encode(text)) == text for text in texts)


def test_special_tokens_where_allowed(tokenizer, oracle):
    for text in strings()[::7]:
        marked = f"{text}{MARKER}{text} {MARKER}{MARKER}"
        assert tokenizer.encode(marked, allow_special=True) == oracle.encode(marked, allowed_special="all")


def test_every_id_decodes_alike(tokenizer, oracle):
    assert all(tokenizer.decode([i]) == oracle.decode([i]) for i in range(50257))
    draw = random.Random(20461)
    for _ in range(500):  # ids in any order: most are no valid UTF-8
        ids = draw.choices(range(256), k=6) + draw.choices(range(50257), k=6)
        assert tokenizer.decode(ids) == oracle.decode(ids)


def test_a_megabyte_of_pydoc(tokenizer, oracle):
    text = "\n".join(topics[name] for name in sorted(topics))
    for name in MODULES:
        if len(text.encode()) >= 1_000_000:
            break
        try:
            text += pydoc.render_doc(importlib.import_module(name), renderer=pydoc.plaintext)
        except ImportError:  # an installation without tkinter
            continue
    assert len(text.encode()) >= 1_000_000
    assert tokenizer.encode(text) == oracle.encode_ordinary(text)


def test_known_ids(tokenizer):
    assert tokenizer.encode(" strawberry") == [41236]
    assert tokenizer.encode("Hello world!") == [15496, 995, 0]
    assert tokenizer.encode("Hello!! I'm Andrej Karpathy. It's 2022. w00t :D 🤗") == [
        *(15496, 3228, 314, 1101, 10948, 73, 509, 5117, 10036, 13, 632, 338, 33160, 13, 266, 405, 83, 1058, 35, 12520, 97, 245),
    ]


def test_training_takes_seconds(tokenization):
    """500 kB to 1,000 merges with counts that are kept up to date."""
    text = "\n".join(topics[name] for name in sorted(topics)) * 2
    merges = tokenization.train_bpe(text[:500_000], 1256)
    assert len(merges) == 1000 and len(set(merges)) == 1000
