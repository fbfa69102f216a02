"""Language models (ARPA), acceptors (AT&T text), vocabularies, word classes, hotwords and labelled text.

Open arpa.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "arpa": ["Arpa", "ArpaOrder", "read_arpa", "write_arpa"],
        "att": ["Acceptor", "read_acceptor", "write_acceptor"],
        "cmudict": ["CmuEntry", "read_cmudict"],
        "labelled_text": ["read_columns", "read_parallel"],
        "vocabulary": ["VocabularyWord", "read_vocabulary", "write_vocabulary"],
        "vocabulary_record": ["VocabularyRecord"],
        "word_classes": ["read_word_classes"],
    },
)
