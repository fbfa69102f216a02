"""Which utterances share an i-vector: those of a speaker, or each one alone."""

from collections.abc import Callable
from pathlib import Path

from features.ivectors.options import UnitOptions
from features.ivectors.shards import Unit, Utterance
from readers.common.names import compile_expression
from readers.common.report import RunReport
from readers.corpora.directory import read_speakers
from readers.errors import FormatError
from readers.htk.scp import read_feature_list

Finder = Callable[[str], tuple[str, str]]  # from the name of an utterance to (speaker, ""), or to ("", reason)


def read_units(options: UnitOptions, report: RunReport) -> list[Unit]:
    """Return the utterances of the list, those of a speaker together if speakers are given.

    Utterances without a speaker go to the report.  Raises FormatError for lists without entries and repeated names.
    """
    entries = read_feature_list(options.features)
    find_speaker = _speaker_finder(options)
    units: dict[str, list[Utterance]] = {}
    for entry in entries:
        speaker, reason = find_speaker(entry.key)
        if reason:
            report.fail(entry.key, reason)
        else:
            path = str(Path(entry.path).absolute())
            units.setdefault(speaker, []).append(Utterance(entry.key, path, entry.start, entry.end))
    if not units:
        raise FormatError(f"{options.features}: {report.lost[0][0]}: {report.lost[0][2]}; no utterance has a speaker")
    return [Unit(name, tuple(utterances)) for name, utterances in units.items()]


def _speaker_finder(options: UnitOptions) -> Finder:
    if options.speaker_pattern:
        return _matcher(options, options.speaker_pattern)
    if not options.speakers:
        return lambda name: (name, "")
    speakers = read_speakers(options.speakers)

    def look_up(name: str) -> tuple[str, str]:
        directory, slash, last = name.rpartition("/")
        if name in speakers:
            return speakers[name], ""
        if last in speakers:  # a copy such as warp92/NAME, in which the speaker sounds like another one
            return f"{directory}{slash}{speakers[last]}", ""
        return "", f"{options.speakers}: no line `{name} SPEAKER`; expected one"

    return look_up


def _matcher(options: UnitOptions, expression: str) -> Finder:
    pattern = compile_expression(expression, "speaker pattern")
    options.require(
        "speaker_pattern", pattern.groups > 0, f"is {expression}, without a group; expected the speaker in parentheses"
    )

    def match(name: str) -> tuple[str, str]:
        match = pattern.search(name)
        reason = f"no match of the speaker pattern {expression}; expected one with a speaker"
        return (match[1], "") if match and match[1] else ("", reason)

    return match
