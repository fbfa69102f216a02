"""The job that builds the graph of CTC tokens from files: its tables, words left out, options that do not fit."""

from dataclasses import replace
from pathlib import Path

import pytest

from decoder.grammars import GraphDictionary, GraphFiles, make_graph
from decoder.graph.graph_file import load_defaults, load_graph
from decoder.lm.estimation import estimate
from readers.config.options import OptionFault
from readers.errors import GraphError
from readers.language.arpa import write_arpa
from readers.tables.hmm_tables import read_cntkmap


@pytest.fixture
def options(tmp_path):
    (tmp_path / "tokens").write_text("<blk> 0\na 2\nb 1\n")
    (tmp_path / "dict").write_text("C b b\n")
    write_arpa(tmp_path / "lm", estimate([["AB", "C", "X"]], 2, "kn"))
    dictionary = GraphDictionary(dict=tmp_path / "dict")
    return GraphFiles(tokens=tmp_path / "tokens", lm=tmp_path / "lm", out=tmp_path / "graph", dictionary=dictionary)


def test_words_are_looked_up_or_spelled_or_left_out(options):
    result = make_graph(options)
    assert "'X'" in str(result.report.lost)
    assert "characters that are no tokens" in str(result.report.lost)
    graph = load_graph(options.out / "graph.dg")
    assert sorted(graph.words) == ["AB", "C"]
    assert graph.models == ["<blk>", "b", "a"]
    assert load_defaults(options.out / "graph.dg").options == {"acweight": 1.0, "sil_cost": 0.0}
    assert read_cntkmap(options.out / "cntkmap") == {"<blk>": 0, "b": 1, "a": 2}
    assert not (options.out / "state_map").exists()


def test_faults_of_the_files_name_them(options):
    options.dictionary.dict.write_text("AB a <blk> b\n")
    with pytest.raises(GraphError, match=r"/tokens .*/dict .*/lm: dictionary: 'AB' has the blank '<blk>'"):
        make_graph(options)
    assert not (options.out / "graph.dg").exists()


def test_tokens_that_spell_no_word_are_refused(options):
    options.tokens.write_text("<blk> 0\nAA 1\nB1 2\n")
    files = replace(options, dictionary=GraphDictionary())
    with pytest.raises(GraphError, match="tokens: no word of the language model can be spelled, such as AB, C, X; exp"):
        make_graph(files)
    assert not (options.out / "graph.dg").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"states": Path("s")}, "is given beside tokens; expected one of them"),
        ({"mmf": (Path("m"),)}, "is given beside tokens; expected one of them"),
        ({"grammar": Path("g"), "lm": None}, "is given beside tokens; expected one of them"),
        ({"loop": True, "lm": None}, "is given beside tokens without dict"),
        ({"tokens": None, "blank": "b"}, "is missing; expected HMM states: .* or tokens"),
        ({"dictionary": GraphDictionary(dict=Path("d"), g2p=Path("m"))}, "is given beside tokens, which spell words"),
    ],
)
def test_options_that_exclude_each_other(changes, message):
    with pytest.raises(OptionFault, match=message):
        GraphFiles(**{"tokens": Path("t"), "lm": Path("l"), "out": Path("o"), **changes})
