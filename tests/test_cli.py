"""The `course` command: every command answers, and bad calls are told what was expected."""

import json

import pytest
from helpers import run

from autograder import state
from autograder.cli import main


def test_faults_are_listed_as_json(capsys):
    assert main(["faults", "03", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"id", "exercise", "tensor", "description"} <= rows[0].keys()
    assert any(row["id"] == "softmax-over-queries" and row["tensor"] == "pattern" for row in rows)


def test_hints_come_in_three_levels_and_are_counted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(state, "FILE", tmp_path / "state.json")
    monkeypatch.setattr(state, "load", lambda file=tmp_path / "state.json", load=state.load: load(file))
    monkeypatch.setattr(state, "save", lambda known, file=tmp_path / "state.json", save=state.save: save(known, file))
    for level in ("hint 1 of 3", "hint 2 of 3", "hint 3 of 3"):
        assert main(["hint", "03", "attention"]) == 0
        assert level in capsys.readouterr().out
    assert main(["hint", "03", "attention"]) == 0
    assert "that was the last one" in capsys.readouterr().out
    assert state.load()["hints"] == {"03_attention/attention": 3}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["hint", "99"], "no module goes by '99': expected one of"),
        (["hint", "03", "nothing"], "03_attention has no exercise 'nothing': expected one of soft_lookup"),
        (["record", "03", "--device", "cuda"], "PyTorch finds no GPU here"),
    ],
)
def test_bad_calls_are_told_what_was_expected(arguments, complaint, capsys):
    import torch

    if "cuda" in arguments and torch.cuda.is_available():
        return
    assert main(arguments) == 2
    assert complaint in capsys.readouterr().err


def test_demo_shows_three_submissions():
    done = run("-m", "autograder", "demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in all: 0 of 18 points" in done.stdout and "in all: 18 of 18 points" in done.stdout
    assert "scale-missing" in done.stdout and "softmax-over-queries" in done.stdout


def test_broken_state_is_put_aside(tmp_path, capsys):
    file = tmp_path / "state.json"
    file.write_text("{ not json")
    assert state.load(file) == {"results": {}, "hints": {}}
    assert "kept as state.broken.json" in capsys.readouterr().err
    assert (tmp_path / "state.broken.json").read_text() == "{ not json"
