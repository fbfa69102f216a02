"""Training, test and write with utterances whose frames are kept in order, by networks that look back at what came."""

import numpy as np
import pytest

from acoustic.actions import make_action
from acoustic.actions.base import CommonSettings
from acoustic.engine.engine import Engine
from acoustic.engine.inputs import check_inputs
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.training.evaluation import sum_figures
from acoustic.training.options import TrainingOptions
from acoustic.training.sgd import train
from readers.config.config import Config
from readers.errors import ModelError
from readers.htk.parameter_file import FBANK, read_htk, write_htk
from readers.sources.frames.htk_mlf_reader import HTKMLFReader

CLASSES, LENGTHS = 3, (20, 7, 33, 12, 25, 16, 9, 28, 14, 21)
WHOLE, CUT = "frameMode=false", "frameMode=false;truncated=true"
CHUNKS = f"{CUT};lookAheadFrames=4"


@pytest.fixture
def blocks(tmp_path) -> str:
    """A frame shows the class of the next one, so that only who remembers can tell."""
    rng = np.random.default_rng(0)
    scp, mlf, out = [], ["#!MLF!#"], []
    for u, length in enumerate(LENGTHS):
        classes = rng.integers(0, CLASSES, length)
        shown = np.eye(CLASSES)[np.append(classes[1:], 0)] + 0.1 * rng.standard_normal((length, CLASSES))
        write_htk(tmp_path / f"u{u}.fb", shown.T.astype(np.float32), FBANK)
        scp.append(f"u{u}.fb={tmp_path}/u{u}.fb[0,{length - 1}]\n")
        mlf += [f'"u{u}.lab"', *(f"{t} {t + 1} s{one} {one}" for t, one in enumerate(classes)), "."]
        out.append(f"{tmp_path}/u{u}.out\n")
    (tmp_path / "scp").write_text("".join(scp))
    (tmp_path / "out.scp").write_text("".join(out))
    (tmp_path / "mlf").write_text("\n".join(mlf) + "\n")
    return f"features=[dim={CLASSES};scpFile={tmp_path}/scp]\nlabels=[labelDim={CLASSES};mlfFile={tmp_path}/mlf]"


def reader_of(blocks: str, options: str, seed: int = 1) -> HTKMLFReader:
    return HTKMLFReader(Config.from_text(f"reader=[\n{options}\n{blocks}\n]", "u.cntk").block("reader"), seed)


def recurrent(seed: int = 0, normalised: bool = False, hidden: int = 12) -> Network:
    """h(t) = tanh(W x(t) + R h(t-1) + b), V h(t)."""
    network = Network(seed=seed)
    add = network.add

    def matrix(name: str, rows: int, cols: int):
        return add("LearnableParameter", name, rows=rows, cols=cols, initValueScale=3)

    x = add("InputValue", "features", rows=CLASSES)
    add("InputValue", "labels", rows=CLASSES)
    if normalised:
        x = add("PerDimMeanVarNormalization", "normal", x, add("Mean", "mean", x), add("InvStdDev", "dev", x))
    past = network.add_node("PastValue", "past", [None], {"rows": hidden, "defaultHiddenActivity": 0.0}).name
    total = add("Plus", "sum", add("Times", "Wx", matrix("W", hidden, CLASSES), x),
                add("Times", "Rh", matrix("R", hidden, hidden), past))  # fmt: skip
    h = add("Tanh", "h", add("Plus", "shifted", total, matrix("b", hidden, 1)))
    network.connect(past, "h")
    out = add("Times", "out", matrix("V", CLASSES, hidden), h)
    network.criteria.append(add("CrossEntropyWithSoftmax", "ce", "labels", out).name)
    network.evaluations.append(add("ErrorPrediction", "err", "labels", out).name)
    network.outputs.append("out")
    network.validate()
    return network


def options(max_epochs: int, **changes) -> TrainingOptions:
    values = {"learning_rates_per_sample": 0.05, "minibatch_size": 6, "momentum_per_sample": 0.9}
    return TrainingOptions(max_epochs, **(values | changes))


@pytest.mark.slow
@pytest.mark.parametrize("mode", [f"{WHOLE};nbruttsineachrecurrentiter=2", f"{CUT};nbruttsineachrecurrentiter=3"])
def test_what_came_before_is_learned(blocks, mode):
    with reader_of(blocks, mode) as reader:
        history = train(recurrent(), reader, options(25), validation=reader).history
    assert history[0]["samples"] == sum(LENGTHS)
    assert history[0]["training"]["err"] > 0.3
    assert history[-1]["training"]["err"] < 0.1  # the first frame of an utterance cannot be known
    assert history[-1]["validation"]["err"] < 0.1


@pytest.mark.parametrize("mode", [WHOLE, CUT, CHUNKS])
@pytest.mark.parametrize("parallel", [2, 4])
def test_figures_do_not_depend_on_how_utterances_are_put_side_by_side(blocks, mode, parallel):
    network = recurrent(3)
    engine = Engine(network, ["ce", "err"])
    with reader_of(blocks, WHOLE) as alone:
        expected = sum_figures(engine, alone.minibatches(0, 5), ["ce", "err"])
    with reader_of(blocks, f"{mode};nbruttsineachrecurrentiter={parallel}") as reader:
        found = sum_figures(engine, reader.minibatches(0, 5), ["ce", "err"])
    assert found.num_frames == expected.num_frames == sum(LENGTHS)
    assert found.figures["ce"] == pytest.approx(expected.figures["ce"], rel=1e-5)
    assert found.figures["err"] == expected.figures["err"]


@pytest.mark.parametrize("mode", [WHOLE, CUT, CHUNKS])
def test_statistics_leave_gaps_out(blocks, mode):
    networks = []
    for parallel in (1, 4):
        with reader_of(blocks, f"{mode};nbruttsineachrecurrentiter={parallel}") as reader:
            networks.append(train(recurrent(normalised=True), reader, options(1)).network)
    for name in ("mean", "dev"):
        np.testing.assert_allclose(networks[0][name].value, networks[1][name].value, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode", [f"{WHOLE};nbruttsineachrecurrentiter=1:3", f"{CHUNKS};nbruttsineachrecurrentiter=3:2"]
)
def test_a_resumed_run_equals_one_that_was_not_interrupted(blocks, mode, tmp_path):
    results = []
    for name, parts in (("whole", [4]), ("parts", [1, 3, 4])):
        for until in parts:
            with reader_of(blocks, mode) as reader:
                path = tmp_path / name / "model"
                values = options(4, epoch_size=100)
                if until < 4:
                    reader.training_minibatches = stopped(reader.training_minibatches, until)
                    with pytest.raises(KeyboardInterrupt):
                        train(recurrent(), reader, values, model_path=path)
                else:
                    result = train(recurrent(), reader, values, validation=reader, model_path=path)
        results.append(result.network)
    for node in results[0].parameters():
        np.testing.assert_array_equal(node.value, results[1][node.name].value)


def stopped(minibatches, until: int):
    """Minibatches of a run that dies in the second minibatch of an epoch."""

    def give(epoch, minibatch_size, epoch_size):
        for index, minibatch in enumerate(minibatches(epoch, minibatch_size, epoch_size)):
            if (epoch, index) == (until, 1):
                raise KeyboardInterrupt
            yield minibatch

    return give


def test_values_per_minibatch_count_all_slots_where_utterances_are_cut(blocks):
    sizes = {"parallel": (2, 3), "minibatch_size": 10}
    for truncated, full in ((True, 30), (False, 10)):
        values = TrainingOptions(2, (0.6,), momentum_per_minibatch=0.9, truncated=truncated, **sizes).epoch(1)
        assert values.learning_rate == 0.6 / full
        assert values.momentum == pytest.approx(0.9 ** (1 / full), rel=1e-12)
    one = TrainingOptions(2, (0.6,), truncated=True, parallel=(2, 3), minibatch_size=1)
    assert one.epoch(1).learning_rate == 0.6  # CNTK leaves minibatches of one frame alone
    for mode, parallel in ((WHOLE, (1,)), (CUT, (2, 4))):
        with reader_of(blocks, f"{mode};nbruttsineachrecurrentiter=2:4") as reader:
            assert tuple(reader.parallel) == parallel


def test_an_epoch_that_no_utterance_begins_in_is_said(blocks):
    with (
        reader_of(blocks, WHOLE) as reader,
        pytest.raises(ModelError, match="an utterance that begins within the epochSize of 6 frames; increase"),
    ):
        train(recurrent(), reader, options(20, epoch_size=6))


def test_momentum_of_an_update_is_that_of_all_utterances_side_by_side(blocks):
    lines = []
    values = options(1, trace_level=1, momentum_per_sample=(), momentum_per_minibatch=0.9)
    with reader_of(blocks, f"{CUT};nbruttsineachrecurrentiter=2") as reader:
        train(recurrent(), reader, values, log=lines.append)
    assert any("effective momentum = 0.900000" in line for line in lines)


def test_networks_that_look_back_want_sequences(blocks):
    network = recurrent()
    with (
        reader_of(blocks, "") as reader,
        pytest.raises(ModelError, match=r"past.*: cvReader gives frames on their own"),
    ):
        check_inputs(Engine(network, ["ce"]), reader, "cvReader")


def test_networks_that_want_whole_sequences_or_what_follows_say_so(blocks):
    network = recurrent()
    network.add("TimeReverse", "back", "h")
    with reader_of(blocks, WHOLE) as reader:
        check_inputs(Engine(network, ["ce"]), reader)
    for mode in (CUT, CHUNKS):
        with (
            reader_of(blocks, mode) as reader,
            pytest.raises(ModelError, match=r"back.*: reader gives pieces of sequences; expected whole ones"),
        ):
            check_inputs(Engine(network, ["ce"]), reader)
    network = recurrent()
    network.add("FutureValue", "next", "h", rows=12)
    for mode, count in ((WHOLE, 0), (CUT, 1), (CHUNKS, 0)):
        lines = []
        with reader_of(blocks, mode) as reader:
            train(network, reader, options(1), log=lines.append)
        warnings = [line for line in lines if "next" in line and "lookAheadFrames" in line]
        assert len(warnings) == count


def test_whole_utterances_are_written(blocks, tmp_path):
    network = recurrent(5)
    save_model(network, tmp_path / "model")
    text = (
        f"modelPath={tmp_path}/model\noutputNodeNames=out\nminibatchSize=4\n"
        f"reader=[\n{WHOLE}\n{blocks}\n]\nwriter=[\nout=[dim={CLASSES};scpFile={tmp_path}/out.scp]\n]"
    )
    report = make_action("write", Config.from_text(text, "w.cntk"), CommonSettings()).run(print, lambda *_, **__: None)
    assert report.num_done == len(LENGTHS)
    weights = {name: load_model(tmp_path / "model")[name].value for name in "WRbV"}
    for u in range(len(LENGTHS)):
        frames = read_htk(tmp_path / f"u{u}.fb").frames
        h, columns = np.zeros((12, 1)), []
        for t in range(frames.shape[1]):
            h = np.tanh(weights["W"] @ frames[:, t : t + 1] + weights["R"] @ h + weights["b"])
            columns.append(weights["V"] @ h)
        np.testing.assert_allclose(read_htk(tmp_path / f"u{u}.out").frames, np.hstack(columns), atol=1e-5)


def test_utterances_are_written_in_the_chunks_of_the_training(blocks, tmp_path):
    """FutureValue sees what is in a chunk and the frames ahead of it."""
    network = Network()
    x = network.add("InputValue", "features", rows=CLASSES)
    network.outputs.append(network.add("FutureValue", "out", x, rows=CLASSES, timeStep=3).name)
    save_model(network, tmp_path / "model")
    text = (
        f"modelPath={tmp_path}/model\nminibatchSize=5\n"
        f"reader=[\n{CUT};lookAheadFrames=2\n{blocks}\n]\nwriter=[\nout=[dim={CLASSES};scpFile={tmp_path}/out.scp]\n]"
    )
    make_action("write", Config.from_text(text, "w.cntk"), CommonSettings()).run(print, lambda *_, **__: None)
    for u, length in enumerate(LENGTHS):
        frames, found = (read_htk(tmp_path / f"u{u}.{kind}").frames for kind in ("fb", "out"))
        for t in range(length):
            seen = min((t // 5 + 1) * 5 + 2, length)
            expected = frames[:, t + 3] if t + 3 < seen else np.full(CLASSES, 0.1, np.float32)
            np.testing.assert_array_equal(found[:, t], expected)
