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

import sys
import textwrap
import time
from dataclasses import dataclass

from features.copying.files import own_runner
from features.copying.job import HcopyOptions, hcopy
from features.settings import REFUSED, SETTINGS, WITHOUT_EFFECT
from readers.common.jobs.runner import Runner
from readers.config.options import option
from recipes.cli.command import Command, Console
from recipes.cli.console import show_losses
from recipes.cli.machines import print_line

EPILOG = "\n".join(
    f"{title}\n" + textwrap.fill(", ".join(sorted(names)), initial_indent="  ", subsequent_indent="  ")
    for title, names in (
        ("parameters of the configuration:", SETTINGS),
        ("accepted without effect (-v shows why):", WITHOUT_EFFECT),
        ("refused, with the reason, unless they have HTK's default:", REFUSED),
    )
)


@dataclass(frozen=True, kw_only=True)
class HcopyCommandOptions(HcopyOptions):
    """The options of the job, and HCopy's own by which it shows more."""

    shown: bool = option(False, "as in HCopy: print the configuration", flag="-A -D")
    trace: int = option(0, "as in HCopy; -T 1 is the same as -v", flag="-T")


def run(options: HcopyCommandOptions, console: Console) -> int:
    verbose = max(console.verbose, min(options.trace, 1), 2 * options.shown)
    show_settings(options, verbose)
    started = time.monotonic()

    def open_processes(workers: int | None) -> Runner:
        return own_runner(workers, len(options.pairs), print_line)

    with console.runner(open_processes) as runner, console.progress("files", runner) as progress:
        result = hcopy(options, runner=runner, progress=progress)
    if options.speech_mean:
        print(f"speech mean: {len(result.speech_mean)} values, in {options.speech_mean}")
    if verbose:
        print(f"{time.monotonic() - started:.1f} seconds", file=sys.stderr)
    for path, remark in result.report.remarks.items():
        console.note(f"{path}: {remark}")
    show_losses(result.report, result.report_path, verbose, options.script or "")
    print(result.report.summary())
    return result.report.exit_status


def show_settings(options: HcopyOptions, verbose: int) -> None:
    """Print the names of settings that have no effect: in one line, or if verbose with the reasons and the features."""
    settings = options.settings
    features = options.features
    names = [name for name in settings if name in WITHOUT_EFFECT]
    if not verbose:
        if names:
            print(f"{settings.source}: no effect: {', '.join(names)}; -v shows the reasons", file=sys.stderr)
        return
    lines = [f"{settings.where(n)}: {n} = {settings[n]} has no effect: {WITHOUT_EFFECT[n]}" for n in names]
    lines.append(f"{features.target_kind}: {features.dim} values a frame")
    for module, name, value, where in settings.other_modules:
        lines.append(f"{where}: {module}: {name} = {value} is for another module; not used")
    print(*lines, *[features] * (verbose > 1), sep="\n", file=sys.stderr)


COMMAND = Command("hcopy", HcopyCommandOptions, run, machines="cores", epilog=EPILOG)
