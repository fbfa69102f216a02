"""`argonaut lattice`: what it writes, what it prints, how it fails."""

import gzip
import re

import pytest

from decoder.lattices.consensus import consensus
from decoder.lattices.posteriors import confident_words, oracle
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.slf import read_slf, write_slf
from readers.kaldi import read_kaldi_lattices, read_word_table
from readers.results.timed_words import read_ctm
from recipes.cli.main import main
from tests.decoder.lattices.small_lattices import paths, spoken
from tests.recipes.cli.three_lattices import NAMES, lattices, make_lattices, run


@pytest.fixture
def place(tmp_path):
    """Three lattices, their index and a reference."""
    return make_lattices(tmp_path)


def test_words_with_confidences(place, capsys):
    code, shown = run(place, capsys, "words", "-o", place / "w.ctm", "--mlf", place / "w.mlf")
    assert code == 0
    assert re.search(r"w.ctm and 1 more: \d+ words, mean confidence 0\.\d{3}; lattices: 3 done", shown.out)
    found, labels = read_ctm(place / "w.ctm"), read_mlf(place / "w.mlf")
    for name, lattice in lattices(place).items():
        words = confident_words(lattice)
        assert [one.text for one in found.get(name, [])] == [one.text for one in words]
        assert [one.confidence for one in found.get(name, [])] == pytest.approx(
            [one.confidence for one in words], abs=1e-4
        )
        assert [label.name for label in labels[name]] == [one.text for one in words]


@pytest.mark.parametrize("by", ["best", "consensus"])
def test_words_without_times(place, capsys, by):
    path = place / "test2.lat"
    path.write_text(re.sub(r" t=\S+", "", path.read_text()))
    code, shown = run(place, capsys, "words", "--by", by, "-o", place / "w.ctm")
    assert code == 1
    assert "test2.lat: nodes without times (t=); expected times, or only --mlf" in shown.err
    assert "u2" not in read_ctm(place / "w.ctm")
    code, _ = run(place, capsys, "words", "--by", by, "--mlf", place / "w.mlf")
    assert code == 0
    labels = read_mlf(place / "w.mlf")["u2"]
    assert labels
    assert all(label.start is label.end is None and 0 < label.score <= 1 for label in labels)


def test_words_with_the_fewest_expected_errors(place, capsys):
    code, _ = run(place, capsys, "words", "--by", "consensus", "--scale", 0.5, "-o", place / "w.ctm")
    assert code == 0
    found = read_ctm(place / "w.ctm")
    for name, lattice in lattices(place).items():
        assert [one.text for one in found.get(name, [])] == [one.text for one in consensus(lattice, 0.5).words]


def test_a_file_for_each_utterance(place, capsys):
    code, shown = run(place, capsys, "words", "-o", place / "sub.srt")
    assert code == 0
    assert "u1.srt and 2 more" in shown.out
    assert sorted(path.name for path in (place / "sub").iterdir()) == ["u1.srt", "u2.srt", "u3.srt"]


def test_consensus_as_kaldi_writes_it(place, capsys):
    code, shown = run(place, capsys, "consensus", "-o", place / "slots")
    assert code == 0
    lines = (place / "slots").read_text().splitlines()
    assert [line.split()[0] for line in lines] == NAMES
    assert all(re.fullmatch(r"\S+( \[( \S+ [01]\.\d{4})+ \])+", line) for line in lines)
    errors = sum(consensus(lattice).expected_errors for lattice in lattices(place).values())
    assert f"{errors:.1f} errors expected" in shown.out


def test_oracle(place, capsys):
    code, shown = run(place, capsys, "oracle", "--reference", place / "ref.mlf", "--mlf", place / "o.mlf")
    assert code == 0
    best = {name: oracle(lattice, list("abca")) for name, lattice in lattices(place).items()}
    errors = sum(count for count, _ in best.values())
    assert f"oracle WER {100 * errors / 12:.1f}% (3 utterances, 12 words, {errors} errors)" in shown.out
    assert [label.name for label in read_mlf(place / "o.mlf")["u2"]] == best["u2"][1]


def test_oracle_of_names_with_dots(place, capsys):
    spoken_words = {"sw.1": "abca", "sw.2": "b", "sw.3": "cc"}
    (place / "test.index").write_text("".join(f"{k}\t{name}\n" for k, name in enumerate(spoken_words, 1)))
    labels = ((f"*/{name}.lab", [Label(None, None, w) for w in words]) for name, words in spoken_words.items())
    write_mlf(place / "ref.mlf", labels)
    _, shown = run(place, capsys, "oracle", "--reference", place / "ref.mlf")
    errors = sum(oracle(one, list(words))[0] for one, words in zip(lattices(place).values(), spoken_words.values()))
    assert f"(3 utterances, 7 words, {errors} errors)" in shown.out


def test_without_any_reference_there_is_no_figure(place, capsys):
    write_mlf(place / "ref.mlf", [("*/other.lab", [Label(None, None, "a")])])
    code, shown = run(place, capsys, "oracle", "--reference", place / "ref.mlf")
    assert code == 2
    assert shown.out == "lattices: 0 done, 0 skipped, 3 failed\n"


def test_lattices_with_every_word_sequence_once(place, capsys):
    code, shown = run(place, capsys, "determinise", "--prefix", place / "det")
    assert code == 0
    before, after = lattices(place), [read_slf(place / f"det{k}.lat") for k in (1, 2, 3)]
    links = sum(one.num_links for one in before.values()), sum(one.num_links for one in after)
    assert f"det.index: {links[0]} links became {links[1]}" in shown.out
    assert (place / "det.index").read_text() == (place / "test.index").read_text()
    for lattice, (name, whole) in zip(after, before.items()):
        assert lattice.utterance == name
        expected = {tuple(spoken(whole, path)) for path, _ in paths(whole)}
        assert sorted(tuple(spoken(lattice, path)) for path, _ in paths(lattice)) == sorted(expected)


def test_lattices_of_htk_by_the_names_of_their_files(place, capsys):
    (place / "htk").mkdir()
    for number, name in enumerate(NAMES, 1):
        (place / f"test{number}.lat").rename(place / "htk" / f"{name}.lat")
    for which, names in (("htk/u2.lat", ["u2"]), ("htk", NAMES)):
        code = main(["lattice", "words", "--lattices", str(place / which), "--mlf", str(place / "w.mlf")])
        assert code == 0
        assert [name for name in NAMES if name in read_mlf(place / "w.mlf")] == names
    code = main(["lattice", "determinise", "--lattices", str(place / "htk"), "--prefix", str(place / "htk" / "u")])
    assert code == 2
    assert "would overwrite --lattices; expected another prefix" in capsys.readouterr().err
    code = main(["lattice", "words", "--lattices", str(place), "-o", str(place / "w.ctm")])
    assert code == 2
    assert "test.index, which lists the utterances of its lattices" in capsys.readouterr().err


def test_lattices_are_not_written_over(place, capsys):
    code, shown = run(place, capsys, "determinise", "--prefix", place / "test")
    assert code == 2
    assert "would overwrite --lattices; expected another prefix" in shown.err


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("words", ["-o", "test2.lat"]),
        ("words", ["--mlf", "test.index"]),
        ("consensus", ["-o", "test.index"]),
        ("oracle", ["--reference", "ref.mlf", "--mlf", "ref.mlf"]),
        ("oracle", ["--reference", "ref.mlf", "--report", "test3.lat"]),
        ("rescore", ["--lm", "ref.mlf", "--prefix", "new", "--mlf", "ref.mlf"]),
        ("kaldi", ["--words", "words.txt", "-o", "test1.lat"]),
    ],
)
def test_outputs_do_not_take_the_place_of_inputs(place, capsys, monkeypatch, action, arguments):
    monkeypatch.chdir(place)
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    code, shown = run(place, capsys, action, *arguments)
    assert code == 2
    assert shown.err.count("\n") == 1
    assert "is an input and would be overwritten" in shown.err
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize(
    ("action", "arguments"),
    [
        ("kaldi", ["--words", "words.txt", "-o", "new"]),
        ("openfst", ["--words", "words.txt", "--prefix", "new"]),
        ("determinise", ["--prefix", "new"]),
        ("words", ["-o", "new.ctm", "--mlf", "new.mlf"]),
        ("consensus", ["-o", "new.txt"]),
    ],
)
def test_without_a_good_lattice_nothing_is_written_nor_said_to_be(place, capsys, monkeypatch, action, arguments):
    monkeypatch.chdir(place)
    for path in place.glob("*.lat"):
        path.write_text("no lattice")
    before = set(place.iterdir())
    code, shown = run(place, capsys, action, *arguments)
    assert code == 2
    assert shown.out.startswith("nothing; ")
    assert set(place.iterdir()) == before


EVERY_ACTION = {
    "words": ["-o", "new.ctm"],
    "consensus": ["-o", "new"],
    "oracle": ["--reference", "ref.mlf"],
    "determinise": ["--prefix", "new"],
    "rescore": ["--lm", "a.arpa", "--prefix", "new"],
    "kaldi": ["--words", "words.txt", "-o", "new"],
    "openfst": ["--words", "words.txt", "--prefix", "new"],
}


@pytest.mark.parametrize("action", EVERY_ACTION)
def test_one_lattice_that_cannot_be_read_is_named_and_the_status_is_1(place, capsys, monkeypatch, action):
    monkeypatch.chdir(place)
    unigrams = "".join(f"-1 {word}\n" for word in ("<s>", "</s>", "a", "b", "c"))
    (place / "a.arpa").write_text(f"\\data\\\nngram 1=5\n\n\\1-grams:\n{unigrams}\\end\\\n")
    code, shown = run(place, capsys, action, *EVERY_ACTION[action])
    assert (code, shown.err) == (0, "")
    (place / "words.txt").unlink(missing_ok=True)
    (place / "test2.lat").write_text("no lattice")
    code, shown = run(place, capsys, action, *EVERY_ACTION[action])
    assert code == 1
    assert shown.err.startswith(f"failed: u2: {place / 'test2.lat'}:1: ")


def test_faults_of_kaldis_text_form(place, capsys):
    tables = {
        "a 1\nb 1\n": "words.txt:2: 'b 1'; expected `word number`, each word and number once",
        "a 2147483648\n": "words.txt:1: number 2147483648; expected at most 2147483647",
    }
    for table, message in tables.items():
        (place / "words.txt").write_text(table)
        code, shown = run(place, capsys, "kaldi", "-o", place / "lats", "--words", place / "words.txt")
        assert code == 2
        assert message in shown.err
    (place / "words.txt").unlink()
    damaged = {  # a score that is no number; a dead end, which Kaldi would take for another end
        "test1.lat": lambda text: re.sub(r" a=\S+", " a=nan", text, count=1),
        "test2.lat": lambda text: (
            re.sub(r"N=(\d+) L=(\d+)", lambda m: f"N={int(m[1]) + 1} L={int(m[2]) + 1}", text).replace(
                "J=0", f"I={text.count('I=')} t=1\nJ=0", 1
            )
            + f"J={text.count('J=')} S=0 E={text.count('I=')} W=a a=0 l=0\n"
        ),
    }
    for name, damage in damaged.items():
        (place / name).write_text(damage((place / name).read_text()))
    code, shown = run(place, capsys, "kaldi", "-o", place / "lats", "--words", place / "words.txt")
    assert code == 1
    assert "failed: u1: lattice u1: link 0 has a score that is not finite; expected a number" in shown.err
    assert "test2.lat: 1 start nodes and 2 end nodes; expected one of each" in shown.err
    assert (place / "lats").read_text().startswith("u3\n")


def test_kaldis_text_form(place, capsys):
    code, shown = run(place, capsys, "kaldi", "-o", place / "lats", "--words", place / "words.txt")
    assert code == 0
    assert "acoustic scale 0.25" in shown.out
    numbers = dict(line.split() for line in (place / "words.txt").read_text().splitlines())
    assert numbers == {"<eps>": "0", "a": "1", "b": "2", "c": "3"}
    spelled = {number: word for word, number in numbers.items()}
    texts = (place / "lats").read_text().split("\n\n")
    for text, (name, lattice) in zip(texts, lattices(place).items()):
        first, *rows = text.splitlines()
        assert first == name
        links = [row.split("\t") for row in rows if row.count("\t") == 3]
        (final,) = [int(row.split("\t")[0]) for row in rows if row.count("\t") == 1]
        found = []

        def walk(node, cost, words, links=links, final=final, found=found):
            if node == final:
                found.append((words, cost))
            for start, end, word, weight in links:
                if int(start) == node:
                    graph, acoustic, _ = weight.split(",")
                    said = words if word == "0" else [*words, spelled[word]]
                    walk(int(end), cost + float(graph) + 0.25 * float(acoustic), said)

        walk(0, 0.0, [])
        expected = sorted((spoken(lattice, path), -score) for path, score in paths(lattice))
        assert [words for words, _ in sorted(found)] == [words for words, _ in expected]
        assert [cost for _, cost in sorted(found)] == pytest.approx([cost for _, cost in expected], abs=1e-6)


@pytest.mark.parametrize("options", [["--binary"], ["--plain"], ["--binary", "--plain"]])
def test_kaldis_other_forms_have_the_same_lattices(place, capsys, options):
    for name, more in (("text", []), ("other", options)):
        code, _ = run(place, capsys, "kaldi", "-o", place / name, "--words", place / "words.txt", *more)
        assert code == 0
    words = read_word_table(place / "words.txt")
    found, expected = (list(read_kaldi_lattices(place / name, words)) for name in ("other", "text"))
    assert [name for name, _ in found] == NAMES
    for (_, lattice), (_, other) in zip(found, expected):
        assert lattice.word == other.word
        assert lattice.acoustic.tolist() == pytest.approx(other.acoustic.tolist(), rel=1e-6)
    assert (place / "other").read_bytes() != (place / "text").read_bytes()


def test_a_word_that_the_table_lacks(place, capsys):
    (place / "words.txt").write_text("<eps> 0\na 1\n")
    code, shown = run(place, capsys, "kaldi", "-o", place / "lats", "--words", place / "words.txt")
    assert code == 2
    assert "has no number; expected one in the table of words" in shown.err
    assert not (place / "lats").exists()


@pytest.mark.parametrize("form", ["text", "binary"])
def test_acceptors_for_openfst(place, capsys, form):
    import kaldifst

    arguments = ("--prefix", place / "fst/test", "--words", place / "words.txt")
    code, shown = run(place, capsys, "openfst", *arguments, *(["--binary"] if form == "binary" else []))
    assert code == 0
    arcs = sum(lattice.num_links for lattice in lattices(place).values())
    assert f"fst/test.index: {arcs} arcs of 4 words; lattices: 3 done" in shown.out
    assert (place / "fst/test.index").read_text() == (place / "test.index").read_text()
    for number, lattice in enumerate(lattices(place).values(), 1):
        if form == "text":
            table = kaldifst.SymbolTable.read_text(str(place / "words.txt"))
            text = (place / f"fst/test{number}.txt").read_text()
            fst = kaldifst.compile(text, acceptor=True, isymbols=table)
        else:
            fst = kaldifst.StdVectorFst.read(str(place / f"fst/test{number}.fst"))
        cost = kaldifst.get_linear_symbol_sequence(kaldifst.shortest_path(fst))[-1].value
        assert cost == pytest.approx(-max(score for _, score in paths(lattice)), abs=1e-5)


def test_acceptors_without_a_number_for_a_word(place, capsys):
    (place / "words.txt").write_text("<eps> 0\na 1\nb 2\n")
    code, shown = run(place, capsys, "openfst", "--prefix", place / "fst/test", "--words", place / "words.txt")
    assert code == 2
    assert "words.txt: lattice u1: c has no number; expected one in the table of words" in shown.err
    assert not (place / "fst").exists()


def test_a_broken_lattice_does_not_take_the_others_along(place, capsys):
    (place / "test2.lat").write_text("VERSION=1.0\nN=1 L=1\nI=0\nJ=0 S=0 E=3\n")
    code, shown = run(place, capsys, "words", "-o", place / "w.ctm", "--report", place / "lost")
    assert code == 1
    assert "2 done, 0 skipped, 1 failed" in shown.out
    assert "test2.lat" in (place / "lost").read_text()


def test_an_unconnected_lattice_of_kaldi_does_not_take_the_others_along(place, capsys):
    (place / "words.txt").write_text("<eps> 0\na 1\n")
    sound = "0 1 1 1,2,3_3\n1\n\n"
    (place / "lat.1").write_text(f"u1\n{sound}u2\n0 2 1 1,2,3\n1 2 1 1,2,3\n2\n\nu3\n{sound}")
    arguments = ["--kaldi-words", place / "words.txt", "--lattices", place / "lat.1"]
    code, shown = run(place, capsys, "words", "-o", place / "w.ctm", *arguments)
    assert code == 1
    assert "2 done, 0 skipped, 1 failed" in shown.out
    assert shown.err.strip() == f"failed: u2: {place / 'lat.1'}: 2 start nodes and 1 end nodes; expected one of each"
    assert [line.split()[0] for line in (place / "w.ctm").read_text().splitlines()] == ["u1", "u3"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["words"], "--output is missing; expected an output file: it or --mlf"),
        (["words", "-o", "w.doc"], "w.doc: unknown format of words; expected a name that ends in .ctm"),
        (["words", "-o", "w.ctm", "--scale", "0"], "--scale is 0; expected above 0"),
        (["oracle", "--reference", "ref.mlf", "--level", "-1"], "--level is -1; expected at least 0"),
    ],
)
def test_faults_are_one_line(place, capsys, monkeypatch, arguments, message):
    monkeypatch.chdir(place)
    code, shown = run(place, capsys, *arguments)
    assert code == 2
    assert message in shown.err
    assert "Traceback" not in shown.err
    assert not list(place.glob("w.*"))


def test_a_reference_that_lacks_an_utterance(place, capsys):
    write_mlf(place / "ref.mlf", [("*/u1.lab", [Label(None, None, "a")])])
    code, shown = run(place, capsys, "oracle", "--reference", place / "ref.mlf")
    assert code == 1
    assert "ref.mlf: no entry for u2; expected its reference transcript" in shown.err


@pytest.mark.parametrize("suffix", [".lat", ".lat.gz", ".slf", ".slf.gz"])
def test_every_name_that_lattices_bear_is_read(place, capsys, suffix, tmp_path):
    files = tmp_path / "files"
    files.mkdir()
    for name, lattice in lattices(place).items():
        write_slf(files / f"{name}{suffix}", lattice, 17)
    code, _ = run(place, capsys, "words", "-o", place / "w.ctm")
    assert code == 0
    for source, names in ((files, NAMES), (files / f"u1{suffix}", NAMES[:1])):
        assert main(["lattice", "words", "--lattices", str(source), "-o", str(place / "w2.ctm")]) == 0
        expected = {name: words for name, words in read_ctm(place / "w.ctm").items() if name in names}
        assert read_ctm(place / "w2.ctm") == expected
    for number in (1, 2, 3):  # an index finds them, too
        (place / f"test{number}.lat").rename(place / f"old{number}")
        write_slf(place / f"test{number}{suffix}", lattices_of(files, suffix)[number - 1], 17)
    code, _ = run(place, capsys, "words", "-o", place / "w3.ctm")
    assert (code, read_ctm(place / "w3.ctm")) == (0, read_ctm(place / "w.ctm"))


def lattices_of(files, suffix):
    return [read_slf(files / f"{name}{suffix}") for name in NAMES]


def test_two_lattices_of_one_utterance_are_refused(tmp_path, capsys):
    for suffix in ("lat", "slf"):
        (tmp_path / f"u.{suffix}").write_text("VERSION=1.0\nN=2 L=1\nI=0 t=0\nI=1 t=1\nJ=0 S=0 E=1 W=a a=0 l=0\n")
    assert main(["lattice", "words", "--lattices", str(tmp_path), "-o", str(tmp_path / "w.mlf")]) == 2
    assert "u.lat and u.slf are of one utterance; expected one of them" in capsys.readouterr().err


@pytest.mark.parametrize("form", [[], ["--binary"], ["--plain"], ["--binary", "--plain"]])
def test_lattices_of_kaldi_are_read(place, capsys, form):
    table = place / "words.txt"
    (place / "kaldi").mkdir()
    archive = place / "kaldi" / "lat.1.gz"
    for name in place.glob("test*.lat"):  # times are no part of these lattices
        name.write_text(re.sub(r" [td]=\S+", "", name.read_text()))
    assert run(place, capsys, "words", "--mlf", place / "slf.mlf")[0] == 0
    assert run(place, capsys, "kaldi", "-o", place / "lats", "--words", table, *form)[0] == 0
    archive.write_bytes(gzip.compress((place / "lats").read_bytes()))
    options = ["--kaldi-words", table, "--acoustic-scale", 0.25]
    for lattices_of_kaldi in (archive, archive.parent):
        code = main(
            list(map(str, ["lattice", "words", "--lattices", lattices_of_kaldi, *options, "--mlf", place / "k.mlf"]))
        )
        assert code == 0
        expected, found = read_mlf(place / "slf.mlf"), read_mlf(place / "k.mlf")
        assert [[label.name for label in found[name]] for name in NAMES] == [
            [label.name for label in expected[name]] for name in NAMES
        ]
        assert [label.score for name in NAMES for label in found[name]] == pytest.approx(
            [label.score for name in NAMES for label in expected[name]], abs=1e-4
        )


def test_lattices_of_kaldi_keep_the_frames_of_a_subsampled_network(place, capsys):
    (place / "words.txt").write_text("<eps> 0\na 1\n")
    (place / "lat.1").write_text("u1\n0\t1\t1\t1,2,3_3_4\n1\n\n")
    arguments = ["--kaldi-words", place / "words.txt", "--lattices", place / "lat.1", "--frame-period", 0.03]
    assert run(place, capsys, "kaldi", "-o", place / "again", "--words", place / "words.txt", *arguments)[0] == 0
    assert (place / "again").read_text().splitlines()[1].endswith(",3_3_4")


def test_faults_of_lattices_of_kaldi(place, capsys):
    table = place / "words.txt"
    assert run(place, capsys, "kaldi", "-o", place / "lat.1", "--words", table)[0] == 0
    (place / "lat.2").write_bytes((place / "lat.1").read_bytes())
    arguments = ["--kaldi-words", str(table), "--mlf", str(place / "w.mlf")]

    def fails(command, lattices_of_kaldi, *more):
        assert main(["lattice", command, "--lattices", str(lattices_of_kaldi), *more]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        return line

    assert "lat.2: another lattice of u1" in fails("words", place, *arguments)
    (place / "empty").mkdir()
    assert "no files lat.*" in fails("words", place / "empty", *arguments)
    joined = ["--with", str(place / "test.index"), "--prefix", str(place / "x"), "--kaldi-words", str(table)]
    assert "is given with lattices of Kaldi; expected SLF" in fails("combine", place / "lat.1", *joined)
    table.write_text("<eps> 0\na 1\n")
    assert "no word has the number" in fails("words", place / "lat.1", *arguments)
    assert not (place / "w.mlf").exists()


def test_lattices_of_names_that_end_alike_are_apart(place, capsys):
    lines = (place / "test.index").read_text().splitlines()
    (place / "test.index").write_text("1\tspk1/u\n2\tspk2/u\n")
    assert run(place, capsys, "words", "--mlf", place / "w.mlf")[0] == 0
    assert sorted(read_mlf(place / "w.mlf")) == ["spk1/u", "spk2/u"]
    assert len(lines) >= 2


def test_the_only_lattice_is_not_overwritten(place, capsys):
    before = (place / "test1.lat").read_bytes()
    arguments = ["lattice", "determinise", "--lattices", str(place / "test1.lat"), "--prefix", str(place / "test")]
    assert main(arguments) == 2
    assert "would overwrite --lattices" in capsys.readouterr().err
    assert (place / "test1.lat").read_bytes() == before
