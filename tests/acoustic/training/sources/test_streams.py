"""A network with two inputs, one with a context window and one without, and two sets of labels, trained from files."""

import kaldiio
import numpy as np
import pytest

from acoustic.network.network import Network
from acoustic.training.options import TrainingOptions
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.htk.parameter_file import FBANK, write_htk
from readers.minibatches.base import open_reader

WIDTH, CLASSES, SPEAKERS = 3, 3, 2


@pytest.fixture
def corpus(tmp_path):
    """Twelve utterances: `fbank` tells the class of a frame from its neighbours, `voice` the speaker."""
    rng = np.random.default_rng(0)
    streams: dict[str, dict[str, np.ndarray]] = {"fbank": {}, "voice": {}}
    labels: dict[str, dict[str, np.ndarray]] = {"states": {}, "speaker": {}}
    for u in range(12):
        key, length = f"u{u}", int(rng.integers(20, 40))
        classes = rng.integers(0, CLASSES, length)
        # The class shows in the frame before, so that only a network that sees the context can know it.
        shown = np.append(classes[1:], 0)
        streams["fbank"][key] = (np.eye(CLASSES)[shown] + 0.1 * rng.standard_normal((length, CLASSES))).astype(
            np.float32
        )
        streams["voice"][key] = (u % SPEAKERS - 0.5 + 0.2 * rng.standard_normal((length, 2))).astype(np.float32)
        labels["states"][key] = classes.astype(np.int32)
        labels["speaker"][key] = np.full(length, u % SPEAKERS, np.int32)
    return tmp_path, streams, labels


def htk_blocks(directory, streams, labels) -> str:
    for name, values in streams.items():
        for key, frames in values.items():
            write_htk(directory / f"{key}.{name}", frames.T, FBANK)
        lines = [f"{key}.{name}={directory}/{key}.{name}[0,{len(one) - 1}]\n" for key, one in values.items()]
        (directory / f"{name}.scp").write_text("".join(lines))
    for name, values in labels.items():
        entries = [
            f'"{key}.lab"\n' + "".join(f"{t} {t + 1} {name}{one} {one}\n" for t, one in enumerate(classes)) + ".\n"
            for key, classes in values.items()
        ]
        (directory / f"{name}.mlf").write_text("#!MLF!#\n" + "".join(entries))
    return (
        f"fbank=[dim={WIDTH * CLASSES};scpFile={directory}/fbank.scp]\n"
        f"voice=[dim=2;scpFile={directory}/voice.scp]\n"
        f"states=[labelDim={CLASSES};mlfFile={directory}/states.mlf]\n"
        f"speaker=[labelDim={SPEAKERS};mlfFile={directory}/speaker.mlf]"
    )


def kaldi_blocks(directory, streams, labels) -> str:
    for name, values in (streams | labels).items():
        kaldiio.save_ark(f"{directory}/{name}.ark", values, scp=f"{directory}/{name}.scp")
    return (
        f"fbank=[dim={CLASSES};contextWindow={WIDTH};scpFile={directory}/fbank.scp]\n"
        f"voice=[dim=2;arkFile={directory}/voice.ark]\n"
        f"states=[labelDim={CLASSES};aliFile={directory}/states.ark]\n"
        f"speaker=[labelDim={SPEAKERS};aliScpFile={directory}/speaker.scp]"
    )


def two_by_two(seed: int) -> Network:
    """Both inputs into one hidden layer, an output and a criterion for each set of labels, the sum of both trained."""
    network = Network(seed=seed)

    def matrix(name: str, rows: int, cols: int):
        return network.add("LearnableParameter", name, rows=rows, cols=cols, initValueScale=10)

    add = network.add
    for name, rows in (("fbank", WIDTH * CLASSES), ("voice", 2), ("states", CLASSES), ("speaker", SPEAKERS)):
        add("InputValue", name, rows=rows)
    add("Plus", "sum", add("Times", "Wx", matrix("W", 24, WIDTH * CLASSES), "fbank"),
        add("Times", "Vy", matrix("V", 24, 2), "voice"))  # fmt: skip
    hidden = add("Tanh", "hidden", add("Plus", "shifted", "sum", matrix("b", 24, 1)))
    for name, rows in (("states", CLASSES), ("speaker", SPEAKERS)):
        output = add("Times", f"out.{name}", matrix(f"U.{name}", rows, 24), hidden)
        add("CrossEntropyWithSoftmax", f"ce.{name}", name, output)
        add("ErrorPrediction", f"err.{name}", name, output)
    add("Plus", "ce", "ce.states", "ce.speaker")
    network.criteria, network.evaluations = ["ce"], ["err.states", "err.speaker"]
    return network


@pytest.mark.parametrize(("kind", "blocks"), [("HTKMLFReader", htk_blocks), ("KaldiReader", kaldi_blocks)])
def test_two_inputs_and_two_label_streams_are_learned(corpus, kind, blocks):
    text = f"reader=[\nreaderType={kind}\n{blocks(*corpus)}\n]"
    with open_reader(Config.from_text(text, "two.cntk").block("reader"), 1) as reader:
        assert reader.dims() == {"fbank": 9, "voice": 2, "states": 3, "speaker": 2}
        options = TrainingOptions(20, learning_rates_per_minibatch=0.5, minibatch_size=32, momentum_per_minibatch=0.5)
        figures = [row["training"] for row in train(two_by_two(0), reader, options).history]
    for error, chance in (("err.states", 0.5), ("err.speaker", 0.2)):
        assert figures[0][error] > chance / 4
        assert figures[-1][error] < 0.08
    assert figures[-1]["ce"] < 0.3 < figures[0]["ce"]
