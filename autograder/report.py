"""A result as text, at most eight lines, and as the JSON record of `--report`."""

from typing import Any

from autograder.result import Mistake, Result

MOST_LINES = 8
LEFT = 18  # width of the left column


def text(result: Result) -> str:
    """The report of one exercise, the same words behind every door."""
    lines = [_headline(result)]
    if result.status == "todo":
        return f"{result.module}  {result.exercise}: to write, at {result.file}:{result.line}"
    if result.status == "pass":
        return "\n".join(lines + [_row("", fact) for fact in _rests(result)])
    if result.matched:
        lines.append(_row("match", " ".join(result.matched)))
    if result.first_difference:
        lines.append(_row("first to differ", " ".join(filter(None, [result.first_difference, result.shape]))))
    if result.at:
        lines.append(_row("at", result.at))
    if result.message:
        lines.append(_row(_WORD.get(result.status, "because"), result.message))
    lines += [_row("same as", _named(mistake)) for mistake in result.mistakes]
    if result.alternatives:
        lines.append(
            _row("same as", " or ".join(" + ".join(mistake.id for mistake in group) for group in result.alternatives[:3]))
        )
    notes = [_row("true of yours" if fact == result.facts[0] else "", fact) for fact in result.facts] + [
        _row("", note) for note in _rests(result)
    ]
    lines += notes[: max(MOST_LINES - 1 - len(lines), 0)]
    lines.append(_row("look at", _place(result)))
    return "\n".join(lines)


_WORD = {"error": "raised", "timeout": "stopped", "forbidden": "forbidden"}


def _headline(result: Result) -> str:
    earned = f"{result.points} of {result.max_points} point{'s' * (result.max_points != 1)}"
    return f"{result.module}  {result.exercise}".ljust(48) + f"{earned}     seed {result.seed}"


def _row(left: str, right: str) -> str:
    return f"  {left.ljust(LEFT)}{right}"


def _named(mistake: Mistake) -> str:
    return f"{mistake.id}: {mistake.text}"


def _rests(result: Result) -> list[str]:
    facts = []
    if result.rests_on:
        facts.append(f"right, but it rests on {', '.join(result.rests_on)}: mend that first")
    if result.borrowed:
        facts.append(f"borrowed from the solutions: {', '.join(result.borrowed)}")
    return facts


def _place(result: Result) -> str:
    where = f"{result.file}:{result.line} {result.exercise}" if result.line else result.file
    return f'{where} · lesson "{result.lesson}"' if result.lesson else where


def record(result: Result) -> dict[str, Any]:
    """The result in the form of the JSON report."""
    facts = list(result.facts)
    if result.alternatives:
        facts.append("either " + " or ".join(" + ".join(mistake.id for mistake in group) for group in result.alternatives))
    return {
        "module": result.module,
        "exercise": result.exercise,
        "status": result.status,
        "points": result.points,
        "max_points": result.max_points,
        "matched": result.matched,
        "first_difference": result.first_difference,
        "mistakes": [mistake.id for mistake in result.mistakes],
        "facts": facts + _rests(result),
        "message": text(result),
    }


def document(results: list[Result], seed: int, device: str) -> dict[str, Any]:
    """The JSON report of a run."""
    return {"seed": seed, "device": device, "exercises": [record(result) for result in results]}
