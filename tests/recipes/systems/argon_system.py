"""What tests of `argon` decode: graph, features, and a network that passes its input through, so that the feature files
hold log-likelihoods.
"""

import numpy as np

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.network.model_file import save_model
from decoder.graph import GraphOptions, build_monophone_graph
from readers.htk.dictionary import Pronunciation
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import parse_kind, write_htk
from readers.language.arpa import read_arpa
from readers.language.att import write_acceptor
from readers.tables.hmm_tables import write_cntkmap, write_lookahead, write_transitions
from recipes.cli.argon.command import main

PHONES = ("a", "b", "c", "sil")
STATES = [f"{phone}_s{i}" for phone in PHONES for i in (2, 3, 4)]
DICTIONARY = {"X": ("a", "b"), "Y": ("b", "c"), "Z": ("c",)}
ARPA = """
\\data\\
ngram 1=5
ngram 2=2
\\1-grams:
-99 <s> -0.3
-0.7 </s>
-0.5 X -0.2
-0.6 Y
-0.7 Z
\\2-grams:
-0.2 <s> X
-0.3 X Y
\\end\\
"""
SENTENCES = {"u1": "X Y", "u2": "Z", "u3": "X X Z Y", "u4": "Y Z"}
PERIOD = 100000


def spoken_states(words, rng):
    """A state per frame: silence, the words' phones with pauses now and then, silence."""
    phones = ["sil"]
    for word in words:
        phones += [*DICTIONARY[word], *(["sil"] if rng.random() < 0.3 else [])]
    if phones[-1] != "sil":
        phones.append("sil")
    return [f"{phone}_s{i}" for phone in phones for i in (2, 3, 4) for _ in range(int(rng.integers(1, 4)))]


def save_identity(path, size, window=1):
    """A model whose ScaledLogLikelihood is its middle frame, plus a constant."""
    network = build_simple_network(SimpleNetworkOptions((size * window, size), with_prior=True), seed=1)
    middle = np.zeros((size, size * window), np.float32, order="F")
    middle[:, window // 2 * size : (window // 2 + 1) * size] = np.eye(size)
    network.set_value("W0", middle)
    network.set_value("B0", np.zeros((size, 1), np.float32))
    network.set_value("Prior", np.full((size, 1), 1 / size, np.float32))
    save_model(network, path)


def make_argon_system(path):
    """Fill a directory with graph tables, model, language model and features of SENTENCES."""
    (path / "lm.arpa").write_text(ARPA)
    transitions = dict.fromkeys(STATES, (float(np.log(0.5)), float(np.log(0.5))))
    state_map = {phone: [f"{phone}_s{i}" for i in (2, 3, 4)] for phone in PHONES}
    entries = [Pronunciation(word, None, None, phones) for word, phones in DICTIONARY.items()]
    options = GraphOptions(silence="sil")
    graph = build_monophone_graph(state_map, transitions, entries, read_arpa(path / "lm.arpa"), options)
    write_acceptor(path / "graph.fsa.gz", graph.acceptor)
    write_lookahead(path / "lookahead", graph.lookahead)
    write_transitions(path / "transitions", transitions)
    write_cntkmap(path / "cntkmap", {state: i for i, state in enumerate(STATES)})
    save_identity(path / "model", len(STATES))
    rng = np.random.default_rng(0)
    lines = []
    for name, sentence in SENTENCES.items():
        states = spoken_states(sentence.split(), rng)
        frames = rng.normal(scale=2.0, size=(len(STATES), len(states)))
        frames[[STATES.index(state) for state in states], np.arange(len(states))] += 10.0
        write_htk(path / f"{name}.htk", frames.astype(np.float32), parse_kind("USER"), PERIOD)
        lines.append(f"{name}.lab={path}/{name}.htk\n")
    (path / "list.scp").write_text("".join(lines))
    assert main(compile_arguments(path)) == 0


def compile_arguments(path, **changes):
    flags = {
        "precompile": "true",
        "infsm": path / "graph.fsa.gz",
        "lookahead-file": path / "lookahead",
        "transition-file": path / "transitions",
        "graph": path / "g.dg",
        **changes,
    }
    return [text for name, value in flags.items() for text in (f"-{name}", str(value))]


def decode(made, out, *more, **changes):
    """Exit status of decoding made/list.scp to out/out.mlf; changes: other values of flags, None to leave one out."""
    flags = {
        "graph": made / "g.dg",
        "lm": made / "lm.arpa",
        "am": made / "model",
        "cntkmap": made / "cntkmap",
        "dnn_window_size": 1,
        "infiles": made / "list.scp",
        "outmlf": out / "out.mlf",
        "acweight": 1.0,
        "threads": 2,
        **changes,
    }
    given = {f"--{name.replace('_', '-')}": str(value) for name, value in flags.items() if value is not None}
    return main([text for flag in given.items() for text in flag] + [*more])


def words_of(path):
    return {name: " ".join(label.name for label in labels) for name, labels in read_mlf(path).items()}
