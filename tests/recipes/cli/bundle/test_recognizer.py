"""The class Recognizer: the words of `argon`, however it gets its parts and its audio."""

import copy
import doctest
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest

from acoustic.scoring.scorer import AcousticScorer
from decoder import Recognizer, load_graph
from decoder.lm.mapped_model import open_language_model
from decoder.recognizer import ForcedAligner, assembly
from decoder.recognizer import recognizer as module
from decoder.search.options import SearchOptions
from features import FeatureConfig, RunningMean
from readers.audio.audio_file import read_audio, write_wav
from readers.config.hcopy import read_hcopy_config
from readers.errors import ArgonautError, ConfigError, FormatError, ShapeError
from readers.htk.dictionary import Pronunciation
from readers.htk.mlf import read_mlf
from readers.htk.units import TICKS_PER_SECOND
from readers.tables.hmm_tables import read_cntkmap
from recipes.cli.argon import command as argon
from tests.recipes.cli.bundle.conftest import OPTIONS
from tests.recipes.systems.small_system import RATE


@pytest.fixture
def recognizer(packed) -> Recognizer:
    return Recognizer.load(packed / "digits.argo")


def by_argon(root, out):
    """Utterance -> labels, decoded by `argon` from the audio files."""
    arguments = {
        "graph": root / "graph/graph.dg", "lm": root / "lm.arpa", "am": root / "model/net",
        "cntkmap": root / "graph/cntkmap", "infiles": root / "audio.list", "acweight": OPTIONS["acweight"],
        "beam": OPTIONS["beam"], "outmlf": out,
    }  # fmt: skip
    flags = [text for name, value in arguments.items() for text in (f"-{name}", str(value))]
    assert argon.main([*flags, "--features", str(root / "hcopy.config"), "--threads", "1"]) == 0
    return read_mlf(out)


def test_words_and_times_are_those_of_argon(user, packed, recognizer):
    expected = by_argon(user.root, user.root / "out.mlf")
    paths = (user.root / "audio.list").read_text().split()
    found = dict(recognizer.transcribe_many(paths, threads=2))
    assert list(found) == paths
    assert len(paths) > 3
    for path, transcript in found.items():
        labels = expected.lookup(path.replace(".wav", ".lab"))
        times = [(round(w.start * TICKS_PER_SECOND), round(w.end * TICKS_PER_SECOND), w.text) for w in transcript.words]
        assert times == [(label.start, label.end, label.name) for label in labels]
        assert transcript.text == " ".join(label.name for label in labels)
        assert transcript.reason == ""
        assert all(0 < word.confidence <= 1 for word in transcript.words)


def test_bundles_and_argon_are_assembled_by_the_same_functions(user, packed, monkeypatch):
    calls = set()

    def noted(name):
        function = getattr(assembly, name)

        def call(*arguments, **keywords):
            calls.add(name)
            return function(*arguments, **keywords)

        return call

    functions = {"open_decoder", "open_scorer", "open_front_end"}
    for name in functions:
        monkeypatch.setattr(assembly, name, noted(name))
    Recognizer.load(packed / "digits.argo")
    assert calls == functions
    calls.clear()
    by_argon(user.root, user.root / "out.mlf")
    assert calls == functions


def test_the_examples_in_the_documentation_run(packed, monkeypatch):
    monkeypatch.chdir(packed)
    samples, _ = read_audio("speech.wav")
    names = {"Recognizer": Recognizer, "ForcedAligner": ForcedAligner, "samples": samples.astype(np.int16)}
    runner = doctest.DocTestRunner()
    for described in (module.Recognizer, module.Variants, ForcedAligner):
        for test in doctest.DocTestFinder().find(described, described.__name__, globs=names):
            runner.run(test)
    assert runner.tries > 10
    assert runner.failures == 0


def test_samples_give_the_words_of_the_file(packed, recognizer):
    samples, rate = read_audio(packed / "speech.wav")
    expected = recognizer.transcribe(packed / "speech.wav")
    assert recognizer.transcribe(samples.astype(np.int16), rate) == expected
    assert recognizer.transcribe(samples.astype(np.float32) / 32768, rate) == expected
    assert recognizer.transcribe(samples.astype(np.float64) / 32768, rate).words == expected.words
    assert expected.seconds == len(samples) / rate


def test_parts_give_the_words_of_the_bundle(small_system, packed, recognizer):
    made = Recognizer(
        AcousticScorer(small_system / "model/net"),
        load_graph(small_system / "graph/graph.dg"),
        FeatureConfig.from_hcopy(read_hcopy_config(small_system / "hcopy.config")),
        open_language_model(small_system / "lm.arpa"),
        read_cntkmap(small_system / "graph/cntkmap"),
        SearchOptions(**OPTIONS, lattice_beam=6.0),
    )
    assert made.transcribe(packed / "speech.wav").words == recognizer.transcribe(packed / "speech.wav").words
    assert made.bundle is None
    assert not made.can_align()
    with pytest.raises(ConfigError, match="recognizer: no dictionary and state_map"):
        made.align(packed / "speech.wav", "AB C")


def test_lattice_and_alternatives(packed, recognizer):
    transcript = recognizer.with_options(acweight=0.01, lattice_beam=200.0).transcribe(packed / "speech.wav")
    assert transcript.lattice.num_links >= len(transcript.words)
    found = transcript.alternatives(5)
    assert found[0] == transcript.text
    assert 1 < len(found) == len(set(found)) <= 5
    without = recognizer.with_options(lattice_beam=None).transcribe(packed / "speech.wav")
    assert without.lattice is None
    assert without.alternatives(5) == ["AB C"]
    assert [word.confidence for word in without.words] == [None, None]
    hypotheses = transcript.hypotheses(5)
    assert [one.text for one in hypotheses] == found
    assert hypotheses[0].words == transcript.words
    assert all(0 <= word.confidence <= 1 for one in hypotheses for word in one.words)
    assert without.hypotheses(5) == [without]


def test_options_change_a_copy(recognizer):
    other = recognizer.with_options(beam=3.0)
    assert (other.decoder.options.beam, recognizer.decoder.options.beam) == (3.0, OPTIONS["beam"])
    with pytest.raises(ConfigError, match="search option beams: unknown"):
        recognizer.with_options(beams=3.0)


def test_a_stream_gives_the_words_of_the_file_however_it_is_cut(packed, recognizer):
    samples, rate = read_audio(packed / "speech.wav")
    for size in (1000, len(samples)):
        stream = recognizer.stream(rate, endpoint=None)
        events = []
        for begin in range(0, len(samples), size):
            events += stream.push(samples[begin : begin + size].astype(np.int16))
        events += stream.finish()
        assert [event.text for event in events if event.is_final] == ["AB C"]
        assert all(0 < word.confidence <= 1 for event in events for word in event.words)
    with pytest.raises(ConfigError, match="stream: sample rate 8000 Hz; expected at least 16000 Hz"):
        recognizer.stream(8000)


def test_words_of_a_stream_have_the_confidences_of_the_file(packed, recognizer):
    samples, rate = read_audio(packed / "speech.wav")
    samples = samples.astype(np.int16)
    doubtful = recognizer.with_options(acweight=0.05, lattice_beam=200.0)
    expected = doubtful.transcribe(samples, rate)
    stream = doubtful.stream(rate, endpoint=None, mean=RunningMean(None))
    last = (stream.push(samples) + stream.finish())[-1]
    assert [word.text for word in last.words] == [word.text for word in expected.words] == ["AB", "C"]
    for one, other in zip(last.words, expected.words, strict=True):
        assert one.confidence == pytest.approx(other.confidence, abs=1e-3)
        assert 0 < one.confidence < 0.99
    assert [[word.text for word in one] for one in last.hypotheses(5)] == [
        [word.text for word in one.words] for one in expected.hypotheses(5)
    ]
    quick = recognizer.with_options(lattice_beam=None).stream(rate)
    assert {word.confidence for event in quick.push(samples) + quick.finish() for word in event.words} == {None}


def test_alignment_has_words_and_phones_in_order(packed, recognizer):
    aligned = recognizer.align(packed / "speech.wav", ["AB", "C"])
    heard = recognizer.transcribe(packed / "speech.wav")
    assert [word.text for word in aligned.words] == ["AB", "C"]
    assert [phone.text for phone in aligned.phones] == ["sil", "a", "b", "c", "sil"]
    for one, other in zip(aligned.words, heard.words, strict=True):
        assert abs(one.start - other.start) <= 0.03
        assert abs(one.end - other.end) <= 0.03
    assert aligned.words[0].start == aligned.phones[1].start
    unknown = recognizer.align(packed / "speech.wav", "NOBODY")
    assert [word.text for word in unknown.words] == ["NOBODY"]
    assert unknown.notes == ("no pronunciation: NOBODY; any phones",)
    with pytest.raises(ConfigError, match="no words to align"):
        recognizer.align(packed / "speech.wav", " ")


def test_words_that_were_not_spoken_have_low_confidences(packed, recognizer):
    right = recognizer.align(packed / "speech.wav", "AB C")
    assert min(word.confidence for word in right.words) > 0.9
    assert [phone.confidence is None for phone in right.phones] == [True, False, False, False, True]
    a, b = (phone.confidence for phone in right.phones[1:3])
    assert right.words[0].confidence == pytest.approx((a * b) ** 0.5)
    wrong = recognizer.align(packed / "speech.wav", "BA C")
    assert wrong.words[0].confidence < 0.01
    assert wrong.words[1].confidence > 0.9


def test_forced_aligner_is_the_aligner_of_the_recogniser(packed, recognizer, small_system):
    expected = recognizer.align(packed / "speech.wav", "AB C")
    assert ForcedAligner.load(packed / "digits.argo").align(packed / "speech.wav", ["AB", "C"]) == expected
    entries = [Pronunciation("AB", "ab", None, ("a", "b")), Pronunciation("C", None, None, ("c",))]
    other = ForcedAligner.load(packed / "digits.argo", entries, beam=200.0).align(packed / "speech.wav", "AB C")
    assert [word.text for word in other.words] == ["ab", "C"]
    assert other.phones == expected.phones
    samples, rate = read_audio(packed / "speech.wav")
    aligner = ForcedAligner.load(packed / "digits.argo", str(small_system / "dict"))
    found = aligner.align_samples(samples, rate, ["AB", "C"], "part")
    assert found == expected
    with pytest.raises(ConfigError, match=r"part: sample rate 8000 Hz; expected at least 16000 Hz"):
        aligner.align_samples(samples, 8000, ["AB"], "part")
    with pytest.raises(ConfigError, match=r"^no words to align"):
        aligner.align(packed / "speech.wav", [])


def test_audio_that_does_not_fit_is_refused(packed, recognizer, tmp_path):
    write_wav(tmp_path / "narrow.wav", np.zeros(8000), 8000)
    with pytest.raises(ConfigError, match=r"narrow\.wav: sample rate 8000 Hz; expected at least 16000 Hz"):
        recognizer.transcribe(tmp_path / "narrow.wav")
    with pytest.raises(ConfigError, match="samples: no sample rate"):
        recognizer.transcribe(np.zeros(16000, np.int16))
    with pytest.raises(ConfigError, match="a sample rate beside a file"):
        recognizer.transcribe(packed / "speech.wav", RATE)
    for samples in (np.zeros((2, 100, 1)), np.zeros(100, np.int32), np.full(100, 3000.0)):
        with pytest.raises(ShapeError, match="samples: "):
            recognizer.transcribe(samples, RATE)
    with pytest.raises(ShapeError, match="up to 3000; expected -1 to 1, or int16; those of read_audio divided by 3276"):
        recognizer.transcribe(np.full(100, 3000.0), RATE)
    (tmp_path / "text.wav").write_text("no audio")
    with pytest.raises(FormatError):
        recognizer.transcribe(tmp_path / "text.wav")
    results = list(recognizer.transcribe_many([tmp_path / "text.wav", packed / "speech.wav"]))
    assert isinstance(results[0][1], ArgonautError)
    assert results[1][1].text == "AB C"


def test_a_model_that_does_not_know_its_rate_takes_that_of_the_bundle(packed, recognizer):
    from decoder.recognizer import FrontEnd
    from readers.config.feature_record import FeatureRecord

    scorer, config = recognizer.front_end.scorer, recognizer.front_end.config
    scorer.record = FeatureRecord()
    FrontEnd(config, scorer).check_rate(8000, "a.wav")
    with pytest.raises(ConfigError, match=r"a\.wav: sample rate 8000 Hz; expected 16000 Hz"):
        FrontEnd(config, scorer, rate=16000).check_rate(8000, "a.wav")


def test_a_recogniser_is_pickled_by_its_path_with_what_was_changed(packed, recognizer, monkeypatch):
    monkeypatch.chdir(packed)
    loaded = Recognizer.load("digits.argo")
    changed = loaded.with_options(beam=9.0).with_audio(channel="mix").with_hotwords({"BA C": 2.0})
    changed = changed.with_grammar(["AB C", "C"], threshold=-50.0)
    content = pickle.dumps(changed)
    assert len(content) < 1000
    monkeypatch.chdir("/")
    again = pickle.loads(content)
    assert (again.name, again.decoder.options.beam, again._audio.channel) == (f"{packed}/digits.argo", 9.0, "mix")
    expected = changed.transcribe(packed / "speech.wav")
    found = again.transcribe(packed / "speech.wav")
    assert (found, found.words) == (expected, expected.words)
    assert pickle.loads(pickle.dumps(again)).transcribe(packed / "speech.wav") == expected
    assert copy.copy(changed).decoder is changed.decoder
    aligner = ForcedAligner.load(packed / "digits.argo", beam=100.0)
    assert pickle.loads(pickle.dumps(aligner)).align(packed / "speech.wav", "AB C") == aligner.align(
        packed / "speech.wav", "AB C"
    )


def test_what_was_made_from_parts_is_not_pickled(recognizer):
    front_end, decoder = recognizer.front_end, recognizer.decoder
    made = Recognizer(front_end.scorer, decoder.graph, front_end.config)
    with pytest.raises(ConfigError, match=r"recognizer: made from parts; expected one of Recognizer\.load"):
        pickle.dumps(made)
    with pytest.raises(ConfigError, match=r"aligner: made from parts; expected one of ForcedAligner\.load"):
        pickle.dumps(ForcedAligner(front_end, recognizer._transcript_graphs()))


FORKED = """import multiprocessing, sys
from decoder import Recognizer
recognizer = Recognizer.load(sys.argv[1])
recognizer.transcribe(sys.argv[2])
def words(path):
    return recognizer.transcribe(path).text
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(words, [sys.argv[2]] * 4))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_processes_that_are_forked_from_one_with_a_bundle_recognise_as_it_does(packed):
    command = [sys.executable, "-c", FORKED, packed / "digits.argo", packed / "speech.wav"]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert found.stdout.strip() == str(["AB C"] * 4)


FIRST_CALL = """from readers.common import environment
environment.LONG_COMPILATION = environment.compilation.observer.next = 0.01
from decoder.scoring.matching import matching_words
print(matching_words("A B C".split(), "A C".split()))
"""


@pytest.mark.slow
def test_the_first_call_in_python_says_that_it_compiles(tmp_path):
    command = [sys.executable, "-c", FIRST_CALL]
    runs = [
        subprocess.run(
            command, capture_output=True, text=True, check=True, env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
        )
        for _ in range(2)
    ]
    assert [one.stdout for one in runs] == ["[ 0 -1  1]\n"] * 2
    first = runs[0].stderr.splitlines()[0]
    assert first == f"compiling kernels, each once (all: argonaut warmup); they are kept in {tmp_path}"
    assert runs[1].stderr == ""


def test_one_name_is_no_list_of_paths(recognizer):
    with pytest.raises(ConfigError, match=r"speech\.wav: one name; expected a list of paths"):
        recognizer.transcribe_many("speech.wav")
