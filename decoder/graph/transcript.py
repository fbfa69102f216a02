"""The alignment graph of one transcript: its HMM positions and the arcs between them.

    slots     silence?  word  (silence | short pause)?  word ...  silence?

Each slot has alternatives (a word's pronunciations), each a chain of phones; with triphones a phone's model depends on
its neighbours, across words too, where short pause is not a neighbour.  Every alternative has its own positions, so
that a path identifies it.  Models have the topology of PhoneModels; models that can be passed without a frame (tee
models) become arcs from their predecessors to their successors.

If words have costs of silence (`SilenceCosts`), each decides whether it follows; short pause counts as none.

A word without phones is a loop over all phones and silence, which takes any stretch of speech.  The states of its
phones have free contexts: their scores are the best of all contexts.  To the words beside the loop, its first and last
phones are neighbours like others.
"""

import copy
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from decoder.graph.lexicon import SilenceCosts, silences_of
from decoder.graph.options import SHORT_PAUSE, GraphOptions
from decoder.graph.phone_models import FreePhone, PhoneModels
from decoder.graph.triphone import has_context
from decoder.lm.language_model import SENTENCE_END, SENTENCE_START
from readers.common.faults import listed
from readers.errors import GraphError
from readers.htk.dictionary import Pronunciation
from readers.htk.trees import split_triphone

BEGIN = -1  # source of arcs into a first position
LOOP = "spn"  # model of a loop over all phones, as MFA and Kaldi call the phone of sounds and unknown words
Flow = dict[int, float]  # possible predecessor (position or BEGIN) -> cost after it
Leaving = dict[tuple[str | None, str | None], Flow]  # by the last phone and the phone after it
Hubs = dict[tuple[str | None, str | None, bool], Flow]  # by the phones before and after, and whether silence is beside


@dataclass(frozen=True)
class TranscriptUnit:
    """One phone model of a transcript's graph.

    Attributes
    ----------
    model : str
    word : int
        Index of the label in the transcript, -1 for inserted silence.
    phones : tuple of str
        The pronunciation of which the phone is a part; none of a loop over all phones.
    output : str
        How the word is written, "" for not at all.
    """

    model: str
    word: int
    phones: tuple[str, ...]
    output: str


@dataclass(frozen=True)
class TranscriptGraph:
    """A graph of P positions, approximately in the order of a path, and A arcs; costs are -ln, inf if impossible.

    Attributes
    ----------
    units : list of TranscriptUnit
    state : list of str
        Name of each position's HMM state.
    row, unit : (P,) int32
        Row of the scores, and index of the phone model.  Rows from `TranscriptGraphs.num_rows` on are those of states
        with free contexts, in the order of `TranscriptGraphs.free_phones`.
    stay, leave : (P,) float64
        Cost of the self-loop and of the forward transition.
    first_arc : (P + 1,) int64
        The arcs into position p are first_arc[p] .. first_arc[p + 1] - 1, from the positions arc_source.
    arc_source : (A,) int32
    arc_cost : (A,) float64
        Cost of the arc without the forward transition.
    entry, final : (P,) float64
        Cost of beginning in the position, and of ending after it has been left.
    to_end : (P,) int32
        Least number of frames after the first one in the position.
    """

    units: list[TranscriptUnit]
    state: list[str]
    row: np.ndarray
    unit: np.ndarray
    stay: np.ndarray
    leave: np.ndarray
    first_arc: np.ndarray
    arc_source: np.ndarray
    arc_cost: np.ndarray
    entry: np.ndarray
    final: np.ndarray
    to_end: np.ndarray

    @property
    def min_frames(self) -> int:
        """The least number of frames of a path."""
        return 1 + int(self.to_end[np.isfinite(self.entry)].min(initial=np.iinfo(np.int32).max - 1))


@dataclass(frozen=True)
class _Slot:
    """A place in the transcript; an alternative is (phones, cost, output), `skip` the cost of leaving the place out.

    silences: of the alternatives of a word, if the dictionary has probabilities of silence.
    """

    alternatives: list[tuple[tuple[str, ...], float, str]]
    word: int
    skip: float | None
    silences: Sequence[SilenceCosts] = ()


class TranscriptGraphs:
    """Builds the alignment graphs of transcripts.

    Parameters
    ----------
    models : PhoneModels
    dictionary : sequence of Pronunciation, optional
        Without it transcripts consist of phones: model names, or the centre phones of triphones.
    rows : mapping of str to int, optional
        State -> row of the scores, tied states by their senone.  By default in the order of models.senones.
    options : GraphOptions, optional
        silence None takes that of the dictionary's <s>, or `sil` if there is such a model; optional_silence None means
        yes with a dictionary, no for phones.
    silence_cost : float
        Cost (-ln) of each inserted silence.

    Raises
    ------
    GraphError
        For a state without a row, and options that do not fit.
    """

    def __init__(
        self,
        models: PhoneModels,
        dictionary: Sequence[Pronunciation] | None = None,
        rows: Mapping[str, int] | None = None,
        options: GraphOptions | None = None,
        silence_cost: float = 0.0,
    ):
        self.models = models
        self.dictionary = dictionary
        self.silence_cost = silence_cost
        self.frame_cost = 0.0
        self.loops: frozenset[str] = frozenset()
        self.options = options or GraphOptions()
        self.context = has_context(models)
        self.rows = models.rows_of(rows)
        self.num_rows = max(self.rows.values()) + 1
        pause = self.options.short_pause if self.options.short_pause is not None else SHORT_PAUSE
        self.pause = pause if pause in models.states else None
        self.silence = self._silence(dictionary)
        self.silences = silences_of(dictionary or (), self.options) if self.silence else {}
        self.words = None if dictionary is None else self._words(dictionary)
        optional_silence = self.options.optional_silence
        self.insert_silence = dictionary is not None if optional_silence is None else optional_silence
        if optional_silence and self.silence is None:
            raise GraphError(
                "alignment: no silence model for optional silence; expected its name, or no optional silence"
            )
        self.insert_silence = self.insert_silence and self.silence is not None
        self.phones = {split_triphone(name)[1] if self.context else name for name in models.states}  # such as ax-h

    def _silence(self, dictionary: Sequence[Pronunciation] | None) -> str | None:
        silence = self.options.silence
        if silence is None:
            marks = [entry.phones for entry in dictionary or () if entry.word == SENTENCE_START]
            silence = marks[0][0] if len(marks) == 1 and len(marks[0]) == 1 else "sil"
            if silence not in self.models.states:
                return None
        if silence not in self.models.states:
            raise GraphError(f"silence: no model '{silence}' in the HMM set; expected one of its models")
        return silence

    def _words(self, dictionary: Sequence[Pronunciation]) -> dict[str, list[tuple[tuple[str, ...], float, str]]]:
        words: dict[str, dict[tuple[tuple[str, ...], str], float]] = {}
        for entry in dictionary:
            phones = tuple(entry.phones)
            is_mark = entry.word in (SENTENCE_START, SENTENCE_END)
            if is_mark and not phones:
                continue  # only there for its probabilities of silence
            while self.context and len(phones) > 1 and phones[-1] in (self.silence, self.pause):
                phones = phones[:-1]  # optional between words anyway
            cost = -self.options.pronunciation_scale * math.log(entry.probability or 1.0)
            key = (phones, entry.output_word)
            pronunciations = words.setdefault(entry.word, {})
            if cost < pronunciations.get(key, math.inf):
                pronunciations[key] = cost
                if (entry.word, tuple(entry.phones)) in self.silences and not is_mark:
                    self.silences[entry.word, phones] = self.silences[entry.word, tuple(entry.phones)]
        return {
            word: [(p, cost, out) for (p, out), cost in pronunciations.items()]
            for word, pronunciations in words.items()
        }

    def with_words(
        self, entries: Sequence[Pronunciation], loops: Iterable[str] = (), frame_cost: float = 0.0
    ) -> "TranscriptGraphs":
        """Return one with further words and pronunciations; everything else is shared.

        loops: words that are loops over all phones; frame_cost: of each frame of a loop, -ln.
        """
        changed = copy.copy(self)
        changed.loops, changed.frame_cost = self.loops.union(loops), frame_cost
        if self.dictionary is not None:
            changed.dictionary = [*self.dictionary, *entries]
        words = dict(self.words or {})
        for word, pronunciations in self._words(entries).items():
            words[word] = [*words.get(word, ()), *pronunciations]
        changed.words = {**words, **{word: [((), 0.0, word)] for word in loops}}
        return changed

    @cached_property
    def free_phones(self) -> list[FreePhone]:
        """The phones of loops, silence among them."""
        return [free for free in self.models.all_free_phones if free.phone != self.pause]

    def graph(self, transcript: Sequence[str]) -> TranscriptGraph:
        """The graph of a transcript.

        Raises GraphError for words without a pronunciation, or phones without a model.
        """
        slots = self._slots(list(transcript))
        return _Builder(self).build(slots, self._follows(slots))

    def _slots(self, transcript: list[str]) -> list[_Slot]:
        if not transcript:
            raise GraphError("transcript: no labels; expected at least one word or phone")
        if self.words is not None:
            _refuse([name for name in transcript if name not in self.words], "words", "the dictionary")
            spoken = [self.words[name] for name in transcript]
            phones = [phone for choices in spoken for names, _, _ in choices for phone in names]
            for name, choices in zip(transcript, spoken):
                if name not in self.loops and not all(choice[0] for choice in choices):
                    raise GraphError(f"dictionary word '{name}': no phones; expected at least one")
            _refuse([phone for phone in phones if phone not in self.phones], "phones", "the HMM set")
        else:
            phone_names = self.models.states.keys() | self.phones
            _refuse([name for name in transcript if name not in phone_names], "phones", "the HMM set")
            spoken = [[((name,), 0.0, name)] for name in transcript]
        if not self.insert_silence or self.silence is None:
            return [_Slot(choices, i, None) for i, choices in enumerate(spoken)]
        beside = [
            [self.silences.get((word, phones), SilenceCosts()) for phones, _, _ in choices] if self.silences else []
            for word, choices in zip(transcript, spoken)
        ]
        words = [_Slot(choices, i, None, costs) for i, (choices, costs) in enumerate(zip(spoken, beside))]
        p = None if self.silences else self.options.silence_probability
        silent, nothing = (0.0, 0.0) if p is None else (-math.log(p), -math.log1p(-p))
        silent += self.silence_cost
        at_ends = _Slot([((self.silence,), silent, "")], -1, nothing)
        between: list[tuple[tuple[str, ...], float, str]] = [((self.silence,), silent, "")]
        if self.pause:
            between.append(((self.pause,), nothing, ""))
        slots = [at_ends]
        for slot in words:
            slots += [slot, _Slot(between, -1, nothing)]
        return [*slots[:-1], at_ends]

    def _follows(self, slots: Sequence[_Slot]) -> list[set[str | None]]:
        """The phones that can come next, as context, before each slot and after the last."""
        follows: list[set[str | None]] = [{self.neighbour(self.silence)}]
        for slot in reversed(slots):
            spoken = [phones for phones, _, _ in slot.alternatives if phones != (self.pause,)]
            any_phone = [] if all(spoken) else [free.phone for free in self.free_phones]
            first = {self.neighbour(phone) for phones in spoken for phone in phones[:1] or any_phone}
            passes = slot.skip is not None or any(phones == (self.pause,) for phones, _, _ in slot.alternatives)
            follows.append(first | follows[-1] if passes else first)
        return follows[::-1]

    def neighbour(self, phone: str | None) -> str | None:
        """The phone as context of its neighbours; None where models do not depend on context."""
        return split_triphone(phone)[1] if self.context and phone is not None else None

    def model(self, left: str | None, phone: str, right: str | None) -> str:
        """The model of a phone in its context."""
        if phone in self.models.states:
            return phone
        name = f"{left}-{phone}+{right}"
        if name not in self.models.states:
            raise GraphError(f"HMM set: no model '{name}'; expected every triphone that the transcript's words make")
        return name

    def topology_of(self, model: str) -> list[tuple[int, int, float]]:
        """(from, to, cost) of a model; 0 is the entry, one more than its number of states the exit."""
        any_order = self.options.silence_topology == "any-order"
        if any_order and model == self.silence and model not in self.models.topology:
            last = len(self.models.states[model])
            jumps = [(i, j, 0.0) for i in range(1, last + 1) for j in range(1, last + 1) if i != j]
            return [(0, 1, 0.0), *jumps, (last, last + 1, 0.0)]
        return [(start, end, -ln) for start, end, ln in self.models.topology_of(model)]


class _Builder:
    """Builds one graph slot by slot; `hubs`: (phone before, phone after, silence) -> the Flow between them.

    silence: if words have costs of silence, whether it stands there, which the word before it has decided; else False.
    """

    def __init__(self, graphs: TranscriptGraphs):
        self.graphs = graphs
        self.has_silences = graphs.insert_silence and bool(graphs.silences)
        self.units: list[TranscriptUnit] = []
        self.states: list[tuple[str, int, int]] = []  # name, unit, row
        self.arcs: list[tuple[int, int, float]] = []  # source or BEGIN, target, cost

    def build(self, slots: Sequence[_Slot], follows: Sequence[set[str | None]]) -> TranscriptGraph:
        start = self.graphs.neighbour(self.graphs.silence)
        at_start, at_end = (
            self.graphs.silences.get((mark, ()), SilenceCosts()) for mark in (SENTENCE_START, SENTENCE_END)
        )
        hubs: Hubs = {(start, first, False): {BEGIN: at_start.to_speech} for first in follows[0]}
        if self.has_silences:
            hubs |= {(start, first, True): {BEGIN: at_start.to_silence} for first in follows[0]}
        for slot, after in zip(slots, follows[1:]):
            hubs = self._slot(slot, hubs, after)
        final: Flow = {}
        for (_, _, is_silent), flow in hubs.items():
            _merge(final, flow, at_end.from_silence if is_silent else at_end.from_speech)
        return self._finish(final)

    def _slot(self, slot: _Slot, hubs: Hubs, after: set[str | None]) -> Hubs:
        neighbour = self.graphs.neighbour
        reached: Hubs = {}
        spoken = [(key, flow) for key, flow in hubs.items() if key[1] in after and not key[2]]
        if slot.skip is not None:
            for key, flow in spoken:
                _merge(reached.setdefault(key, {}), flow, slot.skip)
        for number, (phones, cost, output) in enumerate(slot.alternatives):
            if phones == (self.graphs.pause,) and slot.word < 0:
                for key, flow in spoken:
                    unit = TranscriptUnit(phones[0], slot.word, phones, output)
                    _merge(reached.setdefault(key, {}), self._unit(unit, _plus(flow, cost)))
                continue
            silences = slot.silences[number] if slot.silences else SilenceCosts()
            arriving: dict[str | None, dict[str | None, Flow]] = {}  # by the phone after and the phone before
            for (left, right, is_silent), flow in hubs.items():
                if slot.word >= 0 or is_silent == self.has_silences:
                    correction = silences.from_silence if is_silent else silences.from_speech
                    _merge(arriving.setdefault(right, {}).setdefault(left, {}), flow, correction + cost)
            unit = TranscriptUnit(LOOP, slot.word, phones, output)
            if phones:
                flows = self._phones(unit, arriving.get(neighbour(phones[0]), {}), after)
            else:
                flows = self._loop(unit, arriving, after)
            for (last, right), flow in flows.items():
                if slot.word < 0:
                    _merge(reached.setdefault((last, right, self.has_silences), {}), flow)
                    continue
                _merge(reached.setdefault((last, right, False), {}), flow, silences.to_speech)
                if self.has_silences:
                    _merge(reached.setdefault((last, right, True), {}), flow, silences.to_silence)
        return reached

    def _phones(self, word: TranscriptUnit, arriving: Mapping[str | None, Flow], after: set[str | None]) -> Leaving:
        """Add the phones of a pronunciation; arriving: by the phone before it, after: the phones that may follow."""
        neighbour = self.graphs.neighbour
        flows: dict[str | None, Flow] = {}
        for i, phone in enumerate(word.phones):
            rights = after if i == len(word.phones) - 1 else {neighbour(word.phones[i + 1])}
            if phone in self.graphs.models.states:  # a model without context
                flows = dict.fromkeys(rights, self._unit(replace(word, model=phone), _union(arriving.values())))
            else:
                flows = {}
                for right in sorted(rights, key=str):
                    for left, flow in arriving.items():
                        unit = replace(word, model=self.graphs.model(left, phone, right))
                        _merge(flows.setdefault(right, {}), self._unit(unit, flow))
            arriving = {neighbour(phone): _union(flows.values())}
        return {(neighbour(word.phones[-1]), right): flow for right, flow in flows.items()}

    def _loop(
        self, unit: TranscriptUnit, arriving: Mapping[str | None, Mapping[str | None, Flow]], after: set[str | None]
    ) -> Leaving:
        """Add a loop over all phones, of which each is entered where it may follow; arriving: by it."""
        graphs = self.graphs
        number = len(self.units)
        self.units.append(unit)
        row = graphs.num_rows
        firsts, leaving = [], []
        for free in graphs.free_phones:
            entering = _union(arriving.get(graphs.neighbour(free.phone), {}).values())
            firsts.append(len(self.states))
            rows = range(row, row + len(free.states))
            leaving.append(self._states(free.model, number, rows, entering))
            row = rows.stop
        again = _union(leaving)
        for free, first in zip(graphs.free_phones, firsts):
            for start, end, cost in graphs.topology_of(free.model):
                if start == 0 and end <= len(free.states):
                    self.arcs += [(source, first + end - 1, cost + before) for source, before in again.items()]
        flows: Leaving = {}
        for free, flow in zip(graphs.free_phones, leaving):
            for right in after:
                _merge(flows.setdefault((graphs.neighbour(free.phone), right), {}), flow)
        return flows

    def _unit(self, unit: TranscriptUnit, entering: Flow) -> Flow:
        """Add a model; returns the Flow that leaves it."""
        if not entering:
            return {}
        self.units.append(unit)
        rows = [self.graphs.rows[name] for name in self.graphs.models.states[unit.model]]
        return self._states(unit.model, len(self.units) - 1, rows, entering)

    def _states(self, model: str, unit: int, rows: Iterable[int], entering: Flow) -> Flow:
        """Add the states of a model with their rows; returns the Flow that leaves it."""
        first = len(self.states)
        names = self.graphs.models.states[model]
        self.states += [(name, unit, row) for name, row in zip(names, rows, strict=True)]
        leaving: Flow = {}
        for start, end, cost in self.graphs.topology_of(model):
            sources = entering if start == 0 else {first + start - 1: 0.0}
            if end == len(names) + 1:
                _merge(leaving, sources, cost)
            else:
                self.arcs += [(source, first + end - 1, cost + before) for source, before in sources.items()]
        return leaving

    def _finish(self, final: Flow) -> TranscriptGraph:
        graphs = self.graphs
        size = len(self.states)
        names = [name for name, _, _ in self.states]
        pairs = graphs.models.transitions
        costs = np.zeros((size, 2)) if pairs is None else -np.array([pairs[name] for name in names]).reshape(-1, 2)
        entry = np.full(size, np.inf)
        ending = np.full(size, np.inf)
        inner: list[tuple[int, int, float]] = []
        for source, target, cost in self.arcs:
            if source == BEGIN:
                entry[target] = min(entry[target], cost)
            else:
                inner.append((target, source, cost))
        for source, cost in final.items():
            if source != BEGIN:
                ending[source] = cost
        inner.sort()
        targets = np.array([arc[0] for arc in inner], dtype=np.int64)
        return TranscriptGraph(
            units=self.units,
            state=[name if row < graphs.num_rows else LOOP for name, _, row in self.states],
            row=np.array([row for _, _, row in self.states], dtype=np.int32),
            unit=np.array([unit for _, unit, _ in self.states], dtype=np.int32),
            stay=costs[:, 0].copy(),
            leave=costs[:, 1].copy(),
            first_arc=np.searchsorted(targets, np.arange(size + 1)).astype(np.int64),
            arc_source=np.array([arc[1] for arc in inner], dtype=np.int32),
            arc_cost=np.array([arc[2] for arc in inner], dtype=np.float64),
            entry=entry,
            final=ending,
            to_end=_frames_to_end(size, inner, np.flatnonzero(np.isfinite(ending)).tolist()),
        )


def _frames_to_end(size: int, arcs: list[tuple[int, int, float]], last: list[int]) -> np.ndarray:
    """(P,) i4: the least number of arcs from each position to one of the last; a large number if there is no path."""
    before: list[list[int]] = [[] for _ in range(size)]
    for target, source, _ in arcs:
        before[target].append(source)
    distance = np.full(size, np.iinfo(np.int32).max - 1, dtype=np.int32)
    distance[last] = 0
    waiting = deque(last)
    while waiting:
        position = waiting.popleft()
        for source in before[position]:
            if distance[source] > distance[position] + 1:
                distance[source] = distance[position] + 1
                waiting.append(source)
    return distance


def _merge(into: Flow, flow: Flow, cost: float = 0.0) -> None:
    for source, before in flow.items():
        into[source] = min(into.get(source, math.inf), before + cost)


def _plus(flow: Flow, cost: float) -> Flow:
    return {source: before + cost for source, before in flow.items()}


def _union(flows: Iterable[Flow]) -> Flow:
    result: Flow = {}
    for flow in flows:
        _merge(result, flow)
    return result


def _refuse(unknown: list[str], what: str, where: str) -> None:
    if names := dict.fromkeys(unknown):
        raise GraphError(f"transcript: {what} not in {where}: {listed(names)}; expected {what} of {where}")
