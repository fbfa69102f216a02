"""Training by lattice-free MMI from transcripts alone: it learns, resumes exactly, and can be divided among jobs."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.parallel import ParallelOptions, executors
from acoustic.training.rules import NaturalGradient
from acoustic.training.sgd import train
from readers.errors import ModelError
from readers.minibatches.base import Minibatch
from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.supervision import ChainSupervision, DenominatorGraph, NumeratorGraph, PlacedSupervision
from tests.acoustic.training.parallel.trainings import Here
from tests.acoustic.training.ring import Killed, dying

DIM, PHONES = 5, 4
OUTPUTS = 2 * PHONES  # of the first frame of a phone, and of its further frames
STAY = 0.5
pytestmark = pytest.mark.usefixtures("one_thread")


def denominator():
    """A bigram of phones, none of which follows itself: state p is phone p."""
    phones, bigram = np.arange(PHONES), np.random.default_rng(8).dirichlet(np.ones(PHONES), PHONES)
    np.fill_diagonal(bigram, 0)
    bigram /= bigram.sum(axis=1, keepdims=True)
    start, end = bigram.nonzero()
    graph = DenominatorGraph(
        num_states=PHONES,
        num_outputs=OUTPUTS,
        from_state=np.append(start, phones),
        to_state=np.append(end, phones),
        output=np.append(2 * end, 2 * phones + 1),
        probability=np.append((1 - STAY) * bigram[start, end], np.full(PHONES, STAY)),
        initial=np.full(PHONES, 1 / PHONES),
    )
    order = np.argsort(graph.from_state, kind="stable")
    indices = {name: getattr(graph, name)[order].astype(np.int32) for name in ("from_state", "to_state", "output")}
    return replace(graph, **indices, probability=graph.probability[order].astype(np.float32)), bigram


GRAPH, BIGRAM = denominator()


def numerator(phones):
    """Every alignment of a transcript: state n when n phones have begun."""
    count = len(phones)
    initial, final = np.full((2, count + 1), -np.inf, np.float32)
    initial[0] = final[count] = 0
    chances = [BIGRAM[:, phones[0]].mean(), *(BIGRAM[one, after] for one, after in itertools.pairwise(phones))]
    return NumeratorGraph(
        num_states=count + 1,
        from_state=np.append(np.arange(count), np.arange(1, count + 1)).astype(np.int32),
        to_state=np.append(np.arange(1, count + 1), np.arange(1, count + 1)).astype(np.int32),
        output=np.append(2 * phones, 2 * phones + 1).astype(np.int32),
        log_probability=np.log(np.append((1 - STAY) * np.array(chances), np.full(count, STAY))).astype(np.float32),
        initial=initial,
        final=final,
    )


class Transcribed:
    """Utterances of random phones whose frames are noisy, with their transcripts as numerators; three of them side by
    side in a minibatch, in another order in each epoch."""

    in_sequence, cuts, is_supervised, parallel = True, False, True, (3,)

    def __init__(self, num_utterances=30, seed=0):
        rng, centres = np.random.default_rng((seed, 1)), np.random.default_rng(9).normal(0, 1.5, (DIM, PHONES))
        self.chains, self.features = [], []
        for k in range(num_utterances):
            phones = [int(rng.integers(PHONES))]
            while len(phones) < rng.integers(4, 9):
                phones.append(int(rng.choice(PHONES, p=BIGRAM[phones[-1]])))
            frames = np.repeat(phones, rng.integers(1, 5, len(phones)))
            self.features.append(centres[:, frames] + rng.normal(0, 0.6, (DIM, len(frames))))
            chain = ChainSupervision(f"utterance{k}", len(frames), numerator(np.array(phones)), GRAPH)
            self.chains.append(chain)
        self.num_frames = sum(chain.num_frames for chain in self.chains)

    def dims(self):
        return {"features": DIM}

    def minibatches(self, epoch=0, minibatch_size=256, epoch_size=0):
        order = np.random.default_rng((5, epoch)).permutation(len(self.chains))
        for start in range(0, len(order), 3):
            chosen = order[start : start + 3]
            layout = SequenceLayout.of_lengths([self.chains[k].num_frames for k in chosen])
            features, placed = np.zeros((DIM, layout.num_columns), np.float32, order="F"), []
            for slot, k in enumerate(chosen):
                columns = np.arange(self.chains[k].num_frames) * layout.num_sequences + slot
                features[:, columns] = self.features[k]
                placed.append(PlacedSupervision(slot, 0, len(columns), self.chains[k]))
            layout = replace(layout, supervisions=tuple(placed))
            yield Minibatch({"features": features}, {}, layout.num_frames, layout)


def network():
    """A hidden layer that sees the frame before, and two output layers."""
    network = Network(threads=1, seed=3)
    network.add("Input", "features", rows=DIM, tag="feature")
    network.add("PastValue", "before", "features", rows=DIM)
    products = []
    for name, below in (("now", "features"), ("past", "before")):
        network.add("Parameter", f"W.{name}", rows=12, cols=DIM, initValueScale=2)
        products.append(network.add("Times", f"product.{name}", f"W.{name}", below))
    network.add("Tanh", "h", network.add("Plus", "sum", *products))
    for name in ("y", "z"):
        network.add("Parameter", f"W.{name}", rows=OUTPUTS, cols=12)
        network.add("Times", name, f"W.{name}", "h")
    network.add("Constant", "weight", value=0.1)
    network.add("LFMMI", "mmi", "y", l2=0)
    cross = network.add("LFMMICrossEntropy", "cross", "y", "z")
    network.add("Plus", "J", network.add("LFMMI", "chain", "y"), network.add("Scale", "scaled", "weight", cross))
    network.criteria, network.evaluations, network.outputs = ["J"], ["mmi"], ["y"]
    for node in network.parameters():
        network.initialise(node)
    return network


def options_for(epochs=3, rate=0.05, **more):
    return TrainingOptions(max_epochs=epochs, learning_rates_per_sample=(rate,), **more)


def recognised(network, chain, features):
    """The phones of the best path through the denominator."""
    engine = Engine(network, ["y"])
    engine.forward(
        {"features": np.asfortranarray(features, np.float32)}, layout=SequenceLayout.of_lengths([chain.num_frames])
    )
    y, scores, back = engine.value("y"), np.zeros(PHONES), []
    for t in range(chain.num_frames):
        arcs = scores[GRAPH.from_state] + np.log(GRAPH.probability) + y[GRAPH.output, t]
        best = [max(np.flatnonzero(GRAPH.to_state == p), key=lambda a: arcs[a]) for p in range(PHONES)]
        scores = arcs[best]
        back.append(best)
    state, phones = int(scores.argmax()), []
    for best in reversed(back):
        arc = best[state]
        if GRAPH.output[arc] % 2 == 0:
            phones.append(state)
        state = GRAPH.from_state[arc]
    return phones[::-1]


@pytest.mark.slow
@pytest.mark.parametrize("rule", [None, NaturalGradient()], ids=["momentum", "natural gradient"])
def test_it_learns_from_transcripts_alone(rule):
    options = options_for(12, **({} if rule is None else {"rule": rule}))
    result = train(network(), Transcribed(), options, Transcribed(10, 1))
    values = [row["training"]["mmi"] for row in result.history]
    assert values[-1] < 0.3 * values[0]
    test, right = Transcribed(20, 2), 0
    for chain, features in zip(test.chains, test.features):
        spoken = [int(output) // 2 for output in chain.numerator.output[: len(chain.numerator.output) // 2]]
        right += recognised(result.network, chain, features) == spoken
    assert right >= 14


def test_a_killed_training_goes_on_bit_for_bit(tmp_path):
    def run(name, reader):
        return train(network(), reader, options_for(3), Transcribed(4, 1), model_path=tmp_path / name)

    whole = run("whole", Transcribed())
    with pytest.raises(Killed):
        run("broken", dying(Transcribed(), 1, 2))
    resumed = run("broken", Transcribed())
    assert resumed.start_epoch == 1
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "broken.ckp").read_bytes() == (tmp_path / "whole.ckp").read_bytes()
    assert [row["training"] for row in resumed.history] == [row["training"] for row in whole.history]


def test_jobs_that_share_minibatches_learn_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr(executors, "LocalProcesses", Here)
    alone = train(network(), Transcribed(), options_for(2), model_path=tmp_path / "alone")
    parallel = ParallelOptions(2, averages=False)
    shared = train(network(), Transcribed(), options_for(2), model_path=tmp_path / "shared", parallel=parallel)
    for node in alone.network.parameters():
        np.testing.assert_allclose(shared.network[node.name].value, node.value, rtol=1e-4, atol=1e-6)


def test_a_reader_without_graphs_is_refused_before_training(tmp_path):
    reader = Transcribed()
    reader.is_supervised = False
    with pytest.raises(ModelError, match="reader gives nothing to compare utterances with; expected chain="):
        train(network(), reader, options_for(1), model_path=tmp_path / "net")
    assert not list(tmp_path.glob("net*"))
