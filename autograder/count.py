"""Count a model's parameters from its config.json: `course count CONFIG.json`.

The numbers are the solution's of 11_parameter_counting. A part that has no function of its own is what a count
gains when one line of the configuration changes: biases are the difference that `bias` makes.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from autograder.course import Module
from autograder.loader import solution

LONG = 131_072  # positions for which the cache is told too, where positions are computed and not learned
NUMBERS = (
    "n_layer n_embd n_head n_inner n_positions vocab_size num_hidden_layers hidden_size num_attention_heads "
    "num_key_value_heads head_dim intermediate_size max_position_embeddings"
).split()
SWITCHES = "tie_word_embeddings attention_bias mlp_bias add_cross_attention".split()


MODULE = Module("11_parameter_counting")


class Part(NamedTuple):
    """One row of the table: `formula` in the course's letters for sizes, `count` the entries it stands for."""

    name: str
    formula: str
    count: int


def count(path: str | Path, guess: bool = True) -> int:
    """Print the parameters of a model part by part; returns the exit status: 0, or 2 where the file cannot be read.

    guess  ask for a guess of the MLP's share first, where somebody can type one
    """
    try:
        c = solution(MODULE).read_config(load(path))
    except (ValueError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        print(f"course count: {path}: {reason}", file=sys.stderr)
        return 2
    _show(path, c, _ask() if guess and sys.stdin.isatty() else None)
    return 0


def load(path: str | Path) -> dict[str, Any]:
    """The contents of a config.json. Raises ValueError naming the field whose value no configuration can have."""
    try:
        config = json.loads(Path(path).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8 text: expected a config.json") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON, at line {error.lineno}: {error.msg}") from None
    if not isinstance(config, dict):
        raise ValueError(f"holds a JSON {type(config).__name__}: expected an object with the fields of a config.json")
    for name in NUMBERS:
        value = config.get(name)
        if value is not None and (type(value) is not int or value < 1):
            raise ValueError(f"{name} = {json.dumps(value)}: expected a whole number above 0")
    for name in SWITCHES:
        if not isinstance(config.get(name), bool | None):
            raise ValueError(f"{name} = {json.dumps(config[name])}: expected true or false")
    return config


def sizes(c) -> dict[str, int]:
    """The letters of the formulas."""
    letters = {"L": c.n_layer, "C": c.d_model, "H": c.n_head, "Hkv": c.n_kv_head, "D": c.d_head}
    return letters | {"F": c.d_ff, "V": c.vocab_size, "n_ctx": c.n_ctx}


def parts(c) -> tuple[list[Part], list[Part]]:
    """The parts of one block, and those that the model has once."""
    s = solution(MODULE)
    plain, small = replace(c, bias=False), replace(c, norm_bias=False)
    gated, inner = ("gate, up, down", "2*F") if c.gated_mlp else ("up, down", "F")
    q_and_out = s.attention_parameters(replace(plain, n_kv_head=0))
    block = [
        Part("attention: q", "C*H*D", q_and_out // 2),
        Part("attention: k, v", "2*C*Hkv*D", s.attention_parameters(plain) - q_and_out),
        Part("attention: out", "H*D*C", q_and_out // 2),
        Part("attention's biases", "H*D + 2*Hkv*D + C", s.attention_parameters(c) - s.attention_parameters(plain)),
        Part(f"MLP: {gated}", "3*C*F" if c.gated_mlp else "2*C*F", s.mlp_parameters(plain)),
        Part("MLP's biases", f"{inner} + C", s.mlp_parameters(c) - s.mlp_parameters(plain)),
        Part("two norms: gains", "2*C", s.norm_parameters(small)),
        Part("two norms: biases", "2*C", s.norm_parameters(c) - s.norm_parameters(small)),
    ]
    tables = replace(c, learned_positions=False)
    empty = replace(c, n_layer=0)  # nothing but tables, final norm and head
    head = s.count_parameters(empty) - s.count_parameters(replace(empty, tied=True))
    once = [
        Part("wte", "V*C", s.embedding_parameters(tables)),
        Part("wpe", "n_ctx*C", s.embedding_parameters(c) - s.embedding_parameters(tables)),
        Part("L blocks", "L * block", c.n_layer * s.block_parameters(c)),
        Part("final norm", "2*C" if c.norm_bias else "C", s.count_parameters(empty) - s.embedding_parameters(c) - head),
        Part("head", "C*V", head),
    ]
    return block, once


def _ask() -> float | None:
    """The learner's guess of the MLP's share, between 0 and 1; None where they give none."""
    print("Guess first: of the numbers in the blocks' matrices, which share is the MLP's?")
    while True:
        try:
            typed = input("percent (Enter to skip): ").strip().rstrip("%").strip()
        except EOFError:
            return None
        if not typed:
            return None
        try:
            percent = float(typed)
        except ValueError:
            percent = -1.0
        if 0 <= percent <= 100:
            return percent / 100
        print("expected a number from 0 to 100")


def _show(path: str | Path, c, guess: float | None) -> None:
    from rich.console import Console
    from rich.table import Table

    s = solution(MODULE)
    block, once = parts(c)
    console = Console(highlight=False, soft_wrap=True)
    console.print(f"{path}: " + " · ".join(f"{letter} {size:,}" for letter, size in sizes(c).items()), markup=False)
    table = Table("part", "formula", "count", box=None, pad_edge=False)
    table.columns[2].justify = "right"
    for part in block:
        _row(table, part)
    table.add_section()
    table.add_row("one block", "the sum of these", f"{s.block_parameters(c):,}")
    table.add_row()
    for part in once:
        _row(table, part, tied=c.tied)
    table.add_row("total", "", f"{s.count_parameters(c):,}", style="bold")
    console.print(table)
    console.print(f"\nMLP's share of the blocks' matrices   {s.mlp_share(c):.4f}{_compared(s.mlp_share(c), guess)}")
    token = s.kv_cache_bytes_per_token(c)
    console.print(f"KV cache, 2 bytes a value              {token:,} bytes a token")
    for positions in sorted({c.n_ctx} if c.learned_positions else {c.n_ctx, LONG}):
        console.print(f"  at {positions:,} positions".ljust(39) + f"{_bytes(positions * token)}")
    for kind, size in (("float32", 4), ("bfloat16", 2), ("4 bits", 0.5)):
        console.print(f"weights in {kind}".ljust(39) + _bytes(s.weight_bytes(c, size)))


def _row(table, part: Part, tied: bool = False) -> None:
    """A part that this model lacks has no formula."""
    absent = "wte once more" if part.name == "head" and tied else "none"
    table.add_row(part.name, part.formula if part.count else absent, f"{part.count:,}")


def _compared(share: float, guess: float | None) -> str:
    if guess is None:
        return ""
    gap = 100 * (guess - share)
    verdict = "right to a tenth of a point" if abs(gap) < 0.1 else f"{abs(gap):.1f} points too {'high' if gap > 0 else 'low'}"
    return f"   your guess {100 * guess:g} %: {verdict}"


def _bytes(number: int) -> str:
    """The exact number, and the same in the largest unit that leaves at least one."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if number >= 1024**power:
            return f"{number:,} bytes = {number / 1024**power:.4g} {unit}"
    return f"{number:,} bytes"
