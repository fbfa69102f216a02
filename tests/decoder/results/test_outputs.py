"""MLF labels and SLF lattices of a search, and many utterances in threads."""

import threading

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.lattices.posteriors import confident_words
from decoder.results.outputs import slf_lattice, state_labels, word_labels
from decoder.search.batch import MAX_WAITING, in_order
from decoder.search.decoder import Decoder, SearchOptions
from readers.errors import ShapeError
from readers.htk.frame_labels import frame_labels
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.slf import read_slf, write_slf
from readers.results.lattice import NULL_WORD
from tests.decoder.graphs import make_acceptor
from tests.decoder.lattices.search_paths import best_path
from tests.decoder.search.test_decoder import UNPRUNED, random_case

# <s> and </s> are one state of silence; x is a b, y is c with its label inside; silence may stand between words.
ARCS = [
    *((0, 1, "<s>", 0.0), (1, 2, "[sil_s2]", 0.0)),
    *((2, 3, "[a_s2]", 0.0), (3, 4, "x", 0.5), (4, 5, "[b_s2]", 0.0), (5, 6, "[b_s3]", 0.25)),
    *((2, 7, "[c_s2]", 0.0), (7, 8, "y", 0.0), (8, 6, "[c_s3]", 0.0)),
    *((6, 3, "[a_s2]", 0.0), (6, 7, "[c_s2]", 0.0), (6, 2, "[sil_s2]", 0.0)),
    *((6, 9, "</s>", 0.0), (9, 10, "[sil_s2]", 0.0)),
]
STATES = dict.fromkeys(("a_s2", "b_s2", "b_s3", "c_s2", "c_s3", "sil_s2"), (-0.5, -1.0))
SPOKEN = "sil_s2 sil_s2 a_s2 b_s2 b_s2 b_s3 sil_s2 c_s2 c_s3 c_s3 sil_s2".split()
PERIOD = 50000


def make_decoder(**options):
    graph = precompile(make_acceptor(ARCS, {10: 0.125}), STATES, outputs={"y": "Y"})
    return Decoder(graph, options=SearchOptions(**{**UNPRUNED, **options}))


def spoken_scores(decoder, sharpness=20.0):
    rows = [[0.0 if state == spoken else -sharpness for spoken in SPOKEN] for state in decoder.graph.states]
    return np.asfortranarray(rows, dtype=np.float32)


def test_word_labels_have_times_and_the_words_share_of_the_score():
    decoder = make_decoder()
    result = decoder.decode(spoken_scores(decoder))
    x = 0.5 + 0.25 + 3 * 1.0 + 0.5  # arcs, three states left, one frame stayed
    y = 0.0 + 2 * 1.0 + 0.5
    assert word_labels(result, PERIOD) == [
        Label(2 * PERIOD, 6 * PERIOD, "x", -x),
        Label(7 * PERIOD, 10 * PERIOD, "Y", -y),
    ]
    assert result.cost == pytest.approx(x + y + 3 * 1.0 + 0.5 + 0.125)  # three silences, one frame stayed in the first


def test_state_labels_tile_the_frames_and_carry_phones_and_words(tmp_path):
    decoder = make_decoder()
    result = decoder.decode(spoken_scores(decoder))
    labels = state_labels(result, decoder, PERIOD)
    write_mlf(tmp_path / "out.mlf", [("*/u.rec", labels)])
    back = read_mlf(tmp_path / "out.mlf")["u"]
    assert back == labels
    numbers = {name: i for i, name in enumerate(decoder.graph.states)}
    frames = frame_labels(back, numbers, "u", PERIOD)
    assert [decoder.graph.states[i] for i in frames] == SPOKEN
    assert [[name for name, _ in label.aux] for label in labels] == [
        *(["sil", "<s>"], ["a", "x"], ["b"], [], ["sil"], ["c", "Y"], [], ["sil", "</s>"])
    ]
    phones = [label.aux[0][1] for label in labels if label.aux]
    assert sum(label.score for label in labels) == pytest.approx(sum(phones))
    words = {name: score for label in labels for name, score in label.aux[1:]}
    assert (words["x"], words["Y"]) == (word_labels(result)[0].score, word_labels(result)[1].score)


def test_silence_that_goes_back_and_forth_is_one_phone_and_a_phone_said_twice_is_two():
    arcs = [(0, 1, "[sil_s2]", 0.0), (1, 2, "[sil_s4]", 0.0), (2, 1, "[sil_s2]", 0.0)]
    arcs += [(2, 3, "[a_s2]", 0.0), (3, 4, "[a_s3]", 0.0), (4, 3, "[a_s2]", 0.0)]
    decoder = Decoder(precompile(make_acceptor(arcs, {4: 0.0})), options=SearchOptions(**UNPRUNED))
    spoken = "sil_s2 sil_s4 sil_s2 sil_s2 sil_s4 a_s2 a_s3 a_s2 a_s3".split()
    rows = [[0.0 if state == s else -9.0 for s in spoken] for state in decoder.graph.states]
    labels = state_labels(decoder.decode(np.array(rows, np.float32)), decoder)
    assert [label.name for label in labels if label.aux] == ["sil_s2", "a_s2", "a_s2"]


def test_word_that_shares_its_phone_with_another_is_not_lost():
    arcs = [(0, 1, "[a_s2]", 0.0), (1, 2, "x", 0.0), (2, 3, "y", 0.0), (3, 4, "[b_s2]", 0.0)]
    decoder = Decoder(precompile(make_acceptor(arcs, {4: 0.0})), options=SearchOptions(**UNPRUNED))
    result = decoder.decode(np.zeros((2, 4), np.float32))
    assert result.text == ["x", "y"]
    named = [name for label in state_labels(result, decoder) for name, _ in label.aux]
    assert sorted(named) == ["a", "b", "x", "y"]


@pytest.mark.parametrize(
    ("arcs", "finals", "frames", "words"),
    [
        ([(0, 1, "A", 0.0), (1, 2, "B", 0.0), (2, 3, "[a_s2]", 0.0)], {3: 0.0}, 2, ("A", "B")),
        ([(0, 1, "A", 0.0), (0, 2, "[a_s2]", 0.0)], {1: 0.0, 2: 1.0}, 0, ()),
    ],
)
def test_words_before_the_first_state_stand_beside_it(arcs, finals, frames, words):
    decoder = Decoder(precompile(make_acceptor(arcs, finals)), None)
    result = decoder.decode(np.zeros((1, frames), np.float32))
    labels = state_labels(result, decoder)
    assert tuple(name for label in labels for name, _ in label.aux[1:]) == words


@pytest.mark.parametrize("seed", range(40))
def test_lattice_file_holds_the_best_path_with_its_score(seed, tmp_path):
    case = random_case(seed)
    decoder = case.decoder.with_options(lattice_beam=4.0)
    result = decoder.decode(case.scores)
    if result.lattice is None:
        return
    slf = slf_lattice(result.lattice, decoder.graph, decoder.options, "utt", PERIOD, "lm")
    write_slf(tmp_path / "u.lat", slf, digits=17)
    back = read_slf(tmp_path / "u.lat")
    scales = [back.acoustic_scale, back.lm_scale, back.word_penalty]
    spoken = np.array([word != NULL_WORD for word in back.word])
    total = scales[0] * back.acoustic + scales[1] * back.lm + scales[2] * spoken
    np.testing.assert_allclose(total, -result.lattice.cost, atol=1e-9)
    best = np.full(back.num_nodes, -np.inf)
    best[0] = 0.0
    for start, end, score in zip(back.start, back.end, total):  # links stand in topological order
        best[end] = max(best[end], best[start] + score)
    assert best[-1] == pytest.approx(-result.cost, abs=1e-9)
    assert back.time[-1] == pytest.approx(case.scores.shape[1] * PERIOD * 1e-7)
    for start, end, segments in zip(back.start, back.end, back.segments.rows()):
        duration = sum(seconds for _, seconds, _ in segments or ())
        assert duration == pytest.approx(back.time[end] - back.time[start], abs=1e-9)


def test_lattice_words_end_where_words_end():
    decoder = make_decoder(lattice_beam=40.0, acweight=0.5)
    result = decoder.decode(spoken_scores(decoder))
    lattice = result.lattice
    links = best_path(lattice)[1]
    words = [decoder.graph.words[w] for w in lattice.word[links] if w >= 0]
    assert words == ["<s>", "x", "y", "</s>"]
    ends = [int(lattice.time[lattice.end[link]]) for link in links if lattice.word[link] >= 0]
    assert ends == [2, 6, 10, 11]
    assert lattice.num_links > len(links)


@pytest.mark.parametrize("silence", [None, ("sil", "a"), ()])
def test_words_of_a_lattice_file_have_the_times_of_the_search(silence, tmp_path):
    decoder = make_decoder(lattice_beam=40.0, acweight=0.5, silence=silence)
    result = decoder.decode(spoken_scores(decoder))
    write_slf(tmp_path / "u.lat", slf_lattice(result.lattice, decoder.graph, decoder.options, "u", PERIOD))
    words = confident_words(read_slf(tmp_path / "u.lat"))
    found = [(word.text, round(word.start * 200), round(word.end * 200)) for word in words]
    assert found == [(word.text, word.start, word.end) for word in result.words]
    begins = {None: [2, 7], ("sil", "a"): [3, 7], (): [2, 6]}
    assert [begin for _, begin, _ in found] == begins[silence]


def test_lattice_beam_bounds_every_link():
    decoder = make_decoder(acweight=0.2)
    scores = spoken_scores(decoder, 5.0)
    sizes = []
    for beam in (0.0, 1.0, 5.0, 20.0):
        result = decoder.with_options(lattice_beam=beam).decode(scores)
        lattice = result.lattice
        sizes.append(lattice.num_links)
        forward, backward = np.full((2, lattice.num_nodes), np.inf)
        forward[0] = backward[-1] = 0.0
        for i in range(lattice.num_links):
            forward[lattice.end[i]] = min(forward[lattice.end[i]], forward[lattice.start[i]] + lattice.cost[i])
        for i in reversed(range(lattice.num_links)):
            backward[lattice.start[i]] = min(backward[lattice.start[i]], backward[lattice.end[i]] + lattice.cost[i])
        through = forward[lattice.start] + lattice.cost + backward[lattice.end]
        assert through.max() <= result.cost + beam + 1e-5
        assert through.min() == pytest.approx(result.cost, abs=1e-9)
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]


def test_batch_gives_results_in_order_whatever_the_threads():
    decoder = make_decoder()
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(6, n)).astype(np.float32) for n in rng.integers(5, 60, size=30)]
    matrices[7] = np.full((6, 9), np.nan, np.float32)
    matrices[8] = np.zeros((2, 9), np.float32)
    one, four = (list(in_order(decoder.decode, iter(matrices), threads)) for threads in (1, 4))
    for number, ((matrix, result), (_, again)) in enumerate(zip(one, four)):
        assert matrix is matrices[number]
        if number not in (7, 8):
            assert (result.cost, result.text) == (again.cost, again.text)
    assert "NaN" in str(one[7][1])
    assert "shape (2, 9)" in str(one[8][1])
    assert one[0][1].cost == decoder.decode(matrices[0]).cost


def test_batch_draws_no_more_than_it_needs():
    drawn, gate = [], threading.Event()

    def items():
        for i in range(100):
            drawn.append(i)
            yield i

    def work(item):
        gate.wait(5)
        return item

    results = in_order(work, items(), 2)
    waiting = threading.Timer(0.2, gate.set)
    waiting.start()
    assert next(results) == (0, 0)
    waiting.join()
    assert len(drawn) <= 2 * MAX_WAITING + 2
    assert [answer for _, answer in results] == list(range(1, 100))


def test_batch_passes_faults_of_the_input_on_and_lets_bugs_through():
    def work(item):
        if item == 3:
            raise ShapeError("three")
        if item == 5:
            raise ZeroDivisionError
        return item

    results = in_order(work, range(10), 2)
    answers = [next(results)[1] for _ in range(5)]
    assert [str(answer) for answer in answers] == ["0", "1", "2", "three", "4"]
    with pytest.raises(ZeroDivisionError):
        next(results)
