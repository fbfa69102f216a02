"""The job that draws an alignment below its spectrogram, the trials of a tuning, or the best paths of a lattice."""

from dataclasses import dataclass
from pathlib import Path

from readers.common.files import require_writable
from readers.config.options import Options, option
from readers.errors import FormatError

Intervals = dict[str, list[tuple[float, float, str]]]  # tier -> (start, end, text), in seconds
TIERS = {1: ("labels",), 2: ("words", "phones"), 3: ("words", "phones", "states")}  # by number of levels, highest first


def is_png(path: Path) -> bool:
    """Whether a file is named as a PNG file."""
    return path.suffix.lower() == ".png"


@dataclass(frozen=True, kw_only=True)
class PictureOptions(Options):
    """What is drawn, and where."""

    source: Path = option(help="file to draw", flag="source")
    output: Path = option(
        help="picture to write", check=is_png, expected="the name of a PNG file", flag="-o --output", metavar="PNG"
    )

    @property
    def inputs(self) -> list[Path | None]:
        """The files that are read."""
        return [self.source]

    def draw(self) -> None:
        """Write the picture."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class AlignmentPictureOptions(PictureOptions):
    """Options of the picture of an alignment.

    Raises
    ------
    OptionFault
        Unless one alignment is given, and for options of the other kind.
    """

    source: Path = option(help="audio file", flag="source")
    mlf: Path | None = option(None, "alignment, one or several levels")
    textgrid: Path | None = option(None, "TextGrid or ELAN file (.eaf) of the whole recording, with any tiers")
    utterance: str | None = option(None, "entry of the MLF (default: name of the audio file)", metavar="NAME")
    channel: int | None = option(None, "channel of the audio file, from 0", least=0)
    states: bool = option(False, "draw the states as well")

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("mlf", bool(self.mlf or self.textgrid), "is missing; expected it or {textgrid}")
        self.require("mlf", not (self.mlf and self.textgrid), "is given beside {textgrid}; expected one")
        for name in ("utterance", "states") if self.textgrid else ():
            wrong = "is given with {textgrid}; expected it with {mlf} only"
            self.require(name, not getattr(self, name), wrong)

    @property
    def inputs(self) -> list[Path | None]:
        return [self.source, self.mlf, self.textgrid]

    def draw(self) -> None:
        from readers.audio import read_audio
        from recipes.pictures.alignment import draw_alignment

        name = self.utterance or self.source.stem
        tiers = _tiers_of_textgrid(self.textgrid) if self.textgrid else _tiers_of_mlf(self, name)
        samples, rate = read_audio(self.source, self.channel)
        draw_alignment(samples, rate, tiers, self.output, title=name)


@dataclass(frozen=True, kw_only=True)
class TuningPictureOptions(PictureOptions):
    """Options of the picture of a tuning."""

    source: Path = option(help="tune.json of a recipe", flag="source")

    def draw(self) -> None:
        from recipes.decoding import read_trials
        from recipes.pictures.tuning import draw_tuning

        draw_tuning(read_trials(self.source), self.output)


@dataclass(frozen=True, kw_only=True)
class LatticePictureOptions(PictureOptions):
    """Options of the picture of a lattice."""

    source: Path = option(help="lattice (SLF)", flag="source")
    links: int = option(100, "number of links drawn at most", least=1)

    def draw(self) -> None:
        from readers.htk import read_slf
        from recipes.pictures.lattice import draw_lattice

        draw_lattice(read_slf(self.source), self.output, self.links)


def plot(options: PictureOptions) -> Path:
    """Draw an alignment below the spectrogram of its recording, the trials of a tuning, or a lattice.

    Parameters
    ----------
    options : AlignmentPictureOptions, TuningPictureOptions or LatticePictureOptions
        Their type says what is drawn.

    Returns
    -------
    Path
        The picture, a PNG file.

    Raises
    ------
    ArgonautError, OSError
        For files that cannot be read, and for an alignment without the recording or without times.

    Examples
    --------
    ``plot(AlignmentPictureOptions(source="a.wav", textgrid="a.TextGrid", output="a.png"))``
    """
    require_writable(options.output, options.inputs)
    options.draw()
    return options.output


def _tiers_of_textgrid(path: Path) -> Intervals:
    """Return the intervals of each tier of a TextGrid or an ELAN file.  Raises FormatError if there are none."""
    from readers.results.tier_files import read_tiers

    tiers: Intervals = {}
    for tier in read_tiers(path):
        if not tier.has_points:
            intervals = ((interval.start, interval.end, interval.text) for interval in tier.intervals)
            tiers.setdefault(tier.name, []).extend(intervals)
    if not tiers:
        raise FormatError(f"{path}: no tier of intervals; expected at least one, such as words")
    return tiers


def _tiers_of_mlf(options: AlignmentPictureOptions, name: str) -> Intervals:
    """Return the intervals of each level of an entry.  Raises FormatError for a missing entry and one without times."""
    from readers.htk import read_mlf
    from recipes.pictures.alignment import tiers_of

    assert options.mlf is not None  # the options have it or a TextGrid
    mlf = read_mlf(options.mlf)
    labels = mlf.lookup(name)
    if labels is None:
        raise FormatError(f"{options.mlf}: no entry for {name}; {mlf.expected_entry(name)}, or the option utterance")
    if not labels or any(label.start is None for label in labels):
        raise FormatError(f"{mlf.where(name)}: no times; expected an alignment, with start and end of each label")
    tiers = tiers_of(labels)
    names = TIERS.get(len(tiers), [f"level {level}" for level in reversed(range(len(tiers)))])
    return {key: tier for key, tier in zip(names, tiers) if key != "states" or options.states}
