"""Gaussian models of HTK's files."""

import numpy as np
import pytest

from decoder.gaussians import GaussianModels
from decoder.gaussians.transitions import Transitions
from decoder.graph.phone_models import distil
from readers.errors import FormatError, ShapeError
from readers.htk.mmf_writer import write_mmf
from tests.decoder.gaussians.reference import topology


def random_models(states, seed=5):
    rng = np.random.default_rng(seed)
    counts = 1 + np.arange(len(states)) % 3
    first = np.concatenate(([0], np.cumsum(counts)))
    weights = np.concatenate([rng.dirichlet(np.ones(n)) for n in counts])
    shape = (first[-1], 4)
    return GaussianModels(tuple(states), first, weights, rng.normal(size=shape), rng.uniform(0.1, 3, shape), "MFCC_0")


def test_an_mmf_scores_as_the_models_that_it_was_made_of(tmp_path):
    shape = topology()
    models, transitions = random_models(shape.states), Transitions.flat(shape)
    write_mmf(tmp_path / "hmmdefs", models.hmm_set(shape.models, transitions.matrices(shape)))
    (tmp_path / "states").write_text("\n".join(shape.states))
    read = GaussianModels.load(tmp_path / "hmmdefs", tmp_path / "states")
    frames = np.random.default_rng(0).normal(size=(4, 50))
    np.testing.assert_allclose(read.log_likelihoods(frames), models.log_likelihoods(frames), rtol=1e-5)
    assert read.states == tuple(shape.states)
    assert read.kind == "MFCC_0"
    turned = GaussianModels.load(tmp_path / "hmmdefs", shape.states[::-1])
    np.testing.assert_array_equal(turned.log_likelihoods(frames), read.log_likelihoods(frames)[::-1])


def test_the_models_have_the_topology_of_silence(tmp_path):
    shape = topology()
    models, transitions = random_models(shape.states), Transitions.flat(shape)
    found = distil(models.hmm_set(shape.models, transitions.matrices(shape)))
    assert dict(found.states.items()) == shape.models
    assert set(found.topology) == {"sil"}
    assert {(start, end) for start, end, _ in found.topology["sil"]} == {(0, 1), *shape.ways}
    assert np.exp(found.transitions["a_s3"]).tolist() == pytest.approx([0.6, 0.4])
    straight = topology(any_order=False)
    assert distil(models.hmm_set(straight.models, Transitions.flat(straight).matrices(straight))).topology == {}


def test_states_that_are_not_in_the_file_are_refused(tmp_path):
    shape = topology()
    models = random_models(shape.states)
    write_mmf(tmp_path / "hmmdefs", models.hmm_set(shape.models, Transitions.flat(shape).matrices(shape)))
    with pytest.raises(FormatError) as fault:
        GaussianModels.load(tmp_path / "hmmdefs", ["a_s2", "q_s2", "a_s5"])
    assert str(fault.value) == f"{tmp_path}/hmmdefs: no state q_s2, a_s5; expected all states of the state list"


def test_the_order_of_arrays_in_memory_changes_no_bit():
    rng = np.random.default_rng(2)
    means, variances = rng.normal(size=(300, 39)), rng.uniform(0.1, 9, (300, 39))
    one, other = (
        GaussianModels(tuple(map(str, range(300))), np.arange(301), np.ones(300), order(means), order(variances))
        for order in (np.ascontiguousarray, np.asfortranarray)
    )
    for mine, theirs in zip(one._arrays, other._arrays):
        np.testing.assert_array_equal(mine, theirs)
        assert mine.flags.c_contiguous
        assert theirs.flags.c_contiguous


def test_features_of_another_size_are_refused():
    models = random_models(("a", "b"))
    with pytest.raises(ShapeError) as fault:
        models.log_likelihoods(np.zeros((3, 5)))
    assert str(fault.value) == "features of shape (3, 5); expected (4, frames), as the models have"
    with pytest.raises(ShapeError, match="expected at least one component of each state"):
        GaussianModels(("a", "b"), np.array([0, 2, 2]), np.ones(2) / 2, np.zeros((2, 1)), np.ones((2, 1)))
