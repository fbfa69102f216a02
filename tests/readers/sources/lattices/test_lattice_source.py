"""Blocks `lattices` of a reader: each utterance gets its lattice; faults are found before training."""

from dataclasses import replace

import numpy as np
import pytest

from readers.config.config import Config
from readers.errors import ArgonautError, FormatError
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from readers.sources.frames.kaldi_reader import KaldiReader
from readers.sources.lattices.lattice_contents import read_contents
from readers.sources.lattices.lattice_source import LatticeSource
from tests.readers.sources.frames.test_data_check import check as validated
from tests.readers.sources.frames.test_kaldi_reader import to_kaldi
from tests.readers.sources.lattices.random_lattices import random_lattice, write_lattices

LENGTHS = (5, 4, 9, 4, 7)
WHOLE = "frameMode=false; nbruttsineachrecurrentiter=2"


@pytest.fixture
def corpus(tiny):
    """A corpus with lattices of all utterances, and a table of contents."""
    found = tiny(LENGTHS)
    rng = np.random.default_rng(0)
    found.lattices = {f"set/u{i}": random_lattice(rng, f"set/u{i}", n) for i, n in enumerate(LENGTHS)}
    found.toc = write_lattices(found.directory, found.lattices.values())
    return found


def opened(corpus, block=None, options=WHOLE):
    block = f"lattices=[denLatTocFile={corpus.toc}]" if block is None else block
    return HTKMLFReader(corpus.config(options, block))


def delivered(reader):
    """(key's lattice, frames of the features) of all utterances of an epoch."""
    for minibatch in reader.minibatches(0):
        layout = minibatch.layout
        for placed in layout.supervisions:
            columns = (placed.step + np.arange(placed.num_frames)) * layout.num_sequences + placed.slot
            yield placed.supervision, minibatch.matrices["features"][:, columns], placed


def test_each_utterance_has_its_lattice(corpus):
    found = list(delivered(opened(corpus)))
    assert sorted(lattice.name for lattice, _, _ in found) == sorted(corpus.lattices)
    for lattice, columns, placed in found:
        assert placed.num_frames == lattice.num_frames == columns.shape[1]
        number = int(lattice.name[-1])
        assert (columns[6] // 1000 == number).all()
        np.testing.assert_array_equal(lattice.start_node, corpus.lattices[lattice.name].start_node)
        np.testing.assert_array_equal(lattice.lm_score, corpus.lattices[lattice.name].lm_score)


def test_copies_have_the_lattice_of_the_utterance(corpus):
    plain = {f"plain/u{i}": replace(lattice, name=f"plain/u{i}") for i, lattice in enumerate(corpus.lattices.values())}
    corpus.toc = write_lattices(corpus.directory, plain.values())
    assert sorted(lattice.name for lattice, _, _ in delivered(opened(corpus))) == sorted(plain)


def test_numerators_of_their_own(corpus):
    rng = np.random.default_rng(5)
    others = [random_lattice(rng, name, one.num_frames) for name, one in corpus.lattices.items()]
    table = write_lattices(corpus.directory, others, name="num")
    reader = opened(corpus, f"lattices=[denLatTocFile={corpus.toc}; numLatTocFile={table}]")
    numerators = {one.name: one for one in others}
    for lattice, _, _ in delivered(reader):
        den, num = corpus.lattices[lattice.name], numerators[lattice.name]
        np.testing.assert_array_equal(lattice.senone, den.senone)
        np.testing.assert_array_equal(lattice.reference_senones, num.reference_senones)
        assert lattice.reference_score == num.reference_score
        assert lattice.reference_transition_score == num.reference_transition_score
    assert {str(table), str(corpus.toc)} <= set(reader.input_files())


def test_patterns_name_several_tables(corpus):
    first, *others = corpus.lattices.values()
    write_lattices(corpus.directory, [first], name="a.lats")
    write_lattices(corpus.directory, others, name="b.lats")
    corpus.toc.unlink()
    reader = opened(corpus, f"lattices=[denLatTocFile={corpus.directory}/*.lats.toc]")
    assert sorted(lattice.name for lattice, _, _ in delivered(reader)) == sorted(corpus.lattices)
    assert {f"{corpus.directory}/{name}.lats.toc" for name in "ab"} <= set(reader.input_files())


def test_a_name_with_brackets_is_no_pattern(corpus):
    table = write_lattices(corpus.directory, corpus.lattices.values(), name="a[1]")
    assert len(list(delivered(opened(corpus, f"lattices=[denLatTocFile={table}]")))) == 5


def test_all_missing_files_are_named_together(corpus):
    corpus.blocks["lattices"] = "lattices=[denLatTocFile=none/*.toc; numLatTocFile=$toc$]\n" + f"toc={corpus.toc}"
    corpus.blocks["hmms"] = "hmms=[phoneFile=nophones; transPFile=notransitions]"
    (corpus.directory / "lattices.arec").unlink()
    faults, _ = validated(corpus, WHOLE)
    assert [fault.partition(": ")[2] for fault in faults[:4]] == [
        "reader.lattices.denLatTocFile: none/*.toc: No such file or directory; expected a readable file",
        "lattices.arec is no file; expected an archive of lattices",
        "reader.hmms.phoneFile: nophones: No such file or directory; expected a readable file",
        "reader.hmms.transPFile: notransitions: No such file or directory; expected a readable file",
    ]
    del corpus.blocks["lattices"]
    assert len(validated(corpus, WHOLE)[0]) == 2


def test_blocks_of_hmms_are_accepted_and_read(corpus):
    names = (corpus.directory / "labels.list").read_text().split()
    (corpus.directory / "phones").write_text(f"a t {names[0]} {names[1]}\nb t {names[2]} {names[3]}\n")
    (corpus.directory / "trans").write_text("t 2 1 0 0 0.5 0.5 0 0 0.5 0.5\n")
    hmms = f"hmms=[phoneFile={corpus.directory}/phones; transPFile={corpus.directory}/trans]"
    block = f"lattices=[denLatTocFile={corpus.toc}]; {hmms}"
    assert len(list(delivered(opened(corpus, block)))) == 5
    with pytest.raises(ArgonautError, match=r"hmms.phoneFile: none: No such file"):
        opened(corpus, block.replace(f"{corpus.directory}/phones", "none"))
    corpus.edit("trans", "t 2", "u 2")
    with pytest.raises(FormatError, match=r"phones:1: no matrix 't' of 2 states; expected one in .*trans"):
        opened(corpus, block)


def test_utterances_without_lattices_are_skipped_and_too_many_end_the_run(corpus):
    kept = [lattice for name, lattice in corpus.lattices.items() if name not in ("set/u1", "set/u3")]
    corpus.toc = write_lattices(corpus.directory, kept)
    reader = opened(corpus)
    assert [key for key, _ in reader.skipped] == ["set/u1", "set/u3"]
    assert reader.skipped[0][1].endswith("lattices.toc: no lattice of 'set/u1'; expected one for every utterance")
    assert len(list(delivered(reader))) == 3
    with pytest.raises(FormatError, match=r"2 of 5 utterances cannot be used; .*no lattice of 'set/u1'"):
        opened(corpus, options=f"{WHOLE}; maxSkippedFraction=0.3")


def test_a_wrong_list_ends_the_run(corpus):
    others = [replace(lattice, name=f"set/v{i}") for i, lattice in enumerate(corpus.lattices.values())]
    corpus.toc = write_lattices(corpus.directory, others)
    with pytest.raises(FormatError, match=r"features.scp: 5 of 5 utterances cannot be used; .*no lattice of 'set/u0'"):
        opened(corpus)


def test_lattices_of_other_lengths_are_skipped(corpus):
    changed = [random_lattice(np.random.default_rng(1), "set/u2", 8), *list(corpus.lattices.values())[:2]]
    corpus.toc = write_lattices(corpus.directory, changed)
    reader = opened(corpus, options=f"{WHOLE}; maxSkippedFraction=1")
    assert dict(reader.skipped)["set/u2"].endswith(
        "lattices.toc:1: a lattice of 8 frames; expected 9 as in the features"
    )


def test_unused_lattices_are_told(corpus):
    more = [replace(lattice, name=name.replace("u", "w")) for name, lattice in corpus.lattices.items()]
    corpus.toc = write_lattices(corpus.directory, [*corpus.lattices.values(), *more])
    (warning,) = opened(corpus).warnings
    assert "lattices.toc: 5 lattices of utterances that are not in " in warning
    assert warning.endswith("features.scp, the first 'set/w0'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("frameMode=true", "reader.lattices: lattices are of whole utterances; expected frameMode=false"),
        (f"{WHOLE}; truncated=true", "reader.lattices: lattices are of whole utterances; expected truncated=false"),
        (f"{WHOLE}; frameSubsampling=3", "expected neither frameSubsampling nor chunkFrames"),
        (f"{WHOLE}; chunkFrames=3", "expected neither frameSubsampling nor chunkFrames"),
    ],
)
def test_readers_of_other_sequences_are_refused(corpus, options, message):
    with pytest.raises(ArgonautError, match=message):
        opened(corpus, options=options)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("lattices=[denLatTocFile=none]", "reader.lattices.denLatTocFile: none: No such file"),
        ("lattices=[denLatTocFile=]", "denLatTocFile"),
        (
            "lattices=[denLatTocFile={toc}]; more=[denLatTocFile={toc}]",
            "reader.more beside reader.lattices",
        ),
    ],
)
def test_wrong_blocks_are_refused(corpus, block, message):
    with pytest.raises(ArgonautError, match=message):
        opened(corpus, block.replace("{toc}", str(corpus.toc)))


def test_unknown_names_in_a_block_are_told(corpus):
    (warning,) = opened(corpus, f"lattices=[denLatTocFile={corpus.toc}; numLatTokFile=x]").warnings
    assert "numLatTokFile" in warning


def test_lattices_of_another_network_are_refused(corpus):
    corpus.toc = write_lattices(corpus.directory, corpus.lattices.values(), num_senones=7)
    message = "lattices for a network of 7 outputs; expected 4, as the labels have; make lattices with argonaut"
    with pytest.raises(FormatError, match=message):
        opened(corpus)


def test_references_with_other_outputs_than_the_labels_are_refused(tiny):
    lengths, rng = (300, 300), np.random.default_rng(0)
    corpus = tiny(lengths)
    labels = [np.array(classes, np.int32) for classes in corpus.labels["labels"]]
    plain = [random_lattice(rng, f"set/u{i}", n) for i, n in enumerate(lengths)]
    corpus.toc = write_lattices(
        corpus.directory, [replace(one, reference_senones=own) for one, own in zip(plain, labels)]
    )
    opened(corpus)
    states = (corpus.directory / "labels.list").read_text().split()
    corpus.write("labels.list", "\n".join([*states[1:], states[0]]))
    message = "references of the lattices agree with the labels in 0 of 600 frames; expected lattices and a labelMap"
    with pytest.raises(FormatError, match=message):
        opened(corpus)
    corpus.blocks["lattices"] = f"lattices=[denLatTocFile={corpus.toc}]"
    ((fault,), _) = validated(corpus, WHOLE)
    assert message in fault


def test_two_senones_that_the_labels_number_in_another_order_are_refused(corpus):
    states = (corpus.directory / "labels.list").read_text().split()
    numbers = {name: number for number, name in enumerate(states) if number != 2}  # one name is not known
    corpus.toc = write_lattices(corpus.directory, corpus.lattices.values(), senones=numbers)
    opened(corpus)
    corpus.write("labels.list", "\n".join([states[1], states[0], *states[2:]]))
    message = (
        r"lattices.arec: senone 'labels_0' is output 0; expected 1, its place in the labelMappingFile; use that of"
    )
    with pytest.raises(FormatError, match=message):
        opened(corpus)
    corpus.blocks["lattices"] = f"lattices=[denLatTocFile={corpus.toc}]"
    ((fault,), _) = validated(corpus, WHOLE)
    assert fault.startswith("lattices.arec: senone 'labels_0' is output 0; expected 1")


def test_damaged_lattices_are_found_before_training(corpus):
    archive = corpus.directory / "lattices.arec"
    content, place = bytearray(archive.read_bytes()), read_contents(corpus.toc)["set/u3"].position
    arrays = content.index(corpus.lattices["set/u3"].lm_score.tobytes(), place)
    content[arrays] ^= 1
    archive.write_bytes(content)
    message = "features.scp:4: lattices.arec: record 'set/u3': wrong checksum of the arrays; expected a complete record"
    corpus.blocks["lattices"] = f"lattices=[denLatTocFile={corpus.toc}]"
    ((fault,), figures) = validated(corpus, WHOLE, read=set())
    assert fault.startswith(message)
    assert figures.num_usable == 4
    del corpus.blocks["lattices"]
    reader = opened(corpus)  # the first lattices are read, to compare senones
    assert [key for key, reason in reader.skipped] == ["set/u3"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("", ":? no entries; expected lines"),
        ("set/u0 lattices.arec[64]\n", ":1: 'set/u0 lattices.arec.64.'; expected utterance=archive.position."),
        ("set/u0=[64]\n", ":1: no archive; expected utterance=archive"),
        ("a=x[1]\na=x[2]\n", ":2: 'a' is already at .*:1; expected each utterance once"),
        ("a=[1]x\n", ":1: "),
        ("a=none.arec[64]\n", ":1: .*none.arec is no file; expected an archive of lattices"),
        ("a=text[64]\n", "text: begins with b'not an a'; expected an archive of lattices"),
        (
            "a=cntk[64]\n",
            ":1: .*cntk is a lattice archive of CNTK, which is not supported; make lattices",
        ),
    ],
)
def test_wrong_tables_of_contents(tmp_path, lines, message):
    (tmp_path / "text").write_text("not an archive at all, but text\n")
    (tmp_path / "cntk").write_bytes(b"LAT \1\0\0\0" + bytes(100))
    (tmp_path / "toc").write_text(lines)
    with pytest.raises(FormatError, match=message):
        LatticeSource([tmp_path / "toc"])


def test_a_table_of_another_archive(corpus):
    text = corpus.toc.read_text()
    first = int(text.split("[")[1].split("]")[0])
    corpus.toc.write_text(text.replace(f"[{first}]", f"[{first + 64}]"))
    source = LatticeSource([corpus.toc])
    with pytest.raises(FormatError, match=rf"no lattice of 'set/u0' at {first + 64} in .*arec; expected the table"):
        source.check("set/u0", 5)
    with pytest.raises(FormatError, match="lattices are of whole utterances; expected no chunks"):
        source.check("set/u1", 4, whole=False)
    with pytest.raises(FormatError, match="frames from 1; expected whole utterances"):
        source.supervision("set/u1", 1, 4)


def test_archives_are_found_beside_the_table_or_below_the_prefix(corpus, monkeypatch):
    entry = read_contents(corpus.toc)["set/u0"]
    assert entry.path == str(corpus.directory / "lattices.arec")
    assert entry.where == f"{corpus.toc}:1"
    (corpus.directory / "there").mkdir()
    (corpus.directory / "lattices.arec").rename(corpus.directory / "there" / "lattices.arec")
    source = LatticeSource([corpus.toc], prefix=str(corpus.directory / "there"))
    assert source.supervision("set/u0", 0, 5).name == "set/u0"
    monkeypatch.chdir(corpus.directory / "there")
    assert LatticeSource([corpus.toc]).supervision("set/u0", 0, 5).name == "set/u0"


def test_several_tables_and_archives_of_other_phones(corpus, tmp_path):
    from readers.sources.lattices.lattice_archive import LatticeArchiveWriter

    two = [replace(lattice, name=name.replace("u", "w")) for name, lattice in corpus.lattices.items()]
    more = write_lattices(corpus.directory, two, name="more")
    source = LatticeSource([corpus.toc, more])
    assert source.supervision("set/w0", 0, 5).name == "set/w0"
    with pytest.raises(FormatError, match="'set/u0' is already at"):
        LatticeSource([corpus.toc, corpus.toc])
    with LatticeArchiveWriter(corpus.directory / "more.arec", ["x", "y", "z"], [True] * 3, 4, {}) as archive:
        archive.add(two[0])
    with pytest.raises(FormatError, match=r"more.arec: other phones than in .*lattices.arec; expected lattices of one"):
        LatticeSource([corpus.toc, more])


def test_validate_finds_all_faults_of_lattices(corpus):
    kept = [lattice for name, lattice in corpus.lattices.items() if name != "set/u1"]
    kept[1] = random_lattice(np.random.default_rng(1), "set/u2", 8)
    corpus.toc = write_lattices(corpus.directory, kept)
    corpus.blocks["lattices"] = f"lattices=[denLatTocFile={corpus.toc}; numLatTok=x]"
    faults, figures = validated(corpus, WHOLE)
    assert len(faults) == 3
    assert "numLatTok" in faults[0]
    assert faults[1] == "features.scp:2: lattices.toc: no lattice of 'set/u1'; expected one for every utterance"
    assert faults[2] == "features.scp:3: lattices.toc:2: a lattice of 8 frames; expected 9 as in the features"
    assert figures.num_usable == 3
    faults, _ = validated(corpus)
    assert any("lattices are of whole utterances; expected frameMode=false" in fault for fault in faults)


def test_kaldi_reader_delivers_lattices(corpus):
    to_kaldi(corpus)
    files = f"features=[dim=15; arkFile={corpus.directory}/features.ark]"
    labels = f"labels=[labelDim=4; aliFile={corpus.directory}/labels.ali]"
    text = f"reader=[\n{WHOLE}\n{files}\n{labels}\nlattices=[denLatTocFile={corpus.toc}]\n]"
    reader = KaldiReader(Config.from_text(text, "k.cntk").block("reader"))
    assert reader.is_supervised
    assert sorted(lattice.name for lattice, _, _ in delivered(reader)) == sorted(corpus.lattices)


@pytest.mark.parametrize("context", ["0:0", "2:1"])
def test_columns_of_context_have_no_lattice(corpus, context):
    left = int(context[0])
    for lattice, columns, placed in delivered(opened(corpus, options=f"{WHOLE}; chunkContext={context}")):
        assert placed.step >= left
        assert placed.num_frames == lattice.num_frames == columns.shape[1]
        assert columns[6, 0] % 1000 == 0  # the first frame of its utterance
