"""Scores of networks with frame subsampling, against those of the same network at every frame."""

from dataclasses import replace

import numpy as np
import pytest

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model, save_model
from acoustic.network.network import Network
from acoustic.network.traversal import time_reach
from acoustic.scoring.score_stream import ScoreStream
from acoustic.scoring.scorer import AcousticScorer
from readers.config.feature_record import FeatureRecord
from readers.minibatches.sequence_layout import SequenceLayout
from tests.readers.minibatches.spliced import splice

DIM, WINDOW, CLASSES = 2, 3, 4
RECORD = FeatureRecord(context=(WINDOW // 2, WINDOW // 2))


def network_of(*delays: tuple[str, int]) -> Network:
    """Layers that each add the value of another step: without delays, each frame is scored alone."""
    network, below, size = Network(seed=1), "x", DIM * WINDOW
    network.add("InputValue", "x", rows=size)
    for k, (kind, steps) in enumerate(delays):
        network.add("LearnableParameter", f"W{k}", rows=CLASSES, cols=size, initValueScale=6)
        network.add("Times", f"z{k}", f"W{k}", below)
        if kind:
            network.add(kind, f"other{k}", f"z{k}", rows=CLASSES, timeStep=steps, defaultHiddenActivity=0.5)
            network.add("Plus", f"sum{k}", f"z{k}", f"other{k}")
        network.add("Tanh", f"h{k}", f"sum{k}" if kind else f"z{k}")
        below, size = f"h{k}", CLASSES
    return network


def saved(path, network: Network, **record) -> str:
    network.feature_records["x"] = replace(RECORD, **record)
    save_model(network, path)
    return f"h{sum(name.startswith('h') for name in network.nodes) - 1}"


PLAIN = (("", 0), ("", 0))
TDNN = (("PastValue", 1), ("FutureValue", 2), ("PastValue", 2), ("FutureValue", 1))


@pytest.mark.parametrize("num_frames", [1, 2, 3, 4, 12, 31])
@pytest.mark.parametrize("step", [2, 3])
def test_scores_of_frames_alone_are_every_nth(tmp_path, num_frames, step):
    network = network_of(*PLAIN)
    output = saved(tmp_path / "whole", network)
    saved(tmp_path / "slow", network, subsampling=step, edges=(2, 2))
    frames = np.random.default_rng(0).normal(size=(DIM, num_frames))
    slow = AcousticScorer(tmp_path / "slow", output)
    assert (slow.subsampling, slow.edges, slow.num_columns(num_frames)) == (step, (0, 0), -(-num_frames // step))
    expected = AcousticScorer(tmp_path / "whole", output).score(frames)[:, ::step]
    np.testing.assert_allclose(slow.score(frames), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("num_frames", [1, 4, 12, 31])
@pytest.mark.parametrize("edges", [(0, 0), (2, 1), (9, 9)])
def test_edges_are_those_of_training(tmp_path, num_frames, edges):
    """Columns of repeated frames surround the utterance, as many as the network can see."""
    network = network_of(*TDNN)
    output = saved(tmp_path / "model", network, subsampling=3, edges=edges)
    scorer = AcousticScorer(tmp_path / "model", output)
    assert scorer.edges == (min(edges[0], 3), min(edges[1], 3))
    assert time_reach(scorer.network[output]) == (3, 3)
    frames = np.random.default_rng(0).normal(size=(DIM, num_frames)).astype(np.float32)
    count, (before, after) = -(-num_frames // 3), edges
    repeated = np.concatenate([np.repeat(frames[:, :1], 30, 1), frames, np.repeat(frames[:, -1:], 31, 1)], axis=1)
    columns = splice(repeated, WINDOW // 2, WINDOW // 2)[:, 30 - 3 * before :: 3][:, : before + count + after]
    engine = Engine(network, [output])
    engine.forward({"x": columns}, layout=SequenceLayout.of_lengths([columns.shape[1]]))
    expected = engine.value(output)[:, before : before + count]
    np.testing.assert_allclose(scorer.score(frames), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("delays", [PLAIN, TDNN, (("PastValue", 2),), (("FutureValue", 3),)])
@pytest.mark.parametrize(("step", "window"), [(1, 3), (3, 3), (3, 1), (5, 3)])
@pytest.mark.parametrize("edges", [(0, 0), (2, 3)])
def test_streams_score_as_a_whole(tmp_path, delays, step, window, edges):
    network = network_of(*delays)
    output = saved(tmp_path / "model", network, subsampling=step, edges=edges, context=(window // 2, window // 2))
    scorer = AcousticScorer(tmp_path / "model", output, window)
    rng = np.random.default_rng(0)
    for num_frames in (1, 2, 5, 9, 30, 61):
        frames = rng.normal(size=(scorer.dim, num_frames))
        for block in (1, 10):
            stream = ScoreStream(scorer, block)
            parts, begin = [], 0
            while begin < num_frames:
                end = min(begin + int(rng.integers(0, 9)), num_frames)
                parts.append(stream.push(frames[:, begin:end]))
                begin = end
                made = sum(part.shape[1] for part in parts)
                assert end - step * made <= stream.delay + step
            parts.append(stream.finish())
            found = np.concatenate(parts, axis=1)
            np.testing.assert_allclose(found, scorer.score(frames), rtol=1e-5, atol=1e-6)


def test_models_remember_it(tmp_path):
    network = network_of(*TDNN)
    saved(tmp_path / "model", network, subsampling=3, edges=(4, 5))
    assert load_model(tmp_path / "model").feature_records == network.feature_records
