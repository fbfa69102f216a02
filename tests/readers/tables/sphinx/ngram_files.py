"""Writes binary n-gram models of Sphinx, independently of the reader: struct and big integers only."""

import math
import struct

UNIT = math.log10(1.0001)
TABLE = 1 << 16

# Words of n-grams, oldest first: log10 of the probability, and of the back-off weight.
VOCABULARY = ["</s>", "<s>", "a", "bé", "c"]  # the last number needs as many bits as any
ORDERS = [
    {(0,): (-0.75, 0.0), (1,): (-99.0, -0.25), (2,): (-0.5, -0.125), (3,): (-1.0, -0.5), (4,): (-0.75, -0.25)},
    {
        (1, 2): (-0.25, -0.375),
        (2, 3): (-0.5, 0.25),
        (2, 0): (-1.5, 0.0),
        (3, 2): (-0.25, -0.75),
        (4, 2): (-0.75, -0.25),
    },
    {(1, 2, 3): (-0.125, 0.0), (3, 2, 0): (-0.5, 0.0), (3, 2, 3): (-1.25, 0.0), (4, 2, 3): (-0.75, 0.0)},
]


def words_of(vocabulary):
    content = b"".join(word.encode() + b"\0" for word in vocabulary)
    return struct.pack("<i", len(content)) + content


def bits(entries):
    """Entries of (number, width), the lowest bit first, and eight bytes at the end."""
    total, position = 0, 0
    for number, width in entries:
        total |= number << position
        position += width
    return total.to_bytes((position + 7) // 8 + 8, "little")


def trie(vocabulary=VOCABULARY, orders=ORDERS, spare=0):
    """A trie; spare: empty entries that its counts announce besides."""
    counts = [len(orders[0]), *(len(order) + spare for order in orders[1:])]
    levels = [sorted(order, key=lambda words: words[::-1]) for order in orders]
    content = b"Trie Language Model" + struct.pack(f"<B{len(counts)}I", len(counts), *counts)
    tables = []
    if len(orders) > 1:
        content += struct.pack("<i", 1)
        for number, order in enumerate(orders[1:], start=2):
            for column in range(2 if number < len(orders) else 1):
                tables.append([-(2.0**31), *sorted({weights[column] / UNIT for weights in order.values()})])
        content += b"".join(struct.pack(f"<{TABLE}f", *table, *[0.0] * (TABLE - len(table))) for table in tables)

    def begin(level, words):
        """Where the longer n-grams of words begin."""
        longer = levels[level + 1] if level + 1 < len(levels) else []
        return sum(other[1:][::-1] < words[::-1] for other in longer)

    for words in levels[0]:
        probability, backoff = orders[0][words]
        content += struct.pack("<ffI", probability / UNIT, backoff / UNIT, begin(0, words))
    content += struct.pack("<ffI", 0, 0, len(levels[1]) if len(levels) > 1 else 0)
    for level in range(1, len(orders)):
        is_longest = level == len(orders) - 1
        entries = []
        for words in levels[level]:
            entries.append((words[0], counts[0].bit_length()))
            probability, backoff = (weight / UNIT for weight in orders[level][words])
            if not is_longest:
                entries.append((tables[2 * level - 1].index(backoff), 16))
            entries.append((tables[2 * level - 2].index(probability), 16))
            if not is_longest:
                entries.append((begin(level, words), counts[level + 1].bit_length()))
        width = counts[0].bit_length() + (16 if is_longest else 32)
        if not is_longest:
            entries += [(0, width), (len(levels[level + 1]), counts[level + 1].bit_length())]
            width += counts[level + 1].bit_length()
        entries.append((0, ((1 + counts[level]) * width) - sum(size for _, size in entries)))
        content += bits(entries)
    return content + words_of(vocabulary)


def dump(vocabulary=VOCABULARY, orders=ORDERS, order="<", version=-1):
    """A dump; version None: of the oldest form, without version and description."""

    def ints(*numbers):
        return struct.pack(f"{order}{len(numbers)}i", *numbers)

    def table(values):
        return ints(len(values)) + struct.pack(f"{order}{len(values)}f", *values)

    title = b"Darpa Trigram LM\0"
    content = ints(len(title)) + title + ints(3) + b"lm\0"
    if version is not None:
        content += ints(version, 12345, 5) + b"text\0" + ints(0)
    grams = [sorted(grams) for grams in orders] + [[]] * (3 - len(orders))
    content += ints(*map(len, grams))

    def begin(level, words):
        return sum(other[:-1] < words for other in grams[level])

    for (word,) in grams[0]:
        content += ints(-1) + struct.pack(f"{order}2f", *orders[0][word,]) + ints(begin(1, (word,)))
    content += ints(-1) + struct.pack(f"{order}2f", 0, 0) + ints(len(grams[1]))
    if len(orders) > 1:
        for number, words in enumerate(grams[1]):
            content += struct.pack(f"{order}4H", words[1], number, number, begin(2, words))
        content += struct.pack(f"{order}4H", 0, 0, 0, len(grams[2]))
        content += b"".join(struct.pack(f"{order}2H", words[2], i) for i, words in enumerate(grams[2]))
        content += table([orders[1][words][0] for words in grams[1]])
    if len(orders) > 2:
        content += table([orders[1][words][1] for words in grams[1]])
        content += table([orders[2][words][0] for words in grams[2]]) + ints(1, 0)
    words = words_of(vocabulary)
    return content + ints(len(words) - 4) + words[4:]
