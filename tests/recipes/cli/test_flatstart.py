"""`argonaut flatstart`: from features, words and a dictionary to models, an alignment and tied triphones; faults."""

import json
from pathlib import Path

import numpy as np
import pytest

from decoder.gaussians import GaussianModels
from decoder.gaussians.job import RESULTS
from readers.htk.frame_labels import read_state_list
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.parameter_file import read_htk
from readers.htk.scp import read_scp
from readers.tables.hmm_tables import read_transitions
from tests.recipes.cli.test_tie import QUESTIONS

FLAT = ("--features", "train.scp", "--words", "spoken.mlf", "--dict", "dict", "-j", "2")
SMALL = ("--gaussians", "24", "--first-passes", "6", "--passes", "2")


@pytest.fixture
def talker(user):
    """The user, who has an MLF of the words of the training set."""
    lines = (user.root / "text").read_text().splitlines()
    entries = ((f"*/utt{i:02}.lab", [Label(None, None, word) for word in line.split()]) for i, line in enumerate(lines))
    write_mlf("spoken.mlf", entries)
    return user


def test_results_go_into_tie(talker):
    outcome = talker.run("flatstart", *FLAT, *SMALL, "--out", "flat")
    assert outcome.status == 0, outcome.err
    assert {path.name for path in Path("flat").iterdir()} == {*RESULTS}
    rows = [json.loads(line) for line in Path("flat/passes.jsonl").read_text().splitlines()]
    assert [row["gaussians"] for row in rows] == 6 * [12] + 2 * [24]
    assert (
        outcome.out[0] == f"pass 1 of 8: baum-welch, 12 Gaussians, {rows[0]['log_likelihood_per_frame']:.4f} per frame"
    )
    last = f"{rows[-1]['log_likelihood_per_frame']:.2f}"
    assert outcome.out[-2:] == [
        "utterances: 24 done, 0 skipped, 0 failed",
        f"flat start: 4 phones, 24 Gaussians, {last} per frame; next: argonaut tie --alignment flat/states.mlf "
        "--state-list flat/states.list --features train.scp --out DIR",
    ]
    states = read_state_list("flat/states.list")
    assert states == [f"{phone}_s{i}" for phone in ("a", "b", "c", "sil") for i in (2, 3, 4)]
    assert list(read_transitions("flat/transitions")) == states
    models = GaussianModels.load("flat/hmmdefs", "flat/states.list")
    entry = read_scp("train.scp")[0]
    scores = models.log_likelihoods(read_htk(entry.path, entry.start or 0, entry.end).frames)
    assert scores.shape[0] == 12
    assert np.isfinite(scores).all()
    labels = read_mlf("flat/states.mlf").lookup(entry.key)
    assert labels[-1].end == 100_000 * scores.shape[1]
    talker.write("questions.hed", QUESTIONS)
    tied = talker.run(
        "tie", "--alignment", "flat/states.mlf", "--state-list", "flat/states.list", "--features", "train.scp",
        "--questions", "questions.hed", "--threshold", "50", "--min-frames", "20", "--out", "hmms",
    )  # fmt: skip
    assert tied.status == 0, tied.err
    assert tied.out[-1].startswith("tied: ")


def test_another_run_goes_on_and_lost_utterances_are_named(talker):
    assert talker.run("flatstart", *FLAT, *SMALL, "--out", "flat").status == 0
    models, alignment = (Path(f"flat/{name}").read_text() for name in ("hmmdefs", "states.mlf"))
    outcome = talker.run("flatstart", *FLAT, *SMALL, "--out", "flat")
    assert outcome.out[0] == "8 of 8 passes are done; going on"
    assert (Path("flat/hmmdefs").read_text(), Path("flat/states.mlf").read_text()) == (models, alignment)
    lines = Path("spoken.mlf").read_text().replace("utt03.lab", "other.lab").replace("CAB", "ABC", 1)
    talker.write("changed.mlf", lines)
    changed = (*FLAT[:3], "changed.mlf", *FLAT[4:])
    outcome = talker.run("flatstart", *changed, *SMALL, "--out", "flat")
    assert outcome.status == 1
    assert "transcripts and features changed since; starting again" in outcome.out[0]
    report = Path("flat/report").read_text()
    assert "utt03\tfailed\tchanged.mlf: no transcript; expected an entry */utt03.lab" in report
    assert "transcript: words not in the dictionary: ABC; expected words of the dictionary" in report


def test_a_first_utterance_without_features_stops_nothing(talker):
    _, *others = Path("train.scp").read_text().splitlines()
    talker.write("train.scp", "\n".join(["lost.mfc", *others]) + "\n")
    talker.replace("spoken.mlf", "utt00.lab", "lost.lab")
    outcome = talker.run("flatstart", *FLAT, *SMALL, "--out", "flat")
    assert outcome.status == 1
    assert "lost\tfailed\t" in Path("flat/report").read_text()
    assert outcome.out[-2] == "utterances: 23 done, 0 skipped, 1 failed"


def test_utterances_of_one_name_in_several_directories_stay_apart(talker):
    """Their entries keep the directories; the other ones match in any directory."""
    lines, text = [], Path("spoken.mlf").read_text()
    for number, entry in enumerate(read_scp("train.scp")):
        name = f"{'pq'[number % 2]}/{number // 2}" if number < 4 else f"/data/{number}"
        lines.append(f"{name}.mfc={entry.path}" + (f"[{entry.start},{entry.end}]" if entry.start is not None else ""))
        text = text.replace(f'"*/{Path(entry.key).name}.lab"', f'"*/{name.lstrip("/")}.lab"')
    talker.write("named.scp", "\n".join(lines) + "\n")
    talker.write("named.mlf", text)
    named = ("--features", "named.scp", "--words", "named.mlf", *FLAT[4:])
    assert talker.run("flatstart", *named, *SMALL, "--out", "flat").status == 0
    tied = talker.run(
        "tie", "--alignment", "flat/states.mlf", "--state-list", "flat/states.list", "--features", "named.scp",
        "--threshold", "50", "--min-frames", "20", "--out", "tied",
    )  # fmt: skip
    assert tied.status == 0, tied.err
    for file in ("flat/states.mlf", "tied/states.mlf"):
        entries = [line for line in Path(file).read_text().splitlines() if line.startswith('"')]
        assert entries[:5] == ['"*/p/0.lab"', '"*/q/0.lab"', '"*/p/1.lab"', '"*/q/1.lab"', '"*/4.lab"']
        assert len(entries) == 24


def test_short_pauses_in_the_dictionary_are_noticed(talker):
    lines = Path("dict").read_text().splitlines()
    talker.write("dict", "".join(f"{line} sp\n" if line.startswith("C ") else f"{line}\n" for line in lines))
    outcome = talker.run("flatstart", *FLAT, "--gaussians", "1", "--first-passes", "1", "--out", "flat")
    assert outcome.err[0].startswith("note: 'sp' in the dictionary is trained as a phone of at least three frames; ")


def test_phones_that_are_never_chosen_are_named(talker):
    talker.replace("dict", "C ", "C 0.5 ")
    talker.write("dict", Path("dict").read_text() + "C 1e-300 d\n")
    outcome = talker.run("flatstart", *FLAT, *SMALL, "--out", "flat")
    assert outcome.status == 0
    assert outcome.err[-1] == "note: no frames of d in the alignment"
    assert Path("flat/report").read_text().splitlines()[1] == "# phones without frames in the alignment: d"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gaussians", "0"), "command line: --gaussians is 0; expected 1 to 1000000"),
        (("-j", "0"), "command line: --workers is 0; expected at least 1"),
        (("--scheduler", "x"), "command line: --workers is given with --scheduler; expected only one of them"),
        (("--words", "none.mlf"), "none.mlf: No such file or directory"),
    ],
)
def test_faults_are_one_line(talker, arguments, message):
    outcome = talker.run("flatstart", *FLAT, *arguments, "--out", "flat")
    assert outcome.status == 2
    assert outcome.err == [f"error: {message}"]
    assert not Path("flat/hmmdefs").exists()
