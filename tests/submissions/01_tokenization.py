"""Submissions of 01_tokenization: patches on the solution, with what the grader must say of them."""


# %% wrong: range without its end
# expect: bytes_to_unicode fail at characters as range-ends-missing
def bytes_to_unicode():
    bs = list(range(ord("!"), ord("~"))) + list(range(ord("¡"), ord("¬"))) + list(range(ord("®"), ord("ÿ")))
    cs = bs[:]
    n = 0
    for b in range(256):
        if b not in bs:
            bs.append(b)
            cs.append(256 + n)
            n += 1
    return dict(zip(bs, map(chr, cs)))


# %% wrong: stand-in is 256 plus the byte
# expect: bytes_to_unicode fail at characters as stand-ins-at-256-plus-byte
def bytes_to_unicode():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    table = {b: chr(b) for b in keep}
    for b in range(256):
        if b not in table:
            table[b] = chr(256 + b)
    return table


# %% wrong: space and newline alone
# expect: bytes_to_unicode fail at characters as only-space-and-newline-replaced
def bytes_to_unicode():
    table = {}
    for b in range(256):
        table[b] = chr(b)
    table[ord(" ")] = "\u0120"
    table[ord("\n")] = "\u010a"
    return table


# %% wrong: order of the bytes
# expect: bytes_to_unicode fail at order as order-by-byte
def bytes_to_unicode():
    table, n = {}, 0
    for b in range(256):
        if 33 <= b <= 126 or 161 <= b <= 172 or b >= 174:
            table[b] = chr(b)
        else:
            table[b] = chr(256 + n)
            n += 1
    return table


# %% wrong: isprintable decides
# expect: bytes_to_unicode fail at characters as space-keeps-its-character
def bytes_to_unicode():
    good = [b for b in range(256) if chr(b).isprintable()]
    bad = [b for b in range(256) if not chr(b).isprintable()]
    return {**{b: chr(b) for b in good}, **{b: chr(256 + i) for i, b in enumerate(bad)}}


# %% wrong: soft hyphen kept
# expect: bytes_to_unicode fail at characters as soft-hyphen-keeps-its-character
def bytes_to_unicode():
    keep = list(range(33, 127)) + list(range(161, 256))
    rest = [b for b in range(256) if b not in keep]
    return {b: chr(b) for b in keep} | {b: chr(256 + i) for i, b in enumerate(rest)}


# %% wrong: characters to bytes
# expect: bytes_to_unicode fail at characters as table-upside-down
def bytes_to_unicode():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in keep]
    table = {chr(b): b for b in keep}
    table.update({chr(256 + i): b for i, b in enumerate(rest)})
    return table


# %% wrong: codes in place of characters
# expect: bytes_to_unicode fail at characters as codes-for-characters
def bytes_to_unicode():
    keep = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [b for b in range(256) if b not in keep]
    return {b: b for b in keep} | {b: 256 + i for i, b in enumerate(rest)}


# %% wrong: stand-ins counted from 257
# expect: bytes_to_unicode fail at characters as stand-ins-from-257
def bytes_to_unicode():
    table = {b: chr(b) for b in [*range(33, 127), *range(161, 173), *range(174, 256)]}
    n = 0
    for b in range(256):
        if b not in table:
            n += 1
            table[b] = chr(256 + n)
    return table


# %% wrong: two mistakes, 256 plus the byte and the order of the bytes
# expect: bytes_to_unicode fail at characters as stand-ins-at-256-plus-byte + order-by-byte
def bytes_to_unicode():
    def visible(b):
        return 33 <= b <= 126 or 161 <= b <= 172 or 174 <= b <= 255

    return {b: chr(b) if visible(b) else chr(256 + b) for b in range(256)}


# %% wrong: overlaps not counted
# expect: count_pairs fail at counts as count-without-overlaps
def count_pairs(ids):
    counts = {}
    last_pair, last_i = None, -2
    for i in range(len(ids) - 1):
        pair = (ids[i], ids[i + 1])
        if pair == last_pair and last_i == i - 1 and pair[0] == pair[1]:
            last_pair = None
            continue
        counts[pair] = counts.get(pair, 0) + 1
        last_pair, last_i = pair, i
    return counts


# %% wrong: last pair missed
# expect: count_pairs fail at counts as count-misses-last-pair
def count_pairs(ids):
    counts = defaultdict(int)
    for i in range(len(ids) - 2):
        counts[ids[i], ids[i + 1]] += 1
    return counts


# %% wrong: index past the end
# expect: count_pairs error as count-runs-past-the-end
def count_pairs(ids):
    counts = {}
    for i in range(len(ids)):
        pair = (ids[i], ids[i + 1])
        counts[pair] = counts.get(pair, 0) + 1
    return counts


# %% wrong: first count is 0
# expect: count_pairs fail at counts as count-starts-at-zero
def count_pairs(ids):
    counts = {}
    for pair in zip(ids, ids[1:]):
        if pair in counts:
            counts[pair] += 1
        else:
            counts[pair] = 0
    return counts


# %% wrong: pairs by twos
# expect: count_pairs fail at counts as count-every-second-pair
def count_pairs(ids):
    counts = {}
    for i in range(0, len(ids) - 1, 2):
        counts[(ids[i], ids[i + 1])] = counts.get((ids[i], ids[i + 1]), 0) + 1
    return counts


# %% wrong: pairs without order
# expect: count_pairs fail at counts as count-without-order
def count_pairs(ids):
    return dict(Counter((min(a, b), max(a, b)) for a, b in zip(ids, ids[1:])))


# %% wrong: two mistakes, last pair missed and order lost
# expect: count_pairs fail at counts as count-misses-last-pair + count-backwards
def count_pairs(ids):
    return dict(Counter((b, a) for a, b in zip(ids[:-1], ids[1:-1])))


# %% wrong: a list of counts
# expect: count_pairs fail at counts as count-as-pairs-in-a-list
def count_pairs(ids):
    return sorted(Counter(zip(ids, ids[1:])).items(), key=lambda item: item[1], reverse=True)


# %% wrong: last id lost
# expect: merge_pair fail at merged as merge-loses-last-id
def merge_pair(ids, pair, new_id):
    new_ids = []
    i = 0
    while i < len(ids) - 1:
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            new_ids.append(new_id)
            i += 2
        else:
            new_ids.append(ids[i])
            i += 1
    return new_ids


# %% wrong: list shrinks under the loop
# expect: merge_pair error as merge-while-the-list-shrinks
def merge_pair(ids, pair, new_id):
    ids = ids.copy()
    for i in range(len(ids) - 1):
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i] = new_id
            ids.pop(i + 1)
    return ids


# %% wrong: the caller's list shrinks under the loop
# expect: merge_pair fail as argument-changed-in-place
def merge_pair(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            ids[i] = new_id
            del ids[i + 1]
    return ids


# %% wrong: changes the caller's list
# expect: merge_pair fail as argument-changed-in-place
def merge_pair(ids, pair, new_id):
    i = 0
    while i < len(ids) - 1:
        if (ids[i], ids[i + 1]) == pair:
            ids[i : i + 2] = [new_id]
        i += 1
    return ids


# %% wrong: runs collapse
# expect: merge_pair fail at merged as merge-runs-collapse
def merge_pair(ids, pair, new_id):
    hits = [i for i in range(len(ids) - 1) if (ids[i], ids[i + 1]) == pair]
    out = list(ids)
    for i in hits:
        out[i] = new_id
    drop = {i + 1 for i in hits}
    return [x for i, x in enumerate(out) if i not in drop]


# %% wrong: one step after a join
# expect: merge_pair fail at merged as merge-keeps-second-id
def merge_pair(ids, pair, new_id):
    out = []
    for i in range(len(ids)):
        if i < len(ids) - 1 and ids[i] == pair[0] and ids[i + 1] == pair[1]:
            out.append(new_id)
        else:
            out.append(ids[i])
    return out


# %% wrong: first place alone
# expect: merge_pair fail at merged as merge-first-only
def merge_pair(ids, pair, new_id):
    for i in range(len(ids) - 1):
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            return ids[:i] + [new_id] + ids[i + 2 :]
    return list(ids)


# %% wrong: looks past the end
# expect: merge_pair error as merge-looks-past-the-end
def merge_pair(ids, pair, new_id):
    out = []
    i = 0
    while i < len(ids):
        if ids[i] == pair[0] and ids[i + 1] == pair[1]:
            out.append(new_id)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


# %% wrong: from the right
# expect: merge_pair fail at merged as merge-from-the-right
def merge_pair(ids, pair, new_id):
    out = []
    i = len(ids) - 1
    while i >= 0:
        if i > 0 and (ids[i - 1], ids[i]) == pair:
            out.insert(0, new_id)
            i -= 2
        else:
            out.insert(0, ids[i])
            i -= 1
    return out


# %% wrong: first id alone decides
# expect: merge_pair fail at merged as merge-by-first-id-alone
def merge_pair(ids, pair, new_id):
    out, i = [], 0
    while i < len(ids):
        if ids[i] == pair[0] and i < len(ids) - 1:
            out.append(new_id)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


# %% wrong: three ids used up
# expect: merge_pair fail at merged as merge-skips-one-after-a-join
def merge_pair(ids, pair, new_id):
    out, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == tuple(pair):
            out.append(new_id)
            i += 2
        else:
            out.append(ids[i])
        i += 1
    return out


# %% wrong: two mistakes, order of the pair ignored and runs collapse
# expect: merge_pair fail at merged as merge-in-either-order + merge-runs-collapse
def merge_pair(ids, pair, new_id):
    hits = [i for i in range(len(ids) - 1) if sorted(ids[i : i + 2]) == sorted(pair)]
    return [new_id if i in hits else x for i, x in enumerate(ids) if i - 1 not in hits]


# %% wrong: identity instead of equality
# expect: merge_pair fail at merged as merge-misses-large-ids
def merge_pair(ids, pair, new_id):
    out, i = [], 0
    while i < len(ids):
        if i + 1 < len(ids) and ids[i] is pair[0] and ids[i + 1] is pair[1]:
            out.append(new_id)
            i += 2
        else:
            out.append(ids[i])
            i += 1
    return out


# %% wrong: letters of ASCII
# expect: split_words fail at words as letters-ascii-only
def split_words(text):
    return regex.findall(r"'s|'t|'re|'ve|'m|'ll|'d| ?[A-Za-z]+| ?\p{N}+| ?[^\sA-Za-z\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: letters and digits of ASCII, with the module re
# expect: split_words fail at words as letters-ascii-only + numbers-are-digits-only
def split_words(text):
    import re

    return re.findall(r"'(?:[sdmt]|ll|ve|re)| ?[a-zA-Z]+| ?[0-9]+| ?[^\sa-zA-Z0-9]+|\s+(?!\S)|\s+", text)


# %% wrong: w for letters, with the module re
# expect: split_words fail at words as letters-by-w
def split_words(text):
    import re

    return re.findall(r"'(?:[sdmt]|ll|ve|re)| ?\w+| ?\d+| ?[^\s\w]+|\s+(?!\S)|\s+", text)


# %% wrong: any white space in front
# expect: split_words fail at words as lead-is-any-white-space
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)|\s?\p{L}+|\s?\p{N}+|\s?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: capturing parentheses
# expect: split_words fail at words as groups-instead-of-matches
def split_words(text):
    return regex.findall(r"'(s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: capturing parentheses around the contractions
# expect: split_words fail at words as groups-with-apostrophe-instead-of-matches
def split_words(text):
    return regex.findall(r"('s|'t|'re|'ve|'m|'ll|'d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: pattern of GPT-4
# expect: split_words fail at words as pattern-of-a-later-model
def split_words(text):
    pattern = r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+"""
    return regex.findall(pattern, text)


# %% wrong: case ignored
# expect: split_words fail at words as endings-in-capitals-too
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text, regex.IGNORECASE)


# %% wrong: digits by threes
# expect: split_words fail at words as numbers-by-threes
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}{1,3}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: all white space at once
# expect: split_words fail at words as spaces-not-given-back
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+", text)


# %% wrong: str.split
# expect: split_words fail at words as words-by-white-space-alone
def split_words(text):
    return text.split()


# %% wrong: cut between words and gaps
# expect: split_words fail at words as words-and-gaps
def split_words(text):
    return [part for part in regex.split(r"(\s+)", text) if part]


# %% wrong: contractions after the signs
# expect: split_words fail at words as endings-missing
def split_words(text):
    return regex.findall(r" ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|'(?:[sdmt]|ll|ve|re)|\s+(?!\S)|\s+", text)


# %% wrong: underscore in no rule
# expect: split_words fail at words as signs-without-underscore
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}_]+|\s+(?!\S)|\s+", text)


# %% wrong: marks are letters
# expect: split_words fail at words as letters-with-marks
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)| ?[\p{L}\p{M}]+| ?\p{N}+| ?[^\s\p{L}\p{M}\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: pieces stripped
# expect: split_words fail at words as words-stripped
def split_words(text):
    return [piece.strip() for piece in GPT2_WORDS.findall(text)]


# %% wrong: two mistakes, any white space in front and digits by threes
# expect: split_words fail at words as lead-is-any-white-space + numbers-by-threes
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)|\s?\p{L}+|\s?\p{N}{1,3}|\s?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: two mistakes, capitals in contractions and white space not given back
# expect: split_words fail at words as endings-in-capitals-too + spaces-not-given-back
def split_words(text):
    return regex.findall(r"(?i:'(?:[sdmt]|ll|ve|re))| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+", text)


# %% wrong: ties to the first pair seen
# expect: train_bpe fail at merges as tie-to-first-seen
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError(f"vocab_size {vocab_size}")
    words = [list(word.encode("utf-8")) for word in split_words(text)]
    vocab = {i: bytes([i]) for i in range(256)}
    merges = []
    for new_id in range(256, vocab_size):
        counts = {}
        for word in words:
            for pair, n in count_pairs(word).items():
                counts[pair] = counts.get(pair, 0) + n
        if not counts:
            break
        best = max(counts, key=counts.get)
        vocab[new_id] = vocab[best[0]] + vocab[best[1]]
        merges.append((vocab[best[0]], vocab[best[1]]))
        words = [merge_pair(word, best, new_id) for word in words]
    return merges


# %% wrong: ties to the smallest pair
# expect: train_bpe fail at merges as tie-to-smallest
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = sorted(counts, key=lambda pair: (-counts[pair], pair))[0]
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: ties by ids
# expect: train_bpe fail at merges as tie-by-ids
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError(f"vocab_size {vocab_size}")
    words = [list(word.encode("utf-8")) for word in split_words(text)]
    vocab = [bytes([i]) for i in range(256)]
    merges = []
    while len(vocab) < vocab_size:
        counts = Counter()
        for word in words:
            counts.update(zip(word, word[1:]))
        if len(counts) == 0:
            return merges
        a, b = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append((vocab[a], vocab[b]))
        words = [merge_pair(word, (a, b), len(vocab)) for word in words]
        vocab.append(vocab[a] + vocab[b])
    return merges


# %% wrong: ties by stand-ins
# expect: train_bpe fail at merges as tie-by-stand-ins
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    char = bytes_to_unicode()
    byte = {c: b for b, c in char.items()}
    words = [["".join(char[b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        left, right = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append((bytes(byte[c] for c in left), bytes(byte[c] for c in right)))
        words = [merge_pair(word, (left, right), left + right) for word in words]
    return merges


# %% wrong: ties by the joined bytes
# expect: train_bpe fail at merges as tie-by-joined-bytes
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair[0] + pair[1]))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: max of nothing
# expect: train_bpe error as max-of-nothing
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    for _ in range(vocab_size - 256):
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: as many merges as ids
# expect: train_bpe fail at merges as merges-as-many-as-ids
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    for _ in range(vocab_size):
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: no check of vocab_size
# expect: train_bpe fail as vocabulary-below-256-accepted
def train_bpe(text, vocab_size):
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    for _ in range(vocab_size - 256):
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: 256 refused
# expect: train_bpe error as vocabulary-of-256-refused
_train = train_bpe


def train_bpe(text, vocab_size):
    if vocab_size <= 256:
        raise ValueError(f"vocab_size must be larger than 256, not {vocab_size}")
    return _train(text, vocab_size)


# %% wrong: one id kept free for a special token
# expect: train_bpe fail at merges as one-merge-too-few
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256 - 1:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: training on the uncut text
# expect: train_bpe fail at merges as training-on-uncut-text
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    tokens = list(text.encode("utf-8"))
    vocab = {i: bytes([i]) for i in range(256)}
    merges = []
    for i in range(vocab_size - 256):
        counts = count_pairs(tokens)
        if not counts:
            break
        best = max(counts, key=lambda p: (counts[p], vocab[p[0]], vocab[p[1]]))
        vocab[256 + i] = vocab[best[0]] + vocab[best[1]]
        merges.append((vocab[best[0]], vocab[best[1]]))
        tokens = merge_pair(tokens, best, 256 + i)
    return merges


# %% wrong: words by str.split
# expect: train_bpe fail at merges as training-on-words-without-spaces
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in text.split()]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: characters instead of bytes
# expect: train_bpe fail at merges as training-from-characters
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[c.encode("utf-8") for c in word] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: bytes of a number
# expect: train_bpe fail at merges as byte-strings-of-zeros
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError(f"vocab_size {vocab_size}")
    words = [list(word.encode("utf-8")) for word in split_words(text)]
    vocab = {i: bytes(i) for i in range(256)}
    real = {i: bytes([i]) for i in range(256)}
    merges = []
    for new_id in range(256, vocab_size):
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], real[pair[0]], real[pair[1]]))
        vocab[new_id], real[new_id] = vocab[best[0]] + vocab[best[1]], real[best[0]] + real[best[1]]
        merges.append((vocab[best[0]], vocab[best[1]]))
        words = [merge_pair(word, best, new_id) for word in words]
    return merges


# %% wrong: each different word once
# expect: train_bpe fail at merges as each-word-counted-once
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in set(split_words(text))]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: stops at pairs that stand once
# expect: train_bpe fail at merges as stops-at-pairs-seen-once
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        best = max(counts, key=lambda pair: (counts[pair], pair), default=None)
        if counts[best] < 2:
            break
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: counts taken once
# expect: train_bpe fail at merges as training-without-recount
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    counts = Counter()
    for word in split_words(text):
        parts = [bytes([b]) for b in word.encode("utf-8")]
        counts.update(zip(parts, parts[1:]))
    ranked = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
    return [pair for pair, _ in ranked[: vocab_size - 256]]


# %% wrong: overlaps in training
# expect: train_bpe fail at merges as training-counts-without-overlaps
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256:
        pairs = {pair for word in words for pair in zip(word, word[1:])}
        if not pairs:
            break
        # How often would the pair be replaced?
        counts = {pair: sum(merge_pair(word, pair, None).count(None) for word in words) for pair in pairs}
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: merges as ids
# expect: train_bpe fail at merges as merges-as-ids
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [list(word.encode()) for word in split_words(text)]
    vocab = {i: bytes([i]) for i in range(256)}
    merges = {}
    for i in range(vocab_size - 256):
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = max(counts, key=lambda p: (counts[p], vocab[p[0]], vocab[p[1]]))
        merges[best] = 256 + i
        vocab[256 + i] = vocab[best[0]] + vocab[best[1]]
        words = [merge_pair(word, best, 256 + i) for word in words]
    return list(merges)


# %% wrong: two mistakes, first pair seen and one merge too many
# expect: train_bpe fail at merges as tie-to-first-seen + one-merge-too-many
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError("too small")
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) <= vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        best = counts.most_common(1)[0][0]
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: two mistakes, ties to the smallest and no check of vocab_size
# expect: train_bpe fail at merges as tie-to-smallest
def train_bpe(text, vocab_size):
    words = [[bytes([b]) for b in word.encode()] for word in split_words(text)]
    merges = []
    while len(merges) < vocab_size - 256:
        counts = Counter(pair for word in words for pair in zip(word, word[1:]))
        if not counts:
            break
        most = max(counts.values())
        best = min(pair for pair in counts if counts[pair] == most)
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% wrong: header always skipped
# expect: load_merges fail at merges_read as header-always-skipped
def load_merges(path):
    byte_of = {c: b for b, c in bytes_to_unicode().items()}
    merges = []
    with open(path, encoding="utf-8") as f:
        next(f)
        for line in f:
            left, right = line.split()
            merges.append((bytes(byte_of[c] for c in left), bytes(byte_of[c] for c in right)))
    return merges


# %% wrong: lines with a hash skipped
# expect: load_merges fail at merges_read as lines-with-hash-skipped
def load_merges(path):
    byte_of = {c: b for b, c in bytes_to_unicode().items()}
    merges = []
    with open(path, encoding="utf-8") as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            merges.append(tuple(bytes(byte_of[c] for c in token) for token in line.split()))
    return merges


# %% wrong: header taken for a merge
# expect: load_merges fail at merges_read as header-never-skipped
def load_merges(path):
    byte_of = {c: b for b, c in bytes_to_unicode().items()}
    with open(path, encoding="utf-8") as f:
        return [tuple(bytes(byte_of[c] for c in token) for token in line.split()) for line in f if line.strip()]


# %% wrong: last line cut off
# expect: load_merges fail at merges_read as last-line-lost
def load_merges(path):
    byte_of = {c: b for b, c in bytes_to_unicode().items()}
    lines = open(path, encoding="utf-8").read().split("\n")[:-1]
    if lines and lines[0].startswith("#version"):
        del lines[0]
    return [tuple(bytes(byte_of[c] for c in token) for token in line.split()) for line in lines]


# %% wrong: stand-ins encoded as text
# expect: load_merges fail at merges_read as stand-ins-encoded
def load_merges(path):
    lines = open(path, encoding="utf-8").read().splitlines()
    if lines[0].startswith("#version"):
        lines = lines[1:]
    return [tuple(token.encode("utf-8") for token in line.split(" ")) for line in lines]


# %% wrong: only the space is put back
# expect: load_merges fail at merges_read as only-space-put-back
def load_merges(path):
    merges = []
    for line in open(path, encoding="utf-8"):
        if line.startswith("#version"):
            continue
        a, b = line.rstrip("\n").split(" ")
        merges.append((a.replace("Ġ", " ").encode("utf-8"), b.replace("Ġ", " ").encode("utf-8")))
    return merges


# %% wrong: stand-ins minus 256
# expect: load_merges fail at merges_read as codes-cut-to-a-byte
def load_merges(path):
    def back(token):
        return bytes(ord(c) - 256 if ord(c) >= 256 else ord(c) for c in token)

    lines = open(path, encoding="utf-8").read().split("\n")
    return [tuple(back(t) for t in line.split(" ")) for line in lines if line and not line.startswith("#version")]


# %% wrong: merges sorted
# expect: load_merges fail at merges_read as read-and-sorted
_load = load_merges


def load_merges(path):
    return sorted(set(_load(path)))


# %% wrong: a dictionary of ranks
# expect: load_merges fail at merges_read as read-as-ranks
_load = load_merges


def load_merges(path):
    return dict(zip(_load(path), range(100000)))


# %% wrong: empty line at the end
# expect: load_merges error as empty-line-taken-for-a-merge
def load_merges(path):
    byte_of = {c: b for b, c in bytes_to_unicode().items()}
    lines = open(path, encoding="utf-8").read().split("\n")
    if lines[0].startswith("#version"):
        lines = lines[1:]
    merges = []
    for line in lines:
        a, b = line.split(" ")
        merges.append((bytes([byte_of[c] for c in a]), bytes([byte_of[c] for c in b])))
    return merges


# %% wrong: two mistakes, header always skipped and merges as text
# expect: load_merges fail at merges_read as header-always-skipped + merges-left-as-text
def load_merges(path):
    lines = open(path, encoding="utf-8").read().splitlines()[1:]
    return [tuple(line.split()) for line in lines]


# %% wrong: leftmost pair first
# expect: Tokenizer fail at tokens as leftmost-pair-first
def merge_word(ids, merged):
    i = 0
    while i < len(ids) - 1:
        pair = (ids[i], ids[i + 1])
        if pair in merged:
            ids[i : i + 2] = [merged[pair]]
            i = 0
        else:
            i += 1
    return ids


# %% wrong: sweeps from left to right
# expect: Tokenizer fail at tokens as sweeps-from-left-to-right
def merge_word(ids, merged):
    changed = True
    while changed:
        changed, out, i = False, [], 0
        while i < len(ids):
            if i + 1 < len(ids) and (ids[i], ids[i + 1]) in merged:
                out.append(merged[ids[i], ids[i + 1]])
                i, changed = i + 2, True
            else:
                out.append(ids[i])
                i += 1
        ids = out
    return ids


# %% wrong: longest token first
# expect: Tokenizer fail at tokens as longest-token-first
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        pieces = self.special_pattern.split(text) if allow_special and self.special_tokens else [text]
        known = {token: i for i, token in self.vocab.items() if i < 256 + len(self.merged)}
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
                continue
            for word in split_words(piece):
                data = word.encode("utf-8")
                while data:
                    n = len(data)
                    while data[:n] not in known:
                        n -= 1
                    ids.append(known[data[:n]])
                    data = data[n:]
        return ids


# %% wrong: highest rank first
# expect: Tokenizer fail at tokens as highest-rank-first
def merge_word(ids, merged):
    while True:
        pairs = [p for p in zip(ids, ids[1:]) if p in merged]
        if not pairs:
            return ids
        best = max(pairs, key=merged.get)
        ids = merge_pair(ids, best, merged[best])


# %% wrong: rank of a single token looked up
# expect: Tokenizer fail at tokens as nothing-merged
def merge_word(ids, merged):
    parts = [[i] for i in ids]
    ranks = {(new,): new for new in merged.values()}
    while len(parts) > 1:
        scores = [ranks.get(tuple(part), math.inf) for part in parts[:-1]]
        best = scores.index(min(scores))
        if scores[best] == math.inf:
            break
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return [i for part in parts for i in part]


# %% wrong: last token of a word lost
# expect: Tokenizer fail at tokens as encoding-loses-last-token
def merge_word(ids, merged):
    while len(ids) > 1:
        pair = min(zip(ids, ids[1:]), key=lambda p: merged.get(p, math.inf))
        if pair not in merged:
            break
        out, i = [], 0
        while i < len(ids) - 1:
            if (ids[i], ids[i + 1]) == pair:
                out.append(merged[pair])
                i += 2
            else:
                out.append(ids[i])
                i += 1
        ids = out
    return ids


# %% wrong: one merge a word
# expect: Tokenizer fail at tokens as one-merge-a-word
def merge_word(ids, merged):
    pairs = [p for p in zip(ids, ids[1:]) if p in merged]
    if pairs:
        best = min(pairs, key=merged.get)
        ids = merge_pair(ids, best, merged[best])
    return ids


# %% wrong: encoding the uncut text
# expect: Tokenizer fail at tokens as encoding-uncut-text
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        pieces = self.special_pattern.split(text) if allow_special and self.special_tokens else [text]
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
            elif piece:
                ids += merge_word([self.byte_id[b] for b in piece.encode("utf-8")], self.merged)
        return ids


# %% wrong: codes of characters
# expect: Tokenizer error as codes-of-characters
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        pieces = self.special_pattern.split(text) if allow_special and self.special_tokens else [text]
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
            else:
                for word in split_words(piece):
                    ids += merge_word([self.byte_id[ord(c)] for c in word], self.merged)
        return ids


# %% wrong: latin-1
# expect: Tokenizer error as latin-1-for-utf-8
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        pieces = self.special_pattern.split(text) if allow_special and self.special_tokens else [text]
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
            else:
                for word in split_words(piece):
                    ids += merge_word([self.byte_id[b] for b in word.encode("latin-1")], self.merged)
        return ids


# %% wrong: bytes for ids
# expect: Tokenizer fail at encoded as ids-are-bytes
class Tokenizer(Tokenizer):
    def __init__(self, merges, special_tokens=None):
        super().__init__(merges, special_tokens)
        self.byte_id = {b: b for b in range(256)}
        self.vocab = {i: bytes([i]) for i in range(256)}
        id_of = {token: i for i, token in self.vocab.items()}
        self.merged = {}
        for i, (a, b) in enumerate(merges):
            self.merged[id_of[a], id_of[b]] = 256 + i
            id_of[a + b] = 256 + i
            self.vocab[256 + i] = a + b
        for marker, i in self.special_tokens.items():
            self.vocab[i] = marker.encode()


# %% wrong: strict decoding
# expect: Tokenizer error as decode-strict
class Tokenizer(Tokenizer):
    def decode(self, ids):
        if any(i not in self.vocab for i in ids):
            raise ValueError("unknown id")
        return b"".join(self.vocab[i] for i in ids).decode("utf-8")


# %% wrong: bad bytes dropped
# expect: Tokenizer fail at decoded as decode-drops-bad-bytes
class Tokenizer(Tokenizer):
    def decode(self, ids):
        if any(i not in self.vocab for i in ids):
            raise ValueError("unknown id")
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="ignore")


# %% wrong: each token decoded by itself
# expect: Tokenizer fail at decoded as decode-token-by-token
class Tokenizer(Tokenizer):
    def decode(self, ids):
        text = ""
        for i in ids:
            if i not in self.vocab:
                raise ValueError(f"unknown id {i}")
            text += self.vocab[i].decode("utf-8", "replace")
        return text


# %% wrong: zeros for bytes
# expect: Tokenizer fail at decoded as decode-zeros-for-bytes
class Tokenizer(Tokenizer):
    def decode(self, ids):
        vocab = {i: bytes(b) for b, i in self.byte_id.items()}
        for (a, b), i in self.merged.items():
            vocab[i] = vocab[a] + vocab[b]
        for marker, i in self.special_tokens.items():
            vocab[i] = marker.encode()
        if set(ids) - set(vocab):
            raise ValueError(f"unknown ids {set(ids) - set(vocab)}")
        return b"".join(vocab[i] for i in ids).decode("utf-8", errors="replace")


# %% wrong: stand-ins left in the text
# expect: Tokenizer fail at decoded as decode-leaves-stand-ins
class Tokenizer(Tokenizer):
    def decode(self, ids):
        table = bytes_to_unicode()
        for i in ids:
            if i not in self.vocab:
                raise ValueError(i)
        return "".join(table[b] for i in ids for b in self.vocab[i])


# %% wrong: stand-ins minus 256 in decode
# expect: Tokenizer fail at decoded as decode-stand-ins-minus-256
class Tokenizer(Tokenizer):
    def decode(self, ids):
        table = bytes_to_unicode()
        for i in ids:
            if i not in self.vocab:
                raise ValueError(i)
        text = "".join(table[b] for i in ids for b in self.vocab[i])
        return bytes(ord(c) if ord(c) < 256 else ord(c) - 256 for c in text).decode("utf-8", errors="replace")


# %% wrong: unknown id is a KeyError
# expect: Tokenizer fail as unknown-id-raises-another-error
class Tokenizer(Tokenizer):
    def decode(self, ids):
        return b"".join(self.vocab[i] for i in ids).decode("utf-8", errors="replace")


# %% wrong: unknown id skipped
# expect: Tokenizer fail as unknown-id-accepted
class Tokenizer(Tokenizer):
    def decode(self, ids):
        return b"".join(self.vocab.get(i, b"") for i in ids).decode("utf-8", errors="replace")


# %% wrong: special tokens not in the vocabulary of decode
# expect: Tokenizer error as decode-knows-no-special
class Tokenizer(Tokenizer):
    def decode(self, ids):
        tokens = {i: t for i, t in self.vocab.items() if i < 256 + len(self.merged)}
        for i in ids:
            if i not in tokens:
                raise ValueError(f"there is no token {i}")
        return b"".join(tokens[i] for i in ids).decode("utf-8", errors="replace")


# %% wrong: special tokens dropped by the split
# expect: Tokenizer fail at pieces as special-dropped
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        pieces = [text]
        if allow_special and self.special_tokens:
            markers = sorted(self.special_tokens, key=len, reverse=True)
            pieces = regex.split("|".join(regex.escape(m) for m in markers), text)
        return [i for piece in pieces for i in super(Tokenizer, self).encode(piece)]


# %% wrong: special tokens deleted before the text is cut
# expect: Tokenizer fail at pieces as special-deleted-before-cutting
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        if allow_special:
            for marker in sorted(self.special_tokens, key=len, reverse=True):
                text = text.replace(marker, "")
        return [i for word in split_words(text) for i in merge_word([self.byte_id[b] for b in word.encode("utf-8")], self.merged)]


# %% wrong: special tokens not escaped
# expect: Tokenizer fail at pieces as special-not-escaped
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        ids, pieces = [], [text]
        if allow_special and self.special_tokens:
            pieces = regex.split("(" + "|".join(sorted(self.special_tokens, key=len, reverse=True)) + ")", text)
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
            else:
                for word in split_words(piece):
                    ids += merge_word([self.byte_id[b] for b in word.encode("utf-8")], self.merged)
        return ids


# %% wrong: shorter special token first
# expect: Tokenizer fail at pieces as special-shortest-first
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        pieces = [text]
        if allow_special and self.special_tokens:
            pieces = regex.split("(" + "|".join(map(regex.escape, self.special_tokens)) + ")", text)
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
            else:
                ids += super().encode(piece)
        return ids


# %% wrong: special tokens never honoured
# expect: Tokenizer fail at pieces as special-never-honoured
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        ids = []
        for word in split_words(text):
            ids.extend(merge_word([self.byte_id[b] for b in word.encode("utf-8")], self.merged))
        return ids


# %% wrong: special tokens always honoured
# expect: Tokenizer fail at pieces as special-always-honoured
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        return super().encode(text, True)


# %% wrong: special ids behind the merges
# expect: Tokenizer error at encoded as special-ids-behind-the-merges
class Tokenizer(Tokenizer):
    def __init__(self, merges, special_tokens=None):
        n = 256 + len(merges)
        super().__init__(merges, {marker: n + i for i, marker in enumerate(special_tokens or {})})


# %% wrong: special id collides with the first merge
# expect: Tokenizer error at encoded as special-ids-start-at-256
class Tokenizer(Tokenizer):
    def __init__(self, merges, special_tokens=None):
        super().__init__(merges, {marker: 256 + i for i, marker in enumerate(special_tokens or {})})


# %% wrong: special text around stripped
# expect: Tokenizer fail at pieces as special-strips-the-text-around
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        if not allow_special or not self.special_tokens:
            return super().encode(text)
        ids = []
        for piece in self.special_pattern.split(text):
            if piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
            else:
                ids += super().encode(piece.strip())
        return ids


# %% wrong: empty pattern without special tokens
# expect: Tokenizer fail at pieces as special-without-markers-cut-everywhere
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        pieces = self.special_pattern.split(text) if allow_special else [text]
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
            else:
                ids += super().encode(piece)
        return ids


# %% wrong: two mistakes, longest token first and bad bytes dropped
# expect: Tokenizer fail at tokens as longest-token-first + decode-drops-bad-bytes
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        known = {token: i for i, token in self.vocab.items() if i < 256 + len(self.merged)}
        pieces = self.special_pattern.split(text) if allow_special and self.special_tokens else [text]
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
                continue
            for word in split_words(piece):
                data, start = word.encode("utf-8"), 0
                while start < len(data):
                    for stop in range(len(data), start, -1):
                        if data[start:stop] in known:
                            ids.append(known[data[start:stop]])
                            break
                    start = stop
        return ids

    def decode(self, ids):
        for i in ids:
            if i not in self.vocab:
                raise ValueError(f"id {i}")
        return b"".join(map(self.vocab.get, ids)).decode("utf-8", errors="ignore")


# %% wrong: two mistakes, leftmost pair first and special tokens never honoured
# expect: Tokenizer fail at tokens as leftmost-pair-first + special-never-honoured
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        out = []
        for word in split_words(text):
            ids = [self.byte_id[b] for b in word.encode("utf-8")]
            i = 0
            while i + 1 < len(ids):
                new = self.merged.get((ids[i], ids[i + 1]))
                if new is None:
                    i += 1
                else:
                    ids = ids[:i] + [new] + ids[i + 2 :]
                    i = 0
            out += ids
        return out


# %% wrong: two mistakes, special tokens dropped and each token decoded by itself
# expect: Tokenizer fail at decoded as special-dropped + decode-token-by-token
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        ids = super().encode(text, allow_special)
        return [i for i in ids if i not in self.special_tokens.values()]

    def decode(self, ids):
        if not all(i in self.vocab for i in ids):
            raise ValueError("unknown id")
        return "".join(self.vocab[i].decode("utf-8", errors="replace") for i in ids)


# %% wrong: a merge that no known mistake makes
# expect: Tokenizer fail at encoded as ?
def merge_word(ids, merged):
    for _ in range(3):
        pairs = [p for p in zip(ids, ids[1:]) if p in merged]
        if pairs:
            best = min(pairs, key=merged.get)
            ids = merge_pair(ids, best, merged[best])
    return ids


# %% wrong: split_words wrong, and what rests on it passes
# expect: split_words fail at words as letters-ascii-only
def split_words(text):
    return regex.findall(r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?\p{N}+| ?[^\sA-Za-z\p{N}]+|\s+(?!\S)|\s+", text)


# %% wrong: price upside down
# expect: tokens_per_character fail at price as price-upside-down
def tokens_per_character(tokenizer, text):
    if not text:
        raise ValueError("empty text")
    return len(text) / len(tokenizer.encode(text))


# %% wrong: price per byte
# expect: tokens_per_character fail at price as price-per-byte
def tokens_per_character(tokenizer, text):
    if len(text) == 0:
        raise ValueError("empty text")
    return len(tokenizer.encode(text)) / len(text.encode("utf-8"))


# %% wrong: price of an empty text is 0
# expect: tokens_per_character fail as price-of-nothing-given
def tokens_per_character(tokenizer, text):
    if not text:
        return 0.0
    return len(tokenizer.encode(text)) / len(text)


# %% wrong: division by zero
# expect: tokens_per_character fail as price-divides-by-zero
def tokens_per_character(tokenizer, text):
    return len(tokenizer.encode(text)) / len(text)


# %% wrong: whole tokens
# expect: tokens_per_character fail at price as price-in-whole-tokens
def tokens_per_character(tokenizer, text):
    if not text:
        raise ValueError("empty text")
    return len(tokenizer.encode(text)) // len(text)


# %% wrong: price with special tokens
# expect: tokens_per_character fail at price as price-with-special-tokens
def tokens_per_character(tokenizer, text):
    if not text:
        raise ValueError("empty text")
    return len(tokenizer.encode(text, allow_special=True)) / len(text)


# %% right: table by two loops
def bytes_to_unicode():
    table = {}
    for start, end in ((33, 126), (161, 172), (174, 255)):
        for b in range(start, end + 1):
            table[b] = chr(b)
    hidden = iter(range(256, 512))
    for b in range(256):
        if b not in table:
            table[b] = chr(next(hidden))
    return table


# %% right: counts as a Counter, a defaultdict would do
def count_pairs(ids):
    counts = defaultdict(int)
    for i in range(1, len(ids)):
        counts[ids[i - 1], ids[i]] += 1
    return counts


# %% right: merge by recursion on slices
def merge_pair(ids, pair, new_id):
    out = []
    skip = False
    for i, x in enumerate(ids):
        if skip:
            skip = False
        elif x == pair[0] and ids[i + 1 : i + 2] == [pair[1]]:
            out.append(new_id)
            skip = True
        else:
            out.append(x)
    return out


# %% right: merge that pops from a copy
def merge_pair(ids, pair, new_id):
    ids = list(ids)
    i = 0
    while i < len(ids) - 1:
        if (ids[i], ids[i + 1]) == tuple(pair):
            ids[i] = new_id
            ids.pop(i + 1)
        i += 1
    return ids


# %% right: the pattern in another spelling
PATTERN = regex.compile(r"""'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""")


def split_words(text):
    return [found.group() for found in PATTERN.finditer(text)]


# %% right: the module re with emulated classes
def split_words(text):
    import re

    return re.findall(r"'(?:[sdmt]|ll|ve|re)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+", text)


# %% right: a scanner with unicodedata
def split_words(text):
    import unicodedata

    def kind(c):
        if c.isspace():
            return "Z"
        category = unicodedata.category(c)[0]
        return category if category in "LN" else "S"

    words, i = [], 0
    while i < len(text):
        match = next((e for e in ("'ll", "'ve", "'re", "'s", "'d", "'m", "'t") if text.startswith(e, i)), None)
        if match:
            words.append(match)
            i += len(match)
            continue
        j = i + 1 if text[i] == " " and i + 1 < len(text) and kind(text[i + 1]) != "Z" else i
        k = j
        while k < len(text) and kind(text[k]) == kind(text[j]):
            k += 1
        if kind(text[j]) == "Z" and k < len(text) and k - i > 1:
            k -= 1
        words.append(text[i:k])
        i = k
    return words


# %% right: plain training on all words
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError(f"vocab_size is {vocab_size}, at least 256 is needed")
    words = [[bytes([b]) for b in word.encode("utf-8")] for word in split_words(text)]
    merges = []
    for _ in range(vocab_size - 256):
        counts = {}
        for word in words:
            for pair, n in count_pairs(word).items():
                counts[pair] = counts.get(pair, 0) + n
        if not counts:
            break
        best = max(counts, key=lambda pair: (counts[pair], pair))
        merges.append(best)
        words = [merge_pair(word, best, best[0] + best[1]) for word in words]
    return merges


# %% right: training on different words with their numbers
def train_bpe(text, vocab_size):
    if vocab_size < 256:
        raise ValueError(vocab_size)
    words = {tuple(bytes([b]) for b in w.encode()): n for w, n in Counter(split_words(text)).items()}
    merges = []
    while len(merges) + 256 < vocab_size:
        counts = Counter()
        for word, n in words.items():
            for pair in zip(word, word[1:]):
                counts[pair] += n
        if not counts:
            break
        best = max((n, pair) for pair, n in counts.items())[1]
        merges.append(best)
        words = {tuple(merge_pair(list(w), best, best[0] + best[1])): n for w, n in words.items()}
    return merges


# %% right: lines read one by one
def load_merges(path):
    back = {c: bytes([b]) for b, c in bytes_to_unicode().items()}
    merges = []
    with open(path, encoding="utf-8") as f:
        for number, line in enumerate(f):
            if number == 0 and line.startswith("#version"):
                continue
            parts = line.split()
            if len(parts) == 2:
                merges.append(tuple(b"".join(back[c] for c in part) for part in parts))
    return merges


# %% right: a tokenizer with byte strings and a table of ranks
class Tokenizer:
    def __init__(self, merges, special_tokens=None):
        self.ranks = {pair: rank for rank, pair in enumerate(merges)}
        self.special = special_tokens or {}
        tokens = [bytes([b]) for b in bytes_to_unicode()] + [a + b for a, b in merges]
        self.ids = {token: i for i, token in enumerate(tokens)}
        self.tokens = dict(enumerate(tokens)) | {i: s.encode() for s, i in self.special.items()}

    def _word(self, word):
        parts = [bytes([b]) for b in word.encode()]
        while True:
            ranked = [(self.ranks[p], i) for i, p in enumerate(zip(parts, parts[1:])) if p in self.ranks]
            if not ranked:
                return parts
            _, i = min(ranked)
            parts[i : i + 2] = [parts[i] + parts[i + 1]]

    def encode(self, text, allow_special=False):
        if allow_special:
            for marker in sorted(self.special, key=len, reverse=True):
                if marker in text:
                    before, _, after = text.partition(marker)
                    return self.encode(before, True) + [self.special[marker]] + self.encode(after, True)
        return [self.ids[part] for word in split_words(text) for part in self._word(word)]

    def decode(self, ids):
        try:
            data = b"".join([self.tokens[i] for i in ids])
        except KeyError as error:
            raise ValueError(f"unknown id {error}") from None
        return data.decode("utf-8", "replace")


# %% right: ranks of the joined bytes
class Tokenizer(Tokenizer):
    def encode(self, text, allow_special=False):
        ranks = {self.vocab[i]: i for i in self.merged.values()}
        names = {self.vocab[i]: i for i in range(256)} | ranks
        pieces = self.special_pattern.split(text) if allow_special and self.special_tokens else [text]
        ids = []
        for piece in pieces:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
                continue
            for word in split_words(piece):
                parts = [bytes([b]) for b in word.encode("utf-8")]
                while len(parts) > 1:
                    best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], math.inf))
                    if parts[best] + parts[best + 1] not in ranks:
                        break
                    parts[best : best + 2] = [parts[best] + parts[best + 1]]
                ids += [names[part] for part in parts]
        return ids


# %% right: a heap of pairs and linked tokens
def merge_word(ids, merged):
    import heapq

    after, before = list(range(1, len(ids) + 1)), list(range(-1, len(ids) - 1))
    heap = [(merged[p], i, p) for i, p in enumerate(zip(ids, ids[1:])) if p in merged]
    heapq.heapify(heap)
    while heap:
        new, i, pair = heapq.heappop(heap)
        j = after[i]
        if ids[i] is None or j >= len(ids) or (ids[i], ids[j]) != pair:
            continue
        ids[i], ids[j] = new, None
        after[i] = after[j]
        if after[i] < len(ids):
            before[after[i]] = i
        for left in (before[i], i):
            if 0 <= left and after[left] < len(ids) and (ids[left], ids[after[left]]) in merged:
                found = (ids[left], ids[after[left]])
                heapq.heappush(heap, (merged[found], left, found))
    return [i for i in ids if i is not None]


# %% right: whole words looked up first, merges replayed in order
class Tokenizer(Tokenizer):
    def __init__(self, merges, special_tokens=None):
        super().__init__(merges, special_tokens)
        self.pairs = list(merges)
        self.whole = {token: i for i, token in self.vocab.items() if i < 256 + len(merges)}

    def encode(self, text, allow_special=False):
        ids = []
        for piece in self.special_pattern.split(text) if allow_special and self.special_tokens else [text]:
            if allow_special and piece in self.special_tokens:
                ids.append(self.special_tokens[piece])
                continue
            for word in split_words(piece):
                data = word.encode("utf-8")
                parts = [data] if data in self.whole else [bytes([b]) for b in data]
                for a, b in self.pairs if len(parts) > 1 else ():
                    parts = merge_pair(parts, (a, b), a + b)
                ids += [self.whole[part] for part in parts]
        return ids


# %% right: lists for tables, special tokens apart
class Tokenizer(Tokenizer):
    def decode(self, ids):
        tokens = [self.vocab[i] for i in range(256 + len(self.merged))]
        special = {i: marker for marker, i in self.special_tokens.items()}
        out = b""
        for i in ids:
            if i in special:
                out += special[i].encode("utf-8")
            elif i < len(tokens):
                out += tokens[i]
            else:
                raise ValueError(f"{i} is no id of this tokenizer")
        return str(out, "utf-8", errors="replace")


# %% right: price in two steps
def tokens_per_character(tokenizer, text):
    n = len(text)
    if n < 1:
        raise ValueError(f"text has {n} characters")
    ids = tokenizer.encode(text, allow_special=False)
    return 1.0 / (n / len(ids))


# %% wrong: cut at spaces, which are given back
# expect: split_words fail at words as words-by-single-spaces-given-back
def split_words(text):
    first, *rest = text.split(" ")
    return [first] + [" " + word for word in rest]


# %% wrong: cut in front of every space
# expect: split_words fail at words as words-by-single-spaces-given-back
def split_words(text):
    import re

    return re.split("(?= )", text)


# %% wrong: cut at spaces, which are given back, empty pieces dropped
# expect: split_words fail at words as words-by-single-spaces-given-back-without-empty-ones
def split_words(text):
    pieces, word = [], ""
    for character in text:
        if character == " " and word:
            pieces.append(word)
            word = ""
        word += character
    return pieces + [word] if word else pieces


# %% wrong: cut at white space, one space given back
# expect: split_words fail at words as words-by-white-space-alone-with-one-space-each
def split_words(text):
    words = text.split()
    return words[:1] + [f" {word}" for word in words[1:]]


# %% wrong: word characters and signs, without spaces
# expect: split_words fail at words as words-by-w-and-single-signs-of-re
def split_words(text):
    import re

    return re.findall(r"\w+|[^\w\s]", text)
