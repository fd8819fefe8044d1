"""The grader under pytest: any option, a learner's file in any state, the JSON report, the debugger."""

import json

import pytest as real_pytest
from helpers import pytest, write_patch

WRONG = "def attention(q, k, v):\n    return softmax(attention_scores(q, k), dim=-2) @ v\n"
SOLUTIONS = ("--submission", "solutions", "--parts", "solutions")


@real_pytest.fixture(scope="module")
def wrong(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wrong")
    write_patch(folder, "03", WRONG)
    return str(folder)


def test_untouched_stub_is_todo(tmp_path):
    done = pytest("modules/03_attention", "--submission", _stubs(tmp_path))
    assert done.returncode == 1
    assert "7 todo" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr and "FAILURES" not in done.stdout
    assert "write this first: 03_attention  soft_lookup: to write, at " in done.stdout


def _stubs(folder):
    from autograder.course import find
    from autograder.sync import stub

    module = find("03")
    file = folder / module.name / module.file_name
    file.parent.mkdir(parents=True)
    file.write_text(stub(module), encoding="utf-8")
    return str(folder)


OPTIONS = [(), ("-x",), ("-q",), ("-v",), ("-n", "2"), ("--lf",), ("-k", "attention")]


@real_pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
def test_wrong_submission_under_any_option(wrong, options):
    done = pytest("modules/03_attention", "--submission", wrong, "--seed", "7", *options)
    assert done.returncode == 1
    assert "first to differ   pattern (B, H, Tq, Tk) = (2, 3, 5, 7)" in done.stdout
    assert "softmax-over-queries" in done.stdout
    assert "NotRight" not in done.stdout and "Traceback" not in done.stdout


def test_solution_passes():
    done = pytest("modules/03_attention", *SOLUTIONS)
    assert done.returncode == 0 and "7 passed" in done.stdout


@real_pytest.mark.parametrize("options", [(), ("-n", "2")], ids=" ".join)
def test_json_report(wrong, tmp_path, options):
    target = tmp_path / "report.json"
    pytest("modules/03_attention", "--submission", wrong, "--seed", "7", "--report", str(target), *options)
    document = json.loads(target.read_text())
    assert document["seed"] == 7 and document["device"] == "cpu"
    by_name = {record["exercise"]: record for record in document["exercises"]}
    assert by_name["softmax"]["status"] == "pass" and by_name["softmax"]["points"] == 2
    attention = by_name["attention"]
    assert attention["status"] == "fail" and attention["points"] == 1 and attention["max_points"] == 3
    assert attention["matched"] == ["q", "k", "v", "scores"]
    assert attention["first_difference"] == "pattern" and attention["mistakes"] == ["softmax-over-queries"]
    assert by_name["multi_head_attention"]["facts"] == ["right, but it rests on attention: mend that first"]


def test_debugger_opens_in_the_learners_frame(tmp_path):
    write_patch(tmp_path, "03", "def merge_heads(z):\n    mine = 'a local of the learner'\n    return torch.cat(z)\n")
    import subprocess
    import sys

    from autograder.course import ROOT

    command = [sys.executable, "-m", "pytest", "modules/03_attention", "-k", "merge", "--pdb", "--submission", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, input="p mine\nq\n", capture_output=True, text=True, timeout=120)
    assert "'a local of the learner'" in done.stdout


def test_unwritable_report_is_named(wrong):
    done = pytest("modules/03_attention", "--submission", wrong, "--report", "/no/such/folder/report.json")
    assert "/no/such/folder/report.json" in done.stdout + done.stderr


def test_submission_must_be_a_folder():
    done = pytest("modules/03_attention", "--submission", "no/such/folder")
    assert done.returncode == 4 and "'no/such/folder' is not a folder" in done.stderr


def test_exiting_at_import_earns_nothing(tmp_path):
    write_patch(tmp_path, "03", "import sys\nsys.exit(0)\n")
    done = pytest("modules/03_attention", "--submission", str(tmp_path))
    assert done.returncode == 1 and "7 failed" in done.stdout and "SystemExit" in done.stdout


def test_skipping_from_the_learners_code_earns_nothing(tmp_path):
    write_patch(tmp_path, "03", "import pytest\n\n\ndef softmax(x, dim=-1):\n    pytest.skip('no')\n")
    done = pytest("modules/03_attention", "-k", "test_softmax", "--submission", str(tmp_path))
    assert done.returncode == 1 and "1 failed" in done.stdout
