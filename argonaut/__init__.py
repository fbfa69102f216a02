"""Argonaut from Python: recognise, align, train and score, every job by its name.

    import argonaut

    recognizer = argonaut.load("en.argo")
    print(recognizer.transcribe("call.wav"))

    options = argonaut.TieOptions(alignment="states.mlf", features="train.scp", out="hmms",
                                  files=argonaut.StateFiles(state_list="states.list"))
    argonaut.tie(options).num_senones

    reader = argonaut.ArrayReader({"features": frames, "labels": classes})
    network = argonaut.SimpleNetworkOptions(layer_sizes=(39, 128, 40))
    argonaut.train(network, reader, argonaut.TrainingOptions(max_epochs=5, learning_rates_per_minibatch=0.5))

Each command of the shell has a job here, a function that takes its options and returns what it made; the options have
the names, the defaults and the checks of the command's flags.  A name is imported when it is used first, so that
`import argonaut` costs nothing.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "acoustic": ["load_model", "save_model"],
    "acoustic.actions.config_job": ["ConfigOptions", "ConfigResult", "run_config"],
    "acoustic.descriptions": ["open_network"],
    "acoustic.descriptions.builders": ["LstmOptions", "SimpleNetworkOptions"],
    "acoustic.scoring": ["forward", "log_posteriors"],
    "acoustic.training": [
        "EvaluationOptions", "EvaluationResult", "TrainingOptions", "TrainingResult", "evaluate", "train",
    ],
    "decoder.alignment": ["AverageOptions", "AverageResult", "average", "score_boundaries"],
    "decoder.g2p": [
        "G2P", "G2PApplyOptions", "G2PMeasureOptions", "G2PTrainOptions", "ImportOptions", "ImportResult", "apply_g2p",
        "import_recordings", "measure_g2p", "train_g2p",
    ],
    "decoder.gaussians": ["FlatStartOptions", "FlatStartResult", "FlatStartSettings", "flat_start"],
    "decoder.gaussians.adaptation": ["FmllrApplyOptions", "FmllrTrainOptions", "apply_fmllr", "train_fmllr"],
    "decoder.grammars": ["GraphDictionary", "GraphFiles", "GraphResult", "make_graph"],
    "decoder.graph": ["GraphOptions"],
    "decoder.lattices.jobs": [
        "CombineOptions", "ConsensusOptions", "DeterminiseOptions", "KaldiOptions", "NbestOptions", "OpenFstOptions",
        "OracleOptions", "RescoreListsOptions", "RescoreOptions", "WordsOptions", "combine_lattices",
        "determinise_lattices", "extract_nbest", "find_consensus", "find_oracle", "find_words", "rescore_lattices",
        "rescore_nbest", "write_kaldi", "write_openfst",
    ],
    "decoder.lm": [
        "EstimationOptions", "LanguageModel", "PerplexityOptions", "TextOptions", "estimate_from_texts",
        "perplexity_of_texts",
    ],
    "decoder.recognizer": ["Bundle", "ForcedAligner", "Grammar", "Recognizer", "Transcript", "Word", "load"],
    "decoder.results": ["Recognition", "RecognitionEvent"],
    "decoder.scoring": ["ComparedFiles", "ScoreOptions", "ScoreResult", "score_files"],
    "decoder.recognizer.jobs": [
        "CalibrateOptions", "CalibrateResult", "LiveResult", "TranscribeOptions", "TranscribeResult",
        "TranscribedFile", "calibrate", "transcribe", "transcribe_live",
    ],
    "decoder.recognizer.jobs.decoding": [
        "AcousticOptions", "CompilingOptions", "DecodeDictionary", "DecodeOptions", "DecodeOutputOptions",
        "DecodeResult", "DecodeSearchOptions", "StreamOptions", "TranscriptOptions", "align_transcripts",
        "compile_graph", "decode", "decode_stream", "store_defaults",
    ],
    "decoder.search": ["SearchOptions"],
    "decoder.search.hotword_options": ["GuessedHotwordOptions", "HotwordOptions"],
    "decoder.sequence_training.chain": ["ChainOptions", "ChainResult", "make_chain"],
    "decoder.sequence_training.lattices": ["DenominatorOptions", "DenominatorResult", "make_lattices"],
    "decoder.tying": ["StateFiles", "TieOptions", "TieResult", "TreeOptions", "tie"],
    "features": ["FeatureConfig", "HcopyOptions", "HcopyResult", "extract", "hcopy"],
    "features.augmentation": ["AugmentOptions", "AugmentResult", "CopyOptions", "augment"],
    "features.ivectors": ["IvectorExtractOptions", "IvectorTrainOptions", "extract_ivectors", "train_ivectors"],
    "readers.audio": ["AudioFileOptions", "read_audio"],
    "readers.config.options": ["OptionFault", "Options"],
    "readers.dictionaries": ["DictionaryOptions", "WordList"],
    "readers.errors": ["ArgonautError"],
    "readers.sources.arrays": ["ArrayFeatures", "ArrayLabels", "ArrayReader", "ArrayReaderOptions"],
    "recipes.packing": ["AboutOptions", "PackOptions", "PartOptions", "make_bundle"],
    "recipes.pictures.job": ["AlignmentPictureOptions", "LatticePictureOptions", "TuningPictureOptions", "plot"],
}  # fmt: skip
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'argonaut' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF[name]), name)


def __dir__() -> list[str]:
    return __all__
