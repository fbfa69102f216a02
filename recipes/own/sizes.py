"""Sizes that follow from the amount of training data: tied states, layers of the network, epochs.

They are scaled from those of recipe lvcsr, which were chosen on 40 minutes of AN4, to those that are usual for WSJ
(15 hours, 700 and 200 for the trees, six layers of 2048).
"""

from dataclasses import dataclass

FRAMES_PER_HOUR = 360_000
REFERENCE_HOURS = 0.66  # of AN4's training set
MINIBATCH = 512  # frames
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

    @property
    def hidden(self) -> str:
        """The hidden layers, as in layerSizes."""
        size = 128 * round(6 * self.scale ** (1 / 3))
        return f"{min(max(size, 256), 2048)}*{4 + (self.scale > 8) + (self.scale > 80)}"

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
            f"Hidden={self.hidden}", f"Epochs={epochs}", f"Dropout=0.2*{epochs - before - last}:0.1*{before}:0*{last}",
            f"EpochFrames={max(self.frames // MINIBATCH, 1) * MINIBATCH}",
        ]  # fmt: skip
