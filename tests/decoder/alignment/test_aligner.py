"""Forced alignment against enumeration: every pronunciation, every silence, every state sequence of every length."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.alignment.aligner import Aligner
from decoder.alignment.kernels import ENTER, STAY, AlignmentArrays, align_frames
from decoder.graph import GraphOptions, PhoneModels
from decoder.graph.transcript import TranscriptGraphs
from decoder.results.outputs import alignment_labels
from readers.errors import ConfigError, GraphError, ShapeError
from readers.htk.dictionary import Pronunciation, SilenceProbabilities
from readers.htk.mlf import read_mlf, write_mlf

LEVELS = ("word", "phone", "state")
PHONES = ("a", "b", "c")
SILENCE_WAYS = ((0, 1, math.log(0.7)), (0, 2, math.log(0.3)), (1, 2, math.log(0.6)), (1, 3, math.log(0.4)),
                (2, 1, math.log(0.2)), (2, 3, math.log(0.8)))  # fmt: skip
PAUSE_WAYS = ((0, 1, math.log(0.4)), (0, 2, math.log(0.6)), (1, 2, 0.0))
DICTIONARY = [
    Pronunciation("X", None, 0.5, ("a",)),
    Pronunciation("X", None, 1.0, ("b", "c")),
    Pronunciation("Y", "why", None, ("c", "a")),
    Pronunciation("Z", "", None, ("b",)),
]


def monophones(rng, topology=None, pause=False):
    states = {phone: (f"{phone}_s2", f"{phone}_s3")[: 1 + i % 2] for i, phone in enumerate(PHONES)}
    states["sil"] = ("sil_s2", "sil_s3")
    if pause:
        states["sp"] = ("sp_s2",)
    return with_random_transitions(states, rng, topology or {}, {"sp_s2": "sil_s3"} if pause else {})


def triphones(rng):
    """Two states each; the second one depends on the neighbours."""
    sides = (*PHONES, "sil")
    states = {
        f"{left}-{phone}+{right}": (f"{phone}_s2", f"{phone}_s3_{left}{right}")
        for phone, left, right in itertools.product(PHONES, sides, sides)
    }
    states |= {"sil": ("sil_s2", "sil_s3"), "sp": ("sp_s2",)}
    return with_random_transitions(states, rng, {"sp": PAUSE_WAYS}, {"sp_s2": "sil_s3"})


def with_random_transitions(states, rng, topology, tied):
    stays = {state: rng.uniform(0.1, 0.9) for names in states.values() for state in names}
    transitions = {state: (math.log(p), math.log1p(-p)) for state, p in stays.items()}
    return PhoneModels(states, transitions, topology, tied)


def scores_for(models, num_frames, rng):
    return rng.normal(size=(len(set(models.senones.values())), num_frames)).astype(np.float32)


SILENCES = {  # by phones, in DICTIONARY; the probabilities of Y are not given
    ("a",): SilenceProbabilities(0.2, 1.3, 0.8),
    ("b", "c"): SilenceProbabilities(0.6, 0.7, 1.6),
    ("b",): SilenceProbabilities(1.0, 0.9, 1.1),
}
EDGES = [
    Pronunciation("<s>", None, None, (), SilenceProbabilities(0.7)),
    Pronunciation("</s>", None, None, (), SilenceProbabilities(0.5, 1.2, 0.4)),
]


def chen_cost(said, pauses, options):
    """Cost of silence or none before each word and at the end, of Chen et al., 2015."""
    p = options.silence_probability or 0.5
    rest = 0.0 if options.silence_probability else -math.log(2)  # without a probability neither costs anything
    cost, after = 0.0, 0.7
    for phones, is_pause in zip([*said, None], pauses):
        numbers = SilenceProbabilities(0.5, 1.2, 0.4) if phones is None else SILENCES.get(phones)
        cost -= math.log(after if is_pause else 1 - after)
        if numbers is not None:
            cost -= math.log(numbers.from_silence if is_pause else numbers.from_speech)
        if numbers is None:
            cost += rest
        after = p if numbers is None else min(numbers.after, 0.99)
    return cost


def everything(models, rows, spoken, options, silence_cost, frames, acweight, has_silences=False):
    """(cost, states of the frames, phones) of every path, from the definitions; spoken: alternatives of each word."""
    p = None if has_silences else options.silence_probability
    silent, nothing = (0.0, 0.0) if p is None else (-math.log(p), -math.log1p(-p))
    silence = [((), nothing), (("sil",), silent + silence_cost)]
    between = [*silence, *([(("sp",), nothing)] if "sp" in models.states else [])]
    if options.optional_silence is False:
        silence = between = [((), 0.0)]
    slots = [silence]
    for i, alternatives in enumerate(spoken):
        slots += [alternatives, between if i < len(spoken) - 1 else silence]
    for choice in itertools.product(*slots):
        phones = [phone for names, _ in choice for phone in names]
        extra = 0.0
        if has_silences:
            extra = chen_cost([names for names, _ in choice[1::2]], [n == ("sil",) for n, _ in choice[::2]], options)
        # Short pause is no neighbour.
        heard = ["sil", *(phone.lstrip("*") for phone in phones if phone != "sp"), "sil"]
        names, place = [], 0
        for phone in phones:
            place += phone != "sp"
            triphone = f"{heard[place - 1]}-{phone}+{heard[place + 1]}" if phone != "sp" else phone
            names.append(phone if phone in models.states else triphone)
        for cost, states in walks(models, rows, names, frames, acweight):
            yield cost + extra + sum(c for _, c in choice), states, tuple(names)


def walks(models, rows, names, frames, acweight):
    """All ways through a row of models in exactly these frames."""
    transitions = models.transitions

    def go(model, place, t):
        """From place (left, if it is a state) of model at frame t on: (cost, states)."""
        if model == len(names):
            if t == len(frames):
                yield 0.0, ()
            return
        states = models.states[names[model]]
        for start, end, ln in models.topology_of(names[model]):
            if start != place:
                continue
            if end == len(states) + 1:
                for cost, rest in go(model + 1, 0, t):
                    yield cost - ln, rest
                continue
            state = states[end - 1]
            stay, leave = transitions[state]
            acoustic = 0.0
            for until in range(t + 1, len(frames) + 1):
                acoustic -= acweight * float(frames[until - 1, rows[state]])
                own = acoustic - (until - t - 1) * stay - leave - ln
                for cost, rest in go(model, end, until):
                    yield own + cost, (state,) * (until - t) + rest

    yield from go(0, 0, 0)


def rows_of(models):
    senones = list(dict.fromkeys(models.senones.values()))
    return {state: senones.index(senone) for state, senone in models.senones.items()}


def kernel_arguments(graph, scores, acweight, beam, max_cells):
    frames = np.ascontiguousarray(scores.T)
    frames.flags.writeable = False  # as the aligner hands them in, so that nothing is compiled again
    columns = (graph.row, graph.stay, graph.first_arc, graph.arc_source, graph.arc_cost, graph.entry, graph.final)
    return frames, AlignmentArrays(*columns, graph.to_end), acweight, beam, max_cells


KINDS = {
    "left to right": lambda rng: monophones(rng),
    "silence in many ways": lambda rng: monophones(rng, {"sil": SILENCE_WAYS}),
    "short pause to pass": lambda rng: monophones(rng, {"sil": SILENCE_WAYS, "sp": PAUSE_WAYS}, pause=True),
    "triphones": triphones,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(14))
def test_best_of_all_alignments(kind, seed):
    rng = np.random.default_rng(seed)
    models = KINDS[kind](rng)
    options = GraphOptions(
        optional_silence=[None, False][seed % 4 == 3], silence_probability=[None, 0.3][seed % 2], short_pause=None
    )
    words = [("X",), ("X", "Y"), ("Z", "X"), ("Y",)][seed % 4]
    acweight, silence_cost = float(rng.uniform(0.2, 2)), float(rng.uniform(-1, 1))
    has_silences = seed >= 8 and options.optional_silence is None
    dictionary = DICTIONARY
    if has_silences:
        dictionary = EDGES + [entry._replace(silence=SILENCES.get(entry.phones)) for entry in DICTIONARY]
    graphs = TranscriptGraphs(models, dictionary, None, options, silence_cost)
    scores = scores_for(models, graphs.graph(words).min_frames + int(rng.integers(0, 3)), rng)
    spoken = [
        [(entry.phones, -math.log(entry.probability or 1.0)) for entry in DICTIONARY if entry.word == word]
        for word in words
    ]
    paths = list(everything(models, rows_of(models), spoken, options, silence_cost, scores.T, acweight, has_silences))
    cost, states, names = min(paths, key=lambda path: path[0])
    result = Aligner(graphs, acweight).align(words, scores)
    assert result.total == pytest.approx(cost, rel=1e-6)
    found = [
        result.graph.state[p]
        for p, start, end in zip(result.position, result.start, result.end)
        for _ in range(end - start)
    ]
    assert tuple(found) == states
    visited = tuple(unit.model for unit, _ in result.phones)
    assert visited == tuple(name for name in names if name in visited)  # but for short pauses that were passed


def with_free_models(models, scores):
    """Models `*phone` with the best scores of all contexts less 0.4, and rows and scores to which theirs are added."""
    states, transitions, topology = dict(models.states), dict(models.transitions), dict(models.topology)
    rows, added = rows_of(models), []
    for phone in (*PHONES, "sil"):
        contexts = [name for name in models.states if name == phone or f"-{phone}+" in name]
        own = tuple(f"*{name}" for name in models.states[contexts[0]])
        states[f"*{phone}"], topology[f"*{phone}"] = own, models.topology_of(contexts[0])
        for place, (name, model) in enumerate(zip(own, models.states[contexts[0]])):
            transitions[name] = models.transitions[model]
            rows[name] = len(scores) + len(added)
            added.append(np.max([scores[rows[models.states[context][place]]] for context in contexts], axis=0) - 0.4)
    return PhoneModels(states, transitions, topology, models.tied), rows, np.vstack([scores, added])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("words", ["U", "U Z", "Z U"])
def test_loops_are_every_sequence_of_phones(kind, words):
    """With states whose scores are the best of all contexts, and a cost per frame."""
    rng = np.random.default_rng(len(kind) + len(words))
    models = KINDS[kind](rng)
    graphs = TranscriptGraphs(models, DICTIONARY).with_words((), ["U"], 0.4)
    scores = scores_for(models, 5 if kind == "triphones" else 3 + ("Z" in words), rng)
    extended, rows, all_scores = with_free_models(models, scores)
    most = scores.shape[1] // (1 + (kind == "triphones")) - 1 * ("Z" in words)
    loop = [
        (tuple(f"*{phone}" for phone in phones), 0.0)
        for length in range(1, most + 1)
        for phones in itertools.product((*PHONES, "sil"), repeat=length)
    ]
    spoken = [loop if word == "U" else [(("b",), 0.0)] for word in words.split()]
    cost = min(path[0] for path in everything(extended, rows, spoken, GraphOptions(), 0.0, all_scores.T, 1.0))
    assert Aligner(graphs).align(words.split(), scores).total == pytest.approx(cost, rel=1e-6)


@given(st.integers(0, 10**6), st.sampled_from(["X", "X Y", "Z X X", "Y Z"]), st.integers(1, 24))
@settings(max_examples=40, deadline=None)
def test_kernel_twin_and_shares(seed, words, num_frames):
    rng = np.random.default_rng(seed)
    models = KINDS["short pause to pass"](rng)
    aligner = Aligner(TranscriptGraphs(models, DICTIONARY), 0.7, [None, 1.0][seed % 2])
    scores = scores_for(models, num_frames, rng)
    graph = aligner.graphs.graph(words.split())
    arguments = kernel_arguments(graph, scores, 0.7, aligner.beam, 10**6)
    fast, plain = align_frames(*arguments), align_frames.py_func(*arguments)
    assert fast[0] == plain[0]
    np.testing.assert_array_equal(fast[1], plain[1])
    np.testing.assert_array_equal(fast[2], plain[2])
    if num_frames >= graph.min_frames and aligner.beam == math.inf:
        result = aligner.align(words.split(), scores)
        last = result.position[-1]
        assert result.cost.sum() + graph.final[last] == pytest.approx(result.total, rel=1e-9)
        assert [result.start[0], result.end[-1]] == [0, num_frames]
        np.testing.assert_array_equal(result.start[1:], result.end[:-1])


def whole_numbered_graph(rng, num_positions):
    """AlignmentArrays with whole-numbered costs, so that many paths are equally cheap."""
    sources = [np.flatnonzero(rng.random(num_positions) < 0.6) for _ in range(num_positions)]
    sources = [source[source != p] for p, source in enumerate(sources)]

    def costs(size):
        return rng.integers(0, 2, size).astype(np.float64)

    arc_source = np.concatenate(sources).astype(np.int32)
    first_arc = np.append(0, np.cumsum([len(source) for source in sources])).astype(np.int64)
    row, to_end = np.arange(num_positions, dtype=np.int32), np.zeros(num_positions, np.int32)
    self_cost = costs(num_positions)
    entry, final = costs(num_positions), costs(num_positions)
    return AlignmentArrays(row, self_cost, first_arc, arc_source, costs(len(arc_source)), entry, final, to_end)


@pytest.mark.parametrize("seed", range(30))
def test_of_equal_paths_staying_comes_before_arcs_and_then_the_first_arc_and_position(seed):
    rng = np.random.default_rng(seed)
    graph, num_frames = whole_numbered_graph(rng, int(rng.integers(2, 5))), int(rng.integers(2, 7))
    frames = -rng.integers(0, 2, (num_frames, len(graph.row))).astype(np.float32)
    frames.flags.writeable = False
    arcs = {p: range(graph.first_arc[p], graph.first_arc[p + 1]) for p in range(len(graph.row))}

    def ways(before, p):
        """(cost before, how) of all ways into position p, in the order in which equal ones are preferred."""
        return [
            (before[p] + graph.self_cost[p], STAY),
            *((before[graph.arc_source[a]] + graph.arc_cost[a], a) for a in arcs[p]),
        ]

    least = [graph.entry_cost - frames[0]]
    for t in range(1, num_frames):
        least.append(np.array([min(cost for cost, _ in ways(least[-1], p)) for p in arcs]) - frames[t])
    total = least[-1] + graph.final_cost
    p = int(np.flatnonzero(total == total.min())[0])
    expected = []
    for t in range(num_frames - 1, 0, -1):
        here = ways(least[t - 1], p)
        taken = next(how for cost, how in here if cost == min(here)[0])
        expected.insert(0, (p, taken))
        p = p if taken == STAY else int(graph.arc_source[taken])
    expected.insert(0, (p, ENTER))
    cost, path, how = align_frames(frames, graph, 1.0, np.inf, 10**6)
    assert cost == total.min()
    assert list(zip(path.tolist(), how.tolist())) == expected


def test_a_position_exactly_on_the_beam_stays():
    """Position 1 costs 3 more than position 0 in the first frame, and only it leads to the end."""
    columns = ([0, 1], [0.0, 0.0], [0, 0, 0], [], [], [0.0, 3.0], [np.inf, 0.0], [0, 0])
    types = ("i4", "f8", "i8", "i4", "f8", "f8", "f8", "i4")
    graph = AlignmentArrays(*(np.array(column, kind) for column, kind in zip(columns, types)))
    frames = np.zeros((3, 2), np.float32)
    frames.flags.writeable = False
    assert align_frames(frames, graph, 1.0, 3.0, 100)[0] == 3.0
    assert align_frames(frames, graph, 1.0, 2.99, 100)[0] == np.inf


def test_memory_grows_and_ends():
    rng = np.random.default_rng(0)
    models = monophones(rng)
    words = ["X", "Y", "Z"] * 40  # more positions than are set aside at first
    graphs = TranscriptGraphs(models, DICTIONARY)
    scores = scores_for(models, 600, rng)
    graph = graphs.graph(words)
    cost, path, _ = align_frames(*kernel_arguments(graph, scores, 1.0, np.inf, 10**6))
    assert abs(cost) < 10**4
    assert len(set(path.tolist())) >= graph.min_frames
    assert math.isnan(align_frames(*kernel_arguments(graph, scores, 1.0, np.inf, 10**4))[0])


def test_one_frame_and_too_few():
    models = PhoneModels({"a": ("a_s2",), "b": ("b_s2", "b_s3"), "sil": ("sil_s2",)})
    aligner = Aligner(TranscriptGraphs(models, [Pronunciation("A", None, None, ("a",))]))
    (unit, span), = aligner.align(["A"], np.zeros((4, 1), np.float32)).words  # fmt: skip
    assert (unit.output, span.start, span.end) == ("A", 0, 1)
    with pytest.raises(ShapeError, match=r"alignment: 1 frames; expected at least 2 for a transcript of 2 labels"):
        aligner.align(["A", "A"], np.zeros((4, 1), np.float32))
    with pytest.raises(ShapeError, match="0 frames; expected at least 1"):
        aligner.align(["A"], np.zeros((4, 0), np.float32))


def test_phone_transcripts_take_no_silence_unless_asked():
    rng = np.random.default_rng(3)
    models = monophones(rng)
    scores = scores_for(models, 12, rng)
    names = [unit.model for unit, _ in Aligner(TranscriptGraphs(models)).align(["sil", "a", "b"], scores).phones]
    assert names == ["sil", "a", "b"]
    scores[rows_of(models)["sil_s2"], 0] = scores[rows_of(models)["sil_s3"], 1] = 50.0
    graphs = TranscriptGraphs(models, options=GraphOptions(optional_silence=True))
    assert [unit.model for unit, _ in Aligner(graphs).align(["a", "b"], scores).phones][:2] == ["sil", "a"]
    context = Aligner(TranscriptGraphs(triphones(rng)))
    scores = scores_for(context.graphs.models, 12, rng)
    by_name = context.align(["sil-a+b", "a-b+sil"], scores)
    assert context.align(["a", "b"], scores).total == by_name.total


def test_beam_widens_or_tells():
    models = PhoneModels({"b": ("b_s2",), "sil": ("sil_s2",)})
    scores = np.zeros((2, 4), np.float32)
    scores[0, 0], scores[0, 1:] = -100.0, -np.inf  # b must come first, though silence looks better there
    graphs = TranscriptGraphs(models, options=GraphOptions(optional_silence=True))
    assert Aligner(graphs, 1.0).align(["b"], scores).total == 100.0
    found = Aligner(graphs, 1.0, 20.0).align(["b"], scores)
    assert (found.total, found.beam) == (100.0, 160.0)
    with pytest.raises(ShapeError, match=r"no path survives a beam of 80 \(10 doubled 3 times\); expected a transcrip"):
        Aligner(graphs, 1.0, 10.0).align(["b"], scores)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["X", "NO", "OH", "NO"], "transcript: words not in the dictionary: NO, OH; expected words of the dictionary"),
        (["W"], "transcript: phones not in the HMM set: zz; expected phones of the HMM set"),
        (["E"], "dictionary word 'E': no phones; expected at least one"),
        ([], "transcript: no labels; expected at least one word or phone"),
    ],
)
def test_transcripts_refused(words, message):
    entries = [*DICTIONARY, Pronunciation("W", None, None, ("a", "zz")), Pronunciation("E", None, None, ())]
    graphs = TranscriptGraphs(monophones(np.random.default_rng(0)), entries)
    with pytest.raises(GraphError) as fault:
        graphs.graph(words)
    assert str(fault.value) == message


def test_phone_with_a_dash():
    """Without triphones, ax-h is the name of a phone, in transcripts of words too."""
    models = PhoneModels({"ax-h": ("ax-h_s2",), "sil": ("sil_s2",)})
    scores = np.zeros((2, 3), np.float32)
    for transcript, dictionary in ((["ax-h"], None), (["A"], [Pronunciation("A", None, None, ("ax-h",))])):
        found = Aligner(TranscriptGraphs(models, dictionary), 1.0).align(transcript, scores)
        assert found.total < np.inf


def test_set_up_refused():
    models = monophones(np.random.default_rng(0))
    with pytest.raises(GraphError, match=r"cntkmap: no index of state \[a_s2\] and 4 more; expected a line"):
        TranscriptGraphs(models, None, {"b_s2": 0})
    with pytest.raises(GraphError, match="silence: no model 'quiet'"):
        TranscriptGraphs(models, None, None, GraphOptions(silence="quiet"))
    graphs = TranscriptGraphs(models)
    with pytest.raises(GraphError, match="phones not in the HMM set: q"):
        graphs.graph(["q"])
    for bad in ({"acweight": 0.0}, {"beam": -1.0}, {"acweight": math.nan}):
        with pytest.raises(ConfigError, match="expected a number above 0"):
            Aligner(graphs, **bad)
    scores = scores_for(models, 5, np.random.default_rng(0))
    scores[0, 2] = np.nan
    with pytest.raises(ShapeError, match="NaN or \\+inf in frame 2"):
        Aligner(graphs).align(["a"], scores)
    with pytest.raises(ShapeError, match=r"scores: shape \(2, 5\); expected \(6 or more network outputs, frames\)"):
        Aligner(graphs).align(["a"], scores[:2])
    with pytest.raises(ShapeError, match="no path of finite score"):
        Aligner(graphs).align(["a"], np.full((6, 5), -np.inf, np.float32))


def test_levels_agree_and_come_back_from_the_file(tmp_path):
    rng = np.random.default_rng(8)
    models = monophones(rng, {"sil": SILENCE_WAYS})
    scores = scores_for(models, 30, rng)
    result = Aligner(TranscriptGraphs(models, DICTIONARY)).align(["Y", "X", "Z", "Y"], scores)
    labels = {level: alignment_labels(result, level) for level in LEVELS}
    assert [label.name for label in labels["word"]] == ["why", "X", "why"]  # Z is written as nothing
    assert sum(label.end - label.start for label in labels["phone"]) == 30 * 100_000
    for level in ("phone", "state"):
        words = [(label.start, *label.aux[-1]) for label in labels[level] if len(label.aux) == LEVELS.index(level)]
        assert words == [(label.start, label.name, label.score) for label in labels["word"]]
    phones = [(label.start, *label.aux[0]) for label in labels["state"] if label.aux]
    assert phones == [(label.start, label.name, label.score) for label in labels["phone"]]
    assert sum(label.score for label in labels["state"]) == pytest.approx(-result.total, abs=1e-4)
    write_mlf(tmp_path / "a.mlf", [(f"*/{level}.rec", labels[level]) for level in LEVELS])
    assert dict(read_mlf(tmp_path / "a.mlf")) == labels


def test_more_ways_than_back_pointers_can_hold_are_refused(monkeypatch):
    rng = np.random.default_rng(0)
    models = monophones(rng)
    aligner = Aligner(TranscriptGraphs(models, DICTIONARY))
    scores = scores_for(models, 40, rng)
    assert aligner.align(["X", "Y"], scores).total < math.inf
    monkeypatch.setattr("decoder.alignment.aligner.MAX_ARCS", 1)
    with pytest.raises(GraphError, match=r"alignment: \d+ ways into one state of the transcript; expected at most 1; "):
        aligner.align(["X", "Y"], scores)
