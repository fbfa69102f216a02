"""Converts acoustic models of Kaldi: networks of nnet3 with i-vectors, and mixtures of Gaussians."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.faults import naming
from readers.common.report import Log
from readers.errors import ConfigError, FormatError, ModelError
from readers.kaldi.feature_options import FeatureKind, KaldiFeatures, read_feature_options
from readers.kaldi.option_files import frame_subsampling, read_arguments, read_numbers_of_frames
from recipes.foreign.kaldi_ivectors import ivector_model

if TYPE_CHECKING:
    from acoustic.scoring.mixture_scorer import MixtureModel
    from features import FeatureConfig
    from readers.common.arrays import Float64Array
    from readers.kaldi.ivectors import GaussianMixture
    from readers.kaldi.nnet3.nnet import NnetModel
    from readers.kaldi.transition_model import TransitionModel

VOSK = "am"  # directory of final.mdl in models of vosk
VOSK_CHUNK = 24  # frames that vosk scores at a time
CMVN = "cmvn_opts"
# Beside models of features whose sliding mean is subtracted, in Kaldi's experiments and in directories of vosk.
SLIDING_MEAN = ("online_cmvn", "global_cmvn.stats")
MOST_DELTAS = 10  # order and window
SPEAKER_INDEPENDENT = "final.alimdl"  # beside a final.mdl of features that are transformed for each speaker


@dataclass(frozen=True)
class AcousticModel:
    """A converted model: its transitions, its features, its files by the names of `PartOptions`, what it is."""

    transitions: "TransitionModel"
    about: KaldiFeatures
    parts: dict[str, Path]
    is_network: bool


def convert_acoustic_model(
    path: Path, ivectors: Path | None, configurations: Sequence[tuple[Path, FeatureKind]], directory: Path, log: Log
) -> AcousticModel:
    """Write the model of a `final.mdl` and the configuration of its features to a directory.

    ivectors: directory of an extractor; configurations: of features, of which the first one that fits is taken;
    log(line) is told what is taken instead of the file.  Raises ArgonautError and OSError for files that are damaged or
    do not fit together.
    """
    from features import FeatureConfig
    from readers.kaldi.hmm.gaussians import read_gaussians
    from readers.kaldi.nnet3.nnet import read_nnet_model
    from readers.kaldi.objects import KaldiObjects
    from readers.kaldi.transition_model import read_transition_model

    objects = KaldiObjects(path)
    transitions = read_transition_model(objects)
    is_network = objects.peek() == "<Nnet3>"
    nnet = read_nnet_model(path) if is_network else None
    source, about = features_of(nnet, configurations)
    if ivectors is not None and not (nnet is not None and takes_ivectors(nnet)):
        log(f"{ivectors}: left out; the model takes no i-vectors")
        ivectors = None
    settings = dict(about.settings)
    for name in SLIDING_MEAN:
        if (path.parent / name).is_file():
            raise ConfigError(f"{path.parent / name}: features without their sliding mean; expected plain features")
    if subtracts_mean(path.parent, by_default=not is_network):
        if ivectors is not None:
            raise ConfigError(f"{path.parent / CMVN}: norm-means is true; expected false, beside i-vectors")
        settings["TARGETKIND"] += "_Z"
    with naming(f"{source}"):
        config = FeatureConfig.from_hcopy(settings)
    parts = {"features": directory / "features"}
    parts["features"].write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    if nnet is not None:
        if frame_subsampling(path) == 1 and not len(nnet.priors):
            log(f"{path}: no frame_subsampling_factor: every frame is scored; most models without priors have 3")
        parts |= _convert_network(path, nnet, ivectors, about, config, directory)
        return AcousticModel(transitions, about, parts, is_network)
    independent = path.parent / SPEAKER_INDEPENDENT
    if independent.is_file():
        log(f"{independent}: taken instead of {path.name}, whose features are transformed for each speaker")
        objects = KaldiObjects(independent)
        transitions = read_transition_model(objects)
    mixtures = read_gaussians(objects)
    if transitions.num_pdfs > len(mixtures):
        raise FormatError(f"{objects.path}: {len(mixtures)} mixtures; expected {transitions.num_pdfs}, one of each pdf")
    parts["model"] = directory / "model.safetensors"
    mixture_model(mixtures, path.parent, about, config).save(parts["model"])
    return AcousticModel(transitions, about, parts, is_network)


def takes_ivectors(nnet: "NnetModel") -> bool:
    """Return whether a network has another input than features."""
    from acoustic.descriptions.kaldi_nnet import FEATURES

    return any(node.kind == "input-node" and name != FEATURES for name, node in nnet.nnet.nodes.items())


def features_of(
    nnet: "NnetModel | None", configurations: Sequence[tuple[Path, FeatureKind]]
) -> tuple[Path, KaldiFeatures]:
    """Return the first configuration of features that has as many values as a network takes, and its file."""
    from acoustic.descriptions.kaldi_nnet import FEATURES

    inputs = None if nnet is None else nnet.nnet.nodes.get(FEATURES)
    others = []
    for path, kind in configurations:
        about = read_feature_options(path, kind)
        if inputs is None or about.num_values == inputs.rows:
            return path, about
        others.append(f"{path}: frames of {about.num_values} values")
    assert inputs is not None
    raise ConfigError(f"{'; '.join(others)}; expected {inputs.rows}, as the network takes")


def _convert_network(
    path: Path,
    nnet: "NnetModel",
    directory_of_ivectors: Path | None,
    about: KaldiFeatures,
    config: "FeatureConfig",
    directory: Path,
) -> dict[str, Path]:
    """Write a network and its model of i-vectors to a directory; return the files by the names of `PartOptions`."""
    from acoustic.descriptions.kaldi_nnet import FEATURES, network_of_nnet
    from acoustic.network.model_file import save_model
    from features import feature_record
    from features.ivectors.options import ChunkSchedule
    from readers.config.feature_record import FeatureRecord

    record = feature_record(config, (about.sample_rate,))
    step = frame_subsampling(path)
    network = network_of_nnet(nnet, step, first_is_last=about.last_is_first)
    records = network.feature_records
    records[FEATURES] = record.updated(records[FEATURES])
    parts = {"model": directory / "model.dnn"}
    if directory_of_ivectors is not None:
        ivectors = ivector_model(directory_of_ivectors, about, record)
        if path.parent.name == VOSK:
            chunks = ChunkSchedule(size=-(-VOSK_CHUNK // step) * step, ahead=int(nnet.context[1]), step=step)
            ivectors = replace(ivectors, chunks=chunks)
        parts["ivector_model"] = directory / "ivectors.safetensors"
        ivectors.save(parts["ivector_model"])
        records["ivector"] = FeatureRecord(extractor=ivectors.checksum)
    save_model(network, parts["model"])
    return parts


def subtracts_mean(directory: Path, by_default: bool) -> bool:
    """Return whether the mean of utterances is subtracted from features, as `cmvn_opts` beside a model says.

    Raises ConfigError for normalised variances and other options.
    """
    path = directory / CMVN
    if not path.is_file():
        return by_default
    options = {"norm-means": "true", "norm-vars": "false"} | read_arguments(path)
    expected = {"norm-means": ("true", "false"), "norm-vars": ("false",)}
    for name, value in options.items():
        if value not in expected.get(name, ()):
            wanted = " or ".join(expected[name]) if name in expected else f"one of {', '.join(expected)}"
            raise ConfigError(f"{path}: {name} is {value[:40]!r}; expected {wanted}")
    return options["norm-means"] == "true"


def mixture_model(
    mixtures: "list[GaussianMixture]", directory: Path, about: KaldiFeatures, config: "FeatureConfig"
) -> "MixtureModel":
    """Return the mixtures of pdfs with the transform of their features.

    Parameters
    ----------
    mixtures : list of GaussianMixture
    directory : Path
        With `final.mat` and `splice_opts`, or `delta_opts`; all may be missing.
    about : KaldiFeatures
    config : FeatureConfig
        Of the features.

    Returns
    -------
    MixtureModel

    Raises
    ------
    FormatError
        For files that do not fit together.
    OSError
    """
    import numpy as np

    from decoder.gaussians.mixtures import mixtures_of
    from decoder.gaussians.models import GaussianModels
    from features import feature_record
    from readers.kaldi.objects import KaldiObjects

    num_values = config.dim
    path = directory / "final.mat"
    if path.is_file():
        splice = read_numbers_of_frames(directory / "splice_opts", {"left-context": 4, "right-context": 4})
        left = splice["left-context"]
        right = splice["right-context"]
        matrix = KaldiObjects(path).matrix()
    else:
        path = directory / "delta_opts"
        deltas = read_numbers_of_frames(path, {"delta-order": 2, "delta-window": 2})
        if max(deltas.values()) > MOST_DELTAS or not deltas["delta-window"]:
            raise ConfigError(f"{path}: {deltas}; expected at most {MOST_DELTAS}, and a window of at least 1")
        left = right = deltas["delta-order"] * deltas["delta-window"]
        matrix = _delta_matrix(num_values, deltas["delta-order"], deltas["delta-window"])
    num_inputs = num_values * (left + 1 + right)
    dim = mixtures[0].means.shape[1]
    has_offset = matrix.shape[1] == num_inputs + 1
    if matrix.shape != (dim, num_inputs + has_offset):
        raise FormatError(
            f"{path}: a transform of {matrix.shape[1]} to {matrix.shape[0]} values; expected one of {num_inputs} to "
            f"{dim}, frames of {num_values} from {left} before to {right} after"
        )
    offset = matrix[:, -1] if has_offset else np.zeros(dim)
    windows = matrix[:, :num_inputs].reshape(dim, left + 1 + right, num_values)
    if about.last_is_first:  # the last value here
        windows = np.roll(windows, -1, axis=2)
    half = max(left, right)
    windows = np.pad(windows, ((0, 0), (half - left, half - right), (0, 0)))
    counts = [len(mixture.weights) for mixture in mixtures]
    models = GaussianModels(
        tuple(f"{pdf}" for pdf in range(len(mixtures))),
        np.cumsum([0, *counts]),
        np.concatenate([mixture.weights for mixture in mixtures]),
        np.concatenate([mixture.means for mixture in mixtures]) - offset,
        np.concatenate([mixture.variances for mixture in mixtures]),
    )
    with np.errstate(over="ignore"):
        transform = np.ascontiguousarray(windows.reshape(dim, -1), np.float32)
    try:
        return mixtures_of(models, feature_record(config, (about.sample_rate,)), transform, num_values)
    except ModelError as fault:
        raise ModelError(
            f"{directory}: a Gaussian or transform is out of range; expected values that float32 can hold"
        ) from fault


def _delta_matrix(num_values: int, order: int, window: int) -> "Float64Array":
    """Return the matrix (values, inputs) of Kaldi's add-deltas for frames that are spliced over order * window frames.

    Differences of differences are sums over the frames themselves, so that only these are repeated beyond the ends.
    """
    import numpy as np

    steps = np.arange(-window, window + 1)
    weights = [np.ones(1)]
    for _ in range(order):
        weights.append(np.convolve(weights[-1], steps / (steps**2).sum()))
    width = 2 * order * window + 1
    padded = [np.pad(values, (width - len(values)) // 2) for values in weights]
    matrix: Float64Array = np.einsum("ot,vu->ovtu", padded, np.eye(num_values))
    return matrix.reshape((order + 1) * num_values, width * num_values)
