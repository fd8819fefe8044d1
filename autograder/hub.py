"""Fetch a model from the hub into the cache that the whole ecosystem shares, and hold it against what was released.

`huggingface_hub` does the fetching: `HF_HOME`, `HF_HUB_CACHE`, `HF_ENDPOINT` and `HF_HUB_OFFLINE` mean what they mean
everywhere, and a model that another program has fetched is found. One thing is added: a download that was stopped,
by a broken line or by Ctrl-C, goes on where it stopped when it is asked for again. Nothing here imports torch.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit


class WeightsError(ValueError):
    """A checkpoint cannot be found, fetched or read. The message names the file and what was expected of it."""


@dataclass(frozen=True)
class Release:
    """A released model: where it lies, how many parameters its shapes make, and, where known, its file's size and hash."""

    repository: str
    parameters: int
    bytes: int | None = None
    sha256: str | None = None


# Sizes and hash: the hub's own records of openai-community/gpt2, revision 607a30d783dfa663caf39e06633721c8d4cfcd7e.
# Parameter counts follow from the shapes (module 11); hashes of the three larger files were not found in print.
RELEASES = {
    "gpt2": Release(
        "openai-community/gpt2", 124_439_808, 548_105_171, "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707"
    ),
    "gpt2-medium": Release("openai-community/gpt2-medium", 354_823_168),
    "gpt2-large": Release("openai-community/gpt2-large", 774_030_080),
    "gpt2-xl": Release("openai-community/gpt2-xl", 1_557_611_200),
}
FILES = ("model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json")
OFFLINE = "without a network, take the small model that comes with the course: checkpoints/small (course generate --model small)"


def fetch(name: str) -> Path:
    """The weight file of a model on the hub, beside its config.json; a released one is checked, each time.

    Raises WeightsError when there is no such model, when it cannot be had, and when it is not what was released.
    """
    path = download(name)
    for what, expected, found in measured(path, RELEASES.get(name)):
        if found != expected:
            raise WeightsError(f"{path}: its {what} is {found}, expected {expected}: delete {path.resolve()} and fetch it again")
    return path


def measured(path: Path, release: Release | None):
    """What is known of a released file, and what is found: name, expected, found. The hash only where the size is right."""
    if release is None or release.bytes is None or path.name != "model.safetensors":
        return
    size = path.stat().st_size
    yield "size in bytes", release.bytes, size
    if size == release.bytes:
        yield "SHA-256", release.sha256, sha256(path)


def sha256(path: Path) -> str:
    """Read in pieces: the file may be larger than the memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(name: str) -> Path:
    """The weight file (or the index of a sharded one) of a model on the hub, from the cache where it is there already."""
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError, LocalEntryNotFoundError, RepositoryNotFoundError

    repository = RELEASES[name].repository if name in RELEASES else name
    nothing = "" if name in RELEASES else f"{name!r} is no file and no folder here; "
    try:
        offline = _unreachable(repository)
        get = _cached if offline else _remote
        get(repository, "config.json")
        for file in FILES:
            try:
                path = get(repository, file)
                break
            except EntryNotFoundError:
                continue
        else:
            raise WeightsError(f"{repository} on the hub holds no weights: expected one of {' '.join(FILES)}")
        if path.suffix == ".json":
            for part in sorted(set(weight_map(path).values())):
                get(repository, part)
        return path
    except (RepositoryNotFoundError, HFValidationError):
        raise WeightsError(f"{nothing}the hub has no model {repository}, or none that is open to you") from None
    except LocalEntryNotFoundError:
        raise WeightsError(f"{nothing}{repository} is not in the cache, and {offline}: {OFFLINE}") from None
    except EntryNotFoundError:
        raise WeightsError(f"{repository} on the hub holds no config.json: expected a GPT-2") from None


def weight_map(index: Path) -> dict[str, str]:
    """Which part of a sharded checkpoint holds which tensor."""
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        outside = [name for name in names.values() if Path(name).name != name]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise WeightsError(f"{index} is no index of a sharded checkpoint: {type(error).__name__}: {error}") from None
    if outside:
        raise WeightsError(f"{index} names {outside[0]!r}, which is outside its own folder")
    return names


def _unreachable(repository: str) -> str:
    """Why the hub cannot be reached; empty where it answers. Asked once, so that without a network nothing waits twice."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, HFValidationError, RepositoryNotFoundError

    try:
        get_hf_file_metadata(hf_hub_url(repository, "config.json"))
        return ""
    except (RepositoryNotFoundError, EntryNotFoundError, HFValidationError):
        raise
    except Exception as error:  # the transport's own errors, which are others in each release of huggingface_hub
        reason = (str(error).strip().splitlines() or [""])[0]
        return f"{constants.ENDPOINT} cannot be reached ({type(error).__name__}: {reason})"


def _cached(repository: str, file: str) -> Path:
    from huggingface_hub import hf_hub_download

    return Path(hf_hub_download(repository, file, local_files_only=True))


def _remote(repository: str, file: str) -> Path:
    """One file of a model. What fails on the way is told with what is already here."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError

    url = hf_hub_url(repository, file)
    try:
        known = get_hf_file_metadata(url)
        here = isinstance(try_to_load_from_cache(repository, file, revision=known.commit_hash), str)
        if not here and _is_sha256(known.etag) and known.size:
            _resume(url, repository, file, known)
        return Path(hf_hub_download(repository, file))  # finds what was just fetched, and writes nothing twice
    except (EntryNotFoundError, WeightsError):
        raise
    except Exception as error:  # as above
        raise WeightsError(f"{file} of {repository} could not be fetched: {type(error).__name__}: {error}") from error


def _is_sha256(etag: str | None) -> bool:
    """Large files are known on the hub by their SHA-256, small ones by a shorter hash."""
    return etag is not None and len(etag) == 64


def _resume(url: str, repository: str, file: str, known) -> None:
    """Put a large file into the cache under its hash, going on where an earlier try stopped."""
    from huggingface_hub import constants
    from huggingface_hub.file_download import http_get, repo_folder_name
    from huggingface_hub.utils import WeakFileLock, build_hf_headers

    folder = repo_folder_name(repo_id=repository, repo_type="model")
    blob = Path(constants.HF_HUB_CACHE, folder, "blobs", known.etag)
    lock = Path(constants.HF_HUB_CACHE, ".locks", folder, f"{known.etag}.lock")  # the one that huggingface_hub takes
    part = blob.with_name(f"{known.etag}.incomplete")
    for needed in (blob.parent, lock.parent):
        needed.mkdir(parents=True, exist_ok=True)
    headers = build_hf_headers()
    if urlsplit(known.location).netloc != urlsplit(url).netloc:
        headers.pop("authorization", None)  # a token is for the hub, not for the storage that it points to
    with WeakFileLock(lock):
        if blob.exists():
            return
        with part.open("ab") as to:
            if to.tell() > known.size:
                to.truncate(0)
                to.seek(0)
            try:
                http_get(
                    known.location,
                    to,
                    resume_size=to.tell(),
                    headers=headers,
                    expected_size=known.size,
                    displayed_filename=file,
                )
            except Exception as error:
                raise WeightsError(
                    f"{file} of {repository} broke off at {to.tell():,} of {known.size:,} bytes "
                    f"({type(error).__name__}: {error}): ask for it again, and it goes on from there"
                ) from error
        found = sha256(part)
        if found != known.etag:
            part.unlink()
            raise WeightsError(f"{file} of {repository} was damaged on the way: SHA-256 {found}, expected {known.etag}")
        part.replace(blob)
