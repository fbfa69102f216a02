"""Blocks `chain` of a reader: each excerpt gets the graphs of its frames; faults are found before training."""

import numpy as np
import pytest

from readers.errors import ArgonautError, FormatError
from readers.sources.chain import AlignedNumerator, TranscriptNumerator, write_denominator, write_numerators
from readers.sources.chain.denominator_file import fingerprint
from readers.sources.frames.htk_mlf_reader import HTKMLFReader
from tests.readers.sources.chain.test_chain_files import OUTPUTS, denominator, ints, transcript
from tests.readers.sources.frames.test_data_check import check as validated

LENGTHS = (15, 40, 28, 13)
SEQUENCES = "frameMode=false; nbruttsineachrecurrentiter=2; frameSubsampling=3"


def numerator(num_frames):
    """a, then b from the second column on."""
    count = -(-num_frames // 3)
    return AlignedNumerator(count, num_frames, ints(0, 2), ints(1, 3), ints(0, 1), ints(0, count - 2))


@pytest.fixture
def corpus(tiny):
    """A corpus with numerators of all utterances."""
    found = tiny(LENGTHS)
    found.write = lambda numerators, subsampling=3: _write(found.directory, numerators, subsampling)
    found.write({f"u{i}": numerator(count) for i, count in enumerate(LENGTHS)})
    return found


def _write(directory, numerators, subsampling):
    write_denominator(directory / "den", denominator(), OUTPUTS)
    metadata = {"fingerprint": fingerprint(denominator()), "num_outputs": 4, "subsampling": subsampling}
    write_numerators(directory / "num", numerators.items(), metadata)


def opened(corpus, options=SEQUENCES, block="chain=[denominator={0}/den; numerators={0}/num]"):
    return HTKMLFReader(corpus.config(options, block.replace("{0}", str(corpus.directory))))


def placed_in(reader):
    for minibatch in reader.minibatches(0):
        yield from ((one, minibatch) for one in minibatch.layout.supervisions)


def test_whole_utterances(corpus):
    reader = opened(corpus)
    found = {one.supervision.name: one.num_frames for one, _ in placed_in(reader)}
    assert found == {f"set/u{i}": -(-count // 3) for i, count in enumerate(LENGTHS)}
    assert {str(corpus.directory / name) for name in ("den", "num")} <= set(reader.input_files())
    assert reader.is_supervised


def test_chunks_have_the_graph_of_their_frames(corpus):
    found = {}
    for one, minibatch in placed_in(opened(corpus, SEQUENCES + "; chunkFrames=12; chunkContext=1:2")):
        layout, graph = minibatch.layout, one.supervision.numerator
        columns = (one.step + np.arange(one.num_frames)) * layout.num_sequences + one.slot
        assert not layout.uncounted.reshape(-1)[columns].any()
        assert one.supervision.num_frames == one.num_frames == len(graph.frame_arcs) - 1
        outputs = [set(graph.output[b:e].tolist()) for b, e in zip(graph.frame_arcs, graph.frame_arcs[1:])]
        found.setdefault(one.supervision.name, []).append(outputs)
    assert len(found["set/u1"]) > 1
    for i, count in enumerate(LENGTHS):
        chunks = found[f"set/u{i}"]
        assert sum(map(len, chunks)) == -(-count // 3)
        assert sum({0} == chunk[0] for chunk in chunks) == 1  # the only chunk that begins with the first frame of a
        assert sum(chunk[-1] <= {2, 3} for chunk in chunks) == 1  # the last frame is b's


def test_utterances_without_a_fitting_numerator_are_skipped(corpus):
    corpus.write({"u0": numerator(15), "u1": numerator(39), "u3": numerator(13)})
    reader = opened(corpus)
    assert {one.supervision.name for one, _ in placed_in(reader)} == {"set/u0", "set/u3"}
    reasons = dict(reader.skipped)
    assert "a numerator of 39 frames; expected 40, as the features have" in reasons["set/u1"]
    assert "no numerator of 'set/u2'; expected one for every utterance" in reasons["set/u2"]
    corpus.write({"u0": numerator(15)})
    with pytest.raises(FormatError, match=r"3 of 4 utterances cannot be used.*no numerator of 'set/u2'"):
        opened(corpus)


def test_numerators_from_transcripts_need_whole_utterances(corpus):
    plain = transcript()
    numerators = {
        f"u{i}": TranscriptNumerator(-(-n // 3), n, plain.from_state, plain.to_state, plain.output, plain.final)
        for i, n in enumerate(LENGTHS)
    }
    corpus.write(numerators)
    assert all(one.supervision.numerator.frame_arcs is None for one, _ in placed_in(opened(corpus)))
    with pytest.raises(FormatError, match="'set/u0': a numerator from a transcript, for the whole utterance"):
        opened(corpus, SEQUENCES + "; chunkFrames=12")


@pytest.mark.parametrize(
    ("options", "block", "message"),
    [
        ("frameMode=true", None, "reader.chain: graphs are of utterances in order; expected frameMode=false"),
        ("frameMode=false; truncated=true", None, "expected truncated=false; chunkFrames cuts utterances"),
        ("frameMode=false", None, "numerators have an output for every 3 frames; expected 1, the reader's"),
        (SEQUENCES, "chain=[denominator={0}/den]", "reader.chain without numerators; expected a file"),
        (SEQUENCES, "chain=[numerators={0}/num]", "reader.chain without denominator; expected a file"),
        (SEQUENCES, "chain=[denominator={0}/none; numerators={0}/num]", "denominator: .*none: No such file"),
        (SEQUENCES, "chain=[denominator={0}/den; numerators={0}/none]", "numerators: .*none: No such file"),
        (SEQUENCES, "chain=[denominator={0}/num; numerators={0}/num]", "num: archive of numerators; expected an arch"),
    ],
)
def test_wrong_blocks_are_refused(corpus, options, block, message):
    with pytest.raises(ArgonautError, match=message):
        opened(corpus, options, *([block] if block else []))


def test_labels_in_another_order_than_the_outputs_are_refused(corpus):
    block = "labels=[mlfFile={0}/labels.mlf; labelDim=4; labelMappingFile={0}/names]"
    corpus.blocks["labels"] = block.replace("{0}", str(corpus.directory))
    names = corpus.directory / "names"
    text = (corpus.directory / "labels.mlf").read_text()
    for number, name in enumerate(OUTPUTS):
        text = text.replace(f"labels_{number} ", f"{name} ")
    (corpus.directory / "labels.mlf").write_text(text)
    names.write_text("\n".join(OUTPUTS))
    opened(corpus)
    names.write_text("\n".join([*OUTPUTS[:2], OUTPUTS[3], OUTPUTS[2]]))
    message = f"den: '{OUTPUTS[2]}' is output 2; expected 3, its place in the labelMappingFile of labels; use the senon"
    with pytest.raises(FormatError, match=message):
        opened(corpus)
    corpus.blocks["chain"] = f"chain=[denominator={corpus.directory}/den; numerators={corpus.directory}/num]"
    ((fault,), _) = validated(corpus, SEQUENCES)
    assert message in fault
    names.write_text("\n".join(["b_s3", *OUTPUTS[:2], "x", OUTPUTS[2]]))  # not the outputs: of another target
    corpus.blocks["labels"] = corpus.blocks["labels"].replace("labelDim=4", "labelDim=5")
    assert validated(corpus, SEQUENCES)[0] == []


def test_context_that_is_most_of_the_work_is_told(corpus):
    usual = opened(corpus, SEQUENCES + "; chunkFrames=12; chunkContext=3:3")
    assert not usual.warnings
    (warning,) = opened(corpus, SEQUENCES + "; chunkFrames=12; chunkContext=1000:1000").warnings
    assert warning.startswith("r.cntk:2: reader.chunkContext is 1000:1000, so that the network computes ")
    assert warning.endswith(" columns for each one that counts; expected as many as it looks to the left and right, or "
                            "longer chunks")  # fmt: skip
