"""Recognizer.with_grammar: sentences of a grammar instead of those of the language model."""

import json

import numpy as np
import pytest

from decoder import Recognizer
from readers.audio.audio_file import read_audio, write_wav
from readers.errors import ConfigError, FormatError, GraphError
from readers.htk.mlf import read_mlf
from recipes.cli.argon import command as argon
from recipes.cli.main import main
from tests.recipes.cli.bundle.conftest import silence
from tests.recipes.systems.small_system import RATE, speak


@pytest.fixture(scope="module")
def recognizer(packed) -> Recognizer:
    return Recognizer.load(packed / "digits.argo")


@pytest.fixture
def recording(tmp_path):
    """Writes a recording of words; returns its path."""

    def write(*words: str, seed: int = 5):
        samples, _ = speak(list(words), np.random.default_rng(seed))
        write_wav(tmp_path / "words.wav", samples, RATE)
        return tmp_path / "words.wav"

    return write


def test_a_list_of_phrases_gives_its_phrases_in_any_order(recognizer, recording):
    phrases = recognizer.with_grammar(["AB C", "BA"])
    transcript = phrases.transcribe(recording("BA", "AB", "C"))
    assert transcript.text == "BA AB C"
    assert transcript.accepted is True
    assert transcript.grammar_score > -0.2
    assert all(0 < word.confidence <= 1 for word in transcript.words)
    assert recognizer.transcribe(recording("BA", "AB", "C")).accepted is None
    assert recognizer.grammar is None


SPELLING = "#JSGF V1.0; grammar g; public <s> = (<first> [C {third}]) {all} [BA] {last=1}; <first> = AB {first};"


def test_tags_of_a_grammar_become_slots(recognizer, recording):
    transcript = recognizer.with_grammar(SPELLING, "jsgf").transcribe(recording("AB", "C"))
    first, third = transcript.words
    least = min(first.confidence, third.confidence)
    assert transcript.slots == (
        ("all", "AB C", first.start, third.end, least),
        ("first", "AB", first.start, first.end, first.confidence),
        ("third", "C", third.start, third.end, third.confidence),
    )
    objects = transcript.as_dict()["slots"]
    assert [(slot["name"], slot["value"]) for slot in objects] == [("all", "AB C"), ("first", "AB"), ("third", "C")]
    assert recognizer.transcribe(recording("AB")).slots == ()


def test_a_stream_with_a_grammar_has_slots(recognizer, recording):
    stream = recognizer.with_grammar(SPELLING, "jsgf").stream(RATE)
    samples, _ = read_audio(recording("AB", "BA"))
    samples = samples.astype(np.int16)
    (event,) = [event for event in (*stream.push(samples), *stream.finish()) if event.is_final]
    assert [(slot.name, slot.value) for slot in event.slots] == [("first", "AB"), ("all", "AB"), ("last", "1")]


def test_streams_judge_each_utterance_as_files_are_judged(recognizer, recording):
    listener = recognizer.with_grammar(["AB C"])
    for words in (["AB", "C"], ["CAB"]):
        path = recording(*words)
        stream = listener.stream(RATE, endpoint=None)
        samples = read_audio(path)[0].astype(np.int16)
        (event,) = [event for event in (*stream.push(samples), *stream.finish()) if event.is_final]
        whole = listener.transcribe(path)
        assert event.accepted is whole.accepted is (words == ["AB", "C"])
        if whole.accepted:  # a file may have several sentences, an utterance of a stream has one
            assert event.grammar_score == pytest.approx(whole.grammar_score, abs=1e-3)
    stream = listener.stream(RATE)  # the utterance after a pause is judged on its own, with the end of the pause
    pause = np.round(silence(2 * RATE) * 32768).astype(np.int16)
    events = stream.push(np.concatenate([samples, pause, read_audio(recording("AB", "C"))[0].astype(np.int16)]))
    finals = [event for event in (*events, *stream.finish()) if event.is_final]
    assert [event.accepted for event in finals] == [False, True]
    plain = recognizer.stream(RATE, endpoint=None)
    assert (*plain.push(samples), *plain.finish())[-1].accepted is None


def test_other_words_are_rejected(recognizer, recording):
    transcript = recognizer.with_grammar(["AB C"]).transcribe(recording("CAB"))
    assert transcript.text != "CAB"
    assert transcript.accepted is False
    assert transcript.grammar_score < -1


@pytest.mark.parametrize("grammar", ["AB", "<NULL>"])
def test_speech_that_is_taken_for_silence_is_rejected(recognizer, recording, grammar):
    found = recognizer.with_grammar(f"#JSGF V1.0; grammar g; public <s> = {grammar};", "jsgf")
    audio, _ = read_audio(recording("AB", "C"))
    far = np.concatenate([audio, audio[: RATE // 5], audio])
    assert found.transcribe(far.astype(np.int16), RATE).accepted is False


def test_silence_is_an_empty_sentence(recognizer, recording):
    found = recognizer.with_grammar("#JSGF V1.0; grammar g; public <s> = <NULL>;", "jsgf")
    silence, _ = speak([], np.random.default_rng(3))
    transcript = found.transcribe(silence.astype(np.int16), RATE)
    assert (transcript.text, transcript.grammar_score, transcript.accepted) == ("", 0.0, True)


def test_unk_takes_what_is_not_in_the_grammar(recognizer, recording):
    found = recognizer.with_grammar(["AB", "[unk]"])
    transcript = found.transcribe(recording("CAB"))
    assert transcript.text == "[unk]"
    assert transcript.accepted is False
    transcript = found.transcribe(recording("AB"))
    assert transcript.text == "AB"
    assert transcript.accepted is True
    assert found.with_options(beam=25.0).transcribe(recording("AB")).accepted is True


def test_sentences_of_equal_cost_have_confidences(recognizer, recording):
    grammar = '#JSGF V1.0; grammar g; public <s> = (AB | C | "[unk]")+;'  # [unk] takes any words at the same cost
    found = recognizer.with_grammar(grammar, "jsgf", unknown_cost=0.0, phone_cost=0.0)
    for seed in range(5):
        audio = recording("AB", "C", "AB", seed=seed)
        transcript = found.transcribe(audio)
        assert all(0 < word.confidence <= 1 for word in transcript.words)
        assert transcript.hypotheses(1)[0].text == transcript.alternatives(1)[0] == transcript.text
        stream = found.stream(RATE, endpoint=None)
        stream.push(read_audio(audio)[0].astype(np.int16))
        assert all(0 < word.confidence <= 1 for word in stream.finish()[-1].words)


def test_a_higher_cost_gives_unk_less_often(recognizer, recording):
    found = recognizer.with_grammar(["AB", "[unk]"], unknown_cost=1e4)
    assert "[unk]" not in found.transcribe(recording("CAB")).text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("words.jsgf", "#JSGF V1.0; grammar g; public <s> = <w> (BA | <w>); <w> = AB | C;"),
        ("words.net", "$w = AB | C; ( !ENTER $w (BA | $w) !EXIT )"),
        ("words.slf", "VERSION=1.0\nN=4 L=5\nI=0\nI=1\nI=2\nI=3\n" + "".join(
            f"J={j} S={s} E={e} W={w}\n"
            for j, (s, e, w) in enumerate([(0, 1, "AB"), (0, 1, "C"), (1, 2, "BA"), (1, 2, "C"), (2, 3, "!NULL")])
        )),
        ("words.json", '["ab c"]'),
    ],
)  # fmt: skip
def test_every_kind_of_file(recognizer, recording, tmp_path, name, text):
    (tmp_path / name).write_text(text)
    transcript = recognizer.with_grammar(tmp_path / name).transcribe(recording("AB", "C"))
    assert (transcript.text, transcript.accepted) == ("AB C", True)


def test_streams_use_the_grammar(recognizer):
    samples, _ = speak(["AB", "C"], np.random.default_rng(1))
    stream = recognizer.with_grammar("#JSGF V1.0; grammar g; public <s> = AB C;", "jsgf").stream(RATE)
    samples = samples.astype(np.int16)
    events = stream.push(samples[:4000]) + stream.push(samples[4000:]) + stream.finish()
    assert [event.text for event in events if event.is_final] == ["AB C"]


def test_words_that_are_not_in_the_dictionary(recognizer, recording):
    with pytest.raises(GraphError, match=r"phrase list: not in the dictionary: three, two; expected words of the dict"):
        recognizer.with_grammar(["AB", "three two"])
    found = recognizer.with_grammar(["AB", "three two", "two C"], drop_missing=True)
    assert found.grammar.missing == ["three", "two"]
    assert found.transcribe(recording("AB")).text == "AB"
    with pytest.raises(GraphError, match="phrase list: no sentence"):
        recognizer.with_grammar(["three"], drop_missing=True)


def test_mistakes_are_explained(recognizer, tmp_path, packed):
    with pytest.raises(ConfigError, match="kind of grammar 'abnf'; expected jsgf, hparse, phrases; or a file"):
        recognizer.with_grammar("x", "abnf")
    with pytest.raises(ConfigError, match="grammar option cost: unknown; expected one of weight_scale, unknown_cost"):
        recognizer.with_grammar(["AB"], cost=3)
    with pytest.raises(GraphError, match="grammar: unknown_cost -1; expected 0 to 1e6"):
        recognizer.with_grammar(["AB"], unknown_cost=-1)
    with pytest.raises(GraphError, match="grammar: threshold nan; expected a number"):
        recognizer.with_grammar(["AB"], threshold=float("nan"))
    (tmp_path / "bad.jsgf").write_text("#JSGF V1.0;\ngrammar x;\npublic <a> = b | ;")
    with pytest.raises(FormatError, match=r"bad.jsgf:3: ';'; expected '\(', '\[', <rule> or a word"):
        recognizer.with_grammar(tmp_path / "bad.jsgf")
    (tmp_path / "text").write_text("\nAB or C")
    with pytest.raises(FormatError, match=r"text:2: AB or C; expected a grammar, which begins with #JSGF, \[ "):
        recognizer.with_grammar(tmp_path / "text")
    (tmp_path / "text").write_text("")
    with pytest.raises(FormatError, match="text:1: the end; expected a grammar"):
        recognizer.with_grammar(tmp_path / "text")
    (tmp_path / "text").write_text('["AB",\n "C"')
    with pytest.raises(FormatError, match="text:2: Expecting ',' delimiter; expected a JSON list of phrases"):
        recognizer.with_grammar(tmp_path / "text")
    with pytest.raises(FileNotFoundError):
        recognizer.with_grammar(tmp_path / "none.jsgf")


@pytest.fixture
def two(user, tmp_path):
    """A folder with recordings of AB C and CAB, and a grammar that has the first."""
    folder = tmp_path / "two"
    folder.mkdir()
    for name, words in (("inside", ["AB", "C"]), ("outside", ["CAB", "CAB"])):
        write_wav(folder / f"{name}.wav", speak(words, np.random.default_rng(2))[0], RATE)
    (tmp_path / "g.jsgf").write_text("#JSGF V1.0; grammar g; public <s> = AB C;")
    return folder, tmp_path / "g.jsgf"


def test_transcribe_with_a_grammar(two, packed, capsys):
    folder, grammar = two
    assert main(["transcribe", str(packed / "digits.argo"), str(folder), "--grammar", str(grammar)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{folder}/inside.wav: AB C\n{folder}/outside.wav: AB C AB C\n"  # the words that are nearest
    assert f"rejected: {folder}/outside.wav: grammar score -" in printed.err
    assert "; expected at least -0.47\nfiles: 2 done, 0 skipped, 0 failed; 1 rejected\n" in printed.err
    options = ["--grammar", str(grammar), "--format", "json"]
    assert main(["transcribe", str(packed / "digits.argo"), str(folder), *options]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["accepted"] for one in found] == [True, False]
    assert found[0]["grammar_score"] > -0.2 > -1 > found[1]["grammar_score"]


def test_streams_on_the_command_line_take_a_grammar(two, packed, capsys):
    folder, grammar = two
    options = ["--grammar", str(grammar), "--stream"]
    bundle = str(packed / "digits.argo")
    assert main(["transcribe", bundle, str(folder / "inside.wav"), *options]) == 0
    assert capsys.readouterr().out == "AB C\n"
    assert main(["transcribe", bundle, str(folder / "outside.wav"), *options]) == 0
    printed = capsys.readouterr()
    assert printed.out == ""  # a program that reads commands would obey them
    assert printed.err.startswith(f"rejected: {folder}/outside.wav 0.00-")
    assert main(["transcribe", bundle, str(folder / "outside.wav"), *options, "--threshold", "-20"]) == 0
    assert capsys.readouterr().out.startswith("AB C")
    assert main(["transcribe", bundle, str(folder / "outside.wav"), *options, "--format", "json"]) == 0
    (final,) = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if line["type"] == "final"]
    assert final["accepted"] is False
    assert final["grammar_score"] < -1


def test_a_graph_of_a_grammar_is_decoded_without_a_language_model(two, user, capsys):
    folder, grammar = two
    graph = ["graph", "--state-list", "states.list", "--alignment", "train.mlf", "--dict", "dict", "--out", "g"]
    assert main([*graph, "--grammar", str(grammar)]) == 0
    assert "minimised" in capsys.readouterr().out
    (user.root / "two.list").write_text(f"{folder}/inside.wav\n")
    decode = ["-graph", "g/graph.dg", "-am", "model/net", "-cntkmap", "g/cntkmap", "-infiles", "two.list"]
    options = ["-outmlf", "out.mlf", "-acweight", "0.5", "--features", "hcopy.config", "--threads", "1"]
    assert argon.main([*decode, *options]) == 0
    assert [[label.name for label in labels] for _, labels in read_mlf("out.mlf").items()] == [["AB", "C"]]
    capsys.readouterr()
    assert main([*graph, "--grammar", str(grammar), "--loop"]) == 2
    assert "--loop is given beside --grammar; expected one of them" in capsys.readouterr().err
    grammar.write_text('["AB x", "x"]')
    assert main([*graph, "--grammar", str(grammar)]) == 2
    assert f"error: states.list + dict + {grammar}: " in capsys.readouterr().err
    assert main([*graph[:5], *graph[7:], "--grammar", str(grammar)]) == 2
    assert "--grammar is given without --dict; expected a dictionary" in capsys.readouterr().err


def test_words_of_a_list_have_its_pronunciations_in_a_grammar(two, packed, tmp_path, capsys):
    folder, _ = two
    (tmp_path / "names").write_text("ANNA a b c\n")
    (tmp_path / "call.jsgf").write_text("#JSGF V1.0; grammar g; public <s> = anna {name};")
    command = ["transcribe", str(packed / "digits.argo"), str(folder / "inside.wav"), "--grammar"]
    assert main([*command, str(tmp_path / "call.jsgf"), "--words", str(tmp_path / "names")]) == 0
    assert capsys.readouterr().out == "ANNA\n"
