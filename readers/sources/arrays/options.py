"""Options of ArrayReader and its streams."""

from dataclasses import dataclass

from readers.config.options import Options, option
from readers.minibatches.masks import MaskOptions
from readers.sources.frames.htk_mlf_options import ReaderOptions


@dataclass(frozen=True, kw_only=True)
class ArrayReaderOptions(ReaderOptions):
    """How an ArrayReader visits its arrays."""

    longest: int | None = option(
        None, "longest utterance; longer ones are skipped (default: any)", unit="frames", least=1,
        cntk="maxUtteranceFrames",
    )  # fmt: skip

    @property
    def max_utterance(self) -> int | None:
        return self.longest


@dataclass(frozen=True, kw_only=True)
class ArrayFeatures(Options):
    """A stream of numbers."""

    context: tuple[int, ...] = option(
        (0, 0), "frames before and after each frame that the network gets with it", unit="frames", least=0
    )
    frames_per_vector: int = option(
        1, "frames of the utterance for which each frame of the array is repeated; 0: all of them", unit="frames",
        least=0,
    )  # fmt: skip
    masks: MaskOptions | None = option(None, "random masks of training", cntk="specAugment")

    def __post_init__(self) -> None:
        super().__post_init__()
        two = len(self.context) == 2
        self.require("context", two, f"is {self.context}; expected two numbers of frames, before and after")
        alone = self.frames_per_vector == 1 or (not any(self.context) and self.masks is None)
        self.require(
            "frames_per_vector", alone, f"is {self.frames_per_vector}; expected 1 beside {{context}} or {{masks}}"
        )


@dataclass(frozen=True, kw_only=True)
class ArrayLabels(Options):
    """A stream of class numbers."""

    num_classes: int | None = option(
        None, "number of classes, the network's outputs; None: the largest class number of the arrays and 1", least=1
    )
