"""Shapes of matrices, whose number of columns may depend on the number of frames in a minibatch."""

from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple


@dataclass(frozen=True)
class PerFrame:
    """`columns` columns for every `frames` frames, in lowest terms and not 1 to 1: the result of reshaping.

    Attributes
    ----------
    columns, frames : int
    """

    columns: int
    frames: int

    def __str__(self) -> str:
        return f"{self.columns if self.columns > 1 else ''}*{f'/{self.frames}' if self.frames > 1 else ''}"


Columns = int | None | PerFrame


class Shape(NamedTuple):
    """Rows and columns of a matrix.

    Attributes
    ----------
    rows : int
    cols : int, PerFrame or None
        None: one column per frame, while the number of frames is not known.
    """

    rows: int
    cols: Columns

    def __str__(self) -> str:
        return f"{self.rows}x{'*' if self.cols is None else self.cols}"

    @property
    def num_columns(self) -> int:
        """The number of columns, where it does not depend on the number of frames."""
        assert isinstance(self.cols, int)
        return self.cols

    @property
    def has_frames(self) -> bool:
        """Whether the number of columns depends on the number of frames."""
        return not isinstance(self.cols, int)

    def with_columns(self, num_columns: int) -> "Shape":
        """The shape with a number of columns, if it has a column per frame."""
        return self if self.cols is not None else Shape(self.rows, num_columns)

    def with_rows(self, num_rows: int) -> "Shape | None":
        """Return the shape with this number of rows and the same number of elements; None if that is not possible."""
        if num_rows < 1:
            return None
        if isinstance(self.cols, int):
            return None if self.rows * self.cols % num_rows else Shape(num_rows, self.rows * self.cols // num_rows)
        ratio = _ratio(self.cols) * Fraction(self.rows, num_rows)
        one_per_frame = ratio == 1
        return Shape(num_rows, None if one_per_frame else PerFrame(ratio.numerator, ratio.denominator))


def _ratio(cols: Columns) -> Fraction:
    """Columns per frame, or fixed columns."""
    if isinstance(cols, PerFrame):
        return Fraction(cols.columns, cols.frames)
    return Fraction(1 if cols is None else cols)


def is_multiple(cols: Columns, of: Columns) -> bool:
    """Whether one number of columns may be a multiple of another, without knowing the number of frames."""
    if isinstance(cols, int) != isinstance(of, int):
        return isinstance(of, int)
    return _ratio(of) > 0 and (_ratio(cols) / _ratio(of)).denominator == 1


def broadcast_shape(x: Shape, y: Shape) -> Shape | None:
    """The shape that both operands are expanded to; None if they do not fit (CNTK book 2.4.3, Plus).

    Rows are equal, or 1 in one operand, or a multiple of the rows of a single column, which is repeated downwards: one
    number per channel of an image. Columns are equal, or one number is a multiple of the other; an unknown number of
    frames counts as a multiple of any fixed number.
    """
    fewer, more = sorted((x, y), key=lambda shape: shape.rows)
    rows = more.rows
    if fewer.rows not in (1, rows) and (fewer.cols != 1 or rows % fewer.rows):
        return None
    if is_multiple(x.cols, y.cols):
        return Shape(rows, x.cols)
    return Shape(rows, y.cols) if is_multiple(y.cols, x.cols) else None
