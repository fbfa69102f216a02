"""`argon -alignmlf` and `argonaut score --boundaries` on the small system, whose states are tones of known times."""

import re
from dataclasses import replace

import numpy as np
import pytest
import soundfile

from decoder.alignment.aligner import Aligner
from readers.audio.audio_file import read_audio
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.results.timed_words import read_ctm
from tests.recipes.systems.small_system import FIRST_OF_TEST, GRAPH, HCOPY

ALIGN = (
    *("-graph", "graph/graph.dg", "-am", "model/net", "-cntkmap", "graph/cntkmap", "-dnn_window_size", "3"),
    *("--threads", "1", "-infiles", "test.scp", "-outmlf", "aligned.mlf"),
)


def align(user, *arguments):
    return user.run("argon", *ALIGN, *arguments)


def test_words_phones_and_states(user):
    truth = {key: [label.name for label in labels] for key, labels in read_mlf("words.mlf").items()}
    outcome = align(user, "-alignmlf", "words.mlf", "--dict", "dict")
    assert outcome.status == 0, outcome.err
    assert outcome.out[-1].startswith("utterances: 6 done, 0 skipped, 0 failed; frames ")
    words = read_mlf("aligned.mlf")
    assert {key.split("/")[-1]: [label.name for label in labels] for key, labels in words.items()} == truth
    assert align(user, "-alignmlf", "words.mlf", "--dict", "dict", "-detailed-alignment").status == 0
    states = read_mlf("aligned.mlf")
    for key, labels in states.items():
        beside = [(label.start, label.aux[1][0]) for label in labels if len(label.aux) == 2]
        assert beside == [(label.start, label.name) for label in words[key]]
        assert labels[0].name == "sil_s2"
        assert labels[-1].name == "sil_s3"
        assert [label.start for label in labels[1:]] == [label.end for label in labels[:-1]]
    assert align(user, "-alignmlf", "words.mlf", "--dict", "dict", "--level", "phone").status == 0
    phones = read_mlf("aligned.mlf")
    spelt = {key: "".join(label.name for label in labels if label.name != "sil") for key, labels in phones.items()}
    assert spelt == {key: "".join(label.name.lower() for label in labels) for key, labels in words.items()}


CMUDICT = ";;; stress and capitals\nAB  A1 B0\nBA  B0 A2\nCAB  C0 A1 B0\nC  C2\nC(1)  B1 B1 B1\n"


def test_words_of_a_dictionary_of_another_form_and_phone_set(user):
    assert align(user, "-alignmlf", "words.mlf", "--dict", "dict").status == 0
    expected = read_mlf("aligned.mlf")
    user.write("cmudict", CMUDICT)
    user.write("map", "A a\nB b\nC c\n")
    options = ("--strip-stress", "--map-phones", "map", "--silence", "sil")
    outcome = align(user, "-alignmlf", "words.mlf", "--dict", "cmudict", *options)
    assert outcome.status == 0, outcome.err
    assert dict(read_mlf("aligned.mlf").items()) == dict(expected.items())
    unchanged = align(user, "-alignmlf", "words.mlf", "--dict", "cmudict", "--silence", "sil")
    assert "phones not in the HMM set: B0, A2" in unchanged.err[0]


def test_one_channel_of_stereo_audio(user):
    plain = ("-alignmlf", "words.mlf", "--dict", "dict", "--features", "hcopy.config", "-infiles", "audio.list")
    assert align(user, *plain).status == 0
    expected = read_mlf("aligned.mlf")
    names = (user.root / "audio.list").read_text().split()
    for name in names:
        samples, rate = read_audio(name)
        noise = np.random.default_rng(1).integers(-8000, 8000, len(samples))
        soundfile.write(name, np.stack([noise, samples], axis=1).astype(np.int16), rate)
    assert align(user, *plain).status == 2
    user.write("hcopy.config", HCOPY + "STEREOMODE = RIGHT\n")
    assert align(user, *plain).status == 0
    assert dict(read_mlf("aligned.mlf").items()) == dict(expected.items())


def test_words_with_times_whatever_the_level(user):
    assert align(user, "-alignmlf", "words.mlf", "--dict", "dict").status == 0
    expected = [
        [(label.name, label.start, label.end) for label in labels] for labels in read_mlf("aligned.mlf").values()
    ]
    assert align(user, "-alignmlf", "words.mlf", "--dict", "dict", "--level", "state", "--words", "w.ctm").status == 0
    found = read_ctm("w.ctm").values()
    assert [[(w.text, round(w.start * 1e7), round(w.end * 1e7)) for w in words] for words in found] == expected


FORMS = {
    "trn": lambda names, texts: [f"<s> {text} </s> ({name})" for name, text in zip(names, texts)],
    "Kaldi's text": lambda names, texts: [f"{name} {text}" for name, text in reversed(list(zip(names, texts)))],
    "plain text": lambda _, texts: texts,
}


@pytest.mark.parametrize("form", FORMS)
def test_transcripts_as_text(user, form):
    words = read_mlf("words.mlf")
    names = [key.split("/")[-1] for key in words]
    texts = [" ".join(label.name for label in labels) for labels in words.values()]
    assert align(user, "-alignmlf", "words.mlf", "--dict", "dict").status == 0
    expected = (user.root / "aligned.mlf").read_bytes()
    (user.root / "aligned.mlf").unlink()
    user.write("words.txt", "".join(f"{line}\n" for line in FORMS[form](names, texts)))
    outcome = align(user, "-alignmlf", "words.txt", "--dict", "dict")
    assert outcome.status == 0, outcome.err
    assert (user.root / "aligned.mlf").read_bytes() == expected


def test_a_textgrid_has_tiers_of_words_and_phones_and_the_length_of_the_audio(user):
    run = ("-alignmlf", "words.mlf", "--dict", "dict", "--words", "grids.TextGrid")
    outcome = align(user, *run, "-infiles", "audio.list", "--features", "hcopy.config")
    assert outcome.status == 0, outcome.err
    assert "words: grids/utt24.TextGrid and 5 more" in outcome.err
    words = read_mlf("words.mlf")
    for key, labels in words.items():
        name = key.split("/")[-1]
        text = (user.root / f"grids/{name}.TextGrid").read_text()
        samples, rate = read_audio(user.root / f"audio/{name}.wav")
        assert set(re.findall(r"^ *xmax = (.*)", text.partition("intervals")[0], re.M)) == {
            f"{len(samples) / rate:.3f}"
        }
        tiers = re.split(r"    item \[\d\]:\n", text)[1:]
        assert [re.search(r'name = "(.*)"', tier)[1] for tier in tiers] == ["words", "phones"]
        spelt = [[word for word in re.findall(r'text = "(.*)"', tier) if word not in ("", "sil")] for tier in tiers]
        assert spelt[0] == [label.name for label in labels]
        assert spelt[1] == list("".join(spelt[0]).lower())


def test_training_alignment_is_found_again(user):
    """The phones that the audio was made of, aligned as phones, lie where they were put."""
    spoken = {}
    for key, labels in read_mlf("train.mlf").items():
        phones = []
        for first, second in zip(labels[::2], labels[1::2]):
            phones.append(Label(first.start, second.end, first.name[:-3]))
        spoken[f"*/{key.split('/')[-1]}.lab"] = phones
    write_mlf("phones.mlf", spoken.items())
    outcome = align(user, "-alignmlf", "phones.mlf", "-infiles", "train.scp", "--level", "phone")
    assert outcome.status == 0, outcome.err
    outcome = user.run("score", "phones.mlf", "aligned.mlf", "--boundaries", "-z", "sil")
    assert outcome.status == 0
    assert outcome.out[-2] == "utterances: 24 done, 0 skipped, 0 failed"
    within = outcome.out[-1].split()
    assert within[:2] == ["boundaries", "within"]
    assert float(within[7].rstrip("%,")) > 95, outcome.out  # 20 ms
    outcome = user.run("score", "train.mlf", "aligned.mlf", "--boundaries", "--level", "2")
    assert "no boundaries at level 2; expected labels to compare" in outcome.fault


def test_silence_is_walked_as_in_the_graph(user):
    """The graph's directory tells; --sil-topology says otherwise; one without the table is walked left to right."""
    run = (*ALIGN, "-graph", "other/graph.dg", "-cntkmap", "other/cntkmap", "-alignmlf", "words.mlf", "--dict", "dict")
    run += ("--level", "state")
    assert (user.root / "graph/silence").read_text() == "sil left-to-right\n"
    assert user.run("graph", *GRAPH, "--sil-topology", "any-order", "--out", "other").status == 0
    assert (user.root / "other/silence").read_text() == "sil any-order\n"
    # With its two tones exchanged silence fits better when its states can be visited the other way round.
    mapped = user.root.joinpath("other/cntkmap").read_text()
    user.write("other/cntkmap", mapped.replace("[sil_s2] 6", "[sil_s2] 7").replace("[sil_s3] 7", "[sil_s3] 6"))
    assert user.run("argon", *run).status == 0
    recorded = read_mlf("aligned.mlf")
    assert user.run("argon", *run, "--sil-topology", "any-order").status == 0
    told = read_mlf("aligned.mlf")
    assert user.run("argon", *run, "--sil-topology", "left-to-right").status == 0
    other = read_mlf("aligned.mlf")
    (user.root / "other/silence").unlink()
    assert user.run("argon", *run).status == 0
    without = read_mlf("aligned.mlf")
    assert dict(recorded) == dict(told) != dict(other) == dict(without)


def test_a_table_of_silence_that_is_none(user):
    for text, message in (("sil", "expected one line of the form"), ("sil up", "topology 'up'; expected left-to-")):
        user.write("graph/silence", text)
        fault = align(user, "-alignmlf", "words.mlf", "--dict", "dict").fault
        assert fault.startswith("graph/silence: ")
        assert message in fault


def test_utterances_that_cannot_be_aligned_are_named(user):
    entries = dict(read_mlf("words.mlf"))
    names = list(entries)
    entries[names[0]] = [Label(None, None, "AB"), Label(None, None, "NO")]
    entries[names[1]] = [Label(None, None, "CAB")] * 500
    del entries[names[2]]
    write_mlf("some.mlf", [(f"*/{name.split('/')[-1]}.lab", labels) for name, labels in entries.items()])
    outcome = align(user, "-alignmlf", "some.mlf", "--dict", "dict")
    assert outcome.status == 1
    report = (user.root / "aligned.mlf.report").read_text().splitlines()
    assert report[0] == "# utterances: 3 done, 0 skipped, 3 failed"
    assert "transcript: words not in the dictionary: NO; expected words of the dictionary" in report[1]
    assert "expected at least 3000 for a transcript of 500 labels" in report[2]
    assert "some.mlf: no transcript; expected an entry */" in report[3]
    assert "\tsome.mlf:2: transcript: words not in the dictionary: NO" in report[1]
    assert f"\t{names[1]}.fb: alignment: " in report[2].replace("feat/", "")


def test_alignments_with_a_wider_beam_are_counted(user, monkeypatch):
    number, found = [], Aligner.align

    def widened_once(self, labels, scores):
        number.append(self.widenings)
        alignment = found(self, labels, scores)
        return replace(alignment, beam=2 * self.beam) if len(number) == 1 else alignment

    monkeypatch.setattr(Aligner, "align", widened_once)
    outcome = align(user, "-alignmlf", "words.mlf", "--dict", "dict", "-beam", "200", "--widenings", "5")
    assert outcome.status == 0
    assert number == [5] * 6
    assert outcome.out[-1].startswith("utterances: 6 done, 0 skipped, 0 failed; 1 widened; frames ")
    report = (user.root / "aligned.mlf.report").read_text().splitlines()
    assert report[1:] == [f"feat/{FIRST_OF_TEST}\twidened\ta beam of 400 instead of 200"]
    align(user, "-alignmlf", "words.mlf", "--dict", "dict")
    assert number[-1] == 3


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_word_of_a_text_is_named_with_its_line(user, form):
    words = {key.split("/")[-1]: [label.name for label in labels] for key, labels in read_mlf("words.mlf").items()}
    texts = [" ".join(labels) for labels in words.values()]
    texts[1] += " NO"
    lines = FORMS[form](list(words), texts)
    user.write("words.txt", "".join(f"{line}\n" for line in lines))
    assert align(user, "-alignmlf", "words.txt", "--dict", "dict").status == 1
    number = next(i for i, line in enumerate(lines, 1) if "NO" in line)
    assert f"\twords.txt:{number}: transcript: words not in" in (user.root / "aligned.mlf.report").read_text()


def test_a_bad_line_of_a_trn_is_named(user):
    words = {key.split("/")[-1]: [label.name for label in labels] for key, labels in read_mlf("words.mlf").items()}
    lines = [f"{' '.join(labels)} ({name})" for name, labels in words.items()]
    lines[3] = lines[3].removesuffix(")")
    user.write("words.trn", "".join(f"{line}\n" for line in lines))
    fault = align(user, "-alignmlf", "words.trn", "--dict", "dict").fault
    assert fault.startswith("words.trn:4: ")
    assert "expected words and the utterance in parentheses" in fault
    for name in list(words)[1:]:  # most lines are wrong, but one ends with the name of an utterance
        words[name] = [*words[name], "x"]
    lines = [lines[0], *(" ".join(labels) for labels in list(words.values())[1:])]
    user.write("words.trn", "".join(f"{line}\n" for line in lines))
    assert align(user, "-alignmlf", "words.trn", "--dict", "dict").fault.startswith("words.trn:2: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-lm", "lm.arpa"), "-lm is given with -alignmlf; expected it only when decoding"),
        (("-lattice-prefix", "x"), "-lattice-prefix is given with -alignmlf"),
        (("-detailed-alignment", "--level", "word"), "--level is word with -detailed-alignment; expected state"),
        (("-graph", "elsewhere/graph.dg"), "elsewhere/state_map: missing; expected the tables that argonaut graph"),
        (("--silence", "quiet"), "silence: no model 'quiet'"),
        (("-acweight", "0"), "alignment: acweight 0.0; expected a number above 0"),
        (("-beam", "-2"), "-beam is -2; expected at least 0"),
        (("-dnn_window_size", "2"), "window of 2 frames"),
        (("-alignmlf", "none.mlf"), "none.mlf: No such file"),
        (
            ("-alignmlf", "states.list"),
            "states.list: 8 lines of text without names of utterances; expected",
        ),
        (("-alignmlf", "audio/utt00.wav"), "audio/utt00.wav: WAV audio; expected a text file"),
        (("-outmlf", ""), "-outmlf is missing; expected an output file"),
    ],
)
def test_refused(user, arguments, message):
    outcome = align(user, "-alignmlf", "words.mlf", "--dict", "dict", *arguments)
    assert message in outcome.fault
