"""Record the golden tensors of modules from the small trained GPT-2.

Writes checkpoints/golden/NN_name.safetensors and its manifest, and pins their hashes. On one machine the
result is the same, byte for byte, each time.
"""

from autograder.commands import chosen
from autograder.golden import record


def arguments(parser):
    parser.add_argument("modules", nargs="*", metavar="NN", help="modules to record (default: all)")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the reference runs (default: cpu)")


def run(arguments) -> int:
    import torch

    if arguments.device == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: PyTorch finds no GPU here; expected one, or --device cpu")
    for module in chosen(arguments.modules):
        case = module.case()
        if any(exercise.golden for exercise in case.exercises.values()):
            print("\n".join(f"recorded: checkpoints/{name}" for name in record(module.name, case, arguments.device)))
    return 0
