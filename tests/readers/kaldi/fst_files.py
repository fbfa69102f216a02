"""Writes transducers of OpenFst for tests: vector files, and the types that kaldifst does not have."""

import struct

from readers.kaldi.fst import ADD_ON_MAGIC, MAGIC, SYMBOLS_MAGIC
from readers.language.openfst import vector_fst


def name(text):
    raw = text.encode()
    return struct.pack("<i", len(raw)) + raw


def header(kind, start, num_states, num_arcs, version=1, flags=0):
    content = struct.pack("<i", MAGIC) + name(kind) + name("standard")
    return content + struct.pack("<iiQqqq", version, flags, 0, start, num_states, num_arcs)


def symbol_table(names):
    content = struct.pack("<i", SYMBOLS_MAGIC) + name("words") + struct.pack("<qq", len(names), len(names))
    return content + b"".join(name(text) + struct.pack("<q", label) for label, text in names.items())


def vector_file(finals, arcs, start=0):
    """arcs: (source, input, output, cost, target)."""
    leaving = [[struct.pack("<iifi", *arc[1:]) for arc in arcs if arc[0] == state] for state in range(len(finals))]
    return vector_fst(b"standard", [struct.pack("<f", final) for final in finals], leaving, start)


def lookahead_file(inner):
    return (
        header("olabel_lookahead", -1, 0, 0) + struct.pack("<i", ADD_ON_MAGIC) + inner + b"\1tables of labels in reach"
    )


def bits(values):
    words = [sum(bit << place for place, bit in enumerate(values[i : i + 64])) for i in range(0, len(values), 64)]
    return struct.pack(f"<{len(words)}Q", *words)


def ngram_file(histories, symbols, start):
    """A model whose histories, as tuples with the last word first, map to (back-off cost, final cost, {word: cost}).

    start: a history.
    """
    order = sorted(histories, key=lambda history: (len(history), history))
    children = {history: [other for other in order if other and other[:-1] == history] for history in order}
    tree = [1, 0]
    for history in order:
        tree += [1] * len(children[history]) + [0]
    words = [0]
    for history in order:
        words += [1] * len(histories[history][2]) + [0]
    listed = [(word, cost) for history in order for word, cost in sorted(histories[history][2].items())]
    finals = [histories[history][1] for history in order]
    is_final = [int(cost is not None) for cost in finals]
    count = len(order)
    content = struct.pack("<QQQ", count, len(listed), sum(is_final)) + bits(tree) + bits(words) + bits(is_final)
    content += struct.pack(f"<{count + 1}i", *(history[-1] if history else -1 for history in order), 0)
    content += struct.pack(f"<{len(listed)}i", *(word for word, _ in listed))
    content += struct.pack(f"<{count + 1}f", *(histories[history][0] for history in order), 0)
    content += struct.pack(f"<{sum(is_final)}f", *(cost for cost in finals if cost is not None))
    content += struct.pack(f"<{len(listed) + 1}f", *(cost for _, cost in listed), 0)
    return header("ngram", order.index(start), count, 0, 4, 2) + symbol_table(symbols) + content
