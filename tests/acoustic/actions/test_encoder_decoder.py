"""Actions trainEncoderDecoder and testEncoderDecoder: configurations, resumed runs, outputs and faults."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from acoustic.actions import CommonSettings, make_action
from acoustic.actions.decode_pairs import edit_distance
from acoustic.network.model_file import load_model
from acoustic.nodes.properties import SOCKET
from readers.config.config import Config
from readers.errors import ArgonautError

WORDS = ["<s>", "</s>", "a", "b", "c"]
READER = """[ readerType=LMSequenceReader; file=%s; mode=softmax; randomize=%s; nbruttsineachrecurrentiter=%s
  labelIn=[ labelMappingFile=words; beginSequence="<s>"; endSequence="</s>" ]; labels=[ labelType=nextWord ] ]
"""
ENCODER = """
  features=Input(5, tag=feature); labels=Input(5, tag=label)
  pastH=PastValue(8, Cell.h, defaultHiddenActivity=0)
  Cell=RNNStep(features, 8, pastH, initValueScale=8)
  Out=Times(Parameter(5, 8), Cell.h)
  CE=CrossEntropyWithSoftmax(labels, Out, tag=criteria)
"""
DECODER = """
  features=Input(5, tag=feature); labels=Input(5, tag=label)
  pastH=PastValue(8, Cell.h, defaultHiddenActivity=0)
  Cell=RNNStep(features, 8, %s, initValueScale=8)
  Out=Times(Parameter(5, 8), Cell.h)
  CE=CrossEntropyWithSoftmax(labels, Out, tag=criteria)
  OutputNodes=(Out)
"""
PAIRED = DECODER % "before" + "  begin=PairNetwork(encoder.Cell.h); before=Plus(pastH, begin)\n"
SIMPLE = "[ rnnType=SIMPLERNN; layerSizes=5:%s:5; recurrentLayer=1; layerTypes=Tanh; initValueScale=4 ]"
SGD = "SGD=[ modelPath=m/pair; maxEpochs=3; minibatchSize=8; learningRatesPerMB=0.2; %s ]"


def ndl(name, text):
    return f"{name}=[{text}]\n"


class Here:
    """A directory with texts and words."""

    def __init__(self, directory: Path):
        self.log: list[str] = []
        rng = np.random.default_rng(0)
        for part, count in (("train", 30), ("dev", 6)):
            sources = [list(rng.choice(WORDS[2:], rng.integers(1, 4))) for _ in range(count)]
            (directory / f"{part}.source").write_text("".join(" ".join(one) + "\n" for one in sources))
            (directory / f"{part}.target").write_text("".join(" ".join(one[::-1]) + "\n" for one in sources))
        (directory / "words").write_text("\n".join(WORDS) + "\n")

    def training(self, encoder=None, decoder=None, sgd="", parallel=4, cv=True, extra=""):
        text = ndl("E", ENCODER) + ndl("D", PAIRED)
        text += f"EncoderNetworkBuilder={encoder or '[run=E]'}\nDecoderNetworkBuilder={decoder or '[run=D]'}\n"
        text += SGD % sgd + "\n" + extra + "\n"
        sides = [("encoder", "source"), ("decoder", "target")]
        text += "".join(f"{side}Reader={READER % (f'train.{end}', 'auto', parallel)}" for side, end in sides)
        if cv:
            text += "".join(f"{side}CVReader={READER % (f'dev.{end}', 'none', 0)}" for side, end in sides)
        return text

    def decoding(self, model="m/pair", extra="", target="file=dev.target;", source="dev.source"):
        decoder = (READER % ("dev.target", "none", 1)).replace("file=dev.target;", target)
        writer = "writer=[ writerType=LUSequenceWriter; Out=[ file=out/said; token=words ] ]"
        return (
            f"modelPath={model}\nencoderReader={READER % (source, 'none', 1)}decoderReader={decoder}{writer}\n{extra}\n"
        )

    def action(self, name, settings, **common):
        return make_action(name, Config.from_text(settings, "p.cntk"), CommonSettings(**common))

    def run(self, name, settings, **common):
        return self.action(name, settings, **common).run(self.log.append, lambda *done, **figures: None)

    def figure(self, pattern):
        return float(next(match for match in map(re.compile(pattern).search, self.log) if match).group(1))


@pytest.fixture
def here(tmp_path, monkeypatch) -> Here:
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path)


@pytest.mark.slow
def test_trains_and_says_what_it_has_learned(here):
    report = here.run("doEncoderDecoder", here.training(sgd="gradUpdateType=AdamW; learningRatesPerMB=0.02"))
    assert (report.num_done, report.lost) == (36, [])
    rows = [json.loads(line) for line in Path("m/pair.history.jsonl").read_text().splitlines()]
    assert rows[-1]["training"]["CE"] < 0.95 * rows[0]["training"]["CE"]
    shown = [line for line in here.log if "[Training] perplexity = " in line]
    assert len(shown) == 3
    assert shown[0].startswith("Finished Epoch[ 1 of 3]: [Training] perplexity = ")
    assert float(shown[-1].rpartition(" ")[2]) == pytest.approx(np.exp(rows[-1]["validation"]["CE"]), rel=1e-4)
    network = load_model("m/pair")
    # The encoder's output layer leads nowhere.
    assert [name for name in network.nodes if name.startswith("encoder.Out") or name == "encoder.CE"] == []
    assert network.criteria == ["CE"]

    here.log.clear()
    report = here.run("testEncoderDecoder", here.decoding())
    assert (report.num_done, report.lost) == (6, [])
    perplexity = here.figure(r"perplexity = ([\d.]+)")
    assert perplexity == pytest.approx(np.exp(rows[-1]["validation"]["CE"]), rel=1e-4)
    said = Path("out/said").read_text().splitlines()
    wanted = Path("dev.target").read_text().splitlines()
    exact = sum(one.split() == other.split() for one, other in zip(said, wanted))
    assert len(said) == 6
    assert here.figure(r"exact = ([\d.]+)%") == pytest.approx(100 * exact / 6, abs=1e-3)
    assert set(" ".join(said).split()) <= set("abc")


@pytest.mark.slow
def test_a_resumed_run_is_the_same(here):
    settings = here.training(sgd="gradUpdateType=AdamW; learningRatesPerMB=0.01; keepCheckPointFiles=true")
    here.run("trainEncoderDecoder", settings)
    for name in ("pair", "pair.ckp"):
        shutil.copy(f"m/{name}", f"whole.{name}")
        Path("m", name).unlink()
    for name in ("pair.2", "pair.2.ckp"):
        Path("m", name).unlink()
    here.run("trainEncoderDecoder", settings)
    for name in ("pair", "pair.ckp"):
        assert Path("m", name).read_bytes() == Path(f"whole.{name}").read_bytes()


def test_gradients_are_checked_in_training(here):
    here.run("trainEncoderDecoder", here.training(sgd="gradientcheck=true; maxEpochs=1"), precision="double")
    checked = [line for line in here.log if line.startswith("Gradient check of ")]
    assert checked
    assert checked[0].startswith("Gradient check of 7 parameters passed")


@pytest.mark.slow
@pytest.mark.parametrize("parallel", [1, 0, 50])
def test_any_number_of_pairs_side_by_side(here, parallel):
    here.run("trainEncoderDecoder", here.training(parallel=parallel, cv=False, sgd="maxEpochs=1"))
    assert here.figure(r"\[Training\] CE = [\d.]+ \* (\d+)") == sum(
        len(line.split()) + 1 for line in Path("train.target").read_text().splitlines()
    )


def test_simple_networks_begin_with_states_of_the_same_name(here):
    here.run("trainEncoderDecoder", here.training(SIMPLE % 6, SIMPLE % 6, sgd="maxEpochs=1"))
    network = load_model("m/pair")
    sockets = [node for node in network.nodes.values() if node.has(SOCKET)]
    assert [(node.name, node.operands[0].name) for node in sockets] == [("PastH1.pair", "encoder.H1")]
    assert network["PastH1"].settings["defaultHiddenActivity"] == 0
    assert [user.name for user in network.nodes.values() if network["PastH1"] in user.operands] == ["PastH1.begun"]
    here.run("testEncoderDecoder", here.decoding(extra="outputNodeNames=outputs").replace("Out=[", "outputs=["))


LSTM_ENCODER = "[ rnnType=LSTMENCODER; layerSizes=5:3:6; lookupTableOrder=1; initValueScale=4 ]"
LSTM_DECODER = "[ rnnType=LSTM; layerSizes=5:4:6:5; lookupTableOrder=1; initValueScale=4 ]"


def test_an_lstm_decoder_begins_with_the_states_of_an_lstm_encoder(here):
    here.run("trainEncoderDecoder", here.training(LSTM_ENCODER, LSTM_DECODER, sgd="maxEpochs=1"))
    network = load_model("m/pair")
    pairs = [(node.name, node.operands[0].name) for node in network.nodes.values() if node.has(SOCKET)]
    assert pairs == [("PastH2.pair", "encoder.H2"), ("PastC2.pair", "encoder.C2")]
    assert network["encoder.EncoderLookupTable"].type_name == "LookupTable"
    here.run("testEncoderDecoder", here.decoding(extra="outputNodeNames=outputs").replace("Out=[", "outputs=["))


def test_gradients_of_an_lstm_encoder_and_decoder(here):
    text = here.training(LSTM_ENCODER, LSTM_DECODER, sgd="gradientcheck=true; maxEpochs=1", cv=False)
    here.run("trainEncoderDecoder", text, precision="double")
    assert here.figure(r"Gradient check of (\d+) parameters passed") == len(load_model("m/pair").parameters())


def test_nodes_may_be_paired_by_name(here):
    sgd = "encoderNodes=Cell.h; decoderNodes=PastH1; maxEpochs=1"
    here.run("trainEncoderDecoder", here.training(decoder=SIMPLE % 8, sgd=sgd))
    assert load_model("m/pair")["PastH1.pair"].operands[0].name == "encoder.Cell.h"


def test_words_without_targets_are_decoded(here):
    here.run("trainEncoderDecoder", here.training(sgd="maxEpochs=1"))
    here.log.clear()
    Path("new.source").write_text("a b\n\nc\nb b b a\n")
    report = here.run("testEncoderDecoder", here.decoding(target="", source="new.source", extra="maxLength=2"))
    assert report.num_done == 3
    said = Path("out/said").read_text().splitlines()
    assert [len(line.split()) <= 2 for line in said] == [True] * 3
    assert not any("exact" in line for line in here.log)


def test_sentences_without_a_partner_are_left_out(here):
    lines = Path("train.target").read_text().splitlines()
    lines[3] = ""
    Path("train.target").write_text("\n".join(lines[:28]) + "\n")
    report = here.run("trainEncoderDecoder", here.training(cv=False, sgd="maxEpochs=1"))
    assert report.num_done == 27
    assert [name for name, _, _ in report.lost] == ["train.source:4", "train.source:29", "train.source:30"]
    assert report.lost[0][2] == "train.source:4: no target sentence"


LU = """[ readerType=LUSequenceReader; file=%s; nbruttsineachrecurrentiter=4
  labelIn=[ token=words; beginSequence="<s>"; endSequence="</s>" ]; labels=[ token=words; endSequence="</s>" ] ]
"""


def test_sentences_in_columns_serve_too(here):
    """The source as words and anything, the target as each word and the one that follows."""
    pairs = {}
    for side in ("source", "target"):
        sentences = [line.split() for line in Path(f"train.{side}").read_text().splitlines()]
        rows = []
        for words in sentences:
            columns = zip(["<s>", *words], [*words, "</s>"]) if side == "target" else zip(words, words)
            rows.append("".join(f"{one} {other}\n" for one, other in columns) + "\n")
        Path(f"train.{side}.columns").write_text("".join(rows))
        pairs[side] = LU % f"train.{side}.columns"
    text = here.training(cv=False, sgd="maxEpochs=1")
    text = (
        text[: text.index("encoderReader=")].replace("features=Input", "labelIn=Input").replace("(features", "(labelIn")
    )
    both = f"encoderReader={pairs['source']}decoderReader={pairs['target']}"
    report = here.run("trainEncoderDecoder", text + both)
    assert report.num_done == 30
    writer = "writer=[ writerType=LUSequenceWriter; Out=[ file=out/said; token=words ] ]"
    assert here.run("testEncoderDecoder", f"modelPath=m/pair\n{both}{writer}").num_done == 30
    assert len(Path("out/said").read_text().splitlines()) == 30


FAULTS = [
    ({"encoder": "[run=Nobody]"}, r"no block Nobody"),
    ({"decoder": "[run=E]"}, r"decoder: has no PairNetwork.*; expected PairNetwork\(encoder.X\)"),
    ({"encoder": SIMPLE % 7, "decoder": SIMPLE % 6}, r"node 'PastH1' .*: has 6 rows, and its initial state .* 7"),
    ({"sgd": "encoderNodes=Cell.h"}, r"p.cntk:\d+: SGD.decoderNodes has 0 names and encoderNodes 1; expected equal"),
    ({"sgd": "encoderNodes=Cell.h; decoderNodes=pastH"}, r"encoderNodes and decoderNodes as well as PairNetwork"),
    (
        {"sgd": "encoderNodes=Cell.hh; decoderNodes=PastH1", "decoder": SIMPLE % 8},
        r"encoderNodes: node 'Cell.hh': not in the encoder; did you mean Cell.h",
    ),
    (
        {"sgd": "encoderNodes=Cell.h; decoderNodes=H1", "decoder": SIMPLE % 8},
        r"decoderNodes: 'H1' is not a PastValue of the decoder",
    ),
    (
        {"extra": "decoderCVReader=[]", "cv": False},
        r"decoderCVReader without encoderCVReader; expected both, or neither",
    ),
    ({"sgd": "adaptationRegType=KL; adaptationRegWeight=0.5"}, r"KL adaptation of an encoder-decoder network"),
]


@pytest.mark.parametrize(("changes", "message"), FAULTS, ids=[fault[1][:30] for fault in FAULTS])
def test_faults_are_found_before_anything_starts(here, changes, message):
    if changes.get("decoder") == "[run=E]":
        changes = {**changes, "encoder": "[run=D2]", "extra": ndl("D2", ENCODER.replace("pastH", "earlier"))}
    with pytest.raises(ArgonautError, match=message):
        here.action("trainEncoderDecoder", here.training(**changes))
    assert not Path("m").exists()


def test_readers_of_frames_cannot_be_paired(here):
    text = here.training().replace("LMSequenceReader", "UCIFastReader", 1)
    with pytest.raises(ArgonautError, match=r"p.cntk:\d+: encoderReader: UCIFastReader; expected LMSequenceReader or"):
        here.action("trainEncoderDecoder", text)


def test_faults_of_decoding(here):
    here.run("trainEncoderDecoder", here.training(sgd="maxEpochs=1"))
    cases = [
        (here.decoding(extra="beamWidth=-1"), r"p.cntk:\d+: beamWidth is -1; expected at least 0"),
        (here.decoding(extra="maxHypotheses=0"), r"maxHypotheses is 0; expected 1 to 1000 hypotheses"),
        (
            here.decoding(extra="maxHypotheses=1001"),
            r"maxHypotheses is 1001; expected 1 to 1000 hypotheses",
        ),
        (here.decoding(extra="outputNodeNames=Out:CE"), r"output nodes Out, CE; expected outputNodeNames with the one"),
        (here.decoding(extra="outputNodeNames=encoder.Cell.h"), r"takes nothing from an encoder"),
        (here.decoding(extra="encoderModelPath=a\ndecoderModelPath=b"), r"expected one file"),
        (here.decoding().replace("Out=[", "CE=["), r"p.cntk:\d+: node CE is not among the outputs"),
        (here.decoding().replace('endSequence="</s>"', ""), r"endSequence ''; expected words of the target"),
        (here.decoding(target="").replace("writer=", "other="), r"has no writer, and decoderReader no file"),
        (here.decoding(model="gone"), r"gone"),
        (here.decoding().replace("out/said", "dev.source"), r"dev.source: is an input and would be overwritten"),
        (here.decoding().replace("out/said", "m/pair"), r"m/pair: is an input and would be overwritten"),
        (here.decoding().replace("out/said", "words"), r"words is its token file and would be overwritten"),
    ]
    for settings, message in cases:
        with pytest.raises((ArgonautError, OSError), match=message):
            here.run("testEncoderDecoder", settings)


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_edit_distance(one, other, distance):
    assert edit_distance(one, other) == distance
