"""What the course remembers between runs: the last result of each exercise, and the hints that were read.

It lies in `.course/state.json`. A result is tied to the content of the learner's file, so an edit makes it stale.
"""

import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

from autograder.course import ROOT, Module

FILE = ROOT / ".course" / "state.json"


def load(file: Path = FILE) -> dict[str, Any]:
    """The state; empty where there is none. A file that cannot be read is put aside and said so."""
    fresh = {"results": {}, "hints": {}}
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        if not all(isinstance(state[key], dict) for key in fresh):
            raise ValueError("it lacks results or hints")
        return state
    except FileNotFoundError:
        return fresh
    except (ValueError, KeyError, TypeError) as error:
        aside = file.with_suffix(".broken.json")
        file.replace(aside)
        print(f"{file.name} could not be read ({error}); it is kept as {aside.name}, and counting starts anew", file=sys.stderr)
        return fresh


def save(state: dict[str, Any], file: Path = FILE) -> None:
    """Whole or not at all. Where the folder cannot be written, say so and go on: grading does not need it."""
    part = file.with_name(f"{file.name}.{os.getpid()}.part")
    try:
        file.parent.mkdir(exist_ok=True)
        part.write_text(json.dumps(state, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        part.replace(file)
    except OSError as error:
        print(f"progress is not kept: {file} cannot be written ({error.strerror})", file=sys.stderr)


def fingerprint(module: Module) -> str:
    """A short hash of the learner's file."""
    return hashlib.sha256(module.stub.read_bytes()).hexdigest()[:16] if module.stub.exists() else ""


def remember(records: list[dict[str, Any]]) -> None:
    """Keep the results of a run of the learner's own files."""
    state = load()
    for record in records:
        module = Module(record["module"])
        kept = {key: record[key] for key in ("status", "points", "max_points", "first_difference", "mistakes")}
        state["results"][f"{module.name}/{record['exercise']}"] = {**kept, "file": fingerprint(module)}
    save(state)
