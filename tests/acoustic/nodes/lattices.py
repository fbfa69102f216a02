"""Random lattices, and sequence criteria computed by writing out all of their paths."""

from dataclasses import dataclass

import numpy as np

from readers.minibatches.sequence_layout import SequenceLayout
from readers.minibatches.supervision import LatticeSupervision, PlacedSupervision

SENONES, PHONES = 5, 3
SILENCE = np.array([True, False, True])  # two silence phones


def random_lattice(rng, num_frames=6, num_paths=6, senones=SENONES, reference="inside", name="utt"):
    """A lattice of random paths that share nodes, with arcs without frames; its phone is the senone modulo PHONES."""
    arcs = set()
    for _ in range(num_paths):
        node, time = (0, 0), 0
        while time < num_frames:
            if node[1] == 0 and rng.random() < 0.3:
                arcs.add((node, (time, 1), -1, int(rng.integers(2))))
                node = (time, 1)
            time = min(num_frames, time + int(rng.integers(1, 4)))
            then = (time, 2 if time == num_frames else int(rng.integers(2)))
            arcs.add((node, then, int(rng.integers(senones)), int(rng.integers(2))))
            node = then
    arcs = sorted(arcs)
    nodes = sorted({node for start, end, *_ in arcs for node in (start, end)})
    number = {node: k for k, node in enumerate(nodes)}
    start, end = (np.array([number[arc[k]] for arc in arcs], np.int32) for k in range(2))
    first = np.array([arc[0][0] for arc in arcs], np.int32)
    count = np.array([arc[1][0] - arc[0][0] for arc in arcs], np.int32)
    senone = np.array([arc[2] for arc in arcs], np.int32)
    phone = np.where(senone < 0, -1, senone % PHONES).astype(np.int32)
    scores = rng.normal(0, 1, (2, len(arcs))).astype(np.float32)
    lattice = LatticeSupervision(
        *(name, num_frames, np.zeros(num_frames, np.int32), np.zeros(num_frames, np.int32), float(rng.normal())),
        *(start, end, first, count, senone, phone, scores[0], np.where(count, scores[1], 0).astype(np.float32)),
        *(np.array([arc[3] for arc in arcs], bool), len(nodes), SILENCE, float(rng.normal()), int(rng.integers(4))),
    )
    if reference == "inside":
        lattice.reference_senones[:] = senone[frames_of(lattice, random_path(rng, lattice))]
    else:
        lattice.reference_senones[:] = rng.integers(0, senones, num_frames)
    lattice.reference_phones[:] = lattice.reference_senones % PHONES
    return lattice


def all_paths(lattice):
    """Every path from the first to the last node, as a list of arcs."""
    found, waiting = [], [(0, [])]
    while waiting:
        node, path = waiting.pop()
        if node == lattice.num_nodes - 1:
            found.append(path)
        waiting += [(int(lattice.end_node[a]), [*path, a]) for a in np.flatnonzero(lattice.start_node == node)]
    return found


def random_path(rng, lattice):
    """A path from the first to the last node, as a list of arcs."""
    path, node = [], 0
    while node < lattice.num_nodes - 1:
        path.append(rng.choice(np.flatnonzero(lattice.start_node == node)))
        node = lattice.end_node[path[-1]]
    return path


def frames_of(lattice, path):
    """The arc of each frame of a path."""
    return [a for a in path for _ in range(lattice.num_arc_frames[a])]


@dataclass
class Options:
    """The options of SequenceWithSoftmax, by shorter names."""

    criterion: str = "mmi"
    smoothing: float = 0.95
    threshold: float = 0.0
    amf: float = 14.0
    lmf: float = 14.0
    penalty: float = 0.0
    boost: float = 0.0
    silence: str = "oneClass"
    by_senone: bool = False

    @property
    def settings(self):
        return {
            "sequenceCriterion": self.criterion,
            "hSmoothingWeight": self.smoothing,
            "frameDropThresh": self.threshold,
            "seqGammarAMF": self.amf,
            "seqGammarLMF": self.lmf,
            "seqGammarWordPen": self.penalty,
            "seqGammarBMMIFactor": self.boost,
            "silenceFrames": self.silence,
            "boostBySenone": self.by_senone,
        }


def is_right(lattice, arc, t, by_phone, silence):
    phone, reference = lattice.phone[arc], lattice.reference_phones[t]
    if silence == "ignored" and lattice.silence[phone]:
        return False
    if silence == "oneClass" and lattice.silence[phone] and lattice.silence[reference]:
        return True
    return phone == reference if by_phone else lattice.senone[arc] == lattice.reference_senones[t]


def is_wrong(lattice, arc, t, options):
    if options.silence != "counted" and lattice.silence[lattice.phone[arc]]:
        return False
    return not is_right(lattice, arc, t, not options.by_senone, "counted")


def enumerated(lattice, scores, options):
    """(S, dS / dscores, posterior of each senone) of scores (senones, T), from every path."""
    paths = [(path, frames_of(lattice, path)) for path in all_paths(lattice)]
    logs, right = [], []
    for path, along in paths:
        score = sum(scores[lattice.senone[a], t] for t, a in enumerate(along))
        score += sum(float(lattice.transition_score[a]) + options.lmf * float(lattice.lm_score[a]) for a in path)
        score += options.penalty * sum(lattice.starts_word[a] for a in path)
        logs.append(
            score / options.amf + options.boost * sum(is_wrong(lattice, a, t, options) for t, a in enumerate(along))
        )
        by_phone = options.criterion == "mpe"
        right.append(sum(is_right(lattice, a, t, by_phone, options.silence) for t, a in enumerate(along)))
    logs, right = np.array(logs), np.array(right, float)
    share = np.exp(logs - np.logaddexp.reduce(logs))
    posterior, weighted = np.zeros_like(scores), np.zeros_like(scores)
    for (_, along), one, correct in zip(paths, share, right):
        for t, a in enumerate(along):
            posterior[lattice.senone[a], t] += one
            weighted[lattice.senone[a], t] += one * (correct - share @ right)
    if options.criterion != "mmi":
        return options.amf * (lattice.num_frames - share @ right), -weighted, posterior
    own = (lattice.reference_senones, np.arange(lattice.num_frames))
    value = options.amf * np.logaddexp.reduce(logs) - scores[own].sum() - lattice.reference_transition_score
    value -= options.lmf * lattice.reference_score + options.penalty * lattice.num_reference_words
    gradient = posterior.copy()
    gradient[own] -= 1
    return value, gradient, posterior


def by_hand(layout, labels, z, scores, options):
    """(value, gradient) of SequenceWithSoftmax for a minibatch."""
    total, gradient = 0.0, np.zeros_like(z)
    for slot, step, num_frames, lattice in layout.supervisions:
        columns = (step + np.arange(num_frames)) * layout.num_sequences + slot
        value, own, posterior = enumerated(lattice, scores[:, columns], options)
        softmax = np.exp(z[:, columns]) / np.exp(z[:, columns]).sum(axis=0)
        frames = -(labels[:, columns] * np.log(softmax)).sum()
        total += options.smoothing * value + (1 - options.smoothing) * frames
        own = options.smoothing * own + (1 - options.smoothing) * (softmax - labels[:, columns])
        own[:, posterior[lattice.reference_senones, np.arange(num_frames)] < options.threshold] = 0
        gradient[:, columns] = own
    return total, gradient


def layout_with(lattices_of_slots):
    """A layout of slots that hold the utterances of lattices one after another; shorter slots end in gaps."""
    steps = max(sum(one.num_frames for one in slot) for slot in lattices_of_slots)
    starts, ends, gaps = (np.zeros((steps, len(lattices_of_slots)), bool) for _ in range(3))
    placed = []
    gaps[:] = True
    for s, lattices in enumerate(lattices_of_slots):
        step = 0
        for one in lattices:
            placed.append(PlacedSupervision(s, step, one.num_frames, one))
            starts[step, s] = ends[step + one.num_frames - 1, s] = True
            step += one.num_frames
        gaps[:step, s] = False
    return SequenceLayout(len(lattices_of_slots), steps, starts, ends, gaps, supervisions=tuple(placed))
