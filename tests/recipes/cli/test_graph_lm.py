"""`argonaut graph` and `argonaut lm`: what they write, what they print, how they fail."""

import math

import numpy as np
import pytest

from decoder.graph.graph_file import load_graph
from decoder.lm.language_model import LanguageModel
from decoder.search import Decoder, SearchOptions
from readers.htk.parameter_file import read_htk
from readers.language.arpa import read_arpa
from readers.language.att import read_acceptor
from readers.tables.hmm_tables import read_cntkmap, read_lookahead, read_state_map, read_transitions
from recipes.cli.main import main
from tests.recipes.systems.argon_system import DICTIONARY, PHONES, SENTENCES, decode, words_of

STATES = ["a_s2", "a_s3", "b_s2", "sil[2]", "sil[3]"]


@pytest.fixture
def task(tmp_path):
    """A state list, an alignment, a dictionary and a text in a directory; returns it."""
    (tmp_path / "states").write_text("".join(f"{state}\n" for state in STATES))
    (tmp_path / "alignment.mlf").write_text(
        '#!MLF!#\n"*/u1.lab"\n0 200000 sil[2]\n200000 500000 sil[3]\n500000 600000 a_s2\n600000 1000000 a_s3\n'
        "1000000 1100000 sil[2]\n1100000 1200000 sil[3]\n.\n"
    )
    (tmp_path / "dict").write_text("<s> [] sil\n</s> [] sil\nX 1.0 a b\nY [why] a\nZ b\n")
    (tmp_path / "text").write_text("X Y\nY\nX X Y\n")
    return tmp_path


def graph_arguments(task, *more):
    return [
        *("graph", "--state-list", str(task / "states"), "--alignment", str(task / "alignment.mlf")),
        *("--dict", str(task / "dict"), "--lm", str(task / "lm.arpa"), "--out", str(task / "graph"), *more),
    ]


def estimate(task, *more):
    return main(["lm", "estimate", "--text", str(task / "text"), "--order", "2", "-o", str(task / "lm.arpa"), *more])


def test_lm_and_graph_from_files_to_files(task, capsys):
    assert estimate(task, "--dict", str(task / "dict")) == 0
    assert main(graph_arguments(task)) == 0
    printed = capsys.readouterr().out
    assert "minimised" in printed
    assert printed.endswith("words: 3 done, 0 skipped, 0 failed\n")
    out = task / "graph"
    assert set(read_lookahead(out / "lookahead")) == {"<s>", "</s>", "X", "Y", "Z"}
    assert read_cntkmap(out / "cntkmap") == {state: i for i, state in enumerate(STATES)}
    assert read_state_map(out / "state_map")["sil"] == ("sil[2]", "sil[3]")
    assert math.exp(read_transitions(out / "transitions")["a_s3"][1]) == pytest.approx(2 / 6)
    assert (out / "outputs").read_text() == "<s> []\n</s> []\nY [why]\n"
    acceptor, graph = read_acceptor(out / "graph.fsa.gz"), load_graph(out / "graph.dg")
    assert {"[sil[2]]", "[a_s2]", "X", "<s>"} <= set(acceptor.symbols)
    assert graph.num_states == acceptor.num_states
    assert graph.outputs[graph.words.index("Y")] == "why"
    report = (out / "report").read_text()
    assert report.startswith("# words: 3 done")
    assert f"# minimised: {acceptor.num_states} states, {acceptor.num_arcs} arcs\n" in report


def test_words_left_out_are_reported(task, capsys):
    assert estimate(task) == 0
    assert main(graph_arguments(task)) == 2
    assert "1 word not in the language model: Z;" in capsys.readouterr().err
    assert not (task / "graph").exists()
    assert main(graph_arguments(task, "--drop-missing")) == 0
    assert "Z\tskipped\tnot in the language model\n" in (task / "graph" / "report").read_text()


def test_words_with_phones_without_models_are_counted_by_phone(task, capsys):
    words = [f"W{i}" for i in range(6)]
    (task / "text").write_text(f"X Y {' '.join(words)}\nY\n")
    assert estimate(task) == 0
    entries = "".join(f"{word} a {'ng' if i < 4 else 'zh'}\n" for i, word in enumerate(words))
    (task / "dict").write_text(f"<s> [] sil\n</s> [] sil\nX a\nX b ng\nY b\n{entries}")
    assert main(graph_arguments(task)) == 2
    capsys.readouterr()
    assert main(graph_arguments(task, "--drop-missing")) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [line for line in printed if line.startswith("left out")] == [
        "left out: 4 words: no model for phone 'ng'",
        "left out: 2 words: no model for phone 'zh'",
        "left out: X: no model for phone 'ng'",
    ]
    assert printed[-1] == "words: 2 done, 6 skipped, 0 failed"
    report = (task / "graph" / "report").read_text()
    assert "W5\tskipped\tno model for phone 'zh'\n" in report
    assert "# one pronunciation less: X: no model for phone 'ng'\n" in report
    assert set(read_lookahead(task / "graph" / "lookahead")) == {"<s>", "</s>", "X", "Y"}


CMUDICT = """;;; a comment
'BOUT  B A1
X  A1 B
X(1)  A0 B
X(2)  B
Y  A2
"""


def test_cmudict_with_stress(task, capsys):
    (task / "text").write_text("X Y\n'BOUT\n")
    assert estimate(task) == 0
    (task / "dict").write_text(CMUDICT)
    for path in (task / "states", task / "alignment.mlf"):
        path.write_text(path.read_text().replace("a_s", "A_s").replace("b_s", "B_s"))
    assert main(graph_arguments(task, "--silence", "sil")) == 2
    assert "phones without a model: 'A1' of 'BOUT" in capsys.readouterr().err
    assert main(graph_arguments(task, "--silence", "sil", "--strip-stress", "-v")) == 0
    assert "dict: 1 pronunciations have become equal to others; merged" in capsys.readouterr().err
    assert set(read_lookahead(task / "graph" / "lookahead")) == {"<s>", "</s>", "X", "Y", "'BOUT"}
    assert (
        main(["lm", "estimate", "--text", str(task / "text"), "--dict", str(task / "dict"), "-o", str(task / "m")]) == 0
    )
    assert set(read_arpa(task / "m").vocabulary) == {"<s>", "</s>", "X", "Y", "'BOUT"}


def test_phones_can_be_mapped_to_those_of_the_models(task, capsys):
    (task / "text").write_text("X Y\n")
    assert estimate(task) == 0
    (task / "dict").write_text("X  OY1 T\nY  B IY0 T\nY(2)  B IY1 T\n")
    (task / "map").write_text("# to the models\nOY a b\nIY a\nB b\nT\n")
    changed = ("--silence", "sil", "--strip-stress", "--map-phones", str(task / "map"))
    assert main(graph_arguments(task, *changed)) == 0
    mapped = (task / "graph" / "graph.dg").read_bytes()
    (task / "dict").write_text("X a b\nY b a\n")
    assert main(graph_arguments(task, "--silence", "sil")) == 0
    assert (task / "graph" / "graph.dg").read_bytes() == mapped
    (task / "dict").write_text("X  OY1\nY  T T\n")
    capsys.readouterr()
    assert main(graph_arguments(task, *changed)) == 2
    assert "map deletes all phones of 1 word, such as 'Y'; expected at least one" in capsys.readouterr().err


def test_the_form_of_a_dictionary_can_be_given(task, capsys):
    (task / "text").write_text("X X(2)\n")
    (task / "dict").write_text("<s> sil\n</s> sil\nX a b\nX(2) b\n")
    assert estimate(task) == 0
    assert main(graph_arguments(task, "--dict-format", "htk")) == 0
    assert set(read_lookahead(task / "graph" / "lookahead")) == {"<s>", "</s>", "X", "X(2)"}
    assert main(graph_arguments(task)) == 0
    assert set(read_lookahead(task / "graph" / "lookahead")) == {"<s>", "</s>", "X"}


def test_all_faults_of_a_dictionary_are_printed(task, capsys):
    assert estimate(task) == 0
    path = task / "dict"
    path.write_text("X 1.5 a\nY a\nY 0.5 a\nZ b 0.5\n")
    capsys.readouterr()
    assert main(graph_arguments(task)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(": ")[1] for line in lines] == [f"{path}:1", f"{path}:3", f"{path}:4"]
    path.write_text("".join(f"W{i} 1.5 a\n" for i in range(30)))
    assert main(graph_arguments(task)) == 2
    lines = capsys.readouterr().err.splitlines()
    assert (len(lines), lines[-1]) == (21, "error: and 10 more faults")


def test_phone_loop_needs_the_silence_by_name(task, capsys):
    (task / "phones").write_text("a b a\nb\n")
    main(["lm", "estimate", "--text", str(task / "phones"), "-o", str(task / "lm.arpa")])
    arguments = [a for a in graph_arguments(task) if a not in ("--dict", str(task / "dict"))]
    assert main(arguments) == 2
    assert "phone loop: no silence model; expected its name" in capsys.readouterr().err
    assert main([*arguments, "--silence", "sil"]) == 0
    assert set(read_lookahead(task / "graph" / "lookahead")) == {"<s>", "</s>", "a", "b"}


@pytest.mark.parametrize(
    ("remove", "message"),
    [
        ("--alignment", "--transitions is missing; expected it or --alignment"),
        ("--state-list", "--states is missing; expected HMM states: it, --state-list, --mmf or --hmms"),
    ],
)
def test_graph_says_which_file_is_needed(task, capsys, remove, message):
    arguments = graph_arguments(task)
    at = arguments.index(remove)
    assert main(arguments[:at] + arguments[at + 2 :]) == 2
    assert message in capsys.readouterr().err


def test_lm_reads_transcriptions_and_mlf_alike(task, capsys):
    (task / "words.trn").write_text("<s> X Y </s> (u1)\nY (u2)\nX X Y (u3)\n")
    (task / "words.mlf").write_text('#!MLF!#\n"*/u1.lab"\nX\nY\n.\n"*/u2.lab"\nY\n.\n"*/u3.lab"\nX\nX\nY\n.\n')
    assert estimate(task) == 0
    expected = read_arpa(task / "lm.arpa")
    for option, name in (("--transcription", "words.trn"), ("--mlf", "words.mlf")):
        assert main(["lm", "estimate", option, str(task / name), "--order", "2", "-o", str(task / "other.arpa")]) == 0
        other = read_arpa(task / "other.arpa")
        assert other.vocabulary == expected.vocabulary
        for ours, theirs in zip(other.orders, expected.orders):
            assert np.array_equal(ours.logprob, theirs.logprob)


def test_perplexity_of_a_uniform_model_is_its_size(task, capsys):
    (task / "lm.arpa").write_text(
        "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-0.4771213 </s>\n-0.4771213 X\n-0.4771213 Y\n\\end\\\n"
    )
    assert main(["lm", "perplexity", "--lm", str(task / "lm.arpa"), "--text", str(task / "text")]) == 0
    assert capsys.readouterr().out == "perplexity 3.00 (3 sentences, 6 words, 0 unknown)\n"
    (task / "text").write_text("X Q\n")
    assert main(["lm", "perplexity", "--lm", str(task / "lm.arpa"), "--text", str(task / "text"), "-v"]) == 1
    assert "left out, unknown to the model: Q\n" in capsys.readouterr().out


def test_perplexity_leaves_out_what_is_impossible_and_fails_when_nothing_is_left(task, capsys):
    """Without <unk> and </s>: Q cannot be predicted, X has probability zero, and so has the end."""
    head = "\\data\\\nngram 1=4\n\n\\1-grams:\n-99 <s>\n-99 </s>\n"
    ask = ["lm", "perplexity", "--lm", str(task / "lm.arpa"), "--text", str(task / "text")]
    (task / "lm.arpa").write_text(f"{head}-99 X\n-0.3010300 Y\n\\end\\\n")
    (task / "text").write_text("Y X\n")
    assert main(ask) == 1
    out = capsys.readouterr().out
    assert "left out, of probability 0: X (1), </s> (1)\n" in out
    assert "perplexity 2.00 (1 sentences, 2 words, 0 unknown)" in out
    (task / "text").write_text("X\nQ\n")
    assert main(ask) == 2
    assert "perplexity nan (2 sentences, 2 words, 1 unknown)" in capsys.readouterr().out


def test_lm_without_a_text_says_so(task, capsys):
    assert main(["lm", "estimate", "-o", str(task / "lm.arpa")]) == 2
    assert "--text is missing; expected a text: it, --transcription or --mlf" in capsys.readouterr().err
    (task / "empty").write_text("\n")
    assert main(["lm", "estimate", "--text", str(task / "empty"), "-o", str(task / "lm.arpa")]) == 2
    assert "empty: no sentences; expected one per line" in capsys.readouterr().err
    assert not (task / "lm.arpa").exists()


def test_words_outside_the_vocabulary_name_its_file_and_the_way_out(task, capsys):
    (task / "few").write_text("X\n")
    assert estimate(task, "--vocabulary", str(task / "few")) == 2
    message = f"{task / 'few'}: words of the text are missing: Y; expected every word of the text, or --unk"
    assert message in capsys.readouterr().err
    assert estimate(task, "--vocabulary", str(task / "few"), "--unk", "<unk>") == 0
    assert estimate(task, "--vocabulary", str(task / "dict")) == 2
    assert "dict:1: '<s> [] sil'; expected one word a line" in capsys.readouterr().err
    assert estimate(task, "--order", "0") == 2
    assert "command line: --order is 0; expected at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '#!MLF!#\n"*/u1.lab"\nX\n.\n',
            "text:1: a master label file; expected sentences, one per line",
        ),
        ("\n\\data\\\nngram 1=2\n", "text: an ARPA language model; expected sentences, one per line"),
    ],
)
def test_other_files_in_place_of_a_text(task, capsys, text, message):
    (task / "text").write_text(text)
    assert estimate(task) == 2
    assert message in capsys.readouterr().err
    assert not (task / "lm.arpa").exists()


def test_names_of_utterances_in_a_text_are_warned_of(task, capsys):
    names = [f"spk-utt{i}" for i in range(10)]
    (task / "text").write_text("".join(f"{name} X Y\n" for name in names))
    assert estimate(task) == 0
    assert "text: every line begins with a word that occurs only once, such as spk-utt0; if" in capsys.readouterr().err
    (task / "text").write_text("".join(f"{name} X Y {names[3]}\n" for name in names))
    assert estimate(task) == 0
    assert capsys.readouterr().err == ""


def test_a_trn_file_in_place_of_a_text_is_warned_of(task, capsys):
    (task / "text").write_text("".join(f"X Y (spk-utt{i})\n" for i in range(10)))
    assert estimate(task) == 0
    expected = "text: lines end with utterances, as in (spk-utt0); expected the option transcription"
    assert expected in capsys.readouterr().err
    (task / "text").write_text("X Y (spk)\n" * 9 + "X Y\n")
    assert estimate(task) == 0
    assert capsys.readouterr().err == ""


def test_a_text_of_single_words_gives_no_warning(task, capsys):
    (task / "text").write_text("".join(f"word{i}\n" for i in range(20)))
    assert estimate(task) == 0
    assert capsys.readouterr().err == ""


def test_classes_come_by_number_or_from_a_table(task, capsys):
    assert estimate(task, "--classes", "1") == 0
    by_number = read_arpa(task / "lm.arpa")
    (task / "classes").write_text("X same\nY same\n")
    assert estimate(task, "--classes", str(task / "classes"), "--class-weight", "0.5") == 0
    for ours, theirs in zip(read_arpa(task / "lm.arpa").orders, by_number.orders):
        assert ours.logprob == pytest.approx(theirs.logprob)
    (task / "classes").write_text("X same\nX other\n")
    assert estimate(task, "--classes", str(task / "classes")) == 2
    assert "classes:2: 'X other'; expected `word class`" in capsys.readouterr().err


@pytest.mark.parametrize("options", [("--strip-stress",), ("--map-phones", "none")])
def test_options_that_change_phones_need_a_dictionary(task, capsys, options):
    arguments = graph_arguments(task, "--silence", "sil", *options)
    at = arguments.index("--dict")
    assert main(arguments[:at] + arguments[at + 2 :]) == 2
    assert capsys.readouterr().err == f"error: command line: {options[0]} is given without --dict; expected both\n"


@pytest.fixture
def loop(made, tmp_path):
    """A function that builds a loop of the words or phones of the system in `made`, and decodes it without -lm."""

    def build_and_decode(*more, lm=None):
        (tmp_path / "state_map").write_text("".join(f"{p} {p}_s2 {p}_s3 {p}_s4\n" for p in PHONES))
        files = ("--states", str(tmp_path / "state_map"), "--transitions", str(made / "transitions"))
        silence = ("--silence", "sil", "--optional-silence", "--out", str(tmp_path / "graph"))
        assert main(["graph", *files, *silence, "--loop", *more]) == 0
        assert decode(made, tmp_path, graph=tmp_path / "graph" / "graph.dg", lm=lm) == 0
        return words_of(tmp_path / "out.mlf")

    return build_and_decode


def test_word_loop_without_a_language_model(loop, tmp_path):
    (tmp_path / "dict").write_text("".join(f"{word} {' '.join(phones)}\n" for word, phones in DICTIONARY.items()))
    assert loop("--dict", str(tmp_path / "dict")) == SENTENCES
    costs = read_lookahead(tmp_path / "graph" / "lookahead")
    assert set(costs) == {"<s>", "</s>", *DICTIONARY}
    assert all(cost == pytest.approx(math.log(4), abs=1e-3) for word, cost in costs.items() if word != "<s>")


def test_a_loop_takes_a_language_model_when_it_is_decoded(loop, made, tmp_path):
    (tmp_path / "dict").write_text("".join(f"{word} {' '.join(phones)}\n" for word, phones in DICTIONARY.items()))
    assert loop("--dict", str(tmp_path / "dict"), lm=made / "lm.arpa") == SENTENCES
    lm, rows = LanguageModel.from_arpa(read_arpa(made / "lm.arpa")), read_cntkmap(made / "cntkmap")
    scores = read_htk(made / "u3.htk").frames
    built, looped = (
        Decoder(load_graph(path), lm, SearchOptions(acweight=1.0), rows).decode(scores)
        for path in (made / "g.dg", tmp_path / "graph" / "graph.dg")
    )
    assert looped.cost == pytest.approx(built.cost, abs=1e-3)


def test_phone_loop_without_a_language_model(loop):
    phones = {name: [p for word in words.split() for p in DICTIONARY[word]] for name, words in SENTENCES.items()}
    assert {name: words.split() for name, words in loop().items()} == phones


def test_a_short_pause_is_no_word_of_a_phone_loop(made, tmp_path):
    (tmp_path / "state_map").write_text("a a_s2 a_s3 a_s4\nsil sil_s2 sil_s3 sil_s4\nsp sil_s3\n")
    files = ("--states", str(tmp_path / "state_map"), "--transitions", str(made / "transitions"))
    assert main(["graph", *files, "--silence", "sil", "--loop", "--out", str(tmp_path / "graph")]) == 0
    assert set(read_lookahead(tmp_path / "graph" / "lookahead")) == {"<s>", "</s>", "a"}
    for phones, expected in (("a a", {"a"}), ("a sp", {"a", "sp"})):  # a language model decides
        (tmp_path / "text").write_text(f"{phones}\n")
        assert (
            main(["lm", "estimate", "--text", str(tmp_path / "text"), "--order", "1", "-o", str(tmp_path / "lm")]) == 0
        )
        model = ("--lm", str(tmp_path / "lm"), "--out", str(tmp_path / "graph"))
        assert main(["graph", *files, "--silence", "sil", *model]) == 0
        assert set(read_lookahead(tmp_path / "graph" / "lookahead")) == {"<s>", "</s>", *expected}


def test_without_a_language_model_a_loop_is_suggested(task, capsys):
    arguments = graph_arguments(task)
    at = arguments.index("--lm")
    del arguments[at : at + 2]
    assert main(arguments) == 2
    assert capsys.readouterr().err == (
        "error: command line: --lm is missing; expected it, --lm-collection, --grammar, or --loop for a loop in "
        "which all words have the same probability\n"
    )
    assert main([*arguments, "--loop", "--lm-collection", "models"]) == 2
    assert "--lm-collection is given beside --loop; expected one of them" in capsys.readouterr().err
