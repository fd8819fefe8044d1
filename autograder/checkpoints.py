"""Files that must be exactly what was released: their SHA-256 stand in `checkpoints/SHA256SUMS`.

The list has the format of `sha256sum`, so `cd checkpoints && sha256sum -c SHA256SUMS` checks it too.
"""

import hashlib
from pathlib import Path

from autograder.course import ROOT

FOLDER = ROOT / "checkpoints"
SUMS = FOLDER / "SHA256SUMS"


class CheckpointError(Exception):
    """A shipped file is missing or was changed. The message names the file and the expected hash."""


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def pinned() -> dict[str, str]:
    """File name below `checkpoints/` -> SHA-256."""
    try:
        lines = SUMS.read_text().splitlines()
    except FileNotFoundError:
        raise CheckpointError(f"{SUMS.relative_to(ROOT)} is missing: bring it back with `git checkout checkpoints`") from None
    return {name: digest for digest, name in (line.split(maxsplit=1) for line in lines if line.strip())}


def verified(name: str, folder: Path = FOLDER) -> Path:
    """The path of a shipped file, after its hash was checked.

    Raises CheckpointError when the file is missing, was edited, or is not pinned.
    """
    path, expected = folder / name, pinned().get(name)
    if expected is None:
        raise CheckpointError(f"checkpoints/{name} is not listed in checkpoints/SHA256SUMS: expected one line for it")
    mend = f"bring it back with `git checkout checkpoints/{name}`"
    if not path.exists():
        raise CheckpointError(f"checkpoints/{name} is missing (expected SHA-256 {expected}): {mend}")
    found = sha256(path)
    if found != expected:
        raise CheckpointError(f"checkpoints/{name} was changed: its SHA-256 is {found}, expected {expected}; {mend}")
    return path


def pin(*names: str) -> None:
    """Write the present hashes of these files to the list (after recording or training, never while grading)."""
    hashes = pinned() if SUMS.exists() else {}
    hashes.update({name: sha256(FOLDER / name) for name in names})
    SUMS.write_text("".join(f"{digest}  {name}\n" for name, digest in sorted(hashes.items())))
