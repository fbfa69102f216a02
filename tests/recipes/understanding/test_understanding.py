"""Slot tagging: a user's queries in every form, files for the reader, pictures, and the whole with a small network."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from readers.config.config import load_config
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.sources.sentences.lu_sequence_reader import LUSequenceReader
from recipes.cli.main import main
from recipes.understanding import queries
from recipes.understanding.corpus import read_corpus
from recipes.understanding.pictures import confusion_matrix, draw_confusions, draw_epochs
from recipes.understanding.run import CONFIG, NETWORKS, Recipe, UnderstandingOptions
from recipes.understanding.tables import known_words, query_file, read_queries, read_tags, sizes, write_tables

QUERIES = {
    "train": [
        [("from", "O"), ("new", "B-from.city"), ("york", "I-from.city")],
        [("to", "O"), ("boston", "B-to.city")],
        [("to", "O"), ("york", "B-to.city")],
    ],
    "dev": [[("from", "O"), ("boston", "B-from.city")]],
    "test": [[("via", "O"), ("denver", "B-via.city"), ("to", "O"), ("york", "B-to.city")], [("boston", "O")]],
}


def columns(path: Path, marked: bool) -> None:
    with path.open("w") as file:
        for query in QUERIES[path.name.split(".")[1]]:
            tokens = [("BOS", "O"), *query, ("EOS", "about_flights")] if marked else query
            file.write("".join(f"{word} pos {label}\n" for word, label in tokens) + ("" if marked else "\n"))


def tabs(path: Path) -> None:
    with path.open("w") as file:
        for query in QUERIES[path.name.split(".")[1]]:
            file.write("BOS " + " ".join(word for word, _ in query) + " EOS\tO ")
            file.write(" ".join(label for _, label in query) + " about_flights\n")


def parallel(directory: Path) -> None:
    directory.mkdir()
    part = QUERIES["dev" if directory.name == "valid" else directory.name]
    for name, column in (("seq.in", 0), ("seq.out", 1), ("label", None)):
        lines = ["about_flights" if column is None else " ".join(token[column] for token in query) for query in part]
        (directory / name).write_text("\n".join(lines) + "\n")


def ctf(path: Path) -> None:
    """CNTK's text format, with the intent in the first line of a query."""
    with path.open("w") as file:
        for number, query in enumerate(QUERIES[path.name.split(".")[1]]):
            for word, label in [("BOS", "O"), *query, ("EOS", "O")]:
                intent = "|S1 11:1 |# flight" if word == "BOS" else ""
                file.write(f"{number}\t|S0 178:1 |# {word}\t{intent}\t|S2 128:1 |# {label}\n")


NAMES = {
    "the CNTK book": "atis.{}.apos.pred.pos.head.IOB.simple",
    "others": "atis.fold0.{}.iob",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_names_of_published_copies(tmp_path, name):
    for part in QUERIES:
        columns(tmp_path / f"x.{part}", True)
        (tmp_path / f"x.{part}").rename(tmp_path / name.format(part))
    for other in (
        "input.txt",
        "output.txt",
        "inputmap.txt",
        "atis.train.pkl",
        "atis.test.pkl",
        "x.train.sparse",
        "x.test.sparse",
    ):
        (tmp_path / other).write_text("BOS\n")
    assert read_corpus(tmp_path) == QUERIES


def test_a_second_set_of_names_without_a_test_set_is_not_read(tmp_path):
    for part, name in (("train", "atis.train.iob"), ("test", "atis.test.iob"), ("dev", "atis-2.dev.iob")):
        columns(tmp_path / f"x.{part}", True)
        (tmp_path / f"x.{part}").rename(tmp_path / name)
    (tmp_path / "atis.train.iob").write_text("a O\n\n" * 20)
    (tmp_path / "atis-2.train.iob").write_text("b O\n")
    parts = read_corpus(tmp_path)
    assert (len(parts["train"]), len(parts["dev"]), parts["test"]) == (18, 2, QUERIES["test"])


def test_nists_names_of_the_sets(tmp_path):
    columns(tmp_path / "x.train", True)
    (tmp_path / "x.train").rename(tmp_path / "ATIS3.trn.iob")
    columns(tmp_path / "x.dev", True)
    (tmp_path / "x.dev").rename(tmp_path / "ATIS3.dev.iob")
    (tmp_path / "ATIS3.nov93.iob").write_text("new B-a\n")
    (tmp_path / "ATIS3.dec94.iob").write_text("old O\n")
    parts = read_corpus(tmp_path)
    assert parts == QUERIES | {"test": [[("old", "O")], [("new", "B-a")]]}


@pytest.mark.parametrize("form", ["columns", "marked columns", "tabs", "parallel", "ctf"])
def test_a_users_queries_in_every_form(tmp_path, form):
    for part in QUERIES:
        if form == "ctf":
            ctf(tmp_path / f"atis.{part}.ctf")
            continue
        if form == "parallel":
            parallel(tmp_path / ("valid" if part == "dev" else part))
        elif form == "tabs":
            tabs(tmp_path / f"atis.{part}.w-intent.iob")
        else:
            columns(tmp_path / f"atis.{part}.IOB", form == "marked columns")
    assert read_corpus(tmp_path) == QUERIES


def test_without_development_queries_some_of_the_training_are_taken(tmp_path):
    (tmp_path / "train.txt").write_text("".join(f"w{number} O\n\n" for number in range(1, 26)))
    (tmp_path / "test.txt").write_text("w O\n")
    parts = read_corpus(tmp_path)
    assert parts["dev"] == [[("w10", "O")], [("w20", "O")]]
    assert [query[0][0] for query in parts["train"]] == [f"w{n}" for n in range(1, 26) if n not in (10, 20)]
    assert parts["test"] == [[("w", "O")]]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, r"no train queries; expected a file with 'train' in its name, or train/seq\.in and"),
        ({"train": "a O\n"}, "no test queries"),
        ({"train": "a O\n", "test": "a O\n"}, "1 training queries; expected at least 10"),
        ({"x.train": "a O\n", "old.train": "a O\n", "test": "a O\n"}, r"old\.train, x\.train are all named as train"),
        ({"train": "a O\n", "x.train": "a O\n", "test": "a O\n", "x.test": "a O\n"}, r"train, x\.train are all named"),
        (
            {"train": "1 |W 3:1 |L 2:1\n", "test": "a O\n"},
            r"train:1: '1 \|W 3:1 \|L 2:1'; expected comments with word",
        ),
        ({"train": "a O\n" * 10, "last-nov93x": "a O\n", "anov93": "a O\n"}, "no test queries"),
        ({"train": "a city\n", "test": "a O\n"}, r"train:1: label 'city'; expected O, or B- or I- and a type"),
        ({"train": "a O\nb\n", "test": "a O\n"}, r"train:2: 'b' has one column"),
        ({"train": "\n", "test": "a O\n"}, "train: no query"),
        ({"train": "a b\tO O\nc\n", "test": "a O\n"}, r"train:2: 'c'; expected words, a tab"),
        ({"train": b"a\xff O\n", "test": "a O\n"}, r"train:1: byte 0xff is not UTF-8"),
    ],
)
def test_faults_of_a_users_queries(tmp_path, files, message):
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ArgonautError, match=message):
        read_corpus(tmp_path)


def test_files_of_the_reader(tmp_path):
    write_tables(tmp_path, QUERIES, few=2)
    assert (tmp_path / "input.txt").read_text().split() == ["BOS", "EOS", "<unk>", "to", "york"]
    assert (tmp_path / "output.txt").read_text().split() == [
        *("B-from.city", "B-to.city", "B-via.city", "I-from.city", "O"),
    ]
    expected = {"boston <unk>", "from <unk>", "new <unk>", "to to", "york york", "<unk> <unk>", "BOS BOS", "EOS EOS"}
    assert set((tmp_path / "inputmap.txt").read_text().splitlines()) == expected
    assert sizes(tmp_path) == {"input": 5, "output": 5}
    assert known_words(tmp_path) - {"BOS", "EOS", "<unk>"} == {"from", "new", "york", "to", "boston"}
    for part, made in QUERIES.items():
        assert read_queries(query_file(tmp_path, part)) == made


def test_the_reader_takes_them_with_three_words_and_unknown_ones(tmp_path):
    write_tables(tmp_path, QUERIES, few=2)
    config = load_config([f"configFile={CONFIG / 'understanding.cntk'}", f"DataDir={tmp_path}", "ExpDir=x"])
    reader = LUSequenceReader(config.block("Tag").block("reader"), 0)
    first = next(reader.utterances())
    words = np.asarray(first.matrices["features"]).reshape(3, 5, -1).argmax(axis=1)
    ids = [0, 2, 2, 3, 4, 1]  # BOS <unk> <unk> to york EOS
    assert words.tolist() == [ids, [*ids[1:], 1], [*ids[2:], 1, 1]]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["O O O O O O"], r"tags: 1 lines; expected 2, one for each query"),
        (["O O O O O O", "O O"], r"tags:2: 2 labels; expected 3"),
    ],
)
def test_faults_of_tags(tmp_path, lines, message):
    (tmp_path / "tags").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(FormatError, match=message):
        read_tags(tmp_path / "tags", QUERIES["test"])


def test_tags_without_those_of_the_marks(tmp_path):
    (tmp_path / "tags").write_text("O a b c d O\nB-x e B-x\n")
    assert read_tags(tmp_path / "tags", QUERIES["test"]) == [["a", "b", "c", "d"], ["e"]]


def test_confusions_are_of_the_labels_with_most_errors(tmp_path):
    labels = {("O", "O"): 90, ("B-a", "B-b"): 5, ("B-b", "B-a"): 1, ("I-a", "O"): 2, ("B-c", "B-c"): 4}
    names, counts = confusion_matrix(labels, 3)
    assert names == ["B-a", "I-a", "B-b"]
    assert counts.tolist() == [[0, 0, 5], [0, 0, 0], [1, 0, 0]]
    names, counts = confusion_matrix(labels)
    assert names == ["O", "B-a", "I-a", "B-b"]
    assert counts.tolist() == [[0, 0, 0, 0], [0, 0, 0, 5], [2, 0, 0, 0], [0, 1, 0, 0]]
    for some in (labels, {("O", "O"): 3}):
        draw_confusions(some, tmp_path / "c.png")
        assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")


def test_picture_of_the_epochs(tmp_path):
    rows = [{"epoch": n, "training": {"C": 1 / n}, "validation": {"C": 2 / n}} for n in (1, 2)]
    draw_epochs(rows, [50.0, 70.0], tmp_path / "e.png")
    assert (tmp_path / "e.png").read_bytes().startswith(b"\x89PNG")


def test_configuration_is_the_books():
    config = load_config(
        [f"configFile={CONFIG / 'understanding.cntk'}", "ExpDir=x", "DataDir=y", "InputDim=2832", "LabelDim=127"]
    )
    builder, sgd, reader = (
        config.block("LSTM").block("SimpleNetworkBuilder"),
        config.block("SGD"),
        config.block("reader"),
    )
    assert builder.text("layerSizes") == "2832:50:300:127"
    assert (builder.text("rnnType"), builder.int("recurrentLayer"), builder.int("lookupTableOrder")) == ("LSTM", 2, 3)
    assert (sgd.int("minibatchSize"), sgd.float("learningRatesPerSample")) == (10, 0.1)
    assert sgd.text("gradUpdateType") == "AdaGrad"
    assert config.block("BLSTM").block("SGD").int("minibatchSize") == 100  # whole queries
    assert (reader.text("wordContext"), reader.int("nbruttsineachrecurrentiter")) == ("0:1:2", 10)


@pytest.mark.parametrize(
    ("text", "names"), [("all", list(NETWORKS)), ("lstm", ["lstm"]), ("blstm,lstm", ["lstm", "blstm"])]
)
def test_names_of_networks(text, names, tmp_path):
    assert Recipe(UnderstandingOptions(out=tmp_path, networks=text)).networks == names


def test_an_unknown_network_is_refused():
    with pytest.raises(ConfigError, match="networks is gru; expected all, or some of lstm,window,blstm,crf"):
        UnderstandingOptions(out="exp", networks="lstm,gru")


SMALL = [
    *("--set", "LSTM=[SimpleNetworkBuilder=[layerSizes=$InputDim$:12:24:$LabelDim$]]"),
    *("--set", "SGD=[maxEpochs=3]"),
    *("--set", "reader=[nbruttsineachrecurrentiter=4]"),
]


@pytest.fixture
def small(monkeypatch, tmp_path):
    """The command, with few queries of one kind."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(queries, "NUM_QUERIES", {"train": 300, "dev": 30, "test": 40})
    (tmp_path / "g").write_text(
        "query:\n  (fly | go | please) {20% uh} <way>\n"
        "way:\n  2 | <end from> <end to>\n  1 | <end to> <end from>\n"
        "end from:\n  from [from.city: <city>]\nend to:\n  to [to.city: <city>]\n"
    )
    monkeypatch.setattr(queries, "GRAMMAR", tmp_path / "g")
    return ["recipe", "understanding", "--out", str(tmp_path / "exp"), *SMALL]


@pytest.mark.slow
def test_recipe_tags_and_resumes(small, tmp_path, capsys):
    assert main(small) == 0
    printed = capsys.readouterr().out.splitlines()
    closing = re.fullmatch(r"F1 ([\d.]+)% \(test, 40 queries, 80 phrases, lstm after (\d) of 3 epochs\)", printed[-1])
    assert float(closing[1]) > 75
    out = tmp_path / "exp" / "lstm"
    total = (out / "test.score.txt").read_text().splitlines()[1]
    assert float(total.split()[-1]) == pytest.approx(float(closing[1]), abs=0.051)
    chosen = json.loads((out / "epochs.json").read_text())
    assert chosen["f1"].index(max(chosen["f1"])) + 1 == chosen["best"] == int(closing[2])
    for name in ("epochs", "confusions"):
        assert (out / "pictures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    assert main(small) == 0
    again = capsys.readouterr().out
    assert again.count("done before") == 5
    assert again.splitlines()[-1] == printed[-1]


@pytest.mark.slow
def test_an_interrupted_training_goes_on_to_the_same_model(small, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(queries, "NUM_QUERIES", {"train": 60, "dev": 5, "test": 6})
    whole, cut = ([*small, "--out", str(tmp_path / name), "--to", "lstm-train"] for name in ("whole", "cut"))
    assert main(whole) == 0
    minibatches = LUSequenceReader.minibatches

    def until_the_third_epoch(reader, epoch=0, **sizes):
        for number, minibatch in enumerate(minibatches(reader, epoch, **sizes)):
            if epoch == 2 and number == 3:
                raise KeyboardInterrupt
            yield minibatch

    with monkeypatch.context() as patched:
        patched.setattr(LUSequenceReader, "minibatches", until_the_third_epoch)
        assert main(cut) != 0
    assert not (tmp_path / "cut/lstm/model/slu").exists()
    assert main(cut) == 0
    assert "slu.2; the network description is not read" in capsys.readouterr().err
    same = [(tmp_path / name / "lstm/model/slu").read_bytes() for name in ("whole", "cut")]
    assert same[0] == same[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(NETWORKS) - {"lstm"}))
def test_the_other_networks_train_and_tag(small, monkeypatch, tmp_path, capsys, name):
    monkeypatch.setattr(queries, "NUM_QUERIES", {"train": 40, "dev": 5, "test": 6})
    assert main([*small, "--networks", name, "--set", "SGD=[maxEpochs=1]"]) == 0
    assert re.search(
        rf"F1 [\d.]+% \(test, 6 queries, 12 phrases, {name} after 1 of 1 epochs\)$", capsys.readouterr().out
    )
    tags = (tmp_path / "exp" / name / "test.tags.txt").read_text().split()
    assert set(tags) <= set((tmp_path / "exp" / "data" / "output.txt").read_text().split())


def test_recipe_takes_a_users_queries(small, tmp_path, capsys):
    from recipes.understanding.queries import make_queries

    made = make_queries({"train": 60, "dev": 10, "test": 12}, 1)
    for part, some in made.items():
        (tmp_path / "mine" / part).mkdir(parents=True)
        for name, column in (("seq.in", 0), ("seq.out", 1)):
            text = "".join(" ".join(token[column] for token in query) + "\n" for query in some)
            (tmp_path / "mine" / part / name).write_text(text)
    assert main([*small, "--data", str(tmp_path / "mine"), "--to", "data"]) == 0
    assert "queries: train 60, dev 10, test 12" in capsys.readouterr().out
    assert read_queries(query_file(tmp_path / "exp" / "data", "test")) == made["test"]


def test_rare_is_a_count(tmp_path, capsys):
    assert main(["recipe", "understanding", "--rare", "0", "--out", str(tmp_path / "exp")]) == 2
    assert "--rare is 0; expected at least 1" in capsys.readouterr().err


def test_a_corpus_that_is_not_there_is_told_before_anything_is_written(tmp_path, capsys):
    assert main(["recipe", "understanding", "--data", str(tmp_path / "gone"), "--out", str(tmp_path / "exp")]) == 2
    assert "gone: no such directory" in capsys.readouterr().err
    assert not (tmp_path / "exp" / "data").exists()
