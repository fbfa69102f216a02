"""One path through the graph: HMM states and word arcs with their costs, and the times of its words."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from decoder.graph.compiled_graph import DecodingGraph, WordBoundary
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from decoder.search.kernels.advance import ending_cost
from decoder.search.kernels.search_lm import SearchLM, history_of, ngram_step, parts_of, second_step
from decoder.search.kernels.tables import SearchGraph, Settings
from decoder.search.kernels.token_store import NODE_LABEL, Trace
from readers.common.arrays import Float32Array, Float64Array, Integer
from readers.common.kernels import njit


@dataclass(frozen=True)
class SearchPath:
    """A path of n steps.

    The cost of a position includes the arc into it, its self-loops and its forward transition. The costs sum to that of
    the path.

    Attributes
    ----------
    label : (n,) int32
        Position p >= 0, or -2 - a for word arc a, or -1 for the end of the utterance.  The arc after the last one is
        the beginning of a new sentence.
    start, end : (n,) int32
        Frames, end exclusive; equal for words.
    acoustic : (n,) float64
        Log-likelihood, natural logarithm, unscaled.
    lm : (n,) float64
        ln P of the word, unscaled.
    cost : (n,) float64
        Cost of the step, -ln, less the bonus of hotwords.
    """

    label: np.ndarray
    start: np.ndarray
    end: np.ndarray
    acoustic: np.ndarray
    lm: np.ndarray
    cost: np.ndarray

    @classmethod
    def empty(cls) -> "SearchPath":
        """A path without steps."""
        numbers = np.zeros(0, np.int32)
        values = np.zeros(0)
        return cls(numbers, numbers, numbers, values, values, values)


class PathSteps(NamedTuple):
    """The columns of a SearchPath that the search has recorded: label, and start and end in frames, all (n,) i4."""

    label: np.ndarray
    start: np.ndarray
    end: np.ndarray


class WordTimes(NamedTuple):
    """A word of a hypothesis with its times.

    Attributes
    ----------
    text : str
        The word as it is written.
    start, end : int
        Frames, end exclusive.
    cost : float
        Cost of its states and of its word arc, -ln.
    """

    text: str
    start: int
    end: int
    cost: float


def trace_path(
    graph: SearchGraph,
    lm: SearchLM,
    settings: Settings,
    trace: Trace,
    end: int,
    frames: np.ndarray,
) -> SearchPath:
    """Follow the back pointers from step `end`; frames (T, K) f4 as for the search, lm as it leaves it."""
    steps = steps_back(trace, end, frames.shape[0], -1)
    begin = (settings.start, settings.lm_start)
    columns, _, _ = step_costs(graph, lm, settings, steps, frames, 0, *begin, False)
    return SearchPath(*steps, *columns)


@njit(cache=True, nogil=True)
def steps_back(trace: Trace, end: Integer, num_frames: Integer, begin: Integer) -> PathSteps:
    """PathSteps after step `begin` (-1: from the trace's root) to step `end`; num_frames: where the path ends."""
    count = 0
    record = np.int64(end)
    while record != begin:
        count += trace.steps[record]["label"] != NODE_LABEL or record == end
        record = np.int64(trace.steps[record]["previous"])
    label = np.empty(count, np.int32)
    start = np.empty(count, np.int32)
    stop = np.empty(count, np.int32)
    record = np.int64(end)
    i = count - 1
    until = num_frames
    while record != begin:
        if trace.steps[record]["label"] != NODE_LABEL or record == end:
            label[i] = trace.steps[record]["label"]
            start[i] = trace.steps[record]["frame"]
            stop[i] = until
            if label[i] < 0:
                stop[i] = start[i]
            until = start[i]
            i -= 1
        record = np.int64(trace.steps[record]["previous"])
    return PathSteps(label, start, stop)


@njit(cache=True, nogil=True)
def step_costs(
    graph: SearchGraph,
    lm: SearchLM,
    settings: Settings,
    steps: PathSteps,
    frames: Float32Array,
    first_frame: Integer,
    state: Integer,
    history: Integer,
    goes_on: bool,
) -> tuple[tuple[Float64Array, Float64Array, Float64Array], Integer, Integer]:
    """The other columns of a SearchPath, acoustic, lm and cost, and the acceptor state and LM history that it ends in.

    steps: PathSteps; frames (n, K) f4: the scores from frame first_frame on; state, history: where the path begins;
    goes_on: whether the path leaves its last position; an unfinished path may end inside it.
    """
    label, start, stop = steps
    count = label.shape[0]
    acoustic = np.zeros(count)
    ln_lm = np.zeros(count)
    cost = np.zeros(count)
    state = np.int64(state)
    history = np.int64(history)
    new_sentence = -2 - graph.words.shape[0]
    for i in range(count):
        if label[i] >= 0:
            position = graph.positions[label[i]]
            arc = graph.states[state]["first_arc"]
            while graph.arcs[arc]["target"] != label[i]:
                arc += 1
            acoustic[i] = frames[start[i] - first_frame, graph.arcs[arc]["row"]]
            for t in range(start[i] + 1, stop[i]):
                acoustic[i] += frames[t - first_frame, position["row"]]
            cost[i] = graph.arcs[arc]["cost"] - settings.acweight * acoustic[i]
            if stop[i] > start[i] + 1:  # avoids 0 * inf
                cost[i] += (stop[i] - start[i] - 1) * np.float64(position["self_cost"])
            if i < count - 1 or goes_on:
                cost[i] += position["forward_cost"]
            state = np.int64(position["exit"])
        elif label[i] == NODE_LABEL:
            cost[i], ln_lm[i], _ = ending_cost(graph, lm, settings, state, history)
        elif label[i] == new_sentence:
            cost[i], ln_lm[i], _ = ending_cost(graph, lm, settings, state, history)
            cost[i] += settings.new_sentence
            state = np.int64(settings.start)
            history = np.int64(settings.lm_start)
        else:
            word = graph.words[-2 - label[i]]
            lm_state, second_state = parts_of(lm.second, history)
            second_cost, second_state = second_step(lm.second, second_state, -2 - label[i])
            ln_lm[i], lm_state = ngram_step(lm.ngrams, settings.lm_end, lm_state, np.int64(word["lm"]))
            cost[i] = word["cost"] - word["paid"] + second_cost - settings.lm_scale * ln_lm[i]
            history = history_of(lm.second, lm_state, second_state)
            state = np.int64(word["target"])
    return (acoustic, ln_lm, cost), state, history


def begins_model(model: int, index: int, last_model: int, last_index: int, silent: bool) -> bool:
    """Whether an HMM state begins a new instance of a phone model, given the state before it on the path.

    Models are left-to-right, so a state that is not to the right of the last one begins a new instance.  Silence may go
    back (HTK's silence model does), so repeated silence counts as one instance.
    """
    return bool(model != last_model or (index <= last_index and not silent))


class Instance(NamedTuple):
    """A phone model on a path: steps first .. last-1, word arcs among them excluded."""

    first: int
    last: int
    model: int


class WordSteps(NamedTuple):
    """The steps of a path that belong to one word: the states among first .. last-1, and its word arc, step `label`."""

    word: int
    first: int
    last: int
    label: int


def model_instances(path: SearchPath, graph: DecodingGraph, silence: np.ndarray) -> tuple[list[Instance], list[int]]:
    """The phone models of a path in order, and for each step the number of its model (for a word arc: the next one)."""
    hmm = graph.arrays.position_state[np.maximum(path.label, 0)]
    rows = zip(path.label.tolist(), graph.state_model[hmm].tolist(), graph.state_index[hmm].tolist())
    instances: list[Instance] = []
    owner: list[int] = []
    last_index = 0
    new_sentence = -2 - graph.arrays.word_label.shape[0]
    begins = True
    for step, (label, model, index) in enumerate(rows):
        if label < 0:
            owner.append(len(instances))
            begins |= label == new_sentence
            continue
        if begins or begins_model(model, index, instances[-1].model, last_index, bool(silence[model])):
            instances.append(Instance(step, step + 1, model))
            begins = False
        else:
            instances[-1] = Instance(instances[-1].first, step + 1, model)
        owner.append(len(instances) - 1)
        last_index = index
    return instances, owner


def word_steps(path: SearchPath, graph: DecodingGraph, silence: np.ndarray) -> list[WordSteps]:
    """The steps that belong to each word arc.

    A word's arc stands before its last phone or inside it (CNTK book 6.1.1), so the word ends with the model that
    contains the next HMM state.  It begins after the previous word and after any silence, unless all of it is silence.
    """
    instances, owner = model_instances(path, graph, silence)
    labels = path.label.tolist()
    if graph.word_boundary is not None:
        return _bounded_steps(path, graph, instances)
    found = []
    # Steps before `begin` and instances before `used` belong to earlier words.
    begin = 0
    used = 0
    new_sentence = -2 - graph.arrays.word_label.shape[0]
    for label in (step for step, what in enumerate(labels) if new_sentence < what <= -2):
        following = label + 1
        while following < len(labels) and new_sentence < labels[following] < 0:
            following += 1
        end = owner[following] + (labels[following] >= 0) if following < len(labels) else len(instances)
        own = range(used, max(used, end))
        voiced = [i for i in own if not silence[instances[i].model]]
        last = instances[end - 1].last if end else begin
        first = instances[voiced[0] if voiced else own[-1]].first if own else last
        word = int(graph.arrays.word_label[-2 - labels[label]])
        found.append(WordSteps(word, first, last, label))
        begin = last
        used = max(used, end)
    return found


def _bounded_steps(path: SearchPath, graph: DecodingGraph, instances: list[Instance]) -> list[WordSteps]:
    """The steps of the words of a graph whose phone models tell their place in words.

    The first word label belongs to the first word of the phones, and so on, wherever labels stand, as in Kaldi's
    lattice-align-words.  A label whose phones an unfinished path has not reached has no steps.
    """
    assert graph.word_boundary is not None
    spans: list[tuple[int, int]] = []
    is_open = False
    for instance in instances:
        place = graph.word_boundary[instance.model]
        if place == WordBoundary.NONWORD:
            is_open = False
            continue
        if is_open and place in (WordBoundary.INTERNAL, WordBoundary.END):
            spans[-1] = spans[-1][0], instance.last
        else:
            spans.append((instance.first, instance.last))
        is_open = place in (WordBoundary.BEGIN, WordBoundary.INTERNAL)
    words: list[WordSteps] = []
    new_sentence = -2 - graph.arrays.word_label.shape[0]
    for step, label in enumerate(path.label.tolist()):
        if not new_sentence < label <= -2:
            continue
        word = int(graph.arrays.word_label[-2 - label])
        if is_written(graph, word):
            first, last = spans[len(words)] if len(words) < len(spans) else (len(path.label), len(path.label))
            words.append(WordSteps(word, first, last, step))
    return words


def timed_words(path: SearchPath, graph: DecodingGraph, silence: np.ndarray) -> list[tuple[WordSteps, WordTimes]]:
    """The words of a path with their times, except those that are not written (see `is_written`)."""
    words = []
    starts = path.start.tolist()
    ends = path.end.tolist()
    costs = path.cost.tolist()
    for steps in word_steps(path, graph, silence):
        output = graph.outputs[steps.word]
        if not is_written(graph, steps.word):
            continue
        inside = [step for step in range(steps.first, steps.last) if path.label[step] >= 0]
        start = end = ends[max(steps.last - 1, 0)]  # a word without states of its own
        if inside:
            start, end = starts[inside[0]], ends[inside[-1]]
        cost = sum(costs[step] for step in inside) + costs[steps.label]
        words.append((steps, WordTimes(output, start, end, cost)))
    return words


def is_written(graph: DecodingGraph, word: int) -> bool:
    """Whether a word has any output; a sentence mark has only if its output differs from its name."""
    output = graph.outputs[word]
    name = graph.words[word]
    return bool(output) and not (name in (SENTENCE_START, SENTENCE_END) and output == name)


def word_arcs(label: np.ndarray, graph: DecodingGraph) -> np.ndarray:
    """The word arcs among the labels of a path, in order."""
    arcs = -2 - label[label <= -2]
    return arcs[arcs < graph.arrays.word_label.shape[0]]  # the arc after the last one begins a new sentence


def written_words(path: SearchPath, graph: DecodingGraph) -> list[str]:
    """The output of a path's words: the words of `word_times` without their times, which is much faster."""
    words = graph.arrays.word_label[word_arcs(path.label, graph)].tolist()
    return [graph.outputs[word] for word in words if is_written(graph, word)]


class PhoneTimes(NamedTuple):
    """A phone model of a hypothesis with its times.

    Attributes
    ----------
    model : str
        Its name, in context: `b-a+c`.
    start, end : int
        Frames, end exclusive.
    is_silence : bool
    """

    model: str
    start: int
    end: int
    is_silence: bool


def phone_times(path: SearchPath, graph: DecodingGraph, silence: np.ndarray) -> list[PhoneTimes]:
    """The phone models of a path with their times."""
    phones = []
    for first, last, model in model_instances(path, graph, silence)[0]:
        states = np.flatnonzero(path.label[first:last] >= 0) + first
        start, end = int(path.start[states[0]]), int(path.end[states[-1]])
        phones.append(PhoneTimes(graph.models[model], start, end, bool(silence[model])))
    return phones


def word_times(path: SearchPath, graph: DecodingGraph, silence: np.ndarray) -> list[WordTimes]:
    """The times of `timed_words`."""
    return [times for _, times in timed_words(path, graph, silence)]
