"""The tokens of the compiled search: found by place and history, the best kept, tables that grow."""

import math

import numpy as np
import pytest

from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import INITIAL_TOKENS
from decoder.search.kernels.token_store import (
    TOKEN,
    add,
    best_of,
    cheapest,
    find,
    grow_tokens,
    keep_best_tokens,
    nth_smallest,
)
from tests.decoder import graphs
from tests.decoder.lattices.search_paths import best_path
from tests.decoder.search.test_options import make_decoder


@pytest.mark.parametrize("seed", range(20))
def test_selection_equals_sorting(seed):
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 10, size=int(rng.integers(1, 40))).astype(float)
    for count in range(1, values.size + 1):
        assert nth_smallest(values.copy(), count) == np.sort(values)[count - 1]


def test_the_kept_tokens_are_the_best_and_of_equals_the_first():
    tokens = np.zeros(6, TOKEN)
    tokens["cost"], tokens["slack"] = [5, 3, 4, 3, 3, 9], [0, 0, 1, 0, 0, 8]
    keep_best_tokens(tokens, 6, 3)
    assert tokens["cost"].tolist() == [math.inf, 3, 4, math.inf, math.inf, 9]


def test_the_cheapest_token_is_the_first_of_equals_and_counts_its_look_ahead():
    tokens = np.zeros(6, TOKEN)
    tokens["cost"], tokens["ahead"] = [9, 2, 4, 1, 3, 0.5], [0, 3, 1, 4, 2, 4.5]
    assert [cheapest(tokens, begin, 6) for begin in range(6)] == [1, 1, 2, 3, 4, 5]
    assert cheapest(tokens, 0, 1) == 0
    tokens["cost"], tokens["ahead"] = [5, 1, 1, 1, 1, 1], 0  # the best of those on a position, not of all
    assert best_of(tokens, 1, 6) == 0
    tokens["cost"] = [math.inf, math.inf, 2, 1, 1, 3]
    assert best_of(tokens, 2, 6) == 3


def test_tokens_are_found_after_their_tables_have_grown():
    tokens, table, stamp = np.zeros(4, TOKEN), np.zeros(8, np.int64), np.int64(3)
    keys = np.arange(4, dtype=np.int64) << 32 | 7
    for i, key in enumerate(keys):
        slot = find(table, stamp, tokens, key)
        assert slot < 0
        add(table, stamp, tokens, i, ~slot, key, np.float32(i))
        assert find(table, stamp, tokens, key) == i
    tokens["cost"] = [1, 2, 3, 4]
    tokens, table = grow_tokens(tokens, 4, 5, table, stamp)
    assert (tokens.shape, table.shape) == ((8,), (16,))
    assert [find(table, stamp, tokens, key) for key in keys] == [0, 1, 2, 3]
    assert tokens["cost"][:4].tolist() == [1, 2, 3, 4]
    assert tokens["ahead"][:4].tolist() == [0, 1, 2, 3]
    assert find(table, stamp, tokens, np.int64(99)) < 0


@pytest.mark.parametrize("lattice_beam", [None, 1.0])
def test_results_do_not_depend_on_the_first_size_of_the_tables(lattice_beam):
    """More tokens, steps and arrivals than there is room for at first, in a graph where every state leads to all."""
    rng = np.random.default_rng(1)
    names = [f"m{i}_s2" for i in range(40)]
    arcs = [(0, i + 1, f"[{name}]", float(rng.random())) for i, name in enumerate(names)]
    arcs += [(i + 1, j + 1, f"[{b}]", float(rng.random())) for i in range(40) for j, b in enumerate(names) if i != j]
    arcs += [(i + 1, 41 + i % 7, f"w{i % 7}", float(rng.random())) for i in range(40)]
    arcs += [(41 + i, 48, f"[{names[0]}]", 0.0) for i in range(7)]
    arcs += [(48, 1 + i, f"[{names[i]}]", 0.0) for i in range(40)]
    vocabulary, orders = graphs.random_orders(rng, [f"w{i}" for i in range(7)], 3)
    lm = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    decoder = make_decoder(arcs, {48: 0.0}, lm=lm, lattice_beam=lattice_beam)
    scores = np.asfortranarray(rng.normal(size=(40, 60)), dtype=np.float32)
    result = decoder.decode(scores)
    assert result.tokens_per_frame > INITIAL_TOKENS
    assert result.path.cost.sum() == pytest.approx(result.cost, abs=1e-6)
    for room in (1, 16, 65536):
        decoder._settings = decoder._settings._replace(initial_tokens=room)
        same = decoder.decode(scores)
        assert (same.cost, same.tokens_per_frame) == (result.cost, result.tokens_per_frame)
        np.testing.assert_array_equal(same.path.label, result.path.label)
        if lattice_beam:
            np.testing.assert_array_equal(same.lattice.cost, result.lattice.cost)
            assert best_path(same.lattice)[0] == pytest.approx(result.cost, abs=1e-6)
