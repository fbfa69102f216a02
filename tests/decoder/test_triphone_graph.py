"""The cross-word triphone graph against every path spelled out from dictionary, HMM set and language model."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from decoder.graph import GraphOptions, PhoneModels, build_triphone_graph
from readers.dictionary import Pronunciation
from tests.decoder.test_graph import completions, floor_cost, grid, num_classes, unigrams

MARKS = ("<s>", "</s>")
PHONES = ("a", "b", "c")


def random_models(rng, tied_phones):
    """Triphones of clustered states; silence with or without jumps; sp or none.  tied_phones: c shares states of a."""
    lengths = {phone: int(rng.integers(1, 4)) for phone in PHONES}
    if tied_phones:
        lengths["c"] = lengths["a"]
    states = {}
    for phone in PHONES:
        pools = [[f"{phone}_s{k}_{i}" for i in range(rng.integers(1, 4))] for k in range(2, 2 + lengths[phone])]
        if phone == "c" and tied_phones:
            pools = [[f"a_s{k}_{i}" for i in range(2)] for k in range(2, 2 + lengths[phone])]
        for left, right in itertools.product((*PHONES, "sil"), repeat=2):
            states[f"{left}-{phone}+{right}"] = tuple(str(rng.choice(pool)) for pool in pools)
    states["sil"] = ("sil_s2", "sil_s3", "sil_s4")[: int(rng.integers(1, 4))]
    topology = {}
    if rng.random() < 0.7:
        states["sp"] = (states["sil"][len(states["sil"]) // 2],)
        if rng.random() < 0.5:
            topology["sp"] = ((0, 1, math.log(0.25)), (0, 2, math.log(0.75)), (1, 2, 0.0))
    if len(states["sil"]) == 3 and rng.random() < 0.4:
        topology["sil"] = (
            *((0, 1, 0.0), (1, 2, math.log(0.75)), (1, 3, math.log(0.25)), (2, 3, 0.0)),
            *((3, 1, math.log(0.125)), (3, 4, math.log(0.875))),
        )
    return PhoneModels(states, None, topology)


def random_task(seed):
    rng = np.random.default_rng(seed)
    models = random_models(rng, tied_phones=seed % 10 == 0)
    dictionary = [Pronunciation("<s>", "", None, ("sil",)), Pronunciation("</s>", "", None, ("sil",))]
    words = [f"W{i}" for i in range(rng.integers(1, 4))]
    for word in words:
        seen = set()
        for variant in range(rng.integers(1, 3)):
            phones = tuple(map(str, rng.choice(PHONES[: rng.integers(1, 4)], size=rng.integers(1, 5))))
            if phones not in seen:
                dictionary.append(Pronunciation(word, None, None if variant == 0 else float(rng.random()), phones))
            seen.add(phones)
    probabilities = {word: float(-2 * rng.random()) for word in words}
    options = GraphOptions(
        silence="sil",
        optional_silence=bool(rng.random() < 0.8),
        silence_probability=None if rng.random() < 0.5 else 0.3,
        pronunciation_scale=float(rng.choice([0.0, 1.0])),
    )
    return models, dictionary, probabilities, options


def walks(models, name, limit, mark=None):
    """(labels, cost) of every way through a model of at most `limit` labels, the mark before its last state."""
    states, done, waiting = models.states[name], [], [((), 0, 0.0)]
    while waiting:
        labels, place, cost = waiting.pop()
        for start, end, ln in models.ways(name):
            if start != place:
                continue
            if end == len(states) + 1:
                if labels:
                    marked = labels if mark is None else (*labels[:-1], mark, labels[-1])
                    done.append((marked, cost + grid(-ln)))
            elif len(labels) < limit:
                waiting.append(((*labels, f"[{states[end - 1]}]"), end, cost + grid(-ln)))
    return done


def joints(models, options, limit):
    """("sil", "sp" or "", labels, cost) of all that may stand between two words."""
    if not options.optional_silence:
        return [("", (), 0.0)]
    p = options.silence_probability
    silent, other = (0.0, 0.0) if p is None else (grid(-math.log(p)), -math.log(1 - p))
    found = [("sil", labels, silent + cost) for labels, cost in walks(models, "sil", limit)]
    passing = 0.0
    if "sp" in models.states:
        passing = sum(-ln for start, end, ln in models.ways("sp") if (start, end) == (0, 2))
        found += [("sp", labels, grid(other) + cost) for labels, cost in walks(models, "sp", limit)]
    return [*found, ("", (), grid(other + passing))]


def twin_paths(models, dictionary, probabilities, options, max_words, max_labels):
    """label sequence -> least cost, of every <s> up to max_words words </s> that has at most max_labels labels."""
    entries = [entry for entry in dictionary if entry.word not in MARKS]
    between = joints(models, options, max_labels)
    starts, ends = (sorted(walks(models, "sil", max_labels, mark), key=lambda w: len(w[0])) for mark in MARKS)
    shortest = len(starts[0][0]) + len(ends[0][0])
    paths = {}
    for count in range(max_words + 1):
        for said in itertools.product(entries, repeat=count):
            for gaps in itertools.product(between, repeat=max(0, count - 1)):
                if shortest + sum(len(gap[1]) for gap in gaps) > max_labels:
                    continue
                middle, cost = spelled(models, said, gaps, probabilities, options)
                cost += sum(gap[2] for gap in gaps) + floor_cost(-0.5)
                for first, more in starts:
                    for last, still in ends:
                        if len(first) + len(middle) + len(last) > max_labels:
                            break
                        labels = (*first, *middle, *last)
                        paths[labels] = min(cost + more + still, paths.get(labels, math.inf))
    return paths


def spelled(models, said, gaps, probabilities, options):
    """Labels and cost of some words with what stands between them; contexts by looking at the whole sentence."""
    phones = ["sil"]
    for i, entry in enumerate(said):
        if i and gaps[i - 1][0] == "sil":
            phones.append("sil")
        phones += entry.phones
    phones.append("sil")
    labels, cost, at = [], 0.0, 1
    for i, entry in enumerate(said):
        if i:
            labels += gaps[i - 1][1]
            at += gaps[i - 1][0] == "sil"
        for k in range(len(entry.phones)):
            states = [f"[{s}]" for s in models.states[f"{phones[at - 1]}-{phones[at]}+{phones[at + 1]}"]]
            if k == len(entry.phones) - 1:
                states = [*states[:-1], entry.word, states[-1]] if k == 0 else [entry.word, *states]
            labels += states
            at += 1
        probability = 1.0 if entry.probability is None else entry.probability
        cost += floor_cost(probabilities[entry.word]) + grid(-options.pronunciation_scale * math.log(probability))
    return labels, cost


@pytest.mark.parametrize("seed", range(200))
def test_paths_equal_those_spelled_out_from_the_definitions(seed):
    models, dictionary, probabilities, options = random_task(seed)
    graph = build_triphone_graph(models, dictionary, unigrams(probabilities), options)
    max_labels = 12 if "sil" in models.topology else 60  # with jumps silence has no longest path
    expected = twin_paths(models, dictionary, probabilities, options, 2, max_labels)
    assert len(expected) > 1
    assert least_paths(graph.acceptor, 2, max_labels) == expected


def least_paths(acceptor, max_words, max_labels):
    """As acceptor_paths, but of equal label sequences the cheapest."""
    out, final = {}, dict(zip(acceptor.final.tolist(), acceptor.final_cost.tolist()))
    for s, t, label, c in zip(acceptor.source, acceptor.target, acceptor.label, acceptor.cost):
        out.setdefault(s, []).append((t, acceptor.symbols[label], float(c)))
    paths, waiting = {}, [(acceptor.start, (), 0.0, 0)]
    while waiting:
        state, labels, cost, words = waiting.pop()
        if state in final:
            paths[labels] = min(cost + final[state], paths.get(labels, math.inf))
        for target, label, more in out.get(state, ()) if len(labels) < max_labels else ():
            count = words + (not label.startswith("[") and label not in MARKS)
            if count <= max_words:
                waiting.append((target, (*labels, label), cost + more, count))
    return paths


@pytest.mark.parametrize("seed", [s for s in range(60) if s % 10])
def test_graph_is_deterministic_minimal_pushed_and_without_epsilons(seed):
    models, dictionary, probabilities, options = random_task(seed)
    if models.states.get("sp") == models.states["sil"][:1]:  # silences that look alike stay side by side
        options = replace(options, short_pause=None, optional_silence=False)
    acceptor = build_triphone_graph(models, dictionary, unigrams(probabilities), options).acceptor
    acceptor.check()
    arcs = list(zip(*(a.tolist() for a in (acceptor.source, acceptor.target, acceptor.label, acceptor.cost))))
    assert acceptor.label.min() > 0
    assert len({(s, label) for s, _, label, _ in arcs}) == len(arcs)
    final = dict(zip(acceptor.final.tolist(), acceptor.final_cost.tolist()))
    assert completions(arcs, final, acceptor.num_states)[1:] == [0.0] * (acceptor.num_states - 1)
    assert num_classes(arcs, final, acceptor.num_states) == acceptor.num_states
