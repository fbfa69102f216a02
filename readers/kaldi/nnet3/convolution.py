"""The geometry of convolutions over time and height: which values of which frames a filter sees.

Source: struct ConvolutionModel in convolution.h of Kaldi.
"""

from dataclasses import dataclass

from readers.kaldi.objects import KaldiObjects

MOST_SIZE = 10**6  # filters, heights and their products
FURTHEST = 10_000  # frames and heights of an offset
MOST_HOLES = 100  # places of the rectangle around all offsets, for each offset

_SIZES = {
    "<NumFiltersIn>": "num_filters_in",
    "<NumFiltersOut>": "num_filters_out",
    "<HeightIn>": "height_in",
    "<HeightOut>": "height_out",
    "<HeightSubsampleOut>": "step",
}


@dataclass(frozen=True)
class ConvolutionModel:
    """A convolution of images, of which each frame is a column of `height_in` pixels with `num_filters_in` channels.

    Attributes
    ----------
    num_filters_in, num_filters_out : int
    height_in, height_out : int
    step : int
        Heights of the input from one height of the output to the next.
    offsets : tuple of (int, int)
        Frame and height that a filter sees, relative to its own, in rising order.  Heights outside the image are 0.
    required : list of int
        The frames that cannot be missing, in rising order; others are 0 beyond the ends of an utterance.
    """

    num_filters_in: int
    num_filters_out: int
    height_in: int
    height_out: int
    step: int
    offsets: tuple[tuple[int, int], ...]
    required: list[int]

    @property
    def time_offsets(self) -> list[int]:
        """The frames that a filter sees, in rising order."""
        return sorted({time for time, _ in self.offsets})


def read_convolution_model(objects: KaldiObjects) -> ConvolutionModel:
    """Read the geometry of a convolution.

    Parameters
    ----------
    objects : KaldiObjects

    Returns
    -------
    ConvolutionModel

    Raises
    ------
    FormatError
        For sizes and offsets that make no convolution.
    """
    objects.expect("<ConvolutionModel>")
    sizes = {}
    for token, label in _SIZES.items():
        objects.expect(token)
        sizes[label] = objects.integer(1, MOST_SIZE)
    objects.expect("<Offsets>")
    begin = objects.position
    offsets = objects.integer_pairs()
    objects.expect("<RequiredTimeOffsets>")
    required = objects.integers().tolist()
    objects.expect("</ConvolutionModel>")
    model = ConvolutionModel(offsets=tuple(offsets), required=required, **sizes)
    if not offsets or offsets != sorted(set(offsets)) or max(abs(k) for pair in offsets for k in pair) > FURTHEST:
        objects.refuse(f"{len(offsets)} offsets", f"rising pairs of frame and height up to {FURTHEST}", begin)
    if not required or required != sorted(set(required)) or not set(required) <= set(model.time_offsets):
        objects.refuse(f"required offsets {required[:10]}", f"some of {model.time_offsets[:10]}", begin)
    heights = [height for _, height in offsets]
    num_places = len(model.time_offsets) * (max(heights) - min(heights) + 1)
    if num_places > MOST_HOLES * len(offsets):
        objects.refuse(f"{len(offsets)} offsets among {num_places}", f"at least one in {MOST_HOLES}", begin)
    if max(model.num_filters_in * model.height_in, model.num_filters_out * model.height_out) > MOST_SIZE:
        objects.refuse("images of more rows", f"at most {MOST_SIZE}", begin)
    return model
