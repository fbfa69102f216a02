"""Builds the HCLG that Kaldi's recipes would build for the task of one of our decoders: the peer of a benchmark.

G has a state per history, and back-off arcs with #0 as input while L and G are composed.  L is a loop of words between
two states, with and without silence before a word, and with a disambiguation symbol #k after each pronunciation that
equals or begins another.  LG is determinised, minimised L o G with its costs pushed towards the start; then every phone
is replaced by its HMM states, with self-loops.  Input labels: network output + 1; output labels: index of the word + 1.
This file handles monophones; triphones are in benchmarks/kaldi_triphones.py.
"""

import math
from collections import Counter

from decoder.graph.lexicon import lexicon_from_dictionary
from decoder.graph.openfst import EPSILON, ArcArrays, from_openfst, to_openfst
from decoder.graph.options import GraphOptions
from decoder.graph.push import push_to_start

START, WORD_END, AFTER_SILENCE = range(3)  # states of L


def build_hclg(decoder, dictionary, state_map, transitions):
    """A kaldifst.StdVectorFst equivalent to the decoder's search space, with all scales and costs.

    decoder: over a graph of `dictionary` with silence between words, its states in any order; state_map: phone -> its
    states; transitions: state -> (ln self, ln forward).
    """
    import kaldifst

    lexicon = lexicon_from_dictionary(dictionary, GraphOptions())
    phones = {phone: i for i, phone in enumerate(state_map, start=1)}
    arrays = lexicon_and_grammar(lexicon, phones, decoder)
    arrays.label[arrays.label > len(phones)] = EPSILON
    lg = to_openfst(arrays)
    kaldifst.arcsort(lg, "ilabel")
    hclg = kaldifst.compose(_models(phones, state_map, transitions, lexicon.silence, decoder), lg)
    kaldifst.connect(hclg)
    return hclg


def lexicon_and_grammar(lexicon, phones: dict[str, int], decoder, silence_cost=0.0, nothing_cost=0.0) -> ArcArrays:
    """LG with its costs pushed to the start; input labels above the phones are #0 and #k.

    silence_cost, nothing_cost: of silence between words, and of no silence, in addition to the decoder's own sil_cost.
    """
    import kaldifst

    lg = kaldifst.compose(_lexicon(lexicon, phones, decoder, silence_cost, nothing_cost), _grammar(decoder))
    kaldifst.connect(lg)
    if kaldifst.determinize_star(lg):
        raise RuntimeError("L o G cannot be determinised; expected disambiguation symbols")
    kaldifst.minimize_encoded(lg)
    return push_to_start(from_openfst(lg, transducer=True))


class Text:
    """A transducer in text form; the source of its first arc is the start."""

    def __init__(self):
        self.lines: list[str] = []

    def arc(self, source: int, target: int, label_in: int, label_out: int, cost: float) -> None:
        if cost < math.inf:
            self.lines.append(f"{source} {target} {label_in} {label_out} {cost:.7g}")

    def final(self, state: int, cost: float = 0.0) -> None:
        self.lines.append(f"{state} {cost:.7g}")

    def compile(self, start: int, sort: str = ""):
        import kaldifst

        self.lines.sort(key=lambda line: line.split(maxsplit=1)[0] != str(start))
        fst = kaldifst.compile("\n".join(self.lines) + "\n", acceptor=False)
        if sort:
            kaldifst.arcsort(fst, sort)
        return fst


def _grammar(decoder):
    """G: </s> as final cost, back-off arcs with input #0, whose number follows the words.

    As in Kaldi, back-off arcs may also be taken past a listed n-gram that is less likely than backing off.
    """
    backoff_label = len(decoder.graph.words) + 1
    lm, scale = decoder.lm.arrays, decoder.options.lm_scale
    word_of = {decoder.lm.word_id(word): i for i, word in enumerate(decoder.graph.words, start=1)}
    text = Text()
    for state in range(len(lm.backoff_state)):
        for arc in range(lm.first_arc[state], lm.first_arc[state + 1]):
            word, cost = int(lm.word[arc]), scale * float(lm.cost[arc])
            if word == decoder.lm.end_id:
                text.final(state, cost)
            elif word in word_of:
                text.arc(state, lm.next_state[arc], word_of[word], word_of[word], cost)
        if state:
            text.arc(state, lm.backoff_state[state], backoff_label, 0, scale * float(lm.backoff_cost[state]))
    return text.compile(decoder.lm.start_state, sort="ilabel")


def _lexicon(lexicon, phones: dict[str, int], decoder, silence_cost: float, nothing_cost: float):
    """L: input labels are phones, #0 and #k (numbers above the phones), output labels words and #0."""
    options = decoder.options
    word_of = {word: i for i, word in enumerate(decoder.graph.words, start=1)}
    backoff_in, backoff_out = len(phones) + 1, len(decoder.graph.words) + 1
    prefixes = {pronunciation[:n] for _, pronunciation, _ in lexicon.words for n in range(1, len(pronunciation))}
    times = Counter(pronunciation for _, pronunciation, _ in lexicon.words)
    seen: Counter = Counter()
    text = Text()
    silence = phones[lexicon.silence]
    text.arc(START, AFTER_SILENCE, silence, 0, options.sil_cost)
    text.arc(WORD_END, AFTER_SILENCE, silence, 0, options.sil_cost + silence_cost)
    text.final(AFTER_SILENCE, -silence_cost)  # of </s>, which is not between words
    num_states = 3
    for place in (WORD_END, AFTER_SILENCE):
        text.arc(place, place, backoff_in, backoff_out, 0.0)
    for word, pronunciation, cost in lexicon.words:
        labels = [phones[phone] for phone in pronunciation]
        if times[pronunciation] > 1 or pronunciation in prefixes:
            seen[pronunciation] += 1
            labels.append(backoff_in + seen[pronunciation])
        for place in (WORD_END, AFTER_SILENCE):
            source, out, paid = place, word_of[word], cost + options.word_penalty
            paid += nothing_cost if place == WORD_END else 0.0
            for n, label in enumerate(labels, start=1):
                target = WORD_END if n == len(labels) else num_states
                num_states += n < len(labels)
                text.arc(source, target, label, out, paid)
                source, out, paid = target, 0, 0.0
    return text.compile(START, sort="olabel")


def _models(phones: dict[str, int], state_map, transitions, silence: str, decoder):
    """H: input labels are network outputs, output labels phones.

    Each phone is a cycle from the centre through its states.
    """
    row = dict(zip(decoder.graph.states, decoder.score_row))
    text, centre, num_states = Text(), 0, 1
    text.final(centre)
    for phone, label in phones.items():
        names = state_map[phone]
        if any(name not in row or row[name] < 0 for name in names):
            continue
        node = {name: num_states + i for i, name in enumerate(names)}
        num_states += len(names)
        text.arc(centre, node[names[0]], row[names[0]] + 1, label, 0.0)
        for name in names:
            stay, go = (-value for value in transitions[name])
            text.arc(node[name], node[name], row[name] + 1, 0, stay)
            for other in names:
                follows = names.index(other) == names.index(name) + 1
                if other != name and (phone == silence or follows):
                    text.arc(node[name], node[other], row[other] + 1, 0, go)
            if name == names[-1]:
                text.arc(node[name], centre, 0, 0, go)
    return text.compile(centre, sort="olabel")
