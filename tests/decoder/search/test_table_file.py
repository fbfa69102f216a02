"""Search tables in a file: decoders that use them search as before, and wrong numbers are refused."""

import numpy as np
import pytest

from decoder.graph.compiled_graph import precompile
from decoder.lm.language_model import LanguageModel
from decoder.search.decoder import Decoder, ready_decoder
from decoder.search.kernels.lookahead import LookAhead
from decoder.search.search_graph import SearchTables
from decoder.search.table_file import FORMAT, RECORDS, load_search_tables, save_search_tables
from readers.errors import ConfigError, FormatError, GraphError
from tests.decoder import graphs
from tests.decoder.search.test_decoder import random_case
from tests.decoder.search.test_lm_ahead_wide import wide_graph, wide_trigram


def rows_of(decoder):
    return {name: row for row, name in enumerate(decoder.graph.states)}


def stored(decoder, path) -> SearchTables:
    save_search_tables(decoder._tables, decoder.options, path)
    return load_search_tables(path, decoder.graph, decoder.lm, rows_of(decoder), "map")


def assert_equal_arrays(first, second):
    for name, array in zip(first._fields, first):
        if isinstance(array, LookAhead):
            assert_equal_arrays(array, getattr(second, name))
        else:
            np.testing.assert_array_equal(array, getattr(second, name), name)
            assert np.asarray(array).dtype == np.asarray(getattr(second, name)).dtype


@pytest.mark.parametrize("seed", range(40))
def test_stored_tables_are_the_computed_ones(seed, tmp_path):
    case = random_case(seed)
    plain = case.decoder.with_options(lm_lookahead=True, sil_cost=0.5)
    tables = stored(plain, tmp_path / "t")
    for lattice_beam in (None, 2.0):
        decoder = plain.with_options(lattice_beam=lattice_beam)
        ready = ready_decoder(tables, decoder.options)
        assert_equal_arrays(ready._arrays, decoder._arrays)
        assert not tables._in_use  # no records had to be made
        first, second = ready.decode(case.scores), decoder.decode(case.scores)
        assert (first.cost, first.reason, first.words) == (second.cost, second.reason, second.words)
        other = {"beam": 3.0, "lm_scale": 0.25, "sil_cost": 4.0, "lm_lookahead": False}
        assert_equal_arrays(ready.with_options(**other)._arrays, decoder.with_options(**other)._arrays)


@pytest.fixture(scope="module")
def wide():
    """A decoder of a graph with many words, two of them unknown to its trigram."""
    rng = np.random.default_rng(0)
    arcs, _, finals, lookahead = wide_graph(rng, 2)
    known = {"w70": "<unk>", "w71": "<unk>"}
    vocabulary, orders = wide_trigram(rng)
    vocabulary = list(dict.fromkeys(known.get(word, word) for word in vocabulary))
    orders = [{tuple(known.get(word, word) for word in words): v for words, v in one.items()} for one in orders]
    lm = LanguageModel.from_arpa(graphs.make_arpa(vocabulary, orders))
    return Decoder(precompile(graphs.make_acceptor(arcs, finals), None, lookahead), lm)


def test_levels_of_minima_and_unknown_words_are_stored(wide, tmp_path):
    for is_sum in (False, True):
        decoder = wide.with_options(lookahead_sums=is_sum)
        tables = stored(decoder, tmp_path / "t")
        ahead = tables.look_ahead_for(decoder.options)
        assert "look_ahead" not in vars(tables) if is_sum else len(ahead.level) > 2  # nothing was computed again
        assert ahead.unknown.max() >= 0
        assert_equal_arrays(ahead, wide._tables.look_ahead_for(decoder.options))


@pytest.mark.parametrize(
    ("section", "field", "value"),
    [
        *((name, field, -1) for name in ("positions", "plain_positions") for field in ("row", "exit", "first_arc")),
        *((name, "end_arc", 10**6) for name in ("positions", "plain_positions")),
        ("positions", "self_cost", np.nan),
        ("arcs", "target", 10**6),
        ("arcs", "row", 10**6),
        ("arcs", "word_set", 10**6),
        ("arcs", "cost", np.nan),
        *((name, "first_arc", -1) for name in ("states", "plain_states")),
        ("states", "first_word", 10**6),
        ("states", "level", 10**6),
        ("words", "target", -1),
        ("words", "lm", 10**6),
        ("words", "bound", np.nan),
        ("word_lm", None, -3),
        ("least_lm_cost", None, np.nan),
        ("settings", None, np.inf),
        ("sets", "first", -1),
        ("sets", "end", -1),
        ("sets", "end", 10**6),
        ("ranges", "low", -1),
        ("ranges", "high", -1),
        ("sets", "least", np.nan),
        ("sets", "graph_cost", np.inf),
        ("state_set", None, 10**6),
        ("histories", "first", -1),
        ("histories", "backoff_state", 10**6),
        ("histories", "backoff_cost", np.nan),
        ("cost", None, np.nan),
        ("level", None, 10**6),
        ("unknown", None, 10**6),
    ],
)
def test_numbers_out_of_range_are_refused(section, field, value, wide, tmp_path):
    path = tmp_path / "t"
    save_search_tables(wide._tables, wide.options, path)
    number, sections = FORMAT.read(path)
    sections = {name: array.copy() for name, array in sections.items()}
    records = sections[section].view(RECORDS[section]) if field else sections[section]
    (records[field] if field else records)[1] = value
    FORMAT.write(path, number, sections)
    with pytest.raises((FormatError, GraphError)):
        load_search_tables(path, wide.graph, wide.lm, rows_of(wide), "map")


@pytest.mark.parametrize("section", sorted({*FORMAT.types}))
def test_arrays_of_another_length_are_refused(section, wide, tmp_path):
    path = tmp_path / "t"
    save_search_tables(wide._tables, wide.options, path)
    number, sections = FORMAT.read(path)
    for length in (len(sections[section]) - 1, 0):
        FORMAT.write(path, number, sections | {section: sections[section][:length]})
        if section != "unknown" or length:
            with pytest.raises((FormatError, GraphError)):
                load_search_tables(path, wide.graph, wide.lm, rows_of(wide), "map")


def test_tables_of_another_graph_are_refused(wide, tmp_path):
    save_search_tables(wide._tables, wide.options, tmp_path / "t")
    other = random_case(1).decoder
    with pytest.raises(
        FormatError, match=r"t: \d+ entries in \w+; expected \d+ as in the graph; make the bundle again"
    ):
        load_search_tables(tmp_path / "t", other.graph, other.lm, rows_of(other), "map")


def test_a_mixture_is_refused(wide, tmp_path):
    mixture = LanguageModel(wide.lm.arrays, wide.lm.vocabulary, 3, 0)
    mixture.components = ((0.5, wide.lm), (0.5, wide.lm))
    tables = SearchTables(
        wide.graph, mixture, *(getattr(wide._tables, n) for n in ("score_row", "word_lm", "least_lm_cost"))
    )
    with pytest.raises(ConfigError, match="t: a mixture of language models; expected a single one"):
        save_search_tables(tables, wide.options, tmp_path / "t")
