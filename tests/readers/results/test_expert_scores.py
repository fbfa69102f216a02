"""Scores of experts: the two forms of the files, and their faults."""

import json

import pytest

from readers.errors import FormatError
from readers.results.expert_scores import SentenceScores, WordScores, read_expert_scores

WE = {"text": "WE", "accuracy": 10, "phones": ["W", "IY0"], "phones-accuracy": [2.0, 1.8]}
ENTRY = {"text": "WE", "accuracy": 8, "fluency": 9, "words": [WE | {"stress": 10}]}


def test_an_object_of_utterances_is_read(tmp_path):
    path = tmp_path / "scores.json"
    path.write_text(json.dumps({"one": ENTRY, "two": ENTRY | {"accuracy": 3.5}}, indent=4))
    words = (WordScores("WE", 10.0, ("W", "IY0"), (2.0, 1.8)),)
    scores = read_expert_scores(path)
    assert scores == {
        "one": SentenceScores(8.0, words, f"{path}:2"),
        "two": SentenceScores(3.5, words, scores["two"].where),
    }
    line = int(scores["two"].where.rpartition(":")[2])
    assert path.read_text().splitlines()[line - 1].strip() == '"two": {'


def test_lines_with_the_scores_of_each_expert_are_read_as_their_means(tmp_path):
    path = tmp_path / "scores.jsonl"
    entry = {"utterance": "one", "accuracy": [9, 8], "words": [WE | {"accuracy": [10.0, 7.0, 7.0], "phones": None}]}
    path.write_text(f"{json.dumps(entry)}\n\n")
    assert read_expert_scores(path) == {"one": SentenceScores(8.5, (WordScores("WE", 8.0),), f"{path}:1")}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"accuracy": 11}, ":2: accuracy 11; expected numbers from 0 to 10"),
        ({"accuracy": []}, ":2: accuracy []; expected numbers"),
        ({"accuracy": True}, ":2: accuracy True; expected numbers"),
        ({"accuracy": [1, "a"]}, "expected numbers from 0 to 10"),
        ({"words": []}, ":2: words []; expected a list of objects"),
        ({"words": ["WE"]}, ":2: text of a word is 'None'; expected the word"),
        ({"words": [WE | {"text": " "}]}, ":2: text of a word is ' '; expected the word"),
        ({"words": [WE | {"phones": "W IY0"}]}, ":2: WE: phones W IY0; expected a list of phones, or null"),
        ({"words": [WE | {"phones-accuracy": [2]}]}, ":2: WE: phones-accuracy [2]; expected 2 numbers"),
        ({"words": [WE | {"phones-accuracy": [2, 3]}]}, ":2: WE: phones-accuracy 3; expected numbers from 0 to 2"),
        ({"utterance": ""}, ":2: utterance ''; expected a name"),
        ({"utterance": "zero"}, ":2: zero again; expected each utterance once, it is in "),
    ],
)
def test_faults_are_told_with_file_and_line(tmp_path, change, message):
    path = tmp_path / "scores.jsonl"
    lines = [ENTRY | {"utterance": "zero"}, ENTRY | {"utterance": "one"} | change]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    with pytest.raises(FormatError) as fault:
        read_expert_scores(path)
    assert str(fault.value).startswith(f"{path}:2: ")
    assert message in str(fault.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{\n "one": {,}\n}', ":2: Expecting property name enclosed in double quotes; expected a JSON object"),
        ("[1]", ":1: '[1]'; expected a JSON object of utterances"),
        ("{}", ": no scores; expected at least those of one utterance"),
        ('{"one": 3}', ":1: words None; expected a list of objects"),
        (
            '{"utterance": "one", "accuracy": 1, "words": [{"text": "A", "accuracy": 1}]}\nno JSON',
            ":2: Expecting value",
        ),
    ],
)
def test_a_file_of_another_form_is_refused(tmp_path, text, message):
    path = tmp_path / "scores.json"
    path.write_text(text)
    with pytest.raises(FormatError) as fault:
        read_expert_scores(path)
    assert f"{path}{message}" in str(fault.value)


@pytest.mark.parametrize("text", ['{"a": ' + "9" * 5000 + "}", "[" * 100_000])
def test_what_python_refuses_to_parse_is_a_fault_of_the_file(text, tmp_path):
    (tmp_path / "scores.json").write_text(text)
    with pytest.raises(FormatError, match=r"scores.json:1: .*; expected a JSON object of utterances"):
        read_expert_scores(tmp_path / "scores.json")
