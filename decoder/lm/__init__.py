"""N-gram language models: automata for the search, estimation, mixtures, classes.

Open language_model.py first.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "language_model": ["LanguageModel", "perplexity"],
        "mapped_model": ["load_language_model", "open_language_model"],
        "estimation": ["estimate"],
        "mixture": ["estimate_with_classes"],
        "collection": ["open_collection"],
    },
)
