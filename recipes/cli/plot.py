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

from recipes.cli.command import Command, Console
from recipes.pictures.job import (
    AlignmentPictureOptions,
    LatticePictureOptions,
    PictureOptions,
    TuningPictureOptions,
    plot,
)


def run(options: PictureOptions, console: Console) -> int:
    console.log(f"picture: {plot(options)}")
    return 0


COMMAND = Command(
    "plot",
    actions=(
        Command("align", AlignmentPictureOptions, run, help="draw a spectrogram with words and phones"),
        Command("tuning", TuningPictureOptions, run, help="draw the trials of a tuning"),
        Command("lattice", LatticePictureOptions, run, help="draw the best paths of a lattice"),
    ),
)
