"""The job `hcopy`: HTK feature files from audio files, with a configuration in the format of HTK's HCopy."""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from features.config import FeatureConfig
from features.copying.files import estimate_speech_mean, extract_files, own_runner
from readers.audio.options import AudioFileOptions
from readers.audio.parts import audio_part
from readers.common.files import require_writable, write_lines
from readers.common.jobs.runner import Runner
from readers.common.names import repeated
from readers.common.report import Log, Progress, RunReport, silent
from readers.common.text import read_lines
from readers.config.hcopy import HCopyConfig, read_hcopy_config
from readers.config.options import Options, group, option
from readers.errors import ConfigError, FormatError
from readers.htk.scp import read_pairs, write_feature_list

MEAN_OF = "# of the speech in the training set"


@dataclass(frozen=True, kw_only=True)
class HcopyOptions(Options):
    """Options of the extraction of feature files."""

    config: Path = option(help="configuration file of HCopy", flag="-C --config")
    script: Path | None = option(
        None, "list with a line `source target` for each file", flag="-S --script", metavar="LIST"
    )
    files: tuple[str, ...] = option(
        (), "instead of {script}: a source, its target, and so on", flag="FILE", metavar="FILE"
    )
    audio: AudioFileOptions = group(AudioFileOptions)
    scp: Path | None = option(None, "write a list of the feature files and their frame ranges")
    speech_mean: Path | None = option(
        None, "write only this configuration: that of {config} with SPEECHMEAN, the mean of the speech in the files"
    )
    report: Path | None = option(None, "file that lists what failed (default: hcopy.report beside the outputs)")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_single = self.scp is None or self.speech_mean is None
        self.require("scp", is_single, "is given with {speech_mean}; expected it with features")
        has_pairs = bool(self.files) or self.script is not None
        self.require("files", has_pairs, "is not given; expected source and target in turn, or {script}")
        last = "".join(self.files[-1:])
        self.require("files", len(self.files) % 2 == 0, f"{last} has no target; expected source and target in turn")

    @cached_property
    def settings(self) -> HCopyConfig:
        """The settings of the configuration, which is read once."""
        return read_hcopy_config(self.config)

    @cached_property
    def features(self) -> FeatureConfig:
        """The features that the configuration and the options of audio describe."""
        config = FeatureConfig.from_hcopy(self.settings)
        if config.base_kind == "WAVEFORM":
            raise ConfigError(f"{self.config}: TARGETKIND = WAVEFORM; expected features, as files of audio are samples")
        channel = config.channel if self.audio.channel is None else self.audio.channel
        return replace(config, raw=self.audio.raw, upsample=self.audio.upsample, channel=channel)

    @cached_property
    def pairs(self) -> Sequence[tuple[str, str]]:
        """The pairs (source, target) of `files`, then those of the list.  Raises FormatError when there are none."""
        pairs: Sequence[tuple[str, str]] = list(zip(self.files[::2], self.files[1::2]))
        if self.script is not None:
            pairs = [*pairs, *read_pairs(self.script)] if pairs else read_pairs(self.script)
        if not pairs:
            raise FormatError(f"{self.script}: no files; expected a line `source target` for each file")
        return pairs


@dataclass(frozen=True)
class HcopyResult:
    """What the extraction of feature files did.

    Attributes
    ----------
    report : RunReport
        The files that were done, and those that were lost, with the reasons.
    report_path : Path
        Where the report was written.
    speech_mean : tuple of float
        The mean of the speech in the files, if that was asked for.
    """

    report: RunReport
    report_path: Path
    speech_mean: tuple[float, ...] = ()


def hcopy(
    options: HcopyOptions, *, runner: Runner | None = None, progress: Progress = silent, log: Log = silent
) -> HcopyResult:
    """Extract HTK feature files from audio files; or write a configuration with the mean of their speech.

    Worker processes are spawned, so a script that calls this without a runner needs `if __name__ == "__main__":`.

    Parameters
    ----------
    options : HcopyOptions
    runner : Runner, optional
        By default one process per core or, for few files, this thread.
    progress : callable
        Called as ``progress(files done, files)``.
    log : callable
        Receives a line when files are processed again, because a worker was killed.

    Returns
    -------
    HcopyResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the configuration or the list; the report lists faults of single files.

    Examples
    --------
    ``hcopy(HcopyOptions(config="hcopy.config", files=("a.wav", "a.fbank"))).report.num_done``
    """
    config = options.features
    pairs = options.pairs
    mean_path = options.speech_mean
    report_path = options.report or default_report_path([mean_path] if mean_path else (target for _, target in pairs))
    inputs = [options.config, options.script]
    require_writable(report_path, inputs)
    if mean_path:
        require_writable(mean_path, [options.script, *(audio_part(source).path for source, _ in pairs)])
    if options.scp:
        require_writable(options.scp, inputs)
        _refuse_equal_names(options, pairs)
    used = runner or own_runner(None, len(pairs), log)
    try:
        if mean_path:
            mean, report = _write_speech_mean(options, mean_path, [source for source, _ in pairs], used, progress)
        else:
            mean = ()
            report = extract_files(pairs, config, progress=progress, runner=used)
    finally:
        if not runner:
            used.close()
    if options.scp:
        lost = {name for name, _, _ in report.lost}
        targets = (Path(target) for source, target in pairs if source not in lost)
        write_feature_list(options.scp, ((target.stem, target) for target in targets))
    report.write(report_path)
    return HcopyResult(report, report_path, mean)


def _write_speech_mean(
    options: HcopyOptions, path: Path, sources: Sequence[str], runner: Runner, progress: Progress
) -> tuple[tuple[float, ...], RunReport]:
    """Write the configuration with the mean of the speech in audio files; return the mean and their report."""
    try:
        with_mean, report = estimate_speech_mean(sources, options.features, runner, progress)
    except (ConfigError, FormatError) as fault:
        raise fault.reworded(f"{options.config}: {fault}") from fault
    earlier = re.compile(rf"\s*(\w+\s*:)?\s*SPEECHMEAN\s*=|{re.escape(MEAN_OF)}", re.IGNORECASE)
    lines = [line for line in read_lines(options.config) if not earlier.match(line)]
    mean = " ".join(f"{value:g}" for value in with_mean.speech_mean)
    write_lines(path, [*lines, MEAN_OF, f"SPEECHMEAN = {mean}"])
    return with_mean.speech_mean, report


def _refuse_equal_names(options: HcopyOptions, pairs: Sequence[tuple[str, str]]) -> None:
    """Refuse two targets of the same file name: an SCP names a file without its directories."""
    for index, earlier in repeated((Path(target).stem for _, target in pairs), lambda i: Path(pairs[i][1]).stem):
        target = pairs[index][1]
        earlier_target = pairs[earlier][1]
        text = f"would list {target} under the name of {earlier_target}; expected every name once"
        options.require("scp", earlier_target == target, text)


def default_report_path(targets: Iterable[str | Path]) -> Path:
    """Return hcopy.report in the deepest directory that contains all outputs."""
    # os.path is faster than pathlib, for long lists
    directories = {os.path.dirname(str(target).rstrip("/")) for target in targets}  # noqa: PTH120
    return Path(os.path.commonpath([Path(directory).absolute() for directory in directories])) / "hcopy.report"
