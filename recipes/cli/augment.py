"""Make copies of recordings for training: other speeds and volumes, noise, babble, reverberation.

worked example: `corpus` is a directory with audio.scp and, if there are any, words.mlf and speakers, as
`argonaut import` writes it; noises.list and rooms.list have the path of an audio file on each line.
  argonaut augment corpus --speed 0.9,1.1 --noise noises.list --babble corpus --reverb rooms.list --out corpus.aug
writes to corpus.aug
  audio/        the copies as FLAC: sp0.9-NAME, sp1.1-NAME, noise1-NAME, babble1-NAME, rvb1-NAME
  audio.scp     the recordings and their copies
  words.mlf     their words
  speakers      their speakers; as in Kaldi, sp0.9-SPEAKER is another speaker
  report        the copies that could not be made, with the reason
  augment.json  the settings
and ends with
  copies: 4415 done, 0 skipped, 0 failed
In place of `corpus` there may be a list of audio files, with lines `PATH`, `NAME=PATH` or `NAME=PATH[first,last]`.

With -C hcopy.config it also writes hcopy.list, for `argonaut hcopy -C hcopy.config -S corpus.aug/hcopy.list`, and with
--states states.mlf, an alignment of the recordings, states.mlf for the recordings and copies.  The alignment of a copy
with another speed is stretched: a frame has the label of the nearest frame of the recording.
The same command, with any number of threads or machines, makes the same copies; after an interruption it continues.
Copies have one channel: with --channel mix, hcopy needs --channel mix for the recordings themselves.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from readers.errors import ArgonautError, ConfigError, FormatError
from recipes.cli.console import one_line, progress_display, show_losses
from recipes.cli.machines import add_machine_options, check_machines, open_runner
from recipes.cli.raw_audio import audio_options

AUDIO, WORDS, SPEAKERS, STATES = "audio.scp", "words.mlf", "speakers", "states.mlf"
RESULTS = (AUDIO, WORDS, SPEAKERS, STATES, "hcopy.list", "report")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="CORPUS", help="directory with audio.scp, or a list of audio files")
    parser.add_argument("--out", metavar="DIR", required=True, help="directory for the results")
    kinds = parser.add_argument_group("copies")
    kinds.add_argument("--speed", metavar="X,X", type=numbers, default=(), help="a copy with each of these speeds")
    kinds.add_argument("--noise", metavar="LIST", help="copies with background noise from these audio files")
    kinds.add_argument("--foreground", metavar="LIST", help="copies with noises from these files one after the other")
    kinds.add_argument("--babble", metavar="LIST", help="copies with several voices, from a corpus or list of speech")
    kinds.add_argument("--reverb", metavar="LIST", help="copies with impulse responses from these audio files")
    kinds.add_argument("--copies", metavar="N", type=int, default=1, help="copies of each kind but speed (1)")
    drawn = parser.add_argument_group("ranges, from which a value is drawn for each copy")
    drawn.add_argument(
        "--snr", metavar="LOW:HIGH", type=span, default=(5.0, 20.0), help="signal-to-noise ratio in dB (5:20)"
    )
    drawn.add_argument(
        "--volume", metavar="LOW:HIGH", type=span, help="factor of the amplitude of all copies; alone it makes copies"
    )
    drawn.add_argument(
        "--talkers", metavar="LOW:HIGH", type=span, default=(3.0, 7.0), help="number of voices in babble (3:7)"
    )
    drawn.add_argument(
        "--interval", metavar="SECONDS", type=float, default=1.0, help="pause between foreground noises (1)"
    )
    drawn.add_argument("--seed", metavar="N", type=int, default=0, help="another seed draws other values (0)")
    labels = parser.add_argument_group("features and alignments")
    labels.add_argument("-C", "--config", metavar="FILE", help="configuration of hcopy for the features")
    labels.add_argument("--states", metavar="MLF", help="alignment of the recordings")
    parser.add_argument(
        "--channel", metavar="N", help="channel of files with several, counted from 0, or mix, the mean of all"
    )
    parser.add_argument("--copies-only", action="store_true", help="leave the recordings themselves out of the lists")
    add_machine_options(parser)


def numbers(text: str) -> tuple[float, ...]:
    """Parse `0.9,1.1`."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected numbers separated by commas, such as 0.9,1.1") from None


def span(text: str) -> tuple[float, float]:
    """Parse `5:20`, or `10` for 10 to 10."""
    low, _, high = text.partition(":")
    try:
        return float(low), float(high or low)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}; expected a range such as 5:20, or a number") from None


def run(arguments: argparse.Namespace) -> int:
    from features.augmentation.job import augment
    from readers.common.files import held, holder, require_writable

    out = Path(arguments.out)
    recordings = read_recordings(arguments.source, audio_options(arguments).channel)
    settings = settings_of(arguments)
    check_machines(arguments)
    if arguments.states and settings.speeds and not arguments.config:
        raise ConfigError("command line: --states and --speed; expected -C CONFIG too, which determines the frames")
    sources = (arguments.source, arguments.noise, arguments.foreground, arguments.babble, arguments.reverb)
    given = [list_of(source) for source in sources if source] + [arguments.states, arguments.config]
    given += [sibling(source, name) for source in sources if source for name in (WORDS, SPEAKERS)]
    for name in RESULTS:
        require_writable(out / name, given)
    writer = Lists(arguments, recordings)
    with held(out / "augment.lock") as mine:
        if not mine:
            raise ConfigError(f"{out}: in use by {holder(out / 'augment.lock')}; expected a directory of its own")
        runner = open_runner(arguments)
        try:
            with progress_display("augment", "recordings", runner) as progress:
                made, report = augment(recordings, settings, out, progress=progress, runner=runner)
        finally:
            runner.close()
        writer.write(out, made, report)
        report.write(out / "report")
    show_losses(report, out / "report", arguments.verbose, arguments.source)
    print(report.summary())
    return report.exit_status


def settings_of(arguments: argparse.Namespace):
    from features.augmentation.settings import Augmentation

    fewest, most = arguments.talkers
    if not (fewest.is_integer() and most.is_integer()):
        raise ConfigError(f"--talkers {fewest:g}:{most:g}; expected whole numbers")
    files = {
        name: read_recordings(source, audio_options(arguments).channel) if source else ()
        for name, source in (
            ("noises", arguments.noise), ("foreground", arguments.foreground), ("talkers", arguments.babble),
            ("responses", arguments.reverb),
        )
    }  # fmt: skip
    return Augmentation(
        speeds=arguments.speed, snr=arguments.snr, volume=arguments.volume, num_talkers=(int(fewest), int(most)),
        interval=arguments.interval, copies=arguments.copies, seed=arguments.seed, **files,
    )  # fmt: skip


def list_of(source: str) -> Path:
    """Return the list of audio files of a corpus, or the list itself.  Raises FormatError for another directory."""
    if not Path(source).is_dir():
        return Path(source)
    if not (found := Path(source) / AUDIO).exists():
        raise FormatError(
            f"{source}: no {AUDIO}; expected a directory that `argonaut import` wrote, or a list of audio"
        )
    return found


def sibling(source: str, name: str) -> Path | None:
    """Return another file of a corpus; None if it is not there, and for a list."""
    path = Path(source) / name
    return path if Path(source).is_dir() and path.exists() else None


def read_recordings(source: str, channel: int | str | None = None) -> tuple:
    """Return the recordings of a corpus or list, with their speakers as far as they are known.

    channel: of files with several, unless the list names one.
    Raises FormatError for an empty list and two recordings with the same name.
    """
    from features.augmentation.settings import Recording
    from readers.corpora.directory import read_speakers
    from readers.htk.scp import read_scp

    listed, of_speakers = list_of(source), sibling(source, SPEAKERS)
    speakers = read_speakers(of_speakers) if of_speakers else {}
    found: dict[str, tuple] = {}
    for entry in read_scp(listed, channels=True):
        name = entry.key.rsplit("/", 1)[-1]
        if name in found:
            raise FormatError(f"{entry.where}: {name} is already at {found[name][0]}; expected every name once")
        recording = Recording(name, Path(entry.path), entry.start, entry.end, entry.channel, speakers.get(name))
        if channel is not None and recording.channel is None:
            recording = with_channel(recording, channel)
        found[name] = (entry.where, recording)
    if not found:
        raise FormatError(f"{listed}: no entries; expected an audio file on each line")
    return tuple(recording for _, recording in found.values())


def with_channel(recording, channel: int | str):
    """Return a recording with its channel, if its file has several."""
    from readers.audio.header import read_audio_header

    try:
        header = read_audio_header(recording.path)
    except (ArgonautError, OSError):  # reported when its copies are made
        return recording
    if header.channels == 1:
        return recording
    if recording.last is None and channel != "mix":  # a list names a channel after the part of a file
        recording = replace(recording, first=0, last=header.num_samples - 1)
    return replace(recording, channel=channel)


class Lists:
    """Lists, labels and speakers of the recordings and of their copies.

    The labels are read by the constructor, so that their faults are found before the work begins.
    """

    def __init__(self, arguments: argparse.Namespace, recordings: tuple):
        from features import FeatureConfig
        from readers.config.hcopy import read_hcopy_config
        from readers.htk.mlf import read_mlf

        self.recordings, self.copies_only = recordings, arguments.copies_only
        words = sibling(arguments.source, WORDS)
        self.words = read_mlf(words) if words else None
        self.states = read_mlf(arguments.states) if arguments.states else None
        if self.states is not None and all(self.states.lookup(one.name) is None for one in recordings):
            name = recordings[0].name
            raise FormatError(f"{arguments.states}: no alignment of any recording; {self.states.expected_entry(name)}")
        config = read_hcopy_config(arguments.config) if arguments.config else None
        self.config = FeatureConfig.from_hcopy(config) if config is not None else None

    def write(self, out: Path, made: list, report) -> None:
        """Write all lists.  A copy whose alignment cannot be made is left out of them and becomes a failure."""
        from readers.common.files import write_lines
        from readers.htk.mlf import write_mlf
        from readers.htk.scp import ScpEntry, write_pairs, write_scp

        states: dict[str, list] = {}
        for one in made if self.states is not None else ():
            try:
                states[one.name] = self.alignment(one)
            except ArgonautError as fault:
                report.num_done -= 1
                report.fail(one.name, one_line(fault))
        made = [one for one in made if self.states is None or one.name in states]
        originals = () if self.copies_only else self.recordings
        entries = [
            ScpEntry(
                logical_name(one),
                str(one.path),
                one.first,
                one.last,
                channel=None if one.channel == "mix" else one.channel,
            )
            for one in originals
        ] + [ScpEntry(logical_name(one), str(one.path)) for one in made]
        write_scp(out / AUDIO, entries)
        if self.config is not None:
            extension = self.config.base_kind.lower()
            targets = [out / "features" / f"{one.name}.{extension}" for one in (*originals, *made)]
            write_pairs(out / "hcopy.list", [(entry.source, target) for entry, target in zip(entries, targets)])
        if self.words is not None:
            write_mlf(out / WORDS, entries_of(self.words, originals, made))
        if self.states is not None:
            write_mlf(out / STATES, entries_of(self.states, originals, made, states))
        if any(one.speaker for one in self.recordings):
            lines = [f"{one.name} {one.speaker}" for one in originals if one.speaker]
            for one in made:
                if one.recording.speaker:
                    prefix = one.copy.prefix if one.copy.kind == "speed" else ""
                    lines.append(f"{one.name} {prefix}{one.recording.speaker}")
            write_lines(out / SPEAKERS, lines)

    def alignment(self, made) -> list:
        """Return the alignment of a copy.  Raises FormatError if the recording has none, or one that does not fit."""
        from features.audio import target_rate
        from features.augmentation.labels import stretch_labels
        from features.extraction import frame_period, make_plan

        labels = self.states.lookup(made.recording.name)
        if labels is None:
            raise FormatError(f"no alignment; {self.states.expected_entry(made.recording.name)}")
        if made.copy.kind != "speed":
            return labels
        rate = target_rate(self.config, float(made.rate), str(made.path))
        spectrum = make_plan(self.config, rate).spectrum
        old, new = (spectrum.num_frames(round(count * rate / made.rate)) for count in made.num_samples)
        return stretch_labels(
            labels, (old, new), made.copy.speed, len(spectrum.window) / spectrum.hop,
            frame_period(self.config, rate), self.states.where(made.recording.name),
        )  # fmt: skip


def entries_of(mlf, originals, made: list, changed: dict[str, list] | None = None) -> Iterator[tuple[str, list]]:
    """Yield the entries of recordings, then of copies; changed: labels of copies, if not those of the recordings."""
    for one in originals:
        if (labels := mlf.lookup(one.name)) is not None:
            yield f"*/{one.name}.lab", labels
    for one in made:
        labels = mlf.lookup(one.recording.name) if changed is None else changed.get(one.name)
        if labels is not None:
            yield f"*/{one.name}.lab", labels


def logical_name(one) -> str:
    """Return the name of a recording or copy in a list, where what follows the last dot is not part of the name."""
    return f"{one.name}{one.path.suffix or '.audio'}" if "." in one.name else one.name
