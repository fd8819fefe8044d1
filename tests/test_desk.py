"""What a learner works with beside pytest: watch, reset, next. Each test has a copy of the course to write in."""

import os
import subprocess
import sys
import time

import pytest
from helpers import run

from autograder.course import ROOT, find

WRONG = "\n\ndef attention(q, k, v):\n    return softmax(attention_scores(q, k), dim=-2) @ v\n"


@pytest.fixture
def course(tmp_path):
    """A copy of the course's tracked files, and a function that runs `course` in it."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if not name.startswith(("tests/", "docs/")) and (ROOT / name).exists():
            target = tmp_path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.link(ROOT / name, target) if name.startswith("checkpoints/") else target.write_bytes((ROOT / name).read_bytes())
    return tmp_path


def course_command(folder, *arguments):
    return run("-m", "autograder", *arguments, cwd=folder, PYTHONPATH=str(folder))


def test_reset_keeps_the_learners_file(course):
    file = course / "modules" / "03_attention" / "attention.py"
    stub = file.read_text()
    for number, kept in enumerate(("attention.mine.py", "attention.mine-2.py")):
        file.write_text(f"# my work {number}\n")
        done = course_command(course, "reset", "03")
        assert done.returncode == 0, done.stderr
        assert f"your file is kept as modules/03_attention/{kept}" in done.stdout
        assert (file.parent / kept).read_text() == f"# my work {number}\n"
        assert file.read_text() == stub
    assert "is the stub already" in course_command(course, "reset", "03").stdout


def test_next_follows_what_has_passed(course):
    module = find("01")
    assert course_command(course, "next").stdout.startswith(
        "01_tokenization  bytes_to_unicode: modules/01_tokenization/tokenization.py"
    )
    (course / "modules" / module.name / module.file_name).write_text(module.solution.read_text())
    done = run("-m", "pytest", "modules/01_tokenization", "-q", cwd=course, PYTHONPATH=str(course))
    assert done.returncode == 0, done.stdout
    assert course_command(course, "next").stdout.startswith("02_embeddings  embed_tokens")
    (course / "modules" / module.name / module.file_name).write_text(module.solution.read_text() + "\n# an edit\n")
    assert course_command(course, "next").stdout.startswith("01_tokenization"), "an edit makes results stale"


def test_watch_runs_a_module_at_each_save(course):
    module = find("03")
    file = course / "modules" / module.name / module.file_name
    environment = {**os.environ, "PYTHONPATH": str(course), "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "autograder", "watch", "03", "--plain"]
    log = course / "watch.log"
    with log.open("w") as out, subprocess.Popen(command, cwd=course, env=environment, stdout=out, stderr=out) as watching:
        try:
            _wait(log, "0 of 7 pass, 0 of 18 points")
            file.write_text(module.solution.read_text() + WRONG)
            _wait(log, "softmax-over-queries")
            _wait(log, "6 of 7 pass, 16 of 18 points")
            file.write_text("def attention(q, k, v)\n    return q\n")
            _wait(log, "SyntaxError")
            file.write_text(module.solution.read_text())
            _wait(log, "7 of 7 pass, 18 of 18 points")
            watching.send_signal(2)
            assert watching.wait(20) == 130
        finally:
            watching.kill()
    assert "Traceback" not in log.read_text()


def _wait(log, text, seconds=60):
    end = time.monotonic() + seconds
    while text not in log.read_text():
        assert time.monotonic() < end, f"{text!r} did not come:\n{log.read_text()[-2000:]}"
        time.sleep(0.1)
