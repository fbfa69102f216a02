"""`argonaut score` as a user runs it: the table, what is missing, levels, outputs that cannot be written."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from decoder.scoring import ScoreOptions, score_files
from readers.htk.mlf import Label, write_mlf
from readers.results.timed_words import Word, write_tiers
from recipes.cli.main import main


@pytest.fixture
def mlf(tmp_path, monkeypatch):
    """Writes an MLF of the utterances' words into the current directory."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, **utterances: str) -> str:
        entries = [
            (f"*/{key}.lab", [Label(None, None, word) for word in words.split()]) for key, words in utterances.items()
        ]
        write_mlf(name, entries)
        return name

    return write


def test_utterances_without_a_partner_are_named_and_change_the_exit_status(mlf, capsys):
    reference, hypothesis = mlf("ref", a="X Y", b="Z"), mlf("hyp", a="X Y", c="Z")
    assert main(["score", reference, hypothesis]) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[-2:] == ["utterances: 1 done, 1 skipped, 1 failed", "WER 33.3% (2 utterances, 3 words)"]
    assert err.splitlines() == [
        "failed: b: no hypothesis; its words count as deletions",
        "skipped: c: no reference; its words do not count",
    ]


def test_utterances_that_the_hypothesis_lacks_can_be_left_out(mlf, capsys):
    reference, hypothesis = mlf("ref", a="X Y", b="Z"), mlf("hyp", a="X X")
    assert main(["score", "--present", reference, hypothesis]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "left out: 1 utterance not in hyp"
    assert out[-1] == "WER 50.0% (1 utterance, 2 words)"
    assert main(["score", "--present", reference, mlf("other", c="X")]) == 2
    assert capsys.readouterr().err == "error: other: none of the 2 utterances of ref; expected at least one\n"


@pytest.mark.parametrize("option", ["--report", "--confusions"])
def test_the_words_of_the_other_system_are_not_overwritten(mlf, tmp_path, capsys, option):
    words = mlf("ref", a="X Y"), mlf("hyp", a="X Y"), "--compare", mlf("other", a="X X")
    before = (tmp_path / "other").read_bytes()
    assert main(["score", *words, option, "other"]) == 2
    assert capsys.readouterr().err == "error: other: is an input and would be overwritten; expected another path\n"
    assert (tmp_path / "other").read_bytes() == before


def test_another_system_is_compared_on_the_same_utterances(mlf, capsys):
    files = mlf("ref", a="X Y", b="Z V"), mlf("hyp", a="X Y", b="Z V")
    assert main(["score", *files, "--compare", mlf("other", a="X X", b="Z Z")]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "0.0% and 50.0% of other: difference -50.0% absolute, 95% interval -50.0% to -50.0%, better in 100.0% of "
        "samples",
        "WER 0.0% (2 utterances, 4 words)",
    ]
    assert main(["score", *files, "--compare", mlf("part", a="X Y")]) == 0
    assert "50.0% of part (1 utterance without words): difference" in capsys.readouterr().out
    assert main(["score", *files, "--compare", mlf("strange", c="X")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_names_that_never_meet_are_one_line_and_status_2(mlf, capsys):
    assert main(["score", mlf("ref", a="X", b="X"), mlf("hyp", c="X")]) == 2
    assert capsys.readouterr().err == (
        "error: hyp: none of 3 utterances could be done; first error: a: no hypothesis; its words count as deletions\n"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--level", "-1"], "command line: --level is -1; expected at least 0"),
        (["--reference-level", "-2"], "command line: --reference-level is -2; expected at least 0"),
        (["--hypothesis-level", "-1", "--boundaries"], "command line: --hypothesis-level is -1; expected at least 0"),
        (["--hypothesis-level", "1"], "hyp: no label has a level 1; expected --level with words, such as 0"),
        (["--level", "1"], "ref: no label has a level 1; expected --level with words, such as 0"),
        (["--fold", "none.map"], "argonaut score: argument --fold: none.map: no such file; expected a file or timit39"),
        (["--speakers", "*-*"], "speaker mask '*-*' has no '%'"),
        (["--picture", "ref/x.png"], "ref/x.png: cannot be written: ref is not a directory; expected one"),
        (["--fold", "."], ".: Is a directory; expected a file"),
        (["--confusions", "."], ".: is a directory; expected a file to write"),
        (["--report", "."], ".: is a directory; expected a file to write"),
    ],
)  # fmt: skip
def test_faults_are_one_line_and_nothing_is_written(mlf, tmp_path, capsys, options, message):
    reference, hypothesis = mlf("ref", a="X Y"), mlf("hyp", a="X Y")
    assert main(["score", reference, hypothesis, *options]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"ref", "hyp"}


def test_a_plain_mlf_and_one_with_levels(mlf, capsys):
    """Words and phones beside the states, with times."""
    states = [
        Label(0, 1, "x_s2", None, (("x", None), ("X", None))),
        Label(1, 2, "x_s3"),
        Label(2, 3, "y_s2", None, (("y", None),)),
        Label(3, 4, "z_s2", None, (("z", None), ("Z", None))),
    ]
    write_mlf("states", [("*/a.lab", states)])
    write_mlf("phones", [("*/a.lab", [Label(0, 2, "x"), Label(2, 3, "y"), Label(3, 4, "z")])])
    words = mlf("words", a="X Z")
    for files, options, closing in (
        ((words, "states"), ["--hypothesis-level", "2"], "WER 0.0% (1 utterance, 2 words)"),
        (("states", words), ["--reference-level", "2"], "WER 0.0% (1 utterance, 2 words)"),
        (("states", "phones"), ["--reference-level", "1"], "WER 0.0% (1 utterance, 3 words)"),
        (("states", "phones"), ["--level", "1", "--hypothesis-level", "0"], "WER 0.0% (1 utterance, 3 words)"),
        (("phones", "states"), ["--boundaries", "--hypothesis-level", "1"], "100.0% (1 utterance, 4 boundaries)"),
        (("states", "phones"), ["--boundaries", "--reference-level", "1"], "100.0% (1 utterance, 4 boundaries)"),
    ):
        assert main(["score", *files, *options]) == 0
        assert capsys.readouterr().out.splitlines()[-1].endswith(closing)


def test_boundaries_without_a_counterpart_change_the_exit_status(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    labels = [Label(0, 2, "x"), Label(2, 3, "y")]
    write_mlf("ref", [("*/a.lab", labels), ("*/b.lab", labels)])
    write_mlf("hyp", [("*/a.lab", labels)])
    assert main(["score", "ref", "ref", "--boundaries"]) == 0
    assert main(["score", "ref", "hyp", "--boundaries", "--report", "lost"]) == 1
    assert "failed: b: " in capsys.readouterr().err
    lines = (tmp_path / "lost").read_text().splitlines()
    assert lines[0] == "# utterances: 1 done, 0 skipped, 1 failed"
    assert lines[1].startswith("b\tfailed\t")


FORMS = {
    "trn": "X Y (a)\n\nZ <s> X (b)\n",
    "ctm": ";; of channel 1\nb 1 0.5 0.2 Z 0.9\nb 1 0.9 0.3 X\na 1 0.1 0.2 X\na 1 0.4 0.2 Y 1.0\n",
    "text": "a X Y\nb Z X\n",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("swapped", [False, True])
def test_words_come_in_the_forms_of_other_programs_too(mlf, tmp_path, capsys, form, swapped):
    (tmp_path / "other").write_text(FORMS[form])
    files = [mlf("words", a="X Y", b="Z Q"), "other"]
    options = ["--text"] if form == "text" else []
    assert main(["score", *(reversed(files) if swapped else files), *options]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "WER 25.0% (2 utterances, 4 words)"


def test_the_malformed_line_of_a_trn_is_named(mlf, tmp_path, capsys):
    (tmp_path / "other").write_text("X Y (a)\nZ (b\nX (c)\n")
    for options in ([], ["--text"]):
        assert main(["score", mlf("words", a="X Y"), "other", *options]) == 2
        assert capsys.readouterr().err == ("error: other:2: 'Z (b'; expected words and the utterance in parentheses\n")


def test_named_lines_are_not_guessed_and_are_there_once(mlf, tmp_path, capsys):
    (tmp_path / "other").write_text(FORMS["text"])
    assert main(["score", mlf("words", a="X Y"), "other"]) == 2
    assert capsys.readouterr().err == (
        "error: other:1: first line 'a X Y'; expected #!MLF!#, or all lines as in trn or CTM; for lines "
        "`utterance words` use --text\n"
    )
    (tmp_path / "other").write_text("a X Y\na X\n")
    assert main(["score", "words", "other", "--text"]) == 2
    assert capsys.readouterr().err.startswith("error: other:2: utterance 'a' is repeated; expected each")
    (tmp_path / "other").write_text("\n")
    assert main(["score", "words", "other", "--text"]) == 2
    assert capsys.readouterr().err.startswith("error: other: no transcripts; expected lines `utterance word")
    assert main(["score", "words", "other", "--text", "--level", "1"]) == 2  # only an MLF has levels
    assert capsys.readouterr().err.startswith("error: words: no label has a level 1")


def test_an_empty_scheduler_is_refused_rather_than_left_out(mlf, capsys):
    reference = mlf("ref", a="X Y")
    assert main(["score", reference, reference, "--scheduler", ""]) == 2
    assert "argument --scheduler: empty; expected tcp://HOST:PORT or a file" in capsys.readouterr().err


@pytest.mark.parametrize("reference", ["mlf", "octal", "trn", "ctm"])
@pytest.mark.parametrize("hypothesis", ["mlf", "octal", "trn", "ctm"])
def test_equivalent_letters_of_unicode_are_equal(reference, hypothesis, tmp_path, capsys):
    """In words and in the names of utterances, composed in the reference and decomposed in the hypothesis."""
    contents = {
        "mlf": '#!MLF!#\n"*/X.lab"\n0 10 X\n10 20 b\n.\n',
        "octal": '#!MLF!#\n"*/X.lab"\n0 10 X\n10 20 b\n.\n',
        "trn": "X b (X)\n",
        "ctm": "X 1 0 1 X\nX 1 1 1 b\n",
    }
    for name, form, word in (("ref", reference, "n\u00e9"), ("hyp", hypothesis, "ne\u0301")):
        word = "".join(f"\\{byte:03o}" for byte in word.encode()) if form == "octal" else word
        (tmp_path / name).write_text(contents[form].replace("X", word), encoding="utf-8")
    assert main(["score", str(tmp_path / "ref"), str(tmp_path / "hyp")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "WER 0.0% (1 utterance, 2 words)"


def test_words_of_one_channel_are_not_those_of_another(tmp_path, capsys):
    """A file without words in the first channel, and one with words in both."""
    (tmp_path / "ref").write_text("call A 0 1 one\ncall B 0 1 two\n")
    (tmp_path / "hyp").write_text("call B 0 1 two\n")
    assert main(["score", str(tmp_path / "ref"), str(tmp_path / "hyp")]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "WER 50.0% (2 utterances, 2 words)"
    (tmp_path / "ref").write_text('#!MLF!#\n"*/call.lab"\ntwo\n.\n')
    assert main(["score", str(tmp_path / "ref"), str(tmp_path / "hyp")]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "WER 0.0% (1 utterance, 1 word)"


def test_boundaries_are_compared_with_those_of_entries_with_wildcards(tmp_path, capsys):
    labels = "0 10 x\n10 30 y\n.\n"
    (tmp_path / "ref").write_text(f'#!MLF!#\n"*/one.*.lab"\n{labels}"*/two.lab"\n{labels}')
    hypotheses = "".join(f'"*/{name}.rec"\n{labels}' for name in ("one.1", "one.2", "two"))
    (tmp_path / "hyp").write_text(f"#!MLF!#\n{hypotheses}")
    assert main(["score", str(tmp_path / "ref"), str(tmp_path / "hyp"), "--boundaries"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("30 ms 100.0% (3 utterances, 9 boundaries)")


def test_entries_with_wildcards_are_references_of_what_they_match(mlf, tmp_path, capsys):
    (tmp_path / "ref").write_text('#!MLF!#\n"*/one.*.lab"\nX\nY\n.\n"*/two.lab"\nZ\n.\n')
    (tmp_path / "hyp").write_text('#!MLF!#\n"*/one.1.rec"\nX\nY\n.\n"*/one.2.rec"\nX\n.\n"*/two.rec"\nZ\n.\n')
    assert main(["score", "ref", "hyp"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[-2:] == ["utterances: 3 done, 0 skipped, 0 failed", "WER 20.0% (3 utterances, 5 words)"]


def test_a_reference_without_utterances_is_refused(mlf, tmp_path, capsys):
    mlf("ref")
    assert main(["score", "ref", "ref"]) == 2
    assert capsys.readouterr().err == "error: ref: no utterances; expected at least one\n"


def test_boundaries_refuse_what_only_words_have(mlf, capsys):
    files = mlf("ref", a="X Y"), mlf("hyp", a="X Y")
    for options, flag in ((["--per"], "--per"), (["-t"], "--transcriptions"), (["-j", "2"], "--workers")):
        assert main(["score", *files, "--boundaries", *options]) == 2
        fault = f"{flag} is given beside --boundaries; expected it only when scoring words"
        assert capsys.readouterr().err == f"error: command line: {fault}\n"


def test_words_refuse_what_only_boundaries_have(mlf, capsys):
    files = mlf("ref", a="X Y"), mlf("hyp", a="X Y")
    for options, flag in ((["--tier", "words"], "--tier"), (["--strip-stress"], "--strip-stress")):
        assert main(["score", *files, *options]) == 2
        assert capsys.readouterr().err == f"error: command line: {flag} is given without --boundaries; expected both\n"


@pytest.fixture
def grids(tmp_path, monkeypatch):
    """Writes a folder of TextGrids in which all but the first boundary are late by some seconds."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, late: float = 0.0) -> str:
        for utterance in ("ann-1", "bob-1"):
            (tmp_path / name).mkdir(exist_ok=True)
            phones = [Word("s", 0.1, 0.3 + late), Word("AY1", 0.3 + late, 0.5 + late)]
            words = [Word("sigh", 0.1, 0.5 + late)]
            write_tiers(tmp_path / name / f"{utterance}.TextGrid", {"words": words, "phones": phones}, 1.0)
            late *= 2
        return name

    return write


def test_boundaries_of_textgrids(grids, tmp_path, capsys):
    """Ann's two late boundaries of phones are 10 ms late, Bob's 20 ms."""
    files = grids("gold"), grids("aligned", 0.01)
    assert main(["score", *files, "--boundaries", "-k", "%*-?", "--picture", "errors.png"]) == 0
    shown = capsys.readouterr().out
    assert "error in ms: mean 10.0 [6.7, 13.3], median 10.0, 90 % 20.0, shift +10.0" in shown
    assert "error in ms: mean 7.5 [5.0, 10.0], median 5.0, 90 % 17.0, shift +7.5" in shown
    assert "at 20 ms: precision 1.000, recall 1.000, F1 1.000 [1.000, 1.000], R-value 1.000 [1.000, 1.000]" in shown
    assert "fricatives | vowels" in shown
    assert shown.splitlines()[-4:] == [
        "picture: errors.png",
        "utterances: 2 done, 0 skipped, 0 failed",
        "phones: boundaries within 10 ms 66.7%, 20 ms 100.0%, 30 ms 100.0% (2 utterances, 6 boundaries)",
        "words: boundaries within 10 ms 75.0%, 20 ms 100.0%, 30 ms 100.0% (2 utterances, 4 boundaries)",
    ]
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")


def test_boundaries_may_all_be_missed(grids, tmp_path, capsys):
    (tmp_path / "only.map").write_text("s x\nAY1 y\n")
    files = grids("gold"), grids("aligned")
    options = ("--tier", "phones", "--map-hypothesis", "only.map", "--picture", "errors.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main(["score", *files, "--boundaries", *options]) == 0
    shown = capsys.readouterr().out
    assert "error in ms: mean nan" in shown
    assert "boundaries: 6 of the reference, 6 missed, 6 extra" in shown
    assert "F1 1.000" in shown  # by time alone


def test_boundaries_as_json(grids, capsys):
    files = grids("gold"), grids("aligned", 0.01)
    assert main(["score", *files, "--boundaries", "--tier", "phones", "--json"]) == 0
    out, err = capsys.readouterr()
    (figures,) = json.loads(out).values()
    assert (figures["mean"], figures["median"], figures["f1"], figures["r_value"]) == (10.0, 10.0, 1.0, 1.0)
    assert figures["within"] == {"5": 33.3333, "10": 66.6667, "20": 100.0, "25": 100.0, "50": 100.0, "100": 100.0}
    assert figures["boundary_classes"]["vowels|silence"]["mean"] == 15.0
    assert "error in ms" in err


def test_a_broken_file_to_compare_is_found_before_words_are_aligned(mlf, tmp_path):
    options = ScoreOptions(reference=mlf("ref", a="X"), hypothesis=mlf("hyp", a="X"), compare=tmp_path / "none")
    steps = []
    with pytest.raises(FileNotFoundError):
        score_files(options, progress=lambda *step, **figures: steps.append(step))
    assert steps == []


def test_a_job_scores_files_without_a_command(mlf):
    options = ScoreOptions(reference=mlf("ref", a="X Y", b="Z"), hypothesis=mlf("hyp", a="X X"), present=True)
    lines = []
    scored = score_files(options, log=lines.append)
    assert scored.results.total.word_error_rate == 50.0
    assert (scored.report.summary(), scored.comparison) == ("utterances: 1 done, 0 skipped, 0 failed", None)
    assert lines == ["left out: 1 utterance not in hyp"]
    scored = score_files(replace(options, compare="ref"))
    assert (scored.comparison.difference, scored.other.total.num_errors) == (50.0, 0)


def test_no_output_is_an_input_or_another_output(mlf, capsys):
    reference, hypothesis = mlf("ref", a="X Y"), mlf("hyp", a="X Y")
    Path("fold").write_text("X X\nY Y\n")
    assert main(["score", reference, hypothesis, "--fold", "fold", "--confusions", "fold"]) == 2
    assert main(["score", reference, hypothesis, "--confusions", "out", "--report", "out"]) == 2
    assert Path("fold").read_text() == "X X\nY Y\n"
    assert capsys.readouterr().err.count("error: ") == 2


def test_utterances_of_digits_are_no_times(tmp_path):
    from decoder.scoring.words import read_words

    (tmp_path / "text").write_text("utt1 1 2 3 4\nutt2 5 6 7 8\n")
    assert read_words(tmp_path / "text", named_lines=True) == {"utt1": list("1234"), "utt2": list("5678")}
    (tmp_path / "text").write_text("utt1 1 0.0 1 4\nutt2 1 0 1 8\n")
    assert read_words(tmp_path / "text", named_lines=True) == {"utt1": ["4"], "utt2": ["8"]}
