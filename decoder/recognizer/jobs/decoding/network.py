"""The scores of a network for feature files or audio."""

from acoustic.scoring.feature_files import FeatureFileScores, open_vectors
from acoustic.scoring.window_scorer import ONNX_SUFFIX, WindowScorer
from decoder.recognizer import assembly
from decoder.recognizer.jobs.decoding.options import AcousticOptions, flag_of
from readers.common.report import Log
from readers.errors import ConfigError

MISMATCH = f"; {flag_of('ignore_mismatch')} uses them anyway"  # end of a message


def open_scorer(options: AcousticOptions, log: Log) -> WindowScorer:
    """Open the network: a native model, or an ONNX model.  Raises OptionFault for options of the other kind."""
    assert options.am is not None
    is_onnx = options.am.name.endswith(ONNX_SUFFIX)
    text = f"is given with {{am}} {options.am}; expected it only with"
    options.require("priors", is_onnx or options.priors is None, f"{text} an ONNX model")
    for name in ("chunks", "int8"):
        options.require(name, not (is_onnx and getattr(options, name)), f"{text} a native model")
    if options.int8:
        from acoustic.kernels.compiled.int8_loops import has_vnni

        if not has_vnni():
            log(f"note: {flag_of('int8')}: this processor has no AVX-512 VNNI; expected it to be slower here")
    size, ahead = options.chunks or (0, 0)
    return assembly.open_scorer(
        f"{options.am}",
        options.output_node,
        options.window,
        (size, ahead) if options.chunks else None,
        options.priors,
        ignore_mismatch=options.ignore_mismatch,
        int8=options.int8,
    )


def require_ivectors(options: AcousticOptions, scorer: WindowScorer, name: str) -> None:
    """Raise ConfigError unless i-vectors are given to a network that takes them, and to no other."""
    path = getattr(options, name)
    dim = scorer.ivector_dim
    if dim and not path:
        raise ConfigError(f"{scorer.source}: takes i-vectors of {dim} values; expected {flag_of(name)}")
    fault = f"is {path}: {scorer.source} takes no i-vectors; expected none"
    options.require(name, bool(dim) or not path, fault)


def open_feature_source(options: AcousticOptions, log: Log) -> FeatureFileScores:
    """Return the network with the feature files of a list."""
    scorer = open_scorer(options, log)
    require_ivectors(options, scorer, "ivectors")
    vectors = open_vectors(options.ivectors, scorer, options.ignore_mismatch)
    return FeatureFileScores(options.infiles, scorer, vectors, options.ignore_mismatch, MISMATCH, log)
