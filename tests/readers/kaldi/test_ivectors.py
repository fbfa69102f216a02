"""Kaldi's extractors of i-vectors and background models."""

import numpy as np
import pytest

from readers.errors import FormatError
from readers.kaldi.ivectors import extractor_summary, mixture_summary, read_gaussian_mixture, read_ivector_extractor
from recipes.file_kinds import describe_file
from tests.readers.kaldi.models import Writer

RNG = np.random.default_rng(0)
WEIGHTS = np.array([0.25, 0.75])
MEANS = RNG.normal(size=(2, 3))
VARIANCES = RNG.uniform(0.5, 2, (2, 3))
PROJECTIONS = RNG.normal(size=(2, 3, 4))
NONE = np.zeros((0, 0))
INVERSES = np.array([np.eye(3) * 2, np.eye(3) + 0.1])


def mixture(binary, weights=WEIGHTS, means=MEANS, variances=VARIANCES):
    writer = Writer(binary).token("<DiagGMM>", "<GCONSTS>").vector([0, 0]).token("<WEIGHTS>").vector(weights)
    writer.token("<MEANS_INVVARS>").matrix(means / variances).token("<INV_VARS>").matrix(1 / variances)
    return writer.token("</DiagGMM>").content


def extractor(binary, weights=NONE, projections=PROJECTIONS, inverses=INVERSES):
    writer = Writer(binary).token("<IvectorExtractor>", "<w>").matrix(weights)
    writer.token("<w_vec>").vector(WEIGHTS, "f8").token("<M>").integer(len(projections))
    for matrix in projections:
        writer.matrix(matrix, "f8")
    writer.token("<SigmaInv>")
    for matrix in inverses:
        writer.symmetric(matrix, "f8")
    return writer.token("<IvectorOffset>").number(100.0, double=True).token("</IvectorExtractor>").content


@pytest.mark.parametrize("binary", [True, False])
def test_what_was_written_is_read(tmp_path, binary):
    path = tmp_path / "final"
    path.write_bytes(mixture(binary))
    model = read_gaussian_mixture(path)
    np.testing.assert_allclose(model.weights, WEIGHTS)
    np.testing.assert_allclose(model.means, MEANS, rtol=1e-5)
    np.testing.assert_allclose(model.variances, VARIANCES, rtol=1e-5)
    assert describe_file(path) == ("Kaldi mixture of Gaussians", [("Gaussians", 2), ("values", 3)])
    assert mixture_summary(f"{path}") == describe_file(path).figures
    path.write_bytes(extractor(binary))
    read = read_ivector_extractor(path)
    np.testing.assert_array_equal(read.projections, PROJECTIONS)
    np.testing.assert_array_equal(read.inverse_covariances, INVERSES)
    assert read.offset == 100.0
    assert describe_file(path).kind == "Kaldi i-vector extractor"
    assert extractor_summary(f"{path}")[:2] == [("i-vectors", "4 values"), ("Gaussians", "2 of 3 values")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (mixture(True, weights=WEIGHTS[:1]), "1 weights for means and variances of 2x3, 2x3; expected equal numbers"),
        (mixture(True, weights=WEIGHTS * 2), "weights whose sum is 2; expected weights of a mixture"),
        (mixture(True, variances=-VARIANCES), "a variance that is not positive; expected variances"),
        (mixture(True) + b"x", "b'x'; expected the end of the file"),
        (mixture(True)[:-30], "values end at byte"),
        (extractor(True), "'<IvectorExtractor>'; expected <DiagGMM>"),
    ],
)
def test_damaged_mixtures_are_refused(tmp_path, content, message):
    path = tmp_path / "final.dubm"
    path.write_bytes(content)
    with pytest.raises(FormatError) as fault:
        read_gaussian_mixture(path)
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (extractor(True, weights=[[1.0]]), "weights that depend on the i-vector; expected an extractor without them"),
        (extractor(True, projections=[*PROJECTIONS[:1], PROJECTIONS[1, :2]]), "Gaussians of different sizes; expected"),
        (extractor(True, inverses=[*INVERSES[:1], np.eye(2)]), "a covariance of 2 values; expected 3"),
        (extractor(True, projections=[]), "0; expected 1 to"),
        (extractor(True)[:-60], "end"),
        (mixture(False), "'<DiagGMM>'; expected <IvectorExtractor>"),
    ],
)
def test_damaged_extractors_are_refused(tmp_path, content, message):
    path = tmp_path / "final.ie"
    path.write_bytes(content)
    with pytest.raises(FormatError) as fault:
        read_ivector_extractor(path)
    assert message in str(fault.value)
