"""N-gram language models: automata for the search, estimation from text, mixtures, word classes.

Open language_model.py first: the automaton and its step.  mapped_model.py opens ARPA files; collection.py interpolates
several models during the search; estimation.py, classes.py and mixing make new models.  estimation_job.py and
network.py have the jobs, which read texts (texts.py).
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "language_model": ["LMArrays", "LanguageModel"],
        "evaluation": ["Perplexity", "perplexity"],
        "options": [
            "EstimationOptions",
            "InterpolationOptions",
            "NetworkOptions",
            "PerplexityOptions",
            "PruningOptions",
            "TextOptions",
            "VocabularyDictionary",
        ],
        "estimation_job": ["estimate_from_texts"],
        "network": ["perplexity_of_texts"],
        "mapped_model": ["load_language_model", "open_language_model"],
        "estimation": ["estimate", "uniform"],
        "mixing.mixture": ["best_weights", "estimate_with_classes", "interpolate"],
        "mixing.job": ["Interpolation", "interpolate_models", "prune_model"],
        "mixing.pruning": ["prune"],
        "collection": ["open_collection"],
    },
)
