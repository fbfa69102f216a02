"""The compiled kernels against themselves interpreted, in a process of their own.

An index outside an array raises IndexError in interpreted kernels. By hand:
NUMBA_DISABLE_JIT=1 pytest tests/decoder/search/test_decoder.py, and
NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked pytest tests/decoder/search/test_decoder.py
tests/decoder/search/test_lattice.py
(bounds checks change the compiled code but not the key of numba's cache, hence a cache of its own).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.decoder.lattices.search_paths import best_path
from tests.decoder.search.test_decoder import path_words, random_case

pytestmark = pytest.mark.slow

SEEDS = range(60)
OPTIONS = (
    {},
    {"lm_lookahead": False, "beam": 4.0},
    {"beam": 2.0, "word_end_beam_frac": 0.5},
    {"max_tokens": 3, "partial": True, "lm_lookahead": False},  # looking ahead, rounding decides between equals
    {"lookahead_sums": True, "beam": 4.0},
    {"lattice_beam": 3.0},
)
HOTWORDS = ("x", "x y", "y x y", "z z")
PROGRAM = "from tests.decoder.search.test_search_twins import summary; import json; print(json.dumps(summary()))"


def summary():
    """What the search finds in random cases, as plain numbers and names."""
    rows = []
    for seed in SEEDS:
        case = random_case(seed, integers=seed % 3 == 0, sentences=seed % 5 < 2)
        for options, hotwords in (*((options, []) for options in OPTIONS), (OPTIONS[-1], HOTWORDS)):
            known = [phrase for phrase in hotwords if set(phrase.split()) <= set(case.decoder.graph.words)]
            decoder = case.decoder.with_options(**options).with_hotwords(known, 1.25)
            decoder._settings = decoder._settings._replace(initial_tokens=1)  # tables grow at every size
            result = decoder.decode(case.scores)
            lattice = result.lattice
            rows.append(
                [
                    *(seed, result.reason, min(result.cost, 1e9), path_words(result, case.decoder)),
                    *(result.path.label.tolist(), result.path.start.tolist()),
                    *([] if lattice is None else [best_path(lattice)[0], lattice.num_nodes, lattice.num_links]),
                ]
            )
    return rows


def run_interpreted():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=Path(__file__).parents[3],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_interpreted_kernels_find_the_same():
    rows, expected = run_interpreted(), json.loads(json.dumps(summary()))
    assert len(rows) == len(expected)
    for row, other in zip(rows, expected):
        numbers, others = ([x for x in r if isinstance(x, float)] for r in (row, other))
        assert numbers == pytest.approx(others, abs=1e-4), row[0]  # numpy's scalars round to float32 now and then
        assert [x for x in row if not isinstance(x, float)] == [x for x in other if not isinstance(x, float)]
