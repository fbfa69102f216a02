"""Converts acoustic models of Kaldi: networks of nnet3 with i-vectors, and mixtures of Gaussians."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from readers.common.report import Log
from readers.errors import ConfigError, FormatError
from readers.kaldi.feature_options import KaldiFeatures
from readers.kaldi.option_files import read_arguments

if TYPE_CHECKING:
    from acoustic.scoring.mixture_scorer import MixtureModel
    from features.ivectors.model import IvectorModel
    from readers.common.arrays import Float64Array
    from readers.config.feature_record import FeatureRecord
    from readers.kaldi.ivectors import GaussianMixture
    from readers.kaldi.transition_model import TransitionModel

MAX_COUNT = 100.0  # of i-vectors, as vosk and Kaldi's recipes for online decoding set it
VOSK = "am"  # directory of final.mdl in models of vosk
VOSK_CHUNK = 24  # frames that vosk scores at a time
CMVN = "cmvn_opts"
MOST_DELTAS = 10  # order and window
SPEAKER_INDEPENDENT = "final.alimdl"  # beside a final.mdl of features that are transformed for each speaker


@dataclass(frozen=True)
class AcousticModel:
    """A converted model: its transitions, its files by the names of `PartOptions`, and whether it is a network."""

    transitions: "TransitionModel"
    parts: dict[str, Path]
    is_network: bool


def convert_acoustic_model(
    path: Path, ivectors: Path | None, about: KaldiFeatures, directory: Path, log: Log
) -> AcousticModel:
    """Write the model of a `final.mdl` and the configuration of its features to a directory.

    ivectors: directory of an extractor; log(line) is told what is taken instead of the file.  Raises ArgonautError and
    OSError for files that are damaged or do not fit together.
    """
    from readers.kaldi.hmm.gaussians import read_gaussians
    from readers.kaldi.objects import KaldiObjects
    from readers.kaldi.transition_model import read_transition_model

    objects = KaldiObjects(path)
    transitions = read_transition_model(objects)
    is_network = objects.peek() == "<Nnet3>"
    settings = dict(about.settings)
    if subtracts_mean(path.parent, by_default=not is_network):
        if ivectors is not None and is_network:
            raise ConfigError(f"{path.parent / CMVN}: norm-means is true; expected false, beside i-vectors")
        settings["TARGETKIND"] += "_Z"
    parts = {"features": directory / "features"}
    parts["features"].write_text("".join(f"{name} = {value}\n" for name, value in settings.items()))
    if is_network:
        parts |= _convert_network(path, ivectors, about, settings, directory)
        return AcousticModel(transitions, parts, is_network)
    independent = path.parent / SPEAKER_INDEPENDENT
    if independent.is_file():
        log(f"{independent}: taken instead of {path.name}, whose features are transformed for each speaker")
        objects = KaldiObjects(independent)
        transitions = read_transition_model(objects)
    mixtures = read_gaussians(objects)
    if transitions.num_pdfs > len(mixtures):
        raise FormatError(f"{objects.path}: {len(mixtures)} mixtures; expected {transitions.num_pdfs}, one of each pdf")
    parts["model"] = directory / "model.safetensors"
    mixture_model(mixtures, path.parent, about, settings).save(parts["model"])
    return AcousticModel(transitions, parts, is_network)


def _convert_network(
    path: Path, directory_of_ivectors: Path | None, about: KaldiFeatures, settings: Mapping[str, str], directory: Path
) -> dict[str, Path]:
    """Write a network and its model of i-vectors to a directory; return the files by the names of `PartOptions`."""
    from acoustic.descriptions.kaldi_nnet import FEATURES, network_of_nnet
    from acoustic.network.model_file import save_model
    from features import FeatureConfig, feature_record
    from features.ivectors.options import ChunkSchedule
    from readers.config.feature_record import FeatureRecord
    from readers.kaldi.nnet3.nnet import read_nnet_model
    from readers.kaldi.option_files import frame_subsampling

    record = feature_record(FeatureConfig.from_hcopy(settings), (about.sample_rate,))
    model = read_nnet_model(path)
    step = frame_subsampling(path)
    network = network_of_nnet(model, step, first_is_last=about.last_is_first)
    records = network.feature_records
    records[FEATURES] = record.updated(records[FEATURES])
    parts = {"model": directory / "model.dnn"}
    if directory_of_ivectors is not None:
        ivectors = ivector_model(directory_of_ivectors, about, record)
        if path.parent.name == VOSK:
            chunks = ChunkSchedule(size=-(-VOSK_CHUNK // step) * step, ahead=int(model.context[1]), step=step)
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
    mixtures: "list[GaussianMixture]", directory: Path, about: KaldiFeatures, settings: Mapping[str, str]
) -> "MixtureModel":
    """Return the mixtures of pdfs with the transform of their features.

    Parameters
    ----------
    mixtures : list of GaussianMixture
    directory : Path
        With `final.mat` and `splice_opts`, or `delta_opts`; all may be missing.
    about : KaldiFeatures
    settings : mapping of str to str
        Configuration of HCopy of the features.

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
    from features import FeatureConfig, feature_record
    from readers.kaldi.objects import KaldiObjects

    config = FeatureConfig.from_hcopy(settings)
    num_values = config.dim
    path = directory / "final.mat"
    if path.is_file():
        splice = _whole_numbers(directory / "splice_opts", {"left-context": 4, "right-context": 4})
        left = splice["left-context"]
        right = splice["right-context"]
        matrix = KaldiObjects(path).matrix()
    else:
        path = directory / "delta_opts"
        deltas = _whole_numbers(path, {"delta-order": 2, "delta-window": 2})
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
    transform = np.ascontiguousarray(windows.reshape(dim, -1), np.float32)
    return mixtures_of(models, feature_record(config, (about.sample_rate,)), transform, num_values)


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


def ivector_model(directory: Path, about: KaldiFeatures, record: "FeatureRecord") -> "IvectorModel":
    """Return the model of i-vectors in a directory; record: of the features.

    Raises FormatError for files that do not fit together, and OSError.
    """
    import numpy as np

    from features.ivectors.background import Background
    from features.ivectors.extractor import Extractor
    from features.ivectors.frames import SlidingMean, SplicedProjection
    from features.ivectors.mixtures import DiagonalMixture
    from features.ivectors.model import IvectorModel
    from features.ivectors.options import IvectorOptions
    from readers.kaldi.ivectors import read_gaussian_mixture, read_ivector_extractor
    from readers.kaldi.objects import KaldiObjects

    extractor = read_ivector_extractor(directory / "final.ie")
    mixture = read_gaussian_mixture(directory / "final.dubm")
    objects = KaldiObjects(directory / "final.mat")
    matrix = objects.matrix()
    statistics = KaldiObjects(directory / "global_cmvn.stats").matrix()
    num_values = statistics.shape[1] - 1
    splice = _whole_numbers(directory / "splice.conf", {"left-context": 4, "right-context": 4})
    width = splice["left-context"] + 1 + splice["right-context"]
    num_gaussians, dim = mixture.means.shape
    expected = (dim, num_values * width)
    if matrix.shape == (dim, num_values * width + 1):
        offset = matrix[:, -1]
        matrix = matrix[:, :-1]
    else:
        offset = np.zeros(dim)
    if matrix.shape != expected or extractor.projections.shape[:2] != (num_gaussians, dim) or len(statistics) < 1:
        raise FormatError(
            f"{directory}: final.mat of {matrix.shape}, global_cmvn.stats of {num_values} values, final.dubm of "
            f"{mixture.means.shape}, final.ie of {extractor.projections.shape[:2]}; expected sizes that fit"
        )
    cmvn = _whole_numbers(
        directory / "online_cmvn.conf", {"cmn-window": 600, "global-frames": 200, "speaker-frames": 600}
    )
    mean = statistics[0, :-1] / statistics[0, -1]
    if about.last_is_first:  # the last value here
        mean = np.roll(mean, -1)
        matrix = np.roll(matrix.reshape(dim, width, num_values), -1, axis=2).reshape(expected)
    projection = SplicedProjection(
        np.ascontiguousarray(matrix), offset, splice["left-context"], splice["right-context"]
    )
    background = Background(
        SlidingMean(mean, cmvn["cmn-window"], cmvn["global-frames"]),
        DiagonalMixture(mixture.weights / mixture.weights.sum(), mixture.means, mixture.variances),
        projection=projection,
    )
    covariances = np.linalg.inv(extractor.inverse_covariances)
    covariances = (covariances + covariances.swapaxes(1, 2)) / 2
    own = Extractor(extractor.projections, covariances, extractor.offset)
    return IvectorModel(background, own, IvectorOptions(max_count=MAX_COUNT), record, f"{directory}")


def _whole_numbers(path: Path, defaults: Mapping[str, int]) -> dict[str, int]:
    """Return whole numbers among the options of a file, in one line or several; the file may be missing."""
    options = read_arguments(path)
    numbers = {}
    for name, default in defaults.items():
        text = options.get(name, f"{default}")
        if not text.isascii() or not text.isdigit() or int(text) > 10_000:
            raise ConfigError(f"{path}: {name} is {text[:40]!r}; expected a number from 0 to 10000")
        numbers[name] = int(text)
    return numbers
