"""01_tokenization is graded without importing torch: on the stub, on the solution and on a wrong submission."""

import subprocess
import sys
from pathlib import Path

import pytest

from autograder.course import ROOT, Module

MODULE = Module("01_tokenization")
RUN = """
import sys, pytest
code = pytest.main(sys.argv[1:])
print("loaded:", sorted({"torch", "transformers"} & set(sys.modules)))
sys.exit(code)
"""
WRONG = """

def count_pairs(ids):
    return {pair: 1 for pair in zip(ids, ids[1:])}


def split_words(text):
    return text.split()


class Tokenizer(Tokenizer):
    def decode(self, ids):
        return "".join(self.vocab[i].decode("utf-8", errors="ignore") for i in ids)
"""


def run(submission: Path) -> subprocess.CompletedProcess:
    arguments = [f"modules/{MODULE.name}", "-q", "-p", "no:cacheprovider", "--seed", "1", "--submission", str(submission)]
    return subprocess.run([sys.executable, "-c", RUN, *arguments], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize("kind", ["stub", "solution", "wrong"])
def test_no_torch(kind, tmp_path):
    file = tmp_path / MODULE.name / MODULE.file_name
    file.parent.mkdir()
    source = MODULE.stub if kind == "stub" else MODULE.solution
    file.write_text(source.read_text(encoding="utf-8") + (WRONG if kind == "wrong" else ""), encoding="utf-8")
    done = run(tmp_path)
    assert "loaded: []" in done.stdout, done.stdout + done.stderr
    assert (done.returncode == 0) == (kind == "solution"), done.stdout + done.stderr
    if kind == "wrong":
        assert "count-each-pair-once" in done.stdout and "words-by-white-space-alone" in done.stdout
