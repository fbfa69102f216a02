"""The meaning of a sentence of a grammar: the words that have a tag.

The words are parsed with the least cost of the grammar's weights.  Several sentences may follow each other, as in a
recording with pauses.
"""

import heapq
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from readers.language.grammars.network import TAG_END, UNKNOWN, WordArc, WordNetwork
from readers.results.timed_words import Word

NEXT_SENTENCE = WordArc(WordNetwork.END, WordNetwork.START, None, 1e6)  # only where the words are no single sentence


class SlotSpan(NamedTuple):
    """The words of a tag.

    Attributes
    ----------
    tag : str
    first, last : int
        Words from `first` up to but not including `last`.
    """

    tag: str
    first: int
    last: int


class Slot(NamedTuple):
    """What was said for a tag of a grammar.

    Attributes
    ----------
    name : str
        The tag, or what stands before its `=`.
    value : str
        What stands behind the `=` of the tag; without one, the words.
    start, end : float
        Seconds.
    confidence : float or None
        Of the least certain word.
    """

    name: str
    value: str
    start: float
    end: float
    confidence: float | None = None


SlotParse = Callable[[Sequence[str]], Sequence[SlotSpan]]


class SlotParser:
    """Finds the tags of sentences.

    Parameters
    ----------
    network : WordNetwork
        A grammar.
    words : collection of str
        Those that are recognised, in any case; other words of the grammar are silent.
    missing : collection of str
        Words of the grammar that cannot be spoken.
    outputs : mapping of str to str
        Output symbols of words that have one.
    """

    def __init__(
        self, network: WordNetwork, words: Collection[str], missing: Collection[str], outputs: Mapping[str, str]
    ):
        spoken = {word: outputs.get(word, word).casefold() for word in (*words, UNKNOWN)}
        symbols = {word.casefold(): symbol for word, symbol in spoken.items()} | spoken
        self._empty_arcs: dict[int, list[WordArc]] = defaultdict(list)  # by their sources
        self._word_arcs: dict[tuple[int, str], list[WordArc]] = defaultdict(list)
        self._sources: dict[str, list[int]] = defaultdict(list)  # of a word's arcs
        self._empty_sources: dict[int, list[int]] = defaultdict(list)  # of the empty arcs to a node
        for arc in (*network.arcs, NEXT_SENTENCE):
            if arc.word in missing:
                continue
            symbol = None if arc.word is None else symbols.get(arc.word, symbols.get(arc.word.casefold()))
            if symbol:
                self._word_arcs[arc.source, symbol].append(arc._replace(word=symbol))
                self._sources[symbol].append(arc.source)
            else:
                self._empty_arcs[arc.source].append(arc._replace(word=None))
                self._empty_sources[arc.target].append(arc.source)
        self.has_tags = any(arc.tag for arc in network.arcs)

    def __call__(self, words: Sequence[str]) -> list[SlotSpan]:
        """Return the tags of words in the order of their first words; none for words that are no sentence."""
        if not words or not self.has_tags:
            return []
        costs: dict[int, tuple[float, WordArc | None]] = {WordNetwork.START: (0.0, None)}
        arrivals = []
        for symbol in (word.casefold() for word in words):
            arrivals.append(self._closure(costs, self._sources.get(symbol, ())))
            costs = {}
            for node, (cost, _) in arrivals[-1].items():
                for arc in self._word_arcs.get((node, symbol), ()):
                    reached = cost + arc.cost
                    if arc.target not in costs or reached < costs[arc.target][0]:
                        costs[arc.target] = reached, arc
        arrivals.append(self._closure(costs, [WordNetwork.END]))
        return _spans(arrivals) if WordNetwork.END in arrivals[-1] else []

    def _closure(
        self, costs: dict[int, tuple[float, WordArc | None]], ends: Sequence[int]
    ) -> dict[int, tuple[float, WordArc | None]]:
        """Return cost and last arc of all nodes on paths without a further word to the nodes `ends`."""
        useful = self._leading_to(ends)
        heap = [(cost, number, node, arc) for number, (node, (cost, arc)) in enumerate(costs.items()) if node in useful]
        heapq.heapify(heap)
        arrivals: dict[int, tuple[float, WordArc | None]] = {}
        pushed = len(costs)
        while heap:
            cost, _, node, last = heapq.heappop(heap)
            if node in arrivals:
                continue
            arrivals[node] = cost, last
            for arc in self._empty_arcs.get(node, ()):
                if arc.target in useful and arc.target not in arrivals:
                    heapq.heappush(heap, (cost + arc.cost, pushed, arc.target, arc))
                    pushed += 1
        return arrivals

    def _leading_to(self, ends: Sequence[int]) -> set[int]:
        """Return the nodes from which some of `ends` can be reached without a word."""
        useful = set(ends)
        waiting = list(useful)
        while waiting:
            sources = set(self._empty_sources.get(waiting.pop(), ())) - useful
            useful |= sources
            waiting += sources
        return useful


def _spans(arrivals: Sequence[Mapping[int, tuple[float, WordArc | None]]]) -> list[SlotSpan]:
    """Trace the best path back and return its tags."""
    position = len(arrivals) - 1
    node = WordNetwork.END
    path = []
    while (arc := arrivals[position][node][1]) is not None:
        path.append((position, arc))
        position -= arc.word is not None
        node = arc.source
    spans: list[SlotSpan] = []
    begun: list[tuple[str, int]] = []
    for position, arc in reversed(path):
        if arc.tag == TAG_END:
            tag, first = begun.pop()
            if position > first:
                spans.append(SlotSpan(tag, first, position))
        elif arc.tag:
            begun.append((arc.tag, position))
    return sorted(spans, key=lambda span: (span.first, -span.last))


def slots_of(words: Sequence[Word], parse: SlotParse) -> tuple[Slot, ...]:
    """Return the slots of recognised words."""
    return tuple(_slot(tag, words[first:last]) for tag, first, last in parse([word.text for word in words]))


def _slot(tag: str, words: Sequence[Word]) -> Slot:
    name, equals, value = (part.strip() for part in tag.partition("="))
    confidences = [word.confidence for word in words if word.confidence is not None]
    if not equals:
        value = " ".join(word.text for word in words)
    return Slot(name, value, words[0].start, words[-1].end, min(confidences, default=None))


def judgement_object(accepted: bool | None, score: float | None) -> dict[str, object]:
    """Return what JSON says of an utterance's `accepted` and `grammar_score`; nothing without a grammar."""
    if accepted is None:
        return {}
    rounded = round(score, 3) if score is not None and math.isfinite(score) else None
    return {"accepted": accepted, "grammar_score": rounded}


def slot_objects(slots: Iterable[Slot]) -> list[dict[str, object]]:
    """Return slots as objects of JSON: name, value, start, end in seconds and, where it is known, confidence."""
    return [
        {"name": slot.name, "value": slot.value, "start": round(slot.start, 3), "end": round(slot.end, 3)}
        | ({} if slot.confidence is None else {"confidence": round(slot.confidence, 4)})
        for slot in slots
    ]
