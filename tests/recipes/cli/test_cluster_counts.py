"""Commands that add up or list what shards give: the same bits from one process, from several, and from a cluster."""

import math
import os
import shutil
import signal
from pathlib import Path

import pytest

from decoder.scoring import error_counts
from decoder.tying import collection, job
from readers.language import sentences
from recipes.cli import console
from tests.recipes.cli.test_tie import QUESTIONS, TIE

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_progress(monkeypatch):
    """Show no lines of progress, however long a worker takes to start: what commands print is compared."""
    monkeypatch.setattr(console, "PLAIN_INTERVAL", math.inf)


@pytest.fixture(scope="module")
def scheduler():
    """The address of a cluster of four processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1"
    ) as workers:
        yield workers.scheduler_address


collect_shard = collection.collect_shard


def collect_and_die(shard, alignments):
    """Kill the worker at one of the shards, unless that has been done."""
    if "utt11" in shard[0].path and not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return collect_shard(shard, alignments)


def content(*folders):
    return {
        path.relative_to(folder): path.read_bytes()
        for folder in map(Path, folders)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_tying_with_a_worker_that_is_killed(user, monkeypatch, scheduler):
    user.write("questions.hed", QUESTIONS)
    text = (user.root / "train.mlf").read_text()
    user.write("train.mlf", text.replace('"*/utt03', '"*/other').replace("sil_s2", "what_s2", 1))
    monkeypatch.setattr(collection, "SHARD_UTTERANCES", 1)
    here = user.run("tie", *TIE, "--out", "here")
    assert here.status == 1
    monkeypatch.setattr(job, "collect_shard", collect_and_die)
    there = user.run("tie", *TIE, "--scheduler", scheduler, "--out", "there")
    assert Path("killed").exists()
    assert (there.status, there.out) == (here.status, here.out)
    told = [line.replace("there", "here") for line in there.err if not line.startswith("warning: shard ")]
    assert told == here.err
    assert len(content("here")) == 7
    assert content("there") == content("here")
    assert "utt03\tfailed\tno alignment; expected an entry */utt03.lab\n" in Path("there/report").read_text()


def test_tying_in_two_processes(user, monkeypatch):
    user.write("questions.hed", QUESTIONS)
    monkeypatch.setattr(collection, "SHARD_UTTERANCES", 5)
    assert user.run("tie", *TIE, "--out", "here").status == 0
    assert user.run("tie", *TIE, "-j", "2", "--out", "there").status == 0
    assert content("there") == content("here")


@pytest.mark.parametrize("options", [("--vocabulary", "few", "--unk", "?"), ("--mlf", "words.mlf")])
def test_language_models(user, monkeypatch, scheduler, options):
    monkeypatch.setattr(sentences, "PART_BYTES", 40)
    user.write("few", "AB\nC\n")
    arguments = ("lm", "estimate", "--text", "text", "--order", "3", *options)
    assert user.run(*arguments, "-o", "here/lm").status == 0
    there = user.run(*arguments, "-o", "there/lm", "--scheduler", scheduler)
    assert there.out[-1].startswith("there/lm: 3-gram, ")
    assert content("there") == content("here")
    missing = user.run(*arguments[:-2], "--vocabulary", "few", "-o", "no", "--scheduler", scheduler)
    assert missing.fault == user.run(*arguments[:-2], "--vocabulary", "few", "-o", "no").fault
    assert "words of the text are missing: " in missing.fault


def test_faults_of_a_text_have_their_line(user, monkeypatch, scheduler):
    monkeypatch.setattr(sentences, "PART_BYTES", 8)
    (user.root / "bad").write_bytes(b"AB C\n" * 9 + b"C \xe9\n" + b"AB\n")
    for place in ((), ("--scheduler", scheduler)):
        fault = user.run("lm", "estimate", "--text", "bad", "-o", "lm", *place).fault
        assert fault.startswith("bad:10: byte 0xe9 is not UTF-8; expected UTF-8 text")


def test_a_pipe_cannot_be_read_elsewhere(user):
    os.mkfifo("pipe")
    for place in (("-j", "2"), ("--scheduler", "tcp://127.0.0.1:1")):
        fault = user.run("lm", "estimate", "--text", "pipe", "-o", "lm", *place).fault
        assert fault == "pipe: a pipe or a device; expected a file, which other processes can read"


def test_scores(user, monkeypatch, scheduler):
    monkeypatch.setattr(error_counts, "SHARD_COST", 1)
    text = (user.root / "words.mlf").read_text()
    user.write("other.mlf", text.replace("AB", "C", 3).replace("\nCAB", "", 1))
    arguments = ("score", "words.mlf", "other.mlf", "-t", "--compare", "words.mlf")
    here = user.run(*arguments)
    there = user.run(*arguments, "--scheduler", scheduler)
    assert (there.out, there.err, there.status) == (here.out, here.err, here.status)
    fault = user.run("score", "train.mlf", "train.mlf", "--boundaries", "--scheduler", scheduler).fault
    assert fault == "command line: --scheduler is given beside --boundaries; expected it only when scoring words"


def test_imports(user, scheduler):
    (user.root / "audio/bad.wav").write_bytes((user.root / "audio/utt01.wav").read_bytes()[:3000])
    (user.root / "audio/none.flac").write_bytes(b"fLaC")
    outcomes = []
    for place in ((), ("--scheduler", scheduler)):
        shutil.rmtree("corpus", ignore_errors=True)
        outcomes.append((user.run("import", "folder", "audio", "--out", "corpus", *place), content("corpus")))
    (here, files), (there, others) = outcomes
    assert here.status == 1
    assert (there.out, there.err, there.status) == (here.out, here.err, here.status)
    assert others == files


def test_copies(user, scheduler):
    user.write("noises", "audio/utt00.wav\naudio/utt01.wav\n")
    user.write("audio.list", (user.root / "audio.list").read_text() + "audio/none.wav\n")
    arguments = ("augment", "audio.list", "--speed", "0.9", "--noise", "noises")
    here = user.run(*arguments, "--out", "here", "-j", "1")
    there = user.run(*arguments, "--out", "there", "--scheduler", scheduler)
    assert here.status == 1
    assert (there.out, there.status) == (here.out, here.status)
    found, expected = content("there"), content("here")
    assert {path for path in found if path.suffix == ".flac"} == {path for path in expected if path.suffix == ".flac"}
    assert found.keys() == expected.keys()
    for path, data in expected.items():
        assert found[path].replace(b"there/", b"here/") == data, path
