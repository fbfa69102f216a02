"""Division of a corpus into sets, and what is taken from it: case, dictionary, sample rate, sizes."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from readers.audio.audio_file import write_wav
from readers.corpora.corpus import Corpus, Utterance
from readers.corpora.importing import guess_kind, is_imported
from readers.dictionaries.case import best_case
from readers.errors import ConfigError, FormatError
from readers.htk.dictionary import Pronunciation
from recipes.own import data
from recipes.own.data import corpus_files
from recipes.own.sets import divide, read_names
from recipes.own.sizes import Sizes


def utterances(**counts: int) -> list[Utterance]:
    """Utterances of some speakers."""
    return [
        Utterance(f"{speaker}-{i}", speaker, ("a",), Path(f"{speaker}-{i}.wav"))
        for speaker, count in counts.items()
        for i in range(count)
    ]


def test_a_tenth_of_the_speakers_is_held_out_for_each_set():
    found = utterances(**{f"s{i}": 10 for i in range(30)})
    sets = divide(found)
    assert [len({u.speaker for u in sets.dev}), len({u.speaker for u in sets.test})] == [3, 3]
    speakers = [{u.speaker for u in part} for _, part in sets.items()]
    assert sum(map(len, speakers)) == len(set.union(*speakers)) == 30
    assert sets.by == "24 speakers for training, 3 for development, 3 for the test"
    assert divide(found[::-1]).test == tuple(u for u in found[::-1] if u in sets.test)


def test_new_speakers_do_not_move_the_others_between_sets_of_all():
    before = {u.speaker for u in divide(utterances(**{f"s{i}": 10 for i in range(30)})).test}
    after = {u.speaker for u in divide(utterances(**{f"s{i}": 10 for i in range(31)})).test}
    assert len(before & after) >= 2


def test_speakers_of_much_speech_stay_in_the_training_set():
    sets = divide(utterances(anna=500, ben=20, carl=20, dora=20))
    assert "anna" in {u.speaker for u in sets.train} - {u.speaker for u in (*sets.dev, *sets.test)}
    assert {u.speaker for u in sets.dev}.isdisjoint(u.speaker for u in sets.test)


@pytest.mark.parametrize(
    ("counts", "expected"), [({"anna": 50}, "only one speaker"), ({"a": 30, "b": 20}, "only 2 sp")]
)
def test_few_speakers_are_divided_by_utterances_and_the_user_is_told(counts, expected):
    sets = divide(utterances(**counts))
    assert (len(sets.train), len(sets.dev), len(sets.test)) == (40, 5, 5)
    assert sets.by.startswith(expected)
    assert "speakers known from the training" in sets.by


def test_given_speakers(tmp_path):
    (tmp_path / "dev").write_text("# two\ns1 s2\n")
    sets = divide(utterances(**{f"s{i}": 10 for i in range(9)}), read_names(str(tmp_path / "dev")), read_names("s3,s4"))
    assert ({u.speaker for u in sets.dev}, {u.speaker for u in sets.test}) == ({"s1", "s2"}, {"s3", "s4"})
    only_test = divide(utterances(**{f"s{i}": 10 for i in range(9)}), None, ["s3"])
    assert {u.speaker for u in only_test.test} == {"s3"}
    assert len({u.speaker for u in only_test.dev} - {"s3"}) == 1
    assert read_names(None) is None
    names = [f"{number:04}" for number in range(125)]  # longer than a file name can be
    assert read_names(",".join(names)) == names


@pytest.mark.parametrize(
    ("dev", "test", "fault"),
    [
        (["x"], None, "command line: speaker 'x' is not in the corpus; expected some of s0, s1, s2"),
        (["s1"], ["s1"], "command line: speaker 's1' in both sets; expected each in one"),
    ],
)
def test_wrong_speakers(dev, test, fault):
    with pytest.raises(ConfigError, match=fault):
        divide(utterances(s0=5, s1=5, s2=5), dev, test)


def test_too_few_utterances():
    with pytest.raises(FormatError, match="2 utterances: none for the train set; expected more of them"):
        divide(utterances(s0=2))


def test_the_kind_of_a_corpus_is_guessed_from_its_files(tmp_path):
    assert guess_kind(tmp_path) == "folder"
    (tmp_path / "wav.scp").write_text("")
    assert guess_kind(tmp_path) == "kaldi"
    (tmp_path / "x_recordings.jsonl.gz").write_text("")
    assert guess_kind(tmp_path) == "lhotse"
    assert guess_kind(Path("cv/train.tsv")) == "table"
    assert not is_imported(tmp_path)


def test_the_case_with_the_fewest_unknown_words():
    assert best_case(Counter({"Hello": 1, "world": 3}), {"HELLO", "WORLD"}) == "upper"
    assert best_case(Counter({"Hello": 1, "world": 3}), {"hello", "world"}) == "lower"
    assert best_case(Counter({"HELLO": 1, "Zyxqu": 1}), {"HELLO", "WORLD"}) == "upper"  # a new word
    assert best_case(Counter({"Zyxqu": 1}), {"hello", "world"}) == "lower"
    assert best_case(Counter({"Berlin": 1, "Stadt": 3, "hat": 1}), {"Berlin", "Stadt", "hat"}) == "keep"


def test_dictionary_without_silences_and_of_a_large_one_the_words_of_the_texts(monkeypatch):
    entries = [Pronunciation(word, None, None, phones) for word, phones in (
        ("<s>", ("sil",)), ("a", ("a:",)), ("b", ("b", "e")), ("c", ("ts", "e")),
    )]  # fmt: skip
    assert [e.word for e in data.usable_entries(entries, Path("d"), {"b"})] == ["a", "b", "c"]
    monkeypatch.setattr(data, "SMALL_DICTIONARY", 2)
    assert [e.word for e in data.usable_entries(entries, Path("d"), {"b"})] == ["b"]
    assert [e.word for e in data.usable_entries(entries, Path("d"), None)] == ["a", "b", "c"]
    with pytest.raises(ConfigError, match=r"d: phone 'a-b'; expected names without - and \+.*the option map_phones"):
        data.usable_entries([Pronunciation("x", None, None, ("a-b",))], Path("d"), None)


@pytest.mark.parametrize(("rates", "expected"), [([16000, 44100], 16000), ([8000, 44100], 8000), ([11025], 8000)])
def test_the_sample_rate_is_the_highest_that_nearly_all_audio_has(tmp_path, rates, expected):
    found = []
    for i, rate in enumerate(rates):
        write_wav(tmp_path / f"{i}.wav", np.ones(rate), rate)
        found.append(Utterance(f"{i}", "s", ("a",), tmp_path / f"{i}.wav"))
    assert data.sample_rate(Corpus(tuple(found)), found) == expected


def test_audio_of_too_low_rates(tmp_path):
    write_wav(tmp_path / "a.wav", np.ones(6000), 6000)
    found = [Utterance("a", "s", ("a",), tmp_path / "a.wav")]
    with pytest.raises(FormatError, match=r"audio of 6000 Hz \(1 utterance\); expected at least 8000 Hz"):
        data.sample_rate(Corpus(tuple(found)), found)


def test_recordings_with_several_channels_need_a_choice(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.ones((100, 2)), 16000)
    write_wav(tmp_path / "b.wav", np.ones(100), 16000)
    corpus = Corpus(tuple(Utterance(name, "s", ("a",), tmp_path / f"{name}.wav") for name in "ab"))
    assert [one.channel for one in data.choose_channel(corpus, 1, tmp_path).utterances] == [1, None]
    for channel in (None, 2):
        with pytest.raises(FormatError, match=r"a\.wav has 2 channels; expected one; choose it by --channel 0 to 1"):
            data.choose_channel(corpus, channel, tmp_path)


def test_sizes_grow_with_the_data():
    an4 = Sizes(237_600)
    assert an4.arguments(first=False) == [
        "Hidden=768*4", "Epochs=22", "Dropout=0.2*15:0.1*4:0*3", f"EpochFrames={464 * 512}"
    ]  # fmt: skip
    assert an4.arguments(first=True)[1:3] == ["Epochs=8", "Dropout=0.2*5:0.1*2:0*1"]
    assert (an4.threshold, an4.min_frames) == (400, 100)
    wsj = Sizes(15 * 360_000)
    assert (wsj.hidden(first=False), wsj.threshold, wsj.min_frames, wsj.epochs) == ("2048*5", 750, 190, 8)
    assert wsj.hidden(first=True) == "768*5"
    assert Sizes(10).arguments(first=True)[0] == "Hidden=256*4"


def test_the_files_of_a_corpus_are_those_that_links_lead_to(tmp_path, monkeypatch):
    source = tmp_path / "data"
    for name in ("else/anna/a.txt", "else/exp/b.txt", "data/c.txt", "data/.git/index", "data/.hidden"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (source / "anna").symlink_to(tmp_path / "else" / "anna")
    (source / "results").symlink_to(tmp_path / "else" / "exp")
    (tmp_path / "else" / "anna" / "up").symlink_to(source)
    (source / "gone.txt").symlink_to(tmp_path / "gone.txt")
    assert list(corpus_files(source, source / "results")) == ["c.txt", "anna/a.txt"]
    assert list(corpus_files(source, tmp_path)) == ["c.txt", "anna/a.txt", "results/b.txt"]
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "c.txt")
    assert list(corpus_files(source, tmp_path)) == ["anna/a.txt", "results/b.txt"]
    assert corpus_files(source / "c.txt", tmp_path) == {"c.txt": source / "c.txt"}


def test_lists_without_names_and_sets_of_all_speakers_are_faults(tmp_path):
    empty = tmp_path / "speakers"
    empty.write_text("# nobody\n\n")
    for text, where in ((f"{empty}", f"{empty}"), ("", "command line"), (",", "command line")):
        with pytest.raises(ConfigError, match=f"^{where}: no name of a speaker; expected some"):
            read_names(text)
    with pytest.raises(ConfigError, match="all speakers are held out; expected some for the training"):
        divide(utterances(anna=5, ben=5, cleo=5), ["anna"], ["ben", "cleo"])
