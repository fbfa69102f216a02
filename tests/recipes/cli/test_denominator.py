"""`argonaut denominator`: lattices of the small system; stopped and resumed, in threads and on a cluster; faults."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from decoder.sequence_training.lattices.job import ARCHIVE, CONTENTS, REPORT
from decoder.sequence_training.lattices.maker import LatticeMaker
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.parameter_file import read_htk_header
from readers.results.indexed_archive import ArchiveWriter
from readers.sources.lattices.lattice_archive import LatticeArchive, check
from readers.sources.lattices.lattice_contents import read_contents
from recipes.file_kinds import describe_file

COMMON = ("--model", "model/net", "--graph", "graph/graph.dg", "--lm", "lm.arpa", "--dict", "dict", "--acweight", "0.5")
TEST = (*COMMON, "--features", "test.scp", "--words", "words.mlf", "--out", "den")
TRAIN = (*COMMON, "--features", "train.scp", "--words", "spoken.mlf", "--out", "den", "-j", "1")


@pytest.fixture
def talker(user):
    """The user, who has an MLF of the words of the training set."""
    lines = (user.root / "text").read_text().splitlines()
    entries = ((f"*/utt{i:02}.lab", [Label(None, None, word) for word in line.split()]) for i, line in enumerate(lines))
    write_mlf("spoken.mlf", entries)
    return user


def test_lattices_of_a_list(user):
    outcome = user.run("denominator", *TEST, "-j", "1")
    assert outcome.status == 0, outcome.err
    assert {path.name for path in Path("den").iterdir()} == {ARCHIVE, CONTENTS, REPORT}
    archive = LatticeArchive(f"den/{ARCHIVE}")
    assert archive.num_senones == 8
    assert archive.senones == {name: i for i, name in enumerate(Path("states.list").read_text().split())}
    assert [phone for phone, quiet in zip(archive.phones, archive.silence) if quiet] == ["sil"]
    assert sorted(archive.phones) == ["a", "b", "c", "sil"]
    words = read_mlf("words.mlf")
    frames = arc_frames = 0
    for name in archive.names:
        lattice, spoken = archive.lattice(name), words[name.removeprefix("feat/")]
        check(lattice, 8)
        assert lattice.num_frames == read_htk_header(f"{name}.fb").num_frames
        assert lattice.num_reference_words == len(spoken)
        assert lattice.starts_word.sum() >= len(spoken)
        spelt = "".join(archive.phones[p] for p in runs(lattice.reference_phones))
        assert spelt.replace("sil", "") == squeezed(
            "".join(label.name.lower() for label in words[name.removeprefix("feat/")])
        )
        frames, arc_frames = frames + lattice.num_frames, arc_frames + int(lattice.num_arc_frames.sum())
    line = outcome.out[-1]
    assert line.startswith(f"utterances: 6 done, 0 skipped, 0 failed; frames {frames}; {arc_frames / frames:.1f} arcs ")
    assert "; oracle WER 0.0%; reference added to " in line
    kind, figures = describe_file(f"den/{ARCHIVE}")
    assert kind == "archive of lattices"
    assert dict(figures)["frames"] == f"{frames}"
    assert dict(figures)["phones"] == "4, of which sil silence"
    kind, figures = describe_file(f"den/{CONTENTS}")
    assert kind == "table of contents of lattices"
    assert dict(figures) == {"utterances": "6", "archives": f"den/{ARCHIVE}", "first": "feat/utt24"}
    contents = read_contents(f"den/{CONTENTS}")
    assert [(name, one.position) for name, one in contents.items()] == [
        (name, archive.place(name)) for name in archive.names
    ]
    assert {one.path for one in contents.values()} == {f"den/{ARCHIVE}"}


def runs(values):
    return values[np.append(True, values[1:] != values[:-1])].tolist()


def squeezed(text):
    """Equal letters in a row become one, since two instances of a phone are one run."""
    return "".join(letter for i, letter in enumerate(text) if i == 0 or text[i - 1] != letter)


@pytest.mark.slow
def test_a_narrow_beam_and_density_make_thin_lattices_with_the_reference(user):
    wide = user.run("denominator", *TEST, "--lattice-beam", "200", "--beam", "300", "-j", "1")
    assert wide.status == 0, wide.err
    arcs = [LatticeArchive(f"den/{ARCHIVE}").figures(f"feat/utt{i}")["arc_frames"] for i in range(24, 30)]
    thin = user.run("denominator", *TEST, "--lattice-beam", "200", "--beam", "300", "-j", "1", "--density", "1.5")
    assert thin.status == 0, thin.err
    archive = LatticeArchive(f"den/{ARCHIVE}")
    for name, before in zip(archive.names, arcs, strict=True):
        found = archive.figures(name)
        assert found["frames"] <= found["arc_frames"] <= 2.5 * found["frames"] + 1
        assert found["arc_frames"] < before


def test_lattices_without_limits(user):
    outcome = user.run("denominator", *TEST, "-j", "1", "--beam", "inf", "--density", "inf", "--lattice-beam", "3")
    assert outcome.status == 0, outcome.err


def test_states_of_a_given_alignment(talker):
    outcome = talker.run("denominator", *TRAIN, "--alignment", "train.mlf")
    assert outcome.status == 0, outcome.err
    archive, labels = LatticeArchive(f"den/{ARCHIVE}"), read_mlf("train.mlf")
    states = Path("states.list").read_text().split()
    assert len(archive.names) == 24
    for name in archive.names:
        lattice = archive.lattice(name)
        expected = [
            states.index(label.name)
            for label in labels[name.removeprefix("feat/")]
            for _ in range(label.start, label.end, 100_000)
        ]
        assert lattice.reference_senones.tolist() == expected
    without = [part for part in TRAIN if part not in ("--dict", "dict")]
    before = Path(f"den/{ARCHIVE}").read_bytes()
    assert talker.run("denominator", *without, "--alignment", "train.mlf").status == 0
    same = LatticeArchive(f"den/{ARCHIVE}")
    assert len(before) > 0
    assert (same.lattice("feat/utt00").reference_senones == archive.lattice("feat/utt00").reference_senones).all()


def test_threads_give_the_same_bits(talker):
    assert talker.run("denominator", *TRAIN).status == 0
    one = Path(f"den/{ARCHIVE}").read_bytes()
    assert talker.run("denominator", *TRAIN[:-2], "-j", "3").status == 0
    assert Path(f"den/{ARCHIVE}").read_bytes() == one


def test_an_interrupted_run_goes_on(user, monkeypatch):
    assert user.run("denominator", *TEST, "-j", "1").status == 0
    whole = {path.name: path.read_bytes() for path in Path("den").iterdir()}
    make, calls = LatticeMaker.make, []

    def stopping(self, name, *arguments):
        calls.append(name)
        if name == "feat/utt27":
            raise KeyboardInterrupt
        return make(self, name, *arguments)

    monkeypatch.setattr(LatticeMaker, "make", stopping)
    outcome = user.run("denominator", *TEST[:-1], "other", "-j", "1")
    assert outcome.status == 130
    assert outcome.err[-1] == (
        f"interrupted: 3 of 6 utterances are done, and kept in other/{ARCHIVE}.part; run it again to go on"
    )
    assert [path.name for path in Path("other").iterdir()] == [f"{ARCHIVE}.part"]
    monkeypatch.setattr(LatticeMaker, "make", lambda self, name, *rest: calls.append(name) or make(self, name, *rest))
    calls.clear()
    again = user.run("denominator", *TEST[:-1], "other", "-j", "1")
    assert again.status == 0
    assert again.out[0] == "3 of 6 utterances are done; going on"
    assert calls == ["feat/utt27", "feat/utt28", "feat/utt29"]
    assert {path.name: path.read_bytes() for path in Path("other").iterdir()} == whole


def test_a_complete_run_is_not_repeated(user, monkeypatch):
    first = user.run("denominator", *TEST, "-j", "1")

    def never(*arguments):
        raise AssertionError

    monkeypatch.setattr(LatticeMaker, "make", never)
    again = user.run("denominator", *TEST, "-j", "1")
    assert (again.status, again.changed) == (0, set())
    assert again.out == ["6 of 6 utterances are done", *first.out]
    user.write("test.scp", "\n".join(reversed(Path("test.scp").read_text().split())))
    with pytest.raises(AssertionError):
        user.run("denominator", *TEST, "-j", "1")


def test_other_settings_begin_again(user, monkeypatch):
    def stopping(self, name, *arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as changed:
        changed.setattr(LatticeMaker, "make", stopping)
        assert user.run("denominator", *TEST, "-j", "1").status == 130
        assert Path(f"den/{ARCHIVE}.part").exists()
    outcome = user.run("denominator", *TEST, "-j", "1", "--density", "7")
    assert outcome.status == 0
    assert len(outcome.out) == 1


def test_another_model_begins_again(user, monkeypatch):
    make = LatticeMaker.make

    def stopping(self, name, *arguments):
        if name == "feat/utt26":
            raise KeyboardInterrupt
        return make(self, name, *arguments)

    with monkeypatch.context() as changed:
        changed.setattr(LatticeMaker, "make", stopping)
        assert user.run("denominator", *TEST, "-j", "1").status == 130
    dictionary = Path("dict").read_text()
    user.write("dict", dictionary + "CC c c\n")
    assert len(user.run("denominator", *TEST, "-j", "1").out) == 1


KILLED = """
import os, signal, sys
from decoder.sequence_training.lattices.maker import LatticeMaker
from recipes.cli.main import main
make = LatticeMaker.make
def killing(self, name, *arguments):
    if name == "feat/utt27":
        os.kill(os.getpid(), signal.SIGKILL)
    return make(self, name, *arguments)
LatticeMaker.make = killing
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL")
def test_a_killed_run_goes_on(user):
    assert user.run("denominator", *TEST, "-j", "1").status == 0
    whole = {path.name: path.read_bytes() for path in Path("den").iterdir()}
    command = [sys.executable, "-c", KILLED, "denominator", *TEST[:-1], "other", "-j", "1"]
    ended = subprocess.run(command, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    assert ended.returncode == -signal.SIGKILL
    assert not Path(f"other/{ARCHIVE}").exists()
    assert user.run("denominator", *TEST[:-1], "other", "-j", "1").out[0] == "3 of 6 utterances are done; going on"
    assert {path.name: path.read_bytes() for path in Path("other").iterdir()} == whole


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits(user, monkeypatch):
    distributed = pytest.importorskip("distributed")
    assert user.run("denominator", *TEST, "-j", "1").status == 0
    one = Path(f"den/{ARCHIVE}").read_bytes()
    monkeypatch.setattr("readers.common.jobs.durations.LEAST_SECONDS", 0.01)
    with distributed.LocalCluster(1, processes=False, threads_per_worker=1, dashboard_address=None) as cluster:
        outcome = user.run("denominator", *TEST[:-1], "there", "--scheduler", cluster.scheduler_address)
    assert outcome.status == 0, outcome.err
    assert Path(f"there/{ARCHIVE}").read_bytes() == one


def test_lost_utterances_are_named(user):
    text = Path("words.mlf").read_text().replace("utt25.lab", "else.lab")
    place = text.index("utt26.lab") + len('utt26.lab"\n')
    user.write("words.mlf", text[:place] + "XYZ\n" + text[place:])
    Path("feat/utt28.fb").unlink()
    user.write("test.scp", Path("test.scp").read_text() + "feat/utt24.fb\n")
    outcome = user.run("denominator", *TEST, "-j", "1")
    assert outcome.status == 1
    report = Path(f"den/{REPORT}").read_text().replace(f"{Path.cwd()}/", "")
    assert report.startswith("# utterances: 3 done, 0 skipped, 4 failed\n")
    assert "feat/utt25\tfailed\twords.mlf: no labels; expected an entry */utt25.lab" in report.replace(
        f"{Path.cwd()}/", ""
    )
    assert "feat/utt26\tfailed\ttranscript: words not in the dictionary: XYZ" in report
    assert "feat/utt28\tfailed\tfeat/utt28.fb: No such file" in report
    assert "feat/utt24\tfailed\ttest.scp:7: same name as at test.scp:1" in report
    assert LatticeArchive(f"den/{ARCHIVE}").names == ["feat/utt24", "feat/utt27", "feat/utt29"]


def test_if_nothing_could_be_done_an_archive_stays(user):
    assert user.run("denominator", *TEST, "-j", "1").status == 0
    before = Path(f"den/{ARCHIVE}").read_bytes()
    user.write("words.mlf", Path("words.mlf").read_text().replace("utt", "other"))
    outcome = user.run("denominator", *TEST, "-j", "1")
    assert outcome.status == 2
    assert "none of 6 utterances could be done" in outcome.err[-1]
    assert Path(f"den/{ARCHIVE}").read_bytes() == before
    assert not Path(f"den/{ARCHIVE}.part").exists()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("-j", "0"), "command line: --workers is 0; expected at least 1"),
        (
            ("-j", "1", "--scheduler", "tcp://x"),
            "command line: --workers is given with --scheduler",
        ),
        (("--density", "0.5"), "--density is 0.5; expected at least 1"),
        (("--lattice-beam", "-1"), "--lattice-beam is -1; expected at least 0"),
        (("--words", "none.mlf"), "none.mlf: No such file or directory"),
        (("--out", "text"), "cannot be written: text is not a directory; expected one"),
        (("--cntkmap", "none"), "none: No such file or directory"),
    ],
)
def test_faults_of_the_command_line(user, options, fault):
    assert fault in user.run("denominator", *TEST, *options).fault


def test_a_beam_that_limits_the_lattices_is_told(user):
    outcome = user.run("denominator", *TEST, "-j", "1", "--lattice-beam", "20", "--beam", "15")
    told = [line for line in outcome.err if not line.startswith(("compiling ", "compiled "))]  # of the first run only
    assert told[-1] == "note: beam 15 is below lattice beam 20 and limits the lattices"


def test_a_full_disk_is_one_line(user, monkeypatch):
    def write(self, content):
        raise OSError(28, "No space left on device")

    archive = Path.cwd() / "den" / f"{ARCHIVE}.part"
    add = ArchiveWriter.add

    def filling(self, name, *arguments):
        if name == "feat/utt26":
            self._file = SimpleNamespace(write=lambda content: write(self, content), tell=self._file.tell)
        add(self, name, *arguments)

    with monkeypatch.context() as changed:
        changed.setattr(ArchiveWriter, "add", filling)
        outcome = user.run("denominator", *TEST, "-j", "1")
    assert outcome.status == 2
    assert outcome.err[-1] == f"error: den/{ARCHIVE}.part: cannot be written (No space left on device)"
    assert archive.exists()
    assert user.run("denominator", *TEST, "-j", "1").out[0] == "2 of 6 utterances are done; going on"


def test_states_without_an_output_are_refused(talker):
    text = Path("train.mlf").read_text()
    first = text.index("utt03.lab")
    talker.write("train.mlf", text[:first] + text[first:].replace("a_s2", "zz_s2", 1))
    outcome = talker.run("denominator", *TRAIN, "--alignment", "train.mlf")
    assert outcome.status == 1
    assert "states zz_s2 are not in the graph; expected its states" in Path(f"den/{REPORT}").read_text()


def test_an_empty_list(user):
    user.write("empty.scp", "")
    assert "empty.scp: no entries" in user.run("denominator", *TEST, "--features", "empty.scp").fault
