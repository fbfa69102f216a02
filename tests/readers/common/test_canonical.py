"""Words that Unicode calls canonically equivalent are equal, wherever they are read."""

import gzip
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.grammars.reading import open_grammar
from decoder.recognizer.forced_aligner import ForcedAligner
from decoder.search.hotwords import open_phrases
from readers.common.names import key_of
from readers.common.text import INVISIBLE, canonical, read_lines, read_text_bytes
from readers.corpora import import_corpus, read_corpus, write_corpus
from readers.corpora.annotations import Annotations
from readers.corpora.words import WordForms
from readers.dictionaries.forms import FORMS, read_any_dictionary
from readers.errors import FormatError
from readers.htk import mlf as mlf_module
from readers.htk.dictionary import read_dictionary
from readers.htk.mlf import read_mlf
from readers.htk.scp import read_pairs, read_scp, write_pairs
from readers.htk.slf import read_slf
from readers.kaldi.ark import read_ark_scp
from readers.language import arpa as arpa_module
from readers.language.arpa import read_arpa
from readers.language.hotwords import read_hotwords
from readers.language.sentences import read_part, text_parts
from readers.language.vocabulary import read_vocabulary
from readers.language.vocabulary_record import parse_vocabularies
from readers.results.textgrid import read_textgrid
from readers.results.timed_words import read_ctm
from readers.results.trn import read_named_lines, read_trn
from tests.readers.corpora.conftest import tone

WORD = "caf\u00e9"
SPELLINGS = ("caf\u00e9", "cafe\u0301", "\ufeffcafe\u0301\u200c", "\u00adcaf\u00e9\u00ad", "\u200ecaf\u00e9\u200b")
OCTAL = r"cafe\314\201"  # as HTK writes it


def slf(word: str) -> str:
    return f"VERSION=1.0\nN=2 L=1\nI=0 t=0\nI=1 t=1\nJ=0 S=0 E=1 W={word} a=-1 l=-1\n"


def arpa(word: str) -> str:
    words = f"-1 <s> -1\n-1 </s>\n-1 {word} -1\n"
    return f"\\data\\\nngram 1=3\nngram 2=1\n\n\\1-grams:\n{words}\n\\2-grams:\n-1 {word} </s>\n\n\\end\\\n"


TEXTGRID = (
    'File type = "ooTextFile"\nObject class = "TextGrid"\n\n0\n1\n<exists>\n1\n'
    '"IntervalTier"\n"w"\n0\n1\n1\n0\n1\n"X"\n'
)


def any_dictionary(form: str):
    return "X k a\n", lambda path: read_any_dictionary(path, form)[0].word


# Name -> what contains the word X, and a function that returns it from the file.
DOORS = {
    "htk dictionary": ("X k a\n", lambda path: read_dictionary(path)[0].word),
    "htk output symbol": ("Y [X] k a\n", lambda path: read_dictionary(path)[0].output),
    "phone": ("Y X\n", lambda path: read_dictionary(path)[0].phones[0]),
    **{f"{form} dictionary": any_dictionary(form) for form in FORMS},
    "mlf": ('#!MLF!#\n"*/u.lab"\n0 10 X -1\n.\n', lambda path: read_mlf(path)["u"][0].name),
    "mlf quotes": ('#!MLF!#\n"*/u.lab"\n"X"\n.\n', lambda path: read_mlf(path)["u"][0].name),
    "mlf key": ('#!MLF!#\n"*/X.lab"\ny\n.\n', lambda path: next(iter(read_mlf(path)))),
    "ctm": ("u 1 0 1 X\n", lambda path: read_ctm(path)["u"][0].text),
    "trn": ("X (u)\n", lambda path: read_trn(path)["u"][0]),
    "named lines": ("u X\n", lambda path: read_named_lines(path)["u"][0]),
    "slf": (slf("X"), lambda path: read_slf(path).word[0]),
    "textgrid": (TEXTGRID, lambda path: read_textgrid(path)[0].intervals[0].text),
    "hotwords": ("X :2\n", lambda path: next(iter(read_hotwords(path, 1.0)))),
    "text": ("X\n", lambda path: read_part(text_parts(path)[0])[0][0]),
    "arpa": (arpa("X"), lambda path: read_arpa(path).vocabulary[2]),
    "vocabulary": ("0 1 X 0\n", lambda path: read_vocabulary(path)[0].word),
    "jsgf": ("#JSGF V1.0; grammar g; public <s> = X;", lambda path: open_grammar(path).words[0]),
    "jsgf quotes": ('#JSGF V1.0; grammar g; public <s> = ("X"|X);', lambda path: open_grammar(path).words[0]),
    "hparse": ("(X)\n", lambda path: open_grammar(path).words[0]),
    "phrases": ('["X"]', lambda path: open_grammar(path).words[0]),
}  # fmt: skip


@pytest.mark.parametrize("large", [False, True], ids=["", "large"])
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("door", DOORS)
def test_every_reader(door, spelling, large, tmp_path, monkeypatch):
    """Also the readers of large label files and language models."""
    monkeypatch.setattr(mlf_module, "LARGE", -1 if large else 1 << 30)
    monkeypatch.setattr(arpa_module, "LEAST_SIZE", 0 if large else 1 << 30)
    content, read = DOORS[door]
    (tmp_path / "f").write_text(content.replace("X", spelling), encoding="utf-8")
    assert read(tmp_path / "f") == WORD


@pytest.mark.parametrize(
    "door", ["htk dictionary", "htk output symbol", "phone", "mlf", "mlf quotes", "mlf key", "slf", "hparse"]
)
@pytest.mark.parametrize("large", [False, True], ids=["", "large"])
def test_octal_codes(door, large, tmp_path, monkeypatch):
    monkeypatch.setattr(mlf_module, "LARGE", -1 if large else 1 << 30)
    content, read = DOORS[door]
    (tmp_path / "f").write_text(content.replace("X", OCTAL))
    assert read(tmp_path / "f") == WORD


def test_words_of_a_program():
    assert open_grammar(["cafe\u0301 au\u200c lait"]).words == [WORD, "au", "lait"]
    tables = SimpleNamespace(word_symbols=({WORD: 1, "au": 2}, None))
    assert open_phrases({"cafe\u0301 au\u200c": 2.0}, 1.0, tables) == {(WORD, "au"): 2.0}
    assert open_phrases(["cafe\u0301"], 1.0, tables) == {(WORD,): 1.0}
    aligner = SimpleNamespace(name="aligner", _known_words=(), _case=lambda words: "keep", annotations=Annotations())
    assert ForcedAligner.words_of(aligner, "cafe\u0301 au\u200c") == [WORD, "au"]
    assert ForcedAligner.words_of(aligner, ("cafe\u0301", "au\u200c")) == [WORD, "au"]
    record = {"inputs": ["x"], "words": ["cafe\u0301"]}
    assert parse_vocabularies([record])["x"].words == (WORD,)


@pytest.mark.parametrize("punctuation", ["strip", "keep"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_transcripts(spelling, punctuation):
    assert WordForms(punctuation=punctuation, known=("cafe\u0301",)).split(f"un {spelling} noir") == (
        "un",
        WORD,
        "noir",
    )
    assert WordForms("upper", punctuation).split(spelling) == ("CAF\u00c9",)
    assert WordForms("upper", punctuation).split("\u0390") == ("\u03aa\u0301",)


def test_invisible_characters_inside_words_stay(tmp_path):
    """The Persian word for `I want` has a U+200C; a word of Malayalam may end with U+200D."""
    words = (
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
        "\u0d05\u0d35\u0d28\u0d4d\u200d",
        "a\u00adb",
        "a\ufeffb",
    )
    (tmp_path / "f").write_text("\u200c" + "\u200c \u200c".join(words) + "\u200c\n", encoding="utf-8")
    assert tuple(read_lines(tmp_path / "f")[0].split()) == words
    assert WordForms(punctuation="keep").split(" ".join(words)) == words
    assert WordForms(known=words).split(" ".join(words)) == words
    assert WordForms().split(words[0]) == words[:1]


@settings(max_examples=300, deadline=None)
@given(
    st.text(
        st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from(INVISIBLE + " \n\u0301\u0327e")),
        max_size=20,
    )
)
def test_any_text(text):
    """The result is the same for all equivalent texts, and stays the same."""
    result = canonical(text)
    assert canonical(result) == result == unicodedata.normalize("NFC", result)
    assert canonical(unicodedata.normalize("NFD", text)) == result
    assert text.count("\n") == result.count("\n")
    assert not any(word[0] in INVISIBLE or word[-1] in INVISIBLE for word in result.split())


def test_large_label_files_are_read_in_blocks(tmp_path, monkeypatch):
    """A block may end within a character, or between a letter and its accent."""
    from readers.htk.storage import label_index

    monkeypatch.setattr(mlf_module, "LARGE", -1)
    content = "#!MLF!#\n" + "".join(f'"*/u{i}.lab"\n\u00e9e\u0301{"x" * (i % 7)}\n.\n' for i in range(40))
    (tmp_path / "f").write_text(content, encoding="utf-8")
    for block in (16, 31, 64):
        monkeypatch.setattr(label_index, "BLOCK", block)
        labels = read_mlf(tmp_path / "f")
        assert [labels[f"u{i}"][0].name for i in range(40)] == [f"\u00e9\u00e9{'x' * (i % 7)}" for i in range(40)]


def test_language_model_with_both_spellings(tmp_path):
    text = (
        arpa("X").replace("1=3", "1=4").replace("-1 X -1\n", "-1 caf\u00e9 -1\n-1 cafe\u0301 -1\n").replace("X", WORD)
    )
    (tmp_path / "f").write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="unigram 'caf\u00e9' is repeated"):
        read_arpa(tmp_path / "f")


def test_paths_stay_as_they_are(tmp_path):
    """Files are found under the names that they have, for instance decomposed ones from a Mac."""
    names = [f"{spelling}.wav" for spelling in SPELLINGS]
    for name in names:
        tone(tmp_path / name, 800)
    (tmp_path / "a.scp").write_text("".join(f"{tmp_path}/{name}\n" for name in names), encoding="utf-8")
    entries = read_scp(tmp_path / "a.scp")
    assert [Path(entry.path).name for entry in entries] == names
    assert {entry.key for entry in entries[:2]} == {f"{tmp_path}/{WORD}"}
    write_pairs(tmp_path / "pairs", [(name, name) for name in names])
    assert [source for source, _ in read_pairs(tmp_path / "pairs")] == names
    (tmp_path / "feats.scp").write_text(f"cafe\u0301 {tmp_path}/cafe\u0301.ark:5\n", encoding="utf-8")
    (entry,) = read_ark_scp(tmp_path / "feats.scp")
    assert (entry.key, entry.path) == (WORD, f"{tmp_path}/cafe\u0301.ark")
    (tmp_path / "t.csv").write_text(f"path,text\n{names[1]},cafe\u0301\n", encoding="utf-8")
    (utterance,) = import_corpus("table", tmp_path / "t.csv").utterances
    assert (utterance.name, utterance.audio, utterance.words) == (WORD, tmp_path / names[1], (WORD,))


@pytest.mark.parametrize("kind", ["folder", "kaldi", "lhotse", "table"])
def test_corpora_with_mixed_spellings(kind, tmp_path):
    """Of file names, keys and words; what is written is read back."""
    audio = tone(tmp_path / "cafe\u0301/cafe\u0301.wav", 800)
    if kind == "folder":
        source = audio.parent
        audio.with_suffix(".txt").write_text("Cafe\u0301!", encoding="utf-8")
    elif kind == "kaldi":
        source = tmp_path
        (tmp_path / "wav.scp").write_text(f"cafe\u0301 {audio}\n", encoding="utf-8")
        (tmp_path / "text").write_text("caf\u00e9 Cafe\u0301\u200c\n", encoding="utf-8")
        (tmp_path / "utt2spk").write_text("caf\u00e9 cafe\u0301\n", encoding="utf-8")
    elif kind == "lhotse":
        source = tmp_path
        place = f'{{"type": "file", "channels": [0], "source": "{audio}"}}'
        (tmp_path / "recordings.jsonl.gz").write_bytes(gzip.compress(f'{{"id": "r", "sources": [{place}]}}'.encode()))
        (tmp_path / "supervisions.jsonl").write_text(
            '{"id": "caf\\u00e9", "recording_id": "r", "start": 0, "duration": 0.1, "channel": 0, '
            '"speaker": "cafe\\u0301", "text": "Cafe\\u0301"}'
        )
    else:
        source = tmp_path / "t.csv"
        source.write_text("path,text,speaker\ncafe\u0301/cafe\u0301.wav,Cafe\u0301,cafe\u0301\n", encoding="utf-8")
    corpus = import_corpus(kind, source)
    assert [(one.name, one.speaker, one.words, one.audio) for one in corpus.utterances] == [
        (WORD, WORD, ("Caf\u00e9",), audio)
    ]
    write_corpus(corpus, tmp_path / "out")
    assert read_corpus(tmp_path / "out") == corpus


def test_keys_and_text_of_bytes(tmp_path):
    assert key_of("*/cafe\u0301.lab") == WORD
    (tmp_path / "f").write_text("cafe\u0301\n", encoding="utf-8")
    assert read_text_bytes(tmp_path / "f") == f"{WORD}\n".encode()
    assert read_text_bytes(tmp_path / "f", exact=True) == "cafe\u0301\n".encode()
