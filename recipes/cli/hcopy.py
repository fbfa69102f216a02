"""Extract HTK feature files from audio files, with a configuration in the format of HCopy.

worked example: `hcopy.config` contains
  SOURCEFORMAT = WAV
  TARGETKIND   = FBANK_Z_D_A
  TARGETRATE   = 100000        # a frame every 10 ms, in units of 100 ns
  WINDOWSIZE   = 250000
  NUMCHANS     = 24
and each line of `list.scp` is a pair `source target`:
  audio/fash/cen1-fash-b.flac  feat/cen1-fash-b.fbank
Then
  argonaut hcopy -C hcopy.config -S list.scp
writes the feature files, using all cores, and ends with
  files: 948 done, 0 skipped, 0 failed
With --scp train.scp it also writes a list of the feature files, which `cntk` and `argon` can read:
  cen1-fash-b.fbank=feat/cen1-fash-b.fbank[0,247]

The audio may be WAV, FLAC, NIST SPHERE, an HTK waveform, or another format that libsndfile decodes, such as
Ogg and MP3; the format is detected from each file, not taken from SOURCEFORMAT.
Audio without a header needs --rate and, unless its samples are 16-bit little-endian integers, --encoding.
A source can be a part of a file, in samples: long.wav[16000,47999], or long.wav[16000,47999,1] of the second channel.
With --speech-mean mean.config it writes only a configuration, for features whose _Z subtracts a mean that follows
speech and not silence, the same in files and in streams; the targets of the list do not matter.
With SOURCERATE in the configuration (625 for 16 kHz), audio of higher rates is resampled, and lower ones need
--upsample.  Audio of several channels needs --channel.
"""

import argparse
import os
import re
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from readers.common.names import repeated
from readers.errors import ConfigError, FormatError
from recipes.cli.machines import add_machine_options, check_machines, open_cluster, print_line
from recipes.cli.raw_audio import add_audio_options, add_raw_options, channel_of, raw_format

MEAN_OF = "# of the speech in the training set"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from features.settings import REFUSED, SETTINGS, WITHOUT_EFFECT

    parser.epilog = "\n".join(
        f"{title}\n" + textwrap.fill(", ".join(sorted(names)), initial_indent="  ", subsequent_indent="  ")
        for title, names in (
            ("parameters of the configuration:", SETTINGS),
            ("accepted without effect (-v shows why):", WITHOUT_EFFECT),
            ("refused, with the reason, unless they have HTK's default:", REFUSED),
        )
    )
    parser.add_argument("-C", "--config", metavar="FILE", required=True, help="configuration file of HCopy")
    parser.add_argument("-S", "--script", metavar="LIST", help="list with a line `source target` for each file")
    parser.add_argument("files", nargs="*", metavar="FILE", help="instead of -S: a source, its target, and so on")
    add_audio_options(parser)
    add_raw_options(parser, channels=True)
    add_machine_options(parser, "processes")
    parser.add_argument("-A", "-D", dest="shown", action="store_true", help="as in HCopy: print the configuration")
    parser.add_argument(
        "-T", dest="trace", type=int, default=0, metavar="N", help="as in HCopy; -T 1 is the same as -v"
    )
    parser.add_argument("--scp", metavar="FILE", help="write a list of the feature files and their frame ranges")
    parser.add_argument(
        "--speech-mean",
        metavar="FILE",
        help="write only this configuration: that of -C with SPEECHMEAN, the mean of the speech in the files",
    )
    parser.add_argument(
        "--report", metavar="FILE", help="file that lists what failed (default: hcopy.report beside the outputs)"
    )


def run(arguments: argparse.Namespace) -> int:
    from features import FeatureConfig, hcopy
    from features.job import own_runner
    from readers.audio.parts import audio_part
    from readers.common.files import require_writable
    from readers.config.hcopy import read_hcopy_config
    from recipes.cli.console import progress_display, show_losses
    from recipes.features import write_feature_list

    arguments.verbose = max(arguments.verbose, min(arguments.trace, 1), 2 * arguments.shown)
    settings = read_hcopy_config(arguments.config)
    config = replace(FeatureConfig.from_hcopy(settings), raw=raw_format(arguments), upsample=arguments.upsample)
    if arguments.channel is not None:
        config = replace(config, channel=channel_of(arguments.channel))
    pairs = read_all_pairs(arguments)
    show_settings_without_effect(settings, arguments.verbose)
    if arguments.verbose:
        print(f"{config.target_kind}: {config.dim} values a frame", file=sys.stderr)
        for module, name, value, where in settings.other_modules:
            print(f"{where}: {module}: {name} = {value} is for another module; not used", file=sys.stderr)
        if arguments.verbose > 1:
            print(config, file=sys.stderr)
    targets = [arguments.speech_mean] if arguments.speech_mean else (target for _, target in pairs)
    report_path = arguments.report or default_report_path(targets)
    require_writable(report_path)
    if arguments.speech_mean:
        if arguments.scp:
            raise ConfigError("command line: --scp with --speech-mean; expected it with features")
        require_writable(arguments.speech_mean, [audio_part(source).path for source, _ in pairs])
    if arguments.scp:
        require_writable(arguments.scp)
        refuse_equal_names(pairs)
    started = time.monotonic()
    own = arguments.workers, len(pairs), print_line
    runner = open_cluster(arguments.scheduler) if arguments.scheduler else own_runner(*own)
    if arguments.speech_mean:
        report = write_speech_mean(arguments, config, [source for source, _ in pairs], runner)
    else:
        try:
            with progress_display("hcopy", "files", runner) as progress:
                report = hcopy(pairs, config, progress=progress, runner=runner)
        finally:
            runner.close()
    if arguments.verbose:
        print(f"{time.monotonic() - started:.1f} seconds", file=sys.stderr)

    if arguments.scp:
        lost = {name for name, _, _ in report.lost}
        files = (Path(target) for source, target in pairs if source not in lost)
        write_feature_list(Path(arguments.scp), ((file.stem, file) for file in files))
    for path, remark in report.remarks.items():
        print(f"note: {path}: {remark}", file=sys.stderr)
    report.write(report_path)
    show_losses(report, report_path, arguments.verbose, arguments.script or "")
    print(report.summary())
    return report.exit_status


def write_speech_mean(arguments: argparse.Namespace, config, sources: Sequence[str], runner):
    """Write the configuration with the mean of the speech in audio files; return the report of these."""
    from features.job import estimate_speech_mean
    from readers.common.files import write_lines
    from readers.common.text import read_lines
    from recipes.cli.console import progress_display

    try:
        with progress_display("hcopy", "files", runner) as progress:
            with_mean, report = estimate_speech_mean(sources, config, runner, progress)
    except (ConfigError, FormatError) as fault:
        raise type(fault)(f"{arguments.config}: {fault}") from fault
    finally:
        runner.close()
    earlier = re.compile(rf"\s*(\w+\s*:)?\s*SPEECHMEAN\s*=|{re.escape(MEAN_OF)}", re.IGNORECASE)
    lines = [line for line in read_lines(arguments.config) if not earlier.match(line)]
    mean = " ".join(f"{value:g}" for value in with_mean.speech_mean)
    write_lines(arguments.speech_mean, [*lines, MEAN_OF, f"SPEECHMEAN = {mean}"])
    print(f"speech mean: {len(with_mean.speech_mean)} values, in {arguments.speech_mean}")
    return report


def show_settings_without_effect(settings, verbose: int) -> None:
    """Print the names of an HCopyConfig that have no effect: in one line, or if verbose with the reason for each."""
    from features.settings import WITHOUT_EFFECT

    names = [name for name in settings if name in WITHOUT_EFFECT]
    if verbose:
        for name in names:
            text = f"{settings.where(name)}: {name} = {settings[name]} has no effect: {WITHOUT_EFFECT[name]}"
            print(text, file=sys.stderr)
    elif names:
        print(f"{settings.source}: no effect: {', '.join(names)}; -v shows the reasons", file=sys.stderr)


def read_all_pairs(arguments: argparse.Namespace) -> Sequence[tuple[str, str]]:
    """Return the (source, target) pairs of the command line, then those of the list.

    Raises ConfigError when there are none, or when a source has no target.
    """
    from readers.htk.scp import read_pairs

    names = arguments.files
    if len(names) % 2:
        raise ConfigError(f"command line: {names[-1]} has no target; expected source and target in turn")
    pairs: Sequence[tuple[str, str]] = list(zip(names[::2], names[1::2]))
    if arguments.script:
        pairs = [*pairs, *read_pairs(arguments.script)] if pairs else read_pairs(arguments.script)
    if not pairs:
        raise ConfigError(f"{arguments.script or 'command line'}: no files; expected `source target`, or -S LIST")
    check_machines(arguments, "process")
    return pairs


def refuse_equal_names(pairs: Sequence[tuple[str, str]]) -> None:
    """Raise ConfigError if two targets have the same file name: an SCP names a file without its directories."""
    for index, earlier in repeated((Path(target).stem for _, target in pairs), lambda i: Path(pairs[i][1]).stem):
        target, other = pairs[index][1], pairs[earlier][1]
        if other != target:
            raise ConfigError(f"--scp: {target} has the name of {other}; expected every name once")


def default_report_path(targets: Iterable[str]) -> Path:
    """Return hcopy.report in the deepest directory that contains all outputs."""
    directories = {os.path.dirname(target.rstrip("/")) for target in targets}  # noqa: PTH120 (faster, for long lists)
    return Path(os.path.commonpath([Path(directory).absolute() for directory in directories])) / "hcopy.report"
