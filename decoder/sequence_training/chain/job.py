"""The job that makes what training with lattice-free MMI needs, from an alignment or from transcripts."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from decoder.sequence_training.chain.alignment import PhoneSegments, aligned_numerator, chain_labels, phone_segments
from decoder.sequence_training.chain.options import ChainOptions
from decoder.sequence_training.chain.outputs import ChainOutputs, monophone_outputs, read_tied_outputs
from decoder.sequence_training.chain.phone_lm import estimate_phone_lm
from decoder.sequence_training.chain.system import ChainSystem
from decoder.sequence_training.chain.transcripts import Lexicon, transcript_numerator
from decoder.tying import state_runs
from readers.common.faults import one_line
from readers.common.files import require_writable
from readers.common.names import names_for_any_path
from readers.common.report import Log, Progress, RunReport, silent
from readers.errors import ArgonautError, ConfigError, FormatError
from readers.htk.mlf import Label, read_mlf, write_mlf
from readers.htk.parameter_file import read_htk_header
from readers.htk.scp import ScpEntry, read_scp
from readers.sources.chain.numerators import Numerator

RESULTS = ("senones.list", "denominator", "numerators", "states.mlf", "hmmdefs", "tiedlist", "trees", "report")
SAMPLES = 10  # random pronunciations and silences of each transcript, for the phone language model


@dataclass(frozen=True)
class ChainResult:
    """What training with lattice-free MMI needs.

    Attributes
    ----------
    report : RunReport
        The utterances with a numerator, and those without, with the reasons.
    system : ChainSystem or None
        None if no utterance has a numerator.
    """

    report: RunReport
    system: ChainSystem | None = None


def make_chain(
    options: ChainOptions, *, progress: Progress = silent, log: Log = silent, note: Log = silent
) -> ChainResult:
    """Make denominator and numerator graphs, and models for decoding; write them to `options.out`.

    Parameters
    ----------
    options : ChainOptions
    progress : callable
        Called as ``progress(utterances done, utterances)``.
    log : callable
        Receives a line about phones without frames, and one about the phone language model.
    note : callable
        Receives texts about the dictionary.

    Returns
    -------
    ChainResult

    Raises
    ------
    ArgonautError, OSError
        For a fault in the files that all utterances share; the report lists faults of single utterances.
    """
    files = options.files
    inputs = (options.alignment, files.states, files.state_list, files.trees, options.words, options.dictionary.dict)
    for name in RESULTS:
        require_writable(options.out / name, [*inputs, options.features])
    report = RunReport("utterances")
    source = _Alignments(options, log) if options.alignment else _Transcripts(options, log, note)
    numerators, phones = source.read(report, progress)
    options.out.mkdir(parents=True, exist_ok=True)
    if not report.num_done:
        report.write(options.out / "report")
        return ChainResult(report)
    model = estimate_phone_lm(phones, options.phone_lm)
    log(f"phone language model: {model.num_states} states, {model.num_arcs} arcs, perplexity {model.perplexity:.2f}")
    system = ChainSystem.build(model, source.outputs, numerators, options.timing.subsampling)
    system.save(options.out)
    if isinstance(source, _Alignments):
        write_mlf(options.out / "states.mlf", source.labels())
    else:  # that of an earlier run
        (options.out / "states.mlf").unlink(missing_ok=True)
    report.write(options.out / "report")
    return ChainResult(report, system)


def _outputs(options: ChainOptions, phones: Iterable[str], seen: Collection[str], log: Log) -> ChainOutputs:
    """The outputs of tied models, or of the phones that were seen."""
    if options.tied:
        return read_tied_outputs(options.tied, options.silence)
    unseen = [phone for phone in phones if phone not in seen]
    if unseen:
        log(f"no frames of {', '.join(unseen)}: no outputs made")
    return monophone_outputs([phone for phone in phones if phone in seen], options.silence)


class _Alignments:
    """Numerators from a state alignment."""

    outputs: ChainOutputs

    def __init__(self, options: ChainOptions, log: Log):
        self.options = options
        self.log = log
        self.places, self.state_map = options.files.read()
        if options.silence not in self.state_map:
            file = options.files.file
            raise ConfigError(
                f"{file}: no model '{options.silence}'; expected the states of silence (the option silence)"
            )
        assert options.alignment is not None
        self.alignment = read_mlf(options.alignment)
        self.segments: dict[str, tuple[list[int], PhoneSegments]] = {}

    def read(self, report: RunReport, progress: Progress) -> tuple[dict[str, Numerator], list[list[int]]]:
        """Return the numerator of each utterance, and the phones of each."""
        names = names_for_any_path(list(self.alignment))
        silence = self.options.silence
        segments: dict[str, PhoneSegments] = {}
        for name in self.alignment:
            try:
                where = self.alignment.where(name)
                segments[name] = phone_segments(
                    state_runs(self.alignment[name], self.places, {silence}, silence, None, where)
                )
            except ArgonautError as fault:
                report.fail(name, one_line(fault))
        occurring = {silence, *(phone for of_utterance in segments.values() for phone in of_utterance.phones)}
        self.outputs = _outputs(self.options, self.state_map, occurring, self.log)
        numerators: dict[str, Numerator] = {}
        phones: list[list[int]] = []
        for number, (name, of_utterance) in enumerate(segments.items(), start=1):
            try:
                numbers = [self.outputs.number(phone) for phone in of_utterance.phones]
                numerator = aligned_numerator(numbers, of_utterance, self.outputs, self.options.timing)
            except ArgonautError as fault:
                report.fail(name, one_line(fault))
            else:
                numerators[names[name]] = numerator
                self.segments[names[name]] = numbers, of_utterance
                phones.append(numbers)
                report.done()
            progress(number, len(segments))
        return numerators, phones

    def labels(self) -> Iterator[tuple[str, list[Label]]]:
        """Yield the alignment of each utterance in the outputs."""
        for name, (numbers, segments) in self.segments.items():
            yield f"*/{name}.lab", chain_labels(numbers, segments, self.outputs, self.options.timing)


class _Transcripts:
    """Numerators from words."""

    outputs: ChainOutputs

    def __init__(self, options: ChainOptions, log: Log, note: Log):
        self.options = options
        self.log = log
        self.dictionary = options.dictionary.read(note)
        assert options.words is not None
        self.words = read_mlf(options.words)

    def read(self, report: RunReport, progress: Progress) -> tuple[dict[str, Numerator], list[list[int]]]:
        """Return the numerator of each utterance, and samples of its phones."""
        assert self.options.features is not None
        entries = read_scp(self.options.features)
        if not entries:
            raise FormatError(f"{self.options.features}: no entries; expected a feature file on each line")
        spoken = {label.name for entry in entries for label in self.words.lookup(entry.key) or ()}
        dictionary = [entry for entry in self.dictionary if entry.word in spoken]
        occurring = dict.fromkeys([self.options.silence, *(phone for entry in dictionary for phone in entry.phones)])
        self.outputs = _outputs(self.options, occurring, occurring, self.log)
        lexicon = Lexicon(dictionary, self.outputs)
        rng = np.random.default_rng(0)
        numerators: dict[str, Numerator] = {}
        phones: list[list[int]] = []
        for number, entry in enumerate(entries, start=1):
            try:
                if entry.key in numerators:
                    raise FormatError("a second time in the list; expected each utterance once")
                words = self._words_of(entry)
                frames = entry.num_frames or read_htk_header(entry.path).num_frames
                numerators[entry.key] = transcript_numerator(
                    words, lexicon, self.outputs, frames, self.options.timing.output_frames(frames)
                )
                phones += [lexicon.sample(words, self.options.silences, rng) for _ in range(SAMPLES)]
                report.done()
            except (ArgonautError, OSError) as fault:
                report.fail(entry.key, one_line(fault))
            progress(number, len(entries))
        return numerators, phones

    def _words_of(self, entry: ScpEntry) -> list[str]:
        labels = self.words.lookup(entry.key)
        if labels is None:
            raise FormatError(f"no words; {self.words.expected_entry(entry.key)}")
        return [label.name for label in labels]
