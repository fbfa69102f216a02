"""Fit the confidences of a bundle to audio with known words, so that of words with 0.9 about 90 % are right.

worked example:
  argonaut calibrate my.argo words.mlf recordings/ -o calibrated.argo
recognises those recordings whose words are in words.mlf, compares, and writes a bundle with a map from the posterior
probabilities of words to confidences.  The recordings should be none of the training, and like those to come.
  argonaut calibrate calibrated.argo test.mlf recordings/
prints how good its confidences are on other recordings, and
  argonaut calibrate my.argo words.mlf recordings/ --test test.mlf -o calibrated.argo
does both, and notes the result in the bundle, where `argonaut info` shows it.  --picture draws the fraction of right
words over confidence.

ECE, the expected calibration error, is the mean distance between confidence and fraction of right words, over ten bins
with equal numbers of words.  NCE is NIST's normalised cross entropy: 1 for perfect confidences, 0 or less for
confidences that say nothing.
"""

from dataclasses import dataclass
from pathlib import Path

from decoder.recognizer.jobs.options import CalibrateOptions
from readers.common.files import require_writable
from readers.config.options import option
from readers.errors import ConfigError
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses
from recipes.cli.score import FOLDS

FEWEST_WORDS = 200  # below which a map is noted as uncertain


def fold_file(name: str) -> Path:
    """Return the phone map that --fold names.  Raises ConfigError if there is none."""
    path = Path(FOLDS.get(name, name))
    if not path.exists():
        raise ConfigError(f"{name}: no such file; expected a file or {', '.join(FOLDS)}")
    return path


@dataclass(frozen=True, kw_only=True)
class CommandOptions(CalibrateOptions):
    """Options of the command: those of the job, and a picture."""

    fold: Path | None = option(None, "phone map, as of argonaut score", metavar="MAP", parse=fold_file)
    picture: Path | None = option(None, "drawing of the last words that are measured", metavar="PNG")


def run(options: CommandOptions, console: Console) -> int:
    from decoder.recognizer.jobs.calibration_job import calibrate

    if options.picture is not None:
        require_writable(options.picture, [options.words, options.test])
    with console.progress("files") as progress:
        result = calibrate(options, progress=progress)
    calibration = result.calibration
    words = result.words
    if result.bundle is not None and calibration is not None:  # was fitted
        print(f"{calibration.method} map: {calibration.words} words of {calibration.utterances} utterances")
        if calibration.words < FEWEST_WORDS:
            print(f"note: fewer than {FEWEST_WORDS} words; confidences are close to the posteriors")
    if result.measured is not None:
        print(result.measured)
    if result.bundle is not None:
        print(f"{result.bundle.path}: {result.bundle.size / 1e6:.1f} MB")
    if options.picture is not None:
        from recipes.pictures.reliability import draw_reliability

        series = {"posteriors": words.confidence}
        if calibration is not None:
            series["calibrated"] = calibration.of(words.confidence)
        draw_reliability(series, words.correct, options.picture)
        print(f"picture: {options.picture}")
    show_losses(result.report, None, console.verbose)
    return result.report.exit_status


COMMAND = Command("calibrate", CommandOptions, run)
