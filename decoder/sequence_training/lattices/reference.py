"""Numerator alignments: the states of the transcript, from a forced alignment or from labels, and their scores."""

from collections.abc import Sequence

import numpy as np

from decoder.alignment.aligner import StateAlignment
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder
from decoder.search.lattice import WordLattice
from decoder.sequence_training.lattices.expansion import LinkScores, StateTable
from readers.errors import FormatError, GraphError
from readers.htk.frame_labels import frame_bounds
from readers.htk.mlf import Label
from readers.htk.trees import phone_of
from readers.sources.lattices.state_lattice import StatePath


def lm_scores(lm: LanguageModel, words: Sequence[str]) -> np.ndarray:
    """(n + 1,) ln P of the words and of the end.  Raises GraphError for words that the model cannot have."""
    costs = lm.sentence_costs([words])[0]
    bad = np.flatnonzero(~np.isfinite(costs))
    if bad.size and bad[0] < len(words):
        raise GraphError(f"word '{words[bad[0]]}' has no probability in the language model; expected one")
    return -np.where(np.isfinite(costs), costs, 0.0)  # a model without </s> has no cost at the end


def aligned_reference(
    alignment: StateAlignment, words: Sequence[str], lm: LanguageModel, table: StateTable
) -> StatePath:
    """The reference of a forced alignment.  Raises GraphError as `lm_scores` does, and for phones of another graph."""
    graph = alignment.graph
    position = alignment.position
    phones = {unit.model: phone_of(unit.model) for unit in graph.units}
    unknown = sorted(set(phones.values()) - set(table.phones))
    if unknown:
        raise GraphError(f"phones {', '.join(unknown)} of the transcript are not in the graph; expected its models")
    number = {name: i for i, name in enumerate(table.phones)}
    phone = np.array([number[phones[unit.model]] for unit in graph.units], np.int32)[graph.unit[position]]
    word = np.array([unit.word for unit in graph.units])[graph.unit[position]]

    stays = alignment.end - alignment.start - 1
    transition = (
        np.where(stays > 0, stays * np.where(stays > 0, graph.stay[position], 0.0), 0.0) + graph.leave[position]
    )
    lm_score = -_arc_costs(alignment)
    lm_score[-1] -= graph.final[position[-1]]
    is_spoken = np.array([table.is_spoken(label) for label in words] + [False])  # the last for inserted silence
    starts_word = is_spoken[word] & np.append(True, word[1:] != word[:-1])
    words = [label for label in words if table.is_spoken(label)]
    scores = lm_scores(lm, words)
    lm_score[starts_word] += scores[:-1]
    lm_score[-1] += scores[-1]
    start, end = alignment.start.astype(np.int64), alignment.end.astype(np.int64)
    return StatePath(start, end, graph.row[position], phone, lm_score, -transition, starts_word, tuple(words))


def _arc_costs(alignment: StateAlignment) -> np.ndarray:
    """(n,) cost of the arc into each visit: the cheapest between its position and the one before, or of beginning."""
    graph = alignment.graph
    positions = alignment.position.tolist()
    costs = np.empty(len(positions))
    costs[0] = graph.entry[positions[0]]
    for i in range(1, len(positions)):
        arcs = slice(graph.first_arc[positions[i]], graph.first_arc[positions[i] + 1])
        costs[i] = graph.arc_cost[arcs][graph.arc_source[arcs] == positions[i - 1]].min()
    return costs


def labelled_reference(
    labels: Sequence[Label], where: str, period: int, words: Sequence[str], lm: LanguageModel, table: StateTable
) -> StatePath:
    """The reference of state labels; where: their file and line; period: ticks of 100 ns per frame.

    Raises FormatError for labels that are not states of the graph or do not cover all frames, and GraphError as
    `lm_scores` does.
    """
    bounds = frame_bounds(labels, where, period)
    labels = [label for label, (start, end) in zip(labels, bounds.tolist()) if end > start]
    bounds = bounds[bounds[:, 1] > bounds[:, 0]]
    unknown = sorted({label.name for label in labels} - table.number.keys())
    if unknown or not labels:
        raise FormatError(f"{where}: states {', '.join(unknown[:5])} are not in the graph; expected its states")
    state = np.array([table.number[label.name] for label in labels])
    start, end = bounds.T
    lm_score = np.zeros(len(labels))
    starts_word = np.zeros(len(labels), bool)
    words = [label for label in words if table.is_spoken(label)]
    scores = lm_scores(lm, words)
    lm_score[0] = scores.sum()
    begins = [i for i, label in enumerate(labels) if len(label.aux) > 1]
    spoken = [i for i in begins if not table.silence[table.phone[state[i]]]]
    if len(spoken) != len(words):  # labels without words beside them; only the number of words matters
        spoken = list(range(len(labels)))
    starts_word[spoken[: len(words)]] = True
    return StatePath(
        *(start, end, table.senone[state].astype(np.int32), table.phone[state].astype(np.int32)),
        *(lm_score, -table.transition_costs(state, end - start), starts_word, tuple(words)),
    )


def find_reference(
    lattice: WordLattice, shares: LinkScores, decoder: Decoder, table: StateTable, reference: StatePath
) -> tuple[float, float] | None:
    """The (lm, transition) score of the best path with the words of a reference and its senone in every frame.

    None if the lattice has no such path.
    """
    senones = reference.of_frames(reference.senone)
    words = decoder.graph.words
    count = len(reference.words)
    reached: list[dict[int, tuple[float, float]]] = [{} for _ in range(lattice.num_nodes)]  # by the number of words
    reached[0][0] = 0.0, 0.0
    columns = (lattice.start, lattice.end, lattice.word, shares.lm, shares.transition)
    for start, end, word, lm, transition, states in zip(*(column.tolist() for column in columns), lattice.states):
        if not reached[start]:
            continue
        if any((senones[first:last] != table.senone[state]).any() for state, first, last in states):
            continue
        is_word = word >= 0 and table.is_word[word]
        for number, (lm_before, transition_before) in reached[start].items():
            if is_word and (number == count or reference.words[number] != words[word]):
                continue
            reached_scores = lm_before + lm, transition_before + transition
            best_scores = reached[end].get(number + is_word)
            if best_scores is None or sum(reached_scores) > sum(best_scores):
                reached[end][number + is_word] = reached_scores
    return reached[-1].get(count)
