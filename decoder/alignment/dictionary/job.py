"""The job that adds probabilities of pronunciations and silence to a dictionary, from alignments."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from decoder.alignment.dictionary.probabilities import DictionaryCounts
from decoder.alignment.dictionary.spoken import SILENCE, read_spoken
from readers.common.faults import counted
from readers.common.files import require_writable
from readers.common.report import Log, RunReport, silent
from readers.config.options import Options, group, option
from readers.dictionaries.options import DictionaryOptions
from readers.dictionaries.silence import SENTENCE_END, SENTENCE_START, write_with_silence
from readers.errors import FormatError
from readers.htk.dictionary import Pronunciation, write_dictionary
from readers.htk.scp import read_scp

REPORT = "report"
HTK = "htk.dict"  # with output symbols, without probabilities of silence


@dataclass(frozen=True, kw_only=True)
class AlignedDictionary(DictionaryOptions):
    """The dictionary with which the words were aligned."""

    dict: Path = option(help="dictionary with which the words were aligned", flag="DICT", metavar="DICT")


@dataclass(frozen=True, kw_only=True)
class DictionaryProbabilitiesOptions(Options):
    """Options of the estimation of a dictionary's probabilities."""

    dictionary: AlignedDictionary = group(AlignedDictionary)
    alignments: tuple[Path, ...] = option(
        help="MLFs with words beside phones or states, TextGrids, folders of them or with words.ctm and phones.ctm",
        flag="ALIGNMENT", metavar="ALIGNMENT",
    )  # fmt: skip
    output: Path = option(help="directory for the dictionaries", flag="-o --output", metavar="DIR")
    infiles: Path | None = option(
        None,
        "list whose utterances are counted, found by their names without directories (default: all)",
        metavar="SCP",
    )
    silence: tuple[str, ...] = option(
        SILENCE, "phones of silence, separated by commas; sp counts as none", separator=",", metavar="NAMES"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require("alignments", bool(self.alignments), "is missing; expected at least one")


@dataclass(frozen=True)
class DictionaryProbabilitiesResult:
    """A dictionary with probabilities.

    Attributes
    ----------
    entries : list of Pronunciation
        With both probabilities; those of <s> and </s> are the last.
    variants : list of (str, tuple of str, int)
        Word, phones and count of each pronunciation of the words that have several.
    report : RunReport
        The words that were counted, and the pronunciations that the dictionary lacks.
    """

    entries: list[Pronunciation]
    variants: list[tuple[str, tuple[str, ...], int]]
    report: RunReport


def estimate_dictionary(
    options: DictionaryProbabilitiesOptions, *, note: Log = silent
) -> DictionaryProbabilitiesResult:
    """Estimate the probabilities of pronunciations and silence; write them in the forms of HTK, Kaldi and MFA.

    Parameters
    ----------
    options : DictionaryProbabilitiesOptions
    note : callable
        Receives texts about the dictionary.

    Returns
    -------
    DictionaryProbabilitiesResult

    Raises
    ------
    FormatError, OSError
        For a file that cannot be read or written, and for alignments without a word of the dictionary.

    Examples
    --------
    ``options = DictionaryProbabilitiesOptions(dictionary=words, alignments=("aligned",), output="trained")``

    ``estimate_dictionary(options).report.summary()``, with ``words = AlignedDictionary(dict="words.dict")``
    """
    require_writable(options.output / REPORT)
    entries = options.dictionary.read(note)
    counts = DictionaryCounts(entries, options.silence)
    aligned = [utterance for path in options.alignments for utterance in read_spoken(path, options.silence)]
    if options.infiles is not None:
        listed = {Path(entry.key).name for entry in read_scp(options.infiles)}
        aligned = [utterance for utterance in aligned if utterance.key in listed]
        if missing := sorted(listed - {utterance.key for utterance in aligned}):
            note(f"{options.infiles}: {counted(len(missing), 'utterance')} without alignment, such as {missing[0]}")
        if not aligned:
            raise FormatError(f"{options.infiles}: no utterance of the alignments; expected at least one")
    counts.add(utterance.words for utterance in aligned if not isinstance(utterance.words, FormatError))
    faults = [
        (utterance.name, str(utterance.words)) for utterance in aligned if isinstance(utterance.words, FormatError)
    ]
    if faults and len(faults) == len(aligned):
        raise FormatError(faults[0][1])
    if not counts.known & counts.counts.keys():
        alignments = " ".join(map(str, options.alignments))
        raise FormatError(f"{alignments}: no pronunciation of {options.dictionary.dict}; expected at least one")
    trained, report = write_probabilities(counts, silence_of(entries, options.silence), options.output, faults)
    return DictionaryProbabilitiesResult(trained, counts.variants(), report)


def silence_of(entries: list[Pronunciation], names: tuple[str, ...] = SILENCE) -> str:
    """Return the phone of silence: that of <s> in the dictionary, or else the first of some names."""
    phones = [entry.phones[0] for entry in entries if entry.word == SENTENCE_START and len(entry.phones) == 1]
    return phones[0] if phones else names[0]


def write_probabilities(
    counts: DictionaryCounts, silence: str, directory: Path, faults: Iterable[tuple[str, str]] = ()
) -> tuple[list[Pronunciation], RunReport]:
    """Write the dictionary of some counts, and a report; return both.

    silence: the phone of <s> and </s>; faults: utterances that were not counted, with reasons.
    """
    report = RunReport("words", counts.counts.total() - sum(counts.unknown.values()))
    for (word, phones), count in counts.unknown.items():
        report.skip(word, f"{' '.join(phones)}, {count} times: not a pronunciation of the dictionary")
    for name, reason in faults:
        report.fail(name, reason)
    entries = counts.estimate(silence)
    write_with_silence(directory, entries)
    words = (entry for entry in entries if entry.word not in (SENTENCE_START, SENTENCE_END))
    write_dictionary(directory / HTK, [*counts.marks, *words])
    report.write(directory / REPORT)
    return entries, report
