"""SpecAugment in readers of frames: which values are masked, by what, and when."""

import numpy as np
import pytest

from readers.config.feature_record import FeatureRecord
from readers.errors import ConfigError
from readers.htk.parameter_file import parse_kind, write_htk
from readers.minibatches.masks import MaskOptions, SpecAugment, channels_of
from readers.sources.frames.htk_mlf_reader import HTKMLFReader

LENGTHS = (30, 25, 40, 11, 33, 27)
TOTAL = sum(LENGTHS)
DIM, LEFT = 8, 2
MASKS = "specAugment=[timeMasks=2;timeWidth=6;frequencyMasks=1;frequencyWidth=2]"
OPTIONS = MaskOptions(time_width=6, frequency_masks=1, frequency_width=2)


@pytest.fixture
def corpus(tiny):
    """Frame t of utterance u holds 1000 u + t + 0.25 d in row d; the rows are four channels and their deltas."""
    corpus = tiny(LENGTHS, dim=DIM)
    for number, frames in enumerate(corpus.frames["features"]):
        write_htk(corpus.directory / "features" / f"u{number}.htk", frames, parse_kind("FBANK_D"))
    return corpus


def reader_of(corpus, options="", masks=MASKS, seed=3) -> HTKMLFReader:
    return HTKMLFReader(corpus.config(options, f"features=[{masks}]"), rng_seed=seed)


def expected(corpus, reader, plain: np.ndarray, sweep: int, seed=3) -> np.ndarray:
    """Return the masked columns for columns as they are in the files, one by one."""
    masks = SpecAugment(OPTIONS, [f"set/u{u}" for u in range(len(LENGTHS))], np.array(LENGTHS), np.arange(8) % 4, seed)
    found = plain.copy()
    for column in range(plain.shape[1]):
        u, t = divmod(int(plain[LEFT * DIM, column]), 1000)
        times, channels = masks.draw(np.array([u]), sweep)
        mean = corpus.frames["features"][u].mean(axis=1)
        for offset in range(-LEFT, LEFT + 1):
            frame = min(max(t + offset, 0), LENGTHS[u] - 1)
            for row in range(DIM):
                in_time = any(begin <= frame < end for begin, end in times[:, :, 0].T)
                in_channel = any(begin <= row % 4 < end for begin, end in channels[:, :, 0].T)
                if in_time or in_channel:
                    found[(LEFT + offset) * DIM + row, column] = mean[row]
    return found


@pytest.mark.parametrize("options", ["", "randomize=none", "maxFramesInMemory=80", "readMethod=rollingWindow"])
def test_frames_are_masked_as_drawn_for_their_utterance(corpus, options):
    reader = reader_of(corpus, options)
    for epoch in (0, 1):
        plain = list(reader.minibatches(epoch, 32))
        masked = list(reader.training_minibatches(epoch, 32))
        assert len(plain) == len(masked)
        changed = 0
        for one, other in zip(plain, masked):
            wanted = expected(corpus, reader, one.matrices["features"], sweep=epoch)
            np.testing.assert_allclose(other.matrices["features"], wanted, rtol=1e-6)
            np.testing.assert_array_equal(other.matrices["labels"], one.matrices["labels"])
            changed += np.count_nonzero(wanted != one.matrices["features"])
        assert 0.05 < changed / (TOTAL * 5 * DIM) < 0.6


@pytest.mark.parametrize("options", ["frameMode=false", "frameMode=false\ntruncated=true"])
def test_whole_utterances_have_the_masks_of_their_frames(corpus, options):
    reader = reader_of(corpus, f"{options}\nnbruttsineachrecurrentiter=2")
    for one, other in zip(reader.minibatches(1, 7), reader.training_minibatches(1, 7)):
        kept = ~one.layout.gaps.reshape(-1)
        plain, masked = (minibatch.matrices["features"][:, kept] for minibatch in (one, other))
        np.testing.assert_allclose(masked, expected(corpus, reader, plain, sweep=1), rtol=1e-6)
        assert not other.matrices["features"][:, ~kept].any()


def test_evaluation_and_statistics_see_the_data_as_they_are(corpus):
    with_masks, without = reader_of(corpus), reader_of(corpus, masks="")
    for one, other in zip(with_masks.minibatches(0, 16), without.minibatches(0, 16)):
        np.testing.assert_array_equal(one.matrices["features"], other.matrices["features"])
    for one, other in zip(without.training_minibatches(0, 16), without.minibatches(0, 16)):
        np.testing.assert_array_equal(one.matrices["features"], other.matrices["features"])
    assert np.array_equal(next(iter(with_masks.utterances())).matrices["features"],
                          next(iter(without.utterances())).matrices["features"])  # fmt: skip


@pytest.mark.parametrize("options", ["", "frameMode=false"])
def test_a_resumed_training_reads_the_same(corpus, options):
    first, late = reader_of(corpus, options), reader_of(corpus, options)
    epochs = [[m.matrices["features"] for m in first.training_minibatches(e, 20, 70)] for e in range(4)]
    for one, other in zip(epochs[3], late.training_minibatches(3, 20, 70)):
        np.testing.assert_array_equal(one, other.matrices["features"])


def test_jobs_with_shares_of_an_epoch_see_the_masks_of_the_epoch(corpus):
    reader = reader_of(corpus)
    whole = np.hstack([m.matrices["features"] for m in reader.training_minibatches(1, 20, 80)])
    shares = [np.hstack([m.matrices["features"] for m in reader.training_minibatches(e, 20, 40)]) for e in (2, 3)]
    np.testing.assert_array_equal(np.hstack(shares), whole)


def test_seeds_and_sweeps_differ(corpus):
    def sorted_values(reader, epoch):
        return np.sort(np.hstack([m.matrices["features"] for m in reader.training_minibatches(epoch, 32)]).ravel())

    one = sorted_values(reader_of(corpus), 0)
    assert np.array_equal(one, sorted_values(reader_of(corpus), 0))
    assert not np.array_equal(one, sorted_values(reader_of(corpus), 1))
    assert not np.array_equal(one, sorted_values(reader_of(corpus, seed=4), 0))


def test_widths_and_places_are_uniform():
    frames, options = 200, MaskOptions(time_masks=2, time_width=20, frequency_masks=2, frequency_width=8)
    count = 4000
    masks = SpecAugment(options, [f"u{n}" for n in range(count)], np.full(count, frames), np.arange(40), 0)
    times, channels = masks.draw(np.arange(count), 0)
    for drawn, widest, length in ((times, 20, frames), (channels, 8, 40)):
        begins, ends = drawn
        assert begins.min() == 0
        assert ends.max() == length
        counts = np.bincount((ends - begins).ravel(), minlength=widest + 1)
        assert len(counts) == widest + 1
        np.testing.assert_allclose(counts / (2 * count), 1 / (widest + 1), atol=0.015)
        places = begins / np.maximum(1, length - (ends - begins))
        np.testing.assert_allclose(np.quantile(places, [0.25, 0.5, 0.75]), [0.25, 0.5, 0.75], atol=0.03)
        assert abs(np.corrcoef(begins)[0, 1]) < 0.05  # two masks of an utterance are independent
    short = SpecAugment(options, ["a"] * 500, np.full(500, 30), np.arange(40), 0)
    short._hashes = masks._hashes[:500]
    assert np.diff(short.draw(np.arange(500), 0)[0], axis=0).max() == 6  # a fifth of 30 frames


@pytest.mark.parametrize(
    ("kind", "dim", "rows"),
    [
        ("FBANK", 3, [0, 1, 2]),
        ("FBANK_D_A_Z", 6, [0, 1, 0, 1, 0, 1]),
        ("MELSPEC_D", 4, [0, 1, 0, 1]),
        ("FBANK_E_D", 6, [0, 1, -1, 0, 1, -1]),
        ("FBANK_E_D_N", 5, [0, 1, 0, 1, -1]),
        ("FBANK_D", 5, None),
        ("MFCC_D", 4, None),
        (None, 4, None),
    ],
)
def test_blocks_of_a_kind_share_their_channels(kind, dim, rows):
    found = channels_of(FeatureRecord({"TARGETKIND": kind} if kind else {}), dim)
    assert (None if found is None else found.tolist()) == rows


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        (
            "specAugment=[timeMask=2]",
            r"r.cntk:\d+: reader.features.specAugment.timeMask is not known here; did you mean",
        ),
        ("specAugment=[timeMasks=-1]", r"timeMasks is -1; expected 0 to 100"),
        ("specAugment=[timeFraction=0]", r"timeFraction is 0; expected above 0, at most 1"),
        ("specAugment=[frequencyWidth=5]", r"frequencyWidth is 5; expected at most 4, the number of channels"),
        ("specAugment=3", r"reader.features.specAugment is '3'; expected a block"),
    ],
)
def test_wrong_settings_are_named(corpus, masks, message):
    with pytest.raises(ConfigError, match=message):
        reader_of(corpus, masks=masks)


def test_frequency_masks_need_a_spectrum(tiny):
    corpus = tiny(LENGTHS, dim=DIM)
    with pytest.raises(ConfigError, match=r"frequencyMasks is 2, but the rows of the features are not channels"):
        reader_of(corpus, masks="specAugment=[]")
    reader = reader_of(corpus, masks="specAugment=[frequencyMasks=0;timeWidth=5]")
    assert next(reader.training_minibatches(0, 4)).num_frames == 4


def test_a_repeated_frame_cannot_be_masked(corpus):
    corpus.add_features("ivector", [1] * len(LENGTHS), dim=6, width=1, extra=f"expandToUtterance=true\n{MASKS}")
    with pytest.raises(ConfigError, match=r"ivector.specAugment is given beside expandToUtterance; expected only one"):
        HTKMLFReader(corpus.config())
