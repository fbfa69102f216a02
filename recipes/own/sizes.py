"""Sizes that follow from the amount of training data: tied states, layers, epochs; and the search options.

Those of networks by cross entropy are scaled from those of recipe lvcsr, which were chosen on 40 minutes of AN4, to
those that are usual for WSJ (15 hours, 700 and 200 for the trees, six layers of 2048).  Those of networks by
lattice-free MMI were chosen on two hours of speechocean762.
"""

from dataclasses import dataclass

from recipes.tuning import Grid

FRAMES_PER_HOUR = 360_000
REFERENCE_HOURS = 0.66  # of AN4's training set
MINIBATCH = 512  # frames
FIRST_UNITS = 768  # at most, of a layer of the first network, which only aligns; 1152 take an hour for 3 of speech
SUBSAMPLING = 3  # frames of an output of a network by lattice-free MMI
WARPED_COPIES = 5  # of the training set, with the plain one; see recipes.an4.prepare.WARPS
SPEEDS = ("0.9", "1.1")  # of further copies, for the final network


@dataclass(frozen=True)
class Sizes:
    """Sizes for training data of `frames` frames."""

    frames: int

    @property
    def scale(self) -> float:
        return max(self.frames / FRAMES_PER_HOUR, 0.01) / REFERENCE_HOURS

    @property
    def threshold(self) -> float:
        """Least gain of a split of a decision tree, in ln likelihood."""
        return round(400 * self.scale**0.2, -1)

    @property
    def min_frames(self) -> float:
        """Least number of frames of a tied state."""
        return round(100 * self.scale**0.2, -1)

    def hidden(self, first: bool) -> str:
        """Return the hidden layers, as in layerSizes.  first: of the network for realignment."""
        size = 128 * round(6 * self.scale ** (1 / 3))
        most = FIRST_UNITS if first else 2048
        return f"{min(max(size, 256), most)}*{4 + (self.scale > 8) + (self.scale > 80)}"

    @property
    def epochs(self) -> int:
        """Epochs for the warped copies; an epoch has as many frames as one copy of the training set."""
        return min(max(round(16 / self.scale**0.25), 8), 16)

    def arguments(self, first: bool) -> list[str]:
        """Return the settings of config/own.cntk; first: of the network for realignment, with half the epochs.

        The final network also learns copies at other speeds, with as many epochs more as there are copies more.
        """
        epochs = self.epochs // 2 if first else round(self.epochs * (1 + len(SPEEDS) / WARPED_COPIES))
        last = max(round(epochs / 8), 1)
        before = round(epochs * 3 / 16)
        return [
            f"Hidden={self.hidden(first)}", f"Epochs={epochs}",
            f"Dropout=0.2*{epochs - before - last}:0.1*{before}:0*{last}",
            f"EpochFrames={max(self.frames // MINIBATCH, 1) * MINIBATCH}",
        ]  # fmt: skip


ENOUGH_HOURS = 1.0  # of training speech, with which the final network is trained by lattice-free MMI by default
TDNNF_HOURS = 1.95  # of speechocean762's training set
PHONE_ORDER = 3  # of the phone language model of the denominator
TUNING_MINUTES = 20  # of the development set, with which the search options are chosen

# The best path depends on the ratio of both weights. Two small ones only widen the beam: on speechocean762, weights of
# 0.7 take 20 minutes for 10 minutes of speech.
LATTICE_FREE_GRID = Grid(
    start={"lm_scale": 1.0, "word_penalty": 0.0, "sil_cost": 0.0},
    values={
        "lm_scale": (0.7, 0.85, 1.0, 1.2, 1.5, 1.8, 2.2),
        "word_penalty": (-1.0, 0.0, 1.0, 2.0, 4.0),
        "sil_cost": (-1.0, 0.0, 1.0),
    },
    # Without slack the search takes half the time: on 60 utterances of speechocean762's development set, 0.046 of real
    # time at beam 9, with WER 58.7 %, against 0.09 and 58.1 % with the default slack.
    beams=(7.5, 8.0, 8.5, 9.0, 10.0),
    fixed={"acweight": 1.0, "word_end_beam_frac": 1.0, "slack_decay": 0.0},
    # With the bundle `en` and 1,047 words, beams 9, 8.5 and 8 change 1.7, 3.0 and 5.2 % of the words of 10: WER 30.5,
    # 30.8 and 31.5 % instead of 30.6 %, in 0.47, 0.33 and 0.26 of the time.
    changed=0.04,
)


@dataclass(frozen=True)
class TdnnfSizes:
    """Sizes of the final network by lattice-free MMI, for training data of `frames` frames."""

    frames: int

    @property
    def scale(self) -> float:
        return max(self.frames / FRAMES_PER_HOUR, 0.01) / TDNNF_HOURS

    @property
    def threshold(self) -> float:
        """Least gain of a split of a decision tree, in ln likelihood of all warped copies."""
        return round(200 * self.scale**0.2, -1)

    @property
    def min_frames(self) -> float:
        """Least number of frames, of all warped copies, of an output."""
        return round(100 * self.scale**0.2, -1)

    @property
    def units(self) -> int:
        """Units of a layer."""
        return min(max(64 * round(7 * self.scale**0.25), 256), 1024)

    @property
    def bottleneck(self) -> int:
        """Units of a layer's bottleneck."""
        return min(max(32 * round(3 * self.scale**0.25), 64), 192)

    @property
    def epochs(self) -> int:
        """Epochs, of as many frames as one copy of the training set has."""
        return min(max(round(50 / self.scale**0.5), 16), 80)

    def arguments(self) -> list[str]:
        """Return the settings of config/lfmmi.cntk."""
        last = max(round(self.epochs / 10), 1)
        before = round(self.epochs * 3 / 20)
        return [
            f"Units={self.units}", f"Bottleneck={self.bottleneck}", f"FinalEpochs={self.epochs}",
            f"FinalDropout=0.3*{self.epochs - before - last}:0.15*{before}:0*{last}",
            f"EpochColumns={max(self.frames // SUBSAMPLING, 1)}",
        ]  # fmt: skip
