"""`argonaut adapt` with a corpus: what is held out, the network, the words, and that the result is not worse."""

import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from decoder import Recognizer
from decoder.lm import TextOptions
from decoder.recognizer import Bundle, pack
from decoder.recognizer.bundle import MODEL
from decoder.recognizer.jobs.adaptation import AdaptOptions, SpeechOptions, adapt
from decoder.recognizer.jobs.adaptation.job import _chosen
from decoder.recognizer.jobs.adaptation.network import LABELS, _reader
from decoder.recognizer.jobs.adaptation.speech import SpokenUtterance
from decoder.scoring.error_counts import score
from readers.audio.audio_file import write_wav
from readers.errors import ConfigError
from readers.tables.tensor_file import load_tensors
from recipes.cli.main import main
from tests.recipes.cli.bundle.conftest import parts_of
from tests.recipes.systems.small_system import RATE, listing, speak

PITCH = 1.25  # of the speakers, relative to those of the training
SENTENCES = ("ab c", "cab", "[noise]", "ba ab", "c cab", "ab ba", "cab c", "ba", "c ab", "ba cab", "ab cab", "c ba")


@pytest.fixture(scope="module")
def root(small_system, tmp_path_factory) -> Path:
    """A directory with a bundle and recordings of two speakers with another pitch; not to be written to."""
    root = tmp_path_factory.mktemp("speech")
    pack(parts_of(small_system), root / "old.argo")
    rng = np.random.default_rng(5)
    for number, words in enumerate(SENTENCES):
        samples, _ = speak([word for word in words.upper().split() if word.isalpha()], rng)
        places = np.arange(0, len(samples) - 1, PITCH)
        path = root / "corpus" / f"s{number % 2}" / f"u{number:02}.wav"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_wav(path, np.interp(places, np.arange(len(samples)), samples), RATE)
        path.with_suffix(".txt").write_text(f"{words}\n")
    return root


def options_of(root: Path, out: Path, **speech) -> AdaptOptions:
    return AdaptOptions(
        bundle=root / "old.argo", corpus=root / "corpus", output=out, speech=SpeechOptions(**{"rate": 0.01} | speech)
    )


def test_the_network_alone_is_adapted_and_all_else_is_kept(root, tmp_path):
    result = adapt(options_of(root, tmp_path / "new.argo", keep_words=True, held_out=("s1",), epochs=4))
    fit = result.speech
    assert fit.chosen == "network"
    assert list(fit.errors) == ["before", "network"]
    assert fit.speaker_of == {f"u{n:02}": "s1" for n in range(1, 12, 2)}
    assert fit.report.lost == [("u02", "skipped", "no transcript")]
    assert fit.network.after < 0.8 * fit.network.before
    assert fit.errors["network"].total.num_errors <= fit.errors["before"].total.num_errors
    old, new = (Bundle.open(path, verify=True) for path in (root / "old.argo", tmp_path / "new.argo"))
    changed = {name for name, part in old.parts.items() if part.read_bytes() != new.parts[name].read_bytes()}
    assert changed == {MODEL}
    before, after = (load_tensors(bundle.parts[MODEL])[0] for bundle in (old, new))
    assert before.keys() == after.keys()
    assert {name for name in before if not np.array_equal(before[name], after[name])} == {"W0", "B0", "W1", "B1"}
    assert new.description.card.data[-1].startswith("adapted to corpus: 0.1 minutes of speech")
    recognizer = Recognizer.load(tmp_path / "new.argo")
    hypotheses = {
        path.stem: recognizer.transcribe(path).text.split() for path in sorted((root / "corpus" / "s1").glob("*.wav"))
    }
    references = {name: SENTENCES[int(name[1:])].upper().split() for name in hypotheses}
    assert score(references, hypotheses).total.num_errors == fit.errors["network"].total.num_errors


def test_the_words_are_those_of_the_transcripts_that_are_not_held_out(root, tmp_path):
    result = adapt(options_of(root, tmp_path / "new.argo", epochs=1))
    held_out = {*result.speech.speaker_of}
    assert len(held_out) == 1
    expected = [words.upper().split() for n, words in enumerate(SENTENCES) if f"u{n:02}" not in held_out and n != 2]
    assert sorted(result.text.sentences) == sorted(map(tuple, expected))
    assert list(result.speech.errors)[:2] == ["before", "words"]


def test_a_network_that_no_epoch_improves_stays_as_it_was(root, tmp_path, capsys):
    argv = ["adapt", root / "old.argo", root / "corpus", "--keep-words", "--rate", "0.9", "--epochs", "1"]
    assert main([*map(str, argv), "-o", f"{tmp_path / 'new.argo'}", "-q"]) == 1  # an utterance has no transcript
    shown = capsys.readouterr()
    assert "no epoch was better; the network stays as it was" in shown.err
    assert "word error rate of 1 utterance, held out:" in shown.out
    old, new = (Bundle.open(path) for path in (root / "old.argo", tmp_path / "new.argo"))
    assert old.parts[MODEL].read_bytes() == new.parts[MODEL].read_bytes()


def test_a_network_with_more_errors_is_not_chosen():
    errors = {name: score({"u": ["a", "b"]}, {"u": words}) for name, words in (("words", ["a"]), ("network", []))}
    assert _chosen(["before", "words", "network"], errors) == "words"
    assert _chosen(["before", "words", "network"], {**errors, "words": errors["network"]}) == "network"
    assert _chosen(["before", "words", "network"], {}) == "network"


def test_a_slower_network_gets_every_third_frame_with_its_label_and_does_not_count_the_edges():
    frames = np.arange(14, dtype=np.float32).reshape(2, 7)
    utterance = SpokenUtterance("u", "s", ("a",), 0.07, frames, frames, np.array([4, 0, 2]))
    scorer = SimpleNamespace(subsampling=3, window=3, edges=(1, 2), num_outputs=5, ivector_dim=0)
    reader = _reader(SimpleNamespace(features=["features"]), [utterance], scorer)
    (minibatch,) = reader.minibatches(epoch=0, minibatch_size=256, epoch_size=0)
    labels = np.asarray(minibatch.matrices[LABELS])
    counted = labels[:, labels.sum(axis=0) > 0]
    assert counted.argmax(axis=0).tolist() == [4, 0, 2]
    assert minibatch.num_frames == 3


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"held_out": ("s1", "x")}, "corpus: no speaker x, to be held out; expected some of s0, s1"),
        ({"held_out": ("s0", "s1")}, "corpus: no utterances for the training; expected some with transcripts"),
    ],
)
def test_a_corpus_that_does_not_fit_gives_one_line_and_no_file(root, tmp_path, change, fault):
    with pytest.raises(ConfigError, match=fault):
        adapt(options_of(root, tmp_path / "new.argo", **change))
    assert not listing(tmp_path)


def test_a_corpus_of_nothing_but_losses_gives_a_reason(root, tmp_path):
    (tmp_path / "t.jsonl").write_text('{"file": "nowhere.wav", "text": "ab c"}\n')
    options = AdaptOptions(bundle=root / "old.argo", corpus=tmp_path / "t.jsonl", output=tmp_path / "new.argo")
    for held_out in ((), ("nobody",)):
        options = replace(options, speech=SpeechOptions(held_out=held_out))
        with pytest.raises(ConfigError, match=r"training: nowhere: .*nowhere.wav: No such file or dir.*; expected"):
            adapt(options)


def test_something_to_adapt_to_is_required(root, tmp_path):
    with pytest.raises(ConfigError, match=r"corpus is missing; expected it, a text, or both"):
        AdaptOptions(bundle=root / "old.argo", output=tmp_path / "new.argo")


@pytest.mark.parametrize(
    "speech", [{"held_out": ("s1",)}, {"epochs": 3}, {"rate": 0.5}, {"tiers": ("x",)}, {"keep_words": True}]
)
def test_options_of_a_corpus_are_refused_without_one(root, tmp_path, speech):
    with pytest.raises(ConfigError, match=f"^{next(iter(speech))} is given without a corpus; expected both"):
        AdaptOptions(
            bundle=root / "old.argo",
            texts=TextOptions(text=(tmp_path / "text",)),
            speech=SpeechOptions(**speech),
            output=tmp_path / "new.argo",
        )


def test_a_held_out_utterance_that_does_not_fit_its_words_is_listed(root, tmp_path):
    corpus = tmp_path / "corpus"
    shutil.copytree(root / "corpus", corpus)
    (corpus / "s1" / "u01.txt").write_text("qqq ab\n")
    lines = []
    options = replace(options_of(root, tmp_path / "new.argo", keep_words=True, epochs=1), corpus=corpus)
    for held_out in ("s1", "s2"):
        if held_out == "s2":  # it alone is held out
            (corpus / "s2").mkdir()
            for ending in ("wav", "txt"):
                (corpus / "s1" / f"u01.{ending}").rename(corpus / "s2" / f"u01.{ending}")
        options = replace(
            options, output=tmp_path / f"{held_out}.argo", speech=replace(options.speech, held_out=(held_out,))
        )
        fit = adapt(options, log=lines.append).speech
        ((name, mark, reason),) = fit.report.marked
        assert (name, mark) == ("u01", "unaligned")
        assert reason.endswith("; its errors count all the same")
        assert "u01" in fit.speaker_of
    warned = [
        line for line in lines if "no utterance could be aligned; the epoch is chosen by the cross-entropy" in line
    ]
    assert len(warned) == 1
