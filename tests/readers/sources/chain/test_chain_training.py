"""Training by lattice-free MMI on what a reader gives: chunks with context, shuffled in each epoch."""

import numpy as np
import pytest

from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.rules import NaturalGradient
from acoustic.training.sgd import train
from readers.errors import ModelError
from readers.sources.chain import AlignedNumerator, TranscriptNumerator, write_denominator, write_numerators
from readers.sources.chain.denominator_file import fingerprint
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from tests.acoustic.training.ring import Killed
from tests.readers.sources.chain.test_chain_files import OUTPUTS, denominator, ints, transcript

LENGTHS = (15, 40, 28, 13, 33, 21)
SEQUENCES = "frameMode=false; nbruttsineachrecurrentiter=2; frameSubsampling=3; frameShift=false"
CHUNKS = f"{SEQUENCES}; chunkFrames=12; chunkContext=1:1"


def numerator(num_frames, aligned):
    """a, then b from about the middle on, or anywhere."""
    count = -(-num_frames // 3)
    if not aligned:
        plain = transcript()
        return TranscriptNumerator(count, num_frames, plain.from_state, plain.to_state, plain.output, plain.final)
    return AlignedNumerator(count, num_frames, ints(0, 2), ints(1, 3), ints(0, count // 2 - 1), ints(0, count // 2 + 1))


def configuration(tiny, options, aligned=True):
    """The configuration of a reader, with its files."""
    corpus = tiny(LENGTHS)
    where, graph = corpus.directory, denominator()
    write_denominator(where / "den", graph, OUTPUTS)
    metadata = {"fingerprint": fingerprint(graph), "num_outputs": 4, "subsampling": 3}
    write_numerators(where / "num", [(f"u{i}", numerator(n, aligned)) for i, n in enumerate(LENGTHS)], metadata)
    return corpus.config(options, f"chain=[denominator={where}/den; numerators={where}/num]")


def opened(*arguments):
    return HTKMLFReader(configuration(*arguments))


def network(reader, outputs=4):
    """A layer that sees the columns beside each one, and two output layers."""
    network = Network(threads=1, seed=1)
    (name, rows), *_ = ((name, rows) for name, rows in reader.dims().items() if "label" not in name)
    network.add("Input", name, rows=rows, tag="feature")
    terms = []
    for place, node in (("before", "PastValue"), ("here", ""), ("after", "FutureValue")):
        below = network.add(node, place, name, rows=rows).name if node else name
        network.add("Parameter", f"W.{place}", rows=8, cols=rows)
        terms.append(network.add("Times", f"product.{place}", f"W.{place}", below))
    network.add("Tanh", "h", network.add("Plus", "sum", network.add("Plus", "two", *terms[:2]), terms[2]))
    for top in ("y", "z"):
        network.add("Parameter", f"V.{top}", rows=outputs, cols=8, init="fixedValue", value=0)
        network.add("Times", top, f"V.{top}", "h")
    network.add("LFMMI", "mmi", "y", l2=0)
    network.add("Plus", "J", network.add("LFMMI", "chain", "y"), network.add("LFMMICrossEntropy", "cross", "y", "z"))
    network.criteria, network.evaluations, network.outputs = ["J"], ["mmi"], ["y"]
    for node in network.parameters():
        network.initialise(node)
    return network


@pytest.mark.slow
@pytest.mark.parametrize(("options", "aligned"), [(CHUNKS, True), (SEQUENCES, True), (SEQUENCES, False)])
def test_the_criterion_falls(tiny, options, aligned):
    reader = opened(tiny, options, aligned)
    settings = TrainingOptions(max_epochs=20, learning_rates_per_sample=(0.01,), rule=NaturalGradient())
    values = [row["training"]["mmi"] for row in train(network(reader), reader, settings).history]
    assert 0 < values[-1] < 0.85 * values[0]
    assert np.isfinite(values).all()


def until_killed(minibatches, count):
    for index, minibatch in enumerate(minibatches):
        if index == count:
            raise Killed
        yield minibatch


@pytest.mark.parametrize(("options", "aligned"), [(CHUNKS, True), (SEQUENCES, False)], ids=["chunks", "transcripts"])
def test_a_killed_training_goes_on_bit_for_bit(tiny, tmp_path, options, aligned):
    """The second epoch takes other chunks, in another order and with other shifts of their frames, than the first."""
    config = configuration(tiny, options.replace("frameShift=false", "frameShift=true"), aligned)
    settings = TrainingOptions(max_epochs=3, learning_rates_per_sample=(0.01,), rule=NaturalGradient())

    def run(name, reader):
        return train(network(reader), reader, settings, model_path=tmp_path / name)

    whole = run("whole", HTKMLFReader(config))
    dying = HTKMLFReader(config)
    read = dying.training_minibatches
    dying.training_minibatches = lambda epoch, **sizes: until_killed(read(epoch, **sizes), 2 if epoch else None)
    with pytest.raises(Killed):
        run("broken", dying)
    resumed = run("broken", HTKMLFReader(config))
    assert resumed.start_epoch == 1
    assert (tmp_path / "broken").read_bytes() == (tmp_path / "whole").read_bytes()
    assert (tmp_path / "broken.ckp").read_bytes() == (tmp_path / "whole.ckp").read_bytes()
    assert [row["training"] for row in resumed.history] == [row["training"] for row in whole.history]


def test_a_network_with_another_number_of_outputs_is_refused(tiny):
    reader = opened(tiny, CHUNKS)
    with pytest.raises(ModelError, match=r"node 'chain' \(LFMMI\): reader gives graphs of 4 outputs; expected 5, as"):
        train(network(reader, 5), reader, TrainingOptions(max_epochs=1, learning_rates_per_sample=(0.05,)))
