"""The synthesised corpus: sentences, plan, sound, and a tiny corpus from end to end."""

import dataclasses
import itertools
import re
import sys
import time
import wave

import numpy as np
import pytest

from readers.audio.audio_file import read_audio
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.htk.dictionary import read_dictionary
from readers.language.grammars.jsgf import jsgf_rules
from readers.tables.timit import read_segments
from recipes.timit import synthesise as synthesise_module
from recipes.timit.corpus import find_sets
from recipes.timit.prepare import phone_set
from recipes.timit.synthesis import DATA
from recipes.timit.synthesis.espeak import ESpeak, Sound, sounds_of
from recipes.timit.synthesis.phones import add_epenthetic_silence, read_phone_table, timit_phones
from recipes.timit.synthesis.sentences import make_sentence, read_grammar, words_of
from recipes.timit.synthesis.sound import noise, resample, set_level
from recipes.timit.synthesis.speakers import SIZES, Speaker, plan_corpus, read_voices
from recipes.timit.synthesise import synthesise, write_language

RATE = 22050
GRAMMAR = read_grammar(DATA / "sentences.jsgf")
TABLE = read_phone_table(DATA / "espeak-phones.txt")
VOICES = read_voices(DATA / "voices.txt")


def names(found):
    return [phone.name for phone in found]


@pytest.fixture(scope="module")
def espeak():
    pytest.importorskip("espeakng_loader")
    return ESpeak()


# Sentences


def test_make_sentence_expands_every_name_and_mends_the_article():
    rules = "<sentence> = <who> <did> a <thing> , so; <who> = Ann; <did> = ate; <thing> = apple | pear;"
    grammar, _ = jsgf_rules(f"#JSGF V1.0; grammar g; {rules}")
    sentences = {make_sentence(grammar, np.random.default_rng(seed)) for seed in range(20)}
    assert sentences == {"Ann ate an apple, so", "Ann ate a pear, so"}


@pytest.mark.parametrize("seed", range(5))
def test_sentences_of_the_corpus_are_words_and_commas(seed):
    rng = np.random.default_rng(seed)
    for _ in range(200):
        sentence = make_sentence(GRAMMAR, rng)
        assert re.fullmatch(r"[A-Za-z']+(,? [A-Za-z']+)*", sentence)
        assert len(words_of(sentence)) == len(sentence.split())
    assert words_of("Don't wash Ann, please") == ["don't", "wash", "ann", "please"]


def test_read_grammar_faults_name_the_line(tmp_path):
    for text, message in (
        ("<a> = b |\n<c>;", "grammar:2: rule <c>; expected a rule of"),
        ("<a> = ;", "grammar:1: ';';"),
    ):
        (tmp_path / "grammar").write_text(f"#JSGF V1.0; grammar g; {text}")
        with pytest.raises(FormatError, match=message):
            read_grammar(tmp_path / "grammar")


# The plan


@pytest.mark.parametrize("size", ["tiny", "demo"])
def test_plan_parts_share_neither_names_nor_voices_nor_sentences(size):
    speakers = plan_corpus(size, 3, VOICES, GRAMMAR)
    parts = {part: [s for s in speakers if s.part == part] for part in ("TRAIN", "TEST")}
    assert [len(parts[part]) for part in parts] == [SIZES[size].train, SIZES[size].test]
    assert len({s.name for s in speakers}) == len(speakers)
    for what in (lambda s: {s.voice.split("+")[1]}, lambda s: {text for _, text in s.sentences[2:]}):
        train, test = (set.union(*map(what, parts[part])) for part in parts)
        assert not train & test
    sexes = dict(VOICES)
    for s in speakers:
        assert re.fullmatch(r"[FM][A-Z]{3}0", s.name)
        assert s.name[0].lower() == sexes[s.voice.split("+")[1]]
        kinds = [re.sub(r"\d", "", name) for name, _ in s.sentences]
        assert kinds == ["SA"] * 2 + ["SX"] * 5 + ["SI"] * 3
        assert len({name for name, _ in s.sentences}) == 10


def test_plan_one_name_of_a_sentence_is_one_text():
    texts = {}
    for speaker in plan_corpus("full", 0, VOICES, GRAMMAR):
        for name, text in speaker.sentences:
            assert texts.setdefault(name, text) == text


def test_plan_depends_on_the_seed_alone_and_survives_json():
    plan = plan_corpus("tiny", 1, VOICES, GRAMMAR)
    assert plan == plan_corpus("tiny", 1, VOICES, GRAMMAR)
    assert plan != plan_corpus("tiny", 2, VOICES, GRAMMAR)
    assert [Speaker.from_json(speaker.as_json()) for speaker in plan] == plan


def test_plan_unknown_size():
    with pytest.raises(ConfigError, match="corpus size 'huge': unknown; expected one of tiny, demo, full"):
        plan_corpus("huge", 0, VOICES, GRAMMAR)


# Events


def test_sounds_of_gives_a_merged_word_its_own_sounds():
    word, phoneme = 1, 7
    events = [
        (word, 0, 1, ""),
        (phoneme, 0, 1, "I"),
        (phoneme, 100, 1, "n"),
        (phoneme, 200, 1, "D"),
        (phoneme, 300, 1, "@2"),
    ]
    events += [(word, 400, 8, ""), (phoneme, 400, 8, "'u:"), (phoneme, 500, 11, "_:"), (phoneme, 600, 11, "_")]
    assert sounds_of(events, "in the zoo", 600) == [
        Sound("I", 0, 100, 0),
        Sound("n", 100, 200, 0),
        Sound("D", 200, 300, 1),
        Sound("@2", 300, 400, 1),
        Sound("u:", 400, 500, 2),
        Sound("_:", 500, 600, 2),
    ]


def test_sounds_of_a_word_that_nobody_hears():
    with pytest.raises(ArgonautError, match="'zoo' has no sound of its own"):
        sounds_of([(1, 0, 1, ""), (7, 0, 1, "I")], "in zoo", 100)


# Sound


@pytest.mark.parametrize("ratio", [22050 / 16000, 1.0, 0.7, 1.4567])
@pytest.mark.parametrize("frequency", [300.0, 3000.0])
def test_resample_keeps_a_tone_in_time_and_height(ratio, frequency):
    source = 8000.0 * np.sin(2 * np.pi * frequency * np.arange(6000) / 16000 + 0.3)
    result = resample(source, ratio)
    assert len(result) == int(np.ceil(6000 / ratio))
    times = np.arange(len(result)) * ratio / 16000
    inner = slice(100, len(result) - 100)
    expected = 8000.0 * np.sin(2 * np.pi * frequency * times + 0.3)
    np.testing.assert_allclose(result[inner], expected[inner], atol=40)  # -46 dB


def test_resample_keeps_out_what_the_lower_rate_cannot_hold():
    source = 8000.0 * np.sin(2 * np.pi * 7000.0 * np.arange(8000) / 16000)
    assert np.abs(resample(source, 2.0)[100:-100]).max() < 20  # 4 kHz is the highest at 8 kHz


@pytest.mark.parametrize("seed", [0])
def test_noise_power_falls_as_asked(seed):
    values = noise(1 << 16, 1.0, np.random.default_rng(seed)).astype(np.float64)
    assert np.mean(values**2) == pytest.approx(1.0, rel=1e-3)
    power = np.abs(np.fft.rfft(values)) ** 2
    low, high = power[1000:2000].mean(), power[16000:32000].mean()
    assert 10 * np.log10(low / high) == pytest.approx(10 * np.log10(16), abs=0.5)


@pytest.mark.parametrize("seed", [0])
def test_finish_level_noise_and_clipping(seed):
    tone = 100 * np.sin(np.arange(20000) / 5).astype(np.float32)
    done = set_level(tone, 1500.0, 20.0, 0.0, np.random.default_rng(seed))
    clean = tone * np.float32(1500 / np.sqrt(np.mean(tone**2)))
    assert np.sqrt(np.mean(clean**2)) == pytest.approx(1500, rel=1e-3)
    assert 20 * np.log10(1500 / np.sqrt(np.mean((done - clean) ** 2))) == pytest.approx(20, abs=0.1)
    spike = np.zeros(20000, np.float32)
    spike[7] = 1.0
    assert np.abs(set_level(spike, 2000.0, 20.0, 0.0, np.random.default_rng(seed))).max() <= 32000.5


# With eSpeak


@pytest.mark.slow
def test_all_61_phones_occur(espeak):
    rng = np.random.default_rng(0)
    sentences = [
        "a rhythm, and bacon",
        "the kitten's button, a hot measure",
        *(make_sentence(GRAMMAR, rng) for _ in range(150)),
    ]
    heard = {"h#"}
    for sentence in sentences:
        samples, sounds = espeak.speak(sentence, "en-us+m3", 170, 50, 50)
        found = timit_phones(sounds, samples, espeak.sample_rate, TABLE)
        assert all(a.end == b.start and a.start < a.end for a, b in itertools.pairwise(found))
        heard |= set(names(add_epenthetic_silence(found, samples, espeak.sample_rate, rng)))
    assert heard == set(phone_set())


def test_every_voice_of_the_table_speaks(espeak):
    for variant, _ in VOICES:
        samples, sounds = espeak.speak("seven big dogs", f"en-us+{variant}", 170, 50, 50)
        assert names(timit_phones(sounds, samples, espeak.sample_rate, TABLE))[:3] == ["s", "eh", "v"]
        assert np.abs(samples.astype(np.int32)).max() > 1000


@pytest.mark.parametrize("sentence", ["Hugh waited", "but Hugh hid a huge boat", "out of the zoo"])
def test_new_york_drops_sounds_but_no_words(espeak, sentence):
    espeak.speak("some other words before", "en-us-nyc+f2", 170, 50, 50)
    _, sounds = espeak.speak(sentence, "en-us-nyc+f2", 170, 50, 50)
    assert {sound.word for sound in sounds} == set(range(len(sentence.split())))


def test_unknown_voice(espeak):
    with pytest.raises(ArgonautError, match=r"voice xx\+f1: unknown to eSpeak NG; expected language\+variant"):
        espeak.speak("hello", "xx+f1", 170, 50, 50)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    pytest.importorskip("espeakng_loader")
    out = tmp_path_factory.mktemp("corpus")
    calls = []
    report = synthesise(out, "tiny", 0, 1, lambda done, total: calls.append((done, total)))
    return out, report, calls


@pytest.mark.slow
def test_corpus_is_laid_out_as_timit(tiny):
    out, report, calls = tiny
    assert (report.num_done, report.lost) == (50, [])
    assert calls[-1] == (50, 50)
    sets = find_sets(out)
    assert {part: len(utterances) for part, utterances in sets.items()} == {"train": 24, "dev": 8, "test": 8}
    known = set(phone_set())
    for utterance in [u for utterances in sets.values() for u in utterances]:
        samples, rate = read_audio(utterance.audio)
        assert rate == 16000
        with wave.open(str(utterance.audio)) as file:  # RIFF, unlike those of the LDC disc
            assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (16000, 1, 2)
        assert 300 < np.sqrt(np.mean(samples**2)) < 3000
        segments = read_segments(utterance.phones)
        assert {segment.name for segment in segments} <= known
        assert (segments[0].start, segments[-1].end) == (0, len(samples))
        assert segments[0].name == segments[-1].name == "h#"
        assert all(a.end == b.start and a.start < a.end for a, b in itertools.pairwise(segments))
        start, end, sentence = utterance.phones.with_suffix(".TXT").read_text().rstrip("\n").split(" ", 2)
        words = read_segments(utterance.phones.with_suffix(".WRD"))
        assert [word.name for word in words] == words_of(sentence)
        starts, ends = {s.start for s in segments}, {s.end for s in segments}
        assert all(word.start in starts and word.end in ends for word in words)
        assert (int(start), int(end)) == (0, len(samples))


@pytest.mark.slow
def test_labels_fit_the_sound(tiny):
    """Silence, fricatives and vowels have the energies that their names promise, in almost every case."""
    out, _, _ = tiny
    levels = {"h#": [], "s": [], "vowel": []}
    low_share = {"s": [], "vowel": []}
    for utterance in find_sets(out)["train"]:
        samples, _ = read_audio(utterance.audio)
        for start, end, name in read_segments(utterance.phones):
            kind = "vowel" if name in ("aa", "ae", "ah", "ao", "eh") else name
            part = samples[start:end] - samples[start:end].mean()
            if kind in levels and len(part) > 400:
                levels[kind].append(10 * np.log10(np.mean(part**2)))
                if kind in low_share:
                    power = np.abs(np.fft.rfft(part)) ** 2
                    low_share[kind].append(power[: len(power) * 3 // 8].sum() / power.sum())  # below 3 kHz
    assert np.percentile(levels["h#"], 95) < np.percentile(levels["vowel"], 5)
    assert np.percentile(low_share["vowel"], 5) > 0.9
    assert np.percentile(low_share["s"], 90) < 0.5


@pytest.mark.slow
def test_corpus_is_the_same_for_any_number_of_processes(tmp_path, monkeypatch):
    pytest.importorskip("espeakng_loader")
    monkeypatch.setattr(synthesise_module, "SPEAKERS_PER_PROCESS", 2)
    short = [dataclasses.replace(s, sentences=s.sentences[:2]) for s in plan_corpus("tiny", 5, VOICES, GRAMMAR)]
    monkeypatch.setattr(synthesise_module, "plan_corpus", lambda *_: short)
    for workers in (1, 3):
        assert synthesise(tmp_path / str(workers), "tiny", 5, workers).exit_status == 0
    first, second = (sorted(path for path in (tmp_path / w).rglob("*") if path.is_file()) for w in ("1", "3"))
    assert len(first) == len(second) == 41
    for one, other in zip(first, second):
        assert one.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_every_voice_sounds_the_same_in_another_process_at_another_time(tmp_path, monkeypatch):
    """eSpeak seeds the noise of breathing voices with the time in seconds unless it is told otherwise."""
    pytest.importorskip("espeakng_loader")
    monkeypatch.setattr(synthesise_module, "SPEAKERS_PER_PROCESS", 26)
    someone = plan_corpus("tiny", 0, VOICES, GRAMMAR)[0]
    text = (("SX3", "she had your dark suit in greasy wash water"),)
    speakers = [
        dataclasses.replace(someone, name=f"S{i}", voice=accent + voice, sentences=text)
        for i, ((voice, _), accent) in enumerate(zip(VOICES, itertools.cycle(("en-us+", "en-us-nyc+"))))
    ]
    monkeypatch.setattr(synthesise_module, "plan_corpus", lambda *_: speakers)
    sound = []
    for workers in (3, 1):
        began = int(time.time())
        assert synthesise(tmp_path / str(workers), "tiny", 0, workers).num_done == len(VOICES)
        sound.append({path.parent.name: path.read_bytes() for path in (tmp_path / str(workers)).rglob("*.WAV")})
        while int(time.time()) == began:
            time.sleep(0.02)
    different = [VOICES[int(name[1:])][0] for name in sound[0] if sound[0][name] != sound[1][name]]
    assert len(sound[0]) == len(VOICES)
    assert not different


def test_synthesise_does_not_write_over_another_corpus(tmp_path):
    pytest.importorskip("espeakng_loader")
    (tmp_path / "TRAIN").mkdir()
    with pytest.raises(
        ConfigError, match=r"contains another corpus \(not a synthesised one\); expected an empty directory"
    ):
        synthesise(tmp_path, "tiny")
    assert [path.name for path in tmp_path.rglob("*")] == ["TRAIN"]


def test_synthesise_reports_a_process_that_died(tmp_path, monkeypatch):
    pytest.importorskip("espeakng_loader")
    monkeypatch.setattr(sys, "executable", "/bin/false")
    report = synthesise(tmp_path, "tiny", workers=1)
    assert (report.num_done, report.num_failed, report.exit_status) == (0, 50, 2)
    assert "process ended with status 1" in report.lost[0][2]


def test_synthesise_without_the_wheel_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "espeakng_loader", None)
    with pytest.raises(ArgonautError, match=r"espeakng_loader: not installed; .*pip install '\.\[demo\]' in the"):
        synthesise(tmp_path, "tiny")
    assert not list(tmp_path.iterdir())


def test_the_dictionary_has_every_word_of_the_sentences_in_phones_of_timit(tmp_path):
    pytest.importorskip("espeakng_loader", reason="the words are spoken by the extra `demo`")
    write_language(tmp_path, 0)
    sentences = (tmp_path / "words.txt").read_text().splitlines()
    entries = read_dictionary(tmp_path / "words.dict")
    assert len(sentences) == 10_000
    assert {entry.word for entry in entries} == {word for line in sentences for word in line.split()} | {"<s>", "</s>"}
    assert {phone for entry in entries for phone in entry.phones} <= set(phone_set())
    said = {entry.phones: entry.probability for entry in entries if entry.word == "the"}
    assert set(said) == {("dh", "ax"), ("dh", "ix")}  # before consonants, and before vowels
    assert sum(said.values()) == pytest.approx(1, abs=0.002)
    assert [entry.phones for entry in entries if entry.word == "<s>"] == [("h#",)]


def test_a_failure_of_the_dictionary_is_named(tmp_path, monkeypatch):
    pytest.importorskip("espeakng_loader", reason="the words are spoken by the extra `demo`")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['espeakng_loader'] = None")
    with pytest.raises(ArgonautError, match=r"words.dict: the synthesiser's process ended with status 1: .*; expected"):
        write_language(tmp_path / "words", 0)
    assert not list((tmp_path / "words").glob("*.dict"))
