"""What a user may break between model, graph, language model and search: one clear line, nothing half-written."""

import pickle
import re
import struct

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import save, save_file

from readers.htk.mlf import read_mlf, write_mlf
from tests.recipes.systems.small_system import FIRST_OF_TEST, GRAPH, NUM_TEST, line_of, loss, put_frames


def test_unreadable_line_of_a_language_model(user):
    place = line_of(user, "lm.arpa", "<s> AB")
    number = (user.root / "lm.arpa").read_text().splitlines()[int(place.split(":")[1]) - 1].split()[0]
    user.replace("lm.arpa", f"{number}\t<s> AB", "-0.5x\t<s> AB")
    message = f"{place}: '-0.5x' in '-0.5x <s> AB'; expected a number"
    assert user.decode().fault == message
    assert user.run("graph", *GRAPH, "--out", "new").fault == message
    assert user.run("lm", "perplexity", "--lm", "lm.arpa", "--text", "text").fault == message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[sil_s3] 7",
            "[sil_s3] 70",
            "model/net: 8 outputs, but state [sil_s3] of graph/graph.dg has index 70; expected at least 71 outputs, "
            "as in the model that the map was made for",
        ),
        (
            "[sil_s3] 7\n",
            "",
            "graph/graph.dg: state [sil_s3] has no index in graph/cntkmap; expected a line `[state] index` for each",
        ),
        (
            "[sil_s3]",
            "[zz_s2] 3\n[sil_s3]",
            "graph/cntkmap: state [zz_s2] not in graph/graph.dg; expected states of its model set",
        ),
        ("[a_s2]", "a_s2", "graph/cntkmap:1: 'a_s2 0'; expected [state] index, counted from 0"),
    ],
)
def test_graph_and_model_that_do_not_match(user, old, new, message):
    user.replace("graph/cntkmap", old, new)
    assert user.decode().fault == message


def test_graph_and_language_model_that_do_not_match(user):
    user.replace("lm.arpa", "CAB", "TAXI")
    assert re.match(r"graph/graph\.dg: 1 word not in the language model: CAB; expected", user.decode().fault)
    fault = user.run("graph", *GRAPH, "--out", "new").fault
    assert fault.startswith("states.list + dict + lm.arpa: dictionary: 1 word not in the language model: CAB; ")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (pickle.dumps({"weights": [1.0] * 99}), r"header of \d+ bytes; expected a model"),
        (b"x", r"header of \d+ bytes; expected a model"),
        (save({"W": np.zeros(3)}), "no 'argonaut' metadata; expected a model or checkpoint of Argonaut"),
        ("model/net.ckp", "format 'argonaut-checkpoint'; expected 'argonaut-network'"),
        ("model/net", r"\d+ bytes of tensors instead of \d+; expected a model"),
    ],
)
def test_a_model_file_that_is_none(user, content, message):
    if isinstance(content, str):
        content = (user.root / content).read_bytes()[: -1 if content == "model/net" else None]
    user.write("model/net", content)
    for outcome in (user.decode(), user.run("cntk", "configFile=net.cntk", "command=Write")):
        assert re.match(f"model/net: {message}", outcome.fault)


# --- acceptors' images


def test_a_graph_that_was_cut_short(user):
    whole = (user.root / "graph/graph.dg").read_bytes()
    for length in range(8, len(whole), 97):
        user.write("graph/graph.dg", whole[:length])
        found = f"{length} bytes; expected {len(whole)}" if length >= 32 else f"{length} bytes; expected a compiled dec"
        fault = user.decode().fault
        assert fault.startswith(f"graph/graph.dg: {found}")
        assert "the file is damaged, compile it again with argonaut graph" in fault
    user.write("graph/graph.dg", whole[:8] + struct.pack("<I", 9) + whole[12:])
    expected = "graph/graph.dg: compiled decoding graph of version 9; expected 2; compile it again with argonaut graph"
    assert user.decode().fault.startswith(expected)


def test_a_graph_made_for_another_model(user):
    """Its own map names outputs that the model lacks; the model's map lacks its states."""
    user.write("other.list", "".join(f"other{k}\n" for k in range(4)) + (user.root / "states.list").read_text())
    assert user.run("graph", *GRAPH, "--state-list", "other.list", "--out", "other").status == 0
    fault = user.decode("-graph", "other/graph.dg", "-cntkmap", "other/cntkmap").fault
    assert fault == (
        "model/net: 8 outputs, but state [sil_s3] of other/graph.dg has index 11; expected at least 12 outputs, as in "
        "the model that the map was made for"
    )
    user.write("states", "".join(f"{model} {model}_s2 {model}_s3\n" for model in ("a", "b", "sil")))
    lines = (user.root / "dict").read_text().splitlines(keepends=True)
    user.write("small.dict", "".join(line for line in lines if "c" not in line))
    options = ("--states", "states", "--dict", "small.dict", "--transitions", "graph/transitions", "--out", "small")
    assert user.run("graph", *options, "--lm", "lm.arpa").status == 0
    assert user.decode("-graph", "small/graph.dg").fault == (
        "graph/cntkmap: state [c_s2] and 1 more not in small/graph.dg; expected states of its model set"
    )


# --- language models


def without_start(text: str) -> str:
    """The ARPA model without the n-grams of <s>."""
    parts = re.split(r"(\\\d-grams:\n)", text)
    head, sections = parts[0], [title + body for title, body in zip(parts[1::2], parts[2::2])]
    sections = ["".join(f"{line}\n" for line in one.splitlines() if "<s>" not in line) for one in sections]
    for order, section in enumerate(sections, 1):
        count = sum(line[:1] in "-0123456789" and bool(line) for line in section.splitlines())
        head = re.sub(rf"ngram {order}=\d+", f"ngram {order}={count}", head)
    return head + "".join(sections)


def test_a_language_model_without_a_start(user):
    note = "lm.arpa: no unigram <s>; sentences begin without history"
    user.write("lm.arpa", without_start((user.root / "lm.arpa").read_text()))
    user.write("lms", "lm.arpa 1\n")
    found = []
    for options in ((), ("-lm", "", "-lm-collection", "lms")):
        outcome = user.decode(*options)
        assert (outcome.status, outcome.err) == (0, [note])
        found.append(read_mlf("hyp.mlf"))
    assert note in user.run("graph", *GRAPH, "--out", "new").out
    user.replace("lm.arpa", "\\1-grams:\n", "\\1-grams:\n-99 <s>\n")
    user.replace("lm.arpa", "ngram 1=5", "ngram 1=6")
    outcome = user.decode()
    assert (outcome.status, outcome.err) == (0, [])
    assert [dict(words) for words in found] == 2 * [dict(read_mlf("hyp.mlf"))]
    assert user.run("graph", *GRAPH, "--out", "other").status == 0
    assert (user.root / "new/graph.dg").read_bytes() == (user.root / "other/graph.dg").read_bytes()


# --- scores and utterances


@pytest.mark.parametrize("tensor", ["W0", "B1", "Prior"])
def test_a_network_whose_scores_are_no_numbers(user, tensor):
    with safe_open("model/net", "numpy") as file:
        metadata, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    tensors[tensor].flat[0] = np.nan
    save_file(tensors, "model/net", metadata=metadata)
    transcripts = ("-lm", "", "-alignmlf", "words.mlf", "--dict", "dict")
    for outcome in (user.decode(), user.decode(*transcripts)):
        assert outcome.status == 2
        assert outcome.changed <= {"hyp.mlf.report"}
        assert outcome.err[-1:] == [
            f"error: test.scp: none of {NUM_TEST} utterances could be done; first error: feat/{FIRST_OF_TEST}.fb: "
            "scores: NaN or +inf in frame 0; expected log-likelihoods; all are listed in hyp.mlf.report"
        ]


def test_an_utterance_without_frames(user):
    name = f"feat/{FIRST_OF_TEST}.fb"
    user.write(name, struct.pack(">i", 0) + (user.root / name).read_bytes()[4:12])
    message = f"{name}: 0 frames in the header; expected at least 1"
    assert loss(user, user.decode(), "hyp.mlf.report") == message
    assert loss(user, user.decode("-lm", "", "-alignmlf", "words.mlf", "--dict", "dict"), "hyp.mlf.report") == message
    assert len(read_mlf("hyp.mlf")) == NUM_TEST - 1


def test_an_utterance_too_short_for_any_path(user):
    put_frames(f"feat/{FIRST_OF_TEST}.fb", lambda frames: frames[:, :1])
    assert loss(user, user.decode("--no-partial"), "hyp.mlf.report").startswith("no token reached a final state")
    outcome = user.decode("-lm", "", "-alignmlf", "words.mlf", "--dict", "dict")
    assert "1 frames; expected at least" in loss(user, outcome, "hyp.mlf.report")


def test_a_transcript_without_words(user):
    entries = dict(read_mlf("words.mlf"))
    entries[next(iter(entries))] = []
    write_mlf("some.mlf", [(f"*/{key.split('/')[-1]}.lab", labels) for key, labels in entries.items()])
    reason = loss(user, user.decode("-lm", "", "-alignmlf", "some.mlf", "--dict", "dict"), "hyp.mlf.report")
    assert reason == "some.mlf:2: transcript: no labels; expected at least one word or phone"
