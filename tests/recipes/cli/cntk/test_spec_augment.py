"""Training with SpecAugment: masked minibatches, but statistics and validation of the data as they are."""

import numpy as np
import pytest

from acoustic.network.model_file import load_model

MASKS = "Train=[reader=[features=[specAugment=[timeWidth=5;frequencyWidth=3]]]]"


def values(path) -> dict[str, np.ndarray]:
    return {name: np.array(value) for name, value in load_model(path).stored_values().items()}


@pytest.mark.slow
def test_training_is_masked_and_continues_to_the_same_bits(user):
    def train(model, *arguments):
        outcome = user.run("cntk", "configFile=net.cntk", f"modelPath={model}", "Train=[SGD=[maxEpochs=2]]", *arguments)
        assert outcome.status == 0, outcome.err
        return values(user.root / model)

    plain, masked = train("plain/net"), train("masked/net", MASKS)
    assert plain.keys() == masked.keys()
    statistics = [name for name in plain if name.startswith(("MeanOf", "InvStd", "Prior"))]
    assert len(statistics) == 3
    for name, value in plain.items():
        assert np.array_equal(value, masked[name]) == (name in statistics), name
    train("stopped/net", MASKS, "Train=[SGD=[maxEpochs=1]]")
    continued = train("stopped/net", MASKS, "extendTraining=true")
    for name, value in masked.items():
        np.testing.assert_array_equal(continued[name], value)
    jobs = train("jobs/net", MASKS, "Train=[SGD=[ParallelTrain=[parallelizationMethod=DataParallelSGD;numJobs=2]]]")
    for name, value in masked.items():
        np.testing.assert_allclose(jobs[name], value, atol=1e-4)
