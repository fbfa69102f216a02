"""The tied system: its files read back as a model set, unseen triphones, silence and short pause, what is refused."""

import numpy as np
import pytest

from decoder.graph import distil
from decoder.tying import Statistics, TransitionCounts, TreeOptions, places_of, state_runs, tie_states
from readers.errors import GraphError
from readers.htk.edit_script import read_edit_script
from readers.htk.hmm_list import read_hmm_list
from readers.htk.mlf import Label
from readers.htk.mmf import read_mmf
from readers.htk.trees import Question, read_trees

PHONES = ("a", "b", "c")
STATES = {phone: (f"{phone}_s2", f"{phone}_s3") for phone in PHONES} | {"sil": ("sil2", "sil3", "sil4")}
QUESTIONS = {
    f"{side}_{p}": Question(f"{side}_{p}", (f"{p}-*" if side == "L" else f"*+{p}",)) for side in "LR" for p in PHONES
}
QUESTIONS["L_Sil"] = Question("L_Sil", ("sil-*",))


def utterance(rng: np.random.Generator, phones: list[str]) -> tuple[list[Label], np.ndarray]:
    """State labels, and frames whose mean is moved by what stands to the left of a first and right of a last state."""
    padded = ["sil", *phones, "sil"]
    labels, frames, time = [], [], 0
    for i, phone in enumerate(padded):
        for place, state in enumerate(STATES[phone]):
            length = int(rng.integers(2, 5))
            labels.append(Label(time * 100_000, (time + length) * 100_000, state))
            time += length
            mean = np.array([list(STATES).index(phone), place, 0.0])
            if phone != "sil":
                mean[2] = 5.0 * list(STATES).index(padded[i - 1] if place == 0 else padded[i + 1])
            frames.append(mean + 0.1 * rng.normal(size=(length, 3)))
    return labels, np.asfortranarray(np.concatenate(frames).T.astype(np.float32))


def collect(sentences: list[str], kind: str = "USER") -> tuple[Statistics, TransitionCounts, list[list]]:
    rng = np.random.default_rng(0)
    statistics, transitions, all_runs = Statistics(3, kind), TransitionCounts(), []
    for sentence in sentences:
        labels, frames = utterance(rng, list(sentence))
        runs = state_runs(labels, places_of(STATES), {"sil"})
        statistics.add(runs, frames)
        transitions.add(runs, {phone: len(states) for phone, states in STATES.items()})
        all_runs.append(runs)
    return statistics, transitions, all_runs


SENTENCES = ["ab", "ba", "abab", "bb", "aa", "ca", "cb"] * 4
OPTIONS = TreeOptions(threshold=20.0, min_frames=5)


def tied(sentences=SENTENCES, options=OPTIONS, kind="USER", **more):
    statistics, transitions, runs = collect(sentences, kind)
    return tie_states(statistics, transitions, STATES, {"sil"}, QUESTIONS, options, **more), statistics, runs


def test_files_read_back_give_the_same_models(tmp_path):
    system, _, _ = tied(kind="MFCC_D", pause="sp")
    system.save(tmp_path)
    donor = read_mmf(tmp_path / "hmmdefs")
    trees, names = read_trees(tmp_path / "trees"), read_hmm_list(tmp_path / "tiedlist")
    assert names == system.names
    assert (tmp_path / "senones.list").read_text().split() == system.senones
    contexts = [*PHONES, "sil"]
    saved, made = (distil(d, names, t, contexts) for d, t in ((donor, trees), (system.hmm_set, system.trees)))
    assert saved.states == made.states
    assert saved.tied == made.tied == {"sp_s2": "sil3"}
    for state, pair in made.transitions.items():
        np.testing.assert_allclose(saved.transitions[state], pair, rtol=1e-6)
    assert set(saved.senones.values()) == set(system.senones)
    assert donor.options.kind == "MFCC_D"
    script = read_edit_script(tmp_path / "tree.hed")
    assert script.questions == QUESTIONS
    assert [(tb.prefix, tb.phone, tb.state, tb.threshold) for tb in script.clusterings][:2] == [
        ("a_s2_", "a", 2, 20.0),
        ("a_s3_", "a", 3, 20.0),
    ]


def test_contexts_that_sound_otherwise_have_states_of_their_own_and_unseen_ones_theirs():
    system, _, _ = tied()
    assert system.senone("a-a+b", 2) != system.senone("b-a+b", 2)
    assert system.senone("a-a+b", 2) == system.senone("a-a+sil", 2)  # what is to the right moves the last state alone
    assert "c-a+c" not in system.names
    assert system.senone("c-a+c", 2) == system.senone("c-a+sil", 2)
    assert system.senone("sil", 3) == "sil3"


def test_gaussians_are_those_of_the_frames():
    system, statistics, runs = tied()
    senone = system.senone("a-a+b", 2)
    keys = list(dict.fromkeys(
        (run.model, run.state) for found in runs for run in found if system.senone(run.model, run.state) == senone
    ))  # fmt: skip
    count, total, square = (a.sum(axis=0) for a in statistics.select(keys))
    component = system.hmm_set.macros["s"][senone].streams[0].components[0]
    np.testing.assert_allclose(component.mean.values, total / count)
    np.testing.assert_allclose(
        component.variance.values, np.maximum(square / count - (total / count) ** 2, statistics.variance_floor(0.01))
    )


def test_models_alike_in_all_states_are_one():
    system, _, _ = tied(options=TreeOptions(threshold=400.0, min_frames=5))
    donor = system.hmm_set
    assert set(system.names.values()) == set(donor.hmms)
    triples = [tuple(state.macro for state in hmm.states) for hmm in donor.hmms.values()]
    assert len(set(triples)) == len(triples)
    assert len(donor.hmms) < len(system.names)


def test_labels_are_the_alignment_in_tied_states():
    system, _, runs = tied()
    labels = system.labels(runs[0])
    assert [(label.start, label.end) for label in labels] == [(r.start * 100_000, r.end * 100_000) for r in runs[0]]
    assert [label.name for label in labels][:4] == ["sil2", "sil3", "sil4", system.senone("sil-a+b", 2)]


def test_an_alignment_in_tied_states_is_tied_again():
    """By the trees it was labelled with; the same frames in the same triphones give the same trees."""
    system, _, runs = tied()
    places = places_of({"sil": STATES["sil"]}, system.trees)
    for found in runs:
        assert state_runs(system.labels(found), places, {"sil"}) == found


def test_short_pause_is_the_middle_of_silence_and_can_be_passed():
    system, _, _ = tied(pause="sp")
    pause, silence = system.hmm_set.hmms["sp"], system.hmm_set.hmms["sil"]
    assert pause.states == (silence.states[1],)
    assert pause.is_tee
    assert "sp" in system.names


def test_a_phone_without_frames_is_left_out_and_told():
    told = []
    system, _, _ = tied(["ab", "ba"], log=told.append)
    assert told == ["no frames of c: no models made"]
    assert {phone for phone, _ in system.trees.trees} == {"a", "b"}


def test_a_second_state_without_frames_takes_those_of_the_first():
    statistics, transitions, _ = collect(["ab"])
    chain = {phone: [f"{phone}_s2", f"{phone}_s9"] if phone == "a" else names for phone, names in STATES.items()}
    for key in [key for key in statistics.rows if key[1] == 3 and "-a+" in key[0]]:
        statistics.rows["-", 3] = statistics.rows.pop(key)
    system = tie_states(statistics, transitions, chain, {"sil"}, QUESTIONS)
    assert system.trees.trees["a", 3].leaf == "a_s3_1"
    first, second = (system.hmm_set.macros["s"][name] for name in ("a_s2_1", "a_s3_1"))
    np.testing.assert_array_equal(
        first.streams[0].components[0].mean.values, second.streams[0].components[0].mean.values
    )


def test_faults_are_named():
    statistics, transitions, _ = collect(["ab"])
    with pytest.raises(GraphError, match=r"tying: no frames of silence 'quiet'; expected it in the alignments"):
        tie_states(statistics, transitions, STATES, {"sil"}, QUESTIONS, silence="quiet")
    longer = STATES | {"a": ("a_s2", "a_s3", "a_s4")}
    with pytest.raises(GraphError, match=r"tying: no frames of state 4 of 'a'; expected some of each"):
        tie_states(statistics, transitions, longer, {"sil"}, QUESTIONS)
    more = STATES | {"sil": ("sil2", "sil3", "sil4", "sil5")}
    with pytest.raises(GraphError, match=r"tying: no frames of state 'sil5' of 'sil'; expected some of each"):
        tie_states(statistics, transitions, more, {"sil"}, QUESTIONS)
