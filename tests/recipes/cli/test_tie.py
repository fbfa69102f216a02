"""`argonaut tie`: from alignments to a model set for `argonaut graph`, tied anew from its own alignment; faults."""

import re
from pathlib import Path

import pytest

from readers.htk.frame_labels import read_state_list
from readers.htk.hmm_list import read_hmm_list
from readers.htk.mlf import read_mlf
from readers.htk.trees import read_trees
from readers.tables.hmm_tables import read_cntkmap, read_state_map
from tests.docs.pages import page_text

QUESTIONS = "".join(
    f"QS '{side}_{phone}' {{ \"{pattern}\" }}\n"
    for phone in ("a", "b", "c", "sil")
    for side, pattern in (("L", f"{phone}-*"), ("R", f"*+{phone}"))
)
TIE = (
    *("--alignment", "train.mlf", "--state-list", "states.list", "--features", "train.scp"),
    *("--questions", "questions.hed", "--threshold", "50", "--min-frames", "20"),
)


@pytest.fixture
def tying(user):
    user.write("questions.hed", QUESTIONS)
    return user


def test_model_set_builds_a_graph_and_labels_are_its_senones(tying):
    outcome = tying.run("tie", *TIE, "--out", "hmms")
    assert outcome.status == 0, outcome.err
    assert outcome.out[-2] == "utterances: 24 done, 0 skipped, 0 failed"
    senones = read_state_list("hmms/senones.list")
    triphones = read_hmm_list("hmms/tiedlist").keys() - {"sil"}
    assert outcome.out[-1] == f"tied: {len(triphones)} triphones of 3 phones, {len(senones)} senones"
    assert len(senones) > 8
    before, after = read_mlf("train.mlf"), read_mlf("hmms/states.mlf")
    assert len(after) == 24
    for name, labels in before.items():
        tied = after.lookup(name)
        assert [(label.start, label.end) for label in tied] == [(label.start, label.end) for label in labels]
        assert [label.name.split("_s")[0] for label in tied] == [label.name.split("_s")[0] for label in labels]
        assert {label.name for label in tied} <= set(senones)
    model_set = ("--mmf", "hmms/hmmdefs", "--hmm-list", "hmms/tiedlist", "--trees", "hmms/trees")
    words = ("--dict", "dict", "--lm", "lm.arpa", "--state-list", "hmms/senones.list")
    outcome = tying.run("graph", *model_set, *words, "--out", "tied")
    assert outcome.status == 0, outcome.err
    assert len(read_state_map("tied/state_map")) == 1 + 3 * 4 * 4
    assert read_cntkmap("tied/cntkmap") == {senone: i for i, senone in enumerate(senones)}


def test_tied_anew_from_its_own_alignment_gives_the_same(tying):
    assert tying.run("tie", *TIE, "--out", "one").status == 0
    tying.write("silence.map", "sil sil_s2 sil_s3\n")
    again = ("--alignment", "one/states.mlf", "--states", "silence.map", "--trees", "one/trees")
    outcome = tying.run("tie", *TIE[4:], *again, "--out", "two")
    assert outcome.status == 0, outcome.err
    assert read_trees("two/trees") == read_trees("one/trees")
    before = {path.name: path.read_bytes() for path in Path("one").iterdir()}
    outcome = tying.run("tie", *TIE[4:], *again, "--out", "one")
    assert outcome.status == 2
    assert "one/trees: is an input and would be overwritten" in outcome.err[-1]
    assert {path.name: path.read_bytes() for path in Path("one").iterdir()} == before
    assert (tying.root / "two/states.mlf").read_text() == (tying.root / "one/states.mlf").read_text()


def test_automatic_questions(tying):
    explicit = tying.run("tie", *TIE, "--questions", "auto", "--out", "hmms")
    assert explicit.status == 0, explicit.err
    trees = (tying.root / "hmms/trees").read_text()
    assert re.search(r"QS '[LR]_[0-9]+' ", trees)
    position = TIE.index("--questions")
    assert tying.run("tie", *TIE[:position], *TIE[position + 2 :], "--out", "default").out[-1] == explicit.out[-1]
    assert (tying.root / "default/trees").read_text() == trees
    graph = ("--mmf", "hmms/hmmdefs", "--hmm-list", "hmms/tiedlist", "--trees", "hmms/trees", "--dict", "dict")
    built = tying.run("graph", *graph, "--lm", "lm.arpa", "--state-list", "hmms/senones.list", "--out", "tied")
    assert built.status == 0, built.err


def test_short_pause_and_flattened_transitions(tying):
    assert tying.run("tie", *TIE, "--short-pause", "sp", "--transition-power", "0", "--out", "hmms").status == 0
    text = (tying.root / "hmms/hmmdefs").read_text()
    assert '~t "T_sp"\n<TRANSP> 3\n 0 0.5 0.5\n 0 0.5 0.5\n 0 0 0\n' in text
    assert '~t "T_a"\n<TRANSP> 4\n 0 1 0 0\n 0 0.5 0.5 0\n 0 0 0.5 0.5\n 0 0 0 0\n' in text
    assert read_hmm_list("hmms/tiedlist")["sp"] == "sp"


def test_phones_that_the_features_have_nothing_of_are_left_out_of_the_labels(tying):
    """Utterances that are aligned, but not listed."""
    text = (tying.root / "train.mlf").read_text()
    other = '"*/other.lab"\n0 100000 sil_s2\n100000 200000 sil_s3\n200000 300000 {}_s2\n300000 400000 {}_s3\n.\n'
    tying.write("more.mlf", text + other.format("d", "d") + other.replace("other", "known").format("a", "a"))
    tying.write("states.list", (tying.root / "states.list").read_text() + "d_s2\nd_s3\n")
    outcome = tying.run("tie", *TIE, "--alignment", "more.mlf", "--out", "hmms")
    reason = "not in states.mlf: decision trees: none for d[2], which model 'sil-d+sil' needs; expected one"
    assert outcome.err == [f"skipped: other: {reason}"]
    assert outcome.status == 1
    assert outcome.out[-2] == "utterances: 24 done, 1 skipped, 0 failed"
    assert f"other\tskipped\t{reason}" in (tying.root / "hmms/report").read_text()
    assert list(read_mlf("hmms/states.mlf")) == [*read_mlf("train.mlf"), "known"]


def test_the_report_names_every_utterance_if_none_can_be_used(tying):
    text = (tying.root / "train.mlf").read_text()
    tying.write("bad.mlf", text.replace("sil_s2", "what_s2"))
    outcome = tying.run("tie", *TIE, "--alignment", "bad.mlf", "--out", "hmms")
    assert outcome.status == 2
    lines = (tying.root / "hmms/report").read_text().splitlines()
    assert lines[0] == "# utterances: 0 done, 0 skipped, 24 failed"
    assert len(lines) == 25
    assert {path.name for path in (tying.root / "hmms").iterdir()} == {"report"}


def test_a_faulty_alignment_is_left_out_of_statistics_and_labels(tying):
    text = (tying.root / "train.mlf").read_text()
    tying.write("bad.mlf", text.replace("sil_s2", "what_s2", 1))
    outcome = tying.run("tie", *TIE, "--alignment", "bad.mlf", "--out", "hmms")
    assert outcome.out[-2] == "utterances: 23 done, 0 skipped, 1 failed"
    assert len(outcome.err) == 1
    assert len(read_mlf("hmms/states.mlf")) == 23


def test_an_utterance_that_does_not_fit_is_named_and_the_others_go_on(tying):
    text = (tying.root / "train.scp").read_text()
    tying.write("train.scp", text + "none=feat/utt00.fb\nutt01=feat/missing.fb\n")
    outcome = tying.run("tie", *TIE, "--out", "hmms")
    assert outcome.status == 1
    assert "none: no alignment; expected an entry */none.lab" in outcome.err[0]
    assert "feat/missing.fb" in outcome.err[1]
    assert outcome.out[-2] == "utterances: 24 done, 0 skipped, 2 failed"
    tying.write("train.scp", "utt00=feat/utt01.fb[0,9]\n")
    outcome = tying.run("tie", *TIE, "--out", "none")
    assert outcome.status == 2
    assert len(outcome.err) == 1
    assert "feat/utt01.fb: 10 frames; expected" in outcome.err[0]
    assert not (tying.root / "none/hmmdefs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--threshold", "-1"), "command line: --threshold is -1; expected at least 0"),
        (
            ("--transition-power", "nan"),
            "command line: --transition-power is nan; expected a finite number, at least 0",
        ),
        (("--states", "states.map"), "command line: --states is given beside --state-list; expected one"),
        (("--silence", "h#"), "states.list: no model 'h#'; expected its states"),
        (("--context-free", "noise"), "states.list: no model 'noise'; expected its states"),
        (("--questions", "dict"), "dict:1: command '<s>'; expected QS, TB"),
        (("--questions", "empty.hed"), "empty.hed: no questions; expected QS lines"),
        (("--features", "empty.scp"), "empty.scp: no entries; expected a feature file on each line"),
        (("--state-list", "timit.list"), "timit.list: phone 'ax-h'; expected names without - and +, which separate"),
    ],
)
def test_faults_of_the_command_line(tying, arguments, message):
    tying.write("empty.hed", "TR 0\n")
    tying.write("empty.scp", "\n")
    tying.write("timit.list", (tying.root / "states.list").read_text() + "ax-h_s2\nax-h_s3\n")
    assert tying.run("tie", *TIE, *arguments, "--out", "hmms").fault.startswith(message)
    assert not (tying.root / "hmms").exists()


def test_the_page_shows_python_that_runs(tying):
    page = page_text("tying")
    (code,) = re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    states = {phone: (f"{phone}_s2", f"{phone}_s3") for phone in ("a", "b", "c", "sil")}
    for old, new in (
        ("39", "10"),
        ('"states.mlf"', '"train.mlf"'),
        ("{name}.mfc", "feat/{name.rsplit('/')[-1]}.fb"),
        ("threshold=400, min_frames=100", "threshold=50, min_frames=20"),
    ):
        assert old in code
        code = code.replace(old, new)
    code = re.sub(r"^states = .*$", f"states = {states}", code, flags=re.MULTILINE)
    exec(compile(code, "tying.md", "exec"), {})
    assert tying.run("tie", *TIE, "--out", "commanded").status == 0
    for name in ("hmmdefs", "tiedlist", "trees", "tree.hed", "senones.list"):
        ours, theirs = ((tying.root / folder / name).read_text() for folder in ("hmms", "commanded"))
        assert ours.replace("<USER>", "<FBANK>").splitlines() == theirs.splitlines(), name
