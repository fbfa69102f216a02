"""Builds the HCLG of cross-word triphones with Kaldi's own steps, equivalent to our decoder's search space.

LG is that of benchmarks/kaldi_graph.py.  C o LG keeps #0 and #k; context windows with equal states become one symbol;
then H o CLG is determinised, disambiguation symbols become epsilons and are removed locally, the result is minimised,
and self-loops are added.  (mkgraph.sh: fstcomposecontext, make-ilabel-transducer, make-h-transducer,
fstdeterminizestar, fstrmsymbols, fstrmepslocal, fstminimizeencoded, add-self-loops.)
"""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.kaldi_graph import Text, lexicon_and_grammar
from decoder.graph.lexicon import lexicon_from_dictionary
from decoder.graph.openfst import EPSILON, ArcArrays, from_openfst, to_openfst
from decoder.graph.options import GraphOptions


def stored_hclg(path: Path, build: Callable[[], Any]) -> Any:
    """The HCLG in a file, a kaldifst.StdConstFst; `build` makes it if there is none."""
    import kaldifst

    if not path.exists():
        begin = time.process_time()
        hclg = build()
        kaldifst.arcsort(hclg, "ilabel")
        kaldifst.StdConstFst(hclg).write(str(path))
        print(f"the peer's HCLG: {hclg.num_states} states, made in {time.process_time() - begin:.0f} s", flush=True)
    return kaldifst.StdConstFst.read(str(path))


def build_triphone_hclg(
    decoder, dictionary, models, silence_probability: float | None, silence: str | None = None, context: tuple = (3, 1)
):
    """A kaldifst.StdVectorFst.

    decoder: over the graph of `dictionary` and PhoneModels `models` without short pause, built with these
    silence_probability and silence; context: width of a window of phones, and the place of its phone, from 0: (2, 1)
    for models that depend on the phone before only.
    """
    import kaldifst

    lexicon = lexicon_from_dictionary(dictionary, GraphOptions(optional_silence=True, silence=silence))
    phones = list(dict.fromkeys([lexicon.silence, *(phone for _, of_word, _ in lexicon.words for phone in of_word)]))
    number = {phone: i for i, phone in enumerate(phones, start=1)}
    costs = (0.0, 0.0)
    if silence_probability is not None:
        costs = -math.log(silence_probability), -math.log1p(-silence_probability)
    lg = lexicon_and_grammar(lexicon, number, decoder, *costs)
    marks = sorted(set(lg.label[lg.label > len(phones)].tolist()))
    clg, windows = kaldifst.compose_context(marks, *context, to_openfst(lg))
    clg, physical = _physical(from_openfst(clg, transducer=True), windows, phones, models, decoder)
    num_outputs = max(max(labels) for labels, _ in physical)
    fst = to_openfst(clg)
    kaldifst.arcsort(fst, "ilabel")
    hclg = kaldifst.compose(hmm_transducer(physical, num_outputs, len(marks)), fst)
    kaldifst.connect(hclg)
    if kaldifst.determinize_star(hclg):
        raise RuntimeError("H o C o L o G is not determinised; expected disambiguation symbols to see to it")
    arrays = from_openfst(hclg, transducer=True)
    arrays.label[arrays.label > num_outputs] = EPSILON
    fst = to_openfst(without_lone_epsilons(arrays))
    kaldifst.connect(fst)
    kaldifst.minimize_encoded(fst)
    stay, go = np.zeros(num_outputs + 1), np.zeros(num_outputs + 1)
    for state, row in zip(decoder.graph.states, decoder.score_row):
        if 0 <= row < num_outputs:
            stay[row + 1], go[row + 1] = (-ln for ln in models.transitions[state])
    return to_openfst(with_self_loops(from_openfst(fst, transducer=True), stay, go))


# The network outputs + 1 of a model's states, and its topology, (from, to, ln P) as in PhoneModels.
Physical = tuple[tuple[int, ...], tuple[tuple[int, int, float], ...]]


def _physical(clg: ArcArrays, windows, phones: list[str], models, decoder) -> tuple[ArcArrays, list[Physical]]:
    """CLG with distinct models, followed by #0 and #k, in place of context windows; and these models."""
    row = {state: int(r) + 1 for state, r in zip(decoder.graph.states, decoder.score_row)}
    names = ["", *phones]
    number: dict[Physical, int] = {}
    label = np.zeros(len(windows), np.int32)
    marks = []
    for i, window in enumerate(windows):
        if len(window) > 1:
            # Silence stands for what is beyond the utterance, and for the phone after in windows without it.
            left, phone, right = (names[p] if 0 < p < len(names) else phones[0] for p in (*window, 0)[:3])
            model = phone if phone in models.states else f"{left}-{phone}+{right}"
            physical = tuple(row[state] for state in models.states[model]), models.topology_of(model)
            label[i] = number.setdefault(physical, len(number) + 1)
        elif window and window[0] != 0:
            marks.append((i, abs(window[0])))
    for place, (i, _) in enumerate(sorted(marks, key=lambda mark: mark[1]), start=1):
        label[i] = len(number) + place
    return replace(clg, label=label[clg.label]), list(number)


def hmm_transducer(physical: list[Physical], num_outputs: int, num_marks: int):
    """H: from the centre through each model's states and back; disambiguation symbols are self-loops.

    An arc into a state reads it.  A state that can only be left for the exit is the centre itself.
    """
    text, centre, num_states = Text(), 0, 1
    text.final(centre)
    for model, (labels, topology) in enumerate(physical, start=1):
        leave = len(labels) + 1
        node = {0: centre, leave: centre}
        for place in range(1, leave):
            if [arc[1:] for arc in topology if arc[0] == place] == [(leave, 0.0)]:
                node[place] = centre
            else:
                node[place] = num_states
                num_states += 1
        for source, target, logarithm in topology:
            if node[source] != centre or source == 0:
                label = 0 if target == leave else labels[target - 1]
                text.arc(node[source], node[target], label, 0 if source else model, -logarithm)
    for mark in range(1, num_marks + 1):
        text.arc(centre, centre, num_outputs + mark, len(physical) + mark, 0.0)
    return text.compile(centre, sort="olabel")


def without_lone_epsilons(arrays: ArcArrays) -> ArcArrays:
    """Remove states whose only arc out has no input and no output; the result is not trimmed."""
    degree = np.bincount(arrays.source, minlength=arrays.num_states)
    lone = (arrays.label == EPSILON) & (arrays.output == EPSILON) & (degree[arrays.source] == 1)
    lone &= np.isinf(arrays.final_cost[arrays.source]) & (arrays.source != arrays.start)
    goes_to, price = np.arange(arrays.num_states), np.zeros(arrays.num_states)
    goes_to[arrays.source[lone]], price[arrays.source[lone]] = arrays.target[lone], arrays.cost[lone]
    while True:  # pointer doubling along chains
        further = goes_to[goes_to]
        if np.array_equal(further, goes_to):
            break
        price, goes_to = price + price[goes_to] * (further != goes_to), further
    cost = (arrays.cost + price[arrays.target]).astype(np.float32)
    return replace(arrays, target=goes_to[arrays.target].astype(np.int32), cost=cost)


def with_self_loops(arrays: ArcArrays, stay: np.ndarray, go: np.ndarray) -> ArcArrays:
    """Let every label repeat at cost stay[label], inf for one that does not; it is left at cost go[label].

    A state that is entered with several labels becomes one state for each.
    """
    width = len(stay)
    wanted = np.append(arrays.target.astype(np.int64) * width + arrays.label, arrays.start * width)
    pairs = np.unique(wanted)  # new states: (old state, label that enters it)
    old, label = np.divmod(pairs, width)
    first = arrays.first_arc
    count = np.diff(first)[old]
    ends = np.cumsum(count)
    source = np.repeat(np.arange(len(pairs)), count)
    arc = np.arange(ends[-1]) - np.repeat(ends - count, count) + np.repeat(first[old], count)
    target = np.searchsorted(pairs, arrays.target[arc].astype(np.int64) * width + arrays.label[arc])
    loops = np.flatnonzero((label > 0) & np.isfinite(stay[label]))
    return ArcArrays(
        np.concatenate([source, loops]).astype(np.int32),
        np.concatenate([target, loops]).astype(np.int32),
        np.concatenate([arrays.label[arc], label[loops]]).astype(np.int32),
        np.concatenate([arrays.cost[arc] + go[label[source]], stay[label[loops]]]).astype(np.float32),
        (arrays.final_cost[old] + go[label]).astype(np.float32),
        int(np.searchsorted(pairs, arrays.start * width)),
        np.concatenate([arrays.output[arc], np.zeros(len(loops))]).astype(np.int32),
    ).sorted()
