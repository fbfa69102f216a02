"""Draw an alignment below its spectrogram, the trials of a tuning, or a lattice, as PNG files.

worked example:
  argonaut plot align a.wav --mlf aligned.mlf -o a.png
draws the spectrogram of a.wav and, below it, the words and phones of its entry in aligned.mlf, an alignment that argon
wrote with -detailed-alignment, or the tiers of a TextGrid, as `argonaut align` and Praat write it:
  argonaut plot align a.wav --textgrid aligned/a.TextGrid -o a.png
  argonaut plot tuning exp/demo/tune/words.json -o tuning.png
draws the error on the development set over each search option, and over the real-time factor of each beam;
  argonaut plot lattice lattices/test1.lat -o lattice.png
draws the best paths of a lattice: nodes with their times, words shaded by their posterior probability.
"""

import argparse
from pathlib import Path

from readers.errors import ConfigError, FormatError

TIERS = {1: ("labels",), 2: ("words", "phones"), 3: ("words", "phones", "states")}  # by number of levels, highest first


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, text, source in (
        ("align", "draw a spectrogram with words and phones", "audio file"),
        ("tuning", "draw the trials of a tuning", "tune.json of a recipe"),
        ("lattice", "draw the best paths of a lattice", "lattice (SLF)"),
    ):
        description = f"{text[0].upper()}{text[1:]}.  `argonaut plot --help` shows worked examples."
        action = actions.add_parser(name, help=text, description=description)
        action.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help="print more details")
        action.add_argument("source", metavar="FILE", help=source)
        action.add_argument("-o", "--output", metavar="PNG", required=True, help="picture to write")
        if name == "align":
            alignment = action.add_mutually_exclusive_group(required=True)
            alignment.add_argument("--mlf", metavar="FILE", help="alignment, one or several levels")
            alignment.add_argument("--textgrid", metavar="FILE", help="alignment of the whole recording, of any tiers")
            action.add_argument(
                "--utterance", metavar="NAME", help="entry of the MLF (default: name of the audio file)"
            )
            action.add_argument("--channel", type=int, metavar="N", help="channel of the audio file, from 0")
            action.add_argument("--states", action="store_true", help="draw the states as well")
        if name == "lattice":
            action.add_argument(
                "--links", type=int, metavar="N", default=100, help="number of links drawn at most (100)"
            )


def run(arguments: argparse.Namespace) -> int:
    from readers.common.files import require_writable

    output = Path(arguments.output)
    if output.suffix.lower() != ".png":
        raise ConfigError(f"command line: -o {output}; expected the name of a PNG file")
    require_writable(output, [arguments.source, *(getattr(arguments, name, None) for name in ("mlf", "textgrid"))])
    {"align": draw_align, "tuning": draw_trials, "lattice": draw_paths}[arguments.action](arguments, output)
    print(f"picture: {output}")
    return 0


def draw_align(arguments: argparse.Namespace, output: Path) -> None:
    from readers.audio import read_audio
    from recipes.pictures.alignment import draw_alignment

    if arguments.textgrid and (arguments.utterance or arguments.states):
        option = "--utterance" if arguments.utterance else "--states"
        raise ConfigError(f"command line: --textgrid with {option}; expected {option} with --mlf only")
    name = arguments.utterance or Path(arguments.source).stem
    tiers = tiers_of_textgrid(arguments.textgrid) if arguments.textgrid else tiers_of_mlf(arguments, name)
    samples, rate = read_audio(arguments.source, arguments.channel)
    draw_alignment(samples, rate, tiers, output, title=name)


def tiers_of_textgrid(path: str) -> dict[str, list[tuple[float, float, str]]]:
    """Return the intervals of each tier of a TextGrid.  Raises FormatError if there are none."""
    from readers.results.textgrid import read_textgrid

    tiers: dict[str, list[tuple[float, float, str]]] = {}
    for tier in read_textgrid(path):
        if not tier.has_points:
            tiers.setdefault(tier.name, []).extend((one.start, one.end, one.text) for one in tier.intervals)
    if not tiers:
        raise FormatError(f"{path}: no tier of intervals; expected at least one, such as words")
    return tiers


def tiers_of_mlf(arguments: argparse.Namespace, name: str) -> dict[str, list[tuple[float, float, str]]]:
    """Return the intervals of each level of an entry.  Raises FormatError for a missing entry and one without times."""
    from readers.htk import read_mlf
    from recipes.pictures.alignment import tiers_of

    mlf = read_mlf(arguments.mlf)
    labels = mlf.lookup(name)
    if labels is None:
        raise FormatError(f"{arguments.mlf}: no entry for {name}; {mlf.expected_entry(name)}, or --utterance")
    if not labels or any(label.start is None for label in labels):
        raise FormatError(f"{mlf.where(name)}: no times; expected an alignment, with start and end of each label")
    tiers = tiers_of(labels)
    names = TIERS.get(len(tiers), [f"level {level}" for level in reversed(range(len(tiers)))])
    return {key: tier for key, tier in zip(names, tiers) if key != "states" or arguments.states}


def draw_trials(arguments: argparse.Namespace, output: Path) -> None:
    from recipes.decoding import read_trials
    from recipes.pictures.tuning import draw_tuning

    draw_tuning(read_trials(Path(arguments.source)), output)


def draw_paths(arguments: argparse.Namespace, output: Path) -> None:
    from readers.htk import read_slf
    from recipes.pictures.lattice import draw_lattice

    if arguments.links < 1:
        raise ConfigError(f"command line: --links {arguments.links}; expected at least 1")
    draw_lattice(read_slf(arguments.source), output, arguments.links)
