"""The job `augment`: copies of recordings for training, and lists of the recordings with their copies."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from features.augmentation.lists import FEATURES, STATES, CopyLists, list_of, read_recordings, sibling
from features.augmentation.parallel import Made, augment_recordings
from features.augmentation.settings import Augmentation, CopyOptions
from readers.audio.options import ChannelOptions
from readers.common.files import held_alone, require_writable
from readers.common.jobs.runner import Runner
from readers.common.report import Progress, RunReport, silent
from readers.config.options import group, option
from readers.corpora.directory import AUDIO, SPEAKERS, WORDS

REPORT = "report"


@dataclass(frozen=True, kw_only=True)
class AugmentOptions(CopyOptions):
    """Options of the augmentation of a corpus."""

    source: Path = option(
        help="directory with audio.scp, or a list of audio files", flag="CORPUS", metavar="CORPUS", heading="files"
    )
    out: Path = option(help="directory for the results", metavar="DIR")
    noise: Path | None = option(None, "copies with background noise from these audio files", metavar="LIST")
    foreground: Path | None = option(None, "copies with noises from these files one after the other", metavar="LIST")
    babble: Path | None = option(
        None,
        "copies with several voices, from a corpus or list of speech; with {world}, some of its copies",
        metavar="LIST",
    )
    reverb: Path | None = option(None, "copies with impulse responses from these audio files", metavar="LIST")
    audio: ChannelOptions = group(ChannelOptions)
    copies_only: bool = option(False, "leave the recordings themselves out of the lists")
    config: Path | None = option(
        None, "configuration of hcopy for the features", flag="-C --config", heading="features and alignments"
    )
    states: Path | None = option(None, "alignment of the recordings", metavar="MLF")

    def __post_init__(self) -> None:
        super().__post_init__()
        is_known = not (self.states and self.speeds) or self.config is not None
        self.require("states", is_known, "is given with {speeds}; expected {config} too, which determines the frames")


@dataclass(frozen=True)
class AugmentResult:
    """What augmentation made.

    Attributes
    ----------
    report : RunReport
        The copies that were made, and those that could not be, with the reasons.
    made : tuple of Made
        The copies.
    """

    report: RunReport
    made: tuple[Made, ...]


def augment(options: AugmentOptions, *, runner: Runner | None = None, progress: Progress = silent) -> AugmentResult:
    """Make copies of the recordings of a corpus, and lists of the recordings and their copies, in `options.out`.

    Parameters
    ----------
    options : AugmentOptions
    runner : Runner, optional
        Threads by default, one per core.
    progress : callable
        Called as ``progress(recordings done, recordings)``.

    Returns
    -------
    AugmentResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the lists; the report lists copies that could not be made.

    Examples
    --------
    ``augment(AugmentOptions(source="corpus", speeds=(0.9, 1.1), out="corpus.aug")).report.num_done``
    """
    out = options.out
    channel = options.audio.channel
    lists = CopyLists(options.source, channel, options.states, options.config)
    values: dict[str, Any] = {declared.name: getattr(options, declared.name) for declared in CopyOptions.declared()}
    sources = {
        "noises": options.noise, "foreground": options.foreground, "talkers": options.babble,
        "responses": options.reverb,
    }  # fmt: skip
    values |= {name: read_recordings(source, channel) for name, source in sources.items() if source}
    settings = Augmentation(**values)
    inputs: list[Path | None] = [options.states, options.config]
    for source in filter(None, (options.source, *sources.values())):
        inputs += [list_of(source), sibling(source, WORDS), sibling(source, SPEAKERS)]
    for name in (AUDIO, WORDS, SPEAKERS, STATES, FEATURES, REPORT):
        require_writable(out / name, inputs)
    with held_alone(out / "augment.lock", out):
        copies, report = augment_recordings(lists.recordings, settings, out, progress=progress, runner=runner)
        lists.write(out, copies, report, options.copies_only)
        report.write(out / REPORT)
    return AugmentResult(report, tuple(copies))
