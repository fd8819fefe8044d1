"""The `course` command: one program, one file in `autograder/commands/` for each of its commands."""

import argparse
import importlib
import sys

from autograder.checkpoints import CheckpointError

COMMANDS = (
    "status",
    "next",
    "watch",
    "hint",
    "reset",
    "demo",
    "check",
    "faults",
    "sync",
    "record",
    "count",
    "weights",
    "generate",
    "doctor",
)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status: 0 done, 1 found wanting, 2 wrongly called."""
    parser = argparse.ArgumentParser(prog="course", description="Forward Pass: build a GPT-2, graded as you write.")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        command = importlib.import_module(f"autograder.commands.{name}")
        help, _, detail = command.__doc__.partition("\n")
        own = commands.add_parser(
            name, help=help, description=command.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
        )
        command.arguments(own)
        own.set_defaults(run=command.run)
    chosen = parser.parse_args(arguments)
    try:
        return chosen.run(chosen)
    except (ValueError, OSError, CheckpointError) as error:
        print(f"course {chosen.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ncourse: stopped", file=sys.stderr)
        return 130
