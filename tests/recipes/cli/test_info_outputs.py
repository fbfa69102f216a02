"""`argonaut info` of what the tools write: every kind is made by its own writer and called by its name."""

import sys

import numpy as np
import pytest

from acoustic.descriptions.builders.simple import SimpleNetworkOptions, build_simple_network
from acoustic.export.onnx_export import export_onnx
from acoustic.network.model_file import save_model
from decoder.scoring import report as score_report
from decoder.scoring.error_counts import score
from readers.common.report import RunReport
from readers.errors import FormatError
from readers.htk.frame_labels import read_state_list
from readers.htk.scp import write_pairs
from readers.htk.slf import write_slf
from readers.language.vocabulary import VocabularyWord, write_vocabulary
from readers.results import timed_words
from readers.results.nbest import Hypothesis, write_nbest
from readers.results.timed_words import Word
from readers.tables import hmm_tables
from recipes.cli.main import main
from recipes.file_kinds import describe_file
from recipes.file_kinds.text_kinds import Text, text_kind
from recipes.pictures.confusions import draw_confusions
from recipes.stages import Stage, run_stages
from tests.decoder.lattices.small_lattices import random_lattice
from tests.recipes.cli.test_info import figures_of, put

UTTERANCES = {"u1": [Word("YES", 0.25, 0.5, 0.75), Word("NO", 0.5, 1.5)], "u2": [Word("7", 0, 2, 0.25)]}


def figures_as(kind, path):
    """The figures of a file that must be of a kind."""
    found, figures = figures_of(path)
    assert found == kind
    return figures


@pytest.mark.parametrize(
    ("form", "kind", "expected"),
    [
        ("ctm", "words with times (CTM)", {"words": "3, 3 different", "confidence": "given for 2, mean 0.500"}),
        ("stm", "reference with times (STM)", {"segments": "2 of 2 recordings", "words": "3"}),
        ("json", "words with times (JSON)", {"words": "3", "confidence": "given for 2, mean 0.500"}),
    ],
)
def test_words_with_times(tmp_path, form, kind, expected):
    timed_words.write_words(tmp_path / f"w.{form}", UTTERANCES)
    figures = figures_as(kind, tmp_path / f"w.{form}")
    assert figures["ends at"] == "2.00 s"
    assert {name: figures[name] for name in expected} == expected


def test_words_of_one_utterance(tmp_path):
    for form in ("srt", "vtt", "textgrid"):
        timed_words.write_words(tmp_path / f"w.{form}", UTTERANCES)
    for form in ("srt", "vtt"):
        assert figures_as("subtitles", tmp_path / "w" / f"u1.{form}") == {"cues": "1", "ends at": "1.50 s"}
    figures = figures_as("TextGrid of Praat", tmp_path / "w" / "u1.TextGrid")
    assert figures == {"tiers": "words", "intervals": "3", "ends at": "1.50 s"}


def test_textgrids_as_praat_writes_them(tmp_path):
    short = '"ooTextFile"\n"TextGrid"\n0\n2.5\n<exists>\n2\n"IntervalTier"\n"Jörg"\n0\n2.5\n1\n0\n2.5\n"größe"\n'
    short += '"TextTier"\n"clicks"\n0\n2.5\n1\n0.5\n"x"\n'
    expected = {"tiers": "Jörg clicks", "intervals": "1", "ends at": "2.50 s"}
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "a.TextGrid").write_text(short, encoding)
        assert figures_as("TextGrid of Praat", tmp_path / "a.TextGrid") == expected
        (tmp_path / "b.TextGrid").write_text(f"File type = {short}", encoding)
        assert figures_as("TextGrid of Praat", tmp_path / "b.TextGrid") == expected
    (tmp_path / "text").write_text("größe", "utf-16")
    with pytest.raises(FormatError, match="expected a TextGrid"):
        describe_file(str(tmp_path / "text"))


def test_scored_words(tmp_path):
    lists = {"u1": [Hypothesis(("YES",), -10, -1), Hypothesis((), -12, 0)], "u2": [Hypothesis(("7", "7"), -1, -2)]}
    write_nbest(tmp_path / "n", lists)
    assert figures_as("n-best lists", tmp_path / "n") == {"utterances": "2", "hypotheses": "3, 1 to 2 each"}
    write_words = {"u1": "B B C".split(), "u2": ["A"]}, {"u1": "D D C E".split(), "u2": []}
    score_report.write_confusions(score(*write_words), tmp_path / "c")
    figures = figures_as("confusions of a score", tmp_path / "c")
    assert figures == {"pairs": "3", "substitutions": "2", "deletions": "1", "insertions": "1"}
    draw_confusions(score(*write_words), tmp_path / "c.png")
    assert " x " in figures_as("picture (PNG)", tmp_path / "c.png")["pixels"]


@pytest.fixture
def lattices(tmp_path):
    for number in (1, 2):
        write_slf(tmp_path / f"test{number}.lat", random_lattice(number))
    return put(tmp_path / "test.index", "1\tu1\n2\tu2\n")


def test_what_lattice_writes(tmp_path, lattices):
    figures = figures_as("index of lattices", lattices)
    assert figures["files"] == f"{tmp_path}/test1.lat, ..."
    (tmp_path / "test2.lat").rename(tmp_path / "old")
    assert figures_as("index of lattices", lattices)["files"].endswith("test1.lat, ..., 1 of them not there")
    (tmp_path / "old").rename(tmp_path / "test2.lat")

    def run(action, *arguments):
        assert main(["lattice", action, "--lattices", str(lattices), *map(str, arguments)]) == 0

    run("consensus", "-o", tmp_path / "slots")
    assert figures_as("consensus networks", tmp_path / "slots")["utterances"] == "2"
    run("kaldi", "--words", tmp_path / "words.txt", "-o", tmp_path / "kaldi")
    figures = figures_as("Kaldi lattices, as text", tmp_path / "kaldi")
    assert (figures["lattices"], figures["first key"]) == ("2", "u1")
    put(tmp_path / "damaged", (tmp_path / "kaldi").read_text() + "u3\n0 1 2\n0 x 2\n")
    with pytest.raises(FormatError, match=r"damaged:\d+: '0 x 2'; expected `start end label costs`"):
        figures_of(tmp_path / "damaged")
    assert figures_as("symbol table", tmp_path / "words.txt")["0 is"] == "<eps>"
    run("openfst", "--words", tmp_path / "words.txt", "--prefix", tmp_path / "fst", "--binary")
    figures = figures_as("OpenFst binary", tmp_path / "fst1.fst")
    assert (figures["type"], figures["states"][-7:]) == ("vector, arcs standard", "start 0")
    assert figures_as("index of lattices", tmp_path / "fst.index")["files"] == f"{tmp_path}/fst1.fst, ..."
    (tmp_path / "cut").write_bytes((tmp_path / "fst1.fst").read_bytes()[:30])
    with pytest.raises(FormatError, match=r"cut: incomplete header \(.*; expected a complete OpenFst file"):
        figures_of(tmp_path / "cut")


def test_what_graph_writes(tmp_path):
    put(tmp_path / "states", "a_s2\na_s3\nb_s2\nsil[2]\nsil[3]\n")
    put(tmp_path / "dict", "<s> [] sil\n</s> [] sil\nX 1.0 a b\nY [why] a\nZ b\n")
    put(tmp_path / "transitions", "".join(f"[{name}] -0.7 -0.7\n" for name in read_state_list(tmp_path / "states")))
    put(tmp_path / "text", "X Y\nY\nX X Y\n")
    assert main(["lm", "estimate", "--text", str(tmp_path / "text"), "-o", str(tmp_path / "lm")]) == 0
    arguments = [(f"--{name}", str(tmp_path / name)) for name in ("dict", "lm", "transitions")]
    arguments += [("--state-list", str(tmp_path / "states")), ("--out", str(tmp_path / "g"))]
    assert main(["graph", "--drop-missing", *(one for pair in arguments for one in pair)]) == 0
    figures = figures_as("report of a run", tmp_path / "g" / "report")
    assert figures["words"] == "2 done, 1 skipped, 0 failed"
    assert figures["minimised"].endswith(" arcs")
    figures = figures_as("states of models (state map)", tmp_path / "g" / "state_map")
    assert figures == {"models": "3, 1 to 2 states each", "states": "5 different"}
    figures = figures_as("output words of a graph", tmp_path / "g" / "outputs")
    assert figures["output"].startswith("nothing for 2, another word for ")
    assert figures_as("look-ahead scores of a graph", tmp_path / "g" / "lookahead")["words"] == "4"
    assert figures_as("pronunciation dictionary", tmp_path / "dict")["words"].startswith("5, ")


def test_tables_of_hmms_and_words(tmp_path):
    hmm_tables.write_topology(tmp_path / "t", {"sil": [(0, 1, 0.0), (1, 2, np.log(0.25)), (1, 3, np.log(0.75))]})
    assert figures_as("ways through HMMs (topology)", tmp_path / "t") == {"models": "sil", "ways": "3"}
    hmm_tables.write_state_map(tmp_path / "m", {"a-b": ("a_s2_1", "a_s3_4"), "sil": ("ST_sil_2", "sil[3]")})
    assert figures_as("states of models (state map)", tmp_path / "m")["models"] == "2, 2 states each"
    (tmp_path / "s").write_text("<eps>\t0\na\t1\n")
    assert figures_as("symbol table", tmp_path / "s")["symbols"] == "2, numbers 0 to 1"
    write_vocabulary(tmp_path / "v", [VocabularyWord("a", 7, 0), VocabularyWord("b", 3, 1)])
    assert figures_as("vocabulary with classes", tmp_path / "v")["classes"] == "2"


def test_lists(tmp_path):
    write_pairs(tmp_path / "l", [("in/a b.wav", "out/a.fb"), (__file__, "out/b.fb")])
    figures = figures_as("list of sources and targets (HCopy)", tmp_path / "l")
    assert (figures["sources"], figures["targets"]) == ("2, 1 of them not there", "2, 0 of them there")
    assert figures_as("list of names", put(tmp_path / "s", "sil[2]\nsil[3]\na_s2_1\n"))["last"] == "a_s2_1"
    # Phones are no files, and digits at the end of a name no states.
    for text in ("A ey\nB b.iy\n", "EYE AY1\n", "AY AY1 AY2\n", "1 wan\n2 tuw\n"):
        assert figures_as("pronunciation dictionary", put(tmp_path / "d", text))["probability"] == "given for 0"


def test_what_an_import_leaves(tmp_path):
    figures = figures_as("words with counts", put(tmp_path / "unknown.words", "zoo 3\ncat 1\nape 1\n"))
    assert figures == {"words": "3", "counts": "5 in all", "frequent": "zoo 3, cat 1, ape 1"}
    figures = figures_as("speakers of utterances", put(tmp_path / "speakers", "u1 ann\nu2 ann\nv bob\n"))
    assert figures == {"utterances": "3", "speakers": "2", "utterances of each": "1 to 2"}
    figures_as("speakers of utterances", put(tmp_path / "utt2spk", "u1 ann\n"))
    figures_as("script file (SCP)", put(tmp_path / "audio.scp", "u1=/a b/u1.wav\nu2=/a b/u2.wav[0,9,1]\n"))


def test_numbers_alone_are_records(tmp_path):
    for text in ("cat 1 0.5 0.25 7\n", "cat 0.5 0.25 1 7\n", "1\t17\n2\t3\n", "cat 1 2 -0.5\ndog 1 3 0.1\n"):
        figures_as("records as text (UCI)", put(tmp_path / "r", text))


def test_what_recipes_leave(tmp_path):
    report = RunReport("label files", 3)
    report.skip("a", "no labels")
    report.write(tmp_path / "report")
    assert figures_as("report of a run", tmp_path / "report")["label files"] == "3 done, 1 skipped, 0 failed"
    put(tmp_path / "report", "\n# files: 1 done, 0 skipped, 0 failed\n\n")
    assert figures_as("report of a run", tmp_path / "report") == {"files": "1 done, 0 skipped, 0 failed"}
    run_stages([Stage("data", "nothing", lambda: 0, settings={"seed": 3})], tmp_path)
    figures = figures_as("mark of a recipe's stage", tmp_path / "stages" / "data.done")
    assert (figures["stage"], figures["settings"]) == ("data", '{"seed": 3}')
    record = '{"chosen": {"acweight": 0.5}, "trials": [\n{"acweight": 0.5, "errors": 1, "words": 2}\n]}\n'
    figures = figures_as("search options that a recipe tried", put(tmp_path / "tune.json", record))
    assert figures == {"trials": "1", "chosen": "acweight 0.5"}


def test_networks_for_others_and_their_inputs(tmp_path, monkeypatch):
    pytest.importorskip("onnx")
    network = build_simple_network(SimpleNetworkOptions((6, 8, 4)))
    save_model(network, tmp_path / "net")
    assert figures_as("safetensors model", tmp_path / "net")["inputs"] == "features 6 values, labels 4 values"
    export_onnx(network, ["HLast"], tmp_path / "net.onnx")
    figures = figures_as("ONNX model", tmp_path / "net.onnx")
    assert (figures["input"], figures["output"]) == ("features, frames x 6", "HLast, frames x 4")
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert "pip install '.[onnx]'" in figures_as("ONNX model", tmp_path / "net.onnx")["note"]
    monkeypatch.undo()
    (tmp_path / "cut").write_bytes((tmp_path / "net.onnx").read_bytes()[:99])
    with pytest.raises(FormatError, match=r"cut: .*; expected a complete ONNX model"):
        figures_of(tmp_path / "cut")


def test_images_tell_their_sides(tmp_path):
    from acoustic.network.network import Network

    network = Network()
    network.add("ImageInput", "x", width=11, height=24, channels=3)
    save_model(network, tmp_path / "net")
    assert figures_as("safetensors model", tmp_path / "net")["inputs"] == "x 792 values (11 x 24 x 3)"


CONSENSUS, NBEST, CTM = "consensus networks", "n-best lists", "words with times (CTM)"
DICTIONARY = "pronunciation dictionary"


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (CONSENSUS, "u1 [ a 0.25 b 0.75 ] [ c 1.0 ]\n", True),
        (CONSENSUS, "u1 [ a 0 ] [ c 1 ]\n", True),
        (CONSENSUS, "u1 [ a 0.25 b ] [ c 1.0 ]\n", False),  # a word without probability
        (CONSENSUS, "u1 [ ] [ c 1.0 ]\n", False),
        (CONSENSUS, "u1 [ a 1.25 ] [ c 1.0 ]\n", False),
        (CONSENSUS, "u1 [ a -0.25 ] [ c 1.0 ]\n", False),
        (CONSENSUS, "u1 [ a x ] [ c 1.0 ]\n", False),
        (CTM, "u1 1 0.5 0.25 yes 0.75\nu1 1 0.75 0.25 no 0.5\n", True),
        (CTM, "u1 1 0.5 0.25 yes 0.75\nu1 1 0.75 0.25 no sure\n", False),  # a confidence that is no number
        (NBEST, "u1 -1.5 -2 2 a b\nu1 -1.75 -2 1 a\n", True),
        (NBEST, "u1 -1.5 -2 2 a b\nu1 -1.75 -2 1 a c\n", False),  # one word is announced, two are there
        (NBEST, "u1 -1.5 -2 2 a b\nu1 -1.75 no 1 a\n", False),
        (NBEST, "u1 x -2 2 a b\nu1 -1.75 -2 1 a\n", False),
        ("states of models (state map)", "a a_s2 a_s3\nb b_s2\n", True),
        ("states of models (state map)", "a a_s2 a_s3\nb b\n", False),
        ("states of models (state map)", "a a_s2 3\nb b_s2\n", False),
        ("list of names", "a[0]\nb\n", True),
        ("output words of a graph", "YES [yes]\nNO []\n", True),
        ("output words of a graph", "YES [yes]\nNO x\n", False),
        ("index of lattices", "1\tu1\n2\tu2\n", True),
        ("index of lattices", "1\tu1\nx\tu2\n", False),
        (DICTIONARY, "yes y eh1 s\nno n ow1\nno(2) n ah0\n", True),
        (DICTIONARY, "yes y eh1 s\nno n ow1\nno(2) n ah0\nalone\n", False),
    ],
)
def test_texts_that_only_begin_like_a_kind_are_not_of_it(tmp_path, kind, text, expected):
    """The kind alone: a function that describes a wrong one would raise FormatError, too."""
    (tmp_path / "a").write_text(text)
    try:
        found = text_kind(Text(str(tmp_path / "a")))
    except FormatError:
        found = None
    assert (found == kind) is expected


def test_blocks_of_a_configuration_are_not_shown_as_its_values(tmp_path):
    (tmp_path / "a.cntk").write_text("command=Train\nprecision=float\nTrain=[\n action=train\n]\nMore=[b=2]\n")
    figures = describe_file(str(tmp_path / "a.cntk"), 1)[1]
    assert [name for name, _ in figures] == ["commands", "Train", "blocks", "command", "precision"]
