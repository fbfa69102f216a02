"""Long recordings with imperfect transcripts, on scores in which every state is known."""

import itertools

import numpy as np
import pytest

from decoder.alignment.long_recordings import ArrayScores, LongOptions, SpokenWord, align_long, divide
from decoder.alignment.long_recordings.long_alignment import anchors, trusted, with_loops
from decoder.alignment.long_recordings.second_pass import SecondPass
from decoder.alignment.long_recordings.transcript_errors import Item
from decoder.graph import GraphOptions, PhoneModels
from decoder.graph.transcript import TranscriptGraphs
from decoder.search.options import SearchOptions
from readers.errors import ConfigError, GraphError
from readers.htk.dictionary import Pronunciation

PHONES = "abcdefgh"
WORDS = {"AB": "ab", "BAD": "bad", "CAFE": "cafe", "DEAF": "deaf", "EGG": "eg", "FACE": "fac", "GAGE": "gage",
         "HEAD": "hed", "ACHE": "ach"}  # fmt: skip
OTHER = "hcghb"  # speech that is no word
SEARCH = SearchOptions(acweight=0.5, beam=40.0, sil_cost=0.0, word_end_beam_frac=1.0)


def monophones():
    return PhoneModels({phone: (f"{phone}_s2", f"{phone}_s3") for phone in (*PHONES, "sil")})


def triphones():
    """The second state depends on the phone after it."""
    sides = (*PHONES, "sil")
    states = {
        f"{left}-{phone}+{right}": (f"{phone}_s2", f"{phone}_s3_{right}")
        for phone, left, right in itertools.product(PHONES, sides, sides)
    }
    return PhoneModels(states | {"sil": ("sil_s2", "sil_s3")})


def graphs_of(models, **options):
    dictionary = [Pronunciation(word, None, None, tuple(phones)) for word, phones in WORDS.items()]
    return TranscriptGraphs(models, dictionary, options=GraphOptions(silence="sil", **options))


def spoken(models, words, seed=0):
    """(scores, [(word, start, end)]): a pause after every third word; other speech is a string of phones."""
    rng = np.random.default_rng(seed)
    rows = {state: i for i, state in enumerate(dict.fromkeys(models.senones.values()))}
    parts = ["sil"]
    for i, word in enumerate(words):
        parts += [word, *(["sil"] if i % 3 == 2 and i < len(words) - 1 else [])]
    spelled = [["sil"] if part == "sil" else WORDS.get(part, part) for part in (*parts, "sil")]
    phones = [(phone, i) for i, names in enumerate(spelled) for phone in names]
    path, times = [], {}
    for k, (phone, part) in enumerate(phones):
        after = phones[k + 1][0] if k + 1 < len(phones) else "sil"
        before = phones[k - 1][0] if k else "sil"
        model = phone if phone in models.states else f"{before}-{phone}+{after}"
        begin = len(path)
        for state in models.states[model]:
            path += [rows[state]] * int(rng.integers(12, 16) if phone == "sil" else rng.integers(3, 6))
        times[part] = (times.get(part, (begin, 0))[0], len(path))
    scores = rng.normal(scale=0.5, size=(len(rows), len(path))) - 8.0
    scores[path, np.arange(len(path))] += 8.0
    found = [(part, *times[i]) for i, part in enumerate(parts) if part != "sil"]
    return np.asfortranarray(scores, np.float32), found


def aligned(models, audio, transcript, competitors=tuple(WORDS), options=None, longest=200):
    """(alignment, true words of the audio)."""
    scores, times = spoken(models, audio)
    sil = list(dict.fromkeys(models.senones.values())).index("sil_s2")
    source = ArrayScores(scores, divide(scores[sil : sil + 2].max(axis=0) - scores.max(axis=0), longest // 2, longest))
    assert len(source.pieces) > 1 or scores.shape[1] <= longest
    found = align_long(source, transcript, graphs_of(models), competitors, SEARCH, options, 1)
    assert found.num_frames == scores.shape[1]
    covered = sorted([word.position for word in found.words]
                     + [i for one in found.damage for i in range(one.first, one.last)])  # fmt: skip
    assert covered == list(range(len(transcript)))
    assert all(one.words == tuple(transcript[one.first : one.last]) for one in found.damage)
    return found, times


def damage_of(found):
    return [(one.kind, one.first, one.last, one.recognised) for one in found.damage]


SENTENCE = "AB BAD CAFE DEAF EGG FACE GAGE HEAD ACHE BAD AB HEAD FACE CAFE EGG DEAF".split()


@pytest.mark.parametrize("models", [monophones(), triphones()], ids=("monophones", "triphones"))
def test_words_of_a_correct_transcript_have_their_times(models):
    found, times = aligned(models, SENTENCE, SENTENCE)
    assert [(word.text, word.start, word.end) for word in found.words] == times
    assert [word.position for word in found.words] == list(range(len(SENTENCE)))
    assert found.damage == ()
    assert all(word.confidence > 0.9 for word in found.words)
    of_word = ["".join(phone.text for phone in found.phones if phone.position == i) for i in range(len(SENTENCE))]
    assert of_word == [WORDS[word] for word in SENTENCE]
    assert {phone.text for phone in found.phones if phone.position < 0} == {"sil"}
    bounds = [(phone.start, phone.end) for phone in found.phones]
    assert [start for start, _ in bounds] == [0, *(end for _, end in bounds[:-1])]
    assert bounds[-1][1] == found.num_frames


@pytest.mark.parametrize("place", [0, 5, 8, len(SENTENCE) - 1])
@pytest.mark.parametrize("models", [monophones(), triphones()], ids=("monophones", "triphones"))
def test_each_kind_of_damage_is_named(models, place):
    word, other = SENTENCE[place], "GAGE" if SENTENCE[place] != "GAGE" else "EGG"
    without = SENTENCE[:place] + SENTENCE[place + 1 :]
    found, times = aligned(models, SENTENCE, without)
    (stretch,) = found.damage
    assert damage_of(found) == [("inserted", place, place, (word,))]
    assert (word, stretch.start, stretch.end) == times[place]
    assert [(one.text, one.start, one.end) for one in found.words] == times[:place] + times[place + 1 :]
    assert {phone.text for phone in found.phones if phone.position < 0} == {"sil", *WORDS[word]}

    found, times = aligned(models, without, SENTENCE)
    assert damage_of(found) == [("deleted", place, place + 1, ())]
    assert [(one.text, one.start, one.end) for one in found.words] == times
    before = times[place - 1][2] if place else 0
    after = times[place][1] if place < len(times) else found.num_frames
    assert (found.damage[0].start, found.damage[0].end) == (before, after)

    found, times = aligned(models, SENTENCE, [*SENTENCE[:place], other, *SENTENCE[place + 1 :]])
    (stretch,) = found.damage
    assert damage_of(found) == [("replaced", place, place + 1, (word,))]
    assert (word, stretch.start, stretch.end) == times[place]


def test_speech_that_is_no_word_is_recognised_as_phones():
    found, times = aligned(monophones(), [*SENTENCE[:5], OTHER, *SENTENCE[5:]], SENTENCE)
    (stretch,) = found.damage
    assert damage_of(found) == [("inserted", 5, 5, tuple(f"#{phone}" for phone in OTHER))]
    assert (OTHER, stretch.start, stretch.end) == times[5]
    found, times = aligned(monophones(), [*SENTENCE[:5], OTHER, *SENTENCE[6:]], SENTENCE, competitors=())
    assert damage_of(found) == [("replaced", 5, 6, tuple(f"#{phone}" for phone in OTHER))]


def test_without_fillers_words_are_recognised_in_their_place():
    found, _ = aligned(
        monophones(), [*SENTENCE[:5], OTHER, *SENTENCE[5:]], SENTENCE, options=LongOptions(filler_cost=None)
    )
    assert all(not word.startswith("#") for one in found.damage for word in one.recognised)


def test_a_page_that_is_missing_or_was_not_read_is_one_stretch():
    rng = np.random.default_rng(4)
    page = [list(WORDS)[i] for i in rng.integers(0, len(WORDS), 40)]
    found, times = aligned(monophones(), [*SENTENCE, *page, *SENTENCE[::-1]], [*SENTENCE, *SENTENCE[::-1]])
    assert [one.kind for one in found.damage] == ["inserted"]
    assert found.damage[0].recognised == tuple(page)
    found, times = aligned(monophones(), [*SENTENCE, *SENTENCE[::-1]], [*SENTENCE, *page, *SENTENCE[::-1]])
    assert damage_of(found) == [("deleted", len(SENTENCE), len(SENTENCE) + len(page), ())]
    assert [(one.text, one.start, one.end) for one in found.words] == times


def test_homophones_of_the_transcript_are_no_damage():
    models = monophones()
    entries = [Pronunciation(word, None, None, tuple(phones)) for word, phones in (WORDS | {"EGGS": "eg"}).items()]
    graphs = TranscriptGraphs(models, entries, options=GraphOptions(silence="sil"))
    scores, _ = spoken(models, SENTENCE)
    transcript = ["EGGS" if i == 4 else word for i, word in enumerate(SENTENCE)]
    found = align_long(ArrayScores(scores, [(0, scores.shape[1])]), transcript, graphs, list(WORDS), SEARCH, None, 1)
    assert found.damage == ()
    assert found.words[4].text == "EGGS"


def test_a_word_that_fits_nowhere_is_not_believed():
    """With a language model that overrules the audio, the word is recognised in a few frames."""
    without = SENTENCE[:4] + SENTENCE[5:]
    found, _ = aligned(monophones(), without, SENTENCE, options=LongOptions(lm_scale=50.0, doubt=0.0))
    assert ("deleted", 4, 5, ()) in damage_of(found)


@pytest.mark.parametrize("models", [monophones(), triphones()], ids=("monophones", "triphones"))
def test_words_that_the_language_model_has_suppressed_are_found_by_a_second_pass(models):
    without = SENTENCE[:4] + SENTENCE[5:]
    found, times = aligned(models, SENTENCE, without, options=LongOptions(lm_scale=50.0))
    assert damage_of(found) == [("inserted", 4, 4, ("EGG",))]
    assert [(one.text, one.start, one.end) for one in found.words] == times[:4] + times[5:]
    found, _ = aligned(models, SENTENCE, without, options=LongOptions(lm_scale=50.0, doubt=0.0))
    assert found.damage == ()
    replaced = [*SENTENCE[:4], "GAGE", *SENTENCE[5:]]
    found, times = aligned(models, SENTENCE, replaced, options=LongOptions(lm_scale=50.0))
    assert damage_of(found) == [("replaced", 4, 5, ("EGG",))]
    assert ("EGG", found.damage[0].start, found.damage[0].end) == times[4]


@pytest.mark.parametrize(
    ("doubtful", "expected"),
    [
        ((), []),
        ((0,), [(0, 2)]),
        ((9,), [(8, 10)]),
        ((2, 4), [(1, 6)]),
        ((2, 5), [(1, 4), (4, 7)]),
        ((1, 8), [(0, 3), (7, 10)]),
    ],
)
def test_stretches_of_doubtful_words_have_a_word_on_each_side(doubtful, expected):
    words = [SpokenWord(i, "AB", 10 * i, 10 * i + 9, 0.1 if i in doubtful else 0.9) for i in range(10)]
    assert SecondPass(None, None, LongOptions()).stretches(words) == expected


def test_results_do_not_depend_on_threads():
    scores, _ = spoken(monophones(), SENTENCE[::2] + SENTENCE)
    source = ArrayScores(scores, divide(np.zeros(scores.shape[1]), 100, 150))
    one, three = (align_long(source, SENTENCE, graphs_of(monophones()), WORDS, SEARCH, None, n) for n in (1, 3))
    assert one == three


def test_progress_is_told():
    told = []
    scores, _ = spoken(monophones(), SENTENCE)
    source = ArrayScores(scores, [(0, 200), (200, scores.shape[1])])
    align_long(source, SENTENCE, graphs_of(monophones()), (), SEARCH, None, 1, lambda *now: told.append(now))
    assert told == [(200, scores.shape[1]), (scores.shape[1], scores.shape[1])]


def test_what_cannot_be_aligned_is_refused():
    models = monophones()
    scores, _ = spoken(models, SENTENCE)
    source = ArrayScores(scores, [(0, scores.shape[1])])
    with pytest.raises(GraphError, match="words not in the dictionary: NONE; expected words of the dictionary"):
        align_long(source, ["AB", "NONE"], graphs_of(models))
    with pytest.raises(ConfigError, match="no words or no frames"):
        align_long(source, [], graphs_of(models))
    with pytest.raises(ConfigError, match="no words or no frames"):
        align_long(ArrayScores(scores[:, :0], []), ["AB"], graphs_of(models))
    with pytest.raises(ConfigError, match="no dictionary or no silence model"):
        align_long(source, ["a"], TranscriptGraphs(models))
    for wrong in ({"order": 0}, {"margin": -1.0}, {"doubt": 2.0}, {"shortest": 30.0}, {"filler_cost": float("nan")}):
        with pytest.raises(ConfigError):
            LongOptions(**wrong)


def test_anchors_are_runs_that_follow_each_other_in_both():
    found = np.array([0, 1, 2, -1, 5, 6, 8, 9, 10])
    assert anchors(found, 3).tolist() == [True] * 3 + [False] * 3 + [True] * 3
    assert anchors(found, 2).tolist() == [True] * 3 + [False] + [True] * 5
    assert anchors(np.full(3, -1), 1).tolist() == [False] * 3


def test_few_matches_in_a_long_stretch_do_not_count():
    transcript, heard = "abcxeyzuvfghsk", "abcrewwwwwwwwwwwwwwzfghtk"
    found = np.array([0, 1, 2, -1, 4, -1, 19, -1, -1, 20, 21, 22, -1, 24])
    assert trusted(transcript, heard, found, 3).tolist() == [0, 1, 2, *[-1] * 6, 20, 21, 22, -1, 24]
    assert trusted(transcript[:7], heard[:12], found[:7], 3).tolist() == found[:7].tolist()
    heard = "abcxewwwwwwwwwwwwwwvfghtk"  # now they continue the anchors
    found = np.array([0, 1, 2, 3, -1, -1, -1, -1, -1, 20, 21, 22, -1, 24])
    assert trusted(transcript, heard, found, 3).tolist() == [0, 1, 2, 3, 4, *[-1] * 3, 19, 20, 21, 22, -1, 24]


def test_pieces_end_where_it_is_quietest():
    rng = np.random.default_rng(0)
    quiet = rng.normal(size=1000)
    for place in (130, 300, 440, 615, 800):
        quiet[place - 15 : place + 15] += 10
    assert [last for _, last in divide(quiet, 100, 200)] == pytest.approx([130, 300, 440, 615, 800, 1000], abs=6)
    pieces = divide(rng.normal(size=5000), 100, 200)
    assert [first for first, _ in pieces] == [0, *(last for _, last in pieces[:-1])]
    assert pieces[-1][1] == 5000
    assert all(100 <= last - first <= 200 for first, last in pieces[:-1])
    assert divide(np.zeros(0), 1, 2) == []


@pytest.mark.parametrize("models", [monophones(), triphones()], ids=("monophones", "triphones"))
def test_words_of_the_dictionary_that_were_not_said_need_no_models(models):
    """Nor do their names matter, of which some mean something else in graphs."""
    entries = [
        Pronunciation(word, None, None, tuple(phones))
        for word, phones in (WORDS | {"HEM": "hxm", "BAD(2)": "bx", "<eps>": "ab", "0": "eg", "[noise]": "hh"}).items()
    ]
    graphs = TranscriptGraphs(models, entries, options=GraphOptions(silence="sil"))
    scores, times = spoken(models, SENTENCE)
    source = ArrayScores(scores, [(0, scores.shape[1])])
    found = align_long(source, SENTENCE, graphs, list(graphs.words), SEARCH, None, 1)
    assert [(word.text, word.start, word.end) for word in found.words] == times
    assert found.damage == ()
    named = ["0" if word == "EGG" else "<eps>" if word == "AB" else word for word in SENTENCE]
    found = align_long(source, named, graphs, (), SEARCH, None, 1)
    assert [word.text for word in found.words] == named
    with pytest.raises(GraphError, match="phones without a model: 'x' of "):
        align_long(source, [*SENTENCE, "HEM"], graphs, (), SEARCH, None, 1)


def test_loops_stand_in_place_of_what_was_recognised_beside_the_words():
    items = [Item(0, "A", 0, 10), Item(-1, "#b", 12, 20), Item(3, "B", 30, 40), Item(-1, "#c", 45, 50)]
    transcript = ["A", "<unk>", "[x]", "B"]
    assert with_loops(items, transcript, {"<unk>", "[x]"}, 60) == [
        Item(0, "A", 0, 10),
        Item(1, "<unk>", 10, 20),
        Item(2, "[x]", 20, 30),
        *items[2:],
    ]
    assert with_loops([], ["[x]"], {"[x]"}, 60) == [Item(0, "[x]", 0, 60)]


def test_sounds_are_aligned_in_long_recordings():
    models = monophones()
    scores, times = spoken(models, SENTENCE[:9])
    source = ArrayScores(scores, [(0, scores.shape[1])])
    transcript = [*SENTENCE[:4], "<unk>", *SENTENCE[5:9]]
    found = align_long(source, transcript, graphs_of(models).with_words((), ["<unk>"], 2.0), (), SEARCH)
    assert not found.damage
    assert [word.text for word in found.words] == transcript
    for word, (_, start, end) in zip(found.words, times):
        assert max(abs(word.start - start), abs(word.end - end)) <= 3
