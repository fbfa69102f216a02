"""`argon` takes search options from the graph that carries them, says so, and prefers those of the command line."""

from pathlib import Path

import pytest

from decoder.graph import load_defaults
from tests.recipes.systems.small_system import DECODE

GRAPH = "graph/graph.dg"
WARNING = (
    f"warning: no -acweight, and {GRAPH} has no default for it; 0.0667 is used, which may be far from the best value"
)
PLAIN = [word for word in DECODE if word not in ("-acweight", "0.5")]
FILES = ("-infiles", "test.scp", "-outmlf", "hyp.mlf")
TUNED = "-acweight 0.5, -beam 20, --lm-scale 2"


def store(user, *options):
    return user.run("argon", "-graph", GRAPH, *options, "--save-defaults")


def notes(outcome) -> list[str]:
    return [line for line in outcome.err if "-acweight" in line or "defaults" in line]


def test_the_graph_carries_what_the_command_line_does_not_say(user):
    expected = user.decode("-beam", 20, "--lm-scale", 2)
    assert notes(expected) == []
    hypotheses = Path("hyp.mlf").read_bytes()
    outcome = store(user, "-am", "model/net", "-lm", "lm.arpa", "-acweight", 0.5, "-beam", 20, "--lm-scale", 2)
    assert (outcome.status, outcome.changed) == (0, {GRAPH})
    assert outcome.out == [f"{GRAPH}: defaults {TUNED} (tuned with net and lm.arpa)"]
    outcome = user.run("argon", *PLAIN, *FILES)
    assert notes(outcome) == [f"{GRAPH}: defaults {TUNED} (tuned with net and lm.arpa)"]
    assert Path("hyp.mlf").read_bytes() == hypotheses
    outcome = user.run("argon", *PLAIN, *FILES, "-acweight", 0.3, "-beam", 10, "--lm-scale", 1)
    assert notes(outcome) == []
    assert "-beam 20, --lm-scale 2" in notes(user.decode())[0]


def test_streams_and_lattices_take_them_too(user):
    store(user, "-acweight", 0.5, "--lm-scale", 2)
    note = f"{GRAPH}: defaults -acweight 0.5, --lm-scale 2"
    stream = ("--features", "hcopy.config", "--stream", "audio/utt24.wav")
    assert notes(user.run("argon", *PLAIN, *stream)) == [note]
    assert notes(user.run("argon", *PLAIN, *FILES, "-lattice-prefix", "lat/utt")) == [note]
    assert "lmscale=2" in Path("lat/utt1.lat").read_text()


def test_alignment_keeps_its_own_defaults(user):
    align = ("-graph", GRAPH, "-am", "model/net", "-cntkmap", "graph/cntkmap", "--dict", "dict", *FILES)
    plain = user.run("argon", *align, "-alignmlf", "words.mlf")
    assert notes(plain) == []
    aligned = Path("hyp.mlf").read_bytes()
    store(user, "-acweight", 0.001, "-sil-cost", 50)
    assert notes(user.run("argon", *align, "-alignmlf", "words.mlf")) == []
    assert Path("hyp.mlf").read_bytes() == aligned


def test_a_weight_that_nobody_chose_is_noted(user):
    assert notes(user.run("argon", *PLAIN, *FILES)) == [WARNING]
    store(user, "-beam", 20)
    assert WARNING in notes(user.run("argon", *PLAIN, *FILES))


def test_another_model_than_the_one_of_the_tuning_is_noted(user):
    store(user, "-am", "elsewhere/other.dnn", "-lm", "lm.arpa", "-acweight", 0.5)
    outcome = user.run("argon", *PLAIN, *FILES)
    assert notes(outcome) == [
        f"{GRAPH}: defaults -acweight 0.5 (tuned with other.dnn and lm.arpa); here with -am model/net"
    ]


def test_removing_them(user):
    before = (user.root / GRAPH).read_bytes()
    store(user, "-acweight", 0.5)
    assert "acweight 0.5" in " ".join(user.run("info", GRAPH).out)
    assert store(user).out == [f"{GRAPH}: no defaults"]
    assert (user.root / GRAPH).read_bytes() == before


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("-acweight", -1), "command line: -acweight is -1; expected at least 0"),
        (
            ("-infiles", "test.scp"),
            "command line: -infiles is given with --save-defaults; expected only search options, -am and",
        ),
        (("--no-partial",), "command line: --no-partial is given with --save-defaults; expected only search"),
    ],
)
def test_refused(user, options, fault):
    outcome = store(user, *options)
    assert outcome.fault.startswith(fault)
    assert load_defaults(GRAPH).options == {}


def test_a_value_out_of_range_in_the_graph(user):
    from decoder.graph import GraphDefaults, save_defaults

    save_defaults(GRAPH, GraphDefaults({"acweight": -1.0}))
    fault = user.run("argon", *PLAIN, *FILES).fault
    assert fault.startswith(f"{GRAPH}: defaults: acweight is -1; expected at least 0")
