"""Vocabularies from tables and from models."""

import pytest

from acoustic.network.model_file import save_model
from acoustic.network.network import Network
from readers.errors import ArgonautError
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.language.vocabulary_record import VocabularyRecord
from readers.sources.sentences.model_words import read_words

WORDS = [VocabularyWord("</s>", 3, 0), VocabularyWord("a", 2, 0), VocabularyWord("b", 1, 1)]
OTHERS = [VocabularyWord("x", 0, 0)]


def model(path, **records):
    network = Network()
    for name in ("features", "labels"):
        network.add("InputValue", name, rows=3)
    network.vocabularies = {name: VocabularyRecord.of_words(words) for name, words in records.items()}
    save_model(network, path)
    return path


def test_words_of_a_table_and_of_models(tmp_path):
    write_vocabulary(tmp_path / "words", WORDS)
    assert read_words(tmp_path / "words") == WORDS
    assert read_words(model(tmp_path / "model", features=WORDS, labels=WORDS)) == WORDS
    assert read_words(model(tmp_path / "model", features=OTHERS, labels=WORDS)) == WORDS
    assert read_words(model(tmp_path / "model", features=OTHERS, labels=WORDS), "features") == OTHERS
    assert read_words(model(tmp_path / "model", features=WORDS), "outputs") == WORDS  # there is no other


def test_faults(tmp_path):
    with pytest.raises(ArgonautError, match="model: a model without words; expected one that was trained on text"):
        read_words(model(tmp_path / "model"))
    with pytest.raises(ArgonautError, match="words for features, labels; expected words for outputs"):
        read_words(model(tmp_path / "model", features=OTHERS, labels=WORDS), "outputs")
    damaged = (tmp_path / "model").read_bytes()[:-3]
    (tmp_path / "model").write_bytes(damaged)
    with pytest.raises(ArgonautError, match="expected a model or checkpoint of Argonaut"):
        read_words(tmp_path / "model")
    (tmp_path / "short").write_bytes(b"")
    with pytest.raises(ArgonautError, match="no entries"):
        read_words(tmp_path / "short")
