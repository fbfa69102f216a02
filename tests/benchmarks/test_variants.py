"""The variants: names, lists, configurations, tables, and all of them on a corpus of tones."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiment import main
from benchmarks.variants import lists
from benchmarks.variants.frames import draw_confusions, phone_confusions
from benchmarks.variants.names import GROUPS, RECURRENT, VARIANTS, parse_names
from benchmarks.variants.run import CONFIG, TRAININGS, Variants, frame_error
from benchmarks.variants.table import Row, draw_table, markdown_rows, text_table
from decoder.graph import load_defaults
from readers.config.config import load_config
from readers.errors import ConfigError, FormatError
from readers.htk.mlf import Label, read_mlf
from readers.htk.parameter_file import read_htk_header, write_htk
from readers.htk.scp import read_scp
from recipes.timit.corpus import Utterance
from tests.recipes.an4.test_an4 import make_corpus
from tests.recipes.systems.small_system import STATES

CORPORA = {"an4": (132, 74), "timit": (183, 8)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("all", [name for name in VARIANTS if name not in RECURRENT]),
        ("recurrent", list(RECURRENT)),
        ("all,recurrent", list(VARIANTS)),
        ("ndl", ["ndl"]),
        ("blstm,simple", ["simple", "blstm"]),
        ("crossvalidate,simple", ["simple", "crossvalidate"]),
    ],
)
def test_parse_names_in_the_order_of_training(text, names):
    assert parse_names(text) == names


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndl,mel", "--only mel; expected some of all,recurrent,simple,adjust"),
        ("crossvalidate", "selects an epoch of simple; expected both"),
    ],
)
def test_parse_names_refuses(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_names(text)


# Lists


@pytest.fixture
def features(tmp_path) -> Path:
    """Two feature files and the list of them."""
    for name, length in (("u1", 3), ("u2", 5)):
        write_htk(tmp_path / f"{name}.fbank", np.zeros((2, length), np.float32), 9, 100_000)
    report = lists.write_feature_lists(
        tmp_path, "fbank", {"dev": [(name, tmp_path / f"{name}.fbank") for name in ("u1", "u2", "gone")]}
    )
    assert (report.num_done, [name for name, _, _ in report.lost]) == (2, ["gone"])
    return tmp_path


def test_write_groups_labels_each_utterance_from_end_to_end(features):
    items = [lists.Item("u1", Path("a"), "mary"), lists.Item("u2", Path("b"), "ann")]
    train = [lists.Item("u9", Path("c"), "zoe")]
    (features / "train.fbank.scp").write_text("u9.fbank=u9.fbank[0,9]\n")
    assert lists.write_groups(features, features, {"dev": items, "train": train}) == ["ann", "mary", "zoe"]
    assert (features / "groups.list").read_text() == "ann\nmary\nzoe\n"
    labels = read_mlf(features / "dev.groups.mlf")
    assert labels["u1"] == [Label(0, 300_000, "mary")]
    assert labels["u2"] == [Label(0, 500_000, "ann")]


def test_timit_groups_are_dialects():
    assert Utterance("test-dr3-faks0-si943", "faks0", Path("a"), Path("b")).dialect == "dr3"


def test_write_groups_refuses_a_stranger(features):
    with pytest.raises(FormatError, match=r"dev.fbank.scp:2: u2 is not in the corpus"):
        lists.write_groups(features, features, {"dev": [lists.Item("u1", Path("a"), "mary")]})


def test_lists_of_outputs_follow_the_features_line_by_line(features):
    scp = features / "dev.fbank.scp"
    outputs = lists.write_output_list(features / "out", scp, features / "there", ".bn")
    assert (features / "out").read_text().splitlines() == [f"{features}/there/u1.bn", f"{features}/there/u2.bn"]
    lists.write_future_list(features / "dev.bn.scp", scp, outputs)
    entries = read_scp(features / "dev.bn.scp")
    assert [(entry.key, entry.num_frames, entry.path) for entry in entries] == [
        ("u1", 3, f"{features}/there/u1.bn"),
        ("u2", 5, f"{features}/there/u2.bn"),
    ]


# Figures


def test_phone_confusions_by_hand():
    states = ["b_s2", "a_s2", "a_s3"]  # not in the order of the map
    state_map = {"a": ["a_s2", "a_s3"], "b": ["b_s2"]}
    classes, guesses = np.array([0, 1, 1, 2, 0, 2]), np.array([0, 1, 2, 0, 1, 2])
    assert phone_confusions(classes, guesses, states, state_map).tolist() == [[3, 1], [1, 1]]


ROWS = [
    Row("simple", "plain", "8", 30.04, 40.0, 10.0, 12.34, 99.6),
    Row("pretrain", "layer by layer", "1+1+6", 29.0, 39.0, 9.0, 11.0, 100.4),
]


def test_tables_show_the_same_figures():
    text = text_table(ROWS, "PER").splitlines()
    assert text[0].split() == "variant epochs train frames dev frames dev PER test PER training".split()
    assert text[1].split() == "simple 8 30.0 % 40.0 % 10.0 % 12.3 % 100 s".split()
    assert text[2].split()[:2] == ["pretrain", "1+1+6"]
    assert len({len(line) for line in text}) == 1
    assert markdown_rows(ROWS).splitlines()[0] == "| simple | plain | 8 | 30.0 % | 40.0 % | 10.0 % | 12.3 % | 100 s |"


def test_pictures_are_drawn(tmp_path):
    draw_table(ROWS, "WER", tmp_path / "table.png")
    counts = np.array([[5, 1, 0], [2, 7, 0], [0, 0, 0]])
    draw_confusions([("epoch 1", counts), ("epoch 2", counts)], ["a", "b", "never"], tmp_path / "confusions.png")
    for name in ("table", "confusions"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_frame_error_of_either_builder():
    assert frame_error({"CE.SM": 3.0, "Err": 0.25, "GroupErr": 0.5}) == 0.25
    assert frame_error({"EvalErrorPrediction": 0.5}) == 0.5


# Configurations


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("variant", VARIANTS)
def test_configuration_names_what_it_is(corpus, variant):
    base = CONFIG / f"{corpus}.cntk"
    config = load_config([f"configFile={base}+{CONFIG / variant}.cntk", "ExpDir=exp", f"ScriptDir={CONFIG}"])
    assert (config.int("NumStates"), config.int("NumGroups")) == CORPORA[corpus]
    assert config.text("Variant") == variant
    trained = []
    for command in config.array("command"):
        block = config.block(command)
        if block.text("action") == "train":
            trained.append(block.path("modelPath"))
            assert trained[-1] == block.block("SGD").path("modelPath")
        if block.has("editPath"):
            assert block.path("editPath").is_file()
        for _, inner in block.blocks():
            if inner.has_own("networkDescription"):
                assert inner.path("networkDescription").is_file()
    parts = () if variant == "crossvalidate" else TRAININGS.get(variant, ("model",))
    assert trained == [Path(f"exp/variants/{variant}/{part}/net") for part in parts]


@pytest.mark.parametrize("corpus", CORPORA)
@pytest.mark.parametrize("variant", RECURRENT)
def test_recurrent_networks_see_utterances_in_order_and_frames_of_one_size(corpus, variant):
    base = CONFIG / f"{corpus}.cntk"
    config = load_config([f"configFile={base}+{CONFIG / variant}.cntk", "ExpDir=exp", f"ScriptDir={CONFIG}"])
    rows = config.int("FbankDim") if variant != "blstm" else config.int("FrameDim")
    for command, names in (("Train", ("reader", "cvReader")), *((c, ("reader",)) for c in ("Test", "WriteDev"))):
        for name in names:
            reader = config.block(command).block(name)
            assert not reader.bool("frameMode")
            assert reader.block("features").int("dim") == rows
    # A bidirectional network has to see the end of an utterance.
    assert config.block("Train").block("reader").bool("truncated") == (variant != "blstm")


def test_search_options_of_recurrent_networks_are_their_own():
    variants = Variants(None, ["adjust", "ndl", "lstm"], Path("exp"), 0, 1)
    assert [variants.scaled_with(name) for name in variants.names] == ["adjust", "adjust", "lstm"]
    files = {variants.scales_file(name) for name in variants.names}
    assert files == {Path("exp/variants/scales.json"), Path("exp/variants/scales.lstm.json")}


def test_pretraining_takes_as_many_epochs_at_the_same_rates():
    base = CONFIG / "an4.cntk"
    schedules = {}
    for variant in ("ndl", "pretrain"):
        config = load_config([f"configFile={base}+{CONFIG / variant}.cntk", "ExpDir=exp", f"ScriptDir={CONFIG}"])
        rates, sizes = [], []
        for command in config.array("command"):
            if config.block(command).text("action") == "train":
                sgd = config.block(command).block("SGD")
                for epoch in range(sgd.int("maxEpochs")):
                    for values, name in ((rates, "learningRatesPerMB"), (sizes, "minibatchSize")):
                        listed = sgd.array(name)
                        values.append(float(listed[min(epoch, len(listed) - 1)]))
        schedules[variant] = rates, sizes
    assert schedules["ndl"] == schedules["pretrain"]
    assert len(schedules["ndl"][0]) == 8


# All of them

SETTINGS = (
    f"NumStates={len(STATES)}", "NumGroups=3", "HiddenDim=32", "BottleneckDim=8", "StackedDim=88",
    "Train=[SGD=[epochSize=0;minibatchSize=32;learningRatesPerMB=1.6;momentumPerMB=0.9;maxEpochs=14]]",
)  # fmt: skip


RECURRENT_SETTINGS = (
    f"NumStates={len(STATES)}", "CellDim=16", "ProjectionDim=12",
    "Train=[SGD=[learningRatesPerSample=1e-4;dropoutRate=0;maxEpochs=14];reader=[nbruttsineachrecurrentiter=4]]",
)  # fmt: skip


def run_toy(data: Path, out: Path, names: str, *arguments: str, settings: Sequence[str] = SETTINGS) -> int:
    settings = [word for setting in settings for word in ("--set", setting)]
    options = ("--data", str(data), "--out", str(out), "--workers", "1", "--only", names)
    return main("variants", ["an4", *options, *settings, *arguments])


@pytest.mark.slow
def test_all_variants_on_tones_and_resume(toy_run, tmp_path, capsys):
    corpus, out = make_corpus(tmp_path / "corpus"), tmp_path / "exp"
    assert run_toy(corpus, out, "all") == 0
    shown = capsys.readouterr().out
    table = shown.splitlines()[-1 - len(GROUPS["all"]) :]
    assert [line.split()[0] for line in table] == ["variant", *GROUPS["all"]]
    rows = {row["name"]: row for row in json.loads((out / "variants/results.json").read_text())}
    for name in ("simple", "bottleneck", "multitask", "twoinputs"):
        assert rows[name]["test_words"] < 5
        assert rows[name]["dev_error"] < 60
    assert rows["ndl"]["dev_error"] == rows["simple"]["dev_error"]  # the same network, described otherwise
    assert rows["pretrain"]["epochs"] == "1+1+14"
    assert rows["crossvalidate"]["dev_error"] <= rows["simple"]["dev_error"]
    assert f"best epoch: {rows['crossvalidate']['epochs']} of 14" in shown
    for name in ("variants.png", "confusions.png"):
        assert (out / "variants" / name).stat().st_size > 0
    bottleneck = next((out / "variants/bottleneck/features").glob("*.bottleneck"))
    assert read_htk_header(bottleneck).dim == 8

    model = (out / "variants/ndl/model/net").read_bytes()
    assert run_toy(corpus, out, "simple,ndl") == 0
    shown = capsys.readouterr().out
    assert shown.count("done before") == 7  # all but the table, which has other rows
    assert [line.split()[0] for line in shown.splitlines()[-3:]] == ["variant", "simple", "ndl"]
    assert (out / "variants/ndl/model/net").read_bytes() == model


@pytest.mark.slow
def test_recurrent_variants_on_tones(toy_run, tmp_path, capsys):
    corpus, out = make_corpus(tmp_path / "corpus"), tmp_path / "exp"
    assert run_toy(corpus, out, "recurrent", settings=RECURRENT_SETTINGS) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()[-4:]] == ["variant", *RECURRENT]
    rows = {row["name"]: row for row in json.loads((out / "variants/results.json").read_text())}
    for name in RECURRENT:
        assert rows[name]["test_words"] < 5
        assert rows[name]["dev_error"] < 60
        assert json.loads((out / f"variants/scales.{name}.json").read_text())["chosen"]["beam"] > 0
    first = json.loads((out / f"variants/scales.{next(iter(RECURRENT))}.json").read_text())["chosen"]
    assert load_defaults(out / "graph" / "trained" / "graph.dg").options == first
