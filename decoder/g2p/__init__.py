"""Grapheme to phoneme conversion: guesses the pronunciations of words that a dictionary lacks.

Open job.py, and model.py first: the model and its file.  training.py and alignment.py train it on a dictionary,
search_kernels.py finds the most probable phones of a word; evaluation.py measures errors, completion.py adds words to a
dictionary.
"""

from readers.common.lazy import face

__all__, __getattr__ = face(
    __name__,
    {
        "model": ["G2P"],
        "completion": ["Guesses", "complete_dictionary"],
        "job": ["G2PApplyResult", "G2PTrainResult", "apply_g2p", "measure_g2p", "train_g2p"],
        "import_job": ["ImportDictionary", "ImportOptions", "ImportResult", "import_recordings"],
        "options": [
            "G2PApplyOptions",
            "G2PMeasureOptions",
            "G2PTrainOptions",
            "HeldOutDictionary",
            "TrainingDictionary",
        ],
        "guessing": ["CompletedDictionary"],
        "evaluation": ["count_errors", "hold_out"],
    },
)
