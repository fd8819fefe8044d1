"""Say what is installed, on which device the course runs, what is wrong and how to mend it."""

import importlib.metadata
import platform

from autograder import checkpoints
from autograder.course import ROOT, ready

PACKAGES = ("torch", "numpy", "pytest", "nbgrader", "tiktoken", "matplotlib", "safetensors", "rich", "jaxtyping", "regex")
OPTIONAL = ("transformers", "pytest-xdist", "distributed")


def arguments(parser):
    pass


def run(arguments) -> int:
    complaints = []
    print(f"python        {platform.python_version()} on {platform.system()} {platform.machine()}")
    for name in PACKAGES + OPTIONAL:
        try:
            print(f"{name:<14}{importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            print(f"{name:<14}not installed{' (optional)' * (name in OPTIONAL)}")
            if name in PACKAGES:
                complaints.append(f"{name} is not installed: run `make test`, or `pip install -e .`")
    complaints += _torch() + _files()
    print("".join(f"wrong: {complaint}\n" for complaint in complaints) or "all is well")
    return int(bool(complaints))


def _torch() -> list[str]:
    try:
        import torch
    except Exception as error:  # a broken installation can fail in many ways
        return [f"torch cannot be imported ({type(error).__name__}: {error}): install it anew"]
    if torch.cuda.is_available():
        print(f"device        {torch.cuda.get_device_name()}, CUDA {torch.version.cuda}: --device cuda works")
    else:
        print(f"device        cpu, {torch.get_num_threads()} threads; no GPU is found")
    return []


def _files() -> list[str]:
    """Shipped files that are missing or changed, and learners' files that are gone."""
    complaints = []
    try:
        names = checkpoints.pinned()
    except checkpoints.CheckpointError as error:
        return [str(error)]
    for name in names:
        try:
            checkpoints.verified(name)
        except checkpoints.CheckpointError as error:
            complaints.append(str(error))
    print(f"checkpoints   {len(names) - len(complaints)} of {len(names)} files as released")
    for module in ready():
        if not module.stub.exists():
            complaints.append(f"{module.stub.relative_to(ROOT)} is missing: `course sync {module.name[:2]}` brings the stub back")
    return complaints
