"""Train a small network on arrays, count its errors, and compute log-posteriors."""

import tempfile
from pathlib import Path

import numpy as np

import argonaut

MEANS = np.array([[0, 0], [2, 0], [0, 2]])  # of the frames of each of three classes


def utterances(number: int, seed: int) -> dict[str, list[np.ndarray]]:
    """Return frames (50, 2) and their classes (50,), which last for five frames each."""
    random = np.random.default_rng(seed)
    classes = [np.repeat(random.integers(0, 3, 10), 5) for _ in range(number)]
    return {"features": [random.normal(MEANS[one], 0.7) for one in classes], "labels": classes}


window = {"features": argonaut.ArrayFeatures(context=(2, 2))}  # five frames, ten numbers
training, test = (argonaut.ArrayReader(utterances(30, seed), streams=window) for seed in (0, 1))
network = argonaut.SimpleNetworkOptions(layer_sizes=(10, 32, 3), eval_criterion="ErrorPrediction")
options = argonaut.TrainingOptions(max_epochs=8, learning_rates_per_minibatch=0.5, minibatch_size=64)

with tempfile.TemporaryDirectory() as directory:
    model = Path(directory) / "model"
    result = argonaut.train(network, training, options, test, model_path=model)
    figures = argonaut.evaluate(model, test).figures
    posteriors = argonaut.log_posteriors(model, {"features": utterances(1, 2)["features"]})

for epoch in result.epochs:
    print(f"epoch {epoch.epoch}: {epoch.criterion:.3f}, errors {epoch.error:.1%}; test {epoch.validation_error:.1%}")
print(f"best epoch {result.best_epoch}; errors {figures['EvalErrorPrediction']:.1%}; {posteriors['0'].shape}")
