"""Fetch a released GPT-2 and hold it against what others have measured on it.

Prints a table of what was published and what is found: the file's size and hash, the number of parameters, logits,
log-likelihoods, and texts that it must write. Exit status: 0 all agree, 1 something differs, 2 the weights cannot be had.
"""

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path

from autograder import facts
from autograder.hub import RELEASES, download, measured


def arguments(parser):
    parser.add_argument("model", nargs="?", default="gpt2", choices=tuple(RELEASES), help="the released model (default: gpt2)")
    parser.add_argument("--text", metavar="FILE", help="tinyshakespeare's input.txt: adds the loss of a published batch")
    parser.add_argument(
        "--parts",
        choices=("own", "auto", "solutions"),
        default="solutions",
        help="whose gpt2.py loads and runs (default: solutions)",
    )


@dataclass(frozen=True)
class Line:
    """One row of the table; `agrees` is None where there is nothing to compare."""

    what: str
    expected: str
    found: str
    agrees: bool | None
    source: str


def run(arguments) -> int:
    from rich.console import Console

    from autograder.assemble import Assembled

    text = Path(arguments.text).read_bytes() if arguments.text else None
    path, parts = download(arguments.model), Assembled(arguments.parts)
    progress, lines = Console(stderr=True), []
    with progress.status("") as status:
        for line in checks(arguments.model, path, parts, text):
            status.update(f"{line.what} ...")
            lines.append(line)
    _print(lines)
    differ = sum(line.agrees is False for line in lines)
    print(f"{path}\nloaded and run by {parts.words}")
    if arguments.model != "gpt2":
        print(f"nothing but the shapes of {arguments.model} was found in print")
    print(f"{differ} of {len(lines)} differ" if differ else "all agree")
    return int(differ > 0)


def _print(lines: list[Line]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("what", "expected", "found", "", "published in")
    said = {True: ("agrees", "green"), False: ("differs", "red"), None: ("", "")}
    for line in lines:
        table.add_row(*map(Text, (line.what, line.expected, line.found)), Text(*said[line.agrees]), Text(line.source))
    Console().print(table)


def checks(name: str, path: Path, parts, text: bytes | None):
    """Every line of the table, the cheap ones first."""
    import torch

    release = RELEASES[name]
    for what, expected, found in measured(path, release):
        yield Line(f"file: {what}", str(expected), str(found), found == expected, f"the hub, {release.repository}")
    try:
        model = parts.gpt2.from_pretrained(path)
    except ValueError as error:
        yield Line("file: loads", "every parameter, no other", str(error), False, "")
        return
    found = sum(parameter.numel() for parameter in model.parameters())
    yield Line("parameters", f"{release.parameters:,}", f"{found:,}", found == release.parameters, "follows from the shapes")
    if name == "gpt2":
        vocabulary = parts.vocabulary(model.config.vocab_size, path)
        with torch.no_grad():
            yield from _numbers(model)
            yield from _likelihoods(model, vocabulary)
            yield from _greedy(parts.gpt2, model, vocabulary)
            yield _batch(model, vocabulary, text)


def _numbers(model):
    import torch

    for fact in facts.ROWS:
        found = dict(model.named_parameters())["wte.weight"][fact.token, : len(fact.values)]
        yield _close(f"embedding of token {fact.token}", fact.values, found.tolist(), 1e-6, fact.source)
    for fact in facts.LOGITS:
        logits = model(torch.tensor([fact.ids]))[0, -1]
        ids = " ".join(map(str, fact.ids))
        if fact.values:
            found = [logits[token].item() for token in fact.values]
            yield _close(f"logits after {ids}", tuple(fact.values.values()), found, 1e-2, fact.source)
        largest = int(logits.argmax())
        yield Line(f"largest logit after {ids}", str(fact.largest), str(largest), largest == fact.largest, fact.source)
    ids, mean, source = facts.MEAN_LOGIT
    found = model(torch.tensor([ids])).double().mean().item()
    yield _close(f"mean of all logits for {' '.join(map(str, ids))}", (mean,), [found], 1e-2, source)


def _likelihoods(model, vocabulary):
    import torch

    for fact in facts.LOG_LIKELIHOODS:
        before = vocabulary.encode(fact.context)
        ids = torch.tensor(vocabulary.encode(fact.context + fact.continuation))
        log_probs = model(ids[None, :-1])[0].log_softmax(dim=-1)
        each = log_probs.gather(1, ids[1:, None])[len(before) - 1 :, 0]
        words = f"log p of {_short(fact.continuation)} after {_short(fact.context)}, nats"
        yield _close(words, (fact.nats,), [each.sum().item()], 1e-3 * -fact.nats, fact.source)
        if fact.each:
            yield _close(f"the same, each of {len(fact.each)} tokens", fact.each, each.tolist(), 1e-2, fact.source)


def _greedy(gpt2, model, vocabulary):
    import torch

    for fact in facts.GREEDY:
        ids = torch.tensor([vocabulary.encode(fact.prompt)])
        wanted = vocabulary.encode(fact.prompt + fact.continuation)[ids.shape[1] :]
        new = gpt2.generate(model, ids, len(wanted), temperature=0.0)[0, ids.shape[1] :].tolist()
        found = b"".join(vocabulary.bytes[token] for token in new).decode(errors="replace")
        yield Line(f"{_short(fact.prompt)} goes on", repr(fact.continuation), repr(found), new == wanted, fact.source)


def _batch(model, vocabulary, text: bytes | None) -> Line:
    """The loss of 4 x 64 tokens from the start of tinyshakespeare, `<|endoftext|>` in front of each paragraph."""
    import torch

    loss, source = facts.BATCH_LOSS
    what = "loss of a batch of tinyshakespeare, nats"
    if text is None:
        return Line(what, str(loss), "not asked for: --text FILE", None, source)
    pieces = text[:4096].decode("utf-8", errors="replace").replace("\r\n", "\n").split("\n\n")
    ids = [token for piece in pieces for token in (vocabulary.end, *vocabulary.encode(piece + "\n\n"))][:257]
    if len(ids) < 257 or hashlib.sha256(struct.pack("<257H", *ids)).hexdigest() != facts.BATCH_IDS:
        return Line(what, str(loss), "the file does not start as tinyshakespeare does", False, source)
    batch = torch.tensor(ids)
    logits = model(batch[:-1].view(4, 64))
    found = torch.nn.functional.cross_entropy(logits.flatten(0, 1), batch[1:]).item()
    return _close(what, (loss,), [found], 1e-4, source)


def _close(what: str, expected: tuple[float, ...], found: list[float], within: float, source: str) -> Line:
    gaps = [abs(a - b) for a, b in zip(expected, found, strict=True)]
    more = f" and {len(expected) - 1} more" if len(expected) > 1 else ""
    said = f"{found[0]:.6f}, largest gap {max(gaps):.2g} (allowed: {within:.2g})"
    return Line(what, f"{expected[0]:.6f}{more}", said, all(gap <= within for gap in gaps), source)


def _short(text: str) -> str:
    return repr(text if len(text) <= 30 else text[:27] + "...")
