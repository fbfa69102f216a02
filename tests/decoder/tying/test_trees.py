"""Trees against the definition: likelihoods from the frames themselves, every question tried, clusters merged."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from decoder.tying import StateRun, Statistics, TreeOptions
from decoder.tying.statistics import log_likelihood
from decoder.tying.trees import grow_tree
from readers.errors import ConfigError, FormatError, ShapeError
from readers.htk.trees import DecisionTree, DecisionTrees, Question

PHONES = "abcde"
QUESTIONS = [Question(f"L_{p}", (f"{p}-*",)) for p in PHONES] + [Question(f"R_{p}", (f"*+{p}",)) for p in PHONES]
QUESTIONS.append(Question("L_ab", ("a-*", "b-*")))
FLOOR = 1e-3


def data(seed: int, num_contexts: int = 12, dim: int = 2) -> dict[str, np.ndarray]:
    """context -> its frames (n, dim); what is to the left moves the mean."""
    rng = np.random.default_rng(seed)
    names = rng.choice([f"{left}-x+{right}" for left in PHONES for right in PHONES], num_contexts, replace=False)
    return {
        str(name): rng.normal(size=(int(rng.integers(1, 12)), dim)) + 2.0 * (PHONES.index(name[0]) // 2)
        for name in names
    }


def sums(frames: dict[str, np.ndarray]):
    values = list(frames.values())
    count = np.array([float(len(v)) for v in values])
    return count, np.array([v.sum(axis=0) for v in values]), np.array([(v**2).sum(axis=0) for v in values])


def fit(frames: np.ndarray) -> float:
    """ln of the density of frames (n, d) under the Gaussian that fits them best; Young et al.'s form with a floor."""
    variance = np.maximum(frames.var(axis=0), FLOOR)
    return float(-0.5 * len(frames) * (1 + np.log(2 * np.pi * variance)).sum())


def grow(frames, **options):
    floor = np.full(next(iter(frames.values())).shape[1], FLOOR)
    return grow_tree(list(frames), *sums(frames), QUESTIONS, floor, TreeOptions(**options), "t_")


def test_log_likelihood_is_that_of_the_frames_under_their_own_gaussian():
    frames = np.random.default_rng(0).normal(size=(50, 3)) * [1, 2, 3]
    mean, variance = frames.mean(axis=0), frames.var(axis=0)
    direct = -0.5 * (np.log(2 * np.pi * variance) + (frames - mean) ** 2 / variance).sum()
    found = log_likelihood(np.array([50.0]), frames.sum(0)[None], (frames**2).sum(0)[None], np.full(3, FLOOR))
    assert found[0] == pytest.approx(direct)


def split(frames: dict, threshold: float, least: float) -> list[set[str]]:
    """The same growing, straight from the definition: sets of contexts."""
    leaves = [set(frames)]
    while True:
        best = (threshold, None)
        for leaf in leaves:
            for question in QUESTIONS:
                yes = {name for name in leaf if question(name)}
                no = leaf - yes
                sides = [np.concatenate([frames[name] for name in sorted(side)]) for side in (yes, no) if side]
                if len(sides) < 2 or min(map(len, sides)) < least:
                    continue
                gain = sum(map(fit, sides)) - fit(np.concatenate([frames[name] for name in sorted(leaf)]))
                if gain > best[0] + 1e-9:
                    best = (gain, (leaf, yes, no))
        if best[1] is None:
            return leaves
        leaf, yes, no = best[1]
        leaves.remove(leaf)
        leaves += [yes, no]


def merge(leaves: list[set[str]], frames: dict, threshold: float) -> list[set[str]]:
    """The same merging from the definition."""

    def cost(one: set[str], other: set[str]) -> float:
        apart = [np.concatenate([frames[name] for name in sorted(side)]) for side in (one, other)]
        return sum(map(fit, apart)) - fit(np.concatenate(apart))

    while len(leaves) > 1:
        least, one, other = min(
            ((cost(a, b), i, j) for (i, a), (j, b) in itertools.combinations(enumerate(leaves), 2)),
        )
        if least >= threshold:
            break
        leaves = [leaf for i, leaf in enumerate(leaves) if i not in (one, other)] + [leaves[one] | leaves[other]]
    return leaves


@pytest.mark.parametrize("min_frames", [0, 4])  # 0: a question that all or none answer with yes is no split
@pytest.mark.parametrize("seed", range(20))
def test_leaves_are_those_of_the_greedy_definition(seed, min_frames):
    frames = data(seed)
    _, leaf_of = grow(frames, threshold=3.0, min_frames=min_frames, merge=False)
    found = {frozenset(np.array(list(frames))[leaf_of == leaf]) for leaf in set(leaf_of.tolist())}
    leaves = split(frames, 3.0, min_frames)
    assert found == set(map(frozenset, leaves))
    _, leaf_of = grow(frames, threshold=3.0, min_frames=min_frames)
    found = {frozenset(np.array(list(frames))[leaf_of == leaf]) for leaf in set(leaf_of.tolist())}
    assert found == set(map(frozenset, merge(leaves, frames, 3.0)))


@pytest.mark.parametrize("seed", range(20))
def test_no_leaf_is_empty_whatever_small_gain_is_enough(seed):
    frames = data(seed)
    tree, leaf_of = grow(frames, threshold=0.0, min_frames=0, merge=False)
    assert set(leaf_of.tolist()) == set(range(len(tree.leaves)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.5, 20), st.booleans())
def test_the_tree_leads_every_context_to_its_leaf(seed, threshold, merge):
    frames = data(seed)
    tree, leaf_of = grow(frames, threshold=threshold, min_frames=2, merge=merge)
    trees = DecisionTrees({q.name: q for q in QUESTIONS}, {("x", 2): tree})
    assert [trees.tied_state(name, 2) for name in frames] == [f"t_{1 + leaf}" for leaf in leaf_of]
    assert set(tree.leaves) == {f"t_{1 + leaf}" for leaf in leaf_of}
    count = sums(frames)[0]
    if tree.leaf is None:
        assert min(np.bincount(leaf_of, count)) >= 2


def test_of_equal_splits_the_first_is_taken_whatever_the_rounding():
    """The second question has the answers of the first with yes and no exchanged, and other rounding errors."""
    questions = [Question("a", ("a-*", "b-*")), Question("not a", ("c-*", "d-*", "e-*"))]
    for seed in range(40):
        frames = data(seed)
        for asked in (questions, questions[::-1]):
            statistics = *sums(frames), asked, np.full(2, FLOOR), TreeOptions(threshold=0.0, min_frames=1)
            tree, _ = grow_tree(list(frames), *statistics, "t_")
            assert tree.nodes[0][0] == asked[0].name


def test_leaves_that_are_alike_are_merged():
    rng = np.random.default_rng(1)
    near, far = rng.normal(size=(40, 1)), rng.normal(size=(40, 1)) + 30
    frames = {"a-x+a": near, "b-x+a": far, "c-x+a": near, "d-x+a": far + 0.01}
    # Neither question alone tells near from far: a is taken away first, then c from b and d.
    questions = [Question("L_a", ("a-*",)), Question("L_c", ("c-*",))]
    for merge, names in ((False, {"t_1", "t_2", "t_3"}), (True, {"t_1", "t_2"})):
        options = TreeOptions(5.0, 1, merge=merge)
        tree, leaf_of = grow_tree(list(frames), *sums(frames), questions, np.array([FLOOR]), options, "t_")
        assert len(tree.leaves) == 3
        assert set(tree.leaves) == names
        assert (leaf_of[0] == leaf_of[2]) == merge
        assert leaf_of[1] == leaf_of[3] != leaf_of[0]


def test_a_high_threshold_leaves_one_state():
    assert grow(data(0), threshold=1e9)[0] == DecisionTree((), "t_1")


def test_without_questions_there_is_one_state():
    frames = data(3)
    tree, leaf_of = grow_tree(list(frames), *sums(frames), [], np.full(2, FLOOR), TreeOptions(1.0, 1), "t_")
    assert tree == DecisionTree((), "t_1")
    assert not leaf_of.any()


@pytest.mark.parametrize("values", [{"threshold": -1.0}, {"min_frames": float("nan")}, {"variance_floor": 0.0}])
def test_options_out_of_range_are_refused(values):
    with pytest.raises(ConfigError, match=f"{next(iter(values))} is .*; expected .*at least"):
        TreeOptions(**values)


# Statistics


def run(model: str, state: int, start: int, end: int) -> StateRun:
    return StateRun(model, model, state, start, end, 0)


def test_statistics_add_up_over_utterances():
    rng = np.random.default_rng(0)
    frames = [np.asfortranarray(rng.normal(size=(3, n)).astype(np.float32)) for n in (7, 5)]
    statistics = Statistics(3)
    statistics.add([run("a", 2, 0, 2), run("b", 2, 2, 5), run("a", 2, 5, 7)], frames[0])
    statistics.add([run("c", 2, 0, 1), run("a", 2, 1, 5)], frames[1])
    values = np.concatenate([frames[0][:, [0, 1, 5, 6]], frames[1][:, 1:]], axis=1).astype(np.float64)
    count, total, square = statistics.select([("a", 2)])
    assert count.tolist() == [8]
    np.testing.assert_allclose(total[0], values.sum(axis=1))
    np.testing.assert_allclose(square[0], (values**2).sum(axis=1))
    assert statistics.models() == ["a", "b", "c"]
    everything = np.concatenate(frames, axis=1).astype(np.float64)
    np.testing.assert_allclose(statistics.variance_floor(0.1), 0.1 * everything.var(axis=1), rtol=1e-6)


def test_features_that_do_not_fit_are_refused_and_not_counted():
    statistics = Statistics(2)
    with pytest.raises(ShapeError, match=r"u\.mfc: 3 frames; expected 5, as the alignment has"):
        statistics.add([run("a", 2, 0, 5)], np.zeros((2, 3), order="F"), "u.mfc")
    with pytest.raises(ShapeError, match=r"matrix of shape \(3, 5\); expected \(2, frames\)"):
        statistics.add([run("a", 2, 0, 5)], np.zeros((3, 5), order="F"))
    frames = np.zeros((2, 5), order="F")
    frames[1, 3] = np.nan
    with pytest.raises(FormatError, match=r"u\.mfc: frame 3 contains infinity or NaN; expected finite values"):
        statistics.add([run("a", 2, 1, 5)], frames, "u.mfc")
    assert not statistics.rows
    assert statistics.count.sum() == 0
