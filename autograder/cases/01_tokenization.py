"""The case of 01_tokenization. Nothing here imports torch."""

import re
import unicodedata
from collections import Counter
from functools import cache, lru_cache, partial
from itertools import pairwise
from types import MappingProxyType

import regex

from autograder.case import ANY, Case, Draw, refusal
from autograder.case import sample as _sample
from autograder.checkpoints import verified
from autograder.compare import show

case = Case("01_tokenization")
sample = partial(_sample, gradient=False)

# ---------------------------------------------------------------- bytes_to_unicode


@case.step
def _kept():
    return [*range(33, 127), *range(161, 173), *range(174, 256)]


@case.step
def _stand_ins(_kept):
    return {byte: 256 + place for place, byte in enumerate(byte for byte in range(256) if byte not in _kept)}


@case.step
def characters(_kept, _stand_ins):
    return {byte: chr(byte) for byte in _kept} | {byte: chr(code) for byte, code in _stand_ins.items()}


@case.step
def order(characters):
    return list(characters)


def _released_table():
    """Another way to the same table: by Unicode category instead of by ranges."""
    shown = [byte for byte in range(256) if unicodedata.category(chr(byte)) not in ("Cc", "Cf", "Zs")]
    table = {byte: chr(byte) for byte in shown}
    for byte in range(256):
        table.setdefault(byte, chr(256 + len(table) - len(shown)))
    return table, list(table)


case.exercise(
    "bytes_to_unicode()",
    returns=("characters", "order"),
    inputs=lambda draw: [sample("the 256 bytes")],
    points=2,
    lesson="A name for every byte",
    hints=(
        "188 bytes have a character that can be seen. What do the other 68 need?",
        "Go through the bytes twice: first those that keep their character, then the rest, counting the rest as you go.",
        "kept: 33..126, 161..172, 174..255, ends included, as chr(byte); the i-th of the rest, from 0: chr(256 + i)",
    ),
    reference=_released_table,
    probe="bytes_to_unicode",
)


def _keeping(name, kept, text):
    @case.fault(name, at="_kept", tensor="characters", text=text)
    def _():
        return list(kept)


_keeping("range-ends-missing", [*range(33, 126), *range(161, 172), *range(174, 255)], "does Python's range include its end?")
_keeping(
    "range-end-of-tilde-missing",
    [*range(33, 126), *range(161, 173), *range(174, 256)],
    "which character has the code 126, and does your first range reach it?",
)
_keeping(
    "space-keeps-its-character",
    [*range(32, 127), *range(161, 173), *range(174, 256)],
    "can a space be seen, and what separates the two tokens of a line?",
)
_keeping(
    "range-end-of-not-sign-missing",
    [*range(33, 127), *range(161, 172), *range(174, 256)],
    "does your second range reach its end, 172?",
)
_keeping("range-end-of-last-byte-missing", [*range(33, 127), *range(161, 173), *range(174, 255)], "which byte comes after 254?")
_keeping("range-starts-too-late", [*range(34, 127), *range(162, 173), *range(175, 256)], "where does each range begin?")
_keeping(
    "exclamation-mark-replaced",
    [*range(34, 127), *range(161, 173), *range(174, 256)],
    "which byte is the first that can be seen?",
)
_keeping("delete-keeps-its-character", [*range(33, 128), *range(161, 173), *range(174, 256)], "is the byte 127 one of the 188?")
_keeping("soft-hyphen-keeps-its-character", [*range(33, 127), *range(161, 256)], "is there a gap between 161 and 255?")
_keeping(
    "no-break-space-keeps-its-character", [*range(33, 127), *range(160, 173), *range(174, 256)], "is the byte 160 one of the 188?"
)
_keeping("both-invisible-latin-bytes-kept", [*range(33, 127), *range(160, 256)], "are the bytes 160 and 173 two of the 188?")
_keeping("only-bytes-to-32-replaced", range(33, 256), "which bytes above 126 cannot be seen?")
_keeping(
    "only-control-bytes-replaced",
    [*range(32, 127), *range(128, 256)],
    "is a space among the bytes that need a stand-in, and what of those from 128 to 160?",
)
_keeping("only-ascii-kept", range(33, 127), "how many bytes keep their character: 94, or 188?")
_keeping(
    "letters-and-digits-alone-kept",
    [byte for byte in range(128) if chr(byte).isalnum()],
    "does a sign such as ! keep its character?",
)
_keeping("every-byte-replaced", (), "which bytes keep their own character?")
_keeping("every-byte-kept", range(256), "what would a space or a newline do to a file of tokens?")


def _standing_in(name, code, text):
    @case.fault(name, at="_stand_ins", tensor="characters", text=text)
    def _(right):
        return {byte: code(byte, place, len(right)) for place, byte in enumerate(right)}


_standing_in(
    "stand-ins-at-256-plus-byte",
    lambda byte, place, n: 256 + byte,
    "are the stand-ins numbered as they come, or by their byte? what stands in for 127?",
)
_standing_in(
    "stand-ins-from-257", lambda byte, place, n: 257 + place, "which character stands in for the first of the 68, the byte 0?"
)
_standing_in(
    "stand-ins-from-255", lambda byte, place, n: 255 + place, "which character stands in for the byte 0, and which byte keeps ÿ?"
)
_standing_in("stand-ins-from-the-last", lambda byte, place, n: 255 + n - place, "in which order do the 68 get their numbers?")
_standing_in(
    "stand-ins-all-alike", lambda byte, place, n: 256, "do two bytes share a character? how could they be told apart again?"
)
_standing_in("stand-ins-from-0", lambda byte, place, n: place, "can the characters 0 to 67 be seen?")
_standing_in(
    "stand-ins-after-the-188",
    lambda byte, place, n: 188 + place,
    "the number of a stand-in and its id are not the same: from which character are they counted?",
)


@case.fault(
    "only-space-and-newline-replaced",
    at="characters",
    text="which texts other than plain English would come out right with two stand-ins?",
)
def _():
    return {byte: chr(byte) for byte in range(256)} | {32: "Ġ", 10: "Ċ"}


@case.fault("table-upside-down", at="characters", text="what do you look up: a byte, or a character?")
def _(right):
    return {character: byte for byte, character in right.items()}


@case.fault("codes-for-characters", at="characters", text="does your table hold characters, or their codes?")
def _(right):
    return {byte: ord(character) for byte, character in right.items()}


@case.fault("bytes-for-characters", at="characters", text="does your table hold characters, or byte strings?")
def _(right):
    return {byte: character.encode("utf-8") for byte, character in right.items()}


@case.fault("stand-ins-missing", at="characters", text="how many entries does your table have, and how many bytes are there?")
def _(_kept):
    return {byte: chr(byte) for byte in _kept}


@case.fault("order-by-byte", at="order", text="the order of the table is the order of the ids: which byte has the id 0?")
def _(characters):
    return sorted(characters)


@case.fault(
    "order-stand-ins-first", at="order", text="which bytes come first in the table: those that keep their character, or the 68?"
)
def _(_kept, _stand_ins):
    return list(_stand_ins) + _kept


# ---------------------------------------------------------------- count_pairs


@case.step
def _neighbours(ids):
    return list(pairwise(ids))


@case.step
def counts(_neighbours):
    return dict(Counter(_neighbours))


def _listed(draw: Draw, choices, n):
    return [1000 * value if value > 9 else value for value in draw.random.choices(choices, k=n)]


def count_inputs(draw: Draw):
    yield sample("[1, 2, 1, 2, 2]", ids=[1, 2, 1, 2, 2])
    yield sample("thirty ids", ids=_listed(draw, [0, 1, 2, 30], 30))
    yield sample("runs of equal ids", ids=[5, 5, 5, 5, 5, 2, 2, 5, 5])
    yield sample("pairs in both orders", ids=[3, 4, 3, 4, 0, 3, 0, 4])
    yield sample("two ids", ids=[7, 4])
    yield sample("one id", ids=[5])
    yield sample("no ids", ids=[])


def _counted_by_place(ids):
    found = {}
    for place in range(1, len(ids)):
        pair = ids[place - 1], ids[place]
        found[pair] = found.get(pair, 0) + 1
    return found


case.exercise(
    "count_pairs(ids)",
    returns="counts",
    inputs=count_inputs,
    points=1,
    lesson="Counting neighbours, and joining them",
    hints=(
        "How many pairs of neighbours have n ids?",
        "Walk along the list with each id and the one behind it, and add one to that pair's count.",
        "counts[(ids[i], ids[i+1])] += 1 for i = 0 .. n-2",
    ),
    reference=_counted_by_place,
)


def _pairing(name, make, text):
    @case.fault(name, at="_neighbours", tensor="counts", text=text)
    def _(ids):
        return make(ids)


def _spoiling(name, make, text):
    @case.fault(name, at="_neighbours", tensor="counts", text=text)
    def _(right):
        return make(right)


_pairing("count-every-second-pair", lambda ids: list(zip(ids[::2], ids[1::2])), "does your walk go on by one id, or by two?")
_pairing("count-misses-last-pair", lambda ids: list(pairwise(ids[:-1])), "does your loop reach the last two ids?")
_pairing("count-misses-first-pair", lambda ids: list(pairwise(ids[1:])), "does your loop begin with the first two ids?")
_pairing(
    "count-joins-end-to-start", lambda ids: list(zip(ids, ids[1:] + ids[:1])), "is the first id a neighbour of the last one?"
)
_pairing(
    "count-runs-past-the-end",
    lambda ids: [(ids[i], ids[i + 1]) for i in range(len(ids))],
    "which i is the last one for which ids[i+1] exists?",
)
_pairing(
    "count-all-combinations",
    lambda ids: [(ids[i], ids[j]) for i in range(len(ids)) for j in range(i + 1, len(ids))],
    "are two ids that do not touch each other a pair of neighbours?",
)
_pairing("count-at-distance-two", lambda ids: list(zip(ids, ids[2:])), "how far apart are the two ids that you count?")
_pairing("count-single-ids", list, "do you count ids, or pairs of ids?")
_spoiling(
    "count-without-overlaps",
    lambda pairs: list(_without_overlaps(pairs)),
    "how many pairs of neighbours are in 5 5 5: does the middle one belong to both?",
)
_spoiling(
    "count-skips-equal-neighbours", lambda pairs: [p for p in pairs if p[0] != p[1]], "are two equal ids a pair like any other?"
)
_spoiling("count-without-order", lambda pairs: [tuple(sorted(p)) for p in pairs], "are (1, 2) and (2, 1) the same pair?")
_spoiling("count-backwards", lambda pairs: [p[::-1] for p in pairs], "which of the two ids comes first in the pair?")
_spoiling("count-drops-id-0", lambda pairs: [p for p in pairs if all(p)], "is the id 0 an id like any other?")


def _without_overlaps(pairs):
    """As many as could be joined: of two equal pairs that share an id, the first alone."""
    last = None
    for pair in pairs:
        last = None if pair == last and pair[0] == pair[1] else pair
        if last:
            yield pair


@case.fault("count-each-pair-once", at="counts", text="a pair that stands in two places: what is its count?")
def _(right):
    return dict.fromkeys(right, 1)


@case.fault("count-starts-at-zero", at="counts", text="what is the count of a pair after it was seen for the first time?")
def _(right):
    return {pair: n - 1 for pair, n in right.items()}


@case.fault("count-starts-at-two", at="counts", text="is the first sight of a pair counted once?")
def _(right):
    return {pair: n + 1 for pair, n in right.items()}


@case.fault("count-only-repeated-pairs", at="counts", text="does a pair that stands once belong in the counts?")
def _(right):
    return {pair: n for pair, n in right.items() if n > 1}


@case.fault("count-as-shares", at="counts", text="a count is a whole number: what did you divide by?")
def _(right):
    total = sum(right.values())
    return {pair: n / total for pair, n in right.items()}


@case.fault("count-as-pairs-in-a-list", at="counts", text="what is asked for: a dictionary, or a list of entries?")
def _(right):
    return sorted(right.items(), key=lambda entry: -entry[1])


# ---------------------------------------------------------------- merge_pair


def _replaced(ids, new, fits, step=2, first=0, last=None):
    """Walk from the left; where two neighbours fit, put `new` down and go on by so many ids."""
    out, place = [], 0
    stop = len(ids) if last is None else len(ids) + last
    while place < len(ids):
        if first <= place and place + 1 < stop and fits(ids[place], ids[place + 1]):
            out.append(new)
            place += step
        else:
            out.append(ids[place])
            place += 1
    return out


def _is(pair):
    return lambda a, b: (a, b) == tuple(pair)


def _join(ids, pair, new):
    return _replaced(ids, new, _is(pair))


@case.step
def _fits(pair):
    """Whether two neighbours are the pair."""
    return _is(pair)


@case.step
def merged(ids, new_id, _fits):
    return _replaced(ids, new_id, _fits)


def merge_inputs(draw: Draw):
    yield sample("[1, 2, 3, 1, 2]", ids=[1, 2, 3, 1, 2], pair=(1, 2), new_id=9)
    yield sample("a last id that is no part of a pair", ids=[1, 2, 3], pair=(1, 2), new_id=9)
    yield sample("a pair that does not occur", ids=[5, 6], pair=(1, 2), new_id=9)
    yield sample("a run of three", ids=[5, 5, 5], pair=(5, 5), new_id=9)
    yield sample("runs of five and four", ids=[5, 5, 5, 5, 5, 1, 5, 5, 5, 5], pair=(5, 5), new_id=300)
    yield sample("thirty ids", ids=_listed(draw, [0, 1, 30], 30) + [1, 30000, 0], pair=(int("30000"), 0), new_id=40000)
    yield sample("the pair in both orders", ids=[2, 1, 2, 1, 1, 2, 2, 0, 2, 1], pair=(2, 1), new_id=3)
    yield sample("the pair twice in a row", ids=[1, 2, 1, 2], pair=(1, 2), new_id=9)
    yield sample("half a pair at the end", ids=[4, 1, 2, 1], pair=(1, 2), new_id=9)
    yield sample("one id", ids=[1], pair=(1, 2), new_id=9)
    yield sample("no ids", ids=[], pair=(1, 2), new_id=9)


def _joined_as_text(ids, pair, new_id):
    """Another way: let the regular expressions find the pair in a text of one character an id."""
    text = "".join(map(chr, ids))
    return [ord(character) for character in regex.sub(regex.escape("".join(map(chr, pair))), lambda found: chr(new_id), text)]


case.exercise(
    "merge_pair(ids, pair, new_id)",
    returns="merged",
    inputs=merge_inputs,
    points=2,
    lesson="Counting neighbours, and joining them",
    hints=(
        "An id that was joined with its neighbour is gone. Where must your walk go on?",
        "Build a new list: at each place either the new id, and two places on, or the old id, and one place on.",
        "ids[i], ids[i+1] = pair: append new_id, i += 2; otherwise append ids[i], i += 1; while i < n",
    ),
    reference=_joined_as_text,
)


def _lose_last(ids, new, fits):
    """The loop ends before the last place: the id there is kept only where a pair took it."""
    mark = object()
    taken = len(ids) > 1 and _replaced(list(ids) + [mark], mark, fits)[-2] is mark
    out = _replaced(ids, new, fits)
    return out if taken else out[:-1]


def _collapse(ids, new, fits):
    starts = {place for place in range(len(ids) - 1) if fits(ids[place], ids[place + 1])}
    return [new if place in starts else ids[place] for place in range(len(ids)) if place - 1 not in starts]


def _twice(ids, new, fits):
    starts = {place for place in range(len(ids) - 1) if fits(ids[place], ids[place + 1])}
    kept = [place for place in range(len(ids)) if place in starts or place - 1 not in starts]
    return [new if place in starts else ids[place] for place in kept]


def _from_right(ids, new, fits):
    return _replaced(ids[::-1], new, lambda a, b: fits(b, a))[::-1]


def _while_it_shrinks(ids, new, fits):
    for place in range(len(ids) - 1):
        if fits(ids[place], ids[place + 1]):
            ids[place : place + 2] = [new]
    return ids


def _in_one_place(ids, new, fits, places):
    for place in places:
        if fits(ids[place], ids[place + 1]):
            return ids[:place] + [new] + ids[place + 2 :]
    return ids


def _keep_one_after(ids, new, fits):
    out, place = [], 0
    while place < len(ids):
        if place + 1 < len(ids) and fits(ids[place], ids[place + 1]):
            out += [new, *ids[place + 2 : place + 3]]
            place += 3
        else:
            out.append(ids[place])
            place += 1
    return out


def _walking(name, make, text):
    @case.fault(name, at="merged", text=text)
    def _(ids, new_id, _fits):
        return make(ids, new_id, _fits)


def _fitting(name, make, text):
    @case.fault(name, at="_fits", tensor="merged", text=text)
    def _(pair):
        return make(*pair)


_walking("merge-loses-last-id", _lose_last, "when the last id is no part of a pair, does it survive your loop?")
_walking("merge-loses-last-id-always", lambda *how: _replaced(*how)[:-1], "does the result end where the ids end?")
_walking("merge-runs-collapse", _collapse, "in 5 5 5, to how many pairs may the middle id belong once it was used?")
_walking("merge-uses-ids-twice", _twice, "in 5 5 5, does one id go into two pairs?")
_walking("merge-from-the-right", _from_right, "in a run of three, which two ids are joined: from which end do you read?")
_walking(
    "merge-over-a-list-that-shrinks", _while_it_shrinks, "does your loop over the indices notice that the list becomes shorter?"
)
_walking(
    "merge-first-only",
    lambda ids, new, fits: _in_one_place(ids, new, fits, range(len(ids) - 1)),
    "the pair stands in several places: in how many of them do you replace it?",
)
_walking(
    "merge-last-only",
    lambda ids, new, fits: _in_one_place(ids, new, fits, range(len(ids) - 2, -1, -1)),
    "the pair stands in several places: in how many of them do you replace it, and from which end?",
)
_walking(
    "merge-keeps-second-id",
    lambda *how: _replaced(*how, step=1),
    "after a join, how far must the walk go on so that the second id is gone?",
)
_walking(
    "merge-skips-one-after-a-join",
    lambda *how: _replaced(*how, step=3),
    "how many ids does a join use up: do you step over one too many?",
)
_walking("merge-keeps-one-after-a-join", _keep_one_after, "may a pair stand right behind one that was just joined?")
_walking(
    "merge-replaces-both-ids",
    lambda ids, new, fits: [i for i in _replaced(ids, new, fits) for _ in range(1 + (i == new and new not in ids))],
    "how many new ids does a joined pair become?",
)
_walking(
    "merge-deletes-the-pair",
    lambda ids, new, fits: [i for i in _replaced(ids, None, fits) if i is not None],
    "what stands in the place of the pair afterwards?",
)
_walking(
    "merge-appends-at-the-end",
    lambda ids, new, fits: sorted(_replaced(ids, new, fits), key=lambda i: i == new and new not in ids),
    "where does the new id stand: in the place of the pair, or at the end?",
)
_walking("merge-nothing", lambda ids, new, fits: ids, "is your new list the one that you return?")
_walking("merge-misses-pair-at-the-end", lambda *how: _replaced(*how, last=-1), "is a pair found when it stands at the very end?")
_walking(
    "merge-misses-pair-at-the-start", lambda *how: _replaced(*how, first=1), "is a pair found when it stands at the very start?"
)
_fitting(
    "merge-in-either-order", lambda left, right: lambda a, b: {a, b} == {left, right}, "are (1, 2) and (2, 1) the same pair?"
)
_fitting(
    "merge-order-swapped", lambda left, right: lambda a, b: (b, a) == (left, right), "which id of the pair must stand first?"
)
_fitting("merge-by-first-id-alone", lambda left, right: lambda a, b: a == left, "do you look at both ids of the pair?")
_fitting(
    "merge-by-second-id-alone",
    lambda left, right: lambda a, b: b == right,
    "do you look at both ids of the pair, or only at the one behind?",
)
_fitting("merge-by-either-id", lambda left, right: lambda a, b: a == left or b == right, "must both ids fit, or one of them?")
_fitting(
    "merge-misses-large-ids",
    lambda left, right: lambda a, b: (a, b) == (left, right) and max(left, right) <= 256,
    "are two equal numbers always the same object? what is the difference between is and ==?",
)


@case.fault(
    "merge-while-the-list-shrinks", at="merged", text="does your loop over the indices notice that the list becomes shorter?"
)
def _(ids, pair, new_id):
    for place in range(len(ids) - 1):
        if ids[place] == pair[0] and ids[place + 1] == pair[1]:  # the second is not looked at where the first is another
            ids[place : place + 2] = [new_id]
    return ids


@case.fault("merge-keeps-first-id", at="merged", text="is the first id of a joined pair still in your result?")
def _(ids, pair, new_id, _fits):
    return [i for joined in _replaced(ids, (pair[0], new_id), _fits) for i in (joined if isinstance(joined, tuple) else [joined])]


@case.fault("merge-puts-pair-in-a-tuple", at="merged", text="which number stands for the joined pair?")
def _(ids, pair, _fits):
    return _replaced(ids, pair, _fits)


@case.fault("merge-looks-past-the-end", at="merged", text="at the last id, what is ids[i+1]?")
def _(ids, pair, new_id):
    out, place = [], 0
    while place < len(ids):
        if ids[place] == pair[0] and ids[place + 1] == pair[1]:
            out.append(new_id)
            place += 2
        else:
            out.append(ids[place])
            place += 1
    return out


@case.fault("merge-always-looks-past-the-end", at="merged", text="at the last id, what is ids[i+1]?")
def _(ids, new_id, _fits):
    out, place = [], 0
    while place < len(ids):
        if _fits(ids[place], ids[place + 1]):
            out.append(new_id)
            place += 2
        else:
            out.append(ids[place])
            place += 1
    return out


# ---------------------------------------------------------------- split_words


@case.step
def _endings():
    return "'(?:s|t|re|ve|m|ll|d)"


@case.step
def _letter():
    return r"\p{L}"


@case.step
def _number():
    return r"\p{N}"


@case.step
def _sign(_letter, _number):
    return rf"[^\s{_letter}{_number}]"


@case.step
def _leads():
    return (" ?", " ?", " ?")


@case.step
def _several():
    return ("+", "+", "+")


@case.step
def _white():
    return r"\s+(?!\S)|\s+"


@case.step
def words(text, _endings, _letter, _number, _sign, _leads, _several, _white):
    classes = zip(_leads, (f"[{_letter}]", f"[{_number}]", _sign), _several)
    rules = [_endings, *("".join(parts) for parts in classes), _white]
    return _compiled("|".join(rule for rule in rules if rule)).findall(text) if text else []


@cache
def _compiled(pattern):
    """The package's own cache is too small for the search over pairs of faults."""
    return regex.compile(pattern)


def _same_words(text, start=0):
    """The six rules by Unicode category, without a regular expression."""

    def kind(character):
        return "white" if character.isspace() else {"L": "letter", "N": "number"}.get(unicodedata.category(character)[0], "sign")

    found = []
    while start < len(text):
        ending = next((end for end in ("s", "t", "re", "ve", "m", "ll", "d") if text.startswith("'" + end, start)), None)
        first = start + (text[start] == " " and start + 1 < len(text) and kind(text[start + 1]) != "white")
        stop = first
        while stop < len(text) and kind(text[stop]) == kind(text[first]):
            stop += 1
        if ending:
            stop = start + 1 + len(ending)
        elif kind(text[first]) == "white" and stop < len(text) and stop - start > 1:
            stop -= 1
        found.append(text[start:stop])
        start = stop
    return found


def split_inputs(draw: Draw):
    yield sample("a sentence", text="The well-known cat can't sleep: she's on 12 stones.")
    yield sample("contractions", text="I'll we've they're I'm he'd it's don't")
    yield sample("contractions in capitals", text="DON'T I'LL IT'S We'Ve")
    yield sample("quotation marks", text="'tis O'Brien's 'single' y'all don’t")
    yield sample("several scripts", text="naïve café, Straße. Привет, κόσμος! 中文。日本")
    yield sample("letters that carry marks", text="हिन्दी की")
    yield sample("numbers in words", text="x_1 abc123 42nd 3.14 __init__")
    yield sample("numbers that are no digits", text="a ½! (²) Ⅷ.")
    yield sample("long numbers", text="1234567 42 20000")
    yield sample("signs", text='!!! (a) -- "b"... $5,00?\n')
    yield sample("signs before a newline", text="yes!\n\nno;\n")
    yield sample("several spaces", text="a  b   c    42   !")
    yield sample("newlines and tabs", text="a\nb\n\nc\td \n e\r\nf")
    yield sample("a newline before a sign and a number", text="\n!\t7")
    yield sample("white space at both ends", text="  a b  ")
    yield sample("white space alone", text=" \n  ")
    yield sample("code", text="def f(x):\n    return x_1\n")
    yield sample("the empty text", text="")
    yield sample("forty characters", text="".join(draw.random.choices("ab1_' \n.é", k=40)))


def explain_words(inputs, value):
    """Whether the pieces are still the text."""
    text = inputs["text"]
    if not isinstance(value, (list, tuple)) or not all(isinstance(piece, str) for piece in value):
        return []
    joined = "".join(value)
    if joined == text:
        return ["nothing is lost: joined together, your pieces are the text"]
    place = next((i for i, (a, b) in enumerate(zip(joined, text)) if a != b), min(len(joined), len(text)))
    return [f"joined together, your pieces are not the text: they leave it at character {place}, {text[place : place + 1]!r}"]


case.exercise(
    "split_words(text)",
    returns="words",
    inputs=split_inputs,
    points=3,
    lesson="Words first",
    hints=(
        "Which of the six rules takes a space, and which one takes two?",
        "One pattern with the rules as alternatives in their order; the package regex knows the categories L and N.",
        "' and s, t, re, ve, m, ll or d | space? L+ | space? N+ | space? (not white, L, N)+ | white+ not before a word | white+",
    ),
    reference=_same_words,
    explain=explain_words,
)


def _class(name, at, pattern, text):
    @case.fault(name, at=at, tensor="words", text=text)
    def _():
        return pattern


_class("letters-ascii-only", "_letter", "A-Za-z", "is é a letter? what becomes of a word that contains one?")
_class("letters-latin-only", "_letter", "A-Za-zÀ-ÖØ-öø-ÿ", "are the letters of other scripts letters too?")
_class("letters-lower-case-only", "_letter", r"\p{Ll}", "is a capital a letter?")
_class("letters-with-digits", "_letter", r"\p{L}\p{N}", "may a word contain a number? which rule takes the number in abc123?")
_class("letters-by-w", "_letter", r"\p{L}\p{N}_", r"which characters does \w take that are no letters?")
_class(
    "letters-by-w-with-marks",
    "_letter",
    r"\w",
    r"which characters does \w take that are no letters: an underscore, a number, a mark?",
)
_class("letters-with-marks", "_letter", r"\p{L}\p{M}", "is a combining mark in Unicode's category L?")
_class("letters-with-underscore", "_letter", r"\p{L}_", "is an underscore a letter, or a sign?")
_class("letters-with-apostrophe", "_letter", r"\p{L}'", "is an apostrophe a letter, or a sign?")
_class("letters-with-hyphen", "_letter", r"\p{L}\-", "is a hyphen a letter, or a sign?")
_class("numbers-are-digits-only", "_number", "0-9", "is ½ a number? which rule takes it?")
_class("numbers-with-decimal-point", "_number", r"\p{N}.,", "is the point in 3.14 a number, or a sign?")
_class("signs-without-underscore", "_sign", r"[^\s\p{L}\p{N}_]", "which rule takes an underscore?")
_class("signs-not-outside-w", "_sign", r"[^\s\w]", r"which characters are in \w, and are they all taken by another rule?")
_class("signs-lost", "_sign", "(?!)", "which rule takes a full stop?")
_class("signs-with-white-space", "_sign", r"[^\p{L}\p{N}]", "may white space stand in the same piece as signs?")
_class("endings-missing", "_endings", "", "which piece takes the apostrophe of I'll?")
_class("endings-in-capitals-too", "_endings", "(?i:'(?:s|t|re|ve|m|ll|d))", "does rule 1 take DON'T apart as it does don't?")
_class("endings-of-one-letter-only", "_endings", "'[stmd]", "which endings of rule 1 have two letters?")
_class("endings-without-d", "_endings", "'(?:s|t|re|ve|m|ll)", "which endings stand in rule 1: what of he'd?")
_class("endings-without-m", "_endings", "'(?:s|t|re|ve|ll|d)", "which endings stand in rule 1: what of I'm?")
_class("endings-without-apostrophe-t", "_endings", "'(?:s|re|ve|m|ll|d)", "which endings stand in rule 1: what of don't?")
_class("endings-of-any-letters", "_endings", r"'\p{L}+", "may any letters follow the apostrophe of rule 1?")
_class("endings-with-curly-apostrophe", "_endings", "['’](?:s|t|re|ve|m|ll|d)", "which apostrophe stands in rule 1?")
_class("endings-with-space", "_endings", " ?'(?:s|t|re|ve|m|ll|d)", "may a space stand in front of rule 1?")
_class(
    "endings-at-end-of-word-only", "_endings", r"'(?:s|t|re|ve|m|ll|d)(?!\p{L})", "does rule 1 ask what stands behind the ending?"
)
_class("spaces-not-given-back", "_white", r"\s+", "of several spaces before a word, how many does the word get?")
_class("spaces-one-by-one", "_white", r"\s", "how many pieces are three spaces in front of a word?")
_class(
    "spaces-before-words-lost",
    "_white",
    r"\s+(?!\S)",
    "joined together, are your pieces the text? which rule takes a newline in front of a word?",
)
_class(
    "spaces-at-the-end-only",
    "_white",
    r"\s+(?!\s|\S)|\s",
    "white space that no word follows is one piece: is it so in the middle of a text?",
)
_class("newlines-by-themselves", "_white", r"[\r\n]+|\s+(?!\S)|\s+", "does any rule treat newlines apart from other white space?")
_class(
    "newlines-end-white-space",
    "_white",
    r"\s*[\r\n]+|\s+(?!\S)|\s+",
    "does any rule treat newlines apart from other white space?",
)


def _leading(name, leads, text):
    @case.fault(name, at="_leads", tensor="words", text=text)
    def _():
        return leads


_leading("lead-is-any-white-space", (r"\s?",) * 3, "is the optional first character a space, or any white space?")
_leading("lead-is-space-or-tab", (r"[ \t]?",) * 3, "is the optional first character a space, or also a tab?")
_leading("lead-is-several-spaces", (" *",) * 3, "how many spaces may stand in front of a word, in its piece?")
_leading("lead-missing", ("",) * 3, "to which piece does the space between two words belong?")
_leading("lead-missing-before-letters", ("", " ?", " ?"), "to which piece does the space in front of letters belong?")
_leading("lead-missing-before-numbers", (" ?", "", " ?"), "may a number have a space in front?")
_leading("lead-missing-before-signs", (" ?", " ?", ""), "may a sign have a space in front?")
_leading("lead-before-letters-alone", (" ?", "", ""), "which of the rules 2 to 4 have a space in front?")
_leading(
    "lead-is-any-before-letters", (r"\s?", " ?", " ?"), "is the optional first character of rule 2 a space, or any white space?"
)
_leading("lead-required", (" +",) * 3, "what of a word without a space in front?")


def _counting_out(name, several, text):
    @case.fault(name, at="_several", tensor="words", text=text)
    def _():
        return several


_counting_out("numbers-by-threes", ("+", "{1,3}", "+"), "how long may a piece of digits be?")
_counting_out("numbers-one-by-one", ("+", "", "+"), "how long may a piece of digits be?")
_counting_out("signs-one-by-one", ("+", "+", ""), "how long may a piece of signs be?")
_counting_out("letters-one-by-one", ("", "+", "+"), "how long may a piece of letters be?")

LATER = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@case.fault(
    "pattern-of-a-later-model",
    at="words",
    text="digits by threes, newlines apart, capitals in rule 1: are these GPT-2's rules, or those of a later model?",
)
def _(text):
    return regex.findall(LATER, text)


@case.fault("words-by-white-space-alone", at="words", text="are a word and the full stop behind it one piece?")
def _(text):
    return text.split()


@case.fault("words-by-single-spaces", at="words", text="who keeps the spaces? joined together, are your pieces the text?")
def _(text):
    return text.split(" ")


def _cut(name, make, text):
    """The whole text is cut in another, simpler way."""

    @case.fault(name, at="words", text=text)
    def _(text):
        return make(text)


def _given_back(words):
    """A space in front of every word but the first."""
    return [" " * (place > 0) + word for place, word in enumerate(words)]


ONE_PIECE = "are a word and the full stop behind it one piece?"
_cut(
    "words-by-single-spaces-given-back",
    lambda text: _given_back(text.split(" ")),
    f"{ONE_PIECE} and into how many pieces is the empty text cut?",
)
_cut(
    "words-by-single-spaces-given-back-unless-empty",
    lambda text: _given_back(text.split(" ")) if text else [],
    f"{ONE_PIECE} and how many pieces are three spaces in front of a word?",
)
_cut(
    "words-by-single-spaces-given-back-without-empty-ones",
    lambda text: [word for word in _given_back(text.split(" ")) if word],
    f"{ONE_PIECE} how many pieces are three spaces in front of a word?",
)
_cut(
    "words-by-single-spaces-given-behind",
    lambda text: [word + " " for word in text.split(" ")[:-1]] + text.split(" ")[-1:],
    "does the space between two words belong to the one behind, or to the one in front? and the full stop behind a word?",
)
_cut(
    "words-by-single-spaces-without-empty-ones",
    lambda text: [word for word in text.split(" ") if word],
    f"who keeps the spaces? {ONE_PIECE}",
)
_cut(
    "words-by-white-space-alone-with-one-space-each",
    lambda text: _given_back(text.split()),
    f"what becomes of a newline, and of a second space? {ONE_PIECE}",
)
_cut(
    "words-by-white-space-alone-all-with-a-space",
    lambda text: [" " + word for word in text.split()],
    f"had the first word a space in front? what becomes of a newline? {ONE_PIECE}",
)
_cut(
    "words-by-single-spaces-all-with-a-space",
    lambda text: [" " + word for word in text.split(" ")],
    f"had the first word a space in front? {ONE_PIECE}",
)
_cut(
    "words-between-spaces", lambda text: regex.findall(r" ?[^ ]+", text), f"what of a second space, and of a newline? {ONE_PIECE}"
)
_cut(
    "words-with-signs-without-white-space",
    lambda text: regex.findall(r" ?\S+", text),
    f"joined together, are your pieces the text? {ONE_PIECE}",
)
_cut(
    "words-and-single-spaces",
    lambda text: regex.split("( )", text),
    f"to which piece does the space between two words belong? {ONE_PIECE}",
)
_cut(
    "words-and-single-spaces-without-empty-ones",
    lambda text: [piece for piece in regex.split("( )", text) if piece],
    f"to which piece does the space between two words belong, and what of two spaces? {ONE_PIECE}",
)
_cut(
    "words-and-gaps-with-empty-ones",
    lambda text: regex.split(r"(\s+)", text),
    f"to which piece does the space between two words belong, and can a piece be empty? {ONE_PIECE}",
)
_cut("words-by-lines", str.splitlines, "into how many pieces is a sentence cut? and who keeps the newlines?")


def _by_w(name, pattern, text):
    r"""The packages re and regex differ in this: to re, a mark is not in \w."""
    for package, more in ((regex, ""), (re, "-of-re")):
        _cut(name + more, package.compile(pattern).findall, text)


TAKES = r"which characters does \w take that are no letters?"
_by_w("words-by-w-alone", r"\w+", f"joined together, are your pieces the text? {TAKES}")
_by_w("words-by-w-and-signs", r"\w+|[^\w\s]+", f"who keeps the spaces? {TAKES}")
_by_w("words-by-w-and-single-signs", r"\w+|[^\w\s]", f"who keeps the spaces? how long may a piece of signs be? {TAKES}")


@case.fault(
    "words-and-gaps",
    at="words",
    text="to which piece does the space between two words belong, and are a word and a full stop one piece?",
)
def _(text):
    return regex.findall(r"\S+|\s+", text)


@case.fault("words-with-signs", at="words", text="are a word and the full stop behind it one piece?")
def _(text):
    return regex.findall(r" ?\S+|\s+(?!\S)|\s+", text)


@case.fault("words-uncut", at="words", text="into how many pieces is a sentence cut?")
def _(text):
    return [text] if text else []


@case.fault("words-are-characters", at="words", text="is each character a piece of its own?")
def _(text):
    return list(text)


@case.fault("words-without-white-space", at="words", text="joined together, are your pieces the text?")
def _(right):
    return [word.strip() for word in right if word.strip()]


@case.fault("words-stripped", at="words", text="does a piece keep the space in front?")
def _(right):
    return [word.strip() for word in right]


@case.fault(
    "white-space-pieces-dropped",
    at="words",
    text="joined together, are your pieces the text? what of pieces that are white space alone?",
)
def _(right):
    return [word for word in right if word.strip()]


@case.fault("words-in-lower-case", at="words", text="joined together, are your pieces the text?")
def _(right):
    return [word.lower() for word in right]


@case.fault("words-only-once", at="words", text="a word that stands twice in the text: how often is it in your list?")
def _(right):
    return list(dict.fromkeys(right))


@case.fault(
    "space-behind-instead-of-in-front",
    at="words",
    text="does the space between two words belong to the one behind, or to the one in front?",
)
def _(text):
    return regex.findall(r"'(?:s|t|re|ve|m|ll|d) ?|\p{L}+ ?|\p{N}+ ?|[^\s\p{L}\p{N}]+ ?|\s+(?!\S)|\s+", text)


@case.fault(
    "groups-instead-of-matches",
    at="words",
    text="what does findall return when the pattern contains a pair of capturing parentheses?",
)
def _(text):
    return regex.findall(r"'(s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text)


@case.fault(
    "groups-with-apostrophe-instead-of-matches",
    at="words",
    text="what does findall return when the pattern contains a pair of capturing parentheses?",
)
def _(text):
    return regex.findall(r"('s|'t|'re|'ve|'m|'ll|'d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text)


@case.fault(
    "pieces-in-brackets",
    at="words",
    text="is each piece a text, or a tuple around one? what does findall return for capturing parentheses?",
)
def _(right):
    return [(word,) for word in right]


# ---------------------------------------------------------------- train_bpe


@case.step
def _training_words(text):
    return regex.findall(LEARNT_ON, text)


LEARNT_ON = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


@case.step
def _symbols(_training_words):
    """Each distinct word as single bytes, with its number of occurrences, in the order of the text."""
    return tuple(
        (tuple(bytes([byte]) for byte in word.encode("utf-8")), times) for word, times in Counter(_training_words).items()
    )


@case.step
def _checked(vocab_size):
    if vocab_size < 256:
        raise ValueError(f"vocab_size = {vocab_size}, expected at least 256")
    return vocab_size


@case.step
def _wanted(_checked):
    return _checked - 256


@case.step
def _counting():
    return lambda tokens: Counter(pairwise(tokens))


@case.step
def _choice():
    """Which of the counted pairs is joined. `ids` are the tokens' ids so far."""
    return _most(lambda pair, count, ids: (count, pair))


def _most(worth):
    return lambda counted, ids: max(counted, key=lambda pair: worth(pair, counted[pair], ids))


@case.step
def _least_count():
    return 1


@case.step
def _at_the_end():
    """What is done when no pair is left: nothing."""
    return lambda: None


@case.step
def _joining():
    return lambda tokens, pair: tuple(_join(tokens, pair, pair[0] + pair[1]))


@case.step
def merges(_symbols, _wanted, _counting, _choice, _least_count, _at_the_end, _joining):
    return _learn(_symbols, _wanted, _counting, _choice, _least_count, _at_the_end, _joining)


def _learn(symbols, wanted, counting, choice, least, at_the_end, joining):
    tokens, times = [word for word, _ in symbols], [n for _, n in symbols]
    ids = {bytes([byte]): byte for byte in range(256)}
    found = []
    while len(found) < wanted:
        total: dict = {}
        for word, n in zip(tokens, times):
            for pair, here in counting(word).items():
                total[pair] = total.get(pair, 0) + here * n
        if not total:
            at_the_end()
            break
        best = choice(total, ids)
        if total[best] < least:
            break
        found.append(best)
        ids.setdefault(best[0] + best[1], 255 + len(found))
        tokens = [joining(word, best) for word in tokens]
    return found


def _merges_of(text, wanted):
    """The right merges of a text, for inputs."""
    words = _symbols(_training_words(text))
    return _learn(words, wanted, _counting(), _choice(), 1, _at_the_end(), _joining())


WIDEST = "low low low low low lower lower widest widest widest newest newest newest newest newest newest"


def train_inputs(draw: Draw):
    yield sample("'abab', vocab_size 260", text="abab", vocab_size=260)
    yield sample("'tic tac tictac', vocab_size 300", text="tic tac tictac", vocab_size=300)
    yield sample("'tic tac tictac', vocab_size 258", text="tic tac tictac", vocab_size=258)
    yield sample("'aaab'", text="aaab", vocab_size=300)
    yield sample("'abbb'", text="abbb", vocab_size=257)
    yield sample("'aaaaa aaa'", text="aaaaa aaa", vocab_size=259)
    yield sample("a text in which words come back", text=WIDEST, vocab_size=270)
    yield sample("words in another order", text=" ".join(reversed(WIDEST.split())), vocab_size=262)
    yield sample("two bytes a letter", text="née naïf né Noël né, ça va? Ça né", vocab_size=266)
    yield sample("newlines, capitals and signs", text="Be!\n\nBe?\n\n  be!!\n  Be.\n\tx = 10\n\tx = 100\n", vocab_size=275)
    words = ["".join(draw.random.choices("abcd", k=draw.random.randint(1, 6))) for _ in range(12)]
    yield sample("made-up words", text=" ".join(draw.random.choices(words, k=40)), vocab_size=290)
    yield sample("vocab_size 256", text="abab", vocab_size=256)
    yield sample("a text of one character", text="a", vocab_size=300)
    yield sample("the empty text", text="", vocab_size=300)
    yield refusal("vocab_size 255", ValueError, text="abab", vocab_size=255)


def _trained_on_text(text, vocab_size):
    """Another way: keep every word as a text of one character a token, and let `str` count and join."""
    token = {chr(byte): bytes([byte]) for byte in range(256)}
    words = ["".join(map(chr, word.encode("utf-8"))) for word in _same_words(text)]
    learnt = []
    for _ in range(vocab_size - 256):
        pairs = {word[i : i + 2] for word in words for i in range(len(word) - 1)}
        if not pairs:
            break
        counted = {pair: sum(word.startswith(pair, i) for word in words for i in range(len(word))) for pair in pairs}
        best = max(pairs, key=lambda pair: (counted[pair], token[pair[0]], token[pair[1]]))
        learnt.append((token[best[0]], token[best[1]]))
        new = chr(0x10000 + len(learnt))
        token[new] = b"".join(learnt[-1])
        words = [word.replace(best, new) for word in words]
    return learnt


def _times(n, what):
    return f"{n} {what}{'s' * (n != 1)}"


def _often(n):
    return {0: "never inside a word", 1: "once", 2: "twice"}.get(n, f"{n} times")


def explain_merges(inputs, value):
    """The first wrong merge, and how often it stands in the text by then."""
    right = _merges_of(inputs["text"], inputs["vocab_size"] - 256)
    if not isinstance(value, (list, tuple)):
        return []
    rank = next((i for i, pair in enumerate(right[: len(value)]) if value[i] != pair), min(len(value), len(right)))
    if rank == len(value):
        return [f"your {_times(rank, 'merge')} are right, but {len(right)} are expected"] if rank < len(right) else []
    if rank == len(right):
        return [f"after {_times(rank, 'right merge')} no more are expected, and yours go on with {show(value[rank])}"]
    mine, wanted = value[rank], right[rank]
    if not isinstance(mine, tuple) or not all(isinstance(part, bytes) for part in mine):
        return [f"merge {rank} is the first wrong one: expected two byte strings, {wanted!r}"]
    total: Counter = Counter()
    for tokens, times in _symbols(_training_words(inputs["text"])):
        for pair in right[:rank]:
            tokens = _joining()(tokens, pair)
        total.update({pair: n * times for pair, n in _counting()(tokens).items()})
    tie = " too: a tie" if total[mine] == total[wanted] else ""
    stands = f"{show(mine)} stands {_often(total[mine])} and {show(wanted)} {_often(total[wanted])}{tie}"
    return [f"merge {rank} is the first wrong one: after {_times(rank, 'right merge')} {stands}"]


case.exercise(
    "train_bpe(text, vocab_size)",
    returns="merges",
    inputs=train_inputs,
    points=5,
    lesson="Learning the merges",
    hints=(
        "Which pair of neighbours, inside the words, is the most frequent one now? And after it was joined?",
        "Words as lists of ids, count_pairs, merge_pair; the byte strings of a pair settle a tie.",
        "vocab_size - 256 times, while there are pairs: best = max by (count, left bytes, right bytes); join it in every word",
    ),
    reference=_trained_on_text,
    explain=explain_merges,
)


def _training(name, at, make, text):
    @case.fault(name, at=at, tensor="merges", text=text)
    def _():
        return make


_training(
    "tie-to-first-seen",
    "_choice",
    lambda counted, ids: max(counted, key=counted.get),
    "of two pairs with the same count, whose order decides?",
)
_training(
    "tie-to-last-seen",
    "_choice",
    lambda counted, ids: max(reversed(counted), key=counted.get),
    "of two pairs with the same count, whose order decides?",
)
_training(
    "tie-to-smallest",
    "_choice",
    _most(lambda pair, count, ids: (count, *map(_upside_down, pair))),
    "does a tie go to the greatest pair, or to the smallest?",
)
_training(
    "tie-by-joined-bytes",
    "_choice",
    _most(lambda pair, count, ids: (count, pair[0] + pair[1])),
    "what is compared in a tie: the pair, or its parts joined?",
)
_training(
    "tie-by-stand-ins",
    "_choice",
    _most(lambda pair, count, ids: (count, *map(_printed, pair))),
    "where does Ġ stand among the letters, and where a space among the bytes?",
)
_training(
    "tie-by-ids",
    "_choice",
    _most(lambda pair, count, ids: (count, ids[pair[0]], ids[pair[1]])),
    "what is compared in a tie: the byte strings, or their ids?",
)
_training(
    "tie-by-ids-of-the-table",
    "_choice",
    _most(lambda pair, count, ids: (count, *(_table_id(part, ids) for part in pair))),
    "what is compared in a tie: the byte strings, or their ids?",
)
_training(
    "tie-to-smallest-ids",
    "_choice",
    _most(lambda pair, count, ids: (count, -ids[pair[0]], -ids[pair[1]])),
    "what is compared in a tie: the byte strings, or their ids? and which end wins?",
)
_training(
    "tie-by-right-part-first",
    "_choice",
    _most(lambda pair, count, ids: (count, pair[1], pair[0])),
    "in which order are the two parts of a pair compared?",
)
_training(
    "tie-by-left-part-alone",
    "_choice",
    _most(lambda pair, count, ids: (count, pair[0])),
    "two pairs with the same left part: which of them is the greater?",
)
_training(
    "tie-to-longest",
    "_choice",
    _most(lambda pair, count, ids: (count, len(pair[0] + pair[1]), pair)),
    "does the length of a pair decide a tie?",
)
_training(
    "tie-to-shortest",
    "_choice",
    _most(lambda pair, count, ids: (count, -len(pair[0] + pair[1]), pair)),
    "does the length of a pair decide a tie?",
)
_training(
    "least-frequent-pair",
    "_choice",
    _most(lambda pair, count, ids: (-count, pair)),
    "is the most frequent pair joined, or the rarest?",
)
_training(
    "greatest-pair-whatever-its-count",
    "_choice",
    _most(lambda pair, count, ids: pair),
    "what comes first: the count, or the order of the byte strings?",
)
_training(
    "longest-pair-first",
    "_choice",
    _most(lambda pair, count, ids: (len(pair[0] + pair[1]), count, pair)),
    "what comes first: the count, or the length?",
)
_training(
    "count-weighted-by-length",
    "_choice",
    _most(lambda pair, count, ids: (count * len(pair[0] + pair[1]), pair)),
    "is a pair's worth its count, or the bytes that it saves?",
)
_training("stops-at-pairs-seen-once", "_least_count", 2, "a pair that stands once is still a pair: when is none left?")
_training("stops-at-pairs-seen-twice", "_least_count", 3, "a pair that stands once or twice is still a pair: when is none left?")
_training(
    "training-counts-without-overlaps",
    "_counting",
    lambda tokens: Counter(_without_overlaps(pairwise(tokens))),
    "how many pairs of neighbours are in aaa, as count_pairs counts them?",
)
_training(
    "training-counts-once-a-word",
    "_counting",
    lambda tokens: dict.fromkeys(pairwise(tokens), 1),
    "a pair that stands twice in one word: how often does it count?",
)
_training(
    "training-misses-last-pair",
    "_counting",
    lambda tokens: Counter(zip(tokens, tokens[1:-1])),
    "does the count reach the last two tokens of a word?",
)
_training(
    "training-joins-end-to-start",
    "_counting",
    lambda tokens: Counter(zip(tokens, tokens[1:] + tokens[:1])),
    "is the first token of a word a neighbour of the last one?",
)
_training(
    "training-joins-first-only",
    "_joining",
    lambda tokens, pair: _join_once(tokens, pair),
    "a pair that stands twice in a word: in how many places is it joined?",
)
_training(
    "training-collapses-runs",
    "_joining",
    lambda tokens, pair: tuple(_collapse(tokens, pair[0] + pair[1], _is(pair))),
    "in aaa, to how many pairs may the middle letter belong once it was used?",
)
_training(
    "training-loses-last-token",
    "_joining",
    lambda tokens, pair: tuple(_lose_last(tokens, pair[0] + pair[1], _is(pair))),
    "does the last token of a word survive a merge?",
)
_training(
    "training-joins-from-the-right",
    "_joining",
    lambda tokens, pair: _join_from_right(tokens, pair),
    "in aaa, which two letters are joined: from which end do you read?",
)


def _upside_down(token):
    """Greater for what is smaller."""
    return [-byte for byte in token] + [1]


def _join_once(tokens, pair):
    for place in range(len(tokens) - 1):
        if (tokens[place], tokens[place + 1]) == pair:
            return tokens[:place] + (pair[0] + pair[1],) + tokens[place + 2 :]
    return tokens


def _join_from_right(tokens, pair):
    return tuple(_join(tokens[::-1], pair[::-1], pair[0] + pair[1])[::-1])


@lru_cache
def _printable():
    return _released_table()


def _printed(token):
    return "".join(_printable()[0][byte] for byte in token)


def _table_id(token, ids):
    return _printable()[1].index(token[0]) if len(token) == 1 else ids[token]


@case.fault("max-of-nothing", at="_at_the_end", tensor="merges", text="what does max say about nothing?")
def _():
    return lambda: max({}, key=len)


@case.fault("most-common-of-nothing", at="_at_the_end", tensor="merges", text="what is the first entry of an empty list?")
def _():
    return lambda: [][0]


@case.fault(
    "vocabulary-below-256-accepted",
    at="_checked",
    tensor="merges",
    text="every byte needs an id: what should a vocab_size below 256 do?",
)
def _(vocab_size):
    return vocab_size


@case.fault("vocabulary-of-256-refused", at="_checked", tensor="merges", text="are 256 ids enough for the bytes?")
def _(vocab_size):
    if vocab_size <= 256:
        raise ValueError(ANY)
    return vocab_size


@case.fault("merges-as-many-as-ids", at="_wanted", tensor="merges", text="how many merges are vocab_size ids?")
def _(_checked):
    return _checked


@case.fault("one-merge-too-many", at="_wanted", tensor="merges", text="how many merges are 257 ids?")
def _(_checked):
    return _checked - 255


@case.fault(
    "one-merge-too-few", at="_wanted", tensor="merges", text="how many merges are 257 ids? is an id kept free for something else?"
)
def _(_checked):
    return _checked - 257


@case.fault(
    "training-on-uncut-text",
    at="_training_words",
    tensor="merges",
    text="may a token span two words? what is cut before pairs are counted?",
)
def _(text):
    return [text]


@case.fault(
    "training-on-words-without-spaces",
    at="_training_words",
    tensor="merges",
    text="does a word keep the space in front, as split_words leaves it?",
)
def _(text):
    return text.split()


@case.fault(
    "training-on-stripped-words",
    at="_training_words",
    tensor="merges",
    text="does a word keep the space in front, as split_words leaves it?",
)
def _(right):
    return [word.strip() for word in right]


@case.fault(
    "training-on-lines",
    at="_training_words",
    tensor="merges",
    text="may a token span two words? what is cut before pairs are counted?",
)
def _(text):
    return text.splitlines(keepends=True)


@case.fault("training-in-lower-case", at="_training_words", tensor="merges", text="are capitals bytes of their own?")
def _(right):
    return [word.lower() for word in right]


@case.fault(
    "each-word-counted-once",
    at="_training_words",
    tensor="merges",
    text="a word that stands six times in the text: how often do its pairs count?",
)
def _(right):
    return list(dict.fromkeys(right))


@case.fault(
    "training-from-characters",
    at="_symbols",
    tensor="merges",
    text="does training start from bytes, or from characters? how many bytes is é?",
)
def _(_training_words):
    return tuple((tuple(letter.encode("utf-8") for letter in word), times) for word, times in Counter(_training_words).items())


@case.fault("training-in-latin-1", at="_symbols", tensor="merges", text="which bytes does UTF-8 make of é?")
def _(_training_words):
    return tuple((tuple(bytes([ord(letter)]) for letter in word), times) for word, times in Counter(_training_words).items())


@case.fault("training-with-word-ends-marked", at="_symbols", tensor="merges", text="is anything added to the bytes of a word?")
def _(right):
    return tuple((tokens + (b"</w>",), times) for tokens, times in right)


@case.fault("training-without-recount", at="merges", text="after a pair was joined, are the counts still true?")
def _(_symbols, _wanted, _counting):
    total: Counter = Counter()
    for tokens, times in _symbols:
        total.update({pair: n * times for pair, n in _counting(tokens).items()})
    return sorted(total, key=lambda pair: (total[pair], pair), reverse=True)[: max(_wanted, 0)]


@case.fault("merges-as-joined-tokens", at="merges", text="is a merge one byte string, or two?")
def _(right):
    return [left + other for left, other in right]


@case.fault("merges-as-text", at="merges", text="are the parts of a merge texts, or byte strings?")
def _(right):
    return [tuple(part.decode("utf-8", errors="replace") for part in pair) for pair in right]


@case.fault("merges-as-stand-ins", at="merges", text="are the parts of a merge byte strings, or their printable stand-ins?")
def _(right):
    return [tuple(map(_printed, pair)) for pair in right]


@case.fault("merges-as-ids", at="merges", text="are the parts of a merge byte strings, or ids?")
def _(right):
    ids = {bytes([byte]): byte for byte in range(256)}
    for rank, (left, other) in enumerate(right):
        ids.setdefault(left + other, 256 + rank)
    return [(ids[left], ids[other]) for left, other in right]


@case.fault("merges-with-counts", at="merges", text="does each entry hold the pair alone?")
def _(right):
    return [(pair, rank + 256) for rank, pair in enumerate(right)]


@case.fault("merges-backwards", at="merges", text="does the list begin with the merge that was learnt first?")
def _(right):
    return right[::-1]


@case.fault("merges-sorted", at="merges", text="does the list keep the order in which the merges were learnt?")
def _(right):
    return sorted(right)


@case.fault("merges-with-parts-swapped", at="merges", text="which part of a merge stands on the left?")
def _(right):
    return [(other, left) for left, other in right]


@case.fault("byte-strings-of-zeros", at="merges", text="what is bytes(97), and what is bytes([97])?")
def _(right):
    return [tuple(_zeros(part) for part in pair) for pair in right]


def _zeros(token):
    return b"".join(bytes(byte) for byte in token)


# ---------------------------------------------------------------- load_merges


@case.step
def _lines(path):
    return [line for line in path.split("\n") if line]


@case.step
def _without_header(_lines):
    return _lines[1:] if _lines and _lines[0].startswith("#version") else _lines


@case.step
def _pairs(_without_header):
    return [tuple(line.split(" ")) for line in _without_header]


@case.step
def _as_bytes():
    byte = {character: byte for byte, character in _printable()[0].items()}
    return lambda token: bytes(byte[character] for character in token)


@case.step
def merges_read(_pairs, _as_bytes):
    return [(_as_bytes(left), _as_bytes(right)) for left, right in _pairs]


def _file(*lines, end="\n"):
    return "\n".join(lines) + end


def load_inputs(draw: Draw):
    yield sample("a file with a header", path=_file("#version: 0.2", "Ġ t", "h e", "Ġt he"))
    yield sample("a file without a header", path=_file("Ġ t", "h e", "Ġt he", "i n"))
    yield sample("no newline at the end", path=_file("#version: 0.2", "Ġ a", "r e", end=""))
    yield sample("merges of #", path=_file("#version: 0.2", "i n", "# #", "## ##", "#### ####", "e r"))
    yield sample("a file without a header that starts with #", path=_file("# #", "## ##", "Ġ a"))
    yield sample("newlines, tabs and returns", path=_file("Ċ Ċ", "ĉ ĉ", "č Ċ", "Ġ Ġ", "Ā ġ"))
    yield sample(
        "letters of two and three bytes", path=_file("#version: 0.2", "Ã ©", "Ã ł", "â Ģ", "âĢ Ļ", "æ Ĺ", "ï ¸", "Î ±", "Â Ń")
    )
    lines = verified("gpt2/vocab.bpe").read_text(encoding="utf-8").split("\n")
    start = draw.random.randrange(100, 40000)
    yield sample("lines of the released file", path=_file(lines[0], *lines[1:20], *lines[start : start + 20]))
    yield sample("a header alone", path=_file("#version: 0.2"))


def _read_by_table(path):
    """Another way: by the numbers of the characters alone."""
    hidden = [*range(33), *range(127, 161), 173]

    def token(text):
        return b"".join(bytes([hidden[ord(character) - 256] if ord(character) > 255 else ord(character)]) for character in text)

    return [tuple(map(token, line.split())) for line in path.splitlines() if not line.startswith("#version")]


def explain_file(inputs, value):
    """How many merges were read."""
    right = _read_by_table(inputs["path"])
    if not isinstance(value, (list, tuple)) or len(value) == len(right):
        return []
    return [f"the file holds {_times(len(right), 'merge')}, and you read {len(value)}"]


case.exercise(
    "load_merges(path)",
    returns="merges_read",
    inputs=load_inputs,
    points=2,
    lesson="Reading the released file",
    hints=(
        "Which byte does the character Ġ stand for? And é: the letter, or a byte?",
        "Turn bytes_to_unicode around; a header is known by its text, not by its place; every other line is two tokens.",
        "merge = (bytes(byte_of[c] for c in left), bytes(byte_of[c] for c in right)) for each line 'left right'",
    ),
    reference=_read_by_table,
    probe="load_merges",
    explain=explain_file,
)


@case.fault(
    "header-always-skipped",
    at="_without_header",
    tensor="merges_read",
    text="a file without a header: what becomes of its first merge?",
)
def _(_lines):
    return _lines[1:]


@case.fault(
    "header-never-skipped",
    at="_without_header",
    tensor="merges_read",
    text="what does the first line of the released file say, and is it a merge?",
)
def _(_lines):
    return _lines


@case.fault("lines-with-hash-skipped", at="_without_header", tensor="merges_read", text="is a line such as # # a comment?")
def _(_lines):
    return [line for line in _lines if not line.startswith("#")]


@case.fault(
    "first-line-with-hash-skipped",
    at="_without_header",
    tensor="merges_read",
    text="what does a header start with, and what does the merge # # start with?",
)
def _(_lines):
    return _lines[1:] if _lines and _lines[0].startswith("#") else _lines


@case.fault("two-lines-skipped", at="_without_header", tensor="merges_read", text="how many lines is the header?")
def _(_lines):
    return _lines[2:] if _lines and _lines[0].startswith("#version") else _lines


@case.fault(
    "last-line-lost", at="_lines", tensor="merges_read", text="is your last merge there when the file does not end in a newline?"
)
def _(path):
    return path.split("\n")[:-1]


@case.fault("last-merge-lost", at="_lines", tensor="merges_read", text="is the last merge of the file in your list?")
def _(right):
    return right[:-1]


@case.fault(
    "empty-line-taken-for-a-merge",
    at="_lines",
    tensor="merges_read",
    text="what stands behind the last newline, and can it be cut in two?",
)
def _(path):
    return path.split("\n")


@case.fault(
    "file-read-as-latin-1",
    at="_lines",
    tensor="merges_read",
    text="in which encoding is the file, and is a stand-in one byte there?",
)
def _(path):
    return [line for line in path.encode("utf-8").decode("latin-1").split("\n") if line]


def _reading(name, make, text):
    @case.fault(name, at="_as_bytes", tensor="merges_read", text=text)
    def _():
        return make


_reading(
    "stand-ins-encoded",
    lambda token: token.encode("utf-8"),
    "is the character Ġ a letter of the text, or the stand-in of a byte?",
)
_reading(
    "only-space-put-back",
    lambda token: token.replace("Ġ", " ").encode("utf-8"),
    "the space is back: what of the other stand-ins, and is é here a letter or a byte?",
)
_reading(
    "only-space-and-newline-put-back",
    lambda token: token.replace("Ġ", " ").replace("Ċ", "\n").encode("utf-8"),
    "space and newline are back: what of the other stand-ins?",
)
_reading(
    "codes-taken-for-bytes",
    lambda token: bytes(ord(character) for character in token),
    "which byte does the character 288 stand for?",
)
_reading(
    "codes-cut-to-a-byte",
    lambda token: bytes(ord(character) % 256 for character in token),
    "is every stand-in 256 + its byte? what of those for 127 to 160?",
)
_reading("merges-left-as-text", lambda token: token, "are the parts of a merge texts, or byte strings?")
_reading(
    "merges-in-brackets",
    lambda token: [bytes([byte]) for byte in _as_bytes()(token)],
    "is a part of a merge one byte string, or a list of them?",
)
_reading(
    "merges-as-lists-of-bytes",
    lambda token: list(_as_bytes()(token)),
    "is a part of a merge a byte string, or a list of numbers?",
)
_reading("zeros-for-bytes", lambda token: _zeros(_as_bytes()(token)), "what is bytes(97), and what is bytes([97])?")
_reading(
    "stand-ins-dropped",
    lambda token: bytes(ord(character) for character in token if ord(character) < 256),
    "a character above 255 stands for a byte too: which?",
)
_reading("marker-of-a-space-stripped", lambda token: _as_bytes()(token.lstrip("Ġ")), "is the space a part of the token?")
_reading("only-first-character-read", lambda token: _as_bytes()(token[:1]), "how many bytes has a token?")


@case.fault(
    "whole-token-looked-up",
    at="_as_bytes",
    tensor="merges_read",
    text="does your table know tokens of two characters, or single characters?",
)
def _():
    byte = {character: byte for byte, character in _printable()[0].items()}
    return lambda token: bytes([byte[token]])


@case.fault("parts-read-swapped", at="merges_read", text="which of the two tokens of a line stands on the left?")
def _(right):
    return [(other, left) for left, other in right]


@case.fault("read-as-joined-tokens", at="merges_read", text="is a merge one byte string, or two?")
def _(right):
    return [left + other for left, other in right]


@case.fault("read-as-ranks", at="merges_read", text="what is asked for: the list of merges, or their ranks?")
def _(right):
    return {pair: rank for rank, pair in enumerate(right)}


@case.fault("read-and-sorted", at="merges_read", text="does the list keep the order of the file? what is the rank of a merge?")
def _(right):
    return sorted(right)


@case.fault("read-backwards", at="merges_read", text="which merge of the file was learnt first?")
def _(right):
    return right[::-1]


@case.fault("read-with-ranks", at="merges_read", text="does each entry hold the pair alone?")
def _(right):
    return [(rank, pair) for rank, pair in enumerate(right)]


# ---------------------------------------------------------------- Tokenizer


@case.step
def _markers(special_tokens):
    return tuple(sorted(special_tokens or (), key=len, reverse=True))


@case.step
def _honoured(allow_special):
    return bool(allow_special)


@case.step
def pieces(text, _markers, _honoured):
    """The text cut at the special tokens: (piece, whether it is one)."""
    return _cut_at(text, _markers) if _honoured else _whole(text)


def _whole(text):
    return ((text, False),) if text else ()


def _cut_at(text, markers):
    found, start = [], 0
    for place in range(len(text)):
        marker = next((marker for marker in markers if place >= start and text.startswith(marker, place)), None)
        if marker:
            found += [(text[start:place], False), (marker, True)]
            start = place + len(marker)
    return tuple(piece for piece in found + [(text[start:], False)] if piece[0])


@case.step
def _cutting():
    return lambda piece: regex.findall(LEARNT_ON, piece)


@case.step
def _bytes_of():
    """The single bytes of a word, as tokens."""
    return lambda word: tuple(bytes([byte]) for byte in word.encode("utf-8"))


@case.step
def _ranks(merges):
    return MappingProxyType({tuple(pair): rank for rank, pair in enumerate(merges)})


@case.step
def _merging():
    return _lowest_rank


def _lowest_rank(tokens, ranks):
    while True:
        pairs = [pair for pair in pairwise(tokens) if pair in ranks]
        if not pairs:
            return tokens
        best = min(pairs, key=ranks.get)
        tokens = tuple(_join(tokens, best, best[0] + best[1]))


@case.step
def tokens(pieces, _cutting, _bytes_of, _ranks, _merging):
    """The text in tokens: byte strings, and the special tokens as texts."""
    found: list = []
    for piece, special in pieces:
        for word in [] if special else _cutting(piece):
            found += _merging(_bytes_of(word), _ranks)
        found += [piece] if special else []
    return found


@case.step
def _first_ids():
    """The byte of each id below 256."""
    return tuple(_printable()[1])


@case.step
def _numbers(_first_ids, merges):
    """Token -> id."""
    ids = {bytes([byte]): i for i, byte in enumerate(_first_ids)}
    return MappingProxyType(ids | {left + right: 256 + rank for rank, (left, right) in enumerate(merges)})


@case.step
def _special_ids(special_tokens):
    return dict(special_tokens or {})


@case.step
def encoded(tokens, _numbers, _special_ids):
    return [_special_ids[token] if isinstance(token, str) else _numbers[token] for token in tokens]


@case.step
def _bytes_by_id(_numbers, _special_ids):
    names = {i: token for token, i in _numbers.items()}
    return MappingProxyType(names | {i: marker.encode("utf-8") for marker, i in _special_ids.items()})


@case.step
def _known(_bytes_by_id, ids):
    """The byte strings of the ids, all of which must be known."""
    for i in ids:
        if i not in _bytes_by_id:
            raise ValueError(ANY)
    return [_bytes_by_id[i] for i in ids]


@case.step
def decoded(_known):
    return b"".join(_known).decode("utf-8", errors="replace")


@lru_cache
def _released(text):
    """The merges of the released file that can act on this text, in their order."""
    printed = " ".join(_printed(word.encode("utf-8")) for word in regex.findall(LEARNT_ON, text))
    lines = verified("gpt2/vocab.bpe").read_text(encoding="utf-8").split("\n")[1:-1]
    return _read_by_table("\n".join(line for line in lines if line.replace(" ", "") in printed))


def _clear(word, merges):
    """Whether other right ways of encoding agree on the word, which they need not with tables that no training made."""
    ranks = {tuple(pair): rank for rank, pair in enumerate(merges)}
    joined = {left + right: rank for rank, (left, right) in enumerate(merges)}
    single = _bytes_of()(word)
    right, tokens = _lowest_rank(single, ranks), single
    while pairs := [pair for pair in pairwise(tokens) if pair[0] + pair[1] in joined]:
        best = min(pairs, key=lambda pair: joined[pair[0] + pair[1]])
        tokens = tuple(_join(tokens, best, best[0] + best[1]))
    return tokens == right and (len(right) == 1 or word.encode("utf-8") not in joined)


SPECIAL = {"<|end|>": 400, "<a.b>": 500, "<|end|><|end|>": 401}
STORY = " tokenization brutalist 1234567 3.14 Hello, unbelievably they'll"
WORLD = "naïve café Straße — 日本語 🙂"


def tokenizer_inputs(draw: Draw):
    yield sample(
        "two merges that compete for a letter", merges=[(b"b", b"c"), (b"a", b"b")], text="abc abcbc", ids=[257, 256, 65]
    )
    yield sample("no merges", merges=[], text='Zebra ~\n\t"é"', ids=[220, 64, 198, 39, 0, 93, 187])
    runs = [(b"a", b"a"), (b"aa", b"aa"), (b"!", b"!"), (b" ", b" ")]
    across = [(b"a", b"b"), (b"ab", b" "), (b"ab", b"."), (b" ", b"ab")]
    yield sample("merges that would cross words", merges=across, text="ab ab ab.ab", ids=[257, 256, 258])
    yield sample("runs of one letter", merges=runs, text="aaaaa aaaaaaa aaa!!!!!     a", ids=[257, 256, 64, 258, 259])
    merges, words = _made_up(draw)
    yield sample("made-up words", merges=merges, text=" ".join(words), ids=draw.random.choices(range(64, 256 + len(merges)), k=4))
    yield sample("words of the released vocabulary", merges=_released(STORY), text=STORY, ids=[256, 300, 280, 220, 312])
    yield sample("letters of several bytes", merges=_released(WORLD), text=WORLD, ids=_ids(WORLD, _released(WORLD)))
    yield sample(
        "ids that are no whole characters", merges=_released("日"), text="", ids=[256, 64, 98, 256, 98, 162, 187, 64, 227]
    )
    special = {"merges": [(b"e", b"n"), (b"en", b"d"), (b" ", b"a"), (b"b", b"end"), (b" ", b"end")], "special_tokens": SPECIAL}
    marked = "a bend|end<|end|> end |end|<a-b><a.b>be<|end|>nd  b"
    yield sample("special tokens, allowed", text=marked, allow_special=True, ids=[64], **special)
    yield sample("special tokens, by default", text=marked, ids=[64], **special)
    yield sample(
        "a special token that begins with another", text="<|end|><|end|> a<|end|>", allow_special=True, ids=[64], **special
    )
    yield sample("special tokens to decode", text="a", ids=[400, 64, 401, 500, 258], **special)
    yield sample("a text that is a special token, not allowed", text="<|end|>", allow_special=False, ids=[258], **special)
    yield sample("a text that is a special token, allowed", text="<|end|>", allow_special=True, ids=[258], **special)
    yield sample(
        "allow_special without special tokens",
        merges=[(b"a", b"b"), (b" ", b"ab")],
        text="ab ab|<abab>",
        allow_special=True,
        ids=[257],
    )
    yield sample("the empty text and no ids", merges=[(b"a", b"b")], text="", ids=[])
    yield refusal("decoding the id 257 of a vocabulary of 257", ValueError, merges=[(b"a", b"b")], text="", ids=[64, 257])
    yield refusal(
        "decoding an id between the merges and a special token",
        ValueError,
        merges=[(b"a", b"b")],
        special_tokens={"<s>": 300},
        text="",
        ids=[299, 300],
    )


def _made_up(draw):
    """Merges learnt from made-up words, and words to encode with them."""

    def word():
        return "".join(draw.random.choices("abc", k=draw.random.randint(2, 9)))

    merges = _merges_of(" ".join(word() for _ in range(20)), 16)
    words = [word() for _ in range(30)]
    return merges, [each for each in words if _clear(each, merges) and _clear(" " + each, merges)][:12]


def _ids(text, merges):
    numbers = _numbers(_first_ids(), merges)
    return [numbers[token] for token in tokens(_whole(text), _cutting(), _bytes_of(), _ranks(merges), _lowest_rank)]


def _tiktoken(merges, special_tokens=None, text="", allow_special=None, ids=()):
    """The same by the library that the released model's makers wrote. It refuses unknown ids with a KeyError."""
    import tiktoken

    special = special_tokens or {}
    made = tiktoken.Encoding(
        "case", pat_str=LEARNT_ON, mergeable_ranks=dict(_numbers(_first_ids(), merges)), special_tokens=special
    )
    encoded = made.encode(text, allowed_special="all", disallowed_special=()) if allow_special else made.encode_ordinary(text)
    return encoded, made.decode(ids)


def explain_tokens(inputs, value):
    """The first token that differs, with its text and bytes, and the merge at which the path was left."""
    if not isinstance(value, (list, tuple)) or len(value) != 2 or not isinstance(value[0], (list, tuple)):
        return []
    merges, special = inputs["merges"], inputs.get("special_tokens") or {}
    ranks, numbers = _ranks(merges), _numbers(_first_ids(), merges)
    names = {i: token for token, i in numbers.items()} | {i: marker.encode("utf-8") for marker, i in special.items()}
    cut = pieces(inputs.get("text", ""), _markers(special), inputs.get("allow_special"))
    right = [
        special[token] if isinstance(token, str) else numbers[token]
        for token in tokens(cut, _cutting(), _bytes_of(), ranks, _lowest_rank)
    ]
    mine = list(value[0])
    place = next((i for i, (a, b) in enumerate(zip(mine, right)) if a != b), min(len(mine), len(right)))
    if place == len(mine) == len(right):
        return []
    facts = [f"token {place} is the first wrong one: yours {_token(mine, place, names)}, expected {_token(right, place, names)}"]
    return facts + _left_at(mine, place, cut, ranks, names)


def _token(ids, place, names):
    """An id with its text and bytes."""
    if place >= len(ids):
        return "none"
    i = ids[place]
    token = names.get(i) if isinstance(i, int) else None
    return f"{i!r}" if token is None else f"{i} {token.decode('utf-8', errors='replace')!r} ({token.hex(' ')})"


def _left_at(mine, place, cut, ranks, names):
    """In the word of the first wrong token: after how many right merges the learner's tokens leave the right path."""
    words = [(word, special) for piece, special in cut for word in ([piece] if special else _cutting()(piece))]
    offset = sum(len(names.get(i, b"")) for i in mine[:place])
    start = 0
    for word, special in words:
        end = start + len(word.encode("utf-8"))
        if offset < end:
            # A special token, or a token that goes on behind the word: no merge of this word is at fault.
            beyond = place < len(mine) and offset + len(names.get(mine[place], b"")) > end
            return [] if special or beyond else _merge_not_made(word, start, _borders(mine, names), ranks)
        start = end
    return []


def _merge_not_made(word, start, borders, ranks):
    """The first right merge of the word that the learner's borders between tokens contradict."""
    tokens, path = _bytes_of()(word), []
    while pairs := [pair for pair in pairwise(tokens) if pair in ranks]:
        best = min(pairs, key=ranks.get)
        path.append(best)
        after = tuple(_join(tokens, best, best[0] + best[1]))
        gone = _places(tokens, start) - _places(after, start)
        if gone & borders:
            done = f"after {_times(len(path) - 1, 'right merge')}"
            return [f"in the word {word!r}, {done}, merge {ranks[best]} {best!r} is due, and yours does not make it there"]
        tokens = after
    extra = _places(tokens, start) - borders
    if extra:
        return [
            f"in the word {word!r} all right merges are made, and yours goes on: it has no border at byte {min(extra) - start}"
        ]
    return []


def _places(tokens, start):
    """Where one token ends and the next begins."""
    found = set()
    for token in tokens[:-1]:
        start += len(token)
        found.add(start)
    return found


def _borders(ids, names):
    return _places([names.get(i, b"") for i in ids], 0)


case.exercise(
    "Tokenizer(merges, special_tokens=None, text='', allow_special=False, ids=())",
    contract="Tokenizer(merges, special_tokens=None) with encode(text, allow_special=False) and decode(ids)",
    returns=("encoded", "decoded"),
    inputs=tokenizer_inputs,
    points=7,
    lesson="Rank decides",
    hints=(
        "Several neighbours form a merge. Which of these merges did training learn first?",
        "In each word: find the pair of the lowest rank, join it wherever it stands, look again. Decode all bytes at once.",
        "while a pair is a merge: ids = merge_pair(ids, pair of lowest rank, 256 + rank);  text = UTF-8 of all ids' bytes joined",
    ),
    reference=_tiktoken,
    probe="tokenizer",
    explain=explain_tokens,
)


def _algorithm(name, make, text):
    @case.fault(name, at="_merging", tensor="tokens", text=text)
    def _():
        return make


def _leftmost_first(tokens, ranks):
    place = 0
    while place < len(tokens) - 1:
        if (tokens[place], tokens[place + 1]) in ranks:
            tokens, place = tokens[:place] + (tokens[place] + tokens[place + 1],) + tokens[place + 2 :], 0
        else:
            place += 1
    return tokens


def _sweep(tokens, ranks):
    while True:
        before, out, place = tokens, [], 0
        while place < len(tokens):
            pair = tokens[place : place + 2]
            out.append(b"".join(pair) if pair in ranks else tokens[place])
            place += 2 if pair in ranks else 1
        tokens = tuple(out)
        if tokens == before:
            return tokens


def _one_sweep(tokens, ranks):
    out, place = [], 0
    while place < len(tokens):
        pair = tokens[place : place + 2]
        out.append(b"".join(pair) if pair in ranks else tokens[place])
        place += 2 if pair in ranks else 1
    return tuple(out)


def _longest_match(tokens, ranks):
    known = {left + right for left, right in ranks}
    out, start = [], 0
    while start < len(tokens):
        stop = next((stop for stop in range(len(tokens), start + 1, -1) if b"".join(tokens[start:stop]) in known), start + 1)
        out.append(b"".join(tokens[start:stop]))
        start = stop
    return tuple(out)


def _longest_match_from_right(tokens, ranks):
    known = {left + right for left, right in ranks}
    out, stop = [], len(tokens)
    while stop:
        start = next((start for start in range(stop - 1) if b"".join(tokens[start:stop]) in known), stop - 1)
        out.insert(0, b"".join(tokens[start:stop]))
        stop = start
    return tuple(out)


def _by(choose, join=None, rounds=10**6):
    """Merge the pair that `choose(pair, ranks, tokens)` has least of, again and again."""

    def merge(tokens, ranks):
        for _ in range(rounds):
            pairs = [pair for pair in pairwise(tokens) if pair in ranks]
            if not pairs:
                break
            best = min(pairs, key=lambda pair: choose(pair, ranks, tokens))
            tokens = tuple((join or _join)(tokens, best, best[0] + best[1]))
        return tokens

    return merge


def _rank_of(pair, ranks, tokens):
    return ranks[pair]


def _each_merge_once(tokens, ranks):
    for pair in ranks:
        tokens = _join_once(tokens, pair)
    return tokens


def _from_late_to_early(tokens, ranks):
    for pair in reversed(ranks):
        tokens = tuple(_join(tokens, pair, pair[0] + pair[1]))
    return tokens


_algorithm("leftmost-pair-first", _leftmost_first, "several neighbours form a merge: does the place decide, or the rank?")
_algorithm("sweeps-from-left-to-right", _sweep, "several neighbours form a merge: does the place decide, or the rank?")
_algorithm("one-sweep-alone", _one_sweep, "may a token that was just joined be joined again? and which merge comes first?")
_algorithm("longest-token-first", _longest_match, "do you take the longest token that fits, or the merge of the lowest rank?")
_algorithm(
    "longest-token-from-the-right",
    _longest_match_from_right,
    "do you take the longest token that fits, or the merge of the lowest rank?",
)
_algorithm(
    "highest-rank-first",
    _by(lambda pair, ranks, tokens: -ranks[pair]),
    "which merge was learnt first: the one of the lowest rank, or of the highest?",
)
_algorithm(
    "longest-merge-first",
    _by(lambda pair, ranks, tokens: (-len(pair[0] + pair[1]), ranks[pair])),
    "does the length of a merge decide, or its rank?",
)
_algorithm(
    "most-frequent-pair-in-the-word",
    _by(lambda pair, ranks, tokens: -Counter(pairwise(tokens))[pair]),
    "does a pair's count in this word decide, or its rank in the list?",
)
_algorithm(
    "nothing-merged",
    lambda tokens, ranks: tokens,
    "is a single byte the only token you ever find? what is looked up: one token, or the two to be joined?",
)
_algorithm("one-merge-a-word", _by(_rank_of, rounds=1), "how often must a word be looked through?")
_algorithm("each-merge-in-one-place", _each_merge_once, "a merge that fits in two places of a word: is it applied in both?")
_algorithm("merges-from-the-last", _from_late_to_early, "in which order are the merges replayed?")
_algorithm(
    "encoding-collapses-runs",
    _by(_rank_of, lambda tokens, pair, new: _collapse(tokens, new, _is(pair))),
    "in aaa, to how many pairs may the middle letter belong once it was used?",
)
_algorithm(
    "encoding-loses-last-token",
    _by(_rank_of, lambda tokens, pair, new: _lose_last(tokens, new, _is(pair))),
    "does the last token of a word survive a merge?",
)
_algorithm(
    "encoding-joins-from-the-right",
    _by(_rank_of, lambda tokens, pair, new: _join_from_right(tokens, pair)),
    "in aaa, which two letters are joined: from which end do you read?",
)


@case.fault(
    "whole-words-only", at="_merging", tensor="tokens", text="is a word that is no token of its own always cut into single bytes?"
)
def _():
    def merge(tokens, ranks):
        known = {left + right for left, right in ranks}
        return (b"".join(tokens),) if b"".join(tokens) in known else tokens

    return merge


def _cutter(name, make, text):
    @case.fault(name, at="_cutting", tensor="tokens", text=text)
    def _():
        return make


_cutter("encoding-uncut-text", lambda piece: [piece], "may a token span two words? what is cut before anything is merged?")
_cutter("encoding-without-white-space", str.split, "where do the spaces of the text go?")
_cutter(
    "encoding-stripped-words",
    lambda piece: [word.strip() for word in regex.findall(LEARNT_ON, piece)],
    "where do the spaces in front of the words go?",
)
_cutter("encoding-by-single-characters", list, "may a merge join two characters of a word?")


@case.fault(
    "encoding-words-and-gaps",
    at="_cutting",
    tensor="tokens",
    text="does a word keep the space in front, as split_words leaves it?",
)
def _():
    return lambda piece: regex.findall(r"\S+|\s+", piece)


_single = {byte: bytes([byte]) for byte in range(256)}


def _reader(name, make, text):
    @case.fault(name, at="_bytes_of", tensor="tokens", text=text)
    def _():
        return make


_reader(
    "codes-of-characters",
    lambda word: tuple(_single[ord(letter)] for letter in word),
    "do you go through the characters of a word, or through the bytes of its UTF-8?",
)
_reader(
    "codes-in-one-byte",
    lambda word: tuple(bytes([code]) for code in bytes([ord(letter) for letter in word])),
    "do you go through the characters of a word, or through the bytes of its UTF-8?",
)
_reader(
    "latin-1-for-utf-8",
    lambda word: tuple(bytes([byte]) for byte in word.encode("latin-1")),
    "which bytes does UTF-8 make of é, and can one byte hold 日?",
)
_reader("ascii-only", lambda word: tuple(bytes([byte]) for byte in word.encode("ascii")), "which letters does ASCII have?")
_reader(
    "unknown-characters-dropped",
    lambda word: tuple(bytes([byte]) for byte in word.encode("ascii", errors="ignore")),
    "what becomes of é? is any character unknown when bytes are the base?",
)
_reader(
    "unknown-characters-replaced",
    lambda word: tuple(bytes([byte]) for byte in word.encode("ascii", errors="replace")),
    "what becomes of é? is any character unknown when bytes are the base?",
)
_reader(
    "encoding-in-lower-case",
    lambda word: tuple(bytes([byte]) for byte in word.lower().encode("utf-8")),
    "are capitals bytes of their own?",
)
_reader(
    "encoding-in-utf-16",
    lambda word: tuple(bytes([byte]) for byte in word.encode("utf-16-le")),
    "how many bytes does UTF-8 make of a letter?",
)


@case.fault(
    "characters-for-stand-ins",
    at="_bytes_of",
    tensor="tokens",
    text="a space is no character of your table turned around: which are its keys?",
)
def _():
    byte = {character: byte for byte, character in _printable()[0].items()}
    return lambda word: tuple(bytes([byte[letter]]) for letter in word)


@case.fault(
    "merges-out-of-order", at="_ranks", tensor="tokens", text="is the rank of a merge its place in the list, or in another order?"
)
def _(merges):
    return MappingProxyType({tuple(pair): rank for rank, pair in enumerate(sorted(merges))})


@case.fault(
    "first-merge-forgotten",
    at="_ranks",
    tensor="tokens",
    text="has the first merge of the list, rank 0, a place in your table? is 0 the same as nothing?",
)
def _(merges):
    return MappingProxyType({tuple(pair): rank for rank, pair in enumerate(merges) if rank})


# ---- special tokens


@case.fault(
    "special-always-honoured", at="_honoured", tensor="pieces", text="by default, should a document be able to end itself?"
)
def _():
    return True


@case.fault(
    "special-never-honoured", at="_honoured", tensor="pieces", text="with allow_special, how many ids is a special token?"
)
def _():
    return False


@case.fault(
    "special-flag-turned-round",
    at="_honoured",
    tensor="pieces",
    text="is the special token an id when it is allowed, or when it is not?",
)
def _(allow_special):
    return not allow_special


@case.fault(
    "special-shortest-first", at="_markers", tensor="pieces", text="if one marker begins with another, which must be tried first?"
)
def _(special_tokens):
    return tuple(special_tokens or ())


@case.fault("special-dropped", at="pieces", text="do the markers survive when the text is split at them?")
def _(right):
    return tuple(piece for piece in right if not piece[1])


@case.fault(
    "special-deleted-before-cutting",
    at="pieces",
    text="what stands in the place of a marker: do the texts before and behind it touch?",
)
def _(text, _markers, _honoured):
    for marker in _markers if _honoured else ():
        text = text.replace(marker, "")
    return _whole(text)


@case.fault("special-not-escaped", at="pieces", text="what does | mean in a pattern, and which markers contain it?")
def _(text, special_tokens, _markers, _honoured):
    if not _honoured or not _markers:
        return _whole(text)
    return tuple((piece, piece in special_tokens) for piece in regex.split("(" + "|".join(_markers) + ")", text) if piece)


@case.fault("special-first-only", at="pieces", text="how many markers may a text contain?")
def _(right):
    first = next((place for place, piece in enumerate(right) if piece[1]), len(right))
    rest = "".join(piece for piece, _ in right[first + 1 :])
    return right[: first + 1] + _whole(rest)


@case.fault("special-only-as-whole-text", at="pieces", text="must the marker be the whole text, or may it stand inside?")
def _(text, _markers, _honoured):
    return ((text, True),) if _honoured and text in _markers else _whole(text)


@case.fault("special-strips-the-text-around", at="pieces", text="is the white space next to a marker part of the text?")
def _(right, _honoured):
    if not _honoured:
        return right
    stripped = [(piece if special else piece.strip(), special) for piece, special in right]
    return tuple(piece for piece in stripped if piece[0])


@case.fault("special-moved-to-the-end", at="pieces", text="does a marker keep its place in the text?")
def _(right):
    return tuple(piece for piece in right if not piece[1]) + tuple(piece for piece in right if piece[1])


@case.fault("special-moved-to-the-front", at="pieces", text="does a marker keep its place in the text?")
def _(right):
    return tuple(piece for piece in right if piece[1]) + tuple(piece for piece in right if not piece[1])


@case.fault("special-text-before-first-lost", at="pieces", text="what of the text that stands before the first marker?")
def _(right):
    first = next((place for place, piece in enumerate(right) if piece[1]), 0)
    return right[first:]


@case.fault("special-text-after-last-lost", at="pieces", text="what of the text that stands after the last marker?")
def _(right):
    last = max((place for place, piece in enumerate(right) if piece[1]), default=len(right) - 1)
    return right[: last + 1]


@case.fault("special-not-escaped-and-looked-up", at="pieces", text="what does | mean in a pattern, and which markers contain it?")
def _(text, special_tokens, _markers, _honoured):
    if not _honoured or not _markers:
        return _whole(text)
    for piece in regex.findall("|".join(_markers), text):
        special_tokens[piece]
    return _cut_at(text, _markers)


@case.fault(
    "special-refused", at="pieces", text="a marker in a text that may not contain it: an error, or a text like any other?"
)
def _(right, text, _markers, _honoured):
    if not _honoured and any(marker in text for marker in _markers):
        raise ValueError(ANY)
    return right


@case.fault(
    "special-without-markers-cut-everywhere", at="pieces", text="without special tokens, what does an empty pattern match?"
)
def _(right, text, _markers, _honoured):
    return tuple((letter, False) for letter in text) if _honoured and not _markers else right


@case.fault(
    "special-ids-behind-the-merges", at="_special_ids", tensor="encoded", text="which id does the caller give a special token?"
)
def _(special_tokens, merges):
    return {marker: 256 + len(merges) + place for place, marker in enumerate(special_tokens or ())}


# ---- ids


@case.fault(
    "ids-are-bytes", at="_first_ids", tensor="encoded", text="'a' is byte 97: which id has it in the order of bytes_to_unicode?"
)
def _():
    return tuple(range(256))


@case.fault("merge-ids-from-257", at="_numbers", tensor="encoded", text="which id has the merge of rank 0?")
def _(right):
    return MappingProxyType({token: i + (i > 255) for token, i in right.items()})


@case.fault("merge-ids-from-255", at="_numbers", tensor="encoded", text="which id has the merge of rank 0? is 255 free?")
def _(right):
    return MappingProxyType({token: i - (i > 255) for token, i in right.items()})


@case.fault("merge-ids-from-0", at="_numbers", tensor="encoded", text="which ids are taken by the single bytes?")
def _(right, merges):
    return MappingProxyType({token: i + len(merges) if i < 256 else i - 256 for token, i in right.items()})


@case.fault(
    "merge-ids-behind-special-tokens",
    at="_numbers",
    tensor="encoded",
    text="do the ids of the merges move when there are special tokens?",
)
def _(right, special_tokens):
    return MappingProxyType({token: i + len(special_tokens or ()) * (i > 255) for token, i in right.items()})


@case.fault(
    "special-ids-start-at-256",
    at="_special_ids",
    tensor="encoded",
    text="which id does the caller give a special token, and which id has the first merge?",
)
def _(special_tokens):
    return {marker: 256 + place for place, marker in enumerate(special_tokens or ())}


@case.fault("merge-ids-in-sorted-order", at="_numbers", tensor="encoded", text="which id has the merge of rank r?")
def _(_first_ids, merges):
    ids = {bytes([byte]): i for i, byte in enumerate(_first_ids)}
    return MappingProxyType(ids | {left + right: 256 + place for place, (left, right) in enumerate(sorted(merges))})


@case.fault("tokens-instead-of-ids", at="encoded", text="does encode return ids, or the tokens themselves?")
def _(tokens):
    return tokens


@case.fault("ids-word-by-word", at="encoded", text="is the result one list of ids, or a list for each word?")
def _(pieces, _cutting, _bytes_of, _ranks, _merging, _numbers, _special_ids):
    found = []
    for piece, special in pieces:
        found += (
            [[_special_ids[piece]]]
            if special
            else [[_numbers[token] for token in _merging(_bytes_of(word), _ranks)] for word in _cutting(piece)]
        )
    return found


# ---- decode


def _decoding(name, make, text):
    @case.fault(name, at="decoded", text=text)
    def _(_known):
        return make(_known)


_decoding(
    "decode-strict",
    lambda known: b"".join(known).decode("utf-8"),
    "may a model stop in the middle of a character? what should decode give then?",
)
_decoding(
    "decode-drops-bad-bytes",
    lambda known: b"".join(known).decode("utf-8", errors="ignore"),
    "bytes that are no UTF-8: do they vanish, or become U+FFFD?",
)
_decoding(
    "decode-escapes-bad-bytes",
    lambda known: b"".join(known).decode("utf-8", errors="backslashreplace"),
    "bytes that are no UTF-8: what stands in their place?",
)
_decoding(
    "decode-hides-bad-bytes",
    lambda known: b"".join(known).decode("utf-8", errors="surrogateescape"),
    "bytes that are no UTF-8: what stands in their place?",
)
_decoding(
    "decode-question-marks",
    lambda known: b"".join(known).decode("utf-8", errors="replace").replace("\ufffd", "?"),
    "bytes that are no UTF-8: which character stands in their place?",
)
_decoding(
    "decode-token-by-token",
    lambda known: "".join(token.decode("utf-8", errors="replace") for token in known),
    "a character in two tokens: what does reading each of them by itself give?",
)
_decoding(
    "decode-token-by-token-strict",
    lambda known: "".join(token.decode("utf-8") for token in known),
    "a character in two tokens: what does reading each of them by itself give?",
)
_decoding(
    "decode-token-by-token-dropping",
    lambda known: "".join(token.decode("utf-8", errors="ignore") for token in known),
    "a character in two tokens: what does reading each of them by itself give?",
)
_decoding("decode-latin-1", lambda known: b"".join(known).decode("latin-1"), "in which encoding were the bytes written?")
_decoding(
    "decode-leaves-stand-ins",
    lambda known: _printed(b"".join(known)),
    "are these the characters of the text, or the stand-ins of its bytes?",
)
_decoding(
    "decode-puts-spaces-between",
    lambda known: " ".join(token.decode("utf-8", errors="replace") for token in known),
    "does anything stand between two tokens of a text?",
)
_decoding(
    "decode-strips",
    lambda known: b"".join(known).decode("utf-8", errors="replace").strip(),
    "is the white space at the ends part of the text?",
)
_decoding(
    "decode-backwards",
    lambda known: b"".join(known[::-1]).decode("utf-8", errors="replace"),
    "in which order do the tokens stand?",
)
_decoding("decode-to-bytes", lambda known: b"".join(known), "is the result a text, or the bytes of one?")
_decoding(
    "decode-tokens-in-a-list",
    lambda known: [token.decode("utf-8", errors="replace") for token in known],
    "is the result one text, or a list of pieces?",
)


@case.fault("decode-stand-ins-minus-256", at="decoded", text="is every stand-in 256 + its byte? what of those for 127 to 160?")
def _(_known):
    return bytes(ord(character) % 256 for character in _printed(b"".join(_known))).decode("utf-8", errors="replace")


@case.fault(
    "decode-special-to-nothing",
    at="_bytes_by_id",
    tensor="decoded",
    text="what does the id of a special token become in the text?",
)
def _(right, _special_ids):
    return MappingProxyType(right | dict.fromkeys(_special_ids.values(), b""))


@case.fault(
    "decode-knows-no-special",
    at="_bytes_by_id",
    tensor="decoded",
    text="is the id of a special token in the vocabulary that decode looks in?",
)
def _(_numbers):
    return MappingProxyType({i: token for token, i in _numbers.items()})


@case.fault("decode-zeros-for-bytes", at="_bytes_by_id", tensor="decoded", text="what is bytes(97), and what is bytes([97])?")
def _(_numbers, _special_ids):
    return MappingProxyType(
        {i: _zeros(token) for token, i in _numbers.items()} | {i: marker.encode("utf-8") for marker, i in _special_ids.items()}
    )


@case.fault(
    "decode-ids-are-bytes",
    at="_bytes_by_id",
    tensor="decoded",
    text="'a' is byte 97 and id 64: which of the two does decode look up?",
)
def _(right):
    return MappingProxyType(right | {byte: bytes([byte]) for byte in range(256)})


@case.fault(
    "decode-merge-is-its-right-part",
    at="_bytes_by_id",
    tensor="decoded",
    text="which bytes does a merge stand for: those of both parts?",
)
def _(right, merges):
    return MappingProxyType(right | {256 + rank: pair[1] for rank, pair in enumerate(merges)})


@case.fault(
    "unknown-id-raises-another-error", at="_known", tensor="decoded", text="which kind of error should an unknown id raise?"
)
def _(_bytes_by_id, ids):
    return [_bytes_by_id[i] for i in ids]


@case.fault(
    "unknown-id-accepted", at="_known", tensor="decoded", text="what should decode do with an id that is not in the vocabulary?"
)
def _(_bytes_by_id, ids):
    return [_bytes_by_id.get(i, b"") for i in ids]


# ---------------------------------------------------------------- tokens_per_character


@case.step
def _ids_of(tokenizer, text):
    """The tokens of a text with `tokenizer` bytes a token; here only their number counts."""
    data = text.encode("utf-8")
    return [data[start : start + tokenizer] for start in range(0, len(data), tokenizer)]


@case.step
def _characters(text):
    if not text:
        raise ValueError("text is empty")
    return len(text)


@case.step
def price(_ids_of, _characters):
    return len(_ids_of) / _characters


def price_inputs(draw: Draw):
    yield sample("one token a byte, 'abc'", tokenizer=1, text="abc")
    yield sample("one token a byte, 'é'", tokenizer=1, text="é")
    yield sample("three bytes a token", tokenizer=3, text="abcabcabc, a cat")
    yield sample("two bytes a token, letters of three bytes", tokenizer=2, text="日が照っている。\n")
    yield sample("white space around the text", tokenizer=2, text="  ab cd \n ef\n\n ")
    yield sample("a special token in the text", tokenizer=2, text="end<|end|>é")
    yield sample("forty letters", tokenizer=3, text="".join(draw.random.choices("abc é日", k=40)))
    yield refusal("the empty text", ValueError, tokenizer=1, text="")


case.exercise(
    "tokens_per_character(tokenizer, text)",
    returns="price",
    inputs=price_inputs,
    points=1,
    lesson="What a text costs",
    hints=(
        "A price is so much for one of something: how many ids for one character?",
        "The tokenizer counts the ids, Python's len the characters; a text without characters has no price.",
        "price = len(tokenizer.encode(text)) / len(text)",
    ),
    reference=lambda tokenizer, text: -(-len(text.encode("utf-8")) // tokenizer) / len(list(text)),
    probe="tokens_per_character",
)


@case.fault("price-upside-down", at="price", text="what is divided by what: tokens for a character, or characters for a token?")
def _(_ids_of, _characters):
    return _characters / len(_ids_of)


@case.fault("price-in-whole-tokens", at="price", text="does your division keep what stands behind the point?")
def _(_ids_of, _characters):
    return len(_ids_of) // _characters


@case.fault("price-rounded", at="price", text="who asked for a rounded price?")
def _(right):
    return round(right, 2)


@case.fault("price-of-the-whole-text", at="price", text="is your price for one character, or for the whole text?")
def _(right, _characters):
    return right * _characters


@case.fault("price-in-percent", at="price", text="is the price a number of tokens, or of hundredths?")
def _(right):
    return 100 * right


@case.fault("price-per-byte", at="_characters", tensor="price", text="how many characters is é, and how many bytes?")
def _(right, text):
    return len(text.encode("utf-8"))


@case.fault("price-per-word", at="_characters", tensor="price", text="is the price for a character, or for a word?")
def _(right, text):
    return len(text.split())


@case.fault("price-without-spaces", at="_characters", tensor="price", text="is a space a character?")
def _(right, text):
    return len("".join(text.split()))


@case.fault("price-without-plain-spaces", at="_characters", tensor="price", text="is a space a character?")
def _(right, text):
    return len(text.replace(" ", ""))


@case.fault("price-of-letters-alone", at="_characters", tensor="price", text="are signs and spaces characters?")
def _(right, text):
    return sum(letter.isalpha() for letter in text)


@case.fault(
    "price-per-kind-of-character", at="_characters", tensor="price", text="a letter that comes back: how many characters is it?"
)
def _(right, text):
    return len(set(text))


@case.fault("price-of-stripped-text", at="_characters", tensor="price", text="is the white space at the ends part of the text?")
def _(right, text):
    return len(text.strip())


@case.fault("price-per-gap", at="_characters", tensor="price", text="how many characters has 'abc'?")
def _(right):
    return max(right - 1, 1)


@case.fault("price-of-kinds-of-tokens", at="_ids_of", tensor="price", text="a token that comes back: does it cost again?")
def _(right):
    return set(right)


@case.fault("price-with-special-tokens", at="_ids_of", tensor="price", text="is a marker in the text an ordinary text here?")
def _(tokenizer, text):
    data = text.encode("utf-8").replace(b"<|end|>", b"\0" * tokenizer)
    return [data[start : start + tokenizer] for start in range(0, len(data), tokenizer)]


@case.fault(
    "price-of-tokens-in-stripped-text",
    at="_ids_of",
    tensor="price",
    text="is the text that you encode the text that you were given?",
)
def _(tokenizer, text):
    data = text.strip().encode("utf-8")
    return [data[start : start + tokenizer] for start in range(0, len(data), tokenizer)]


@case.fault("price-of-characters", at="_ids_of", tensor="price", text="who counts the tokens: the tokenizer, or Python's len?")
def _(text):
    return list(text)


@case.fault(
    "price-divides-by-zero",
    at="_characters",
    tensor="price",
    text="what is the price per character of a text that has none: which error says so?",
)
def _(text):
    return len(text)


@case.fault(
    "price-of-nothing-given", at="_characters", tensor="price", text="what is the price per character of a text that has none?"
)
def _(text):
    return len(text) or 1
