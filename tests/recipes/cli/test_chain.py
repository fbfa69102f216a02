"""`argonaut chain`: graphs from alignments, with tied outputs and from transcripts; decoding graphs; faults."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from readers.htk.frame_labels import frame_labels, read_state_list
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.sources.chain import AlignedNumerator, ChainSource, TranscriptNumerator
from readers.tables.hmm_tables import read_topology, read_transitions

CHAIN = ("chain", "--alignment", "train.mlf", "--state-list", "states.list")
FLAT = ("chain", "--words", "words.mlf", "--dict", "dict", "--features", "test.scp")


NETWORK = """
features = InputValue(30, tag=feature)
normal = MeanVarNorm(features)
W = Parameter(24, 30)
b = Parameter(24, 1, init=fixedValue, value=0)
h = Sigmoid(Plus(Times(W, normal), b))
V = Parameter(8, 24)
c = Parameter(8, 1, init=fixedValue, value=0)
y = Plus(Times(V, h), c, tag=output)
J = LFMMI(y, tag=criterion)
logprob = LFMMI(y, l2=0, penalty=0, tag=eval)
"""
TRAINING = """
command=Train
deviceId=-1
numCPUThreads=1
modelPath=lf/net
Train=[
  action=train
  NDLNetworkBuilder=[ networkDescription=net.ndl ]
  SGD=[ minibatchSize=32; maxEpochs=8; gradUpdateType=AdamW; learningRatesPerMB=0.02; momentumPerMB=0 ]
  reader=[
    readerType=HTKMLFReader; frameMode=false; nbruttsineachrecurrentiter=4; frameSubsampling=3; CHUNKS
    features=[ dim=30; scpFile=train.scp ]
    chain=[ denominator=graphs/denominator; numerators=graphs/numerators ]
  ]
]
"""


def phones(labels):
    """The phones of an alignment, without silence."""
    return [Label(None, None, label.name[0]) for label in labels if label.name.endswith("_s2") and label.name[0] != "s"]


def closing(outcome):
    """(numerators, outputs, states, arcs) of the last line."""
    words = outcome.out[-1].split()
    assert words[0] == "chain:"
    return tuple(int(words[i]) for i in (1, 3, 7, 10))


def opened(directory):
    return ChainSource(f"{directory}/denominator", f"{directory}/numerators")


def test_graphs_of_an_alignment(user):
    outcome = user.run(*CHAIN, "--out", "chain")
    assert outcome.status == 0, outcome.err
    assert outcome.out[-2] == "utterances: 24 done, 0 skipped, 0 failed"
    source, outputs = opened("chain"), read_state_list("chain/senones.list")
    graph = source.denominator
    assert closing(outcome) == (24, 8, graph.num_states, len(graph.output))
    assert source.outputs == outputs
    assert sorted(outputs) == sorted(f"{phone}_s{k}" for phone in ("a", "b", "c", "sil") for k in (2, 3))
    alignment, labels = read_mlf("train.mlf"), read_mlf("chain/states.mlf")
    number = {name: i for i, name in enumerate(outputs)}
    for name in alignment:
        classes = frame_labels(labels.lookup(name), number, name)
        source.check(name, len(classes), whole=False)
        numerator = source.numerator(name)
        assert isinstance(numerator, AlignedNumerator)
        kept = classes[::3]
        assert numerator.num_frames == len(kept)
        graph = source.supervision(name, 0, len(kept)).numerator
        alive = np.isfinite(graph.initial)
        for t, output in enumerate(kept):  # the labels are one of the numerator's paths
            arcs = slice(*graph.frame_arcs[t : t + 2])
            reached = graph.to_state[arcs][alive[graph.from_state[arcs]] & (graph.output[arcs] == output)]
            alive = np.isin(np.arange(graph.num_states), reached)
        assert np.any(alive & np.isfinite(graph.final))


def test_models_build_a_decoding_graph(user):
    assert user.run(*CHAIN, "--out", "chain").status == 0
    model_set = ("--mmf", "chain/hmmdefs", "--hmm-list", "chain/tiedlist", "--state-list", "chain/senones.list")
    outcome = user.run("graph", *model_set, "--dict", "dict", "--lm", "lm.arpa", "--out", "graph")
    assert outcome.status == 0, outcome.err
    half = pytest.approx(np.log(0.5))
    for state, pair in read_transitions("graph/transitions").items():
        assert pair == ((half, half) if state.endswith("_s3") else (-np.inf, 0.0))
    assert read_topology("graph/topology")["a"] == ((0, 1, 0.0), (1, 2, half), (1, 3, half), (2, 3, 0.0))


def test_outputs_of_phones_in_context(user):
    assert user.run(*CHAIN, "--out", "chain").status == 0
    tie = ("tie", "--alignment", "chain/states.mlf", "--state-list", "chain/senones.list", "--features", "train.scp")
    few = ("--threshold", "20", "--min-frames", "10")
    outcome = user.run(*tie, *few, "--context", "left", "--out", "tied")
    assert outcome.status == 0, outcome.err
    outcome = user.run(*CHAIN, "--tied", "tied", "--out", "biphones")
    assert outcome.status == 0, outcome.err
    outputs = read_state_list("biphones/senones.list")
    assert outputs == read_state_list("tied/senones.list")
    assert len(outputs) > 8
    assert "+" not in Path("biphones/trees").read_text()
    assert (user.root / "biphones/trees").read_bytes() == (user.root / "tied/trees").read_bytes()
    source, labels = opened("biphones"), read_mlf("biphones/states.mlf")
    assert {label.name for name in labels for label in labels[name]} <= set(outputs)
    assert {source.outputs[i] for i in np.unique(source.denominator.output)} == {
        label.name for name in labels for label in labels[name]
    }
    model_set = ("--mmf", "biphones/hmmdefs", "--hmm-list", "biphones/tiedlist", "--trees", "biphones/trees")
    words = ("--state-list", "biphones/senones.list", "--dict", "dict", "--lm", "lm.arpa", "--out", "graph")
    outcome = user.run("graph", *model_set, *words)
    assert outcome.status == 0, outcome.err
    outcome = user.run(*CHAIN, "--tied", "biphones", "--out", "again")  # of its own results
    assert outcome.status == 0, outcome.err
    for name in ("denominator", "numerators", "states.mlf", "hmmdefs"):
        assert Path("again", name).read_bytes() == Path("biphones", name).read_bytes()


def test_graphs_of_transcripts(user):
    outcome = user.run(*FLAT, "--out", "flat")
    assert outcome.status == 0, outcome.err
    source = opened("flat")
    numerators, num_outputs, states, arcs = closing(outcome)
    assert (numerators, num_outputs) == (len(read_mlf("words.mlf")), source.num_outputs)
    assert (states, arcs) == (source.denominator.num_states, len(source.denominator.output))
    words = read_mlf("words.mlf")
    for name in words:
        numerator = source.numerator(name)
        assert isinstance(numerator, TranscriptNumerator)
        supervision = source.supervision(name, 0, numerator.num_frames)
        assert supervision.numerator.frame_arcs is None
    assert not Path("flat/states.mlf").exists()
    before = {path.name: path.read_bytes() for path in Path("flat").iterdir()}
    assert user.run(*FLAT, "--out", "flat").status == 0
    assert {path.name: path.read_bytes() for path in Path("flat").iterdir()} == before


@pytest.mark.slow
@pytest.mark.parametrize("start", ["alignment", "transcripts"])
def test_a_network_learns_from_the_graphs_and_decodes(user, start):
    make, training = CHAIN, TRAINING
    if start == "transcripts":
        alignment = read_mlf("train.mlf")
        write_mlf("phones.mlf", [(f"*/{name.rsplit('/', 1)[-1]}.lab", phones(alignment[name])) for name in alignment])
        user.write("phones.dict", "a a\nb b\nc c\n")
        make = ("chain", "--words", "phones.mlf", "--dict", "phones.dict", "--features", "train.scp")
        training = TRAINING.replace("=0.02", "=0.002").replace("maxEpochs=8", "maxEpochs=30")
    assert user.run(*make, "--out", "graphs").status == 0
    user.write("net.ndl", NETWORK)
    user.write("lf.cntk", training.replace("CHUNKS", "chunkFrames=60" if start == "alignment" else ""))
    outcome = user.run("cntk", "configFile=lf.cntk")
    assert outcome.status == 0, outcome.err
    epochs = [float(line.split("logprob = ")[1].split()[0]) for line in outcome.err if "logprob = " in line]
    assert epochs[-1] < 0.3 * epochs[0]
    assert all(value > 0 for value in epochs)  # the numerator is a part of the denominator
    model_set = ("--mmf", "graphs/hmmdefs", "--hmm-list", "graphs/tiedlist", "--state-list", "graphs/senones.list")
    assert user.run("graph", *model_set, "--dict", "dict", "--lm", "lm.arpa", "--out", "lfgraph").status == 0
    decode = ("-graph", "lfgraph/graph.dg", "-lm", "lm.arpa", "-am", "lf/net", "-cntkmap", "lfgraph/cntkmap")
    files = ("-infiles", "test.scp", "-outmlf", "hyp.mlf")
    outcome = user.run("argon", *decode, "--output-node", "y", "-acweight", "1", *files)
    assert outcome.status == 0, outcome.err
    (line,) = (line for line in user.run("score", "words.mlf", "hyp.mlf").out if line.startswith("WORD"))
    assert float(line.split("Acc=")[1].split()[0]) > 70


def test_a_network_of_other_outputs_is_refused_before_training(user):
    assert user.run(*CHAIN, "--out", "graphs").status == 0
    user.write("net.ndl", NETWORK.replace("Parameter(8,", "Parameter(9,"))
    user.write("lf.cntk", TRAINING.replace("CHUNKS", "chunkFrames=60"))
    outcome = user.run("cntk", "configFile=lf.cntk")
    assert outcome.status == 2
    assert "node 'J' (LFMMI): reader gives graphs of 8 outputs; expected 9, as y has" in outcome.err[-1]
    assert not any("Precomputing" in line for line in outcome.err)
    assert not Path("lf/net").exists()


def test_utterances_that_cannot_be_used_are_reported(user):
    text = Path("train.mlf").read_text().replace("a_s2", "x_s2", 1)
    user.write("train.mlf", text)
    outcome = user.run(*CHAIN, "--out", "chain")
    assert outcome.status == 1
    assert outcome.out[-2] == "utterances: 23 done, 0 skipped, 1 failed"
    assert "state 'x_s2'; expected a state of the state map" in Path("chain/report").read_text()
    words = Path("words.mlf").read_text().split("\n.\n", 1)
    user.write("words.mlf", words[0] + "\n" + "\n".join(["NOWORD"] * 3) + "\n.\n" + words[1])
    outcome = user.run(*FLAT, "--out", "flat")
    assert outcome.status == 1
    assert "words not in the dictionary: NOWORD" in Path("flat/report").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("chain", "--out", "x"), "--alignment is missing; expected it or --words"),
        ((*CHAIN, *FLAT[1:], "--out", "x"), "--alignment is given beside --words; expected one of them"),
        (
            ("chain", "--alignment", "train.mlf", "--out", "x"),
            "command line: --states is missing; expected it or --state-list",
        ),
        (
            ("chain", "--words", "words.mlf", "--out", "x"),
            "--words is given without --dict and --features",
        ),
        ((*CHAIN, "--silence", "none", "--out", "x"), "states.list: no model 'none'; expected the states of silence"),
        ((*CHAIN, "--order", "1", "--out", "x"), "--order is 1; expected 2 to 10"),
        ((*CHAIN, "--tolerance", "0", "--out", "x"), "--tolerance is 0; expected 1 to 50 for a --subsampling of 3"),
        ((*CHAIN, "--subsampling", "0", "--out", "x"), "--subsampling is 0; expected 1 to 100"),
        ((*CHAIN, "--tied", "x", "--out", "x"), "--tied is the directory of --out, too; expected two directories"),
        ((*CHAIN, "--tied", "none", "--out", "x"), "none/"),
        ((*FLAT, "--sil-prob", "2", "--out", "x"), "--sil-prob is 2; expected 0 to 1"),
    ],
)
def test_wrong_arguments(user, arguments, message):
    outcome = user.run(*arguments)
    assert outcome.status == 2
    assert message in outcome.err[-1]
    assert not Path("x").exists()


def test_an_input_is_not_overwritten(user):
    Path("x").mkdir()
    shutil.copy("train.mlf", "x/states.mlf")
    outcome = user.run("chain", "--alignment", "x/states.mlf", "--state-list", "states.list", "--out", "x")
    assert outcome.status == 2
    assert "x/states.mlf: is an input and would be overwritten" in outcome.err[-1]


def test_verbose_shows_only_the_options_that_were_given(user):
    outcome = user.run(*CHAIN, "-v", "--out", "chain")
    assert [line for line in outcome.err if line.endswith(": command line")] == [
        "--alignment is train.mlf: command line",
        "--state-list is states.list: command line",
    ]
