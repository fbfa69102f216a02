"""The AN4 recipe: its sets and tables, faults of the corpus, and the whole of it on a toy corpus of tones."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from acoustic.network.model_file import load_model
from decoder import Recognizer
from decoder.alignment.boundaries import compare_boundaries
from decoder.graph import load_defaults
from features import FeatureConfig
from readers.config.config import load_config
from readers.config.hcopy import read_hcopy_config
from readers.errors import FormatError
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import Label, read_mlf
from readers.htk.slf import read_slf
from readers.language.arpa import read_arpa
from readers.tables.hmm_tables import read_transitions
from recipes.an4 import corpus, prepare
from recipes.an4.recipe import CONFIG, NETWORKS
from recipes.cli.main import main
from tests.recipes.systems.small_system import WORDS
from tests.recipes.systems.toy_an4 import make_corpus


@pytest.fixture(scope="module")
def toy_corpus(tmp_path_factory) -> Path:
    return make_corpus(tmp_path_factory.mktemp("an4") / "corpus")


# Sets


def test_find_sets_holds_out_whole_speakers(toy_corpus):
    sets = corpus.find_sets(toy_corpus)
    assert {name: {u.speaker for u in utterances} for name, utterances in sets.items()} == {
        "train": {"fabc", "mdef"},
        "dev": {"fclc"},
        "test": {"mxyz"},
    }
    assert [len(sets[name]) for name in ("train", "dev", "test")] == [16, 8, 8]


def test_find_sets_leaves_sentence_marks_out_and_finds_the_audio(toy_corpus):
    for utterances in corpus.find_sets(toy_corpus).values():
        for utterance in utterances:
            assert set(utterance.words) <= set(WORDS)
            assert utterance.audio.is_file()


def test_find_sets_names_everything_that_is_missing(tmp_path):
    make_corpus(tmp_path / "an4", per_speaker=1)
    (tmp_path / "an4/etc/an4_test.fileids").unlink()
    (tmp_path / "an4/align/an4.dict").unlink()
    with pytest.raises(FormatError, match=r"no etc/an4_test.fileids, align/an4.dict; expected AN4 as CMU publishes"):
        corpus.find_sets(tmp_path / "an4")


def test_find_sets_of_a_corpus_without_alignments_needs_its_own_dictionary(tmp_path):
    make_corpus(tmp_path / "an4", per_speaker=1, published=True)
    assert {u.audio.suffix for us in corpus.find_sets(tmp_path / "an4").values() for u in us} == {".sph"}
    (tmp_path / "an4/etc/an4.dic").unlink()
    with pytest.raises(FormatError, match=r"no etc/an4.dic; expected .*; for another corpus run argonaut recipe own"):
        corpus.find_sets(tmp_path / "an4")


def test_find_sets_file_without_transcript_names_line(tmp_path):
    root = make_corpus(tmp_path / "an4", per_speaker=1)
    with (root / "etc/an4_test.fileids").open("a") as file:
        file.write("test/mxyz/an9-mxyz-b\n")
    with pytest.raises(FormatError, match=r"an4_test.fileids:2: an9-mxyz-b is not in .*an4_test.transcription"):
        corpus.find_sets(root)


@pytest.mark.parametrize("data", [[], ["--data", "nowhere"]])
def test_recipe_without_the_corpus_is_one_line_and_status_2(tmp_path, monkeypatch, capsys, data):
    monkeypatch.chdir(tmp_path)
    assert main(["recipe", "an4", *data, "--out", "exp"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "expected" in lines[0]
    assert list(tmp_path.iterdir()) == []


# Labels and configurations


def given(data: Path) -> corpus.Alignment:
    return corpus.Alignment.of(data, data / "no flat start")


def test_write_states_keeps_states_alone_under_plain_names(toy_corpus, tmp_path):
    sets = corpus.find_sets(toy_corpus)
    prepare.write_states(given(toy_corpus), sets["train"], sets["dev"], tmp_path, 1.0)
    written = read_mlf(tmp_path / "states.mlf")
    alignment = read_mlf(toy_corpus / corpus.ALIGNMENT)
    assert set(written) == {u.name for u in (*sets["train"], *sets["dev"])}
    for name, labels in written.items():
        assert labels == [Label(l.start, l.end, l.name) for l in alignment[f"An4/71/71/{name}"]]
    # A warped copy, whose name has a directory before it, finds the same entry.
    assert written.lookup("warp92/an0-fabc-b.fbank") == written["an0-fabc-b"]


def test_write_states_counts_transitions_in_the_training_set_alone(toy_corpus, tmp_path):
    sets = corpus.find_sets(toy_corpus)
    prepare.write_states(given(toy_corpus), sets["train"], sets["dev"], tmp_path, 1.0)
    runs = frames = 0
    for utterance in sets["train"]:
        for label in read_mlf(toy_corpus / corpus.ALIGNMENT)[f"An4/71/71/{utterance.name}"]:
            if label.name == "a_s2":
                runs, frames = runs + 1, frames + (label.end - label.start) // 100_000
    stay, go = read_transitions(tmp_path / "transitions")["a_s2"]
    assert math.exp(go) == pytest.approx((runs + 1) / (frames + 2), rel=1e-4)
    assert math.exp(stay) == pytest.approx(1 - (runs + 1) / (frames + 2), rel=1e-4)


def test_write_states_without_an_utterance_names_it(toy_corpus, tmp_path):
    sets = corpus.find_sets(toy_corpus)
    stranger = corpus.Utterance("an7-mnew-b", "mnew", Path("a.flac"), ("AB",))
    with pytest.raises(FormatError, match=r"no an7-mnew-b \(1 are missing\)"):
        prepare.write_states(given(toy_corpus), [*sets["train"], stranger], sets["dev"], tmp_path, 1.0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("power", "stay"),
    [(1.0, 0.9), (0.0, 0.5), (0.5, 3 / 4)],  # sqrt(0.9) : sqrt(0.1) = 3 : 1
)
def test_flatten_by_hand(power, stay):
    result = prepare.flatten((math.log(0.9), math.log(0.1)), power)
    assert [math.exp(value) for value in result] == pytest.approx([stay, 1 - stay])


def test_warped_configurations_differ_in_the_warp_alone(tmp_path):
    configs = {}
    for warp in prepare.WARPS:
        path = tmp_path / prepare.warp_name(warp)
        prepare.write_warped_config(CONFIG / "fbank40_zd.hcopy", warp, path)
        configs[warp] = FeatureConfig.from_hcopy(read_hcopy_config(path))
    assert {warp: config.warp for warp, config in configs.items()} == {warp: warp for warp in prepare.WARPS}
    assert len({repr(config).replace(f"warp={warp}", "") for warp, config in configs.items()}) == 1
    assert len({prepare.warp_name(warp) for warp in prepare.WARPS}) == len(prepare.WARPS)


def test_training_configuration_fits_the_features_and_its_own_schedule():
    config = load_config([f"configFile={CONFIG / 'an4.cntk'}", "ExpDir=exp"]).block("AN4_Train")
    dim = FeatureConfig.from_hcopy(read_hcopy_config(CONFIG / "fbank40_zd.hcopy")).dim
    sizes = [int(size) for size in config.block("SimpleNetworkBuilder").array("layerSizes")]
    assert sizes[0] == NETWORKS["dnn"].window * dim
    for reader in ("reader", "cvReader"):
        assert config.block(reader).block("features").int("dim") == sizes[0]
        assert config.block(reader).block("labels").int("labelDim") == sizes[-1]
    rates = config.block("SGD").array("learningRatesPerMB")
    assert len(rates) == config.block("SGD").int("maxEpochs")
    assert sorted(map(float, rates), reverse=True) == list(map(float, rates))


@pytest.mark.parametrize("network", ["blstm", "dnn-blstm"])
def test_recurrent_configuration_takes_frames_of_whole_utterances(network):
    acoustic = NETWORKS[network]
    config = load_config([f"configFile={CONFIG / acoustic.config}", "ExpDir=exp", f"ScriptDir={CONFIG}"])
    block = config.block(config.array("command")[-1])
    assert block.block("NDLNetworkBuilder").path("networkDescription").is_file()
    assert block.path("modelPath") == Path(f"exp/{acoustic.folder}/model/an4.{network}")
    dim = FeatureConfig.from_hcopy(read_hcopy_config(CONFIG / "fbank40_zd.hcopy")).dim
    for name in ("reader", "cvReader"):
        reader = block.block(name)
        assert not reader.bool("frameMode")
        assert not reader.bool("truncated", "false")
        assert reader.block("features").int("dim") == acoustic.window * dim
    rates = block.block("SGD").floats("learningRatesPerSample")
    assert len(rates) == block.block("SGD").int("maxEpochs")
    assert sorted(rates, reverse=True) == list(rates)


# All of it

TOY_TRAINING = (
    "AN4_Train=[SimpleNetworkBuilder=[layerSizes=1680:24:$NumStates$];"
    "SGD=[maxEpochs=4;epochSize=0;minibatchSize=64;learningRatesPerMB=0.5]]"
)


def run_toy(data: Path, out: Path, *arguments: str) -> int:
    settings = ("--workers", "1", "--set", TOY_TRAINING)
    return main(["recipe", "an4", "--data", str(data), "--out", str(out), *settings, *arguments])


@pytest.mark.slow
def test_recipe_recognises_tones_and_resumes(toy_corpus, tmp_path, capsys):
    out = tmp_path / "exp"
    assert run_toy(toy_corpus, out) == 0
    lines = capsys.readouterr().out.splitlines()
    words = sum(len(u.words) for u in corpus.find_sets(toy_corpus)["test"])
    closing = [line for line in lines if line.startswith("WER") and "(test" in line]
    assert closing == [
        f"WER 0.0% (test, 8 utterances, {words} words, flat LM)",
        f"WER 0.0% (test, 8 utterances, {words} words, LM trained on the transcripts)",
    ]
    assert lines[-2:] == closing
    for name in ("flat", "trained"):
        assert len(read_mlf(out / "decode" / name / "test.mlf")) == 8
        assert len([read_slf(path) for path in (out / "decode" / name / "lattices").glob("test*.lat")]) == 8
        chosen = json.loads((out / "tune" / f"{name}.json").read_text())["chosen"]
        assert chosen["beam"] > 0
        defaults = load_defaults(out / "graph" / name / "graph.dg")
        assert (defaults.options, defaults.tuned_with["am"]) == (chosen, "an4.dnn")
    assert (out / "model/an4.dnn.png").stat().st_size > 0
    recognizer, hypotheses = Recognizer.load(out / "an4.argo"), read_mlf(out / "decode/trained/test.mlf")
    assert [one.test_set for one in recognizer.calibration.measured] == ["test"]
    for utterance in corpus.find_sets(toy_corpus)["test"]:
        labels = hypotheses.lookup(f"{utterance.name}.lab")
        assert recognizer.transcribe(utterance.audio).text == " ".join(label.name for label in labels)

    model = (out / "model/an4.dnn").read_bytes()
    assert run_toy(toy_corpus, out, "--from", "decode") == 0
    assert run_toy(toy_corpus, out) == 0
    assert capsys.readouterr().out.count("done before") == 9
    assert (out / "model/an4.dnn").read_bytes() == model
    assert run_toy(toy_corpus, out, "--set", "AN4_Train=[SGD=[maxEpochs=3]]", "--to", "train") == 0
    shown = capsys.readouterr().out
    assert shown.count("done before") == 4  # the features, too
    assert "train: other settings than before: AN4_Train.SGD.maxEpochs was 4, is 3; the models and chec" in shown


@pytest.mark.slow
def test_corpus_as_published_is_aligned_by_a_flat_start(toy_run, toy_corpus, tmp_path, capsys):
    data, out = make_corpus(tmp_path / "corpus", published=True), tmp_path / "exp"
    assert run_toy(data, out, "--to", "score") == 0
    shown = capsys.readouterr().out.splitlines()
    assert "files: 24 done, 0 skipped, 0 failed" in shown  # cepstra of the training and development set
    assert shown[-1].startswith("WER ")
    states = read_state_list(out / "labels/states.list")
    assert states == [f"{phone}_s{state}" for phone in ("a", "b", "c", "sil") for state in (2, 3, 4)]
    assert load_model(out / "model/an4.dnn")["W1"].value.shape[0] == len(states)
    unigrams = read_arpa(out / "lm/flat.arpa")  # the corpus has no flat LM
    probabilities = dict(zip(unigrams.vocabulary, unigrams.orders[0].logprob))
    assert len({probabilities[word] for word in WORDS}) == 1
    known, aligned = read_mlf(toy_corpus / corpus.ALIGNMENT), read_mlf(out / "flat/states.mlf")
    assert compare_boundaries(known, aligned, 1, {"sil"}).percent_within(30) > 80
    assert run_toy(data, out, "--to", "score") == 0
    assert capsys.readouterr().out.count("done before") == 8


TOY_BLSTM = (
    "CellDim=12",
    "AN4_Train=[SGD=[maxEpochs=2;epochSize=0;learningRatesPerSample=1e-4;dropoutRate=0]]",
)  # fmt: skip


@pytest.mark.slow
def test_recurrent_network_shares_graphs_with_the_other(toy_run, toy_corpus, tmp_path, capsys):
    out = tmp_path / "exp"
    settings = [word for setting in TOY_BLSTM for word in ("--set", setting)]
    command = ["recipe", "an4", "--data", str(toy_corpus), "--out", str(out), "--workers", "1", *settings]
    assert main([*command, "--network", "blstm"]) == 0
    closing = capsys.readouterr().out.splitlines()[-1]
    assert closing == "WER 0.0% (test, 8 utterances, 20 words, LM trained on the transcripts)"
    for name in ("model/an4.blstm", "tune/trained.json", "decode/trained/test.mlf", "reports/score.flat"):
        assert (out / "blstm" / name).is_file()
    assert not (out / "model").exists()
    recognizer, hypotheses = Recognizer.load(out / "an4-blstm.argo"), read_mlf(out / "blstm/decode/trained/test.mlf")
    assert str(*recognizer.bundle.description.errors) == "WER 0.0% (test, 8 utterances, 20 words)"
    for utterance in corpus.find_sets(toy_corpus)["test"]:
        labels = hypotheses.lookup(f"{utterance.name}.lab")
        assert recognizer.transcribe(utterance.audio).text == " ".join(label.name for label in labels)
    assert main([*command, "--to", "graph"]) == 0
    assert capsys.readouterr().out.count("done before") == 4
    assert main([*command, "--network", "blstm", "--from", "score-blstm", "--to", "score-blstm"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == closing
    assert any(line.startswith("bundle:") for line in shown)


@pytest.mark.slow
def test_recurrent_layer_on_the_dnn_begins_with_it(toy_run, toy_corpus, tmp_path, capsys):
    out = tmp_path / "exp"
    top = "AN4_TrainTop=[SGD=[maxEpochs=1;epochSize=0;learningRatesPerSample=1e-5]]"
    settings = [word for setting in ("CellDim=12", "LastHidden=DropH1", top) for word in ("--set", setting)]
    assert run_toy(toy_corpus, out, "--network", "dnn-blstm", *settings) == 0
    shown = capsys.readouterr().out
    assert shown.splitlines()[-1] == "WER 0.0% (test, 8 utterances, 20 words, LM trained on the transcripts)"
    dnn, both = load_model(out / "model/an4.dnn"), load_model(out / "dnn-blstm/model/an4.dnn-blstm")
    for name in ("W0", "B1"):
        np.testing.assert_array_equal(dnn[name].value, both[name].value)
    assert np.any(both["WTop"].value)


# The corpus itself


@pytest.mark.corpus
def test_an4_has_the_published_sizes(an4_dir):
    sets = corpus.find_sets(an4_dir)
    assert {name: len(utterances) for name, utterances in sets.items()} == {"train": 883, "dev": 65, "test": 130}
    assert sum(len(u.words) for u in sets["test"]) == 773
    assert not {u.speaker for u in sets["test"]} & {u.speaker for u in (*sets["train"], *sets["dev"])}


@pytest.mark.slow
@pytest.mark.corpus
def test_an4_alignments_are_as_long_as_their_audio(an4_dir, tmp_path):
    import soundfile

    sets = corpus.find_sets(an4_dir)
    prepare.write_states(given(an4_dir), sets["train"], sets["dev"], tmp_path, 0.3)
    states = read_mlf(tmp_path / "states.mlf")
    for utterance in sets["dev"]:
        num_samples = soundfile.info(utterance.audio).frames
        assert states[utterance.name][-1].end == ((num_samples - 400) // 160 + 1) * 100_000
