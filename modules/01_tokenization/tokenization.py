"""Tokenization: from text to bytes to the integers that a GPT reads, and back.

Write the functions in the order they stand here: each one uses those above it. No torch in this module.

Words    byte 0..255 of the text's UTF-8 · id the integer of one token · merge (left, right) two byte strings
         that become one token · rank a merge's place in the list, 0 learnt first · special token a marker
         such as <|endoftext|> that has an id of its own and no bytes that merges could build
Ids      0..255 the single bytes, in the order of `bytes_to_unicode` · 256 + r the merge of rank r
"""


def bytes_to_unicode() -> dict[int, str]:
    """Give each of the 256 bytes one visible character, so that a token can be printed and stored as text.

    The bytes 33..126, 161..172 and 174..255 keep their own character, chr(byte). The 68 others (space, newline,
    control characters, ...) take chr(256), chr(257), ... in increasing order of the byte. The dictionary holds
    the 188 that keep theirs first, then the 68: byte number i of this order has the id i in GPT-2's vocabulary.

    By hand: 33 -> "!" comes first (id 0), 65 -> "A" has the id 32; 0 -> chr(256) has the id 188, and
    the space, byte 32, -> chr(288) = "Ġ" has the id 220.

    Source: Radford et al. 2019, section 2.2 (bytes as the base vocabulary); the table is that of the released encoder.
    """
    raise NotImplementedError


def count_pairs(ids: list[int]) -> dict[tuple[int, int], int]:
    """Count every pair of neighbours.

        counts[(a, b)] = number of i with ids[i] = a and ids[i+1] = b

    Overlaps count: three equal ids hold two pairs.

    By hand: [1, 2, 1, 2, 2] gives {(1, 2): 2, (2, 1): 1, (2, 2): 1}; [5, 5, 5] gives {(5, 5): 2}; [5] gives {}.

    Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", algorithm 1 (get_stats).
    """
    raise NotImplementedError


def merge_pair(ids: list[int], pair: tuple[int, int], new_id: int) -> list[int]:
    """Replace the pair by the new id wherever it stands, reading from the left; an id is used up at most once.

    Returns a new list; `ids` stays as it is.

    By hand: ids [1, 2, 3, 1, 2], pair (1, 2), new_id 9 gives [9, 3, 9]; [5, 5, 5] with pair (5, 5) gives [9, 5].

    Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", algorithm 1 (merge_vocab).
    """
    raise NotImplementedError


def split_words(text: str) -> list[str]:
    """Cut a text as GPT-2 does before any merge, so that no token ever spans two words.

    At each place the first rule that fits takes as much as it can:

        1. 's 't 're 've 'm 'll 'd, in lower case only
        2. letters (Unicode category L), with one space in front if there is one
        3. numbers (Unicode category N), with one space in front if there is one
        4. signs that are neither white space nor letter nor number, with one space in front if there is one
        5. white space that no word follows; before a word the run leaves its last character to the next cut
        6. white space

    Nothing is lost: the pieces joined together are the text.

    By hand: "I'll pay 12 euros" gives ["I", "'ll", " pay", " 12", " euros"]; "a  b" (two spaces) gives
    ["a", " ", " b"]; "x_1" gives ["x", "_", "1"].

    Source: Radford et al. 2019, section 2.2 (no merges across character categories, the space excepted); the rules
    are those of the released encoder.
    """
    raise NotImplementedError


def train_bpe(text: str, vocab_size: int) -> list[tuple[bytes, bytes]]:
    """Learn merges from a text: join the most frequent pair of neighbours, again and again.

    Pairs are counted inside the pieces of `split_words`, overlaps included, as `count_pairs` does. Of pairs that
    are equally frequent, the greatest one wins: Python's own order on (left, right), two byte strings.
    256 ids are the bytes, so vocab_size - 256 merges are learnt; fewer when no pair is left.

    Returns the merges in the order learnt.

    By hand: "abab" and vocab_size 258. (a, b) stands twice and (b, a) once: the first merge is (b"a", b"b").
    Then only (ab, ab) is left, so the second is (b"ab", b"ab"), and a third does not exist.

    Raises ValueError when vocab_size is below 256.

    Source: Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", algorithm 1; on bytes:
    Radford et al. 2019, section 2.2.
    """
    raise NotImplementedError


def load_merges(path: str) -> list[tuple[bytes, bytes]]:
    """Read the merges from a file in GPT-2's format.

    The file is UTF-8. Its first line may be a header that starts with "#version"; every other line is one merge,
    two tokens with a space between, each byte written as its character in `bytes_to_unicode`. A line such as
    "# #" is a merge like any other.

    By hand: the line "Ġ t" is the merge (b" ", b"t").

    Source: Radford et al. 2019; the format is that of the released file vocab.bpe.
    """
    raise NotImplementedError


class Tokenizer:
    """Turn text into ids and ids into text, with a list of merges and a few special tokens."""

    def __init__(self, merges: list[tuple[bytes, bytes]], special_tokens: dict[str, int] | None = None) -> None:
        """Number the vocabulary: ids 0..255 for the bytes in the order of `bytes_to_unicode`, 256 + r for merge r.

        special_tokens maps a marker's text to its id; the ids are taken as they are.

        By hand: with merges [(b"a", b"b")] the id 256 stands for b"ab", and 64 for b"a".

        Source: Radford et al. 2019, section 2.2 and the released encoder.
        """
        raise NotImplementedError

    def encode(self, text: str, allow_special: bool = False) -> list[int]:
        """Turn a text into ids: cut it into words, and inside each word apply the merges, lowest rank first.

        In each word: of all neighbours that form a merge, the merge of the lowest rank is applied wherever it
        stands; repeat until no neighbours form one. With allow_special the special tokens in the text become their
        ids, the longest first where several fit, and only the text between them is cut into words; without it
        they are text like any other.

        By hand: with merges [(b"b", b"c"), (b"a", b"b")] the text "abc" becomes a|bc, that is [64, 256].

        Source: Sennrich et al. 2016, section 3.2; on bytes: Radford et al. 2019, section 2.2.
        """
        raise NotImplementedError

    def decode(self, ids: list[int]) -> str:
        """Turn ids back into text: put their bytes one after the other, then read all of them as UTF-8.

        Bytes that are not UTF-8 become U+FFFD, the replacement character; a special token becomes its text.

        By hand: [64, 65] is "ab"; the id 220 is one space.

        Raises ValueError when an id is not in the vocabulary.

        Source: Radford et al. 2019, section 2.2; U+FFFD: the Unicode Standard, section 3.9.
        """
        raise NotImplementedError


def tokens_per_character(tokenizer: Tokenizer, text: str) -> float:
    """Return the price of a text: how many tokens one character of it costs on average.

        price = number of ids / number of characters (Python's len)

    By hand: a tokenizer without merges charges 1 for "abc" and 2 for "é", which is two bytes of UTF-8.

    Raises ValueError when the text is empty.

    Source: Petrov et al. 2023, "Language Model Tokenizers Introduce Unfairness Between Languages", section 3.
    """
    raise NotImplementedError
