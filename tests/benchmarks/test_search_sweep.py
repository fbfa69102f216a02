"""What the benchmarks of the search say of settings and their times."""

import numpy as np
import pytest

from benchmarks import search_sweep
from benchmarks.search_sweep import Point, Search


def points(search, *pairs):
    """Of (seconds, errors) in 1000 words and 100 frames."""
    return [
        Point(search, f"beam {i}", 0, errors, 1000, seconds, 100, None) for i, (seconds, errors) in enumerate(pairs)
    ]


def test_errors_that_rise_are_averaged_with_their_neighbours():
    seconds, errors = search_sweep.curve(points("ours", (4.0, 6), (1.0, 10), (2.0, 5), (8.0, 4), (3.0, 7)))
    assert seconds.tolist() == [1, 2, 3, 4, 8]
    assert errors.tolist() == [10, 6, 6, 6, 4]  # 5, 7, 6 in the middle


def test_time_is_interpolated_along_its_logarithm():
    mine = points("ours", (1.0, 10), (4.0, 6), (8.0, 6))
    assert search_sweep.seconds_at(mine, 8) == pytest.approx(2.0)
    assert search_sweep.seconds_at(mine, 6) == pytest.approx(4.0)
    assert search_sweep.seconds_at(mine, 12) == 1.0
    assert search_sweep.seconds_at(mine, 5.9) is None


def test_the_ratio_is_that_of_the_fastest_at_equal_errors():
    slow, fast = points("ours, a", (2.0, 12), (4.0, 10)), points("ours, b", (1.0, 12), (2.0, 10))
    peer = points("peer", (3.0, 12), (6.0, 12))
    lines = search_sweep.compare("search", slow + fast + peer)
    assert lines[0] == "search: at a WER of 1.40%"
    assert lines[1:4] == [
        "  ours, a: 20000.0 microseconds a frame",
        "  ours, b: 10000.0 microseconds a frame",
        "  peer: 30000.0 microseconds a frame",
    ]
    slowest_peer = points("peer", (3.0, 13), (6.0, 12))  # at its best 12 and 2 allowed: ours is there at once
    assert "  peer: 30000.0 microseconds a frame" in search_sweep.compare("search", slow + slowest_peer)
    poor = points("ours, c", (2.0, 20), (4.0, 19))
    assert "  ours, c: does not get there" in search_sweep.compare("search", slow + poor + peer)


def test_the_ratio_is_the_lesser_median_over_the_good_settings():
    """Good are 10 to 15 errors; at equal errors these 6 settings, at equal beams those of beams 0 and 1."""
    ours, slower = points("ours, a", (1.0, 15), (2.0, 10)), points("ours, b", (1.5, 15), (3.0, 10))
    peer, useless = points("peer, a", (3.0, 14), (8.0, 10)), points("peer, b", (0.1, 301), (0.2, 300))
    by_search = {"ours": ours, "peer": peer}
    equal_errors = search_sweep.ratios_at_equal_errors(by_search, 10, 15)
    between = [3 ** (k / 4) * 8 ** (1 - k / 4) / 2 ** (1 - k / 5) for k in (1, 2, 3, 4)]
    assert equal_errors == pytest.approx([8 / 2, *between, 3 / 1])
    assert search_sweep.ratios_at_equal_beams(ours + slower + peer + useless, 15) == [3.0, 4.0]
    lines = search_sweep.compare("search", ours + slower + peer + useless)
    assert lines[5:] == [
        "search: up to a WER of 1.50%, times as fast as the peer: median (range)",
        f"  equal errors: {np.median(equal_errors):.2f} ({min(between):.2f} to 4.00, 6 settings)",
        "  equal beams: 3.50 (3.00 to 4.00, 2 settings)",
        f"RATIO search {min(np.median(equal_errors), 3.5):.2f}",
    ]
    apart = search_sweep.compare("search", points("ours", (1.0, 10)) + points("peer", (3.0, 30)))
    assert apart[-1] == "RATIO search 3.00"  # no beam is good for both


@pytest.mark.slow
def test_every_setting_decodes_every_utterance(tmp_path):
    asked = []

    def decoder(name, words):
        def decode(scores):
            asked.append((name, scores))
            return words, float(-name), 3.0

        return decode

    searches = [
        Search("ours", lambda scores: scores.shape[1], {"beam 1": decoder(1, ["a"]), "beam 2": decoder(2, ["a", "b"])}),
        Search("peer", lambda scores: -scores.shape[1], {"beam 3": decoder(3, [])}),
    ]
    scores = {"u": np.zeros((2, 5)), "v": np.zeros((2, 7))}
    found = search_sweep.sweep(searches, scores, {"u": ["a", "b"], "v": ["a", "b"]}, rounds=2)
    assert [(p.search, p.label, p.num_errors) for p in found] == [
        ("ours", "beam 1", 2), ("ours", "beam 2", 0), ("peer", "beam 3", 4)
    ]  # fmt: skip
    assert [p.missed for p in found] == [2, 0, 0]  # costs -1, -2 of ours, the peer's own
    assert all((p.num_words, p.num_frames, p.tokens) == (4, 12, 3.0) for p in found)
    assert asked[:3] == [(1, 5), (3, -5), (2, 5)]  # beam by beam, to compile everything
    one_round = [(1, 5), (1, 7), (3, -5), (3, -7), (2, 5), (2, 7)]
    assert asked[3:] == 2 * one_round
    assert len(search_sweep.table(found)) == 4
    search_sweep.draw(found, "test", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes()[1:4] == b"PNG"
