"""Decoding graphs and language models, in text and as mapped files; utterances are decoded with what was read."""

import random
import struct
import zlib

import numpy as np

from decoder.g2p.model import G2P
from decoder.graph.compiled_graph import DecodingGraph, precompile
from decoder.graph.graph_file import GraphDefaults, load_defaults, load_graph, save_defaults, save_graph
from decoder.lm.collection import open_collection
from decoder.lm.evaluation import perplexity
from decoder.lm.language_model import LanguageModel
from decoder.lm.mapped_model import load_language_model, open_language_model, save_language_model
from decoder.search.decoder import Decoder, SearchOptions
from readers.htk.dictionary import Pronunciation
from readers.language.arpa import read_arpa, write_arpa
from readers.language.att import read_acceptor
from tests.decoder import graphs, reference
from tests.fuzz.format import Format, text, written

WORDS = ("x", "y", "z")
OPTIONS = (
    SearchOptions(),
    SearchOptions(lattice_beam=5.0, partial=True),
    SearchOptions(beam=1e9, max_tokens=20, partial=True),
    SearchOptions(lm_lookahead=False, word_penalty=1.0),
)
FRAMES = 8
_HEADER, _SECTION = 32, 40  # bytes of the header of a mapped file, and of an entry of its table


def random_model(rng: random.Random):
    numbers = np.random.default_rng(rng.randrange(10**6))
    words = list(WORDS[: rng.choice((1, 2, 3))])
    return graphs.make_arpa(*graphs.random_orders(numbers, words, rng.choice((1, 2, 3)), rng.random() < 0.9))


def random_graph(rng: random.Random) -> DecodingGraph:
    numbers = np.random.default_rng(rng.randrange(10**6))
    return graphs.compiled(graphs.random_graph(numbers, reference, own_states=rng.random() < 0.5))


def sections(content: bytes, rng: random.Random) -> bytes:
    """Change numbers in the arrays of a mapped file, or of its header and table, and correct the checksum."""
    raw = bytearray(content)
    count = struct.unpack_from("<I", raw, 12)[0]
    for _ in range(rng.choice((1, 1, 1, 2, 3, 5))):
        entry = _HEADER + _SECTION * rng.randrange(count)
        _, kind, offset, length = struct.unpack_from("<20s4sQQ", content, entry)
        if rng.random() < 0.05:
            value = rng.choice((0, 1, -1, 64, 2**62, length + 1, length - 1))
            struct.pack_into("<q", raw, entry + rng.choice((24, 32)), value)
        elif length:
            _change_item(raw, rng, kind.rstrip(b"\0").decode(), offset, length)
    if rng.random() < 0.15:
        struct.pack_into("<q", raw, 24, rng.choice((0, 1, -1, 2**62, 100, 5, 2**31)))
    if rng.random() < 0.05:
        raw[rng.randrange(len(raw) - 4)] ^= 1 << rng.randrange(8)
    raw[-4:] = struct.pack("<I", zlib.crc32(raw[:-4]))
    return bytes(raw)


def _change_item(raw: bytearray, rng: random.Random, kind: str, offset: int, length: int) -> None:
    size = np.dtype(kind).itemsize
    index = rng.randrange(length)
    place = offset + index * size
    if rng.random() < 0.2:
        raw[place + rng.randrange(size)] ^= 1 << rng.randrange(8)
    elif kind[-2] == "f":
        special = (float("nan"), float("inf"), float("-inf"), -3e38, 3e38, -1e30, 1e30, 0.0, -1.0, 1e20, -1e20, 1e-45)
        struct.pack_into("<f" if size == 4 else "<d", raw, place, rng.choice(special))
    elif kind[-2:] in ("i4", "i8"):
        form, top = ("<i", 2**31) if size == 4 else ("<q", 2**63)
        (old,) = struct.unpack_from(form, raw, place)
        near = (old + 1, old - 1, old * 2, 0, 1, -1, length, length - 1, length + 1, rng.randrange(length + 2))
        value = rng.choice((*near, top - 1, -top, top // 2, rng.randrange(-top, top)))
        struct.pack_into(form, raw, place, max(-top, min(top - 1, value)))
        if rng.random() < 0.2 and index + 1 < length:
            struct.pack_into(form, raw, place + size, rng.choice((-top, top - 1, -1)))
    else:
        raw[place] = rng.randrange(256)


def tuned_graph(path, rng: random.Random) -> None:
    """A small graph with search options, so that many changes meet these."""
    save_graph(precompile(graphs.make_acceptor([(0, 1, "[a]", 0.5), (1, 0, "x", 0.1)], {1: 0.0})), path)
    options = {"acweight": rng.random(), "beam": 15.0, "lm_scale": 2, "max_tokens": 500}
    save_defaults(path, GraphDefaults(options, {"am": "net.dnn", "lm": "words.arpa"}))


def use_defaults(path) -> None:
    defaults = load_defaults(path)
    SearchOptions(**defaults.options)
    save_defaults(path, defaults)
    load_graph(path)


def own_model(graph: DecodingGraph) -> LanguageModel:
    """A model of the words of a graph."""
    words = sorted(set(graph.words) - {"<s>", "</s>"})[:20]
    return LanguageModel.from_arpa(graphs.make_arpa(*graphs.random_orders(np.random.default_rng(1), words, 2)))


def decode(graph: DecodingGraph, model: LanguageModel | None) -> None:
    numbers = np.random.default_rng(2)
    for options in OPTIONS:
        decoder = Decoder(graph, model, options)
        scores = np.asfortranarray(numbers.normal(size=(decoder.num_rows, FRAMES)), dtype=np.float32)
        scores[numbers.random(scores.shape) < 0.1] = -np.inf
        result = decoder.decode(scores)
        _ = result.text, result.words, result.path, result.lattice


def score_words(model: LanguageModel) -> None:
    words = [word for word in model.vocabulary if word not in ("<s>", "</s>")][:3]
    perplexity(model, [words, words[::-1] * 3, ["nothing"], []])


def train_pronunciations(path, rng: random.Random) -> None:
    """A small pronunciation model."""
    made = [
        Pronunciation(word, None, None, tuple(rng.choices("XYZ", k=len(word)))) for word in ("ab", "ba", "bab", "a")
    ]
    G2P.train(made, rng.choice((1, 2, 3)), passes=2, threads=1).save(path)


def use_pronunciations(path) -> None:
    """Load the model, pronounce words, save it."""
    model = G2P.load(path)
    model.pronounce(["abba", "b", "c", "".join(sorted(model.letters))[:20]], 5, threads=1)
    model.save(path.with_suffix(".out"))


def use_graph(path) -> None:
    graph = load_graph(path)
    decode(graph, None)
    decode(graph, own_model(graph))


def use_model(path) -> None:
    model = load_language_model(path)
    score_words(model)
    words = [word for word in model.vocabulary[:4] if word.strip() and word[0] not in "<["]
    arcs = [(0, 1, "[a]", 0.5), (1, 0, "[a]", 0.1), *((1, 0, word, 0.1) for word in words)]
    decode(precompile(graphs.make_acceptor(arcs, {0: 0.0}), {"a": (-0.7, -0.7)}), model)


def use_arpa(path) -> None:
    arpa = read_arpa(path)
    write_arpa(path.with_suffix(".out"), arpa)
    read_arpa(path.with_suffix(".out"))
    model = LanguageModel.from_arpa(arpa)
    score_words(model)
    open_language_model(path)
    score_words(open_language_model(path))  # the mapped file that the first call has written


def use_collection(path) -> None:
    for number, name in enumerate(("a.arpa", "b.arpa")):
        write_arpa(path.parent / name, random_model(random.Random(number)))
    score_words(open_collection(path))


def use_acceptor(path) -> None:
    acceptor = read_acceptor(path)
    names = [name[1:-1] for name in acceptor.symbols if name.startswith("[")]
    graph = precompile(acceptor, dict.fromkeys(names, (-0.7, -0.7)), dict.fromkeys(acceptor.symbols, 0.5))
    save_graph(graph, path.with_suffix(".dg"))
    decode(load_graph(path.with_suffix(".dg")), None)


ACCEPTORS = (
    "0 1 [a_s2] 0.5\n1 2 A\n2 1 [b] 1e-3\n2 0.25\n",
    "0 1 <s>\n1 2 [a] 0.1\n2 1 x 0.2\n1 3 </s> -0.5\n3\n",
    "0 1 [a]\n1 1 [a]\n1 0 x 2\n1 0\n",
)

FORMATS = (
    Format("acceptor", text(*ACCEPTORS), use_acceptor),
    Format(
        "decoding graph",
        written(lambda path, rng: save_graph(random_graph(rng), path)),
        use_graph,
        (sections,) * 3,
        True,
    ),
    Format("decoding graph with options", written(tuned_graph), use_defaults, (sections,) * 3, True),
    Format(
        "mapped language model",
        written(lambda path, rng: save_language_model(LanguageModel.from_arpa(random_model(rng)), path)),
        use_model,
        (sections,) * 3,
        True,
    ),
    Format("pronunciation model", written(train_pronunciations), use_pronunciations, (sections,) * 3, True),
    Format("arpa", written(lambda path, rng: write_arpa(path, random_model(rng))), use_arpa, suffix=".arpa"),
    Format("collection of models", text("# models\na.arpa 0.25\nb.arpa 0.75\n"), use_collection),
)
