"""Folders of recordings with transcripts beside them, in the layout of the Montreal Forced Aligner.

SPEAKER/NAME.wav has its words in SPEAKER/NAME.lab, NAME.txt, NAME.TextGrid or NAME.eaf, in this order of preference;
the source may also be one such recording.  In a TextGrid, each tier is a speaker and each interval with text an
utterance, with these exceptions: a tier with a general name, such as `utterances`, is of the speaker whom the folder
names; a tier `words`, or `SPEAKER - words`, of an aligner is one utterance, unless the speaker has a tier of
utterances; tiers of points and those called `phones` or `notes` are ignored.  The same holds for ELAN's .eaf, where a
participant is the speaker of a tier, and dependent tiers are ignored, too.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path

from readers.common.audio_format import AUDIO_SUFFIXES, UNREADABLE_SUFFIXES
from readers.common.faults import listed
from readers.common.report import RunReport
from readers.common.text import read_text
from readers.corpora.corpus_builder import Draft, part_name, plain_names, reason
from readers.errors import ArgonautError, FormatError
from readers.results.tier_files import EAF, TEXTGRID, read_tiers
from readers.results.tiers import Interval, Tier

TEXTS = (".lab", ".txt", TEXTGRID, EAF)  # in order of preference
# Names of .txt files that need no recording; `report` is of an import into a folder of the corpus.
NO_TRANSCRIPTS = ("readme", "license", "licence", "copying", "notes", "changelog", "report")
IGNORED_TIERS = ("phones", "phone", "notes", "comments", "segments")
WORD_TIERS = ("words", "word")
GENERAL_TIERS = (
    *("speech", "text", "utt", "utts", "utterance", "utterances", "sentence", "sentences", "transcript", "transcripts"),
    *("transcription", "orthography", "ort", "ortho"),
)
LONGEST_TEXT = 1 << 22  # bytes of the transcript of one recording; an hour of speech has 60,000


def folder_drafts(
    source: Path, report: RunReport, speaker_characters: int = 0, chosen: Collection[str] = ()
) -> Iterator[Draft]:
    """Yield the utterances of a folder, or of one recording.  Recordings that cannot be used are listed in the report.

    chosen: names of the tiers with utterances in TextGrids and ELAN files; none for those that the names tell.  Raises
    OSError if the source is missing, and FormatError for a file that is no recording.
    """
    source = Path(os.path.abspath(source))  # noqa: PTH100  (links stay links)
    unreadable: list[Path] = []
    if source.suffix.lower() in AUDIO_SUFFIXES and source.is_file():
        recordings = [source]
        texts = _transcript_of(source)
    else:
        recordings, texts, unreadable = _files(source, report)
    first = {path.with_suffix(""): path for path in reversed(recordings)}
    names = plain_names(first.values())
    used = set()
    for path in recordings:
        stem = path.with_suffix("")
        name = names[first[stem]]
        if stem in used:
            report.fail(
                name, f"{path}: the same name as {first[stem]}, which is used; expected one recording of each name: "
                "remove this one, or rename it and its transcript"
            )  # fmt: skip
            continue
        used.add(stem)
        speaker = path.stem[:speaker_characters] if speaker_characters else path.parent.name or "speaker"
        transcript = texts.get(stem)
        try:
            if transcript is not None and transcript.suffix.lower() in (TEXTGRID, EAF):
                tiers = read_tiers(transcript)
                if chosen:
                    tiers = _chosen(tiers, chosen, transcript)
                drafts = _tier_drafts(tiers, transcript, path, name, speaker, bool(speaker_characters))
                if not drafts:
                    report.skip(name, f"{transcript}: no interval with text; expected at least one")
                yield from drafts
            else:
                text = None if transcript is None else _read_transcript(transcript)
                yield Draft(os.fspath(path), name, speaker, text, path)
        except (ArgonautError, OSError) as fault:
            report.fail(name, reason(fault))
    for path in unreadable:
        if path.with_suffix("") not in used:  # no WAV beside it
            used.add(path.with_suffix(""))
            report.skip(path.stem, f"{path}: {path.suffix} cannot be read; convert it to WAV")
    for stem, transcript in texts.items():
        if stem not in used and not (stem.name.lower() in NO_TRANSCRIPTS and transcript.suffix.lower() == ".txt"):
            report.skip(stem.name, f"{transcript}: a transcript without a recording; expected one beside it")


def _chosen(tiers: Sequence[Tier], names: Collection[str], path: Path) -> tuple[Tier, ...]:
    """Return the tiers with these names, as independent ones.  Raises FormatError if there are none."""
    chosen = tuple(tier._replace(parent="") for tier in tiers if tier.name in names)
    if not chosen:
        own_names = listed([tier.name for tier in tiers])
        raise FormatError(f"{path}: no tier {' or '.join(names)}; expected one of its tiers {own_names}")
    return chosen


def _tier_drafts(
    all_tiers: Sequence[Tier], path: Path, audio: Path, name: str, folder: str, is_certain: bool
) -> list[Draft]:
    """Return the utterances of the tiers of a file.

    folder: the speaker of tiers without one, and of all tiers if that is certain.
    """
    tiers = [(tier, *_role(tier)) for tier in all_tiers]
    tiers = [(tier, role, "" if is_certain else speaker) for tier, role, speaker in tiers if role]
    divided = {speaker for _, role, speaker in tiers if role == "utterances"}
    tiers = [(tier, role, speaker) for tier, role, speaker in tiers if role == "utterances" or speaker not in divided]
    if not tiers:
        raise FormatError(f"{path}: no tier of utterances; expected a tier for each speaker")
    speakers = list(dict.fromkeys(speaker or folder for _, _, speaker in tiers))
    drafts = []
    for tier, role, speaker in tiers:
        speaker = speaker or folder
        # With two channels, the speakers of the first half of the tiers are in the first one, as in MFA.
        side = None if len(speakers) == 1 else int(2 * speakers.index(speaker) >= len(speakers))
        spoken = _undivided(interval for interval in tier.intervals if interval.text.strip())
        if role == "words" and spoken:
            text = " ".join(interval.text for interval in spoken)
            first, last = (0.0, None) if len(speakers) == 1 else (spoken[0].start, spoken[-1].end)
            drafts.append(Draft(f"{path}:{spoken[0].line}", name, speaker, text, audio, first, last, None, side))
        elif role == "utterances":
            drafts += [
                Draft(
                    f"{path}:{interval.line}",
                    name,
                    speaker,
                    interval.text,
                    audio,
                    interval.start,
                    interval.end,
                    None,
                    side,
                )
                for interval in spoken
            ]
    if len(drafts) == 1:
        return drafts
    return [
        draft._replace(
            name=part_name(name if len(speakers) == 1 else f"{name}-{draft.speaker}", draft.start, draft.end)
        )
        for draft in drafts
    ]


def _role(tier: Tier) -> tuple[str, str]:
    """Return what a tier contains, "words", "utterances" or "" for neither, and its speaker, "" if it names none."""
    speaker, _, kind = tier.name.rpartition(" - ")
    speaker = tier.speaker or speaker
    if tier.has_points or tier.parent or kind.lower() in IGNORED_TIERS:
        return "", ""
    if kind.lower() in WORD_TIERS and not any(interval.divides for interval in tier.intervals):
        return "words", speaker
    if kind.lower() in (*GENERAL_TIERS, *WORD_TIERS):
        return "utterances", speaker
    return "utterances", tier.speaker or tier.name


def _undivided(intervals: Iterable[Interval]) -> list[Interval]:
    """Return intervals, with those joined that are equal parts of one: when each was said is not known."""
    joined: list[Interval] = []
    for interval in intervals:
        if joined and interval.divides and interval.divides == joined[-1].divides:
            joined[-1] = joined[-1]._replace(text=f"{joined[-1].text} {interval.text}")
        elif interval.divides:
            start, end = interval.divides
            joined.append(interval._replace(start=start, end=end))
        else:
            joined.append(interval)
    return joined


def _transcript_of(recording: Path) -> dict[Path, Path]:
    """Return the transcript beside a recording by its path without extension.

    Raises FormatError without one.
    """
    stem = recording.with_suffix("")
    beside = {path.suffix.lower(): path for path in sorted(recording.parent.iterdir()) if path.with_suffix("") == stem}
    transcript = next((beside[extension] for extension in TEXTS if extension in beside), None)
    if transcript is None:
        raise FormatError(f"{recording}: no transcript; expected {stem.name}.txt, .lab, .TextGrid or .eaf beside it")
    return {stem: transcript}


def _files(source: Path, report: RunReport) -> tuple[list[Path], dict[Path, Path], list[Path]]:
    """Return the audio files below a directory, the transcripts by their paths without extension, and files of formats
    that cannot be read.
    """
    if not source.is_dir():
        source.stat()
        raise FormatError(f"{source}: a file; expected a folder of recordings, or one recording")
    recordings: list[Path] = []
    unreadable: list[Path] = []
    texts: dict[Path, Path] = {}
    visited: set[tuple[int, int]] = set()

    def refused(fault: OSError) -> None:
        report.fail(Path(fault.filename).name, reason(fault))

    for directory, folders, files in os.walk(source, onerror=refused, followlinks=True):
        try:
            about = Path(directory).stat()
        except OSError as fault:  # removed in the meantime
            refused(fault)
            continue
        if (about.st_dev, about.st_ino) in visited:  # a link to a folder above, or a second one to the same
            folders.clear()
            continue
        visited.add((about.st_dev, about.st_ino))
        files += [
            name for name in folders if Path(name).suffix.lower() in (*AUDIO_SUFFIXES, *TEXTS)
        ]  # reported when opened
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in files)
        for name in sorted(name for name in files if not name.startswith(".")):
            path = Path(directory, name)
            extension = path.suffix.lower()
            if extension in AUDIO_SUFFIXES:
                recordings.append(path)
            elif extension in UNREADABLE_SUFFIXES:
                unreadable.append(path)
            elif extension in TEXTS:
                stem = path.with_suffix("")
                beside = texts.get(stem)
                if beside is None or TEXTS.index(extension) < TEXTS.index(beside.suffix.lower()):
                    texts[stem] = path
    return recordings, texts, unreadable


def _read_transcript(path: Path) -> str:
    size = path.stat().st_size
    if size > LONGEST_TEXT:
        raise FormatError(f"{path}: {size} bytes; expected a transcript of at most {LONGEST_TEXT}")
    return read_text(path)
