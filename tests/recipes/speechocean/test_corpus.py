"""speechocean762 in the form of its repository and as the train half alone: tables, dictionary, sets."""

from pathlib import Path

import pytest

from readers.errors import FormatError
from readers.htk.dictionary import read_dictionary
from recipes.speechocean.corpus import LISTS, Speechocean, write_joined_dictionary


def write_half(folder: Path, speaker: str = "0001", age: str = "9", audio: str = "WAVE/a.WAV") -> Path:
    """Write the tables of one utterance."""
    folder.mkdir(parents=True)
    name = f"{speaker}00011"
    rows = {"text": "A B", "wav.scp": audio, "utt2spk": speaker}
    for table, value in rows.items():
        (folder / table).write_text(f"{name}\t{value}\n")
    (folder / "spk2age").write_text(f"{speaker}\t{age}\n")
    return folder


def test_the_halves_of_the_repository_become_one_directory(tmp_path):
    root = tmp_path / "corpus"
    write_half(root / "train", "0002", "40", "WAVE/two.WAV")
    write_half(root / "test", "0001", "17", "WAVE/one.WAV")
    corpus = Speechocean.find(root)
    corpus.write_kaldi(tmp_path / "kaldi")
    assert (tmp_path / "kaldi" / "wav.scp").read_text().splitlines() == [
        f"000100011 {root}/WAVE/one.WAV",
        f"000200011 {root}/WAVE/two.WAV",
    ]
    assert (tmp_path / "kaldi" / "utt2spk").read_text() == "000100011 0001\n000200011 0002\n"
    assert corpus.test_speakers() == ["0001"]
    assert corpus.children() == {"0001"}
    assert corpus.lexicon == root / "lexicon.txt"
    (root / "resource").mkdir()
    (root / "resource" / "lexicon.txt").touch()
    assert corpus.lexicon == root / "resource" / "lexicon.txt"


def test_the_train_half_alone_has_a_fixed_list_of_test_speakers(tmp_path):
    corpus = Speechocean.find(write_half(tmp_path / "half", audio="wav/a.opus"))
    corpus.write_kaldi(tmp_path / "kaldi")
    assert (tmp_path / "kaldi" / "wav.scp").read_text() == f"000100011 {tmp_path}/half/wav/a.opus\n"
    test, dev = corpus.test_speakers(), (LISTS / "dev_speakers.txt").read_text().split()
    assert (len(test), len(dev)) == (25, 13)
    assert not set(test) & set(dev)


def test_dictionaries_are_joined_without_stress_and_in_upper_case(tmp_path):
    (tmp_path / "lexicon.txt").write_text("READ R IY1 D\nREAD R EH1 D\nA AH0\n")
    (tmp_path / "cmudict").write_text("a AH0\na(2) EY1\nbee B IY1\nread R IY0 D\n")
    write_joined_dictionary([tmp_path / "lexicon.txt", tmp_path / "cmudict"], tmp_path / "joined")
    assert [(entry.word, " ".join(entry.phones)) for entry in read_dictionary(tmp_path / "joined")] == [
        *(("A", "AH"), ("A", "EY"), ("BEE", "B IY"), ("READ", "R IY D"), ("READ", "R EH D")),
    ]


@pytest.mark.parametrize(
    ("table", "content", "fault"),
    [
        ("text", "a b\na c\n", r"text:2: 'a' is repeated; expected lines `key value`, each key once"),
        ("text", "a\n", r"text:1: 'a' has no value; expected lines"),
        ("text", "\n", r"text:1: '' has no value; expected lines"),
        ("spk2age", "0002 9\n", r"spk2age: no age of 0001; expected one for each speaker"),
        ("spk2age", "0001 young\n", r"spk2age: 'young' of 0001; expected a number of years"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path, table, content, fault):
    corpus = Speechocean.find(write_half(tmp_path / "half"))
    (corpus.train / table).write_text(content)
    with pytest.raises(FormatError, match=fault):
        corpus.children() if table == "spk2age" else corpus.write_kaldi(tmp_path / "kaldi")


def test_an_incomplete_test_half_is_not_replaced_by_the_list_of_speakers(tmp_path):
    write_half(tmp_path / "train")
    write_half(tmp_path / "test", "0002")
    (tmp_path / "test" / "wav.scp").unlink()
    with pytest.raises(FileNotFoundError, match=r"test/wav\.scp"):
        Speechocean.find(tmp_path).write_kaldi(tmp_path / "kaldi")


def test_another_directory_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"neither train/wav\.scp nor wav\.scp; expected the corpus"):
        Speechocean.find(tmp_path)
    with pytest.raises(FileNotFoundError):
        Speechocean.find(tmp_path / "none")
