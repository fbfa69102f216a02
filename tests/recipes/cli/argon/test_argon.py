"""`argon`: compiling graphs, decoding features and audio, and Ctrl-C."""

import itertools
import os
import re
import signal
import time
from pathlib import Path

import numpy as np
import pytest

from decoder.recognizer.jobs.decoding import utterances
from decoder.recognizer.jobs.decoding.options import DecodeOptions
from decoder.recognizer.jobs.decoding.scores import open_source
from readers.audio.audio_file import write_wav
from readers.common.environment import available_cores
from readers.htk.frame_labels import frame_labels
from readers.htk.mlf import read_mlf
from readers.htk.parameter_file import parse_kind, write_htk
from readers.htk.slf import read_slf
from readers.results.timed_words import read_ctm
from recipes.cli.argon.command import main, make_parser
from tests.recipes.systems.argon_system import (
    PERIOD,
    SENTENCES,
    STATES,
    compile_arguments,
    decode,
    save_identity,
    words_of,
)

BOOK_OPTIONS = (
    "infsm", "lookahead-file", "transition-file", "precompile", "graph", "infiles", "lm", "lm-collection", "sil-cost",
    "am", "cntkmap", "dnn_window_size", "outmlf", "detailed-alignment", "lattice-prefix", "acweight", "beam",
    "max-tokens", "word_end_beam_frac", "alignmlf",
)  # fmt: skip
CLOSING = r"utterances: (\d+) done, (\d+) skipped, (\d+) failed; frames (\d+); real-time factor \d+\.\d{3}\n"


def test_precompile_says_what_it_made(made, tmp_path, capsys):
    assert main(compile_arguments(made, graph=tmp_path / "g.dg")) == 0
    assert re.fullmatch(
        r"graph: .*g\.dg: \d+ states, \d+ HMM positions, \d+ emitting arcs, \d+ word arcs\n", capsys.readouterr().out
    )
    assert (tmp_path / "g.dg").read_bytes() == (made / "g.dg").read_bytes()


def test_decoding_finds_the_words_and_ends_with_a_line_for_scripts(made, tmp_path, capsys):
    assert decode(made, tmp_path) == 0
    assert words_of(tmp_path / "out.mlf") == SENTENCES
    closing = re.fullmatch(CLOSING, capsys.readouterr().out)
    num_frames = sum((file.stat().st_size - 12) // (4 * len(STATES)) for file in made.glob("u?.htk"))
    assert closing.groups() == ("4", "0", "0", str(num_frames))
    assert (tmp_path / "out.mlf.report").read_text() == "# utterances: 4 done, 0 skipped, 0 failed\n"
    labels = read_mlf(tmp_path / "out.mlf")["u3"]
    assert all(label.start % PERIOD == 0 and label.end > label.start for label in labels)
    assert all(before.end <= after.start for before, after in itertools.pairwise(labels))
    assert '"*/u1.rec"' in (tmp_path / "out.mlf").read_text()


def test_detailed_alignment_is_an_mlf_of_states(made, tmp_path):
    assert decode(made, tmp_path, "-detailed-alignment") == 0
    mlf = read_mlf(tmp_path / "out.mlf")
    for name, sentence in SENTENCES.items():
        frames = frame_labels(mlf[name], {state: i for i, state in enumerate(STATES)}, name)
        assert len(frames) == (made / f"{name}.htk").stat().st_size // (4 * len(STATES))
        words = [aux[1][0] for aux in (label.aux for label in mlf[name]) if len(aux) > 1]
        assert words == ["<s>", *sentence.split(), "</s>"]
    assert decode(made, tmp_path, "-detailed-alignment", "false") == 0
    assert words_of(tmp_path / "out.mlf") == SENTENCES


def test_lattices_are_numbered_and_hold_the_best_path(made, tmp_path):
    assert decode(made, tmp_path, "-lattice-prefix", str(tmp_path / "lat" / "l"), "--lattice-beam", "30") == 0
    index = (tmp_path / "lat" / "l.index").read_text().splitlines()
    assert index == ["1\tu1", "2\tu2", "3\tu3", "4\tu4"]
    for line in index:
        number, name = line.split("\t")
        lattice = read_slf(tmp_path / "lat" / f"l{number}.lat")
        assert lattice.utterance == name
        assert lattice.header["lmname"] == "lm.arpa"
        score = lattice.acoustic_scale * lattice.acoustic + lattice.lm_scale * lattice.lm
        best, words = {0: 0.0}, {0: []}
        for start, end, word, value in zip(lattice.start, lattice.end, lattice.word, score):
            if end not in best or best[start] + value > best[end]:
                best[end], words[end] = best[start] + value, [*words[start], word]
        spoken = [word for word in words[lattice.num_nodes - 1] if word not in ("!NULL", "<s>", "</s>")]
        assert " ".join(spoken) == SENTENCES[name]
    assert decode(made, tmp_path, "-lattice-prefix", str(tmp_path / "only"), outmlf=None) == 0
    assert (tmp_path / "only4.lat").exists()
    assert (tmp_path / "only.report").exists()


def test_options_of_the_book_take_one_dash_or_two(made, tmp_path):
    options = ("--word-end-beam-frac=0.5", "--beam", "12", "-max-tokens", "500", "--sil-cost", "-1")
    assert decode(made, tmp_path, *options) == 0
    assert words_of(tmp_path / "out.mlf") == SENTENCES


@pytest.mark.parametrize(
    ("option", "similar"),
    [("-lm-scale", "--lm-scale"), ("-max_tokens", "-max-tokens"), ("--lm-skale", "--lm-scale"), ("-wordz", "--words")],
)
def test_other_spellings_are_refused_with_the_right_one(made, tmp_path, capsys, option, similar):
    assert decode(made, tmp_path, option, "1") == 2
    assert f"unrecognized arguments: {option} 1; did you mean {similar}; argon -help" in capsys.readouterr().err


def test_options_are_spelled_as_in_the_book():
    found = {flag[1:] for flag in make_parser()._option_string_actions if flag[1] != "-" and len(flag) > 2}
    assert found == {*BOOK_OPTIONS, "help"}
    assert [DecodeOptions.declaration(name).flag for name in ("lm_collection", "window", "frame_shift")] == [
        "-lm-collection", "-dnn_window_size", "--frame-shift",
    ]  # fmt: skip


def test_a_cost_of_silence_that_no_model_pays_is_said(made, tmp_path, capsys):
    assert decode(made, tmp_path, "--silence=", "-sil-cost", "2") == 0
    assert "no silence models: -sil-cost 2 has no effect; name the models with --silence" in capsys.readouterr().err
    assert decode(made, tmp_path, "-sil-cost", "2") == 0
    assert "no silence models" not in capsys.readouterr().err


@pytest.mark.parametrize("detailed", [False, True])
def test_words_have_the_times_of_the_mlf(made, tmp_path, detailed):
    assert decode(made, tmp_path) == 0
    expected = {
        name: [(label.name, label.start, label.end) for label in labels]
        for name, labels in read_mlf(tmp_path / "out.mlf").items()
    }
    more = ["-detailed-alignment"] if detailed else []
    assert decode(made, tmp_path, "--words", str(tmp_path / "w.ctm"), *more) == 0
    found = read_ctm(tmp_path / "w.ctm")
    assert {
        name: [(word.text, round(word.start * 1e7), round(word.end * 1e7)) for word in words]
        for name, words in found.items()
    } == expected
    assert {word.confidence for words in found.values() for word in words} == {None}


def test_words_alone_are_enough_and_a_file_each_where_the_form_says_so(made, tmp_path, capsys):
    (tmp_path / "new").mkdir()
    assert decode(made, tmp_path, outmlf=None, words=tmp_path / "new" / "sub.srt") == 0
    assert capsys.readouterr().out.startswith(f"utterances: {len(SENTENCES)} done")
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["sub", "sub.srt.report"]
    assert sorted(path.stem for path in (tmp_path / "new/sub").iterdir()) == sorted(SENTENCES)


def test_a_stream_s_option_for_files_is_refused_by_name(made, tmp_path, capsys):
    assert decode(made, tmp_path, "--json") == 2
    assert capsys.readouterr().err == ("error: command line: --json is given without --stream; expected both\n")
    assert not list(tmp_path.iterdir())


class InterruptedScores:
    """A signal comes while one of the utterances is worked on; those after it do not end before it is noticed."""

    def __init__(self, source, name, number):
        self.source, self.name, self.number = source, name, number

    def __getattr__(self, name):
        return getattr(self.source, name)

    def scores(self, entry):
        if entry.key == self.name:
            os.kill(os.getpid(), self.number)
        end = time.monotonic() + 60
        while entry.key >= self.name and signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            assert time.monotonic() < end, "the signal has not been noticed"
            time.sleep(0.001)
        return self.source.scores(entry)


@pytest.fixture
def interrupted_at(monkeypatch):
    """A function: the utterance at which a signal comes."""

    def interrupt(name, number=signal.SIGINT):
        def open_interrupted(*arguments):
            return InterruptedScores(open_source(*arguments), name, number)

        monkeypatch.setattr(utterances, "open_source", open_interrupted)

    return interrupt


@pytest.mark.parametrize(
    ("threads", "number", "said"),
    [(1, signal.SIGINT, "interrupted"), (2, signal.SIGINT, "interrupted"), (2, signal.SIGTERM, "stopped by SIGTERM")],
)
def test_what_is_done_when_a_signal_comes_is_kept(made, tmp_path, capsys, interrupted_at, threads, number, said):
    assert decode(made, tmp_path / "whole") == 0
    whole, names = read_mlf(tmp_path / "whole/out.mlf"), list(SENTENCES)
    capsys.readouterr()
    interrupted_at(names[1], number)
    prefix, words = tmp_path / "lat/t", tmp_path / "w.ctm"
    more = ["-lattice-prefix", str(prefix), "--words", str(words)]
    assert decode(made, tmp_path, *more, threads=threads) == 128 + number
    mlf = tmp_path / "out.mlf"
    found, printed = read_mlf(mlf), capsys.readouterr()
    done = len(found)
    assert 2 <= done <= threads + 1  # the other thread may be at work on one
    files = f"{mlf}, {words}, {prefix}.index"
    text = f"{done} of {len(names)} utterances done, written to {files}; the others are listed in {mlf}.report"
    assert (printed.out, printed.err) == ("", f"{said}: {text}\n")
    assert dict(found) == {name: whole[name] for name in names[:done]}
    index = (tmp_path / "lat/t.index").read_text()
    assert index == "".join(f"{number}\t{name}\n" for number, name in enumerate(names[:done], 1))
    assert sorted(path.name for path in (tmp_path / "lat").glob("*.lat")) == [f"t{n}.lat" for n in range(1, done + 1)]
    assert list(read_ctm(words)) == names[:done]
    lost = "".join(f"{name}\tskipped\tnot done: interrupted\n" for name in names[done:])
    counts = f"# utterances: {done} done, {len(names) - done} skipped, 0 failed\n"
    assert Path(f"{mlf}.report").read_text() == counts + lost


def test_an_interrupted_run_names_the_textgrids_that_it_wrote(made, tmp_path, capsys, interrupted_at):
    names = list(SENTENCES)
    interrupted_at(names[1])
    assert decode(made, tmp_path, "--words", str(tmp_path / "w.TextGrid"), threads=1) == 130
    written = f"{tmp_path}/w/{names[0]}.TextGrid"
    assert Path(written).exists()
    assert f"written to {tmp_path}/out.mlf, {written}; the others are listed" in capsys.readouterr().err


def test_when_ctrl_c_comes_before_anything_is_done_an_older_mlf_stays(made, tmp_path, capsys, interrupted_at):
    (tmp_path / "out.mlf").write_text("older")
    first = next(iter(SENTENCES))
    interrupted_at(first)
    (tmp_path / "list.scp").write_text(
        f"{first}={tmp_path}/none.htk\n" + "".join((made / "list.scp").read_text().splitlines(keepends=True)[1:])
    )
    assert decode(made, tmp_path, infiles=tmp_path / "list.scp", threads=1) == 130
    message = f"interrupted: 0 of {len(SENTENCES)} utterances done, nothing written\n"
    assert capsys.readouterr().err == message
    assert (tmp_path / "out.mlf").read_text() == "older"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["list.scp", "out.mlf"]


def test_ctrl_c_at_the_last_utterance_loses_nothing(made, tmp_path, capsys, interrupted_at):
    interrupted_at(list(SENTENCES)[-1])
    assert decode(made, tmp_path, threads=1) == 0
    assert capsys.readouterr().out.startswith(f"utterances: {len(SENTENCES)} done")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_threads_change_nothing(made, tmp_path):
    for threads in (1, 3):
        assert decode(made, tmp_path / str(threads), threads=threads) == 0
    assert (tmp_path / "1" / "out.mlf").read_bytes() == (tmp_path / "3" / "out.mlf").read_bytes()


@pytest.mark.parametrize("threads", [1, 2, None])
def test_number_of_cores_used(made, tmp_path, monkeypatch, threads_of_blas, threads):
    seen = set()
    score = utterances.DecodingPipeline.__call__

    def note(self, numbered):
        seen.add((available_cores(), threads_of_blas()))
        return score(self, numbered)

    monkeypatch.setattr(utterances.DecodingPipeline, "__call__", note)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(8)), raising=False)
    assert decode(made, tmp_path, threads=threads) == 0
    assert seen == {(threads or 8, 1)}
    assert (available_cores(), threads_of_blas()) == (8, 4)


def test_collection_of_one_model_twice_decodes_as_that_model(made, tmp_path):
    (tmp_path / "models").write_text(f"{made / 'lm.arpa'} 0.25\n{made / 'lm.arpa'} 0.75\n")
    lattices = ("-lattice-prefix", str(tmp_path / "lattice"))
    assert decode(made, tmp_path) == decode(
        made, tmp_path / "two", *lattices, **{"lm": None, "lm-collection": tmp_path / "models"}
    )
    assert words_of(tmp_path / "two" / "out.mlf") == words_of(tmp_path / "out.mlf")
    assert "lmname=models" in (tmp_path / "lattice1.lat").read_text()


def test_bad_utterances_are_named_and_the_others_decoded(made, tmp_path, capsys):
    raw = (made / "u1.htk").read_bytes()
    (tmp_path / "cut.htk").write_bytes(raw[:-40])
    write_htk(tmp_path / "thin.htk", np.zeros((5, 9), np.float32), parse_kind("USER"))
    write_htk(tmp_path / "nan.htk", np.full((12, 9), np.nan, np.float32), parse_kind("USER"))
    write_htk(tmp_path / "short.htk", np.zeros((12, 3), np.float32), parse_kind("USER"))
    lines = (made / "list.scp").read_text().splitlines()
    extra = [f"{tmp_path}/{name}.htk" for name in ("cut", "thin", "nan", "short", "missing")]
    (tmp_path / "list.scp").write_text("\n".join([lines[0], *extra, lines[1], lines[0], *lines[2:]]) + "\n")
    assert decode(made, tmp_path, infiles=tmp_path / "list.scp") == 1
    assert {name: words for name, words in words_of(tmp_path / "out.mlf").items() if words} == SENTENCES
    printed = capsys.readouterr()
    closing = CLOSING.replace(" failed", " failed; 1 unfinished")
    assert re.fullmatch(closing, printed.out).groups()[:3] == ("5", "0", "5")
    report = (tmp_path / "out.mlf.report").read_text().splitlines()[1:]
    assert [line.split("\t")[1] for line in report] == ["failed"] * 5 + ["unfinished"]
    reasons = {line.split("\t")[0].rsplit("/", 1)[-1]: line.split("\t")[2] for line in report}
    assert list(reasons) == ["cut", "thin", "nan", "missing", "u1", "short"]  # in the order of the list
    assert "cut.htk" in reasons["cut"]
    assert "thin.htk: features: a matrix of 5x9; expected 12 rows" in reasons["thin"]
    assert "nan.htk: features: frame 0 has a value that is infinite or NaN" in reasons["nan"]
    text = "no token reached a final state with a beam of 60 instead of 15; wrote the words of the best unfinished path"
    assert reasons["short"] == text
    assert "missing.htk: No such file" in reasons["missing"]
    assert "same name as at" in reasons["u1"]
    assert "and 1 more, listed in" in printed.err


def test_when_all_is_lost_an_older_mlf_stays(made, tmp_path, capsys):
    (tmp_path / "out.mlf").write_text("older")
    (tmp_path / "list.scp").write_text(f"{tmp_path}/missing.htk\n")
    assert decode(made, tmp_path, infiles=tmp_path / "list.scp") == 2
    assert (tmp_path / "out.mlf").read_text() == "older"
    assert capsys.readouterr().out.startswith(
        "utterances: 0 done, 0 skipped, 1 failed; frames 0; real-time factor 0.000"
    )
    assert "missing.htk: No such file" in (tmp_path / "out.mlf.report").read_text()


def test_word_penalty_and_scales_change_the_result(made, tmp_path):
    assert decode(made, tmp_path, "--word-penalty", "1000", beam=10000) == 0
    assert sum(len(words.split()) for words in words_of(tmp_path / "out.mlf").values()) < 9


def test_decoding_audio_equals_decoding_its_features(made, tmp_path):
    from features import FeatureConfig, extract, frame_period

    config = "SOURCEFORMAT = WAV\nTARGETKIND = FBANK\nTARGETRATE = 100000\nWINDOWSIZE = 250000\nNUMCHANS = 12\n"
    (tmp_path / "hcopy.config").write_text(config)
    settings = dict(line.split(" = ") for line in config.splitlines())
    save_identity(tmp_path / "model", 12, window=3)
    rng = np.random.default_rng(1)
    audio, features = [], []
    for i in range(3):
        samples = (rng.normal(size=8000 + 1000 * i) * rng.uniform(100, 4000)).round()
        write_wav(tmp_path / f"a{i}.wav", samples, 16000)
        frames = extract(samples, FeatureConfig.from_hcopy(settings), 16000)
        period = frame_period(FeatureConfig.from_hcopy(settings), 16000)
        write_htk(tmp_path / f"a{i}.htk", frames, parse_kind("FBANK"), period)
        audio.append(f"a{i}.x={tmp_path}/a{i}.wav\n")
        features.append(f"a{i}.x={tmp_path}/a{i}.htk\n")
    (tmp_path / "audio").write_text("".join(audio))
    (tmp_path / "features").write_text("".join(features))
    model = {"am": tmp_path / "model", "dnn_window_size": 3}
    assert (
        decode(made, tmp_path / "1", "--features", str(tmp_path / "hcopy.config"), infiles=tmp_path / "audio", **model)
        == 0
    )
    assert decode(made, tmp_path / "2", infiles=tmp_path / "features", **model) == 0
    assert (tmp_path / "1" / "out.mlf").read_bytes() == (tmp_path / "2" / "out.mlf").read_bytes()
    (tmp_path / "hcopy.config").write_text(config.replace("12", "10"))
    assert (
        decode(made, tmp_path / "3", "--features", str(tmp_path / "hcopy.config"), infiles=tmp_path / "audio", **model)
        == 2
    )
