"""HTKMLFReader against a slow twin: the tiny corpus knows what every column must hold, frame by frame."""

import numpy as np
import pytest

from readers.errors import ConfigError
from readers.htk.parameter_file import FBANK, write_htk
from readers.minibatches.base import open_reader
from readers.sources.frames.htk_mlf_reader import HTKMLFReader

METHODS = ["readMethod=blockRandomize", "readMethod=rollingWindow"]
LENGTHS = (5, 2, 9, 4, 7)
TOTAL = sum(LENGTHS)


def visited(minibatches, middle: int = 6, stream: str = "features") -> list[tuple[int, int]]:
    """(utterance, frame) of every column, read off the first row of the window's middle frame."""
    values = np.concatenate([m.matrices[stream][middle] for m in minibatches])
    return [divmod(int(value), 1000) for value in values]


def every_frame(lengths=LENGTHS) -> list[tuple[int, int]]:
    return [(u, t) for u, length in enumerate(lengths) for t in range(length)]


def check_contents(corpus, minibatch, left=2, right=2) -> None:
    features, labels = minibatch.matrices["features"], minibatch.matrices["labels"]
    for n, (u, t) in enumerate(visited([minibatch])):
        assert features[:, n].tolist() == corpus.column("features", u, t, left, right)
        one_hot = [float(state == corpus.labels["labels"][u][t]) for state in range(4)]
        assert labels[:, n].tolist() == one_hot
        assert minibatch.classes["labels"][n] == corpus.labels["labels"][u][t]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", ["", "randomize=none", "randomize=8", "maxFramesInMemory=9", "readAhead=false"])
@pytest.mark.parametrize("size", [1, 4, 100])
def test_contents_equal_the_slow_twin(tiny, method, options, size):
    corpus = tiny()
    reader = HTKMLFReader(corpus.config(f"{method}\n{options}"), rng_seed=1)
    assert reader.dims() == {"features": 15, "labels": 4}
    assert reader.streams == ["features", "labels"]
    assert (reader.num_frames, reader.num_utterances, reader.skipped, reader.warnings) == (TOTAL, 5, [], [])
    minibatches = list(reader.minibatches(0, size))
    for minibatch in minibatches:
        for matrix in minibatch.matrices.values():
            assert matrix.dtype == np.float32
            assert matrix.flags.f_contiguous
            assert matrix.flags.writeable
            assert matrix.shape[1] == minibatch.num_frames
        check_contents(corpus, minibatch)
    assert [m.num_frames for m in minibatches[:-1]] == [size] * (len(minibatches) - 1)
    assert sorted(visited(minibatches)) == every_frame()
    reader.close()


@pytest.mark.parametrize("method", METHODS)
def test_without_randomization_frames_come_in_scp_order(tiny, method):
    reader = HTKMLFReader(tiny().config(f"{method}\nrandomize=None"))
    assert visited(reader.minibatches(0, 4)) == every_frame()
    assert visited(reader.minibatches(1, 4)) == every_frame()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("options", ["", "randomize=10", "maxFramesInMemory=12"])
def test_order_depends_on_seed_and_sweep_only(tiny, method, options):
    config = tiny().config(f"{method}\n{options}")
    first = HTKMLFReader(config, rng_seed=7)
    epochs = [visited(first.minibatches(e, 4)) for e in range(4)]
    assert all(sorted(epoch) == every_frame() for epoch in epochs)
    assert epochs[0] != epochs[1] != every_frame()
    late = HTKMLFReader(config, rng_seed=7)
    assert visited(late.minibatches(3, 5)) == epochs[3]
    assert visited(late.minibatches(1, 1)) == epochs[1]
    assert visited(HTKMLFReader(config, rng_seed=8).minibatches(0, 4)) != epochs[0]


@pytest.mark.parametrize("options", ["", "randomize=8"])
@pytest.mark.parametrize("epoch_size", [10, TOTAL, 40])
def test_epochs_are_cut_from_an_endless_row_of_sweeps(tiny, options, epoch_size):
    config = tiny().config(options)
    reader = HTKMLFReader(config, rng_seed=2)
    row = [frame for sweep in range(5) for frame in visited(HTKMLFReader(config, 2).minibatches(sweep, 6))]
    for epoch in (1, 0, 2):
        minibatches = list(reader.minibatches(epoch, 4, epoch_size))
        assert visited(minibatches) == row[epoch * epoch_size : (epoch + 1) * epoch_size]
        assert {m.num_frames for m in minibatches[:-1]} == {4}


@pytest.mark.parametrize(
    ("mode", "partial"), [("", True), ("miniBatchMode=Partial", True), ("minibatchMode=full", False)]
)
def test_last_short_minibatch_is_given_and_training_told_whether_to_take_it(tiny, mode, partial):
    reader = HTKMLFReader(tiny().config(mode))
    assert [m.num_frames for m in reader.minibatches(0, 10)] == [10, 10, 7]
    assert reader.partial == partial


def test_minibatches_keep_their_values(tiny):
    """A caller may hold on to a minibatch and write into it."""
    corpus = tiny()
    reader = HTKMLFReader(corpus.config("randomize=6"))
    minibatches = []
    for minibatch in reader.minibatches(0, 4):
        minibatches.append({name: matrix.copy() for name, matrix in minibatch.matrices.items()})
        for matrix in minibatch.matrices.values():
            matrix[:] = -1
    again = list(reader.minibatches(0, 4))
    assert len(again) == len(minibatches)
    for kept, minibatch in zip(minibatches, again):
        np.testing.assert_array_equal(kept["features"], minibatch.matrices["features"])
        check_contents(corpus, minibatch)


def test_two_epochs_at_once_do_not_disturb_each_other(tiny):
    corpus = tiny((9, 9, 9, 9, 9, 9))
    config = corpus.config("randomize=18\nmaxFramesInMemory=27")
    reader = HTKMLFReader(config)
    expected = [visited(HTKMLFReader(config).minibatches(e, 5)) for e in (0, 1)]
    pairs = list(zip(reader.minibatches(0, 5), reader.minibatches(1, 5)))
    assert visited(pair[0] for pair in pairs) == expected[0]
    assert visited(pair[1] for pair in pairs) == expected[1]


def test_chunks_are_expected_before_they_are_needed(tiny, monkeypatch):
    """Also those of the next sweep, at the end of one."""
    reader = HTKMLFReader(tiny((20,) * 30).config("randomize=80\nmaxFramesInMemory=120"), 3)
    expected: list[set[int]] = []
    held: list[set[int]] = []
    hold, expect = reader._cache.hold, reader._cache.expect
    monkeypatch.setattr(reader._cache, "hold", lambda chunks: (held.append(set(chunks)), hold(chunks)))
    monkeypatch.setattr(reader._cache, "expect", lambda chunks: (expected.append(set(chunks)), expect(chunks)))
    for epoch in range(2):
        list(reader.minibatches(epoch, 32))
    assert len(held) == 2 * 16
    assert held[1:] == expected[:-1]


@pytest.mark.parametrize("method", METHODS)
def test_little_memory_changes_nothing_but_the_loads(tiny, method):
    lengths = (20,) * 30
    corpus = tiny(lengths)
    large = HTKMLFReader(corpus.config(f"{method}\nrandomize=80"), 3)
    small = HTKMLFReader(corpus.config(f"{method}\nrandomize=80\nmaxFramesInMemory=120"), 3)
    for epoch in range(3):
        for a, b in zip(large.minibatches(epoch, 32), small.minibatches(epoch, 32), strict=True):
            np.testing.assert_array_equal(a.matrices["features"], b.matrices["features"])
            np.testing.assert_array_equal(a.matrices["labels"], b.matrices["labels"])
            check_contents(corpus, b)
    assert large._cache.num_loads == 15  # chunks of 40 frames; read once, then kept
    assert small._cache.num_loads >= 3 * 12
    rows = [buffer.shape[0] for buffer in small._cache.buffers]
    assert rows == [3 * 2 * (20 + 4)]  # three chunks of two utterances with their edges, of fifteen


def test_randomize_auto_uses_the_memory_there_is(tiny):
    corpus = tiny((20,) * 30)
    reader = HTKMLFReader(corpus.config("maxFramesInMemory=120"), 3)
    epoch = visited(reader.minibatches(0, 32))
    assert sorted(epoch) == every_frame((20,) * 30)
    assert reader._cache.buffers[0].shape[0] == 3 * 2 * (20 + 4)
    # Frames of one chunk (two utterances) are never further apart than two blocks of 40.
    where = {frame: position for position, frame in enumerate(epoch)}
    for u in range(0, 30, 2):
        places = [where[(v, t)] for v in (u, u + 1) for t in range(20)]
        assert 20 < max(places) - min(places) < 80


def test_two_feature_and_two_label_streams(tiny):
    corpus = tiny()
    corpus.add_features("plp", list(LENGTHS), dim=2, width=1, extra="contextWindow=1:0")
    corpus.add_labels("region", list(LENGTHS), 3)
    reader = HTKMLFReader(corpus.config(), 1)
    assert reader.dims() == {"features": 15, "labels": 4, "plp": 4, "region": 3}
    assert reader.streams == ["features", "plp", "labels", "region"]
    for minibatch in reader.minibatches(0, 8):
        check_contents(corpus, minibatch)
        for n, (u, t) in enumerate(visited([minibatch])):
            assert minibatch.matrices["plp"][:, n].tolist() == corpus.column("plp", u, t, 1, 0)
            assert minibatch.matrices["region"][:, n].tolist() == [
                float(k == corpus.labels["region"][u][t]) for k in range(3)
            ]


def test_two_feature_streams_without_labels_as_for_an_autoencoder(tiny):
    corpus = tiny()
    del corpus.blocks["labels"]
    corpus.blocks["target"] = corpus.blocks["features"].replace("features=[", "target=[")
    minibatch = next(HTKMLFReader(corpus.config()).minibatches())
    np.testing.assert_array_equal(minibatch.matrices["features"], minibatch.matrices["target"])


@pytest.mark.parametrize(
    ("context", "dim", "left", "right"), [("3", 3, 1, 1), ("5", 3, 2, 2), ("0:3", 3, 0, 3), ("1", 9, 1, 1)]
)
def test_context_window_given_or_inferred(tiny, context, dim, left, right):
    corpus = tiny(width=1)
    corpus.blocks["features"] = corpus.blocks["features"].replace("dim=3", f"dim={dim}\ncontextWindow={context}")
    reader = HTKMLFReader(corpus.config("randomize=none"))
    assert reader.dims()["features"] == 3 * (1 + left + right)
    minibatch = next(reader.minibatches(0, TOTAL))
    for n, (u, t) in enumerate(every_frame()):
        assert minibatch.matrices["features"][:, n].tolist() == corpus.column("features", u, t, left, right)


def test_segments_of_an_archive_end_at_their_own_edges(tiny):
    corpus = tiny((9, 9), width=3)
    archive = corpus.directory / "features" / "u0.htk"
    corpus.write("features.scp", f"a.x={archive}[2,4]\nb.x={archive}[5,8]\nc.x={archive}[0,1]\n")
    corpus.write(
        "labels.mlf", "#!MLF!#\n" + "".join(f'"{k}.lab"\n0 {n} labels_1\n.\n' for k, n in zip("abc", (3, 4, 2)))
    )
    matrix = next(HTKMLFReader(corpus.config("randomize=none")).minibatches(0, 9)).matrices["features"]
    rows = matrix[[0, 3, 6]].astype(int).T.tolist()
    assert rows == [[2, 2, 3], [2, 3, 4], [3, 4, 4], [5, 5, 6], [5, 6, 7], [6, 7, 8], [7, 8, 8], [0, 0, 1], [0, 1, 1]]


def test_plain_scp_lines_take_their_length_from_the_file(tiny):
    corpus = tiny()
    lines = (corpus.directory / "features.scp").read_text().splitlines()
    corpus.write("features.scp", "".join(line.split("[")[0] + "\n" for line in lines))
    for method in METHODS:
        assert sorted(visited(HTKMLFReader(corpus.config(method)).minibatches(0, 4))) == every_frame()


def test_prefix_and_dots_in_an_scp(tiny):
    corpus = tiny()
    text = (corpus.directory / "features.scp").read_text()
    corpus.write("features.scp", text.replace(f"{corpus.directory}/features", "..."))
    (corpus.directory / "features.scp").rename(corpus.directory / "features" / "features.scp")
    corpus.blocks["features"] = corpus.blocks["features"].replace("features.scp", "features/features.scp")
    assert HTKMLFReader(corpus.config()).num_frames == TOTAL
    corpus.write("features/features.scp", text.replace(f"{corpus.directory}/", ""))
    corpus.blocks["features"] += f"\nfeatures=[prefixPathInSCP={corpus.directory}\\]"
    assert HTKMLFReader(corpus.config()).num_frames == TOTAL


def test_one_frame_repeated_for_the_whole_utterance(tiny):
    corpus = tiny()
    corpus.add_features("ivector", [1] * 5, dim=6, width=1, extra="expandToUtterance=true")
    for method in METHODS:
        reader = HTKMLFReader(corpus.config(method))
        assert list(reader.feature_records()) == ["features"]
        minibatch = next(reader.minibatches(0, TOTAL))
        for n, (u, _) in enumerate(visited([minibatch])):
            assert minibatch.matrices["ivector"][:, n].tolist() == corpus.column("ivector", u, 0, 0, 0)


def test_frames_repeated_for_blocks(tiny):
    corpus = tiny()
    blocks = [-(-length // 3) for length in LENGTHS]
    corpus.add_features("ivector", blocks, dim=6, width=1, extra="framesPerVector=3")
    for method in METHODS:
        reader = HTKMLFReader(corpus.config(method))
        minibatch = next(reader.minibatches(0, TOTAL))
        for n, (u, t) in enumerate(visited([minibatch])):
            assert minibatch.matrices["ivector"][:, n].tolist() == corpus.column("ivector", u, t // 3, 0, 0)
    whole = HTKMLFReader(corpus.config(), write=True).utterances()
    for u, utterance in enumerate(whole):
        expected = [corpus.column("ivector", u, t // 3, 0, 0) for t in range(LENGTHS[u])]
        assert utterance.matrices["ivector"].T.tolist() == expected


def test_class_numbers_in_the_mlf_and_lists_of_mlfs(tiny):
    corpus = tiny((3, 4))
    corpus.write("one.mlf", '#!MLF!#\n"set/u0.lab"\n0 1 x 2\n1 3 y 0\n.\n')
    corpus.write("two.mlf", '#!MLF!#\n"set/u1.lab"\n0 400000 z 3\n.\n')
    corpus.write("mlfs", f"{corpus.directory}/one.mlf\n{corpus.directory}/two.mlf\n")
    corpus.blocks["labels"] = f"labels=[mlfFileList={corpus.directory}/mlfs;dim=4]"
    minibatch = next(HTKMLFReader(corpus.config("randomize=none")).minibatches())
    assert minibatch.classes["labels"].tolist() == [2, 0, 0, 3, 3, 3, 3]


def test_labels_mapped_to_target_vectors(tiny):
    corpus = tiny()
    corpus.write("targets", "labels_0 00\n\nlabels_1 01\nlabels_2 10\nlabels_3 11\n \n")
    extra = f"labels=[labelToTargetMappingFile={corpus.directory}/targets;targetDim=2]"
    reader = HTKMLFReader(corpus.config(extra))
    assert reader.dims()["labels"] == 2
    for minibatch in reader.minibatches(0, 8):
        matrix = minibatch.matrices["labels"]
        assert matrix.flags.f_contiguous
        for n, (u, t) in enumerate(visited([minibatch])):
            state = corpus.labels["labels"][u][t]
            assert matrix[:, n].tolist() == [state // 2, state % 2]


def test_page_file_is_gone_after_use(tiny, tmp_path):
    corpus = tiny()
    pages = tmp_path / "pages"
    with HTKMLFReader(corpus.config(f"readMethod=rollingWindow\npageFilePath={pages}")) as reader:
        assert sorted(visited(reader.minibatches(0, 4))) == every_frame()
    assert list(pages.iterdir()) == []
    assert reader.num_utterances == 5
    with pytest.raises(RuntimeError):
        next(reader.minibatches())


def test_utterances_come_whole_in_scp_order_without_labels(tiny):
    corpus = tiny()
    for write in (True, False):
        reader = HTKMLFReader(corpus.config(), write=write)
        assert reader.num_utterances == 5
        assert any("action write reads only for outputs that depend" in warning for warning in reader.warnings) is write
        keys = []
        for utterance in reader.utterances():
            key, matrices = utterance
            keys.append(key)
            matrix = matrices["features"]
            assert list(matrices) == ["features"]
            assert matrix.flags.f_contiguous
            assert matrix.shape == (15, LENGTHS[utterance.line])
            for t in range(matrix.shape[1]):
                assert matrix[:, t].tolist() == corpus.column("features", utterance.line, t, 2, 2)
        assert keys == [f"set/u{u}" for u in range(5)]


def test_bad_utterances_are_passed_over_when_writing(tiny):
    corpus = tiny()
    (corpus.directory / "features" / "u1.htk").unlink()
    (corpus.directory / "features" / "u3.htk").write_bytes(b"short")
    reader = HTKMLFReader(corpus.config(), write=True)
    assert [utterance.line for utterance in reader.utterances()] == [0, 2, 4]
    assert [(key, "u1.htk: No such file" in why, "5 bytes" in why) for key, why in reader.skipped] == [
        ("set/u1", True, False),
        ("set/u3", False, True),
    ]


def test_file_unlike_the_others_is_passed_over_when_writing(tiny):
    corpus = tiny((4, 4, 4))
    path = corpus.directory / "features" / "u1.htk"
    write_htk(path, np.zeros((3, 4), np.float32), FBANK)
    corpus.write("features.scp", (corpus.directory / "features.scp").read_text() + f"again={path}[1,2]\n")
    reader = HTKMLFReader(corpus.config(), write=True)
    assert [utterance.line for utterance in reader.utterances()] == [0, 2]
    assert [(key, "kind FBANK" in why) for key, why in reader.skipped] == [("set/u1", True), ("again", True)]


def test_open_reader_goes_by_reader_type(tiny):
    corpus = tiny()
    assert isinstance(open_reader(corpus.config("readerType=htkmlfreader")), HTKMLFReader)
    with pytest.raises(ConfigError, match=r"r.cntk:2: readerType HTKMLReader is unknown; .*did you mean HTKMLFReader"):
        open_reader(corpus.config("readerType=HTKMLReader"))
