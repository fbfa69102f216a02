"""Frame classification by a trained network: error rate and phone confusions."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from acoustic.engine.engine import Engine
from acoustic.network.model_file import load_model
from acoustic.training.reporting.plots import new_figure, save_figure
from readers.config.config import Config
from readers.minibatches.base import open_reader

BLOCK = 4096  # frames at a time
LABELS = "labels"  # stream of the states


def classified_frames(model: Path, node: str, reader: Config) -> tuple[np.ndarray, np.ndarray]:
    """Return (classes, guesses), both (N,): the state of every frame, and the row of the largest output of `node`.

    reader: a reader block with a stream `labels`.
    """
    network = load_model(model)
    engine = Engine(network, [node])
    classes, guesses = [], []
    with open_reader(reader) as source:
        for minibatch in source.minibatches(0, BLOCK, 0):
            engine.forward({name: minibatch.matrices[name] for name in engine.inputs})
            guesses.append(network.backend.to_host(engine.value(node)).argmax(axis=0))
            classes.append(minibatch.classes[LABELS])
    return np.concatenate(classes).astype(np.int64), np.concatenate(guesses)


def phone_confusions(
    classes: np.ndarray, guesses: np.ndarray, states: Sequence[str], state_map: Mapping[str, Sequence[str]]
) -> np.ndarray:
    """Return (phones, phones) int64: frames of the row's phone that were classified as the column's.

    Phones are in the order of the state map.
    """
    phone_of_state = {state: number for number, names in enumerate(state_map.values()) for state in names}
    phone = np.array([phone_of_state[state] for state in states])
    counts = np.zeros((len(state_map), len(state_map)), np.int64)
    np.add.at(counts, (phone[classes], phone[guesses]), 1)
    return counts


def draw_confusions(panels: Sequence[tuple[str, np.ndarray]], phones: Sequence[str], path: Path) -> None:
    """Write a PNG with phone confusion matrices side by side, as in Fig. 1.4 of the book; panels: (title, counts).

    Colours show the square root of each row's shares, which makes small off-diagonal values visible.  Phones that do
    not occur are left out.
    """
    seen = np.flatnonzero(sum(counts.sum(axis=0) + counts.sum(axis=1) for _, counts in panels))
    phones = [phones[number] for number in seen]
    size = 2.0 + 0.11 * len(phones)
    figure = new_figure(len(panels) * size + 1, size)
    for axes, (title, counts) in zip(np.atleast_1d(figure.subplots(1, len(panels))), panels):
        counts = counts[np.ix_(seen, seen)]
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        shown = axes.imshow(np.sqrt(shares), cmap="viridis", vmin=0, vmax=1)
        wrong = 1 - np.trace(counts) / max(counts.sum(), 1)
        axes.set_title(f"{title}: {100 * wrong:.1f} % of frames assigned to another phone", fontsize=9)
        axes.set_xticks(range(len(phones)), phones, rotation=90, fontsize=5)
        axes.set_yticks(range(len(phones)), phones, fontsize=5)
        axes.set_xlabel("taken for")
        axes.set_ylabel("labelled")
    figure.colorbar(shown, ax=figure.axes, shrink=0.6, label="square root of the share of the row")
    save_figure(figure, path, dpi=130)
