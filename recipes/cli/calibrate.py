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

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from readers.common.report import RunReport
from readers.errors import ConfigError, FormatError
from recipes.cli.console import one_line, progress_display, show_losses

FEWEST_WORDS = 200  # below which a map is noted as uncertain


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("bundle", metavar="BUNDLE", help="file or directory that argonaut pack made")
    parser.add_argument("words", metavar="WORDS", help="MLF, trn or CTM with the words that were spoken")
    parser.add_argument("audio", nargs="*", metavar="AUDIO", help="audio files, or folders of them")
    parser.add_argument(
        "--list", metavar="FILE", help="more audio: list of HCopy, whose second column names utterances"
    )
    parser.add_argument("-o", "--output", metavar="BUNDLE", help="calibrated bundle; without -o, BUNDLE is measured")
    parser.add_argument("--test", metavar="WORDS", help="words of other recordings, with which the result is measured")
    parser.add_argument("--picture", metavar="PNG", help="drawing of the last words that are measured")
    parser.add_argument("--fold", metavar="MAP", help="phone map, as of argonaut score")
    parser.add_argument("-j", "--threads", type=int, metavar="N", help="number of cores to use (default: all)")


def run(arguments: argparse.Namespace) -> int:
    from decoder.recognizer import Recognizer, add_calibration, fit_calibration, measure
    from readers.common.environment import available_cores, using_cores
    from readers.common.files import require_writable

    if arguments.test and not arguments.output:
        raise ConfigError("command line: --test without -o; expected the words of the test set as WORDS, or -o")
    for path in (arguments.output, arguments.picture):
        if path:
            require_writable(path, [arguments.words, arguments.test])
    audio, report = audio_files(arguments), RunReport("files")
    with using_cores(available_cores() if arguments.threads is None else arguments.threads):
        recognizer = Recognizer.load(arguments.bundle)
        fitted, recognizer.calibration = recognizer.calibration, None
        words = recognised_words(recognizer, arguments.words, audio, arguments, report)
        calibration = fitted
        if not arguments.output:
            print(measure(words, set_name(arguments.words), fitted))
        else:
            calibration = fit_calibration(words)
            print(f"{calibration.method} map: {len(words.correct)} words of {words.num_utterances} utterances")
            if len(words.correct) < FEWEST_WORDS:
                print(f"note: fewer than {FEWEST_WORDS} words; confidences are close to the posteriors")
            if arguments.test:
                words = recognised_words(recognizer, arguments.test, audio, arguments, report)
                calibration = calibration.measure(words, set_name(arguments.test))
                print(calibration.measured[-1])
            made = add_calibration(recognizer.bundle, calibration, arguments.output)
            print(f"{made.path}: {made.size / 1e6:.1f} MB")
    if arguments.picture:
        from recipes.pictures.reliability import draw_reliability

        series = {"posteriors": words.confidence}
        if calibration is not None:
            series["calibrated"] = calibration.of(words.confidence)
        draw_reliability(series, words.correct, arguments.picture)
        print(f"picture: {arguments.picture}")
    show_losses(report, None, arguments.verbose)
    return report.exit_status


def set_name(path: str) -> str:
    """Return the name of a set in messages: test for test.words.mlf."""
    return Path(path).name.partition(".")[0]


def audio_files(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the recordings, utterance -> path.  Raises ConfigError for none, and for two of one name."""
    from readers.htk.scp import read_pairs
    from recipes.cli.transcribe import recordings

    given = [(one.name, one.path) for one in recordings(arguments.audio, raw=False)[0]]
    if arguments.list:
        given += [(Path(target).stem, source) for source, target in read_pairs(arguments.list)]
    found: dict[str, str] = {}
    for name, path in given:
        if found.setdefault(name, path) != path:
            raise ConfigError(f"{path}: the same name as {found[name]}; expected different names")
    if not found:
        raise ConfigError("command line: no audio; expected files or folders, or --list")
    return found


def recognised_words(recognizer, path: str, audio: Mapping[str, str], arguments: argparse.Namespace, report: RunReport):
    """Recognise the recordings whose words a file has; return the words with posteriors and whether they are right."""
    from decoder.scoring import judge_words
    from decoder.scoring.error_counts import match_names
    from decoder.scoring.words import read_words
    from recipes.cli.score import fold_map

    references = read_words(path)
    wanted = sorted(match_names(references, audio).values())
    if not wanted:
        some = ", ".join(sorted(references)[:3])
        raise FormatError(f"{path}: words of {some}; expected those of the audio files, such as {min(audio)}")
    found: dict[str, Sequence[tuple[str, float | None]]] = {}
    with progress_display("calibrate", "files") as show:
        results = recognizer.transcribe_many([audio[name] for name in wanted], arguments.threads)
        for number, (name, (_, transcript)) in enumerate(zip(wanted, results, strict=True), 1):
            if isinstance(transcript, Exception):
                report.fail(audio[name], one_line(transcript))
            else:
                found[name] = [(word.text, word.confidence) for word in transcript.words]
                report.done()
            show(number, len(wanted))
    return judge_words(references, found, fold_map(arguments.fold))
