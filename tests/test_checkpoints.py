"""Shipped files: every change is noticed, and named with the expected hash."""

import shutil

import pytest
from helpers import run

from autograder import checkpoints
from autograder.checkpoints import CheckpointError, pinned, verified
from autograder.course import find, ready
from autograder.golden import Goldens

TIKTOKEN_PINS = "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5"  # of GPT-2's vocab.bpe


def test_gpt2_vocabulary_is_the_released_one():
    assert pinned()["gpt2/vocab.bpe"] == TIKTOKEN_PINS
    assert verified("gpt2/vocab.bpe").exists()


@pytest.mark.parametrize("name", sorted(pinned()))
def test_changed_file_is_named(name, tmp_path):
    copy = tmp_path / name
    copy.parent.mkdir(parents=True)
    content = bytearray((checkpoints.FOLDER / name).read_bytes())
    content[len(content) // 2] ^= 1
    copy.write_bytes(content)
    with pytest.raises(CheckpointError, match=f"checkpoints/{name} was changed.*expected {pinned()[name]}"):
        verified(name, tmp_path)


@pytest.mark.parametrize("name", sorted(pinned()))
def test_missing_file_is_named(name, tmp_path):
    with pytest.raises(CheckpointError, match=f"checkpoints/{name} is missing .expected SHA-256 {pinned()[name]}"):
        verified(name, tmp_path)


def test_goldens_refuse_an_edited_file(tmp_path):
    shutil.copytree(checkpoints.FOLDER / "golden", tmp_path / "golden")
    file = tmp_path / "golden" / "03_attention.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(CheckpointError, match="golden/03_attention.safetensors was changed"):
        Goldens("03_attention", tmp_path)


def test_recording_again_gives_the_same_bytes(tmp_path, monkeypatch):
    from autograder import golden

    shutil.copytree(checkpoints.FOLDER / "small", tmp_path / "small")
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    monkeypatch.setattr(golden, "pin", lambda *names: None)
    files = []
    for _ in range(2):
        golden.record("03_attention", find("03").case(), "cpu")
        files.append([(tmp_path / "golden" / f"03_attention.{kind}").read_bytes() for kind in ("safetensors", "json")])
    assert files[0] == files[1]


def test_manifest_tells_where_it_was_recorded():
    for module in ready():
        if any(exercise.golden for exercise in module.case().exercises.values()):
            manifest = Goldens(module.name).manifest
            assert {"device", "torch", "cuda", "dtype", "seed"} <= manifest.keys()
            for entry in manifest["exercises"].values():
                assert all(deviation < 1e-4 for deviation in entry["largest_deviation_from_float64"].values())


def test_doctor_names_a_changed_file(tmp_path):
    done = run("-m", "autograder", "doctor")
    assert done.returncode == 0 and "all is well" in done.stdout
