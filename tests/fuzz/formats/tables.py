"""Tables beside graphs and models, models of dbn.exe, TIMIT's label files, tables of words."""

import math
import random
from functools import partial

import numpy as np

from decoder.graph.compiled_graph import precompile
from decoder.lm.language_model import LanguageModel
from readers.language.arpa import Arpa, ArpaOrder
from readers.language.hotwords import read_hotwords
from readers.language.labelled_text import read_columns, read_parallel, read_tab_lines
from readers.language.vocabulary import read_vocabulary, write_vocabulary
from readers.language.word_classes import read_word_classes
from readers.tables import hmm_tables
from readers.tables.ctc_tokens import read_ctc_tokens
from readers.tables.dbn import read_dbn
from readers.tables.priors import read_priors
from readers.tables.sphinx import is_ngram_model, read_ngrams
from readers.tables.text_matrix import read_text_matrix
from readers.tables.timit import read_phone_map, read_segments
from tests.decoder.graphs import make_acceptor
from tests.fuzz.format import Format, text
from tests.readers.tables.dbn_files import dbn_bytes
from tests.readers.tables.sphinx.ngram_files import ORDERS, dump, trie

TOPOLOGY = f"sil 0 1 0\nsil 1 2 {math.log(0.25):.6f}\nsil 1 3 {math.log(0.75):.6f}\n"


def dbn(rng: random.Random, directory) -> bytes:
    numbers = np.random.default_rng(rng.randrange(100))
    layers = [("rbmgaussbernoulli", numbers.normal(size=(3, 2)), np.zeros(3))]
    if rng.random() < 0.8:
        layers.append(("perceptron", numbers.normal(size=(4, 3)), np.ones(4)))
        return dbn_bytes(np.zeros(2), np.ones(2), layers, np.full(4, 0.25))
    return dbn_bytes(np.zeros(2), np.ones(2), layers, header=b"DBN\0")


def labelled(path) -> None:
    read_columns(path)
    read_columns(path, "EOS")
    read_columns(path, end_label="O")


def parallel(path) -> None:
    other = path.parent / "labels"
    other.write_text("O O\nB-x\n")
    read_parallel(path, other)


def vocabulary(path) -> None:
    write_vocabulary(path.with_suffix(".out"), read_vocabulary(path))
    read_vocabulary(path.with_suffix(".out"))


def transitions(path) -> None:
    found = hmm_tables.read_transitions(path)
    hmm_tables.write_transitions(path.with_suffix(".out"), found)
    hmm_tables.read_transitions(path.with_suffix(".out"))
    arcs = [(0, 0, f"[{state}]", 0.5) for state in found]
    precompile(make_acceptor(arcs, {0: 0.0}), found)


def lookahead(path) -> None:
    found = hmm_tables.read_lookahead(path)
    hmm_tables.write_lookahead(path.with_suffix(".out"), found)
    hmm_tables.read_lookahead(path.with_suffix(".out"))
    arcs = [(0, 1, "[s]", 0.5), *((1, 0, word, 0.0) for word in found if word[0] not in "<[")]
    precompile(make_acceptor(arcs, {0: 0.0}), {"s": (-0.7, -0.7)}, found)


def sphinx_ngrams(rng: random.Random, directory) -> bytes:
    orders = ORDERS[: rng.choice((1, 2, 3))]
    if rng.random() < 0.3:
        return trie(orders=orders[:1])  # others have tables of 256 KiB
    return dump(orders=orders, order=rng.choice("<>"), version=rng.choice((None, -1)))


def use_sphinx_ngrams(path) -> None:
    if is_ngram_model(path):
        vocabulary, orders = read_ngrams(path)
        LanguageModel.from_arpa(Arpa(vocabulary, [ArpaOrder(*columns) for columns in orders]))


def again(read, write):
    """Read a table, write it, read it again."""

    def use(path):
        found = read(path)
        write(path.with_suffix(".out"), found)
        read(path.with_suffix(".out"))

    return use


FORMATS = (
    Format(
        "state map", text("a a_s2 a_s3\nsil sil[2]\n"), again(hmm_tables.read_state_map, hmm_tables.write_state_map)
    ),
    Format(
        "transitions",
        text("[a_s2] -0.6931 -0.6931\n[b] -inf 0\n"),
        transitions,
    ),
    Format("cntkmap", text("[a_s2] 0\n[b] 1\n"), again(hmm_tables.read_cntkmap, hmm_tables.write_cntkmap)),
    Format("lookahead", text("a -0\nb -2.5\n"), lookahead),
    Format("topology", text(TOPOLOGY), again(hmm_tables.read_topology, hmm_tables.write_topology)),
    Format("tied states", text("[a-b+c[2]] [b_s2_1]\n[x[2]] [x_s2_1]\n"), hmm_tables.read_tied_states),
    Format("silence", text("sil any-order\n"), hmm_tables.read_silence),
    Format("priors", text("[ 12 0 345 ]\n", "0.5\n0.25\n0.25\n"), read_priors),
    Format("text matrix", text("1 2 3\n# x\n4 5e-1 -6\n"), read_text_matrix),
    Format("dbn model", dbn, read_dbn, binary=True),
    Format("timit segments", text("0 100 h#\n100 250 sh\n"), read_segments, suffix=".phn"),
    Format("timit phone map", text("aa aa aa\nax-h ax ah\nq\n"), read_phone_map),
    Format("vocabulary", text("0 7 a 0\n1 3 b 1\n2 1 <unk> 1\n"), vocabulary),
    Format("hotwords", text("# names\nA B :2.5\nC\n"), partial(read_hotwords, score=1.0)),
    Format("word classes", text("a 1\nb 2\nc 1\n"), read_word_classes),
    Format("labelled columns", text("BOS O\nfrom O\nboston B-from\nEOS O\n\nBOS O\nto O\nEOS O\n"), labelled),
    Format("labelled lines", text("from boston\tO B-from\nto\tO\n"), read_tab_lines),
    Format("CTC tokens", text("<blk> 0\na 1\n 2\n", "a\t0\n<pad>\t-1\n", '{"a": 1, "[PAD]": 0}'), read_ctc_tokens),
    Format("sphinx n-grams", sphinx_ngrams, use_sphinx_ngrams, binary=True),
    Format("parallel lines", text("from boston\nto\n"), parallel),
)
