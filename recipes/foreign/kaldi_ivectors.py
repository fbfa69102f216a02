"""Converts the directory of an i-vector extractor of Kaldi, with the options of the frames and of the estimation."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from readers.errors import ConfigError, FormatError
from readers.kaldi.feature_options import KaldiFeatures
from readers.kaldi.option_files import number_of, numbers_of_frames, read_arguments, read_numbers_of_frames

if TYPE_CHECKING:
    from features.ivectors.model import IvectorModel
    from features.ivectors.options import IvectorOptions
    from readers.config.feature_record import FeatureRecord

# Of the directory of an extractor, of that of vosk, and of what prepare_online_decoding.sh writes, in ../conf.
SPLICE = ("splice.conf", "splice_opts")
ONLINE_CMVN = ("online_cmvn.conf",)
ESTIMATION = ("ivector_extractor.conf", "ivector.conf")
NORMALISED = "online_cmvn_iextractor"  # of extractors of frames whose mean is subtracted
ONLY = {"norm-means": "true", "norm-vars": "false", "skip-dims": ""}  # of online_cmvn.conf
# Options of Kaldi's estimation; the defaults are those of recipes, which vosk takes, too.
ESTIMATED = {
    **{"num-gselect": "select", "min-post": "min_posterior", "posterior-scale": "posterior_scale"},
    **{"max-count": "max_count", "ivector-period": "period"},
}
WHOLE = ("select", "period")


def ivector_model(directory: Path, about: KaldiFeatures, record: "FeatureRecord") -> "IvectorModel":
    """Return the model of i-vectors in a directory; record: of the features.

    Raises ConfigError for options that are not supported, FormatError for files that do not fit together, and OSError.
    """
    import numpy as np

    from features.ivectors.background import Background
    from features.ivectors.extractor import Extractor
    from features.ivectors.frames import SlidingMean, SplicedProjection
    from features.ivectors.mixtures import DiagonalMixture
    from features.ivectors.model import IvectorModel
    from readers.kaldi.ivectors import read_gaussian_mixture, read_ivector_extractor
    from readers.kaldi.objects import KaldiObjects

    if (directory / NORMALISED).is_file():
        raise ConfigError(f"{directory / NORMALISED}: an extractor of normalised frames; expected one of plain frames")
    extractor = read_ivector_extractor(directory / "final.ie")
    mixture = read_gaussian_mixture(directory / "final.dubm")
    matrix = KaldiObjects(directory / "final.mat").matrix()
    statistics = KaldiObjects(directory / "global_cmvn.stats").matrix()
    num_values = statistics.shape[1] - 1
    splice_path = _beside(directory, SPLICE)
    splice = read_numbers_of_frames(splice_path, {"left-context": 4, "right-context": 4})
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
            f"{directory}: final.mat of {matrix.shape}, global_cmvn.stats of {num_values} values, {splice_path.name} "
            f"of {width} frames, final.dubm of {mixture.means.shape}, final.ie of {extractor.projections.shape[:2]}; "
            "expected sizes that fit"
        )
    if not statistics[0, -1] > 0:
        raise FormatError(f"{directory / 'global_cmvn.stats'}: {statistics[0, -1]:g} frames; expected at least one")
    mean = statistics[0, :-1] / statistics[0, -1]
    if about.last_is_first:  # the last value here
        mean = np.roll(mean, -1)
        matrix = np.roll(matrix.reshape(dim, width, num_values), -1, axis=2).reshape(expected)
    projection = SplicedProjection(
        np.ascontiguousarray(matrix), offset, splice["left-context"], splice["right-context"]
    )
    window, prior = _sliding_mean(directory)
    background = Background(
        SlidingMean(mean, window, prior),
        DiagonalMixture(mixture.weights / mixture.weights.sum(), mixture.means, mixture.variances),
        projection=projection,
    )
    covariances = np.linalg.inv(extractor.inverse_covariances)
    covariances = (covariances + covariances.swapaxes(1, 2)) / 2
    own = Extractor(extractor.projections, covariances, extractor.offset)
    return IvectorModel(background, own, _estimation(directory), record, f"{directory}")


def _beside(directory: Path, names: tuple[str, ...]) -> Path:
    """Return the first file of some names in a directory or in ../conf; the first path if there is none."""
    paths = [parent / name for parent in (directory, directory.parent / "conf") for name in names]
    return next((path for path in paths if path.is_file()), paths[0])


def _sliding_mean(directory: Path) -> tuple[int, int]:
    """Return the frames whose mean is subtracted, and those as which the mean of the training data counts."""
    path = _beside(directory, ONLINE_CMVN)
    options = read_arguments(path)
    for name, value in ONLY.items():
        if options.get(name, value) != value:
            raise ConfigError(f"{path}: {name} is {options[name][:40]!r}; expected {value!r}")
    frames = numbers_of_frames(path, options, {"cmn-window": 600, "global-frames": 200})
    if not frames["cmn-window"]:
        raise ConfigError(f"{path}: cmn-window is 0; expected at least 1")
    return frames["cmn-window"], frames["global-frames"]


def _estimation(directory: Path) -> "IvectorOptions":
    """Return how i-vectors are estimated."""
    from features.ivectors.options import IvectorOptions

    path = _beside(directory, ESTIMATION)
    options = read_arguments(path)
    settings: dict[str, Any] = {}
    for name, own_name in ESTIMATED.items():
        if name in options:
            number = number_of(path, name, options[name])
            settings[own_name] = round(number) if own_name in WHOLE else number
    try:
        return IvectorOptions(**settings)
    except ConfigError as fault:
        raise fault.reworded(f"{path}: {fault}") from fault
